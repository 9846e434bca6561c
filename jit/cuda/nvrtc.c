#include "nvrtc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- The library ---- */

/* Its functions: CUDA's, nvrtc.h. A program is a pointer to what only the library knows; 0 is success. */
static struct {
  int (*create)(void **program, const char *source, const char *name, int headers, const char *const *texts,
                const char *const *names);
  int (*compile)(void *program, int count, const char *const *options);
  int (*log_size)(void *program, size_t *bytes);
  int (*log)(void *program, char *text);
  int (*ptx_size)(void *program, size_t *bytes);
  int (*ptx)(void *program, char *text);
  int (*cubin_size)(void *program, size_t *bytes);
  int (*cubin)(void *program, char *bytes);
  int (*destroy)(void **program);
  int (*version)(int *major, int *minor);
  const char *(*error)(int result);
  int (*arch_count)(int *count); /* NULL, as the next: it is older than CUDA 11.2, and does not say */
  int (*archs)(int *list);
  char missing[JIT_LIBRARY_MISSING]; /* why there is none; "": there is */
} nvrtc;

static const struct jit_library_function functions[] = {
    {"nvrtcCreateProgram", &nvrtc.create},         {"nvrtcCompileProgram", &nvrtc.compile},
    {"nvrtcGetProgramLogSize", &nvrtc.log_size},   {"nvrtcGetProgramLog", &nvrtc.log},
    {"nvrtcGetPTXSize", &nvrtc.ptx_size},          {"nvrtcGetPTX", &nvrtc.ptx},
    {"nvrtcGetCUBINSize", &nvrtc.cubin_size},      {"nvrtcGetCUBIN", &nvrtc.cubin},
    {"nvrtcDestroyProgram", &nvrtc.destroy},       {"nvrtcVersion", &nvrtc.version},
    {"nvrtcGetErrorString", &nvrtc.error},         {"nvrtcGetNumSupportedArchs", &nvrtc.arch_count, true},
    {"nvrtcGetSupportedArchs", &nvrtc.archs, true}};

static void open_nvrtc(void) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
  void *library = jit_open_library("MSCHED_NVRTC", names, false, nvrtc.missing);
  jit_find_functions(library, functions, sizeof functions / sizeof *functions, nvrtc.missing);
}

static bool find_nvrtc(ms_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_nvrtc);
  return !*nvrtc.missing ||
         ms_fail(err, MS_NO_LIBRARY,
                 "NVRTC is missing (%s): install CUDA's libnvrtc, or set MSCHED_NVRTC to its path; .cu needs none",
                 nvrtc.missing);
}

bool nvrtc_version(int *major, int *minor, ms_error *err) {
  if (!find_nvrtc(err)) return false;
  return nvrtc.version(major, minor) == 0 || ms_fail(err, MS_NO_LIBRARY, "NVRTC does not say its version");
}

int jit_nvrtc_version(ms_error *err) {
  int major, minor;
  return nvrtc_version(&major, &minor, err) ? 1000 * major + 10 * minor : 0;
}

bool nvrtc_knows(const struct jit_target *target, ms_error *err) {
  enum { MOST = 64 };
  int count = 0, all[MOST] = {0};
  char known[5 * MOST] = "";
  if (!find_nvrtc(err)) return false;
  if (!nvrtc.arch_count || !nvrtc.archs || nvrtc.arch_count(&count) || count < 1 || count > MOST || nvrtc.archs(all))
    return true;
  for (int i = 0; i < count; i++) {
    size_t length = strlen(known);
    if (all[i] == target->gpu.arch) return true;
    snprintf(known + length, sizeof known - length, "%s%d", i ? " " : "", all[i]);
  }
  return ms_fail(
      err, MS_NO_LIBRARY,
      "NVRTC has no code for %s: it knows sm_ %s; install one of another CUDA and say where by MSCHED_NVRTC; "
      ".cu needs none",
      target->cpu, known);
}

/* ---- Compiling ---- */

static char *fetch(void *program, int (*size_of)(void *, size_t *), int (*get)(void *, char *), size_t *size) {
  char *bytes = size_of(program, size) == 0 ? calloc(*size + 1, 1) : NULL;
  if (bytes && get(program, bytes) == 0) return bytes;
  free(bytes);
  return NULL;
}

static bool compile_program(void *program, const struct jit_target *target, bool no_fast_math, bool ptx,
                            struct nvrtc_code *out, ms_error *err) {
  char arch[80];
  size_t log_size;
  snprintf(arch, sizeof arch, "--gpu-architecture=%s%s", ptx ? "compute" : "sm", target->cpu + strlen("sm"));
  const char *words[] = {arch, "--std=c++17", "--ptxas-options=-v", no_fast_math ? "--fmad=false" : "--fmad=true"};
  int result = nvrtc.compile(program, sizeof words / sizeof *words, words);
  out->log = fetch(program, nvrtc.log_size, nvrtc.log, &log_size);
  if (result)
    return ms_fail(err, MS_NOT_COMPILABLE, "NVRTC: %s for %s: %.600s", nvrtc.error(result), target->cpu,
                   out->log ? out->log : "");
  out->bytes = ptx ? fetch(program, nvrtc.ptx_size, nvrtc.ptx, &out->size)
                   : fetch(program, nvrtc.cubin_size, nvrtc.cubin, &out->size);
  if (ptx && out->size) out->size--; /* the text's end */
  return out->bytes || ms_fail(err, MS_NOT_COMPILABLE, "NVRTC gives no code for %s", target->cpu);
}

bool nvrtc_compile(const char *source, const struct jit_target *target, bool no_fast_math, bool ptx,
                   struct nvrtc_code *out, ms_error *err) {
  assert(source && target->gpu.arch);
  void *program = NULL;
  *out = (struct nvrtc_code){0};
  if (!nvrtc_knows(target, err)) return false;
  int result = nvrtc.create(&program, source, "kernels.cu", 0, NULL, NULL);
  if (result) return ms_fail(err, MS_NOT_COMPILABLE, "NVRTC: %s", nvrtc.error(result));
  bool ok = compile_program(program, target, no_fast_math, ptx, out, err);
  nvrtc.destroy(&program);
  return ok;
}

void nvrtc_code_free(struct nvrtc_code *code) {
  free(code->bytes);
  free(code->log);
  *code = (struct nvrtc_code){0};
}

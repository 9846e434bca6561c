/* Kernels for CUDA as code: their source, what NVRTC makes of it, and the row in the table. */
#include "cuda.h"
#include "jit/c/emit_c.h"
#include "jit/export/header.h"
#include "jit/host/file.h"
#include "launch.h"
#include "launcher.h"
#include "nvrtc.h"
#include "resources.h"

#include <stdlib.h>
#include <string.h>

/* What launches a function's kernels, and those that pack its constants, which are of one source. */
struct plans {
  struct cuda_plan kernel, pack;
};

static void plans_make(const struct tir *lowered, tir_func f, const struct jit_beside *beside,
                       const struct c_kernels *kernels, struct plans *out) {
  const struct c_kernels first = {.at = kernels->at, .count = kernels->beside, .device_bytes = kernels->beside_bytes};
  const struct c_kernels own = {.at = kernels->beside ? kernels->at + kernels->beside : kernels->at, /* NULL: none */
                                .count = kernels->count - kernels->beside,
                                .device_bytes = kernels->device_bytes};
  *out = (struct plans){0};
  if (beside) cuda_plan_make(beside->lowered, beside->f, &first, &out->pack);
  cuda_plan_make(lowered, f, &own, &out->kernel);
}

static void plans_free(struct plans *plans) {
  cuda_plan_free(&plans->kernel);
  cuda_plan_free(&plans->pack);
}

/* Those that pack are not among the kernels that are known of code. */
static void leave_own(struct c_kernels *kernels) {
  if (!kernels->beside) return;
  kernels->count -= kernels->beside;
  memmove(kernels->at, kernels->at + kernels->beside, kernels->count * sizeof *kernels->at);
  kernels->beside = 0;
}

/* The object is the source of its kernels. */
static bool compile(const struct tir *lowered, tir_func f, const struct jit_beside *beside,
                    const struct jit_options *options, struct jit_clock *clock, struct jit_code *code, ms_error *err) {
  char *text = emit_c_source(&emit_c_cuda, lowered, f, code->name, beside, &code->target, options, &code->kernels, err);
  if (!text) return false;
  jit_code_set_object(code, text, strlen(text));
  jit_clock_pass(clock, "emit");
  free(text);
  struct plans *plans = malloc(sizeof *plans);
  if (!plans) abort();
  plans_make(lowered, f, beside, &code->kernels, plans);
  plans->kernel.cold = code->target.gpu.cold;
  leave_own(&code->kernels);
  code->launched = plans;
  code->workspace = (struct tir_workspace){.bytes = plans->kernel.workspace};
  code->packing.workspace = (struct tir_workspace){.bytes = plans->pack.workspace};
  return true;
}

static void forget(struct jit_code *code) {
  if (code->launched) plans_free(code->launched);
  free(code->launched);
  code->launched = NULL;
}

/* The plan and the cubin; where constants are packed, behind them that plan, and where it begins. */
static void *write_object(const struct jit_code *code, const void *image, size_t image_bytes, size_t *bytes) {
  const struct plans *plans = code->launched;
  size_t own, other;
  uint8_t *out = cuda_plan_write(&plans->kernel, image, image_bytes, &own);
  *bytes = own;
  if (!code->packing.count) return out;
  uint64_t begin = (own + 7) / 8 * 8;
  void *pack = cuda_plan_write(&plans->pack, "", 0, &other);
  *bytes = begin + (other + 7) / 8 * 8 + sizeof begin;
  out = realloc(out, *bytes);
  if (!out) abort();
  memset(out + own, 0, *bytes - own);
  memcpy(out + begin, pack, other);
  memcpy(out + *bytes - sizeof begin, &begin, sizeof begin);
  free(pack);
  return out;
}

/* The plan and the cubin of a source, as bytes; free(). NULL: err is filled. */
static void *assembled(const struct jit_code *code, size_t *bytes, ms_error *err) {
  struct nvrtc_code made;
  void *out = NULL;
  if (nvrtc_compile(code->object, &code->target, code->no_fast_math, false, &made, err) &&
      resources_note(made.log, &code->target, code->kernels.at, code->kernels.count, err))
    out = write_object(code, made.bytes, made.size, bytes);
  nvrtc_code_free(&made);
  return out;
}

static bool assemble(struct jit_code *code, ms_error *err) {
  size_t bytes;
  if (code->is_assembled) return true;
  void *both = assembled(code, &bytes, err);
  if (!both) return false;
  jit_code_set_object(code, both, bytes);
  code->is_assembled = true;
  free(both);
  return true;
}

static bool cuda_load_code(const struct jit_code *code, struct jit_kernel *kernel, ms_error *err) {
  size_t bytes;
  const void *object = jit_code_object(code, &bytes);
  if (code->is_assembled) return cuda_load(object, bytes, kernel, err);
  void *both = assembled(code, &bytes, err);
  bool ok = both && cuda_load(both, bytes, kernel, err);
  free(both);
  return ok;
}

/* What NVRTC makes of the source. */
static bool write_assembled(const char *source, struct c_kernels *kernels, const struct jit_target *target,
                            const struct jit_options *options, const char *form, const char *path, ms_error *err) {
  struct nvrtc_code made;
  bool no_fast_math = options && options->no_fast_math;
  bool ok = nvrtc_compile(source, target, no_fast_math, !strcmp(form, ".ptx"), &made, err) &&
            resources_note(made.log, target, kernels->at, kernels->count, err) &&
            jit_write_file(path, made.bytes, made.size, err);
  nvrtc_code_free(&made);
  return ok;
}

static char *launchers_text(const struct jit_exported *x, const struct plans *plans, const char *form,
                            const char *header) {
  const struct jit_beside *b = x->beside;
  bool is_header = !strcmp(form, ".h");
  char target[JIT_TARGET_TEXT];
  cuda_text(x->target, target, sizeof target);
  char *texts[2] = {is_header ? launcher_header(x->lowered, x->f, x->name, target, &plans->kernel, x->cut)
                              : launcher_source(x->lowered, x->f, x->name, x->target, &plans->kernel, header),
                    !b          ? NULL
                    : is_header ? launcher_header(b->lowered, b->f, b->name, target, &plans->pack, NULL)
                                : launcher_source(b->lowered, b->f, b->name, x->target, &plans->pack, header)};
  if (!b) return texts[0];
  char *both = malloc(strlen(texts[0]) + strlen(texts[1]) + 2);
  if (!both) abort();
  sprintf(both, "%s\n%s", texts[0], texts[1]);
  free(texts[0]);
  free(texts[1]);
  return both;
}

/* C that launches them, or its header; the header's file has the source's name. */
static bool write_launcher(const struct jit_exported *x, const struct c_kernels *kernels, const char *form,
                           const char *path, ms_error *err) {
  struct plans plans;
  const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
  char header[HEADER_NAME];
  plans_make(x->lowered, x->f, x->beside, kernels, &plans);
  snprintf(header, sizeof header, "%.*s.h", (int)(strlen(file) - strlen(form)), file);
  const char *refusal = *plans.kernel.refusal ? plans.kernel.refusal : plans.pack.refusal;
  char *text = *refusal ? NULL : launchers_text(x, &plans, form, header);
  bool ok = text ? jit_write_file(path, text, strlen(text), err)
                 : ms_fail(err, MS_NOT_COMPILABLE, "no launcher can be written: %s", refusal);
  plans_free(&plans);
  free(text);
  return ok;
}

static bool export(const struct jit_exported *x, const char *form, const char *path, ms_error *err) {
  struct c_kernels kernels = {0};
  char *source =
      emit_c_source(&emit_c_cuda, x->lowered, x->f, x->name, x->beside, x->target, x->options, &kernels, err);
  bool ok = source != NULL;
  if (ok && !strcmp(form, ".cu"))
    ok = jit_write_file(path, source, strlen(source), err);
  else if (ok && (!strcmp(form, ".h") || !strcmp(form, ".c")))
    ok = write_launcher(x, &kernels, form, path, err);
  else if (ok)
    ok = write_assembled(source, &kernels, x->target, x->options, form, path, err);
  free(kernels.at);
  free(source);
  return ok;
}

static const char *const forms[] = {".cu", ".ptx", ".cubin", ".h", ".c", NULL};

const struct jit_backend cuda_backend = {.kind = "cuda",
                                         .parse = cuda_parse,
                                         .text = cuda_text,
                                         .numbers = cuda_numbers,
                                         .runs_here = cuda_runs_here,
                                         .reference = "native", /* this machine's processor */
                                         .lower = cuda_lower,
                                         .packs = true,
                                         .compile = compile,
                                         .assemble = assemble,
                                         .forget = forget,
                                         .dialect = &emit_c_cuda,
                                         .forms = forms,
                                         .export = export,
                                         .count = cuda_count,
                                         .open = cuda_open,
                                         .describe = cuda_describe,
                                         .prepare = cuda_prepare,
                                         .memory = &cuda_memory,
                                         .checks = &cuda_checks,
                                         .load = cuda_load_code,
                                         .unload = cuda_unload,
                                         .run = cuda_run,
                                         .sample = cuda_sample,
                                         .start = cuda_start,
                                         .start_copy = cuda_start_copy,
                                         .run_other = cuda_run_other,
                                         .sample_other = cuda_sample_other,
                                         .free_captured = cuda_free_captured,
                                         .turn = cuda_turn,
                                         .apart = true,
                                         .settling = 1};

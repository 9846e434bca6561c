/* Kernels for CUDA as code: their source, what NVRTC makes of it, and the row in the table. */
#include "cuda.h"
#include "jit/c/emit_c.h"
#include "jit/header.h"
#include "launch.h"
#include "launcher.h"
#include "nvrtc.h"
#include "resources.h"

#include <stdlib.h>
#include <string.h>

/* The object is the source of its kernels. */
static bool compile(const struct tir *lowered, tir_func f, const struct jit_beside *beside,
                    const struct jit_options *options, struct jit_clock *clock, struct jit_code *code, ms_error *err) {
  assert(!beside);
  (void)beside;
  char *text = jit_emit_c(lowered, f, code->name, &code->target, options, &code->kernels, err);
  if (!text) return false;
  jit_code_set_object(code, text, strlen(text));
  jit_clock_pass(clock, "emit");
  free(text);
  struct cuda_plan *plan = malloc(sizeof *plan);
  if (!plan) abort();
  cuda_plan_make(lowered, f, &code->kernels, plan);
  plan->cold = code->target.gpu.cold;
  code->launched = plan;
  code->workspace = (struct tir_workspace){.bytes = plan->workspace};
  return true;
}

static void forget(struct jit_code *code) {
  if (code->launched) cuda_plan_free(code->launched);
  free(code->launched);
  code->launched = NULL;
}

/* The plan and the cubin of a source, as bytes; free(). NULL: err is filled. */
static void *assembled(const struct jit_code *code, size_t *bytes, ms_error *err) {
  struct nvrtc_code made;
  void *out = NULL;
  if (nvrtc_compile(code->object, &code->target, code->no_fast_math, false, &made, err) &&
      resources_note(made.log, &code->target, code->kernels.at, code->kernels.count, err))
    out = cuda_plan_write(code->launched, made.bytes, made.size, bytes);
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

static bool load(const struct jit_code *code, struct jit_kernel *kernel, ms_error *err) {
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

/* C that launches them, or its header; the header's file has the source's name. */
static bool write_launcher(const struct tir *lowered, tir_func f, const char *name, const struct jit_target *target,
                           const struct c_kernels *kernels, const char *form, const char *path, ms_error *err) {
  struct cuda_plan plan;
  const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
  char header[HEADER_NAME];
  cuda_plan_make(lowered, f, kernels, &plan);
  snprintf(header, sizeof header, "%.*s.h", (int)(strlen(file) - strlen(form)), file);
  char *text = *plan.refusal         ? NULL
               : !strcmp(form, ".h") ? launcher_header(lowered, f, name, target, &plan)
                                     : launcher_source(lowered, f, name, target, &plan, header);
  bool ok = text ? jit_write_file(path, text, strlen(text), err)
                 : ms_fail(err, MS_NOT_COMPILABLE, "no launcher can be written: %s", plan.refusal);
  cuda_plan_free(&plan);
  free(text);
  return ok;
}

static bool write_kernels(const struct tir *lowered, tir_func f, const char *name, const struct jit_target *target,
                          const struct jit_options *options, const char *form, const char *path, ms_error *err) {
  struct c_kernels kernels = {0};
  char *source = jit_emit_c(lowered, f, name, target, options, &kernels, err);
  bool ok = source != NULL;
  if (ok && !strcmp(form, ".cu"))
    ok = jit_write_file(path, source, strlen(source), err);
  else if (ok && (!strcmp(form, ".h") || !strcmp(form, ".c")))
    ok = write_launcher(lowered, f, name, target, &kernels, form, path, err);
  else if (ok)
    ok = write_assembled(source, &kernels, target, options, form, path, err);
  free(kernels.at);
  free(source);
  return ok;
}

static bool export(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
                   const char *name, const char *form, const char *path, ms_error *err) {
  struct tir *lowered = jit_lowered(ir, f, target, options, NULL, NULL, err);
  bool ok = lowered && write_kernels(lowered, f, name, target, options, form, path, err);
  if (lowered) tir_free(lowered);
  return ok;
}

/* What kernels compute is said by this machine's processor. */
static bool refer_to_host(const struct jit_target *target, struct jit_target *out, ms_error *err) {
  (void)target;
  return jit_target_parse("native", out, err);
}

static const char *const forms[] = {".cu", ".ptx", ".cubin", ".h", ".c", NULL};

const struct jit_backend cuda_backend = {.kind = "cuda",
                                         .parse = cuda_parse,
                                         .text = cuda_text,
                                         .numbers = cuda_numbers,
                                         .runs_here = cuda_runs_here,
                                         .reference = refer_to_host,
                                         .lower = cuda_lower,
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
                                         .load = load,
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

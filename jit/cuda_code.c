/* Kernels for CUDA as code: their source, what NVRTC makes of it, and the row in the table. */
#include "cuda.h"
#include "emit_c.h"
#include "nvrtc.h"
#include "resources.h"

#include <stdlib.h>
#include <string.h>

#include <llvm-c/Core.h>

/* The object is the source of its kernels. */
static bool compile(const struct tir *lowered, tir_func f, const struct jit_options *options, struct jit_clock *clock,
                    struct jit_code *code, ms_error *err) {
  char *text = jit_emit_c(lowered, f, code->name, &code->target, options, &code->kernels, err);
  if (!text) return false;
  code->object = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "kernels");
  jit_clock_pass(clock, "emit");
  free(text);
  cuda_plan_make(lowered, f, &code->kernels, &code->plan);
  code->workspace = (struct tir_workspace){.bytes = code->plan.workspace};
  return true;
}

/* The plan and the cubin of a source, as bytes; free(). NULL: err is filled. */
static void *assembled(const struct jit_code *code, size_t *bytes, ms_error *err) {
  struct nvrtc_code made;
  void *out = NULL;
  if (nvrtc_compile(LLVMGetBufferStart(code->object), &code->target, code->no_fast_math, false, &made, err) &&
      resources_note(made.log, &code->target, code->kernels.at, code->kernels.count, err))
    out = cuda_plan_write(&code->plan, made.bytes, made.size, bytes);
  nvrtc_code_free(&made);
  return out;
}

static bool assemble(struct jit_code *code, ms_error *err) {
  size_t bytes;
  if (code->is_assembled) return true;
  void *both = assembled(code, &bytes, err);
  if (!both) return false;
  LLVMDisposeMemoryBuffer(code->object);
  code->object = LLVMCreateMemoryBufferWithMemoryRangeCopy(both, bytes, "cubin");
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

static bool write_kernels(const struct tir *lowered, tir_func f, const char *name, const struct jit_target *target,
                          const struct jit_options *options, const char *form, const char *path, ms_error *err) {
  struct c_kernels kernels = {0};
  struct nvrtc_code code = {0};
  char *text = jit_emit_c(lowered, f, name, target, options, &kernels, err);
  bool source = !strcmp(form, ".cu"), ok = text != NULL;
  if (ok && !source)
    ok = nvrtc_compile(text, target, options && options->no_fast_math, !strcmp(form, ".ptx"), &code, err) &&
         resources_note(code.log, target, kernels.at, kernels.count, err);
  ok =
      ok && (source ? jit_write_file(path, text, strlen(text), err) : jit_write_file(path, code.bytes, code.size, err));
  nvrtc_code_free(&code);
  free(kernels.at);
  free(text);
  return ok;
}

static bool export(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
                   const char *name, const char *form, const char *path, ms_error *err) {
  struct tir *lowered = jit_lowered(ir, f, target, options, NULL, err);
  bool ok = lowered && write_kernels(lowered, f, name, target, options, form, path, err);
  if (lowered) tir_free(lowered);
  return ok;
}

/* What kernels compute is said by this machine's processor. */
static bool refer_to_host(const struct jit_target *target, struct jit_target *out, ms_error *err) {
  (void)target;
  return jit_target_parse("native", out, err);
}

static const char *const forms[] = {".cu", ".ptx", ".cubin", NULL};

const struct jit_backend cuda_backend = {.kind = "cuda",
                                         .parse = cuda_parse,
                                         .text = cuda_text,
                                         .numbers = cuda_numbers,
                                         .runs_here = cuda_runs_here,
                                         .reference = refer_to_host,
                                         .lower = cuda_lower,
                                         .compile = compile,
                                         .assemble = assemble,
                                         .dialect = &emit_c_cuda,
                                         .forms = forms,
                                         .export = export,
                                         .count = cuda_count,
                                         .open = cuda_open,
                                         .prepare = cuda_prepare,
                                         .memory = &cuda_memory,
                                         .load = load,
                                         .unload = cuda_unload,
                                         .run = cuda_run,
                                         .sample = cuda_sample,
                                         .apart = true,
                                         .settling = 1};

/* Loading compiled code into this process with ORC, running and timing it. */
#include "machine.h"
#include "measure.h"
#include "timing.h"

#include <llvm-c/Core.h>

#include <stdlib.h>

#include <omp.h>

#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

struct jit_kernel {
  LLVMOrcLLJITRef orc;
  jit_entry entry;
  size_t workspace_bytes;
};

static bool orc_failed(LLVMErrorRef error, ms_error *err) {
  if (!error) return false;
  char *message = LLVMGetErrorMessage(error);
  ms_fail(err, MS_NOT_COMPILABLE, "LLVM ORC: %s", message);
  LLVMDisposeErrorMessage(message);
  return true;
}

/* Where generated code finds what it calls: in what the process exports, and in libraries that are loaded but not seen
 * by it, as when this library is part of a module that another program loaded. */
static bool add_libraries(LLVMOrcLLJITRef orc, LLVMOrcJITDylibRef library, ms_error *err) {
  static const char *const names[] = {NULL, "libgomp.so.1", "libm.so.6"};
  char prefix = LLVMOrcLLJITGetGlobalPrefix(orc);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    LLVMOrcDefinitionGeneratorRef found;
    LLVMErrorRef error = names[i]
                             ? LLVMOrcCreateDynamicLibrarySearchGeneratorForPath(&found, names[i], prefix, NULL, NULL)
                             : LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&found, prefix, NULL, NULL);
    if (names[i] && error) { /* not there: another gives what it would, or the code's lookup says what is missing */
      LLVMConsumeError(error);
      continue;
    }
    if (orc_failed(error, err)) return false;
    LLVMOrcJITDylibAddGenerator(library, found);
  }
  return true;
}

struct jit_kernel *jit_load(const struct jit_code *code, ms_error *err) {
  jit_start_llvm();
  (void)omp_get_max_threads(); /* generated code calls libgomp: the linker must not leave it out */
  struct jit_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) abort();
  kernel->workspace_bytes = code->workspace;
  LLVMOrcExecutorAddress address;
  if (orc_failed(LLVMOrcCreateLLJIT(&kernel->orc, NULL), err)) {
    free(kernel);
    return NULL;
  }
  LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(kernel->orc);
  size_t bytes;
  const char *object = jit_code_object(code, &bytes);
  LLVMMemoryBufferRef copy = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, bytes, "kernel");
  if (add_libraries(kernel->orc, library, err) &&
      !orc_failed(LLVMOrcLLJITAddObjectFile(kernel->orc, library, copy), err) &&
      !orc_failed(LLVMOrcLLJITLookup(kernel->orc, &address, code->name), err)) {
    kernel->entry = (jit_entry)(uintptr_t)address;
    return kernel;
  }
  jit_kernel_free(kernel);
  return NULL;
}

jit_entry jit_kernel_entry(const struct jit_kernel *kernel) { return kernel->entry; }
size_t jit_kernel_workspace(const struct jit_kernel *kernel) { return kernel->workspace_bytes; }

void jit_kernel_free(struct jit_kernel *kernel) {
  if (!kernel) return;
  LLVMConsumeError(LLVMOrcDisposeLLJIT(kernel->orc));
  free(kernel);
}

static void *new_workspace(const struct jit_kernel *kernel) {
  if (!kernel->workspace_bytes) return NULL;
  return aligned_alloc(64, (kernel->workspace_bytes + 63) & ~(size_t)63);
}

bool jit_run(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
             const struct tir_arg *args, uint32_t count, ms_error *err) {
  struct jit_code *code = jit_compile(ir, f, target, options, err);
  struct jit_kernel *kernel = code ? jit_load(code, err) : NULL;
  jit_code_free(code);
  if (!kernel) return false;
  void **pointers = malloc((count + 1) * sizeof *pointers), *workspace = new_workspace(kernel);
  if (!pointers) abort();
  int64_t *scalars = malloc((count + 1) * sizeof *scalars);
  if (!scalars) abort();
  for (uint32_t i = 0; i < count; i++) {
    scalars[i] = args[i].scalar;
    pointers[i] = args[i].data ? args[i].data : &scalars[i];
  }
  bool ok = workspace || !kernel->workspace_bytes;
  if (!ok) ms_fail(err, MS_TOO_LARGE, "a workspace of %zu bytes cannot be had", kernel->workspace_bytes);
  int32_t status = ok ? kernel->entry(pointers, workspace) : 0;
  if (status) ok = ms_fail(err, MS_ASSERTION, "the kernel's assertion failed (status %d)", status);
  free(workspace);
  free(pointers);
  free(scalars);
  jit_kernel_free(kernel);
  return ok;
}

bool jit_time(const struct jit_kernel *kernel, void **args, double tolerance, double limit, struct jit_timing *out,
              ms_error *err) {
  void *workspace = new_workspace(kernel);
  bool ok = workspace || !kernel->workspace_bytes;
  if (ok) {
    kernel->entry(args, workspace); /* warms caches and pages */
    double before = measure_now();
    kernel->entry(args, workspace);
    struct timing_plan plan = {.tolerance = tolerance, .limit = limit, .once = measure_now() - before};
    ok = timing_measure(kernel->entry, args, workspace, &plan, out);
  }
  free(workspace);
  return ok || ms_fail(err, MS_TOO_LARGE, "memory for timing cannot be had");
}

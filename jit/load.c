/* Loading compiled code into this process with ORC. */
#include "machine.h"
#include "shake.h"
#include "trap.h"

#include <llvm-c/Core.h>

#include <stdlib.h>

#include <omp.h>

#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

struct jit_kernel {
  LLVMOrcLLJITRef orc;
  jit_entry entry;
  struct tir_workspace workspace;
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

/* Functions of ours in the place of libgomp's, found before what the libraries have: parallel loops run where their
 * faults are caught, or with shaken timing. */
static bool add_threads(LLVMOrcLLJITRef orc, LLVMOrcJITDylibRef library, bool shaken, ms_error *err) {
  const struct {
    const char *name;
    uintptr_t address;
  } ours[] = {{"GOMP_parallel", shaken ? (uintptr_t)shake_parallel : (uintptr_t)trap_parallel},
              {"omp_get_thread_num", (uintptr_t)shake_thread_number},
              {"omp_get_num_threads", (uintptr_t)shake_thread_count}};
  enum { COUNT = sizeof ours / sizeof *ours };
  LLVMOrcCSymbolMapPair symbols[COUNT];
  size_t count = shaken ? COUNT : 1;
  for (size_t i = 0; i < count; i++)
    symbols[i] = (LLVMOrcCSymbolMapPair){
        LLVMOrcLLJITMangleAndIntern(orc, ours[i].name),
        {ours[i].address, {LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable, 0}}};
  return !orc_failed(LLVMOrcJITDylibDefine(library, LLVMOrcAbsoluteSymbols(symbols, count)), err);
}

static struct jit_kernel *load(const struct jit_code *code, bool shaken, ms_error *err) {
  assert(code);
  if (*code->target.kind && !jit_target_runs_here(&code->target, err))
    return NULL; /* what is read from bytes has none */
  jit_start_llvm();
  (void)omp_get_max_threads(); /* generated code calls libgomp: the linker must not leave it out */
  struct jit_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) abort();
  kernel->workspace = code->workspace;
  LLVMOrcExecutorAddress address;
  if (orc_failed(LLVMOrcCreateLLJIT(&kernel->orc, NULL), err)) {
    free(kernel);
    return NULL;
  }
  LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(kernel->orc);
  size_t bytes;
  const char *object = jit_code_object(code, &bytes);
  LLVMMemoryBufferRef copy = LLVMCreateMemoryBufferWithMemoryRangeCopy(object, bytes, "kernel");
  if (add_threads(kernel->orc, library, shaken, err) && add_libraries(kernel->orc, library, err) &&
      !orc_failed(LLVMOrcLLJITAddObjectFile(kernel->orc, library, copy), err) &&
      !orc_failed(LLVMOrcLLJITLookup(kernel->orc, &address, code->name), err)) {
    kernel->entry = (jit_entry)(uintptr_t)address;
    return kernel;
  }
  jit_kernel_free(kernel);
  return NULL;
}

struct jit_kernel *jit_load(const struct jit_code *code, ms_error *err) {
  return load(code, false, err);
}
struct jit_kernel *jit_load_shaken(const struct jit_code *code, ms_error *err) {
  return load(code, true, err);
}

jit_entry jit_kernel_entry(const struct jit_kernel *kernel) { return kernel->entry; }
size_t jit_kernel_workspace(const struct jit_kernel *kernel) { return kernel->workspace.bytes; }

void jit_kernel_free(struct jit_kernel *kernel) {
  if (!kernel) return;
  LLVMConsumeError(LLVMOrcDisposeLLJIT(kernel->orc));
  free(kernel);
}

/* LLVM itself, made ready, and its machines for targets. */
#include "machine.h"
#include "x86.h"

#include <pthread.h>

static void start_llvm(void) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
#if LLVM_HAS_AARCH64_TARGET
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
  LLVMInitializeAArch64AsmParser();
  LLVMInitializeAArch64Disassembler();
#endif
}

/* Unrolled bodies are basic blocks of thousands of loads and stores. LLVM's schedulers compare each pair of them, up to
 * a thousand at a time; with these limits such a body compiles in a fifth of the time, to code of the same size. What
 * loop strength reduction finds stands in the addresses already (emit_step.c): it took a third of the time. */
static void restrain_llvm(void) {
  static const char *const options[] = {"msched", "-dag-maps-huge-region=200", "-dag-maps-reduction-size=100",
                                        "-disable-lsr"};
  LLVMParseCommandLineOptions(sizeof options / sizeof *options, options, NULL);
}

static void start(void) {
  start_llvm();
  restrain_llvm();
}

bool jit_start_llvm(ms_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!llvm_open(err)) return false;
  pthread_once(&once, start);
  return true;
}

void jit_on_llvm_fault(void (*fault)(const char *reason)) {
  assert(fault);
  if (llvm_api.InstallFatalErrorHandler) LLVMInstallFatalErrorHandler(fault);
}

bool jit_target_is_x86(const struct jit_target *t) { return x86_is_triple(t->triple); }

const char *jit_base_cpu(const struct jit_target *t) { return jit_target_is_x86(t) ? "x86-64" : t->cpu; }

LLVMTargetMachineRef jit_target_machine(const struct jit_target *t, ms_error *err) {
  if (!jit_start_llvm(err)) return NULL;
  LLVMTargetRef target;
  char *message = NULL;
  if (LLVMGetTargetFromTriple(t->triple, &target, &message)) {
    ms_fail(err, MS_UNKNOWN_TARGET, "target: %s", message);
    LLVMDisposeMessage(message);
    return NULL;
  }
  return LLVMCreateTargetMachine(target, t->triple, jit_base_cpu(t), t->features, LLVMCodeGenLevelDefault, LLVMRelocPIC,
                                 LLVMCodeModelDefault);
}

/* LLVM's passes over a kernel, and what each pass of a compilation takes. */
#include "pipeline.h"
#include "clamps.h"
#include "vm/vm.h"

#include <assert.h>
#include <stdio.h>

/* ---- What passes take ---- */

void jit_clock_start(struct jit_clock *clock) { *clock = (struct jit_clock){.last = vm_thread_seconds()}; }

void jit_clock_pass(struct jit_clock *clock, const char *name) {
  assert(name);
  if (!clock) return;
  double now = vm_thread_seconds();
  assert(clock->count < JIT_MOST_PASSES);
  clock->passes[clock->count++] = (struct jit_pass){name, now - clock->last};
  clock->last = now;
}

/* ---- LLVM's passes ---- */

/* Most loops of a function for which the passes run that reckon with scalar evolution: their time grows with the square
 * of these, or faster, while the lowering has unrolled what pays most. */
enum { MOST_LOOPS = 48 };

/* What kernels need of LLVM, in order. No passes between functions, since calls are few and large; no vectorizer of
 * straight-line code: that of 19.1.7 makes wrong code of unrolled conditional sums for AVX-512. Addresses leave loops
 * before they are simplified: under a condition as i == 0, 24 - i * 11 becomes `or disjoint`, which is an address for
 * that value alone, but which the next licm of 19.1.7 takes for all of a loop, to keep in a register what it names. */
static const struct {
  const char *name, *passes;
  const char *combined; /* the passes behind instcombine, which comes after those above; NULL: no instcombine */
  bool dear;            /* only where loops are few */
} stages[] = {
    {"scalars", "function(sroa,early-cse<memssa>,simplifycfg,loop-mssa(licm))", "loop-mssa(licm)", false},
    {"write out", "function(loop(loop-unroll-full),sroa,early-cse<memssa>)", "", true},
    {"memory", "function(gvn,jump-threading,correlated-propagation,simplifycfg,dse)", NULL, false},
    {"vectors", "function(loop-vectorize)", "simplifycfg,loop-mssa(licm)", false},
    {"repeat", "function(loop-unroll<O2>)", "loop-mssa(licm)", true},
};

/* With what llvm_compile counts beside them: emit, verify, generate. */
static_assert(sizeof stages / sizeof *stages + 3 <= JIT_MOST_LLVM_PASSES, "a clock has room for all passes");

static bool run_passes(LLVMModuleRef module, LLVMTargetMachineRef machine, const char *passes, ms_error *err) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef error = LLVMRunPasses(module, passes, machine, options);
  LLVMDisposePassBuilderOptions(options);
  if (!error) return true;
  char *message = LLVMGetErrorMessage(error);
  ms_fail(err, MS_NOT_COMPILABLE, "LLVM: %s", message);
  LLVMDisposeErrorMessage(message);
  return false;
}

static bool run_stage(LLVMModuleRef module, LLVMTargetMachineRef machine, size_t stage, ms_error *err) {
  char combine[128];
  const char *combined = stages[stage].combined;
  if (!run_passes(module, machine, stages[stage].passes, err)) return false;
  if (!combined) return true;
  int length = snprintf(combine, sizeof combine, "function(instcombine<no-verify-fixpoint;max-iterations=1>%s%s)",
                        *combined ? "," : "", combined);
  assert(length > 0 && (size_t)length < sizeof combine);
  bool hidden = jit_hide_clamps(module);
  if (!run_passes(module, machine, combine, err)) return false;
  if (hidden) jit_show_clamps(module);
  return true;
}

bool jit_optimize(LLVMModuleRef module, LLVMTargetMachineRef machine, uint32_t loops, struct jit_clock *clock,
                  ms_error *err) {
  assert(module && machine);
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    if (stages[i].dear && loops > MOST_LOOPS) continue;
    if (!run_stage(module, machine, i, err)) return false;
    jit_clock_pass(clock, stages[i].name);
  }
  return true;
}

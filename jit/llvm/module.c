/* From a lowered function to LLVM's module and an object file in memory. */
#include "jit/backend.h"
#include "jit/llvm/emit/emit.h"
#include "range.h"
#include "short_floats.h"

#include <stdlib.h>
#include <string.h>

static void set_attribute(LLVMValueRef f, const char *name, const char *value) {
  assert(f && name && value);
  LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(f));
  LLVMAttributeRef attribute =
      LLVMCreateStringAttribute(context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, attribute);
}

/* Vectors stay as wide as written, up to the target's: on some CPUs LLVM prefers 256 bits of 512 unless asked. What the
 * functions are for stands with them, so that the module's text makes the same code. */
static void set_attributes(LLVMValueRef f, const struct jit_target *target) {
  LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(f));
  char bits[16];
  snprintf(bits, sizeof bits, "%d", target->vector_bits);
  set_attribute(f, "prefer-vector-width", bits);
  if (target->vector_bits < 512) set_attribute(f, "min-legal-vector-width", bits);
  set_attribute(f, "target-cpu", jit_base_cpu(target));
  set_attribute(f, "target-features", target->features);
  if (jit_target_is_x86(target)) set_attribute(f, "tune-cpu", !strcmp(target->cpu, "x86-64") ? "generic" : target->cpu);
  LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                          LLVMCreateEnumAttribute(context, LLVMGetEnumAttributeKindForName("nounwind", 8), 0));
}

static void set_attributes_of_all(LLVMModuleRef module, const struct jit_target *target) {
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    if (!LLVMIsDeclaration(f)) set_attributes(f, target);
}

/* Those of outlined code that is shared once. */
static uint32_t count_loops(const struct tir *lowered, tir_func f) {
  tir_stmt top = lowered->funcs.at[f].body;
  uint32_t count = 0;
  bool *met = calloc(lowered->stmts.count + 1u, sizeof *met); /* by number, of which there are no more */
  if (!met) abort();
  for (tir_stmt s = top, next; s; s = next) {
    struct tir_captures captures;
    uint32_t number = tir_captures_of(lowered, s, &captures) ? captures.number : 0;
    bool again = number && number < lowered->stmts.count && met[number];
    next = again ? tir_after(lowered, s, top) : tir_next(lowered, s, top);
    if (number && number < lowered->stmts.count) met[number] = true;
    count += tir_is(lowered, s, TIR_LOOP);
  }
  free(met);
  return count;
}

LLVMModuleRef jit_module(LLVMContextRef context, const struct tir *lowered, tir_func f, const char *name,
                         const struct jit_beside *beside, const struct jit_beside *plain, LLVMTargetMachineRef machine,
                         const struct jit_target *target, const struct jit_options *options, struct jit_clock *clock,
                         ms_error *err) {
  assert(tir_is_func(lowered, f) && machine);
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("msched", context);
  LLVMSetTarget(module, target->triple);
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  LLVMSetModuleDataLayout(module, layout);
  LLVMDisposeTargetData(layout);
  bool ok = jit_emit(module, lowered, f, name, plain ? plain->name : NULL, target, options, err) &&
            (!beside || jit_emit(module, beside->lowered, beside->f, beside->name, NULL, target, options, err)) &&
            (!plain || jit_emit(module, plain->lowered, plain->f, plain->name, NULL, target, options, err));
  if (ok && plain) LLVMSetLinkage(LLVMGetNamedFunction(module, plain->name), LLVMInternalLinkage);
  jit_clock_pass(clock, "emit");
  char *message = NULL;
  if (ok && LLVMVerifyModule(module, LLVMReturnStatusAction, &message)) {
    ok = ms_fail(err, MS_NOT_COMPILABLE, "LLVM's verifier: %s", message);
  }
  LLVMDisposeMessage(message);
  jit_clock_pass(clock, "verify");
  if (ok) set_attributes_of_all(module, target);
  if (ok && options && options->dump_after && !strcmp(options->dump_after, "emit")) {
    char *text = LLVMPrintModuleToString(module);
    fputs(text, options->dump);
    LLVMDisposeMessage(text);
  }
  uint32_t loops = count_loops(lowered, f) + (plain ? count_loops(plain->lowered, plain->f) : 0);
  ok = ok && jit_optimize(module, machine, loops, clock, err);
  if (ok) {
    jit_widen_short_floats(module, target, !(options && options->no_fast_math));
    jit_use_range(module, target);
  }
  if (ok) return module;
  LLVMDisposeModule(module);
  return NULL;
}

static void dump_module(LLVMModuleRef module, LLVMTargetMachineRef machine, const struct jit_options *options) {
  if (!options || !options->dump_after) return;
  if (!strcmp(options->dump_after, "llvm")) {
    char *text = LLVMPrintModuleToString(module);
    fputs(text, options->dump);
    LLVMDisposeMessage(text);
  } else if (!strcmp(options->dump_after, "asm")) {
    LLVMMemoryBufferRef text = NULL;
    char *message = NULL;
    LLVMModuleRef copy = LLVMCloneModule(module);
    if (!LLVMTargetMachineEmitToMemoryBuffer(machine, copy, LLVMAssemblyFile, &message, &text)) {
      fwrite(LLVMGetBufferStart(text), 1, LLVMGetBufferSize(text), options->dump);
      LLVMDisposeMemoryBuffer(text);
    }
    LLVMDisposeMessage(message);
    LLVMDisposeModule(copy);
  }
}

bool llvm_compile(const struct tir *lowered, tir_func f, const struct jit_beside *beside,
                  const struct jit_options *options, struct jit_clock *clock, struct jit_code *code, ms_error *err) {
  const struct jit_target *target = &code->target;
  LLVMTargetMachineRef machine = jit_target_machine(target, err);
  if (!machine) return false;
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module =
      jit_module(context, lowered, f, code->name, beside, NULL, machine, target, options, clock, err);
  if (module) {
    dump_module(module, machine, options);
    char *message = NULL;
    LLVMMemoryBufferRef object = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &object))
      ms_fail(err, MS_NOT_COMPILABLE, "LLVM: %s", message);
    else
      jit_code_set_object(code, LLVMGetBufferStart(object), LLVMGetBufferSize(object));
    if (object) LLVMDisposeMemoryBuffer(object);
    jit_clock_pass(clock, "generate");
    LLVMDisposeMessage(message);
    LLVMDisposeModule(module);
  }
  LLVMContextDispose(context);
  LLVMDisposeTargetMachine(machine);
  return code->object != NULL;
}

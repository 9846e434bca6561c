/* The table of x86's features and CPUs is LLVM's: for every CPU and every feature, code made by the table's word is the
 * code that LLVM makes of the name. */
#include "jit/llvm/x86.h"

#include "unit/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

enum { ALL_NAMES = 2000 };

static const char *const cpus[] = {
#define CPU(id, family, name, base, more) name,
#include "jit/llvm/x86.def"
};
static const char *const features[] = {
#define FEATURE(id, name, where, bit, implied) name,
#include "jit/llvm/x86.def"
};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static char *source; /* tests/support/data/x86.ll: what features have instructions of their own for */

static void set_attribute(LLVMValueRef f, const char *name, const char *value) {
  LLVMContextRef context = LLVMGetModuleContext(LLVMGetGlobalParent(f));
  LLVMAddAttributeAtIndex(
      f, LLVMAttributeFunctionIndex,
      LLVMCreateStringAttribute(context, name, (unsigned)strlen(name), value, (unsigned)strlen(value)));
}

static void set_attributes(LLVMModuleRef module, const char *tune, const char *bits) {
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f)) {
    if (LLVMIsDeclaration(f)) continue;
    set_attribute(f, "prefer-vector-width", bits);
    if (strcmp(bits, "512") != 0) set_attribute(f, "min-legal-vector-width", bits);
    if (tune) set_attribute(f, "tune-cpu", tune);
  }
}

/* The caller frees. */
static char *assembly_of(const char *cpu, const char *list, const char *tune, const char *bits) {
  LLVMContextRef context = LLVMContextCreate();
  LLVMMemoryBufferRef text = LLVMCreateMemoryBufferWithMemoryRangeCopy(source, strlen(source), "x86.ll"), out = NULL;
  LLVMModuleRef module = NULL;
  LLVMTargetRef target = NULL;
  char *message = NULL;
  if (LLVMParseIRInContext(context, text, &module, &message)) fail_msg("%s", message);
  set_attributes(module, tune, bits);
  assert_false(LLVMGetTargetFromTriple("x86_64-pc-linux-gnu", &target, &message));
  LLVMTargetMachineRef machine = LLVMCreateTargetMachine(target, "x86_64-pc-linux-gnu", cpu, list, LLVMCodeGenLevelLess,
                                                         LLVMRelocPIC, LLVMCodeModelDefault);
  if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMAssemblyFile, &message, &out)) fail_msg("%s", message);
  char *result = strndup(LLVMGetBufferStart(out), LLVMGetBufferSize(out));
  LLVMDisposeMemoryBuffer(out);
  LLVMDisposeTargetMachine(machine);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
  return result;
}

static char *assembly(const char *cpu, const char *list, const char *tune) {
  return assembly_of(cpu, list, tune, "512");
}

/* Fails with the first line that differs. */
static void compare(const char *what, char *theirs, char *ours) {
  size_t start = 0;
  for (size_t i = 0; theirs[i] || ours[i]; i++) {
    if (theirs[i] != ours[i])
      fail_msg("%s: LLVM's name makes\n%.200s\nthe table\n%.200s", what, theirs + start, ours + start);
    if (theirs[i] == '\n') start = i + 1;
  }
  free(theirs);
  free(ours);
}

static void cpus_are_llvms(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(cpus); i++) {
    struct x86_cpu cpu;
    char list[ALL_NAMES];
    assert_true(x86_find_cpu(cpus[i], &cpu));
    x86_write_all(cpu.has, list, sizeof list);
    compare(cpus[i], assembly(cpus[i], "", cpus[i]), assembly("x86-64", list, cpus[i]));
  }
}

/* Named by intrinsics only, or by instructions for one processor: no code changes that is written for all. */
static const char by_intrinsics[] = " sahf avx512ifma avxvnniint8 avxvnniint16 avxifma amx-tile amx-int8 amx-bf16 "
                                    "amx-fp16 amx-complex cmpccxadd raoint ";

/* + gives what it implies, - takes what implies it; and the source distinguishes features, else equal code would show
 * nothing. */
static void features_imply_what_llvms_do(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(features); i++) {
    char one[64], word[66], list[ALL_NAMES];
    x86_set set = 0;
    bool narrow = false;
    snprintf(one, sizeof one, "+%s", features[i]);
    assert_true(x86_change(&set, &narrow, one, NULL));
    x86_write_all(set, list, sizeof list);
    char *with = assembly("x86-64", list, NULL);
    x86_write_all(set & ~(UINT64_C(1) << i), list, sizeof list);
    char *without = assembly("x86-64", list, NULL);
    snprintf(word, sizeof word, " %s ", features[i]);
    if (!strcmp(with, without) && !strstr(by_intrinsics, word)) fail_msg("no code changes by %s", features[i]);
    free(without);
    compare(one, assembly("x86-64", one, NULL), with);
    struct x86_cpu most;
    assert_true(x86_find_cpu("graniterapids-d", &most));
    if (!x86_has(most.has, (enum x86_feature)i)) continue;
    *one = '-';
    assert_true(x86_change(&most.has, &narrow, one, NULL));
    x86_write_all(most.has, list, sizeof list);
    compare(one, assembly("graniterapids-d", one, most.name), assembly("x86-64", list, most.name));
  }
}

/* What LLVM cannot compile ends the process: whatever set a text may ask for, it can. */
static void no_set_ends_llvm(void **state) {
  (void)state;
  uint64_t random = 1;
  for (int i = 0; i < 64; i++) {
    x86_set set = 0;
    bool narrow = false;
    char list[ALL_NAMES];
    for (size_t f = 0; f < COUNT(features); f++) {
      char one[64];
      random = random * 6364136223846793005u + 1442695040888963407u;
      snprintf(one, sizeof one, "%c%s", random >> 62 & 1 ? '+' : '-', features[f]);
      if (random >> 33 & 3) assert_true(x86_change(&set, &narrow, one, NULL));
    }
    x86_write_all(set, list, sizeof list);
    free(assembly_of("x86-64", list, "generic", i % 4 ? "512" : "256"));
  }
}

static int load(void **state) {
  (void)state;
  size_t size;
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  source = read_file(TEST_ROOT "/support/data/x86.ll", &size);
  return source == NULL;
}

static int unload(void **state) {
  (void)state;
  free(source);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cpus_are_llvms),
      cmocka_unit_test(features_imply_what_llvms_do),
      cmocka_unit_test(no_set_ends_llvm),
  };
  return cmocka_run_group_tests(tests, load, unload);
}

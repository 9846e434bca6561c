/* What code may use on a machine, and whose scheduling model: from what its CPU and the operating system say. */
#include "jit/host/host.h"
#include "jit/llvm/api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* LLVM's lists of what machines have, as far as it is of use here, and some of what is not. */
#define V3                                                                                                             \
  "+64bit,+cmov,+cx8,+fxsr,+mmx,+sse,+sse2,+sse3,+ssse3,+sse4.1,+sse4.2,+crc32,+popcnt,+cx16,+sahf,+lzcnt,+movbe,+"    \
  "bmi,+bmi2,+avx,+f16c,+fma,+avx2,+xsave,-tbm,-xop,-fma4"
#define SKYLAKE "+adx,+prfchw,+rdseed," V3
#define SKX     SKYLAKE ",+avx512f,+avx512cd,+avx512dq,+avx512bw,+avx512vl,+evex512"
#define ICELAKE                                                                                                        \
  SKX ",+gfni,+vaes,+vpclmulqdq,+avx512ifma,+avx512vbmi,+avx512vbmi2,+avx512vnni,+avx512bitalg,+avx512vpopcntdq"
#define SAPPHIRE ICELAKE ",+avxvnni,+avx512bf16,+avx512fp16,+amx-tile,+amx-int8,+amx-bf16,-avxifma,-amx-fp16"
#define ZEN3     SKYLAKE ",+sse4a,+clzero,+mwaitx,+vaes"
#define ZEN4     ICELAKE ",+sse4a,+clzero,+mwaitx,+avx512bf16"

enum { NO_AVX = 0x3, AVX = 0x7, AVX512 = 0xe7, TILES = 0x600e7 };

/* What CPUID reports of a machine with such a list. */
static x86_set stated(const char *list) {
  static const struct {
    const char *name;
    enum x86_word where;
    int bit;
  } features[] = {
#define FEATURE(id, name, where, bit, implied) {name, X86_##where, bit},
#include "jit/llvm/x86.def"
  };
  uint32_t words[X86_WORDS] = {0};
  char copy[2000], *rest = copy;
  assert_true(strlen(list) < sizeof copy);
  strcpy(copy, list);
  for (char *word; (word = strsep(&rest, ",")) != NULL;)
    for (size_t i = 0; i < sizeof features / sizeof *features; i++)
      if (*word == '+' && !strcmp(word + 1, features[i].name)) words[features[i].where] |= 1u << features[i].bit;
  return x86_reported(words);
}

static const struct {
  const char *what, *name, *features;
  uint64_t xcr0;
  bool tiles;
  const char *cpu, *missing, *beyond;
} machines[] = {
    {"as its name says", "skylake-avx512", SKX, AVX512, false, "skylake-avx512", "", ""},
    {"as an other name of it says", "emeraldrapids", SAPPHIRE, TILES, true, "emeraldrapids", "", ""},
    {"more than the name", "rocketlake", SAPPHIRE, TILES, true, "sapphirerapids", "",
     "avxvnni avx512bf16 avx512fp16 amx-tile amx-int8 amx-bf16"},
    {"AMX that the kernel keeps back", "rocketlake", SAPPHIRE, TILES, false, "rocketlake", "",
     "avxvnni avx512bf16 avx512fp16"},
    {"AMX whose state is not kept", "sapphirerapids", SAPPHIRE, AVX512, true, "rocketlake",
     "amx-tile amx-int8 amx-bf16", ""},
    {"AVX-512 whose state is not kept", "skylake-avx512", SKX, AVX, false, "skylake",
     "avx512f avx512cd avx512dq avx512bw avx512vl", ""},
    {"AVX-512 masked, the state kept", "skylake-avx512", SKYLAKE, AVX512, false, "skylake",
     "avx512f avx512cd avx512dq avx512bw avx512vl", ""},
    {"no AVX state", "haswell", V3, NO_AVX, false, "westmere", "avx f16c fma avx2", ""},
    {"AMD without its AVX-512", "znver4", ZEN3, AVX, false, "znver3",
     "gfni avx512f avx512cd avx512dq avx512bw avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg "
     "avx512vpopcntdq avx512bf16",
     ""},
    {"AMD, whole", "znver4", ZEN4, AVX512, false, "znver4", "", ""},
    {"AMD, newer than its name", "znver4", ZEN4 ",+avxvnni", AVX512, false, "znver5", "", "avxvnni"},
    {"an older CPU's name, nothing new", "znver2", ZEN3, AVX, false, "znver2", "", ""},
    {"a small core", "gracemont", SKYLAKE ",+gfni,+avxvnni", AVX, false, "gracemont", "", ""},
    {"an unknown name, Intel's features", "marslake", SKYLAKE, AVX, false, "skylake", "", ""},
    {"an unknown name, AMD's features", "znver99", ZEN4 ",+avxvnni,+avx10.2-512", AVX512, false, "znver5", "", ""},
    {"a name that says nothing", "generic", "+sse2,+sse3", NO_AVX, false, "generic", "", "sse3"},
    {"nothing", "generic", "", 0, false, "generic", "", ""},
};

static void features_are_the_machines(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
    struct host h;
    char missing[640], beyond[640];
    host_of(machines[i].name, stated(machines[i].features), machines[i].xcr0, machines[i].tiles, &h);
    x86_write_names(h.missing, missing, sizeof missing);
    x86_write_names(h.beyond, beyond, sizeof beyond);
    if (strcmp(h.cpu.name, machines[i].cpu) != 0 || strcmp(missing, machines[i].missing) != 0 ||
        strcmp(beyond, machines[i].beyond) != 0)
      fail_msg("%s: scheduled as %s, missing: %s, beyond: %s", machines[i].what, h.cpu.name, missing, beyond);
    assert_false(h.cpu.has & ~h.has);
  }
}

/* A list may name a feature and lack what it needs: nothing is used whose ground is not there. */
static void what_has_no_ground_is_not_used(void **state) {
  (void)state;
  struct host h;
  host_of("sapphirerapids", stated("+avx512fp16,+avx512bw,+avx512f,+f16c,+fma,+avx2,+avx,+sse4.2"), AVX512, false, &h);
  assert_int_equal(h.has, 0); /* sse4.1 is not there */
  host_of("sapphirerapids", stated(V3 ",+avx512f,+avx512bw,+avx512bf16,+avx512fp16"), AVX512, false, &h);
  assert_true(x86_has(h.has, X86_AVX512BF16));
  assert_false(x86_has(h.has, X86_AVX512FP16)); /* avx512vl is not there */
  host_of("sapphirerapids", stated(V3 ",+amx-int8"), TILES, true, &h);
  assert_false(x86_has(h.has, X86_AMX_INT8));
}

/* Of every CPU that is known: with all that it has, it is scheduled as itself. */
static void cpus_are_scheduled_as_themselves(void **state) {
  (void)state;
  static const char *const names[] = {"nehalem",        "sandybridge", "haswell",   "skylake",        "cascadelake",
                                      "icelake-server", "rocketlake",  "alderlake", "sapphirerapids", "graniterapids",
                                      "tremont",        "btver2",      "bdver4",    "znver1",         "znver5"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    struct x86_cpu cpu, found;
    assert_true(x86_find_cpu(names[i], &cpu));
    x86_closest_cpu(cpu.has, names[i], &found);
    assert_string_equal(found.name, names[i]);
  }
}

/* The numbers that makers give their CPUs; what is not known here is NULL, and LLVM is asked. */
static void names_are_by_number(void **state) {
  (void)state;
  static const struct {
    enum x86_family maker;
    int family, model;
    const char *features, *name;
  } numbers[] = {
      {X86_INTEL, 6, 0x55, SKX, "skylake-avx512"},
      {X86_INTEL, 6, 0x55, SKX ",+avx512vnni", "cascadelake"},
      {X86_INTEL, 6, 0x55, SKX ",+avx512vnni,+avx512bf16", "cooperlake"},
      {X86_INTEL, 6, 0x9a, V3, "alderlake"},
      {X86_INTEL, 6, 0xcf, SAPPHIRE, "sapphirerapids"},
      {X86_INTEL, 6, 0xff, SAPPHIRE, NULL},
      {X86_INTEL, 15, 0x55, SKX, NULL},
      {X86_AMD, 6, 0x55, SKX, NULL},
      {X86_AMD, 23, 0x01, ZEN3, "znver1"},
      {X86_AMD, 23, 0x71, ZEN3, "znver2"},
      {X86_AMD, 25, 0x01, ZEN3, "znver3"},
      {X86_AMD, 25, 0x61, ZEN4, "znver4"},
      {X86_AMD, 26, 0x44, ZEN4, "znver5"},
      {X86_AMD, 27, 0x00, ZEN4, NULL},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    const char *name = x86_name_of(numbers[i].maker, numbers[i].family, numbers[i].model, stated(numbers[i].features));
    struct x86_cpu cpu;
    if (!numbers[i].name != !name || (name && strcmp(name, numbers[i].name) != 0))
      fail_msg("family %d, model %#x: %s", numbers[i].family, (unsigned)numbers[i].model, name ? name : "not known");
    if (name) assert_true(x86_find_cpu(name, &cpu));
  }
}

/* Without LLVM, what it would say. */
static void this_machine_is_as_llvm_says(void **state) {
  (void)state;
  const struct host *h = host_this();
  ms_error err = {.message = ""};
  if (!llvm_open(&err)) fail_msg("%s", err.message);
  char *cpu = LLVMGetHostCPUName(), *features = LLVMGetHostCPUFeatures();
  if (h) {
    assert_string_equal(h->llvm_cpu, cpu);
    assert_int_equal(h->reported, stated(features));
  }
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(features_are_the_machines),
      cmocka_unit_test(what_has_no_ground_is_not_used),
      cmocka_unit_test(names_are_by_number),
      cmocka_unit_test(this_machine_is_as_llvm_says),
      cmocka_unit_test(cpus_are_scheduled_as_themselves),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

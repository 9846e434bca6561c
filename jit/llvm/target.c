/* LLVM's targets: from a text to what code is made for, and back. */
#include "jit/host/host.h"
#include "machine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- This machine ---- */

static int cache_size(int name, int otherwise) {
  long bytes = sysconf(name);
  return bytes > 0 ? (int)bytes : otherwise;
}

/* Bytes of the last level that a core reaches, as the kernel lists it: sysconf adds up those of all groups of cores. 0:
 * it does not say. */
static int shared_cache_size(void) {
  FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "r");
  int size = 0;
  char unit = 0;
  if (!file) return 0;
  if (fscanf(file, "%d%c", &size, &unit) != 2 || size < 1 || size > 1 << 20 || unit != 'K') size = 0;
  fclose(file);
  return size << 10;
}

static void set_caches(struct jit_target *t) {
  t->l1_bytes = cache_size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  t->l2_bytes = cache_size(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  int all = cache_size(_SC_LEVEL3_CACHE_SIZE, 8 << 20), own = shared_cache_size();
  t->l3_bytes = own > 0 && own < all ? own : all;
}

static const char own_triple[] = MSCHED_LLVM_TRIPLE; /* LLVM's default, normalized */

static bool is_own(const char *triple) { return !strcmp(triple, own_triple); }

/* As LLVM reads it: "aarch64-linux-gnu" names no system before it is normalized. */
static bool normalize(const char *text, char out[64], ms_error *err) {
  if (!is_own(text) && !jit_start_llvm(err)) return false;
  char *triple = is_own(text) ? NULL : LLVMNormalizeTargetTriple(text);
  snprintf(out, 64, "%s", triple ? triple : text);
  if (triple) LLVMDisposeMessage(triple);
  return true;
}

static bool is_arm(const char *triple) { return !strncmp(triple, "aarch64-", 8); }

/* Whether this machine's CPU is of the triple's kind. */
static bool is_this_machine(const char *triple) {
#if defined __x86_64__
  return x86_is_triple(triple);
#elif defined __aarch64__
  return is_arm(triple);
#else
  return false;
#endif
}

/* ---- What a text asks for ---- */

/* Options in any order; of those given twice the last counts, lists of features are joined. Words are borrowed from the
 * text. */
struct request {
  const char *triple, *cpu; /* NULL: this machine's */
  char features[JIT_TARGET_TEXT];
  int cores, bits; /* 0: not said */
};

static bool add_features(struct request *r, const char *list, ms_error *err) {
  size_t length = strlen(r->features), room = sizeof r->features - length;
  int written = snprintf(r->features + length, room, "%s%s", length ? "," : "", list);
  return (size_t)written < room || ms_fail(err, MS_UNKNOWN_TARGET, "target: the list of features is too long");
}

static bool parse_number(const char *option, const char *value, int most, int *out, ms_error *err) {
  char *end;
  long n = strtol(value, &end, 10);
  *out = (int)n;
  return (*value && !*end && n >= 1 && n <= most) ||
         ms_fail(err, MS_UNKNOWN_TARGET, "target: -%s=%s: a number from 1 to %d is expected", option, value, most);
}

static bool parse_option(struct request *r, char *word, ms_error *err) {
  word += strspn(word, "-");
  char *value = strchr(word, '=');
  if (value) *value++ = 0;
  if (value && !strcmp(word, "mcpu")) return r->cpu = value, true;
  if (value && !strcmp(word, "mattr")) return add_features(r, value, err);
  if (value && !strcmp(word, "mtriple")) return r->triple = value, true;
  if (value && !strcmp(word, "num-cores")) return parse_number(word, value, 4096, &r->cores, err);
  if (value && !strcmp(word, "vector-bits")) return parse_number(word, value, 512, &r->bits, err);
  return ms_fail(err, MS_UNKNOWN_TARGET,
                 "target: unknown option `%s`; known are -mcpu= -mattr= -mtriple= -num-cores= -vector-bits=", word);
}

/* A cpu or level, and features on top of it: x86-64-v4,+avx512vnni. */
static bool parse_cpu(struct request *r, char *word, ms_error *err) {
  char *features = strchr(word, ',');
  if (features) *features++ = 0;
  r->cpu = word;
  return !features || add_features(r, features, err);
}

static bool parse_words(struct request *r, char *words, ms_error *err) {
  for (char *word; (word = strsep(&words, " \t\n")) != NULL;) {
    if (!*word || !strcmp(word, "llvm")) continue;
    if (!(*word == '-' ? parse_option(r, word, err) : parse_cpu(r, word, err))) return false;
  }
  if (r->cpu && !strcmp(r->cpu, "native")) r->cpu = NULL;
  return true;
}

/* ---- x86 ---- */

static bool unknown_cpu(const char *cpu, ms_error *err) {
  return ms_fail(
      err, MS_UNKNOWN_TARGET,
      "target: `%s` is not known; say native, x86-64-v2, x86-64-v3, x86-64-v4 or llvm -mcpu=NAME, or of a GPU cuda "
      "-arch=sm_70 up to sm_90a; `msched help targets` says more",
      cpu);
}

static int natural_bits(x86_set set) { return x86_has(set, X86_AVX512F) ? 512 : x86_has(set, X86_AVX) ? 256 : 128; }

/* Registers of 512 bits can be left unused, if the others have all instructions (AVX512VL); of narrower ones, code that
 * has vectors of 256 bits would use them. */
static bool set_vectors(struct jit_target *t, int asked, ms_error *err) {
  int natural = natural_bits(t->x86);
  bool narrows = x86_has(t->x86, X86_AVX512VL);
  if (asked && asked != natural && !(narrows && asked == 256))
    return ms_fail(err, MS_UNKNOWN_TARGET, "target: -vector-bits=%d: this target's vectors have %s", asked,
                   narrows          ? "256 or 512 bits"
                   : natural == 512 ? "512 bits; for 256 add -mattr=+avx512vl or -mattr=-avx512f"
                   : natural == 256 ? "256 bits; for 128 add -mattr=-avx"
                                    : "128 bits");
  t->vector_bits = asked ? asked : natural;
  t->vector_registers = x86_has(t->x86, X86_AVX512VL) || t->vector_bits == 512 ? 32 : 16;
  return true;
}

/* Products of pairs of 16 bits, of which dot products of bytes are made, in vectors of every width up to the
 * target's. */
static bool has_pairs(const struct jit_target *t) {
  if (t->vector_bits == 512) return x86_has(t->x86, X86_AVX512BW) && x86_has(t->x86, X86_AVX512VL);
  return t->vector_bits == 128 || x86_has(t->x86, X86_AVX2);
}

static bool has_narrow_vnni(const struct jit_target *t) {
  return t->vector_bits <= 256 && x86_has(t->x86, X86_AVXVNNI);
}

/* Dot products of bytes, in vectors of every width up to the target's. */
static bool has_vnni(const struct jit_target *t) {
  return (x86_has(t->x86, X86_AVX512VL) && x86_has(t->x86, X86_AVX512VNNI)) || has_narrow_vnni(t);
}

bool jit_dots_by_pairs(const struct jit_target *t) { return jit_target_is_x86(t) && !has_vnni(t) && has_pairs(t); }

/* Dot products in vectors of every width up to the target's. */
static unsigned dots_of(const struct jit_target *t) {
  bool any_sign = has_narrow_vnni(t) && x86_has(t->x86, X86_AVXVNNIINT8);
  bool bfloats = x86_has(t->x86, X86_AVX512VL) && x86_has(t->x86, X86_AVX512BF16);
  return (has_vnni(t) ? 1u << TIR_DOT_BYTES : 0) |
         (jit_dots_by_pairs(t) ? TIR_DOTS_OF_BYTES | 1u << TIR_DOT_PAIRS : 0) |
         (any_sign ? 1u << TIR_DOT_SIGNED | 1u << TIR_DOT_UNSIGNED : 0) | (bfloats ? 1u << TIR_DOT_BFLOATS : 0);
}

/* Of AMX's eight tiles two are a product's operands; of SME's four one is where rows become columns (emit_sme.c). */
enum { AMX_ACCUMULATORS = 6, SME_ACCUMULATORS = 3 };
static bool has_tiles(const struct jit_target *t) { return t->tile_bytes || t->tile_bfloats || t->tile_halves; }

static bool set_x86(struct jit_target *t, const struct request *r, ms_error *err) {
  struct x86_cpu cpu;
  bool narrow = false;
  if (r->cpu) {
    if (!x86_find_cpu(r->cpu, &cpu)) return unknown_cpu(r->cpu, err);
    t->x86 = cpu.has;
  } else {
    const struct host *h = host_this();
    assert(h);
    cpu = h->cpu, t->x86 = h->has;
  }
  if (!x86_change(&t->x86, &narrow, r->features, err)) return false;
  snprintf(t->cpu, sizeof t->cpu, "%s", cpu.name);
  x86_write_all(t->x86, t->features, sizeof t->features);
  t->avx512_vnni = x86_has(t->x86, X86_AVX512VNNI);
  t->tile_bytes = x86_has(t->x86, X86_AMX_INT8), t->tile_bfloats = x86_has(t->x86, X86_AMX_BF16);
  t->tile_halves = x86_has(t->x86, X86_AMX_FP16);
  if (has_tiles(t)) t->tile_accumulators = AMX_ACCUMULATORS;
  if (!set_vectors(t, r->bits || !narrow || natural_bits(t->x86) < 512 ? r->bits : 256, err)) return false;
  t->dots = dots_of(t);
  return true;
}

/* ---- ARM64 ---- */

/* LLVM takes a name that it does not know with a warning on stderr and makes code for the oldest: so names are asked
 * first. These are LLVM 19's. */
static const char arm_cpus[] =
    " a64fx ampere1 ampere1a ampere1b apple-a10 apple-a11 apple-a12 apple-a13 apple-a14 apple-a15 apple-a16 apple-a17 "
    "apple-a7 apple-m4 carmel cortex-a34 cortex-a35 cortex-a510 cortex-a520 cortex-a520ae cortex-a53 cortex-a55 "
    "cortex-a57 cortex-a65 cortex-a65ae cortex-a710 cortex-a715 cortex-a72 cortex-a720 cortex-a720ae cortex-a725 "
    "cortex-a73 cortex-a75 cortex-a76 cortex-a76ae cortex-a77 cortex-a78 cortex-a78ae cortex-a78c cortex-r82 "
    "cortex-r82ae cortex-x1 cortex-x1c cortex-x2 cortex-x3 cortex-x4 cortex-x925 exynos-m3 exynos-m4 exynos-m5 falkor "
    "generic kryo neoverse-512tvb neoverse-e1 neoverse-n1 neoverse-n2 neoverse-n3 neoverse-v1 neoverse-v2 neoverse-v3 "
    "neoverse-v3ae oryon-1 saphira thunderx thunderx2t99 thunderx3t110 thunderxt81 thunderxt83 thunderxt88 tsv110 ";

static bool is_arm_cpu(const char *name) {
  char word[66];
  return snprintf(word, sizeof word, " %s ", name) < (int)sizeof word && strstr(arm_cpus, word);
}

/* Features are LLVM's own list, as given. */
static bool check_arm_features(const char *list, ms_error *err) {
  for (; *list; list += strcspn(list, ","), list += *list == ',') {
    size_t length = strcspn(list, ",");
    if (length < 2 || !strchr("+-", *list))
      return ms_fail(err, MS_UNKNOWN_TARGET, "target: a feature is written +NAME or -NAME, not `%.*s`", (int)length,
                     list);
    if (!strncmp(list, "-neon", length) || !strncmp(list, "-fp-armv8", length))
      return ms_fail(err, MS_UNKNOWN_TARGET, "target: %.*s: there is no code for CPUs without it", (int)length, list);
  }
  return true;
}

/* Which of these instructions LLVM reads for the CPU and its features, bits; it has no other question for them. Source:
 * Arm, "A-profile A64 Instruction Set Architecture", USDOT, SDOT, UDOT and BFDOT (vector), SMOPA (4-way). */
enum { SMOPA = TIR_DOT_PAIRS };
static unsigned arm_reads(const struct jit_target *t) {
  static const uint8_t words[][4] = {[TIR_DOT_BYTES] = {0x20, 0x9c, 0x82, 0x4e},
                                     [TIR_DOT_SIGNED] = {0x20, 0x94, 0x82, 0x4e},
                                     [TIR_DOT_UNSIGNED] = {0x20, 0x94, 0x82, 0x6e},
                                     [TIR_DOT_BFLOATS] = {0x20, 0xfc, 0x42, 0x6e},
                                     [SMOPA] = {0x00, 0x00, 0x80, 0xa0}};
  unsigned all = 0;
#if LLVM_HAS_AARCH64_TARGET
  LLVMDisasmContextRef reader = LLVMCreateDisasmCPUFeatures(t->triple, t->cpu, t->features, NULL, 0, NULL, NULL);
  for (int i = 0; reader && i <= SMOPA; i++) {
    uint8_t word[4];
    char text[80];
    memcpy(word, words[i], sizeof word);
    if (LLVMDisasmInstruction(reader, word, sizeof word, 0, text, sizeof text)) all |= 1u << i;
  }
  if (reader) LLVMDisasmDispose(reader);
#endif
  return all;
}

static bool set_arm(struct jit_target *t, const struct request *r, ms_error *err) {
  if (!jit_start_llvm(err)) return false; /* which knows this machine's CPU */
  struct jit_host host;
  jit_describe_host(&host);
  const char *cpu = r->cpu ? r->cpu : is_this_machine(t->triple) ? host.cpu : "generic";
  char *own = is_this_machine(t->triple) && !r->cpu ? LLVMGetHostCPUFeatures() : LLVMCreateMessage("");
  int written = snprintf(t->features, sizeof t->features, "%s%s%s", own, *own && *r->features ? "," : "", r->features);
  LLVMDisposeMessage(own);
  if (!is_arm_cpu(cpu) && !(is_this_machine(t->triple) && !strcmp(cpu, host.llvm_cpu))) return unknown_cpu(cpu, err);
  if ((size_t)written >= sizeof t->features)
    return ms_fail(err, MS_UNKNOWN_TARGET, "target: the list of features is too long");
  if (r->bits && r->bits != 128)
    return ms_fail(err, MS_UNKNOWN_TARGET, "target: -vector-bits=%d: this target's vectors have 128 bits", r->bits);
  snprintf(t->cpu, sizeof t->cpu, "%s", cpu);
  t->vector_bits = 128, t->vector_registers = 32;
  if (!check_arm_features(t->features, err)) return false;
  unsigned reads = arm_reads(t);
  t->dots = reads & ((1u << TIR_DOT_PAIRS) - 1);
  t->tile_bytes = t->tile_bfloats = t->tile_halves = reads >> SMOPA & 1;
  if (has_tiles(t)) t->tile_accumulators = SME_ACCUMULATORS;
  return true;
}

/* ---- All of them ---- */

/* Whether LLVM has the target, whose pointers are as generated code takes them to be: they are this machine's. */
static bool check_machine(struct jit_target *t, ms_error *err) {
  if (is_own(t->triple)) return true;
  LLVMTargetMachineRef machine = jit_target_machine(t, err);
  if (!machine) return false;
  LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
  bool wide = LLVMPointerSize(layout) == 8;
  LLVMDisposeTargetData(layout);
  LLVMDisposeTargetMachine(machine);
  return wide || ms_fail(err, MS_UNKNOWN_TARGET, "target: -mtriple=%s: its addresses are not of 64 bits", t->triple);
}

static bool set_triple(struct jit_target *t, const struct request *r, ms_error *err) {
  if (!normalize(r->triple ? r->triple : own_triple, t->triple, err)) return false;
  if ((!x86_is_triple(t->triple) && !is_arm(t->triple)) || !strstr(t->triple, "linux"))
    return ms_fail(err, MS_UNKNOWN_TARGET,
                   "target: -mtriple=%s: code is made for x86_64 and aarch64 with Linux, as x86_64-pc-linux-gnu",
                   t->triple);
  return true;
}

static int usable_cores(void) {
  struct jit_cores cores;
  jit_count_cores(&cores);
  return cores.usable;
}

bool llvm_parse(char *words, struct jit_target *out, ms_error *err) {
  struct jit_target t = *out;
  struct request r = {0};
  if (!parse_words(&r, words, err) || !set_triple(&t, &r, err)) return false;
  if (!r.cpu && !is_this_machine(t.triple)) r.cpu = "generic";
  t.cores = r.cores ? r.cores : usable_cores();
  set_caches(&t);
  if (!(x86_is_triple(t.triple) ? set_x86 : set_arm)(&t, &r, err) || !check_machine(&t, err)) return false;
  *out = t;
  return true;
}

static void add_text(char *out, size_t size, const char *option, const char *value) {
  size_t length = strlen(out);
  if (*value) snprintf(out + length, size - length, " -%s=%s", option, value);
}

void llvm_text(const struct jit_target *t, char *out, size_t size) {
  char features[JIT_TARGET_TEXT], bits[16] = "";
  struct x86_cpu cpu;
  snprintf(features, sizeof features, "%s", t->features);
  if (x86_is_triple(t->triple) && x86_find_cpu(t->cpu, &cpu)) {
    x86_write_change(cpu.has, t->x86, features, sizeof features);
    if (t->vector_bits != natural_bits(t->x86)) snprintf(bits, sizeof bits, "%d", t->vector_bits);
  }
  snprintf(out, size, "%s -mcpu=%s -num-cores=%d", t->kind, t->cpu, t->cores);
  add_text(out, size, "mtriple", is_own(t->triple) ? "" : t->triple);
  add_text(out, size, "mattr", features);
  add_text(out, size, "vector-bits", bits);
}

int jit_table_lanes(const struct jit_target *t) {
  return t->vector_bits >= 512 && x86_is_triple(t->triple) && x86_has(t->x86, X86_AVX512F) ? 16 : 0;
}

/* By vpshldd: words of bytes slide, which VNNI multiplies. */
static bool shifts_two_words(const struct jit_target *t) {
  return t->avx512_vnni && x86_is_triple(t->triple) && x86_has(t->x86, X86_AVX512VBMI2);
}

/* A virtual machine of two cores reports the whole of a cache that very many cores share. Others use it too, and each
 * core has no more than this: 32 MB of 300 were faster than the memory. */
enum { LENT_BYTES = 16 << 20 };

/* Of the third cache, that a core may count on. */
static int l3_share(const struct jit_target *t) {
  int part = t->l3_bytes / (t->cores > 0 ? t->cores : 1);
  return part < LENT_BYTES ? part : LENT_BYTES;
}

uint32_t llvm_numbers(const struct jit_target *t, struct jit_number out[JIT_MOST_NUMBERS]) {
  const struct jit_number all[] = {
      {"cores", t->cores},
      {"vector_bits", t->vector_bits},
      {"vector_registers", t->vector_registers},
      {"l1_bytes", t->l1_bytes},
      {"l2_bytes", t->l2_bytes},
      {"l3_bytes", t->l3_bytes},
      {"l3_share", l3_share(t)},
      {"dots", t->dots},
      {"slides", shifts_two_words(t)},
      {"table", jit_table_lanes(t)},
      {"tiles", (t->tile_bytes ? 1 : 0) | (t->tile_bfloats ? 2 : 0) | (t->tile_halves ? 16 : 0)},
      {"tile_accumulators", t->tile_accumulators}};
  memcpy(out, all, sizeof all);
  return sizeof all / sizeof *all;
}

/* Those of which a row fills a register. */
static unsigned transpositions(const struct jit_target *t) {
  unsigned all = 0;
  for (int i = 0; i < TIR_INSTRUCTIONS; i++) {
    struct tir_transposition of = tir_transposition_of((enum tir_instruction)i);
    if (of.side && of.side * of.bits == t->vector_bits) all |= 1u << i;
  }
  return all;
}

unsigned jit_instructions(const struct jit_target *t) {
  unsigned wide = t->vector_bits >= 512;
  bool bytes = t->dots & TIR_DOTS_OF_BYTES && !jit_dots_by_pairs(t), bfloats = t->dots >> TIR_DOT_BFLOATS & 1;
  unsigned words = 1u << TIR_INTERLEAVE_2X32 | 1u << TIR_INTERLEAVE_3X32 | 1u << TIR_INTERLEAVE_4X32;
  return transpositions(t) | (t->vector_bits >= 256 ? words : 0) |
         (bytes ? 1u << TIR_INTERLEAVE_4X8 | wide << TIR_INTERLEAVE_4X8_BY_64 : 0) |
         (jit_dots_by_pairs(t) ? 1u << TIR_INTERLEAVE_2X8 : 0) |
         (bfloats ? 1u << TIR_INTERLEAVE_2X16 | wide << TIR_INTERLEAVE_2X16_BY_32 : 0) |
         (t->avx512_vnni && t->vector_bits >= 512 ? 1u << TIR_VPDPBUSD : 0) |
         (t->tile_bytes ? 1u << TIR_TDPBSSD | 1u << TIR_TDPBSUD | 1u << TIR_TDPBUSD | 1u << TIR_TDPBUUD : 0) |
         (t->tile_bfloats ? 1u << TIR_TDPBF16PS : 0) | (t->tile_halves ? 1u << TIR_TDPFP16PS : 0) |
         (has_tiles(t) ? 1u << TIR_TILEZERO : 0);
}

struct tir_lower_options llvm_lower(const struct jit_target *t) {
  return (struct tir_lower_options){.vector_bits = t->vector_bits,
                                    .vector_registers = t->vector_registers,
                                    .finite = true,
                                    .fused = is_arm(t->triple) || x86_has(t->x86, X86_FMA),
                                    .instructions = jit_instructions(t),
                                    .dots = t->dots,
                                    .shifts_two_words = shifts_two_words(t),
                                    .tile_accumulators = (uint32_t)t->tile_accumulators,
                                    .threads = (uint32_t)t->cores,
                                    .cache_bytes = (uint64_t)(t->l2_bytes > l3_share(t) ? t->l2_bytes : l3_share(t))};
}

/* Code that uses AMX asks for its tiles, and says so where it gets none. */
bool llvm_runs_here(const struct jit_target *t, ms_error *err) {
  const struct host *h = host_this();
  if (!is_this_machine(t->triple))
    return ms_fail(err, MS_UNKNOWN_TARGET, "target: code for %s does not run on this machine", t->triple);
  x86_set lacking = h ? x86_without(t->x86, X86_AMX_TILE) & ~h->has : 0;
  if (!lacking) return true;
  char names[JIT_TARGET_TEXT];
  x86_write_names(lacking, names, sizeof names);
  return ms_fail(
      err, MS_UNKNOWN_TARGET,
      "target: this machine lacks what code for %s may use: %s; take it away by -mattr=-NAME,…, or say native", t->cpu,
      names);
}

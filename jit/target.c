/* Targets: what LLVM and the machine say of a CPU. */
#include "jit.h"
#include "machine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>

/* ---- Caches of this machine ---- */

static int cache_size(int name, int otherwise) {
  long bytes = sysconf(name);
  return bytes > 0 ? (int)bytes : otherwise;
}

static void set_caches(struct jit_target *t) {
  t->l1_bytes = cache_size(_SC_LEVEL1_DCACHE_SIZE, 32 << 10);
  t->l2_bytes = cache_size(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
  t->l3_bytes = cache_size(_SC_LEVEL3_CACHE_SIZE, 8 << 20);
}

/* ---- Features ---- */

/* A feature of a target machine: from its feature string where it says so, else by generating code and asking. LLVM's C
 * interface has no question for what a cpu's name implies, so the levels that matter are a table. */
static const struct {
  const char *cpu;
  int bits;
  bool fma, f16c, vnni, bf16, fp16, amx;
} levels[] = {{"x86-64", 128, 0, 0, 0, 0, 0, 0},         {"x86-64-v2", 128, 0, 0, 0, 0, 0, 0},
              {"x86-64-v3", 256, 1, 1, 0, 0, 0, 0},      {"x86-64-v4", 512, 1, 1, 0, 0, 0, 0},
              {"haswell", 256, 1, 1, 0, 0, 0, 0},        {"broadwell", 256, 1, 1, 0, 0, 0, 0},
              {"skylake", 256, 1, 1, 0, 0, 0, 0},        {"skylake-avx512", 512, 1, 1, 0, 0, 0, 0},
              {"cascadelake", 512, 1, 1, 1, 0, 0, 0},    {"cooperlake", 512, 1, 1, 1, 1, 0, 0},
              {"icelake-client", 512, 1, 1, 1, 0, 0, 0}, {"icelake-server", 512, 1, 1, 1, 0, 0, 0},
              {"sapphirerapids", 512, 1, 1, 1, 1, 1, 1}, {"emeraldrapids", 512, 1, 1, 1, 1, 1, 1},
              {"graniterapids", 512, 1, 1, 1, 1, 1, 1},  {"znver1", 256, 1, 1, 0, 0, 0, 0},
              {"znver2", 256, 1, 1, 0, 0, 0, 0},         {"znver3", 256, 1, 1, 0, 0, 0, 0},
              {"znver4", 512, 1, 1, 1, 1, 0, 0},         {"znver5", 512, 1, 1, 1, 1, 0, 0},
              {"sandybridge", 256, 0, 0, 0, 0, 0, 0},    {"ivybridge", 256, 0, 1, 0, 0, 0, 0},
              {"nehalem", 128, 0, 0, 0, 0, 0, 0},        {"core2", 128, 0, 0, 0, 0, 0, 0}};

/* What a feature string says of a feature, the last mention deciding; `implied` where it says nothing. */
static bool has_feature(const char *features, const char *name, bool implied) {
  size_t length = strlen(name);
  for (const char *at = features; (at = strstr(at, name)) != NULL; at += length)
    if (at > features && strchr("+-", at[-1]) && (at - 1 == features || at[-2] == ',') && strchr(",", at[length]))
      implied = at[-1] == '+';
  return implied;
}

/* The level of a cpu's name, and what the feature string adds to it or takes away. */
static void set_vectors(struct jit_target *t) {
  if (!strncmp(t->triple, "aarch64", 7)) {
    t->vector_bits = 128, t->vector_registers = 32, t->fma = true;
    return;
  }
  int bits = 128;
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
    if (!strcmp(levels[i].cpu, t->cpu)) {
      bits = levels[i].bits, t->fma = levels[i].fma, t->f16c = levels[i].f16c;
      t->avx512_vnni = levels[i].vnni, t->avx512_bf16 = levels[i].bf16, t->avx512_fp16 = levels[i].fp16;
      t->amx_int8 = t->amx_bf16 = levels[i].amx;
    }
  const char *f = t->features;
  if (!has_feature(f, "avx512f", true)) t->avx512_vnni = t->avx512_bf16 = t->avx512_fp16 = false, bits = 256;
  t->fma = has_feature(f, "fma", t->fma), t->f16c = has_feature(f, "f16c", t->f16c);
  t->avx512_vnni = has_feature(f, "avx512vnni", t->avx512_vnni);
  t->avx512_bf16 = has_feature(f, "avx512bf16", t->avx512_bf16);
  t->avx512_fp16 = has_feature(f, "avx512fp16", t->avx512_fp16);
  t->amx_int8 = has_feature(f, "amx-int8", t->amx_int8), t->amx_bf16 = has_feature(f, "amx-bf16", t->amx_bf16);
  bool avx = has_feature(f, "avx", bits >= 256);
  bool wide = has_feature(f, "avx512f", bits >= 512) || t->avx512_vnni || t->avx512_bf16 || t->avx512_fp16;
  t->vector_bits = wide ? 512 : avx || t->fma || t->f16c ? 256 : 128;
  t->vector_registers = t->vector_bits == 512 ? 32 : 16;
}

/* ---- Text ---- */

static void set_native(struct jit_target *t) {
  char *text = LLVMGetHostCPUName();
  snprintf(t->cpu, sizeof t->cpu, "%s", text);
  LLVMDisposeMessage(text);
  text = LLVMGetHostCPUFeatures();
  snprintf(t->features, sizeof t->features, "%s", text);
  LLVMDisposeMessage(text);
  /* A list cut short would say less than the machine has: keep whole names. */
  if (strlen(t->features) + 1 == sizeof t->features) *strrchr(t->features, ',') = 0;
  set_caches(t);
}

/* LLVM takes an unknown cpu's name with a warning on stderr and makes code for the oldest: so the names are asked
 * first. */
static bool is_known_cpu(const char *cpu) {
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
    if (!strcmp(levels[i].cpu, cpu)) return true;
  return !strcmp(cpu, "generic") || !strcmp(cpu, "native");
}

/* Features on top of what the cpu has. */
static bool add_features(struct jit_target *t, const char *list, ms_error *err) {
  size_t length = strlen(t->features);
  int written = snprintf(t->features + length, sizeof t->features - length, "%s%s", length ? "," : "", list);
  return (size_t)written < sizeof t->features - length ||
         ms_fail(err, MS_UNKNOWN_TARGET, "target: the list of features is too long");
}

/* A cpu or level, and features on top of it: x86-64-v4,+avx512vnni. */
static bool parse_cpu(struct jit_target *t, char *word, ms_error *err) {
  char *features = strchr(word, ',');
  if (features) *features++ = 0;
  bool native = !strcmp(word, "native");
  if (!native && !is_known_cpu(word))
    return ms_fail(err, MS_UNKNOWN_TARGET,
                   "target: `%s` is not known; say native, x86-64-v2, x86-64-v3, x86-64-v4 or llvm -mcpu=NAME", word);
  if (!native) {
    snprintf(t->cpu, sizeof t->cpu, "%s", word);
    t->features[0] = 0;
  }
  return !features || add_features(t, features, err);
}

static bool parse_option(struct jit_target *t, char *word, ms_error *err) {
  char *value = strchr(word, '=');
  if (value) *value++ = 0;
  if (*word == '-') word++;
  if (*word == '-') word++;
  if (value && !strcmp(word, "mcpu")) {
    snprintf(t->cpu, sizeof t->cpu, "%s", value);
    t->features[0] = 0;
    return true;
  }
  if (value && !strcmp(word, "mattr")) return add_features(t, value, err);
  if (value && !strcmp(word, "mtriple")) return snprintf(t->triple, sizeof t->triple, "%s", value) > 0;
  if (value && !strcmp(word, "num-cores")) {
    char *end;
    long cores = strtol(value, &end, 10);
    if (*end || cores < 1 || cores > 4096)
      return ms_fail(err, MS_UNKNOWN_TARGET, "target: -num-cores=%s: a number from 1 to 4096 is expected", value);
    t->cores = (int)cores;
    return true;
  }
  return ms_fail(err, MS_UNKNOWN_TARGET,
                 "target: unknown option `%s`; known are -mcpu= -mattr= -mtriple= -num-cores=", word);
}

static bool check_machine(struct jit_target *t, ms_error *err) {
  char *host = LLVMGetHostCPUName();
  bool known = is_known_cpu(t->cpu) || !strcmp(host, t->cpu) || strncmp(t->triple, "x86_64", 6) != 0;
  LLVMDisposeMessage(host);
  if (!known)
    return ms_fail(err, MS_UNKNOWN_TARGET,
                   "target: unknown cpu `%s`; see `msched doctor` for this machine's, or name a level: x86-64-v2, "
                   "x86-64-v3, x86-64-v4",
                   t->cpu);
  LLVMTargetMachineRef machine = jit_target_machine(t, err);
  if (!machine) return false;
  LLVMDisposeTargetMachine(machine);
  return true;
}

bool jit_target_parse(const char *text, struct jit_target *out, ms_error *err) {
  struct jit_target t = {.kind = "llvm"};
  char words[1400], *rest = words;
  if (strlen(text) >= sizeof words) return ms_fail(err, MS_UNKNOWN_TARGET, "target: the text is too long");
  strcpy(words, text);
  jit_start_llvm();
  char *triple = LLVMGetDefaultTargetTriple();
  snprintf(t.triple, sizeof t.triple, "%s", triple);
  LLVMDisposeMessage(triple);
  t.cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
  set_native(&t);
  for (char *word; (word = strsep(&rest, " \t")) != NULL;) {
    if (!*word || !strcmp(word, "native") || !strcmp(word, "llvm") || !strcmp(word, "-mcpu=native")) continue;
    if (!(*word == '-' ? parse_option(&t, word, err) : parse_cpu(&t, word, err))) return false;
  }
  set_vectors(&t);
  if (!check_machine(&t, err)) return false;
  *out = t;
  return true;
}

void jit_target_text(const struct jit_target *t, char *out, size_t size) {
  int n = snprintf(out, size, "%s -mcpu=%s -num-cores=%d", t->kind, t->cpu, t->cores);
  char *host = LLVMGetHostCPUName();
  char *features = LLVMGetHostCPUFeatures();
  /* Named cpus imply their features; a list is written where it says more than the host's name does. */
  bool native = !strcmp(host, t->cpu) && !strncmp(features, t->features, strlen(t->features));
  if (*t->features && !native && n > 0 && (size_t)n < size)
    snprintf(out + n, size - (size_t)n, " -mattr=%s", t->features);
  LLVMDisposeMessage(host);
  LLVMDisposeMessage(features);
}

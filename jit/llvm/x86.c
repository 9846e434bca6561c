/* x86's features and CPUs by LLVM's names: sets of features, what implies what, lists of them. */
#include "x86.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HAS(id) (UINT64_C(1) << X86_##id)

static const struct {
  const char *name;
  enum x86_word where;
  int bit;
  x86_set implied;
} features[X86_FEATURES] = {
#define FEATURE(id, name, where, bit, implied) {name, X86_##where, bit, implied},
#include "x86.def"
};
static_assert(X86_FEATURES <= 64, "a set is a word");

enum cpu {
  CPU_NONE = -1,
#define CPU(id, family, name, base, more) CPU_##id,
#include "x86.def"
  CPUS
};

static const struct {
  const char *name;
  enum x86_family family;
  int base;
  x86_set more;
} cpus[CPUS] = {
#define CPU(id, family, name, base, more) {name, X86_##family, CPU_##base, more},
#include "x86.def"
};

static const struct {
  enum x86_family maker;
  int family, first, last;
  x86_set needs;
  const char *name;
} models[] = {
#define MODEL(maker, family, first, last, needs, name) {X86_##maker, family, first, last, needs, name},
#include "x86.def"
};

/* What CPUs have besides, as LLVM's lists of what a machine has name it: no tensor program's code changes by it, or, as
 * APX and AVX10, it is not used here. */
static const char *const others[] = {"adx",         "aes",         "avx512vp2intersect",
                                     "avx10.1-256", "avx10.1-512", "ccmp",
                                     "cf",          "cldemote",    "clwb",
                                     "clzero",      "clflushopt",  "crc32",
                                     "egpr",        "enqcmd",      "ermsb",
                                     "fsgsbase",    "fsrm",        "hreset",
                                     "invpcid",     "kl",          "lwp",
                                     "movdir64b",   "movdiri",     "mwaitx",
                                     "ndd",         "nf",          "pclmul",
                                     "pconfig",     "pku",         "ppx",
                                     "prefetchi",   "ptwrite",     "push2pop2",
                                     "rdpid",       "rdpru",       "rdrnd",
                                     "rdseed",      "rtm",         "serialize",
                                     "sgx",         "sha",         "sha512",
                                     "shstk",       "sm3",         "sm4",
                                     "tsxldtrk",    "uintr",       "usermsr",
                                     "vaes",        "vpclmulqdq",  "waitpkg",
                                     "wbnoinvd",    "widekl",      "xsave",
                                     "xsavec",      "xsaveopt",    "xsaves",
                                     "zu"};
/* What every x86-64 CPU has. */
static const char *const always[] = {"64bit", "cmov", "cx8", "fxsr", "mmx", "nopl", "sse", "sse2", "x87"};

/* ---- Sets ---- */

/* With all that its features imply; what is implied stands before what implies it. */
static x86_set with_implied(x86_set set) {
  for (int f = X86_FEATURES - 1; f >= 0; f--)
    if (set >> f & 1) {
      assert(features[f].implied >> f == 0);
      set |= features[f].implied;
    }
  return set;
}

/* Without the features that imply one that is not there. */
static x86_set without_unsupported(x86_set set) {
  for (int f = 0; f < X86_FEATURES; f++)
    if (features[f].implied & ~set) set &= ~(UINT64_C(1) << f);
  return set;
}

x86_set x86_with(enum x86_feature f) { return with_implied(UINT64_C(1) << f); }

x86_set x86_without(x86_set set, enum x86_feature f) { return without_unsupported(set & ~(UINT64_C(1) << f)); }

x86_set x86_reported(const uint32_t words[X86_WORDS]) {
  x86_set set = 0;
  for (int f = 0; f < X86_FEATURES; f++)
    if (words[features[f].where] >> features[f].bit & 1) set |= UINT64_C(1) << f;
  return without_unsupported(set);
}

const char *x86_where(enum x86_feature f, enum x86_word *word, int *bit) {
  assert(f < X86_FEATURES);
  *word = features[f].where, *bit = features[f].bit;
  return features[f].name;
}

static int size_of(x86_set set) { return __builtin_popcountll(set); }

/* ---- CPUs ---- */

static void cpu_at(int i, struct x86_cpu *out) {
  *out = (struct x86_cpu){.name = cpus[i].name, .family = cpus[i].family};
  for (; i != CPU_NONE; i = cpus[i].base) {
    assert(cpus[i].base < i);
    out->has |= cpus[i].more;
  }
  out->has = with_implied(out->has);
}

bool x86_find_cpu(const char *name, struct x86_cpu *out) {
  for (int i = 0; i < CPUS; i++)
    if (!strcmp(cpus[i].name, name)) {
      cpu_at(i, out);
      return true;
    }
  return false;
}

const char *x86_name_of(enum x86_family maker, int family, int model, x86_set has) {
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    if (models[i].maker == maker && models[i].family == family && models[i].first <= model && model <= models[i].last &&
        !(models[i].needs & ~has))
      return models[i].name;
  return NULL;
}

/* Only AMD's CPUs have SSE4a. */
static enum x86_family family_of(x86_set set, const char *like) {
  struct x86_cpu cpu;
  if (like && x86_find_cpu(like, &cpu) && cpu.family != X86_LEVEL) return cpu.family;
  return x86_has(set, X86_SSE4A) ? X86_AMD : X86_INTEL;
}

void x86_closest_cpu(x86_set set, const char *like, struct x86_cpu *out) {
  enum x86_family families[] = {family_of(set, like), X86_LEVEL};
  bool found = false;
  for (int f = 0; f < 2 && !found; f++)
    for (int i = 0; i < CPUS; i++) {
      struct x86_cpu cpu;
      cpu_at(i, &cpu);
      if (cpu.family != families[f] || cpu.has & ~set || (found && size_of(cpu.has) < size_of(out->has))) continue;
      if (found && cpu.has == out->has && like && !strcmp(out->name, like)) continue;
      *out = cpu;
      found = true;
    }
  assert(found); /* x86-64 has nothing that could be missing */
}

/* ---- Lists ---- */

static bool is_among(const char *const *names, size_t count, const char *word) {
  for (size_t i = 0; i < count; i++)
    if (!strcmp(names[i], word)) return true;
  return false;
}
#define AMONG(names, word) is_among(names, sizeof names / sizeof *names, word)

static int find_feature(const char *name) {
  for (int f = 0; f < X86_FEATURES; f++)
    if (!strcmp(features[f].name, name)) return f;
  return -1;
}

/* The next word of a list, without its sign, which is 0 where it has none. NULL: no more. */
static const char *next_word(const char **list, char word[64], char *sign) {
  if (!**list) return NULL;
  size_t length = strcspn(*list, ",");
  *sign = strchr("+-", **list) ? **list : 0;
  snprintf(word, 64, "%.*s", (int)(length - (*sign != 0)), *list + (*sign != 0));
  *list += length + ((*list)[length] == ',');
  return word;
}

static bool change_one(x86_set *set, bool *narrow, const char *word, char sign, ms_error *err) {
  if (!sign)
    return ms_fail(err, MS_UNKNOWN_TARGET, "target: a feature is written +%s or -%s, not `%s`", word, word, word);
  int f = find_feature(word);
  if (f >= 0) {
    x86_set one = UINT64_C(1) << f;
    *set = sign == '+' ? *set | with_implied(one) : x86_without(*set, (enum x86_feature)f);
    return true;
  }
  if (!strcmp(word, "evex512")) *narrow = sign == '-';
  if (!strcmp(word, "evex512") || AMONG(others, word)) return true;
  if (!AMONG(always, word))
    return ms_fail(err, MS_UNKNOWN_TARGET, "target: `%s` is not a feature of x86 CPUs that is known here", word);
  return sign == '+' || ms_fail(err, MS_UNKNOWN_TARGET, "target: -%s: there is no code for CPUs without it", word);
}

bool x86_change(x86_set *set, bool *narrow, const char *list, ms_error *err) {
  char word[64], sign;
  assert(*set == with_implied(*set));
  while (next_word(&list, word, &sign))
    if (!change_one(set, narrow, word, sign, err)) return false;
  return true;
}

/* ---- Text ---- */

static int by_name(const void *a, const void *b) {
  return strcmp(features[*(const int *)a].name, features[*(const int *)b].name);
}

static void add(char *out, size_t size, const char *between, const char *sign, int f) {
  size_t length = strlen(out);
  int written = snprintf(out + length, size - length, "%s%s%s", length ? between : "", sign, features[f].name);
  assert((size_t)written < size - length); /* a list of all fits */
  (void)written;
}

static void add_sorted(x86_set set, char *out, size_t size, const char *sign) {
  int list[X86_FEATURES] = {0}, count = 0;
  for (int f = 0; f < X86_FEATURES; f++)
    if (set >> f & 1) list[count++] = f;
  qsort(list, (size_t)count, sizeof *list, by_name);
  for (int i = 0; i < count; i++) add(out, size, ",", sign, list[i]);
}

void x86_write_change(x86_set from, x86_set to, char *out, size_t size) {
  x86_set lost = from & ~to, won = to & ~from, taken = lost, given = won;
  for (int f = 0; f < X86_FEATURES; f++) {
    x86_set one = UINT64_C(1) << f, implied = with_implied(one) & ~one;
    if (implied & lost) taken &= ~one; /* goes with what it implies */
    if (won & one) given &= ~implied;  /* comes with what implies it */
  }
  *out = 0;
  add_sorted(taken, out, size, "-");
  add_sorted(given, out, size, "+");
}

void x86_write_all(x86_set set, char *out, size_t size) {
  *out = 0;
  /* With AVX-512 but for its conversions LLVM 19.1 cannot select those of 16 lanes by this one's. */
  if (x86_has(set, X86_AVX512F) && !x86_has(set, X86_AVX512BF16)) set &= ~HAS(AVXNECONVERT);
  for (int f = 0; f < X86_FEATURES; f++) add(out, size, ",", set >> f & 1 ? "+" : "-", f);
  size_t length = strlen(out);
  int written = snprintf(out + length, size - length, ",%cevex512", x86_has(set, X86_AVX512F) ? '+' : '-');
  assert((size_t)written < size - length);
  (void)written;
}

void x86_write_names(x86_set set, char *out, size_t size) {
  *out = 0;
  for (int f = 0; f < X86_FEATURES; f++)
    if (set >> f & 1) add(out, size, " ", "", f);
}

bool x86_is_triple(const char *triple) { return !strncmp(triple, "x86_64-", 7); }

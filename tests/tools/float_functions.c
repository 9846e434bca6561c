/* float_functions [--every N] [--first N] [--target TARGET] [FUNCTION…]: compares elementary functions of float32,
 * compiled in vectors, with the C library's of float64 rounded to float32, for every Nth of the 2^32 patterns, from the
 * first on; without --every, for all; functions of two numbers for as many pairs: of special values first, then drawn.
 * In three modes: in a fixed order, in a free one, and without fast math. Prints a row of a table for each function and
 * mode. An error is in units in the last place of the result of float64; a 0 where a subnormal number is right is
 * counted instead. Exit status 1: a result is farther off than tir/functions.def allows, or is NaN, infinite, 0 or -0
 * where it should not be. */
#include "tir/tir.h"

#include "jit/jit.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum mode { FIXED_ORDER, FREE_ORDER, NO_FAST_MATH, MODES };
static const char *const mode_names[] = {"fixed order", "free order", "`fast_math = false`"};

/* In a fixed order none may differ. */
static double allowed(const struct tir_function_row *f, enum mode mode) {
  return mode == FREE_ORDER ? f->free_error : f->library_error;
}

static bool is_compared(const struct tir_function_row *f) { return f->free_error > 0; }

enum { CHUNK = 1 << 16 }; /* patterns a call */

/* A kernel of one function in one mode, with its results. */
struct kernel {
  struct tir *ir;
  struct jit_code *code;
  struct jit_kernel *loaded;
  struct jit_call *call;
  float got[CHUNK];
  /* What was found. */
  uint64_t differ, nans, infinities, zeros, flushed;
  double off;          /* the largest error, */
  float where, beside; /* of these arguments */
};

static struct {
  float in[CHUNK], second[CHUNK], wanted[CHUNK];
  double exact[CHUNK];
  struct kernel of[MODES];
} run;

static bool open_kernel(struct kernel *k, const struct tir_function_row *f, enum mode mode,
                        const struct jit_target *target, ms_error *err) {
  char text[1000];
  snprintf(
      text, sizeof text,
      "@T.prim_func(s_tir=True)\n"
      "def main(A: T.Buffer((%d,), \"float32\"), C: T.Buffer((%d,), \"float32\"), B: T.Buffer((%d,), \"float32\")):\n"
      "    with T.sblock(\"root\"):\n"
      "%s"
      "        for o in range(%d):\n"
      "            for i in T.vectorized(16):\n"
      "                with T.sblock(\"B\"):\n"
      "                    v = T.axis.spatial(%d, o * 16 + i)\n"
      "                    B[v] = T.%s(A[v]%s)\n",
      CHUNK, CHUNK, CHUNK, mode == FIXED_ORDER ? "        T.sblock_attr({\"" JIT_FIXED_ORDER "\": 1})\n" : "",
      CHUNK / 16, CHUNK, f->name, f->of_two ? ", C[v]" : "");
  const struct jit_options options = {.no_fast_math = mode == NO_FAST_MATH};
  const struct tir_arg args[] = {{.data = run.in, .bytes = sizeof run.in},
                                 {.data = run.second, .bytes = sizeof run.second},
                                 {.data = k->got, .bytes = sizeof k->got}};
  memset(k, 0, sizeof *k);
  k->ir = tir_read(text, strlen(text), f->name, err);
  tir_func main_func = k->ir ? tir_find_func(k->ir, "main") : TIR_NONE;
  k->code = main_func ? jit_compile(k->ir, main_func, target, &options, err) : NULL;
  k->loaded = k->code ? jit_load(k->code, err) : NULL;
  k->call = k->loaded ? jit_call_new(k->loaded, k->ir, main_func, args, err) : NULL;
  return k->call;
}

static void close_kernel(struct kernel *k) {
  jit_call_free(k->call);
  jit_kernel_free(k->loaded);
  jit_code_free(k->code);
  tir_free(k->ir);
}

/* ---- Comparison ---- */

/* What comes after the largest float would be 2^128: as such infinities count. */
static double as_finite(double x) { return fmax(fmin(x, 0x1p128), -0x1p128); }

static double error_of(double got, double exact) {
  int exponent = exact == 0 ? -126 : ilogb(as_finite(exact));
  if (exponent < -126) exponent = -126;
  if (exponent > 127) exponent = 127;
  return fabs(as_finite(got) - as_finite(exact)) / ldexp(1, exponent - 23);
}

/* Of a result that is not bit for bit what it should be. */
static void note_difference(struct kernel *k, float x, float y, float wanted, double exact, float got) {
  if (isnan(wanted) && isnan(got)) return; /* NaN has no particular bits */
  k->differ++;
  if (isnan(wanted) || isnan(got)) {
    k->nans++;
    return;
  }
  double off = error_of((double)got, exact);
  if (got == 0 && off > 1 && fpclassify(wanted) == FP_SUBNORMAL) {
    k->flushed++;
    return;
  }
  if (got == 0 && wanted == 0) k->zeros++;
  if (off > 1 && (isinf(wanted) || isinf(got))) k->infinities++;
  if (off > k->off) k->off = off, k->where = x, k->beside = y;
}

static void compare(struct kernel *k, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t a, b;
    memcpy(&a, &run.wanted[i], sizeof a);
    memcpy(&b, &k->got[i], sizeof b);
    if (a != b) note_difference(k, run.in[i], run.second[i], run.wanted[i], run.exact[i], k->got[i]);
  }
}

/* ---- Pairs ---- */

static const float specials[] = {
    0,      1,     2,         3,       0.5F,    1.5F,           INFINITY,      NAN,      0x1p-149F, 0x1p-126F, FLT_MAX,
    1e-38F, 1e10F, 8388607,   0.25F,   8388609, 8388607.5F,     16777215,      16777216, 33554432,  127,       128,
    149,    150,   0.333333F, 0x1p31F, 10,      0x1.fffffep-1F, 0x1.000002p+0F};
enum { SIGNED_SPECIALS = 2 * (sizeof specials / sizeof *specials) };

static float special_of(uint64_t at) { return at % 2 ? -specials[at / 2] : specials[at / 2]; }

static float float_of(uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float x;
  memcpy(&x, &low, sizeof x);
  return x;
}

/* SplitMix64: Steele, Lea and Flood, OOPSLA 2014. */
static uint64_t drawn(uint64_t at) {
  at = (at + 1) * 0x9e3779b97f4a7c15U;
  at = (at ^ at >> 30) * 0xbf58476d1ce4e5b9U;
  at = (at ^ at >> 27) * 0x94d049bb133111ebU;
  return at ^ at >> 31;
}

/* One in four is any two patterns; of others x is any positive number, or one near 1, and x^y anywhere in float32's
 * range, or y near x. */
static void pair_of(uint64_t at, float *x, float *y) {
  enum { SPECIAL_PAIRS = SIGNED_SPECIALS * SIGNED_SPECIALS };
  uint64_t bits = drawn(at);
  *x = at < SPECIAL_PAIRS ? special_of(at / SIGNED_SPECIALS) : float_of(bits);
  *y = at < SPECIAL_PAIRS ? special_of(at % SIGNED_SPECIALS) : float_of(bits >> 32);
  if (at < SPECIAL_PAIRS || at % 4 == 0) return;
  double part = (double)(bits >> 32) * 0x1p-32 - 0.5;
  *x = at % 4 == 1 ? 1 + (float)((int)(bits & 0xffff) - 0x8000) * 0x1p-23F : float_of(bits & 0x7fffffff);
  *y = (float)(at % 4 < 3 ? 310 * part / log2((double)*x) : ldexp((double)*x, (int)(20 * part)) * (1 + part));
}

/* Runs all modes on `count` patterns, of which the first is `pattern`. */
static bool compare_chunk(const struct tir_function_row *f, uint64_t pattern, uint64_t every, uint32_t count,
                          ms_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    run.in[i] = float_of(pattern + i * every);
    if (f->of_two) pair_of(pattern / every + i, &run.in[i], &run.second[i]);
    double x = (double)run.in[i];
    run.exact[i] = f->of_two ? f->of_two(x, (double)run.second[i]) : f->of_one(x);
    run.wanted[i] = (float)run.exact[i];
  }
  for (int mode = 0; mode < MODES; mode++) {
    if (!jit_call_run(run.of[mode].call, err)) return false;
    compare(&run.of[mode], count);
  }
  return true;
}

/* ---- The table ---- */

static void print_special(const char *name, uint64_t count, bool *any) {
  if (!count) return;
  printf("%s%llu %s", *any ? ", " : "", (unsigned long long)count, name);
  *any = true;
}

/* Returns whether the mode keeps what is allowed. */
static bool print_row(const struct tir_function_row *f, enum mode mode, const struct kernel *k) {
  double off = k->off > 0.5 ? k->off : 0.5;
  char where[40] = "";
  int length = k->off > 0.5 ? snprintf(where, sizeof where, "%.9g", (double)k->where) : 0;
  if (length && f->of_two) snprintf(where + length, sizeof where - (size_t)length, ", %.9g", (double)k->beside);
  printf("| %s | %s | %llu | %.2f | %s | ", f->name, mode_names[mode], (unsigned long long)k->differ, off, where);
  bool any = false;
  print_special("NaN", k->nans, &any);
  print_special("infinities", k->infinities, &any);
  print_special("signs of 0", k->zeros, &any);
  print_special("subnormals are 0", k->flushed, &any);
  printf("%s |\n", any ? "" : "agree");
  fflush(stdout);
  bool kept = mode == FIXED_ORDER ? k->differ == 0
                                  : off <= allowed(f, mode) && !(k->nans + k->infinities + k->zeros + k->flushed);
  if (!kept) fprintf(stderr, "float_functions: %s, %s: farther off than stated\n", f->name, mode_names[mode]);
  return kept;
}

/* 0: as stated; 1: farther off; 2: err is filled. */
static int compare_function(const struct tir_function_row *f, uint64_t first, uint64_t every,
                            const struct jit_target *target, ms_error *err) {
  bool ok = true;
  for (int mode = 0; mode < MODES; mode++) ok = open_kernel(&run.of[mode], f, mode, target, err) && ok;
  uint64_t total = (((uint64_t)1 << 32) - first + every - 1) / every;
  for (uint64_t at = 0; ok && at < total; at += CHUNK)
    ok = compare_chunk(f, first + at * every, every, total - at < CHUNK ? (uint32_t)(total - at) : CHUNK, err);
  int status = ok ? 0 : 2;
  for (int mode = 0; mode < MODES; mode++) {
    if (ok && !print_row(f, mode, &run.of[mode])) status = 1;
    close_kernel(&run.of[mode]);
  }
  return status;
}

static bool is_known(const char *name) {
  enum tir_function f = tir_function_named(name);
  if (f < TIR_FUNCTIONS && !strcmp(tir_functions[f].name, name) && is_compared(&tir_functions[f])) return true;
  return fprintf(stderr, "float_functions: %s is no option, and no function that is compared\n", name), false;
}

static bool is_asked_for(const char *name, char **names, int count) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return true;
  return count == 0;
}

int main(int argc, char **argv) {
  const char *target_text = "native";
  unsigned long long every = 1, first = 0;
  int at = 1, status = 0;
  ms_error err = {0};
  struct jit_target target;
  for (; at + 1 < argc && !strncmp(argv[at], "--", 2); at += 2) {
    if (!strcmp(argv[at], "--target"))
      target_text = argv[at + 1];
    else if (!strcmp(argv[at], "--every"))
      every = strtoull(argv[at + 1], NULL, 10);
    else if (!strcmp(argv[at], "--first"))
      first = strtoull(argv[at + 1], NULL, 10);
    else
      break;
  }
  for (int i = at; i < argc; i++)
    if (!is_known(argv[i])) return 2;
  if (every < 1 || every > UINT32_MAX || first > UINT32_MAX || !jit_target_parse(target_text, &target, &err)) {
    fprintf(stderr, "float_functions: %s\n",
            *err.message ? err.message : "--every: 1 to 4294967295; --first: up to 4294967295");
    return 2;
  }
  printf("| function | mode | results that differ | largest error, ulp | of | special values "
         "|\n|---|---|---|---|---|---|\n");
  for (enum tir_function f = 0; f < TIR_FUNCTIONS && status < 2; f++) {
    const struct tir_function_row *row = &tir_functions[f];
    if (!is_compared(row) || !is_asked_for(row->name, argv + at, argc - at)) continue;
    int found = compare_function(row, first, every, &target, &err);
    if (found > status) status = found;
  }
  if (status == 2) fprintf(stderr, "float_functions: %s\n", err.message);
  return status;
}

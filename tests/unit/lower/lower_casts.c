#define _GNU_SOURCE
/* Casts to and from floats of 16 and of 8 bits, of every type, in loops and in vectors: rounded once, interpreted,
 * lowered, compiled for CPUs that convert and CPUs that do not, and as exported C (on GPUs: case/lower/legalize).
 * Values at ties, a last bit beside ties, at the ends. */
#include "unit/exported.h"
#include "unit/script.h"

#include <math.h>

enum { COUNT = 96, LANES = 8, ROOM = 40000, MOST_PARAMS = 64 };

static const struct tir_run_options real = {.lowered = true};
enum { FROMS = 11, TOS = 7 };
/* Types that are short, how many bits their numbers have, and all of the types that go to and from them. */
static const struct kind {
  int precisions[2];
  const char *from[FROMS], *to[TOS];
} halves = {{8, 11},
            {"float64", "float32", "int64", "uint64", "int32", "uint32", "int16", "uint8", "bool", "float16",
             "bfloat16"},
            {"float16", "bfloat16", "float64", "int64", "int32", "uint8", "bool"}},
  bytes = {{3, 4},
           {"float64", "float32", "int64", "uint64", "int32", "uint8", "bool", "float16", "bfloat16", "float8_e4m3fn",
            "float8_e5m2"},
           {"float8_e4m3fn", "float8_e5m2", "float64", "float16", "int32", "uint8", "bool"}};
static const struct kind *kind = &halves;

static bool is_short(const char *type) { return strstr(type, kind == &halves ? "float16" : "float8") != NULL; }

/* A block for each pair of types of which one is short: O_a_b = Cast(b, A_a). */
static struct tir *all_casts(const char *loop) {
  char *text = malloc(ROOM), *to = text;
  assert_non_null(text);
  to += sprintf(to, "@T.prim_func(s_tir=True)\ndef main(");
  for (int a = 0; a < FROMS; a++)
    to += sprintf(to, "%sA%d: T.Buffer((%d,), \"%s\")", a ? ", " : "", a, COUNT, kind->from[a]);
  for (int a = 0; a < FROMS; a++)
    for (int b = 0; b < TOS; b++)
      if (is_short(kind->from[a]) || is_short(kind->to[b]))
        to += sprintf(to, ", O%d_%d: T.Buffer((%d,), \"%s\")", a, b, COUNT, kind->to[b]);
  to += sprintf(to, "):\n");
  for (int a = 0; a < FROMS; a++)
    for (int b = 0; b < TOS; b++)
      if (is_short(kind->from[a]) || is_short(kind->to[b]))
        to += sprintf(to,
                      "    for i in range(%d):\n        for j in %s(%d):\n            with T.sblock(\"b%d_%d\"):\n"
                      "                v = T.axis.spatial(%d, i * %d + j)\n"
                      "                O%d_%d[v] = T.Cast(\"%s\", A%d[v])\n",
                      COUNT / LANES, loop, LANES, a, b, COUNT, LANES, a, b, kind->to[b], a);
  assert_true(to - text < ROOM);
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, (size_t)(to - text), "casts.py", &err);
  if (!ir) fail_msg("%s\n%s", err.message, text);
  free(text);
  return ir;
}

/* ---- Values ---- */

static const double ends[] = {0,
                              -0.0,
                              INFINITY,
                              -INFINITY,
                              NAN,
                              65504,
                              65519.999999999,
                              65520,
                              65536,
                              1e300,
                              -1e300,
                              1e-300,
                              -1e-300,
                              0x1p-24,
                              0x1p-25,
                              0x1.0000000001p-25,
                              0x1p-26,
                              0x1.FFp127,
                              0x1.FEFFFFFFFFFp127,
                              0x1.FF0001p127,
                              1,
                              -1,
                              448,
                              464,
                              -464.00000001,
                              480,
                              61440,
                              61439.9999999,
                              0x1p-10,
                              -0x1.0000000001p-10,
                              0x1p-17};
/* Subnormal bfloat16, which the instruction of AVX512-BF16 takes for 0 (Intel's manual, VCVTNEPS2BF16). */
static const double tiny[] = {0x1p-133, 0x1.0000000001p-134, 0x1p-134, 0x1.8p-134, -0x1.7FFFFFFFFFp-132, 0x1p-149,
                              0x1p-150};
enum { ENDS = sizeof ends / sizeof *ends, TINY = sizeof tiny / sizeof *tiny };

/* 1 + 2^-p j + a half of a last place, and what is beside it, as near as doubles go and as near as floats go. */
static double real_value(int k, bool has_tiny) {
  if (k < ENDS) return ends[k];
  if (has_tiny && k < ENDS + TINY) return tiny[k - ENDS];
  static const double beside[] = {0, 0x1p-45, -0x1p-45, 0x1p-24, -0x1p-24, 0x1p-30};
  int precision = kind->precisions[k % 2 == 0], exponent = (k * 7) % 31 - 15;
  double tie = 1 + ldexp(k % 61, 1 - precision) + ldexp(1, -precision);
  return ldexp((tie + beside[k % 6]) * (k % 5 ? 1 : -1), exponent);
}

/* The same of integers: bits of a short float, a half of its last place, and one more or less. */
static int64_t whole_value(int k, int bits, bool is_signed) {
  int top = k % (bits - (is_signed ? 1 : 0)), precision = kind->precisions[k % 3 == 0];
  uint64_t tie = (uint64_t)1 << top;
  if (top > precision) tie += ((uint64_t)(k % 16) << (top - precision + 1)) + ((uint64_t)1 << (top - precision));
  tie += (uint64_t)(k / 3 % 3) - 1;
  return k % 7 == 0 ? INT64_MIN >> (64 - bits) : is_signed && k % 2 ? -(int64_t)tie : (int64_t)tie;
}

static void fill(const struct tir *ir, tir_func f, const struct tir_arguments *to, bool has_tiny) {
  for (uint32_t a = 0; a < FROMS; a++) {
    tir_type type = tir_buffer_at(ir, ir->params.at[ir->funcs.at[f].params.first + a].buffer)->type;
    int bits = tir_type_bits(type), bytes = (bits + 7) / 8;
    for (int k = 0; k < COUNT; k++) {
      char *at = (char *)to->args[a].data + k * bytes;
      int64_t whole = tir_type_is_int(type) ? whole_value(k, bits, tir_type_code(type) == TIR_INT) : k % 2;
      if (tir_type_is_float(type))
        tir_put_element(type, at, real_value(k, has_tiny));
      else
        memcpy(at, &whole, (size_t)bytes); /* the low bytes */
    }
  }
}

/* ---- What computes them ---- */

static void expect_same(const struct tir *ir, const struct tir_arguments *expected, struct tir_arguments *got,
                        const char *what) {
  ms_error err = {.message = ""};
  if (!tir_same_arguments(ir, tir_find_func(ir, "main"), expected, got, 0, &err)) fail_msg("%s: %s", what, err.message);
  tir_arguments_free(got);
}

/* Nothing is left to a routine of the compiler's library, but float16's by names that gcc 12 has. */
static struct jit_code *compiled(const struct tir *ir, const struct jit_target *target, const char *name) {
  static const char *const routines[] = {"__truncdf", "__truncsfbf2", "__extendbf", "__floatundi", "__fixhf"};
  ms_error err = {.message = ""};
  size_t bytes;
  struct jit_code *code = jit_compile(ir, tir_find_func(ir, "main"), target, NULL, &err);
  if (!code) fail_msg("%s: %s", name, err.message);
  const char *object = jit_code_object(code, &bytes);
  for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
    if (memmem(object, bytes, routines[i], strlen(routines[i]))) fail_msg("%s calls %s", name, routines[i]);
  return code;
}

static void run_code(const struct tir *ir, const struct jit_code *code, const struct tir_arguments *args) {
  void *pointers[MOST_PARAMS];
  uint64_t scalars[MOST_PARAMS];
  ms_error err = {.message = ""};
  struct jit_kernel *kernel = jit_load(code, &err);
  if (!kernel) fail_msg("%s", err.message);
  jit_arguments(ir, tir_find_func(ir, "main"), args->args, pointers, scalars);
  assert_int_equal(jit_kernel_entry(kernel)(pointers, NULL), 0);
  jit_kernel_free(kernel);
}

static void run_compiled(const struct tir *ir, const struct tir_arguments *before, const struct tir_arguments *expected,
                         size_t most) {
  static const char *const targets[] = {"native", "x86-64", "x86-64-v4", "llvm -mcpu=arrowlake"};
  for (size_t t = 0; t < most; t++) {
    struct jit_target target;
    struct tir_arguments got;
    ms_error err = {.message = ""};
    if (!jit_target_parse(targets[t], &target, &err)) fail_msg("%s", err.message);
    struct jit_code *code = compiled(ir, &target, targets[t]);
    if (jit_target_runs_here(&target, &err)) {
      tir_copy_arguments(ir, tir_find_func(ir, "main"), before, &got);
      run_code(ir, code, &got);
      expect_same(ir, expected, &got, targets[t]);
    }
    jit_code_free(code);
  }
}

static void run_source(const struct tir *ir, const struct tir_arguments *before, const struct tir_arguments *expected) {
  struct jit_target target;
  struct tir_arguments got;
  ms_error err = {.message = ""};
  assert_true(jit_target_parse("x86-64", &target, &err));
  tir_copy_arguments(ir, tir_find_func(ir, "main"), before, &got);
  run_exported_source(ir, &target, NULL, "-Wno-psabi", &got);
  expect_same(ir, expected, &got, "exported C");
}

static void check(const char *loop, bool has_tiny) {
  struct tir *ir = all_casts(loop), *lowered = tir_new();
  tir_func f = tir_find_func(ir, "main");
  const struct tir_lower_options options = {.verify = true};
  struct tir_arguments before, expected, got;
  assert_accepted(tir_make_arguments(ir, f, 1, &before, err));
  fill(ir, f, &before, has_tiny);
  tir_copy_arguments(ir, f, &before, &expected);
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  tir_copy(lowered, ir);
  assert_accepted(tir_lower(lowered, f, &options, err));
  tir_copy_arguments(ir, f, &before, &got);
  assert_accepted(tir_run(lowered, f, got.args, got.count, &real, err));
  expect_same(ir, &expected, &got, "lowered");
  if (!has_tiny) run_compiled(ir, &before, &expected, strcmp(loop, "T.serial") ? 4 : 2);
  run_source(ir, &before, &expected);
  tir_arguments_free(&before), tir_arguments_free(&expected);
  tir_free(lowered), tir_free(ir);
}

static void casts_in_loops(void **state) {
  (void)state;
  check("T.serial", false);
  check("T.serial", true);
}

static void casts_in_vectors(void **state) {
  (void)state;
  check("T.vectorized", false);
  check("T.vectorized", true);
}

static void casts_of_bytes(void **state) {
  (void)state;
  kind = &bytes;
  check("T.serial", false);
  check("T.vectorized", false);
  kind = &halves;
}

/* ---- The interpreter itself, by bits that are known ---- */

static void expect_bits(const char *from, const char *to, const char *value, uint16_t bits) {
  char params[100], line[200];
  snprintf(params, sizeof params, "A: T.Buffer((1,), \"%s\"), B: T.Buffer((1,), \"%s\")", from, to);
  snprintf(line, sizeof line, "        B[v] = T.Cast(\"%s\", A[v] * T.%s(0) + %s)", to, from, value);
  struct tir *ir = read_function(
      params, "for i in range(1):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(1, i)", line);
  snprintf(line, sizeof line, "        B[v] = T.Cast(\"%s\", %s)", to, value);
  struct tir *constant = read_function(
      params, "for i in range(1):", "    with T.sblock(\"B\"):", "        v = T.axis.spatial(1, i)", line);
  struct tir *both[] = {ir, constant};
  struct jit_target target;
  assert_accepted(jit_target_parse("native", &target, err));
  for (int i = 0; i < 2; i++) {
    tir_func f = tir_find_func(both[i], "main");
    struct tir_arguments run, compiled;
    assert_accepted(tir_make_arguments(both[i], f, 1, &run, err));
    tir_copy_arguments(both[i], f, &run, &compiled);
    assert_accepted(tir_run(both[i], f, run.args, run.count, NULL, err));
    assert_accepted(jit_run(both[i], f, &target, NULL, compiled.args, err));
    assert_int_equal(*(uint16_t *)run.args[1].data, bits);
    assert_int_equal(*(uint16_t *)compiled.args[1].data, bits);
    tir_arguments_free(&run), tir_arguments_free(&compiled);
    tir_free(both[i]);
  }
}

static void each_is_rounded_once(void **state) {
  (void)state;
  expect_bits("float64", "bfloat16", "T.float64(1.00390625)", 0x3F80);         /* 1 + 2^-8: a tie, to even */
  expect_bits("float64", "bfloat16", "T.float64(1.0039062500009095)", 0x3F81); /* and 2^-40 more */
  expect_bits("float64", "float16", "T.float64(1.00048828125)", 0x3C00);       /* 1 + 2^-11 */
  expect_bits("float64", "float16", "T.float64(1.0004882812509095)", 0x3C01);  /* and 2^-40 more */
  expect_bits("int64", "bfloat16", "T.int64(1157425104234217472)", 0x5D80);    /* 2^60 + 2^52: a tie, to even */
  expect_bits("int64", "bfloat16", "T.int64(1157425104234217473)", 0x5D81);    /* and 1 more */
  expect_bits("int32", "bfloat16", "T.int32(1077936128)", 0x4E80);             /* 2^30 + 2^22: a tie */
  expect_bits("int32", "bfloat16", "T.int32(1077936129)", 0x4E81);             /* and 1 more */
  expect_bits("int32", "float16", "T.int32(2049)", 0x6800);                    /* 2^11 + 1: a tie */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(casts_in_loops), cmocka_unit_test(casts_in_vectors),
                                     cmocka_unit_test(casts_of_bytes), cmocka_unit_test(each_is_rounded_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

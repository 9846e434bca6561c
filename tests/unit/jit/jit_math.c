/* Compiled arithmetic and calls agree with the interpreter, as scalars and in vectors, with and without fast math.
 * Exponentials do without what bounds of their arguments rule out, and give the same. */
#include "unit/exported.h"
#include "unit/script.h"

#include "jit/jit.h"

#include <math.h>

enum { COUNT = 16 };

static const double inputs[COUNT] = {0.5, 1.5,  2.5, -0.5, -1.5,  -2.5,      3.5, -3.5,
                                     7.0, -7.0, 0.0, 2.25, -2.75, 8388609.0, 0.1, -100.25};
static const double divisors[COUNT] = {2, -2, 0.5, 1.5, -1.5, 3, -3, 1, 2, 2, 5, -0.75, -0.75, 2, 0.25, 7};
static const int32_t exponents[COUNT] = {0, 1, -1, 2, -2, 5, 10, -10, 100, -100, 3, 4, -149, 2000, -2000, 7};

/* B[vi] = value, of the type; the loop is vectorized or not. */
static struct tir *function_of(const char *type, const char *value, bool vector) {
  char parameters[400], store[300], loop[100];
  snprintf(parameters, sizeof parameters,
           "A: T.Buffer((16,), \"%s\"), D: T.Buffer((16,), \"%s\"), I: T.Buffer((16,), \"int32\"), "
           "B: T.Buffer((16,), \"%s\")",
           type, type, type);
  snprintf(loop, sizeof loop, "for i in %s(16):", vector ? "T.vectorized" : "range");
  snprintf(store, sizeof store, "        B[vi] = %s", value);
  return read_function(parameters, loop, "    with T.sblock(\"B\"):", "        vi = T.axis.spatial(16, i)", store);
}

struct arrays {
  unsigned char a[8 * COUNT], d[8 * COUNT], b[8 * COUNT];
  int32_t i[COUNT];
  struct tir_arg args[4];
};

static void fill(struct arrays *x, tir_type type) {
  size_t size = (size_t)tir_type_bits(type) / 8;
  memset(x, 0, sizeof *x);
  for (int i = 0; i < COUNT; i++) {
    tir_put_element(type, x->a + (size_t)i * size, inputs[i]);
    bool divides = !tir_type_is_int(type) || fabs(divisors[i]) >= 1;
    tir_put_element(type, x->d + (size_t)i * size, divides ? divisors[i] : -1);
  }
  if (tir_type_is_int(type)) { /* which has no quotient of the type */
    tir_put_element(type, x->a + 2 * size, -ldexp(1, tir_type_bits(type) - 1));
    assert_true(tir_fetch_element(type, x->d + 2 * size) == -1);
  }
  memcpy(x->i, exponents, sizeof exponents);
  x->args[0] = (struct tir_arg){.data = x->a, .bytes = size * COUNT};
  x->args[1] = (struct tir_arg){.data = x->d, .bytes = size * COUNT};
  x->args[2] = (struct tir_arg){.data = x->i, .bytes = sizeof x->i};
  x->args[3] = (struct tir_arg){.data = x->b, .bytes = size * COUNT};
}

static bool same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static void compare(const char *type_text, const char *value, bool vector, bool exact, const char *target_text) {
  struct tir *ir = function_of(type_text, value, vector);
  struct arrays expected, actual;
  struct jit_target target;
  struct jit_options options = {.no_fast_math = exact, .verify = true};
  tir_func f = tir_find_func(ir, "main");
  tir_type type = TIR_T_VOID;
  assert_true(tir_type_parse(type_text, &type));
  size_t size = (size_t)tir_type_bits(type) / 8;
  fill(&expected, type);
  fill(&actual, type);
  assert_accepted(jit_target_parse(target_text, &target, err));
  assert_accepted(tir_run(ir, f, expected.args, 4, NULL, err));
  assert_accepted(jit_run(ir, f, &target, &options, actual.args, err));
  for (size_t i = 0; i < COUNT; i++) {
    double wanted = tir_fetch_element(type, expected.b + i * size), got = tir_fetch_element(type, actual.b + i * size);
    if (!same(wanted, got))
      fail_msg("%s, %s%s: of %g, %g, %d: %.9g, not %.9g", value, type_text, vector ? ", vector" : "", inputs[i],
               divisors[i], exponents[i], got, wanted);
  }
  tir_free(ir);
}

/* In all ways in which it is compiled. */
static void agrees(const char *type, const char *value) {
  for (int vector = 0; vector < 2; vector++)
    for (int exact = 0; exact < 2; exact++) {
      compare(type, value, vector, exact, "native");
      compare(type, value, vector, exact, "x86-64"); /* no instruction that rounds */
    }
}

static void rounds_ties_to_even(void **state) {
  (void)state;
  agrees("float32", "T.round(A[vi])");
  agrees("float64", "T.round(A[vi])");
  agrees("float16", "T.round(A[vi])");
  agrees("float32", "T.nearbyint(A[vi])");
}

static void floors_quotients(void **state) {
  (void)state;
  agrees("float32", "T.FloorDiv(A[vi], D[vi])");
  agrees("float32", "T.FloorMod(A[vi], D[vi])");
  agrees("float64", "T.FloorMod(A[vi], D[vi])");
  agrees("float16", "T.FloorMod(A[vi], D[vi])");
  agrees("float32", "T.Mod(A[vi], D[vi])");
}

static void divides_integers(void **state) {
  (void)state;
  static const char *const types[] = {"int8", "int32", "int64"};
  static const char *const values[] = {"T.truncdiv(A[vi], D[vi])", "T.truncmod(A[vi], D[vi])", "A[vi] // D[vi]",
                                       "A[vi] % D[vi]"};
  for (int t = 0; t < 3; t++)
    for (int v = 0; v < 4; v++) compare(types[t], values[v], (t + v) % 2, true, "native");
  agrees("int32", "T.truncdiv(A[vi], D[vi] * 0 - 1) + A[vi] // (D[vi] * 0 - 1)");
}

static void scales_by_powers_of_two(void **state) {
  (void)state;
  agrees("float32", "T.ldexp(A[vi], I[vi])");
  agrees("float64", "T.ldexp(A[vi], I[vi])");
  agrees("float16", "T.ldexp(A[vi], I[vi])");
  agrees("float32", "T.ldexp(A[vi], D[vi])");                                          /* its whole part */
  agrees("float32", "T.ldexp(A[vi], T.Cast(\"int64\", I[vi]) * T.int64(4294967296))"); /* none that C's int has */
  agrees("float64", "T.ldexp(A[vi], T.Cast(\"uint32\", I[vi]))");
  agrees("float64", "T.ldexp(A[vi], A[vi] * T.float64(1e300))");
}

/* What is right is known here, not only agreed upon. */
static double value_of_first(const char *value, double a, double d, int32_t i) {
  struct tir *ir = function_of("float32", value, false);
  struct arrays x;
  struct jit_target target;
  fill(&x, TIR_T_F32);
  tir_put_element(TIR_T_F32, x.a, a);
  tir_put_element(TIR_T_F32, x.d, d);
  x.i[0] = i;
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted(jit_run(ir, tir_find_func(ir, "main"), &target, NULL, x.args, err));
  tir_free(ir);
  return tir_fetch_element(TIR_T_F32, x.b);
}

static void gives_what_is_known(void **state) {
  (void)state;
  assert_true(value_of_first("T.round(A[vi])", 2.5, 1, 0) == 2);
  assert_true(value_of_first("T.round(A[vi])", -3.5, 1, 0) == -4);
  assert_true(value_of_first("T.FloorMod(A[vi], D[vi])", -7, 2, 0) == 1);
  assert_true(value_of_first("T.FloorMod(A[vi], D[vi])", 7, -2, 0) == -1);
  assert_true(value_of_first("T.FloorDiv(A[vi], D[vi])", -7, 2, 0) == -4);
  assert_true(value_of_first("T.ldexp(A[vi], I[vi])", 1.5, 1, -3) == 0.1875);
  assert_true(value_of_first("T.ldexp(A[vi], I[vi])", 1.5, 1, 10) == 1536);
}

/* ---- In a fixed order ---- */

enum { PATTERNS = 1 << 16 };

/* B[vi] = value for inputs A, of a function that keeps the order of its reductions or not. */
static struct tir *pattern_function(const char *type, const char *value, bool vector, bool fixed) {
  char parameters[200], store[300], loop[100], order[100];
  snprintf(parameters, sizeof parameters, "A: T.Buffer((%d,), \"%s\"), B: T.Buffer((%d,), \"%s\")", PATTERNS, type,
           PATTERNS, type);
  snprintf(loop, sizeof loop, "        for i in %s(16):", vector ? "T.vectorized" : "range");
  snprintf(store, sizeof store, "                B[vi] = %s", value);
  snprintf(order, sizeof order, "    T.sblock_attr({\"msched.fixed_order\": %d})", fixed);
  return read_function(parameters, "with T.sblock(\"root\"):", order, "    for o in range(4096):", loop,
                       "            with T.sblock(\"B\"):", "                vi = T.axis.spatial(65536, o * 16 + i)",
                       store);
}

/* Of the 2^32 patterns of a float32, every 65,537th from `first` on; of a float of 16 bits, all. */
static void fill_patterns(void *to, size_t size, uint32_t first) {
  for (uint32_t i = 0; i < PATTERNS; i++) {
    uint32_t pattern = first + i * (size == 4 ? PATTERNS + 1 : 1);
    memcpy((char *)to + i * size, &pattern, size);
  }
}

/* NaN has no particular bits, and the CPU's instruction that rounds to bfloat16 has no subnormal numbers. */
static bool is_any_pattern(tir_type type, const void *wanted, const void *got) {
  double x = tir_fetch_element(type, wanted), y = tir_fetch_element(type, got);
  bool small = tir_type_code(type) == TIR_BFLOAT && fabs(x) < 0x1p-126 && y == 0;
  return small || (isnan(x) && isnan(y));
}

static void compare_patterns_on(const char *type_text, const char *value, const char *target_text, char *from,
                                const char *wanted, char *got) {
  tir_type type = TIR_T_VOID;
  struct jit_target target;
  assert_true(tir_type_parse(type_text, &type));
  assert_accepted(jit_target_parse(target_text, &target, err));
  size_t size = (size_t)tir_type_bits(type) / 8, bytes = size * PATTERNS;
  struct tir_arg args[] = {{.data = from, .bytes = bytes}, {.data = got, .bytes = bytes}};
  for (int vector = 0; vector < 2; vector++) {
    struct tir *ir = pattern_function(type_text, value, vector, true);
    assert_accepted(jit_run(ir, tir_find_func(ir, "main"), &target, NULL, args, err));
    for (size_t i = 0; i < PATTERNS; i++) {
      const char *a = wanted + i * size, *b = got + i * size;
      if (memcmp(a, b, size) != 0 && !is_any_pattern(type, a, b))
        fail_msg("%s, %s%s, %s: of %a: %a, not %a", value, type_text, vector ? ", vector" : "", target_text,
                 tir_fetch_element(type, from + i * size), tir_fetch_element(type, b), tir_fetch_element(type, a));
    }
    tir_free(ir);
  }
}

/* For this machine, and for another target unless that is NULL. */
static void compare_patterns(const char *type_text, const char *value, const char *other) {
  tir_type type = TIR_T_VOID;
  assert_true(tir_type_parse(type_text, &type));
  size_t size = (size_t)tir_type_bits(type) / 8, bytes = size * PATTERNS;
  char *from = malloc(bytes), *wanted = malloc(bytes), *got = malloc(bytes);
  struct tir_arg args[] = {{.data = from, .bytes = bytes}, {.data = wanted, .bytes = bytes}};
  struct tir *ir = pattern_function(type_text, value, false, true);
  fill_patterns(from, size, 0x9e37);
  assert_accepted(tir_run(ir, tir_find_func(ir, "main"), args, 2, NULL, err));
  tir_free(ir);
  compare_patterns_on(type_text, value, "native", from, wanted, got);
  if (other) compare_patterns_on(type_text, value, other, from, wanted, got);
  free(from), free(wanted), free(got);
}

/* As a scalar and in vectors, with and without what this machine has, functions are the interpreter's bit for bit. */
static void is_the_interpreters_in_a_fixed_order(void **state) {
  (void)state;
  static const char *const values[] = {"T.exp(A[vi])", "T.exp2(A[vi])", "T.sigmoid(A[vi])", "T.tanh(A[vi])"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    compare_patterns("float32", values[i], "x86-64");
    compare_patterns("float16", values[i], NULL);
    compare_patterns("bfloat16", values[i], NULL);
  }
  compare_patterns("float32", "T.log(A[vi])", NULL);
  compare_patterns("float32", "T.log2(A[vi])", "x86-64");
  compare_patterns("bfloat16", "T.log2(A[vi])", NULL);
  compare_patterns("float32", "T.cbrt(A[vi])", NULL);
  compare_patterns("float32", "T.expm1(A[vi])", NULL);
}

/* Of zeros, the sign too: whichever operand has which. */
static void takes_zeros_by_their_sign(void **state) {
  (void)state;
  static const char *const values[] = {"T.max(A[vi], A[vi] * T.float32(-1.0))", "T.max(A[vi], T.float32(0.0))",
                                       "T.min(T.float32(0.0), A[vi])", "T.min(A[vi], T.float32(-0.0))",
                                       "T.max(T.float32(-0.0), A[vi])"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) compare_patterns("float32", values[i], "x86-64");
}

/* What is narrowed to floats of 16 bits, where the machine may have no instruction for it: of all of them. */
static void computes_with_short_floats(void **state) {
  (void)state;
  static const char *const types[] = {"float16", "bfloat16"};
  static const char *const values[] = {
      "T.Select(T.Cast(\"float32\", A[vi]) < 1.5, T.Cast(\"float32\", A[vi]), T.float32(0))",
      "T.floor(T.Cast(\"float32\", A[vi]))", "T.fabs(T.Cast(\"float32\", A[vi]))",
      "T.nearbyint(T.Cast(\"float32\", A[vi]))"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
      char cast[200];
      snprintf(cast, sizeof cast, "T.Cast(\"%s\", %s)", types[t], values[i]);
      compare_patterns(types[t], cast, "x86-64-v3");
    }
}

/* ---- Exponentials whose arguments are bounded ---- */

static const struct bounded {
  const char *argument;
  bool below; /* what is known to be so little that e^x does not overflow, nor what it is made of */
} bounded[] = {
    {"A[vi]", false},
    {"T.min(A[vi], T.float32(44.0))", true},
    {"T.min(A[vi], T.float32(44.5))", false},
    {"T.min(T.float32(-1.0), A[vi])", true},
    {"T.max(T.min(A[vi], T.float32(3.0)), T.float32(-2.0))", true},
    {"T.max(T.min(A[vi], T.float32(3.0)), A[vi])", false},
    {"T.float32(0.0) - T.fabs(A[vi])", true},
    {"T.min(T.float32(0.0) - T.fabs(A[vi]), T.float32(50.0))", false}, /* of NaN 50 */
    {"T.float32(50.0) - T.fabs(A[vi])", false},
    {"T.fabs(A[vi])", false},
    {"T.Select(A[vi] < T.float32(-20.0), A[vi], T.float32(0.0) - A[vi])", true},
    {"T.Select(A[vi] < T.float32(-90.0), A[vi], T.float32(0.0) - A[vi])", false},
    {"T.Select(A[vi] < T.float32(-20.0), T.float32(0.0) - A[vi], A[vi])", false},
    {"T.Select(A[vi] <= T.float32(-20.0), A[vi], T.float32(0.0) - A[vi])", false},
};
enum { BOUNDED = sizeof bounded / sizeof *bounded };

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  for (; (text = strstr(text, part)); text++) count++;
  return count;
}

/* On AVX2. What is not known to be little is clamped to 89, or a power of two is chosen by its sign, next to which is
 * 1.5 * 2^23 + 63: numbers with these bits. Coefficients are operands in memory: there are fewer registers than
 * constants. */
static void exponentials_do_without_what_bounds_rule_out(void **state) {
  (void)state;
  enum { CONSTANTS = 14, OPERANDS = 7 };
  for (size_t i = 0; i < BOUNDED; i++) {
    char value[200];
    snprintf(value, sizeof value, "T.exp(%s)", bounded[i].argument);
    struct tir *ir = pattern_function("float32", value, true, false);
    char *text = assembly(ir, "llvm -mcpu=x86-64-v3 -num-cores=1");
    bool any = strstr(text, "0x42b20000") || strstr(text, "0x4b40003f");
    if (any == bounded[i].below) fail_msg("%s:\n%s", value, text);
    if (!i) assert_true(count_of(text, "vbroadcastss") <= CONSTANTS - OPERANDS);
    free(text);
    tir_free(ir);
  }
}

static void run_patterns(const char *value, const char *target_text, float *from, float *to) {
  struct jit_target target;
  struct tir_arg args[] = {{.data = from, .bytes = PATTERNS * sizeof *from},
                           {.data = to, .bytes = PATTERNS * sizeof *to}};
  struct tir *ir = pattern_function("float32", value, true, false);
  assert_accepted(jit_target_parse(target_text, &target, err));
  assert_accepted(jit_run(ir, tir_find_func(ir, "main"), &target, NULL, args, err));
  tir_free(ir);
}

/* Bit for bit what they give of the same numbers, of which nothing is known. */
static void bounded_exponentials_are_those_of_any(void **state) {
  (void)state;
  static float from[PATTERNS], arguments[PATTERNS], wanted[PATTERNS], got[PATTERNS];
  fill_patterns(from, sizeof *from, 0x9e37);
  for (size_t i = 0; i < BOUNDED; i++) {
    static const char target[] = "llvm -mcpu=x86-64-v3 -num-cores=1";
    char value[200];
    if (!bounded[i].below) continue;
    snprintf(value, sizeof value, "T.exp(%s)", bounded[i].argument);
    run_patterns(bounded[i].argument, target, from, arguments);
    run_patterns("T.exp(A[vi])", target, arguments, wanted);
    run_patterns(value, target, from, got);
    for (size_t k = 0; k < PATTERNS; k++)
      if (memcmp(&wanted[k], &got[k], sizeof *got) != 0)
        fail_msg("%s of %a: %a, not %a", value, (double)from[k], (double)got[k], (double)wanted[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rounds_ties_to_even),
      cmocka_unit_test(floors_quotients),
      cmocka_unit_test(divides_integers),
      cmocka_unit_test(scales_by_powers_of_two),
      cmocka_unit_test(gives_what_is_known),
      cmocka_unit_test(is_the_interpreters_in_a_fixed_order),
      cmocka_unit_test(takes_zeros_by_their_sign),
      cmocka_unit_test(computes_with_short_floats),
      cmocka_unit_test(exponentials_do_without_what_bounds_rule_out),
      cmocka_unit_test(bounded_exponentials_are_those_of_any),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

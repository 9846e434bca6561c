/* The reference interpreter computes as the types say: wrapping, rounding, division, casts, calls by name, vectors. */
#include "unit/script.h"

#include <fenv.h>
#include <math.h>

/* The text of a type whose elements `value` holds. */
struct value {
  int64_t i;
  double f;
};

static bool try_expr(const char *type, const char *expr, const struct tir_arg *inputs, struct value *out,
                     ms_error *err) {
  char text[2048];
  snprintf(text, sizeof text,
           "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((8,), \"int32\"), F: T.Buffer((8,), \"float32\"), "
           "O: T.Buffer((1,), \"%s\")):\n    O[0] = %s\n",
           type, expr);
  struct tir *ir = tir_read(text, strlen(text), "test", err);
  if (!ir) return false;
  tir_type t = TIR_T_VOID;
  assert_true(tir_type_parse(type, &t));
  unsigned char element[8] = {0};
  size_t bytes = tir_type_code(t) == TIR_BOOL ? 1 : (size_t)tir_type_bits(t) / 8;
  struct tir_arg args[3] = {inputs[0], inputs[1], {.data = element, .bytes = bytes, .unwritten = true}};
  bool ok = tir_run(ir, tir_find_func(ir, "main"), args, 3, NULL, err);
  tir_free(ir);
  float single;
  memcpy(&out->i, element, 8);
  memcpy(&single, element, 4);
  memcpy(&out->f, element, 8);
  if (t == TIR_T_F32) out->f = single;
  if (tir_type_code(t) == TIR_INT && bytes < 8)
    out->i = (int64_t)((uint64_t)out->i << (64 - 8 * bytes)) >> (64 - 8 * bytes);
  return ok;
}

static int32_t whole[8] = {7, -7, 2, -2, 0, 2147483647, -2147483647 - 1, 100};
static float real[8] = {2.5f, -2.5f, 3.5f, 0.5f, 0.0f, 1e30f, 1.0f, -1.0f};
static const struct tir_arg inputs[2] = {{.data = whole, .bytes = sizeof whole}, {.data = real, .bytes = sizeof real}};

static void expect_int(const char *type, const char *expr, int64_t expected) {
  struct value v = {0};
  ms_error err = {0};
  if (!try_expr(type, expr, inputs, &v, &err)) fail_msg("%s: %s", expr, err.message);
  if (v.i != expected) fail_msg("%s: %lld, not %lld", expr, (long long)v.i, (long long)expected);
}

static void expect_float(const char *expr, double expected) {
  struct value v = {0};
  ms_error err = {0};
  if (!try_expr("float32", expr, inputs, &v, &err)) fail_msg("%s: %s", expr, err.message);
  bool same = isnan(expected) ? isnan(v.f) : v.f == (double)(float)expected;
  if (!same) fail_msg("%s: %.9g, not %.9g", expr, v.f, expected);
}

static void expect_refusal(const char *type, const char *expr, enum ms_code code) {
  struct value v;
  ms_error err = {0};
  if (try_expr(type, expr, inputs, &v, &err)) fail_msg("%s is not refused", expr);
  assert_string_equal(ms_code_name(err.code), ms_code_name(code));
}

static void wraps_integers(void **state) {
  (void)state;
  expect_int("int32", "A[5] + 1", INT32_MIN);
  expect_int("int32", "A[6] - 1", INT32_MAX);
  expect_int("int32", "A[5] * 2", -2);
  expect_int("int8", "T.Cast(\"int8\", A[7]) + T.Cast(\"int8\", A[7])", -56);
  expect_int("int64", "T.Cast(\"int64\", A[5]) + T.int64(1)", 2147483648);
  expect_int("uint8", "T.Cast(\"uint8\", A[1])", 249);
  expect_int("int32", "T.Cast(\"int32\", T.Cast(\"uint8\", A[1]) + T.Cast(\"uint8\", A[0]))", 0);
  expect_int("int32", "T.Cast(\"int32\", T.Cast(\"uint32\", A[1]) // T.Cast(\"uint32\", A[2]))", 2147483644);
  expect_int("bool", "T.Cast(\"uint32\", A[1]) > T.Cast(\"uint32\", A[2])", 1);
  expect_int("bool", "T.Cast(\"uint64\", A[1]) > T.Cast(\"uint64\", A[2])", 1);
}

static void divides(void **state) {
  (void)state;
  expect_int("int32", "A[1] // A[2]", -4);
  expect_int("int32", "A[1] % A[2]", 1);
  expect_int("int32", "A[0] // A[3]", -4);
  expect_int("int32", "A[0] % A[3]", -1);
  expect_int("int32", "T.truncdiv(A[1], A[2])", -3);
  expect_int("int32", "T.truncmod(A[1], A[2])", -1);
  expect_int("int32", "T.truncdiv(A[6], A[4] - 1)", INT32_MIN); /* wraps */
  expect_refusal("int32", "A[0] // A[4]", MS_RUN_DIVISION_BY_ZERO);
  expect_refusal("int32", "T.truncmod(A[0], A[4])", MS_RUN_DIVISION_BY_ZERO);
  expect_float("F[0] / F[4]", INFINITY);
}

static void compares_and_selects(void **state) {
  (void)state;
  expect_int("bool", "A[0] > A[1] and A[1] < A[2]", 1);
  expect_int("bool", "A[0] < A[1] or A[1] >= A[2]", 0);
  expect_int("bool", "not (A[0] == A[1])", 1);
  expect_int("int32", "T.max(A[0], A[1])", 7);
  expect_int("int32", "T.min(A[0], A[1])", -7);
  expect_float("T.max(F[0], F[1])", 2.5);
  expect_int("bool", "F[4] / F[4] == F[4] / F[4]", 0);
  expect_int("bool", "F[4] / F[4] != F[4]", 1);
  expect_int("bool", "T.isnan(F[4] / F[4])", 1);
  expect_int("bool", "T.isinf(F[0] / F[4])", 1);
}

/* What does not decide the value may fault. */
static void leaves_out_what_does_not_decide(void **state) {
  (void)state;
  expect_int("int32", "T.if_then_else(A[0] > 0, A[2], A[A[5]])", 2);
  expect_int("int32", "T.Select(A[0] < 0, A[A[5]], A[2])", 2);
  expect_int("bool", "A[0] < 0 and A[A[5]] > 0", 0);
  expect_int("bool", "A[0] > 0 or A[0] // A[4] > 0", 1);
  expect_refusal("int32", "T.if_then_else(A[0] > 0, A[A[5]], A[2])", MS_RUN_OUT_OF_BOUNDS);
}

static void rounds_floats(void **state) {
  (void)state;
  expect_float("T.float32(16777216.0) + F[6]", 16777216.0);
  expect_float("F[5] * F[5]", INFINITY);
  expect_float("T.Cast(\"float32\", T.Cast(\"float16\", F[6] / T.float32(3.0)))", 0.333251953125);
  expect_float("T.Cast(\"float32\", T.Cast(\"bfloat16\", F[6] / T.float32(3.0)))", 0.333984375);
  /* float16: 2048 + 1 is a tie, to even; 65520 is past the largest. */
  expect_float("T.Cast(\"float32\", T.Cast(\"float16\", F[6] * T.float32(2048.0)) + T.Cast(\"float16\", F[6]))", 2048);
  expect_float("T.Cast(\"float32\", T.Cast(\"float16\", F[6] * T.float32(65519.0)))", 65504);
  expect_float("T.Cast(\"float32\", T.Cast(\"float16\", F[6] * T.float32(65520.0)))", INFINITY);
  expect_float("T.Cast(\"float32\", T.Cast(\"float16\", F[6] * T.float32(5.960464477539063e-08)))",
               5.960464477539063e-08);
  expect_float("T.Cast(\"float32\", T.Cast(\"float16\", F[6] * T.float32(2.9e-08)))", 0);
  expect_float("T.Cast(\"float32\", T.Cast(\"bfloat16\", F[6] * T.float32(257.0)))", 256);
  expect_float("T.Cast(\"float32\", T.Cast(\"bfloat16\", F[6] * T.float32(259.0)))", 260);
  expect_float("T.Cast(\"float32\", T.Cast(\"float64\", F[6]) / T.float64(3.0))", 1.0 / 3.0);
}

static void casts(void **state) {
  (void)state;
  expect_int("int32", "T.Cast(\"int32\", F[1])", -2);
  expect_int("int32", "T.Cast(\"int32\", F[5])", INT32_MAX);
  expect_int("int8", "T.Cast(\"int8\", F[0] * T.float32(-100.0))", -128);
  expect_int("uint8", "T.Cast(\"uint8\", F[1])", 0);
  expect_int("int32", "T.Cast(\"int32\", F[4] / F[4])", 0);
  expect_int("bool", "T.Cast(\"bool\", F[3])", 1);
  expect_int("bool", "T.Cast(\"bool\", A[4])", 0);
  expect_float("T.Cast(\"float32\", A[5])", 2147483648.0);
  expect_float("T.Cast(\"float32\", T.Cast(\"uint64\", A[1]))", 18446744073709551616.0);
  expect_float("T.reinterpret(\"float32\", A[4] + 1065353216)", 1.0);
  expect_int("int32", "T.reinterpret(\"int32\", F[6])", 1065353216);
}

static void calls_functions(void **state) {
  (void)state;
  expect_float("T.exp(F[0])", exp(2.5));
  expect_float("T.exp2(F[0])", exp2(2.5));
  expect_float("T.log(F[0])", log(2.5));
  expect_float("T.log2(F[0])", log2(2.5));
  expect_float("T.sqrt(F[0])", sqrt(2.5));
  expect_float("T.rsqrt(F[0])", 1.0 / sqrt(2.5));
  expect_float("T.tanh(F[3])", tanh(0.5));
  expect_float("T.sigmoid(F[3])", 1.0 / (1.0 + exp(-0.5)));
  expect_float("T.Cast(\"float32\", T.sigmoid(T.Cast(\"float64\", F[0]) * T.float64(-288)) * T.float64(1e300))",
               exp(-720) * 1e300);
  expect_float("T.erf(F[3])", erf(0.5));
  expect_float("T.pow(F[0], F[2])", pow(2.5, 3.5));
  expect_float("T.fabs(F[1])", 2.5);
  expect_float("T.floor(F[1])", -3);
  expect_float("T.ceil(F[1])", -2);
  expect_float("T.trunc(F[1])", -2);
  expect_float("T.round(F[0])", 2);
  expect_float("T.nearbyint(F[2])", 4);
  expect_float("T.sin(F[3])", sin(0.5));
  expect_float("T.cos(F[3])", cos(0.5));
  expect_float("T.fmod(F[0], F[6])", 0.5);
  expect_float("T.infinity(\"float32\")", INFINITY);
  expect_float("T.min_value(\"float32\")", -3.4028234663852886e38);
  expect_float("T.Cast(\"float32\", T.max_value(\"float16\"))", 65504);
  expect_float("T.Cast(\"float32\", T.max_value(\"bfloat16\"))", INFINITY); /* TVM's is float32's, which rounds */
  expect_refusal("float32", "T.some_function(F[0], dtype=\"float32\")", MS_RUN_UNKNOWN_CALL);
}

static void works_on_bits(void **state) {
  (void)state;
  expect_int("int32", "T.shift_left(A[0], A[2])", 28);
  expect_int("int32", "T.shift_right(A[1], A[2])", -2);
  expect_int("int32", "T.bitwise_and(A[0], A[2])", 2);
  expect_int("int32", "T.bitwise_or(A[0], T.shift_left(A[2], A[2]))", 15);
  expect_int("int32", "T.bitwise_xor(A[0], A[2])", 5);
  expect_int("int32", "T.bitwise_not(A[0])", -8);
  expect_int("int32", "T.popcount(A[1])", 30);
  expect_int("int32", "T.clz(A[0])", 29);
  expect_int("int32", "T.likely(A[0])", 7);
}

static void run_or_fail(struct tir *ir, const struct tir_arg *args, uint32_t count) {
  ms_error err = {0};
  if (!tir_run(ir, tir_find_func(ir, "main"), args, count, NULL, &err)) fail_msg("%s", err.message);
  tir_free(ir);
}

static void runs_vectors(void **state) {
  (void)state;
  float a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8] = {0};
  struct tir_arg args[2] = {{.data = a, .bytes = sizeof a}, {.data = b, .bytes = sizeof b, .unwritten = true}};
  run_or_fail(read_function("A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")", "for i in range(2):",
                            "    B[T.Ramp(i * 4, 1, 4)] = A[T.Ramp(7 - i * 4, -1, 4)] * T.Broadcast(T.float32(2), 4)"),
              args, 2);
  for (int i = 0; i < 8; i++) assert_true(b[i] == 2 * a[7 - i]);
  /* A vector is read whole before it is written: this turns B around in place. */
  run_or_fail(read_function("B: T.Buffer((8,), \"float32\")", "B[T.Ramp(0, 1, 8)] = B[T.Ramp(7, -1, 8)]"),
              &(struct tir_arg){.data = b, .bytes = sizeof b}, 1);
  for (int i = 0; i < 8; i++) assert_true(b[i] == 2 * a[i]);
  run_or_fail(read_function("A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")",
                            "B[T.Ramp(0, 1, 8)] = T.Select(T.Ramp(0, 1, 8) < T.Broadcast(4, 8), A[T.Ramp(4, 1, 8)], "
                            "A[T.Ramp(-4, 1, 8)])"),
              args, 2);
  for (int i = 0; i < 8; i++) assert_true(b[i] == a[(i + 4) % 8]);
}

static void runs_vector_elements(void **state) {
  (void)state;
  float a[8] = {1, 2, 3, 4, 5, 6, 7, 8}, b[8] = {0};
  struct tir_arg args[2] = {{.data = a, .bytes = sizeof a}, {.data = b, .bytes = sizeof b, .unwritten = true}};
  run_or_fail(read_function("A: T.Buffer((2,), \"float32x4\"), B: T.Buffer((2,), \"float32x4\")",
                            "for i in range(2):", "    B[i] = A[1 - i]"),
              args, 2);
  for (int i = 0; i < 8; i++) assert_true(b[i] == a[(i + 4) % 8]);
}

/* Values that are computed, or folded as they are read, are alike however the host rounds. */
static void takes_no_rounding_of_the_host(void **state) {
  (void)state;
  static const int roundings[] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO, FE_TONEAREST};
  static const char *const exprs[] = {"F[2] / T.float32(3)", "T.float32(1) / T.float32(3)", "F[0] + T.float32(0.1)",
                                      "T.Cast(\"float32\", A[5])"};
  struct value near, other;
  ms_error err = {0};
  for (size_t i = 0; i < sizeof exprs / sizeof *exprs; i++) {
    assert_true(try_expr("float32", exprs[i], inputs, &near, &err));
    for (size_t r = 0; r < sizeof roundings / sizeof *roundings; r++) {
      assert_int_equal(fesetround(roundings[r]), 0);
      bool ran = try_expr("float32", exprs[i], inputs, &other, &err);
      int rounding = fegetround();
      fesetround(FE_TONEAREST);
      assert_true(ran);
      assert_int_equal(rounding, roundings[r]);
      assert_true(near.f == other.f);
    }
  }
}

static void says_whether_it_rounded(void **state) {
  (void)state;
  float a[2] = {3, 7}, b[2];
  uint16_t h[2];
  struct tir_run_report report = {0};
  struct tir_run_options options = {.report = &report};
  ms_error err = {0};
  struct tir_arg args[2] = {{.data = a, .bytes = sizeof a}, {.data = b, .bytes = sizeof b, .unwritten = true}};
  static const struct {
    const char *line;
    double epsilon;
  } singles[] = {{"B[0] = A[0] * A[1]", 0}, {"B[0] = A[0] / A[1]", 0x1p-23}, {"B[0] = T.exp(A[0])", 0x1p-23}};
  for (int i = 0; i < 3; i++) {
    struct tir *ir = read_function("A: T.Buffer((2,), \"float32\"), B: T.Buffer((2,), \"float32\")", singles[i].line);
    assert_true(tir_run(ir, 1, args, 2, &options, &err));
    assert_true(report.epsilon == singles[i].epsilon);
    tir_free(ir);
  }
  args[1] = (struct tir_arg){.data = h, .bytes = sizeof h, .unwritten = true};
  struct tir *ir = read_function("A: T.Buffer((2,), \"float32\"), B: T.Buffer((2,), \"float16\")",
                                 "B[0] = T.Cast(\"float16\", A[0] * T.float32(1365))");
  assert_true(tir_run(ir, 1, args, 2, &options, &err));
  assert_true(report.epsilon == 0x1p-10);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wraps_integers),
      cmocka_unit_test(divides),
      cmocka_unit_test(compares_and_selects),
      cmocka_unit_test(leaves_out_what_does_not_decide),
      cmocka_unit_test(rounds_floats),
      cmocka_unit_test(casts),
      cmocka_unit_test(calls_functions),
      cmocka_unit_test(works_on_bits),
      cmocka_unit_test(runs_vectors),
      cmocka_unit_test(runs_vector_elements),
      cmocka_unit_test(says_whether_it_rounded),
      cmocka_unit_test(takes_no_rounding_of_the_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Agreement of builds: what small integers do not show, real numbers do, and neither raises a false alarm. */
#include "unit/script.h"

#include "jit/jit.h"

static struct jit_target native(void) {
  struct jit_target target;
  ms_error err = {0};
  if (!jit_target_parse("native", &target, &err)) fail_msg("%s", err.message);
  return target;
}

static struct jit_kernel *kernel_of(const struct tir *ir) {
  struct jit_target target = native();
  ms_error err = {0};
  struct jit_code *code = jit_compile(ir, tir_find_func(ir, "main"), &target, NULL, &err);
  struct jit_kernel *kernel = code ? jit_load(code, &err) : NULL;
  if (!kernel) fail_msg("%s", err.message);
  jit_code_free(code);
  return kernel;
}

/* Compares `other`, built, with the function; -1: there is nothing to be compared with, and *why says why. */
static int agrees(const struct tir *ir, const struct tir *other, enum jit_data data, uint64_t seed, ms_error *why) {
  struct jit_target target = native();
  struct jit_expected expected;
  tir_func f = tir_find_func(ir, "main");
  int got = jit_expect(ir, f, &target, data, seed, NULL, &expected, why);
  if (got <= 0) return -1;
  struct jit_kernel *kernel = kernel_of(other);
  bool same = jit_kernel_agrees(&expected, ir, f, kernel, NULL, NULL, why);
  assert_true(expected.buffers >= 1 && expected.elements >= 1);
  jit_kernel_free(kernel);
  jit_expected_free(&expected);
  return same;
}

/* A product of n x k and k x n; elements of type in, sums of type sum, results of type out. */
static struct tir *product(int n, int k, const char *in, const char *sum, const char *out) {
  char text[2000];
  ms_error err = {0};
  snprintf(text, sizeof text,
           "@T.prim_func(s_tir=True)\n"
           "def main(A: T.Buffer((%d, %d), \"%s\"), B: T.Buffer((%d, %d), \"%s\"), C: T.Buffer((%d, %d), \"%s\")):\n"
           "    S = T.sblock_alloc_buffer((%d, %d), \"%s\")\n"
           "    for i, j, k in T.grid(%d, %d, %d):\n"
           "        with T.sblock(\"S\"):\n"
           "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])\n"
           "            with T.init():\n"
           "                S[vi, vj] = T.Cast(\"%s\", T.int32(0))\n"
           "            S[vi, vj] = S[vi, vj] + T.Cast(\"%s\", A[vi, vk]) * T.Cast(\"%s\", B[vk, vj])\n"
           "    for i, j in T.grid(%d, %d):\n"
           "        with T.sblock(\"C\"):\n"
           "            vi, vj = T.axis.remap(\"SS\", [i, j])\n"
           "            C[vi, vj] = T.Cast(\"%s\", S[vi, vj])\n",
           n, k, in, k, n, in, n, n, out, n, n, sum, n, n, k, sum, sum, sum, n, n, out);
  struct tir *ir = tir_read(text, strlen(text), "product", &err);
  if (!ir) fail_msg("%s", err.message);
  return ir;
}

static void coarse_sums_show_on_real_numbers(void **state) {
  (void)state;
  static const struct {
    int n, k;
    const char *sum;
    bool exact; /* on small integers */
  } coarse[] = {{16, 64, "float16", true},
                {16, 8, "float16", true},
                {16, 300, "bfloat16", false},
                {288, 256, "float16", true}}; /* so large that only samples are computed */
  for (size_t i = 0; i < sizeof coarse / sizeof *coarse; i++) {
    struct tir *ir = product(coarse[i].n, coarse[i].k, "float32", "float32", "float32");
    struct tir *other = product(coarse[i].n, coarse[i].k, "float32", coarse[i].sum, "float32");
    ms_error why = {0};
    assert_int_equal(agrees(ir, other, JIT_WHOLE, 1, &why), coarse[i].exact);
    assert_int_equal(agrees(ir, other, JIT_REAL, 1, &why), false);
    assert_non_null(strstr(why.message, "is expected"));
    tir_free(ir);
    tir_free(other);
  }
}

/* Inputs of 16 bits, whose products a sum in float32 holds and one of 16 bits does not. */
static void coarse_sums_of_short_floats_show(void **state) {
  (void)state;
  struct tir *ir = product(16, 256, "float16", "float32", "float32");
  struct tir *other = product(16, 256, "float16", "float16", "float32");
  ms_error why = {0};
  assert_int_equal(agrees(ir, ir, JIT_REAL, 1, &why), true);
  int same = agrees(ir, other, JIT_REAL, 1, &why);
  if (same != false) fail_msg("%d: %s", same, why.message);
  tir_free(ir);
  tir_free(other);
}

static void products_of_every_type_agree(void **state) {
  (void)state;
  static const char *const types[][3] = {{"float32", "float32", "float32"},   {"float64", "float64", "float64"},
                                         {"float16", "float16", "float16"},   {"float16", "float32", "float16"},
                                         {"bfloat16", "float32", "bfloat16"}, {"bfloat16", "bfloat16", "bfloat16"},
                                         {"int8", "int32", "int32"},          {"float16", "float32", "float32"}};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    struct tir *ir = product(24, 120, types[i][0], types[i][1], types[i][2]);
    for (uint64_t seed = 1; seed <= 3; seed++) {
      ms_error why = {0};
      if (agrees(ir, ir, JIT_WHOLE, seed, &why) != true || agrees(ir, ir, JIT_REAL, seed, &why) == false)
        fail_msg("%s in %s, seed %d: %s", types[i][0], types[i][1], (int)seed, why.message);
    }
    tir_free(ir);
  }
}

static struct tir *softmax(void) {
  return read_function(
      "A: T.Buffer((32, 200), \"float32\"), C: T.Buffer((32, 200), \"float32\")",
      "M = T.sblock_alloc_buffer((32,), \"float32\")", "S = T.sblock_alloc_buffer((32,), \"float32\")",
      "for i, k in T.grid(32, 200):", "    with T.sblock(\"M\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            M[vi] = T.float32(-3e38)", "        M[vi] = T.max(M[vi], A[vi, vk])",
      "for i, k in T.grid(32, 200):", "    with T.sblock(\"S\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            S[vi] = T.float32(0)", "        S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])",
      "for i, k in T.grid(32, 200):", "    with T.sblock(\"C\"):", "        vi, vk = T.axis.remap(\"SS\", [i, k])",
      "        C[vi, vk] = T.exp(A[vi, vk] - M[vi]) / S[vi]");
}

/* Scores that are sums, of which an exponential is taken: what the sums lose is enlarged. */
static struct tir *attention(void) {
  return read_function(
      "Q: T.Buffer((16, 64), \"float32\"), K: T.Buffer((16, 64), \"float32\"), C: T.Buffer((16, 16), \"float32\")",
      "S = T.sblock_alloc_buffer((16, 16), \"float32\")", "for i, j, k in T.grid(16, 16, 64):",
      "    with T.sblock(\"S\"):", "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
      "        with T.init():", "            S[vi, vj] = T.float32(0)",
      "        S[vi, vj] = S[vi, vj] + Q[vi, vk] * K[vj, vk] * T.float32(4)",
      "for i, j in T.grid(16, 16):", "    with T.sblock(\"C\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",
      "        C[vi, vj] = T.exp(S[vi, vj])");
}

/* The variance may be negative, and its root then no number: on both sides. */
static struct tir *batch_norm(void) {
  return read_function(
      "X: T.Buffer((16, 64), \"float32\"), M: T.Buffer((16,), \"float32\"), V: T.Buffer((16,), "
      "\"float32\"), G: T.Buffer((16,), \"float32\"), Y: T.Buffer((16, 64), \"float32\")",
      "for i, j in T.grid(16, 64):", "    with T.sblock(\"Y\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",
      "        Y[vi, vj] = T.max((X[vi, vj] - M[vi]) / T.sqrt(V[vi] + T.float32(1e-5)) * G[vi], "
      "T.float32(0))");
}

/* A reciprocal of sums, some of which come near zero. */
static struct tir *reciprocal(void) {
  return read_function(
      "A: T.Buffer((400, 32), \"float32\"), C: T.Buffer((400,), \"float32\")",
      "S = T.sblock_alloc_buffer((400,), \"float32\")",
      "for i, k in T.grid(400, 32):", "    with T.sblock(\"S\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
      "        with T.init():", "            S[vi] = T.float32(0)", "        S[vi] = S[vi] + A[vi, vk]",
      "for i in range(400):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(400, i)",
      "        C[vi] = T.float32(1) / S[vi]");
}

/* The module, with the inner loop of a block cut and its two parts exchanged: sums are taken in another order. */
static struct tir *in_another_order(const struct tir *ir, const char *name) {
  struct tir *other = tir_new();
  tir_copy(other, ir);
  ms_error err = {0};
  tir_block block = block_named(other, name);
  tir_loop loops[8], parts[2];
  uint32_t count = tir_loops_of(other, block, loops, 8);
  tir_expr factors[2] = {TIR_NONE, tir_int(other, TIR_T_I32, 8)};
  if (!tir_split(other, loops[count - 1], factors, 2, true, false, parts, &err)) fail_msg("%s", err.message);
  tir_loop order[2] = {parts[1], parts[0]};
  if (!tir_reorder(other, order, 2, &err)) fail_msg("%s", err.message);
  return other;
}

static void other_orders_of_computing_agree(void **state) {
  (void)state;
  const struct {
    struct tir *ir;
    const char *block;
  } all[] = {{softmax(), "S"},
             {attention(), "S"},
             {batch_norm(), "Y"},
             {reciprocal(), "S"},
             {product(16, 200, "float32", "float32", "float32"), "S"},
             {product(16, 200, "float16", "float32", "float16"), "S"},
             {product(16, 64, "float16", "float16", "float16"), "S"},
             {product(16, 64, "float64", "float64", "float64"), "S"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct tir *other = in_another_order(all[i].ir, all[i].block);
    for (uint64_t seed = 1; seed <= 5; seed++) {
      ms_error why = {0};
      if (agrees(all[i].ir, other, JIT_REAL, seed, &why) != true)
        fail_msg("function %d, seed %d: %s", (int)i, (int)seed, why.message);
    }
    tir_free(other);
    tir_free(all[i].ir);
  }
}

/* Where rounding decides between two integers or two places, real numbers are not asked. */
static void steps_are_left_out(void **state) {
  (void)state;
  struct tir *all[] = {
      read_function(
          "A: T.Buffer((64, 64), \"float32\"), M: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), "
          "\"int32\")",
          "for i, k in T.grid(64, 64):", "    with T.sblock(\"M\"):", "        vi, vk = T.axis.remap(\"SR\", [i, k])",
          "        with T.init():", "            M[vi] = T.float32(-3e38)", "            C[vi] = -1",
          "        v_place: T.int32 = T.Select(A[vi, vk] > M[vi], vk, C[vi])",
          "        v_most: T.float32 = T.max(M[vi], A[vi, vk])", "        C[vi] = v_place", "        M[vi] = v_most"),
      read_function("A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"int8\")",
                    "for i in range(64):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(64, i)",
                    "        C[vi] = T.Cast(\"int8\", T.round(A[vi] * T.float32(100)))"),
      read_function("A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float32\")",
                    "for i in range(64):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(64, i)",
                    "        C[vi] = A[vi] - T.floor(A[vi])")};
  for (size_t i = 0; i < 3; i++) {
    ms_error why = {0};
    assert_int_equal(agrees(all[i], all[i], JIT_REAL, 1, &why), -1);
    assert_int_equal(why.code, MS_NOT_COMPARABLE);
    if (agrees(all[i], all[i], JIT_WHOLE, 1, &why) != true) fail_msg("function %d: %s", (int)i, why.message);
    tir_free(all[i]);
  }
}

/* What would run for hours is not begun. */
static void what_takes_too_long_is_left_out(void **state) {
  (void)state;
  struct tir *ir = read_function("C: T.Buffer((8,), \"float32\")",
                                 "for i, k in T.grid(8, 2000000000):", "    C[i] = C[i] + T.float32(1)");
  ms_error why = {0};
  assert_int_equal(agrees(ir, ir, JIT_WHOLE, 1, &why), -1);
  assert_int_equal(why.code, MS_NOT_COMPARABLE);
  assert_non_null(strstr(why.message, "steps"));
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(coarse_sums_show_on_real_numbers),
      cmocka_unit_test(coarse_sums_of_short_floats_show),
      cmocka_unit_test(products_of_every_type_agree),
      cmocka_unit_test(other_orders_of_computing_agree),
      cmocka_unit_test(steps_are_left_out),
      cmocka_unit_test(what_takes_too_long_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* What is made and compared on a device (jit/cuda/device/check.c), on the fake driver: the host's numbers, bit for bit,
 * and the host's rule; and what comes of a candidate that is judged there. */
#include "unit/cuda.h"

#include "jit/backend.h"

#include <math.h>

/* ---- The kernels ---- */

struct bench {
  struct jit_target target;
  const struct jit_backend *backend;
  struct jit_device *device;
  struct jit_checker *checker;
  void *code;
};

static struct bench open_bench(void) {
  struct bench b;
  size_t bytes;
  ms_error err = {0};
  assert_true(jit_target_parse(CUDA_TARGET, &b.target, &err));
  b.backend = jit_backend_of(&b.target);
  if (!b.backend->open(&b.target, 0, &b.device, &err)) fail_msg("%s", err.message);
  b.code = b.backend->checks->compile(&b.target, &bytes, &err);
  b.checker = b.code ? b.backend->checks->open(b.device, b.code, &err) : NULL;
  if (!b.checker) fail_msg("%s", err.message);
  return b;
}

static void close_bench(struct bench *b) {
  b->backend->checks->close(b->checker);
  free(b->code);
}

static struct tir *with_all_types(void) {
  return read_function(
      "A: T.Buffer((9001,), \"float16\"), B: T.Buffer((9001,), \"bfloat16\"), C: T.Buffer((9001,), "
      "\"float32\"), D: T.Buffer((9001,), \"float64\"), E: T.Buffer((9001,), \"int8\"), F: "
      "T.Buffer((9001,), \"uint8\"), G: T.Buffer((9001,), \"int16\"), H: T.Buffer((9001,), \"int32\"), "
      "I: T.Buffer((9001,), \"uint32\"), J: T.Buffer((9001,), \"int64\"), K: T.Buffer((9001,), \"bool\"), "
      "L: T.Buffer((9001,), \"float8_e4m3fn\"), M: T.Buffer((9001,), \"float8_e5m2\")",
      "for i in range(9001):", "    C[i] = T.float32(1)");
}

static struct jit_contents contents_of(const struct tir *ir, uint32_t parameter) {
  tir_type type =
      tir_buffer_at(ir, ir->params.at[ir->funcs.at[tir_find_func(ir, "main")].params.first + parameter].buffer)->type;
  return (struct jit_contents){.type = type, .elements = 9001, .seed = 7, .stream = parameter};
}

static void makes_the_same_numbers(void **state) {
  (void)state;
  struct bench b = open_bench();
  struct tir *ir = with_all_types();
  tir_func f = tir_find_func(ir, "main");
  static const enum jit_filling ways[] = {JIT_FILL_WHOLE, JIT_FILL_REAL, JIT_FILL_NUDGED};
  ms_error err = {0};
  for (int w = 0; w < 3; w++) {
    struct tir_arguments expected;
    bool real = ways[w] != JIT_FILL_WHOLE;
    assert_true(real ? tir_make_real_arguments(ir, f, 7, &expected, &err)
                     : tir_make_arguments(ir, f, 7, &expected, &err));
    if (ways[w] == JIT_FILL_NUDGED) tir_nudge_arguments(ir, f, 7, &expected);
    for (uint32_t i = 0; i < expected.count; i++) {
      struct jit_contents contents = contents_of(ir, i);
      size_t bytes = expected.args[i].bytes;
      void *at = b.backend->memory->get(b.device, bytes, &err);
      uint8_t *back = malloc(bytes);
      if (ways[w] == JIT_FILL_NUDGED)
        assert_true(b.backend->checks->fill(b.checker, at, &contents, JIT_FILL_REAL, &err));
      if (ways[w] != JIT_FILL_NUDGED || tir_type_is_float(contents.type))
        assert_true(b.backend->checks->fill(b.checker, at, &contents, ways[w], &err));
      assert_true(b.backend->memory->read(b.device, back, at, bytes, &err));
      assert_memory_equal(back, expected.args[i].data, bytes);
      assert_true(b.backend->memory->check_guards(b.device, at, bytes, &err));
      b.backend->memory->release(b.device, at, bytes);
      free(back);
    }
    tir_arguments_free(&expected);
  }
  tir_free(ir);
  close_bench(&b);
}

/* Elements of two buffers of a type, the rest of which is alike. */
struct pair {
  double x, y;
};

/* Compares buffers of 9001 twos in which these stand from element 5000 on. */
static struct jit_difference compare(const struct bench *b, tir_type type, const struct pair *pairs, uint32_t count,
                                     double slack) {
  enum { ALL = 9001, FROM = 5000 };
  const struct jit_contents contents = {.type = type, .elements = ALL, .seed = 1};
  size_t size = (size_t)tir_type_bits(type) / 8;
  uint8_t *x = malloc(ALL * size), *y = malloc(ALL * size);
  struct jit_difference found;
  ms_error err = {0};
  for (uint32_t i = 0; i < ALL; i++) tir_put_element(type, x + i * size, 2), tir_put_element(type, y + i * size, 2);
  for (uint32_t i = 0; i < count; i++) {
    tir_put_element(type, x + (FROM + i) * size, pairs[i].x);
    tir_put_element(type, y + (FROM + i) * size, pairs[i].y);
  }
  void *at = b->backend->memory->get(b->device, ALL * size, &err),
       *to = b->backend->memory->get(b->device, ALL * size, &err);
  assert_true(at && to && b->backend->memory->write(b->device, at, x, ALL * size, &err));
  assert_true(b->backend->memory->write(b->device, to, y, ALL * size, &err));
  if (!b->backend->checks->compare(b->checker, at, to, &contents, slack, &found, &err)) fail_msg("%s", err.message);
  b->backend->memory->release(b->device, at, ALL * size);
  b->backend->memory->release(b->device, to, ALL * size);
  free(x), free(y);
  return found;
}

static void compares_by_the_host_s_rule(void **state) {
  (void)state;
  struct bench b = open_bench();
  static const tir_type floats[] = {TIR_TYPE(TIR_FLOAT, 16, 1), TIR_TYPE(TIR_BFLOAT, 16, 1), TIR_T_F32,
                                    TIR_TYPE(TIR_FLOAT, 64, 1)};
  const double inf = INFINITY, nan = NAN;
  static const struct pair near[] = {
      {1, 1.25}, {-1, -1.5}, {0, -0.0}, {0x1p-14, 0x1p-16}}; /* the last: subnormal in float16 */
  const struct pair odd[] = {{nan, nan}, {inf, inf}, {-inf, -inf}, {1, nan}, {nan, 1},
                             {inf, 1},   {1, -inf},  {inf, -inf},  {8, 8}};
  for (int t = 0; t < 4; t++) {
    struct jit_difference d = compare(&b, floats[t], near, 4, 0.25);
    assert_int_equal(d.elements, 1);
    assert_int_equal(d.first, 5001);
    assert_int_equal(d.most, 5001);
    assert_true(d.off == 0.5 && d.largest == 2 && d.nans == 0 && d.fractions == 1);
    d = compare(&b, floats[t], near, 4, 0);
    assert_int_equal(d.elements, 3);
    assert_int_equal(d.first, 5000);
    d = compare(&b, floats[t], odd, 9, 1e30);
    assert_int_equal(d.elements, 5);
    assert_int_equal(d.first, 5003);
    assert_true(isinf(d.off) && d.nans == 1 && d.largest == 8 && d.fractions == 6);
    d = compare(&b, floats[t], NULL, 0, 0);
    assert_true(d.elements == 0 && d.off == 0 && d.largest == 2 && d.fractions == 0);
  }
  static const tir_type bytes[] = {TIR_TYPE(TIR_E4M3, 8, 1), TIR_TYPE(TIR_E5M2, 8, 1)};
  for (int t = 0; t < 2; t++) {
    const struct pair of_bytes[] = {{1, 1.25}, {-1, -1.5}, {0x1p-9, 0}, {nan, nan}, {nan, 1}, {-448, -448}};
    struct jit_difference d = compare(&b, bytes[t], of_bytes, 6, 0.25);
    assert_true(d.elements == 2 && d.first == 5001 && d.most == 5004 && isinf(d.off) && d.nans == 0 &&
                d.largest == 448);
    d = compare(&b, bytes[t], of_bytes, 6, 0);
    assert_int_equal(d.elements, 4);
  }
  static const struct pair whole[] = {{1, 2}, {3, 3}, {4, 1}};
  static const tir_type integers[] = {TIR_TYPE(TIR_INT, 8, 1), TIR_TYPE(TIR_UINT, 16, 1), TIR_T_I32,
                                      TIR_TYPE(TIR_INT, 64, 1)};
  for (int t = 0; t < 4; t++) {
    struct jit_difference d = compare(&b, integers[t], whole, 3, 1e30);
    assert_int_equal(d.elements, 2);
    assert_int_equal(d.first, 5000);
    assert_true(isinf(d.off));
  }
  close_bench(&b);
}

static void sees_what_only_is_read_written(void **state) {
  (void)state;
  struct bench b = open_bench();
  struct jit_contents contents = {.type = TIR_T_F32, .elements = 9001, .seed = 3, .stream = 2};
  struct jit_difference found;
  ms_error err = {0};
  size_t bytes = 9001 * 4;
  uint8_t byte = 0x11;
  void *at = b.backend->memory->get(b.device, bytes, &err);
  for (int real = 0; real < 2; real++) {
    contents.real = real;
    assert_true(b.backend->checks->fill(b.checker, at, &contents, real ? JIT_FILL_REAL : JIT_FILL_WHOLE, &err));
    assert_true(b.backend->checks->compare(b.checker, NULL, at, &contents, 0, &found, &err));
    assert_int_equal(found.elements, 0);
    assert_true(b.backend->memory->write(b.device, (char *)at + 4 * 9000 + 1, &byte, 1, &err));
    assert_true(b.backend->checks->compare(b.checker, NULL, at, &contents, 0, &found, &err));
    assert_int_equal(found.elements, 1);
    assert_int_equal(found.first, 9000);
  }
  b.backend->memory->release(b.device, at, bytes);
  close_bench(&b);
}

/* ---- Candidates ---- */

/* More steps than the interpreter does soon. */
static struct tir *product(void) {
  return read_function(
      "A: T.Buffer((96, 512), \"float32\"), B: T.Buffer((512, 64), \"float32\"), C: T.Buffer((96, 64), "
      "\"float32\")",
      "for i, j, k in T.grid(96, 64, 512):", "    with T.sblock(\"C\"):",
      "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
      "        with T.init():", "            C[vi, vj] = T.float32(0)",
      "        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]");
}

/* The same, whose loops are not around one block alone. */
static struct tir *two_in_a_loop(void) {
  return read_function(
      "A: T.Buffer((96, 512), \"float32\"), B: T.Buffer((512, 64), \"float32\"), D: T.Buffer((96, 64), "
      "\"float32\")",
      "C = T.sblock_alloc_buffer((96, 64), \"float32\")", "for i in range(96):", "    for j, k in T.grid(64, 512):",
      "        with T.sblock(\"C\"):", "            vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
      "            with T.init():", "                C[vi, vj] = T.float32(0)",
      "            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]",
      "    for j in range(64):", "        with T.sblock(\"D\"):", "            vi, vj = T.axis.remap(\"SS\", [i, j])",
      "            D[vi, vj] = C[vi, vj] + T.float32(1)");
}

#define LOOPS "[\"GetSBlock\", [], [\"C\", \"main\"], [\"b\"]], [\"GetLoops\", [\"b\"], [], [\"i\", \"j\", \"k\"]]"
static const char columns[] = "[[" LOOPS ", [\"Bind\", [\"j\"], [\"threadIdx.x\"], []]], []]";
static const char rows[] = "[[" LOOPS ", [\"Bind\", [\"i\"], [\"threadIdx.x\"], []]], []]";
static const char coarse[] =
    "[[" LOOPS ", [\"CacheWrite\", [\"b\", []], [0, \"local\"], [\"c\"]], [\"UnsafeSetDType\", [\"b\"], "
    "[0, \"float16\"], []], [\"Bind\", [\"i\"], [\"threadIdx.x\"], []], [\"ReverseComputeAt\", [\"c\", "
    "\"i\"], [true, -1], []]], []]";

/* One is found wrong, of 64 threads; the next is not. remark: the expected remark on the reference. */
static void judges(struct tir *ir, const char *faults, enum jit_outcome outcome, const char *reason, const char *first,
                   const char *remark) {
  const struct jit_measurer_options options = {.censor_factor = -1};
  setenv("FAKE_CUDA_FAULTS", faults, 1);
  struct jit_measurer *m = start_measurer_for(CUDA_TARGET, ir, &options);
  submit(m, 1, first);
  struct jit_result r = next_result(m);
  expect(&r, 1, outcome, reason);
  assert_int_equal(jit_measurer_reference(m, 0, NULL), 1);
  if (*remark ? !strstr(jit_measurer_remark(m, 0), remark) : *jit_measurer_remark(m, 0) != 0)
    fail_msg("\"%s\" is said, not \"%s\"", jit_measurer_remark(m, 0), remark);
  if (first != rows) {
    submit(m, 2, rows);
    r = next_result(m);
    expect(&r, 2, JIT_MEASURED, NULL);
  }
  jit_measurer_free(m);
  unsetenv("FAKE_CUDA_FAULTS");
  tir_free(ir);
}

static void judges_on_the_device(void **state) {
  (void)state;
  judges(product(), "", JIT_MEASURED, NULL, columns, "");
  judges(product(), "64=wrong2", JIT_WRONG, "C[0, 0]: ", columns, "");
  judges(product(), "64=nan2", JIT_NAN, "was computed", columns, "");
  judges(product(), "64=wrong0", JIT_WRONG, "A, which is only read, was written: 1 of its 49152 elements", columns, "");
  judges(product(), "64=beyond2", JIT_ILLEGAL_ADDRESS, "past a buffer", columns, "");
}

/* Whole numbers do not show it. */
static void finds_coarse_sums_on_the_device(void **state) {
  (void)state;
  judges(product(), "", JIT_WRONG, "on real numbers, C[", coarse, "");
}

/* Arguments, their real numbers and what is expected do not fit at once: a buffer holds one after another. */
static void judges_in_little_memory(void **state) {
  (void)state;
  static const char said[] = "the device has little memory for it: arguments are made again before each run";
  setenv("FAKE_CUDA_MEMORY", "560000", 1);
  judges(product(), "", JIT_MEASURED, NULL, columns, said);
  judges(product(), "64=wrong2", JIT_WRONG, "C[0, 0]: ", columns, said);
  judges(product(), "64=wrong0", JIT_WRONG, "A, which is only read, was written: 1 of its 49152 elements", columns,
         said);
  judges(product(), "64=beyond2", JIT_ILLEGAL_ADDRESS, "past a buffer", columns, said);
  judges(product(), "", JIT_WRONG, "on real numbers, C[", coarse, said);
  unsetenv("FAKE_CUDA_MEMORY");
}

/* What is no nest of loops over elements and sums, and a reference that computes something else. */
static void says_where_it_compares_on_the_host(void **state) {
  (void)state;
  judges(two_in_a_loop(), "", JIT_MEASURED, NULL, rows, "on the host, not on the device: ");
}

static void does_not_trust_its_reference(void **state) {
  (void)state;
  setenv("FAKE_CUDA_SKIPPED", "reference_of_", 1);
  judges(product(), "64=wrong2", JIT_WRONG, "C[0, 0]: ", columns, "on the host, not on the device: C[");
  unsetenv("FAKE_CUDA_SKIPPED");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(makes_the_same_numbers),          cmocka_unit_test(compares_by_the_host_s_rule),
      cmocka_unit_test(sees_what_only_is_read_written),  cmocka_unit_test(judges_on_the_device),
      cmocka_unit_test(finds_coarse_sums_on_the_device), cmocka_unit_test(says_where_it_compares_on_the_host),
      cmocka_unit_test(does_not_trust_its_reference),    cmocka_unit_test(judges_in_little_memory),
  };
  need_fakes();
  setenv("FAKE_NVRTC_KEEPS", "1", 1); /* equal sources are compiled once */
  return cmocka_run_group_tests(tests, open_folder, close_folder);
}

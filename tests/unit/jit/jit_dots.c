/* Sums of products of short types, in vectorized loops, become dot products of the machine's (case/lower/lane_dots):
 * compiled for this CPU they compute the same of extremes, in a fixed order floats stay as they are, and calls that are
 * written so are checked. */
#include "unit/script.h"

#include "jit/jit.h"

struct shape {
  const char *x, *y, *sum; /* types */
  int rows, columns, depth, width;
  bool copies;      /* the second operand is copied into the order of dot products first */
  const char *part; /* of the second operand's element, in two texts that stand around it; NULL: all of it */
};

/* C[i, j] += A[i, k] * B[k, j] by neighbours; B lies so, or is copied so. */
static struct tir *product_of(struct shape s) {
  char params[240], copy[400], update[500], alloc[100], element[40], part[120];
  int groups = s.depth / s.width;
  snprintf(params, sizeof params,
           "A: T.Buffer((%d, %d), \"%s\"), B: T.Buffer((%d, %d%s), \"%s\"), C: T.Buffer((%d, %d), \"%s\")", s.rows,
           s.depth, s.x, s.copies ? s.depth : groups, s.columns,
           s.copies       ? ""
           : s.width == 4 ? ", 4"
                          : ", 2",
           s.y, s.rows, s.columns, s.sum);
  snprintf(alloc, sizeof alloc, "P = T.alloc_buffer((%d, %d, %d), \"%s\")", groups, s.columns, s.width, s.y);
  snprintf(copy, sizeof copy, "for k, j in T.grid(%d, %d):\n        P[k // %d, j, k %% %d] = B[k, j]", s.depth,
           s.columns, s.width, s.width);
  snprintf(element, sizeof element, "%s[k0, j, p]", s.copies ? "P" : "B");
  snprintf(part, sizeof part, "%s%s%s", s.part ? s.part : "", element, s.part ? s.part + strlen(s.part) + 1 : "");
  snprintf(update, sizeof update,
           "for i in range(%d):\n        for k0 in range(%d):\n            for j in T.vectorized(%d):\n                "
           "for p in range(%d):\n"
           "                    C[i, j] = C[i, j] + T.Cast(\"%s\", A[i, k0 * %d + p]) * T.Cast(\"%s\", %s)",
           s.rows, groups, s.columns, s.width, s.sum, s.width, s.sum, part);
  return s.copies ? read_function(params, alloc, copy, update) : read_function(params, update);
}

#define HIGH "T.bitwise_and(T.shift_right(\0, T.uint8(4)), T.uint8(15))"
#define LOW  "T.bitwise_and(\0, T.uint8(7))"
static const char all[] = "x86-64-v4,+avx512vnni,+avx512bf16";
static const struct shape shapes[] = {
    {"uint8", "int8", "int32", 3, 64, 16, 4, false},         {"int8", "int8", "int32", 3, 32, 8, 4, false},
    {"uint8", "uint8", "int32", 2, 48, 8, 4, true},          {"int8", "uint8", "int32", 1, 32, 12, 4, true},
    {"int8", "int8", "uint32", 2, 32, 8, 4, true},           {"int8", "int8", "int32", 1, 32, 8, 4, false},
    {"int8", "uint8", "int32", 3, 64, 16, 4, false, HIGH},   {"uint8", "uint8", "int32", 1, 32, 8, 4, true, HIGH},
    {"int8", "uint8", "int32", 2, 32, 8, 4, false, LOW},     {"uint8", "int8", "int32", 3, 32, 16, 2, false},
    {"int8", "uint8", "int32", 2, 48, 8, 2, true},           {"int8", "int8", "int32", 1, 32, 12, 2, false},
    {"bfloat16", "bfloat16", "float32", 3, 32, 8, 2, false}, {"bfloat16", "bfloat16", "float32", 2, 48, 6, 2, true}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Floats in the order that is written are added one by one. */
static void a_fixed_order_is_kept(void **state) {
  (void)state;
  struct jit_options options = {.no_fast_math = true};
  for (int s = 0; s < SHAPES; s++) {
    struct jit_target target;
    struct tir *ir = product_of(shapes[s]);
    assert_accepted(jit_target_parse(all, &target, err));
    char *text = NULL;
    size_t length = 0;
    options.dump_after = "lane_dots", options.dump = open_memstream(&text, &length);
    assert_non_null(options.dump);
    struct jit_code *code = jit_compile(ir, tir_find_func(ir, "main"), &target, &options, NULL);
    fclose(options.dump);
    assert_non_null(code);
    assert_int_equal(shapes[s].width == 4, strstr(text, "dot_lanes") != NULL);
    jit_code_free(code);
    free(text);
    tir_free(ir);
  }
}

/* Extremes of bytes, whose sums of two products and of four leave 16 bits. */
static void fill_with_extremes(const struct shape *s, struct tir_arguments *arguments) {
  for (int a = 0; a < 2 && s->sum[0] == 'i'; a++) {
    unsigned char *bytes = arguments->args[a].data;
    int64_t count = a ? (int64_t)s->depth * s->columns : (int64_t)s->rows * s->depth;
    for (int64_t i = 0; i < count; i++) bytes[i] = i % 3 ? 0x80 : i % 2 ? 0xff : 0x7f;
  }
}

/* On this CPU, for which target it is. */
static void run_for(const char *name) {
  for (int s = 0; s < SHAPES; s++) {
    struct jit_target target;
    struct tir *ir = product_of(shapes[s]);
    tir_func f = tir_find_func(ir, "main");
    struct tir_arguments expected, actual;
    struct tir_run_report report = {0};
    assert_accepted(jit_target_parse(name, &target, err));
    assert_accepted(tir_make_arguments(ir, f, 3, &expected, err));
    fill_with_extremes(&shapes[s], &expected);
    tir_copy_arguments(ir, f, &expected, &actual);
    assert_accepted(tir_run(ir, f, expected.args, expected.count, &(struct tir_run_options){.report = &report}, err));
    assert_accepted(jit_run(ir, f, &target, NULL, actual.args, err));
    ms_error err = {0};
    if (!tir_same_arguments(ir, f, &expected, &actual, tir_tolerance(ir, f, report.epsilon), &err))
      fail_msg("%s x %s for %s: %s", shapes[s].x, shapes[s].y, name, err.message);
    tir_arguments_free(&expected);
    tir_arguments_free(&actual);
    tir_free(ir);
  }
}

static void runs_equal(void **state) {
  (void)state;
  static const char *const narrower[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
  run_for("native");
  for (size_t i = 0; i < sizeof narrower / sizeof *narrower; i++) {
    struct jit_target target;
    if (jit_target_parse(narrower[i], &target, &(ms_error){0}) && jit_target_runs_here(&target, &(ms_error){0}))
      run_for(narrower[i]);
  }
}

/* The interpreter, of what is lowered for targets that have dot products of some signs: those that they have none of
 * are computed by those that they have. */
static void other_signs_are_turned(void **state) {
  (void)state;
  enum { MIXED = 1 << TIR_DOT_BYTES, EQUAL = 1 << TIR_DOT_SIGNED | 1 << TIR_DOT_UNSIGNED, ANY = MIXED | EQUAL };
  static const unsigned had[] = {MIXED, EQUAL, ANY};
  for (size_t d = 0; d < sizeof had / sizeof *had; d++)
    for (int s = 0; s < SHAPES; s++) {
      if (shapes[s].width != 4) continue;
      struct tir *ir = product_of(shapes[s]), *lowered = tir_new();
      tir_func f = tir_find_func(ir, "main");
      struct tir_arguments expected, got;
      char *text = NULL;
      size_t length = 0;
      struct tir_lower_options options = {.vector_bits = 128, .vector_registers = 32, .dots = had[d], .verify = true};
      assert_accepted(tir_make_arguments(ir, f, 3, &expected, err));
      fill_with_extremes(&shapes[s], &expected);
      tir_copy_arguments(ir, f, &expected, &got);
      assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
      tir_copy(lowered, ir);
      options.dump_after = "lane_dots", options.dump = open_memstream(&text, &length);
      assert_non_null(options.dump);
      assert_accepted(tir_lower(lowered, f, &options, err));
      fclose(options.dump);
      assert_non_null(strstr(text, "dot_lanes"));
      assert_accepted(tir_run(lowered, f, got.args, got.count, &(struct tir_run_options){.lowered = true}, err));
      if (!tir_same_arguments(ir, f, &expected, &got, tir_tolerance(ir, f, 0), &(ms_error){0}))
        fail_msg("%s x %s differs by dot products %u", shapes[s].x, shapes[s].y, had[d]);
      tir_arguments_free(&expected), tir_arguments_free(&got);
      tir_free(ir), tir_free(lowered);
      free(text);
    }
}

/* Windows of a depthwise convolution of bytes, of extremes, as words that slide, by this CPU; and such a call of
 * operands that it does not take. */
static void windows_slide(void **state) {
  (void)state;
  struct jit_target target;
  ms_error refused = {0};
  struct tir *ir =
      read_function("X: T.Buffer((5, 9, 16), \"uint8\"), W: T.Buffer((3, 3, 16), \"int8\"), "
                    "Y: T.Buffer((3, 7, 16), \"int32\")",
                    "for k in range(1):\n    "
                    "    for rh in T.unroll(3):\n            for rw in T.unroll(3):\n"
                    "                for h in T.unroll(3):\n                    for w in T.unroll(7):\n"
                    "                        for c in T.vectorized(16):\n"
                    "                            Y[h, w, c] = Y[h, w, c] + T.Cast(\"int32\", X[h + rh, w + "
                    "rw, c]) * T.Cast(\"int32\", W[rh, rw, c])");
  tir_func f = tir_find_func(ir, "main");
  struct tir_arguments expected, actual;
  assert_accepted(tir_make_arguments(ir, f, 3, &expected, err));
  for (int a = 0; a < 2; a++)
    for (int i = 0; i < (a ? 144 : 720); i++)
      ((unsigned char *)expected.args[a].data)[i] = i % 5 ? 0x80 + 7 * i : i % 2 ? 0xff : 0x7f;
  tir_copy_arguments(ir, f, &expected, &actual);
  assert_accepted(tir_run(ir, f, expected.args, expected.count, NULL, err));
  assert_accepted(jit_target_parse("native", &target, err));
  assert_accepted(jit_run(ir, f, &target, NULL, actual.args, err));
  assert_accepted(tir_same_arguments(ir, f, &expected, &actual, 0, err));
  tir_arguments_free(&expected), tir_arguments_free(&actual);
  tir_free(ir);
  ir = read_function("A: T.Buffer((64,), \"uint8\"), B: T.Buffer((32,), \"uint8\")",
                     "A[0:64] = T.slide_lanes(A[0:64], B[0:32])");
  assert_accepted(jit_target_parse(all, &target, err));
  assert_null(jit_compile(ir, tir_find_func(ir, "main"), &target, NULL, &refused));
  assert_non_null(strstr(refused.message, "slide_lanes"));
  tir_free(ir);
}

/* A call that is written so is refused where the target has no such instruction, or its operands are others. */
static void written_calls_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *a, *b, *c, *target;
    bool right;
  } calls[] = {{"uint8", "int8", "int32", all, true},
               {"int8", "int8", "int32", all, false},
               {"int8", "uint8", "int32", all, false},
               {"uint8", "uint8", "int32", all, false},
               {"int8", "int8", "int32", "llvm -mcpu=sierraforest", false}, /* whose vectors have 256 bits */
               {"uint8", "int8", "float32", all, false},
               {"uint8", "int8", "int32", "x86-64-v4", true}, /* by pairs of 16 bits */
               {"uint8", "int8", "int32", "x86-64-v3", false},
               {"bfloat16", "bfloat16", "float32", all, false}}; /* 64 of them are of 32 lanes */
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    char params[200];
    struct jit_target target;
    ms_error err = {0};
    snprintf(params, sizeof params,
             "A: T.Buffer((64,), \"%s\"), B: T.Buffer((64,), \"%s\"), C: T.Buffer((16,), \"%s\")", calls[i].a,
             calls[i].b, calls[i].c);
    struct tir *ir = read_function(params, "C[0:16] = T.dot_lanes(C[0:16], A[0:64], B[0:64])");
    assert_accepted(jit_target_parse(calls[i].target, &target, err));
    struct jit_code *code = jit_compile(ir, tir_find_func(ir, "main"), &target, NULL, &err);
    assert_int_equal(code != NULL, calls[i].right);
    assert_true(calls[i].right || strstr(err.message, "dot_lanes"));
    jit_code_free(code);
    tir_free(ir);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(runs_equal), cmocka_unit_test(other_signs_are_turned),
                                     cmocka_unit_test(a_fixed_order_is_kept), cmocka_unit_test(windows_slide),
                                     cmocka_unit_test(written_calls_are_checked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

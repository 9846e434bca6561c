/* Sums of products of short types, in vectorized loops, become dot products of the machine's where a target has these,
 * and compute what they say everywhere: of all signs, widths of vectors, and tails. */
#include "unit/exported.h"
#include "unit/lowered_text.h"

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
    {"uint8", "int8", "int32", 3, 64, 16, 4, false},       {"int8", "int8", "int32", 3, 32, 8, 4, false},
    {"uint8", "uint8", "int32", 2, 48, 8, 4, true},        {"int8", "uint8", "int32", 1, 32, 12, 4, true},
    {"int8", "int8", "uint32", 2, 32, 8, 4, true},         {"int8", "int8", "int32", 1, 32, 8, 4, false},
    {"int8", "uint8", "int32", 3, 64, 16, 4, false, HIGH}, {"uint8", "uint8", "int32", 1, 32, 8, 4, true, HIGH},
    {"int8", "uint8", "int32", 2, 32, 8, 4, false, LOW},   {"bfloat16", "bfloat16", "float32", 3, 32, 8, 2, false},
    {"bfloat16", "bfloat16", "float32", 2, 48, 6, 2, true}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void targets_with_them_have_them(void **state) {
  (void)state;
  static const struct {
    const char *target;
    bool bytes, bfloats;
  } targets[] = {{all, true, true},
                 {"x86-64-v4", false, false},
                 {"llvm -mcpu=x86-64-v4 -mattr=+avx512vnni,+avx512bf16 -vector-bits=256", true, true},
                 {"x86-64-v3,+avxvnni", true, false},
                 {"x86-64-v3", false, false},
                 {"x86-64-v3,+avx512vnni", false, false}}; /* no instructions on part of a register */
  for (size_t t = 0; t < sizeof targets / sizeof *targets; t++)
    for (int s = 0; s < SHAPES; s++) {
      struct tir *ir = product_of(shapes[s]);
      char *code = assembly(ir, targets[t].target);
      bool real = shapes[s].width == 2, wanted = real ? targets[t].bfloats : targets[t].bytes;
      bool has = strstr(code, real ? "vdpbf16ps" : "vpdpbusd") != NULL;
      if (has != wanted)
        fail_msg("%s x %s on %s: %s", shapes[s].x, shapes[s].y, targets[t].target, has ? "has it" : "has it not");
      free(code);
      tir_free(ir);
    }
}

/* The lowered function, with the calls, computes the same by the interpreter, at any width of vectors. */
static void calls_mean_what_they_stand_for(void **state) {
  (void)state;
  for (int s = 0; s < SHAPES; s++)
    for (int bits = 128; bits <= 512; bits *= 2) {
      struct tir_lower_options options = {
          .vector_bits = bits, .dots = 3, .instructions = ~0u, .dump_after = "lane_dots"};
      char *text = judged_text_after(product_of(shapes[s]), options);
      assert_non_null(strstr(text, "T.dot_lanes("));
      free(text);
    }
}

/* What no instruction does stays as it is. */
static void others_stay(void **state) {
  (void)state;
  static const struct shape none[] = {
      {"int16", "int16", "int32", 2, 32, 8, 4, false},
      {"int8", "int8", "int64", 2, 32, 8, 4, false},
      {"uint8", "int8", "float32", 2, 32, 8, 4, false},
      {"float16", "float16", "float32", 2, 32, 8, 2, false},
      {"uint8", "int8", "int32", 2, 32, 8, 2, false},
      {"uint8", "int8", "int32", 2, 7, 8, 4, false},
      {"uint8", "int8", "int32", 2, 32, 8, 4, false, "T.bitwise_and(T.shift_right(\0, T.int8(4)), T.int8(15))"},
      {"int8", "uint8", "int32", 2, 32, 8, 4, false,
       "T.bitwise_and(T.shift_right(\0, T.Cast(\"uint8\", i)), T.uint8(15))"}};
  for (size_t s = 0; s < sizeof none / sizeof *none; s++) {
    struct tir_lower_options options = {.vector_bits = 512, .dots = 3, .instructions = ~0u, .dump_after = "lane_dots"};
    char *text = judged_text_after(product_of(none[s]), options);
    assert_null(strstr(text, "T.dot_lanes("));
    free(text);
  }
}

/* Conditions on columns, where all that is read lies in the buffers, and on neighbours, which are few at the end. */
static void tails_are_right(void **state) {
  (void)state;
  static const char params[] =
      "A: T.Buffer((2, 8), \"uint8\"), B: T.Buffer((2, 64, 4), \"int8\"), C: T.Buffer((2, 40), \"int32\")";
  static const char head[] = "for i, k0, j0 in T.grid(2, 2, 2):\n        for j in T.vectorized(32):";
  struct tir_lower_options options = {.vector_bits = 512, .dots = 3, .instructions = ~0u, .dump_after = "lane_dots"};
  char *text = judged_text_after(
      read_function(params, head, "        for p in range(4):", "            if j0 * 32 + j < 40:",
                    "                C[i, j0 * 32 + j] = C[i, j0 * 32 + j] + T.Cast(\"int32\", A[i, k0 * 4 + p]) * "
                    "T.Cast(\"int32\", B[k0, j0 * 32 + j, p])"),
      options);
  assert_non_null(strstr(text, "T.dot_lanes("));
  free(text);
  text = judged_text_after(
      read_function(params, head, "        for p in range(4):", "            if k0 * 4 + p < 7 and j0 * 32 + j < 40:",
                    "                C[i, j0 * 32 + j] = C[i, j0 * 32 + j] + T.Cast(\"int32\", A[i, k0 * 4 + p]) * "
                    "T.Cast(\"int32\", B[k0, j0 * 32 + j, p])"),
      options);
  free(text);
}

static char *text_of_signed(const char *loops, const char *condition) {
  static const char params[] =
      "A: T.Buffer((6, 16), \"int8\"), B: T.Buffer((4, 64, 4), \"int8\"), C: T.Buffer((6, 64), \"int32\")";
  char test[200], update[300];
  snprintf(test, sizeof test, "                        if %s:", condition);
  snprintf(update, sizeof update,
           "                            C[i, j0 * 32 + j] = C[i, j0 * 32 + j] + T.Cast(\"int32\", A[i, k0 * 4 + p]) * "
           "T.Cast(\"int32\", B[k0, j0 * 32 + j, p])");
  struct tir_lower_options options = {
      .vector_bits = 512, .vector_registers = 32, .dots = 3, .instructions = ~0u, .dump_after = "lane_dots"};
  return judged_text_after(read_function(params, loops, "                for j in T.vectorized(32):",
                                         "                    for p in range(4):", test, update),
                           options);
}

/* Of bytes of equal signs, what their offset adds is summed up once for the rows that share it: before all loops that
 * it does not depend on, under the conditions of columns, whatever those of rows are. Else it is taken away at once. */
static void rows_share_what_offsets_add(void **state) {
  (void)state;
  static const struct {
    const char *loops, *condition;
    bool shared;
  } cases[] = {
      {"for j0, i, k0 in T.grid(2, 6, 4):", "k0 < 4", true},
      {"for i, j0, k0 in T.grid(6, 2, 4):", "k0 < 4", false}, /* rows have columns between them */
      {"for j0, i, k0 in T.grid(2, 6, 4):", "i < 5", true},
      {"for j0, k0, i in T.grid(2, 4, 6):", "i < 5", true},
      {"for j0, k0, i in T.grid(2, 4, 6):", "j0 * 32 + j < 40", true},
      {"for j0, i, k0 in T.grid(2, 6, 4):", "i * i % 5 < 4", true},  /* no loop is cut by what is not linear */
      {"for j0, k0, i in T.grid(2, 4, 6):", "i * i % 5 < 4", false}, /* two nests, by one test */
      {"for j0, i, k0 in T.grid(2, 6, 4):", "j * j % 5 < 4", true},
      {"for j0, k0, i in T.grid(2, 4, 6):", "j * j % 5 < 4 and i * i % 5 < 4", false},
      {"for j0, i, k0 in T.grid(2, 6, 4):", "(j0 * 32 + j) * (i + 1) < 100", false}, /* not the same for all rows */
      {"for j0, i, k0 in T.grid(2, 6, 4):", "k0 * k0 % 3 < 1", false},               /* of what is added */
      {"for j0, i, k0 in T.grid(2, 6, 4):", "A[i, k0] > 0", false},
      {"for i, j0, k0 in T.grid(6, 2, 4):", "j0 * 32 + j < 40 + i", true}, /* where the loops are cut */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *text = text_of_signed(cases[i].loops, cases[i].condition);
    if (cases[i].shared != (strstr(text, "C_offset") != NULL))
      fail_msg("%s if %s: %s", cases[i].loops, cases[i].condition, text);
    free(text);
  }
}

/* A copy into the order of dot products goes piece by piece; columns that are left over, by themselves. */
static void copies_interleave(void **state) {
  (void)state;
  struct tir_lower_options options = {.vector_bits = 512, .dots = 3, .instructions = ~0u, .dump_after = "transpose"};
  for (int columns = 15; columns <= 40; columns += 5)
    for (int width = 2; width <= 4; width += 2) {
      struct shape s = {width == 4 ? "uint8" : "bfloat16",
                        width == 4 ? "int8" : "bfloat16",
                        width == 4 ? "int32" : "float32",
                        2,
                        columns,
                        8,
                        width,
                        true};
      char *text = judged_text_after(product_of(s), options);
      assert_int_equal(columns >= 16, strstr(text, width == 4 ? "T.interleave_4x8(" : "T.interleave_2x16(") != NULL);
      free(text);
    }
}

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

/* On this CPU, whatever it has: extremes of bytes, whose sums of four products leave 16 bits. */
static void runs_equal(void **state) {
  (void)state;
  for (int s = 0; s < SHAPES; s++) {
    struct jit_target target;
    struct tir *ir = product_of(shapes[s]);
    tir_func f = tir_find_func(ir, "main");
    struct tir_arguments expected, actual;
    struct tir_run_report report = {0};
    assert_accepted(jit_target_parse("native", &target, err));
    assert_accepted(tir_make_arguments(ir, f, 3, &expected, err));
    for (int a = 0; a < 2 && shapes[s].width == 4; a++) {
      unsigned char *bytes = expected.args[a].data;
      int64_t count = a ? (int64_t)shapes[s].depth * shapes[s].columns : (int64_t)shapes[s].rows * shapes[s].depth;
      for (int64_t i = 0; i < count; i++) bytes[i] = i % 3 ? 0x80 : i % 2 ? 0xff : 0x7f;
    }
    tir_copy_arguments(ir, f, &expected, &actual);
    assert_accepted(tir_run(ir, f, expected.args, expected.count, &(struct tir_run_options){.report = &report}, err));
    assert_accepted(jit_run(ir, f, &target, NULL, actual.args, err));
    ms_error err = {0};
    if (!tir_same_arguments(ir, f, &expected, &actual, tir_tolerance(ir, f, report.epsilon), &err))
      fail_msg("%s x %s: %s", shapes[s].x, shapes[s].y, err.message);
    tir_arguments_free(&expected);
    tir_arguments_free(&actual);
    tir_free(ir);
  }
}

/* A call that is written so is refused where the target has no such instruction, or its operands are others. */
static void written_calls_are_checked(void **state) {
  (void)state;
  static const struct {
    const char *a, *b, *c, *target;
    bool right;
  } calls[] = {{"uint8", "int8", "int32", all, true},
               {"int8", "int8", "int32", all, false},
               {"uint8", "int8", "float32", all, false},
               {"uint8", "int8", "int32", "x86-64-v4", false},
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(targets_with_them_have_them),
                                     cmocka_unit_test(calls_mean_what_they_stand_for),
                                     cmocka_unit_test(others_stay),
                                     cmocka_unit_test(tails_are_right),
                                     cmocka_unit_test(rows_share_what_offsets_add),
                                     cmocka_unit_test(copies_interleave),
                                     cmocka_unit_test(runs_equal),
                                     cmocka_unit_test(a_fixed_order_is_kept),
                                     cmocka_unit_test(written_calls_are_checked)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

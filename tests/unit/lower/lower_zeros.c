/* The pass that finds what adds a product with a zero of a padding: which conditions it finds, and what becomes of them
 * when loops are cut. Each function computes the same afterwards. */
#include "unit/lowered_text.h"

/* `finite`: of the options. */
static char *after(struct tir *ir, const char *pass, bool finite) {
  return judged_text_after(ir, (struct tir_lower_options){.vector_bits = 256, .finite = finite, .dump_after = pass});
}

/* How often a part stands in the text; the text is freed. */
static uint32_t count_in(char *text, const char *part) {
  uint32_t count = count_of(text, part);
  free(text);
  return count;
}

/* A convolution of 8 elements with 3, padded by one; what pads is in a buffer of its own, or stands in the product. The
 * sum goes over 20 channels. */
#define PARAMETERS "A: T.Buffer((8, 20), \"%s\"), W: T.Buffer((3, 20), \"%s\"), C: T.Buffer((8,), \"%s\")"
#define CHOICE     "T.if_then_else(%s >= 1 and %s < 9, A[%s - 1, %s], T.%s(0))"

static struct tir *conv(const char *type, const char *outer, const char *combine) {
  char parameters[200], pad[200], loop[100], update[200], init[60], buffer[80];
  snprintf(parameters, sizeof parameters, PARAMETERS, type, type, type);
  snprintf(buffer, sizeof buffer, "P = T.sblock_alloc_buffer((10, 20), \"%s\")", type);
  snprintf(pad, sizeof pad, "        P[vp, vr] = " CHOICE, "vp", "vp", "vp", "vr", type);
  snprintf(loop, sizeof loop, "for i in T.%s(8):", outer);
  snprintf(init, sizeof init, "                C[vi] = T.%s(0)", type);
  snprintf(update, sizeof update, combine, "P[vi + vk, vr]");
  return read_function(
      parameters, buffer,
      "for p, r in T.grid(10, 20):", "    with T.sblock(\"P\"):", "        vp, vr = T.axis.remap(\"SS\", [p, r])", pad,
      loop, "    for k, r in T.grid(3, 20):", "        with T.sblock(\"C\"):", "            vi = T.axis.spatial(8, i)",
      "            vk, vr = T.axis.remap(\"RR\", [k, r])", "            with T.init():", init, update);
}
#define PRODUCT "            C[vi] = C[vi] + %s * W[vk, vr]"
#define TURNED  "            C[vi] = W[vk, vr] * %s + C[vi]"
#define LARGEST "            C[vi] = T.max(C[vi], %s * W[vk, vr])"
#define SUM     "            C[vi] = C[vi] + (%s + W[vk, vr])"

static void a_padded_buffer_gives_conditions(void **state) {
  (void)state;
  assert_int_equal(count_in(after(conv("float32", "serial", PRODUCT), "zeros", true), "if 1 <= i + k and i + k <= 8:"),
                   1);
  assert_int_equal(count_in(after(conv("float32", "serial", TURNED), "zeros", true), "if 1 <= i + k and i + k <= 8:"),
                   1);
}

static void what_is_no_product_in_a_sum_gives_none(void **state) {
  (void)state;
  assert_int_equal(count_in(after(conv("float32", "serial", LARGEST), "zeros", true), "zeros"), 0);
  assert_int_equal(count_in(after(conv("float32", "serial", SUM), "zeros", true), "zeros"), 0);
}

/* Zero times infinity is NaN; integers have neither. */
static void floats_must_be_finite(void **state) {
  (void)state;
  assert_int_equal(count_in(after(conv("float32", "serial", PRODUCT), "zeros", false), "zeros"), 0);
  assert_int_equal(count_in(after(conv("int32", "serial", PRODUCT), "zeros", false), "if 1 <= i + k and i + k <= 8:"),
                   1);
}

/* Cut, the loops have no condition: the first and the last element take two taps of three. */
static void loops_are_cut(void **state) {
  (void)state;
  char *text = after(conv("float32", "serial", PRODUCT), "partition", true);
  assert_int_equal(count_of(text, "zeros"), 0);
  assert_int_equal(count_of(text, "if 1 <="), 0);
  assert_int_equal(count_of(text, "range(1, 7)"), 1);
  assert_int_equal(count_of(text, "T.grid(2, 20)") + count_of(text, "range(1, 3)"), 2);
  free(text);
}

/* Where loops are cut no further, a condition stands outside of the loops that it saves. */
/* A transposed convolution of an image of 4 x 4 with 4 x 4, by twos, phase by phase: every tile of every phase takes
 * the taps that meet it, without a condition. */
static void loops_are_cut_for_every_phase(void **state) {
  (void)state;
  char *text = after(read_function("A: T.Buffer((4, 4, 20), \"float32\"), W: T.Buffer((4, 4, 20), \"float32\"), C: "
                                   "T.Buffer((8, 8), \"float32\")",
                                   "", "for hp, wp, h, rh, rw, r, w in T.grid(2, 2, 4, 2, 2, 20, 4):",
                                   "    with T.sblock(\"C\"):", "        vh = T.axis.spatial(8, h * 2 + hp)",
                                   "        vw = T.axis.spatial(8, w * 2 + wp)",
                                   "        vrh, vrw, vr = T.axis.remap(\"RRR\", [rh, rw, r])",
                                   "        with T.init():", "            C[vh, vw] = T.float32(0)",
                                   "        C[vh, vw] = C[vh, vw] + T.if_then_else((vh + 1) // 2 - vrh >= 0 and (vh + "
                                   "1) // 2 - vrh < 4 and (vw + 1) "
                                   "// 2 - vrw >= 0 and (vw + 1) // 2 - vrw < 4, A[(vh + 1) // 2 - vrh, (vw + 1) // 2 "
                                   "- vrw, vr], T.float32(0)) * "
                                   "W[(vh + 1) % 2 + vrh * 2, (vw + 1) % 2 + vrw * 2, vr]"),
                     "partition", true);
  assert_int_equal(count_of(text, "if_then_else"), 0);
  assert_int_equal(count_of(text, "zeros"), 0);
  free(text);
}

static void what_is_left_moves_outwards(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((8, 20), \"float32\"), W: T.Buffer((3, 20), \"float32\"), C: T.Buffer((2, 8), \"float32\")",
      "for f in range(16):", "    for k, r in T.grid(3, 20):", "        with T.sblock(\"C\"):",
      "            vb = T.axis.spatial(2, f // 8)", "            vi = T.axis.spatial(8, f % 8)",
      "            vk, vr = T.axis.remap(\"RR\", [k, r])",
      "            with T.init():", "                C[vb, vi] = T.float32(0)",
      "            C[vb, vi] = C[vb, vi] + T.if_then_else(vi + vk >= 1 and vi + vk < 9, A[vi + vk - 1, vr], "
      "T.float32(0)) * W[vk, vr]");
  char *text = after(ir, "partition", true);
  const char *test = strstr(text, "if 1 <= f % 8:"), *loop = test ? strstr(test, "for r in range(20):") : NULL;
  assert_true(test && loop && loop - test < 80);
  assert_int_equal(count_of(text, "zeros"), 0);
  free(text);
}

/* Nothing is saved by one that keeps its place in the innermost loop. */
static void what_saves_nothing_vanishes(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((8,), \"float32\"), W: T.Buffer((3,), \"float32\"), C: T.Buffer((2, 8), \"float32\")",
      "for f in range(16):", "    for k in range(3):", "        with T.sblock(\"C\"):",
      "            vb = T.axis.spatial(2, f // 8)", "            vi = T.axis.spatial(8, f % 8)",
      "            vk = T.axis.reduce(3, k)", "            with T.init():", "                C[vb, vi] = T.float32(0)",
      "            C[vb, vi] = C[vb, vi] + T.if_then_else(vi * 3 + vk * 7 >= 1 and vi + vk < 9, A[(vi + vk) % 8], "
      "T.float32(0)) * W[vk]");
  char *text = after(ir, "partition", true);
  assert_int_equal(count_of(text, "zeros"), 0);
  free(text);
}

/* A lane that is masked saves nothing. */
static void lanes_are_left_alone(void **state) {
  (void)state;
  assert_int_equal(count_in(after(conv("float32", "vectorized", PRODUCT), "zeros", true), "zeros"), 0);
}

/* What a buffer holds may be of another iteration of the loop around writer and reader; or of another store. */
static struct tir *sliding(const char *inside, const char *outside, const char *more) {
  return read_function(
      "A: T.Buffer((64, 8), \"float32\"), W: T.Buffer((8,), \"float32\"), C: T.Buffer((64,), \"float32\")", outside,
      "for i in range(64):", inside,
      "    for r in range(8):", "        with T.sblock(\"P\"):", "            vi, vr = T.axis.remap(\"SS\", [i, r])",
      "            P[vr] = T.if_then_else(vi >= 8 and vr >= 2, A[vi - 8, vr], T.float32(0))", more,
      "    for r in range(8):", "        with T.sblock(\"C\"):", "            vi, vr = T.axis.remap(\"SR\", [i, r])",
      "            with T.init():", "                C[vi] = T.float32(0)",
      "            C[vi] = C[vi] + P[vr] * W[vr]");
}

/* 128 sums of products with the element before, which is zero in front of the first, over 2 x 80 channels: none is
 * cut. */
static struct tir *shifted(const char *combine) {
  return read_function(
      "A: T.Buffer((128, 160), \"float32\"), W: T.Buffer((160,), \"float32\"), C: T.Buffer((128,), \"float32\")",
      "for i in range(128):", "    for r, q in T.grid(2, 80):", "        with T.sblock(\"C\"):",
      "            vi = T.axis.spatial(128, i)", "            vr = T.axis.reduce(160, r * 80 + q)", combine);
}
#define SHIFTED "T.if_then_else(vi >= 1, A[vi - 1, vr], T.float32(0))"

/* A condition stands in front of the loops in which it does not change, and no loop is cut by it; one that is asked for
 * each store is cut. */
static void conditions_stand_outside(void **state) {
  (void)state;
  char *text = after(shifted("            C[vi] = C[vi] + " SHIFTED " * W[vr]"), "partition", true);
  const char *test = strstr(text, "\"zeros_outside\""),
             *loop = test ? strstr(test, "for r, q in T.grid(2, 80):") : NULL;
  assert_true(test && loop && loop - test < 80);
  assert_int_equal(count_of(text, "if_then_else"), 0);
  assert_int_equal(count_of(text, "range(1, 128)"), 0);
  free(text);
  text = after(shifted("            C[vi] = T.max(C[vi], " SHIFTED " * W[vr])"), "partition", true);
  assert_int_equal(count_of(text, "zeros_outside"), 0);
  assert_int_equal(count_of(text, "range(1, 128)"), 1);
  free(text);
}

/* Elements are in registers all along, tests or not. */
static void a_tile_stays_in_registers_around_a_test(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((16, 80), \"float32\"), W: T.Buffer((3, 80), \"float32\"), C: T.Buffer((16,), \"float32\")",
      "for i in range(16):", "    for k, r in T.grid(3, 80):", "        with T.sblock(\"C\"):",
      "            vi = T.axis.spatial(16, i)", "            vk, vr = T.axis.remap(\"RR\", [k, r])",
      "            C[vi] = C[vi] + T.if_then_else(vi + vk >= 1 and vi + vk < 17, A[vi + vk - 1, vr], T.float32(0)) * "
      "W[vk, vr]");
  char *text = after(ir, "promote", true);
  const char *load = strstr(text, "C_register[0] = C[i]"), *loop = load ? strstr(load, "for k in range(3):") : NULL;
  const char *test = loop ? strstr(loop, "if 1 <= i + k:") : NULL,
             *store = test ? strstr(test, "C[i] = C_register[0]") : NULL;
  assert_true(store != NULL);
  assert_int_equal(count_of(text, "C[i] ="), 1);
  assert_int_equal(count_of(text, "zeros"), 0);
  free(text);
}

/* Where loops are cut by others, an attribute goes with its condition: the test in it would be another's. */
static void certain_conditions_leave_no_attribute(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((16, 80), \"float32\"), W: T.Buffer((80,), \"float32\"), C: T.Buffer((16,), \"float32\"), "
      "D: T.Buffer((16,), \"float32\")",
      "for i in range(16):", "    for r in range(80):", "        with T.sblock(\"C\"):",
      "            vi = T.axis.spatial(16, i)", "            vr = T.axis.reduce(80, r)",
      "            C[vi] = C[vi] + T.if_then_else(vi >= 4, A[vi - 4, vr], T.float32(0)) * W[vr]",
      "    with T.sblock(\"D\"):", "        vi = T.axis.spatial(16, i)",
      "        D[vi] = T.if_then_else(vi >= 4, A[vi - 4, 0], T.float32(0))");
  char *text = after(ir, "partition", true);
  assert_int_equal(count_of(text, "zeros"), 0);
  assert_int_equal(count_of(text, "range(4, 16)"), 1);
  assert_int_equal(count_of(text, "C[i] ="), 1);
  free(text);
}

/* What is left of the first element after the cut, which so few iterations are that no condition was asked for. */
static uint32_t count_firsts(const char *type, const char *combine, bool finite) {
  char parameters[200], update[300];
  snprintf(parameters, sizeof parameters, "A: T.Buffer((70,), \"%s\"), C: T.Buffer((70,), \"%s\")", type, type);
  snprintf(update, sizeof update, combine, type);
  char *text = after(read_function(parameters, "for i in range(70):", "    with T.sblock(\"C\"):",
                                   "        vi = T.axis.spatial(70, i)", update),
                     "partition", finite);
  assert_int_equal(count_of(text, "zeros"), 0);
  assert_int_equal(count_of(text, "range(1, 70)"), 1);
  return count_in(text, "C[0] =");
}

static void products_with_zeros_vanish(void **state) {
  (void)state;
  static const char sum[] = "        C[vi] = C[vi] + A[vi] * (A[vi] * T.if_then_else(vi >= 1, A[vi - 1], T.%s(0)))";
  static const char max[] = "        C[vi] = T.max(C[vi], A[vi] * T.if_then_else(vi >= 1, A[vi - 1], T.%s(0)))";
  assert_int_equal(count_firsts("float32", sum, true), 0);
  assert_int_equal(count_firsts("float32", sum, false), 1);
  assert_int_equal(count_firsts("int32", sum, false), 0);
  assert_int_equal(count_firsts("float32", max, true), 1);
}

static void what_a_buffer_holds_must_last(void **state) {
  (void)state;
  const char *buffer = "P = T.sblock_alloc_buffer((8,))", *none = "";
  char *text = after(sliding(none, buffer, none), "zeros", true);
  assert_int_equal(count_of(text, "if 8 <= i and 2 <= r:"), 1); /* place.c puts the buffer into the loop: both hold */
  free(text);
  text = after(
      read_function("A: T.Buffer((8,), \"float32\"), W: T.Buffer((8,), \"float32\"), C: T.Buffer((64,), \"float32\")",
                    "P = T.sblock_alloc_buffer((9,))", "for i in range(64):", "    with T.sblock(\"P\"):",
                    "        vi = T.axis.spatial(64, i)", "        T.reads(A[vi % 8])", "        T.writes(P[vi % 8])",
                    "        P[vi % 8] = T.if_then_else(vi >= 8, A[vi % 8], T.float32(0))", "    for r in range(8):",
                    "        with T.sblock(\"C\"):", "            vi, vr = T.axis.remap(\"SR\", [i, r])",
                    "            T.where(r <= i)", "            with T.init():", "                C[vi] = T.float32(0)",
                    "            C[vi] = C[vi] + P[vr] * W[vr]"),
      "zeros", true);
  assert_int_equal(count_of(text, "zeros"), 0);
  free(text);
}

static void a_buffer_has_one_store(void **state) {
  (void)state;
  const char *another = "    for r in range(1):\n            with T.sblock(\"Q\"):\n"
                        "                vq = T.axis.spatial(1, r)\n                P[vq] = T.float32(1)";
  assert_int_equal(count_in(after(sliding("", "P = T.sblock_alloc_buffer((8,))", another), "zeros", true), "zeros"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_padded_buffer_gives_conditions),
                                     cmocka_unit_test(what_is_no_product_in_a_sum_gives_none),
                                     cmocka_unit_test(floats_must_be_finite),
                                     cmocka_unit_test(loops_are_cut),
                                     cmocka_unit_test(loops_are_cut_for_every_phase),
                                     cmocka_unit_test(what_is_left_moves_outwards),
                                     cmocka_unit_test(what_saves_nothing_vanishes),
                                     cmocka_unit_test(lanes_are_left_alone),
                                     cmocka_unit_test(conditions_stand_outside),
                                     cmocka_unit_test(a_tile_stays_in_registers_around_a_test),
                                     cmocka_unit_test(certain_conditions_leave_no_attribute),
                                     cmocka_unit_test(products_with_zeros_vanish),
                                     cmocka_unit_test(what_a_buffer_holds_must_last),
                                     cmocka_unit_test(a_buffer_has_one_store)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

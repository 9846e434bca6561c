/* Intervals, and what expressions cover by interval arithmetic. */
#include "tir/analysis/analysis.h"
#include "unit/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct names names;

static int setup(void **state) {
  (void)state;
  names = (struct names){.ir = tir_new(), .simplifies = true};
  add_symbol(&names, "n", 1, 9);
  add_name(&names, "i", 0, 8), add_name(&names, "j", 0, 16), add_name(&names, "s", -3, 7);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  tir_free(names.ir);
  return 0;
}

static tir_expr e(const char *text) { return text ? read_prefix(&names, &text) : TIR_NONE; }
static struct tir_interval between(const char *min, const char *max) {
  return (struct tir_interval){e(min), e(max), false};
}
static void is_between(struct tir_interval got, const char *min, const char *max) {
  assert_false(got.empty);
  assert_int_equal(got.min, e(min));
  assert_int_equal(got.max, e(max));
}

static void unites_and_intersects(void **state) {
  (void)state;
  struct tir *ir = names.ir;
  struct tir_interval a = between("0", "5"), b = between("8", "9"), c = between("4", NULL);
  is_between(tir_interval_union(ir, a, b), "0", "9");
  is_between(tir_interval_union(ir, a, c), "0", NULL);
  is_between(tir_interval_union(ir, a, tir_nothing()), "0", "5");
  is_between(tir_interval_intersect(ir, a, c), "4", "5");
  assert_true(tir_interval_intersect(ir, a, b).empty);
  is_between(tir_interval_intersect(ir, between("i", "+ i 3"), between("0", "8")), "i", "min + i 3 8");
  is_between(tir_interval_join(ir, a, c), "0", NULL);
  is_between(tir_interval_join(ir, a, b), "0", "5"); /* a gap between them */
  is_between(tir_interval_join(ir, between("n", "+ n 3"), between("+ n 4", "+ n 9")), "n", "+ n 9");
}

static void measures(void **state) {
  (void)state;
  struct tir *ir = names.ir;
  is_between(tir_interval_of(ir, e("i"), e("4")), "i", "+ i 3");
  is_between(tir_interval_of(ir, e("i"), e("1")), "i", "i");
  assert_int_equal(tir_interval_extent(ir, between("* i 4", "+ * i 4 15")), e("16"));
  assert_true(tir_is_point(ir, between("% + * i 4 8 4", "0")));
  assert_false(tir_is_point(ir, between("i", "+ i n")));
  assert_false(tir_is_point(ir, between("i", NULL)));
}

static void covers(void **state) {
  (void)state;
  struct tir *ir = names.ir;
  assert_true(tir_interval_covers(ir, between("* i 4", "+ * i 4 3"), between("+ * i 4 1", "+ * i 4 2")));
  assert_false(tir_interval_covers(ir, between("* i 4", "+ * i 4 3"), between("* i 4", "+ * i 4 4")));
  assert_true(tir_interval_covers(ir, between(NULL, NULL), between("i", NULL)));
  assert_false(tir_interval_covers(ir, between("0", NULL), between(NULL, "i")));
  assert_true(tir_interval_covers(ir, between("0", "1"), tir_nothing()));
  assert_false(tir_interval_covers(ir, tir_nothing(), between("0", "1")));
  assert_true(tir_interval_covers(ir, between("0", "- n 1"), between("0", "min - n 1 i")));
  assert_true(tir_interval_covers(ir, between("* // n 16 16", "+ * // n 16 16 15"), between("n", "n")));
}

static void relaxes(void **state) {
  (void)state;
  struct tir *ir = names.ir;
  tir_var i = find_name(&names, "i", 1)->var, s = find_name(&names, "s", 1)->var, both[] = {i, s};
  is_between(tir_relax(ir, e("+ * i 4 j"), &i, 1), "j", "+ j 28");
  is_between(tir_relax(ir, e("j"), &i, 1), "j", "j");
  is_between(tir_relax(ir, e("- j i"), &i, 1), "- j 7", "j");
  is_between(tir_relax(ir, e("// + i j 4"), &i, 1), "// j 4", "// + j 7 4");
  is_between(tir_relax(ir, e("% + * i 4 j 8"), &i, 1), "0", "7");
  is_between(tir_relax(ir, e("% // i 4 8"), &i, 1), "0", "1");
  is_between(tir_relax(ir, e("min i j"), &i, 1), "0", "min j 7");
  is_between(tir_relax(ir, e("max i j"), &i, 1), "j", "max j 7");
  is_between(tir_relax(ir, e("* j s"), &s, 1), "* j -3", "* j 3");
  is_between(tir_relax(ir, e("+ s i"), both, 2), "-3", "10");
  is_between(tir_relax(ir, e("* s i"), both, 2), NULL, NULL); /* neither is a point */
  is_between(tir_relax(ir, e("? < j 3 i + j 9"), &i, 1), "0", "+ j 9");
}

static void relaxes_through_domains(void **state) {
  (void)state;
  struct tir *ir = names.ir;
  struct named *k = add_ranged(&names, "k", e("+ i 1"));
  tir_var both[] = {find_name(&names, "i", 1)->var, k->var};
  is_between(tir_relax(ir, e("k"), &both[1], 1), "0", "i");
  is_between(tir_relax(ir, e("k"), both, 2), "0", "7");
}

static void relaxes_regions(void **state) {
  (void)state;
  struct tir *ir = names.ir;
  tir_var i = find_name(&names, "i", 1)->var;
  struct tir_interval out[2];
  tir_expr window[] = {e("+ * i 2 j"), e("3"), e("j"), e("n")};
  tir_relax_region(ir, window, 2, &i, 1, out);
  is_between(out[0], "j", "+ j 16");
  is_between(out[1], "j", "- + j n 1");
  tir_expr holes[] = {e("* i 4"), e("3")};
  assert_false(tir_region_exact(ir, holes, 1, &i, 1, TIR_NONE, out));
  tir_expr full[] = {e("* i 4"), e("4")};
  assert_true(tir_region_exact(ir, full, 1, &i, 1, TIR_NONE, out));
  is_between(out[0], "0", "31");
  assert_true(tir_region_exact(ir, full, 1, &i, 1, e("< i 5"), out));
  is_between(out[0], "0", "19");
  tir_region_upper_bound(ir, holes, 1, &i, 1, e("< i 5"), out);
  is_between(out[0], "0", "30");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(unites_and_intersects),   TEST(measures),        TEST(covers), TEST(relaxes),
      TEST(relaxes_through_domains), TEST(relaxes_regions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

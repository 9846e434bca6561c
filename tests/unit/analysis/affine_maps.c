/* Iterator maps by hand: what is recognized, what not, and why. */
#include "tir/arith/affine.h"
#include "tir/arith/known.h"
#include "unit/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { MOST = 80 };
static struct names names;
static tir_var vars[MOST];
static uint32_t var_count;

static int setup(void **state) {
  (void)state;
  names = (struct names){.ir = tir_new(), .simplifies = true};
  var_count = 0;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  tir_free(names.ir);
  return 0;
}

static tir_expr e(const char *text) { return read_prefix(&names, &text); }

static void loop(const char *name, int64_t extent) { vars[var_count++] = add_name(&names, name, 0, extent)->var; }
static void loop_from(const char *name, int64_t min, int64_t extent) {
  vars[var_count++] = add_name(&names, name, min, extent)->var;
}

static bool recognized(enum tir_map_check check, const char *predicate, uint32_t count, ...) {
  tir_expr indices[MOST];
  va_list list;
  va_start(list, count);
  for (uint32_t i = 0; i < count; i++) indices[i] = e(va_arg(list, const char *));
  va_end(list);
  tir_expr p = predicate ? e(predicate) : TIR_NONE;
  return tir_detect_iter_map(names.ir, indices, count, vars, var_count, p, check, false, NULL);
}

static void knows_mixed_radix_numbers(void **state) {
  (void)state;
  loop("a", 4), loop("b", 8), loop("c", 16);
  assert_true(recognized(TIR_MAP_BIJECTIVE, NULL, 1, "+ + * a 128 * b 16 c"));
  assert_true(recognized(TIR_MAP_BIJECTIVE, NULL, 2, "+ * b 16 c", "a"));
  assert_false(recognized(TIR_MAP_BIJECTIVE, NULL, 1, "+ * b 16 c")); /* a is not used */
  assert_true(recognized(TIR_MAP_SURJECTIVE, NULL, 1, "+ * b 16 c"));
  assert_false(recognized(TIR_MAP_SURJECTIVE, NULL, 1, "+ * b 32 c")); /* gaps */
  assert_true(recognized(TIR_MAP_SURJECTIVE, NULL, 1, "+ * b 12 c"));  /* overlaps, but no gaps */
  assert_false(recognized(TIR_MAP_BIJECTIVE, NULL, 2, "+ * b 12 c", "a"));
  assert_false(recognized(TIR_MAP_SURJECTIVE, NULL, 2, "+ * b 16 c", "+ * a 16 c")); /* c twice */
  assert_false(recognized(TIR_MAP_SURJECTIVE, NULL, 1, "* b c"));
}

/* The last map is given again while it stands: not for other expressions that got the numbers of those taken back. */
static void forgets_maps_of_what_is_taken_back(void **state) {
  (void)state;
  const char *bound = "< + * x 8 y 33";
  loop("x", 5), loop("y", 8);
  e(bound);
  struct tir_mark mark = tir_mark(names.ir);
  tir_expr divided = e("// + * x 8 y 11");
  for (int i = 0; i < 2; i++)
    assert_true(recognized(TIR_MAP_SURJECTIVE, bound, 2, "// + * x 8 y 11", "% + * x 8 y 11"));
  tir_rewind(names.ir, &mark);
  assert_int_equal(e("// + * x 8 y 7"), divided);
  assert_false(recognized(TIR_MAP_SURJECTIVE, bound, 2, "// + * x 8 y 7", "% + * x 8 y 7"));
}

static void keeps_facts_while_their_expressions_stand(void **state) {
  (void)state;
  struct tir *ir = names.ir;
  loop("i", 4);
  loop("j", 8);
  tir_expr sum = e("+ * i 8 j"), guard = e("< i 3");
  struct tir_mark mark = tir_mark(ir);
  tir_expr later = e("+ * j 4 i");
  const struct tir_map early = {guard, &sum, vars, 1, 2}, late = {guard, &later, vars, 1, 2},
                       unguarded = {TIR_NONE, &sum, vars, 1, 2}, fewer = {guard, &sum, vars, 1, 1};
  assert_false(tir_is_known_map(ir, TIR_FACT_AFFINE, &early));
  tir_keep_map(ir, TIR_FACT_AFFINE, &early);
  tir_keep_map(ir, TIR_FACT_AFFINE, &late);
  assert_true(tir_is_known_map(ir, TIR_FACT_AFFINE, &early) && tir_is_known_map(ir, TIR_FACT_AFFINE, &late));
  assert_false(tir_is_known_map(ir, TIR_FACT_ONCE, &early));
  assert_false(tir_is_known_map(ir, TIR_FACT_AFFINE, &unguarded));
  assert_false(tir_is_known_map(ir, TIR_FACT_AFFINE, &fewer));
  tir_rewind(ir, &mark);
  assert_true(tir_is_known_map(ir, TIR_FACT_AFFINE, &early));
  assert_false(tir_is_known_map(ir, TIR_FACT_AFFINE, &late));
  struct tir *other = tir_new();
  tir_copy(ir, other); /* other expressions have these numbers from now on */
  tir_free(other);
  assert_false(tir_is_known_map(ir, TIR_FACT_AFFINE, &early));
}

static void knows_quotients_and_remainders(void **state) {
  (void)state;
  loop("f", 96);
  assert_true(recognized(TIR_MAP_BIJECTIVE, NULL, 3, "// f 24", "% // f 4 6", "% f 4"));
  assert_false(recognized(TIR_MAP_BIJECTIVE, NULL, 2, "// f 24", "% f 4")); /* f // 4 % 6 is missing */
  assert_true(recognized(TIR_MAP_SURJECTIVE, NULL, 2, "// f 24", "% f 4"));
  assert_false(recognized(TIR_MAP_SURJECTIVE, NULL, 2, "// f 24", "% f 36"));
  assert_false(recognized(TIR_MAP_SURJECTIVE, NULL, 2, "// f 20", "% f 20")); /* 96 is no multiple of 20 */
  assert_true(recognized(TIR_MAP_SURJECTIVE, NULL, 1, "// f 20"));
}

static void divides_groups(void **state) {
  (void)state;
  loop("a", 56), loop("b", 56);
  assert_true(recognized(TIR_MAP_BIJECTIVE, NULL, 2, "// + * a 56 b 49", "% + * a 56 b 49"));
  assert_true(recognized(TIR_MAP_BIJECTIVE, NULL, 2, "// + * a 56 b 112", "% + * a 56 b 112"));
  assert_false(recognized(TIR_MAP_BIJECTIVE, NULL, 2, "// + * a 56 b 50", "% + * a 56 b 50"));
  assert_false(recognized(TIR_MAP_BIJECTIVE, NULL, 2, "// + * a 57 b 49", "% + * a 57 b 49"));
}

static void follows_guards(void **state) {
  (void)state;
  loop("a", 7), loop("b", 16);
  struct tir_progression p;
  tir_expr index = e("+ * a 16 b"), guard = e("< + * a 16 b 100");
  assert_true(tir_detect_iter_map(names.ir, &index, 1, vars, 2, guard, TIR_MAP_BIJECTIVE, false, &p));
  assert_true(tir_is_const(names.ir, p.extent, 100) && tir_is_const(names.ir, p.scale, 1));
  assert_true(recognized(TIR_MAP_BIJECTIVE, "< + * a 16 b 100", 2, "// + * a 16 b 20", "% + * a 16 b 20"));
  assert_true(recognized(TIR_MAP_BIJECTIVE, "< + * a 16 b 96", 2, "a", "b")); /* six whole rounds of b */
  assert_false(recognized(TIR_MAP_SURJECTIVE, "< + * a 16 b 100", 2, "a", "b"));
  assert_true(recognized(TIR_MAP_BIJECTIVE, "& < a 5 < b 9", 2, "a", "b"));
  assert_false(recognized(TIR_MAP_SURJECTIVE, "== a b", 2, "a", "b")); /* no bound of an iterator */
  assert_false(recognized(TIR_MAP_SURJECTIVE, "or < a 3 < b 2", 2, "a", "b"));
}

static void keeps_what_is_no_iterator(void **state) {
  (void)state;
  add_symbol(&names, "n", 1, 5);
  loop("a", 4), loop_from("b", 3, 8);
  struct tir_progression p[2];
  tir_expr indices[] = {e("+ * n 8 + b 2"), e("+ a n")};
  assert_true(tir_detect_iter_map(names.ir, indices, 2, vars, 2, TIR_NONE, TIR_MAP_BIJECTIVE, false, p));
  assert_int_equal(p[0].base, e("+ * n 8 5"));
  assert_int_equal(p[1].base, e("n"));
  assert_true(tir_is_const(names.ir, p[0].extent, 8));
}

static void counts_trivial_iterators_as_told(void **state) {
  (void)state;
  loop("a", 1), loop("b", 8), loop_from("c", 5, 1);
  tir_expr index = e("+ + * a 8 b c"), out;
  struct tir_progression p;
  assert_true(tir_detect_iter_map(names.ir, &index, 1, vars, 3, TIR_NONE, TIR_MAP_BIJECTIVE, true, &p));
  assert_true(tir_is_const(names.ir, p.base, 5));
  tir_simplify_iter_map(names.ir, &index, 1, vars, 3, TIR_NONE, TIR_MAP_SURJECTIVE, true, &out);
  assert_int_equal(out, e("+ b 5"));
  tir_simplify_iter_map(names.ir, &index, 1, vars, 3, TIR_NONE, TIR_MAP_SURJECTIVE, false, &out);
  assert_int_equal(out, index);
}

static void simplifies_by_predicates(void **state) {
  (void)state;
  loop("a", 16), loop("b", 4);
  tir_expr indices[] = {e("% a 8"), e("b")}, out[2];
  tir_simplify_iter_map(names.ir, indices, 2, vars, 2, e("< a 8"), TIR_MAP_SURJECTIVE, false, out);
  assert_int_equal(out[0], e("a"));
  tir_simplify_iter_map(names.ir, indices, 2, vars, 2, e("== a b"), TIR_MAP_BIJECTIVE, false, out);
  assert_int_equal(out[0], indices[0]);
}

static void wants_bindings_that_advance_by_one(void **state) {
  (void)state;
  loop("a", 4), loop("b", 8);
  tir_expr even[] = {e("* a 2"), e("b")}, whole[] = {e("+ a 7"), e("b")};
  assert_false(tir_is_affine_map(names.ir, even, 2, vars, 2, TIR_NONE));
  assert_true(tir_is_affine_map(names.ir, whole, 2, vars, 2, TIR_NONE));
  assert_true(tir_is_affine_map(names.ir, even, 2, vars, 0, TIR_NONE));
}

/* What it says of the bindings before is true of those that it gives. */
static void simplifying_tells_of_affine_bindings(void **state) {
  (void)state;
  loop("a", 16), loop("b", 4);
  tir_expr guard = e("< a 8"), units[] = {e("% a 8"), e("b")}, doubled[] = {e("% a 8"), e("* b 2")}, out[2];
  assert_true(tir_simplify_iter_map(names.ir, units, 2, vars, 2, guard, TIR_MAP_SURJECTIVE, false, out));
  assert_true(tir_is_affine_map(names.ir, units, 2, vars, 2, guard));
  assert_true(tir_is_affine_map(names.ir, out, 2, vars, 2, guard));
  assert_false(tir_simplify_iter_map(names.ir, doubled, 2, vars, 2, guard, TIR_MAP_SURJECTIVE, false, out));
  assert_int_equal(out[0], e("a"));
  assert_false(tir_is_affine_map(names.ir, doubled, 2, vars, 2, guard));
}

static void inverts_at_many_points(void **state) {
  (void)state;
  loop("a", 4), loop("b", 8), loop_from("c", 2, 3), loop("u", 1);
  tir_expr indices[] = {e("+ + * a 8 b 1"), e("c")}, values[8];
  tir_expr outputs[] = {e("12"), e("4"), e("32"), e("2")};
  assert_true(tir_inverse_affine_map(names.ir, indices, 2, vars, 4, TIR_NONE, outputs, 2, values));
  int64_t wanted[] = {1, 3, 4, 0, 3, 7, 2, 0};
  for (int i = 0; i < 8; i++) {
    if (i % 4 == 3)
      assert_int_equal(values[i], TIR_NONE); /* no index uses u */
    else
      assert_true(tir_is_const(names.ir, values[i], wanted[i]));
  }
  tir_expr even[] = {e("* + * a 8 b 2"), e("c")}, lost[] = {e("b"), e("c")};
  assert_false(tir_inverse_affine_map(names.ir, even, 2, vars, 4, TIR_NONE, outputs, 1, values));
  assert_false(tir_inverse_affine_map(names.ir, lost, 2, vars, 4, TIR_NONE, outputs, 1, values));
}

static void inverts_divided_groups(void **state) {
  (void)state;
  loop("a", 12), loop("b", 15);
  tir_expr indices[] = {e("// + * a 15 b 20"), e("% + * a 15 b 20")}, values[2], outputs[] = {e("4"), e("13")};
  assert_true(tir_inverse_affine_map(names.ir, indices, 2, vars, 2, TIR_NONE, outputs, 1, values));
  assert_true(tir_is_const(names.ir, values[0], 93 / 15) && tir_is_const(names.ir, values[1], 93 % 15));
}

/* Past the room of the short way, and past all room. */
static void survives_many_variables(void **state) {
  (void)state;
  names.count = 0;
  tir_expr sum = tir_int(names.ir, TIR_T_I32, 0);
  for (int i = 0; i < 70; i++) {
    tir_expr zero = tir_int(names.ir, TIR_T_I32, 0), extent = tir_int(names.ir, TIR_T_I32, i < 20 ? 2 : 1);
    vars[i] = tir_new_var(names.ir, TIR_VAR_LOOP, tir_name_of(names.ir, "v"), TIR_T_I32, zero, extent);
    if (i >= 60) continue;
    int64_t scale = (int64_t)1 << (i < 20 ? i : 20);
    sum =
        tir_add(names.ir, sum, tir_mul(names.ir, tir_var_expr(names.ir, vars[i]), tir_int(names.ir, TIR_T_I32, scale)));
  }
  assert_true(tir_detect_iter_map(names.ir, &sum, 1, vars, 30, TIR_NONE, TIR_MAP_SURJECTIVE, true, NULL) ==
              tir_detect_iter_map(names.ir, &sum, 1, vars, 20, TIR_NONE, TIR_MAP_SURJECTIVE, true, NULL));
  assert_true(tir_detect_iter_map(names.ir, &sum, 1, vars, 60, TIR_NONE, TIR_MAP_SURJECTIVE, true, NULL));
  assert_false(tir_detect_iter_map(names.ir, &sum, 1, vars, 70, TIR_NONE, TIR_MAP_SURJECTIVE, true, NULL));
}

static void wants_independent_domains(void **state) {
  (void)state;
  loop("a", 4);
  vars[var_count++] = add_ranged(&names, "b", e("+ a 1"))->var;
  assert_false(recognized(TIR_MAP_SURJECTIVE, NULL, 2, "a", "b"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(knows_mixed_radix_numbers),
      TEST(forgets_maps_of_what_is_taken_back),
      TEST(keeps_facts_while_their_expressions_stand),
      TEST(knows_quotients_and_remainders),
      TEST(divides_groups),
      TEST(follows_guards),
      TEST(keeps_what_is_no_iterator),
      TEST(counts_trivial_iterators_as_told),
      TEST(simplifies_by_predicates),
      TEST(wants_bindings_that_advance_by_one),
      TEST(simplifying_tells_of_affine_bindings),
      TEST(inverts_at_many_points),
      TEST(inverts_divided_groups),
      TEST(survives_many_variables),
      TEST(wants_independent_domains),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

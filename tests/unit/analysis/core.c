/* The arena: interning, sums, quotients and remainders, substitution, undo. */
#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct fixture {
  struct tir *ir;
  tir_var i, j, f;
  tir_expr I, J, F;
};

static tir_expr k(struct tir *ir, int64_t value) { return tir_int(ir, TIR_T_I32, value); }

static tir_var loop_var(struct tir *ir, const char *name, int64_t extent) {
  return tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, name), TIR_T_I32, k(ir, 0), k(ir, extent));
}

static int setup(void **state) {
  static struct fixture x;
  x.ir = tir_new();
  x.i = loop_var(x.ir, "i", 8), x.j = loop_var(x.ir, "j", 16), x.f = loop_var(x.ir, "f", 1024);
  x.I = tir_var_expr(x.ir, x.i), x.J = tir_var_expr(x.ir, x.j), x.F = tir_var_expr(x.ir, x.f);
  *state = &x;
  return 0;
}

static int teardown(void **state) {
  tir_free(((struct fixture *)*state)->ir);
  return 0;
}

static tir_expr i16j(struct fixture *x) { return tir_add(x->ir, tir_mul(x->ir, x->I, k(x->ir, 16)), x->J); }

static void divides_by_minus_one(void **state) {
  struct fixture *x = *state;
  assert_int_equal(tir_floordiv(x->ir, k(x->ir, -1), k(x->ir, -1)), k(x->ir, 1));
  assert_int_equal(tir_floordiv(x->ir, k(x->ir, 6), k(x->ir, -1)), k(x->ir, -6));
  assert_int_equal(tir_floormod(x->ir, k(x->ir, 6), k(x->ir, -1)), k(x->ir, 0));
  assert_int_equal(tir_make(x->ir, TIR_DIV, k(x->ir, 6), k(x->ir, -1)), k(x->ir, -6));
}

static void divides_sums(void **state) {
  struct fixture *x = *state;
  tir_expr s = i16j(x);
  assert_int_equal(tir_floordiv(x->ir, s, k(x->ir, 16)), x->I);
  assert_int_equal(tir_floormod(x->ir, s, k(x->ir, 16)), x->J);
  tir_expr expected = tir_add(x->ir, tir_mul(x->ir, x->I, k(x->ir, 2)), tir_floordiv(x->ir, x->J, k(x->ir, 8)));
  assert_int_equal(tir_floordiv(x->ir, s, k(x->ir, 8)), expected);
  assert_int_equal(tir_floordiv(x->ir, s, k(x->ir, 128)), k(x->ir, 0));
}

static void joins_quotient_and_remainder(void **state) {
  struct fixture *x = *state;
  tir_expr c = k(x->ir, 128), d = k(x->ir, 8);
  tir_expr high = tir_mul(x->ir, tir_floordiv(x->ir, x->F, c), c), low = tir_floormod(x->ir, x->F, c);
  assert_int_equal(tir_add(x->ir, high, low), x->F);
  tir_expr middle = tir_mul(x->ir, tir_floordiv(x->ir, low, d), d);
  tir_expr all = tir_add(x->ir, tir_add(x->ir, high, middle), tir_floormod(x->ir, x->F, d));
  assert_int_equal(all, x->F);
}

/* As of the rows of images that one loop runs over: of a sum, the remainder by an image is taken before the quotient by
 * a line. */
static void joins_digits_of_sums(void **state) {
  struct fixture *x = *state;
  struct tir *ir = x->ir;
  tir_expr a = tir_add(ir, tir_add(ir, tir_mul(ir, x->F, k(ir, 12)), tir_mul(ir, x->J, k(ir, 6))), k(ir, 1));
  tir_expr image = k(ir, 3136), line = k(ir, 56);
  tir_expr lines = tir_floordiv(ir, tir_floormod(ir, a, image), line);
  assert_int_equal(tir_at(ir, lines)->kind, TIR_FLOORDIV);
  tir_expr high = tir_add(ir, tir_mul(ir, tir_floordiv(ir, a, image), k(ir, 200704)), tir_mul(ir, lines, k(ir, 3584)));
  tir_expr low = tir_mul(ir, tir_floormod(ir, a, line), k(ir, 64));
  assert_int_equal(tir_add(ir, high, low), tir_mul(ir, a, k(ir, 64)));
  /* 3,136 is no multiple of 48: these are no digits of one number */
  tir_expr apart = tir_mul(ir, tir_floordiv(ir, tir_floormod(ir, a, image), k(ir, 48)), k(ir, 48));
  tir_expr sum = tir_add(ir, apart, tir_floormod(ir, a, k(ir, 48)));
  assert_int_equal(sum, tir_add(ir, tir_floormod(ir, a, k(ir, 48)), apart));
  assert_int_not_equal(sum, tir_floormod(ir, a, image));
}

/* As of four loops that one goes on through by tiles of six: the last digit is written as digits of its own. */
static void joins_digits_of_digits(void **state) {
  struct fixture *x = *state;
  struct tir *ir = x->ir;
  tir_expr low = tir_add(ir, tir_mul(ir, x->J, k(ir, 6)), k(ir, 2)), line = k(ir, 32), four = k(ir, 4);
  tir_expr a = tir_add(ir, tir_mul(ir, x->F, k(ir, 12)), low);
  tir_expr middle = tir_floordiv(ir, tir_floormod(ir, a, line), four), last = tir_floormod(ir, low, four);
  assert_int_equal(tir_at(ir, last)->kind, TIR_MUL); /* (3 J + 1) % 2 * 2 */
  tir_expr high = tir_add(ir, tir_mul(ir, tir_floordiv(ir, a, line), k(ir, 96)), tir_mul(ir, middle, k(ir, 12)));
  assert_int_equal(tir_add(ir, high, tir_mul(ir, last, k(ir, 3))), tir_mul(ir, a, k(ir, 3)));
  /* so many times another remainder is no digit of it */
  tir_expr other = tir_add(ir, high, tir_mul(ir, last, k(ir, 6)));
  assert_int_not_equal(tir_at(ir, other)->kind, TIR_MUL);
  assert_int_not_equal(other, tir_add(ir, tir_mul(ir, a, k(ir, 3)), tir_mul(ir, last, k(ir, 3))));
}

static void decides_comparisons_by_bounds(void **state) {
  struct fixture *x = *state;
  assert_true(tir_prove(x->ir, tir_make(x->ir, TIR_LT, i16j(x), k(x->ir, 128))));
  assert_true(tir_is_const(x->ir, tir_make(x->ir, TIR_GE, x->J, k(x->ir, 16)), 0));
  tir_expr a = tir_make(x->ir, TIR_LT, tir_mul(x->ir, x->I, k(x->ir, 4)), k(x->ir, 13));
  assert_int_equal(a, tir_make(x->ir, TIR_LT, x->I, k(x->ir, 4)));
}

static void rewinds(void **state) {
  struct fixture *x = *state;
  struct tir_mark mark = tir_mark(x->ir);
  tir_expr sum = tir_add(x->ir, x->F, x->J);
  uint32_t count = x->ir->exprs.count;
  tir_rewind(x->ir, &mark);
  assert_int_equal(tir_add(x->ir, x->F, x->J), sum);
  assert_int_equal(x->ir->exprs.count, count);
}

static void substitutes(void **state) {
  struct fixture *x = *state;
  tir_subst_var(x->ir, x->f, i16j(x));
  tir_expr e = tir_subst(x->ir, tir_floordiv(x->ir, x->F, k(x->ir, 16)));
  tir_subst_clear(x->ir);
  assert_int_equal(e, x->I);
}

static void copies(void **state) {
  struct fixture *x = *state;
  struct tir *copy = tir_new();
  tir_copy(copy, x->ir);
  assert_int_equal(tir_add(copy, x->F, x->J), tir_add(x->ir, x->F, x->J));
  tir_free(copy);
}

static void finds_residues(void **state) {
  struct fixture *x = *state;
  int64_t m, r;
  tir_modular(x->ir, tir_add(x->ir, tir_mul(x->ir, x->F, k(x->ir, 12)), k(x->ir, 18)), &m, &r);
  assert_int_equal(m, 12);
  assert_int_equal(r, 6);
}

/* Variables that stay in their first round of values, in another, or in several. */
static void divides_variables(void **state) {
  struct fixture *x = *state;
  tir_var v = tir_new_var(x->ir, TIR_VAR_LOOP, tir_name_of(x->ir, "v"), TIR_T_I32, k(x->ir, 16), k(x->ir, 8));
  tir_expr V = tir_var_expr(x->ir, v), rest = tir_floormod(x->ir, x->F, k(x->ir, 8));
  assert_int_equal(tir_floordiv(x->ir, x->I, k(x->ir, 8)), k(x->ir, 0));
  assert_int_equal(tir_floormod(x->ir, x->I, k(x->ir, 8)), x->I);
  assert_int_equal(tir_floordiv(x->ir, V, k(x->ir, 8)), k(x->ir, 2));
  assert_int_equal(tir_floormod(x->ir, V, k(x->ir, 8)), tir_sub(x->ir, V, k(x->ir, 16)));
  assert_int_equal(rest, tir_binary(x->ir, TIR_FLOORMOD, x->F, k(x->ir, 8)));
  assert_int_equal(tir_floordiv(x->ir, x->F, k(x->ir, 1)), x->F);
}

/* Ranges may load only where some integer or truth does. */
static void knows_what_loads(void **state) {
  struct fixture *x = *state;
  tir_expr extent = k(x->ir, 8), load;
  tir_buffer f =
      tir_new_buffer(x->ir, tir_symbol_of(x->ir, "F"), TIR_T_F32, &extent, 1, tir_symbol_of(x->ir, "global"));
  tir_buffer n =
      tir_new_buffer(x->ir, tir_symbol_of(x->ir, "N"), TIR_T_I32, &extent, 1, tir_symbol_of(x->ir, "global"));
  load = tir_load(x->ir, f, &x->I, 1, TIR_NONE);
  tir_binary(x->ir, TIR_ADD, load, load);
  assert_false(x->ir->indirect);
  struct tir *copy = tir_new();
  tir_copy(copy, x->ir);
  tir_binary(copy, TIR_LT, load, load);
  assert_true(copy->indirect);
  tir_load(x->ir, n, &x->I, 1, TIR_NONE);
  assert_true(x->ir->indirect);
  tir_free(copy);
}

static void renders_names_of_stem_and_number(void **state) {
  struct fixture *x = *state;
  char text[32];
  tir_name ax = tir_name_ordinal(x->ir, tir_symbol_of(x->ir, "ax"), 12);
  assert_int_equal(tir_name_render(x->ir, ax, text, sizeof text), 4);
  assert_string_equal(text, "ax12");
  tir_name_render(x->ir, tir_name_number(x->ir, tir_name_suffix(x->ir, ax, "_fused"), 1), text, sizeof text);
  assert_string_equal(text, "ax12_fused_1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(divides_sums, setup, teardown),
      cmocka_unit_test_setup_teardown(divides_by_minus_one, setup, teardown),
      cmocka_unit_test_setup_teardown(joins_quotient_and_remainder, setup, teardown),
      cmocka_unit_test_setup_teardown(joins_digits_of_sums, setup, teardown),
      cmocka_unit_test_setup_teardown(joins_digits_of_digits, setup, teardown),
      cmocka_unit_test_setup_teardown(decides_comparisons_by_bounds, setup, teardown),
      cmocka_unit_test_setup_teardown(rewinds, setup, teardown),
      cmocka_unit_test_setup_teardown(substitutes, setup, teardown),
      cmocka_unit_test_setup_teardown(copies, setup, teardown),
      cmocka_unit_test_setup_teardown(finds_residues, setup, teardown),
      cmocka_unit_test_setup_teardown(divides_variables, setup, teardown),
      cmocka_unit_test_setup_teardown(knows_what_loads, setup, teardown),
      cmocka_unit_test_setup_teardown(renders_names_of_stem_and_number, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

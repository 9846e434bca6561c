/* Masks of variables share bits: what holds none of the variables asked for is left alone all the same, so that no
 * result depends on how many variables there are. */
#include "tir/analysis/analysis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { BITS = 64 };

/* Two variables in [0, 8) with the same bit in masks. */
static void make_pair(struct tir *ir, tir_var pair[2]) {
  tir_expr zero = tir_int(ir, TIR_T_I32, 0), eight = tir_int(ir, TIR_T_I32, 8);
  for (int i = 0; i <= BITS; i++) {
    tir_var v = tir_new_var(ir, TIR_VAR_PLAIN, tir_name_of(ir, "v"), TIR_T_I32, zero, eight);
    if (i % BITS == 0) pair[i / BITS] = v;
  }
  assert_int_equal(tir_at(ir, tir_var_expr(ir, pair[0]))->vars, tir_at(ir, tir_var_expr(ir, pair[1]))->vars);
}

/* Expressions that simplification would change. */
static uint32_t make_raw(struct tir *ir, tir_var v, tir_expr out[4]) {
  tir_expr x = tir_var_expr(ir, v), nine = tir_int(ir, TIR_T_I32, 9);
  tir_expr holds = tir_binary(ir, TIR_LT, x, nine);
  out[0] = holds;
  out[1] = tir_unary(ir, TIR_NOT, TIR_T_BOOL, tir_unary(ir, TIR_NOT, TIR_T_BOOL, holds));
  out[2] = tir_binary(ir, TIR_FLOORMOD, x, nine);
  out[3] = tir_binary(ir, TIR_ADD, tir_int(ir, TIR_T_I32, 1), x);
  return 4;
}

static void leaves_others_as_they_are(void **state) {
  (void)state;
  struct tir *ir = tir_new();
  tir_var pair[2];
  tir_expr raw[4];
  make_pair(ir, pair);
  uint32_t count = make_raw(ir, pair[0], raw);
  tir_subst_var(ir, pair[1], tir_int(ir, TIR_T_I32, 3));
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(tir_subst(ir, raw[i]), raw[i]);
    assert_int_equal(tir_subst_value(ir, raw[i]), raw[i]);
  }
  tir_subst_clear(ir);
  for (uint32_t i = 0; i < count; i++) assert_int_not_equal(tir_simplify(ir, raw[i]), raw[i]);
  tir_free(ir);
}

static void relaxes_no_others(void **state) {
  (void)state;
  struct tir *ir = tir_new();
  tir_var pair[2];
  tir_expr raw[4];
  make_pair(ir, pair);
  uint32_t count = make_raw(ir, pair[0], raw);
  for (uint32_t i = 0; i < count; i++) {
    struct tir_interval all = tir_relax(ir, raw[i], &pair[1], 1);
    assert_true(all.min == raw[i] && all.max == raw[i]);
    assert_false(tir_uses_any_var(ir, raw[i], &pair[1], 1));
    assert_true(tir_uses_any_var(ir, raw[i], pair, 2));
  }
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(leaves_others_as_they_are),
      cmocka_unit_test(relaxes_no_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Add unit loop: a loop of one iteration around a loop or block.
 *
 * Requires: not the root block of a function.
 * After:    a serial loop u of extent 1, bound to nothing, whose whole body is the loop or block.
 * Forward:  nothing dies. */
#include "tir/analysis/analysis.h"

static bool check_add_unit_loop(const struct tir *ir, tir_stmt target, ms_error *err) {
  if (tir_is(ir, target, TIR_LOOP) || tir_parent_block(ir, target)) return true;
  return tir_refuse(ir, err, MS_ROOT_BLOCK, target, "a loop cannot stand around the root block `%s`",
                    tir_block_name(ir, target));
}

static tir_loop edit_add_unit_loop(struct tir *ir, tir_stmt target) {
  tir_expr zero = tir_int(ir, TIR_T_I32, 0), one = tir_int(ir, TIR_T_I32, 1);
  tir_var u = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "u"), TIR_T_I32, zero, one);
  tir_loop loop = tir_new_loop(ir, u, zero, one, TIR_SERIAL);
  tir_wrap(ir, target, loop);
  return loop;
}

bool tir_add_unit_loop(struct tir *ir, tir_stmt target, tir_loop *out, ms_error *err) {
  if (!check_add_unit_loop(ir, target, err)) return false;
  *out = edit_add_unit_loop(ir, target);
  return true;
}

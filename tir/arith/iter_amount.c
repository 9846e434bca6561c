/* Amounts of iterator maps: what is equal, divides, or is no less, as far as it is proved. */
#include "iter_map.h"

bool iter_same(const struct tir_iter_map *m, tir_expr a, tir_expr b) {
  if (a == b) return true;
  if (tir_is_int(m->ir, a) && tir_is_int(m->ir, b)) return false;
  return tir_prove_equal(m->ir, a, b);
}

bool iter_divides(const struct tir_iter_map *m, tir_expr a, tir_expr b) {
  struct tir *ir = m->ir;
  if (tir_is_int(ir, b)) {
    int64_t divisor = tir_at(ir, b)->imm;
    if (divisor == 0) return false;
    if (tir_is_int(ir, a)) return tir_at(ir, a)->imm % divisor == 0;
    int64_t modulus, remainder;
    tir_modular(ir, a, &modulus, &remainder);
    if (modulus % divisor == 0) return remainder % divisor == 0;
  }
  if (iter_same(m, a, b)) return true;
  tir_expr rest = tir_floormod(ir, a, b);
  return iter_same(m, rest, tir_int(ir, tir_type_of(ir, rest), 0));
}

bool iter_at_least(const struct tir_iter_map *m, tir_expr a, tir_expr b) {
  if (a == b) return true;
  if (tir_is_int(m->ir, a) && tir_is_int(m->ir, b)) return tir_at(m->ir, a)->imm >= tir_at(m->ir, b)->imm;
  return tir_prove(m->ir, tir_make(m->ir, TIR_GE, a, b));
}

tir_expr iter_ceil_quotient(const struct tir_iter_map *m, tir_expr a, tir_expr b) {
  tir_expr one = iter_int(m, tir_type_of(m->ir, b), 1);
  return tir_floordiv(m->ir, tir_sub(m->ir, tir_add(m->ir, a, b), one), b);
}

bool iter_holds_iterator(const struct tir_iter_map *m, tir_expr e) {
  return tir_uses_masked_var(m->ir, e, m->mask, m->vars, m->var_count);
}

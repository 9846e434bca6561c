/* Fuse: perfectly nested loops, outermost first, become one.
 *
 * Requires: no annotation, no thread binding; each loop starts at zero and is the only child of the one before it;
 *           no extent depends on a loop fused with it; the product fits the variables' type; where unit iterators
 *           are not preserved, no affine bindings are lost; where an extent but the outermost loads, blocks use the
 *           loops by their iterations alone.
 * After:    a serial loop i_j_fused of the product's extent; each old variable is its quotient and remainder, or
 *           zero where its extent is 1. Unless unit iterators are preserved, bindings below do without loops of
 *           extent 1.
 * Forward:  the old loops are dead. */
#include "loops.h"
#include "tir/analysis/order/order.h"
#include "tir/analysis/outside.h"

static bool check_pair(struct tir *ir, tir_loop outer, tir_loop inner, ms_error *err) {
  tir_stmt at = tir_stmt_at(ir, inner)->parent;
  if (at == outer && tir_only_child(ir, outer) == inner) return true;
  while (at && !tir_is(ir, at, TIR_LOOP) && !tir_is(ir, at, TIR_BLOCK)) at = tir_stmt_at(ir, at)->parent;
  if (at == outer)
    return tir_refuse(ir, err, MS_LOOP_NOT_ONLY_CHILD, outer, "the next loop is not this loop's whole body");
  return tir_refuse(ir, err, MS_LOOP_NOT_NESTED, inner, "the loop named before this one is not its parent");
}

static tir_type widest_type(const struct tir *ir, const tir_loop *loops, uint32_t count) {
  tir_type widest = TIR_T_I32;
  for (uint32_t i = 0; i < count; i++) {
    tir_type type = ir->vars.at[tir_as(ir, loops[i], TIR_LOOP)->loop.var].type;
    if (i == 0 || tir_type_bits(type) > tir_type_bits(widest)) widest = type;
  }
  return widest;
}

static bool check_product(struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err) {
  int64_t product = 1, most = tir_type_bounds(widest_type(ir, loops, count)).hi;
  char type[24];
  for (uint32_t i = 0; i < count; i++) {
    int64_t extent = tir_loop_extent(ir, loops[i]);
    if (extent >= 0 && (__builtin_mul_overflow(product, extent, &product) || product > most))
      return tir_refuse(ir, err, MS_TOO_LARGE, loops[i],
                        "the fused extent is past %s, the type of the loops' variables%s",
                        tir_type_text(widest_type(ir, loops, count), type),
                        most < INT64_MAX ? ": write the loops' ranges as T.int64(n), or fuse fewer loops" : "");
  }
  return true;
}

static bool check_fuse(struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err) {
  if (count == 0) return tir_refuse(ir, err, MS_NO_LOOPS, TIR_NONE, "no loop is given");
  for (uint32_t i = 0; i < count; i++) {
    if (!tir_check_plain_loop(ir, loops[i], err)) return false;
    if (i > 0 && !check_pair(ir, loops[i - 1], loops[i], err)) return false;
    tir_expr extent = tir_as(ir, loops[i], TIR_LOOP)->loop.extent;
    for (uint32_t j = 0; j < i; j++)
      if (tir_uses_var(ir, extent, tir_as(ir, loops[j], TIR_LOOP)->loop.var))
        return tir_refuse(ir, err, MS_EXTENT_DEPENDS_ON_LOOP, loops[i], "this loop's extent depends on loop %u", j);
    if (!tir_check_place_steady(ir, loops[i], loops[0], err)) return false;
    bool loads = tir_at(ir, extent)->flags & TIR_HAS_LOAD;
    for (uint32_t j = 0; loads && j <= i && i > 0; j++)
      if (!tir_check_loaded_outside(ir, loops[j], extent, err)) return false;
  }
  return check_product(ir, loops, count, err);
}

static tir_name fused_name(struct tir *ir, const tir_loop *loops, uint32_t count) {
  tir_name name = ir->vars.at[tir_as(ir, loops[0], TIR_LOOP)->loop.var].name;
  for (uint32_t i = 1; i < count; i++)
    name = tir_name_join(ir, name, ir->vars.at[tir_as(ir, loops[i], TIR_LOOP)->loop.var].name);
  return tir_name_suffix(ir, name, "_fused");
}

/* What lies between `lower` and `lower * extent` of the fused variable, in the simplifier's form: quotient first. */
static tir_expr make_part(struct tir *ir, tir_expr fused, tir_expr lower, tir_expr extent, bool outermost) {
  tir_type type = tir_type_of(ir, fused);
  if (!tir_is_int(ir, lower) || !tir_is_int(ir, extent)) {
    tir_expr rest = outermost ? fused : tir_floormod(ir, fused, tir_mul(ir, extent, lower));
    return tir_floordiv(ir, rest, lower);
  }
  int64_t divisor = tir_at(ir, lower)->imm, most = tir_at(ir, fused)->hi, modulus = tir_at(ir, extent)->imm;
  if (divisor != 1) fused = tir_binary(ir, TIR_FLOORDIV, fused, tir_int(ir, type, divisor));
  return most / divisor < modulus ? fused : tir_binary(ir, TIR_FLOORMOD, fused, tir_int(ir, type, modulus));
}

/* Maps each old variable to its part of the fused one, innermost first. */
static void map_variables(struct tir *ir, const tir_loop *loops, uint32_t count, tir_expr fused, tir_type type) {
  tir_expr lower = tir_int(ir, type, 1);
  for (uint32_t i = count; i-- > 0;) {
    tir_var var = tir_as(ir, loops[i], TIR_LOOP)->loop.var;
    tir_type own = ir->vars.at[var].type;
    tir_expr extent = tir_cast(ir, type, tir_as(ir, loops[i], TIR_LOOP)->loop.extent);
    if (tir_is_const(ir, extent, 1)) {
      tir_subst_var(ir, var, tir_int(ir, own, 0));
      continue;
    }
    tir_subst_var(ir, var, tir_cast(ir, own, make_part(ir, fused, lower, extent, i == 0)));
    lower = tir_mul(ir, extent, lower);
  }
}

static tir_loop edit_fuse(struct tir *ir, const tir_loop *loops, uint32_t count, bool preserve_unit_iters) {
  tir_type type = widest_type(ir, loops, count);
  tir_expr zero = tir_int(ir, type, 0), extent = tir_int(ir, type, 1);
  for (uint32_t i = 0; i < count; i++)
    extent = tir_mul(ir, extent, tir_cast(ir, type, tir_as(ir, loops[i], TIR_LOOP)->loop.extent));
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, fused_name(ir, loops, count), type, zero, extent);
  tir_loop fused = tir_new_loop(ir, var, zero, extent, TIR_SERIAL);
  map_variables(ir, loops, count, tir_var_expr(ir, var), type);
  tir_move_children(ir, loops[count - 1], TIR_BODY, fused, TIR_BODY);
  tir_replace(ir, loops[0], fused);
  tir_kill(ir, loops[0]);
  bool guarded = tir_subst_loops(ir, fused);
  tir_subst_clear(ir);
  if (guarded || !preserve_unit_iters) tir_simplify_bindings(ir, fused, preserve_unit_iters);
  return fused;
}

static bool check_bindings(struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err) {
  if (!tir_has_guard(ir, loops[0])) return true;
  struct tir *after = tir_new();
  tir_copy(after, ir);
  edit_fuse(after, loops, count, false);
  bool kept = tir_check_bindings_kept(ir, loops[0], after, err);
  tir_free(after);
  return kept;
}

bool tir_fuse(struct tir *ir, const tir_loop *loops, uint32_t count, bool preserve_unit_iters, tir_loop *out,
              ms_error *err) {
  assert(loops || !count);
  if (!check_fuse(ir, loops, count, err)) return false;
  if (!preserve_unit_iters && !check_bindings(ir, loops, count, err)) return false;
  *out = edit_fuse(ir, loops, count, preserve_unit_iters);
  return true;
}

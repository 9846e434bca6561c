/* Split: one loop becomes a nest of as many loops as there are factors.
 *
 * Requires: no annotation, no thread binding; the loop starts at zero; at most one factor open, the others positive;
 *           without an open one, the product is at least the extent; where unit iterators are not preserved, no
 *           affine bindings are lost; where the product may exceed the extent, ranges and conditions inside load what
 *           is there all the same, and nothing beside the blocks stores, calls or loops while a condition holds; where
 *           an inner factor loads, blocks use the loop by their iterations alone.
 * After:    serial loops i_0, i_1, …; i is ((i_0) * f_1 + i_1) * f_2 + …. Where the product may exceed the extent, the
 *           blocks directly inside get the predicate i < extent, unless predication is disabled. Unless unit iterators
 *           are preserved, bindings below do without loops of extent 1.
 * Forward:  the old loop is dead. */
#include "loops.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/order.h"
#include "tir/analysis/outside.h"

#include <stdlib.h>

struct split_plan {
  tir_expr *factors; /* all known, in the loop's type */
  bool guarded;      /* the blocks inside need the predicate i < extent */
};

enum { MOST_ON_STACK = 16 };

static tir_type loop_type(const struct tir *ir, tir_loop loop) {
  return ir->vars.at[tir_as(ir, loop, TIR_LOOP)->loop.var].type;
}

/* A factor may come as an integer of another width: constants of any are meant. */
static tir_expr in_type(struct tir *ir, tir_type type, tir_expr factor) {
  const struct tir_expr_node *n = tir_at(ir, factor);
  if (n->type == type) return factor;
  return n->kind == TIR_INT_IMM ? tir_int(ir, type, n->imm) : tir_cast(ir, type, factor);
}

static bool refuse_product(struct tir *ir, tir_loop loop, ms_error *err) {
  char text[24];
  tir_type type = loop_type(ir, loop);
  bool widest = tir_type_bounds(type).hi == INT64_MAX;
  return tir_refuse(
      ir, err, MS_TOO_LARGE, loop, "the product of the factors is past %s, the type of the loop's variable%s",
      tir_type_text(type, text), widest ? "" : ": write the loop's range as T.int64(n), or choose smaller factors");
}

/* Gives the number of the open factor (`count`: none) and the product of the constant ones. */
static bool check_factors(struct tir *ir, tir_loop loop, const tir_expr *factors, uint32_t count, uint32_t *open,
                          int64_t *product, ms_error *err) {
  int64_t most = tir_type_bounds(loop_type(ir, loop)).hi;
  *product = 1;
  *open = count;
  if (count == 0) return tir_refuse(ir, err, MS_NO_FACTORS, loop, "no factor is given for this loop");
  for (uint32_t i = 0; i < count; i++) {
    if (factors[i] == TIR_NONE) {
      if (*open < count)
        return tir_refuse(ir, err, MS_TWO_OPEN_FACTORS, loop, "factors %u and %u are both open", *open, i);
      *open = i;
      continue;
    }
    if (!tir_is_int(ir, factors[i])) continue;
    int64_t factor = tir_at(ir, factors[i])->imm;
    if (factor <= 0)
      return tir_refuse(ir, err, MS_FACTOR_NOT_POSITIVE, loop, "factor %u is %lld", i, (long long)factor);
    if (__builtin_mul_overflow(*product, factor, product) || *product > most) return refuse_product(ir, loop, err);
  }
  return true;
}

static bool check_constants(struct tir *ir, tir_loop loop, uint32_t count, uint32_t open, int64_t product,
                            struct split_plan *plan, ms_error *err) {
  tir_type type = loop_type(ir, loop);
  int64_t extent = tir_loop_extent(ir, loop);
  if (open < count) {
    int64_t rest = extent / product + (extent % product != 0);
    plan->factors[open] = tir_int(ir, type, rest);
    product *= rest;
    if (product > tir_type_bounds(type).hi) return refuse_product(ir, loop, err);
  } else if (product < extent) {
    return tir_refuse(ir, err, MS_FACTORS_TOO_SMALL, loop, "the factors make %lld iterations; this loop has %lld",
                      (long long)product, (long long)extent);
  }
  plan->guarded = product > extent;
  return true;
}

/* Where a factor or the extent is no constant. The largest value of the nest is the factors' product less one. */
static bool check_symbols(struct tir *ir, tir_loop loop, uint32_t count, uint32_t open, struct split_plan *plan,
                          ms_error *err) {
  tir_type type = loop_type(ir, loop);
  tir_expr extent = tir_as(ir, loop, TIR_LOOP)->loop.extent, product = tir_int(ir, type, 1);
  for (uint32_t i = 0; i < count; i++)
    if (i != open) product = tir_mul(ir, product, plan->factors[i]);
  if (open < count) {
    tir_expr above = tir_add(ir, extent, tir_sub(ir, product, tir_int(ir, type, 1)));
    plan->factors[open] = tir_floordiv(ir, above, product);
    product = tir_mul(ir, product, plan->factors[open]);
  } else if (!tir_prove(ir, tir_make(ir, TIR_GE, product, extent))) {
    return tir_refuse(ir, err, MS_FACTORS_TOO_SMALL, loop,
                      "it is not known that the factors make as many iterations as this loop has");
  }
  plan->guarded = !tir_prove(ir, tir_make(ir, TIR_LE, product, extent));
  return true;
}

static bool check_split(struct tir *ir, tir_loop loop, const tir_expr *factors, uint32_t count,
                        bool disable_predication, struct split_plan *plan, ms_error *err) {
  uint32_t open;
  int64_t product;
  if (!tir_check_plain_loop(ir, loop, err) || !check_factors(ir, loop, factors, count, &open, &product, err))
    return false;
  bool constant = tir_loop_extent(ir, loop) >= 0;
  for (uint32_t i = 0; i < count; i++) {
    if (i == open) continue;
    plan->factors[i] = in_type(ir, loop_type(ir, loop), factors[i]);
    constant &= tir_is_int(ir, factors[i]);
  }
  if (!(constant ? check_constants(ir, loop, count, open, product, plan, err)
                 : check_symbols(ir, loop, count, open, plan, err)))
    return false;
  if (disable_predication) plan->guarded = false;
  for (uint32_t i = 1; i < count; i++)
    if (!tir_check_loaded_outside(ir, loop, plan->factors[i], err)) return false;
  return tir_check_place_steady(ir, loop, loop, err); /* the new ranges and predicates are evaluated inside */
}

/* ---- Past the loop's end ---- */

enum { MOST_LOADS = 64, MOST_RANK = 32 };

/* The block around `at` declares of the buffer what is loaded now. */
static bool is_declared_around(const struct tir *ir, tir_stmt at, tir_buffer buffer) {
  const struct tir_block_record *r = tir_block_at(ir, tir_parent_block(ir, at));
  return tir_has_region_of(ir, r->reads, buffer) || tir_has_region_of(ir, r->writes, buffer);
}

/* e may divide by zero where it did not: past the end, or in a loop that would not have run. */
static bool divides_by_more(struct tir *ir, tir_var old, tir_var longer, tir_expr before, tir_expr e) {
  if (!tir_may_divide_by_zero(ir, e)) return false;
  return !tir_may_divide_by_zero(ir, before) || tir_uses_var(ir, e, longer) ||
         tir_at(ir, ir->vars.at[old].extent)->lo < 1;
}

/* The scope evaluates e at `at`, where no guard is, and the loop is a longer one. */
static bool evaluates_as_before(struct tir *ir, tir_var old, tir_var longer, tir_expr e, tir_stmt at) {
  tir_expr loads[MOST_LOADS], ranges[2 * MOST_RANK];
  if (!e || !(tir_at(ir, e)->flags & (TIR_HAS_LOAD | TIR_HAS_DIVMOD))) return true;
  tir_expr before = e;
  tir_subst_var(ir, old, tir_var_expr(ir, longer));
  e = tir_subst(ir, e);
  tir_subst_clear(ir);
  if (divides_by_more(ir, old, longer, before, e)) return false;
  if (!(tir_at(ir, e)->flags & TIR_HAS_LOAD)) return true;
  uint32_t count = tir_find_loads(ir, e, TIR_NONE, loads, MOST_LOADS);
  if (count > MOST_LOADS) return false;
  for (uint32_t i = 0; i < count; i++) {
    struct tir_expr_node n = *tir_at(ir, loads[i]);
    if (!tir_uses_var(ir, loads[i], longer)) continue;
    if (n.count > MOST_RANK || !tir_is_load_inside(ir, loads[i]) || is_declared_around(ir, at, n.ref)) return false;
    tir_point_ranges(ir, tir_operands(ir, n.operands), n.count, ranges);
    struct tir_use_at use = {at, n.ref, ranges, TIR_NONE};
    if (!tir_is_covered(ir, &use, tir_parent_block(ir, at))) return false;
  }
  return true;
}

/* A scalar of the loop's body: its value is lost at the end of each iteration. */
static bool is_own_scalar(const struct tir *ir, tir_loop loop, tir_stmt store, tir_var var) {
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  for (uint32_t d = 0; d < tir_buffer_at(ir, n.store.buffer)->rank; d++)
    if (tir_uses_var(ir, tir_operands(ir, n.store.indices)[d], var) ||
        tir_at(ir, tir_operands(ir, n.store.indices)[d])->flags & TIR_OF_DATA)
      return false;
  for (tir_stmt s = tir_next(ir, loop, loop); s && s != store; s = tir_next_in_scope(ir, s, loop))
    if (tir_is(ir, s, TIR_ALLOC) && tir_stmt_at(ir, s)->alloc.buffer == n.store.buffer) return true;
  return false;
}

/* Once more, the statement does what is not to be done, or never ends. */
static bool runs_again(const struct tir *ir, tir_loop loop, tir_stmt s) {
  tir_expr own[4];
  uint32_t count = tir_stmt_exprs(ir, s, own);
  if (tir_is(ir, s, TIR_WHILE)) return true;
  if (tir_is(ir, s, TIR_STORE) && !is_own_scalar(ir, loop, s, tir_as(ir, loop, TIR_LOOP)->loop.var)) return true;
  for (uint32_t i = 0; i < count; i++)
    if (tir_has_effect(ir, own[i])) return true;
  return false;
}

/* The new loops run past the end of the old one: blocks are guarded there, ranges, conditions and other statements
 * around them are not. */
static bool check_past_end(struct tir *ir, tir_loop loop, const struct split_plan *plan, uint32_t count,
                           ms_error *err) {
  if (!plan->guarded) return true;
  tir_var old = tir_as(ir, loop, TIR_LOOP)->loop.var;
  tir_expr product = tir_int(ir, loop_type(ir, loop), 1);
  for (uint32_t i = 0; i < count; i++) product = tir_mul(ir, product, plan->factors[i]);
  tir_var longer = tir_new_var(ir, TIR_VAR_LOOP, TIR_NONE, loop_type(ir, loop), ir->vars.at[old].min, product);
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next_in_scope(ir, s, loop)) {
    if (tir_is(ir, s, TIR_BLOCK)) continue;
    if (runs_again(ir, loop, s))
      return tir_refuse(ir, err, MS_RUN_PAST_END, s, "past the end of the loop that is split, this would run too");
    tir_expr own[4];
    uint32_t exprs = tir_stmt_exprs(ir, s, own);
    for (uint32_t i = 0; i < exprs; i++)
      if (!evaluates_as_before(ir, old, longer, own[i], s))
        return tir_refuse(ir, err, MS_LOADED_PAST_END, s,
                          "past the end of the loop that is split, this loads what is not there, or divides by zero");
  }
  return true;
}

/* ---- The edit ---- */

static void add_predicate(struct tir *ir, tir_loop loop, tir_expr predicate) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next_in_scope(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    tir_expr own = tir_as(ir, s, TIR_BLOCK)->block.predicate;
    bool first = own && (tir_at(ir, own)->flags & TIR_HAS_LOAD || tir_may_divide_by_zero(ir, own)); /* the guard */
    tir_expr all = first ? tir_and(ir, predicate, own) : tir_and(ir, own, predicate);
    tir_as(ir, s, TIR_BLOCK)->block.predicate = all;
  }
}

/* The old variable's value: the sum of the new ones, each times the product of the factors inside it. */
static tir_expr make_value(struct tir *ir, tir_type type, const tir_loop *loops, uint32_t count) {
  struct tir_term terms[MOST_ON_STACK];
  int64_t coefficient = 1;
  bool constant = count <= MOST_ON_STACK;
  for (uint32_t i = count; i-- > 0 && constant;) {
    terms[i] = (struct tir_term){coefficient, tir_var_expr(ir, tir_as(ir, loops[i], TIR_LOOP)->loop.var)};
    int64_t extent = tir_loop_extent(ir, loops[i]);
    constant = i == 0 || (extent >= 0 && !__builtin_mul_overflow(coefficient, extent, &coefficient));
  }
  if (constant) return tir_from_terms(ir, type, 0, terms, count);
  tir_expr value = tir_int(ir, type, 0);
  for (uint32_t i = 0; i < count; i++) {
    tir_expr factor = tir_as(ir, loops[i], TIR_LOOP)->loop.extent;
    value = tir_add(ir, tir_mul(ir, value, factor), tir_var_expr(ir, tir_as(ir, loops[i], TIR_LOOP)->loop.var));
  }
  return value;
}

static void edit_split(struct tir *ir, tir_loop loop, const struct split_plan *plan, uint32_t count,
                       bool preserve_unit_iters, tir_loop *out) {
  assert(count > 0);
  tir_var old = tir_as(ir, loop, TIR_LOOP)->loop.var;
  tir_expr extent = tir_as(ir, loop, TIR_LOOP)->loop.extent;
  tir_name name = ir->vars.at[old].name;
  tir_type type = loop_type(ir, loop);
  tir_expr zero = tir_int(ir, type, 0);
  for (uint32_t i = 0; i < count; i++) {
    tir_var v = tir_new_var(ir, TIR_VAR_LOOP, tir_name_number(ir, name, i), type, zero, plan->factors[i]);
    out[i] = tir_new_loop(ir, v, zero, plan->factors[i], TIR_SERIAL);
    if (i > 0) tir_append(ir, out[i - 1], TIR_BODY, out[i]);
  }
  tir_move_children(ir, loop, TIR_BODY, out[count - 1], TIR_BODY);
  tir_replace(ir, loop, out[0]);
  tir_kill(ir, loop);
  tir_expr value = make_value(ir, type, out, count);
  tir_subst_var(ir, old, value);
  bool guarded = tir_subst_loops(ir, out[count - 1]);
  tir_subst_clear(ir);
  if (plan->guarded) add_predicate(ir, out[count - 1], tir_make(ir, TIR_LT, value, extent));
  if (guarded || plan->guarded || !preserve_unit_iters) tir_simplify_bindings(ir, out[0], preserve_unit_iters);
}

static bool check_bindings(struct tir *ir, tir_loop loop, const struct split_plan *plan, uint32_t count,
                           tir_loop *loops, ms_error *err) {
  if (!plan->guarded && !tir_has_guard(ir, loop)) return true;
  struct tir *after = tir_new();
  tir_copy(after, ir);
  edit_split(after, loop, plan, count, false, loops);
  bool kept = tir_check_bindings_kept(ir, loop, after, err);
  tir_free(after);
  return kept;
}

bool tir_split(struct tir *ir, tir_loop loop, const tir_expr *factors, uint32_t count, bool preserve_unit_iters,
               bool disable_predication, tir_loop *out, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  tir_expr on_stack[MOST_ON_STACK];
  struct split_plan plan = {.factors = tir_room(on_stack, sizeof on_stack, count * sizeof *plan.factors)};
  struct tir_mark mark = tir_mark(ir);
  bool accepted = check_split(ir, loop, factors, count, disable_predication, &plan, err) &&
                  check_past_end(ir, loop, &plan, count, err) &&
                  (preserve_unit_iters || check_bindings(ir, loop, &plan, count, out, err));
  if (accepted)
    edit_split(ir, loop, &plan, count, preserve_unit_iters, out);
  else
    tir_rewind(ir, &mark);
  if (plan.factors != on_stack) free(plan.factors);
  return accepted;
}

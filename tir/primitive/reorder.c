/* Reorder: loops of one nest take the given order; those between them that are not named keep their places.
 *
 * Requires: no loop is named twice; they lie in one nest whose loops, from the outermost named to the innermost, are
 *           each the whole body of the one around; the blocks inside have spatial and reduction iterations only,
 *           bound to affine iterators; no loop's range depends on one that would be inside it; what is fused of
 *           spatial and reduction loops keeps its order, as long as the reduction has its init, and a reduction that
 *           starts over in iterations of other loops stays inside of these; iterations that change places use nothing
 *           that the other writes, but to combine it.
 * After:    the same loops in the new order.
 * Forward:  nothing: loops keep their identity. */
#include "loops.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/outside.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ON_STACK = 64 };

struct reorder_plan {
  tir_loop *chain; /* the nest as it is, outermost first */
  tir_loop *order; /* as it shall be */
  uint32_t depth;
};

static bool is_named(const tir_loop *loops, uint32_t count, tir_loop l) {
  for (uint32_t i = 0; i < count; i++)
    if (loops[i] == l) return true;
  return false;
}

/* Marks the loops that are named. False: one is named twice. */
static bool mark_named(struct tir *ir, const tir_loop *loops, uint32_t count, uint32_t *marked) {
  for (*marked = 0; *marked < count; ++*marked) {
    struct tir_stmt_node *n = tir_stmt_at(ir, loops[*marked]);
    if (n->mark) return false;
    n->mark = 1;
  }
  return true;
}

/* The innermost named loop of those that are each the whole body of the one around, from a named one down. */
static tir_loop innermost_named(const struct tir *ir, tir_loop loop) {
  tir_loop innermost = loop;
  for (tir_stmt s = tir_only_child(ir, loop); s && tir_is(ir, s, TIR_LOOP); s = tir_only_child(ir, s))
    if (tir_stmt_at(ir, s)->mark) innermost = s;
  return innermost;
}

/* Walks up from `bottom` to the outermost named loop; gives the number of loops, 0 where the nest is not whole. */
static uint32_t count_nest(const struct tir *ir, uint32_t count, tir_loop bottom) {
  uint32_t depth = 0, named = 0;
  for (tir_stmt s = bottom; s && tir_is(ir, s, TIR_LOOP); s = tir_stmt_at(ir, s)->parent) {
    depth++;
    if (tir_stmt_at(ir, s)->mark && ++named == count) return depth;
  }
  return 0;
}

/* The innermost of the loops, which are marked, and the depth of the nest from there to the outermost. */
static bool check_chain(const struct tir *ir, const tir_loop *loops, uint32_t count, tir_loop *bottom, uint32_t *depth,
                        ms_error *err) {
  *bottom = innermost_named(ir, loops[count - 1]);
  *depth = count_nest(ir, count, *bottom);
  if (!*depth) {
    for (uint32_t i = 0; i < count; i++)
      if (tir_is_below(ir, loops[i], *bottom)) *bottom = loops[i];
    *depth = count_nest(ir, count, *bottom);
  }
  if (!*depth)
    return tir_refuse(ir, err, MS_LOOPS_NOT_A_CHAIN, *bottom,
                      "not all of the loops are around this one, directly nested");
  tir_stmt at = *bottom;
  for (uint32_t i = 1; i < *depth; i++) {
    tir_stmt parent = tir_stmt_at(ir, at)->parent;
    if (tir_only_child(ir, parent) != at)
      return tir_refuse(ir, err, MS_LOOPS_NOT_A_CHAIN, parent, "this loop's body is more than the next loop");
    at = parent;
  }
  return true;
}

static bool uses_loop(const struct tir *ir, tir_expr e, tir_loop l) {
  return tir_uses_var(ir, e, tir_as(ir, l, TIR_LOOP)->loop.var);
}

/* A quotient or remainder of several loops together: which values one of them has for an element depends on the others.
 */
static bool has_entangled_loops(struct tir *ir, const struct reorder_plan *plan, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    struct tir_linear l = tir_linear_of(ir, ir->iters.at[i].binding);
    for (uint32_t t = 0; t < l.count; t++) {
      tir_expr atom = ir->terms.at[l.first + t].atom;
      uint32_t loops = 0;
      for (uint32_t d = 0; d < plan->depth && tir_at(ir, atom)->kind != TIR_VAR; d++)
        loops += uses_loop(ir, atom, plan->chain[d]);
      if (loops > 1) return true;
    }
  }
  return false;
}

static bool is_in_both(struct tir *ir, tir_block block, tir_loop loop) {
  return tir_loop_extent(ir, loop) != 1 && tir_loop_iter_kinds(ir, loop, block) == 3;
}

static bool stands_with_both(struct tir *ir, const struct reorder_plan *plan, tir_block block, tir_loop loop) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    tir_expr binding = ir->iters.at[i].binding;
    for (uint32_t l = 0; l < plan->depth && uses_loop(ir, binding, loop); l++)
      if (uses_loop(ir, binding, plan->chain[l]) && is_in_both(ir, block, plan->chain[l])) return true;
  }
  return false;
}

/* Where loops of the nest are in spatial bindings and in reductions of `block`: those, and all that stand in a binding
 * with one of them, outermost first. Loops of one iteration do not count. */
static uint32_t find_tied(struct tir *ir, const struct reorder_plan *plan, tir_block block, tir_loop *tied) {
  uint64_t spatial = 0, reduced = 0;
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    *(ir->iters.at[i].kind == TIR_REDUCE ? &reduced : &spatial) |= tir_at(ir, ir->iters.at[i].binding)->vars;
  if (!(spatial & reduced) || !has_entangled_loops(ir, plan, block)) return 0;
  uint32_t count = 0;
  for (uint32_t l = 0; l < plan->depth; l++)
    if (tir_loop_extent(ir, plan->chain[l]) != 1 && stands_with_both(ir, plan, block, plan->chain[l]))
      tied[count++] = plan->chain[l];
  return count;
}

/* A reduction's init runs where its iterations are at their minima, which must come first for each element. Loops that
 * are reductions alone see to that in any order, and so do whole digits of loops; where what was fused of a spatial
 * loop and a reduction was split across its digits, only the order of the pieces does. */
static bool check_init_first(struct tir *ir, const struct reorder_plan *plan, tir_block block, tir_loop *tied,
                             ms_error *err) {
  if (!tir_stmt_at(ir, block)->first[TIR_INIT]) return true;
  uint32_t count = find_tied(ir, plan, block, tied), next = 0;
  for (uint32_t i = 0; i < plan->depth && next < count; i++) {
    if (!is_named(tied, count, plan->order[i])) continue;
    if (plan->order[i] != tied[next++])
      return tir_refuse(ir, err, MS_REORDER_INIT, block, "block `%s` binds a loop both spatially and as a reduction",
                        tir_block_name(ir, block));
  }
  return true;
}

static bool is_bound(const struct tir *ir, tir_block block, tir_loop loop, bool to_reductions) {
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    const struct tir_iter *iter = &tir_iters(ir, block)[i];
    if (to_reductions && iter->kind != TIR_REDUCE) continue;
    if (uses_loop(ir, iter->binding, loop)) return true;
  }
  return false;
}

static uint32_t position_of(const struct reorder_plan *plan, tir_loop loop) {
  uint32_t i = 0;
  while (plan->chain[i] != loop) i++;
  return i;
}

/* The digits of a sum, counted from 1, that some binding uses: from `low` on, below `high`; and the coefficient of a
 * loop in the sum. */
struct digits {
  tir_expr sum;
  int64_t coefficient, low, high;
};

/* The digits that `atom` uses of a sum with v in it: a quotient its upper ones, a remainder the lower ones. False: not
 * known. */
static bool find_digits(struct tir *ir, tir_expr atom, tir_var v, struct digits *out) {
  struct tir_expr_node n = *tir_at(ir, atom), inner = *tir_at(ir, n.a);
  if ((n.kind != TIR_FLOORDIV && n.kind != TIR_FLOORMOD) || !tir_is_int(ir, n.b)) return false;
  bool quotient = n.kind == TIR_FLOORDIV;
  int64_t by = tir_at(ir, n.b)->imm;
  *out = (struct digits){n.a, 0, quotient ? by : 1, quotient ? INT64_MAX : by};
  if (inner.kind == (quotient ? TIR_FLOORMOD : TIR_FLOORDIV) && tir_is_int(ir, inner.b)) {
    int64_t other = tir_at(ir, inner.b)->imm;
    if (quotient)
      out->high = other;
    else if (out->low = other, __builtin_mul_overflow(by, other, &out->high))
      return false;
    out->sum = inner.a;
  }
  struct tir_linear l = tir_linear_of(ir, out->sum);
  for (uint32_t t = 0; t < l.count; t++) {
    struct tir_term term = ir->terms.at[l.first + t];
    if (tir_at(ir, term.atom)->kind != TIR_VAR || tir_at(ir, term.atom)->ref != v || term.coefficient <= 0) continue;
    out->coefficient = term.coefficient;
    return true;
  }
  return false;
}

enum { MOST_DIGITS = 16 };

/* How many values of the loop its digits distinguish, whatever sums they are of. */
static int64_t distinguished_by_digits(const struct digits *used, uint32_t count) {
  int64_t reach = 1, before;
  do {
    before = reach;
    for (uint32_t i = 0; i < count; i++) {
      int64_t unit = used[i].coefficient, high = used[i].high / unit;
      if ((used[i].low - 1) / unit < reach && high > reach) reach = high;
    }
  } while (reach != before);
  return reach;
}

/* The least common multiple, INT64_MAX where that is no int64. */
static int64_t common_multiple(int64_t a, int64_t b) {
  int64_t rest = b, divisor = a, multiple;
  while (rest) {
    int64_t next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  return __builtin_mul_overflow(a / divisor, b, &multiple) ? INT64_MAX : multiple;
}

/* How many are distinguished by digits of sums in which the loop has this coefficient, the other loops staying as they
 * are: the remainders by it are known then, and digits join where they begin at a divisor of what the remainders are
 * known by. The loop's own steps need not meet them: in (6 * v + u) // 14 and (6 * v + u) % 14 all of the sum is used,
 * so all of v. Sums may differ by multiples that remainders leave out: the lowest digits of 448 * w + 28 * v + u are
 * (28 * v + u) % 16. */
static int64_t distinguished_together(const struct digits *used, uint32_t count, int64_t coefficient) {
  int64_t reach = coefficient, before;
  do {
    before = reach;
    for (uint32_t i = 0; i < count && reach != INT64_MAX; i++)
      if (used[i].coefficient == coefficient && reach % used[i].low == 0)
        reach = used[i].high == INT64_MAX ? INT64_MAX : common_multiple(reach, used[i].high);
  } while (reach != before);
  return reach / coefficient;
}

/* The bindings of the block do not use some digits of the loop: for these it repeats what is inside. */
static bool leaves_digits(struct tir *ir, tir_block block, tir_loop loop) {
  tir_var v = tir_as(ir, loop, TIR_LOOP)->loop.var;
  struct digits used[MOST_DIGITS];
  uint32_t count = 0;
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    struct tir_linear l = tir_linear_of(ir, ir->iters.at[i].binding);
    for (uint32_t t = 0; t < l.count; t++) {
      tir_expr atom = ir->terms.at[l.first + t].atom;
      if (!tir_uses_var(ir, atom, v)) continue;
      if (count == MOST_DIGITS || !find_digits(ir, atom, v, &used[count++])) return false;
    }
  }
  int64_t known = tir_loop_extent(ir, loop), extent = known < 0 ? INT64_MAX : known;
  bool leaves = distinguished_by_digits(used, count) < extent;
  for (uint32_t i = 0; i < count && leaves; i++)
    leaves = distinguished_together(used, count, used[i].coefficient) < extent;
  return leaves;
}

/* Loops that are terms of bindings as they are, so that each of their values counts: by variable mod 64. */
struct whole_terms {
  tir_var vars[64];
};

static void find_whole_terms(struct tir *ir, tir_block block, struct whole_terms *out) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  memset(out, 0, sizeof *out);
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    struct tir_linear l = tir_linear_of(ir, ir->iters.at[i].binding);
    for (uint32_t t = l.first; t < l.first + l.count; t++) {
      const struct tir_expr_node *n = tir_at(ir, ir->terms.at[t].atom);
      if (n->kind == TIR_VAR) out->vars[n->ref & 63] = n->ref;
    }
  }
}

/* A loop that binds nothing, or whose digits are not all bound, repeats what is inside. Outside of a reduction it
 * repeats it from its init on; inside it takes each step several times: neither may become the other. */
static bool check_repeats(struct tir *ir, const struct reorder_plan *plan, tir_block block, ms_error *err) {
  if (!tir_stmt_at(ir, block)->first[TIR_INIT]) return true;
  struct whole_terms whole;
  find_whole_terms(ir, block, &whole);
  for (uint32_t i = 0; i < plan->depth; i++) {
    tir_loop repeats = plan->order[i];
    tir_var v = tir_as(ir, repeats, TIR_LOOP)->loop.var;
    if (whole.vars[v & 63] == v || tir_loop_extent(ir, repeats) == 1 ||
        (is_bound(ir, block, repeats, false) && !leaves_digits(ir, block, repeats)))
      continue;
    uint32_t was = position_of(plan, repeats);
    for (uint32_t k = 0; k < plan->depth; k++)
      if ((k < i) != (position_of(plan, plan->order[k]) < was) && tir_loop_extent(ir, plan->order[k]) != 1 &&
          is_bound(ir, block, plan->order[k], true))
        return tir_refuse(ir, err, MS_REORDER_INIT, repeats, "this loop would repeat steps of block `%s`'s reduction",
                          tir_block_name(ir, block));
  }
  return true;
}

/* Of a loop in the block's spatial bindings and one in its reductions, the one around becomes the one inside. */
static bool crosses_reductions(struct tir *ir, const struct reorder_plan *plan, tir_block block) {
  for (uint32_t i = 0; i < plan->depth; i++)
    for (uint32_t k = i + 1; k < plan->depth; k++)
      if (position_of(plan, plan->order[i]) > position_of(plan, plan->order[k]) &&
          (tir_loop_iter_kinds(ir, plan->order[i], block) | tir_loop_iter_kinds(ir, plan->order[k], block)) == 3 &&
          tir_loop_extent(ir, plan->order[i]) != 1 && tir_loop_extent(ir, plan->order[k]) != 1)
        return true;
  return false;
}

/* Where an element is computed in several iterations of the loops of its spatial bindings, each starts it over: no loop
 * that reduces may come around those that were around it. */
static bool check_begun_again(struct tir *ir, const struct reorder_plan *plan, tir_block block, ms_error *err) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  bool overlap = false;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    overlap |= tir_steps_overlap(ir, tir_linear_of(ir, ir->iters.at[i].binding));
  if (!overlap || !tir_stmt_at(ir, block)->first[TIR_INIT] || !crosses_reductions(ir, plan, block)) return true;
  tir_expr bindings[MOST_ON_STACK];
  tir_var vars[MOST_ON_STACK];
  bool fits = plan->depth <= MOST_ON_STACK && iters.count <= MOST_ON_STACK;
  for (uint32_t l = 0; l < plan->depth && fits; l++) vars[l] = tir_as(ir, plan->chain[l], TIR_LOOP)->loop.var;
  for (uint32_t i = 0; i < iters.count && fits; i++) bindings[i] = ir->iters.at[iters.first + i].binding;
  if (fits &&
      tir_is_one_to_one(ir, bindings, iters.count, vars, plan->depth, tir_as(ir, block, TIR_BLOCK)->block.predicate))
    return true;
  return tir_refuse(ir, err, MS_REORDER_INIT, block,
                    "several iterations of the loops may take steps of block `%s`'s reduction",
                    tir_block_name(ir, block));
}

static bool check_blocks(struct tir *ir, const struct reorder_plan *plan, tir_loop *tied, ms_error *err) {
  tir_loop bottom = plan->chain[plan->depth - 1];
  tir_stmt high = tir_stmt_at(ir, plan->chain[0])->parent;
  for (tir_stmt s = tir_next(ir, bottom, bottom); s; s = tir_next_in_scope(ir, s, bottom)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    uint32_t count = tir_block_at(ir, s)->iters.count;
    for (uint32_t i = 0; i < count; i++)
      if (tir_iters(ir, s)[i].kind == TIR_OPAQUE)
        return tir_refuse(ir, err, MS_BLOCK_ITER_OPAQUE, s, "this block has an opaque iteration");
    if (count && !tir_is_affine_binding(ir, s, TIR_NONE) && !tir_is_affine_binding(ir, s, high) &&
        !tir_is_affine_without_single(ir, s))
      return tir_refuse(ir, err, MS_BINDING_NOT_AFFINE, s, "this block's bindings are not affine");
    if (!check_init_first(ir, plan, s, tied, err) || !check_repeats(ir, plan, s, err) ||
        !check_begun_again(ir, plan, s, err))
      return false;
  }
  return true;
}

static bool check_ranges(struct tir *ir, const struct reorder_plan *plan, ms_error *err) {
  for (uint32_t i = 0; i < plan->depth; i++) {
    if (!tir_check_place_steady(ir, plan->chain[i], plan->chain[0], err)) return false;
    tir_expr min = tir_as(ir, plan->order[i], TIR_LOOP)->loop.min,
             extent = tir_as(ir, plan->order[i], TIR_LOOP)->loop.extent;
    if (!((tir_at(ir, min)->flags | tir_at(ir, extent)->flags) & TIR_HAS_VAR)) continue;
    for (uint32_t j = i + 1; j < plan->depth; j++) {
      tir_var inner = tir_as(ir, plan->order[j], TIR_LOOP)->loop.var;
      if (tir_uses_var(ir, min, inner) || tir_uses_var(ir, extent, inner))
        return tir_refuse(ir, err, MS_REORDER_DEPENDENT_RANGE, plan->order[i],
                          "this loop's range depends on a loop that would be inside it");
    }
  }
  return true;
}

/* The nest as it is, outermost first, and as it shall be. */
static void make_plan(const struct tir *ir, const tir_loop *loops, tir_loop bottom, struct reorder_plan *plan) {
  for (uint32_t i = plan->depth; i-- > 0; bottom = tir_stmt_at(ir, bottom)->parent) plan->chain[i] = bottom;
  uint32_t next = 0;
  for (uint32_t i = 0; i < plan->depth; i++)
    plan->order[i] = tir_stmt_at(ir, plan->chain[i])->mark ? loops[next++] : plan->chain[i];
}

static bool check_reorder(struct tir *ir, const struct reorder_plan *plan, tir_loop *room, ms_error *err) {
  struct tir_new_order order = {.now = plan->chain, .then = plan->order, .count = plan->depth, .what = "reordered"};
  return check_blocks(ir, plan, room, err) && check_ranges(ir, plan, err) && tir_check_iteration_order(ir, &order, err);
}

/* Loops of a nest have one child each, but for the innermost: only their links change. */
static void edit_reorder(struct tir *ir, const struct reorder_plan *plan) {
  assert(plan->depth > 1);
  uint32_t last = plan->depth - 1;
  struct tir_stmt_node top = *tir_stmt_at(ir, plan->chain[0]), bottom = *tir_stmt_at(ir, plan->chain[last]);
  for (uint32_t i = 0; i <= last; i++) {
    struct tir_stmt_node *n = tir_stmt_at(ir, plan->order[i]);
    n->parent = i > 0 ? plan->order[i - 1] : top.parent;
    n->prev = i > 0 ? TIR_NONE : top.prev;
    n->next = i > 0 ? TIR_NONE : top.next;
    n->list = i > 0 ? TIR_BODY : top.list;
    n->first[TIR_BODY] = i < last ? plan->order[i + 1] : bottom.first[TIR_BODY];
    n->last[TIR_BODY] = i < last ? plan->order[i + 1] : bottom.last[TIR_BODY];
  }
  tir_stmt outermost = plan->order[0], innermost = plan->order[last];
  for (tir_stmt s = bottom.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_stmt_at(ir, s)->parent = innermost;
  *(top.prev ? &tir_stmt_at(ir, top.prev)->next : &tir_stmt_at(ir, top.parent)->first[top.list]) = outermost;
  *(top.next ? &tir_stmt_at(ir, top.next)->prev : &tir_stmt_at(ir, top.parent)->last[top.list]) = outermost;
}

/* Of loops that are marked. */
static bool reorder(struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err) {
  tir_loop on_stack[3 * MOST_ON_STACK], bottom;
  uint32_t depth;
  if (!check_chain(ir, loops, count, &bottom, &depth, err)) return false;
  tir_loop *nest = tir_room(on_stack, sizeof on_stack, 3 * (size_t)depth * sizeof *nest);
  struct reorder_plan plan = {nest, nest + depth, depth};
  make_plan(ir, loops, bottom, &plan);
  bool accepted = check_reorder(ir, &plan, nest + 2 * (size_t)depth, err);
  if (accepted) edit_reorder(ir, &plan);
  if (nest != on_stack) free(nest);
  return accepted;
}

bool tir_reorder(struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err) {
  assert(loops || !count);
  uint32_t marked;
  if (count < 2) return true;
  bool accepted = mark_named(ir, loops, count, &marked);
  if (accepted)
    accepted = reorder(ir, loops, count, err);
  else
    tir_refuse(ir, err, MS_LOOP_REPEATED, loops[marked], "this loop is named twice");
  while (marked-- > 0) tir_stmt_at(ir, loops[marked])->mark = 0;
  return accepted;
}

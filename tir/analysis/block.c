/* Facts of blocks: the domains that they need, how loops drive their iterations, complete and reduction blocks. */
#include "analysis.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/arith/affine.h"

#include <stdlib.h>

/* ---- Loops ---- */

bool tir_loop_starts_at_zero(struct tir *ir, tir_loop l) {
  MS_CHECK(tir_is(ir, l, TIR_LOOP));
  tir_expr min = tir_as(ir, l, TIR_LOOP)->loop.min;
  return tir_is_const(ir, min, 0) || tir_prove_equal(ir, min, tir_int(ir, tir_type_of(ir, min), 0));
}

/* Some value of the variable indexes a buffer outside of its shape, as far as bounds say. */
static bool leaves_buffer(const struct tir *ir, struct tir_span regions, tir_var v) {
  for (uint32_t k = regions.first; k < regions.first + regions.count; k++) {
    const struct tir_buffer_node *buffer = tir_buffer_at(ir, ir->regions.at[k].buffer);
    for (uint32_t d = 0; d < buffer->rank; d++) {
      tir_expr index = ir->operands.at[ir->regions.at[k].ranges + 2 * d];
      struct tir_bounds size = tir_bounds_of(ir, ir->operands.at[buffer->shape + d]), at = tir_bounds_of(ir, index);
      struct tir_bounds extent = tir_bounds_of(ir, ir->operands.at[ir->regions.at[k].ranges + 2 * d + 1]);
      bool outside = at.lo < 0 || tir_sat_add(at.hi, extent.lo) > size.hi;
      if (outside && tir_uses_var(ir, index, v)) return true;
    }
  }
  return false;
}

/* The block writes elements that the variable itself indexes: what it takes lies within the buffers. */
static void keep_inside(const struct tir *ir, tir_block block, tir_var v, struct tir_bounds *taken) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    const struct tir_buffer_node *buffer = tir_buffer_at(ir, ir->regions.at[k].buffer);
    const uint32_t *ranges = tir_operands(ir, ir->regions.at[k].ranges);
    for (uint32_t d = 0; d < buffer->rank; d++) {
      if (ranges[2 * d] != tir_var_expr(ir, v) || !tir_is_const(ir, ranges[2 * d + 1], 1)) continue;
      struct tir_bounds size = tir_bounds_of(ir, ir->operands.at[buffer->shape + d]);
      if (taken->lo < 0) taken->lo = 0;
      if (taken->hi >= size.hi) taken->hi = size.hi - 1;
    }
  }
}

/* Another block that is outside of its scope writes what the block does. */
static bool is_written_elsewhere(const struct tir *ir, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t k = writes.first; k < writes.first + writes.count; k++) {
    uint32_t u = tir_buffer_at(ir, ir->regions.at[k].buffer)->writers;
    tir_block scope = ir->uses.at[u].next ? tir_scope_of(ir, block) : TIR_NONE;
    for (; scope && u; u = ir->uses.at[u].next) {
      tir_block other = ir->uses.at[u].block;
      if (other != scope && !tir_is_below(ir, other, scope) && !tir_is_below(ir, scope, other)) return true;
    }
  }
  return false;
}

/* It reads what another block of its scope writes: of that there is what the loops around the scope, standing still,
 * give. */
static bool reads_of_scope(const struct tir *ir, tir_block block) {
  struct tir_span reads = tir_block_at(ir, block)->reads;
  tir_block scope = TIR_NONE;
  for (uint32_t k = reads.first; k < reads.first + reads.count; k++)
    for (uint32_t u = tir_buffer_at(ir, ir->regions.at[k].buffer)->writers; u; u = ir->uses.at[u].next) {
      if (ir->uses.at[u].block == block) continue;
      if (!scope) scope = tir_scope_of(ir, block);
      if (!scope || tir_is(ir, tir_stmt_at(ir, scope)->parent, TIR_FUNCTION)) return false; /* no loop is around it */
      if (tir_is_below(ir, ir->uses.at[u].block, scope)) return true;
    }
  return false;
}

/* The values that the block's iteration takes while the loops around the scope stand still, if its binding depends on
 * these. False: it does not, or that is not known. */
static bool find_taken_in_scope(struct tir *ir, tir_block block, struct tir_iter iter, struct tir_interval *out) {
  enum { MOST_LOOPS = 32 };
  tir_var vars[MOST_LOOPS];
  uint32_t count = tir_loop_vars(ir, block, TIR_NONE, vars, MOST_LOOPS);
  if (count > MOST_LOOPS || !(tir_at(ir, iter.binding)->flags & TIR_HAS_VAR) || tir_uses_let(ir, iter.binding))
    return false; /* a name has another value in each iteration of the loops around it */
  struct tir_var_node v = ir->vars.at[iter.var];
  *out = tir_interval_intersect(ir, tir_interval_of(ir, v.min, v.extent), tir_relax(ir, iter.binding, vars, count));
  return !out->empty && out->min && out->max &&
         ((tir_at(ir, out->min)->flags & TIR_HAS_VAR) || (tir_at(ir, out->max)->flags & TIR_HAS_VAR));
}

void tir_needed_domain(struct tir *ir, tir_block block, uint32_t i, tir_expr *min, tir_expr *extent) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_iter iter = tir_iters(ir, block)[i];
  struct tir_interval in_scope;
  *min = ir->vars.at[iter.var].min;
  *extent = ir->vars.at[iter.var].extent;
  if ((is_written_elsewhere(ir, block) || reads_of_scope(ir, block)) &&
      find_taken_in_scope(ir, block, iter, &in_scope)) {
    *min = in_scope.min;
    *extent = tir_interval_extent(ir, in_scope);
    return;
  }
  if (!tir_is_int(ir, *min) || !tir_is_int(ir, *extent)) return;
  struct tir_bounds taken = tir_bounds_of(ir, iter.binding);
  keep_inside(ir, block, iter.var, &taken);
  int64_t lo = tir_at(ir, *min)->imm, hi = lo + tir_at(ir, *extent)->imm - 1;
  if ((taken.lo <= lo && taken.hi >= hi) || taken.lo > hi || taken.hi < lo) return;
  const struct tir_block_record *record = tir_block_at(ir, block);
  if (iter.kind == TIR_SPATIAL && !leaves_buffer(ir, record->writes, iter.var) &&
      !leaves_buffer(ir, record->reads, iter.var))
    return;
  tir_type min_type = tir_type_of(ir, *min), type = tir_type_of(ir, *extent);
  if (taken.lo > lo) lo = taken.lo;
  if (taken.hi < hi) hi = taken.hi;
  *min = tir_int(ir, min_type, lo);
  *extent = tir_int(ir, type, hi - lo + 1);
}

/* ---- Bindings ---- */

/* The term of least step, of those not taken yet that have more than one value; the count: there is none. */
static uint32_t least_step(const struct tir *ir, struct tir_linear l, uint64_t taken) {
  const struct tir_term *terms = tir_terms(ir, l);
  uint32_t least = l.count;
  for (uint32_t i = 0; i < l.count; i++) {
    const struct tir_expr_node *n = tir_at(ir, terms[i].atom);
    if (taken >> i & 1 || n->lo == n->hi) continue;
    if (least == l.count || llabs(terms[i].coefficient) < llabs(terms[least].coefficient)) least = i;
  }
  return least;
}

bool tir_steps_overlap(const struct tir *ir, struct tir_linear l) {
  int64_t reach = 0;
  uint64_t taken = 0;
  if (l.count > 64) return true;
  for (uint32_t least; (least = least_step(ir, l, taken)) < l.count; taken |= 1ull << least) {
    struct tir_term t = tir_terms(ir, l)[least];
    const struct tir_expr_node *n = tir_at(ir, t.atom);
    int64_t step = llabs(t.coefficient);
    if (step <= reach || n->lo == INT64_MIN || n->hi == INT64_MAX) return true;
    reach = tir_sat_add(reach, tir_sat_mul(step, n->hi - n->lo));
  }
  return false;
}

/* ---- Complete and reduction blocks ---- */

/* No other region of a child of the scope writes what the block writes. */
static bool is_only_writer(const struct tir *ir, tir_block block, tir_block scope) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = 0; i < writes.count; i++) {
    tir_buffer buffer = ir->regions.at[writes.first + i].buffer;
    uint32_t count = 0;
    for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u && count <= 1; u = ir->uses.at[u].next)
      if (tir_scope_of(ir, ir->uses.at[u].block) == scope)
        count += tir_count_regions_of(ir, tir_block_at(ir, ir->uses.at[u].block)->writes, buffer);
    if (count != 1) return false;
  }
  return true;
}

/* Each buffer that the block writes has that one region of a writer, wherever. */
static bool is_sole_writer(const struct tir *ir, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    if (ir->uses.at[tir_buffer_at(ir, ir->regions.at[i].buffer)->writers].next ||
        tir_count_regions_of(ir, writes, ir->regions.at[i].buffer) != 1)
      return false;
  return true;
}

/* A block below the loop stands in another one there. */
static bool holds_inner_block(const struct tir *ir, tir_loop below) {
  for (tir_stmt s = tir_next(ir, below, below); s; s = tir_next(ir, s, below)) {
    tir_block scope = tir_is(ir, s, TIR_BLOCK) ? tir_scope_of(ir, s) : TIR_NONE;
    if (scope && tir_is_below(ir, scope, below)) return true;
  }
  return false;
}

/* Below a loop, dominance is asked of what stands inside the blocks of the subtree: of the writers in their scopes, the
 * first scope that writes the buffer must hold one. */
static bool is_only_writer_below(const struct tir *ir, tir_block block, tir_stmt below) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  if (is_sole_writer(ir, block) || !holds_inner_block(ir, below)) return true; /* else there may be many writers */
  for (uint32_t i = 0; i < writes.count; i++) {
    tir_buffer buffer = ir->regions.at[writes.first + i].buffer;
    tir_block first_scope = TIR_NONE;
    uint32_t count = 0;
    for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u; u = ir->uses.at[u].next) {
      tir_block writer = ir->uses.at[u].block, scope = tir_scope_of(ir, writer);
      if (!scope || tir_scope_of(ir, scope) != tir_scope_of(ir, block) || !tir_is_below(ir, scope, below)) continue;
      if (first_scope && first_scope != scope) {
        if (tir_compare_position(ir, first_scope, scope) < 0) continue;
        count = 0;
      }
      first_scope = scope;
      count += tir_count_regions_of(ir, tir_block_at(ir, writer)->writes, buffer);
    }
    if (count > 1) return false;
  }
  return true;
}

static bool dominates(const struct tir *ir, tir_block block, tir_stmt root) {
  return tir_is(ir, root, TIR_BLOCK) ? is_only_writer(ir, block, root) : is_only_writer_below(ir, block, root);
}

static bool any_written(struct tir *ir, tir_block block, bool (*test)(struct tir *, tir_block, tir_buffer)) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = 0; i < writes.count; i++)
    if (test(ir, block, ir->regions.at[writes.first + i].buffer)) return true;
  return false;
}

/* 1: an iteration is not spatial. 2: not dominant. 3: it reads what it writes. */
static int complete_violation(struct tir *ir, tir_block block, tir_stmt root) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = 0; i < iters.count; i++)
    if (ir->iters.at[iters.first + i].kind != TIR_SPATIAL) return 1;
  if (!dominates(ir, block, root)) return 2;
  return any_written(ir, block, tir_reads_from_before) ? 3 : 0;
}

static bool has_opaque_iter(const struct tir *ir, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = 0; i < iters.count; i++)
    if (ir->iters.at[iters.first + i].kind == TIR_OPAQUE) return true;
  return false;
}

static bool uses_reduction_iter(const struct tir *ir, tir_block block, tir_expr e) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = 0; i < iters.count; i++)
    if (ir->iters.at[iters.first + i].kind == TIR_REDUCE && tir_uses_var(ir, e, ir->iters.at[iters.first + i].var))
      return true;
  return false;
}

static bool reduction_iters_index_writes(const struct tir *ir, tir_block block) {
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_BODY]; s; s = tir_next(ir, s, block)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    for (uint32_t i = 0; i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
      if (uses_reduction_iter(ir, block, ir->operands.at[n->store.indices + i])) return true;
  }
  return false;
}

/* 1: it has no init. 2: its bindings are not affine. 3: an iteration is opaque. 4: not dominant. 5: a reduction
 * iteration indexes what it writes. 6: it reads what other iterations of it write. 7: its init does not come first. 8:
 * several iterations begin an element. 9: it reads what is there before its init. */
static int reduction_violation(struct tir *ir, tir_block block, tir_stmt root) {
  if (!tir_stmt_at(ir, block)->first[TIR_INIT]) return 1;
  if (!tir_is_affine_binding(ir, block, TIR_NONE)) return 2;
  if (has_opaque_iter(ir, block)) return 3;
  if (!dominates(ir, block, root)) return 4;
  if (reduction_iters_index_writes(ir, block)) return 5;
  if (tir_reads_other_iterations(ir, block)) return 6;
  if (tir_updates_unbegun(ir, block)) return 7;
  if (tir_begins_again(ir, block, true)) return 8;
  return any_written(ir, block, tir_begun_reads_from_before) ? 9 : 0;
}

bool tir_is_complete_block(struct tir *ir, tir_block block, tir_block scope) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  return !complete_violation(ir, block, scope);
}

static const char *const why_incomplete[] = {"", "one of its iterations is not spatial",
                                             "it is not the only writer of what it writes", "it reads what it writes"};
static const char *const why_no_reduction[] = {"",
                                               "it has no init",
                                               "its bindings are not affine iterators",
                                               "one of its iterations is opaque",
                                               "it is not the only writer of what it writes",
                                               "a reduction iteration indexes what it writes",
                                               "it reads what other iterations of it write",
                                               "it updates what its init does not begin, or not before",
                                               "iterations that differ in spatial ones write the same elements",
                                               "it reads what is there before its init"};

bool tir_check_complete_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  int c = complete_violation(ir, block, scope);
  if (!c) return true;
  return tir_refuse(ir, err, MS_NOT_COMPLETE_BLOCK, block, "block `%s` is not complete: %s", tir_block_name(ir, block),
                    why_incomplete[c]);
}

bool tir_check_reduction_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  int r = reduction_violation(ir, block, scope);
  if (!r) return true;
  return tir_refuse(ir, err, MS_NOT_REDUCTION_BLOCK, block, "block `%s` is no reduction: %s", tir_block_name(ir, block),
                    why_no_reduction[r]);
}

/* `c`: its complete_violation. */
static bool check_either(struct tir *ir, tir_block block, tir_stmt root, int c, enum ms_code code, ms_error *err) {
  int r = c ? reduction_violation(ir, block, root) : 0;
  if (!c || !r) return true;
  return tir_refuse(ir, err, code, block, "block `%s` is not complete: %s; nor a reduction: %s",
                    tir_block_name(ir, block), why_incomplete[c], why_no_reduction[r]);
}

bool tir_check_complete_or_reduction_block(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  return check_either(ir, block, scope, complete_violation(ir, block, scope), MS_NOT_COMPLETE_OR_REDUCTION, err);
}

static bool reads_elsewhere(const struct tir *ir, const void *context, tir_expr e) {
  const struct tir_stmt_node *s = context;
  const struct tir_expr_node *n = tir_at(ir, e);
  if ((n->kind != TIR_LOAD && n->kind != TIR_DATA) || n->ref != s->store.buffer) return false;
  return n->kind == TIR_DATA || n->a ||
         memcmp(tir_operands(ir, n->operands), tir_operands(ir, s->store.indices), n->count * sizeof(tir_expr));
}

/* Each iteration stores another element: every iteration of more than one value is an index. */
static bool stores_apart(const struct tir *ir, tir_block block, const struct tir_stmt_node *store) {
  uint32_t rank = tir_buffer_at(ir, store->store.buffer)->rank;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    tir_var v = tir_iters(ir, block)[i].var;
    bool index = tir_is_const(ir, ir->vars.at[v].extent, 1);
    for (uint32_t d = 0; d < rank && !index; d++)
      index = tir_operands(ir, store->store.indices)[d] == tir_var_expr(ir, v);
    if (!index) return false;
  }
  return true;
}

/* Of what it writes and reads, it reads the very element that it stores. */
static bool updates_in_place(struct tir *ir, tir_block block) {
  if (tir_stmt_at(ir, block)->first[TIR_INIT]) return false;
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    if (!tir_is(ir, s, TIR_STORE) || tir_as(ir, s, TIR_STORE)->store.predicate) return false;
    const struct tir_stmt_node *own = tir_as(ir, s, TIR_STORE);
    if (!stores_apart(ir, block, own)) return false;
    for (tir_stmt t = tir_stmt_at(ir, block)->first[TIR_BODY]; t; t = tir_stmt_at(ir, t)->next) {
      if (!tir_is(ir, t, TIR_STORE)) return false;
      const struct tir_stmt_node *n = tir_as(ir, t, TIR_STORE);
      if (t != s && n->store.buffer == own->store.buffer) return false;
      if (tir_any_node(ir, n->store.value, TIR_HAS_LOAD | TIR_HAS_POINTER, reads_elsewhere, own)) return false;
      for (uint32_t d = 0; d < tir_buffer_at(ir, n->store.buffer)->rank; d++)
        if (tir_any_node(ir, ir->operands.at[n->store.indices + d], TIR_HAS_LOAD | TIR_HAS_POINTER, reads_elsewhere,
                         own))
          return false;
    }
  }
  return true;
}

bool tir_check_subtree_compact_dataflow(struct tir *ir, tir_stmt below, ms_error *err) {
  bool scope = tir_is(ir, below, TIR_BLOCK);
  tir_stmt s = scope ? tir_stmt_at(ir, below)->first[TIR_BODY] : tir_next(ir, below, below);
  for (; s; s = tir_next_in_scope(ir, s, below)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    int c = complete_violation(ir, s, below);
    if (!(c == 3 && updates_in_place(ir, s)) && !check_either(ir, s, below, c, MS_NOT_COMPACT_DATAFLOW, err))
      return false;
  }
  return true;
}

/* What an iteration of `inner` is bound to, as iterations of blocks around it down from `block` are bound. */
static tir_expr binding_below(struct tir *ir, tir_block inner, tir_block block, tir_expr binding) {
  for (tir_block b = inner; b != block;) {
    b = tir_parent_block(ir, b);
    tir_subst_iters(ir, b);
    binding = tir_subst(ir, binding);
    tir_subst_clear(ir);
  }
  return binding;
}

bool tir_reduces_over(struct tir *ir, tir_block block, tir_var v) {
  for (tir_stmt s = block; s; s = tir_next(ir, s, block))
    for (uint32_t i = 0; tir_is(ir, s, TIR_BLOCK) && i < tir_block_at(ir, s)->iters.count; i++) {
      struct tir_iter iter = tir_iters(ir, s)[i];
      if (iter.kind != TIR_SPATIAL && tir_may_follow(ir, binding_below(ir, s, block, iter.binding), v)) return true;
    }
  return false;
}

bool tir_check_reduces_inside(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  for (tir_block b = scope; b; b = tir_parent_block(ir, b))
    for (uint32_t i = 0; i < tir_block_at(ir, b)->iters.count; i++) {
      tir_var v = tir_iters(ir, b)[i].var;
      if (tir_is_const(ir, ir->vars.at[v].extent, 1) || !tir_reduces_over(ir, block, v)) continue;
      return tir_refuse(ir, err, MS_REDUCTION_OUTSIDE, b, "an iteration of block `%s` reduces in block `%s` in it",
                        tir_block_name(ir, b), tir_block_name(ir, block));
    }
  for (tir_stmt s = tir_stmt_at(ir, scope)->parent; s; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) &&
        !(tir_loop_extent(ir, s) == 1 && tir_is_int(ir, tir_as(ir, s, TIR_LOOP)->loop.min)) &&
        tir_reduces_over(ir, block, tir_as(ir, s, TIR_LOOP)->loop.var))
      return tir_refuse(ir, err, MS_REDUCTION_OUTSIDE, s, "this loop, around the scope of block `%s`, reduces in it",
                        tir_block_name(ir, block));
  return true;
}

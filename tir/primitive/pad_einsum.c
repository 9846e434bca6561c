/* Pad einsum: a block's domains grow to multiples; what it reads is padded, what it writes is cut back.
 *
 * Requires: a positive multiple for each iteration; the scope is a stage pipeline; only loops are around the block.
 *           Where a domain grows, nothing else is under the grown loops, or uses what is padded under the others. Each
 *           region is one element, indexed by iterations and zeros, or of what is read by terms of iterations that do
 *           not grow, of a buffer of its own, and says by which iterations that grow with a loop the block indexes that
 *           buffer. A domain that grows starts at 0, and a loop of just that domain is bound to it and to nothing else.
 *           Buffers that are padded are used whole, unless they are inputs. A reduction that grows is a sum, whatever
 *           it begins with, of what a zero read at its iterations makes zero, other factors being finite, where that
 *           ends with them, or reduces just what it reads, by one value; all writes are at each spatial one that grows.
 * After:    before the loops, a block copies each buffer that is read at a grown iteration to one padded with zeros, or
 *           with the identity of what reduces it; after them, a block copies what was written back.
 * Forward:  nothing dies: loops keep their places. */
#include "copy_stage.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/outside.h"

#include <math.h>
#include <stdio.h>

enum { MOST_ITERS = 64, MOST_REGIONS = 32 };

struct padded {
  tir_buffer buffer;
  bool write;
  tir_expr shape[TIR_MOST_EDITED_RANK];
  tir_expr outside; /* what is read beyond the buffer; TIR_NONE: zero */
};

struct pad_einsum_plan {
  tir_block scope;
  tir_stmt top; /* the outermost loop around the block, or the block */
  uint32_t count;
  struct tir_iter iters[MOST_ITERS];
  tir_expr extents[MOST_ITERS]; /* new; TIR_NONE: the domain stays */
  tir_loop loops[MOST_ITERS];   /* that grow with them; TIR_NONE: none is bound */
  bool fixed[MOST_ITERS];       /* 0 in every iteration, which is all that the regions say of it */
  struct padded padded[MOST_REGIONS];
  uint32_t padded_count;
};

/* ---- Check: domains ---- */

static tir_loop loop_of(const struct tir *ir, tir_block block, tir_expr var) {
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s && !tir_is(ir, s, TIR_BLOCK); s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_var_expr(ir, tir_as(ir, s, TIR_LOOP)->loop.var) == var) return s;
  return TIR_NONE;
}

/* Nothing but the binding of iteration `i` speaks of the loop. */
static bool is_bound_once(struct tir *ir, tir_block block, const struct pad_einsum_plan *plan, uint32_t i) {
  tir_var v = tir_as(ir, plan->loops[i], TIR_LOOP)->loop.var;
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  if (predicate && tir_uses_var(ir, predicate, v)) return false;
  for (uint32_t j = 0; j < plan->count; j++)
    if (j != i && tir_uses_var(ir, plan->iters[j].binding, v)) return false;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s != plan->loops[i]; s = tir_stmt_at(ir, s)->parent) {
    tir_expr own[4];
    for (uint32_t k = tir_stmt_exprs(ir, s, own); k-- > 0;)
      if (own[k] && tir_uses_var(ir, own[k], v)) return false;
  }
  return true;
}

static bool check_growth(struct tir *ir, tir_block block, struct pad_einsum_plan *plan, uint32_t i, ms_error *err) {
  struct tir_var_node v = ir->vars.at[plan->iters[i].var];
  if (!tir_is_const(ir, v.min, 0))
    return tir_refuse(ir, err, MS_DOMAIN_NOT_FROM_ZERO, block, "iteration %u of block `%s` does not start at 0", i,
                      tir_block_name(ir, block));
  plan->loops[i] = loop_of(ir, block, plan->iters[i].binding);
  if (!plan->loops[i]) return true; /* the domain grows, and no more of it is run */
  const struct tir_stmt_node *n = tir_stmt_at(ir, plan->loops[i]);
  if (tir_is_const(ir, n->loop.min, 0) && tir_prove_equal(ir, n->loop.extent, v.extent) &&
      is_bound_once(ir, block, plan, i))
    return true;
  return tir_refuse(ir, err, MS_BINDING_NOT_WHOLE, plan->loops[i],
                    "the loop is not just over the domain of iteration %u of block `%s`", i, tir_block_name(ir, block));
}

static bool find_domains(struct tir *ir, tir_block block, const int64_t *padding, struct pad_einsum_plan *plan,
                         ms_error *err) {
  for (uint32_t i = 0; i < plan->count; i++) {
    tir_expr extent = ir->vars.at[plan->iters[i].var].extent;
    tir_type type = tir_type_of(ir, extent);
    tir_expr multiple = tir_int(ir, type, padding[i]);
    tir_expr up = tir_floordiv(ir, tir_add(ir, extent, tir_int(ir, type, padding[i] - 1)), multiple);
    plan->extents[i] = tir_mul(ir, up, multiple);
    if (tir_prove_equal(ir, plan->extents[i], extent))
      plan->extents[i] = TIR_NONE;
    else if (!check_growth(ir, block, plan, i, err))
      return false;
  }
  return true;
}

/* ---- Check: accesses ---- */

struct accesses {
  struct pad_einsum_plan *plan;
  struct tir_region region;
};

/* A region may say 0 for an iteration of one value. Grown, it has more: unless none is run, it would leave the region.
 */
static bool is_declared(struct tir *ir, const struct accesses *a, uint32_t indices) {
  for (uint32_t d = 0; d < tir_buffer_at(ir, a->region.buffer)->rank; d++) {
    tir_expr at = ir->operands.at[indices + d];
    for (uint32_t i = 0; i < a->plan->count && at != ir->operands.at[a->region.ranges + 2 * d]; i++) {
      tir_var v = a->plan->iters[i].var;
      if (!a->plan->extents[i] || !tir_uses_var(ir, at, v)) continue;
      if (a->plan->loops[i] || !tir_is_const(ir, ir->vars.at[v].extent, 1)) return false;
      a->plan->fixed[i] = true;
    }
  }
  return true;
}

static bool has_undeclared_load(struct tir *ir, void *context, tir_expr e) {
  enum { MOST_LOADS = 32 };
  const struct accesses *a = context;
  tir_expr loads[MOST_LOADS];
  uint32_t count = tir_find_loads(ir, e, a->region.buffer, loads, MOST_LOADS);
  for (uint32_t i = 0; i < count && count <= MOST_LOADS; i++)
    if (!is_declared(ir, a, tir_at(ir, loads[i])->operands)) return true;
  return count > MOST_LOADS;
}

static bool check_accesses(struct tir *ir, tir_block block, struct tir_region r, struct pad_einsum_plan *plan,
                           ms_error *err) {
  struct accesses a = {plan, r};
  bool declared = !tir_any_own_expr(ir, block, has_undeclared_load, &a);
  for (tir_stmt s = tir_next(ir, block, block); s && declared; s = tir_next(ir, s, block)) {
    if (tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == r.buffer)
      declared = is_declared(ir, &a, tir_as(ir, s, TIR_STORE)->store.indices);
    if (tir_is(ir, s, TIR_BLOCK)) declared = !tir_any_own_expr(ir, s, has_undeclared_load, &a);
  }
  return declared || tir_refuse(ir, err, MS_NOT_EINSUM, block,
                                "block `%s` uses buffer `%s` at an iteration that its region does not declare",
                                tir_block_name(ir, block), tir_buffer_name(ir, r.buffer));
}

/* ---- Check: regions ---- */

static uint32_t iter_of(const struct tir *ir, const struct pad_einsum_plan *plan, tir_expr e) {
  for (uint32_t i = 0; i < plan->count; i++)
    if (tir_var_expr(ir, plan->iters[i].var) == e) return i;
  return UINT32_MAX;
}

/* An index of what is read in which no iteration that grows stands: taps of a window. */
static bool stays(struct tir *ir, const struct pad_einsum_plan *plan, tir_expr at) {
  for (uint32_t i = 0; i < plan->count; i++)
    if (plan->extents[i] && tir_uses_var(ir, at, plan->iters[i].var)) return false;
  return true;
}

/* One element at variables and zeros, or, where it is read, at what stays, of a buffer that no region before names. */
static bool is_einsum_region(struct tir *ir, struct tir_region r, bool write, const struct pad_einsum_plan *plan) {
  struct tir_buffer_node n = *tir_buffer_at(ir, r.buffer);
  for (uint32_t d = 0; d < n.rank; d++) {
    tir_expr at = ir->operands.at[r.ranges + 2 * d];
    bool plain = tir_is_int(ir, at) ? tir_is_const(ir, at, 0) : tir_at(ir, at)->kind == TIR_VAR;
    if (!plain && (write || tir_is_int(ir, at) || !stays(ir, plan, at))) return false;
  }
  return n.rank <= TIR_MOST_EDITED_RANK && tir_is_one_element(ir, r);
}

static bool runs_over_domain(struct tir *ir, tir_block block, struct tir_iter iter, tir_block scope) {
  tir_var vars[MOST_ITERS];
  uint32_t count = tir_loop_vars(ir, block, scope, vars, MOST_ITERS);
  struct tir_var_node v = ir->vars.at[iter.var];
  struct tir_interval covers, domain = tir_interval_of(ir, v.min, v.extent);
  tir_expr range[2] = {iter.binding, tir_int(ir, v.type, 1)};
  return count <= MOST_ITERS &&
         tir_region_exact(ir, range, 1, vars, count, tir_as(ir, block, TIR_BLOCK)->block.predicate, &covers) &&
         tir_interval_covers(ir, covers, domain);
}

/* The block, a child of the scope, goes through all elements of the region's buffer. */
static bool is_whole(struct tir *ir, tir_block block, struct tir_region r, tir_block scope) {
  struct tir_buffer_node n = *tir_buffer_at(ir, r.buffer);
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t d = 0; d < n.rank; d++) {
    tir_expr at = ir->operands.at[r.ranges + 2 * d], shape = ir->operands.at[n.shape + d];
    if (tir_is_const(ir, at, 0) && tir_is_const(ir, shape, 1)) continue;
    uint32_t i = iters.first, end = iters.first + iters.count;
    while (i < end && tir_var_expr(ir, ir->iters.at[i].var) != at) i++;
    if (i == end || !tir_prove_equal(ir, ir->vars.at[ir->iters.at[i].var].extent, shape) ||
        !runs_over_domain(ir, block, ir->iters.at[i], scope))
      return false;
  }
  return true;
}

static bool is_written_whole(struct tir *ir, tir_block block, tir_buffer buffer, const struct pad_einsum_plan *plan) {
  for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (tir_scope_of(ir, b) != plan->scope || tir_compare_position(ir, b, block) > 0) continue;
    struct tir_span writes = tir_block_at(ir, b)->writes;
    for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
      if (ir->regions.at[i].buffer == buffer && is_whole(ir, b, ir->regions.at[i], plan->scope)) return true;
  }
  return false;
}

/* The scope declares that it uses all of the buffer, or is the root, which declares nothing. */
static bool declares_whole(struct tir *ir, tir_block scope, tir_buffer buffer, bool write) {
  if (!tir_parent_block(ir, scope)) return true;
  struct tir_span own = tir_regions(ir, scope, write);
  if (tir_block_at(ir, scope)->iters.count || !tir_has_region_of(ir, own, buffer)) return false;
  return tir_is_whole_buffer(ir, buffer, tir_operands(ir, tir_region_of(ir, own, buffer)->ranges));
}

/* What is copied, in or back, was written: all of the buffer. Inputs are there anyway. The copies stand in the scope,
 * which may declare less than the whole of what it does not allocate. */
static bool is_there(struct tir *ir, tir_block block, struct tir_region r, bool write,
                     const struct pad_einsum_plan *plan) {
  struct tir_buffer_node n = *tir_buffer_at(ir, r.buffer);
  if (n.where != plan->scope && !declares_whole(ir, plan->scope, r.buffer, write)) return false;
  bool input = !n.writers && tir_writes_are_declared(ir, r.buffer, plan->scope);
  if (!write && (input || is_written_whole(ir, block, r.buffer, plan))) return true;
  return is_whole(ir, block, r, plan->scope);
}

static void add_padded(struct tir *ir, struct tir_region r, bool write, struct pad_einsum_plan *plan) {
  struct padded *p = &plan->padded[plan->padded_count];
  struct tir_buffer_node n = *tir_buffer_at(ir, r.buffer);
  bool grows = false;
  *p = (struct padded){.buffer = r.buffer, .write = write};
  for (uint32_t d = 0; d < n.rank; d++) {
    tir_expr at = ir->operands.at[r.ranges + 2 * d];
    uint32_t i = iter_of(ir, plan, at);
    bool grown = i != UINT32_MAX && plan->extents[i];
    grows = grows || grown;
    p->shape[d] = ir->operands.at[n.shape + d];
    if (grown) p->shape[d] = plan->extents[i];
    if (tir_is_int(ir, at)) p->shape[d] = tir_int(ir, tir_type_of(ir, at), 1);
  }
  plan->padded_count += grows;
}

static bool check_regions(struct tir *ir, tir_block block, bool write, struct pad_einsum_plan *plan, ms_error *err) {
  struct tir_span span = tir_regions(ir, block, write);
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = 0; i < span.count; i++) {
    struct tir_region r = ir->regions.at[span.first + i];
    struct tir_span before = {span.first, i};
    bool from_before = tir_reads_from_before(ir, block, r.buffer);
    if (!write && !from_before && tir_has_region_of(ir, writes, r.buffer)) continue;
    if (tir_has_region_of(ir, before, r.buffer) || (write && from_before) || !is_einsum_region(ir, r, write, plan) ||
        plan->padded_count == MOST_REGIONS)
      return tir_refuse(ir, err, MS_NOT_EINSUM, block, "block `%s` uses buffer `%s` twice, or not at iterations alone",
                        tir_block_name(ir, block), tir_buffer_name(ir, r.buffer));
    if (!check_accesses(ir, block, r, plan, err)) return false;
    uint32_t before_count = plan->padded_count;
    add_padded(ir, r, write, plan);
    if (plan->padded_count == before_count || is_there(ir, block, r, write, plan)) continue;
    return tir_refuse(ir, err, MS_PAD_NOT_WHOLE, block, "block `%s` does not use all of buffer `%s`",
                      tir_block_name(ir, block), tir_buffer_name(ir, r.buffer));
  }
  return true;
}

/* ---- Check: reductions ---- */

/* The buffer ends where the iteration does: past that there is padding alone. */
static bool ends_with(const struct tir *ir, tir_buffer buffer, uint32_t dimension, tir_var v) {
  tir_expr size = ir->operands.at[tir_buffer_at(ir, buffer)->shape + dimension], extent = ir->vars.at[v].extent;
  return size == extent || (tir_is_int(ir, size) && tir_is_const(ir, extent, tir_at(ir, size)->imm));
}

static bool is_padded_at(const struct tir *ir, const struct pad_einsum_plan *plan, tir_expr load, tir_var v) {
  const struct tir_expr_node *n = tir_at(ir, load);
  bool read = false, at = false;
  for (uint32_t i = 0; i < plan->padded_count; i++)
    read = read || (plan->padded[i].buffer == n->ref && !plan->padded[i].write);
  for (uint32_t d = 0; d < n->count; d++) {
    bool here = ir->operands.at[n->operands + d] == tir_var_expr(ir, v);
    at = at || (here && ends_with(ir, n->ref, d, v));
  }
  return read && at;
}

/* Times zero it is zero: a float that is no constant may be infinite or NaN. */
static bool is_finite(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return !tir_type_is_float(n->type) || (n->kind == TIR_FLOAT_IMM && isfinite(n->real));
}

/* The value is zero where `v` is beyond its old domain, since what is read there is. */
static bool vanishes(const struct tir *ir, const struct pad_einsum_plan *plan, tir_expr e, tir_var v) {
  const struct tir_expr_node *n = tir_at(ir, e);
  switch (n->kind) {
  case TIR_LOAD: return is_padded_at(ir, plan, e, v);
  case TIR_MUL: {
    bool a = vanishes(ir, plan, n->a, v), b = vanishes(ir, plan, n->b, v); /* each once: products nest */
    return (a && (b || is_finite(ir, n->b))) || (b && is_finite(ir, n->a));
  }
  case TIR_ADD:
  case TIR_SUB: return vanishes(ir, plan, n->a, v) && vanishes(ir, plan, n->b, v);
  case TIR_CAST: return vanishes(ir, plan, n->a, v);
  default: return false;
  }
}

/* The value is what is read of a padded buffer: which is then padded with what changes nothing. */
static bool pad_with(const struct tir *ir, struct pad_einsum_plan *plan, tir_expr value, tir_expr identity, tir_var v) {
  if (tir_at(ir, value)->kind != TIR_LOAD || !is_padded_at(ir, plan, value, v)) return false;
  for (uint32_t i = 0; i < plan->padded_count; i++)
    if (plan->padded[i].buffer == tir_at(ir, value)->ref) plan->padded[i].outside = identity;
  return true;
}

/* An iteration that no write depends on runs over the same elements again: more of its values would change them. */
static bool is_in_writes(const struct tir *ir, tir_block block, tir_var v) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    struct tir_region r = ir->regions.at[i];
    bool found = false;
    for (uint32_t d = 0; d < tir_buffer_at(ir, r.buffer)->rank; d++)
      found = found || ir->operands.at[r.ranges + 2 * d] == tir_var_expr(ir, v);
    if (!found) return false;
  }
  return true;
}

static bool check_reduction(struct tir *ir, tir_block block, struct pad_einsum_plan *plan, ms_error *err) {
  struct tir_reduction r;
  bool found = false, neutral = true;
  for (uint32_t i = 0; i < plan->count; i++) {
    if (!plan->extents[i] || !plan->loops[i]) continue;
    if (plan->iters[i].kind == TIR_SPATIAL) {
      neutral = neutral && is_in_writes(ir, block, plan->iters[i].var);
      continue;
    }
    if (!found && !tir_find_sum(ir, block, &r) && !tir_find_reduction(ir, block, &r, err)) return false;
    found = true;
    bool sum = r.reducer == TIR_REDUCE_SUM || r.reducer == TIR_REDUCE_SUM_PAIR;
    bool one = r.reducer <= TIR_REDUCE_MAX;
    for (uint32_t b = 0; b < r.count && neutral; b++)
      neutral = sum ? vanishes(ir, plan, r.right[b], plan->iters[i].var)
                    : one && pad_with(ir, plan, r.right[b], r.identity[b], plan->iters[i].var);
  }
  return neutral || tir_refuse(ir, err, MS_PAD_NOT_NEUTRAL, block, "zeros would change what block `%s` reduces",
                               tir_block_name(ir, block));
}

/* ---- Check ---- */

/* The grown loops, and what they hold, are the block's alone; it is no more than a block in loops. */
static bool check_nest(struct tir *ir, tir_block block, struct pad_einsum_plan *plan, ms_error *err) {
  if (!tir_only_loops_between(ir, block, plan->scope))
    return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, block, "more than loops is around block `%s`",
                      tir_block_name(ir, block));
  uint32_t growing = 0;
  for (uint32_t i = 0; i < plan->count; i++) growing += plan->extents[i] && plan->loops[i];
  bool changes = growing || plan->padded_count;
  tir_stmt s = block;
  for (tir_stmt parent; (parent = tir_stmt_at(ir, s)->parent) != plan->scope; s = parent) {
    if (growing && tir_only_child(ir, parent) != s)
      return tir_refuse(ir, err, MS_LOOP_NOT_ONLY_CHILD, parent, "the loop, or one in it, is not block `%s`'s alone",
                        tir_block_name(ir, block));
    for (uint32_t i = 0; i < plan->count; i++) growing -= plan->extents[i] && plan->loops[i] == parent;
  }
  plan->top = s;
  if (!changes || (!tir_block_at(ir, block)->matches.count && !tir_block_at(ir, block)->allocs.count &&
                   !tir_child_blocks(ir, block, NULL, 0)))
    return true;
  return tir_refuse(ir, err, MS_NOT_A_LEAF, block, "block `%s` holds other blocks, buffers or views",
                    tir_block_name(ir, block));
}

/* The copies stand before and after all of the nest: no other block of it has to do with a padded buffer. */
static bool check_others(struct tir *ir, tir_block block, const struct pad_einsum_plan *plan, ms_error *err) {
  for (uint32_t i = 0; i < plan->padded_count; i++) {
    const struct tir_buffer_node *n = tir_buffer_at(ir, plan->padded[i].buffer);
    uint32_t lists[] = {n->writers, plan->padded[i].write ? n->readers : TIR_NONE};
    struct tir_outside_use use;
    if (!tir_check_declared_below(ir, plan->padded[i].buffer, plan->top, err)) return false;
    if (tir_next_outside_use(ir, plan->scope, plan->padded[i].buffer, plan->top, TIR_NONE, &use))
      return tir_refuse(
          ir, err, MS_SCOPE_ORDER, use.at, "between the copy and block `%s`, `%s` uses buffer `%s` outside of blocks",
          tir_block_name(ir, block), tir_block_name(ir, plan->scope), tir_buffer_name(ir, plan->padded[i].buffer));
    for (int list = 0; list < 2; list++)
      for (uint32_t u = lists[list]; u; u = ir->uses.at[u].next) {
        tir_block b = ir->uses.at[u].block;
        if (b == block || !tir_is_below(ir, b, plan->top)) continue;
        return tir_refuse(ir, err, MS_REINDEX_ORDER, b, "block `%s` uses buffer `%s` under the same loops",
                          tir_block_name(ir, b), tir_buffer_name(ir, plan->padded[i].buffer));
      }
  }
  return true;
}

/* What is read undeclared is not padded: the block would read past what others write of it. */
static bool check_declared_read(struct tir *ir, void *err, const struct tir_conflict *conflict) {
  const struct tir_access *own = &conflict->own;
  return !own->reads || own->declares_reads || tir_refuse_undeclared(ir, own->block, conflict->buffer, err);
}

static bool check_pad_einsum(struct tir *ir, tir_block block, const int64_t *padding, uint32_t count,
                             struct pad_einsum_plan *plan, ms_error *err) {
  if (!tir_find_scope(ir, block, &plan->scope, err)) return false;
  plan->count = tir_block_at(ir, block)->iters.count;
  bool fit = true;
  for (uint32_t i = 0; i < count; i++) fit = fit && padding[i] > 0 && padding[i] <= INT32_MAX;
  if (count != plan->count || count > MOST_ITERS || !fit)
    return tir_refuse(ir, err, MS_PADDING, block, "block `%s` has %u iterations; %u multiples are given, %s",
                      tir_block_name(ir, block), plan->count, count,
                      fit ? "all positive" : "not all positive and of 32 bits");
  for (uint32_t i = 0; i < count; i++) plan->iters[i] = tir_iters(ir, block)[i];
  struct tir_conflict_visitor visitor = {check_declared_read, err};
  return tir_check_stage_pipeline(ir, plan->scope, err) && find_domains(ir, block, padding, plan, err) &&
         tir_each_undeclared_conflict(ir, block, plan->scope, &visitor) && check_regions(ir, block, false, plan, err) &&
         check_regions(ir, block, true, plan, err) && check_nest(ir, block, plan, err) &&
         check_others(ir, block, plan, err) && check_reduction(ir, block, plan, err);
}

/* ---- Edit ---- */

/* A loop or iteration over a larger domain has a variable of its own. */
static tir_var grow(struct tir *ir, tir_var v, tir_expr extent) {
  struct tir_var_node n = ir->vars.at[v];
  tir_var made = tir_new_var(ir, (enum tir_var_kind)n.kind, n.name, n.type, n.min, extent);
  tir_subst_var(ir, v, tir_var_expr(ir, made));
  return made;
}

static void grow_domains(struct tir *ir, tir_block block, struct pad_einsum_plan *plan) {
  for (uint32_t i = 0; i < plan->count; i++) {
    if (!plan->extents[i]) continue;
    tir_var old = plan->iters[i].var;
    plan->iters[i].var = grow(ir, old, plan->extents[i]);
    if (plan->fixed[i]) tir_subst_var(ir, old, tir_int(ir, ir->vars.at[old].type, 0));
    tir_loop loop = plan->loops[i];
    if (!loop) continue;
    tir_var v = grow(ir, tir_as(ir, loop, TIR_LOOP)->loop.var, plan->extents[i]);
    plan->iters[i].binding = tir_var_expr(ir, v);
    tir_as(ir, loop, TIR_LOOP)->loop.var = v;
    tir_as(ir, loop, TIR_LOOP)->loop.extent = plan->extents[i];
  }
  tir_subst_stmt(ir, block);
  tir_subst_clear(ir);
  tir_set_iters(ir, block, plan->iters, plan->count);
}

static tir_expr padded_load(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  return tir_load(ir, *(const tir_buffer *)context, indices, count, TIR_NONE);
}

static void padded_store(struct tir *ir, void *context, tir_stmt s) {
  tir_as(ir, s, TIR_STORE)->store.buffer = *(const tir_buffer *)context;
}

static tir_buffer make_buffer(struct tir *ir, tir_block block, const struct pad_einsum_plan *plan,
                              const struct padded *p) {
  struct tir_buffer_node like = *tir_buffer_at(ir, p->buffer);
  tir_symbol name = tir_symbol_suffix(ir, like.name, "_pad");
  tir_buffer made = tir_new_buffer(ir, name, like.type, p->shape, like.rank, like.scope);
  struct tir_buffer_change change = {p->buffer, made, padded_load, padded_store, &made};
  tir_annotate_as(ir, made, p->buffer);
  tir_add_alloc(ir, plan->scope, made);
  tir_change_own_uses(ir, &change, block);
  tir_retarget_regions(ir, block, p->buffer, made);
  return made;
}

static tir_stmt make_copy(struct tir *ir, const struct padded *p, tir_buffer made) {
  struct tir_buffer_node n = *tir_buffer_at(ir, p->buffer);
  struct tir_copy_stage s = {.loop_count = n.rank, .iter_count = n.rank, .from_rank = n.rank, .to_rank = n.rank};
  s.name = tir_buffer_at(ir, made)->name;
  s.outside = p->outside;
  s.from = p->write ? made : p->buffer;
  s.to = p->write ? p->buffer : made;
  for (uint32_t d = 0; d < n.rank; d++)
    tir_copy_dimension(ir, &s, d, p->write ? ir->operands.at[n.shape + d] : p->shape[d]);
  tir_block block;
  return tir_make_copy_stage(ir, &s, &block); /* what is read beyond the buffer is zero */
}

static void edit_pad_einsum(struct tir *ir, tir_block block, struct pad_einsum_plan *plan) {
  tir_stmt after = plan->top;
  grow_domains(ir, block, plan);
  for (uint32_t i = 0; i < plan->padded_count; i++) {
    const struct padded *p = &plan->padded[i];
    tir_stmt copy = make_copy(ir, p, make_buffer(ir, block, plan, p));
    if (!p->write) {
      tir_insert_before(ir, plan->top, copy);
      continue;
    }
    tir_insert_after(ir, after, copy);
    after = copy;
  }
}

bool tir_pad_einsum(struct tir *ir, tir_block block, const int64_t *padding, uint32_t count, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct pad_einsum_plan plan = {0};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_pad_einsum(ir, block, padding, count, &plan, err))) return false;
  edit_pad_einsum(ir, block, &plan);
  return true;
}

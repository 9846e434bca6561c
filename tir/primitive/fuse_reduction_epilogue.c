/* Fuse reduction epilogue: what follows a reduction element by element, a copy or the addition of something, becomes
 * part of the reduction, which then starts from what was added and writes where the epilogue did.
 *
 * Requires: in one scope, a stage pipeline, a reduction block that writes one buffer, allocated there, and a complete
 *           block that alone reads it, below loops alone, without a predicate. Both have single stores. The epilogue's
 *           iterations are the reduction's spatial ones, in their order; it runs for all their values, and writes an
 *           element of its own for each; it loads the element that the reduction stores, once; its value
 *           is that load, or sums of it and other terms; then the reduction is a sum too. What else it reads is there
 *           before the reduction begins, and both buffers have one type. The scope reads what the reduction writes
 *           in its blocks only.
 * After:    the reduction's init stores the terms that were added to its own, and its update accumulates in the buffer
 *           that the epilogue wrote. It reads what the epilogue read, and is marked as it was where a user annotated
 *           these regions. The buffer between stays allocated.
 * Forward:  the epilogue and the loops that held only it are dead. */
#include "inline.h"
#include "move_block.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/iteration_order.h"
#include "tir/analysis/order/order.h"

#include <stdlib.h>

enum { MOST_REGIONS = 64 };

struct fuse_reduction_epilogue_plan {
  tir_block scope;
  tir_buffer buffer, target; /* what is between, and what the epilogue writes */
  tir_stmt init, update, store;
  tir_expr load;  /* of the buffer, in the epilogue's store */
  tir_expr start; /* of the fused reduction, in terms of its own iterations */
};

/* ---- Check ---- */

static bool check_blocks(struct tir *ir, tir_block reduction, tir_block epilogue,
                         struct fuse_reduction_epilogue_plan *plan, ms_error *err) {
  plan->scope = tir_scope_of(ir, epilogue);
  if (!plan->scope || tir_scope_of(ir, reduction) != plan->scope)
    return tir_refuse(ir, err, plan->scope ? MS_EPILOGUE_SCOPE : MS_ROOT_BLOCK, reduction,
                      "blocks `%s` and `%s` are not in one scope", tir_block_name(ir, reduction),
                      tir_block_name(ir, epilogue));
  if (!tir_check_stage_pipeline(ir, plan->scope, err)) return false;
  struct tir_span writes = tir_block_at(ir, reduction)->writes;
  if (writes.count != 1)
    return tir_refuse(ir, err, MS_EPILOGUE_ONE_WRITE, reduction, "block `%s` writes %u regions",
                      tir_block_name(ir, reduction), writes.count);
  plan->buffer = ir->regions.at[writes.first].buffer;
  return tir_check_reduction_block(ir, reduction, plan->scope, err) &&
         tir_check_complete_block(ir, epilogue, plan->scope, err) &&
         tir_check_not_output(ir, reduction, plan->scope, err);
}

static bool refuse_body(const struct tir *ir, tir_block block, const char *why, ms_error *err) {
  return tir_refuse(ir, err, MS_EPILOGUE_BODY, block, "block `%s` %s", tir_block_name(ir, block), why);
}

static bool is_store_of(const struct tir *ir, tir_stmt s, tir_buffer buffer) {
  return s && tir_as(ir, s, TIR_STORE)->store.buffer == buffer;
}

static bool check_stores(struct tir *ir, tir_block reduction, tir_block epilogue,
                         struct fuse_reduction_epilogue_plan *plan, ms_error *err) {
  plan->init = tir_only_store(ir, reduction, TIR_INIT);
  plan->update = tir_only_store(ir, reduction, TIR_BODY);
  if (!is_store_of(ir, plan->init, plan->buffer) || !is_store_of(ir, plan->update, plan->buffer))
    return refuse_body(ir, reduction, "is no init and update of one store each", err);
  plan->store = tir_only_store(ir, epilogue, TIR_BODY);
  if (!plan->store || tir_as(ir, epilogue, TIR_BLOCK)->block.predicate)
    return refuse_body(ir, epilogue, "is no single store, or has a predicate", err);
  if (!tir_only_loops_up_to(ir, epilogue, plan->scope))
    return refuse_body(ir, epilogue, "stands under more than loops", err);
  if (tir_has_own_buffers(ir, epilogue)) return refuse_body(ir, epilogue, "has buffers of its own", err);
  struct tir_stmt_node store = *tir_stmt_at(ir, plan->store);
  plan->target = store.store.buffer;
  if (tir_find_loads(ir, store.store.value, plan->buffer, &plan->load, 1) != 1 ||
      tir_count_loads(ir, store.store.value, plan->buffer) != 1)
    return refuse_body(ir, epilogue, "does not load the result of the reduction once", err);
  if (tir_uses_opaquely(ir, plan->load, plan->buffer) ||
      tir_buffer_at(ir, plan->target)->type != tir_buffer_at(ir, plan->buffer)->type)
    return refuse_body(ir, epilogue, "writes another type than the reduction", err);
  for (uint32_t i = 0; i < tir_buffer_at(ir, plan->target)->rank; i++)
    if (tir_uses_buffer(ir, ir->operands.at[store.store.indices + i], plan->buffer))
      return refuse_body(ir, epilogue, "stores where the reduction's result says", err);
  return true;
}

/* The epilogue's iterations stand for the spatial ones of the reduction, in turn. */
static void map_iters(struct tir *ir, tir_block reduction, tir_block epilogue) {
  struct tir_span from = tir_block_at(ir, epilogue)->iters, to = tir_block_at(ir, reduction)->iters;
  for (uint32_t i = to.first, next = from.first; i < to.first + to.count; i++)
    if (ir->iters.at[i].kind == TIR_SPATIAL)
      tir_subst_var(ir, ir->iters.at[next++].var, tir_var_expr(ir, ir->iters.at[i].var));
}

/* Its iterations store to elements of their own. */
static bool stores_apart(struct tir *ir, tir_block epilogue, const struct fuse_reduction_epilogue_plan *plan) {
  tir_expr at[TIR_MOST_INLINED_RANK];
  uint32_t rank = tir_buffer_at(ir, plan->target)->rank;
  if (rank > TIR_MOST_INLINED_RANK) return false;
  for (uint32_t d = 0; d < rank; d++) at[d] = ir->operands.at[tir_as(ir, plan->store, TIR_STORE)->store.indices + d];
  return tir_indices_apart(ir, epilogue, at, rank);
}

/* The reduction writes where the epilogue does: for each value of its iterations, which then may not meet. */
static bool check_once(struct tir *ir, tir_block epilogue, const struct fuse_reduction_epilogue_plan *plan,
                       ms_error *err) {
  if (tir_runs_for_all(ir, epilogue) && (stores_apart(ir, epilogue, plan) || !tir_instances_meet(ir, epilogue)))
    return true;
  return tir_refuse(ir, err, MS_EPILOGUE_ITERATIONS, epilogue,
                    "block `%s` does not write an element of its own for each value of its iterations",
                    tir_block_name(ir, epilogue));
}

static bool check_iters(struct tir *ir, tir_block reduction, tir_block epilogue,
                        const struct fuse_reduction_epilogue_plan *plan, ms_error *err) {
  struct tir_span from = tir_block_at(ir, epilogue)->iters, to = tir_block_at(ir, reduction)->iters;
  uint32_t next = 0, reduced = 0;
  bool alike = true;
  for (uint32_t i = to.first; i < to.first + to.count && alike; i++) {
    reduced += ir->iters.at[i].kind == TIR_REDUCE;
    if (ir->iters.at[i].kind != TIR_SPATIAL) continue;
    alike = next < from.count;
    if (!alike) break;
    struct tir_var_node a = ir->vars.at[ir->iters.at[from.first + next++].var], b = ir->vars.at[ir->iters.at[i].var];
    alike = a.type == b.type && tir_prove_equal(ir, a.min, b.min) && tir_prove_equal(ir, a.extent, b.extent);
  }
  if (alike && next == from.count && reduced) return check_once(ir, epilogue, plan, err);
  return tir_refuse(ir, err, MS_EPILOGUE_ITERATIONS, epilogue,
                    "the iterations of block `%s` are not the spatial ones of `%s`, which reduces over others",
                    tir_block_name(ir, epilogue), tir_block_name(ir, reduction));
}

/* Whether the load is of the element that both stores of the reduction are to. */
static bool loads_the_result(struct tir *ir, tir_block reduction, tir_block epilogue,
                             const struct fuse_reduction_epilogue_plan *plan) {
  tir_expr loaded[TIR_MOST_INLINED_RANK];
  uint32_t rank = tir_buffer_at(ir, plan->buffer)->rank;
  if (rank > TIR_MOST_INLINED_RANK || tir_buffer_at(ir, plan->target)->rank > TIR_MOST_INLINED_RANK) return false;
  map_iters(ir, reduction, epilogue);
  for (uint32_t i = 0; i < rank; i++) loaded[i] = tir_subst(ir, ir->operands.at[tir_at(ir, plan->load)->operands + i]);
  tir_subst_clear(ir);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr stored = ir->operands.at[tir_as(ir, plan->update, TIR_STORE)->store.indices + i];
    tir_expr begun = ir->operands.at[tir_as(ir, plan->init, TIR_STORE)->store.indices + i];
    if (!tir_prove_equal(ir, loaded[i], stored) || !tir_prove_equal(ir, begun, stored)) return false;
  }
  return true;
}

static tir_expr add(struct tir *ir, tir_expr a, tir_expr b) {
  if (tir_is_number(ir, a, 0)) return b;
  return tir_is_number(ir, b, 0) ? a : tir_make(ir, TIR_ADD, a, b);
}

/* The value of sums around the load, with `start` in its place; TIR_NONE: the load is under something else. */
static tir_expr start_from(struct tir *ir, tir_expr e, tir_expr load, tir_buffer buffer, tir_expr start) {
  if (e == load) return start;
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind != TIR_ADD) return TIR_NONE;
  bool left = tir_uses_buffer(ir, n.a, buffer);
  tir_expr with = start_from(ir, left ? n.a : n.b, load, buffer, start), other = left ? n.b : n.a;
  if (!with) return TIR_NONE;
  return left ? add(ir, with, other) : add(ir, other, with);
}

static bool find_start(struct tir *ir, tir_block reduction, tir_block epilogue,
                       struct fuse_reduction_epilogue_plan *plan, ms_error *err) {
  tir_expr value = tir_as(ir, plan->store, TIR_STORE)->store.value,
           begun = tir_as(ir, plan->init, TIR_STORE)->store.value;
  struct tir_reduction sum;
  tir_expr zero = tir_type_is_float(tir_type_of(ir, begun)) ? tir_float(ir, tir_type_of(ir, begun), 0)
                                                            : tir_int(ir, tir_type_of(ir, begun), 0);
  if (tir_uses_buffer(ir, begun, plan->buffer)) return refuse_body(ir, reduction, "begins with what it writes", err);
  plan->start = begun;
  if (value == plan->load) return true;
  tir_expr terms = start_from(ir, value, plan->load, plan->buffer, zero);
  if (!terms) return refuse_body(ir, epilogue, "does more than add to the result of the reduction", err);
  if (!tir_find_sum(ir, reduction, &sum))
    return refuse_body(ir, reduction, "is no sum, and what follows adds to it", err);
  map_iters(ir, reduction, epilogue);
  terms = tir_subst_value(ir, terms);
  tir_subst_clear(ir);
  plan->start = add(ir, begun, terms);
  return true;
}

/* What the epilogue reads besides is not written between the reduction's begin and the epilogue. */
static bool check_order(struct tir *ir, tir_block reduction, tir_block epilogue,
                        const struct fuse_reduction_epilogue_plan *plan, ms_error *err) {
  struct tir_transfer to_reduction = {.block = epilogue, .scope = plan->scope, .to = reduction};
  struct tir_transfer to_begin = {.block = epilogue, .scope = plan->scope};
  struct tir_span reads = tir_block_at(ir, epilogue)->reads;
  to_begin.to = tir_lowest_common_ancestor(ir, reduction, epilogue);
  to_begin.before = tir_child_around(ir, reduction, to_begin.to);
  for (uint32_t i = reads.first; i < reads.first + reads.count; i++) {
    tir_buffer read = ir->regions.at[i].buffer;
    tir_block writer = read == plan->buffer ? TIR_NONE : tir_written_later(ir, &to_begin, read);
    if (writer)
      return tir_refuse(ir, err, MS_EPILOGUE_ORDER, writer,
                        "block `%s` writes what block `%s` reads, after `%s` begins", tir_block_name(ir, writer),
                        tir_block_name(ir, epilogue), tir_block_name(ir, reduction));
  }
  return tir_check_order(ir, &to_reduction, err);
}

static bool check_fuse_reduction_epilogue(struct tir *ir, tir_block reduction, tir_block epilogue,
                                          struct fuse_reduction_epilogue_plan *plan, ms_error *err) {
  if (!check_blocks(ir, reduction, epilogue, plan, err) || !check_stores(ir, reduction, epilogue, plan, err) ||
      !tir_check_only_reader(ir, plan->buffer, epilogue, reduction, err) ||
      !check_order(ir, reduction, epilogue, plan, err) ||
      !tir_check_blocks_only(ir, plan->buffer, plan->scope, true, err) ||
      !tir_check_no_opaque_access(ir, plan->buffer, TIR_NONE, err) ||
      !tir_check_no_range_loads(ir, plan->buffer, reduction, err))
    return false;
  if (!check_iters(ir, reduction, epilogue, plan, err)) return false;
  if (!loads_the_result(ir, reduction, epilogue, plan))
    return refuse_body(ir, epilogue, "loads other elements than the reduction stores", err);
  return find_start(ir, reduction, epilogue, plan, err);
}

/* ---- Edit ---- */

/* The epilogue's regions of what it reads or writes, but of `except`, in terms of the reduction's iterations. */
static uint32_t map_regions(struct tir *ir, struct tir_span from, tir_buffer except, struct tir_region *out) {
  uint32_t count = 0;
  for (uint32_t i = from.first; i < from.first + from.count && count < MOST_REGIONS; i++) {
    struct tir_region r = ir->regions.at[i];
    if (r.buffer == except) continue;
    r.ranges = tir_subst_operands(ir, r.ranges, 2 * tir_buffer_at(ir, r.buffer)->rank);
    out[count++] = r;
  }
  return count;
}

static bool is_same_region(const struct tir *ir, struct tir_region a, struct tir_region b) {
  if (a.buffer != b.buffer) return false;
  for (uint32_t d = 0; d < 2 * tir_buffer_at(ir, a.buffer)->rank; d++)
    if (ir->operands.at[a.ranges + d] != ir->operands.at[b.ranges + d]) return false;
  return true;
}

static void set_regions(struct tir *ir, tir_block reduction, tir_block epilogue,
                        const struct fuse_reduction_epilogue_plan *plan) {
  struct tir_region regions[MOST_REGIONS];
  uint32_t count = map_regions(ir, tir_block_at(ir, epilogue)->writes, TIR_NONE, regions);
  tir_set_writes(ir, reduction, regions, count);
  count = map_regions(ir, tir_block_at(ir, epilogue)->reads, plan->buffer, regions);
  struct tir_span own = tir_block_at(ir, reduction)->reads;
  for (uint32_t i = own.first; i < own.first + own.count && count < MOST_REGIONS; i++) {
    struct tir_region r = ir->regions.at[i];
    bool known = r.buffer == plan->buffer;
    for (uint32_t k = 0; k < count && !known; k++) known = is_same_region(ir, regions[k], r);
    if (!known) regions[count++] = r;
  }
  tir_set_reads(ir, reduction, regions, count);
}

struct accumulator {
  tir_buffer buffer;
  uint32_t indices, rank;
};

static tir_expr load_accumulator(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct accumulator *a = context;
  (void)indices, (void)count;
  tir_expr copy[TIR_MOST_INLINED_RANK];
  for (uint32_t i = 0; i < a->rank; i++) copy[i] = ir->operands.at[a->indices + i];
  return tir_load(ir, a->buffer, copy, a->rank, TIR_NONE);
}

static void edit_fuse_reduction_epilogue(struct tir *ir, tir_block reduction, tir_block epilogue,
                                         const struct fuse_reduction_epilogue_plan *plan) {
  map_iters(ir, reduction, epilogue);
  uint32_t rank = tir_buffer_at(ir, plan->target)->rank;
  uint32_t indices = tir_subst_operands(ir, tir_as(ir, plan->store, TIR_STORE)->store.indices, rank);
  struct accumulator a = {plan->target, indices, rank};
  set_regions(ir, reduction, epilogue, plan);
  tir_subst_clear(ir);
  struct tir_load_rule rule = {plan->buffer, plan->target, load_accumulator, &a};
  tir_expr value = tir_rewrite_loads(ir, &rule, tir_as(ir, plan->update, TIR_STORE)->store.value);
  tir_stmt stores[] = {plan->init, plan->update};
  for (int i = 0; i < 2; i++) {
    struct tir_stmt_node *n = tir_stmt_at(ir, stores[i]);
    n->store.buffer = plan->target;
    n->store.indices = a.indices;
    n->store.value = i ? value : plan->start;
  }
  tir_kill_leaf(ir, epilogue);
}

bool tir_fuse_reduction_epilogue(struct tir *ir, tir_block reduction, tir_block epilogue, ms_error *err) {
  assert(tir_is(ir, reduction, TIR_BLOCK) && tir_is(ir, epilogue, TIR_BLOCK));
  struct fuse_reduction_epilogue_plan plan = {0};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_fuse_reduction_epilogue(ir, reduction, epilogue, &plan, err))) return false;
  edit_fuse_reduction_epilogue(ir, reduction, epilogue, &plan);
  return true;
}

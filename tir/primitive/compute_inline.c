/* Compute inline: a block disappears, and where its buffer was read, its value is computed.
 *
 * Requires: no init, one write, to a buffer that the scope allocates; the scope is a stage pipeline that holds more
 *           than the block; the block is complete; its body is one store, whose indices are a bijective affine map of
 *           its iterations; nothing uses the buffer but by loads of elements.
 * After:    each load is the stored value, with the iterations put as the load's indices say, also where ranges of
 *           loops and bindings in the scope load; the readers' regions are detected again; the allocation is gone.
 * Forward:  the block and the loops that held only it are dead. */
#include "buffer.h"
#include "inline.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/detect.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/order.h"
#include "tir/arith/affine.h"

#include <stdlib.h>

/* A load of the buffer with `vars` as indices has `value`. */
struct compute_inline_plan {
  tir_block scope;
  tir_buffer buffer;
  uint32_t rank;
  tir_var vars[TIR_MOST_INLINED_RANK];
  tir_expr value;
};

static bool is_unit(const struct tir *ir, tir_var v) {
  const struct tir_var_node *n = &ir->vars.at[v];
  return n->min && n->extent && tir_is_int(ir, n->min) && tir_is_const(ir, n->extent, 1);
}

/* The store's indices are the block's iterations, in order; one with a single value may be left out for it. */
static bool plan_plain_indices(const struct tir *ir, tir_block block, tir_stmt store,
                               struct compute_inline_plan *plan) {
  if (tir_block_at(ir, block)->iters.count != plan->rank) return false;
  for (uint32_t i = 0; i < plan->rank; i++) {
    tir_var v = tir_iters(ir, block)[i].var;
    tir_expr index = ir->operands.at[tir_as(ir, store, TIR_STORE)->store.indices + i];
    bool left_out = tir_is_const(ir, index, 0) && is_unit(ir, v) && tir_is_const(ir, ir->vars.at[v].min, 0);
    if (index != tir_var_expr(ir, v) && !left_out) return false;
    plan->vars[i] = v;
  }
  return true;
}

enum { MOST_ITERS = 32 };

/* Variables that stand for the indices of a load. */
static void make_placeholders(struct tir *ir, struct compute_inline_plan *plan, tir_expr *outputs) {
  tir_name name = tir_name_of(ir, "i");
  for (uint32_t i = 0; i < plan->rank; i++) {
    tir_expr extent = ir->operands.at[tir_buffer_at(ir, plan->buffer)->shape + i];
    tir_type type = tir_type_of(ir, extent);
    plan->vars[i] = tir_new_var(ir, TIR_VAR_PLAIN, name, type, tir_int(ir, type, 0), extent);
    outputs[i] = tir_var_expr(ir, plan->vars[i]);
  }
}

static bool plan_affine_indices(struct tir *ir, tir_block block, tir_stmt store, struct compute_inline_plan *plan) {
  uint32_t count = tir_block_at(ir, block)->iters.count;
  tir_var iters[MOST_ITERS];
  tir_expr indices[TIR_MOST_INLINED_RANK], outputs[TIR_MOST_INLINED_RANK], values[MOST_ITERS];
  if (count > MOST_ITERS) return false;
  for (uint32_t i = 0; i < count; i++) iters[i] = tir_iters(ir, block)[i].var;
  for (uint32_t i = 0; i < plan->rank; i++)
    indices[i] = ir->operands.at[tir_as(ir, store, TIR_STORE)->store.indices + i];
  make_placeholders(ir, plan, outputs);
  if (!tir_inverse_affine_map(ir, indices, plan->rank, iters, count, TIR_NONE, outputs, 1, values)) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (is_unit(ir, iters[i])) values[i] = ir->vars.at[iters[i]].min;
    if (!values[i]) return false;
    values[i] = tir_cast(ir, ir->vars.at[iters[i]].type, values[i]);
  }
  for (uint32_t i = 0; i < count; i++) tir_subst_var(ir, iters[i], values[i]);
  plan->value = tir_subst_value(ir, plan->value);
  tir_subst_clear(ir);
  return true;
}

static bool plan_body(struct tir *ir, tir_block block, struct compute_inline_plan *plan) {
  tir_stmt store = tir_only_store(ir, block, TIR_BODY);
  if (!store || tir_as(ir, store, TIR_STORE)->store.buffer != plan->buffer || tir_has_own_buffers(ir, block))
    return false;
  plan->rank = tir_buffer_at(ir, plan->buffer)->rank;
  if (plan->rank > TIR_MOST_INLINED_RANK) return false;
  plan->value = tir_as(ir, store, TIR_STORE)->store.value;
  return plan_plain_indices(ir, block, store, plan) || plan_affine_indices(ir, block, store, plan);
}

/* The block declares a part of what the inlined one reads. */
static bool declares_some_of(const struct tir *ir, tir_block around, tir_block inlined) {
  struct tir_span reads = tir_block_at(ir, inlined)->reads;
  for (uint32_t i = reads.first; i < reads.first + reads.count; i++)
    if (tir_has_region_of(ir, tir_block_at(ir, around)->reads, ir->regions.at[i].buffer)) return true;
  return false;
}

/* Blocks around readers would have to declare more than they do, if they declare some of it, but not the buffer. */
static bool check_around_readers(struct tir *ir, tir_block block, const struct compute_inline_plan *plan,
                                 ms_error *err) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, plan->buffer);
  uint32_t lists[] = {n->readers, n->undeclared};
  for (int k = 0; k < 2; k++)
    for (uint32_t u = lists[k]; u; u = ir->uses.at[u].next)
      for (tir_block b = tir_parent_block(ir, ir->uses.at[u].block); b && b != plan->scope; b = tir_parent_block(ir, b))
        if (!tir_has_region_of(ir, tir_block_at(ir, b)->reads, plan->buffer) && declares_some_of(ir, b, block))
          return tir_refuse_undeclared(ir, b, plan->buffer, err);
  return true;
}

static bool check_compute_inline(struct tir *ir, tir_block block, struct compute_inline_plan *plan, ms_error *err) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  if (!tir_check_inlined_scope(ir, block, &plan->scope, err)) return false;
  if (writes.count != 1)
    return tir_refuse(ir, err, MS_NOT_ONE_WRITE, block, "block `%s` writes %u regions", tir_block_name(ir, block),
                      writes.count);
  plan->buffer = ir->regions.at[writes.first].buffer;
  if (!tir_check_not_output(ir, block, plan->scope, err) || !tir_check_complete_block(ir, block, plan->scope, err))
    return false;
  if (!plan_body(ir, block, plan))
    return tir_refuse(ir, err, MS_INLINE_BODY, block, "block `%s` is no single store to distinct places",
                      tir_block_name(ir, block));
  if (!tir_check_free_of_place(ir, block, plan->scope, false, err)) return false;
  struct tir_transfer to_readers = {.block = block, .scope = plan->scope};
  return tir_check_blocks_only(ir, plan->buffer, plan->scope, false, err) && tir_check_not_only_block(ir, block, err) &&
         tir_check_no_opaque_access(ir, plan->buffer, block, err) &&
         tir_check_no_range_loads(ir, plan->buffer, TIR_NONE, err) && check_around_readers(ir, block, plan, err) &&
         tir_check_order(ir, &to_readers, err);
}

static tir_expr value_at(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct compute_inline_plan *plan = context;
  assert(count == plan->rank);
  for (uint32_t i = 0; i < count; i++) {
    tir_type type = ir->vars.at[plan->vars[i]].type;
    tir_subst_var(ir, plan->vars[i], tir_type_of(ir, indices[i]) == type ? indices[i] : tir_cast(ir, type, indices[i]));
  }
  tir_expr value = tir_subst_value(ir, plan->value);
  tir_subst_clear(ir);
  return value;
}

/* A buffer from outside the function that no region names. */
static bool is_unnamed(const struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  return !n->readers && !n->writers && !(n->where && tir_is(ir, n->where, TIR_BLOCK));
}

/* What the reader will not declare that it uses, by buffer: what no block declares; and nothing more than it declares
 * now, if it did not declare that it used the block's buffer. The caller frees it. NULL: it declares all. */
static bool *find_undeclared(const struct tir *ir, tir_block reader, bool declares) {
  if (declares && ir->undeclared != TIR_SOME_UNDECLARED) return NULL;
  bool *undeclared = calloc(ir->buffers.count, sizeof *undeclared);
  if (!undeclared) abort();
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    struct tir_access own = tir_access_of(ir, reader, b);
    undeclared[b] = !own.declares_reads && !own.declares_writes && (!declares || is_unnamed(ir, b));
  }
  return undeclared;
}

static void drop_undeclared(struct tir *ir, tir_block reader, const bool *undeclared, bool writes) {
  struct tir_span span = tir_regions(ir, reader, writes);
  uint32_t first = tir_grow_regions(ir, span.count), left = 0;
  for (uint32_t i = 0; i < span.count; i++) {
    struct tir_region r = ir->regions.at[span.first + i];
    if (!undeclared[r.buffer]) ir->regions.at[first + left++] = r;
  }
  (writes ? tir_set_writes : tir_set_reads)(ir, reader, ir->regions.at + first, left);
}

/* Detects the reader's regions again, once it does the block's work: a buffer that it declares, it declares whole. */
static void renew_regions(struct tir *ir, tir_block block, tir_block reader, tir_buffer buffer) {
  bool declares = tir_has_region_of(ir, tir_block_at(ir, reader)->reads, buffer);
  if (!declares && !tir_share_buffer(ir, tir_block_at(ir, block)->reads, tir_block_at(ir, reader)->reads)) return;
  bool *undeclared = find_undeclared(ir, reader, declares);
  tir_renew_regions(ir, reader);
  if (!undeclared) return;
  drop_undeclared(ir, reader, undeclared, false);
  drop_undeclared(ir, reader, undeclared, true);
  free(undeclared);
}

static void edit_compute_inline(struct tir *ir, tir_block block, struct compute_inline_plan *plan) {
  struct tir_load_rule rule = {plan->buffer, TIR_NONE, value_at, plan};
  struct tir_blocks users; /* inner ones before those around them */
  tir_find_users(ir, plan->buffer, plan->scope, &users);
  for (uint32_t i = 0; i < users.count; i++)
    if (users.at[i] != block) tir_rewrite_own_loads(ir, &rule, users.at[i]);
  for (uint32_t i = 0; i < users.count; i++)
    if (users.at[i] != block && users.at[i] != plan->scope) renew_regions(ir, block, users.at[i], plan->buffer);
  tir_blocks_free(&users);
  tir_kill_leaf(ir, block);
  tir_remove_alloc(ir, plan->scope, plan->buffer);
}

bool tir_compute_inline(struct tir *ir, tir_block block, ms_error *err) {
  struct compute_inline_plan plan;
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_compute_inline(ir, block, &plan, err))) return false;
  edit_compute_inline(ir, block, &plan);
  return true;
}

bool tir_can_compute_inline(struct tir *ir, tir_block block) {
  struct compute_inline_plan plan;
  struct tir_mark mark = tir_mark(ir);
  bool accepted = check_compute_inline(ir, block, &plan, NULL);
  tir_rewind(ir, &mark);
  return accepted;
}

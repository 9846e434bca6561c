/* FuseOnlineSoftmax: which producers go into the fused block. */
#include "fuse_online_softmax.h"
#include "inline.h"
#include "tir/analysis/order/order.h"

#include <string.h>

tir_stmt tir_softmax_store(const struct tir *ir, tir_block block) {
  tir_stmt store = tir_only_store(ir, block, TIR_BODY);
  return store && tir_stmt_at(ir, block)->first[TIR_BODY] == store ? store : TIR_NONE;
}

/* The one element of a buffer that expressions load; `other`: there are several, or it is loaded under a condition. */
struct element {
  const struct tir *ir;
  tir_buffer buffer;
  uint32_t indices;
  bool found, other;
};

static bool find_element(void *data, tir_expr e) {
  struct element *s = data;
  const struct tir_expr_node *n = tir_at(s->ir, e);
  if (n->kind != TIR_LOAD || n->ref != s->buffer) return true;
  const uint32_t *now = tir_operands(s->ir, n->operands);
  s->other = s->other || n->a || (s->found && memcmp(tir_operands(s->ir, s->indices), now, n->count * sizeof *now));
  s->indices = n->operands;
  s->found = true;
  return true;
}

/* The element that the exponent, and the producers found so far, load. */
static bool find_loaded(struct tir *ir, const struct tir_fused_softmax *plan, tir_buffer buffer, uint32_t *indices) {
  struct element s = {ir, buffer, 0, false, false};
  tir_walk_expr(ir, plan->x, find_element, &s);
  for (uint32_t i = 0; i < plan->producer_count; i++) {
    const struct tir_softmax_producer *p = &plan->producers[i];
    for (uint32_t k = 0; k < tir_block_at(ir, p->block)->iters.count; k++)
      if (p->at[k]) tir_subst_var(ir, tir_iters(ir, p->block)[k].var, p->at[k]);
    tir_expr value = tir_subst(ir, tir_as(ir, tir_softmax_store(ir, p->block), TIR_STORE)->store.value);
    tir_subst_clear(ir);
    tir_walk_expr(ir, value, find_element, &s);
  }
  *indices = s.indices;
  return s.found && !s.other;
}

static bool is_foreign(const struct tir *ir, const void *context, tir_var v) {
  const struct tir_fused_softmax *plan = context;
  for (uint32_t d = 0; d < plan->maximum.rank; d++)
    if (plan->row[d] == tir_var_expr(ir, v)) return false;
  return v != plan->product.column;
}

/* One row, one column, or the same for all of a tile. */
static bool is_tileable(struct tir *ir, const struct tir_fused_softmax *plan, tir_expr index) {
  if (tir_any_var(ir, index, is_foreign, plan) || (tir_at(ir, index)->flags & TIR_HAS_LOAD)) return false;
  if (tir_at(ir, index)->kind == TIR_VAR) return true;
  return !tir_uses_var(ir, index, plan->product.column) &&
         !tir_uses_var(ir, index, tir_at(ir, plan->row[plan->tiled])->ref);
}

/* What each iteration is, by the index that it writes at. */
static bool find_places(struct tir *ir, const struct tir_fused_softmax *plan, uint32_t written, uint32_t loaded,
                        struct tir_softmax_producer *p) {
  uint32_t rank = tir_buffer_at(ir, p->buffer)->rank, places = 0;
  struct tir_span iters = tir_block_at(ir, p->block)->iters;
  for (uint32_t i = 0; i < iters.count; i++) {
    struct tir_iter iter = ir->iters.at[iters.first + i];
    p->at[i] = TIR_NONE;
    for (uint32_t d = 0; d < rank && iter.kind == TIR_SPATIAL; d++) {
      if (tir_operands(ir, written)[d] != tir_var_expr(ir, iter.var)) continue;
      if (p->at[i] || !is_tileable(ir, plan, tir_operands(ir, loaded)[d])) return false;
      p->at[i] = tir_operands(ir, loaded)[d];
      places++;
    }
    if (iter.kind != TIR_REDUCE && !p->at[i]) return false;
  }
  for (uint32_t d = 0; d < rank; d++) places += tir_is_const(ir, tir_operands(ir, written)[d], 0);
  return places == rank;
}

bool tir_runs_whole(struct tir *ir, tir_block block) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_interval taken[TIR_MOST_SOFTMAX_ITERS];
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (iters.count > TIR_MOST_SOFTMAX_ITERS || !tir_exact_iterations(ir, block, TIR_NONE, taken)) return false;
  for (uint32_t i = 0; i < iters.count; i++) {
    struct tir_var_node v = ir->vars.at[ir->iters.at[iters.first + i].var];
    if (!tir_is_const(ir, v.min, 0) || !tir_is_int(ir, v.extent) || taken[i].empty ||
        !tir_is_const(ir, taken[i].min, 0) || !tir_is_const(ir, taken[i].max, tir_at(ir, v.extent)->imm - 1))
      return false;
  }
  return true;
}

static bool is_ours(const struct tir_fused_softmax *plan, tir_block block) {
  bool ours = block == plan->maximum.block || block == plan->sum.block || block == plan->product.block;
  for (uint32_t i = 0; i < plan->producer_count && !ours; i++) ours = plan->producers[i].block == block;
  return ours;
}

static bool is_read_by_us_only(struct tir *ir, const struct tir_fused_softmax *plan, tir_block block,
                               tir_buffer buffer) {
  if (!tir_allocates(ir, plan->scope, buffer) || tir_memory_of(ir, buffer)) return false;
  for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u; u = ir->uses.at[u].next)
    if (ir->uses.at[u].block != block && !is_ours(plan, ir->uses.at[u].block)) return false;
  tir_expr zero = tir_float(ir, tir_type_of(ir, plan->exponential), 0);
  struct tir_fused_softmax apart = *plan;
  apart.normalizer = TIR_NONE;
  tir_expr rest = tir_weigh(ir, &apart, plan->product.value, zero);
  return !tir_uses_buffer(ir, rest, buffer) && (!apart.normalizer || !tir_uses_buffer(ir, apart.normalizer, buffer)) &&
         tir_check_blocks_only(ir, buffer, plan->scope, true, NULL) &&
         tir_check_no_opaque_access(ir, buffer, TIR_NONE, NULL) && tir_check_no_range_loads(ir, buffer, block, NULL);
}

static bool can_move(struct tir *ir, const struct tir_fused_softmax *plan, tir_block block) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  bool plain = !r->allocs.count && !r->matches.count && r->writes.count == 1 && tir_softmax_store(ir, block);
  struct tir_transfer to_product = {.block = block, .scope = plan->scope, .to = plan->product.block};
  return plain && tir_only_loops_between(ir, block, plan->scope) &&
         tir_lowest_common_ancestor(ir, block, plan->product.block) == plan->scope &&
         tir_check_complete_or_reduction_block(ir, block, plan->scope, NULL) &&
         tir_check_reduces_inside(ir, block, plan->scope, NULL) && tir_runs_whole(ir, block) &&
         tir_check_order(ir, &to_product, NULL);
}

static bool find_producer(struct tir *ir, const struct tir_fused_softmax *plan, tir_block block,
                          struct tir_softmax_producer *out) {
  uint32_t loaded;
  if (is_ours(plan, block) || tir_block_at(ir, block)->writes.count != 1 || !tir_softmax_store(ir, block)) return false;
  struct tir_stmt_node store = *tir_as(ir, tir_softmax_store(ir, block), TIR_STORE);
  *out = (struct tir_softmax_producer){.block = block, .buffer = store.store.buffer};
  return find_loaded(ir, plan, out->buffer, &loaded) && is_read_by_us_only(ir, plan, block, out->buffer) &&
         can_move(ir, plan, block) && find_places(ir, plan, store.store.indices, loaded, out);
}

/* From the last to the first: what a producer reads is made before it. */
void tir_find_softmax_producers(struct tir *ir, struct tir_fused_softmax *plan) {
  enum { MOST_BLOCKS = 256 };
  tir_block blocks[MOST_BLOCKS];
  uint32_t count = tir_child_blocks(ir, plan->scope, blocks, MOST_BLOCKS);
  struct tir_softmax_producer found;
  plan->producer_count = 0;
  if (count > MOST_BLOCKS) count = MOST_BLOCKS;
  for (uint32_t i = count; i-- > 0 && plan->producer_count < TIR_MOST_SOFTMAX_PRODUCERS;)
    if (tir_compare_position(ir, blocks[i], plan->maximum.block) < 0 && find_producer(ir, plan, blocks[i], &found))
      plan->producers[plan->producer_count++] = found;
}

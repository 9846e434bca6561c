/* Buffers that are one memory: views, declared of what something else names. Regions name buffers, so that no question
 * about order or places sees what is used under another name; parts that blocks match are known from their sources. */
#include "tir.h"

#include <stdlib.h>

bool tir_is_view(const struct tir *ir, tir_buffer buffer) {
  return tir_buffer_at(ir, buffer)->data && !tir_is_placed(ir, buffer);
}

/* What a pointer is of comes before where it points to, which may be loaded. */
static bool is_source(const struct tir *ir, const void *context, tir_expr e) {
  (void)context;
  return tir_at(ir, e)->kind == TIR_LOAD || tir_at(ir, e)->kind == TIR_DATA;
}

tir_buffer tir_viewed_memory(const struct tir *ir, tir_buffer buffer) {
  while (buffer && tir_is_view(ir, buffer)) {
    tir_expr source = tir_find_node(ir, tir_buffer_at(ir, buffer)->data, 0, is_source, NULL);
    buffer = source ? tir_at(ir, source)->ref : TIR_NONE;
  }
  return buffer;
}

bool tir_may_share_memory(const struct tir *ir, tir_buffer a, tir_buffer b) {
  tir_buffer first = tir_viewed_memory(ir, a), second = tir_viewed_memory(ir, b);
  return !first || !second || first == second;
}

struct uses {
  const struct tir *ir;
  uint8_t *used; /* by buffer */
};

static bool mark_used(void *data, tir_expr e) {
  struct uses *u = data;
  const struct tir_expr_node *n = tir_at(u->ir, e);
  if (n->kind == TIR_LOAD || n->kind == TIR_DATA) u->used[n->ref] = 1;
  return true;
}

static void mark_stmt(struct uses *u, tir_stmt s) {
  const struct tir *ir = u->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  tir_expr own[4];
  uint32_t count = n->kind == TIR_DECLARE ? 0 : tir_stmt_exprs(ir, s, own);
  for (uint32_t i = 0; i < count; i++)
    if (own[i]) tir_walk_expr(ir, own[i], mark_used, u);
  if (n->kind == TIR_STORE) {
    u->used[n->store.buffer] = 1;
    for (uint32_t d = 0; d < tir_buffer_at(ir, n->store.buffer)->rank; d++)
      tir_walk_expr(ir, tir_operands(ir, n->store.indices)[d], mark_used, u);
  }
  if (n->kind != TIR_BLOCK) return;
  const struct tir_block_record *r = tir_block_at(ir, s);
  for (uint32_t i = 0; i < r->iters.count; i++)
    tir_walk_expr(ir, ir->iters.at[r->iters.first + i].binding, mark_used, u);
  for (uint32_t i = 0; i < r->matches.count; i++) u->used[ir->matches.at[r->matches.first + i].source.buffer] = 1;
  for (uint32_t i = 0; i < r->reads.count; i++) u->used[ir->regions.at[r->reads.first + i].buffer] = 1;
  for (uint32_t i = 0; i < r->writes.count; i++) u->used[ir->regions.at[r->writes.first + i].buffer] = 1;
}

/* What the buffer is a view of, at last; itself, where its pointer is of no buffer. */
static tir_buffer memory_of(const struct tir *ir, tir_buffer b) {
  assert(tir_is_buffer(ir, b));
  tir_buffer memory = tir_viewed_memory(ir, b);
  return memory ? memory : b;
}

static bool any_views(const struct tir *ir) {
  for (tir_buffer b = 1; b < ir->buffers.count; b++)
    if (memory_of(ir, b) != b) return true;
  return false;
}

bool tir_find_aliased(const struct tir *ir) {
  if (!any_views(ir)) return false;
  struct uses u = {ir, calloc(2 * (size_t)ir->buffers.count, 1)};
  if (!u.used) abort();
  for (tir_func f = 1; f < ir->funcs.count; f++)
    for (tir_stmt s = ir->funcs.at[f].body, body = s; s; s = tir_next(ir, s, body)) mark_stmt(&u, s);
  uint8_t *met = u.used + ir->buffers.count; /* memory that a buffer before is used of */
  bool aliased = false;
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    if (!u.used[b]) continue;
    aliased = aliased || met[memory_of(ir, b)];
    met[memory_of(ir, b)] = 1;
  }
  free(u.used);
  return aliased;
}

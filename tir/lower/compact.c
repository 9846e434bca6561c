/* Compact: an allocated buffer shrinks to the box that is touched while it lives; its indices count from the box's
 * corner. A cache of a panel thus becomes a packed panel.
 * Requires: flat allocations, no blocks. Gives: smaller allocations. Keeps: everything else. A dimension whose touched
 * range is not known, or no constant extent, stays whole; so does a buffer that views or pointers reach. */
#include "../analysis/analysis.h"
#include "../arith/linear.h"
#include "lower.h"

#include <stdlib.h>

struct compaction {
  struct tir *ir;
  tir_buffer buffer;
  tir_stmt alloc;
  struct tir_touched touched[TIR_MOST_RANK];
};

/* Uses only what is defined outside the allocation's list. */
static bool is_outer(struct tir *ir, tir_expr e, const tir_var *inner, uint32_t count) {
  return !tir_uses_any_var(ir, e, inner, count) && !(tir_at(ir, e)->flags & (TIR_HAS_LOAD | TIR_HAS_CALL));
}

enum { MOST_LOOPS = 128 };

static void widen(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct compaction *c = data;
  (void)writes;
  if (a->buffer != c->buffer) return;
  tir_var vars[MOST_LOOPS];
  tir_stmt list = tir_stmt_at(ir, c->alloc)->parent;
  tir_symbol memory = tir_buffer_at(ir, c->buffer)->scope;
  uint32_t count = tir_running_loops(ir, s, list, memory, vars, MOST_LOOPS);
  for (uint32_t i = 0; i < a->count; i++) {
    struct tir_interval now = {TIR_NONE, TIR_NONE, false};
    if (count <= MOST_LOOPS && tir_is_index(ir, a->indices[i])) now = tir_relax(ir, a->indices[i], vars, count);
    bool outer = (!now.min || is_outer(ir, now.min, vars, count)) && (!now.max || is_outer(ir, now.max, vars, count));
    tir_touch(ir, &c->touched[i], outer ? now : (struct tir_interval){TIR_NONE, TIR_NONE, false});
  }
}

static bool move_to_corner(struct tir *ir, void *data, struct access *a) {
  struct compaction *c = data;
  if (a->buffer != c->buffer) return false;
  for (uint32_t i = 0; i < a->count; i++) { /* indices may be of several types */
    tir_expr at = a->indices[i];
    if (!c->touched[i].whole) a->indices[i] = tir_sub(ir, at, tir_cast(ir, tir_type_of(ir, at), c->touched[i].at.min));
  }
  return true;
}

static void compact_one(struct lowering *low, tir_stmt alloc) {
  struct tir *ir = low->ir;
  struct compaction c = {ir, tir_stmt_at(ir, alloc)->alloc.buffer, alloc, {{0}}};
  uint32_t rank = tir_buffer_at(ir, c.buffer)->rank;
  if (rank > TIR_MOST_RANK || tir_buffer_at(ir, c.buffer)->data || tir_buffer_at(ir, c.buffer)->strides.count) return;
  tir_stmt scope = tir_stmt_at(ir, alloc)->parent;
  lower_visit(ir, scope, widen, &c);
  bool smaller = false;
  tir_expr shape[TIR_MOST_RANK];
  for (uint32_t i = 0; i < rank; i++) {
    shape[i] = ir->operands.at[tir_buffer_at(ir, c.buffer)->shape + i];
    if (!c.touched[i].any) return;
    int64_t extent = tir_touched_extent(ir, &c.touched[i], shape[i]);
    c.touched[i].whole |= tir_is_const(ir, shape[i], extent);
    if (c.touched[i].whole) continue;
    shape[i] = tir_int(ir, tir_type_of(ir, shape[i]), extent);
    smaller = true;
  }
  if (!smaller) return;
  lower_rewrite(ir, scope, move_to_corner, &c);
  uint32_t first = tir_add_operands(ir, shape, rank);
  tir_buffer_at(ir, c.buffer)->shape = first;
}

bool lower_compact(struct lowering *low) {
  uint8_t *pointers = lower_pointers(low->ir, low->body);
  for (tir_stmt s = low->body; s; s = tir_next(low->ir, s, low->body))
    if (tir_is(low->ir, s, TIR_ALLOC) && !pointers[tir_stmt_at(low->ir, s)->alloc.buffer]) compact_one(low, s);
  free(pointers);
  return true;
}

/* What the two ways to find the domains of a moved block share. Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_MOVE_DOMAIN_H
#define MSCHED_TIR_PRIMITIVE_MOVE_DOMAIN_H

#include "move_block.h"

/* Variables that run as one required block and buffer are seen from the loop: of the loops between, and for memory that
 * threads share, of those above that are bound to such threads. */
enum { TIR_MOST_RELAXED = 64 };
struct tir_relaxed {
  uint64_t mask;
  uint32_t count;
  tir_var *vars;
  tir_var on_stack[TIR_MOST_RELAXED];
};
void tir_open_relaxed(const struct tir *ir, const struct tir_move *move, tir_block required, tir_buffer buffer,
                      struct tir_relaxed *r);
void tir_close_relaxed(struct tir_relaxed *r);

static inline bool tir_is_relaxed(const struct tir_relaxed *r, tir_var v) {
  if (!(r->mask >> (v & 63) & 1)) return false;
  for (uint32_t i = 0; i < r->count; i++)
    if (r->vars[i] == v) return true;
  return false;
}

static inline bool tir_uses_relaxed(const struct tir *ir, const struct tir_relaxed *r, tir_expr e) {
  return tir_uses_masked_var(ir, e, r->mask, r->vars, r->count);
}

/* The regions by which the moved block provides, and another requires. */
static inline struct tir_span tir_provided_regions(const struct tir *ir, const struct tir_move *move) {
  return move->to_consumers ? tir_block_at(ir, move->block)->writes : tir_block_at(ir, move->block)->reads;
}
static inline struct tir_span tir_required_regions(const struct tir *ir, const struct tir_move *move,
                                                   tir_block required) {
  return move->to_consumers ? tir_block_at(ir, required)->reads : tir_block_at(ir, required)->writes;
}

/* What the required blocks access of the buffer under the loop: an interval a dimension. False: nothing. */
bool tir_move_find_required(struct tir *ir, const struct tir_move *move, tir_buffer buffer, struct tir_interval *out);

/* On numbers alone (move_linear.c). False: the general way is to be taken. */
bool tir_move_find_linear(struct tir *ir, struct tir_move *move);

#endif

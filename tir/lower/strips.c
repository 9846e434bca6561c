/* Strips: a vectorized loop that is wider than a register becomes an unrolled loop of vectorized ones, each as wide as
 * a register.
 *
 *   for j in vectorized(48): …     becomes     for p in unrolled(3): for q in vectorized(16): …   with j = 16 p + q
 *
 * Requires: no blocks; the loop's iterations are independent. Gives: vectorized loops that fill one register, where
 * their extent is a multiple of what fills it. Keeps: results. Code generation would take wide vectors apart by itself,
 * at several times the cost, and their masks lane by lane. */
#include "lower.h"

struct widest {
  int bits;
};

static void see_element(struct tir *ir, void *data, tir_stmt s, const struct access *access, bool writes) {
  struct widest *w = data;
  int bits = tir_type_bits(tir_buffer_at(ir, access->buffer)->type);
  (void)s, (void)writes;
  if (bits > w->bits) w->bits = bits;
}

/* How many elements of the widest type below fill a register. */
static int64_t lanes_of_register(const struct lowering *low, tir_stmt loop) {
  struct widest widest = {8};
  lower_visit(low->ir, loop, see_element, &widest);
  return lower_vector_bits(low) / widest.bits;
}

bool lower_strips(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind != TIR_VECTORIZED) continue;
    int64_t extent = tir_loop_extent(ir, s), lanes = lanes_of_register(low, s);
    assert(lanes * 8 <= lower_vector_bits(low));
    if (lanes <= 1 || extent <= lanes || extent % lanes) continue;
    lower_split_loop(ir, s, lanes, TIR_VECTORIZED);
    tir_stmt_at(ir, s)->loop_kind = TIR_UNROLLED;
  }
  return true;
}

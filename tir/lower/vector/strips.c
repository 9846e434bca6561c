/* Strips and tails: a vectorized loop that is wider than a register becomes an unrolled loop of vectorized ones, each
 * as wide as a register, and one more of what is left.
 *
 *   for j in vectorized(48): …     becomes     for p in unrolled(3): for q in vectorized(16): …   with j = 16 p + q
 *   for j in vectorized(24): …     becomes     for j in vectorized(16): …  for j in vectorized(16, 24): …
 *
 * Two passes: strips of what registers divide, before tiles are kept in registers (promote.c), and tails after it,
 * since a tile has one loop for its columns.
 * Requires: no blocks; the loop's iterations are independent. Gives: vectorized loops that are no wider than a
 * register, or on a GPU than a few accesses, but where other loops are not of constant bounds. Keeps: results. Code
 * generation would take wide vectors apart by itself, at several times the cost, and their masks lane by lane; vectors
 * that are no power of two and wider than a register it passes from one step of a loop to the next element by
 * element. */
#include "tir/lower/lower.h"

/* Bits of the widest element, and of the narrowest of those that lanes touch in memory. */
struct elements {
  tir_var lane;
  int widest, narrowest;
};

static void see_element(struct tir *ir, void *data, tir_stmt s, const struct access *access, bool writes) {
  struct elements *e = data;
  int bits = tir_type_bits(tir_buffer_at(ir, access->buffer)->type);
  bool moves = writes;
  (void)s;
  for (uint32_t d = 0; d < access->count; d++) moves |= tir_uses_var(ir, access->indices[d], e->lane);
  if (bits > e->widest) e->widest = bits;
  if (moves && tir_buffer_memory(ir, access->buffer) != TIR_THREAD_MEMORY && (!e->narrowest || bits < e->narrowest))
    e->narrowest = bits;
}

/* How many elements of the widest type below fill a register; on a GPU, whose registers have one each, of the narrowest
 * fill an access, where others take a few. */
static int64_t lanes_of_register(const struct lowering *low, tir_stmt loop) {
  struct elements found = {tir_as(low->ir, loop, TIR_LOOP)->loop.var, 8, 0};
  bool gpu = low->options && low->options->device == TIR_GPU;
  lower_visit(low->ir, loop, see_element, &found);
  int64_t lanes = lower_vector_bits(low) / found.widest;
  if (!gpu || found.narrowest < 8) return lanes;
  int64_t most = LOWER_MOST_ACCESSES * lanes, all = lower_vector_bits(low) / found.narrowest;
  return all < lanes ? lanes : all < most ? all : most;
}

/* Makes strips of so many lanes, which divide the loop, in its place. */
static void strip(struct tir *ir, tir_stmt loop, int64_t lanes) {
  lower_split_loop(ir, loop, lanes, TIR_VECTORIZED);
  tir_stmt_at(ir, loop)->loop_kind = TIR_UNROLLED;
}

bool lower_strips(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind != TIR_VECTORIZED) continue;
    int64_t extent = tir_loop_extent(ir, s), lanes = lanes_of_register(low, s);
    assert(lanes * 8 <= lower_vector_bits(low));
    if (lanes > 1 && extent > lanes && extent % lanes == 0) strip(ir, s, lanes);
  }
  return true;
}

/* The loop as strips, and a vectorized loop of what is left; gives the latter. */
static tir_stmt part_off(struct tir *ir, tir_stmt loop, int64_t lanes) {
  int64_t min = tir_at(ir, tir_as(ir, loop, TIR_LOOP)->loop.min)->imm, extent = tir_loop_extent(ir, loop);
  int64_t whole = extent - extent % lanes;
  assert(whole >= lanes && whole < extent);
  tir_stmt full = lower_part_of(ir, loop, min, whole), tail = lower_part_of(ir, loop, min + whole, extent - whole);
  tir_insert_after(ir, loop, full);
  tir_insert_after(ir, full, tail);
  tir_kill(ir, loop);
  if (whole > lanes) strip(ir, full, lanes);
  return tail;
}

bool lower_tails(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind != TIR_VECTORIZED) continue;
    int64_t extent = tir_loop_extent(ir, s), lanes = lanes_of_register(low, s);
    if (lanes <= 1 || extent <= lanes || extent % lanes == 0 || !tir_is_int(ir, tir_stmt_at(ir, s)->loop.min)) continue;
    next = tir_after(ir, part_off(ir, s, lanes), low->body);
  }
  return true;
}

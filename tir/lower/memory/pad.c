/* Pad: rows of large buffers get longer where they are so far apart that they meet in few sets of a cache.
 *
 *   B: (6, 16, 256) of float32, 1 KiB a row     becomes     B: (6, 16, 272)
 *
 * A register tile reads a column of elements at each step of its reduction: of rows that are a multiple of a KiB apart
 * all but a few are lost from the cache again before their lines are used up.
 * Requires: no blocks. Gives: larger allocations. Keeps: everything else: no index reaches what is added. What fits in
 * the cache nearest to a core as a whole stays, and so does what has strides, views or pointers. */
#include "tir/arith/bounds.h"
#include "tir/lower/lower.h"

#include <stdlib.h>

enum { LINE = 64, APART = 1024, WHOLE = 32768 };

/* The bytes of a buffer of constant extents, or 0. */
static int64_t bytes_of(const struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  int64_t bytes = tir_type_bits(b->type) * tir_type_lanes(b->type) / 8;
  for (uint32_t d = 0; d < b->rank; d++) {
    tir_expr extent = tir_operands(ir, b->shape)[d];
    if (!tir_is_int(ir, extent)) return 0;
    bytes = tir_sat_mul(bytes, tir_at(ir, extent)->imm);
  }
  return bytes;
}

/* Rows of which several are apart by a multiple of APART get elements that make this one more of what is inside of
 * them, and whole lines. */
static void pad_rows(struct tir *ir, tir_buffer buffer) {
  struct tir_buffer_node b = *tir_buffer_at(ir, buffer);
  int64_t inside = tir_type_bits(b.type) * tir_type_lanes(b.type) / 8;
  tir_expr shape[TIR_MOST_RANK];
  assert(inside > 0 && b.rank <= TIR_MOST_RANK && !b.strides.count);
  for (uint32_t d = 0; d < b.rank; d++) shape[d] = tir_operands(ir, b.shape)[d];
  for (uint32_t d = b.rank; d-- > 1;) {
    int64_t extent = tir_at(ir, shape[d])->imm, more = inside >= LINE ? 1 : LINE / inside;
    bool several = tir_at(ir, shape[d - 1])->imm > 1;
    if (several && extent > 1 && extent * inside % APART == 0) extent += more;
    shape[d] = tir_int(ir, tir_type_of(ir, shape[d]), extent);
    inside = tir_sat_mul(inside, extent);
  }
  tir_buffer_at(ir, buffer)->shape = tir_add_operands(ir, shape, b.rank);
}

bool lower_pad(struct lowering *low) {
  struct tir *ir = low->ir;
  uint8_t *pointers = lower_pointers(ir, low->body);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_buffer buffer = tir_stmt_at(ir, s)->alloc.buffer;
    const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
    int64_t element = tir_type_bits(b->type) * tir_type_lanes(b->type);
    bool lies_so = !pointers[buffer] && !b->data && !b->strides.count && b->rank <= TIR_MOST_RANK;
    if (lies_so && element >= 8 && LINE * 8 % element == 0 && bytes_of(ir, buffer) > WHOLE) pad_rows(ir, buffer);
  }
  free(pointers);
  return true;
}

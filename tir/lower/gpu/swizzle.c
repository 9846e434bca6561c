/* Swizzle: where rows of a shared buffer lie, whose scope ends in TIR_SWIZZLE or in TIR_PANELS.
 * Requires: no blocks; shared allocations as large as they stay. Gives: the scope of such a buffer says how many
 * bytes a row has, and how many there are, from which follows where elements lie. Keeps: everything else: indices
 * count elements as though nothing were exchanged.
 *
 * Threads that load a column of pieces of 16 bytes, as tensor units have them do, meet in banks where rows are a
 * multiple of 128 bytes or a part of it. Rows of 32 bytes or more, of a power of two, exchange their pieces, each
 * row its own way, which takes no memory; rows of other even numbers of pieces get one more when they are compacted
 * (compact.c); odd numbers of pieces meet in no bank. */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

/* The bytes of a row of so many elements, where it is an even number of pieces; else 0. */
static int64_t even_row(const struct tir *ir, tir_buffer buffer, tir_expr elements) {
  int element = tir_type_bits(tir_buffer_at(ir, buffer)->type) / 8;
  int64_t row = tir_is_int(ir, elements) ? tir_at(ir, elements)->imm * element : 0;
  return element >= 1 && row > 0 && row % (2 * TIR_PIECE) == 0 ? row : 0;
}

void lower_spread_rows(struct tir *ir, tir_buffer buffer, tir_expr *shape, uint32_t rank) {
  if (rank < 2 || !tir_requests_rows(ir, buffer, TIR_ROWS_SWIZZLED)) return;
  tir_expr *last = &shape[rank - 1];
  int64_t row = even_row(ir, buffer, *last), element = tir_type_bits(tir_buffer_at(ir, buffer)->type) / 8;
  if ((row & (row - 1)) != 0) *last = tir_int(ir, tir_type_of(ir, *last), (row + TIR_PIECE) / element);
}

static void name_rows(struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  if (n->rank < 2 || n->strides.count) return;
  int64_t row = even_row(ir, buffer, ir->operands.at[n->shape + n->rank - 1]);
  if (!row || (row & (row - 1)) != 0) return;
  assert(row % (2 * TIR_PIECE) == 0 && tir_buffer_memory(ir, buffer) == TIR_BLOCK_MEMORY);
  char scope[64];
  snprintf(scope, sizeof scope, "shared%s.%lld", TIR_SWIZZLE, (long long)row);
  tir_symbol symbol = tir_symbol_of(ir, scope);
  tir_buffer_at(ir, buffer)->scope = symbol;
}

/* The canonical layout has a multiple of eight rows: the exchange is the same in each tile. */
static void name_panels(struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  if (n->rank < 2 || n->strides.count) return;
  int64_t row = even_row(ir, buffer, ir->operands.at[n->shape + n->rank - 1]);
  int64_t rows = row ? (int64_t)tir_allocation_bytes(ir, buffer) / row : 0;
  assert(!row || (int64_t)tir_allocation_bytes(ir, buffer) % row == 0);
  if (!tir_panel_of(row) || rows < 1 || rows % TIR_PANEL_ROWS) return;
  char scope[64];
  snprintf(scope, sizeof scope, "shared%s.%lld.%lld", TIR_PANELS, (long long)row, (long long)rows);
  tir_symbol symbol = tir_symbol_of(ir, scope);
  tir_buffer_at(ir, buffer)->scope = symbol;
}

bool lower_swizzle(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_buffer buffer = tir_stmt_at(ir, s)->alloc.buffer;
    if (tir_requests_rows(ir, buffer, TIR_ROWS_SWIZZLED)) name_rows(ir, buffer);
    if (tir_requests_rows(ir, buffer, TIR_ROWS_CANONICAL)) name_panels(ir, buffer);
  }
  return true;
}

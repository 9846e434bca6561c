/* What of a matrix bulk tensor copies bring, read off the block that copies it before anything is tiled: the rules that
 * draw tiles, and the analytical model, ask here. lower/gpu/pipeline/tma_copy.c does what is promised.
 *
 *   S[m, k] = X[m // 196, m // 14 % 14 + k // 768 - 1, m % 14 + k // 256 % 3 - 1, k % 256]
 *
 * copies pixels: any number of rows, and columns that divide 256, so that none leaves its tap. A matrix that lies by
 * columns has runs of both. */
#include "tir/analysis/analysis.h"
#include "tir/analysis/loads.h"

struct copy {
  const struct tir *ir;
  tir_expr row, column; /* the iterations of the rows and of the columns */
  uint32_t rank;
  int64_t extents[TIR_BOX_MOST_RANK];
  tir_expr index[TIR_BOX_MOST_RANK];
};

/* What is loaded where zeros are not stored instead. */
static tir_expr loaded_by(const struct tir *ir, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  while (tir_is_choice(ir, &n)) {
    const tir_expr *args = tir_operands(ir, n.operands);
    if (!tir_is_zero_bits(ir, args[2])) return TIR_NONE;
    n = *tir_at(ir, e = args[1]);
  }
  return n.kind == TIR_LOAD && !n.a ? e : TIR_NONE;
}

static bool uses(const struct copy *c, tir_expr e, tir_expr iteration) {
  return tir_uses_var(c->ir, e, tir_at(c->ir, iteration)->ref);
}

static bool read_copy(struct copy *c, tir_block block) {
  const struct tir *ir = c->ir;
  tir_stmt store = tir_only_store(ir, block, TIR_BODY);
  tir_expr load = store ? loaded_by(ir, tir_stmt_at(ir, store)->store.value) : TIR_NONE;
  if (!load) return false;
  const struct tir_expr_node *n = tir_at(ir, load);
  const struct tir_buffer_node *from = tir_buffer_at(ir, n->ref),
                               *to = tir_buffer_at(ir, tir_stmt_at(ir, store)->store.buffer);
  const tir_expr *stored = tir_operands(ir, tir_stmt_at(ir, store)->store.indices);
  if (to->rank < 2 || from->rank < 2 || from->rank > TIR_BOX_MOST_RANK || from->type != to->type) return false;
  if (from->strides.count || from->data || tir_buffer_memory(ir, n->ref) != TIR_DEVICE_MEMORY) return false;
  c->row = stored[to->rank - 2], c->column = stored[to->rank - 1], c->rank = from->rank;
  if (tir_at(ir, c->row)->kind != TIR_VAR || tir_at(ir, c->column)->kind != TIR_VAR) return false;
  for (uint32_t d = 0; d < c->rank; d++) {
    tir_expr extent = tir_operands(ir, from->shape)[d];
    if (!tir_is_int(ir, extent) || tir_at(ir, extent)->imm < 1) return false;
    c->extents[d] = tir_at(ir, extent)->imm, c->index[d] = tir_operands(ir, n->operands)[d];
  }
  while (c->rank > 2 && c->extents[c->rank - 1] == 1) c->rank--;
  return true;
}

static int64_t values_of(const struct copy *c, tir_expr iteration) {
  const struct tir_expr_node *n = tir_at(c->ir, iteration);
  return n->hi - n->lo + 1;
}

/* A digit of an iteration: iteration // by % below; below is 0: the whole quotient. Beside it may stand what does not
 * depend on the iteration; *alone: nothing does. */
struct digit {
  int64_t by, below;
};
static bool read_digit(const struct copy *c, tir_expr e, tir_expr iteration, struct digit *out, bool *alone) {
  const struct tir *ir = c->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  if (!uses(c, e, iteration)) return false;
  if (e == iteration) return *out = (struct digit){1, 0}, true;
  if (n.kind == TIR_CAST) return read_digit(c, n.a, iteration, out, alone);
  if (n.kind == TIR_ADD || n.kind == TIR_SUB) {
    bool first = uses(c, n.a, iteration);
    *alone = false;
    if (first ? uses(c, n.b, iteration) : n.kind == TIR_SUB) return false;
    return read_digit(c, first ? n.a : n.b, iteration, out, alone);
  }
  if ((n.kind != TIR_FLOORDIV && n.kind != TIR_FLOORMOD) || !tir_is_int(ir, n.b)) return false;
  int64_t by = tir_at(ir, n.b)->imm;
  bool whole = true;
  if (by < 1 || !read_digit(c, n.a, iteration, out, &whole) || !whole || (out->below && out->below % by)) return false;
  if (n.kind == TIR_FLOORMOD) return out->below = by, true;
  return out->by *= by, out->below /= by, true;
}

/* How many columns lie side by side in memory, from multiples of as many on: in the last dimension, or in several that
 * are one in memory, since nothing leaves the inner ones. 0: none do. */
static int64_t columns_of(const struct copy *c, int64_t bytes) {
  int64_t run = 1, row = 1;
  for (uint32_t d = c->rank; d-- > 0;) {
    struct digit digit;
    bool alone = true;
    if (!read_digit(c, c->index[d], c->column, &digit, &alone) || digit.by != run || (!alone && run > 1)) break;
    row *= c->extents[d], run = digit.below ? run * digit.below : values_of(c, c->column);
    if (!alone || digit.below != c->extents[d]) break;
  }
  return run > 1 && row * bytes % TIR_BOX_ALIGNMENT == 0 ? run : 0;
}

/* How many rows follow one another, from multiples of as many on. Pixels, and rows that lie one behind the other in
 * several dimensions, all do. */
static int64_t rows_of(const struct copy *c) {
  bool pixels = c->rank > 2 && !uses(c, c->index[c->rank - 1], c->row);
  for (uint32_t d = 0; d < c->rank; d++) {
    struct digit digit;
    bool alone = true;
    if (pixels && uses(c, c->index[d], c->row)) return values_of(c, c->row);
    if (!read_digit(c, c->index[d], c->row, &digit, &alone) || digit.by != 1) continue;
    return digit.below ? digit.below : values_of(c, c->row);
  }
  return 0;
}

struct tir_copy_tile tir_copy_tile_of(const struct tir *ir, tir_block block) {
  struct copy c = {.ir = ir};
  struct tir_copy_tile none = {0, 0};
  if (!read_copy(&c, block)) return none;
  tir_buffer to = tir_stmt_at(ir, tir_only_store(ir, block, TIR_BODY))->store.buffer;
  struct tir_copy_tile tile = {rows_of(&c), columns_of(&c, tir_type_bits(tir_buffer_at(ir, to)->type) / 8)};
  return tile.rows && tile.columns ? tile : none;
}

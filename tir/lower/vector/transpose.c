/* Transpositions: a copy that reads along one loop and writes along another is done square by square, in registers.
 *
 *   for i in 64: for k in 64: B[k, i] = A[i, k]     becomes     for i, k in grid(4, 4): T.attr(0, "instruction",
 *       T.transpose_16x32(B[…], …, A[…], …)):
 *         for ii, kk in grid(16, 16): B[16 k + kk, 16 i + ii] = A[16 i + ii, 16 k + kk]
 *
 * Requires: no blocks; conditions that can be cut off are. Gives: instructions around whole squares of two loops that
 * are the innermost and hold one store, where the target has such; what the squares leave over is in loops of its own.
 * Keeps: what is stored, in another order: no element is stored twice in the two loops, or read from what is written.
 * A copy that puts neighbours of few rows side by side, as dot products take them (dots.c), or as an image of few
 * channels has them last, goes piece by piece, too:
 *
 *   for i in 64: for p in 4: B[i, p] = A[p, i]     becomes     for i in 4: T.attr(0, "instruction",
 *       T.interleave_4x8(B[…], …, A[…], …)): for ii in 16: for p in 4: B[16 i + ii, p] = A[p, 16 i + ii]
 * Where groups of neighbours stay together, as tiles of AMX have the operand of the columns that lies by rows of what
 * is summed, groups change places, of 32 bits each:
 *
 *   for i in 64: for k in 64: B[i // 16, k // 4, i % 16, k % 4] = A[i, k]     becomes     for i in 4: T.attr(0,
 *       "instruction", T.transpose_16x32(B[…], …, A[…], …)): for ii, kk, p in grid(16, 16, 4): B[i, kk, ii, p] = …
 * Source: Eklundh, "A fast computer method for matrix transposing", 1972. */
#include "tir/lower/lower.h"

#include <string.h>

struct copy {
  tir_stmt outer, inner, store;
  enum tir_instruction by;
};

/* The target's instruction for elements of so many bits; TIR_INSTRUCTIONS: it has none. */
static enum tir_instruction instruction_for(const struct lowering *low, int bits) {
  for (int i = 0; low->options && i < TIR_INSTRUCTIONS; i++) {
    enum tir_instruction which = (enum tir_instruction)i;
    if (tir_transposition_of(which).bits == bits && low->options->instructions >> i & 1) return which;
  }
  return TIR_INSTRUCTIONS;
}

static bool is_plain(const struct tir *ir, tir_stmt loop) {
  if (!tir_is(ir, loop, TIR_LOOP)) return false;
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  bool kind = n->loop_kind == TIR_SERIAL || n->loop_kind == TIR_VECTORIZED || n->loop_kind == TIR_UNROLLED;
  return kind && tir_loop_extent(ir, loop) > 0 && tir_is_int(ir, n->loop.min);
}

static bool is_in_vector(const struct tir *ir, tir_stmt s) {
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && tir_stmt_at(ir, p)->loop_kind == TIR_VECTORIZED) return true;
  return false;
}

/* As lower_find_step, of a sum that has other parts too, which depend neither on v nor on memory. */
static bool find_own_step(struct tir *ir, tir_expr e, tir_var v, int64_t *step) {
  struct tir_linear l = tir_linear_of(ir, e);
  *step = 0;
  for (uint32_t t = 0; t < l.count; t++) {
    struct tir_term term = tir_terms(ir, l)[t];
    const struct tir_expr_node *atom = tir_at(ir, term.atom);
    if (atom->kind == TIR_VAR && atom->ref == v) *step = term.coefficient;
    if (atom->kind != TIR_VAR && ((atom->flags & (TIR_HAS_LOAD | TIR_HAS_CALL)) || tir_uses_var(ir, term.atom, v)))
      return false;
  }
  return true;
}

/* An access moves by one element along `near`, and along `far` in other dimensions alone, in which it does not along
 * `near`. */
static bool moves_along(struct tir *ir, const tir_expr *indices, uint32_t rank, tir_var near, tir_var far) {
  bool moves = false;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t a, b;
    if (!find_own_step(ir, indices[d], near, &a) || !find_own_step(ir, indices[d], far, &b)) return false;
    if (d + 1 == rank ? a != 1 || b : a != 0) return false;
    moves |= b != 0;
  }
  return moves;
}

static tir_var var_of(const struct tir *ir, tir_stmt loop) { return tir_as(ir, loop, TIR_LOOP)->loop.var; }

/* A store of an element of another buffer that is all there is in two loops. */
enum { MOST_DIMENSIONS = 8 };
struct element {
  tir_stmt outer, inner;
  tir_buffer to;
  int bits;
  uint32_t rank, count; /* indices that are written, and read */
  tir_expr written[MOST_DIMENSIONS], read[MOST_DIMENSIONS];
};

static bool read_element(const struct lowering *low, tir_stmt store, struct element *out) {
  const struct tir *ir = low->ir;
  const struct tir_stmt_node s = *tir_stmt_at(ir, store);
  const struct tir_expr_node load = *tir_at(ir, s.store.value);
  tir_buffer to = s.store.buffer, from = load.kind == TIR_LOAD ? load.ref : TIR_NONE;
  if (!from || load.a || s.store.predicate || from == to || tir_type_lanes(load.type) != 1) return false;
  uint32_t rank = tir_buffer_at(ir, to)->rank;
  if (rank < 2 || rank > MOST_DIMENSIONS || load.count < 2 || load.count > MOST_DIMENSIONS) return false;
  tir_stmt inner = s.parent, outer = inner ? tir_stmt_at(ir, inner)->parent : TIR_NONE;
  if (!outer || !is_plain(ir, inner) || !is_plain(ir, outer) || tir_only_child(ir, inner) != store ||
      tir_only_child(ir, outer) != inner || is_in_vector(ir, outer))
    return false;
  *out = (struct element){outer, inner, to, tir_type_bits(load.type), rank, load.count, {0}, {0}};
  memcpy(out->written, tir_operands(ir, s.store.indices), rank * sizeof *out->written);
  memcpy(out->read, tir_operands(ir, load.operands), load.count * sizeof *out->read);
  return true;
}

/* Whether the store, of an element of another buffer, is a transposition of the two loops around it. */
static bool find_copy(const struct lowering *low, tir_stmt store, struct copy *out) {
  struct tir *ir = low->ir;
  struct element e;
  if (!read_element(low, store, &e)) return false;
  enum tir_instruction by = instruction_for(low, e.bits);
  int64_t side = tir_transposition_of(by).side;
  if (!side || tir_loop_extent(ir, e.outer) < side || tir_loop_extent(ir, e.inner) < side) return false;
  tir_var a = var_of(ir, e.outer), b = var_of(ir, e.inner);
  bool across = moves_along(ir, e.written, e.rank, a, b) && moves_along(ir, e.read, e.count, b, a);
  bool along = moves_along(ir, e.written, e.rank, b, a) && moves_along(ir, e.read, e.count, a, b);
  *out = (struct copy){e.outer, e.inner, store, by};
  return across || along;
}

/* A copy of the nest that runs so much of its two loops, put after `at`. */
static struct copy part_of(struct tir *ir, struct copy c, tir_stmt at, const int64_t outer[2], const int64_t inner[2]) {
  tir_stmt nest = lower_part_of(ir, c.outer, outer[0], outer[1]);
  tir_stmt whole = tir_only_child(ir, nest), part = lower_part_of(ir, whole, inner[0], inner[1]);
  tir_insert_after(ir, whole, part);
  tir_kill(ir, whole);
  tir_insert_after(ir, at, nest);
  return (struct copy){nest, part, tir_only_child(ir, part), c.by};
}

/* Cuts a nest into whole squares, which it gives, and what is left of its two loops. */
static struct copy cut_squares(struct tir *ir, struct copy c) {
  int64_t rows = tir_loop_extent(ir, c.outer), columns = tir_loop_extent(ir, c.inner);
  int64_t first = tir_at(ir, tir_as(ir, c.outer, TIR_LOOP)->loop.min)->imm;
  int64_t left = tir_at(ir, tir_as(ir, c.inner, TIR_LOOP)->loop.min)->imm;
  int64_t side = tir_transposition_of(c.by).side, more_rows = rows % side, more_columns = columns % side;
  assert(rows >= side && columns >= side && side > 1);
  if (!more_rows && !more_columns) return c;
  int64_t outer[] = {first, rows - more_rows}, inner[] = {left, columns - more_columns};
  struct copy squares = part_of(ir, c, c.outer, outer, inner);
  if (more_rows) part_of(ir, c, squares.outer, (int64_t[]){first + outer[1], more_rows}, (int64_t[]){left, columns});
  if (more_columns) part_of(ir, c, squares.outer, outer, (int64_t[]){left + inner[1], more_columns});
  tir_kill(ir, c.outer);
  return squares;
}

/* The address of the element that an access of the square has `a` and `b` iterations from its first. */
static tir_expr address(struct tir *ir, tir_expr element, tir_var var_a, int64_t a, tir_var var_b, int64_t b) {
  tir_subst_var(ir, var_a, tir_int(ir, ir->vars.at[var_a].type, a));
  tir_subst_var(ir, var_b, tir_int(ir, ir->vars.at[var_b].type, b));
  tir_expr at = tir_subst(ir, element);
  tir_subst_clear(ir);
  return tir_call(ir, TIR_T_HANDLE, tir_symbol_of(ir, "address_of"), &at, 1);
}

/* outer, inner: loops of a square, or of a piece that interleaves. Names the instruction that does what is below. */
static void name_instruction(struct tir *ir, struct copy c) {
  tir_stmt outer = c.outer, inner = c.inner, store = c.store;
  tir_expr load = tir_as(ir, store, TIR_STORE)->store.value;
  tir_buffer to = tir_as(ir, store, TIR_STORE)->store.buffer;
  uint32_t rank = tir_buffer_at(ir, to)->rank;
  tir_expr element = tir_load(ir, to, tir_operands(ir, tir_as(ir, store, TIR_STORE)->store.indices), rank, TIR_NONE);
  tir_var a = var_of(ir, outer), b = var_of(ir, inner);
  int64_t step;
  tir_expr last = tir_operands(ir, tir_as(ir, store, TIR_STORE)->store.indices)[rank - 1];
  bool along = find_own_step(ir, last, b, &step) && step == 1; /* what is written lies along the inner loop */
  assert(rank > 1);
  if (!along) a = var_of(ir, inner), b = var_of(ir, outer);
  tir_expr args[] = {address(ir, element, a, 0, b, 0), address(ir, element, a, 1, b, 0),
                     address(ir, element, a, 0, b, 1), address(ir, load, a, 0, b, 0),
                     address(ir, load, a, 0, b, 1),    address(ir, load, a, 1, b, 0)};
  tir_expr call =
      tir_call(ir, TIR_T_I32, tir_symbol_of(ir, tir_instruction_name(c.by)), args, sizeof args / sizeof *args);
  lower_wrap_in_attr(ir, outer, TIR_INSTRUCTION, call);
}

static void take_squares(struct tir *ir, struct copy c) {
  int64_t side = tir_transposition_of(c.by).side;
  lower_split_loop(ir, c.outer, side, TIR_SERIAL);
  lower_split_loop(ir, c.inner, side, TIR_SERIAL);
  /* outer, its part, inner, its part: the parts go below both. */
  tir_stmt part = tir_only_child(ir, c.outer);
  assert(part && tir_only_child(ir, part) == c.inner);
  tir_move_children(ir, part, TIR_BODY, c.outer, TIR_BODY);
  tir_detach(ir, part);
  tir_stmt below = tir_only_child(ir, c.inner);
  tir_wrap(ir, below, part);
  tir_stmt_at(ir, c.outer)->loop_kind = tir_stmt_at(ir, c.inner)->loop_kind = TIR_SERIAL;
  name_instruction(ir, (struct copy){part, below, c.store, c.by});
}

/* ---- Interleaving ---- */

enum { INTERLEAVED = 16, VECTOR_BITS = 512 }; /* columns of a piece; bits of a row of a wide piece */

/* Columns of the piece that such an instruction interleaves. */
static int64_t columns_of(enum tir_instruction by) {
  if (by == TIR_INTERLEAVE_4X8_BY_64) return VECTOR_BITS / 8;
  return by == TIR_INTERLEAVE_2X16_BY_32 ? VECTOR_BITS / 16 : INTERLEAVED;
}

/* By what a loop over so many columns of so many rows is interleaved: by wide pieces where these leave nothing over;
 * TIR_INSTRUCTIONS: there is none. */
static enum tir_instruction interleaving_for(const struct lowering *low, int bits, int64_t rows, int64_t columns) {
  if (bits == 32 && rows >= 2 && rows <= 4) return (enum tir_instruction)(TIR_INTERLEAVE_2X32 + rows - 2);
  if (bits == 8 && rows == 2) return TIR_INTERLEAVE_2X8;
  if ((bits != 8 && bits != 16) || rows != 32 / bits) return TIR_INSTRUCTIONS;
  enum tir_instruction wide = bits == 8 ? TIR_INTERLEAVE_4X8_BY_64 : TIR_INTERLEAVE_2X16_BY_32;
  bool offered = low->options && low->options->instructions >> wide & 1;
  if (offered && columns % columns_of(wide) == 0) return wide;
  return bits == 8 ? TIR_INTERLEAVE_4X8 : TIR_INTERLEAVE_2X16;
}

/* Whether an access moves by one element along a loop in this dimension, in no other, and in that along the other loop
 * not. */
static bool moves_in(struct tir *ir, const tir_expr *indices, uint32_t rank, uint32_t dimension, tir_var v,
                     tir_var other) {
  for (uint32_t d = 0; d < rank; d++) {
    int64_t own, its;
    if (!find_own_step(ir, indices[d], v, &own) || !find_own_step(ir, indices[d], other, &its)) return false;
    if (own != (d == dimension) || (d == dimension && its)) return false;
  }
  return true;
}

/* Whether the store, of an element of another buffer, puts elements of few rows side by side. */
static bool find_interleaving(const struct lowering *low, tir_stmt store, struct copy *out) {
  struct tir *ir = low->ir;
  struct element e;
  if (!read_element(low, store, &e)) return false;
  int64_t side = tir_loop_extent(ir, e.inner);
  enum tir_instruction by = interleaving_for(low, e.bits, side, tir_loop_extent(ir, e.outer));
  if (by == TIR_INSTRUCTIONS || !(low->options && low->options->instructions >> by & 1)) return false;
  tir_expr row = ir->operands.at[tir_buffer_at(ir, e.to)->shape + e.rank - 1];
  tir_var column = var_of(ir, e.outer), neighbour = var_of(ir, e.inner);
  *out = (struct copy){e.outer, e.inner, store, by};
  return tir_loop_extent(ir, e.outer) >= INTERLEAVED && tir_is_const(ir, row, side) &&
         !tir_buffer_at(ir, e.to)->strides.count && tir_is_const(ir, tir_as(ir, e.inner, TIR_LOOP)->loop.min, 0) &&
         moves_in(ir, e.written, e.rank, e.rank - 1, neighbour, column) &&
         moves_in(ir, e.written, e.rank, e.rank - 2, column, neighbour) &&
         moves_in(ir, e.read, e.count, e.count - 1, column, neighbour);
}

/* Where the last index of a store is the remainder of a loop's variable, and nothing but loops stands between: the loop
 * is split there, and the remainder goes innermost. */
static void sink_remainder(const struct lowering *low, tir_stmt store) {
  struct tir *ir = low->ir;
  const struct tir_stmt_node s = *tir_stmt_at(ir, store);
  uint32_t rank = tir_buffer_at(ir, s.store.buffer)->rank;
  const struct tir_expr_node *load = tir_at(ir, s.store.value);
  if (rank < 2 || load->kind != TIR_LOAD || load->ref == s.store.buffer) return;
  int bits = tir_type_bits(load->type);
  const struct tir_expr_node *last = tir_at(ir, ir->operands.at[s.store.indices + rank - 1]);
  if ((bits != 8 && bits != 16) || last->kind != TIR_FLOORMOD) return;
  bool pairs = bits == 8 && low->options && low->options->instructions >> TIR_INTERLEAVE_2X8 & 1;
  int64_t size = pairs && tir_is_const(ir, last->b, 2) ? 2 : 32 / bits;
  if (!tir_is_const(ir, last->b, size)) return;
  tir_expr remainder = last->a;
  tir_stmt child = store, loop = s.parent;
  while (loop && is_plain(ir, loop) && tir_only_child(ir, loop) == child &&
         tir_var_expr(ir, var_of(ir, loop)) != remainder)
    child = loop, loop = tir_stmt_at(ir, loop)->parent;
  if (!loop || child == store || !is_plain(ir, loop) || tir_only_child(ir, loop) != child) return;
  int64_t first = tir_at(ir, tir_as(ir, loop, TIR_LOOP)->loop.min)->imm;
  if (tir_var_expr(ir, var_of(ir, loop)) != remainder || first || tir_loop_extent(ir, loop) % size) return;
  lower_split_loop(ir, loop, size, TIR_SERIAL);
  tir_stmt part = tir_only_child(ir, loop);
  tir_move_children(ir, part, TIR_BODY, loop, TIR_BODY);
  tir_detach(ir, part);
  tir_wrap(ir, store, part);
}

/* ---- Squares of groups ---- */

/* Whether an index is the loop's variable divided by so much, or the remainder of that; something may be added that
 * divides. */
static bool is_part(struct tir *ir, tir_expr index, bool remainder, tir_var v, int64_t by) {
  const struct tir_expr_node n = *tir_at(ir, index);
  int64_t step;
  return n.kind == (remainder ? TIR_FLOORMOD : TIR_FLOORDIV) && tir_is_const(ir, n.b, by) &&
         find_own_step(ir, n.a, v, &step) && step == 1;
}

/* Whether the store is a transposition of groups of its two loops, of whole squares. */
static bool find_groups(const struct lowering *low, tir_stmt store, struct copy *out) {
  struct tir *ir = low->ir;
  struct element e;
  if (!read_element(low, store, &e) || (e.bits != 8 && e.bits != 16) || e.rank < 4) return false;
  enum tir_instruction by = TIR_TRANSPOSE_16X32;
  int64_t size = 32 / e.bits, row, column;
  tir_var a = var_of(ir, e.outer), b = var_of(ir, e.inner);
  const tir_expr *last = e.written + e.rank - 4, *at = e.read + e.count - 1;
  *out = (struct copy){e.outer, e.inner, store, by};
  if (!(low->options && low->options->instructions >> by & 1) || tir_buffer_at(ir, e.to)->strides.count) return false;
  if (tir_loop_extent(ir, e.outer) % INTERLEAVED || tir_loop_extent(ir, e.inner) % (INTERLEAVED * size)) return false;
  if (!tir_is_const(ir, ir->operands.at[tir_buffer_at(ir, e.to)->shape + e.rank - 1], size)) return false;
  for (uint32_t d = 0; d + 1 < e.count; d++) /* of what is read, the inner loop moves the last index alone */
    if (!find_own_step(ir, e.read[d], b, &column) || column || !find_own_step(ir, e.read[d], a, &row)) return false;
  return find_own_step(ir, *at, b, &column) && column == 1 && find_own_step(ir, *at, a, &row) && !row &&
         is_part(ir, last[0], false, a, INTERLEAVED) && is_part(ir, last[1], false, b, size) &&
         is_part(ir, last[2], true, a, INTERLEAVED) && is_part(ir, last[3], true, b, size);
}

/* The instruction around a square of groups, of which one loop goes over the rows that are written, the other one over
 * those that are read. */
static void name_groups(struct tir *ir, struct copy c, tir_stmt written, tir_stmt read, tir_stmt group, tir_stmt top) {
  tir_var p = var_of(ir, group), n = var_of(ir, read), k = var_of(ir, written);
  tir_expr load = tir_as(ir, c.store, TIR_STORE)->store.value;
  tir_buffer to = tir_as(ir, c.store, TIR_STORE)->store.buffer;
  tir_expr element = tir_load(ir, to, tir_operands(ir, tir_as(ir, c.store, TIR_STORE)->store.indices),
                              tir_buffer_at(ir, to)->rank, TIR_NONE);
  tir_expr ends[2] = {element, load}, args[6];
  for (int i = 0; i < 2; i++) {
    tir_subst_var(ir, p, tir_int(ir, ir->vars.at[p].type, 0));
    tir_expr first = tir_subst(ir, ends[i]);
    tir_subst_clear(ir);
    args[3 * i] = address(ir, first, n, 0, k, 0);
    args[3 * i + 1] = address(ir, first, n, i, k, !i); /* the next row */
    args[3 * i + 2] = address(ir, first, n, !i, k, i);
  }
  tir_expr call = tir_call(ir, TIR_T_I32, tir_symbol_of(ir, tir_instruction_name(c.by)), args, 6);
  lower_wrap_in_attr(ir, top, TIR_INSTRUCTION, call);
}

static void take_groups(struct tir *ir, struct copy c) {
  tir_type type = tir_type_of(ir, tir_as(ir, c.store, TIR_STORE)->store.value);
  int64_t size = 32 / tir_type_bits(type);
  lower_split_loop(ir, c.inner, INTERLEAVED * size, TIR_SERIAL);
  tir_stmt part = tir_only_child(ir, c.inner);
  lower_split_loop(ir, c.outer, INTERLEAVED, TIR_SERIAL);
  lower_split_loop(ir, part, size, TIR_SERIAL);
  /* outer, its part, inner, its part, a group: the outer one's part goes below inner. */
  tir_stmt own = tir_only_child(ir, c.outer);
  tir_move_children(ir, own, TIR_BODY, c.outer, TIR_BODY);
  tir_detach(ir, own);
  tir_wrap(ir, part, own);
  tir_stmt_at(ir, c.outer)->loop_kind = tir_stmt_at(ir, c.inner)->loop_kind = TIR_SERIAL;
  name_groups(ir, c, part, own, tir_only_child(ir, part), own);
}

/* Whether indices move so along a loop: by `last` in the last dimension, by `before` in the one before it, and nowhere
 * else. */
static bool moves_by(struct tir *ir, const tir_expr *indices, uint32_t rank, tir_var v, int64_t last, int64_t before) {
  for (uint32_t d = 0; d < rank; d++) {
    int64_t step, want = d + 1 == rank ? last : d + 2 == rank ? before : 0;
    if (!find_own_step(ir, indices[d], v, &step) || step != want) return false;
  }
  return true;
}

static bool is_square_loop(const struct tir *ir, tir_stmt loop, int64_t extent) {
  return is_plain(ir, loop) && tir_loop_extent(ir, loop) == extent &&
         tir_is_const(ir, tir_as(ir, loop, TIR_LOOP)->loop.min, 0);
}

/* Whether the store, in the innermost of three loops, transposes a square of groups along that; `out` holds the other
 * two. */
static bool find_group_square(const struct lowering *low, tir_stmt store, struct copy *out) {
  struct tir *ir = low->ir;
  struct element e;
  if (!read_element(low, store, &e) || (e.bits != 8 && e.bits != 16)) return false;
  int64_t size = 32 / e.bits, step;
  tir_stmt rows = tir_stmt_at(ir, e.outer)->parent;
  tir_buffer from = tir_at(ir, tir_as(ir, store, TIR_STORE)->store.value)->ref;
  *out = (struct copy){rows, e.outer, store, TIR_TRANSPOSE_16X32};
  if (!(low->options && low->options->instructions >> out->by & 1) || !rows || tir_only_child(ir, rows) != e.outer)
    return false;
  if (!is_square_loop(ir, rows, INTERLEAVED) || !is_square_loop(ir, e.outer, INTERLEAVED) ||
      !is_square_loop(ir, e.inner, size) || is_in_vector(ir, rows))
    return false;
  if (tir_buffer_at(ir, e.to)->strides.count || tir_buffer_at(ir, from)->strides.count ||
      !tir_is_const(ir, ir->operands.at[tir_buffer_at(ir, from)->shape + e.count - 1], size))
    return false;
  tir_var a = var_of(ir, rows), b = var_of(ir, e.outer), p = var_of(ir, e.inner);
  for (uint32_t d = 0; d < e.count; d++) /* what is read moves along b in other dimensions alone */
    if (!find_own_step(ir, e.read[d], b, &step) || (d + 2 >= e.count && step)) return false;
  for (uint32_t d = 0; d < e.rank; d++) /* and what is written along a */
    if (!find_own_step(ir, e.written[d], a, &step) || (d + 1 == e.rank && step)) return false;
  return moves_by(ir, e.written, e.rank, p, 1, 0) && moves_by(ir, e.written, e.rank, b, size, 0) &&
         moves_by(ir, e.read, e.count, p, 1, 0) && moves_by(ir, e.read, e.count, a, 0, 1);
}

static void take_pieces(struct tir *ir, struct copy c) {
  int64_t columns = tir_loop_extent(ir, c.outer), piece = columns_of(c.by), more = columns % piece;
  int64_t first = tir_at(ir, tir_as(ir, c.outer, TIR_LOOP)->loop.min)->imm;
  if (more) {
    tir_stmt whole = lower_part_of(ir, c.outer, first, columns - more);
    tir_insert_after(ir, c.outer, lower_part_of(ir, c.outer, first + columns - more, more));
    tir_insert_after(ir, c.outer, whole);
    tir_kill(ir, c.outer);
    c.outer = whole, c.inner = tir_only_child(ir, whole), c.store = tir_only_child(ir, c.inner);
  }
  lower_split_loop(ir, c.outer, piece, TIR_SERIAL);
  tir_stmt_at(ir, c.outer)->loop_kind = tir_stmt_at(ir, c.inner)->loop_kind = TIR_SERIAL;
  name_instruction(ir, (struct copy){tir_only_child(ir, c.outer), c.inner, c.store, c.by});
}

bool lower_transpose(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    struct copy c;
    next = tir_next(ir, s, low->body);
    if (tir_instruction_of(ir, s) != TIR_INSTRUCTIONS) next = tir_after(ir, s, low->body);
    if (!tir_is(ir, s, TIR_STORE)) continue;
    if (find_groups(low, s, &c)) {
      take_groups(ir, c);
      continue;
    }
    if (find_group_square(low, s, &c)) {
      name_groups(ir, c, c.outer, c.inner, tir_only_child(ir, c.inner), c.outer);
      continue;
    }
    sink_remainder(low, s);
    if (find_copy(low, s, &c))
      take_squares(ir, cut_squares(ir, c));
    else if (find_interleaving(low, s, &c))
      take_pieces(ir, c);
  }
  return true;
}

/* Rows: what is done element by element with fragments of 16 x 16 products, row by row, is each lane's work on what it
 * holds, and elements that are one a row are held by the four lanes that share the row.
 *
 *   for i in 16 * r:                      in each lane t of 32:
 *     M[i] = low                          for q in 2 * r:
 *     for j in 16 * c:                      M[q] = low
 *       M[i] = max(M[i], C[i, j])           for p in 2 * c, v in 2: M[q] = max(M[q], mma_get(C, …))
 *                                           for d in 1, 2: M[q] = max(M[q], shuffle(M[q], d))
 *
 * Lane t holds of row 8 * q + t / 4 the columns 8 * p + t % 4 * 2 + v (tir_mma_place): of accumulators, and of operand
 * a where its elements have 16 bits, so that one becomes the other without another lane. Of a warp group, whose
 * fragments wgmma multiplies, warp w holds so 16 of 64 rows, from 16 * w on (tir_wgmma_place); there also of an operand
 * a of 8 bits, whose elements are put by pairs, v = 0 and 1 at once.
 *
 * Requires: no blocks; rows are of loops of constant extents, multiples of 8 (of a warp group, of 64), columns of such
 *           loops in them, multiples of 8; what is reduced along columns begins, before the loop of these, with a
 *           constant (a sum with 0). Loops of other numbers of rows, and conditions, which load nothing, hold stores to
 *           memory alone.
 * Gives:    elements of fragments that calls touch are touched by mma_get and mma_put, or wgmma_get and wgmma_put;
 *           loops around that choose one of several matrices of fragments are unrolled;
 *           fragments that no call touches, and buffers of scope mma.rows or wgmma.rows, are each lane's own memory.
 *           What is stored to memory once a row, the first of the four lanes stores.
 * Keeps:    everything else. An access that is not shown to be of this form is refused.
 * Source: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", "Register Fragments for
 * wgmma.mma_async.m64nNk16"; Dao, "FlashAttention-2", 2023. */
#include "tir/analysis/access.h"
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

enum { GROUP_ROWS = 8, LANES_A_ROW = 4, PAIR = 2, GROUP_COLUMNS = LANES_A_ROW * PAIR, HELD = 8, SIDE = TIR_MMA_SIDE };

/* Facts of the function: a byte for each buffer. */
struct rows {
  struct tir *ir;
  uint8_t *pointers; /* calls touch the buffer */
  uint8_t *touched;  /* elements of it are touched */
  int32_t *widths;   /* columns of a fragment of it, where calls of warp groups say */
  bool any, group;   /* elements are touched; of fragments of warp groups */
  tir_buffer lost;   /* one of which an access is not of this form; TIR_NONE: there is none */
};

/* The loops that make row and column of an access, and the rest of its indices. */
struct place {
  tir_stmt row_loop, column_loop; /* column_loop: TIR_NONE for what is one a row */
  tir_expr row, column;           /* at the first of these loops' iterations */
};

static tir_expr number(struct tir *ir, int64_t n) { return tir_int(ir, TIR_T_I32, n); }

static bool is_of_rows(const struct tir *ir, tir_buffer b) {
  enum tir_memory_scope scope = tir_memory_scope_of(ir, b);
  return scope == TIR_SCOPE_MMA_ROWS || scope == TIR_SCOPE_WGMMA_ROWS;
}

static bool is_held(const struct tir *ir, tir_buffer b) {
  enum tir_mma_operand operand;
  return is_of_rows(ir, b) || tir_is_group_fragment(ir, b) ||
         (tir_mma_operand_of(ir, b, &operand) && operand != TIR_MMA_B);
}

/* It holds an operand a; else accumulators. */
static bool is_operand(const struct tir *ir, tir_buffer b) {
  enum tir_memory_scope scope = tir_memory_scope_of(ir, b);
  return scope == TIR_SCOPE_MMA_A || scope == TIR_SCOPE_WGMMA_A;
}

/* An operand a of floats of 8 bits. */
static bool is_of_bytes(const struct tir *ir, tir_buffer b) {
  return is_operand(ir, b) && tir_type_is_byte(tir_buffer_at(ir, b)->type);
}

/* Rows of which each thread that holds them has as many as any other. */
static int64_t even_rows(bool group) { return group ? TIR_WGMMA_ROWS : GROUP_ROWS; }
/* Rows for each that a thread holds. */
static int64_t rows_for_one(bool group) { return group ? GROUP_ROWS * TIR_GROUP / TIR_WARP : GROUP_ROWS; }

static tir_var var_of(const struct tir *ir, tir_stmt loop) { return tir_as(ir, loop, TIR_LOOP)->loop.var; }

static tir_expr at_first(struct tir *ir, tir_expr e, tir_var v) {
  tir_subst_var(ir, v, tir_int(ir, ir->vars.at[v].type, 0));
  e = tir_subst(ir, e);
  tir_subst_clear(ir);
  return e;
}

/* The loop around s whose variable is added to the index, over whole groups, or also a part of one: of the rest, which
 * is put in *first, only multiples of a group are left. TIR_NONE: there is none. */
static tir_stmt loop_of_index(struct tir *ir, tir_stmt s, tir_expr index, int64_t group, bool part, tir_expr *first) {
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP) || !tir_uses_var(ir, index, var_of(ir, p))) continue;
    int kind = tir_stmt_at(ir, p)->loop_kind;
    tir_expr var = tir_var_expr(ir, var_of(ir, p)), rest = at_first(ir, index, var_of(ir, p));
    bool plain = kind == TIR_SERIAL || kind == TIR_UNROLLED || kind == TIR_VECTORIZED;
    if (!plain || tir_loop_extent(ir, p) <= 0 || (tir_loop_extent(ir, p) % group && !part)) continue;
    if (!tir_is_const(ir, tir_as(ir, p, TIR_LOOP)->loop.min, 0)) continue;
    int64_t modulus, remainder;
    tir_modular(ir, rest, &modulus, &remainder);
    if (modulus % group || remainder % group || !tir_prove_equal(ir, index, tir_add(ir, rest, var))) continue;
    *first = rest;
    return p;
  }
  return TIR_NONE;
}

/* Elements of fragments that calls touch are numbered: matrices of whole fragments, one after the other. */
static bool is_numbered(const struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  bool group = tir_is_group_fragment(ir, buffer), operand = is_operand(ir, buffer);
  bool sized =
      operand ? tir_type_bits(b->type) == 16 || (group && is_of_bytes(ir, buffer)) : tir_type_bits(b->type) == 32;
  bool known = b->rank >= 2 && !b->strides.count && !b->elem_offset && sized;
  for (uint32_t d = 0; d < b->rank && known; d++) {
    tir_expr extent = ir->operands.at[b->shape + d];
    int64_t side = d + 2 == b->rank && group ? TIR_WGMMA_ROWS : SIDE;
    known = tir_is_int(ir, extent) && (d + 2 < b->rank || tir_at(ir, extent)->imm % side == 0);
  }
  return known;
}

/* Rows and columns are of one matrix: what chooses it depends on no loop of theirs. */
static bool is_of_one(const struct tir *ir, const struct access *a, const struct place *p) {
  for (uint32_t d = 0; d + 2 < a->count; d++)
    if (tir_uses_var(ir, a->indices[d], var_of(ir, p->row_loop)) ||
        tir_uses_var(ir, a->indices[d], var_of(ir, p->column_loop)))
      return false;
  return true;
}

static bool find_place(struct rows *r, tir_stmt s, const struct access *a, struct place *out) {
  struct tir *ir = r->ir;
  bool of_rows = is_of_rows(ir, a->buffer);
  const struct tir_buffer_node *b = tir_buffer_at(ir, a->buffer);
  if (b->strides.count || b->elem_offset || a->count < (of_rows ? 1u : 2u)) return false;
  if (r->pointers[a->buffer] && (of_rows || !is_numbered(ir, a->buffer))) return false;
  *out = (struct place){TIR_NONE, TIR_NONE, TIR_NONE, TIR_NONE};
  tir_expr row = a->indices[a->count - (of_rows ? 1 : 2)];
  out->row_loop = loop_of_index(ir, s, row, even_rows(tir_is_group_fragment(ir, a->buffer)), true, &out->row);
  if (out->row_loop && !of_rows)
    out->column_loop = loop_of_index(ir, s, a->indices[a->count - 1], GROUP_COLUMNS, false, &out->column);
  if (!out->row_loop || of_rows) return out->row_loop;
  return out->column_loop && tir_is_below(ir, out->column_loop, out->row_loop) && is_of_one(ir, a, out);
}

/* ---- What is asked of a nest ---- */

/* The operation of the reduction along columns that the store is a step of; -1: it is none. */
static int reduction_of(const struct tir *ir, tir_stmt store) {
  const struct tir_stmt_node *n = tir_as(ir, store, TIR_STORE);
  const struct tir_expr_node *value = tir_at(ir, n->store.value);
  if (value->kind != TIR_ADD && value->kind != TIR_MAX && value->kind != TIR_MIN) return -1;
  const struct tir_expr_node *sides[] = {tir_at(ir, value->a), tir_at(ir, value->b)};
  uint32_t rank = tir_buffer_at(ir, n->store.buffer)->rank;
  for (int k = 0; k < 2; k++)
    if (sides[k]->kind == TIR_LOAD && sides[k]->ref == n->store.buffer && !sides[k]->a &&
        tir_same_operands(ir, sides[k]->operands, n->store.indices, rank))
      return tir_uses_buffer(ir, k ? value->a : value->b, n->store.buffer) ? -1 : value->kind;
  return -1;
}

/* The outermost loop below `top` that s is in, all between being loops with one statement each; TIR_NONE. */
static tir_stmt outermost_below(const struct tir *ir, tir_stmt s, tir_stmt top) {
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p && p != top; s = p, p = tir_stmt_at(ir, p)->parent)
    if (!tir_is(ir, p, TIR_LOOP) || tir_only_child(ir, p) != s) return TIR_NONE;
  return s;
}

/* Lanes begin with what changes nothing when it is joined. */
static bool begins_before(const struct tir *ir, tir_stmt nest, tir_stmt store, int operation) {
  tir_stmt before = tir_stmt_at(ir, nest)->prev;
  if (!before || !tir_is(ir, before, TIR_STORE)) return false;
  const struct tir_stmt_node *first = tir_stmt_at(ir, before), *n = tir_stmt_at(ir, store);
  uint32_t rank = tir_buffer_at(ir, n->store.buffer)->rank;
  const struct tir_expr_node *value = tir_at(ir, first->store.value);
  return first->store.buffer == n->store.buffer && !first->store.predicate &&
         tir_same_operands(ir, first->store.indices, n->store.indices, rank) && value->kind == TIR_FLOAT_IMM &&
         (operation != TIR_ADD || value->real == 0);
}

/* A condition is around the store, or fewer rows are than the lanes hold. */
static bool is_partial(const struct tir *ir, tir_stmt row_loop, tir_stmt s, int64_t group) {
  bool partial = tir_loop_extent(ir, row_loop) % group != 0;
  for (; s != row_loop; s = tir_stmt_at(ir, s)->parent) partial = partial || tir_is(ir, s, TIR_IF);
  return partial;
}

static bool is_in_columns(const struct tir *ir, tir_stmt row_loop, tir_stmt s) {
  while ((s = tir_stmt_at(ir, s)->parent) != row_loop)
    if (tir_is(ir, s, TIR_LOOP)) return true;
  return false;
}

/* A store below the loop of rows: of what a lane holds, or to memory. */
static bool may_store(struct rows *r, tir_stmt row_loop, tir_stmt s) {
  struct tir *ir = r->ir;
  const struct tir_stmt_node *n = tir_as(ir, s, TIR_STORE);
  tir_buffer to = n->store.buffer;
  if (n->store.predicate) return false;
  struct access a = {to, tir_buffer_at(ir, to)->rank, {TIR_NONE}};
  memcpy(a.indices, tir_operands(ir, n->store.indices), a.count * sizeof *a.indices);
  struct place p;
  if (!is_held(ir, to)) return true;
  if (!find_place(r, s, &a, &p) || p.row_loop != row_loop) return false;
  if (is_partial(ir, row_loop, s, even_rows(tir_is_group_fragment(ir, to)))) return false;
  if (is_of_bytes(ir, to) && (!p.column_loop || tir_only_child(ir, p.column_loop) != s)) return false; /* by pairs */
  if (p.column_loop || !is_in_columns(ir, row_loop, s)) return true;
  int operation = reduction_of(ir, s);
  tir_stmt nest = operation < 0 ? TIR_NONE : outermost_below(ir, s, row_loop);
  return nest && begins_before(ir, nest, s, operation);
}

static bool check_nest(struct rows *r, tir_stmt row_loop) {
  struct tir *ir = r->ir;
  bool fits = true;
  for (tir_stmt s = tir_next(ir, row_loop, row_loop); s && fits; s = tir_next(ir, s, row_loop)) {
    int kind = tir_stmt_at(ir, s)->kind;
    if (kind == TIR_STORE)
      fits = may_store(r, row_loop, s);
    else if (kind == TIR_IF)
      fits = !tir_stmt_at(ir, s)->first[TIR_ELSE] &&
             !(tir_at(ir, tir_stmt_at(ir, s)->test.condition)->flags & TIR_HAS_LOAD);
    else
      fits = kind == TIR_LOOP && tir_loop_axis(ir, s) == TIR_AXIS_COUNT;
  }
  return fits;
}

static void see_access(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct rows *r = data;
  struct place p;
  (void)writes;
  if (!is_held(ir, a->buffer)) return;
  bool group = tir_is_group_fragment(ir, a->buffer), mixed = r->any && group != r->group;
  r->touched[a->buffer] = 1;
  r->any = true, r->group = group;
  if (!r->lost && (mixed || !tir_is(ir, s, TIR_STORE) || !find_place(r, s, a, &p) || !check_nest(r, p.row_loop)))
    r->lost = a->buffer;
}

/* ---- The edit ---- */

/* A nest that is being changed: what stands for its loops' variables. */
struct nest {
  struct rows *rows;
  tir_stmt loop, store; /* the loop of rows; the statement */
  tir_var lane, q;
  tir_var columns[16], p[16], v[16]; /* a loop of columns, and what it becomes */
  uint32_t count;
};

static tir_expr of_var(struct tir *ir, tir_var v) { return tir_var_expr(ir, v); }

static int64_t columns_of(const struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  return tir_at(ir, ir->operands.at[b->shape + b->rank - 1])->imm;
}

/* The lane's own index: its groups of rows, one element of each. */
static tir_expr group_of(struct tir *ir, tir_expr first, tir_expr group, int64_t size) {
  return tir_simplify(ir, tir_add(ir, tir_floordiv(ir, first, number(ir, size)), group));
}

static void find_column(const struct nest *n, tir_stmt loop, tir_expr *group, tir_expr *part) {
  struct tir *ir = n->rows->ir;
  for (uint32_t i = 0; i < n->count; i++)
    if (n->columns[i] == var_of(ir, loop)) *group = of_var(ir, n->p[i]), *part = of_var(ir, n->v[i]);
}

/* Of all columns of a warp group's sixteen rows, or of its operand a, a thread holds one piece after the other. */
static tir_expr number_of_group(struct tir *ir, int64_t columns, tir_expr row, tir_expr column, tir_expr part) {
  tir_expr two = number(ir, 2), held = number(ir, columns / 2);
  tir_expr within =
      tir_add(ir, tir_mul(ir, column, number(ir, HELD / 2)), tir_mul(ir, tir_floormod(ir, row, two), two));
  tir_expr fragment = tir_mul(ir, tir_floordiv(ir, row, two), held);
  return tir_simplify(ir, tir_add(ir, fragment, tir_add(ir, within, part)));
}

/* Of each buffer of accumulators of warp groups, how many columns calls say that its fragments have. */
static void find_widths(struct rows *r, tir_stmt body) {
  struct tir *ir = r->ir;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) {
    bool names = lower_calls(ir, s, TIR_WGMMA_FILL) || lower_calls(ir, s, TIR_WGMMA_STORE) || lower_is_product(ir, s);
    if (!names) continue;
    const struct tir_expr_node *call = tir_at(ir, tir_as(ir, s, TIR_EVALUATE)->evaluate.value);
    const tir_expr *args = tir_operands(ir, call->operands);
    const struct tir_expr_node *data = tir_at(ir, args[0]);
    if (data->kind == TIR_DATA && tir_is_int(ir, args[2])) r->widths[data->ref] = (int32_t)tir_at(ir, args[2])->imm;
  }
}

static int64_t width_of(const struct rows *r, tir_buffer buffer) {
  if (is_operand(r->ir, buffer)) return tir_mma_depth(tir_type_bits(tir_buffer_at(r->ir, buffer)->type));
  return r->widths[buffer] ? r->widths[buffer] : columns_of(r->ir, buffer);
}

/* Rows that a lane holds of the matrices before that of the access. */
static tir_expr rows_before(struct tir *ir, const struct access *a, int64_t size) {
  uint32_t shape = tir_buffer_at(ir, a->buffer)->shape;
  tir_expr matrix = number(ir, 0);
  for (uint32_t d = 0; d + 2 < a->count; d++)
    matrix = tir_add(ir, tir_mul(ir, matrix, tir_cast(ir, TIR_T_I32, ir->operands.at[shape + d])),
                     tir_cast(ir, TIR_T_I32, a->indices[d]));
  int64_t rows = tir_at(ir, ir->operands.at[shape + a->count - 2])->imm;
  return tir_simplify(ir, tir_mul(ir, matrix, number(ir, rows / size)));
}

/* The element's number among those that the lane holds: fragments follow one another by rows. */
static tir_expr number_of(struct nest *n, const struct access *a, const struct place *p, tir_expr group,
                          tir_expr part) {
  struct tir *ir = n->rows->ir;
  int64_t columns = columns_of(ir, a->buffer), size = rows_for_one(n->rows->group);
  tir_expr row = tir_add(ir, rows_before(ir, a, size), group_of(ir, p->row, of_var(ir, n->q), size));
  tir_expr column = group_of(ir, p->column, group, GROUP_COLUMNS), two = number(ir, 2);
  if (n->rows->group) return number_of_group(ir, columns, row, column, part);
  tir_expr fragment =
      tir_add(ir, tir_mul(ir, tir_floordiv(ir, row, two), number(ir, columns / SIDE)), tir_floordiv(ir, column, two));
  tir_expr within = tir_add(ir, tir_mul(ir, tir_floormod(ir, row, two), two),
                            tir_mul(ir, tir_floormod(ir, column, two), number(ir, HELD / 2)));
  return tir_simplify(ir, tir_add(ir, tir_mul(ir, fragment, number(ir, HELD)), tir_add(ir, within, part)));
}

/* Where the element is in the lane's own memory. */
static void own_indices(struct nest *n, struct access *a, const struct place *p, tir_expr group, tir_expr part) {
  struct tir *ir = n->rows->ir;
  uint32_t rows = a->count - (p->column_loop ? 2 : 1);
  a->indices[rows] = group_of(ir, p->row, of_var(ir, n->q), rows_for_one(n->rows->group));
  if (!p->column_loop) return;
  tir_expr column = group_of(ir, p->column, group, GROUP_COLUMNS);
  a->indices[rows + 1] = tir_simplify(ir, tir_add(ir, tir_mul(ir, column, number(ir, PAIR)), part));
}

/* Loops that choose the matrix are unrolled: registers have constant numbers. */
static void unroll_around(const struct nest *n, const struct access *a) {
  struct tir *ir = n->rows->ir;
  for (tir_stmt p = tir_stmt_at(ir, n->loop)->parent; p; p = tir_stmt_at(ir, p)->parent)
    for (uint32_t d = 0; d + 2 < a->count && tir_is(ir, p, TIR_LOOP); d++)
      if (tir_stmt_at(ir, p)->loop_kind == TIR_SERIAL && tir_uses_var(ir, a->indices[d], var_of(ir, p)))
        tir_stmt_at(ir, p)->loop_kind = TIR_UNROLLED;
}

/* The column of a loop that a lane has in group p, of the pair the one of that number. */
static tir_expr column_of(const struct nest *n, uint32_t i, tir_expr number_in_pair) {
  struct tir *ir = n->rows->ir;
  tir_expr quarter = tir_floormod(ir, of_var(ir, n->lane), number(ir, LANES_A_ROW));
  tir_expr pair = tir_add(ir, tir_mul(ir, quarter, number(ir, PAIR)), number_in_pair);
  return tir_add(ir, tir_mul(ir, of_var(ir, n->p[i]), number(ir, GROUP_COLUMNS)), pair);
}

static void stand_for(struct tir *ir, tir_var v, tir_expr e) {
  tir_subst_var(ir, v, tir_cast(ir, ir->vars.at[v].type, e));
}

/* The value, or number, of one of the pair that a loop of columns has. */
static tir_expr of_pair(const struct nest *n, tir_stmt loop, tir_expr e, int64_t which) {
  struct tir *ir = n->rows->ir;
  for (uint32_t i = 0; i < n->count; i++) {
    if (n->columns[i] != var_of(ir, loop)) continue;
    stand_for(ir, n->columns[i], column_of(n, i, number(ir, which)));
    stand_for(ir, n->v[i], number(ir, which));
  }
  e = tir_subst(ir, e);
  tir_subst_clear(ir);
  return e;
}

static tir_expr of_lane(struct nest *n, struct access *a, tir_expr value) {
  struct tir *ir = n->rows->ir;
  struct place p;
  tir_expr group = TIR_NONE, part = TIR_NONE;
  bool found = find_place(n->rows, n->store, a, &p);
  assert(found && p.row_loop == n->loop);
  (void)found;
  if (p.column_loop) find_column(n, p.column_loop, &group, &part);
  if (!n->rows->pointers[a->buffer]) {
    own_indices(n, a, &p, group, part);
    return TIR_NONE;
  }
  unroll_around(n, a);
  tir_expr args[5] = {tir_data(ir, a->buffer)}, element = number_of(n, a, &p, group, part);
  bool by_pairs = value && is_of_bytes(ir, a->buffer);
  uint32_t count = 1;
  if (n->rows->group) args[count++] = number(ir, width_of(n->rows, a->buffer));
  args[count++] = by_pairs ? tir_simplify(ir, of_pair(n, p.column_loop, element, 0)) : element;
  if (value) args[count++] = by_pairs ? of_pair(n, p.column_loop, value, 0) : value;
  if (by_pairs) args[count++] = of_pair(n, p.column_loop, value, 1);
  enum tir_device_call which = value            ? (n->rows->group ? TIR_WGMMA_PUT : TIR_MMA_PUT)
                               : n->rows->group ? TIR_WGMMA_GET
                                                : TIR_MMA_GET;
  tir_type type = value ? TIR_T_VOID : tir_buffer_at(ir, a->buffer)->type;
  return tir_call(ir, type, tir_device_symbol(ir, which), args, count);
}

static tir_expr change_load(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  struct nest *n = data;
  struct tir_expr_node load = *tir_at(ir, before);
  if (load.kind != TIR_LOAD || !is_held(ir, load.ref)) return made;
  struct access a = {load.ref, load.count, {TIR_NONE}};
  memcpy(a.indices, tir_operands(ir, load.operands), a.count * sizeof *a.indices);
  tir_expr call = of_lane(n, &a, TIR_NONE);
  return call ? call : tir_load(ir, a.buffer, a.indices, a.count, TIR_NONE);
}

static tir_stmt change_store(struct nest *n, tir_stmt s) {
  struct tir *ir = n->rows->ir;
  n->store = s;
  lower_map(ir, s, TIR_HAS_LOAD, change_load, n);
  struct tir_stmt_node store = *tir_as(ir, s, TIR_STORE);
  if (!is_held(ir, store.store.buffer)) return s;
  struct access a = {store.store.buffer, tir_buffer_at(ir, store.store.buffer)->rank, {TIR_NONE}};
  memcpy(a.indices, tir_operands(ir, store.store.indices), a.count * sizeof *a.indices);
  tir_expr call = of_lane(n, &a, store.store.value);
  if (!call) {
    uint32_t indices = tir_add_operands(ir, a.indices, a.count);
    tir_as(ir, s, TIR_STORE)->store.indices = indices;
    return s;
  }
  tir_stmt put = tir_new_stmt(ir, TIR_EVALUATE);
  tir_as(ir, put, TIR_EVALUATE)->evaluate.value = call;
  tir_replace(ir, s, put);
  tir_kill(ir, s);
  return put;
}

static tir_var new_var(struct tir *ir, const char *name, int64_t extent) {
  tir_expr zero = number(ir, 0), size = number(ir, extent);
  return tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, name), TIR_T_I32, zero, size);
}

static tir_stmt new_loop(struct tir *ir, tir_var v, enum tir_loop_kind kind) {
  return tir_new_loop(ir, v, ir->vars.at[v].min, ir->vars.at[v].extent, kind);
}

/* The lanes that share a row join what they have. */
static void join_lanes(struct tir *ir, tir_stmt after, tir_stmt store, int operation) {
  struct tir_stmt_node n = *tir_as(ir, store, TIR_STORE);
  uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
  for (int64_t distance = LANES_A_ROW / 2; distance; distance /= 2) {
    tir_expr own = tir_load(ir, n.store.buffer, tir_operands(ir, n.store.indices), rank, TIR_NONE);
    tir_expr args[] = {tir_int(ir, TIR_TYPE(TIR_UINT, 32, 1), UINT32_MAX), own, number(ir, distance),
                       number(ir, TIR_WARP), number(ir, TIR_WARP)};
    tir_expr other = tir_call(ir, tir_type_of(ir, own), tir_device_symbol(ir, TIR_SHUFFLE_XOR), args, 5);
    tir_expr value = tir_binary(ir, (enum tir_kind)operation, own, other);
    tir_insert_after(ir, after, tir_new_store(ir, n.store.buffer, tir_operands(ir, n.store.indices), value));
  }
}

/* What is in the loop of columns puts both of a pair at once. */
static bool puts_pairs(const struct tir *ir, tir_stmt loop) {
  tir_stmt s = tir_only_child(ir, loop);
  return s && tir_is(ir, s, TIR_STORE) && is_of_bytes(ir, tir_stmt_at(ir, s)->store.buffer);
}

static void split_columns(struct nest *n) {
  struct tir *ir = n->rows->ir;
  for (tir_stmt s = tir_next(ir, n->loop, n->loop); s; s = tir_next(ir, s, n->loop)) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_loop_extent(ir, s) % GROUP_COLUMNS || n->count == 16) continue;
    uint32_t i = n->count++;
    n->columns[i] = var_of(ir, s);
    n->p[i] = new_var(ir, "p", tir_loop_extent(ir, s) / GROUP_COLUMNS);
    n->v[i] = new_var(ir, "v", puts_pairs(ir, s) ? 1 : PAIR);
  }
}

/* The loop becomes two, of groups and of the pair that a lane has of each. */
static void share_out_columns(struct nest *n, tir_stmt loop) {
  struct tir *ir = n->rows->ir;
  for (uint32_t i = 0; i < n->count; i++) {
    if (n->columns[i] != var_of(ir, loop)) continue;
    tir_stmt outer = new_loop(ir, n->p[i], TIR_UNROLLED), inner = new_loop(ir, n->v[i], TIR_UNROLLED);
    tir_append(ir, outer, TIR_BODY, inner);
    tir_move_children(ir, loop, TIR_BODY, inner, TIR_BODY);
    tir_replace(ir, loop, outer);
    tir_kill(ir, loop);
  }
}

/* The row of a lane's group. */
static tir_expr row_of(const struct nest *n) {
  struct tir *ir = n->rows->ir;
  tir_expr lane = of_var(ir, n->lane), q = of_var(ir, n->q), quarter = number(ir, LANES_A_ROW);
  if (!n->rows->group) return tir_add(ir, tir_mul(ir, q, number(ir, GROUP_ROWS)), tir_floordiv(ir, lane, quarter));
  tir_expr two = number(ir, 2), warp = number(ir, TIR_WARP);
  tir_expr fragment = tir_mul(ir, tir_floordiv(ir, q, two), number(ir, TIR_WGMMA_ROWS));
  tir_expr of_warp = tir_mul(ir, tir_floordiv(ir, lane, warp), number(ir, TIR_WGMMA_ROWS * TIR_WARP / TIR_GROUP));
  tir_expr half = tir_mul(ir, tir_floormod(ir, q, two), number(ir, GROUP_ROWS));
  tir_expr row = tir_floordiv(ir, tir_floormod(ir, lane, warp), quarter);
  return tir_add(ir, tir_add(ir, fragment, of_warp), tir_add(ir, half, row));
}

static tir_stmt new_test(struct tir *ir, tir_expr condition) {
  tir_stmt test = tir_new_stmt(ir, TIR_IF);
  tir_as(ir, test, TIR_IF)->test.condition = condition;
  return test;
}

/* What one lane stores of those that share the row. */
static void store_once(struct nest *n, tir_stmt store) {
  struct tir *ir = n->rows->ir;
  tir_expr part = tir_floormod(ir, of_var(ir, n->lane), number(ir, LANES_A_ROW));
  tir_stmt test = new_test(ir, tir_make(ir, TIR_EQ, part, number(ir, 0)));
  tir_replace(ir, store, test);
  tir_append(ir, test, TIR_BODY, store);
}

static void share_out(struct rows *r, tir_stmt loop) {
  struct tir *ir = r->ir;
  bool group = r->group;
  struct nest n = {.rows = r, .loop = loop};
  n.lane = new_var(ir, "tx", group ? TIR_GROUP : TIR_WARP);
  int64_t rows = tir_loop_extent(ir, loop), even = even_rows(group), whole = (rows + even - 1) / even * even;
  n.q = new_var(ir, "q", whole / rows_for_one(group));
  split_columns(&n);
  for (tir_stmt s = tir_next(ir, loop, loop), next; s; s = next) {
    next = tir_next(ir, s, loop);
    if (!tir_is(ir, s, TIR_STORE)) continue;
    tir_buffer to = tir_stmt_at(ir, s)->store.buffer;
    bool of_rows = is_of_rows(ir, to), once = !is_held(ir, to) && !is_in_columns(ir, loop, s);
    tir_stmt nest = of_rows ? outermost_below(ir, s, loop) : TIR_NONE;
    int operation = nest && nest != s ? reduction_of(ir, s) : -1;
    s = change_store(&n, s);
    if (once) store_once(&n, s);
    if (operation >= 0) join_lanes(ir, nest, s, operation);
  }
  for (tir_stmt s = tir_next(ir, loop, loop), next; s; s = next) {
    next = tir_next(ir, s, loop);
    if (tir_is(ir, s, TIR_LOOP)) share_out_columns(&n, s);
  }
  tir_stmt lanes = new_loop(ir, n.lane, TIR_THREAD_BINDING), groups = new_loop(ir, n.q, TIR_UNROLLED);
  tir_symbol axis = tir_symbol_of(ir, tir_axis_name(TIR_THREAD_X));
  tir_as(ir, lanes, TIR_LOOP)->loop.thread = axis;
  tir_append(ir, lanes, TIR_BODY, groups);
  tir_stmt inner = whole == rows ? groups : new_test(ir, tir_make(ir, TIR_LT, row_of(&n), number(ir, rows)));
  if (inner != groups) tir_append(ir, groups, TIR_BODY, inner);
  tir_move_children(ir, loop, TIR_BODY, inner, TIR_BODY);
  tir_replace(ir, loop, lanes);
  stand_for(ir, var_of(ir, loop), row_of(&n));
  for (uint32_t i = 0; i < n.count; i++) stand_for(ir, n.columns[i], column_of(&n, i, of_var(ir, n.v[i])));
  tir_kill(ir, loop);
  tir_subst_stmt(ir, lanes);
  tir_subst_clear(ir);
}

/* The loop of rows of what is touched in s; TIR_NONE: it touches nothing that lanes hold. */
struct row_search {
  struct rows *rows;
  tir_stmt found;
};

static void see_row(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct row_search *search = data;
  struct place p;
  (void)writes;
  if (!search->found && is_held(ir, a->buffer) && find_place(search->rows, s, a, &p)) search->found = p.row_loop;
}

/* A lane has of each eight rows one, of each eight columns two. */
static void become_own(struct rows *r, tir_buffer buffer) {
  struct tir *ir = r->ir;
  tir_expr shape[TIR_MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  bool of_rows = is_of_rows(ir, buffer);
  assert(rank >= (of_rows ? 1u : 2u) && rank <= TIR_MOST_RANK);
  memcpy(shape, &ir->operands.at[tir_buffer_at(ir, buffer)->shape], rank * sizeof *shape);
  uint32_t row = rank - (of_rows ? 1 : 2);
  bool group = tir_is_group_fragment(ir, buffer);
  tir_expr rows = tir_add(ir, shape[row], number(ir, even_rows(group) - 1));
  rows = tir_mul(ir, tir_floordiv(ir, rows, number(ir, even_rows(group))),
                 number(ir, even_rows(group) / rows_for_one(group)));
  shape[row] = tir_simplify(ir, rows);
  if (!of_rows) {
    tir_expr columns = tir_add(ir, shape[row + 1], number(ir, GROUP_COLUMNS - 1));
    columns = tir_mul(ir, tir_floordiv(ir, columns, number(ir, GROUP_COLUMNS)), number(ir, PAIR));
    shape[row + 1] = tir_simplify(ir, columns);
  }
  uint32_t made = tir_add_operands(ir, shape, rank);
  tir_symbol scope = tir_scope_named(ir, TIR_SCOPE_LOCAL);
  tir_buffer_at(ir, buffer)->shape = made;
  tir_buffer_at(ir, buffer)->scope = scope;
}

bool lower_rows(struct lowering *low) {
  struct tir *ir = low->ir;
  struct rows r = {.ir = ir,
                   .pointers = lower_pointers(ir, low->body),
                   .touched = calloc(ir->buffers.count, 1),
                   .widths = calloc(ir->buffers.count, sizeof *r.widths)};
  if (!r.touched || !r.widths) abort();
  find_widths(&r, low->body);
  lower_visit(ir, low->body, see_access, &r);
  if (r.any && !r.lost) {
    for (tir_stmt s = low->body, next; s; s = next) {
      struct row_search search = {&r, TIR_NONE};
      next = tir_next(ir, s, low->body);
      if (!tir_is(ir, s, TIR_STORE)) continue;
      lower_visit(ir, s, see_row, &search);
      if (!search.found) continue;
      next = tir_after(ir, search.found, low->body);
      share_out(&r, search.found);
    }
    uint32_t count = ir->buffers.count;
    for (tir_buffer b = 1; b < count; b++)
      if (r.touched[b] && !r.pointers[b]) become_own(&r, b);
  }
  free(r.touched);
  free(r.widths);
  free(r.pointers);
  return !r.lost || tir_refuse(ir, low->err, MS_LOWER_ROWS, TIR_NONE, "buffer `%s` is touched otherwise",
                               tir_buffer_name(ir, r.lost));
}

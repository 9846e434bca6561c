/* Lanes: what a warp holds of the accumulators of 16 x 8 x 8 MMAs is touched by calls, each lane's of its own
 * registers.
 *
 *   for i in 16: for j in 8: S[i, j] = C[16 * r + i, 8 * c + j]       becomes, in each lane t of 32:
 *   for b in 2: for v in 2: S[b * 8 + t / 4, t % 4 * 2 + v] = mma_lane_get(C, …)
 *
 * Requires: blocks. Gives: buffers of scope m16n8k8.* that nothing but calls touches have TIR_MMA8_LANES behind it.
 * Keeps: everything else; a buffer one of whose elements is touched by a thread that is not shown to hold it stays
 * as it was, and has no form in code. Copies out of it that no thread is bound to are shared out among lanes.
 * Source: PTX ISA, "Matrix Fragments for mma.m16n8k8 with .f16 floating point type". */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = TIR_MMA8_ROWS, COLUMNS = TIR_MMA8_COLUMNS, HALF = ROWS / 2, LANES_A_ROW = 4, PAIR = 2, HELD = 4 };

static bool is_accumulator(const struct tir *ir, tir_buffer buffer) {
  return tir_memory_scope_of(ir, buffer) == TIR_SCOPE_MMA8_C;
}

/* The loop around s that is bound to the lanes of a warp; TIR_NONE: there is none. */
static tir_stmt loop_of_lanes(const struct tir *ir, tir_stmt s) {
  while (s && tir_loop_axis(ir, s) != TIR_THREAD_X) s = tir_stmt_at(ir, s)->parent;
  return s;
}

/* ---- Copies that are shared out ---- */

static tir_expr number(struct tir *ir, int64_t n) { return tir_int(ir, TIR_T_I32, n); }

static tir_stmt add_loop(struct tir *ir, tir_stmt to, const char *name, int64_t extent, enum tir_loop_kind kind,
                         tir_expr *var) {
  tir_expr zero = number(ir, 0), size = number(ir, extent);
  tir_var v = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, name), TIR_T_I32, zero, size);
  tir_stmt loop = tir_new_loop(ir, v, zero, size, kind);
  if (to) tir_append(ir, to, TIR_BODY, loop);
  *var = tir_var_expr(ir, v);
  return loop;
}

static bool is_loop_of(const struct tir *ir, tir_stmt s, int64_t extent) {
  return s && tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) == extent && tir_only_child(ir, s) &&
         tir_is_const(ir, tir_as(ir, s, TIR_LOOP)->loop.min, 0);
}

/* The store, of all elements of a tile in turn, is each lane's of what it holds. */
static void share_out(struct tir *ir, tir_stmt store) {
  tir_stmt inner = tir_stmt_at(ir, store)->parent, outer = tir_stmt_at(ir, inner)->parent;
  tir_expr value = tir_as(ir, store, TIR_STORE)->store.value, lane, half, pair;
  bool copies = tir_at(ir, value)->kind == TIR_LOAD && is_accumulator(ir, tir_at(ir, value)->ref);
  if (!copies || !is_loop_of(ir, inner, COLUMNS) || !is_loop_of(ir, outer, ROWS) || loop_of_lanes(ir, outer)) return;
  tir_stmt nest = add_loop(ir, TIR_NONE, "tx", TIR_WARP, TIR_THREAD_BINDING, &lane);
  tir_as(ir, nest, TIR_LOOP)->loop.thread = tir_symbol_of(ir, tir_axis_name(TIR_THREAD_X));
  tir_stmt halves = add_loop(ir, nest, "b", ROWS / HALF, TIR_UNROLLED, &half);
  tir_stmt pairs = add_loop(ir, halves, "v", PAIR, TIR_UNROLLED, &pair), copy = tir_clone_stmt(ir, store);
  tir_expr quarter = number(ir, LANES_A_ROW),
           row = tir_add(ir, tir_mul(ir, half, number(ir, HALF)), tir_floordiv(ir, lane, quarter));
  tir_expr column = tir_add(ir, tir_mul(ir, tir_floormod(ir, lane, quarter), number(ir, PAIR)), pair);
  tir_var i = tir_as(ir, outer, TIR_LOOP)->loop.var, j = tir_as(ir, inner, TIR_LOOP)->loop.var;
  tir_append(ir, pairs, TIR_BODY, copy);
  tir_subst_var(ir, i, tir_cast(ir, ir->vars.at[i].type, row));
  tir_subst_var(ir, j, tir_cast(ir, ir->vars.at[j].type, column));
  tir_subst_stmt(ir, copy);
  tir_subst_clear(ir);
  tir_replace(ir, outer, nest);
  tir_kill(ir, outer);
}

/* ---- What a lane holds ---- */

static tir_expr in_lane(struct tir *ir, tir_expr e, tir_var var, int64_t lane) {
  tir_subst_var(ir, var, tir_int(ir, ir->vars.at[var].type, lane));
  e = tir_subst(ir, e);
  tir_subst_clear(ir);
  return e;
}

/* The register of element (row, column), the same in all lanes, each of which holds the one that it names; TIR_NONE:
 * it is not shown. Tiles of 16 x 8 follow one another by rows. */
static tir_expr register_of(struct tir *ir, tir_buffer buffer, const tir_expr *at, tir_stmt s) {
  tir_stmt loop = loop_of_lanes(ir, s);
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (!loop || tir_loop_extent(ir, loop) != TIR_WARP || b->rank != 2 || b->strides.count || b->elem_offset)
    return TIR_NONE;
  tir_expr columns = ir->operands.at[b->shape + 1];
  if (!tir_is_int(ir, columns) || tir_at(ir, columns)->imm % COLUMNS) return TIR_NONE;
  int64_t across = tir_at(ir, columns)->imm / COLUMNS, modulus, rest;
  tir_var var = tir_as(ir, loop, TIR_LOOP)->loop.var;
  tir_expr row = in_lane(ir, at[0], var, 0), column = in_lane(ir, at[1], var, 0);
  for (int64_t l = 1; l < TIR_WARP; l++)
    if (!tir_is_const(ir, tir_sub(ir, in_lane(ir, at[0], var, l), row), l / LANES_A_ROW) ||
        !tir_is_const(ir, tir_sub(ir, in_lane(ir, at[1], var, l), column), l % LANES_A_ROW * PAIR))
      return TIR_NONE;
  tir_modular(ir, row, &modulus, &rest);
  tir_expr part = tir_floormod(ir, column, number(ir, COLUMNS));
  if (modulus % HALF || rest % HALF || !tir_prove(ir, tir_make(ir, TIR_LT, part, number(ir, PAIR)))) return TIR_NONE;
  tir_expr tile = tir_add(ir, tir_mul(ir, tir_floordiv(ir, row, number(ir, ROWS)), number(ir, across)),
                          tir_floordiv(ir, column, number(ir, COLUMNS)));
  tir_expr half = tir_floormod(ir, tir_floordiv(ir, row, number(ir, HALF)), number(ir, 2));
  return tir_simplify(
      ir, tir_add(ir, tir_add(ir, tir_mul(ir, tile, number(ir, HELD)), tir_mul(ir, half, number(ir, PAIR))), part));
}

/* ---- Accesses ---- */

/* The buffer of which the store writes an element, and that which it copies from. */
static tir_buffer written_by(const struct tir *ir, tir_stmt s) {
  return tir_is(ir, s, TIR_STORE) && is_accumulator(ir, tir_stmt_at(ir, s)->store.buffer)
             ? tir_stmt_at(ir, s)->store.buffer
             : TIR_NONE;
}
static tir_buffer copied_by(const struct tir *ir, tir_stmt s) {
  if (!tir_is(ir, s, TIR_STORE)) return TIR_NONE;
  const struct tir_expr_node *value = tir_at(ir, tir_as(ir, s, TIR_STORE)->store.value);
  return value->kind == TIR_LOAD && !value->a && is_accumulator(ir, value->ref) ? value->ref : TIR_NONE;
}

static void see_access(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  uint8_t *lost = data; /* by buffer: it stays as it was */
  if (!tir_is_mma8_fragment(ir, a->buffer)) return;
  bool known = writes ? written_by(ir, s) == a->buffer && !tir_as(ir, s, TIR_STORE)->store.predicate
                      : copied_by(ir, s) == a->buffer;
  if (!known || !register_of(ir, a->buffer, a->indices, s)) lost[a->buffer] = 1;
}

static tir_expr of_lane(struct tir *ir, enum tir_device_call which, tir_type type, tir_buffer buffer, tir_expr at,
                        tir_expr value) {
  assert(at && tir_is_mma8_fragment(ir, buffer)); /* each lane holds what it touches */
  tir_expr args[] = {tir_data(ir, buffer), at, value};
  return tir_call(ir, type, tir_device_symbol(ir, which), args, value ? 3 : 2);
}

/* Its loops are unrolled: registers have constant numbers. */
static void unroll_around(struct tir *ir, tir_stmt s, tir_stmt until) {
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p != until; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP)) tir_stmt_at(ir, p)->loop_kind = TIR_UNROLLED;
}

static void call_for_copy(struct tir *ir, tir_stmt s, tir_buffer from) {
  struct tir_expr_node load = *tir_at(ir, tir_as(ir, s, TIR_STORE)->store.value);
  tir_expr at[2];
  memcpy(at, tir_operands(ir, load.operands), sizeof at);
  tir_expr value = of_lane(ir, TIR_MMA8_GET, load.type, from, register_of(ir, from, at, s), TIR_NONE);
  tir_as(ir, s, TIR_STORE)->store.value = value;
}

/* Returns what stands in the store's place. */
static tir_stmt call_for_store(struct tir *ir, tir_stmt s, tir_buffer to) {
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  tir_expr at[2];
  memcpy(at, tir_operands(ir, n.store.indices), sizeof at);
  tir_expr call = of_lane(ir, TIR_MMA8_PUT, TIR_T_VOID, to, register_of(ir, to, at, s), n.store.value);
  tir_stmt put = tir_new_stmt(ir, TIR_EVALUATE);
  tir_as(ir, put, TIR_EVALUATE)->evaluate.value = call;
  tir_replace(ir, s, put);
  tir_kill(ir, s);
  return put;
}

static void name_lanes(struct tir *ir, tir_buffer buffer) {
  assert(tir_is_mma8_fragment(ir, buffer) && tir_rows_of(ir, buffer) != TIR_ROWS_OF_LANES);
  char scope[64];
  snprintf(scope, sizeof scope, "%s%s", tir_text(ir, tir_buffer_at(ir, buffer)->scope), TIR_MMA8_LANES);
  tir_symbol symbol = tir_symbol_of(ir, scope);
  tir_buffer_at(ir, buffer)->scope = symbol;
}

bool lower_lanes(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (tir_is(ir, s, TIR_STORE)) share_out(ir, s);
  }
  uint8_t *lost = calloc(ir->buffers.count, 1);
  if (!lost) abort();
  lower_visit(ir, low->body, see_access, lost);
  for (tir_stmt s = low->body, next; s; s = next) {
    tir_buffer to = written_by(ir, s), from = copied_by(ir, s);
    next = tir_next(ir, s, low->body);
    if (from && !lost[from]) call_for_copy(ir, s, from);
    if (to && !lost[to]) s = call_for_store(ir, s, to);
    if ((to && !lost[to]) || (from && !lost[from])) unroll_around(ir, s, loop_of_lanes(ir, s));
  }
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_buffer buffer = tir_stmt_at(ir, s)->alloc.buffer;
    if (tir_is_mma8_fragment(ir, buffer) && !lost[buffer]) name_lanes(ir, buffer);
  }
  free(lost);
  return true;
}

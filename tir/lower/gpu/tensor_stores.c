/* Tensor stores: a warp group's copy of a tile of shared memory to the result, which an annotation of its loop asks for
 * by TIR_TENSOR_STORES, is begun by one thread as a TMA bulk tensor store.
 *
 *   for c: S in c: { all write S; for f, v: D[r0 + r(f, t, v), c0 + col] = S[…] }     becomes
 *
 *   for c: S in c: { if t == 0: store_wait(0); all write S; if t == 0: tensor_store(S, D, r0, c0); store_commit() }
 *   if t == 0: store_wait(0)
 *
 * S is overwritten when the stores that read it have, and no block ends before. Barriers and fences of proxies are put
 * by barriers.c and groups.c.
 *
 * Requires: kernels; a loop below that of threads whose axis x is a warp group long; S in the canonical layout. Gives:
 * such calls, and no annotation. Keeps: everything else. What one store does not do stays the threads' copy, with a
 * note. Source: PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk.wait_group". */
#include "footprint.h"
#include "tir/arith/linear.h"

#include <stdlib.h>

enum { MOST_LOOPS = 4, MATRIX = 2 };

struct tensor_store {
  struct tir *ir;
  tir_stmt kernel, loop, store;
  tir_buffer from, to;
  tir_stmt loops[MOST_LOOPS];
  uint32_t loop_count;
  tir_var lane;
  tir_expr from_place, to_place; /* of the first element */
  int64_t rows, columns, stride; /* of the tile; elements from one of its rows to the next in the result */
  const char *why;
};

static bool refuse(struct tensor_store *t, const char *why) {
  t->why = why;
  return false;
}

static tir_expr number(struct tir *ir, int64_t n) { return tir_int(ir, TIR_T_I32, n); }

static tir_expr with_number(struct tir *ir, tir_expr e, tir_var v, int64_t n) {
  return lower_with_value(ir, e, v, number(ir, n));
}

static bool difference(struct tir *ir, tir_expr a, tir_expr b, int64_t *out) {
  tir_expr apart = tir_simplify(ir, tir_sub(ir, a, b));
  if (tir_is_int(ir, apart)) *out = tir_at(ir, apart)->imm;
  return tir_is_int(ir, apart);
}

/* ---- What is copied ---- */

static bool find_loops(struct tensor_store *t) {
  struct tir *ir = t->ir;
  tir_stmt s = t->loop;
  for (; s && tir_is(ir, s, TIR_LOOP); s = tir_only_child(ir, s)) {
    if (tir_loop_extent(ir, s) < 1 || !tir_is_const(ir, tir_as(ir, s, TIR_LOOP)->loop.min, 0) ||
        t->loop_count == MOST_LOOPS)
      return refuse(t, "its loops have no constant extents");
    t->loops[t->loop_count++] = s;
  }
  if (!s || !tir_is(ir, s, TIR_STORE)) return refuse(t, "it does more than to copy");
  t->store = s;
  return true;
}

static bool find_buffers(struct tensor_store *t) {
  struct tir *ir = t->ir;
  struct tir_stmt_node n = *tir_as(ir, t->store, TIR_STORE);
  struct tir_expr_node value = *tir_at(ir, n.store.value);
  if (n.store.predicate || value.kind != TIR_LOAD || value.a) return refuse(t, "it does more than to copy");
  t->from = value.ref, t->to = n.store.buffer;
  if (tir_buffer_memory(ir, t->to) != TIR_DEVICE_MEMORY || tir_buffer_memory(ir, t->from) != TIR_BLOCK_MEMORY)
    return refuse(t, "it does not copy from shared memory to the device's");
  struct tir_buffer_node from = *tir_buffer_at(ir, t->from), to = *tir_buffer_at(ir, t->to);
  if (!tir_requests_rows(ir, t->from, TIR_ROWS_CANONICAL) || from.rank < MATRIX || from.strides.count)
    return refuse(t, "the tile is not in the canonical layout");
  if (to.strides.count || to.elem_offset || from.type != to.type || tir_type_bits(to.type) < 8)
    return refuse(t, "the result is no plain tensor");
  tir_expr columns = ir->operands.at[from.shape + from.rank - 1];
  t->columns = tir_is_int(ir, columns) ? tir_at(ir, columns)->imm : 0;
  t->from_place = lower_place_of(ir, t->from, tir_operands(ir, value.operands));
  t->to_place = lower_place_of(ir, t->to, tir_operands(ir, n.store.indices));
  tir_stmt where = from.where;
  if (!tir_is(ir, where, TIR_ALLOC) || tir_stmt_at(ir, where)->parent != tir_stmt_at(ir, t->loop)->parent)
    return refuse(t, "the tile lives longer than its copy");
  return (t->columns && t->from_place && t->to_place) || refuse(t, "where elements lie is not known");
}

/* How far elements are from the first, in the tile and in the result: by what a variable is. */
struct moves {
  int64_t count, from[TIR_GROUP], to[TIR_GROUP];
};

/* From where all other variables are 0. False: it is not known. */
static bool find_moves(struct tensor_store *t, tir_var v, int64_t extent, struct moves *out) {
  struct tir *ir = t->ir;
  tir_expr from = t->from_place, to = t->to_place;
  out->count = extent;
  if (extent > TIR_GROUP) return refuse(t, "its loops are too long");
  for (uint32_t i = 0; i < t->loop_count; i++) {
    tir_var other = tir_as(ir, t->loops[i], TIR_LOOP)->loop.var;
    if (other != v) from = with_number(ir, from, other, 0), to = with_number(ir, to, other, 0);
  }
  if (t->lane != v) from = with_number(ir, from, t->lane, 0), to = with_number(ir, to, t->lane, 0);
  for (int64_t i = 0; i < extent; i++)
    if (!difference(ir, with_number(ir, from, v, i), with_number(ir, from, v, 0), &out->from[i]) ||
        !difference(ir, with_number(ir, to, v, i), with_number(ir, to, v, 0), &out->to[i]))
      return refuse(t, "where elements lie is not known");
  return true;
}

/* What each variable moves is added up: the place is a sum of what each gives. */
static bool is_sum(struct tensor_store *t, tir_expr place) {
  struct tir *ir = t->ir;
  tir_type type = tir_type_of(ir, place);
  tir_expr first = place, sum = tir_int(ir, type, 0);
  for (uint32_t i = 0; i <= t->loop_count; i++) {
    tir_var v = i < t->loop_count ? tir_as(ir, t->loops[i], TIR_LOOP)->loop.var : t->lane;
    first = with_number(ir, first, v, 0);
  }
  for (uint32_t i = 0; i <= t->loop_count; i++) {
    tir_expr alone = place;
    for (uint32_t k = 0; k <= t->loop_count; k++) {
      tir_var other = k < t->loop_count ? tir_as(ir, t->loops[k], TIR_LOOP)->loop.var : t->lane;
      if (k != i) alone = with_number(ir, alone, other, 0);
    }
    sum = tir_add(ir, sum, tir_sub(ir, alone, first));
  }
  return tir_prove_equal(ir, place, tir_add(ir, first, sum)) || refuse(t, "where elements lie is not known");
}

/* The element that is so far from the first in the tile is as far in the result as its row and column say. */
static bool note_element(struct tensor_store *t, int64_t from, int64_t to, uint8_t *seen, int64_t elements) {
  if (from < 0 || from >= elements || seen[from]) return refuse(t, "it does not copy each element of a tile once");
  int64_t row = from / t->columns, column = from % t->columns;
  seen[from] = 1;
  if (row && !t->stride) t->stride = (to - column) / row;
  return to == row * t->stride + column || refuse(t, "rows of the tile are no rows of the result");
}

/* Runs through all elements, in order of loops. */
static bool run_through(struct tensor_store *t, const struct moves *moves, int64_t elements, uint8_t *seen) {
  for (int64_t i = 0; i < elements; i++) {
    int64_t left = i, from = 0, to = 0;
    for (uint32_t k = t->loop_count + 1; k-- > 0; left /= moves[k].count) {
      int64_t at = left % moves[k].count;
      from += moves[k].from[at], to += moves[k].to[at];
    }
    if (!note_element(t, from, to, seen, elements)) return false;
  }
  return true;
}

static bool find_rows(struct tensor_store *t) {
  struct tir *ir = t->ir;
  struct moves *moves = calloc(t->loop_count + 1, sizeof *moves);
  int64_t elements = TIR_GROUP;
  if (!moves) abort();
  bool ok = is_sum(t, t->from_place) && is_sum(t, t->to_place);
  for (uint32_t i = 0; i < t->loop_count && ok; i++) {
    int64_t extent = tir_loop_extent(ir, t->loops[i]);
    ok = find_moves(t, tir_as(ir, t->loops[i], TIR_LOOP)->loop.var, extent, &moves[i]);
    elements *= extent;
  }
  ok = ok && find_moves(t, t->lane, TIR_GROUP, &moves[t->loop_count]);
  uint8_t *seen = calloc(ok ? (size_t)elements : 1, 1);
  if (!seen) abort();
  ok = ok && (elements % t->columns == 0 || refuse(t, "it copies a part of a row"));
  t->rows = elements / t->columns;
  ok = ok && run_through(t, moves, elements, seen);
  free(seen);
  free(moves);
  return ok;
}

/* The first element of both, and whether a store may begin and end there. */
static bool find_first(struct tensor_store *t) {
  struct tir *ir = t->ir;
  int64_t bytes = tir_type_bits(tir_buffer_at(ir, t->to)->type) / 8;
  int64_t all = (int64_t)tir_allocation_bytes(ir, t->to) / bytes;
  for (uint32_t i = 0; i <= t->loop_count; i++) {
    tir_var v = i < t->loop_count ? tir_as(ir, t->loops[i], TIR_LOOP)->loop.var : t->lane;
    t->from_place = tir_simplify(ir, with_number(ir, t->from_place, v, 0));
    t->to_place = tir_simplify(ir, with_number(ir, t->to_place, v, 0));
  }
  int64_t held = (int64_t)tir_allocation_bytes(ir, t->from) / (t->columns * bytes);
  if (!tir_panel_of(t->columns * bytes) || held % TIR_PANEL_ROWS || t->rows % TIR_PANEL_ROWS ||
      t->rows > TIR_BOX_MOST_SIDE)
    return refuse(t, "the tile's rows are no number of swizzled tiles");
  if (!tir_is_multiple(ir, t->from_place, TIR_PANEL_ROWS * t->columns))
    return refuse(t, "it begins within a swizzled tile");
  if (t->stride < t->columns) return refuse(t, "rows of the tile are no rows of the result");
  if (all <= 0 || all % t->stride || t->stride * bytes % TIR_BOX_ALIGNMENT)
    return refuse(t, "rows of the result do not begin at multiples of 16 bytes");
  if (t->stride % t->columns || !tir_is_multiple(ir, t->to_place, t->columns))
    return refuse(t, "a row of the tile may end in another row of the result");
  return all / t->stride <= INT32_MAX || refuse(t, "the result has too many rows");
}

static bool asks(const struct tir *ir, tir_stmt s) {
  if (!tir_is(ir, s, TIR_LOOP)) return false;
  tir_expr value = tir_annotation(ir, tir_stmt_at(ir, s)->annotations, TIR_TENSOR_STORES);
  return value && tir_is_int(ir, value) && tir_at(ir, value)->imm > 0;
}

/* Nothing orders what else the kernel does with the result before or behind the store: only such stores may. */
static bool is_alone(struct tensor_store *t, tir_stmt kernel) {
  struct tir *ir = t->ir;
  for (tir_stmt s = kernel, next; s; s = next) {
    next = s == t->loop || asks(ir, s) ? tir_after(ir, s, kernel) : tir_next(ir, s, kernel);
    if (s == t->loop || asks(ir, s)) continue;
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(ir, s, all);
    bool uses = tir_is(ir, s, TIR_STORE) && tir_stmt_at(ir, s)->store.buffer == t->to;
    bool stores = tir_is(ir, s, TIR_EVALUATE) && tir_is_device_call(ir, all[0], TIR_TENSOR_STORE);
    for (uint32_t i = 0; i < count && !stores; i++) uses = uses || (all[i] && tir_uses_buffer(ir, all[i], t->to));
    if (uses) return refuse(t, "the kernel touches the result otherwise");
  }
  return true;
}

static bool find_copy(struct tensor_store *t, tir_stmt kernel, const struct lower_threads *threads) {
  if (!threads->var[0] || threads->extent[0] != TIR_GROUP) return refuse(t, "its threads are no warp groups");
  t->lane = threads->var[0];
  if (!lower_comes_whole(t->ir, kernel, t->loop)) return refuse(t, "threads of a warp group go apart around it");
  return find_loops(t) && find_buffers(t) && find_rows(t) && find_first(t) && is_alone(t, kernel);
}

/* ---- In its place ---- */

/* What the first thread of a warp group does. */
static tir_stmt new_elected(struct tensor_store *t) {
  struct tir *ir = t->ir;
  tir_type type = ir->vars.at[t->lane].type;
  return tir_new_if(ir, tir_make(ir, TIR_EQ, tir_var_expr(ir, t->lane), tir_int(ir, type, 0)));
}

static void put_wait(struct tensor_store *t, tir_stmt to, bool names) {
  struct tir *ir = t->ir;
  tir_expr args[] = {number(ir, 0), names ? lower_pointer(ir, t->from, number(ir, 0), TIR_POINTER_READS) : TIR_NONE};
  lower_append_call(ir, to, TIR_STORE_WAIT, args, names ? 2 : 1);
}

static void put_stores(struct tensor_store *t, tir_stmt to) {
  struct tir *ir = t->ir;
  int64_t bytes = tir_type_bits(tir_buffer_at(ir, t->to)->type) / 8;
  int64_t panel = tir_panel_of(t->columns * bytes) / bytes, all = (int64_t)tir_allocation_bytes(ir, t->to) / bytes;
  tir_expr stride = tir_int(ir, tir_type_of(ir, t->to_place), t->stride);
  tir_expr row = tir_cast(ir, TIR_T_I32, tir_simplify(ir, tir_floordiv(ir, t->to_place, stride)));
  tir_expr first = tir_cast(ir, TIR_T_I32, tir_simplify(ir, tir_floormod(ir, t->to_place, stride)));
  for (int64_t column = 0; column < t->columns; column += panel) {
    tir_expr from = tir_add(ir, t->from_place, tir_int(ir, tir_type_of(ir, t->from_place), column));
    tir_expr args[] = {[TIR_STORE_FROM] = lower_pointer(ir, t->from, from, TIR_POINTER_READS),
                       [TIR_STORE_STRIDE] = number(ir, t->columns),
                       [TIR_STORE_TO] = lower_pointer(ir, t->to, number(ir, 0), TIR_POINTER_WRITES),
                       [TIR_STORE_RANK] = number(ir, MATRIX),
                       [TIR_STORE_LISTS] = number(ir, all / t->stride),
                       number(ir, t->stride),
                       row,
                       tir_add(ir, first, number(ir, column)),
                       number(ir, t->rows),
                       number(ir, panel)};
    lower_append_call(ir, to, TIR_TENSOR_STORE, args, sizeof args / sizeof *args);
  }
  lower_append_call(ir, to, TIR_STORE_COMMIT, NULL, 0);
}

static void put(struct tensor_store *t, tir_stmt innermost, bool first) {
  struct tir *ir = t->ir;
  tir_stmt where = tir_buffer_at(ir, t->from)->where, before = new_elected(t), stores = new_elected(t);
  put_wait(t, before, true);
  tir_insert_after(ir, where, before);
  put_stores(t, stores);
  tir_replace(ir, t->loop, stores);
  tir_kill(ir, t->loop);
  if (!first) return;
  tir_stmt last = new_elected(t);
  put_wait(t, last, false);
  tir_append(ir, innermost, TIR_BODY, last);
}

bool lower_tensor_stores(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt kernel = tir_stmt_at(ir, low->body)->first[TIR_BODY]; kernel; kernel = tir_stmt_at(ir, kernel)->next) {
    tir_stmt innermost;
    bool first = true;
    if (!tir_is_bound(ir, kernel)) continue;
    struct lower_threads threads = lower_threads_of(ir, kernel, &innermost);
    for (tir_stmt s = kernel, next; s; s = next) {
      next = tir_next(ir, s, kernel);
      if (!asks(ir, s)) continue;
      struct tensor_store t = {.ir = ir, .kernel = kernel, .loop = s};
      bool has = low->options && tir_has(low->options->capabilities, TIR_HAS_TENSOR_COPIES);
      next = tir_after(ir, s, kernel);
      if (has ? find_copy(&t, kernel, &threads) : refuse(&t, "the target has none")) {
        put(&t, innermost, first);
        first = false;
      } else {
        char note[200];
        snprintf(note, sizeof note, "a TMA bulk tensor store: %s", t.why);
        lower_note(low, s, note);
      }
    }
  }
  return true;
}

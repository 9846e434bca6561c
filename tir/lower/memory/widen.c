/* Widen: copies of short types hold what is computed with, where it is read again and again.
 *
 *   pad[e] = X[…]                                               becomes     pad[e] = i16(X[…])
 *   for j: C = dot_lanes(C, pad[i:i + 2], W[…])                             for j: C = dot_lanes(C, pad[i:i + 2], W[…])
 *   P[e] = B[…]                                                             P[e] = f32(B[…])
 *   for i: C = C + f32(A[…]) * f32(P[…])                                    for i: C = C + f32(A[…]) * P[…]
 *
 * Pairs of int16 are what CPUs without dot products of bytes multiply (pmaddwd), and float32 is what all of them do: an
 * element is widened once, where it is copied, and not at each of the rows or columns that it is read for. A pair, or
 * an element, then comes to all lanes by one load.
 * Requires: flat buffers, vector expressions, dot products (dots.c). Gives: nothing. Keeps what is computed, bit for
 * bit: what is stored is rounded as it was, and holds more bits than it needs. A buffer is widened where all that reads
 * it takes it so, and something reads it in a loop that does not move it, or for all lanes; and where a thread's part
 * of the last cache holds it then: else twice the bytes come from memory, again and again. A block that fills it may be
 * annotated msched.widen = 0, and it stays as it is: that is noted on its allocation as blocks go
 * (lower_note_copies). */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

/* ---- What blocks ask for ---- */

static bool read_note(struct lowering *low, tir_block block, bool *stays) {
  struct tir *ir = low->ir;
  tir_expr value = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, TIR_WIDEN);
  *stays = value && tir_is_const(ir, value, 0);
  if (!value || *stays || tir_is_const(ir, value, 1)) return true;
  char *text = tir_print_expr(ir, value);
  ms_fail(low->err, MS_LOWER_WIDEN, TIR_WIDEN " must be 0 or 1, not %s (annotation of block %s)", text ? text : "this",
          tir_block_name(ir, block));
  free(text);
  return false;
}

/* The buffers that blocks match stand for their sources, which are known first: blocks come before those in them. */
static void note_sources(const struct tir *ir, tir_block block, tir_buffer *sources) {
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++) {
    tir_buffer source = ir->matches.at[i].source.buffer;
    sources[ir->matches.at[i].buffer] = sources[source] ? sources[source] : source;
  }
}

static void keep_written(struct tir *ir, tir_block block, const tir_buffer *sources) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    tir_buffer buffer = ir->regions.at[i].buffer;
    tir_stmt where = tir_buffer_at(ir, sources[buffer] ? sources[buffer] : buffer)->where;
    if (where && tir_is(ir, where, TIR_ALLOC))
      tir_annotate_span(ir, &tir_stmt_at(ir, where)->annotations, tir_symbol_of(ir, TIR_WIDEN),
                        tir_int(ir, TIR_T_I32, 0));
  }
}

bool lower_note_copies(struct lowering *low) {
  struct tir *ir = low->ir;
  tir_buffer *sources = calloc(ir->buffers.count, sizeof *sources);
  if (!sources) abort();
  bool ok = true;
  for (tir_stmt s = low->body; s && ok; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    bool stays;
    note_sources(ir, s, sources);
    ok = read_note(low, s, &stays);
    if (ok && stays) keep_written(ir, s, sources);
  }
  free(sources);
  return ok;
}

/* ---- What is widened ---- */

struct widening {
  const struct lowering *low;
  struct tir *ir;
  uint8_t *kept;    /* of each buffer, that it stays as it is */
  tir_type *wanted; /* what all that reads it makes of it; 0: nothing does */
  uint8_t *again;   /* that it is read again in a loop that does not move it */
  tir_buffer *wide; /* what stands in its place; TIR_NONE: nothing does */
  tir_stmt at;      /* the statement that is looked at */
};

/* Whether a loop around the statement, below the buffer's allocation, does not move the load. */
static bool is_read_again(const struct tir *ir, tir_stmt s, const struct tir_expr_node *load) {
  tir_stmt where = tir_buffer_at(ir, load->ref)->where;
  if (!where) return false;
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p && p != tir_stmt_at(ir, where)->parent;
       p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && tir_loop_extent(ir, p) != 1 &&
        !tir_uses_var(ir, tir_operands(ir, load->operands)[0], tir_stmt_at(ir, p)->loop.var))
      return true;
  return false;
}

static bool note_reads(void *data, tir_expr e);

/* Notes that the load is taken as such a type; again: by several at once. */
static void note_load(struct widening *w, tir_expr load, tir_type as, bool again) {
  const struct tir_expr_node *n = tir_at(w->ir, load);
  assert(n->kind == TIR_LOAD);
  if (w->wanted[n->ref] && w->wanted[n->ref] != as) w->kept[n->ref] = 1;
  w->wanted[n->ref] = as;
  if (!w->again[n->ref]) w->again[n->ref] = again || is_read_again(w->ir, w->at, n);
  for (uint32_t i = 0; i < n->count; i++) tir_walk_expr(w->ir, tir_operands(w->ir, n->operands)[i], note_reads, w);
  if (n->a) tir_walk_expr(w->ir, n->a, note_reads, w);
}

/* Whether it is a pair of bytes that a dot product has for all lanes. */
static bool is_pair(const struct tir *ir, const struct tir_expr_node *call, tir_expr operand) {
  const struct tir_expr_node *load = tir_at(ir, operand);
  bool pair = load->kind == TIR_LOAD && !load->a && tir_type_lanes(load->type) == 2 && tir_type_lanes(call->type) > 1;
  return pair && tir_type_is_int(load->type) && tir_type_bits(load->type) == 8;
}

static void note_dot(struct widening *w, const struct tir_expr_node *call) {
  for (uint32_t i = 0; i < 3; i++) {
    tir_expr operand = tir_operands(w->ir, call->operands)[i];
    if (i > 0 && is_pair(w->ir, call, operand))
      note_load(w, operand, TIR_TYPE(TIR_INT, 16, 1), true);
    else
      tir_walk_expr(w->ir, operand, note_reads, w);
  }
}

/* Whether it makes a float32 of a shorter float that is loaded. */
static bool is_widened(const struct tir *ir, const struct tir_expr_node *n) {
  if (n->kind != TIR_CAST || tir_type_with_lanes(n->type, 1) != TIR_T_F32) return false;
  tir_type from = tir_type_of(ir, n->a);
  return tir_at(ir, n->a)->kind == TIR_LOAD && tir_type_is_float(from) && tir_type_bits(from) == 16;
}

static bool note_reads(void *data, tir_expr e) {
  struct widening *w = data;
  const struct tir *ir = w->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  bool dot = n->kind == TIR_CALL && n->count == 3 && !strcmp(tir_text(ir, n->ref), TIR_DOT_LANES);
  if (dot && tir_dot_lanes_width(ir, n) == 2) return note_dot(w, n), false;
  if (is_widened(ir, n)) return note_load(w, n->a, TIR_T_F32, false), false;
  if (n->kind == TIR_LOAD) w->kept[n->ref] = 1;
  return true;
}

static void note_statement(struct widening *w, tir_stmt s) {
  const struct tir *ir = w->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(ir, s, all);
  w->at = s;
  for (uint32_t i = 0; i < count; i++)
    if (all[i]) tir_walk_expr(ir, all[i], note_reads, w);
  for (uint32_t i = 0; n->kind == TIR_STORE && i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
    tir_walk_expr(ir, ir->operands.at[n->store.indices + i], note_reads, w);
}

/* Whether the last cache holds a buffer of so many elements of the type. What stands in no parallel loop there is once
 * for all threads. */
static bool is_held(const struct widening *w, tir_stmt alloc, tir_expr size, tir_type type) {
  const struct tir_lower_options *o = w->low->options;
  double bytes = tir_is_int(w->ir, size) ? (double)tir_at(w->ir, size)->imm * tir_type_bits(type) / 8 : 0;
  if (!o || !o->cache_bytes) return true;
  bool own = false;
  for (tir_stmt p = tir_stmt_at(w->ir, alloc)->parent; p; p = tir_stmt_at(w->ir, p)->parent)
    own = own || (tir_is(w->ir, p, TIR_LOOP) && tir_stmt_at(w->ir, p)->loop_kind == TIR_PARALLEL);
  return bytes > 0 && bytes <= (double)o->cache_bytes * (own || o->threads < 1 ? 1 : o->threads);
}

/* Gives the allocation of such a buffer one of the wider type. */
static bool widen(struct widening *w, tir_stmt alloc) {
  struct tir *ir = w->ir;
  tir_buffer old = tir_stmt_at(ir, alloc)->alloc.buffer;
  struct tir_buffer_node b = *tir_buffer_at(ir, old);
  bool fits = b.rank == 1 && !b.strides.count && !b.elem_offset && tir_type_lanes(b.type) == 1;
  bool stays = tir_annotation(ir, tir_stmt_at(ir, alloc)->annotations, TIR_WIDEN) != TIR_NONE;
  if (!w->wanted[old] || w->kept[old] || !w->again[old] || !fits || stays) return false;
  tir_expr size = ir->operands.at[b.shape];
  if (!is_held(w, alloc, size, w->wanted[old])) return false;
  tir_buffer made = tir_new_buffer(ir, b.name, w->wanted[old], &size, 1, b.scope);
  tir_buffer_at(ir, made)->where = alloc;
  tir_stmt_at(ir, alloc)->alloc.buffer = made;
  w->wide[old] = made;
  return true;
}

/* Loads go to what stands in a buffer's place, and need no cast to what it holds. */
static tir_expr load_wide(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  const struct widening *w = data;
  struct tir_expr_node n = *tir_at(ir, made);
  (void)before;
  if (n.kind == TIR_CAST && tir_type_of(ir, n.a) == n.type) return n.a;
  if (n.kind != TIR_LOAD || !w->wide[n.ref]) return made;
  tir_expr index = ir->operands.at[n.operands];
  assert(n.count == 1);
  return tir_load(ir, w->wide[n.ref], &index, 1, n.a);
}

/* What is stored becomes of the type of the buffer that takes the place of the old one. */
static void widen_store(struct widening *w, tir_stmt s) {
  struct tir *ir = w->ir;
  tir_buffer to = w->wide[tir_as(ir, s, TIR_STORE)->store.buffer];
  if (!to) return;
  tir_expr value = tir_stmt_at(ir, s)->store.value;
  tir_type type = tir_type_with_lanes(tir_buffer_at(ir, to)->type, tir_type_lanes(tir_type_of(ir, value)));
  value = tir_cast(ir, type, value);
  tir_as(ir, s, TIR_STORE)->store.value = value;
  tir_as(ir, s, TIR_STORE)->store.buffer = to;
}

bool lower_widen(struct lowering *low) {
  struct tir *ir = low->ir;
  uint32_t count = ir->buffers.count, room = 2 * count; /* each may get another */
  struct widening w = {.low = low, .ir = ir, .kept = lower_pointers(ir, low->body), .again = calloc(count, 1)};
  bool any = false;
  w.wanted = calloc(count, sizeof *w.wanted), w.wide = calloc(room, sizeof *w.wide);
  if (!w.again || !w.wanted || !w.wide) abort();
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) note_statement(&w, s);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_ALLOC)) any = widen(&w, s) || any;
  assert(ir->buffers.count <= room);
  if (any) lower_map(ir, low->body, TIR_HAS_LOAD, load_wide, &w);
  for (tir_stmt s = low->body; any && s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_STORE)) widen_store(&w, s);
  free(w.kept), free(w.again), free(w.wanted), free(w.wide);
  return true;
}

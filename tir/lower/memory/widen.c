/* Widen: a copy of bytes that dot products of pairs alone read, one element for all lanes, holds them as int16.
 *
 *   pad[e] = X[…]                                               becomes     pad[e] = i16(X[…])
 *   C = dot_lanes(C, pad[i:i + 2], W[…])                                    C = dot_lanes(C, pad[i:i + 2], W[…])
 *
 * Pairs of int16 are what such CPUs multiply (pmaddwd): an element is widened once, where it is copied, and not at each
 * of the columns that it is read for; then one load brings a pair to all lanes.
 * Requires: flat buffers, dot products (dots.c). Gives: nothing. Keeps what is computed, bit for bit. */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

struct widening {
  struct tir *ir;
  uint8_t *kept;    /* of each buffer, that it stays as it is */
  uint8_t *paired;  /* that a dot product reads a pair of it for all lanes */
  tir_buffer *wide; /* what stands in its place; 0: nothing does */
};

/* The buffer of which a dot product of pairs takes this operand, a pair for all lanes; TIR_NONE: it is another. */
static tir_buffer pair_of(const struct tir *ir, const struct tir_expr_node *call, tir_expr operand) {
  const struct tir_expr_node *load = tir_at(ir, operand);
  bool pair = load->kind == TIR_LOAD && !load->a && tir_type_lanes(load->type) == 2 && tir_type_lanes(call->type) > 1;
  return pair && tir_type_is_int(load->type) && tir_type_bits(load->type) == 8 ? load->ref : TIR_NONE;
}

static bool note_reads(void *data, tir_expr e) {
  struct widening *w = data;
  const struct tir *ir = w->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  bool dot = n->kind == TIR_CALL && n->count == 3 && !strcmp(tir_text(ir, n->ref), TIR_DOT_LANES);
  if (n->kind == TIR_LOAD) w->kept[n->ref] = 1;
  if (!dot || tir_dot_lanes_width(ir, n) != 2) return true;
  for (int i = 0; i < 3; i++) {
    tir_expr operand = tir_operands(ir, n->operands)[i];
    tir_buffer pair = i > 0 ? pair_of(ir, n, operand) : TIR_NONE;
    if (pair) w->paired[pair] = 1, operand = tir_operands(ir, tir_at(ir, operand)->operands)[0];
    tir_walk_expr(ir, operand, note_reads, w);
  }
  return false;
}

static void note_statement(struct widening *w, tir_stmt s) {
  const struct tir *ir = w->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(ir, s, all);
  for (uint32_t i = 0; i < count; i++) tir_walk_expr(ir, all[i], note_reads, w);
  for (uint32_t i = 0; n->kind == TIR_STORE && i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
    tir_walk_expr(ir, ir->operands.at[n->store.indices + i], note_reads, w);
}

/* Gives an allocation of such bytes a buffer of int16. */
static bool widen(struct widening *w, tir_stmt alloc) {
  struct tir *ir = w->ir;
  tir_buffer old = tir_stmt_at(ir, alloc)->alloc.buffer;
  struct tir_buffer_node b = *tir_buffer_at(ir, old);
  if (!w->paired[old] || w->kept[old] || b.rank != 1 || b.strides.count || b.elem_offset) return false;
  tir_expr size = ir->operands.at[b.shape];
  tir_buffer made = tir_new_buffer(ir, b.name, TIR_TYPE(TIR_INT, 16, 1), &size, 1, b.scope);
  tir_buffer_at(ir, made)->where = alloc;
  tir_stmt_at(ir, alloc)->alloc.buffer = made;
  w->wide[old] = made;
  return true;
}

static bool read_wide(struct tir *ir, void *data, struct access *a) {
  const struct widening *w = data;
  (void)ir;
  if (!w->wide[a->buffer]) return false;
  a->buffer = w->wide[a->buffer];
  return true;
}

bool lower_widen(struct lowering *low) {
  struct tir *ir = low->ir;
  if (!low->options || !(low->options->dots >> TIR_DOT_PAIRS & 1)) return true;
  uint32_t count = ir->buffers.count;
  struct widening w = {ir, lower_pointers(ir, low->body), calloc(count, 1), calloc(2 * count, sizeof *w.wide)};
  bool any = false;
  if (!w.paired || !w.wide) abort();
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) note_statement(&w, s);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_ALLOC)) any = widen(&w, s) || any;
  assert(ir->buffers.count <= 2 * count);
  for (tir_stmt s = low->body; any && s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_STORE) || !w.wide[tir_stmt_at(ir, s)->store.buffer]) continue;
    tir_expr value = tir_stmt_at(ir, s)->store.value;
    value = tir_cast(ir, TIR_TYPE(TIR_INT, 16, tir_type_lanes(tir_type_of(ir, value))), value);
    tir_stmt_at(ir, s)->store.value = value;
  }
  if (any) lower_rewrite(ir, low->body, read_wide, &w);
  free(w.kept), free(w.paired), free(w.wide);
  return true;
}

/* Forward: what an instruction reads of a copy whose elements lie in a parameter in the same order, it reads there.
 *
 *   for i in range(16):                                       becomes     … X[r * 1024 + e] …
 *       A[i * 64:i * 64 + 64] = X[r * 1024 + i * 64:…]
 *   … A[e] …
 *
 * So rows of an image that is a matrix, as a convolution of 1 x 1 multiplies, are loaded as tiles where they lie: a
 * tile waits long for what was stored just before.
 * Requires: flat buffers, vector expressions. Gives: nothing. Keeps what is computed. All stores to the copy must be
 * such elements, as far apart in both buffers everywhere while the copy lives; the function must write neither the
 * parameter nor by pointers to either; and the parameter must hold as many elements as the copy from there on. */
#include "tir/arith/bounds.h"
#include "tir/lower/lower.h"

#include <stdlib.h>

struct forwarding {
  struct tir *ir;
  tir_buffer copy, source; /* source TIR_NONE: no store was met */
  tir_expr by;             /* an element of the copy is so far from its own in the source */
};

static int64_t size_of(const struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (b->rank != 1 || !tir_is_int(ir, tir_operands(ir, b->shape)[0])) return 0;
  return tir_at(ir, tir_operands(ir, b->shape)[0])->imm;
}

/* The first of neighbours, or the one element. TIR_NONE: others. */
static tir_expr first_of(const struct tir *ir, tir_expr index) {
  const struct tir_expr_node *n = tir_at(ir, index);
  if (n->kind == TIR_RAMP) return tir_is_const(ir, n->b, 1) ? n->a : TIR_NONE;
  return tir_type_lanes(n->type) == 1 ? index : TIR_NONE;
}

/* Whether a store to the copy is of elements of the source as far apart as those before; notes the first. */
static bool is_copied(struct forwarding *f, tir_stmt store) {
  struct tir *ir = f->ir;
  struct tir_stmt_node s = *tir_stmt_at(ir, store);
  struct tir_expr_node value = *tir_at(ir, s.store.value);
  if (s.store.predicate || value.kind != TIR_LOAD || value.a || value.count != 1) return false;
  tir_expr to = first_of(ir, ir->operands.at[s.store.indices]), from = first_of(ir, ir->operands.at[value.operands]);
  if (!to || !from || tir_buffer_at(ir, value.ref)->type != tir_buffer_at(ir, f->copy)->type) return false;
  tir_expr by = tir_simplify(ir, tir_sub(ir, from, to));
  if (!f->source) f->source = value.ref, f->by = by;
  return f->source == value.ref && f->by == by;
}

/* Whether an expression changes while the buffer of an allocation lives. */
static bool changes(const struct tir *ir, tir_expr e, tir_stmt alloc) {
  if (tir_at(ir, e)->flags & (TIR_HAS_LOAD | TIR_HAS_CALL)) return true;
  for (tir_stmt s = alloc; s; s = tir_stmt_at(ir, s)->next)
    for (tir_stmt inner = s; inner; inner = tir_next(ir, inner, s)) {
      const struct tir_stmt_node *n = tir_stmt_at(ir, inner);
      if (n->kind == TIR_LOOP && tir_uses_var(ir, e, n->loop.var)) return true;
      if (n->kind == TIR_BIND && tir_uses_var(ir, e, n->bind.var)) return true;
    }
  return false;
}

static bool is_parameter(const struct tir *ir, tir_func func, tir_buffer buffer) {
  struct tir_span params = ir->funcs.at[func].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++)
    if (ir->params.at[i].buffer == buffer) return true;
  return false;
}

/* The first store to a buffer. */
static tir_stmt store_to(const struct lowering *low, tir_buffer buffer) {
  for (tir_stmt s = low->body; s; s = tir_next(low->ir, s, low->body))
    if (tir_is(low->ir, s, TIR_STORE) && tir_stmt_at(low->ir, s)->store.buffer == buffer) return s;
  return TIR_NONE;
}

static bool is_operand(const struct lowering *low, tir_buffer buffer) {
  for (tir_stmt s = low->body; s; s = tir_next(low->ir, s, low->body))
    if (lower_is_attr(low->ir, s, TIR_INSTRUCTION) && lower_uses_buffer(low->ir, s, buffer)) return true;
  return false;
}

/* Whether the source holds what each element of the copy would be read from. */
static bool is_within(const struct forwarding *f) {
  struct tir_bounds by = tir_bounds_of(f->ir, f->by);
  int64_t size = size_of(f->ir, f->copy), most = size_of(f->ir, f->source);
  return size > 0 && most > 0 && by.lo >= 0 && by.hi <= most - size;
}

static bool find(const struct lowering *low, struct forwarding *f, tir_stmt alloc, const uint8_t *pointed) {
  struct tir *ir = low->ir;
  const struct tir_buffer_node *b = tir_buffer_at(ir, f->copy);
  if (f->copy >= low->first_tile || pointed[f->copy] || b->data || !is_operand(low, f->copy)) return false;
  if (tir_memory_scope_of(ir, f->copy) != TIR_SCOPE_GLOBAL) return false;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_STORE) && tir_stmt_at(ir, s)->store.buffer == f->copy && !is_copied(f, s)) return false;
  return f->source && !pointed[f->source] && is_parameter(ir, low->func, f->source) && !store_to(low, f->source) &&
         is_within(f) && !changes(ir, f->by, alloc);
}

static bool read_source(struct tir *ir, void *data, struct access *a) {
  struct forwarding *f = data;
  if (a->buffer != f->copy) return false;
  assert(tir_buffer_at(ir, f->source)->rank == 1);
  const struct tir_expr_node *n = tir_at(ir, a->indices[0]);
  if (n->kind == TIR_RAMP)
    a->indices[0] = tir_ramp(ir, tir_add(ir, n->a, f->by), n->b, tir_type_lanes(n->type));
  else
    a->indices[0] = tir_add(ir, a->indices[0], f->by);
  a->buffer = f->source;
  return true;
}

/* Takes out a statement, and the loops that hold nothing else. */
static void remove_with_loops(struct tir *ir, tir_stmt s) {
  for (tir_stmt parent = tir_stmt_at(ir, s)->parent; parent; s = parent, parent = tir_stmt_at(ir, s)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->prev || n->next || !tir_is(ir, parent, TIR_LOOP)) break;
  }
  tir_kill(ir, s);
}

static void forward(const struct lowering *low, struct forwarding *f, tir_stmt alloc) {
  for (tir_stmt s = store_to(low, f->copy); s; s = store_to(low, f->copy)) remove_with_loops(low->ir, s);
  tir_kill(low->ir, alloc);
  lower_rewrite(low->ir, low->body, read_source, f);
}

bool lower_forward(struct lowering *low) {
  struct tir *ir = low->ir;
  uint8_t *pointed = lower_pointers(ir, low->body);
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    struct forwarding f = {ir, tir_stmt_at(ir, s)->alloc.buffer, TIR_NONE, TIR_NONE};
    if (!find(low, &f, s, pointed)) continue;
    tir_stmt before = tir_stmt_at(ir, s)->prev ? tir_stmt_at(ir, s)->prev : tir_stmt_at(ir, s)->parent;
    forward(low, &f, s);
    next = tir_next(ir, before, low->body);
  }
  free(pointed);
  return true;
}

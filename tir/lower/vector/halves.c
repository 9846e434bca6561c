/* Halves: a sum, a maximum or a minimum of what lies side by side in a local buffer takes halves of it together, in
 * vectors, not one element after the other: its chain is as long as the number of elements has bits.
 *
 *   for k in range(16): s[0] = s[0] + p[k]     becomes     for l in vectorized(8): h[l] = p[l] + p[l + 8]
 *                                                          for l in vectorized(4): h[l] = h[l] + h[l + 4]
 *                                                          for l in vectorized(2): h[l] = h[l] + h[l + 2]
 *                                                          s[0] = s[0] + (h[0] + h[1])
 *
 * Such loops end what lanes summed each for itself (rules/rule/add_rfactor.lua): of rows of a thousand elements they
 * took a fifth of the time.
 * Requires: no blocks; a free order of reductions, without which it does nothing. Gives: loops that strips.c takes
 * apart. Keeps: results but for the order of a sum; all loads of an iteration stand before its store. */
#include "tir/lower/lower.h"

enum { LEAST_ELEMENTS = 8, MOST_ELEMENTS = 128 };

/* One such loop: the store in it, its two operands, and how many elements there are. */
struct halving {
  tir_stmt loop, store;
  enum tir_kind kind;
  tir_expr sum, element; /* loads */
  int64_t count;
};

static bool is_plain_load(const struct tir *ir, tir_expr e) {
  return tir_at(ir, e)->kind == TIR_LOAD && !tir_at(ir, e)->a;
}

/* Whether the store's element is loaded by the expression. */
static bool is_of_store(const struct tir *ir, tir_expr load, const struct tir_stmt_node *store) {
  const struct tir_expr_node *n = tir_at(ir, load);
  if (!is_plain_load(ir, load) || n->ref != store->store.buffer) return false;
  for (uint32_t d = 0; d < n->count; d++)
    if (ir->operands.at[n->operands + d] != ir->operands.at[store->store.indices + d]) return false;
  return true;
}

/* Whether it loads, side by side, of a buffer that is allocated here, and not the one that is stored to. */
static bool is_row(struct tir *ir, tir_expr load, tir_var v, tir_buffer stored) {
  const struct tir_expr_node n = *tir_at(ir, load);
  int64_t step;
  if (!is_plain_load(ir, load) || n.ref == stored || !tir_buffer_at(ir, n.ref)->where) return false;
  for (uint32_t d = 0; d + 1 < n.count; d++)
    if (tir_uses_var(ir, ir->operands.at[n.operands + d], v)) return false;
  return lower_find_step(ir, ir->operands.at[n.operands + n.count - 1], v, &step) && step == 1;
}

static bool read_loop(struct tir *ir, tir_stmt loop, struct halving *h) {
  struct tir_stmt_node l = *tir_stmt_at(ir, loop);
  *h = (struct halving){.loop = loop, .store = l.first[TIR_BODY], .count = tir_loop_extent(ir, loop)};
  bool counts = l.loop_kind == TIR_SERIAL || l.loop_kind == TIR_UNROLLED;
  bool fits = h->count >= LEAST_ELEMENTS && h->count <= MOST_ELEMENTS && !(h->count & (h->count - 1));
  if (!counts || !fits || !h->store || !tir_is(ir, h->store, TIR_STORE) || !lower_is_alone(ir, h->store)) return false;
  struct tir_stmt_node s = *tir_stmt_at(ir, h->store);
  struct tir_expr_node value = *tir_at(ir, s.store.value);
  tir_type type = tir_buffer_at(ir, s.store.buffer)->type;
  bool reduces = value.kind == TIR_ADD || value.kind == TIR_MAX || value.kind == TIR_MIN;
  if (!reduces || !tir_type_is_float(type) || tir_type_bits(type) < 32 || tir_type_lanes(type) > 1) return false;
  if (s.store.predicate || lower_indices_use(ir, h->store, l.loop.var)) return false;
  h->kind = value.kind, h->sum = value.a, h->element = value.b;
  return is_of_store(ir, h->sum, &s) && is_row(ir, h->element, l.loop.var, s.store.buffer);
}

/* The load with another value in the place of the loop's variable. */
static tir_expr element_at(struct tir *ir, const struct halving *h, tir_expr at) {
  tir_subst_var(ir, tir_stmt_at(ir, h->loop)->loop.var, tir_add(ir, tir_stmt_at(ir, h->loop)->loop.min, at));
  tir_expr load = tir_subst(ir, h->element);
  tir_subst_clear(ir);
  return load;
}

/* Takes both halves of what is left together, in a vector. */
static tir_stmt take_halves(struct tir *ir, const struct halving *h, tir_buffer halves, int64_t half) {
  tir_var of_loop = tir_stmt_at(ir, h->loop)->loop.var;
  tir_name name = tir_var_at(ir, of_loop)->name;
  tir_type type = tir_var_at(ir, of_loop)->type;
  tir_expr zero = tir_int(ir, type, 0), width = tir_int(ir, type, half);
  tir_var lane = tir_new_var(ir, TIR_VAR_LOOP, name, type, zero, width);
  tir_expr low = tir_var_expr(ir, lane), high = tir_add(ir, low, width);
  bool first = 2 * half == h->count;
  tir_expr a = first ? element_at(ir, h, low) : tir_load(ir, halves, &low, 1, TIR_NONE);
  tir_expr b = first ? element_at(ir, h, high) : tir_load(ir, halves, &high, 1, TIR_NONE);
  tir_stmt loop = tir_new_loop(ir, lane, zero, width, TIR_VECTORIZED);
  tir_append(ir, loop, TIR_BODY, tir_new_store(ir, halves, &low, tir_binary(ir, h->kind, a, b)));
  return loop;
}

/* An allocation in front of the loops of one thread that stand around: those with one in them are not unrolled. */
static void allocate(struct tir *ir, tir_stmt s, tir_buffer buffer) {
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; tir_is(ir, p, TIR_LOOP); p = tir_stmt_at(ir, p)->parent) {
    if (tir_stmt_at(ir, p)->loop_kind == TIR_PARALLEL) break;
    s = p;
  }
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  tir_stmt_at(ir, alloc)->alloc.buffer = buffer;
  tir_buffer_at(ir, buffer)->where = alloc;
  tir_insert_before(ir, s, alloc);
}

static void halve(struct tir *ir, const struct halving *h) {
  struct tir_stmt_node s = *tir_stmt_at(ir, h->store);
  tir_type type = tir_buffer_at(ir, s.store.buffer)->type;
  tir_expr size = tir_int(ir, TIR_T_I32, h->count / 2), zero = tir_int(ir, TIR_T_I32, 0),
           one = tir_int(ir, TIR_T_I32, 1);
  tir_symbol name = tir_symbol_format(ir, "%s_halves", tir_buffer_name(ir, s.store.buffer));
  tir_buffer halves = tir_new_buffer(ir, name, type, &size, 1, tir_buffer_at(ir, s.store.buffer)->scope);
  allocate(ir, h->loop, halves);
  for (int64_t half = h->count / 2; half > 1; half /= 2)
    tir_insert_before(ir, h->loop, take_halves(ir, h, halves, half));
  tir_expr both =
      tir_binary(ir, h->kind, tir_load(ir, halves, &zero, 1, TIR_NONE), tir_load(ir, halves, &one, 1, TIR_NONE));
  tir_expr indices[TIR_MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, s.store.buffer)->rank;
  for (uint32_t d = 0; d < rank; d++) indices[d] = ir->operands.at[s.store.indices + d];
  tir_stmt last = tir_new_store(ir, s.store.buffer, indices, tir_binary(ir, h->kind, h->sum, both));
  tir_insert_before(ir, h->loop, last);
  tir_kill(ir, h->loop);
}

bool lower_halves(struct lowering *low) {
  struct tir *ir = low->ir;
  if (!low->options || !low->options->free_order) return true;
  for (tir_stmt s = low->body, next; s; s = next) {
    struct halving h;
    next = tir_next(ir, s, low->body);
    if (!tir_is(ir, s, TIR_LOOP) || !read_loop(ir, s, &h)) continue;
    next = tir_after(ir, s, low->body);
    halve(ir, &h);
  }
  return true;
}

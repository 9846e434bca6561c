/* Promote: where a loop adds into a tile of a buffer again and again, the tile is loaded before the loop, kept in
 * registers, and stored after it.
 *
 *   for k: for i, j: C[f(i, j)] = C[f(i, j)] + …     becomes     for i, j: r[i, j] = C[f(i, j)]
 *                                                                for k: for i, j: r[i, j] = r[i, j] + …
 *                                                                for i, j: C[f(i, j)] = r[i, j]
 * Requires: no blocks; perfect nests around the store, but for conditions of zeros.c, whose attributes end here. Gives:
 * small buffers of scope "register", whose loops are marked to be unrolled. Keeps: results: f is one-to-one in i, j and
 * free of k; nothing else in the nest touches C, as ranges of its inner loops might, nor has it another name. The order
 * of the passes decides whether LLVM keeps the tile in registers: this one comes before loops are unrolled and
 * vectorized, so that each element of the tile becomes a scalar or a vector of its own. */
#include "tir/analysis/analysis.h"
#include "tir/arith/affine.h"
#include "tir/lower/lower.h"

#include <stdlib.h>

enum { MOST_TILE_LOOPS = 16 };

struct nest {
  tir_stmt store, top;            /* top: the outermost loop that only repeats */
  tir_stmt tile[MOST_TILE_LOOPS]; /* loops that the indices use, innermost first */
  uint32_t tiles;
  tir_stmt conditions[MOST_TILE_LOOPS]; /* ifs between, innermost first; of the tile's variables only */
  uint32_t tests;
};

struct self_reads {
  tir_buffer buffer;
  uint32_t indices, rank;
  const struct tir *ir;
  bool other;
  uint32_t same;
};

static bool find_self(void *data, tir_expr e) {
  struct self_reads *s = data;
  const struct tir_expr_node *n = tir_at(s->ir, e);
  if (n->kind == TIR_DATA && n->ref == s->buffer) s->other = true;
  if (n->kind != TIR_LOAD || n->ref != s->buffer) return true;
  for (uint32_t i = 0; i < s->rank; i++)
    if (s->ir->operands.at[n->operands + i] != s->ir->operands.at[s->indices + i]) s->other = true;
  s->same += !n->a;
  s->other |= n->a != TIR_NONE;
  return false;
}

/* The store reads the element it writes, and no other element of the buffer; of a vector of several it is none. */
static bool updates_itself(struct tir *ir, tir_stmt store) {
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  if (tir_type_of(ir, n.store.value) != tir_buffer_at(ir, n.store.buffer)->type) return false;
  struct self_reads s = {n.store.buffer, n.store.indices, tir_buffer_at(ir, n.store.buffer)->rank, ir, false, 0};
  tir_walk_expr(ir, n.store.value, find_self, &s);
  for (uint32_t i = 0; i < s.rank; i++)
    if (tir_uses_buffer(ir, ir->operands.at[n.store.indices + i], n.store.buffer)) return false;
  return s.same > 0 && !s.other && !n.store.predicate;
}

/* Whether an expression depends on a loop that repeats the tile. */
static bool uses_repeating_loop(struct tir *ir, tir_expr e, const struct nest *nest) {
  for (tir_stmt l = nest->store; l != nest->top;) {
    l = tir_stmt_at(ir, l)->parent;
    if (!tir_is(ir, l, TIR_LOOP)) continue;
    bool in_tile = false;
    for (uint32_t i = 0; i < nest->tiles; i++) in_tile |= nest->tile[i] == l;
    if (!in_tile && tir_uses_var(ir, e, tir_as(ir, l, TIR_LOOP)->loop.var)) return true;
  }
  return false;
}

/* How often the loop runs depends on the buffer: each time that one around comes to it, on what was stored last. */
static bool counts_by(const struct tir *ir, tir_stmt loop, tir_buffer buffer) {
  if (!tir_is(ir, loop, TIR_LOOP)) return false;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  return tir_uses_buffer(ir, n.loop.min, buffer) || tir_uses_buffer(ir, n.loop.extent, buffer);
}

/* Climbs from the store through the tile's loops, then through the loops that repeat it. */
static bool read_nest(struct tir *ir, tir_stmt store, struct nest *nest) {
  *nest = (struct nest){.store = store};
  bool repeating = false;
  tir_buffer buffer = tir_as(ir, store, TIR_STORE)->store.buffer;
  for (tir_stmt s = store; lower_is_alone(ir, s) && !counts_by(ir, s, buffer);) {
    tir_stmt p = tir_stmt_at(ir, s)->parent;
    struct tir_stmt_node n = *tir_stmt_at(ir, p);
    bool of_zeros = lower_is_outside(ir, p) || lower_is_outside(ir, n.parent);
    if (of_zeros) { /* elements stay as they are where it does not hold */
      assert(!n.first[TIR_ELSE]);
    } else if (n.kind == TIR_IF && !n.first[TIR_ELSE] && nest->tests < MOST_TILE_LOOPS && !repeating) {
      nest->conditions[nest->tests++] = p;
    } else if (n.kind == TIR_LOOP && n.loop_kind != TIR_PARALLEL && n.loop_kind != TIR_THREAD_BINDING) {
      bool tile = lower_indices_use(ir, store, n.loop.var);
      if (tile && repeating) break;
      if (tile && (nest->tiles == MOST_TILE_LOOPS || tir_loop_extent(ir, p) < 1)) break;
      if (!tile && n.loop_kind == TIR_VECTORIZED) return false;
      if (tile)
        nest->tile[nest->tiles++] = p;
      else
        repeating = true, nest->top = p;
    } else {
      break;
    }
    s = p;
  }
  if (!nest->top) return false;
  for (uint32_t i = 0; i < nest->tests; i++) {
    if (!tir_is_below(ir, nest->conditions[i], nest->top)) { /* stands above the repeated loops: no matter */
      nest->tests = i;
      break;
    }
    tir_expr c = tir_stmt_at(ir, nest->conditions[i])->test.condition;
    if (uses_repeating_loop(ir, c, nest) || (tir_at(ir, c)->flags & TIR_HAS_LOAD)) return false;
  }
  uint32_t inside = 0; /* tile loops that stand above the repeated ones are no part of it */
  while (inside < nest->tiles && tir_is_below(ir, nest->tile[inside], nest->top)) inside++;
  nest->tiles = inside;
  return true;
}

/* Whether the terms are numbers with a digit a variable: each step is wider than what all smaller ones reach. Marks the
 * variables. Sorts the terms. */
static bool is_number(const struct tir *ir, struct tir_term *terms, uint32_t count, const struct nest *nest,
                      uint32_t *seen) {
  int64_t reach = 0;
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t k = i + 1; k < count; k++)
      if (terms[k].coefficient < terms[i].coefficient) {
        struct tir_term t = terms[i];
        terms[i] = terms[k], terms[k] = t;
      }
    const struct tir_expr_node *n = tir_at(ir, terms[i].atom);
    if (n->kind != TIR_VAR || n->lo == INT64_MIN || n->hi == INT64_MAX || terms[i].coefficient <= reach) return false;
    reach = tir_sat_add(reach, tir_sat_mul(terms[i].coefficient, n->hi - n->lo));
    for (uint32_t v = 0; v < nest->tiles; v++)
      if (tir_as(ir, nest->tile[v], TIR_LOOP)->loop.var == n->ref) *seen |= 1u << v;
  }
  return true;
}

enum { MOST_TERMS = 64 };

/* The terms of a sum that depend on the tile's loops: the rest is the same for all its elements. False: too many. */
static bool terms_of_tile(struct tir *ir, tir_expr e, const struct nest *nest, struct tir_term *terms,
                          uint32_t *count) {
  struct tir_linear l = tir_linear_of(ir, e);
  *count = 0;
  for (uint32_t k = 0; k < l.count && l.count <= MOST_TERMS; k++) {
    struct tir_term t = ir->terms.at[l.first + k];
    bool used = false;
    for (uint32_t v = 0; v < nest->tiles && !used; v++)
      used = tir_uses_var(ir, t.atom, tir_as(ir, nest->tile[v], TIR_LOOP)->loop.var);
    if (used) terms[(*count)++] = t;
  }
  return l.count <= MOST_TERMS;
}

/* What y // c and z % c are together: y, where z is y, or y is z % (a multiple of c); TIR_NONE: no such pair. */
static tir_expr join(const struct tir *ir, tir_expr quotient, tir_expr remainder) {
  const struct tir_expr_node *q = tir_at(ir, quotient), *r = tir_at(ir, remainder);
  if (q->kind != TIR_FLOORDIV || r->kind != TIR_FLOORMOD || q->b != r->b || !tir_is_int(ir, q->b)) return TIR_NONE;
  const struct tir_expr_node *y = tir_at(ir, q->a);
  bool within = y->kind == TIR_FLOORMOD && y->a == r->a && tir_is_int(ir, y->b) &&
                tir_at(ir, y->b)->imm % tir_at(ir, q->b)->imm == 0;
  return q->a == r->a || within ? q->a : TIR_NONE;
}

/* Rows of a tile may go on from a line of the buffer to the next: a quotient and a remainder of one sum are the sum. */
static void join_digits(const struct tir *ir, tir_expr *indices, uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++)
    for (uint32_t k = 0; k < *count; k++) {
      tir_expr both = join(ir, indices[i], indices[k]);
      if (!both) continue;
      indices[i] = both;
      indices[k] = indices[--*count];
      i = k = 0; /* again from the first pair */
    }
}

static bool is_one_to_one(struct tir *ir, const struct nest *nest) {
  struct tir_stmt_node n = *tir_stmt_at(ir, nest->store);
  uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
  tir_var vars[MOST_TILE_LOOPS];
  tir_expr indices[TIR_MOST_RANK];
  struct tir_term terms[MOST_TERMS];
  if (nest->tiles == 0) return true;
  if (rank > TIR_MOST_RANK) return false;
  for (uint32_t i = 0; i < nest->tiles; i++) vars[i] = tir_as(ir, nest->tile[i], TIR_LOOP)->loop.var;
  uint32_t used = 0, seen = 0, count;
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr e = ir->operands.at[n.store.indices + i];
    if (!terms_of_tile(ir, e, nest, terms, &count)) return false;
    if (count == 1) terms[0].coefficient = 1; /* as one-to-one as before */
    if (count) indices[used++] = tir_from_terms(ir, tir_type_of(ir, e), 0, terms, count);
  }
  join_digits(ir, indices, &used);
  bool numbers = true;
  for (uint32_t i = 0; i < used && numbers; i++)
    numbers = terms_of_tile(ir, indices[i], nest, terms, &count) && is_number(ir, terms, count, nest, &seen);
  if (numbers && seen == (1u << nest->tiles) - 1) return true;
  return tir_detect_iter_map(ir, indices, used, vars, nest->tiles, TIR_NONE, TIR_MAP_BIJECTIVE, true, NULL);
}

/* The tile's elements in registers: it pays while they fit. */
static bool fits(struct lowering *low, const struct nest *nest) {
  const struct tir *ir = low->ir;
  int vector_bits = lower_vector_bits(low);
  int registers = low->options && low->options->vector_registers ? low->options->vector_registers : 16;
  tir_type type = tir_buffer_at(ir, tir_as(ir, nest->store, TIR_STORE)->store.buffer)->type;
  int64_t elements = 1, lanes = 1;
  for (uint32_t i = 0; i < nest->tiles; i++) {
    int64_t extent = tir_loop_extent(ir, nest->tile[i]);
    if (tir_stmt_at(ir, nest->tile[i])->loop_kind == TIR_VECTORIZED)
      lanes = extent;
    else
      elements *= extent;
    if (elements > 4096) return false;
  }
  int64_t vectors = (lanes * tir_type_bits(type) + vector_bits - 1) / vector_bits;
  return elements * vectors <= registers;
}

/* The tile's loops, around a store that `write` says; replaces nothing. */
static tir_stmt copy_loops(struct tir *ir, const struct nest *nest, tir_buffer registers, const tir_expr *at,
                           bool load) {
  struct tir_stmt_node n = *tir_stmt_at(ir, nest->store);
  uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
  tir_stmt s;
  tir_expr indices[TIR_MOST_RANK];
  for (uint32_t i = 0; i < rank; i++) indices[i] = ir->operands.at[n.store.indices + i];
  if (load)
    s = tir_new_store(ir, registers, at, tir_load(ir, n.store.buffer, indices, rank, TIR_NONE));
  else
    s = tir_new_store(ir, n.store.buffer, indices,
                      tir_load(ir, registers, at, tir_buffer_at(ir, registers)->rank, TIR_NONE));
  for (uint32_t i = 0; i < nest->tests; i++) {
    tir_stmt test = tir_new_if(ir, tir_stmt_at(ir, nest->conditions[i])->test.condition);
    tir_append(ir, test, TIR_BODY, s);
    s = test;
  }
  for (uint32_t i = 0; i < nest->tiles; i++) {
    struct tir_stmt_node l = *tir_stmt_at(ir, nest->tile[i]);
    tir_stmt loop = tir_new_loop(ir, l.loop.var, l.loop.min, l.loop.extent, (enum tir_loop_kind)l.loop_kind);
    tir_append(ir, loop, TIR_BODY, s);
    s = loop;
  }
  tir_stmt copy = tir_clone_stmt(ir, s); /* variables of its own */
  tir_kill(ir, s);
  return copy;
}

struct redirection {
  tir_buffer from, to;
  const tir_expr *at;
  uint32_t rank;
};

static bool redirect(struct tir *ir, void *data, struct access *a) {
  const struct redirection *r = data;
  (void)ir;
  if (a->buffer != r->from) return false;
  a->buffer = r->to;
  a->count = r->rank;
  for (uint32_t i = 0; i < r->rank; i++) a->indices[i] = r->at[i];
  assert(a->count && a->count <= TIR_MOST_RANK);
  return true;
}

static void promote(struct tir *ir, const struct nest *nest) {
  assert(nest->tiles <= MOST_TILE_LOOPS && tir_is_below(ir, nest->store, nest->top));
  struct tir_stmt_node n = *tir_stmt_at(ir, nest->store);
  tir_type type = tir_buffer_at(ir, n.store.buffer)->type;
  tir_expr shape[MOST_TILE_LOOPS + 1], at[MOST_TILE_LOOPS + 1];
  uint32_t rank = nest->tiles;
  for (uint32_t i = 0; i < rank; i++) { /* outermost first, but the vectorized loop last, to be contiguous */
    struct tir_stmt_node l = *tir_stmt_at(ir, nest->tile[rank - 1 - i]);
    shape[i] = l.loop.extent;
    at[i] = tir_sub(ir, tir_var_expr(ir, l.loop.var), l.loop.min);
  }
  for (uint32_t i = 0; i + 1 < rank; i++)
    if (tir_stmt_at(ir, nest->tile[rank - 1 - i])->loop_kind == TIR_VECTORIZED) {
      tir_expr s = shape[i], x = at[i];
      for (uint32_t k = i; k + 1 < rank; k++) shape[k] = shape[k + 1], at[k] = at[k + 1];
      shape[rank - 1] = s, at[rank - 1] = x;
      break;
    }
  if (!rank) {
    shape[0] = tir_int(ir, TIR_T_I32, 1), at[0] = tir_int(ir, TIR_T_I32, 0);
    rank = 1;
  }
  tir_symbol name = tir_symbol_format(ir, "%s_register", tir_buffer_name(ir, n.store.buffer));
  tir_buffer registers = tir_new_buffer(ir, name, type, shape, rank, tir_symbol_of(ir, "register"));
  for (uint32_t i = 0; i < nest->tiles; i++)
    if (tir_stmt_at(ir, nest->tile[i])->loop_kind == TIR_SERIAL)
      tir_stmt_at(ir, nest->tile[i])->loop_kind = TIR_UNROLLED;
  tir_stmt before = copy_loops(ir, nest, registers, at, true), after = copy_loops(ir, nest, registers, at, false);
  struct redirection r = {n.store.buffer, registers, at, rank};
  lower_rewrite(ir, nest->store, redirect, &r);
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  tir_stmt_at(ir, alloc)->alloc.buffer = registers;
  tir_buffer_at(ir, registers)->where = alloc;
  tir_insert_before(ir, nest->top, alloc);
  tir_insert_before(ir, nest->top, before);
  tir_insert_after(ir, nest->top, after);
  assert(tir_stmt_at(ir, before)->parent == tir_stmt_at(ir, nest->top)->parent);
}

bool lower_promote(struct lowering *low) {
  struct tir *ir = low->ir;
  uint8_t *pointers = lower_pointers(ir, low->body); /* buffers that are made here stand behind what is looked at */
  low->first_tile = ir->buffers.count;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    struct nest nest;
    if (!tir_is(ir, s, TIR_STORE) || pointers[tir_as(ir, s, TIR_STORE)->store.buffer] || !updates_itself(ir, s) ||
        !read_nest(ir, s, &nest))
      continue;
    if (fits(low, &nest) && is_one_to_one(ir, &nest)) {
      tir_stmt rest = tir_after(ir, nest.top, low->body);
      promote(ir, &nest);
      next = rest;
    }
  }
  free(pointers);
  lower_zeros_forget(low);
  return true;
}

/* Zeros: a product adds nothing to a sum where a factor of it is one of the zeros around an image. Conditions say so.
 * One that holds for many stores stands outside of them; by the others partition.c cuts loops, and what then certainly
 * adds nothing vanishes.
 *
 *   for h: for k: C[h] = C[h] + pad[h + k] * W[k]     becomes     … T.attr(0, "zeros", 0): if 1 <= h + k: C[h] = …
 *   for h: for k: for c: C[h] = C[h] + …    becomes     … T.attr(0, "zeros_outside", 0): if 1 <= h + k: for c: …
 *
 * Requires: no blocks. Gives: attributes "zeros" around stores, until lower_zeros_settle, and "zeros_outside", until
 * lower_zeros_forget. Keeps: results; of floats, where products with zero are zero, as the options say: no factor is
 * infinite or NaN.
 * A zero is the other value of a choice, if_then_else(c, x, 0), in the product itself or in the only store of a buffer
 * that it loads from. Conditions that few iterations fail are left out, but those of choices that can stand outside; as
 * are those of vectors' lanes: a masked lane saves nothing; and what an instruction does stays whole. */
#include "tir/lower/lower.h"

#include "tir/analysis/loads.h"
#include "tir/arith/linear.h"

#include <stdlib.h>

#define ZEROS   "zeros"
#define OUTSIDE "zeros_outside"
enum { MOST_CONDITIONS = 16, MOST_TERMS = 12, MOST_POINTS = 1 << 16, LEAST_REPEATS = 16 };
static const double LEAST_SHARE = 1.0 / 64; /* of iterations, that a condition saves */
static const double LEAST_OUTSIDE = 64;     /* stores, that a test in front of them is nothing to */

struct zeros {
  struct tir *ir;
  tir_stmt *writers; /* by buffer: the only store to it; TIR_NONE: it has none, or may be written otherwise */
  bool *changes;     /* by buffer: something may write it */
  tir_stmt store;    /* at hand */
  tir_expr conditions[MOST_CONDITIONS];
  uint32_t count;
};

/* ---- What is zero where ---- */

static void find_writers(struct zeros *z, tir_stmt body) {
  const struct tir *ir = z->ir;
  uint8_t *taken = lower_pointers(ir, body);
  tir_stmt *writers = calloc(ir->buffers.count, sizeof *writers);
  bool *changes = calloc(ir->buffers.count, sizeof *changes);
  if (!changes || !writers) abort();
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    tir_buffer b = n->store.buffer;
    tir_stmt where = tir_buffer_at(ir, b)->where;
    bool plain = !n->store.predicate && !taken[b] && where && tir_is(ir, where, TIR_ALLOC);
    writers[b] = plain && !changes[b] ? s : TIR_NONE;
    changes[b] = true;
  }
  for (uint32_t b = 0; b < ir->buffers.count; b++) changes[b] |= taken[b];
  free(taken);
  z->writers = writers, z->changes = changes;
}

static bool is_zero(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, tir_without_casts(ir, e));
  return (n->kind == TIR_FLOAT_IMM && n->real == 0) || (n->kind == TIR_INT_IMM && n->imm == 0);
}

/* The condition without which a value is zero; TIR_NONE: none is known. */
static tir_expr condition_of(const struct tir *ir, tir_expr value) {
  const struct tir_expr_node *n = tir_at(ir, tir_without_casts(ir, value));
  if (n->kind == TIR_SELECT) return is_zero(ir, n->c) ? n->a : TIR_NONE;
  if (n->kind != TIR_CALL || !tir_is_choice(ir, n)) return TIR_NONE;
  const tir_expr *operands = tir_operands(ir, n->operands);
  return is_zero(ir, operands[2]) ? operands[0] : TIR_NONE;
}

/* ---- Conditions of one place in terms of another ---- */

/* Whether e uses a loop around s that is not around other. */
static bool uses_own_loop(const struct tir *ir, tir_expr e, tir_stmt s, tir_stmt other) {
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p && !tir_is_below(ir, other, p); p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && tir_uses_var(ir, e, tir_as(ir, p, TIR_LOOP)->loop.var)) return true;
  return false;
}

static bool passes(const struct tir *ir, const void *allocated, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_LOAD || n->kind == TIR_LET) return true;
  if (n->kind != TIR_VAR || tir_var_at(ir, n->ref)->kind == TIR_VAR_PLAIN) return false;
  for (tir_stmt p = tir_stmt_at(ir, *(const tir_stmt *)allocated)->parent; p; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && tir_as(ir, p, TIR_LOOP)->loop.var == n->ref) return false;
  return true;
}

/* e is the same from when the buffer is allocated: what it was when an element was written it is when that is read. */
static bool lasts(const struct tir *ir, tir_expr e, tir_stmt allocated) {
  return !tir_any_node(ir, e, 0, passes, &allocated);
}

/* The terms of an index expression; false: too many. */
static bool read_terms(struct tir *ir, tir_expr e, struct tir_term *terms, uint32_t *count, int64_t *constant) {
  struct tir_linear l = tir_linear_of(ir, e);
  *count = l.count, *constant = l.constant;
  if (l.count > MOST_TERMS) return false;
  for (uint32_t i = 0; i < l.count; i++) terms[i] = ir->terms.at[l.first + i];
  return true;
}

/* What the writer's loops made of an atom when they wrote the element that is loaded: of an index a + rest of the
 * store, where a is the atom and the rest is the same for both, index - rest of the load. TIR_NONE: no index says. */
static tir_expr solve(struct zeros *z, tir_stmt writer, tir_expr load, tir_expr atom, tir_type type) {
  struct tir *ir = z->ir;
  tir_buffer buffer = tir_at(ir, load)->ref;
  assert(z->writers[buffer] == writer && writer != z->store);
  tir_stmt allocated = tir_buffer_at(ir, buffer)->where;
  for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) {
    tir_expr written = tir_operands(ir, tir_as(ir, writer, TIR_STORE)->store.indices)[d];
    tir_expr read = tir_operands(ir, tir_at(ir, load)->operands)[d];
    struct tir_term terms[MOST_TERMS];
    uint32_t count;
    int64_t constant;
    if (!tir_is_index(ir, written) || !tir_is_index(ir, read) || !read_terms(ir, written, terms, &count, &constant))
      continue;
    bool has = false, other = false;
    for (uint32_t i = 0; i < count; i++) {
      bool own = terms[i].atom == atom && terms[i].coefficient == 1;
      has |= own;
      other |= !own && (uses_own_loop(ir, terms[i].atom, writer, z->store) || !lasts(ir, terms[i].atom, allocated));
    }
    if (!has || other) continue;
    struct tir_sum sum = tir_sum_open(ir);
    tir_type of = tir_type_of(ir, read); /* the writer's loops may be of another type */
    tir_sum_add(ir, &sum, read, 1);
    for (uint32_t i = 0; i < count; i++)
      if (terms[i].atom != atom) tir_sum_add(ir, &sum, tir_cast(ir, of, terms[i].atom), -terms[i].coefficient);
    sum.constant -= constant;
    if (!sum.overflow) return tir_cast(ir, type, tir_sum_close(ir, &sum, of));
    tir_sum_drop(ir, &sum);
  }
  return TIR_NONE;
}

/* A comparison as sum <= 0. TIR_NONE: it is no linear one. */
static tir_expr sum_of(struct tir *ir, tir_expr comparison) {
  struct tir_sum sum;
  tir_type type = tir_type_of(ir, tir_at(ir, comparison)->a);
  return lower_open_condition(ir, comparison, &sum) ? tir_sum_close(ir, &sum, type) : TIR_NONE;
}

/* The wider of the types of e and of the load's indices: loops here and there may be of several. */
static tir_type wide_type(const struct tir *ir, tir_expr load, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, load);
  tir_type type = tir_type_of(ir, e);
  for (uint32_t d = 0; d < n->count; d++) {
    tir_expr index = tir_operands(ir, n->operands)[d];
    if (tir_is_index(ir, index) && tir_type_bits(tir_type_of(ir, index)) > tir_type_bits(type))
      type = tir_type_of(ir, index);
  }
  return type;
}

/* A sum of the writer's loops, as one of those around the load; TIR_NONE: not known. */
static tir_expr translate(struct zeros *z, tir_stmt writer, tir_expr load, tir_expr e) {
  struct tir *ir = z->ir;
  tir_type type = wide_type(ir, load, e);
  tir_stmt allocated = tir_buffer_at(ir, tir_at(ir, load)->ref)->where;
  struct tir_term terms[MOST_TERMS];
  tir_expr made[MOST_TERMS];
  uint32_t count;
  int64_t constant;
  if (!read_terms(ir, e, terms, &count, &constant)) return TIR_NONE;
  for (uint32_t i = 0; i < count; i++) {
    bool own = uses_own_loop(ir, terms[i].atom, writer, z->store);
    if (!own && !lasts(ir, terms[i].atom, allocated)) return TIR_NONE;
    made[i] = own ? solve(z, writer, load, terms[i].atom, type) : tir_cast(ir, type, terms[i].atom);
    if (!made[i]) return TIR_NONE;
  }
  struct tir_sum sum = tir_sum_open(ir);
  for (uint32_t i = 0; i < count; i++) tir_sum_add(ir, &sum, made[i], terms[i].coefficient);
  sum.constant += constant;
  if (!sum.overflow) return tir_sum_close(ir, &sum, type);
  tir_sum_drop(ir, &sum);
  return TIR_NONE;
}

/* ---- What conditions are worth ---- */

static bool uses_lanes(const struct tir *ir, tir_stmt store, tir_expr e) {
  for (tir_stmt p = tir_stmt_at(ir, store)->parent; p; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && tir_stmt_at(ir, p)->loop_kind == TIR_VECTORIZED &&
        tir_uses_var(ir, e, tir_as(ir, p, TIR_LOOP)->loop.var))
      return true;
  return false;
}

struct points {
  struct tir_term terms[MOST_TERMS];
  int64_t lo[MOST_TERMS], hi[MOST_TERMS];
  uint32_t count;
  uint64_t all, above; /* those at which the sum is above 0 */
};

static void visit_points(struct points *p, uint32_t i, int64_t sum) {
  if (i == p->count) {
    p->all++, p->above += sum > 0;
    return;
  }
  for (int64_t v = p->lo[i]; v <= p->hi[i]; v++) visit_points(p, i + 1, sum + p->terms[i].coefficient * v);
}

/* The share of its values at which a sum is above 0, as if each value of an atom came as often; 0: there are many. */
static double share_above(struct tir *ir, tir_expr e) {
  struct points p = {.all = 0};
  int64_t constant;
  uint64_t product = 1;
  if (!read_terms(ir, e, p.terms, &p.count, &constant)) return 0;
  for (uint32_t i = 0; i < p.count; i++) {
    const struct tir_expr_node *n = tir_at(ir, p.terms[i].atom);
    if (n->lo < INT32_MIN || n->hi > INT32_MAX || llabs(p.terms[i].coefficient) > INT32_MAX) return 0;
    p.lo[i] = n->lo, p.hi[i] = n->hi;
    product *= (uint64_t)(n->hi - n->lo + 1);
    if (product > MOST_POINTS) return 0;
  }
  visit_points(&p, 0, constant);
  return (double)p.above / (double)p.all;
}

/* ---- Conditions that stand outside ---- */

static void wrap_in_test(struct tir *ir, tir_stmt s, tir_expr condition) {
  assert(condition && s);
  tir_stmt test = tir_new_if(ir, condition);
  tir_wrap(ir, s, test);
}

/* The outermost loop, of those that hold nothing else, in which the condition does not change; TIR_NONE: they store too
 * seldom for a test to cost nothing. */
static tir_stmt find_outside(const struct tir *ir, tir_stmt store, tir_expr condition) {
  tir_stmt place = TIR_NONE;
  double times = 1;
  for (tir_stmt s = store, p; !tir_stmt_at(ir, s)->prev && !tir_stmt_at(ir, s)->next; s = p) {
    p = tir_stmt_at(ir, s)->parent;
    const struct tir_stmt_node *n = tir_stmt_at(ir, p);
    if (n->kind == TIR_LOOP) {
      int64_t extent = tir_loop_extent(ir, p);
      if (n->loop_kind == TIR_PARALLEL || extent < 1 || tir_uses_var(ir, condition, n->loop.var)) break;
      if (n->loop_kind != TIR_VECTORIZED) times *= (double)extent;
      place = p;
    } else if ((n->kind != TIR_IF || n->first[TIR_ELSE]) && !lower_is_attr(ir, p, OUTSIDE)) {
      break;
    }
  }
  return times >= LEAST_OUTSIDE ? place : TIR_NONE;
}

static bool is_unsteady(const struct tir *ir, const void *context, tir_expr e) {
  const struct zeros *z = context;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_LOAD) return false;
  bool unsteady = z->changes[n->ref];
  for (uint32_t d = 0; d < n->count && !unsteady; d++) {
    const struct tir_expr_node *extent = tir_at(ir, tir_operands(ir, tir_buffer_at(ir, n->ref)->shape)[d]);
    unsteady = !tir_is_const(ir, tir_operands(ir, n->operands)[d], 0) || extent->kind != TIR_INT_IMM || extent->imm < 1;
  }
  return unsteady;
}

/* Whether all that it loads is what it was when the function began, and it may be computed anywhere: of first elements,
 * which are there, and dividing by none that may be 0. */
static bool is_steady(const struct zeros *z, tir_expr e) {
  if (!(tir_at(z->ir, e)->flags & TIR_HAS_LOAD)) return true;
  return !tir_any_node(z->ir, e, TIR_HAS_LOAD, is_unsteady, z) && !tir_may_divide_by_zero(z->ir, e);
}

/* Puts the condition where it is seldom asked. comparison: what says the same in the stored value, or TIR_NONE. */
static bool put_outside(struct zeros *z, tir_expr condition, tir_expr comparison) {
  struct tir *ir = z->ir;
  if (!is_steady(z, condition)) return false;
  tir_stmt place = find_outside(ir, z->store, condition);
  if (!place) return false;
  wrap_in_test(ir, place, condition);
  lower_wrap_in_attr(ir, tir_stmt_at(ir, place)->parent, OUTSIDE, TIR_NONE);
  if (!comparison) return true;
  tir_expr value = tir_as(ir, z->store, TIR_STORE)->store.value;
  value = lower_assume_choices(ir, value, &comparison, 1);
  tir_as(ir, z->store, TIR_STORE)->store.value = value;
  return true;
}

/* comparison: what says so in the value itself, or TIR_NONE. */
static void add_sum(struct zeros *z, tir_expr e, tir_expr comparison) {
  struct tir *ir = z->ir;
  if (!e || z->count == MOST_CONDITIONS || uses_lanes(ir, z->store, e)) return;
  tir_expr condition = tir_make(ir, TIR_LE, e, tir_int(ir, tir_type_of(ir, e), 0));
  for (uint32_t i = 0; i < z->count; i++)
    if (z->conditions[i] == condition) return;
  bool saves = share_above(ir, e) >= LEAST_SHARE;
  if ((saves || comparison) && put_outside(z, condition, comparison)) return;
  if (saves) z->conditions[z->count++] = condition;
}

/* writer: where the condition stands, or the store at hand; load: what brings it here. */
static void add_condition(struct zeros *z, tir_expr condition, tir_stmt writer, tir_expr load) {
  struct tir *ir = z->ir;
  const struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind == TIR_AND) {
    add_condition(z, n.a, writer, load);
    add_condition(z, n.b, writer, load);
  } else if (n.kind >= TIR_LT && n.kind <= TIR_GE) {
    tir_expr e = sum_of(ir, condition);
    if (!load && !e)
      put_outside(z, condition, condition); /* of data */
    else if (load)
      add_sum(z, e ? translate(z, writer, load, e) : e, TIR_NONE);
    else
      add_sum(z, e, condition);
  }
}

/* ---- Sums of products ---- */

static void visit_factors(struct zeros *z, tir_expr e) {
  struct tir *ir = z->ir;
  const struct tir_expr_node n = *tir_at(ir, e);
  tir_expr condition = condition_of(ir, e);
  if (condition) {
    add_condition(z, condition, z->store, TIR_NONE);
  } else if (n.kind == TIR_MUL) {
    visit_factors(z, n.a);
    visit_factors(z, n.b);
  } else if (n.kind == TIR_CAST) {
    visit_factors(z, n.a);
  } else if (n.kind == TIR_LOAD && !n.a && z->writers[n.ref] && z->writers[n.ref] != z->store) {
    tir_stmt writer = z->writers[n.ref];
    condition = condition_of(ir, tir_as(ir, writer, TIR_STORE)->store.value);
    if (condition) add_condition(z, condition, writer, e);
  }
}

static bool loads_what_it_stores(const struct tir *ir, tir_stmt store, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  const struct tir_stmt_node *s = tir_stmt_at(ir, store);
  if (n->kind != TIR_LOAD || n->a || n->ref != s->store.buffer) return false;
  for (uint32_t i = 0; i < tir_buffer_at(ir, n->ref)->rank; i++)
    if (tir_operands(ir, n->operands)[i] != tir_operands(ir, s->store.indices)[i]) return false;
  return true;
}

/* What a store adds to its element, where zeros in it may be left out; TIR_NONE: it does something else. */
static tir_expr added_by(const struct lowering *low, tir_stmt store) {
  const struct tir *ir = low->ir;
  const struct tir_stmt_node s = *tir_stmt_at(ir, store);
  const struct tir_expr_node value = *tir_at(ir, s.store.value);
  bool finite = low->options && low->options->finite;
  if (value.kind != TIR_ADD || s.store.predicate || (tir_type_is_float(value.type) && !finite)) return TIR_NONE;
  if (loads_what_it_stores(ir, store, value.a)) return value.b;
  return loads_what_it_stores(ir, store, value.b) ? value.a : TIR_NONE;
}

bool lower_is_of_zeros(const struct tir *ir, tir_stmt s) {
  return lower_is_attr(ir, s, ZEROS) || lower_is_attr(ir, s, OUTSIDE);
}

bool lower_is_outside(const struct tir *ir, tir_stmt s) { return lower_is_attr(ir, s, OUTSIDE); }

/* Whether an instruction does what the statement says: it multiplies zeros, too. */
static bool is_of_instruction(const struct tir *ir, tir_stmt s) {
  while (s && !lower_is_attr(ir, s, TIR_INSTRUCTION)) s = tir_stmt_at(ir, s)->parent;
  return s != TIR_NONE;
}

bool lower_zeros(struct lowering *low) {
  struct tir *ir = low->ir;
  struct zeros z = {.ir = ir};
  find_writers(&z, low->body);
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!tir_is(ir, s, TIR_STORE) || is_of_instruction(ir, s)) continue;
    z.store = s, z.count = 0;
    tir_expr added = added_by(low, s);
    if (added) visit_factors(&z, added);
    if (!z.count) continue;
    tir_expr all = z.conditions[0];
    for (uint32_t i = 1; i < z.count; i++) all = tir_binary(ir, TIR_AND, all, z.conditions[i]);
    wrap_in_test(ir, s, all);
    lower_wrap_in_attr(ir, tir_stmt_at(ir, s)->parent, ZEROS, TIR_NONE);
  }
  free(z.writers);
  free(z.changes);
  return true;
}

/* ---- After loops were cut ---- */

/* The outermost statement around s, of loops that hold nothing else, in which the condition does not change. *repeats:
 * how often these loops repeat what the store does. */
static tir_stmt find_place(const struct tir *ir, tir_stmt s, tir_stmt store, tir_expr condition, double *repeats) {
  *repeats = 1;
  for (tir_stmt p;; s = p) {
    p = tir_stmt_at(ir, s)->parent;
    if (tir_stmt_at(ir, s)->prev || tir_stmt_at(ir, s)->next || !tir_is(ir, p, TIR_LOOP)) return s;
    const struct tir_stmt_node *n = tir_stmt_at(ir, p);
    if (n->loop_kind == TIR_PARALLEL || tir_uses_var(ir, condition, n->loop.var)) return s;
    int64_t extent = tir_loop_extent(ir, p);
    if (extent > 0 && !lower_indices_use(ir, store, n->loop.var)) *repeats *= (double)extent;
  }
}

/* What is left of a condition stands outside of loops that it saves, or nowhere: it was never needed. */
static void settle_condition(struct tir *ir, tir_stmt attr, tir_stmt store, tir_expr condition) {
  const struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind == TIR_AND) {
    settle_condition(ir, attr, store, n.a);
    settle_condition(ir, attr, store, n.b);
    return;
  }
  double repeats;
  tir_stmt place = find_place(ir, attr, store, condition, &repeats);
  if (repeats >= LEAST_REPEATS) wrap_in_test(ir, place, condition);
}

static bool has_zero_factor(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, tir_without_casts(ir, e));
  return is_zero(ir, e) || (n->kind == TIR_MUL && (has_zero_factor(ir, n->a) || has_zero_factor(ir, n->b)));
}

static void remove_sums_of_zeros(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    tir_expr added = tir_is(ir, s, TIR_STORE) ? added_by(low, s) : TIR_NONE;
    if (added && has_zero_factor(ir, added)) tir_kill(ir, s);
  }
}

void lower_zeros_settle(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!lower_is_attr(ir, s, ZEROS)) continue;
    tir_stmt child = tir_stmt_at(ir, s)->first[TIR_BODY];
    if (!child) {
      next = tir_after(ir, s, low->body);
      tir_kill(ir, s);
      continue;
    }
    if (tir_is(ir, child, TIR_IF)) {
      tir_stmt store = tir_stmt_at(ir, child)->first[TIR_BODY];
      assert(store && tir_is(ir, store, TIR_STORE) && !tir_stmt_at(ir, child)->first[TIR_ELSE]);
      settle_condition(ir, s, store, tir_stmt_at(ir, child)->test.condition);
      tir_kill_alone(ir, child);
      child = store;
    }
    next = tir_next(ir, child, low->body);
    tir_kill_alone(ir, s);
  }
  remove_sums_of_zeros(low);
}

void lower_zeros_forget(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!lower_is_attr(ir, s, OUTSIDE)) continue;
    if (!tir_stmt_at(ir, s)->first[TIR_BODY]) next = tir_after(ir, s, low->body);
    tir_kill_alone(ir, s);
  }
}

/* Version: what runs in each iteration of a loop gets a test in front of it, where that makes conditions below certain:
 * the edges of tiles whose loops are fused, or that several loops drive, which no cut of one loop's range finds
 * (partition.c). Where the test holds a copy without these conditions runs; elsewhere all is as it was.
 *
 *   for p: for j: if p % 6 * 48 + j < 256: …     becomes     for p: if p % 6 * 48 <= 208: for j: …
 *                                                                   else: for j: if p % 6 * 48 + j < 256: …
 *
 * Requires: no blocks. Gives: conditions where few iterations are. Keeps: the order of iterations.
 * A function grows to a bound, and what was left is copied once more at most. Functions with loops bound to threads
 * stay as they are: a barrier must not stand under a test. */
#include "tir/analysis/loads.h"
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

enum { MOST_VERSIONS = 12, MOST_NESTED = 2, MOST_STATEMENTS = 1500, MOST_CONDITIONS = 32, MOST_VARIABLES = 64 };

/* Statements of a list, from `first` to its end, which are to run in versions. */
struct site {
  struct tir *ir;
  tir_stmt first;
  tir_var own[MOST_VARIABLES], inner[MOST_VARIABLES]; /* bound right above the first, and below it */
  uint32_t owns, inners;
  tir_expr conditions[MOST_CONDITIONS], tests[MOST_CONDITIONS]; /* each condition holds where its test does */
  uint32_t count;
};

static bool uses_any(const struct tir *ir, tir_expr e, const tir_var *vars, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (tir_uses_var(ir, e, vars[i])) return true;
  return false;
}

/* ---- Tests ---- */

/* Puts the largest values that inner variables give into the sum's constant; false: one is not known. */
static bool bound_inner(const struct site *at, const struct tir_sum *condition, struct tir_sum *out) {
  struct tir *ir = at->ir;
  for (uint32_t i = 0; i < condition->count; i++) {
    struct tir_term t = tir_sum_terms(ir, condition)[i];
    const struct tir_expr_node *n = tir_at(ir, t.atom);
    int64_t worst = t.coefficient > 0 ? n->hi : n->lo, product;
    if (!uses_any(ir, t.atom, at->inner, at->inners)) {
      tir_sum_add_term(ir, out, t.atom, t.coefficient);
      continue;
    }
    if (worst == INT64_MAX || worst == INT64_MIN || __builtin_mul_overflow(worst, t.coefficient, &product) ||
        __builtin_add_overflow(out->constant, product, &out->constant))
      return false;
  }
  return !out->overflow;
}

/* A bound of extents that are variables may be so large that no sum with it is computed in the type. */
static bool is_computed_in(tir_type type, int64_t constant) {
  int64_t most = INT64_C(1) << (tir_type_bits(type) - 2);
  return constant > -most && constant < most;
}

/* What says outside of the inner loops that the condition holds in all their iterations; TIR_NONE: nothing does, or the
 * loops around say as much. */
static tir_expr test_of(const struct site *at, tir_expr condition) {
  struct tir *ir = at->ir;
  struct tir_sum all;
  if (!lower_open_condition(ir, condition, &all)) return TIR_NONE;
  tir_type type = tir_type_of(ir, tir_at(ir, condition)->a);
  struct tir_sum outer = tir_sum_open(ir);
  outer.constant = all.constant;
  bool known = bound_inner(at, &all, &outer);
  struct tir_bounds range = tir_sum_bounds(ir, &outer);
  tir_expr test = TIR_NONE;
  if (known && is_computed_in(type, outer.constant) && outer.count && range.lo <= 0 && range.hi > 0) {
    tir_expr sum = tir_sum_close(ir, &outer, type);
    test = tir_make(ir, TIR_LE, sum, tir_int(ir, type, 0));
    if (!uses_any(ir, test, at->own, at->owns)) test = TIR_NONE;
  } else {
    tir_sum_drop(ir, &outer);
  }
  tir_sum_drop(ir, &all);
  return test;
}

static void add_condition(struct site *at, tir_expr condition) {
  if (tir_at(at->ir, condition)->kind == TIR_AND) {
    add_condition(at, tir_at(at->ir, condition)->a);
    add_condition(at, tir_at(at->ir, condition)->b);
    return;
  }
  for (uint32_t i = 0; i < at->count; i++)
    if (at->conditions[i] == condition) return;
  tir_expr test = at->count < MOST_CONDITIONS ? test_of(at, condition) : TIR_NONE;
  if (test) at->conditions[at->count] = condition, at->tests[at->count++] = test;
}

static bool visit_choice(void *data, tir_expr e) {
  struct site *at = data;
  const struct tir_expr_node *n = tir_at(at->ir, e);
  bool below = (n->flags & TIR_HAS_CALL) != 0; /* asked before the tests that a condition makes move the nodes */
  if (n->kind == TIR_CALL && tir_is_choice(at->ir, n)) add_condition(at, tir_operands(at->ir, n->operands)[0]);
  return below;
}

static void add_conditions(struct site *at, tir_stmt top) {
  struct tir *ir = at->ir;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    bool needed = tir_is(ir, s, TIR_IF) && !lower_is_of_zeros(ir, tir_stmt_at(ir, s)->parent);
    if (needed) add_condition(at, tir_stmt_at(ir, s)->test.condition);
    if (tir_is(ir, s, TIR_STORE)) tir_walk_expr(ir, tir_as(ir, s, TIR_STORE)->store.value, visit_choice, at);
  }
}

/* ---- Sites ---- */

static tir_var bound_by(const struct tir *ir, tir_stmt s) {
  if (tir_is(ir, s, TIR_LOOP)) return tir_as(ir, s, TIR_LOOP)->loop.var;
  return tir_is(ir, s, TIR_BIND) ? tir_as(ir, s, TIR_BIND)->bind.var : TIR_NONE;
}

static bool add_variable(tir_var *vars, uint32_t *count, tir_var v) {
  if (*count == MOST_VARIABLES) return false;
  if (v) vars[(*count)++] = v;
  return true;
}

/* What a list of statements binds and allocates at its head stays in front of the test. */
static tir_stmt after_head(const struct tir *ir, tir_stmt s) {
  while (s && (tir_is(ir, s, TIR_BIND) || tir_is(ir, s, TIR_ALLOC) || tir_is(ir, s, TIR_DECLARE)))
    s = tir_stmt_at(ir, s)->next;
  return s;
}

/* The variables of a list of statements, by where they are bound; false: too many, or none of its own. */
static bool find_variables(struct site *at, tir_stmt parent, tir_stmt head) {
  struct tir *ir = at->ir;
  bool ok = add_variable(at->own, &at->owns, bound_by(ir, parent));
  for (tir_stmt s = head; ok && s != at->first; s = tir_stmt_at(ir, s)->next)
    ok = add_variable(at->own, &at->owns, bound_by(ir, s));
  for (tir_stmt top = at->first; top; top = tir_stmt_at(ir, top)->next)
    for (tir_stmt s = top; ok && s; s = tir_next(ir, s, top)) {
      bool parallel = tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_PARALLEL;
      ok = !parallel && add_variable(at->inner, &at->inners, bound_by(ir, s));
    }
  return ok && at->owns > 0;
}

/* Only conditions under a loop count: what runs once costs no more than the test. */
static bool read_site(struct tir *ir, tir_stmt parent, enum tir_list list, struct site *at) {
  tir_stmt head = tir_stmt_at(ir, parent)->first[list];
  *at = (struct site){.ir = ir, .first = after_head(ir, head)};
  if (!at->first || !find_variables(at, parent, head)) return false;
  for (tir_stmt top = at->first; top; top = tir_stmt_at(ir, top)->next)
    for (tir_stmt s = top, next; s; s = next) {
      bool loop = tir_is(ir, s, TIR_LOOP);
      next = loop ? tir_after(ir, s, top) : tir_next(ir, s, top);
      if (loop) add_conditions(at, s);
    }
  return at->count > 0;
}

/* ---- Two versions ---- */

static tir_expr all_tests(const struct site *at) {
  tir_expr all = TIR_NONE;
  for (uint32_t i = 0; i < at->count; i++) {
    bool known = false;
    for (uint32_t k = 0; k < i; k++) known |= at->tests[k] == at->tests[i];
    if (!known) all = all ? tir_binary(at->ir, TIR_AND, all, at->tests[i]) : at->tests[i];
  }
  return all;
}

static void assume(const struct site *at, tir_stmt top) {
  struct tir *ir = at->ir;
  for (tir_stmt s = tir_stmt_at(ir, top)->first[TIR_BODY]; s; s = tir_next(ir, s, top)) {
    if (tir_is(ir, s, TIR_IF)) {
      tir_expr left = lower_assume(ir, tir_stmt_at(ir, s)->test.condition, at->conditions, at->count);
      tir_stmt_at(ir, s)->test.condition = left;
    } else if (tir_is(ir, s, TIR_STORE)) {
      tir_expr value = lower_assume_choices(ir, tir_as(ir, s, TIR_STORE)->store.value, at->conditions, at->count);
      tir_as(ir, s, TIR_STORE)->store.value = value;
    }
  }
}

static tir_stmt split(const struct site *at) {
  struct tir *ir = at->ir;
  tir_stmt test = tir_new_stmt(ir, TIR_IF);
  tir_insert_before(ir, at->first, test);
  for (tir_stmt s; (s = tir_stmt_at(ir, test)->next);) {
    tir_detach(ir, s);
    tir_append(ir, test, TIR_BODY, s);
  }
  tir_stmt_at(ir, test)->test.condition = all_tests(at);
  tir_stmt copy = tir_clone_stmt(ir, test);
  assert(at->first && tir_stmt_at(ir, test)->first[TIR_BODY] == at->first && !tir_stmt_at(ir, test)->next);
  assume(at, test);
  tir_move_children(ir, copy, TIR_BODY, test, TIR_ELSE);
  tir_kill(ir, copy);
  return test;
}

/* ---- The pass ---- */

struct versions {
  struct lowering *low;
  tir_stmt made[MOST_VERSIONS];
  uint32_t count;
};

static bool fits(const struct versions *v, const struct site *at) {
  const struct tir *ir = v->low->ir;
  uint32_t size = lower_size(ir, v->low->body), nested = 0;
  assert(v->count <= MOST_VERSIONS);
  for (tir_stmt s = at->first; s; s = tir_stmt_at(ir, s)->next) size += lower_size(ir, s);
  for (uint32_t i = 0; i < v->count; i++) nested += tir_is_below(ir, at->first, v->made[i]);
  return v->count < MOST_VERSIONS && nested < MOST_NESTED && size <= MOST_STATEMENTS;
}

static void visit_list(struct versions *v, tir_stmt parent, enum tir_list list) {
  struct site at;
  if (read_site(v->low->ir, parent, list, &at) && fits(v, &at)) v->made[v->count++] = split(&at);
}

static bool has_threads(const struct lowering *low) {
  for (tir_stmt s = low->body; s; s = tir_next(low->ir, s, low->body))
    if (tir_is_bound(low->ir, s)) return true;
  return false;
}

bool lower_unswitch(struct lowering *low) {
  struct tir *ir = low->ir;
  struct versions v = {.low = low};
  if (has_threads(low)) return true;
  for (tir_stmt s = low->body, next; s; s = next) {
    enum tir_loop_kind kind = (enum tir_loop_kind)tir_stmt_at(ir, s)->loop_kind;
    bool loop = tir_is(ir, s, TIR_LOOP), repeats = loop && (kind == TIR_SERIAL || kind == TIR_PARALLEL);
    if ((repeats && !lower_is_tile(ir, s)) || tir_is(ir, s, TIR_IF)) visit_list(&v, s, TIR_BODY);
    if (tir_is(ir, s, TIR_IF)) visit_list(&v, s, TIR_ELSE);
    next = loop && !repeats ? tir_after(ir, s, low->body) : tir_next(ir, s, low->body);
  }
  return lower_loops(low);
}

/* Partition: a loop is cut in two where a condition below it becomes certain: the tail of an imperfect split, the rim
 * of a padding. The part for which it is certain loses the condition.
 * Requires: no blocks. Gives: conditions that depend on as few loops as can be. Keeps: the order of iterations.
 * A condition is a linear comparison; a loop is cut at most twice, and a function grows to a bound. A vectorized loop,
 * or one of a tile that a reduction adds into, is cut where that leaves no condition: elsewhere one masked vector is
 * better than several, and a tile in registers than two in memory. */
#include "tir/lower/lower.h"

#include "tir/arith/linear.h"

enum { MOST_CUTS = 256, MOST_STATEMENTS = 4000 };

/* The condition as g * v + rest <= 0, with the bounds of rest. */
struct threshold {
  int64_t coefficient;
  struct tir_bounds rest;
};

static bool read_threshold(struct tir *ir, tir_expr condition, tir_var v, struct threshold *out) {
  struct tir_sum sum;
  if (!lower_open_condition(ir, condition, &sum)) return false;
  tir_expr self = tir_var_expr(ir, v);
  out->coefficient = 0;
  bool linear = true;
  for (uint32_t i = 0; i < sum.count; i++) {
    struct tir_term t = tir_sum_terms(ir, &sum)[i];
    if (t.atom == self)
      out->coefficient = t.coefficient;
    else if (tir_uses_var(ir, t.atom, v))
      linear = false;
  }
  if (out->coefficient) tir_sum_add_term(ir, &sum, self, -out->coefficient);
  out->rest = tir_sum_bounds(ir, &sum);
  tir_sum_drop(ir, &sum);
  return linear && out->coefficient && !tir_is_inf(out->rest.lo) && !tir_is_inf(out->rest.hi);
}

/* Values of v in [*from, *to) for which the condition is certainly true. */
static void certain_range(const struct threshold *t, int64_t *from, int64_t *to) {
  int64_t edge = tir_floor_div(-t->rest.hi, t->coefficient > 0 ? t->coefficient : -t->coefficient);
  if (t->coefficient > 0)
    *to = edge + 1 < *to ? edge + 1 : *to; /* v <= floor(-rest / g) */
  else
    *from = -edge > *from ? -edge : *from; /* v >= ceil(rest / -g) */
}

/* Narrows [*from, *to) to the values of v for which the condition may be true; false: it stays as it is. */
static bool possible_range(const struct threshold *t, int64_t *from, int64_t *to) {
  int64_t size = t->coefficient > 0 ? t->coefficient : -t->coefficient, edge = tir_floor_div(-t->rest.lo, size);
  if (t->coefficient > 0 && edge + 1 < *to && edge + 1 > *from) return *to = edge + 1, true;
  if (t->coefficient < 0 && -edge > *from && -edge < *to) return *from = -edge, true;
  return false;
}

struct cuts {
  struct tir *ir;
  tir_var var;
  int64_t from, to;             /* where every condition so far is certain to hold */
  int64_t false_from, false_to; /* where it is not the case that one is certain to fail */
  bool any;
};

static bool is_conjunct_of_interest(void *data, tir_expr e) {
  struct cuts *c = data;
  const struct tir_expr_node *n = tir_at(c->ir, e);
  if (n->kind == TIR_AND || n->kind == TIR_OR || n->kind == TIR_NOT) return true;
  if (n->kind >= TIR_LT && n->kind <= TIR_GE) {
    struct threshold t;
    if (!read_threshold(c->ir, e, c->var, &t)) return false;
    int64_t from = c->from, to = c->to;
    certain_range(&t, &from, &to);
    bool helps = to - from >= 1 && (from != c->from || to != c->to);
    if (helps) c->from = from, c->to = to;
    helps |= possible_range(&t, &c->false_from, &c->false_to);
    c->any |= helps;
    return false;
  }
  return (n->flags & TIR_HAS_CALL) != 0;
}

static void gather_from_expr(struct cuts *c, tir_expr e) { tir_walk_expr(c->ir, e, is_conjunct_of_interest, c); }

/* What it keeps from being done costs less than a loop's body twice. */
static bool is_arrival(const struct tir *ir, tir_stmt test) {
  tir_stmt only = tir_only_child(ir, test);
  return only && lower_is_arrival(ir, only);
}

/* Conditions of ifs, and of selections inside values. */
static void gather(struct cuts *c, tir_stmt top) {
  for (tir_stmt s = tir_next(c->ir, top, top); s; s = tir_next(c->ir, s, top)) {
    const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
    if (n->kind == TIR_IF && !lower_is_outside(c->ir, n->parent) && !is_arrival(c->ir, s))
      gather_from_expr(c, n->test.condition);
    if (n->kind == TIR_STORE && (tir_at(c->ir, n->store.value)->flags & TIR_HAS_CALL))
      gather_from_expr(c, n->store.value);
  }
}

void lower_set_domain(struct tir *ir, tir_stmt loop, tir_expr min, tir_expr extent) {
  assert(tir_is(ir, loop, TIR_LOOP));
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct tir_var_node v = ir->vars.at[n.loop.var];
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, min, extent);
  tir_subst_var(ir, n.loop.var, tir_var_expr(ir, var));
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  struct tir_stmt_node *to = tir_stmt_at(ir, loop);
  to->loop.var = var;
  to->loop.min = min;
  to->loop.extent = extent;
}

tir_stmt lower_part_of(struct tir *ir, tir_stmt loop, int64_t min, int64_t extent) {
  assert(tir_is(ir, loop, TIR_LOOP) && extent >= 0);
  tir_stmt copy = tir_clone_stmt(ir, loop);
  tir_type type = ir->vars.at[tir_stmt_at(ir, copy)->loop.var].type;
  lower_set_domain(ir, copy, tir_int(ir, type, min), tir_int(ir, type, extent));
  return copy;
}

/* A parallel loop cannot be two: its body asks which part the iteration is in. */
static void branch_on_part(struct tir *ir, tir_stmt loop, const int64_t *edges, int parts) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  tir_type type = ir->vars.at[n.loop.var].type;
  tir_expr v = tir_var_expr(ir, n.loop.var);
  tir_stmt copies[5];
  assert(parts >= 1 && parts <= 5);
  for (int i = 0; i < parts; i++) copies[i] = lower_part_of(ir, loop, edges[i], edges[i + 1] - edges[i]);
  while (tir_stmt_at(ir, loop)->first[TIR_BODY]) tir_kill(ir, tir_stmt_at(ir, loop)->first[TIR_BODY]);
  tir_stmt parent = loop;
  enum tir_list list = TIR_BODY;
  for (int i = 0; i < parts; i++) {
    if (i + 1 < parts) {
      tir_stmt test = tir_new_stmt(ir, TIR_IF);
      tir_expr end = tir_int(ir, type, edges[i + 1]);
      tir_stmt_at(ir, test)->test.condition = tir_binary(ir, TIR_LT, v, end);
      tir_append(ir, parent, list, test);
      parent = test;
    }
    enum tir_list into = i + 1 < parts ? TIR_BODY : parts > 1 ? TIR_ELSE : TIR_BODY;
    tir_var part = tir_as(ir, copies[i], TIR_LOOP)->loop.var;
    tir_stmt bind = tir_new_stmt(ir, TIR_BIND);
    tir_as(ir, bind, TIR_BIND)->bind.var = part;
    tir_as(ir, bind, TIR_BIND)->bind.value = v;
    tir_append(ir, parent, into, bind);
    tir_move_children(ir, copies[i], TIR_BODY, parent, into);
    tir_kill(ir, copies[i]);
    list = TIR_ELSE;
  }
}

/* Keeps the edges in order, each once. */
static void add_edge(int64_t *edges, int *count, int64_t edge) {
  assert(*count >= 1 && *count < 6);
  int at = *count;
  while (at > 0 && edges[at - 1] > edge) at--;
  if (at > 0 && edges[at - 1] == edge) return;
  memmove(edges + at + 1, edges + at, (size_t)(*count - at) * sizeof *edges);
  edges[at] = edge;
  (*count)++;
}

static bool cut(struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  if (n.loop_kind == TIR_THREAD_BINDING) return false;
  int64_t extent = tir_loop_extent(ir, loop);
  if (extent < 2 || !tir_is_int(ir, n.loop.min)) return false;
  int64_t min = tir_at(ir, n.loop.min)->imm, end = min + extent;
  struct cuts c = {ir, n.loop.var, min, end, min, end, false};
  gather(&c, loop);
  bool leaves = c.from != c.false_from || c.to != c.false_to;
  if (leaves && (n.loop_kind == TIR_VECTORIZED || lower_is_tile(ir, loop))) return false;
  if (!c.any || lower_size(ir, low->body) + 3 * lower_size(ir, loop) > MOST_STATEMENTS) return false;
  int64_t edges[6] = {min};
  int count = 1;
  add_edge(edges, &count, c.false_from);
  add_edge(edges, &count, c.from);
  add_edge(edges, &count, c.to);
  add_edge(edges, &count, c.false_to);
  add_edge(edges, &count, end);
  if (count <= 2) return false;
  assert(edges[0] == min && edges[count - 1] == end && "the parts are all of the loop");
  if (n.loop_kind == TIR_PARALLEL) {
    branch_on_part(ir, loop, edges, count - 1);
    return true;
  }
  tir_stmt at = loop;
  for (int i = 0; i + 1 < count; i++) {
    tir_stmt part = lower_part_of(ir, loop, edges[i], edges[i + 1] - edges[i]);
    tir_insert_after(ir, at, part);
    at = part;
  }
  tir_kill(ir, loop);
  return true;
}

bool lower_partition(struct lowering *low) {
  int cuts = 0;
  for (tir_stmt s = low->body, next; s && cuts < MOST_CUTS; s = next) {
    next = tir_next(low->ir, s, low->body);
    if (!tir_is(low->ir, s, TIR_LOOP)) continue;
    tir_stmt before = tir_stmt_at(low->ir, s)->prev, parent = tir_stmt_at(low->ir, s)->parent;
    if (!cut(low, s)) continue;
    cuts++;
    /* The parts stand where the loop stood; the walk goes on below the first of them. */
    tir_stmt first = before ? tir_stmt_at(low->ir, before)->next : tir_stmt_at(low->ir, parent)->first[TIR_BODY];
    next = tir_next(low->ir, first, low->body);
  }
  if (!lower_loops(low)) return false;
  lower_zeros_settle(low);
  return lower_loops(low);
}

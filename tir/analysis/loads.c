/* Rewriting of loads. Expressions are graphs: a memo in scratch memory keeps shared parts from being visited twice. */
#include "loads.h"

#include <stdlib.h>
#include <string.h>

/* ---- Own expressions ---- */

struct visit {
  tir_expr (*map)(struct tir *ir, void *context, tir_expr e);
  void *context;
};

static tir_expr mapped(struct tir *ir, const struct visit *v, tir_expr e) {
  return e ? v->map(ir, v->context, e) : TIR_NONE;
}

static uint32_t mapped_operands(struct tir *ir, const struct visit *v, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    tir_expr e = ir->operands.at[first + i], made = mapped(ir, v, e);
    if (made == e) continue;
    first = tir_add_operands(ir, ir->operands.at + first, count); /* spans may be shared */
    ir->operands.at[first + i] = made;
    for (i++; i < count; i++) {
      made = mapped(ir, v, ir->operands.at[first + i]);
      ir->operands.at[first + i] = made;
    }
  }
  return first;
}

void tir_set_loop_range(struct tir *ir, tir_loop l, tir_expr min, tir_expr extent) {
  MS_CHECK(tir_is(ir, l, TIR_LOOP));
  struct tir_stmt_node n = *tir_stmt_at(ir, l);
  if (min == n.loop.min && extent == n.loop.extent) return;
  struct tir_var_node old = ir->vars.at[n.loop.var];
  tir_var made = tir_new_var(ir, TIR_VAR_LOOP, old.name, old.type, min, extent);
  struct tir_stmt_node *s = tir_stmt_at(ir, l);
  s->loop.var = made;
  s->loop.min = min;
  s->loop.extent = extent;
  tir_subst_var(ir, n.loop.var, tir_var_expr(ir, made));
  for (tir_stmt c = s->first[TIR_BODY]; c; c = tir_stmt_at(ir, c)->next) tir_subst_stmt(ir, c);
  tir_subst_clear(ir);
}

static void map_loop(struct tir *ir, const struct visit *v, tir_loop l) {
  struct tir_stmt_node n = *tir_stmt_at(ir, l);
  tir_expr min = mapped(ir, v, n.loop.min), extent = mapped(ir, v, n.loop.extent);
  tir_set_loop_range(ir, l, min, extent);
}

/* Where data or loops say what an iteration's domain is. */
static void map_domain(struct tir *ir, const struct visit *v, tir_block b, uint32_t i) {
  struct tir_var_node old = ir->vars.at[ir->iters.at[i].var];
  tir_expr min = mapped(ir, v, old.min), extent = mapped(ir, v, old.extent);
  if (min == old.min && extent == old.extent) return;
  tir_var made = tir_new_var(ir, TIR_VAR_ITER, old.name, old.type, min, extent);
  tir_subst_var(ir, ir->iters.at[i].var, tir_var_expr(ir, made));
  ir->iters.at[i].var = made;
  tir_subst_stmt(ir, b);
  tir_subst_clear(ir);
}

static void map_block(struct tir *ir, const struct visit *v, tir_block b) {
  struct tir_span iters = tir_block_at(ir, b)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    tir_expr binding = mapped(ir, v, ir->iters.at[i].binding);
    ir->iters.at[i].binding = binding;
    const struct tir_var_node *n = &ir->vars.at[ir->iters.at[i].var];
    if (!tir_is_int(ir, n->min) || !tir_is_int(ir, n->extent)) map_domain(ir, v, b, i);
  }
  tir_expr predicate = mapped(ir, v, tir_as(ir, b, TIR_BLOCK)->block.predicate);
  tir_as(ir, b, TIR_BLOCK)->block.predicate = predicate;
}

static void map_store(struct tir *ir, const struct visit *v, tir_stmt s) {
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  uint32_t indices = mapped_operands(ir, v, n.store.indices, tir_buffer_at(ir, n.store.buffer)->rank);
  tir_expr value = mapped(ir, v, n.store.value), predicate = mapped(ir, v, n.store.predicate);
  struct tir_stmt_node *to = tir_stmt_at(ir, s);
  to->store.indices = indices;
  to->store.value = value;
  to->store.predicate = predicate;
}

static void map_stmt(struct tir *ir, const struct visit *v, tir_stmt s) {
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  tir_expr a, b;
  switch (n.kind) {
  case TIR_LOOP: map_loop(ir, v, s); break;
  case TIR_BLOCK: map_block(ir, v, s); break;
  case TIR_STORE: map_store(ir, v, s); break;
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT:
    a = mapped(ir, v, n.test.condition);
    tir_stmt_at(ir, s)->test.condition = a;
    break;
  case TIR_BIND:
    a = mapped(ir, v, n.bind.value);
    tir_as(ir, s, TIR_BIND)->bind.value = a;
    break;
  case TIR_EVALUATE:
    a = mapped(ir, v, n.evaluate.value);
    tir_as(ir, s, TIR_EVALUATE)->evaluate.value = a;
    break;
  case TIR_ATTR:
    a = mapped(ir, v, n.attr.node), b = mapped(ir, v, n.attr.value);
    tir_as(ir, s, TIR_ATTR)->attr.node = a;
    tir_as(ir, s, TIR_ATTR)->attr.value = b;
    break;
  default: break;
  }
}

/* Puts map(context, e) in the place of each own expression e of `block`. A loop whose range changes, or an iteration
 * whose domain does, gets a new variable. */
static void map_own_exprs(struct tir *ir, tir_block block, tir_expr (*map)(struct tir *ir, void *context, tir_expr e),
                          void *context) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct visit v = {map, context};
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) map_stmt(ir, &v, s);
}

struct own_expr_search {
  bool (*test)(struct tir *ir, void *context, tir_expr e);
  void *context;
  bool found;
};

static tir_expr search_expr(struct tir *ir, void *context, tir_expr e) {
  struct own_expr_search *s = context;
  s->found = s->found || s->test(ir, s->context, e);
  return e;
}

bool tir_any_own_expr(struct tir *ir, tir_block block, bool (*test)(struct tir *ir, void *context, tir_expr e),
                      void *context) {
  struct own_expr_search s = {test, context, false};
  map_own_exprs(ir, block, search_expr, &s);
  return s.found;
}

/* ---- The memo ---- */

struct memo {
  struct {
    uint32_t epoch, to;
  } * at; /* by expression */
  uint32_t capacity, epoch;
};

static void release(void *memory) { free(((struct memo *)memory)->at); }

static struct memo *memo_of(const struct tir *ir) {
  static const struct tir_scratch_kind kind = {sizeof(struct memo), release, NULL};
  return tir_scratch_of(ir, TIR_SCRATCH_LOADS, &kind);
}

/* An epoch of the memo: from here on nothing is remembered. */
static void new_epoch(const struct tir *ir) {
  struct memo *m = memo_of(ir);
  if (++m->epoch == 0) {
    memset(m->at, 0, m->capacity * sizeof *m->at);
    m->epoch = 1;
  }
}

static bool remembered(const struct tir *ir, tir_expr e, tir_expr *to) {
  const struct memo *m = memo_of(ir);
  if (e >= m->capacity || m->at[e].epoch != m->epoch) return false;
  *to = m->at[e].to;
  return true;
}

static void remember(struct tir *ir, tir_expr e, tir_expr to) {
  struct memo *m = memo_of(ir);
  uint32_t before = m->capacity;
  if (e >= before) {
    m->at = tir_enlarge(m->at, &m->capacity, ir->exprs.count + 64ull, sizeof *m->at);
    memset(m->at + before, 0, (m->capacity - before) * sizeof *m->at);
  }
  m->at[e].epoch = m->epoch;
  m->at[e].to = to;
}

/* A load of the buffer, or its pointer, may be below. */
static bool may_use_buffer(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return (n->flags & (TIR_HAS_LOAD | TIR_HAS_CALL)) || n->kind == TIR_DATA;
}

void tir_forget_visits(struct tir *ir) { new_epoch(ir); }

bool tir_visited(struct tir *ir, tir_expr e) {
  tir_expr seen;
  if (remembered(ir, e, &seen)) return true;
  remember(ir, e, e);
  return false;
}

/* ---- Rewriting ---- */

enum { MOST_ON_STACK = 16 };

static tir_expr rewrite(struct tir *ir, const struct tir_load_rule *rule, tir_expr e);

static tir_expr rewrite_maybe(struct tir *ir, const struct tir_load_rule *rule, tir_expr e) {
  return e ? rewrite(ir, rule, e) : TIR_NONE;
}

bool tir_is_pure_call(const struct tir *ir, const struct tir_expr_node *n) {
  static const char *const names[] = {"if_then_else", "likely",      "reinterpret",   "isnan",         "isinf",
                                      "isfinite",     "popcount",    "clz",           "bitwise_and",   "bitwise_or",
                                      "bitwise_xor",  "bitwise_not", "shift_left",    "shift_right",   "max",
                                      "min",          TIR_DOT_LANES, TIR_SLIDE_LANES, "large_uint_imm"};
  const char *name = tir_text(ir, n->ref);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(names[i], name)) return true;
  return tir_function_named(name) < TIR_FUNCTIONS;
}

static bool is_impure_call(const struct tir *ir, const void *context, tir_expr e) {
  (void)context;
  return tir_at(ir, e)->kind == TIR_CALL && !tir_is_pure_call(ir, tir_at(ir, e));
}

bool tir_has_effect(const struct tir *ir, tir_expr e) {
  return tir_any_node(ir, e, TIR_HAS_CALL, is_impure_call, NULL);
}

/* What integers are divided by; NULL: the node is no such division. */
static const struct tir_expr_node *divisor_of(const struct tir *ir, const struct tir_expr_node *n) {
  bool divides = n->kind >= TIR_DIV && n->kind <= TIR_FLOORMOD && !tir_type_is_float(n->type);
  return divides ? tir_at(ir, n->b) : NULL;
}

static bool may_be_zero(const struct tir_expr_node *n) { return n->lo <= 0 && n->hi >= 0; }

static bool has_zero_divisor(const struct tir *ir, const void *context, tir_expr e) {
  (void)context;
  const struct tir_expr_node *by = divisor_of(ir, tir_at(ir, e));
  return by && may_be_zero(by);
}

bool tir_may_divide_by_zero(const struct tir *ir, tir_expr e) {
  return tir_any_node(ir, e, TIR_HAS_DIVMOD, has_zero_divisor, NULL);
}

bool tir_division_may_trap(const struct tir *ir, const struct tir_expr_node *n) {
  const struct tir_expr_node *by = divisor_of(ir, n);
  return by && (by->flags & TIR_OF_DATA || may_be_zero(by));
}

bool tir_is_choice(const struct tir *ir, const struct tir_expr_node *n) {
  return n->kind == TIR_CALL && n->count == 3 && !strcmp(tir_text(ir, n->ref), "if_then_else");
}

/* What guards a copy: a load, or zero where there is none. */
static bool is_guarded_load(const struct tir *ir, const struct tir_expr_node *n) {
  if (!tir_is_choice(ir, n)) return false;
  const struct tir_expr_node *zero = tir_at(ir, ir->operands.at[n->operands + 2]);
  return tir_at(ir, ir->operands.at[n->operands + 1])->kind == TIR_LOAD &&
         ((zero->kind == TIR_INT_IMM && zero->imm == 0) || (zero->kind == TIR_FLOAT_IMM && zero->real == 0));
}

/* A guarded load that came into the place of a load, under a condition that makes its guard true, is the load. */
static tir_expr chosen_under(struct tir *ir, tir_expr condition, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (!(n.flags & TIR_HAS_CALL)) return e;
  if (is_guarded_load(ir, &n))
    return tir_prove_under(ir, condition, ir->operands.at[n.operands]) ? ir->operands.at[n.operands + 1] : e;
  if (n.kind == TIR_CAST) return tir_cast(ir, n.type, chosen_under(ir, condition, n.a));
  if (n.kind < TIR_ADD || n.kind > TIR_OR) return e;
  tir_expr a = chosen_under(ir, condition, n.a), b = chosen_under(ir, condition, n.b);
  return a == n.a && b == n.b ? e : tir_make(ir, (enum tir_kind)n.kind, a, b);
}

static tir_expr rewrite_operands(struct tir *ir, const struct tir_load_rule *rule, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  uint32_t on_stack[MOST_ON_STACK], *operands = tir_room(on_stack, sizeof on_stack, n.count * sizeof *operands);
  bool changed = false;
  for (uint32_t i = 0; i < n.count; i++) {
    tir_expr x = ir->operands.at[n.operands + i];
    operands[i] = rewrite_maybe(ir, rule, x);
    changed |= operands[i] != x;
  }
  if (changed && tir_is_choice(ir, &n)) operands[1] = chosen_under(ir, operands[0], operands[1]);
  tir_expr made = e, predicate = n.kind == TIR_LOAD ? rewrite_maybe(ir, rule, n.a) : TIR_NONE;
  if (n.kind == TIR_LOAD && n.ref == rule->buffer)
    made = rule->replace(ir, rule->context, operands, n.count);
  else if (n.kind == TIR_LOAD && (changed || predicate != n.a))
    made = tir_load(ir, n.ref, operands, n.count, predicate);
  else if (n.kind == TIR_CALL && changed)
    made = tir_call(ir, n.type, n.ref, operands, n.count);
  else if (n.kind == TIR_LIST && changed)
    made = tir_list_value(ir, operands, n.count);
  else if (n.kind == TIR_MAP && changed)
    made = tir_map_value(ir, operands, n.count);
  if (operands != on_stack) free(operands);
  return made;
}

static tir_expr rewrite_node(struct tir *ir, const struct tir_load_rule *rule, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_LOAD || n.kind == TIR_CALL || n.kind == TIR_LIST || n.kind == TIR_MAP)
    return rewrite_operands(ir, rule, e);
  if (n.kind == TIR_DATA) return n.ref == rule->buffer && rule->data ? tir_data(ir, rule->data) : e;
  if (n.kind <= TIR_DATA) return e;
  tir_expr a = rewrite_maybe(ir, rule, n.a), b = rewrite_maybe(ir, rule, n.b), c = rewrite_maybe(ir, rule, n.c);
  if (a == n.a && b == n.b && c == n.c) return e;
  if (n.kind >= TIR_ADD && n.kind <= TIR_OR) return tir_make(ir, (enum tir_kind)n.kind, a, b);
  switch (n.kind) {
  case TIR_NOT: return tir_not(ir, a);
  case TIR_CAST: return tir_cast(ir, n.type, a);
  default: return tir_rebuild(ir, n, a, b, c);
  }
}

static tir_expr rewrite(struct tir *ir, const struct tir_load_rule *rule, tir_expr e) {
  tir_expr made;
  if (!may_use_buffer(ir, e)) return e;
  if (remembered(ir, e, &made)) return made;
  made = rewrite_node(ir, rule, e);
  remember(ir, e, made);
  return made;
}

tir_expr tir_rewrite_loads(struct tir *ir, const struct tir_load_rule *rule, tir_expr e) {
  MS_CHECK(tir_is_buffer(ir, rule->buffer));
  new_epoch(ir);
  return rewrite_maybe(ir, rule, e);
}

static tir_expr rewrite_for(struct tir *ir, void *context, tir_expr e) { return rewrite(ir, context, e); }

void tir_rewrite_own_loads(struct tir *ir, const struct tir_load_rule *rule, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  new_epoch(ir);
  map_own_exprs(ir, block, rewrite_for, (void *)rule);
}

/* ---- Regions ---- */

static bool range_loads(const struct tir *ir, struct tir_region region, tir_buffer buffer) {
  for (uint32_t i = 0; i < 2 * tir_buffer_at(ir, region.buffer)->rank; i++) {
    tir_expr e = ir->operands.at[region.ranges + i];
    if ((tir_at(ir, e)->flags & TIR_HAS_LOAD) && tir_uses_buffer(ir, e, buffer)) return true;
  }
  return false;
}

bool tir_regions_load(const struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  if (!ir->indirect) return false;
  struct tir_span regions[] = {tir_block_at(ir, block)->reads, tir_block_at(ir, block)->writes};
  for (int w = 0; w < 2; w++)
    for (uint32_t i = regions[w].first; i < regions[w].first + regions[w].count; i++)
      if (range_loads(ir, ir->regions.at[i], buffer)) return true;
  return false;
}

void tir_rewrite_region_loads(struct tir *ir, const struct tir_load_rule *rule, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span regions[] = {tir_block_at(ir, block)->reads, tir_block_at(ir, block)->writes};
  struct visit v = {rewrite_for, (void *)rule};
  new_epoch(ir);
  for (int w = 0; w < 2; w++)
    for (uint32_t i = regions[w].first; i < regions[w].first + regions[w].count; i++) {
      struct tir_region region = ir->regions.at[i];
      if (!range_loads(ir, region, rule->buffer)) continue;
      uint32_t ranges = mapped_operands(ir, &v, region.ranges, 2 * tir_buffer_at(ir, region.buffer)->rank);
      ir->regions.at[i].ranges = ranges;
    }
}

/* ---- Reading ---- */

enum { PLAIN_STEPS = 64 };

struct finding {
  tir_buffer buffer;
  tir_expr *out;
  uint32_t count, most;
  uint32_t steps; /* nodes that are visited as often as they are met; the memo keeps the others from it */
};

static bool is_found(const struct finding *f, tir_expr load) {
  for (uint32_t i = 0; i < f->count && i < f->most; i++)
    if (f->out[i] == load) return true;
  return false;
}

static void find_loads(struct tir *ir, struct finding *f, tir_expr e);

/* Most operands hold no load: that is seen without a call. */
static inline void find_below(struct tir *ir, struct finding *f, tir_expr e) {
  if (e && tir_at(ir, e)->flags & TIR_HAS_LOAD) find_loads(ir, f, e);
}

static void find_loads(struct tir *ir, struct finding *f, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (!f->steps && tir_visited(ir, e)) return;
  if (f->steps && !--f->steps) new_epoch(ir); /* from here on the memo is asked */
  if (n->kind == TIR_LOAD && (!f->buffer || n->ref == f->buffer)) {
    if (is_found(f, e)) return;
    if (f->count < f->most) f->out[f->count] = e;
    f->count++;
  }
  find_below(ir, f, n->a), find_below(ir, f, n->b), find_below(ir, f, n->c);
  for (uint32_t i = 0; i < n->count; i++) find_below(ir, f, ir->operands.at[n->operands + i]);
}

uint32_t tir_find_loads(struct tir *ir, tir_expr e, tir_buffer buffer, tir_expr *out, uint32_t most) {
  MS_CHECK(most && (!buffer || tir_is_buffer(ir, buffer)));
  struct finding f = {buffer, out, 0, most, PLAIN_STEPS};
  find_below(ir, &f, e);
  return f.count;
}

struct loads_of {
  const struct tir *ir;
  tir_buffer buffer;
};

static bool is_load_of(void *data, tir_expr e) {
  const struct loads_of *l = data;
  const struct tir_expr_node *n = tir_at(l->ir, e);
  return n->kind == TIR_LOAD && n->ref == l->buffer;
}

uint32_t tir_count_loads(const struct tir *ir, tir_expr e, tir_buffer buffer) {
  struct loads_of l = {ir, buffer};
  return tir_count_in_tree(ir, e, is_load_of, &l);
}

int64_t tir_count_all_loads(const struct tir *ir, tir_func f, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  tir_stmt body = ir->funcs.at[f].body;
  int64_t sum = 0;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) {
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(ir, s, all), rank = 0;
    for (uint32_t i = 0; i < count; i++) sum += tir_count_loads(ir, all[i], buffer);
    if (tir_is(ir, s, TIR_STORE)) rank = tir_buffer_at(ir, tir_stmt_at(ir, s)->store.buffer)->rank;
    for (uint32_t d = 0; d < rank; d++)
      sum += tir_count_loads(ir, tir_operands(ir, tir_stmt_at(ir, s)->store.indices)[d], buffer);
  }
  return sum;
}

tir_expr tir_within_bounds(struct tir *ir, tir_buffer buffer, const tir_expr *places) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  tir_expr within = TIR_NONE;
  for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) {
    tir_expr end = ir->operands.at[tir_buffer_at(ir, buffer)->shape + d];
    tir_type type = tir_type_of(ir, places[d]);
    tir_expr above = tir_make(ir, TIR_LE, tir_int(ir, type, 0), places[d]);
    tir_expr below = tir_make(ir, TIR_LT, places[d], tir_cast(ir, type, end));
    if (!tir_prove(ir, above)) within = tir_and(ir, within, above);
    if (!tir_prove(ir, below)) within = tir_and(ir, within, below);
  }
  return within;
}

enum { MOST_RANK = 32 };

bool tir_is_load_inside(struct tir *ir, tir_expr load) {
  MS_CHECK(tir_at(ir, load)->kind == TIR_LOAD);
  struct tir_expr_node n = *tir_at(ir, load);
  tir_expr places[MOST_RANK];
  if (n.count > MOST_RANK) return false;
  for (uint32_t i = 0; i < n.count; i++) {
    places[i] = ir->operands.at[n.operands + i];
    tir_type type = tir_type_of(ir, places[i]);
    if (!tir_type_is_int(type) || tir_type_lanes(type) != 1) return false;
  }
  return !tir_within_bounds(ir, n.ref, places);
}

static bool loads_one_element(const struct tir *ir, const struct tir_expr_node *n) {
  if (n->a) return false; /* predicated */
  for (uint32_t i = 0; i < n->count; i++) {
    const struct tir_expr_node *index = tir_at(ir, ir->operands.at[n->operands + i]);
    if (index->kind == TIR_SLICE || tir_type_lanes(index->type) != 1) return false;
  }
  return true;
}

static bool uses_opaquely(struct tir *ir, tir_expr e, tir_buffer buffer);

/* Most operands use no buffer: that is seen without a call. */
static inline bool below_uses_opaquely(struct tir *ir, tir_expr e, tir_buffer buffer) {
  return e && may_use_buffer(ir, e) && uses_opaquely(ir, e, buffer);
}

static bool uses_opaquely(struct tir *ir, tir_expr e, tir_buffer buffer) {
  const struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_DATA) return n.ref == buffer;
  if (n.kind <= TIR_DATA || tir_visited(ir, e)) return false;
  if (n.kind == TIR_LOAD && n.ref == buffer && !loads_one_element(ir, &n)) return true;
  if (below_uses_opaquely(ir, n.a, buffer) || below_uses_opaquely(ir, n.b, buffer) ||
      below_uses_opaquely(ir, n.c, buffer))
    return true;
  for (uint32_t i = 0; i < n.count; i++)
    if (below_uses_opaquely(ir, ir->operands.at[n.operands + i], buffer)) return true;
  return false;
}

bool tir_uses_opaquely(struct tir *ir, tir_expr e, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  if (!e || !may_use_buffer(ir, e)) return false;
  new_epoch(ir);
  return uses_opaquely(ir, e, buffer);
}

/* ---- By the scope ---- */

uint32_t tir_scope_loads(struct tir *ir, tir_stmt s, tir_buffer buffer, tir_expr *out, uint32_t most) {
  struct finding f = {buffer, out, 0, most, PLAIN_STEPS};
  const struct tir_stmt_node n = *tir_stmt_at(ir, s);
  if (n.kind != TIR_BLOCK) {
    tir_expr own[4];
    for (uint32_t i = 0, count = tir_stmt_exprs(ir, s, own); i < count; i++) find_below(ir, &f, own[i]);
    for (uint32_t i = 0; n.kind == TIR_STORE && i < tir_buffer_at(ir, n.store.buffer)->rank; i++)
      find_below(ir, &f, ir->operands.at[n.store.indices + i]);
    return f.count;
  }
  for (uint32_t i = 0; i < tir_block_at(ir, s)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, s)[i];
    find_below(ir, &f, iter.binding);
    find_below(ir, &f, ir->vars.at[iter.var].min);
    find_below(ir, &f, ir->vars.at[iter.var].extent);
  }
  find_below(ir, &f, n.block.predicate);
  return f.count;
}

bool tir_is_placed_by_loads(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  if (!ir->indirect) return false;
  for (tir_stmt s = block; s && (s == block || !tir_is(ir, s, TIR_BLOCK)); s = tir_stmt_at(ir, s)->parent)
    if (tir_scope_loads(ir, s, TIR_NONE, NULL, 0)) return true;
  return false;
}

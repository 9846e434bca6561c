/* Detecting the regions of a block: every access, with the loops inside the block run over their domains. */
#include "detect.h"

#include "analysis.h"
#include "loads.h"
#include "tir/arith/affine.h"
#include "tir/arith/linear.h"

#include <stdlib.h>
#include <string.h>

/* The reader lets no buffer have more dimensions than half of this; a matched region's source may. */
enum { MOST_RANK = 64 };

/* What became of the accesses to one buffer so far. */
struct access {
  tir_buffer buffer;
  bool allocated;
  struct tir_interval *dims;
};
struct accesses {
  struct access *at;
  uint32_t count, capacity;
};
enum way { READ, WRITE, OPAQUE, WAYS }; /* opaque: through its pointer */

/* Room for the accesses of most blocks; what needs more is allocated. */
enum { FIRST_ACCESSES = 8, FIRST_DIMS = 64 };
struct room {
  struct access accesses[WAYS][FIRST_ACCESSES];
  struct tir_interval dims[FIRST_DIMS];
};

/* What a variable stands for here: a let's value, or a loop variable of a domain narrowed by a condition. */
struct meaning {
  tir_var var;
  tir_expr value;
};

struct detector {
  struct tir *ir;
  tir_block block;
  struct accesses accesses[WAYS];
  struct room *room;
  uint32_t dims; /* used of the room's */
  tir_var *vars; /* loops inside the block around the place, narrowed ones in place of their originals */
  uint32_t var_count, var_capacity;
  struct meaning *meanings;
  uint32_t meaning_count, meaning_capacity;
};

/* An access seen once under the same loops and meanings needs no second look: visits are forgotten when these change.
 */
static void push_var(struct detector *d, tir_var v) {
  if (d->var_count == d->var_capacity)
    d->vars = tir_enlarge(d->vars, &d->var_capacity, d->var_count + 1ull, sizeof *d->vars);
  d->vars[d->var_count++] = v;
  tir_forget_visits(d->ir);
}

static void push_meaning(struct detector *d, tir_var v, tir_expr value) {
  if (d->meaning_count == d->meaning_capacity)
    d->meanings = tir_enlarge(d->meanings, &d->meaning_capacity, d->meaning_count + 1ull, sizeof *d->meanings);
  d->meanings[d->meaning_count++] = (struct meaning){v, value};
  tir_forget_visits(d->ir);
}

static void drop_meanings(struct detector *d, uint32_t count) {
  if (d->meaning_count == count) return;
  d->meaning_count = count;
  tir_forget_visits(d->ir);
}

/* ---- Recording ---- */

/* Buffers of the block's own do not count. */
static bool counts(const struct detector *d, tir_buffer buffer) {
  tir_stmt where = tir_buffer_at(d->ir, buffer)->where;
  return !where || (where != d->block && !tir_is_below(d->ir, where, d->block));
}

/* A buffer from outside the block, or one that the block matches to a region of such a buffer. */
static bool is_outside(const struct detector *d, tir_buffer buffer) {
  if (counts(d, buffer)) return true;
  struct tir_span matches = tir_block_at(d->ir, d->block)->matches;
  for (uint32_t i = 0; i < matches.count; i++)
    if (d->ir->matches.at[matches.first + i].buffer == buffer)
      return counts(d, d->ir->matches.at[matches.first + i].source.buffer);
  return false;
}

static void enlarge(struct accesses *all, const struct access *first) {
  struct access *at = all->at == first ? NULL : all->at;
  at = tir_enlarge(at, &all->capacity, all->count + 1ull, sizeof *at);
  if (all->at == first) memcpy(at, first, all->count * sizeof *at);
  all->at = at;
}

static struct access *access_of(struct detector *d, enum way way, tir_buffer buffer, uint32_t rank) {
  struct accesses *all = &d->accesses[way];
  for (uint32_t i = 0; i < all->count; i++)
    if (all->at[i].buffer == buffer) return &all->at[i];
  if (all->count == all->capacity) enlarge(all, d->room->accesses[way]);
  struct access *a = &all->at[all->count++];
  bool fits = d->dims + rank <= FIRST_DIMS;
  *a = (struct access){buffer, !fits, fits ? d->room->dims + d->dims : malloc(rank * sizeof *a->dims)};
  if (!a->dims) abort();
  if (fits) d->dims += rank;
  for (uint32_t i = 0; i < rank; i++) a->dims[i] = tir_nothing();
  return a;
}

/* Who uses a matched buffer is taken to use all of the region that it stands for: that has to be declared, too. */
static bool through_match(const struct detector *d, tir_buffer *buffer, struct tir_interval *dims) {
  struct tir *ir = d->ir;
  struct tir_span matches = tir_block_at(ir, d->block)->matches;
  for (uint32_t i = 0; i < matches.count; i++) {
    struct tir_match m = ir->matches.at[matches.first + i];
    if (m.buffer != *buffer) continue;
    for (uint32_t j = 0; j < tir_buffer_at(ir, m.source.buffer)->rank; j++) {
      uint32_t at = m.source.ranges + 2 * j;
      dims[j] = tir_interval_of(ir, ir->operands.at[at], ir->operands.at[at + 1]);
    }
    *buffer = m.source.buffer;
    return true;
  }
  return false;
}

static void record(struct detector *d, enum way way, tir_buffer buffer, struct tir_interval *dims) {
  if (!counts(d, buffer) && (!through_match(d, &buffer, dims) || !counts(d, buffer))) return;
  uint32_t rank = tir_buffer_at(d->ir, buffer)->rank;
  struct access *a = access_of(d, way, buffer, rank);
  for (uint32_t i = 0; i < rank; i++) a->dims[i] = tir_interval_union(d->ir, a->dims[i], dims[i]);
}

/* ---- Indices ---- */

static tir_expr resolve(struct detector *d, tir_expr e) {
  if (!d->meaning_count) return e;
  for (uint32_t i = 0; i < d->meaning_count; i++) tir_subst_var(d->ir, d->meanings[i].var, d->meanings[i].value);
  e = tir_subst(d->ir, e);
  tir_subst_clear(d->ir);
  return e;
}

static bool reads_inner(const struct tir *ir, const void *context, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return (n->kind == TIR_LOAD || n->kind == TIR_DATA) && !counts(context, n->ref);
}

/* All lanes of a ramp, which rises or falls. */
static struct tir_interval relax_ramp(struct detector *d, struct tir_expr_node ramp) {
  struct tir *ir = d->ir;
  tir_expr last = tir_int(ir, tir_type_of(ir, ramp.b), tir_type_lanes(ramp.type) - 1),
           reach = tir_mul(ir, ramp.b, last);
  struct tir_interval first = tir_relax(ir, ramp.a, d->vars, d->var_count);
  struct tir_interval end = tir_relax(ir, tir_add(ir, ramp.a, reach), d->vars, d->var_count);
  if (tir_at(ir, ramp.b)->lo >= 0) return (struct tir_interval){first.min, end.max, false};
  if (tir_at(ir, ramp.b)->hi <= 0) return (struct tir_interval){end.min, first.max, false};
  return tir_interval_union(ir, first, end);
}

/* The values of an index, all lanes of a ramp. What the block's own buffers hold is not known outside it. */
static struct tir_interval relax_index(struct detector *d, tir_expr e) {
  struct tir *ir = d->ir;
  e = resolve(d, e);
  tir_type type = tir_type_of(ir, e);
  if (tir_type_bits(type) < 32) e = tir_cast(ir, tir_type_with_lanes(TIR_T_I32, tir_type_lanes(type)), e);
  if (tir_any_node(ir, e, TIR_HAS_LOAD | TIR_HAS_POINTER, reads_inner, d))
    return (struct tir_interval){TIR_NONE, TIR_NONE, false};
  const struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind != TIR_RAMP) return tir_relax(ir, n.kind == TIR_BROADCAST ? n.a : e, d->vars, d->var_count);
  return relax_ramp(d, n);
}

static void record_element(struct detector *d, enum way way, tir_buffer buffer, uint32_t first, uint32_t rank) {
  struct tir_interval dims[MOST_RANK];
  assert(rank <= MOST_RANK);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr index = d->ir->operands.at[first + i];
    if (tir_at(d->ir, index)->kind == TIR_SLICE) {
      struct tir_interval a = relax_index(d, tir_at(d->ir, index)->a), b = relax_index(d, tir_at(d->ir, index)->b);
      tir_type type = tir_type_of(d->ir, index);
      dims[i] = (struct tir_interval){a.min, b.max ? tir_sub(d->ir, b.max, tir_int(d->ir, type, 1)) : TIR_NONE, false};
    } else {
      dims[i] = relax_index(d, index);
    }
  }
  record(d, way, buffer, dims);
}

static void record_region(struct detector *d, enum way way, struct tir_region region) {
  struct tir_interval dims[MOST_RANK];
  uint32_t rank = tir_buffer_at(d->ir, region.buffer)->rank;
  assert(rank <= MOST_RANK);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr min = resolve(d, d->ir->operands.at[region.ranges + 2 * i]);
    tir_expr extent = resolve(d, d->ir->operands.at[region.ranges + 2 * i + 1]);
    struct tir_interval all = tir_interval_of(d->ir, min, extent);
    dims[i] = (struct tir_interval){relax_index(d, all.min).min, relax_index(d, all.max).max, false};
  }
  record(d, way, region.buffer, dims);
}

static void record_whole(struct detector *d, enum way way, tir_buffer buffer) {
  struct tir_interval dims[MOST_RANK];
  uint32_t rank = tir_buffer_at(d->ir, buffer)->rank;
  assert(rank <= MOST_RANK);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr extent = d->ir->operands.at[tir_buffer_at(d->ir, buffer)->shape + i];
    dims[i] = tir_interval_of(d->ir, tir_int(d->ir, tir_type_of(d->ir, extent), 0), extent);
  }
  record(d, way, buffer, dims);
}

static void record_opaque(struct detector *d, tir_buffer buffer) {
  if (is_outside(d, buffer)) record_whole(d, OPAQUE, buffer);
}

/* ---- Conditions ---- */

/* What a condition says of the loops around: bounds of their variables. `solved` falls when it says more than that:
 * then none of it is used, as in TVM, whose regions these are. */
struct bound {
  uint32_t var;
  int64_t lo, hi;
}; /* var: position in detector.vars */
enum { MOST_BOUNDS = 32 };
struct bounds {
  struct bound at[MOST_BOUNDS];
  uint32_t count;
  bool solved;
};

/* Only comparisons made of variables, constants and plain arithmetic are looked at. */
static bool is_plain(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_VAR || n->kind == TIR_INT_IMM) return true;
  bool arithmetic = n->kind == TIR_ADD || n->kind == TIR_SUB || n->kind == TIR_MUL || n->kind == TIR_FLOORDIV ||
                    n->kind == TIR_FLOORMOD;
  return arithmetic && is_plain(ir, n->a) && is_plain(ir, n->b);
}

static void add_bound(struct bounds *all, struct bound b) {
  for (uint32_t i = 0; i < all->count; i++) {
    if (all->at[i].var != b.var) continue;
    if (b.lo > all->at[i].lo) all->at[i].lo = b.lo;
    if (b.hi < all->at[i].hi) all->at[i].hi = b.hi;
    return;
  }
  if (all->count == MOST_BOUNDS)
    all->solved = false;
  else
    all->at[all->count++] = b;
}

/* small <= large, or small < large. */
static void add_comparison(struct detector *d, struct bounds *all, tir_expr small, tir_expr large, bool strict) {
  struct tir *ir = d->ir;
  if (!tir_is_index(ir, small) || !tir_is_index(ir, large)) return;
  struct tir_linear l = tir_linear_of(ir, tir_sub(ir, small, large)); /* c * v + k <= 0 */
  struct tir_term term = l.count ? tir_terms(ir, l)[0] : (struct tir_term){0, TIR_NONE};
  uint32_t i = 0;
  while (i < d->var_count && (!term.atom || d->vars[i] != tir_at(ir, term.atom)->ref)) i++;
  if (l.count != 1 || tir_at(ir, term.atom)->kind != TIR_VAR || i == d->var_count || l.constant <= -INT32_MAX ||
      l.constant >= INT32_MAX) {
    all->solved = false;
    return;
  }
  int64_t k = l.constant + strict, c = term.coefficient;
  if (c > 0)
    add_bound(all, (struct bound){i, INT64_MIN, tir_floor_div(-k, c)});
  else if (c < 0)
    add_bound(all, (struct bound){i, -tir_floor_div(-k, -c), INT64_MAX});
}

static void gather(struct detector *d, struct bounds *all, tir_expr condition, bool holds) {
  const struct tir_expr_node n = *tir_at(d->ir, condition);
  if (n.kind == TIR_NOT) return gather(d, all, n.a, !holds);
  if (n.kind == (holds ? TIR_AND : TIR_OR)) {
    gather(d, all, n.a, holds);
    return gather(d, all, n.b, holds);
  }
  if (n.kind == TIR_CALL && n.count == 1 && holds && !strcmp(tir_text(d->ir, n.ref), "likely"))
    return gather(d, all, d->ir->operands.at[n.operands], holds);
  if (n.kind < TIR_EQ || n.kind > TIR_GE || !is_plain(d->ir, n.a) || !is_plain(d->ir, n.b)) return;
  bool above = n.kind == TIR_GT || n.kind == TIR_GE, strict = n.kind == TIR_LT || n.kind == TIR_GT;
  tir_expr small = above == holds ? n.b : n.a, large = above == holds ? n.a : n.b;
  if (n.kind != TIR_EQ && n.kind != TIR_NE) return add_comparison(d, all, small, large, strict == holds);
  if (holds != (n.kind == TIR_EQ)) {
    all->solved = false;
    return;
  }
  add_comparison(d, all, n.a, n.b, false);
  add_comparison(d, all, n.b, n.a, false);
}

/* The variable at a position gives way to one of a narrower domain. */
static void replace_var(struct detector *d, uint32_t position, int64_t lo, int64_t hi) {
  struct tir *ir = d->ir;
  tir_var old = d->vars[position];
  struct tir_var_node v = ir->vars.at[old];
  tir_var narrower =
      tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, tir_int(ir, v.type, lo), tir_int(ir, v.type, hi - lo + 1));
  tir_expr value = tir_var_expr(ir, narrower);
  for (uint32_t i = 0; i < d->meaning_count; i++) { /* what was narrowed before, and lets of it, are narrowed again */
    tir_subst_var(ir, old, value);
    tir_expr changed = tir_subst(ir, d->meanings[i].value);
    tir_subst_clear(ir);
    d->meanings[i].value = changed;
  }
  push_meaning(d, old, value);
  d->vars[position] = narrower;
}

/* Narrows the loops around by a condition that holds, or does not, from here on. */
static void narrow(struct detector *d, tir_expr condition, bool holds) {
  if (!d->var_count) return;
  struct bounds all = {.count = 0, .solved = true};
  gather(d, &all, resolve(d, condition), holds);
  for (uint32_t i = 0; i < all.count && all.solved; i++) {
    const struct tir_var_node *v = &d->ir->vars.at[d->vars[all.at[i].var]];
    all.solved = v->min && v->extent && tir_is_int(d->ir, v->min) && tir_is_int(d->ir, v->extent);
    if (!all.solved) break;
    int64_t lo = tir_at(d->ir, v->min)->imm, hi = lo + tir_at(d->ir, v->extent)->imm - 1;
    if (all.at[i].lo < lo) all.at[i].lo = lo;
    if (all.at[i].hi > hi) all.at[i].hi = hi;
    all.solved = all.at[i].lo <= all.at[i].hi;
  }
  for (uint32_t i = 0; i < all.count && all.solved; i++) replace_var(d, all.at[i].var, all.at[i].lo, all.at[i].hi);
}

/* What conditions changed, to be put back. */
struct state {
  uint32_t meaning_count, var_count;
  tir_var *vars;
  tir_expr *values;
};

static struct state save(const struct detector *d) {
  struct state s = {d->meaning_count, d->var_count, NULL, NULL};
  if (s.var_count) s.vars = malloc(s.var_count * sizeof *s.vars);
  if (s.meaning_count) s.values = malloc(s.meaning_count * sizeof *s.values);
  if ((s.var_count && !s.vars) || (s.meaning_count && !s.values)) abort();
  if (d->var_count) memcpy(s.vars, d->vars, d->var_count * sizeof *s.vars);
  for (uint32_t i = 0; i < d->meaning_count; i++) s.values[i] = d->meanings[i].value;
  return s;
}

static void restore(struct detector *d, struct state *s) {
  drop_meanings(d, s->meaning_count); /* each narrowing adds one */
  d->var_count = s->var_count;
  if (s->var_count) memcpy(d->vars, s->vars, s->var_count * sizeof *s->vars);
  for (uint32_t i = 0; i < s->meaning_count; i++) d->meanings[i].value = s->values[i];
  free(s->vars);
  free(s->values);
}

/* ---- Expressions ---- */

static void visit_expr(struct detector *d, tir_expr e);

static void visit_if_then_else(struct detector *d, const struct tir_expr_node *n) {
  tir_expr condition = d->ir->operands.at[n->operands];
  visit_expr(d, condition);
  for (uint32_t branch = 1; branch <= 2; branch++) {
    struct state s = save(d);
    narrow(d, condition, branch == 1);
    visit_expr(d, d->ir->operands.at[n->operands + branch]);
    restore(d, &s);
  }
}

/* The whole buffer is read or written. */
static bool visit_pointer(struct detector *d, const struct tir_expr_node *n) {
  struct tir_pointer p;
  if (!tir_pointer_of(d->ir, n, &p) || !p.buffer || p.uses < 0) return false;
  if (p.uses == (TIR_POINTER_READS | TIR_POINTER_WRITES))
    record_opaque(d, p.buffer);
  else if (p.uses)
    record_whole(d, p.uses == TIR_POINTER_WRITES ? WRITE : READ, p.buffer);
  return true;
}

static void visit_expr(struct detector *d, tir_expr e) {
  if (!e) return;
  const struct tir_expr_node n = *tir_at(d->ir, e);
  if (n.kind <= TIR_NONE_IMM || n.kind == TIR_VAR) return;
  if (n.kind == TIR_DATA) {
    record_opaque(d, n.ref);
    return;
  }
  if (!(n.flags & (TIR_HAS_LOAD | TIR_HAS_CALL)) || tir_visited(d->ir, e)) return;
  if (n.kind == TIR_LOAD) record_element(d, READ, n.ref, n.operands, n.count);
  if (n.kind == TIR_CALL && n.count == 3 && !strcmp(tir_text(d->ir, n.ref), "if_then_else"))
    return visit_if_then_else(d, &n);
  if (visit_pointer(d, &n)) return;
  visit_expr(d, n.a);
  uint32_t meanings = d->meaning_count;
  if (n.kind == TIR_LET) push_meaning(d, n.ref, resolve(d, n.a));
  visit_expr(d, n.b);
  drop_meanings(d, meanings);
  visit_expr(d, n.c);
  for (uint32_t i = 0; i < n.count; i++) visit_expr(d, d->ir->operands.at[n.operands + i]);
}

/* ---- Statements ---- */

static void visit_list(struct detector *d, tir_stmt first);

/* A block inside: what its predicate and bindings load; its regions, with its bindings in place of its variables. */
static void visit_block(struct detector *d, tir_block b) {
  struct tir *ir = d->ir;
  struct tir_block_record r = *tir_block_at(ir, b);
  struct state s = save(d);
  visit_expr(d, tir_as(ir, b, TIR_BLOCK)->block.predicate);
  for (uint32_t i = 0; i < r.iters.count; i++) visit_expr(d, ir->iters.at[r.iters.first + i].binding);
  for (uint32_t i = 0; i < r.iters.count; i++) {
    struct tir_iter iter = ir->iters.at[r.iters.first + i];
    push_meaning(d, iter.var, resolve(d, iter.binding));
  }
  for (uint32_t i = 0; i < r.reads.count; i++) record_region(d, READ, ir->regions.at[r.reads.first + i]);
  for (uint32_t i = 0; i < r.writes.count; i++) record_region(d, WRITE, ir->regions.at[r.writes.first + i]);
  restore(d, &s);
}

static void visit_branches(struct detector *d, tir_stmt s) {
  tir_expr condition = tir_stmt_at(d->ir, s)->test.condition;
  visit_expr(d, condition);
  for (int list = TIR_BODY; list <= TIR_ELSE; list++) {
    struct state state = save(d);
    narrow(d, condition, list == TIR_BODY);
    visit_list(d, tir_stmt_at(d->ir, s)->first[list]);
    restore(d, &state);
  }
}

static void visit_loop(struct detector *d, tir_stmt s) {
  struct tir_stmt_node n = *tir_stmt_at(d->ir, s);
  visit_expr(d, n.loop.min);
  visit_expr(d, n.loop.extent);
  push_var(d, n.loop.var);
  visit_list(d, n.first[TIR_BODY]);
  d->var_count--;
  tir_forget_visits(d->ir);
}

static void visit_stmt(struct detector *d, tir_stmt s) {
  const struct tir_stmt_node n = *tir_stmt_at(d->ir, s);
  switch (n.kind) {
  case TIR_LOOP: visit_loop(d, s); return;
  case TIR_BLOCK: visit_block(d, s); return;
  case TIR_IF: visit_branches(d, s); return;
  case TIR_STORE:
    record_element(d, WRITE, n.store.buffer, n.store.indices, tir_buffer_at(d->ir, n.store.buffer)->rank);
    visit_expr(d, n.store.value);
    for (uint32_t i = 0; i < tir_buffer_at(d->ir, n.store.buffer)->rank; i++)
      visit_expr(d, d->ir->operands.at[n.store.indices + i]);
    return;
  case TIR_BIND:
    visit_expr(d, n.bind.value);
    push_meaning(d, n.bind.var, resolve(d, n.bind.value));
    return;
  case TIR_EVALUATE: visit_expr(d, n.evaluate.value); return;
  case TIR_WHILE:
  case TIR_ASSERT: visit_expr(d, n.test.condition); break;
  case TIR_ATTR: visit_expr(d, n.attr.value); break;
  default: break;
  }
  visit_list(d, n.first[TIR_BODY]);
}

/* Lets hold for the rest of their list. */
static void visit_list(struct detector *d, tir_stmt first) {
  uint32_t meanings = d->meaning_count;
  for (tir_stmt s = first; s; s = tir_stmt_at(d->ir, s)->next) visit_stmt(d, s);
  drop_meanings(d, meanings);
}

/* ---- Results ---- */

static struct tir_region region_of(struct tir *ir, const struct access *a) {
  for (uint32_t i = 0; i < tir_buffer_at(ir, a->buffer)->rank; i++)
    if (tir_is_point(ir, a->dims[i])) a->dims[i].max = a->dims[i].min;
  return tir_region_of_box(ir, a->buffer, a->dims);
}

static bool is_among(const struct accesses *all, tir_buffer buffer) {
  for (uint32_t i = 0; i < all->count; i++)
    if (all->at[i].buffer == buffer) return true;
  return false;
}

static bool same_bound(const struct tir *ir, tir_expr a, tir_expr b) {
  return a == b || (a && b && tir_is_int(ir, a) && tir_is_int(ir, b) && tir_at(ir, a)->imm == tir_at(ir, b)->imm);
}

/* A reduction reads of the buffer what it writes: its init has begun that. */
static bool is_reduced(const struct detector *d, const struct access *read) {
  const struct access *written = NULL;
  for (uint32_t i = 0; i < d->accesses[WRITE].count; i++)
    if (d->accesses[WRITE].at[i].buffer == read->buffer) written = &d->accesses[WRITE].at[i];
  if (!written || !tir_stmt_at(d->ir, d->block)->first[TIR_INIT]) return false;
  for (uint32_t i = 0; i < tir_buffer_at(d->ir, read->buffer)->rank; i++)
    if (!same_bound(d->ir, read->dims[i].min, written->dims[i].min) ||
        !same_bound(d->ir, read->dims[i].max, written->dims[i].max))
      return false;
  return true;
}

/* What is used through its pointer counts as both, after the others. */
static void set_regions(struct detector *d, bool writes) {
  const struct accesses *all = &d->accesses[writes ? WRITE : READ], *opaque = &d->accesses[OPAQUE];
  struct tir_region on_stack[FIRST_ACCESSES],
      *regions = tir_room(on_stack, sizeof on_stack, (all->count + opaque->count) * sizeof *regions);
  uint32_t count = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    tir_buffer buffer = all->at[i].buffer;
    if ((writes || !is_reduced(d, &all->at[i])) && !is_among(opaque, buffer))
      regions[count++] = region_of(d->ir, &all->at[i]);
  }
  for (uint32_t i = 0; i < opaque->count; i++) regions[count++] = region_of(d->ir, &opaque->at[i]);
  (writes ? tir_set_writes : tir_set_reads)(d->ir, d->block, regions, count);
  if (regions != on_stack) free(regions);
}

static void open_detector(struct detector *d, struct tir *ir, tir_block block, struct room *room) {
  *d = (struct detector){.ir = ir, .block = block, .room = room};
  for (int way = 0; way < WAYS; way++) d->accesses[way] = (struct accesses){room->accesses[way], 0, FIRST_ACCESSES};
  tir_forget_visits(ir);
  visit_list(d, tir_stmt_at(ir, block)->first[TIR_INIT]);
  visit_list(d, tir_stmt_at(ir, block)->first[TIR_BODY]);
}

static void close_detector(struct detector *d) {
  for (int way = 0; way < WAYS; way++) {
    struct accesses *all = &d->accesses[way];
    for (uint32_t i = 0; i < all->count; i++)
      if (all->at[i].allocated) free(all->at[i].dims);
    if (all->at != d->room->accesses[way]) free(all->at);
  }
  free(d->vars);
  free(d->meanings);
}

bool tir_detect_regions(struct tir *ir, tir_block block, bool reads, bool writes) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct detector d;
  struct room room;
  open_detector(&d, ir, block, &room);
  bool known = !d.accesses[OPAQUE].count;
  if (known && reads) set_regions(&d, false);
  if (known && writes) set_regions(&d, true);
  close_detector(&d);
  return known;
}

void tir_renew_regions(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct detector d;
  struct room room;
  open_detector(&d, ir, block, &room);
  set_regions(&d, false);
  set_regions(&d, true);
  close_detector(&d);
}

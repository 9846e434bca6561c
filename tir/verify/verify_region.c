/* The verifier: what blocks touch lies within what they say they touch.
 *
 * Nothing is held against regions of a buffer of which a user annotated one, whichever block bears them: they are made
 * of each other. Of the others, only what is certainly outside is refused. The distance from a region's edge is a
 * linear form over variables; where all of them are independent and their domains constant, its extremes are attained,
 * and one beyond the edge is a violation. Elsewhere only a distance that is beyond the edge for all values is; so where
 * conditions decide what is touched: a block's region says nothing of these. */
#include "tir/analysis/access.h"
#include "tir/analysis/loads.h"
#include "verify.h"

enum { MOST_TERMS = 24 };

struct distance {
  const struct verifier *v;
  tir_block inner; /* its iteration variables stand for their bindings */
  int64_t constant;
  uint32_t count;
  struct tir_term terms[MOST_TERMS];
  bool known;
  tir_expr predicate; /* of the block; TIR_NONE: it has none */
};

static void add_term(struct distance *d, tir_expr atom, int64_t coefficient) {
  assert(d->count <= MOST_TERMS);
  uint32_t i = 0;
  while (i < d->count && d->terms[i].atom != atom) i++;
  if (i == MOST_TERMS) {
    d->known = false;
    return;
  }
  if (i == d->count) d->terms[d->count++] = (struct tir_term){0, atom};
  if (__builtin_add_overflow(d->terms[i].coefficient, coefficient, &d->terms[i].coefficient)) d->known = false;
}

/* Whether an expression holds iteration variables of the inner block, which must be replaced. */
static bool uses_inner(const struct distance *d, tir_expr e) {
  if (!d->inner) return false;
  const struct tir_iter *iters = tir_iters(d->v->ir, d->inner);
  for (uint32_t i = 0; i < tir_block_at(d->v->ir, d->inner)->iters.count; i++)
    if (tir_at(d->v->ir, e)->vars >> (iters[i].var & 63) & 1 && tir_uses_var(d->v->ir, e, iters[i].var)) return true;
  return false;
}

static tir_expr binding_of(const struct distance *d, tir_var x) {
  if (!d->inner || d->v->vars[x].iter_of != d->inner) return TIR_NONE;
  const struct tir_iter *iters = tir_iters(d->v->ir, d->inner);
  for (uint32_t i = 0; i < tir_block_at(d->v->ir, d->inner)->iters.count; i++)
    if (iters[i].var == x) return iters[i].binding;
  return TIR_NONE;
}

static void add(struct distance *d, tir_expr e, int64_t scale) {
  const struct tir *ir = d->v->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  int64_t product;
  if (!d->known) return;
  switch ((enum tir_kind)n->kind) {
  case TIR_INT_IMM:
    if (__builtin_mul_overflow(n->imm, scale, &product) || __builtin_add_overflow(d->constant, product, &d->constant))
      d->known = false;
    return;
  case TIR_ADD:
  case TIR_SUB:
    add(d, n->a, scale);
    add(d, n->b, n->kind == TIR_ADD ? scale : -scale);
    return;
  case TIR_MUL: {
    tir_expr factor = tir_is_int(ir, n->a) ? n->a : n->b, rest = factor == n->a ? n->b : n->a;
    if (!tir_is_int(ir, factor)) break;
    if (__builtin_mul_overflow(tir_at(ir, factor)->imm, scale, &product))
      d->known = false;
    else
      add(d, rest, product);
    return;
  }
  case TIR_CAST:
    if (!tir_type_is_int(tir_type_of(ir, n->a)) || !tir_type_is_int(n->type)) break;
    add(d, n->a, scale);
    return;
  case TIR_VAR: {
    tir_expr binding = binding_of(d, n->ref);
    if (!binding) break;
    struct distance *outside = d;
    tir_block inner = outside->inner;
    outside->inner = TIR_NONE;
    add(outside, binding, scale);
    outside->inner = inner;
    return;
  }
  default: break;
  }
  if (uses_inner(d, e))
    d->known = false;
  else
    add_term(d, e, scale);
}

/* A predicate, and who asks of it. */
struct limit {
  const struct verifier *v;
  tir_expr predicate; /* TIR_NONE: there is none */
};

/* It, or the predicate of the block whose iteration the variable is, speaks of the variable, or of what that is bound
 * to: some values are left out. */
static bool is_limited(const struct tir *ir, const void *context, tir_var x) {
  struct limit l = *(const struct limit *)context;
  tir_block block = l.v->vars[x].iter_of;
  if (l.predicate && tir_uses_var(ir, l.predicate, x)) return true;
  tir_expr binding = block ? tir_binding_of(ir, block, x) : TIR_NONE;
  if (!binding) return false;
  struct limit own = {l.v, tir_as(ir, block, TIR_BLOCK)->block.predicate};
  return tir_any_var(ir, binding, is_limited, &l) ||
         (own.predicate && own.predicate != l.predicate && tir_any_var(ir, binding, is_limited, &own));
}

/* The extremes of the distance; *attained: some values of the variables give each. Not those of a loop or an iteration
 * that a predicate limits. */
static struct tir_bounds extremes(const struct distance *d, bool *attained) {
  assert(d->known && attained);
  const struct tir *ir = d->v->ir;
  struct limit limit = {d->v, d->predicate};
  struct tir_bounds b = {d->constant, d->constant};
  *attained = true;
  for (uint32_t i = 0; i < d->count; i++) {
    const struct tir_expr_node *n = tir_at(ir, d->terms[i].atom);
    int64_t k = d->terms[i].coefficient;
    if (k == 0) continue;
    const struct tir_var_node *x = n->kind == TIR_VAR ? &ir->vars.at[n->ref] : NULL;
    bool box = x && x->min && tir_is_int(ir, x->min) && tir_is_int(ir, x->extent) && tir_at(ir, x->extent)->imm > 0;
    *attained = *attained && box && !is_limited(ir, &limit, n->ref);
    b.lo = tir_sat_add(b.lo, tir_sat_mul(k, k > 0 ? n->lo : n->hi));
    b.hi = tir_sat_add(b.hi, tir_sat_mul(k, k > 0 ? n->hi : n->lo));
  }
  return b;
}

/* Whether a distance that must not be negative is. */
static bool is_negative(const struct distance *d, bool guarded) {
  bool attained;
  if (!d->known) return false;
  struct tir_bounds b = extremes(d, &attained);
  return b.hi < 0 || (b.lo < 0 && attained && !guarded);
}

static struct distance start(const struct verifier *v, tir_block inner, int64_t constant) {
  return (struct distance){.v = v, .inner = inner, .constant = constant, .known = true};
}

static bool is_whole(const struct tir *ir, const struct tir_region *r, uint32_t dim) {
  const tir_expr *region = tir_operands(ir, r->ranges) + 2 * dim;
  return tir_is_const(ir, region[0], 0) && region[1] == tir_operands(ir, tir_buffer_at(ir, r->buffer)->shape)[dim];
}

/* Whether what is touched certainly leaves a region in dimension `dim`. A region past the buffer's ends, where nothing
 * is, says what may be touched under conditions that keep it inside. A region of which conditions leave a part leaves
 * another only where it has nothing in common with it. */
static bool leaves(const struct verifier *v, const struct touched *t, const struct tir_region *r, uint32_t dim) {
  const tir_expr *region = tir_operands(v->ir, r->ranges) + 2 * dim;
  if (t->region && is_whole(v->ir, r, dim)) return false;
  tir_expr min = t->region ? t->ranges[2 * dim] : t->ranges[dim];
  if (tir_type_lanes(tir_type_of(v->ir, min)) > 1) return false;
  bool in_part = t->region && t->guarded;
  /* The region's variables are those of the block; what is touched may speak of the inner block's. */
  struct distance below = start(v, TIR_NONE, in_part ? -1 : 0),
                  above = start(v, TIR_NONE, t->region && !in_part ? 0 : -1);
  add(&below, region[0], -1);
  add(&above, region[0], 1);
  add(&above, region[1], 1);
  below.inner = above.inner = t->inner;
  below.predicate = above.predicate = t->predicate;
  add(&below, min, 1);
  add(&above, min, -1);
  if (t->region) add(in_part ? &below : &above, t->ranges[2 * dim + 1], in_part ? 1 : -1);
  return is_negative(&below, t->guarded) || is_negative(&above, t->guarded);
}

/* The dimension in which what is touched leaves each of the regions of its buffer, or -1. *found: there is one. */
static int find_outside(const struct verifier *v, const struct touched *t, struct tir_span regions, bool *found) {
  struct touched one = *t;
  int outside = -1;
  /* Of several regions, each may hold a part: then only what is outside altogether counts. */
  one.guarded = t->guarded || tir_count_regions_of(v->ir, regions, t->buffer) > 1;
  for (uint32_t i = 0; i < regions.count; i++) {
    const struct tir_region *r = &v->ir->regions.at[regions.first + i];
    if (r->buffer != t->buffer) continue;
    *found = true;
    int leaving = -1;
    for (uint32_t dim = 0; dim < v->ir->buffers.at[t->buffer].rank && leaving < 0; dim++)
      if (leaves(v, &one, r, dim)) leaving = (int)dim;
    if (leaving < 0) return -1;
    outside = leaving;
  }
  return outside;
}

static bool is_local(const struct tir *ir, tir_buffer b, tir_block block) {
  tir_stmt where = ir->buffers.at[b].where;
  return where && (where == block || tir_is_below(ir, where, block));
}

static bool never_runs(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  if (n->kind == TIR_LOOP) return tir_at(ir, n->loop.extent)->hi < 1;
  return n->kind == TIR_BLOCK && n->block.predicate && tir_at(ir, n->block.predicate)->hi < 1;
}

/* In a loop without iterations, or a block under a false predicate, nothing is touched. */
static bool is_unreachable(const struct tir *ir, tir_stmt s) {
  while (s && !never_runs(ir, s)) s = tir_stmt_at(ir, s)->parent;
  return s != TIR_NONE;
}

/* ---- Conditions ---- */

bool tir_is_guarded(const struct tir *ir, tir_stmt s, tir_stmt top) {
  for (; s != top; s = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, s, TIR_IF) || tir_is(ir, s, TIR_WHILE)) return true;
    if (tir_is(ir, s, TIR_BLOCK) && tir_as(ir, s, TIR_BLOCK)->block.predicate) return true;
  }
  return false;
}

/* How a buffer is read, or written: where some condition holds, or whatever holds. */
struct use {
  const struct tir *ir;
  tir_buffer buffer;
  bool writes, guarded, always;
};

static void note(struct use *u, bool guarded) { *(guarded ? &u->guarded : &u->always) = true; }

static void note_uses(struct use *u, tir_expr e, bool guarded) {
  if (e == TIR_NONE || !tir_uses_buffer(u->ir, e, u->buffer)) return;
  const struct tir_expr_node *n = tir_at(u->ir, e);
  bool chooses = n->kind == TIR_SELECT || n->kind == TIR_AND || n->kind == TIR_OR;
  bool reads = !u->writes && n->kind == TIR_LOAD && n->ref == u->buffer;
  if (reads || n->kind == TIR_DATA) note(u, guarded && reads);
  note_uses(u, n->a, guarded);
  note_uses(u, n->b, guarded || chooses);
  note_uses(u, n->c, guarded || chooses);
  for (uint32_t i = 0; i < n->count; i++)
    note_uses(u, tir_operands(u->ir, n->operands)[i], guarded || (i > 0 && tir_is_choice(u->ir, n)));
}

static void note_uses_of_block(struct use *u, tir_block b, bool guarded) {
  const struct tir_block_record *n = tir_block_at(u->ir, b);
  for (uint32_t i = 0; i < n->iters.count; i++) note_uses(u, tir_iters(u->ir, b)[i].binding, guarded);
  note_uses(u, tir_as(u->ir, b, TIR_BLOCK)->block.predicate, guarded);
  u->always |= tir_matches_part_of(u->ir, b, u->buffer);
}

static void note_uses_of_stmt(struct use *u, tir_stmt s, bool guarded) {
  const struct tir_stmt_node *n = tir_stmt_at(u->ir, s);
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(u->ir, s, all);
  for (uint32_t i = 0; i < count; i++) note_uses(u, all[i], guarded);
  if (n->kind == TIR_BLOCK) note_uses_of_block(u, s, guarded);
  if (n->kind != TIR_STORE) return;
  if (u->writes && n->store.buffer == u->buffer) note(u, guarded || n->store.predicate);
  for (uint32_t i = 0; i < tir_buffer_at(u->ir, n->store.buffer)->rank; i++)
    note_uses(u, tir_operands(u->ir, n->store.indices)[i], guarded);
}

/* The block and those in it read the buffer, or write it, where conditions in them hold, and nowhere else. */
static bool uses_under_conditions(const struct tir *ir, tir_block block, tir_buffer buffer, bool writes) {
  struct use u = {.ir = ir, .buffer = buffer, .writes = writes, .always = tir_matches_part_of(ir, block, buffer)};
  for (tir_stmt s = tir_next(ir, block, block); s && !u.always; s = tir_next(ir, s, block))
    note_uses_of_stmt(&u, s, tir_is_guarded(ir, tir_stmt_at(ir, s)->parent, block));
  return u.guarded && !u.always;
}

/* ---- Touching ---- */

bool tir_verify_touch(struct verifier *v, tir_block block, const struct touched *t) {
  if (v->trusts_regions) return true;
  const struct tir *ir = v->ir;
  /* A root's regions are whatever its blocks touch, and are not written down. */
  if (!block || tir_is(ir, tir_stmt_at(ir, block)->parent, TIR_FUNCTION) || is_local(ir, t->buffer, block)) return true;
  if (tir_buffer_at(ir, t->buffer)->user_annotated) return true;
  const struct tir_block_record *r = tir_block_at(ir, block);
  bool in_writes = false, in_reads = false;
  struct touched own = *t;
  own.predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  int outside_writes = find_outside(v, &own, r->writes, &in_writes);
  int outside_reads = t->writes ? -1 : find_outside(v, &own, r->reads, &in_reads);
  /* A buffer that no region names is used undeclared: instructions leave that, and some blocks declare nothing. */
  if (!in_writes && !in_reads) return true;
  if ((in_writes && outside_writes < 0) || (in_reads && outside_reads < 0)) return true;
  if (is_unreachable(ir, v->place)) return true;
  if (t->inner && !t->guarded && uses_under_conditions(ir, t->inner, t->buffer, t->writes)) {
    struct touched guarded = *t;
    guarded.guarded = true;
    return tir_verify_touch(v, block, &guarded);
  }
  return tir_refuse(ir, v->err, MS_VERIFY_REGION, block, "block %s %s %s outside of its regions in dimension %d",
                    tir_block_name(ir, block), t->writes ? "writes" : "reads",
                    tir_text(ir, ir->buffers.at[t->buffer].name), in_reads ? outside_reads : outside_writes);
}

/* Substitution of variables and buffers, and simplification, which is substitution of nothing.
 *
 * The map stands in scratch memory, an entry a variable or buffer; a memo holds what became of each expression while
 * the map does not change. Index arithmetic is rebuilt as sums, the rest node by node. */
#include "arena.h"
#include "tir/arith/linear.h"

#include <stdlib.h>
#include <string.h>

static void *zero_enlarge(void *at, uint32_t *capacity, uint32_t count, size_t size) {
  uint32_t before = *capacity;
  if (count <= before) return at;
  at = tir_enlarge(at, capacity, count, size);
  memset((char *)at + before * size, 0, (*capacity - before) * size);
  return at;
}

struct substitution {
  uint32_t *var_to, *buffer_to;
  uint32_t var_capacity, buffer_capacity;
  uint32_t *changed_vars, *changed_buffers;
  uint32_t changed_var_count, changed_var_capacity, changed_buffer_count, changed_buffer_capacity;
  uint64_t mask;
  bool orders;  /* tir_subst_order */
  bool as_is;   /* tir_subst_as_is */
  bool divides; /* tir_subst_divide */
  unsigned how; /* the way of the last rewriting */
  struct {
    uint32_t epoch, to;
  } * memo;
  uint32_t memo_capacity, epoch;
};

static void release(void *memory) {
  struct substitution *s = memory;
  free(s->var_to);
  free(s->buffer_to);
  free(s->changed_vars);
  free(s->changed_buffers);
  free(s->memo);
}

static struct substitution *substitution_of(const struct tir *ir) {
  static const struct tir_scratch_kind kind = {sizeof(struct substitution), release, NULL};
  return tir_scratch_of(ir, TIR_SCRATCH_SUBST, &kind);
}

/* Once in 2^32: old epochs must not come back. */
static __attribute__((cold)) void begin_epochs(struct substitution *s) {
  memset(s->memo, 0, s->memo_capacity * sizeof *s->memo);
  s->epoch = 1;
}

static void new_epoch(struct substitution *s) {
  if (++s->epoch == 0) begin_epochs(s);
}

void tir_subst_var(struct tir *ir, tir_var v, tir_expr value) {
  MS_CHECK(v && v < ir->vars.count && value);
  struct substitution *s = substitution_of(ir);
  s->var_to = zero_enlarge(s->var_to, &s->var_capacity, v + 1, sizeof(uint32_t));
  if (s->changed_var_count == s->changed_var_capacity)
    s->changed_vars =
        tir_enlarge(s->changed_vars, &s->changed_var_capacity, s->changed_var_count + 1ull, sizeof(uint32_t));
  s->changed_vars[s->changed_var_count++] = v;
  s->var_to[v] = value;
  s->mask |= 1ull << (v & 63);
  new_epoch(s);
}

void tir_subst_buffer(struct tir *ir, tir_buffer from, tir_buffer to) {
  MS_CHECK(tir_is_buffer(ir, from) && tir_is_buffer(ir, to));
  struct substitution *s = substitution_of(ir);
  s->buffer_to = zero_enlarge(s->buffer_to, &s->buffer_capacity, from + 1, sizeof(uint32_t));
  if (s->changed_buffer_count == s->changed_buffer_capacity)
    s->changed_buffers =
        tir_enlarge(s->changed_buffers, &s->changed_buffer_capacity, s->changed_buffer_count + 1ull, sizeof(uint32_t));
  s->changed_buffers[s->changed_buffer_count++] = from;
  s->buffer_to[from] = to;
  new_epoch(s);
}

void tir_subst_clear(struct tir *ir) {
  struct substitution *s = substitution_of(ir);
  for (uint32_t i = 0; i < s->changed_var_count; i++) s->var_to[s->changed_vars[i]] = TIR_NONE;
  for (uint32_t i = 0; i < s->changed_buffer_count; i++) s->buffer_to[s->changed_buffers[i]] = TIR_NONE;
  s->changed_var_count = s->changed_buffer_count = 0;
  s->mask = 0;
  s->orders = s->as_is = s->divides = false;
  new_epoch(s);
}

void tir_subst_order(struct tir *ir) { substitution_of(ir)->orders = true; }
void tir_subst_as_is(struct tir *ir) { substitution_of(ir)->as_is = true; }
void tir_subst_divide(struct tir *ir) { substitution_of(ir)->divides = true; }

static tir_buffer mapped_buffer(const struct tir *ir, tir_buffer b) {
  const struct substitution *s = substitution_of(ir);
  if (!s->changed_buffer_count || b >= s->buffer_capacity || !s->buffer_to[b]) return b;
  return s->buffer_to[b];
}

/* How to rewrite: what holds no variable of the map is rebuilt too; conditions are rebuilt, but not simplified, so that
 * none is decided. */
enum { ALWAYS = 1, KEEP_CONDITIONS = 2 };

static tir_expr rewrite(struct tir *ir, tir_expr e, unsigned how);

/* The expression names what the map replaces by something else. */
static bool names_replaced(const struct tir *ir, tir_expr e) {
  const struct substitution *s = substitution_of(ir);
  for (uint32_t i = 0; i < s->changed_var_count; i++) {
    tir_var v = s->changed_vars[i];
    if (s->var_to[v] != ir->vars.at[v].expr && tir_uses_var(ir, e, v)) return true;
  }
  for (uint32_t i = 0; i < s->changed_buffer_count; i++)
    if (tir_uses_buffer(ir, e, s->changed_buffers[i])) return true;
  return false;
}

/* A variable that cancels out (v - v) is in no term of the sum: the sum without it takes its place. */
static tir_expr rewrite_sum(struct tir *ir, tir_expr e, unsigned how) {
  struct tir_linear l = tir_linear_of(ir, e);
  struct tir_sum sum = tir_sum_open(ir);
  sum.constant = l.constant;
  bool opaque = false; /* its coefficients overflow: it is its own atom */
  bool changed = how & ALWAYS;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    opaque = opaque || t.atom == e;
    if (opaque) break;
    tir_expr atom = rewrite(ir, t.atom, how);
    changed |= atom != t.atom;
    tir_sum_add(ir, &sum, atom, t.coefficient);
  }
  if (!opaque && !changed && !names_replaced(ir, e)) return tir_sum_drop(ir, &sum), e;
  if (!opaque) tir_sum_recombine(ir, &sum);
  if (!opaque && !sum.overflow) return tir_sum_close(ir, &sum, tir_type_of(ir, e));
  tir_sum_drop(ir, &sum);
  struct tir_expr_node n = *tir_at(ir, e);
  tir_expr a = rewrite(ir, n.a, how);
  return tir_binary(ir, (enum tir_kind)n.kind, a, rewrite(ir, n.b, how));
}

static bool is_sum(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (!tir_is_index(ir, e)) return false;
  if (n->kind == TIR_ADD || n->kind == TIR_SUB) return true;
  return n->kind == TIR_MUL && (tir_is_int(ir, n->a) || tir_is_int(ir, n->b));
}

enum { MOST_ON_STACK = 16 };

static tir_expr rewrite_operands(struct tir *ir, tir_expr e, unsigned how) {
  struct tir_expr_node n = *tir_at(ir, e);
  uint32_t on_stack[MOST_ON_STACK], *operands = tir_room(on_stack, sizeof on_stack, n.count * sizeof *operands);
  for (uint32_t i = 0; i < n.count; i++) {
    tir_expr x = ir->operands.at[n.operands + i];
    operands[i] = x ? rewrite(ir, x, how) : TIR_NONE;
  }
  tir_expr made;
  if (n.kind == TIR_LOAD) {
    tir_expr predicate = n.a ? rewrite(ir, n.a, how) : TIR_NONE;
    made = tir_load(ir, mapped_buffer(ir, n.ref), operands, n.count, predicate);
  } else if (n.kind == TIR_CALL) {
    made = tir_call(ir, n.type, n.ref, operands, n.count);
  } else {
    made = n.kind == TIR_LIST ? tir_list_value(ir, operands, n.count) : tir_map_value(ir, operands, n.count);
  }
  if (operands != on_stack) free(operands);
  return made;
}

/* What holds no variable of the map stays as it is, whether or not its mask of variables says so. */
static bool is_kept(unsigned how, tir_expr before, tir_expr after) { return !(how & ALWAYS) && before == after; }

/* Whether x // c gives up terms of the sum x: it is divided first then, where that was asked for. */
static bool is_divided(struct tir *ir, tir_expr x, tir_expr c) {
  return substitution_of(ir)->divides && tir_at(ir, tir_make(ir, TIR_FLOORDIV, x, c))->kind != TIR_FLOORDIV;
}

/* x // c % d, where x becomes a sum, is written x % (c*d) // c: a part of it keeps the form that it has as an iterator;
 * but where the quotient gives up terms, and is divided. */
static tir_expr rewrite_part(struct tir *ir, tir_expr e, unsigned how) {
  struct tir_expr_node n = *tir_at(ir, e), quotient = *tir_at(ir, n.a);
  tir_expr x = rewrite(ir, quotient.a, how);
  int64_t product;
  if (is_kept(how, quotient.a, x)) return e;
  if (!tir_is_index(ir, x) || tir_linear_of(ir, x).count < 3 ||
      __builtin_mul_overflow(tir_at(ir, quotient.b)->imm, tir_at(ir, n.b)->imm, &product) ||
      is_divided(ir, x, quotient.b))
    return tir_make(ir, TIR_FLOORMOD, tir_make(ir, TIR_FLOORDIV, x, quotient.b), n.b);
  return tir_make(ir, TIR_FLOORDIV, tir_make(ir, TIR_FLOORMOD, x, tir_int(ir, n.type, product)), quotient.b);
}

static bool is_part(const struct tir *ir, const struct tir_expr_node *n) {
  if (n->kind != TIR_FLOORMOD || !tir_is_int(ir, n->b) || tir_at(ir, n->b)->imm <= 0) return false;
  const struct tir_expr_node *quotient = tir_at(ir, n->a);
  return quotient->kind == TIR_FLOORDIV && tir_is_int(ir, quotient->b) && tir_at(ir, quotient->b)->imm > 0;
}

static tir_expr rewrite_node(struct tir *ir, tir_expr e, unsigned how) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (substitution_of(ir)->as_is && n.kind >= TIR_ADD && n.kind <= TIR_OR) {
    tir_expr a = rewrite(ir, n.a, how);
    return tir_binary(ir, (enum tir_kind)n.kind, a, rewrite(ir, n.b, how));
  }
  if (substitution_of(ir)->as_is && (n.kind == TIR_NOT || n.kind == TIR_CAST))
    return tir_unary(ir, (enum tir_kind)n.kind, n.type, rewrite(ir, n.a, how));
  if (is_sum(ir, e)) return rewrite_sum(ir, e, how);
  if (is_part(ir, &n)) return rewrite_part(ir, e, how);
  if (n.kind >= TIR_ADD && n.kind <= TIR_OR) {
    tir_expr a = rewrite(ir, n.a, how), b = rewrite(ir, n.b, how);
    if (is_kept(how, n.a, a) && is_kept(how, n.b, b)) return e;
    bool turned = substitution_of(ir)->orders && (n.kind == TIR_GT || n.kind == TIR_GE);
    if (turned && (how & KEEP_CONDITIONS)) return tir_binary(ir, n.kind == TIR_GT ? TIR_LT : TIR_LE, b, a);
    if (n.kind >= TIR_EQ && (how & KEEP_CONDITIONS)) return tir_binary(ir, (enum tir_kind)n.kind, a, b);
    return tir_make(ir, (enum tir_kind)n.kind, a, b);
  }
  switch (n.kind) {
  case TIR_NOT: {
    tir_expr a = rewrite(ir, n.a, how);
    if (is_kept(how, n.a, a)) return e;
    return how & KEEP_CONDITIONS ? tir_unary(ir, TIR_NOT, n.type, a) : tir_not(ir, a);
  }
  case TIR_CAST: {
    tir_expr a = rewrite(ir, n.a, how);
    return is_kept(how, n.a, a) ? e : tir_cast(ir, n.type, a);
  }
  case TIR_BROADCAST: return tir_unary(ir, TIR_BROADCAST, n.type, rewrite(ir, n.a, how));
  case TIR_SELECT: {
    tir_expr c = rewrite(ir, n.a, how), x = rewrite(ir, n.b, how);
    return tir_select(ir, c, x, rewrite(ir, n.c, how));
  }
  case TIR_LET: {
    tir_expr value = rewrite(ir, n.a, how);
    return tir_let(ir, n.ref, value, rewrite(ir, n.b, how));
  }
  case TIR_RAMP: {
    tir_expr base = rewrite(ir, n.a, how);
    return tir_ramp(ir, base, rewrite(ir, n.b, how), tir_type_lanes(n.type));
  }
  case TIR_SLICE: {
    tir_expr start = rewrite(ir, n.a, how), stop = rewrite(ir, n.b, how);
    return tir_slice(ir, start, stop, n.c ? rewrite(ir, n.c, how) : TIR_NONE);
  }
  case TIR_LOAD:
  case TIR_CALL:
  case TIR_LIST:
  case TIR_MAP: return rewrite_operands(ir, e, how);
  default: return e;
  }
}

/* Small expressions are cheaper to rebuild than to remember. */
static bool is_leaf(enum tir_kind kind) { return kind <= TIR_DATA; }

static tir_expr rewrite(struct tir *ir, tir_expr e, unsigned how) {
  const struct tir_expr_node *n = tir_at(ir, e);
  struct substitution *s = substitution_of(ir);
  if (is_leaf((enum tir_kind)n->kind)) {
    if (n->kind == TIR_VAR) return n->ref < s->var_capacity && s->var_to[n->ref] ? s->var_to[n->ref] : e;
    if (n->kind != TIR_DATA) return e;
    tir_buffer to = mapped_buffer(ir, n->ref);
    return to == n->ref ? e : tir_data(ir, to);
  }
  bool buffers = s->changed_buffer_count && (n->flags & (TIR_HAS_LOAD | TIR_HAS_CALL));
  if (!(how & ALWAYS) && !(n->vars & s->mask) && !buffers) return e;
  if (e < s->memo_capacity && s->memo[e].epoch == s->epoch) return s->memo[e].to;
  tir_expr made = rewrite_node(ir, e, how);
  if (e >= s->memo_capacity) s->memo = zero_enlarge(s->memo, &s->memo_capacity, ir->exprs.count + 64, sizeof *s->memo);
  s->memo[e].epoch = s->epoch;
  s->memo[e].to = made;
  return made;
}

/* What was made in one way is not to be found in the other. */
static tir_expr rewrite_in_mode(struct tir *ir, tir_expr e, unsigned how) {
  if (!e) return TIR_NONE;
  struct substitution *s = substitution_of(ir);
  if (s->how != how) new_epoch(s);
  s->how = how;
  return rewrite(ir, e, how);
}

tir_expr tir_subst(struct tir *ir, tir_expr e) { return rewrite_in_mode(ir, e, 0); }
tir_expr tir_subst_value(struct tir *ir, tir_expr e) { return rewrite_in_mode(ir, e, KEEP_CONDITIONS); }

/* The memo is not shared with substitution: simplifying rebuilds more. */
tir_expr tir_simplify(struct tir *ir, tir_expr e) {
  if (!e) return TIR_NONE;
  struct substitution *s = substitution_of(ir);
  assert(!s->changed_var_count && !s->changed_buffer_count && "simplification while a substitution stands");
  new_epoch(s);
  tir_expr made = rewrite(ir, e, ALWAYS);
  new_epoch(s);
  return made;
}

/* ---- Statements ---- */

uint32_t tir_subst_operands(struct tir *ir, uint32_t first, uint32_t count) {
  bool changed = false;
  uint32_t on_stack[MOST_ON_STACK], *made = tir_room(on_stack, sizeof on_stack, count * sizeof *made);
  for (uint32_t i = 0; i < count; i++) {
    tir_expr e = ir->operands.at[first + i];
    made[i] = tir_subst(ir, e);
    changed |= made[i] != e;
  }
  if (changed) first = tir_add_operands(ir, made, count);
  if (made != on_stack) free(made);
  return first;
}

static struct tir_region subst_region(struct tir *ir, struct tir_region r) {
  uint32_t rank = tir_buffer_at(ir, r.buffer)->rank;
  return (struct tir_region){mapped_buffer(ir, r.buffer), tir_subst_operands(ir, r.ranges, 2 * rank)};
}

static void subst_regions(struct tir *ir, tir_block b, bool writes) {
  struct tir_span span = tir_regions(ir, b, writes);
  bool moved = false;
  for (uint32_t i = 0; i < span.count; i++) {
    struct tir_region before = ir->regions.at[span.first + i], after = subst_region(ir, before);
    if (after.buffer == before.buffer)
      ir->regions.at[span.first + i] = after;
    else
      moved = true;
  }
  if (!moved) return;
  struct tir_region *made = malloc(span.count * sizeof *made);
  if (!made) abort();
  for (uint32_t i = 0; i < span.count; i++) made[i] = subst_region(ir, ir->regions.at[span.first + i]);
  (writes ? tir_set_writes : tir_set_reads)(ir, b, made, span.count);
  free(made);
}

static void subst_annotations(struct tir *ir, struct tir_span span) {
  for (uint32_t i = span.first; i < span.first + span.count; i++)
    ir->annotations.at[i].value = tir_subst(ir, ir->annotations.at[i].value);
}

static void subst_bindings(struct tir *ir, tir_block b) {
  struct tir_span iters = tir_block_at(ir, b)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    ir->iters.at[i].binding = tir_subst(ir, ir->iters.at[i].binding);
  tir_expr predicate = tir_subst(ir, tir_as(ir, b, TIR_BLOCK)->block.predicate);
  tir_as(ir, b, TIR_BLOCK)->block.predicate = predicate && tir_is_const(ir, predicate, 1) ? TIR_NONE : predicate;
}

/* The extents, strides and offset of a buffer that is allocated or matched here. */
static void subst_layout(struct tir *ir, tir_buffer buffer) {
  struct tir_buffer_node b = *tir_buffer_at(ir, buffer);
  uint32_t shape = tir_subst_operands(ir, b.shape, b.rank);
  uint32_t strides = tir_subst_operands(ir, b.strides.first, b.strides.count);
  tir_expr offset = b.elem_offset ? tir_subst(ir, b.elem_offset) : TIR_NONE;
  struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  n->shape = shape;
  n->strides.first = strides;
  n->elem_offset = offset;
}

/* A domain is fixed at birth: an iteration that gets another has a new variable. */
static void subst_domains(struct tir *ir, tir_block b) {
  struct tir_span iters = tir_block_at(ir, b)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    struct tir_var_node v = ir->vars.at[ir->iters.at[i].var];
    if (tir_is_int(ir, v.min) && tir_is_int(ir, v.extent)) continue;
    tir_expr min = tir_subst(ir, v.min), extent = tir_subst(ir, v.extent);
    if (min == v.min && extent == v.extent) continue;
    tir_var made = tir_new_var(ir, TIR_VAR_ITER, v.name, v.type, min, extent);
    tir_subst_var(ir, ir->iters.at[i].var, tir_var_expr(ir, made));
    ir->iters.at[i].var = made;
  }
}

static void subst_block(struct tir *ir, tir_block b) {
  struct tir_span matches = tir_block_at(ir, b)->matches, allocs = tir_block_at(ir, b)->allocs;
  for (uint32_t i = allocs.first; i < allocs.first + allocs.count; i++) subst_layout(ir, ir->operands.at[i]);
  subst_bindings(ir, b);
  subst_domains(ir, b);
  subst_regions(ir, b, false);
  subst_regions(ir, b, true);
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    ir->matches.at[i].source = subst_region(ir, ir->matches.at[i].source);
}

/* A domain is fixed at birth: a loop whose range changes gets a new variable. */
static void subst_loop(struct tir *ir, tir_loop l) {
  tir_expr min = tir_as(ir, l, TIR_LOOP)->loop.min, extent = tir_as(ir, l, TIR_LOOP)->loop.extent;
  tir_expr new_min = tir_subst(ir, min), new_extent = tir_subst(ir, extent);
  if (new_min == min && new_extent == extent) return;
  struct tir_var_node old = ir->vars.at[tir_as(ir, l, TIR_LOOP)->loop.var];
  tir_var v = tir_new_var(ir, (enum tir_var_kind)old.kind, old.name, old.type, new_min, new_extent);
  tir_subst_var(ir, tir_as(ir, l, TIR_LOOP)->loop.var, tir_var_expr(ir, v));
  struct tir_stmt_node *s = tir_stmt_at(ir, l);
  s->loop.var = v;
  s->loop.min = new_min;
  s->loop.extent = new_extent;
}

void tir_subst_one(struct tir *ir, tir_stmt at) {
  MS_CHECK(!tir_is(ir, at, TIR_DEAD));
  struct tir_stmt_node s = *tir_stmt_at(ir, at);
  switch (s.kind) {
  case TIR_LOOP: subst_loop(ir, at); break;
  case TIR_BLOCK: subst_block(ir, at); break;
  case TIR_STORE: {
    tir_buffer to = mapped_buffer(ir, s.store.buffer);
    uint32_t indices = tir_subst_operands(ir, s.store.indices, tir_buffer_at(ir, s.store.buffer)->rank);
    tir_expr value = tir_subst_value(ir, s.store.value), predicate = tir_subst(ir, s.store.predicate);
    struct tir_stmt_node *n = tir_stmt_at(ir, at);
    n->store.buffer = to;
    n->store.indices = indices;
    n->store.value = value;
    n->store.predicate = predicate;
    break;
  }
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT: {
    tir_expr condition = tir_subst_value(ir, s.test.condition);
    tir_stmt_at(ir, at)->test.condition = condition;
    break;
  }
  case TIR_BIND: tir_as(ir, at, TIR_BIND)->bind.value = tir_subst_value(ir, s.bind.value); break;
  case TIR_EVALUATE: tir_as(ir, at, TIR_EVALUATE)->evaluate.value = tir_subst_value(ir, s.evaluate.value); break;
  case TIR_ATTR: {
    tir_expr node = tir_subst(ir, s.attr.node), value = tir_subst(ir, s.attr.value);
    tir_as(ir, at, TIR_ATTR)->attr.node = node;
    tir_as(ir, at, TIR_ATTR)->attr.value = value;
    break;
  }
  case TIR_ALLOC:
  case TIR_DECLARE: subst_layout(ir, s.alloc.buffer); break;
  default: break;
  }
  subst_annotations(ir, s.annotations);
}

void tir_subst_stmt(struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) tir_subst_one(ir, s);
}

/* Whether no loop's variable can reach what is in a block but by its bindings. */
static bool is_closed(const struct tir *ir, tir_block b) {
  struct tir_span iters = tir_block_at(ir, b)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    const struct tir_var_node *v = &ir->vars.at[ir->iters.at[i].var];
    if (!tir_is_int(ir, v->min) || !tir_is_int(ir, v->extent)) return false;
  }
  return iters.count > 0;
}

/* Nothing of the loop but what is inside it can hold a variable: most loops. */
static bool is_plain_loop(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  return n->kind == TIR_LOOP && !n->annotations.count && tir_is_int(ir, n->loop.min) && tir_is_int(ir, n->loop.extent);
}

bool tir_subst_loops(struct tir *ir, tir_stmt top) {
  bool guarded = false;
  for (tir_stmt s = top; s;) {
    bool block = tir_is(ir, s, TIR_BLOCK), closed = block && is_closed(ir, s);
    if (closed)
      subst_bindings(ir, s);
    else if (!is_plain_loop(ir, s))
      tir_subst_one(ir, s);
    guarded |= block && tir_as(ir, s, TIR_BLOCK)->block.predicate != TIR_NONE;
    s = closed ? tir_after(ir, s, top) : tir_next(ir, s, top);
  }
  return guarded;
}

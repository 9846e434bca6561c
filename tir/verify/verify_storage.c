/* The verifier's first pass: the storage. A violation here is a bug of whoever edited the module. */
#include "verify.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FAIL(code, place, ...) return tir_refuse(ir, err, MS_VERIFY_##code, place, __VA_ARGS__)

static bool is_within(uint64_t first, uint64_t count, uint32_t size) { return count == 0 || first + count <= size; }

/* ---- Names, expressions, variables ---- */

static bool check_symbols(const struct tir *ir, ms_error *err) {
  for (tir_symbol s = 1; s < ir->symbols.count; s++) {
    const struct tir_symbol_node *n = &ir->symbols.at[s];
    if ((uint64_t)n->offset + n->length >= ir->text.count || ir->text.at[n->offset + n->length])
      FAIL(STORAGE, TIR_NONE, "symbol %u leaves the text", s);
    if (n->first_block && n->first_block >= ir->stmts.count)
      FAIL(STORAGE, TIR_NONE, "symbol %u: no block %u", s, n->first_block);
  }
  for (tir_name n = 1; n < ir->names.count; n++) {
    const struct tir_name_node *name = &ir->names.at[n];
    bool text = name->kind <= TIR_NAME_ORDINAL, join = name->kind == TIR_NAME_JOIN;
    bool affix = name->kind == TIR_NAME_SUFFIX || name->kind == TIR_NAME_PREFIX;
    bool ok = name->kind <= TIR_NAME_PREFIX && name->a < (text ? ir->symbols.count : n) && (!join || name->b < n) &&
              (!affix || name->b < ir->symbols.count);
    if (!ok) FAIL(STORAGE, TIR_NONE, "name %u is not made of earlier ones", n);
  }
  return true;
}

static bool ref_is_right(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  switch ((enum tir_kind)n->kind) {
  case TIR_VAR: return n->ref && n->ref < ir->vars.count && ir->vars.at[n->ref].expr == e;
  case TIR_LET: return n->ref && n->ref < ir->vars.count;
  case TIR_DATA:
  case TIR_LOAD: return n->ref && n->ref < ir->buffers.count;
  case TIR_STRING_IMM:
  case TIR_CALL: return n->ref < ir->symbols.count;
  default: return true;
  }
}

/* An expression is made after what it is made of. */
static bool is_made_of_earlier(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_BAD_EXPR || n->kind >= TIR_KIND_COUNT) return false;
  if (n->kind != TIR_INT_IMM && n->kind != TIR_FLOAT_IMM && (n->a >= e || n->b >= e)) return false;
  if (n->c >= e || !is_within(n->operands, n->count, ir->operands.count)) return false;
  for (uint32_t i = 0; i < n->count; i++)
    if (ir->operands.at[n->operands + i] >= e) return false;
  return true;
}

static bool check_exprs(const struct tir *ir, tir_expr from, ms_error *err) {
  if (ir->linears.count != ir->exprs.count) FAIL(STORAGE, TIR_NONE, "linear forms are not one an expression");
  for (tir_expr e = from; e < ir->exprs.count; e++) {
    if (!is_made_of_earlier(ir, e)) FAIL(EXPRESSION, TIR_NONE, "expression %u is not made of earlier ones", e);
    if (!ref_is_right(ir, e)) FAIL(EXPRESSION, TIR_NONE, "expression %u refers to what is not there", e);
  }
  return true;
}

static bool check_expr_facts(const struct tir *ir, tir_expr from, ms_error *err) {
  for (tir_expr e = from; e < ir->exprs.count; e++)
    if (!tir_expr_is_consistent(ir, e)) FAIL(EXPRESSION, TIR_NONE, "expression %u has wrong facts, or stands twice", e);
  return true;
}

static bool check_vars(const struct tir *ir, ms_error *err) {
  for (tir_var v = 1; v < ir->vars.count; v++) {
    const struct tir_var_node *n = &ir->vars.at[v];
    bool ok = n->name < ir->names.count && n->kind <= TIR_VAR_DATA && n->expr && n->expr < ir->exprs.count &&
              n->min < n->expr && n->extent < n->expr && !n->min == !n->extent &&
              tir_at(ir, n->expr)->kind == TIR_VAR && tir_at(ir, n->expr)->ref == v;
    if (!ok) FAIL(STORAGE, TIR_NONE, "variable %u has no expression, name or domain of its own", v);
  }
  return true;
}

/* ---- One trial: values within the domains ---- */

struct trial {
  const struct tir *ir;
  int64_t *values;
  bool *known, *needed, *linear;
};

static int64_t within(int64_t lo, int64_t hi, uint32_t seed) {
  uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15u;
  x ^= x >> 29;
  if (tir_is_inf(lo) && tir_is_inf(hi)) return (int64_t)(x % 64);
  if (tir_is_inf(lo)) return hi;
  if (tir_is_inf(hi)) return lo;
  uint64_t span = (uint64_t)hi - (uint64_t)lo + 1;
  return (int64_t)((uint64_t)lo + (span ? x % (span < 64 ? span : 64) : 0));
}

static bool is_whole(tir_type t) { return tir_type_is_int(t) || tir_type_code(t) == TIR_BOOL; }

/* The number of the type that the value is after it wrapped around. */
static int64_t wrapped(tir_type type, int64_t value) {
  int unused = 64 - tir_type_bits(type);
  if (tir_type_code(type) == TIR_BOOL) return value != 0;
  uint64_t high = (uint64_t)value << unused;
  return tir_type_code(type) == TIR_INT ? (int64_t)high >> unused : (int64_t)(high >> unused);
}

/* Gives expression e a value from those of its operands; what is opaque gets one within its bounds. */
static void try_expr(struct trial *t, tir_expr e) {
  const struct tir_expr_node *n = tir_at(t->ir, e);
  int64_t value;
  if (!is_whole(n->type) || tir_type_lanes(n->type) != 1) return;
  if (n->kind == TIR_INT_IMM) {
    if (tir_is_inf(n->imm)) return; /* as a bound, it means none */
    value = n->imm;
  } else if (n->kind >= TIR_ADD && n->kind <= TIR_OR) {
    if (!t->known[n->a] || !t->known[n->b] ||
        !tir_compute((enum tir_kind)n->kind, t->values[n->a], t->values[n->b], &value))
      return;
    if (tir_type_bits(n->type) == 64 && tir_type_code(n->type) == TIR_UINT) return;
    if (tir_may_wrap(n->type, n->flags)) value = wrapped(n->type, value);
    struct tir_bounds type = tir_type_bounds(n->type);
    if (value < type.lo || value > type.hi) return; /* an index that leaves its type: nothing is said of it */
  } else if (n->kind == TIR_NOT) {
    if (!t->known[n->a]) return;
    value = !t->values[n->a];
  } else if (n->kind == TIR_CAST) {
    struct tir_bounds type = tir_type_bounds(n->type);
    if (!t->known[n->a] || t->values[n->a] < type.lo || t->values[n->a] > type.hi) return; /* wraps */
    value = t->values[n->a];
  } else if (n->kind == TIR_SELECT) {
    tir_expr taken = t->known[n->a] && t->values[n->a] ? n->b : n->c;
    if (!t->known[n->a] || !t->known[taken]) return;
    value = t->values[taken];
  } else if (n->kind == TIR_VAR) {
    const struct tir_var_node *v = &t->ir->vars.at[n->ref];
    if (!v->min)
      value = within(n->lo, n->hi, n->ref);
    else if (!t->known[v->min] || !t->known[v->extent] || t->values[v->extent] <= 0)
      return;
    else
      value = within(t->values[v->min], tir_sat_add(t->values[v->min], t->values[v->extent] - 1), n->ref);
  } else {
    value = within(n->lo, n->hi, e);
  }
  t->values[e] = value;
  t->known[e] = true;
}

static bool try_linear(const struct trial *t, tir_expr e) {
  struct tir_linear l = t->ir->linears.at[e];
  if (l.first == UINT32_MAX || !t->known[e]) return true;
  int64_t sum = l.constant, product;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term term = t->ir->terms.at[l.first + i];
    if (!t->known[term.atom] || __builtin_mul_overflow(term.coefficient, t->values[term.atom], &product) ||
        __builtin_add_overflow(sum, product, &sum))
      return true;
  }
  const struct tir_expr_node *n = tir_at(t->ir, e); /* what data say may wrap around: so does its sum */
  return sum == t->values[e] || (tir_may_wrap(n->type, n->flags) && wrapped(n->type, sum) == t->values[e]);
}

/* The value of e takes those of its operands. */
static void need_operands(const struct trial *t, tir_expr e) {
  const struct tir_expr_node *n = tir_at(t->ir, e);
  if (!is_whole(n->type) || tir_type_lanes(n->type) != 1) return;
  if (n->kind == TIR_VAR) {
    const struct tir_var_node *v = &t->ir->vars.at[n->ref];
    t->needed[v->min] = t->needed[v->extent] = true;
  } else if ((n->kind >= TIR_ADD && n->kind <= TIR_OR) || n->kind == TIR_NOT || n->kind == TIR_CAST) {
    t->needed[n->a] = t->needed[n->b] = true;
  } else if (n->kind == TIR_SELECT) {
    t->needed[n->a] = t->needed[n->b] = t->needed[n->c] = true;
  }
}

/* A linear form is made when it is first asked for, and stands on terms behind those that there were. One without terms
 * does not say when it was made. */
static bool is_new_linear(struct tir_linear l, struct tir_verified since) {
  return l.first != UINT32_MAX && (!l.count || (uint64_t)l.first + l.count > since.terms);
}

/* Marks what is tried: new expressions, those that new linear forms are of and the atoms of these, and what all are
 * made of. */
static bool mark_needed(const struct trial *t, struct tir_verified since, ms_error *err) {
  const struct tir *ir = t->ir;
  memset(t->needed + since.exprs, true, ir->exprs.count - since.exprs);
  for (tir_expr e = 1; e < ir->exprs.count; e++) {
    struct tir_linear l = ir->linears.at[e];
    if (!is_new_linear(l, since)) continue;
    if (!is_within(l.first, l.count, ir->terms.count))
      FAIL(EXPRESSION, TIR_NONE, "the linear form of expression %u leaves the terms", e);
    t->needed[e] = t->linear[e] = true;
    for (uint32_t i = 0; i < l.count; i++) {
      tir_expr atom = ir->terms.at[l.first + i].atom;
      if (atom >= ir->exprs.count) FAIL(EXPRESSION, TIR_NONE, "the linear form of expression %u has no atom %u", e, i);
      t->needed[atom] = true;
    }
  }
  for (tir_expr e = ir->exprs.count; e-- > 1;)
    if (t->needed[e]) need_operands(t, e);
  return true;
}

/* Tries new expressions and linear forms on one assignment: values lie within their bounds, and linear forms equal what
 * they stand for. */
static bool check_facts(const struct tir *ir, struct tir_verified since, ms_error *err) {
  uint32_t count = ir->exprs.count;
  bool *flags = calloc(3 * (size_t)count, sizeof *flags);
  int64_t *values = malloc(count * sizeof *values);
  if (!values || !flags) abort();
  struct trial t = {ir, values, flags, flags + count, flags + 2 * (size_t)count};
  bool marked = mark_needed(&t, since, err);
  tir_expr wrong = TIR_NONE;
  for (tir_expr e = 1; e < count && !wrong && marked; e++) {
    if (!t.needed[e]) continue;
    const struct tir_expr_node *n = tir_at(ir, e);
    try_expr(&t, e);
    if (t.known[e] && (t.values[e] < n->lo || t.values[e] > n->hi)) wrong = e;
  }
  for (tir_expr e = 1; e < count && !wrong && marked; e++)
    if (t.linear[e] && !try_linear(&t, e)) wrong = e;
  free(values);
  free(flags);
  if (wrong)
    FAIL(EXPRESSION, TIR_NONE, "expression %u takes a value that its bounds or its linear form exclude", wrong);
  return marked;
}

/* ---- Statements ---- */

static bool check_annotations(const struct tir *ir, struct tir_span span, tir_stmt place, ms_error *err) {
  if (!is_within(span.first, span.count, ir->annotations.count)) FAIL(STORAGE, place, "annotations out of range");
  for (uint32_t i = 0; i < span.count; i++) {
    const struct tir_annotation *a = &ir->annotations.at[span.first + i];
    if (!a->key || a->key >= ir->symbols.count || !a->value || a->value >= ir->exprs.count)
      FAIL(STORAGE, place, "an annotation has no key or value");
    if (i > 0 && strcmp(tir_text(ir, a[-1].key), tir_text(ir, a->key)) >= 0)
      FAIL(STORAGE, place, "annotations are not sorted by key: %s", tir_text(ir, a->key));
  }
  return true;
}

static bool expr_exists(const struct tir *ir, tir_expr e) { return e && e < ir->exprs.count; }
static bool expr_or_none(const struct tir *ir, tir_expr e) { return e < ir->exprs.count; }

static bool buffer_exists(const struct tir *ir, tir_buffer b) { return b && b < ir->buffers.count; }

static bool all_exist(const struct tir *ir, uint32_t first, uint64_t count) {
  if (!is_within(first, count, ir->operands.count)) return false;
  for (uint64_t i = 0; i < count; i++)
    if (!expr_exists(ir, ir->operands.at[first + i])) return false;
  return true;
}

static bool check_buffers(const struct tir *ir, ms_error *err) {
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    const struct tir_buffer_node *n = &ir->buffers.at[b];
    bool ok = n->name < ir->symbols.count && n->scope < ir->symbols.count && all_exist(ir, n->shape, n->rank) &&
              all_exist(ir, n->strides.first, n->strides.count) && expr_or_none(ir, n->elem_offset) &&
              expr_or_none(ir, n->data) && n->where < ir->stmts.count && n->readers < ir->uses.count &&
              n->writers < ir->uses.count && n->undeclared < ir->uses.count;
    if (!ok) FAIL(STORAGE, TIR_NONE, "buffer %u refers to what is not there", b);
  }
  for (uint32_t u = 1; u < ir->uses.count; u++)
    if (ir->uses.at[u].next >= ir->uses.count || ir->uses.at[u].block >= ir->stmts.count)
      FAIL(STORAGE, TIR_NONE, "use %u refers to what is not there", u);
  return true;
}

static bool check_block_record(const struct tir *ir, tir_block b, ms_error *err) {
  uint32_t record = tir_as(ir, b, TIR_BLOCK)->block.record;
  if (!record || record >= ir->blocks.count || ir->blocks.at[record].block != b)
    FAIL(STORAGE, TIR_NONE, "block %u has no record", b);
  const struct tir_block_record *r = &ir->blocks.at[record];
  bool ok = r->name && r->name < ir->symbols.count && r->next_same_name < ir->stmts.count &&
            is_within(r->iters.first, r->iters.count, ir->iters.count) &&
            is_within(r->reads.first, r->reads.count, ir->regions.count) &&
            is_within(r->writes.first, r->writes.count, ir->regions.count) &&
            is_within(r->matches.first, r->matches.count, ir->matches.count) &&
            is_within(r->allocs.first, r->allocs.count, ir->operands.count);
  if (!ok) FAIL(STORAGE, TIR_NONE, "the record of block %u leaves the arrays", b);
  return true;
}

static bool region_exists(const struct tir *ir, const struct tir_region *r) {
  return buffer_exists(ir, r->buffer) && all_exist(ir, r->ranges, 2ull * ir->buffers.at[r->buffer].rank);
}

static bool check_block_contents(const struct tir *ir, tir_block b, ms_error *err) {
  const struct tir_block_record *r = tir_block_at(ir, b);
  for (uint32_t i = 0; i < r->iters.count; i++) {
    const struct tir_iter *iter = &ir->iters.at[r->iters.first + i];
    if (!iter->var || iter->var >= ir->vars.count || iter->kind > TIR_OPAQUE || !expr_exists(ir, iter->binding))
      FAIL(STORAGE, TIR_NONE, "block %s: iteration variable %u is not there", tir_block_name(ir, b), i);
  }
  for (uint32_t i = 0; i < r->reads.count; i++)
    if (!region_exists(ir, &ir->regions.at[r->reads.first + i]))
      FAIL(STORAGE, TIR_NONE, "block %s: read region %u is not there", tir_block_name(ir, b), i);
  for (uint32_t i = 0; i < r->writes.count; i++)
    if (!region_exists(ir, &ir->regions.at[r->writes.first + i]))
      FAIL(STORAGE, TIR_NONE, "block %s: written region %u is not there", tir_block_name(ir, b), i);
  for (uint32_t i = 0; i < r->matches.count; i++) {
    const struct tir_match *m = &ir->matches.at[r->matches.first + i];
    if (!buffer_exists(ir, m->buffer) || !region_exists(ir, &m->source))
      FAIL(STORAGE, TIR_NONE, "block %s: view %u is not there", tir_block_name(ir, b), i);
  }
  for (uint32_t i = 0; i < r->allocs.count; i++)
    if (!buffer_exists(ir, ir->operands.at[r->allocs.first + i]))
      FAIL(STORAGE, TIR_NONE, "block %s: allocated buffer %u is not there", tir_block_name(ir, b), i);
  return true;
}

static bool fields_exist(const struct tir *ir, const struct tir_stmt_node *n) {
  switch ((enum tir_stmt_kind)n->kind) {
  case TIR_LOOP:
    return n->loop.var && n->loop.var < ir->vars.count && expr_exists(ir, n->loop.min) &&
           expr_exists(ir, n->loop.extent) && n->loop.thread < ir->symbols.count && n->loop_kind <= TIR_THREAD_BINDING;
  case TIR_BLOCK: return expr_or_none(ir, n->block.predicate);
  case TIR_STORE:
    return buffer_exists(ir, n->store.buffer) && expr_exists(ir, n->store.value) &&
           expr_or_none(ir, n->store.predicate) &&
           all_exist(ir, n->store.indices, ir->buffers.at[n->store.buffer].rank);
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT: return expr_exists(ir, n->test.condition) && expr_or_none(ir, n->test.message);
  case TIR_BIND: return n->bind.var && n->bind.var < ir->vars.count && expr_exists(ir, n->bind.value);
  case TIR_ATTR:
    return expr_or_none(ir, n->attr.node) && expr_or_none(ir, n->attr.value) && n->attr.key < ir->symbols.count;
  case TIR_EVALUATE: return expr_exists(ir, n->evaluate.value);
  case TIR_ALLOC:
  case TIR_DECLARE: return buffer_exists(ir, n->alloc.buffer);
  default: return true;
  }
}

/* ---- The tree ---- */

static bool may_have(const struct tir_stmt_node *n, int list) {
  switch ((enum tir_stmt_kind)n->kind) {
  case TIR_FUNCTION:
  case TIR_LOOP:
  case TIR_WHILE:
  case TIR_ATTR: return list == TIR_BODY;
  case TIR_BLOCK:
  case TIR_IF: return true;
  default: return false;
  }
}

/* The children of s: links both ways, no statement twice, none dead. */
static bool check_children(const struct tir *ir, tir_stmt s, bool *reached, ms_error *err) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  for (int list = 0; list < 2; list++) {
    tir_stmt prev = TIR_NONE, child = n->first[list];
    if (child && !may_have(n, list)) FAIL(LINKS, TIR_NONE, "statement %u has a list that its kind has not", s);
    for (; child; prev = child, child = tir_stmt_at(ir, child)->next) {
      if (child >= ir->stmts.count) FAIL(LINKS, TIR_NONE, "statement %u has a child that is not there", s);
      const struct tir_stmt_node *c = tir_stmt_at(ir, child);
      if (reached[child]) FAIL(LINKS, TIR_NONE, "statement %u stands in two places", child);
      reached[child] = true;
      if (c->kind == TIR_DEAD || c->kind == TIR_FUNCTION || c->kind > TIR_DECLARE)
        FAIL(LINKS, TIR_NONE, "statement %u is dead, or no child, and is linked below %u", child, s);
      if (c->parent != s || c->list != list || c->prev != prev)
        FAIL(LINKS, TIR_NONE, "statement %u does not link back to %u", child, s);
    }
    if (n->last[list] != prev) FAIL(LINKS, TIR_NONE, "statement %u has a wrong last child", s);
  }
  return true;
}

/* Reached statements are checked before they are walked: order is that of the array, so cycles end at `reached`. */
static bool check_tree(const struct tir *ir, tir_stmt top, bool *reached, ms_error *err) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (!fields_exist(ir, n)) FAIL(STORAGE, TIR_NONE, "statement %u refers to what is not there", s);
    if (n->kind == TIR_BLOCK && (!check_block_record(ir, s, err) || !check_block_contents(ir, s, err))) return false;
    if (!check_children(ir, s, reached, err)) return false;
  }
  return true;
}

static bool check_funcs(const struct tir *ir, bool *reached, ms_error *err) {
  for (tir_func f = 1; f < ir->funcs.count; f++) {
    const struct tir_func_node *n = &ir->funcs.at[f];
    bool ok = n->name < ir->symbols.count && n->body && n->body < ir->stmts.count &&
              tir_is(ir, n->body, TIR_FUNCTION) && tir_as(ir, n->body, TIR_FUNCTION)->function.func == f &&
              !tir_stmt_at(ir, n->body)->parent && is_within(n->params.first, n->params.count, ir->params.count);
    if (!ok) FAIL(STORAGE, TIR_NONE, "function %u has no body of its own", f);
    for (uint32_t i = 0; i < n->params.count; i++) {
      const struct tir_param *p = &ir->params.at[n->params.first + i];
      if (p->buffer >= ir->buffers.count || p->var >= ir->vars.count || (!p->buffer && !p->var))
        FAIL(STORAGE, TIR_NONE, "function %s: parameter %u is not there", tir_text(ir, n->name), i);
    }
    if (!check_annotations(ir, n->attrs, TIR_NONE, err) || !check_tree(ir, n->body, reached, err)) return false;
    reached[n->body] = true;
  }
  return true;
}

/* Loops and blocks have handles: those in no tree must be dead. */
static bool check_unreached(const struct tir *ir, const bool *reached, ms_error *err) {
  for (tir_stmt s = 1; s < ir->stmts.count; s++) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (!reached[s] && (n->kind == TIR_LOOP || n->kind == TIR_BLOCK))
      FAIL(LINKS, TIR_NONE, "%s %u is in no function and not dead", n->kind == TIR_LOOP ? "loop" : "block", s);
    if (reached[s] && !check_annotations(ir, n->annotations, s, err)) return false;
  }
  return true;
}

/* ---- Lists of blocks ---- */

/* Each living block stands once in the list of its name, and no other does. */
static bool check_names(const struct tir *ir, const bool *reached, uint32_t living, ms_error *err) {
  uint32_t listed = 0;
  for (tir_symbol s = 1; s < ir->symbols.count; s++)
    for (tir_block b = ir->symbols.at[s].first_block; b; b = tir_block_at(ir, b)->next_same_name) {
      if (b >= ir->stmts.count || !reached[b] || !tir_is(ir, b, TIR_BLOCK) || tir_block_at(ir, b)->name != s)
        FAIL(LISTS, TIR_NONE, "the list of blocks named %s holds what is none", tir_text(ir, s));
      if (++listed > living) FAIL(LISTS, TIR_NONE, "the list of blocks named %s runs in a circle", tir_text(ir, s));
    }
  if (listed != living) FAIL(LISTS, TIR_NONE, "%u blocks are in lists by name, of %u", listed, living);
  return true;
}

/* How many distinct buffers a list of regions names. */
static uint32_t distinct(const struct tir *ir, struct tir_span regions) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < regions.count; i++)
    count += !tir_has_region_of(ir, (struct tir_span){regions.first, i}, ir->regions.at[regions.first + i].buffer);
  return count;
}

/* Each block is once in the list of each buffer that its regions name, and no other is. */
static bool check_uses(const struct tir *ir, const bool *reached, bool writes, ms_error *err) {
  uint64_t listed = 0, named = 0;
  const char *what = writes ? "written" : "read";
  tir_buffer *last = calloc(ir->stmts.count + 1, sizeof *last); /* by block: the buffer whose list last held it */
  if (!last) abort();
  const char *problem = NULL;
  tir_buffer at = TIR_NONE;
  for (tir_buffer b = 1; b < ir->buffers.count && !problem; b++)
    for (uint32_t u = writes ? ir->buffers.at[b].writers : ir->buffers.at[b].readers; u; u = ir->uses.at[u].next) {
      tir_block block = ir->uses.at[u].block;
      at = b;
      if (!reached[block] || !tir_is(ir, block, TIR_BLOCK))
        problem = "holds what is no block";
      else if (last[block] == b)
        problem = "holds a block twice";
      else if (!tir_has_region_of(ir, tir_regions(ir, block, writes), b))
        problem = "holds a block without such a region";
      if (problem) break;
      last[block] = b;
      listed++;
    }
  free(last);
  if (problem)
    FAIL(LISTS, TIR_NONE, "the list of blocks by %s buffer %s %s", what, tir_text(ir, ir->buffers.at[at].name),
         problem);
  for (tir_stmt s = 1; s < ir->stmts.count; s++)
    if (reached[s] && tir_is(ir, s, TIR_BLOCK)) named += distinct(ir, tir_regions(ir, s, writes));
  if (listed != named) FAIL(LISTS, TIR_NONE, "the lists of blocks by %s buffer miss one", what);
  return true;
}

static bool check_statements(const struct tir *ir, bool *reached, ms_error *err) {
  if (!check_funcs(ir, reached, err) || !check_unreached(ir, reached, err)) return false;
  uint32_t living = 0;
  for (tir_stmt s = 1; s < ir->stmts.count; s++) living += reached[s] && tir_is(ir, s, TIR_BLOCK);
  return check_names(ir, reached, living, err) && check_uses(ir, reached, false, err) &&
         check_uses(ir, reached, true, err);
}

bool tir_verify_storage(const struct tir *ir, struct tir_verified since, ms_error *err) {
  assert(since.exprs > 0 && since.exprs <= ir->exprs.count);
  if (!check_symbols(ir, err) || !check_exprs(ir, since.exprs, err) || !check_vars(ir, err) ||
      !check_expr_facts(ir, since.exprs, err) || !check_facts(ir, since, err) || !check_buffers(ir, err))
    return false;
  bool *reached = calloc(ir->stmts.count + 1, sizeof *reached);
  if (!reached) abort();
  bool ok = check_statements(ir, reached, err);
  free(reached);
  return ok;
}

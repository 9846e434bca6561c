/* Structural equality: both functions are walked side by side, and hashed with the same numbering (hash.h). Where the
 * hashes of two expressions agree they are compared in full: hashes only say which terms belong together. */
#include "hash.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct comparison {
  const struct tir *a, *b;
  struct tir_hash_tables tables_a, tables_b;
  struct tir_hasher ha, hb;
  tir_expr *same; /* by expression of a: the one of b that it was found equal to */
  char *why;
  size_t size;
};

/* ---- Reasons ---- */

static bool differ(struct comparison *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool differ(struct comparison *c, const char *format, ...) {
  if (!c->size) return false;
  va_list args;
  va_start(args, format);
  vsnprintf(c->why, c->size, format, args);
  va_end(args);
  return false;
}

static bool differ_exprs(struct comparison *c, const char *what, tir_expr a, tir_expr b) {
  if (!c->size) return false;
  char *x = a ? tir_print_expr(c->a, a) : NULL, *y = b ? tir_print_expr(c->b, b) : NULL;
  differ(c, "%s: %.200s, %.200s", what, x ? x : "nothing", y ? y : "nothing");
  free(x);
  free(y);
  return false;
}

static bool same_symbol(const struct comparison *c, tir_symbol a, tir_symbol b) {
  return (!a && !b) || (a && b && !strcmp(tir_text(c->a, a), tir_text(c->b, b)));
}

/* ---- Expressions in full ---- */

static bool same_expr(struct comparison *c, tir_expr a, tir_expr b);

struct term {
  uint64_t hash;
  int64_t coefficient;
  tir_expr atom;
};
struct terms {
  struct term *at;
  uint32_t count, capacity;
  int64_t constant;
};

static void add_terms(struct terms *t, struct tir_hasher *h, tir_expr e, int64_t scale) {
  const struct tir *ir = h->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (!tir_is_sum(ir, e)) {
    if (t->count == t->capacity) t->at = tir_enlarge(t->at, &t->capacity, t->count + 1ull, sizeof *t->at);
    t->at[t->count++] = (struct term){tir_hash_expr(h, e), scale, e};
  } else if (n->kind == TIR_INT_IMM) {
    t->constant = (int64_t)((uint64_t)t->constant + (uint64_t)scale * (uint64_t)n->imm);
  } else if (n->kind == TIR_MUL) {
    bool right = tir_is_int(ir, n->b);
    int64_t factor = tir_at(ir, right ? n->b : n->a)->imm;
    add_terms(t, h, right ? n->a : n->b, (int64_t)((uint64_t)scale * (uint64_t)factor));
  } else {
    add_terms(t, h, n->a, scale);
    add_terms(t, h, n->b, n->kind == TIR_SUB ? (int64_t)(0 - (uint64_t)scale) : scale);
  }
}

static int by_hash(const void *a, const void *b) {
  uint64_t x = ((const struct term *)a)->hash, y = ((const struct term *)b)->hash;
  return (x > y) - (x < y);
}

static void merge_terms(struct terms *t) {
  if (t->count) qsort(t->at, t->count, sizeof *t->at, by_hash);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < t->count; i++) {
    if (kept && t->at[kept - 1].hash == t->at[i].hash)
      t->at[kept - 1].coefficient = (int64_t)((uint64_t)t->at[kept - 1].coefficient + (uint64_t)t->at[i].coefficient);
    else
      t->at[kept++] = t->at[i];
    if (!t->at[kept - 1].coefficient) kept--;
  }
  t->count = kept;
}

static bool same_sum(struct comparison *c, tir_expr a, tir_expr b) {
  struct terms x = {NULL, 0, 0, 0}, y = {NULL, 0, 0, 0};
  add_terms(&x, &c->ha, a, 1);
  add_terms(&y, &c->hb, b, 1);
  merge_terms(&x);
  merge_terms(&y);
  bool same = x.count == y.count && x.constant == y.constant;
  for (uint32_t i = 0; i < x.count && same; i++)
    same = x.at[i].coefficient == y.at[i].coefficient && same_expr(c, x.at[i].atom, y.at[i].atom);
  free(x.at);
  free(y.at);
  return same;
}

static bool same_buffer(struct comparison *c, tir_buffer a, tir_buffer b) {
  return tir_hash_buffer(&c->ha, a) == tir_hash_buffer(&c->hb, b);
}

static bool same_run(struct comparison *c, uint32_t a, uint32_t b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!same_expr(c, c->a->operands.at[a + i], c->b->operands.at[b + i])) return false;
  return true;
}

static bool same_operands(struct comparison *c, const struct tir_expr_node *x, const struct tir_expr_node *y) {
  if (x->kind >= TIR_ADD && x->kind <= TIR_OR && tir_commutes((enum tir_kind)x->kind) &&
      tir_hash_expr(&c->ha, x->a) != tir_hash_expr(&c->hb, y->a))
    return same_expr(c, x->a, y->b) && same_expr(c, x->b, y->a);
  return same_expr(c, x->a, y->a) && same_expr(c, x->b, y->b) && same_expr(c, x->c, y->c);
}

static bool same_node(struct comparison *c, tir_expr a, tir_expr b) {
  const struct tir_expr_node *x = tir_at(c->a, a), *y = tir_at(c->b, b);
  if (tir_is_sum(c->a, a) || tir_is_sum(c->b, b)) return x->type == y->type && same_sum(c, a, b);
  if (x->kind != y->kind || x->type != y->type || x->count != y->count) return false;
  switch (x->kind) {
  case TIR_INT_IMM: return x->imm == y->imm;
  case TIR_FLOAT_IMM: return !memcmp(&x->real, &y->real, sizeof x->real);
  case TIR_STRING_IMM: return same_symbol(c, x->ref, y->ref);
  case TIR_VAR: return true; /* the same number: the hash says so */
  case TIR_DATA: return same_buffer(c, x->ref, y->ref);
  case TIR_LOAD:
    if (!same_buffer(c, x->ref, y->ref)) return false;
    break;
  case TIR_CALL:
    if (!same_symbol(c, x->ref, y->ref)) return false;
    break;
  default: break;
  }
  return same_operands(c, x, y) && same_run(c, x->operands, y->operands, x->count);
}

static bool same_expr(struct comparison *c, tir_expr a, tir_expr b) {
  if (!a || !b) return a == b;
  if (tir_hash_expr(&c->ha, a) != tir_hash_expr(&c->hb, b)) return false;
  if (c->same[a] == b) return true;
  if (!same_node(c, a, b)) return false;
  c->same[a] = b;
  return true;
}

static bool check(struct comparison *c, const char *what, tir_expr a, tir_expr b) {
  return same_expr(c, a, b) || differ_exprs(c, what, a, b);
}

static bool check_run(struct comparison *c, const char *what, uint32_t a, uint32_t b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!check(c, what, c->a->operands.at[a + i], c->b->operands.at[b + i])) return false;
  return true;
}

/* ---- Annotations ---- */

static bool same_value(struct comparison *c, tir_expr a, tir_expr b);

static bool same_map(struct comparison *c, const struct tir_expr_node *x, const struct tir_expr_node *y) {
  for (uint32_t i = 0; i + 1 < x->count; i += 2) {
    bool found = false;
    for (uint32_t j = 0; j + 1 < y->count && !found; j += 2)
      found = same_value(c, c->a->operands.at[x->operands + i], c->b->operands.at[y->operands + j]) &&
              same_value(c, c->a->operands.at[x->operands + i + 1], c->b->operands.at[y->operands + j + 1]);
    if (!found) return false;
  }
  return true;
}

/* Numbers by their value, whatever their type. */
static bool same_value(struct comparison *c, tir_expr a, tir_expr b) {
  if (!a || !b) return a == b;
  const struct tir_expr_node *x = tir_at(c->a, a), *y = tir_at(c->b, b);
  if (x->kind != y->kind || x->count != y->count) return false;
  if (x->kind == TIR_INT_IMM) return x->imm == y->imm;
  if (x->kind == TIR_FLOAT_IMM) return !memcmp(&x->real, &y->real, sizeof x->real);
  if (x->kind == TIR_MAP) return same_map(c, x, y);
  if (x->kind != TIR_LIST) return same_expr(c, a, b);
  for (uint32_t i = 0; i < x->count; i++)
    if (!same_value(c, c->a->operands.at[x->operands + i], c->b->operands.at[y->operands + i])) return false;
  return true;
}

static bool check_annotations(struct comparison *c, const char *what, struct tir_span a, struct tir_span b) {
  if (a.count != b.count) return differ(c, "%s: %u annotations, %u", what, a.count, b.count);
  for (uint32_t i = 0; i < a.count; i++) {
    const struct tir_annotation *x = &c->a->annotations.at[a.first + i], *y = &c->b->annotations.at[b.first + i];
    if (!same_symbol(c, x->key, y->key))
      return differ(c, "%s: annotation \"%.60s\", \"%.60s\"", what, tir_text(c->a, x->key), tir_text(c->b, y->key));
    if (same_value(c, x->value, y->value)) continue;
    char where[200];
    snprintf(where, sizeof where, "%.100s: annotation \"%.60s\"", what, tir_text(c->a, x->key));
    return differ_exprs(c, where, x->value, y->value);
  }
  return true;
}

/* ---- Buffers and regions ---- */

static uint32_t alignment_of(const struct tir_buffer_node *b) { return b->alignment == 64 ? 0 : b->alignment; }
static uint32_t factor_of(const struct tir_buffer_node *b) { return b->offset_factor > 1 ? b->offset_factor : 0; }

static bool check_properties(struct comparison *c, tir_buffer a, tir_buffer b) {
  const struct tir_buffer_node *x = tir_buffer_at(c->a, a), *y = tir_buffer_at(c->b, b);
  char what[160], s[24], t[24];
  snprintf(what, sizeof what, "buffer %.100s", tir_text(c->a, x->name));
  if (x->type != y->type) return differ(c, "%s: %s, %s", what, tir_type_text(x->type, s), tir_type_text(y->type, t));
  if (!same_symbol(c, x->scope, y->scope))
    return differ(c, "%s: scope %.60s, %.60s", what, tir_text(c->a, x->scope), tir_text(c->b, y->scope));
  if (x->rank != y->rank) return differ(c, "%s: %u dimensions, %u", what, x->rank, y->rank);
  if (x->strides.count != y->strides.count)
    return differ(c, "%s: %u strides, %u", what, x->strides.count, y->strides.count);
  if (alignment_of(x) != alignment_of(y) || factor_of(x) != factor_of(y)) return differ(c, "%s: alignment", what);
  tir_expr offset_a = x->elem_offset && !tir_is_const(c->a, x->elem_offset, 0) ? x->elem_offset : TIR_NONE;
  tir_expr offset_b = y->elem_offset && !tir_is_const(c->b, y->elem_offset, 0) ? y->elem_offset : TIR_NONE;
  return check_run(c, what, x->shape, y->shape, x->rank) &&
         check_run(c, what, x->strides.first, y->strides.first, x->strides.count) &&
         check(c, what, offset_a, offset_b) && check(c, what, x->data, y->data);
}

static bool check_buffer(struct comparison *c, const char *what, tir_buffer a, tir_buffer b) {
  if (same_buffer(c, a, b)) return true;
  if (!check_properties(c, a, b)) return false;
  return differ(c, "%s: buffer %.100s, %.100s", what, tir_buffer_name(c->a, a), tir_buffer_name(c->b, b));
}

/* Declares both and compares what they are. */
static bool check_declared(struct comparison *c, tir_buffer a, tir_buffer b) {
  tir_hash_declare(&c->ha, a);
  tir_hash_declare(&c->hb, b);
  return check_properties(c, a, b);
}

static bool check_region(struct comparison *c, const char *what, const struct tir_region *a,
                         const struct tir_region *b) {
  return check_buffer(c, what, a->buffer, b->buffer) &&
         check_run(c, what, a->ranges, b->ranges, 2 * tir_buffer_at(c->a, a->buffer)->rank);
}

static bool check_regions(struct comparison *c, const char *what, struct tir_span a, struct tir_span b) {
  if (a.count != b.count) return differ(c, "%s: %u regions, %u", what, a.count, b.count);
  for (uint32_t i = 0; i < a.count; i++)
    if (!check_region(c, what, &c->a->regions.at[a.first + i], &c->b->regions.at[b.first + i])) return false;
  return true;
}

/* ---- Blocks ---- */

static bool check_stmts(struct comparison *c, const char *where, tir_stmt a, tir_stmt b);

static bool check_iters(struct comparison *c, const char *name, struct tir_span a, struct tir_span b) {
  char what[200];
  if (a.count != b.count) return differ(c, "block %s: %u iteration variables, %u", name, a.count, b.count);
  for (uint32_t i = 0; i < a.count; i++) {
    const struct tir_iter *x = &c->a->iters.at[a.first + i], *y = &c->b->iters.at[b.first + i];
    const struct tir_var_node *v = &c->a->vars.at[x->var], *w = &c->b->vars.at[y->var];
    if (x->kind != y->kind) return differ(c, "block %s: kind of iteration variable %u", name, i);
    snprintf(what, sizeof what, "block %.100s: binding %u", name, i);
    if (!check(c, what, x->binding, y->binding)) return false;
    snprintf(what, sizeof what, "block %.100s: domain %u", name, i);
    if (!check(c, what, v->min, w->min) || !check(c, what, v->extent, w->extent)) return false;
    tir_hash_define(&c->ha, x->var);
    tir_hash_define(&c->hb, y->var);
  }
  return true;
}

static bool check_predicate(struct comparison *c, const char *what, tir_expr a, tir_expr b) {
  if (a && tir_is_const(c->a, a, 1)) a = TIR_NONE;
  if (b && tir_is_const(c->b, b, 1)) b = TIR_NONE;
  return check(c, what, a, b);
}

/* Buffers allocated in one block are a set: their uses say which is which. */
static bool check_allocs(struct comparison *c, const char *name, struct tir_span a, struct tir_span b) {
  if (a.count != b.count) return differ(c, "block %s: %u buffers allocated, %u", name, a.count, b.count);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < a.count; i++) {
    sum += tir_mix(0, tir_hash_declare(&c->ha, c->a->operands.at[a.first + i]));
    sum -= tir_mix(0, tir_hash_declare(&c->hb, c->b->operands.at[b.first + i]));
  }
  if (!sum) return true;
  for (uint32_t i = 0; i < a.count; i++)
    if (!check_properties(c, c->a->operands.at[a.first + i], c->b->operands.at[b.first + i])) return false;
  return differ(c, "block %s: buffers allocated", name);
}

static bool check_matches(struct comparison *c, const char *name, struct tir_span a, struct tir_span b) {
  if (a.count != b.count) return differ(c, "block %s: %u buffers matched, %u", name, a.count, b.count);
  for (uint32_t i = 0; i < a.count; i++) {
    const struct tir_match *x = &c->a->matches.at[a.first + i], *y = &c->b->matches.at[b.first + i];
    if (!check_region(c, name, &x->source, &y->source) || !check_declared(c, x->buffer, y->buffer) ||
        !check_buffer(c, name, x->buffer, y->buffer))
      return false;
  }
  return true;
}

static bool check_block(struct comparison *c, const struct tir_stmt_node *x, const struct tir_stmt_node *y) {
  const struct tir_block_record *r = &c->a->blocks.at[x->block.record], *s = &c->b->blocks.at[y->block.record];
  char name[120], what[200];
  snprintf(name, sizeof name, "%.100s", tir_text(c->a, r->name));
  if (!same_symbol(c, r->name, s->name)) return differ(c, "block %s, %.100s", name, tir_text(c->b, s->name));
  c->ha.block = ++c->ha.numbered;
  c->hb.block = ++c->hb.numbered;
  snprintf(what, sizeof what, "block %s: predicate", name);
  if (!check_iters(c, name, r->iters, s->iters) || !check_predicate(c, what, x->block.predicate, y->block.predicate) ||
      !check_allocs(c, name, r->allocs, s->allocs))
    return false;
  snprintf(what, sizeof what, "block %s: reads", name);
  if (!check_regions(c, what, r->reads, s->reads)) return false;
  snprintf(what, sizeof what, "block %s: writes", name);
  if (!check_regions(c, what, r->writes, s->writes)) return false;
  snprintf(what, sizeof what, "block %s", name);
  return check_annotations(c, what, x->annotations, y->annotations) && check_matches(c, name, r->matches, s->matches) &&
         check_stmts(c, what, x->first[TIR_INIT], y->first[TIR_INIT]) &&
         check_stmts(c, what, x->first[TIR_BODY], y->first[TIR_BODY]);
}

/* ---- Statements ---- */

static bool check_loop(struct comparison *c, const struct tir_stmt_node *x, const struct tir_stmt_node *y) {
  char what[160], name[100];
  tir_name_render(c->a, c->a->vars.at[x->loop.var].name, name, sizeof name);
  snprintf(what, sizeof what, "loop %s", name);
  if (x->loop_kind != y->loop_kind) return differ(c, "%s: kind", what);
  if (!same_symbol(c, x->loop.thread, y->loop.thread)) return differ(c, "%s: thread", what);
  if (!check(c, what, x->loop.min, y->loop.min) || !check(c, what, x->loop.extent, y->loop.extent) ||
      !check_annotations(c, what, x->annotations, y->annotations))
    return false;
  tir_hash_define(&c->ha, x->loop.var);
  tir_hash_define(&c->hb, y->loop.var);
  return check_stmts(c, what, x->first[TIR_BODY], y->first[TIR_BODY]);
}

static bool check_store(struct comparison *c, const char *where, const struct tir_stmt_node *x,
                        const struct tir_stmt_node *y) {
  char what[200];
  snprintf(what, sizeof what, "%.100s: store to %.80s", where, tir_buffer_name(c->a, x->store.buffer));
  return check_buffer(c, what, x->store.buffer, y->store.buffer) &&
         check_run(c, what, x->store.indices, y->store.indices, tir_buffer_at(c->a, x->store.buffer)->rank) &&
         check(c, what, x->store.value, y->store.value) && check(c, what, x->store.predicate, y->store.predicate);
}

static bool check_bind(struct comparison *c, const char *where, const struct tir_stmt_node *x,
                       const struct tir_stmt_node *y) {
  if (!check(c, where, x->bind.value, y->bind.value)) return false;
  if (c->a->vars.at[x->bind.var].type != c->b->vars.at[y->bind.var].type) return differ(c, "%s: type of a let", where);
  tir_hash_define(&c->ha, x->bind.var);
  tir_hash_define(&c->hb, y->bind.var);
  return true;
}

static bool check_value(struct comparison *c, const char *where, tir_expr a, tir_expr b) {
  return same_value(c, a, b) || differ_exprs(c, where, a, b);
}

static bool check_stmt(struct comparison *c, const char *where, tir_stmt a, tir_stmt b) {
  static const char *const kinds[] = {"nothing",  "function", "loop",   "block",     "store",      "if",         "let",
                                      "evaluate", "while",    "assert", "attribute", "allocation", "declaration"};
  const struct tir_stmt_node *x = tir_stmt_at(c->a, a), *y = tir_stmt_at(c->b, b);
  if (x->kind != y->kind) return differ(c, "%s: %s, %s", where, kinds[x->kind], kinds[y->kind]);
  bool good = true;
  switch (x->kind) {
  case TIR_LOOP: return check_loop(c, x, y);
  case TIR_BLOCK: return check_block(c, x, y);
  case TIR_STORE: return check_store(c, where, x, y);
  case TIR_BIND: return check_bind(c, where, x, y);
  case TIR_EVALUATE: return check(c, where, x->evaluate.value, y->evaluate.value);
  case TIR_ASSERT: good = check_value(c, where, x->test.message, y->test.message); /* fall through */
  case TIR_IF:
  case TIR_WHILE: good = good && check(c, where, x->test.condition, y->test.condition); break;
  case TIR_ATTR:
    if (!same_symbol(c, x->attr.key, y->attr.key)) return differ(c, "%s: key of an attribute", where);
    good = check_value(c, where, x->attr.node, y->attr.node) && check(c, where, x->attr.value, y->attr.value);
    break;
  case TIR_ALLOC:
  case TIR_DECLARE:
    return check_declared(c, x->alloc.buffer, y->alloc.buffer) &&
           check_buffer(c, where, x->alloc.buffer, y->alloc.buffer) &&
           check_annotations(c, where, x->annotations, y->annotations);
  default: break;
  }
  return good && check_stmts(c, where, x->first[TIR_BODY], y->first[TIR_BODY]) &&
         check_stmts(c, where, x->first[TIR_ELSE], y->first[TIR_ELSE]);
}

static bool check_stmts(struct comparison *c, const char *where, tir_stmt a, tir_stmt b) {
  uint32_t block_a = c->ha.block, block_b = c->hb.block, n = 0;
  for (; a && b; a = tir_stmt_at(c->a, a)->next, b = tir_stmt_at(c->b, b)->next, n++) {
    if (!check_stmt(c, where, a, b)) return false;
    c->ha.block = block_a;
    c->hb.block = block_b;
  }
  return a == b || (!a && !b) || differ(c, "%s: %s after statement %u", where, a ? "one more" : "one less", n);
}

/* ---- Functions ---- */

static bool check_params(struct comparison *c, struct tir_span a, struct tir_span b) {
  if (a.count != b.count) return differ(c, "%u parameters, %u", a.count, b.count);
  for (uint32_t i = 0; i < a.count; i++) {
    const struct tir_param *x = &c->a->params.at[a.first + i], *y = &c->b->params.at[b.first + i];
    if (!x->var != !y->var || !x->buffer != !y->buffer) return differ(c, "parameter %u: buffer or scalar", i);
    if (x->var) {
      if (c->a->vars.at[x->var].type != c->b->vars.at[y->var].type) return differ(c, "parameter %u: type", i);
      tir_hash_define(&c->ha, x->var);
      tir_hash_define(&c->hb, y->var);
    }
    if (x->buffer && (!check_declared(c, x->buffer, y->buffer) || !check_buffer(c, "parameter", x->buffer, y->buffer)))
      return false;
  }
  return true;
}

static bool check_funcs(struct comparison *c, tir_func fa, tir_func fb) {
  const struct tir_func_node *f = &c->a->funcs.at[fa], *g = &c->b->funcs.at[fb];
  c->ha = tir_hasher_start(c->a, &c->tables_a);
  c->hb = tir_hasher_start(c->b, &c->tables_b);
  memset(c->same, 0, c->a->exprs.count * sizeof *c->same);
  char name[120];
  snprintf(name, sizeof name, "function %.100s", tir_text(c->a, f->name));
  if (f->result != g->result) return differ(c, "%s: type of the result", name);
  return check_params(c, f->params, g->params) && check_annotations(c, name, f->attrs, g->attrs) &&
         check_stmts(c, name, tir_stmt_at(c->a, f->body)->first[TIR_BODY], tir_stmt_at(c->b, g->body)->first[TIR_BODY]);
}

/* Functions of the same name, whatever their order. */
static bool check_modules(struct comparison *c) {
  if (c->a->funcs.count != c->b->funcs.count)
    return differ(c, "%u functions, %u", c->a->funcs.count - 1, c->b->funcs.count - 1);
  for (tir_func f = 1; f < c->a->funcs.count; f++) {
    tir_func g = 1;
    while (g < c->b->funcs.count && !same_symbol(c, c->a->funcs.at[f].name, c->b->funcs.at[g].name)) g++;
    if (g == c->b->funcs.count) return differ(c, "no function %.100s", tir_text(c->a, c->a->funcs.at[f].name));
    if (!check_funcs(c, f, g)) return false;
  }
  return true;
}

bool tir_structural_equal(const struct tir *a, tir_func fa, const struct tir *b, tir_func fb, char *why, size_t size) {
  struct comparison c = {.a = a, .b = b, .why = why, .size = why ? size : 0};
  c.same = malloc((a->exprs.count + 1) * sizeof *c.same);
  if (!c.same) abort();
  if (c.size) *why = 0;
  assert((fa == TIR_NONE) == (fb == TIR_NONE) && "functions are compared with functions, modules with modules");
  bool same = fa == TIR_NONE ? check_modules(&c) : check_funcs(&c, fa, fb);
  tir_hash_tables_free(&c.tables_a);
  tir_hash_tables_free(&c.tables_b);
  free(c.same);
  return same;
}

#include "hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- Tables ---- */

static void fit(void **at, uint32_t *capacity, uint32_t count, size_t size) {
  if (count <= *capacity) return;
  uint32_t old = *capacity;
  *at = tir_enlarge(*at, capacity, count, size);
  memset((char *)*at + old * size, 0, (*capacity - old) * size);
}

struct tir_hasher tir_hasher_start(const struct tir *ir, struct tir_hash_tables *t) {
  fit((void **)&t->exprs, &t->expr_capacity, ir->exprs.count, sizeof *t->exprs);
  fit((void **)&t->vars, &t->var_capacity, ir->vars.count, sizeof *t->vars);
  fit((void **)&t->buffers, &t->buffer_capacity, ir->buffers.count, sizeof *t->buffers);
  if (++t->epoch == 0) { /* after 2^32 walks what is old looks new */
    memset(t->exprs, 0, t->expr_capacity * sizeof *t->exprs);
    memset(t->vars, 0, t->var_capacity * sizeof *t->vars);
    memset(t->buffers, 0, t->buffer_capacity * sizeof *t->buffers);
    t->epoch = 1;
  }
  return (struct tir_hasher){ir, t, 0, 0};
}

void tir_hash_tables_free(struct tir_hash_tables *t) {
  free(t->exprs);
  free(t->vars);
  free(t->buffers);
}

/* ---- Parts ---- */

enum { SEED_VAR = 0x10001, SEED_BUFFER = 0x20003, SEED_DATA = 0x30005, SEED_STRING = 0x40007 };
static const uint64_t UNIT = 0xD6E8FEB86659FD93u; /* the hash of 1, odd: of n it is n times this */

static uint64_t tir_hash_symbol(const struct tir *ir, tir_symbol s) {
  const struct tir_symbol_node *n = &ir->symbols.at[s];
  return s ? (uint64_t)n->length << 32 | n->hash : 0;
}

void tir_hash_define(struct tir_hasher *h, tir_var v) {
  MS_CHECK(v && v < h->ir->vars.count);
  struct tir_hash_slot *slot = &h->tables->vars[v];
  if (slot->epoch == h->tables->epoch) return;
  *slot = (struct tir_hash_slot){tir_mix(SEED_VAR, ++h->numbered), h->tables->epoch};
}

static uint64_t hash_var(struct tir_hasher *h, tir_var v) {
  tir_hash_define(h, v);
  return h->tables->vars[v].hash;
}

static inline uint64_t hash_operand(struct tir_hasher *h, tir_expr e);

static uint64_t hash_list(struct tir_hasher *h, uint64_t acc, uint32_t first, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) acc = tir_mix(acc, hash_operand(h, h->ir->operands.at[first + i]));
  return acc;
}

static uint64_t hash_properties(struct tir_hasher *h, tir_buffer buffer) {
  const struct tir_buffer_node *b = &h->ir->buffers.at[buffer];
  uint64_t acc = tir_mix((uint64_t)b->type << 8 | b->rank, tir_hash_symbol(h->ir, b->scope));
  acc = hash_list(h, acc, b->shape, b->rank);
  if (b->strides.count) acc = hash_list(h, tir_mix(acc, b->strides.count), b->strides.first, b->strides.count);
  if (b->elem_offset && !tir_is_const(h->ir, b->elem_offset, 0)) acc = tir_mix(acc, tir_hash_expr(h, b->elem_offset));
  if (b->data) acc = tir_mix(acc, tir_hash_expr(h, b->data));
  /* What is not said and what is meant then count as the same. */
  uint32_t alignment = b->alignment == 64 ? 0 : b->alignment, factor = b->offset_factor > 1 ? b->offset_factor : 0;
  if (alignment | factor) acc = tir_mix(acc, (uint64_t)alignment << 32 | factor);
  return acc;
}

uint64_t tir_hash_declare(struct tir_hasher *h, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(h->ir, buffer));
  uint64_t properties = hash_properties(h, buffer);
  h->tables->buffers[buffer] = (struct tir_hash_buffer_slot){properties, h->tables->epoch, 0, h->block};
  return properties;
}

uint64_t tir_hash_buffer(struct tir_hasher *h, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(h->ir, buffer));
  struct tir_hash_buffer_slot *slot = &h->tables->buffers[buffer];
  if (slot->used == h->tables->epoch) return slot->hash;
  if (slot->declared != h->tables->epoch) tir_hash_declare(h, buffer);
  slot->hash = tir_mix(slot->hash + SEED_BUFFER, (uint64_t)++h->numbered << 32 | slot->block);
  slot->used = h->tables->epoch;
  return slot->hash;
}

/* ---- Expressions ---- */

bool tir_is_sum(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (tir_type_code(n->type) != TIR_INT) return false;
  if (n->kind == TIR_ADD || n->kind == TIR_SUB || n->kind == TIR_INT_IMM) return true;
  return n->kind == TIR_MUL && (tir_is_int(ir, n->a) || tir_is_int(ir, n->b));
}

bool tir_commutes(enum tir_kind kind) {
  return kind == TIR_ADD || kind == TIR_MUL || kind == TIR_MIN || kind == TIR_MAX || kind == TIR_EQ || kind == TIR_NE ||
         kind == TIR_AND || kind == TIR_OR;
}

static uint64_t linear_hash(struct tir_hasher *h, tir_expr e);

/* Of an operand: its type counts. */
static inline uint64_t hash_operand(struct tir_hasher *h, tir_expr e) {
  const struct tir_expr_node *n = tir_at(h->ir, e);
  if (!e) return 0;
  if (n->kind == TIR_INT_IMM) return tir_mix((uint64_t)n->imm * UNIT, n->type);
  return tir_mix(n->kind == TIR_VAR ? hash_var(h, n->ref) : linear_hash(h, e), n->type);
}

uint64_t tir_hash_expr(struct tir_hasher *h, tir_expr e) { return hash_operand(h, e); }

static uint64_t hash_binary(struct tir_hasher *h, const struct tir_expr_node *n) {
  uint64_t a = hash_operand(h, n->a), b = hash_operand(h, n->b);
  if (tir_commutes((enum tir_kind)n->kind)) return tir_mix(n->kind, a + b);
  return tir_mix(tir_mix(n->kind, a), b);
}

static uint64_t hash_node(struct tir_hasher *h, const struct tir_expr_node *n) {
  uint64_t bits;
  switch (n->kind) {
  case TIR_INT_IMM: return (uint64_t)n->imm * UNIT; /* bool and unsigned: no sums are made of them */
  case TIR_FLOAT_IMM: memcpy(&bits, &n->real, sizeof bits); return tir_mix(TIR_FLOAT_IMM, bits);
  case TIR_STRING_IMM: return tir_mix(SEED_STRING, tir_hash_symbol(h->ir, n->ref));
  case TIR_VAR: return hash_var(h, n->ref);
  case TIR_DATA: return tir_mix(SEED_DATA, tir_hash_buffer(h, n->ref));
  case TIR_LOAD:
    bits = tir_mix(TIR_LOAD, tir_hash_buffer(h, n->ref));
    if (n->a) bits = tir_mix(bits, tir_hash_expr(h, n->a));
    return hash_list(h, bits, n->operands, n->count);
  case TIR_CALL:
    return hash_list(h, tir_mix((uint64_t)TIR_CALL << 16 | n->count, tir_hash_symbol(h->ir, n->ref)), n->operands,
                     n->count);
  case TIR_LET: { /* the value does not see the variable */
    bits = tir_hash_expr(h, n->a);
    tir_hash_define(h, n->ref);
    return tir_mix(tir_mix(tir_mix(TIR_LET, bits), hash_var(h, n->ref)), tir_hash_expr(h, n->b));
  }
  default: break;
  }
  if (n->kind >= TIR_ADD && n->kind <= TIR_OR) return hash_binary(h, n);
  bits = tir_mix((uint64_t)n->kind << 16 | n->count, tir_hash_expr(h, n->a));
  if (n->b) bits = tir_mix(bits, tir_hash_expr(h, n->b));
  if (n->c) bits = tir_mix(bits, tir_hash_expr(h, n->c));
  return hash_list(h, bits, n->operands, n->count);
}

static uint64_t hash_sum(struct tir_hasher *h, const struct tir_expr_node *n) {
  const struct tir *ir = h->ir;
  if (n->kind == TIR_ADD) return linear_hash(h, n->a) + linear_hash(h, n->b);
  if (n->kind == TIR_SUB) return linear_hash(h, n->a) - linear_hash(h, n->b);
  if (tir_is_int(ir, n->b)) return linear_hash(h, n->a) * (uint64_t)tir_at(ir, n->b)->imm;
  return linear_hash(h, n->b) * (uint64_t)tir_at(ir, n->a)->imm;
}

/* Linear in the terms of a sum; for all else just a hash. Each expression is hashed once a walk. */
static uint64_t linear_hash(struct tir_hasher *h, tir_expr e) {
  struct tir_hash_slot *slot = &h->tables->exprs[e];
  if (slot->epoch == h->tables->epoch) return slot->hash;
  const struct tir_expr_node *n = tir_at(h->ir, e);
  bool sum = n->kind >= TIR_ADD && n->kind <= TIR_MUL && tir_is_sum(h->ir, e);
  uint64_t hash = sum ? hash_sum(h, n) : hash_node(h, n);
  *slot = (struct tir_hash_slot){hash, h->tables->epoch};
  return hash;
}

/* What is always true is 0. */
static uint64_t tir_hash_predicate(struct tir_hasher *h, tir_expr e) {
  return !e || tir_is_const(h->ir, e, 1) ? 0 : tir_hash_expr(h, e);
}

/* ---- Annotations ---- */

/* Of a value in an annotation, where a number's type does not count. */
static uint64_t tir_hash_annotation(struct tir_hasher *h, tir_expr e) {
  const struct tir_expr_node *n = tir_at(h->ir, e);
  uint64_t acc = tir_mix(n->kind, n->count), sum = 0;
  switch (n->kind) {
  case TIR_INT_IMM:
  case TIR_FLOAT_IMM: return linear_hash(h, e);
  case TIR_LIST:
    for (uint32_t i = 0; i < n->count; i++)
      acc = tir_mix(acc, tir_hash_annotation(h, h->ir->operands.at[n->operands + i]));
    return acc;
  case TIR_MAP: /* whatever the order of the keys */
    for (uint32_t i = 0; i + 1 < n->count; i += 2)
      sum += tir_mix(tir_hash_annotation(h, h->ir->operands.at[n->operands + i]),
                     tir_hash_annotation(h, h->ir->operands.at[n->operands + i + 1]));
    return tir_mix(acc, sum);
  default: return tir_hash_expr(h, e);
  }
}

static uint64_t tir_hash_annotations(struct tir_hasher *h, struct tir_span span) {
  uint64_t acc = span.count;
  for (uint32_t i = span.first; i < span.first + span.count; i++) {
    const struct tir_annotation *a = &h->ir->annotations.at[i];
    acc = tir_mix(acc, tir_mix(tir_hash_symbol(h->ir, a->key), tir_hash_annotation(h, a->value)));
  }
  return acc;
}

/* ---- Statements ---- */

static uint64_t hash_stmts(struct tir_hasher *h, tir_stmt first);

static uint64_t hash_region(struct tir_hasher *h, const struct tir_region *r) {
  return hash_list(h, tir_hash_buffer(h, r->buffer), r->ranges, 2 * h->ir->buffers.at[r->buffer].rank);
}

static uint64_t hash_regions(struct tir_hasher *h, struct tir_span span) {
  uint64_t acc = span.count;
  for (uint32_t i = span.first; i < span.first + span.count; i++)
    acc = tir_mix(acc, hash_region(h, &h->ir->regions.at[i]));
  return acc;
}

static uint64_t hash_block(struct tir_hasher *h, const struct tir_stmt_node *n) {
  const struct tir *ir = h->ir;
  const struct tir_block_record *r = &ir->blocks.at[n->block.record];
  uint64_t acc = tir_mix(TIR_BLOCK, tir_hash_symbol(ir, r->name)), allocs = 0;
  h->block = ++h->numbered;
  for (uint32_t i = r->iters.first; i < r->iters.first + r->iters.count; i++) {
    const struct tir_iter *iter = &ir->iters.at[i];
    const struct tir_var_node *v = &ir->vars.at[iter->var];
    acc = tir_mix(acc ^ iter->kind, hash_operand(h, iter->binding));
    acc = tir_mix(tir_mix(acc, hash_operand(h, v->min)), hash_operand(h, v->extent));
    tir_hash_define(h, iter->var);
  }
  acc = tir_mix(acc, tir_hash_predicate(h, n->block.predicate));
  for (uint32_t i = 0; i < r->allocs.count; i++)
    allocs += tir_mix(TIR_ALLOC, tir_hash_declare(h, ir->operands.at[r->allocs.first + i]));
  acc = tir_mix(acc, allocs);
  acc = tir_mix(acc, hash_regions(h, r->reads));
  acc = tir_mix(acc, hash_regions(h, r->writes));
  if (n->annotations.count) acc = tir_mix(acc, tir_hash_annotations(h, n->annotations));
  for (uint32_t i = r->matches.first; i < r->matches.first + r->matches.count; i++) {
    acc = tir_mix(acc, hash_region(h, &ir->matches.at[i].source));
    tir_hash_declare(h, ir->matches.at[i].buffer);
    acc = tir_mix(acc, tir_hash_buffer(h, ir->matches.at[i].buffer));
  }
  uint64_t init = hash_stmts(h, n->first[TIR_INIT]);
  return tir_mix(tir_mix(acc, init), hash_stmts(h, n->first[TIR_BODY]));
}

static uint64_t hash_loop(struct tir_hasher *h, const struct tir_stmt_node *n) {
  uint64_t acc = tir_mix((uint64_t)TIR_LOOP << 8 | n->loop_kind, tir_hash_symbol(h->ir, n->loop.thread));
  acc = tir_mix(acc + hash_operand(h, n->loop.min), hash_operand(h, n->loop.extent));
  if (n->annotations.count) acc = tir_mix(acc, tir_hash_annotations(h, n->annotations));
  tir_hash_define(h, n->loop.var);
  return tir_mix(acc, hash_stmts(h, n->first[TIR_BODY]));
}

static uint64_t hash_stmt(struct tir_hasher *h, const struct tir_stmt_node *n) {
  uint64_t acc = n->kind;
  switch (n->kind) {
  case TIR_LOOP: return hash_loop(h, n);
  case TIR_BLOCK: return hash_block(h, n);
  case TIR_STORE:
    acc = tir_mix(acc, tir_hash_buffer(h, n->store.buffer));
    acc = hash_list(h, acc, n->store.indices, h->ir->buffers.at[n->store.buffer].rank);
    acc = tir_mix(acc, tir_hash_expr(h, n->store.value));
    return n->store.predicate ? tir_mix(acc, tir_hash_expr(h, n->store.predicate)) : acc;
  case TIR_BIND:
    acc = tir_mix(acc, tir_hash_expr(h, n->bind.value));
    tir_hash_define(h, n->bind.var);
    return tir_mix(acc, h->ir->vars.at[n->bind.var].type);
  case TIR_EVALUATE: return tir_mix(acc, tir_hash_expr(h, n->evaluate.value));
  case TIR_IF:
  case TIR_WHILE: acc = tir_mix(acc, tir_hash_expr(h, n->test.condition)); break;
  case TIR_ASSERT:
    acc = tir_mix(acc, tir_hash_expr(h, n->test.condition));
    return tir_mix(acc, n->test.message ? tir_hash_annotation(h, n->test.message) : 0);
  case TIR_ATTR:
    acc = tir_mix(acc, tir_hash_symbol(h->ir, n->attr.key));
    acc = tir_mix(acc, n->attr.node ? tir_hash_annotation(h, n->attr.node) : 0);
    acc = tir_mix(acc, tir_hash_expr(h, n->attr.value));
    break;
  case TIR_ALLOC:
  case TIR_DECLARE:
    acc = tir_mix(acc, tir_hash_declare(h, n->alloc.buffer));
    acc = tir_mix(acc, tir_hash_buffer(h, n->alloc.buffer));
    return n->annotations.count ? tir_mix(acc, tir_hash_annotations(h, n->annotations)) : acc;
  default: break;
  }
  acc = tir_mix(acc, hash_stmts(h, n->first[TIR_BODY]));
  return n->first[TIR_ELSE] ? tir_mix(acc, hash_stmts(h, n->first[TIR_ELSE])) : acc;
}

static uint64_t hash_stmts(struct tir_hasher *h, tir_stmt first) {
  uint64_t acc = 0;
  uint32_t block = h->block;
  for (tir_stmt s = first; s; s = h->ir->stmts.at[s].next) {
    acc = tir_mix(acc, hash_stmt(h, &h->ir->stmts.at[s]));
    h->block = block;
  }
  return acc;
}

/* ---- Functions ---- */

static uint64_t hash_func(struct tir_hasher *h, tir_func func) {
  const struct tir_func_node *f = &h->ir->funcs.at[func];
  uint64_t acc = tir_mix(f->params.count, f->result);
  for (uint32_t i = f->params.first; i < f->params.first + f->params.count; i++) {
    const struct tir_param *p = &h->ir->params.at[i];
    if (p->var) {
      tir_hash_define(h, p->var);
      acc = tir_mix(acc, h->ir->vars.at[p->var].type);
    }
    if (p->buffer) acc = tir_mix(acc, tir_hash_buffer(h, p->buffer));
  }
  acc = tir_mix(acc, tir_hash_annotations(h, f->attrs));
  return tir_mix(acc, hash_stmts(h, h->ir->stmts.at[f->body].first[TIR_BODY]));
}

static void release(void *memory) { tir_hash_tables_free(memory); }
static const struct tir_scratch_kind hash_tables = {sizeof(struct tir_hash_tables), release, NULL};

uint64_t tir_structural_hash(const struct tir *ir, tir_func func) {
  MS_CHECK(func < ir->funcs.count);
  struct tir_hash_tables *tables = tir_scratch_of(ir, TIR_SCRATCH_HASHES, &hash_tables);
  if (func != TIR_NONE) {
    struct tir_hasher h = tir_hasher_start(ir, tables);
    return hash_func(&h, func);
  }
  uint64_t sum = 0; /* a module is a set of functions by name */
  for (tir_func f = 1; f < ir->funcs.count; f++) {
    struct tir_hasher h = tir_hasher_start(ir, tables);
    sum += tir_mix(tir_hash_symbol(ir, ir->funcs.at[f].name), hash_func(&h, f));
  }
  return sum;
}

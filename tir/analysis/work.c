/* What a function does and moves: operations by type, bytes of its parameters. */
#include "tir/tir.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  bool floats;
} kinds[TIR_WORK_KINDS] = {
    [TIR_WORK_F64] = {"float64", true},
    [TIR_WORK_F32] = {"float32", true},
    [TIR_WORK_F16] = {"float16", true},
    [TIR_WORK_BF16] = {"bfloat16", true},
    [TIR_WORK_F16_PRODUCTS] = {"float16 products", true},
    [TIR_WORK_F16_IN_F16] = {"float16 products in float16", true},
    [TIR_WORK_BF16_PRODUCTS] = {"bfloat16 products", true},
    [TIR_WORK_I8_PRODUCTS] = {"int8 products", false},
    [TIR_WORK_I64] = {"int64", false},
    [TIR_WORK_I32] = {"int32", false},
    [TIR_WORK_I16] = {"int16", false},
    [TIR_WORK_I8] = {"int8", false},
};

const char *tir_work_name(enum tir_work_kind kind) {
  assert(kind < TIR_WORK_KINDS);
  return kinds[kind].name;
}

bool tir_work_is_of_floats(enum tir_work_kind kind) {
  assert(kind < TIR_WORK_KINDS);
  return kinds[kind].floats;
}

struct counting {
  const struct tir *ir;
  struct tir_work *out;
  tir_buffer *base; /* of each buffer, the parameter's that it is a view of; TIR_NONE: it is of none */
  double *touched;  /* of each buffer, elements that were counted as read */
  double *put;      /* as written */
  bool *is_put;     /* whether an earlier statement writes it: what is read from then on need not be moved */
  double times;     /* that the statement is done */
  tir_buffer to;    /* what it stores to; TIR_NONE: nothing */
};

/* ---- Operations ---- */

/* The kind of what is computed in a type; TIR_WORK_KINDS: it is none that counts. */
static enum tir_work_kind kind_of(tir_type type) {
  int bits = tir_type_bits(type);
  switch (tir_type_code(type)) {
  case TIR_FLOAT: return bits == 64 ? TIR_WORK_F64 : bits == 32 ? TIR_WORK_F32 : TIR_WORK_F16;
  case TIR_BFLOAT: return TIR_WORK_BF16;
  case TIR_INT:
  case TIR_UINT: return bits > 32 ? TIR_WORK_I64 : bits > 16 ? TIR_WORK_I32 : bits > 8 ? TIR_WORK_I16 : TIR_WORK_I8;
  default: return TIR_WORK_KINDS;
  }
}

/* Whether a value is of what is loaded: an integer that is not is an index, or part of one. */
static bool is_data(const struct tir *ir, tir_expr e) {
  return (tir_at(ir, e)->flags & TIR_HAS_LOAD) || tir_uses_let(ir, e);
}

static void add(struct counting *c, enum tir_work_kind kind, tir_type type, double count) {
  if (kind < TIR_WORK_KINDS) c->out->operations[kind] += count * c->times * tir_type_lanes(type);
}

/* One operation that gives, or compares, numbers of the type. */
static void add_one(struct counting *c, tir_expr e, tir_type type) {
  if (tir_type_is_float(type) || (tir_type_is_int(type) && is_data(c->ir, e))) add(c, kind_of(type), type, 1);
}

/* Calls that compute nothing. */
static bool is_plain(const char *op) {
  static const char *const plain[] = {"if_then_else", "likely", "reinterpret", "address_of", "tvm_access_ptr"};
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (!strcmp(op, plain[i])) return true;
  return false;
}

static bool count_operation(void *data, tir_expr e) {
  struct counting *c = data;
  const struct tir_expr_node *n = tir_at(c->ir, e);
  if (tir_is_arithmetic((enum tir_kind)n->kind)) add_one(c, e, n->type);
  if (n->kind >= TIR_EQ && n->kind <= TIR_GE && is_data(c->ir, e)) add_one(c, e, tir_type_of(c->ir, n->a));
  if (n->kind == TIR_CALL && !is_plain(tir_text(c->ir, n->ref))) add_one(c, e, n->type);
  return n->kind != TIR_LOAD;
}

/* The kind of a product that is added to a sum of its type; TIR_WORK_KINDS: of none that has one of its own. A square
 * has not: units multiply two tensors. */
static enum tir_work_kind product_kind(const struct tir *ir, tir_expr product) {
  const struct tir_expr_node *n = tir_at(ir, product);
  if (n->kind != TIR_MUL || n->a == n->b) return TIR_WORK_KINDS;
  tir_expr a = tir_without_casts(ir, n->a), b = tir_without_casts(ir, n->b);
  if (!is_data(ir, a) || !is_data(ir, b)) return TIR_WORK_KINDS;
  enum tir_work_kind of = kind_of(tir_type_of(ir, a)), sum = kind_of(n->type);
  if (of != kind_of(tir_type_of(ir, b))) return TIR_WORK_KINDS;
  if (of == TIR_WORK_I8 && sum == TIR_WORK_I32) return TIR_WORK_I8_PRODUCTS;
  if (of == TIR_WORK_F16 && sum == TIR_WORK_F32) return TIR_WORK_F16_PRODUCTS;
  if (of == TIR_WORK_F16 && sum == TIR_WORK_F16) return TIR_WORK_F16_IN_F16;
  return of == TIR_WORK_BF16 && sum == TIR_WORK_F32 ? TIR_WORK_BF16_PRODUCTS : TIR_WORK_KINDS;
}

static bool loads_own(const struct counting *c, tir_expr e) {
  const struct tir_expr_node *n = tir_at(c->ir, e);
  if (n->kind == TIR_ADD) return loads_own(c, n->a) || loads_own(c, n->b);
  return n->kind == TIR_LOAD && n->ref == c->to;
}

/* The terms of a sum, each with its addition: there is one fewer than terms, and what is stored is one of these. */
static void count_terms(struct counting *c, tir_expr e, bool *is_first) {
  const struct tir_expr_node *n = tir_at(c->ir, e);
  if (n->kind == TIR_ADD) {
    count_terms(c, n->a, is_first);
    count_terms(c, n->b, is_first);
    return;
  }
  if (*is_first && n->kind == TIR_LOAD && n->ref == c->to) {
    *is_first = false;
    return;
  }
  enum tir_work_kind kind = product_kind(c->ir, e);
  add(c, kind < TIR_WORK_KINDS ? kind : kind_of(n->type), n->type, 1);
  if (kind == TIR_WORK_KINDS) return tir_walk_expr(c->ir, e, count_operation, c);
  add(c, kind, n->type, 1);
  tir_walk_expr(c->ir, tir_without_casts(c->ir, n->a), count_operation, c);
  tir_walk_expr(c->ir, tir_without_casts(c->ir, n->b), count_operation, c);
}

static void count_value(struct counting *c, tir_expr value) {
  bool is_first = true;
  if (c->to && tir_at(c->ir, value)->kind == TIR_ADD && loads_own(c, value))
    count_terms(c, value, &is_first);
  else
    tir_walk_expr(c->ir, value, count_operation, c);
}

/* ---- Bytes ---- */

/* Elements of a buffer; 0: extents are no constants. */
static double elements_of(const struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  double all = tir_type_lanes(n->type);
  for (uint32_t d = 0; d < n->rank; d++) {
    const struct tir_expr_node *extent = tir_at(ir, tir_operands(ir, n->shape)[d]);
    all *= extent->kind == TIR_INT_IMM ? (double)extent->imm : 0;
  }
  return all;
}

static int bytes_of(tir_type type) {
  int bits = tir_type_bits(type);
  return bits > 8 ? bits / 8 : 1;
}

/* The buffer that a pointer is of; TIR_NONE: of another. */
static tir_buffer buffer_of(const struct tir *ir, tir_expr data) {
  const struct tir_expr_node *n = tir_at(ir, data);
  return n->kind == TIR_DATA ? n->ref : TIR_NONE;
}

/* Notes views as what they are of. */
static void note_views(struct counting *c, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  if (n->kind == TIR_DECLARE) {
    tir_expr data = tir_buffer_at(c->ir, n->alloc.buffer)->data;
    tir_buffer of = data ? buffer_of(c->ir, data) : TIR_NONE;
    if (of) c->base[n->alloc.buffer] = c->base[of];
  }
  if (n->kind != TIR_BLOCK) return;
  struct tir_span matches = tir_block_at(c->ir, s)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    c->base[c->ir->matches.at[i].buffer] = c->base[c->ir->matches.at[i].source.buffer];
}

/* The values that all variables of an expression may have together, each variable once. */
struct reach {
  const struct tir *ir;
  tir_var seen[16];
  int count;
  double values;
};
static bool reach_of_variable(void *data, tir_expr e) {
  struct reach *r = data;
  const struct tir_expr_node *n = tir_at(r->ir, e);
  if (n->kind == TIR_RAMP) r->values *= tir_type_lanes(n->type);
  if (n->kind != TIR_VAR) return true;
  for (int i = 0; i < r->count; i++)
    if (r->seen[i] == n->ref) return true;
  tir_expr extent = tir_var_at(r->ir, n->ref)->extent;
  bool known = extent && tir_at(r->ir, extent)->kind == TIR_INT_IMM;
  r->values *= known ? (double)tir_at(r->ir, extent)->imm : DBL_MAX;
  if (r->count < (int)(sizeof r->seen / sizeof *r->seen)) r->seen[r->count++] = n->ref;
  return true;
}

/* Elements that an access touches at most. */
static double touched(const struct counting *c, tir_buffer buffer, const tir_expr *indices, uint32_t count) {
  const struct tir_buffer_node *n = tir_buffer_at(c->ir, buffer);
  struct reach all = {.ir = c->ir, .values = 1};
  double product = 1;
  for (uint32_t d = 0; d < count; d++) {
    struct reach one = {.ir = c->ir, .values = 1};
    tir_walk_expr(c->ir, indices[d], reach_of_variable, &one);
    tir_walk_expr(c->ir, indices[d], reach_of_variable, &all);
    const struct tir_expr_node *extent = d < n->rank ? tir_at(c->ir, tir_operands(c->ir, n->shape)[d]) : NULL;
    double most = extent && extent->kind == TIR_INT_IMM ? (double)extent->imm : DBL_MAX;
    product *= one.values < most ? one.values : most;
  }
  double least = product < all.values ? product : all.values;
  return (least < c->times ? least : c->times) * tir_type_lanes(n->type);
}

static bool count_load(void *data, tir_expr e) {
  struct counting *c = data;
  const struct tir_expr_node *n = tir_at(c->ir, e);
  if (n->kind == TIR_DATA && c->base[n->ref]) c->touched[c->base[n->ref]] = DBL_MAX; /* by an instruction: all of it */
  if (n->kind != TIR_LOAD || !c->base[n->ref] || c->is_put[c->base[n->ref]]) return true;
  c->touched[c->base[n->ref]] += touched(c, n->ref, tir_operands(c->ir, n->operands), n->count);
  return true;
}

static void count_accesses(struct counting *c, tir_stmt s) {
  tir_expr exprs[4];
  uint32_t count = tir_stmt_exprs(c->ir, s, exprs);
  for (uint32_t i = 0; i < count; i++)
    if (exprs[i]) tir_walk_expr(c->ir, exprs[i], count_load, c);
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  if (n->kind != TIR_STORE) return;
  tir_buffer buffer = n->store.buffer, base = c->base[buffer];
  const tir_expr *indices = tir_operands(c->ir, n->store.indices);
  for (uint32_t d = 0; d < tir_buffer_at(c->ir, buffer)->rank; d++) tir_walk_expr(c->ir, indices[d], count_load, c);
  if (!base) return;
  c->put[base] += touched(c, buffer, indices, tir_buffer_at(c->ir, buffer)->rank);
  c->is_put[base] = true;
}

static double least(double a, double b) { return a < b ? a : b; }

static void add_bytes(struct counting *c, tir_func f) {
  struct tir_span params = c->ir->funcs.at[f].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++) {
    tir_buffer b = c->ir->params.at[i].buffer;
    if (!b) continue;
    double all = elements_of(c->ir, b), bytes = bytes_of(tir_buffer_at(c->ir, b)->type);
    c->out->read_bytes += bytes * least(all, c->touched[b]);
    c->out->written_bytes += bytes * least(all, c->put[b]);
  }
}

/* ---- All of it ---- */

/* How often a statement is done; 0 where extents are no constants. */
static double times_of(const struct tir *ir, tir_stmt s) {
  double times = 1;
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP)) {
      const struct tir_expr_node *extent = tir_at(ir, tir_stmt_at(ir, p)->loop.extent);
      times *= extent->kind == TIR_INT_IMM ? (double)extent->imm : 0;
    }
  return times;
}

static void count_statement(struct counting *c, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  note_views(c, s);
  c->times = times_of(c->ir, s), c->to = TIR_NONE;
  if (n->kind == TIR_STORE) {
    c->to = n->store.buffer;
    count_value(c, n->store.value);
  }
  if (n->kind == TIR_BIND) tir_walk_expr(c->ir, n->bind.value, count_operation, c);
  count_accesses(c, s);
}

static void *cleared(size_t count, size_t size) {
  void *made = calloc(count, size);
  if (!made) abort();
  return made;
}

void tir_count_work(const struct tir *ir, tir_func f, struct tir_work *out) {
  assert(tir_is_func(ir, f) && out);
  size_t buffers = ir->buffers.count;
  struct counting c = {.ir = ir, .out = out, .base = cleared(buffers, sizeof *c.base)};
  c.touched = cleared(buffers, sizeof *c.touched), c.put = cleared(buffers, sizeof *c.put);
  c.is_put = cleared(buffers, sizeof *c.is_put);
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++)
    if (ir->params.at[i].buffer) c.base[ir->params.at[i].buffer] = ir->params.at[i].buffer;
  *out = (struct tir_work){0};
  tir_stmt body = ir->funcs.at[f].body;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) count_statement(&c, s);
  add_bytes(&c, f);
  free(c.base), free(c.touched), free(c.put), free(c.is_put);
}

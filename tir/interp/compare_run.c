/* Agreement by running: two functions, the same arguments, equal results.
 *
 * Inputs are small integers, so that sums and products are exact in any order, and results must then be equal bit for
 * bit. The interpreter knows whether anything was rounded; only then results may differ, by as much as a float's
 * epsilon and the length of the reductions allow. */
#include "interp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Arguments ---- */

uint64_t tir_drawn(uint64_t seed, uint64_t stream, uint64_t number) {
  uint64_t x = seed + stream * 0xD1B54A32D192ED03u + (number + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/* Small integers that a type can hold; smaller where sums of few bits must be exact. */
static struct tir_draws draws_of(tir_type t) {
  assert(tir_type_lanes(t) <= 1);
  if (tir_type_code(t) == TIR_BOOL) return (struct tir_draws){2, 0};
  if (tir_type_code(t) == TIR_UINT) return (struct tir_draws){tir_type_bits(t) < 4 ? 2 : 8, 0};
  int64_t most = tir_type_bits(t) <= 16 ? 2 : 4;
  return (struct tir_draws){2 * (uint64_t)most + 1, -most};
}

struct making {
  const struct tir *ir;
  uint64_t seed;
  int64_t *values; /* of variables */
  bool *set;
  bool *given; /* variables that are parameters */
  bool fills;  /* buffers get data */
  ms_error *err;
};

/* The value of an extent; a variable without a value gets one. */
static bool extent_value(struct making *k, tir_expr e, int64_t *out) {
  const struct tir_expr_node *n = tir_at(k->ir, e);
  int64_t a, b;
  if (n->kind == TIR_INT_IMM) {
    *out = n->imm;
    return true;
  }
  if (n->kind == TIR_VAR) {
    if (!k->set[n->ref]) k->values[n->ref] = 9 + (int64_t)(tir_drawn(k->seed, UINT32_MAX, n->ref) % 16);
    k->set[n->ref] = true;
    *out = k->values[n->ref];
    return true;
  }
  if (n->kind == TIR_CAST) return extent_value(k, n->a, out);
  bool arithmetic = n->kind >= TIR_ADD && n->kind <= TIR_MAX;
  if (!arithmetic || !extent_value(k, n->a, &a) || !extent_value(k, n->b, &b)) return false;
  bool divides = n->kind >= TIR_DIV && n->kind <= TIR_FLOORMOD;
  return !(divides && (a < 0 || b < 0)) && tir_compute((enum tir_kind)n->kind, a, b, out);
}

/* A stride or an offset; where a variable of it is no parameter and has no value, that of a dense buffer. */
static bool place_value(struct making *k, tir_expr e, int64_t dense, int64_t *out) {
  const struct tir_expr_node *n = tir_at(k->ir, e);
  tir_expr unknown = TIR_NONE;
  if (n->kind == TIR_VAR && k->given[n->ref] && !k->set[n->ref]) {
    k->values[n->ref] = dense + (int64_t)(tir_drawn(k->seed, UINT32_MAX, n->ref) % 4);
    k->set[n->ref] = true;
  }
  for (uint32_t v = 0; v < k->ir->vars.count && !unknown; v++)
    if (!k->given[v] && !k->set[v] && tir_uses_var(k->ir, e, v)) unknown = e;
  *out = dense;
  return unknown != TIR_NONE || extent_value(k, e, out);
}

/* What indices reach, in elements from where the memory begins. */
struct span {
  int64_t first, last;
  bool empty;
};

static bool widen(struct span *s, int64_t step, int64_t extent) {
  int64_t reach, *end = step < 0 ? &s->first : &s->last;
  return !__builtin_mul_overflow(step, extent - 1, &reach) && !__builtin_add_overflow(*end, reach, end);
}

/* NULL, or what is wrong. */
static const char *measure_span(struct making *k, const struct tir_buffer_node *b, int64_t *shape, struct span *out) {
  static const char unknown[] = "has no known size", large[] = "has more elements than can be counted";
  int64_t stride = 1, offset = 0;
  *out = (struct span){0};
  for (uint32_t d = b->rank; d-- > 0;) {
    if (!extent_value(k, tir_operands(k->ir, b->shape)[d], &shape[d]) || shape[d] < 0) return unknown;
    if (!shape[d]) out->empty = true;
  }
  for (uint32_t d = b->rank; d-- > 0 && !out->empty;) {
    int64_t step = stride;
    if (b->strides.count == b->rank && !place_value(k, tir_operands(k->ir, b->strides.first)[d], stride, &step))
      return unknown;
    if (!widen(out, step, shape[d]) || __builtin_mul_overflow(stride, shape[d], &stride)) return large;
  }
  if (out->empty) return NULL;
  if (b->elem_offset && !place_value(k, b->elem_offset, 0, &offset)) return unknown;
  if (__builtin_add_overflow(out->first, offset, &out->first) || __builtin_add_overflow(out->last, offset, &out->last))
    return large;
  return out->first < 0 ? "is read or written before its memory begins: a stride or its offset is negative" : NULL;
}

static void fill(uint8_t *data, tir_type type, uint64_t count, uint64_t seed, uint32_t stream) {
  assert(data || !count);
  tir_type t = tir_type_with_lanes(type, 1);
  enum format format = interp_format(t);
  const struct tir_draws draws = draws_of(t);
  for (uint64_t i = 0; i < count; i++) {
    int64_t x = (int64_t)(tir_drawn(seed, stream, i) % draws.count) + draws.first;
    union value v = {.i = x};
    if (tir_type_is_float(t)) v.f = (double)x;
    interp_put(format, data + i * (uint64_t)interp_format_size(format), v);
  }
}

enum { MOST_ELEMENTS = 1 << 28 };

static bool size_buffer(struct making *k, tir_buffer buffer, struct tir_arg *out) {
  const struct tir_buffer_node *b = tir_buffer_at(k->ir, buffer);
  const char *name = tir_text(k->ir, b->name);
  int lanes = tir_type_lanes(b->type);
  int64_t *shape = calloc(b->rank + 1, sizeof *shape);
  if (!shape) abort();
  out->shape = shape;
  enum format format = interp_format(tir_type_with_lanes(b->type, 1));
  if (format == FORMAT_BAD)
    return ms_fail(k->err, MS_RUN_UNSUPPORTED, "parameter %s has no type that can be filled", name);
  struct span span;
  const char *wrong = measure_span(k, b, shape, &span);
  if (wrong) return ms_fail(k->err, MS_RUN_MEMORY, "parameter %s %s", name, wrong);
  int64_t count = span.empty ? 0 : span.last < INT64_MAX ? span.last + 1 : span.last;
  if (count > MOST_ELEMENTS / lanes)
    return ms_fail(k->err, MS_RUN_MEMORY, "parameter %s has %lld elements, more than the %d that are run", name,
                   (long long)count, MOST_ELEMENTS / lanes);
  out->bytes = (size_t)count * (size_t)lanes * (size_t)interp_format_size(format);
  return true;
}

static bool fill_buffer(struct making *k, tir_buffer buffer, uint32_t number, struct tir_arg *out) {
  const struct tir_buffer_node *b = tir_buffer_at(k->ir, buffer);
  out->data = malloc(out->bytes ? out->bytes : 1);
  if (!out->data)
    return ms_fail(k->err, MS_RUN_MEMORY, "parameter %s: %zu bytes cannot be had", tir_text(k->ir, b->name),
                   out->bytes);
  enum format format = interp_format(tir_type_with_lanes(b->type, 1));
  fill(out->data, b->type, out->bytes / (size_t)interp_format_size(format), k->seed, number);
  return true;
}

static bool make_arguments(struct making *k, tir_func f, struct tir_arguments *out) {
  const struct tir_func_node *func = &k->ir->funcs.at[f];
  bool ok = true;
  for (uint32_t i = 0; i < func->params.count && ok; i++) {
    const struct tir_param *p = &k->ir->params.at[func->params.first + i];
    if (p->buffer) {
      ok = size_buffer(k, p->buffer, &out->args[i]);
      continue;
    }
    tir_type t = k->ir->vars.at[p->var].type;
    if (!k->set[p->var]) k->values[p->var] = 1 + (int64_t)(tir_drawn(k->seed, i, 0) % 8);
    k->set[p->var] = true;
    out->args[i].scalar = interp_wrap(t, k->values[p->var]);
    out->args[i].real = (double)k->values[p->var];
  }
  for (uint32_t i = 0; i < func->params.count && ok && k->fills; i++) { /* all are known to fit */
    tir_buffer buffer = k->ir->params.at[func->params.first + i].buffer;
    if (buffer) ok = fill_buffer(k, buffer, i, &out->args[i]);
  }
  return ok;
}

static struct making begin_making(const struct tir *ir, tir_func f, uint64_t seed, ms_error *err) {
  assert(tir_is_func(ir, f));
  struct making k = {.ir = ir, .seed = seed, .err = err};
  struct tir_span params = ir->funcs.at[f].params;
  k.values = calloc(ir->vars.count + 1, sizeof *k.values);
  k.set = calloc(ir->vars.count + 1, sizeof *k.set);
  k.given = calloc(ir->vars.count + 1, sizeof *k.given);
  if (!k.values || !k.set || !k.given) abort();
  for (uint32_t i = 0; i < params.count; i++)
    if (!ir->params.at[params.first + i].buffer) k.given[ir->params.at[params.first + i].var] = true;
  return k;
}

static void end_making(struct making *k) {
  free(k->values);
  free(k->set);
  free(k->given);
}

static bool make_all(const struct tir *ir, tir_func f, uint64_t seed, bool fills, struct tir_arguments *out,
                     ms_error *err) {
  struct making k = begin_making(ir, f, seed, err);
  k.fills = fills;
  out->count = ir->funcs.at[f].params.count;
  out->args = calloc(out->count + 1, sizeof *out->args);
  if (!out->args) abort();
  bool ok = make_arguments(&k, f, out);
  end_making(&k);
  if (!ok) tir_arguments_free(out);
  return ok;
}

/* Extents that are variables, from the shape that an argument has. */
static void take_shape(struct making *k, const struct tir_buffer_node *b, const int64_t *shape) {
  for (uint32_t d = 0; d < b->rank; d++) {
    const struct tir_expr_node *n = tir_at(k->ir, tir_operands(k->ir, b->shape)[d]);
    if (n->kind != TIR_VAR || k->set[n->ref]) continue;
    k->values[n->ref] = shape[d];
    k->set[n->ref] = true;
  }
}

/* Bytes of the buffer's memory; SIZE_MAX: they are not known. */
static size_t size_of(struct making *k, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(k->ir, buffer);
  int64_t *shape = calloc(b->rank + 1, sizeof *shape), bytes = 0;
  struct span span;
  if (!shape) abort();
  int64_t element = ((int64_t)tir_type_bits(b->type) + 7) / 8 * tir_type_lanes(b->type);
  bool known = !measure_span(k, b, shape, &span);
  if (known && !span.empty)
    known = !__builtin_add_overflow(span.last, 1, &bytes) && !__builtin_mul_overflow(bytes, element, &bytes);
  for (uint32_t d = 0; d < b->rank && !known; d++)
    if (shape[d] < 0) known = true, bytes = 0; /* nothing is run of it */
  free(shape);
  return known ? (size_t)bytes : SIZE_MAX;
}

void tir_size_arguments(const struct tir *ir, tir_func f, struct tir_arg *args) {
  struct making k = begin_making(ir, f, 0, NULL);
  struct tir_span params = ir->funcs.at[f].params;
  const struct tir_param *all = &ir->params.at[params.first];
  for (uint32_t i = 0; i < params.count; i++) {
    if (all[i].buffer) continue;
    k.values[all[i].var] = interp_wrap(ir->vars.at[all[i].var].type, args[i].scalar);
    k.set[all[i].var] = true;
  }
  for (uint32_t i = 0; i < params.count; i++)
    if (all[i].buffer && args[i].shape) take_shape(&k, tir_buffer_at(ir, all[i].buffer), args[i].shape);
  for (uint32_t i = 0; i < params.count; i++)
    if (all[i].buffer) args[i].bytes = size_of(&k, all[i].buffer);
  end_making(&k);
}

bool tir_make_arguments(const struct tir *ir, tir_func f, uint64_t seed, struct tir_arguments *out, ms_error *err) {
  return make_all(ir, f, seed, true, out, err);
}

bool tir_shape_arguments(const struct tir *ir, tir_func f, uint64_t seed, struct tir_arguments *out, ms_error *err) {
  return make_all(ir, f, seed, false, out, err);
}

void tir_fill_argument(const struct tir *ir, tir_func f, uint64_t seed, uint32_t parameter, const struct tir_arg *arg) {
  tir_buffer b = ir->params.at[ir->funcs.at[f].params.first + parameter].buffer;
  assert(b && arg->data);
  tir_type type = tir_buffer_at(ir, b)->type;
  uint64_t size = (uint64_t)interp_format_size(interp_format(tir_type_with_lanes(type, 1)));
  fill(arg->data, type, arg->bytes / size, seed, parameter);
}

bool tir_draws_of(tir_type type, struct tir_draws *out) {
  tir_type t = tir_type_with_lanes(type, 1);
  if (interp_format(t) == FORMAT_BAD) return false;
  *out = draws_of(t);
  return true;
}

static void *copy_of(const void *from, size_t bytes) {
  if (!from) return NULL;
  void *copy = malloc(bytes ? bytes : 1);
  if (!copy) abort();
  memcpy(copy, from, bytes);
  return copy;
}

void tir_copy_arguments(const struct tir *ir, tir_func f, const struct tir_arguments *from, struct tir_arguments *out) {
  assert(from->count == ir->funcs.at[f].params.count);
  assert(tir_is_func(ir, f));
  out->count = from->count;
  out->args = copy_of(from->args, (from->count + 1) * sizeof *from->args);
  for (uint32_t i = 0; i < from->count; i++) {
    tir_buffer b = ir->params.at[ir->funcs.at[f].params.first + i].buffer;
    out->args[i].data = copy_of(from->args[i].data, from->args[i].bytes);
    out->args[i].shape = copy_of(from->args[i].shape, ((b ? tir_buffer_at(ir, b)->rank : 0) + 1) * sizeof(int64_t));
  }
}

void tir_arguments_free(struct tir_arguments *arguments) {
  for (uint32_t i = 0; arguments->args && i < arguments->count; i++) {
    free(arguments->args[i].data);
    free((void *)arguments->args[i].shape);
  }
  free(arguments->args);
  *arguments = (struct tir_arguments){0};
}

/* ---- Tolerance ---- */

/* How many terms a store that reads its own target sums: the reduction iterations of its block, or outside of blocks
 * the loops that its indices do not depend on. */
double tir_reduction_length(const struct tir *ir, tir_stmt store) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, store);
  const struct tir_buffer_node *b = tir_buffer_at(ir, n->store.buffer);
  if (!tir_uses_buffer(ir, n->store.value, n->store.buffer)) return 0;
  double length = 1;
  for (tir_stmt s = n->parent; s != TIR_NONE; s = tir_stmt_at(ir, s)->parent) {
    const struct tir_stmt_node *p = tir_stmt_at(ir, s);
    if (p->kind == TIR_LOOP) {
      bool used = false;
      for (uint32_t d = 0; d < b->rank; d++)
        used = used || tir_uses_var(ir, tir_operands(ir, n->store.indices)[d], p->loop.var);
      if (!used && tir_is_int(ir, p->loop.extent)) length *= (double)tir_at(ir, p->loop.extent)->imm;
    }
    if (p->kind != TIR_BLOCK) continue;
    const struct tir_iter *iters = tir_iters(ir, s);
    for (uint32_t i = 0; i < tir_block_at(ir, s)->iters.count; i++) {
      tir_expr extent = ir->vars.at[iters[i].var].extent;
      if (iters[i].kind == TIR_REDUCE && extent && tir_is_int(ir, extent)) length *= (double)tir_at(ir, extent)->imm;
    }
    if (tir_block_at(ir, s)->iters.count) break;
  }
  return length;
}

double tir_tolerance(const struct tir *ir, tir_func f, double epsilon) {
  assert(epsilon >= 0);
  assert(tir_is_func(ir, f));
  double length = 0;
  tir_stmt top = ir->funcs.at[f].body;
  for (tir_stmt s = top; s != TIR_NONE; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_STORE)) length += tir_reduction_length(ir, s);
  return epsilon * (8 + 2 * length);
}

/* ---- Comparison ---- */

static double largest(const uint8_t *data, enum format format, uint64_t count) {
  double most = 0;
  for (uint64_t i = 0; i < count; i++) {
    double x = fabs(interp_fetch(format, data + i * (uint64_t)interp_format_size(format)).f);
    if (isfinite(x) && x > most) most = x;
  }
  return most;
}

static bool same_float(double x, double y, double slack) {
  if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
  return x == y || fabs(x - y) <= slack;
}

/* "C[1, 2]" for an element of a row-major buffer. */
static void name_element(const struct tir *ir, tir_buffer buffer, const int64_t *shape, uint64_t element, char *out,
                         size_t size) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  int64_t indices[INTERP_MOST_RANK];
  uint32_t rank = b->rank < INTERP_MOST_RANK ? b->rank : INTERP_MOST_RANK;
  element /= (uint64_t)tir_type_lanes(b->type);
  for (uint32_t d = rank; d-- > 0; element /= (uint64_t)shape[d]) indices[d] = (int64_t)(element % (uint64_t)shape[d]);
  size_t length = (size_t)snprintf(out, size, "%s[", tir_text(ir, b->name));
  for (uint32_t d = 0; d < rank && length < size; d++)
    length += (size_t)snprintf(out + length, size - length, "%s%lld", d ? ", " : "", (long long)indices[d]);
  if (length < size) snprintf(out + length, size - length, "]");
}

bool tir_same_element(tir_type type, const void *expected, const void *actual, double slack) {
  enum format format = interp_format(type);
  union value a = interp_fetch(format, expected), b = interp_fetch(format, actual);
  return tir_type_is_float(type) ? same_float(a.f, b.f, slack) : a.i == b.i;
}

bool tir_refuse_element(const struct tir *ir, tir_buffer buffer, const int64_t *shape, uint64_t element,
                        const void *expected, const void *actual, double slack, ms_error *err) {
  tir_type t = tir_type_with_lanes(tir_buffer_at(ir, buffer)->type, 1);
  enum format format = interp_format(t);
  union value a = interp_fetch(format, expected), b = interp_fetch(format, actual);
  char name[256];
  name_element(ir, buffer, shape, element, name, sizeof name);
  if (!tir_type_is_float(t))
    return ms_fail(err, MS_RUN_DIFFERENT, "%s: %lld is expected, %lld was computed", name, (long long)a.i,
                   (long long)b.i);
  return ms_fail(err, MS_RUN_DIFFERENT, "%s: %.9g is expected, %.9g was computed (off by %.3g, %.3g is allowed)", name,
                 a.f, b.f, fabs(a.f - b.f), slack);
}

static bool same_buffer(const struct tir *ir, tir_buffer buffer, const struct tir_arg *x, const struct tir_arg *y,
                        double tolerance, ms_error *err) {
  assert(x->bytes == y->bytes && tolerance >= 0);
  tir_type t = tir_type_with_lanes(tir_buffer_at(ir, buffer)->type, 1);
  enum format format = interp_format(t);
  bool real = tir_type_is_float(t);
  uint64_t size = (uint64_t)interp_format_size(format), count = x->bytes / size;
  if (x->bytes != y->bytes)
    return ms_fail(err, MS_RUN_SIGNATURE, "sizes differ: %zu and %zu bytes", x->bytes, y->bytes);
  if (!memcmp(x->data, y->data, x->bytes)) return true;
  double slack = real && tolerance > 0 ? tolerance * largest(x->data, format, count) : 0;
  for (uint64_t i = 0; i < count; i++) {
    union value a = interp_fetch(format, (uint8_t *)x->data + i * size),
                b = interp_fetch(format, (uint8_t *)y->data + i * size);
    if (real ? same_float(a.f, b.f, slack) : a.i == b.i) continue;
    return tir_refuse_element(ir, buffer, x->shape, i, (uint8_t *)x->data + i * size, (uint8_t *)y->data + i * size,
                              slack, err);
  }
  return true;
}

bool tir_same_arguments(const struct tir *ir, tir_func f, const struct tir_arguments *expected,
                        const struct tir_arguments *actual, double tolerance, ms_error *err) {
  assert(expected->count == actual->count);
  assert(tir_is_func(ir, f));
  const struct tir_func_node *func = &ir->funcs.at[f];
  for (uint32_t i = 0; i < func->params.count; i++) {
    tir_buffer b = ir->params.at[func->params.first + i].buffer;
    if (b && !same_buffer(ir, b, &expected->args[i], &actual->args[i], tolerance, err)) return false;
  }
  return true;
}

/* ---- Two functions ---- */

static bool same_extent(const struct tir *a, tir_expr x, const struct tir *b, tir_expr y) {
  const struct tir_expr_node *p = tir_at(a, x), *q = tir_at(b, y);
  return p->kind == q->kind && (p->kind != TIR_INT_IMM || p->imm == q->imm);
}

/* flat: the second is lowered, and its buffers may have one dimension. */
static bool same_signature(const struct tir *a, tir_func fa, const struct tir *b, tir_func fb, bool flat,
                           ms_error *err) {
  struct tir_span x = a->funcs.at[fa].params, y = b->funcs.at[fb].params;
  if (x.count != y.count)
    return ms_fail(err, MS_RUN_SIGNATURE, "one takes %u parameters, the other %u", x.count, y.count);
  for (uint32_t i = 0; i < x.count; i++) {
    tir_buffer p = a->params.at[x.first + i].buffer, q = b->params.at[y.first + i].buffer;
    if (!p && !q) continue;
    if (!p || !q) return ms_fail(err, MS_RUN_SIGNATURE, "parameter %u is a buffer in one only", i);
    const struct tir_buffer_node *u = tir_buffer_at(a, p), *v = tir_buffer_at(b, q);
    bool same = u->type == v->type && (u->rank == v->rank || flat);
    for (uint32_t d = 0; same && u->rank == v->rank && d < u->rank; d++)
      same = same_extent(a, tir_operands(a, u->shape)[d], b, tir_operands(b, v->shape)[d]);
    if (!same) return ms_fail(err, MS_RUN_SIGNATURE, "parameter %s has another shape or type", tir_text(a, u->name));
  }
  return true;
}

/* Says which of the two functions an error is of. */
static bool name_run(ms_error *err, const char *which) {
  if (!err || err->brief) return false;
  size_t length = strlen(which), room = sizeof err->message - 1 - length, kept = strlen(err->message);
  if (kept > room) kept = room;
  memmove(err->message + length, err->message, kept);
  memcpy(err->message, which, length);
  err->message[length + kept] = 0;
  return false;
}

/* A run whose report is taken, too. */
static bool run_with(const struct tir *ir, tir_func f, struct tir_run_options options, struct tir_arguments *arguments,
                     struct tir_run_report *report, ms_error *err) {
  struct tir_run_report *wanted = options.report;
  options.report = report;
  bool ok = tir_run(ir, f, arguments->args, arguments->count, &options, err);
  if (wanted) *wanted = *report;
  return ok;
}

static struct tir_run_options options_of(const struct tir_run_options *options) {
  return options ? *options : (struct tir_run_options){0};
}

bool tir_expect(const struct tir *ir, tir_func f, const struct tir_run_options *options, uint64_t seed,
                struct tir_expectation *out, ms_error *err) {
  struct tir_run_options noted = options_of(options);
  struct tir_run_report report = {0};
  struct tir_arguments *x = &out->results;
  *out = (struct tir_expectation){.ir = ir, .f = f};
  if (!tir_make_arguments(ir, f, seed, x, err)) return false;
  tir_copy_arguments(ir, f, x, &out->given);
  noted.note_unwritten = true;
  for (uint32_t i = 0; i < x->count; i++) x->args[i].unwritten = i < 64 && x->args[i].data;
  bool ok = run_with(ir, f, noted, x, &report, err);
  out->epsilon = report.epsilon, out->read_first = report.read_first;
  if (ok) return true;
  tir_expectation_free(out);
  return name_run(err, "the first function: ");
}

void tir_expectation_free(struct tir_expectation *expectation) {
  tir_arguments_free(&expectation->given);
  tir_arguments_free(&expectation->results);
}

size_t tir_expectation_bytes(const struct tir_expectation *expectation) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < expectation->given.count; i++) bytes += 2 * expectation->given.args[i].bytes;
  return bytes;
}

/* Where the second function's buffer has another number of dimensions, the first's shape means nothing to it. */
static void drop_shapes(const struct tir *a, tir_func fa, const struct tir *b, tir_func fb, struct tir_arguments *y) {
  for (uint32_t i = 0; i < y->count; i++) {
    tir_buffer p = a->params.at[a->funcs.at[fa].params.first + i].buffer;
    tir_buffer q = b->params.at[b->funcs.at[fb].params.first + i].buffer;
    if (!p || tir_buffer_at(a, p)->rank == tir_buffer_at(b, q)->rank) continue;
    free((void *)y->args[i].shape);
    y->args[i].shape = NULL;
  }
}

/* y: the arguments that were given, which become results. */
static bool run_and_compare(const struct tir_expectation *x, const struct tir *ir, tir_func f,
                            const struct tir_run_options *options, struct tir_arguments *y, ms_error *err) {
  struct tir_run_options noted = options_of(options);
  struct tir_run_report report = {0};
  if (noted.lowered) drop_shapes(x->ir, x->f, ir, f, y);
  noted.note_unwritten = false;
  for (uint32_t i = 0; i < y->count; i++) y->args[i].unwritten = i < 64 && y->args[i].data && !(x->read_first >> i & 1);
  if (!run_with(ir, f, noted, y, &report, err)) return name_run(err, "the second function: ");
  double epsilon = fmax(x->epsilon, report.epsilon);
  double tolerance = fmax(tir_tolerance(x->ir, x->f, epsilon), tir_tolerance(ir, f, epsilon));
  return tir_same_arguments(x->ir, x->f, &x->results, y, tolerance, err);
}

bool tir_meets(const struct tir_expectation *expectation, const struct tir *ir, tir_func f,
               const struct tir_run_options *options, ms_error *err) {
  struct tir_arguments y;
  if (!same_signature(expectation->ir, expectation->f, ir, f, options && options->lowered, err)) return false;
  tir_copy_arguments(expectation->ir, expectation->f, &expectation->given, &y);
  bool ok = run_and_compare(expectation, ir, f, options, &y, err);
  tir_arguments_free(&y);
  return ok;
}

bool tir_equal_results(const struct tir *a, tir_func fa, const struct tir_run_options *options_a, const struct tir *b,
                       tir_func fb, const struct tir_run_options *options_b, uint64_t seed, ms_error *err) {
  struct tir_expectation x;
  if (!same_signature(a, fa, b, fb, options_b && options_b->lowered, err) ||
      !tir_expect(a, fa, options_a, seed, &x, err))
    return false;
  bool ok = run_and_compare(&x, b, fb, options_b, &x.given, err);
  tir_expectation_free(&x);
  return ok;
}

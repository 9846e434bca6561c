/* Graphs of several operations: products of matrices, pointwise operations and reductions of tensors of four
 * dimensions, one after another; what is computed on the way is in no memory. It refuses what cuDNN would: a tensor on
 * the way that nothing has computed, one in memory that is computed and read again, extents that do not belong
 * together, an index without an axis, operations of another type than cuDNN's frontend gives them. Everything is
 * computed in double, and rounded to its tensor's type. */
#include "cudnn_graph.h"
#include "tir/tir.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RANK = 4, MOST_TENSORS = 40 };
enum { F32 = 0, F16 = 2, I32 = 4, BF16 = 9, TRUTH = 11 };
enum { MULTIPLY = 1, DIVIDE = 6, SUBTRACT = 9, EXPONENTIAL = 13, AT_LEAST = 303, INDEX = 501, SELECT = 601 };
enum { BY_SUM = 0, BY_MAXIMUM = 3 };

struct value {
  int id, type, extents[RANK], strides[RANK];
  bool on_the_way, given, made;
  double *at; /* without gaps */
};
struct run {
  struct value values[MOST_TENSORS];
  int count;
};

static bool is_set(const struct descriptor *t, int name) {
  const struct attribute *a = fake_attribute(t, name);
  return a && a->bytes[0];
}

static struct value *value_of(struct run *r, const struct descriptor *t) {
  int id;
  fake_integers(t, 906, &id);
  for (int i = 0; i < r->count; i++)
    if (r->values[i].id == id) return &r->values[i];
  if (r->count == MOST_TENSORS || fake_attribute(t, 902)->count != RANK) return NULL;
  struct value *v = &r->values[r->count++];
  *v = (struct value){.id = id, .type = fake_number(t, 901), .on_the_way = is_set(t, 907), .given = is_set(t, 908)};
  fake_integers(t, 902, v->extents), fake_integers(t, 903, v->strides);
  return v;
}

static int count_of(const struct value *v) { return v->extents[0] * v->extents[1] * v->extents[2] * v->extents[3]; }

/* Element i, in the order of another's extents, of which this one's may be 1. */
static int place_in(const struct value *v, const struct value *of, int i) {
  int place = 0, at[RANK];
  for (int d = RANK - 1; d >= 0; d--) at[d] = i % of->extents[d], i /= of->extents[d];
  for (int d = 0; d < RANK; d++) place = place * v->extents[d] + (v->extents[d] == 1 ? 0 : at[d]);
  return place;
}

static bool spreads(const struct value *v, const struct value *over) {
  for (int d = 0; d < RANK; d++)
    if (v->extents[d] != over->extents[d] && v->extents[d] != 1) return false;
  return true;
}

/* What an operation reads is there. */
static bool is_read(const struct value *v) { return v && (v->on_the_way ? v->made : !v->made); }

static double rounded(const struct value *v, double x) {
  tir_type type = v->type == F16 ? TIR_TYPE(TIR_FLOAT, 16, 1) : TIR_TYPE(TIR_BFLOAT, 16, 1);
  uint16_t bits;
  if (v->type != F16 && v->type != BF16) return v->type == F32 ? (float)x : x;
  tir_put_element(type, &bits, x);
  return tir_fetch_element(type, &bits);
}

static double applied(int mode, double x, double b, double t) {
  switch (mode) {
  case MULTIPLY: return x * b;
  case DIVIDE: return x / b;
  case SUBTRACT: return x - b;
  case EXPONENTIAL: return exp(x);
  case AT_LEAST: return x >= b;
  default: return t != 0 ? x : b;
  }
}

/* ---- Operations: checked, and done where the values have memory ---- */

static const char *do_pointwise(struct run *r, const struct descriptor *o) {
  const struct descriptor *how = fake_pointer(o, 750, 0);
  const struct attribute *b = fake_attribute(o, 752), *t = fake_attribute(o, 758), *axis = fake_attribute(how, 9);
  int mode = fake_number(how, 0), along = 0;
  struct value *x = value_of(r, fake_pointer(o, 751, 0)), *y = value_of(r, fake_pointer(o, 753, 0));
  struct value *second = b ? value_of(r, fake_pointer(o, 752, 0)) : NULL;
  struct value *choice = t ? value_of(r, fake_pointer(o, 758, 0)) : NULL;
  bool binary = mode != EXPONENTIAL && mode != INDEX;
  if (!is_read(x) || !y || y->made || !spreads(x, y)) return "a pointwise operation's input is not there";
  if (binary != (b != NULL) || (mode == SELECT) != (t != NULL)) return "a pointwise operation has other inputs";
  if ((second && (!is_read(second) || !spreads(second, y))) || (choice && (!is_read(choice) || choice->type != TRUTH)))
    return "a pointwise operation's second input is not there";
  if (mode == INDEX && !axis) return "an index has no axis";
  if ((mode == INDEX) != (y->type == I32) || (mode == AT_LEAST) != (y->type == TRUTH)) return "it has another type";
  bool whole = mode == INDEX || mode == AT_LEAST;
  if (fake_number(how, 1) != (whole ? y->type : F32)) return "it is computed in another type";
  if (axis) fake_integers(how, 9, &along);
  y->made = true;
  for (int i = 0; y->at && i < count_of(y); i++) {
    int number = i;
    for (int d = RANK - 1; d > along; d--) number /= y->extents[d];
    double at_b = second ? second->at[place_in(second, y, i)] : 0,
           at_t = choice ? choice->at[place_in(choice, y, i)] : 0;
    double made = applied(mode, x->at[place_in(x, y, i)], at_b, at_t);
    y->at[i] = mode == INDEX ? number % y->extents[along] : rounded(y, made);
  }
  return NULL;
}

static const char *do_product(struct run *r, const struct descriptor *o) {
  struct value *a = value_of(r, fake_pointer(o, 1520, 0)), *b = value_of(r, fake_pointer(o, 1521, 0));
  struct value *c = value_of(r, fake_pointer(o, 1522, 0));
  if (!is_read(a) || !is_read(b) || !c || c->made || a->type != b->type) return "a product's operand is not there";
  for (int d = 0; d < 2; d++)
    if (a->extents[d] != c->extents[d] || b->extents[d] != c->extents[d]) return "a product's batches differ";
  int m = c->extents[2], n = c->extents[3], k = a->extents[3];
  if (a->extents[2] != m || b->extents[2] != k || b->extents[3] != n) return "a product's extents differ";
  c->made = true;
  for (int i = 0; c->at && i < count_of(c); i++) {
    int batch = i / (m * n), row = i / n % m, column = i % n;
    double sum = 0;
    for (int l = 0; l < k; l++) sum += a->at[(batch * m + row) * k + l] * b->at[(batch * k + l) * n + column];
    c->at[i] = rounded(c, sum);
  }
  return NULL;
}

static const char *do_reduction(struct run *r, const struct descriptor *o) {
  const struct descriptor *how = fake_pointer(o, 1612, 0);
  struct value *x = value_of(r, fake_pointer(o, 1610, 0)), *y = value_of(r, fake_pointer(o, 1611, 0));
  int by = fake_number(how, 1600);
  if (!is_read(x) || !y || y->made || !spreads(y, x) || (by != BY_SUM && by != BY_MAXIMUM))
    return "a reduction's input is not there";
  y->made = true;
  for (int i = 0; y->at && i < count_of(y); i++) y->at[i] = by == BY_SUM ? 0 : -INFINITY;
  for (int i = 0; y->at && i < count_of(x); i++) {
    double *to = &y->at[place_in(y, x, i)];
    *to = by == BY_SUM ? *to + x->at[i] : fmax(*to, x->at[i]);
  }
  return NULL;
}

/* NULL: all went well. */
static const char *do_all(struct run *r, const struct descriptor *graph) {
  const char *why = NULL;
  for (int i = 0; i < fake_attribute(graph, 801)->count && !why; i++) {
    const struct descriptor *o = fake_pointer(graph, 801, i);
    why = o->type == OPERATION_MATMUL      ? do_product(r, o)
          : o->type == OPERATION_POINTWISE ? do_pointwise(r, o)
          : o->type == OPERATION_REDUCTION ? do_reduction(r, o)
                                           : "an operation that there is not";
  }
  return why;
}

int fake_composed_check(const struct descriptor *graph) {
  struct run r = {.count = 0};
  const char *why = do_all(&r, graph);
  return why ? fake_refuse(BAD_PARAM, why) : SUCCESS;
}

/* ---- Memory ---- */

static int offset_of(const struct value *v, int i) {
  int offset = 0;
  for (int d = RANK - 1; d >= 0; d--) offset += i % v->extents[d] * v->strides[d], i /= v->extents[d];
  return offset;
}

static tir_type type_in_memory(const struct value *v) {
  return v->type == F32 ? TIR_T_F32 : v->type == F16 ? TIR_TYPE(TIR_FLOAT, 16, 1) : TIR_TYPE(TIR_BFLOAT, 16, 1);
}

int fake_composed_run(const struct descriptor *graph, const struct descriptor *pack, double times) {
  struct run first = {.count = 0}, r;
  const void *input = NULL;
  do_all(&first, graph);
  r = first;
  for (int i = 0; i < r.count; i++) {
    struct value *v = &r.values[i];
    char *data = v->on_the_way ? NULL : fake_address(pack, v->id);
    if (!v->on_the_way && !data) return fake_refuse(BAD_PARAM, "a tensor has no address");
    if (!(v->at = calloc((size_t)count_of(v), sizeof *v->at))) abort();
    for (int k = 0; k < count_of(v) && data && !v->made; k++)
      v->at[k] = tir_fetch_element(type_in_memory(v), data + (size_t)offset_of(v, k) * fake_cudnn_size(v->type));
    if (data && !v->made && !v->given && !input) input = data;
    v->made = false;
  }
  do_all(&r, graph);
  for (int i = 0; i < r.count; i++) {
    struct value *v = &r.values[i];
    char *data = v->on_the_way ? NULL : fake_address(pack, v->id);
    for (int k = 0; k < count_of(v) && data && v->made; k++)
      tir_put_element(type_in_memory(v), data + (size_t)offset_of(v, k) * fake_cudnn_size(v->type),
                      fake_cudnn_is_told("wrong") && k == 0 ? v->at[k] + 1 : v->at[k]);
  }
  for (int i = 0; i < r.count; i++) free(r.values[i].at);
  fake_cudnn_pass(times, input);
  return SUCCESS;
}

/* Operation graphs of cuDNN's: attention, of the operations that cuDNN's own frontend makes of it, by which its engines
 * know it: two products of matrices, between them a scale, a mask, and a softmax of reductions and pointwise
 * operations. Nothing between them is in memory. All tensors have batches, heads and rows; what is one number is given
 * by the host. Source: NVIDIA, cudnn-frontend, "Scaled dot product attention"; cuDNN Developer Guide. */
#include "cudnn_graph.h"

#include <assert.h>
#include <float.h>

enum { RANK = 4, BATCH = 0, HEADS, ROWS, WIDTH };
enum { SCALE, HIDDEN };

void cudnn_lay_attention(const struct vendor_work *work, int which, struct vendor_laid *out) {
  const struct vendor_tensor *t = which == CUDNN_VALUES ? &work->values : &work->tensors[which];
  assert(t->rank == RANK);
  *out = (struct vendor_laid){.type = t->type, .rank = RANK};
  int64_t stride = 1;
  for (int d = RANK - 1; d >= 0; d--) {
    out->extents[d] = t->extents[d], out->strides[d] = stride, out->order[d] = d;
    stride *= t->extents[d];
  }
}

bool cudnn_attends(const struct vendor_work *work) {
  const struct vendor_tensor *q = &work->tensors[VENDOR_SOURCE];
  const struct vendor_tensor *all[] = {q, &work->tensors[VENDOR_WEIGHTS], &work->values, &work->tensors[VENDOR_RESULT]};
  for (int i = 0; i < 4; i++)
    if (all[i]->rank != RANK || all[i]->type != q->type || vendor_count(all[i]) > INT32_MAX) return false;
  return tir_type_is_short(q->type);
}

/* ---- Tensors ---- */

struct shape {
  int64_t extents[RANK], strides[RANK];
};

static struct shape packed(int64_t batch, int64_t heads, int64_t rows, int64_t columns) {
  return (struct shape){{batch, heads, rows, columns}, {heads * rows * columns, rows * columns, columns, 1}};
}

static void *new_tensor(struct cudnn_graph *g, int64_t id, int type, const struct shape *s, bool in_memory, bool given,
                        const char *what) {
  int64_t alignment = in_memory ? 16 : 4;
  bool on_the_way = !in_memory && !given;
  void *t = cudnn_new(g, GRAPH_DESCRIPTOR_TENSOR, what);
  bool ok = t && CUDNN_SET(g, t, TENSOR_TYPE, DATA_TYPE, 1, &type) &&
            CUDNN_SET(g, t, TENSOR_EXTENTS, INT64, RANK, s->extents) &&
            CUDNN_SET(g, t, TENSOR_STRIDES, INT64, RANK, s->strides) && CUDNN_SET(g, t, TENSOR_ID, INT64, 1, &id) &&
            CUDNN_SET(g, t, TENSOR_ALIGNMENT, INT64, 1, &alignment) &&
            CUDNN_SET(g, t, TENSOR_VIRTUAL, BOOLEAN, 1, &on_the_way) &&
            CUDNN_SET(g, t, TENSOR_BY_VALUE, BOOLEAN, 1, &given) && cudnn_finalize(g, t, what);
  return ok ? t : NULL;
}

/* The tensor in a buffer; by_columns: as its rows were columns. */
static void *tensor_in(struct cudnn_graph *g, int buffer, bool by_columns, const char *what) {
  const struct vendor_laid *l = &g->laid[buffer];
  struct shape s;
  for (int d = 0; d < RANK; d++) {
    int from = by_columns && d >= ROWS ? ROWS + WIDTH - d : d;
    s.extents[d] = l->extents[from], s.strides[d] = l->strides[from];
  }
  return new_tensor(g, cudnn_id(buffer), cudnn_type_of(l->type), &s, true, false, what);
}

static void *tensor_on_the_way(struct cudnn_graph *g, int type, const struct shape *s, const char *what) {
  return new_tensor(g, CUDNN_FIRST_VIRTUAL + g->virtual_count++, type, s, false, false, what);
}

static void *constant(struct cudnn_graph *g, int which, float value, const char *what) {
  const struct shape one = packed(1, 1, 1, 1);
  assert(which == g->constant_count && which < CUDNN_MOST_CONSTANTS);
  g->constants[g->constant_count++] = value;
  return new_tensor(g, cudnn_constant_id(which), GRAPH_DATA_FLOAT, &one, false, true, what);
}

/* ---- Operations ---- */

/* Those made so far; failed: one was not. */
struct operations {
  struct cudnn_graph *g;
  void **list;
  int count;
  bool failed;
};

/* A descriptor of how, and the operation, which `fill` gives its tensors. */
static void *keep(struct operations *o, void *operation, bool ok, void *result, const char *what) {
  ok = ok && operation && cudnn_finalize(o->g, operation, what) && o->count < CUDNN_MOST_OPERATIONS;
  if (ok) o->list[o->count++] = operation;
  o->failed = o->failed || !ok;
  return ok ? result : NULL;
}

static void *product(struct operations *o, void *a, void *b, void *to, const char *what) {
  struct cudnn_graph *g = o->g;
  int compute = GRAPH_DATA_FLOAT;
  if (o->failed || !a || !b || !to) return o->failed = true, NULL;
  void *how = cudnn_new(g, GRAPH_DESCRIPTOR_MATMUL, what);
  bool ok = how && CUDNN_SET(g, how, MATMUL_COMPUTE, DATA_TYPE, 1, &compute) && cudnn_finalize(g, how, what);
  void *operation = ok ? cudnn_new(g, GRAPH_DESCRIPTOR_OPERATION_MATMUL, what) : NULL;
  ok = operation && CUDNN_SET(g, operation, MATMUL_A, DESCRIPTOR, 1, &a) &&
       CUDNN_SET(g, operation, MATMUL_B, DESCRIPTOR, 1, &b) && CUDNN_SET(g, operation, MATMUL_C, DESCRIPTOR, 1, &to) &&
       CUDNN_SET(g, operation, MATMUL_HOW, DESCRIPTOR, 1, &how);
  return keep(o, operation, ok, to, what);
}

/* y = f(x, b, t); b, t: NULL, there is none. axis: below 0, it has none. */
static void *pointwise(struct operations *o, int mode, int compute, int64_t axis, void *x, void *b, void *t, void *y,
                       const char *what) {
  struct cudnn_graph *g = o->g;
  if (o->failed || !x || !y) return o->failed = true, NULL;
  void *how = cudnn_new(g, GRAPH_DESCRIPTOR_POINTWISE, what);
  bool ok = how && CUDNN_SET(g, how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode) &&
            CUDNN_SET(g, how, POINTWISE_COMPUTE, DATA_TYPE, 1, &compute) &&
            (axis < 0 || CUDNN_SET(g, how, POINTWISE_AXIS, INT64, 1, &axis)) && cudnn_finalize(g, how, what);
  void *operation = ok ? cudnn_new(g, GRAPH_DESCRIPTOR_OPERATION_POINTWISE, what) : NULL;
  ok = operation && CUDNN_SET(g, operation, POINTWISE_HOW, DESCRIPTOR, 1, &how) &&
       CUDNN_SET(g, operation, POINTWISE_X, DESCRIPTOR, 1, &x) &&
       (!b || CUDNN_SET(g, operation, POINTWISE_B, DESCRIPTOR, 1, &b)) &&
       (!t || CUDNN_SET(g, operation, POINTWISE_T, DESCRIPTOR, 1, &t)) &&
       CUDNN_SET(g, operation, POINTWISE_Y, DESCRIPTOR, 1, &y);
  return keep(o, operation, ok, y, what);
}

static void *reduction(struct operations *o, int by, void *x, void *y, const char *what) {
  struct cudnn_graph *g = o->g;
  int compute = GRAPH_DATA_FLOAT;
  if (o->failed || !x || !y) return o->failed = true, NULL;
  void *how = cudnn_new(g, GRAPH_DESCRIPTOR_REDUCTION, what);
  bool ok = how && CUDNN_SET(g, how, REDUCTION_BY, REDUCTION, 1, &by) &&
            CUDNN_SET(g, how, REDUCTION_COMPUTE, DATA_TYPE, 1, &compute) && cudnn_finalize(g, how, what);
  void *operation = ok ? cudnn_new(g, GRAPH_DESCRIPTOR_OPERATION_REDUCTION, what) : NULL;
  ok = operation && CUDNN_SET(g, operation, REDUCTION_X, DESCRIPTOR, 1, &x) &&
       CUDNN_SET(g, operation, REDUCTION_Y, DESCRIPTOR, 1, &y) &&
       CUDNN_SET(g, operation, REDUCTION_HOW, DESCRIPTOR, 1, &how);
  return keep(o, operation, ok, y, what);
}

/* ---- Attention ---- */

/* Scores of keys behind their query are the least float. */
static void *mask(struct operations *o, void *scores, const struct shape *all) {
  struct cudnn_graph *g = o->g;
  const int wide = GRAPH_DATA_FLOAT, whole = GRAPH_DATA_INT32, truth = GRAPH_DATA_BOOLEAN;
  void *rows = pointwise(o, GRAPH_INDEX, whole, ROWS, scores, NULL, NULL,
                         tensor_on_the_way(g, whole, all, "rows' numbers"), "rows' numbers");
  void *columns = pointwise(o, GRAPH_INDEX, whole, WIDTH, scores, NULL, NULL,
                            tensor_on_the_way(g, whole, all, "columns' numbers"), "columns' numbers");
  void *sees = pointwise(o, GRAPH_AT_LEAST, truth, -1, rows, columns, NULL,
                         tensor_on_the_way(g, truth, all, "what rows see"), "what rows see");
  return pointwise(o, GRAPH_SELECT, wide, -1, scores, constant(g, HIDDEN, -FLT_MAX, "the least float"), sees,
                   tensor_on_the_way(g, wide, all, "masked scores"), "masked scores");
}

static void *softmax(struct operations *o, void *scores, const struct shape *all, int type) {
  struct cudnn_graph *g = o->g;
  const int wide = GRAPH_DATA_FLOAT;
  const struct shape rows = packed(all->extents[BATCH], all->extents[HEADS], all->extents[ROWS], 1);
  void *most = reduction(o, GRAPH_BY_MAXIMUM, scores, tensor_on_the_way(g, wide, &rows, "maxima"), "maxima");
  void *apart = pointwise(o, GRAPH_SUBTRACT, wide, -1, scores, most, NULL, tensor_on_the_way(g, wide, all, "distances"),
                          "distances");
  void *exponentials = pointwise(o, GRAPH_EXPONENTIAL, wide, -1, apart, NULL, NULL,
                                 tensor_on_the_way(g, wide, all, "exponentials"), "exponentials");
  void *sums = reduction(o, GRAPH_BY_SUM, exponentials, tensor_on_the_way(g, wide, &rows, "sums"), "sums");
  return pointwise(o, GRAPH_DIVIDE, wide, -1, exponentials, sums, NULL, tensor_on_the_way(g, type, all, "shares"),
                   "shares");
}

int cudnn_attention_operations(struct cudnn_graph *g, void **operations) {
  struct operations o = {.g = g, .list = operations};
  const int64_t *q = g->laid[VENDOR_SOURCE].extents, *k = g->laid[VENDOR_WEIGHTS].extents;
  const struct shape all = packed(q[BATCH], q[HEADS], q[ROWS], k[ROWS]);
  const int wide = GRAPH_DATA_FLOAT;
  g->constant_count = 0, g->virtual_count = 0;
  void *scores =
      product(&o, tensor_in(g, VENDOR_SOURCE, false, "the queries"), tensor_in(g, VENDOR_WEIGHTS, true, "the keys"),
              tensor_on_the_way(g, wide, &all, "scores"), "scores");
  scores = pointwise(&o, GRAPH_MULTIPLY, wide, -1, scores, constant(g, SCALE, (float)g->work->scale, "the scale"), NULL,
                     tensor_on_the_way(g, wide, &all, "scaled scores"), "scaled scores");
  if (g->work->causal) scores = mask(&o, scores, &all);
  void *shares = softmax(&o, scores, &all, cudnn_type_of(g->laid[VENDOR_RESULT].type));
  product(&o, shares, tensor_in(g, CUDNN_VALUES, false, "the values"), tensor_in(g, VENDOR_RESULT, false, "the result"),
          "the result");
  return o.failed ? 0 : o.count;
}

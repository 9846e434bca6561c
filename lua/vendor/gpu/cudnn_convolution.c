/* Operation graphs of cuDNN's: one convolution, forward or by its input's gradient. */
#include "cudnn_graph.h"

#include <assert.h>

static void *make_tensor(struct cudnn_graph *g, int which) {
  static const char *const names[VENDOR_TENSORS] = {"the source", "the filter", "the result"};
  const struct vendor_laid *l = &g->laid[which];
  int64_t alignment = 16, id = cudnn_id(which);
  int type = cudnn_type_of(l->type);
  void *t = cudnn_new(g, GRAPH_DESCRIPTOR_TENSOR, names[which]);
  bool ok = t && CUDNN_SET(g, t, TENSOR_TYPE, DATA_TYPE, 1, &type) &&
            CUDNN_SET(g, t, TENSOR_EXTENTS, INT64, l->rank, l->extents) &&
            CUDNN_SET(g, t, TENSOR_STRIDES, INT64, l->rank, l->strides) && CUDNN_SET(g, t, TENSOR_ID, INT64, 1, &id) &&
            CUDNN_SET(g, t, TENSOR_ALIGNMENT, INT64, 1, &alignment) && cudnn_finalize(g, t, names[which]);
  return ok ? t : NULL;
}

/* Where there is one dimension of space, one of extent 1 comes before it. */
static void widen(const int64_t *from, int spatial, int64_t alone, int64_t out[VENDOR_MOST_SPATIAL]) {
  int added = spatial == 1;
  assert(spatial >= 1 && spatial + added <= VENDOR_MOST_SPATIAL);
  out[0] = alone;
  for (int d = 0; d < spatial; d++) out[d + added] = from[d];
}

static void *make_convolution(struct cudnn_graph *g) {
  const struct vendor_work *w = g->work;
  int spatial = w->tensors[VENDOR_SOURCE].rank - 2, compute = GRAPH_DATA_FLOAT, mode = GRAPH_CROSS_CORRELATION;
  int64_t before[VENDOR_MOST_SPATIAL], stride[VENDOR_MOST_SPATIAL], dilation[VENDOR_MOST_SPATIAL];
  int64_t count = spatial == 1 ? 2 : spatial;
  widen(w->before, spatial, 0, before);
  widen(w->stride, spatial, 1, stride);
  widen(w->dilation, spatial, 1, dilation);
  void *c = cudnn_new(g, GRAPH_DESCRIPTOR_CONVOLUTION, "the convolution");
  bool ok = c && CUDNN_SET(g, c, CONVOLUTION_COMPUTE, DATA_TYPE, 1, &compute) &&
            CUDNN_SET(g, c, CONVOLUTION_MODE, CONVOLUTION_MODE, 1, &mode) &&
            CUDNN_SET(g, c, CONVOLUTION_SPATIAL, INT64, 1, &count) &&
            CUDNN_SET(g, c, CONVOLUTION_DILATIONS, INT64, count, dilation) &&
            CUDNN_SET(g, c, CONVOLUTION_STRIDES, INT64, count, stride) &&
            CUDNN_SET(g, c, CONVOLUTION_BEFORE, INT64, count, before) &&
            CUDNN_SET(g, c, CONVOLUTION_AFTER, INT64, count, before) && cudnn_finalize(g, c, "the convolution");
  return ok ? c : NULL;
}

static void *make_operation(struct cudnn_graph *g) {
  const float one = 1, zero = 0;
  void *x = make_tensor(g, VENDOR_SOURCE), *w = x ? make_tensor(g, VENDOR_WEIGHTS) : NULL;
  void *y = w ? make_tensor(g, VENDOR_RESULT) : NULL, *c = y ? make_convolution(g) : NULL;
  bool back = g->work->op == VENDOR_TRANSPOSED, ok = false;
  void *o = c ? cudnn_new(g, back ? GRAPH_DESCRIPTOR_BACKWARD : GRAPH_DESCRIPTOR_FORWARD, "the operation") : NULL;
  if (!o) return NULL;
  if (back)
    ok = CUDNN_SET(g, o, BACKWARD_DY, DESCRIPTOR, 1, &x) && CUDNN_SET(g, o, BACKWARD_W, DESCRIPTOR, 1, &w) &&
         CUDNN_SET(g, o, BACKWARD_DX, DESCRIPTOR, 1, &y) && CUDNN_SET(g, o, BACKWARD_CONVOLUTION, DESCRIPTOR, 1, &c) &&
         CUDNN_SET(g, o, BACKWARD_ALPHA, FLOAT, 1, &one) && CUDNN_SET(g, o, BACKWARD_BETA, FLOAT, 1, &zero);
  else
    ok = CUDNN_SET(g, o, FORWARD_X, DESCRIPTOR, 1, &x) && CUDNN_SET(g, o, FORWARD_W, DESCRIPTOR, 1, &w) &&
         CUDNN_SET(g, o, FORWARD_Y, DESCRIPTOR, 1, &y) && CUDNN_SET(g, o, FORWARD_CONVOLUTION, DESCRIPTOR, 1, &c) &&
         CUDNN_SET(g, o, FORWARD_ALPHA, FLOAT, 1, &one) && CUDNN_SET(g, o, FORWARD_BETA, FLOAT, 1, &zero);
  return ok && cudnn_finalize(g, o, "the operation") ? o : NULL;
}

int cudnn_convolution_operations(struct cudnn_graph *g, void **operations) {
  return (operations[0] = make_operation(g)) ? 1 : 0;
}

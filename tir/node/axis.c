#include "tir/tir.h"

#include <string.h>

static const struct {
  const char *name;
  int64_t limit;
} axes[TIR_AXIS_COUNT] = {
    [TIR_BLOCK_X] = {"blockIdx.x", INT32_MAX},
    [TIR_BLOCK_Y] = {"blockIdx.y", TIR_GRID_SIDE},
    [TIR_BLOCK_Z] = {"blockIdx.z", TIR_GRID_SIDE},
    [TIR_THREAD_X] = {"threadIdx.x", TIR_BLOCK_THREADS},
    [TIR_THREAD_Y] = {"threadIdx.y", TIR_BLOCK_THREADS},
    [TIR_THREAD_Z] = {"threadIdx.z", TIR_BLOCK_THREADS_Z},
    [TIR_VTHREAD_X] = {"vthread.x", INT64_MAX},
    [TIR_VTHREAD_Y] = {"vthread.y", INT64_MAX},
    [TIR_VTHREAD_Z] = {"vthread.z", INT64_MAX},
    [TIR_VTHREAD] = {"vthread", INT64_MAX},
    [TIR_CLUSTER_X] = {"clusterCtaIdx.x", TIR_CLUSTER_MOST},
};

enum tir_axis tir_axis_named(const char *name) {
  enum tir_axis axis = 0;
  while (axis < TIR_AXIS_COUNT && strcmp(axes[axis].name, name) != 0) axis++;
  return axis;
}

enum tir_axis tir_loop_axis(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  bool bound = n->kind == TIR_LOOP && n->loop_kind == TIR_THREAD_BINDING;
  return bound ? tir_axis_named(tir_text(ir, n->loop.thread)) : TIR_AXIS_COUNT;
}

const char *tir_axis_name(enum tir_axis axis) {
  assert(axis < TIR_AXIS_COUNT);
  return axes[axis].name;
}

int64_t tir_axis_limit(enum tir_axis axis) {
  assert(axis < TIR_AXIS_COUNT);
  return axes[axis].limit;
}

/* Descriptors of the graph API of the tests' cuDNN. */
#ifndef FAKE_CUDNN_GRAPH_H
#define FAKE_CUDNN_GRAPH_H

#include "cudnn.h"

#include <stdint.h>

enum {
  POINTWISE,
  CONVOLUTION,
  ENGINE,
  CONFIGURATION,
  HEURISTICS,
  PLAN,
  KNOB = 7,
  FORWARD = 10,
  BACKWARD = 12,
  OPERATION_POINTWISE,
  GRAPH = 15,
  PACK,
  TENSOR,
  MATMUL,
  OPERATION_MATMUL,
  REDUCTION = 21,
  OPERATION_REDUCTION
};
enum {
  HANDLE,
  DATA_TYPE,
  BOOLEAN,
  INT64,
  FLOAT,
  POINTER = 6,
  MODE,
  HEURISTIC,
  KNOB_TYPE,
  NOTE = 11,
  POINTWISE_MODE = 14,
  DESCRIPTOR,
  REDUCTION_BY = 18
};
enum { MOST_ATTRIBUTES = 12, MOST_BYTES = 128, MOST_OPERATIONS = 16 };

struct attribute {
  int name, type;
  int64_t count;
  char bytes[MOST_BYTES];
};
struct descriptor {
  int type, final, count;
  struct attribute attributes[MOST_ATTRIBUTES];
  int engine, has_knobs;    /* of an engine and its configuration */
  struct descriptor *graph; /* that they compute */
};

int fake_refuse(int status, const char *why);
const struct attribute *fake_attribute(const struct descriptor *d, int name); /* NULL: it has none */
int fake_number(const struct descriptor *d, int name);
void *fake_pointer(const struct descriptor *d, int name, int which);
int fake_integers(const struct descriptor *d, int name, int *out); /* how many */
void *fake_address(const struct descriptor *pack, int id);         /* NULL: the pack names none */

/* Graphs of several operations (cudnn_composed.c): their status. */
int fake_composed_check(const struct descriptor *graph);
int fake_composed_run(const struct descriptor *graph, const struct descriptor *pack, double times);

#endif

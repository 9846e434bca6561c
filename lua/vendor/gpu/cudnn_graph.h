/* Operation graphs of cuDNN's graph API, made and run: what the files share that say what a graph computes. Internal to
 * lua. */
#ifndef MSCHED_LUA_VENDOR_CUDNN_GRAPH_H
#define MSCHED_LUA_VENDOR_CUDNN_GRAPH_H

#include "cudnn.h"
#include "layout.h"
#include "race.h"

#define GRAPH_TYPE(name, type) typedef type name;
#include "cudnn_graph.def"
enum {
#define GRAPH_DESCRIPTOR(name, number, original) GRAPH_DESCRIPTOR_##name = number,
#define GRAPH_NUMBER(name, number, original)     GRAPH_##name = number,
#include "cudnn_graph.def"
};

struct cudnn_graphs {
#define GRAPH_FUNCTION(field, symbol, parameters) int(*field) parameters;
#include "cudnn_graph.def"
  int (*set_stream)(void *handle, void *stream);
  const char *(*name)(int status);
  void (*last_error)(char *text, size_t size); /* NULL: it has none */
  void *handle;
};

/* Buffers: the work's tensors, the values of attention, and memory to work in. */
enum {
  CUDNN_VALUES = VENDOR_TENSORS,
  CUDNN_WORKSPACE,
  CUDNN_BUFFERS,
  CUDNN_MOST_CONSTANTS = 2,
  CUDNN_MOST_OPERATIONS = 16,
  CUDNN_MOST_DESCRIPTORS = 600
};
/* Tensors have numbers: of those in buffers, behind them of constants, then of what is computed on the way. */
static inline int64_t cudnn_id(int buffer) { return buffer + 1; }
static inline int64_t cudnn_constant_id(int constant) { return CUDNN_BUFFERS + 1 + constant; }
enum { CUDNN_FIRST_VIRTUAL = CUDNN_BUFFERS + CUDNN_MOST_CONSTANTS + 1 };

/* An engine with its settings, that makes a plan. */
struct cudnn_plan {
  struct cudnn_graph *of;
  void *descriptor, *pack;     /* the pack: NULL, it was not run yet */
  void *packed[CUDNN_BUFFERS]; /* what the pack names */
  int64_t workspace;
  struct jit_routine *routine;
  char name[120];
};

/* What is computed, laid out in one way, with one type of the result. */
struct cudnn_graph {
  const struct cudnn_graphs *api;
  const struct vendor_work *work;
  int layout;
  struct vendor_laid laid[CUDNN_VALUES + 1];
  float constants[CUDNN_MOST_CONSTANTS];
  int constant_count;
  int64_t virtual_count;
  struct tir_arg buffers[CUDNN_BUFFERS];
  void *descriptors[CUDNN_MOST_DESCRIPTORS]; /* all of them, each of which others may need as long as it is used */
  int descriptor_count;
  void *operations;
  struct cudnn_plan plans[VENDOR_MOST_WAYS];
  int plan_count, best;
  struct jit_routine *routine; /* whose buffers those of the plans are */
  char why[300];               /* what failed last */
};

/* Descriptors are the graph's, and freed with it. NULL, or false: refused, and the graph's `why` says it. */
void *cudnn_new(struct cudnn_graph *g, int type, const char *what);
bool cudnn_set(struct cudnn_graph *g, void *descriptor, int attribute, int type, int64_t count, const void *elements,
               const char *what);
bool cudnn_finalize(struct cudnn_graph *g, void *descriptor, const char *what);
/* The attribute by its name in cudnn_graph.def, which is said where it is refused. */
#define CUDNN_SET(g, descriptor, attribute, type, count, elements)                                                     \
  cudnn_set(g, descriptor, GRAPH_##attribute, GRAPH_OF_##type, count, elements, #attribute)
int cudnn_type_of(tir_type type); /* cudnnDataType_t */

/* The operations of a graph, in order, finalized; how many, 0: refused. */
int cudnn_convolution_operations(struct cudnn_graph *g, void **operations);
int cudnn_attention_operations(struct cudnn_graph *g, void **operations);
/* How a tensor of attention lies, which of the work's, or CUDNN_VALUES. */
void cudnn_lay_attention(const struct vendor_work *work, int which, struct vendor_laid *out);

#endif

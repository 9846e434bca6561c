/* Attention by oneDNN's graph interface, of its third: two products and a softmax that it computes as one partition.
 * Source: oneAPI Deep Neural Network Library, Developer Guide, "Graph API", "Scaled Dot-Product Attention (SDPA)". */
#include "vendor.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Values of its enumerations. */
enum { CPU = 1, STREAM_FLAGS = 1, FUSION = 1 };
enum { BF16 = 2, F32 = 3 };
enum { ADD = 2, MATMUL = 39, MULTIPLY = 46, SOFTMAX = 64 };
enum { AXIS = 0x30, TRANSPOSE_B = 0x66 };
enum { ANY_LAYOUT = 1, STRIDED = 2, VARIABLE = 1 };

/* Of bfloat16 below 1. */
#define BFLOAT_SPACING 0x1p-8

/* dnnl_graph_logical_tensor_t */
struct tensor {
  size_t id;
  int rank;
  int64_t extents[12];
  int type, property, layout;
  int64_t strides[12];
};

struct graph_api {
  void *engine, *stream;
  int (*create_engine)(void **engine, int kind, size_t index);
  int (*create_stream)(void **stream, void *engine, unsigned flags);
  int (*wait)(void *stream);
  int (*create_graph)(void **graph, int kind);
  int (*destroy_graph)(void *graph);
  int (*add_op)(void *graph, void *op);
  int (*finalize)(void *graph);
  int (*filter)(void *graph, int policy);
  int (*count_partitions)(const void *graph, size_t *count);
  int (*get_partitions)(void *graph, size_t count, void **partitions);
  int (*create_op)(void **op, size_t id, int kind, const char *name);
  int (*destroy_op)(void *op);
  int (*add_input)(void *op, const struct tensor *tensor);
  int (*add_output)(void *op, const struct tensor *tensor);
  int (*set_bool)(void *op, int attribute, const uint8_t *value, size_t count);
  int (*set_int)(void *op, int attribute, const int64_t *value, size_t count);
  int (*count_inputs)(const void *partition, size_t *count);
  int (*get_inputs)(const void *partition, size_t count, struct tensor *inputs);
  int (*destroy_partition)(void *partition);
  int (*create_compiled)(void **compiled, void *partition);
  int (*compile)(void *partition, void *compiled, size_t inputs, const struct tensor **in, size_t outputs,
                 const struct tensor **out, void *engine);
  int (*execute)(const void *compiled, void *stream, size_t inputs, const void *const *in, size_t outputs,
                 const void *const *out);
  int (*destroy_compiled)(void *compiled);
  int (*create_tensor)(void **tensor, const struct tensor *described, void *engine, void *memory);
  int (*destroy_tensor)(void *tensor);
};

static const struct {
  size_t at;
  const char *name;
} functions[] = {
#define FUNCTION(field, name)                                                                                          \
  { offsetof(struct graph_api, field), "dnnl_" name }
    FUNCTION(create_engine, "engine_create"),
    FUNCTION(create_stream, "stream_create"),
    FUNCTION(wait, "stream_wait"),
    FUNCTION(create_graph, "graph_graph_create"),
    FUNCTION(destroy_graph, "graph_graph_destroy"),
    FUNCTION(add_op, "graph_add_op"),
    FUNCTION(finalize, "graph_graph_finalize"),
    FUNCTION(filter, "graph_graph_filter"),
    FUNCTION(count_partitions, "graph_graph_get_partition_num"),
    FUNCTION(get_partitions, "graph_graph_get_partitions"),
    FUNCTION(create_op, "graph_op_create"),
    FUNCTION(destroy_op, "graph_op_destroy"),
    FUNCTION(add_input, "graph_op_add_input"),
    FUNCTION(add_output, "graph_op_add_output"),
    FUNCTION(set_bool, "graph_op_set_attr_bool"),
    FUNCTION(set_int, "graph_op_set_attr_s64"),
    FUNCTION(count_inputs, "graph_partition_get_input_ports_num"),
    FUNCTION(get_inputs, "graph_partition_get_input_ports"),
    FUNCTION(destroy_partition, "graph_partition_destroy"),
    FUNCTION(create_compiled, "graph_compiled_partition_create"),
    FUNCTION(compile, "graph_partition_compile"),
    FUNCTION(execute, "graph_compiled_partition_execute"),
    FUNCTION(destroy_compiled, "graph_compiled_partition_destroy"),
    FUNCTION(create_tensor, "graph_tensor_create"),
    FUNCTION(destroy_tensor, "graph_tensor_destroy"),
};

static void *start(void *library, int threads, ms_error *err) {
  void (*set_threads)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
  struct graph_api *g = calloc(1, sizeof *g);
  bool there = true;
  if (!g) abort();
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(library, functions[i].name);
    there = there && function;
    memcpy((char *)g + functions[i].at, &function, sizeof function);
  }
  if (set_threads) set_threads(threads);
  if (there && !g->create_engine(&g->engine, CPU, 0) && !g->create_stream(&g->stream, g->engine, STREAM_FLAGS))
    return g;
  free(g);
  return ms_fail(err, MS_NOT_LAUNCHED, "it lacks the graph interface, or does not start"), NULL;
}

/* ---- The graph: result = softmax(queries keys^T x scale + mask) values ---- */

enum { QUERIES, KEYS, PRODUCTS, SCALE, SCALED, MASK, MASKED, SHARES, VALUES, RESULT, TENSORS };

struct call {
  const struct graph_api *api;
  struct tensor tensors[TENSORS];
  void *memory[TENSORS]; /* of what goes in and comes out */
  void *own[TENSORS];    /* that is freed with the call */
  void *compiled, *handles[TENSORS], *in[TENSORS], *out;
  size_t inputs;
};

static void describe_tensor(struct call *c, int which, int type, const int64_t extents[4], const int64_t *strides) {
  struct tensor *t = &c->tensors[which];
  *t = (struct tensor){.id = (size_t)which, .rank = 4, .type = type, .property = VARIABLE, .layout = STRIDED};
  int64_t stride = 1;
  for (int d = 3; d >= 0; d--) {
    t->extents[d] = extents[d];
    t->strides[d] = strides ? strides[d] : stride;
    stride *= extents[d];
  }
}

static void give(struct call *c, int which, const struct vendor_tensor *t, int type) {
  describe_tensor(c, which, type, t->extents, t->strides);
  c->memory[which] = t->data;
}

static void *own_memory(struct call *c, int which, size_t bytes) {
  c->own[which] = c->memory[which] = aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (!c->own[which]) abort();
  return c->own[which];
}

static uint16_t as_bfloat(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void put(void *memory, int type, size_t i, float x) {
  if (type == F32)
    ((float *)memory)[i] = x;
  else
    ((uint16_t *)memory)[i] = as_bfloat(x);
}

static void describe_tensors(struct call *c, const struct vendor_work *w) {
  const struct vendor_tensor *q = &w->tensors[VENDOR_SOURCE], *k = &w->tensors[VENDOR_WEIGHTS];
  int type = q->type == TIR_T_F32 ? F32 : BF16;
  size_t bytes = type == F32 ? 4 : 2;
  int64_t scores[4] = {q->extents[0], q->extents[1], q->extents[2], k->extents[2]}, one[4] = {1, 1, 1, 1},
          mask[4] = {1, 1, scores[2], scores[3]};
  give(c, QUERIES, q, type);
  give(c, KEYS, k, type);
  give(c, VALUES, &w->values, type);
  give(c, RESULT, &w->tensors[VENDOR_RESULT], type);
  for (int t = PRODUCTS; t <= SHARES; t++) describe_tensor(c, t, type, scores, NULL);
  describe_tensor(c, SCALE, type, one, NULL);
  put(own_memory(c, SCALE, bytes), type, 0, (float)w->scale);
  if (!w->causal) return;
  describe_tensor(c, MASK, type, mask, NULL);
  void *hidden = own_memory(c, MASK, (size_t)(scores[2] * scores[3]) * bytes);
  for (int64_t i = 0; i < scores[2]; i++)
    for (int64_t j = 0; j < scores[3]; j++)
      put(hidden, type, (size_t)(i * scores[3] + j), j <= i ? 0 : type == F32 ? -3.4028235e38F : -3.3895314e38F);
}

static bool add(const struct call *c, void *graph, int kind, int first, int second, int result) {
  const struct graph_api *g = c->api;
  static const uint8_t yes = 1;
  static const int64_t last = -1;
  void *op = NULL;
  if (g->create_op(&op, (size_t)result, kind, "op")) return false;
  bool ok = !g->add_input(op, &c->tensors[first]) && (second < 0 || !g->add_input(op, &c->tensors[second])) &&
            !g->add_output(op, &c->tensors[result]) && (second != KEYS || !g->set_bool(op, TRANSPOSE_B, &yes, 1)) &&
            (kind != SOFTMAX || !g->set_int(op, AXIS, &last, 1)) && !g->add_op(graph, op);
  g->destroy_op(op);
  return ok;
}

static bool add_all(const struct call *c, void *graph, bool causal) {
  return add(c, graph, MATMUL, QUERIES, KEYS, PRODUCTS) && add(c, graph, MULTIPLY, PRODUCTS, SCALE, SCALED) &&
         (!causal || add(c, graph, ADD, SCALED, MASK, MASKED)) &&
         add(c, graph, SOFTMAX, causal ? MASKED : SCALED, -1, SHARES) && add(c, graph, MATMUL, SHARES, VALUES, RESULT);
}

/* Compiles the one partition that has it all. */
static bool compile(struct call *c, void *partition) {
  const struct graph_api *g = c->api;
  struct tensor inputs[TENSORS];
  const struct tensor *in[TENSORS], *out = &c->tensors[RESULT];
  if (g->count_inputs(partition, &c->inputs) || c->inputs > TENSORS || g->get_inputs(partition, c->inputs, inputs))
    return false;
  for (size_t i = 0; i < c->inputs; i++) {
    assert(inputs[i].id < TENSORS && c->memory[inputs[i].id]);
    in[i] = &c->tensors[inputs[i].id];
  }
  if (g->create_compiled(&c->compiled, partition) ||
      g->compile(partition, c->compiled, c->inputs, in, 1, &out, g->engine))
    return false;
  for (size_t i = 0; i < c->inputs; i++)
    if (g->create_tensor(&c->in[i], in[i], g->engine, c->memory[in[i]->id])) return false;
  return !g->create_tensor(&c->out, out, g->engine, c->memory[RESULT]);
}

static bool build(struct call *c, bool causal) {
  const struct graph_api *g = c->api;
  void *graph = NULL, *partition = NULL;
  size_t count = 0;
  bool ok = !g->create_graph(&graph, CPU) && add_all(c, graph, causal) && !g->finalize(graph) &&
            !g->filter(graph, FUSION) && !g->count_partitions(graph, &count) && count == 1 &&
            !g->get_partitions(graph, 1, &partition) && compile(c, partition);
  if (partition) g->destroy_partition(partition);
  if (graph) g->destroy_graph(graph);
  return ok;
}

/* ---- Calls ---- */

static void run(void *data) {
  const struct call *c = data;
  const struct graph_api *g = c->api;
  bool done =
      !g->execute(c->compiled, g->stream, c->inputs, (const void *const *)c->in, 1, (const void *const *)&c->out) &&
      !g->wait(g->stream);
  assert(done);
  (void)done;
}

static void release(void *data) {
  struct call *c = data;
  for (int i = 0; i < TENSORS; i++) {
    if (c->in[i]) c->api->destroy_tensor(c->in[i]);
    free(c->own[i]);
  }
  if (c->out) c->api->destroy_tensor(c->out);
  if (c->compiled) c->api->destroy_compiled(c->compiled);
  free(c);
}

static bool prepare(void *started, const struct vendor_work *work, struct vendor_call *out) {
  if (work->op != VENDOR_ATTENTION) return false;
  for (int i = 0; i < VENDOR_TENSORS; i++)
    if (work->tensors[i].rank != 4 || work->tensors[i].type != work->values.type) return false;
  if (work->values.type != TIR_T_F32 && tir_type_code(work->values.type) != TIR_BFLOAT) return false;
  struct call *c = calloc(1, sizeof *c);
  if (!c) abort();
  c->api = started;
  describe_tensors(c, work);
  if (!build(c, work->causal)) return release(c), false;
  *out = (struct vendor_call){run, NULL, release, c};
  if (c->tensors[RESULT].type == BF16) out->rounding = BFLOAT_SPACING; /* shares are rounded, too */
  return true;
}

const struct vendor vendor_onednn_graph = {"oneDNN graph",  "libdnnl.so.3", start,
                                           onednn_describe, prepare,        .short_floats = true};

/* cuDNN's graph API without a GPU: graphs of one convolution, forward or by its input's gradient, and of products,
 * pointwise operations and reductions (cudnn_composed.c), as attention has them. It refuses what cuDNN
 * refuses: attributes of another descriptor, type or count, descriptors that are not finalized, or that lack one,
 * tensors whose extents do not belong together, and here asymmetric padding, float32 results of short floats by all
 * engines but one, and engines that are asked for with other settings than the heuristics named. Engines, by number:
 *   7  the fastest, with settings and memory to work in; mode INSTANT names it again
 *   3  half as fast again
 *   9  four times as slow; of the fallbacks; the only one that gives float32 of short floats
 *   0  on tensor cores: rounds float32, in half the time
 *   1  converts what goes in, in half the time
 *   4  makes no plan
 * Channels first take one time more each. FAKE_CUDNN besides what cudnn.c says: `nograph`, it takes no graph;
 * `crashes`, a plan ends the process. */
#include "cudnn_graph.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKSPACE = 4096 };

static char last_error[200];
void cudnnGetLastErrorString(char *text, size_t size) { snprintf(text, size, "%s", last_error); }
int fake_refuse(int status, const char *why) {
  snprintf(last_error, sizeof last_error, "%s", why);
  return status;
}

/* ---- Descriptors ---- */

/* What a descriptor is given: attributes, types, the most elements; which it may lack. */
static const struct {
  int of, name, type, most, optional;
} known[] = {
    {CONVOLUTION, 100, DATA_TYPE, 1},
    {CONVOLUTION, 101, MODE, 1},
    {CONVOLUTION, 102, INT64, 3},
    {CONVOLUTION, 103, INT64, 3},
    {CONVOLUTION, 104, INT64, 3},
    {CONVOLUTION, 105, INT64, 3},
    {CONVOLUTION, 106, INT64, 1},
    {HEURISTICS, 200, HEURISTIC, 1},
    {HEURISTICS, 201, DESCRIPTOR, 1},
    {PLAN, 400, HANDLE, 1},
    {PLAN, 401, DESCRIPTOR, 1},
    {FORWARD, 700, FLOAT, 1},
    {FORWARD, 701, FLOAT, 1},
    {FORWARD, 702, DESCRIPTOR, 1},
    {FORWARD, 703, DESCRIPTOR, 1},
    {FORWARD, 704, DESCRIPTOR, 1},
    {FORWARD, 705, DESCRIPTOR, 1},
    {BACKWARD, 706, FLOAT, 1},
    {BACKWARD, 707, FLOAT, 1},
    {BACKWARD, 708, DESCRIPTOR, 1},
    {BACKWARD, 709, DESCRIPTOR, 1},
    {BACKWARD, 710, DESCRIPTOR, 1},
    {BACKWARD, 711, DESCRIPTOR, 1},
    {GRAPH, 800, HANDLE, 1},
    {GRAPH, 801, DESCRIPTOR, MOST_OPERATIONS},
    {TENSOR, 900, INT64, 1},
    {TENSOR, 901, DATA_TYPE, 1},
    {TENSOR, 902, INT64, MOST},
    {TENSOR, 903, INT64, MOST},
    {TENSOR, 906, INT64, 1},
    {PACK, 1000, INT64, 6},
    {PACK, 1001, POINTER, 6},
    {PACK, 1003, POINTER, 1},
    {TENSOR, 907, BOOLEAN, 1, 1},
    {TENSOR, 908, BOOLEAN, 1, 1},
    {POINTWISE, 0, POINTWISE_MODE, 1},
    {POINTWISE, 1, DATA_TYPE, 1},
    {POINTWISE, 9, INT64, 1, 1},
    {OPERATION_POINTWISE, 750, DESCRIPTOR, 1},
    {OPERATION_POINTWISE, 751, DESCRIPTOR, 1},
    {OPERATION_POINTWISE, 752, DESCRIPTOR, 1, 1},
    {OPERATION_POINTWISE, 753, DESCRIPTOR, 1},
    {OPERATION_POINTWISE, 758, DESCRIPTOR, 1, 1},
    {MATMUL, 1500, DATA_TYPE, 1},
    {OPERATION_MATMUL, 1520, DESCRIPTOR, 1},
    {OPERATION_MATMUL, 1521, DESCRIPTOR, 1},
    {OPERATION_MATMUL, 1522, DESCRIPTOR, 1},
    {OPERATION_MATMUL, 1523, DESCRIPTOR, 1},
    {REDUCTION, 1600, REDUCTION_BY, 1},
    {REDUCTION, 1601, DATA_TYPE, 1},
    {OPERATION_REDUCTION, 1610, DESCRIPTOR, 1},
    {OPERATION_REDUCTION, 1611, DESCRIPTOR, 1},
    {OPERATION_REDUCTION, 1612, DESCRIPTOR, 1},
};
static size_t size_of(int type) {
  if (type == BOOLEAN) return 1;
  bool words = type == DATA_TYPE || type == FLOAT || type == MODE || type == HEURISTIC || type == POINTWISE_MODE ||
               type == REDUCTION_BY;
  return words ? 4 : 8;
}

int cudnnBackendCreateDescriptor(int type, void **out) {
  struct descriptor *d = calloc(1, sizeof *d);
  if (!d) abort();
  d->type = type;
  *out = d;
  return SUCCESS;
}
int cudnnBackendDestroyDescriptor(void *descriptor) {
  free(descriptor);
  return SUCCESS;
}

int cudnnBackendSetAttribute(void *descriptor, int name, int type, int64_t count, const void *elements) {
  struct descriptor *d = descriptor;
  if (d->final || d->count == MOST_ATTRIBUTES) return fake_refuse(BAD_PARAM, "it is finalized");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (known[i].of != d->type || known[i].name != name) continue;
    if (known[i].type != type || count < 1 || count > known[i].most) break;
    struct attribute *a = &d->attributes[d->count++];
    *a = (struct attribute){.name = name, .type = type, .count = count};
    memcpy(a->bytes, elements, (size_t)count * size_of(type));
    return SUCCESS;
  }
  return fake_refuse(BAD_PARAM, "it has no such attribute");
}

const struct attribute *fake_attribute(const struct descriptor *d, int name) {
  for (int i = 0; i < d->count; i++)
    if (d->attributes[i].name == name) return &d->attributes[i];
  return NULL;
}
static int has_all(const struct descriptor *d) {
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].of == d->type && known[i].name != 400 && !known[i].optional && !fake_attribute(d, known[i].name))
      return 0;
  return 1;
}
int fake_number(const struct descriptor *d, int name) {
  int value;
  memcpy(&value, fake_attribute(d, name)->bytes, sizeof value);
  return value;
}
void *fake_pointer(const struct descriptor *d, int name, int which) {
  void *value;
  memcpy(&value, fake_attribute(d, name)->bytes + 8 * (size_t)which, sizeof value);
  return value;
}
/* Integers; how many. */
int fake_integers(const struct descriptor *d, int name, int *out) {
  const struct attribute *a = fake_attribute(d, name);
  for (int i = 0; i < a->count; i++) {
    int64_t value;
    memcpy(&value, a->bytes + 8 * (size_t)i, sizeof value);
    out[i] = (int)value;
  }
  return (int)a->count;
}

/* ---- Convolutions ---- */

/* An operation as cudnn.c's has it: what is slid over, the filter, where it stands. */
struct operation {
  int backward;
  struct tensor tensors[3];
  int ids[3];
  struct convolution convolution;
};

static void read_tensor(const struct descriptor *d, struct tensor *out, int *id) {
  out->type = fake_number(d, 901);
  out->rank = fake_integers(d, 902, out->extents);
  fake_integers(d, 903, out->strides);
  fake_integers(d, 906, id);
  out->layout = out->strides[1] == 1 && out->extents[1] > 1;
}

static int read_operation(const struct descriptor *graph, struct operation *out) {
  const struct descriptor *o = fake_pointer(graph, 801, 0);
  int base = o->type == FORWARD ? 702 : 708, after[MOST];
  const struct descriptor *c = fake_pointer(o, base, 0);
  struct convolution *to = &out->convolution;
  *out = (struct operation){.backward = o->type == BACKWARD};
  read_tensor(fake_pointer(o, base + 2, 0), &out->tensors[0], &out->ids[0]); /* x, or dx */
  read_tensor(fake_pointer(o, base + 1, 0), &out->tensors[1], &out->ids[1]);
  read_tensor(fake_pointer(o, base + 3, 0), &out->tensors[2], &out->ids[2]);
  fake_integers(c, 106, &to->rank);
  if (fake_integers(c, 102, to->dilation) != to->rank || fake_integers(c, 103, to->stride) != to->rank ||
      fake_integers(c, 104, after) != to->rank || fake_integers(c, 105, to->before) != to->rank)
    return 0;
  to->groups = out->tensors[1].extents[1] ? out->tensors[0].extents[1] / out->tensors[1].extents[1] : 1;
  return !memcmp(after, to->before, sizeof *after * (size_t)to->rank) && fake_number(c, 101) == 1 &&
         fake_number(c, 100) == 0;
}

static int check_tensor(const struct descriptor *d) {
  struct tensor t;
  int id, alignment[1];
  read_tensor(d, &t, &id);
  fake_integers(d, 900, alignment);
  const struct attribute *on_the_way = fake_attribute(d, 907);
  bool counts = on_the_way && on_the_way->bytes[0] && (t.type == 4 || t.type == 11); /* int32, boolean */
  if (!fake_cudnn_size(t.type) && !counts) return 0;
  if (t.rank < 4 || fake_attribute(d, 903)->count != t.rank || alignment[0] % 4) return 0;
  for (int i = 0; i < t.rank; i++)
    if (t.extents[i] < 1 || t.strides[i] < 1) return 0;
  return 1;
}

/* No convolution. */
static int is_composed(const struct descriptor *graph) {
  int type = ((const struct descriptor *)fake_pointer(graph, 801, 0))->type;
  return type != FORWARD && type != BACKWARD;
}

static int check_graph(const struct descriptor *d) {
  struct operation o;
  if (fake_cudnn_is_told("nograph")) return fake_refuse(NOT_THIS_GRAPH, "no engine takes this graph");
  if (is_composed(d)) return fake_composed_check(d);
  if (!read_operation(d, &o)) return fake_refuse(BAD_PARAM, "the convolution's lists differ");
  if (o.tensors[1].type != o.tensors[o.backward ? 2 : 0].type)
    return fake_refuse(BAD_PARAM, "the filter's type is another");
  return fake_cudnn_fit(&o.tensors[0], &o.tensors[1], &o.tensors[2], &o.convolution);
}

/* Whether the engine has a plan for what it computes. */
static int check_plan(const struct descriptor *d) {
  struct operation o;
  const struct descriptor *c = fake_pointer(d, 401, 0);
  if (c->type != CONFIGURATION || !c->graph) return BAD_PARAM;
  if (c->engine == 4) return fake_refuse(NOT_SUPPORTED, "engine 4 has no kernel");
  if (is_composed(c->graph)) return SUCCESS;
  if (!read_operation(c->graph, &o)) return BAD_PARAM;
  const struct tensor *in = &o.tensors[o.backward ? 2 : 0], *out = &o.tensors[o.backward ? 0 : 2];
  if (in->type != out->type && c->engine != 9) return fake_refuse(NOT_SUPPORTED, "the result is of another type");
  return SUCCESS;
}

int cudnnBackendFinalize(void *descriptor) {
  struct descriptor *d = descriptor;
  int status = has_all(d) ? SUCCESS : fake_refuse(BAD_PARAM, "an attribute is not set");
  for (int i = 0; i < d->count && !status; i++)
    for (int k = 0; k < d->attributes[i].count && d->attributes[i].type == DESCRIPTOR && !status; k++) {
      const struct descriptor *other = fake_pointer(d, d->attributes[i].name, k);
      if (!other->final) status = fake_refuse(BAD_PARAM, "a descriptor is not finalized");
    }
  if (!status && d->type == TENSOR && !check_tensor(d)) status = fake_refuse(BAD_PARAM, "a tensor's extents");
  if (!status && d->type == GRAPH) status = check_graph(d);
  if (!status && d->type == PLAN) status = check_plan(d);
  d->final = !status;
  return status;
}

/* ---- Engines ---- */

static void put(int64_t *count, void *elements, const void *value, size_t bytes) {
  *count = 1;
  memcpy(elements, value, bytes);
}

/* Fills engines' configurations, which come not finalized. */
static int get_results(const struct descriptor *d, int64_t asked, int64_t *count, struct descriptor **into) {
  static const int of_modes[4][4] = {{7, 0, 4, -1}, {-1}, {9, 1, -1}, {4, 3, 7, -1}};
  const int *engines = of_modes[fake_number(d, 200)];
  *count = 0;
  if (fake_cudnn_is_told("none")) return SUCCESS;
  for (int i = 0; engines[i] >= 0 && *count < asked; i++) {
    struct descriptor *c = into[(*count)++];
    if (c->type != CONFIGURATION) return fake_refuse(BAD_PARAM, "no configuration is given");
    c->engine = engines[i], c->has_knobs = engines[i] == 7, c->graph = fake_pointer(d, 201, 0), c->final = 1;
  }
  return SUCCESS;
}

static int get_engine(const struct descriptor *d, int name, int64_t asked, int64_t *count, void *elements) {
  int64_t index = d->engine;
  int note = d->engine == 0 ? 0 : 1;
  if (name == 1301) return put(count, elements, &index, sizeof index), SUCCESS;
  *count = 0;
  if (name != 1303 || asked < 1) return fake_refuse(BAD_PARAM, "an engine has no such attribute");
  if (d->engine < 2) put(count, elements, &note, sizeof note);
  return SUCCESS;
}

static int get_configuration(const struct descriptor *d, int name, int64_t *count, void **elements) {
  struct descriptor *into = *elements;
  *count = name == 300 ? 1 : d->has_knobs;
  if (name == 300 && into->type == ENGINE) return into->engine = d->engine, into->final = 1, SUCCESS;
  if (name == 302 && into->type == KNOB) return into->final = 1, SUCCESS;
  return fake_refuse(BAD_PARAM, "a configuration has no such attribute");
}

static int get_knob(int name, int64_t *count, void *elements) {
  int kind = 14;
  int64_t value = 5;
  if (name == 600) put(count, elements, &kind, sizeof kind);
  if (name == 601) put(count, elements, &value, sizeof value);
  return name == 600 || name == 601 ? SUCCESS : BAD_PARAM;
}

static int64_t workspace_of(const struct descriptor *plan) {
  return ((const struct descriptor *)fake_pointer(plan, 401, 0))->engine == 7 ? WORKSPACE : 0;
}

int cudnnBackendGetAttribute(void *descriptor, int name, int type, int64_t asked, int64_t *count, void *elements) {
  const struct descriptor *d = descriptor;
  if (!d->final) return fake_refuse(BAD_PARAM, "it is not finalized");
  switch (d->type) {
  case HEURISTICS: return name == 202 && type == DESCRIPTOR ? get_results(d, asked, count, elements) : BAD_PARAM;
  case CONFIGURATION: return type == DESCRIPTOR ? get_configuration(d, name, count, elements) : BAD_PARAM;
  case ENGINE: return type == (name == 1301 ? INT64 : NOTE) ? get_engine(d, name, asked, count, elements) : BAD_PARAM;
  case KNOB: return type == (name == 600 ? KNOB_TYPE : INT64) ? get_knob(name, count, elements) : BAD_PARAM;
  case PLAN:
    if (name != 402 || type != INT64) return BAD_PARAM;
    return put(count, elements, &(int64_t){workspace_of(d)}, sizeof(int64_t)), SUCCESS;
  default: return fake_refuse(BAD_PARAM, "it has no such attribute");
  }
}

/* ---- Running ---- */

void *fake_address(const struct descriptor *pack, int id) {
  int ids[6], count = fake_integers(pack, 1000, ids);
  for (int i = 0; i < count; i++)
    if (ids[i] == id) return fake_pointer(pack, 1001, i);
  return NULL;
}

static double times_of(int engine, int is_float) {
  switch (engine) {
  case 7: return 1;
  case 3: return 1.5;
  case 9: return 4;
  default: return is_float ? 0.5 : 3;
  }
}

int cudnnBackendExecute(void *handle, void *plan, void *pack) {
  const struct descriptor *p = plan, *v = pack;
  struct operation o;
  if (!handle || p->type != PLAN || v->type != PACK || !p->final || !v->final) return fake_refuse(BAD_PARAM, "no plan");
  const struct descriptor *c = fake_pointer(p, 401, 0);
  void *data[3], *workspace = fake_pointer(v, 1003, 0);
  if (is_composed(c->graph)) {
    if (fake_cudnn_is_told("crashes")) raise(SIGKILL);
    if (fake_cudnn_is_told("fails")) return fake_refuse(EXECUTION_FAILED, "the kernel was not launched");
    return fake_composed_run(c->graph, v, times_of(c->engine, 0));
  }
  read_operation(c->graph, &o);
  for (int i = 0; i < 3; i++)
    if (!(data[i] = fake_address(v, o.ids[i]))) return fake_refuse(BAD_PARAM, "a tensor has no address");
  if (workspace_of(p) && !workspace) return fake_refuse(BAD_PARAM, "no workspace");
  if (fake_cudnn_is_told("fails")) return fake_refuse(EXECUTION_FAILED, "the kernel was not launched");
  if (fake_cudnn_is_told("crashes")) raise(SIGKILL);
  const struct tensor *result = &o.tensors[o.backward ? 0 : 2];
  void *in = data[o.backward ? 2 : 0], *out = data[o.backward ? 0 : 2];
  memset(workspace, 0x77, (size_t)workspace_of(p) + (workspace_of(p) && fake_cudnn_is_told("past")));
  memset(out, 0, fake_cudnn_count(result) * fake_cudnn_size(result->type));
  fake_cudnn_convolve(&o.tensors[0], data[0], &o.tensors[1], data[1], &o.tensors[2], data[2], &o.convolution,
                      o.backward);
  fake_cudnn_pass(times_of(c->engine, o.tensors[1].type == 0) + !o.tensors[0].layout, in);
  return SUCCESS;
}

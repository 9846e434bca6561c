/* cuDNN: convolutions, softmax and norms on a device, by its clock. Of the ways that it has for one, the fastest is
 * taken: each of its algorithms, with channels first and channels last, tried once when a call is made. Tensors are
 * laid out as the way has them before a run, and the result is laid back after it. Arithmetic is float32 throughout,
 * not TF32; but convolutions of short floats multiply on tensor cores, add in float32, and give short floats: it has
 * none that give float32.
 * Source: cuDNN API reference, cudnn_ops and cudnn_cnn, versions 8 and 9. */
#include "cudnn.h"
#include "jit/jit.h"
#include "layout.h"
#include "race.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of its enumerations. */
enum { FLOAT, HALF = 2, BFLOAT16 = 9 }; /* cudnnDataType_t */
enum { CROSS_CORRELATION = 1, TENSOR_OP_MATH = 1, FMA_MATH = 3, SOFTMAX_ACCURATE = 1, NORM2 = 7, PROPAGATE_NAN = 1 };
enum { NOT_SUPPORTED_8 = 9, NOT_SUPPORTED = 3000, PAST_NOT_SUPPORTED = 4000 };

enum { LEAST_RANK = LAYOUT_LEAST_RANK, MOST_RANK = LAYOUT_MOST_RANK, SAMPLES = 3 };
static const size_t MOST_WORKSPACE = (size_t)1 << 30;

/* ---- The library ---- */

struct cudnn {
  const struct cudnn_graphs *graphs; /* NULL: it has none */
  const char *no_graphs;             /* what it lacks of them */
  void *handle;
  int (*create)(void **handle);
  int (*set_stream)(void *handle, void *stream);
  const char *(*name)(int status);
  size_t (*version)(void);
  int (*new_tensor)(void **tensor);
  int (*set_tensor)(void *tensor, int type, int rank, const int *extents, const int *strides);
  int (*free_tensor)(void *tensor);
  int (*new_filter)(void **filter);
  int (*set_filter)(void *filter, int type, int layout, int rank, const int *extents);
  int (*free_filter)(void *filter);
  int (*new_convolution)(void **convolution);
  int (*set_convolution)(void *convolution, int rank, const int *before, const int *stride, const int *dilation,
                         int mode, int type);
  int (*set_math)(void *convolution, int math);
  int (*set_groups)(void *convolution, int groups);
  int (*free_convolution)(void *convolution);
  int (*forward_bytes)(void *handle, void *x, void *w, void *convolution, void *y, int algorithm, size_t *bytes);
  int (*forward)(void *handle, const float *alpha, void *x, const void *x_at, void *w, const void *w_at,
                 void *convolution, int algorithm, void *workspace, size_t bytes, const float *beta, void *y,
                 void *y_at);
  int (*backward_bytes)(void *handle, void *w, void *dy, void *convolution, void *dx, int algorithm, size_t *bytes);
  int (*backward)(void *handle, const float *alpha, void *w, const void *w_at, void *dy, const void *dy_at,
                  void *convolution, int algorithm, void *workspace, size_t bytes, const float *beta, void *dx,
                  void *dx_at);
  int (*softmax)(void *handle, int algorithm, int mode, const float *alpha, void *x, const void *x_at,
                 const float *beta, void *y, void *y_at);
  int (*new_reduction)(void **reduction);
  int (*set_reduction)(void *reduction, int op, int type, int nan, int indices, int index_type);
  int (*free_reduction)(void *reduction);
  int (*reduce_bytes)(void *handle, void *reduction, void *a, void *c, size_t *bytes);
  int (*reduce)(void *handle, void *reduction, void *indices, size_t index_bytes, void *workspace, size_t bytes,
                const float *alpha, void *a, const void *a_at, const float *beta, void *c, void *c_at);
};

#define OF(op)          (1u << VENDOR_##op)
#define OF_CONVOLUTIONS (OF(CONVOLUTION) | OF(TRANSPOSED))
/* The functions, by name, and which operators need them: 0, all. */
static const struct {
  size_t at;
  const char *name;
  unsigned operators;
} functions[] = {
#define FUNCTION(field, name, operators)                                                                               \
  { offsetof(struct cudnn, field), name, operators }
    FUNCTION(create, "cudnnCreate", 0),
    FUNCTION(set_stream, "cudnnSetStream", 0),
    FUNCTION(name, "cudnnGetErrorString", 0),
    FUNCTION(version, "cudnnGetVersion", 0),
    FUNCTION(new_tensor, "cudnnCreateTensorDescriptor", 0),
    FUNCTION(set_tensor, "cudnnSetTensorNdDescriptor", 0),
    FUNCTION(free_tensor, "cudnnDestroyTensorDescriptor", 0),
    FUNCTION(new_filter, "cudnnCreateFilterDescriptor", OF_CONVOLUTIONS),
    FUNCTION(set_filter, "cudnnSetFilterNdDescriptor", OF_CONVOLUTIONS),
    FUNCTION(free_filter, "cudnnDestroyFilterDescriptor", OF_CONVOLUTIONS),
    FUNCTION(new_convolution, "cudnnCreateConvolutionDescriptor", OF_CONVOLUTIONS),
    FUNCTION(set_convolution, "cudnnSetConvolutionNdDescriptor", OF_CONVOLUTIONS),
    FUNCTION(set_math, "cudnnSetConvolutionMathType", OF_CONVOLUTIONS),
    FUNCTION(set_groups, "cudnnSetConvolutionGroupCount", OF_CONVOLUTIONS),
    FUNCTION(free_convolution, "cudnnDestroyConvolutionDescriptor", OF_CONVOLUTIONS),
    FUNCTION(forward_bytes, "cudnnGetConvolutionForwardWorkspaceSize", OF(CONVOLUTION)),
    FUNCTION(forward, "cudnnConvolutionForward", OF(CONVOLUTION)),
    FUNCTION(backward_bytes, "cudnnGetConvolutionBackwardDataWorkspaceSize", OF(TRANSPOSED)),
    FUNCTION(backward, "cudnnConvolutionBackwardData", OF(TRANSPOSED)),
    FUNCTION(softmax, "cudnnSoftmaxForward", OF(SOFTMAX)),
    FUNCTION(new_reduction, "cudnnCreateReduceTensorDescriptor", OF(NORM)),
    FUNCTION(set_reduction, "cudnnSetReduceTensorDescriptor", OF(NORM)),
    FUNCTION(free_reduction, "cudnnDestroyReduceTensorDescriptor", OF(NORM)),
    FUNCTION(reduce_bytes, "cudnnGetReductionWorkspaceSize", OF(NORM)),
    FUNCTION(reduce, "cudnnReduceTensor", OF(NORM)),
};

/* Whether it has what an operator needs; VENDOR_OPERATORS: what all need. *missing: what it lacks. */
static bool has(const struct cudnn *c, enum vendor_operator op, const char **missing) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function;
    memcpy(&function, (const char *)c + functions[i].at, sizeof function);
    bool needed = op == VENDOR_OPERATORS ? !functions[i].operators : (functions[i].operators & (1u << op)) != 0;
    *missing = functions[i].name;
    if (needed && !function) return false;
  }
  return true;
}

static void *start(void *library, int threads, ms_error *err) {
  const char *missing;
  struct cudnn *c = calloc(1, sizeof *c);
  (void)threads;
  if (!c) abort();
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(library, functions[i].name);
    memcpy((char *)c + functions[i].at, &function, sizeof function);
  }
  bool there = has(c, VENDOR_OPERATORS, &missing) || ms_fail(err, MS_NOT_LAUNCHED, "it has no %s", missing);
  int status = there ? c->create(&c->handle) : 0;
  if (!there || (status && !ms_fail(err, MS_NOT_LAUNCHED, "cudnnCreate gives %s", c->name(status))))
    return free(c), NULL;
  c->graphs = cudnn_graphs_find(library, c->handle, &c->no_graphs);
  return c;
}

static void describe(void *library, char *text, size_t size) {
  size_t (*get)(void) = (size_t(*)(void))dlsym(library, "cudnnGetVersion");
  size_t version = get ? get() : 0, major = version >= 90000 ? 10000 : 1000;
  snprintf(text, size, "cuDNN %zu.%zu.%zu", version / major, version % major / 100, version % 100);
}

/* ---- Calls ---- */

enum { WORKSPACE = VENDOR_TENSORS, BUFFERS };

struct call {
  struct cudnn *cudnn;
  struct jit_target target;
  struct vendor_work work;
  const struct operation *operation;
  struct jit_routine *routine; /* NULL: no way is ready to run */
  tir_type type;               /* of elements, as they are laid out */
  /* The way. */
  int layout, algorithm;
  size_t workspace;                            /* bytes of it */
  void *described[VENDOR_TENSORS];             /* descriptors; NULL: there is no such tensor */
  void *about;                                 /* and that of a convolution or a reduction */
  int order[VENDOR_TENSORS][VENDOR_MOST_RANK]; /* dimensions of a tensor, as they lie */
  struct tir_arg buffers[BUFFERS];             /* laid out so, each allocated; the workspace is the device's alone */
  int status;                                  /* of the last function that failed */
  ms_error why;                                /* no way is ready; the message empty: one is, or none is there */
};

/* What differs from operator to operator; each gives a status. */
struct operation {
  int layouts, algorithms;
  const char *function;
  int (*describe)(struct call *c);
  int (*bytes)(const struct call *c, size_t *bytes); /* NULL: no workspace */
  int (*start)(const struct call *c, void *const *at);
};

static const float one = 1, zero = 0;

static bool is_unsupported(int status) {
  return status == NOT_SUPPORTED_8 || (status >= NOT_SUPPORTED && status < PAST_NOT_SUPPORTED);
}

static int type_of(tir_type type) {
  return !tir_type_is_short(type) ? FLOAT : tir_type_code(type) == TIR_BFLOAT ? BFLOAT16 : HALF;
}

/* ---- Convolutions ---- */

/* What a tensor is laid out as; its extents and strides as cuDNN's older interface takes them. */
static int lay_tensor(struct call *c, int which, int extents[MOST_RANK], int strides[MOST_RANK]) {
  struct vendor_laid laid;
  vendor_lay(&c->work, which, c->layout, c->type, &laid);
  memcpy(c->order[which], laid.order, sizeof laid.order);
  for (int d = 0; d < laid.rank; d++) extents[d] = (int)laid.extents[d], strides[d] = (int)laid.strides[d];
  return laid.rank;
}

static int describe_image(struct call *c, int which) {
  int extents[MOST_RANK], strides[MOST_RANK], rank = lay_tensor(c, which, extents, strides);
  int status = c->cudnn->new_tensor(&c->described[which]);
  return status ? status : c->cudnn->set_tensor(c->described[which], type_of(c->type), rank, extents, strides);
}

static int describe_filter(struct call *c) {
  int extents[MOST_RANK], strides[MOST_RANK], rank = lay_tensor(c, VENDOR_WEIGHTS, extents, strides);
  int status = c->cudnn->new_filter(&c->described[VENDOR_WEIGHTS]);
  if (status) return status;
  return c->cudnn->set_filter(c->described[VENDOR_WEIGHTS], type_of(c->type), c->layout, rank, extents);
}

static int describe_convolution(struct call *c) {
  struct cudnn *d = c->cudnn;
  int before[VENDOR_MOST_SPATIAL] = {0}, stride[VENDOR_MOST_SPATIAL] = {1}, dilation[VENDOR_MOST_SPATIAL] = {1};
  int spatial = c->work.tensors[VENDOR_SOURCE].rank - 2, added = spatial == 1;
  assert(spatial >= 1 && spatial + added <= VENDOR_MOST_SPATIAL);
  for (int i = 0; i < spatial; i++) {
    before[i + added] = (int)c->work.before[i], stride[i + added] = (int)c->work.stride[i];
    dilation[i + added] = (int)c->work.dilation[i];
  }
  int status = describe_image(c, VENDOR_SOURCE);
  if (!status) status = describe_image(c, VENDOR_RESULT);
  if (!status) status = describe_filter(c);
  if (!status) status = d->new_convolution(&c->about);
  if (!status)
    status = d->set_convolution(c->about, spatial + added, before, stride, dilation, CROSS_CORRELATION, FLOAT);
  if (!status) status = d->set_math(c->about, tir_type_is_short(c->type) ? TENSOR_OP_MATH : FMA_MATH);
  return status ? status : d->set_groups(c->about, vendor_groups(&c->work));
}

static int forward_bytes(const struct call *c, size_t *bytes) {
  return c->cudnn->forward_bytes(c->cudnn->handle, c->described[VENDOR_SOURCE], c->described[VENDOR_WEIGHTS], c->about,
                                 c->described[VENDOR_RESULT], c->algorithm, bytes);
}
static int forward(const struct call *c, void *const *at) {
  return c->cudnn->forward(c->cudnn->handle, &one, c->described[VENDOR_SOURCE], at[VENDOR_SOURCE],
                           c->described[VENDOR_WEIGHTS], at[VENDOR_WEIGHTS], c->about, c->algorithm, at[WORKSPACE],
                           c->workspace, &zero, c->described[VENDOR_RESULT], at[VENDOR_RESULT]);
}

/* What the gradient of a convolution's input is of its output's: a transposed convolution. */
static int backward_bytes(const struct call *c, size_t *bytes) {
  return c->cudnn->backward_bytes(c->cudnn->handle, c->described[VENDOR_WEIGHTS], c->described[VENDOR_SOURCE], c->about,
                                  c->described[VENDOR_RESULT], c->algorithm, bytes);
}
static int backward(const struct call *c, void *const *at) {
  return c->cudnn->backward(c->cudnn->handle, &one, c->described[VENDOR_WEIGHTS], at[VENDOR_WEIGHTS],
                            c->described[VENDOR_SOURCE], at[VENDOR_SOURCE], c->about, c->algorithm, at[WORKSPACE],
                            c->workspace, &zero, c->described[VENDOR_RESULT], at[VENDOR_RESULT]);
}

/* ---- Rows: softmax and norms ---- */

/* So many rows of so many elements, one after another. */
static int describe_rows(struct call *c, int which, int rows, int columns) {
  const int extents[LEAST_RANK] = {rows, columns, 1, 1}, strides[LEAST_RANK] = {columns, 1, 1, 1};
  assert((int64_t)rows * columns == vendor_count(&c->work.tensors[which]));
  for (int d = 0; d < c->work.tensors[which].rank; d++) c->order[which][d] = d;
  int status = c->cudnn->new_tensor(&c->described[which]);
  return status ? status : c->cudnn->set_tensor(c->described[which], FLOAT, LEAST_RANK, extents, strides);
}

static int describe_softmax(struct call *c) {
  const struct vendor_tensor *x = &c->work.tensors[VENDOR_SOURCE];
  int columns = (int)x->extents[x->rank - 1], rows = (int)(vendor_count(x) / columns);
  int status = describe_rows(c, VENDOR_SOURCE, rows, columns);
  return status ? status : describe_rows(c, VENDOR_RESULT, rows, columns);
}
static int softmax(const struct call *c, void *const *at) { /* its algorithms here: by instance, by channel */
  return c->cudnn->softmax(c->cudnn->handle, SOFTMAX_ACCURATE, c->algorithm, &one, c->described[VENDOR_SOURCE],
                           at[VENDOR_SOURCE], &zero, c->described[VENDOR_RESULT], at[VENDOR_RESULT]);
}

static int describe_norm(struct call *c) {
  struct cudnn *d = c->cudnn;
  int rows = (int)vendor_count(&c->work.tensors[VENDOR_RESULT]);
  int status = describe_rows(c, VENDOR_SOURCE, rows, (int)(vendor_count(&c->work.tensors[VENDOR_SOURCE]) / rows));
  if (!status) status = describe_rows(c, VENDOR_RESULT, rows, 1);
  if (!status) status = d->new_reduction(&c->about);
  return status ? status : d->set_reduction(c->about, NORM2, FLOAT, PROPAGATE_NAN, 0, 0);
}
static int norm_bytes(const struct call *c, size_t *bytes) {
  return c->cudnn->reduce_bytes(c->cudnn->handle, c->about, c->described[VENDOR_SOURCE], c->described[VENDOR_RESULT],
                                bytes);
}
static int norm(const struct call *c, void *const *at) {
  return c->cudnn->reduce(c->cudnn->handle, c->about, NULL, 0, at[WORKSPACE], c->workspace, &one,
                          c->described[VENDOR_SOURCE], at[VENDOR_SOURCE], &zero, c->described[VENDOR_RESULT],
                          at[VENDOR_RESULT]);
}

static const struct operation operations[VENDOR_OPERATORS] = {
    [VENDOR_CONVOLUTION] = {LAYOUTS, 8, "cudnnConvolutionForward", describe_convolution, forward_bytes, forward},
    [VENDOR_TRANSPOSED] = {LAYOUTS, 6, "cudnnConvolutionBackwardData", describe_convolution, backward_bytes, backward},
    [VENDOR_SOFTMAX] = {1, 2, "cudnnSoftmaxForward", describe_softmax, NULL, softmax},
    [VENDOR_NORM] = {1, 1, "cudnnReduceTensor", describe_norm, norm_bytes, norm},
};

/* ---- What it has a routine for ---- */

static bool fits(const struct vendor_tensor *t) { return vendor_count(t) <= INT32_MAX; }

/* The first dimensions are kept, the others are not. */
static bool has_rows(const struct vendor_work *w) {
  const struct vendor_tensor *x = &w->tensors[VENDOR_SOURCE], *y = &w->tensors[VENDOR_RESULT];
  int d = 0;
  if (y->rank != x->rank) return false;
  while (d < x->rank && y->extents[d] == x->extents[d]) d++;
  while (d < x->rank && y->extents[d] == 1) d++;
  return d == x->rank;
}

/* float32; or a convolution of short floats, both alike, whose result the tensor has as float32, or
 * like them. */
static bool has_types(const struct vendor_work *w) {
  const struct vendor_tensor *x = &w->tensors[VENDOR_SOURCE], *weights = &w->tensors[VENDOR_WEIGHTS];
  bool convolves = w->op == VENDOR_CONVOLUTION || w->op == VENDOR_TRANSPOSED;
  tir_type given = w->tensors[VENDOR_RESULT].type;
  return (given == TIR_T_F32 || (convolves && given == x->type)) && (!weights->rank || weights->type == x->type) &&
         (x->type == TIR_T_F32 || (convolves && tir_type_is_short(x->type)));
}

static bool has_routine(const struct cudnn *c, const struct vendor_work *w) {
  const char *missing;
  if (!w->target || !operations[w->op].start || !has(c, w->op, &missing) || !has_types(w)) return false;
  for (int i = 0; i < VENDOR_TENSORS; i++)
    if (!fits(&w->tensors[i])) return false;
  if (w->op == VENDOR_NORM) return has_rows(w);
  return w->op == VENDOR_SOFTMAX || vendor_convolves(w);
}

/* ---- Laying out ---- */

/* What goes in, as it is now. */
static void lay_inputs(struct call *c) {
  for (int i = 0; i < VENDOR_TENSORS; i++)
    if (i != VENDOR_RESULT && c->buffers[i].data)
      vendor_copy_laid(&c->work.tensors[i], c->order[i], c->type, c->buffers[i].data, false);
}

static void drop_layout(struct call *c) {
  const struct cudnn *d = c->cudnn;
  for (int i = 0; i < VENDOR_TENSORS; i++) {
    if (c->described[i]) (i == VENDOR_WEIGHTS ? d->free_filter : d->free_tensor)(c->described[i]);
    free(c->buffers[i].data);
    c->described[i] = c->buffers[i].data = NULL;
  }
  if (c->about) (c->work.op == VENDOR_NORM ? d->free_reduction : d->free_convolution)(c->about);
  c->about = NULL;
}

static bool lay_out(struct call *c, int layout) {
  assert(layout < c->operation->layouts && !c->about && !c->routine);
  c->layout = layout;
  c->status = c->operation->describe(c);
  for (int i = 0; i < VENDOR_TENSORS && !c->status; i++) {
    const struct vendor_tensor *t = &c->work.tensors[i];
    if (!t->rank) continue;
    size_t bytes = (size_t)vendor_count(t) * vendor_size(c->type);
    c->buffers[i] = (struct tir_arg){.data = calloc(1, bytes), .bytes = bytes};
    if (!c->buffers[i].data) abort();
  }
  if (!c->status) lay_inputs(c);
  return !c->status;
}

/* ---- Running ---- */

static bool begin(void *data, void *const *buffers, void *stream) {
  struct call *c = data;
  c->status = c->cudnn->set_stream(c->cudnn->handle, stream);
  if (!c->status) c->status = c->operation->start(c, buffers);
  return !c->status;
}

static bool ask_bytes(void *data, void *const *buffers, void *stream) {
  struct call *c = data;
  (void)buffers, (void)stream;
  c->workspace = 0;
  c->status = c->operation->bytes ? c->operation->bytes(c, &c->workspace) : 0;
  return !c->status;
}

/* What cuDNN says of a failure goes before what follows from it. */
static bool explain(const struct call *c, ms_error *err) {
  if (!c->status) return false;
  return ms_fail(err, MS_NOT_LAUNCHED, "%s gives %s", c->operation->function, c->cudnn->name(c->status));
}

/* Runs an algorithm of the layout that is there once. */
static bool make_ready(struct call *c, int algorithm, ms_error *err) {
  assert(algorithm < c->operation->algorithms && !c->routine);
  c->algorithm = algorithm, c->status = 0;
  if (!jit_device_call(&c->target, ask_bytes, c, err)) return explain(c, err);
  if (c->workspace > MOST_WORKSPACE) c->status = NOT_SUPPORTED;
  if (c->status) return false;
  c->buffers[WORKSPACE] = (struct tir_arg){.bytes = c->workspace};
  c->routine = jit_routine_new(&c->target, c->buffers, BUFFERS, begin, c, err);
  return c->routine && (jit_routine_run(c->routine, err) || explain(c, err));
}

static void put_away(struct call *c) {
  jit_routine_free(c->routine);
  c->routine = NULL;
}

static bool attempt(void *data, ms_error *err) {
  struct call *c = data;
  c->status = 0;
  if (!c->routine) return ms_fail(err, MS_NOT_LAUNCHED, "%s", c->why.message);
  lay_inputs(c);
  if (!jit_routine_run(c->routine, err)) return explain(c, err);
  vendor_copy_laid(&c->work.tensors[VENDOR_RESULT], c->order[VENDOR_RESULT], c->type, c->buffers[VENDOR_RESULT].data,
                   true);
  return true;
}

static double sample(void *data, uint32_t calls) {
  const struct call *c = data;
  return c->routine ? jit_routine_sample(c->routine, calls, NULL) : -1;
}

static void release(void *data) {
  struct call *c = data;
  put_away(c);
  drop_layout(c);
  free(c);
}

/* Seconds of a run of an algorithm; below 0: it is none, or fails. */
static double try_algorithm(struct call *c, int algorithm) {
  ms_error err = {.instruction = -1};
  double least = -1;
  bool ready = make_ready(c, algorithm, &err);
  for (int i = 0; i < SAMPLES && ready; i++) {
    double seconds = jit_routine_sample(c->routine, 1, &err);
    ready = seconds >= 0;
    if (i == 0 || seconds < least) least = seconds;
  }
  if (!ready && !is_unsupported(c->status) && !*c->why.message) c->why = err;
  put_away(c);
  return ready ? least : -1;
}

/* Makes the fastest way ready. False: there is none, and why has a message if one failed by more than not being
 * there. */
static bool choose(struct call *c) {
  double best = -1;
  int layout = 0, algorithm = 0;
  for (int l = 0; l < c->operation->layouts; l++) {
    bool laid = lay_out(c, l);
    for (int a = 0; a < c->operation->algorithms && laid; a++) {
      double seconds = try_algorithm(c, a);
      if (seconds >= 0 && (best < 0 || seconds < best)) best = seconds, layout = l, algorithm = a;
    }
    if (!laid && !is_unsupported(c->status)) explain(c, &c->why);
    drop_layout(c);
  }
  return best >= 0 && lay_out(c, layout) && make_ready(c, algorithm, &c->why);
}

/* By the older interface. why: what the graph API lacks; "": nothing was asked of it. */
static bool prepare_older(struct cudnn *cudnn, const struct vendor_work *work, const char *why,
                          struct vendor_call *out) {
  struct call *c = calloc(1, sizeof *c);
  if (!c) abort();
  *c = (struct call){.cudnn = cudnn,
                     .target = *work->target,
                     .work = *work,
                     .operation = &operations[work->op],
                     .type = work->tensors[VENDOR_SOURCE].type,
                     .why = {.instruction = -1}};
  bool chosen = choose(c);
  if (!chosen) put_away(c);
  if (!chosen && !*c->why.message) return release(c), false;
  *out = (struct vendor_call){.attempt = attempt,
                              .sample = sample,
                              .release = release,
                              .data = c,
                              .rounding = cudnn_rounding(c->type, work->tensors[VENDOR_RESULT].type)};
  const char *layout = c->operation->layouts == 1 ? "" : c->layout == LAYOUT_CHANNELS_LAST ? ", NHWC" : ", NCHW";
  if (chosen)
    snprintf(out->routine, sizeof out->routine, "%s, algorithm %d%s%s%s", c->operation->function, c->algorithm, layout,
             *why ? ", as by graphs " : "", why);
  return true;
}

/* Two ways, of the graph API and of the older interface: they are ready already. */
static bool is_ready(void *data, int way) {
  (void)data, (void)way;
  return true;
}
static double sample_either(void *data, int way, uint32_t calls) {
  const struct vendor_call *both = data;
  return both[way].sample(both[way].data, calls);
}

/* Keeps the faster of the graph's call and the older interface's, where that has one. */
static void keep_faster(struct cudnn *c, const struct vendor_work *work, struct vendor_call *out) {
  struct vendor_call both[2] = {*out};
  double seconds[2];
  if (!prepare_older(c, work, "", &both[1])) return;
  const struct vendor_race race = {
      .count = 2, .warm = is_ready, .sample = sample_either, .check = is_ready, .data = both};
  int best = vendor_race(&race, seconds);
  vendor_log("cuDNN: %.3f us by graphs, %.3f by %s", 1e6 * seconds[0], 1e6 * seconds[1], both[1].routine);
  both[best != 1].release(both[best != 1].data);
  *out = both[best == 1];
}

static bool prepare(void *started, const struct vendor_work *work, struct vendor_call *out) {
  struct cudnn *c = started;
  char why[300] = "";
  if (work->op == VENDOR_ATTENTION)
    return work->target && c->graphs && cudnn_attends(work) &&
           cudnn_graphs_prepare(c->graphs, work, out, why, sizeof why);
  if (!has_routine(c, work)) return false;
  bool convolves = work->op == VENDOR_CONVOLUTION || work->op == VENDOR_TRANSPOSED;
  if (convolves && c->graphs && cudnn_graphs_prepare(c->graphs, work, out, why, sizeof why))
    return keep_faster(c, work, out), true;
  if (convolves && !c->graphs) snprintf(why, sizeof why, "it has no %s", c->no_graphs);
  return prepare_older(c, work, why, out);
}

const struct vendor vendor_cudnn = {"cuDNN", "libcudnn.so", start, describe, prepare, .short_floats = true};

/* cuDNN: convolutions, softmax and norms on a device, by its clock. Of the ways that it has for one, the fastest is taken:
 * each of its algorithms, with channels first and channels last, tried once when a call is made. Tensors are laid out as
 * the way has them before a run, and the result is laid back after it. Arithmetic is float32 throughout, not TF32; but
 * convolutions of short floats multiply on tensor cores, add in float32, and give short floats: it has none that give
 * float32.
 * Source: cuDNN API reference, cudnn_ops and cudnn_cnn, versions 8 and 9. */
#include "jit/jit.h"
#include "vendor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of its enumerations. */
enum { FLOAT, HALF = 2, BFLOAT16 = 9 }; /* cudnnDataType_t */
enum { CROSS_CORRELATION = 1, TENSOR_OP_MATH = 1, FMA_MATH = 3, SOFTMAX_ACCURATE = 1, NORM2 = 7, PROPAGATE_NAN = 1 };
enum { CHANNELS_FIRST, CHANNELS_LAST, LAYOUTS }; /* cudnnTensorFormat_t */
enum { NOT_SUPPORTED_8 = 9, NOT_SUPPORTED = 3000, PAST_NOT_SUPPORTED = 4000 };

enum { LEAST_RANK = 4, MOST_RANK = 5, SAMPLES = 3 };
static const size_t MOST_WORKSPACE = (size_t)1 << 30;

/* ---- The library ---- */

struct cudnn {
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
  if (there && (!status || ms_fail(err, MS_NOT_LAUNCHED, "cudnnCreate gives %s", c->name(status)))) return c;
  free(c);
  return NULL;
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

static bool is_short(tir_type type) { return tir_type_bits(type) == 16; }

static int type_of(tir_type type) {
  return !is_short(type) ? FLOAT : tir_type_code(type) == TIR_BFLOAT ? BFLOAT16 : HALF;
}

/* ---- Convolutions ---- */

static int groups_of(const struct vendor_work *w) {
  const struct vendor_tensor *filter = &w->tensors[VENDOR_WEIGHTS];
  return filter->rank > w->tensors[VENDOR_SOURCE].rank ? (int)filter->extents[0] : 1;
}

/* Two channels' dimensions, then those of space, one of which is added where there is one alone. */
static int extents_of(const struct vendor_tensor *t, int first, int a, int b, int extents[MOST_RANK]) {
  int rank = 2;
  extents[0] = (int)t->extents[a], extents[1] = (int)t->extents[b];
  if (t->rank - first == 3) extents[rank++] = 1;
  for (int d = first + 2; d < t->rank; d++) extents[rank++] = (int)t->extents[d];
  return rank;
}

/* The order of dimensions: those before `first`, a, then b before or after those of space. */
static void order_of(const struct vendor_tensor *t, int first, int a, int b, int layout, int *order) {
  int count = 0;
  for (int d = 0; d < first; d++) order[count++] = d;
  order[count++] = a;
  if (layout == CHANNELS_FIRST) order[count++] = b;
  for (int d = first + 2; d < t->rank; d++) order[count++] = d;
  if (layout == CHANNELS_LAST) order[count++] = b;
}

static int describe_image(struct call *c, int which) {
  int extents[MOST_RANK], strides[MOST_RANK], rank = extents_of(&c->work.tensors[which], 0, 0, 1, extents);
  bool last = c->layout == CHANNELS_LAST;
  int stride = last ? extents[1] : 1;
  order_of(&c->work.tensors[which], 0, 0, 1, c->layout, c->order[which]);
  for (int d = rank - 1; d >= 2; d--) strides[d] = stride, stride *= extents[d];
  strides[1] = last ? 1 : stride;
  strides[0] = last ? stride : stride * extents[1];
  int status = c->cudnn->new_tensor(&c->described[which]);
  return status ? status : c->cudnn->set_tensor(c->described[which], type_of(c->type), rank, extents, strides);
}

/* Channels that the routine slides it over come second: a transposed convolution's are the filter's outputs. */
static int describe_filter(struct call *c) {
  const struct vendor_tensor *t = &c->work.tensors[VENDOR_WEIGHTS];
  int groups = groups_of(&c->work), first = t->rank > c->work.tensors[VENDOR_SOURCE].rank, extents[MOST_RANK];
  bool transposed = c->work.op == VENDOR_TRANSPOSED;
  int a = first + transposed, b = first + !transposed, rank = extents_of(t, first, a, b, extents);
  extents[0] *= groups;
  order_of(t, first, a, b, c->layout, c->order[VENDOR_WEIGHTS]);
  int status = c->cudnn->new_filter(&c->described[VENDOR_WEIGHTS]);
  if (status) return status;
  return c->cudnn->set_filter(c->described[VENDOR_WEIGHTS], type_of(c->type), c->layout, rank, extents);
}

static int describe_convolution(struct call *c) {
  struct cudnn *d = c->cudnn;
  int before[VENDOR_MOST_SPATIAL] = {0}, stride[VENDOR_MOST_SPATIAL] = {1}, dilation[VENDOR_MOST_SPATIAL] = {1};
  int spatial = c->work.tensors[VENDOR_SOURCE].rank - 2, added = spatial == 1;
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
  if (!status) status = d->set_math(c->about, is_short(c->type) ? TENSOR_OP_MATH : FMA_MATH);
  return status ? status : d->set_groups(c->about, groups_of(&c->work));
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
  for (int d = 0; d < c->work.tensors[which].rank; d++) c->order[which][d] = d;
  int status = c->cudnn->new_tensor(&c->described[which]);
  return status ? status : c->cudnn->set_tensor(c->described[which], FLOAT, LEAST_RANK, extents, strides);
}

static int64_t count_of(const struct vendor_tensor *t) {
  int64_t count = 1;
  for (int d = 0; d < t->rank; d++) count *= t->extents[d];
  return count;
}

static int describe_softmax(struct call *c) {
  const struct vendor_tensor *x = &c->work.tensors[VENDOR_SOURCE];
  int columns = (int)x->extents[x->rank - 1], rows = (int)(count_of(x) / columns);
  int status = describe_rows(c, VENDOR_SOURCE, rows, columns);
  return status ? status : describe_rows(c, VENDOR_RESULT, rows, columns);
}
static int softmax(const struct call *c, void *const *at) { /* its algorithms here: by instance, by channel */
  return c->cudnn->softmax(c->cudnn->handle, SOFTMAX_ACCURATE, c->algorithm, &one, c->described[VENDOR_SOURCE],
                           at[VENDOR_SOURCE], &zero, c->described[VENDOR_RESULT], at[VENDOR_RESULT]);
}

static int describe_norm(struct call *c) {
  struct cudnn *d = c->cudnn;
  int rows = (int)count_of(&c->work.tensors[VENDOR_RESULT]);
  int status = describe_rows(c, VENDOR_SOURCE, rows, (int)(count_of(&c->work.tensors[VENDOR_SOURCE]) / rows));
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

static bool fits(const struct vendor_tensor *t) { return count_of(t) <= INT32_MAX; }

/* It pads both sides alike: what lies behind matters only to how large the outcome is. */
static bool has_extents(const struct vendor_work *w) {
  bool transposed = w->op == VENDOR_TRANSPOSED;
  const struct vendor_tensor *image = &w->tensors[transposed ? VENDOR_RESULT : VENDOR_SOURCE],
                             *slid = &w->tensors[transposed ? VENDOR_SOURCE : VENDOR_RESULT],
                             *filter = &w->tensors[VENDOR_WEIGHTS];
  for (int d = 0; d < image->rank - 2; d++) {
    int64_t taps = filter->extents[filter->rank - image->rank + 2 + d];
    int64_t room = image->extents[d + 2] + 2 * w->before[d] - w->dilation[d] * (taps - 1) - 1;
    if (room < 0 || room / w->stride[d] + 1 != slid->extents[d + 2]) return false;
  }
  return image->rank >= 3 && image->rank <= MOST_RANK && slid->rank == image->rank &&
         (filter->rank == image->rank || filter->rank == image->rank + 1);
}

/* The first dimensions are kept, the others are not. */
static bool has_rows(const struct vendor_work *w) {
  const struct vendor_tensor *x = &w->tensors[VENDOR_SOURCE], *y = &w->tensors[VENDOR_RESULT];
  int d = 0;
  if (y->rank != x->rank) return false;
  while (d < x->rank && y->extents[d] == x->extents[d]) d++;
  while (d < x->rank && y->extents[d] == 1) d++;
  return d == x->rank;
}

/* float32; or a convolution of short floats, both alike, whose result the tensor has as float32. */
static bool has_types(const struct vendor_work *w) {
  const struct vendor_tensor *x = &w->tensors[VENDOR_SOURCE], *weights = &w->tensors[VENDOR_WEIGHTS];
  bool convolves = w->op == VENDOR_CONVOLUTION || w->op == VENDOR_TRANSPOSED;
  return w->tensors[VENDOR_RESULT].type == TIR_T_F32 && (!weights->rank || weights->type == x->type) &&
         (x->type == TIR_T_F32 || (convolves && is_short(x->type)));
}

static bool has_routine(const struct cudnn *c, const struct vendor_work *w) {
  const char *missing;
  if (!w->target || !operations[w->op].start || !has(c, w->op, &missing) || !has_types(w)) return false;
  for (int i = 0; i < VENDOR_TENSORS; i++)
    if (!fits(&w->tensors[i])) return false;
  if (w->op == VENDOR_NORM) return has_rows(w);
  return w->op == VENDOR_SOFTMAX || has_extents(w);
}

/* ---- Laying out ---- */

static size_t size_of(tir_type type) { return (size_t)tir_type_bits(type) / 8; }

static void copy_element(tir_type type, void *to, tir_type of, const void *from) {
  if (type == of)
    memcpy(to, from, size_of(of));
  else
    tir_put_element(type, to, tir_fetch_element(of, from));
}

/* Copies a tensor to where its elements, of a type, lie in the order of its dimensions, or back. */
static void copy_laid(const struct vendor_tensor *t, const int *order, tir_type type, void *laid, bool back) {
  int64_t at[VENDOR_MOST_RANK] = {0}, from = 0, count = count_of(t);
  size_t size = size_of(type);
  for (int64_t i = 0; i < count; i++) {
    char *own = (char *)t->data + (size_t)from * size_of(t->type), *other = (char *)laid + (size_t)i * size;
    if (back)
      copy_element(t->type, own, type, other);
    else
      copy_element(type, other, t->type, own);
    for (int d = t->rank - 1; d >= 0; d--) {
      from += t->strides[order[d]];
      if (++at[d] < t->extents[order[d]]) break;
      from -= t->strides[order[d]] * t->extents[order[d]];
      at[d] = 0;
    }
  }
}

/* What goes in, as it is now. */
static void lay_inputs(struct call *c) {
  for (int i = 0; i < VENDOR_TENSORS; i++)
    if (i != VENDOR_RESULT && c->buffers[i].data)
      copy_laid(&c->work.tensors[i], c->order[i], c->type, c->buffers[i].data, false);
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
  c->layout = layout;
  c->status = c->operation->describe(c);
  for (int i = 0; i < VENDOR_TENSORS && !c->status; i++) {
    const struct vendor_tensor *t = &c->work.tensors[i];
    if (!t->rank) continue;
    size_t bytes = (size_t)count_of(t) * size_of(c->type);
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
  copy_laid(&c->work.tensors[VENDOR_RESULT], c->order[VENDOR_RESULT], c->type, c->buffers[VENDOR_RESULT].data, true);
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

/* Makes the fastest way ready. False: there is none, and why has a message if one failed by more than not being there. */
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

static bool prepare(void *started, const struct vendor_work *work, struct vendor_call *out) {
  if (!has_routine(started, work)) return false;
  struct call *c = calloc(1, sizeof *c);
  if (!c) abort();
  *c = (struct call){.cudnn = started,
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
                              .rounding = !is_short(c->type)                     ? 0
                                          : tir_type_code(c->type) == TIR_BFLOAT ? 0x1p-8
                                                                                 : 0x1p-11};
  return true;
}

const struct vendor vendor_cudnn = {"cuDNN", "libcudnn.so", start, describe, prepare, .short_floats = true};

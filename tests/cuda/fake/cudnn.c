/* cuDNN without a GPU: convolutions, what their input's gradient is, softmax and norms, on the memory of the tests'
 * driver, whose clock it moves on. It refuses what cuDNN refuses: tensors of fewer dimensions than four, layouts that
 * do not belong together, extents that are not those of the outcome, types that are not one, and here TF32. Algorithms
 * take unlike times, all but three are for channels first alone, and the last wants more memory than anybody gives. Its
 * graph API is cudnn_graph.c.
 *   FAKE_CUDNN       `wrong`, an element is; `fails`, nothing is begun; `none`, there is no algorithm; `create`, it
 *                    does not start; `past`, algorithm 1 writes past its workspace
 *   FAKE_CUDNN_TIME  milliseconds of a convolution by algorithm 1 and channels last, which is the fastest, and of
 *                    others; unset: 8 */
#include "cudnn.h"
#include "tir/tir.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void fake_cuda_pass(double milliseconds);
void fake_cuda_on(void *stream);
double fake_cuda_ease(const void *data);

enum { LAST_ALGORITHM = 5 };

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}
int fake_cudnn_is_told(const char *word) { return !strcmp(setting("FAKE_CUDNN", ""), word); }
void fake_cudnn_pass(double times, const void *in) {
  fake_cuda_pass(times * atof(setting("FAKE_CUDNN_TIME", "8")) * fake_cuda_ease(in));
}

const char *cudnnGetErrorString(int status) {
  switch (status) {
  case SUCCESS: return "CUDNN_STATUS_SUCCESS";
  case NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
  case BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
  case NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
  default: return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
size_t cudnnGetVersion(void) { return 90405; }

int cudnnCreate(void **handle) {
  static int one;
  *handle = &one;
  return fake_cudnn_is_told("create") ? NOT_INITIALIZED : SUCCESS;
}

int cudnnSetStream(void *handle, void *stream) {
  fake_cuda_on(stream);
  return handle ? SUCCESS : BAD_PARAM;
}

/* ---- Descriptors ---- */

static int make(void **out, size_t bytes) {
  *out = calloc(1, bytes);
  return SUCCESS;
}
static int drop(void *descriptor) {
  free(descriptor);
  return SUCCESS;
}
int cudnnCreateTensorDescriptor(void **out) { return make(out, sizeof(struct tensor)); }
int cudnnDestroyTensorDescriptor(void *descriptor) { return drop(descriptor); }
int cudnnCreateFilterDescriptor(void **out) { return make(out, sizeof(struct tensor)); }
int cudnnDestroyFilterDescriptor(void *descriptor) { return drop(descriptor); }
int cudnnCreateConvolutionDescriptor(void **out) { return make(out, sizeof(struct convolution)); }
int cudnnDestroyConvolutionDescriptor(void *descriptor) { return drop(descriptor); }
int cudnnCreateReduceTensorDescriptor(void **out) { return make(out, sizeof(int)); }
int cudnnDestroyReduceTensorDescriptor(void *descriptor) { return drop(descriptor); }

size_t fake_cudnn_size(int type) { return type == 0 ? 4 : type == 2 || type == 9 ? 2 : 0; }

/* Strides without gaps, channels first or last. */
static void lay(struct tensor *t, int layout) {
  int stride = layout ? t->extents[1] : 1;
  for (int d = t->rank - 1; d >= 2; d--) t->strides[d] = stride, stride *= t->extents[d];
  t->strides[1] = layout ? 1 : stride;
  t->strides[0] = layout ? stride : stride * t->extents[1];
  t->layout = layout;
}

static int are_strides(const struct tensor *t, const int *strides) {
  for (int d = 0; d < t->rank; d++)
    if (t->extents[d] > 1 && t->strides[d] != strides[d]) return 0;
  return 1;
}

int cudnnSetTensorNdDescriptor(void *descriptor, int type, int rank, const int *extents, const int *strides) {
  struct tensor *t = descriptor;
  if (!fake_cudnn_size(type) || rank < 4 || rank > MOST) return BAD_PARAM;
  t->type = type, t->rank = rank;
  memcpy(t->extents, extents, (size_t)rank * sizeof *extents);
  for (int layout = 1; layout >= 0; layout--) {
    lay(t, layout);
    if (are_strides(t, strides)) return SUCCESS;
  }
  return BAD_PARAM;
}

int cudnnSetFilterNdDescriptor(void *descriptor, int type, int layout, int rank, const int *extents) {
  struct tensor *t = descriptor;
  if (!fake_cudnn_size(type) || rank < 4 || rank > MOST || layout < 0 || layout > 1) return BAD_PARAM;
  t->type = type, t->rank = rank;
  memcpy(t->extents, extents, (size_t)rank * sizeof *extents);
  lay(t, layout);
  return SUCCESS;
}

int cudnnSetConvolutionNdDescriptor(void *descriptor, int rank, const int *before, const int *stride,
                                    const int *dilation, int mode, int type) {
  struct convolution *c = descriptor;
  if (type || mode != 1 || rank < 2 || rank > MOST - 2) return BAD_PARAM;
  for (int d = 0; d < rank; d++) c->before[d] = before[d], c->stride[d] = stride[d], c->dilation[d] = dilation[d];
  c->rank = rank, c->groups = 1;
  return SUCCESS;
}
int cudnnSetConvolutionMathType(void *descriptor, int math) {
  ((struct convolution *)descriptor)->math = math;
  return SUCCESS;
}
int cudnnSetConvolutionGroupCount(void *descriptor, int groups) {
  ((struct convolution *)descriptor)->groups = groups;
  return SUCCESS;
}

/* ---- Convolutions ---- */

int fake_cudnn_fit(const struct tensor *x, const struct tensor *w, const struct tensor *y,
                   const struct convolution *c) {
  if (x->rank != y->rank || w->rank != x->rank || c->rank != x->rank - 2) return BAD_PARAM;
  if (x->extents[0] != y->extents[0] || w->extents[1] * c->groups != x->extents[1] || w->extents[0] != y->extents[1])
    return BAD_PARAM;
  for (int d = 0; d < c->rank; d++) {
    int room = x->extents[d + 2] + 2 * c->before[d] - c->dilation[d] * (w->extents[d + 2] - 1) - 1;
    if (room < 0 || room / c->stride[d] + 1 != y->extents[d + 2]) return BAD_PARAM;
  }
  return SUCCESS;
}

static int check(const struct tensor *x, const struct tensor *w, const struct tensor *y, const struct convolution *c) {
  if (x->type != y->type || w->type != x->type || c->math != (x->type ? 1 : 3)) return BAD_PARAM;
  return fake_cudnn_fit(x, w, y, c);
}

/* Bytes that an algorithm works in. */
static int workspace_of(const struct tensor *w, int algorithm, size_t *bytes) {
  *bytes = algorithm == LAST_ALGORITHM ? (size_t)1 << 40 : 1000 * (size_t)algorithm;
  if (fake_cudnn_is_told("none") || algorithm > LAST_ALGORITHM) return NOT_SUPPORTED;
  return w->layout && algorithm > 2 ? NOT_SUPPORTED : SUCCESS;
}

int cudnnGetConvolutionForwardWorkspaceSize(void *handle, void *x, void *w, void *c, void *y, int algorithm,
                                            size_t *bytes) {
  int status = check(x, w, y, c);
  return !handle || status ? BAD_PARAM : workspace_of(w, algorithm, bytes);
}
int cudnnGetConvolutionBackwardDataWorkspaceSize(void *handle, void *w, void *dy, void *c, void *dx, int algorithm,
                                                 size_t *bytes) {
  int status = check(dx, w, dy, c);
  return !handle || status ? BAD_PARAM : workspace_of(w, algorithm, bytes);
}

/* The next place in the extents; 0: there is none. */
static int advance(const int *extents, int rank, int *at) {
  for (int d = rank - 1; d >= 0; d--) {
    if (++at[d] < extents[d]) return 1;
    at[d] = 0;
  }
  return 0;
}

static long long offset_of(const struct tensor *t, const int *at) {
  long long offset = 0;
  for (int d = 0; d < t->rank; d++) offset += (long long)at[d] * t->strides[d];
  return offset;
}

/* Where a tap of the filter at a place of y reads x; 0: beside it. */
static int reads(const struct tensor *x, const struct tensor *w, const struct tensor *y, const struct convolution *c,
                 const int *y_at, const int *w_at, int *x_at) {
  x_at[0] = y_at[0];
  x_at[1] = y_at[1] / (y->extents[1] / c->groups) * w->extents[1] + w_at[1];
  for (int d = 0; d < c->rank; d++) {
    x_at[d + 2] = y_at[d + 2] * c->stride[d] + w_at[d + 2] * c->dilation[d] - c->before[d];
    if (x_at[d + 2] < 0 || x_at[d + 2] >= x->extents[d + 2]) return 0;
  }
  return 1;
}

/* Each product of the convolution once: adds x by w to y, or, backwards, y by w to x. */
static void convolve(const struct tensor *x, float *x_data, const struct tensor *w, const float *w_data,
                     const struct tensor *y, float *y_data, const struct convolution *c, int backward) {
  int y_at[MOST] = {0};
  do {
    int w_at[MOST] = {y_at[1]}, taps[MOST], x_at[MOST];
    memcpy(taps, w->extents, sizeof taps);
    do {
      if (!reads(x, w, y, c, y_at, w_at, x_at)) continue;
      float *sum = backward ? &x_data[offset_of(x, x_at)] : &y_data[offset_of(y, y_at)];
      *sum += w_data[offset_of(w, w_at)] * (backward ? y_data[offset_of(y, y_at)] : x_data[offset_of(x, x_at)]);
    } while (advance(taps + 1, w->rank - 1, w_at + 1));
  } while (advance(y->extents, y->rank, y_at));
}

size_t fake_cudnn_count(const struct tensor *t) {
  size_t count = 1;
  for (int d = 0; d < t->rank; d++) count *= (size_t)t->extents[d];
  return count;
}

static tir_type type_of(const struct tensor *t) {
  return t->type == 0 ? TIR_T_F32 : t->type == 2 ? TIR_TYPE(TIR_FLOAT, 16, 1) : TIR_TYPE(TIR_BFLOAT, 16, 1);
}

/* Elements as float32, in memory of their own. */
static float *widen(const struct tensor *t, const void *data) {
  float *wide = malloc(fake_cudnn_count(t) * sizeof *wide);
  if (!wide) abort();
  for (size_t i = 0; i < fake_cudnn_count(t); i++)
    wide[i] = (float)tir_fetch_element(type_of(t), (const char *)data + i * fake_cudnn_size(t->type));
  return wide;
}

/* Before a convolution of `in` whose outcome is `t`: its status, and the time that it takes. */
static int begin(const void *in, const struct tensor *t, void *data, const struct tensor *w, int algorithm,
                 void *workspace, size_t bytes) {
  size_t needed;
  int status = workspace_of(w, algorithm, &needed);
  if (status || needed > bytes || w->layout != t->layout) return status ? status : BAD_PARAM;
  if (fake_cudnn_is_told("fails")) return EXECUTION_FAILED;
  memset(workspace, 0x77, needed + (fake_cudnn_is_told("past") && algorithm == 1));
  memset(data, 0, fake_cudnn_count(t) * fake_cudnn_size(t->type));
  fake_cudnn_pass((algorithm == 1 ? 1 : 2 + algorithm) + !w->layout, in);
  return SUCCESS;
}

static int finish(const struct tensor *t, float *data) {
  if (fake_cudnn_is_told("wrong")) data[fake_cudnn_count(t) / 2] += 100;
  return SUCCESS;
}

/* Short floats are added in float32. */
void fake_cudnn_convolve(const struct tensor *x, void *x_data, const struct tensor *w, const void *w_data,
                         const struct tensor *y, void *y_data, const struct convolution *c, int backward) {
  float *wide_x = widen(x, x_data), *wide_w = widen(w, w_data), *wide_y = widen(y, y_data);
  const struct tensor *t = backward ? x : y;
  float *result = backward ? wide_x : wide_y;
  char *data = backward ? x_data : y_data;
  convolve(x, wide_x, w, wide_w, y, wide_y, c, backward);
  finish(t, result);
  for (size_t i = 0; i < fake_cudnn_count(t); i++)
    tir_put_element(type_of(t), data + i * fake_cudnn_size(t->type), result[i]);
  free(wide_x);
  free(wide_w);
  free(wide_y);
}

int cudnnConvolutionForward(void *handle, const float *alpha, void *x, const void *x_data, void *w, const void *w_data,
                            void *c, int algorithm, void *workspace, size_t bytes, const float *beta, void *y,
                            void *y_data) {
  int status = !handle || *alpha != 1 || *beta != 0 ? BAD_PARAM : check(x, w, y, c);
  if (!status) status = begin(x_data, y, y_data, w, algorithm, workspace, bytes);
  if (!status) fake_cudnn_convolve(x, (void *)(size_t)x_data, w, w_data, y, y_data, c, 0);
  return status;
}

int cudnnConvolutionBackwardData(void *handle, const float *alpha, void *w, const void *w_data, void *dy,
                                 const void *dy_data, void *c, int algorithm, void *workspace, size_t bytes,
                                 const float *beta, void *dx, void *dx_data) {
  int status = !handle || *alpha != 1 || *beta != 0 ? BAD_PARAM : check(dx, w, dy, c);
  if (!status) status = begin(dy_data, dx, dx_data, w, algorithm, workspace, bytes);
  if (!status) fake_cudnn_convolve(dx, dx_data, w, w_data, dy, (void *)(size_t)dy_data, c, 1);
  return status;
}

/* ---- Rows ---- */

/* By instance or by channel: the same where no dimensions follow these. */
int cudnnSoftmaxForward(void *handle, int algorithm, int mode, const float *alpha, void *x, const float *x_data,
                        const float *beta, void *y, float *y_data) {
  const struct tensor *t = x, *result = y;
  if (t->type || result->type) return BAD_PARAM;
  if (!handle || algorithm != 1 || *alpha != 1 || *beta != 0 || t->extents[2] * t->extents[3] != 1) return BAD_PARAM;
  if (fake_cudnn_is_told("fails") || fake_cudnn_is_told("none"))
    return fake_cudnn_is_told("none") ? NOT_SUPPORTED : EXECUTION_FAILED;
  for (int row = 0; row < t->extents[0]; row++) {
    const float *from = x_data + (long long)row * t->strides[0];
    float *to = y_data + (long long)row * result->strides[0], most = from[0];
    double sum = 0;
    for (int i = 0; i < t->extents[1]; i++) most = fmaxf(most, from[i]);
    for (int i = 0; i < t->extents[1]; i++) sum += exp((double)from[i] - most);
    for (int i = 0; i < t->extents[1]; i++) to[i] = (float)(exp((double)from[i] - most) / sum);
  }
  fake_cudnn_pass(mode ? 1 : 3, x_data);
  return finish(y, y_data);
}

int cudnnSetReduceTensorDescriptor(void *descriptor, int op, int type, int nan, int indices, int index_type) {
  *(int *)descriptor = op;
  return type || indices || index_type || nan != 1 ? BAD_PARAM : SUCCESS;
}
int cudnnGetReductionWorkspaceSize(void *handle, const int *op, void *a, void *c, size_t *bytes) {
  *bytes = 4096;
  if (fake_cudnn_is_told("none")) return NOT_SUPPORTED;
  return handle && *op == 7 && a && c ? SUCCESS : BAD_PARAM;
}
int cudnnReduceTensor(void *handle, const int *op, void *indices, size_t index_bytes, void *workspace, size_t bytes,
                      const float *alpha, void *a, const float *a_data, const float *beta, void *c, float *c_data) {
  const struct tensor *from = a, *to = c;
  if (!handle || *op != 7 || indices || index_bytes || bytes < 4096 || *alpha != 1 || *beta != 0) return BAD_PARAM;
  if (fake_cudnn_is_told("fails")) return EXECUTION_FAILED;
  memset(workspace, 0x77, 4096);
  for (int row = 0; row < to->extents[0]; row++) {
    double sum = 0;
    for (int i = 0; i < from->extents[1]; i++) {
      double x = a_data[(long long)row * from->strides[0] + i];
      sum += x * x;
    }
    c_data[row] = (float)sqrt(sum);
  }
  fake_cudnn_pass(1, a_data);
  return finish(c, c_data);
}

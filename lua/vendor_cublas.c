/* cuBLAS: products of matrices on a device, from what the host has, by its clock. It uses the context that kernels run in.
 * Source: cuBLAS Library, cublas_v2.h; rows lie one after another here, and columns there, so that it is given transposes. */
#include "jit/jit.h"
#include "vendor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int create(void **handle);
typedef int property(int which, int *value);
typedef int set_stream(void *handle, void *stream);
typedef int sgemm(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a, int lda,
                  long long stride_a, const float *b, int ldb, long long stride_b, const float *beta, float *c, int ldc,
                  long long stride_c, int batch);

typedef int gemm_ex(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, int type_a,
                    int lda, long long stride_a, const void *b, int type_b, int ldb, long long stride_b,
                    const void *beta, void *c, int type_c, int ldc, long long stride_c, int batch, int compute,
                    int algorithm);

enum { COMPUTE_FLOAT = 68, DEFAULT_ALGORITHM = -1 };

struct cublas {
  sgemm *multiply;
  gemm_ex *multiply_short; /* NULL: it has none */
  set_stream *set_stream;
  void *handle;
};

static void *start(void *library, int threads, ms_error *err) {
  create *make = (create *)dlsym(library, "cublasCreate_v2");
  sgemm *multiply = (sgemm *)dlsym(library, "cublasSgemmStridedBatched");
  set_stream *on = (set_stream *)dlsym(library, "cublasSetStream_v2");
  void *handle = NULL;
  (void)threads;
  if (!make || !multiply || !on)
    return ms_fail(err, MS_NOT_LAUNCHED, "it has no %s",
                   !make       ? "cublasCreate_v2"
                   : !multiply ? "cublasSgemmStridedBatched"
                               : "cublasSetStream_v2"),
           NULL;
  int status = make(&handle);
  if (status) return ms_fail(err, MS_NOT_LAUNCHED, "cublasCreate_v2 gives %d", status), NULL;
  struct cublas *c = malloc(sizeof *c);
  if (!c) abort();
  *c = (struct cublas){multiply, (gemm_ex *)dlsym(library, "cublasGemmStridedBatchedEx"), on, handle};
  return c;
}

static void describe(void *library, char *text, size_t size) {
  property *get = (property *)dlsym(library, "cublasGetProperty");
  int version[3] = {0};
  for (int i = 0; i < 3 && get; i++) get(i, &version[i]);
  snprintf(text, size, "cuBLAS %d.%d.%d", version[0], version[1], version[2]);
}

/* ---- Calls ---- */

struct call {
  struct cublas *cublas;
  struct jit_target target;
  struct tir_arg buffers[VENDOR_TENSORS];
  struct jit_routine *routine; /* NULL: it was not run yet */
  int status;                  /* of the last product */
  int types[VENDOR_TENSORS];   /* cudaDataType */
  int rows, columns, depth, batch;
  bool transposed[2]; /* the source, the weights: columns lie one after another */
};

/* cudaDataType. */
enum { R_32F = 0, R_16F = 2, R_16BF = 14 };
static int type_of(tir_type t) { return t == TIR_T_F32 ? R_32F : tir_type_code(t) == TIR_BFLOAT ? R_16BF : R_16F; }

static bool is_short(const struct call *c) { return c->types[VENDOR_SOURCE] != R_32F; }

/* Short floats are summed in float32, on tensor cores; float32 is multiplied as such, not as TF32. */
static bool multiply(void *data, void *const *buffers, void *stream) {
  struct call *c = data;
  static const float one = 1, zero = 0;
  long long m = c->rows, n = c->columns, k = c->depth;
  const struct cublas *b = c->cublas;
  int op_a = c->transposed[VENDOR_WEIGHTS], op_b = c->transposed[VENDOR_SOURCE];
  int lda = (int)(op_a ? k : n), ldb = (int)(op_b ? m : k);
  c->status = b->set_stream(b->handle, stream);
  if (c->status) return false;
  c->status =
      is_short(c)
          ? b->multiply_short(b->handle, op_a, op_b, (int)n, (int)m, (int)k, &one, buffers[VENDOR_WEIGHTS],
                              c->types[VENDOR_WEIGHTS], lda, k * n, buffers[VENDOR_SOURCE], c->types[VENDOR_SOURCE],
                              ldb, m * k, &zero, buffers[VENDOR_RESULT], c->types[VENDOR_RESULT], (int)n, m * n,
                              c->batch, COMPUTE_FLOAT, DEFAULT_ALGORITHM)
          : b->multiply(b->handle, op_a, op_b, (int)n, (int)m, (int)k, &one, buffers[VENDOR_WEIGHTS], lda, k * n,
                        buffers[VENDOR_SOURCE], ldb, m * k, &zero, buffers[VENDOR_RESULT], (int)n, m * n, c->batch);
  return !c->status;
}

static bool is_there(struct call *c, ms_error *err) {
  if (!c->routine) c->routine = jit_routine_new(&c->target, c->buffers, VENDOR_TENSORS, multiply, c, err);
  return c->routine != NULL;
}

static bool attempt(void *data, ms_error *err) {
  struct call *c = data;
  c->status = 0;
  if (is_there(c, err) && jit_routine_run(c->routine, err)) return true;
  return c->status && ms_fail(err, MS_NOT_LAUNCHED, "%s gives %d",
                              is_short(c) ? "cublasGemmStridedBatchedEx" : "cublasSgemmStridedBatched", c->status);
}

static double sample(void *data, uint32_t calls) {
  return is_there(data, NULL) ? jit_routine_sample(((struct call *)data)->routine, calls, NULL) : -1;
}

static void release(void *data) {
  jit_routine_free(((struct call *)data)->routine);
  free(data);
}

/* Matrices one after another, without gaps, their rows or their columns side by side. */
static bool is_matrices(const struct vendor_tensor *t, bool *transposed) {
  int64_t rows = t->extents[t->rank - 2], columns = t->extents[t->rank - 1], stride = rows * columns;
  const int64_t *s = &t->strides[t->rank - 2];
  for (int d = t->rank - 2; d-- > 0; stride *= t->extents[d])
    if (t->extents[d] != 1 && t->strides[d] != stride) return false;
  bool by_rows = (columns == 1 || s[1] == 1) && (rows == 1 || s[0] == columns);
  *transposed = !by_rows;
  return stride <= INT32_MAX && (by_rows || ((rows == 1 || s[0] == 1) && (columns == 1 || s[1] == rows)));
}

static size_t bytes_of(const struct vendor_tensor *t) {
  size_t bytes = (size_t)tir_type_bits(t->type) / 8;
  for (int d = 0; d < t->rank; d++) bytes *= (size_t)t->extents[d];
  return bytes;
}

static bool prepare(void *started, const struct vendor_work *work, struct vendor_call *out) {
  const struct vendor_tensor *y = &work->tensors[VENDOR_RESULT], *x = &work->tensors[VENDOR_SOURCE];
  bool transposed[VENDOR_TENSORS];
  if (work->op != VENDOR_PRODUCT || !work->target) return false;
  for (int i = 0; i < VENDOR_TENSORS; i++)
    if (work->tensors[i].rank < 2 || !is_matrices(&work->tensors[i], &transposed[i])) return false;
  if (transposed[VENDOR_RESULT] || y->type != TIR_T_F32 || work->tensors[VENDOR_WEIGHTS].type != x->type) return false;
  if (x->type != TIR_T_F32 && !((const struct cublas *)started)->multiply_short) return false;
  struct call *c = calloc(1, sizeof *c);
  if (!c) abort();
  *c = (struct call){.cublas = started,
                     .target = *work->target,
                     .rows = (int)y->extents[y->rank - 2],
                     .columns = (int)y->extents[y->rank - 1],
                     .depth = (int)x->extents[x->rank - 1],
                     .batch = 1,
                     .transposed = {transposed[VENDOR_SOURCE], transposed[VENDOR_WEIGHTS]}};
  for (int d = 0; d < y->rank - 2; d++) c->batch *= (int)y->extents[d];
  for (int i = 0; i < VENDOR_TENSORS; i++) {
    c->buffers[i] = (struct tir_arg){.data = work->tensors[i].data, .bytes = bytes_of(&work->tensors[i])};
    c->types[i] = type_of(work->tensors[i].type);
  }
  *out = (struct vendor_call){.attempt = attempt, .sample = sample, .release = release, .data = c};
  /* cppcheck-suppress memleak ; the call releases it */
  return true;
}

const struct vendor vendor_cublas = {"cuBLAS", "libcublas.so", start, describe, prepare, .short_floats = true};

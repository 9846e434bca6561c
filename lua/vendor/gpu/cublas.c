/* cuBLAS: products of matrices on a device, from what the host has, by its clock. It uses the context that kernels run
 * in.
 * Source: cuBLAS Library, cublas_v2.h; rows lie one after another here, and columns there, so that it is given
 * transposes. */
#include "product.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

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
  struct vendor_product product;
  struct jit_routine *routine; /* NULL: it was not run yet */
  int status;                  /* of the last product */
};

static bool is_short(const struct call *c) { return c->product.types[VENDOR_SOURCE] != VENDOR_R_32F; }

/* Short floats are summed in float32, on tensor cores; float32 is multiplied as such, not as TF32. */
static bool multiply(void *data, void *const *buffers, void *stream) {
  struct call *c = data;
  static const float one = 1, zero = 0;
  const struct vendor_product *p = &c->product;
  long long m = p->rows, n = p->columns, k = p->depth;
  const struct cublas *b = c->cublas;
  assert(m > 0 && n > 0 && k > 0 && p->batch > 0 && (!is_short(c) || b->multiply_short));
  int op_a = p->transposed[VENDOR_WEIGHTS], op_b = p->transposed[VENDOR_SOURCE];
  int lda = (int)(op_a ? k : n), ldb = (int)(op_b ? m : k);
  c->status = b->set_stream(b->handle, stream);
  if (c->status) return false;
  c->status =
      is_short(c)
          ? b->multiply_short(b->handle, op_a, op_b, (int)n, (int)m, (int)k, &one, buffers[VENDOR_WEIGHTS],
                              p->types[VENDOR_WEIGHTS], lda, k * n, buffers[VENDOR_SOURCE], p->types[VENDOR_SOURCE],
                              ldb, m * k, &zero, buffers[VENDOR_RESULT], p->types[VENDOR_RESULT], (int)n, m * n,
                              p->batch, COMPUTE_FLOAT, DEFAULT_ALGORITHM)
          : b->multiply(b->handle, op_a, op_b, (int)n, (int)m, (int)k, &one, buffers[VENDOR_WEIGHTS], lda, k * n,
                        buffers[VENDOR_SOURCE], ldb, m * k, &zero, buffers[VENDOR_RESULT], (int)n, m * n, p->batch);
  return !c->status;
}

static bool is_there(struct call *c, ms_error *err) {
  if (!c->routine) c->routine = jit_routine_new(&c->target, c->product.buffers, VENDOR_TENSORS, multiply, c, err);
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

static bool prepare(void *started, const struct vendor_work *work, struct vendor_call *out) {
  struct vendor_product product;
  if (!vendor_product_of(work, &product)) return false;
  bool is_short = product.types[VENDOR_SOURCE] != VENDOR_R_32F;
  if (is_short && !((const struct cublas *)started)->multiply_short) return false;
  struct call *c = calloc(1, sizeof *c);
  if (!c) abort();
  *c = (struct call){.cublas = started, .target = *work->target, .product = product};
  *out = (struct vendor_call){.attempt = attempt, .sample = sample, .release = release, .data = c};
  snprintf(out->routine, sizeof out->routine, "%s",
           is_short ? "cublasGemmStridedBatchedEx" : "cublasSgemmStridedBatched");
  /* cppcheck-suppress memleak ; the call releases it */
  return true;
}

const struct vendor vendor_cublas = {"cuBLAS", "libcublas.so", start, describe, prepare, .short_floats = true};

/* cuBLAS without a GPU: products of matrices that lie column after column, on the memory of the tests' driver, whose
 * clock it moves on. FAKE_CUBLAS: `wrong`, an element is; `fails`, no product is begun. FAKE_CUBLAS_TIME: milliseconds
 * of a call; unset: 8. */
#include "product.h"

#include <string.h>

void fake_cuda_pass(double milliseconds);
void fake_cuda_on(void *stream);
double fake_cuda_ease(const void *data);

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}

int cublasCreate_v2(void **handle) {
  static int one;
  *handle = &one;
  return 0;
}

int cublasSetStream_v2(void *handle, void *stream) {
  fake_cuda_on(stream);
  return handle ? 0 : 1;
}

int cublasGetProperty(int which, int *value) {
  static const int version[] = {12, 4, 5};
  *value = version[which];
  return 0;
}

static int multiply(int m, int n, int k, int batch, const struct fake_matrices *a, const struct fake_matrices *b,
                    const struct fake_matrices *c) {
  if (a->ld < (a->transposed ? k : m) || b->ld < (b->transposed ? n : k) || c->ld < m) return 7;
  if (!strcmp(setting("FAKE_CUBLAS", ""), "fails")) return 13;
  fake_multiply(m, n, k, batch, a, b, c, !strcmp(setting("FAKE_CUBLAS", ""), "wrong") ? 100 : 0);
  fake_cuda_pass(atof(setting("FAKE_CUBLAS_TIME", "8")) * fake_cuda_ease(a->data));
  return 0;
}

int cublasSgemmStridedBatched(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a,
                              int lda, long long stride_a, const float *b, int ldb, long long stride_b,
                              const float *beta, float *c, int ldc, long long stride_c, int batch) {
  const struct fake_matrices of_a = {0, a, lda, stride_a, op_a}, of_b = {0, b, ldb, stride_b, op_b},
                             of_c = {0, c, ldc, stride_c, 0};
  return !handle || *alpha != 1 || *beta != 0 ? 7 : multiply(m, n, k, batch, &of_a, &of_b, &of_c);
}

int cublasGemmStridedBatchedEx(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const void *a,
                               int type_a, int lda, long long stride_a, const void *b, int type_b, int ldb,
                               long long stride_b, const float *beta, void *c, int type_c, int ldc, long long stride_c,
                               int batch, int compute, int algorithm) {
  const struct fake_matrices of_a = {type_a, a, lda, stride_a, op_a}, of_b = {type_b, b, ldb, stride_b, op_b},
                             of_c = {type_c, c, ldc, stride_c, 0};
  if (type_a != type_b || (type_a != 2 && type_a != 14) || compute != 68 || algorithm != -1) return 15;
  if (type_c != 0 && type_c != type_a) return 15;
  return !handle || *alpha != 1 || *beta != 0 ? 7 : multiply(m, n, k, batch, &of_a, &of_b, &of_c);
}

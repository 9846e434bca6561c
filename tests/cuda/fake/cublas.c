/* cuBLAS without a GPU: products of matrices that lie column after column, on the memory of the tests' driver, whose clock
 * it moves on. FAKE_CUBLAS: `wrong`, an element is; `fails`, no product is begun. FAKE_CUBLAS_TIME: milliseconds of a
 * call; unset: 8. */
#include <stdlib.h>
#include <string.h>

void fake_cuda_pass(double milliseconds);

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}

int cublasCreate_v2(void **handle) {
  static int one;
  *handle = &one;
  return 0;
}

int cublasGetProperty(int which, int *value) {
  static const int version[] = {12, 4, 5};
  *value = version[which];
  return 0;
}

static float element(const float *a, int ld, int transposed, int row, int column) {
  return transposed ? a[column + (long long)row * ld] : a[row + (long long)column * ld];
}

int cublasSgemmStridedBatched(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const float *a,
                              int lda, long long stride_a, const float *b, int ldb, long long stride_b,
                              const float *beta, float *c, int ldc, long long stride_c, int batch) {
  if (!handle || lda < (op_a ? k : m) || ldb < (op_b ? n : k) || ldc < m || *beta != 0) return 7;
  if (!strcmp(setting("FAKE_CUBLAS", ""), "fails")) return 13;
  for (int x = 0; x < batch; x++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        double sum = 0;
        for (int l = 0; l < k; l++)
          sum += (double)element(a + x * stride_a, lda, op_a, i, l) * element(b + x * stride_b, ldb, op_b, l, j);
        c[x * stride_c + i + (long long)j * ldc] = (float)(*alpha * sum);
      }
  if (!strcmp(setting("FAKE_CUBLAS", ""), "wrong")) c[m * n / 2] += 100;
  fake_cuda_pass(atof(setting("FAKE_CUBLAS_TIME", "8")));
  return 0;
}

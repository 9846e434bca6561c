/* cuBLAS without a GPU: products of matrices that lie column after column, on the memory of the tests' driver, whose clock
 * it moves on. FAKE_CUBLAS: `wrong`, an element is; `fails`, no product is begun. FAKE_CUBLAS_TIME: milliseconds of a
 * call; unset: 8. */
#include <math.h>
#include <stdlib.h>
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

static float element(const float *a, int ld, int transposed, int row, int column) {
  return transposed ? a[column + (long long)row * ld] : a[row + (long long)column * ld];
}

/* Elements of cudaDataType: 0, float32; 2, float16; 14, bfloat16. */
static float short_element(const unsigned short *a, int type, long long at) {
  unsigned bits = a[at];
  if (type == 14) {
    float value;
    bits <<= 16;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  int exponent = (int)(bits >> 10 & 31);
  float value = ldexpf((float)((bits & 1023) + (exponent ? 1024 : 0)), (exponent ? exponent : 1) - 25);
  return bits >> 15 ? -value : value;
}

/* As float32, in memory of its own. */
static float *widen(const void *a, int type, long long count) {
  float *wide = malloc((size_t)count * sizeof *wide);
  if (!wide) abort();
  for (long long i = 0; i < count; i++) wide[i] = short_element(a, type, i);
  return wide;
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
  fake_cuda_pass(atof(setting("FAKE_CUBLAS_TIME", "8")) * fake_cuda_ease(a));
  return 0;
}

int cublasGemmStridedBatchedEx(void *handle, int op_a, int op_b, int m, int n, int k, const float *alpha, const void *a,
                               int type_a, int lda, long long stride_a, const void *b, int type_b, int ldb,
                               long long stride_b, const float *beta, float *c, int type_c, int ldc, long long stride_c,
                               int batch, int compute, int algorithm) {
  if (type_a != type_b || (type_a != 2 && type_a != 14) || type_c != 0 || compute != 68 || algorithm != -1) return 15;
  float *wide_a = widen(a, type_a, stride_a * batch), *wide_b = widen(b, type_b, stride_b * batch);
  int status = cublasSgemmStridedBatched(handle, op_a, op_b, m, n, k, alpha, wide_a, lda, stride_a, wide_b, ldb,
                                         stride_b, beta, c, ldc, stride_c, batch);
  free(wide_a);
  free(wide_b);
  return status;
}

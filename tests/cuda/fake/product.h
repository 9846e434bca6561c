/* Products of matrices that lie column after column, of float32, float16 or bfloat16, added in double: what the tests'
 * cuBLAS and cuBLASLt compute. */
#ifndef FAKE_PRODUCT_H
#define FAKE_PRODUCT_H

#include "tir/tir.h"

#include <stdlib.h>

/* Elements of cudaDataType: 0, float32; 2, float16; 14, bfloat16; others are no types here. */
static inline tir_type fake_type(int type) {
  return type == 0 ? TIR_T_F32 : type == 2 ? TIR_TYPE(TIR_FLOAT, 16, 1) : TIR_TYPE(TIR_BFLOAT, 16, 1);
}

struct fake_matrices {
  int type;
  const void *data;
  long long ld, stride; /* columns are so far apart, and matrices */
  int transposed;
};

static inline double fake_element(const struct fake_matrices *m, int matrix, int row, int column) {
  long long at = matrix * m->stride + (m->transposed ? column + row * m->ld : row + column * m->ld);
  return tir_fetch_element(fake_type(m->type), (const char *)m->data + at * (m->type ? 2 : 4));
}

/* c = a b, of m x k and k x n. */
static inline void fake_multiply(int m, int n, int k, int batch, const struct fake_matrices *a,
                                 const struct fake_matrices *b, const struct fake_matrices *c, double more) {
  for (int x = 0; x < batch; x++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        double sum = x == 0 && (long long)j * m + i == (long long)m * n / 2 ? more : 0;
        for (int l = 0; l < k; l++) sum += fake_element(a, x, i, l) * fake_element(b, x, l, j);
        char *to = (char *)(size_t)c->data + (x * c->stride + i + j * c->ld) * (c->type ? 2 : 4);
        tir_put_element(fake_type(c->type), to, sum);
      }
}

#endif

/* Products of matrices, in the words of libraries whose matrices lie column after column. */
#include "product.h"

static int type_of(tir_type t) {
  return t == TIR_T_F32 ? VENDOR_R_32F : tir_type_code(t) == TIR_BFLOAT ? VENDOR_R_16BF : VENDOR_R_16F;
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

bool vendor_product_of(const struct vendor_work *work, struct vendor_product *out) {
  const struct vendor_tensor *y = &work->tensors[VENDOR_RESULT], *x = &work->tensors[VENDOR_SOURCE];
  bool transposed[VENDOR_TENSORS];
  if (work->op != VENDOR_PRODUCT || !work->target) return false;
  for (int i = 0; i < VENDOR_TENSORS; i++)
    if (work->tensors[i].rank < 2 || !is_matrices(&work->tensors[i], &transposed[i])) return false;
  if (transposed[VENDOR_RESULT] || work->tensors[VENDOR_WEIGHTS].type != x->type) return false;
  if (y->type != TIR_T_F32 && y->type != x->type) return false;
  *out = (struct vendor_product){.rows = (int)y->extents[y->rank - 2],
                                 .columns = (int)y->extents[y->rank - 1],
                                 .depth = (int)x->extents[x->rank - 1],
                                 .batch = 1,
                                 .transposed = {transposed[VENDOR_SOURCE], transposed[VENDOR_WEIGHTS]}};
  for (int d = 0; d < y->rank - 2; d++) out->batch *= (int)y->extents[d];
  assert((int64_t)out->batch * out->rows * out->columns <= INT32_MAX); /* is_matrices */
  for (int i = 0; i < VENDOR_TENSORS; i++) {
    out->buffers[i] = (struct tir_arg){.data = work->tensors[i].data, .bytes = bytes_of(&work->tensors[i])};
    out->types[i] = type_of(work->tensors[i].type);
  }
  return true;
}

/* A product of matrices as cuBLAS and cuBLASLt take it. Internal to lua. */
#ifndef MSCHED_LUA_VENDOR_PRODUCT_H
#define MSCHED_LUA_VENDOR_PRODUCT_H

#include "jit/jit.h"
#include "lua/vendor/vendor.h"

struct vendor_product {
  int rows, columns, depth, batch;
  bool transposed[2];                     /* the source, the weights: columns lie one after another */
  int types[VENDOR_TENSORS];              /* cudaDataType */
  struct tir_arg buffers[VENDOR_TENSORS]; /* as the host has them */
};
/* Of float32, or of short floats whose sums are float32, given as such or rounded to the type that goes in. False:
 * these libraries multiply no matrices that lie so, or of these types. */
bool vendor_product_of(const struct vendor_work *work, struct vendor_product *out);

/* cudaDataType. */
enum { VENDOR_R_32F = 0, VENDOR_R_16F = 2, VENDOR_R_16BF = 14 };

#endif

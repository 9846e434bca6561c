/* Tensors as CUDA's driver describes them for TMA bulk tensor copies (tir's tensor_copy, im2col_copy). Internal to
 * jit. Source: CUDA Driver API, "Tensor Map Object Management". */
#ifndef MSCHED_JIT_TENSOR_MAP_H
#define MSCHED_JIT_TENSOR_MAP_H

#include "jit/cuda/device/driver.h"

/* What cuTensorMapEncodeTiled is given: dimensions innermost first, bytes from one to the next for all but the
 * first. Or cuTensorMapEncodeIm2col: the box has its channels first and its pixels last; corners and steps are of the
 * dimensions between, in the same order. */
struct tensor_map {
  uint32_t type, rank, swizzle; /* CUtensorMapDataType, CUtensorMapSwizzle */
  uint32_t box[TIR_BOX_MOST_RANK];
  uint32_t im2col, step[TIR_PIXELS_MOST_RANK];
  int32_t lower[TIR_PIXELS_MOST_RANK], upper[TIR_PIXELS_MOST_RANK];
  uint64_t extents[TIR_BOX_MOST_RANK], strides[TIR_BOX_MOST_RANK];
};
enum { TENSOR_MAP_BYTES = sizeof(CUtensorMap), TENSOR_MAP_ALIGNMENT = _Alignof(CUtensorMap) };

/* The maps that the copies below a statement need, each once, in order of text, and the buffers that they are of.
 * Returns how many; at most `most` are given. */
uint32_t tensor_maps_of(const struct tir *ir, tir_stmt top, struct tensor_map *out, tir_buffer *buffers, uint32_t most);
enum { TENSOR_MAPS_MOST = 16 }; /* of a kernel */

/* The step of a map's places in a dimension, innermost first. */
uint32_t tensor_map_step(const struct tensor_map *map, uint32_t d);

/* The map of one tensor_copy or im2col_copy; false: the call is none, or its target has no canonical layout. */
bool tensor_map_of(const struct tir *ir, tir_expr call, struct tensor_map *out, tir_buffer *buffer);

/* Writes C that fills `name`, TENSOR_MAP_BYTES bytes, for the address `at` and, where that fails, does `fails`. */
void tensor_map_print(FILE *out, const struct tensor_map *map, const char *name, const char *at, const char *fails);
/* The declaration of what that calls. */
#define TENSOR_MAP_DECLARATION                                                                                         \
  "int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *at, const uint64_t *extents,\n"                \
  "                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,\n"  \
  "                           int swizzle, int promotion, int fill);\n"                                                \
  "int cuTensorMapEncodeIm2col(void *map, int type, uint32_t rank, void *at, const uint64_t *extents,\n"               \
  "                            const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,\n"      \
  "                            uint32_t pixels, const uint32_t *steps, int interleave, int swizzle, int promotion,\n"  \
  "                            int fill);\n"

#endif

/* What the files of CUDA's dialect share. Internal to jit/cuda/emit: others print by the dialect's functions (emit_c.h). */
#ifndef MSCHED_JIT_EMIT_CUDA_H
#define MSCHED_JIT_EMIT_CUDA_H

#include "jit/c/emit_c.h"

/* emit_tensor.c: fragments of tensor units */
bool emit_c_fragment(struct emit_c *e, tir_buffer buffer, uint64_t elements); /* declares it; false: it is none */
bool emit_c_tensor_call(struct emit_c *e, tir_expr call);                     /* writes it; false: it is none */
void emit_c_pointer(struct emit_c *e, tir_expr pointer);                      /* of tvm_access_ptr */
/* The buffer that it leads into, and the element; TIR_NONE: refused. */
tir_buffer emit_c_pointed(struct emit_c *e, tir_expr pointer, tir_expr *offset);
bool emit_c_is_text(const struct emit_c *e, tir_expr x, const char *text);
/* emit_mma.c: the same, of mma.sync */
bool emit_c_mma_fragment(struct emit_c *e, tir_buffer buffer, uint64_t elements);
bool emit_c_mma_call(struct emit_c *e, tir_expr call);
/* A call that is known by its name and the number of its arguments, and what writes it. */
struct c_known_call {
  const char *name;
  uint32_t count;
  void (*write)(struct emit_c *e, const tir_expr *args);
};
/* Writes the call, if it is one of so many; false: it is none. */
bool emit_c_one_of(struct emit_c *e, tir_expr call, const struct c_known_call *known, size_t count);
const char *emit_c_matrices(struct emit_c *e, bool transposed); /* the function that loads four matrices */
/* emit_mma8.c: the same, of mma.sync of 16 x 8 x 8 */
bool emit_c_mma8_fragment(struct emit_c *e, tir_buffer buffer, uint64_t elements);
bool emit_c_mma8_call(struct emit_c *e, tir_expr call);
/* emit_wgmma.c: the same, of warp groups */
bool emit_c_wgmma_fragment(struct emit_c *e, tir_buffer buffer);
bool emit_c_wgmma_call(struct emit_c *e, tir_expr call);
void emit_c_shared_address(struct emit_c *e); /* the function ms_shared_address */
/* emit_pairs.c: floats of 16 bits, two at once */
bool emit_c_store_pairs(struct emit_c *e, tir_stmt store);            /* writes it; false: it is no such */
void emit_c_pair_lane(struct emit_c *e, tir_var v, struct c_chunk c); /* of a variable that holds such */
/* emit_tma_copy.c: copies of boxes of tensors, and what waits for them */
bool emit_c_box_call(struct emit_c *e, tir_expr call);
void emit_c_map_type(struct emit_c *e); /* the type ms_tensor_map */

#endif

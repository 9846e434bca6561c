/* What the files of CUDA's dialect share. Internal to jit/cuda/emit: others print by the dialect's functions
 * (emit_c.h). */
#ifndef MSCHED_JIT_EMIT_CUDA_H
#define MSCHED_JIT_EMIT_CUDA_H

#include "jit/c/emit_c.h"

/* What writes device calls, one function each, as the table tir/gpu/calls.def says. */
#define EMIT_WRITTEN(name) void emit_cuda_##name(struct emit_c *e, tir_expr call);
#define EMIT_WITHIN(name)
#define TIR_DEVICE_CALL(id, name, operands, type, by, run, text, ...) EMIT_##text(name)
#include "tir/gpu/calls.def"
#undef EMIT_WRITTEN
#undef EMIT_WITHIN

static inline const tir_expr *emit_cuda_operands(const struct emit_c *e, tir_expr call) {
  assert(tir_takes_operands(tir_device_call_of(e->ir, call), tir_at(e->ir, call)->count)); /* write_call asked */
  return tir_operands(e->ir, tir_at(e->ir, call)->operands);
}
/* The instruction that the call is, in PTX or CUDA C++. */
static inline const char *emit_cuda_spelling(enum tir_device_call which) {
  assert(which < TIR_DEVICE_CALLS && tir_device_calls[which].spelling);
  return tir_device_calls[which].spelling;
}

/* emit_tensor.c: fragments of tensor units */
bool emit_c_fragment(struct emit_c *e, tir_buffer buffer, uint64_t elements); /* declares it; false: it is none */
/* emit_pointer.c: what their calls need */
bool emit_cuda_has(struct emit_c *e, enum tir_capability_id which); /* the target; where not, refuses */
void emit_c_pointer(struct emit_c *e, tir_expr pointer);            /* of tvm_access_ptr */
/* The buffer that it leads into, and the element; TIR_NONE: refused. */
tir_buffer emit_c_pointed(struct emit_c *e, tir_expr pointer, tir_expr *offset);
bool emit_c_is_text(const struct emit_c *e, tir_expr x, const char *text);
/* emit_alignment.c: whether a run of elements stands at a multiple of its size; the values of variables */
bool emit_cuda_is_aligned(const struct emit_c *e, tir_expr index); /* of a run; a buffer of vectors: of such */
void emit_cuda_note_bound(struct emit_c *e);                       /* into e->bound, to be freed */
/* emit_fragment.c: what their kinds share */
struct emit_cuda_element {
  tir_type type;
  const char *name, *sum; /* in PTX */
};
const struct emit_cuda_element *emit_cuda_element_of(tir_type type); /* of operands; NULL: none are of that type */
/* What accumulators are in C and in asm; NULL: there are none of that type. */
const char *emit_cuda_sum_type(tir_type type, char *constraint);
const char *emit_c_matrices(struct emit_c *e, bool transposed); /* the function that loads four matrices */
/* Elements of 16 bits lie two in a register: the beginning of a call that gives one of them, or puts one there. */
const char *emit_c_half_of_pair(struct emit_c *e, bool puts);
/* Elements that lanes hold: one, and what sets it. */
void emit_c_held(struct emit_c *e, tir_expr data, tir_expr element);
void emit_c_hold(struct emit_c *e, tir_expr data, tir_expr element, tir_expr value);
/* Two neighbours of 8 bits, of a warp group's operand a. */
void emit_c_hold_pair(struct emit_c *e, tir_expr data, tir_expr element, const tir_expr values[2]);
/* emit_mma.c: the same, of mma.sync; the number of the lane */
const char *emit_c_lane_function(struct emit_c *e); /* the call of the function that gives it */
bool emit_c_mma_fragment(struct emit_c *e, tir_buffer buffer, uint64_t elements);
/* emit_mma8.c: the same, of mma.sync of 16 x 8 x 8 */
bool emit_c_mma8_fragment(struct emit_c *e, tir_buffer buffer, uint64_t elements);
/* emit_wgmma.c: the same, of warp groups */
bool emit_c_wgmma_fragment(struct emit_c *e, tir_buffer buffer);
/* emit_shared.c: addresses of shared memory */
void emit_cuda_declared(struct emit_c *e, tir_buffer buffer); /* makes a variable of its address, where that is named */
/* Writes the address, in bytes, that a pointer leads to; where units are larger, it is two operands: an address that
 * nothing but threads move, and a number of units to add. */
void emit_cuda_shared(struct emit_c *e, tir_expr pointer, int64_t unit);
/* The name of the function that makes such an address of a pointer. */
const char *emit_cuda_address_function(struct emit_c *e);
/* Writes the address, of 32 bits, where a buffer of shared memory begins. */
void emit_cuda_shared_base(struct emit_c *e, tir_buffer buffer);
/* Writes that, in bytes what of an offset leaves the buffer's swizzle as it is, `between`, and the rest of the offset
 * in elements: whole rounds, and within a row whole runs. Stage buffers and fragments then differ by what is added to
 * an address, and constants stand in the instruction. stride: of the fragment that begins at the offset, between its
 * rows; TIR_NONE: it is one access. */
void emit_cuda_place(struct emit_c *e, tir_buffer in, tir_expr offset, tir_expr stride, const char *between);
const char *emit_cuda_uniform(struct emit_c *e); /* the function of what is the same in all lanes of a warp */
/* emit_pairs.c: floats of 16 bits, two at once */
bool emit_c_store_pairs(struct emit_c *e, tir_stmt store);            /* writes it; false: it is no such */
void emit_c_pair_lane(struct emit_c *e, tir_var v, struct c_chunk c); /* of a variable that holds such */
/* emit_vectors.c: vectors that are computed */
bool emit_cuda_store_vector(struct emit_c *e, tir_stmt store);           /* writes it; false: nothing of it is whole */
bool emit_cuda_bind_vector(struct emit_c *e, tir_var v, tir_expr value); /* the same of a variable of a vector */
void emit_cuda_ahead_lane(struct emit_c *e, int number, struct c_chunk c); /* of what is loaded ahead */
/* Loads what a value loads whole, in front of a statement, in braces; false: there is none. The load's accesses are
 * ms_ahead_N_0 and so on until it ends; -1: it is no such. */
bool emit_cuda_begin_ahead(struct emit_c *e, tir_expr value, int lanes);
int emit_cuda_find_ahead(const struct emit_c *e, tir_buffer buffer, tir_expr index);
void emit_cuda_end_ahead(struct emit_c *e);

#endif

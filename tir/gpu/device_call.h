/* Device calls, by the table calls.def. Part of the public header tir.h; included from there only. */

enum tir_device_call {
#define TIR_DEVICE_CALL(id, ...) TIR_##id,
#include "calls.def"
  TIR_DEVICE_CALLS
};
enum tir_made_by { TIR_BY_THREAD, TIR_BY_ONE, TIR_BY_LANES, TIR_BY_WARP, TIR_BY_GROUP, TIR_BY_BLOCK };
enum tir_effect {
  TIR_DOES_NONE = 0,
  TIR_DOES_BARRIER = 1,       /* threads of the block synchronize */
  TIR_DOES_COPY_GROUP = 2,    /* groups of asynchronous copies: begun, or waited for */
  TIR_DOES_PRODUCT_GROUP = 4, /* the same of warp-group MMA */
  TIR_DOES_PHASE = 8,         /* the phase of a barrier in shared memory: arrived at, counted for, or waited for */
  TIR_DOES_FRAGMENT = 16,     /* registers of fragments, which operands number */
  TIR_DOES_CLUSTER = 32       /* memory of another block of the cluster is read */
};
struct tir_device_call_row {
  const char *name, *operands, *spelling, *doc;
  enum tir_made_by by;
  unsigned effects; /* bits of enum tir_effect */
  int needs;        /* enum tir_capability_id; -1: every device has it */
  int64_t counts;
};
extern const struct tir_device_call_row tir_device_calls[TIR_DEVICE_CALLS];

enum tir_device_call tir_device_call_named(const char *name); /* TIR_DEVICE_CALLS: there is none */
/* That of an expression; TIR_DEVICE_CALLS: it is none. */
enum tir_device_call tir_device_call_of(const struct tir *ir, tir_expr e);
bool tir_is_device_call(const struct tir *ir, tir_expr e, enum tir_device_call which);
bool tir_takes_operands(enum tir_device_call which, uint32_t count); /* so many */
/* The places of fragment number `i` among the operands, and of its number in the buffer. False: there are no more. */
bool tir_fragment_operand(enum tir_device_call which, uint32_t i, uint32_t *fragment, uint32_t *number);
tir_symbol tir_device_symbol(struct tir *ir, enum tir_device_call which); /* its name */

/* What calls get of memory: tvm_access_ptr(type, data, offset, extent, mask), a pointer to so many elements of a buffer
 * from the offset on, and what is done with them. */
enum { TIR_POINTER_READS = 1, TIR_POINTER_WRITES = 2 };
struct tir_pointer {
  tir_buffer buffer; /* TIR_NONE: its data are no buffer's */
  tir_expr type, data, offset, extent;
  int uses; /* bits of TIR_POINTER_READS …; -1: no constant says them */
};
/* Takes such a call apart; false: it is none. */
bool tir_pointer_of(const struct tir *ir, const struct tir_expr_node *n, struct tir_pointer *out);
tir_buffer tir_pointed(const struct tir *ir,
                       tir_expr e); /* the buffer; TIR_NONE: it is no such call, or leads to none */
tir_expr tir_new_pointer(struct tir *ir, tir_buffer buffer, tir_expr offset, tir_expr extent, int uses);
tir_expr tir_pointer_from(struct tir *ir, tir_expr pointer, tir_expr offset); /* the same from another offset on */

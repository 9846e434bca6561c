/* One question as the performing functions see it. Internal to vm. */
#ifndef MSCHED_VM_QUERY_H
#define MSCHED_VM_QUERY_H

#include "vm/table.h"

struct vm_argument {
  tir_stmt statement;
  int64_t integer;
  const char *text; /* valid until the pool grows */
};
struct vm_ask {
  struct tir *ir;
  const struct vm_intrinsics *intrinsics; /* the schedule's, besides those shipped */
  struct vm_argument args[VM_MOST_ARGUMENTS];
  struct vm_trace *pool; /* holds the answer's strings and lists */
  struct vm_value answer;
  ms_error *err;
};

/* What the iteration variables are that a loop drives, of the blocks below it. */
const char *vm_loop_iter_kind(const struct tir *ir, tir_loop loop);
/* How many elements the start of a block's region moves with a loop; false: it is not known. */
bool vm_stride_of(struct tir *ir, tir_block block, struct tir_region region, tir_loop loop, int64_t *out);
/* Whether all loads of a buffer in a block of stores are of one element, or of neighbours one after the other, between
 * multiples of VM_PIECE_LANES of the loop: as those of halves that change places. */
enum { VM_PIECE_LANES = 16 };
bool vm_moves_in_pieces(struct tir *ir, tir_block block, tir_buffer buffer, tir_loop loop);

#define QUERY(name, args, answer, performs, doc) bool vm_ask_##performs(struct vm_ask *q);
#include "vm/queries.def"
#undef QUERY

#endif

/* One question as the performing functions see it. Internal to vm. */
#ifndef MSCHED_VM_QUERY_H
#define MSCHED_VM_QUERY_H

#include "table.h"

enum { VM_MOST_ARGUMENTS = 4 };

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

#define QUERY(name, args, answer, performs, doc) bool vm_ask_##performs(struct vm_ask *q);
#include "queries.def"
#undef QUERY

#endif

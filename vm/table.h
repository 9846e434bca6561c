/* The performing column of the instruction table. Internal to vm. */
#ifndef MSCHED_VM_TABLE_H
#define MSCHED_VM_TABLE_H

#include "vm.h"

struct vm_run;
struct vm_step;
/* Performs one prepared instruction. False: r->err is filled, and the module is as it was. */
typedef bool (*vm_perform)(struct vm_run *r, const struct vm_step *step);

#define INST(kind, old, method, inputs, attrs, outputs, effect, safe, source, performs, doc)                           \
  bool vm_do_##performs(struct vm_run *r, const struct vm_step *step);
#include "instructions.def"
#undef INST

enum { VM_MOST_ARGUMENTS = 5 }; /* of a query */
struct vm_query_params {
  struct vm_param at[VM_MOST_ARGUMENTS];
  uint8_t count;
};
const struct vm_query_params *vm_query_params(enum vm_query query);
/* Of a module with extents of 0: what edits, or draws by a loop or block, is refused. */
vm_perform vm_performer_in(const struct tir *ir, enum vm_kind kind);

#endif

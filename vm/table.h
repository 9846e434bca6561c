/* The performing column of the instruction table. Internal to vm. */
#ifndef MSCHED_VM_TABLE_H
#define MSCHED_VM_TABLE_H

#include "vm.h"

struct vm_run;
struct vm_step;
/* Performs one prepared instruction. False: r->err is filled, and the module is as it was. */
typedef bool (*vm_perform)(struct vm_run *r, const struct vm_step *step);

#define INST(kind, old, method, inputs, attrs, outputs, effect, safe, performs, doc)                                   \
  bool vm_do_##performs(struct vm_run *r, const struct vm_step *step);
#include "instructions.def"
#undef INST

/* Parses a column of name:type; returns how many there are, at most `room`. */
uint8_t vm_parse_params(const char *text, struct vm_param *out, unsigned room);
vm_perform vm_performer(enum vm_kind kind);

#endif

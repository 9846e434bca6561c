/* Pad values of layouts: maps of indices to one constant, as text. Internal to vm. */
#ifndef MSCHED_VM_PAD_VALUE_H
#define MSCHED_VM_PAD_VALUE_H

#include "vm/vm.h"

/* From the text of a lambda, or TVM's node graph: today's or the one before, where the constant may stand alone.
 * TIR_NONE: it is another text. */
tir_expr vm_read_pad(struct tir *ir, const char *text);
/* The text of a lambda for such a graph; the caller's to free(). NULL: it is another text. */
char *vm_pad_lambda(const char *graph);
/* The same for a constant, of a map of so many indices. */
char *vm_pad_lambda_of(const struct tir *ir, tir_expr pad, uint32_t dimensions);
/* TVM's node graph for a value of a trace: a number, float32 or int32, or the text of a lambda; dimensions: how many
 * indices the map takes. The caller's to free(). NULL: it is another value, no finite number, or a graph already. */
char *vm_write_pad(const struct vm_steps *steps, const struct vm_value *value, uint32_t dimensions);

#endif

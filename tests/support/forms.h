/* The forms of traces: JSON, Lua text, binary. */
#ifndef TEST_FORMS_H
#define TEST_FORMS_H

#include "vm/vm.h"

/* Whether a trace, written in each form and read again, is the same trace (JSON renumbers draws), and is written as
 * the same text again. False: why (size bytes) says what is not. */
bool forms_agree(const struct vm_trace *trace, char *why, size_t size);
/* Whether two traces are the same: instructions, values, decisions, draw ids. */
bool same_trace(const struct vm_trace *a, const struct vm_trace *b);

#endif

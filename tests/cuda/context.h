/* What a thread of a CPU goes on with: the stack and the registers of one of several that take turns. */
#ifndef TEST_CONTEXT_H
#define TEST_CONTEXT_H

#include <stddef.h>

#ifdef __x86_64__
/* swapcontext makes a system call each time, for masks of signals, which are all alike here, and AddressSanitizer
 * clears what it knows of the whole stack: together most of what kernels of many threads took. */
struct context {
  void *stack; /* its pointer; at it are the registers that a call keeps, and where to go on */
};
#else
#include <ucontext.h>
struct context {
  ucontext_t kept;
};
#endif

/* Has a context begin, on an empty stack, with a function that may not return. */
void context_make(struct context *c, void *stack, size_t bytes, void (*begin)(void));
/* Keeps this one in `from`, and goes on with another. */
void context_switch(struct context *from, const struct context *to);

#endif

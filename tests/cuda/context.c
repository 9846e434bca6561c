#include "context.h"

#include <assert.h>
#include <stdint.h>

#ifdef __x86_64__

enum { KEPT = 6 }; /* rbp, rbx, r12 to r15 */

__attribute__((visibility("hidden"))) void context_switch_stacks(void **kept, void *next);
__asm__(".pushsection .text\n"
        ".hidden context_switch_stacks\n"
        ".globl context_switch_stacks\n"
        ".type context_switch_stacks, @function\n"
        "context_switch_stacks:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size context_switch_stacks, . - context_switch_stacks\n"
        ".popsection\n");

void context_make(struct context *c, void *stack, size_t bytes, void (*begin)(void)) {
  uintptr_t *top = (uintptr_t *)((char *)stack + bytes);
  assert((uintptr_t)top % 16 == 0);
  *--top = 0; /* where the function would return to; it finds the stack as a call leaves it */
  *--top = (uintptr_t)begin;
  for (int i = 0; i < KEPT; i++) *--top = 0;
  c->stack = top;
}

void context_switch(struct context *from, const struct context *to) { context_switch_stacks(&from->stack, to->stack); }

#else

void context_make(struct context *c, void *stack, size_t bytes, void (*begin)(void)) {
  getcontext(&c->kept);
  c->kept.uc_stack.ss_sp = stack;
  c->kept.uc_stack.ss_size = bytes;
  c->kept.uc_link = NULL;
  makecontext(&c->kept, begin, 0);
}

void context_switch(struct context *from, const struct context *to) { swapcontext(&from->kept, &to->kept); }

#endif

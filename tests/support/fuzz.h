/* What the fuzzers of traces share. */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include "vm/vm.h"

/* Ends the program. */
_Noreturn void fuzz_stop(const char *what, const char *why);
/* A refusal has a code and a message. */
void fuzz_check_refusal(const ms_error *err);
/* What must hold of any trace that was read: its forms agree; replayed on small workloads, strictly and in repair, it
 * is refused, with the module as the instructions before made it, or gives a module that the verifier passes; what was
 * drawn gives the same module again. */
void fuzz_judge_trace(const struct vm_trace *trace);
/* Judges what a reader gave, which is freed: a trace, or NULL and a refusal. */
void fuzz_take_trace(struct vm_trace *trace, const ms_error *err);

/* LLVMFuzzerCustomMutator of a form: in most cases an operand, an instruction or a decision is replaced, left out,
 * repeated or moved; in others bytes are changed. */
enum fuzz_form { FUZZ_JSON, FUZZ_LUA, FUZZ_BINARY };
size_t fuzz_mutate(enum fuzz_form form, uint8_t *data, size_t size, size_t most, unsigned seed);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

#endif

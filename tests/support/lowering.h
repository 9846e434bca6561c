/* Cases of lowering and of emitters: `### target` and what becomes of `### before` there (tests/case/README.md). */
#ifndef TEST_LOWERING_H
#define TEST_LOWERING_H

#include "cuda/oracle.h"

/* Whether a case is one: all drivers but run_cases leave them out. */
bool lowering_is_case(const char *text);
bool lowering_is_at(const char *path);

/* A run over many: kernels' sources are compiled together at its end. Zero, but for only_text. */
enum { LOWERING_PATH = 256 };
struct lowering_kernel {
  struct oracle oracle;
  struct tir *reference;
  char path[ORACLE_PATH], name[LOWERING_PATH];
};
struct lowering_run {
  struct lowering_kernel *kernels;
  uint32_t count, capacity;
  char folder[32];
  bool only_text; /* what is emitted is compared, and not compiled; what takes many steps is not interpreted */
  uint32_t left;  /* so many functions were not */
  uint32_t asked; /* of so many NVRTC might have been asked */
  struct lowering_kernel last; /* the reference that ran last: variants of a case often have the same */
  char *last_text;             /* its text; NULL: none has run */
};
/* The text of a case as it would be if all that it expects were so: the caller's to free(). NULL: it cannot be run, or
 * computes something else, which is told. */
char *lowering_rewritten(struct lowering_run *run, const char *path, const char *text);
/* Runs the kernels as C++ of this CPU, if there is a g++; the number of those that compute something else. */
uint32_t lowering_end(struct lowering_run *run);

#endif

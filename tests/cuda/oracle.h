/* Kernels without a GPU: CUDA's source, compiled as C++ for this CPU by g++ and a shim (shim.h), computes what the
 * interpreter says that the function does. */
#ifndef TEST_ORACLE_H
#define TEST_ORACLE_H

#include "tir/tir.h"

/* A function, and what it makes of arguments that are drawn. The module is borrowed. */
struct oracle {
  const struct tir *ir;
  tir_func f;
  struct tir_arguments given, expected;
  double epsilon, tolerance; /* that the run rounded to; what may separate what the source computes from it */
  uint64_t read_first;       /* tir_run_report */
  bool exact;                /* nothing may separate what is interpreted from it */
};
bool oracle_open(struct oracle *w, const struct tir *ir, tir_func f, uint64_t seed, ms_error *err);
/* The same of full-mantissa data, which is rounded on the way, and exact. */
bool oracle_open_exact(struct oracle *w, const struct tir *ir, tir_func f, uint64_t seed, ms_error *err);
/* Either, by `exact`; the function makes at most so many steps (tir_run_options), where they are not 0: else err has
 * MS_RUN_STEPS. */
bool oracle_open_within(struct oracle *w, const struct tir *ir, tir_func f, uint64_t seed, bool exact,
                        int64_t most_steps, ms_error *err);
/* What was opened, of the same function in another module, which does not run again. */
void oracle_copy(const struct oracle *from, const struct tir *ir, tir_func f, struct oracle *out);
void oracle_close(struct oracle *w);
/* Whether the function, lowered, computes the same on the interpreter, with threads that are real: tir_equal_results,
 * but that the function itself does not run again. Its extents are constants. */
bool oracle_interprets(const struct oracle *w, const struct tir *lowered, tir_func f, ms_error *err);

/* The source of a function that is lowered for GPUs, for sm_90, its function called `name`; the caller's to free().
 * NULL: err is filled. */
char *oracle_source(const struct tir *lowered, tir_func f, const char *name, ms_error *err);
/* Writes text to FOLDER/NUMBER.cu, whose path is given in `path`. */
enum { ORACLE_PATH = 256 };
void oracle_write(const char *folder, uint32_t number, const char *text, char path[ORACLE_PATH]);
/* Compiles all .cu in a folder, each to a library beside it, as many at once as there are cores; what the compiler says
 * of FILE.cu is in FILE.cu.log. false: there is no g++. */
bool oracle_compile(const char *folder);

enum { ORACLE_TEXT = 400 };
/* Runs what was compiled of a source, the kernels of a schedule of the function: in a process of its own, once with the
 * threads forwards, once backwards, twice shuffled, its buffers between pages that may not be touched. false: `why`
 * says what went wrong. */
bool oracle_agrees(const struct oracle *w, const char *source, char why[ORACLE_TEXT]);

#endif

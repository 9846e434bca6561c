/* Cases judged by running: a function before and after a trace. */
#ifndef TEST_CASE_H
#define TEST_CASE_H

#include "tir/tir.h"

struct section {
  const char *at;
  size_t length;
};
/* The text of a case between "### title" and the next "###"; at NULL: there is none. */
struct section case_section(const char *text, const char *title);
/* The title of the n-th section that begins with "after": the module after a trace. False: there are fewer. */
bool case_after(const char *text, uint32_t n, char title[64]);
/* The contents of a file, with a zero after them; NULL: it cannot be read. The caller frees. */
char *case_read_file(const char *path);

/* The paths of cases: of a folder's, and those of the folders in it, in order; or `path` alone, which is no folder.
 * case_free_paths frees them. */
struct case_paths {
  char **at;
  uint32_t count;
};
struct case_paths case_find(const char *path);
void case_free_paths(struct case_paths *paths);

/* Judges the section `title` of a case, "after …", against "before"; its trace is the section "trace", or the one whose
 * title is the rest of `title`.
 * EQUAL: both modules pass the verifier and give equal results. REFUSED: there is no such section, or we refuse.
 * UNSAFE: the trace holds an instruction that may change what is computed; only the verifier was asked. FAILED: err
 * says why. Layouts of parameters that the trace transforms are followed. */
enum verdict { CASE_EQUAL, CASE_REFUSED, CASE_UNSAFE, CASE_FAILED, CASE_VERDICTS };
enum {
  CASE_OURS = 1,        /* not that section is judged, but what the trace gives when we replay it */
  CASE_LOWERED = 2,     /* it is lowered, and run as such: threads and parallel loops are real */
  CASE_ANY = 4,         /* also after instructions that may change what is computed */
  CASE_LOWERED_TOO = 8, /* as it is, and lowered, where lowering does not refuse it */
};
enum verdict case_judge(const char *text, const char *title, const char *file, unsigned flags, uint64_t seed,
                        ms_error *err);

/* What case_judge does once both modules are there; maps: the layouts that the trace holds, in its order; lowered:
 * `after` lowered, which is run in its place, or after it (too), or NULL. */
struct case_map {
  char *lambda;
  double pad;
};
bool case_equal(const struct tir *before, const struct tir *after, const struct case_map *maps, uint32_t count,
                const struct tir *lowered, bool too, uint64_t seed, ms_error *err);
/* Lowering that leaves the layout of memory the most to do: every allocation in the workspace, three threads; none
 * where the function binds threads of its own. */
struct tir_lower_options case_lowering(const struct tir *ir);
/* The functions that cases call by name. */
extern const struct tir_extern case_externs[];
extern const uint32_t case_extern_count;

#endif

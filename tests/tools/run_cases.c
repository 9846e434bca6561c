/* Runs cases: files of sections, a function, a trace, and what must come of it.
 *
 *   # comment lines
 *   ### before    TVMScript
 *   ### trace     any text form of a trace
 *   ### after     TVMScript: the scheduled module is structurally equal to it
 *   ### error     or: "instruction N: code", as `msched apply --json` names them
 *
 * Of lowering and of emitters (support/lowering.h): a target, a function, and what becomes of it.
 *
 * usage: run_cases [--traces] [--no-compilers] [--rewrite] FILE|DIRECTORY…
 *   --traces   leaves those of lowering out
 *   --no-compilers  compiles no emitted text, and interprets no function of more than 100,000 steps: another run of the
 *              same cases did
 *   --rewrite  puts what we give in place of what is expected */
#include "support/case.h"
#include "support/lowering.h"
#include "vm/vm.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct cases {
  bool rewrite, traces;
  int ran, failed, rewritten;
  struct lowering_run lowering;
};

/* What we give for the case: the module's text, or the refusal. *sch is NULL when it is refused. */
static char *give(const char *path, struct section before, struct section trace, struct vm_schedule **sch) {
  ms_error err = {.instruction = -1};
  struct tir *ir = tir_read(before.at, before.length, path, &err);
  struct vm_trace *read = ir ? vm_read_trace(trace.at, trace.length, &err) : NULL;
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = read};
  *sch = read ? vm_apply(ir, read, &draws, &err) : NULL;
  char *text = NULL;
  if (*sch) {
    bool holds = vm_verify(&(*sch)->trace, (*sch)->ir, &err);
    if (!holds) fprintf(stderr, "%s: the verifier: %s\n", path, err.message);
    text = holds ? tir_print((*sch)->ir, TIR_NONE, 0) : NULL;
  } else {
    size_t size = 200;
    text = malloc(size);
    if (text) snprintf(text, size, "instruction %d: %s\n", err.instruction, ms_code_name(err.code));
  }
  vm_trace_free(read);
  if (ir) tir_free(ir);
  return text;
}

/* The refusal is the section, but for white space at its end. */
static bool same_refusal(const char *given, struct section error) {
  size_t length = strlen(given), expected = error.length;
  while (length && isspace((unsigned char)given[length - 1])) length--;
  while (expected && isspace((unsigned char)error.at[expected - 1])) expected--;
  return expected == length && !strncmp(error.at, given, length);
}

static bool agrees(const char *path, const struct vm_schedule *sch, const char *given, struct section after,
                   struct section error) {
  if (!sch) {
    if (error.at && same_refusal(given, error)) return true;
    fprintf(stderr, "%s: refused: %s", path, given);
    return false;
  }
  char why[400] = "a refusal is expected";
  ms_error err = {0};
  struct tir *expected = after.at ? tir_read(after.at, after.length, path, &err) : NULL;
  bool same = expected && tir_structural_equal(expected, TIR_NONE, sch->ir, TIR_NONE, why, sizeof why);
  if (after.at && !expected) snprintf(why, sizeof why, "%.390s", err.message);
  if (expected) tir_free(expected);
  if (!same) fprintf(stderr, "%s: differs: %s\n", path, why);
  return same;
}

static void rewrite(struct cases *c, const char *path, const char *text, struct section trace, const char *given,
                    bool accepted) {
  FILE *file = fopen(path, "wb");
  if (!file) return;
  fwrite(text, 1, (size_t)(trace.at + trace.length - text), file);
  fprintf(file, "### %s\n%s", accepted ? "after" : "error", given);
  fclose(file);
  c->rewritten++;
}

/* ---- Lowering ---- */

static void tell_difference(const char *path, const char *expected, const char *given) {
  size_t line = 0;
  for (size_t i = 0; expected[i] == given[i]; i++)
    if (expected[i] == '\n') line = i + 1;
  fprintf(stderr, "%s: differs: expected\n%.*s\ngiven\n%.*s\n", path, (int)strcspn(expected + line, "\n"),
          expected + line, (int)strcspn(given + line, "\n"), given + line);
}

/* A case is right where rewriting it changes nothing. */
static void run_lowering(struct cases *c, const char *path, const char *text) {
  char *given = lowering_rewritten(&c->lowering, path, text);
  bool same = given && !strcmp(given, text);
  FILE *file = given && !same && c->rewrite ? fopen(path, "wb") : NULL;
  if (file) {
    fputs(given, file);
    fclose(file);
    c->rewritten++;
  } else if (!same) {
    if (given) tell_difference(path, text, given);
    c->failed++;
  }
  free(given);
}

static void run_file(struct cases *c, const char *path) {
  char *text = case_read_file(path);
  struct vm_schedule *sch = NULL;
  struct section before = {0}, trace = {0};
  if (text) before = case_section(text, "before"), trace = case_section(text, "trace");
  bool lowers = text && lowering_is_case(text);
  if (lowers && c->traces) return free(text);
  c->ran++;
  if (lowers) {
    run_lowering(c, path, text);
  } else if (!before.at || !trace.at) {
    fprintf(stderr, "%s: cannot be read, or lacks a section\n", path);
    c->failed++;
  } else {
    char *given = give(path, before, trace, &sch);
    if (!given)
      c->failed++;
    else if (c->rewrite)
      rewrite(c, path, text, trace, given, sch != NULL);
    else if (!agrees(path, sch, given, case_section(text, "after"), case_section(text, "error")))
      c->failed++;
    vm_schedule_free(sch);
    free(given);
  }
  free(text);
}

static void run_path(struct cases *c, const char *path) {
  struct case_paths paths = case_find(path);
  for (uint32_t i = 0; i < paths.count; i++) run_file(c, paths.at[i]);
  case_free_paths(&paths);
}

int main(int argc, char **argv) {
  struct cases c = {0};
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], "--rewrite"))
      c.rewrite = true;
    else if (!strcmp(argv[i], "--traces"))
      c.traces = true;
    else if (!strcmp(argv[i], "--no-compilers"))
      c.lowering.only_text = true;
    else
      run_path(&c, argv[i]);
  if (c.lowering.left) printf("%u functions take too many steps, and are not interpreted\n", c.lowering.left);
  c.failed += (int)lowering_end(&c.lowering);
  printf("%d cases, %d failed, %d rewritten\n", c.ran, c.failed, c.rewritten);
  return c.failed || !c.ran;
}

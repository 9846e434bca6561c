/* Bugs put into kernels on purpose, one at a time, in the lowered function or in its source: tests/cuda/bugs/, a file a
 * kernel. Each is caught by the oracles that its file names, and by no other; the kernels without bugs pass all three.
 * Where MSCHED_EVERY_ORACLE is set, all of them are asked of each bug; else one of those that its file names, in turn,
 * and NVRTC of the kernels that have a bug for it. */
#define _GNU_SOURCE
#include "cuda/oracle.h"
#include "jit/c/emit_c.h"
#include "jit/cuda/nvrtc.h"
#include "jit/cuda/resources.h"
#include "support/case.h"
#include "unit/script.h"

enum oracle_bit { INTERPRETER = 1, SHIM = 2, NVRTC = 4 };
static const char *const oracle_names[] = {"interpreter", "shim", "NVRTC"}; /* in the order of their bits */

/* A kernel of a file, and what it is to compute. */
struct kernel {
  char *text, *name;
  struct tir *ir, *reference; /* the same, where it has no reference of its own */
  struct oracle oracle;
  bool caught_by_nvrtc; /* it is to catch a bug of the kernel's */
};
struct bug {
  const struct kernel *kernel;
  const char *what; /* NULL: none, the kernel as it is */
  bool in_source;   /* else in the lowered function */
  char *is, *becomes;
  unsigned caught;
};
enum { MOST_KERNELS = 64, MOST_BUGS = 512, LEAST_BUGS = 100 };
static struct kernel kernels[MOST_KERNELS];
static struct bug bugs[MOST_BUGS];
static uint32_t kernel_count, bug_count;

/* ---- Files ----
 *
 * # what the kernel is
 * ### before      the function
 * ### reference   a plain function that computes the same, where the function itself is not run unlowered
 * ### bugs        of each: a line that says what is wrong, and three below it:
 *   lowered: TEXT  the first place of this text, or source: TEXT; in it \n ends a line
 *   becomes: TEXT
 *   caught by: interpreter, shim, NVRTC */

static struct tir *read_section(const struct kernel *k, const char *title) {
  struct section s = case_section(k->text, title);
  ms_error err = {0};
  if (!s.at) return NULL;
  struct tir *ir = tir_read(s.at, s.length, k->name, &err);
  if (!ir) fail_msg("%s", err.message);
  return ir;
}

/* What follows the word on a line of a bug, with its ends of lines; NULL: the line has another word. In place. */
static char *value_of(char *line, const char *word) {
  size_t length = strlen(word);
  if (strncmp(line, word, length) != 0) return NULL;
  char *text = line + length, *to = text;
  for (const char *from = text; *from; from++) {
    bool ends = from[0] == '\\' && from[1] == 'n';
    *to++ = ends ? '\n' : *from;
    from += ends;
  }
  *to = 0;
  return text;
}

static unsigned oracles_of(const struct bug *bug, char *list) {
  unsigned all = 0;
  for (char *name; (name = strsep(&list, ",")) != NULL;) {
    unsigned bit = 0;
    name += strspn(name, " ");
    for (unsigned i = 0; i < 3; i++)
      if (!strcmp(name, oracle_names[i])) bit = 1u << i;
    if (!bit) fail_msg("%s: no oracle is %s", bug->what, name);
    all |= bit;
  }
  return all;
}

static void read_bugs(struct kernel *k, char *at) {
  for (char *line; (line = strsep(&at, "\n")) != NULL && *line;) {
    struct bug *bug = &bugs[bug_count++];
    assert_true(bug_count <= MOST_BUGS && *line != ' ');
    *bug = (struct bug){.kernel = k, .what = line};
    char *place = strsep(&at, "\n"), *becomes = strsep(&at, "\n"), *caught = strsep(&at, "\n");
    if (!caught) fail_msg("%s: %s: lines are missing", k->name, line);
    bug->is = value_of(place, "  lowered: ");
    bug->in_source = !bug->is;
    if (!bug->is) bug->is = value_of(place, "  source: ");
    bug->becomes = value_of(becomes, "  becomes: ");
    caught = value_of(caught, "  caught by: ");
    if (!bug->is || !bug->becomes || !caught) fail_msg("%s: %s: a line is none of a bug", k->name, line);
    bug->caught = oracles_of(bug, caught);
    k->caught_by_nvrtc |= (bug->caught & NVRTC) != 0;
  }
}

static void read_kernel(const char *path) {
  struct kernel *k = &kernels[kernel_count++];
  ms_error err = {0};
  assert_true(kernel_count <= MOST_KERNELS && bug_count < MOST_BUGS);
  k->text = case_read_file(path), k->name = strdup(strrchr(path, '/') + 1);
  assert_true(k->text && k->name);
  k->ir = read_section(k, "before"), k->reference = read_section(k, "reference");
  assert_non_null(k->ir);
  if (!k->reference) k->reference = k->ir;
  if (!oracle_open(&k->oracle, k->reference, tir_find_func(k->reference, "main"), 5, &err))
    fail_msg("%s: %s", k->name, err.message);
  bugs[bug_count++] = (struct bug){.kernel = k};
  char *list = strstr(k->text, "\n### bugs\n");
  if (list) read_bugs(k, list + strlen("\n### bugs\n"));
}

static void read_kernels(void) {
  struct case_paths paths = case_find(TEST_ROOT "/cuda/bugs");
  for (uint32_t i = 0; i < paths.count; i++) read_kernel(paths.at[i]);
  case_free_paths(&paths);
  assert_true(bug_count >= LEAST_BUGS + kernel_count);
}

static void free_kernels(void) {
  for (uint32_t i = 0; i < kernel_count; i++) {
    struct kernel *k = &kernels[i];
    oracle_close(&k->oracle);
    if (k->reference != k->ir) tir_free(k->reference);
    tir_free(k->ir);
    free(k->text), free(k->name);
  }
}

/* ---- A bug in a kernel ---- */

/* The text with the bug; the first of its places. Takes the text. */
static char *put_in(const struct bug *bug, char *text) {
  char *at = strstr(text, bug->is), *made = NULL;
  if (!at) fail_msg("%s: no \"%s\" in\n%s", bug->what, bug->is, text);
  if (asprintf(&made, "%.*s%s%s", (int)(at - text), text, bug->becomes, at + strlen(bug->is)) < 0) abort();
  free(text);
  return made;
}

static struct tir *lowered_with(const struct bug *bug) {
  const struct tir_lower_options options = {.device = TIR_GPU,
                                            .verify = true,
                                            .vector_bits = 128,
                                            .shared_bytes = 232448,
                                            .capabilities = TIR_SET(ASYNC_COPIES) | TIR_SET(TENSOR_COPIES) |
                                                            TIR_SET(MATRIX_STORES)};
  struct tir *lowered = tir_new();
  ms_error err = {0};
  tir_copy(lowered, bug->kernel->ir);
  if (!tir_lower(lowered, tir_find_func(lowered, "main"), &options, &err)) fail_msg("%s", err.message);
  if (!bug->what || bug->in_source) return lowered;
  char *text = put_in(bug, tir_print(lowered, TIR_NONE, 0));
  tir_free(lowered);
  if (!(lowered = tir_read(text, strlen(text), "bug", &err))) fail_msg("%s\n%s", err.message, text);
  free(text);
  return lowered;
}

/* ---- The oracles ---- */

static int64_t static_bytes(const struct c_kernels *kernels) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < kernels->count; i++) sum += kernels->at[i].shared_bytes;
  return sum;
}

static bool is_serialized(const struct c_kernels *kernels) {
  for (uint32_t i = 0; i < kernels->count; i++)
    if (kernels->at[i].serialized) return true;
  return false;
}

/* It compiles, takes the shared memory that it was predicted to, and its products wait for nothing. */
static bool nvrtc_agrees(const char *source, const struct c_kernels *predicted, bool *missing) {
  struct jit_target target;
  struct nvrtc_code code;
  ms_error err = {0};
  assert_true(jit_target_parse("cuda -arch=sm_90a", &target, &err));
  int64_t expected = static_bytes(predicted);
  bool ok = nvrtc_compile(source, &target, false, false, &code, &err) &&
            resources_note(code.log, &target, predicted->at, predicted->count, &err) &&
            static_bytes(predicted) == expected && !is_serialized(predicted);
  *missing = err.code == MS_NO_LIBRARY;
  nvrtc_code_free(&code);
  return ok;
}

struct subject {
  char path[ORACLE_PATH];
  unsigned asked, caught;
};

static unsigned asked_of(const struct bug *bug, uint32_t number) {
  if (getenv("MSCHED_EVERY_ORACLE")) return INTERPRETER | SHIM | NVRTC;
  if (!bug->what) return INTERPRETER | SHIM | (bug->kernel->caught_by_nvrtc ? NVRTC : 0);
  unsigned left = bug->caught;
  for (uint32_t turn = number % (uint32_t)__builtin_popcount(left); turn; turn--) left &= left - 1;
  return left & -left;
}

/* What the interpreter and NVRTC say; the source goes to the folder where the shim is asked. plain: of its kernel
 * without bugs, whose lowered function is that of a bug in the source, too: the interpreter has run it. */
static void examine(const struct bug *bug, const struct subject *plain, uint32_t number, const char *folder,
                    struct subject *s, bool *missing) {
  struct jit_target target;
  struct c_kernels made = {0};
  ms_error err = {0};
  struct tir *lowered = lowered_with(bug);
  s->asked = asked_of(bug, number);
  if (bug->what && bug->in_source)
    s->caught |= plain->caught & INTERPRETER;
  else if (s->asked & INTERPRETER &&
           !oracle_interprets(&bug->kernel->oracle, lowered, tir_find_func(lowered, "main"), &err))
    s->caught |= INTERPRETER;
  assert_true(jit_target_parse("cuda -arch=sm_90a", &target, &err));
  char *source = jit_emit_c(lowered, tir_find_func(lowered, "main"), "kernels", &target, NULL, &made, &err);
  if (!source) fail_msg("%s", err.message);
  if (bug->what && bug->in_source) source = put_in(bug, source);
  if (s->asked & NVRTC && !*missing && !nvrtc_agrees(source, &made, missing)) s->caught |= NVRTC;
  if (*missing) s->asked &= ~NVRTC;
  if (s->asked & SHIM) oracle_write(folder, number, source, s->path);
  free(source);
  free(made.at);
  tir_free(lowered);
}

static void ask_shim(const struct bug *bug, struct subject *s) {
  char why[ORACLE_TEXT];
  if (oracle_agrees(&bug->kernel->oracle, s->path, why)) return;
  s->caught |= SHIM;
  if (bug->what) printf("%s: %s\n", bug->what, why);
}

static const char *mark(const struct subject *s, enum oracle_bit bit) {
  return !(s->asked & bit) ? "not asked" : s->caught & bit ? "caught" : "-";
}

static void each_bug_is_caught(void **state) {
  (void)state;
  static struct subject subjects[MOST_BUGS];
  char folder[] = "/tmp/kernel_bugs.XXXXXX", command[64];
  bool missing = false, as_said = true;
  assert_non_null(mkdtemp(folder));
  read_kernels();
  const struct subject *plain = NULL;
  for (uint32_t i = 0; i < bug_count; i++) {
    if (!bugs[i].what) plain = &subjects[i];
    examine(&bugs[i], plain, i, folder, &subjects[i], &missing);
  }
  if (!oracle_compile(folder)) skip();
  for (uint32_t i = 0; i < bug_count; i++)
    if (subjects[i].asked & SHIM) ask_shim(&bugs[i], &subjects[i]);
  printf("%-46s %-12s %-8s %s\n", "bug", "interpreter", "shim", missing ? "NVRTC: skipped, it is missing" : "NVRTC");
  for (uint32_t i = 0; i < bug_count; i++) {
    const struct subject *s = &subjects[i];
    bool same = (s->caught & s->asked) == (bugs[i].caught & s->asked);
    if (bugs[i].what || !same)
      printf("%-46s %-12s %-8s %s%s\n", bugs[i].what ? bugs[i].what : bugs[i].kernel->name, mark(s, INTERPRETER),
             mark(s, SHIM), mark(s, NVRTC), same ? "" : "   NOT AS SAID");
    as_said &= same;
  }
  assert_true(as_said);
  free_kernels();
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_bug_is_caught)};
  setenv("MSCHED_DRAWS", "all", 0); /* each order of threads may be the one that shows a bug */
  return cmocka_run_group_tests(tests, NULL, NULL);
}

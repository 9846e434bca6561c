#define _GNU_SOURCE
#include "oracle.h"

#include "fibers.h"
#include "jit/c/emit_c.h"
#include "support/case.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 60, PAGE = 4096, FILLER = 0xff };

/* ---- What is expected ---- */

bool oracle_open_within(struct oracle *w, const struct tir *ir, tir_func f, uint64_t seed, bool exact,
                        int64_t most_steps, ms_error *err) {
  struct tir_run_report report = {0};
  struct tir_run_options options = {.note_unwritten = true, .most_steps = most_steps, .report = &report};
  *w = (struct oracle){.ir = ir, .f = f, .exact = exact};
  if (!(exact ? tir_make_real_arguments : tir_make_arguments)(ir, f, seed, &w->expected, err)) return false;
  tir_copy_arguments(ir, f, &w->expected, &w->given);
  for (uint32_t i = 0; i < w->expected.count; i++) w->expected.args[i].unwritten = i < 64 && w->expected.args[i].data;
  bool ok = tir_run(ir, f, w->expected.args, w->expected.count, &options, err);
  w->epsilon = report.epsilon, w->read_first = report.read_first;
  /* The C library's functions and the interpreter's differ in the last bits of a float. */
  w->tolerance = fmax(tir_tolerance(ir, f, report.epsilon), report.epsilon > 0 ? 2e-6 : 0);
  return ok;
}

void oracle_copy(const struct oracle *from, const struct tir *ir, tir_func f, struct oracle *out) {
  *out = *from;
  out->ir = ir, out->f = f;
  tir_copy_arguments(ir, f, &from->given, &out->given);
  tir_copy_arguments(ir, f, &from->expected, &out->expected);
}

bool oracle_open(struct oracle *w, const struct tir *ir, tir_func f, uint64_t seed, ms_error *err) {
  return oracle_open_within(w, ir, f, seed, false, 0, err);
}

bool oracle_open_exact(struct oracle *w, const struct tir *ir, tir_func f, uint64_t seed, ms_error *err) {
  return oracle_open_within(w, ir, f, seed, true, 0, err);
}

bool oracle_interprets(const struct oracle *w, const struct tir *lowered, tir_func f, ms_error *err) {
  struct tir_run_report report = {0};
  const struct tir_run_options real = {.lowered = true, .report = &report};
  struct tir_arguments args;
  tir_copy_arguments(w->ir, w->f, &w->given, &args);
  for (uint32_t i = 0; i < args.count; i++) {
    args.args[i].unwritten = i < 64 && args.args[i].data && !(w->read_first >> i & 1);
    free((void *)args.args[i].shape); /* a lowered buffer may have another number of dimensions */
    args.args[i].shape = NULL;
  }
  bool ok = tir_run(lowered, f, args.args, args.count, &real, err);
  double epsilon = fmax(w->epsilon, report.epsilon);
  double tolerance = fmax(tir_tolerance(w->ir, w->f, epsilon), tir_tolerance(lowered, f, epsilon));
  ok = ok && tir_same_arguments(w->ir, w->f, &w->expected, &args, w->exact ? 0 : tolerance, err);
  tir_arguments_free(&args);
  return ok;
}

void oracle_close(struct oracle *w) {
  tir_arguments_free(&w->expected);
  if (w->given.args) tir_arguments_free(&w->given);
}

/* ---- Sources ---- */

char *oracle_source(const struct tir *lowered, tir_func f, const char *name, ms_error *err) {
  struct jit_target target;
  if (!jit_target_parse("cuda -arch=sm_90", &target, err)) return NULL;
  return jit_emit_c(lowered, f, name, &target, NULL, NULL, err);
}

void oracle_write(const char *folder, uint32_t number, const char *text, char path[ORACLE_PATH]) {
  snprintf(path, ORACLE_PATH, "%s/%u.cu", folder, number);
  FILE *file = fopen(path, "w");
  if (!file || fputs(text, file) < 0 || fclose(file)) abort();
}

/* ---- Compiling ---- */

/* With COMPILE_ORACLE's options undefined behaviour traps: misaligned vectors, indices that overflow or leave an array.
 * Memory of a thread's own that is not written is no number. Of the libraries of C and C++, which take most of the
 * linker's time, libm is enough. */
bool oracle_compile(const char *folder) {
  char command[2000];
  int length = snprintf(command, sizeof command,
                        "cd %s && ls | grep '[.]cu$' | xargs -P %ld -I{} sh -c 'sh " COMPILE_ORACLE
                        " {} {}.so >{}.log 2>&1 || rm -f {}.so'",
                        folder, sysconf(_SC_NPROCESSORS_ONLN));
  assert(length < (int)sizeof command);
  return access(ORACLE_COMPILER, X_OK) == 0 && system(command) == 0;
}

/* ---- Memory with guards ---- */

struct guarded {
  char *pages; /* the first and the last may not be touched */
  size_t whole, bytes;
};

/* The memory ends where the page does, as far as a buffer's alignment allows; what is left holds fillers. */
static char *data_of(const struct guarded *g) {
  size_t end = g->whole - PAGE;
  return g->pages + (end - g->bytes) / TIR_BASE_ALIGNMENT * TIR_BASE_ALIGNMENT;
}

static struct guarded make_guarded(const void *from, size_t bytes) {
  struct guarded g = {.whole = (bytes + 3 * PAGE + TIR_BASE_ALIGNMENT) / PAGE * PAGE, .bytes = bytes};
  g.pages = mmap(NULL, g.whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (g.pages == MAP_FAILED) fibers_fail("no memory for %zu bytes", bytes);
  memset(g.pages, FILLER, g.whole);
  if (from) memcpy(data_of(&g), from, bytes);
  mprotect(g.pages, PAGE, PROT_NONE);
  mprotect(g.pages + g.whole - PAGE, PAGE, PROT_NONE);
  return g;
}

static void end_guarded(struct guarded *g, void *to, const char *name) {
  const unsigned char *first = (unsigned char *)g->pages + PAGE, *data = (unsigned char *)data_of(g);
  const unsigned char *last = (unsigned char *)g->pages + g->whole - PAGE;
  for (const unsigned char *p = first; p < last; p++)
    if ((p < data || p >= data + g->bytes) && *p != FILLER)
      fibers_fail("%s: written %td bytes after its first byte, and it has %zu", name, p - data, g->bytes);
  if (to) memcpy(to, data, g->bytes);
  munmap(g->pages, g->whole);
}

/* ---- Running, in the child ---- */

typedef int launcher(void **args, void *workspace, void *stream);
struct source {
  char name[256]; /* of the function that launches its kernels */
  size_t workspace;
};

/* As its head says. */
static void read_head(const char *path, struct source *out) {
  char *text = case_read_file(path), *at = text ? strstr(text, "workspace: ") : NULL;
  *out = (struct source){0};
  if (!at || sscanf(text, "/* %255[^,], made by msched", out->name) != 1) fibers_fail("%s: it has no head", path);
  at += strlen("workspace: ");
  out->workspace = strtoull(at + strspn(at, " *\n"), NULL, 10);
  free(text);
}

static void call(const struct oracle *w, launcher *launch, size_t workspace, struct tir_arguments *args) {
  uint32_t count = args->count;
  void **pointers = calloc(count + 1, sizeof *pointers);
  uint64_t *scalars = calloc(count + 1, sizeof *scalars);
  struct guarded *memory = calloc(count + 1, sizeof *memory);
  if (!pointers || !scalars || !memory) abort();
  jit_arguments(w->ir, w->f, args->args, pointers, scalars);
  for (uint32_t i = 0; i < count; i++) {
    if (!args->args[i].data) continue;
    memory[i] = make_guarded(args->args[i].data, args->args[i].bytes);
    pointers[i] = data_of(&memory[i]);
  }
  memory[count] = make_guarded(NULL, workspace);
  int status = launch(pointers, data_of(&memory[count]), NULL);
  if (status) fibers_fail("launching gives %d", status);
  for (uint32_t i = 0; i < count; i++) {
    char name[40];
    snprintf(name, sizeof name, "argument %u", i);
    if (args->args[i].data) end_guarded(&memory[i], args->args[i].data, name);
  }
  end_guarded(&memory[count], NULL, "the workspace");
  free(pointers);
  free(scalars);
  free(memory);
}

/* Of the orders in which threads run (fibers_set_order): backwards and a shuffled one, which show all bugs that
 * unit.kernel_bugs puts in; where all draws are judged (support/lua/draws.lua), and in that test, the others too. */
static bool is_run(uint64_t order) {
  const char *draws = getenv("MSCHED_DRAWS");
  return order == 1 || order == 3 || (draws && !strcmp(draws, "all"));
}

static _Noreturn void run_child(const struct oracle *w, const char *source) {
  static const char *const orders[] = {"forwards", "backwards", "shuffled", "shuffled"};
  char path[4200];
  struct source s;
  static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) signal(faults[i], SIG_DFL); /* no test's handlers */
  setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = SECONDS}, NULL); /* of its own: machines are busy */
  read_head(source, &s);
  snprintf(path, sizeof path, "%s.so", source);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *entry = library ? dlsym(library, s.name) : NULL;
  if (!entry) fibers_fail("%s", dlerror());
  for (uint64_t order = 0; order < sizeof orders / sizeof *orders; order++) {
    if (!is_run(order)) continue;
    struct tir_arguments args;
    ms_error err = {0};
    tir_copy_arguments(w->ir, w->f, &w->given, &args);
    fibers_set_order(order);
    call(w, (launcher *)(uintptr_t)entry, s.workspace, &args);
    if (!tir_same_arguments(w->ir, w->f, &w->expected, &args, w->tolerance, &err))
      fibers_fail("with threads %s: %s", orders[order], err.message);
    tir_arguments_free(&args);
  }
  _exit(0);
}

/* ---- */

/* What went wrong with the compiler, if it did: the first line of its log that says so. */
static bool is_compiled(const char *source, char why[ORACLE_TEXT]) {
  char path[4200];
  snprintf(path, sizeof path, "%s.so", source);
  if (access(path, R_OK) == 0) return true;
  snprintf(path, sizeof path, "%s.log", source);
  char *log = case_read_file(path), *error = log ? strstr(log, "error") : NULL;
  snprintf(why, ORACLE_TEXT, "the compiler refuses it: %.*s", error ? (int)strcspn(error, "\n") : 0,
           error ? error : "");
  free(log);
  return false;
}

bool oracle_agrees(const struct oracle *w, const char *source, char why[ORACLE_TEXT]) {
  int ends[2], status;
  if (!is_compiled(source, why)) return false;
  if (pipe(ends)) abort();
  fflush(NULL);
  pid_t child = fork();
  if (child < 0) abort();
  if (!child) {
    dup2(ends[1], STDERR_FILENO);
    run_child(w, source);
  }
  close(ends[1]);
  FILE *said = fdopen(ends[0], "r");
  size_t length = said ? fread(why, 1, ORACLE_TEXT - 1, said) : 0;
  why[length] = 0;
  why[strcspn(why, "\n")] = 0;
  if (said) fclose(said);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (WIFSIGNALED(status))
    snprintf(why, ORACLE_TEXT, "%s",
             WTERMSIG(status) == SIGPROF   ? "it does not end"
             : WTERMSIG(status) == SIGSEGV ? "it touches memory that is not its own"
                                           : "undefined behaviour: an index overflows, or a vector is misaligned");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

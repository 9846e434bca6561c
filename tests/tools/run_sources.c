/* run_sources [--cc COMMAND] [--every N] [--verbose] FILE|DIRECTORY…: exports what cases hold as C source, compiles
 * it, and compares what it computes with the interpreter. The function is what the trace gives, or the one before where
 * the trace is refused. Prints a line for each that fails, then totals; exit status 1 if any failed.
 *   --cc       the compiler and its options; else cc with OpenMP
 *   --every N  of a directory, every N-th case
 * What LLVM's code generation refuses is refused in C, and the other way. */
#define _GNU_SOURCE
#include "jit/jit.h"
#include "support/case.h"
#include "support/lowering.h"
#include "vm/vm.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { A_LIBRARY = 12, MOST_STEPS = 50000000 }; /* functions a library */

struct function {
  char *file; /* the case's */
  struct tir *ir;
  tir_func f;
  uint64_t workspace;
  struct tir_arguments expected, given; /* after the interpreter's run, and before it */
  double tolerance;
};

struct run {
  char folder[64];
  const char *compiler;
  int every;
  bool verbose;
  struct jit_target target;
  struct function *all;
  uint32_t count, capacity;
  uint32_t equal, refused, unfit, failed;
};

static void fail(struct run *r, const char *file, const char *what, const char *why) {
  printf("%s: %s: %s\n", file, what, why);
  r->failed++;
}

static void path_of(const struct run *r, uint32_t i, const char *suffix, char out[128]) {
  snprintf(out, 128, "%s/f%u%s", r->folder, i, suffix);
}

/* ---- Emitting ---- */

/* The module that the trace gives, or the one before. NULL: it cannot be read. */
static struct tir *module_of(const char *text, const char *file, ms_error *err) {
  struct section before = case_section(text, "before"), steps = case_section(text, "trace");
  struct tir *ir = before.at ? tir_read(before.at, before.length, file, err) : NULL;
  if (!ir || !steps.at) return ir;
  ms_error ignored = {0};
  struct vm_trace *trace = vm_read_trace(steps.at, steps.length, &ignored);
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace};
  struct vm_schedule *sch = trace ? vm_apply(ir, trace, &draws, &ignored) : NULL;
  if (sch) tir_copy(ir, sch->ir);
  vm_schedule_free(sch);
  vm_trace_free(trace);
  return ir;
}

/* What the head of the source says that it needs. */
static bool states_workspace(const char *path, size_t bytes) {
  char *text = case_read_file(path), *at = text ? strstr(text, "workspace: ") : NULL;
  bool same = at && strtoull(at + strlen("workspace: "), NULL, 10) == bytes;
  free(text);
  return same;
}

/* Exports the function as number `count`; false: it is refused, or has failed. */
static bool export_source(struct run *r, const char *file, const struct tir *ir, tir_func f, uint64_t *workspace) {
  ms_error err = {0}, other = {0};
  char path[128];
  path_of(r, r->count, ".c", path);
  struct jit_code *code = jit_compile(ir, f, &r->target, NULL, &err);
  bool exported = jit_export(ir, f, &r->target, NULL, path, &other);
  if (!code && !exported) {
    if (r->verbose) printf("%s: refused: %s\n", file, other.message);
    r->refused++;
    return false;
  }
  bool ok = code && exported;
  if (!ok)
    fail(r, file, code ? "not in C" : "not by LLVM", code ? other.message : err.message);
  else if (!(ok = states_workspace(path, *workspace = jit_code_workspace(code))))
    fail(r, file, "workspace", "the source and LLVM's code need different ones");
  jit_code_free(code);
  return ok;
}

/* Elementary functions are polynomials: exact to some bits of a float. */
static double tolerance_of(const struct function *f, double epsilon) {
  return fmax(tir_tolerance(f->ir, f->f, epsilon), epsilon > 0 ? 2e-6 : 0);
}

static bool interpret(struct run *r, struct function *f) {
  struct tir_run_report report = {0};
  struct tir_run_options options = {.most_steps = MOST_STEPS, .note_unwritten = true, .report = &report};
  ms_error err = {0};
  bool made = tir_make_arguments(f->ir, f->f, 1, &f->expected, &err);
  if (made) tir_copy_arguments(f->ir, f->f, &f->expected, &f->given);
  if (made && tir_run(f->ir, f->f, f->expected.args, f->expected.count, &options, &err)) {
    f->tolerance = tolerance_of(f, report.epsilon);
    return true;
  }
  if (r->verbose) printf("%s: the interpreter: %s\n", f->file, err.message);
  r->unfit++;
  return false;
}

static void release(struct function *f) {
  if (f->expected.args) tir_arguments_free(&f->expected), tir_arguments_free(&f->given);
  if (f->ir) tir_free(f->ir);
  free(f->file);
}

static void add_file(struct run *r, const char *path) {
  char *text = case_read_file(path);
  const char *slash = strrchr(path, '/');
  struct function f = {.file = strdup(slash ? slash + 1 : path)};
  ms_error err = {0};
  if (!f.file) abort();
  f.ir = text ? module_of(text, f.file, &err) : NULL;
  f.f = f.ir ? tir_find_func(f.ir, "main") : TIR_NONE;
  free(text);
  if (!f.f) {
    fail(r, f.file, "cannot be read", err.message);
  } else if (interpret(r, &f) && export_source(r, f.file, f.ir, f.f, &f.workspace)) {
    r->all = tir_enlarge(r->all, &r->capacity, (uint64_t)r->count + 1, sizeof *r->all);
    r->all[r->count++] = f;
    return;
  }
  release(&f);
}

static void add_path(struct run *r, const char *path) {
  struct case_paths paths = case_find(path);
  for (uint32_t i = 0; i < paths.count; i += (uint32_t)r->every)
    if (!lowering_is_at(paths.at[i])) add_file(r, paths.at[i]);
  case_free_paths(&paths);
}

/* ---- Compiling: libraries of some functions each, two at a time ---- */

static bool compile_all(const struct run *r) {
  char path[128], command[1024];
  for (uint32_t i = 0; i < r->count; i += A_LIBRARY) {
    path_of(r, i, ".list", path);
    FILE *list = fopen(path, "w");
    if (!list) return false;
    for (uint32_t k = i; k < i + A_LIBRARY && k < r->count; k++) fprintf(list, "f%u.c\n", k);
    fclose(list);
  }
  snprintf(command, sizeof command, "cd %s && ls *.list | xargs -P 2 -I{} %s -shared -fPIC -o {}.so @{} -lm", r->folder,
           r->compiler);
  return system(command) == 0;
}

/* ---- Running ---- */

static int32_t call(const struct function *f, jit_entry entry) {
  const struct tir_arguments *a = &f->given;
  void **args = calloc(a->count + 1, sizeof *args), *workspace = aligned_alloc(64, (f->workspace + 64) & ~63ull);
  uint64_t *scalars = calloc(a->count + 1, sizeof *scalars);
  if (!args || !scalars || !workspace) abort();
  memset(workspace, 0xa5, f->workspace);
  jit_arguments(f->ir, f->f, a->args, args, scalars);
  int32_t status = entry(args, workspace);
  free(args);
  free(scalars);
  free(workspace);
  return status;
}

static void compare(struct run *r, const struct function *f, jit_entry entry) {
  ms_error err = {0};
  if (call(f, entry))
    fail(r, f->file, "status", "an assertion failed");
  else if (!tir_same_arguments(f->ir, f->f, &f->expected, &f->given, f->tolerance, &err))
    fail(r, f->file, "differs", err.message);
  else
    r->equal++;
}

static void run_all(struct run *r) {
  void *library = NULL;
  for (uint32_t i = 0; i < r->count; i++) {
    char path[128], number[32];
    const char *name = tir_text(r->all[i].ir, r->all[i].ir->funcs.at[r->all[i].f].name);
    path_of(r, i - i % A_LIBRARY, ".list.so", path);
    if (i % A_LIBRARY == 0) library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    snprintf(number, sizeof number, "f%u", i);
    if (!strcmp(name, "main")) name = number; /* the file's, since no C program could link it */
    void *entry = library ? dlsym(library, name) : NULL;
    if (entry)
      compare(r, &r->all[i], (jit_entry)(uintptr_t)entry);
    else
      fail(r, r->all[i].file, "cannot be loaded", dlerror());
  }
}

static void finish(struct run *r) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", r->folder);
  if (r->failed)
    printf("the sources are in %s\n", r->folder);
  else if (system(command) != 0)
    perror(r->folder);
  for (uint32_t i = 0; i < r->count; i++) release(&r->all[i]);
  free(r->all);
}

int main(int argc, char **argv) {
  struct run r = {.folder = "/tmp/run_sources.XXXXXX",
                  .compiler = "cc -std=c11 -O2 -fopenmp -Wall -Wextra -Werror -Wno-psabi",
                  .every = 1};
  ms_error err = {0};
  if (!mkdtemp(r.folder) || !jit_target_parse("llvm -mcpu=x86-64-v3 -num-cores=2", &r.target, &err)) {
    fprintf(stderr, "%s\n", err.message);
    return 2;
  }
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--cc") && i + 1 < argc)
      r.compiler = argv[++i];
    else if (!strcmp(argv[i], "--every") && i + 1 < argc)
      r.every = atoi(argv[++i]) > 0 ? atoi(argv[i]) : 1;
    else if (!strcmp(argv[i], "--verbose"))
      r.verbose = true;
    else
      add_path(&r, argv[i]);
  }
  if (compile_all(&r))
    run_all(&r);
  else
    fail(&r, r.compiler, "compiling", "the compiler failed");
  printf("%u equal, %u refused, %u that the interpreter does not run, %u failed\n", r.equal, r.refused, r.unfit,
         r.failed);
  finish(&r);
  return r.failed || !r.equal;
}

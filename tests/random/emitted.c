/* The scheduled function as C source, compiled: it computes what the unscheduled function does on the interpreter. */
#include "random.h"

#include "jit/jit.h"
#include "support/zeros.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PATH = 128, MOST_COMMAND = 512 };

/* What the head of the source says that it needs. */
static size_t workspace_of(const char *path) {
  char *text = case_read_file(path), *at = text ? strstr(text, "workspace: ") : NULL;
  size_t bytes = at ? strtoull(at + strlen("workspace: "), NULL, 10) : 0;
  free(text);
  return bytes;
}

static bool call(const struct workload *w, const struct tir_arguments *a, jit_entry entry, size_t bytes) {
  void **args = calloc(a->count + 1, sizeof *args), *workspace = aligned_alloc(64, (bytes + 64) & ~(size_t)63);
  uint64_t *scalars = calloc(a->count + 1, sizeof *scalars);
  if (!args || !scalars || !workspace) abort();
  memset(workspace, 0xa5, bytes);
  jit_arguments(w->ir, w->func, a->args, args, scalars);
  bool ok = entry(args, workspace) == 0;
  free(args);
  free(scalars);
  free(workspace);
  return ok;
}

static bool same(const struct workload *w, jit_entry entry, size_t workspace, uint64_t seed, ms_error *err) {
  struct tir_arguments expected, actual;
  struct tir_run_report ran = {0};
  struct tir_run_options options = {.report = &ran};
  if (!tir_make_arguments(w->ir, w->func, seed, &expected, err)) return false;
  tir_copy_arguments(w->ir, w->func, &expected, &actual);
  bool ok = tir_run(w->ir, w->func, expected.args, expected.count, &options, err);
  double tolerance = ok ? tir_tolerance(w->ir, w->func, ran.epsilon) : 0;
  if (ok && !call(w, &actual, entry, workspace))
    ok = ms_fail(err, MS_RUN_ASSERTION, "an assertion of the C text failed");
  ok = ok && tir_same_arguments(w->ir, w->func, &expected, &actual, tolerance, err) &&
       (!keeps_zeros(w->ir, w->func) || same_zeros(w->ir, w->func, &expected, &actual, err));
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  return ok;
}

static bool load_and_compare(struct grow *g, const char *folder, const char *source, uint64_t seed, ms_error *err) {
  char command[MOST_COMMAND], library[MOST_PATH];
  snprintf(library, sizeof library, "%s/emitted.so", folder);
  snprintf(command, sizeof command, "cc -std=c11 -O2 -w -Wno-psabi -shared -fPIC -o %s %s -lm", library, source);
  if (system(command) != 0) return ms_fail(err, MS_NOT_COMPILABLE, "the C text does not compile");
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL), *entry = opened ? dlsym(opened, "emitted") : NULL;
  bool ok = entry != NULL;
  if (!ok) ms_fail(err, MS_NOT_COMPILABLE, "%s", dlerror());
  size_t workspace = workspace_of(source);
  for (uint32_t i = 0; ok && i < sizes_of(g->workload); i++)
    ok = same(g->workload, (jit_entry)(uintptr_t)entry, workspace, seed + i, err);
  if (opened) dlclose(opened);
  return ok;
}

bool emitted_equals(struct grow *g, uint64_t seed, bool *refused, ms_error *err) {
  const struct tir *ir = g->schedule->ir;
  char folder[] = "/tmp/random_XXXXXX", source[MOST_PATH], command[MOST_COMMAND];
  struct jit_target target;
  *refused = false;
  if (!jit_target_parse("llvm -num-cores=2", &target, err)) return false;
  if (!mkdtemp(folder)) return ms_fail(err, MS_NOT_COMPILABLE, "no folder can be made in /tmp");
  snprintf(source, sizeof source, "%s/emitted.c", folder);
  bool ok = jit_export(ir, tir_find_func(ir, "main"), &target, &(struct jit_options){.verify = true}, source, err);
  *refused = !ok; /* what has no form in C, as vectors of truth values */
  ok = ok && load_and_compare(g, folder, source, seed, err);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) == 0 && ok;
}

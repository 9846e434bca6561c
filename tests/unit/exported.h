/* For tests of what is exported: assembly, objects, C source. */
#ifndef MSCHED_TEST_EXPORTED_H
#define MSCHED_TEST_EXPORTED_H

#include "file.h"
#include "jit/jit.h"

#include <dlfcn.h>
#include <unistd.h>

/* The bytes of a file that the function `main` is exported to, which is removed. The caller frees. */
static inline char *exported(const struct tir *ir, const struct jit_target *target, const struct jit_options *options,
                             const char *suffix, size_t *size) {
  char path[64];
  ms_error err = {.message = ""};
  snprintf(path, sizeof path, "/tmp/unit_exported.%ld%s", (long)getpid(), suffix);
  if (!jit_export(ir, tir_find_func(ir, "main"), target, options, path, &err)) fail_msg("%s", err.message);
  char *bytes = read_file(path, size);
  unlink(path);
  return bytes;
}

static inline char *assembly(const struct tir *ir, const char *target_text) {
  struct jit_target target;
  ms_error err = {.message = ""};
  if (!jit_target_parse(target_text, &target, &err)) fail_msg("%s", err.message);
  return exported(ir, &target, NULL, ".s", NULL);
}

/* Runs the function `main` as C that is exported with these options, compiled by the machine's compiler with those. */
static inline void run_exported_source(const struct tir *ir, const struct jit_target *target,
                                       const struct jit_options *exports, const char *options,
                                       const struct tir_arguments *args) {
  char folder[] = "/tmp/msched-source-XXXXXX", path[64], command[256];
  void *pointers[64];
  uint64_t scalars[64];
  jit_entry entry = NULL;
  ms_error err = {.message = ""};
  tir_func f = tir_find_func(ir, "main");
  assert_true(args->count <= 64);
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/k.c", folder);
  if (!jit_export(ir, f, target, exports, path, &err)) fail_msg("%s", err.message);
  snprintf(command, sizeof command, "cc -O1 %s -fopenmp -shared -fPIC -o %s/k.so %s -lm", options, folder, path);
  assert_int_equal(system(command), 0);
  snprintf(path, sizeof path, "%s/k.so", folder);
  void *library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  *(void **)&entry = dlsym(library, "k");
  assert_non_null(entry);
  jit_arguments(ir, f, args->args, pointers, scalars);
  assert_int_equal(entry(pointers, NULL), 0);
  dlclose(library);
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

#endif

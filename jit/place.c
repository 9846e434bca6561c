/* Where this code is: what is installed with it is found from there, so that an installed tree may be moved. */
#define _GNU_SOURCE
#include "jit.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* The shared library that holds this code, or else the program. A program's name as the loader has it may be a word
 * without a folder: the system is asked instead. */
static bool own_file(char *out, size_t size) {
  char program[PATH_MAX], library[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = 0;
  Dl_info found;
  bool shared = dladdr((void *)&jit_find_near, &found) && found.dli_fname && found.dli_fname[0] == '/' &&
                realpath(found.dli_fname, library);
  const char *file = shared ? library : program;
  return *file && snprintf(out, size, "%s", file) < (int)size;
}

bool jit_find_near(const char *file, int parents, char *out, size_t size) {
  assert(file && parents >= 0 && size > 0);
  char own[PATH_MAX];
  if (!own_file(own, sizeof own)) return false;
  const char *folder = dirname(own);
  for (int up = 0; up <= parents; up++, folder = dirname(own))
    if (snprintf(out, size, "%s/%s", folder, file) < (int)size && access(out, R_OK) == 0) return true;
  return false;
}

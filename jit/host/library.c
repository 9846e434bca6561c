/* Libraries that are opened when they are needed, and may be missing. */
#include "jit/jit.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* What the loader says where there is no memory for a library that is there. Source: glibc, elf/dl-map-segments.h and
 * elf/dl-load.c. */
static const char *remedy_of(const char *reason) {
  bool full = strstr(reason, "failed to map segment") || strstr(reason, "annot allocate memory");
  return full ? "; raise the limit of address space (ulimit -v), or free memory" : "";
}

void *jit_open_library(const char *variable, const char *const *names, bool lazily, char missing[JIT_LIBRARY_MISSING]) {
  assert(variable && names && *names);
  int how = (lazily ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL;
  const char *const own[] = {getenv(variable), NULL};
  if (own[0] && *own[0]) names = own;
  void *library = NULL;
  for (size_t i = 0; names[i] && !library; i++) library = dlopen(names[i], how);
  const char *reason = library ? NULL : dlerror();
  if (!library && !reason) reason = "it cannot be opened";
  if (!library) snprintf(missing, JIT_LIBRARY_MISSING, "%s%s", reason, remedy_of(reason));
  return library;
}

bool jit_find_functions(void *library, const struct jit_library_function *functions, size_t count,
                        char missing[JIT_LIBRARY_MISSING]) {
  bool found = true;
  for (size_t i = 0; library && i < count; i++) {
    void *at = dlsym(library, functions[i].name);
    memcpy(functions[i].to, &at, sizeof at);
    if (at || functions[i].optional) continue;
    found = false;
    snprintf(missing, JIT_LIBRARY_MISSING, "it has no %s", functions[i].name);
  }
  return found;
}

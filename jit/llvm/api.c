#include "api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct llvm_api llvm_api;

static const struct {
  const char *name;
  void *to;
} functions[] = {
#define LLVM_FUNCTION(name) {"LLVM" #name, &llvm_api.name},
#include "api.def"
};

static char missing[400]; /* why there is none; "": there is */

static void *try_open(const char *path) {
  void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  const char *reason = library ? NULL : dlerror();
  if (!library && !*missing) snprintf(missing, sizeof missing, "%s", reason ? reason : "it cannot be opened");
  if (library) *missing = 0;
  return library;
}

/* By the name that a library of the headers' version gives itself, then where it was when this was compiled. */
static void *open_library(void) {
  const char *own = getenv("MSCHED_LIBLLVM");
  if (own && *own) return try_open(own);
  void *library = try_open(MSCHED_LLVM_LIBRARY);
  return library ? library : try_open(MSCHED_LLVM_FOLDER "/" MSCHED_LLVM_LIBRARY);
}

#ifdef __SANITIZE_ADDRESS__
/* By default the sanitizer guesses where the memory of threads' own begins that a library has which was opened later,
 * and where it guesses wrong, looking for leaks reads what is not there. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "intercept_tls_get_addr=0"; }
#endif

/* It stays open: its objects live as long as the process. */
static void open_llvm(void) {
  void *library = open_library();
  for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
    void *at = dlsym(library, functions[i].name);
    memcpy(functions[i].to, &at, sizeof at);
    if (!at) snprintf(missing, sizeof missing, "it has no %s", functions[i].name);
  }
}

bool llvm_open(ms_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_llvm);
  return !*missing ||
         ms_fail(err, MS_NO_LIBRARY,
                 "LLVM is missing (%s): install LLVM " LLVM_VERSION_STRING
                 ", of Debian the package libllvm%d, or set MSCHED_LIBLLVM to the path of " MSCHED_LLVM_LIBRARY,
                 missing, LLVM_VERSION_MAJOR);
}

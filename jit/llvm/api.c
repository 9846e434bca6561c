#include "api.h"

#include "jit/jit.h"

#include <pthread.h>

struct llvm_api llvm_api;

static const struct jit_library_function functions[] = {
#define LLVM_FUNCTION(name) {"LLVM" #name, &llvm_api.name, false},
#include "api.def"
};

static char missing[JIT_LIBRARY_MISSING]; /* why there is none; "": there is */

#ifdef __SANITIZE_ADDRESS__
/* By default the sanitizer guesses where the memory of threads' own begins that a library has which was opened later,
 * and where it guesses wrong, looking for leaks reads what is not there. Undefined behaviour may be built to trap: the
 * stack says where. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "intercept_tls_get_addr=0:handle_sigill=1"; }
#endif

/* By the name that a library of the headers' version gives itself, then where it was when this was compiled. */
static void open_llvm(void) {
  static const char *const names[] = {MSCHED_LLVM_LIBRARY, MSCHED_LLVM_FOLDER "/" MSCHED_LLVM_LIBRARY, NULL};
  void *library = jit_open_library("MSCHED_LIBLLVM", names, true, missing);
  jit_find_functions(library, functions, sizeof functions / sizeof *functions, missing);
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

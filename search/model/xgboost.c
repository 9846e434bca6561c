#include "xgboost.h"

#include "jit/jit.h"

#include <pthread.h>

static struct xgboost xgboost;
static char missing[JIT_LIBRARY_MISSING]; /* why there is none; "": there is */

static const struct jit_library_function functions[] = {
#define FUNCTION(name) {#name, &xgboost.name, false},
    XGBOOST_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

static void open_xgboost(void) {
  static const char *const names[] = {MSCHED_XGBOOST_LIBRARY, NULL};
  void *library = jit_open_library("MSCHED_LIBXGBOOST", names, true, missing);
  jit_find_functions(library, functions, sizeof functions / sizeof *functions, missing);
}

const struct xgboost *xgboost_find(ms_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_xgboost);
  if (!*missing) return &xgboost;
  ms_fail(err, MS_NO_LIBRARY,
          "xgboost is missing (%s): install it, of Debian the package libxgboost0, set MSCHED_LIBXGBOOST to the path "
          "of " MSCHED_XGBOOST_LIBRARY ", or say --model random",
          missing);
  return NULL;
}

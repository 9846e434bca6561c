#include "xgboost.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct xgboost xgboost;
static char missing[400]; /* why there is none; "": there is */

static const struct {
  const char *name;
  void *to;
} functions[] = {
#define FUNCTION(name) {#name, &xgboost.name},
    XGBOOST_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* It stays open: threads of its own may run to the end. */
static void open_xgboost(void) {
  const char *own = getenv("MSCHED_LIBXGBOOST");
  void *library = dlopen(own && *own ? own : MSCHED_XGBOOST_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
  const char *reason = library ? NULL : dlerror();
  if (!library) snprintf(missing, sizeof missing, "%s", reason ? reason : "it cannot be opened");
  for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
    void *at = dlsym(library, functions[i].name);
    memcpy(functions[i].to, &at, sizeof at);
    if (!at) snprintf(missing, sizeof missing, "it has no %s", functions[i].name);
  }
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

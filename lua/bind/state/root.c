/* Where the files written in Lua, and the data of the benchmarks, are. */
#include "lua/bind/bind.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char root[PATH_MAX];

/* A build uses its source tree; an installed program, library or module what its own prefix holds, wherever that was
 * moved to. */
static void find_root(void) {
  static const char known[] = "/lua/lib/msched.lua";
  if (jit_find_near("CMakeCache.txt", 0, root, sizeof root))
    snprintf(root, sizeof root, "%s", MSCHED_SOURCE_ROOT);
  else if (jit_find_near(MSCHED_DATA_NAME "/msched/lua/lib/msched.lua", 2, root, sizeof root))
    root[strlen(root) - (sizeof known - 1)] = 0;
  else
    snprintf(root, sizeof root, "%s/msched", MSCHED_DATA_ROOT);
}

void script_path(const char *file, char *out, size_t size) {
  assert(file && out && size);
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_root);
  const char *given = getenv("MSCHED_LUA_PATH");
  snprintf(out, size, "%s/%s", given && *given ? given : root, file);
}

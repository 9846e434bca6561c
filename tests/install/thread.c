/* A host with Lua in a thread that ends after its state: what the module left for the end of the thread is
 * still there. */
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>

static const char script[] = "local ms = require 'msched'\n"
                             "local A = ms.te.placeholder({8}, 'float32', 'A')\n"
                             "local B = ms.te.compute({8}, function(i) return A[i] * 2 end, 'B')\n"
                             "assert(ms.schedule(ms.te.func('twice', {A, B})):build():check() == 0)\n";

static void *work(void *failed) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  *(int *)failed = luaL_dostring(L, script);
  if (*(int *)failed) fprintf(stderr, "%s\n", lua_tostring(L, -1));
  lua_close(L); /* which closes the module */
  return NULL;
}

int main(void) {
  int failed = 1;
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, &failed) || pthread_join(thread, NULL) || failed) return 1;
  }
  return 0;
}

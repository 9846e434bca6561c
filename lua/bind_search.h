/* What the bindings of searching share with the program. Internal to lua. */
#ifndef MSCHED_LUA_BIND_SEARCH_H
#define MSCHED_LUA_BIND_SEARCH_H

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

/* What a worker's state loads: the target's rules, then the user's files. */
struct script_files {
  char **paths;
  uint32_t count;
  double timeout;
  char target[1400];
};

/* Adds streams, and out of a sandbox pools, models, measurers and stores, to the module on the top of the stack. */
void bind_searching(lua_State *L, bool sandbox);
/* Makes a replay that runs return soon; async-signal-safe. */
void bind_search_interrupt(void);

#endif

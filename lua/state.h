/* A Lua state's limits: what its allocator and its hook know. Internal to state.c and limited.c. */
#ifndef MSCHED_LUA_STATE_H
#define MSCHED_LUA_STATE_H

#include "bind.h"
#include "cells.h"
#include "recall.h"

#include <string.h>

struct script { /* found through the allocator's data */
  struct script_limits limits;
  size_t used;     /* by Lua, and by what C holds for it */
  size_t grown;    /* of what C holds: since the last collection that it was the reason for */
  double deadline; /* of the call that runs; 0: none */
  double allowed;  /* seconds, which that deadline is the end of */
  size_t printed;  /* bytes, by what runs in a sandbox */
  uint32_t looks;  /* of script_look */
  struct cells cells;
  struct recall *recall; /* of a state that postprocesses; NULL: none */
};
struct script *script_of(lua_State *L);
void sandbox_tell_left_out(const struct script *s); /* of what was printed; sandbox.c */
bool script_is_late(const struct script *s);
double script_now(void); /* seconds of a steady clock */
/* The hook, called each SCRIPT_HOOK_PERIOD instructions. */
enum { SCRIPT_HOOK_PERIOD = 10000 };
void script_watch(lua_State *L, lua_Debug *unused);
extern const char script_no_memory[];
/* Names of chunks of our own files begin so. */
#define SCRIPT_OWN "=msched/"
static inline bool script_is_own(const lua_Debug *at) {
  return !strncmp(at->source, SCRIPT_OWN, sizeof SCRIPT_OWN - 1);
}

#endif

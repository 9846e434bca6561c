/* Lua's patterns, matched so that an interrupt or the end of a call's clock ends it: Lua's own matcher looks at nothing
 * until it is done, which may take years. Slower than that one, and the same results. Internal to lua/bind/state. */
#ifndef MSCHED_LUA_PATTERN_H
#define MSCHED_LUA_PATTERN_H

#include <lua.h>

/* As functions of Lua's library `string`: find takes no plain text. */
int pattern_find(lua_State *L);
int pattern_find_plain(lua_State *L); /* in time that grows with the text alone: it need not be stopped */
int pattern_match(lua_State *L);
int pattern_gmatch(lua_State *L);
int pattern_gsub(lua_State *L);

#endif

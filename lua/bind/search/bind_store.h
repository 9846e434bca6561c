/* What the files of stores in Lua share. Internal to lua/bind/search. */
#ifndef MSCHED_LUA_BIND_STORE_H
#define MSCHED_LUA_BIND_STORE_H

#include "bind_search.h"
#include "lua/bind/bind.h"

#include "db/db.h"

#include <lauxlib.h>

#define BOUND_STORE "msched.store"

struct db *bind_open_store(lua_State *L); /* the first argument; raises: it is closed */
void bind_push_id(lua_State *L, const db_id *id);
db_id bind_check_id(lua_State *L, int at);
db_id bind_check_id_field(lua_State *L, int at, const char *field); /* of the options at `at` */
const char *bind_versions(void);                                    /* of msched and LLVM, as records name them */

/* Methods of stores, of bind_record.c, bind_bests.c and bind_upkeep.c; each ends with {NULL, NULL}. */
int bind_stamp(lua_State *L);        /* stamp(): what tells this program and its rules from others; nil: nothing does */
int bind_record_fault(lua_State *L); /* what a store would not keep of a stranger's record */
extern const luaL_Reg bind_record_methods[], bind_bests_methods[], bind_upkeep_methods[];
void bind_bests(lua_State *L); /* their type */
/* read_workload, write_workload, check_pages, repair: to the module on the top of the stack (bind_upkeep.c). */
void bind_upkeep(lua_State *L);

#endif

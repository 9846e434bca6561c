/* What the bindings of searching share with the program. Internal to lua. */
#ifndef MSCHED_LUA_BIND_SEARCH_H
#define MSCHED_LUA_BIND_SEARCH_H

#include "jit/jit.h"
#include "search/search.h"
#include "vm/vm.h"

#include <lua.h>
#include <stdbool.h>
#include <stdint.h>

/* A user's file, read: states that load it later than others load the same text, whatever became of the file. */
struct script_source {
  char *path, *text;
  size_t length;
};
/* What a sandboxed state loads: the target's rules, then the user's files; or of passes over networks, these alone
 * (bind_rules.c). */
struct script_files {
  struct script_source *at;
  uint32_t count;
  double timeout;
  bool skips;  /* those that fail: script_limits */
  bool passes; /* the files are of passes */
  char target[JIT_TARGET_TEXT];
  const struct vm_intrinsics *intrinsics; /* borrowed: what they know besides what they define */
};
#define SCRIPT_MEMORY ((size_t)256 << 20) /* that such a state may take, schedules included */
void script_files_read(lua_State *L, int at, struct script_files *files); /* from options; freed by the caller */
void script_files_free(struct script_files *files);
/* What a pool is given: data is a script_files, a state is a lua_State. */
void *script_files_open(void *data, ms_error *err);
void script_files_close(void *data, void *state);
bool script_files_postprocess(void *data, void *state, struct vm_schedule *schedule, char by[SEARCH_NAME],
                              ms_error *err);
uint64_t script_files_memoized(void *state);

/* A candidate's rows of features, held by the value there; NULL: it is none. */
const float *bind_feature_rows(lua_State *L, int at, uint32_t *count);

/* Each adds to the module on the top of the stack. */
void bind_streams(lua_State *L);
void bind_sandboxes(lua_State *L);
void bind_searching(lua_State *L); /* pools, features */
void bind_models(lua_State *L);
void bind_estimators(lua_State *L);
void bind_measurers(lua_State *L);
void bind_stores(lua_State *L);
void bind_redis(lua_State *L); /* connections to a server, of a fleet of workers */
void bind_visible(lua_State *L);
void bind_files(lua_State *L);

#endif

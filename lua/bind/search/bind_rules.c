/* Rules and passes from files: states that hold them, for the pool's workers, for opening the space and for networks;
 * streams of numbers. */
#include "bind_search.h"
#include "lua/bind/bind.h"
#include "lua/bind/state/format.h"
#include "lua/bind/state/state.h"

#include <stdlib.h>
#include <string.h>

#define BOUND_STREAM  "msched.stream"
#define BOUND_SANDBOX "msched.sandbox"

/* ---- Streams: stream(seed, candidate, draw, attempt) ---- */

static int new_stream(lua_State *L) {
  struct vm_stream s = vm_stream_of((uint64_t)luaL_checkinteger(L, 1), (uint64_t)luaL_optinteger(L, 2, 0),
                                    (uint32_t)luaL_optinteger(L, 3, 0), (uint64_t)luaL_optinteger(L, 4, 0));
  *(struct vm_stream *)lua_newuserdatauv(L, sizeof s, 0) = s;
  luaL_setmetatable(L, BOUND_STREAM);
  return 1;
}

static int stream_below(lua_State *L) {
  lua_Integer bound = luaL_checkinteger(L, 2);
  luaL_argcheck(L, bound > 0 && bound <= UINT32_MAX, 2, "a bound from 1 on is expected");
  lua_pushinteger(L, vm_stream_below(luaL_checkudata(L, 1, BOUND_STREAM), (uint32_t)bound));
  return 1;
}

static int stream_unit(lua_State *L) {
  lua_pushnumber(L, vm_stream_unit(luaL_checkudata(L, 1, BOUND_STREAM)));
  return 1;
}

/* divisors(n): of an extent, ascending. */
static int divisors(lua_State *L) {
  lua_Integer extent = luaL_checkinteger(L, 1);
  luaL_argcheck(L, extent >= 1, 1, "a number from 1 on is expected");
  uint32_t count;
  int64_t *list = vm_divisors(extent, &count);
  lua_newtable(L);
  for (uint32_t i = 0; i < count; i++) lua_pushinteger(L, list[i]), lua_rawseti(L, -2, (lua_Integer)i + 1);
  free(list);
  return 1;
}

void bind_streams(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"below", stream_below}, {"unit", stream_unit}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{NULL, NULL}};
  bind_type(L, BOUND_STREAM, methods, meta);
  lua_pushcfunction(L, new_stream);
  lua_setfield(L, -2, "stream");
  lua_pushcfunction(L, divisors);
  lua_setfield(L, -2, "divisors");
}

/* ---- States that hold the target's rules and the user's files (rules/worker.lua) ---- */

static char *copy_of(lua_State *L, const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) luaL_error(L, "no memory for the text of a file");
  copy[length] = 0;
  return memcpy(copy, text, length);
}

/* The path of a file, which is read now, or {path =, text =}, as ms.sources gives it, on the top of the stack. */
static void add_source(lua_State *L, struct script_files *files) {
  size_t length;
  bool is_read = lua_istable(L, -1);
  if (is_read)
    lua_getfield(L, -1, "path");
  else
    lua_pushvalue(L, -1);
  const char *path = bind_check_text(L, -1), *text;
  if (is_read)
    lua_getfield(L, -2, "text");
  else
    script_push_text(L, path);
  text = luaL_checklstring(L, -1, &length);
  struct script_source *s = &files->at[files->count++]; /* freed with the others, whatever is raised */
  s->path = copy_of(L, path, strlen(path));
  s->text = copy_of(L, text, length);
  s->length = length;
  lua_pop(L, 2);
}

void script_files_read(lua_State *L, int at, struct script_files *files) {
  lua_getfield(L, at, "timeout");
  files->timeout = luaL_optnumber(L, -1, 10);
  files->skips = bind_option_bool(L, at, "skip_failing", false);
  files->passes = bind_option_bool(L, at, "passes", false);
  snprintf(files->target, sizeof files->target, "%s", bind_option_text(L, at, "target", "native"));
  if (lua_getfield(L, at, "files") == LUA_TTABLE) {
    lua_Integer count = luaL_len(L, -1);
    files->at = calloc((size_t)count + 1, sizeof *files->at);
    if (!files->at) luaL_error(L, "no memory");
    for (lua_Integer i = 1; i <= count; i++) {
      lua_rawgeti(L, -1, i);
      add_source(L, files);
      lua_pop(L, 1);
    }
    assert(files->count == count); /* as many as there is room for */
  }
  lua_pop(L, 2);
}

void script_files_free(struct script_files *files) {
  assert(files && (files->at || !files->count));
  for (uint32_t i = 0; i < files->count; i++) free(files->at[i].path), free(files->at[i].text);
  free(files->at);
  files->at = NULL;
  files->count = 0;
}

/* sources(paths): files read, each {path =, text =}: what sandboxes and pools take in place of a path */
static int sources(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer count = luaL_len(L, 1);
  lua_createtable(L, (int)count, 0);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_createtable(L, 0, 2);
    lua_rawgeti(L, 1, i);
    script_push_text(L, bind_check_text(L, -1));
    lua_setfield(L, -3, "text");
    lua_setfield(L, -2, "path");
    lua_rawseti(L, -2, i);
  }
  return 1;
}

/* Pushes the chunk of a user's file. As where Lua itself loads one, a mark of the byte order is no text, nor is a first
 * line that begins with a hash, but it counts as one. */
static void push_chunk(lua_State *L, const struct script_source *s) {
  static const char mark[] = "\xEF\xBB\xBF";
  const char *text = s->text, *end = text + s->length;
  if (s->length >= 3 && memcmp(text, mark, 3) == 0) text += 3;
  if (text < end && *text == '#')
    while (text < end && *text != '\n') text++;
  lua_pushfstring(L, "@%s", s->path);
  if (luaL_loadbufferx(L, text, (size_t)(end - text), lua_tostring(L, -1), "t") != LUA_OK) {
    format_explain(L, s->path, s->text, s->length);
    lua_error(L);
  }
  lua_remove(L, -2);
}

/* rules/worker.lua, or lua/net/worker.lua, gives a table of functions, which stays in the registry. A call may find the
 * state's memory out at any step, so all of it runs protected: `function` is a C function on the light userdata `data`.
 * What it returns is left on the stack, and read without making anything. */
static const char worker[] = "msched.worker";

static bool protected(lua_State *L, lua_CFunction function, void *data, int results, ms_error *err) {
  assert(function && results >= 0);
  lua_settop(L, 0);
  lua_pushcfunction(L, function);
  lua_pushlightuserdata(L, data);
  return script_try(L, 1, results, err);
}

static void push_worker(lua_State *L, const char *function) {
  lua_getfield(L, LUA_REGISTRYINDEX, worker);
  lua_getfield(L, -1, function);
  lua_remove(L, -2);
}

/* The postprocessors, in order: of each that is ours, `known` is its number (memo.h). What is looked up for each
 * candidate is here, since making a name may find memory out. */
struct postprocs {
  struct vm_trace *answers;
  const struct vm_intrinsics *intrinsics;
  uint32_t count;
  struct {
    char name[SEARCH_NAME];
    bool ours;
    uint32_t known;
  } at[];
};
static const char postprocs_key; /* where the registry has them */

static void list_postprocs(lua_State *L) {
  push_worker(L, "postprocs");
  lua_call(L, 0, 1);
  lua_Integer count = luaL_len(L, -1);
  struct postprocs *list = lua_newuserdatauv(L, sizeof *list + (size_t)count * sizeof *list->at, 0);
  list->count = (uint32_t)count;
  list->answers = bind_answers(L);
  list->intrinsics = bind_intrinsics(L);
  for (lua_Integer i = 0; i < count; i++) {
    lua_Debug about;
    lua_rawgeti(L, -2, i + 1);
    lua_getfield(L, -1, "name");
    snprintf(list->at[i].name, SEARCH_NAME, "%s", bind_check_text(L, -1));
    lua_getfield(L, -2, "apply");
    lua_getinfo(L, ">S", &about);
    list->at[i].ours = script_is_own(&about);
    list->at[i].known = memo_function(script_of(L)->memo);
    lua_pop(L, 2);
  }
  lua_rawsetp(L, LUA_REGISTRYINDEX, &postprocs_key);
  lua_pop(L, 1);
}

static int load_worker(lua_State *L) {
  const struct script_files *files = lua_touserdata(L, 1);
  ms_error err = {.instruction = -1};
  if (!bind_add_intrinsics(L, files->intrinsics, &err)) return bind_raise(L, &err);
  lua_pushstring(L, files->target);
  lua_setglobal(L, "MSCHED_TARGET");
  script_push_own(L, files->passes ? "lua.net.worker" : "rules.worker");
  lua_setfield(L, LUA_REGISTRYINDEX, worker);
  for (uint32_t i = 0; i < files->count; i++) {
    push_worker(L, "load");
    push_chunk(L, &files->at[i]);
    push_worker(L, "environment");
    lua_call(L, 0, 1);
    lua_setupvalue(L, -2, 1); /* a chunk's only one: what it knows as globals */
    lua_pushstring(L, files->at[i].path);
    lua_call(L, 2, 0);
  }
  list_postprocs(L);
  return 0;
}

void *script_files_open(void *data, ms_error *err) {
  assert(data);
  struct script_files *files = data;
  struct script_limits limits = {.bytes = SCRIPT_MEMORY,
                                 .seconds = files->timeout,
                                 .sandbox = true,
                                 .skips = files->skips,
                                 .fixed = files->passes};
  lua_State *L = script_new(&limits, err);
  if (L) script_of(L)->memo = memo_new();
  if (L && !protected(L, load_worker, files, 0, err)) {
    script_close(L);
    L = NULL;
  }
  return L;
}

void script_files_close(void *data, void *state) {
  assert(data && state);
  (void)data;
  script_close(state);
}

struct postprocessing {
  struct vm_schedule *schedule;
  uint32_t number; /* of the postprocessor, from 0 */
};

static int postprocess(lua_State *L) {
  const struct postprocessing *p = lua_touserdata(L, 1);
  push_worker(L, "postprocess");
  bind_push_borrowed_schedule(L, p->schedule);
  lua_pushinteger(L, (lua_Integer)p->number + 1);
  lua_call(L, 2, 4);
  return 4;
}

static const char *text_at(lua_State *L, int at, const char *otherwise) {
  return lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : otherwise;
}

static enum ms_code code_named(const char *name) {
  for (int code = 1; code < MS_CODE_COUNT; code++)
    if (!strcmp(ms_code_name((enum ms_code)code), name)) return (enum ms_code)code;
  return MS_POSTPROC;
}

static bool refuse(char by[SEARCH_NAME], const char *name, const char *code, const char *message, ms_error *err) {
  snprintf(by, SEARCH_NAME, "%s", name);
  return ms_fail(err, code_named(code), "%s", message);
}

static const char is_refused[] = "the postprocessor refuses it";

/* Runs one in Lua. What it gives: whether it accepts; else its name, and code and message of what it met, if any. */
static bool run_postproc(lua_State *L, struct postprocessing *p, bool *known, char by[SEARCH_NAME], ms_error *err) {
  bool ok = protected(L, postprocess, p, 4, err), refused = ok && !lua_toboolean(L, -4);
  *known = ok && lua_isnil(L, -2); /* by its verdict alone */
  if (refused) ok = refuse(by, text_at(L, -3, "?"), text_at(L, -2, ""), text_at(L, -1, is_refused), err);
  bind_release_schedule(L);
  lua_settop(L, 0);
  return ok;
}

/* Ours run without their Lua on a cache hit. */
static bool postprocess_by(lua_State *L, const struct postprocs *list, struct postprocessing *p, char by[SEARCH_NAME],
                           ms_error *err) {
  struct memo *r = script_of(L)->memo;
  bool accepted = false, known, ours = list->at[p->number].ours;
  if (ours && memo_walk(r, list->at[p->number].known, p->schedule, list->answers, &accepted))
    return accepted || refuse(by, list->at[p->number].name, "", is_refused, err);
  if (ours) memo_begin(r, list->at[p->number].known);
  bool ok = run_postproc(L, p, &known, by, err);
  if (ours) memo_end(r, known, ok);
  return ok;
}

bool script_files_postprocess(void *data, void *state, struct vm_schedule *schedule, char by[SEARCH_NAME],
                              ms_error *err) {
  assert(state && schedule && by);
  lua_State *L = state;
  (void)data;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &postprocs_key);
  const struct postprocs *list = lua_touserdata(L, -1); /* the registry keeps it */
  lua_pop(L, 1);
  struct postprocessing p = {schedule, 0};
  uint32_t first, count;
  schedule->intrinsics = list->intrinsics;
  bool ok = vm_call(schedule, VM_EnterPostproc, NULL, 0, NULL, 0, NULL, 0, &first, &count, err);
  for (; ok && p.number < list->count; p.number++) ok = postprocess_by(L, list, &p, by, err);
  return ok;
}

uint64_t script_files_memoized(void *state) { return memo_count(script_of(state)->memo); }

/* ---- Sandboxes: such a state, for opening the space and for mutating ---- */

static lua_State **check_sandbox(lua_State *L) { return luaL_checkudata(L, 1, BOUND_SANDBOX); }

static lua_State *open_sandbox(lua_State *L) {
  lua_State *sandbox = *check_sandbox(L);
  if (!sandbox) luaL_error(L, "the sandbox is closed");
  return sandbox;
}

static int collect_sandbox(lua_State *L) {
  lua_State **sandbox = check_sandbox(L);
  script_close(*sandbox);
  *sandbox = NULL;
  return 0;
}

static int collect_files(lua_State *L) {
  script_files_free(lua_touserdata(L, 1));
  return 0;
}

/* sandbox({files = {…}, target =, timeout =, skip_failing =, passes =}) */
static int new_sandbox(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_State **sandbox = lua_newuserdatauv(L, sizeof *sandbox, 0);
  *sandbox = NULL;
  luaL_setmetatable(L, BOUND_SANDBOX);
  struct script_files *files = bind_hold(L, sizeof *files, "msched.files", collect_files);
  script_files_read(L, 1, files);
  files->intrinsics = bind_intrinsics(L);
  ms_error err = {.instruction = -1};
  *sandbox = script_files_open(files, &err);
  lua_pop(L, 1);
  return *sandbox ? 1 : bind_raise(L, &err);
}

enum {
  MOST_DEPTH = 8,       /* of tables in tables */
  MOST_COPIED = 1 << 23 /* values: a table that holds itself in many places has no end of copies */
};

static bool push_copy_of(lua_State *L, lua_State *sandbox, int at, int depth, int *left);

/* A table's copy; only what can be copied is. */
static void push_table_copy(lua_State *L, lua_State *sandbox, int at, int depth, int *left) {
  lua_newtable(L);
  for (lua_pushnil(sandbox); lua_next(sandbox, at); lua_pop(sandbox, 1)) {
    int top = lua_gettop(sandbox);
    if (!push_copy_of(L, sandbox, top - 1, depth + 1, left)) continue;
    if (push_copy_of(L, sandbox, top, depth + 1, left))
      lua_settable(L, -3);
    else
      lua_pop(L, 1);
  }
}

static bool push_copy_of(lua_State *L, lua_State *sandbox, int at, int depth, int *left) {
  luaL_checkstack(L, 4, NULL);
  if (!*left) return false;
  --*left;
  struct vm_trace *trace = bind_test_trace(sandbox, at);
  int type = lua_type(sandbox, at);
  if (trace) return bind_push_trace(L, vm_trace_copy(trace)), true;
  if (type == LUA_TSTRING) {
    size_t length;
    const char *text = lua_tolstring(sandbox, at, &length);
    return lua_pushlstring(L, text, length), true;
  }
  if (type == LUA_TBOOLEAN) return lua_pushboolean(L, lua_toboolean(sandbox, at)), true;
  if (type == LUA_TNUMBER && lua_isinteger(sandbox, at)) return lua_pushinteger(L, lua_tointeger(sandbox, at)), true;
  if (type == LUA_TNUMBER) return lua_pushnumber(L, lua_tonumber(sandbox, at)), true;
  if (type != LUA_TTABLE || depth == MOST_DEPTH || !lua_checkstack(sandbox, 4)) return false;
  return push_table_copy(L, sandbox, at, depth, left), true;
}

/* Pushes a copy of what stands at `at` in another state: a text, number, truth or trace, or a table of these. Pushes
 * nothing where there is no copy, or one of more than MOST_COPIED values. */
static bool push_copy(lua_State *L, lua_State *sandbox, int at) {
  int left = MOST_COPIED;
  if (!push_copy_of(L, sandbox, at, 0, &left)) return false;
  if (!left) lua_pop(L, 1);
  return left > 0;
}

struct sketching {
  const struct bound_function *function;
  lua_Integer seed;
  lua_State *caller;
  int groups; /* where they stand in the caller */
};

static int sketch(lua_State *L) {
  const struct sketching *s = lua_touserdata(L, 1);
  push_worker(L, "sketches");
  bind_push_function_copy(L, s->function->ir, s->function->func);
  lua_pushinteger(L, s->seed);
  if (!push_copy(L, s->caller, s->groups)) lua_pushnil(L);
  lua_call(L, 3, 1);
  return 1;
}

/* sandbox:sketches(function, seed, groups): what worker.sketches gives (rules/worker.lua). The intrinsics that the
 * files define are this state's from then on: its schedules, and the pools and measurers that it makes, know them. */
static int box_sketches(lua_State *L) {
  lua_State *sandbox = open_sandbox(L);
  struct sketching s = {bind_check_function(L, 2), luaL_optinteger(L, 3, 1), L, 4};
  lua_settop(L, 4);
  ms_error err = {.instruction = -1};
  if (!protected(sandbox, sketch, &s, 1, &err) || !bind_add_intrinsics(L, bind_intrinsics(sandbox), &err))
    return bind_raise(L, &err);
  return push_copy(L, sandbox, lua_gettop(sandbox));
}

static int list_mutators(lua_State *L) {
  push_worker(L, "mutators");
  lua_call(L, 0, 1);
  return 1;
}

/* sandbox:mutators(): a list of {name, weight} */
static int box_mutators(lua_State *L) {
  lua_State *sandbox = open_sandbox(L);
  ms_error err = {.instruction = -1};
  if (!protected(sandbox, list_mutators, NULL, 1, &err)) return bind_raise(L, &err);
  lua_newtable(L);
  for (lua_Integer i = 1; lua_rawgeti(sandbox, -1, i) == LUA_TTABLE; i++, lua_pop(sandbox, 3)) {
    bool named = lua_rawgeti(sandbox, -1, 1) == LUA_TSTRING;
    lua_rawgeti(sandbox, -2, 2);
    lua_createtable(L, 2, 0);
    lua_pushstring(L, named ? lua_tostring(sandbox, -2) : "?");
    lua_rawseti(L, -2, 1);
    lua_pushnumber(L, lua_tonumber(sandbox, -1));
    lua_rawseti(L, -2, 2);
    lua_rawseti(L, -2, i);
  }
  return 1;
}

struct mutation {
  lua_Integer mutator;
  const struct vm_trace *trace, *other; /* other: NULL, or another of the population */
  struct vm_stream *stream;             /* goes on from where the mutator left it */
};

static int mutate(lua_State *L) {
  const struct mutation *m = lua_touserdata(L, 1);
  struct vm_stream *stream = lua_newuserdatauv(L, sizeof *stream, 0);
  *stream = *m->stream;
  luaL_setmetatable(L, BOUND_STREAM);
  push_worker(L, "mutate");
  lua_pushinteger(L, m->mutator);
  bind_push_trace(L, vm_trace_copy(m->trace));
  lua_pushvalue(L, 2);
  if (m->other)
    bind_push_trace(L, vm_trace_copy(m->other));
  else
    lua_pushnil(L);
  lua_call(L, 4, 3);
  *m->stream = *stream;
  return 3;
}

/* sandbox:mutate(number of the mutator, trace, stream [, another trace of the population]): a trace; or nil, and the
 * code and message of what was refused, if anything was */
static int box_mutate(lua_State *L) {
  lua_State *sandbox = open_sandbox(L);
  struct mutation m = {luaL_checkinteger(L, 2), bind_check_trace(L, 3),
                       lua_isnoneornil(L, 5) ? NULL : bind_check_trace(L, 5), luaL_checkudata(L, 4, BOUND_STREAM)};
  ms_error err = {.instruction = -1};
  if (!protected(sandbox, mutate, &m, 3, &err)) return bind_raise(L, &err);
  if (lua_isnil(sandbox, -3)) {
    lua_pushnil(L);
    lua_pushstring(L, text_at(sandbox, -2, NULL));
    lua_pushstring(L, text_at(sandbox, -1, NULL));
    return 3;
  }
  struct vm_trace *trace = bind_test_trace(sandbox, -3);
  if (!trace) return luaL_error(L, "a mutator gave what is no trace");
  bind_push_trace(L, vm_trace_copy(trace));
  return 1;
}

/* ---- Passes over networks (lua/net/worker.lua) ---- */

struct calling {
  const char *function; /* of the worker */
  lua_State *caller;
  int first, last; /* the arguments, where they stand in the caller */
};

static int call_copied(lua_State *L) {
  const struct calling *c = lua_touserdata(L, 1);
  push_worker(L, c->function);
  for (int at = c->first; at <= c->last; at++)
    if (!push_copy(L, c->caller, at)) lua_pushnil(L);
  lua_call(L, c->last - c->first + 1, 1);
  return 1;
}

/* Calls a function of the worker on copies; pushes a copy of what it gives. */
static int call_worker(lua_State *L, const char *function) {
  lua_State *sandbox = open_sandbox(L);
  struct calling c = {function, L, 2, lua_gettop(L)};
  ms_error err = {.instruction = -1};
  if (!protected(sandbox, call_copied, &c, 1, &err)) return bind_raise(L, &err);
  if (!push_copy(L, sandbox, lua_gettop(sandbox))) lua_pushnil(L);
  lua_settop(sandbox, 0);
  return 1;
}

/* sandbox:passes(): a list of {name, after, file} */
static int box_passes(lua_State *L) { return call_worker(L, "passes"); }
/* sandbox:pass(number, network): the network as the pass of that number left it, as lua/net/plain.lua writes it; nil:
 * it is too large */
static int box_pass(lua_State *L) { return call_worker(L, "pass"); }

void bind_sandboxes(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"sketches", box_sketches}, {"mutators", box_mutators}, {"mutate", box_mutate},
                                     {"passes", box_passes},     {"pass", box_pass},         {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect_sandbox}, {NULL, NULL}};
  bind_type(L, BOUND_SANDBOX, methods, meta);
  lua_pushcfunction(L, new_sandbox);
  lua_setfield(L, -2, "sandbox");
  lua_pushcfunction(L, sources);
  lua_setfield(L, -2, "sources");
}

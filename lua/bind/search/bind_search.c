/* Searching from Lua: pools and features. */
#include "bind_search.h"
#include "lua/bind/bind.h"

#include "search/search.h"

#include <stdlib.h>
#include <string.h>

#define BOUND_POOL     "msched.pool"
#define BOUND_FEATURES "msched.features"

/* ---- Features of one candidate ---- */

struct bound_features {
  float *rows;
  uint32_t count;
};

static int collect_features(lua_State *L) {
  struct bound_features *f = luaL_checkudata(L, 1, BOUND_FEATURES);
  free(f->rows);
  f->rows = NULL;
  return 0;
}

static int features_length(lua_State *L) {
  lua_pushinteger(L, ((struct bound_features *)luaL_checkudata(L, 1, BOUND_FEATURES))->count);
  return 1;
}

/* features(row, name or number): one number */
static int features_call(lua_State *L) {
  struct bound_features *f = luaL_checkudata(L, 1, BOUND_FEATURES);
  lua_Integer row = luaL_checkinteger(L, 2), column = -1;
  luaL_argcheck(L, row >= 1 && row <= f->count, 2, "no such row");
  if (lua_isinteger(L, 3))
    column = lua_tointeger(L, 3) - 1;
  else
    for (uint32_t i = 0; i < search_feature_count(); i++)
      if (!strcmp(search_feature_name(i), bind_check_text(L, 3))) column = i;
  luaL_argcheck(L, column >= 0 && column < search_feature_count(), 3, "no such feature");
  lua_pushnumber(L, (double)f->rows[(row - 1) * search_feature_count() + column]);
  return 1;
}

/* features(schedule): as pool:replay gives them for a candidate */
static int features_of(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct bound_features *f = lua_newuserdatauv(L, sizeof *f, 0);
  *f = (struct bound_features){NULL, 0};
  luaL_setmetatable(L, BOUND_FEATURES);
  ms_error err = {.instruction = -1};
  if (!search_features(s->ir, tir_find_func(s->ir, "main"), &f->rows, &f->count, &err)) return bind_raise(L, &err);
  return 1;
}

const float *bind_feature_rows(lua_State *L, int at, uint32_t *count) {
  assert(count);
  const struct bound_features *f = luaL_testudata(L, at, BOUND_FEATURES);
  *count = f ? f->count : 0;
  return f ? f->rows : NULL;
}

/* features:without(columns): a copy where these, a list of numbers from 1, are 0 */
static int features_without(lua_State *L) {
  const struct bound_features *f = luaL_checkudata(L, 1, BOUND_FEATURES);
  luaL_checktype(L, 2, LUA_TTABLE);
  uint32_t width = search_feature_count();
  size_t size = (size_t)f->count * width * sizeof *f->rows;
  struct bound_features *copy = lua_newuserdatauv(L, sizeof *copy, 0);
  *copy = (struct bound_features){NULL, f->count};
  luaL_setmetatable(L, BOUND_FEATURES);
  copy->rows = malloc(size ? size : 1);
  if (!copy->rows) return luaL_error(L, "no memory for features");
  memcpy(copy->rows, f->rows, size);
  for (lua_Integer i = 1, n = luaL_len(L, 2); i <= n; i++) {
    lua_geti(L, 2, i);
    lua_Integer column = lua_tointeger(L, -1);
    luaL_argcheck(L, column >= 1 && column <= width, 2, "no such feature");
    for (uint32_t row = 0; row < f->count; row++) copy->rows[(size_t)row * width + (size_t)column - 1] = 0;
    lua_pop(L, 1);
  }
  return 1;
}

/* feature_names(): their names; what each is */
static int feature_names(lua_State *L) {
  lua_newtable(L);
  lua_newtable(L);
  for (uint32_t i = 0; i < search_feature_count(); i++) {
    lua_pushstring(L, search_feature_name(i));
    lua_rawseti(L, -3, (lua_Integer)i + 1);
    lua_pushstring(L, search_feature_doc(i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 2;
}

/* ---- Pools ---- */

struct bound_pool {
  struct search_pool *pool;
  struct script_files files;
  struct search_script script;
  uint32_t functions; /* so many */
};

static struct bound_pool *open_pool(lua_State *L) {
  struct bound_pool *p = luaL_checkudata(L, 1, BOUND_POOL);
  if (!p->pool) luaL_error(L, "the pool is closed");
  return p;
}

static int collect_pool(lua_State *L) {
  struct bound_pool *p = luaL_checkudata(L, 1, BOUND_POOL);
  search_pool_free(p->pool);
  p->pool = NULL;
  script_files_free(&p->files);
  return 0;
}

/* pool(function, {jobs =, files = {…}, target =, timeout =, skip_failing =}): the function is its number 0 */
static int new_pool(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  struct bound_pool *p = lua_newuserdatauv(L, sizeof *p, 0);
  memset(p, 0, sizeof *p);
  luaL_setmetatable(L, BOUND_POOL);
  script_files_read(L, 2, &p->files);
  p->files.intrinsics = bind_intrinsics(L);
  p->script = (struct search_script){&p->files, script_files_open, script_files_close, script_files_postprocess,
                                     script_files_memoized};
  ms_error err = {.instruction = -1};
  p->pool = search_pool_new(&p->script, bind_intrinsics(L), (uint32_t)bind_option_int(L, 2, "jobs", 1), &err);
  if (!p->pool) return bind_raise(L, &err);
  p->functions = search_pool_add(p->pool, f->ir, f->func) + 1;
  assert(p->functions == 1);
  return 1;
}

/* pool:add(function): its number, for jobs */
static int pool_add(lua_State *L) {
  struct bound_pool *p = open_pool(L);
  const struct bound_function *f = bind_check_function(L, 2);
  uint32_t number = search_pool_add(p->pool, f->ir, f->func);
  assert(number == p->functions); /* read_jobs takes those below */
  lua_pushinteger(L, number);
  p->functions++;
  return 1;
}

struct round {
  struct search_job *jobs;
  struct search_candidate *out;
  uint32_t count;
};

static int collect_round(lua_State *L) {
  struct round *r = lua_touserdata(L, 1);
  for (uint32_t i = 0; r->out && i < r->count; i++) {
    vm_packed_free(r->out[i].trace);
    vm_trace_free(r->out[i].sketch);
    free(r->out[i].features);
  }
  free(r->out);
  free(r->jobs);
  r->out = NULL;
  r->jobs = NULL;
  return 0;
}

static struct round *new_round(lua_State *L, uint32_t count) {
  struct round *r = bind_hold(L, sizeof *r, "msched.round", collect_round);
  r->jobs = calloc(count + 1, sizeof *r->jobs);
  r->out = calloc(count + 1, sizeof *r->out);
  if (!r->jobs || !r->out) luaL_error(L, "no memory for a round");
  r->count = count;
  return r;
}

static void push_candidate(lua_State *L, struct search_candidate *c) {
  assert(!c->ok || (c->trace && c->sketch));
  char hash[20];
  lua_newtable(L);
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)c->module_hash);
  lua_pushstring(L, hash);
  lua_setfield(L, -2, "hash");
  struct vm_packed *trace = c->trace;
  c->trace = NULL; /* Lua frees it; the round, should it raise, the sketch */
  bind_push_packed(L, trace);
  lua_setfield(L, -2, "trace");
  struct vm_trace *sketch = c->sketch;
  c->sketch = NULL;
  bind_push_trace(L, sketch);
  lua_setfield(L, -2, "sketch_trace");
  if (!c->features) return;
  struct bound_features *f = lua_newuserdatauv(L, sizeof *f, 0);
  *f = (struct bound_features){c->features, c->feature_rows};
  c->features = NULL;
  luaL_setmetatable(L, BOUND_FEATURES);
  lua_setfield(L, -2, "features");
}

/* Refusals of one kind: rules/refusals.lua has them as tables. */
struct refusal {
  const struct search_candidate *first;
  lua_Integer count;
};

/* Refusals by who and code, in `list`, which has room for all; returns their number. *script_error: the message of the
 * first script that failed. */
static uint32_t count_refusals(const struct round *r, struct refusal *list, const char **script_error) {
  uint32_t kinds = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    const struct search_candidate *c = &r->out[i];
    if (c->ok || !c->err.code) continue; /* it was not begun */
    if (c->err.code == MS_SCRIPT) {
      if (!*script_error) *script_error = c->err.message;
      continue;
    }
    uint32_t k = 0;
    while (k < kinds &&
           (list[k].first->err.code != c->err.code || strcmp(list[k].first->refused_by, c->refused_by) != 0))
      k++;
    if (k == kinds) list[kinds++] = (struct refusal){c, 0};
    list[k].count++;
  }
  assert(kinds <= r->count);
  return kinds;
}

static void push_refusals(lua_State *L, const struct refusal *list, uint32_t count) {
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    const struct search_candidate *c = list[i].first;
    lua_createtable(L, 0, 4);
    lua_pushstring(L, c->refused_by), lua_setfield(L, -2, "by");
    if (c->err.code != MS_POSTPROC) {
      lua_pushstring(L, ms_code_name(c->err.code)), lua_setfield(L, -2, "code");
      lua_pushstring(L, c->err.message), lua_setfield(L, -2, "example");
    }
    lua_pushinteger(L, list[i].count), lua_setfield(L, -2, "count");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

static void read_jobs(lua_State *L, int at, uint32_t functions, struct round *r) {
  for (uint32_t i = 0; i < r->count; i++) {
    lua_rawgeti(L, at, (lua_Integer)i + 1);
    lua_getfield(L, -1, "trace");
    int64_t function = bind_option_int(L, -2, "task", 0);
    if (function < 0 || function >= functions) luaL_error(L, "job %d is of no function of the pool", (int)i + 1);
    r->jobs[i] = (struct search_job){.trace = bind_check_trace(L, -1),
                                     .function = (uint32_t)function,
                                     .seed = (uint64_t)bind_option_int(L, -2, "seed", 1),
                                     .candidate = (uint64_t)bind_option_int(L, -2, "candidate", 0),
                                     .resample = bind_option_resample(L, -2)};
    lua_pop(L, 2); /* the table of jobs keeps it */
  }
}

/* pool:replay(jobs, features): jobs {trace =, task =, seed =, candidate =, resample =}; a list of candidates {trace,
 * sketch_trace, hash, features}, false where one was refused; then a list of what was refused, {by, code, count,
 * example}; then the message of the first script error, if any. */
static int pool_replay(lua_State *L) {
  struct bound_pool *p = open_pool(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  uint32_t count = (uint32_t)luaL_len(L, 2);
  bool features = lua_toboolean(L, 3);
  struct round *r = new_round(L, count);
  read_jobs(L, 2, p->functions, r);
  struct refusal *refusals = lua_newuserdatauv(L, (count + 1) * sizeof *refusals, 0);
  ms_error err = {.instruction = -1};
  if (!search_pool_replay(p->pool, r->jobs, count, features, r->out, script_stop_flag(L), &err))
    return bind_raise(L, &err);
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    if (r->out[i].ok)
      push_candidate(L, &r->out[i]);
    else
      lua_pushboolean(L, 0);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  const char *script_error = NULL;
  push_refusals(L, refusals, count_refusals(r, refusals, &script_error));
  lua_pushstring(L, script_error); /* nil for NULL */
  return 3;
}

/* pool:costs(): what the jobs so far have cost, seconds of the processor by stage: {jobs, accepted, memoized, replay,
 * postprocess, hash, trace, features}; memoized: postprocessors that were done without their Lua */
static int pool_costs(lua_State *L) {
  struct search_costs c = search_pool_costs(open_pool(L)->pool);
  assert(c.accepted <= c.jobs);
  lua_createtable(L, 0, 8);
  lua_pushinteger(L, (lua_Integer)c.jobs), lua_setfield(L, -2, "jobs");
  lua_pushinteger(L, (lua_Integer)c.accepted), lua_setfield(L, -2, "accepted");
  lua_pushinteger(L, (lua_Integer)c.memoized), lua_setfield(L, -2, "memoized");
  lua_pushinteger(L, (lua_Integer)c.memoized), lua_setfield(L, -2, "recalled"); /* as it was called */
  lua_pushnumber(L, c.replay), lua_setfield(L, -2, "replay");
  lua_pushnumber(L, c.postprocess), lua_setfield(L, -2, "postprocess");
  lua_pushnumber(L, c.hash), lua_setfield(L, -2, "hash");
  lua_pushnumber(L, c.trace), lua_setfield(L, -2, "trace");
  lua_pushnumber(L, c.features), lua_setfield(L, -2, "features");
  return 1;
}

/* ---- Other things that policies and reports need ---- */

static int clock_seconds(lua_State *L) {
  lua_pushnumber(L, vm_seconds());
  return 1;
}

static int interrupted(lua_State *L) {
  lua_pushboolean(L, *script_stop_flag(L));
  return 1;
}

void bind_searching(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg pool[] = {
      {"add", pool_add}, {"replay", pool_replay}, {"costs", pool_costs}, {"close", collect_pool}, {NULL, NULL}};
  static const luaL_Reg features[] = {{"without", features_without}, {NULL, NULL}};
  static const luaL_Reg pool_meta[] = {{"__gc", collect_pool}, {NULL, NULL}};
  static const luaL_Reg features_meta[] = {
      {"__gc", collect_features}, {"__len", features_length}, {"__call", features_call}, {NULL, NULL}};
  bind_type(L, BOUND_POOL, pool, pool_meta);
  bind_type(L, BOUND_FEATURES, features, features_meta);
  static const luaL_Reg functions[] = {{"pool", new_pool},           {"feature_names", feature_names},
                                       {"features", features_of},    {"clock", clock_seconds},
                                       {"interrupted", interrupted}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

/* Searching from Lua: pools, cost models, measurers, stores. */
#include "bind_search.h"
#include "bind.h"

#include "db/db.h"
#include "search/search.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BOUND_POOL     "msched.pool"
#define BOUND_MODEL    "msched.model"
#define BOUND_MEASURER "msched.measurer"
#define BOUND_STORE    "msched.store"
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
      if (!strcmp(search_feature_name(i), luaL_checkstring(L, 3))) column = i;
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

static int feature_names(lua_State *L) {
  lua_newtable(L);
  for (uint32_t i = 0; i < search_feature_count(); i++) {
    lua_pushstring(L, search_feature_name(i));
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* ---- Pools ---- */

struct bound_pool {
  struct search_pool *pool;
  struct script_files files;
  struct search_script script;
};

static int collect_pool(lua_State *L) {
  struct bound_pool *p = luaL_checkudata(L, 1, BOUND_POOL);
  search_pool_free(p->pool);
  p->pool = NULL;
  script_files_free(&p->files);
  return 0;
}

/* pool(function, {jobs =, files = {…}, target =, timeout =}) */
static int new_pool(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  struct bound_pool *p = lua_newuserdatauv(L, sizeof *p, 0);
  memset(p, 0, sizeof *p);
  luaL_setmetatable(L, BOUND_POOL);
  script_files_read(L, 2, &p->files);
  p->script = (struct search_script){&p->files, script_files_open, script_files_close, script_files_postprocess};
  ms_error err = {.instruction = -1};
  p->pool = search_pool_new(f->ir, f->func, &p->script, (uint32_t)bind_option_int(L, 2, "jobs", 1), &err);
  return p->pool ? 1 : bind_raise(L, &err);
}

struct round {
  struct search_job *jobs;
  struct search_candidate *out;
  uint32_t count;
};

static int collect_round(lua_State *L) {
  struct round *r = lua_touserdata(L, 1);
  for (uint32_t i = 0; r->out && i < r->count; i++) {
    vm_trace_free(r->out[i].trace);
    free(r->out[i].features);
  }
  free(r->out);
  free(r->jobs);
  r->out = NULL;
  r->jobs = NULL;
  return 0;
}

static struct round *new_round(lua_State *L, uint32_t count) {
  struct round *r = lua_newuserdatauv(L, sizeof *r, 0);
  memset(r, 0, sizeof *r);
  if (luaL_newmetatable(L, "msched.round")) {
    lua_pushcfunction(L, collect_round);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  r->jobs = calloc(count + 1, sizeof *r->jobs);
  r->out = calloc(count + 1, sizeof *r->out);
  if (!r->jobs || !r->out) luaL_error(L, "no memory for a round");
  r->count = count;
  return r;
}

static void push_candidate(lua_State *L, struct search_candidate *c) {
  char hash[20];
  lua_newtable(L);
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)c->module_hash);
  lua_pushstring(L, hash);
  lua_setfield(L, -2, "hash");
  struct vm_trace *trace = c->trace;
  c->trace = NULL;
  bind_push_trace(L, trace);
  lua_setfield(L, -2, "trace");
  if (!c->features) return;
  struct bound_features *f = lua_newuserdatauv(L, sizeof *f, 0);
  *f = (struct bound_features){c->features, c->feature_rows};
  c->features = NULL;
  luaL_setmetatable(L, BOUND_FEATURES);
  lua_setfield(L, -2, "features");
}

static volatile bool stop_pool;
void bind_search_interrupt(void) { stop_pool = true; }

/* pool:replay(jobs, features): jobs {trace =, seed =, candidate =, anew =}; a list of candidates {trace, hash,
 * features}, false where one was refused; then a table of refusals by code; then the message of the first script error,
 * if any. */
static int pool_replay(lua_State *L) {
  struct bound_pool *p = luaL_checkudata(L, 1, BOUND_POOL);
  luaL_checktype(L, 2, LUA_TTABLE);
  uint32_t count = (uint32_t)luaL_len(L, 2);
  bool features = lua_toboolean(L, 3);
  struct round *r = new_round(L, count);
  for (uint32_t i = 0; i < count; i++) {
    lua_rawgeti(L, 2, (lua_Integer)i + 1);
    lua_getfield(L, -1, "trace");
    r->jobs[i] =
        (struct search_job){bind_check_trace(L, -1), (uint64_t)bind_option_int(L, -2, "seed", 1),
                            (uint64_t)bind_option_int(L, -2, "candidate", 0), bind_option_bool(L, -2, "anew", false)};
    lua_pop(L, 2); /* the table of jobs keeps it */
  }
  ms_error err = {.instruction = -1};
  if (!search_pool_replay(p->pool, r->jobs, count, features, r->out, &stop_pool, &err)) return bind_raise(L, &err);
  lua_createtable(L, (int)count, 0);
  lua_newtable(L);
  const char *script_error = NULL;
  for (uint32_t i = 0; i < count; i++) {
    if (r->out[i].ok) {
      push_candidate(L, &r->out[i]);
    } else {
      const char *code = ms_code_name(r->out[i].err.code);
      lua_getfield(L, -1, code);
      lua_Integer n = lua_tointeger(L, -1);
      lua_pop(L, 1);
      lua_pushinteger(L, n + 1);
      lua_setfield(L, -2, code);
      if (r->out[i].err.code == MS_SCRIPT && !script_error) script_error = r->out[i].err.message;
      lua_pushboolean(L, 0);
    }
    lua_rawseti(L, -3, (lua_Integer)i + 1);
  }
  if (script_error)
    lua_pushstring(L, script_error);
  else
    lua_pushnil(L);
  return 3;
}

/* ---- Cost models ---- */

static struct search_model **check_model(lua_State *L) { return luaL_checkudata(L, 1, BOUND_MODEL); }

static int new_model(lua_State *L) {
  struct search_model **m = lua_newuserdatauv(L, sizeof *m, 0);
  *m = NULL;
  luaL_setmetatable(L, BOUND_MODEL);
  ms_error err = {.instruction = -1};
  *m = search_model_new(luaL_checkstring(L, 1), (uint64_t)luaL_optinteger(L, 2, 1), &err);
  return *m ? 1 : bind_raise(L, &err);
}

static int collect_model(lua_State *L) {
  search_model_free(*check_model(L));
  *check_model(L) = NULL;
  return 0;
}

/* Reads candidates' features from the list at `at` into arrays held by userdata that are pushed. */
struct lists {
  const float **features;
  uint32_t *rows;
  double *numbers;
};

static struct lists read_lists(lua_State *L, int at, uint32_t *count) {
  *count = (uint32_t)luaL_len(L, at);
  struct lists l;
  l.features = lua_newuserdatauv(L, (*count + 1) * sizeof *l.features, 0);
  l.rows = lua_newuserdatauv(L, (*count + 1) * sizeof *l.rows, 0);
  l.numbers = lua_newuserdatauv(L, (*count + 1) * sizeof *l.numbers, 0);
  for (uint32_t i = 0; i < *count; i++) {
    lua_rawgeti(L, at, (lua_Integer)i + 1);
    lua_getfield(L, -1, "features");
    struct bound_features *f = luaL_testudata(L, -1, BOUND_FEATURES);
    l.features[i] = f ? f->rows : NULL;
    l.rows[i] = f ? f->count : 0;
    lua_getfield(L, -2, "seconds");
    l.numbers[i] = lua_tonumber(L, -1);
    lua_pop(L, 3);
  }
  return l;
}

/* model:update(candidates): each with features and seconds */
static int model_update(lua_State *L) {
  uint32_t count;
  struct lists l = read_lists(L, 2, &count);
  ms_error err = {.instruction = -1};
  return search_model_update(*check_model(L), l.features, l.rows, l.numbers, count, &err) ? 0 : bind_raise(L, &err);
}

/* model:predict(candidates): a list of scores, the higher the better */
static int model_predict(lua_State *L) {
  uint32_t count;
  struct lists l = read_lists(L, 2, &count);
  ms_error err = {.instruction = -1};
  if (!search_model_predict(*check_model(L), l.features, l.rows, count, l.numbers, &err)) return bind_raise(L, &err);
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    lua_pushnumber(L, l.numbers[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* ---- Measurers ---- */

static struct jit_measurer **check_measurer(lua_State *L) { return luaL_checkudata(L, 1, BOUND_MEASURER); }

/* measurer(function, {target =, builders =, check_best_only =, fast_math =}) */
static int new_measurer(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  struct jit_measurer **m = lua_newuserdatauv(L, sizeof *m, 0);
  *m = NULL;
  luaL_setmetatable(L, BOUND_MEASURER);
  struct jit_target target;
  ms_error err = {.instruction = -1};
  if (!jit_target_parse(bind_option_text(L, 2, "target", "native"), &target, &err)) return bind_raise(L, &err);
  struct jit_measurer_options options = {.stop = &stop_pool,
                                         .builders = (uint32_t)bind_option_int(L, 2, "builders", 0),
                                         .check_best_only = bind_option_bool(L, 2, "check_best_only", false),
                                         .code = {.no_fast_math = !bind_option_bool(L, 2, "fast_math", true)}};
  *m = jit_measurer_new(f->ir, f->func, &target, &options, &err);
  return *m ? 1 : bind_raise(L, &err);
}

static int collect_measurer(lua_State *L) {
  jit_measurer_free(*check_measurer(L));
  *check_measurer(L) = NULL;
  return 0;
}

static struct jit_measurer *open_measurer(lua_State *L) {
  struct jit_measurer *m = *check_measurer(L);
  if (!m) luaL_error(L, "the measurer is closed");
  return m;
}

/* measurer:submit(id, trace) */
static int measurer_submit(lua_State *L) {
  struct jit_measurer *m = open_measurer(L);
  size_t bytes;
  void *binary = vm_write_binary(bind_check_trace(L, 3), &bytes);
  ms_error err = {.instruction = -1};
  bool ok = jit_measurer_submit(m, (uint64_t)luaL_checkinteger(L, 2), binary, bytes, &err);
  free(binary);
  return ok ? 0 : bind_raise(L, &err);
}

/* measurer:next(wait): nil, or {id, hash, outcome, seconds, low, high, runs, repeated, build_seconds, check_seconds,
 * time_seconds, reason} */
static int measurer_next(lua_State *L) {
  struct jit_result r;
  char hash[20];
  ms_error err = {.instruction = -1};
  int got = jit_measurer_next(open_measurer(L), luaL_optnumber(L, 2, 0.2), &r, &err);
  if (got < 0) return bind_raise(L, &err);
  if (!got) return 0;
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r.module_hash);
  lua_newtable(L);
  lua_pushinteger(L, (lua_Integer)r.id), lua_setfield(L, -2, "id");
  lua_pushstring(L, hash), lua_setfield(L, -2, "hash");
  lua_pushstring(L, jit_outcome_text(r.outcome)), lua_setfield(L, -2, "outcome");
  lua_pushboolean(L, r.outcome == JIT_MEASURED), lua_setfield(L, -2, "measured");
  lua_pushboolean(L, r.outcome == JIT_CENSORED), lua_setfield(L, -2, "censored");
  lua_pushnumber(L, r.timing.seconds), lua_setfield(L, -2, "seconds");
  lua_pushnumber(L, r.timing.low), lua_setfield(L, -2, "low");
  lua_pushnumber(L, r.timing.high), lua_setfield(L, -2, "high");
  lua_pushinteger(L, r.timing.runs), lua_setfield(L, -2, "runs");
  lua_pushboolean(L, r.repeated), lua_setfield(L, -2, "repeated");
  lua_pushnumber(L, r.build_seconds), lua_setfield(L, -2, "build_seconds");
  lua_pushnumber(L, r.check_seconds), lua_setfield(L, -2, "check_seconds");
  lua_pushnumber(L, r.time_seconds), lua_setfield(L, -2, "time_seconds");
  lua_pushstring(L, r.reason), lua_setfield(L, -2, "reason");
  return 1;
}

static int measurer_set_best(lua_State *L) {
  jit_measurer_set_best(open_measurer(L), luaL_checknumber(L, 2));
  return 0;
}

/* ---- Stores ---- */

static struct db **check_store(lua_State *L) { return luaL_checkudata(L, 1, BOUND_STORE); }

static struct db *open_store(lua_State *L) {
  struct db *db = *check_store(L);
  if (!db) luaL_error(L, "the store is closed");
  return db;
}

/* store([path [, {read_only =}]]) */
static int new_store(lua_State *L) {
  struct db **b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = NULL;
  luaL_setmetatable(L, BOUND_STORE);
  ms_error err = {.instruction = -1};
  bool read_only = lua_istable(L, 2) && bind_option_bool(L, 2, "read_only", false);
  *b = db_open(luaL_optstring(L, 1, NULL), read_only ? DB_READ_ONLY : DB_CREATE, &err);
  return *b ? 1 : bind_raise(L, &err);
}

static int collect_store(lua_State *L) {
  db_close(*check_store(L));
  *check_store(L) = NULL;
  return 0;
}

static int store_path(lua_State *L) {
  lua_pushstring(L, db_path(open_store(L)));
  return 1;
}

static void push_id(lua_State *L, const db_id *id) { lua_pushlstring(L, (const char *)id->bytes, 16); }

static db_id check_id(lua_State *L, int at) {
  size_t length;
  const char *bytes = luaL_checklstring(L, at, &length);
  luaL_argcheck(L, length == 16, at, "an id of 16 bytes is expected");
  db_id id;
  memcpy(id.bytes, bytes, 16);
  return id;
}

/* store:put_workload(function): its id, as 16 bytes */
static int store_put_workload(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 2);
  ms_error err = {.instruction = -1};
  db_id id;
  if (!db_put_workload(open_store(L), f->ir, f->func, &id, &err)) return bind_raise(L, &err);
  push_id(L, &id);
  return 1;
}

/* store:get_workload(id): the function */
static int store_get_workload(lua_State *L) {
  db_id id = check_id(L, 2);
  ms_error err = {.instruction = -1};
  struct tir *ir = db_get_workload(open_store(L), &id, &err);
  if (!ir) return bind_raise(L, &err);
  bind_push_function(L, ir, tir_find_func(ir, "main"));
  return 1;
}

static const char *const statuses[] = {"measured", "censored", "failed", NULL};

static void push_record(lua_State *L, const struct db_record *r) {
  char hash[20], id[DB_ID_TEXT];
  lua_newtable(L);
  db_id_text(&r->id, id);
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->module_hash);
  lua_pushstring(L, id), lua_setfield(L, -2, "id");
  push_id(L, &r->id), lua_setfield(L, -2, "key");
  push_id(L, &r->workload), lua_setfield(L, -2, "workload");
  lua_pushstring(L, r->target), lua_setfield(L, -2, "target");
  lua_pushlstring(L, r->trace, r->trace_bytes), lua_setfield(L, -2, "trace");
  lua_pushstring(L, hash), lua_setfield(L, -2, "hash");
  lua_pushstring(L, statuses[r->status]), lua_setfield(L, -2, "status");
  lua_pushnumber(L, r->seconds), lua_setfield(L, -2, "seconds");
  lua_pushnumber(L, r->low), lua_setfield(L, -2, "low");
  lua_pushnumber(L, r->high), lua_setfield(L, -2, "high");
  lua_pushinteger(L, r->runs), lua_setfield(L, -2, "runs");
  lua_pushstring(L, r->reason), lua_setfield(L, -2, "reason");
  lua_pushstring(L, r->versions), lua_setfield(L, -2, "versions");
  lua_pushinteger(L, (lua_Integer)r->seed), lua_setfield(L, -2, "seed");
  lua_pushinteger(L, (lua_Integer)r->candidate), lua_setfield(L, -2, "candidate");
  lua_pushinteger(L, r->when), lua_setfield(L, -2, "when");
  lua_pushboolean(L, r->unsafe), lua_setfield(L, -2, "unsafe");
}

static const char *versions_text(void) { return "msched " MSCHED_VERSION ", LLVM " MSCHED_LLVM_VERSION; }

/* store:put{workload =, target =, trace =, hash =, status =, seconds =, …}: the record's id, and a short form of it */
static int store_put(lua_State *L) {
  struct db *db = open_store(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  struct db_record r = {.target = bind_option_text(L, 2, "target", ""),
                        .reason = bind_option_text(L, 2, "reason", ""),
                        .versions = versions_text(),
                        .when = time(NULL)};
  lua_getfield(L, 2, "workload");
  r.workload = check_id(L, -1);
  lua_getfield(L, 2, "trace");
  struct vm_trace *trace = bind_check_trace(L, -1);
  r.module_hash = strtoull(bind_option_text(L, 2, "hash", "0"), NULL, 16);
  lua_getfield(L, 2, "status");
  r.status = (enum db_status)luaL_checkoption(L, -1, "measured", statuses);
  lua_getfield(L, 2, "seconds"), r.seconds = lua_tonumber(L, -1);
  lua_getfield(L, 2, "low"), r.low = lua_tonumber(L, -1);
  lua_getfield(L, 2, "high"), r.high = lua_tonumber(L, -1);
  r.runs = (uint32_t)bind_option_int(L, 2, "runs", 0);
  r.seed = (uint64_t)bind_option_int(L, 2, "seed", 0);
  r.candidate = (uint64_t)bind_option_int(L, 2, "candidate", 0);
  r.unsafe = !vm_trace_is_safe(trace);
  void *bytes = vm_write_binary(trace, &r.trace_bytes);
  r.trace = bytes;
  ms_error err = {.instruction = -1};
  bool ok = db_put_record(db, &r, &err);
  free(bytes);
  if (!ok) return bind_raise(L, &err);
  char text[DB_ID_TEXT];
  db_id_text(&r.id, text);
  lua_pushstring(L, text);
  db_short_id(db, &r.id, text);
  lua_pushstring(L, text);
  return 2;
}

/* store:find(id prefix): a record, or nil */
static int store_find(lua_State *L) {
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_record(open_store(L), luaL_checkstring(L, 2), &r, &err);
  if (found < 0) return bind_raise(L, &err);
  if (!found) return 0;
  push_record(L, &r);
  return 1;
}

/* store:find_module(workload, target, hash): what these versions measured, or nil */
static int store_find_module(lua_State *L) {
  db_id workload = check_id(L, 2);
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_module(open_store(L), &workload, luaL_checkstring(L, 3),
                             strtoull(luaL_checkstring(L, 4), NULL, 16), versions_text(), &r, &err);
  if (found < 0) return bind_raise(L, &err);
  if (!found) return 0;
  push_record(L, &r);
  return 1;
}

static int store_short_id(lua_State *L) {
  db_id id = check_id(L, 2);
  char text[DB_ID_TEXT];
  db_short_id(open_store(L), &id, text);
  lua_pushstring(L, text);
  return 1;
}

/* A visit must not raise, since a transaction is open: records are copied out first, then pushed. */
struct copies {
  struct db_record *at;
  size_t count, room, most;
};

static bool copy_record(void *data, const struct db_record *r) {
  struct copies *c = data;
  if (c->count == c->room) {
    c->room = c->room * 2 + 32;
    c->at = realloc(c->at, c->room * sizeof *c->at);
    if (!c->at) abort();
  }
  struct db_record *to = &c->at[c->count++];
  *to = *r;
  to->target = strdup(r->target);
  to->reason = strdup(r->reason);
  to->versions = strdup(r->versions);
  void *trace = malloc(r->trace_bytes + 1);
  if (!to->target || !to->reason || !to->versions || !trace) abort();
  memcpy(trace, r->trace, r->trace_bytes);
  to->trace = trace;
  return c->count < c->most;
}

static int collect_copies(lua_State *L) {
  struct copies *c = lua_touserdata(L, 1);
  for (size_t i = 0; i < c->count; i++) {
    free((char *)c->at[i].target);
    free((char *)c->at[i].reason);
    free((char *)c->at[i].versions);
    free((void *)c->at[i].trace);
  }
  free(c->at);
  memset(c, 0, sizeof *c);
  return 0;
}

/* store:records{workload =, target =, most =}: by run time, fastest first */
static int store_records(lua_State *L) {
  struct db *db = open_store(L);
  lua_settop(L, 2);
  struct copies *c = lua_newuserdatauv(L, sizeof *c, 0);
  memset(c, 0, sizeof *c);
  if (luaL_newmetatable(L, "msched.copies")) {
    lua_pushcfunction(L, collect_copies);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  c->most = (size_t)bind_option_int(L, 2, "most", INT64_MAX);
  db_id id;
  const char *workload = bind_option_text(L, 2, "workload", NULL), *target = bind_option_text(L, 2, "target", NULL);
  if (workload) memcpy(id.bytes, workload, 16);
  ms_error err = {.instruction = -1};
  if (!db_each_record(db, workload ? &id : NULL, target, copy_record, c, &err)) return bind_raise(L, &err);
  lua_createtable(L, (int)c->count, 0);
  for (size_t i = 0; i < c->count; i++) {
    push_record(L, &c->at[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

struct workload_list {
  struct {
    db_id id;
    char name[128];
    uint64_t records;
  } at[1024];
  int count;
};

static bool list_workload(void *data, const db_id *id, const char *name, uint64_t records) {
  struct workload_list *l = data;
  l->at[l->count].id = *id;
  snprintf(l->at[l->count].name, sizeof l->at[0].name, "%s", name);
  l->at[l->count].records = records;
  return ++l->count < (int)(sizeof l->at / sizeof *l->at);
}

/* store:workloads(): a list of {id, name, records} */
static int store_workloads(lua_State *L) {
  struct db *db = open_store(L);
  struct workload_list *l = lua_newuserdatauv(L, sizeof *l, 0);
  l->count = 0;
  ms_error err = {.instruction = -1};
  if (!db_each_workload(db, list_workload, l, &err)) return bind_raise(L, &err);
  lua_newtable(L);
  for (int i = 0; i < l->count; i++) {
    lua_newtable(L);
    push_id(L, &l->at[i].id), lua_setfield(L, -2, "id");
    lua_pushstring(L, l->at[i].name), lua_setfield(L, -2, "name");
    lua_pushinteger(L, (lua_Integer)l->at[i].records), lua_setfield(L, -2, "records");
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* store:check(): the number of problems; a line each on stderr */
static int store_check(lua_State *L) {
  ms_error err = {.instruction = -1};
  int64_t problems = db_check(open_store(L), stderr, &err);
  if (problems < 0) return bind_raise(L, &err);
  lua_pushinteger(L, problems);
  return 1;
}

static int store_compact(lua_State *L) {
  ms_error err = {.instruction = -1};
  return db_compact(open_store(L), &err) ? 0 : bind_raise(L, &err);
}

static int store_delete(lua_State *L) {
  db_id id = check_id(L, 2);
  ms_error err = {.instruction = -1};
  return db_delete_record(open_store(L), &id, &err) ? 0 : bind_raise(L, &err);
}

/* store:export(path) and store:import(path); "-" is the standard stream */
static int store_export(lua_State *L) {
  const char *path = luaL_checkstring(L, 2);
  ms_error err = {.instruction = -1};
  FILE *out = strcmp(path, "-") != 0 ? fopen(path, "w") : stdout;
  if (!out) return luaL_error(L, "%s: cannot be written", path);
  bool ok = db_export_json(open_store(L), out, &err);
  if (out != stdout && fclose(out) != 0 && ok) ok = ms_fail(&err, MS_IO, "%s: cannot be written", path);
  return ok ? 0 : bind_raise(L, &err);
}

static int store_import(lua_State *L) {
  const char *path = luaL_checkstring(L, 2);
  ms_error err = {.instruction = -1};
  uint64_t added = 0;
  FILE *in = strcmp(path, "-") != 0 ? fopen(path, "r") : stdin;
  if (!in) return luaL_error(L, "%s: cannot be read", path);
  bool ok = db_import_json(open_store(L), in, path, &added, &err);
  if (in != stdin) fclose(in);
  if (!ok) return bind_raise(L, &err);
  lua_pushinteger(L, (lua_Integer)added);
  return 1;
}

/* ---- Other things that reports need ---- */

static int clock_seconds(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
  return 1;
}

static int interrupted(lua_State *L) {
  lua_pushboolean(L, stop_pool);
  return 1;
}

static int versions(lua_State *L) {
  lua_pushstring(L, versions_text());
  return 1;
}

static void add_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction collector) {
  luaL_newmetatable(L, name);
  bind_hide_metatable(L, name);
  lua_newtable(L);
  luaL_setfuncs(L, methods, 0);
  lua_setfield(L, -2, "__index");
  if (collector) {
    lua_pushcfunction(L, collector);
    lua_setfield(L, -2, "__gc");
  }
  lua_pop(L, 1);
}

void bind_searching(lua_State *L) {
  static const luaL_Reg pool[] = {{"replay", pool_replay}, {"close", collect_pool}, {NULL, NULL}};
  static const luaL_Reg model[] = {{"update", model_update}, {"predict", model_predict}, {NULL, NULL}};
  static const luaL_Reg measurer[] = {{"submit", measurer_submit},
                                      {"next", measurer_next},
                                      {"set_best", measurer_set_best},
                                      {"close", collect_measurer},
                                      {NULL, NULL}};
  static const luaL_Reg store[] = {{"path", store_path},
                                   {"put_workload", store_put_workload},
                                   {"get_workload", store_get_workload},
                                   {"put", store_put},
                                   {"find", store_find},
                                   {"find_module", store_find_module},
                                   {"short_id", store_short_id},
                                   {"records", store_records},
                                   {"workloads", store_workloads},
                                   {"check", store_check},
                                   {"compact", store_compact},
                                   {"delete", store_delete},
                                   {"export", store_export},
                                   {"import", store_import},
                                   {"close", collect_store},
                                   {NULL, NULL}};
  static const luaL_Reg features[] = {{NULL, NULL}};
  add_type(L, BOUND_POOL, pool, collect_pool);
  add_type(L, BOUND_MODEL, model, collect_model);
  add_type(L, BOUND_MEASURER, measurer, collect_measurer);
  add_type(L, BOUND_STORE, store, collect_store);
  add_type(L, BOUND_FEATURES, features, collect_features);
  luaL_getmetatable(L, BOUND_FEATURES);
  lua_pushcfunction(L, features_length), lua_setfield(L, -2, "__len");
  lua_pushcfunction(L, features_call), lua_setfield(L, -2, "__call");
  lua_pop(L, 1);
  static const luaL_Reg functions[] = {{"pool", new_pool},
                                       {"model", new_model},
                                       {"measurer", new_measurer},
                                       {"store", new_store},
                                       {"feature_names", feature_names},
                                       {"features", features_of},
                                       {"clock", clock_seconds},
                                       {"interrupted", interrupted},
                                       {"versions", versions},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

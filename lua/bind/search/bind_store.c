#define _GNU_SOURCE
/* Stores in Lua: workloads and records. */
#include "bind_search.h"
#include "lua/bind/bind.h"
#include "lua/bind/state/visible.h"

#include "db/db.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define BOUND_STORE "msched.store"

static struct db **check_store(lua_State *L) { return luaL_checkudata(L, 1, BOUND_STORE); }

static struct db *open_store(lua_State *L) {
  struct db *db = *check_store(L);
  if (!db) bind_refuse(L, "the store is closed");
  return db;
}

static void warn_of_damage(void *unused, const char *line) {
  (void)unused;
  visible_complain("msched: ", line);
}

/* store([path [, {read_only =, create =}]]) */
static int new_store(lua_State *L) {
  struct db **b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = NULL;
  luaL_setmetatable(L, BOUND_STORE);
  ms_error err = {.instruction = -1};
  bool read_only = lua_istable(L, 2) && bind_option_bool(L, 2, "read_only", false);
  bool create = !lua_istable(L, 2) || bind_option_bool(L, 2, "create", true);
  *b = db_open(bind_opt_text(L, 1, NULL), read_only ? DB_READ_ONLY : create ? DB_CREATE : 0, &err);
  if (!*b) return bind_raise(L, &err);
  db_on_damage(*b, warn_of_damage, NULL);
  return 1;
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

/* The field of the options at `at` that is an id. */
static db_id check_id_field(lua_State *L, int at, const char *field) {
  size_t length = 0;
  lua_getfield(L, at, field);
  const char *bytes = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : "";
  if (length != 16) bind_refuse(L, "`%s` is an id of 16 bytes, as put_workload gives it", field);
  db_id id;
  memcpy(id.bytes, bytes, 16);
  lua_pop(L, 1);
  return id;
}

static db_id check_id(lua_State *L, int at) {
  size_t length;
  const char *bytes = luaL_checklstring(L, at, &length);
  luaL_argcheck(L, length == 16, at, "an id of 16 bytes is expected");
  db_id id;
  memcpy(id.bytes, bytes, 16);
  return id;
}

/* store:workload_id(function): the id that it has in every store */
static int store_workload_id(lua_State *L) {
  open_store(L);
  const struct bound_function *f = bind_check_function(L, 2);
  db_id id = db_workload_id(f->ir, f->func);
  push_id(L, &id);
  return 1;
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

/* What is kept of a record besides its own fields, by the fields of Lua's records that hold it. A stranger's fact of
 * another kind is left out. */
static const char WORKER[] = "worker"; /* of a fleet: who measured it */
enum { DEVICE, SEARCH, ROOFLINE, GROUPS };
static const char *const group_names[GROUPS] = {
    [DEVICE] = "device",    /* what it is, and what code takes of it */
    [SEARCH] = "search",    /* when it was measured */
    [ROOFLINE] = "roofline" /* what the function takes at least where it was */
};
static const struct fact_field {
  int group;
  const char *name;
  int kind;
} facts[] = {
    {DEVICE, "name", DB_TEXT},           {DEVICE, "driver", DB_NUMBER},       {DEVICE, "clock", DB_NUMBER},
    {DEVICE, "memory_clock", DB_NUMBER}, {DEVICE, "slowed", DB_BOOLEAN},      {DEVICE, "kernels", DB_NUMBER},
    {DEVICE, "threads", DB_NUMBER},      {DEVICE, "registers", DB_NUMBER},    {DEVICE, "spilled_bytes", DB_NUMBER},
    {DEVICE, "stack_bytes", DB_NUMBER},  {DEVICE, "shared_bytes", DB_NUMBER}, {DEVICE, "timing_clock", DB_NUMBER},
    {DEVICE, "raw_seconds", DB_NUMBER},  {DEVICE, "uncaptured", DB_TEXT},     {DEVICE, "others", DB_NUMBER},
    {SEARCH, "asked", DB_NUMBER},        {SEARCH, "came", DB_NUMBER},         {SEARCH, "build_seconds", DB_NUMBER},
    {SEARCH, "run_seconds", DB_NUMBER},  {SEARCH, "run", DB_NUMBER},          {SEARCH, "space", DB_NUMBER},
    {SEARCH, WORKER, DB_TEXT},           {ROOFLINE, "limit", DB_TEXT},        {ROOFLINE, "limit_seconds", DB_NUMBER}};
enum { FACTS = sizeof facts / sizeof *facts };

/* The field of a fact; NULL: a stranger's, or of another kind. */
static const struct fact_field *find_field(const struct db_fact *f) {
  for (int i = 0; i < FACTS; i++)
    if (facts[i].name[0] == f->name[0] && !strcmp(facts[i].name, f->name))
      return facts[i].kind == (int)f->kind ? &facts[i] : NULL;
  return NULL;
}

static void push_fact(lua_State *L, const struct db_fact *f) {
  lua_Integer whole;
  if (f->kind == DB_TEXT)
    lua_pushstring(L, f->text);
  else if (f->kind == DB_BOOLEAN)
    lua_pushboolean(L, f->number != 0);
  else if (lua_numbertointeger(f->number, &whole) && (lua_Number)whole == f->number)
    lua_pushinteger(L, whole);
  else
    lua_pushnumber(L, f->number);
}

/* A table of each group's facts by name, a field of the table on top; none of a group of which nothing is known. */
static void set_facts(lua_State *L, const struct db_record *r, bool brief) {
  size_t at = 0;
  struct db_fact f;
  int record = lua_gettop(L), groups[GROUPS] = {0}; /* where each group's table is */
  luaL_checkstack(L, GROUPS + 2, NULL);
  while (db_next_fact(r, &at, &f)) {
    const struct fact_field *field = find_field(&f);
    if (!field || (brief && field->group == SEARCH)) continue;
    if (!groups[field->group]) {
      lua_createtable(L, 0, 8);
      groups[field->group] = lua_gettop(L);
      lua_pushvalue(L, -1);
      lua_setfield(L, record, group_names[field->group]);
    }
    push_fact(L, &f);
    lua_setfield(L, groups[field->group], f.name);
  }
  lua_settop(L, record);
}

/* Takes a group's facts, a field of the options at `at`. r->facts is the caller's to free(). */
static void take_facts(lua_State *L, int at, int group, struct db_record *r) {
  bool given = lua_getfield(L, at, group_names[group]) == LUA_TTABLE;
  for (int i = 0; given && i < FACTS; i++) {
    struct db_fact fact = {.name = facts[i].name};
    if (facts[i].group != group) continue;
    fact.kind = facts[i].kind;
    lua_getfield(L, -1, fact.name);
    fact.number = fact.kind == DB_BOOLEAN ? lua_toboolean(L, -1) : lua_tonumber(L, -1);
    fact.text = fact.kind == DB_TEXT ? lua_tostring(L, -1) : "";
    if (!lua_isnil(L, -1) && fact.text) db_append_fact(r, &fact);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

static void push_record(lua_State *L, const struct db_record *r) {
  assert(r);
  char hash[20], id[DB_ID_TEXT];
  lua_createtable(L, 0, 26);
  db_id_text(&r->id, id);
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->module_hash);
  lua_pushstring(L, id), lua_setfield(L, -2, "id");
  push_id(L, &r->id), lua_setfield(L, -2, "key");
  push_id(L, &r->workload), lua_setfield(L, -2, "workload");
  lua_pushstring(L, r->target), lua_setfield(L, -2, "target");
  lua_pushlstring(L, r->trace, r->trace_bytes), lua_setfield(L, -2, "trace");
  lua_pushstring(L, hash), lua_setfield(L, -2, "hash");
  lua_pushstring(L, db_status_names[r->status]), lua_setfield(L, -2, "status");
  lua_pushnumber(L, r->seconds), lua_setfield(L, -2, "seconds");
  lua_pushnumber(L, r->low), lua_setfield(L, -2, "low");
  lua_pushnumber(L, r->high), lua_setfield(L, -2, "high");
  lua_pushinteger(L, r->runs), lua_setfield(L, -2, "runs");
  lua_pushstring(L, r->reason), lua_setfield(L, -2, "reason");
  lua_pushstring(L, r->versions), lua_setfield(L, -2, "versions");
  lua_pushinteger(L, (lua_Integer)r->seed), lua_setfield(L, -2, "seed");
  lua_pushinteger(L, (lua_Integer)r->candidate), lua_setfield(L, -2, "candidate");
  lua_pushinteger(L, r->when), lua_setfield(L, -2, "when");
  lua_pushboolean(L, r->intrinsic_bytes > 0), lua_setfield(L, -2, "has_intrinsics");
  lua_pushboolean(L, r->unsafe), lua_setfield(L, -2, "unsafe");
  lua_pushboolean(L, r->busy), lua_setfield(L, -2, "busy");
  lua_pushboolean(L, r->pinned), lua_setfield(L, -2, "pinned");
  set_facts(L, r, false);
}

/* What lists show of one. */
static void push_brief(lua_State *L, const struct db_record *r, const char *short_id, bool noted) {
  char id[DB_ID_TEXT];
  lua_createtable(L, 0, 16);
  db_id_text(&r->id, id);
  lua_pushstring(L, id), lua_setfield(L, -2, "id");
  push_id(L, &r->id), lua_setfield(L, -2, "key");
  lua_pushstring(L, short_id), lua_setfield(L, -2, "short_id");
  lua_pushstring(L, r->target), lua_setfield(L, -2, "target");
  lua_pushstring(L, db_status_names[r->status]), lua_setfield(L, -2, "status");
  lua_pushnumber(L, r->seconds), lua_setfield(L, -2, "seconds");
  lua_pushinteger(L, r->when), lua_setfield(L, -2, "when");
  lua_pushstring(L, r->versions), lua_setfield(L, -2, "versions");
  lua_pushstring(L, r->reason), lua_setfield(L, -2, "reason");
  if (noted) lua_pushboolean(L, true), lua_setfield(L, -2, "noted");
  if (r->unsafe) lua_pushboolean(L, true), lua_setfield(L, -2, "unsafe");
  if (r->busy) lua_pushboolean(L, true), lua_setfield(L, -2, "busy");
  if (r->pinned) lua_pushboolean(L, true), lua_setfield(L, -2, "pinned");
  set_facts(L, r, true);
}

#define TEXT_OF_(x) #x
#define TEXT_OF(x)  TEXT_OF_(x)
static const char *versions_text(void) {
  return "msched " MSCHED_VERSION " code " TEXT_OF(JIT_REVISION) ", LLVM " MSCHED_LLVM_VERSION;
}

/* Keeps the intrinsics of this state that the trace names, and the record. */
static bool put_record(lua_State *L, struct db *db, const struct vm_trace *trace, struct db_record *r, ms_error *err) {
  assert(db && r);
  void *bytes = vm_write_binary(trace, &r->trace_bytes);
  r->trace = bytes;
  bool ok = db_keep_intrinsics(db, trace, bind_intrinsics(L), r, err) && db_put_record(db, r, err);
  free((void *)r->intrinsics);
  free(bytes);
  return ok;
}

/* store:put{workload =, target =, trace =, hash =, status =, seconds =, …}: the record's id, and a short form of it */
static int store_put(lua_State *L) {
  struct db *db = open_store(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  struct db_record r = {.target = bind_option_text(L, 2, "target", ""),
                        .reason = bind_option_text(L, 2, "reason", ""),
                        .versions = versions_text(),
                        .when = db_when(time(NULL))};
  r.workload = check_id_field(L, 2, "workload");
  lua_getfield(L, 2, "trace");
  struct vm_trace *trace = bind_test_trace(L, -1);
  if (!trace) return bind_refuse(L, "`trace` is a trace");
  r.module_hash = strtoull(bind_option_text(L, 2, "hash", "0"), NULL, 16);
  lua_getfield(L, 2, "status");
  r.status = (enum db_status)luaL_checkoption(L, -1, "measured", db_status_names);
  lua_getfield(L, 2, "seconds"), r.seconds = lua_tonumber(L, -1);
  lua_getfield(L, 2, "low"), r.low = lua_tonumber(L, -1);
  lua_getfield(L, 2, "high"), r.high = lua_tonumber(L, -1);
  r.runs = (uint32_t)bind_option_int(L, 2, "runs", 0);
  r.seed = (uint64_t)bind_option_int(L, 2, "seed", 0);
  r.candidate = (uint64_t)bind_option_int(L, 2, "candidate", 0);
  r.unsafe = !vm_trace_is_safe(trace);
  r.busy = bind_option_bool(L, 2, "busy", false);
  ms_error err = {.instruction = -1};
  struct db_record old; /* one that is pinned stays so when it is measured again */
  r.pinned = db_find_module(db, &r.workload, r.target, r.module_hash, r.versions, &old, NULL) > 0 && old.pinned;
  take_facts(L, 2, DEVICE, &r), take_facts(L, 2, SEARCH, &r), take_facts(L, 2, ROOFLINE, &r);
  bool put = put_record(L, db, trace, &r, &err);
  free((void *)r.facts);
  if (!put) return bind_raise(L, &err);
  char text[DB_ID_TEXT];
  db_id_text(&r.id, text);
  lua_pushstring(L, text);
  db_short_id(db, &r.id, text);
  lua_pushstring(L, text);
  return 2;
}

/* store:fail(id, reason): the record counts as failed from now on */
static int store_fail(lua_State *L) {
  struct db *db = open_store(L);
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_record(db, bind_check_text(L, 2), &r, &err);
  if (!found) return bind_refuse(L, "there is no record `%s`", lua_tostring(L, 2));
  r.status = DB_FAILED;
  r.reason = bind_check_text(L, 3);
  return found > 0 && db_put_record(db, &r, &err) ? 0 : bind_raise(L, &err);
}

/* What a record keeps of its device, with what is given of how its new time was measured in the place of what it had.
 * to->facts is the caller's to free(). */
static void retime_facts(lua_State *L, int at, const struct db_record *from, struct db_record *to) {
  static const char *const given[][2] = {{"timing_clock", "clock"}, {"raw_seconds", "raw_seconds"}};
  size_t next = 0;
  struct db_fact f;
  to->facts = NULL, to->fact_bytes = 0;
  while (db_next_fact(from, &next, &f))
    if (strcmp(f.name, given[0][0]) != 0 && strcmp(f.name, given[1][0]) != 0 && strcmp(f.name, WORKER) != 0)
      db_append_fact(to, &f);
  for (int i = 0; i < 2; i++) {
    if (lua_getfield(L, at, given[i][1]) == LUA_TNUMBER)
      db_append_fact(to, &(struct db_fact){.name = given[i][0], .kind = DB_NUMBER, .number = lua_tonumber(L, -1)});
    lua_pop(L, 1);
  }
  if (lua_getfield(L, at, WORKER) == LUA_TSTRING)
    db_append_fact(to, &(struct db_fact){.name = WORKER, .kind = DB_TEXT, .text = lua_tostring(L, -1)});
  lua_pop(L, 1);
}

/* store:retime(id, {seconds =, low =, high =, runs =, busy =, clock =, raw_seconds =, worker =}): a record's time is
 * another from now on */
static int store_retime(lua_State *L) {
  struct db *db = open_store(L);
  struct db_record r;
  ms_error err = {.instruction = -1};
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 3);
  int found = db_find_record(db, bind_check_text(L, 2), &r, &err);
  if (!found) return bind_refuse(L, "there is no record `%s`", lua_tostring(L, 2));
  lua_getfield(L, 3, "seconds"), r.seconds = luaL_checknumber(L, -1);
  lua_getfield(L, 3, "low"), r.low = luaL_checknumber(L, -1);
  lua_getfield(L, 3, "high"), r.high = luaL_checknumber(L, -1);
  r.runs = (uint32_t)bind_option_int(L, 3, "runs", 0);
  r.busy = bind_option_bool(L, 3, "busy", false);
  struct db_record retimed = r;
  if (found > 0) retime_facts(L, 3, &r, &retimed);
  bool put = found > 0 && db_put_record(db, &retimed, &err);
  if (found > 0) free((void *)retimed.facts);
  return put ? 0 : bind_raise(L, &err);
}

/* store:pin(id, whether it is) */
static int store_pin(lua_State *L) {
  struct db *db = open_store(L);
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_record(db, bind_check_text(L, 2), &r, &err);
  if (!found) return bind_refuse(L, "there is no record `%s`", lua_tostring(L, 2));
  r.pinned = lua_toboolean(L, 3);
  return found > 0 && db_put_record(db, &r, &err) ? 0 : bind_raise(L, &err);
}

/* store:batch(f): what f puts and deletes is written together, also where it raises */
static int store_batch(lua_State *L) {
  struct db *db = open_store(L);
  ms_error err = {.instruction = -1};
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  if (!db_begin_batch(db, &err)) return bind_raise(L, &err);
  bool ok = lua_pcall(L, 0, 0, 0) == LUA_OK;
  if (!*check_store(L)) return bind_refuse(L, "the store was closed in its batch");
  if (!db_end_batch(db, &err)) return bind_raise(L, &err);
  return ok ? 0 : lua_error(L);
}

/* store:find(id prefix): a record, or nil */
static int store_find(lua_State *L) {
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_record(open_store(L), bind_check_text(L, 2), &r, &err);
  if (found < 0) return bind_raise(L, &err);
  if (!found) return 0;
  push_record(L, &r);
  return 1;
}

/* store:take_intrinsics(id): those that the record names are this state's from then on; raises: one is missing, or the
 * state has another of its name */
static int store_take_intrinsics(lua_State *L) {
  struct db *db = open_store(L);
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_record(db, bind_check_text(L, 2), &r, &err);
  struct vm_intrinsics *made = vm_intrinsics_new();
  bool ok = found > 0 && db_take_intrinsics(db, &r, made, &err) && bind_add_intrinsics(L, made, &err);
  vm_intrinsics_free(made);
  return ok || !found ? 0 : bind_raise(L, &err);
}

/* store:find_module(workload, target, hash): what these versions measured, or nil */
static int store_find_module(lua_State *L) {
  db_id workload = check_id(L, 2);
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_module(open_store(L), &workload, bind_check_text(L, 3), strtoull(bind_check_text(L, 4), NULL, 16),
                             versions_text(), &r, &err);
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

/* store:ids(start[, most]): of the records whose ids start so, as few digits as name each; 100 of them, unless `most`
 * says more or fewer */
static int store_ids(lua_State *L) {
  struct db *db = open_store(L);
  enum { USUAL = 100, MOST = 1 << 20 };
  lua_Integer most = luaL_optinteger(L, 3, USUAL);
  luaL_argcheck(L, most >= 1 && most <= MOST, 3, "a number from 1 to 1048576 is expected");
  db_id *ids = lua_newuserdatauv(L, (size_t)most * sizeof *ids, 0);
  ms_error err = {.instruction = -1};
  int count = db_match_ids(db, bind_check_text(L, 2), ids, (int)most, &err);
  if (count < 0) return bind_raise(L, &err);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) {
    char text[DB_ID_TEXT];
    db_short_id(db, &ids[i], text);
    lua_pushstring(L, text);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* A visit must not raise, since a transaction is open: records are copied out first, then pushed. */
struct copies {
  struct db_record *at;
  bool *noted;
  char (*short_ids)[DB_ID_TEXT];
  size_t count, room, most;
  const char *note; /* NULL: traces are copied */
};

static char *copy_bytes(const void *bytes, size_t size) {
  char *copy = malloc(size + 1);
  if (!copy) abort();
  if (size) memcpy(copy, bytes, size);
  return copy;
}

static bool copy_record(void *data, const struct db_record *r) {
  struct copies *c = data;
  if (c->count == c->room) {
    c->room = c->room * 2 + 32;
    c->at = realloc(c->at, c->room * sizeof *c->at);
    c->noted = realloc(c->noted, c->room * sizeof *c->noted);
    if (!c->at || !c->noted) abort();
  }
  c->noted[c->count] = c->note && memmem(r->trace, r->trace_bytes, c->note, strlen(c->note));
  struct db_record *to = &c->at[c->count++];
  *to = *r;
  to->target = copy_bytes(r->target, strlen(r->target) + 1);
  to->reason = copy_bytes(r->reason, strlen(r->reason) + 1);
  to->versions = copy_bytes(r->versions, strlen(r->versions) + 1);
  to->trace = c->note ? NULL : copy_bytes(r->trace, r->trace_bytes);
  to->facts = copy_bytes(r->facts, r->fact_bytes);
  to->intrinsics = NULL; /* the store has them */
  return c->count < c->most;
}

static int collect_copies(lua_State *L) {
  struct copies *c = lua_touserdata(L, 1);
  for (size_t i = 0; i < c->count; i++) {
    free((char *)c->at[i].target);
    free((char *)c->at[i].reason);
    free((char *)c->at[i].versions);
    free((void *)c->at[i].trace);
    free((void *)c->at[i].facts);
  }
  free(c->at);
  free(c->noted);
  free(c->short_ids);
  memset(c, 0, sizeof *c);
  return 0;
}

static void shorten_all(struct db *db, struct copies *c) {
  db_id *ids = malloc((c->count + 1) * sizeof *ids);
  c->short_ids = malloc((c->count + 1) * sizeof *c->short_ids);
  if (!ids || !c->short_ids) abort();
  for (size_t i = 0; i < c->count; i++) ids[i] = c->at[i].id;
  db_short_ids(db, ids, c->count, c->short_ids);
  free(ids);
}

/* store:records{workload =, target =, most =, first =, step =, note =}: by run time, fastest first; the first so many,
 * and every step-th of the others; with a note, what lists show of them */
static int store_records(lua_State *L) {
  struct db *db = open_store(L);
  lua_settop(L, 2);
  bind_check_options(L, 2, "workload:string target:string most:integer first:integer step:integer note:string");
  struct copies *c = bind_hold(L, sizeof *c, "msched.copies", collect_copies);
  int64_t most = bind_option_int(L, 2, "most", INT64_MAX);
  if (most < 1) return lua_newtable(L), 1;
  c->most = (size_t)most;
  c->note = bind_option_text(L, 2, "note", NULL);
  int64_t first = bind_option_int(L, 2, "first", INT64_MAX), step = bind_option_int(L, 2, "step", 1);
  if (first < 0 || step < 1) return bind_refuse(L, "`first` must not be below 0, nor `step` below 1");
  struct db_sample sample = {(uint64_t)first, (uint64_t)step};
  bool workload = lua_istable(L, 2) && lua_getfield(L, 2, "workload") != LUA_TNIL;
  db_id id = workload ? check_id_field(L, 2, "workload") : (db_id){{0}};
  const char *target = bind_option_text(L, 2, "target", NULL);
  ms_error err = {.instruction = -1};
  if (!db_each_sampled(db, workload ? &id : NULL, target, sample, copy_record, c, &err)) return bind_raise(L, &err);
  if (c->note) shorten_all(db, c);
  lua_createtable(L, (int)c->count, 0);
  for (size_t i = 0; i < c->count; i++) {
    if (c->note)
      push_brief(L, &c->at[i], c->short_ids[i], c->noted[i]);
    else
      push_record(L, &c->at[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

struct workload_list {
  struct {
    db_id id;
    char *name;
    uint64_t records;
  } * at;
  size_t count, room;
  const struct bound_function *function; /* NULL, or only those that are it, whatever its name */
};

static int free_workloads(lua_State *L) {
  struct workload_list *l = lua_touserdata(L, 1);
  for (size_t i = 0; i < l->count; i++) free(l->at[i].name);
  free(l->at);
  memset(l, 0, sizeof *l);
  return 0;
}

static bool list_workload(void *data, const db_id *id, const char *name, uint64_t records) {
  struct workload_list *l = data;
  if (l->function && !db_is_workload_of(id, name, l->function->ir, l->function->func)) return true;
  if (l->count == l->room) {
    l->room = l->room * 2 + 64;
    l->at = realloc(l->at, l->room * sizeof *l->at);
    if (!l->at) abort();
  }
  l->at[l->count].id = *id;
  l->at[l->count].name = strdup(name);
  if (!l->at[l->count].name) abort();
  l->at[l->count++].records = records;
  return true;
}

/* store:workloads([function]): a list of {id, name, records}; of those that are this function, whatever its name */
static int store_workloads(lua_State *L) {
  lua_settop(L, 2);
  struct db *db = open_store(L);
  struct workload_list *l = bind_hold(L, sizeof *l, "msched.workloads", free_workloads);
  l->function = lua_isnil(L, 2) ? NULL : bind_check_function(L, 2);
  ms_error err = {.instruction = -1};
  if (!db_each_workload(db, list_workload, l, &err)) return bind_raise(L, &err);
  lua_createtable(L, (int)l->count, 0);
  for (size_t i = 0; i < l->count; i++) {
    lua_createtable(L, 0, 3);
    push_id(L, &l->at[i].id), lua_setfield(L, -2, "id");
    lua_pushstring(L, l->at[i].name), lua_setfield(L, -2, "name");
    lua_pushinteger(L, (lua_Integer)l->at[i].records), lua_setfield(L, -2, "records");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* In one block; ends with NULL. */
static const char *const *copy_texts(const char *const *names) {
  size_t count = 0, bytes = 0;
  for (; names[count]; count++) bytes += strlen(names[count]) + 1;
  const char **copy = malloc((count + 1) * sizeof *copy + bytes);
  if (!copy) abort();
  char *text = (char *)(copy + count + 1);
  for (size_t i = 0; i < count; i++) {
    copy[i] = text;
    text = stpcpy(text, names[i]) + 1;
  }
  copy[count] = NULL;
  return copy;
}

struct outline_list {
  struct {
    db_id id;
    double numbers[4];
    const char *const *arguments; /* in one block with their texts */
  } * at;
  size_t count, room;
};

static int free_outlines(lua_State *L) {
  struct outline_list *l = lua_touserdata(L, 1);
  for (size_t i = 0; i < l->count; i++) free((void *)l->at[i].arguments);
  free(l->at);
  memset(l, 0, sizeof *l);
  return 0;
}

static bool list_outline(void *data, const db_id *id, const struct db_outline *o) {
  struct outline_list *l = data;
  if (l->count == l->room) {
    l->room = l->room * 2 + 64;
    l->at = realloc(l->at, l->room * sizeof *l->at);
    if (!l->at) abort();
  }
  l->at[l->count].id = *id;
  memcpy(l->at[l->count].numbers, (double[]){o->floats, o->integers, o->read_bytes, o->written_bytes},
         sizeof l->at->numbers);
  l->at[l->count++].arguments = copy_texts(o->arguments);
  return true;
}

/* store:outlines(): of workloads, by their ids, {arguments, floats, integers, read_bytes, written_bytes} */
static int store_outlines(lua_State *L) {
  static const char *const names[] = {"floats", "integers", "read_bytes", "written_bytes"};
  struct db *db = open_store(L);
  struct outline_list *l = bind_hold(L, sizeof *l, "msched.outlines", free_outlines);
  ms_error err = {.instruction = -1};
  if (!db_each_outline(db, list_outline, l, &err)) return bind_raise(L, &err);
  lua_createtable(L, 0, (int)l->count);
  for (size_t i = 0; i < l->count; i++) {
    push_id(L, &l->at[i].id);
    lua_createtable(L, 0, 5);
    for (int k = 0; k < 4; k++) lua_pushnumber(L, l->at[i].numbers[k]), lua_setfield(L, -2, names[k]);
    lua_newtable(L);
    for (int k = 0; l->at[i].arguments[k]; k++) {
      lua_pushstring(L, l->at[i].arguments[k]);
      lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "arguments");
    lua_rawset(L, -3);
  }
  return 1;
}

/* ---- Tasks ---- */

struct task_list {
  struct db_task *at; /* with copies of its texts; the devices in one block with their texts */
  size_t count, room;
};

static int free_tasks(lua_State *L) {
  struct task_list *l = lua_touserdata(L, 1);
  for (size_t i = 0; i < l->count; i++) {
    free((char *)l->at[i].target);
    free((void *)l->at[i].devices);
  }
  free(l->at);
  memset(l, 0, sizeof *l);
  return 0;
}

static bool list_task(void *data, const struct db_task *t) {
  struct task_list *l = data;
  if (l->count == l->room) {
    l->room = l->room * 2 + 64;
    l->at = realloc(l->at, l->room * sizeof *l->at);
    if (!l->at) abort();
  }
  struct db_task *to = &l->at[l->count++];
  *to = *t;
  to->target = strdup(t->target);
  if (!to->target) abort();
  to->devices = copy_texts(t->devices);
  return true;
}

static void push_task(lua_State *L, const struct db_task *t) {
  char id[DB_ID_TEXT];
  lua_Integer records = 0;
  lua_createtable(L, 0, 12);
  push_id(L, &t->workload), lua_setfield(L, -2, "workload");
  lua_pushstring(L, t->target), lua_setfield(L, -2, "target");
  for (int i = 0; db_status_names[i]; i++) {
    records += (lua_Integer)t->counts[i];
    lua_pushinteger(L, (lua_Integer)t->counts[i]), lua_setfield(L, -2, db_status_names[i]);
  }
  lua_pushinteger(L, records), lua_setfield(L, -2, "records");
  lua_pushinteger(L, t->last), lua_setfield(L, -2, "last");
  if (t->has_best) {
    db_id_text(&t->best, id);
    lua_pushstring(L, id), lua_setfield(L, -2, "best");
    push_id(L, &t->best), lua_setfield(L, -2, "best_key");
    lua_pushnumber(L, t->seconds), lua_setfield(L, -2, "seconds");
  }
  if (t->has_pinned) {
    db_id_text(&t->pinned, id);
    lua_pushstring(L, id), lua_setfield(L, -2, "pinned");
    push_id(L, &t->pinned), lua_setfield(L, -2, "pinned_key");
  }
  lua_newtable(L);
  for (int i = 0; t->devices[i]; i++) lua_pushstring(L, t->devices[i]), lua_rawseti(L, -2, i + 1);
  lua_setfield(L, -2, "devices");
}

/* store:tasks([workload]): what the summaries say of tasks, a workload on a target each */
static int store_tasks(lua_State *L) {
  lua_settop(L, 2);
  struct db *db = open_store(L);
  db_id id = {{0}};
  if (!lua_isnil(L, 2)) id = check_id(L, 2);
  struct task_list *l = bind_hold(L, sizeof *l, "msched.tasks", free_tasks);
  ms_error err = {.instruction = -1};
  if (!db_each_task(db, lua_isnil(L, 2) ? NULL : &id, list_task, l, &err)) return bind_raise(L, &err);
  lua_createtable(L, (int)l->count, 0);
  for (size_t i = 0; i < l->count; i++) {
    push_task(L, &l->at[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* store:refresh(): makes summaries again that deletions, or an older store, left stale */
static int store_refresh(lua_State *L) {
  ms_error err = {.instruction = -1};
  return db_refresh_tasks(open_store(L), &err) ? 0 : bind_raise(L, &err);
}

/* store:check(): the number of problems; a line each on stderr */
static int store_check(lua_State *L) {
  ms_error err = {.instruction = -1};
  int64_t problems = db_check(open_store(L), stderr, &err);
  if (problems < 0) return bind_raise(L, &err);
  lua_pushinteger(L, problems);
  return 1;
}

/* check_pages([path]): the number of damaged pages of a store that is not open; a line each on stderr */
static int check_pages(lua_State *L) {
  ms_error err = {.instruction = -1};
  int64_t problems = db_check_pages(bind_opt_text(L, 1, NULL), stderr, &err);
  if (problems < 0) return bind_raise(L, &err);
  lua_pushinteger(L, problems);
  return 1;
}

static void set_count(lua_State *L, const char *key, uint64_t count) {
  assert(lua_istable(L, -1));
  lua_pushinteger(L, (lua_Integer)count);
  lua_setfield(L, -2, key);
}

/* repair([path]): a store that is not open, what was done as a table; a line on stderr for each thing that is
 * damaged */
static int repair(lua_State *L) {
  ms_error err = {.instruction = -1};
  struct db_repair done;
  const char *path = bind_opt_text(L, 1, NULL);
  lua_newtable(L);
  bool ok = db_repair_file(path, stderr, &done, &err);
  if (!ok) {
    free(done.backup);
    return bind_raise(L, &err);
  }
  char backup[PATH_MAX] = "";
  snprintf(backup, sizeof backup, "%s", done.backup ? done.backup : "");
  free(done.backup);
  lua_pushboolean(L, done.needed), lua_setfield(L, -2, "needed");
  set_count(L, "pages", done.pages);
  set_count(L, "records", done.records);
  set_count(L, "workloads", done.workloads);
  set_count(L, "intrinsics", done.intrinsics);
  set_count(L, "dropped", done.dropped);
  if (*backup) lua_pushstring(L, backup), lua_setfield(L, -2, "backup");
  return 1;
}

static int store_compact(lua_State *L) {
  ms_error err = {.instruction = -1};
  return db_compact(open_store(L), &err) ? 0 : bind_raise(L, &err);
}

/* store:delete(id): removes a record, which may be damaged, by the first digits of its id; the whole id */
static int store_delete(lua_State *L) {
  struct db *db = open_store(L);
  const char *prefix = bind_check_text(L, 2);
  ms_error err = {.instruction = -1};
  db_id id;
  char text[DB_ID_TEXT];
  int found = db_find_id(db, prefix, &id, &err);
  if (!found) return bind_refuse(L, "no record `%s` in %s", prefix, db_path(db));
  if (found < 0 || !db_delete_record(db, &id, &err)) return bind_raise(L, &err);
  db_id_text(&id, text);
  lua_pushstring(L, text);
  return 1;
}

/* Writes the store to a file, "-" being standard output. */
static int export_by(lua_State *L, bool (*export)(struct db *db, FILE *out, ms_error *err)) {
  struct db *db = open_store(L);
  struct bind_output out;
  ms_error err = {.instruction = -1};
  if (!bind_open_output(&out, bind_check_text(L, 2), &err)) return bind_raise(L, &err);
  bool ok = export(db, out.file, &err);
  return bind_close_output(&out, ok, &err) ? 0 : bind_raise(L, &err);
}

/* store:export_csv(path); "-" is standard output */
static int store_export_csv(lua_State *L) { return export_by(L, db_export_csv); }

/* store:backup(path): the number of problems of the copy, a line each on stderr */
static int store_backup(lua_State *L) {
  ms_error err = {.instruction = -1};
  int64_t problems = db_backup(open_store(L), bind_check_text(L, 2), stderr, &err);
  if (problems < 0) return bind_raise(L, &err);
  lua_pushinteger(L, problems);
  return 1;
}

/* store:prune{workload =, target =, keep =, before =, within =, device =, dry =}: how many records of a task stay, how
 * many go */
static int store_prune(lua_State *L) {
  struct db *db = open_store(L);
  lua_settop(L, 2);
  luaL_checktype(L, 2, LUA_TTABLE);
  db_id workload = check_id_field(L, 2, "workload");
  lua_getfield(L, 2, "within");
  struct db_prune rule = {.keep = (uint64_t)bind_option_int(L, 2, "keep", 0),
                          .before = bind_option_int(L, 2, "before", 0),
                          .within = lua_tonumber(L, -1),
                          .device = bind_option_text(L, 2, "device", NULL),
                          .dry = bind_option_bool(L, 2, "dry", false)};
  struct db_pruned done;
  ms_error err = {.instruction = -1};
  if (!db_prune_task(db, &workload, bind_option_text(L, 2, "target", ""), &rule, &done, &err))
    return bind_raise(L, &err);
  lua_pushinteger(L, (lua_Integer)done.kept);
  lua_pushinteger(L, (lua_Integer)done.deleted);
  return 2;
}

/* store:export(path); "-" is standard output */
static int store_export(lua_State *L) { return export_by(L, db_export_json); }

/* store:export_tuning(folder, {id…}): TVM's tuning records in the file of the folder that TVM names so; how many were
 * written, and how many left out. The tensor intrinsics of this state TVM has too. */
static int store_export_tuning(lua_State *L) {
  struct db *db = open_store(L);
  const char *folder = bind_check_text(L, 2);
  char path[PATH_MAX];
  luaL_checktype(L, 3, LUA_TTABLE);
  size_t count = lua_rawlen(L, 3);
  db_id *ids = lua_newuserdatauv(L, (count + 1) * sizeof *ids, 0);
  for (size_t i = 0; i < count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 3, (lua_Integer)i + 1);
    ids[i] = check_id(L, -1);
  }
  ms_error err = {.instruction = -1};
  uint64_t written = 0, left_out = 0, some, others;
  if (snprintf(path, sizeof path, "%s/database_tuning_record.json", folder) >= PATH_MAX ||
      (mkdir(folder, 0777) && errno != EEXIST))
    return bind_refuse(L, "%s: cannot be made: %s", folder, strerror(errno));
  struct bind_output out;
  if (!bind_open_output(&out, path, &err)) return bind_raise(L, &err);
  bool ok = true;
  for (size_t i = 0; i < count && ok; i++, written += some, left_out += others) {
    some = others = 0;
    ok = db_export_tuning(db, &ids[i], i, bind_intrinsics(L), out.file, &some, &others, &err);
  }
  if (!bind_close_output(&out, ok, &err)) return bind_raise(L, &err);
  lua_pushinteger(L, (lua_Integer)written);
  lua_pushinteger(L, (lua_Integer)left_out);
  return 2;
}

/* As jit writes it; one that jit does not know stays as it is. */
static bool name_target(const char *text, char *out, size_t size) {
  struct jit_target target;
  if (!*text || !jit_target_parse(text, &target, NULL)) return false;
  jit_target_text(&target, out, size);
  return true;
}

static int free_refusals(lua_State *L) {
  struct db_import *import = lua_touserdata(L, 1);
  free(import->refusals);
  import->refusals = NULL;
  return 0;
}

/* The functions of the table on top, which keeps them; a text in the place of one says why it cannot be read. */
static void take_workloads(lua_State *L, struct db_import *import) {
  size_t count = lua_istable(L, -1) ? lua_rawlen(L, -1) : 0;
  struct db_workload *list = lua_newuserdatauv(L, (count + 1) * sizeof *list, 0);
  for (size_t i = 0; i < count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, -2, (lua_Integer)i + 1);
    if (lua_type(L, -1) == LUA_TSTRING) {
      list[i] = (struct db_workload){.why = lua_tostring(L, -1)};
      continue;
    }
    struct bound_function *f = bind_check_function(L, -1);
    list[i] = (struct db_workload){.ir = f->ir, .func = f->func};
  }
  import->workloads = list;
  import->workload_count = (uint32_t)count;
}

/* store:import(path [, {workloads = {function…}, target = text}]): how many records were added, how many lines refused,
 * and why, a line each. workloads: what TVM's tuning records number; target: of those that name none */
static int store_import(lua_State *L) {
  struct db *db = open_store(L);
  const char *path = bind_check_text(L, 2);
  lua_settop(L, 3);
  if (!lua_istable(L, 3)) lua_newtable(L), lua_replace(L, 3);
  struct db_import *import = bind_hold(L, sizeof *import, "msched.import", free_refusals);
  import->target = bind_option_text(L, 3, "target", NULL);
  import->name_target = name_target;
  import->intrinsics = bind_intrinsics(L);
  lua_getfield(L, 3, "workloads");
  take_workloads(L, import);
  ms_error err = {.instruction = -1};
  const char *fault;
  FILE *in = strcmp(path, "-") != 0 ? bind_open_or_say(path, &fault) : stdin;
  if (!in) return bind_refuse(L, "%s: cannot be read: %s", path, fault);
  bool ok = db_import_json(db, in, path, import, &err);
  if (ok && ferror(in)) ok = ms_fail(&err, MS_IO, "%s: cannot be read: %s", path, strerror(errno));
  if (in != stdin) fclose(in);
  if (!ok) return bind_raise(L, &err);
  lua_pushinteger(L, (lua_Integer)import->added);
  lua_pushinteger(L, (lua_Integer)import->refused);
  lua_pushstring(L, import->refusals ? import->refusals : "");
  return 3;
}

static int free_merge(lua_State *L) {
  struct db_merge *merge = lua_touserdata(L, 1);
  free(merge->refusals);
  merge->refusals = NULL;
  return 0;
}

/* store:merge(other): how many of the other store's records were added, known and refused, and why, a line each */
static int store_merge(lua_State *L) {
  struct db *db = open_store(L), *other = *(struct db **)luaL_checkudata(L, 2, BOUND_STORE);
  luaL_argcheck(L, other && other != db, 2, "another store, which is open, is expected");
  struct db_merge *merge = bind_hold(L, sizeof *merge, "msched.merge", free_merge);
  ms_error err = {.instruction = -1};
  if (!db_merge(db, other, merge, &err)) return bind_raise(L, &err);
  lua_pushinteger(L, (lua_Integer)merge->added);
  lua_pushinteger(L, (lua_Integer)merge->known);
  lua_pushinteger(L, (lua_Integer)merge->refused);
  lua_pushstring(L, merge->refusals ? merge->refusals : "");
  return 4;
}

/* read_workload(line): the function of a line of TVM's database_workload.json */
static int read_workload(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  ms_error err = {.instruction = -1};
  struct tir *ir = db_read_workload(text, length, &err);
  tir_func f = ir ? tir_find_func(ir, "main") : TIR_NONE;
  if (ir && !f) {
    ms_fail(&err, MS_FUNCTION_NOT_FOUND, "there are several functions, and none is `main`");
    tir_free(ir);
  }
  if (!f) return bind_raise(L, &err);
  bind_push_function(L, ir, f);
  return 1;
}

/* write_workload(function): such a line, without a newline */
static int write_workload(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  ms_error err = {.instruction = -1};
  char *line = db_write_workload(f->ir, f->func, &err);
  if (!line) return bind_raise(L, &err);
  lua_pushstring(L, line);
  free(line);
  return 1;
}

static int versions(lua_State *L) {
  lua_pushstring(L, versions_text());
  return 1;
}

void bind_stores(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"path", store_path},
                                     {"put_workload", store_put_workload},
                                     {"workload_id", store_workload_id},
                                     {"get_workload", store_get_workload},
                                     {"put", store_put},
                                     {"fail", store_fail},
                                     {"retime", store_retime},
                                     {"pin", store_pin},
                                     {"batch", store_batch},
                                     {"find", store_find},
                                     {"take_intrinsics", store_take_intrinsics},
                                     {"find_module", store_find_module},
                                     {"short_id", store_short_id},
                                     {"ids", store_ids},
                                     {"records", store_records},
                                     {"workloads", store_workloads},
                                     {"outlines", store_outlines},
                                     {"tasks", store_tasks},
                                     {"refresh", store_refresh},
                                     {"check", store_check},
                                     {"compact", store_compact},
                                     {"delete", store_delete},
                                     {"export", store_export},
                                     {"export_csv", store_export_csv},
                                     {"export_tuning", store_export_tuning},
                                     {"backup", store_backup},
                                     {"prune", store_prune},
                                     {"import", store_import},
                                     {"merge", store_merge},
                                     {"close", collect_store},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect_store}, {NULL, NULL}};
  bind_type(L, BOUND_STORE, methods, meta);
  luaL_getmetatable(L, BOUND_STORE);
  lua_getfield(L, -1, "__index");
  lua_setfield(L, -3, "store_methods"); /* for those written in Lua */
  lua_pop(L, 1);
  static const luaL_Reg functions[] = {{"store", new_store},
                                       {"read_workload", read_workload},
                                       {"write_workload", write_workload},
                                       {"versions", versions},
                                       {"check_pages", check_pages},
                                       {"repair", repair},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

#define _GNU_SOURCE
/* Records of stores in Lua: putting, changing, finding them; as tables. */
#include "bind_store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
} facts[] = {{DEVICE, "name", DB_TEXT},
             {DEVICE, "driver", DB_NUMBER},
             {DEVICE, "clock", DB_NUMBER},
             {DEVICE, "memory_clock", DB_NUMBER},
             {DEVICE, "slowed", DB_BOOLEAN},
             {DEVICE, "kernels", DB_NUMBER},
             {DEVICE, "threads", DB_NUMBER},
             {DEVICE, "registers", DB_NUMBER},
             {DEVICE, "spilled_bytes", DB_NUMBER},
             {DEVICE, "stack_bytes", DB_NUMBER},
             {DEVICE, "shared_bytes", DB_NUMBER},
             {DEVICE, "timing_clock", DB_NUMBER},
             {DEVICE, "raw_seconds", DB_NUMBER},
             {DEVICE, "uncaptured", DB_TEXT},
             {DEVICE, "others", DB_NUMBER},
             {DEVICE, "others_bytes", DB_NUMBER},
             {DEVICE, "memory_left", DB_NUMBER},
             {SEARCH, "asked", DB_NUMBER},
             {SEARCH, "came", DB_NUMBER},
             {SEARCH, "build_seconds", DB_NUMBER},
             {SEARCH, "run_seconds", DB_NUMBER},
             {SEARCH, "run", DB_NUMBER},
             {SEARCH, "space", DB_NUMBER},
             {SEARCH, WORKER, DB_TEXT},
             {SEARCH, "batch", DB_NUMBER},
             {SEARCH, "proposer", DB_TEXT},
             {ROOFLINE, "limit", DB_TEXT},
             {ROOFLINE, "limit_seconds", DB_NUMBER}};
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
  bind_push_id(L, &r->id), lua_setfield(L, -2, "key");
  bind_push_id(L, &r->workload), lua_setfield(L, -2, "workload");
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
  bind_push_id(L, &r->id), lua_setfield(L, -2, "key");
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
const char *bind_versions(void) {
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
  struct db *db = bind_open_store(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  struct db_record r = {.target = bind_option_text(L, 2, "target", ""),
                        .reason = bind_option_text(L, 2, "reason", ""),
                        .versions = bind_versions(),
                        .when = db_when(time(NULL))};
  r.workload = bind_check_id_field(L, 2, "workload");
  lua_getfield(L, 2, "trace");
  struct vm_trace *trace = bind_test_trace(L, -1);
  if (!trace) return bind_refuse(L, "`trace` is a trace");
  r.module_hash = strtoull(bind_option_text(L, 2, "hash", "0"), NULL, 16);
  lua_getfield(L, 2, "status");
  r.status = (enum db_status)luaL_checkoption(L, -1, "measured", db_status_names);
  lua_getfield(L, 2, "seconds"), r.seconds = lua_tonumber(L, -1);
  lua_getfield(L, 2, "low"), r.low = lua_tonumber(L, -1);
  lua_getfield(L, 2, "high"), r.high = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : INFINITY;
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

/* A field's number; what it is where there is none. False: it is something else. */
static bool get_number(lua_State *L, int at, const char *name, double missing, double *out) {
  int type = lua_getfield(L, at, name);
  *out = type == LUA_TNUMBER ? lua_tonumber(L, -1) : missing;
  lua_pop(L, 1);
  return type == LUA_TNUMBER || type == LUA_TNIL;
}

/* ms.record_fault{status =, seconds =, low =, high =, runs =, device =, search =, roofline =}: why a store would not
 * keep a record that says so, whoever it comes from; nil where it would */
int bind_record_fault(lua_State *L) {
  struct db_record r = {.target = "", .reason = "", .versions = ""};
  char wrong[DB_WRONG_TEXT];
  double runs;
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_getfield(L, 1, "status");
  r.status = (enum db_status)luaL_checkoption(L, -1, "measured", db_status_names);
  bool numbers = get_number(L, 1, "seconds", NAN, &r.seconds) && get_number(L, 1, "low", 0, &r.low) &&
                 get_number(L, 1, "high", INFINITY, &r.high) && get_number(L, 1, "runs", 0, &runs);
  if (numbers && runs >= 0 && runs <= UINT32_MAX && runs == trunc(runs)) {
    take_facts(L, 1, DEVICE, &r), take_facts(L, 1, SEARCH, &r), take_facts(L, 1, ROOFLINE, &r);
    bool found = db_find_wrong_number(&r, wrong);
    free((void *)r.facts);
    lua_pushstring(L, found ? wrong : NULL);
  } else {
    const char *wrong_runs = "`runs` must be an integer from 0 to 4294967295";
    lua_pushstring(L, numbers ? wrong_runs : "a time of it is no number");
  }
  return 1;
}

/* The record that argument 2 names. */
static void check_record(lua_State *L, struct db *db, struct db_record *out) {
  ms_error err = {.instruction = -1};
  int found = db_find_record(db, bind_check_text(L, 2), out, &err);
  if (!found) bind_refuse(L, "there is no record `%s`", lua_tostring(L, 2));
  if (found < 0) bind_raise(L, &err);
}

/* store:fail(id, reason): the record counts as failed from now on */
static int store_fail(lua_State *L) {
  struct db *db = bind_open_store(L);
  struct db_record r;
  ms_error err = {.instruction = -1};
  check_record(L, db, &r);
  r.status = DB_FAILED;
  r.reason = bind_check_text(L, 3);
  return db_put_record(db, &r, &err) ? 0 : bind_raise(L, &err);
}

/* What a record keeps of its device, with what is given of how its new time was measured in the place of what it had.
 * to->facts is the caller's to free(). */
static void retime_facts(lua_State *L, int at, const struct db_record *from, struct db_record *to) {
  static const char *const given[][2] = {{"timing_clock", "clock"}, {"raw_seconds", "raw_seconds"}};
  size_t next = 0;
  struct db_fact f;
  bool limited = lua_getfield(L, at, group_names[ROOFLINE]) == LUA_TTABLE;
  lua_pop(L, 1);
  to->facts = NULL, to->fact_bytes = 0;
  while (db_next_fact(from, &next, &f)) {
    const struct fact_field *field = find_field(&f);
    bool is_limit = field && field->group == ROOFLINE;
    if (strcmp(f.name, given[0][0]) != 0 && strcmp(f.name, given[1][0]) != 0 && strcmp(f.name, WORKER) != 0 &&
        !(limited && is_limit))
      db_append_fact(to, &f);
  }
  take_facts(L, at, ROOFLINE, to);
  for (int i = 0; i < 2; i++) {
    if (lua_getfield(L, at, given[i][1]) == LUA_TNUMBER)
      db_append_fact(to, &(struct db_fact){.name = given[i][0], .kind = DB_NUMBER, .number = lua_tonumber(L, -1)});
    lua_pop(L, 1);
  }
  if (lua_getfield(L, at, WORKER) == LUA_TSTRING)
    db_append_fact(to, &(struct db_fact){.name = WORKER, .kind = DB_TEXT, .text = lua_tostring(L, -1)});
  lua_pop(L, 1);
}

/* store:retime(id, {seconds =, low =, high =, runs =, busy =, clock =, raw_seconds =, worker =, roofline =}): a
 * record's time is another from now on */
static int store_retime(lua_State *L) {
  struct db *db = bind_open_store(L);
  struct db_record r;
  ms_error err = {.instruction = -1};
  luaL_checktype(L, 3, LUA_TTABLE);
  lua_settop(L, 3);
  check_record(L, db, &r);
  lua_getfield(L, 3, "seconds"), r.seconds = luaL_checknumber(L, -1);
  lua_getfield(L, 3, "low"), r.low = luaL_checknumber(L, -1);
  lua_getfield(L, 3, "high"), r.high = luaL_checknumber(L, -1);
  r.runs = (uint32_t)bind_option_int(L, 3, "runs", 0);
  r.busy = bind_option_bool(L, 3, "busy", false);
  struct db_record retimed = r;
  retime_facts(L, 3, &r, &retimed);
  bool put = db_put_record(db, &retimed, &err);
  free((void *)retimed.facts);
  return put ? 0 : bind_raise(L, &err);
}

/* store:pin(id, whether it is) */
static int store_pin(lua_State *L) {
  struct db *db = bind_open_store(L);
  struct db_record r;
  ms_error err = {.instruction = -1};
  check_record(L, db, &r);
  r.pinned = lua_toboolean(L, 3);
  return db_put_record(db, &r, &err) ? 0 : bind_raise(L, &err);
}

/* store:find(id prefix): a record, or nil */
static int store_find(lua_State *L) {
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_record(bind_open_store(L), bind_check_text(L, 2), &r, &err);
  if (found < 0) return bind_raise(L, &err);
  if (!found) return 0;
  push_record(L, &r);
  return 1;
}

/* store:take_intrinsics(id): those that the record names are this state's from then on; raises: one is missing, or the
 * state has another of its name */
static int store_take_intrinsics(lua_State *L) {
  struct db *db = bind_open_store(L);
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
  db_id workload = bind_check_id(L, 2);
  struct db_record r;
  ms_error err = {.instruction = -1};
  int found = db_find_module(bind_open_store(L), &workload, bind_check_text(L, 3),
                             strtoull(bind_check_text(L, 4), NULL, 16), bind_versions(), &r, &err);
  if (found < 0) return bind_raise(L, &err);
  if (!found) return 0;
  push_record(L, &r);
  return 1;
}

static int store_short_id(lua_State *L) {
  db_id id = bind_check_id(L, 2);
  char text[DB_ID_TEXT];
  db_short_id(bind_open_store(L), &id, text);
  lua_pushstring(L, text);
  return 1;
}

/* store:ids(start[, most]): of the records whose ids start so, as few digits as name each; 100 of them, unless `most`
 * says more or fewer */
static int store_ids(lua_State *L) {
  struct db *db = bind_open_store(L);
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
  struct db *db = bind_open_store(L);
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
  db_id id = workload ? bind_check_id_field(L, 2, "workload") : (db_id){{0}};
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

const luaL_Reg bind_record_methods[] = {{"put", store_put},
                                        {"fail", store_fail},
                                        {"retime", store_retime},
                                        {"pin", store_pin},
                                        {"find", store_find},
                                        {"take_intrinsics", store_take_intrinsics},
                                        {"find_module", store_find_module},
                                        {"short_id", store_short_id},
                                        {"ids", store_ids},
                                        {"records", store_records},
                                        {NULL, NULL}};

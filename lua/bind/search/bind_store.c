#define _GNU_SOURCE
/* Stores in Lua: the object, its workloads, its tasks. Records are those of bind_record.c. */
#include "bind_store.h"
#include "lua/bind/state/visible.h"

#include <stdlib.h>
#include <string.h>

static struct db **check_store(lua_State *L) { return luaL_checkudata(L, 1, BOUND_STORE); }

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
  lua_pushstring(L, db_path(bind_open_store(L)));
  return 1;
}

/* store:workload_id(function): the id that it has in every store */
static int store_workload_id(lua_State *L) {
  bind_open_store(L);
  const struct bound_function *f = bind_check_function(L, 2);
  db_id id = db_workload_id(f->ir, f->func);
  bind_push_id(L, &id);
  return 1;
}

/* store:put_workload(function): its id, as 16 bytes */
static int store_put_workload(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 2);
  ms_error err = {.instruction = -1};
  db_id id;
  if (!db_put_workload(bind_open_store(L), f->ir, f->func, &id, &err)) return bind_raise(L, &err);
  bind_push_id(L, &id);
  return 1;
}

/* store:get_workload(id): the function */
static int store_get_workload(lua_State *L) {
  db_id id = bind_check_id(L, 2);
  ms_error err = {.instruction = -1};
  struct tir *ir = db_get_workload(bind_open_store(L), &id, &err);
  if (!ir) return bind_raise(L, &err);
  bind_push_function(L, ir, tir_find_func(ir, "main"));
  return 1;
}

/* store:batch(f): what f puts and deletes is written together, also where it raises */
static int store_batch(lua_State *L) {
  struct db *db = bind_open_store(L);
  ms_error err = {.instruction = -1};
  luaL_checktype(L, 2, LUA_TFUNCTION);
  lua_settop(L, 2);
  if (!db_begin_batch(db, &err)) return bind_raise(L, &err);
  bool ok = lua_pcall(L, 0, 0, 0) == LUA_OK;
  if (!*check_store(L)) return bind_refuse(L, "the store was closed in its batch");
  if (!db_end_batch(db, &err)) return bind_raise(L, &err);
  return ok ? 0 : lua_error(L);
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
  struct db *db = bind_open_store(L);
  struct workload_list *l = bind_hold(L, sizeof *l, "msched.workloads", free_workloads);
  l->function = lua_isnil(L, 2) ? NULL : bind_check_function(L, 2);
  ms_error err = {.instruction = -1};
  if (!db_each_workload(db, list_workload, l, &err)) return bind_raise(L, &err);
  lua_createtable(L, (int)l->count, 0);
  for (size_t i = 0; i < l->count; i++) {
    lua_createtable(L, 0, 3);
    bind_push_id(L, &l->at[i].id), lua_setfield(L, -2, "id");
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
  struct db *db = bind_open_store(L);
  struct outline_list *l = bind_hold(L, sizeof *l, "msched.outlines", free_outlines);
  ms_error err = {.instruction = -1};
  if (!db_each_outline(db, list_outline, l, &err)) return bind_raise(L, &err);
  lua_createtable(L, 0, (int)l->count);
  for (size_t i = 0; i < l->count; i++) {
    bind_push_id(L, &l->at[i].id);
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
  bind_push_id(L, &t->workload), lua_setfield(L, -2, "workload");
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
    bind_push_id(L, &t->best), lua_setfield(L, -2, "best_key");
    lua_pushnumber(L, t->seconds), lua_setfield(L, -2, "seconds");
  }
  if (t->has_pinned) {
    db_id_text(&t->pinned, id);
    lua_pushstring(L, id), lua_setfield(L, -2, "pinned");
    bind_push_id(L, &t->pinned), lua_setfield(L, -2, "pinned_key");
  }
  lua_newtable(L);
  for (int i = 0; t->devices[i]; i++) lua_pushstring(L, t->devices[i]), lua_rawseti(L, -2, i + 1);
  lua_setfield(L, -2, "devices");
}

/* store:tasks([workload]): what the summaries say of tasks, a workload on a target each */
static int store_tasks(lua_State *L) {
  lua_settop(L, 2);
  struct db *db = bind_open_store(L);
  db_id id = {{0}};
  if (!lua_isnil(L, 2)) id = bind_check_id(L, 2);
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
  return db_refresh_tasks(bind_open_store(L), &err) ? 0 : bind_raise(L, &err);
}

static int versions(lua_State *L) {
  lua_pushstring(L, bind_versions());
  return 1;
}

void bind_stores(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"path", store_path},
                                     {"put_workload", store_put_workload},
                                     {"workload_id", store_workload_id},
                                     {"get_workload", store_get_workload},
                                     {"batch", store_batch},
                                     {"workloads", store_workloads},
                                     {"outlines", store_outlines},
                                     {"tasks", store_tasks},
                                     {"refresh", store_refresh},
                                     {"close", collect_store},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect_store}, {NULL, NULL}};
  bind_type(L, BOUND_STORE, methods, meta);
  luaL_getmetatable(L, BOUND_STORE);
  lua_getfield(L, -1, "__index");
  luaL_setfuncs(L, bind_record_methods, 0);
  luaL_setfuncs(L, bind_bests_methods, 0);
  luaL_setfuncs(L, bind_upkeep_methods, 0);
  lua_setfield(L, -3, "store_methods"); /* for those written in Lua */
  lua_pop(L, 1);
  static const luaL_Reg functions[] = {{"store", new_store},
                                       {"versions", versions},
                                       {"stamp", bind_stamp},
                                       {"record_fault", bind_record_fault},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
  bind_bests(L);
  bind_upkeep(L);
}

#define _GNU_SOURCE
/* The upkeep of stores in Lua: checking, repairing, pruning; what goes out, and what comes in. */
#include "bind_store.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* store:check(): the number of problems; a line each on stderr */
static int store_check(lua_State *L) {
  ms_error err = {.instruction = -1};
  int64_t problems = db_check(bind_open_store(L), stderr, &err);
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
  return db_compact(bind_open_store(L), &err) ? 0 : bind_raise(L, &err);
}

/* store:delete(id): removes a record, which may be damaged, by the first digits of its id; the whole id */
static int store_delete(lua_State *L) {
  struct db *db = bind_open_store(L);
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
  struct db *db = bind_open_store(L);
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
  int64_t problems = db_backup(bind_open_store(L), bind_check_text(L, 2), stderr, &err);
  if (problems < 0) return bind_raise(L, &err);
  lua_pushinteger(L, problems);
  return 1;
}

/* store:prune{workload =, target =, keep =, before =, within =, device =, dry =}: how many records of a task stay, how
 * many go */
static int store_prune(lua_State *L) {
  struct db *db = bind_open_store(L);
  lua_settop(L, 2);
  luaL_checktype(L, 2, LUA_TTABLE);
  db_id workload = bind_check_id_field(L, 2, "workload");
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
  struct db *db = bind_open_store(L);
  const char *folder = bind_check_text(L, 2);
  char path[PATH_MAX];
  luaL_checktype(L, 3, LUA_TTABLE);
  size_t count = lua_rawlen(L, 3);
  db_id *ids = lua_newuserdatauv(L, (count + 1) * sizeof *ids, 0);
  for (size_t i = 0; i < count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 3, (lua_Integer)i + 1);
    ids[i] = bind_check_id(L, -1);
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
 * and why, a line each, and how many lines there were. workloads: what TVM's tuning records number; target: of those
 * that name none */
static int store_import(lua_State *L) {
  struct db *db = bind_open_store(L);
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
  lua_pushinteger(L, (lua_Integer)import->lines);
  return 4;
}

static int free_merge(lua_State *L) {
  struct db_merge *merge = lua_touserdata(L, 1);
  free(merge->refusals);
  merge->refusals = NULL;
  return 0;
}

/* store:merge(other): how many of the other store's records were added, known and refused, and why, a line each */
static int store_merge(lua_State *L) {
  struct db *db = bind_open_store(L), *other = *(struct db **)luaL_checkudata(L, 2, BOUND_STORE);
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

const luaL_Reg bind_upkeep_methods[] = {{"check", store_check},
                                        {"compact", store_compact},
                                        {"delete", store_delete},
                                        {"export", store_export},
                                        {"export_csv", store_export_csv},
                                        {"export_tuning", store_export_tuning},
                                        {"backup", store_backup},
                                        {"prune", store_prune},
                                        {"import", store_import},
                                        {"merge", store_merge},
                                        {NULL, NULL}};

void bind_upkeep(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg functions[] = {{"read_workload", read_workload},
                                       {"write_workload", write_workload},
                                       {"check_pages", check_pages},
                                       {"repair", repair},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

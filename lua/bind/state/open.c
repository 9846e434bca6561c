/* Lua states, made and closed: the module, which a Lua that is not ours loads too, and files of ours by name. */
#include "format.h"
#include "lua/bind/bind.h"
#include "lua/bind/search/bind_search.h"
#include "lua/net/model/read.h"
#include "state.h"

#include <assert.h>
#include <dirent.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void script_push_text(lua_State *L, const char *path) {
  ms_error err = {.instruction = -1};
  if (bind_push_file(L, path, BIND_MOST_TEXT, &err)) return;
  lua_pushfstring(L, "cannot open %s", err.message); /* as Lua's own loading says it */
  lua_error(L);
}

/* Our own files belong to the program, as its code does: each is read once, whichever state asks first, so that one
 * that is replaced while the program runs, by an update, does not make part of it another version. Where a second state
 * loads it, it keeps what Lua makes of it, which those after it load in a tenth of the time. Kept until the program
 * ends. */
struct own_file {
  struct own_file *next;
  char *path, *text, *code; /* code: under the lock; NULL, or does not change */
  size_t length, code_length;
};
static struct own_file *own_files; /* under the lock; what is in the list does not change */
static pthread_mutex_t own_files_lock = PTHREAD_MUTEX_INITIALIZER;

static struct own_file *find_own_file(const char *path) {
  pthread_mutex_lock(&own_files_lock);
  struct own_file *f = own_files;
  while (f && strcmp(f->path, path) != 0) f = f->next;
  pthread_mutex_unlock(&own_files_lock);
  return f;
}

/* The text is copied. What another state has read meanwhile stands. */
static struct own_file *keep_own_file(const char *path, const char *text, size_t length) {
  struct own_file *f = malloc(sizeof *f);
  if (f) *f = (struct own_file){.path = strdup(path), .text = malloc(length + 1), .length = length};
  if (!f || !f->path || !f->text) abort(); /* as wherever memory ends in C */
  memcpy(f->text, text, length);
  pthread_mutex_lock(&own_files_lock);
  struct own_file *known = own_files;
  while (known && strcmp(known->path, path) != 0) known = known->next;
  if (!known) f->next = own_files, own_files = f;
  pthread_mutex_unlock(&own_files_lock);
  if (!known) return f;
  free(f->path), free(f->text), free(f);
  return known;
}

static struct own_file *read_own_file(lua_State *L, const char *path) {
  size_t length;
  ms_error err = {.instruction = -1};
  bool is_read = bind_push_file(L, path, BIND_MOST_TEXT, &err);
  if (!is_read && access(path, R_OK) == 0)
    luaL_error(
        L, "one of msched's own files cannot be read: %s; raise the limits of open files and of memory (ulimit -n, -v)",
        err.message);
  if (!is_read)
    luaL_error(L,
               "msched's own files are missing: cannot open %s; install msched again, or set MSCHED_LUA_PATH to the "
               "folder that has its lua/lib",
               err.message);
  const char *text = lua_tolstring(L, -1, &length);
  struct own_file *f = keep_own_file(path, text, length);
  lua_pop(L, 1);
  return f;
}

/* The code of a chunk, while Lua writes it. */
struct code {
  char *bytes;
  size_t length, room;
};
static int add_code(lua_State *L, const void *bytes, size_t length, void *to) {
  (void)L;
  struct code *code = to;
  if (code->length + length > code->room) { /* Lua writes some bytes at a time */
    code->room = 2 * (code->length + length) + 4096;
    code->bytes = realloc(code->bytes, code->room);
    if (!code->bytes) abort();
  }
  memcpy(code->bytes + code->length, bytes, length);
  code->length += length;
  return 0;
}

/* Keeps the code of the chunk on top, which stays there. */
static void keep_code(lua_State *L, struct own_file *f) {
  assert(lua_isfunction(L, -1));
  struct code code = {NULL, 0, 0};
  if (lua_dump(L, add_code, &code, 0) != 0 || !code.length) abort();
  pthread_mutex_lock(&own_files_lock);
  bool is_kept = f->code;
  if (!is_kept) f->code = code.bytes, f->code_length = code.length;
  pthread_mutex_unlock(&own_files_lock);
  if (is_kept) free(code.bytes);
}

static bool has_code(const struct own_file *f) {
  pthread_mutex_lock(&own_files_lock);
  bool has = f->code;
  pthread_mutex_unlock(&own_files_lock);
  return has;
}

/* Pushes the chunk of one of our files; messages call it msched/NAME, which sets it apart from a user's: by the name by
 * which the process compiled it, where it has several ("rules.common", "rules/common"). */
static void load_file(lua_State *L, const char *path, const char *name) {
  struct own_file *f = find_own_file(path);
  bool is_first = !f, has;
  if (is_first) f = read_own_file(L, path);
  has = has_code(f);
  const char *chunk = lua_pushfstring(L, SCRIPT_OWN "%s", name);
  if (luaL_loadbufferx(L, has ? f->code : f->text, has ? f->code_length : f->length, chunk, has ? "b" : "t") != LUA_OK)
    lua_error(L);
  lua_remove(L, -2);
  if (!is_first && !has) keep_code(L, f);
}

/* type(x): "function", "schedule", "trace", …; nil for what is not of this module. */
static int type_of(lua_State *L) {
  const char *name = luaL_getmetafield(L, 1, "__name") == LUA_TSTRING ? lua_tostring(L, -1) : "";
  if (!lua_isuserdata(L, 1) || strncmp(name, "msched.", 7) != 0) return 0;
  lua_pushstring(L, name + 7);
  return 1;
}

/* Files that scripts may know by the names that they had: of a file, or of all in a folder. */
static const char *const moved[][2] = {
    {"lua.cli.docs", "lua.cli.help.docs"},
    {"lua.cli.terms", "lua.cli.help.terms"},
    {"lua.ways.", "lua.compat."},
    {"rules.disallow_", "rules.postproc.disallow_"},
    {"rules.multi_level_tiling", "rules.rule.multi_level_tiling"},
    {"rules.multi_level_tiling_", "rules.rule.multi_level_tiling_"},
    {"rules.mutate_", "rules.mutator.mutate_"},
    {"rules.rewrite_", "rules.postproc.rewrite_"},
    {"rules.verify_", "rules.postproc.verify_"},
    {"search.annealing", "search.policy.annealing"},
    {"search.compose", "search.groups.compose"},
    {"search.contest", "search.remeasure"},
    {"search.coordinate", "search.policy.coordinate"},
    {"search.cost.draft", "search.cost.analytical"},
    {"search.draft", "search.cost.analytical"},
    {"search.draft_verify", "search.policy.analytical"},
    {"search.evolutionary", "search.policy.evolutionary"},
    {"search.grid", "search.policy.grid"},
    {"search.groups", "search.groups.groups"},
    {"search.random", "search.policy.random"},
    {"search.replay_function", "search.policy.replay_function"},
    {"search.replay_trace", "search.policy.replay_trace"},
    {"search.steps", "search.policy.steps"},
    {"search.whole", "search.groups.whole"},
};

/* Puts what a file is called now in the place of its name on the stack. */
static const char *name_of_moved(lua_State *L, int index) {
  const char *name = bind_check_text(L, index);
  for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
    size_t length = strlen(moved[i][0]);
    bool begins = strchr("._", moved[i][0][length - 1]);
    if (strncmp(name, moved[i][0], length) != 0 || (!begins && name[length])) continue;
    lua_pushfstring(L, "%s%s", moved[i][1], name + length);
    lua_replace(L, index);
    return lua_tostring(L, index);
  }
  return name;
}

/* The program's own Lua files are of its version: lua/lib/version.lua gives theirs; files of old have none. */
static void check_version(lua_State *L, const char *first) {
  char file[PATH_MAX], folder[PATH_MAX];
  if (access(first, R_OK)) return; /* loading it says what is missing */
  script_path("lua/lib/version.lua", file, sizeof file);
  script_path("", folder, sizeof folder);
  if (access(file, R_OK) == 0) {
    load_file(L, file, "lua.lib.version");
    lua_call(L, 0, 1);
  } else {
    lua_pushnil(L);
  }
  const char *theirs = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "another version";
  if (strcmp(theirs, MSCHED_VERSION))
    luaL_error(L,
               "this program is msched " MSCHED_VERSION ", and the Lua files in %s are of %s: install both again, or "
               "set MSCHED_LUA_PATH to the folder that has those of " MSCHED_VERSION,
               folder, theirs);
  lua_pop(L, 1);
}

/* require "msched.NAME" in a sandbox and out of it: a file of ours, loaded once a state. */
static int load_own(lua_State *L) {
  const char *name = name_of_moved(L, 1);
  luaL_argcheck(L, !strstr(name, "..") && *name != '/', 1, "a name such as \"rules.common\" is expected");
  if (luaL_getsubtable(L, LUA_REGISTRYINDEX, "msched.loaded"), lua_getfield(L, -1, name) != LUA_TNIL) return 1;
  lua_pop(L, 1);
  char file[PATH_MAX];
  script_path(luaL_gsub(L, name, ".", "/"), file, sizeof file - sizeof ".lua");
  strcat(file, ".lua");
  lua_pop(L, 1);
  if (!strcmp(name, "lua.lib.msched")) check_version(L, file);
  load_file(L, file, name);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) lua_pop(L, 1), lua_pushboolean(L, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, name);
  return 1;
}

void script_push_own(lua_State *L, const char *name) {
  assert(name);
  lua_pushcfunction(L, load_own);
  lua_pushstring(L, name);
  lua_call(L, 1, 1);
}

static int close_folder(lua_State *L) {
  DIR **folder = lua_touserdata(L, 1);
  if (*folder) closedir(*folder);
  *folder = NULL;
  return 0;
}

/* names_in(folder): of its files and folders, as the system lists them; none where it cannot be read. */
static int names_in(lua_State *L) {
  const char *path = bind_check_text(L, 1);
  DIR **folder = bind_hold(L, sizeof *folder, "msched.folder", close_folder);
  *folder = opendir(path);
  lua_newtable(L);
  for (struct dirent *entry; *folder && (entry = readdir(*folder));) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    lua_pushstring(L, entry->d_name);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  if (*folder) closedir(*folder);
  *folder = NULL;
  return 1;
}

/* Members that scripts may know by the names that they had. */
static const char *const renamed[][2] = {{"box", "sandbox"},
                                         {"draft", "estimator"},
                                         {"drafts", "proposals"},
                                         {"heeding", "interruptible"},
                                         {"recalled", "memoized"}};

static int searched_msched(lua_State *L) { return lua_getglobal(L, "msched"), 1; }

/* Texts of functions, traces and JSON are made and read by printf and strtod, which a host's locale changes. */
static void refuse_decimal_commas(lua_State *L) {
  const char *point = localeconv()->decimal_point;
  if (strcmp(point, ".") != 0)
    luaL_error(L,
               "the locale of this process has the decimal point `%s`; call setlocale(LC_NUMERIC, \"C\"), in Lua "
               "os.setlocale(\"C\", \"numeric\"), before msched is loaded",
               point);
}

int luaopen_msched(lua_State *L) {
  refuse_decimal_commas(L);
  lua_newtable(L);
  bind_functions(L);
  bind_specialize(L);
  bind_options(L);
  bind_intrinsic(L);
  bind_traces(L);
  bind_methods(L);
  bind_schedules(L);
  bind_targets(L);
  bind_streams(L);
  bind_parts(L);
  bind_visible(L);
  bind_rates(L);
  if (!script_of(L)->limits.sandbox) { /* a rule runs no code, starts no process and opens no store */
    bind_arrays(L);
    bind_kernels(L);
    bind_calls(L);
    bind_sequences(L);
    bind_vendors(L);
    bind_workers(L);
    bind_searching(L);
    bind_models(L);
    bind_estimators(L);
    bind_measurers(L);
    bind_stores(L);
    bind_redis(L);
    bind_files(L);
    bind_formats(L);
    bind_sandboxes(L);
    net_bind(L);
    lua_pushcfunction(L, names_in);
    lua_setfield(L, -2, "names_in");
  }
  static const luaL_Reg functions[] = {{"load", load_own}, {"where", script_where}, {"type", type_of}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
  bind_old_names(L, renamed, sizeof renamed / sizeof *renamed);
  lua_setglobal(L, "msched");
  script_push_own(L, "lua.lib.msched"); /* adds what is written in Lua: te, ops, rules, tune */
  lua_pop(L, 1);
  lua_getglobal(L, "msched");
  return 1;
}

static int open_state(lua_State *L) {
  if (script_of(L)->limits.sandbox) {
    sandbox_open(L);
    script_open_pcall(L);
  } else {
    luaL_openlibs(L);
    format_open(L);
    ends_open(L);
    commands_open(L);
    confine_open(L);
    sandbox_bound(L);
    script_open_pcall(L);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, searched_msched);
    lua_setfield(L, -2, "msched");
    lua_pop(L, 2);
  }
  return luaopen_msched(L);
}

/* A state that is given no limit has most of what the process may have: a script that asks for all gets an error, where
 * the system would end some process. */
static size_t most_of_memory(void) { return jit_usable_memory() / 4 * 3; }

lua_State *script_new(const struct script_limits *limits, ms_error *err) {
  struct script *s = calloc(1, sizeof *s);
  lua_State *L = s ? lua_newstate(script_allocate, s) : NULL;
  if (!L) {
    if (s) cells_clear(&s->cells);
    free(s);
    ms_fail(err, MS_SCRIPT, "no memory for a Lua state");
    return NULL;
  }
  if (limits) s->limits = *limits;
  if (!s->limits.bytes) s->limits.bytes = most_of_memory();
  lua_pushcfunction(L, open_state);
  if (!script_try(L, 0, 0, err)) {
    script_close(L);
    return NULL;
  }
  lua_sethook(L, script_watch, LUA_MASKCOUNT, SCRIPT_HOOK_PERIOD);
  return L;
}

void script_close(lua_State *L) {
  if (!L) return;
  struct script *s = script_of(L);
  sandbox_tell_left_out(s);
  s->closing = true;
  lua_close(L);
  cells_clear(&s->cells);
  memo_free(s->memo);
  free(s);
}

bool script_run_file(lua_State *L, const char *path, int arguments, int results, ms_error *err) {
  assert(path && lua_gettop(L) >= arguments);
  if (!format_load_script(L, strcmp(path, "-") != 0 ? path : NULL)) {
    ms_fail(err, MS_SCRIPT, "%s", lua_tostring(L, -1));
    lua_pop(L, 1 + arguments);
    return false;
  }
  lua_insert(L, -1 - arguments);
  return script_call(L, arguments, results, err);
}

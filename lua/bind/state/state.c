/* Lua states: made, limited, interrupted. */
#include "state.h"
#include "format.h"
#include "lua/bind/bind.h"
#include "lua/bind/search/bind_search.h"
#include "lua/net/model/read.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

/* Flags of states whose calls have a clock. */
enum { MOST_ARMED = 16 };
static volatile int *volatile armed[MOST_ARMED];

/* Asks every state to stop at its next step; async-signal-safe. */
static void interrupt(void) {
  interrupted = 1;
  for (int i = 0; i < MOST_ARMED; i++) {
    volatile int *flag = armed[i];
    if (flag) *flag = 1;
  }
  bind_search_interrupt();
  jit_stop_calls();
}

/* Wrappers send one stop twice: timeout(1) signals its child, then the group that the child is in. */
enum { SAME_STOP_NS = 250000000 };
static int64_t first_stop_ns; /* written by the handlers alone, which block one another */

static int64_t clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static void end_by(int number) {
  jit_end_temporaries();
  signal(number, SIG_DFL);
  raise(number);
}

/* Some calls of Lua's library and of ours look at nothing until they are done. */
enum { MOST_INTERRUPTS = 3 };
static volatile sig_atomic_t interrupts; /* of what runs now */
static int64_t last_interrupt_ns;
static const char last_warning[] = "msched: this does not stop; one more interrupt ends the session\n";
static void on_interrupt(int number) {
  int64_t now_ns = clock_ns();
  bool same = now_ns - last_interrupt_ns < SAME_STOP_NS;
  interrupt();
  last_interrupt_ns = now_ns;
  if (same) return;
  interrupts++;
  if (interrupts == MOST_INTERRUPTS - 1 && write(STDERR_FILENO, last_warning, sizeof last_warning - 1) < 0) return;
  if (interrupts >= MOST_INTERRUPTS) end_by(number);
}
/* What should have ended by now says how it ends. */
static unsigned slow_stop; /* seconds; 0: nothing is said */
static const char slow_warning[] = "msched: not stopped yet; one more interrupt ends it at once\n";
static void on_slow_stop(int number) {
  (void)number;
  if (interrupted && write(STDERR_FILENO, slow_warning, sizeof slow_warning - 1) < 0) return;
}
static void on_interrupt_or_end(int number) {
  if (!first_stop_ns) first_stop_ns = clock_ns(), alarm(slow_stop);
  interrupt();
  if (clock_ns() - first_stop_ns < SAME_STOP_NS) return;
  end_by(number);
}
void script_catch(int number, bool kills) {
  assert(number > 0);
  struct sigaction action = {.sa_handler = kills ? on_interrupt_or_end : on_interrupt};
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGTERM);
  sigaddset(&action.sa_mask, JIT_STOP_SIGNAL); /* it leaves a kernel, not this handler */
  sigaction(number, &action, NULL); /* where a sandbox refuses it, the signal ends the program, as it does by default */
}
void script_say_when_slow(unsigned seconds) {
  struct sigaction action = {.sa_handler = on_slow_stop, .sa_flags = SA_RESTART};
  if (!sigaction(SIGALRM, &action, NULL)) slow_stop = seconds;
}
void script_resume(void) {
  interrupted = interrupts = 0;
  bind_search_resume();
}
bool script_interrupted(void) { return interrupted != 0; }

double script_now(void) { return 1e-9 * (double)clock_ns(); }

static void *allocate(void *data, void *at, size_t old_size, size_t size) {
  struct script *s = data;
  size_t old = at ? old_size : 0;
  assert(s->used >= old);
  if (s->limits.bytes && size > old && s->used - old + size > s->limits.bytes) return NULL;
  void *to = cells_resize(&s->cells, at, old, size);
  if (to || !size) s->used += size - old;
  return to;
}

/* A state that another program made has no limits, and is interrupted as that program likes. */
struct script *script_of(lua_State *L) {
  static _Thread_local struct script foreign;
  void *data;
  return lua_getallocf(L, &data) == allocate ? data : &foreign;
}

/* Once it is late, the hook raises at every instruction: a pcall that swallows the error gains nothing, since the next
 * instruction after it raises again. */
void script_watch(lua_State *L, lua_Debug *unused) {
  (void)unused;
  struct script *s = script_of(L);
  lua_sethook(L, script_watch, LUA_MASKCOUNT, script_must_stop(s) ? 1 : SCRIPT_HOOK_PERIOD);
  script_stop_here(L);
}

bool script_must_stop(const struct script *s) { return (interrupted && !s->limits.patient) || script_is_late(s); }

void script_stop_here(lua_State *L) {
  const struct script *s = script_of(L);
  if (interrupted && !s->limits.patient) luaL_error(L, "interrupted");
  if (script_is_late(s)) luaL_error(L, "it runs longer than it may");
}

void script_look(lua_State *L) {
  enum { EVERY = 16 };
  struct script *s = script_of(L);
  bool looks = ++s->looks % EVERY == 0; /* the clock costs something */
  if ((interrupted && !s->limits.patient) || (looks && script_must_stop(s)))
    lua_sethook(L, script_watch, LUA_MASKCOUNT, 1);
}

const char script_no_memory[] = "not enough memory"; /* as Lua says it */

/* Lua's collector knows of a schedule's userdata alone: where what they hold has grown by this much, and by as much as
 * half of all, what is dropped is collected. */
enum { MOST_UNCOLLECTED = 32 << 20 };

void script_charge(lua_State *L, size_t *charged, size_t bytes) {
  assert(charged);
  struct script *s = script_of(L);
  s->used = s->used - *charged + bytes;
  if (bytes > *charged) s->grown += bytes - *charged;
  *charged = bytes;
  bool full = s->limits.bytes && s->used > s->limits.bytes;
  if (!full && (s->grown < MOST_UNCOLLECTED || s->grown < s->used / 2)) return;
  lua_gc(L, LUA_GCCOLLECT);
  s->grown = 0;
  if (!s->limits.bytes || s->used <= s->limits.bytes) return;
  lua_pushstring(L, script_no_memory);
  lua_error(L);
}
void script_discharge(lua_State *L, size_t *charged) {
  assert(charged);
  script_of(L)->used -= *charged;
  *charged = 0;
}

/* An interrupt may come before the flag is known, or between two writes of it. */
static void set_flag(struct script *s) {
  s->stop = 0;
  if (interrupted || script_is_late(s)) s->stop = 1;
}

/* When the first clock of those that count all is over. */
static double alarm_time(const struct script *s) {
  double at = INFINITY;
  for (const struct script_clock *c = s->clock; c; c = c->outer)
    if (!c->own) at = fmin(at, c->next);
  return at;
}
static struct script_clock *own_clock(const struct script *s) {
  struct script_clock *c = s->clock;
  while (c && !c->follows) c = c->outer;
  return c;
}
static void note_followed(struct script *s) {
  struct script_clock *c = own_clock(s);
  if (c) c->followed = s->alarm != NULL;
}

bool script_arm(struct script *s) {
  if (s->armed) return false;
  for (int i = 0; i < MOST_ARMED && !s->armed; i++) s->armed = __sync_bool_compare_and_swap(&armed[i], NULL, &s->stop);
  if (!s->armed) return false;
  set_flag(s);
  s->alarm = script_alarm_new(alarm_time(s), own_clock(s), &s->stop);
  note_followed(s);
  return true;
}

void script_disarm(struct script *s) {
  assert(s->armed);
  script_alarm_free(s->alarm);
  for (int i = 0; i < MOST_ARMED; i++) __sync_bool_compare_and_swap(&armed[i], &s->stop, NULL);
  s->armed = false, s->alarm = NULL;
}

void script_follow_clock(struct script *s) {
  if (!s->armed) return;
  if (s->alarm) script_alarm_move(s->alarm, alarm_time(s), own_clock(s));
  note_followed(s);
  set_flag(s);
}

_Static_assert(sizeof(sig_atomic_t) == sizeof(int), "the interpreter reads it as an int");
const volatile int *script_stop_flag(lua_State *L) {
  struct script *s = script_of(L);
  return s->armed ? &s->stop : (const volatile int *)&interrupted;
}
const volatile int *bind_stop(lua_State *L) {
  if (script_of(L)->limits.patient) return NULL;
  if (interrupted) bind_refuse(L, "interrupted");
  return script_stop_flag(L);
}

/* ---- The module ---- */

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

/* where(): the place in the user's file that the call comes from, as "file:line: ", or "" if there is none. */
static int where(lua_State *L) {
  lua_Debug at;
  luaL_checkstack(L, 2, NULL);
  for (int level = 0; lua_getstack(L, level, &at); level++) {
    lua_getinfo(L, "Sl", &at);
    if (at.currentline <= 0 || script_is_own(&at)) continue;
    lua_pushfstring(L, "%s:%d: ", at.short_src, at.currentline);
    return 1;
  }
  lua_pushliteral(L, "");
  return 1;
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
  static const luaL_Reg functions[] = {{"load", load_own}, {"where", where}, {"type", type_of}, {NULL, NULL}};
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
  lua_State *L = s ? lua_newstate(allocate, s) : NULL;
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

/* ---- Calls ---- */

static int with_traceback(lua_State *L) {
  const char *message = lua_tostring(L, 1);
  if (!message) message = luaL_tolstring(L, 1, NULL);
  luaL_traceback(L, L, message, 1);
  return 1;
}

static int as_text(lua_State *L) { return luaL_tolstring(L, 1, NULL), 1; }

static bool call_handled(lua_State *L, lua_CFunction handler, int arguments, int results, ms_error *err) {
  int function = lua_gettop(L) - arguments;
  lua_pushcfunction(L, handler);
  lua_insert(L, function);
  int status = lua_pcall(L, arguments, results, function);
  lua_remove(L, function);
  if (status == LUA_OK) return true;
  const char *message = lua_tostring(L, -1);
  if (status == LUA_ERRMEM) message = "the script's memory limit is reached";
  ms_fail(err, MS_SCRIPT, "%s", message ? message : "error without a message");
  lua_pop(L, 1);
  return false;
}

bool script_call(lua_State *L, int arguments, int results, ms_error *err) {
  assert(arguments >= 0 && lua_gettop(L) > arguments);
  return call_handled(L, with_traceback, arguments, results, err);
}
bool script_try(lua_State *L, int arguments, int results, ms_error *err) {
  assert(arguments >= 0 && lua_gettop(L) > arguments);
  return call_handled(L, as_text, arguments, results, err);
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

/* ---- Small things that bindings share ---- */

void bind_type(lua_State *L, const char *name, const luaL_Reg *methods, const luaL_Reg *meta) {
  assert(name && methods);
  luaL_newmetatable(L, name);
  luaL_setfuncs(L, meta, 0);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "__metatable");
  lua_newtable(L);
  luaL_setfuncs(L, methods, 0);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
}

void bind_old_names(lua_State *L, const char *const names[][2], size_t count) {
  assert(lua_istable(L, -1));
  lua_newtable(L);
  lua_newtable(L);
  for (size_t i = 0; i < count; i++)
    if (lua_getfield(L, -3, names[i][1]) == LUA_TNIL)
      lua_pop(L, 1); /* a sandbox has fewer members */
    else
      lua_setfield(L, -2, names[i][0]);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}

void *bind_hold(lua_State *L, size_t size, const char *name, lua_CFunction collect) {
  assert(size > 0 && collect);
  void *held = memset(lua_newuserdatauv(L, size, 0), 0, size);
  if (luaL_newmetatable(L, name)) {
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return held;
}

static void push_message(lua_State *L, const ms_error *err) {
  where(L);
  if (err->instruction >= 0 && strncmp(err->message, "instruction ", 12) != 0)
    lua_pushfstring(L, "instruction %d: %s", err->instruction, err->message);
  else
    lua_pushstring(L, err->message);
  lua_concat(L, 2);
}

int bind_raise(lua_State *L, const ms_error *err) {
  assert(err && err->code != MS_OK);
  if (err->code == MS_RUN_STOPPED) return bind_refuse(L, "interrupted");
  push_message(L, err);
  return lua_error(L);
}

/* Errors are strings, so that scripts may search them; the last refusal is kept beside, to be recognized by its text.
 */
static const char refused_text, refused_code;

bool bind_is_misuse(enum ms_code code) {
  static const enum ms_code misuses[] = {MS_INVALID_ARGUMENT, MS_WRONG_OPERAND,       MS_STALE_HANDLE,
                                         MS_UNBALANCED,       MS_DRAW_IN_FOR,         MS_CANNOT_UNDO,
                                         MS_BAD_FORMULA,      MS_UNKNOWN_INSTRUCTION, MS_INTRINSIC_NOT_FOUND};
  for (size_t i = 0; i < sizeof misuses / sizeof *misuses; i++)
    if (misuses[i] == code) return true;
  return false;
}

int bind_raise_refused(lua_State *L, const ms_error *err) {
  assert(err && err->code != MS_OK);
  if (err->code == MS_RUN_STOPPED) return bind_raise(L, err);
  push_message(L, err);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &refused_text);
  lua_pushinteger(L, bind_is_misuse(err->code) ? MS_OK : err->code);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &refused_code);
  return lua_error(L);
}

enum ms_code bind_refused_code(lua_State *L, int at) {
  at = lua_absindex(L, at);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &refused_text);
  bool known = lua_type(L, -1) == LUA_TSTRING && lua_rawequal(L, -1, at);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &refused_code);
  enum ms_code code = known ? (enum ms_code)lua_tointeger(L, -1) : MS_OK;
  lua_pop(L, 2);
  return code;
}

int bind_refuse(lua_State *L, const char *format, ...) {
  assert(format);
  va_list args;
  where(L);
  va_start(args, format);
  lua_pushvfstring(L, format, args);
  va_end(args);
  lua_concat(L, 2);
  return lua_error(L);
}

/* Lua states as they run: limited, interrupted; what bindings share. */
#include "state.h"
#include "lua/bind/bind.h"

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static volatile bool stopped; /* the same, for measurers */

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
  stopped = true;
  jit_stop_calls();
}

/* Wrappers send one stop twice: timeout(1) signals its child, then the group that the child is in. */
enum { SAME_STOP_NS = 250000000 };
static int64_t first_stop_ns; /* written by the handlers alone, which block one another */

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
  int64_t now_ns = script_now_ns();
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
  if (!first_stop_ns) first_stop_ns = script_now_ns(), alarm(slow_stop);
  interrupt();
  if (script_now_ns() - first_stop_ns < SAME_STOP_NS) return;
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
  stopped = false;
}
bool script_interrupted(void) { return interrupted != 0; }
const volatile bool *script_stopped(void) { return &stopped; }

void *script_allocate(void *data, void *at, size_t old_size, size_t size) {
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
  return lua_getallocf(L, &data) == script_allocate ? data : &foreign;
}

/* Once it is late, the hook raises at every instruction: a pcall that swallows the error gains nothing, since the next
 * instruction after it raises again. Lua tells each call below of a hook that is set: only one that changes is. */
void script_watch(lua_State *L, lua_Debug *unused) {
  (void)unused;
  int period = script_must_stop(script_of(L)) ? 1 : SCRIPT_HOOK_PERIOD;
  if (lua_gethookcount(L) != period) lua_sethook(L, script_watch, LUA_MASKCOUNT, period);
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

/* The place in the user's file that the call comes from, as "file:line: ", or "" if there is none. */
int script_where(lua_State *L) {
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

static void push_message(lua_State *L, const ms_error *err) {
  script_where(L);
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
  script_where(L);
  va_start(args, format);
  lua_pushvfstring(L, format, args);
  va_end(args);
  lua_concat(L, 2);
  return lua_error(L);
}

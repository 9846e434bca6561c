/* Calls of rules, postprocessors and mutators: stopped when they are late, and named when they fail. */
#include "lua/bind/bind.h"
#include "state.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

/* The line of the innermost frame in the file of the part, or 0. Lua counts the levels to each frame: of hundreds of
 * thousands, as where the stack overflows, that would take seconds. */
static int line_in(lua_State *L, const char *source) {
  enum { MOST_LEVELS = 1000 };
  lua_Debug at;
  for (int level = 0; level < MOST_LEVELS && lua_getstack(L, level, &at); level++)
    if (lua_getinfo(L, "Sl", &at) && !strcmp(at.source, source)) return at.currentline;
  return 0;
}

/* Whether the function is written in one of our own files. */
static bool is_shipped(lua_State *L, int function) {
  lua_Debug at;
  lua_pushvalue(L, function);
  lua_getinfo(L, ">S", &at);
  return script_is_own(&at);
}

struct part { /* what is called: a rule, its name and where its function begins */
  const char *kind, *name;
  lua_Debug at;
};

static struct part part_of(lua_State *L, int kind, int table) {
  struct part p = {.kind = lua_tostring(L, kind), .name = "?"};
  if (lua_getfield(L, table, "name") == LUA_TSTRING) p.name = lua_tostring(L, -1); /* the table keeps it */
  lua_getfield(L, table, "apply");
  lua_getinfo(L, ">S", &p.at);
  lua_pop(L, 1);
  return p;
}

static const char *advice(const struct part *p) {
  return script_is_own(&p->at) ? "it cannot open the space of this function" : "mend it, or leave it out";
}

/* The part by its name and its place; a file's text as a whole is on no line. */
static void name_part(const struct part *p, char *out, size_t size) {
  if (p->at.linedefined > 0)
    snprintf(out, size, "%s `%s` (%s:%d)", p->kind, p->name, p->at.short_src, p->at.linedefined);
  else
    snprintf(out, size, "%s `%s`", p->kind, p->name);
}

/* The text of the error at index 1, on the stack; of one that has none, as a table that a script raises, what it is:
 * the address of a table would be another each time. */
static const char *text_of_error(lua_State *L) {
  if (lua_isstring(L, 1) || luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL) return luaL_tolstring(L, 1, NULL);
  if (lua_isnil(L, 1)) return lua_pushliteral(L, "an error without a message");
  return lua_pushfstring(L, "an error that is a %s, without a message", luaL_typename(L, 1));
}

/* Behind the place in one of our own files that a message begins with: users see theirs. */
static const char *without_own_place(const char *message) {
  int length = 0;
  if (sscanf(message, "msched/%*[a-z_A-Z0-9.]:%*d: %n", &length) < 0 || !length) return message;
  return message + length;
}

/* Where the error is raised, the stack still has the line. Upvalues: kind, part. */
static int explain(lua_State *L) {
  struct script *s = script_of(L);
  lua_settop(L, 1);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, lua_upvalueindex(2));
  struct part p = part_of(L, 2, 3);
  int line = line_in(L, p.at.source);
  char head[512];
  name_part(&p, head, sizeof head);
  if (script_interrupted()) return lua_pushliteral(L, "interrupted"), 1;
  const struct script_clock *late = script_late_clock(s);
  if (late) {
    size_t at = strlen(head);
    snprintf(head + at, sizeof head - at, " ran longer than %g seconds", late->seconds);
    if (line)
      lua_pushfstring(L, "%s, and was at line %d; make it end sooner", head, line);
    else /* it has ended */
      lua_pushfstring(L, "%s; make it end sooner", head);
    if (s->limits.fixed) return 1;
    lua_pushfstring(L, ", or allow more with --%s-timeout", late->of_policy ? "policy" : "rule");
    lua_concat(L, 2);
    return 1;
  }
  if (bind_refused_code(L, 1)) return lua_settop(L, 1), 1; /* known by its text */
  enum { MOST_SHOWN = 1000 };
  const char *message = text_of_error(L);
  if (!strcmp(message, script_no_memory)) return 1;
  if (!script_is_own(&p.at)) message = without_own_place(message);
  char place[300];
  int length = snprintf(place, sizeof place, "%s:%d: ", p.at.short_src, line);
  while (!strncmp(message, place, (size_t)length) && !strncmp(message + length, place, (size_t)length))
    message += length; /* each coroutine of nested ones has put it there */
  size_t bytes = strlen(message);
  if (bytes > MOST_SHOWN) {
    lua_pushlstring(L, message, MOST_SHOWN);
    message = lua_pushfstring(L, "%s… (%I bytes more)", lua_tostring(L, -1), (LUAI_UACINT)(bytes - MOST_SHOWN));
  }
  if (line && !strstr(message, place))
    lua_pushfstring(L, "%s: %s%s; %s", head, place, message, advice(&p));
  else
    lua_pushfstring(L, "%s: %s; %s", head, message, advice(&p));
  return 1;
}

static void explain_memory(lua_State *L) {
  struct script *s = script_of(L);
  size_t most = s->limits.bytes;
  s->limits.bytes = 0; /* what the script keeps may leave no room for the message */
  struct part p = part_of(L, 1, 2);
  char head[512];
  name_part(&p, head, sizeof head);
  lua_pushfstring(L, "%s needs more than %I MiB of memory; keep fewer schedules and tables at a time", head,
                  (LUAI_UACINT)(most >> 20));
  s->limits.bytes = most;
}

/* Our hook is there during a call; after it the one of before, which in a state of another program may be its own. It
 * costs something at each step of Lua: what is shipped ends on its own, and is looked at where it calls instructions
 * and queries (script_look). */
struct hook {
  lua_Hook function;
  int mask, count;
};
static struct hook take_hook(lua_State *L, bool shipped) {
  struct hook before = {lua_gethook(L), lua_gethookmask(L), lua_gethookcount(L)};
  if (before.function == script_watch) before.count = SCRIPT_HOOK_PERIOD; /* it is 1 where something is late */
  if (shipped)
    lua_sethook(L, NULL, 0, 0);
  else
    lua_sethook(L, script_watch, LUA_MASKCOUNT, SCRIPT_HOOK_PERIOD);
  return before;
}
static void give_hook(lua_State *L, struct hook before) { lua_sethook(L, before.function, before.mask, before.count); }

/* lua_pcall with our hook, which ends it when it is late or the user interrupts, also in a state that is patient. */
static int call_watched(lua_State *L, int arguments, int results, int handler, bool shipped) {
  assert(arguments >= 0 && lua_gettop(L) > arguments);
  struct script *s = script_of(L);
  bool patient = s->limits.patient;
  s->limits.patient = false;
  struct hook before = take_hook(L, shipped);
  int status = lua_pcall(L, arguments, results, handler);
  give_hook(L, before);
  s->limits.patient = patient;
  return status;
}

/* The user's handler of an error; none where the error is that the call must end: Lua calls no hook in a handler of
 * what a hook raised, so that it could not be ended. Upvalue: the handler. */
static int handle(lua_State *L) {
  if (script_must_stop(script_of(L))) return 1;
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

/* Lua looks at each call below, wherever an error is caught: one that is to end thousands of calls, each of which
 * catches it, would take minutes. */
enum { MOST_CALLS_TO_CATCH = 5000 };
static void check_depth(lua_State *L) {
  lua_Debug at;
  if (lua_getstack(L, MOST_CALLS_TO_CATCH, &at))
    luaL_error(L, "stack overflow: errors are caught within %d calls at most", MOST_CALLS_TO_CATCH);
}

static int end_protected(lua_State *L, int status, lua_KContext behind) {
  if (status == LUA_OK || status == LUA_YIELD) return lua_gettop(L) - (int)behind;
  lua_pushboolean(L, false);
  lua_insert(L, -2);
  return 2;
}

/* pcall(f, arguments…), as Lua's */
static int protected_call(lua_State *L) {
  luaL_checkany(L, 1);
  check_depth(L);
  lua_pushboolean(L, true);
  lua_insert(L, 1);
  return end_protected(L, lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, end_protected), 0);
}

/* xpcall(f, handler, arguments…), as Lua's */
static int handled_call(lua_State *L) {
  int count = lua_gettop(L);
  luaL_checktype(L, 2, LUA_TFUNCTION);
  check_depth(L);
  lua_pushvalue(L, 2);
  lua_pushcclosure(L, handle, 1);
  lua_replace(L, 2);
  lua_pushboolean(L, true);
  lua_pushvalue(L, 1);
  lua_rotate(L, 3, 2); /* true and f, before the arguments */
  return end_protected(L, lua_pcallk(L, count - 2, LUA_MULTRET, 2, 2, end_protected), 2);
}

void script_open_pcall(lua_State *L) {
  assert(L);
  lua_register(L, "pcall", protected_call);
  lua_register(L, "xpcall", handled_call);
}

/* A user's model has as long as the policy that calls it, which is not charged for it: it may go on where the model
 * took too long. */
static void start_model(struct script *s, struct script_clock *c) {
  const struct script_clock *policy = s->clock;
  bool as_policy = policy && policy->own && policy->seconds < s->limits.seconds;
  script_start_clock(s, c, as_policy ? policy->seconds : s->limits.seconds, true);
  c->of_policy = as_policy, c->follows = true;
  script_pause_outer(s, c);
  script_follow_clock(s);
}
static void stop_model(struct script *s, struct script_clock *c, struct script_clock *outer) {
  script_resume_outer(s, c, outer);
  script_stop_clock(s, c);
  script_follow_clock(s);
}

/* Whether the user chose that such a part is left out where it fails. */
static bool is_skipped(lua_State *L, const char *kind) {
  static const char *const kinds[] = {"rule", "postprocessor", "mutator"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kinds[i], kind)) return script_of(L)->limits.skips && !script_interrupted();
  return false;
}

/* limited(kind, part, arguments…): true and what part.apply(arguments…) gives; false, the code and the message where an
 * instruction in it was refused. It is stopped when it is late or the user interrupts; any other error names the part,
 * its place and what to do, and is raised, or given as the refusal `skipped` where the user chose that. The clock of a
 * call around it runs on. */
static int limited(lua_State *L) {
  struct script *s = script_of(L);
  luaL_checkstring(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  if (lua_getfield(L, 2, "apply") != LUA_TFUNCTION) return luaL_error(L, "a part has no function `apply`");
  bool shipped = is_shipped(L, -1);
  lua_insert(L, 3);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_pushcclosure(L, explain, 2);
  lua_insert(L, 3);
  bool model = !strcmp(lua_tostring(L, 1), "model");
  struct script_clock clock, *outer = s->clock;
  if (model)
    start_model(s, &clock);
  else
    script_start_clock(s, &clock, s->limits.seconds, true);
  bool arms = model && s->clock && script_arm(s);
  int status = call_watched(L, lua_gettop(L) - 4, LUA_MULTRET, 3, shipped);
  if (status == LUA_OK && !shipped && script_is_late(s)) { /* it has caught the error that was to end it */
    lua_settop(L, 3);
    lua_pushvalue(L, 3);
    lua_pushliteral(L, "late");
    status = lua_pcall(L, 1, 1, 0) == LUA_ERRMEM ? LUA_ERRMEM : LUA_ERRRUN;
  }
  if (arms) script_disarm(s);
  if (model)
    stop_model(s, &clock, outer);
  else
    script_stop_clock(s, &clock);
  if (status == LUA_OK) {
    lua_pushboolean(L, true);
    lua_replace(L, 3);
    return lua_gettop(L) - 2;
  }
  enum ms_code refused = bind_refused_code(L, -1);
  if (!refused) {
    if (status == LUA_ERRMEM || !strcmp(luaL_tolstring(L, -1, NULL), script_no_memory)) explain_memory(L);
    if (!is_skipped(L, lua_tostring(L, 1))) return lua_error(L);
    refused = MS_SKIPPED;
  }
  lua_pushboolean(L, false);
  lua_pushstring(L, ms_code_name(refused));
  lua_pushvalue(L, -3);
  return 3;
}

/* interruptible(f, arguments…): as pcall, but an interrupt ends it, where the state is patient otherwise. */
static int interruptible(lua_State *L) {
  luaL_checkany(L, 1);
  int status = call_watched(L, lua_gettop(L) - 1, LUA_MULTRET, 0, false);
  lua_pushboolean(L, status == LUA_OK);
  lua_insert(L, 1);
  return lua_gettop(L);
}

/* What a policy writes to a command that has ended does not end the program, which its own output's reader may do. */
static sigset_t hold_pipes(void) {
  sigset_t pipes, before;
  sigemptyset(&pipes), sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, &before);
  return before;
}
static void release_pipes(const sigset_t *before) {
  sigset_t pipes;
  sigemptyset(&pipes), sigaddset(&pipes, SIGPIPE);
  while (!sigismember(before, SIGPIPE) && sigtimedwait(&pipes, NULL, &(struct timespec){0}) > 0) {}
  pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Calls what is from the index 2 on under the state's clock, as msched.interruptible; loops in C end too. Gives the
 * clock that ended it, or NULL, and puts what within gives in the place of index 1. */
static const struct script_clock *call_within(lua_State *L, struct script *s) {
  bool arms = s->clock && script_arm(s);
  script_follow_clock(s);
  sigset_t signals = hold_pipes();
  int status = call_watched(L, lua_gettop(L) - 2, LUA_MULTRET, 0, false);
  release_pipes(&signals);
  const struct script_clock *late = script_late_clock(s);
  if (arms) script_disarm(s);
  if (late)
    lua_pushnil(L);
  else
    lua_pushboolean(L, status == LUA_OK);
  lua_replace(L, 1);
  return late;
}

/* within(seconds, f, arguments…): as msched.interruptible, and it is ended when it takes longer, loops in C too: then
 * nil and a message. */
static int within(lua_State *L) {
  double seconds = luaL_checknumber(L, 1);
  luaL_checkany(L, 2);
  struct script *s = script_of(L);
  struct script_clock clock;
  script_start_clock(s, &clock, seconds, false);
  call_within(L, s);
  script_stop_clock(s, &clock);
  script_follow_clock(s);
  return lua_gettop(L);
}

/* policy_within(own, most, f, arguments…): as within(most, f, arguments…), and it has `own` seconds of what it takes
 * itself: where it took more, "own" stands for nil. */
static int policy_within(lua_State *L) {
  double own = luaL_checknumber(L, 1), most = luaL_checknumber(L, 2);
  luaL_checkany(L, 3);
  lua_remove(L, 1);
  struct script *s = script_of(L);
  struct script_clock run, policy;
  script_start_clock(s, &run, most, false);
  script_start_clock(s, &policy, own, true);
  policy.of_policy = policy.follows = true;
  bool late = call_within(L, s) == &policy;
  script_stop_clock(s, &policy);
  script_stop_clock(s, &run);
  script_follow_clock(s);
  if (late) {
    lua_pushliteral(L, "own");
    lua_replace(L, 1);
  }
  return lua_gettop(L);
}

/* code_of(message): the code of the instruction's refusal that pcall gave as `message`; nil: a mistake in the script.
 */
static int code_of(lua_State *L) {
  luaL_checkany(L, 1);
  enum ms_code code = bind_refused_code(L, 1);
  if (!code) return 0;
  lua_pushstring(L, ms_code_name(code));
  return 1;
}

/* rule_timeout(seconds): of each limited call in a state that has no limit of its own. */
static int rule_timeout(lua_State *L) {
  script_of(L)->limits.seconds = luaL_checknumber(L, 1);
  return 0;
}

/* skip_failing(whether): parts that fail are left out where they do, in a state that has no limits of its own. */
static int skip_failing(lua_State *L) {
  script_of(L)->limits.skips = lua_toboolean(L, 1);
  return 0;
}

static int skips_failing(lua_State *L) {
  lua_pushboolean(L, script_of(L)->limits.skips);
  return 1;
}

void bind_parts(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg all[] = {
      {"limited", limited}, {"code_of", code_of}, {"skips_failing", skips_failing}, {NULL, NULL}};
  static const luaL_Reg own[] = {{"skip_failing", skip_failing},   {"rule_timeout", rule_timeout},
                                 {"interruptible", interruptible}, {"within", within},
                                 {"policy_within", policy_within}, {NULL, NULL}};
  luaL_setfuncs(L, all, 0);
  if (!script_of(L)->limits.sandbox) luaL_setfuncs(L, own, 0); /* a sandbox does not choose its limits */
}

/* Measurers in Lua: candidates go in, results come out in order. */
#include "bind_search.h"
#include "lua/bind/bind.h"

#include <stdlib.h>

#define BOUND_MEASURER "msched.measurer"

/* A measurer's user values: how many tasks it has, and the number of finalists that are timed again. */
enum { TASKS = 1, FINALISTS };

static struct jit_measurer **check_measurer(lua_State *L) { return luaL_checkudata(L, 1, BOUND_MEASURER); }

static double seconds(lua_State *L, const char *name, double otherwise) {
  if (!lua_istable(L, 1)) return otherwise;
  lua_getfield(L, 1, name);
  double given = luaL_optnumber(L, -1, otherwise);
  lua_pop(L, 1);
  return given;
}

/* measurer({target =, builders =, check_best_only =, fast_math =, run_timeout =, reference_timeout =, patient =}):
 * timeouts in seconds; patient: no candidate is ended for being slow */
static int new_measurer(lua_State *L) {
  struct jit_measurer **m = lua_newuserdatauv(L, sizeof *m, FINALISTS);
  *m = NULL;
  luaL_setmetatable(L, BOUND_MEASURER);
  struct jit_target target;
  ms_error err = {.instruction = -1};
  if (!jit_target_parse(bind_option_text(L, 1, "target", "native"), &target, &err)) return bind_raise(L, &err);
  struct jit_measurer_options options = {.stop = script_stopped(),
                                         .builders = (uint32_t)bind_option_int(L, 1, "builders", 0),
                                         .censor_factor = bind_option_bool(L, 1, "patient", false) ? -1 : 0,
                                         .run_timeout = bind_option_bool(L, 1, "patient", false) ? 60 : 0,
                                         .check_best_only = bind_option_bool(L, 1, "check_best_only", false),
                                         .code = {.no_fast_math = !bind_option_bool(L, 1, "fast_math", true)}};
  options.run_timeout = seconds(L, "run_timeout", options.run_timeout);
  options.reference_timeout = seconds(L, "reference_timeout", 0);
  *m = jit_measurer_new(&target, &options, &err);
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

/* measurer:add(function [, intrinsics]): the number of the task that it is from now on. intrinsics: a text of those
 * that its traces name besides the shipped, in the place of the state's. */
static int measurer_add(lua_State *L) {
  struct jit_measurer *m = open_measurer(L);
  const struct bound_function *f = bind_check_function(L, 2);
  const char *text = bind_opt_text(L, 3, NULL);
  ms_error err = {.instruction = -1};
  struct vm_intrinsics *own = text ? vm_read_intrinsics(text, "intrinsics", &err) : NULL;
  if (text && !own) return bind_raise(L, &err);
  uint32_t task = jit_measurer_add(m, f->ir, f->func, text ? own : bind_intrinsics(L));
  vm_intrinsics_free(own);
  lua_pushinteger(L, task);
  lua_pushinteger(L, (lua_Integer)task + 1);
  lua_setiuservalue(L, 1, TASKS);
  return 1;
}

static uint32_t check_task(lua_State *L, int at) {
  lua_getiuservalue(L, 1, TASKS);
  lua_Integer count = lua_tointeger(L, -1), task = luaL_checkinteger(L, at);
  lua_pop(L, 1);
  luaL_argcheck(L, task >= 0 && task < count, at, "no task of the measurer's");
  return (uint32_t)task;
}

/* measurer:reference(task): true and a remark, "" mostly: what it computes is known; nil: not yet; false and a message:
 * it cannot be run */
static int measurer_reference(lua_State *L) {
  struct jit_measurer *m = open_measurer(L);
  ms_error err = {.instruction = -1};
  int known = jit_measurer_reference(m, check_task(L, 2), &err);
  if (!known) return 0;
  lua_pushboolean(L, known > 0);
  lua_pushstring(L, known > 0 ? jit_measurer_remark(m, check_task(L, 2)) : err.message);
  return 2;
}

/* measurer:submit(task, id, trace) */
static int measurer_submit(lua_State *L) {
  struct jit_measurer *m = open_measurer(L);
  uint32_t task = check_task(L, 2);
  uint64_t id = (uint64_t)luaL_checkinteger(L, 3);
  size_t bytes;
  void *binary = vm_write_binary(bind_check_trace(L, 4), &bytes);
  ms_error err = {.instruction = -1};
  bool ok = jit_measurer_submit(m, task, id, binary, bytes, &err);
  free(binary);
  return ok ? 0 : bind_raise(L, &err);
}

/* Facts of a GPU and the code's resources; unknown ones are absent; nil: all are. */
static void push_device(lua_State *L, const struct jit_result *r) {
  const struct jit_taken *t = &r->taken;
  const struct jit_ran_on *on = &r->ran_on;
  if (!t->kernels && !*on->name) return lua_pushnil(L);
  lua_newtable(L);
  if (t->kernels) {
    lua_pushinteger(L, t->kernels), lua_setfield(L, -2, "kernels");
    lua_pushinteger(L, t->threads), lua_setfield(L, -2, "threads");
    lua_pushinteger(L, t->registers), lua_setfield(L, -2, "registers");
    lua_pushinteger(L, t->spilled_bytes), lua_setfield(L, -2, "spilled_bytes");
    lua_pushinteger(L, t->stack_bytes), lua_setfield(L, -2, "stack_bytes");
    lua_pushinteger(L, t->shared_bytes), lua_setfield(L, -2, "shared_bytes");
  }
  if (*on->name) lua_pushstring(L, on->name), lua_setfield(L, -2, "name");
  if (on->driver) lua_pushinteger(L, on->driver), lua_setfield(L, -2, "driver");
  if (r->timing.clock > 0) lua_pushnumber(L, r->timing.clock), lua_setfield(L, -2, "timing_clock");
  if (r->timing.raw > 0) lua_pushnumber(L, r->timing.raw), lua_setfield(L, -2, "raw_seconds");
  if (*on->uncaptured) lua_pushstring(L, on->uncaptured), lua_setfield(L, -2, "uncaptured");
  if (on->others) lua_pushinteger(L, on->others), lua_setfield(L, -2, "others");
  if (on->others_bytes) lua_pushinteger(L, (lua_Integer)on->others_bytes), lua_setfield(L, -2, "others_bytes");
  if (on->memory_left) lua_pushinteger(L, (lua_Integer)on->memory_left), lua_setfield(L, -2, "memory_left");
  if (on->clocks.processors <= 0) return;
  lua_pushnumber(L, on->clocks.processors), lua_setfield(L, -2, "clock");
  lua_pushnumber(L, on->clocks.memory), lua_setfield(L, -2, "memory_clock");
  lua_pushboolean(L, on->clocks.slowed), lua_setfield(L, -2, "slowed");
}

/* measurer:next(wait): nil, or {task, id, hash, outcome, seconds, low, high, runs, busy, repeated, build_seconds,
 * check_seconds, time_seconds, reason, device} */
static int measurer_next(lua_State *L) {
  struct jit_result r;
  char hash[20];
  ms_error err = {.instruction = -1};
  int got = jit_measurer_next(open_measurer(L), luaL_optnumber(L, 2, 0.2), &r, &err);
  if (got < 0) return bind_raise(L, &err);
  if (!got) return 0;
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r.module_hash);
  lua_newtable(L);
  lua_pushinteger(L, r.task), lua_setfield(L, -2, "task");
  lua_pushinteger(L, (lua_Integer)r.id), lua_setfield(L, -2, "id");
  lua_pushstring(L, hash), lua_setfield(L, -2, "hash");
  lua_pushstring(L, jit_outcome_text(r.outcome)), lua_setfield(L, -2, "outcome");
  lua_pushboolean(L, r.outcome == JIT_MEASURED), lua_setfield(L, -2, "measured");
  lua_pushboolean(L, r.outcome == JIT_CENSORED), lua_setfield(L, -2, "censored");
  lua_pushboolean(L, r.outcome == JIT_NO_REFERENCE), lua_setfield(L, -2, "unmeasurable");
  lua_pushnumber(L, r.timing.seconds), lua_setfield(L, -2, "seconds");
  lua_pushnumber(L, r.timing.low), lua_setfield(L, -2, "low");
  lua_pushnumber(L, r.timing.high), lua_setfield(L, -2, "high");
  lua_pushinteger(L, r.timing.runs), lua_setfield(L, -2, "runs");
  lua_pushboolean(L, r.timing.busy), lua_setfield(L, -2, "busy");
  lua_pushboolean(L, r.repeated), lua_setfield(L, -2, "repeated");
  lua_pushnumber(L, r.build_seconds), lua_setfield(L, -2, "build_seconds");
  lua_pushnumber(L, r.check_seconds), lua_setfield(L, -2, "check_seconds");
  lua_pushnumber(L, r.time_seconds), lua_setfield(L, -2, "time_seconds");
  lua_pushstring(L, r.reason), lua_setfield(L, -2, "reason");
  push_device(L, &r), lua_setfield(L, -2, "device");
  return 1;
}

/* measurer:waiting(): what its processes wait for, in words, once each time that it takes longer; nil: nothing */
static int measurer_waiting(lua_State *L) {
  char text[400];
  if (!jit_measurer_waiting(open_measurer(L), text, sizeof text)) return 0;
  lua_pushstring(L, text);
  return 1;
}

/* measurer:remeasure(task, {trace…}, seconds): times them again, in turn */
static int measurer_remeasure(lua_State *L) {
  struct jit_measurer *m = open_measurer(L);
  uint32_t task = check_task(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  size_t count = lua_rawlen(L, 3);
  double seconds = luaL_checknumber(L, 4);
  if (count < 1 || count > JIT_MOST_FINALISTS)
    return luaL_error(L, "from 1 to %d traces are timed in turn, not %d", JIT_MOST_FINALISTS, (int)count);
  const struct vm_trace *checked[JIT_MOST_FINALISTS];
  struct jit_trace traces[JIT_MOST_FINALISTS];
  for (size_t i = 0; i < count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 3, (lua_Integer)i + 1);
    checked[i] = bind_check_trace(L, -1);
  }
  for (size_t i = 0; i < count; i++) traces[i].data = vm_write_binary(checked[i], &traces[i].bytes);
  ms_error err = {.instruction = -1};
  bool ok = jit_measurer_remeasure(m, task, traces, (uint32_t)count, seconds, &err);
  for (size_t i = 0; i < count; i++) free((void *)traces[i].data);
  lua_pushinteger(L, (lua_Integer)count);
  lua_setiuservalue(L, 1, FINALISTS);
  return ok ? 0 : bind_raise(L, &err);
}

/* measurer:remeasured(wait): nil: not yet; false: one of them could not be run; a table for each, as
 * bind_push_timing has it */
static int measurer_remeasured(lua_State *L) {
  struct jit_timing timings[JIT_MOST_FINALISTS];
  struct jit_measurer *m = open_measurer(L);
  lua_getiuservalue(L, 1, FINALISTS);
  lua_Integer count = lua_tointeger(L, -1);
  if (!count) return luaL_error(L, "no finalists were given to measurer:remeasure");
  assert(count > 0 && count <= JIT_MOST_FINALISTS);
  int got = jit_measurer_remeasured(m, luaL_optnumber(L, 2, 0.2), timings, NULL);
  if (!got) return 0;
  lua_pushnil(L);
  lua_setiuservalue(L, 1, FINALISTS);
  lua_pushboolean(L, false);
  if (got < 0) return 1;
  lua_newtable(L);
  for (lua_Integer i = 0; i < count; i++) {
    bind_push_timing(L, &timings[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

/* measurer:set_best(task, seconds) */
static int measurer_set_best(lua_State *L) {
  struct jit_measurer *m = open_measurer(L);
  uint32_t task = check_task(L, 2);
  jit_measurer_set_best(m, task, luaL_checknumber(L, 3));
  return 0;
}

/* measurer:close_task(task) */
static int measurer_close_task(lua_State *L) {
  struct jit_measurer *m = open_measurer(L);
  uint32_t task = check_task(L, 2);
  if (jit_measurer_waits_for(m, task)) return luaL_error(L, "results of the task are waited for still");
  if (jit_measurer_is_remeasuring(m)) return luaL_error(L, "candidates are being timed again");
  jit_measurer_close_task(m, task);
  return 0;
}

void bind_measurers(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"add", measurer_add},
                                     {"reference", measurer_reference},
                                     {"submit", measurer_submit},
                                     {"next", measurer_next},
                                     {"set_best", measurer_set_best},
                                     {"remeasure", measurer_remeasure},
                                     {"remeasured", measurer_remeasured},
                                     {"waiting", measurer_waiting},
                                     {"close_task", measurer_close_task},
                                     {"close", collect_measurer},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect_measurer}, {NULL, NULL}};
  bind_type(L, BOUND_MEASURER, methods, meta);
  lua_createtable(L, JIT_OUTCOMES, 0);
  for (enum jit_outcome o = 0; o < JIT_OUTCOMES; o++) lua_pushstring(L, jit_outcome_text(o)), lua_rawseti(L, -2, o + 1);
  lua_setfield(L, -2, "outcomes");
  luaL_getmetatable(L, BOUND_MEASURER);
  lua_getfield(L, -1, "__index");
  bind_old_names(L, (const char *const[][2]){{"contest", "remeasure"}, {"contested", "remeasured"}}, 2);
  lua_pop(L, 2);
  lua_pushcfunction(L, new_measurer);
  lua_setfield(L, -2, "measurer");
}

/* Calls that are ready to run, of kernels and of vendors' routines, and times of several in turn. */
#include "bind.h"

#include <stdlib.h>

#define BOUND_CALL "msched.call"
enum { MOST_IN_TURN = 16 };

static struct bound_call *check_call(lua_State *L, int at) { return luaL_checkudata(L, at, BOUND_CALL); }

struct bound_call *bind_new_call(lua_State *L, int kept) {
  assert(!lua_isnone(L, kept));
  lua_pushvalue(L, kept);
  struct bound_call *call = lua_newuserdatauv(L, sizeof *call, 1);
  *call = (struct bound_call){0};
  luaL_setmetatable(L, BOUND_CALL);
  lua_insert(L, -2);
  lua_setiuservalue(L, -2, 1);
  return call;
}

static int collect(lua_State *L) {
  struct bound_call *call = check_call(L, 1);
  if (call->data) call->release(call->data);
  call->data = NULL;
  return 0;
}

static bool attempt_kernel(void *call, ms_error *err) { return jit_call_run(call, err); }
static double sample_kernel(void *call, uint32_t calls) { return jit_call_sample(call, calls, NULL); }
static void turn_kernel(void *call, bool begins, struct jit_conditions *out) { jit_call_turn(call, begins, out); }
static void release_kernel(void *call) { jit_call_free(call); }

/* kernel:prepare(arguments…) */
static int prepare(lua_State *L) {
  int arguments = lua_gettop(L);
  lua_createtable(L, arguments, 0); /* the kernel and its arrays, which live as long as the call */
  for (int i = 1; i <= arguments; i++) lua_pushvalue(L, i), lua_rawseti(L, -2, i);
  struct bound_call *call = bind_new_call(L, arguments + 1);
  lua_insert(L, 1);
  lua_settop(L, arguments + 1);
  *call = (struct bound_call){.attempt = attempt_kernel,
                              .sample = sample_kernel,
                              .turn = turn_kernel,
                              .release = release_kernel,
                              .data = bind_call(L, 2, 3)};
  lua_settop(L, 1);
  return 1;
}

/* ---- Several in order ---- */

struct in_order {
  struct jit_call **calls;
  struct jit_lane *lanes;
  uint32_t call_count, lane_count, call_room, lane_room;
};

static bool attempt_all(void *data, ms_error *err) {
  const struct in_order *o = data;
  return jit_calls_run(o->calls, o->lanes, o->lane_count, err);
}
static void release_all(void *data) {
  struct in_order *o = data;
  free(o->calls);
  free(o->lanes);
  free(o);
}

/* Space for another element. */
static void *grown(void *at, uint32_t count, uint32_t *room, size_t bytes) {
  if (count < *room) return at;
  *room = count ? 2 * count : 8;
  void *more = realloc(at, *room * bytes);
  if (!more) abort();
  return more;
}

static void add_lane(struct in_order *o, bool beside) {
  o->lanes = grown(o->lanes, o->lane_count, &o->lane_room, sizeof *o->lanes);
  o->lanes[o->lane_count++] = (struct jit_lane){0, beside};
}

/* The call on the top of the stack, to the last lane; it is kept in the table at `kept`. */
static void add_call(lua_State *L, struct in_order *o, int kept) {
  const struct bound_call *each = luaL_testudata(L, -1, BOUND_CALL);
  if (!each || each->attempt != attempt_kernel) {
    bind_refuse(L, "number %d is no call of a kernel: kernel:prepare(arguments) gives one", (int)o->call_count + 1);
    return;
  }
  o->calls = grown(o->calls, o->call_count, &o->call_room, sizeof *o->calls);
  o->calls[o->call_count++] = each->data;
  o->lanes[o->lane_count - 1].count++;
  lua_rawseti(L, kept, o->call_count);
}

/* The lanes in the table on the top of the stack. */
static void add_side_by_side(lua_State *L, struct in_order *o, int kept) {
  int at = lua_gettop(L);
  for (lua_Integer lane = 1; lane <= luaL_len(L, at); lane++) {
    lua_rawgeti(L, at, lane);
    if (lua_type(L, -1) != LUA_TTABLE || luaL_len(L, -1) < 1)
      bind_refuse(L, "lane %d behind %d calls is no list of calls", (int)lane, (int)o->call_count);
    add_lane(o, lane > 1);
    for (lua_Integer i = 1; i <= luaL_len(L, at + 1); i++) {
      lua_rawgeti(L, at + 1, i);
      add_call(L, o, kept);
    }
    lua_pop(L, 1);
  }
}

/* in_order(calls): a call of kernels one after another, which live as long as it; lists of calls in the place of one
 * run side by side */
static int in_order(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  luaL_checkstack(L, 16, NULL);
  lua_newtable(L); /* the list of the caller may change */
  struct bound_call *call = bind_new_call(L, 2);
  struct in_order *o = calloc(1, sizeof *o);
  if (!o) abort();
  *call = (struct bound_call){.attempt = attempt_all, .release = release_all, .data = o};
  for (lua_Integer i = 1; i <= luaL_len(L, 1); i++) {
    lua_rawgeti(L, 1, i);
    if (lua_type(L, -1) == LUA_TTABLE) {
      add_side_by_side(L, o, 2);
      lua_pop(L, 1);
      continue;
    }
    add_lane(o, false);
    add_call(L, o, 2);
  }
  return 1;
}

/* ---- Several in turn ---- */

struct alternation {
  struct bound_call **calls; /* kept in a table */
  lua_Integer count, next;
};

static struct bound_call *take_next(struct alternation *t) {
  struct bound_call *call = t->calls[t->next];
  t->next = (t->next + 1) % t->count;
  return call;
}

static bool attempt_alternating(void *data, ms_error *err) {
  struct bound_call *call = take_next(data);
  if (call->attempt) return call->attempt(call->data, err);
  call->run(call->data);
  return true;
}

static double seconds_of_next(struct alternation *t) {
  struct bound_call *call = take_next(t);
  if (call->sample) return call->sample(call->data, 1);
  double start = vm_seconds();
  call->run(call->data);
  return vm_seconds() - start;
}

static double sample_alternating(void *data, uint32_t calls) {
  double all = 0;
  for (uint32_t i = 0; i < calls; i++) {
    double seconds = seconds_of_next(data);
    if (seconds < 0) return seconds;
    all += seconds;
  }
  return all / calls;
}

static void release_alternation(void *data) {
  struct alternation *t = data;
  free(t->calls);
  free(t);
}

/* alternating(calls): a call that runs the next of these each time, which live as long as it */
static int alternating(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_Integer count = luaL_len(L, 1);
  if (count < 1) return bind_refuse(L, "at least one call is expected");
  lua_newtable(L); /* the list of the caller may change */
  struct bound_call *call = bind_new_call(L, 2);
  struct alternation *t = calloc(1, sizeof *t);
  if (!t || !(t->calls = calloc((size_t)count, sizeof(struct bound_call *)))) abort();
  *call = (struct bound_call){
      .attempt = attempt_alternating, .sample = sample_alternating, .release = release_alternation, .data = t};
  for (; t->count < count; t->count++) {
    lua_rawgeti(L, 1, t->count + 1);
    struct bound_call *each = luaL_testudata(L, -1, BOUND_CALL);
    if (!each || (!each->sample && !each->run))
      return bind_refuse(L, "number %d is no call of one kernel: kernel:prepare(arguments) gives one",
                         (int)t->count + 1);
    t->calls[t->count] = each;
    lua_rawseti(L, 2, t->count + 1);
  }
  return 1;
}

/* call:run(): runs it once; its result is then where the tensors say */
static int run(lua_State *L) {
  struct bound_call *call = check_call(L, 1);
  ms_error err = {.instruction = -1};
  if (call->attempt) return call->attempt(call->data, &err) ? 0 : bind_raise(L, &err);
  call->run(call->data);
  if (call->finish) call->finish(call->data);
  return 0;
}

/* call:rounding(): by how much its result is rounded where it is given in a shorter type than asked for, of the largest
 * element; else 0 */
static int rounding(lua_State *L) {
  lua_pushnumber(L, check_call(L, 1)->rounding);
  return 1;
}

/* call:routine(): what was taken of a library, in words; "": a kernel, or the only one */
static int routine(lua_State *L) {
  lua_pushstring(L, check_call(L, 1)->routine);
  return 1;
}

/* call:on_device(): whether it is a device's, by whose clock it is timed */
static int on_device(lua_State *L) {
  lua_pushboolean(L, check_call(L, 1)->attempt != NULL);
  return 1;
}

void bind_push_timing(lua_State *L, const struct jit_timing *t) {
  lua_newtable(L);
  lua_pushnumber(L, t->seconds), lua_setfield(L, -2, "seconds");
  lua_pushnumber(L, t->low), lua_setfield(L, -2, "low");
  lua_pushnumber(L, t->high), lua_setfield(L, -2, "high");
  lua_pushinteger(L, t->runs), lua_setfield(L, -2, "runs");
  lua_pushboolean(L, t->busy), lua_setfield(L, -2, "busy");
  if (t->clock > 0) lua_pushnumber(L, t->clock), lua_setfield(L, -2, "clock");
  if (t->raw > 0) lua_pushnumber(L, t->raw), lua_setfield(L, -2, "raw_seconds");
  if (t->by_launches) lua_pushboolean(L, true), lua_setfield(L, -2, "by_launches");
}

/* time_in_turn(calls, seconds): the times of each, so many seconds each */
static int time_in_turn(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer count = luaL_len(L, 1);
  double seconds = luaL_checknumber(L, 2);
  struct jit_finalist finalists[MOST_IN_TURN];
  struct jit_timing timings[MOST_IN_TURN];
  if (count < 1 || count > MOST_IN_TURN) return bind_refuse(L, "from 1 to %d calls are timed in turn", MOST_IN_TURN);
  for (lua_Integer i = 0; i < count; i++) {
    lua_rawgeti(L, 1, i + 1);
    struct bound_call *call = luaL_testudata(L, -1, BOUND_CALL);
    if (!call || (!call->sample && !call->run))
      return bind_refuse(L, "number %d is no call%s: kernel:prepare(arguments) gives one", (int)i + 1,
                         call ? " of one kernel" : "");
    finalists[i] =
        (struct jit_finalist){.call = call->run, .sample = call->sample, .turn = call->turn, .data = call->data};
    lua_pop(L, 1); /* the table keeps it */
  }
  if (!jit_time_in_turn(finalists, (uint32_t)count, seconds, timings)) {
    bind_stop(L);
    return bind_refuse(L, "a call failed while it was timed, or there is no memory for it");
  }
  lua_createtable(L, (int)count, 0);
  for (lua_Integer i = 0; i < count; i++) bind_push_timing(L, &timings[i]), lua_rawseti(L, -2, i + 1);
  return 1;
}

void bind_calls(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {
      {"run", run}, {"rounding", rounding}, {"routine", routine}, {"on_device", on_device}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect}, {NULL, NULL}};
  bind_type(L, BOUND_CALL, methods, meta);
  lua_getfield(L, -1, "kernel_methods");
  lua_pushcfunction(L, prepare);
  lua_setfield(L, -2, "prepare");
  lua_pop(L, 1);
  lua_pushcfunction(L, time_in_turn);
  lua_setfield(L, -2, "time_in_turn");
  lua_pushcfunction(L, in_order);
  lua_setfield(L, -2, "in_order");
  lua_pushcfunction(L, alternating);
  lua_setfield(L, -2, "alternating");
}

/* Schedules and handles in Lua. */
#include "bind_schedule.h"
#include "lua/bind/state/state.h"

#include <stdlib.h>
#include <string.h>

/* Where the registry has the metatables, found without their names; what the userdata begin with. */
static const char schedule_type, handle_type;
/* Where it has the schedule that is lent, again and again. */
static const char lent_schedule;
/* Where it has the table in which changes are noted; nothing: they are not. */
static const char watched_changes;

struct bound_schedule {
  const char *type;
  struct vm_schedule *schedule;
  bool borrowed;
  size_t charged;
  uint32_t times; /* that instructions were undone and not redone, or that it was lent */
  struct undone {
    uint32_t left;          /* variables that it left */
    struct vm_trace *trace; /* as it was before; NULL: look-ups were dropped, which no redo brings back */
    size_t bytes;           /* that the trace takes, as if it had its steps to itself */
  } * undone;               /* what each undo did that was not redone; NULL where the schedule is lent */
  uint32_t undone_capacity;
  size_t undone_bytes; /* of all of them */
};
struct bound_handle {
  const char *type;
  struct bound_schedule *schedule; /* kept by user value 1 */
  uint32_t variable, times;        /* times: the schedule's when it was given */
};

/* A handle of the schedule that is lent is a light userdata, since each candidate is given dozens: its variable, how
 * often the schedule had been lent, and the highest bit, which no address of ours has. */
_Static_assert(sizeof(uintptr_t) == 8, "a handle is in a pointer's bits");
static const uintptr_t LENT = (uintptr_t)1 << 63;

static void *lent_handle(uint32_t times, uint32_t variable) {
  return (void *)(LENT | ((uintptr_t)times << 32) | variable);
}

/* luaL_checkudata, for what is checked several times in every call: by what the userdata begins with. */
static void *check_type(lua_State *L, int at, const char *type, size_t size, const char *name) {
  const char *const *data = lua_touserdata(L, at);
  if (data && lua_rawlen(L, at) == size && *data == type) return (void *)data;
  return luaL_checkudata(L, at, name); /* raises */
}
static struct bound_schedule *check_schedule(lua_State *L, int at) {
  return check_type(L, at, &schedule_type, sizeof(struct bound_schedule), BOUND_SCHEDULE);
}

static void set_type(lua_State *L, const char *type) {
  assert(type && lua_isuserdata(L, -1));
  lua_rawgetp(L, LUA_REGISTRYINDEX, type);
  lua_setmetatable(L, -2);
}

static void refuse_lent(lua_State *L) { bind_refuse(L, "this schedule is no more: it was lent for one call"); }

struct vm_schedule *bind_check_asked(lua_State *L, int at) {
  struct bound_schedule *b = check_schedule(L, at);
  if (!b->schedule) refuse_lent(L);
  return b->schedule;
}

/* What a postprocessor finds out by other means than answers is not memoized. */
static void stop_memo(lua_State *L) {
  struct memo *r = script_of(L)->memo;
  if (memo_is_on(r)) memo_stop(r);
}

struct vm_schedule *bind_check_schedule(lua_State *L, int at) {
  stop_memo(L);
  return bind_check_asked(L, at);
}

static size_t bytes_of(const struct vm_steps *steps) {
  if (!steps) return 0;
  return steps->instruction_capacity * sizeof *steps->instructions + steps->value_capacity * sizeof *steps->values +
         steps->variable_capacity * sizeof *steps->types + steps->text_capacity;
}

static size_t bytes_with_decisions(const struct vm_trace *trace) {
  return sizeof *trace + bytes_of(trace->steps) + trace->capacity * (sizeof *trace->decisions + sizeof *trace->decided);
}

void bind_charge_schedule(lua_State *L, int at) {
  struct bound_schedule *b = lua_touserdata(L, at);
  if (b->borrowed) return;
  const struct vm_schedule *s = b->schedule;
  script_charge(L, &b->charged,
                tir_bytes(s->ir) + bytes_with_decisions(&s->trace) + bytes_of(s->trace.spare) +
                    s->slot_capacity * sizeof *s->slots + s->end_capacity * sizeof *s->ends + b->undone_bytes);
}

/* Pushes a schedule without its memory, which fill() gives it: should the state's memory be out, nothing is lost. The
 * workload at `workload` (a stack index, or 0) is kept with it. */
static struct bound_schedule *push(lua_State *L, bool borrowed, int workload) {
  if (workload) workload = lua_absindex(L, workload);
  struct bound_schedule *b = lua_newuserdatauv(L, sizeof *b, 1);
  *b = (struct bound_schedule){.type = &schedule_type, .borrowed = borrowed};
  set_type(L, &schedule_type);
  if (workload) {
    lua_pushvalue(L, workload);
    lua_setiuservalue(L, -2, 1);
  }
  return b;
}

static int fill(lua_State *L, struct bound_schedule *b, struct vm_schedule *schedule, const ms_error *err) {
  assert(b);
  if (!schedule) return bind_raise_refused(L, err);
  b->schedule = schedule; /* freed with the userdata, should the charge raise */
  lua_getiuservalue(L, -1, 1);
  schedule->workload = bind_check_function(L, -1)->ir;
  schedule->intrinsics = bind_intrinsics(L);
  lua_pop(L, 1);
  bind_charge_schedule(L, lua_gettop(L));
  return 1;
}

void bind_push_borrowed_schedule(lua_State *L, struct vm_schedule *schedule) {
  assert(schedule && schedule->ir);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &lent_schedule) == LUA_TNIL) {
    lua_pop(L, 1);
    push(L, true, 0);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lent_schedule);
    lua_pushlightuserdata(L, NULL);
    set_type(L, &handle_type); /* of all light userdata */
    lua_pop(L, 1);
  }
  struct bound_schedule *b = lua_touserdata(L, -1);
  assert(b->borrowed && !b->schedule);
  b->schedule = schedule;
  b->times++;
  schedule->intrinsics = bind_intrinsics(L);
}
void bind_release_schedule(lua_State *L) {
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &lent_schedule) == LUA_TUSERDATA)
    ((struct bound_schedule *)lua_touserdata(L, -1))->schedule = NULL;
  lua_pop(L, 1);
}

static int collect_schedule(lua_State *L) {
  struct bound_schedule *b = luaL_checkudata(L, 1, BOUND_SCHEDULE);
  if (!b->borrowed) vm_schedule_free(b->schedule);
  b->schedule = NULL;
  for (uint32_t i = 0; b->undone && i < b->times; i++) vm_trace_free(b->undone[i].trace);
  free(b->undone);
  b->undone = NULL;
  script_discharge(L, &b->charged);
  return 0;
}

/* ---- Handles ---- */

void bind_push_handle(lua_State *L, int schedule, uint32_t variable) {
  assert(lua_isuserdata(L, schedule));
  struct bound_schedule *b = lua_touserdata(L, schedule);
  if (b->borrowed) {
    lua_pushlightuserdata(L, lent_handle(b->times, variable));
    return;
  }
  schedule = lua_absindex(L, schedule);
  struct bound_handle *h = lua_newuserdatauv(L, sizeof *h, 1);
  *h = (struct bound_handle){&handle_type, b, variable, b->times};
  set_type(L, &handle_type);
  lua_pushvalue(L, schedule);
  lua_setiuservalue(L, -2, 1);
}

/* What a handle stands for: a variable of a schedule that is there. */
struct given {
  struct bound_schedule *schedule;
  uint32_t variable;
};

static struct given given_by_lent(lua_State *L, int at) {
  uintptr_t bits = (uintptr_t)lua_touserdata(L, at);
  luaL_argcheck(L, bits & LENT, at, "a handle is expected"); /* ms.rest is a light userdata too */
  lua_rawgetp(L, LUA_REGISTRYINDEX, &lent_schedule);         /* which stays there */
  struct bound_schedule *b = lua_touserdata(L, -1);
  lua_pop(L, 1);
  assert(b);
  if (!b->schedule || (void *)bits != lent_handle(b->times, (uint32_t)bits)) refuse_lent(L);
  return (struct given){b, (uint32_t)bits};
}

/* The handle at `at`, of the schedule `of` or, where that is NULL, of any. Raises where its schedule is no more, or
 * what gave it was undone or dropped. */
static struct given check_given(lua_State *L, int at, const struct bound_schedule *of) {
  bool lent = lua_islightuserdata(L, at);
  struct bound_handle *h = lent ? NULL : check_type(L, at, &handle_type, sizeof *h, BOUND_HANDLE);
  struct given g = lent ? given_by_lent(L, at) : (struct given){h->schedule, h->variable};
  if (!g.schedule->schedule) refuse_lent(L);
  if (of && g.schedule != of)
    bind_refuse(L, "argument %d is a handle of another schedule; get it from this one", at - 1);
  for (uint32_t i = lent ? g.schedule->times : h->times; i < g.schedule->times; i++) {
    const struct undone *u = &g.schedule->undone[i];
    if (g.variable >= u->left)
      bind_refuse(L, u->trace ? "the instruction that gave this handle was undone"
                              : "this handle ended with the call of a rule that only looked; look it up again");
  }
  return g;
}

uint32_t bind_check_handle(lua_State *L, int at) { return check_given(L, at, lua_touserdata(L, 1)).variable; }

static struct given check_read(lua_State *L, int at) {
  stop_memo(L);
  return check_given(L, at, NULL);
}

static char type_letter(const struct vm_schedule *s, uint32_t variable) {
  uint8_t type = s->trace.steps->types[variable];
  return type == VM_T_BLOCK ? 'b' : type == VM_T_LOOP || type == VM_T_LOCATION ? 'l' : 'v';
}

static int handle_text(lua_State *L) {
  struct given h = check_read(L, 1);
  struct vm_schedule *s = h.schedule->schedule;
  tir_stmt at = vm_statement(s, h.variable);
  char letter = type_letter(s, h.variable), name[256];
  if (letter == 'v') {
    lua_pushfstring(L, "v%d = %I", (int)h.variable, (LUAI_UACINT)s->slots[h.variable]);
  } else if (!at) {
    lua_pushfstring(L, "%c%d (gone)", letter, (int)h.variable);
  } else if (tir_is(s->ir, at, TIR_BLOCK)) {
    lua_pushfstring(L, "block %s", tir_block_name(s->ir, at));
  } else {
    tir_name_render(s->ir, s->ir->vars.at[tir_stmt_at(s->ir, at)->loop.var].name, name, sizeof name);
    lua_pushfstring(L, "loop %s", name);
  }
  return 1;
}

/* handle:value(): the number drawn. */
static int handle_value(lua_State *L) {
  struct given h = check_read(L, 1);
  const int64_t *slots = h.schedule->schedule->slots;
  if (slots[h.variable] <= VM_UNSET)
    lua_pushnil(L);
  else
    lua_pushinteger(L, slots[h.variable]);
  return 1;
}

/* handle:name(): what conditions call it. */
static int handle_name(lua_State *L) {
  struct given h = check_read(L, 1);
  lua_pushfstring(L, "%c%d", type_letter(h.schedule->schedule, h.variable), (int)h.variable);
  return 1;
}

/* ---- Other methods of schedules ---- */

/* script([{colour = true}]) */
static int schedule_text(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  lua_settop(L, 2);
  bind_push_function_copy(L, s->ir, tir_find_func(s->ir, "main"));
  lua_getfield(L, -1, "script");
  lua_insert(L, -2);
  lua_pushvalue(L, 2);
  lua_call(L, 2, 1);
  return 1;
}

/* func(): the scheduled function as it is now. */
static int schedule_function(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  bind_push_function_copy(L, s->ir, tir_find_func(s->ir, "main"));
  return 1;
}

/* copy(): while a branch is being recorded, of what the trace gives when it is replayed. */
static int schedule_copy(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  if (lua_getiuservalue(L, 1, 1) != LUA_TUSERDATA)
    return bind_refuse(L, "a schedule that is lent for one call, as postprocessors have it, is not copied");
  struct bound_function *f = bind_check_function(L, -1);
  ms_error err = {.instruction = -1};
  if (!s->branches) {
    struct bound_schedule *copy = push(L, false, -1);
    return fill(L, copy, vm_schedule_copy(s), &err);
  }
  struct vm_draws draws = {.mode = VM_STRICT,
                           .decisions = &s->trace,
                           .seed = s->draws.seed,
                           .candidate = s->draws.candidate,
                           .stop = bind_stop(L)};
  struct bound_schedule *copy = push(L, false, -1);
  return fill(L, copy, vm_apply_with(f->ir, &s->trace, bind_intrinsics(L), &draws, &err), &err);
}

/* handle(other): the same variable in a copy of the schedule it came from. */
static int schedule_handle(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct given h = check_given(L, 2, NULL);
  if (h.variable >= s->trace.steps->variables) return bind_refuse(L, "this schedule has no such handle");
  bind_push_handle(L, 1, h.variable);
  return 1;
}

/* split_factor(loop): what a split made the loop by: the handle of a number that was drawn, or a number; nil: no split
 * did. */
static int schedule_split_factor(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  const struct vm_steps *steps = s->trace.steps;
  tir_stmt loop = vm_statement(s, bind_check_handle(L, 2));
  for (uint32_t i = 0; loop && i < steps->count; i++) {
    const struct vm_instruction *in = &steps->instructions[i];
    for (uint32_t k = 0; in->kind == VM_Split && k < in->outputs; k++) {
      if (vm_statement(s, in->first_output + k) != loop) continue;
      const struct vm_value *factor = &vm_inputs_of(steps, in)[k + 1];
      if (factor->kind == VM_REF)
        bind_push_handle(L, 1, factor->ref);
      else
        bind_push_value(L, steps, factor);
      return 1;
    }
  }
  return 0;
}

static void add_undone(struct bound_schedule *b, uint32_t left, struct vm_trace *before) {
  if (b->times == b->undone_capacity)
    b->undone = tir_enlarge(b->undone, &b->undone_capacity, (uint64_t)b->times + 1, sizeof *b->undone);
  struct undone u = {left, before, sizeof u + (before ? bytes_with_decisions(before) : 0)};
  b->undone[b->times++] = u;
  b->undone_bytes += u.bytes;
}

static void drop_undone(struct bound_schedule *b) {
  assert(b->times);
  const struct undone *u = &b->undone[--b->times];
  b->undone_bytes -= u->bytes;
  vm_trace_free(u->trace);
}

/* undo([count]): takes back the last instructions. */
static int schedule_undo(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct bound_schedule *b = lua_touserdata(L, 1);
  lua_Integer count = luaL_optinteger(L, 2, 1);
  ms_error err = {.instruction = -1};
  luaL_argcheck(L, count >= 0 && count <= UINT32_MAX, 2, "a number of instructions is expected");
  if (b->borrowed) return bind_refuse(L, "a schedule that was lent cannot be undone");
  if (!count) return 0;
  bind_note_change(L, 1);
  struct vm_trace *before = vm_trace_copy(&s->trace);
  if (!vm_undo(s, (uint32_t)count, &err)) return vm_trace_free(before), bind_raise(L, &err);
  add_undone(b, s->trace.steps->variables, before);
  bind_charge_schedule(L, 1);
  return 0;
}

/* redo([count]): takes back the last calls of undo, so that handles of what they undid stand for something again. */
static int schedule_redo(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct bound_schedule *b = lua_touserdata(L, 1);
  lua_Integer count = luaL_optinteger(L, 2, 1);
  ms_error err = {.instruction = -1};
  luaL_argcheck(L, count >= 0 && count <= UINT32_MAX, 2, "a number of calls of undo is expected");
  if (b->borrowed) return bind_refuse(L, "a schedule that was lent cannot be undone");
  lua_Integer most = 0;
  while (most < b->times && b->undone[b->times - 1 - most].trace) most++;
  if (count && !most) return bind_refuse(L, "nothing was undone that could be done again");
  if (count > most) return bind_refuse(L, "fewer calls of undo can be done again than that");
  bind_note_change(L, 1);
  for (lua_Integer i = 0; i < count; i++) {
    if (!vm_redo(s, b->undone[b->times - 1].trace, &err)) return bind_raise(L, &err);
    drop_undone(b);
  }
  bind_charge_schedule(L, 1);
  return 0;
}

static int schedule_workload(lua_State *L) {
  bind_check_schedule(L, 1);
  lua_getiuservalue(L, 1, 1);
  return 1;
}

static int schedule_hash(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  char text[20];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)tir_structural_hash(s->ir, TIR_NONE));
  lua_pushstring(L, text);
  return 1;
}

/* check_reduction_order(): refuses a schedule that does a reduction of floats in another order than the function. */
static int schedule_check_reduction_order(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  ms_error err = {.instruction = -1};
  if (lua_getiuservalue(L, 1, 1) != LUA_TUSERDATA) return bind_refuse(L, "the function as it was is not known here");
  return tir_check_reduction_order(s->ir, bind_check_function(L, -1)->ir, &err) ? 0 : bind_raise_refused(L, &err);
}

/* trace_length(): how many instructions its trace has. */
static int schedule_trace_length(lua_State *L) {
  lua_pushinteger(L, bind_check_schedule(L, 1)->trace.steps->count);
  return 1;
}

/* keep_point(): a point, whose trace trace_at_point gives until forget_point() has been called as often as this. */
static int schedule_keep_point(lua_State *L) {
  struct vm_point point = vm_keep_point(bind_check_schedule(L, 1));
  lua_pushinteger(L, (lua_Integer)((uint64_t)point.replaced << 32 | point.instructions));
  return 1;
}

/* forget_point([point]): what was only looked up since the point is dropped, and handles of it. */
static int schedule_forget_point(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct bound_schedule *b = lua_touserdata(L, 1);
  uint64_t at = (uint64_t)luaL_optinteger(L, 2, UINT32_MAX);
  if (!s->points) return bind_refuse(L, "no point is kept");
  bool dropped = !b->borrowed && vm_drop_look_ups(s, (struct vm_point){(uint32_t)at, (uint32_t)(at >> 32)});
  if (dropped) add_undone(b, s->trace.steps->variables, NULL);
  vm_forget_point(s);
  return 0;
}

/* trace_at_point(point): the trace that it had there. */
static int schedule_trace_at_point(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  uint64_t at = (uint64_t)luaL_checkinteger(L, 2);
  struct vm_point point = {(uint32_t)at, (uint32_t)(at >> 32)};
  bool known = s->points && point.replaced <= s->replaced_count;
  const struct vm_trace *trace = known && point.replaced < s->replaced_count ? s->replaced[point.replaced] : &s->trace;
  if (!known || point.instructions > trace->steps->count) return bind_refuse(L, "this schedule keeps no such point");
  bind_push_trace(L, vm_trace_at_point(s, point));
  return 1;
}

/* A method, or sch.trace. */
static int schedule_index(lua_State *L) {
  lua_pushvalue(L, 2);
  if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) return 1;
  if (lua_type(L, 2) == LUA_TSTRING && !strcmp(lua_tostring(L, 2), "trace")) {
    struct vm_trace *copy = vm_trace_copy(&bind_check_schedule(L, 1)->trace);
    bind_push_trace(L, copy);
  }
  return 1;
}

/* schedule(function [, {seed = 1}]) */
static int new_schedule(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  ms_error err = {.instruction = -1};
  uint64_t seed = (uint64_t)bind_option_int(L, 2, "seed", 1);
  struct bound_schedule *made = push(L, false, 1);
  return fill(L, made, vm_schedule_new(f->ir, seed), &err);
}

/* apply(function, trace [, {seed =, candidate =, repair =, resample =}]): a schedule */
static int apply(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  struct vm_trace *trace = bind_check_trace(L, 2);
  struct vm_draws draws = {.mode = bind_option_bool(L, 3, "repair", false) ? VM_REPAIR : VM_STRICT,
                           .decisions = bind_option_resample(L, 3) ? NULL : trace,
                           .seed = (uint64_t)bind_option_int(L, 3, "seed", 1),
                           .candidate = (uint64_t)bind_option_int(L, 3, "candidate", 0),
                           .stop = bind_stop(L)};
  ms_error err = {.instruction = -1};
  struct bound_schedule *made = push(L, false, 1);
  return fill(L, made, vm_apply_with(f->ir, trace, bind_intrinsics(L), &draws, &err), &err);
}

/* ---- What one input of a session changed ---- */

void bind_note_change(lua_State *L, int at) {
  const struct bound_schedule *b = lua_touserdata(L, at);
  int top = lua_gettop(L);
  if (b->borrowed || lua_rawgetp(L, LUA_REGISTRYINDEX, &watched_changes) != LUA_TTABLE) return lua_settop(L, top);
  lua_pushvalue(L, at);
  if (lua_rawget(L, -2) == LUA_TNIL) {
    lua_pushvalue(L, at);
    bind_push_trace(L, vm_trace_copy(&b->schedule->trace));
    lua_rawset(L, -4);
  }
  lua_settop(L, top);
}

int bind_watch_changes(lua_State *L) {
  lua_settop(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &watched_changes);
  return 0;
}

static bool is_beginning(const struct vm_trace *part, const struct vm_trace *whole) {
  return vm_trace_has_at(whole, 0, part);
}

/* Which undo left a trace that only goes on to `to`, through others that do; b->times: none did. */
static uint32_t find_undone(const struct bound_schedule *b, const struct vm_trace *to) {
  uint32_t i = b->times;
  if (!is_beginning(&b->schedule->trace, to)) return b->times;
  while (i > 0 && b->undone[i - 1].trace && is_beginning(b->undone[i - 1].trace, to)) {
    i--;
    if (is_beginning(to, b->undone[i].trace)) return i;
  }
  return b->times;
}

int bind_go_to(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct bound_schedule *b = lua_touserdata(L, 1);
  const struct vm_trace *to = bind_check_trace(L, 2);
  ms_error err = {.instruction = -1};
  if (b->borrowed) return bind_refuse(L, "a schedule that was lent cannot be undone");
  uint32_t kept, undone = find_undone(b, to);
  struct vm_trace *before = vm_trace_copy(&s->trace);
  if (!vm_go_to(s, to, &kept, &err)) return vm_trace_free(before), bind_raise(L, &err);
  if (undone == b->times) {
    add_undone(b, kept, before);
  } else {
    while (b->times > undone) drop_undone(b);
    vm_trace_free(before);
  }
  bind_charge_schedule(L, 1);
  return 0;
}

/* ---- Registration ---- */

void bind_schedules(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg schedule_methods[] = {{"func", schedule_function},
                                              {"copy", schedule_copy},
                                              {"handle", schedule_handle},
                                              {"workload", schedule_workload},
                                              {"undo", schedule_undo},
                                              {"redo", schedule_redo},
                                              {"hash", schedule_hash},
                                              {"check_reduction_order", schedule_check_reduction_order},
                                              {"split_factor", schedule_split_factor},
                                              {"script", schedule_text},
                                              {"trace_length", schedule_trace_length},
                                              {"keep_point", schedule_keep_point},
                                              {"forget_point", schedule_forget_point},
                                              {"trace_at_point", schedule_trace_at_point},
                                              {NULL, NULL}};
  static const luaL_Reg handle_methods[] = {{"value", handle_value}, {"name", handle_name}, {NULL, NULL}};
  static const luaL_Reg schedule_meta[] = {{"__gc", collect_schedule}, {"__tostring", schedule_text}, {NULL, NULL}};
  static const luaL_Reg handle_meta[] = {{"__tostring", handle_text}, {NULL, NULL}};
  bind_type(L, BOUND_HANDLE, handle_methods, handle_meta);
  bind_type(L, BOUND_SCHEDULE, schedule_methods, schedule_meta);
  luaL_getmetatable(L, BOUND_HANDLE);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &handle_type);
  luaL_getmetatable(L, BOUND_SCHEDULE);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &schedule_type);
  lua_getfield(L, -1, "__index");
  bind_table_methods(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "schedule_methods"); /* for completion, and for those written in Lua */
  lua_pushcclosure(L, schedule_index, 1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  static const luaL_Reg functions[] = {{"schedule", new_schedule}, {"apply", apply}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

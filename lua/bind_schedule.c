/* Schedules, handles and traces in Lua. Every instruction and query of the tables is a method. */
#include "bind.h"

#include <stdlib.h>
#include <string.h>

struct bound_schedule {
  struct vm_schedule *schedule;
  bool borrowed;
  size_t charged;
  uint32_t *left, undone, undone_capacity; /* how many variables each undo left */
};
struct bound_handle {
  uint32_t variable, undone; /* undone: how often the schedule's instructions had been undone when it was given */
};                           /* user value 1: its schedule */

enum { MOST_ARGUMENTS = 64 };

struct vm_schedule *bind_check_schedule(lua_State *L, int at) {
  struct bound_schedule *b = luaL_checkudata(L, at, BOUND_SCHEDULE);
  if (!b->schedule) bind_refuse(L, "this schedule is no more: it was lent for one call");
  return b->schedule;
}

/* Counts what the schedule at `at` holds; a borrowed one is its owner's. */
static void charge(lua_State *L, int at) {
  struct bound_schedule *b = lua_touserdata(L, at);
  if (b->borrowed) return;
  const struct vm_steps *steps = b->schedule->trace.steps;
  script_charge(L, &b->charged,
                tir_bytes(b->schedule->ir) + steps->instruction_capacity * sizeof *steps->instructions +
                    steps->value_capacity * sizeof *steps->values + steps->text_capacity);
}

/* Pushes a schedule without its memory, which fill() gives it: should the state's memory be out, nothing is lost. The
 * workload at `workload` (a stack index, or 0) is kept with it. */
static struct bound_schedule *push(lua_State *L, bool borrowed, int workload) {
  if (workload) workload = lua_absindex(L, workload);
  struct bound_schedule *b = lua_newuserdatauv(L, sizeof *b, 1);
  *b = (struct bound_schedule){.borrowed = borrowed};
  luaL_setmetatable(L, BOUND_SCHEDULE);
  if (workload) {
    lua_pushvalue(L, workload);
    lua_setiuservalue(L, -2, 1);
  }
  return b;
}

static int fill(lua_State *L, struct bound_schedule *b, struct vm_schedule *schedule, const ms_error *err) {
  if (!schedule) return bind_raise(L, err);
  b->schedule = schedule; /* freed with the userdata, should the charge raise */
  lua_getiuservalue(L, -1, 1);
  schedule->workload = bind_check_function(L, -1)->ir;
  schedule->intrinsics = bind_intrinsics(L);
  lua_pop(L, 1);
  charge(L, lua_gettop(L));
  return 1;
}

void bind_push_borrowed_schedule(lua_State *L, struct vm_schedule *schedule) { push(L, true, 0)->schedule = schedule; }
void bind_release_schedule(lua_State *L, int at) {
  ((struct bound_schedule *)luaL_checkudata(L, at, BOUND_SCHEDULE))->schedule = NULL;
}

static int collect_schedule(lua_State *L) {
  struct bound_schedule *b = luaL_checkudata(L, 1, BOUND_SCHEDULE);
  if (!b->borrowed) vm_schedule_free(b->schedule);
  b->schedule = NULL;
  free(b->left);
  b->left = NULL;
  script_discharge(L, &b->charged);
  return 0;
}

/* ---- Handles ---- */

static void push_handle(lua_State *L, int schedule, uint32_t variable) {
  schedule = lua_absindex(L, schedule);
  struct bound_handle *h = lua_newuserdatauv(L, sizeof *h, 1);
  *h = (struct bound_handle){variable, ((struct bound_schedule *)lua_touserdata(L, schedule))->undone};
  luaL_setmetatable(L, BOUND_HANDLE);
  lua_pushvalue(L, schedule);
  lua_setiuservalue(L, -2, 1);
}

/* The handle at `at`; pushes its schedule. Raises where the instruction that gave it was undone. */
static struct bound_handle *check_given(lua_State *L, int at) {
  struct bound_handle *h = luaL_checkudata(L, at, BOUND_HANDLE);
  lua_getiuservalue(L, at, 1);
  bind_check_schedule(L, -1);
  const struct bound_schedule *b = lua_touserdata(L, -1);
  for (uint32_t i = h->undone; i < b->undone; i++)
    if (h->variable >= b->left[i]) bind_refuse(L, "the instruction that gave this handle was undone");
  return h;
}

/* The variable of the handle at `at`, which must belong to the schedule at stack index 1. */
static uint32_t check_handle(lua_State *L, int at) {
  struct bound_handle *h = check_given(L, at);
  if (!lua_rawequal(L, -1, 1))
    bind_refuse(L, "argument %d is a handle of another schedule; get it from this one", at - 1);
  lua_pop(L, 1);
  return h->variable;
}

static char type_letter(const struct vm_schedule *s, uint32_t variable) {
  uint8_t type = s->trace.steps->types[variable];
  return type == VM_T_BLOCK ? 'b' : type == VM_T_LOOP || type == VM_T_LOCATION ? 'l' : 'v';
}

static int handle_text(lua_State *L) {
  struct bound_handle *h = check_given(L, 1);
  struct vm_schedule *s = bind_check_schedule(L, -1);
  tir_stmt at = vm_statement(s, h->variable);
  char letter = type_letter(s, h->variable), name[256];
  if (letter == 'v') {
    lua_pushfstring(L, "v%d = %I", (int)h->variable, (LUAI_UACINT)s->slots[h->variable]);
  } else if (!at) {
    lua_pushfstring(L, "%c%d (gone)", letter, (int)h->variable);
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
  struct bound_handle *h = check_given(L, 1);
  struct vm_schedule *s = bind_check_schedule(L, -1);
  if (s->slots[h->variable] <= VM_UNSET)
    lua_pushnil(L);
  else
    lua_pushinteger(L, s->slots[h->variable]);
  return 1;
}

/* handle:name(): what conditions call it. */
static int handle_name(lua_State *L) {
  struct bound_handle *h = check_given(L, 1);
  lua_pushfstring(L, "%c%d", type_letter(bind_check_schedule(L, -1), h->variable), (int)h->variable);
  return 1;
}

/* ---- Values between Lua and the vm ---- */

/* `ms.rest`: an open factor. A light userdata of this address. */
static const char rest_mark;
/* `ms.map`: a map without keys, since {} is a list without items. */
static const char map_mark;

static struct vm_value to_value(lua_State *L, int at, struct vm_trace *pool, int depth);

static struct vm_value table_to_value(lua_State *L, int at, struct vm_trace *pool, int depth) {
  struct vm_value items[256];
  lua_Integer count = luaL_len(L, at);
  if (depth > 16 || count > 128) bind_refuse(L, "a table is nested too deep or too long for an argument");
  if (count == 0 && (lua_pushnil(L), lua_next(L, at))) { /* keys and values, keys in order of text */
    lua_pop(L, 2);
    lua_getglobal(L, "msched");
    lua_getfield(L, -1, "sorted_keys");
    lua_pushvalue(L, at);
    lua_call(L, 1, 1);
    lua_Integer keys = luaL_len(L, -1);
    if (keys > 128) bind_refuse(L, "a table is too long for an argument");
    for (lua_Integer i = 0; i < keys; i++) {
      size_t length;
      lua_rawgeti(L, -1, i + 1);
      const char *key = luaL_checklstring(L, -1, &length);
      items[2 * i] = vm_string(pool, key, length);
      lua_getfield(L, at, key);
      items[2 * i + 1] = to_value(L, lua_gettop(L), pool, depth + 1);
      lua_pop(L, 2);
    }
    lua_pop(L, 2);
    return vm_list(pool, VM_MAP, items, (uint32_t)(2 * keys));
  }
  for (lua_Integer i = 0; i < count; i++) {
    lua_rawgeti(L, at, i + 1);
    items[i] = to_value(L, lua_gettop(L), pool, depth + 1);
    lua_pop(L, 1);
  }
  return vm_list(pool, VM_LIST, items, (uint32_t)count);
}

static struct vm_value to_value(lua_State *L, int at, struct vm_trace *pool, int depth) {
  size_t length;
  switch (lua_type(L, at)) {
  case LUA_TNIL:
  case LUA_TNONE: return vm_none();
  case LUA_TBOOLEAN: return vm_bool(lua_toboolean(L, at));
  case LUA_TNUMBER: return lua_isinteger(L, at) ? vm_int(lua_tointeger(L, at)) : vm_real(lua_tonumber(L, at));
  case LUA_TSTRING: {
    const char *text = lua_tolstring(L, at, &length);
    return vm_string(pool, text, length);
  }
  case LUA_TLIGHTUSERDATA:
    if (lua_touserdata(L, at) == (void *)&rest_mark) return vm_none();
    if (lua_touserdata(L, at) == (void *)&map_mark) return vm_list(pool, VM_MAP, NULL, 0);
    break;
  case LUA_TUSERDATA: return vm_ref(check_handle(L, at));
  case LUA_TTABLE: return table_to_value(L, lua_absindex(L, at), pool, depth);
  default: break;
  }
  bind_refuse(L, "argument %d: a %s cannot be used here", at - 1, luaL_typename(L, at));
  return vm_none();
}

static void push_value(lua_State *L, const struct vm_steps *steps, const struct vm_value *v) {
  switch (v->kind) {
  case VM_BOOL: lua_pushboolean(L, v->integer != 0); break;
  case VM_INT: lua_pushinteger(L, v->integer); break;
  case VM_REAL: lua_pushnumber(L, v->real); break;
  case VM_STRING: lua_pushlstring(L, steps->text + v->first, v->count); break;
  case VM_LIST:
    lua_createtable(L, (int)v->count, 0);
    for (uint32_t i = 0; i < v->count; i++) {
      push_value(L, steps, &steps->values[v->first + i]);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    break;
  case VM_MAP:
    lua_newtable(L);
    for (uint32_t i = 0; i + 1 < v->count; i += 2) {
      push_value(L, steps, &steps->values[v->first + i]);
      push_value(L, steps, &steps->values[v->first + i + 1]);
      lua_rawset(L, -3);
    }
    break;
  default: lua_pushnil(L);
  }
}

/* ---- Instructions as methods ---- */

struct call_arguments {
  struct vm_value inputs[MOST_ARGUMENTS], attrs[VM_MOST_PARAMS];
  uint32_t input_count;
};

static bool is_missing(lua_State *L, int at) { return lua_isnoneornil(L, at); }

/* A parameter that repeats takes a table, or all handles and numbers that stand one after the other. */
static int read_repeated(lua_State *L, int at, struct vm_schedule *s, struct call_arguments *a) {
  if (lua_istable(L, at)) {
    lua_Integer count = luaL_len(L, at);
    for (lua_Integer i = 1; i <= count; i++) {
      if (a->input_count == MOST_ARGUMENTS) bind_refuse(L, "too many arguments");
      lua_rawgeti(L, at, i);
      a->inputs[a->input_count++] = to_value(L, lua_gettop(L), &s->trace, 0);
      lua_pop(L, 1);
    }
    return at + 1;
  }
  for (; lua_isuserdata(L, at) || lua_isinteger(L, at); at++) {
    if (a->input_count == MOST_ARGUMENTS) bind_refuse(L, "too many arguments");
    a->inputs[a->input_count++] = to_value(L, at, &s->trace, 0);
  }
  return at;
}

/* Options by name in a last table: sch:compute_at(b, l, {preserve_unit_loops = true}). */
static int named_options(lua_State *L, int top) {
  if (top < 2 || !lua_istable(L, top) || luaL_len(L, top) != 0) return 0;
  lua_pushnil(L);
  if (!lua_next(L, top)) return 0;
  bool named = lua_type(L, -2) == LUA_TSTRING;
  lua_pop(L, 2);
  return named ? top : 0;
}

static void check_names(lua_State *L, int options, const struct vm_signature *sig) {
  lua_pushnil(L);
  while (lua_next(L, options)) {
    lua_pop(L, 1);
    const char *key = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    bool known = !strcmp(key, "decision");
    for (int i = 0; i < sig->inputs + sig->attrs; i++)
      known |= strlen(key) == sig->at[i].name_length && !strncmp(key, sig->at[i].name, sig->at[i].name_length);
    if (!known) bind_refuse(L, "there is no option `%s` here; see help", key);
  }
}

static void set_argument(struct call_arguments *a, const struct vm_signature *sig, int param, struct vm_value value) {
  if (param < sig->inputs)
    a->inputs[a->input_count++] = value;
  else
    a->attrs[param - sig->inputs] = value;
}

static int missing_argument(lua_State *L, const struct vm_param *p, const char *expected) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)p->name_length, p->name);
  return bind_refuse(L, "argument `%s` is missing: %s is expected", name, expected);
}

/* Parameters come in the method's order; inputs are gathered in the table's order, of which a repeated one is last. */
static void read_arguments(lua_State *L, struct vm_schedule *s, const struct vm_signature *sig,
                           struct call_arguments *a) {
  int at = 2, options = named_options(L, lua_gettop(L));
  if (options) check_names(L, options, sig);
  struct vm_value repeated[MOST_ARGUMENTS];
  uint32_t repeated_count = 0;
  struct vm_value single[VM_MOST_PARAMS];
  bool given[VM_MOST_PARAMS] = {false};
  for (int i = 0; i < sig->inputs + sig->attrs; i++) {
    int param = sig->order[i];
    const struct vm_param *p = &sig->at[param];
    if (p->repeat) {
      a->input_count = 0;
      at = read_repeated(L, at, s, a);
      repeated_count = a->input_count;
      memcpy(repeated, a->inputs, repeated_count * sizeof *repeated);
      continue;
    }
    if (at != options && !is_missing(L, at)) {
      single[param] = to_value(L, at, &s->trace, 0);
      given[param] = true;
      at++;
      continue;
    }
    if (at != options && at <= lua_gettop(L)) at++; /* nil keeps its place: the default */
    if (!options) continue;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)p->name_length, p->name);
    if (lua_getfield(L, options, name) != LUA_TNIL) {
      single[param] = to_value(L, lua_gettop(L), &s->trace, 0);
      given[param] = true;
    }
    lua_pop(L, 1);
  }
  a->input_count = 0;
  for (int i = 0; i < sig->inputs; i++) {
    if (sig->at[i].repeat) {
      for (uint32_t k = 0; k < repeated_count; k++) a->inputs[a->input_count++] = repeated[k];
    } else if (given[i]) {
      set_argument(a, sig, i, single[i]);
    } else if (sig->at[i].standard && sig->at[i].list) {
      set_argument(a, sig, i, vm_list(&s->trace, VM_LIST, NULL, 0));
    } else {
      char text[64];
      missing_argument(L, &sig->at[i], vm_param_text(&sig->at[i], text, sizeof text));
    }
  }
  /* The vm fills defaults from the first attribute that is not given. */
  for (int i = 0; i < sig->attrs; i++) a->attrs[i] = given[sig->inputs + i] ? single[sig->inputs + i] : vm_none();
}

/* Attributes without a value take the table's default, which only trailing ones may lack: write them out. */
static void fill_defaults(lua_State *L, const struct vm_signature *sig, struct vm_trace *pool, struct vm_value *attrs) {
  for (int i = 0; i < sig->attrs; i++) {
    const struct vm_param *p = &sig->at[sig->inputs + i];
    if (attrs[i].kind != VM_NONE || p->optional) continue;
    if (!p->standard) missing_argument(L, p, "a value");
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)p->standard_length, p->standard);
    if (p->type == VM_T_BOOL || p->type == VM_T_BIT)
      attrs[i] = vm_bool(!strcmp(text, "true") || !strcmp(text, "1"));
    else if (p->type == VM_T_STRING)
      attrs[i] = vm_string(pool, text, strlen(text));
    else
      attrs[i] = vm_int(strtoll(text, NULL, 10));
  }
}

static uint32_t read_decision(lua_State *L, int64_t *out, uint32_t most) {
  int top = lua_gettop(L), options = named_options(L, top);
  if (!options || lua_getfield(L, options, "decision") == LUA_TNIL) return lua_settop(L, top), 0;
  uint32_t count = 0;
  if (lua_isinteger(L, -1)) {
    out[count++] = lua_tointeger(L, -1);
  } else {
    luaL_checktype(L, -1, LUA_TTABLE);
    for (lua_Integer i = 1; i <= luaL_len(L, -1) && count < most; i++) {
      lua_rawgeti(L, -1, i);
      out[count++] = luaL_checkinteger(L, -1);
      lua_pop(L, 1);
    }
  }
  lua_settop(L, top);
  return count;
}

static int perform(lua_State *L) {
  enum vm_kind kind = (enum vm_kind)lua_tointeger(L, lua_upvalueindex(1));
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct vm_signature sig;
  vm_signature_of(kind, &sig);
  struct call_arguments a = {0};
  int64_t decision[MOST_ARGUMENTS];
  uint32_t first = 0, count = 0, decided = read_decision(L, decision, MOST_ARGUMENTS);
  read_arguments(L, s, &sig, &a);
  fill_defaults(L, &sig, &s->trace, a.attrs);
  ms_error err = {.instruction = -1};
  if (!vm_call(s, kind, a.inputs, a.input_count, a.attrs, sig.attrs, decided ? decision : NULL, decided, &first, &count,
               &err)) {
    err.instruction = -1; /* a call is named by its line of Lua */
    return bind_raise(L, &err);
  }
  charge(L, 1);
  luaL_checkstack(L, (int)count + 4, "too many results");
  for (uint32_t i = 0; i < count; i++) push_handle(L, 1, first + i);
  return (int)count;
}

static int ask(lua_State *L) {
  enum vm_query query = (enum vm_query)lua_tointeger(L, lua_upvalueindex(1));
  struct vm_schedule *s = bind_check_schedule(L, 1);
  lua_getfield(L, LUA_REGISTRYINDEX, "msched.answers");
  struct vm_trace *pool = bind_check_trace(L, -1);
  lua_pop(L, 1);
  struct vm_value args[8], answer = vm_none();
  int count = lua_gettop(L) - 1;
  if (count > 8) return bind_refuse(L, "too many arguments");
  for (int i = 0; i < count; i++) args[i] = to_value(L, i + 2, pool, 0);
  ms_error err = {.instruction = -1};
  if (!vm_ask(s, query, args, (uint32_t)count, pool, &answer, &err)) return bind_raise(L, &err);
  push_value(L, pool->steps, &answer);
  pool->steps->value_count = pool->steps->text_size = 0; /* what the answer stood on is copied */
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

static int schedule_copy(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  lua_getiuservalue(L, 1, 1);
  struct bound_function *f = bind_check_function(L, -1);
  struct vm_draws draws = {
      .mode = VM_STRICT, .decisions = &s->trace, .seed = s->draws.seed, .candidate = s->draws.candidate};
  ms_error err = {.instruction = -1};
  struct bound_schedule *copy = push(L, false, -1);
  return fill(L, copy, vm_apply_with(f->ir, &s->trace, bind_intrinsics(L), &draws, &err), &err);
}

/* handle(other): the same variable in a copy of the schedule it came from. */
static int schedule_handle(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct bound_handle *h = check_given(L, 2);
  if (h->variable >= s->trace.steps->variables) return bind_refuse(L, "this schedule has no such handle");
  push_handle(L, 1, h->variable);
  return 1;
}

/* undo([count]): takes back the last instructions. */
static int schedule_undo(lua_State *L) {
  struct vm_schedule *s = bind_check_schedule(L, 1);
  struct bound_schedule *b = lua_touserdata(L, 1);
  lua_Integer count = luaL_optinteger(L, 2, 1);
  ms_error err = {.instruction = -1};
  luaL_argcheck(L, count >= 0 && count <= UINT32_MAX, 2, "a number of instructions is expected");
  if (b->borrowed) return bind_refuse(L, "a schedule that was lent cannot be undone");
  if (b->undone == b->undone_capacity)
    b->left = tir_enlarge(b->left, &b->undone_capacity, (uint64_t)b->undone + 1, sizeof *b->left);
  if (!vm_undo(s, (uint32_t)count, &err)) return bind_raise(L, &err);
  b->left[b->undone++] = s->trace.steps->variables;
  charge(L, 1);
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

/* sch.trace, or a method. */
static int schedule_index(lua_State *L) {
  if (lua_type(L, 2) == LUA_TSTRING && !strcmp(lua_tostring(L, 2), "trace")) {
    struct vm_trace *copy = vm_trace_copy(&bind_check_schedule(L, 1)->trace);
    bind_push_trace(L, copy);
    return 1;
  }
  lua_pushvalue(L, 2);
  lua_gettable(L, lua_upvalueindex(1));
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

/* ---- Traces ---- */

struct bound_trace {
  struct vm_trace *trace;
  size_t charged;
};

struct vm_trace *bind_check_trace(lua_State *L, int at) {
  struct bound_trace *b = luaL_checkudata(L, at, BOUND_TRACE);
  if (!b->trace) bind_refuse(L, "this trace is no more");
  return b->trace;
}

struct vm_trace *bind_test_trace(lua_State *L, int at) {
  struct bound_trace *b = luaL_testudata(L, at, BOUND_TRACE);
  return b ? b->trace : NULL;
}

void bind_push_trace(lua_State *L, struct vm_trace *trace) {
  struct bound_trace *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = (struct bound_trace){trace, 0};
  luaL_setmetatable(L, BOUND_TRACE);
  script_charge(L, &b->charged,
                sizeof *trace + trace->capacity * (sizeof *trace->decisions + 1)); /* steps are shared */
}

static int collect_trace(lua_State *L) {
  struct bound_trace *b = luaL_checkudata(L, 1, BOUND_TRACE);
  vm_trace_free(b->trace);
  b->trace = NULL;
  script_discharge(L, &b->charged);
  return 0;
}

static int push_malloced(lua_State *L, char *text, size_t length) {
  lua_pushlstring(L, text, length); /* the state's memory limit is far above a trace's text */
  free(text);
  return 1;
}

static int trace_text(lua_State *L) {
  char *text = vm_write_lua(bind_check_trace(L, 1));
  return push_malloced(L, text, strlen(text));
}
static int trace_json(lua_State *L) {
  char *text = vm_write_json(bind_check_trace(L, 1));
  return push_malloced(L, text, strlen(text));
}
static int trace_binary(lua_State *L) {
  size_t length;
  char *bytes = vm_write_binary(bind_check_trace(L, 1), &length);
  return push_malloced(L, bytes, length);
}

static int trace_simplified(lua_State *L) {
  bind_push_trace(L, vm_trace_simplified(bind_check_trace(L, 1), lua_toboolean(L, 2)));
  return 1;
}

/* uses(i): the instructions whose results instruction i takes, numbered from 0 as it is. */
static int trace_uses(lua_State *L) {
  struct vm_trace *t = bind_check_trace(L, 1);
  lua_Integer i = luaL_checkinteger(L, 2);
  luaL_argcheck(L, i >= 0 && i < t->steps->count, 2, "no such instruction");
  uint8_t *uses = lua_newuserdatauv(L, t->steps->count, 0);
  vm_uses(t, (uint32_t)i, uses);
  lua_newtable(L);
  for (uint32_t n = 0; n < t->steps->count; n++)
    if (uses[n]) lua_pushinteger(L, n), lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  return 1;
}

/* head(n): its first n instructions. */
static int trace_head(lua_State *L) {
  struct vm_trace *t = bind_check_trace(L, 1);
  lua_Integer n = luaL_checkinteger(L, 2);
  luaL_argcheck(L, n >= 0 && n <= t->steps->count, 2, "more instructions than there are");
  bind_push_trace(L, vm_trace_head(t, (uint32_t)n));
  return 1;
}

static int trace_length(lua_State *L) {
  lua_pushinteger(L, bind_check_trace(L, 1)->steps->count);
  return 1;
}

/* The key of the annotation that a variable becomes the value of, or NULL. */
static const char *annotated_key(const struct vm_trace *t, uint32_t variable) {
  for (uint32_t i = 0; i < t->steps->count; i++) {
    const struct vm_instruction *in = &t->steps->instructions[i];
    if (in->kind != VM_Annotate || in->inputs < 2) continue;
    const struct vm_value *value = &vm_inputs_of(t->steps, in)[1], *key = vm_attrs_of(t->steps, in);
    if (value->kind == VM_REF && value->ref == variable && key->kind == VM_STRING) return t->steps->text + key->first;
  }
  return NULL;
}

/* draws(): a list of {index, kind, draw, attrs, annotates, decision} in order: what mutators look at. */
static int trace_draws(lua_State *L) {
  struct vm_trace *t = bind_check_trace(L, 1);
  lua_newtable(L);
  lua_Integer n = 0;
  for (uint32_t i = 0; i < t->steps->count; i++) {
    const struct vm_instruction *in = &t->steps->instructions[i];
    if (in->draw == VM_NO_DRAW) continue;
    lua_newtable(L);
    lua_pushinteger(L, i);
    lua_setfield(L, -2, "index");
    lua_pushinteger(L, in->draw);
    lua_setfield(L, -2, "draw");
    lua_pushstring(L, vm_kind_info((enum vm_kind)in->kind)->name);
    lua_setfield(L, -2, "kind");
    lua_pushstring(L, annotated_key(t, in->first_output));
    lua_setfield(L, -2, "annotates");
    lua_createtable(L, in->attrs, 0);
    for (uint32_t k = 0; k < in->attrs; k++) {
      push_value(L, t->steps, &vm_attrs_of(t->steps, in)[k]);
      lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "attrs");
    if (t->decided[in->decision] == VM_DECIDED) {
      lua_createtable(L, (int)in->outputs, 0);
      for (uint32_t k = 0; k < in->outputs; k++) {
        lua_pushinteger(L, t->decisions[in->decision + k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
      }
      lua_setfield(L, -2, "decision");
    }
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* with_decision(index, {values…}): a copy with one decision changed; the rest is kept. */
static int trace_with_decision(lua_State *L) {
  struct vm_trace *copy = vm_trace_copy(bind_check_trace(L, 1));
  bind_push_trace(L, copy);
  lua_Integer index = luaL_checkinteger(L, 2);
  luaL_checktype(L, 3, LUA_TTABLE);
  int64_t values[MOST_ARGUMENTS];
  uint32_t count = 0;
  for (lua_Integer i = 1; i <= luaL_len(L, 3) && count < MOST_ARGUMENTS; i++) {
    lua_rawgeti(L, 3, i);
    values[count++] = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
  }
  if (index < 0 || index >= copy->steps->count || !vm_decide(copy, (uint32_t)index, values, count))
    return bind_refuse(L, "instruction %I does not take a decision of %d numbers", (LUAI_UACINT)index, (int)count);
  return 1;
}

/* read_trace(text): JSON, Lua text or the binary form */
static int read_trace(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  ms_error err = {.instruction = -1};
  struct vm_trace *trace = vm_read_trace(text, length, &err);
  if (!trace) return bind_raise(L, &err);
  bind_push_trace(L, trace);
  return 1;
}

/* apply(function, trace [, {seed =, candidate =, repair =, anew =}]): a schedule */
static int apply(lua_State *L) {
  struct bound_function *f = bind_check_function(L, 1);
  struct vm_trace *trace = bind_check_trace(L, 2);
  struct vm_draws draws = {.mode = bind_option_bool(L, 3, "repair", false) ? VM_REPAIR : VM_STRICT,
                           .decisions = bind_option_bool(L, 3, "anew", false) ? NULL : trace,
                           .seed = (uint64_t)bind_option_int(L, 3, "seed", 1),
                           .candidate = (uint64_t)bind_option_int(L, 3, "candidate", 0)};
  ms_error err = {.instruction = -1};
  struct bound_schedule *made = push(L, false, 1);
  return fill(L, made, vm_apply_with(f->ir, trace, bind_intrinsics(L), &draws, &err), &err);
}

/* ---- Registration ---- */

static void add_table_methods(lua_State *L) {
  for (int k = 0; k < VM_KIND_COUNT; k++) {
    struct vm_signature sig;
    vm_signature_of((enum vm_kind)k, &sig);
    lua_pushlstring(L, vm_kind_info((enum vm_kind)k)->method, sig.method_length);
    lua_pushinteger(L, k);
    lua_pushcclosure(L, perform, 1);
    lua_rawset(L, -3);
  }
  for (int q = 0; q < VM_QUERY_COUNT; q++) {
    lua_pushinteger(L, q);
    lua_pushcclosure(L, ask, 1);
    lua_setfield(L, -2, vm_query_info((enum vm_query)q)->name);
  }
}

void bind_schedules(lua_State *L) {
  static const luaL_Reg schedule_methods[] = {{"func", schedule_function}, {"copy", schedule_copy},
                                              {"handle", schedule_handle}, {"workload", schedule_workload},
                                              {"undo", schedule_undo},     {"hash", schedule_hash},
                                              {"script", schedule_text},   {NULL, NULL}};
  static const luaL_Reg handle_methods[] = {{"value", handle_value}, {"name", handle_name}, {NULL, NULL}};
  static const luaL_Reg trace_methods[] = {{"json", trace_json},
                                           {"text", trace_text},
                                           {"binary", trace_binary},
                                           {"draws", trace_draws},
                                           {"simplified", trace_simplified},
                                           {"head", trace_head},
                                           {"uses", trace_uses},
                                           {"with_decision", trace_with_decision},
                                           {NULL, NULL}};
  static const luaL_Reg schedule_meta[] = {{"__gc", collect_schedule}, {"__tostring", schedule_text}, {NULL, NULL}};
  static const luaL_Reg handle_meta[] = {{"__tostring", handle_text}, {NULL, NULL}};
  static const luaL_Reg trace_meta[] = {
      {"__gc", collect_trace}, {"__tostring", trace_text}, {"__len", trace_length}, {NULL, NULL}};
  bind_type(L, BOUND_HANDLE, handle_methods, handle_meta);
  bind_type(L, BOUND_TRACE, trace_methods, trace_meta);
  bind_type(L, BOUND_SCHEDULE, schedule_methods, schedule_meta);
  luaL_getmetatable(L, BOUND_SCHEDULE);
  lua_getfield(L, -1, "__index");
  add_table_methods(L);
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "schedule_methods"); /* for completion, and for those written in Lua */
  lua_pushcclosure(L, schedule_index, 1);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  bind_push_trace(L, vm_trace_new());
  lua_setfield(L, LUA_REGISTRYINDEX, "msched.answers");
  lua_pushlightuserdata(L, (void *)&rest_mark);
  lua_setfield(L, -2, "rest");
  lua_pushlightuserdata(L, (void *)&map_mark);
  lua_setfield(L, -2, "map");
  static const luaL_Reg functions[] = {
      {"schedule", new_schedule}, {"read_trace", read_trace}, {"apply", apply}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

/* Every instruction and query of the tables as a method of schedules. */
#include "bind_schedule.h"
#include "lua/bind/state/state.h"

#include <stdlib.h>
#include <string.h>

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
    return vm_ref(bind_check_handle(L, at));
  case LUA_TUSERDATA: return vm_ref(bind_check_handle(L, at));
  case LUA_TTABLE: return table_to_value(L, lua_absindex(L, at), pool, depth);
  default: break;
  }
  bind_refuse(L, "argument %d: a %s cannot be used here", at - 1, luaL_typename(L, at));
  return vm_none();
}

void bind_push_value(lua_State *L, const struct vm_steps *steps, const struct vm_value *v) {
  switch (v->kind) {
  case VM_BOOL: lua_pushboolean(L, v->integer != 0); break;
  case VM_INT: lua_pushinteger(L, v->integer); break;
  case VM_REAL: lua_pushnumber(L, v->real); break;
  case VM_STRING: lua_pushlstring(L, steps->text + v->first, v->count); break;
  case VM_LIST:
    lua_createtable(L, (int)v->count, 0);
    for (uint32_t i = 0; i < v->count; i++) {
      bind_push_value(L, steps, &steps->values[v->first + i]);
      lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    break;
  case VM_MAP:
    lua_createtable(L, 0, (int)v->count / 2);
    for (uint32_t i = 0; i + 1 < v->count; i += 2) {
      bind_push_value(L, steps, &steps->values[v->first + i]);
      bind_push_value(L, steps, &steps->values[v->first + i + 1]);
      lua_rawset(L, -3);
    }
    break;
  default: lua_pushnil(L);
  }
}

/* ---- Instructions as methods ---- */

/* Where the registry has the trace that holds answers to queries while they are given. */
static const char answers[] = "msched.answers";

struct call_arguments {
  struct vm_value inputs[BIND_MOST_ARGUMENTS], attrs[VM_MOST_PARAMS];
  uint32_t input_count;
};

static bool is_missing(lua_State *L, int at) { return lua_isnoneornil(L, at); }

/* A parameter that repeats takes a table, or all handles and numbers that stand one after the other. */
static int read_repeated(lua_State *L, int at, struct vm_trace *pool, struct vm_value out[BIND_MOST_ARGUMENTS],
                         uint32_t *count) {
  if (lua_istable(L, at)) {
    lua_Integer length = luaL_len(L, at);
    if (length > BIND_MOST_ARGUMENTS) bind_refuse(L, "too many arguments");
    for (lua_Integer i = 1; i <= length; i++) {
      lua_rawgeti(L, at, i);
      out[(*count)++] = to_value(L, lua_gettop(L), pool, 0);
      lua_pop(L, 1);
    }
    return at + 1;
  }
  for (; lua_isuserdata(L, at) || lua_isinteger(L, at); at++) {
    if (*count == BIND_MOST_ARGUMENTS) bind_refuse(L, "too many arguments");
    out[(*count)++] = to_value(L, at, pool, 0);
  }
  return at;
}

static bool is_name(const struct vm_signature *sig, const char *key) {
  bool known = !strcmp(key, "decision");
  for (int i = 0; i < sig->inputs + sig->attrs; i++)
    known |= strlen(key) == sig->at[i].name_length && !strncmp(key, sig->at[i].name, sig->at[i].name_length);
  return known;
}

/* A key of the table that names no parameter, pushed; nothing is where there is none. */
static bool find_stranger(lua_State *L, int table, const struct vm_signature *sig) {
  lua_pushnil(L);
  while (lua_next(L, table)) {
    lua_pop(L, 1);
    if (lua_type(L, -1) != LUA_TSTRING || !is_name(sig, lua_tostring(L, -1))) return true;
  }
  return false;
}

/* The last argument is in the place of an annotation's value: a table that does not name parameters is that value. */
static bool is_value(lua_State *L, int top, const struct vm_signature *sig) {
  for (int i = 0; i < sig->inputs + sig->attrs && !sig->at[sig->order[i]].repeat; i++) {
    if (2 + i != top) continue;
    bool is_map = sig->at[sig->order[i]].type == VM_T_VALUE && find_stranger(L, top, sig);
    lua_settop(L, top);
    return is_map;
  }
  return false;
}

/* Options by name in a last table: sch:compute_at(b, l, {preserve_unit_loops = true}). */
static int named_options(lua_State *L, int top, const struct vm_signature *sig) {
  if (top < 2 || !lua_istable(L, top) || luaL_len(L, top) != 0) return 0;
  lua_pushnil(L);
  if (!lua_next(L, top)) return 0;
  bool named = lua_type(L, -2) == LUA_TSTRING;
  lua_pop(L, 2);
  return named && !is_value(L, top, sig) ? top : 0;
}

static void check_names(lua_State *L, int options, const struct vm_signature *sig) {
  if (!find_stranger(L, options, sig)) return;
  const char *key = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
  luaL_Buffer known;
  luaL_buffinit(L, &known);
  for (int i = 0; i < sig->inputs + sig->attrs; i++) {
    luaL_addlstring(&known, sig->at[sig->order[i]].name, sig->at[sig->order[i]].name_length);
    luaL_addstring(&known, ", ");
  }
  luaL_addstring(&known, "decision");
  luaL_pushresult(&known);
  bind_refuse(L, "there is no option `%s` here; known are %s", key, lua_tostring(L, -1));
}

static int missing_argument(lua_State *L, const struct vm_param *p, const char *expected) {
  char name[64];
  snprintf(name, sizeof name, "%.*s", (int)p->name_length, p->name);
  return bind_refuse(L, "argument `%s` is missing: %s is expected", name, expected);
}

/* What a call gives for each parameter, by its number in the table; for the one that repeats, `repeated`. */
struct given {
  struct vm_value values[VM_MOST_PARAMS], repeated[BIND_MOST_ARGUMENTS];
  bool is_given[VM_MOST_PARAMS];
  uint32_t repeated_count;
};

/* What stands after the last parameter: a nil among the handles of one that repeats ends them early. */
static void refuse_rest(lua_State *L, int at, int options) {
  if (at == options) at++;
  if (at > lua_gettop(L)) return;
  if (lua_isnil(L, at)) bind_refuse(L, "argument %d is nil", at - 1);
  bind_refuse(L, "argument %d is one too many", at - 1);
}

/* Parameters come in the method's order: by place, or else by name in the options. */
static void read_given(lua_State *L, struct vm_trace *pool, const struct vm_signature *sig, int options,
                       struct given *out) {
  int at = 2;
  if (options) check_names(L, options, sig);
  for (int i = 0; i < sig->inputs + sig->attrs; i++) {
    int param = sig->order[i];
    const struct vm_param *p = &sig->at[param];
    if (p->repeat) {
      at = read_repeated(L, at, pool, out->repeated, &out->repeated_count);
      continue;
    }
    if (at != options && !is_missing(L, at)) {
      out->values[param] = to_value(L, at, pool, 0);
      out->is_given[param] = true;
      at++;
      continue;
    }
    if (at != options && at <= lua_gettop(L)) at++; /* nil keeps its place: the default */
    if (!options) continue;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)p->name_length, p->name);
    if (lua_getfield(L, options, name) != LUA_TNIL) {
      out->values[param] = to_value(L, lua_gettop(L), pool, 0);
      out->is_given[param] = true;
    }
    lua_pop(L, 1);
  }
  refuse_rest(L, at, options);
}

static void add_input(lua_State *L, struct call_arguments *a, struct vm_value value) {
  if (a->input_count == BIND_MOST_ARGUMENTS) bind_refuse(L, "too many arguments");
  a->inputs[a->input_count++] = value;
}

/* Inputs are gathered in the table's order, of which a repeated one is last. */
static void read_arguments(lua_State *L, struct vm_trace *pool, const struct vm_signature *sig, int options,
                           struct call_arguments *a) {
  struct given given;
  given.repeated_count = 0;
  memset(given.is_given, 0, sizeof given.is_given);
  read_given(L, pool, sig, options, &given);
  for (int i = 0; i < sig->inputs; i++) {
    if (sig->at[i].repeat) {
      for (uint32_t k = 0; k < given.repeated_count; k++) add_input(L, a, given.repeated[k]);
    } else if (given.is_given[i]) {
      add_input(L, a, given.values[i]);
    } else if (sig->at[i].standard) {
      add_input(L, a, vm_default_value(pool, &sig->at[i]));
    } else {
      char text[64];
      missing_argument(L, &sig->at[i], vm_param_text(&sig->at[i], text, sizeof text));
    }
  }
  /* The vm fills defaults from the first attribute that is not given. */
  for (int i = 0; i < sig->attrs; i++)
    a->attrs[i] = given.is_given[sig->inputs + i] ? given.values[sig->inputs + i] : vm_none();
}

/* Attributes without a value take the table's default, which only trailing ones may lack: write them out. */
static void fill_defaults(lua_State *L, const struct vm_signature *sig, struct vm_trace *pool, struct vm_value *attrs) {
  for (int i = 0; i < sig->attrs; i++) {
    const struct vm_param *p = &sig->at[sig->inputs + i];
    if (attrs[i].kind != VM_NONE || p->optional) continue;
    if (!p->standard) missing_argument(L, p, "a value");
    attrs[i] = vm_default_value(pool, p);
  }
}

static uint32_t read_decision(lua_State *L, int options, int64_t *out, uint32_t most) {
  int top = lua_gettop(L);
  if (!options || lua_getfield(L, options, "decision") == LUA_TNIL) return lua_settop(L, top), 0;
  uint32_t count = 0;
  if (lua_isinteger(L, -1))
    out[count++] = lua_tointeger(L, -1);
  else
    count = bind_check_items(L, -1, out, most);
  lua_settop(L, top);
  return count;
}

/* What is kept of a postprocessor that runs; NULL: nothing is. */
static struct memo *memo_of(lua_State *L) {
  struct memo *r = script_of(L)->memo;
  return memo_is_on(r) ? r : NULL;
}

struct vm_trace *bind_answers(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, answers);
  struct vm_trace *pool = bind_check_trace(L, -1); /* the registry keeps it */
  lua_pop(L, 1);
  return pool;
}

static void empty(const struct vm_trace *pool) { pool->steps->value_count = pool->steps->text_size = 0; }

/* What came of an instruction that a walk performed before the Lua ran (memo.h). */
static bool memo_call(struct memo *r, const struct memo_call *call, const struct vm_trace *pool, uint32_t *first,
                      uint32_t *count) {
  bool done;
  memo_outcome(r, &done, first, count);
  memo_performed(r, call, pool, done, *first, *count);
  empty(pool);
  return done;
}

static bool perform_call(lua_State *L, struct vm_schedule *s, const struct memo_call *call, const int64_t *decision,
                         uint32_t decided, uint32_t *first, uint32_t *count, ms_error *err) {
  bool done = vm_call(s, call->kind, call->inputs, call->input_count, call->attrs, call->attr_count,
                      decided ? decision : NULL, decided, first, count, err);
  struct memo *r = memo_of(L);
  if (r && decided) memo_stop(r);
  if (r && (done || (call->tried && !bind_is_misuse(err->code))))
    memo_performed(r, call, &s->trace, done, *first, *count);
  return done;
}

/* Records and performs an instruction with the arguments from stack index 2 on; pushes handles of what it gives, of
 * *count variables. False: it was refused. tried: the Lua goes on then. */
static bool call_kind(lua_State *L, enum vm_kind kind, bool tried, uint32_t *count, ms_error *err) {
  struct vm_schedule *s = bind_check_asked(L, 1);
  struct memo *r = memo_of(L);
  bool known = r && memo_is_known(r);
  struct vm_trace *pool = known ? bind_answers(L) : &s->trace;
  script_look(L);
  const struct vm_signature *sig = vm_signature_of(kind);
  struct call_arguments a;
  a.input_count = 0;
  int64_t decision[BIND_MOST_ARGUMENTS];
  int options = named_options(L, lua_gettop(L), sig);
  uint32_t first = 0, decided = read_decision(L, options, decision, BIND_MOST_ARGUMENTS);
  read_arguments(L, pool, sig, options, &a);
  fill_defaults(L, sig, pool, a.attrs);
  bind_note_change(L, 1);
  struct memo_call call = {kind, a.inputs, a.attrs, a.input_count, sig->attrs, tried};
  if (!(known ? memo_call(r, &call, pool, &first, count)
              : perform_call(L, s, &call, decision, decided, &first, count, err)))
    return false;
  bind_charge_schedule(L, 1);
  if (*count) luaL_checkstack(L, (int)*count + 4, "too many results");
  for (uint32_t i = 0; i < *count; i++) bind_push_handle(L, 1, first + i);
  return true;
}

static int perform_kind(lua_State *L, enum vm_kind kind) {
  uint32_t count = 0;
  ms_error err;
  ms_clear(&err);
  if (call_kind(L, kind, false, &count, &err)) return (int)count;
  err.instruction = -1; /* a call is named by its line of Lua */
  return bind_raise_refused(L, &err);
}

static int perform(lua_State *L) { return perform_kind(L, (enum vm_kind)lua_tointeger(L, lua_upvalueindex(1))); }

/* try(name, arguments…): as the instruction's method; true and what it gives, or false where the schedule refuses it,
 * and is as it was. A mistake in the call is raised, as ever. Upvalue: the methods. */
static int try_method(lua_State *L) {
  bind_check_asked(L, 1);
  luaL_checkstring(L, 2);
  lua_pushvalue(L, 2);
  lua_rawget(L, lua_upvalueindex(1));
  if (lua_tocfunction(L, -1) != perform) return bind_refuse(L, "there is no instruction `%s`", lua_tostring(L, 2));
  lua_getupvalue(L, -1, 1);
  enum vm_kind kind = (enum vm_kind)lua_tointeger(L, -1);
  lua_pop(L, 2);
  lua_remove(L, 2);
  uint32_t count = 0;
  ms_error err;
  ms_clear(&err);
  err.brief = true;
  int top = lua_gettop(L);
  bool done = call_kind(L, kind, true, &count, &err);
  if (!done) lua_settop(L, top);
  if (!done && bind_is_misuse(err.code)) return perform_kind(L, kind); /* which says so */
  lua_pushboolean(L, done);
  lua_insert(L, top + 1);
  return (int)count + 1;
}

static int ask(lua_State *L) {
  enum vm_query query = (enum vm_query)lua_tointeger(L, lua_upvalueindex(1));
  struct vm_schedule *s = bind_check_asked(L, 1);
  struct vm_trace *pool = lua_touserdata(L, lua_upvalueindex(2));
  struct memo *r = memo_of(L);
  script_look(L);
  struct vm_value args[8], answer = vm_none();
  int count = lua_gettop(L) - 1;
  if (count > 8) return bind_refuse(L, "too many arguments");
  for (int i = 0; i < count; i++) args[i] = to_value(L, i + 2, pool, 0);
  ms_error err;
  ms_clear(&err);
  if (r && memo_is_known(r))
    memo_answer(r, pool, &answer);
  else if (!vm_ask(s, query, args, (uint32_t)count, pool, &answer, &err))
    return bind_raise(L, &err);
  if (r) memo_asked(r, query, args, (uint32_t)count, pool, &answer);
  bind_push_value(L, pool->steps, &answer);
  empty(pool); /* what the answer stood on is copied */
  return 1;
}

/* ---- Memoized functions (memo.h) ---- */

enum { MOST_GIVEN = 16 };

/* Of the arguments or results from `at` on, values; those of schedules are left out. */
static uint32_t read_given_values(lua_State *L, int at, struct vm_trace *pool, struct vm_value out[MOST_GIVEN]) {
  int count = lua_gettop(L) - at + 1;
  if (count > MOST_GIVEN) bind_refuse(L, "a memoized function takes and gives at most %d values", MOST_GIVEN);
  for (int i = 0; i < count; i++) out[i] = to_value(L, at + i, pool, 0);
  return (uint32_t)count;
}

/* Upvalues: the function, its number, the trace that holds values. */
static int call_memoized(lua_State *L) {
  struct memo *r = memo_of(L);
  int top = lua_gettop(L);
  struct vm_value values[MOST_GIVEN];
  struct vm_trace *pool = lua_touserdata(L, lua_upvalueindex(3));
  luaL_checkstack(L, top + 1, NULL);
  if (r) {
    bind_check_asked(L, 1);
    uint32_t count = read_given_values(L, 2, pool, values);
    memo_enter(r, (uint32_t)lua_tointeger(L, lua_upvalueindex(2)), values, count, pool);
    empty(pool);
  }
  lua_pushvalue(L, lua_upvalueindex(1));
  for (int i = 1; i <= top; i++) lua_pushvalue(L, i);
  lua_call(L, top, LUA_MULTRET);
  if (r) {
    uint32_t count = read_given_values(L, top + 1, pool, values);
    memo_leave(r, values, count, pool);
    empty(pool);
  }
  return lua_gettop(L) - top;
}

/* memoized(f): f, a function of a schedule and of numbers, texts and handles, which gives such values and decides by
 * these and by what the schedule answers alone: where a postprocessor calls it, its effects are memoized. */
static int memoized(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  struct memo *r = script_of(L)->memo;
  if (!r) return 1;
  lua_pushinteger(L, memo_function(r));
  lua_pushlightuserdata(L, bind_answers(L));
  lua_pushcclosure(L, call_memoized, 3);
  return 1;
}

/* ---- Registration ---- */

void bind_table_methods(lua_State *L) {
  assert(lua_istable(L, -1));
  for (int k = 0; k < VM_KIND_COUNT; k++) {
    const struct vm_signature *sig = vm_signature_of((enum vm_kind)k);
    lua_pushlstring(L, vm_kind_info((enum vm_kind)k)->method, sig->method_length);
    lua_pushinteger(L, k);
    lua_pushcclosure(L, perform, 1);
    lua_rawset(L, -3);
  }
  lua_pushvalue(L, -1);
  lua_pushcclosure(L, try_method, 1);
  lua_setfield(L, -2, "try");
  struct vm_trace *pool = bind_answers(L);
  for (int q = 0; q < VM_QUERY_COUNT; q++) {
    lua_pushinteger(L, q);
    lua_pushlightuserdata(L, pool); /* the registry keeps it */
    lua_pushcclosure(L, ask, 2);
    lua_setfield(L, -2, vm_query_info((enum vm_query)q)->name);
  }
}

void bind_methods(lua_State *L) {
  assert(lua_istable(L, -1));
  bind_push_trace(L, vm_trace_new());
  lua_setfield(L, LUA_REGISTRYINDEX, answers);
  lua_pushlightuserdata(L, (void *)&rest_mark);
  lua_setfield(L, -2, "rest");
  lua_pushlightuserdata(L, (void *)&map_mark);
  lua_setfield(L, -2, "map");
  lua_pushcfunction(L, memoized);
  lua_setfield(L, -2, "memoized");
}

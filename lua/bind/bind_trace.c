/* Traces in Lua. */
#include "bind_schedule.h"

#include <stdlib.h>
#include <string.h>

/* One of the two: of a candidate's trace few ask. */
struct bound_trace {
  struct vm_trace *trace;
  struct vm_packed *packed;
  size_t charged;
};

static struct vm_trace *trace_of(struct bound_trace *b) {
  if (!b->packed) return b->trace;
  b->trace = vm_unpack(b->packed);
  vm_packed_free(b->packed);
  b->packed = NULL;
  return b->trace;
}

struct vm_trace *bind_check_trace(lua_State *L, int at) {
  struct vm_trace *trace = trace_of(luaL_checkudata(L, at, BOUND_TRACE));
  if (!trace) bind_refuse(L, "this trace is no more");
  return trace;
}

struct vm_trace *bind_test_trace(lua_State *L, int at) {
  struct bound_trace *b = luaL_testudata(L, at, BOUND_TRACE);
  return b ? trace_of(b) : NULL;
}

static void push_bound(lua_State *L, struct bound_trace bound, size_t bytes) {
  struct bound_trace *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = bound;
  luaL_setmetatable(L, BOUND_TRACE);
  script_charge(L, &b->charged, bytes); /* steps are shared */
}

void bind_push_trace(lua_State *L, struct vm_trace *trace) {
  assert(trace);
  push_bound(L, (struct bound_trace){.trace = trace}, sizeof *trace + trace->capacity * (sizeof *trace->decisions + 1));
}

void bind_push_packed(lua_State *L, struct vm_packed *packed) {
  assert(packed);
  push_bound(L, (struct bound_trace){.packed = packed}, vm_packed_bytes(packed));
}

static int collect_trace(lua_State *L) {
  struct bound_trace *b = luaL_checkudata(L, 1, BOUND_TRACE);
  vm_trace_free(b->trace);
  vm_packed_free(b->packed);
  b->trace = NULL, b->packed = NULL;
  script_discharge(L, &b->charged);
  return 0;
}

static int push_malloced(lua_State *L, char *text, size_t length) {
  assert(text || !length);
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

/* part(first, last): instructions first up to last, numbered from 0, last not among them, as a trace of its own; nil
 * where they take what was given before them. */
static int trace_part(lua_State *L) {
  struct vm_trace *t = bind_check_trace(L, 1);
  lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
  luaL_argcheck(L, last >= 0 && last <= t->steps->count, 3, "more instructions than there are");
  luaL_argcheck(L, first >= 0 && first <= last, 2, "a number up to the next argument is expected");
  struct vm_trace *part = vm_trace_part(t, (uint32_t)first, (uint32_t)last);
  if (!part) return 0;
  bind_push_trace(L, part);
  return 1;
}

/* has_at(n, part): whether the instructions from number n on begin with those of the part, whatever was decided. */
static int trace_has_at(lua_State *L) {
  struct vm_trace *t = bind_check_trace(L, 1);
  lua_Integer n = luaL_checkinteger(L, 2);
  lua_pushboolean(L, n >= 0 && n <= t->steps->count && vm_trace_has_at(t, (uint32_t)n, bind_check_trace(L, 3)));
  return 1;
}

/* undecided(): a copy with every draw open. */
static int trace_undecided(lua_State *L) {
  struct vm_trace *copy = vm_trace_copy(bind_check_trace(L, 1));
  vm_forget_decisions(copy);
  bind_push_trace(L, copy);
  return 1;
}

/* join_traces(list): one trace of all, one after another */
static int join_traces(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer count = luaL_len(L, 1);
  luaL_argcheck(L, count >= 0 && count < UINT16_MAX, 1, "too many traces");
  const struct vm_trace **parts = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *parts, 0);
  for (lua_Integer i = 1; i <= count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 1, i); /* the list keeps it */
    parts[i - 1] = bind_check_trace(L, -1);
  }
  struct vm_trace *joined = vm_trace_join(parts, (uint32_t)count);
  if (!joined) return bind_refuse(L, "a trace cannot have so many variables");
  bind_push_trace(L, joined);
  return 1;
}

static int trace_length(lua_State *L) {
  lua_pushinteger(L, bind_check_trace(L, 1)->steps->count);
  return 1;
}

/* The value is the variable, or a list that it is in. */
static bool has_variable(const struct vm_trace *t, const struct vm_value *value, uint32_t variable) {
  if (value->kind == VM_REF) return value->ref == variable;
  for (uint32_t i = 0; value->kind == VM_LIST && i < value->count; i++)
    if (has_variable(t, &t->steps->values[value->first + i], variable)) return true;
  return false;
}

/* The key of the annotation that a variable becomes the value of, or is in, or NULL. */
static const char *annotated_key(const struct vm_trace *t, uint32_t variable) {
  for (uint32_t i = 0; i < t->steps->count; i++) {
    const struct vm_instruction *in = &t->steps->instructions[i];
    if (in->kind != VM_Annotate || in->inputs < 2) continue;
    const struct vm_value *value = &vm_inputs_of(t->steps, in)[1], *key = vm_attrs_of(t->steps, in);
    if (has_variable(t, value, variable) && key->kind == VM_STRING) return t->steps->text + key->first;
  }
  return NULL;
}

/* The thread axis that a loop is bound to which a split made by a variable, or NULL. */
static const char *bound_axis(const struct vm_trace *t, uint32_t variable) {
  uint32_t loop = UINT32_MAX;
  for (uint32_t i = 0; i < t->steps->count; i++) {
    const struct vm_instruction *in = &t->steps->instructions[i];
    const struct vm_value *inputs = vm_inputs_of(t->steps, in), *axis = vm_attrs_of(t->steps, in);
    for (uint32_t k = 1; in->kind == VM_Split && k < in->inputs; k++)
      if (inputs[k].kind == VM_REF && inputs[k].ref == variable) loop = in->first_output + k - 1;
    if (in->kind == VM_Bind && inputs[0].ref == loop) return t->steps->text + axis->first;
  }
  return NULL;
}

/* Pushes {index, kind, draw, attrs, annotates, binds, decision} of the draw that instruction i is. */
static void push_draw(lua_State *L, const struct vm_trace *t, uint32_t i) {
  const struct vm_instruction *in = &t->steps->instructions[i];
  assert(in->draw != VM_NO_DRAW);
  lua_createtable(L, 0, 7);
  lua_pushinteger(L, i);
  lua_setfield(L, -2, "index");
  lua_pushinteger(L, in->draw);
  lua_setfield(L, -2, "draw");
  lua_pushstring(L, vm_kind_info((enum vm_kind)in->kind)->name);
  lua_setfield(L, -2, "kind");
  lua_pushstring(L, annotated_key(t, in->first_output));
  lua_setfield(L, -2, "annotates");
  lua_pushstring(L, bound_axis(t, in->first_output));
  lua_setfield(L, -2, "binds");
  lua_createtable(L, in->attrs, 0);
  for (uint32_t k = 0; k < in->attrs; k++) {
    bind_push_value(L, t->steps, &vm_attrs_of(t->steps, in)[k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "attrs");
  if (t->decided[in->decision] != VM_DECIDED) return;
  lua_createtable(L, (int)in->outputs, 0);
  for (uint32_t k = 0; k < in->outputs; k++) {
    lua_pushinteger(L, t->decisions[in->decision + k]);
    lua_rawseti(L, -2, (lua_Integer)k + 1);
  }
  lua_setfield(L, -2, "decision");
}

/* draws(): a list of them, in order. */
static int trace_draws(lua_State *L) {
  struct vm_trace *t = bind_check_trace(L, 1);
  lua_newtable(L);
  lua_Integer n = 0;
  for (uint32_t i = 0; i < t->steps->count; i++) {
    if (t->steps->instructions[i].draw == VM_NO_DRAW) continue;
    push_draw(L, t, i);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* draw(index): one of them; nil: the instruction draws nothing. */
static int trace_draw(lua_State *L) {
  struct vm_trace *t = bind_check_trace(L, 1);
  lua_Integer i = luaL_checkinteger(L, 2);
  luaL_argcheck(L, i >= 0 && i < t->steps->count, 2, "no such instruction");
  if (t->steps->instructions[i].draw == VM_NO_DRAW) return 0;
  push_draw(L, t, (uint32_t)i);
  return 1;
}

/* Whether a draw that is decided could be decided otherwise. */
static bool has_others(const struct vm_trace *t, const struct vm_instruction *in) {
  if (t->decided[in->decision] != VM_DECIDED) return false;
  if (in->kind == VM_SampleCategorical) return vm_attrs_of(t->steps, in)[0].count > 1;
  for (uint32_t k = 0; in->kind == VM_SamplePerfectTile && k < in->outputs; k++)
    if (t->decisions[in->decision + k] > 1) return true;
  return in->kind != VM_SamplePerfectTile;
}

static bool is_for(const struct vm_trace *t, const struct vm_instruction *in, const char *note) {
  const char *key = annotated_key(t, in->first_output), *axis = key ? NULL : bound_axis(t, in->first_output);
  return (key && strstr(key, note)) || (axis && strstr(axis, note));
}

/* changeable(kind [, note]): the draws of a kind that are decided and could be decided otherwise, by their
 * instructions' numbers; note: with that in the key of the annotation, or in the thread axis, that the number is
 * for. */
static int trace_changeable(lua_State *L) {
  struct vm_trace *t = bind_check_trace(L, 1);
  const char *kind = bind_check_text(L, 2), *note = bind_opt_text(L, 3, NULL);
  lua_newtable(L);
  lua_Integer n = 0;
  for (uint32_t i = 0; i < t->steps->count; i++) {
    const struct vm_instruction *in = &t->steps->instructions[i];
    if (in->draw == VM_NO_DRAW || strcmp(vm_kind_info((enum vm_kind)in->kind)->name, kind) != 0) continue;
    if (!has_others(t, in) || (note && !is_for(t, in, note))) continue;
    lua_pushinteger(L, i);
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* with_decision(index, {values…}): a copy with one decision changed; the rest is kept. */
static int trace_with_decision(lua_State *L) {
  struct vm_trace *copy = vm_trace_copy(bind_check_trace(L, 1));
  bind_push_trace(L, copy);
  lua_Integer index = luaL_checkinteger(L, 2);
  int64_t values[BIND_MOST_ARGUMENTS];
  uint32_t count = bind_check_items(L, 3, values, BIND_MOST_ARGUMENTS);
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

void bind_traces(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"json", trace_json},
                                     {"text", trace_text},
                                     {"binary", trace_binary},
                                     {"draws", trace_draws},
                                     {"draw", trace_draw},
                                     {"changeable", trace_changeable},
                                     {"simplified", trace_simplified},
                                     {"head", trace_head},
                                     {"part", trace_part},
                                     {"has_at", trace_has_at},
                                     {"undecided", trace_undecided},
                                     {"uses", trace_uses},
                                     {"with_decision", trace_with_decision},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {
      {"__gc", collect_trace}, {"__tostring", trace_text}, {"__len", trace_length}, {NULL, NULL}};
  bind_type(L, BOUND_TRACE, methods, meta);
  luaL_getmetatable(L, BOUND_TRACE);
  lua_getfield(L, -1, "__index");
  lua_setfield(L, -3, "trace_methods"); /* for those written in Lua */
  lua_pop(L, 1);
  lua_pushcfunction(L, read_trace);
  lua_setfield(L, -2, "read_trace");
  lua_pushcfunction(L, join_traces);
  lua_setfield(L, -2, "join_traces");
}

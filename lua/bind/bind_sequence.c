/* Sequences from Lua: kernels of a device in order, whose arrays stay there. */
#include "bind.h"

#include <string.h>

#define BOUND_SEQUENCE "msched.sequence"

struct bound_sequence {
  struct jit_sequence *sequence; /* NULL: it could not be made */
};                               /* user value 1: its kernels and arrays */

static struct jit_sequence *check_sequence(lua_State *L, int at) {
  struct bound_sequence *s = luaL_checkudata(L, at, BOUND_SEQUENCE);
  assert(s->sequence); /* no script gets at one that was not made */
  return s->sequence;
}

static int collect(lua_State *L) {
  struct bound_sequence *s = luaL_checkudata(L, 1, BOUND_SEQUENCE);
  jit_sequence_free(s->sequence);
  s->sequence = NULL;
  return 0;
}

/* The array of a copy: what it takes, or gives. */
static void read_copied(lua_State *L, int at, struct tir_arg *out) {
  const struct bound_array *a = bind_check_array(L, at);
  *out = (struct tir_arg){.data = a->data, .bytes = a->bytes, .shape = a->shape};
}

/* The step on the top of the stack, a table, whose values are put after what is kept in the table at that index. */
static void read_step(lua_State *L, int number, int kept, struct jit_step *out, struct tir_arg *args) {
  if (!lua_istable(L, -1))
    bind_refuse(L, "step %d is no table of a kernel and its arguments, or of two arrays", number);
  lua_Integer count = luaL_len(L, -1);
  int first = lua_gettop(L) + 1;
  if (count < 1 || count > BIND_MOST_ARGUMENTS + 1)
    bind_refuse(L, "step %d has %d values; a kernel has from 1 to %d arguments", number, (int)count,
                BIND_MOST_ARGUMENTS);
  luaL_checkstack(L, (int)count + 8, "a step's arguments");
  for (int i = 1; i <= (int)count; i++) {
    lua_rawgeti(L, first - 1, i);
    lua_pushvalue(L, -1);
    lua_rawseti(L, kept, (lua_Integer)lua_rawlen(L, kept) + 1);
  }
  if (luaL_testudata(L, first, BOUND_KERNEL))
    bind_step(L, first, out, args);
  else {
    if (count != 2) bind_refuse(L, "step %d has no kernel, and is no copy of one array to another", number);
    read_copied(L, first, &args[0]), read_copied(L, first + 1, &args[1]);
    if (args[0].bytes != args[1].bytes) bind_refuse(L, "step %d copies an array to one that is not as large", number);
    *out = (struct jit_step){.args = args};
  }
  lua_settop(L, first - 1);
}

/* sequence(steps): a step is {kernel, arguments…}, or {from, to}, a copy */
static int new_sequence(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_Integer count = luaL_len(L, 1);
  if (count < 1 || count > 1 << 20) return bind_refuse(L, "a sequence has from 1 to %d steps", 1 << 20);
  lua_newtable(L); /* at 2 */
  struct bound_sequence *s = lua_newuserdatauv(L, sizeof *s, 1);
  s->sequence = NULL;
  luaL_setmetatable(L, BOUND_SEQUENCE);
  lua_pushvalue(L, 2);
  lua_setiuservalue(L, 3, 1);
  struct jit_step *steps = lua_newuserdatauv(L, (size_t)count * sizeof *steps, 0);
  struct tir_arg(*args)[BIND_MOST_ARGUMENTS] = lua_newuserdatauv(L, (size_t)count * sizeof *args, 0);
  memset(args, 0, (size_t)count * sizeof *args);
  for (int i = 0; i < (int)count; i++) {
    lua_rawgeti(L, 1, i + 1);
    read_step(L, i + 1, 2, &steps[i], args[i]);
    lua_pop(L, 1);
  }
  ms_error err = {.instruction = -1};
  s->sequence = jit_sequence_new(steps, (uint32_t)count, &err);
  if (!s->sequence) return bind_raise(L, &err);
  lua_settop(L, 3);
  return 1;
}

/* Copies arrays, from the second argument on, to the device or back. */
static int move(lua_State *L, bool back) {
  const struct jit_sequence *s = check_sequence(L, 1);
  ms_error err = {.instruction = -1};
  for (int i = 2, count = lua_gettop(L); i <= count; i++) {
    const struct bound_array *a = bind_check_array(L, i);
    if (!(back ? jit_sequence_fetch(s, a->data, a->bytes, &err) : jit_sequence_send(s, a->data, a->bytes, &err)))
      return bind_raise(L, &err);
  }
  return 0;
}

/* sequence:send(arrays…): what they hold is copied to the device */
static int send(lua_State *L) { return move(L, false); }
/* sequence:fetch(arrays…): they hold what the device has */
static int fetch(lua_State *L) { return move(L, true); }

static int run(lua_State *L) {
  ms_error err = {.instruction = -1};
  return jit_sequence_run(check_sequence(L, 1), &err) ? 0 : bind_raise(L, &err);
}

/* sequence:time([limit]): a table as time_in_turn has them; limit: seconds of sampling, at most */
static int time_sequence(lua_State *L) {
  struct jit_sequence *s = check_sequence(L, 1);
  double limit = luaL_optnumber(L, 2, 2);
  luaL_argcheck(L, limit > 0, 2, "the limit is above 0");
  struct jit_timing timing;
  ms_error err = {.instruction = -1};
  if (!jit_sequence_time(s, 0.02, limit, &timing, &err)) return bind_raise(L, &err);
  bind_push_timing(L, &timing);
  return 1;
}

static int bytes(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)jit_sequence_bytes(check_sequence(L, 1)));
  return 1;
}

void bind_sequences(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"send", send},          {"fetch", fetch}, {"run", run},
                                     {"time", time_sequence}, {"bytes", bytes}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect}, {NULL, NULL}};
  bind_type(L, BOUND_SEQUENCE, methods, meta);
  lua_pushcfunction(L, new_sequence);
  lua_setfield(L, -2, "sequence");
}

/* Units of the CPU that multiply short types (jit.h), for Lua. */
#include "bind.h"

#include "jit/jit.h"

static enum jit_unit check_unit(lua_State *L, int at) {
  lua_Integer unit = luaL_checkinteger(L, at);
  luaL_argcheck(L, unit >= 0 && unit < JIT_UNITS, at, "a unit's number is expected");
  return (enum jit_unit)unit;
}

/* units(target): those that code for the target may use here: a list of {unit, name, products}: its number, what it is
 * called, and what it multiplies, as function:work() has it */
static int units(lua_State *L) {
  static const enum tir_work_kind products[JIT_UNITS] = {[JIT_UNIT_PAIRS] = TIR_WORK_I8_PRODUCTS,
                                                         [JIT_UNIT_VNNI] = TIR_WORK_I8_PRODUCTS,
                                                         [JIT_UNIT_BF16] = TIR_WORK_BF16_PRODUCTS,
                                                         [JIT_UNIT_AMX_INT8] = TIR_WORK_I8_PRODUCTS,
                                                         [JIT_UNIT_AMX_BF16] = TIR_WORK_BF16_PRODUCTS};
  struct jit_target target;
  ms_error err = {.instruction = -1};
  if (!jit_target_parse(bind_check_text(L, 1), &target, &err)) return bind_raise(L, &err);
  lua_newtable(L);
  for (int u = 0; u < JIT_UNITS; u++) {
    if (!jit_unit_is_here((enum jit_unit)u, &target)) continue;
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, u), lua_setfield(L, -2, "unit");
    lua_pushstring(L, jit_unit_name((enum jit_unit)u)), lua_setfield(L, -2, "name");
    lua_pushstring(L, tir_work_name(products[u])), lua_setfield(L, -2, "products");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  return 1;
}

/* unit_rate(unit, threads, vector_bits): operations a second that it is measured to do */
static int unit_rate(lua_State *L) {
  enum { MOST_THREADS = 1 << 16 };
  enum jit_unit unit = check_unit(L, 1);
  lua_Integer threads = luaL_checkinteger(L, 2), bits = luaL_checkinteger(L, 3);
  ms_error err = {.instruction = -1};
  luaL_argcheck(L, threads >= 1 && threads <= MOST_THREADS, 2, "a number of threads is expected");
  luaL_argcheck(L, bits >= 128 && bits <= 512, 3, "128, 256 or 512 is expected");
  double rate = jit_unit_rate(unit, (int)threads, (int)bits, &err);
  if (rate == 0) return bind_raise(L, &err);
  lua_pushnumber(L, rate);
  return 1;
}

/* unit_is_used(unit, assembly): whether the text has an instruction of it */
static int unit_is_used(lua_State *L) {
  lua_pushboolean(L, jit_unit_is_used(check_unit(L, 1), bind_check_text(L, 2)));
  return 1;
}

void bind_units(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg functions[] = {
      {"units", units}, {"unit_rate", unit_rate}, {"unit_is_used", unit_is_used}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

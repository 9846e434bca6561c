/* Texts of times and rates; the module's functions that make them. */
#include "bind.h"
#include "rates.h"

#include <assert.h>
#include <lauxlib.h>
#include <math.h>
#include <stdio.h>

void rates_time(double seconds, char out[RATES_TEXT]) {
  static const struct {
    double least, scale;
    const char *format;
  } units[] = {{1, 1, "%.3f s"}, {1e-3, 1e3, "%.3f ms"}, {1e-6, 1e6, "%.2f us"}};
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (seconds >= units[i].least) {
      snprintf(out, RATES_TEXT, units[i].format, seconds * units[i].scale);
      return;
    }
  snprintf(out, RATES_TEXT, "%.3g ns", seconds * 1e9);
}

/* So many of a unit of 1e9, with digits that tell it from others. */
static void put_rate(double rate, const char *unit, char out[RATES_TEXT]) {
  assert(unit);
  int digits = rate >= 100 ? 0 : 1;
  if (rate >= 0.1)
    snprintf(out, RATES_TEXT, "%.*f %.30s", digits, rate, unit);
  else
    snprintf(out, RATES_TEXT, "%.2g %.30s", rate, unit);
}

void rates_operations(double operations, const char *unit, double seconds, char out[RATES_TEXT]) {
  out[0] = 0;
  if (operations != 0 && seconds > 0) put_rate(operations / seconds / 1e9, unit, out);
}

void rates_bytes(double bytes, double seconds, char out[RATES_TEXT]) {
  out[0] = 0;
  if (bytes != 0 && seconds > 0) put_rate(bytes / seconds / 1e9, "GB/s", out);
}

double rates_share(double limit_seconds, double seconds) {
  if (!(limit_seconds > 0 && isfinite(limit_seconds) && seconds > 0)) return -1;
  double share = limit_seconds / seconds;
  return share < 1 ? share : 1;
}

/* ---- In Lua ---- */

/* time_text(seconds) */
static int time_text(lua_State *L) {
  char out[RATES_TEXT];
  rates_time(luaL_checknumber(L, 1), out);
  lua_pushstring(L, out);
  return 1;
}

/* rate_text(operations, unit, seconds): "" where there are none */
static int rate_text(lua_State *L) {
  char out[RATES_TEXT];
  rates_operations(luaL_checknumber(L, 1), luaL_checkstring(L, 2), luaL_checknumber(L, 3), out);
  lua_pushstring(L, out);
  return 1;
}

/* rate_share(limit's seconds, seconds): nil where it is not known */
static int rate_share(lua_State *L) {
  double share = rates_share(luaL_checknumber(L, 1), luaL_checknumber(L, 2));
  if (share < 0) return 0;
  lua_pushnumber(L, share);
  return 1;
}

void bind_rates(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg functions[] = {
      {"time_text", time_text}, {"rate_text", rate_text}, {"rate_share", rate_share}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

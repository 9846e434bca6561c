/* What a sandboxed script sees: nothing in which one run differs from another, and nothing that cannot be stopped.
 *
 * Gone are io, os, debug, package, load and its kin, math.random, next, string.dump, collectgarbage, finalizers and
 * weak tables. pairs goes in order; addresses are not printed; print writes to standard error. The hook of limited.c
 * runs between instructions of Lua only, so library functions that could run for ever in one call are bounded here,
 * for policies and models too. */
#include "lua/bind/bind.h"
#include "pattern.h"
#include "state.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Order ---- */

static int ordered_next(lua_State *L) { /* (list of keys, position) of an iterator made by ordered_pairs */
  lua_Integer i = luaL_checkinteger(L, lua_upvalueindex(3)) + 1;
  lua_pushinteger(L, i);
  lua_replace(L, lua_upvalueindex(3));
  if (lua_rawgeti(L, lua_upvalueindex(1), i) == LUA_TNIL) return 1;
  lua_pushvalue(L, -1);
  lua_gettable(L, lua_upvalueindex(2));
  return 2;
}

static int by_key(lua_State *L) {
  bool a = lua_type(L, 1) == LUA_TNUMBER, b = lua_type(L, 2) == LUA_TNUMBER;
  if (a && b)
    lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
  else if (a != b)
    lua_pushboolean(L, a);
  else
    lua_pushboolean(L, strcmp(lua_tostring(L, 1), lua_tostring(L, 2)) < 0);
  return 1;
}

/* pairs in an order that is the same in every run: numbers ascending, then strings. Other keys have no order. */
static int ordered_pairs(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_getglobal(L, "table");
  lua_getfield(L, -1, "sort");
  lua_newtable(L);
  lua_Integer count = 0;
  lua_pushnil(L);
  while (lua_next(L, 1)) {
    lua_pop(L, 1);
    int type = lua_type(L, -1);
    if (type != LUA_TNUMBER && type != LUA_TSTRING)
      return luaL_error(L, "pairs: a key of type %s has no order that is the same in every run", luaL_typename(L, -1));
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, ++count);
  }
  lua_pushvalue(L, -2);
  lua_pushvalue(L, -2);
  lua_pushcfunction(L, by_key);
  lua_call(L, 2, 0);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, ordered_next, 3);
  return 1;
}

/* Text of a value without its address, which differs from run to run. */
static int plain_text(lua_State *L) {
  luaL_checkany(L, 1);
  int type = lua_type(L, 1);
  bool plain = type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TBOOLEAN || type == LUA_TNIL;
  if (plain || luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL)
    luaL_tolstring(L, 1, NULL);
  else
    lua_pushstring(L, luaL_typename(L, 1));
  return 1;
}

/* What runs in a sandbox, or comes from a file of a command's, may print so much; what is more is counted, and
 * sandbox_tell_left_out says how much that was. */
enum { MOST_PRINTED = 64 << 10 };
static void put(struct script *s, const char *text, size_t length) {
  size_t room = s->printed < MOST_PRINTED ? MOST_PRINTED - s->printed : 0;
  fwrite(text, 1, length < room ? length : room, stderr);
  s->printed += length;
}

void sandbox_tell_left_out(const struct script *s) {
  if (s->printed <= MOST_PRINTED) return;
  fprintf(stderr, "\nmsched: %zu bytes more that %s printed are left out: %d are shown at most\n",
          s->printed - MOST_PRINTED, s->limits.sandbox ? "rules" : "scripts", MOST_PRINTED);
}

int sandbox_print_aside(lua_State *L) {
  int count = lua_gettop(L);
  for (int i = 1; i <= count; i++) {
    size_t length;
    lua_pushcfunction(L, plain_text);
    lua_pushvalue(L, i);
    lua_call(L, 1, 1);
    const char *text = lua_tolstring(L, -1, &length);
    if (i > 1) put(script_of(L), "\t", 1);
    put(script_of(L), text, length);
    lua_pop(L, 1);
  }
  put(script_of(L), "\n", 1);
  return 0;
}

static int plain_metatable(lua_State *L) { /* setmetatable: upvalue 1 is Lua's */
  static const char *const refused[] = {"__gc", "__mode"};
  for (size_t i = 0; lua_istable(L, 2) && i < sizeof refused / sizeof *refused; i++) {
    lua_pushstring(L, refused[i]);
    if (lua_rawget(L, 2) != LUA_TNIL)
      return luaL_error(L, "setmetatable: a rule's tables have no %s, which depends on when memory is collected",
                        refused[i]);
    lua_pop(L, 1);
  }
  lua_settop(L, 2);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, 2, 1);
  return 1;
}

/* ---- Library functions that are bounded: upvalue 1 is Lua's own, called when the check has passed ---- */

/* Steps that one call may take in C, some seconds at most; and that it may take without looking at whether it is to
 * stop, tenths of a second. */
static const double MOST_STEPS = 1e9, MOST_UNSEEN = 1e7;

/* Out of a sandbox, while a policy or a model has a clock; what our own files call there ends. */
static bool is_bounded(lua_State *L) {
  const struct script *s = script_of(L);
  lua_Debug at;
  if (s->limits.sandbox || !s->calls) return s->limits.sandbox;
  return !lua_getstack(L, 1, &at) || !lua_getinfo(L, "S", &at) || !script_is_own(&at);
}

/* Many calls in a row, between which the hook has no turn, are looked at too. */
static void take_steps(lua_State *L, double steps) {
  struct script *s = script_of(L);
  s->unseen += steps;
  if (s->unseen < MOST_UNSEEN) return;
  s->unseen = 0;
  script_stop_here(L);
}

/* How often a pattern may be tried: each repetition may stop anywhere in the text, and it may begin anywhere. */
static double steps_of_match(const char *pattern, size_t length, double text) {
  double steps = text;
  bool in_set = false;
  for (size_t i = 0; i < length; i++) {
    char c = pattern[i];
    if (c == '%') {
      i++;
      if (i < length && ((pattern[i] >= '0' && pattern[i] <= '9') || pattern[i] == 'b')) steps *= text;
    } else if (c == '[' && !in_set) {
      in_set = true;
      if (i + 1 < length && pattern[i + 1] == '^') i++;
      if (i + 1 < length && pattern[i + 1] == ']') i++;
    } else if (c == ']') {
      in_set = false;
    } else if (!in_set && (c == '*' || c == '+' || c == '-')) {
      steps *= text;
    } else if (!in_set && c == '?') {
      steps *= 2;
    }
  }
  return steps * (1 + (double)length / 64);
}

static int bounded_match(lua_State *L) { /* find, match, gmatch, gsub */
  size_t text, length;
  luaL_checklstring(L, 1, &text);
  const char *pattern = luaL_checklstring(L, 2, &length);
  bool plain = lua_toboolean(L, lua_upvalueindex(2)) && lua_toboolean(L, 4);
  double steps = plain ? (double)text * (double)(length + 1) : steps_of_match(pattern, length, (double)text + 1);
  if (steps <= MOST_UNSEEN) return take_steps(L, steps), script_pass_on(L);
  if (steps > MOST_STEPS && is_bounded(L))
    return luaL_error(L, "this pattern may take too long on a text of %I bytes; take a shorter text, or fewer of * + -",
                      (LUAI_UACINT)text);
  return plain ? pattern_find_plain(L) : lua_tocfunction(L, lua_upvalueindex(3))(L);
}

/* As string.rep, in pieces between which it can be stopped. */
static int repeat_long(lua_State *L, size_t total) {
  enum { PIECE = 1 << 24 };
  size_t length, separator, done;
  const char *text = lua_tolstring(L, 1, &length), *between = luaL_optlstring(L, 3, "", &separator);
  luaL_Buffer b;
  char *to = luaL_buffinitsize(L, &b, total);
  memcpy(to, text, length);
  memcpy(to + length, between, total > length ? separator : 0);
  for (done = length + (total > length ? separator : 0); done < total;) { /* what is there is periodic */
    size_t more = done < PIECE ? done : PIECE - PIECE % (length + separator);
    if (more == 0) more = length + separator; /* a period longer than a piece */
    if (more > total - done) more = total - done;
    memcpy(to + done, to, more);
    done += more;
    script_stop_here(L);
  }
  luaL_pushresultsize(&b, total);
  return 1;
}

static int bounded_repeat(lua_State *L) {
  size_t length, separator;
  luaL_checklstring(L, 1, &length);
  lua_Integer count = luaL_checkinteger(L, 2);
  luaL_optlstring(L, 3, "", &separator);
  if (length + separator == 0) return lua_pushliteral(L, ""), 1;
  if ((double)count > MOST_STEPS && is_bounded(L)) return luaL_error(L, "string.rep: that often is too long");
  enum { LONG = 1 << 24 };
  double total = (double)count * (double)(length + separator) - (double)separator;
  if (total <= 0 || total > (double)((size_t)1 << 52)) return script_pass_on(L);
  if (total < LONG) return take_steps(L, total), script_pass_on(L);
  script_stop_here(L);
  return repeat_long(L, (size_t)count * (length + separator) - separator);
}

static int bounded_format(lua_State *L) {
  const char *format = luaL_checkstring(L, 1);
  for (const char *c = format; *c; c++) {
    if (*c != '%') continue;
    c += 1 + strspn(c + 1, "-+ #0123456789.");
    if (*c == 'p') return luaL_error(L, "string.format: %%p prints addresses, which differ from run to run");
    if (!*c) break;
  }
  for (int i = 2; i <= lua_gettop(L); i++) {
    if (lua_type(L, i) < LUA_TTABLE) continue;
    lua_pushcfunction(L, plain_text);
    lua_pushvalue(L, i);
    lua_call(L, 1, 1);
    lua_replace(L, i);
  }
  return script_pass_on(L);
}

/* A list whose length is its own, and which could be in memory. */
static int bounded_list(lua_State *L) { /* concat, insert, remove, sort, unpack */
  if (!is_bounded(L)) return script_pass_on(L);
  luaL_checktype(L, 1, LUA_TTABLE);
  if (luaL_getmetafield(L, 1, "__len") != LUA_TNIL) return luaL_error(L, "a list without __len is expected");
  if ((double)lua_rawlen(L, 1) > MOST_STEPS / 16) return luaL_error(L, "the list is too long");
  return script_pass_on(L);
}

static int bounded_move(lua_State *L) {
  lua_Integer first = luaL_checkinteger(L, 2), last = luaL_checkinteger(L, 3);
  if ((double)last - (double)first > MOST_STEPS / 16 && is_bounded(L))
    return luaL_error(L, "table.move: the list is too long");
  return script_pass_on(L);
}

/* coroutine.create, coroutine.wrap: each coroutine counts its own instructions for the hook, which many that are short,
 * one within the other, never come to. */
static int watched_coroutine(lua_State *L) {
  script_stop_here(L);
  return script_pass_on(L);
}

struct change {
  const char *table, *name;
  lua_CFunction function; /* NULL: hidden */
  bool plain;             /* of a match: the fourth argument says that the pattern is plain text */
  lua_CFunction slow;     /* of a match: what can be stopped */
};
static const struct change bounded[] = {
    {LUA_STRLIBNAME, "find", bounded_match, true, pattern_find},
    {LUA_STRLIBNAME, "match", bounded_match, false, pattern_match},
    {LUA_STRLIBNAME, "gmatch", bounded_match, false, pattern_gmatch},
    {LUA_STRLIBNAME, "gsub", bounded_match, false, pattern_gsub},
    {LUA_STRLIBNAME, "rep", bounded_repeat, false, NULL},
    {LUA_TABLIBNAME, "concat", bounded_list, false, NULL},
    {LUA_TABLIBNAME, "insert", bounded_list, false, NULL},
    {LUA_TABLIBNAME, "remove", bounded_list, false, NULL},
    {LUA_TABLIBNAME, "sort", bounded_list, false, NULL},
    {LUA_TABLIBNAME, "unpack", bounded_list, false, NULL},
    {LUA_TABLIBNAME, "move", bounded_move, false, NULL},
    {LUA_COLIBNAME, "create", watched_coroutine, false, NULL},
    {LUA_COLIBNAME, "wrap", watched_coroutine, false, NULL},
};
static const struct change changed[] = {
    {LUA_GNAME, "dofile", NULL, false, NULL},         {LUA_GNAME, "loadfile", NULL, false, NULL},
    {LUA_GNAME, "load", NULL, false, NULL},           {LUA_GNAME, "collectgarbage", NULL, false, NULL},
    {LUA_GNAME, "next", NULL, false, NULL},           {LUA_GNAME, "warn", NULL, false, NULL},
    {LUA_GNAME, "pairs", ordered_pairs, false, NULL}, {LUA_GNAME, "print", sandbox_print_aside, false, NULL},
    {LUA_GNAME, "tostring", plain_text, false, NULL}, {LUA_GNAME, "setmetatable", plain_metatable, false, NULL},
    {LUA_MATHLIBNAME, "random", NULL, false, NULL},   {LUA_MATHLIBNAME, "randomseed", NULL, false, NULL},
    {LUA_STRLIBNAME, "dump", NULL, false, NULL},      {LUA_STRLIBNAME, "format", bounded_format, false, NULL},
};

static void change_all(lua_State *L, const struct change *list, size_t count) {
  for (const struct change *c = list; c < list + count; c++) {
    lua_getglobal(L, c->table);
    lua_getfield(L, -1, c->name);
    lua_pushboolean(L, c->plain);
    if (c->slow)
      lua_pushcfunction(L, c->slow);
    else
      lua_pushnil(L);
    if (c->function)
      lua_pushcclosure(L, c->function, 3);
    else
      lua_pop(L, 3), lua_pushnil(L);
    lua_setfield(L, -2, c->name);
    lua_pop(L, 1);
  }
}

void sandbox_bound(lua_State *L) { change_all(L, bounded, sizeof bounded / sizeof *bounded); }

static int required(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (!strcmp(name, "msched")) return lua_getglobal(L, "msched"), 1;
  return luaL_error(L, "require \"%s\": a rule may require \"msched\" only", name);
}

void sandbox_open(lua_State *L) {
  static const luaL_Reg libraries[] = {{LUA_GNAME, luaopen_base},       {LUA_COLIBNAME, luaopen_coroutine},
                                       {LUA_TABLIBNAME, luaopen_table}, {LUA_STRLIBNAME, luaopen_string},
                                       {LUA_UTF8LIBNAME, luaopen_utf8}, {LUA_MATHLIBNAME, luaopen_math}};
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
    luaL_requiref(L, libraries[i].name, libraries[i].func, 1);
    lua_pop(L, 1);
  }
  change_all(L, changed, sizeof changed / sizeof *changed);
  sandbox_bound(L);
  lua_pushcfunction(L, required);
  lua_setglobal(L, "require");
}

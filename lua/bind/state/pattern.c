/* Lua's patterns, matched so that they can be stopped. Source: Lua 5.4 Reference Manual, section 6.4.1. */
#define _GNU_SOURCE
#include "pattern.h"
#include "state.h"

#include <ctype.h>
#include <lauxlib.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

enum { MOST_CAPTURES = 32, DEEPEST = 200, OPEN = -1, PLACE = -2 };
enum { LOOK_PERIOD = 1 << 16 }; /* steps, a fraction of a millisecond */

struct matching {
  lua_State *L;
  const char *text, *text_end, *pattern_end;
  int64_t left; /* steps until it looks whether it is to stop */
  int deep, level;
  struct {
    const char *at;
    ptrdiff_t length; /* or OPEN, or PLACE: the capture is a position */
  } captures[MOST_CAPTURES];
};

static void take_steps(struct matching *m, size_t count) {
  m->left -= (int64_t)count;
  if (m->left > 0) return;
  m->left = LOOK_PERIOD;
  script_stop_here(m->L);
}
static void step(struct matching *m) { take_steps(m, 1); }

/* ---- One character ---- */

static bool is_in_class(int c, int class) {
  bool in;
  switch (tolower(class)) {
  case 'a': in = isalpha(c); break;
  case 'c': in = iscntrl(c); break;
  case 'd': in = isdigit(c); break;
  case 'g': in = isgraph(c); break;
  case 'l': in = islower(c); break;
  case 'p': in = ispunct(c); break;
  case 's': in = isspace(c); break;
  case 'u': in = isupper(c); break;
  case 'w': in = isalnum(c); break;
  case 'x': in = isxdigit(c); break;
  case 'z': in = c == 0; break; /* as in Lua 5.1 */
  default: return class == c;
  }
  return in != (isupper(class) != 0);
}

/* at: the [ of a set, end: its ]. */
static bool is_in_set(int c, const char *at, const char *end) {
  bool in = at[1] != '^';
  if (!in) at++;
  while (++at < end) {
    if (*at == '%') {
      if (is_in_class(c, (unsigned char)*++at)) return in;
    } else if (at[1] == '-' && at + 2 < end) {
      if ((unsigned char)at[0] <= c && c <= (unsigned char)at[2]) return in;
      at += 2;
    } else if ((unsigned char)*at == c) {
      return in;
    }
  }
  return !in;
}

/* Behind the item, of one character, that begins here. */
static const char *end_of_item(struct matching *m, const char *p) {
  if (*p == '%') {
    if (p + 1 == m->pattern_end) luaL_error(m->L, "malformed pattern (ends with '%%')");
    return p + 2;
  }
  if (*p++ != '[') return p;
  if (*p == '^') p++;
  do { /* a ] that comes first is one of the set */
    if (p == m->pattern_end) luaL_error(m->L, "malformed pattern (missing ']')");
    if (*p++ == '%' && p < m->pattern_end) p++;
  } while (*p != ']');
  return p + 1;
}

static bool is_item(const struct matching *m, const char *s, const char *item, const char *end) {
  if (s >= m->text_end) return false;
  int c = (unsigned char)*s;
  switch (*item) {
  case '.': return true;
  case '%': return is_in_class(c, (unsigned char)item[1]);
  case '[': return is_in_set(c, item, end - 1);
  default: return (unsigned char)*item == c;
  }
}

/* ---- A pattern ---- */

static const char *match(struct matching *m, const char *s, const char *p);

static const char *match_most(struct matching *m, const char *s, const char *item, const char *end) {
  ptrdiff_t count = 0;
  while (is_item(m, s + count, item, end)) step(m), count++;
  for (; count >= 0; count--) {
    const char *found = match(m, s + count, end + 1);
    if (found) return found;
  }
  return NULL;
}

static const char *match_least(struct matching *m, const char *s, const char *item, const char *end) {
  for (;; s++) {
    const char *found = match(m, s, end + 1);
    if (found) return found;
    if (!is_item(m, s, item, end)) return NULL;
  }
}

static const char *open_capture(struct matching *m, const char *s, const char *p, int kind) {
  if (m->level >= MOST_CAPTURES) luaL_error(m->L, "too many captures");
  m->captures[m->level].at = s;
  m->captures[m->level++].length = kind;
  const char *found = match(m, s, p);
  if (!found) m->level--;
  return found;
}

static const char *close_capture(struct matching *m, const char *s, const char *p) {
  int last = m->level - 1;
  while (last >= 0 && m->captures[last].length != OPEN) last--;
  if (last < 0) luaL_error(m->L, "invalid pattern capture");
  m->captures[last].length = s - m->captures[last].at;
  const char *found = match(m, s, p);
  if (!found) m->captures[last].length = OPEN;
  return found;
}

/* %bxy: p is at x. */
static const char *match_balanced(struct matching *m, const char *s, const char *p) {
  if (p >= m->pattern_end - 1) luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
  if (s >= m->text_end || *s != *p) return NULL;
  for (int64_t open = 1; ++s < m->text_end;) {
    step(m);
    if (*s == p[1]) {
      if (--open == 0) return s + 1;
    } else if (*s == *p) {
      open++;
    }
  }
  return NULL;
}

/* %1: what a capture before has. */
static const char *match_again(struct matching *m, const char *s, int digit) {
  int i = digit - '1';
  if (i < 0 || i >= m->level || m->captures[i].length == OPEN) luaL_error(m->L, "invalid capture index %%%d", i + 1);
  size_t length = (size_t)m->captures[i].length;
  if ((size_t)(m->text_end - s) < length) return NULL;
  take_steps(m, length / 16); /* that many bytes are compared at once */
  return memcmp(m->captures[i].at, s, length) ? NULL : s + length;
}

/* %f[set]: p is at the set. */
static bool is_frontier(struct matching *m, const char *s, const char *p, const char **end) {
  if (*p != '[') luaL_error(m->L, "missing '[' after '%%f' in pattern");
  *end = end_of_item(m, p);
  int before = s == m->text ? 0 : (unsigned char)s[-1];
  return !is_in_set(before, p, *end - 1) && is_in_set((unsigned char)*s, p, *end - 1);
}

/* What stands for more than one character, or none. False: the item at *p is of one character. */
static bool match_special(struct matching *m, const char **s, const char **p, bool *done) {
  const char *at = *p;
  *done = false;
  if (*at == '(') {
    bool place = at[1] == ')';
    *s = open_capture(m, *s, place ? at + 2 : at + 1, place ? PLACE : OPEN);
    return *done = true;
  }
  if (*at == ')') return *s = close_capture(m, *s, at + 1), *done = true;
  if (*at == '$' && at + 1 == m->pattern_end) return *s = *s == m->text_end ? *s : NULL, *done = true;
  if (*at != '%') return false;
  const char *end = at + 2;
  switch (at[1]) {
  case 'b': *s = match_balanced(m, *s, at + 2), end = at + 4; break;
  case 'f':
    if (!is_frontier(m, *s, at + 2, &end)) *s = NULL;
    break;
  case '0':
  case '1':
  case '2':
  case '3':
  case '4':
  case '5':
  case '6':
  case '7':
  case '8':
  case '9': *s = match_again(m, *s, (unsigned char)at[1]); break;
  default: return false;
  }
  *done = *s == NULL;
  *p = end;
  return true;
}

/* Where a match of the pattern from p on ends that begins at s; NULL: there is none. */
static const char *match(struct matching *m, const char *s, const char *p) {
  if (m->deep++ == DEEPEST) luaL_error(m->L, "pattern too complex");
  while (p != m->pattern_end) {
    bool done;
    step(m);
    if (match_special(m, &s, &p, &done)) {
      if (done) break;
      continue;
    }
    const char *end = end_of_item(m, p), *found;
    if (*end == '*' || *end == '+' || *end == '-') {
      bool one = *end == '+' && is_item(m, s, p, end);
      if (*end == '+' && !one)
        s = NULL;
      else
        s = *end == '-' ? match_least(m, s, p, end) : match_most(m, s + one, p, end);
      break;
    }
    bool is = is_item(m, s, p, end);
    if (*end == '?') {
      if (is && (found = match(m, s + 1, end + 1))) {
        s = found;
        break;
      }
      p = end + 1;
    } else if (is) {
      s++, p = end;
    } else {
      s = NULL;
      break;
    }
  }
  m->deep--;
  return s;
}

static const char *match_at(struct matching *m, const char *s, const char *p) {
  m->level = m->deep = 0;
  step(m);
  return match(m, s, p);
}

/* ---- Results ---- */

/* A capture, or the whole match where there are none. */
static void push_capture(struct matching *m, int i, const char *s, const char *end) {
  if (i >= m->level) {
    if (i != 0) luaL_error(m->L, "invalid capture index %%%d", i + 1);
    lua_pushlstring(m->L, s, (size_t)(end - s));
  } else if (m->captures[i].length == PLACE) {
    lua_pushinteger(m->L, m->captures[i].at - m->text + 1);
  } else {
    if (m->captures[i].length == OPEN) luaL_error(m->L, "unfinished capture");
    lua_pushlstring(m->L, m->captures[i].at, (size_t)m->captures[i].length);
  }
}

static int push_captures(struct matching *m, const char *s, const char *end, bool whole) {
  int count = m->level == 0 && whole ? 1 : m->level;
  luaL_checkstack(m->L, count, "too many captures");
  for (int i = 0; i < count; i++) push_capture(m, i, s, end);
  return count;
}

/* Of the text and the pattern at these places of the stack. */
static struct matching begin(lua_State *L, int text, int pattern, const char **p) {
  size_t length, pattern_length;
  struct matching m = {.L = L, .text = luaL_checklstring(L, text, &length), .left = LOOK_PERIOD};
  *p = luaL_checklstring(L, pattern, &pattern_length);
  m.text_end = m.text + length;
  m.pattern_end = *p + pattern_length;
  return m;
}

/* Where a search begins, by a place from 1, or from the end where it is negative. NULL: behind the end. */
static const char *first_place(const struct matching *m, lua_Integer from) {
  lua_Integer length = m->text_end - m->text;
  if (from < 0) from = from < -length ? 1 : length + from + 1;
  if (from == 0) from = 1;
  return from > length + 1 ? NULL : m->text + from - 1;
}

static int search(lua_State *L, bool find) {
  const char *p;
  struct matching m = begin(L, 1, 2, &p);
  const char *s = first_place(&m, luaL_optinteger(L, 3, 1));
  bool anchored = *p == '^' && p < m.pattern_end;
  if (anchored) p++;
  for (; s && s <= m.text_end; s++) {
    const char *end = match_at(&m, s, p);
    if (end && find) {
      lua_pushinteger(L, s - m.text + 1);
      lua_pushinteger(L, end - m.text);
      return 2 + push_captures(&m, s, end, false);
    }
    if (end) return push_captures(&m, s, end, true);
    if (anchored) break;
  }
  return lua_pushnil(L), 1;
}
int pattern_find(lua_State *L) { return search(L, true); }
int pattern_match(lua_State *L) { return search(L, false); }

int pattern_find_plain(lua_State *L) {
  const char *p;
  struct matching m = begin(L, 1, 2, &p);
  const char *s = first_place(&m, luaL_optinteger(L, 3, 1));
  size_t length = (size_t)(m.pattern_end - p);
  s = s ? memmem(s, (size_t)(m.text_end - s), p, length) : NULL;
  if (!s) return lua_pushnil(L), 1;
  lua_pushinteger(L, s - m.text + 1);
  lua_pushinteger(L, s - m.text + (lua_Integer)length);
  return 2;
}

/* Upvalues: the text, the pattern, where the next search begins, where the last match ended (-1: none), from 0. */
static int next_match(lua_State *L) {
  const char *p;
  struct matching m = begin(L, lua_upvalueindex(1), lua_upvalueindex(2), &p);
  lua_Integer from = lua_tointeger(L, lua_upvalueindex(3)), last = lua_tointeger(L, lua_upvalueindex(4));
  for (const char *s = m.text + from; s <= m.text_end; s++) {
    const char *end = match_at(&m, s, p);
    if (!end || end - m.text == last) continue;
    lua_pushinteger(L, end - m.text);
    lua_copy(L, -1, lua_upvalueindex(3));
    lua_replace(L, lua_upvalueindex(4));
    return push_captures(&m, s, end, true);
  }
  return 0;
}

int pattern_gmatch(lua_State *L) {
  const char *p;
  struct matching m = begin(L, 1, 2, &p);
  const char *s = first_place(&m, luaL_optinteger(L, 3, 1));
  lua_settop(L, 2);
  lua_pushinteger(L, s ? s - m.text : m.text_end - m.text + 1);
  lua_pushinteger(L, -1);
  lua_pushcclosure(L, next_match, 4);
  return 1;
}

static void add_text(struct matching *m, luaL_Buffer *b, const char *s, const char *end) {
  size_t length;
  const char *text = lua_tolstring(m->L, 3, &length), *stop = text + length;
  for (; text < stop; text++) {
    if (*text != '%') {
      luaL_addchar(b, *text);
    } else if (*++text == '%') {
      luaL_addchar(b, *text);
    } else if (*text == '0') {
      luaL_addlstring(b, s, (size_t)(end - s));
    } else if (isdigit((unsigned char)*text)) {
      push_capture(m, *text - '1', s, end);
      luaL_tolstring(m->L, -1, NULL); /* a position is a number */
      lua_remove(m->L, -2);
      luaL_addvalue(b);
    } else {
      luaL_error(m->L, "invalid use of '%%' in replacement string");
    }
  }
}

/* Adds what stands for a match. False: it stays. */
static bool add_value(struct matching *m, luaL_Buffer *b, const char *s, const char *end) {
  lua_State *L = m->L;
  int type = lua_type(L, 3);
  if (type != LUA_TTABLE && type != LUA_TFUNCTION) return add_text(m, b, s, end), true;
  if (type == LUA_TFUNCTION) {
    lua_pushvalue(L, 3);
    lua_call(L, push_captures(m, s, end, true), 1);
  } else {
    push_capture(m, 0, s, end);
    lua_gettable(L, 3);
  }
  if (!lua_toboolean(L, -1)) {
    lua_pop(L, 1);
    luaL_addlstring(b, s, (size_t)(end - s));
    return false;
  }
  if (!lua_isstring(L, -1)) luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
  luaL_addvalue(b);
  return true;
}

int pattern_gsub(lua_State *L) {
  const char *p, *last = NULL;
  struct matching m = begin(L, 1, 2, &p);
  const char *s = m.text;
  int type = lua_type(L, 3);
  bool anchored = *p == '^' && p < m.pattern_end, changed = false;
  luaL_argexpected(L, type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
                   "string/function/table");
  lua_Integer most = luaL_optinteger(L, 4, m.text_end - m.text + 1), count = 0;
  luaL_Buffer b;
  if (anchored) p++;
  luaL_buffinit(L, &b);
  while (count < most) {
    const char *end = match_at(&m, s, p);
    if (end && end != last) {
      count++;
      changed |= add_value(&m, &b, s, end);
      s = last = end;
    } else if (s < m.text_end) {
      luaL_addchar(&b, *s++);
    } else {
      break;
    }
    if (anchored) break;
  }
  luaL_addlstring(&b, s, (size_t)(m.text_end - s));
  luaL_pushresult(&b);
  if (!changed) lua_pushvalue(L, 1), lua_remove(L, -2);
  lua_pushinteger(L, count);
  return 2;
}

#define _GNU_SOURCE
/* Text that came from elsewhere, as it may be shown: nothing in it moves the cursor, changes colours or the order of
 * what stands beside it. */
#include "visible.h"

#include "lua/bind/bind.h"
#include "lua/bind/search/bind_search.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t visible_character(const char *text, size_t length, uint32_t *out) {
  assert(text && length && out);
  const unsigned char *at = (const unsigned char *)text;
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t size = at[0] < 0x80 ? 1 : at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : at[0] >= 0xc2 ? 2 : 0;
  if (!size || size > length || at[0] > 0xf4) return 0;
  uint32_t c = size == 1 ? at[0] : at[0] & (0x7fu >> size);
  for (size_t i = 1; i < size; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
    c = c << 6 | (at[i] & 0x3f);
  }
  *out = c;
  return c < least[size] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : size;
}

static bool acts(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
         (c >= 0xe0000 && c < 0xe0080);
}

/* "\27[…m", which is all that a printer of this program writes of colours; its length, or 0. */
static size_t colour_at(const char *at, size_t length) {
  if (length < 3 || at[0] != 27 || at[1] != '[') return 0;
  size_t digits = strspn(at + 2, "0123456789;");
  return digits < 8 && digits + 2 < length && at[digits + 2] == 'm' ? digits + 3 : 0;
}

static void put_escaped(FILE *out, const char *at, size_t size, uint32_t c, enum visible how) {
  if (how == VISIBLE_LUA || !size)
    for (size_t i = 0; i < (size ? size : 1); i++)
      fprintf(out, how == VISIBLE_LUA ? "\\%03u" : "\\x%02x", (unsigned)(unsigned char)at[i]);
  else if (c == '\n' || c == '\r' || c == '\t')
    fprintf(out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
  else
    fprintf(out, c < 0x80 && how != VISIBLE_JSON ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)c);
}

/* Bytes at the start that stay as they are, however they are shown. */
static size_t count_plain(const char *text, size_t length) {
  size_t i = 0;
  while (i < length && text[i] >= ' ' && text[i] < 0x7f) i++;
  return i;
}

char *visible_text(const char *text, size_t length, enum visible how) {
  assert(text || !length);
  char *all = count_plain(text, length) == length ? strndup(text, length) : NULL;
  size_t made, size;
  if (all) return all;
  FILE *out = open_memstream(&all, &made);
  if (!out) abort();
  for (size_t i = 0; i < length; i += size ? size : 1) {
    uint32_t c = 0;
    if ((size = count_plain(text + i, length - i)) > 0) {
      fwrite(text + i, 1, size, out);
      continue;
    }
    size = how == VISIBLE_SCRIPT ? colour_at(text + i, length - i) : 0;
    if (size) {
      fwrite(text + i, 1, size, out);
      continue;
    }
    size = visible_character(text + i, length - i, &c);
    bool stays = size && (!acts(c) || (how != VISIBLE_LINE && (c == '\n' || c == '\t')));
    if (stays)
      fwrite(text + i, 1, size, out);
    else
      put_escaped(out, text + i, size, c, how);
  }
  if (fclose(out) != 0) abort();
  return all;
}

void visible_put(const char *text, enum visible how) {
  char *shown = visible_text(text, strlen(text), how);
  fputs(shown, stdout);
  free(shown);
}

void visible_complain(const char *before, const char *text) {
  char *shown = visible_text(text, strlen(text), VISIBLE_LINES);
  fprintf(stderr, "%s%s\n", before, shown);
  free(shown);
}

/* visible(text [, how]) */
static int visible(lua_State *L) {
  static const char *const ways[] = {"line", "lines", "script", "lua", NULL};
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length);
  char *shown = visible_text(text, length, (enum visible)luaL_checkoption(L, 2, "line", ways));
  lua_pushstring(L, shown);
  free(shown);
  return 1;
}

void bind_visible(lua_State *L) {
  assert(lua_istable(L, -1));
  lua_pushcfunction(L, visible);
  lua_setfield(L, -2, "visible");
}

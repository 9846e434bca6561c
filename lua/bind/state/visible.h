/* Text that came from elsewhere (a store, a file, a message of a script), as it may be shown on a terminal. */
#ifndef MSCHED_LUA_VISIBLE_H
#define MSCHED_LUA_VISIBLE_H

#include <stddef.h>
#include <stdint.h>

/* How what a terminal would act on is written: control characters (C0, DEL, C1), marks that turn the direction of text
 * or end a line, and bytes that are no UTF-8. */
enum visible {
  VISIBLE_LINE,   /* all of them: "\x1b", "\u009b" */
  VISIBLE_LINES,  /* but ends of lines and tabs */
  VISIBLE_SCRIPT, /* as lines, of TVMScript or source: colours stay, since its printer escapes those of strings */
  VISIBLE_LUA,    /* as lines, of a trace in Lua: bytes as "\155" */
  VISIBLE_JSON    /* as lines, of JSON */
};
/* The character at the start of a text and how many bytes it has; 0: they are no UTF-8 (also what is longer than it
 * must be, and halves of pairs). */
size_t visible_character(const char *at, size_t length, uint32_t *out);
/* The caller's to free(). */
char *visible_text(const char *text, size_t length, enum visible how);
/* A message and its newline on standard error, as VISIBLE_LINES. */
void visible_put(const char *text, enum visible how); /* on standard output */
void visible_complain(const char *before, const char *text);

#endif

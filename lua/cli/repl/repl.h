/* The interactive session. Internal to lua. */
#ifndef MSCHED_LUA_REPL_H
#define MSCHED_LUA_REPL_H

#include "lua/bind/bind.h"

/* ---- Reading lines (repl_edit.c) ---- */

enum repl_input { REPL_LINE, REPL_INTERRUPTED, REPL_END };

struct repl_editor; /* of a terminal: libedit's editor and history */
/* L: the state whose names Tab completes, with the function complete(text) at index `complete` of the registry;
 * borrowed. NULL: the terminal cannot be edited on. */
struct repl_editor *repl_editor_new(lua_State *L, int complete);
void repl_editor_free(struct repl_editor *editor);
/* Calls upvalue 1 with the text at an address, for all that it gives: a push of the string could raise outside of a
 * protected call. */
int repl_with_text(lua_State *L);
/* Keeps an input, of one line or several, in the history; one of blanks is not kept. */
void repl_remember(struct repl_editor *editor, const char *input);
/* A line without its newline, valid until the next call; several where an input of several was brought back. */
enum repl_input repl_edit(struct repl_editor *editor, const char *prompt, const char **line, size_t *length);

/* ---- What the session knows of values (repl.c) ---- */

/* print shows functions, schedules and traces in colour where it is wanted. May raise. */
int repl_colour_print(lua_State *L);

#endif

/* What a file holds that was taken for text. */
#ifndef MSCHED_LUA_FORMAT_H
#define MSCHED_LUA_FORMAT_H

#include "tir/tir.h"

#include <lua.h>

/* Refuses what is no text, with `expected` saying what is read there. Returns false with err filled, MS_IO. */
bool format_expect_text(const char *path, const char *bytes, size_t length, const char *expected, ms_error *err);
/* What is read where functions are. */
extern const char format_functions[];
/* Pushes the chunk of a script as luaL_loadfilex does, text only, or a message, which says where a file is no text.
 * path NULL: standard input. */
bool format_load_script(lua_State *L, const char *path);
/* Makes the message on the top of the stack, of a script that Lua did not take, say where its text is none. */
void format_explain(lua_State *L, const char *path, const char *bytes, size_t length);
void bind_formats(lua_State *L); /* adds to the module on the top of the stack */
void format_open(lua_State *L);  /* replaces the globals dofile and loadfile */

#endif

/* Commands that are written in Lua (commands.lua): tune and what works on the store. */
#include "cli.h"
#include "lua/bind/bind.h"
#include "lua/bind/state/visible.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* terminal_width(): its columns, 80 where it does not say; nil: standard output is none. */
static int terminal_width(lua_State *L) {
  struct winsize size;
  if (!isatty(STDOUT_FILENO)) return 0;
  bool says = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  lua_pushinteger(L, says ? size.ws_col : 80);
  return 1;
}

/* terminal_height(): its lines, 24 where it does not say. */
static int terminal_height(lua_State *L) {
  struct winsize size;
  bool says = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  lua_pushinteger(L, says ? size.ws_row : 24);
  return 1;
}

static int is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty(STDOUT_FILENO));
  return 1;
}

void cli_add_terminal(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg functions[] = {{"is_terminal", is_terminal},
                                       {"terminal_width", terminal_width},
                                       {"terminal_height", terminal_height},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

static void complain(const struct cli_command *self, const char *message) {
  char before[80];
  snprintf(before, sizeof before, "msched %s: ", self->name);
  visible_complain(before, message);
}

/* Pushes a table of the options by their keys, a list of the arguments, and one of what follows "--". */
static bool push_words(lua_State *L, const struct cli_command *self, int argc, char **argv) {
  struct cli_words words = cli_words_of(self, argc, argv);
  struct cli_word word;
  enum cli_read read;
  lua_newtable(L);
  lua_newtable(L);
  lua_newtable(L);
  int options = lua_gettop(L) - 2;
  while ((read = cli_next(&words, &word)) == CLI_WORD) {
    enum cli_kind kind = word.option ? word.option->kind : CLI_TEXT;
    if (kind == CLI_WHOLE && word.whole > LUA_MAXINTEGER)
      return cli_wrong_usage(self, "%s: %s is too large", word.option->name, word.text), false;
    if (kind == CLI_FLAG)
      lua_pushboolean(L, true);
    else if (kind == CLI_WHOLE)
      lua_pushinteger(L, (lua_Integer)word.whole);
    else if (kind == CLI_NUMBER)
      lua_pushnumber(L, word.number);
    else
      lua_pushstring(L, word.text);
    int list = word.rest ? options + 2 : options + 1;
    if (kind == CLI_LIST || kind == CLI_DIM) { /* the value, under a table of those before it */
      luaL_getsubtable(L, options, cli_option_key(word.option));
      lua_insert(L, -2);
      lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
      lua_pop(L, 1);
    } else if (word.option) {
      lua_setfield(L, options, cli_option_key(word.option));
    } else {
      lua_rawseti(L, list, (lua_Integer)lua_rawlen(L, list) + 1);
    }
  }
  return read == CLI_END;
}

/* What was begun ends in an orderly way: a candidate that runs takes a while. */
static void catch_stops(void) {
  script_catch(SIGINT, true), script_catch(SIGTERM, true);
  script_say_when_slow(5);
}

/* take_interrupts(): from now on the command looks at interrupts itself, as tuning does. */
static int take_interrupts(lua_State *L) {
  (void)L;
  catch_stops();
  return 0;
}

/* Tuning looks at the interrupt, and ends in an orderly way; the hook must not raise in it. A second one kills, as the
 * first does with the other commands: a store takes no harm from it. */
int cli_lua(const struct cli_command *self, int argc, char **argv) {
  ms_error err = {.instruction = -1};
  if (!strcmp(self->name, "tune")) catch_stops();
  struct script_limits limits = {.patient = true};
  lua_State *L = script_new(&limits, &err);
  if (!L) return cli_report(&err, NULL, false);
  lua_getglobal(L, "msched");
  cli_add_terminal(L);
  lua_pushcfunction(L, cli_take_intrinsics);
  lua_setfield(L, -2, "take_intrinsics");
  lua_pushcfunction(L, take_interrupts);
  lua_setfield(L, -2, "take_interrupts");
  char data[PATH_MAX];
  script_path("lua/bench/data", data, sizeof data);
  lua_pushstring(L, data);
  lua_setfield(L, -2, "bench_data");
  lua_getfield(L, -1, "load");
  lua_pushliteral(L, "lua.cli.commands");
  int status = CLI_FAILED;
  if (!script_call(L, 1, 1, &err)) {
    cli_report(&err, NULL, false);
  } else {
    lua_pushstring(L, self->name);
    if (!push_words(L, self, argc, argv)) {
      status = CLI_USAGE;
    } else if (!script_call(L, 4, 2, &err)) {
      cli_report(&err, NULL, false);
    } else {
      status = (int)lua_tointeger(L, -2);
      if (status == CLI_USAGE)
        status = cli_wrong_usage(self, "%s", lua_tostring(L, -1));
      else if (lua_isstring(L, -1))
        complain(self, lua_tostring(L, -1));
    }
  }
  script_close(L);
  return status;
}

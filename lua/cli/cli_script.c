/* msched FILE.lua [ARG…]: runs a script. */
#include "cli.h"
#include "lua/bind/bind.h"
#include "lua/cli/repl/repl.h"

#include <signal.h>

int cli_script(int argc, char **argv) {
  assert(argc > 0 && argv[0]);
  ms_error err = {.instruction = -1};
  script_catch(SIGINT, true);
  script_say_when_slow(2);
  const struct script_limits limits = {.is_program = true};
  lua_State *L = script_new(&limits, &err);
  if (!L) return cli_report(&err, NULL, false);
  lua_pushcfunction(L, repl_colour_print);
  if (!script_call(L, 0, 0, &err)) {
    script_close(L);
    return cli_report(&err, NULL, false);
  }
  lua_createtable(L, argc, 1);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i);
  }
  lua_setglobal(L, "arg");
  luaL_checkstack(L, argc + 8, "too many arguments");
  for (int i = 1; i < argc; i++) lua_pushstring(L, argv[i]);
  bool ok = script_run_file(L, argv[0], argc - 1, 0, &err);
  script_close(L);
  return ok ? CLI_DONE : cli_report(&err, NULL, false);
}

/* Commands that are written in Lua (commands.lua): tune and what works on the store. */
#include "bind.h"
#include "cli.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void on_interrupt(int unused) {
  (void)unused;
  script_interrupt();
}

static int is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty(STDOUT_FILENO));
  return 1;
}

/* Tuning looks at the interrupt, and ends in an orderly way; the hook must not raise in it. A second one kills, as the
 * first does with the other commands: a store takes no harm from it. */
int cli_lua(const struct cli_command *self, int argc, char **argv) {
  ms_error err = {.instruction = -1};
  bool tunes = !strcmp(self->name, "tune");
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
  if (tunes) sigaction(SIGINT, &action, NULL), sigaction(SIGTERM, &action, NULL);
  struct script_limits limits = {.patient = true};
  lua_State *L = script_new(&limits, &err);
  if (!L) return cli_report(&err, NULL, false);
  lua_getglobal(L, "msched");
  lua_pushcfunction(L, is_terminal);
  lua_setfield(L, -2, "is_terminal");
  char data[PATH_MAX];
  script_path("tests/bench", data, sizeof data);
  lua_pushstring(L, data);
  lua_setfield(L, -2, "bench_data");
  lua_getfield(L, -1, "load");
  lua_pushliteral(L, "lua.commands");
  int status = CLI_FAILED;
  if (!script_call(L, 1, 1, &err)) {
    cli_report(&err, NULL, false);
  } else {
    lua_pushstring(L, self->name);
    luaL_checkstack(L, argc + 8, "too many arguments");
    for (int i = 0; i < argc; i++) lua_pushstring(L, argv[i]);
    if (!script_call(L, argc + 1, 2, &err)) {
      cli_report(&err, NULL, false);
    } else {
      status = (int)lua_tointeger(L, -2);
      if (status == CLI_USAGE)
        status = cli_wrong_usage(self, "%s", lua_tostring(L, -1));
      else if (lua_isstring(L, -1))
        fprintf(stderr, "msched %s: %s\n", self->name, lua_tostring(L, -1));
    }
  }
  script_close(L);
  return status;
}

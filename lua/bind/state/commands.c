/* Commands of the shell that a policy or a model starts, by os.execute and io.popen: they end when the call must. The C
 * library's wait for theirs, whatever happens. Where a call has no clock, they are the C library's. */
#include "lua/bind/bind.h"
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static const double LOOK_EVERY = 0.1; /* seconds */
static const double LEFT_ALONE = 0.2; /* that one has to end by itself, once its file is closed and no clock runs */

static bool has_clock(const struct script *s) { return s->clock != NULL; }

/* Waits for it; one that must end is ended. Frees it, and gives its status. */
static int finish(const struct script *s, struct jit_command *command) {
  int status;
  double waited = 0;
  while (!jit_command_wait(command, LOOK_EVERY, &status)) {
    waited += LOOK_EVERY;
    if (script_must_stop(s) || (!has_clock(s) && waited >= LEFT_ALONE)) break;
  }
  jit_command_free(command);
  return status;
}

/* os.execute([command]) */
static int execute(lua_State *L) {
  const struct script *s = script_of(L);
  const char *text = luaL_optstring(L, 1, NULL);
  int fd;
  if (!text || !has_clock(s)) return script_pass_on(L);
  script_stop_here(L);
  ms_error err = {.instruction = -1};
  struct jit_command *command = jit_command_new(text, JIT_COMMAND_ALONE, &fd, &err);
  if (!command) return luaL_fileresult(L, 0, NULL);
  int status = finish(s, command);
  if (script_must_stop(s)) lua_sethook(L, script_watch, LUA_MASKCOUNT, 1);
  script_stop_here(L);
  errno = status == -1 ? ECHILD : 0;
  return luaL_execresult(L, status);
}

struct command_file { /* io's functions know it by its first field */
  luaL_Stream stream;
  struct jit_command *command;
};

/* What is not written yet must not be waited for where nothing would end that. */
static int close_command(lua_State *L) {
  const struct script *s = script_of(L);
  struct command_file *file = luaL_checkudata(L, 1, LUA_FILEHANDLE);
  if (script_must_stop(s) || !has_clock(s)) fcntl(fileno(file->stream.f), F_SETFL, O_NONBLOCK);
  fclose(file->stream.f);
  int status = finish(s, file->command);
  file->command = NULL;
  errno = status == -1 ? ECHILD : 0;
  return luaL_execresult(L, status);
}

/* io.popen(command [, mode]) */
static int open_command(lua_State *L) {
  const char *text = luaL_checkstring(L, 1), *mode = luaL_optstring(L, 2, "r");
  if (!has_clock(script_of(L))) return script_pass_on(L);
  luaL_argcheck(L, (*mode == 'r' || *mode == 'w') && !mode[1], 2, "invalid mode");
  struct command_file *file = lua_newuserdatauv(L, sizeof *file, 0);
  file->stream.closef = NULL; /* not a file yet */
  luaL_setmetatable(L, LUA_FILEHANDLE);
  int fd;
  ms_error err = {.instruction = -1};
  file->command = jit_command_new(text, *mode == 'r' ? JIT_COMMAND_READ : JIT_COMMAND_WRITTEN, &fd, &err);
  if (!file->command) return luaL_fileresult(L, 0, text);
  file->stream.f = fdopen(fd, mode);
  if (file->stream.f) return file->stream.closef = close_command, 1;
  int failed = errno;
  close(fd);
  jit_command_free(file->command);
  errno = failed;
  return luaL_fileresult(L, 0, text);
}

void commands_open(lua_State *L) {
  script_replace(L, LUA_OSLIBNAME, "execute", execute);
  script_replace(L, LUA_IOLIBNAME, "popen", open_command);
}

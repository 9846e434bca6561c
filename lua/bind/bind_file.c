/* Files that others read while they are written, temporary folders, and waiting. */
#define _GNU_SOURCE
#include "bind_search.h"
#include "jit/jit.h"
#include "lua/bind/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Writes all of it; 0, or what went wrong. */
static int write_all(int file, const char *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t wrote = write(file, bytes + done, size - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    done += (size_t)wrote;
  }
  return 0;
}

/* The rights of a file: of the one that is there, or what a new one would have. */
static mode_t rights_of(const char *path) {
  struct stat old;
  if (stat(path, &old) == 0) return old.st_mode & 0777;
  mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

/* A file beside the one that is made takes its place, or nothing changes. 0, or what went wrong. */
static int replace(const char *path, const char *bytes, size_t size) {
  char *made;
  if (asprintf(&made, "%s.XXXXXX", path) < 0) abort();
  mode_t rights = rights_of(path);
  int file = mkostemp(made, O_CLOEXEC), kept = file < 0 ? -1 : jit_temporary(made);
  int why = file < 0 ? errno : write_all(file, bytes, size);
  if (file >= 0) {
    if (!why && fchmod(file, rights) != 0) why = errno;
    if (close(file) != 0 && !why) why = errno;
    if (!why && rename(made, path) != 0) why = errno;
    if (why) unlink(made);
  }
  jit_temporary_end(kept);
  free(made);
  return why;
}

/* replace_file(path, text): the file has the whole text, or what it had; who reads it never sees a part. Where the path
 * is a link, what it leads to. true; nil and a message. */
static int replace_file(lua_State *L) {
  size_t size;
  const char *path = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &size);
  struct stat there;
  if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: this is %s, and no file that can be replaced", path,
                    S_ISDIR(there.st_mode) ? "a folder" : "a device or a pipe");
    return 2;
  }
  char *real = realpath(path, NULL);
  int why = replace(real ? real : path, text, size);
  free(real);
  if (!why) return lua_pushboolean(L, true), 1;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(why));
  return 2;
}

/* with_folder(f): calls f with the path of an empty folder, which is removed afterwards with what it holds, also where
 * f raises or a signal ends the process; gives what f gives. */
static int with_folder(lua_State *L) {
  const char *under = getenv("TMPDIR");
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_settop(L, 1);
  const char *path = lua_pushfstring(L, "%s/msched-XXXXXX", under && *under ? under : "/tmp"); /* stays on the stack */
  lua_insert(L, 1);
  char *made = strdup(path);
  if (!made) abort();
  int kept = mkdtemp(made) ? jit_temporary(made) : -1;
  if (kept < 0) {
    int why = errno;
    if (rmdir(made) == 0) why = EMFILE; /* it was made, and cannot be remembered */
    lua_pushfstring(L, "%s: no folder can be made: %s", made, strerror(why));
    free(made);
    return lua_error(L);
  }
  lua_pushstring(L, made);
  free(made);
  int status = lua_pcall(L, 1, LUA_MULTRET, 0);
  jit_temporary_end(kept);
  return status == LUA_OK ? lua_gettop(L) - 1 : lua_error(L);
}

/* sleep(seconds): until they are over, or the user interrupts. */
static int sleep_seconds(lua_State *L) {
  double until = script_now() + luaL_checknumber(L, 1);
  for (double left; (left = until - script_now()) > 0 && !script_interrupted();) {
    struct timespec slice = {.tv_nsec = left < 0.05 ? (long)(1e9 * left) : 50000000};
    nanosleep(&slice, NULL);
  }
  return 0;
}

void bind_files(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"replace_file", replace_file}, {"with_folder", with_folder}, {"sleep", sleep_seconds}, {NULL, NULL}};
  assert(lua_istable(L, -1));
  luaL_setfuncs(L, functions, 0);
}

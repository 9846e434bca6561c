/* Files that users name, files that others read while they are written, temporary folders, and waiting. */
#define _GNU_SOURCE
#include "jit/jit.h"
#include "lua/bind/search/bind_search.h"
#include "lua/bind/state/state.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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

/* Whether a file is a store's, by the mark of its first page. Source: LMDB 0.9, mdb.c. */
static bool is_store(const char *path) {
  static const char mark[] = {'\xde', '\xc0', '\xef', '\xbe'};
  char head[20] = "";
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  bool is = file >= 0 && read(file, head, sizeof head) == sizeof head && !memcmp(head + 16, mark, sizeof mark);
  if (file >= 0) close(file);
  return is;
}

bool bind_open_output(struct bind_output *out, const char *path, ms_error *err) {
  struct stat there;
  assert(out && path);
  *out = (struct bind_output){.file = stdout, .temporary = -1};
  if (!strcmp(path, "-")) return true;
  bool exists = stat(path, &there) == 0;
  if (exists && S_ISREG(there.st_mode) && is_store(path))
    return ms_fail(err, MS_IO, "%s: this is a store of records, which nothing else replaces; name another file", path);
  out->path = realpath(path, NULL);
  if (!out->path) out->path = strdup(path);
  if (exists && !S_ISREG(there.st_mode)) {
    out->file = fopen(path, "w");
  } else {
    mode_t rights = rights_of(out->path);
    if (asprintf(&out->made, "%s.XXXXXX", out->path) < 0) abort();
    int file = mkostemp(out->made, O_CLOEXEC);
    out->temporary = file < 0 ? -1 : jit_temporary(out->made);
    out->file = file < 0 || fchmod(file, rights) ? NULL : fdopen(file, "w");
    int why = errno;
    if (!out->file && file >= 0) close(file), unlink(out->made);
    errno = why;
  }
  if (out->file) return true;
  ms_fail(err, MS_IO, "%s: cannot be written: %s", path, strerror(errno));
  jit_temporary_end(out->temporary);
  free(out->path), free(out->made);
  return false;
}

bool bind_close_output(struct bind_output *out, bool ok, ms_error *err) {
  assert(out && out->file);
  bool own = out->file != stdout, wrote = fflush(out->file) == 0;
  if (own && fclose(out->file) != 0) wrote = false;
  if (ok && out->made && wrote) wrote = rename(out->made, out->path) == 0;
  if (ok && !wrote)
    ok = ms_fail(err, MS_IO, "%s: cannot be written: %s", own ? out->path : "standard output", strerror(errno));
  if (!ok && out->made) unlink(out->made);
  jit_temporary_end(out->temporary);
  free(out->path), free(out->made);
  return ok;
}

/* replace_file(path, text): the file has the whole text, or what it had; who reads it never sees a part. Where the path
 * is a link, what it leads to. true; nil, a message, and whether there is a device or a pipe, which can be written
 * to. */
static int replace_file(lua_State *L) {
  size_t size;
  const char *path = bind_check_text(L, 1), *text = luaL_checklstring(L, 2, &size);
  struct stat there;
  if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: this is %s, and no file that can be replaced", path,
                    S_ISDIR(there.st_mode) ? "a folder" : "a device or a pipe");
    return lua_pushboolean(L, !S_ISDIR(there.st_mode)), 3;
  }
  if (is_store(path)) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: this is a store of records, which nothing else replaces; name another file", path);
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
    lua_pushfstring(L, "%s: no folder can be made: %s; set TMPDIR to one that can be written", made, strerror(why));
    free(made);
    return lua_error(L);
  }
  lua_pushstring(L, made);
  free(made);
  int status = lua_pcall(L, 1, LUA_MULTRET, 0);
  jit_temporary_end(kept);
  return status == LUA_OK ? lua_gettop(L) - 1 : lua_error(L);
}

/* ---- Reading ---- */

static const char *fault_of(int file) {
  struct stat is;
  if (fstat(file, &is) != 0) return strerror(errno);
  if (S_ISDIR(is.st_mode)) return strerror(errno = EISDIR);
  bool ends = isatty(file) || (is.st_rdev == makedev(1, 3)); /* /dev/null. Source: Linux, devices.txt */
  if ((S_ISCHR(is.st_mode) && !ends) || S_ISBLK(is.st_mode)) return "this is a device, and no file";
  int flags = fcntl(file, F_GETFL);
  return flags < 0 || fcntl(file, F_SETFL, flags & ~O_NONBLOCK) < 0 ? strerror(errno) : NULL;
}

FILE *bind_open_or_say(const char *path, const char **fault) {
  assert(path && fault);
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  *fault = file < 0 ? strerror(errno) : fault_of(file);
  FILE *opened = *fault ? NULL : fdopen(file, "r");
  if (opened) return opened;
  int why = errno;
  if (!*fault) *fault = strerror(why);
  if (file >= 0) close(file);
  errno = why;
  return NULL;
}

FILE *bind_open_file(const char *path, ms_error *err) {
  assert(path && err);
  const char *fault;
  FILE *opened = bind_open_or_say(path, &fault);
  if (!opened) ms_fail(err, MS_IO, "%s: %s", path, fault);
  return opened;
}

static bool is_within(FILE *file, const char *path, uint64_t bytes, uint64_t most, ms_error *err) {
  struct stat is;
  if (!fstat(fileno(file), &is) && S_ISREG(is.st_mode) && is.st_size > 0 && (uint64_t)is.st_size > bytes)
    bytes = (uint64_t)is.st_size;
  if (bytes <= most) return true;
  return ms_fail(err, MS_IO, "%s: it has more than %llu MiB, the most that is read of such a file", path,
                 (unsigned long long)(most >> 20));
}

/* All that is left of a file, of so many bytes at most; a 0 follows it. */
static char *read_rest(FILE *file, const char *path, uint64_t most, size_t *length, ms_error *err) {
  enum { PIECE = 1 << 16 };
  char *text = NULL;
  size_t capacity = 0, got = 1;
  bool failed = false;
  for (*length = 0; got && *length <= most && !failed; *length += got) {
    char *longer = capacity - *length > PIECE ? text : realloc(text, capacity = 2 * capacity + 2 * PIECE);
    if (longer) text = longer;
    got = longer ? fread(text + *length, 1, PIECE, file) : 0;
    failed = !longer || ferror(file);
  }
  if (failed) ms_fail(err, MS_IO, "%s: %s", path, strerror(errno));
  if (failed || !is_within(file, path, *length, most, err)) return free(text), NULL;
  text[*length] = 0;
  return text;
}

char *bind_read_file(const char *path, uint64_t most, size_t *length, ms_error *err) {
  assert(path && length);
  FILE *file = bind_open_file(path, err);
  if (!file) return NULL;
  char *text = is_within(file, path, 0, most, err) ? read_rest(file, path, most, length, err) : NULL;
  fclose(file);
  return text;
}

char *bind_read_input(uint64_t most, size_t *length, ms_error *err) { return read_rest(stdin, "-", most, length, err); }

static int free_read(lua_State *L) {
  char **text = lua_touserdata(L, 1);
  free(*text);
  *text = NULL;
  return 0;
}

bool bind_push_file(lua_State *L, const char *path, uint64_t most, ms_error *err) {
  char **text = bind_hold(L, sizeof *text, "msched.read", free_read);
  size_t length;
  *text = bind_read_file(path, most, &length, err);
  if (!*text) return lua_pop(L, 1), false;
  lua_pushlstring(L, *text, length);
  free(*text);
  *text = NULL;
  lua_remove(L, -2);
  return true;
}

/* read_file(path [, most]): all of a file, of so many bytes at most; nil and a message */
static int read_file(lua_State *L) {
  const char *path = bind_check_text(L, 1);
  lua_Integer most = luaL_optinteger(L, 2, (lua_Integer)BIND_MOST_TEXT);
  ms_error err = {.instruction = -1};
  luaL_argcheck(L, most >= 0, 2, "a number of bytes is expected");
  if (bind_push_file(L, path, (uint64_t)most, &err)) return 1;
  lua_pushnil(L);
  lua_pushstring(L, err.message);
  return 2;
}

/* read_start(path, length): so many bytes that a file begins with, none of a pipe, whose bytes are read once; nil, a
 * message and the error's number */
static int read_start(lua_State *L) {
  const char *path = bind_check_text(L, 1);
  lua_Integer length = luaL_checkinteger(L, 2);
  luaL_argcheck(L, length >= 0 && length <= 1 << 20, 2, "a number of bytes is expected, 1048576 at most");
  char *start = lua_newuserdatauv(L, (size_t)length + 1, 0);
  ms_error err = {.instruction = -1};
  struct stat is;
  if (!stat(path, &is) && S_ISFIFO(is.st_mode)) return lua_pushliteral(L, ""), 1; /* who writes would lose its reader */
  errno = 0;
  FILE *file = bind_open_file(path, &err);
  if (!file) {
    int why = errno;
    lua_pushnil(L);
    lua_pushstring(L, err.message);
    lua_pushinteger(L, why);
    return 3;
  }
  bool keeps = fstat(fileno(file), &is) == 0 && S_ISREG(is.st_mode);
  size_t got = keeps ? fread(start, 1, (size_t)length, file) : 0;
  fclose(file);
  return lua_pushlstring(L, start, got), 1;
}

/* sleep(seconds): until they are over, the user interrupts, or the call around it is late. */
static int sleep_seconds(lua_State *L) {
  double until = script_now() + luaL_checknumber(L, 1);
  for (double left; (left = until - script_now()) > 0 && !script_interrupted();) {
    if (script_is_late(script_of(L))) script_stop_here(L);
    struct timespec slice = {.tv_nsec = left < 0.05 ? (long)(1e9 * left) : 50000000};
    nanosleep(&slice, NULL);
  }
  return 0;
}

void bind_files(lua_State *L) {
  static const luaL_Reg functions[] = {{"replace_file", replace_file}, {"read_file", read_file},
                                       {"read_start", read_start},     {"with_folder", with_folder},
                                       {"sleep", sleep_seconds},       {NULL, NULL}};
  assert(lua_istable(L, -1));
  luaL_setfuncs(L, functions, 0);
}

/* --intrinsics: files of tensor intrinsics, for the commands that replay traces. */
#include "cli.h"
#include "lua/bind/bind.h"
#include "lua/bind/state/format.h"

#include <stdlib.h>
#include <string.h>

/* A command's file: it prints to standard error, and may not end the program. */
static bool run_file(lua_State *L, const char *path, ms_error *err) {
  lua_getglobal(L, "msched");
  lua_getfield(L, -1, "load_aside");
  lua_remove(L, -2);
  lua_pushstring(L, path);
  if (!script_try(L, 1, 2, err)) return false;
  if (lua_isnil(L, -2)) return ms_fail(err, MS_SCRIPT, "%s", lua_tostring(L, -1));
  lua_pop(L, 1);
  return script_call(L, 0, 0, err);
}

/* A script that calls ms.intrinsic, in a state of its own. */
static struct vm_intrinsics *read_script(const char *path, ms_error *err) {
  struct vm_intrinsics *made = vm_intrinsics_new();
  lua_State *L = script_new(NULL, err);
  bool ok = L && run_file(L, path, err) && vm_add_intrinsics(made, bind_intrinsics(L), err);
  if (L) script_close(L);
  if (ok) return made;
  vm_intrinsics_free(made);
  return NULL;
}

static struct vm_intrinsics *read_sections(const char *path, ms_error *err) {
  static const char expected[] =
      "tensor intrinsics come from Lua (a file whose name ends in .lua), or sections of TVMScript";
  size_t length;
  char *text = cli_read_file(path, &length, err);
  struct vm_intrinsics *made = NULL;
  if (text && format_expect_text(path, text, length, expected, err)) made = vm_read_intrinsics(text, path, err);
  free(text);
  return made;
}

static bool add_file(struct vm_intrinsics *table, const char *path, ms_error *err) {
  size_t length = strlen(path);
  bool is_script = length > 4 && !strcmp(path + length - 4, ".lua");
  struct vm_intrinsics *made = is_script ? read_script(path, err) : read_sections(path, err);
  ms_error why = {.instruction = -1};
  bool ok = made && vm_add_intrinsics(table, made, &why);
  if (made && !ok) ms_fail(err, why.code, "%s: %s", path, why.message);
  if (ok && !vm_intrinsic_count(made)) ok = ms_fail(err, MS_BAD_INTRINSIC, "%s: it defines no tensor intrinsic", path);
  vm_intrinsics_free(made);
  return ok;
}

static struct vm_intrinsics *read_all(const struct cli_list *files, ms_error *err) {
  struct vm_intrinsics *table = vm_intrinsics_new();
  for (size_t i = 0; i < files->count; i++) {
    if (add_file(table, files->at[i], err)) continue;
    vm_intrinsics_free(table);
    return NULL;
  }
  return table;
}

struct vm_intrinsics *cli_read_intrinsics(struct cli_list *files, ms_error *err) {
  assert(files && (files->at || !files->count));
  struct vm_intrinsics *table = read_all(files, err);
  free(files->at);
  *files = (struct cli_list){0};
  return table;
}

/* take_intrinsics{path…}: what the files define is this state's from then on. */
int cli_take_intrinsics(lua_State *L) {
  struct cli_list files = {.count = lua_rawlen(L, 1)};
  files.at = lua_newuserdatauv(L, (files.count + 1) * sizeof *files.at, 0);
  for (size_t i = 0; i < files.count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 1, (lua_Integer)i + 1);
    files.at[i] = lua_tostring(L, -1); /* the table keeps it */
  }
  ms_error err = {.instruction = -1};
  struct vm_intrinsics *read = read_all(&files, &err);
  bool ok = read && bind_add_intrinsics(L, read, &err);
  vm_intrinsics_free(read);
  return ok ? 0 : bind_raise(L, &err);
}

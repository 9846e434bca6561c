/* The function that `run` and `lower` work on: of a TVMScript file, of a Lua file, or of an operator or a suite by
 * name. */
#include "cli.h"
#include "lua/bind/bind.h"

#include <stdlib.h>
#include <string.h>

static bool refuse_task(const struct tir *ir, const char *path, const char *task, ms_error *err) {
  char names[300] = "";
  for (uint32_t f = 1; f < ir->funcs.count; f++) {
    size_t length = strlen(names);
    snprintf(names + length, sizeof names - length, "%s %s", f > 1 ? "," : "", tir_text(ir, ir->funcs.at[f].name));
  }
  if (!task)
    return ms_fail(err, MS_FUNCTION_NOT_FOUND, "%s has several functions, and none is `main`: say which with --task:%s",
                   path, names);
  return ms_fail(err, MS_FUNCTION_NOT_FOUND, "--task %s: %s has%s", task, path, names);
}

/* A name may be of digits in no language that is read here. */
static tir_func find_task(const struct tir *ir, const char *task) {
  if (!task) return tir_find_func(ir, "main");
  if (strspn(task, "0123456789") == strlen(task)) {
    unsigned long long n = strtoull(task, NULL, 10);
    return n >= 1 && n < ir->funcs.count ? (tir_func)n : TIR_NONE;
  }
  for (uint32_t f = 1; f < ir->funcs.count; f++)
    if (!strcmp(tir_text(ir, ir->funcs.at[f].name), task)) return f;
  return TIR_NONE;
}

/* A function of a module, alone in one. */
static struct tir *copy_alone(const struct tir *ir, tir_func f, const char *path, ms_error *err) {
  char *text = tir_print(ir, f, 0);
  struct tir *alone = tir_read(text, strlen(text), path, err);
  free(text);
  return alone;
}

static struct tir *read_script(const char *path, const char *task, ms_error *err) {
  struct tir *ir = cli_read_module(path, err), *alone = NULL;
  tir_func f = ir ? find_task(ir, task) : TIR_NONE;
  if (!ir) return NULL;
  if (!f)
    refuse_task(ir, path, task, err);
  else if (ir->funcs.count == 2)
    return ir;
  else
    alone = copy_alone(ir, f, path, err);
  tir_free(ir);
  return alone;
}

/* ---- What Lua makes: a script's functions, operators and suites by name ---- */

bool cli_is_made_by_lua(const char *path) {
  size_t length = strlen(path);
  return !strncmp(path, "ops:", 4) || !strncmp(path, "suite:", 6) || (length > 4 && !strcmp(path + length - 4, ".lua"));
}

/* (path, task, rest): the function, or nil and a message. */
static int make_function(lua_State *L) {
  const struct cli_list *rest = lua_touserdata(L, 3);
  script_push_own(L, "lua.cli.cli");
  lua_getfield(L, -1, "function_of");
  lua_pushvalue(L, 1);
  lua_createtable(L, (int)rest->count, 0);
  for (size_t i = 0; i < rest->count; i++) {
    lua_pushstring(L, rest->at[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  lua_pushvalue(L, 2);
  lua_call(L, 3, 2);
  return 2;
}

static struct tir *read_lua(const char *path, const char *task, const struct cli_list *rest, ms_error *err) {
  struct tir *alone = NULL;
  lua_State *L = script_new(NULL, err);
  if (!L) return NULL;
  lua_pushcfunction(L, make_function);
  lua_pushstring(L, path);
  lua_pushstring(L, task);
  lua_pushlightuserdata(L, (void *)rest);
  if (script_call(L, 3, 2, err)) {
    const struct bound_function *made = luaL_testudata(L, -2, BOUND_FUNCTION);
    if (made)
      alone = copy_alone(made->ir, made->func, path, err);
    else
      ms_fail(err, MS_SCRIPT, "%s", lua_tostring(L, -1));
  }
  script_close(L);
  return alone;
}

/* ---- Numbers for variables ---- */

/* Takes ir, and gives the function in which these are numbers. */
static struct tir *with_dims(struct tir *ir, const struct cli_list *list, ms_error *err) {
  struct tir_dim *dims = calloc(list->count, sizeof *dims);
  char *names = NULL;
  size_t length = 0;
  if (!dims) abort();
  for (size_t i = 0; i < list->count; i++) length += strlen(list->at[i]) + 1;
  if (!(names = malloc(length))) abort();
  char *name = names;
  for (size_t i = 0; i < list->count; i++) {
    const char *equals = strchr(list->at[i], '=');
    assert(equals); /* the option's kind says so */
    size_t size = (size_t)(equals - list->at[i]);
    memcpy(name, list->at[i], size), name[size] = 0;
    dims[i] = (struct tir_dim){name, strtoll(equals + 1, NULL, 10)};
    name += size + 1;
  }
  struct tir *made = tir_specialize(ir, tir_find_func(ir, "main"), dims, (uint32_t)list->count, err);
  free(names);
  free(dims);
  tir_free(ir);
  return made;
}

/* ---- Constants ---- */

/* Takes ir, and gives the function in which these parameters are constant. */
static struct tir *with_weights(struct tir *ir, const struct cli_list *list, ms_error *err) {
  struct tir *made =
      tir_with_constants(ir, tir_find_func(ir, "main"), (const char *const *)list->at, (uint32_t)list->count, err);
  tir_free(ir);
  return made;
}

struct tir *cli_for_trace(struct tir *ir) {
  struct tir *rest = ir && ir->has_empty && ir->funcs.count == 2 ? tir_without_empty(ir, 1) : NULL;
  if (!rest) return ir;
  tir_free(ir);
  return rest;
}

struct tir *cli_read_function(const char *path, const char *task, const struct cli_list *rest,
                              const struct cli_list *dims, const struct cli_list *weights, ms_error *err) {
  assert(path && rest && dims && weights);
  struct tir *ir = NULL;
  if (cli_is_made_by_lua(path))
    ir = read_lua(path, task, rest, err);
  else if (rest->count)
    ms_fail(err, MS_SCRIPT, "%s takes no arguments: it is no Lua file", path);
  else
    ir = read_script(path, task, err);
  if (ir && dims->count) ir = with_dims(ir, dims, err);
  return ir && weights->count ? with_weights(ir, weights, err) : ir;
}

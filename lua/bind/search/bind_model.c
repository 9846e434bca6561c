/* Cost models from Lua. */
#include "bind_search.h"
#include "lua/bind/bind.h"

#define BOUND_MODEL "msched.model"

static struct search_model **check_model(lua_State *L) { return luaL_checkudata(L, 1, BOUND_MODEL); }

static struct search_model **push_model(lua_State *L) {
  struct search_model **m = lua_newuserdatauv(L, sizeof *m, 0);
  *m = NULL;
  luaL_setmetatable(L, BOUND_MODEL);
  return m;
}

/* model(name [, seed [, by_rank]]): by_rank: samples count by their rank among those of their task */
static int new_model(lua_State *L) {
  const char *name = bind_check_text(L, 1);
  uint64_t seed = (uint64_t)luaL_optinteger(L, 2, 1);
  bool by_rank = lua_toboolean(L, 3);
  ms_error err = {.instruction = -1};
  struct search_model **m = push_model(L);
  *m = search_model_new(name, seed, &err);
  if (*m && by_rank) search_model_rank(*m);
  return *m ? 1 : bind_raise(L, &err);
}

/* load_model(path [, seed]): nil and why, where the file holds no model that can be used here */
static int load_model(lua_State *L) {
  const char *path = bind_check_text(L, 1);
  uint64_t seed = (uint64_t)luaL_optinteger(L, 2, 1);
  ms_error err = {.instruction = -1};
  FILE *file = bind_open_file(path, &err); /* what it can be at all */
  if (!file) return bind_raise(L, &err);
  bool is_file = fseek(file, 0, SEEK_END) == 0;
  fclose(file);
  if (!is_file) return bind_refuse(L, "%s: a model is read from a file, and this is none", path);
  struct search_model **m = push_model(L);
  *m = search_model_load(path, seed, &err);
  if (*m) return 1;
  if (err.code != MS_MODEL) return bind_raise(L, &err);
  lua_pushnil(L);
  lua_pushstring(L, err.message);
  return 2;
}

/* model:successor([seed]): a model that starts from what this one has learned */
static int model_successor(lua_State *L) {
  struct search_model **from = check_model(L);
  uint64_t seed = (uint64_t)luaL_optinteger(L, 2, 1);
  ms_error err = {.instruction = -1};
  struct search_model **m = push_model(L);
  *m = search_model_from(*from, seed, &err);
  return *m ? 1 : bind_raise(L, &err);
}

/* model:has_learned(): whether it ranks by what it has learned, and not by chance */
static int model_has_learned(lua_State *L) {
  lua_pushboolean(L, search_model_has_learned(*check_model(L)));
  return 1;
}

static int collect_model(lua_State *L) {
  search_model_free(*check_model(L));
  *check_model(L) = NULL;
  return 0;
}

/* Item i of the list at `list` is pushed, its features under it. */
static const float *push_item(lua_State *L, int list, uint32_t i, uint32_t *rows) {
  lua_geti(L, list, (lua_Integer)i + 1);
  if (!lua_istable(L, -1))
    luaL_error(L, "item %d of the candidates is a %s, not a table", (int)i + 1, luaL_typename(L, -1));
  lua_getfield(L, -1, "features");
  const float *features = bind_feature_rows(L, -1, rows);
  lua_insert(L, -2);
  return features;
}

/* model:update(candidates): each with features and seconds; task, a number, where they are of several functions */
static int model_update(lua_State *L) {
  struct search_model **m = check_model(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  uint32_t count = (uint32_t)luaL_len(L, 2);
  struct search_sample *samples = lua_newuserdatauv(L, (count + 1) * sizeof *samples, 0);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t rows;
    const float *features = push_item(L, 2, i, &rows);
    lua_getfield(L, -1, "seconds");
    lua_getfield(L, -2, "task");
    samples[i] = (struct search_sample){features, rows, (uint32_t)lua_tointeger(L, -1), lua_tonumber(L, -2)};
    lua_pop(L, 4); /* the list keeps the features */
  }
  ms_error err = {.instruction = -1};
  return search_model_update(*m, samples, count, &err) ? 0 : bind_raise(L, &err);
}

/* model:predict(candidates): a list of scores, the higher the better */
static int model_predict(lua_State *L) {
  struct search_model **m = check_model(L);
  luaL_checktype(L, 2, LUA_TTABLE);
  uint32_t count = (uint32_t)luaL_len(L, 2);
  const float **features = lua_newuserdatauv(L, (count + 1) * sizeof *features, 0);
  uint32_t *rows = lua_newuserdatauv(L, (count + 1) * sizeof *rows, 0);
  double *scores = lua_newuserdatauv(L, (count + 1) * sizeof *scores, 0);
  for (uint32_t i = 0; i < count; i++) {
    features[i] = push_item(L, 2, i, &rows[i]);
    lua_pop(L, 2);
  }
  ms_error err = {.instruction = -1};
  if (!search_model_predict(*m, features, rows, count, scores, &err)) return bind_raise(L, &err);
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    lua_pushnumber(L, scores[i]);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* model:save(path) */
static int model_save(lua_State *L) {
  ms_error err = {.instruction = -1};
  return search_model_save(*check_model(L), bind_check_text(L, 2), &err) ? 0 : bind_raise(L, &err);
}

void bind_models(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg model[] = {
      {"update", model_update},       {"predict", model_predict},         {"save", model_save},
      {"successor", model_successor}, {"has_learned", model_has_learned}, {NULL, NULL}};
  static const luaL_Reg model_meta[] = {{"__gc", collect_model}, {NULL, NULL}};
  bind_type(L, BOUND_MODEL, model, model_meta);
  static const luaL_Reg functions[] = {{"model", new_model}, {"load_model", load_model}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

/* Any bytes as a model of ONNX: it is refused with a message, or becomes tables. External data are looked for in a
 * folder that is not there. */
#include "lua/bind/bind.h"
#include "lua/net/model/read.h"
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* ---- What the reader takes from the bindings ---- */

int bind_refuse(lua_State *L, const char *format, ...) {
  va_list args;
  va_start(args, format);
  lua_pushvfstring(L, format, args);
  va_end(args);
  return lua_error(L);
}

void *bind_hold(lua_State *L, size_t size, const char *name, lua_CFunction collect) {
  void *held = memset(lua_newuserdatauv(L, size, 0), 0, size);
  if (luaL_newmetatable(L, name)) {
    lua_pushcfunction(L, collect);
    lua_setfield(L, -2, "__gc");
  }
  lua_setmetatable(L, -2);
  return held;
}

static int free_array(lua_State *L) {
  struct bound_array *a = lua_touserdata(L, 1);
  free(a->data);
  a->data = NULL;
  return 0;
}

struct bound_array *bind_new_array(lua_State *L, const int64_t *shape, int rank, tir_type type) {
  size_t count = 1;
  for (int i = 0; i < rank; i++) count *= (size_t)shape[i];
  struct bound_array *a = bind_hold(L, sizeof *a, "fuzz.array", free_array);
  a->count = count;
  a->bytes = count * (((size_t)tir_type_bits(type) + 7) / 8);
  a->data = calloc(1, a->bytes ? a->bytes : 1);
  return a;
}

const char *bind_check_text(lua_State *L, int at) { return luaL_checkstring(L, at); }

FILE *bind_open_or_say(const char *path, const char **fault) {
  (void)path;
  *fault = "no model is read of a file here";
  return NULL;
}

/* ---- The fuzzer ---- */

struct input {
  const uint8_t *bytes;
  size_t size;
};

static int read_input(lua_State *L) {
  const struct input *input = lua_touserdata(L, 1);
  net_push_model(L, input->bytes, input->size, "/there/is/no/such/folder");
  if (!lua_istable(L, -1)) fuzz_stop("net_push_model", "gave no table");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  lua_State *L = luaL_newstate();
  struct input input = {data, size};
  lua_pushcfunction(L, read_input);
  lua_pushlightuserdata(L, &input);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK && !*luaL_tolstring(L, -1, NULL)) fuzz_stop("a refusal", "without a message");
  lua_close(L);
  return 0;
}

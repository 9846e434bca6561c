/* Arrays: dense, row-major numbers that kernels run on. */
#include "bind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bound_array *bind_check_array(lua_State *L, int at) {
  return luaL_checkudata(L, at, BOUND_ARRAY);
}

static int collect(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1);
  if (!a->is_view) free(a->data);
  a->data = NULL;
  return 0;
}

/* Pushes an array without data. */
static struct bound_array *push_header(lua_State *L, const int64_t *shape, int rank, tir_type type, int values) {
  assert(rank >= 0 && rank <= 32);
  size_t count = 1, bytes = 0;
  for (int i = 0; i < rank; i++)
    if (shape[i] < 0 || __builtin_mul_overflow(count, (size_t)shape[i], &count))
      bind_refuse(L, "an array's extents are not negative, and fit in memory");
  size_t element = ((size_t)tir_type_bits(type) + 7) / 8;
  if (!element || __builtin_mul_overflow(count, element, &bytes) || bytes > (size_t)1 << 40)
    bind_refuse(L, "the array is too large");
  struct bound_array *a = lua_newuserdatauv(L, sizeof *a, values);
  memset(a, 0, sizeof *a);
  a->bytes = bytes;
  a->count = count;
  a->type = type;
  a->rank = rank;
  memcpy(a->shape, shape, (size_t)rank * sizeof *shape);
  luaL_setmetatable(L, BOUND_ARRAY);
  return a;
}

struct bound_array *bind_new_array(lua_State *L, const int64_t *shape, int rank, tir_type type) {
  struct bound_array *a = push_header(L, shape, rank, type, 0);
  a->data = jit_new_memory(a->bytes);
  if (!a->data) bind_refuse(L, "no memory for an array of %I bytes", (LUAI_UACINT)a->bytes);
  memset(a->data, 0, a->bytes);
  return a;
}

static size_t element_bytes(const struct bound_array *a) { return ((size_t)tir_type_bits(a->type) + 7) / 8; }

static double get(const struct bound_array *a, size_t i) {
  assert(i < a->count);
  return tir_fetch_element(a->type, (const char *)a->data + i * element_bytes(a));
}

static void set(struct bound_array *a, size_t i, double x) {
  assert(i < a->count);
  tir_put_element(a->type, (char *)a->data + i * element_bytes(a), x);
}

static bool is_wide(const struct bound_array *a) { return !tir_type_is_float(a->type) && tir_type_bits(a->type) == 64; }

/* Integers of 64 bits as they are; past Lua's, as the nearest number. */
static void push_element(lua_State *L, const struct bound_array *a, size_t i) {
  int64_t whole;
  if (is_wide(a)) {
    memcpy(&whole, (const char *)a->data + i * sizeof whole, sizeof whole);
    if (whole >= 0 || tir_type_code(a->type) != TIR_UINT) return lua_pushinteger(L, whole);
    return lua_pushnumber(L, (lua_Number)(uint64_t)whole);
  }
  double x = get(a, i);
  if (tir_type_is_float(a->type))
    lua_pushnumber(L, x);
  else
    lua_pushinteger(L, (lua_Integer)x);
}

/* The number at the stack's index `at`. */
static void put(lua_State *L, struct bound_array *a, size_t i, int at) {
  if (is_wide(a) && lua_isinteger(L, at)) {
    int64_t whole = lua_tointeger(L, at);
    memcpy((char *)a->data + i * sizeof whole, &whole, sizeof whole);
  } else {
    set(a, i, luaL_checknumber(L, at));
  }
}

/* All elements become what the first is: twice as many at each step. */
static void repeat_first(struct bound_array *a) {
  size_t size = element_bytes(a);
  for (size_t done = 1, more; done < a->count; done += more) {
    more = done < a->count - done ? done : a->count - done;
    memcpy((char *)a->data + done * size, a->data, more * size);
  }
}

/* ---- Methods ---- */

static int read_shape(lua_State *L, int at, int64_t *shape) {
  luaL_checktype(L, at, LUA_TTABLE);
  lua_Integer rank = luaL_len(L, at);
  if (rank > 32) bind_refuse(L, "an array has at most 32 dimensions");
  for (lua_Integer i = 0; i < rank; i++) {
    lua_rawgeti(L, at, i + 1);
    shape[i] = bind_check_item(L, i + 1);
    lua_pop(L, 1);
  }
  return (int)rank;
}

/* From the bytes of its elements, as array:bytes gives them. */
static void fill_bytes(lua_State *L, struct bound_array *a, int at) {
  size_t size;
  const char *bytes = lua_tolstring(L, at, &size);
  if (size != a->bytes) bind_refuse(L, "the array has %I bytes, the text %I", (LUAI_UACINT)a->bytes, (LUAI_UACINT)size);
  memcpy(a->data, bytes, size);
  if (tir_type_code(a->type) == TIR_BOOL)
    for (size_t i = 0; i < a->count; i++) ((uint8_t *)a->data)[i] = ((uint8_t *)a->data)[i] != 0;
}

static int to_bytes(lua_State *L) {
  const struct bound_array *a = bind_check_array(L, 1);
  lua_pushlstring(L, a->data, a->bytes);
  return 1;
}

/* reshape(shape): a copy, of as many elements in other extents */
static int reshape(lua_State *L) {
  int64_t shape[32];
  const struct bound_array *a = bind_check_array(L, 1);
  int rank = read_shape(L, 2, shape);
  struct bound_array *made = bind_new_array(L, shape, rank, a->type);
  if (made->count != a->count)
    return bind_refuse(L, "%I elements do not fit extents of %I", (LUAI_UACINT)a->count, (LUAI_UACINT)made->count);
  memcpy(made->data, a->data, a->bytes);
  return 1;
}

static tir_type check_type(lua_State *L, const char *name) {
  tir_type type;
  if (!tir_type_parse(name, &type) || tir_type_lanes(type) != 1 || tir_type_bits(type) == 0)
    bind_refuse(L, "`%s` is no type of elements", name);
  return type;
}

/* view(shape [, type [, offset]]): an array of elements that are the bytes of this one from the offset on */
static int view(lua_State *L) {
  int64_t shape[32];
  struct bound_array *a = bind_check_array(L, 1);
  int rank = read_shape(L, 2, shape);
  char own[24];
  tir_type type = check_type(L, bind_opt_text(L, 3, tir_type_text(a->type, own)));
  lua_Integer offset = luaL_optinteger(L, 4, 0);
  if (offset < 0 || offset % 64)
    return bind_refuse(L, "a view's offset is a multiple of 64 bytes, not %I", (LUAI_UACINT)offset);
  struct bound_array *made = push_header(L, shape, rank, type, 1);
  made->is_view = true;
  if ((size_t)offset > a->bytes || made->bytes > a->bytes - (size_t)offset)
    return bind_refuse(L, "a view of %I bytes at %I leaves an array of %I", (LUAI_UACINT)made->bytes,
                       (LUAI_UACINT)offset, (LUAI_UACINT)a->bytes);
  made->data = (char *)a->data + offset;
  lua_pushvalue(L, 1);
  lua_setiuservalue(L, -2, 1);
  return 1;
}

/* assign(other): the elements of another of as many, of the same type */
static int assign(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1), *from = bind_check_array(L, 2);
  char own[24], other[24];
  if (a->type != from->type || a->count != from->count)
    return bind_refuse(L, "%I elements of %s do not take %I of %s", (LUAI_UACINT)a->count, tir_type_text(a->type, own),
                       (LUAI_UACINT)from->count, tir_type_text(from->type, other));
  memmove(a->data, from->data, a->bytes);
  lua_settop(L, 1);
  return 1;
}

/* array(shape [, type [, first value, function of position from 0, list, or the bytes of its elements]]) */
static int new_array(lua_State *L) {
  int64_t shape[32];
  int rank = read_shape(L, 1, shape);
  tir_type type = check_type(L, bind_opt_text(L, 2, "float32"));
  lua_settop(L, 3);
  struct bound_array *a = bind_new_array(L, shape, rank, type);
  if (lua_type(L, 3) == LUA_TNUMBER) {
    if (a->count) put(L, a, 0, 3);
    repeat_first(a);
  } else if (lua_type(L, 3) == LUA_TSTRING) {
    fill_bytes(L, a, 3);
  } else if (lua_istable(L, 3)) {
    if ((size_t)luaL_len(L, 3) != a->count)
      return bind_refuse(L, "the list has %d values, the array %d", (int)luaL_len(L, 3), (int)a->count);
    for (size_t i = 0; i < a->count; i++) {
      lua_rawgeti(L, 3, (lua_Integer)i + 1);
      put(L, a, i, -1);
      lua_pop(L, 1);
    }
  } else if (lua_isfunction(L, 3)) {
    for (size_t i = 0; i < a->count; i++) {
      lua_pushvalue(L, 3);
      lua_pushinteger(L, (lua_Integer)i);
      lua_call(L, 1, 1);
      put(L, a, i, -1);
      lua_pop(L, 1);
    }
  } else if (!lua_isnil(L, 3)) {
    return bind_refuse(L, "an array is filled from a number, a list, a function or bytes");
  }
  return 1;
}

/* Position from indices that start at 0, as a table {i, j}; or a number from 0. */
static size_t position(lua_State *L, const struct bound_array *a, int at) {
  if (lua_isinteger(L, at)) {
    lua_Integer i = lua_tointeger(L, at);
    if (i < 0 || (size_t)i >= a->count)
      bind_refuse(L, "position %I is outside an array of %I", (LUAI_UACINT)i, (LUAI_UACINT)a->count);
    return (size_t)i;
  }
  luaL_checktype(L, at, LUA_TTABLE);
  size_t flat = 0;
  if (luaL_len(L, at) != a->rank)
    bind_refuse(L, a->rank == 1 ? "%d index is expected" : "%d indices are expected", a->rank);
  for (int d = 0; d < a->rank; d++) {
    lua_rawgeti(L, at, d + 1);
    lua_Integer i = bind_check_item(L, d + 1);
    lua_pop(L, 1);
    if (i < 0 || i >= a->shape[d])
      bind_refuse(L, "index %I is outside [0, %I)", (LUAI_UACINT)i, (LUAI_UACINT)a->shape[d]);
    flat = flat * (size_t)a->shape[d] + (size_t)i;
  }
  return flat;
}

static int read_element(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1);
  if (lua_type(L, 2) == LUA_TSTRING) {
    lua_pushvalue(L, 2);
    lua_gettable(L, lua_upvalueindex(1));
  } else {
    push_element(L, a, position(L, a, 2));
  }
  return 1;
}

static int write_element(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1);
  put(L, a, position(L, a, 2), 3);
  return 0;
}

static int length(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)bind_check_array(L, 1)->count);
  return 1;
}

static int shape(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1);
  lua_createtable(L, a->rank, 0);
  for (int i = 0; i < a->rank; i++) {
    lua_pushinteger(L, a->shape[i]);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}

static int type_name(lua_State *L) {
  char text[24];
  lua_pushstring(L, tir_type_text(bind_check_array(L, 1)->type, text));
  return 1;
}

static int to_list(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1);
  lua_createtable(L, a->count > INT32_MAX ? 0 : (int)a->count, 0);
  for (size_t i = 0; i < a->count; i++) {
    push_element(L, a, i);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* Integers from -4 to 4: sums of them are exact. */
static double draw_whole(tir_type type, struct vm_stream *stream) {
  if (tir_type_code(type) == TIR_BOOL) return vm_stream_below(stream, 2);
  return (double)vm_stream_below(stream, 9) - (tir_type_code(type) == TIR_UINT ? 0 : 4);
}

/* All digits of the type: floats of either sign from 1/8 to 1; integers of 8 bits of their whole range, of more as
 * many. */
static inline double draw_digits(tir_type type, struct vm_stream *stream) {
  if (!tir_type_is_float(type)) {
    bool is_wide = tir_type_bits(type) >= 8;
    return is_wide ? (double)vm_stream_below(stream, 256) - (tir_type_code(type) == TIR_UINT ? 0 : 128)
                   : draw_whole(type, stream);
  }
  double x = 0.125 + 0.875 * vm_stream_unit(stream);
  return vm_stream_next(stream) >> 63 ? x : -x;
}

/* Loops over elements end when the user interrupts, or their time is over. */
enum { LOOK_EVERY = 1 << 16 };
static void look(lua_State *L) {
  const volatile int *stop = bind_stop(L);
  if (stop && *stop) bind_refuse(L, "interrupted");
}

/* random([seed [, digits]]): the same for the same seed on every machine */
static int fill_random(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1);
  struct vm_stream stream = vm_stream_of((uint64_t)luaL_optinteger(L, 2, 1), 0, 0, 0);
  double (*draw)(tir_type type, struct vm_stream * stream) = lua_toboolean(L, 3) ? draw_digits : draw_whole;
  bool floats = a->type == TIR_T_F32 && draw == draw_digits; /* what is timed, and large */
  for (size_t i = 0; i < a->count; i++) {
    if (i % LOOK_EVERY == 0) look(L);
    if (floats) {
      float x = (float)draw_digits(TIR_T_F32, &stream);
      memcpy((char *)a->data + i * sizeof x, &x, sizeof x);
    } else {
      set(a, i, draw(a->type, &stream));
    }
  }
  lua_settop(L, 1);
  return 1;
}

static void check_size(lua_State *L, const struct bound_array *a, const struct bound_array *b) {
  if (a->count != b->count)
    bind_refuse(L, "arrays of %I and %I elements", (LUAI_UACINT)a->count, (LUAI_UACINT)b->count);
}

/* difference(other [, before]): the largest; of how many elements, where `other` is no longer what it was `before`, or
 * of all; and the root of the mean of its squares. */
static int difference(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1), *b = bind_check_array(L, 2),
                     *before = lua_isnoneornil(L, 3) ? NULL : bind_check_array(L, 3);
  check_size(L, a, b);
  if (before) check_size(L, a, before);
  double most = 0, squares = 0;
  lua_Integer compared = 0;
  for (size_t i = 0; i < a->count; i++) {
    if (i % LOOK_EVERY == 0) look(L);
    double x = get(a, i), y = get(b, i), d = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
    if (before && y == get(before, i)) continue;
    if (isnan(x) != isnan(y)) d = INFINITY;
    if (d > most) most = d;
    squares += d * d;
    compared++;
  }
  lua_pushnumber(L, most);
  lua_pushinteger(L, compared);
  lua_pushnumber(L, compared ? sqrt(squares / (double)compared) : 0);
  return 3;
}

/* same_bytes(other): whether their elements are the same, bit for bit. */
static int same_bytes(lua_State *L) {
  const struct bound_array *a = bind_check_array(L, 1), *b = bind_check_array(L, 2);
  lua_pushboolean(L, a->type == b->type && a->bytes == b->bytes && (!a->bytes || !memcmp(a->data, b->data, a->bytes)));
  return 1;
}

/* checksum([before]): FNV-1a of its bytes, as words of 64 bits behind those of `before`, with zeros up to a multiple of
 * 64 bytes (Fowler, Noll, Vo; the offset basis and the prime are those of 64 bits) */
static int checksum(lua_State *L) {
  const struct bound_array *a = bind_check_array(L, 1);
  const uint64_t prime = UINT64_C(0x100000001b3);
  uint64_t sum = lua_isnoneornil(L, 2) ? UINT64_C(0xcbf29ce484222325) : (uint64_t)luaL_checkinteger(L, 2);
  size_t padded = (a->bytes + 63) & ~(size_t)63;
  for (size_t i = 0; i < padded; i += sizeof sum) {
    uint64_t word = 0;
    if (i % LOOK_EVERY == 0) look(L);
    if (i < a->bytes) memcpy(&word, (const char *)a->data + i, a->bytes - i < sizeof word ? a->bytes - i : sizeof word);
    sum = (sum ^ word) * prime;
  }
  lua_pushinteger(L, (lua_Integer)sum);
  return 1;
}

static int text(lua_State *L) {
  struct bound_array *a = bind_check_array(L, 1);
  luaL_Buffer out;
  char name[24];
  luaL_buffinit(L, &out);
  luaL_addstring(&out, tir_type_text(a->type, name));
  luaL_addchar(&out, '[');
  for (int i = 0; i < a->rank; i++) {
    char number[24];
    snprintf(number, sizeof number, i ? ", %lld" : "%lld", (long long)a->shape[i]);
    luaL_addstring(&out, number);
  }
  luaL_addstring(&out, "] {");
  for (size_t i = 0; i < a->count && i < 8; i++) {
    char number[40];
    snprintf(number, sizeof number, i ? ", %g" : "%g", get(a, i));
    luaL_addstring(&out, number);
  }
  luaL_addstring(&out, a->count > 8 ? ", …}" : "}");
  luaL_pushresult(&out);
  return 1;
}

void bind_arrays(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {
      {"shape", shape},           {"type", type_name},    {"tolist", to_list},        {"random", fill_random},
      {"difference", difference}, {"bytes", to_bytes},    {"reshape", reshape},       {"view", view},
      {"assign", assign},         {"checksum", checksum}, {"same_bytes", same_bytes}, {NULL, NULL}};
  static const luaL_Reg meta[] = {
      {"__newindex", write_element}, {"__len", length}, {"__gc", collect}, {"__tostring", text}, {NULL, NULL}};
  bind_type(L, BOUND_ARRAY, methods, meta);
  luaL_getmetatable(L, BOUND_ARRAY);
  lua_getfield(L, -1, "__index");
  lua_pushvalue(L, -1);
  lua_setfield(L, -4, "array_methods"); /* for those written in Lua */
  lua_pushcclosure(L, read_element, 1); /* finds methods, and elements */
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lua_pushcfunction(L, new_array);
  lua_setfield(L, -2, "array");
}

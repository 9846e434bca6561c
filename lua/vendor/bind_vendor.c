/* Vendors' routines from Lua: those that compute what an operator does, as calls beside ours (bind_call.c). */
#include "lua/bind/bind.h"
#include "vendor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bound_vendor {
  const struct vendor *vendor;
  void *library, *started;
  struct jit_target target; /* of a device's; the kind empty: of this machine's processors */
};
#define BOUND_VENDOR "msched.vendor"

/* What was started, for good: the threads of a library may use it after the state that asked for it is closed. */
static struct kept {
  void *started;
  struct kept *before;
} * kept;

static void keep(void *started) {
  struct kept *k = malloc(sizeof *k);
  if (!k) abort();
  *k = (struct kept){started, kept};
  kept = k;
}

/* An error without a message: there is no such library. */
static bool open_vendor(const struct vendor *vendor, const char *path, int threads, struct bound_vendor *out,
                        ms_error *err) {
  assert(vendor && out && err);
  void *library = dlopen(path ? path : vendor->library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  *out = (struct bound_vendor){
      .vendor = vendor, .library = library, .started = library ? vendor->start(library, threads, err) : NULL};
  if (out->started) keep(out->started);
  return out->started != NULL;
}

static void push_vendor(lua_State *L, const struct bound_vendor *v) {
  memcpy(lua_newuserdatauv(L, sizeof *v, 0), v, sizeof *v);
  luaL_setmetatable(L, BOUND_VENDOR);
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* vendors(threads [, path]): those whose libraries are here, oneDNN's at the path; they stay open, as their threads
 * may */
static int open_vendors(lua_State *L) {
  static const struct vendor *const all[] = {&vendor_openblas, &vendor_onednn, &vendor_onednn_plain,
                                             &vendor_onednn_graph};
  int threads = (int)luaL_checkinteger(L, 1);
  const char *onednn = luaL_optstring(L, 2, NULL);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    struct bound_vendor v;
    ms_error err = {.instruction = -1};
    const char *path = all[i] == &vendor_openblas ? NULL : onednn;
    if (open_vendor(all[i], path, threads, &v, &err))
      push_vendor(L, &v);
    else if (path && all[i] != &vendor_onednn_graph) /* which the second interface lacks */
      return bind_refuse(L, "%s: no library of oneDNN's second or third interface opens there", path);
  }
  return 1;
}

/* ---- Those of a device ---- */

/* Each is looked for where its variable says, or, where that says nothing, beside another's library, by the name that
 * it has there, or else by its names. */
static const struct device_vendor {
  const struct vendor *vendor;
  const char *variable, *names[5], *beside[3]; /* the other's variable, its name in the file's, and ours */
} device_vendors[] = {
    {&vendor_cublas,
     "MSCHED_LIBCUBLAS",
     {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"},
     {0}},
    {&vendor_cublaslt,
     "MSCHED_LIBCUBLASLT",
     {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"},
     {"MSCHED_LIBCUBLAS", "libcublas.", "libcublasLt."}},
    {&vendor_cudnn, "MSCHED_LIBCUDNN", {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"}, {0}},
};

/* The path beside the other's library; false: there is none. */
static bool find_beside(const struct device_vendor *v, char *path, size_t size) {
  const char *other = v->beside[0] ? getenv(v->beside[0]) : NULL;
  const char *file = other && strrchr(other, '/') ? strrchr(other, '/') + 1 : other,
             *at = file ? strstr(file, v->beside[1]) : NULL;
  if (!at) return false;
  int length = snprintf(path, size, "%.*s%s%s", (int)(at - other), other, v->beside[2], at + strlen(v->beside[1]));
  return length > 0 && (size_t)length < size && access(path, R_OK) == 0;
}

struct opening {
  const struct device_vendor *asked;
  struct bound_vendor *out;
  bool tried; /* the device is there */
  ms_error err;
};

/* In the device's context, where their handles are made. */
static bool open_there(void *data, void *const *buffers, void *stream) {
  struct opening *o = data;
  const char *own = getenv(o->asked->variable);
  char path[4096];
  (void)buffers, (void)stream;
  o->tried = true;
  if (own && *own) return open_vendor(o->asked->vendor, own, 1, o->out, &o->err);
  if (find_beside(o->asked, path, sizeof path)) return open_vendor(o->asked->vendor, path, 1, o->out, &o->err);
  for (size_t i = 0; o->asked->names[i]; i++)
    if (open_vendor(o->asked->vendor, o->asked->names[i], 1, o->out, &o->err) || *o->err.message) break;
  return o->out->started != NULL;
}

/* The message about a library that is not used. */
static void push_note(lua_State *L, const struct opening *o) {
  const struct vendor *vendor = o->asked->vendor;
  char text[200] = "";
  if (!o->out->library) {
    lua_pushfstring(L, "%s is not found; %s says where it is", vendor->name, o->asked->variable);
  } else {
    vendor->describe(o->out->library, text, sizeof text);
    lua_pushfstring(L, "%s is left out: %s", text, o->err.message);
  }
  lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

/* device_vendors(target): those whose libraries are here and start, for the device that runs the target's code, none of
 * a CPU; and messages about the others */
static int open_device_vendors(lua_State *L) {
  struct jit_target target;
  ms_error err = {.instruction = -1};
  if (!jit_target_parse(luaL_checkstring(L, 1), &target, &err) ||
      (target.gpu.arch && !jit_target_runs_here(&target, &err)))
    return bind_raise(L, &err);
  lua_newtable(L), lua_newtable(L);
  for (size_t i = 0; target.gpu.arch && i < sizeof device_vendors / sizeof *device_vendors; i++) {
    struct bound_vendor v = {0};
    struct opening o = {.asked = &device_vendors[i], .out = &v, .err = {.instruction = -1}};
    bool opened = jit_device_call(&target, open_there, &o, &err);
    if (!opened && (!o.tried || v.started)) return bind_raise(L, &err);
    if (!opened) {
      push_note(L, &o);
      continue;
    }
    v.target = target;
    lua_pushvalue(L, -2);
    push_vendor(L, &v);
    lua_pop(L, 1);
  }
  return 2;
}

static struct bound_vendor *check_vendor(lua_State *L) { return luaL_checkudata(L, 1, BOUND_VENDOR); }

static int vendor_name(lua_State *L) {
  lua_pushstring(L, check_vendor(L)->vendor->name);
  return 1;
}

static int vendor_text(lua_State *L) {
  struct bound_vendor *v = check_vendor(L);
  char text[200];
  v->vendor->describe(v->library, text, sizeof text);
  lua_pushstring(L, text);
  return 1;
}

/* ---- What is to be computed ---- */

/* The integers of the field `name` of the table on the top; gives how many. */
static int read_integers(lua_State *L, const char *name, int64_t *out, int most) {
  assert(most > 0);
  if (lua_getfield(L, -1, name) != LUA_TTABLE) bind_refuse(L, "the field %s is a list of integers", name);
  int count = (int)lua_rawlen(L, -1);
  if (count > most) bind_refuse(L, "%s: at most %d integers are expected", name, most);
  for (int i = 0; i < count; i++) {
    lua_rawgeti(L, -1, i + 1);
    out[i] = luaL_checkinteger(L, -1);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return count;
}

static bool is_float(tir_type t) { return tir_type_is_float(t) && tir_type_bits(t) <= 32 && !tir_type_is_byte(t); }

static bool is_byte(tir_type t) { return tir_type_is_int(t) && tir_type_bits(t) == 8; }

/* The field is {extents =, strides =, array =}: how the array's memory is seen. */
static void read_tensor(lua_State *L, const char *name, struct vendor_tensor *out) {
  *out = (struct vendor_tensor){0};
  if (lua_getfield(L, 2, name) == LUA_TNIL) {
    lua_pop(L, 1);
    return;
  }
  luaL_checktype(L, -1, LUA_TTABLE);
  out->rank = read_integers(L, "extents", out->extents, VENDOR_MOST_RANK);
  if (read_integers(L, "strides", out->strides, VENDOR_MOST_RANK) != out->rank || !out->rank)
    bind_refuse(L, "%s: as many strides as extents are expected", name);
  lua_getfield(L, -1, "array");
  const struct bound_array *a = bind_check_array(L, lua_gettop(L));
  int64_t last = 0;
  for (int d = 0; d < out->rank; d++) {
    if (out->extents[d] < 1 || out->strides[d] < 0 ||
        __builtin_mul_overflow(out->extents[d] - 1, out->strides[d], &(int64_t){0}))
      bind_refuse(L, "%s: extents from 1 and strides from 0 are expected", name);
    last += (out->extents[d] - 1) * out->strides[d];
  }
  bool known = is_float(a->type) || is_byte(a->type) || a->type == TIR_T_I32;
  if (!known || last < 0 || (size_t)last >= a->count)
    bind_refuse(L, "%s: an array of float32, shorter floats, bytes or int32 that holds these extents is expected",
                name);
  assert(out->rank > 0 && a->data);
  out->data = a->data, out->type = a->type;
  lua_pop(L, 2);
}

/* Whether the library takes elements of these types: all floats, or bytes whose result is of int32. */
static bool takes_types(const struct vendor *vendor, const struct vendor_work *work) {
  bool short_floats = false, floats = true, bytes = true;
  for (int i = 0; i < VENDOR_TENSORS; i++) {
    tir_type t = work->tensors[i].type;
    if (!work->tensors[i].rank) continue;
    floats &= is_float(t), bytes &= i == VENDOR_RESULT ? t == TIR_T_I32 : is_byte(t);
    short_floats |= t != TIR_T_F32;
  }
  return floats ? !short_floats || vendor->short_floats : bytes && vendor->bytes;
}

/* vendor:prepare {op =, source =, weights =, result =, stride =, dilation =, before =, after =, values =,
 * scale =, causal =}: a call; nil: the
 * library has no routine for it */
static int prepare(lua_State *L) {
  static const char *const names[] = {"product", "convolution", "transposed", "softmax", "norm", "attention", NULL};
  struct bound_vendor *v = check_vendor(L);
  struct vendor_work work = {0};
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_getfield(L, 2, "op");
  work.op = (enum vendor_operator)luaL_checkoption(L, 3, NULL, names);
  lua_settop(L, 2);
  read_tensor(L, "source", &work.tensors[VENDOR_SOURCE]);
  read_tensor(L, "weights", &work.tensors[VENDOR_WEIGHTS]);
  read_tensor(L, "result", &work.tensors[VENDOR_RESULT]);
  if (work.op == VENDOR_CONVOLUTION || work.op == VENDOR_TRANSPOSED) {
    read_integers(L, "stride", work.stride, VENDOR_MOST_SPATIAL);
    read_integers(L, "dilation", work.dilation, VENDOR_MOST_SPATIAL);
    read_integers(L, "before", work.before, VENDOR_MOST_SPATIAL);
    read_integers(L, "after", work.after, VENDOR_MOST_SPATIAL);
  }
  if (work.op == VENDOR_ATTENTION) {
    read_tensor(L, "values", &work.values);
    lua_getfield(L, 2, "causal"), lua_getfield(L, 2, "scale");
    work.causal = lua_toboolean(L, -2), work.scale = luaL_checknumber(L, -1);
    lua_settop(L, 2);
    if (!work.values.rank) return bind_refuse(L, "attention: values are expected");
  }
  bool has_weights = work.op != VENDOR_SOFTMAX && work.op != VENDOR_NORM;
  if (!work.tensors[VENDOR_SOURCE].rank || !work.tensors[VENDOR_RESULT].rank ||
      has_weights != (work.tensors[VENDOR_WEIGHTS].rank > 0))
    return bind_refuse(L, "%s: a source, %sand a result are expected", names[work.op], has_weights ? "weights " : "");
  if (!takes_types(v->vendor, &work)) return lua_pushnil(L), 1;
  struct bound_call *call = bind_new_call(L, 2);
  struct vendor_call made = {0};
  work.target = *v->target.kind ? &v->target : NULL;
  if (!v->vendor->prepare(v->started, &work, &made)) return lua_pushnil(L), 1;
  assert((made.run || made.attempt) && "a routine that was prepared can be called");
  *call = (struct bound_call){.run = made.run,
                              .finish = made.finish,
                              .release = made.release,
                              .data = made.data,
                              .attempt = made.attempt,
                              .sample = made.sample,
                              .rounding = made.rounding};
  memcpy(call->routine, made.routine, sizeof call->routine);
  return 1;
}

void bind_vendors(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"name", vendor_name}, {"prepare", prepare}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__tostring", vendor_text}, {NULL, NULL}};
  bind_type(L, BOUND_VENDOR, methods, meta);
  lua_pushcfunction(L, open_vendors);
  lua_setfield(L, -2, "vendors");
  lua_pushcfunction(L, open_device_vendors);
  lua_setfield(L, -2, "device_vendors");
}

/* Vendors' matrix products beside ours, for benchmarks: their libraries are opened at run time, where they are
 * installed. */
#include "bind.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* C = A x B on row-major float32, (m, k) x (k, n). */
struct product {
  int64_t m, n, k;
  const float *a, *b;
  float *c;
};

struct vendor {
  const char *name, *library;
  void (*start)(void *handle, int threads);
  void (*describe)(void *handle, char *text, size_t size);
  void (*multiply)(void *routine, const struct product *p);
  const char *routine;
};

/* ---- OpenBLAS ---- */

static void start_openblas(void *handle, int threads) {
  void (*set_threads)(int) = (void (*)(int))dlsym(handle, "openblas_set_num_threads");
  if (set_threads) set_threads(threads);
}

static void describe_openblas(void *handle, char *text, size_t size) {
  char *(*config)(void) = (char *(*)(void))dlsym(handle, "openblas_get_config");
  char *(*core)(void) = (char *(*)(void))dlsym(handle, "openblas_get_corename");
  int (*threads)(void) = (int (*)(void))dlsym(handle, "openblas_get_num_threads");
  const char *version = config ? config() : "OpenBLAS";
  int words = (int)strcspn(version, " ");
  if (version[words]) words += 1 + (int)strcspn(version + words + 1, " ");
  snprintf(text, size, "%.*s, core %s, %d threads", words, version, core ? core() : "unknown", threads ? threads() : 0);
}

static void multiply_openblas(void *routine, const struct product *p) {
  enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
  typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
  ((sgemm *)routine)(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, (int)p->m, (int)p->n, (int)p->k, 1, p->a, (int)p->k, p->b,
                     (int)p->n, 0, p->c, (int)p->n);
}

/* ---- oneDNN: with as many threads as libgomp has ---- */

static void describe_onednn(void *handle, char *text, size_t size) {
  struct version {
    int major, minor, patch;
  };
  const struct version *(*version)(void) = (const struct version *(*)(void))dlsym(handle, "dnnl_version");
  int (*isa)(void) = (int (*)(void))dlsym(handle, "dnnl_get_effective_cpu_isa");
  if (!version) return;
  snprintf(text, size, "oneDNN %d.%d.%d, instruction set %#x", version()->major, version()->minor, version()->patch,
           (unsigned)(isa ? isa() : 0));
}

static void multiply_onednn(void *routine, const struct product *p) {
  typedef int sgemm(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t, float,
                    float *, int64_t);
  ((sgemm *)routine)('N', 'N', p->m, p->n, p->k, 1, p->a, p->k, p->b, p->n, 0, p->c, p->n);
}

/* ---- The object ---- */

static const struct vendor vendors[] = {
    {"OpenBLAS", "libopenblas.so.0", start_openblas, describe_openblas, multiply_openblas, "cblas_sgemm"},
    {"oneDNN", "libdnnl.so.2", NULL, describe_onednn, multiply_onednn, "dnnl_sgemm"},
};

struct bound_vendor {
  const struct vendor *vendor;
  void *handle, *routine;
};
#define BOUND_VENDOR "msched.vendor"

/* vendors(threads): those whose libraries are here; they stay open, as their threads may */
static int open_vendors(lua_State *L) {
  int threads = (int)luaL_checkinteger(L, 1);
  lua_newtable(L);
  for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
    void *handle = dlopen(vendors[i].library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *routine = handle ? dlsym(handle, vendors[i].routine) : NULL;
    if (!routine) continue;
    if (vendors[i].start) vendors[i].start(handle, threads);
    struct bound_vendor *v = lua_newuserdatauv(L, sizeof *v, 0);
    *v = (struct bound_vendor){&vendors[i], handle, routine};
    luaL_setmetatable(L, BOUND_VENDOR);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
  }
  return 1;
}

static struct bound_vendor *check_vendor(lua_State *L, int at) { return luaL_checkudata(L, at, BOUND_VENDOR); }

static int vendor_name(lua_State *L) {
  lua_pushstring(L, check_vendor(L, 1)->vendor->name);
  return 1;
}

static int vendor_text(lua_State *L) {
  struct bound_vendor *v = check_vendor(L, 1);
  char text[200];
  snprintf(text, sizeof text, "%s", v->vendor->name);
  v->vendor->describe(v->handle, text, sizeof text);
  lua_pushstring(L, text);
  return 1;
}

static struct product check_product(lua_State *L, int at) {
  const struct bound_array *a[3];
  for (int i = 0; i < 3; i++) {
    a[i] = bind_check_array(L, at + i);
    luaL_argcheck(L, a[i]->rank == 2 && a[i]->type == TIR_T_F32, at + i, "a matrix of float32 is expected");
  }
  int64_t m = a[0]->shape[0], k = a[0]->shape[1], n = a[1]->shape[1];
  luaL_argcheck(L, a[1]->shape[0] == k, at + 1, "as many rows as the first has columns are expected");
  luaL_argcheck(L, a[2]->shape[0] == m && a[2]->shape[1] == n, at + 2, "the product's shape is expected");
  luaL_argcheck(L, m <= INT32_MAX && n <= INT32_MAX && k <= INT32_MAX, at, "extents below 2^31 are expected");
  return (struct product){m, n, k, a[0]->data, a[1]->data, a[2]->data};
}

/* vendor:multiply(A, B, C) */
static int multiply(lua_State *L) {
  struct bound_vendor *v = check_vendor(L, 1);
  struct product p = check_product(L, 2);
  v->vendor->multiply(v->routine, &p);
  return 0;
}

/* ---- Comparing times ---- */

static void call_kernel(void *call) { jit_call_run(call, NULL); }

struct vendor_call {
  struct bound_vendor *vendor;
  struct product product;
};

static void call_vendor(void *data) {
  struct vendor_call *v = data;
  v->vendor->vendor->multiply(v->vendor->routine, &v->product);
}

static void push_timing(lua_State *L, const struct jit_timing *t) {
  lua_newtable(L);
  lua_pushnumber(L, t->seconds), lua_setfield(L, -2, "seconds");
  lua_pushnumber(L, t->low), lua_setfield(L, -2, "low");
  lua_pushnumber(L, t->high), lua_setfield(L, -2, "high");
  lua_pushinteger(L, t->runs), lua_setfield(L, -2, "runs");
}

/* time_products(kernel, vendors, seconds, A, B, C): times in turn, the kernel's first; all write to C */
static int time_products(lua_State *L) {
  enum { MOST_VENDORS = sizeof vendors / sizeof *vendors };
  double seconds = luaL_checknumber(L, 3);
  luaL_checktype(L, 2, LUA_TTABLE);
  struct product p = check_product(L, 4);
  struct vendor_call theirs[MOST_VENDORS];
  struct jit_contender contenders[1 + MOST_VENDORS] = {{call_kernel, NULL}};
  struct jit_timing timings[1 + MOST_VENDORS];
  uint32_t count = 0;
  for (; count < MOST_VENDORS && lua_rawgeti(L, 2, (lua_Integer)count + 1) != LUA_TNIL; count++, lua_pop(L, 1)) {
    theirs[count] = (struct vendor_call){check_vendor(L, -1), p};
    contenders[1 + count] = (struct jit_contender){call_vendor, &theirs[count]};
  }
  lua_settop(L, 6);
  struct jit_call *ours = bind_call(L, 1, 4);
  contenders[0].data = ours;
  bool ok = jit_time_in_turn(contenders, 1 + count, seconds, timings);
  jit_call_free(ours);
  if (!ok) return bind_refuse(L, "no memory for timing");
  lua_newtable(L);
  for (uint32_t i = 0; i <= count; i++) push_timing(L, &timings[i]), lua_rawseti(L, -2, (lua_Integer)i + 1);
  return 1;
}

void bind_vendors(lua_State *L) {
  static const luaL_Reg methods[] = {{"name", vendor_name}, {"multiply", multiply}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__tostring", vendor_text}, {NULL, NULL}};
  bind_type(L, BOUND_VENDOR, methods, meta);
  static const luaL_Reg functions[] = {{"vendors", open_vendors}, {"time_products", time_products}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

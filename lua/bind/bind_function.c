/* Functions of Lua's module: TVMScript in and out. */
#include "bind.h"
#include "lua/bind/state/format.h"

#include <stdlib.h>
#include <string.h>

struct bound_function *bind_check_function(lua_State *L, int at) {
  struct bound_function *b = luaL_checkudata(L, at, BOUND_FUNCTION);
  if (!b->ir) bind_refuse(L, "this function is no more");
  return b;
}

void bind_push_function(lua_State *L, struct tir *ir, tir_func f) {
  assert(tir_is_func(ir, f));
  struct bound_function *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = (struct bound_function){.ir = ir, .func = f};
  luaL_setmetatable(L, BOUND_FUNCTION);
  script_charge(L, &b->charged, tir_bytes(ir));
}

/* The userdata comes first: should the state's memory be out, nothing is lost. */
void bind_push_function_copy(lua_State *L, const struct tir *ir, tir_func f) {
  assert(tir_is_func(ir, f));
  struct bound_function *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = (struct bound_function){.func = f};
  luaL_setmetatable(L, BOUND_FUNCTION);
  b->ir = tir_new();
  tir_copy(b->ir, ir);
  script_charge(L, &b->charged, tir_bytes(b->ir));
}

void bind_forget_expected(struct bound_function *b) {
  if (b->expected) tir_expectation_free(b->expected);
  free(b->expected);
  b->expected = NULL;
}

static int collect(lua_State *L) {
  struct bound_function *b = luaL_checkudata(L, 1, BOUND_FUNCTION);
  bind_forget_expected(b);
  tir_free(b->ir);
  b->ir = NULL;
  script_discharge(L, &b->charged);
  return 0;
}

/* A string made with malloc, pushed and freed: the push may raise, so it is held by a userdata meanwhile. */
struct held_text {
  char *text;
};
static int free_text(lua_State *L) {
  struct held_text *held = lua_touserdata(L, 1);
  free(held->text);
  held->text = NULL;
  return 0;
}

static void push_printed(lua_State *L, const struct tir *ir, tir_func f, unsigned flags) {
  assert(!f || tir_is_func(ir, f));
  struct held_text *held = bind_hold(L, sizeof *held, "msched.text", free_text);
  held->text = tir_print(ir, f, flags);
  lua_pushstring(L, held->text ? held->text : "");
  lua_remove(L, -2);
}

static int script(lua_State *L) {
  struct bound_function *b = bind_check_function(L, 1);
  push_printed(L, b->ir, TIR_NONE, bind_option_bool(L, 2, "colour", false) ? TIR_PRINT_COLOUR : 0);
  return 1;
}

static int name(lua_State *L) {
  struct bound_function *b = bind_check_function(L, 1);
  lua_pushstring(L, tir_text(b->ir, b->ir->funcs.at[b->func].name));
  return 1;
}

static int hash(lua_State *L) {
  struct bound_function *b = bind_check_function(L, 1);
  char text[20];
  snprintf(text, sizeof text, "%016llx", (unsigned long long)tir_structural_hash(b->ir, b->func));
  lua_pushstring(L, text);
  return 1;
}

static bool is_number(const struct tir *ir, tir_expr e, int64_t wanted) {
  return tir_is_int(ir, e) && tir_at(ir, e)->imm == wanted;
}

/* Whether numbers lay the buffer out otherwise than row by row from its memory's begin. */
static bool is_laid_out(const struct tir *ir, const struct tir_buffer_node *n) {
  assert(!n->strides.count || n->strides.count == n->rank);
  int64_t stride = 1;
  bool dense = !n->elem_offset || is_number(ir, n->elem_offset, 0),
       known = !n->elem_offset || tir_is_int(ir, n->elem_offset);
  for (uint32_t d = n->rank; d-- > 0 && known;) {
    const struct tir_expr_node *extent = tir_at(ir, tir_operands(ir, n->shape)[d]);
    tir_expr step = n->strides.count ? tir_operands(ir, n->strides.first)[d] : TIR_NONE;
    known = extent->kind == TIR_INT_IMM && (!step || tir_is_int(ir, step));
    dense = dense && (!step || is_number(ir, step, stride));
    if (known && __builtin_mul_overflow(stride, extent->imm, &stride)) known = false;
  }
  return known && !dense;
}

static void push_memory(lua_State *L, const struct bound_function *b, uint32_t param, const struct tir_buffer_node *n) {
  struct tir_arg *args = calloc(b->ir->funcs.at[b->func].params.count, sizeof *args);
  if (!args) abort();
  tir_size_arguments(b->ir, b->func, args);
  size_t bytes = args[param].bytes;
  free(args);
  if (bytes == SIZE_MAX) return;
  lua_pushinteger(L, (lua_Integer)(bytes / (size_t)tir_type_bytes(n->type)));
  lua_setfield(L, -2, "elements");
}

/* params(): a list of {name, type, shape, elements}; elements: of its memory, where strides or an offset lay it out */
static int params(lua_State *L) {
  struct bound_function *b = bind_check_function(L, 1);
  struct tir_span all = b->ir->funcs.at[b->func].params;
  lua_createtable(L, (int)all.count, 0);
  for (uint32_t i = 0; i < all.count; i++) {
    const struct tir_param *p = &b->ir->params.at[all.first + i];
    char text[24];
    lua_newtable(L);
    if (p->buffer) {
      const struct tir_buffer_node *n = tir_buffer_at(b->ir, p->buffer);
      lua_pushstring(L, tir_text(b->ir, n->name));
      lua_setfield(L, -2, "name");
      lua_pushstring(L, tir_type_text(n->type, text));
      lua_setfield(L, -2, "type");
      lua_createtable(L, (int)n->rank, 0);
      for (uint32_t d = 0; d < n->rank; d++) {
        const struct tir_expr_node *e = tir_at(b->ir, tir_operands(b->ir, n->shape)[d]);
        lua_pushinteger(L, e->kind == TIR_INT_IMM ? e->imm : -1);
        lua_rawseti(L, -2, d + 1);
      }
      lua_setfield(L, -2, "shape");
      if (is_laid_out(b->ir, n)) push_memory(L, b, i, n);
    } else {
      char name[100];
      tir_name_render(b->ir, b->ir->vars.at[p->var].name, name, sizeof name);
      lua_pushstring(L, name);
      lua_setfield(L, -2, "name");
      lua_pushstring(L, tir_type_text(b->ir->vars.at[p->var].type, text));
      lua_setfield(L, -2, "type");
    }
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* escape(): nil, or {block, buffer, nth, dimension, low, high, extent} of a load that can leave its buffer */
static int escape(lua_State *L) {
  struct bound_function *b = bind_check_function(L, 1);
  struct tir_escape e;
  if (!tir_find_escape(b->ir, b->func, &e)) return 0;
  lua_newtable(L);
  lua_pushstring(L, tir_block_name(b->ir, e.block)), lua_setfield(L, -2, "block");
  lua_pushstring(L, tir_text(b->ir, tir_buffer_at(b->ir, e.buffer)->name)), lua_setfield(L, -2, "buffer");
  lua_pushinteger(L, e.nth), lua_setfield(L, -2, "nth");
  lua_pushinteger(L, e.dimension + 1), lua_setfield(L, -2, "dimension");
  lua_pushinteger(L, e.low), lua_setfield(L, -2, "low");
  lua_pushinteger(L, e.high), lua_setfield(L, -2, "high");
  lua_pushinteger(L, e.extent), lua_setfield(L, -2, "extent");
  return 1;
}

/* loads(): of each parameter how often a load of its elements stands in the function's statements; 0 of a number */
static int loads(lua_State *L) {
  const struct bound_function *b = bind_check_function(L, 1);
  struct tir_span params = b->ir->funcs.at[b->func].params;
  lua_createtable(L, (int)params.count, 0);
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer buffer = b->ir->params.at[params.first + i].buffer;
    lua_pushinteger(L, buffer ? tir_count_all_loads(b->ir, b->func, buffer) : 0);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

/* Of all types of a kind. */
static double count_operations(const struct tir_work *work, bool floats) {
  double all = 0;
  for (int k = 0; k < TIR_WORK_KINDS; k++)
    if (tir_work_is_of_floats((enum tir_work_kind)k) == floats) all += work->operations[k];
  return all;
}

static struct tir_work work_of(lua_State *L) {
  const struct bound_function *b = bind_check_function(L, 1);
  struct tir_work work;
  tir_count_work(b->ir, b->func, &work);
  return work;
}

/* flops(): operations on floats that the function does, inits aside; 0 where extents are not constants. */
static int flops(lua_State *L) {
  struct tir_work work = work_of(L);
  lua_pushnumber(L, count_operations(&work, true));
  return 1;
}

/* integer_ops(): the same of integers */
static int integer_ops(lua_State *L) {
  struct tir_work work = work_of(L);
  lua_pushnumber(L, count_operations(&work, false));
  return 1;
}

/* work(): {operations = {float32 = n, …}, floats, integers, read_bytes, written_bytes} */
static int work(lua_State *L) {
  struct tir_work w = work_of(L);
  lua_createtable(L, 0, 5);
  lua_newtable(L);
  for (int k = 0; k < TIR_WORK_KINDS; k++) {
    if (w.operations[k] == 0) continue;
    lua_pushnumber(L, w.operations[k]);
    lua_setfield(L, -2, tir_work_name((enum tir_work_kind)k));
  }
  lua_setfield(L, -2, "operations");
  lua_pushnumber(L, count_operations(&w, true)), lua_setfield(L, -2, "floats");
  lua_pushnumber(L, count_operations(&w, false)), lua_setfield(L, -2, "integers");
  lua_pushnumber(L, w.read_bytes), lua_setfield(L, -2, "read_bytes");
  lua_pushnumber(L, w.written_bytes), lua_setfield(L, -2, "written_bytes");
  return 1;
}

/* has_empty(): an extent of it is 0. */
static int has_empty(lua_State *L) {
  lua_pushboolean(L, bind_check_function(L, 1)->ir->has_empty);
  return 1;
}

static struct tir *read_script(const char *text, size_t length, const char *file, ms_error *err) {
  bool good = format_expect_text(file, text, length, "TVMScript is expected", err);
  struct tir *ir = good ? tir_read(text, length, file, err) : NULL;
  if (!ir || tir_verify_scopes(ir, err)) return ir;
  tir_free(ir);
  return NULL;
}

/* functions_of_script(text [, file]): a list of the functions, each alone */
static int functions_of_script(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length), *file = bind_opt_text(L, 2, "script");
  ms_error err = {.instruction = -1};
  struct tir *ir = read_script(text, length, file, &err);
  if (!ir) return bind_raise(L, &err);
  lua_newtable(L);
  bind_push_function(L, ir, 1);
  if (ir->funcs.count == 2) return lua_rawseti(L, -2, 1), 1;
  for (uint32_t f = 1; f < ir->funcs.count; f++) {
    push_printed(L, ir, f, 0);
    const char *alone = lua_tolstring(L, -1, &length);
    struct tir *one = tir_read(alone, length, file, &err);
    if (!one) return bind_raise(L, &err);
    bind_push_function(L, one, 1);
    lua_rawseti(L, -4, f);
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return 1;
}

/* from_script(text [, file]): the only function, or `main` */
static int from_script(lua_State *L) {
  size_t length;
  const char *text = luaL_checklstring(L, 1, &length), *file = bind_opt_text(L, 2, "script");
  ms_error err = {.instruction = -1};
  struct tir *ir = read_script(text, length, file, &err);
  if (!ir) return bind_raise(L, &err);
  tir_func f = tir_find_func(ir, "main");
  if (!f) {
    tir_free(ir);
    return bind_refuse(L, "%s: several functions, and none is `main`", file);
  }
  bind_push_function(L, ir, f);
  return 1;
}

/* ---- Some loop nests as a function of their own (tir/derive/extract.c) ---- */

/* The list of names of blocks at `list`: strings that live with it, in memory on the top of the stack. */
static const char **names_of(lua_State *L, int list, lua_Integer count) {
  const char **names = lua_newuserdatauv(L, (size_t)count * sizeof *names, 0);
  for (lua_Integer i = 0; i < count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, list, i + 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      bind_refuse(L, "item %I of argument %d is no name of a block, but a %s", (LUAI_UACINT)(i + 1), list - 1,
                  luaL_typename(L, -1));
    names[i] = lua_tostring(L, -1);
  }
  return names;
}

/* extract(blocks, name [, names]): the loop nests of the blocks of these names, in their order, as a function of this
 * name; its parameters are the buffers that it reads of others or gives to them. names: of the blocks there. */
static int extract(lua_State *L) {
  struct bound_function *b = bind_check_function(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  const char *name = bind_check_text(L, 3);
  lua_settop(L, 4);
  lua_Integer count = luaL_len(L, 2);
  luaL_argcheck(L, count > 0 && count <= UINT32_MAX, 2, "a list of names of blocks is expected");
  const char **blocks = names_of(L, 2, count), **names = lua_istable(L, 4) ? names_of(L, 4, count) : NULL;
  ms_error err = {.instruction = -1};
  struct tir *made = tir_extract(b->ir, b->func, blocks, names, (uint32_t)count, name, &err);
  if (!made) return bind_refuse(L, "%s", err.message);
  bind_push_function(L, made, 1);
  return 1;
}

/* ---- Elementary functions ---- */

static void add_te_function(void *data, const char *name, const char *doc) {
  lua_State *L = data;
  lua_createtable(L, 0, 2);
  lua_pushstring(L, name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, doc);
  lua_setfield(L, -2, "doc");
  lua_rawseti(L, -2, luaL_len(L, -2) + 1);
}

void bind_functions(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"script", script},
                                     {"name", name},
                                     {"hash", hash},
                                     {"params", params},
                                     {"flops", flops},
                                     {"integer_ops", integer_ops},
                                     {"work", work},
                                     {"loads", loads},
                                     {"escape", escape},
                                     {"extract", extract},
                                     {"has_empty", has_empty},
                                     {"symbolic", bind_symbolic},
                                     {"packing", bind_packing},
                                     {"in_place", bind_in_place},
                                     {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect}, {"__tostring", script}, {NULL, NULL}};
  bind_type(L, BOUND_FUNCTION, methods, meta);
  lua_pushcfunction(L, functions_of_script);
  lua_setfield(L, -2, "functions_of_script");
  lua_pushcfunction(L, from_script);
  lua_setfield(L, -2, "from_script");
  lua_newtable(L);
  tir_each_te_function(add_te_function, L);
  lua_setfield(L, -2, "te_functions");
}

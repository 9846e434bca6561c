/* Functions cut out of functions: some statements of a root block, as a function of their own. */
#include "bind.h"

#include <stdlib.h>
#include <string.h>

enum { USED_INSIDE = 1, USED_OUTSIDE = 2, WRITTEN = 4, LISTED = 8 };

/* A copy of the module that becomes the part; what is said of statements and buffers is by their index. */
struct extraction {
  struct tir *ir;
  tir_func func;
  tir_block root;
  uint8_t *kept;    /* by statement: it was asked for */
  uint8_t *buffers; /* by buffer: flags of the above */
};

static void end_extraction(struct extraction *e) {
  tir_free(e->ir);
  free(e->kept);
  free(e->buffers);
  *e = (struct extraction){0};
}

static int free_extraction(lua_State *L) { /* where something was raised */
  end_extraction(lua_touserdata(L, 1));
  return 0;
}

static bool is_buffer_param(const struct tir *ir, tir_func f, tir_buffer b) {
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = 0; i < params.count; i++)
    if (ir->params.at[params.first + i].buffer == b) return true;
  return false;
}

/* What is cut is a sequence of loop nests whose blocks declare what they use, and buffers that the root allocates. */
static void check_root(lua_State *L, struct extraction *e) {
  struct tir *ir = e->ir;
  const char *name = tir_text(ir, ir->funcs.at[e->func].name);
  if (!e->root) bind_refuse(L, "`%s` has no root block", name);
  const struct tir_block_record *r = tir_block_at(ir, e->root);
  const struct tir_stmt_node *n = tir_stmt_at(ir, e->root);
  if (n->annotations.count || r->iters.count || r->matches.count || n->first[TIR_INIT])
    bind_refuse(L, "the root block of `%s` has annotations, iterations or matched buffers", name);
  for (tir_stmt s = n->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    if (!tir_is(ir, s, TIR_LOOP) && !tir_is(ir, s, TIR_BLOCK))
      bind_refuse(L, "`%s` has statements that stand in no block", name);
  tir_find_undeclared(ir);
  if (ir->undeclared == TIR_SOME_UNDECLARED)
    bind_refuse(L, "in `%s`, buffers are used in ways that no block's regions declare", name);
}

/* The statement of the root that a block is in. */
static tir_stmt nest_of(const struct tir *ir, tir_block root, tir_block b) {
  tir_stmt s = b;
  while (tir_stmt_at(ir, s)->parent != root) s = tir_stmt_at(ir, s)->parent;
  return s;
}

/* The block of a name below the root. */
static tir_block find_block(lua_State *L, const struct extraction *e, const char *name) {
  tir_block found = TIR_NONE;
  for (tir_stmt s = e->root; s; s = tir_next(e->ir, s, e->root)) {
    if (s == e->root || !tir_is(e->ir, s, TIR_BLOCK) || strcmp(tir_block_name(e->ir, s), name)) continue;
    if (found) bind_refuse(L, "two blocks are named `%s`: blocks are told apart by their names", name);
    found = s;
  }
  if (!found) bind_refuse(L, "there is no block `%s`", name);
  return found;
}

/* The item on the top of the stack of the list that is argument `list`: a block's name. */
static const char *block_name(lua_State *L, int list, lua_Integer item) {
  if (lua_type(L, -1) != LUA_TSTRING)
    bind_refuse(L, "item %I of argument %d is no name of a block, but a %s", (LUAI_UACINT)item, list - 1,
                luaL_typename(L, -1));
  return lua_tostring(L, -1);
}

/* Marks the nests of the blocks in the list at 2, and takes their new names, the list at 4, where there is one. */
static void mark_blocks(lua_State *L, struct extraction *e) {
  lua_Integer count = luaL_len(L, 2);
  luaL_argcheck(L, count > 0, 2, "a list of names of blocks is expected");
  tir_block *blocks = lua_newuserdatauv(L, (size_t)count * sizeof *blocks, 0);
  for (lua_Integer i = 0; i < count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 2, i + 1);
    blocks[i] = find_block(L, e, block_name(L, 2, i + 1));
    e->kept[nest_of(e->ir, e->root, blocks[i])] |= USED_INSIDE;
    e->kept[blocks[i]] |= LISTED;
  }
  for (lua_Integer i = 0; i < count && lua_istable(L, 4); i++, lua_pop(L, 1)) {
    lua_rawgeti(L, 4, i + 1);
    tir_set_block_name(e->ir, blocks[i], tir_symbol_of(e->ir, block_name(L, 4, i + 1)));
  }
  lua_pop(L, 1);
}

static void note_regions(struct extraction *e, tir_block b, bool writes, uint8_t flags) {
  struct tir_span regions = tir_regions(e->ir, b, writes);
  for (uint32_t i = 0; i < regions.count; i++) e->buffers[e->ir->regions.at[regions.first + i].buffer] |= flags;
}

/* Which buffers the nests that stay use, and which the others. */
static void note_uses(lua_State *L, struct extraction *e) {
  struct tir *ir = e->ir;
  for (tir_stmt top = tir_stmt_at(ir, e->root)->first[TIR_BODY]; top; top = tir_stmt_at(ir, top)->next) {
    bool inside = e->kept[top] & USED_INSIDE;
    for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
      if (!tir_is(ir, s, TIR_BLOCK)) continue;
      if (inside && !(e->kept[s] & LISTED))
        bind_refuse(L, "block `%s` is in one loop nest with blocks that are taken out, and is not named beside them",
                    tir_block_name(ir, s));
      uint8_t flags = inside ? USED_INSIDE : USED_OUTSIDE;
      note_regions(e, s, false, flags);
      note_regions(e, s, true, flags | (inside ? WRITTEN : 0));
    }
  }
}

static void leave_out_others(struct extraction *e) {
  tir_stmt next;
  for (tir_stmt s = tir_stmt_at(e->ir, e->root)->first[TIR_BODY]; s; s = next) {
    next = tir_stmt_at(e->ir, s)->next;
    if (!(e->kept[s] & USED_INSIDE)) tir_detach(e->ir, s);
  }
}

/* The root allocates what the part alone uses. Gives whether the buffer of others, or a parameter, is a parameter. */
static bool is_given(const struct extraction *e, tir_buffer b) {
  if (is_buffer_param(e->ir, e->func, b)) return true;
  return tir_buffer_at(e->ir, b)->where == e->root && (e->buffers[b] & USED_OUTSIDE);
}

static void add_param(struct extraction *e, struct tir_param param) {
  struct tir *ir = e->ir;
  if (ir->params.count == ir->params.capacity)
    ir->params.at = tir_enlarge(ir->params.at, &ir->params.capacity, ir->params.count + 1, sizeof *ir->params.at);
  ir->params.at[ir->params.count++] = param;
  ir->funcs.at[e->func].params.count++;
}

/* The parameters of old stay as they were passed, a handle as a handle. */
static struct tir_param old_param(const struct tir *ir, struct tir_span params, tir_buffer b) {
  for (uint32_t i = 0; i < params.count; i++)
    if (ir->params.at[params.first + i].buffer == b) return ir->params.at[params.first + i];
  return (struct tir_param){b, TIR_NONE};
}

/* Parameters in the order in which the text uses them, those that are read first and then those that are written: equal
 * parts have equal lists. */
static void make_params(struct extraction *e) {
  struct tir *ir = e->ir;
  struct tir_span old = ir->funcs.at[e->func].params;
  tir_buffer *list = calloc(ir->buffers.count + 1, sizeof *list);
  if (!list) abort();
  uint32_t count = 0;
  for (int written = 0; written < 2; written++)
    for (tir_stmt s = e->root; s; s = tir_next(ir, s, e->root)) {
      if (s == e->root || !tir_is(ir, s, TIR_BLOCK)) continue;
      for (int writes = 0; writes < 2; writes++) {
        struct tir_span regions = tir_regions(ir, s, writes);
        for (uint32_t i = 0; i < regions.count; i++) {
          tir_buffer b = ir->regions.at[regions.first + i].buffer;
          if (!(e->buffers[b] & LISTED) && is_given(e, b) && written == !!(e->buffers[b] & WRITTEN)) {
            e->buffers[b] |= LISTED;
            list[count++] = b;
          }
        }
      }
    }
  ir->funcs.at[e->func].params = (struct tir_span){ir->params.count, 0};
  for (uint32_t i = 0; i < count; i++) add_param(e, old_param(ir, old, list[i]));
  free(list);
}

/* Buffers that are parameters now, or are not used, are not allocated. */
static void keep_allocs(struct extraction *e) {
  struct tir *ir = e->ir;
  struct tir_span allocs = tir_block_at(ir, e->root)->allocs;
  tir_buffer *kept = calloc(allocs.count + 1, sizeof *kept);
  if (!kept) abort();
  uint32_t count = 0;
  for (uint32_t i = 0; i < allocs.count; i++) {
    tir_buffer b = ir->operands.at[allocs.first + i];
    if ((e->buffers[b] & USED_INSIDE) && !(e->buffers[b] & USED_OUTSIDE)) kept[count++] = b;
    if (e->buffers[b] & LISTED) tir_buffer_at(ir, b)->where = TIR_NONE;
  }
  tir_block_at(ir, e->root)->allocs = (struct tir_span){tir_add_operands(ir, kept, count), count};
  free(kept);
}

/* What the attributes say of parameters by their numbers, and the name by which others know the function, is the
 * whole's. */
static void name_part(struct extraction *e, const char *name) {
  struct tir *ir = e->ir;
  static const char *const dropped[] = {"global_symbol", "layout_free_buffers"};
  for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
    tir_symbol key = tir_find_symbol(ir, dropped[i]);
    if (key) tir_annotate_span(ir, &ir->funcs.at[e->func].attrs, key, TIR_NONE);
  }
  ir->funcs.at[e->func].name = tir_symbol_of(ir, name);
}

static bool is_identifier(const char *name) {
  size_t letters = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
  return *name && !strchr("0123456789", *name) && !name[letters];
}

/* extract(blocks, name [, names]): the loop nests of the blocks of these names, in their order, as a function of this
 * name; its parameters are the buffers that it reads of others or gives to them. names: of the blocks there. */
int bind_extract(lua_State *L) {
  struct bound_function *b = bind_check_function(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  const char *name = luaL_checkstring(L, 3);
  if (!is_identifier(name))
    bind_refuse(L, "`%s` is no name of a function: letters, digits and _ are, no digit first", name);
  lua_settop(L, 4);
  struct extraction *e = bind_hold(L, sizeof *e, "msched.extraction", free_extraction);
  e->ir = tir_new();
  tir_copy(e->ir, b->ir);
  e->func = b->func;
  e->root = tir_root_block(e->ir, e->func);
  check_root(L, e);
  e->kept = calloc(e->ir->stmts.count + 1, 1);
  e->buffers = calloc(e->ir->buffers.count + 1, 1);
  if (!e->kept || !e->buffers) abort();
  mark_blocks(L, e);
  note_uses(L, e);
  leave_out_others(e);
  make_params(e);
  keep_allocs(e);
  name_part(e, name);
  char *text = tir_print(e->ir, e->func, 0);
  ms_error err = {.instruction = -1};
  struct tir *made = tir_read(text, strlen(text), name, &err);
  free(text);
  end_extraction(e);
  if (made && !tir_verify(made, &err)) tir_free(made), made = NULL;
  if (!made) return bind_raise(L, &err);
  bind_push_function(L, made, 1);
  return 1;
}

/* Functions cut out of functions: some statements of a root block, as a function of their own. */
#include "tir/tir.h"

#include <stdlib.h>
#include <string.h>

enum { USED_INSIDE = 1, USED_OUTSIDE = 2, WRITTEN = 4, LISTED = 8, CONSTANT = 16 };

#define CONSTANTS "layout_free_buffers" /* an attribute: the numbers of parameters that are constant */

/* A copy of the module that becomes the part; the arrays are indexed by statement or buffer. */
struct extraction {
  struct tir *ir;
  tir_func func;
  tir_block root;
  uint8_t *kept;    /* by statement: it was asked for */
  uint8_t *buffers; /* by buffer: flags of the above */
};

static bool is_buffer_param(const struct tir *ir, tir_func f, tir_buffer b) {
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = 0; i < params.count; i++)
    if (ir->params.at[params.first + i].buffer == b) return true;
  return false;
}

/* What is cut is a sequence of loop nests whose blocks declare what they use, and buffers that the root allocates. */
static bool check_root(struct extraction *e, ms_error *err) {
  struct tir *ir = e->ir;
  const char *name = tir_text(ir, ir->funcs.at[e->func].name);
  if (!e->root) return ms_fail(err, MS_INVALID_ARGUMENT, "`%s` has no root block", name);
  const struct tir_block_record *r = tir_block_at(ir, e->root);
  const struct tir_stmt_node *n = tir_stmt_at(ir, e->root);
  if (n->annotations.count || r->iters.count || r->matches.count || n->first[TIR_INIT])
    return ms_fail(err, MS_INVALID_ARGUMENT, "the root block of `%s` has annotations, iterations or matched buffers",
                   name);
  for (tir_stmt s = n->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    if (!tir_is(ir, s, TIR_LOOP) && !tir_is(ir, s, TIR_BLOCK))
      return ms_fail(err, MS_INVALID_ARGUMENT, "`%s` has statements that stand in no block", name);
  tir_find_undeclared(ir);
  if (ir->undeclared == TIR_SOME_UNDECLARED)
    return ms_fail(err, MS_INVALID_ARGUMENT, "in `%s`, buffers are used in ways that no block's regions declare", name);
  return true;
}

/* The statement of the root that a block is in. */
static tir_stmt nest_of(const struct tir *ir, tir_block root, tir_block b) {
  assert(tir_is_below(ir, b, root));
  tir_stmt s = b;
  while (tir_stmt_at(ir, s)->parent != root) s = tir_stmt_at(ir, s)->parent;
  return s;
}

/* The block of a name below the root; TIR_NONE: there is not one. */
static tir_block find_block(const struct extraction *e, const char *name, ms_error *err) {
  tir_block found = TIR_NONE;
  for (tir_stmt s = e->root; s; s = tir_next(e->ir, s, e->root)) {
    if (s == e->root || !tir_is(e->ir, s, TIR_BLOCK) || strcmp(tir_block_name(e->ir, s), name)) continue;
    if (found) {
      ms_fail(err, MS_BLOCK_NOT_UNIQUE, "two blocks are named `%s`: blocks are told apart by their names", name);
      return TIR_NONE;
    }
    found = s;
  }
  if (!found) ms_fail(err, MS_BLOCK_NOT_FOUND, "there is no block `%s`", name);
  return found;
}

/* Marks the nests of the blocks. */
static bool mark_blocks(struct extraction *e, const char *const *names, uint32_t count, tir_block *blocks,
                        ms_error *err) {
  for (uint32_t i = 0; i < count; i++) {
    blocks[i] = find_block(e, names[i], err);
    if (!blocks[i]) return false;
    e->kept[nest_of(e->ir, e->root, blocks[i])] |= USED_INSIDE;
    e->kept[blocks[i]] |= LISTED;
  }
  return true;
}

static void note_regions(struct extraction *e, tir_block b, bool writes, uint8_t flags) {
  struct tir_span regions = tir_regions(e->ir, b, writes);
  for (uint32_t i = 0; i < regions.count; i++) e->buffers[e->ir->regions.at[regions.first + i].buffer] |= flags;
}

/* Which buffers the nests that stay use, and which the others. */
static bool note_uses(struct extraction *e, ms_error *err) {
  struct tir *ir = e->ir;
  for (tir_stmt top = tir_stmt_at(ir, e->root)->first[TIR_BODY]; top; top = tir_stmt_at(ir, top)->next) {
    bool inside = e->kept[top] & USED_INSIDE;
    for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
      if (!tir_is(ir, s, TIR_BLOCK)) continue;
      if (inside && !(e->kept[s] & LISTED))
        return ms_fail(err, MS_INVALID_ARGUMENT,
                       "block `%s` is in one loop nest with blocks that are taken out, and is not named beside them",
                       tir_block_name(ir, s));
      uint8_t flags = inside ? USED_INSIDE : USED_OUTSIDE;
      note_regions(e, s, false, flags);
      note_regions(e, s, true, flags | (inside ? WRITTEN : 0));
    }
  }
  return true;
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
  struct tir_span params = ir->funcs.at[e->func].params;
  assert(params.first + params.count == ir->params.count); /* one after the other, at the end */
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

/* Which buffers are constant, before parameters have other numbers. */
static void note_constants(struct extraction *e) {
  const struct tir *ir = e->ir;
  struct tir_span params = ir->funcs.at[e->func].params;
  tir_expr list = tir_annotation(ir, ir->funcs.at[e->func].attrs, CONSTANTS);
  const struct tir_expr_node *n = list ? tir_at(ir, list) : NULL;
  for (uint32_t i = 0; n && n->kind == TIR_LIST && i < n->count; i++) {
    tir_expr number = tir_operands(ir, n->operands)[i];
    if (tir_is_int(ir, number) && tir_at(ir, number)->imm >= 0 && tir_at(ir, number)->imm < params.count)
      e->buffers[ir->params.at[params.first + tir_at(ir, number)->imm].buffer] |= CONSTANT;
  }
}

/* Those that the part has are constant there. */
static void keep_constants(struct extraction *e) {
  struct tir *ir = e->ir;
  struct tir_span params = ir->funcs.at[e->func].params;
  tir_expr *list = calloc(params.count + (size_t)1, sizeof *list);
  if (!list) abort();
  uint32_t count = 0;
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer b = ir->params.at[params.first + i].buffer;
    if (b && e->buffers[b] & CONSTANT) list[count++] = tir_int(ir, TIR_T_I32, i);
  }
  if (count)
    tir_annotate_span(ir, &ir->funcs.at[e->func].attrs, tir_symbol_of(ir, CONSTANTS), tir_list_value(ir, list, count));
  free(list);
}

/* What the attributes say of parameters by their numbers, and the name by which others know the function, is the
 * whole's. */
static void name_part(struct extraction *e, const char *name) {
  struct tir *ir = e->ir;
  static const char *const dropped[] = {"global_symbol", CONSTANTS};
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

/* Where the blocks are found, the module is the part; their new names are put before it is cut. */
static bool cut(struct extraction *e, const char *const *blocks, const char *const *names, uint32_t count,
                const char *name, ms_error *err) {
  tir_block *found = calloc(count, sizeof *found);
  if (!found) abort();
  bool done = mark_blocks(e, blocks, count, found, err);
  for (uint32_t i = 0; done && names && i < count; i++)
    tir_set_block_name(e->ir, found[i], tir_symbol_of(e->ir, names[i]));
  free(found);
  if (!done || !note_uses(e, err)) return false;
  leave_out_others(e);
  note_constants(e);
  make_params(e);
  keep_allocs(e);
  name_part(e, name);
  keep_constants(e);
  return true;
}

struct tir *tir_extract(const struct tir *ir, tir_func f, const char *const *blocks, const char *const *names,
                        uint32_t count, const char *name, ms_error *err) {
  assert(tir_is_func(ir, f) && blocks && count && name);
  if (!is_identifier(name)) {
    ms_fail(err, MS_INVALID_ARGUMENT, "`%s` is no name of a function: letters, digits and _ are, no digit first", name);
    return NULL;
  }
  struct extraction e = {.ir = tir_new(), .func = f};
  tir_copy(e.ir, ir);
  e.root = tir_root_block(e.ir, f);
  e.kept = calloc(e.ir->stmts.count + 1, 1);
  e.buffers = calloc(e.ir->buffers.count + 1, 1);
  if (!e.kept || !e.buffers) abort();
  struct tir *made = NULL;
  if (check_root(&e, err) && cut(&e, blocks, names, count, name, err)) {
    char *text = tir_print(e.ir, f, 0); /* read again: a module of the part alone */
    made = tir_read(text, strlen(text), name, err);
    free(text);
  }
  tir_free(e.ir);
  free(e.kept);
  free(e.buffers);
  if (made && !tir_verify(made, err)) tir_free(made), made = NULL;
  return made;
}

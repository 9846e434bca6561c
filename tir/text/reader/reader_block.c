/* Blocks: iteration variables, regions, predicates, matched buffers, init; and the root block where it is implied. */
#include "reader.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/detect.h"

#include <stdlib.h>
#include <string.h>

/* ---- Iteration variables ---- */

/* What a block declares holds for all of its body: it comes before the first statement. */
static bool expect_block(struct tir_reader *r, uint32_t token, const char *name) {
  if (!r->block || r->parent != r->block->block || r->list != TIR_BODY)
    return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "T.%s stands directly in a block", name);
  if (!tir_stmt_at(r->ir, r->parent)->first[TIR_BODY]) return true;
  return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "T.%s stands before the block's statements", name);
}

static bool add_iter(struct tir_reader *r, uint32_t token, tir_symbol name, enum tir_iter_kind kind, tir_type type,
                     tir_expr min, tir_expr extent, tir_expr binding) {
  assert(r->block && min && extent);
  struct tir_reader_block *b = r->block;
  if (b->iter_count == TIR_MOST_ITERS)
    return tir_reader_fail(r, token, MS_TOO_LARGE, "a block has at most %d iteration variables", TIR_MOST_ITERS);
  tir_type from = tir_type_of(r->ir, binding);
  if (!tir_type_is_int(from) || tir_type_lanes(from) != 1)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "an iteration variable is bound to an integer");
  tir_var v = tir_new_var(r->ir, TIR_VAR_ITER, tir_reader_name(r, name), type, min, extent);
  b->iters[b->iter_count++] = (struct tir_iter){v, kind, binding};
  tir_reader_bind(r, name, TIR_BOUND_EXPR, tir_var_expr(r->ir, v));
  return tir_reader_note(r, token, tir_var_expr(r->ir, v));
}

/* The domain: an extent, or (begin, end). */
static bool read_domain(struct tir_reader *r, struct tir_item v, tir_expr *min, tir_expr *extent) {
  tir_expr end;
  if (v.kind != TIR_ITEM_LIST) {
    if (!tir_reader_as_expr(r, v, extent)) return false;
    if (!tir_reader_check_extent(r, v.token, *extent, "the extent of this iteration variable")) return false;
    *min = tir_reader_zero(r, tir_type_of(r->ir, *extent));
    return true;
  }
  if (v.count != 2) return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected an extent or (begin, end)");
  if (!tir_reader_as_expr(r, r->items[v.first], min) || !tir_reader_as_expr(r, r->items[v.first + 1], &end) ||
      !tir_reader_match(r, v.token, min, &end))
    return false;
  return tir_reader_extent(r, v.token, *min, end, extent) &&
         tir_reader_check_extent(r, v.token, *extent, "the extent of this iteration variable");
}

static bool read_one_axis(struct tir_reader *r, struct tir_args *args, tir_symbol name, enum tir_iter_kind kind) {
  struct tir_item dom, binding_value, type_value;
  tir_expr min, extent, binding;
  tir_type type = TIR_T_I32;
  if (!tir_arg_at(r, args, 0, "dom", &dom) || !tir_arg_at(r, args, 1, "binding", &binding_value))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes a domain and a binding", args->name);
  if (tir_arg_at(r, args, 2, "dtype", &type_value) && !tir_reader_as_type(r, type_value, &type)) return false;
  if (!tir_args_done(r, args, 3) || !read_domain(r, dom, &min, &extent) ||
      !tir_reader_as_expr(r, binding_value, &binding))
    return false;
  tir_type of_domain = tir_type_of(r->ir, extent);
  if (tir_type_bits(of_domain) > tir_type_bits(type)) type = of_domain;
  if (of_domain != type &&
      (!tir_reader_cast(r, dom.token, type, min, &min) || !tir_reader_cast(r, dom.token, type, extent, &extent)))
    return false;
  return add_iter(r, args->token, name, kind, type, min, extent, binding);
}

/* Variables with the domains of the loops they are bound to. */
static bool read_remap(struct tir_reader *r, struct tir_args *args, const tir_symbol *names, uint32_t count) {
  struct tir_item kinds, bindings;
  if (!tir_arg_at(r, args, 0, "kinds", &kinds) || !tir_arg_at(r, args, 1, "bindings", &bindings) ||
      kinds.kind != TIR_ITEM_STRING || bindings.kind != TIR_ITEM_LIST)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.axis.remap takes a string of S and R and a list of loops");
  const char *letters = tir_reader_word(r, kinds.word);
  if (strlen(letters) != count || bindings.count != count)
    return tir_reader_fail(r, args->token, MS_TEXT_SYNTAX, "%u names, %zu kinds and %u loops", count, strlen(letters),
                           bindings.count);
  for (uint32_t i = 0; i < count; i++) {
    struct tir_item v = r->items[bindings.first + i];
    const struct tir_expr_node *n = v.kind == TIR_ITEM_EXPR ? tir_at(r->ir, v.expr) : NULL;
    if (!n || n->kind != TIR_VAR || r->ir->vars.at[n->ref].kind != TIR_VAR_LOOP)
      return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a loop variable");
    if (letters[i] != 'S' && letters[i] != 'R')
      return tir_reader_fail(r, kinds.token, MS_TEXT_TYPE, "the kinds are S, spatial, and R, reduction");
    const struct tir_var_node loop = r->ir->vars.at[n->ref];
    if (!add_iter(r, v.token, names[i], letters[i] == 'S' ? TIR_SPATIAL : TIR_REDUCE, loop.type, loop.min, loop.extent,
                  v.expr))
      return false;
  }
  return tir_args_done(r, args, 3);
}

bool tir_read_axis(struct tir_reader *r, const tir_symbol *targets, uint32_t count, const char *method,
                   uint32_t token) {
  static const struct {
    const char *name;
    enum tir_iter_kind kind;
  } kinds[] = {
      {"spatial", TIR_SPATIAL}, {"S", TIR_SPATIAL}, {"reduce", TIR_REDUCE}, {"R", TIR_REDUCE}, {"opaque", TIR_OPAQUE}};
  struct tir_args args = {.token = token, .name = "axis"};
  if (!expect_block(r, token, "axis") || !tir_read_args(r, &args)) return false;
  if (!strcmp(method, "remap")) return read_remap(r, &args, targets, count);
  if (count != 1) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "expected one name for one variable");
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (!strcmp(method, kinds[i].name)) return read_one_axis(r, &args, targets[0], kinds[i].kind);
  return tir_reader_fail(r, token, MS_TEXT_UNSUPPORTED, "T.axis.%.40s is no kind of iteration variable", method);
}

/* ---- Regions, predicate, annotations ---- */

static bool read_regions(struct tir_reader *r, struct tir_args *args, bool writes) {
  struct tir_reader_block *b = r->block;
  if (writes ? b->has_writes : b->has_reads)
    return tir_reader_fail(r, args->token, MS_TEXT_SYNTAX, "T.%s stands twice in this block", args->name);
  uint32_t first = args->first, count = args->count;
  if (count == 1 && r->items[first].kind == TIR_ITEM_LIST) {
    count = r->items[first].count;
    first = r->items[first].first;
  }
  struct tir_region *regions = malloc((count + 1) * sizeof *regions);
  if (!regions) abort();
  bool good = true;
  for (uint32_t i = 0; i < count && good; i++) good = tir_reader_as_region(r, r->items[first + i], &regions[i]);
  if (good && writes) tir_set_writes(r->ir, b->block, regions, count);
  if (good && !writes) tir_set_reads(r->ir, b->block, regions, count);
  free(regions);
  *(writes ? &b->has_writes : &b->has_reads) = true;
  return good && tir_args_done(r, args, TIR_MOST_ARGS);
}

static bool read_where(struct tir_reader *r, struct tir_args *args) {
  struct tir_item v;
  tir_expr e;
  if (r->block->has_predicate)
    return tir_reader_fail(r, args->token, MS_TEXT_SYNTAX, "T.where stands twice in this block");
  if (!tir_arg_at(r, args, 0, "predicate", &v))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "expected a condition");
  if (v.kind == TIR_ITEM_INT && (v.integer == 0 || v.integer == 1)) v.kind = TIR_ITEM_TRUTH;
  if (!tir_args_done(r, args, 1) || !tir_reader_as_expr(r, v, &e)) return false;
  if (tir_type_of(r->ir, e) != TIR_T_BOOL) return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a condition");
  r->block->has_predicate = true;
  tir_as(r->ir, r->block->block, TIR_BLOCK)->block.predicate = tir_is_const(r->ir, e, 1) ? TIR_NONE : e;
  return true;
}

static bool read_attributes(struct tir_reader *r, struct tir_args *args, tir_stmt block) {
  struct tir_item v;
  if (!tir_arg_at(r, args, 0, "attrs", &v))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "expected a dictionary");
  if (!tir_args_done(r, args, 1)) return false;
  struct tir_span span = block ? tir_stmt_at(r->ir, block)->annotations : r->ir->funcs.at[r->func].attrs;
  if (!tir_reader_annotations(r, v, &span)) return false;
  if (block)
    tir_stmt_at(r->ir, block)->annotations = span;
  else
    r->ir->funcs.at[r->func].attrs = span;
  return true;
}

bool tir_read_block_line(struct tir_reader *r, const char *name, uint32_t token, bool *known) {
  struct tir_args args = {.token = token, .name = name};
  bool reads = !strcmp(name, "reads"), writes = !strcmp(name, "writes"), where = !strcmp(name, "where");
  bool attributes = !strcmp(name, "sblock_attr") || !strcmp(name, "block_attr"), func = !strcmp(name, "func_attr");
  *known = reads || writes || where || attributes || func;
  if (!*known) return true;
  if (func) return tir_read_args(r, &args) && read_attributes(r, &args, TIR_NONE);
  if (!expect_block(r, token, name) || !tir_read_args(r, &args)) return false;
  if (reads || writes) return read_regions(r, &args, writes);
  return where ? read_where(r, &args) : read_attributes(r, &args, r->block->block);
}

bool tir_add_match(struct tir_reader *r, uint32_t token, struct tir_item region, tir_buffer buffer) {
  assert(tir_is_buffer(r->ir, buffer));
  struct tir_region source;
  if (!expect_block(r, token, "match_buffer") || !tir_reader_as_region(r, region, &source)) return false;
  if (r->block->match_count == TIR_MOST_ITERS)
    return tir_reader_fail(r, token, MS_TOO_LARGE, "too many matched buffers");
  r->block->matches[r->block->match_count++] = (struct tir_match){buffer, source};
  tir_buffer_at(r->ir, buffer)->where = r->block->block;
  return true;
}

/* ---- The block itself ---- */

bool tir_read_init(struct tir_reader *r, uint32_t token) {
  if (!expect_block(r, token, "init")) return false;
  if (r->block->has_init) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "this block has an init already");
  r->block->has_init = true;
  uint32_t scope = tir_reader_open_scope(r);
  bool good = tir_read_suite(r, r->block->block, TIR_INIT);
  tir_reader_close_scope(r, scope);
  return good;
}

static void note_detection(struct tir_reader *r, const struct tir_reader_block *b, uint32_t token) {
  assert(tir_is(r->ir, b->block, TIR_BLOCK));
  if (b->has_reads && b->has_writes) return;
  if (r->detection_count == r->detection_capacity)
    r->detections =
        tir_enlarge(r->detections, &r->detection_capacity, (uint64_t)r->detection_count + 1, sizeof *r->detections);
  r->detections[r->detection_count++] = (struct tir_detection){b->block, token, !b->has_reads, !b->has_writes};
}

bool tir_read_block(struct tir_reader *r, uint32_t token) {
  struct tir_args args = {.token = token, .name = "sblock"};
  struct tir_item name;
  if (!tir_read_args(r, &args)) return false;
  bool named = tir_arg_at(r, &args, 0, "name", &name);
  if (named && name.kind != TIR_ITEM_STRING)
    return tir_reader_fail(r, name.token, MS_TEXT_TYPE, "expected the name of the block as a string");
  if (!tir_args_done(r, &args, 1)) return false;
  tir_symbol symbol = named ? tir_reader_symbol(r, name.word) : tir_symbol_of(r->ir, "");
  tir_block block = tir_new_block(r->ir, symbol);
  struct tir_reader_block *b = calloc(1, sizeof *b);
  if (!b) abort();
  b->outer = r->block;
  b->block = block;
  tir_stmt parent = r->parent;
  enum tir_list list = r->list;
  uint32_t scope = tir_reader_open_scope(r), depth = r->stmt_depth;
  bool good = tir_reader_enter(r, token, block);
  r->block = b;
  good = good && tir_read_suite(r, block, TIR_BODY);
  r->block = b->outer;
  r->parent = parent;
  r->list = list;
  r->stmt_depth = depth;
  tir_reader_close_scope(r, scope);
  if (good) {
    tir_set_iters(r->ir, block, b->iters, b->iter_count);
    tir_set_matches(r->ir, block, b->matches, b->match_count);
    tir_note_annotated(r->ir, block);
    note_detection(r, b, token);
  }
  free(b);
  return good;
}

/* ---- What is implied ---- */

/* A root block is written only where it says more than what it allocates: see the printer. */
static bool needs_root(const struct tir_reader *r, tir_stmt body) {
  const struct tir *ir = r->ir;
  if (r->root_alloc_count) return true;
  tir_stmt first = tir_stmt_at(ir, body)->first[TIR_BODY];
  if (first && !tir_stmt_at(ir, first)->next && tir_is(ir, first, TIR_BLOCK))
    return tir_block_at(ir, first)->iters.count > 0;
  return tir_contains_block(ir, body);
}

bool tir_complete_func(struct tir_reader *r) {
  struct tir *ir = r->ir;
  tir_stmt body = ir->funcs.at[r->func].body;
  if (needs_root(r, body)) {
    tir_block root = tir_new_block(ir, tir_symbol_of(ir, "root"));
    tir_move_children(ir, body, TIR_BODY, root, TIR_BODY);
    tir_append(ir, body, TIR_BODY, root);
    for (uint32_t i = 0; i < r->root_alloc_count; i++) tir_add_alloc(ir, root, r->root_allocs[i]);
  }
  for (uint32_t i = 0; i < r->detection_count; i++) {
    struct tir_detection d = r->detections[i];
    bool is_root = !tir_parent_block(ir, d.block);
    if (!tir_detect_regions(ir, d.block, d.reads && !is_root, d.writes && !is_root))
      return tir_reader_fail(r, d.token, MS_TEXT_UNSUPPORTED,
                             "this block uses a buffer through its pointer: write its T.reads and T.writes");
  }
  return true;
}

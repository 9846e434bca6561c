/* FuseOnlineSoftmax: which producers go into the fused block, and what it is made of. */
#include "fuse_online_softmax.h"
#include "inline.h"
#include "loops.h"
#include "tir/analysis/detect.h"
#include "tir/analysis/order/order.h"

#include <string.h>

/* ---- Producers ---- */

/* The one element of a buffer that expressions load; `other`: there are several, or it is loaded under a condition. */
struct element {
  const struct tir *ir;
  tir_buffer buffer;
  uint32_t indices;
  bool found, other;
};

static bool find_element(void *data, tir_expr e) {
  struct element *s = data;
  const struct tir_expr_node *n = tir_at(s->ir, e);
  if (n->kind != TIR_LOAD || n->ref != s->buffer) return true;
  const uint32_t *now = tir_operands(s->ir, n->operands);
  s->other = s->other || n->a || (s->found && memcmp(tir_operands(s->ir, s->indices), now, n->count * sizeof *now));
  s->indices = n->operands;
  s->found = true;
  return true;
}

static tir_stmt only_store(const struct tir *ir, tir_block block) {
  tir_stmt store = tir_only_store(ir, block, TIR_BODY);
  return store && tir_stmt_at(ir, block)->first[TIR_BODY] == store ? store : TIR_NONE;
}

/* The element that the exponent, and the producers found so far, load. */
static bool find_loaded(struct tir *ir, const struct tir_fused_softmax *plan, tir_buffer buffer, uint32_t *indices) {
  struct element s = {ir, buffer, 0, false, false};
  tir_walk_expr(ir, plan->x, find_element, &s);
  for (uint32_t i = 0; i < plan->producer_count; i++) {
    const struct tir_softmax_producer *p = &plan->producers[i];
    for (uint32_t k = 0; k < tir_block_at(ir, p->block)->iters.count; k++)
      if (p->at[k]) tir_subst_var(ir, tir_iters(ir, p->block)[k].var, p->at[k]);
    tir_expr value = tir_subst(ir, tir_as(ir, only_store(ir, p->block), TIR_STORE)->store.value);
    tir_subst_clear(ir);
    tir_walk_expr(ir, value, find_element, &s);
  }
  *indices = s.indices;
  return s.found && !s.other;
}

static bool is_foreign(const struct tir *ir, const void *context, tir_var v) {
  const struct tir_fused_softmax *plan = context;
  for (uint32_t d = 0; d < plan->maximum.rank; d++)
    if (plan->row[d] == tir_var_expr(ir, v)) return false;
  return v != plan->product.column;
}

/* One row, one column, or the same for all of a tile. */
static bool is_tileable(struct tir *ir, const struct tir_fused_softmax *plan, tir_expr index) {
  if (tir_any_var(ir, index, is_foreign, plan) || (tir_at(ir, index)->flags & TIR_HAS_LOAD)) return false;
  if (tir_at(ir, index)->kind == TIR_VAR) return true;
  return !tir_uses_var(ir, index, plan->product.column) &&
         !tir_uses_var(ir, index, tir_at(ir, plan->row[plan->tiled])->ref);
}

/* What each iteration is, by the index that it writes at. */
static bool find_places(struct tir *ir, const struct tir_fused_softmax *plan, uint32_t written, uint32_t loaded,
                        struct tir_softmax_producer *p) {
  uint32_t rank = tir_buffer_at(ir, p->buffer)->rank, places = 0;
  struct tir_span iters = tir_block_at(ir, p->block)->iters;
  for (uint32_t i = 0; i < iters.count; i++) {
    struct tir_iter iter = ir->iters.at[iters.first + i];
    p->at[i] = TIR_NONE;
    for (uint32_t d = 0; d < rank && iter.kind == TIR_SPATIAL; d++) {
      if (tir_operands(ir, written)[d] != tir_var_expr(ir, iter.var)) continue;
      if (p->at[i] || !is_tileable(ir, plan, tir_operands(ir, loaded)[d])) return false;
      p->at[i] = tir_operands(ir, loaded)[d];
      places++;
    }
    if (iter.kind != TIR_REDUCE && !p->at[i]) return false;
  }
  for (uint32_t d = 0; d < rank; d++) places += tir_is_const(ir, tir_operands(ir, written)[d], 0);
  return places == rank;
}

bool tir_runs_whole(struct tir *ir, tir_block block) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_interval taken[TIR_MOST_SOFTMAX_ITERS];
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (iters.count > TIR_MOST_SOFTMAX_ITERS || !tir_exact_iterations(ir, block, TIR_NONE, taken)) return false;
  for (uint32_t i = 0; i < iters.count; i++) {
    struct tir_var_node v = ir->vars.at[ir->iters.at[iters.first + i].var];
    if (!tir_is_const(ir, v.min, 0) || !tir_is_int(ir, v.extent) || taken[i].empty ||
        !tir_is_const(ir, taken[i].min, 0) || !tir_is_const(ir, taken[i].max, tir_at(ir, v.extent)->imm - 1))
      return false;
  }
  return true;
}

static bool is_ours(const struct tir_fused_softmax *plan, tir_block block) {
  bool ours = block == plan->maximum.block || block == plan->sum.block || block == plan->product.block;
  for (uint32_t i = 0; i < plan->producer_count && !ours; i++) ours = plan->producers[i].block == block;
  return ours;
}

static bool is_read_by_us_only(struct tir *ir, const struct tir_fused_softmax *plan, tir_block block,
                               tir_buffer buffer) {
  if (!tir_allocates(ir, plan->scope, buffer) || tir_memory_of(ir, buffer)) return false;
  for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u; u = ir->uses.at[u].next)
    if (ir->uses.at[u].block != block && !is_ours(plan, ir->uses.at[u].block)) return false;
  tir_expr zero = tir_float(ir, tir_type_of(ir, plan->exponential), 0);
  struct tir_fused_softmax apart = *plan;
  apart.normalizer = TIR_NONE;
  tir_expr rest = tir_weigh(ir, &apart, plan->product.value, zero);
  return !tir_uses_buffer(ir, rest, buffer) && (!apart.normalizer || !tir_uses_buffer(ir, apart.normalizer, buffer)) &&
         tir_check_blocks_only(ir, buffer, plan->scope, true, NULL) &&
         tir_check_no_opaque_access(ir, buffer, TIR_NONE, NULL) && tir_check_no_range_loads(ir, buffer, block, NULL);
}

static bool can_move(struct tir *ir, const struct tir_fused_softmax *plan, tir_block block) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  bool plain = !r->allocs.count && !r->matches.count && r->writes.count == 1 && only_store(ir, block);
  struct tir_transfer to_product = {.block = block, .scope = plan->scope, .to = plan->product.block};
  return plain && tir_only_loops_between(ir, block, plan->scope) &&
         tir_lowest_common_ancestor(ir, block, plan->product.block) == plan->scope &&
         tir_check_complete_or_reduction_block(ir, block, plan->scope, NULL) &&
         tir_check_reduces_inside(ir, block, plan->scope, NULL) && tir_runs_whole(ir, block) &&
         tir_check_order(ir, &to_product, NULL);
}

static bool find_producer(struct tir *ir, const struct tir_fused_softmax *plan, tir_block block,
                          struct tir_softmax_producer *out) {
  uint32_t loaded;
  if (is_ours(plan, block) || tir_block_at(ir, block)->writes.count != 1 || !only_store(ir, block)) return false;
  struct tir_stmt_node store = *tir_as(ir, only_store(ir, block), TIR_STORE);
  *out = (struct tir_softmax_producer){.block = block, .buffer = store.store.buffer};
  return find_loaded(ir, plan, out->buffer, &loaded) && is_read_by_us_only(ir, plan, block, out->buffer) &&
         can_move(ir, plan, block) && find_places(ir, plan, store.store.indices, loaded, out);
}

/* From the last to the first: what a producer reads is made before it. */
void tir_find_softmax_producers(struct tir *ir, struct tir_fused_softmax *plan) {
  enum { MOST_BLOCKS = 256 };
  tir_block blocks[MOST_BLOCKS];
  uint32_t count = tir_child_blocks(ir, plan->scope, blocks, MOST_BLOCKS);
  struct tir_softmax_producer found;
  plan->producer_count = 0;
  if (count > MOST_BLOCKS) count = MOST_BLOCKS;
  for (uint32_t i = count; i-- > 0 && plan->producer_count < TIR_MOST_SOFTMAX_PRODUCERS;)
    if (tir_compare_position(ir, blocks[i], plan->maximum.block) < 0 && find_producer(ir, plan, blocks[i], &found))
      plan->producers[plan->producer_count++] = found;
}

/* ---- Edit: nests ---- */

enum { MOST_MADE = TIR_MOST_SOFTMAX_ITERS + 4 };

/* What is being built: the fused block, and what its iterations are. */
struct build {
  struct tir *ir;
  struct tir_fused_softmax *plan;
  tir_block outer;
  tir_expr row[TIR_MOST_SOFTMAX_ITERS], column; /* of the fused block: the tiled row and the column count tiles */
  tir_buffer tile_maximum, scale, weights, tile_sum, tile_product, product;
  uint32_t rows; /* indices of a row, in tir.operands, by the iterations of the nest that is built */
};

/* A block to be, and the loops around it. */
struct nest {
  struct tir_iter iters[MOST_MADE];
  tir_var loops[MOST_MADE];
  uint32_t count, loop_count;
  tir_expr predicate;
};

static tir_expr int_of(struct build *b, tir_expr like, int64_t value) {
  return tir_int(b->ir, tir_type_of(b->ir, like), value);
}

static int64_t extent_of(const struct build *b, tir_var v) { return tir_at(b->ir, b->ir->vars.at[v].extent)->imm; }

/* A loop named as the iteration is, but for the v in front. */
static tir_expr add_loop(struct build *b, struct nest *n, tir_var like, const char *suffix, int64_t extent) {
  char name[128];
  tir_expr of = tir_var_expr(b->ir, like);
  tir_name_render(b->ir, b->ir->vars.at[like].name, name, sizeof name);
  const char *stem = name[0] == 'v' && name[1] ? name + 1 + (name[1] == '_' && name[2]) : name;
  tir_name made = tir_name_suffix(b->ir, tir_name_of(b->ir, stem), suffix);
  tir_var v = tir_new_var(b->ir, TIR_VAR_LOOP, made, tir_type_of(b->ir, of), int_of(b, of, 0), int_of(b, of, extent));
  n->loops[n->loop_count++] = v;
  return tir_var_expr(b->ir, v);
}

static tir_expr add_iter(struct build *b, struct nest *n, tir_var like, enum tir_iter_kind kind, int64_t extent,
                         tir_expr binding) {
  struct tir_var_node old = b->ir->vars.at[like];
  tir_var v = tir_new_var(b->ir, TIR_VAR_ITER, old.name, old.type, int_of(b, old.expr, 0), int_of(b, old.expr, extent));
  n->iters[n->count++] = (struct tir_iter){v, kind, binding};
  return tir_var_expr(b->ir, v);
}

static int64_t tiles(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

/* Where an element of the tile `outer` is; the last tile may be cut short. */
static tir_expr place_in_tile(struct build *b, struct nest *n, tir_var like, tir_expr outer, int64_t tile) {
  int64_t extent = extent_of(b, like);
  tir_expr loop = add_loop(b, n, like, tiles(extent, tile) > 1 ? "_1" : "", tile);
  if (tiles(extent, tile) == 1) return loop;
  tir_expr at = tir_add(b->ir, tir_mul(b->ir, outer, int_of(b, loop, tile)), loop);
  if (extent % tile) n->predicate = tir_and(b->ir, n->predicate, tir_make(b->ir, TIR_LT, at, int_of(b, loop, extent)));
  return at;
}

static bool is_tiled(const struct build *b, tir_var v) {
  return b->plan->row[b->plan->tiled] == tir_var_expr(b->ir, v);
}

/* What the product's row is inside of the fused block. */
static tir_expr row_binding(struct build *b, struct nest *n, uint32_t d) {
  tir_var like = tir_at(b->ir, b->plan->row[d])->ref;
  return is_tiled(b, like) ? place_in_tile(b, n, like, b->row[d], b->plan->row_tile) : b->row[d];
}

/* From now on, until `finish`, iterations of the nest stand for the product's. */
static void add_rows(struct build *b, struct nest *n) {
  uint32_t rank = b->plan->maximum.rank;
  tir_expr at[TIR_MOST_SOFTMAX_ITERS];
  for (uint32_t d = 0; d < rank; d++) {
    at[d] = b->plan->row[d];
    if (tir_at(b->ir, at[d])->kind != TIR_VAR) continue;
    tir_var like = tir_at(b->ir, at[d])->ref;
    tir_expr binding = row_binding(b, n, d);
    at[d] = add_iter(b, n, like, TIR_SPATIAL, extent_of(b, like), binding);
    tir_subst_var(b->ir, like, at[d]);
  }
  b->rows = tir_add_operands(b->ir, at, rank);
}

/* Columns of the tile, as such, or as what is reduced. */
static void add_columns(struct build *b, struct nest *n, enum tir_iter_kind kind) {
  tir_var like = b->plan->product.column;
  int64_t extent = extent_of(b, like), tile = b->plan->column_tile;
  tir_expr at = place_in_tile(b, n, like, b->column, tile), value;
  if (kind == TIR_SPATIAL || tiles(extent, tile) == 1) {
    value = add_iter(b, n, like, kind, extent, at);
  } else {
    tir_expr outer = add_iter(b, n, like, TIR_SPATIAL, tiles(extent, tile), b->column);
    tir_expr loop = tir_var_expr(b->ir, n->loops[n->loop_count - 1]);
    tir_expr inner = add_iter(b, n, like, kind, tile, loop);
    value = tir_add(b->ir, tir_mul(b->ir, outer, int_of(b, inner, tile)), inner);
  }
  tir_subst_var(b->ir, like, value);
}

/* The product's iterations that are no rows: columns of the values. */
static void add_values(struct build *b, struct nest *n) {
  for (uint32_t i = 0; i < tir_block_at(b->ir, b->plan->product.block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(b->ir, b->plan->product.block)[i];
    bool row = iter.kind != TIR_SPATIAL;
    for (uint32_t d = 0; d < b->plan->maximum.rank; d++) row = row || b->plan->row[d] == tir_var_expr(b->ir, iter.var);
    if (row) continue;
    int64_t extent = extent_of(b, iter.var);
    tir_expr zero = int_of(b, tir_var_expr(b->ir, iter.var), 0);
    tir_expr at = extent == 1 ? zero : add_loop(b, n, iter.var, "", extent);
    tir_subst_var(b->ir, iter.var, add_iter(b, n, iter.var, TIR_SPATIAL, extent, at));
  }
}

static void put(struct build *b, struct nest *n, tir_block block, tir_block into, enum tir_list list) {
  tir_set_iters(b->ir, block, n->iters, n->count);
  tir_as(b->ir, block, TIR_BLOCK)->block.predicate = n->predicate;
  tir_append(b->ir, into, list, tir_put_in_loops(b->ir, block, n->loops, n->loop_count));
}

/* Ends a nest whose block is new and has its statements. */
static void finish(struct build *b, struct nest *n, tir_block block, enum tir_list list) {
  tir_subst_clear(b->ir);
  put(b, n, block, b->outer, list);
  tir_detect_regions(b->ir, block, true, true);
}

/* ---- Edit: expressions ---- */

static tir_block new_block(struct build *b, const struct tir_softmax_part *part, const char *suffix) {
  return tir_new_block(b->ir, tir_symbol_suffix(b->ir, tir_block_at(b->ir, part->block)->name, suffix));
}

static tir_expr load_row(struct build *b, tir_buffer buffer) {
  return tir_load(b->ir, buffer, tir_operands(b->ir, b->rows), b->plan->maximum.rank, TIR_NONE);
}

static void store_row(struct build *b, tir_block block, enum tir_list list, tir_buffer buffer, tir_expr value) {
  tir_append(b->ir, block, list, tir_new_store(b->ir, buffer, tir_operands(b->ir, b->rows), value));
}

/* The product's element in a buffer like its own. */
static tir_expr load_product(struct build *b, tir_buffer buffer) {
  uint32_t indices = tir_subst_operands(b->ir, b->plan->product.indices, b->plan->product.rank);
  return tir_load(b->ir, buffer, tir_operands(b->ir, indices), b->plan->product.rank, TIR_NONE);
}

static void store_product(struct build *b, tir_block block, enum tir_list list, tir_buffer buffer, tir_expr value) {
  uint32_t indices = tir_subst_operands(b->ir, b->plan->product.indices, b->plan->product.rank);
  tir_append(b->ir, block, list, tir_new_store(b->ir, buffer, tir_operands(b->ir, indices), value));
}

static tir_expr as_type(struct build *b, tir_type type, tir_expr e) {
  return tir_type_of(b->ir, e) == type ? e : tir_unary(b->ir, TIR_CAST, type, e);
}

/* exp(a - m), in the exponentials' type. */
static tir_expr exp_of(struct build *b, tir_expr a, tir_expr m) {
  struct tir_expr_node like = *tir_at(b->ir, b->plan->exponential);
  tir_expr apart = tir_binary(b->ir, TIR_SUB, as_type(b, like.type, a), as_type(b, like.type, m));
  return tir_call(b->ir, like.type, like.ref, &apart, 1);
}

/* The index of a row, then the column, in the product's terms. */
static tir_expr weight(struct build *b) {
  tir_expr at[TIR_MOST_SOFTMAX_ITERS + 1];
  uint32_t rank = b->plan->maximum.rank;
  memcpy(at, b->plan->row, rank * sizeof *at);
  at[rank] = tir_var_expr(b->ir, b->plan->product.column);
  return tir_load(b->ir, b->weights, at, rank + 1, TIR_NONE);
}

static tir_expr least_finite(struct build *b) {
  tir_type type = tir_buffer_at(b->ir, b->plan->maximum.buffer)->type;
  return tir_float(b->ir, type, -tir_greatest_float(type));
}

/* ---- Edit: blocks ---- */

static tir_buffer new_buffer(struct build *b, tir_block where, tir_buffer like, const char *suffix, tir_type type,
                             tir_expr more) {
  struct tir_buffer_node old = *tir_buffer_at(b->ir, like);
  tir_expr shape[TIR_MOST_SOFTMAX_ITERS + 1];
  memcpy(shape, tir_operands(b->ir, old.shape), old.rank * sizeof *shape);
  if (more) shape[old.rank] = more;
  tir_symbol name = tir_symbol_suffix(b->ir, old.name, suffix);
  tir_buffer made = tir_new_buffer(b->ir, name, type, shape, old.rank + (more ? 1 : 0), old.scope);
  tir_add_alloc(b->ir, where, made);
  return made;
}

static void make_buffers(struct build *b) {
  struct tir_fused_softmax *plan = b->plan;
  tir_buffer maximum = plan->maximum.buffer, sum = plan->sum.buffer, product = plan->product.buffer;
  tir_type type = tir_type_of(b->ir, plan->exponential), sums = tir_buffer_at(b->ir, product)->type;
  tir_expr columns = b->ir->vars.at[plan->product.column].extent;
  b->tile_maximum = new_buffer(b, b->outer, maximum, "_tile", tir_buffer_at(b->ir, maximum)->type, TIR_NONE);
  b->scale = new_buffer(b, b->outer, maximum, "_scale", type, TIR_NONE);
  b->weights = new_buffer(b, b->outer, maximum, "_weights", type, columns);
  b->tile_sum = new_buffer(b, b->outer, sum, "_tile", type, TIR_NONE);
  b->tile_product = new_buffer(b, b->outer, product, "_tile", sums, TIR_NONE);
  b->product = plan->normalizer ? new_buffer(b, plan->scope, product, "_sum", sums, TIR_NONE) : product;
}

/* What each iteration of a producer runs over in the fused block. */
static void move_producer(struct build *b, const struct tir_softmax_producer *p) {
  struct nest n = {.count = 0};
  struct tir *ir = b->ir;
  for (uint32_t d = 0; d < b->plan->maximum.rank; d++)
    if (tir_at(ir, b->plan->row[d])->kind == TIR_VAR && (int)d != b->plan->tiled)
      tir_subst_var(ir, tir_at(ir, b->plan->row[d])->ref, b->row[d]);
  for (uint32_t i = 0; i < tir_block_at(ir, p->block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, p->block)[i];
    struct tir_expr_node at = {0};
    if (p->at[i]) at = *tir_at(ir, p->at[i]);
    if (!p->at[i])
      iter.binding = add_loop(b, &n, iter.var, "", extent_of(b, iter.var));
    else if (at.kind == TIR_VAR && at.ref == b->plan->product.column)
      iter.binding = place_in_tile(b, &n, at.ref, b->column, b->plan->column_tile);
    else if (at.kind == TIR_VAR && is_tiled(b, at.ref))
      iter.binding = place_in_tile(b, &n, at.ref, b->row[b->plan->tiled], b->plan->row_tile);
    else
      iter.binding = tir_cast(ir, ir->vars.at[iter.var].type, tir_subst(ir, p->at[i]));
    n.iters[n.count++] = iter;
  }
  tir_subst_clear(ir);
  tir_take_leaf(ir, p->block);
  tir_remove_alloc(ir, b->plan->scope, p->buffer);
  tir_add_alloc(ir, b->outer, p->buffer);
  put(b, &n, p->block, b->outer, TIR_BODY);
}

static void make_inits(struct build *b) {
  struct nest maximum = {.count = 0}, sum = {.count = 0}, product = {.count = 0};
  tir_block block = new_block(b, &b->plan->maximum, "_start");
  add_rows(b, &maximum);
  store_row(b, block, TIR_BODY, b->plan->maximum.buffer, least_finite(b));
  finish(b, &maximum, block, TIR_INIT);
  block = new_block(b, &b->plan->sum, "_start");
  add_rows(b, &sum);
  store_row(b, block, TIR_BODY, b->plan->sum.buffer,
            tir_float(b->ir, tir_buffer_at(b->ir, b->plan->sum.buffer)->type, 0));
  finish(b, &sum, block, TIR_INIT);
  block = new_block(b, &b->plan->product, "_start");
  add_rows(b, &product);
  add_values(b, &product);
  store_product(b, block, TIR_BODY, b->product, tir_float(b->ir, tir_buffer_at(b->ir, b->product)->type, 0));
  finish(b, &product, block, TIR_INIT);
}

static void make_maximum(struct build *b) {
  struct nest tile = {.count = 0}, update = {.count = 0};
  tir_buffer m = b->plan->maximum.buffer;
  tir_block block = new_block(b, &b->plan->maximum, "");
  add_rows(b, &tile);
  add_columns(b, &tile, TIR_REDUCE);
  store_row(b, block, TIR_INIT, b->tile_maximum, least_finite(b));
  tir_expr x = tir_subst_value(b->ir, b->plan->x);
  store_row(b, block, TIR_BODY, b->tile_maximum, tir_binary(b->ir, TIR_MAX, load_row(b, b->tile_maximum), x));
  finish(b, &tile, block, TIR_BODY);
  block = new_block(b, &b->plan->maximum, "_carry");
  add_rows(b, &update);
  tir_expr now = tir_binary(b->ir, TIR_MAX, load_row(b, m), load_row(b, b->tile_maximum));
  store_row(b, block, TIR_BODY, b->scale, exp_of(b, load_row(b, m), now));
  store_row(b, block, TIR_BODY, m, now);
  finish(b, &update, block, TIR_BODY);
}

static void make_weights(struct build *b) {
  struct nest n = {.count = 0};
  tir_block block = new_block(b, &b->plan->product, "_weights");
  add_rows(b, &n);
  add_columns(b, &n, TIR_SPATIAL);
  struct tir_expr_node at = *tir_at(b->ir, weight(b));
  uint32_t indices = tir_subst_operands(b->ir, at.operands, at.count);
  tir_expr x = tir_subst_value(b->ir, b->plan->x), value = exp_of(b, x, load_row(b, b->plan->maximum.buffer));
  tir_append(b->ir, block, TIR_BODY, tir_new_store(b->ir, b->weights, tir_operands(b->ir, indices), value));
  finish(b, &n, block, TIR_BODY);
}

static void make_sum(struct build *b) {
  struct nest tile = {.count = 0}, update = {.count = 0};
  tir_buffer l = b->plan->sum.buffer;
  tir_type type = tir_buffer_at(b->ir, l)->type;
  tir_block block = new_block(b, &b->plan->sum, "");
  add_rows(b, &tile);
  add_columns(b, &tile, TIR_REDUCE);
  store_row(b, block, TIR_INIT, b->tile_sum, tir_float(b->ir, type, 0));
  tir_expr w = tir_subst(b->ir, weight(b));
  store_row(b, block, TIR_BODY, b->tile_sum, tir_binary(b->ir, TIR_ADD, load_row(b, b->tile_sum), w));
  finish(b, &tile, block, TIR_BODY);
  block = new_block(b, &b->plan->sum, "_carry");
  add_rows(b, &update);
  tir_expr scaled = tir_binary(b->ir, TIR_MUL, load_row(b, l), load_row(b, b->scale));
  store_row(b, block, TIR_BODY, l, tir_binary(b->ir, TIR_ADD, scaled, load_row(b, b->tile_sum)));
  finish(b, &update, block, TIR_BODY);
}

static void make_product(struct build *b) {
  struct nest tile = {.count = 0}, update = {.count = 0};
  tir_type type = tir_buffer_at(b->ir, b->product)->type;
  tir_block block = new_block(b, &b->plan->product, "");
  b->plan->normalizer = TIR_NONE;
  tir_expr weighed = tir_weigh(b->ir, b->plan, b->plan->product.value, weight(b));
  add_rows(b, &tile);
  add_values(b, &tile);
  add_columns(b, &tile, TIR_REDUCE);
  weighed = tir_subst_value(b->ir, weighed);
  store_product(b, block, TIR_INIT, b->tile_product, tir_float(b->ir, type, 0));
  store_product(b, block, TIR_BODY, b->tile_product,
                tir_binary(b->ir, TIR_ADD, load_product(b, b->tile_product), weighed));
  finish(b, &tile, block, TIR_BODY);
  block = new_block(b, &b->plan->product, "_carry");
  add_rows(b, &update);
  add_values(b, &update);
  tir_expr scale = as_type(b, type, load_row(b, b->scale));
  tir_expr scaled = tir_binary(b->ir, TIR_MUL, load_product(b, b->product), scale);
  store_product(b, block, TIR_BODY, b->product, tir_binary(b->ir, TIR_ADD, scaled, load_product(b, b->tile_product)));
  finish(b, &update, block, TIR_BODY);
}

/* The block that divides, in loops of its own; detached. */
static tir_stmt make_normalizer(struct build *b) {
  struct nest n = {.count = 0};
  tir_type type = tir_buffer_at(b->ir, b->product)->type;
  tir_block block = new_block(b, &b->plan->product, "_normalize");
  for (uint32_t i = 0; i < tir_block_at(b->ir, b->plan->product.block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(b->ir, b->plan->product.block)[i];
    if (iter.kind != TIR_SPATIAL) continue;
    tir_expr loop = add_loop(b, &n, iter.var, "", extent_of(b, iter.var));
    tir_subst_var(b->ir, iter.var, add_iter(b, &n, iter.var, TIR_SPATIAL, extent_of(b, iter.var), loop));
  }
  tir_expr by = as_type(b, type, tir_subst_value(b->ir, b->plan->normalizer));
  tir_expr value = tir_binary(b->ir, b->plan->multiplies ? TIR_MUL : TIR_DIV, load_product(b, b->product), by);
  store_product(b, block, TIR_BODY, b->plan->product.buffer, value);
  tir_subst_clear(b->ir);
  tir_set_iters(b->ir, block, n.iters, n.count);
  tir_stmt top = tir_put_in_loops(b->ir, block, n.loops, n.loop_count);
  tir_detect_regions(b->ir, block, true, true);
  return top;
}

/* Iterations and loops of the fused block: rows, tiles of rows, tiles of columns. */
static void make_outer(struct build *b, struct nest *n) {
  struct tir_fused_softmax *plan = b->plan;
  tir_var column = plan->product.column;
  for (uint32_t d = 0; d <= plan->maximum.rank; d++) {
    bool last = d == plan->maximum.rank;
    if (!last && tir_at(b->ir, plan->row[d])->kind != TIR_VAR) continue;
    tir_var like = last ? column : tir_at(b->ir, plan->row[d])->ref;
    bool tiled = last || is_tiled(b, like);
    int64_t extent = extent_of(b, like);
    if (tiled) extent = tiles(extent, last ? plan->column_tile : plan->row_tile);
    tir_expr loop = add_loop(b, n, like, tiled ? "_0" : "", extent);
    tir_expr made = add_iter(b, n, like, last ? TIR_REDUCE : TIR_SPATIAL, extent, loop);
    if (last)
      b->column = made;
    else
      b->row[d] = made;
  }
}

tir_block tir_edit_fused_softmax(struct tir *ir, struct tir_fused_softmax *plan) {
  struct build b = {.ir = ir, .plan = plan};
  struct nest n = {.count = 0};
  tir_expr mask = plan->skips ? tir_find_softmax_mask(ir, plan) : TIR_NONE;
  b.outer = new_block(&b, &plan->product, "_o");
  tir_stmt at = plan->product.block;
  while (tir_stmt_at(ir, at)->parent != plan->scope) at = tir_stmt_at(ir, at)->parent;
  make_outer(&b, &n);
  make_buffers(&b);
  make_inits(&b);
  for (uint32_t i = plan->producer_count; i-- > 0;) move_producer(&b, &plan->producers[i]);
  make_maximum(&b);
  make_weights(&b);
  make_sum(&b);
  make_product(&b);
  tir_set_iters(ir, b.outer, n.iters, n.count);
  if (mask) tir_note_softmax_mask(ir, plan, mask, b.outer, b.row, b.column);
  tir_insert_before(ir, at, tir_put_in_loops(ir, b.outer, n.loops, n.loop_count));
  tir_detect_regions(ir, b.outer, true, true);
  if (plan->normalizer) tir_insert_before(ir, at, make_normalizer(&b));
  tir_kill_leaf(ir, plan->maximum.block);
  tir_kill_leaf(ir, plan->sum.block);
  tir_kill_leaf(ir, plan->product.block);
  if (ir->indirect) tir_find_undeclared(ir);
  return b.outer;
}

/* FuseOnlineSoftmax: what the fused block is made of, and what comes behind it. */
#include "buffer.h"
#include "fuse_online_softmax.h"
#include "inline.h"
#include "loops.h"
#include "tir/analysis/detect.h"
#include "tir/analysis/order/order.h"

#include <math.h>
#include <string.h>

/* ---- nests ---- */

enum { MOST_MADE = TIR_MOST_SOFTMAX_ITERS + 4 };

/* What is being built: the fused block, and what its iterations are. */
struct build {
  struct tir *ir;
  struct tir_fused_softmax *plan;
  tir_block outer;
  tir_expr row[TIR_MOST_SOFTMAX_ITERS], column; /* of the fused block: the tiled row and the column count tiles */
  tir_buffer tile_maximum, scale, weights, tile_sum, tile_product;
  tir_buffer maximum, sum, product; /* that are carried from tile to tile; of parts, the part's number comes first */
  tir_buffer whole;                 /* the product before it is divided */
  tir_expr part, own_part;          /* of the fused block, of the nest that is built; TIR_NONE: none */
  bool hides;                       /* x is to be negative infinity in columns that are none */
  uint32_t rows;                    /* indices of a row, in tir.operands, by the iterations of the nest that is built */
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
static int64_t grown_extent(const struct build *b, tir_var v) { return tir_grown_extent(b->ir, b->plan, v); }
static tir_var tiled_row(const struct build *b) { return tir_at(b->ir, b->plan->row[b->plan->tiled])->ref; }
static bool rows_grow(const struct build *b) { return b->plan->rows != extent_of(b, tiled_row(b)); }
static bool columns_grow(const struct build *b) { return b->plan->columns != extent_of(b, b->plan->product.column); }

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

static tir_expr add_part_iter(struct build *b, struct nest *n, enum tir_iter_kind kind, tir_expr binding) {
  tir_expr zero = int_of(b, binding, 0), size = int_of(b, binding, b->plan->parts);
  tir_var v = tir_new_var(b->ir, TIR_VAR_ITER, tir_name_of(b->ir, "vp"), tir_type_of(b->ir, binding), zero, size);
  n->iters[n->count++] = (struct tir_iter){v, kind, binding};
  return tir_var_expr(b->ir, v);
}

static tir_expr add_part_loop(struct build *b, struct nest *n) {
  tir_type type = b->ir->vars.at[b->plan->product.column].type;
  tir_expr zero = tir_int(b->ir, type, 0), size = tir_int(b->ir, type, b->plan->parts);
  tir_var v = tir_new_var(b->ir, TIR_VAR_LOOP, tir_name_of(b->ir, "p"), type, zero, size);
  n->loops[n->loop_count++] = v;
  return tir_var_expr(b->ir, v);
}

static int64_t tiles(int64_t extent, int64_t tile) { return (extent + tile - 1) / tile; }

/* Where an element of the tile `outer` is; the last tile may be cut short. */
static tir_expr place_in_tile(struct build *b, struct nest *n, tir_var like, tir_expr outer, int64_t tile) {
  int64_t extent = grown_extent(b, like);
  tir_expr loop = add_loop(b, n, like, tiles(extent, tile) > 1 ? "_1" : "", tile);
  if (tiles(extent, tile) == 1) return loop;
  tir_expr at = tir_add(b->ir, tir_mul(b->ir, outer, int_of(b, loop, tile)), loop);
  if (extent % tile) n->predicate = tir_and(b->ir, n->predicate, tir_make(b->ir, TIR_LT, at, int_of(b, loop, extent)));
  return at;
}

static bool is_tiled(const struct build *b, tir_var v) { return v == tiled_row(b); }

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
    at[d] = add_iter(b, n, like, TIR_SPATIAL, grown_extent(b, like), binding);
    tir_subst_var(b->ir, like, at[d]);
  }
  b->rows = tir_add_operands(b->ir, at, rank);
}

/* The nest is of what each part has of its own, too. */
static void add_part(struct build *b, struct nest *n) {
  if (b->part) b->own_part = add_part_iter(b, n, TIR_SPATIAL, b->part);
}

/* Columns of the tile, as such, or as what is reduced. */
static void add_columns(struct build *b, struct nest *n, enum tir_iter_kind kind) {
  tir_var like = b->plan->product.column;
  int64_t extent = grown_extent(b, like), tile = b->plan->column_tile;
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

/* ---- expressions ---- */

static tir_block new_block(struct build *b, const struct tir_softmax_part *part, const char *suffix) {
  return tir_new_block(b->ir, tir_symbol_suffix(b->ir, tir_block_at(b->ir, part->block)->name, suffix));
}

/* Indices, after the part's number where the buffer is of parts; gives how many. */
static uint32_t in_part(struct build *b, tir_buffer buffer, uint32_t first, uint32_t count, tir_expr *at) {
  bool own = b->part && (buffer == b->maximum || buffer == b->sum || buffer == b->product);
  if (own) at[0] = b->own_part;
  memcpy(at + own, tir_operands(b->ir, first), count * sizeof *at);
  return count + own;
}

static tir_expr load_row(struct build *b, tir_buffer buffer) {
  tir_expr at[TIR_MOST_SOFTMAX_ITERS + 1];
  uint32_t count = in_part(b, buffer, b->rows, b->plan->maximum.rank, at);
  return tir_load(b->ir, buffer, at, count, TIR_NONE);
}

static void store_row(struct build *b, tir_block block, enum tir_list list, tir_buffer buffer, tir_expr value) {
  tir_expr at[TIR_MOST_SOFTMAX_ITERS + 1];
  in_part(b, buffer, b->rows, b->plan->maximum.rank, at);
  tir_append(b->ir, block, list, tir_new_store(b->ir, buffer, at, value));
}

/* The product's element in a buffer like its own. */
static tir_expr load_product(struct build *b, tir_buffer buffer) {
  tir_expr at[TIR_MOST_SOFTMAX_ITERS + 1];
  uint32_t indices = tir_subst_operands(b->ir, b->plan->product.indices, b->plan->product.rank);
  uint32_t count = in_part(b, buffer, indices, b->plan->product.rank, at);
  return tir_load(b->ir, buffer, at, count, TIR_NONE);
}

static void store_product(struct build *b, tir_block block, enum tir_list list, tir_buffer buffer, tir_expr value) {
  tir_expr at[TIR_MOST_SOFTMAX_ITERS + 1];
  uint32_t indices = tir_subst_operands(b->ir, b->plan->product.indices, b->plan->product.rank);
  in_part(b, buffer, indices, b->plan->product.rank, at);
  tir_append(b->ir, block, list, tir_new_store(b->ir, buffer, at, value));
}

static tir_expr as_type(struct build *b, tir_type type, tir_expr e) {
  return tir_type_of(b->ir, e) == type ? e : tir_unary(b->ir, TIR_CAST, type, e);
}

/* exp(a - m), in the exponentials' type; exp(a - (m - headroom)), unless that is TIR_NONE. */
static tir_expr exp_of(struct build *b, tir_expr a, tir_expr m, tir_expr headroom) {
  struct tir_expr_node like = *tir_at(b->ir, b->plan->exponential);
  tir_expr shift = as_type(b, like.type, m);
  if (headroom) shift = tir_binary(b->ir, TIR_SUB, shift, headroom);
  tir_expr apart = tir_binary(b->ir, TIR_SUB, as_type(b, like.type, a), shift);
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

/* ---- blocks ---- */

/* A buffer like one that a part writes; grown: with rows that grow; parts: one for each, and `more` at the end. */
static tir_buffer make_buffer(struct build *b, tir_block where, const struct tir_softmax_part *like, const char *suffix,
                              tir_type type, bool grown, bool parts, tir_expr more) {
  struct tir_buffer_node old = *tir_buffer_at(b->ir, like->buffer);
  tir_expr shape[TIR_MOST_SOFTMAX_ITERS + 2], row = b->plan->row[b->plan->tiled];
  uint32_t rank = 0;
  if (parts) shape[rank++] = int_of(b, row, b->plan->parts);
  for (uint32_t d = 0; d < old.rank; d++) {
    tir_expr at = like == &b->plan->product ? tir_operands(b->ir, like->indices)[d] : b->plan->row[d];
    tir_expr size = tir_operands(b->ir, old.shape)[d];
    bool grows = grown && at == row && rows_grow(b);
    shape[rank++] = grows ? tir_int(b->ir, tir_type_of(b->ir, size), b->plan->rows) : size;
  }
  if (more) shape[rank++] = more;
  tir_symbol name = tir_symbol_suffix(b->ir, old.name, suffix);
  tir_buffer made = tir_new_buffer(b->ir, name, type, shape, rank, old.scope);
  tir_add_alloc(b->ir, where, made);
  return made;
}

static tir_buffer new_buffer(struct build *b, tir_block where, const struct tir_softmax_part *like, const char *suffix,
                             tir_type type, bool parts, tir_expr more) {
  return make_buffer(b, where, like, suffix, type, true, parts, more);
}

static tir_type type_of(const struct build *b, tir_buffer buffer) { return tir_buffer_at(b->ir, buffer)->type; }

/* What is carried from tile to tile. Rows that grow, and parts, have buffers of their own. */
static void make_carried(struct build *b) {
  struct tir_fused_softmax *plan = b->plan;
  tir_buffer maximum = plan->maximum.buffer, sum = plan->sum.buffer, product = plan->product.buffer;
  bool parts = plan->parts > 1, apart = parts || rows_grow(b);
  const char *suffix = parts ? "_carried" : "_rows";
  b->maximum = maximum, b->sum = sum, b->whole = product;
  if (apart) {
    b->maximum = new_buffer(b, plan->scope, &plan->maximum, suffix, type_of(b, maximum), parts, TIR_NONE);
    b->sum = new_buffer(b, plan->scope, &plan->sum, suffix, type_of(b, sum), parts, TIR_NONE);
  }
  if (parts) b->product = new_buffer(b, plan->scope, &plan->product, suffix, type_of(b, product), true, TIR_NONE);
  if (plan->normalizer && parts) {
    b->whole = tir_copy_buffer(b->ir, product);
    tir_buffer_at(b->ir, b->whole)->name = tir_symbol_suffix(b->ir, tir_buffer_at(b->ir, product)->name, "_sum");
    tir_add_alloc(b->ir, plan->scope, b->whole);
  } else if (plan->normalizer || (apart && !parts)) {
    b->whole = new_buffer(b, plan->scope, &plan->product, "_sum", type_of(b, product), false, TIR_NONE);
  }
  if (!parts) b->product = b->whole;
}

static void make_buffers(struct build *b) {
  struct tir_fused_softmax *plan = b->plan;
  tir_buffer maximum = plan->maximum.buffer;
  tir_type type = tir_type_of(b->ir, plan->exponential), sums = type_of(b, plan->product.buffer);
  tir_expr columns = b->ir->vars.at[plan->product.column].extent;
  if (columns_grow(b)) columns = int_of(b, columns, plan->columns);
  b->tile_maximum = new_buffer(b, b->outer, &plan->maximum, "_tile", type_of(b, maximum), false, TIR_NONE);
  b->scale = new_buffer(b, b->outer, &plan->maximum, "_scale", type, false, TIR_NONE);
  b->weights = new_buffer(b, b->outer, &plan->maximum, "_weights", type, false, columns);
  b->tile_sum = new_buffer(b, b->outer, &plan->sum, "_tile", type, false, TIR_NONE);
  b->tile_product = new_buffer(b, b->outer, &plan->product, "_tile", sums, false, TIR_NONE);
  make_carried(b);
}

/* ---- rows and columns that grow ---- */

/* What of rows or columns the producer's iteration is; TIR_NONE: it is neither. */
static tir_var place_of(const struct build *b, const struct tir_softmax_producer *p, uint32_t i) {
  tir_var v = p->at[i] && tir_at(b->ir, p->at[i])->kind == TIR_VAR ? tir_at(b->ir, p->at[i])->ref : TIR_NONE;
  return v && (is_tiled(b, v) || v == b->plan->product.column) ? v : TIR_NONE;
}

/* Makes the producer's buffer one with room for what grows; false: nothing of it does. */
static bool grow_buffer(struct build *b, struct tir_softmax_producer *p) {
  struct tir *ir = b->ir;
  struct tir_buffer_node old = *tir_buffer_at(ir, p->buffer);
  uint32_t indices = tir_as(ir, tir_softmax_store(ir, p->block), TIR_STORE)->store.indices;
  tir_expr shape[TIR_MOST_SOFTMAX_ITERS];
  bool grows = false;
  assert(old.rank <= TIR_MOST_SOFTMAX_ITERS);
  memcpy(shape, tir_operands(ir, old.shape), old.rank * sizeof *shape);
  for (uint32_t i = 0; i < tir_block_at(ir, p->block)->iters.count; i++) {
    tir_var of = place_of(b, p, i);
    if (!of || grown_extent(b, of) == extent_of(b, of)) continue;
    for (uint32_t d = 0; d < old.rank; d++) {
      if (tir_operands(ir, indices)[d] != tir_var_expr(ir, tir_iters(ir, p->block)[i].var)) continue;
      shape[d] = tir_int(ir, tir_type_of(ir, shape[d]), grown_extent(b, of));
      grows = true;
    }
  }
  if (!grows) return false;
  tir_buffer made = tir_new_buffer(ir, old.name, old.type, shape, old.rank, old.scope);
  tir_subst_buffer(ir, p->buffer, made);
  tir_remove_alloc(ir, b->plan->scope, p->buffer);
  tir_add_alloc(ir, b->plan->scope, made);
  p->buffer = made;
  return true;
}

/* The producer's iterations over what grows; those of rows and of columns as they are now. */
static void grow_iterations(struct build *b, const struct tir_softmax_producer *p, tir_expr *row, tir_expr *column) {
  struct tir *ir = b->ir;
  struct tir_iter iters[TIR_MOST_SOFTMAX_ITERS];
  uint32_t count = tir_block_at(ir, p->block)->iters.count;
  *row = *column = TIR_NONE;
  for (uint32_t i = 0; i < count; i++) {
    iters[i] = tir_iters(ir, p->block)[i];
    tir_var of = place_of(b, p, i);
    if (of && grown_extent(b, of) != extent_of(b, of)) {
      struct tir_var_node old = ir->vars.at[iters[i].var];
      tir_expr extent = int_of(b, old.extent, grown_extent(b, of));
      iters[i].var = tir_new_var(ir, TIR_VAR_ITER, old.name, old.type, old.min, extent);
      tir_subst_var(ir, tir_iters(ir, p->block)[i].var, tir_var_expr(ir, iters[i].var));
    }
    if (of && is_tiled(b, of)) *row = tir_var_expr(ir, iters[i].var);
    if (of == b->plan->product.column) *column = tir_var_expr(ir, iters[i].var);
  }
  tir_set_iters(ir, p->block, iters, count);
}

/* x, but negative infinity in columns that are none: their exponentials are 0. */
static tir_expr hide_columns(struct build *b, tir_expr x, tir_expr column) {
  tir_expr extent = int_of(b, column, extent_of(b, b->plan->product.column));
  tir_expr least = tir_float(b->ir, tir_type_of(b->ir, x), -INFINITY);
  return tir_select(b->ir, tir_make(b->ir, TIR_LT, column, extent), x, least);
}

/* The block that makes x hides them, where it sums nothing; else all that read x do. */
static void hide_in_producer(struct build *b, const struct tir_softmax_producer *p, tir_expr column) {
  struct tir *ir = b->ir;
  struct tir_expr_node x = *tir_at(ir, b->plan->x);
  if (!b->hides || x.kind != TIR_LOAD || x.ref != p->buffer || !column || tir_stmt_at(ir, p->block)->first[TIR_INIT])
    return;
  tir_stmt store = tir_softmax_store(ir, p->block);
  tir_expr value = hide_columns(b, tir_as(ir, store, TIR_STORE)->store.value, column);
  tir_as(ir, store, TIR_STORE)->store.value = value;
  b->hides = false;
}

static void grow(struct build *b) {
  struct tir *ir = b->ir;
  struct tir_fused_softmax *plan = b->plan;
  tir_expr rows[TIR_MOST_SOFTMAX_PRODUCERS], columns[TIR_MOST_SOFTMAX_PRODUCERS];
  if (!rows_grow(b) && !columns_grow(b)) return;
  b->hides = columns_grow(b);
  for (uint32_t k = 0; k < plan->producer_count; k++) {
    grow_buffer(b, &plan->producers[k]);
    grow_iterations(b, &plan->producers[k], &rows[k], &columns[k]);
  }
  for (uint32_t k = 0; k < plan->producer_count; k++) tir_subst_stmt(ir, plan->producers[k].block);
  plan->x = tir_subst_value(ir, plan->x);
  tir_subst_clear(ir);
  for (uint32_t k = 0; k < plan->producer_count; k++) {
    struct tir_softmax_producer *p = &plan->producers[k];
    tir_pad_softmax_reads(ir, plan, p->block, rows[k], columns[k]);
    hide_in_producer(b, p, columns[k]);
    tir_detect_regions(ir, p->block, true, true);
  }
}

/* x as a nest's iterations have it. */
static tir_expr find_x(struct build *b) {
  tir_expr x = tir_subst_value(b->ir, b->plan->x);
  return b->hides ? hide_columns(b, x, tir_subst(b->ir, tir_var_expr(b->ir, b->plan->product.column))) : x;
}

/* Ends a nest whose block reads what is not ours: outside of buffers that is padded; `copies` stand for what it reads
 * at rows and columns. */
static void finish_padded(struct build *b, struct nest *n, tir_block block, bool copies) {
  tir_expr row = copies ? tir_subst(b->ir, b->plan->row[b->plan->tiled]) : TIR_NONE;
  tir_expr column = copies ? tir_subst(b->ir, tir_var_expr(b->ir, b->plan->product.column)) : TIR_NONE;
  finish(b, n, block, TIR_BODY);
  if (!rows_grow(b) && !columns_grow(b)) return;
  tir_pad_softmax_reads(b->ir, b->plan, block, row, column);
  tir_detect_regions(b->ir, block, true, true);
}

/* ---- blocks of the fused one ---- */

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
  add_part(b, &maximum);
  store_row(b, block, TIR_BODY, b->maximum, least_finite(b));
  finish(b, &maximum, block, TIR_INIT);
  block = new_block(b, &b->plan->sum, "_start");
  add_rows(b, &sum);
  add_part(b, &sum);
  store_row(b, block, TIR_BODY, b->sum, tir_float(b->ir, type_of(b, b->sum), 0));
  finish(b, &sum, block, TIR_INIT);
  block = new_block(b, &b->plan->product, "_start");
  add_rows(b, &product);
  add_values(b, &product);
  add_part(b, &product);
  store_product(b, block, TIR_BODY, b->product, tir_float(b->ir, tir_buffer_at(b->ir, b->product)->type, 0));
  finish(b, &product, block, TIR_INIT);
}

static void make_maximum(struct build *b) {
  struct nest tile = {.count = 0}, update = {.count = 0};
  tir_buffer m = b->maximum;
  tir_block block = new_block(b, &b->plan->maximum, "");
  add_rows(b, &tile);
  add_columns(b, &tile, TIR_REDUCE);
  store_row(b, block, TIR_INIT, b->tile_maximum, least_finite(b));
  tir_expr x = find_x(b);
  store_row(b, block, TIR_BODY, b->tile_maximum, tir_binary(b->ir, TIR_MAX, load_row(b, b->tile_maximum), x));
  finish_padded(b, &tile, block, false);
  block = new_block(b, &b->plan->maximum, "_carry");
  add_rows(b, &update);
  add_part(b, &update);
  tir_expr now = tir_binary(b->ir, TIR_MAX, load_row(b, m), load_row(b, b->tile_maximum));
  store_row(b, block, TIR_BODY, b->scale, exp_of(b, load_row(b, m), now, TIR_NONE));
  store_row(b, block, TIR_BODY, m, now);
  finish(b, &update, block, TIR_BODY);
}

static void make_weights(struct build *b) {
  struct nest n = {.count = 0};
  tir_block block = new_block(b, &b->plan->product, "_weights");
  add_rows(b, &n);
  add_columns(b, &n, TIR_SPATIAL);
  add_part(b, &n);
  struct tir_expr_node at = *tir_at(b->ir, weight(b));
  uint32_t indices = tir_subst_operands(b->ir, at.operands, at.count);
  tir_expr x = find_x(b), value = exp_of(b, x, load_row(b, b->maximum), b->plan->headroom);
  tir_append(b->ir, block, TIR_BODY, tir_new_store(b->ir, b->weights, tir_operands(b->ir, indices), value));
  finish_padded(b, &n, block, false);
}

static void make_sum(struct build *b) {
  struct nest tile = {.count = 0}, update = {.count = 0};
  tir_buffer l = b->sum;
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
  add_part(b, &update);
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
  finish_padded(b, &tile, block, true);
  block = new_block(b, &b->plan->product, "_carry");
  add_rows(b, &update);
  add_values(b, &update);
  add_part(b, &update);
  tir_expr scale = as_type(b, type, load_row(b, b->scale));
  tir_expr scaled = tir_binary(b->ir, TIR_MUL, load_product(b, b->product), scale);
  store_product(b, block, TIR_BODY, b->product, tir_binary(b->ir, TIR_ADD, scaled, load_product(b, b->tile_product)));
  finish(b, &update, block, TIR_BODY);
}

/* ---- blocks behind it ---- */

/* Loops over all that the product writes, or over its rows alone. */
static void add_whole(struct build *b, struct nest *n, bool values) {
  tir_expr at[TIR_MOST_SOFTMAX_ITERS];
  for (uint32_t i = 0; i < tir_block_at(b->ir, b->plan->product.block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(b->ir, b->plan->product.block)[i];
    bool row = false;
    for (uint32_t d = 0; d < b->plan->maximum.rank; d++) row = row || b->plan->row[d] == tir_var_expr(b->ir, iter.var);
    if (iter.kind != TIR_SPATIAL || (!row && !values)) continue;
    tir_expr loop = add_loop(b, n, iter.var, "", extent_of(b, iter.var));
    tir_subst_var(b->ir, iter.var, add_iter(b, n, iter.var, TIR_SPATIAL, extent_of(b, iter.var), loop));
  }
  for (uint32_t d = 0; d < b->plan->maximum.rank; d++) at[d] = tir_subst(b->ir, b->plan->row[d]);
  b->rows = tir_add_operands(b->ir, at, b->plan->maximum.rank);
}

static tir_stmt end_whole(struct build *b, const struct nest *n, tir_block block) {
  tir_subst_clear(b->ir);
  tir_set_iters(b->ir, block, n->iters, n->count);
  tir_stmt top = tir_put_in_loops(b->ir, block, n->loops, n->loop_count);
  tir_detect_regions(b->ir, block, true, true);
  return top;
}

/* The block that divides, in loops of its own; detached. */
static tir_stmt make_normalizer(struct build *b) {
  struct nest n = {.count = 0};
  tir_type type = type_of(b, b->product);
  tir_block block = new_block(b, &b->plan->product, "_normalize");
  add_whole(b, &n, true);
  if (b->plan->parts == 1 && b->sum != b->plan->sum.buffer) tir_subst_buffer(b->ir, b->plan->sum.buffer, b->sum);
  tir_expr value = load_product(b, b->whole);
  if (b->plan->normalizer) {
    tir_expr by = as_type(b, type, tir_subst_value(b->ir, b->plan->normalizer));
    value = tir_binary(b->ir, b->plan->multiplies ? TIR_MUL : TIR_DIV, value, by);
  }
  store_product(b, block, TIR_BODY, b->plan->product.buffer, value);
  return end_whole(b, &n, block);
}

static void begin_join(struct build *b, struct nest *n, bool values) {
  *n = (struct nest){.count = 0};
  add_whole(b, n, values);
  b->own_part = add_part_iter(b, n, TIR_REDUCE, add_part_loop(b, n));
}

/* A copy of what is carried of each part, of no rows but the function's: what is carried may move to other memory. */
static void copy_part(struct build *b, const struct tir_softmax_part *part, tir_buffer from, tir_stmt before) {
  struct nest n = {.count = 0};
  bool values = part == &b->plan->product;
  tir_block block = new_block(b, part, "_parts");
  tir_buffer to = make_buffer(b, b->plan->scope, part, "_parts", type_of(b, from), false, true, TIR_NONE);
  b->own_part = add_part_iter(b, &n, TIR_SPATIAL, add_part_loop(b, &n));
  add_whole(b, &n, values);
  tir_expr value = values ? load_product(b, from) : load_row(b, from);
  tir_buffer *carried = values ? &b->product : part == &b->plan->sum ? &b->sum : &b->maximum;
  *carried = to;
  if (values)
    store_product(b, block, TIR_BODY, to, value);
  else
    store_row(b, block, TIR_BODY, to, value);
  tir_insert_before(b->ir, before, end_whole(b, &n, block));
}

/* By what a part's sums are scaled: its maximum is another than that of all. */
static tir_expr scale_of_part(struct build *b) {
  return exp_of(b, load_row(b, b->maximum), load_row(b, b->plan->maximum.buffer), TIR_NONE);
}

/* The blocks that join the parts, before a statement of the scope. */
static void make_joins(struct build *b, tir_stmt before) {
  struct nest n;
  tir_buffer m = b->plan->maximum.buffer, l = b->plan->sum.buffer;
  tir_type type = type_of(b, b->product);
  copy_part(b, &b->plan->maximum, b->maximum, before);
  copy_part(b, &b->plan->sum, b->sum, before);
  copy_part(b, &b->plan->product, b->product, before);
  tir_block block = new_block(b, &b->plan->maximum, "_join");
  begin_join(b, &n, false);
  store_row(b, block, TIR_INIT, m, least_finite(b));
  store_row(b, block, TIR_BODY, m, tir_binary(b->ir, TIR_MAX, load_row(b, m), load_row(b, b->maximum)));
  tir_insert_before(b->ir, before, end_whole(b, &n, block));
  block = new_block(b, &b->plan->sum, "_join");
  begin_join(b, &n, false);
  tir_expr scaled = tir_binary(b->ir, TIR_MUL, load_row(b, b->sum), scale_of_part(b));
  store_row(b, block, TIR_INIT, l, tir_float(b->ir, type_of(b, l), 0));
  store_row(b, block, TIR_BODY, l, tir_binary(b->ir, TIR_ADD, load_row(b, l), scaled));
  tir_insert_before(b->ir, before, end_whole(b, &n, block));
  block = new_block(b, &b->plan->product, "_join");
  begin_join(b, &n, true);
  scaled = tir_binary(b->ir, TIR_MUL, load_product(b, b->product), as_type(b, type, scale_of_part(b)));
  store_product(b, block, TIR_INIT, b->whole, tir_float(b->ir, type, 0));
  store_product(b, block, TIR_BODY, b->whole, tir_binary(b->ir, TIR_ADD, load_product(b, b->whole), scaled));
  tir_insert_before(b->ir, before, end_whole(b, &n, block));
}

/* ---- all of it ---- */

/* Iterations and loops of the fused block: rows, tiles of rows, parts, tiles of columns. */
static void make_outer(struct build *b, struct nest *n) {
  struct tir_fused_softmax *plan = b->plan;
  tir_var column = plan->product.column;
  for (uint32_t d = 0; d <= plan->maximum.rank; d++) {
    bool last = d == plan->maximum.rank;
    if (!last && tir_at(b->ir, plan->row[d])->kind != TIR_VAR) continue;
    tir_var like = last ? column : tir_at(b->ir, plan->row[d])->ref;
    bool tiled = last || is_tiled(b, like);
    int64_t extent = grown_extent(b, like);
    if (tiled) extent = tiles(extent, last ? plan->column_tile * plan->parts : plan->row_tile);
    if (last && plan->parts > 1) b->part = add_part_iter(b, n, TIR_SPATIAL, add_part_loop(b, n));
    tir_expr loop = add_loop(b, n, like, tiled ? "_0" : "", extent);
    tir_expr made = add_iter(b, n, like, last ? TIR_REDUCE : TIR_SPATIAL, extent, loop);
    if (!last)
      b->row[d] = made;
    else if (b->part)
      b->column = tir_add(b->ir, tir_mul(b->ir, made, int_of(b, made, plan->parts)), b->part);
    else
      b->column = made;
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
  tir_make_softmax_pads(ir, plan, at);
  grow(&b);
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
  if (b.part) make_joins(&b, at);
  if (b.whole != plan->product.buffer) tir_insert_before(ir, at, make_normalizer(&b));
  tir_kill_leaf(ir, plan->maximum.block);
  tir_kill_leaf(ir, plan->sum.block);
  tir_kill_leaf(ir, plan->product.block);
  if (!b.part && b.sum != plan->sum.buffer) {
    tir_remove_alloc(ir, plan->scope, plan->maximum.buffer);
    tir_remove_alloc(ir, plan->scope, plan->sum.buffer);
  }
  if (ir->indirect) tir_find_undeclared(ir);
  return b.outer;
}

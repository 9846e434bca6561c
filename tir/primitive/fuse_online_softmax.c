/* Fuse online softmax: a maximum over rows, the sum of exp(x - maximum) over the same rows, and a sum of products with
 * these exponentials (attention: scores, their softmax, and values) become one block a tile of rows and columns.
 *
 * Of a tile, its own maximum and sums are found; what was summed before is scaled by exp(old maximum - new maximum),
 * and the tile's sums are added. The rows are divided by their sums at the end. What makes x, and is read by nobody
 * else, is made tile by tile too: nothing has the size of rows times columns. The maximum begins with the least finite
 * value, so that a tile whose elements are all negative infinity adds exp(-infinity) = 0; a row of nothing else is
 * divided as in the function: 0 / 0, or by what it has in the place of 0.
 *
 * Where it is asked to, it skips tiles whose elements all are masked: x is the least finite value, or negative
 * infinity, where an affine comparison of row and column fails, which holds of the first column in each row. Such tiles
 * add nothing, unless all that a row has left is the least finite value, or less.
 *
 * Where it is asked to, rows grow to a multiple, and columns to whole tiles: x of a column that is none is negative
 * infinity, what sums read of it is zero, and the rows that are none are not in the results. And columns are divided
 * into parts, each with a maximum and sums of its own, which blocks behind the fused one join, scaled likewise (Dao,
 * Haziza, Massa and Sizov, "Flash-Decoding for long-context inference", 2023).
 *
 * Requires: in one scope, a stage pipeline, three reduction blocks below loops alone, without buffers of their own,
 *           that reduce inside of the scope and write one region each, in global memory. Maximum: of floats, from the
 *           least finite value, or from negative infinity where it is read by the other two only. Sum: from zero, of
 *           exp(x - maximum), cast where the types differ. Product: a sum from zero, no narrower than the exponentials,
 *           of one such exponential times what reads neither maximum nor sum; it, or a factor, may be divided by what
 *           depends on the row's sum alone. exp(x - m) may have 0 in the place of an m that is negative infinity, and
 *           m less a constant, the same in sum and product. Each
 *           has one iteration that reduces, over the same columns, and all take whole domains of constant extents from
 *           0 on. Maximum and sum are written at their iterations, and read at iterations of the product. Other blocks
 *           read them after the product, under no loop that is around it; and what the product reads is made under
 *           none of its loops. Where rows or columns grow, sums read buffers at them that end with them, and values are
 *           products of such, so that a zero stays one; where rows grow and no parts are joined, the scope allocates
 *           maximum and sum, which nothing else reads. Parts have tiles, each as many.
 * After:    loops over rows but those of the last dimension (that has more than one; where rows grow, of any), tiles
 *           of these, and tiles of columns; in them the block
 *           PRODUCT_o with, in this order, what makes x, MAXIMUM (of the tile), MAXIMUM_carry, PRODUCT_weights (the
 *           exponentials), SUM (of the tile), SUM_carry, PRODUCT (of the tile) and PRODUCT_carry. Then
 *           PRODUCT_normalize divides, where the product did. Tiles at the end run under predicates; where rows and
 *           columns grow, they are whole, copies BUFFER_pad of what is read stand before the fused block, and
 *           PRODUCT_normalize is there in any case. Parts are a loop in those of rows, and have the tiles in turn;
 *           MAXIMUM_parts, SUM_parts and PRODUCT_parts, copies of what is carried, then MAXIMUM_join, SUM_join and
 *           PRODUCT_join come before PRODUCT_normalize. Which tiles are skipped is noted on the fused block, for
 *           lowering.
 * Forward:  the three blocks and their loops are dead; what makes x keeps its blocks, in new loops.
 * Source: Milakov and Gimelshein, 2018; Rabe and Staats, "Self-attention does not need O(n^2) memory", 2021; Dao et
 * al., "FlashAttention", 2022, algorithm 1. */
#include "fuse_online_softmax.h"

#include "inline.h"
#include "reduction_body.h"
#include "tir/analysis/order/order.h"
#include "tir/analysis/outside.h"

#include <math.h>
#include <string.h>

/* ---- Check: each block ---- */

static bool check_scope(struct tir *ir, const tir_block *blocks, struct tir_fused_softmax *plan, ms_error *err) {
  plan->scope = tir_scope_of(ir, blocks[0]);
  for (int i = 0; i < 3; i++) {
    if (!tir_scope_of(ir, blocks[i]))
      return tir_refuse(ir, err, MS_ROOT_BLOCK, blocks[i], "block `%s` is a root", tir_block_name(ir, blocks[i]));
    if (tir_scope_of(ir, blocks[i]) != plan->scope || blocks[i] == blocks[(i + 1) % 3])
      return tir_refuse(ir, err, MS_SOFTMAX_SCOPE, blocks[i], "blocks `%s`, `%s` and `%s` are not three of one scope",
                        tir_block_name(ir, blocks[0]), tir_block_name(ir, blocks[1]), tir_block_name(ir, blocks[2]));
  }
  return tir_check_stage_pipeline(ir, plan->scope, err);
}

/* One iteration reduces, and all run over whole domains. */
static bool check_iterations(struct tir *ir, tir_block block, struct tir_softmax_part *part, ms_error *err) {
  uint32_t reduced = 0;
  bool whole = tir_runs_whole(ir, block);
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind != TIR_REDUCE) continue;
    reduced++;
    part->column = iter.var;
  }
  if (whole && reduced == 1) return true;
  return tir_refuse(ir, err, MS_SOFTMAX_ITERATIONS, block,
                    whole ? "block `%s` has not one iteration that reduces"
                          : "the iterations of block `%s` do not run over whole domains of constant extents",
                    tir_block_name(ir, block));
}

static bool check_block(struct tir *ir, tir_block block, tir_block scope, struct tir_softmax_part *part,
                        ms_error *err) {
  const char *name = tir_block_name(ir, block);
  part->block = block;
  const struct tir_block_record *r = tir_block_at(ir, block);
  if (!tir_check_bare_reduction(ir, block, scope, err)) return false;
  tir_stmt init = tir_only_store(ir, block, TIR_INIT), body = tir_only_store(ir, block, TIR_BODY);
  if (!init) return tir_refuse(ir, err, MS_REDUCTION_INIT_FORM, block, "the init of block `%s` is not one store", name);
  if (!body) return tir_refuse(ir, err, MS_REDUCTION_BODY_FORM, block, "the body of block `%s` is not one store", name);
  part->buffer = tir_as(ir, body, TIR_STORE)->store.buffer;
  part->indices = tir_as(ir, body, TIR_STORE)->store.indices;
  part->rank = tir_buffer_at(ir, part->buffer)->rank;
  if (r->writes.count != 1 || !tir_has_region_of(ir, r->writes, part->buffer))
    return tir_refuse(ir, err, MS_WRITES_NOT_REDUCED, block, "block `%s` says that it writes %u regions", name,
                      r->writes.count);
  if (tir_memory_of(ir, part->buffer) || part->rank > TIR_MOST_SOFTMAX_ITERS)
    return tir_refuse(ir, err, MS_SOFTMAX_SCOPE, block, "buffer `%s` is not in global memory, or has %u dimensions",
                      tir_buffer_name(ir, part->buffer), part->rank);
  return check_iterations(ir, block, part, err);
}

static bool has_indices(const struct tir *ir, tir_expr load, tir_buffer buffer, uint32_t indices) {
  struct tir_expr_node n = *tir_at(ir, load);
  return n.kind == TIR_LOAD && n.ref == buffer && !n.a && tir_same_operands(ir, n.operands, indices, n.count);
}

/* A maximum from the least finite value, or from negative infinity. */
static bool check_maximum(struct tir *ir, struct tir_softmax_part *part, bool *infinite, ms_error *err) {
  tir_stmt init = tir_only_store(ir, part->block, TIR_INIT), body = tir_only_store(ir, part->block, TIR_BODY);
  tir_expr first = tir_as(ir, init, TIR_STORE)->store.value, value = tir_as(ir, body, TIR_STORE)->store.value;
  struct tir_expr_node n = *tir_at(ir, value), from = *tir_at(ir, first);
  *infinite = from.kind == TIR_FLOAT_IMM && isinf(from.real) && from.real < 0;
  bool begins = *infinite || tir_is_identity(ir, first, TIR_REDUCE_MAX_AND_EXPS, 0);
  bool same = tir_as(ir, init, TIR_STORE)->store.buffer == part->buffer &&
              tir_same_operands(ir, tir_as(ir, init, TIR_STORE)->store.indices, part->indices, part->rank);
  bool left = n.kind == TIR_MAX && has_indices(ir, n.a, part->buffer, part->indices);
  bool right = n.kind == TIR_MAX && has_indices(ir, n.b, part->buffer, part->indices);
  part->value = left ? n.b : n.a;
  if (begins && same && left != right && tir_type_is_float(n.type) && !tir_uses_buffer(ir, part->value, part->buffer))
    return true;
  return tir_refuse(ir, err, MS_SOFTMAX_MAXIMUM, part->block, "block `%s` is no maximum of floats",
                    tir_block_name(ir, part->block));
}

static bool check_sum(struct tir *ir, struct tir_softmax_part *part, enum ms_code code, ms_error *err) {
  struct tir_reduction r;
  if (!tir_find_reduction(ir, part->block, &r, err)) return false;
  if (r.reducer != TIR_REDUCE_SUM || !tir_type_is_float(tir_type_of(ir, r.left[0])))
    return tir_refuse(ir, err, code, part->block, "block `%s` is no sum of floats", tir_block_name(ir, part->block));
  part->value = r.right[0];
  return true;
}

/* ---- Check: how they belong together ---- */

/* m, or select(m == -infinity, 0, m): its load of the maximum; TIR_NONE: neither. */
static tir_expr shift_of(const struct tir *ir, tir_expr e, tir_buffer maximum) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_LOAD) return n.ref == maximum && !n.a ? e : TIR_NONE;
  if (n.kind != TIR_SELECT || tir_at(ir, n.c)->kind != TIR_LOAD || tir_at(ir, n.a)->kind != TIR_EQ) return TIR_NONE;
  struct tir_expr_node is = *tir_at(ir, n.a), zero = *tir_at(ir, n.b), load = *tir_at(ir, n.c);
  struct tir_expr_node least = *tir_at(ir, is.a == n.c ? is.b : is.a);
  bool infinite = least.kind == TIR_FLOAT_IMM && isinf(least.real) && least.real < 0;
  bool plain = (is.a == n.c || is.b == n.c) && zero.kind == TIR_FLOAT_IMM && zero.real == 0;
  return plain && infinite && load.ref == maximum && !load.a ? n.c : TIR_NONE;
}

/* Takes exp(x - m), or exp(x - (m - headroom)), apart, x and m cast where their type is another; false: it is none. */
struct apart {
  tir_expr x, load, headroom; /* headroom: TIR_NONE, or a constant */
};
static bool split_exp(const struct tir *ir, tir_expr e, tir_buffer maximum, struct apart *out) {
  struct tir_expr_node call = *tir_at(ir, e);
  if (call.kind != TIR_CALL || call.count != 1 || strcmp(tir_text(ir, call.ref), "exp")) return false;
  struct tir_expr_node apart = *tir_at(ir, ir->operands.at[call.operands]);
  if (apart.kind != TIR_SUB) return false;
  struct tir_expr_node less = *tir_at(ir, apart.b);
  bool cast = call.type != tir_buffer_at(ir, maximum)->type;
  bool headroom =
      less.kind == TIR_SUB && tir_at(ir, less.b)->kind == TIR_FLOAT_IMM && isfinite(tir_at(ir, less.b)->real);
  tir_expr shift = headroom ? less.a : apart.b;
  if (cast && (tir_at(ir, apart.a)->kind != TIR_CAST || tir_at(ir, shift)->kind != TIR_CAST)) return false;
  out->x = cast ? tir_at(ir, apart.a)->a : apart.a;
  out->load = shift_of(ir, cast ? tir_at(ir, shift)->a : shift, maximum);
  out->headroom = headroom ? less.b : TIR_NONE;
  return out->load != TIR_NONE;
}

/* From now on, until tir_subst_clear, the product's iterations stand for those of the part, which it writes at. */
static bool map_iterations(struct tir *ir, const struct tir_fused_softmax *plan, const struct tir_softmax_part *part) {
  uint32_t mapped = 0;
  for (uint32_t d = 0; d < part->rank; d++) {
    struct tir_expr_node index = *tir_at(ir, tir_operands(ir, part->indices)[d]), to = *tir_at(ir, plan->row[d]);
    bool zero = to.kind == TIR_VAR ? tir_is_const(ir, ir->vars.at[to.ref].extent, 1) : to.imm == 0;
    if (index.kind == TIR_INT_IMM && index.imm == 0 && zero) continue;
    if (index.kind != TIR_VAR) return false;
    bool is_spatial = false;
    for (uint32_t i = 0; i < tir_block_at(ir, part->block)->iters.count; i++) {
      struct tir_iter iter = tir_iters(ir, part->block)[i];
      is_spatial = is_spatial || (iter.var == index.ref && iter.kind == TIR_SPATIAL);
    }
    for (uint32_t k = 0; k < d; k++)
      is_spatial = is_spatial && tir_operands(ir, part->indices)[k] != tir_operands(ir, part->indices)[d];
    tir_expr extent = ir->vars.at[index.ref].extent;
    bool same = to.kind == TIR_VAR ? ir->vars.at[to.ref].extent == extent && to.type == index.type
                                   : tir_is_const(ir, extent, 1) && zero;
    if (!is_spatial || !same) return false;
    tir_subst_var(ir, index.ref, plan->row[d]);
    mapped++;
  }
  struct tir_var_node own = ir->vars.at[part->column], column = ir->vars.at[plan->product.column];
  tir_subst_var(ir, part->column, column.expr);
  return own.extent == column.extent && own.type == column.type &&
         mapped + 1 == tir_block_at(ir, part->block)->iters.count;
}

/* Brings what the part reduces into the product's terms. */
static bool translate(struct tir *ir, const struct tir_fused_softmax *plan, struct tir_softmax_part *part,
                      ms_error *err) {
  bool mapped = map_iterations(ir, plan, part);
  if (mapped) part->value = tir_subst(ir, part->value);
  tir_subst_clear(ir);
  return mapped || tir_refuse(ir, err, MS_SOFTMAX_ITERATIONS, part->block,
                              "blocks `%s` and `%s` do not run over the same rows and columns",
                              tir_block_name(ir, part->block), tir_block_name(ir, plan->product.block));
}

static bool is_exp(const struct tir *ir, const void *maximum, tir_expr e) {
  struct apart apart;
  return split_exp(ir, e, *(const tir_buffer *)maximum, &apart);
}

/* Rows as the product's iterations have them: what the exponential reads of the maximum. */
static bool find_rows(struct tir *ir, struct tir_fused_softmax *plan, tir_expr load) {
  uint32_t first = tir_at(ir, load)->operands;
  plan->tiled = -1;
  for (uint32_t d = 0; d < plan->maximum.rank; d++) {
    plan->row[d] = tir_operands(ir, first)[d];
    struct tir_expr_node n = *tir_at(ir, plan->row[d]);
    bool spatial = false;
    for (uint32_t i = 0; i < tir_block_at(ir, plan->product.block)->iters.count && n.kind == TIR_VAR; i++) {
      struct tir_iter iter = tir_iters(ir, plan->product.block)[i];
      spatial = spatial || (iter.var == n.ref && iter.kind == TIR_SPATIAL);
    }
    for (uint32_t k = 0; k < d; k++) spatial = spatial && plan->row[k] != plan->row[d];
    if (!spatial && n.kind != TIR_INT_IMM) return false;
    bool last = plan->tiled < 0 || plan->row_multiple || !tir_is_const(ir, ir->vars.at[n.ref].extent, 1);
    if (spatial && last) plan->tiled = (int)d;
  }
  return plan->tiled >= 0;
}

static bool refuse_product(struct tir *ir, const struct tir_fused_softmax *plan, ms_error *err) {
  return tir_refuse(ir, err, MS_SOFTMAX_PRODUCT, plan->product.block,
                    "block `%s` does not add products with exp(x - `%s`)", tir_block_name(ir, plan->product.block),
                    tir_buffer_name(ir, plan->maximum.buffer));
}

static bool check_product(struct tir *ir, struct tir_fused_softmax *plan, ms_error *err) {
  struct apart apart;
  plan->exponential = tir_find_node(ir, plan->product.value, TIR_HAS_CALL, is_exp, &plan->maximum.buffer);
  if (!plan->exponential || !split_exp(ir, plan->exponential, plan->maximum.buffer, &apart) ||
      !find_rows(ir, plan, apart.load))
    return refuse_product(ir, plan, err);
  plan->x = apart.x, plan->headroom = apart.headroom;
  tir_type type = tir_type_of(ir, plan->exponential), sums = tir_buffer_at(ir, plan->product.buffer)->type;
  if (tir_type_bits(sums) < tir_type_bits(type) || !tir_weigh(ir, plan, plan->product.value, plan->exponential))
    return refuse_product(ir, plan, err);
  return true;
}

static bool check_values(struct tir *ir, struct tir_fused_softmax *plan, ms_error *err) {
  struct apart apart;
  if (!check_product(ir, plan, err) || !translate(ir, plan, &plan->maximum, err)) return false;
  if (plan->sum.rank != plan->maximum.rank)
    return tir_refuse(ir, err, MS_REDUCTION_SHAPES_DIFFER, plan->sum.block,
                      "buffers `%s` and `%s` have different shapes", tir_buffer_name(ir, plan->maximum.buffer),
                      tir_buffer_name(ir, plan->sum.buffer));
  if (!translate(ir, plan, &plan->sum, err)) return false;
  bool same = split_exp(ir, plan->sum.value, plan->maximum.buffer, &apart) && apart.x == plan->maximum.value &&
              apart.headroom == plan->headroom &&
              tir_type_of(ir, plan->sum.value) == tir_type_of(ir, plan->exponential);
  for (uint32_t d = 0; d < plan->maximum.rank && same; d++)
    same = tir_operands(ir, tir_at(ir, apart.load)->operands)[d] == plan->row[d];
  if (!same)
    return tir_refuse(ir, err, MS_SOFTMAX_SUM, plan->sum.block,
                      "block `%s` does not add exp(x - maximum), x as in block `%s`",
                      tir_block_name(ir, plan->sum.block), tir_block_name(ir, plan->maximum.block));
  return plan->x == plan->maximum.value || refuse_product(ir, plan, err);
}

/* Nothing sees that maximum and sum come later, nor where the maximum begins. */
static bool check_readers(struct tir *ir, const struct tir_fused_softmax *plan, const struct tir_softmax_part *part,
                          ms_error *err) {
  tir_block product = plan->product.block;
  bool hidden = plan->infinite && part == &plan->maximum;
  if (tir_lowest_common_ancestor(ir, part->block, product) != plan->scope)
    return tir_refuse(ir, err, MS_SOFTMAX_LOOPS, product, "a loop is around blocks `%s` and `%s`",
                      tir_block_name(ir, part->block), tir_block_name(ir, product));
  for (uint32_t u = tir_buffer_at(ir, part->buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block reader = ir->uses.at[u].block;
    if (reader == product || reader == plan->sum.block || reader == plan->maximum.block ||
        !tir_is_below(ir, reader, plan->scope))
      continue;
    if (!hidden && tir_compare_position(ir, reader, product) > 0 &&
        tir_lowest_common_ancestor(ir, reader, product) == plan->scope)
      continue;
    return tir_refuse(ir, err, hidden ? MS_SOFTMAX_INFINITY : MS_SOFTMAX_LOOPS, reader,
                      hidden ? "block `%s` reads `%s`, which begins with infinity"
                             : "block `%s` reads `%s` under the product's loops, or before it",
                      tir_block_name(ir, reader), tir_buffer_name(ir, part->buffer));
  }
  if (hidden && !tir_allocates(ir, plan->scope, part->buffer))
    return tir_refuse(ir, err, MS_SOFTMAX_INFINITY, part->block,
                      "buffer `%s`, which begins with infinity, is seen outside of its scope",
                      tir_buffer_name(ir, part->buffer));
  struct tir_transfer to_product = {.block = part->block, .scope = plan->scope, .to = product};
  return tir_check_blocks_only(ir, part->buffer, plan->scope, true, err) &&
         tir_check_no_opaque_access(ir, part->buffer, TIR_NONE, err) &&
         tir_check_no_range_loads(ir, part->buffer, part->block, err) && tir_check_order(ir, &to_product, err);
}

/* The fused block comes before what is left of the product's loops: nothing that it reads is made in them. */
static bool check_makers(struct tir *ir, const struct tir_fused_softmax *plan, ms_error *err) {
  enum { MOST_MAKERS = 64 };
  tir_block product = plan->product.block, makers[MOST_MAKERS];
  uint32_t count = tir_producers(ir, product, makers, MOST_MAKERS);
  for (uint32_t i = 0; i < count && i < MOST_MAKERS; i++)
    if (tir_lowest_common_ancestor(ir, makers[i], product) != plan->scope)
      return tir_refuse(ir, err, MS_SOFTMAX_LOOPS, product, "a loop is around blocks `%s` and `%s`",
                        tir_block_name(ir, makers[i]), tir_block_name(ir, product));
  return count <= MOST_MAKERS || refuse_product(ir, plan, err);
}

struct nest {
  const struct tir_fused_softmax *plan;
  tir_stmt top;
  ms_error *err;
};

static bool refuse_beside(struct tir *ir, const struct nest *nest, tir_stmt other, tir_buffer buffer) {
  return tir_refuse(ir, nest->err, MS_SOFTMAX_LOOPS, other, "this uses `%s` under the loops of block `%s`, which moves",
                    tir_buffer_name(ir, buffer), tir_block_name(ir, nest->plan->product.block));
}

static bool check_beside(struct tir *ir, void *context, const struct tir_conflict *c) {
  const struct nest *nest = context;
  return !tir_is_below(ir, c->other.at, nest->top) || (!c->own.writes && !c->other.writes) ||
         refuse_beside(ir, nest, c->other.at, c->buffer);
}

/* Nor does anything under these loops, undeclared or outside of blocks, write what it reads, or use what it writes. */
static bool check_nest(struct tir *ir, const struct tir_fused_softmax *plan, ms_error *err) {
  struct nest nest = {plan, plan->product.block, err};
  struct tir_outside_use use;
  while (tir_stmt_at(ir, nest.top)->parent != plan->scope) nest.top = tir_stmt_at(ir, nest.top)->parent;
  if (tir_next_outside_use(ir, plan->scope, plan->product.buffer, nest.top, TIR_NONE, &use))
    return refuse_beside(ir, &nest, use.at, plan->product.buffer);
  return tir_each_undeclared_conflict(ir, plan->product.block, plan->scope,
                                      &(struct tir_conflict_visitor){check_beside, &nest});
}

static bool check_tile(struct tir *ir, const struct tir_fused_softmax *plan, int64_t tile, tir_var of, const char *what,
                       ms_error *err) {
  long long extent = plan->row_multiple ? INT32_MAX : (long long)tir_at(ir, ir->vars.at[of].extent)->imm;
  return (tile >= 1 && tile <= extent) ||
         tir_refuse(ir, err, MS_SOFTMAX_TILE, plan->product.block, "a tile of %lld %s; there are %lld", (long long)tile,
                    what, extent);
}

static bool check_fuse_online_softmax(struct tir *ir, const tir_block *blocks, struct tir_fused_softmax *plan,
                                      ms_error *err) {
  struct tir_softmax_part *parts[] = {&plan->maximum, &plan->sum, &plan->product};
  if (!check_scope(ir, blocks, plan, err)) return false;
  for (int i = 0; i < 3; i++)
    if (!check_block(ir, blocks[i], plan->scope, parts[i], err)) return false;
  if (!check_maximum(ir, &plan->maximum, &plan->infinite, err) || !check_sum(ir, &plan->sum, MS_SOFTMAX_SUM, err) ||
      !check_sum(ir, &plan->product, MS_SOFTMAX_PRODUCT, err) || !check_values(ir, plan, err))
    return false;
  for (int i = 0; i < 2; i++)
    if (!check_readers(ir, plan, parts[i], err)) return false;
  if (!check_makers(ir, plan, err) || !check_nest(ir, plan, err)) return false;
  if (!check_tile(ir, plan, plan->row_tile, tir_at(ir, plan->row[plan->tiled])->ref, "rows", err) ||
      !check_tile(ir, plan, plan->column_tile, plan->product.column, "columns", err))
    return false;
  tir_find_softmax_producers(ir, plan);
  return tir_check_softmax_growth(ir, plan, err);
}

bool tir_fuse_online_softmax(struct tir *ir, const tir_block *blocks, const struct tir_softmax_tiling *tiling,
                             tir_block *out, ms_error *err) {
  struct tir_fused_softmax plan = {.row_tile = tiling->rows, .column_tile = tiling->columns, .skips = tiling->skips};
  plan.row_multiple = tiling->row_multiple, plan.parts = tiling->parts;
  struct tir_mark mark = tir_mark(ir);
  for (int i = 0; i < 3; i++) assert(tir_is(ir, blocks[i], TIR_BLOCK));
  if (!tir_rewind_unless(ir, &mark, check_fuse_online_softmax(ir, blocks, &plan, err))) return false;
  *out = tir_edit_fused_softmax(ir, &plan);
  return true;
}

/* FuseOnlineSoftmax: rows and columns that grow, and what is read at them. */
#include "copy_stage.h"
#include "fuse_online_softmax.h"
#include "tir/analysis/loads.h"

#include <math.h>

enum { MOST_LOADS = 32 };

static int64_t extent_of(const struct tir *ir, tir_var v) { return tir_at(ir, ir->vars.at[v].extent)->imm; }

static tir_var tiled_row(const struct tir *ir, const struct tir_fused_softmax *plan) {
  return tir_at(ir, plan->row[plan->tiled])->ref;
}

int64_t tir_grown_extent(const struct tir *ir, const struct tir_fused_softmax *plan, tir_var of) {
  if (of == plan->product.column) return plan->columns;
  return of == tiled_row(ir, plan) ? plan->rows : extent_of(ir, of);
}

static bool grows(const struct tir *ir, const struct tir_fused_softmax *plan, tir_var v) {
  return tir_grown_extent(ir, plan, v) != extent_of(ir, v);
}

/* ---- Check: extents ---- */

static int64_t up_to(int64_t extent, int64_t multiple) { return (extent + multiple - 1) / multiple * multiple; }

static bool find_extents(struct tir *ir, struct tir_fused_softmax *plan, ms_error *err) {
  int64_t rows = extent_of(ir, tiled_row(ir, plan)), columns = extent_of(ir, plan->product.column);
  int64_t multiple = plan->row_multiple, tile = plan->column_tile, parts = plan->parts;
  plan->rows = rows, plan->columns = columns;
  bool whole = multiple >= 0 && multiple <= INT32_MAX && multiple % plan->row_tile == 0 && rows <= INT32_MAX &&
               columns <= INT32_MAX && parts >= 1 && parts <= up_to(columns, tile) / tile;
  if (whole && multiple) {
    plan->rows = up_to(rows, multiple);
    plan->columns = up_to(up_to(columns, tile) / tile, parts) * tile;
    whole = plan->rows <= INT32_MAX && plan->columns <= INT32_MAX;
  } else if (whole && parts > 1) {
    whole = columns % (tile * parts) == 0;
  }
  return whole || tir_refuse(ir, err, MS_SOFTMAX_PARTS, plan->product.block,
                             "rows in multiples of %lld, tiles of %lld; %lld parts of %lld columns, in tiles of %lld",
                             (long long)multiple, (long long)plan->row_tile, (long long)parts, (long long)columns,
                             (long long)tile);
}

/* ---- Check: what is read ---- */

static bool refuse_growth(struct tir *ir, const struct tir_fused_softmax *plan, tir_block reader, tir_buffer buffer,
                          ms_error *err) {
  return tir_refuse(ir, err, MS_SOFTMAX_GROWTH, reader, "what `%s` reads of `%s` does not grow with the rows of `%s`",
                    tir_block_name(ir, reader), tir_buffer_name(ir, buffer), tir_block_name(ir, plan->product.block));
}

/* Without parts, others in the place of maximum and sum are all that is left of them. */
static bool is_replaceable(struct tir *ir, const struct tir_fused_softmax *plan, tir_buffer buffer) {
  if (!tir_allocates(ir, plan->scope, buffer)) return false;
  for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b != plan->maximum.block && b != plan->sum.block && b != plan->product.block && b != plan->scope) return false;
  }
  return true;
}

static bool is_made(const struct tir_fused_softmax *plan, tir_buffer buffer) {
  bool made = buffer == plan->maximum.buffer || buffer == plan->sum.buffer || buffer == plan->product.buffer;
  for (uint32_t i = 0; i < plan->producer_count && !made; i++) made = plan->producers[i].buffer == buffer;
  return made;
}

/* The dimensions of a load whose indices are those that grow; false: one is read otherwise, or does not end there. */
static bool find_dimensions(struct tir *ir, tir_expr load, const tir_var *growing, const int64_t *extents, int *at) {
  struct tir_expr_node n = *tir_at(ir, load);
  at[0] = at[1] = -1;
  for (uint32_t d = 0; d < n.count; d++) {
    tir_expr index = ir->operands.at[n.operands + d], size = ir->operands.at[tir_buffer_at(ir, n.ref)->shape + d];
    for (int k = 0; k < 2; k++) {
      if (!growing[k] || !tir_uses_var(ir, index, growing[k])) continue;
      if (index != tir_var_expr(ir, growing[k]) || at[k] >= 0 || !tir_is_const(ir, size, extents[k])) return false;
      at[k] = (int)d;
    }
  }
  return !n.a;
}

static bool add_pad(struct tir_fused_softmax *plan, tir_buffer buffer, const int *at) {
  if (at[0] < 0 && at[1] < 0) return true;
  for (uint32_t i = 0; i < plan->pad_count; i++)
    if (plan->pads[i].from == buffer && plan->pads[i].row == at[0] && plan->pads[i].column == at[1]) return true;
  if (plan->pad_count == TIR_MOST_SOFTMAX_PADS) return false;
  plan->pads[plan->pad_count++] = (struct tir_softmax_pad){buffer, TIR_NONE, at[0], at[1]};
  return true;
}

/* Copies are made of all that a sum reads at what grows, named as the reader names it; of a buffer both, or neither. */
static bool find_pads(struct tir *ir, struct tir_fused_softmax *plan, tir_block reader, tir_expr value,
                      const tir_var *growing, ms_error *err) {
  tir_expr loads[MOST_LOADS];
  int64_t extents[2] = {extent_of(ir, tiled_row(ir, plan)), extent_of(ir, plan->product.column)};
  uint32_t count = tir_find_loads(ir, value, TIR_NONE, loads, MOST_LOADS);
  if (count > MOST_LOADS) return refuse_growth(ir, plan, reader, tir_at(ir, loads[0])->ref, err);
  for (uint32_t i = 0; i < count; i++) {
    int at[2];
    tir_buffer buffer = tir_at(ir, loads[i])->ref;
    if (is_made(plan, buffer)) continue;
    if (!find_dimensions(ir, loads[i], growing, extents, at) || !add_pad(plan, buffer, at))
      return refuse_growth(ir, plan, reader, buffer, err);
  }
  return true;
}

/* Zero where what it reads beyond the columns is. */
static bool stays_zero(struct tir *ir, const struct tir_fused_softmax *plan, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  switch (n.kind) {
  case TIR_LOAD: return tir_uses_var(ir, e, plan->product.column);
  case TIR_FLOAT_IMM: return isfinite(n.real);
  case TIR_CAST: return stays_zero(ir, plan, n.a);
  case TIR_MUL: return stays_zero(ir, plan, n.a) && stays_zero(ir, plan, n.b);
  default: return false;
  }
}

static bool check_values(struct tir *ir, struct tir_fused_softmax *plan, ms_error *err) {
  struct tir_fused_softmax apart = *plan;
  apart.normalizer = TIR_NONE;
  tir_var row = tiled_row(ir, plan), column = plan->product.column;
  tir_var growing[2] = {grows(ir, plan, row) ? row : TIR_NONE, grows(ir, plan, column) ? column : TIR_NONE};
  tir_expr zero = tir_float(ir, tir_type_of(ir, plan->exponential), 0);
  tir_expr rest = tir_weigh(ir, &apart, plan->product.value, zero);
  if (growing[1] && !stays_zero(ir, plan, rest))
    return refuse_growth(ir, plan, plan->product.block, plan->product.buffer, err);
  return find_pads(ir, plan, plan->product.block, rest, growing, err);
}

/* The iterations of a producer that are rows and columns, where these grow. */
static void find_growing(const struct tir *ir, const struct tir_fused_softmax *plan,
                         const struct tir_softmax_producer *p, tir_var *growing) {
  tir_var of[2] = {tiled_row(ir, plan), plan->product.column};
  growing[0] = growing[1] = TIR_NONE;
  for (uint32_t i = 0; i < tir_block_at(ir, p->block)->iters.count; i++)
    for (int k = 0; k < 2; k++)
      if (p->at[i] == tir_var_expr(ir, of[k]) && grows(ir, plan, of[k])) growing[k] = tir_iters(ir, p->block)[i].var;
}

static bool reduces(const struct tir *ir, tir_block block) {
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++)
    if (tir_iters(ir, block)[i].kind == TIR_REDUCE) return true;
  return false;
}

static bool check_producer(struct tir *ir, struct tir_fused_softmax *plan, const struct tir_softmax_producer *p,
                           ms_error *err) {
  tir_var growing[2];
  find_growing(ir, plan, p, growing);
  tir_stmt store = tir_only_store(ir, p->block, TIR_BODY);
  return !reduces(ir, p->block) ||
         find_pads(ir, plan, p->block, tir_as(ir, store, TIR_STORE)->store.value, growing, err);
}

bool tir_check_softmax_growth(struct tir *ir, struct tir_fused_softmax *plan, ms_error *err) {
  plan->pad_count = 0;
  if (!find_extents(ir, plan, err)) return false;
  bool rows = grows(ir, plan, tiled_row(ir, plan));
  if (rows && plan->parts == 1)
    for (int i = 0; i < 2; i++) {
      tir_buffer buffer = i ? plan->sum.buffer : plan->maximum.buffer;
      if (!is_replaceable(ir, plan, buffer)) return refuse_growth(ir, plan, plan->product.block, buffer, err);
    }
  if (!rows && !grows(ir, plan, plan->product.column)) return true;
  for (uint32_t i = 0; i < plan->producer_count; i++)
    if (!check_producer(ir, plan, &plan->producers[i], err)) return false;
  return check_values(ir, plan, err);
}

/* ---- Edit ---- */

static tir_buffer make_buffer(struct tir *ir, const struct tir_fused_softmax *plan, const struct tir_softmax_pad *pad) {
  struct tir_buffer_node like = *tir_buffer_at(ir, pad->from);
  tir_expr shape[TIR_MOST_EDITED_RANK];
  assert(like.rank <= TIR_MOST_EDITED_RANK);
  for (uint32_t d = 0; d < like.rank; d++) {
    shape[d] = ir->operands.at[like.shape + d];
    tir_type type = tir_type_of(ir, shape[d]);
    if ((int)d == pad->row) shape[d] = tir_int(ir, type, plan->rows);
    if ((int)d == pad->column) shape[d] = tir_int(ir, type, plan->columns);
  }
  tir_symbol name = tir_free_block_name(ir, tir_symbol_suffix(ir, like.name, "_pad"));
  tir_buffer made = tir_new_buffer(ir, name, like.type, shape, like.rank, like.scope);
  tir_add_alloc(ir, plan->scope, made);
  return made;
}

static tir_stmt make_copy(struct tir *ir, const struct tir_softmax_pad *pad) {
  struct tir_buffer_node n = *tir_buffer_at(ir, pad->to);
  struct tir_copy_stage s = {.loop_count = n.rank, .iter_count = n.rank, .from_rank = n.rank, .to_rank = n.rank};
  s.name = n.name, s.from = pad->from, s.to = pad->to;
  for (uint32_t d = 0; d < n.rank; d++) tir_copy_dimension(ir, &s, d, ir->operands.at[n.shape + d]);
  tir_block block;
  return tir_make_copy_stage(ir, &s, &block);
}

void tir_make_softmax_pads(struct tir *ir, struct tir_fused_softmax *plan, tir_stmt before) {
  for (uint32_t i = 0; i < plan->pad_count; i++) {
    plan->pads[i].to = make_buffer(ir, plan, &plan->pads[i]);
    tir_insert_before(ir, before, make_copy(ir, &plan->pads[i]));
  }
}

/* A buffer whose loads change: into those of a copy, or guarded. */
struct change {
  const struct tir_fused_softmax *plan;
  tir_buffer from;
  tir_expr row, column;
};

static tir_expr padded_load(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct change *c = context;
  for (uint32_t i = 0; i < c->plan->pad_count; i++) {
    const struct tir_softmax_pad *p = &c->plan->pads[i];
    bool row = p->row < 0 || indices[p->row] == c->row, column = p->column < 0 || indices[p->column] == c->column;
    if (p->from == c->from && row && column) return tir_load(ir, p->to, indices, count, TIR_NONE);
  }
  tir_expr value = tir_load(ir, c->from, indices, count, TIR_NONE), within = tir_within_bounds(ir, c->from, indices);
  if (!within) return value;
  tir_type type = tir_type_of(ir, value);
  tir_expr zero = tir_type_is_float(type) ? tir_float(ir, type, 0.0) : tir_int(ir, type, 0);
  tir_expr args[3] = {within, value, zero};
  return tir_call(ir, type, tir_symbol_of(ir, "if_then_else"), args, 3);
}

void tir_pad_softmax_reads(struct tir *ir, const struct tir_fused_softmax *plan, tir_block block, tir_expr row,
                           tir_expr column) {
  tir_stmt store = tir_only_store(ir, block, TIR_BODY);
  tir_expr loads[MOST_LOADS];
  uint32_t count = tir_find_loads(ir, tir_as(ir, store, TIR_STORE)->store.value, TIR_NONE, loads, MOST_LOADS);
  if (count > MOST_LOADS) count = MOST_LOADS;
  tir_buffer from[MOST_LOADS];
  for (uint32_t i = 0; i < count; i++) from[i] = tir_at(ir, loads[i])->ref;
  for (uint32_t i = 0; i < count; i++) {
    bool again = false;
    for (uint32_t k = 0; k < i; k++) again = again || from[k] == from[i];
    struct change change = {plan, from[i], row, column};
    struct tir_load_rule rule = {from[i], TIR_NONE, padded_load, &change};
    if (!again) tir_rewrite_own_loads(ir, &rule, block);
  }
}

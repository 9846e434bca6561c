/* Rebase exponential: of rows whose maximum is subtracted before they are exponentiated, each block of columns
 * subtracts its own maxima, as many as it has lanes, and what differs from the row's is made up for where exponentials
 * are read: exp(x - m) = exp(x - m_b) * exp(m_b - m). The exponentials of a block need no other block of its row, so
 * that one pass over the row is enough.
 *
 *   m = max x                       m_b = max x, of a block's lane; m = max m_b
 *   e = exp(x - m)                  e = exp(x - m_b)
 *   s = sum e                       s_b = sum e; f = exp(m_b - m); s = sum s_b * f
 *   y = e / s                       g = f / s; y = e * g
 *
 * Results are rounded otherwise. Where a row holds NaN, infinity, or only negative infinity, they are as they were: the
 * maxima begin with the least finite value, so that no distance is infinity less infinity but where the greatest
 * element is infinite; and f is 1 where m_b is m, so that a row whose greatest is infinite has 0 in its other elements.
 *
 * Requires: in one scope, a stage pipeline, what OnlineSoftmax requires of a maximum and a sum, each with one iteration
 *           that reduces, which run over whole domains of constant extents, and each alone in its loops. The sum is of
 *           exp(x - maximum), x being what the first is the maximum of, or of what a spatial block stores of it: one
 *           that stands alone in its loops between both, writes each element of a buffer of its scope at iterations of
 *           its own, in global memory, and is read by blocks that store once and, but for the sum, come after it, under
 *           none of its loops. A block's columns, steps times lanes, divide the row's.
 * After:    MAXIMUM_rf reduces each block's lanes; MAXIMUM these. SUM_rf adds each lane's exponentials; MAXIMUM_factor
 *           is exp(m_b - m), and SUM adds the products of both. SUM_scale divides the factor by the sum, where a block
 *           divides an exponential by it and by that alone. Partial results have the block and the lane as their last
 *           dimensions; of one lane, the block.
 * Forward:  maximum and sum, and the loops around them, are dead; blocks of their names stand in loops over the same.
 * Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018, section 3.1, applied to blocks. */
#include "fuse_online_softmax.h"
#include "inline.h"
#include "loops.h"
#include "online_softmax.h"
#include "reduction_body.h"
#include "tir/analysis/detect.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/order.h"

#include <stdio.h>
#include <string.h>

enum { MOST_RANK = TIR_MOST_SOFTMAX_ITERS, MOST_READERS = 16 };

struct rebase_exponential_plan {
  struct tir_maximum_and_sum rows;
  tir_block maximum, sum, powers; /* powers: stores the exponentials; TIR_NONE: the sum has them */
  tir_var column;                 /* the sum's iteration that reduces */
  int64_t steps, lanes, length;   /* of a row; a block of it has so many times so many columns */
  tir_expr exponential;           /* in terms of the sum's iterations */
  tir_buffer stored;              /* of the exponentials */
  tir_expr at[MOST_RANK];
  uint32_t rank; /* of `at`: the indices at which the sum reads them */
  tir_block readers[MOST_READERS];
  uint32_t reader_count;
};

static int64_t columns_of(const struct rebase_exponential_plan *plan) { return plan->steps * plan->lanes; }

/* Dimensions that partial results have besides the row's: the block, and the lane, where there are several. */
static uint32_t parts_of(const struct rebase_exponential_plan *plan) { return plan->lanes > 1 ? 2 : 1; }

/* ---- Check ---- */

/* Nothing else is in the block's loops, which stand in the scope itself. */
static bool check_alone(struct tir *ir, tir_block block, tir_block scope, ms_error *err) {
  if (tir_stmt_at(ir, tir_top_of_leaf(ir, block))->parent == scope) return true;
  return tir_refuse(ir, err, MS_SOFTMAX_LOOPS, block, "block `%s` is not alone in the loops around it",
                    tir_block_name(ir, block));
}

static bool check_rows(struct tir *ir, struct rebase_exponential_plan *plan, ms_error *err) {
  tir_block both[] = {plan->maximum, plan->sum};
  if (!tir_check_maximum_and_sum(ir, plan->maximum, plan->sum, &plan->rows, err)) return false;
  for (int i = 0; i < 2; i++) {
    uint32_t reduced = 0;
    struct tir_span iters = tir_block_at(ir, both[i])->iters;
    for (uint32_t k = iters.first; k < iters.first + iters.count; k++) {
      if (ir->iters.at[k].kind != TIR_REDUCE) continue;
      reduced++;
      plan->column = ir->iters.at[k].var;
    }
    if (reduced != 1 || !tir_runs_whole(ir, both[i]))
      return tir_refuse(ir, err, MS_SOFTMAX_ITERATIONS, both[i],
                        "block `%s` does not reduce whole rows of constant length by one iteration",
                        tir_block_name(ir, both[i]));
    if (tir_buffer_at(ir, i ? plan->rows.sum.buffers[0] : plan->rows.maximum.buffers[0])->rank > MOST_RANK - 2)
      return tir_refuse(ir, err, MS_TOO_LARGE, both[i], "block `%s` writes more than %d dimensions",
                        tir_block_name(ir, both[i]), MOST_RANK - 2);
    if (!check_alone(ir, both[i], plan->rows.scope, err)) return false;
  }
  if (tir_compare_position(ir, plan->maximum, plan->sum) > 0)
    return tir_refuse(ir, err, MS_SOFTMAX_LOOPS, plan->sum, "block `%s` comes before block `%s`",
                      tir_block_name(ir, plan->sum), tir_block_name(ir, plan->maximum));
  plan->length = tir_at(ir, ir->vars.at[plan->column].extent)->imm;
  return true;
}

static bool check_columns(const struct tir *ir, const struct rebase_exponential_plan *plan, ms_error *err) {
  int64_t steps = plan->steps, lanes = plan->lanes, length = plan->length;
  if (steps > 0 && lanes > 0 && steps <= length / lanes && length % (steps * lanes) == 0) return true;
  return tir_refuse(ir, err, MS_SOFTMAX_BLOCK, plan->sum,
                    "blocks of %lld times %lld columns do not divide rows of %lld", (long long)steps, (long long)lanes,
                    (long long)length);
}

static bool refuse_powers(const struct tir *ir, tir_block block, const char *why, ms_error *err) {
  return tir_refuse(ir, err, MS_SOFTMAX_EXPONENTIALS, block, "block `%s` %s", tir_block_name(ir, block), why);
}

/* The block that stores what the sum loads; it begins the plan's `at` and `stored`. */
static bool find_powers(struct tir *ir, struct rebase_exponential_plan *plan, ms_error *err) {
  struct tir_expr_node load = *tir_at(ir, plan->rows.sum.right[0]);
  if (load.kind != TIR_LOAD || load.a || load.count > MOST_RANK)
    return tir_refuse(ir, err, MS_SOFTMAX_SUM, plan->sum,
                      "block `%s` does not add exp(x - maximum), x as in block `%s`", tir_block_name(ir, plan->sum),
                      tir_block_name(ir, plan->maximum));
  plan->stored = load.ref, plan->rank = load.count;
  memcpy(plan->at, tir_operands(ir, load.operands), load.count * sizeof *plan->at);
  for (uint32_t u = tir_buffer_at(ir, load.ref)->writers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (!tir_is_below(ir, b, plan->rows.scope) || tir_scope_of(ir, b) != plan->rows.scope) continue;
    if (plan->powers) return refuse_powers(ir, b, "is not the only one that writes what the sum is of", err);
    plan->powers = b;
  }
  return plan->powers || refuse_powers(ir, plan->sum, "reads what no block of its scope writes", err);
}

/* It stores at iterations of its own, one a dimension, which then stand for the sum's until tir_subst_clear. */
static bool map_powers(struct tir *ir, const struct rebase_exponential_plan *plan, tir_stmt store) {
  struct tir_span iters = tir_block_at(ir, plan->powers)->iters;
  if (iters.count != plan->rank) return false;
  for (uint32_t d = 0; d < plan->rank; d++) {
    struct tir_expr_node index = *tir_at(ir, ir->operands.at[tir_as(ir, store, TIR_STORE)->store.indices + d]);
    if (index.kind != TIR_VAR || tir_iter_of(ir, plan->powers, index.ref) < 0) return false;
    struct tir_expr_node own = *tir_at(ir, plan->at[d]);
    if (own.kind != TIR_VAR || tir_iter_of(ir, plan->sum, own.ref) < 0 || index.type != own.type ||
        !tir_prove_equal(ir, ir->vars.at[index.ref].extent, ir->vars.at[own.ref].extent))
      return false;
    for (uint32_t k = 0; k < d; k++)
      if (plan->at[k] == plan->at[d] ||
          ir->operands.at[tir_as(ir, store, TIR_STORE)->store.indices + k] == ir->vars.at[index.ref].expr)
        return false;
    tir_subst_var(ir, index.ref, plan->at[d]);
  }
  return true;
}

static bool check_powers(struct tir *ir, struct rebase_exponential_plan *plan, ms_error *err) {
  tir_block powers = plan->powers, scope = plan->rows.scope;
  tir_stmt store = tir_softmax_store(ir, powers);
  if (!tir_check_complete_block(ir, powers, scope, err) || !tir_check_not_output(ir, powers, scope, err) ||
      !check_alone(ir, powers, scope, err))
    return false;
  if (!store || tir_has_own_buffers(ir, powers) || tir_stmt_at(ir, powers)->first[TIR_INIT])
    return refuse_powers(ir, powers, "is more than one store", err);
  if (!tir_runs_whole(ir, powers))
    return refuse_powers(ir, powers, "does not run over whole domains of constant extents", err);
  if (tir_memory_of(ir, plan->stored)) return refuse_powers(ir, powers, "writes to other memory than global", err);
  if (tir_compare_position(ir, powers, plan->maximum) < 0 || tir_compare_position(ir, powers, plan->sum) > 0)
    return refuse_powers(ir, powers, "does not stand between maximum and sum", err);
  bool mapped = map_powers(ir, plan, store);
  if (mapped) plan->exponential = tir_subst(ir, tir_as(ir, store, TIR_STORE)->store.value);
  tir_subst_clear(ir);
  return mapped || refuse_powers(ir, powers, "stores other elements than the sum reads, one for each", err);
}

static bool check_reader(struct tir *ir, struct rebase_exponential_plan *plan, tir_block reader, ms_error *err) {
  tir_block scope = plan->rows.scope;
  if (tir_scope_of(ir, reader) != scope || tir_compare_position(ir, reader, plan->sum) < 0 ||
      tir_lowest_common_ancestor(ir, reader, plan->sum) != scope)
    return tir_refuse(ir, err, MS_SOFTMAX_LOOPS, reader, "block `%s` reads `%s` before block `%s` is done",
                      tir_block_name(ir, reader), tir_buffer_name(ir, plan->stored), tir_block_name(ir, plan->sum));
  if (!tir_softmax_store(ir, reader))
    return refuse_powers(ir, reader, "reads exponentials for more than one store", err);
  tir_stmt init = tir_stmt_at(ir, reader)->first[TIR_INIT];
  if (init && (!tir_only_store(ir, reader, TIR_INIT) ||
               tir_uses_buffer(ir, tir_as(ir, init, TIR_STORE)->store.value, plan->stored)))
    return refuse_powers(ir, reader, "reads exponentials in its init", err);
  for (uint32_t i = 0; i < plan->reader_count; i++)
    if (plan->readers[i] == reader) return true;
  if (plan->reader_count == MOST_READERS)
    return tir_refuse(ir, err, MS_TOO_LARGE, reader, "more than %d blocks read `%s`", MOST_READERS,
                      tir_buffer_name(ir, plan->stored));
  plan->readers[plan->reader_count++] = reader;
  return true;
}

/* Everyone who reads the exponentials is known, and comes when the factors are there. */
static bool check_readers(struct tir *ir, struct rebase_exponential_plan *plan, ms_error *err) {
  tir_buffer stored = plan->stored;
  if (!tir_check_blocks_only(ir, stored, plan->rows.scope, true, err) ||
      !tir_check_no_opaque_access(ir, stored, TIR_NONE, err) ||
      !tir_check_no_range_loads(ir, stored, plan->powers, err))
    return false;
  for (uint32_t u = tir_buffer_at(ir, stored)->readers; u; u = ir->uses.at[u].next) {
    tir_block reader = ir->uses.at[u].block;
    if (reader == plan->sum || !tir_is_below(ir, reader, plan->rows.scope)) continue;
    if (!check_reader(ir, plan, reader, err)) return false;
  }
  return true;
}

static bool check_rebase_exponential(struct tir *ir, struct rebase_exponential_plan *plan, ms_error *err) {
  if (!check_rows(ir, plan, err) || !check_columns(ir, plan, err)) return false;
  plan->exponential = plan->rows.sum.right[0];
  if (tir_is_exp_of_distance(ir, &plan->rows, plan->exponential)) return true;
  if (!find_powers(ir, plan, err) || !check_powers(ir, plan, err)) return false;
  if (!tir_is_exp_of_distance(ir, &plan->rows, plan->exponential))
    return refuse_powers(ir, plan->powers, "does not store exp(x - maximum), x as the maximum is of", err);
  return check_readers(ir, plan, err);
}

/* ---- Edit ---- */

/* A block to be in loops of its own: the rows, then parts of the columns. */
struct nest {
  struct tir *ir;
  const struct rebase_exponential_plan *plan;
  struct tir_iter iters[MOST_RANK + 3];
  tir_var loops[MOST_RANK + 3];
  tir_expr at[MOST_RANK]; /* of a partial result: the row's indices, block and lane */
  uint32_t count;
};

static tir_expr index_of(const struct nest *n, int64_t value) {
  return tir_int(n->ir, n->ir->vars.at[n->plan->column].type, value);
}

static tir_expr add_iter(struct nest *n, tir_name iter, tir_name loop, enum tir_iter_kind kind, tir_type type,
                         tir_expr extent) {
  tir_expr zero = tir_int(n->ir, type, 0);
  assert(n->count < MOST_RANK + 3);
  n->loops[n->count] = tir_new_var(n->ir, TIR_VAR_LOOP, loop, type, zero, extent);
  tir_var v = tir_new_var(n->ir, TIR_VAR_ITER, iter, type, zero, extent);
  n->iters[n->count] = (struct tir_iter){v, kind, tir_var_expr(n->ir, n->loops[n->count])};
  n->count++;
  return tir_var_expr(n->ir, v);
}

static tir_expr add_part(struct nest *n, const char *name, enum tir_iter_kind kind, int64_t extent) {
  tir_name loop = tir_name_of(n->ir, name);
  return add_iter(n, tir_name_prefix(n->ir, "v_", loop), loop, kind, n->ir->vars.at[n->plan->column].type,
                  index_of(n, extent));
}

/* The rows: from now on, until `finish`, iterations of the nest stand for the sum's spatial ones. */
static struct nest begin(struct tir *ir, const struct rebase_exponential_plan *plan) {
  struct nest n = {.ir = ir, .plan = plan};
  struct tir_span iters = tir_block_at(ir, plan->sum)->iters;
  for (uint32_t i = 0; i < iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, plan->sum)[i];
    struct tir_var_node v = ir->vars.at[iter.var];
    char name[24];
    if (iter.kind != TIR_SPATIAL) continue;
    snprintf(name, sizeof name, "ax%u", n.count);
    tir_subst_var(ir, iter.var, add_iter(&n, v.name, tir_name_of(ir, name), TIR_SPATIAL, v.type, v.extent));
  }
  return n;
}

/* Blocks and lanes, which a block of partial results runs over, or one that reduces them. */
static void add_parts(struct nest *n, enum tir_iter_kind kind) {
  struct tir *ir = n->ir;
  uint32_t rank = tir_buffer_at(ir, n->plan->rows.sum.buffers[0])->rank;
  uint32_t row = tir_subst_operands(ir, n->plan->rows.sum.indices, rank);
  memcpy(n->at, tir_operands(ir, row), rank * sizeof *n->at);
  n->at[rank] = add_part(n, "block", kind, n->plan->length / columns_of(n->plan));
  if (n->plan->lanes > 1) n->at[rank + 1] = add_part(n, "lane", kind, n->plan->lanes);
}

static uint32_t parts_rank(const struct nest *n) {
  return tir_buffer_at(n->ir, n->plan->rows.sum.buffers[0])->rank + parts_of(n->plan);
}

/* Block and lane of the nest; the lane 0 where there is one. */
static tir_expr block_at(const struct nest *n) { return n->at[parts_rank(n) - parts_of(n->plan)]; }
static tir_expr lane_at(const struct nest *n) { return n->plan->lanes > 1 ? n->at[parts_rank(n) - 1] : index_of(n, 0); }

/* The steps of a lane, which are reduced: the nest's iterations then stand for the column too. */
static void add_steps(struct nest *n) {
  tir_expr step = add_part(n, "step", TIR_REDUCE, n->plan->steps);
  tir_expr inside = tir_add(n->ir, tir_mul(n->ir, step, index_of(n, n->plan->lanes)), lane_at(n));
  tir_expr column = tir_add(n->ir, tir_mul(n->ir, block_at(n), index_of(n, columns_of(n->plan))), inside);
  tir_subst_var(n->ir, n->plan->column, column);
}

static tir_expr load_part(const struct nest *n, tir_buffer buffer) {
  return tir_load(n->ir, buffer, n->at, parts_rank(n), TIR_NONE);
}

static tir_expr load_row(const struct nest *n, tir_buffer buffer) {
  return tir_load(n->ir, buffer, n->at, parts_rank(n) - parts_of(n->plan), TIR_NONE);
}

/* Puts the block, which has its statements, into the nest's loops before a statement of the scope. */
static void finish(struct nest *n, tir_block block, tir_stmt before) {
  tir_subst_clear(n->ir);
  tir_set_iters(n->ir, block, n->iters, n->count);
  tir_insert_before(n->ir, before, tir_put_in_loops(n->ir, block, n->loops, n->count));
  tir_detect_regions(n->ir, block, true, true);
}

static tir_buffer make_parts(struct tir *ir, const struct rebase_exponential_plan *plan, tir_buffer like,
                             const char *suffix, tir_type type) {
  struct tir_buffer_node old = *tir_buffer_at(ir, like);
  tir_expr shape[MOST_RANK];
  memcpy(shape, tir_operands(ir, old.shape), old.rank * sizeof *shape);
  tir_type index = ir->vars.at[plan->column].type;
  shape[old.rank] = tir_int(ir, index, plan->length / columns_of(plan));
  if (plan->lanes > 1) shape[old.rank + 1] = tir_int(ir, index, plan->lanes);
  tir_buffer made =
      tir_new_buffer(ir, tir_symbol_suffix(ir, old.name, suffix), type, shape, old.rank + parts_of(plan), old.scope);
  tir_add_alloc(ir, plan->rows.scope, made);
  return made;
}

/* What the edit makes besides blocks. */
struct made {
  tir_buffer maxima, sums, factor, scale;
};

static tir_block new_block(struct tir *ir, tir_block like, const char *suffix) {
  return tir_new_block(ir, tir_symbol_suffix(ir, tir_block_at(ir, like)->name, suffix));
}

/* Reduces `value` into the partial results, or these into the rows, before the statement. */
static tir_block reduce(struct nest *n, const struct tir_reduction *like, tir_block of, const char *suffix,
                        tir_buffer into, uint32_t rank, tir_expr value, tir_stmt before) {
  struct tir *ir = n->ir;
  tir_block block = new_block(ir, of, suffix);
  struct tir_reduction r = *like;
  struct tir_reduction_body body = {.block = block, .buffers = &into, .indices = tir_add_operands(ir, n->at, rank)};
  body.left[0] = tir_load(ir, into, n->at, rank, TIR_NONE), body.right[0] = value;
  tir_fill_reduction(ir, &body, &r, true);
  finish(n, block, before);
  return block;
}

/* e with the maximum's loads as those of the block's and the lane's; index: the column, in the same terms. */
struct rebase {
  const struct rebase_exponential_plan *plan;
  tir_buffer maxima;
  tir_expr block, lane;
};

static tir_expr load_maxima(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct rebase *r = context;
  tir_expr at[MOST_RANK];
  memcpy(at, indices, count * sizeof *at);
  at[count] = r->block, at[count + 1] = r->lane;
  return tir_load(ir, r->maxima, at, count + parts_of(r->plan), TIR_NONE);
}

static tir_expr rebased(struct tir *ir, const struct rebase_exponential_plan *plan, tir_buffer maxima, tir_expr block,
                        tir_expr lane, tir_expr e) {
  struct rebase r = {plan, maxima, block, lane};
  struct tir_load_rule rule = {plan->rows.maximum.buffers[0], TIR_NONE, load_maxima, &r};
  return tir_rewrite_loads(ir, &rule, e);
}

static tir_expr block_of(struct tir *ir, const struct rebase_exponential_plan *plan, tir_expr column) {
  return tir_floordiv(ir, column, tir_int(ir, tir_type_of(ir, column), columns_of(plan)));
}

static tir_expr lane_of(struct tir *ir, const struct rebase_exponential_plan *plan, tir_expr column) {
  return tir_floormod(ir, column, tir_int(ir, tir_type_of(ir, column), plan->lanes));
}

static tir_expr as_type(struct tir *ir, tir_type type, tir_expr e) {
  return tir_type_of(ir, e) == type ? e : tir_unary(ir, TIR_CAST, type, e);
}

/* 1 where the maxima are the row's, of which there is one in each row: infinity less infinity is no number. */
static tir_expr factor_of(const struct nest *n, tir_type type, tir_buffer maxima) {
  struct tir *ir = n->ir;
  tir_expr part = load_part(n, maxima), row = load_row(n, n->plan->rows.maximum.buffers[0]);
  tir_expr apart = tir_binary(ir, TIR_SUB, as_type(ir, type, part), as_type(ir, type, row));
  tir_expr power = tir_call(ir, type, tir_symbol_of(ir, "exp"), &apart, 1);
  return tir_select(ir, tir_binary(ir, TIR_EQ, part, row), tir_float(ir, type, 1), power);
}

static void store_parts(struct nest *n, tir_block block, tir_buffer into, tir_expr value, tir_stmt before) {
  tir_append(n->ir, block, TIR_BODY, tir_new_store(n->ir, into, n->at, value));
  finish(n, block, before);
}

/* The maxima of blocks, and of rows by these, where the maximum stood. */
static tir_block make_maxima(struct tir *ir, const struct rebase_exponential_plan *plan, struct made *made) {
  const struct tir_reduction *m = &plan->rows.maximum;
  tir_stmt top = tir_top_of_leaf(ir, plan->maximum);
  made->maxima = make_parts(ir, plan, m->buffers[0], "_rf", tir_buffer_at(ir, m->buffers[0])->type);
  struct nest n = begin(ir, plan);
  add_parts(&n, TIR_SPATIAL);
  add_steps(&n);
  tir_expr x = tir_subst_value(ir, m->right[0]);
  tir_block partial = reduce(&n, m, plan->maximum, "_rf", made->maxima, parts_rank(&n), x, top);
  tir_inherit_cover(ir, partial, plan->maximum, plan->rows.scope);
  n = begin(ir, plan);
  add_parts(&n, TIR_REDUCE);
  reduce(&n, m, plan->maximum, "", m->buffers[0], parts_rank(&n) - parts_of(plan), load_part(&n, made->maxima), top);
  return partial;
}

/* The sums of lanes, the factors, and the sums of rows, where the sum stood. */
static void make_sums(struct tir *ir, const struct rebase_exponential_plan *plan, struct made *made, tir_block *sums,
                      tir_block *factor) {
  const struct tir_reduction *s = &plan->rows.sum;
  tir_type type = tir_buffer_at(ir, s->buffers[0])->type;
  tir_stmt top = tir_top_of_leaf(ir, plan->sum);
  made->sums = make_parts(ir, plan, s->buffers[0], "_rf", type);
  made->factor = make_parts(ir, plan, plan->rows.maximum.buffers[0], "_factor", type);
  struct nest n = begin(ir, plan);
  add_parts(&n, TIR_SPATIAL);
  add_steps(&n);
  tir_expr e = tir_subst_value(ir, s->right[0]);
  if (!plan->powers) e = rebased(ir, plan, made->maxima, block_at(&n), lane_at(&n), e);
  *sums = reduce(&n, s, plan->sum, "_rf", made->sums, parts_rank(&n), e, top);
  tir_inherit_cover(ir, *sums, plan->sum, plan->rows.scope);
  n = begin(ir, plan);
  add_parts(&n, TIR_SPATIAL);
  *factor = new_block(ir, plan->maximum, "_factor");
  store_parts(&n, *factor, made->factor, factor_of(&n, type, made->maxima), top);
  n = begin(ir, plan);
  add_parts(&n, TIR_REDUCE);
  tir_expr scaled = tir_binary(ir, TIR_MUL, load_part(&n, made->sums), load_part(&n, made->factor));
  reduce(&n, s, plan->sum, "", s->buffers[0], parts_rank(&n) - parts_of(plan), scaled, top);
}

/* What a reader's load of an exponential is multiplied by: the factor at the load's row and column. */
struct scaling {
  const struct rebase_exponential_plan *plan;
  tir_buffer by;
};

/* The place of the sum's iteration among the indices at which it reads the exponentials. */
static uint32_t dimension_of(const struct tir *ir, const struct rebase_exponential_plan *plan, tir_var iter) {
  uint32_t d = 0;
  while (plan->at[d] != ir->vars.at[iter].expr) d++;
  assert(d < plan->rank);
  return d;
}

static tir_expr scale_load(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct scaling *s = context;
  tir_expr at[MOST_RANK], column = indices[dimension_of(ir, s->plan, s->plan->column)];
  uint32_t rank = tir_buffer_at(ir, s->plan->rows.sum.buffers[0])->rank;
  for (uint32_t d = 0; d < count; d++) tir_subst_var(ir, tir_at(ir, s->plan->at[d])->ref, indices[d]);
  for (uint32_t d = 0; d < rank; d++) at[d] = tir_subst(ir, tir_operands(ir, s->plan->rows.sum.indices)[d]);
  tir_subst_clear(ir);
  at[rank] = block_of(ir, s->plan, column), at[rank + 1] = lane_of(ir, s->plan, column);
  tir_expr e = tir_load(ir, s->plan->stored, indices, count, TIR_NONE);
  return tir_binary(ir, TIR_MUL, e, tir_load(ir, s->by, at, rank + parts_of(s->plan), TIR_NONE));
}

/* The exponential in [cast] exponential / sum of its row; TIR_NONE: e is another. */
static tir_expr normalized(struct tir *ir, const struct rebase_exponential_plan *plan, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  while (n.kind == TIR_CAST) n = *tir_at(ir, n.a);
  if (n.kind != TIR_DIV || tir_at(ir, n.a)->kind != TIR_LOAD || tir_at(ir, n.b)->kind != TIR_LOAD) return TIR_NONE;
  struct tir_expr_node load = *tir_at(ir, n.a), sum = *tir_at(ir, n.b);
  if (load.ref != plan->stored || sum.ref != plan->rows.sum.buffers[0] || load.a || sum.a) return TIR_NONE;
  for (uint32_t d = 0; d < load.count; d++)
    tir_subst_var(ir, tir_at(ir, plan->at[d])->ref, tir_operands(ir, load.operands)[d]);
  uint32_t row = tir_subst_operands(ir, plan->rows.sum.indices, sum.count);
  tir_subst_clear(ir);
  for (uint32_t d = 0; d < sum.count; d++)
    if (!tir_prove_equal(ir, tir_operands(ir, row)[d], tir_operands(ir, sum.operands)[d])) return TIR_NONE;
  return n.a;
}

/* The factors over the sum, behind it. */
static void make_scale(struct tir *ir, const struct rebase_exponential_plan *plan, struct made *made) {
  tir_buffer sum = plan->rows.sum.buffers[0];
  made->scale = make_parts(ir, plan, sum, "_scale", tir_buffer_at(ir, sum)->type);
  struct nest n = begin(ir, plan);
  add_parts(&n, TIR_SPATIAL);
  tir_expr value = tir_binary(ir, TIR_DIV, load_part(&n, made->factor), load_row(&n, sum));
  store_parts(&n, new_block(ir, plan->sum, "_scale"), made->scale, value, tir_top_of_leaf(ir, plan->sum));
}

static tir_expr with_casts(struct tir *ir, tir_expr like, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, like);
  return n.kind == TIR_CAST ? tir_unary(ir, TIR_CAST, n.type, with_casts(ir, n.a, e)) : e;
}

static void scale_reader(struct tir *ir, const struct rebase_exponential_plan *plan, struct made *made,
                         tir_block reader) {
  tir_stmt store = tir_softmax_store(ir, reader);
  tir_expr value = tir_as(ir, store, TIR_STORE)->store.value, whole = normalized(ir, plan, value);
  if (whole && !made->scale) make_scale(ir, plan, made);
  struct scaling s = {plan, whole ? made->scale : made->factor};
  struct tir_load_rule rule = {plan->stored, TIR_NONE, scale_load, &s};
  if (whole) {
    value = with_casts(ir, value, tir_rewrite_loads(ir, &rule, whole));
    tir_as(ir, store, TIR_STORE)->store.value = value;
  } else {
    tir_rewrite_own_loads(ir, &rule, reader);
  }
  tir_detect_regions(ir, reader, true, true);
}

static void rebase_powers(struct tir *ir, const struct rebase_exponential_plan *plan, tir_buffer maxima) {
  tir_stmt store = tir_softmax_store(ir, plan->powers);
  struct tir_stmt_node n = *tir_as(ir, store, TIR_STORE);
  tir_expr column = ir->operands.at[n.store.indices + dimension_of(ir, plan, plan->column)];
  tir_expr block = block_of(ir, plan, column), lane = lane_of(ir, plan, column);
  tir_expr value = rebased(ir, plan, maxima, block, lane, n.store.value);
  tir_as(ir, store, TIR_STORE)->store.value = value;
  tir_detect_regions(ir, plan->powers, true, true);
}

/* made: maxima, sums and factors. */
static void edit_rebase_exponential(struct tir *ir, const struct rebase_exponential_plan *plan, tir_block *out) {
  struct made made = {TIR_NONE};
  out[0] = make_maxima(ir, plan, &made);
  make_sums(ir, plan, &made, &out[1], &out[2]);
  if (plan->powers) rebase_powers(ir, plan, made.maxima);
  for (uint32_t i = 0; i < plan->reader_count; i++) scale_reader(ir, plan, &made, plan->readers[i]);
  tir_kill_leaf(ir, plan->maximum);
  tir_kill_leaf(ir, plan->sum);
  if (ir->indirect) tir_find_undeclared(ir);
}

bool tir_rebase_exponential(struct tir *ir, tir_block maximum, tir_block sum, int64_t steps, int64_t lanes,
                            tir_block *out, ms_error *err) {
  assert(tir_is(ir, maximum, TIR_BLOCK) && tir_is(ir, sum, TIR_BLOCK) && out);
  struct rebase_exponential_plan plan = {.maximum = maximum, .sum = sum, .steps = steps, .lanes = lanes};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_rebase_exponential(ir, &plan, err))) return false;
  edit_rebase_exponential(ir, &plan, out);
  return true;
}

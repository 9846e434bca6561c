/* Online softmax: a maximum over rows, and the sum of exp(x - maximum) over the same rows, become one pass over them.
 *
 * The block keeps both as they are for the elements so far, and scales the sum where the maximum grows. What it
 * combines is a pair of known reducer (TIR_REDUCE_MAX_AND_EXPS in analysis/reduction.c), so that rfactor and threads
 * take it. Results are those of two passes, rounded otherwise; where a row holds NaN, infinity, or only negative
 * infinity, they are as there: the maximum begins with the least finite value, so that no distance is infinity less
 * infinity but where the greatest element is infinite, and that is NaN in two passes too.
 *
 * Requires: in one scope, a stage pipeline, two reduction blocks below loops alone, without buffers of their own, that
 *           reduce inside of the scope and write one region each, in global memory. The first is a maximum of floats
 *           from the least finite value; the second a sum from zero of exp(x - maximum), or of such with both cast to
 *           its type, x being what the first is the maximum of. Both take the same iterations, in one order, and write
 *           the same elements of buffers of one shape. No loop of the scope is around both, nor around the sum and
 *           another block that reads the maximum, which comes after the sum. The scope reads the maximum in its blocks
 *           only.
 * After:    the second block reduces both, writes both buffers, and reads what the sum read but the maximum.
 * Forward:  the first block, and the loops that held only it, are dead; the second keeps its id and loops.
 * Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018, section 3. */
#include "online_softmax.h"

#include "inline.h"
#include "reduction_body.h"
#include "tir/analysis/order/order.h"

#include <string.h>

enum { MOST_ITERS = 32, MOST_REGIONS = 64 };

/* ---- Check ---- */

static bool check_scope(struct tir *ir, tir_block maximum, tir_block sum, struct tir_maximum_and_sum *plan,
                        ms_error *err) {
  plan->scope = tir_scope_of(ir, sum);
  if (!plan->scope || !tir_scope_of(ir, maximum))
    return tir_refuse(ir, err, MS_ROOT_BLOCK, plan->scope ? maximum : sum, "block `%s` is a root",
                      tir_block_name(ir, plan->scope ? maximum : sum));
  if (tir_scope_of(ir, maximum) != plan->scope || maximum == sum)
    return tir_refuse(ir, err, MS_SOFTMAX_SCOPE, maximum, "blocks `%s` and `%s` are not two of one scope",
                      tir_block_name(ir, maximum), tir_block_name(ir, sum));
  return tir_check_stage_pipeline(ir, plan->scope, err);
}

static bool check_block(struct tir *ir, tir_block block, tir_block scope, struct tir_reduction *out, ms_error *err) {
  const char *name = tir_block_name(ir, block);
  const struct tir_block_record *r = tir_block_at(ir, block);
  if (!tir_check_bare_reduction(ir, block, scope, err)) return false;
  if (!tir_find_reduction(ir, block, out, err)) return false;
  if (r->writes.count != 1 || !tir_has_region_of(ir, r->writes, out->buffers[0]))
    return tir_refuse(ir, err, MS_WRITES_NOT_REDUCED, block, "block `%s` says that it writes %u regions", name,
                      r->writes.count);
  if (tir_memory_of(ir, out->buffers[0]))
    return tir_refuse(ir, err, MS_SOFTMAX_SCOPE, block, "buffer `%s` is not in global memory",
                      tir_buffer_name(ir, out->buffers[0]));
  return true;
}

static bool check_kinds(struct tir *ir, tir_block maximum, tir_block sum, const struct tir_maximum_and_sum *plan,
                        ms_error *err) {
  const struct tir_reduction *m = &plan->maximum, *s = &plan->sum;
  if (m->reducer != TIR_REDUCE_MAX || !tir_is_identity(ir, m->identity[0], TIR_REDUCE_MAX_AND_EXPS, 0))
    return tir_refuse(ir, err, MS_SOFTMAX_MAXIMUM, maximum, "block `%s` is no maximum from the least finite float",
                      tir_block_name(ir, maximum));
  if (s->reducer != TIR_REDUCE_SUM || !tir_type_is_float(tir_type_of(ir, s->left[0])))
    return tir_refuse(ir, err, MS_SOFTMAX_SUM, sum, "block `%s` is no sum of floats", tir_block_name(ir, sum));
  return true;
}

/* The n-th iteration of that kind; -1: there are not so many. */
static int find_iter(const struct tir *ir, tir_block block, uint32_t kind, uint32_t n) {
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++)
    if (tir_iters(ir, block)[i].kind == kind && n-- == 0) return (int)i;
  return -1;
}

static bool is_same_interval(struct tir *ir, struct tir_interval a, struct tir_interval b) {
  return tir_prove_equal(ir, a.min, b.min) && tir_prove_equal(ir, a.max, b.max);
}

/* Which iteration of the sum stands for each of the maximum's; false: they are not alike, or do not take the same
 * values. */
static bool pair_iters(struct tir *ir, tir_block maximum, tir_block sum, uint32_t *of) {
  struct tir_interval taken[MOST_ITERS], needed[MOST_ITERS];
  uint32_t count = tir_block_at(ir, maximum)->iters.count, next[8] = {0};
  if (count > MOST_ITERS || tir_block_at(ir, sum)->iters.count != count ||
      !tir_exact_iterations(ir, maximum, TIR_NONE, taken) || !tir_exact_iterations(ir, sum, TIR_NONE, needed))
    return false;
  for (uint32_t i = 0; i < count; i++) {
    struct tir_iter iter = tir_iters(ir, maximum)[i];
    int at = find_iter(ir, sum, iter.kind, next[iter.kind]++);
    if (at < 0) return false;
    of[i] = (uint32_t)at;
    struct tir_var_node a = ir->vars.at[iter.var], b = ir->vars.at[tir_iters(ir, sum)[at].var];
    if (a.type != b.type || !tir_prove_equal(ir, a.min, b.min) || !tir_prove_equal(ir, a.extent, b.extent) ||
        !is_same_interval(ir, taken[i], needed[at]))
      return false;
  }
  return true;
}

/* From now on, until tir_subst_clear, the sum's iterations stand for the maximum's. */
static bool map_iters(struct tir *ir, tir_block maximum, tir_block sum, ms_error *err) {
  uint32_t of[MOST_ITERS];
  if (!pair_iters(ir, maximum, sum, of))
    return tir_refuse(ir, err, MS_SOFTMAX_ITERATIONS, sum, "blocks `%s` and `%s` do not run over the same iterations",
                      tir_block_name(ir, maximum), tir_block_name(ir, sum));
  for (uint32_t i = 0; i < tir_block_at(ir, maximum)->iters.count; i++)
    tir_subst_var(ir, tir_iters(ir, maximum)[i].var, tir_var_expr(ir, tir_iters(ir, sum)[of[i]].var));
  return true;
}

static bool check_elements(struct tir *ir, tir_block sum, const struct tir_maximum_and_sum *plan, ms_error *err) {
  const struct tir_buffer_node *m = tir_buffer_at(ir, plan->maximum.buffers[0]);
  const struct tir_buffer_node *s = tir_buffer_at(ir, plan->sum.buffers[0]);
  bool alike = m->rank == s->rank;
  for (uint32_t d = 0; d < m->rank && alike; d++)
    alike = tir_prove_equal(ir, tir_operands(ir, m->shape)[d], tir_operands(ir, s->shape)[d]);
  if (!alike)
    return tir_refuse(ir, err, MS_REDUCTION_SHAPES_DIFFER, sum, "buffers `%s` and `%s` have different shapes",
                      tir_buffer_name(ir, plan->maximum.buffers[0]), tir_buffer_name(ir, plan->sum.buffers[0]));
  for (uint32_t d = 0; d < m->rank; d++)
    if (!tir_prove_equal(ir, tir_operands(ir, plan->maximum.indices)[d], tir_operands(ir, plan->sum.indices)[d]))
      return tir_refuse(ir, err, MS_REDUCTION_INDICES_DIFFER, sum, "buffers `%s` and `%s` are written at other indices",
                        tir_buffer_name(ir, plan->maximum.buffers[0]), tir_buffer_name(ir, plan->sum.buffers[0]));
  return true;
}

bool tir_is_exp_of_distance(struct tir *ir, const struct tir_maximum_and_sum *plan, tir_expr e) {
  tir_expr x = plan->maximum.right[0];
  struct tir_expr_node call = *tir_at(ir, e);
  if (call.kind != TIR_CALL || call.count != 1 || strcmp(tir_text(ir, call.ref), "exp")) return false;
  struct tir_expr_node apart = *tir_at(ir, ir->operands.at[call.operands]);
  if (apart.kind != TIR_SUB) return false;
  bool cast = tir_type_of(ir, x) != call.type;
  if (cast && (tir_at(ir, apart.a)->kind != TIR_CAST || tir_at(ir, apart.b)->kind != TIR_CAST)) return false;
  tir_expr from = cast ? tir_at(ir, apart.b)->a : apart.b;
  if ((cast ? tir_at(ir, apart.a)->a : apart.a) != x) return false;
  struct tir_expr_node load = *tir_at(ir, from);
  if (load.kind != TIR_LOAD || load.ref != plan->maximum.buffers[0] || load.a) return false;
  for (uint32_t d = 0; d < load.count; d++)
    if (!tir_prove_equal(ir, tir_operands(ir, load.operands)[d], tir_operands(ir, plan->sum.indices)[d])) return false;
  return true;
}

bool tir_check_maximum_and_sum(struct tir *ir, tir_block maximum, tir_block sum, struct tir_maximum_and_sum *plan,
                               ms_error *err) {
  if (!check_scope(ir, maximum, sum, plan, err) || !check_block(ir, maximum, plan->scope, &plan->maximum, err) ||
      !check_block(ir, sum, plan->scope, &plan->sum, err) || !check_kinds(ir, maximum, sum, plan, err) ||
      !map_iters(ir, maximum, sum, err))
    return false;
  plan->maximum.right[0] = tir_subst(ir, plan->maximum.right[0]);
  plan->maximum.indices =
      tir_subst_operands(ir, plan->maximum.indices, tir_buffer_at(ir, plan->maximum.buffers[0])->rank);
  tir_subst_clear(ir);
  return check_elements(ir, sum, plan, err);
}

static bool check_exponentials(struct tir *ir, tir_block maximum, tir_block sum, struct tir_maximum_and_sum *plan,
                               ms_error *err) {
  if (tir_is_exp_of_distance(ir, plan, plan->sum.right[0])) return true;
  return tir_refuse(ir, err, MS_SOFTMAX_SUM, sum, "block `%s` does not add exp(x - maximum), x as in block `%s`",
                    tir_block_name(ir, sum), tir_block_name(ir, maximum));
}

/* Nothing sees that the maximum comes later: it is read by the sum, or where the sum is complete. */
static bool check_readers(struct tir *ir, tir_block maximum, tir_block sum, const struct tir_maximum_and_sum *plan,
                          ms_error *err) {
  tir_buffer buffer = plan->maximum.buffers[0];
  if (tir_lowest_common_ancestor(ir, maximum, sum) != plan->scope)
    return tir_refuse(ir, err, MS_SOFTMAX_LOOPS, sum, "a loop is around blocks `%s` and `%s`",
                      tir_block_name(ir, maximum), tir_block_name(ir, sum));
  for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block reader = ir->uses.at[u].block;
    if (reader == sum || reader == maximum || !tir_is_below(ir, reader, plan->scope)) continue;
    if (tir_compare_position(ir, reader, sum) < 0 || tir_lowest_common_ancestor(ir, reader, sum) != plan->scope)
      return tir_refuse(ir, err, MS_SOFTMAX_LOOPS, reader, "block `%s` reads `%s` before block `%s` is done",
                        tir_block_name(ir, reader), tir_buffer_name(ir, buffer), tir_block_name(ir, sum));
  }
  struct tir_transfer to_sum = {.block = maximum, .scope = plan->scope, .to = sum};
  return tir_check_blocks_only(ir, buffer, plan->scope, true, err) &&
         tir_check_no_opaque_access(ir, buffer, TIR_NONE, err) && tir_check_no_range_loads(ir, buffer, maximum, err) &&
         tir_check_order(ir, &to_sum, err);
}

static bool check_online_softmax(struct tir *ir, tir_block maximum, tir_block sum, struct tir_maximum_and_sum *plan,
                                 ms_error *err) {
  return tir_check_maximum_and_sum(ir, maximum, sum, plan, err) && check_exponentials(ir, maximum, sum, plan, err) &&
         check_readers(ir, maximum, sum, plan, err);
}

/* ---- Edit ---- */

static void set_regions(struct tir *ir, tir_block sum, const struct tir_reduction *pair) {
  struct tir_region kept[MOST_REGIONS], written[2];
  struct tir_span reads = tir_block_at(ir, sum)->reads;
  uint32_t count = 0;
  for (uint32_t i = reads.first; i < reads.first + reads.count && count < MOST_REGIONS; i++)
    if (ir->regions.at[i].buffer != pair->buffers[0]) kept[count++] = ir->regions.at[i];
  written[0] = tir_point_region(ir, pair->buffers[0], tir_operands(ir, pair->indices));
  written[1] = ir->regions.at[tir_block_at(ir, sum)->writes.first];
  tir_set_reads(ir, sum, kept, count);
  tir_set_writes(ir, sum, written, 2);
}

static void edit_online_softmax(struct tir *ir, tir_block maximum, tir_block sum,
                                const struct tir_maximum_and_sum *plan) {
  tir_expr one = tir_float(ir, tir_type_of(ir, plan->sum.left[0]), 1);
  struct tir_reduction pair = {.reducer = TIR_REDUCE_MAX_AND_EXPS, .count = 2, .indices = plan->sum.indices};
  const struct tir_reduction *of[] = {&plan->maximum, &plan->sum};
  struct tir_reduction_body body = {.block = sum, .buffers = pair.buffers, .indices = pair.indices};
  for (int i = 0; i < 2; i++) {
    uint32_t rank = tir_buffer_at(ir, of[i]->buffers[0])->rank;
    pair.buffers[i] = of[i]->buffers[0];
    pair.identity[i] = of[i]->identity[0];
    body.left[i] = tir_load(ir, pair.buffers[i], tir_operands(ir, pair.indices), rank, TIR_NONE);
    body.right[i] = i ? one : plan->maximum.right[0];
  }
  tir_empty_block(ir, sum);
  tir_fill_reduction(ir, &body, &pair, true);
  set_regions(ir, sum, &pair);
  tir_kill_leaf(ir, maximum);
  if (ir->indirect) tir_find_undeclared(ir);
}

bool tir_online_softmax(struct tir *ir, tir_block maximum, tir_block sum, ms_error *err) {
  assert(tir_is(ir, maximum, TIR_BLOCK) && tir_is(ir, sum, TIR_BLOCK));
  struct tir_maximum_and_sum plan = {0};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_online_softmax(ir, maximum, sum, &plan, err))) return false;
  edit_online_softmax(ir, maximum, sum, &plan);
  return true;
}

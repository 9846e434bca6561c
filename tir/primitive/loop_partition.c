/* Loop partition: the range of a loop is cut into parts, each with a loop and blocks of its own.
 *
 * Requires: no annotation, no thread binding, no name bound in the loop itself; a constant range; at most one factor
 *           open, the others positive, their sum less than the extent; each block below that has iterations binds one
 *           of them to the loop itself. Where a block with an init reduces over the loop, it does so in that iteration
 *           only, from its domain's start.
 * After:    an opaque block NAME_i_common (NAME: the first block below, i: the loop) in the loop's place; in it, for
 *           part n, an opaque block NAME_in_partition with the loop i_n over that part. Blocks below are copies named
 *           BLOCK_in, their iteration that is bound to the loop runs over the part, and the regions of buffers that
 *           they index by iterations alone are all that these run through. A reduction over the loop begins in the
 *           first part; in the others its block has no init, and reads what it writes. Without an open factor there is
 *           one part more, for the rest.
 * Forward:  the loop and all below it are dead. */
#include "loops.h"

#include <stdlib.h>

enum { MOST_ON_STACK = 16, MOST_RANK = 16 };

struct loop_partition_plan {
  int64_t *ends;  /* of the parts, counted from the loop's start */
  uint32_t parts; /* as many */
};

/* ---- Check ---- */

static bool find_parts(struct tir *ir, tir_loop loop, const int64_t *factors, uint32_t count,
                       struct loop_partition_plan *plan, ms_error *err) {
  int64_t extent = tir_loop_extent(ir, loop), sum = 0;
  uint32_t open = count;
  if (count == 0) return tir_refuse(ir, err, MS_NO_FACTORS, loop, "no factor is given for this loop");
  if (extent < 0 || !tir_is_int(ir, tir_as(ir, loop, TIR_LOOP)->loop.min))
    return tir_refuse(ir, err, MS_PARTITION_SYMBOLIC, loop, "the range of this loop is not constant");
  for (uint32_t i = 0; i < count; i++) {
    if (factors[i] == TIR_FACTOR_OPEN) {
      if (open < count)
        return tir_refuse(ir, err, MS_TWO_OPEN_FACTORS, loop, "factors %u and %u are both open", open, i);
      open = i;
      continue;
    }
    if (factors[i] <= 0)
      return tir_refuse(ir, err, MS_FACTOR_NOT_POSITIVE, loop, "factor %u is %lld", i, (long long)factors[i]);
    sum = tir_sat_add(sum, factors[i]);
  }
  if (sum >= extent)
    return tir_refuse(ir, err, MS_PARTITION_TOO_LARGE, loop,
                      "the factors add up to %lld; this loop has %lld iterations", (long long)sum, (long long)extent);
  int64_t end = 0;
  for (uint32_t i = 0; i < count; i++) plan->ends[i] = end += i == open ? extent - sum : factors[i];
  plan->ends[count] = extent;
  plan->parts = open < count ? count : count + 1;
  return true;
}

/* The iteration that is bound to the variable itself; `count`: none is. */
static uint32_t find_bound(const struct tir *ir, tir_block block, tir_var var) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  uint32_t i = 0;
  while (i < iters.count && ir->iters.at[iters.first + i].binding != tir_var_expr(ir, var)) i++;
  return i;
}

/* Whether the block begins a reduction that runs over the loop. */
static bool reduces_over(const struct tir *ir, tir_loop loop, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (!tir_stmt_at(ir, block)->first[TIR_INIT]) return false;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if (ir->iters.at[i].kind == TIR_REDUCE &&
        tir_may_follow(ir, ir->iters.at[i].binding, tir_as(ir, loop, TIR_LOOP)->loop.var))
      return true;
  return false;
}

/* Whether it does so with the one iteration that is bound to the loop, from the start of both. */
static bool begins_in_first_part(const struct tir *ir, tir_loop loop, tir_block block) {
  const struct tir_stmt_node *l = tir_stmt_at(ir, loop);
  uint32_t bound = find_bound(ir, block, l->loop.var);
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (i != bound && iter.kind == TIR_REDUCE && tir_may_follow(ir, iter.binding, l->loop.var)) return false;
  }
  return ir->vars.at[tir_iters(ir, block)[bound].var].min == l->loop.min;
}

static bool check_block(struct tir *ir, tir_loop loop, tir_block block, ms_error *err) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (!iters.count) return true;
  if (find_bound(ir, block, tir_as(ir, loop, TIR_LOOP)->loop.var) == iters.count)
    return tir_refuse(ir, err, MS_PARTITION_BINDING, loop, "no iteration of block `%s` is bound to this loop itself",
                      tir_block_name(ir, block));
  return !reduces_over(ir, loop, block) || begins_in_first_part(ir, loop, block) ||
         tir_refuse(ir, err, MS_PARTITION_REDUCTION, loop,
                    "it is not known in which part the reduction of block `%s` would begin", tir_block_name(ir, block));
}

static bool check_loop_partition(struct tir *ir, tir_loop loop, const int64_t *factors, uint32_t count,
                                 struct loop_partition_plan *plan, ms_error *err) {
  if (!tir_check_free_loop(ir, loop, err) || !find_parts(ir, loop, factors, count, plan, err)) return false;
  bool any = false;
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    if (tir_is(ir, s, TIR_BIND) && tir_stmt_at(ir, s)->parent == loop)
      return tir_refuse(ir, err, MS_PARTITION_BINDING, loop, "a name is bound in this loop, for what follows in it");
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    if (!check_block(ir, loop, s, err)) return false;
    any = true;
  }
  return any || tir_refuse(ir, err, MS_PARTITION_BINDING, loop, "there is no block in this loop");
}

/* ---- Edit ---- */

/* A buffer that a block's body indexes by variables alone: those of its first such access. */
struct access {
  tir_buffer buffer;
  uint32_t indices; /* in tir.operands */
  bool mixed;       /* it is accessed elsewhere too, or in a part under another name */
};
struct accesses {
  struct tir *ir;
  struct access at[MOST_ON_STACK];
  uint32_t count;
};

static void note_access(struct accesses *a, tir_buffer buffer, uint32_t indices) {
  const struct tir *ir = a->ir;
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, known = 0;
  bool plain = rank <= MOST_RANK;
  for (uint32_t i = 0; i < rank && plain; i++) plain = tir_at(ir, ir->operands.at[indices + i])->kind == TIR_VAR;
  while (known < a->count && a->at[known].buffer != buffer) known++;
  if (known == a->count) {
    if (a->count < MOST_ON_STACK) a->at[a->count++] = (struct access){buffer, indices, !plain};
    return;
  }
  for (uint32_t i = 0; i < rank && !a->at[known].mixed; i++)
    a->at[known].mixed |= ir->operands.at[a->at[known].indices + i] != ir->operands.at[indices + i];
}

static bool note_load(void *data, tir_expr e) {
  struct accesses *a = data;
  const struct tir_expr_node *n = tir_at(a->ir, e);
  if (n->kind == TIR_LOAD) note_access(a, n->ref, n->operands);
  return n->flags & TIR_HAS_LOAD;
}

/* What a block in the block uses is in its regions, and not in statements that are looked at. */
static void note_regions(struct accesses *a, struct tir_span regions) {
  for (uint32_t i = regions.first; i < regions.first + regions.count; i++) {
    tir_buffer buffer = a->ir->regions.at[i].buffer;
    for (uint32_t k = 0; k < a->count; k++) a->at[k].mixed |= a->at[k].buffer == buffer;
    if (a->count < MOST_ON_STACK) a->at[a->count++] = (struct access){buffer, 0, true};
  }
}

static void note_inner_block(struct accesses *a, tir_block inner) {
  const struct tir *ir = a->ir;
  struct tir_span iters = tir_block_at(ir, inner)->iters;
  note_regions(a, tir_block_at(ir, inner)->reads);
  note_regions(a, tir_block_at(ir, inner)->writes);
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    tir_walk_expr(ir, ir->iters.at[i].binding, note_load, a);
  if (tir_as(ir, inner, TIR_BLOCK)->block.predicate)
    tir_walk_expr(ir, tir_as(ir, inner, TIR_BLOCK)->block.predicate, note_load, a);
}

/* What the block's own regions load says where it reads and writes. */
static void note_loads_of_regions(struct accesses *a, struct tir_span regions) {
  const struct tir *ir = a->ir;
  for (uint32_t i = regions.first; i < regions.first + regions.count; i++)
    for (uint32_t k = 0; k < 2 * tir_buffer_at(ir, ir->regions.at[i].buffer)->rank; k++)
      tir_walk_expr(ir, ir->operands.at[ir->regions.at[i].ranges + k], note_load, a);
}

static void find_accesses(struct tir *ir, tir_block block, struct accesses *out) {
  *out = (struct accesses){.ir = ir};
  note_loads_of_regions(out, tir_block_at(ir, block)->reads);
  note_loads_of_regions(out, tir_block_at(ir, block)->writes);
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count && out->count < MOST_ON_STACK; i++)
    out->at[out->count++] = (struct access){ir->matches.at[i].source.buffer, 0, true};
  for (tir_stmt s = tir_next(ir, block, block); s;
       s = tir_next_in_scope(ir, s, block)) { /* its init too: it may read */
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    if (n.kind == TIR_STORE) {
      note_access(out, n.store.buffer, n.store.indices);
      tir_walk_expr(ir, n.store.value, note_load, out);
      for (uint32_t i = 0; i < tir_buffer_at(ir, n.store.buffer)->rank; i++)
        tir_walk_expr(ir, ir->operands.at[n.store.indices + i], note_load, out);
    } else if (n.kind == TIR_IF) {
      tir_walk_expr(ir, n.test.condition, note_load, out);
    } else if (n.kind == TIR_BIND) {
      tir_walk_expr(ir, n.bind.value, note_load, out);
    } else if (n.kind == TIR_EVALUATE) {
      tir_walk_expr(ir, n.evaluate.value, note_load, out);
    } else if (n.kind == TIR_LOOP) {
      tir_walk_expr(ir, n.loop.min, note_load, out);
      tir_walk_expr(ir, n.loop.extent, note_load, out);
    } else if (n.kind == TIR_BLOCK) {
      note_inner_block(out, s);
    }
  }
}

/* The domains of the iterations that index the buffer; false: not all indices are iterations. */
static bool make_domains(const struct tir *ir, tir_block block, const struct access *a, tir_expr *ranges) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t d = 0; d < tir_buffer_at(ir, a->buffer)->rank; d++) {
    tir_var v = tir_at(ir, ir->operands.at[a->indices + d])->ref;
    uint32_t i = 0;
    while (i < iters.count && ir->iters.at[iters.first + i].var != v) i++;
    if (i == iters.count) return false;
    ranges[2 * d] = ir->vars.at[v].min;
    ranges[2 * d + 1] = ir->vars.at[v].extent;
  }
  return true;
}

static void widen_regions(struct tir *ir, tir_block block, struct tir_span span, const struct accesses *accesses) {
  for (uint32_t i = span.first; i < span.first + span.count; i++)
    for (uint32_t a = 0; a < accesses->count; a++) {
      tir_expr ranges[2 * MOST_RANK];
      if (accesses->at[a].buffer != ir->regions.at[i].buffer || accesses->at[a].mixed) continue;
      if (!make_domains(ir, block, &accesses->at[a], ranges)) continue;
      uint32_t first = tir_add_operands(ir, ranges, 2 * tir_buffer_at(ir, accesses->at[a].buffer)->rank);
      ir->regions.at[i].ranges = first;
    }
}

/* Narrows the iteration that is bound to the loop to the loop's range. */
static void narrow(struct tir *ir, tir_loop loop, tir_block block) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  uint32_t bound = find_bound(ir, block, n.loop.var);
  struct tir_iter iter = tir_iters(ir, block)[bound];
  struct tir_var_node old = ir->vars.at[iter.var];
  tir_expr min = tir_cast(ir, old.type, n.loop.min), extent = tir_cast(ir, old.type, n.loop.extent);
  tir_var made = tir_new_var(ir, TIR_VAR_ITER, old.name, old.type, min, extent);
  tir_subst_var(ir, iter.var, tir_var_expr(ir, made));
  tir_subst_as_is(ir);
  tir_subst_stmt(ir, block);
  tir_subst_clear(ir);
  tir_iters(ir, block)[bound].var = made;
  struct accesses accesses;
  find_accesses(ir, block, &accesses);
  struct tir_span reads = tir_block_at(ir, block)->reads, writes = tir_block_at(ir, block)->writes;
  widen_regions(ir, block, writes, &accesses);
  widen_regions(ir, block, reads, &accesses);
}

/* The reduction has begun in the part before. */
static void drop_init(struct tir *ir, tir_block block) {
  while (tir_stmt_at(ir, block)->first[TIR_INIT]) tir_kill(ir, tir_stmt_at(ir, block)->first[TIR_INIT]);
  tir_read_what_is_written(ir, block);
}

static const char *render(const struct tir *ir, tir_var var, char *text, size_t size) {
  tir_name_render(ir, ir->vars.at[var].name, text, size);
  return text;
}

/* The loop over one part, with copies of what the old one holds. */
static tir_loop make_part(struct tir *ir, tir_loop old, int64_t begin, int64_t end, const char *number) {
  struct tir_stmt_node o = *tir_stmt_at(ir, old);
  struct tir_var_node v = ir->vars.at[o.loop.var];
  tir_expr min = tir_int(ir, v.type, tir_at(ir, o.loop.min)->imm + begin), extent = tir_int(ir, v.type, end - begin);
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, tir_name_suffix(ir, v.name, number), v.type, min, extent);
  tir_loop loop = tir_new_loop(ir, var, min, extent, TIR_SERIAL);
  for (tir_stmt s = o.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    tir_subst_var(ir, o.loop.var, tir_var_expr(ir, var));
    tir_append(ir, loop, TIR_BODY, tir_clone_stmt(ir, s));
  }
  char text[128];
  render(ir, var, text, sizeof text);
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    tir_set_block_name(ir, s, tir_symbol_format(ir, "%s_%s", tir_block_name(ir, s), text));
    if (begin && reduces_over(ir, loop, s)) drop_init(ir, s);
    if (tir_block_at(ir, s)->iters.count) narrow(ir, loop, s);
  }
  return loop;
}

static tir_block first_block(const struct tir *ir, tir_loop loop) {
  tir_stmt s = tir_next(ir, loop, loop);
  while (!tir_is(ir, s, TIR_BLOCK)) {
    s = tir_next(ir, s, loop);
    MS_CHECK(s);
  }
  return s;
}

static void edit_loop_partition(struct tir *ir, tir_loop loop, const struct loop_partition_plan *plan, tir_loop *out) {
  char text[128], number[16];
  render(ir, tir_as(ir, loop, TIR_LOOP)->loop.var, text, sizeof text);
  tir_symbol name = tir_symbol_format(ir, "%s_%s", tir_block_name(ir, first_block(ir, loop)), text);
  tir_block common = tir_new_block(ir, tir_symbol_suffix(ir, name, "_common"));
  for (uint32_t i = 0; i < plan->parts; i++) {
    snprintf(number, sizeof number, "%u", i);
    out[i] = make_part(ir, loop, i ? plan->ends[i - 1] : 0, plan->ends[i], number);
    tir_block part = tir_new_block(ir, tir_symbol_format(ir, "%s%u_partition", tir_text(ir, name), i));
    tir_append(ir, part, TIR_BODY, out[i]);
    tir_append(ir, common, TIR_BODY, part);
  }
  tir_replace(ir, loop, common);
  tir_kill(ir, loop);
  tir_find_undeclared(ir); /* the new blocks declare nothing of what stood in no block before */
}

bool tir_loop_partition(struct tir *ir, tir_loop loop, const int64_t *factors, uint32_t count, tir_loop *out,
                        uint32_t *parts, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  int64_t on_stack[MOST_ON_STACK + 1];
  struct loop_partition_plan plan = {.ends = tir_room(on_stack, sizeof on_stack, (count + 1) * sizeof *plan.ends)};
  bool accepted = check_loop_partition(ir, loop, factors, count, &plan, err);
  if (accepted) edit_loop_partition(ir, loop, &plan, out);
  *parts = plan.parts;
  if (plan.ends != on_stack) free(plan.ends);
  return accepted;
}

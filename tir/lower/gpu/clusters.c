/* Clusters: what is bound to the blocks of a cluster is bound to blocks that are launched as one.
 *
 *   for bx(8): for r(4, clusterCtaIdx.x): B[bx, r]    becomes    for b(32, blockIdx.x, clusters of 4): B[b // 4, b % 4]
 *
 * Requires: blocks are gone, axes not yet joined. Gives: no loop bound to clusterCtaIdx.x; the device's memory is
 * written outside of such loops by the first block of a cluster. Keeps: everything else. What a block holds in its
 * shared memory, or threads in theirs, is that block's: each access must be to the part of the block that makes it,
 * which it is where the index moves by as much with the block's rank in all accesses, and reaches no further
 * without it; or does not move with it at all, and whether a block writes does not depend on its rank. What a kernel
 * both writes and reads of the device's memory is divided so, too, or is the first block's alone.
 * Source: PTX ISA, "Cluster of Cooperative Thread Arrays". */
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <string.h>

enum { MOST_LOOPS = 128 };

struct cluster {
  struct lowering *low;
  tir_stmt top, blocks; /* the kernel; its loop of blocks along x */
  int64_t count;        /* blocks of a cluster; 0: none is asked for */
  tir_buffer held;      /* being looked at */
  int64_t steps[TIR_MOST_RANK];
  struct tir_interval reach[TIR_MOST_RANK];
  bool seen, wrong, moves;
  bool read, written, first, others; /* of the device's: by the first block alone, by others, too */
};

static bool is_cluster(const struct tir *ir, tir_stmt s) { return tir_loop_axis(ir, s) == TIR_CLUSTER_X; }

static bool refuse(const struct cluster *c, tir_stmt loop, const char *what) {
  return tir_refuse(c->low->ir, c->low->err, MS_LOWER_KERNEL, loop, "%s", what);
}

static tir_stmt loop_around(const struct tir *ir, tir_stmt s) {
  while (s && !is_cluster(ir, s)) s = tir_stmt_at(ir, s)->parent;
  return s;
}

/* ---- What a kernel asks for ---- */

static bool gather(struct cluster *c) {
  const struct tir *ir = c->low->ir;
  for (tir_stmt s = c->top; s; s = tir_next(ir, s, c->top)) {
    if (tir_loop_axis(ir, s) == TIR_BLOCK_X) {
      if (c->blocks && c->count)
        return refuse(c, s, "a kernel with clusters has two loops that are bound to blockIdx.x");
      c->blocks = s;
    }
    if (!is_cluster(ir, s)) continue;
    int64_t extent = tir_loop_extent(ir, s);
    if (extent < 1 || extent > TIR_CLUSTER_MOST || (extent & (extent - 1)))
      return refuse(c, s, "the blocks of a cluster are no constant number of 1, 2, 4 or 8");
    if (c->count && c->count != extent) return refuse(c, s, "the clusters of a kernel have unlike numbers of blocks");
    if (loop_around(ir, tir_stmt_at(ir, s)->parent))
      return refuse(c, s, "a loop of a cluster's blocks stands in another");
    c->count = extent;
  }
  for (tir_stmt s = c->top; s && c->count; s = tir_next(ir, s, c->top))
    if (is_cluster(ir, s) && c->blocks && !tir_is_below(ir, s, c->blocks))
      return refuse(c, s, "a loop of a cluster's blocks stands outside of that of the blocks");
  if (c->count && c->blocks && tir_cluster_of(ir, c->blocks) != 1)
    return refuse(c, c->blocks, "clusters are asked for by an annotation and by a loop");
  return true;
}

/* ---- Each block's own ---- */

/* By how much the index moves with the rank; false: not by a constant. */
static bool step_of(struct tir *ir, tir_expr index, tir_var rank, int64_t *step) {
  struct tir_linear l = tir_linear_of(ir, index);
  *step = 0;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = tir_terms(ir, l)[i];
    const struct tir_expr_node *atom = tir_at(ir, t.atom);
    if (atom->kind == TIR_VAR && atom->ref == rank)
      *step = t.coefficient;
    else if (tir_uses_var(ir, t.atom, rank))
      return false;
  }
  return true;
}

/* A condition around the statement, in the cluster's loop, depends on the rank. */
static bool is_for_some(struct tir *ir, tir_stmt s, tir_stmt loop, tir_var rank) {
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p && p != loop; p = tir_stmt_at(ir, p)->parent) {
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(ir, p, all);
    for (uint32_t i = 0; i < count; i++)
      if (tir_uses_var(ir, all[i], rank)) return true;
  }
  return false;
}

/* What of a dimension is touched beside the rank's part, from the loops of blocks. */
static struct tir_interval reach_of(struct cluster *c, tir_stmt s, tir_expr index, tir_var rank) {
  struct tir *ir = c->low->ir;
  tir_var vars[MOST_LOOPS + TIR_MOST_GUARDS];
  uint32_t count = 0;
  struct tir_guards guards = tir_find_guards(ir, s);
  if (rank) tir_subst_var(ir, rank, ir->vars.at[rank].min);
  if (rank) index = tir_subst(ir, index);
  for (uint32_t i = 0; i < guards.count && rank; i++) guards.left[i] = tir_subst(ir, guards.left[i]);
  if (rank) tir_subst_clear(ir);
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP) || tir_is_block_axis(tir_loop_axis(ir, p))) continue;
    if (count == MOST_LOOPS) return (struct tir_interval){TIR_NONE, TIR_NONE, false};
    vars[count++] = tir_as(ir, p, TIR_LOOP)->loop.var;
  }
  count += tir_guard_vars(ir, &guards, vars + count);
  return tir_relax(ir, tir_guarded(ir, index, &guards), vars, count);
}

static void look_at(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct cluster *c = data;
  if (a->buffer != c->held || c->wrong) return;
  tir_stmt loop = loop_around(ir, s);
  tir_var rank = loop ? tir_as(ir, loop, TIR_LOOP)->loop.var : TIR_NONE;
  bool moves = false;
  for (uint32_t d = 0; d < a->count && d < TIR_MOST_RANK; d++) {
    int64_t step = 0;
    c->wrong |= (rank && !step_of(ir, a->indices[d], rank, &step)) || (c->seen && step != c->steps[d]);
    c->steps[d] = step;
    moves |= step != 0;
    if (!step || c->wrong) continue;
    struct tir_interval now = reach_of(c, s, a->indices[d], rank);
    c->reach[d] = c->seen ? tir_interval_union(ir, c->reach[d], now) : now;
  }
  c->seen = true, c->moves |= moves;
  c->wrong |= writes && !moves && loop && is_for_some(ir, s, loop, rank);
}

/* The parts of two ranks have nothing in common. */
static bool are_apart(struct cluster *c, uint32_t rank) {
  struct tir *ir = c->low->ir;
  for (uint32_t d = 0; d < rank; d++) {
    struct tir_interval r = c->reach[d];
    int64_t step = c->steps[d] < 0 ? -c->steps[d] : c->steps[d];
    if (!step || r.empty || !r.min || !r.max) continue;
    tir_expr width = tir_sub(ir, r.max, tir_cast(ir, tir_type_of(ir, r.max), r.min));
    if (tir_prove(ir, tir_make(ir, TIR_LT, width, tir_int(ir, tir_type_of(ir, width), step)))) return true;
  }
  return false;
}

/* Only the cluster's first block comes to the statement: a condition says so, or guard_stores will. */
static bool is_by_first(const struct tir *ir, tir_stmt s) {
  tir_stmt loop = loop_around(ir, s);
  if (!loop)
    return tir_is(ir, s, TIR_STORE) && tir_buffer_memory(ir, tir_stmt_at(ir, s)->store.buffer) == TIR_DEVICE_MEMORY;
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p != loop; p = tir_stmt_at(ir, p)->parent) {
    tir_expr e = tir_is(ir, p, TIR_IF) ? tir_stmt_at(ir, p)->test.condition : TIR_NONE;
    while (e) {
      const struct tir_expr_node *both = tir_at(ir, e);
      const struct tir_expr_node *test = both->kind == TIR_AND ? tir_at(ir, both->b) : both;
      if (test->kind == TIR_EQ && tir_at(ir, test->a)->kind == TIR_VAR && tir_at(ir, test->a)->ref == n->loop.var &&
          test->b == n->loop.min)
        return true;
      e = both->kind == TIR_AND ? both->a : TIR_NONE;
    }
  }
  return false;
}

static void look_at_device(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct cluster *c = data;
  if (a->buffer != c->held) return;
  *(writes ? &c->written : &c->read) = true;
  if (is_by_first(ir, s)) {
    c->first = true;
    return;
  }
  c->others = true;
  look_at(ir, data, s, a, writes);
}

/* No barrier orders what blocks of a cluster do in the device's memory: of what a kernel writes and reads, each has its
 * part, or the first one all. */
static bool check_device(struct cluster *c, tir_buffer b) {
  struct tir *ir = c->low->ir;
  c->read = c->written = c->first = c->others = false;
  lower_visit(ir, c->top, look_at_device, c);
  if (!c->read || !c->written) return true;
  if (c->first ? !c->others : !c->wrong && c->moves && are_apart(c, tir_buffer_at(ir, b)->rank)) return true;
  return tir_refuse(ir, c->low->err, MS_LOWER_KERNEL, TIR_NONE,
                    "of `%s` a block of a cluster may read what another one writes", tir_buffer_name(ir, b));
}

static bool check_held(struct cluster *c) {
  struct tir *ir = c->low->ir;
  uint32_t count = ir->buffers.count;
  for (tir_buffer b = 1; b < count; b++) {
    uint32_t rank = tir_buffer_at(ir, b)->rank;
    if (rank > TIR_MOST_RANK || !lower_uses_buffer(ir, c->top, b)) continue;
    c->held = b, c->seen = c->wrong = c->moves = false;
    if (tir_buffer_memory(ir, b) == TIR_DEVICE_MEMORY) {
      if (!check_device(c, b)) return false;
      continue;
    }
    lower_visit(ir, c->top, look_at, c);
    if (c->wrong || (c->moves && !are_apart(c, rank)))
      return tir_refuse(ir, c->low->err, MS_LOWER_KERNEL, TIR_NONE,
                        "of `%s` a block of a cluster may touch what another one has", tir_buffer_name(ir, b));
  }
  return true;
}

/* ---- Loops ---- */

/* A loop of blocks around the kernel, which has none. */
static void add_blocks(struct cluster *c) {
  struct tir *ir = c->low->ir;
  tir_expr zero = tir_int(ir, TIR_T_I32, 0), one = tir_int(ir, TIR_T_I32, 1);
  tir_var v = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "bx"), TIR_T_I32, zero, one);
  c->blocks = tir_new_loop(ir, v, zero, one, TIR_THREAD_BINDING);
  tir_as(ir, c->blocks, TIR_LOOP)->loop.thread = tir_symbol_of(ir, tir_axis_name(TIR_BLOCK_X));
  tir_wrap(ir, c->top, c->blocks);
  c->top = c->blocks;
}

/* What is written to the device's memory by all blocks of a cluster alike, the first one writes. */
static void guard_stores(struct cluster *c, tir_expr rank) {
  struct tir *ir = c->low->ir;
  for (tir_stmt s = c->blocks, next; s; s = next) {
    next = tir_next(ir, s, c->blocks);
    if (!tir_is(ir, s, TIR_STORE) || loop_around(ir, s)) continue;
    if (tir_buffer_memory(ir, tir_as(ir, s, TIR_STORE)->store.buffer) != TIR_DEVICE_MEMORY) continue;
    tir_wrap(ir, s, tir_new_if(ir, tir_make(ir, TIR_EQ, rank, tir_int(ir, tir_type_of(ir, rank), 0))));
  }
}

/* The loop of blocks becomes one of as many clusters. Gives a block's rank. */
static tir_expr widen_blocks(struct cluster *c) {
  struct tir *ir = c->low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, c->blocks);
  struct tir_var_node v = ir->vars.at[n.loop.var];
  tir_expr blocks = tir_int(ir, v.type, c->count), zero = tir_int(ir, v.type, 0);
  tir_expr extent = tir_mul(ir, n.loop.extent, tir_cast(ir, tir_type_of(ir, n.loop.extent), blocks));
  tir_var made = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, zero, extent);
  tir_expr block = tir_var_expr(ir, made);
  tir_subst_var(ir, n.loop.var, tir_add(ir, n.loop.min, tir_floordiv(ir, block, blocks)));
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  tir_as(ir, c->blocks, TIR_LOOP)->loop.var = made;
  tir_as(ir, c->blocks, TIR_LOOP)->loop.min = zero;
  tir_as(ir, c->blocks, TIR_LOOP)->loop.extent = extent;
  if (c->count > 1)
    tir_annotate_symbol(ir, c->blocks, tir_symbol_of(ir, TIR_CLUSTER), tir_int(ir, TIR_T_I32, c->count));
  return tir_floormod(ir, block, blocks);
}

/* The loop's iteration is the block's. Returns the statement from which the walk goes on. */
static tir_stmt join_loop(struct cluster *c, tir_stmt loop, tir_expr rank) {
  struct tir *ir = c->low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  tir_subst_var(ir, n.loop.var, tir_add(ir, n.loop.min, tir_cast(ir, ir->vars.at[n.loop.var].type, rank)));
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  lower_hand_down(ir, loop);
  tir_stmt after = n.first[TIR_BODY] ? n.first[TIR_BODY] : tir_after(ir, loop, c->top);
  tir_kill_alone(ir, loop);
  return after;
}

static bool make_clusters(struct lowering *low, tir_stmt top) {
  struct tir *ir = low->ir;
  struct cluster c = {.low = low, .top = top};
  if (!gather(&c)) return false;
  if (!c.count) return true;
  if (!check_held(&c)) return false;
  if (!c.blocks) add_blocks(&c);
  tir_expr rank = widen_blocks(&c);
  guard_stores(&c, rank);
  for (tir_stmt s = c.top; s;) s = is_cluster(ir, s) ? join_loop(&c, s, rank) : tir_next(ir, s, c.top);
  return true;
}

bool lower_clusters(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = tir_stmt_at(ir, low->body)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (tir_is(ir, s, TIR_LOOP) && !make_clusters(low, s)) return false;
  }
  return true;
}

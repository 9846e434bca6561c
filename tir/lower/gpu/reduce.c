/* Reduce: where a reduction's iterations are bound to threads, each thread reduces what is its own into memory of its
 * own, then all of them join what they have.
 *
 *   for k: for tx: B[i] = B[i] + A[i, k, tx]    becomes    for tx: p = 0
 *                                                          for k: for tx: p = p + A[i, k, tx]
 *                                                          for tx: { join p along tx; if tx == 0: B[i] = p }
 * Where they are bound to the blocks of a cluster (clusterCtaIdx.x), each block leaves what its threads have joined in
 * its shared memory, and, once all of the cluster have, joins what all have left, in the order of their ranks; no block
 * goes on, and may end, before all have read. Threads that have results of their own have places of their own there.
 *
 * Requires: blocks. Gives: no block whose reduction iterations are bound to threads; attributes LOWER_REDUCE around
 * calls that join. Keeps: everything else. Where B is a thread's own memory, each thread stores; where it is a block's,
 * one thread of each block does. Source: CUDA C++ Programming Guide, "Distributed Shared Memory".
 * Loops between the outermost that reduces and the block that do not reduce give p its dimensions. */
#include "tir/lower/lower.h"

#include <string.h>

enum { MOST_LOOPS = 64 };

struct crossing {
  struct lowering *low;
  tir_block block;
  struct tir_reduction reduction;
  bool has_init;
  tir_stmt loops[MOST_LOOPS]; /* from the outermost that reduces to the innermost */
  bool reduces[MOST_LOOPS];
  uint32_t count;
  tir_buffer part[TIR_MOST_REDUCED];
  tir_expr everywhere, where; /* the block's predicate: all of it, and what does not depend on what is reduced */
};

static bool is_axis(const struct tir *ir, tir_stmt s) { return tir_is_joining_axis(tir_loop_axis(ir, s)); }
static bool is_cluster(const struct tir *ir, tir_stmt s) { return tir_loop_axis(ir, s) == TIR_CLUSTER_X; }

/* Whether the loop's iterations are threads of one block, which share its memory. */
static bool is_thread(const struct tir *ir, tir_stmt s) {
  enum tir_axis axis = tir_loop_axis(ir, s);
  return tir_is_thread_axis(axis) || tir_is_virtual_axis(axis);
}

/* The loop of the cluster's blocks that reduce; TIR_NONE: none do. */
static tir_stmt cluster_of(const struct crossing *c) {
  for (uint32_t i = 0; i < c->count; i++)
    if (c->reduces[i] && is_cluster(c->low->ir, c->loops[i])) return c->loops[i];
  return TIR_NONE;
}

static bool refuse(const struct crossing *c, const char *what) {
  return tir_refuse(c->low->ir, c->low->err, MS_LOWER_REDUCTION, c->block, "block \"%s\": %s",
                    tir_block_name(c->low->ir, c->block), what);
}

/* Whether iterations of the loop are reduced by the block (or, of the others, are not). */
static bool binds(const struct tir *ir, tir_block block, tir_stmt loop, bool reduced) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if ((ir->iters.at[i].kind != TIR_SPATIAL) == reduced &&
        tir_uses_var(ir, ir->iters.at[i].binding, tir_as(ir, loop, TIR_LOOP)->loop.var))
      return true;
  return false;
}

bool lower_reduces_across_threads(const struct tir *ir, tir_block block) {
  for (tir_stmt p = tir_stmt_at(ir, block)->parent; p; p = tir_stmt_at(ir, p)->parent)
    if (tir_is_bound(ir, p) && binds(ir, block, p, true)) return true;
  return false;
}

/* ---- What is reduced, and along which loops ---- */

/* A loop that drives nothing but the range of another is part of what that one drives. */
static bool has_own_range(const struct tir *ir, tir_block block, tir_loop loop, const tir_loop *around,
                          uint32_t count) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  for (uint32_t i = 0; i < count; i++)
    if (tir_uses_var(ir, n->loop.min, tir_as(ir, around[i], TIR_LOOP)->loop.var) && !binds(ir, block, around[i], false))
      return false;
  return true;
}

static bool gather_loops(struct crossing *c) {
  struct tir *ir = c->low->ir;
  tir_loop around[MOST_LOOPS];
  uint32_t count = tir_loops_of(ir, c->block, around, MOST_LOOPS), first = 0;
  if (count > MOST_LOOPS) return refuse(c, "too many loops are around it");
  while (first < count && !binds(ir, c->block, around[first], true)) first++;
  for (uint32_t i = first; i < count; i++) {
    bool reduces = binds(ir, c->block, around[i], true);
    if (reduces && binds(ir, c->block, around[i], false))
      return refuse(c, "a loop drives what is reduced and where the result goes");
    if (!has_own_range(ir, c->block, around[i], around, count))
      return refuse(c, "the range of a loop depends on another");
    if (tir_loop_extent(ir, around[i]) < 1) return refuse(c, "a loop of it has no constant length");
    if (reduces && tir_is_bound(ir, around[i]) && !is_axis(ir, around[i]))
      return refuse(c, "what is reduced is bound to blocks or virtual threads");
    c->loops[c->count] = around[i];
    c->reduces[c->count++] = reduces;
  }
  if (!c->count) return refuse(c, "the threads that reduce are bound outside of the block around it");
  bool outside = false;
  for (tir_stmt p = cluster_of(c) ? tir_stmt_at(ir, c->loops[0])->parent : TIR_NONE; p;
       p = tir_stmt_at(ir, p)->parent) {
    outside |= tir_is(ir, p, TIR_BLOCK);
    if (!is_thread(ir, p)) continue;
    if (outside) return refuse(c, "threads have results that a cluster joins outside of the block around it");
    if (tir_loop_extent(ir, p) < 1) return refuse(c, "a loop of threads has no constant length");
  }
  if (!tir_only_loops_between(ir, c->block, tir_stmt_at(ir, c->loops[0])->parent))
    return refuse(c, "more than loops stands between the threads that reduce and the block");
  return true;
}

/* Parts of the predicate that hold or fail for all of what is reduced say where there is a result. */
static bool split_predicate(struct crossing *c, tir_expr e) {
  struct tir *ir = c->low->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_AND) return split_predicate(c, n.a) && split_predicate(c, n.b);
  bool of_reduced = false, of_where = false;
  for (uint32_t i = 0; i < c->count; i++)
    *(c->reduces[i] ? &of_reduced : &of_where) |= tir_uses_var(ir, e, tir_as(ir, c->loops[i], TIR_LOOP)->loop.var);
  if (of_reduced && of_where) return refuse(c, "one condition decides what is reduced and where the result goes");
  if (!of_reduced) c->where = tir_and(ir, c->where, e);
  return true;
}

static bool look_at(struct crossing *c) {
  struct tir *ir = c->low->ir;
  tir_expr predicate = tir_as(ir, c->block, TIR_BLOCK)->block.predicate;
  if (!gather_loops(c) || (predicate && !split_predicate(c, predicate))) return false;
  c->everywhere = predicate;
  c->has_init = tir_stmt_at(ir, c->block)->first[TIR_INIT] != TIR_NONE;
  if (c->has_init && !tir_block_reduces_once(ir, c->block))
    return refuse(c, "iterations of loops take its steps again");
  if (c->has_init) return tir_find_free_reduction(ir, c->block, &c->reduction, c->low->err);
  if (!tir_find_sum(ir, c->block, &c->reduction)) return refuse(c, "it has no init, and is no sum");
  tir_type type = tir_buffer_at(ir, c->reduction.buffers[0])->type;
  c->reduction.identity[0] = tir_type_is_float(type) ? tir_float(ir, type, 0) : tir_int(ir, type, 0);
  return true;
}

/* ---- Parts ---- */

/* Dimensions of a part are the loops that neither reduce nor are threads. */
static bool is_dimension(const struct crossing *c, uint32_t i) {
  return !c->reduces[i] && !tir_is_bound(c->low->ir, c->loops[i]);
}

static void make_parts(struct crossing *c) {
  struct tir *ir = c->low->ir;
  tir_expr shape[MOST_LOOPS];
  uint32_t rank = 0;
  for (uint32_t i = 0; i < c->count; i++)
    if (is_dimension(c, i)) shape[rank++] = tir_as(ir, c->loops[i], TIR_LOOP)->loop.extent;
  if (!rank) shape[rank++] = tir_int(ir, TIR_T_I32, 1);
  tir_block scope = tir_parent_block(ir, c->loops[0]);
  for (uint32_t k = 0; k < c->reduction.count; k++) {
    tir_buffer to = c->reduction.buffers[k];
    tir_symbol name = tir_symbol_format(ir, "%s_part", tir_buffer_name(ir, to));
    c->part[k] =
        tir_new_buffer(ir, name, tir_buffer_at(ir, to)->type, shape, rank, tir_scope_named(ir, TIR_SCOPE_LOCAL));
    tir_add_alloc(ir, scope, c->part[k]);
  }
}

/* The element of a part for iterations of the loops, of which values[i] are the variables. */
static uint32_t part_indices(struct crossing *c, const tir_expr *values, tir_expr *out) {
  struct tir *ir = c->low->ir;
  uint32_t rank = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    if (!is_dimension(c, i)) continue;
    out[rank++] = tir_sub(ir, values[i], tir_as(ir, c->loops[i], TIR_LOOP)->loop.min);
  }
  if (!rank) out[rank++] = tir_int(ir, TIR_T_I32, 0);
  return rank;
}

static tir_expr load_part(struct crossing *c, uint32_t k, const tir_expr *values) {
  tir_expr indices[MOST_LOOPS];
  uint32_t rank = part_indices(c, values, indices);
  return tir_load(c->low->ir, c->part[k], indices, rank, TIR_NONE);
}

static tir_stmt store_part(struct crossing *c, uint32_t k, const tir_expr *values, tir_expr value) {
  tir_expr indices[MOST_LOOPS];
  part_indices(c, values, indices);
  return tir_new_store(c->low->ir, c->part[k], indices, value);
}

/* Copies of the loops that are threads, and then of those that are dimensions; what each loop's variable becomes is put
 * in values. Returns the outermost; *innermost: where statements go; both TIR_NONE where there are no such loops. */
static tir_stmt copy_loops(struct crossing *c, tir_expr *values, tir_stmt *innermost) {
  struct tir *ir = c->low->ir;
  tir_stmt outermost = *innermost = TIR_NONE;
  for (int dimensions = 0; dimensions < 2; dimensions++)
    for (uint32_t i = 0; i < c->count; i++) {
      struct tir_stmt_node n = *tir_stmt_at(ir, c->loops[i]);
      if (dimensions ? !is_dimension(c, i) : !tir_is_bound(ir, c->loops[i])) continue;
      struct tir_var_node v = ir->vars.at[n.loop.var];
      tir_var var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, v.min, v.extent);
      tir_stmt loop = tir_new_loop(ir, var, n.loop.min, n.loop.extent, (enum tir_loop_kind)n.loop_kind);
      tir_as(ir, loop, TIR_LOOP)->loop.thread = n.loop.thread;
      /* As unrolled as the loop: a part that is indexed by a variable lies in memory. */
      if (dimensions && n.loop_kind != TIR_UNROLLED) tir_stmt_at(ir, loop)->loop_kind = TIR_SERIAL;
      values[i] = tir_var_expr(ir, var);
      if (*innermost) tir_append(ir, *innermost, TIR_BODY, loop);
      if (!outermost) outermost = loop;
      *innermost = loop;
    }
  assert(outermost && "a thread reduces");
  return outermost;
}

/* ---- The three statements ---- */

static void put_identities(struct crossing *c) {
  struct tir *ir = c->low->ir;
  tir_expr values[MOST_LOOPS];
  tir_stmt inside, nest = copy_loops(c, values, &inside);
  for (uint32_t k = 0; k < c->reduction.count; k++)
    tir_append(ir, inside, TIR_BODY, store_part(c, k, values, c->reduction.identity[k]));
  tir_insert_before(ir, c->loops[0], nest);
}

static tir_expr bind_joined(struct tir *ir, tir_stmt list, tir_expr value) {
  tir_var v = tir_new_let(ir, tir_name_of(ir, "joined"), value);
  tir_stmt bind = tir_new_stmt(ir, TIR_BIND);
  tir_as(ir, bind, TIR_BIND)->bind.var = v;
  tir_as(ir, bind, TIR_BIND)->bind.value = value;
  tir_append(ir, list, TIR_BODY, bind);
  return tir_var_expr(ir, v);
}

/* The block's values joined to the part, bound first: one may decide the other. */
static void join_own(struct crossing *c, tir_stmt list) {
  struct tir *ir = c->low->ir;
  tir_expr left[TIR_MOST_REDUCED], right[TIR_MOST_REDUCED], made[TIR_MOST_REDUCED], values[MOST_LOOPS];
  uint32_t count = c->reduction.count;
  for (uint32_t i = 0; i < c->count; i++) values[i] = tir_var_expr(ir, tir_as(ir, c->loops[i], TIR_LOOP)->loop.var);
  tir_subst_iters(ir, c->block);
  for (uint32_t k = 0; k < count; k++) right[k] = tir_subst(ir, c->reduction.right[k]);
  tir_subst_clear(ir);
  for (uint32_t k = 0; k < count; k++) left[k] = load_part(c, k, values);
  tir_combine(ir, c->reduction.reducer, left, right, made);
  for (uint32_t k = 0; k < count && count > 1; k++) made[k] = bind_joined(ir, list, made[k]);
  for (uint32_t k = 0; k < count; k++) tir_append(ir, list, TIR_BODY, store_part(c, k, values, made[k]));
}

static void replace_block(struct crossing *c) {
  struct tir *ir = c->low->ir;
  tir_stmt test = tir_new_if(ir, c->everywhere ? c->everywhere : tir_int(ir, TIR_T_BOOL, 1));
  join_own(c, test);
  tir_insert_before(ir, c->block, test);
  tir_kill(ir, c->block);
}

static tir_expr new_operand(struct tir *ir, const char *name, tir_type type) {
  return tir_var_expr(ir, tir_new_var(ir, TIR_VAR_DATA, tir_name_of(ir, name), type, TIR_NONE, TIR_NONE));
}

static tir_expr reducer_of(struct crossing *c) {
  struct tir *ir = c->low->ir;
  tir_expr parts[4 * TIR_MOST_REDUCED];
  uint32_t count = c->reduction.count;
  for (uint32_t k = 0; k < count; k++) {
    tir_type type = tir_buffer_at(ir, c->part[k])->type;
    parts[k] = new_operand(ir, "left", type), parts[count + k] = new_operand(ir, "right", type);
    parts[3 * count + k] = c->reduction.identity[k];
  }
  tir_combine(ir, c->reduction.reducer, parts, parts + count, parts + 2 * count);
  return tir_call(ir, TIR_T_HANDLE, tir_symbol_of(ir, "comm_reducer"), parts, 4 * count);
}

static tir_stmt join_all(struct crossing *c, const tir_expr *values) {
  struct tir *ir = c->low->ir;
  tir_expr args[2 + 2 * TIR_MOST_REDUCED + MOST_LOOPS];
  uint32_t count = c->reduction.count, n = 0;
  args[n++] = tir_int(ir, TIR_T_I32, count);
  for (uint32_t k = 0; k < count; k++) args[n++] = load_part(c, k, values);
  args[n++] = tir_int(ir, TIR_T_BOOL, 1);
  for (uint32_t k = 0; k < count; k++) args[n++] = load_part(c, k, values);
  for (uint32_t i = 0; i < c->count; i++)
    if (c->reduces[i] && tir_is_bound(ir, c->loops[i]) && !is_cluster(ir, c->loops[i])) args[n++] = values[i];
  tir_stmt call = tir_new_stmt(ir, TIR_EVALUATE), attr = lower_new_attr(ir, LOWER_REDUCE, TIR_NONE);
  tir_as(ir, call, TIR_EVALUATE)->evaluate.value =
      tir_call(ir, TIR_T_I32, tir_device_symbol(ir, TIR_ALLREDUCE), args, n);
  tir_expr reducer = reducer_of(c);
  tir_stmt_at(ir, attr)->attr.node = reducer;
  tir_append(ir, attr, TIR_BODY, call);
  return attr;
}

void lower_restrict_reduction(struct tir *ir, tir_stmt attr, tir_expr condition) {
  tir_stmt call = tir_stmt_at(ir, attr)->first[TIR_BODY];
  struct tir_expr_node n = *tir_at(ir, tir_as(ir, call, TIR_EVALUATE)->evaluate.value);
  tir_expr args[2 + 2 * TIR_MOST_REDUCED + MOST_LOOPS];
  assert(n.count <= sizeof args / sizeof *args);
  memcpy(args, tir_operands(ir, n.operands), n.count * sizeof *args);
  uint32_t at = 1 + (uint32_t)tir_at(ir, args[0])->imm;
  args[at] = tir_and(ir, args[at], condition);
  tir_expr made = tir_call(ir, n.type, n.ref, args, n.count);
  tir_as(ir, call, TIR_EVALUATE)->evaluate.value = made;
}

/* The first of the threads that share the memory and reduce together; and the condition before, which may be none. */
static tir_expr first_thread(struct crossing *c, const tir_expr *values, tir_expr condition, enum tir_memory memory) {
  struct tir *ir = c->low->ir;
  for (uint32_t i = 0; i < c->count && memory != TIR_THREAD_MEMORY; i++)
    if (c->reduces[i] && tir_is_bound(ir, c->loops[i]) && (memory == TIR_DEVICE_MEMORY || !is_cluster(ir, c->loops[i])))
      condition = tir_and(ir, condition, tir_make(ir, TIR_EQ, values[i], tir_as(ir, c->loops[i], TIR_LOOP)->loop.min));
  return condition;
}

/* One thread stores; where the memory is a thread's own, each. */
static tir_expr storing_thread(struct crossing *c, const tir_expr *values) {
  return first_thread(c, values, c->where, tir_buffer_memory(c->low->ir, c->reduction.buffers[0]));
}

/* An expression of the block, or of the loops around it, over copies of these. */
static tir_expr over_copies(struct crossing *c, tir_expr e, const tir_expr *values) {
  struct tir *ir = c->low->ir;
  tir_subst_iters(ir, c->block);
  e = tir_subst(ir, e);
  tir_subst_clear(ir);
  for (uint32_t i = 0; i < c->count; i++)
    if (!c->reduces[i] || tir_is_bound(ir, c->loops[i]))
      tir_subst_var(ir, tir_as(ir, c->loops[i], TIR_LOOP)->loop.var, values[i]);
  e = tir_subst(ir, e);
  tir_subst_clear(ir);
  return e;
}

/* ---- Blocks of a cluster ---- */

/* What another block's memory is loaded as: a register's width. */
static tir_type loaded_type(tir_type t) {
  if (tir_type_bits(t) >= 32) return t;
  return tir_type_is_float(t) ? TIR_T_F32 : TIR_T_I32;
}

/* The place of a thread's result among those of the block, of which *count are made. */
static tir_expr slot_of(struct crossing *c, const tir_expr *values, int64_t *count) {
  struct tir *ir = c->low->ir;
  tir_expr at = tir_int(ir, TIR_T_I32, 0);
  *count = 1;
  for (tir_stmt p = tir_stmt_at(ir, c->loops[0])->parent; p; p = tir_stmt_at(ir, p)->parent) {
    if (!is_thread(ir, p)) continue;
    tir_expr own = tir_sub(ir, tir_var_expr(ir, tir_as(ir, p, TIR_LOOP)->loop.var), tir_as(ir, p, TIR_LOOP)->loop.min);
    at = tir_add(ir, at, tir_mul(ir, tir_cast(ir, TIR_T_I32, own), tir_int(ir, TIR_T_I32, *count)));
    *count *= tir_loop_extent(ir, p);
  }
  for (uint32_t i = 0; i < c->count; i++) {
    if (c->reduces[i] || !is_thread(ir, c->loops[i])) continue;
    tir_expr own = tir_sub(ir, values[i], tir_as(ir, c->loops[i], TIR_LOOP)->loop.min);
    at = tir_add(ir, at, tir_mul(ir, tir_cast(ir, TIR_T_I32, own), tir_int(ir, TIR_T_I32, *count)));
    *count *= tir_loop_extent(ir, c->loops[i]);
  }
  return at;
}

/* Memory of a block, where it leaves what its threads have joined of number k, of so many results side by side. */
static tir_buffer new_slot(struct crossing *c, uint32_t k, int64_t count) {
  struct tir *ir = c->low->ir;
  tir_buffer to = c->reduction.buffers[k];
  tir_expr extent = tir_int(ir, TIR_T_I32, count);
  tir_symbol name = tir_symbol_format(ir, "%s_block", tir_buffer_name(ir, to));
  tir_buffer slot = tir_new_buffer(ir, name, loaded_type(tir_buffer_at(ir, to)->type), &extent, 1,
                                   tir_scope_named(ir, TIR_SCOPE_SHARED));
  tir_add_alloc(ir, tir_parent_block(ir, c->loops[0]), slot);
  return slot;
}

/* The loop in which a thread joins, to what it has, what each block has left. */
static tir_stmt join_slots(struct crossing *c, tir_stmt blocks, const tir_buffer *slots, tir_expr at,
                           const tir_expr *values) {
  struct tir *ir = c->low->ir;
  tir_expr left[TIR_MOST_REDUCED], right[TIR_MOST_REDUCED], made[TIR_MOST_REDUCED];
  tir_expr zero = tir_int(ir, TIR_T_I32, 0), one = tir_int(ir, TIR_T_I32, 1);
  tir_expr extent = tir_int(ir, TIR_T_I32, tir_loop_extent(ir, blocks));
  uint32_t count = c->reduction.count;
  tir_var rank = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "block"), TIR_T_I32, zero, extent);
  tir_stmt loop = tir_new_loop(ir, rank, zero, extent, TIR_UNROLLED);
  for (uint32_t k = 0; k < count; k++) {
    tir_type type = tir_buffer_at(ir, slots[k])->type, own = tir_buffer_at(ir, c->part[k])->type;
    tir_expr args[] = {tir_new_pointer(ir, slots[k], at, one, TIR_POINTER_READS), tir_var_expr(ir, rank)};
    right[k] = tir_cast(ir, own, tir_call(ir, type, tir_device_symbol(ir, TIR_CLUSTER_LOAD), args, 2));
    left[k] = load_part(c, k, values);
  }
  tir_combine(ir, c->reduction.reducer, left, right, made);
  for (uint32_t k = 0; k < count && count > 1; k++) made[k] = bind_joined(ir, loop, made[k]);
  for (uint32_t k = 0; k < count; k++) tir_append(ir, loop, TIR_BODY, store_part(c, k, values, made[k]));
  return loop;
}

/* The blocks of the cluster join what the threads of each have. */
static void join_blocks(struct crossing *c, const tir_expr *values, tir_stmt inside) {
  struct tir *ir = c->low->ir;
  tir_stmt blocks = cluster_of(c);
  if (!blocks) return;
  tir_buffer slots[TIR_MOST_REDUCED];
  int64_t count;
  tir_expr at = slot_of(c, values, &count), first = first_thread(c, values, TIR_NONE, TIR_BLOCK_MEMORY);
  tir_stmt test = tir_new_if(ir, first ? first : tir_int(ir, TIR_T_BOOL, 1));
  tir_append(ir, inside, TIR_BODY, test);
  for (uint32_t k = 0; k < c->reduction.count; k++) {
    slots[k] = new_slot(c, k, count);
    tir_expr value = tir_cast(ir, tir_buffer_at(ir, slots[k])->type, load_part(c, k, values));
    tir_append(ir, test, TIR_BODY, tir_new_store(ir, slots[k], &at, value));
  }
  tir_append(ir, inside, TIR_BODY, lower_new_call(ir, TIR_CLUSTER_BARRIER, NULL, 0));
  for (uint32_t k = 0; k < c->reduction.count; k++)
    tir_append(ir, inside, TIR_BODY, store_part(c, k, values, c->reduction.identity[k]));
  tir_append(ir, inside, TIR_BODY, join_slots(c, blocks, slots, at, values));
  tir_append(ir, inside, TIR_BODY, lower_new_call(ir, TIR_CLUSTER_BARRIER, NULL, 0));
}

static void store_results(struct crossing *c) {
  struct tir *ir = c->low->ir;
  struct tir_reduction *r = &c->reduction;
  tir_expr values[MOST_LOOPS], made[TIR_MOST_REDUCED], indices[TIR_MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, r->buffers[0])->rank;
  tir_stmt inside, nest = copy_loops(c, values, &inside);
  tir_append(ir, inside, TIR_BODY, join_all(c, values));
  join_blocks(c, values, inside);
  tir_expr condition = storing_thread(c, values);
  if (condition) {
    tir_stmt test = tir_new_stmt(ir, TIR_IF);
    condition = over_copies(c, condition, values);
    tir_as(ir, test, TIR_IF)->test.condition = condition;
    tir_append(ir, inside, TIR_BODY, test);
    inside = test;
  }
  for (uint32_t d = 0; d < rank; d++) indices[d] = over_copies(c, ir->operands.at[r->indices + d], values);
  for (uint32_t k = 0; k < r->count; k++) made[k] = load_part(c, k, values);
  if (!c->has_init) {
    tir_expr before = tir_load(ir, r->buffers[0], indices, rank, TIR_NONE);
    tir_combine(ir, r->reducer, &before, made, made);
  }
  for (uint32_t k = 0; k < r->count; k++)
    tir_append(ir, inside, TIR_BODY, tir_new_store(ir, r->buffers[k], indices, made[k]));
  tir_insert_after(ir, c->loops[0], nest);
}

static bool cross(struct lowering *low, tir_block block) {
  struct crossing c = {.low = low, .block = block};
  if (!look_at(&c)) return false;
  make_parts(&c);
  store_results(&c);
  put_identities(&c);
  replace_block(&c);
  return true;
}

bool lower_reduce(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!tir_is(ir, s, TIR_BLOCK) || !lower_reduces_across_threads(ir, s)) continue;
    if (!cross(low, s)) return false;
    next = tir_next(ir, low->body, low->body);
  }
  return true;
}

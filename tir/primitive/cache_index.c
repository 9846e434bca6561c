/* Cache index: index arithmetic of a block is computed once, by blocks of its own, into buffers that the block loads.
 *
 * A computation is an expression of the block's stores that loads nothing, divides by nothing that may be 0, and is no
 * leaf. What counts at first are the largest ones; one met fewer times than the threshold gives way to the
 * computations in it.
 * Requires: the threshold is not negative; the variables of what is met often enough in a stored value are iterations
 *           of the block, not negative, bound to loops of its scope whose ranges do not depend on each other.
 * After:    for each of these, in order of falling size, the buffer index_var_N has a dimension for each variable, and
 *           the block index_N computes it in loops over the loops that these are bound to, where none of them is
 *           negative, before the block's nest. The block loads the buffers; what it says it reads stays as it was, so
 *           that all of them stay where they are.
 * Forward:  nothing dies. */
#include "cache_stage.h"
#include "copy_stage.h"
#include "loops.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/outside.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COMPUTATIONS = 64, MOST_VARS = 16, MOST_NODES = 4096 };

struct computation {
  tir_expr e;
  uint32_t times, size;
};
struct cache_index_plan {
  tir_block block, scope;
  tir_stmt before;
  int threshold;
  struct computation met[MOST_COMPUTATIONS]; /* in one store */
  tir_expr chosen[MOST_COMPUTATIONS];
  uint32_t met_count, chosen_count, nodes;
};

/* ---- Computations ---- */

static uint32_t size_of(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  uint32_t size = 1;
  if (n->kind <= TIR_DATA) return size;
  for (uint32_t i = 0; i < n->count; i++)
    if (ir->operands.at[n->operands + i]) size += size_of(ir, ir->operands.at[n->operands + i]);
  if (n->count && n->kind != TIR_LOAD) return size;
  const tir_expr below[] = {n->a, n->b, n->c};
  for (int i = 0; i < (n->kind == TIR_LOAD ? 1 : 3); i++)
    if (below[i]) size += size_of(ir, below[i]);
  return size;
}

/* Calls that may do more than compute. */
static bool is_impure(const struct tir *ir, const void *context, tir_expr e) {
  (void)context;
  static const char *const impure[] = {"call_extern", "call_packed", "tvm_", "ptx_", "address_of", "ret", "assume"};
  if (tir_at(ir, e)->kind != TIR_CALL) return false;
  for (size_t i = 0; i < sizeof impure / sizeof *impure; i++)
    if (!strncmp(tir_text(ir, tir_at(ir, e)->ref), impure[i], strlen(impure[i]))) return true;
  return tir_device_call_of(ir, e) != TIR_DEVICE_CALLS;
}

static bool is_computation(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind <= TIR_DATA || n->kind >= TIR_SLICE || n->kind == TIR_RAMP || n->kind == TIR_BROADCAST) return false;
  if ((n->flags & TIR_HAS_LOAD) || !(n->flags & TIR_HAS_VAR) || tir_type_lanes(n->type) != 1) return false;
  if (tir_may_divide_by_zero(ir, e)) return false; /* a condition that keeps it from that is not where it is computed */
  return !tir_any_node(ir, e, TIR_HAS_CALL, is_impure, NULL);
}

/* A condition is not one of its parts because another always holds. */
static bool same_value(struct tir *ir, tir_expr a, tir_expr b) {
  if (a == b) return true;
  if (tir_type_of(ir, a) != tir_type_of(ir, b) || tir_type_code(tir_type_of(ir, a)) == TIR_BOOL) return false;
  a = tir_simplify(ir, a), b = tir_simplify(ir, b);
  return a == b ||
         (tir_type_is_int(tir_type_of(ir, a)) && !(tir_at(ir, a)->flags & TIR_HAS_CALL) && tir_prove_equal(ir, a, b));
}

static bool meet(struct tir *ir, struct cache_index_plan *plan, tir_expr e, uint32_t times) {
  for (uint32_t i = 0; i < plan->met_count; i++)
    if (same_value(ir, plan->met[i].e, e)) return plan->met[i].times += times, true;
  if (plan->met_count == MOST_COMPUTATIONS) return false;
  plan->met[plan->met_count++] = (struct computation){e, times, size_of(ir, e)};
  return true;
}

/* Meets the largest computations in what is below `e`, or in `e` itself. */
static bool meet_below(struct tir *ir, struct cache_index_plan *plan, tir_expr e, uint32_t times, bool itself) {
  if (!e) return true;
  if (++plan->nodes > MOST_NODES) return false;
  if (itself && is_computation(ir, e)) return meet(ir, plan, e, times);
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind <= TIR_DATA) return true;
  for (uint32_t i = 0; i < n.count; i++)
    if (!meet_below(ir, plan, ir->operands.at[n.operands + i], times, true)) return false;
  if (n.count) return n.kind != TIR_LOAD || meet_below(ir, plan, n.a, times, true);
  return meet_below(ir, plan, n.a, times, true) && meet_below(ir, plan, n.b, times, true) &&
         meet_below(ir, plan, n.c, times, true);
}

/* Chooses the computations met often enough, in the order in which the value has them, parts before wholes. */
static bool choose(struct tir *ir, struct cache_index_plan *plan, tir_expr e, uint32_t first) {
  if (!e || tir_at(ir, e)->kind <= TIR_DATA) return true;
  struct tir_expr_node n = *tir_at(ir, e);
  for (uint32_t i = 0; i < n.count; i++)
    if (!choose(ir, plan, ir->operands.at[n.operands + i], first)) return false;
  if (!n.count && !(choose(ir, plan, n.a, first) && choose(ir, plan, n.b, first) && choose(ir, plan, n.c, first)))
    return false;
  for (uint32_t i = 0; i < plan->met_count && is_computation(ir, e); i++) {
    if ((int)plan->met[i].times < plan->threshold || !same_value(ir, plan->met[i].e, e)) continue;
    for (uint32_t k = first; k < plan->chosen_count; k++)
      if (plan->chosen[k] == plan->met[i].e) return true;
    if (plan->chosen_count == MOST_COMPUTATIONS) return false;
    plan->chosen[plan->chosen_count++] = plan->met[i].e;
    return true;
  }
  return true;
}

static bool look_at_store(struct tir *ir, struct cache_index_plan *plan, tir_stmt s) {
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  plan->met_count = plan->nodes = 0;
  if (!meet_below(ir, plan, n.store.value, 1, true)) return false;
  for (uint32_t i = 0; i < tir_buffer_at(ir, n.store.buffer)->rank; i++)
    if (!meet_below(ir, plan, ir->operands.at[n.store.indices + i], 1, true)) return false;
  for (uint32_t i = 0; i < plan->met_count; i++) /* grows */
    if ((int)plan->met[i].times < plan->threshold && !meet_below(ir, plan, plan->met[i].e, plan->met[i].times, false))
      return false;
  return choose(ir, plan, n.store.value, plan->chosen_count);
}

static void sort_by_size(const struct tir *ir, struct cache_index_plan *plan) {
  for (uint32_t i = 1; i < plan->chosen_count; i++) {
    tir_expr e = plan->chosen[i];
    uint32_t size = size_of(ir, e), j = i;
    for (; j > 0 && size_of(ir, plan->chosen[j - 1]) < size; j--) plan->chosen[j] = plan->chosen[j - 1];
    plan->chosen[j] = e;
  }
}

/* ---- Check ---- */

/* Variables in the order met, each once. */
struct vars {
  const struct tir *ir;
  tir_var at[MOST_VARS];
  uint32_t count;
  bool full;
};

static bool add_var(void *data, tir_expr e) {
  struct vars *v = data;
  if (tir_at(v->ir, e)->kind != TIR_VAR) return true;
  for (uint32_t i = 0; i < v->count; i++)
    if (v->at[i] == tir_at(v->ir, e)->ref) return true;
  v->full |= v->count == MOST_VARS;
  if (!v->full) v->at[v->count++] = tir_at(v->ir, e)->ref;
  return true;
}

static bool is_loop_around(const struct tir *ir, const struct cache_index_plan *plan, tir_var v) {
  for (tir_stmt s = plan->block; s != plan->scope; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_as(ir, s, TIR_LOOP)->loop.var == v) return true;
  return false;
}

/* Adds the loops on which the ranges of the loops in `found` depend: copies of these stand in copies of those. */
static void add_loops_of_ranges(const struct tir *ir, const struct cache_index_plan *plan, struct vars *found) {
  for (uint32_t i = 0; i < found->count; i++) { /* grows */
    struct vars below = {.ir = ir};
    if (!is_loop_around(ir, plan, found->at[i])) continue;
    tir_walk_expr(ir, ir->vars.at[found->at[i]].min, add_var, &below);
    tir_walk_expr(ir, ir->vars.at[found->at[i]].extent, add_var, &below);
    found->full |= below.full;
    for (uint32_t k = 0; k < below.count; k++)
      if (is_loop_around(ir, plan, below.at[k])) add_var(found, tir_var_expr(ir, below.at[k]));
  }
}

/* Adds the loops in a binding, outermost first. */
static void add_loops(const struct tir *ir, const struct cache_index_plan *plan, tir_expr binding, struct vars *loops) {
  struct vars found = {.ir = ir};
  tir_walk_expr(ir, binding, add_var, &found);
  add_loops_of_ranges(ir, plan, &found);
  loops->full |= found.full;
  tir_stmt nest[64];
  uint32_t depth = tir_loops_of(ir, plan->block, nest, 64);
  for (uint32_t l = 0; l < depth && l < 64; l++)
    for (uint32_t i = 0; i < found.count; i++)
      if (tir_as(ir, nest[l], TIR_LOOP)->loop.var == found.at[i]) add_var(loops, tir_var_expr(ir, found.at[i]));
  for (uint32_t i = 0; i < found.count; i++) add_var(loops, tir_var_expr(ir, found.at[i]));
}

/* The block's iterations in a computation, and the loops that these are bound to. */
static bool find_vars(const struct tir *ir, const struct cache_index_plan *plan, tir_expr e, struct vars *iters,
                      struct vars *loops) {
  *iters = *loops = (struct vars){.ir = ir};
  tir_walk_expr(ir, e, add_var, iters);
  for (uint32_t i = 0; i < iters->count; i++) {
    tir_expr binding = tir_binding_of(ir, plan->block, iters->at[i]);
    if (!binding) return false;
    add_loops(ir, plan, binding, loops);
  }
  for (uint32_t i = 0; i < loops->count; i++)
    if (!is_loop_around(ir, plan, loops->at[i])) return false;
  return !iters->full && !loops->full;
}

/* One past the largest value of a binding. */
static tir_expr end_of(struct tir *ir, tir_expr binding, const struct vars *loops) {
  struct tir_interval i = tir_relax(ir, binding, loops->at, loops->count);
  return i.max ? tir_add(ir, i.max, tir_int(ir, tir_type_of(ir, i.max), 1)) : TIR_NONE;
}

/* Each is an index of the buffer. */
static bool may_be_negative(const struct tir *ir, const struct vars *iters) {
  for (uint32_t i = 0; i < iters->count; i++)
    if (tir_at(ir, ir->vars.at[iters->at[i]].min)->lo < 0) return true;
  return false;
}

/* Where ranges of the loops depend on others of them, it may be unknown how far a binding reaches. */
static bool find_ends(struct tir *ir, const struct cache_index_plan *plan, const struct vars *iters,
                      const struct vars *loops) {
  for (uint32_t i = 0; i < iters->count; i++) {
    tir_expr end = end_of(ir, tir_binding_of(ir, plan->block, iters->at[i]), loops);
    if (!end || tir_uses_any_var(ir, end, loops->at, loops->count)) return false;
  }
  return true;
}

static bool check_chosen(struct tir *ir, const struct cache_index_plan *plan, ms_error *err) {
  for (uint32_t i = 0; i < plan->chosen_count; i++) {
    struct vars iters, loops;
    if (!find_vars(ir, plan, plan->chosen[i], &iters, &loops))
      return tir_refuse(ir, err, MS_CACHE_INDEX_VARIABLES, plan->block,
                        "a computation in block `%s` has variables that are no iterations of it",
                        tir_block_name(ir, plan->block));
    if (may_be_negative(ir, &iters))
      return tir_refuse(ir, err, MS_DOMAIN_NEGATIVE, plan->block,
                        "a computation in block `%s` has an iteration that may be negative",
                        tir_block_name(ir, plan->block));
    if (!find_ends(ir, plan, &iters, &loops))
      return tir_refuse(ir, err, MS_LOOP_RANGE_DEPENDS, plan->block,
                        "the range of a loop that a computation in block `%s` needs depends on another loop",
                        tir_block_name(ir, plan->block));
  }
  return true;
}

static bool check_cache_index(struct tir *ir, tir_block block, const char *storage, int threshold,
                              struct cache_index_plan *plan, ms_error *err) {
  plan->block = block;
  plan->threshold = threshold;
  if (!tir_find_scope(ir, block, &plan->scope, err)) return false;
  if (!tir_check_storage_scope(storage, err)) return false;
  if (threshold < 0) return ms_fail(err, MS_INVALID_ARGUMENT, "the threshold %d is negative", threshold);
  for (plan->before = block; tir_stmt_at(ir, plan->before)->parent != plan->scope;)
    plan->before = tir_stmt_at(ir, plan->before)->parent;
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) {
    if (tir_is(ir, s, TIR_STORE) && !look_at_store(ir, plan, s))
      return tir_refuse(ir, err, MS_TOO_LARGE, block, "block `%s` computes too much", tir_block_name(ir, block));
    if (tir_is(ir, s, TIR_STORE)) sort_by_size(ir, plan);
  }
  return check_chosen(ir, plan, err) && tir_check_places_steady(ir, block, plan->before, err);
}

/* ---- Edit ---- */

/* The domain of an iteration of the stage: the loop's of the same number where it holds all values of the binding. */
static tir_expr domain_of(struct tir *ir, const struct vars *loops, uint32_t i, tir_expr end) {
  tir_expr extent = i < loops->count ? ir->vars.at[loops->at[i]].extent : end;
  bool holds = tir_is_int(ir, extent) && tir_is_int(ir, end) && tir_at(ir, extent)->imm >= tir_at(ir, end)->imm;
  return holds ? extent : end;
}

/* That bindings are no less than 0, where they may be: the block itself is kept from that by its predicate. */
static tir_expr limits_of(struct tir *ir, const struct cache_index_plan *plan, const struct vars *iters,
                          const struct vars *loops, const tir_expr *bindings) {
  tir_expr all = TIR_NONE;
  for (uint32_t i = 0; i < iters->count; i++) {
    tir_expr least = tir_relax(ir, tir_binding_of(ir, plan->block, iters->at[i]), loops->at, loops->count).min;
    tir_expr zero = tir_int(ir, tir_type_of(ir, bindings[i]), 0);
    if (least && tir_prove(ir, tir_make(ir, TIR_GE, least, zero))) continue;
    all = tir_and(ir, all, tir_make(ir, TIR_LE, zero, bindings[i]));
  }
  return all;
}

static tir_buffer make_buffer(struct tir *ir, const struct cache_index_plan *plan, uint32_t n, const struct vars *iters,
                              const struct vars *loops, const char *storage) {
  tir_expr shape[MOST_VARS];
  for (uint32_t i = 0; i < iters->count; i++)
    shape[i] = end_of(ir, tir_binding_of(ir, plan->block, iters->at[i]), loops);
  tir_symbol name = tir_symbol_format(ir, "index_var_%u", n);
  tir_symbol scope = tir_symbol_of(ir, storage);
  tir_buffer b = tir_new_buffer(ir, name, tir_type_of(ir, plan->chosen[n]), shape, iters->count, scope);
  tir_expr one = tir_int(ir, TIR_T_I32, 1);
  uint32_t strides = tir_add_operands(ir, &one, 1); /* the field's text has one stride, whatever the rank */
  tir_buffer_at(ir, b)->strides = (struct tir_span){strides, 1};
  tir_add_alloc(ir, plan->scope, b);
  return b;
}

/* The block that computes one: detached, loops around it. */
static tir_block make_stage(struct tir *ir, const struct cache_index_plan *plan, uint32_t n, tir_buffer buffer,
                            const struct vars *iters, const struct vars *loops, tir_stmt *nest) {
  tir_var made[MOST_VARS];
  struct tir_iter bound[MOST_VARS];
  tir_expr indices[MOST_VARS], bindings[MOST_VARS];
  for (uint32_t i = 0; i < loops->count; i++) {
    struct tir_var_node v = ir->vars.at[loops->at[i]];
    tir_expr min = tir_subst(ir, v.min), extent = tir_subst(ir, v.extent); /* over the loops before it */
    made[i] = tir_new_var(ir, TIR_VAR_LOOP, tir_name_ordinal(ir, tir_symbol_of(ir, "ax"), i), v.type,
                          tir_int(ir, v.type, 0), extent);
    tir_subst_var(ir, loops->at[i], tir_add(ir, tir_var_expr(ir, made[i]), min));
  }
  for (uint32_t i = 0; i < iters->count; i++)
    bindings[i] = tir_subst(ir, tir_binding_of(ir, plan->block, iters->at[i]));
  tir_subst_clear(ir);
  for (uint32_t i = 0; i < iters->count; i++) {
    tir_type type = ir->vars.at[iters->at[i]].type;
    tir_expr end = ir->operands.at[tir_buffer_at(ir, buffer)->shape + i];
    tir_expr domain = tir_cast(ir, type, domain_of(ir, loops, i, end));
    tir_var v = tir_new_var(ir, TIR_VAR_ITER, tir_name_ordinal(ir, tir_symbol_of(ir, "v"), i), type,
                            tir_int(ir, type, 0), domain);
    bound[i] = (struct tir_iter){v, TIR_SPATIAL, bindings[i]};
    indices[i] = tir_var_expr(ir, v);
    tir_subst_var(ir, iters->at[i], indices[i]);
  }
  tir_expr value = tir_subst_value(ir, plan->chosen[n]);
  tir_subst_clear(ir);
  tir_block block = tir_new_block(ir, tir_free_block_name(ir, tir_symbol_format(ir, "index_%u", n)));
  tir_set_iters(ir, block, bound, iters->count);
  tir_expr limits = limits_of(ir, plan, iters, loops, bindings);
  tir_as(ir, block, TIR_BLOCK)->block.predicate = limits;
  struct tir_region written = tir_point_region(ir, buffer, indices);
  tir_set_writes(ir, block, &written, 1);
  tir_append(ir, block, TIR_BODY, tir_new_store(ir, buffer, indices, value));
  *nest = tir_put_in_loops(ir, block, made, loops->count);
  return block;
}

struct replacement {
  tir_expr computation, load;
};

static tir_expr replace_in(struct tir *ir, void *context, tir_expr e);

static uint32_t replace_operands(struct tir *ir, const struct replacement *r, uint32_t first, uint32_t count) {
  uint32_t made[MOST_NODES / 64];
  bool changed = false;
  if (count > sizeof made / sizeof *made) return first;
  for (uint32_t i = 0; i < count; i++) {
    tir_expr e = ir->operands.at[first + i];
    made[i] = e ? replace_in(ir, (void *)r, e) : TIR_NONE;
    changed |= made[i] != e;
  }
  return changed ? tir_add_operands(ir, made, count) : first;
}

static tir_expr rebuild(struct tir *ir, const struct replacement *r, tir_expr e) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.count) {
    uint32_t operands = replace_operands(ir, r, n.operands, n.count);
    if (operands == n.operands) return e;
    uint32_t list[MOST_NODES / 64];
    MS_CHECK(n.count <= MOST_NODES / 64);
    memcpy(list, ir->operands.at + operands, n.count * sizeof *list);
    if (n.kind == TIR_LOAD) return tir_load(ir, n.ref, list, n.count, n.a);
    return n.kind == TIR_CALL ? tir_call(ir, n.type, n.ref, list, n.count) : e;
  }
  tir_expr a = n.a ? replace_in(ir, (void *)r, n.a) : TIR_NONE, b = n.b ? replace_in(ir, (void *)r, n.b) : TIR_NONE;
  tir_expr c = n.c ? replace_in(ir, (void *)r, n.c) : TIR_NONE;
  if (a == n.a && b == n.b && c == n.c) return e;
  return n.kind == TIR_LET ? e : tir_rebuild(ir, n, a, b, c); /* what is under a let stays */
}

static tir_expr replace_in(struct tir *ir, void *context, tir_expr e) {
  const struct replacement *r = context;
  if (tir_at(ir, e)->kind <= TIR_DATA) return e;
  if (is_computation(ir, e) && same_value(ir, e, r->computation)) return r->load;
  return rebuild(ir, r, e);
}

static void load_instead(struct tir *ir, const struct cache_index_plan *plan, const struct replacement *r) {
  for (tir_stmt s = tir_next(ir, plan->block, plan->block); s; s = tir_next_in_scope(ir, s, plan->block)) {
    if (tir_is(ir, s, TIR_STORE)) {
      struct tir_stmt_node n = *tir_stmt_at(ir, s);
      tir_expr value = replace_in(ir, (void *)r, n.store.value);
      uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
      uint32_t indices = replace_operands(ir, r, n.store.indices, rank);
      tir_as(ir, s, TIR_STORE)->store.value = value;
      tir_as(ir, s, TIR_STORE)->store.indices = indices;
    }
  }
}

static void edit_cache_index(struct tir *ir, const struct cache_index_plan *plan, const char *storage, tir_block *out) {
  for (uint32_t n = 0; n < plan->chosen_count; n++) {
    struct vars iters, loops;
    tir_stmt nest;
    tir_expr indices[MOST_VARS];
    find_vars(ir, plan, plan->chosen[n], &iters, &loops);
    MS_CHECK(!iters.full && !loops.full);
    tir_buffer buffer = make_buffer(ir, plan, n, &iters, &loops, storage);
    out[n] = make_stage(ir, plan, n, buffer, &iters, &loops, &nest);
    tir_insert_before(ir, plan->before, nest);
    for (uint32_t i = 0; i < iters.count; i++) indices[i] = tir_var_expr(ir, iters.at[i]);
    struct replacement r = {plan->chosen[n], tir_load(ir, buffer, indices, iters.count, TIR_NONE)};
    load_instead(ir, plan, &r);
  }
  tir_find_undeclared(ir); /* no region declares what is stored, or loaded instead */
}

bool tir_cache_index(struct tir *ir, tir_block block, const char *storage, int threshold, tir_block *out, uint32_t most,
                     uint32_t *count, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct cache_index_plan plan = {0};
  struct tir_mark mark = tir_mark(ir);
  bool accepted = check_cache_index(ir, block, storage, threshold, &plan, err);
  if (accepted && plan.chosen_count > most)
    accepted = tir_refuse(ir, err, MS_TOO_LARGE, block, "%u computations are to be cached", plan.chosen_count);
  if (!tir_rewind_unless(ir, &mark, accepted)) return false;
  *count = plan.chosen_count;
  edit_cache_index(ir, &plan, storage, out);
  return true;
}

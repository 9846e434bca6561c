/* Read at, write at: under a loop, what is accessed of a buffer goes through a copy of it in another storage scope.
 *
 * Requires: the block has a read (write) region of this number, which names the buffer; the scope is known, and the
 *           loop's scope a stage pipeline; a block below the loop reads (writes) the buffer; below the loop no block
 *           writes it with or after the first that reads it (reads it after the last that writes it); where blocks
 *           below it are depends on loops around in the same scope only, and on nothing that is written after the copy;
 *           no range, binding or predicate there loads the buffer; parts of it are matched in that storage scope.
 *           For a write: every block there that reads the buffer reads what was written below the loop, or the scope
 *           allocates the buffer and nothing else writes it; where loops around reduce in a block that writes, nothing
 *           else in them writes the buffer; all of what is copied back is written, and no loop around the scope reduces
 *           in a block that writes, nor does a condition below the loop stand around one.
 * After:    the copy is allocated in the scope, as large as the buffer. Before the first statement that reads it the
 *           block BUFFER_SCOPE copies what is read below the loop (after the last that writes it: copies it back), in
 *           loops of its own inside; its iterations are the loops that it depends on; it is annotated auto_copy.
 * Forward:  nothing dies. */
#include "buffer.h"
#include "cache_stage.h"
#include "loops.h"
#include "tir/analysis/loads.h"
#include "tir/analysis/order/order.h"
#include "tir/analysis/outside.h"

#include <string.h>

enum { MOST_VARS = 64, MOST_RANK = TIR_MOST_CACHED_RANK };

struct read_write_at_plan {
  tir_loop loop;
  bool write;
  struct tir_cache_plan cache;
  tir_stmt first, last; /* the statements below the loop that use the copy instead */
  struct tir_interval used[MOST_RANK];
  tir_expr condition; /* of all those that read (write): they run, or not, whatever loops below do */
  bool met;           /* one of them */
  bool differ;        /* they have other conditions than each other: `condition` is none */
};

/* ---- Check ---- */

static const struct tir_region *next_region(const struct tir *ir, struct tir_span span, tir_buffer buffer,
                                            uint32_t *i) {
  for (; *i < span.count; ++*i)
    if (ir->regions.at[span.first + *i].buffer == buffer) return &ir->regions.at[span.first + (*i)++];
  return NULL;
}

/* Of the copy, as far as threads share it. */
static tir_symbol memory_of(struct tir *ir, const struct read_write_at_plan *plan) {
  return tir_memory_of_threads(ir, tir_symbol_of(ir, plan->cache.storage));
}

/* Conditions of the block that loops below the loop do not change. */
static tir_expr find_condition(struct tir *ir, const struct read_write_at_plan *plan, tir_block block) {
  tir_var vars[MOST_VARS];
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  uint32_t count = tir_running_loops(ir, block, plan->loop, memory_of(ir, plan), vars, MOST_VARS);
  return predicate && count <= MOST_VARS ? tir_invariant_conditions(ir, predicate, vars, count) : TIR_NONE;
}

static void meet_condition(struct tir *ir, struct read_write_at_plan *plan, tir_block block) {
  tir_expr condition = find_condition(ir, plan, block);
  plan->differ |= plan->met && plan->condition != condition;
  plan->condition = plan->differ ? TIR_NONE : condition;
  plan->met = true;
}

/* What a region of the block covers below the loop, added to `all`. */
static bool add_used(struct tir *ir, const struct read_write_at_plan *plan, tir_block block, struct tir_region region,
                     struct tir_interval *all, ms_error *err) {
  struct tir_interval covered[MOST_RANK];
  if (!tir_region_from(ir, block, region, plan->loop, memory_of(ir, plan), covered))
    return tir_refuse(ir, err, MS_TOO_LARGE, block, "too many loops");
  for (uint32_t i = 0; i < plan->cache.rank; i++) all[i] = tir_interval_union(ir, all[i], covered[i]);
  return true;
}

/* What is surely written below the loop. */
struct written {
  struct tir_interval dims[MOST_RANK];
  bool any; /* of a scalar, which has no dims */
};

/* Loops around can leave the block no iteration below the loop that writes the region. */
static bool may_be_left_out(struct tir *ir, const struct read_write_at_plan *plan, tir_block block,
                            struct tir_region region) {
  tir_var vars[MOST_VARS];
  tir_expr ranges[2 * MOST_RANK], predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  uint32_t count = tir_running_loops(ir, block, plan->loop, memory_of(ir, plan), vars, MOST_VARS);
  if (count > MOST_VARS) return true;
  tir_region_over_loops(ir, block, region, ranges);
  return !tir_holds_somewhere(ir, predicate, plan->condition, ranges, plan->cache.rank, vars, count);
}

/* What is surely written of a region, added to `all`. */
static void add_written(struct tir *ir, const struct read_write_at_plan *plan, tir_block block,
                        struct tir_region region, struct written *all) {
  struct tir_interval covered[MOST_RANK];
  if (!tir_implies(ir, plan->condition, find_condition(ir, plan, block)) || /* it may not run */
      may_be_left_out(ir, plan, block, region) ||
      !tir_exact_region_from(ir, block, region, plan->loop, memory_of(ir, plan), covered))
    return;
  if (!all->any)
    memcpy(all->dims, covered, sizeof covered);
  else
    tir_join_box(ir, all->dims, covered, plan->cache.rank);
  all->any = true;
}

/* All that is ever written to the buffer is written below the loop, to the copy, which lives as long. */
static bool takes_all_writes(const struct tir *ir, const struct read_write_at_plan *plan) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, plan->cache.buffer);
  for (uint32_t u = n->writers; u; u = ir->uses.at[u].next)
    if (!tir_is_below(ir, ir->uses.at[u].block, plan->loop)) return false;
  return n->where == plan->cache.scope && !n->undeclared;
}

/* What a block declares of the buffer is what it does, and what it reads was written before. */
static bool check_declared(struct tir *ir, const struct read_write_at_plan *plan, tir_block block, ms_error *err) {
  bool reads = tir_has_region_of(ir, tir_block_at(ir, block)->reads, plan->cache.buffer);
  bool writes = tir_has_region_of(ir, tir_block_at(ir, block)->writes, plan->cache.buffer);
  if (!reads && !writes) return true;
  if (!tir_check_declares_inner(ir, block, err) || (writes && !tir_check_writes_exact(ir, block, err))) return false;
  if (writes && plan->write && !tir_check_reduces_inside(ir, block, plan->cache.scope, err)) return false;
  if (writes && plan->write && !tir_only_loops_up_to(ir, block, plan->loop))
    return tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, block,
                      "more than loops stands between this loop and block `%s`", tir_block_name(ir, block));
  /* What it leaves out would be copied over what others wrote there. */
  if (writes && plan->write && !tir_check_stores_all(ir, block, plan->cache.buffer, TIR_NONE, err)) return false;
  if (reads && !plan->write && !tir_check_input_declared(ir, &plan->cache, false, err)) return false;
  if (!reads || plan->write || tir_has_region_cover(ir, block, plan->cache.scope)) return true;
  return tir_refuse(ir, err, MS_READS_NOT_COVERED, block, "block `%s` reads more than is written before it",
                    tir_block_name(ir, block));
}

/* The blocks below one statement of the loop's body. */
static bool look_below(struct tir *ir, struct read_write_at_plan *plan, tir_stmt top, bool *reads, bool *writes,
                       ms_error *err) {
  tir_buffer buffer = plan->cache.buffer;
  struct tir_outside_use use;
  if (tir_next_outside_use(ir, plan->cache.scope, buffer, top, TIR_NONE, &use)) /* in no region */
    return tir_refuse(ir, err, MS_AT_REGION, use.at, "below the loop, `%s` uses `%s` outside of its blocks",
                      tir_block_name(ir, plan->cache.scope), tir_buffer_name(ir, buffer));
  for (tir_stmt s = top; s; s = tir_next_in_scope(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    if (!check_declared(ir, plan, s, err)) return false;
    struct tir_span own = tir_regions(ir, s, plan->write);
    *reads |= tir_has_region_of(ir, tir_block_at(ir, s)->reads, buffer);
    *writes |= tir_has_region_of(ir, tir_block_at(ir, s)->writes, buffer);
    const struct tir_region *r;
    if (tir_has_region_of(ir, own, buffer)) meet_condition(ir, plan, s);
    for (uint32_t i = 0; (r = next_region(ir, own, buffer, &i));)
      if (!add_used(ir, plan, s, *r, plan->used, err)) return false;
  }
  return true;
}

static bool find_places(struct tir *ir, struct read_write_at_plan *plan, ms_error *err) {
  tir_stmt first_read = TIR_NONE, last_write = TIR_NONE, late = TIR_NONE;
  const char *name = tir_buffer_name(ir, plan->cache.buffer);
  for (tir_stmt s = tir_stmt_at(ir, plan->loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    bool reads = false, writes = false;
    if (!look_below(ir, plan, s, &reads, &writes, err)) return false;
    if (reads && !first_read) first_read = s;
    if (writes) last_write = s;
    if (plan->write)
      late = writes ? TIR_NONE : reads ? s : late;
    else if (writes && first_read)
      late = s;
  }
  if (!(plan->write ? last_write : first_read))
    return tir_refuse(ir, err, MS_AT_UNUSED, plan->loop, "no block below the loop %s `%s`",
                      plan->write ? "writes" : "reads", name);
  if (late)
    return tir_refuse(ir, err, MS_AT_ORDER, late, "`%s` is %s here, below the loop", name,
                      plan->write ? "read after it is last written" : "written with or after its first read");
  plan->first = plan->write ? tir_stmt_at(ir, plan->loop)->first[TIR_BODY] : first_read;
  plan->last = plan->write ? last_write : tir_stmt_at(ir, plan->loop)->last[TIR_BODY];
  return true;
}

static bool refuse_unwritten(struct tir *ir, const struct read_write_at_plan *plan, tir_stmt where, const char *what,
                             ms_error *err) {
  return tir_refuse(ir, err, MS_AT_UNWRITTEN, where, "more of `%s` is %s than is surely written below the loop before",
                    tir_buffer_name(ir, plan->cache.buffer), what);
}

/* The outermost loop of the scope that stands around the block and reduces in it; TIR_NONE: below the loop alone. */
static tir_stmt reduced_around(struct tir *ir, const struct read_write_at_plan *plan, tir_block block) {
  tir_stmt outermost = TIR_NONE;
  for (tir_stmt s = plan->loop; s != plan->cache.scope; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_reduces_over(ir, block, tir_as(ir, s, TIR_LOOP)->loop.var)) outermost = s;
  return outermost;
}

/* The copy keeps sums from one iteration of a loop around to the next: nothing else writes the buffer meanwhile. */
static bool check_sums(struct tir *ir, const struct read_write_at_plan *plan, tir_block block, ms_error *err) {
  tir_buffer buffer = plan->cache.buffer;
  tir_stmt around = reduced_around(ir, plan, block), writer = TIR_NONE;
  if (!around) return true;
  for (uint32_t u = tir_buffer_at(ir, buffer)->writers; u && !writer; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (tir_is_below(ir, b, around) && !tir_is_below(ir, b, plan->loop)) writer = b;
  }
  struct tir_outside_use use;
  for (tir_stmt s = around; !writer && tir_next_outside_use(ir, plan->cache.scope, buffer, around, s, &use); s = use.at)
    if (use.writes) writer = use.at;
  return !writer ||
         tir_refuse(ir, err, MS_AT_UNWRITTEN, writer, "`%s` is written here, in a loop that reduces in block `%s`",
                    tir_buffer_name(ir, buffer), tir_block_name(ir, block));
}

/* The copy holds nothing but what is written below the loop: nothing else is read of it, or copied back. */
static bool check_written(struct tir *ir, const struct read_write_at_plan *plan, ms_error *err) {
  struct written written = {.any = false};
  bool all = takes_all_writes(ir, plan);
  tir_buffer buffer = plan->cache.buffer;
  for (uint32_t i = 0; i < plan->cache.rank; i++) written.dims[i] = tir_nothing();
  for (tir_stmt s = plan->first; s; s = tir_next_in_scope(ir, s, plan->loop)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    if (tir_compare_position(ir, s, plan->last) > 0 && !tir_is_below(ir, s, plan->last)) break;
    const struct tir_region *r;
    if (tir_has_region_of(ir, tir_block_at(ir, s)->writes, buffer) && !check_sums(ir, plan, s, err)) return false;
    bool from_before = !all && tir_reads_from_before(ir, s, buffer);
    if (from_before && !tir_has_region_of(ir, tir_block_at(ir, s)->reads, buffer))
      return refuse_unwritten(ir, plan, s, "updated", err);
    for (uint32_t i = 0; from_before && (r = next_region(ir, tir_block_at(ir, s)->reads, buffer, &i));) {
      struct tir_interval read[MOST_RANK];
      for (uint32_t d = 0; d < plan->cache.rank; d++) read[d] = tir_nothing();
      if (!add_used(ir, plan, s, *r, read, err)) return false;
      if (!written.any || !tir_region_covers(ir, buffer, written.dims, read) ||
          !tir_implies(ir, tir_as(ir, s, TIR_BLOCK)->block.predicate, plan->condition))
        return refuse_unwritten(ir, plan, s, "read", err);
    }
    for (uint32_t i = 0; (r = next_region(ir, tir_block_at(ir, s)->writes, buffer, &i));)
      add_written(ir, plan, s, *r, &written);
  }
  return (written.any && tir_region_covers(ir, buffer, written.dims, plan->used)) ||
         refuse_unwritten(ir, plan, plan->loop, "to be copied", err);
}

/* The region copied: in terms of the loops around, cut to the buffer. */
static void find_region(struct tir *ir, struct read_write_at_plan *plan) {
  struct tir_region region = tir_region_of_box(ir, plan->cache.buffer, plan->used);
  tir_cache_region(ir, &plan->cache, &region);
}

/* No variable of the loops around. */
static bool is_foreign(const struct tir *ir, const void *context, tir_var v) {
  const struct read_write_at_plan *plan = context;
  for (tir_stmt s = plan->loop; s && tir_is(ir, s, TIR_LOOP); s = tir_stmt_at(ir, s)->parent)
    if (tir_as(ir, s, TIR_LOOP)->loop.var == v) return false;
  return tir_var_at(ir, v)->kind != TIR_VAR_PLAIN;
}

static bool has_conditional_writer(const struct tir *ir, const struct read_write_at_plan *plan) {
  for (uint32_t u = tir_buffer_at(ir, plan->cache.buffer)->writers; u; u = ir->uses.at[u].next)
    if (tir_is_below(ir, ir->uses.at[u].block, plan->cache.scope) &&
        tir_as(ir, ir->uses.at[u].block, TIR_BLOCK)->block.predicate)
      return true;
  return false;
}

static bool ranges_load(const struct tir *ir, const struct read_write_at_plan *plan) {
  for (uint32_t i = 0; i < 2 * plan->cache.rank; i++)
    if (tir_at(ir, plan->cache.ranges[i])->flags & TIR_HAS_LOAD) return true;
  return false;
}

/* What is copied in all iterations of the loops is what the scope declares that it reads; a root declares nothing. */
static bool is_declared(struct tir *ir, const struct read_write_at_plan *plan) {
  const struct tir_cache_plan *cache = &plan->cache;
  struct tir_span reads = tir_block_at(ir, cache->scope)->reads;
  tir_expr ranges[2 * MOST_RANK];
  struct tir_interval copied[MOST_RANK];
  tir_var vars[MOST_VARS];
  if (!tir_parent_block(ir, cache->scope) || tir_count_regions_of(ir, reads, cache->buffer) != 1) return true;
  uint32_t at = tir_region_of(ir, reads, cache->buffer)->ranges;
  uint32_t count = 1 + tir_loop_vars(ir, plan->loop, TIR_NONE, vars + 1, MOST_VARS - 1);
  if (count > MOST_VARS) return false;
  vars[0] = tir_as(ir, plan->loop, TIR_LOOP)->loop.var;
  for (uint32_t i = 0; i < 2 * cache->rank; i++) ranges[i] = cache->ranges[i];
  tir_relax_region(ir, ranges, cache->rank, vars, count, copied);
  for (uint32_t d = 0; d < cache->rank; d++) {
    tir_expr min = ir->operands.at[at + 2 * d];
    struct tir_interval declared = tir_interval_of(ir, min, ir->operands.at[at + 2 * d + 1]);
    if (!tir_interval_covers(ir, declared, copied[d])) return false;
  }
  return true;
}

/* What is copied for readers may be more than they read: it was written too, and is declared, if need be under their
 * condition, which also keeps what says where in its bounds. */
static bool check_covered(struct tir *ir, struct read_write_at_plan *plan, ms_error *err) {
  tir_expr ranges[2 * MOST_RANK];
  struct tir_use_at use = {plan->first, plan->cache.buffer, ranges, TIR_NONE};
  for (uint32_t i = 0; i < 2 * plan->cache.rank; i++) ranges[i] = plan->cache.ranges[i];
  bool covered = tir_is_covered(ir, &use, plan->cache.scope), declared = is_declared(ir, plan);
  if (covered && declared && !has_conditional_writer(ir, plan) && !ranges_load(ir, plan)) {
    plan->condition = TIR_NONE;
    return true;
  }
  use.predicate = plan->condition;
  if ((covered && (declared || plan->condition)) || (plan->condition && tir_is_covered(ir, &use, plan->cache.scope)))
    return true;
  return tir_refuse(ir, err, MS_READS_NOT_COVERED, plan->loop,
                    "more of `%s` would be copied than is written before this loop's body",
                    tir_buffer_name(ir, plan->cache.buffer));
}

/* What the ranges load was written before the copy runs. */
static bool check_loaded(struct tir *ir, const struct read_write_at_plan *plan, tir_buffer loaded, ms_error *err) {
  struct tir_transfer copy = {.to = plan->loop, .before = plan->first};
  if (plan->write) copy.before = tir_stmt_at(ir, plan->last)->next;
  tir_block writer = tir_written_later(ir, &copy, loaded);
  return !writer || tir_refuse(ir, err, MS_AT_REGION, plan->loop,
                               "where `%s` is accessed below the loop depends on what block `%s` writes after the copy",
                               tir_buffer_name(ir, plan->cache.buffer), tir_block_name(ir, writer));
}

static bool check_loads(struct tir *ir, const struct read_write_at_plan *plan, ms_error *err) {
  tir_expr loads[MOST_VARS];
  for (uint32_t i = 0; i < 2 * plan->cache.rank; i++) {
    if (!(tir_at(ir, plan->cache.ranges[i])->flags & TIR_HAS_LOAD)) continue;
    uint32_t count = tir_find_loads(ir, plan->cache.ranges[i], TIR_NONE, loads, MOST_VARS);
    if (count > MOST_VARS) return tir_refuse(ir, err, MS_TOO_LARGE, plan->loop, "too many loads");
    for (uint32_t k = 0; k < count; k++)
      if (!check_loaded(ir, plan, tir_at(ir, loads[k])->ref, err)) return false;
  }
  return true;
}

static bool check_region(struct tir *ir, const struct read_write_at_plan *plan, ms_error *err) {
  bool foreign = plan->differ && ranges_load(ir, plan); /* on conditions of some that no copy for all is under */
  for (uint32_t i = 0; i < plan->cache.rank; i++)
    if (tir_at(ir, plan->cache.ranges[2 * i + 1])->hi < 1)
      return tir_refuse(ir, err, MS_AT_UNUSED, plan->loop, "what is accessed of `%s` below the loop is not in it",
                        tir_buffer_name(ir, plan->cache.buffer));
  for (uint32_t i = 0; i < 2 * plan->cache.rank; i++)
    foreign = foreign || tir_any_var(ir, plan->cache.ranges[i], is_foreign, plan);
  foreign = foreign || (plan->condition && tir_any_var(ir, plan->condition, is_foreign, plan));
  return !foreign ||
         tir_refuse(ir, err, MS_AT_REGION, plan->loop,
                    "whether or where `%s` is accessed below the loop depends on more than the loops around",
                    tir_buffer_name(ir, plan->cache.buffer));
}

static bool check_matches(struct tir *ir, const struct read_write_at_plan *plan, ms_error *err) {
  for (tir_stmt s = plan->first;; s = tir_stmt_at(ir, s)->next) {
    for (tir_stmt b = s; b; b = tir_next(ir, b, s))
      if (tir_is(ir, b, TIR_BLOCK) && !tir_check_cache_matches(ir, &plan->cache, b, err)) return false;
    if (s == plan->last) return true;
  }
}

static bool check_read_write_at(struct tir *ir, tir_block block, uint32_t buffer_index, const char *storage,
                                struct read_write_at_plan *plan, ms_error *err) {
  if (!tir_check_cached_buffer(ir, block, buffer_index, plan->write, storage, &plan->cache, err)) return false;
  for (uint32_t i = 0; i < plan->cache.rank; i++) plan->used[i] = tir_nothing();
  plan->cache.scope = tir_parent_block(ir, plan->loop);
  if (!find_places(ir, plan, err)) return false;
  if (plan->write && !check_written(ir, plan, err)) return false;
  find_region(ir, plan);
  return check_region(ir, plan, err) && check_loads(ir, plan, err) && (plan->write || check_covered(ir, plan, err)) &&
         check_matches(ir, plan, err) && tir_check_stage_pipeline(ir, plan->cache.scope, err);
}

/* ---- Edit ---- */

struct collector {
  struct tir *ir;
  struct tir_iter iters[MOST_VARS];
  uint32_t count;
};

/* An iteration for each loop that the region depends on, in order of appearance. */
static bool collect_iter(void *data, tir_expr e) {
  struct collector *c = data;
  struct tir *ir = c->ir;
  if (tir_at(ir, e)->kind != TIR_VAR) return true;
  tir_var v = tir_at(ir, e)->ref;
  if (ir->vars.at[v].kind == TIR_VAR_PLAIN || c->count == MOST_VARS) return false;
  for (uint32_t i = 0; i < c->count; i++)
    if (c->iters[i].binding == e) return false;
  c->iters[c->count++] = (struct tir_iter){v, TIR_SPATIAL, e};
  return false;
}

static void make_iters(struct tir *ir, const struct read_write_at_plan *plan, struct collector *c) {
  *c = (struct collector){.ir = ir};
  for (uint32_t i = 0; i < 2 * plan->cache.rank; i++) tir_walk_expr(ir, plan->cache.ranges[i], collect_iter, c);
  for (uint32_t i = 0; i < c->count; i++) {
    struct tir_var_node v = ir->vars.at[c->iters[i].var];
    tir_var made =
        tir_new_var(ir, TIR_VAR_ITER, tir_name_ordinal(ir, tir_symbol_of(ir, "v"), i), v.type, v.min, v.extent);
    tir_subst_var(ir, c->iters[i].var, tir_var_expr(ir, made));
    c->iters[i].var = made;
  }
}

static tir_block make_copy(struct tir *ir, const struct read_write_at_plan *plan, tir_buffer copy) {
  struct collector c;
  tir_expr ranges[2 * MOST_RANK], indices[MOST_RANK];
  tir_var loops[MOST_RANK];
  uint32_t rank = plan->cache.rank;
  tir_buffer from = plan->write ? copy : plan->cache.buffer, to = plan->write ? plan->cache.buffer : copy;
  tir_block block = tir_new_block(ir, tir_buffer_at(ir, copy)->name);
  make_iters(ir, plan, &c);
  for (uint32_t i = 0; i < 2 * rank; i++) ranges[i] = tir_subst(ir, plan->cache.ranges[i]);
  tir_subst_clear(ir);
  tir_set_iters(ir, block, c.iters, c.count);
  struct tir_region read = tir_new_region(ir, from, ranges), written = tir_new_region(ir, to, ranges);
  tir_set_reads(ir, block, &read, 1);
  tir_set_writes(ir, block, &written, 1);
  for (uint32_t i = 0; i < rank; i++) {
    tir_type type = tir_type_of(ir, ranges[2 * i + 1]);
    loops[i] = tir_new_var(ir, TIR_VAR_LOOP, tir_name_ordinal(ir, tir_symbol_of(ir, "ax"), i), type,
                           tir_int(ir, type, 0), ranges[2 * i + 1]);
    indices[i] = tir_add(ir, ranges[2 * i], tir_var_expr(ir, loops[i]));
  }
  tir_stmt store = tir_new_store(ir, to, indices, tir_load(ir, from, indices, rank, TIR_NONE));
  tir_append(ir, block, TIR_BODY, tir_put_in_loops(ir, store, loops, rank));
  tir_as(ir, block, TIR_BLOCK)->block.predicate = plan->condition;
  struct tir_span annotations = {0};
  tir_annotate_span(ir, &annotations, tir_symbol_of(ir, "auto_copy"), tir_int(ir, TIR_T_BOOL, 1));
  tir_stmt_at(ir, block)->annotations = annotations;
  return block;
}

static tir_block edit_read_write_at(struct tir *ir, struct read_write_at_plan *plan) {
  tir_buffer copy = tir_make_cache(ir, &plan->cache);
  tir_block block = make_copy(ir, plan, copy);
  tir_subst_buffer(ir, plan->cache.buffer, copy);
  for (tir_stmt s = plan->first;; s = tir_stmt_at(ir, s)->next) {
    tir_subst_stmt(ir, s);
    if (s == plan->last) break;
  }
  tir_subst_clear(ir);
  if (plan->write)
    tir_insert_after(ir, plan->last, block);
  else
    tir_insert_before(ir, plan->first, block);
  if (ir->indirect) tir_find_undeclared(ir); /* what the ranges load: its regions are of what is copied alone */
  return block;
}

static bool at(struct tir *ir, tir_loop loop, tir_block block, uint32_t buffer_index, const char *storage, bool write,
               tir_block *out, ms_error *err) {
  struct read_write_at_plan plan = {.loop = loop, .write = write};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_read_write_at(ir, block, buffer_index, storage, &plan, err))) return false;
  *out = edit_read_write_at(ir, &plan);
  return true;
}

bool tir_read_at(struct tir *ir, tir_loop loop, tir_block block, uint32_t read_buffer_index, const char *storage,
                 tir_block *out, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP) && tir_is(ir, block, TIR_BLOCK));
  return at(ir, loop, block, read_buffer_index, storage, false, out, err);
}

bool tir_write_at(struct tir *ir, tir_loop loop, tir_block block, uint32_t write_buffer_index, const char *storage,
                  tir_block *out, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP) && tir_is(ir, block, TIR_BLOCK));
  return at(ir, loop, block, write_buffer_index, storage, true, out, err);
}

/* Cache read: blocks that read a buffer read a copy of it in another storage scope instead.
 *
 * Requires: the block has a read region of this number; the storage scope is known; at most one child of the scope
 *           writes the buffer, and what its children read of it is written before; consumers, if given, come after the
 *           writer, and one is a child of the scope; parts of the buffer are matched in that storage scope only.
 * After:    a block that copies what is written (of an input: the region that the scope declares, or the whole buffer)
 *           stands before the first reader of what the writer wrote, at the lowest place above both; first in the scope
 *           if the buffer is an input. In a loop the cache has the buffer's shape; in the scope itself only the
 *           region's. All blocks that come after in the scope, or the consumers given with all in them, read the
 *           cache. The copy is under the conditions that the writer as a whole is under.
 * Forward:  nothing dies. */
#include "cache_stage.h"
#include "tir/analysis/loads.h"

struct cache_read_plan {
  struct tir_cache_plan cache;
  tir_block writer; /* TIR_NONE: the buffer is an input of the scope */
  const tir_block *consumers;
  uint32_t count;
};

/* The first of the consumers given. The writer itself keeps the buffer, and blocks of other scopes are not asked. */
static bool find_first_given(struct tir *ir, const struct cache_read_plan *plan, tir_block *first, ms_error *err) {
  *first = TIR_NONE;
  for (uint32_t i = 0; i < plan->count; i++) {
    tir_block b = plan->consumers[i];
    if (b == plan->writer || tir_scope_of(ir, b) != plan->cache.scope) continue;
    if (!*first || tir_compare_position(ir, b, *first) < 0) *first = b;
  }
  if (*first && tir_compare_position(ir, *first, plan->writer) > 0) return true;
  tir_block wrong = *first ? *first : plan->writer;
  return tir_refuse(ir, err, MS_NO_CONSUMER_AFTER_WRITER, wrong, "consumer `%s` does not come after the writer `%s`",
                    tir_block_name(ir, wrong), tir_block_name(ir, plan->writer));
}

static bool plan_written(struct tir *ir, struct cache_read_plan *plan, ms_error *err) {
  tir_block first = TIR_NONE;
  if (plan->count && !find_first_given(ir, plan, &first, err)) return false;
  if (!plan->count) first = tir_first_reader(ir, plan->cache.scope, plan->writer, NULL, 0);
  plan->cache.before = TIR_NONE;
  if (first) tir_place_cache(ir, &plan->cache, plan->writer, first);
  plan->cache.compact = !first || tir_stmt_at(ir, plan->cache.before)->parent == plan->cache.scope;
  struct tir_span writes = tir_block_at(ir, plan->writer)->writes;
  struct tir_region region = *tir_region_of(ir, writes, plan->cache.buffer);
  if (tir_count_regions_of(ir, writes, plan->cache.buffer) > 1)
    tir_cache_whole(ir, &plan->cache);
  else
    tir_relax_cached_region(ir, &plan->cache, plan->writer, &region, TIR_NONE);
  return true;
}

/* No other block in the scope reads the buffer, whatever blocks around it declare. */
static bool is_only_reader(const struct tir *ir, tir_block block, const struct tir_cache_plan *plan) {
  uint32_t lists[] = {tir_buffer_at(ir, plan->buffer)->readers, tir_buffer_at(ir, plan->buffer)->undeclared};
  for (int i = 0; i < 2; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next) {
      tir_block b = ir->uses.at[u].block;
      if (b != block && tir_is_below(ir, b, plan->scope) && !tir_is_below(ir, b, block)) return false;
    }
  return true;
}

/* Ranges, bindings or predicates below load the input, which no region says. */
static bool is_loaded_at_places(struct tir *ir, tir_stmt top, tir_buffer buffer) {
  for (tir_stmt s = ir->indirect ? tir_next(ir, top, top) : TIR_NONE; s; s = tir_next(ir, s, top))
    if ((tir_is(ir, s, TIR_LOOP) || tir_is(ir, s, TIR_BLOCK)) && tir_scope_loads(ir, s, buffer, NULL, 0)) return true;
  return false;
}

/* A dimension of which it is not known how much is read is copied as far as the scope declares it. */
static void cut_to_declared(struct tir *ir, struct tir_cache_plan *cache, const struct tir_region *declared) {
  struct tir_cache_plan as_declared = *cache;
  tir_cache_region(ir, &as_declared, declared);
  for (uint32_t d = 0; d < cache->rank; d++) {
    tir_expr shape = ir->operands.at[tir_buffer_at(ir, cache->buffer)->shape + d];
    if (!tir_is_const(ir, cache->ranges[2 * d], 0) || cache->ranges[2 * d + 1] != shape) continue;
    cache->ranges[2 * d] = as_declared.ranges[2 * d];
    cache->ranges[2 * d + 1] = as_declared.ranges[2 * d + 1];
  }
}

/* A condition inside the only block that reads the input narrows what is copied. */
static void plan_input(struct tir *ir, struct cache_read_plan *plan, tir_block block) {
  struct tir_cache_plan *cache = &plan->cache;
  cache->before = cache->first;
  cache->compact = true;
  struct tir_span reads = tir_block_at(ir, block)->reads, outer = tir_block_at(ir, cache->scope)->reads;
  if (!tir_has_region_of(ir, outer, cache->buffer) && is_loaded_at_places(ir, cache->scope, cache->buffer)) {
    tir_cache_whole(ir, cache);
    return;
  }
  if (tir_count_regions_of(ir, reads, cache->buffer) == 1 && is_only_reader(ir, block, cache)) {
    struct tir_region region = *tir_region_of(ir, reads, cache->buffer);
    tir_expr nested = tir_nested_predicate(ir, block, cache->buffer, false);
    if (nested) {
      tir_relax_cached_region(ir, cache, block, &region, nested);
      if (tir_count_regions_of(ir, outer, cache->buffer) == 1)
        cut_to_declared(ir, cache, tir_region_of(ir, outer, cache->buffer));
      return;
    }
  }
  if (tir_count_regions_of(ir, outer, cache->buffer) == 1)
    tir_cache_region(ir, cache, tir_region_of(ir, outer, cache->buffer));
  else
    tir_cache_whole(ir, cache);
}

/* What the scope declares is what is copied in it: its places may load more. */
static bool check_places(struct tir *ir, const struct tir_cache_plan *plan, ms_error *err) {
  if (!tir_has_region_of(ir, tir_block_at(ir, plan->scope)->reads, plan->buffer)) return true;
  return !is_loaded_at_places(ir, plan->scope, plan->buffer) ||
         tir_refuse(ir, err, MS_ACCESS_UNDECLARED, plan->scope,
                    "ranges or predicates in block `%s` load `%s`, of which it declares what blocks read",
                    tir_block_name(ir, plan->scope), tir_buffer_name(ir, plan->buffer));
}

/* Nothing in the scope writes the input without declaring it, but for the block itself. */
static bool check_unwritten(struct tir *ir, const struct tir_cache_plan *plan, tir_block block, ms_error *err) {
  for (uint32_t u = tir_buffer_at(ir, plan->buffer)->undeclared; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    bool own = b == block || tir_is_below(ir, b, block) || tir_is_below(ir, block, b);
    if (!own && ir->uses.at[u].undeclared & TIR_USE_WRITES && tir_is_below(ir, b, plan->scope))
      return tir_refuse_undeclared(ir, b, plan->buffer, err);
  }
  return true;
}

/* Every child of the scope that reads the buffer reads what is written before it. */
static bool check_cover(struct tir *ir, const struct tir_cache_plan *plan, ms_error *err) {
  for (uint32_t u = tir_buffer_at(ir, plan->buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (tir_scope_of(ir, b) != plan->scope || tir_covers_buffer(ir, b, plan->scope, plan->buffer)) continue;
    return tir_refuse(ir, err, MS_READS_NOT_COVERED, b, "block `%s` reads more than is written before it",
                      tir_block_name(ir, b));
  }
  return true;
}

/* What comes before the copy keeps the buffer; so does a block that writes it, with all in it: it reads what it wrote.
 */
static bool is_redirected(const struct tir *ir, const struct cache_read_plan *plan, tir_block block) {
  tir_block scope = plan->cache.scope;
  if (!plan->cache.before || !tir_is_below(ir, block, scope)) return false;
  if (plan->count && !tir_is_cache_consumer(ir, block, plan->consumers, plan->count)) return false;
  if (tir_compare_position(ir, block, plan->cache.before) < 0) return false;
  for (tir_stmt s = block; s != scope; s = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, s, TIR_BLOCK) && tir_has_region_of(ir, tir_block_at(ir, s)->writes, plan->cache.buffer))
      return false;
  }
  return true;
}

/* What readers use of the cache is there, in its scope. */
static bool check_redirected(struct tir *ir, const struct cache_read_plan *plan, ms_error *err) {
  for (uint32_t u = tir_buffer_at(ir, plan->cache.buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (plan->writer && tir_scope_of(ir, b) == plan->cache.scope && is_redirected(ir, plan, b) &&
        !tir_check_cache_holds(ir, &plan->cache, b, err))
      return false;
    if (!tir_block_at(ir, b)->matches.count || !is_redirected(ir, plan, b)) continue;
    if (!tir_check_cache_matches(ir, &plan->cache, b, err)) return false;
  }
  return true;
}

static bool check_cache_read(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                             struct cache_read_plan *plan, ms_error *err) {
  if (!tir_check_cached_buffer(ir, block, buffer_index, false, scope, &plan->cache, err) ||
      !check_cover(ir, &plan->cache, err) || !tir_check_only_writer(ir, &plan->cache, &plan->writer, err))
    return false;
  /* What nothing writes may be copied before all that reads it, declared or not. */
  const struct tir_buffer_node *n = tir_buffer_at(ir, plan->cache.buffer);
  if ((n->writers || n->undeclared) && !tir_check_declared_around(ir, plan->cache.buffer, plan->cache.scope, err))
    return false;
  if (plan->writer && !tir_check_writes_exact(ir, plan->writer, err)) return false;
  if (!plan->writer && (!tir_check_input_declared(ir, &plan->cache, true, err) ||
                        !check_places(ir, &plan->cache, err) || !check_unwritten(ir, &plan->cache, block, err)))
    return false;
  if (!plan->writer)
    plan_input(ir, plan, block);
  else if (!plan_written(ir, plan, err))
    return false;
  return tir_settle_cached_region(ir, &plan->cache, plan->writer, err) && check_redirected(ir, plan, err);
}

static tir_block edit_cache_read(struct tir *ir, const struct cache_read_plan *plan) {
  tir_buffer cache = tir_make_cache(ir, &plan->cache);
  tir_block stage = tir_make_cache_stage(ir, &plan->cache, cache, false);
  for (uint32_t u = tir_buffer_at(ir, plan->cache.buffer)->readers, next; u; u = next) {
    tir_block b = ir->uses.at[u].block;
    next = ir->uses.at[u].next; /* redirecting takes b out of the list */
    if (b != stage && is_redirected(ir, plan, b)) tir_redirect_to_cache(ir, &plan->cache, cache, b);
  }
  return stage;
}

bool tir_cache_read(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                    const tir_block *consumers, uint32_t count, tir_block *out, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct cache_read_plan plan = {.consumers = consumers, .count = count, .cache.places_too = true};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_cache_read(ir, block, buffer_index, scope, &plan, err))) return false;
  *out = edit_cache_read(ir, &plan);
  return true;
}

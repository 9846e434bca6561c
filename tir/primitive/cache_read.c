/* Cache read: blocks that read a buffer read a copy of it in another storage scope instead.
 *
 * Requires: the block has a read region of this number; the storage scope is known; at most one child of the scope
 *           writes the buffer, what its children read of it is written before, and the consumers come after it.
 * After:    a block that copies what is written (of an input: the region that the scope declares, or the whole buffer)
 *           stands before the first consumer, at the lowest place above both writer and consumer; first in the scope if
 *           the buffer is an input. In a loop the cache has the buffer's shape; in the scope itself only the region's.
 *           All blocks in the scope, or the consumers given and their children, read the cache.
 * Forward:  nothing dies. */
#include "cache_stage.h"

struct plan {
  struct tir_cache_plan cache;
  tir_block writer; /* TIR_NONE: the buffer is an input of the scope */
  const tir_block *consumers;
  uint32_t count;
};

static const struct tir_region *region_of(const struct tir *ir, struct tir_span span, tir_buffer buffer,
                                          uint32_t *times) {
  const struct tir_region *found = NULL;
  *times = 0;
  for (uint32_t i = span.first; i < span.first + span.count; i++)
    if (ir->regions.at[i].buffer == buffer) {
      found = &ir->regions.at[i];
      ++*times;
    }
  return found;
}

/* The block that shall read the cache first: it must come after the writer. */
static bool find_first_consumer(struct tir *ir, struct plan *plan, tir_block *first, ms_error *err) {
  *first = TIR_NONE;
  for (uint32_t i = 0; i < plan->count; i++) {
    tir_block b = plan->consumers[i];
    if (tir_scope_of(ir, b) != plan->cache.scope) continue;
    if (b == plan->writer || tir_compare_position(ir, b, plan->writer) < 0)
      return tir_refuse(ir, err, MS_CONSUMER_BEFORE_WRITER, b, "consumer `%s` does not come after the writer `%s`",
                        tir_block_name(ir, b), tir_block_name(ir, plan->writer));
    if (!*first || tir_compare_position(ir, b, *first) < 0) *first = b;
  }
  if (plan->count) return true;
  for (uint32_t u = tir_buffer_at(ir, plan->cache.buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == plan->writer || tir_scope_of(ir, b) != plan->cache.scope) continue;
    if (tir_compare_position(ir, b, plan->writer) < 0) continue;
    if (!*first || tir_compare_position(ir, b, *first) < 0) *first = b;
  }
  return true;
}

static bool plan_written(struct tir *ir, struct plan *plan, ms_error *err) {
  tir_block first;
  uint32_t times;
  if (!find_first_consumer(ir, plan, &first, err)) return false;
  plan->cache.before = TIR_NONE;
  if (first) tir_place_cache(ir, &plan->cache, plan->writer, first);
  plan->cache.compact = !first || tir_stmt_at(ir, plan->cache.before)->parent == plan->cache.scope;
  const struct tir_region *written = region_of(ir, tir_block_at(ir, plan->writer)->writes, plan->cache.buffer, &times);
  struct tir_region region = *written;
  if (times > 1)
    tir_cache_whole(ir, &plan->cache);
  else
    tir_relax_cached_region(ir, &plan->cache, plan->writer, &region, TIR_NONE);
  return true;
}

static bool is_only_reader(const struct tir *ir, tir_block block, const struct tir_cache_plan *plan) {
  for (uint32_t u = tir_buffer_at(ir, plan->buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b != block && tir_scope_of(ir, b) == plan->scope) return false;
  }
  return true;
}

/* A condition inside the only block that reads the input narrows what is copied. */
static void plan_input(struct tir *ir, struct plan *plan, tir_block block) {
  struct tir_cache_plan *cache = &plan->cache;
  uint32_t times;
  cache->before = tir_stmt_at(ir, cache->scope)->first[TIR_BODY];
  cache->compact = true;
  const struct tir_region *read = region_of(ir, tir_block_at(ir, block)->reads, cache->buffer, &times);
  if (times == 1 && is_only_reader(ir, block, cache)) {
    struct tir_region region = *read;
    tir_expr nested = tir_nested_predicate(ir, block, cache->buffer, false);
    if (nested) {
      tir_relax_cached_region(ir, cache, block, &region, nested);
      return;
    }
  }
  const struct tir_region *outer = region_of(ir, tir_block_at(ir, cache->scope)->reads, cache->buffer, &times);
  tir_cache_whole(ir, cache);
  if (times == 1)
    for (uint32_t i = 0; i < 2 * cache->rank; i++) cache->ranges[i] = ir->operands.at[outer->ranges + i];
}

/* Every child of the scope that reads the buffer reads what is written before it. */
static bool check_cover(struct tir *ir, const struct tir_cache_plan *plan, ms_error *err) {
  for (uint32_t u = tir_buffer_at(ir, plan->buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (tir_scope_of(ir, b) != plan->scope || tir_has_region_cover(ir, b, plan->scope)) continue;
    return tir_refuse(ir, err, MS_READS_NOT_COVERED, b, "block `%s` reads more than is written before it",
                      tir_block_name(ir, b));
  }
  return true;
}

static bool check(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope, struct plan *plan,
                  ms_error *err) {
  if (!tir_check_cached_buffer(ir, block, buffer_index, false, scope, &plan->cache, err) ||
      !check_cover(ir, &plan->cache, err) ||
      !tir_check_cache_consumers(ir, &plan->cache, plan->consumers, plan->count, err) ||
      !tir_check_only_writer(ir, &plan->cache, &plan->writer, err))
    return false;
  if (plan->writer) return plan_written(ir, plan, err);
  plan_input(ir, plan, block);
  return true;
}

/* A block that writes the buffer keeps it, with all in it: its reads are of what it wrote. */
static bool is_redirected(const struct tir *ir, const struct plan *plan, tir_block block, tir_block stage) {
  tir_block scope = plan->cache.scope;
  if (block == stage || !tir_is_below(ir, block, scope)) return false;
  if (plan->count && !tir_is_cache_consumer(ir, block, plan->consumers, plan->count)) return false;
  if (tir_compare_position(ir, block, stage) < 0) return false;
  for (tir_stmt s = block; s != scope; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    uint32_t times;
    if (region_of(ir, tir_block_at(ir, s)->writes, plan->cache.buffer, &times)) return false;
  }
  return true;
}

static tir_block edit(struct tir *ir, const struct plan *plan) {
  tir_buffer cache = tir_make_cache(ir, &plan->cache);
  tir_block stage = tir_make_cache_stage(ir, &plan->cache, cache, false);
  for (uint32_t u = tir_buffer_at(ir, plan->cache.buffer)->readers, next; u; u = next) {
    tir_block b = ir->uses.at[u].block;
    next = ir->uses.at[u].next; /* redirecting takes b out of the list */
    if (is_redirected(ir, plan, b, stage)) tir_redirect_to_cache(ir, &plan->cache, cache, b);
  }
  return stage;
}

bool tir_cache_read(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                    const tir_block *consumers, uint32_t count, tir_block *out, ms_error *err) {
  struct plan plan = {.consumers = consumers, .count = count};
  struct tir_mark mark = tir_mark(ir);
  if (!check(ir, block, buffer_index, scope, &plan, err)) {
    tir_rewind(ir, &mark);
    return false;
  }
  *out = edit(ir, &plan);
  return true;
}

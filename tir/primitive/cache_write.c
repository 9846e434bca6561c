/* Cache write: a block writes a cache in another storage scope, and a further block copies it to the buffer.
 *
 * Requires: the block has a write region of this number, and no other of the buffer; the storage scope is known; no
 *           other child of the scope writes the buffer; what the scope does not allocate the block, and blocks in it,
 *           store all of, under no condition, of its own or around it and not around the copy; no data that is written
 *           says where, and none how much; the block does not read it but as a reduction
 *           does, from its own init, or the scope allocates the buffer and the cache holds all of it; parts of the
 *           buffer are matched in that storage scope only; no consumer given comes before the block, or reads more than
 *           it writes, and no block before it reads what an earlier iteration of a loop wrote, if the copy stands
 *           outside of that loop; nor does the scope itself.
 * After:    the block, what is in it, and the consumers given with all in them use the cache. The copy stands before
 *           the first other block that reads what the block wrote, at the lowest place above both; else last in the
 *           scope. In a loop the cache has the buffer's shape; in the scope itself only that of the region written. The
 *           copy is under the conditions that the writer as a whole is under; some iteration of its loops meets the
 *           others, wherever the copy runs.
 * Forward:  nothing dies. */
#include "cache_stage.h"
#include "tir/analysis/order/order.h"

#include <stdlib.h>

struct cache_write_plan {
  struct tir_cache_plan cache;
  tir_block writer;
  const tir_block *consumers;
  uint32_t count;
};

static bool is_redirected(const struct tir *ir, const struct cache_write_plan *plan, tir_block block) {
  if (block == plan->writer || tir_is_below(ir, block, plan->writer)) return true;
  return tir_is_below(ir, block, plan->cache.scope) && tir_is_cache_consumer(ir, block, plan->consumers, plan->count);
}

/* The scope's child that the block is, or is in, in its init too: what it reads is what the scope knows of. TIR_NONE:
 * it is neither. */
static tir_block child_around(const struct tir *ir, tir_block scope, tir_block block) {
  while (block && tir_parent_block(ir, block) != scope) block = tir_parent_block(ir, block);
  return block;
}

/* What blocks use of the cache is there, in its scope. */
static bool check_redirected(struct tir *ir, const struct cache_write_plan *plan, ms_error *err) {
  uint32_t lists[] = {tir_buffer_at(ir, plan->cache.buffer)->writers, tir_buffer_at(ir, plan->cache.buffer)->readers};
  for (int i = 0; i < 2; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next) {
      tir_block b = ir->uses.at[u].block;
      bool reads = i == 1 && is_redirected(ir, plan, b);
      tir_block child = reads ? child_around(ir, plan->cache.scope, b) : plan->writer;
      if (child && child != plan->writer && !tir_check_cache_holds(ir, &plan->cache, child, err)) return false;
      if (!tir_block_at(ir, b)->matches.count || !is_redirected(ir, plan, b)) continue;
      if (!tir_check_cache_matches(ir, &plan->cache, b, err)) return false;
    }
  return true;
}

/* A block before the writer reads what the iteration before wrote, in a loop around both: by then it is to be copied.
 * Nor can such a block read the cache, in which the first iteration finds nothing; one after it finds there what the
 * writer wrote, and nothing else. */
static bool check_readers(struct tir *ir, const struct cache_write_plan *plan, ms_error *err) {
  struct tir_transfer copy = {.block = plan->writer, .scope = plan->cache.scope, .keeps_iterations = true};
  copy.to = plan->cache.before ? tir_stmt_at(ir, plan->cache.before)->parent : plan->cache.scope;
  for (uint32_t u = tir_buffer_at(ir, plan->cache.buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == plan->writer || !tir_is_below(ir, b, plan->cache.scope) || tir_is_below(ir, b, plan->writer)) continue;
    bool later = tir_compare_position(ir, b, plan->writer) > 0;
    if (tir_scope_of(ir, b) != plan->cache.scope && !is_redirected(ir, plan, b)) continue;
    tir_block child = child_around(ir, plan->cache.scope, b);
    if (!child) continue;
    if (later && is_redirected(ir, plan, b) && !tir_has_region_cover(ir, child, plan->cache.scope))
      return tir_refuse(ir, err, MS_READS_NOT_COVERED, b, "block `%s` reads more than is written before it",
                        tir_block_name(ir, b));
    if (later) continue;
    if (is_redirected(ir, plan, b) || !tir_shares_the_same(ir, &copy, b))
      return tir_refuse(ir, err, MS_CACHE_READ_EARLIER, b, "block `%s` reads the buffer before block `%s` writes it",
                        tir_block_name(ir, b), tir_block_name(ir, plan->writer));
  }
  return true;
}

/* Blocks that read the buffer after the writer without declaring it come after the copy too; *first: the first of them,
 * or what it was. Other undeclared uses are refused. */
static bool check_undeclared(struct tir *ir, const struct cache_write_plan *plan, tir_block *first, ms_error *err) {
  tir_block scope = plan->cache.scope;
  struct tir_access own = tir_access_of(ir, plan->writer, plan->cache.buffer);
  if (own.reads && !own.declares_reads)
    return tir_refuse(ir, err, MS_CACHE_IN_PLACE, plan->writer,
                      "block `%s` reads what it writes, and does not declare it", tir_block_name(ir, plan->writer));
  for (uint32_t u = tir_buffer_at(ir, plan->cache.buffer)->undeclared; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == plan->writer || !tir_is_below(ir, b, scope)) continue;
    bool after = tir_compare_position(ir, b, plan->writer) > 0 && !tir_is_below(ir, b, plan->writer);
    if (!after || tir_access_of(ir, b, plan->cache.buffer).writes)
      return tir_refuse_undeclared(ir, b, plan->cache.buffer, err);
    if (!*first || tir_compare_position(ir, b, *first) < 0) *first = b;
  }
  return true;
}

/* Whatever the block reads of the buffer it wrote before: the cache, which lives as long as the buffer, holds all of
 * it. */
static bool reads_its_own(const struct tir *ir, const struct cache_write_plan *plan) {
  const struct tir_cache_plan *cache = &plan->cache;
  return tir_buffer_at(ir, cache->buffer)->where == cache->scope &&
         (!cache->compact || tir_is_whole_buffer(ir, cache->buffer, cache->ranges));
}

/* The copy is of one region, whatever conditions of the scope stand around the block. */
static bool check_region(struct tir *ir, const struct cache_write_plan *plan, ms_error *err) {
  tir_block block = plan->writer;
  const char *name = tir_block_name(ir, block), *buffer = tir_buffer_name(ir, plan->cache.buffer);
  if (tir_count_regions_of(ir, tir_block_at(ir, block)->writes, plan->cache.buffer) > 1)
    return tir_refuse(ir, err, MS_SEVERAL_WRITERS, block, "block `%s` writes several regions of buffer `%s`", name,
                      buffer);
  tir_stmt place = plan->cache.before ? tir_stmt_at(ir, plan->cache.before)->parent : plan->cache.scope;
  tir_stmt condition = tir_nearest_condition(ir, block, place);
  return !condition ||
         tir_refuse(ir, err, MS_NOT_ONLY_LOOPS_BETWEEN, condition,
                    "a condition stands around block `%s`, and not around the copy of `%s`", name, buffer);
}

static bool check_cache_write(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                              struct cache_write_plan *plan, ms_error *err) {
  struct tir_cache_plan *cache = &plan->cache;
  if (!tir_check_cached_buffer(ir, block, buffer_index, true, scope, cache, err) ||
      !tir_check_only_writer(ir, cache, &plan->writer, err))
    return false;
  assert(plan->writer == block);
  /* What the block leaves out would be copied over what others wrote there. */
  tir_expr nested = tir_nested_predicate(ir, block, cache->buffer, true);
  if (tir_buffer_at(ir, cache->buffer)->where != cache->scope &&
      !tir_check_stores_all(ir, block, cache->buffer, nested, err))
    return false;
  if (!tir_check_declared_around(ir, cache->buffer, cache->scope, err) || !tir_check_writes_exact(ir, block, err) ||
      !tir_check_reduces_inside(ir, block, cache->scope, err))
    return false;
  tir_block reader = tir_first_reader(ir, cache->scope, block, plan->consumers, plan->count);
  if (!check_undeclared(ir, plan, &reader, err)) return false;
  tir_stmt user = tir_first_user(ir, cache, block, reader);
  cache->before = TIR_NONE;
  if (user) tir_place_cache(ir, cache, block, user);
  cache->compact = !user || tir_stmt_at(ir, cache->before)->parent == cache->scope;
  if (!check_region(ir, plan, err) || !check_readers(ir, plan, err) || !tir_check_early_loads(ir, cache, block, err))
    return false;
  struct tir_region region = ir->regions.at[tir_block_at(ir, block)->writes.first + buffer_index];
  tir_relax_cached_region(ir, cache, block, &region, nested);
  if (!tir_settle_cached_region(ir, cache, block, err) || !check_redirected(ir, plan, err)) return false;
  if (reads_its_own(ir, plan) || !tir_reads_from_before(ir, block, cache->buffer)) return true;
  return tir_refuse(ir, err, MS_CACHE_IN_PLACE, block, "block `%s` reads what it writes, and nothing in it comes first",
                    tir_block_name(ir, block));
}

static void redirect_all(struct tir *ir, const struct cache_write_plan *plan, tir_buffer cache, uint32_t uses) {
  for (uint32_t u = uses, next; u; u = next) {
    tir_block b = ir->uses.at[u].block;
    next = ir->uses.at[u].next; /* redirecting takes b out of the list */
    if (is_redirected(ir, plan, b)) tir_redirect_to_cache(ir, &plan->cache, cache, b);
  }
}

static tir_block edit_cache_write(struct tir *ir, const struct cache_write_plan *plan) {
  tir_buffer cache = tir_make_cache(ir, &plan->cache);
  redirect_all(ir, plan, cache, tir_buffer_at(ir, plan->cache.buffer)->writers);
  redirect_all(ir, plan, cache, tir_buffer_at(ir, plan->cache.buffer)->readers);
  return tir_make_cache_stage(ir, &plan->cache, cache, true);
}

bool tir_cache_write(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                     const tir_block *consumers, uint32_t count, tir_block *out, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct cache_write_plan plan = {.consumers = consumers, .count = count};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_cache_write(ir, block, buffer_index, scope, &plan, err))) return false;
  *out = edit_cache_write(ir, &plan);
  return true;
}

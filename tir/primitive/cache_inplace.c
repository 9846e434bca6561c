/* Cache in place: a block that updates a buffer does so in a copy of it in another storage scope.
 *
 * Requires: the block has a read region of this number, of a buffer that it writes too, within what it reads; the scope
 *           is known and the block's scope a stage pipeline; parts of the buffer are matched in that storage scope; the
 *           block declares all that is in it, and writes no less than it declares; directly in a scope that is no
 *           root, it reads no more than it writes.
 * After:    right before the block, a block copies what it reads into the copy; right after it, one copies what it
 *           writes back. Both have the copy's name, and the block's predicate. Where the block is directly in its scope
 *           the copy holds the region only, else, or where the region begins at loops around a scope without
 *           iterations, it has the buffer's shape. The scope is no stage pipeline any more.
 * Forward:  nothing dies. */
#include "cache_stage.h"

struct cache_inplace_plan {
  tir_block block;
  struct tir_cache_plan in, out; /* the copy there, and back */
};

static bool check_matches(struct tir *ir, const struct cache_inplace_plan *plan, ms_error *err) {
  for (tir_stmt s = plan->block; s; s = tir_next(ir, s, plan->block))
    if (tir_is(ir, s, TIR_BLOCK) && !tir_check_cache_matches(ir, &plan->in, s, err)) return false;
  return true;
}

static bool covers(struct tir *ir, const struct tir_cache_plan *all, const struct tir_cache_plan *part) {
  for (uint32_t i = 0; i < all->rank; i++) {
    struct tir_interval outer = tir_interval_of(ir, all->ranges[2 * i], all->ranges[2 * i + 1]);
    struct tir_interval inner = tir_interval_of(ir, part->ranges[2 * i], part->ranges[2 * i + 1]);
    if (!tir_interval_covers(ir, outer, inner)) return false;
  }
  return true;
}

/* A copy of the region goes back whole: a scope that is no root declares what it writes, and not what it reads. */
static bool check_declared(struct tir *ir, const struct cache_inplace_plan *plan, ms_error *err) {
  if (!plan->in.compact || !tir_parent_block(ir, plan->in.scope) || covers(ir, &plan->out, &plan->in)) return true;
  return tir_refuse(ir, err, MS_NOT_IN_PLACE, plan->block,
                    "block `%s` reads more of `%s` than it writes, and all of that would be copied back",
                    tir_block_name(ir, plan->block), tir_buffer_name(ir, plan->in.buffer));
}

static bool check_cache_inplace(struct tir *ir, tir_block block, uint32_t buffer_index, const char *storage,
                                struct cache_inplace_plan *plan, ms_error *err) {
  plan->block = block;
  if (!tir_check_cached_buffer(ir, block, buffer_index, false, storage, &plan->in, err)) return false;
  struct tir_span reads = tir_block_at(ir, block)->reads, writes = tir_block_at(ir, block)->writes;
  uint32_t read = tir_count_regions_of(ir, reads, plan->in.buffer),
           written = tir_count_regions_of(ir, writes, plan->in.buffer);
  if (read != 1 || written != 1)
    return tir_refuse(ir, err, MS_NOT_IN_PLACE, block, "block `%s` reads `%s` in %u regions and writes it in %u",
                      tir_block_name(ir, block), tir_buffer_name(ir, plan->in.buffer), read, written);
  struct tir_region regions[] = {*tir_region_of(ir, reads, plan->in.buffer),
                                 *tir_region_of(ir, writes, plan->in.buffer)};
  plan->in.before = block;
  plan->in.compact = tir_stmt_at(ir, block)->parent == plan->in.scope;
  plan->out = plan->in;
  tir_relax_cached_region(ir, &plan->in, block, &regions[0], TIR_NONE);
  tir_relax_cached_region(ir, &plan->out, block, &regions[1], TIR_NONE);
  if (plan->in.named || plan->out.named)
    return tir_refuse(ir, err, MS_NOT_IN_PLACE, block, "names bound around block `%s` say what it uses of `%s`",
                      tir_block_name(ir, block), tir_buffer_name(ir, plan->in.buffer));
  if (!covers(ir, &plan->in, &plan->out))
    return tir_refuse(ir, err, MS_NOT_IN_PLACE, block, "block `%s` writes more of `%s` than it reads",
                      tir_block_name(ir, block), tir_buffer_name(ir, plan->in.buffer));
  if (!tir_settle_cached_region(ir, &plan->in, TIR_NONE, err) ||
      !tir_check_copy_condition(ir, &plan->out, block, err) || !tir_check_copy_condition(ir, &plan->in, block, err))
    return false;
  plan->out.compact = plan->in.compact;
  return check_declared(ir, plan, err) && check_matches(ir, plan, err) && tir_check_declares_inner(ir, block, err) &&
         tir_check_writes_exact(ir, block, err) && tir_check_stage_pipeline(ir, plan->in.scope, err);
}

/* The copy back goes through the same cache, which may begin where what is read does. */
static tir_block make_stage_back(struct tir *ir, const struct cache_inplace_plan *plan, tir_buffer cache) {
  const struct tir_cache_plan *region = plan->in.compact ? &plan->in : &plan->out;
  tir_block back = tir_make_cache_stage(ir, region, cache, true);
  tir_stmt nest = tir_stmt_at(ir, plan->block)->prev;
  tir_detach(ir, nest);
  tir_insert_after(ir, plan->block, nest);
  return back;
}

static void edit_cache_inplace(struct tir *ir, const struct cache_inplace_plan *plan, tir_block out[2]) {
  tir_buffer cache = tir_make_cache(ir, &plan->in);
  for (tir_stmt s = plan->block; s; s = tir_next(ir, s, plan->block))
    if (tir_is(ir, s, TIR_BLOCK)) tir_redirect_to_cache(ir, &plan->in, cache, s);
  out[0] = tir_make_cache_stage(ir, &plan->in, cache, false);
  out[1] = make_stage_back(ir, plan, cache);
  tir_renew_pipeline(ir, plan->in.scope); /* what is copied in is written after */
}

bool tir_cache_inplace(struct tir *ir, tir_block block, uint32_t read_buffer_index, const char *storage,
                       tir_block out[2], ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct cache_inplace_plan plan = {0};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(ir, &mark, check_cache_inplace(ir, block, read_buffer_index, storage, &plan, err)))
    return false;
  edit_cache_inplace(ir, &plan, out);
  return true;
}

/* What caching reads and writes share: where the copy is placed, what it copies, how blocks are redirected to it.
 * Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_CACHE_STAGE_H
#define MSCHED_TIR_PRIMITIVE_CACHE_STAGE_H

#include "tir/analysis/analysis.h"

enum { TIR_MOST_CACHED_RANK = 16 };

/* Found by a check, followed by an edit. */
struct tir_cache_plan {
  tir_block scope;     /* allocates the cache */
  tir_buffer buffer;   /* what is cached */
  const char *storage; /* the cache's scope */
  tir_stmt first;      /* of the scope's body, past what declares the buffer in it */
  tir_stmt before;     /* the copy's place: before this statement; TIR_NONE: last in the scope */
  bool compact;        /* the cache holds the region only, from its minimum on; else it has the buffer's shape */
  bool named;          /* names that are bound around the block are in the region: the whole buffer is copied */
  bool strided;        /* not all between its ends is written, or read */
  bool bounded;        /* nor may it be under the predicate */
  bool left_out;       /* conditions on loops that no dimension depends on may leave out all of it */
  bool places_too;     /* regions whose places load the buffer load the cache: CacheRead's, as those of TVM */
  tir_expr predicate;  /* of the copy: conditions of the writer that hold for all of its region, or for none */
  uint32_t rank;
  tir_expr ranges[2 * TIR_MOST_CACHED_RANK]; /* the region copied: min and extent of each dimension in turn */
};

bool tir_check_storage_scope(const char *storage, ms_error *err);
/* The buffer of a block's read or write number `index`; refuses an index out of range. Fills plan->buffer, scope, rank,
 * storage. */
bool tir_check_cached_buffer(struct tir *ir, tir_block block, uint32_t index, bool write, const char *storage,
                             struct tir_cache_plan *plan, ms_error *err);
/* The only child of the scope that writes the buffer; TIR_NONE: none does. Refuses two, and a scope that stores to it
 * itself. */
bool tir_check_only_writer(struct tir *ir, const struct tir_cache_plan *plan, tir_block *writer, ms_error *err);
/* Where the buffer is an input of the scope that is written elsewhere, the scope declares that it reads it: else blocks
 * in it, whose regions may be wider than what they read, may have more copied than was written by then. `one_region`:
 * it declares so once, and does not write it: of several regions the copy is of the whole buffer. */
bool tir_check_input_declared(struct tir *ir, const struct tir_cache_plan *plan, bool one_region, ms_error *err);
/* The first block of the scope after the writer that reads something of what it wrote, whichever buffer that is; those
 * among the `count` consumers, and what is in them, are left out. TIR_NONE: there is none. */
tir_block tir_first_reader(const struct tir *ir, tir_block scope, tir_block writer, const tir_block *consumers,
                           uint32_t count);
/* The first statement after the writer that shall come after a copy to the buffer: `reader` (TIR_NONE: none), or what
 * comes before it and loads the buffer in a range, binding or predicate. */
tir_stmt tir_first_user(struct tir *ir, const struct tir_cache_plan *plan, tir_block writer, tir_block reader);
/* Places the copy between the writer and `user`, the first statement of the scope that shall come after it. */
void tir_place_cache(const struct tir *ir, struct tir_cache_plan *plan, tir_block writer, tir_stmt user);
/* Where a loop around both, and not around the copy that is placed, has the scope itself load the buffer before the
 * writer, an iteration would miss what those before it wrote: refused. */
bool tir_check_early_loads(struct tir *ir, const struct tir_cache_plan *plan, tir_block writer, ms_error *err);
/* What `region` of `block` covers while the loops between the block and the copy run: plan->ranges, cut to the buffer,
 * and plan->predicate. `nested` (TIR_NONE: true) is a further condition on the block's iterations. */
void tir_relax_cached_region(struct tir *ir, struct tir_cache_plan *plan, tir_block block,
                             const struct tir_region *region, tir_expr nested);
/* The region as it stands, cut to the buffer. */
void tir_cache_region(struct tir *ir, struct tir_cache_plan *plan, const struct tir_region *region);
/* The whole buffer. */
void tir_cache_whole(struct tir *ir, struct tir_cache_plan *plan);
/* The cache holds a region that stands still: where it begins at loops around the scope, which blocks with iterations
 * cannot name, it has the buffer's shape instead. Refuses a strided region: the copy would read what is not written.
 */
bool tir_settle_cached_region(struct tir *ir, struct tir_cache_plan *plan, tir_block writer, ms_error *err);
/* Refuses a copy back under a condition that loads the buffer. */
bool tir_check_copy_condition(struct tir *ir, const struct tir_cache_plan *plan, tir_block writer, ms_error *err);
/* A compact cache holds what the block reads of the buffer, whatever is known of its reads from before: else its
 * accesses would leave the cache. */
bool tir_check_cache_holds(struct tir *ir, const struct tir_cache_plan *plan, tir_block reader, ms_error *err);
/* The condition under which blocks inside `block` use the buffer, one of them at least; TIR_NONE: always, or unknown.
 */
tir_expr tir_nested_predicate(struct tir *ir, tir_block block, tir_buffer buffer, bool write);
/* The block is one of `count` consumers, or in one, however deep. */
bool tir_is_cache_consumer(const struct tir *ir, tir_block block, const tir_block *consumers, uint32_t count);
/* What the block matches of the buffer can be matched of the cache: it is in the same storage scope. */
bool tir_check_cache_matches(const struct tir *ir, const struct tir_cache_plan *plan, tir_block block, ms_error *err);

tir_buffer tir_make_cache(struct tir *ir, const struct tir_cache_plan *plan);
/* The copy: from the buffer to the cache, or (`back`) from the cache to the buffer; put in its place. */
tir_block tir_make_cache_stage(struct tir *ir, const struct tir_cache_plan *plan, tir_buffer cache, bool back);
/* What the block itself (not blocks in it) does with the buffer, it does with the cache. */
void tir_redirect_to_cache(struct tir *ir, const struct tir_cache_plan *plan, tir_buffer cache, tir_block block);

#endif

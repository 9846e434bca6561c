/* What primitives that change a buffer share: finding it, its users, and putting another in its place.
 * Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_BUFFER_H
#define MSCHED_TIR_PRIMITIVE_BUFFER_H

#include "tir/analysis/analysis.h"

enum { TIR_MOST_EDITED_RANK = 16 }; /* dimensions of a buffer that such a primitive takes */
enum { TIR_MOST_USERS = 64, TIR_MOST_VARS_IN = 64 };

/* Whether the block has a read (write) region of this number. */
bool tir_check_region_number(const struct tir *ir, tir_block block, int64_t number, bool write, ms_error *err);
/* The buffer of a block's read or write number `index`; refuses an index out of range, and more dimensions than
 * TIR_MOST_EDITED_RANK. */
bool tir_check_buffer_of(struct tir *ir, tir_block block, uint32_t index, bool write, tir_buffer *out, ms_error *err);
/* A block allocates the buffer: it is no parameter, matched by none, and no statement's. */
bool tir_check_allocated(struct tir *ir, tir_block block, tir_buffer buffer, ms_error *err);

/* Blocks. on_stack serves few; tir_blocks_free when done. */
struct tir_blocks {
  tir_block *at, on_stack[TIR_MOST_USERS];
  uint32_t count;
};
void tir_blocks_free(struct tir_blocks *blocks);
/* Blocks that read or write the buffer, telling so or not, and are `top` or below it (TIR_NONE: all), those inside
 * others first. */
void tir_find_users(struct tir *ir, tir_buffer buffer, tir_stmt top, struct tir_blocks *out);

/* How a use of buffer `from` becomes one of `to`. All are optional but load; they see `to`'s indices as theirs to make.
 */
struct tir_buffer_change {
  tir_buffer from, to;
  /* The value of a load of `from` at indices that are no part of the arena. */
  tir_expr (*load)(struct tir *ir, void *context, const tir_expr *indices, uint32_t count);
  /* A store to `from`, which stands as it was, but for the loads in it: to be made one to `to`. */
  void (*store)(struct tir *ir, void *context, tir_stmt store);
  void *context;
};
/* Changes what the block itself evaluates and stores; its regions and matches are the caller's. */
void tir_change_own_uses(struct tir *ir, const struct tir_buffer_change *change, tir_block block);
/* Changes the loads in ranges of regions, of all blocks: for a buffer that will be no more. */
void tir_change_range_loads(struct tir *ir, const struct tir_buffer_change *change);
/* Each of the block's regions of `from`, read or written, becomes what `change` makes of it. */
void tir_change_regions(struct tir *ir, tir_block block, tir_buffer from,
                        struct tir_region (*change)(struct tir *ir, const void *context, struct tir_region region),
                        const void *context);
/* The block's regions of `from` are detected again, as regions of `to`, which its body uses now; its other regions
 * stay. `own`: a reduction reads of the buffer what its init wrote, which detection takes for no read: it then declares
 * to read what it writes. */
void tir_renew_regions_of(struct tir *ir, tir_block block, tir_buffer from, tir_buffer to, bool own);
/* The block's regions of `from` become the same of `to`; so do the sources of its matches. */
void tir_retarget_regions(struct tir *ir, tir_block block, tir_buffer from, tir_buffer to);

/* Variables with domains that hold in a block: its iterations, those of blocks around it, loops in it. */
struct tir_vars_in {
  tir_var at[TIR_MOST_VARS_IN];
  uint32_t count;
  bool units; /* some have one value only */
};
void tir_find_vars_in(const struct tir *ir, tir_block block, struct tir_vars_in *out);
/* Indices of an access in that block, in simplest form: variables of one value stand alone or not at all. */
void tir_simplify_access(struct tir *ir, const struct tir_vars_in *vars, const tir_expr *indices, uint32_t count,
                         tir_expr *out);

/* A buffer like `from`, not yet allocated anywhere, used by none. */
tir_buffer tir_copy_buffer(struct tir *ir, tir_buffer from);
/* `to` is allocated in the place of `from`. */
void tir_replace_alloc(struct tir *ir, tir_block block, tir_buffer from, tir_buffer to);

#endif

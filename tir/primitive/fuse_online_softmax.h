/* FuseOnlineSoftmax: what its check finds, and its edit makes. Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_FUSE_ONLINE_SOFTMAX_H
#define MSCHED_TIR_PRIMITIVE_FUSE_ONLINE_SOFTMAX_H

#include "tir/analysis/analysis.h"

enum { TIR_MOST_SOFTMAX_ITERS = 16, TIR_MOST_SOFTMAX_PRODUCERS = 8, TIR_MOST_SOFTMAX_PADS = 16 };

/* Maximum, sum or product: what it reduces, and into what. */
struct tir_softmax_part {
  tir_block block;
  tir_buffer buffer;
  uint32_t indices, rank; /* of the element that it writes, in tir.operands */
  tir_expr value;         /* what is reduced: of all three, once checked, in terms of the product's iterations */
  tir_var column;         /* the iteration that reduces */
};

/* A block that makes what the maximum is of: its iterations, in terms of the product's; TIR_NONE: it reduces. */
struct tir_softmax_producer {
  tir_block block;
  tir_buffer buffer;
  tir_expr at[TIR_MOST_SOFTMAX_ITERS];
};

/* A buffer that sums read at rows or columns that grow: its dimension of these, or -1; the copy of it. */
struct tir_softmax_pad {
  tir_buffer from, to;
  int row, column;
};

struct tir_fused_softmax {
  tir_block scope;
  struct tir_softmax_part maximum, sum, product;
  bool infinite;                        /* the maximum begins with negative infinity */
  tir_expr row[TIR_MOST_SOFTMAX_ITERS]; /* of each dimension of the maximum: an iteration of the product, or 0 */
  int tiled;                            /* the dimension whose rows are tiled */
  int64_t row_tile, column_tile;
  int64_t row_multiple;    /* rows grow to a multiple of it, columns to whole tiles; 0: they do not */
  int64_t parts;           /* of the columns, each with its own maximum and sums, which are joined */
  int64_t rows, columns;   /* that are computed: of the tiled dimension, those that grow too */
  bool skips;              /* tiles that are masked */
  tir_expr exponential, x; /* exp(x - maximum), in the product */
  tir_expr headroom;       /* what is taken from the maximum there; TIR_NONE: nothing */
  tir_expr normalizer;     /* what the product is divided by, or multiplied; TIR_NONE: nothing */
  bool multiplies;
  struct tir_softmax_producer producers[TIR_MOST_SOFTMAX_PRODUCERS];
  uint32_t producer_count;
  struct tir_softmax_pad pads[TIR_MOST_SOFTMAX_PADS];
  uint32_t pad_count;
};

/* A factor of the product with `weight` in the place of the exponential, without the normalizer, which is stored in the
 * plan. TIR_NONE: it is no product of one exponential. */
tir_expr tir_weigh(struct tir *ir, struct tir_fused_softmax *plan, tir_expr e, tir_expr weight);
/* All iterations of the block run over all of their domains, which are constant and begin at 0. */
bool tir_runs_whole(struct tir *ir, tir_block block);
/* The store that is all of a block's body; TIR_NONE: it is another. */
tir_stmt tir_softmax_store(const struct tir *ir, tir_block block);
/* Finds blocks that nobody but the three parts, and each other, reads from, and that can be made tile by tile; in order
 * of text. */
void tir_find_softmax_producers(struct tir *ir, struct tir_fused_softmax *plan);
/* Whether rows and columns may grow as they are asked to, and be divided into parts; finds what is padded. */
bool tir_check_softmax_growth(struct tir *ir, struct tir_fused_softmax *plan, ms_error *err);
/* How many rows, or columns, an iteration of the product has, those that grow too. */
int64_t tir_grown_extent(const struct tir *ir, const struct tir_fused_softmax *plan, tir_var of);
/* Makes the padded copies before a statement of the scope. */
void tir_make_softmax_pads(struct tir *ir, struct tir_fused_softmax *plan, tir_stmt before);
/* What the block reads at rows and columns that grow: of the copies, where these are given as the indices that grow; or
 * else, outside of a buffer, zero. `row`, `column`: as the block has them. */
void tir_pad_softmax_reads(struct tir *ir, const struct tir_fused_softmax *plan, tir_block block, tir_expr row,
                           tir_expr column);
/* By how much a mask's comparison of small with large fails at an element, where x is masked by it with the least
 * value and it holds of the first column in each row: it fails where this is above 0. In the product's terms, before
 * the edit. TIR_NONE: there is no such mask. */
tir_expr tir_find_softmax_mask(struct tir *ir, const struct tir_fused_softmax *plan);
/* Notes where the fused block's body may be left out, by its iterations, which stand for rows and tiles of columns:
 * what is in it alone is masked. Without the note, where the mask is no sum over them. */
void tir_note_softmax_mask(struct tir *ir, const struct tir_fused_softmax *plan, tir_expr mask, tir_block fused,
                           const tir_expr *rows, tir_expr column);
/* Makes the fused block, and gives it. */
tir_block tir_edit_fused_softmax(struct tir *ir, struct tir_fused_softmax *plan);

#endif

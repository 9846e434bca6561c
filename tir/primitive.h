/* The scheduling primitives: one a file in primitive/. Each checks (reads only; may intern expressions), then edits
 * (cannot fail), and appends to the module's `forwards` what became of loops and blocks. false: `err` says which
 * precondition failed, and the module is as it was. Part of tir.h; included from there only.
 *
 * Loops are given outermost first where order matters. `out` arrays are the caller's; their sizes are stated.
 * What each requires, makes and forwards stands at the top of its file. Source: TensorIR (ASPLOS 2023), section 3. */

/* Finds what primitives ask of each scope: whether it is a stage pipeline, whether its blocks' reads are covered. Of
 * the blocks from record `first` on. To be called of a workload that is to be scheduled and copied (from 1), so that it
 * is not looked for in each copy, and of what each instruction has made: later, splits and predicates may hide it, and
 * what is found must not depend on who asks when. Finds undeclared uses too, where there may be some. */
void tir_find_pipelines(struct tir *ir, uint32_t first);
/* Finds again which blocks use buffers in a way that no region declares: after edits that leave such uses, or change
 * bodies that have them. */
void tir_find_undeclared(struct tir *ir);
bool tir_declares_all(struct tir *ir); /* finds them again; true: there are none */

/* Splits a loop by factors, outermost first; at most one is TIR_NONE and is inferred. Writes `count` loops. Unless unit
 * iterators are preserved, bindings below do without loops of extent 1. */
bool tir_split(struct tir *ir, tir_loop loop, const tir_expr *factors, uint32_t count, bool preserve_unit_iters,
               bool disable_predication, tir_loop *out, ms_error *err);
bool tir_fuse(struct tir *ir, const tir_loop *loops, uint32_t count, bool preserve_unit_iters, tir_loop *out,
              ms_error *err);
/* Loops in their order in the new body; *out: the innermost of the merged nest. */
bool tir_merge(struct tir *ir, const tir_loop *loops, uint32_t count, tir_loop *out, ms_error *err);
/* Factors: the parts' lengths, in order; at most one is TIR_FACTOR_OPEN. Writes *parts loops, count + 1 at most. */
#define TIR_FACTOR_OPEN INT64_MIN
bool tir_loop_partition(struct tir *ir, tir_loop loop, const int64_t *factors, uint32_t count, tir_loop *out,
                        uint32_t *parts, ms_error *err);
bool tir_add_unit_loop(struct tir *ir, tir_stmt target, tir_loop *out, ms_error *err); /* target: a block or loop */
/* order[i]: the number, from 0, of the iteration that shall be the i-th. */
bool tir_reorder_block_iter_var(struct tir *ir, tir_block block, const int64_t *order, uint32_t count, ms_error *err);
bool tir_reorder(struct tir *ir, const tir_loop *loops, uint32_t count, ms_error *err);
bool tir_parallel(struct tir *ir, tir_loop loop, ms_error *err);
bool tir_vectorize(struct tir *ir, tir_loop loop, ms_error *err);
/* Whether tir_parallel and tir_vectorize would be accepted. */
bool tir_is_data_parallel(struct tir *ir, tir_loop loop);
bool tir_unroll(struct tir *ir, tir_loop loop, ms_error *err);
bool tir_bind(struct tir *ir, tir_loop loop, const char *thread, ms_error *err); /* "threadIdx.x", "vthread.x", … */

bool tir_compute_inline(struct tir *ir, tir_block block, ms_error *err);
bool tir_reverse_compute_inline(struct tir *ir, tir_block block, ms_error *err);
/* Whether tir_compute_inline (or its reverse) would be accepted; the module is left as it was. */
bool tir_can_compute_inline(struct tir *ir, tir_block block);
bool tir_can_reverse_compute_inline(struct tir *ir, tir_block block);

/* index: among the possible places in the loop's body; -1 the last, -2 the first. */
bool tir_compute_at(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index, ms_error *err);
bool tir_reverse_compute_at(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index,
                            ms_error *err);
/* tir_compute_at of a block for which tir_compute_locations has found loops, in the module as it is now: what does not
 * depend on the loop holds, and is not asked again. */
bool tir_compute_located(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index,
                         ms_error *err);
/* Whether they would be accepted, at index -1; the module is left as it was. So are the others of this name. */
bool tir_can_compute_at(struct tir *ir, tir_block block, tir_loop loop);
bool tir_can_reverse_compute_at(struct tir *ir, tir_block block, tir_loop loop);
/* The loops that tir_compute_at (forward) or tir_reverse_compute_at may move `block` to now, outermost first, as
 * SampleComputeLocation collects them. Returns their number, stores at most `most`. */
uint32_t tir_compute_locations(struct tir *ir, tir_block block, tir_loop *out, uint32_t most);

/* buffer_index: among the block's reads (writes). consumers: blocks that shall use the cache; none: all that can. */
bool tir_cache_read(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                    const tir_block *consumers, uint32_t count, tir_block *out, ms_error *err);
bool tir_cache_write(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                     const tir_block *consumers, uint32_t count, tir_block *out, ms_error *err);

bool tir_decompose_reduction(struct tir *ir, tir_block block, tir_loop loop, tir_block *init, ms_error *err);
bool tir_can_decompose_reduction(struct tir *ir, tir_block block, tir_loop loop);
/* buffer_index: among the block's writes. */
bool tir_rolling_buffer(struct tir *ir, tir_block block, uint32_t buffer_index, ms_error *err);
bool tir_decompose_padding(struct tir *ir, tir_block block, tir_loop loop, tir_block *constant, ms_error *err);
bool tir_rfactor(struct tir *ir, tir_loop loop, int factor_axis, tir_block *out, ms_error *err);
/* Whether a known reducer makes what the block reduces. May intern expressions. */
bool tir_has_reducer(struct tir *ir, tir_block block);
bool tir_can_rfactor(struct tir *ir, tir_loop loop, int factor_axis);
/* Makes one pass of a maximum, and of the sum of exponentials of the distances to it. */
bool tir_online_softmax(struct tir *ir, tir_block maximum, tir_block sum, ms_error *err);
/* Of the same two, or with a block between them that stores the exponentials: blocks of steps * lanes columns have
 * maxima of their own, one each lane; out: the blocks of these maxima, of the sums, and of the factors to the rows'. */
bool tir_rebase_exponential(struct tir *ir, tir_block maximum, tir_block sum, int64_t steps, int64_t lanes,
                            tir_block *out, ms_error *err);
/* Tiles of rows and columns; row_multiple: rows grow to a multiple of it, columns to whole tiles, 0: neither does;
 * parts: of the columns, 1: all of them are one; skips: tiles that are masked do not run. */
struct tir_softmax_tiling {
  int64_t rows, columns, row_multiple, parts;
  bool skips;
};
/* blocks: maximum, sum, and the sum of products that reads the softmax; *out: the fused block. */
bool tir_fuse_online_softmax(struct tir *ir, const tir_block *blocks, const struct tir_softmax_tiling *tiling,
                             tir_block *out, ms_error *err);
bool tir_fuse_reduction_epilogue(struct tir *ir, tir_block reduction, tir_block epilogue, ms_error *err);
/* Makes one expression of a reduction over a window of at most 64 terms, added in their order. */
bool tir_unroll_reduction(struct tir *ir, tir_block block, ms_error *err);

/* Makes one block of a loop and what is below it, or of blocks that follow one another, with the loops around each. */
bool tir_blockize(struct tir *ir, tir_loop loop, bool preserve_unit_iters, tir_block *out, ms_error *err);
bool tir_blockize_blocks(struct tir *ir, const tir_block *blocks, uint32_t count, bool preserve_unit_iters,
                         tir_block *out, ms_error *err);
struct tir_index_map;
/* Has a block, or what is below a loop, done by a tensor intrinsic: two modules of one function each, borrowed. */
bool tir_tensorize(struct tir *ir, tir_stmt target, const struct tir *description, const struct tir *implementation,
                   bool preserve_unit_iters, ms_error *err);

/* Unsafe. The block's region of this number is what the map makes of its iterations: begin and end, a dimension each.
 */
bool tir_annotate_buffer_access(struct tir *ir, tir_block block, uint32_t buffer_index, bool write,
                                const struct tir_index_map *map, ms_error *err);
/* Unsafe. Drops regions of these numbers; side: "read" or "write". */
bool tir_unsafe_hide_buffer_access(struct tir *ir, tir_block block, const char *side, const int64_t *indices,
                                   uint32_t count, ms_error *err);
/* Has what is below the loop read (write) a copy of a buffer in another storage scope, made (copied back) there. */
bool tir_read_at(struct tir *ir, tir_loop loop, tir_block block, uint32_t read_buffer_index, const char *storage,
                 tir_block *out, ms_error *err);
bool tir_write_at(struct tir *ir, tir_loop loop, tir_block block, uint32_t write_buffer_index, const char *storage,
                  tir_block *out, ms_error *err);

/* Has index arithmetic of a block, met `threshold` times or more, computed by blocks of its own: `count`, at most
 * `most`.
 */
bool tir_cache_index(struct tir *ir, tir_block block, const char *storage, int threshold, tir_block *out, uint32_t most,
                     uint32_t *count, ms_error *err);

/* Has a block that reads and writes a buffer do so in a copy, made right before it and copied back right after it. out:
 * the block that copies in, and the one that copies back. */
bool tir_cache_inplace(struct tir *ir, tir_block block, uint32_t read_buffer_index, const char *storage,
                       tir_block out[2], ms_error *err);

/* Of the buffer of the block's write region `buffer_index`: its storage scope; the alignment of an axis (negative: from
 * the end) to `factor` elements plus `offset`; its element type, values cast as they are stored and loaded. */
bool tir_set_scope(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope, ms_error *err);
bool tir_storage_align(struct tir *ir, tir_block block, int buffer_index, int axis, int factor, int offset,
                       ms_error *err);
bool tir_unsafe_set_dtype(struct tir *ir, tir_block block, uint32_t buffer_index, const char *dtype, ms_error *err);

/* An index map: results as expressions over parameters, which are variables without a domain, and constants. */
struct tir_index_map {
  uint32_t param_count, result_count; /* 16 at most each */
  tir_expr params[16], results[16];
};
/* The block's iterations become what the map makes of them, each with a loop of its own. */
bool tir_transform_block_layout(struct tir *ir, tir_block block, const struct tir_index_map *map, ms_error *err);

/* Keeps the elements of a buffer, that of the block's read or write `buffer_index`, where the map puts them. pad_value:
 * a constant of the buffer's type, or TIR_NONE: there must be no padding. assume_injective: the map is not checked. */
bool tir_transform_layout(struct tir *ir, tir_block block, uint32_t buffer_index, bool write,
                          const struct tir_index_map *map, tir_expr pad_value, bool assume_injective, ms_error *err);

/* Has the block use a copy of the buffer of its read or write `buffer_index`, indexed by its iterations; out: the block
 * that copies. */
bool tir_reindex(struct tir *ir, tir_block block, uint32_t buffer_index, bool write, tir_block *out, ms_error *err);

/* As tir_cache_read and tir_cache_write, for one element, which the block's iterations put where the map says. */
bool tir_reindex_cache_read(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                            const struct tir_index_map *map, tir_block *out, ms_error *err);
bool tir_reindex_cache_write(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                             const struct tir_index_map *map, tir_block *out, ms_error *err);

/* Grows the domain of each of the block's iterations to a multiple of its `padding`, zeros around what it reads. */
bool tir_pad_einsum(struct tir *ir, tir_block block, const int64_t *padding, uint32_t count, ms_error *err);

/* target: a loop or a block. The value is an annotation value of the module (tir_int, tir_string, tir_list_value, …).
 */
void tir_annotate_symbol(struct tir *ir, tir_stmt target, tir_symbol key, tir_expr value);
bool tir_unannotate(struct tir *ir, tir_stmt target, const char *key, ms_error *err);

/* Look-ups. Each gives the number and stores at most `most`; blocks in order of text, but producers in the order of the
 * regions that they fill: reads, then writes. func: NULL means "main". */
bool tir_get_block(struct tir *ir, const char *name, const char *func, tir_block *out, ms_error *err);
bool tir_get_child_blocks(struct tir *ir, tir_stmt of, tir_block *out, uint32_t most, uint32_t *count, ms_error *err);
bool tir_get_producers(struct tir *ir, tir_block block, tir_block *out, uint32_t most, uint32_t *count, ms_error *err);
bool tir_get_consumers(struct tir *ir, tir_block block, tir_block *out, uint32_t most, uint32_t *count, ms_error *err);
bool tir_get_output_blocks(struct tir *ir, tir_block scope, tir_block *out, uint32_t most, uint32_t *count,
                           ms_error *err);

/* Lowering: from blocks to loops, stores and loads. Internal to tir.
 *
 * Each pass is one file and one entry, takes the body of a function and gives a body that computes the same. The head
 * of its file says what it requires, gives and keeps. The order is the table in lower.c. */
#ifndef MSCHED_TIR_LOWER_H
#define MSCHED_TIR_LOWER_H

#include "tir/analysis/analysis.h"

struct lowering {
  struct tir *ir;
  tir_func func;
  tir_stmt body; /* the function's statement */
  const struct tir_lower_options *options;
  ms_error *err;
  tir_buffer first_tile; /* this buffer and those after it are tiles in registers (promote.c); before: none are */
  /* Entries of StorageAlign for buffers of shared memory, once blocks are gone (blocks.c), for compact.c. */
  struct lower_apart {
    tir_buffer buffer;
    tir_expr entry;
  } * apart;
  uint32_t apart_count, apart_capacity;
};

enum { LOWER_MOST_ACCESSES = 4 }; /* of a GPU's vector: as many as float32 has where int8 has one */

/* Of the target, at least 32. */
static inline int lower_vector_bits(const struct lowering *low) {
  int bits = low->options ? low->options->vector_bits : 0;
  return bits >= 32 ? bits : 256;
}

/* Tells who asked for it that a loop is not what its schedule made it, and why: in the words of loop `NAME` is not … */
void lower_note(const struct lowering *low, tir_stmt loop, const char *not_what);

bool lower_empty(struct lowering *low);         /* loops.c */
bool lower_offer(struct lowering *low);         /* instruction.c */
bool lower_threads(struct lowering *low);       /* threads.c */
bool lower_place(struct lowering *low);         /* place.c */
bool lower_order(struct lowering *low);         /* order.c */
bool lower_stages(struct lowering *low);        /* stages.c */
bool lower_pipeline(struct lowering *low);      /* pipeline.c */
bool lower_copies(struct lowering *low);        /* copies.c */
bool lower_blocks(struct lowering *low);        /* blocks.c */
bool lower_lanes(struct lowering *low);         /* lanes.c */
bool lower_rows(struct lowering *low);          /* rows.c */
bool lower_lane_stores(struct lowering *low);   /* lane_stores.c */
bool lower_tensor_stores(struct lowering *low); /* tensor_stores.c */
bool lower_clusters(struct lowering *low);      /* clusters.c */
bool lower_kernels(struct lowering *low);       /* kernels.c */
bool lower_vthreads(struct lowering *low);      /* vthreads.c */
bool lower_reduce(struct lowering *low);        /* reduce.c */
bool lower_warps(struct lowering *low);         /* warps.c */
bool lower_swizzle(struct lowering *low);       /* swizzle.c */
bool lower_groups(struct lowering *low);        /* groups.c */
bool lower_proxies(struct lowering *low);       /* groups.c */
bool lower_overlap(struct lowering *low);       /* overlap.c */
bool lower_alternate(struct lowering *low);     /* overlap.c */
bool lower_shared_memory(struct lowering *low); /* shared_memory.c */
bool lower_barriers(struct lowering *low);      /* barriers.c */
bool lower_gpu_vectorize(struct lowering *low); /* gpu_vectorize.c */
bool lower_divisions(struct lowering *low);     /* gpu/divisions.c */
bool lower_indices(struct lowering *low);       /* indices.c */
bool lower_dots(struct lowering *low);          /* gpu/dots.c */
bool lower_dot_loops(struct lowering *low);     /* dots.c */
bool lower_lane_dots(struct lowering *low);     /* dots.c */
bool lower_offsets(struct lowering *low);       /* offsets.c */
bool lower_slides(struct lowering *low);        /* slides.c */
bool lower_halves(struct lowering *low);        /* halves.c */
bool lower_compact(struct lowering *low);       /* compact.c */
bool lower_ends(struct lowering *low);          /* ends.c */
bool lower_pad(struct lowering *low);           /* pad.c */
bool lower_loops(struct lowering *low);         /* loops.c */
bool lower_jam(struct lowering *low);           /* jam.c */
bool lower_delay(struct lowering *low);         /* delay.c */
bool lower_unswitch(struct lowering *low);      /* unswitch.c */
bool lower_zeros(struct lowering *low);         /* zeros.c */
bool lower_partition(struct lowering *low);     /* partition.c */
bool lower_remainders(struct lowering *low);    /* remainders.c */
bool lower_transpose(struct lowering *low);     /* transpose.c */
bool lower_strips(struct lowering *low);        /* strips.c */
bool lower_tails(struct lowering *low);         /* strips.c */
bool lower_vectorize(struct lowering *low);     /* vectorize.c */
bool lower_unroll(struct lowering *low);        /* unroll.c */
bool lower_promote(struct lowering *low);       /* promote.c */
bool lower_flatten(struct lowering *low);       /* flatten.c */
bool lower_forward(struct lowering *low);       /* forward.c */
bool lower_widen(struct lowering *low);         /* widen.c */
bool lower_instruction(struct lowering *low);   /* instruction.c */
bool lower_tiles(struct lowering *low);         /* vector/tiles.c */
bool lower_rounding(struct lowering *low);      /* rounding.c */
bool lower_legalize(struct lowering *low);      /* legalize.c */
bool lower_cse(struct lowering *low);           /* cse.c */
bool lower_workspace(struct lowering *low);     /* workspace.c */
bool lower_producer(struct lowering *low);      /* producer.c */
bool lower_note_results(struct lowering *low);  /* nontemporal.c */
bool lower_nontemporal(struct lowering *low);   /* nontemporal.c */
bool lower_outline(struct lowering *low);       /* outline.c, with nests.c */

/* A function by name, of float64 that was a float of at most 32 bits, in arithmetic that vectors have; TIR_NONE: the
 * machine's library has it (in_double.c). */
tir_expr lower_in_double(struct tir *ir, const char *name, tir_expr x);
/* The same of float32, in arithmetic of float32 (in_single.c). */
tir_expr lower_in_single(struct tir *ir, const char *name, tir_expr x);
/* The same of one float32 or of two, in arithmetic of float64 (through_double.c). */
tir_expr lower_through_double(struct tir *ir, const char *name, const tir_expr *numbers, uint32_t count);

/* ---- Contracts (contract.c) ---- */

/* What passes give, and all after them keep: bits. */
enum lower_contract {
  LOWER_PLACED = 1, /* no allocations in blocks */
  LOWER_NO_BLOCKS = 2,
  LOWER_KERNELS = 4,      /* axes are outermost, each once */
  LOWER_NO_PIPELINES = 8, /* annotated loops, or attributes of stages */
  LOWER_NO_VTHREADS = 16,
  LOWER_ONE_SHARED = 32,  /* a kernel allocates shared memory once */
  LOWER_NO_UNROLLED = 64, /* loops of that kind */
  LOWER_NO_VECTORIZED = 128,
  LOWER_FLAT = 256,         /* buffers that are stored to have one dimension */
  LOWER_NO_PRODUCERS = 512, /* attributes of producer warp groups */
  LOWER_LEGAL = 1024        /* no floor division */
};
/* Asserts that what is given so far holds, and that the tree's links agree. */
void lower_check_contract(const struct lowering *low, unsigned gives);

/* ---- Shared by passes (rewrite.c) ---- */

/* Rewrites every access below `top`. The callback gets a buffer and its indices, and either leaves them (returns false)
 * or fills the buffer to access and its indices (at most TIR_MOST_RANK) and returns true. */
struct access {
  tir_buffer buffer;
  uint32_t count;
  tir_expr indices[TIR_MOST_RANK];
};
typedef bool rewrite_access(struct tir *ir, void *data, struct access *access);
void lower_rewrite(struct tir *ir, tir_stmt top, rewrite_access *rewrite, void *data);
void lower_rewrite_stmt(struct tir *ir, tir_stmt s, rewrite_access *rewrite, void *data); /* not what is below it */
/* The expression without the choices in it (if_then_else) whose conditions are certain. */
tir_expr lower_decide_choices(struct tir *ir, tir_expr e);
/* A condition without the parts of its conjunction that are among the known; the same of conditions of choices. */
tir_expr lower_assume(struct tir *ir, tir_expr condition, const tir_expr *known, uint32_t count);
tir_expr lower_assume_choices(struct tir *ir, tir_expr e, const tir_expr *known, uint32_t count);

/* Rewrites every expression below `top`, parts first: the callback gets a node and what has become of it by its parts,
 * and gives what stands in its place. Nodes with none of these flags (0: any) below them stay. */
typedef tir_expr map_node(struct tir *ir, void *data, tir_expr before, tir_expr made);
void lower_map(struct tir *ir, tir_stmt top, uint32_t flags, map_node *map, void *data);

/* A constant of the type, in all its lanes. */
tir_expr lower_constant(struct tir *ir, tir_type type, double value);
bool lower_is_constant(const struct tir *ir, tir_expr e, double *value); /* that, of floats */
/* A value that is used more than once: its use, in an expression around which lower_with_named computes it. */
struct lower_named {
  tir_var var; /* TIR_NONE: the value is a constant or a variable, and stands for itself */
  tir_expr value, use;
};
struct lower_named lower_name(struct tir *ir, tir_expr value);
tir_expr lower_with_named(struct tir *ir, struct lower_named n, tir_expr body);

/* Calls visit for every load and store below `top`, with the statement it is in: a block, where it says where that
 * runs. */
typedef void visit_access(struct tir *ir, void *data, tir_stmt s, const struct access *access, bool writes);
void lower_visit(struct tir *ir, tir_stmt top, visit_access *visit, void *data);
void lower_visit_stmt(struct tir *ir, tir_stmt s, visit_access *visit, void *data); /* not what is below it */
/* Of each buffer a list of the statements below `top` that name it themselves, in order: they load or store elements,
 * use its pointer, or are blocks that view it or have regions of it. at[first[buffer]], and on by `next` until 0. A
 * function may have thousands of buffers: a pass that asks for each walks the function once. */
struct lower_users {
  uint32_t *first, *last;
  struct lower_user {
    tir_stmt s;
    uint32_t next;
  } * at;
  uint32_t count;
};
struct lower_users lower_find_users(const struct tir *ir, tir_stmt top); /* lower_free_users */
void lower_free_users(struct lower_users *users);
/* Whether an expression of statement s or one below it uses the buffer. */
bool lower_uses_buffer(const struct tir *ir, tir_stmt s, tir_buffer buffer);
/* A byte a buffer: 1 where its memory may be touched by other names, views and calls with pointers to it. free() it. */
uint8_t *lower_pointers(const struct tir *ir, tir_stmt top);

/* Of buffers that blocks match others on, to which calls have pointers: their regions, matches and accesses move
 * too, by loops around the blocks, which only substituting the blocks' iterations makes sound (compact.c, for
 * blocks.c). */
void lower_compact_matched(struct lowering *low);

/* ---- Threads of a block ---- */

#define LOWER_INDEX_BITS "index_bits" /* of a function: 32 where no index in it needs more, else 64 (indices.c) */
/* Makes rows of a buffer longer whose scope asks for what swizzle.c does, and which that cannot do it for. */
void lower_spread_rows(struct tir *ir, tir_buffer buffer, tir_expr *shape, uint32_t rank);

/* Where threads reduce together, a statement evaluates a call of TVM's, in an attribute that says how values join:
 *   T.attr(comm_reducer(left…, right…, results…, identities…), LOWER_REDUCE, 0):
 *       tvm_thread_allreduce(count, values…, condition, results…, axes…)
 * A thread for which the condition is false brings identities; all get the results. */
#define LOWER_REDUCE "reduce_scope"
/* Whether a reduction iteration of the block is bound to a thread's loop around it (reduce.c). */
bool lower_reduces_across_threads(const struct tir *ir, tir_block block);
/* The threads that do not meet the condition bring nothing to the reduction of this attribute (reduce.c). */
void lower_restrict_reduction(struct tir *ir, tir_stmt attr, tir_expr condition);
/* A stage buffer, of a buffer whose first dimension numbers them: `number` modulo how many there are. (flight.c) */
struct lower_stage_buffer {
  tir_buffer buffer;
  tir_expr number;
};
/* The number of the stage buffer that this first index names; where few iterations run, its remainder may be simpler.
 * TIR_NONE: the buffer has none. */
tir_expr lower_stage_buffer_number(const struct tir *ir, tir_expr first_index, tir_buffer buffer);
/* Two numbers, with variables of one iteration, name different stage buffers. */
bool lower_are_other_stage_buffers(struct tir *ir, tir_buffer buffer, tir_expr a, tir_expr b);
/* The stage buffers that a warp-group MMA reads, a's and b's. False: it is not known. */
bool lower_find_stage_buffers(struct tir *ir, tir_stmt product, struct lower_stage_buffer out[2]);
bool lower_find_copied_stage_buffer(struct tir *ir, tir_stmt copy,
                                    struct lower_stage_buffer *out); /* that a tensor_copy writes */
bool lower_find_loaded_stage_buffer(struct tir *ir, tir_stmt load,
                                    struct lower_stage_buffer *out); /* that a mma_load reads */
/* Whether warp-group MMAs from `first` to `last`, the only ones of the loop that they stand in, may go on until
 * those of the next iteration have begun: their accumulators are so many buffers. (flight.c) */
bool lower_may_stay_in_flight(struct tir *ir, tir_stmt first, tir_stmt last, const tir_expr *accumulators,
                              uint32_t count);
/* Whether two buffers may have a byte in common: views of one (shared_memory.c). */
bool lower_share_bytes(struct tir *ir, tir_buffer a, tir_buffer b);

/* ---- Software pipelines ---- */

/* An attribute around what a producer warp group does, at the kernel's start. (producer.c) */
#define LOWER_PRODUCER "producer_warp_group"
bool lower_is_producer(const struct tir *ir, tir_stmt s);
tir_stmt lower_new_barrier(struct tir *ir); /* where a block's threads synchronize (device_call.c) */
/* An attribute around a statement of such a loop; its value is what the statement requests, bits of
 * TIR_STATEMENT_BY_REGISTERS … (stages.c) */
#define LOWER_STAGE "pipeline_stage"
bool lower_is_stage(const struct tir *ir, tir_stmt s);
tir_stmt lower_new_stage(struct tir *ir, int64_t requests);

/* A TMA bulk tensor copy: a statement that copies one box to a buffer of the pipeline's own, in the canonical layout
 * (tma_copy.c). */
enum { LOWER_TMA_PARTS = 16 };
struct lower_tma_copy {
  tir_buffer to, from;
  uint32_t rank;
  int64_t extents[TIR_BOX_MOST_RANK], box[TIR_BOX_MOST_RANK]; /* of the tensor; of a part */
  tir_expr at[TIR_BOX_MOST_RANK];
  /* In so many parts, each of that box, behind the one before it in the buffer; how far each is from the first. */
  uint32_t parts;
  int64_t moved[LOWER_TMA_PARTS][TIR_BOX_MOST_RANK];
  int64_t bytes; /* of all */
  bool im2col;   /* of pixels, box[0] of them (im2col.c) */
  tir_expr offsets[TIR_PIXELS_MOST_RANK];
  struct tir_pixels pixels;
  tir_expr first; /* the element of `to` that the box comes to; TIR_NONE: 0 */
  int64_t blocks; /* of the cluster that it comes to, bits of their ranks; 0: to its own alone */
};
/* False: it is none, for the reason that `why` names. `top` is below the pipelined loop. */
bool lower_find_tma_copy(struct tir *ir, tir_stmt loop, tir_stmt top, struct lower_tma_copy *out, const char **why);
/* One thread of each block does the statement, whose loops are around it. */
tir_stmt lower_elect(struct tir *ir, tir_stmt loop, tir_stmt s);
tir_expr lower_lane(struct tir *ir, tir_stmt kernel); /* that the thread is, of the kernel's */
tir_expr lower_pointer(struct tir *ir, tir_buffer buffer, tir_expr offset, int uses); /* to all that is allocated */
/* Appends the calls that copy the box, a swizzled tile each, and let mbarrier `barrier` of the buffer wait for them. */
void lower_put_tma_copy(struct tir *ir, const struct lower_tma_copy *b, tir_buffer barriers, tir_expr barrier,
                        tir_stmt to);

bool lower_is_async(const struct tir *ir, tir_stmt s); /* a store of an asynchronous copy (copies.c) */

/* ---- Device calls (device_call.c) ---- */

bool lower_calls(const struct tir *ir, tir_stmt s, enum tir_device_call which); /* it evaluates this call */
bool lower_is_product(const struct tir *ir, tir_stmt s);                        /* a warp-group MMA */
tir_type lower_wgmma_input(const struct tir *ir, tir_stmt product); /* of the first operand; TIR_T_VOID: unlike ones */
bool lower_is_tma_copy(const struct tir *ir, tir_stmt s);           /* a tensor_copy or one of its kind */
bool lower_is_arrival(const struct tir *ir, tir_stmt s);            /* at an mbarrier, of whatever block */
/* Whether it evaluates a call that has one of these effects: bits of enum tir_effect. */
bool lower_has_effect(const struct tir *ir, tir_stmt s, unsigned effects);
tir_stmt lower_new_call(struct tir *ir, enum tir_device_call which, const tir_expr *args, uint32_t count);
void lower_append_call(struct tir *ir, tir_stmt to, enum tir_device_call which, const tir_expr *args, uint32_t count);

bool lower_is_of_zeros(const struct tir *ir, tir_stmt s); /* the attribute that zeros.c puts around a condition */
/* The attribute around a condition that stands outside of loops, and saves them: no loop is cut by it. Where it does
 * not hold zeros would be added, so that a tile may be loaded and stored outside of it. Until all are forgotten, by
 * promote.c. */
bool lower_is_outside(const struct tir *ir, tir_stmt s);
void lower_zeros_forget(struct lowering *low);
/* What zeros.c asked for and loops were not cut by: outside of the loops that it saves, or gone. (zeros.c, for
 * partition.c) */
void lower_zeros_settle(struct lowering *low);

/* ---- Iterations of a loop (iterations.c) ---- */

/* What is read of a buffer, and what is written, in one iteration of the loops down to a statement, at most, dimension
 * by dimension. False: it is not known. */
struct lower_windows {
  tir_buffer buffer;
  struct tir_interval read[TIR_MOST_RANK], written[TIR_MOST_RANK];
};
bool lower_find_windows(struct tir *ir, tir_stmt site, tir_buffer buffer, struct lower_windows *out);
/* The same, but of what is written only what comes before all that is read. */
bool lower_find_windows_before(struct tir *ir, tir_stmt site, tir_buffer buffer, struct lower_windows *out);
/* What is written moves with v, and in one iteration more is read, as far as is known. */
bool lower_reads_other_iterations(struct tir *ir, const struct lower_windows *windows, tir_var v);
bool lower_indices_use(const struct tir *ir, tir_stmt store, tir_var v);
/* Whether a loop around this one, and none inside of it, adds into the same elements again and again: what is inside
 * belongs in registers, and parts of it, or tests in it, keep it from there. */
bool lower_is_tile(struct tir *ir, tir_stmt loop);
bool lower_is_alone(const struct tir *ir, tir_stmt s); /* in its list */
/* Attributes, by which a pass says something of what is below them to those behind it (rewrite.c): the statement is one
 * of that key; a new one, with that value (TIR_NONE: 0), and the same around a statement. */
bool lower_is_attr(const struct tir *ir, tir_stmt s, const char *key);
tir_stmt lower_new_attr(struct tir *ir, const char *key, tir_expr value);
void lower_wrap_in_attr(struct tir *ir, tir_stmt s, const char *key, tir_expr value);
uint32_t lower_size(const struct tir *ir, tir_stmt top); /* statements, with the topmost */
/* A linear comparison as a sum that is at most 0, which is open then; false: it is none. (partition.c) */
struct tir_sum;
bool lower_open_condition(struct tir *ir, tir_expr condition, struct tir_sum *out);
/* How often a statement runs, and how many stores it and what is below it do in all, as far as extents are constants
 * and conditions hold. */
double lower_times_run(const struct tir *ir, tir_stmt s);
double lower_work(const struct tir *ir, tir_stmt top);
/* Makes two of a loop of constant extent, a multiple of `inner`: the inner one, of this kind, has the body. */
void lower_split_loop(struct tir *ir, tir_stmt loop, int64_t inner, enum tir_loop_kind kind);
/* Notes on allocations what blocks say of the type of copies that they fill; false: one says no such. (widen.c) */
bool lower_note_copies(struct lowering *low);
/* The annotations of a loop that goes hold for the outermost loops in it. (gpu/kernels.c) */
void lower_hand_down(struct tir *ir, tir_stmt loop);
/* The loop runs [min, min + extent) from now on: its variable is another, of that domain. (partition.c) */
void lower_set_domain(struct tir *ir, tir_stmt loop, tir_expr min, tir_expr extent);
/* A copy of a loop, detached, that runs [min, min + extent). (partition.c) */
tir_stmt lower_part_of(struct tir *ir, tir_stmt loop, int64_t min, int64_t extent);
/* By how much the expression grows from one value of v to the next, in a plain sum of variables; false: it is none. */
bool lower_find_step(struct tir *ir, tir_expr e, tir_var v, int64_t *step);

#endif

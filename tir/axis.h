/* Thread axes of GPUs: what a loop can be bound to. Part of the public header tir.h; included from there only. */

/* Blocks come first, then threads, then virtual threads, each in the order x, y, z; and the blocks of a cluster. */
enum tir_axis {
  TIR_BLOCK_X,
  TIR_BLOCK_Y,
  TIR_BLOCK_Z,
  TIR_THREAD_X,
  TIR_THREAD_Y,
  TIR_THREAD_Z,
  TIR_VTHREAD_X,
  TIR_VTHREAD_Y,
  TIR_VTHREAD_Z,
  TIR_VTHREAD, /* without a letter, as older traces have it */
  TIR_CLUSTER_X,
  TIR_AXIS_COUNT
};

/* The axis of this name, "blockIdx.x" … "clusterCtaIdx.x"; TIR_AXIS_COUNT: there is none. */
enum tir_axis tir_axis_named(const char *name);
const char *tir_axis_name(enum tir_axis axis);
/* The axis that a loop is bound to; TIR_AXIS_COUNT: the statement is no loop, or is bound to none of these. */
enum tir_axis tir_loop_axis(const struct tir *ir, tir_stmt s);
static inline bool tir_is_block_axis(enum tir_axis axis) { return axis <= TIR_BLOCK_Z; }
static inline bool tir_is_thread_axis(enum tir_axis axis) { return axis >= TIR_THREAD_X && axis <= TIR_THREAD_Z; }
static inline bool tir_is_virtual_axis(enum tir_axis axis) { return axis >= TIR_VTHREAD_X && axis <= TIR_VTHREAD; }
/* Threads of all its iterations may reduce together. */
static inline bool tir_is_joining_axis(enum tir_axis axis) { return tir_is_thread_axis(axis) || axis == TIR_CLUSTER_X; }
/* How many iterations a loop bound to it has at most, on every device; INT64_MAX: no limit of the axis itself.
 * Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". */
int64_t tir_axis_limit(enum tir_axis axis);

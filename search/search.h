/* search: what policies need to be fast. The module's public header; the policies themselves are Lua files beside it.
 *
 * A pool of replay workers turns traces and seeds into scheduled, postprocessed candidates; features describe them; a
 * cost model ranks them. No result depends on time or the number of threads: a candidate is a function of (workload,
 * trace, seed, candidate's number), and results come in the order of the jobs. */
#ifndef MSCHED_SEARCH_H
#define MSCHED_SEARCH_H

#include "tir/tir.h"
#include "vm/vm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Replay workers */

enum { SEARCH_NAME = 64 }; /* bytes of a name, with its end */

/* Postprocessors are Lua: each worker has a state of its own, made and used through these, on its own thread only. */
struct search_script {
  void *data;
  void *(*open)(void *data, ms_error *err); /* NULL: err */
  void (*close)(void *data, void *state);
  /* false: refused, by the postprocessor whose name is written to `by` */
  bool (*postprocess)(void *data, void *state, struct vm_schedule *schedule, char by[SEARCH_NAME], ms_error *err);
  uint64_t (*memoized)(void *state); /* postprocessors so far whose script did not have to run; NULL: none */
};

struct search_job {
  const struct vm_trace
      *trace;               /* a sketch or a parent, borrowed for the call; its decisions are kept where it has them */
  uint32_t function;        /* the pool's, whose schedule it is */
  uint64_t seed, candidate; /* draws come from these */
  bool resample;            /* draw every decision, whatever the trace holds */
};
struct search_candidate {
  bool ok;
  ms_error err; /* MS_OK where the job was left undone; where replays are refused, only the first of a call that an
                   instruction of the kind refuses with the code has a message */
  char refused_by[SEARCH_NAME]; /* the postprocessor, or the kind of the instruction where the replay was refused */
  struct vm_packed *trace;      /* with the decisions used and the postprocessors' instructions; the caller's */
  struct vm_trace *sketch;      /* the same before postprocessing: shares the instructions of the job's; the caller's */
  uint64_t module_hash;
  float *features; /* feature_rows x search_feature_count(); malloc'd; NULL unless asked */
  uint32_t feature_rows;
};

struct search_pool;
/* intrinsics: those that traces name besides the shipped ones; borrowed, as `script`, for the pool's life. NULL: none.
 */
struct search_pool *search_pool_new(const struct search_script *script, const struct vm_intrinsics *intrinsics,
                                    uint32_t workers, ms_error *err);
void search_pool_free(struct search_pool *pool);
/* Adds a function, whose jobs the pool then replays; it is copied. Returns its number, from 0 on. */
uint32_t search_pool_add(struct search_pool *pool, const struct tir *workload, tir_func f);
/* out[i] belongs to jobs[i]. Returns early, with the rest not ok, when *stop is no longer 0 or a script fails
 * (MS_SCRIPT). */
bool search_pool_replay(struct search_pool *pool, const struct search_job *jobs, uint32_t count, bool features,
                        struct search_candidate *out, const volatile int *stop, ms_error *err);
/* What the jobs of a pool have cost since it was made, in seconds of the processor, all workers together. */
struct search_costs {
  uint64_t jobs, accepted, memoized;
  double replay, postprocess, hash, trace, features; /* trace: copying what was recorded */
};
struct search_costs search_pool_costs(const struct search_pool *pool);

/* ---- Features: a row a buffer store. Arithmetic counts; lengths of vectorized, unrolled, parallel, bound loops; per
 * buffer its access type, bytes, unique bytes, lines, reuse, stride, allocation; the arithmetic-intensity curve.
 * Source: Zheng et al., "Ansor", OSDI 2020, appendix B. */
uint32_t search_feature_count(void);
const char *search_feature_name(uint32_t i); /* valid until the thread's next call */
const char *search_feature_doc(uint32_t i);  /* what number i is */
bool search_features(struct tir *scheduled, tir_func f, float **rows, uint32_t *count, ms_error *err);

/* ---- Cost models
 * What a model says depends on the kind, the seed, the file it came from and the training samples so far, in their
 * order; not on how many were given at once, nor on how long learning takes. Not thread-safe: one caller at a time. */
struct search_model;
/* What a measured candidate teaches: rows x search_feature_count() features, borrowed for the call. It is left out
 * where there are none, or where they or the seconds are no finite numbers. */
struct search_sample {
  const float *features;
  uint32_t rows;
  uint32_t task;  /* results of one function: only within a task are times compared */
  double seconds; /* of a call, above 0 */
};
enum { SEARCH_MODEL_VERSION = 1 }; /* of the files below */

struct search_model *search_model_new(const char *kind /* "xgboost", "random" */, uint64_t seed, ms_error *err);
/* An xgboost model that starts from what a file holds and learns what differs from it. NULL: MS_MODEL, with the path:
 * the file is of another version, of other features, or damaged. */
struct search_model *search_model_load(const char *path, uint64_t seed, ms_error *err);
/* An xgboost model that starts from what another has learned, likewise. The other stays as it is. NULL: it failed to
 * learn what it was given last. */
struct search_model *search_model_from(struct search_model *model, uint64_t seed, ms_error *err);
/* Of a model without samples: they count by their rank among those of their task, so that tasks of other spreads of
 * times go together. */
void search_model_rank(struct search_model *model);
/* Whether it ranks by what it has learned, and not by chance. */
bool search_model_has_learned(const struct search_model *model);
/* Writes what was learned; the file is replaced as a whole. */
bool search_model_save(struct search_model *model, const char *path, ms_error *err);
void search_model_free(struct search_model *model);
/* Adds training samples, and learns from all of them on a thread of its own. The next call on the model waits for it: a
 * prediction knows every sample given before. What fails there is the next call's error. */
bool search_model_update(struct search_model *model, const struct search_sample *samples, uint32_t count,
                         ms_error *err);
/* Scores, the higher the better: throughput relative to the best of the task. rows[i] rows of features[i] are candidate
 * i. Of a model that has learned nothing yet: numbers drawn from the seed
 * and the features. */
bool search_model_predict(struct search_model *model, const float *const *features, const uint32_t *rows,
                          uint32_t count, double *scores, ms_error *err);

/* ---- The analytical model: the cost of a sketch's candidates, estimated from their decisions alone. Nothing is
 * replayed: a sketch is read once, and a candidate is arithmetic on its decisions, a microsecond or two. */
enum { SEARCH_LEVELS = 3 };
/* A GPU, in cycles of one of its multiprocessors, and bytes: SEARCH_GPU_NUMBER(name, what it is). */
#define SEARCH_GPU_NUMBERS(X)                                                                                          \
  X(sms, "multiprocessors")                                                                                            \
  X(sm_threads, "threads that one has at a time")                                                                      \
  X(sm_blocks, "blocks")                                                                                               \
  X(sm_registers, "registers")                                                                                         \
  X(sm_shared, "bytes of shared memory")                                                                               \
  X(block_threads, "threads of a block at most")                                                                       \
  X(block_shared, "bytes of shared memory of a block at most")                                                         \
  X(warp, "threads that run as one")                                                                                   \
  X(own_registers, "registers of a thread at most")                                                                    \
  X(used_registers, "registers of a thread for indices and the like")                                                  \
  X(multiply_adds, "of a warp's, a cycle")                                                                             \
  X(latency, "of one of them")                                                                                         \
  X(shared_latency, "of a load from shared memory")                                                                    \
  X(memory_latency, "of a load from the device's memory")                                                              \
  X(copy_wait, "cycles from a thread's copy to shared memory to its next, of asynchronous copies")                     \
  X(plain_wait, "cycles more of those that it waits for")                                                              \
  X(guarded_plain, "the same of those that a condition guards")                                                        \
  X(divided_wait, "as copy_wait, of guarded ones that divide for their row")                                           \
  X(divided_plain, "and as plain_wait")                                                                                \
  X(divided_copy, "cycles that such a copy of a warp keeps a multiprocessor")                                          \
  X(barrier, "cycles that threads wait for each other")                                                                \
  X(cluster_join, "cycles in which the blocks of a cluster join what each has reduced")                                \
  X(call, "multiply-adds that an elementary function takes")                                                           \
  X(division, "and a division")                                                                                        \
  X(spill, "cycles of a warp's access to what registers do not hold")                                                  \
  X(tensor_products, "multiply-adds of 16-bit elements by tensor cores, a cycle; 0: there are none")                   \
  X(tensor_alone, "the part of these that warps reach which multiply alone, not in groups")                            \
  X(tensor_registers, "registers of a thread that multiplies so, beside its accumulators")                             \
  X(tensor_step, "cycles of a step of such products that nothing hides")                                               \
  X(tensor_begin, "cycles until a block's first MMA, while no other block multiplies")                                 \
  X(tensor_store, "cycles for each accumulator on its way out")                                                        \
  X(overlap_hides, "the part of the lesser of products and softmax that one group's overlap hides")                    \
  X(turns_hide, "and the part that two groups hide that take turns")                                                   \
  X(sm_bytes_a_cycle, "from the second level, of one multiprocessor")                                                  \
  X(l2_bytes_a_cycle, "and of all")                                                                                    \
  X(l2_bytes, "that it holds")                                                                                         \
  X(dram_bytes_a_cycle, "from the device's memory")                                                                    \
  X(launch, "cycles of a kernel's start")                                                                              \
  X(exposed, "the part of what is not the longest that it does not hide")                                              \
  X(doubt, "how many times as long as estimated a tile of what reduces nothing is taken to be")
struct search_gpu {
#define SEARCH_GPU_NUMBER(name, what) double name;
  SEARCH_GPU_NUMBERS(SEARCH_GPU_NUMBER)
#undef SEARCH_GPU_NUMBER
};
/* A CPU, in cycles of one core, and bytes; rules/targets.lua has what the target does not know. */
#define SEARCH_CPU_NUMBERS(X)                                                                                          \
  X(cores, "cores")                                                                                                    \
  X(vector_bits, "bits of a vector")                                                                                   \
  X(registers, "vector registers")                                                                                     \
  X(multiply_adds, "vectors multiplied and added a cycle")                                                             \
  X(loads, "vectors loaded a cycle")                                                                                   \
  X(latency, "of adding to a result")                                                                                  \
  X(reload, "more where the result is not in a register")                                                              \
  X(unrolled, "rows of a register tile that are unrolled without being asked")                                         \
  X(iteration, "of an iteration of a loop")                                                                            \
  X(copy, "of copying a byte")                                                                                         \
  X(parallel, "of starting the threads")                                                                               \
  X(apart, "the part of a chunk by which threads end apart")                                                           \
  X(overrun, "how much longer an iteration takes for each beside it that is cut off")                                  \
  X(guarded, "how many times as long a vector takes under a condition")                                                \
  X(call, "of a vector: an elementary function")                                                                       \
  X(division, "of a vector: a quotient")                                                                               \
  X(branch, "of an element: a condition in a value")                                                                   \
  X(bfloats, "vectors multiplied and added in the time of a dot product of pairs of bfloat16")                         \
  X(pages, "of 4 KiB whose addresses a core holds")                                                                    \
  X(walk, "of finding the address of another page")                                                                    \
  X(near_pages, "that it holds close by")                                                                              \
  X(near_walk, "of finding one that it does not hold close by")                                                        \
  X(exposed, "the part of arithmetic and traffic that the longest of them does not hide")                              \
  X(doubt, "how many times as long as estimated a tile of what reduces nothing is taken to be")
struct search_machine {
#define SEARCH_CPU_NUMBER(name, what) double name;
  SEARCH_CPU_NUMBERS(SEARCH_CPU_NUMBER)
#undef SEARCH_CPU_NUMBER
  double cache_bytes[SEARCH_LEVELS];   /* of a core's first and second level, and of the third */
  double way_bytes[SEARCH_LEVELS];     /* of each: addresses that are so far apart have the same place there */
  double bytes_a_cycle[SEARCH_LEVELS]; /* that come from the level outside of each */
  unsigned dots;                       /* that it has: bits 1 << enum tir_dot */
  bool slides;                         /* windows of bytes slide as words (tir/lower/vector/slides.c) */
  struct search_gpu gpu;               /* with multiprocessors: the machine is one, and nothing else of it is used */
};
struct search_estimator;
/* workload: borrowed for the call, and names are interned in it. Draws that are open in the sketch are drawn by the
 * seed 1; what the model does not vary (compute locations, tiles of loops that others' decisions size) stays so, and
 * may have to be repaired. NULL: the sketch is refused. */
struct search_estimator *search_estimator_new(struct tir *workload, const struct vm_trace *sketch,
                                              const struct vm_intrinsics *intrinsics,
                                              const struct search_machine *machine, ms_error *err);
void search_estimator_free(struct search_estimator *estimator);
double search_estimator_size(const struct search_estimator *estimator); /* candidates that there are */
/* Whether a trace is the sketch with decisions, all made, of which none is out of range. */
bool search_estimator_has(const struct search_estimator *estimator, const struct vm_trace *trace);
/* Estimated cycles of the candidate with these decisions, laid out as the sketch's; in range. */
double search_estimator_cost(const struct search_estimator *estimator, const int64_t *decisions);
/* Estimates a trace as it is, all decided: where blocks are computed, and the loops that this makes, count as they are
 * there. workload as above. False: the trace is refused. */
struct search_estimated {
  double cycles;
  uint64_t tile; /* the same for candidates whose innermost loops are the same */
};
bool search_estimate(struct tir *workload, const struct vm_trace *trace, const struct vm_intrinsics *intrinsics,
                     const struct search_machine *machine, struct search_estimated *out, ms_error *err);
struct search_proposal {
  double cost;
  uint64_t tile;
  struct vm_trace *trace; /* the caller's */
};
/* The cheapest, at most `most` and `each` of one tile, in rising order: of all candidates where they are no more than
 * `budget`, else of about so many, drawn by the seed and led downhill. A candidate of more than SEARCH_ESTIMATOR_NESTS
 * nests counts as often as it has so many. stop: NULL, or: it returns soon with the best so far when *stop is no longer
 * 0. Returns their number. */
enum { SEARCH_ESTIMATOR_NESTS = 8 };
uint32_t search_estimator_best(const struct search_estimator *estimator, uint64_t seed, uint64_t budget, uint32_t most,
                               uint32_t each, const volatile int *stop, struct search_proposal *out);

/* Proposals of many sketches, and many estimates, on several threads, the caller's among them. What comes of each
 * depends on it alone, not on the others or the number of threads. Where *stop (NULL: nothing) is no longer 0 they
 * return soon, and the rest is as if it were refused. */
struct search_proposal_job {
  const struct vm_trace *trace; /* borrowed for the call: a sketch, as search_estimator_new takes it */
  bool resample;                /* all its draws are drawn first, by seed and candidate */
  uint64_t seed, candidate;
  uint64_t budget; /* this and what follows, and the seed, as search_estimator_best takes them */
  uint32_t most, each;
};
struct search_proposal_list {
  struct search_proposal *at; /* the caller's, by free(), as the traces are */
  uint32_t count;             /* 0: refused, too */
};
void search_proposals(struct tir *workload, const struct vm_intrinsics *intrinsics,
                      const struct search_machine *machine, const struct search_proposal_job *jobs, uint32_t count,
                      uint32_t threads, const volatile int *stop, struct search_proposal_list *out);
/* As search_estimate. Cycles are below 0 where it is refused. */
void search_estimates(struct tir *workload, const struct vm_intrinsics *intrinsics,
                      const struct search_machine *machine, const struct vm_trace *const *traces, uint32_t count,
                      uint32_t threads, const volatile int *stop, struct search_estimated *out);

#ifdef __cplusplus
}
#endif
#endif

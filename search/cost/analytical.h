/* The analytical model of a sketch: numbers that decisions give, loop nests over them, what each nest touches. Internal
 * to search; sketch.c and access.c fill it, cpu.c and gpu.c score with it, analytical.c enumerates. */
#ifndef MSCHED_SEARCH_ANALYTICAL_H
#define MSCHED_SEARCH_ANALYTICAL_H

#include "search/search.h"

enum {
  MODEL_LOOPS = 32,
  MODEL_ITERS = 16,
  MODEL_ACCESSES = 8,
  MODEL_RANK = 8,
  MODEL_NUMBERS = 512,
  MODEL_NESTS = 48,
  MODEL_PARTS = 8,
  MODEL_TAPS = 32
};

/* A number of a candidate, computed in order: a constant, a decision, one of a table, or made of two before it. */
struct model_number {
  enum { MODEL_CONSTANT, MODEL_DECISION, MODEL_CHOICE, MODEL_TIMES, MODEL_CEILING } op;
  uint32_t a, b; /* of a decision: a is where; of a choice: b is where its table begins; else numbers */
  int64_t value; /* of a constant */
};

struct model_loop {
  uint32_t extent;     /* a number */
  uint32_t iters;      /* a bit for each iteration variable that it moves */
  bool reduces, alone; /* alone: nothing stands beside its only child */
  enum { MODEL_SERIAL, MODEL_BLOCKS, MODEL_VIRTUAL, MODEL_THREADS } axis; /* of a GPU: what it is bound to */
  enum {
    MODEL_PLAIN,
    MODEL_PARALLEL,
    MODEL_VECTOR,
    MODEL_UNROLLED
  } kind;         /* of a CPU: what the sketch has it marked as */
  uint32_t ahead; /* iterations that a software pipeline runs ahead */
  /* Of a loop fused of several, outermost first: the extent of each, a number, and the iteration variable it moves. 0:
   * it is none, or what its parts move is not known. */
  uint32_t part_count, parts[MODEL_PARTS], part_iters[MODEL_PARTS];
};
struct model_access {
  tir_buffer buffer;
  bool written;
  bool passed;                                             /* made and used within the function */
  bool constant;                                           /* packed ahead: it lies in the order in which it is read */
  enum { MODEL_DEVICE, MODEL_SHARED, MODEL_LOCAL } memory; /* of a GPU */
  uint32_t near;                                           /* of what is passed: loops around all nests that touch it */
  uint32_t copy; /* 1 + the first other nest that fills the buffer; 0: none does */
  double bytes;  /* of an element */
  bool widened;  /* of a CPU: vectors of it are widened once they are loaded */
  bool in_copy;  /* the same, but where it is stored, if the copy holds wider elements (tir/lower/memory/widen.c) */
  uint32_t wide; /* of such: a number, whether its copy does; 0: it is no choice, and does */
  uint32_t rank;
  int64_t extents[MODEL_RANK];
  double moves[MODEL_RANK][MODEL_ITERS]; /* elements along each dimension when an iteration variable rises by one */
  uint32_t moved[MODEL_RANK], iters;     /* a bit for each variable that moves it along a dimension; along any */
  int64_t steps[MODEL_ITERS];            /* and in memory, but where a quotient rises too */
  /* Of a variable that stands in quotients and remainders alone, as in a transposed convolution: by what it is divided
   * in each; 0: by nothing. shifted: what is divided begins between multiples; whole: it stands otherwise too. */
  int64_t quotients[MODEL_ITERS], remainders[MODEL_ITERS];
  bool shifted[MODEL_ITERS], whole[MODEL_ITERS];
  /* Elements of it that an element of the block reads at distinct places, and how far these lie apart in each
   * dimension. */
  uint32_t taps;
  tir_expr tap_loads[MODEL_TAPS];
  int64_t first[MODEL_RANK], last[MODEL_RANK];
};
struct model_iter {
  int64_t extent;
  bool reduces, dense; /* dense: every access stays or moves by one element in memory, and some move */
};
enum { MODEL_TILE_SIDE = 16 }; /* columns of a tile of AMX, and groups of neighbours of its products */
struct model_nest {
  uint32_t loop_count, iter_count, access_count; /* loops: outermost first */
  struct model_loop loops[MODEL_LOOPS];
  struct model_iter iters[MODEL_ITERS];
  struct model_access accesses[MODEL_ACCESSES];
  bool promoted, sums; /* annotated as a register tile; what it stores is a sum */
  bool dots; /* its innermost loop, in a vectorized one, is over neighbours in dot products (tir/lower/vector/dots.c) */
  bool slides;                               /* unrolled loops around a tile are windows of bytes (slides.c) */
  bool tensorized;                           /* of a CPU: products of short types, by a tensor intrinsic */
  double tile_products;                      /* of such an intrinsic, where it multiplies AMX's tiles; else 0 */
  double tile_rows;                          /* of those; else 0 */
  bool tile_copy;                            /* it copies what such products read */
  bool placed;                               /* noted as doubted by rules/rule/spatial_tiling.lua, or kept for it */
  bool counts;                               /* of a GPU: it has a cost of its own */
  bool begins;                               /* a kernel of a GPU */
  bool feeds;                                /* tensor cores of a GPU, with what it copies to shared memory */
  double team;                               /* of a GPU: threads that hold its fragments together; 1: none do */
  uint32_t init_before;                      /* a number: whether its init comes before all tiles; 0: it is no choice */
  uint32_t wide;                             /* a number: whether copies that it fills are wider; 0: as above */
  uint32_t nontemporal;                      /* a number: whether results go around the caches; 0: it is no choice */
  double simple, calls, divisions, branches; /* operations of an element: a multiply-add is a simple one */
  uint32_t lanes;                            /* a number: elements that a thread copies at once; 0: one */
  uint32_t decides;                          /* a bit for each iteration variable in the conditions of branches */
  double inside;                             /* the part of the iterations in which all conditions hold */
  /* Of what it stores, by StorageAlign: along a dimension rows end `align_offset` elements behind a multiple of
   * `align_factor`; 0: they are as long as they are. */
  uint32_t align_dimension;
  int64_t align_factor, align_offset;
  /* A nest that follows another's tiles: it runs `at` of that one's loops around it, and touches what that one's access
   * does inside them. */
  struct model_nest *follows;
  uint32_t at, access;
};

/* A product of matrices by a tensor intrinsic, whose loops are tiled: over blocks, warps (or groups of them) and the
 * fragments of each, and its reduction over steps. All but what the intrinsic is are numbers. */
enum { MODEL_TILES = 8, MODEL_COPIES = 4 };
struct model_product {
  double m, n, k, bytes; /* of the intrinsic; bytes: of an input's element */
  double warps;          /* that perform one together */
  struct model_tile_of {
    uint32_t count, parts[MODEL_PARTS];
  } tiles[MODEL_TILES]; /* of each loop that is tiled; the last three are those of m, n and k */
  uint32_t tile_count;
  uint32_t lanes[MODEL_COPIES], lane_count; /* elements that a thread copies at once, of each copy */
  uint32_t bulk, producer; /* whether copies are bulk tensor copies; whether a warp group only copies; 0: no */
  uint32_t persistent;     /* how many blocks do all tiles, where one does several; 0: each tile has a block */
  uint32_t multicast;      /* how many blocks are a cluster that shares copies; 0: none is */
  uint32_t stored;         /* elements of the result that a thread stores at once; 0: their stores are not drawn */
  double stored_bytes;     /* of an element of the result, where it is known */
  bool by_lanes;           /* lanes store 16 bytes of it from registers, which they exchange */
  bool by_columns, a_by_columns;   /* tiles of the second operand, and of the first, lie so */
  struct tir_copy_tile brought[2]; /* what bulk tensor copies bring of each operand */
  uint32_t brought_count;          /* 2: it is known */
  bool straight;                   /* accumulators are stored from registers to the result */
  bool divided;                    /* its results are partial sums, which a kernel of its own adds */
  uint32_t ahead;                  /* iterations that copies run ahead; 0: there is no pipeline */
  uint32_t tensor_stores;          /* whether bulk tensor stores take such a tile; 0: no */
  uint32_t epilogue;               /* columns of the tile by which results leave; 0: all at once, or from registers */
  double all_bytes;                /* of the function's arguments */
};

struct model_draw {
  uint32_t decision, width, choices; /* where in the vector, how many numbers, how many choices */
  int64_t *values;                   /* choices x width */
};

struct search_estimator {
  struct search_machine machine;
  struct vm_trace *sketch; /* with the decisions that the nests were read from */
  struct model_number *numbers;
  int64_t *tables; /* of choices */
  struct model_nest *nests;
  uint32_t *shared; /* nest_count x nest_count: loops around both */
  struct model_draw *draws;
  struct model_product *products; /* of a GPU: instead of nests, where tensor intrinsics multiply */
  uint32_t number_count, table_size, nest_count, draw_count, product_count;
  uint32_t jobs, unroll;   /* numbers: what is noted on the root; 0: nothing */
  uint32_t overlap, turns; /* of a GPU: whether second products go on beside a softmax; whether groups take turns */
  double multiplying;      /* of a GPU: cycles of a multiprocessor's tensor cores, of products that nests do not show */
  int64_t most_vector;     /* elements that are vectorized at most */
  struct model_memo *memo; /* of a GPU: what nests cost that were estimated lately */
  bool as_is;              /* of the decisions that the trace has: loops are as long as they are */
};

/* ---- Numbers and shapes (shape.c) ---- */

/* Of numbers, none of which is NaN: instructions, where fmax and fmin are calls. */
static inline double model_larger(double a, double b) { return a > b ? a : b; }
static inline double model_lesser(double a, double b) { return a < b ? a : b; }

/* Each gives the number's index. */
uint32_t model_add_number(struct search_estimator *d, struct model_number n);
uint32_t model_add_constant(struct search_estimator *d, int64_t value);
/* Of an operand: a constant, or that of a variable, of which `numbers` has each; 0: it is open. */
uint32_t model_number_of(struct search_estimator *d, const uint32_t *numbers, const struct vm_value *operand);

/* A nest with the extents that a candidate gives it. */
struct model_shape {
  const struct model_nest *nest;
  double trips[MODEL_LOOPS];
  double tiles[MODEL_LOOPS + 1][MODEL_ITERS];    /* of each iteration variable, in the loops from the i-th on */
  double bytes[MODEL_LOOPS + 1][MODEL_ACCESSES]; /* what they touch, in whole lines */
  uint32_t parallel, vector; /* loops run in parallel, from outside; the first loop that is vectorized */
  double overrun;            /* how many times as many iterations as are not cut off */
  double summed; /* elements that the innermost reduction adds at once, as LLVM vectorizes it; 1: it does not */
};

void model_compute_numbers(const struct search_estimator *d, const int64_t *decisions, double *out);
/* Fills trips, tiles and overrun. */
/* How many distinct places of an access the iterations of a loop have, for one of what the loops inside have. */
double model_distinct(const struct model_shape *s, const struct model_access *a, uint32_t loop);
void model_shape_loops(const struct model_nest *nest, const double *numbers, struct model_shape *s);
void model_grow_tile(const struct model_nest *nest, const struct model_loop *loop, double trips, const double *inner,
                     double *out);
/* Elements along a dimension that an access touches in a tile. */
double model_width(const struct model_access *a, const double *tile, uint32_t d);
/* How many elements an access has for each that one of its taps has, where the loops in [first, end) are unrolled:
 * these share what lies between taps. */
double model_taps(const struct model_shape *s, const struct model_access *a, uint32_t first, uint32_t end);
static inline bool model_is_moved(const struct model_nest *nest, const struct model_access *a, uint32_t loop) {
  return nest->loops[loop].iters & a->iters;
}
double model_product(const struct model_shape *s, uint32_t first, uint32_t end); /* of trips */

/* Of a GPU: facts of the nests before any candidate, once they are read. (gpu.c) */
void model_begin_gpu(struct search_estimator *d);
double model_gpu_cost(const struct search_estimator *d, const int64_t *decisions);

/* Fills the model's products, of a function as the plan makes it. statements: by instruction, of each GetLoops and
 * Annotate, what it is about; numbers: of each variable. False: none of the machine's tensor cores multiplies.
 * (tensor_cores.c) */
bool model_read_products(struct search_estimator *d, const struct tir *ir, const struct vm_plan *plan,
                         const tir_stmt *statements, const uint32_t *numbers);
double model_products_cost(const struct search_estimator *d, const int64_t *decisions);
uint64_t model_products_tile(const struct search_estimator *d, const int64_t *decisions);

static inline uint32_t model_shared(const struct search_estimator *d, uint32_t nest, uint32_t other) {
  return d->shared[nest * d->nest_count + other];
}
/* What the innermost loops of the nests are: candidates with the same differ in what is around them only. */
uint64_t model_tile(const struct search_estimator *estimator, const int64_t *decisions);
/* What the store of a block touches and computes, into a nest whose iterations are known. constant: of each
 * buffer, whether it is packed ahead of all runs. Gives conversions between floats, as multiply-adds of a GPU.
 * (access.c) */
double model_read_accesses(const struct search_estimator *d, struct tir *ir, const bool *constant,
                           struct model_nest *nest, tir_block block, tir_stmt store);
/* The part of a block's iterations in which a condition holds, its conjuncts taken as if they did not depend on one
 * another; 1 where that is not known. The nest has its iterations. (condition.c) */
double model_part_inside(const struct tir *ir, tir_block block, const struct model_nest *nest, tir_expr condition);
/* Replays a plan, once, and fills sketch, numbers, nests and draws from what it makes. into: whatever it held. */
bool model_read_sketch(struct search_estimator *estimator, struct vm_schedule *into, const struct vm_plan *plan,
                       const struct vm_draws *draws, ms_error *err);
/* A model of what a plan makes; as_is: of its own decisions alone. NULL: refused. Threads may share the plan. */
struct search_estimator *model_new(struct vm_schedule *into, const struct vm_plan *plan, const struct vm_draws *draws,
                                   const struct search_machine *machine, bool as_is, ms_error *err);
/* The cost of the decisions that the sketch was read with. */
struct search_estimated model_estimated(const struct search_estimator *estimator);

#endif

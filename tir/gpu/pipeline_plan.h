/* A software pipeline as it is planned: what the annotations of its loop request, and what follows from that. The
 * passes of lower/gpu/pipeline/ carry a plan out; kernel.c asks it what a kernel will take. Part of the public
 * header tir.h; included from there only. */

/* ---- Annotations of the loop ---- */

#define TIR_PIPELINE_STAGE "software_pipeline_stage"        /* in which iteration later each statement runs */
#define TIR_PIPELINE_ORDER "software_pipeline_order"        /* at which place among the others */
#define TIR_PIPELINE_ASYNC "software_pipeline_async_stages" /* stages whose copies are asynchronous */
/* 1: statements of those stages are TMA bulk tensor copies, where the target and what they copy let them; 0: they
 * are not. */
#define TIR_PIPELINE_BULK "software_pipeline_tensor_copies"
#define TIR_TENSOR_STORES "tensor_store" /* of a loop that copies a tile out: 1, by TMA bulk tensor stores */
/* 1: a producer warp group beside the kernel's threads issues those, and the others only multiply; 0: they do it. */
#define TIR_PIPELINE_PRODUCER "software_pipeline_producer"
/* So many persistent blocks do all tiles of a kernel that has a producer; 0: each tile has a block. */
#define TIR_PIPELINE_BLOCKS "software_pipeline_blocks"
/* So many blocks, neighbours along x, are a cluster, and multicast what they all copy; 1 or 0: each copies its own. */
#define TIR_PIPELINE_MULTICAST "software_pipeline_multicast"
/* How many groups of warp-group MMA an iteration leaves in flight: 0 or 1. */
#define TIR_PIPELINE_IN_FLIGHT "software_pipeline_products_in_flight"
/* 1: of two warp-group MMAs with work between, the second goes on beside that work of the next iteration. */
#define TIR_PIPELINE_OVERLAP "software_pipeline_overlap"
/* 1: two consumer warp groups take turns: one's MMAs begin once the other's have. */
#define TIR_PIPELINE_ALTERNATE "software_pipeline_alternate"

/* ---- The plan ---- */

enum {
  TIR_PIPELINE_STATEMENTS = 64, /* at most */
  TIR_PIPELINE_DEEPEST = 8,     /* stages behind the first, at most */
  TIR_PIPELINE_PARTS = 3        /* statements that an inner pipeline becomes: prologue, steady state, epilogue */
};
/* What the only block in a statement of the loop is annotated with: bits. */
enum { TIR_STATEMENT_BY_REGISTERS = 1, TIR_STATEMENT_DOUBLES = 2 };
/* What a statement does with a buffer: bits. */
enum { TIR_STATEMENT_READS = 1, TIR_STATEMENT_WRITES = 2 };

struct tir_pipeline_statement {
  int64_t stage;   /* from 0 */
  uint32_t order;  /* its place in a step */
  bool async;      /* its stage is */
  bool doubles;    /* it requests two stage buffers of what it writes, at least */
  bool multiplies; /* by warp-group MMA */
};

struct tir_pipeline_plan {
  uint32_t count;
  struct tir_pipeline_statement statements[TIR_PIPELINE_STATEMENTS];
  int64_t depth;     /* the last stage */
  int64_t in_flight; /* groups of warp-group MMA that an iteration leaves so */
  bool bulk;         /* TMA brings what statements of asynchronous stages copy: requested, then granted */
  bool producer;     /* a producer warp group issues that: requested, then granted */
  int64_t blocks;    /* persistent blocks: requested, then granted; 0: a block a tile */
  int64_t multicast; /* blocks of a cluster that share copies: requested, then granted; 1: none do */
  uint32_t ring;     /* stage buffers of what TMA brings; 0: it brings nothing */
  bool frees;        /* mbarriers, too, say when such a stage buffer may be overwritten */
};

/* Whether a loop is annotated as a software pipeline. */
bool tir_is_pipeline(const struct tir *ir, tir_stmt s);
/* What the only block of a statement requests of the pipeline around it: bits of TIR_STATEMENT_BY_REGISTERS … */
unsigned tir_statement_requests(const struct tir *ir, tir_stmt top);
/* Fills the plan from the loop's annotations: of its statements, so many as `count` says, stage, order and async,
 * and all that is requested. What the caller knows of the statements besides stays. False: refused. */
bool tir_read_pipeline(const struct tir *ir, tir_stmt loop, struct tir_pipeline_plan *plan, ms_error *err);
/* How many stage buffers a buffer of the loop's own needs. uses: what each statement does with it. apart: whether
 * what two statements touch of it, in whatever iterations, has nothing in common; NULL: no two are known to. */
typedef bool tir_statements_apart(void *data, uint32_t a, uint32_t b);
uint32_t tir_stage_buffers(const struct tir_pipeline_plan *plan, const uint8_t *uses, tir_statements_apart *apart,
                           void *data);
/* Iterations after which a stage buffer may be overwritten that warp-group MMA reads. */
static inline int64_t tir_pipeline_lag(const struct tir_pipeline_plan *plan) {
  return plan->depth ? plan->in_flight : 0;
}

/* ---- Its mbarriers: those that a stage buffer is full, a ring of them, then those that it is empty, another ---- */

static inline uint32_t tir_pipeline_mbarriers(const struct tir_pipeline_plan *plan) {
  return plan->frees ? 2 * plan->ring : plan->ring;
}
static inline uint32_t tir_first_empty_mbarrier(const struct tir_pipeline_plan *plan) { return plan->ring; }
/* The ring of so many mbarriers of both kinds. */
static inline int64_t tir_ring_of_mbarriers(int64_t mbarriers) { return mbarriers / 2; }

/* ---- Its producer warp group ---- */

/* Threads of a block, of so many that compute. */
static inline int64_t tir_pipeline_threads(const struct tir_pipeline_plan *plan, int64_t threads) {
  return plan->producer ? threads + TIR_GROUP : threads;
}
/* A thread's registers, by role. False: all have enough, and none gives any away. */
struct tir_role_registers {
  int64_t consumer, producer;
};
bool tir_share_registers(int64_t consumers, struct tir_role_registers *out);
/* A thread's registers as a kernel of so many threads starts that changes them: what its block has, shared out. */
int64_t tir_registers_each(int64_t threads);

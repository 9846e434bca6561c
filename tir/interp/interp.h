/* The reference interpreter. Internal to tir.
 *
 * A function is compiled once to a flat list of instructions over registers (interp_stmt.c, interp_expr.c), then
 * executed (interp_run.c). All that runs is explicit: a thread is its registers, its buffers and its place in the code,
 * so that the threads of a kernel take turns between barriers (interp_thread.c). Memory knows its bounds and which of
 * its bytes were written (interp_memory.c): to compute with what is unwritten is an error, and to leave it in an
 * argument; a plain copy of it makes the target unwritten. A vector is its lanes: each lane
 * is computed by scalar instructions.
 *
 * A value is 64 bits: integers are kept wrapped to their type (sign-extended, or zero-extended when unsigned); floats
 * of every type are kept as a double that is exactly a value of the type. Sums, products, quotients and roots computed
 * in double and then rounded equal those computed in float32 or less (Figueroa 1995), so one arithmetic serves all. */
#ifndef MSCHED_TIR_INTERP_H
#define MSCHED_TIR_INTERP_H

#include "tir/node/arena.h"

union value {
  int64_t i;
  double f;
};

/* An operand names a register when >= 0, and constant -1 - operand otherwise. */
typedef int32_t operand;
#define NO_OPERAND INT32_MIN

/* Arithmetic comes once for each way to keep a result in its type; the last of each group looks its type up. */
#define INTERP_ARITHMETIC(X) X(ADD) X(SUB) X(MUL)
// clang-format off
enum op {
  OP_HALT, OP_RETURN, OP_JUMP, OP_JUMP_IF, OP_JUMP_IF_NOT, OP_JUMP_NOT_EQUAL, OP_LOOP, OP_NEXT, OP_MOVE, OP_STEP,
#define ARITHMETIC(name)                                                                                               \
  OP_##name##_I32, OP_##name##_I64, OP_##name##_INT, OP_##name##_F32, OP_##name##_F64, OP_##name##_FLOAT,
  INTERP_ARITHMETIC(ARITHMETIC)
#undef ARITHMETIC
  OP_DIV_F32, OP_DIV_FLOAT, OP_MOD_FLOAT,
  OP_DIV_INT, OP_MOD_INT, OP_FLOORDIV_INT, OP_FLOORMOD_INT, OP_DIV_UINT, OP_MOD_UINT,
  OP_MIN_INT, OP_MAX_INT, OP_MIN_UINT, OP_MAX_UINT, OP_MIN_FLOAT, OP_MAX_FLOAT,
  OP_EQ_INT, OP_NE_INT, OP_LT_INT, OP_LE_INT, OP_LT_UINT, OP_LE_UINT,
  OP_EQ_FLOAT, OP_NE_FLOAT, OP_LT_FLOAT, OP_LE_FLOAT, OP_NOT, OP_AND, OP_OR,
  OP_SHIFT_LEFT, OP_SHIFT_RIGHT, OP_BIT_AND, OP_BIT_OR, OP_BIT_XOR, OP_BIT_NOT,
  OP_WRAP, OP_FROM_INT, OP_FROM_UINT, OP_TO_INT, OP_ROUND, OP_INT_TO_BOOL, OP_FLOAT_TO_BOOL, OP_REINTERPRET,
  OP_ABS_INT, OP_CLZ, OP_POPCOUNT, OP_IS_NAN, OP_IS_INF, OP_IS_FINITE, OP_MATH1, OP_MATH2, OP_FMA,
  OP_LOAD1, OP_LOAD2, OP_LOAD3, OP_LOAD1_F32, OP_LOAD2_F32, OP_LOAD3_F32, OP_LOAD,
  OP_STORE1, OP_STORE2, OP_STORE3, OP_STORE1_F32, OP_STORE2_F32, OP_STORE3_F32, OP_STORE, OP_COPIED, OP_BEGIN_COPY,
  OP_CHECK_DOMAIN, OP_CHECK_EQUAL, OP_CHECK_DIVISIBLE, OP_ASSERT,
  OP_PARAM, OP_ALLOC, OP_MATCH, OP_DECLARE, OP_VIEW_STRIDE, OP_VIEW_OFFSET,
  OP_DATA, OP_ADDRESS, OP_POINTER_ADD, OP_EXTERN,
  OP_KERNEL, OP_THREAD, OP_COMMIT, OP_WAIT, OP_PHASE, OP_BARRIER, OP_CLUSTER, OP_NAMED, OP_WARP, OP_SHUFFLE,
  OP_ALLREDUCE,
  OP_PARALLEL, OP_ITERATION, OP_JOIN, OP_THREAD_NUMBER
};
// clang-format on

/* Loads whose element need not be written: of what is stored as it is, or of a lane that is nobody's where it has no
 * value (a dot product's). What they are stored to is then unwritten, too. */
enum copies { COPIES_NOTHING, COPIES_ELEMENT, COPIES_LANE };

/* dst, a and b are operands unless the instruction says otherwise; c and d too, or a type, a site or a target. */
struct instruction {
  uint16_t op;
  uint8_t rank;
  uint8_t copies; /* of a load: enum copies */
  operand dst, a, b, c, d;
};

enum { INTERP_MOST_RANK = TIR_MOST_RANK };

/* What an instruction of many operands names: an allocation, a view, a call, a kernel, a reduction. */
struct site {
  tir_buffer buffer, source;
  uint32_t slot, source_slot;
  struct tir_span shape, strides, args; /* in code.lists; strides empty: compact */
  operand offset;                       /* elements, or NO_OPERAND */
  uint32_t param;                       /* OP_PARAM: which argument */
  uint32_t entry, end;              /* OP_KERNEL: after the kernel. OP_ALLREDUCE: the combiner's first instruction */
  uint32_t count;                   /* OP_ALLREDUCE: values reduced together; OP_KERNEL: blocks of a cluster */
  uint8_t share;                    /* OP_ALLOC: enum share */
  uint8_t grain;                    /* OP_ALLOC of a workspace: the size of the smallest elements in it; else 0 */
  bool begins;                      /* OP_DECLARE of an allocation in a workspace: nothing of it is written yet */
  const struct tir_extern *handler; /* OP_EXTERN */
  tir_type result;
  const char *name; /* OP_EXTERN: what is called */
};
/* What OP_CHECK_EQUAL compares. */
enum agreement { AGREE_STRIDE, AGREE_EXTENT, AGREE_OFFSET, AGREE_THREADS };
enum share { SHARE_NONE, SHARE_WARP, SHARE_WARP_GROUP, SHARE_BLOCK, SHARE_GRID };

/* How a thread tag is known: blockIdx.x … threadIdx.z. */
enum { THREAD_DIMS = 6, FIRST_THREAD_DIM = 3 };
int interp_thread_dim(const char *tag); /* -1: not one of them */

/* An argument of an extern call or of a kernel, as compiled. */
struct call_arg {
  operand value, extent;
  tir_type type;
  uint32_t access;
  tir_symbol text;
  uint32_t slot; /* of a buffer's data pointer: the buffer's slot + 1 */
};               /* lists hold 6 words */
enum { CALL_ARG_WORDS = 6 };

#define INTERP_LIST(type, name)                                                                                        \
  struct {                                                                                                             \
    type *at;                                                                                                          \
    uint32_t count, capacity;                                                                                          \
  } name
struct program {
  INTERP_LIST(struct instruction, code);
  INTERP_LIST(tir_stmt, places); /* of each instruction */
  INTERP_LIST(union value, constants);
  INTERP_LIST(int32_t, lists);
  INTERP_LIST(struct site, sites);
  INTERP_LIST(tir_buffer, slots); /* the buffer of each slot */
  uint32_t registers;
  bool has_float32;
};
#define INTERP_PUSH(list, ...)                                                                                         \
  do {                                                                                                                 \
    if ((list).count == (list).capacity)                                                                               \
      (list).at = tir_enlarge((list).at, &(list).capacity, (uint64_t)(list).count + 1, sizeof *(list).at);             \
    (list).at[(list).count++] = (__VA_ARGS__);                                                                         \
  } while (0)
void interp_program_free(struct program *p);

/* Compiles a function. first_values: the values of variables that arguments define, one a variable (is_set). */
bool interp_compile(const struct tir *ir, tir_func f, const struct tir_run_options *options,
                    const union value *var_values, const bool *var_set, struct program *out, ms_error *err);

/* ---- Memory ---- */

/* Who touched an element last, to find races between the threads of a kernel, or between the iterations of a parallel
 * loop; in the pieces of a workspace, which outlive an iteration, between the loop's threads. Epochs grow from barrier
 * to barrier; within one, barriers in shared memory order what a thread did before with what another does after. */
struct touch {
  uint32_t write_epoch, writer, read_epoch, reader;
  uint32_t write_time, read_time; /* of those threads: interp_order.c */
  uint32_t others;                /* who read in that epoch besides: in machine.readers, from 1; 0: nobody */
  uint32_t held;                  /* by how many products that are not waited for */
  uint32_t box,
      phase; /* the barrier, from 1, and its phase that ends when the copy which wrote it has arrived; 0: none did */
};
enum { MANY_THREADS = UINT32_MAX - 1 };

/* A piece of memory. A byte is written when its shadow equals the generation, which grows with each new life. Of an
 * unwritten byte the shadow is anything else. LENT: it is a copy of an argument's unwritten contents, which may be
 * copied back. SPOILED: an argument's own, where unwritten memory of the function was copied; none may be left at the
 * end. COMING: an asynchronous copy has not arrived. */
enum { COMING = 253, SPOILED = 254, LENT = 255 };
struct object {
  uint8_t *data, *shadow;
  size_t bytes, capacity;
  uint32_t index;           /* in machine.objects */
  uint32_t life;            /* of shared memory: the block's or grid's first epoch */
  uint8_t generation, size; /* size of an element */
  int64_t pieces;           /* of a workspace: the element that the pieces of threads begin at; else INT64_MAX */
  bool owned;               /* data is the interpreter's */
  bool tolerant;            /* reading what was never written is noted in read_first, not refused */
  bool read_first;
  bool lends;            /* a shadow is LENT */
  uint32_t spoiled_at;   /* the instruction after the last copy that left a shadow SPOILED; 0: none */
  tir_buffer spoiled;    /* by what name it was made */
  bool transposed;       /* a matrix that a tensor unit loaded by columns */
  uint8_t products;      /* of sums of a warp group: enum products */
  uint32_t in_flight;    /* the group of the last product that changes them, from 1; 0: all are waited for */
  struct touch *touches; /* one an element; NULL outside kernels and for memory of one thread */
};

/* A buffer as a thread sees it: an object from an offset on, with a shape. */
struct view {
  struct object *object;
  uint8_t *data, *shadow; /* at the view's first element */
  uint64_t written;       /* the object's generation in every byte */
  int64_t offset;         /* of the first element, from the object's start, in elements */
  int64_t base;           /* what the data pointer leads to, in bytes from the object's start */
  uint8_t size, format;   /* of an element */
  bool whole;             /* every index within the shape is within the object */
  bool plain;             /* whole, and no one watches who touches the object */
  uint32_t rank;
  struct {
    int64_t extent, stride;
  } dim[];
};

/* How an element lies in memory. */
// clang-format off
enum format {
  FORMAT_I8, FORMAT_U8, FORMAT_I16, FORMAT_U16, FORMAT_I32, FORMAT_U32, FORMAT_I64, FORMAT_F16, FORMAT_BF16,
  FORMAT_F32, FORMAT_F64, FORMAT_E4M3, FORMAT_E5M2, FORMAT_BAD
};
// clang-format on
enum format interp_format(tir_type t);
int interp_format_size(enum format format);
union value interp_fetch(enum format format, const void *at);
void interp_put(enum format format, void *at, union value v);

/* A pointer is an object and a byte in it. */
static inline int64_t interp_pointer(uint32_t object, int64_t byte) {
  return (int64_t)((uint64_t)(object + 1) << 40) + byte;
}

/* ---- Arithmetic ---- */

double interp_round_to(tir_type t, double x); /* to the nearest value of a float type, ties to even */
int64_t interp_wrap(tir_type t, int64_t x);
double interp_to_tf32(double x); /* ten bits after the first, ties away from zero */
/* Rounded once; an integer without a sign has its bits in x. */
double interp_from_int(tir_type t, int64_t x, bool is_signed);
int64_t interp_to_int(tir_type t, double x); /* truncates; saturates; 0 for NaN */
union value interp_reinterpret(tir_type from, tir_type to, union value v);
/* A call by name of one or two floats, or -1. */
int interp_math_find(const char *name, uint32_t arity);
double interp_math1(int which, double x);
/* NaN is left out, and +0 is more than -0: IEEE 754-2019's minimumNumber and maximumNumber. */
static inline double interp_least(double a, double b) {
  return a < b || b != b || (a == b && __builtin_signbit(a)) ? a : b;
}
static inline double interp_most(double a, double b) {
  return a > b || b != b || (a == b && __builtin_signbit(b)) ? a : b;
}
double interp_math2(tir_type t, int which, double x, double y); /* of numbers of the type */
/* Set when a float of 16 or 8 bits was rounded; rounding to float32 or float64 sets FE_INEXACT. */
enum { ROUNDED_F16 = 1, ROUNDED_BF16 = 2, ROUNDED_E4M3 = 4, ROUNDED_E5M2 = 8 };
extern _Thread_local unsigned interp_rounded;

/* ---- Execution ---- */

/* An asynchronous copy (cp.async): it arrives when its thread waits for its group, and no sooner. */
struct coming {
  struct object *object;
  int64_t element, byte; /* of the object */
  uint64_t value;
  uint32_t group;
  tir_buffer buffer;
  uint8_t size, written; /* what the shadow becomes */
};

/* An element that a product reads until its group is waited for. */
struct held {
  struct object *object;
  int64_t element;
  uint32_t group;
  tir_buffer buffer;
};

/* A barrier in shared memory that counts threads and bytes. */
struct mbarrier {
  struct object *object;
  int64_t element;
  uint32_t count, pending; /* threads of a phase; of this one that have not arrived */
  uint32_t phase;          /* how many have ended */
  int64_t bytes;           /* that the phase waits for, of those announced so far */
};

/* A thread that read an element at this time, and the next one. */
struct reader {
  uint32_t who, time, next;
};

/* An arrival in another block of the cluster, or a load of its memory: it must come before that block ends. */
struct distant {
  uint32_t who, time, epoch, block;
};

/* An element that a copy of a box brings: it arrives when all threads wait, and no sooner. */
struct boxed {
  struct coming element;
  uint32_t barrier;
};

enum { WARP = TIR_WARP }; /* threads of a block with consecutive numbers */
enum thread_status {
  THREAD_RUNNING,
  THREAD_DONE,
  THREAD_AT_WARP,
  THREAD_AT_BARRIER,
  THREAD_AT_CLUSTER,
  THREAD_AT_NAMED,
  THREAD_AT_REDUCE,
  THREAD_AT_PHASE,
  THREAD_FAILED
};
struct thread {
  union value *memory, *regs; /* regs is within memory: constants lie below it */
  struct view **views;        /* by slot: what the thread sees */
  struct view **own_views;    /* by slot: views made by this thread, its own to free */
  struct object **own;        /* by slot: memory of this thread alone */
  uint32_t pc, index;         /* index: in the block */
  uint32_t block, first;      /* the rank of its block in the cluster, and the number there of the block's first */
  uint32_t number;            /* of the thread that runs the iteration of a parallel loop */
  uint8_t status;
  int64_t at[THREAD_DIMS]; /* coordinates in the kernel */
  INTERP_LIST(struct coming, coming);
  uint32_t groups;                  /* of such copies, ended so far */
  INTERP_LIST(struct held, held);   /* of the first of a warp group */
  uint32_t product_groups;          /* that it has committed so far */
  INTERP_LIST(struct held, stored); /* what its bulk stores read */
  uint32_t store_groups;            /* of these, that it has committed so far */
  INTERP_LIST(uint32_t, ended);     /* by barrier: phases that it knows to have ended */
  int64_t registers;                /* that it asked for; 0: those that it started with */
  uint32_t arrived;                 /* bits of barriers with a number that it came to without waiting */
  int64_t arrived_for;              /* so many threads, the last time */
  uint32_t time;                    /* grows where it arrives */
  INTERP_LIST(uint32_t,
              known);    /* by thread: up to which of its times all is done before what this one does; may be short */
  struct thread *leader; /* in a kernel: the first of its warp, which owns what the warp shares */
  struct thread *group;  /* the first of its warp group */
};

/* A load that may do so loaded an unwritten element. */
struct missing {
  const struct instruction *load;
  uint8_t shadow; /* what the target's shadow becomes */
};

struct machine {
  const struct tir *ir;
  const struct program *program;
  const struct tir_run_options *options;
  const struct tir_arg *args;
  ms_error *err;
  bool failed;
  struct thread host;
  struct object **shared; /* by rank in the cluster and slot: memory of a block of threads; of the first: of the grid */
  INTERP_LIST(struct object *, objects);
  uint32_t *param_objects;              /* by parameter: its object, or UINT32_MAX */
  INTERP_LIST(struct missing, missing); /* loads of unwritten elements by the store that is being made */
  uint64_t memory_used, memory_limit;
  int64_t steps, step_limit;
  bool in_kernel;
  int64_t extents[THREAD_DIMS];
  uint32_t epoch, block_epoch, grid_epoch;
  uint32_t cluster;                        /* blocks that run side by side */
  uint32_t over;                           /* bits of their ranks: all of the block's threads have ended */
  INTERP_LIST(struct mbarrier, mbarriers); /* of the cluster */
  INTERP_LIST(struct boxed, boxed);        /* that have not arrived */
  INTERP_LIST(struct distant, distant);    /* of the cluster */
  uint32_t block_threads, cluster_threads;
  INTERP_LIST(uint32_t, clocks); /* by barrier: what who arrived knew, in its phase; then, in those that have ended */
  INTERP_LIST(struct reader, readers); /* of the block */
  uint32_t threads; /* of a parallel loop, as the function's workspace is laid out for; 0: it has none */
};

/* The number of the thread among those of its cluster. */
static inline uint32_t interp_number_of(const struct thread *t) { return t->first + t->index; }

/* Refuses with the place that `t` is at. Returns false. */
bool interp_fail(struct machine *m, const struct thread *t, enum ms_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Runs a thread until it ends, waits or fails; the status is also the thread's. */
enum thread_status interp_execute(struct machine *m, struct thread *t);
bool interp_run_kernel(struct machine *m, struct thread *host, const struct site *site);
struct tir_extern_call {
  struct machine *machine;
  struct thread *thread;
  const struct site *site;
  struct tir_value result;
  bool failed;
};
bool interp_call_extern(struct machine *m, struct thread *t, const struct site *site, union value *result);
/* What does a device call, where that is a function; NULL: it is none. One that is made by lanes gets the lane after
 * its arguments. (interp_device.c) */
const struct tir_extern *interp_device_call(enum tir_device_call which);
#define INTERP_COMPILED(name)
#define INTERP_CALLED(name) bool interp_do_##name(struct tir_extern_call *call, void *data);

#define TIR_DEVICE_CALL(id, name, operands, type, by, run, ...) INTERP_##run(name)
#include "tir/gpu/calls.def"
#undef INTERP_COMPILED
#undef INTERP_CALLED
/* What such functions need. */
struct object *interp_call_object(const struct tir_extern_call *call, uint32_t arg);     /* NULL: it is no pointer */
int64_t interp_call_pointer(const struct tir_extern_call *call, uint32_t arg);           /* as interp_pointer has it */
void interp_call_aim(const struct tir_extern_call *call, uint32_t arg, int64_t pointer); /* in place of its own */
int64_t interp_call_stride(const struct tir_extern_call *call, uint32_t arg); /* from row to row of a matrix; 0: none */
tir_type interp_call_type(const struct tir_extern_call *call, uint32_t arg);  /* of what it leads to */
bool interp_call_leads(const struct tir_extern_call *call);                   /* the thread is the first of its warp */
/* The thread's number in its warp group; -1: outside of a kernel. */
int interp_call_lane(const struct tir_extern_call *call);
/* Brings what the warp group owns from one state of its products to another. */
void interp_call_bring(const struct tir_extern_call *call, uint8_t is, uint8_t becomes);
/* Groups of products that the warp group has committed; commits one more. In a kernel. */
uint32_t interp_call_groups(const struct tir_extern_call *call);
void interp_call_commit(const struct tir_extern_call *call);
/* Marks an argument's element, which was loaded, as read until a group is waited for; false: nothing is kept of it, as
 * outside of kernels. */
bool interp_call_mark(const struct tir_extern_call *call, uint32_t arg, int64_t index, uint32_t group,
                      struct held *out);
/* A product reads the element until its group is waited for: who writes it before causes a race. */
void interp_call_hold(const struct tir_extern_call *call, uint32_t arg, int64_t index);
bool interp_call_release(struct tir_extern_call *call, int64_t left); /* what all groups but so many have read */
bool interp_call_whole_groups(const struct tir_extern_call *call);    /* blocks are of whole warp groups */
/* Whether the phase of this parity of the barrier has ended: *ended; the thread then knows. False: refused. */
bool interp_is_phase_over(struct machine *m, struct thread *t, int64_t pointer, int64_t parity, bool *ended);
void interp_begin_boxes(struct machine *m, struct thread *threads, uint32_t count); /* of a cluster */
bool interp_end_stores(struct machine *m, const struct thread *threads, uint32_t count);
bool interp_end_boxes(struct machine *m, const struct thread *threads, uint32_t count); /* or refuses: some are late */
/* All that is on its way arrives; *any: something did. False: refused. */
bool interp_deliver_boxes(struct machine *m, struct thread *t, bool *any);
bool interp_fail_phase(struct machine *m, const struct thread *t); /* it waits for what does not come */
/* What barriers in shared memory say of the order of what threads do (interp_order.c): as a block begins; a barrier,
 * the last of them, is made; the thread arrives at it; its phase ends; the thread has waited for that. */
void interp_order_begin(struct machine *m, struct thread *threads, uint32_t count);
void interp_order_add(struct machine *m);
void interp_order_arrive(struct machine *m, struct thread *t, uint32_t barrier);
void interp_order_end(struct machine *m, uint32_t barrier);
void interp_order_wait(struct machine *m, struct thread *t, uint32_t barrier);
bool interp_is_at_named(const struct machine *m, const struct thread *t, int64_t number); /* it waits there */
void interp_order_meet(struct machine *m, struct thread *threads, uint32_t count,
                       int64_t number); /* those of a block at this named barrier; -1: all */
/* The block has the registers that its threads asked for (interp_group.c). False: refused. */
bool interp_check_registers(struct machine *m, const struct thread *threads, uint32_t count);
bool interp_knows(const struct thread *t, uint32_t who, uint32_t time); /* what `who` did then is done */
/* Notes that the thread reads; whether another may do at the same time what it reads, in the epoch. */
void interp_order_read(struct machine *m, const struct thread *t, struct touch *touch, uint32_t who);
bool interp_is_read_besides(const struct machine *m, const struct thread *t, const struct touch *touch);
/* A thread with registers and slots, copied from `from` if given. */
bool interp_thread_init(struct machine *m, struct thread *t, const struct thread *from);
void interp_thread_free(struct machine *m, struct thread *t);

/* The thread of `threads` that runs one of a parallel loop's iterations, as compiled code shares them out: thread t has
 * those from extent * t / threads on. */
static inline uint32_t interp_thread_of(uint32_t threads, int64_t iteration, int64_t extent) {
  return threads < 2 ? 0 : (uint32_t)((((unsigned __int128)iteration + 1) * threads - 1) / (uint64_t)extent);
}

bool interp_make_param(struct machine *m, struct thread *t, const struct site *site);
bool interp_make_alloc(struct machine *m, struct thread *t, const struct site *site);
bool interp_make_match(struct machine *m, struct thread *t, const struct site *site);
bool interp_make_declare(struct machine *m, struct thread *t, const struct site *site);
void interp_begin_copy(struct thread *t, const struct view *v, int64_t element, tir_buffer buffer);
bool interp_wait_copies(struct machine *m, struct thread *t, int64_t left); /* groups that need not have arrived */
void *interp_take_memory(struct machine *m, const struct thread *t, uint64_t bytes); /* zeroed; NULL: refused */
void interp_objects_free(struct machine *m, uint32_t first);                         /* from `first` on */
/* From here on (first to last object) it is noted which thread, or iteration of a parallel loop, touches what; until
 * the end of that. `t` is the thread that goes on. */
bool interp_watch(struct machine *m, struct thread *t);
void interp_unwatch(struct machine *m, struct thread *t);
/* Whether thread `t` may read (write) `size` bytes at `element` of an object that threads share. */
bool interp_touch_read(struct machine *m, struct thread *t, struct object *o, int64_t element, tir_buffer buffer);
bool interp_touch_write(struct machine *m, struct thread *t, struct object *o, int64_t element, bool same,
                        tir_buffer buffer);

static inline union value interp_get(const struct thread *t, operand at) { return t->regs[at]; }

double tir_reduction_length(const struct tir *ir, tir_stmt store); /* terms that a store sums; 0: it sums none */

#endif

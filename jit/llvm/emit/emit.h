/* From a lowered function to an LLVM module. Internal to jit.
 *
 * Requires of the function: no blocks; buffers of one dimension; large allocations laid out in the workspace; loops
 * serial, unrolled or parallel; vectors as ramps and broadcasts. Index arithmetic is emitted in 64 bits: loop variables
 * are 64-bit phis, narrowed where a value is used as data. All parameters are noalias, restated for the outlined body
 * of a parallel loop and for the function of a nest. */
#ifndef MSCHED_JIT_EMIT_H
#define MSCHED_JIT_EMIT_H

#include "jit/jit.h"
#include "jit/llvm/api.h"

/* An innermost loop whose addresses step from one iteration to the next (emit_step.c). */
enum { EMIT_MOST_STEPS = 8, EMIT_MOST_FIRSTS = 64, EMIT_MOST_FETCHED = 16 };
struct emit_steps {
  struct emit_steps *outer; /* of the loop around, or NULL */
  tir_var var;
  int64_t extent;
  LLVMValueRef min; /* of the variable */
  tir_loop loop;
  LLVMBasicBlockRef before, body; /* which comes in, and begins the loop */
  uint32_t counters, firsts;
  int64_t bytes[EMIT_MOST_STEPS];        /* by which counters grow */
  LLVMValueRef counter[EMIT_MOST_STEPS]; /* from 0 */
  struct emit_first {
    tir_buffer buffer;
    tir_expr index;
    LLVMValueRef address;
  } first[EMIT_MOST_FIRSTS]; /* addresses of the first iteration */
  uint32_t fetches;
  struct emit_fetched {
    tir_buffer buffer;
    tir_expr index;
    int64_t apart, lines;       /* bytes from one iteration to the next; lines that are read of each */
  } fetched[EMIT_MOST_FETCHED]; /* ahead */
  bool sums;                    /* no store of the loop moves with it */
  uint32_t strips;
  struct emit_fetched strip[EMIT_MOST_FETCHED]; /* parts of packed operands that are fetched ahead */
  uint32_t rows;
  struct emit_fetched row[EMIT_MOST_FETCHED]; /* of what is read row by row, several times each: apart is to the next */
};

struct emit {
  const struct tir *ir;
  tir_func func;
  const struct jit_target *target;
  bool fast_math;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMValueRef function;       /* being written */
  LLVMBasicBlockRef entry;     /* its first block: allocas go here */
  LLVMBasicBlockRef leave;     /* where a failed assertion goes */
  LLVMValueRef *vars;          /* value of each variable; integers of 64 bits. NULL: not in scope */
  uint8_t *lets;               /* by variable: it is bound inside of an expression */
  struct emit_steps *steps;    /* of the loop at hand, or NULL */
  LLVMValueRef *buffers;       /* pointer to the first element of each buffer */
  uint8_t *of_buffer, *of_var; /* facts of their NaN: EMIT_NUMBER, EMIT_SHORT_NAN */
  tir_buffer stored;           /* by the store whose value is written; TIR_NONE: by none */
  tir_stmt store;              /* at hand, or TIR_NONE */
  uint32_t streamed_count;     /* since a loop began: more than there is room for push out the first */
  struct emit_streamed {
    tir_buffer buffer;
    tir_expr index;
  } streamed[32];         /* what is fetched ahead, of the loop at hand */
  LLVMValueRef status;    /* pointer to the status returned */
  LLVMValueRef workspace; /* pointer: the function's parameter */
  LLVMValueRef thread;    /* number of the thread inside a parallel loop, else NULL */
  uint32_t bodies;        /* outlined so far */
  LLVMValueRef *shared;   /* by number of what is outlined: a nest's function, or what threads start at; or NULL */
  uint32_t shared_count;
  bool uses_tiles;          /* AMX's, or SME's */
  const char *plain;        /* an entry that does without them, or NULL */
  struct emit_tiles *tiles; /* of the loop being written, where it holds accumulators; else NULL */
  struct emit_sme *sme;     /* of the function being written, where it is in streaming mode; else NULL */
  int aligned;              /* the store at hand is nontemporal, at a multiple of so many bytes; or 0 */
  bool streams;             /* the function being written has nontemporal stores: it ends with a fence */
  ms_error *err;
  bool failed;
};

/* Emits function f of a module as jit_entry `name` into `module`. plain: NULL, or a jit_entry that the module gets too:
 * it is called instead where the system refuses tiles. */
bool jit_emit(LLVMModuleRef module, const struct tir *ir, tir_func f, const char *name, const char *plain,
              const struct jit_target *target, const struct jit_options *options, ms_error *err);

/* emit_build.c */
LLVMValueRef emit_refusal(struct emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
LLVMValueRef emit_alloca(struct emit *e, LLVMTypeRef type, uint64_t count, unsigned align);
/* index: of a parameter, from 1, or LLVMAttributeFunctionIndex. */
void emit_add_attribute(struct emit *e, LLVMValueRef f, unsigned index, const char *name);
/* Calls intrinsic `name` overloaded on one type. */
LLVMValueRef emit_intrinsic(struct emit *e, const char *name, LLVMTypeRef overload, LLVMValueRef *args, unsigned count);
/* Calls an intrinsic of the machine's, of one type. */
LLVMValueRef emit_machine_intrinsic(struct emit *e, const char *name, LLVMValueRef *args, unsigned count);
/* emit_type.c */
LLVMTypeRef emit_type(struct emit *e, tir_type type);
uint64_t emit_type_bytes(tir_type type); /* of one element as stored */
LLVMValueRef emit_splat(struct emit *e, LLVMValueRef scalar, int lanes);
/* A float32 that was computed and has EMIT_SHORT_NAN, as bfloat16. */
LLVMValueRef emit_round_to_bfloat(struct emit *e, LLVMValueRef value, tir_type to);
LLVMValueRef emit_cast(struct emit *e, LLVMValueRef value, tir_type from, tir_type to);
LLVMValueRef emit_int64(struct emit *e, int64_t value);
/* emit_expr.c */
LLVMValueRef emit_expr(struct emit *e, tir_expr x);
LLVMValueRef emit_index(struct emit *e, tir_expr x);  /* scalar, as 64 bits: of a place, which cannot leave its type */
LLVMValueRef emit_number(struct emit *e, tir_expr x); /* the same of any integer: those of data wrap around */
/* One of two values, of which only that one is computed. TIR_NONE: then true, else false. */
LLVMValueRef emit_choice(struct emit *e, tir_type type, tir_expr condition, tir_expr then, tir_expr otherwise);
LLVMValueRef emit_bound(struct emit *e, tir_expr value); /* what a variable is that is bound to it */
/* emit_numbers.c */
enum {
  EMIT_NUMBER = 1,   /* it is never NaN */
  EMIT_SHORT_NAN = 2 /* where it is NaN, it has no bits below those of a bfloat16 */
};
void emit_find_facts(struct emit *e);                     /* fills `of_buffer` and `of_var` */
unsigned emit_facts(const struct emit *e, tir_expr real); /* of them, which hold */
double emit_most(const struct emit *e, tir_expr real);    /* no less than it, where it is not NaN; infinity: unknown */
/* emit_division.c */
/* Whether vectors of a type are divided by one number faster than element by element. */
bool emit_divides_at_once(const struct emit *e, tir_type type, tir_expr divisor);
LLVMValueRef emit_divide_at_once(struct emit *e, LLVMValueRef a, LLVMValueRef scalar);
/* emit_memory.c */
LLVMValueRef emit_address(struct emit *e, tir_expr load);             /* of the element that a load names */
LLVMValueRef emit_address_argument(struct emit *e, tir_expr address); /* address_of(…) */
LLVMValueRef emit_stride_between(struct emit *e, LLVMValueRef first, LLVMValueRef next); /* of rows, in bytes */
LLVMValueRef emit_load(struct emit *e, tir_expr load);
/* Of bytes four apart, which are the number'th of words that lie in their buffer: the words. */
LLVMValueRef emit_load_words(struct emit *e, tir_expr load, int number);
void emit_store(struct emit *e, tir_stmt store);
/* The next statement, where it and this store the halves of elements that lie side by side; TIR_NONE: it does not. */
tir_stmt emit_other_half(struct emit *e, tir_stmt store);
void emit_store_halves(struct emit *e, tir_stmt store, tir_stmt other);
void emit_fence(
    struct emit *e); /* at the end of a function: its nontemporal stores, if any, come before what follows */
/* emit_step.c */
/* Whether the loop is an innermost one over vectors. */
bool emit_is_stepped(const struct emit *e, tir_stmt loop);
/* An index less the constant that is added to it last, which is given; *rest: the index without it. */
int64_t emit_take_constant(const struct emit *e, tir_expr index, tir_expr *rest);
/* The address of an element in such a loop; NULL: it does not step, or the statement at hand is in none. */
LLVMValueRef emit_stepped_address(struct emit *e, tir_buffer buffer, tir_expr index, LLVMTypeRef element);
/* Notes that such a loop loads so many bytes there; at its end all that is noted is fetched for later iterations, where
 * the hardware would not. */
void emit_note_load(struct emit *e, tir_buffer buffer, tir_expr index, uint64_t bytes);
void emit_fetch_ahead(struct emit *e);
/* Fetches ahead what a sum reads once, of the lines that begin in a load of so many bytes at `at`. */
void emit_stream(struct emit *e, tir_buffer buffer, tir_expr index, LLVMValueRef at, uint64_t bytes);
/* Whether all stores of such a loop are to the same places in each iteration. */
bool emit_is_sum(const struct emit *e, tir_loop loop);
/* At the end of an iteration: what steps goes on. */
void emit_advance(struct emit *e, struct emit_steps *s);
/* emit_math.c */
LLVMValueRef emit_call(struct emit *e, tir_expr call);
/* Of a table of sixteen floats, those that the lowest four bits of words name (jit_table_lanes). */
LLVMValueRef emit_permuted(struct emit *e, LLVMValueRef table, LLVMValueRef at);
/* emit_dot.c */
LLVMValueRef emit_dot(struct emit *e, const struct tir_expr_node *call);   /* dot_lanes */
LLVMValueRef emit_slide(struct emit *e, const struct tir_expr_node *call); /* slide_lanes */
/* emit_parts.c */
/* A cast, of a part of bytes in vectors to floats; NULL: it is none that the target has an instruction for. */
LLVMValueRef emit_part(struct emit *e, const struct tir_expr_node *cast);
/* emit_stmt.c */
void emit_list(struct emit *e, tir_stmt first);
/* emit_instruction.c */
/* Emits the instruction that an attribute names. False: it names none, the statement below is to be emitted. */
bool emit_instruction(struct emit *e, tir_stmt attr);
/* emit_tiles.c */
void emit_tile_product(struct emit *e, const tir_expr *args, enum tir_instruction which, int rows);
void emit_tile_of_zeros(struct emit *e, const tir_expr *args, int rows);
/* Whether the first statements below an attribute make the tile zero. */
bool emit_begins_at_zero(const struct emit *e, tir_stmt attr, const tir_expr *tile);
/* What is below the attribute, with the tiles in registers that are at so many pairs of addresses. */
void emit_held_tiles(struct emit *e, tir_stmt attr, const tir_expr *held, uint32_t count);
/* Code of an entry that asks for the tiles. Gives whether they were refused. */
LLVMValueRef emit_tile_permission(struct emit *e, LLVMValueRef function);

/* emit_sme.c: the same on Arm CPUs. attr: the statement that names the instruction. */
void emit_sme_product(struct emit *e, tir_stmt attr, const tir_expr *args, enum tir_instruction which, int rows);
void emit_sme_zeros(struct emit *e, tir_stmt attr, const tir_expr *args);
void emit_sme_held(struct emit *e, tir_stmt attr, const tir_expr *held, uint32_t count);
LLVMValueRef emit_sme_refusal(struct emit *e); /* whether there are no tiles, as an i1 */
/* emit_nest.c */
tir_buffer emit_captured_buffer(const struct emit *e, const struct tir_captures *c, uint32_t i);
tir_var emit_captured_var(const struct emit *e, const struct tir_captures *c, uint32_t i);
/* An internal function; pointers from parameter `first` on are of captured buffers, noalias where those are apart. */
LLVMValueRef emit_declare_body(struct emit *e, const char *name, LLVMTypeRef signature, const struct tir_captures *c,
                               uint32_t first);
/* Begins to write it, at the end of its entry: what the emitter knows of values is its parameters', from `first` on,
 * until it ends. The result is for emit_end_body. */
struct emit emit_begin_body(struct emit *e, LLVMValueRef body, const struct tir_captures *c, uint32_t first);
void emit_end_body(struct emit *e, const struct emit *outer); /* in its block `leave` */
/* The function of all outlined code of a number; NULL: the first such comes now. */
LLVMValueRef emit_shared(const struct emit *e, uint32_t number);
void emit_share(struct emit *e, uint32_t number, LLVMValueRef function); /* 0: with none */
void emit_nest(struct emit *e, const struct tir_captures *captures);
/* emit_parallel.c */
void emit_parallel(struct emit *e, const struct tir_captures *captures);

#endif

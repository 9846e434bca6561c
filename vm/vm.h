/* vm: schedules. An instruction table, traces and their text forms, and the interpreter that replays them on tir.
 * The module's public header.
 *
 * A trace is a list of instructions and a vector of decisions. The instructions (struct vm_steps) are shared and never
 * written after; the decisions belong to one trace. What an instruction gives is a variable, numbered in order: a
 * block, a loop, a location (a loop or a mark) or an integer. A plan is a trace made ready for one workload: names
 * interned, operands resolved, so that a replay compares no string and allocates nothing once its schedule is warm. A
 * schedule is a module, a value for each variable, and the trace that made it.
 *
 * Deterministic: the same workload, trace, seed and candidate give the same module, bit for bit, whatever the number of
 * threads. A draw's value comes from (seed, candidate, draw id, try) alone, never from the draws before it.
 *
 * Distinct schedules share nothing that is written. Plans, and the steps of traces, may be read by many threads.
 * Source: Shao et al., "Tensor Program Optimization with Probabilistic Programs", NeurIPS 2022, sections 3 and 4. */
#ifndef MSCHED_VM_H
#define MSCHED_VM_H

#include "tir/tir.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The instruction table --------------------------------------------------------------------------------------- */

enum vm_kind {
#define INST(kind, old, method, inputs, attrs, outputs, effect, safe, source, performs, doc) VM_##kind,
#include "instructions.def"
#undef INST
  VM_KIND_COUNT
};

enum vm_effect { VM_EFFECT_look, VM_EFFECT_draw, VM_EFFECT_edit, VM_EFFECT_mark };

/* A line of the table; instructions.def says what the texts mean. */
struct vm_kind_info {
  const char *name, *old_names, *method, *inputs, *attrs, *outputs, *doc;
  enum vm_effect effect;
  bool safe, own; /* own: TVM has no such instruction */
};
const struct vm_kind_info *vm_kind_info(enum vm_kind kind);
/* By kind, old name or method; VM_KIND_COUNT: there is none. */
enum vm_kind vm_find_kind(const char *name, size_t length);

enum vm_type {
  VM_T_BLOCK,
  VM_T_LOOP,
  VM_T_LOCATION,
  VM_T_PLACE,
  VM_T_NEST, /* a loop, or a list of blocks */
  VM_T_INT,
  VM_T_REAL,
  VM_T_BOOL,
  VM_T_BIT,
  VM_T_STRING,
  VM_T_VALUE,
  VM_T_MAP,
  VM_T_CONDITION /* over drawn numbers */
};
struct vm_param {
  const char *name, *standard; /* standard: the default's text, or NULL; both end at a space or the text's end */
  uint8_t name_length, standard_length;
  uint8_t type;  /* enum vm_type */
  bool list;     /* a list of the type */
  bool optional; /* or None */
  char repeat;   /* 0, '+' or '*' */
};
enum { VM_MOST_PARAMS = 12 };
/* What a kind takes, parsed: inputs, then attributes. `order`: the method's arguments as indices into `at`. */
struct vm_signature {
  struct vm_param at[VM_MOST_PARAMS];
  uint8_t inputs, attrs, outputs; /* outputs: 0 or 1 entry */
  struct vm_param output;
  uint8_t order[VM_MOST_PARAMS];
  uint8_t method_length;
};
const struct vm_signature *vm_signature_of(enum vm_kind kind);
/* "a loop", "a list of integers or None": for messages and help. */
const char *vm_param_text(const struct vm_param *param, char *out, size_t size);

/* ---- Traces ------------------------------------------------------------------------------------------------------ */

enum vm_value_kind {
  VM_NONE,
  VM_BOOL,
  VM_INT,
  VM_REAL,
  VM_STRING,    /* count bytes at steps->text + first, a 0 after them */
  VM_REF,       /* ref: a variable of the trace */
  VM_LIST,      /* count values at steps->values + first */
  VM_MAP,       /* as a list: key (VM_STRING) and value in turn */
  VM_INDEX_MAP, /* as a list: the parameters' names (VM_STRING; op of them), then the results as expressions; of a
                   condition: no parameters, one result */
  VM_PARAM,     /* in an index map: parameter number `ref` */
  VM_APPLY      /* in an index map: operator `op` (enum tir_kind) on the list's values; bare: a cast's bits, a call's
                   operator in formula.c */
};
enum { VM_CONDITION = 1 }; /* `bare` of a VM_INDEX_MAP that is a condition */
struct vm_value {
  uint8_t kind, bare; /* bare: a string that stood without quotes where a name may stand; see the kinds of formulas */
  uint16_t op;
  uint32_t count;
  union {
    int64_t integer;
    double real;
    struct {
      union {
        uint32_t ref;
        uint32_t first;
      };
      uint32_t rest; /* 0: values that are the same are so byte by byte */
    };
  };
};
static inline struct vm_value vm_none(void) { return (struct vm_value){.kind = VM_NONE}; }
static inline struct vm_value vm_int(int64_t i) { return (struct vm_value){.kind = VM_INT, .integer = i}; }
static inline struct vm_value vm_bool(bool b) { return (struct vm_value){.kind = VM_BOOL, .integer = b}; }
static inline struct vm_value vm_real(double d) { return (struct vm_value){.kind = VM_REAL, .real = d}; }
static inline struct vm_value vm_ref(uint32_t variable) { return (struct vm_value){.kind = VM_REF, .ref = variable}; }

#define VM_NO_DRAW UINT32_MAX
struct vm_instruction {
  uint16_t kind;                  /* enum vm_kind */
  uint16_t attrs;                 /* number of attributes: always all that the table names */
  uint32_t inputs;                /* number of inputs */
  uint32_t values;                /* inputs, then attributes: first in steps->values */
  uint32_t outputs, first_output; /* variables */
  uint32_t draw;                  /* its draw id, or VM_NO_DRAW */
  uint32_t decision;              /* where its decision starts in the vector of decisions */
};

/* Instructions and what they refer to; written only while one trace alone holds them. */
struct vm_steps {
  uint32_t references; /* changed atomically */
  struct vm_instruction *instructions;
  struct vm_value *values;
  char *text;
  uint8_t *types; /* enum vm_type of each variable */
  uint32_t count, value_count, text_size, variables;
  uint32_t decisions; /* length of the vector of decisions */
  uint32_t next_draw; /* the draw id to give next */
  uint32_t instruction_capacity, value_capacity, text_capacity, variable_capacity;
};
static inline const struct vm_value *vm_inputs_of(const struct vm_steps *s, const struct vm_instruction *i) {
  MS_CHECK(i->values + i->inputs + i->attrs <= s->value_count);
  return s->values + i->values;
}
static inline const struct vm_value *vm_attrs_of(const struct vm_steps *s, const struct vm_instruction *i) {
  MS_CHECK(i->values + i->inputs + i->attrs <= s->value_count);
  return s->values + i->values + i->inputs;
}

enum vm_decided {
  VM_OPEN,
  VM_DECIDED,
  VM_ILL_FORMED /* a decision of the wrong length was read: refused when strict */
};
struct vm_trace {
  struct vm_steps *steps; /* shared */
  struct vm_steps *spare; /* it alone held them: memory for the next that it has to itself; or NULL */
  int64_t *decisions;     /* an instruction's: at [instruction.decision], one number an output */
  uint8_t *decided;       /* enum vm_decided, at [instruction.decision] */
  uint32_t capacity;
};

struct vm_trace *vm_trace_new(void);
struct vm_trace *vm_trace_copy(const struct vm_trace *trace); /* shares the steps */
void vm_trace_free(struct vm_trace *trace);                   /* NULL is fine */

/* A trace as what it adds to the steps of another, and its decisions. What traces of one head add alike they share,
 * packed and unpacked. shared: for one thread; keeps what some 2,000 add, and forgets it all then. */
struct vm_shared;
struct vm_shared *vm_shared_new(void);
void vm_shared_free(struct vm_shared *shared); /* NULL is fine; traces keep what they have */
struct vm_packed;
/* head: any trace; it pays where `trace` begins with its steps. The result is the caller's, and needs neither. */
struct vm_packed *vm_pack(struct vm_shared *shared, const struct vm_trace *trace, const struct vm_trace *head);
struct vm_trace *vm_unpack(const struct vm_packed *packed); /* the caller's; any thread may */
void vm_packed_free(struct vm_packed *packed);              /* NULL is fine */
size_t vm_packed_bytes(const struct vm_packed *packed);     /* of memory that it does not share */
/* The first n instructions, and their decisions. */
struct vm_trace *vm_trace_head(const struct vm_trace *trace, uint32_t n);
/* Without instructions that only look or draw and whose results nothing uses, operands inside lists counted; draw ids
 * are kept. A postprocessing part is kept if `postprocessing`, else cut off at its mark. */
struct vm_trace *vm_trace_simplified(const struct vm_trace *trace, bool postprocessing);
/* Instructions `first` up to `end`, and their decisions, as a trace of its own with new draw ids. NULL: they take what
 * was given before them, or hold part of a branch. */
struct vm_trace *vm_trace_part(const struct vm_trace *trace, uint32_t first, uint32_t end);
/* One after another; draws are renumbered. NULL: a trace cannot have so many variables. */
struct vm_trace *vm_trace_join(const struct vm_trace *const *parts, uint32_t count);
/* Whether the instructions from `first` on begin with those of a part; decisions and draw ids do not count. */
bool vm_trace_has_at(const struct vm_trace *trace, uint32_t first, const struct vm_trace *part);
/* Decides a draw; false: it takes another number of values, or the instruction does not draw. count 0: opens it. */
bool vm_decide(struct vm_trace *trace, uint32_t instruction, const int64_t *values, uint32_t count);
void vm_forget_decisions(struct vm_trace *trace);    /* opens all */
bool vm_trace_is_safe(const struct vm_trace *trace); /* holds no unsafe instruction */
/* The verifier on what the trace made. A loop that was split without predicates may run past its end, and with it what
 * blocks touch out of what they say they touch: that it does not matter is the user's promise, and regions are trusted
 * (tir_verify_scopes). With any other instruction, unsafe ones too, all must hold (tir_verify), but that nothing is
 * held against regions of a buffer of which a user stated one, or of a buffer made of such: AnnotateBufferAccess marks
 * them. */
bool vm_verify(const struct vm_trace *trace, const struct tir *made, ms_error *err);
/* The same; of expressions the facts of those that are new since the last time (tir_verify_new). */
bool vm_verify_new(const struct vm_trace *trace, struct tir *made, ms_error *err);

/* uses[n], for all instructions: whether `instruction` takes something that instruction n gives. */
void vm_uses(const struct vm_trace *trace, uint32_t instruction, uint8_t *uses);

/* Appending, for readers of text forms and bindings. Values live in the trace; make them bottom up. */
struct vm_value vm_string(struct vm_trace *trace, const char *text, size_t length);
struct vm_value vm_list(struct vm_trace *trace, enum vm_value_kind kind, const struct vm_value *items, uint32_t count);
/* What a parameter with a default is where nothing is given. */
struct vm_value vm_default_value(struct vm_trace *trace, const struct vm_param *param);
/* Checks operands against the table, fills defaults, and appends the instruction. outputs: how many it gives. draw: its
 * id, or VM_NO_DRAW for the next free one. False: nothing was appended; err->instruction is set. */
bool vm_append(struct vm_trace *trace, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
               const struct vm_value *attrs, uint32_t attr_count, uint32_t outputs, uint32_t draw, ms_error *err);

/* ---- Text forms: strangers' bytes are data, never code ----------------------------------------------------------- */

/* TVM's layout, [[[kind, inputs, attributes, outputs]…], [[index, decision]…]]. It has no place for draw ids: draws are
 * renumbered. Texts returned are the caller's to free(). NULL: err is filled. */
struct vm_trace *vm_read_json(const char *text, size_t length, ms_error *err);
char *vm_write_json(const struct vm_trace *trace);
/* A Lua chunk that returns function(ms, sch, v); read by a parser of that subset, never run. Keeps draw ids. */
struct vm_trace *vm_read_lua(const char *text, size_t length, ms_error *err);
char *vm_write_lua(const struct vm_trace *trace);
/* The same of many texts: one that differs from one of the last in its decisions alone is read faster. For one thread.
 */
struct vm_lua_reader;
struct vm_lua_reader *vm_lua_reader_new(void);
void vm_lua_reader_free(struct vm_lua_reader *reader);
struct vm_trace *vm_read_next_lua(struct vm_lua_reader *reader, const char *text, size_t length, ms_error *err);
/* As vm_write_binary; faster of what the reader read last. */
void *vm_write_next_binary(struct vm_lua_reader *reader, const struct vm_trace *trace, size_t *length);
/* Compact; names kinds, so that it outlives changes of the table. Keeps draw ids. */
struct vm_trace *vm_read_binary(const void *bytes, size_t length, ms_error *err);
void *vm_write_binary(const struct vm_trace *trace, size_t *length);
/* The same of many, as a store keeps them: of one whose steps one of the last had, only the decisions are read. For one
 * thread. */
struct vm_binary_reader;
struct vm_binary_reader *vm_binary_reader_new(void);
void vm_binary_reader_free(struct vm_binary_reader *reader); /* NULL is fine */
struct vm_trace *vm_read_next_binary(struct vm_binary_reader *reader, const void *bytes, size_t length, ms_error *err);
/* Whether vm_read_binary would read these bytes. group: any number; of traces of one group whose steps one of the last
 * few had, the decisions alone are looked at. Takes at most some 300 MB, mostly 2. For one thread. */
struct vm_binary_checker;
struct vm_binary_checker *vm_binary_checker_new(void);
void vm_binary_checker_free(struct vm_binary_checker *checker); /* NULL is fine */
bool vm_check_next_binary(struct vm_binary_checker *checker, uint64_t group, const void *bytes, size_t length);
/* vm_trace_is_safe and vm_write_lua; faster of what the reader read last. */
bool vm_next_is_safe(struct vm_binary_reader *reader, const struct vm_trace *trace);
char *vm_write_next_lua(struct vm_binary_reader *reader, const struct vm_trace *trace);
/* Whichever of the three it is. */
struct vm_trace *vm_read_trace(const void *bytes, size_t length, ms_error *err);
/* UTF-8 without zero bytes: what strings of traces hold. */
bool vm_is_text(const char *bytes, size_t length);
/* One value as JSON text, strings quoted; returned length as snprintf's. For messages and bindings. */
size_t vm_print_value(const struct vm_steps *steps, const struct vm_value *value, char *out, size_t size);

/* ---- Modules as TVM's graphs of nodes: JSON, as tvm.ir.save_json and the workloads of its tuning records have them
 * --- */

/* Of functions of loops, as TVM 0.26 writes them: the same as of their TVMScript. NULL: err is filled, and names node
 * and field. Owned by the caller. */
struct tir *vm_read_module_graph(const char *text, size_t length, ms_error *err);
/* A function as such a graph, a module of it alone that names it main, as traces do; the caller's to free(). NULL: it
 * has what TVM's graphs lack, and err says what. */
char *vm_write_module_graph(const struct tir *ir, tir_func f, ms_error *err);

/* ---- Tensor intrinsics ------------------------------------------------------------------------------------------- */

/* From the text of a file of sections, "### NAME.desc" and "### NAME.impl", a function each. file: for messages. NULL:
 * err is filled. */
struct vm_intrinsics *vm_read_intrinsics(const char *text, const char *file, ms_error *err);
/* As such a text, of one name or (NULL) of all; the caller's to free(). NULL: there is none of the name. */
char *vm_write_intrinsics(const struct vm_intrinsics *table, const char *name);
struct vm_intrinsics *vm_intrinsics_new(void); /* empty */
void vm_intrinsics_free(struct vm_intrinsics *table);
uint32_t vm_intrinsic_count(const struct vm_intrinsics *table);
/* Adds an intrinsic from modules of one function each, which are copied. A function whose root block does not say what
 * it reads and writes is taken as an update: its reductions add to what is there. False: there is another of the name,
 * or the two compute different things. Those found before stay where they are. */
bool vm_add_intrinsic(struct vm_intrinsics *table, const char *name, const struct tir *description,
                      const struct tir *implementation, ms_error *err);
/* Adds what another table holds (NULL: nothing), copied. False: there is another of a name; those before it are added.
 */
bool vm_add_intrinsics(struct vm_intrinsics *table, const struct vm_intrinsics *from, ms_error *err);
/* Modules of one function each, borrowed from the table. */
bool vm_find_intrinsic(const struct vm_intrinsics *table /* NULL: empty */, const char *name,
                       const struct tir **description, const struct tir **implementation);
/* The intrinsic that the first Tensorize of a trace names from instruction *at on; *at is then behind it. NULL: there
 * is no more. */
const char *vm_next_intrinsic(const struct vm_trace *trace, uint32_t *at);
/* The name of a shipped intrinsic, by number; false past the last. Shipped ones are known to every plan. */
bool vm_shipped_intrinsic(uint32_t i, char *name, size_t size);

/* ---- Replay ------------------------------------------------------------------------------------------------------ */

/* Makes a trace ready for a workload. Interns the trace's names in the workload (which is why it is not const): prepare
 * before threads share it. The plan keeps the trace's steps and borrows the workload. */
struct vm_plan *vm_prepare(struct tir *workload, const struct vm_trace *trace);
/* intrinsics: those known besides the shipped ones, which they hide; borrowed for the plan's life. NULL: none. */
struct vm_plan *vm_prepare_with(struct tir *workload, const struct vm_trace *trace,
                                const struct vm_intrinsics *intrinsics);
void vm_plan_free(struct vm_plan *plan);
struct vm_steps *vm_plan_steps(const struct vm_plan *plan); /* what it performs; the plan's */
/* A product by a tensor intrinsic: each of m x n results adds k products of two inputs' elements. */
struct vm_product {
  int64_t m, n, k;
  tir_type inputs;
};
/* False: among the plan's intrinsics and the shipped ones there is none of the name, or it is no such product. */
bool vm_find_product(const struct vm_plan *plan, const char *name, struct vm_product *out);

enum vm_mode {
  VM_STRICT, /* a decision that does not fit is refused */
  VM_REPAIR  /* the nearest valid value is taken, and the trace records what was used */
};
struct vm_schedule;
struct vm_draws {
  enum vm_mode mode;
  const struct vm_trace *decisions;  /* of the plan's steps; NULL: every draw is sampled */
  uint64_t seed, candidate, attempt; /* what a draw that is not decided is drawn from, with its id */
  const volatile int *stop;          /* NULL, or: a replay that runs when it is not 0 ends soon, with MS_RUN_STOPPED */
  /* NULL, or: called by a replay behind each instruction that was performed, which may look at the schedule only. A
   * replay that starts again begins with instruction 0. */
  void (*after)(void *watcher, const struct vm_schedule *schedule, uint32_t instruction);
  void *watcher;
};

/* Where replays spend their time, in ticks of vm_ticks; adds up while a schedule points to it. */
struct vm_profile {
  uint64_t performed[VM_KIND_COUNT], ticks[VM_KIND_COUNT];
  uint64_t copying, replaying; /* the workload; all of vm_replay */
  uint64_t total;              /* the caller's to fill */
};
uint64_t vm_ticks(void);        /* a steady counter of the processor */
double vm_seconds(void);        /* of a steady clock */
double vm_thread_seconds(void); /* that this thread had a processor: other programs do not count */

struct vm_schedule {
  struct tir *ir;
  struct vm_trace trace; /* what was recorded, with the decisions used */
  int64_t *slots; /* a value for each variable: a loop or block, a mark (below 0), an integer, VM_NIL or VM_UNSET */
  uint32_t slot_capacity;
  uint32_t *ends; /* ir->forwards.count after each instruction */
  uint32_t end_capacity;
  uint32_t forwards; /* how many of ir->forwards have been applied to the slots */
  struct vm_draws draws;
  struct vm_profile *profile;             /* borrowed; NULL: nothing is timed */
  const struct vm_intrinsics *intrinsics; /* borrowed: what vm_call knows besides those shipped; NULL: none */
  struct vm_plan *step;                   /* working memory of vm_call */
  uint32_t *out;                          /* working memory of instructions */
  uint32_t out_capacity;
  struct tir *workload;           /* borrowed: what Assert and vm_undo replay; NULL: they are refused */
  struct vm_branch *branches;     /* If and For that are being recorded */
  struct vm_dead_ends *dead_ends; /* of one replay: draws that led to no end */
  bool again;                     /* the replay is to start again */
  struct vm_trace **replaced;     /* traces that an undo and the like took the place of, while there are points */
  uint32_t replaced_count, replaced_capacity, points;
};
enum { VM_MARK_ROOT = -1, VM_MARK_INLINE = -2 };
#define VM_NIL   INT64_MIN       /* an open factor: what a perfect tile gives first for a symbolic extent */
#define VM_UNSET (INT64_MIN + 1) /* nothing: the branch that would give it was not taken */

/* A schedule with an empty trace, on a copy of the workload; NULL: to be filled by vm_replay. Owned by the caller. */
struct vm_schedule *vm_schedule_new(const struct tir *workload, uint64_t seed);
void vm_schedule_free(struct vm_schedule *schedule);
/* Another of the same module, trace and variables, independent of it; nothing is replayed. No If or For is being
 * recorded. Owned by the caller. */
struct vm_schedule *vm_schedule_copy(const struct vm_schedule *schedule);
/* Replays a plan on a fresh copy of its workload, into the memory of `schedule`, whatever that held. False: err says
 * which instruction refused and why, and the schedule holds what came before it. Does not allocate once its memory
 * suffices. */
bool vm_replay(struct vm_schedule *schedule, const struct vm_plan *plan, const struct vm_draws *draws, ms_error *err);
/* All in one: reads nothing, keeps nothing; NULL: err is filled. intrinsics: as for vm_prepare_with; the schedule knows
 * them too. */
struct vm_schedule *vm_apply(struct tir *workload, const struct vm_trace *trace, const struct vm_draws *draws,
                             ms_error *err);
struct vm_schedule *vm_apply_with(struct tir *workload, const struct vm_trace *trace,
                                  const struct vm_intrinsics *intrinsics, const struct vm_draws *draws, ms_error *err);

/* Performs one instruction and records it; values live in schedule->trace. Both branches of an If are performed as they
 * are recorded, the one not taken on a copy that is thrown away; so is the body of a For without an iteration. An
 * Assert that does not hold has the draws that decide it drawn again, and what follows them replayed. *first: its first
 * output's variable, of *count. False: refused; neither module nor trace has changed. decision: NULL, or what to decide
 * (strictly). */
bool vm_call(struct vm_schedule *schedule, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
             const struct vm_value *attrs, uint32_t attr_count, const int64_t *decision, uint32_t decision_count,
             uint32_t *first, uint32_t *count, ms_error *err);
/* Takes back the last `count` instructions, an If or For with all it holds as one, by replaying those before them.
 * False: refused, and nothing has changed. Variables that they gave are gone. */
bool vm_undo(struct vm_schedule *schedule, uint32_t count, ms_error *err);
/* Goes on to what the trace gives, with its decisions: what vm_undo took back. Variables are as they were.
 *   undone   borrowed for the call; the schedule's own trace is its beginning
 * False: refused, and nothing has changed: another beginning, or an If or For is open. */
bool vm_redo(struct vm_schedule *schedule, const struct vm_trace *undone, ms_error *err);
/* Becomes what the trace gives, with its decisions, whatever it was; an If or For that is open is forgotten.
 *   trace   borrowed for the call; of the schedule's workload
 *   *kept   so many variables stand for what they stood for: those of the instructions with which both traces begin
 * False: refused, and nothing has changed. */
bool vm_go_to(struct vm_schedule *schedule, const struct vm_trace *trace, uint32_t *kept, ms_error *err);
/* A point in a schedule's life whose trace may be asked for later, whatever is recorded and undone meanwhile: a copy of
 * the trace would be shared until the next instruction is recorded, which then copies all of it. Points are kept until
 * vm_forget_point has been called for each. */
struct vm_point {
  uint32_t instructions, replaced;
};
struct vm_point vm_keep_point(struct vm_schedule *schedule);
void vm_forget_point(struct vm_schedule *schedule);
/* Takes back what was recorded since a point where it is look-ups alone: the module is as it was there. Returns whether
 * it did; then variables from there on are no more. */
bool vm_drop_look_ups(struct vm_schedule *schedule, struct vm_point point);
struct vm_trace *vm_trace_at_point(const struct vm_schedule *schedule,
                                   struct vm_point point); /* the caller's to free */
/* The statement a variable stands for now; TIR_NONE: it is no statement, or gone. */
tir_stmt vm_statement(const struct vm_schedule *schedule, uint32_t variable);

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

enum vm_query {
#define QUERY(name, args, answer, performs, doc) VM_ASK_##name,
#include "queries.def"
#undef QUERY
  VM_QUERY_COUNT
};
struct vm_query_info {
  const char *name, *args, *answer, *doc; /* queries.def says what they mean */
};
const struct vm_query_info *vm_query_info(enum vm_query query);
enum vm_query vm_find_query(const char *name, size_t length); /* VM_QUERY_COUNT: there is none */
/* Asks; nothing is recorded and the module stays as it is. Arguments are variables of the schedule's trace, integers,
 * and strings of the pool; the answer's strings and lists live in the pool, a trace that serves for that alone. */
bool vm_ask(struct vm_schedule *schedule, enum vm_query query, const struct vm_value *args, uint32_t count,
            struct vm_trace *pool, struct vm_value *answer, ms_error *err);

/* ---- Draws ------------------------------------------------------------------------------------------------------- */

/* A stream of numbers that is a function of its key alone (a counter hashed). */
struct vm_stream {
  uint64_t key, counter;
};
struct vm_stream vm_stream_of(uint64_t seed, uint64_t candidate, uint32_t draw, uint64_t attempt);
/* Here, as arrays of millions of elements are drawn by them. */
static const uint64_t VM_STREAM_GOLDEN = 0x9e3779b97f4a7c15u;
static inline uint64_t vm_stream_mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
static inline uint64_t vm_stream_next(struct vm_stream *stream) {
  return vm_stream_mix(stream->key + ++stream->counter * VM_STREAM_GOLDEN);
}
static inline double vm_stream_unit(struct vm_stream *stream) { /* uniform in [0, 1) */
  return (double)(vm_stream_next(stream) >> 11) * 0x1p-53;
}
uint32_t vm_stream_below(struct vm_stream *stream, uint32_t bound); /* uniform in [0, bound); bound is not 0 */
/* Factors of extent, uniform among all tuples of n whose last is at most `most` (0: no limit). extent, n >= 1. */
void vm_draw_tile(struct vm_stream *stream, int64_t extent, uint32_t n, int64_t most, int64_t *out);
/* Draws such a tile of those that `admits` says yes to, which gets `data`; false: none of a few dozen was one. */
typedef bool vm_admits_tile(void *data, const int64_t *tile);
bool vm_draw_admitted_tile(struct vm_stream *stream, int64_t extent, uint32_t n, int64_t most, vm_admits_tile *admits,
                           void *data, int64_t *out);
/* The divisors of extent >= 1 that such factors may be, ascending; the caller frees them. */
int64_t *vm_divisors(int64_t extent, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif

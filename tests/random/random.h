/* Random sequences of instructions: grown by proposals, each checked, what comes of them judged by running. */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include "support/case.h"
#include "vm/vm.h"

enum { MOST_WORKLOADS = 64, MOST_MESSAGE = 3000, MOST_JSON = 1 << 18 };

/* ---- What went wrong, and what was counted: in memory that all processes share ---- */

enum trouble {
  NO_TROUBLE,
  CRASHED,     /* a signal, a sanitizer, an assertion */
  HUNG,        /* over its time */
  LEFT_TRACES, /* a refusal changed the module or the trace */
  ILL_FORMED,  /* the verifier */
  UNEQUAL,     /* the interpreter: not what the unscheduled function computes */
  UNEQUAL_LOWERED,
  UNEQUAL_BUILT,   /* compiled by LLVM */
  UNEQUAL_EMITTED, /* as C source, compiled */
  NOT_REPLAYED,    /* the trace, written and read, does not give the module again */
  TROUBLES
};
extern const char *const trouble_names[TROUBLES];

struct tally {
  uint64_t proposed[VM_KIND_COUNT], accepted[VM_KIND_COUNT], refused[VM_KIND_COUNT];
  uint64_t sequences, length, judged, too_large, lowered, built, unbuilt, emitted, unemitted, replayed, unchanged_texts;
  uint64_t failures;
  uint64_t unsafe, unfinished; /* sequences not judged by what is computed; judged with a For that cannot be ended */
};

void add_tally(struct tally *into, const struct tally *from);
void print_tally(const struct tally *tally);

struct shared {
  struct tally tally;
  uint64_t seed; /* of the sequence that runs */
  enum trouble trouble;
  char message[MOST_MESSAGE];
  uint64_t emit_every;  /* one in so many that are built is compiled as C source too; 0: none */
  bool log;             /* the trace is written before each instruction, with that instruction */
  char json[MOST_JSON]; /* it */
};

struct workload {
  char name[64];
  struct tir *ir;
  tir_func func;
  int64_t cost;                           /* iterations of stores */
  const struct vm_intrinsics *intrinsics; /* that its schedules know besides those shipped; borrowed */
};

/* ---- Growing ---- */

struct grow {
  const struct workload *workload;
  struct vm_schedule *schedule;
  struct vm_stream random;
  struct shared *shared;
  struct tir *before; /* working memory: the module before an instruction */
  bool plain;         /* no transformed parameters, nothing but the interpreter knows: can be built for a CPU */
  bool threads;       /* loops are bound to threads, and no memory is shared by these: run one after another, as before
                       * lowering, a thread would read what the next has yet to write */
  bool unsafe;        /* what may change what is computed is proposed too */
  uint32_t open;      /* If and For that are open */
  uint32_t opened_at; /* the outermost of them, and the hash of the module before it */
  uint64_t opened_hash;
  uint32_t length; /* instructions accepted that are no mere look-ups of operands */
  uint32_t maps;   /* layouts transformed */
  struct case_map layouts[4];
};
void grow_start(struct grow *g, const struct workload *w, uint64_t seed, struct shared *shared);
void grow_end(struct grow *g);

/* Numbers: uniform below a bound; true once in n; true in so many of a hundred. */
static inline uint32_t below(struct grow *g, uint32_t bound) { return vm_stream_below(&g->random, bound); }
static inline bool once_in(struct grow *g, uint32_t n) { return below(g, n) == 0; }
static inline bool percent(struct grow *g, uint32_t n) { return below(g, 100) < n; }

#define VALUES(...)                                                                                                    \
  (const struct vm_value[]){__VA_ARGS__}, sizeof((const struct vm_value[]){__VA_ARGS__}) / sizeof(struct vm_value)
#define NO_VALUES NULL, 0

/* Performs an instruction and checks what must hold after it; true: it was accepted. *first: its first output, of
 * *count (both may be NULL). Trouble is noted in g->shared, and ends the sequence. */
bool perform(struct grow *g, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
             const struct vm_value *attrs, uint32_t attr_count, uint32_t *first, uint32_t *count);
bool perform_decided(struct grow *g, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
                     const struct vm_value *attrs, uint32_t attr_count, const int64_t *decision,
                     uint32_t decision_count, uint32_t *first, uint32_t *count);
bool report(struct shared *shared, enum trouble trouble, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* false */

/* Iterations of stores, loops of unknown extent taken as 1. */
int64_t cost_of(const struct tir *ir, tir_func f);
/* How what comes of a sequence is judged: by the interpreter, lowered too, compiled too. */
enum built { INTERPRETED, LOWERED, COMPILED };
/* After the last instruction. */
bool judge(struct grow *g, uint64_t seed, enum built build);
/* So many seeds of arguments are run of a workload: extents that are variables are drawn. */
uint32_t sizes_of(const struct workload *w);
/* refused: no C source can be made of the schedule, which err tells. */
bool emitted_equals(struct grow *g, uint64_t seed, bool *refused, ms_error *err);

/* ---- Proposals: a row for each kind in kinds.def ---- */

struct row {
  const char *kind;
  uint32_t weight;
  bool (*propose)(struct grow *g, enum vm_kind kind);
};
extern const struct row rows[];
extern const uint32_t row_count;
#define ROW(kind, weight, proposer) bool propose_##proposer(struct grow *g, enum vm_kind kind);
#include "kinds.def"
#undef ROW

/* Operands: a variable for a block or loop, one that there is or a new one. False: there is none. */
bool ref_block(struct grow *g, tir_block b, struct vm_value *out);
bool ref_loop(struct grow *g, tir_block b, tir_loop l, struct vm_value *out);
bool ref_loops(struct grow *g, tir_block b, const tir_loop *loops, uint32_t count, struct vm_value *out);

enum { MOST_BLOCKS = 128, MOST_LOOPS = 32 };
struct block_list {
  tir_block at[MOST_BLOCKS];
  uint32_t count;
};
struct loop_list {
  tir_loop at[MOST_LOOPS];
  uint32_t count;
};
struct block_list blocks_of(const struct grow *g); /* but roots; in order of text */
struct block_list shuffled_blocks(struct grow *g); /* the same in random order */
tir_block draw_block(struct grow *g);              /* TIR_NONE: there is none */
struct loop_list loops_around(const struct grow *g, tir_block b);
int64_t extent_of(const struct grow *g, tir_loop l); /* 0: it is no constant */
bool reduces(const struct grow *g, tir_block b);     /* has a reduction iteration */
bool has_init(const struct grow *g, tir_block b);
bool drives(const struct grow *g, tir_block b, tir_loop l, enum tir_iter_kind kind);
struct block_list producers_of(const struct grow *g, tir_block b);
struct block_list consumers_of(const struct grow *g, tir_block b);
struct tir_span regions_of(const struct grow *g, tir_block b, bool writes);
struct tir_region region_at(const struct grow *g, tir_block b, bool writes, uint32_t i);
bool touches(const struct grow *g, tir_block b, bool writes, tir_buffer buffer); /* a region of it says so */
bool is_parameter(const struct grow *g, tir_buffer b);
struct vm_value text_value(struct grow *g, const char *text);
struct vm_value draw_scope(struct grow *g);

/* ---- Making what failed small ---- */

/* Drops instructions of the trace (JSON) as long as the same trouble comes of the rest, in processes of their own; the
 * trace that is left is in shared->json, the message in shared->message. */
void minimise(struct shared *shared, const struct workload *w, uint64_t seed, enum built build);
/* Performs a trace in a process of its own, without the instructions of `dropped` (bytes, one an instruction; NULL:
 * none); shared->trouble says what came of it. */
void replay_apart(struct shared *shared, const struct workload *w, const char *json, const char *dropped, uint64_t seed,
                  enum built build);
/* From now on this process has so much of a processor's time, whatever else the machine does; then it has hung. */
void limit_time(void);
/* Runs work in a process of its own and waits; a signal or an exit status is trouble. */
void run_apart(struct shared *shared, void (*work)(void *data), void *data, bool quiet);

#endif

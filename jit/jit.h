/* jit: from a scheduled function to machine code that is measured, run and exported. The module's public header.
 *
 *   scheduled function ── tir_lower ──► lowered function ── jit_compile ──► object (bytes) ──► jit_load (ORC): callable
 *                                                                              └────────────► jit_export: files
 *   candidates (trace: bytes) ── jit_measurer ──► builder and runner processes ──► results
 *
 * Generated code has one signature, jit_entry, and knows one parallel entry, libgomp's. It needs libc, libm and libgomp
 * only. Nothing here touches the store; only a measurer starts processes. */
#ifndef MSCHED_JIT_H
#define MSCHED_JIT_H

#include "tir/tir.h"

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

/* What a GPU's block of threads may have; all 0 for other targets. */
struct jit_gpu {
  int arch;              /* 90: of sm_90 and sm_90a */
  int max_threads;       /* a block */
  int shared_bytes;      /* a block */
  int registers;         /* of 32 bits, a block */
  int warp;              /* threads that run together */
  int max_vthread;       /* virtual threads a thread: code grows by as much */
  int vector_bytes;      /* widest load or store of a thread */
  bool cold;             /* its kernels are timed with nothing of theirs in the L2 cache */
  unsigned capabilities; /* of its architecture: TIR_SET(WGMMA), ... */
};
/* What code is made for. A plain value: equal fields mean equal code. */
struct jit_target {
  char kind[16];       /* "llvm", "cuda" */
  char triple[64];     /* "x86_64-pc-linux-gnu" */
  char cpu[64];        /* LLVM's name of the CPU whose scheduling model is used: "znver5", "x86-64-v3"; or "sm_90" */
  char features[1024]; /* LLVM's feature string: on x86 every one with + or -, so that no name implies any */
  uint64_t x86;        /* the same as a set, 0 on other CPUs */
  int cores;           /* threads that a parallel loop may use */
  int vector_bits;     /* widest vector registers that code uses: 128, 256, 512 */
  int vector_registers;
  int l1_bytes, l2_bytes, l3_bytes; /* data cache a core, a core, shared: this machine's, whatever the target */
  bool avx512_vnni;
  bool tile_bytes, tile_bfloats, tile_halves; /* what tiles multiply: AMX's, of Arm CPUs SME's */
  int tile_accumulators;                      /* of tiles that a loop holds in registers, at most; 0: there are none */
  unsigned dots;                              /* as tir_lower_options has them */
  struct jit_gpu gpu;
};
enum { JIT_TARGET_TEXT = 1400 }; /* bytes that any target's text fits in */

/* How many cores there are, and may be used: what targets count that say no number, and what works beside. */
struct jit_cores {
  int online, allowed; /* processors of the machine; those that this process may run on */
  double quota;        /* processors' time that its control groups lend; 0: no limit */
  int usable;          /* what is left of them, whole cores, at least 1 */
};
void jit_count_cores(struct jit_cores *out);
/* Bytes of memory that this process may have: the machine's, or less where its control groups lend less; 0: unknown. */
size_t jit_usable_memory(void);

/* "native", "llvm", "llvm -mcpu=skylake-avx512 -num-cores=4", "x86-64-v2", "x86-64-v4,+avx512vnni",
 * "llvm -mcpu=rocketlake -mattr=+amx-int8,-avx512fp16 -vector-bits=256", "llvm -mtriple=aarch64-linux-gnu"; cores
 * default to this machine's. "cuda -arch=sm_90", and limits of a block by TVM's names (cuda.def); -timing=cold: see
 * struct jit_gpu. "native" is what this machine has and its operating system lends, whatever LLVM calls it. What is not
 * known is refused. */
bool jit_target_parse(const char *text, struct jit_target *out, ms_error *err);
/* The canonical text: equal for equal targets; on machines with the same caches it makes the target again, exactly. Of
 * features it has those by which the target differs from its cpu's name. */
void jit_target_text(const struct jit_target *target, char *out, size_t size);
/* The target whose code says what functions compute that kernels are compared with: itself, or this machine's. */
bool jit_target_reference(const struct jit_target *target, struct jit_target *out, ms_error *err);
/* The limits that its kind of target has, and 1 or 0 for each capability, by name. */
enum { JIT_MOST_NUMBERS = 20 };
struct jit_number {
  const char *name;
  int value;
};
uint32_t jit_target_numbers(const struct jit_target *target, struct jit_number out[JIT_MOST_NUMBERS]);
/* Whether this machine runs what is compiled for the target. false: err names what it lacks. AMX's tiles do not count:
 * code that uses them asks for them. */
bool jit_target_runs_here(const struct jit_target *target, ms_error *err);

/* A feature of x86 that code uses, and where the machine that runs it says that it has it: CPUID's leaf, subleaf and
 * register (0 to 3: EAX to EDX), a bit there, and the states whose registers its system keeps, in XCR0. */
struct jit_feature {
  const char *name; /* LLVM's */
  uint32_t leaf, subleaf, word, bit;
  uint64_t kept;
};
enum { JIT_MOST_FEATURES = 64 };
/* Those that code for the target may use, but AMX's, of which code asks itself; NULL: all that are known. What is
 * implied stands before what implies it. None on other CPUs. */
uint32_t jit_target_features(const struct jit_target *target, struct jit_feature out[JIT_MOST_FEATURES]);

/* How "native" came to be. Features by LLVM's names, those that change code. */
struct jit_host {
  char llvm_cpu[64];  /* LLVM's name for this CPU, from its model number */
  char cpu[64];       /* the newest known that has nothing which this machine lacks: its scheduling model is used */
  char features[640]; /* what code may use */
  char missing[640];  /* what the CPU of LLVM's name has, and this machine not, or masked */
  char beyond[640];   /* what this machine has, and the CPU of LLVM's name not */
  enum { JIT_TILES_NONE, JIT_TILES_REFUSED, JIT_TILES_LENT } tiles; /* AMX's, by the CPU and by the kernel */
};
void jit_describe_host(struct jit_host *out);

/* Units of x86 that multiply short types and add the products in 32 bits. */
enum jit_unit {
  JIT_UNIT_PAIRS, /* vectors of 16-bit integers, of which pairs of products are added (vpmaddwd): int8 widened */
  JIT_UNIT_VNNI,
  JIT_UNIT_BF16, /* AVX512-BF16's dot products */
  JIT_UNIT_AMX_INT8,
  JIT_UNIT_AMX_BF16,
  JIT_UNITS
};
const char *jit_unit_name(enum jit_unit unit); /* "VNNI" */
/* Whether code for the target may use the unit, this machine has it, and its operating system lends it. */
bool jit_unit_is_here(enum jit_unit unit, const struct jit_target *target);
/* Whether assembly has an instruction of it. */
bool jit_unit_is_used(enum jit_unit unit, const char *assembly);
/* Operations a second (two a product) that so many threads do on it, on vectors of so many bits, from registers alone:
 * the most of some samples, in some hundredths of a second. 0: err is filled. */
double jit_unit_rate(enum jit_unit unit, int threads, int vector_bits, ms_error *err);

/* A GPU that CUDA's driver finds. */
struct jit_device_info {
  char name[96];
  int arch;                               /* 90: of sm_90 */
  int processors, l2_bytes, shared_bytes; /* shared_bytes: a block that asks for them */
  uint64_t memory;
  double clock; /* hertz, at most */
};
/* Their number, at most `most`; 0: none, or err says what is missing. The driver is MSCHED_LIBCUDA, or found by its
 * name. */
uint32_t jit_devices(struct jit_device_info *out, uint32_t most, ms_error *err);
/* What a device's clocks are now, as NVML reads them: it comes with the driver, or is MSCHED_LIBNVML. */
struct jit_device_clocks {
  double processors, memory; /* hertz */
  bool slowed;               /* heat or power holds them down */
};
bool jit_device_clocks(uint32_t device, struct jit_device_clocks *out, ms_error *err);
int jit_driver_version(ms_error *err); /* the newest CUDA that it knows: 12040 for 12.4; 0: err says what is missing */
int jit_nvrtc_version(ms_error *err);  /* NVRTC's, alike */

unsigned jit_instructions(const struct jit_target *target); /* as tir_lower_options has them */
/* What a function is lowered with for the target: what the target decides of it. */
struct tir_lower_options jit_lower_options(const struct jit_target *target);

/* ---- Code -------------------------------------------------------------------------------------------------------- */

/* args: one a parameter: the address of a buffer's first element, or of a scalar's value. workspace:
 * jit_code_workspace bytes aligned to 64, or NULL when 0. Returns 0; 1: an assertion of the function failed;
 * 2: the kernel refused the process AMX's tiles. */
typedef int32_t (*jit_entry)(void **args, void *workspace);

struct jit_options {
  bool no_fast_math;    /* no contraction of a*b+c, no reassociation of sums (nor loss of a zero's sign by it), libm's
                             functions; zero times infinity is NaN, where else the products with the zeros of a
                             padding are left out */
  bool verify;          /* verifier between lowering passes */
  bool in_one;          /* what is computed of constants alone is computed in each run: there is no packing */
  uint64_t stack_bytes; /* larger allocations are in the workspace; 0: 16 KiB */
  const char *export_name; /* what an exported function is called; NULL: see jit_exported_name */
  const char *dump_after;  /* a lowering pass's name, "emit", "llvm" or "asm": printed to `dump` */
  FILE *dump;
};

/* Of the generated code and of how it is checked: raised whenever either changes what a kernel computes, or which wrong
 * kernel is found. A record of another revision is measured again before it counts (db.h: versions). 2: a thread has
 * one piece of the workspace; real numbers; perturbed thread timing. */
#define JIT_REVISION 4

/* An annotation of a function's root block: its reductions are in order, and its code rounds as the interpreter does,
 * as by no_fast_math, whatever the options say. */
#define JIT_FIXED_ORDER "msched.fixed_order"
bool jit_keeps_order(const struct tir *ir, tir_func f);
/* The options (NULL: none) with what the function asks for itself. */
struct jit_options jit_options_for(const struct tir *ir, tir_func f, const struct jit_options *options);

struct jit_code; /* an object file in memory, with its properties */
/* Lowers and compiles function f, whose module is not changed. NULL: err is filled. */
struct jit_code *jit_compile(const struct tir *ir, tir_func f, const struct jit_target *target,
                             const struct jit_options *options, ms_error *err);
void jit_code_free(struct jit_code *code);
const void *jit_code_object(const struct jit_code *code, size_t *bytes);
size_t jit_code_workspace(const struct jit_code *code);
/* What each pass took that made the code, those of the lowering, then LLVM's, in order: seconds of the processor. */
enum { JIT_MOST_LLVM_PASSES = 8, JIT_MOST_PASSES = TIR_MOST_PASSES + JIT_MOST_LLVM_PASSES };
struct jit_pass {
  const char *name;
  double seconds;
};
const struct jit_pass *jit_code_passes(const struct jit_code *code, uint32_t *count);

/* What a schedule asks for that the code does not do, and why: parallel loops whose iterations share elements, say. */
enum { JIT_MOST_NOTES = 16, JIT_NOTE = 300 };
struct jit_notes {
  uint32_t count;
  char at[JIT_MOST_NOTES][JIT_NOTE];
};
const struct jit_notes *jit_code_notes(const struct jit_code *code);

/* What a kernel of a GPU takes: as its source asks, and as NVRTC's assembler says of it. */
enum { JIT_KERNEL_NAME = 160 };
struct jit_resources {
  char name[JIT_KERNEL_NAME];
  int threads;                       /* a block */
  int64_t shared_bytes;              /* a block, laid out by the assembler and asked for at the launch */
  int64_t dynamic_bytes;             /* of those, the latter */
  int64_t local_bytes;               /* a thread: its own arrays, in registers as far as these reach */
  int estimated_registers;           /* a thread, before any assembler has seen it: registers.h says how surely */
  bool estimated_spills;             /* and whether a thread keeps more than it has registers for */
  bool compiled;                     /* what follows is known */
  int registers;                     /* of 32 bits, a thread */
  int64_t stack_bytes;               /* a thread */
  int64_t spill_stores, spill_loads; /* bytes a thread, that found no register */
  int barriers;
  bool serialized; /* products of tensor units wait for one another: the assembler warns of it (C7510 and such) */
};
/* Those of the code's kernels, in the order in which they are launched; none of code for a CPU. */
const struct jit_resources *jit_code_resources(const struct jit_code *code, uint32_t *count);
/* Makes what is loaded, where jit_compile gives what comes before it: kernels for CUDA are compiled by NVRTC for their
 * very architecture, and what that says is noted. false: NVRTC is missing or refuses them, or one takes more registers
 * or shared memory than a block of the target has. */
bool jit_code_assemble(struct jit_code *code, ms_error *err);

struct jit_kernel; /* loaded code; freeing it unmaps it */
/* Refuses code for what this machine lacks. */
struct jit_kernel *jit_load(const struct jit_code *code, ms_error *err);
jit_entry jit_kernel_entry(const struct jit_kernel *kernel); /* NULL: it runs on a device, by jit_call_run only */
size_t jit_kernel_workspace(const struct jit_kernel *kernel);
/* Memory for numbers, aligned to 64 bytes, in huge pages where it fills one and the system has them: a core that goes
 * through much of it waits for fewer translations of addresses. NULL: there is none. free gives it back. */
void *jit_new_memory(size_t bytes);
void jit_kernel_free(struct jit_kernel *kernel);

enum { JIT_EXPORTED_NAME = 256 };
/* What a function is called in a file that it is exported to: `name`, unless it is NULL; else its own name, or, where
 * no program could link that safely (main, a keyword, a name of C's library), the file's, without the suffix, and with
 * _kernel after it, or kernel_ before it, where need be. *owner (may be NULL): whose the function's own name is, in
 * words; NULL where it is free, or `name` was given. Returns false with err filled where `name` cannot be had. */
bool jit_exported_name(const struct tir *ir, tir_func f, const char *name, const char *path,
                       char out[JIT_EXPORTED_NAME], const char **owner, ms_error *err);
/* Whether an exported function may be called so. Returns false with err filled where it may not. */
bool jit_may_export(const char *name, ms_error *err);
/* Writes the function as PATH's suffix says: .o .so .c .h .ll .s; kernels of a GPU: .cu, by NVRTC .ptx .cubin,
 * and .c .h: what launches them through the driver's API. The header declares typed functions of the buffers and states
 * shapes, alignment, workspace and status. Its name there is jit_exported_name's. */
bool jit_export(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
                const char *path, ms_error *err);
/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* Arguments as an entry takes them, one for each parameter of f: pointers[i] is a buffer's address, or that of
 * scalars[i], where the scalar is written. */
void jit_arguments(const struct tir *ir, tir_func f, const struct tir_arg *args, void **pointers, uint64_t *scalars);

/* A kernel with arguments and a workspace of its own. Kernel and buffers are borrowed as long as it lives; scalars are
 * copied. args: one for each parameter of f, from which the kernel was made, as for tir_run. Where f lists constants
 * (layout_free_buffers) that are packed ahead, they are packed now, and not again. NULL: err is filled. */
struct jit_call;
struct jit_call *jit_call_new(const struct jit_kernel *kernel, const struct tir *ir, tir_func f,
                              const struct tir_arg *args, ms_error *err);
void jit_call_free(struct jit_call *call);
/* Runs it once. false: an assertion of the function failed, or the kernel faulted: it touched memory that is not there,
 * divided by zero or ran what this CPU lacks, on any of its threads; the process goes on, and what is in the buffers is
 * undefined. What a kernel writes outside of its buffers where there is memory is not noticed here: the interpreter
 * does, and the processes of a measurer, which lose nothing by it. Handlers of SIGSEGV, SIGBUS, SIGFPE and SIGILL are
 * installed by jit_call_new; signals that are no kernel's go to those that were there before. */
bool jit_call_run(const struct jit_call *call, ms_error *err);
/* Calls that follow each other: lane by lane. beside: this lane runs at the same time as the one before it, each on one
 * thread, whose calls run their parallel loops alone. Calls of such lanes share nothing that one of them writes. */
struct jit_lane {
  uint32_t count; /* of its calls, at least 1 */
  bool beside;
};
/* Runs calls as a network has them, those of the host's kernels within one run, which ends where one faults or is
 * stopped; lanes side by side on the threads of parallel loops. false: one failed, as above, of lanes side by side the
 * first that did, and those behind these were not run. Calls of other kernels run one after another. */
bool jit_calls_run(struct jit_call *const *calls, const struct jit_lane *lanes, uint32_t count, ms_error *err);
/* Whether a parameter gets full-mantissa data when f is timed on the target's device. A device's clock follows its
 * power, and small whole numbers take less power, so it would run faster than on real data. True for floats that f only
 * reads; false where f compares floats or makes integers of them, because the work would depend on the data. */
bool jit_timed_with_digits(const struct tir *ir, tir_func f, const struct jit_target *target, uint32_t parameter);
/* Gives those their digits. arguments: made of the seed by tir_make_arguments. */
bool jit_fill_for_timing(const struct tir *ir, tir_func f, const struct jit_target *target, uint64_t seed,
                         struct tir_arguments *arguments, ms_error *err);
/* From now on the call ends with MS_RUN_STOPPED where *stop is not 0: before it begins, and once jit_stop_calls is
 * called while it runs or is timed, in the middle of that, on all of its threads. What is in the buffers is undefined
 * then. What a device has begun, it runs to its end.
 *   stop  borrowed as long as the call lives; NULL: it runs to its end */
void jit_call_stop_at(struct jit_call *call, const volatile int *stop);
/* Ends what runs now in this process of calls whose *stop is not 0. Async-signal-safe: a handler may call it, which has
 * JIT_STOP_SIGNAL in its sa_mask. That signal is sent to threads that run kernels; jit_call_new installs its handler,
 * unless another stands there: then such calls end only where they have not begun. */
#define JIT_STOP_SIGNAL SIGURG
void jit_stop_calls(void);
/* Installs that handler too. A thread that waits in the system, in a read or for a lock of a file, is woken by that
 * signal: what it called fails with EINTR. false: another handler stands there. */
bool jit_catch_stops(void);
/* Compiles f and runs it once. */
bool jit_run(const struct tir *ir, tir_func f, const struct jit_target *target, const struct jit_options *options,
             const struct tir_arg *args, ms_error *err);

/* Seconds of one of so many runs in a row, on arguments that stay where the kernel has them: of a device by its own
 * clock. Below 0: one failed, and err says how. */
double jit_call_sample(const struct jit_call *call, uint32_t calls, ms_error *err);
struct jit_conditions;
/* A jit_turn of what runs the call; out->clock is 0 where that is the host. */
void jit_call_turn(const struct jit_call *call, bool begins, struct jit_conditions *out);

/* ---- Routines of other libraries on devices ----------------------------------------------------------------------
 * A vendor's routine beside kernels: on the device that runs the target's code, in this process and its context, on
 * buffers of its own there, timed as kernels are. */

/* Starts the routine in the context that is this thread's; buffers: addresses on the device; stream: a CUstream, NULL
 * for the default one, on which all that it starts is, as it may be captured in a graph. false: it cannot be
 * started. */
typedef bool jit_routine_start(void *data, void *const *buffers, void *stream);
struct jit_routine;
/* Calls it once, with no buffers, in the context of the device that runs the target's code, and waits for what it
 * began: for what another library does before its first routine. */
bool jit_device_call(const struct jit_target *target, jit_routine_start *start, void *data, ms_error *err);
/* buffers: borrowed as long as it lives; one without data is the device's alone, and holds anything. NULL: err is
 * filled; targets of the host have no such. */
struct jit_routine *jit_routine_new(const struct jit_target *target, const struct tir_arg *buffers, uint32_t count,
                                    jit_routine_start *start, void *data, ms_error *err);
/* Another routine on the buffers of the first, before which it is freed. */
struct jit_routine *jit_routine_beside(const struct jit_routine *of, jit_routine_start *start, void *data);
void jit_routine_free(struct jit_routine *routine);
/* Runs it once, on what the buffers hold, to which they are set afterwards. */
bool jit_routine_run(const struct jit_routine *routine, ms_error *err);
/* Runs it on what its buffers on the device hold, where its result stays. */
bool jit_routine_again(const struct jit_routine *routine, ms_error *err);
double jit_routine_sample(struct jit_routine *routine, uint32_t calls, ms_error *err); /* as jit_call_sample */

/* ---- Sequences ---------------------------------------------------------------------------------------------------
 * Kernels of one device in order, as a network has them. Their buffers stay there: buffers of the host that overlap
 * are one there, too, and what one kernel writes another reads. */

struct jit_step {
  const struct jit_kernel *kernel; /* NULL: args[0] is copied to args[1], which is as large */
  const struct tir *ir;            /* from which the kernel was made, */
  tir_func func;                   /* this one */
  const struct tir_arg *args;
};
struct jit_sequence;
struct jit_timing;
/* Makes the buffers there, which hold anything. Kernels and the host's buffers are borrowed as long as it lives; steps
 * are not. NULL: err is filled; kernels of the host have no such. jit_sequence_free. */
struct jit_sequence *jit_sequence_new(const struct jit_step *steps, uint32_t count, ms_error *err);
void jit_sequence_free(struct jit_sequence *sequence);
/* Copies what a buffer of the host's holds to there, or from there. What of it no step has is not copied. */
bool jit_sequence_send(const struct jit_sequence *sequence, const void *buffer, size_t bytes, ms_error *err);
bool jit_sequence_fetch(const struct jit_sequence *sequence, void *buffer, size_t bytes, ms_error *err);
/* Runs it to its end; false too where a kernel wrote beside the buffers. */
bool jit_sequence_run(struct jit_sequence *sequence, ms_error *err);
/* Times it as jit_call_time, as one graph, without what is copied to the host or from it. */
bool jit_sequence_time(struct jit_sequence *sequence, double tolerance, double limit, struct jit_timing *out,
                       ms_error *err);
uint64_t jit_sequence_bytes(const struct jit_sequence *sequence); /* of its buffers, and what kernels work in */

/* ---- Temporary files --------------------------------------------------------------------------------------------- */

/* A file, or a folder with what it holds, that does not outlive this process: signals that would end it by default, as
 * SIGTERM and SIGPIPE, but for those of a fault, remove it first; another handler that ends the process calls
 * jit_end_temporaries. Gives a number for jit_temporary_end, -1 where there are too many: signals then leave it. The
 * path is copied. */
int jit_temporary(const char *path);
/* Removes it, if it is still there, and forgets it; -1: nothing. */
void jit_temporary_end(int temporary);
/* Removes all of them, for good. Async-signal-safe. */
void jit_end_temporaries(void);

/* ---- Libraries that are opened when they are needed -------------------------------------------------------------- */

struct jit_library_function {
  const char *name;
  void *to;      /* a pointer to a function, which is set */
  bool optional; /* NULL where the library lacks it */
};
enum { JIT_LIBRARY_MISSING = 400 };
/* Opens the library that the environment's `variable` names, or else the first of names, which end with NULL, that is
 * there. It stays open: threads of its own may run to the end. lazily: what it calls itself is found as it is called.
 * NULL: missing has the reason. */
void *jit_open_library(const char *variable, const char *const *names, bool lazily, char missing[JIT_LIBRARY_MISSING]);
/* Looks functions up; false: it lacks one, which missing has. library: NULL, nothing is done. */
bool jit_find_functions(void *library, const struct jit_library_function *functions, size_t count,
                        char missing[JIT_LIBRARY_MISSING]);

/* ---- Programs apart ----------------------------------------------------------------------------------------------
 * A program that is asked line by line, by its standard input and output: what it opens may crash. */

struct jit_worker;
/* Starts the program of words[0], a path, with the others; NULL: it cannot be, and err says why. jit_worker_free. */
struct jit_worker *jit_worker_new(char **words, ms_error *err);
/* Ends it, whatever it does; NULL: nothing. */
void jit_worker_free(struct jit_worker *worker);
/* Sends it a line, without its end; false: it has ended. */
bool jit_worker_say(const struct jit_worker *worker, const char *text, size_t length);
/* The next line that it says, without its end, until the next call; NULL: it has ended, or *stop was set meanwhile.
 * stop: NULL, nothing stops it. */
const char *jit_worker_line(struct jit_worker *worker, const volatile int *stop, size_t *length);
/* Ends it, and says in words how its process did. */
void jit_worker_end(struct jit_worker *worker, char *text, size_t size);

/* ---- Commands of the shell ---------------------------------------------------------------------------------------
 * A command that can be ended with all that it started, unlike system's and popen's. A terminal's signals do not reach
 * it, and it does not read from the terminal. */

enum jit_command_pipe { JIT_COMMAND_ALONE, JIT_COMMAND_READ, JIT_COMMAND_WRITTEN };
struct jit_command;
/* Starts it; *fd: the end of the pipe from which its output is read, or to which its input is written, the caller's;
 * else -1. NULL: errno and err say why. jit_command_free. */
struct jit_command *jit_command_new(const char *text, enum jit_command_pipe pipe, int *fd, ms_error *err);
/* Waits until it has ended, so many seconds at most; false: it goes on. *status: for wait's macros; -1: nobody
 * knows it, since the host ignores SIGCHLD, or waits for all children itself. */
bool jit_command_wait(struct jit_command *command, double seconds, int *status);
/* Ends it, and its process group, where it goes on; NULL: nothing. */
void jit_command_free(struct jit_command *command);

/* ---- Agreement ---------------------------------------------------------------------------------------------------
 * What a scheduled function computes is compared with what the unscheduled one does, built as it stands, everywhere: on
 * small integers, whose sums are exact in any order, and on real numbers, which show arithmetic that is coarser than
 * the function's (accumulating in float16). */

enum jit_data { JIT_WHOLE, JIT_REAL };
struct jit_expected {
  struct tir_arguments before, after; /* without and with what the function does */
  double tolerance;                   /* as tir_same_arguments takes it */
  double seconds;                     /* that the unscheduled function took, once */
  uint32_t buffers;                   /* that it may write */
  uint64_t elements;                  /* of those */
  bool sampled;                       /* `after` is that of samples, by the interpreter, and `before` elsewhere */
};
/* Runs the unscheduled function on data of a seed, built; on real numbers, if that would take long, on the interpreter
 * for samples of the outputs: coarse arithmetic shows at any element. On real numbers it is run again with faster
 * arithmetic on arguments that are nudged: eight times what that changes is allowed, and no less than
 * tir_real_tolerance. 1: done, *out is the caller's (jit_expected_free). 0: there is nothing to be compared with, and
 * err says why: it would take too many steps, or real numbers say nothing of it. -1: it cannot be built or run, or was
 * stopped.
 *   stop  NULL, or: not 0: it ends soon, with MS_RUN_STOPPED; a run of its by jit_stop_calls; a build that has begun is
 *         not left */
int jit_expect(const struct tir *ir, tir_func f, const struct jit_target *target, enum jit_data data, uint64_t seed,
               const volatile int *stop, struct jit_expected *out, ms_error *err);
void jit_expected_free(struct jit_expected *expected);
/* Compares what another build made of `before`; false: err says where it differs. *difference (may be NULL) as
 * tir_difference has it. */
bool jit_agrees(const struct jit_expected *expected, const struct tir *ir, tir_func f,
                const struct tir_arguments *actual, double *difference, ms_error *err);
/* Runs a kernel of the function, or of its schedule, on `before` and compares. stop: as jit_expect has it. */
bool jit_kernel_agrees(const struct jit_expected *expected, const struct tir *ir, tir_func f,
                       const struct jit_kernel *kernel, const volatile int *stop, double *difference, ms_error *err);

/* ---- Thread timing ----------------------------------------------------------------------------------------------- */

/* Whether what the code computes depends on thread timing, as far as runs show it: f, from which it was made, is run on
 * one thread, then `runs` times (0: 6) on 2, 3 and 8 threads in turn, however many the machine has, started in an order
 * and after waits that are drawn from the seed; what it leaves in its arguments is compared each time. Each thread has
 * a run of iterations of its own (where the code's cores are as many threads, there are 4 or 9), but in one of six runs
 * the threads are as many as the cores and claim pieces.
 *   args  borrowed, not written: what each run finds
 *   stop  as jit_expect has it
 * false: MS_THREAD_TIMING says how many of how many runs differ; or a run failed. */
bool jit_check_timing(const struct jit_code *code, const struct tir *ir, tir_func f, const struct tir_arguments *args,
                      uint32_t runs, uint64_t seed, const volatile int *stop, ms_error *err);

/* ---- Measuring --------------------------------------------------------------------------------------------------- */

struct jit_timing {
  double seconds;   /* median of one call */
  double low, high; /* 95 % interval of the median */
  uint32_t runs;
  bool censored; /* stopped while slower than the limit: `seconds` is a lower bound */
  bool busy;     /* other programs had the processors or the device meanwhile, however often it was sampled: it may be
                    faster */
  /* Of a device, while it was timed: */
  double clock;     /* hertz of its processors, by a kernel of known work between the samples; 0: not known */
  double raw;       /* `seconds` as measured, where they were scaled to the clock that the run began with; else 0 */
  bool by_launches; /* no graph of it could be captured: launches are part of its time */
};
/* Times a call until the interval is within `tolerance` of the median (relative half width) or `limit` seconds have
 * passed; up to three times where the machine is busy. false: no memory, or an assertion of the function failed. */
bool jit_call_time(const struct jit_call *call, double tolerance, double limit, struct jit_timing *out, ms_error *err);

/* What a device was like while something was timed on it. */
struct jit_conditions {
  double clock;     /* hertz of its processors; 0: not known */
  bool by_launches; /* as jit_timing has it */
  bool shared;      /* processes of others computed there meanwhile, as far as that is known */
};
/* Told before samples are taken, and after: between the two no other process of ours times anything on the device.
 * Gives what it is like then, at the end over all samples. */
typedef void jit_turn(void *data, bool begins, struct jit_conditions *out);
/* What is waited for that takes longer than a second, as a device on which another process times, is said in words to
 * `say`, of any thread; NULL: to nobody. */
void jit_say_waiting(void (*say)(const char *text));

/* One of several calls whose times are compared. */
struct jit_finalist {
  void (*call)(void *data);                     /* timed by the clock; or, in its place: */
  double (*sample)(void *data, uint32_t calls); /* gives the seconds of one of so many calls in a row */
  jit_turn *turn;                               /* NULL, or: of a device */
  void *data;
};
/* Times them in turn, in short slices with a rest before each so that one's idle threads do not take the other's cores:
 * what disturbs the machine disturbs all alike; in an order drawn for each round. Slices that a device begins at
 * another clock than the first are scaled to that. Each gets `seconds` of slices, by the machine's clock or by what the
 * samples say that they took, whichever is more. false: no memory, or a sample is below 0: its calls failed. */
bool jit_time_in_turn(const struct jit_finalist *finalists, uint32_t count, double seconds, struct jit_timing *out);
/* The same to know which is the fastest: from the third slice on those that are slower, by 95 % intervals of their
 * medians, get no more, and it ends where one is left. */
bool jit_find_fastest(const struct jit_finalist *finalists, uint32_t count, double seconds, struct jit_timing *out);

/* By the table outcomes.def. */
enum jit_outcome {
#define JIT_OUTCOME(id, text) JIT_##id,
#include "outcomes.def"
  JIT_OUTCOMES
};
const char *jit_outcome_text(enum jit_outcome outcome);
enum jit_outcome jit_outcome_of(enum ms_code code); /* of a run that failed with it */

/* Of the code of a candidate for a GPU: the most that any of its kernels takes. 0 kernels: not known. */
struct jit_taken {
  uint32_t kernels;
  int threads, registers;                           /* a block; a thread */
  int64_t spilled_bytes, stack_bytes, shared_bytes; /* a thread, a thread, a block */
};
/* The device that a candidate was timed on, and its clocks right after that. An empty name: it was not, or on none. */
struct jit_ran_on {
  char name[96];
  int driver;                      /* the newest CUDA that it knows: 12040 for 12.4 */
  struct jit_device_clocks clocks; /* 0: not known, where NVML is missing */
  uint32_t others;                 /* other processes on the device then; 0: none, or not known */
  uint64_t others_bytes;           /* of its memory that these have; 0: not known */
  uint64_t memory_left;            /* bytes, where others are there, or little is left; 0: more, or not known */
  char uncaptured[160];            /* why its graph could not be captured; "": it was, or none was asked for */
};

struct jit_result {
  uint64_t id, module_hash; /* the submitter's number; of the scheduled module */
  uint32_t task;
  enum jit_outcome outcome;
  struct jit_timing timing;
  struct jit_taken taken;
  struct jit_ran_on ran_on;
  bool repeated; /* another candidate of this task gave the same scheduled module: its result is given again */
  double build_seconds, check_seconds, time_seconds; /* spent on it; check: first run, comparison */
  char reason[400];
};

/* Each candidate's whole output is compared with the reference's on small integers. What would be the best is compared
 * on real numbers too (jit_expect): that costs another run of the unscheduled function, or of samples of it, once a
 * process, and one of the candidate.
 * A measurer holds a helper program of ours, started once, and through it warm builder and runner processes for one
 * target. It serves several functions, its tasks; what each of them computes, unscheduled, is made once in the
 * background, and holds up no other task. Whatever a candidate does (crash, hang, exhaust memory, compute wrongly)
 * costs that candidate.
 */
struct jit_measurer;
struct vm_intrinsics;
#define JIT_RUN_SECONDS       10 /* seconds that hold for 0 */
#define JIT_REFERENCE_SECONDS 600
struct jit_measurer_options {
  uint32_t builders;        /* 0: as many as the target has cores */
  double build_timeout;     /* seconds; 0: 30 */
  double run_timeout;       /* seconds a candidate, all its runs; 0: JIT_RUN_SECONDS */
  double reference_timeout; /* seconds of the unscheduled function; 0: JIT_REFERENCE_SECONDS */
  double tolerance;         /* 0: 0.02 */
  double censor_factor; /* a candidate slower than this many times the best, or the unscheduled function until one is
                           faster, is stopped in the middle; eight times later with no best yet; 0: 3; below 0: none */
  bool check_best_only; /* compare with the reference's output only what would be the best; default: every candidate */
  struct jit_options code;
  const volatile bool *stop; /* NULL, or: starting ends soon, with an error, when it turns true */
};
/* The helper is MSCHED_HELPER, or stands beside this library or program, or in its prefix's libexec. */
struct jit_measurer *jit_measurer_new(const struct jit_target *target, const struct jit_measurer_options *options,
                                      ms_error *err);
void jit_measurer_free(struct jit_measurer *measurer);
/* Adds a function; returns its number, from 0 on. All is copied.
 *   intrinsics  that its traces name, besides those shipped; NULL: none */
uint32_t jit_measurer_add(struct jit_measurer *measurer, const struct tir *workload, tir_func f,
                          const struct vm_intrinsics *intrinsics);
/* Whether what a task's function computes is known, as of what was read last. 1: yes, 0: not yet, -1: it cannot be run,
 * and err says why. */
int jit_measurer_reference(const struct jit_measurer *measurer, uint32_t task, ms_error *err);
/* What is to be said of how it became known: why a device's results are compared on the host, say; "": nothing. Valid
 * until the next call with the measurer. */
const char *jit_measurer_remark(const struct jit_measurer *measurer, uint32_t task);
/* Queues a candidate: vm's binary form of a trace with its decisions (copied). */
bool jit_measurer_submit(struct jit_measurer *measurer, uint32_t task, uint64_t id, const void *trace, size_t bytes,
                         ms_error *err);
/* Waits at most `wait` seconds for a result; those of a task come in order of submission. 1: *out is filled, 0: none
 * yet, -1: err. */
int jit_measurer_next(struct jit_measurer *measurer, double wait, struct jit_result *out, ms_error *err);
/* What its processes wait for, as jit_say_waiting has it, once each time that it was said; false: nothing. */
bool jit_measurer_waiting(struct jit_measurer *measurer, char *out, size_t size);
/* Sets the fastest time known of a task, so that slow candidates are stopped early. */
void jit_measurer_set_best(struct jit_measurer *measurer, uint32_t task, double seconds);
/* How many candidates of a task were submitted of which no result was taken yet. */
uint32_t jit_measurer_waits_for(const struct jit_measurer *measurer, uint32_t task);
/* Whether a final re-measurement is running, or its times were not taken yet. */
bool jit_measurer_is_remeasuring(const struct jit_measurer *measurer);
/* Ends a task that has nothing pending, while no final re-measurement runs, and frees the memory of its arguments.
 * Candidates that are submitted to it or timed again later fail. */
void jit_measurer_close_task(struct jit_measurer *measurer, uint32_t task);

/* Times candidates of a task again, in turn, `seconds` each or somewhat more: what disturbs the machine disturbs all
 * alike. Refused while results are pending. jit_measurer_remeasured then waits for the times, in order. 1: `out` is
 * filled, 0: not yet, -1: one of them cannot be built or run, or the helper ended. */
enum { JIT_MOST_FINALISTS = 16 };
struct jit_trace {
  const void *data;
  size_t bytes;
};
bool jit_measurer_remeasure(struct jit_measurer *measurer, uint32_t task, const struct jit_trace *traces,
                            uint32_t count, double seconds, ms_error *err);
int jit_measurer_remeasured(struct jit_measurer *measurer, double wait, struct jit_timing *out, ms_error *err);

/* ---- Installed files ----------------------------------------------------------------------------------------------
 */

/* Finds a file by its path below the folder of this library (of the program, if it is linked into it), or below one of
 * so many parents of that folder. False: there is none, or its path is longer than `size`. */
bool jit_find_near(const char *file, int parents, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif

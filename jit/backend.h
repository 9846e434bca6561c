/* Backends: what each kind of target is and does, from its text to a timed call, as a row of functions. Nothing else
 * here asks of what kind a target is. Internal to jit.
 *
 *   parse ─► lower ─► compile ─► assemble ─► load ─► run, sample          export
 *                                    on a device, in its memory: open, memory */
#ifndef MSCHED_JIT_BACKEND_H
#define MSCHED_JIT_BACKEND_H

#include "jit/llvm/machine.h"

struct jit_device;   /* where a process runs kernels; NULL: they are its own code */
struct jit_captured; /* work of a device as a graph */

/* Memory that kernels are given, with guards around each piece. Where it is not in place, only these functions touch
 * it. */
struct jit_memory {
  bool in_place;                                                        /* the host reads and writes it as its own */
  void *(*get)(struct jit_device *device, size_t bytes, ms_error *err); /* aligned to 64; NULL: err is filled */
  void (*release)(struct jit_device *device, void *at, size_t bytes);   /* at: NULL, or what was got */
  bool (*protect)(void *at, size_t bytes); /* it is only read from now on; NULL: guards cannot show it */
  bool (*write)(struct jit_device *device, void *to, const void *from, size_t bytes, ms_error *err);
  bool (*read)(struct jit_device *device, void *to, const void *from, size_t bytes, ms_error *err);
  bool (*copy)(struct jit_device *device, void *to, const void *from, size_t bytes, ms_error *err);
  bool (*fill)(struct jit_device *device, void *at, uint8_t byte, size_t bytes, ms_error *err);
  /* Whether nothing was written beside it. */
  bool (*check_guards)(struct jit_device *device, const void *at, size_t bytes, ms_error *err);
};

/* Elements of a buffer, each of one lane, and what tir_make_arguments fills it with. */
struct jit_contents {
  tir_type type;
  uint64_t elements, seed, stream; /* stream: the parameter's number */
  bool real;                       /* filled as tir_make_real_arguments does; of comparing with that */
};
enum jit_filling { JIT_FILL_WHOLE, JIT_FILL_REAL, JIT_FILL_NUDGED /* tir_nudge_arguments, of what is there */ };

/* What a comparison found, by the rule of tir_same_arguments. */
struct jit_difference {
  uint64_t elements;    /* that differ by more than is allowed */
  uint64_t first, most; /* the first of them; the one that is off the most */
  uint64_t nans;        /* no numbers where one is expected */
  double off;           /* the largest distance; INFINITY where integers differ, or only one is a number */
  double largest;       /* of the numbers that are expected */
  uint64_t fractions;   /* expected floats that are no whole numbers, or too large for all smaller ones to be exact */
};

/* Filling and comparing where kernels' memory is, in place of the host: by kernels of the backend's own, which a
 * process compiles and others load. */
struct jit_checker;
struct jit_checks {
  void *(*compile)(const struct jit_target *target, size_t *bytes, ms_error *err); /* free(); NULL: err is filled */
  struct jit_checker *(*open)(struct jit_device *device, const void *code, ms_error *err); /* NULL: err is filled */
  void (*close)(struct jit_checker *checker);
  bool (*fill)(const struct jit_checker *checker, void *at, const struct jit_contents *contents, enum jit_filling how,
               ms_error *err);
  /* expected: NULL: as it is filled, bit for bit. slack: how far floats may be off. */
  bool (*compare)(const struct jit_checker *checker, const void *expected, const void *actual,
                  const struct jit_contents *contents, double slack, struct jit_difference *out, ms_error *err);
  /* Has the unscheduled function run in parallel there (arrange_threads.h). */
  bool (*arrange)(struct tir *ir, tir_func f, const struct jit_target *target, uint32_t attempt, ms_error *err);
};

struct jit_kernel {
  const struct jit_backend *backend;
  struct jit_device *device;
  jit_entry entry; /* NULL: it is no code of this process */
  jit_entry pack;  /* what packs constants; NULL: nothing does */
  struct jit_packing packing;
  struct tir_workspace workspace;
  void *loaded;      /* what the backend knows of it */
  void *pack_loaded; /* the same of what packs constants, where that is no code of this process; NULL: nothing does */
};

/* A function that is exported. */
struct jit_exported {
  const struct tir *ir, *lowered; /* as it was given; for the target, what is left of it where constants are packed */
  tir_func f;
  const char *name;
  const struct jit_beside *beside; /* NULL, or what packs them */
  const struct jit_beside
      *plain;                    /* NULL, or the same without what a system may refuse: it runs where that is refused */
  const struct tir_packing *cut; /* count 0: nothing is packed */
  const struct jit_target *target; /* narrowed to the form */
  const struct jit_options *options;
};

struct jit_backend {
  const char *kind; /* of its targets, and the first word of their texts */

  /* Targets. words: may be cut up. */
  bool (*parse)(char *words, struct jit_target *out, ms_error *err);
  void (*text)(const struct jit_target *target, char *out, size_t size);
  uint32_t (*numbers)(const struct jit_target *target, struct jit_number out[JIT_MOST_NUMBERS]);
  bool (*runs_here)(const struct jit_target *target, ms_error *err);
  /* The text of the target whose code says what functions compute that kernels are compared with; NULL: itself. */
  const char *reference;

  /* Code. */
  /* NULL, or: opens what compiling takes, which each process that is forked later need not; it starts no thread. */
  bool (*open_compiler)(ms_error *err);
  struct tir_lower_options (*lower)(const struct jit_target *target);
  bool packs; /* constants are packed ahead: `compile` is given what packs them */
  bool (*compile)(const struct tir *lowered, tir_func f, const struct jit_beside *beside,
                  const struct jit_options *options, struct jit_clock *clock, struct jit_code *code, ms_error *err);
  /* Makes what is loaded of what was compiled; NULL: it is that. */
  bool (*assemble)(struct jit_code *code, ms_error *err);
  void (*forget)(struct jit_code *code); /* NULL, or: frees what `compile` left in code->launched */
  const struct c_dialect *dialect;
  const char *const *forms; /* suffixes of files that `export` writes; the last is NULL */
  /* NULL, or: takes from a target what a form has no words for, before functions are lowered for it. */
  void (*narrow)(struct jit_target *target, const char *form);
  /* NULL, or: takes away what the function uses, and a system may refuse to a process; false: there is nothing. */
  bool (*withhold)(const struct tir *lowered, tir_func f, struct jit_target *target);
  bool (*export)(const struct jit_exported *x, const char *form, const char *path, ms_error *err);

  /* Devices and kernels. */
  uint32_t (*count)(const struct jit_target *target); /* of devices that run its code alike */
  bool (*open)(const struct jit_target *target, uint32_t number, struct jit_device **out, ms_error *err);
  void (*describe)(const struct jit_device *device, struct jit_ran_on *out); /* NULL, or: what it is, and is just now */
  void (*prepare)(const struct jit_target *target); /* NULL, or: makes this process one that times kernels */
  const struct jit_memory *memory;
  const struct jit_checks *checks; /* NULL: its memory is the host's, which fills and compares */
  bool (*load)(const struct jit_code *code, struct jit_kernel *kernel, ms_error *err); /* the rest is filled */
  bool (*load_perturbed)(const struct jit_code *code, struct jit_kernel *kernel,
                         ms_error *err); /* NULL: no threads' timing */
  void (*unload)(struct jit_kernel *kernel);
  /* Runs it to its end. outlive: a fault ends the call, and not the process; then stop, unless it is NULL, may end it
   * too where it is code of this process. */
  bool (*run)(const struct jit_kernel *kernel, void **args, void *workspace, bool outlive, const volatile int *stop,
              ms_error *err);
  /* Seconds of one of so many calls in a row; below 0: one failed. stop: as above; it makes parallel loops dearer by
   * what takes some hundred nanoseconds. */
  double (*sample)(const struct jit_kernel *kernel, void **args, void *workspace, uint32_t calls,
                   const volatile int *stop, ms_error *err);
  /* Puts a kernel on a stream of its device, or a copy between buffers there: a part of a routine (jit_routine_start).
   * NULL: there are no devices. */
  bool (*start)(const struct jit_kernel *kernel, void **args, const void *workspace, void *stream, ms_error *err);
  bool (*start_copy)(struct jit_device *device, void *to, const void *from, size_t bytes, void *stream, ms_error *err);
  /* The same of what another library starts; NULL: there are no devices. */
  bool (*run_other)(struct jit_device *device, jit_routine_start *start, void *data, void *const *buffers,
                    ms_error *err);
  /* captured: what is kept of it from one sample to the next, NULL at first, while data and buffers stay; to be
   * freed */
  double (*sample_other)(struct jit_device *device, jit_routine_start *start, void *data, void *const *buffers,
                         bool cold, struct jit_captured **captured, uint32_t calls, ms_error *err);
  void (*free_captured)(struct jit_captured *captured); /* may be NULL */
  /* NULL, or as a jit_turn: calls within one another count as one */
  void (*turn)(struct jit_device *device, bool begins, struct jit_conditions *out);
  bool apart;      /* its kernels need no processor of the host's: builders go on while they are timed */
  double settling; /* seconds that a process loses when its first run is ended: none is for less */
};

/* Loop iterations of a function that store, as far as extents are constants. */
double jit_steps_of(const struct tir *ir, tir_func f);

/* Why real numbers say nothing of a function; NULL: they do. Rounding alone may move results by JIT_VAGUE of the
 * largest: that says nothing either. */
const char *jit_why_not_real(const struct tir *ir, tir_func f);
#define JIT_VAGUE 0.5

const struct jit_backend *jit_backend_of(const struct jit_target *target);

/* The function in two where its constants are packed ahead for such a target; tir_packing_free. */
bool jit_split(const struct tir *ir, tir_func f, const struct jit_target *target, struct tir_packing *cut,
               ms_error *err);
/* A copy of the module with function f lowered for the target, of what jit_split leaves of it, and of what packs its
 * constants; on a device, a thread packs an element. notes: NULL, or gets what the lowering says of loops. *pack: NULL,
 * where nothing is packed. NULL: err is filled. Both are the caller's. */
struct tir *jit_lowered_parts(const struct tir *ir, tir_func f, const struct tir_packing *cut,
                              const struct jit_target *target, const struct jit_options *options,
                              struct jit_clock *clock, struct jit_notes *notes, struct tir **pack, ms_error *err);

/* The first of them alone. */
struct tir *jit_lowered_kernel(const struct tir *ir, tir_func f, const struct tir_packing *cut,
                               const struct jit_target *target, const struct jit_options *options, ms_error *err);

/* The rows. */
extern const struct jit_backend llvm_backend, cuda_backend;
extern const struct jit_memory host_memory;

/* Loads on a device. The kernel: the caller's, jit_kernel_free. */
struct jit_kernel *jit_load_on(const struct jit_code *code, struct jit_device *device, bool perturbed, ms_error *err);

/* A kernel with arguments in its memory, as what is timed takes them (timing.h). */
struct jit_running {
  const struct jit_kernel *kernel;
  void **args, *workspace;
  ms_error *err;            /* filled where a call fails */
  const volatile int *stop; /* as `sample` takes it */
};
double jit_sample(void *running, uint32_t calls);
jit_turn jit_running_turn; /* of the same; where that is the host's, out->clock is 0 */

/* Whether a loop or a while stores to places that come back in later iterations, and more than once in one of them:
 * LLVM's vectorizer must not have it. */
bool jit_stores_come_back(const struct tir *ir, tir_stmt loop);

#endif

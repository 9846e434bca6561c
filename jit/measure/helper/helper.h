/* The helper program: processes that build, run and check candidates. See ../measure.h. */
#ifndef MSCHED_HELPER_H
#define MSCHED_HELPER_H

#include "jit/backend.h"
#include "jit/measure/measure.h"

#include <sys/types.h>

/* ---- What is measured (data.c) ---- */

/* What the reference's process gives the others, in memory that they share: how it went, and code with which each makes
 * arguments and results on its device. */
enum { MOST_CODE = 4 << 20 };
struct made {
  volatile uint32_t settled; /* what the function computes is known, or will not be */
  bool on_device;            /* arguments are made, and results compared, on devices; else those of the host are read */
  bool lean;                 /* there memory is short: a buffer has whole numbers or real ones, and is filled again */
  double real_tolerance;     /* there, on real numbers; below 0: these say nothing */
  size_t checks_at, code_bytes;
  struct tir_workspace workspace; /* of the code that computes what is expected */
  char name[128];
  char note[400];                       /* how it was made, where that is not as it should be: "" else */
  _Alignas(64) uint8_t code[MOST_CODE]; /* of the reference, then of what fills and compares (jit_checks) */
};

/* A task's function and data, made by the helper; children that are forked later see the same memory. Only the
 * reference's process writes `expected` and `made`, and only the helper `reference`. */
struct workload {
  const struct measure_hello *hello;
  struct tir *ir;
  tir_func f;
  struct vm_intrinsics *intrinsics; /* besides those shipped */
  struct tir_arguments inputs;      /* arguments as each run finds them; data is shared. large: it is filled only where
                                         they are not made on the device */
  struct tir_arguments expected;    /* and as the reference leaves them */
  struct tir_arguments timed;       /* of a device: full-mantissa data for the floats that the function only reads, for
                                         timing; count 0: none. Others have no data */
  bool *written;                    /* per parameter: the function may write it */
  bool large;                       /* its arguments had better be made, and its results compared, on the device */
  struct made *made;
  struct measure_reference reference; /* tolerance below 0: not known yet */
};
/* texts: the function's, then those of intrinsics */
bool workload_open(struct workload *w, const struct measure_hello *hello, const struct measure_task *task,
                   const char *texts, size_t length, ms_error *err);

/* Fills inputs, and what is timed. */
void workload_fill(const struct workload *w);
struct jit_contents workload_contents(const struct workload *w, uint32_t parameter); /* of a buffer */

/* Nobody reads inputs and expected results any more: their memory is the system's again, whoever still maps it. */
void workload_drop_arguments(struct workload *w);

struct workloads { /* by number of the task */
  struct workload **at;
  uint32_t count;
};

/* The arguments of one process, in the memory of the kernels that it runs: buffers each between guards, and those that
 * the function only reads protected, so that a candidate that leaves its bounds dies of it, or is found out. */
struct arena {
  const struct workload *w;
  const struct jit_memory *memory;
  struct jit_device *device;
  void **pointers; /* as kernels take them */
  void **timed;    /* and while they are timed */
  uint64_t *scalars;
  void **originals;            /* what buffers hold at first, in that memory */
  struct tir_arguments args;   /* as the host sees them */
  struct jit_checker *checker; /* NULL: the host makes arguments, and compares */
  struct expected {
    void *at; /* of a buffer that the function may write: what it leaves, in that memory; NULL: not made yet */
    double largest;
    bool whole;          /* all of it whole numbers */
  } * expected, *real;   /* on arguments as they are, and on real numbers */
  bool lean, holds_real; /* as made->lean has it; what buffers hold now. What is expected is kept of one kind alone */
  bool nan;              /* where the last comparison found a difference: no number where there is one */
};
bool arena_open(struct arena *a, const struct workload *w, const struct jit_backend *backend, struct jit_device *device,
                ms_error *err); /* arena_close in either case */
bool arena_fetch(struct arena *a,
                 ms_error *err); /* the host sees what they hold; false: something was written beside one */
/* Whether nothing was written beside a buffer, in memory that the host does not see as its own. */
bool arena_check_guards(struct arena *a, ms_error *err);
void arena_close(struct arena *a);
bool arena_has_nan(const struct arena *a); /* in what was compared, where the reference left a number */
/* What was fetched, with what the reference left. */
bool arena_compare(struct arena *a, double tolerance, ms_error *err);

/* Buffers that the function may write are as at first. (device.c) */
bool arena_reset(struct arena *a, ms_error *err);

/* ---- On the device (device.c): of an arena with a checker ---- */

/* Makes buffers that the function may write as they are at first, or real numbers. */
bool device_reset(struct arena *a, bool real, ms_error *err);
/* Runs a kernel on buffers as they are at first, or on real numbers, and waits for it. */
bool device_run(struct arena *a, const struct jit_kernel *kernel, void *workspace, bool real, ms_error *err);
/* Keeps what the last run left, which others are compared with. */
bool device_keep(struct arena *a, bool real, ms_error *err);
/* Compares what the last run left with what was kept. *off: the largest difference, relative to the largest number. */
bool device_compare(struct arena *a, bool real, double tolerance, double *off, ms_error *err);
/* Makes what is expected, by the code that the reference's process has given, unless it is there. */
bool device_expect(struct arena *a, bool real, ms_error *err);
void device_forget(struct arena *a);

/* ---- What the workload computes (host_reference.c) ---- */

/* Loop iterations and stores that the interpreter does in a quarter of a second or so. */
enum { QUICK_STEPS = 1 << 21 };
/* Where the interpreter gives no verdict: it takes too long, or does not know a construct. */
bool reference_left_open(enum ms_code code);
/* By a build for this machine's processor, into `expected`. */
bool host_reference(const struct workload *w, double *seconds, ms_error *err);
/* On the device, itself confirmed by samples; false: it cannot be so, and err says why. (device_reference.c) */
bool device_reference(const struct workload *w, struct measure_reference *out, ms_error *err);
void *shared_new(size_t bytes); /* memory that children share, zeroed; NULL: there is none */

/* ---- Processes (child.c) ---- */

/* What a child is doing, in memory that it shares with the helper: read when it has died. */
struct note {
  volatile uint32_t stage; /* enum stage */
  volatile double started, limit;
  char said[400]; /* LLVM's last words */
};
enum stage {
  STAGE_STARTING /* is not what was asked for yet */,
  STAGE_IDLE,
  STAGE_BUILDING,
  STAGE_LOADING,
  STAGE_FIRST_RUN,
  STAGE_WAITING, /* for a device on which another process times: no limit counts that */
  STAGE_TIMING
};

struct child {
  pid_t pid; /* 0: there is none */
  struct channel channel;
  struct note *note;
  int log; /* its standard error, in memory; -1: none */
  bool stopped, fresh;
  uint32_t known;      /* so many tasks were there when it was forked: it can serve these */
  double since, spent; /* when it was last set going; seconds before that, on the present task */
  double processor;    /* seconds of its processor time when it began that */
};
static const struct child child_none = {.channel.fd = -1, .log = -1};
typedef void child_main(struct channel *channel, const struct workloads *all, struct note *note);
/* Forks a process that runs `body` on its end of a channel, dies with the helper, and is limited in memory and in the
 * files that it writes. false: there is none, as before, and err says why, and what to do. */
bool child_start(struct child *c, child_main *body, const struct workloads *all, ms_error *err);
/* Ends it, whatever it does; how it ended, in words, is written to reason (may be NULL). Returns wait's status. */
int child_end(struct child *c, char *reason, size_t size);
void child_stop(struct child *c); /* returns when it does not run any more */
void child_continue(struct child *c);
void child_begin(struct child *c);           /* a task, now */
double child_seconds(const struct child *c); /* spent on its task, stops left out */
/* Seconds that it has left of so many: one that had less of the processor than these, as where the machine is busy, has
 * CHILD_MORE times as many by the clock. */
#define CHILD_MORE 4
double child_left(const struct child *c, double limit);
/* The helper slept for so many seconds, and meant to for no more than `asked`: what is past these it, and its children
 * with it, was stopped. It sleeps no longer than CHILD_LOOK while a child works. */
void child_note_sleep(double asked, double slept);
#define CHILD_LOOK 1.0 /* seconds */
/* Whether it never came to run its body: what it was asked for is not to blame. */
bool child_is_unborn(const struct child *c);
/* In a child: it ends, and is as one that was never born, since it cannot have what it needs of the system; why, in
 * words. */
_Noreturn void child_give_up(struct note *note, const char *why);

/* Starting children where that fails for a while: too many processes, or too little memory, may be so for a moment. */
struct starts {
  bool failing;       /* the last one was not started, or ended unborn */
  bool any;           /* one worked, some time */
  double next, pause; /* when it is tried again; seconds from the last failure until then */
  double patient;     /* seconds waited since one worked, or since one was given up */
  uint32_t given_up;  /* children in a row */
  char why[300];      /* the last failure */
};
enum start { START_DONE, START_LATER, START_GIVEN_UP };
/* Starts a child, or says when to try again; after some seconds of failures it is given up, and others may be tried. */
enum start child_try(struct child *c, child_main *body, const struct workloads *all, struct starts *starts);
/* One that ended unborn: as where it was not started. */
enum start starts_failed(struct starts *starts, const char *why);
void starts_worked(struct starts *starts); /* one did what it was forked for */
/* Whether nothing can be started: none ever was, or several in a row were given up. */
bool starts_are_hopeless(const struct starts *starts);
bool starts_fail(const struct starts *starts);   /* the last one was not started */
double starts_wait(const struct starts *starts); /* seconds until the next try; long, where none is due */

/* What this process waits for is said to the helper by the channel. */
void child_say_waiting(struct channel *channel);
child_main builder_main, runner_main, reference_main, remeasure_main;

/* Replays a trace and compiles what comes of it. NULL: it cannot be. */
struct jit_code *builder_compile(const struct workload *w, const void *trace, size_t bytes);

#endif

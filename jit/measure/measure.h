/* What a measurer and its helper program say to each other. Internal to jit.
 *
 *   host (any program) ── socket ──► helper ──fork──► builders   trace: bytes ──► object: bytes
 *                                           └─fork──► runner     object ──► checked and timed; one a device
 *                                           └─fork──► references what a task's function computes, once a task
 *
 * A task is a function that is measured, by its number in order of adding. Both ends are of one build: structs travel
 * as they are. The helper has one thread and never enters LLVM's code generation nor OpenMP, so that it may fork at any
 * time; what may fail happens in its children. */
#ifndef MSCHED_JIT_MEASURE_H
#define MSCHED_JIT_MEASURE_H

#include "jit/packing.h"

#include <time.h>

/* ---- Channels: framed messages over a socket, never blocking unless asked to ---- */

enum { CHANNEL_MOST_BYTES = 1 << 30 }; /* of a message */

struct channel {
  int fd; /* -1: closed by either side */
  struct bytes {
    uint8_t *at;
    size_t first, count, capacity;
  } in, out;
};
struct message {
  uint32_t type;
  const uint8_t *data; /* valid until the channel is next filled */
  size_t bytes;
};
void channel_open(struct channel *c, int fd); /* takes the descriptor; where it cannot be used, it is closed */
void channel_close(struct channel *c);
/* Queues a message of two parts (the second may be empty) and sends what goes without waiting. */
void channel_send(struct channel *c, uint32_t type, const void *head, size_t head_bytes, const void *rest,
                  size_t rest_bytes);
void channel_flush(struct channel *c);
bool channel_has_unsent(const struct channel *c);
/* Reads what is there. After the other side is gone fd is -1; messages read before are still taken. */
void channel_fill(struct channel *c);
bool channel_take(struct channel *c, struct message *out); /* the next whole message; false: none yet */
/* Waits for a message (seconds; below 0: for ever). 1: taken, 0: time is up, -1: the other side is gone. */
int channel_wait(struct channel *c, double seconds, struct message *out);
bool channel_drain(struct channel *c); /* sends all; false: the other side is gone */

/* ---- Messages ---- */

enum measure_message {
  /* host to helper */
  MEASURE_HELLO,     /* struct measure_hello */
  MEASURE_TASK,      /* struct measure_task, then the function's text, then that of intrinsics */
  MEASURE_CANDIDATE, /* struct measure_candidate, then the trace */
  MEASURE_BEST,      /* struct measure_best */
  MEASURE_REMEASURE, /* struct measure_finalists, then each trace: uint64_t bytes, and these */
  MEASURE_CLOSE,     /* uint32_t task: nothing more comes for it */
  /* helper to host */
  MEASURE_READY,
  MEASURE_FAILED,     /* uint32_t enum ms_code, then text: it cannot start, or cannot go on */
  MEASURE_TASK_STATE, /* struct measure_task_state, then text where it failed */
  MEASURE_RESULT,     /* struct jit_result */
  MEASURE_REMEASURED, /* a struct jit_timing each; nothing: one of them could not be built or run */
  MEASURE_WAITS,      /* text: what a runner or a final re-measurement waits for; from these to the helper too */
  /* helper to builder */
  MEASURE_BUILD, /* uint32_t task, then the trace */
  MEASURE_GO,    /* the module is new: compile it */
  MEASURE_SKIP,  /* it is not */
  /* builder to helper */
  MEASURE_REPLAYED, /* uint64_t hash of the scheduled module */
  MEASURE_BUILT,    /* struct measure_built, then the object */
  /* helper to runner, and to a reference */
  MEASURE_RUN,   /* struct measure_run, then the object */
  MEASURE_REFER, /* uint32_t task */
  MEASURE_OPEN,  /* uint32_t device: a runner's, before there is anything to run */
  /* runner and reference to helper */
  MEASURE_RAN,      /* struct jit_result, whose id, hash and build time mean nothing */
  MEASURE_REFERENCE /* struct measure_reference, then text where it failed */
};

enum { MEASURE_VERSION = 8, MEASURE_SOCKET = 3 /* the helper's end of the socket */ };

struct measure_hello {
  uint32_t version, size; /* of this struct: the two ends are of one build */
  int32_t host;           /* process */
  struct jit_target target;
  uint32_t devices;                    /* that run its code: a runner each */
  struct jit_measurer_options options; /* every 0 replaced by its default; its pointers mean nothing */
};
struct measure_task {
  uint32_t function;
  uint64_t workload; /* bytes of its text */
};
struct measure_candidate {
  uint64_t id;
  uint32_t task;
};
struct measure_best {
  uint32_t task;
  double seconds;
};
struct measure_task_state {
  uint32_t task;
  bool failed; /* its function cannot be run; else what it computes is known */
};
struct measure_built {
  enum jit_outcome outcome; /* JIT_MEASURED: it was built */
  double seconds;
  struct jit_taken taken;
  struct tir_workspace workspace;
  struct jit_packing packing;
  char name[128], reason[400];
};
struct measure_reference {
  double tolerance; /* between results; below 0: it failed */
  double seconds;   /* of one run, unscheduled; 0: it was interpreted */
};
struct measure_finalists {
  uint32_t task, count;
  double seconds; /* for each */
};
struct measure_run {
  uint32_t task;
  struct measure_reference reference;
  double best;     /* 0: none yet */
  double grace;    /* seconds that a first run, being cold, gets more before it counts as hopeless */
  uint32_t device; /* by number, of those that the target has here */
  double hertz; /* the clock that times are scaled to: of the device when the first was timed; 0: that, or not known */
  struct tir_workspace workspace;
  struct jit_packing packing;
  char name[128];
};

double measure_clock(clockid_t clock); /* seconds; 0: it cannot be read */
double measure_now(void);              /* those of a steady clock */

#endif

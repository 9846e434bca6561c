/* The functions that are measured: each with its candidates, and with what it computes, made in the background. */
#ifndef MSCHED_HELPER_TASK_H
#define MSCHED_HELPER_TASK_H

#include "queue.h"

enum { MOST_REFERENCES = 4 }; /* that are computed at once: one that takes long holds up no other task */

struct task {
  struct workload w;
  struct queue queue;
  struct child reference;
  enum { REFERENCE_WAITS, REFERENCE_RUNS, REFERENCE_KNOWN, REFERENCE_FAILED } state;
  char failure[2400];
  double best; /* 0: none yet */
};

struct tasks {
  struct task **at; /* by number */
  struct workloads workloads;
  uint32_t running; /* references that are computed now */
  struct starts starts;
};

/* Reads a task from its message; one that cannot be read has failed. */
void tasks_add(struct tasks *tasks, const struct measure_hello *hello, const struct message *m, struct channel *host);
/* Gives back the memory of a task's arguments; its candidates, if any come, have no reference. */
void tasks_close(struct tasks *tasks, uint32_t task);
/* Starts references that wait, hears those that run, and ends those that take too long. The host hears what became of
 * each. Returns seconds until the next look. */
double tasks_watch(struct tasks *tasks, struct channel *host);
void tasks_stop_references(struct tasks *tasks); /* while a candidate is timed */
void tasks_continue_references(struct tasks *tasks);
void tasks_end(struct tasks *tasks);

#endif

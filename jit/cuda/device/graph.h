/* Work on a device in a CUDA graph: captured once, replayed, timed by events around the replay, so that what a launch
 * costs the host is no part of its time. Internal to jit. */
#ifndef MSCHED_JIT_GRAPH_H
#define MSCHED_JIT_GRAPH_H

#include "driver.h"

struct graph;

/* What is captured: starts one run on a stream of the device. false: it cannot, and err says why. */
struct graph_work {
  bool (*start)(void *data, void *stream, ms_error *err);
  void *data;
};

/* So many runs in a row that a replay takes as long as events tell apart well; the buffers that they use stay where
 * they are as long as the graph lives. NULL: the work cannot be captured, or the driver has no graphs, and why says so;
 * the device goes on as before.
 *   failed  of a run that was captured and replayed: a fault of the work itself, with why filled */
struct graph *graph_new(struct jit_device *device, const struct graph_work *work, bool *failed, ms_error *why);
void graph_free(struct graph *graph); /* may be NULL */
uint32_t graph_runs(const struct graph *graph);
/* Seconds of one run, by one replay. Below 0: it failed. */
double graph_sample(const struct graph *graph, ms_error *err);

#endif

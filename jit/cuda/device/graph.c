/* Graphs of work on a device. A stream is captured with so many runs that a replay takes WINDOW: events resolve half a
 * microsecond. Before each replay the pace kernel runs (pace.h): it says the clock, and while it does, the host queues
 * what follows, so that no launch is waited for. Source: CUDA Driver API, "Stream Management", "Graph Management". */
#include "graph.h"
#include "pace.h"

#include <math.h>
#include <stdlib.h>

static const double WINDOW = 200e-6; /* seconds that a replay takes, or longer */
static const double LONGER = 1.2;    /* the runs are made for so many times that: their time is not known well yet */
enum { MOST_NODES = 2048, MOST_CAPTURES = 4 };

struct graph {
  struct jit_device *device;
  void *executable, *start, *end; /* events */
  uint32_t runs;
  size_t nodes;
};

static bool has_graphs(const struct driver *d, ms_error *err) {
  return (d->new_stream && d->begin_capture && d->end_capture && d->graph_nodes && d->instantiate && d->free_graph &&
          d->launch_graph && d->free_executable) ||
         ms_fail(err, MS_NO_DEVICE, "the driver has no graphs");
}

/* A stream that waits for the default one, and that one for it: what is copied and filled there is there. */
static bool have_stream(struct jit_device *device, ms_error *err) {
  return device->stream || driver_check(device->driver->new_stream(&device->stream, 0), "making a stream", err);
}

/* Captured or not, the stream is as before. */
static bool capture(struct graph *g, const struct graph_work *work, void **captured, ms_error *err) {
  const struct driver *d = g->device->driver;
  void *stream = g->device->stream;
  bool ok = driver_check(d->begin_capture(stream, DRIVER_CAPTURE_RELAXED), "capturing a graph", err);
  if (!ok) return false;
  for (uint32_t i = 0; i < g->runs && ok; i++) ok = work->start(work->data, stream, err);
  int result = d->end_capture(stream, captured);
  return ok && driver_check(result, "capturing a graph", err) &&
         driver_check(d->graph_nodes(*captured, NULL, &g->nodes), "capturing a graph", err) &&
         (g->nodes || ms_fail(err, MS_NOT_LAUNCHED, "nothing of it was started on the stream that is captured"));
}

static bool instantiate(struct graph *g, const struct graph_work *work, ms_error *err) {
  const struct driver *d = g->device->driver;
  void *captured = NULL;
  if (g->executable) d->free_executable(g->executable);
  g->executable = NULL;
  bool ok = capture(g, work, &captured, err) &&
            driver_check(d->instantiate(&g->executable, captured, 0), "instantiating a graph", err);
  if (captured) d->free_graph(captured);
  if (ok && d->upload_graph) d->upload_graph(g->executable, g->device->stream); /* the first replay does it else */
  return ok;
}

double graph_sample(const struct graph *g, ms_error *err) {
  const struct driver *d = g->device->driver;
  void *stream = g->device->stream;
  float milliseconds = 0;
  bool ok = driver_enter(g->device, err);
  if (ok && !pace_launch(g->device, stream))
    ok = driver_check(d->launch_graph(g->executable, stream), "launching a graph", err);
  ok = ok && driver_check(d->record(g->start, stream), "timing a graph", err) &&
       driver_check(d->launch_graph(g->executable, stream), "launching a graph", err) &&
       driver_check(d->record(g->end, stream), "timing a graph", err) &&
       driver_check(d->wait(g->end), "running kernels", err) &&
       driver_check(d->elapsed(&milliseconds, g->start, g->end), "timing a graph", err);
  return ok ? 1e-3 * milliseconds / g->runs : -1;
}

/* How many runs take the window, of which one takes so long; as many at least as there are. */
static uint32_t runs_for(const struct graph *g, double seconds) {
  double most = fmax(1, floor(MOST_NODES / fmax(1, (double)g->nodes / g->runs)));
  double wanted = ceil(LONGER * WINDOW / fmax(seconds, 1e-9));
  return (uint32_t)fmax(g->runs, fmin(wanted, most));
}

/* Captured with more runs until they take the window. */
static bool fill_window(struct graph *g, const struct graph_work *work, bool *failed, ms_error *err) {
  for (int i = 0; i < MOST_CAPTURES; i++) {
    if (!instantiate(g, work, err)) return false;
    double seconds = graph_sample(g, err);
    *failed = seconds < 0;
    if (*failed) return false;
    uint32_t runs = runs_for(g, seconds);
    if (seconds * g->runs >= WINDOW || runs == g->runs) break;
    g->runs = runs;
    if (i + 1 == MOST_CAPTURES) return instantiate(g, work, err);
  }
  return true;
}

struct graph *graph_new(struct jit_device *device, const struct graph_work *work, bool *failed, ms_error *why) {
  const struct driver *d = device->driver;
  assert(work->start);
  *failed = false;
  if (!has_graphs(d, why) || !driver_enter(device, why) || !have_stream(device, why)) return NULL;
  struct graph *g = calloc(1, sizeof *g);
  if (!g) abort();
  *g = (struct graph){.device = device, .runs = 1};
  bool ok = driver_check(d->new_event(&g->start, 0), "making an event", why) &&
            driver_check(d->new_event(&g->end, 0), "making an event", why) && fill_window(g, work, failed, why);
  if (ok) return g;
  graph_free(g);
  return NULL;
}

uint32_t graph_runs(const struct graph *g) { return g->runs; }

void graph_free(struct graph *g) {
  if (!g) return;
  const struct driver *d = g->device->driver;
  if (driver_enter(g->device, NULL)) {
    if (g->executable) d->free_executable(g->executable);
    if (g->start) d->free_event(g->start);
    if (g->end) d->free_event(g->end);
  }
  free(g);
}

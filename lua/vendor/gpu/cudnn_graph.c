/* cuDNN's graph API: convolutions, forward and transposed, and attention. An operation graph is made: of a convolution
 * for channels first and channels last, and for short floats with a result of the tensor's type and a rounded one; its
 * heuristics name engines with their settings; those that make a plan are timed in turn, and the fastest of all is
 * taken. Float32 is computed as such: engines on tensor cores, which round to TF32, and those that convert what goes in
 * are left out. Source: cuDNN API reference, cudnn_graph library; cuDNN Developer Guide, "Graph API". */
#include "cudnn_graph.h"
#include "vm/vm.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions, by name. */
static const struct {
  size_t at;
  const char *name;
  bool optional;
} functions[] = {
#define GRAPH_FUNCTION(field, symbol, parameters) {offsetof(struct cudnn_graphs, field), #symbol, false},
#include "cudnn_graph.def"
    {offsetof(struct cudnn_graphs, set_stream), "cudnnSetStream", false},
    {offsetof(struct cudnn_graphs, name), "cudnnGetErrorString", false},
    {offsetof(struct cudnn_graphs, last_error), "cudnnGetLastErrorString", true},
};

const struct cudnn_graphs *cudnn_graphs_find(void *library, void *handle, const char **missing) {
  struct cudnn_graphs *g = calloc(1, sizeof *g);
  if (!g) abort();
  g->handle = handle;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(library, functions[i].name);
    *missing = functions[i].name;
    if (!function && !functions[i].optional) return free(g), NULL;
    memcpy((char *)g + functions[i].at, &function, sizeof function);
  }
  *missing = NULL;
  return g;
}

/* ---- Descriptors ---- */

enum { MOST_NAMED = 100, MOST_OF_A_MODE = 10, MOST_KNOBS = 32, MOST_NOTES = 32 };
static const int64_t MOST_WORKSPACE = (int64_t)1 << 30;
static const double MOST_SECONDS = 8; /* of making the plans of one graph: some are compiled */

/* A graph's name in logs. */
static const char *way_of(const struct cudnn_graph *g) {
  if (g->work->op == VENDOR_ATTENTION) return "attention";
  return g->layout == LAYOUT_CHANNELS_LAST ? "NHWC" : "NCHW";
}

/* Whether a function went well; else notes which did not, of what. */
static bool went(struct cudnn_graph *g, int status, const char *function, const char *what) {
  if (!status) return true;
  char last[200] = "";
  if (g->api->last_error) g->api->last_error(last, sizeof last);
  last[sizeof last - 1] = 0;
  last[strcspn(last, "\n")] = 0;
  snprintf(g->why, sizeof g->why, "%s of %s gives %s%s%s", function, what, g->api->name(status), *last ? ": " : "",
           last);
  vendor_log("cuDNN %s: %s (%d)", way_of(g), g->why, status);
  return false;
}

void *cudnn_new(struct cudnn_graph *g, int type, const char *what) {
  void *made = NULL;
  if (g->descriptor_count == CUDNN_MOST_DESCRIPTORS) return NULL;
  if (!went(g, g->api->create(type, &made), "cudnnBackendCreateDescriptor", what)) return NULL;
  return g->descriptors[g->descriptor_count++] = made;
}

bool cudnn_set(struct cudnn_graph *g, void *descriptor, int attribute, int type, int64_t count, const void *elements,
               const char *what) {
  return went(g, g->api->set(descriptor, attribute, type, count, elements), "cudnnBackendSetAttribute", what);
}
bool cudnn_finalize(struct cudnn_graph *g, void *descriptor, const char *what) {
  return went(g, g->api->finalize(descriptor), "cudnnBackendFinalize", what);
}

/* Frees the descriptors made after the first so many. */
static void drop_descriptors(struct cudnn_graph *g, int kept) {
  assert(kept >= 0 && kept <= g->descriptor_count && g->descriptor_count <= CUDNN_MOST_DESCRIPTORS);
  while (g->descriptor_count > kept) g->api->destroy(g->descriptors[--g->descriptor_count]);
}

/* ---- The operation graph ---- */

int cudnn_type_of(tir_type type) {
  if (tir_type_bits(type) > 16) return GRAPH_DATA_FLOAT;
  return tir_type_code(type) == TIR_BFLOAT ? GRAPH_DATA_BFLOAT16 : GRAPH_DATA_HALF;
}

static bool attends(const struct cudnn_graph *g) { return g->work->op == VENDOR_ATTENTION; }

static bool make_operations(struct cudnn_graph *g) {
  void *list[CUDNN_MOST_OPERATIONS], *handle = g->api->handle;
  int count = attends(g) ? cudnn_attention_operations(g, list) : cudnn_convolution_operations(g, list);
  void *all = count ? cudnn_new(g, GRAPH_DESCRIPTOR_OPERATIONS, "the operation graph") : NULL;
  g->operations = all;
  return all && CUDNN_SET(g, all, OPERATIONS_LIST, DESCRIPTOR, count, list) &&
         CUDNN_SET(g, all, OPERATIONS_HANDLE, HANDLE, 1, &handle) && cudnn_finalize(g, all, "the operation graph");
}

/* ---- Engines and plans ---- */

/* The settings of an engine, by their numbers, behind its name. */
static void name_settings(struct cudnn_graph *g, void *configuration, char *text, size_t size) {
  void *knobs[MOST_KNOBS];
  int before = g->descriptor_count, given = 0;
  int64_t count = 0;
  while (given < MOST_KNOBS && (knobs[given] = cudnn_new(g, GRAPH_DESCRIPTOR_KNOB_CHOICE, "a setting"))) given++;
  if (g->api->get(configuration, GRAPH_CONFIGURATION_KNOBS, GRAPH_OF_DESCRIPTOR, given, &count, knobs)) count = 0;
  for (int i = 0; i < count && i < given; i++) {
    int kind = 0;
    int64_t value = 0, got = 0;
    size_t length = strlen(text);
    if (!g->api->get(knobs[i], GRAPH_KNOB_TYPE, GRAPH_OF_KNOB, 1, &got, &kind) &&
        !g->api->get(knobs[i], GRAPH_KNOB_VALUE, GRAPH_OF_INT64, 1, &got, &value))
      snprintf(text + length, size - length, " %d=%d", kind, (int)value);
  }
  drop_descriptors(g, before);
}

/* The name of a plan: its engine and settings. */
static bool name_plan(struct cudnn_graph *g, void *configuration, void *engine, char *text, size_t size) {
  int64_t index = -1, count = 0;
  if (!went(g, g->api->get(engine, GRAPH_ENGINE_INDEX, GRAPH_OF_INT64, 1, &count, &index), "cudnnBackendGetAttribute",
            "ENGINE_INDEX"))
    return false;
  snprintf(text, size, "engine %d", (int)index);
  name_settings(g, configuration, text, size);
  return true;
}

/* Whether an engine computes in float32 what is float32: it says what it does to numbers. */
static bool keeps_numbers(struct cudnn_graph *g, void *engine) {
  int notes[MOST_NOTES];
  int64_t count = 0;
  if (g->api->get(engine, GRAPH_ENGINE_NOTES, GRAPH_OF_NUMERICAL_NOTE, MOST_NOTES, &count, notes)) return true;
  bool full = cudnn_type_of(g->laid[VENDOR_SOURCE].type) == GRAPH_DATA_FLOAT;
  for (int i = 0; i < count && i < MOST_NOTES; i++)
    if (notes[i] == GRAPH_DOWN_CONVERTS || (full && notes[i] == GRAPH_ON_TENSOR_CORES)) return false;
  return true;
}

static bool is_known(const struct cudnn_graph *g, const char *name) {
  for (int i = 0; i < g->plan_count; i++)
    if (!strcmp(g->plans[i].name, name)) return true;
  return false;
}

/* The plan of an engine with its settings; false: it is none, or there already. */
static bool add_plan(struct cudnn_graph *g, void *configuration) {
  assert(g->plan_count < VENDOR_MOST_WAYS);
  struct cudnn_plan *p = &g->plans[g->plan_count];
  void *engine = cudnn_new(g, GRAPH_DESCRIPTOR_ENGINE, "an engine"), *handle = g->api->handle;
  int64_t count = 0;
  *p = (struct cudnn_plan){.of = g};
  if (!engine ||
      !went(g, g->api->get(configuration, GRAPH_CONFIGURATION_ENGINE, GRAPH_OF_DESCRIPTOR, 1, &count, &engine),
            "cudnnBackendGetAttribute", "CONFIGURATION_ENGINE") ||
      !name_plan(g, configuration, engine, p->name, sizeof p->name) || is_known(g, p->name))
    return false;
  if (!keeps_numbers(g, engine)) return vendor_log("cuDNN: %s is left out: it rounds what goes in", p->name), false;
  p->descriptor = cudnn_new(g, GRAPH_DESCRIPTOR_PLAN, p->name);
  if (!p->descriptor) return false;
  g->api->set(p->descriptor, GRAPH_PLAN_HANDLE, GRAPH_OF_HANDLE, 1, &handle); /* newer libraries need none */
  bool ok = CUDNN_SET(g, p->descriptor, PLAN_CONFIGURATION, DESCRIPTOR, 1, &configuration) &&
            cudnn_finalize(g, p->descriptor, p->name) &&
            went(g, g->api->get(p->descriptor, GRAPH_PLAN_WORKSPACE, GRAPH_OF_INT64, 1, &count, &p->workspace),
                 "cudnnBackendGetAttribute", "PLAN_WORKSPACE");
  if (!ok || p->workspace < 0 || p->workspace > MOST_WORKSPACE) return false;
  g->plan_count++;
  return true;
}

/* Adds plans of what a mode of the heuristics names, best first; of float32 those that round, which are left out, come
 * first. */
static void add_plans(struct cudnn_graph *g, int mode, const char *name, double until) {
  void *h = cudnn_new(g, GRAPH_DESCRIPTOR_HEURISTICS, name), *found[MOST_NAMED];
  int64_t count = 0;
  if (!h || !CUDNN_SET(g, h, HEURISTICS_OPERATIONS, DESCRIPTOR, 1, &g->operations) ||
      !CUDNN_SET(g, h, HEURISTICS_MODE, HEURISTIC, 1, &mode) || !cudnn_finalize(g, h, name))
    return;
  for (int i = 0; i < MOST_NAMED; i++)
    if (!(found[i] = cudnn_new(g, GRAPH_DESCRIPTOR_ENGINE_CONFIGURATION, "an engine's settings"))) return;
  if (!went(g, g->api->get(h, GRAPH_HEURISTICS_RESULTS, GRAPH_OF_DESCRIPTOR, MOST_NAMED, &count, found),
            "cudnnBackendGetAttribute", "HEURISTICS_RESULTS"))
    return;
  vendor_log("cuDNN %s: %s names %d", way_of(g), name, (int)count);
  int most = g->plan_count + MOST_OF_A_MODE;
  for (int i = 0; i < count && i < MOST_NAMED && g->plan_count < most; i++) {
    int before = g->descriptor_count;
    if (g->plan_count == VENDOR_MOST_WAYS || (g->plan_count && vm_seconds() > until)) return;
    if (!add_plan(g, found[i])) drop_descriptors(g, before);
  }
}

/* In the device's context. */
static bool make_plans(void *data, void *const *buffers, void *stream) {
  struct cudnn_graph *g = data;
  (void)buffers, (void)stream;
  double until = vm_seconds() + MOST_SECONDS;
  if (!make_operations(g)) return false;
  add_plans(g, GRAPH_MODE_A, "heuristic mode A", until);
  add_plans(g, GRAPH_INSTANT, "heuristic mode INSTANT", until);
  add_plans(g, GRAPH_FALLBACK, "heuristic mode FALLBACK", until);
  return g->plan_count > 0;
}

/* ---- Running ---- */

/* The tensor in a buffer; NULL: there is none. */
static const struct vendor_tensor *tensor_of(const struct cudnn_graph *g, int buffer) {
  if (buffer == CUDNN_VALUES) return attends(g) ? &g->work->values : NULL;
  return &g->work->tensors[buffer];
}

/* What a plan reads and writes, named. */
static bool pack(struct cudnn_plan *p, void *const *buffers) {
  struct cudnn_graph *g = p->of;
  int64_t ids[CUDNN_BUFFERS + CUDNN_MOST_CONSTANTS], count = 0;
  const void *at[CUDNN_BUFFERS + CUDNN_MOST_CONSTANTS];
  if (p->pack && !memcmp(p->packed, buffers, sizeof p->packed)) return true;
  memcpy(p->packed, buffers, sizeof p->packed);
  for (int i = 0; i < CUDNN_WORKSPACE; i++)
    if (tensor_of(g, i)) ids[count] = cudnn_id(i), at[count++] = buffers[i];
  for (int i = 0; i < g->constant_count; i++) ids[count] = cudnn_constant_id(i), at[count++] = &g->constants[i];
  p->pack = cudnn_new(g, GRAPH_DESCRIPTOR_VARIANT_PACK, "the tensors' addresses");
  return p->pack && CUDNN_SET(g, p->pack, PACK_POINTERS, POINTER, count, at) &&
         CUDNN_SET(g, p->pack, PACK_IDS, INT64, count, ids) &&
         CUDNN_SET(g, p->pack, PACK_WORKSPACE, POINTER, 1, &buffers[CUDNN_WORKSPACE]) &&
         cudnn_finalize(g, p->pack, "the tensors' addresses");
}

static bool execute(void *data, void *const *buffers, void *stream) {
  struct cudnn_plan *p = data;
  struct cudnn_graph *g = p->of;
  return went(g, g->api->set_stream(g->api->handle, stream), "cudnnSetStream", p->name) && pack(p, buffers) &&
         went(g, g->api->execute(g->api->handle, p->descriptor, p->pack), "cudnnBackendExecute", p->name);
}

static bool drop_all(void *data, void *const *buffers, void *stream) {
  (void)buffers, (void)stream;
  drop_descriptors(data, 0);
  return true;
}

static void free_graph(struct cudnn_graph *g) {
  if (!g) return;
  for (int i = 0; i < g->plan_count; i++) jit_routine_free(g->plans[i].routine);
  jit_routine_free(g->routine);
  jit_device_call(g->work->target, drop_all, g, NULL);
  for (int i = 0; i < CUDNN_WORKSPACE; i++) free(g->buffers[i].data);
  free(g);
}

/* What goes in, as it is now. */
static void lay_inputs(struct cudnn_graph *g) {
  for (int i = 0; i < CUDNN_WORKSPACE; i++)
    if (i != VENDOR_RESULT && tensor_of(g, i))
      vendor_copy_laid(tensor_of(g, i), g->laid[i].order, g->laid[i].type, g->buffers[i].data, false);
}

static void allocate(struct cudnn_graph *g) {
  int64_t workspace = 0;
  for (int i = 0; i < CUDNN_WORKSPACE; i++) {
    if (!tensor_of(g, i)) continue;
    size_t bytes = (size_t)vendor_count(tensor_of(g, i)) * vendor_size(g->laid[i].type);
    g->buffers[i] = (struct tir_arg){.data = calloc(1, bytes), .bytes = bytes};
    if (!g->buffers[i].data) abort();
  }
  for (int i = 0; i < g->plan_count; i++)
    if (g->plans[i].workspace > workspace) workspace = g->plans[i].workspace;
  g->buffers[CUDNN_WORKSPACE] = (struct tir_arg){.bytes = (size_t)workspace};
  lay_inputs(g);
}

static bool report(const struct cudnn_graph *g, int way, bool ok, const ms_error *err) {
  if (!ok) vendor_log("cuDNN: %s fails: %s", g->plans[way].name, err->message);
  return ok;
}

static bool warm_plan(void *data, int way) {
  const struct cudnn_graph *g = data;
  ms_error err = {.instruction = -1};
  return report(g, way, jit_routine_again(g->plans[way].routine, &err), &err);
}

static double sample_plan(void *data, int way, uint32_t calls) {
  const struct cudnn_graph *g = data;
  ms_error err = {.instruction = -1};
  double seconds = jit_routine_sample(g->plans[way].routine, calls, &err);
  report(g, way, seconds >= 0, &err);
  return seconds;
}

static bool check_plan(void *data, int way) {
  const struct cudnn_graph *g = data;
  ms_error err = {.instruction = -1};
  return report(g, way, jit_routine_run(g->plans[way].routine, &err), &err);
}

static const char *type_name(tir_type type) {
  return tir_type_bits(type) > 16 ? "float32" : tir_type_code(type) == TIR_BFLOAT ? "bfloat16" : "float16";
}

static void log_plans(const struct cudnn_graph *g, const double *seconds) {
  for (int i = 0; i < g->plan_count && vendor_logs(); i++)
    vendor_log("cuDNN %s, %s result: %.3f us by %s, workspace %lld KiB%s", way_of(g),
               type_name(g->laid[VENDOR_RESULT].type), 1e6 * seconds[i], g->plans[i].name,
               (long long)g->plans[i].workspace >> 10, i == g->best ? ", fastest" : "");
}

/* Seconds of the fastest plan of a graph; below 0: it has none, and why says so. */
static double race_plans(struct cudnn_graph *g) {
  double seconds[VENDOR_MOST_WAYS];
  ms_error err = {.instruction = -1};
  if (!jit_device_call(g->work->target, make_plans, g, &err)) {
    if (!*g->why) snprintf(g->why, sizeof g->why, "%.290s", *err.message ? err.message : "no engine takes it");
    return -1;
  }
  allocate(g);
  g->routine = jit_routine_new(g->work->target, g->buffers, CUDNN_BUFFERS, execute, &g->plans[0], &err);
  for (int i = 0; i < g->plan_count && g->routine; i++)
    g->plans[i].routine = jit_routine_beside(g->routine, execute, &g->plans[i]);
  const struct vendor_race race = {
      .count = g->plan_count, .warm = warm_plan, .sample = sample_plan, .check = check_plan, .data = g};
  g->best = g->routine ? vendor_race(&race, seconds) : -1;
  assert(g->best < g->plan_count);
  if (g->routine) log_plans(g, seconds);
  if (g->best < 0 && !g->routine) snprintf(g->why, sizeof g->why, "%.290s", err.message);
  return g->best < 0 ? -1 : seconds[g->best];
}

static struct cudnn_graph *new_graph(const struct cudnn_graphs *api, const struct vendor_work *work, int layout,
                                     tir_type result) {
  struct cudnn_graph *g = calloc(1, sizeof *g);
  if (!g) abort();
  g->api = api, g->work = work, g->layout = layout;
  for (int i = 0; i <= CUDNN_VALUES && attends(g); i++) cudnn_lay_attention(work, i, &g->laid[i]);
  for (int i = 0; i < VENDOR_TENSORS && !attends(g); i++)
    vendor_lay(work, i, layout, i == VENDOR_RESULT ? result : work->tensors[i].type, &g->laid[i]);
  return g;
}

/* ---- Calls ---- */

struct call {
  struct vendor_work work;
  struct jit_target target;
  struct cudnn_graph *graph;
};

static bool attempt(void *data, ms_error *err) {
  const struct call *c = data;
  struct cudnn_graph *g = c->graph;
  lay_inputs(g);
  *g->why = 0;
  if (!jit_routine_run(g->plans[g->best].routine, err)) return *g->why && ms_fail(err, MS_NOT_LAUNCHED, "%s", g->why);
  vendor_copy_laid(&c->work.tensors[VENDOR_RESULT], g->laid[VENDOR_RESULT].order, g->laid[VENDOR_RESULT].type,
                   g->buffers[VENDOR_RESULT].data, true);
  return true;
}

static double sample(void *data, uint32_t calls) {
  const struct cudnn_graph *g = ((const struct call *)data)->graph;
  return jit_routine_sample(g->plans[g->best].routine, calls, NULL);
}

static void release(void *data) {
  struct call *c = data;
  free_graph(c->graph);
  free(c);
}

/* Keeps the faster of two graphs, and frees the other. */
static void keep_faster(struct call *c, double *best, struct cudnn_graph *g, double seconds, char *why, size_t size) {
  if (seconds < 0 && *g->why) snprintf(why, size, "%s", g->why);
  if (seconds < 0 || (*best >= 0 && seconds >= *best)) {
    free_graph(g);
    return;
  }
  free_graph(c->graph);
  c->graph = g, *best = seconds;
}

bool cudnn_graphs_prepare(const struct cudnn_graphs *graphs, const struct vendor_work *work, struct vendor_call *out,
                          char *why, size_t size) {
  struct call *c = calloc(1, sizeof *c);
  double best = -1;
  int tried = 0;
  if (!c) abort();
  c->work = *work, c->target = *work->target;
  c->work.target = &c->target;
  tir_type results[2] = {work->tensors[VENDOR_RESULT].type, work->tensors[VENDOR_SOURCE].type};
  for (int layout = work->op == VENDOR_ATTENTION ? 0 : LAYOUTS - 1; layout >= 0; layout--)
    for (int r = 0; r < (results[0] == results[1] ? 1 : 2); r++) {
      struct cudnn_graph *g = new_graph(graphs, &c->work, layout, results[r]);
      double seconds = race_plans(g);
      tried += g->plan_count;
      keep_faster(c, &best, g, seconds, why, size);
    }
  if (!c->graph) return release(c), false;
  const struct cudnn_graph *g = c->graph;
  *out =
      (struct vendor_call){.attempt = attempt,
                           .sample = sample,
                           .release = release,
                           .data = c,
                           .rounding = cudnn_rounding(g->laid[VENDOR_RESULT].type, work->tensors[VENDOR_RESULT].type)};
  if (attends(g)) out->rounding = tir_type_epsilon(results[0]); /* shares are rounded, too */
  snprintf(out->routine, sizeof out->routine, "%s, %s result, the best of %d plans: %s", way_of(g),
           type_name(g->laid[VENDOR_RESULT].type), tried, g->plans[g->best].name);
  return true;
}

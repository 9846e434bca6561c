/* cuBLASLt: products of matrices on a device. Of the algorithms that its heuristics name, the fastest is taken. Sums
 * are float32; float32 is multiplied as such, not as TF32.
 * Source: cuBLAS Library, "Using the cuBLASLt API"; rows lie one after another here, and columns there, so that it is
 * given transposes. */
#include "product.h"
#include "race.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LT_TYPE(name, type) typedef type name;
#include "cublaslt.def"
enum {
#define LT_NUMBER(name, number, original) LT_##name = number,
#include "cublaslt.def"
};

struct cublaslt {
#define LT_FUNCTION(field, symbol, parameters) int(*field) parameters;
#include "cublaslt.def"
  void *handle;
};

/* The functions, by name. */
static const struct {
  size_t at;
  const char *name;
} functions[] = {
#define LT_FUNCTION(field, symbol, parameters) {offsetof(struct cublaslt, field), #symbol},
#include "cublaslt.def"
};

enum { NOT_SUPPORTED = 15, WORKSPACE = VENDOR_TENSORS, BUFFERS, ASKED = 16 };
static const uint64_t MOST_WORKSPACE = (uint64_t)64 << 20;

static void *start(void *library, int threads, ms_error *err) {
  struct cublaslt *lt = calloc(1, sizeof *lt);
  (void)threads;
  if (!lt) abort();
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = dlsym(library, functions[i].name);
    if (!function) return ms_fail(err, MS_NOT_LAUNCHED, "it has no %s", functions[i].name), free(lt), NULL;
    memcpy((char *)lt + functions[i].at, &function, sizeof function);
  }
  int status = lt->create(&lt->handle);
  if (!status) return lt;
  ms_fail(err, MS_NOT_LAUNCHED, "cublasLtCreate gives %d", status);
  free(lt);
  return NULL;
}

static void describe(void *library, char *text, size_t size) {
  int (*get)(int which, int *value) = (int (*)(int, int *))dlsym(library, "cublasLtGetProperty");
  int version[3] = {0};
  for (int i = 0; i < 3 && get; i++) get(i, &version[i]);
  snprintf(text, size, "cuBLASLt %d.%d.%d", version[0], version[1], version[2]);
}

/* ---- A product in its words ---- */

/* One of the algorithms, ready to run. */
struct way {
  struct call *call;
  cublasLtMatmulHeuristicResult_t algorithm;
  struct jit_routine *routine;
};

struct call {
  const struct cublaslt *lt;
  struct jit_target target;
  struct vendor_product product;
  struct tir_arg buffers[BUFFERS];
  struct jit_routine *routine; /* whose buffers those of the ways are; NULL: there is none */
  void *what, *layouts[VENDOR_TENSORS], *preference;
  struct way ways[ASKED];
  int count, taken;
  int status;         /* of the last function that failed */
  const char *failed; /* and what that was */
  ms_error why;       /* no algorithm is ready; the message empty: one is, or none is there */
};

/* Whether a function went well; else notes which did not. */
static bool went(struct call *c, int status, const char *what) {
  if (!status) return true;
  c->status = status, c->failed = what;
  vendor_log("%s gives %d", what, status);
  return false;
}

/* A matrix as it lies, column after column; its batch. */
static bool lay(struct call *c, int which, int64_t rows, int64_t columns) {
  const struct cublaslt *lt = c->lt;
  int32_t batch = c->product.batch;
  int64_t offset = rows * columns;
  assert(!c->layouts[which]);
  return went(c, lt->new_layout(&c->layouts[which], c->product.types[which], (uint64_t)rows, (uint64_t)columns, rows),
              "cublasLtMatrixLayoutCreate") &&
         went(c, lt->set_layout(c->layouts[which], LT_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
              "cublasLtMatrixLayoutSetAttribute of BATCH_COUNT") &&
         went(c, lt->set_layout(c->layouts[which], LT_LAYOUT_BATCH_OFFSET, &offset, sizeof offset),
              "cublasLtMatrixLayoutSetAttribute of STRIDED_BATCH_OFFSET");
}

static bool lay_all(struct call *c) {
  const struct vendor_product *p = &c->product;
  int64_t m = p->rows, n = p->columns, k = p->depth;
  bool a = p->transposed[VENDOR_WEIGHTS], b = p->transposed[VENDOR_SOURCE];
  return lay(c, VENDOR_WEIGHTS, a ? k : n, a ? n : k) && lay(c, VENDOR_SOURCE, b ? m : k, b ? k : m) &&
         lay(c, VENDOR_RESULT, n, m);
}

static bool tell(struct call *c) {
  const struct cublaslt *lt = c->lt;
  int32_t op_a = c->product.transposed[VENDOR_WEIGHTS] ? LT_OP_T : LT_OP_N;
  int32_t op_b = c->product.transposed[VENDOR_SOURCE] ? LT_OP_T : LT_OP_N;
  return went(c, lt->new_product(&c->what, LT_COMPUTE_32F, LT_R_32F), "cublasLtMatmulDescCreate") &&
         went(c, lt->set_product(c->what, LT_DESC_TRANSA, &op_a, sizeof op_a),
              "cublasLtMatmulDescSetAttribute of TRANSA") &&
         went(c, lt->set_product(c->what, LT_DESC_TRANSB, &op_b, sizeof op_b),
              "cublasLtMatmulDescSetAttribute of TRANSB") &&
         lay_all(c) && went(c, lt->new_preference(&c->preference), "cublasLtMatmulPreferenceCreate") &&
         went(c, lt->set_preference(c->preference, LT_PREF_WORKSPACE, &MOST_WORKSPACE, sizeof MOST_WORKSPACE),
              "cublasLtMatmulPreferenceSetAttribute of MAX_WORKSPACE_BYTES");
}

/* Asks for algorithms, those that it says run; in the device's context. */
static bool ask(void *data, void *const *buffers, void *stream) {
  struct call *c = data;
  cublasLtMatmulHeuristicResult_t found[ASKED];
  int count = 0;
  (void)buffers, (void)stream;
  assert(!c->count && !c->what && !c->preference); /* asked once */
  if (!tell(c) ||
      !went(c,
            c->lt->choose(c->lt->handle, c->what, c->layouts[VENDOR_WEIGHTS], c->layouts[VENDOR_SOURCE],
                          c->layouts[VENDOR_RESULT], c->layouts[VENDOR_RESULT], c->preference, ASKED, found, &count),
            "cublasLtMatmulAlgoGetHeuristic"))
    return false;
  for (int i = 0; i < count; i++)
    if (!found[i].state && found[i].workspaceSize <= MOST_WORKSPACE)
      c->ways[c->count++] = (struct way){.call = c, .algorithm = found[i]};
  return true;
}

/* ---- Running ---- */

static bool multiply(void *data, void *const *buffers, void *stream) {
  const struct way *way = data;
  struct call *c = way->call;
  static const float one = 1, zero = 0;
  const cublasLtMatmulHeuristicResult_t *a = &way->algorithm;
  assert(a->workspaceSize <= c->buffers[WORKSPACE].bytes);
  int status = c->lt->multiply(c->lt->handle, c->what, &one, buffers[VENDOR_WEIGHTS], c->layouts[VENDOR_WEIGHTS],
                               buffers[VENDOR_SOURCE], c->layouts[VENDOR_SOURCE], &zero, buffers[VENDOR_RESULT],
                               c->layouts[VENDOR_RESULT], buffers[VENDOR_RESULT], c->layouts[VENDOR_RESULT], &a->algo,
                               a->workspaceSize ? buffers[WORKSPACE] : NULL, a->workspaceSize, stream);
  return went(c, status, "cublasLtMatmul");
}

/* What it says of a failure goes before what follows from it. */
static bool explain(const struct call *c, ms_error *err) {
  return c->status && ms_fail(err, MS_NOT_LAUNCHED, "%s gives %d", c->failed, c->status);
}

static bool attempt(void *data, ms_error *err) {
  struct call *c = data;
  c->status = 0;
  if (!c->routine) return ms_fail(err, MS_NOT_LAUNCHED, "%s", c->why.message);
  assert(c->taken < c->count && c->ways[c->taken].routine);
  return jit_routine_run(c->ways[c->taken].routine, err) || explain(c, err);
}

static double sample(void *data, uint32_t calls) {
  const struct call *c = data;
  return c->routine ? jit_routine_sample(c->ways[c->taken].routine, calls, NULL) : -1;
}

static bool free_all(void *data, void *const *buffers, void *stream) {
  const struct call *c = data;
  (void)buffers, (void)stream;
  for (int i = 0; i < VENDOR_TENSORS; i++)
    if (c->layouts[i]) c->lt->free_layout(c->layouts[i]);
  if (c->preference) c->lt->free_preference(c->preference);
  if (c->what) c->lt->free_product(c->what);
  return true;
}

static void free_routines(struct call *c) {
  for (int i = 0; i < c->count; i++) jit_routine_free(c->ways[i].routine), c->ways[i].routine = NULL;
  jit_routine_free(c->routine);
  c->routine = NULL;
}

static void release(void *data) {
  struct call *c = data;
  free_routines(c);
  jit_device_call(&c->target, free_all, c, NULL);
  free(c);
}

/* ---- Choosing ---- */

static int32_t configured(const struct way *w, int attribute) {
  int32_t value = 0;
  size_t written = 0;
  return w->call->lt->configuration(&w->algorithm.algo, attribute, &value, sizeof value, &written) ? -1 : value;
}

static void name(const struct way *w, char *text, size_t size) {
  uint16_t cluster = 0; /* of another size than the others */
  size_t written = 0;
  w->call->lt->configuration(&w->algorithm.algo, LT_CONFIG_CLUSTER, &cluster, sizeof cluster, &written);
  snprintf(text, size, "algorithm %d, tile %d, stages %d, cluster %d, split-K %d, workspace %zu KiB",
           configured(w, LT_CONFIG_ID), configured(w, LT_CONFIG_TILE), configured(w, LT_CONFIG_STAGES), cluster,
           configured(w, LT_CONFIG_SPLITS), w->algorithm.workspaceSize >> 10);
}

static double sample_way(void *data, int way, uint32_t calls) {
  struct call *c = data;
  return jit_routine_sample(c->ways[way].routine, calls, &c->why);
}

static bool warm_way(void *data, int way) {
  struct call *c = data;
  return jit_routine_again(c->ways[way].routine, &c->why);
}

static bool check_way(void *data, int way) {
  struct call *c = data;
  return jit_routine_run(c->ways[way].routine, &c->why);
}

static bool make_routines(struct call *c) {
  size_t most = 0;
  memcpy(c->buffers, c->product.buffers, sizeof c->product.buffers);
  for (int i = 0; i < c->count; i++)
    if (c->ways[i].algorithm.workspaceSize > most) most = c->ways[i].algorithm.workspaceSize;
  c->buffers[WORKSPACE] = (struct tir_arg){.bytes = most};
  c->routine = jit_routine_new(&c->target, c->buffers, BUFFERS, multiply, &c->ways[0], &c->why);
  for (int i = 0; i < c->count && c->routine; i++)
    c->ways[i].routine = jit_routine_beside(c->routine, multiply, &c->ways[i]);
  return c->routine != NULL;
}

/* Takes the fastest algorithm. False: there is none, and why has a message if one failed by more than not being
 * there. */
static bool choose(struct call *c) {
  double seconds[VENDOR_MOST_WAYS];
  char text[200];
  if (!jit_device_call(&c->target, ask, c, &c->why)) {
    if (c->status == NOT_SUPPORTED)
      *c->why.message = 0;
    else
      explain(c, &c->why);
    return false;
  }
  if (!c->count || !make_routines(c)) return false;
  const struct vendor_race race = {
      .count = c->count, .sample = sample_way, .warm = warm_way, .check = check_way, .data = c};
  int best = vendor_race(&race, seconds);
  assert(best < c->count);
  for (int i = 0; i < c->count && vendor_logs(); i++) {
    name(&c->ways[i], text, sizeof text);
    vendor_log("cuBLASLt %d x %d x %d: %.3f us by %s%s", c->product.rows, c->product.columns, c->product.depth,
               1e6 * seconds[i], text, i == best ? ", taken" : "");
  }
  if (best >= 0) {
    *c->why.message = 0;
    c->taken = best;
    return true;
  }
  explain(c, &c->why);
  free_routines(c);
  return false;
}

static bool prepare(void *started, const struct vendor_work *work, struct vendor_call *out) {
  struct vendor_product product;
  if (!vendor_product_of(work, &product)) return false;
  struct call *c = calloc(1, sizeof *c);
  if (!c) abort();
  *c = (struct call){.lt = started, .target = *work->target, .product = product, .why = {.instruction = -1}};
  bool chosen = choose(c);
  if (!chosen && !*c->why.message) return release(c), false;
  *out = (struct vendor_call){.attempt = attempt, .sample = sample, .release = release, .data = c};
  if (chosen) {
    char text[160];
    name(&c->ways[c->taken], text, sizeof text);
    snprintf(out->routine, sizeof out->routine, "the best of %d: %s", c->count, text);
  }
  return true;
}

const struct vendor vendor_cublaslt = {"cuBLASLt", "libcublasLt.so", start, describe, prepare, .short_floats = true};

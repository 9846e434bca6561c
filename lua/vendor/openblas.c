/* OpenBLAS: matrix products, and norms. */
#include "vendor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
typedef float snrm2(int, const float *, int);

struct openblas {
  sgemm *multiply;
  snrm2 *norm;
};

static void *start(void *library, int threads, ms_error *err) {
  void (*set_threads)(int) = (void (*)(int))dlsym(library, "openblas_set_num_threads");
  struct openblas *o = malloc(sizeof *o);
  if (!o) abort();
  *o = (struct openblas){(sgemm *)dlsym(library, "cblas_sgemm"), (snrm2 *)dlsym(library, "cblas_snrm2")};
  if (o->multiply && o->norm && set_threads) return set_threads(threads), o;
  free(o);
  return ms_fail(err, MS_NOT_LAUNCHED, "it lacks functions that are called"), NULL;
}

static void describe(void *library, char *text, size_t size) {
  char *(*config)(void) = (char *(*)(void))dlsym(library, "openblas_get_config");
  char *(*core)(void) = (char *(*)(void))dlsym(library, "openblas_get_corename");
  int (*threads)(void) = (int (*)(void))dlsym(library, "openblas_get_num_threads");
  const char *version = config ? config() : "OpenBLAS";
  int words = (int)strcspn(version, " ");
  if (version[words]) words += 1 + (int)strcspn(version + words + 1, " ");
  snprintf(text, size, "%.*s, core %s, %d threads", words, version, core ? core() : "unknown", threads ? threads() : 0);
}

/* ---- Calls ---- */

struct call {
  const struct openblas *openblas;
  int64_t batch, rows, columns, depth; /* of a norm: batch, and depth */
  const float *source, *weights;
  float *result;
};

static void multiply(void *data) {
  enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
  const struct call *c = data;
  int m = (int)c->rows, n = (int)c->columns, k = (int)c->depth;
  for (int64_t b = 0; b < c->batch; b++)
    c->openblas->multiply(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, c->source + b * m * k, k,
                          c->weights + b * k * n, n, 0, c->result + b * m * n, n);
}

static void norm(void *data) {
  const struct call *c = data;
  for (int64_t b = 0; b < c->batch; b++) c->result[b] = c->openblas->norm((int)c->depth, c->source + b * c->depth, 1);
}

static int64_t product_of(const int64_t *extents, int count) {
  int64_t product = 1;
  assert(count >= 0 && count <= VENDOR_MOST_RANK);
  for (int i = 0; i < count; i++) product *= extents[i];
  return product;
}

static bool is_dense(const struct vendor_tensor *t) {
  int64_t stride = 1;
  assert(t->rank >= 0 && t->rank <= VENDOR_MOST_RANK);
  for (int d = t->rank; d-- > 0; stride *= t->extents[d])
    if (t->extents[d] != 1 && t->strides[d] != stride) return false;
  return true;
}

static bool prepare(void *started, const struct vendor_work *work, struct vendor_call *out) {
  const struct vendor_tensor *x = &work->tensors[VENDOR_SOURCE], *w = &work->tensors[VENDOR_WEIGHTS],
                             *y = &work->tensors[VENDOR_RESULT];
  struct call c = {.openblas = started, .source = x->data, .weights = w->data, .result = y->data};
  if (!is_dense(x) || !is_dense(w) || !is_dense(y)) return false;
  if (work->op == VENDOR_PRODUCT) {
    c.batch = product_of(x->extents, x->rank - 2);
    c.rows = x->extents[x->rank - 2], c.depth = x->extents[x->rank - 1], c.columns = w->extents[w->rank - 1];
  } else if (work->op == VENDOR_NORM) {
    c.batch = product_of(y->extents, y->rank);
    c.depth = product_of(x->extents, x->rank) / c.batch;
    if (product_of(x->extents, 1) != c.batch) return false; /* the first dimension stays, the others are summed */
  } else {
    return false;
  }
  assert(c.batch >= 0 && c.depth >= 0);
  if (c.rows > INT32_MAX || c.columns > INT32_MAX || c.depth > INT32_MAX) return false;
  struct call *kept = malloc(sizeof *kept);
  if (!kept) abort();
  *kept = c;
  *out = (struct vendor_call){work->op == VENDOR_PRODUCT ? multiply : norm, NULL, free, kept};
  /* cppcheck-suppress memleak ; the call releases it */
  return true;
}

const struct vendor vendor_openblas = {"OpenBLAS", "libopenblas.so.0", start, describe, prepare};

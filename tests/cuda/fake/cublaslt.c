/* cuBLASLt without a GPU: products of matrices that lie column after column, on the memory of the tests' driver, whose
 * clock it moves on. Its heuristics name four algorithms: the second is the fastest, the third works in memory of its
 * own, and the fourth does not run. It refuses what cuBLASLt refuses: layouts that do not belong together, types that
 * are no set of its, other arithmetic than float32, an algorithm of another product, memory that is too small.
 *   FAKE_CUBLASLT       `wrong`, an element is; `fails`, no product is begun; `none`, there is no algorithm; `create`,
 *                       it does not start; `layout`, it knows no batches; `crashes`, a product ends the process;
 *                       `spoils`, it leaves the context with a fault; `past`, the third algorithm writes past its
 *                       memory
 *   FAKE_CUBLASLT_TIME  milliseconds of the second algorithm; unset: 8 */
#include "product.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>

void fake_cuda_pass(double milliseconds);
void fake_cuda_on(void *stream);
void fake_cuda_spoil(int result);
double fake_cuda_ease(const void *data);

enum { SUCCESS, NOT_INITIALIZED, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { WORKSPACE = 4096, SLOWER_THIRD = 2 };

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}
static int is_told(const char *word) { return !strcmp(setting("FAKE_CUBLASLT", ""), word); }

int cublasLtCreate(void **handle) {
  static int one;
  *handle = &one;
  return is_told("create") ? NOT_INITIALIZED : SUCCESS;
}

int cublasLtGetProperty(int which, int *value) {
  static const int version[] = {12, 4, 5};
  *value = version[which];
  return SUCCESS;
}

/* ---- Descriptors ---- */

struct layout {
  int type, batch;
  uint64_t rows, columns;
  int64_t ld, offset;
};
struct product {
  int compute, scale, transposed[2];
};

static int make(void **out, const void *value, size_t bytes) {
  *out = malloc(bytes);
  if (!*out) abort();
  memcpy(*out, value, bytes);
  return SUCCESS;
}
static int drop(void *descriptor) {
  free(descriptor);
  return SUCCESS;
}
int cublasLtMatmulDescDestroy(void *product) { return drop(product); }
int cublasLtMatrixLayoutDestroy(void *layout) { return drop(layout); }
int cublasLtMatmulPreferenceDestroy(void *preference) { return drop(preference); }

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  const struct layout l = {type, 1, rows, columns, ld, 0};
  return ld < (int64_t)rows || (type && type != 2 && type != 14) ? INVALID_VALUE : make(out, &l, sizeof l);
}
int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute, const void *value, size_t bytes) {
  struct layout *l = layout;
  if (is_told("layout")) return NOT_SUPPORTED + 1;
  if (attribute == 5 && bytes == sizeof l->batch) return memcpy(&l->batch, value, bytes), SUCCESS;
  if (attribute == 6 && bytes == sizeof l->offset) return memcpy(&l->offset, value, bytes), SUCCESS;
  return INVALID_VALUE;
}

int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
  const struct product p = {compute, scale, {0, 0}};
  return compute != 68 || scale ? NOT_SUPPORTED : make(out, &p, sizeof p);
}
int cublasLtMatmulDescSetAttribute(void *product, int attribute, const void *value, size_t bytes) {
  struct product *p = product;
  if ((attribute != 3 && attribute != 4) || bytes != sizeof(int)) return INVALID_VALUE;
  return memcpy(&p->transposed[attribute - 3], value, bytes), SUCCESS;
}

int cublasLtMatmulPreferenceCreate(void **out) { return make(out, &(uint64_t){0}, sizeof(uint64_t)); }
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value, size_t bytes) {
  if (attribute != 1 || bytes != sizeof(uint64_t)) return INVALID_VALUE;
  return memcpy(preference, value, bytes), SUCCESS;
}

/* ---- Algorithms ---- */

struct algorithm {
  uint64_t id, rows, columns, unused[5];
};
struct result {
  struct algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

/* Rows, columns and depth of the outcome; a status. */
static int extents_of(const struct product *p, const struct layout *a, const struct layout *b, const struct layout *c,
                      int extents[3]) {
  uint64_t k = p->transposed[0] ? a->rows : a->columns;
  extents[0] = (int)c->rows, extents[1] = (int)c->columns, extents[2] = (int)k;
  if ((p->transposed[0] ? a->columns : a->rows) != c->rows || (p->transposed[1] ? b->rows : b->columns) != c->columns ||
      (p->transposed[1] ? b->columns : b->rows) != k || a->batch != c->batch || b->batch != c->batch)
    return INVALID_VALUE;
  return a->type != b->type || (c->type && c->type != a->type) ? NOT_SUPPORTED : SUCCESS;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *product, void *a, void *b, void *c, void *d,
                                   const uint64_t *preference, int most, struct result *results, int *count) {
  int extents[3], status = handle && c == d ? extents_of(product, a, b, c, extents) : INVALID_VALUE;
  *count = 0;
  if (status || is_told("none")) return status ? status : NOT_SUPPORTED;
  for (int i = 0; i < 4 && i < most; i++) {
    size_t workspace = i == 2 ? WORKSPACE : 0;
    if (workspace > *preference) continue;
    results[(*count)++] =
        (struct result){.algorithm = {(uint64_t)i + 20, (uint64_t)extents[0], (uint64_t)extents[1], {0}},
                        .workspace = workspace,
                        .state = i == 3 ? NOT_SUPPORTED : SUCCESS};
  }
  return SUCCESS;
}

int cublasLtMatmulAlgoConfigGetAttribute(const struct algorithm *algorithm, int attribute, void *value, size_t bytes,
                                         size_t *written) {
  if (attribute == 8 ? bytes != 2 : bytes != 4) return INVALID_VALUE;
  int number = attribute == 0 ? (int)algorithm->id : attribute;
  memcpy(value, &number, bytes); /* of little endian */
  *written = bytes;
  return SUCCESS;
}

int cublasLtMatmul(void *handle, void *product, const float *alpha, const void *a, void *a_layout, const void *b,
                   void *b_layout, const float *beta, const void *c, void *c_layout, void *d, void *d_layout,
                   const struct algorithm *algorithm, void *workspace, size_t bytes, void *stream) {
  const struct layout *of_a = a_layout, *of_b = b_layout, *of_d = d_layout;
  const struct product *p = product;
  int extents[3], status = extents_of(p, of_a, of_b, of_d, extents);
  if (!handle || *alpha != 1 || *beta != 0 || c != d || c_layout != d_layout || status) return INVALID_VALUE;
  if (algorithm->rows != of_d->rows || algorithm->columns != of_d->columns) return INVALID_VALUE;
  if (algorithm->id == 22 && (!workspace || bytes < WORKSPACE)) return INVALID_VALUE;
  if (is_told("fails")) return EXECUTION_FAILED;
  if (is_told("crashes")) raise(SIGKILL);
  if (is_told("spoils")) fake_cuda_spoil(700);
  fake_cuda_on(stream);
  if (algorithm->id == 22) memset(workspace, 0x77, WORKSPACE + is_told("past"));
  const struct fake_matrices ours_a = {of_a->type, a, of_a->ld, of_a->offset, p->transposed[0]},
                             ours_b = {of_b->type, b, of_b->ld, of_b->offset, p->transposed[1]},
                             ours_d = {of_d->type, d, of_d->ld, of_d->offset, 0};
  fake_multiply(extents[0], extents[1], extents[2], of_d->batch, &ours_a, &ours_b, &ours_d, is_told("wrong") ? 100 : 0);
  double times = algorithm->id == 21 ? 1 : algorithm->id == 22 ? 1.25 : SLOWER_THIRD;
  fake_cuda_pass(times * atof(setting("FAKE_CUBLASLT_TIME", "8")) * fake_cuda_ease(a));
  return SUCCESS;
}

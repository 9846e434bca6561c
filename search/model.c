/* Cost models: a ranking of candidates by their features. xgboost learns from what was measured; random does not.
 *
 * A candidate is several rows, one a buffer store; its score is the sum of its rows' predictions, and the model is
 * fitted so that the sums match throughput relative to the best. Source: Zheng et al., "Ansor", OSDI 2020, section 5.2.
 */
#include "search.h"

#include <stdlib.h>
#include <string.h>

#include <xgboost/c_api.h>

struct search_model {
  bool learns;
  uint64_t seed, predictions;
  BoosterHandle booster;
  /* everything measured so far */
  float *rows;
  uint32_t *row_counts;
  double *seconds;
  uint32_t row_count, row_room, count, room;
};

enum { ROUNDS = 60, LEAST_TO_LEARN = 16 };

static bool failed(ms_error *err) { return ms_fail(err, MS_MODEL, "xgboost: %s", XGBGetLastError()); }

struct search_model *search_model_new(const char *kind, uint64_t seed, ms_error *err) {
  bool learns = !strcmp(kind, "xgboost");
  if (!learns && strcmp(kind, "random") != 0) {
    ms_fail(err, MS_MODEL, "there is no cost model `%s`; known are xgboost and random", kind);
    return NULL;
  }
  struct search_model *m = calloc(1, sizeof *m);
  if (!m) abort();
  m->learns = learns;
  m->seed = seed;
  return m;
}

void search_model_free(struct search_model *m) {
  if (!m) return;
  if (m->booster) XGBoosterFree(m->booster);
  free(m->rows);
  free(m->row_counts);
  free(m->seconds);
  free(m);
}

/* ---- Learning ---- */

static void keep(struct search_model *m, const float *features, uint32_t rows, double seconds) {
  uint32_t width = search_feature_count();
  if (m->count == m->room) {
    m->room = m->room * 2 + 64;
    m->row_counts = realloc(m->row_counts, m->room * sizeof *m->row_counts);
    m->seconds = realloc(m->seconds, m->room * sizeof *m->seconds);
  }
  if (m->row_count + rows > m->row_room) {
    m->row_room = (m->row_count + rows) * 2;
    m->rows = realloc(m->rows, (size_t)m->row_room * width * sizeof *m->rows);
  }
  if (!m->row_counts || !m->seconds || !m->rows) abort();
  memcpy(m->rows + (size_t)m->row_count * width, features, (size_t)rows * width * sizeof *features);
  m->row_count += rows;
  m->row_counts[m->count] = rows;
  m->seconds[m->count++] = seconds;
}

static bool configure(struct search_model *m, ms_error *err) {
  char seed[24];
  snprintf(seed, sizeof seed, "%u", (unsigned)(m->seed & 0x7fffffff));
  const char *const parameters[][2] = {
      {"objective", "reg:squarederror"}, {"max_depth", "10"}, {"eta", "0.2"},   {"gamma", "0.001"},
      {"min_child_weight", "0"},         {"base_score", "0"}, {"nthread", "1"}, {"verbosity", "0"},
      {"tree_method", "exact"},          {"seed", seed}};
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
    if (XGBoosterSetParam(m->booster, parameters[i][0], parameters[i][1])) return failed(err);
  return true;
}

/* A round's gradients: the square error of a candidate's sum, weighted by its throughput so that the good count most.
 */
static bool boost(struct search_model *m, DMatrixHandle matrix, const float *labels, float *gradients, float *hessians,
                  ms_error *err) {
  bst_ulong length;
  const float *predicted;
  if (XGBoosterPredict(m->booster, matrix, 1, 0, 1, &length, &predicted)) return failed(err);
  uint32_t row = 0;
  for (uint32_t i = 0; i < m->count; i++) {
    float sum = 0;
    for (uint32_t k = 0; k < m->row_counts[i]; k++) sum += predicted[row + k];
    for (uint32_t k = 0; k < m->row_counts[i]; k++, row++) {
      gradients[row] = 2 * labels[i] * (sum - labels[i]);
      hessians[row] = 2 * labels[i];
    }
  }
  return XGBoosterBoostOneIter(m->booster, matrix, gradients, hessians, m->row_count) ? failed(err) : true;
}

static bool fit(struct search_model *m, ms_error *err) {
  DMatrixHandle matrix;
  float *labels = malloc(m->count * sizeof *labels), *gradients = malloc(2 * (size_t)m->row_count * sizeof *gradients);
  if (!labels || !gradients) abort();
  double best = m->seconds[0];
  for (uint32_t i = 1; i < m->count; i++)
    if (m->seconds[i] < best) best = m->seconds[i];
  for (uint32_t i = 0; i < m->count; i++) labels[i] = (float)(best / m->seconds[i]);
  if (m->booster) XGBoosterFree(m->booster);
  m->booster = NULL;
  bool ok = !XGDMatrixCreateFromMat(m->rows, m->row_count, search_feature_count(), -1e30f, &matrix) || failed(err);
  if (ok) {
    ok = (!XGBoosterCreate(&matrix, 1, &m->booster) || failed(err)) && configure(m, err);
    for (int round = 0; ok && round < ROUNDS; round++)
      ok = boost(m, matrix, labels, gradients, gradients + m->row_count, err);
    XGDMatrixFree(matrix);
  }
  free(labels);
  free(gradients);
  return ok;
}

bool search_model_update(struct search_model *m, const float *const *features, const uint32_t *rows,
                         const double *seconds, uint32_t count, ms_error *err) {
  for (uint32_t i = 0; i < count; i++)
    if (rows[i] && seconds[i] > 0) keep(m, features[i], rows[i], seconds[i]);
  return !m->learns || m->count < LEAST_TO_LEARN || fit(m, err);
}

/* ---- Predicting ---- */

static double random_score(struct search_model *m, uint32_t i) {
  struct vm_stream stream = vm_stream_of(m->seed, m->predictions, i, 0);
  return vm_stream_unit(&stream);
}

bool search_model_predict(struct search_model *m, const float *const *features, const uint32_t *rows, uint32_t count,
                          double *scores, ms_error *err) {
  uint32_t total = 0, width = search_feature_count();
  m->predictions++;
  for (uint32_t i = 0; i < count; i++) total += rows[i];
  if (!m->booster || !total) {
    for (uint32_t i = 0; i < count; i++) scores[i] = random_score(m, i);
    return true;
  }
  float *all = malloc((size_t)total * width * sizeof *all);
  if (!all) abort();
  uint32_t row = 0;
  for (uint32_t i = 0; i < count; row += rows[i++])
    memcpy(all + (size_t)row * width, features[i], (size_t)rows[i] * width * sizeof *all);
  DMatrixHandle matrix;
  bst_ulong length;
  const float *predicted;
  bool ok = !XGDMatrixCreateFromMat(all, total, width, -1e30f, &matrix) || failed(err);
  free(all);
  if (!ok) return false;
  ok = !XGBoosterPredict(m->booster, matrix, 1, 0, 0, &length, &predicted) || failed(err);
  row = 0;
  for (uint32_t i = 0; ok && i < count; i++) {
    scores[i] = 0;
    for (uint32_t k = 0; k < rows[i]; k++) scores[i] += (double)predicted[row++];
  }
  XGDMatrixFree(matrix);
  return ok;
}

/* Cost models: a ranking of candidates by their features. xgboost learns from what was measured; random does not.
 *
 * A candidate is several rows, one a buffer store; its score is the sum of its rows' predictions, and trees are fitted
 * so that the sums match throughput relative to the best of the task, or the rank among its samples. xgboost grows them
 * by histograms; they are walked here (forest.c). Growing them again from all training samples is quick enough, and so
 * the model is a function of the samples, however they were split.
 * Source: Zheng et al., "Ansor", OSDI 2020, section 5.2. */
#include "forest.h"
#include "jit/jit.h"
#include "search/search.h"
#include "xgboost.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xxhash.h>

struct sample {
  uint32_t rows, task; /* the task's place in `tasks` */
  float prior;         /* what `prior` says of it */
  double seconds;
};
struct task {
  uint32_t name;
  double best; /* seconds */
};

struct search_model {
  bool learns, by_rank;
  uint64_t seed;
  struct forest prior, learned; /* of the file, or another model; of the training samples, on top of it */
  struct sample *samples;
  float *rows; /* of all samples */
  struct task *tasks;
  uint32_t count, room, row_count, row_room, task_count;
  pthread_t learner;
  bool learning, learned_well;
  ms_error err; /* the learner's */
};

enum { TREES = 40, LEAST_TO_LEARN = 16 };
static const char DEPTH[] = "6", BINS[] = "64", RATE[] = "0.2";

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

/* ---- Training samples ---- */

static struct task *task_of(struct search_model *m, uint32_t name) {
  for (uint32_t i = 0; i < m->task_count; i++)
    if (m->tasks[i].name == name) return &m->tasks[i];
  m->tasks = realloc(m->tasks, (m->task_count + 1) * sizeof *m->tasks);
  if (!m->tasks) abort();
  m->tasks[m->task_count] = (struct task){name, INFINITY};
  return &m->tasks[m->task_count++];
}

static float score_of(const struct forest *f, const float *rows, uint32_t count) {
  float sum = 0;
  for (uint32_t i = 0; i < count; i++) sum += forest_score(f, rows + (size_t)i * search_feature_count());
  return sum;
}

static bool is_sample(const struct search_sample *l) {
  if (!l->rows || !(l->seconds > 0) || !isfinite(l->seconds)) return false;
  for (size_t i = 0; i < (size_t)l->rows * search_feature_count(); i++)
    if (!isfinite(l->features[i])) return false;
  return true;
}

static void keep(struct search_model *m, const struct search_sample *l) {
  uint32_t width = search_feature_count();
  if (m->count == m->room) {
    m->room = m->room * 2 + 64;
    m->samples = realloc(m->samples, m->room * sizeof *m->samples);
  }
  if (m->row_count + l->rows > m->row_room) {
    m->row_room = (m->row_count + l->rows) * 2;
    m->rows = realloc(m->rows, (size_t)m->row_room * width * sizeof *m->rows);
  }
  if (!m->samples || !m->rows) abort();
  assert(m->count < m->room && m->row_count + l->rows <= m->row_room);
  memcpy(m->rows + (size_t)m->row_count * width, l->features, (size_t)l->rows * width * sizeof *m->rows);
  m->row_count += l->rows;
  struct task *task = task_of(m, l->task);
  if (l->seconds < task->best) task->best = l->seconds;
  m->samples[m->count++] =
      (struct sample){l->rows, (uint32_t)(task - m->tasks), score_of(&m->prior, l->features, l->rows), l->seconds};
}

/* ---- Fitting, with xgboost ---- */

struct fit {
  const struct search_model *model;
  const struct xgboost *api;
  float *rows; /* of the features that are not the same everywhere: half are */
  uint32_t *features, width;
  float *gradients, *hessians, *labels; /* labels: of samples */
  DMatrixHandle proxy, matrix;
  BoosterHandle booster;
  bool given; /* the rows, to the matrix that is made */
};

static bool failed(const struct fit *f, ms_error *err) {
  return ms_fail(err, MS_MODEL, "xgboost: %s", f->api->XGBGetLastError());
}

static bool varies(const struct search_model *m, uint32_t feature) {
  uint32_t width = search_feature_count();
  for (uint32_t i = 1; i < m->row_count; i++)
    if (m->rows[(size_t)i * width + feature] != m->rows[feature]) return true;
  return false;
}

static void select_features(struct fit *f) {
  const struct search_model *m = f->model;
  uint32_t all = search_feature_count();
  f->features = malloc(all * sizeof *f->features);
  f->rows = malloc((size_t)m->row_count * all * sizeof *f->rows);
  if (!f->features || !f->rows) abort();
  for (uint32_t i = 0; i < all; i++)
    if (varies(m, i)) f->features[f->width++] = i;
  if (!f->width) f->features[f->width++] = 0;
  for (uint32_t i = 0; i < m->row_count; i++)
    for (uint32_t k = 0; k < f->width; k++)
      f->rows[(size_t)i * f->width + k] = m->rows[(size_t)i * all + f->features[k]];
}

/* The matrix is made from batches that it asks for: all rows are the only one. */
static void rewind_rows(DataIterHandle data) { ((struct fit *)data)->given = false; }
static int next_rows(DataIterHandle data) {
  struct fit *f = data;
  if (f->given) return 0;
  f->given = true;
  char rows[160];
  snprintf(rows, sizeof rows, "{\"data\":[%zu,true],\"shape\":[%u,%u],\"typestr\":\"<f4\",\"version\":3}",
           (size_t)f->rows, f->model->row_count, f->width);
  return !f->api->XGProxyDMatrixSetDataDense(f->proxy, rows);
}

static bool quantize(struct fit *f, ms_error *err) {
  char config[80];
  snprintf(config, sizeof config, "{\"missing\":NaN,\"nthread\":1,\"max_bin\":%s}", BINS);
  if (f->api->XGProxyDMatrixCreate(&f->proxy)) return failed(f, err);
  if (f->api->XGQuantileDMatrixCreateFromCallback(f, f->proxy, NULL, rewind_rows, next_rows, config, &f->matrix))
    return failed(f, err);
  return true;
}

static bool configure(struct fit *f, ms_error *err) {
  const char *const parameters[][2] = {
      {"objective", "reg:squarederror"}, {"max_depth", DEPTH}, {"eta", RATE},    {"gamma", "0.001"},
      {"min_child_weight", "0"},         {"base_score", "0"},  {"nthread", "1"}, {"verbosity", "0"},
      {"tree_method", "hist"},           {"max_bin", BINS}};
  if (f->api->XGBoosterCreate(&f->matrix, 1, &f->booster)) return failed(f, err);
  for (size_t i = 0; i < sizeof parameters / sizeof *parameters; i++)
    if (f->api->XGBoosterSetParam(f->booster, parameters[i][0], parameters[i][1])) return failed(f, err);
  return true;
}

struct place {
  uint32_t sample, task;
  double seconds;
};
static int compare_places(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  if (x->task != y->task) return x->task < y->task ? -1 : 1;
  return (x->seconds > y->seconds) - (x->seconds < y->seconds);
}

/* The share of the task's samples that are no faster than each. */
static void rank(const struct search_model *m, float *labels) {
  struct place *places = malloc(m->count * sizeof *places);
  if (!places) abort();
  for (uint32_t i = 0; i < m->count; i++) places[i] = (struct place){i, m->samples[i].task, m->samples[i].seconds};
  qsort(places, m->count, sizeof *places, compare_places);
  for (uint32_t begin = 0, end; begin < m->count; begin = end) {
    for (end = begin; end < m->count && places[end].task == places[begin].task;) end++;
    uint32_t equal = begin; /* the first of those of one time */
    for (uint32_t i = begin; i < end; i++) {
      if (places[i].seconds > places[equal].seconds) equal = i;
      assert(equal >= begin && equal <= i);
      labels[places[i].sample] = (float)(end - equal) / (float)(end - begin);
    }
  }
  free(places);
}

static void set_labels(const struct search_model *m, float *labels) {
  if (m->by_rank)
    rank(m, labels);
  else
    for (uint32_t i = 0; i < m->count; i++)
      labels[i] = (float)(m->tasks[m->samples[i].task].best / m->samples[i].seconds);
}

/* One more tree: gradients of the square error of each candidate's sum. */
static bool grow(struct fit *f, ms_error *err) {
  const struct search_model *m = f->model;
  bst_ulong length;
  const float *predicted;
  if (f->api->XGBoosterPredict(f->booster, f->matrix, 1, 0, 1, &length, &predicted)) return failed(f, err);
  assert(length == m->row_count);
  uint32_t row = 0;
  for (uint32_t i = 0; i < m->count; i++) {
    const struct sample *l = &m->samples[i];
    float sum = l->prior, label = f->labels[i];
    for (uint32_t k = 0; k < l->rows; k++) sum += predicted[row + k];
    for (uint32_t k = 0; k < l->rows; k++, row++) f->gradients[row] = 2 * (sum - label), f->hessians[row] = 2;
  }
  assert(row == m->row_count);
  return !f->api->XGBoosterBoostOneIter(f->booster, f->matrix, f->gradients, f->hessians, m->row_count) ||
         failed(f, err);
}

/* Takes the trees out of what the booster says of itself. */
static bool take_trees(struct fit *f, struct forest *out, ms_error *err) {
  bst_ulong length;
  const char *text;
  if (f->api->XGBoosterSaveModelToBuffer(f->booster, "{\"format\":\"json\"}", &length, &text)) return failed(f, err);
  json_t *all = json_loadb(text, length, 0, NULL);
  json_t *model = json_object_get(json_object_get(json_object_get(all, "learner"), "gradient_booster"), "model");
  forest_clear(out);
  bool ok = forest_read(out, json_object_get(model, "trees"), f->width, err);
  for (uint32_t i = 0; i < out->node_count; i++) out->nodes[i].feature = f->features[out->nodes[i].feature];
  json_decref(all);
  return ok;
}

static bool fit(struct search_model *m, ms_error *err) {
  struct fit f = {.model = m, .api = xgboost_find(err)};
  if (!f.api) return false;
  assert(m->count && m->row_count >= m->count);
  f.gradients = malloc(m->row_count * sizeof *f.gradients);
  f.hessians = malloc(m->row_count * sizeof *f.hessians);
  f.labels = malloc(m->count * sizeof *f.labels);
  if (!f.gradients || !f.hessians || !f.labels) abort();
  set_labels(m, f.labels);
  select_features(&f);
  bool ok = quantize(&f, err) && configure(&f, err);
  for (int i = 0; ok && i < TREES; i++) ok = grow(&f, err);
  ok = ok && take_trees(&f, &m->learned, err);
  if (f.booster) f.api->XGBoosterFree(f.booster);
  if (f.matrix) f.api->XGDMatrixFree(f.matrix);
  if (f.proxy) f.api->XGDMatrixFree(f.proxy);
  free(f.rows), free(f.features);
  free(f.gradients), free(f.hessians), free(f.labels);
  return ok;
}

/* ---- Learning, on a thread ---- */

static void *learn(void *data) {
  struct search_model *m = data;
  m->learned_well = fit(m, &m->err);
  return NULL;
}

/* Waits for what was begun: until then nothing else touches the model. */
static bool finish_learning(struct search_model *m, ms_error *err) {
  if (!m->learning) return true;
  pthread_join(m->learner, NULL);
  m->learning = false;
  if (!m->learned_well) *err = m->err;
  return m->learned_well;
}

bool search_model_update(struct search_model *m, const struct search_sample *samples, uint32_t count, ms_error *err) {
  assert(samples || !count);
  if (!finish_learning(m, err)) return false;
  uint32_t before = m->count;
  for (uint32_t i = 0; i < count; i++)
    if (is_sample(&samples[i])) keep(m, &samples[i]);
  if (!m->learns || m->count == before || m->count < LEAST_TO_LEARN) return true;
  m->err = (ms_error){.instruction = -1};
  m->learning = !pthread_create(&m->learner, NULL, learn, m);
  return m->learning || fit(m, err);
}

bool search_model_has_learned(const struct search_model *m) {
  return m->prior.tree_count || (m->learns && m->count >= LEAST_TO_LEARN);
}

void search_model_free(struct search_model *m) {
  if (!m) return;
  ms_error unheard = {.instruction = -1};
  finish_learning(m, &unheard);
  forest_clear(&m->prior);
  forest_clear(&m->learned);
  free(m->samples);
  free(m->rows);
  free(m->tasks);
  free(m);
}

/* ---- Predicting ---- */

/* Of a candidate's features and the seed: whatever was asked before, and whichever run asks. */
static double random_score(const struct search_model *m, const float *features, uint32_t rows) {
  size_t size = rows * (size_t)search_feature_count() * sizeof *features;
  struct vm_stream stream = vm_stream_of(m->seed, size ? XXH3_64bits(features, size) : 0, 0, 0);
  return vm_stream_unit(&stream);
}

bool search_model_predict(struct search_model *m, const float *const *features, const uint32_t *rows, uint32_t count,
                          double *scores, ms_error *err) {
  assert((features && rows && scores) || !count);
  if (!finish_learning(m, err)) return false;
  bool knows = m->prior.tree_count || m->learned.tree_count;
  for (uint32_t i = 0; i < count; i++) {
    if (knows)
      scores[i] = (double)(score_of(&m->prior, features[i], rows[i]) + score_of(&m->learned, features[i], rows[i]));
    else
      scores[i] = random_score(m, features[i], rows[i]);
  }
  return true;
}

/* ---- What another has learned ---- */

struct search_model *search_model_from(struct search_model *model, uint64_t seed, ms_error *err) {
  if (!finish_learning(model, err)) return NULL;
  struct search_model *m = search_model_new("xgboost", seed, err);
  if (!m) return NULL;
  forest_append(&m->prior, &model->prior);
  forest_append(&m->prior, &model->learned);
  return m;
}

void search_model_rank(struct search_model *m) {
  assert(!m->count);
  m->by_rank = true;
}

/* ---- Files ---- */

/* Of the names of all features: a model is worth nothing on others. */
static void hash_features(char out[20]) {
  XXH64_hash_t hash = 0;
  for (uint32_t i = 0; i < search_feature_count(); i++) {
    const char *name = search_feature_name(i);
    hash = XXH3_64bits_withSeed(name, strlen(name), hash);
  }
  snprintf(out, 20, "%016llx", (unsigned long long)hash);
}

bool search_model_save(struct search_model *m, const char *path, ms_error *err) {
  if (!finish_learning(m, err)) return false;
  char features[20], temporary[4200];
  hash_features(features);
  if (snprintf(temporary, sizeof temporary, "%s.%ld.part", path, (long)getpid()) >= (int)sizeof temporary)
    return ms_fail(err, MS_IO, "%s: the path is too long", path);
  json_t *trees = forest_write(&m->prior), *learned = forest_write(&m->learned);
  json_array_extend(trees, learned);
  json_decref(learned);
  json_t *all =
      json_pack("{s:i, s:s, s:o}", "msched_model", SEARCH_MODEL_VERSION, "features", features, "trees", trees);
  int kept = jit_temporary(temporary);
  bool ok = !json_dump_file(all, temporary, JSON_COMPACT) && !rename(temporary, path);
  int reason = errno;
  json_decref(all);
  if (!ok) unlink(temporary);
  jit_temporary_end(kept);
  return ok || ms_fail(err, MS_IO, "%s: %s", path, strerror(reason));
}

static bool read_trees(struct forest *out, json_t *all, const char *path, ms_error *err) {
  char features[20];
  hash_features(features);
  json_t *version = json_object_get(all, "msched_model"), *of = json_object_get(all, "features");
  if (!json_is_integer(version)) return ms_fail(err, MS_MODEL, "%s: it is no cost model of msched", path);
  if (json_integer_value(version) != SEARCH_MODEL_VERSION)
    return ms_fail(err, MS_MODEL, "%s: a cost model of version %lld; this msched reads version %d", path,
                   (long long)json_integer_value(version), SEARCH_MODEL_VERSION);
  if (!json_is_string(of) || strcmp(json_string_value(of), features) != 0)
    return ms_fail(err, MS_MODEL, "%s: a cost model of other features than this msched computes", path);
  ms_error why = {.instruction = -1};
  if (forest_read(out, json_object_get(all, "trees"), search_feature_count(), &why)) return true;
  return ms_fail(err, MS_MODEL, "%s: %s", path, why.message);
}

struct search_model *search_model_load(const char *path, uint64_t seed, ms_error *err) {
  json_error_t error;
  FILE *file = fopen(path, "rb");
  if (!file) return ms_fail(err, MS_IO, "%s: %s", path, strerror(errno)), NULL;
  json_t *all = json_loadf(file, 0, &error);
  fclose(file);
  if (!all)
    return ms_fail(err, MS_MODEL, "%s:%d: %s; it is no cost model of msched", path, error.line, error.text), NULL;
  struct search_model *m = search_model_new("xgboost", seed, err);
  if (m && !read_trees(&m->prior, all, path, err)) {
    search_model_free(m);
    m = NULL;
  }
  json_decref(all);
  return m;
}

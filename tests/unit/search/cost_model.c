/* Cost models: what they learn, what they do not depend on, their files. */
#include "search/model/forest.h"
#include "search/search.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <xgboost/c_api.h>

/* ---- Synthetic candidates: two rows, which differ in feature 0; the time depends on five features of thirty ---- */

enum { MOST = 600, ROWS = 2 };

struct world {
  float *features;
  const float *at[MOST];
  uint32_t rows[MOST], count;
  double seconds[MOST];
};

static struct world make_world(uint64_t seed, uint32_t count, double scale) {
  struct world w = {.count = count};
  uint32_t width = search_feature_count();
  w.features = calloc((size_t)count * ROWS * width, sizeof *w.features);
  assert_non_null(w.features);
  for (uint32_t i = 0; i < count; i++) {
    struct vm_stream stream = vm_stream_of(seed, i, 0, 0);
    float *row = w.features + (size_t)i * ROWS * width;
    for (uint32_t k = 1; k <= 30; k++) row[k * 5] = (float)(10 * vm_stream_unit(&stream));
    row[width] = 1, row[width + 10] = (float)(10 * vm_stream_unit(&stream));
    double cost = 1 + fabs((double)row[5] - 5) + 0.3 * (double)row[70] + (row[20] > 6 ? 4 : 0) +
                  0.1 * (double)row[150] + 0.3 * (double)row[width + 10];
    w.at[i] = row, w.rows[i] = ROWS, w.seconds[i] = scale * cost;
  }
  return w;
}

static void fill_samples(struct search_sample *out, const struct world *w, uint32_t first, uint32_t end,
                         uint32_t task) {
  for (uint32_t i = first; i < end; i++)
    out[i - first] = (struct search_sample){w->at[i], w->rows[i], task, w->seconds[i]};
}

static struct search_model *make_model(const char *kind) {
  ms_error err = {.instruction = -1};
  struct search_model *m = search_model_new(kind, 7, &err);
  if (!m) fail_msg("%s", err.message);
  return m;
}

static void teach(struct search_model *m, const struct search_sample *samples, uint32_t count) {
  ms_error err = {.instruction = -1};
  if (!search_model_update(m, samples, count, &err)) fail_msg("%s", err.message);
}

static void teach_world(struct search_model *m, const struct world *w, uint32_t first, uint32_t end, uint32_t task) {
  struct search_sample samples[MOST];
  fill_samples(samples, w, first, end, task);
  teach(m, samples, end - first);
}

static void predict(struct search_model *m, const struct world *w, uint32_t first, uint32_t end, double *scores) {
  ms_error err = {.instruction = -1};
  if (!search_model_predict(m, w->at + first, w->rows + first, end - first, scores, &err)) fail_msg("%s", err.message);
}

/* Of all pairs, the share that the scores order as the times do. */
static double agreement(const double *scores, const double *seconds, uint32_t count) {
  uint32_t right = 0, all = 0;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < i; k++) all++, right += (scores[i] > scores[k]) == (seconds[i] < seconds[k]);
  return (double)right / all;
}

static double agreement_on(struct search_model *m, const struct world *w, uint32_t first, uint32_t end) {
  double scores[MOST];
  predict(m, w, first, end, scores);
  return agreement(scores, w->seconds + first, end - first);
}

static void assert_same_scores(struct search_model *a, struct search_model *b, const struct world *w) {
  double x[MOST], y[MOST];
  predict(a, w, 0, w->count, x);
  predict(b, w, 0, w->count, y);
  assert_memory_equal(x, y, w->count * sizeof *x);
}

/* ---- What is learned ---- */

static void ranks_candidates_that_it_has_not_seen(void **state) {
  (void)state;
  struct world w = make_world(1, 600, 1e-3);
  struct search_model *m = make_model("xgboost"), *chance = make_model("random");
  teach_world(m, &w, 0, 500, 0);
  teach_world(chance, &w, 0, 500, 0);
  double learned = agreement_on(m, &w, 500, 600), drawn = agreement_on(chance, &w, 500, 600);
  if (learned < 0.75) fail_msg("only %g of the pairs are in order", learned);
  assert_true(drawn > 0.4 && drawn < 0.6);
  search_model_free(m), search_model_free(chance);
  free(w.features);
}

/* Times of different functions are not compared: those of the slow one are in order too. */
static void ranks_within_each_task(void **state) {
  (void)state;
  struct world fast = make_world(2, 400, 1e-6), slow = make_world(3, 400, 1);
  struct search_model *m = make_model("xgboost");
  teach_world(m, &fast, 0, 300, 5);
  teach_world(m, &slow, 0, 300, 9);
  assert_true(agreement_on(m, &fast, 300, 400) > 0.7);
  assert_true(agreement_on(m, &slow, 300, 400) > 0.7);
  search_model_free(m);
  free(fast.features), free(slow.features);
}

/* It is trained on all samples at once: how they were split does not show, to the last bit, nor queries in between. */
static void parts_make_no_difference(void **state) {
  (void)state;
  struct world w = make_world(4, 200, 1e-3);
  struct search_model *whole = make_model("xgboost"), *parts = make_model("xgboost");
  teach_world(whole, &w, 0, 150, 0);
  for (uint32_t i = 0; i < 150; i += 15) {
    double scores[MOST];
    teach_world(parts, &w, i, i + 15, 0);
    if (i % 2) predict(parts, &w, 0, 200, scores);
  }
  assert_same_scores(whole, parts, &w);
  search_model_free(whole), search_model_free(parts);
  free(w.features);
}

static void what_is_no_sample_changes_nothing(void **state) {
  (void)state;
  struct world w = make_world(5, 100, 1e-3);
  struct search_model *clean = make_model("xgboost"), *other = make_model("xgboost");
  teach_world(clean, &w, 0, 50, 0);
  teach(other, NULL, 0);
  const struct search_sample none[] = {{w.at[60], 0, 0, 1},           {NULL, 0, 0, 1},
                                       {w.at[60], ROWS, 0, 0},        {w.at[60], ROWS, 0, -1},
                                       {w.at[60], ROWS, 0, NAN},      {w.at[60], ROWS, 0, INFINITY},
                                       {w.at[60], ROWS, 3, -INFINITY}};
  teach(other, none, sizeof none / sizeof *none);
  teach_world(other, &w, 0, 50, 0);
  teach(other, none, sizeof none / sizeof *none);
  teach(other, NULL, 0);
  assert_same_scores(clean, other, &w);
  search_model_free(clean), search_model_free(other);
  free(w.features);
}

/* Features that are no numbers teach nothing, and are given a score. */
static void features_without_numbers(void **state) {
  (void)state;
  struct world w = make_world(6, 100, 1e-3);
  struct search_model *clean = make_model("xgboost"), *other = make_model("xgboost");
  float *last = w.features + (size_t)99 * ROWS * search_feature_count();
  last[5] = NAN, last[20] = INFINITY;
  teach_world(clean, &w, 0, 99, 0);
  teach_world(other, &w, 0, 100, 0);
  assert_same_scores(clean, other, &w);
  double score;
  predict(other, &w, 99, 100, &score);
  assert_true(isfinite(score));
  search_model_free(clean), search_model_free(other);
  free(w.features);
}

/* Before it has learned anything its scores are drawn from the seed and the candidate: a run that goes on after a stop
 * asks for the first time what another has asked before. */
static void knows_nothing_at_first(void **state) {
  (void)state;
  struct world w = make_world(8, 100, 1e-3);
  struct search_model *a = make_model("xgboost"), *b = make_model("xgboost");
  double first[MOST], later[MOST];
  teach_world(a, &w, 0, 3, 0);
  assert_same_scores(a, b, &w);
  predict(a, &w, 0, 100, first);
  predict(b, &w, 50, 100, later);
  assert_memory_equal(first + 50, later, 50 * sizeof *first);
  for (uint32_t i = 1; i < 100; i++) assert_true(first[i] != first[i - 1]);
  search_model_free(a), search_model_free(b);
  free(w.features);
}

static void refuses_other_kinds(void **state) {
  (void)state;
  ms_error err = {.instruction = -1};
  assert_null(search_model_new("oracle", 1, &err));
  assert_true(err.code == MS_MODEL && strstr(err.message, "oracle"));
}

/* ---- Forests ---- */

/* A walk reaches xgboost's own numbers, to the last bit. */
static void walks_as_xgboost_does(void **state) {
  (void)state;
  uint32_t width = search_feature_count(), rows = 300 * ROWS;
  struct world w = make_world(9, 300, 1);
  DMatrixHandle matrix;
  BoosterHandle booster;
  assert_int_equal(XGDMatrixCreateFromMat(w.features, rows, width, NAN, &matrix), 0);
  assert_int_equal(XGBoosterCreate(&matrix, 1, &booster), 0);
  XGBoosterSetParam(booster, "base_score", "0"), XGBoosterSetParam(booster, "tree_method", "hist");
  XGBoosterSetParam(booster, "nthread", "1");
  float *gradients = malloc(rows * sizeof *gradients), *hessians = malloc(rows * sizeof *hessians);
  for (int round = 0; round < 10; round++) {
    for (uint32_t i = 0; i < rows; i++)
      gradients[i] = sinf((float)(i * 7 + (uint32_t)round)) - w.features[(size_t)i * width + 5], hessians[i] = 1;
    assert_int_equal(XGBoosterBoostOneIter(booster, matrix, gradients, hessians, rows), 0);
  }
  bst_ulong length;
  const char *text;
  const float *theirs;
  assert_int_equal(XGBoosterSaveModelToBuffer(booster, "{\"format\":\"json\"}", &length, &text), 0);
  json_t *all = json_loadb(text, length, 0, NULL), *trees = NULL;
  assert_int_equal(json_unpack(all, "{s:{s:{s:{s:o}}}}", "learner", "gradient_booster", "model", "trees", &trees), 0);
  struct forest f = {0};
  ms_error err = {.instruction = -1};
  if (!forest_read(&f, trees, width, &err)) fail_msg("%s", err.message);
  assert_int_equal(f.tree_count, 10);
  assert_int_equal(XGBoosterPredict(booster, matrix, 1, 0, 0, &length, &theirs), 0);
  assert_int_equal(length, rows);
  for (uint32_t i = 0; i < rows; i++) {
    float ours = forest_score(&f, w.features + (size_t)i * width);
    assert_memory_equal(&ours, &theirs[i], sizeof ours);
  }
  forest_clear(&f);
  json_decref(all);
  XGBoosterFree(booster), XGDMatrixFree(matrix);
  free(gradients), free(hessians), free(w.features);
}

static void refuses_what_is_no_tree(void **state) {
  (void)state;
  static const char *const bad[] = {
      "{}",
      "[7]",
      "[{}]",
#define TREE(left, right, features, values)                                                                            \
  "[{\"left_children\":" left ",\"right_children\":" right ",\"split_indices\":" features                              \
  ",\"split_conditions\":" values "}]"
      TREE("[]", "[]", "[]", "[]"),
      TREE("[-1]", "[-1]", "[0]", "[]"),
      TREE("[-1]", "[-1]", "[0]", "[\"1\"]"),
      TREE("[-1]", "[-1]", "[0]", "[1e39]"),
      TREE("[0.5]", "[-1]", "[0]", "[1]"),
      TREE("[0,-1,-1]", "[2,-1,-1]", "[0,0,0]", "[1,2,3]"),         /* a ring */
      TREE("[1,-1,-1]", "[3,-1,-1]", "[0,0,0]", "[1,2,3]"),         /* past the end */
      TREE("[1,-1,-1]", "[-1,-1,-1]", "[0,0,0]", "[1,2,3]"),        /* one child */
      TREE("[1,-1,-1]", "[1,-1,-1]", "[0,0,0]", "[1,2,3]"),         /* the same twice */
      TREE("[1,2,-1,-1]", "[2,3,-1,-1]", "[0,0,0,0]", "[1,2,3,4]"), /* shared */
      TREE("[1,-1,-1]", "[2,-1,-1]", "[165,0,0]", "[1,2,3]"),       /* of another feature */
      TREE("[1,-1,-1]", "[2,-1,-1]", "[-1,0,0]", "[1,2,3]"),
      TREE("[1,-1,-1]", "[2,-1]", "[0,0,0]", "[1,2,3]"),
  };
  struct forest f = {0};
  ms_error err = {.instruction = -1};
  json_t *good = json_loads(TREE("[1,-1,-1]", "[2,-1,-1]", "[0,0,0]", "[0.5,10,20]"), 0, NULL);
  assert_true(forest_read(&f, good, 165, &err));
  json_decref(good);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    json_t *trees = json_loads(bad[i], 0, NULL);
    assert_non_null(trees);
    if (forest_read(&f, trees, 165, &err)) fail_msg("taken: %s", bad[i]);
    assert_true(err.code == MS_MODEL && f.tree_count == 1 && f.node_count == 3);
    json_decref(trees);
  }
  assert_true(forest_score(&f, (float[165]){0.25F}) == 10 && forest_score(&f, (float[165]){0.5F}) == 20);
  forest_clear(&f);
}

/* ---- Files ---- */

static char path[64];
static int name_file(void **state) {
  (void)state;
  snprintf(path, sizeof path, "/tmp/msched_model_%ld.json", (long)getpid());
  return 0;
}
static int remove_file(void **state) {
  (void)state;
  unlink(path);
  return 0;
}

static struct search_model *load(void) {
  ms_error err = {.instruction = -1};
  struct search_model *m = search_model_load(path, 7, &err);
  if (!m) fail_msg("%s", err.message);
  return m;
}

static void save(struct search_model *m) {
  ms_error err = {.instruction = -1};
  if (!search_model_save(m, path, &err)) fail_msg("%s", err.message);
}

/* What is read says what was written, to the last bit, and goes on from there. */
static void a_file_goes_on(void **state) {
  (void)state;
  struct world w = make_world(10, 300, 1e-3), changed = make_world(10, 300, 1e-3);
  for (uint32_t i = 0; i < 300; i++) changed.seconds[i] *= 1 + 0.4 * (double)changed.at[i][40];
  struct search_model *m = make_model("xgboost");
  teach_world(m, &w, 0, 200, 0);
  save(m);
  struct search_model *again = load();
  assert_same_scores(m, again, &w);
  double before = agreement_on(again, &changed, 200, 300);
  teach_world(again, &changed, 0, 200, 0);
  double after = agreement_on(again, &changed, 200, 300);
  if (!(before > 0.55 && after > before + 0.05))
    fail_msg("%g of the pairs in order, and %g with more training samples", before, after);
  save(again);
  struct search_model *third = load();
  double x[MOST], y[MOST];
  predict(again, &w, 0, 300, x), predict(third, &w, 0, 300, y);
  for (uint32_t i = 0; i < 300; i++) assert_true(fabs(x[i] - y[i]) < 1e-5);
  search_model_free(m), search_model_free(again), search_model_free(third);
  free(w.features), free(changed.features);
}

static void write_text(const char *text, size_t length) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(text, 1, length, file), length);
  fclose(file);
}

static void assert_refused(const char *why) {
  ms_error err = {.instruction = -1};
  if (search_model_load(path, 7, &err)) fail_msg("taken, though %s", why);
  if (err.code != MS_MODEL || !strstr(err.message, path) || !strstr(err.message, why)) fail_msg("%s", err.message);
}

static void refuses_other_files(void **state) {
  (void)state;
  struct world w = make_world(11, 40, 1e-3);
  struct search_model *m = make_model("xgboost");
  teach_world(m, &w, 0, 40, 0);
  save(m);
  json_t *good = json_load_file(path, 0, NULL);
  json_t *other = json_deep_copy(good);
  json_object_set_new(other, "msched_model", json_integer(SEARCH_MODEL_VERSION + 1));
  json_dump_file(other, path, 0);
  assert_refused("of version 2; this msched reads version 1");
  json_decref(other);
  other = json_deep_copy(good);
  json_object_set_new(other, "features", json_string("0123456789abcdef"));
  json_dump_file(other, path, 0);
  assert_refused("of other features");
  json_decref(other);
  other = json_deep_copy(good);
  json_array_insert_new(json_object_get(other, "trees"), 2, json_integer(1));
  json_dump_file(other, path, 0);
  assert_refused("item 3 of a cost model's trees is no tree");
  json_decref(other);
  write_text("{}", 2);
  assert_refused("no cost model");
  char *text = json_dumps(good, JSON_COMPACT);
  for (size_t length = 0; length < strlen(text); length += 1 + length / 50) {
    write_text(text, length);
    assert_refused("no cost model");
  }
  free(text);
  json_decref(good);
  unlink(path);
  ms_error err = {.instruction = -1};
  assert_null(search_model_load(path, 7, &err));
  assert_int_equal(err.code, MS_IO);
  assert_false(search_model_save(m, "/nowhere/at/all", &err));
  assert_int_equal(err.code, MS_IO);
  search_model_free(m);
  free(w.features);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_candidates_that_it_has_not_seen),
      cmocka_unit_test(ranks_within_each_task),
      cmocka_unit_test(parts_make_no_difference),
      cmocka_unit_test(what_is_no_sample_changes_nothing),
      cmocka_unit_test(features_without_numbers),
      cmocka_unit_test(knows_nothing_at_first),
      cmocka_unit_test(refuses_other_kinds),
      cmocka_unit_test(walks_as_xgboost_does),
      cmocka_unit_test(refuses_what_is_no_tree),
      cmocka_unit_test_setup_teardown(a_file_goes_on, name_file, remove_file),
      cmocka_unit_test_setup_teardown(refuses_other_files, name_file, remove_file),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

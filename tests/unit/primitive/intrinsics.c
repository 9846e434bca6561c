/* The shipped tensor intrinsics: each can be read, both of its functions are sound, and they compute the same. */
#include "vm/run.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_shipped(void **state) {
  (void)state;
  char name[64];
  uint32_t count = 0;
  for (; vm_shipped_intrinsic(count, name, sizeof name); count++) {
    struct vm_intrinsics *table = NULL;
    const struct tir *parts[2];
    ms_error err = {0};
    vm_add_shipped_intrinsic(&table, name);
    assert_true(vm_find_intrinsic(table, name, &parts[0], &parts[1]));
    for (int i = 0; i < 2; i++)
      if (!tir_verify(parts[i], &err)) fail_msg("%s: %s", name, err.message);
    vm_intrinsics_free(table);
  }
  assert_int_equal(count, 256);
}

/* A fragment of wmma says not how it was loaded: products of transposed ones are judged where they were loaded, by the
 * cases tensorize_wmma_trans_*. */
static bool needs_loads(const char *name) { return strstr(name, "wmma_sync") && strstr(name, "_trans"); }

static void test_equal(void **state) {
  (void)state;
  char name[64];
  uint32_t left = 0;
  for (uint32_t i = 0; vm_shipped_intrinsic(i, name, sizeof name); i++) {
    struct vm_intrinsics *table = NULL;
    const struct tir *parts[2];
    vm_add_shipped_intrinsic(&table, name);
    assert_true(vm_find_intrinsic(table, name, &parts[0], &parts[1]));
    for (uint64_t seed = 1; seed <= 3 && !needs_loads(name); seed++) {
      ms_error err = {0};
      if (!tir_equal_results(parts[0], 1, NULL, parts[1], 1, NULL, seed, &err)) fail_msg("%s: %s", name, err.message);
    }
    left += needs_loads(name);
    vm_intrinsics_free(table);
  }
  assert_int_equal(left, 3);
}

struct shipped {
  char name[64];
  struct vm_intrinsics *table;
  const struct tir *description, *implementation;
};

/* Runs both on the same memory; parameters that were lowered have one dimension. */
static bool computes_same(const struct tir *before, const struct tir *lowered, ms_error *err) {
  struct tir_arguments expected, actual;
  struct tir_run_report report = {0};
  bool same = tir_make_arguments(before, 1, 1, &expected, err);
  assert_true(same);
  tir_copy_arguments(before, 1, &expected, &actual);
  same = tir_run(before, 1, expected.args, expected.count, &(struct tir_run_options){.report = &report}, err) &&
         tir_run(lowered, 1, actual.args, actual.count, NULL, err) &&
         tir_same_arguments(before, 1, &expected, &actual, tir_tolerance(before, 1, report.epsilon), err);
  tir_arguments_free(&expected);
  tir_arguments_free(&actual);
  return same;
}

/* Lowered, an implementation still computes what it took the place of: calls that this CPU has no instruction for are
 * interpreted, and the others' statements. */
static void judge_lowered(const struct tir *before, const struct tir *after, const char *name) {
  const struct tir_lower_options options = {.verify = true};
  struct tir *ir = tir_new();
  ms_error err = {0};
  tir_copy(ir, after);
  if (!tir_lower(ir, 1, &options, &err) || !tir_verify(ir, &err)) fail_msg("%s, lowered: %s", name, err.message);
  if (!needs_loads(name) && !computes_same(before, ir, &err)) fail_msg("%s, lowered: %s", name, err.message);
  tir_free(ir);
}

/* The statement of a description, given to an intrinsic; what comes of it is checked. */
static bool tensorizes(const struct shipped *what, const struct shipped *by) {
  struct tir *ir = tir_new(), *before = tir_new();
  ms_error err = {0};
  tir_copy(ir, what->description);
  for (tir_buffer b = 1; b < ir->buffers.count; b++)
    tir_buffer_at(ir, b)->elem_offset = TIR_NONE; /* as arguments are */
  tir_copy(before, ir);
  tir_loop loop = tir_stmt_at(ir, tir_root_block(ir, 1))->first[TIR_BODY];
  bool done = tir_tensorize(ir, loop, by->description, by->implementation, true, &err);
  if (done && !tir_verify(ir, &err)) fail_msg("%s: %s", by->name, err.message);
  if (done && !needs_loads(by->name) && !tir_equal_results(before, 1, NULL, ir, 1, NULL, 1, &err))
    fail_msg("%s in its place: %s", by->name, err.message);
  if (done) judge_lowered(before, ir, by->name);
  if (!done && err.code != MS_TENSORIZE_MISMATCH) fail_msg("%s by %s: %s", what->name, by->name, err.message);
  if (!done && !tir_structural_equal(before, 1, ir, 1, NULL, 0))
    fail_msg("%s by %s: refused, and changed", what->name, by->name);
  tir_free(ir);
  tir_free(before);
  return done;
}

/* Whether one describes the other's product with its factors the other way round. */
static bool are_turned(const char *a, const char *b) {
  static const char *const pairs[][2] = {{"amx_16x16x32_bf16", "amx_16x16x32_bf16_columns_first"},
                                         {"dp4a_u8s8s32", "dp4a_s8u8s32"}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if ((!strcmp(a, pairs[i][0]) && !strcmp(b, pairs[i][1])) || (!strcmp(a, pairs[i][1]) && !strcmp(b, pairs[i][0])))
      return true;
  return false;
}

/* Each takes the place of what it describes, with factors either way round, and of nothing that another one describes.
 */
static void test_tensorize(void **state) {
  (void)state;
  enum { MOST = 260 };
  struct shipped all[MOST];
  uint32_t count = 0;
  for (; vm_shipped_intrinsic(count, all[count].name, sizeof all[count].name); count++) {
    struct shipped *i = &all[count];
    i->table = NULL;
    vm_add_shipped_intrinsic(&i->table, i->name);
    assert_true(vm_find_intrinsic(i->table, i->name, &i->description, &i->implementation));
    assert_true(count + 1 < MOST);
  }
  for (uint32_t a = 0; a < count; a++)
    for (uint32_t b = 0; b < count; b++) {
      bool same = tir_structural_equal(all[a].description, 1, all[b].description, 1, NULL, 0) ||
                  are_turned(all[a].name, all[b].name);
      if (tensorizes(&all[a], &all[b]) != same)
        fail_msg("%s by %s: %s", all[a].name, all[b].name, same ? "refused" : "accepted");
    }
  for (uint32_t i = 0; i < count; i++) vm_intrinsics_free(all[i].table);
}

/* What a file of intrinsics may not say. */
static void test_refused(void **state) {
  (void)state;
  static const char *const texts[] = {
      "### a\n",
      "### a.desc\n@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((8,), \"float32\")):\n    pass\n",
      "### a.desc\n#: T\n",
      "### a<T>.desc\n#: T 1|2|3|4|5|6|7|8|9\n",
      "### a.desc\n#: A 1\n#: B 1\n#: C 1\n#: D 1\n#: E 1\n#: F 1\n#: G 1\n#: H 1\n#: I 1\n",
      "### a.desc\n#= A 1\n",
      "### a<T>.desc\n#: T 1 | 2\n#= S 1\n",
      "### a\n#@ no_such fill_by m=1\n",
      "### a\n#@ m=1\n",
      "### a\n#@ fill m=1\n", /* no half is named */
      "### a\n#@ fill fill_by fill_by m=1\n",
      "### a.desc\n#@ fill m=1\n#@ fill m=1\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ms_error err = {0};
    assert_null(vm_read_intrinsics(texts[i], "test", &err));
    assert_int_equal(err.code, MS_BAD_INTRINSIC);
  }
}

/* A section with choices stands for all of them. */
static void test_choices(void **state) {
  (void)state;
  static const char text[] =
      "### copy_<T><S>.desc\n#: T f16 = float16 | f32 = float32\n#= V T.float16(1) | T.float32(1)\n#: S | _shared = "
      "shared\n"
      "@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((8,), \"<T>\", scope=\"<S>\")):\n    A[0] = <V>\n"
      "### copy_<T><S>.impl\n#: T f16 = float16 | f32 = float32\n#: S | _shared = shared\n"
      "@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((8,), \"<T>\")):\n    A[0] = T.<T>(1)\n";
  static const char *const names[] = {"copy_f16", "copy_f32", "copy_f16_shared", "copy_f32_shared"};
  ms_error err = {0};
  struct vm_intrinsics *table = vm_read_intrinsics(text, "test", &err);
  if (!table) fail_msg("%s", err.message);
  for (int i = 0; i < 4; i++) {
    const struct tir *parts[2];
    assert_true(vm_find_intrinsic(table, names[i], &parts[0], &parts[1]));
    char *script = tir_print(parts[0], TIR_NONE, 0);
    assert_true(!strstr(script, "float16") == (i % 2 == 1));
    assert_true(!strstr(script, "shared") == (i < 2));
    free(script);
  }
  vm_intrinsics_free(table);
}

/* Functions of a shipped template, with choices; a word that is not said is no expression. */
static void test_templates(void **state) {
  (void)state;
#define OWN(words)                                                                                                     \
  "### mine_<T>\n#: T f32 = float32 | s32 = int32\n#@ fill fill_by n=4 type=<T> factor=1 to=local " words              \
  "\n        for i, j in T.grid(2, 4):\n            C[i, j] = T.<T>(0)\n\n"                                            \
  "### halves.desc\n#@ copy m=2 n=4 type=int8 factor=1 from=global to_factor=1 to=global block=one\n\n"                \
  "### halves.impl\n#@ copy m=2 n=4 type=int8 factor=1 from=global to_factor=1 to=global block=other\n"
  static const char *const names[] = {"mine_f32", "mine_s32", "halves"};
  ms_error err = {0};
  struct vm_intrinsics *table = vm_read_intrinsics(OWN("m=2"), "test", &err);
  if (!table) fail_msg("%s", err.message);
  assert_int_equal(vm_intrinsic_count(table), 3);
  for (int i = 0; i < 3; i++) {
    const struct tir *parts[2];
    assert_true(vm_find_intrinsic(table, names[i], &parts[0], &parts[1]));
    assert_true(tir_equal_results(parts[0], 1, NULL, parts[1], 1, NULL, 1, &err));
    char *script = tir_print(parts[0], TIR_NONE, 0);
    assert_non_null(strstr(script, i == 0 ? "float32" : i == 1 ? "int32" : "int8"));
    free(script);
  }
  vm_intrinsics_free(table);
  assert_null(vm_read_intrinsics(OWN(""), "test", &err));
  table = NULL;
  vm_add_shipped_intrinsic(&table, "fill.tem"); /* fill.template is none, nor half of one */
  assert_null(table);
}

static void *look_up(void *name) {
  const struct tir **parts = calloc(2, sizeof *parts);
  if (!parts) abort();
  if (!vm_find_known_intrinsic(NULL, name, &parts[0], &parts[1])) abort();
  return parts;
}

/* A shipped one is read once, whichever threads ask; a table's own of the name goes before it. */
static void test_kept(void **state) {
  (void)state;
  char name[] = "wmma_fill_16x16x16_f32";
  pthread_t threads[4];
  const struct tir **first = look_up(name), *parts[2] = {NULL, NULL};
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, look_up, name);
  for (int i = 0; i < 4; i++) {
    void *found;
    pthread_join(threads[i], &found);
    assert_memory_equal(found, first, 2 * sizeof *first);
    free(found);
  }
  struct vm_intrinsics *table = NULL;
  vm_add_shipped_intrinsic(&table, name);
  assert_true(vm_find_known_intrinsic(table, name, &parts[0], &parts[1]));
  assert_ptr_not_equal(parts[0], first[0]);
  assert_true(tir_structural_equal(parts[0], 1, first[0], 1, NULL, 0));
  vm_intrinsics_free(table);
  assert_false(vm_find_known_intrinsic(NULL, "no_such", &parts[0], &parts[1]));
  free(first);
}

static void test_unknown(void **state) {
  (void)state;
  struct vm_intrinsics *table = NULL;
  vm_add_shipped_intrinsic(&table, "no_such");
  assert_null(table);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shipped),   cmocka_unit_test(test_equal),
                                     cmocka_unit_test(test_tensorize), cmocka_unit_test(test_choices),
                                     cmocka_unit_test(test_refused),   cmocka_unit_test(test_unknown),
                                     cmocka_unit_test(test_templates), cmocka_unit_test(test_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

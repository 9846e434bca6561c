/* Inlining and caching every block of the cases' functions: predictions come true, refusals leave no trace, what is
 * accepted passes the verifier and computes the same. */
#include "support/case.h"
#include "unit/file.h"
#include "unit/script.h"

enum { MOST_BLOCKS = 64, MOST_FUNCTIONS = 512 };

static struct {
  uint64_t seen[MOST_FUNCTIONS];
  uint32_t count, tried, accepted, compared;
} totals;

/* The function before the trace; NULL: one that was tried already. */
static struct tir *read_before(const char *path) {
  char *text = read_file(path, NULL);
  char *start = strstr(text, "### before\n"), *end = strstr(text, "### trace\n");
  assert_true(start && end);
  start += strlen("### before\n");
  ms_error err = {0};
  struct tir *ir = tir_read(start, (size_t)(end - start), path, &err);
  if (!ir) fail_msg("%s", err.message);
  free(text);
  uint64_t hash = tir_structural_hash(ir, TIR_NONE);
  for (uint32_t i = 0; i < totals.count; i++)
    if (totals.seen[i] == hash) {
      tir_free(ir);
      return NULL;
    }
  assert_true(totals.count < MOST_FUNCTIONS);
  totals.seen[totals.count++] = hash;
  return ir;
}

static uint32_t all_blocks(const struct tir *ir, tir_block *out) {
  uint32_t count = 0;
  tir_stmt top = ir->funcs.at[1].body;
  for (tir_stmt s = tir_next(ir, top, top); s; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_BLOCK) && count < MOST_BLOCKS) out[count++] = s;
  return count;
}

enum what { INLINE, REVERSE_INLINE, CACHE_READ, CACHE_READ_SECOND, CACHE_WRITE, KINDS };

static bool apply(struct tir *ir, enum what what, tir_block block, ms_error *err) {
  tir_block stage;
  switch (what) {
  case INLINE: return tir_compute_inline(ir, block, err);
  case REVERSE_INLINE: return tir_reverse_compute_inline(ir, block, err);
  case CACHE_WRITE: return tir_cache_write(ir, block, 0, "global", NULL, 0, &stage, err);
  default: return tir_cache_read(ir, block, what == CACHE_READ_SECOND, "global", NULL, 0, &stage, err);
  }
}

static bool predict(struct tir *ir, enum what what, tir_block block, bool accepted) {
  if (what == INLINE) return tir_can_compute_inline(ir, block);
  if (what == REVERSE_INLINE) return tir_can_reverse_compute_inline(ir, block);
  return accepted;
}

/* Everything but working memory and what analysis keeps beside the module. */
static void assert_untouched(const struct tir *ir, const struct tir *before, const char *place) {
  char *a = tir_print(ir, TIR_NONE, 0), *b = tir_print(before, TIR_NONE, 0);
  if (strcmp(a, b)) fail_msg("%s changed:\n%s\nbefore:\n%s", place, a, b);
  free(a);
  free(b);
  assert_int_equal(ir->exprs.count, before->exprs.count);
  assert_int_equal(ir->stmts.count, before->stmts.count);
  assert_int_equal(ir->buffers.count, before->buffers.count);
  assert_int_equal(ir->vars.count, before->vars.count);
  assert_int_equal(ir->symbols.count, before->symbols.count);
  assert_int_equal(ir->uses.count, before->uses.count);
  assert_int_equal(ir->forwards.count, before->forwards.count);
}

/* What forwards say is dead is dead, and the rest of the blocks lives. */
static void assert_forwarded(const struct tir *ir, const struct tir *before, const tir_block *blocks, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    bool dead = false;
    for (uint32_t f = before->forwards.count; f < ir->forwards.count; f++)
      dead |= ir->forwards.at[f].from == blocks[i] && ir->forwards.at[f].to == TIR_NONE;
    assert_int_equal(dead, !tir_is(ir, blocks[i], TIR_BLOCK));
  }
}

/* A block that writes under a condition leaves holes in its cache, which the copy moves as they are. */
static bool writes_under_condition(const struct tir *ir) {
  tir_stmt top = ir->funcs.at[1].body;
  for (tir_stmt s = tir_next(ir, top, top); s; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_IF)) return true;
  return false;
}

static void assert_same(const struct tir *before, const struct tir *after, const char *place) {
  ms_error err = {0};
  if (!tir_verify(after, &err)) fail_msg("%s: %s", place, err.message);
  if (!tir_equal_results(before, 1, NULL, before, 1, NULL, 3, &err)) return; /* it does not run as it is */
  err = (ms_error){0};
  if (!tir_equal_results(before, 1, NULL, after, 1, NULL, 3, &err)) fail_msg("%s: %s", place, err.message);
  totals.compared++;
}

static void try_block(const struct tir *ir, enum what what, tir_block block, const char *path) {
  static const char *const names[] = {"compute_inline", "reverse_compute_inline", "cache_read", "cache_read of 1",
                                      "cache_write"};
  char place[1000];
  tir_block blocks[MOST_BLOCKS];
  uint32_t count = all_blocks(ir, blocks);
  snprintf(place, sizeof place, "%.500s: %s %.100s", path, names[what], tir_block_name(ir, block));
  struct tir *copy = tir_new();
  tir_copy(copy, ir);
  ms_error err = {0};
  bool accepted = apply(copy, what, block, &err);
  totals.tried++;
  if (accepted) {
    totals.accepted++;
    assert_forwarded(copy, ir, blocks, count);
    if (what < CACHE_READ || !writes_under_condition(ir)) assert_same(ir, copy, place);
  } else {
    assert_untouched(copy, ir, place);
    assert_true(strlen(err.message) > 0);
  }
  tir_copy(copy, ir);
  assert_int_equal(predict(copy, what, block, accepted), accepted);
  assert_untouched(copy, ir, place);
  tir_free(copy);
}

static void try_file(const char *path) {
  struct tir *ir = read_before(path);
  if (!ir) return;
  tir_find_pipelines(ir, 1);
  tir_block blocks[MOST_BLOCKS];
  uint32_t count = tir_find_aliased(ir) ? 0 : all_blocks(ir, blocks); /* no instruction edits what has two names */
  for (uint32_t i = 0; i < count; i++)
    for (enum what what = 0; what < KINDS; what++) try_block(ir, what, blocks[i], path);
  tir_free(ir);
}

/* By its path in the folder of cases. */
static bool is_ours(const char *name) { return strstr(name, "inline") || !strncmp(name, "cache_", strlen("cache_")); }

static void everywhere(void **state) {
  (void)state;
  struct case_paths paths = case_find(TEST_ROOT "/case");
  assert_true(paths.count > 1);
  for (uint32_t i = 0; i < paths.count; i++)
    if (is_ours(paths.at[i] + strlen(TEST_ROOT "/case/"))) try_file(paths.at[i]);
  case_free_paths(&paths);
  assert_true(totals.accepted > 100 && totals.compared > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(everywhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

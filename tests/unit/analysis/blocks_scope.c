/* Blocks in their scope: look-ups, producers and consumers, the conditions of complete and reduction blocks, region
 * cover. */
#include "tir/analysis/analysis.h"
#include "unit/script.h"

#define ONE_D "A: T.Buffer((8,), \"float32\"), D: T.Buffer((8,), \"float32\")"
#define STAGE(name, from, to)                                                                                          \
  "for i in range(8):", "    with T.sblock(\"" name "\"):", "        v = T.axis.spatial(8, i)",                        \
      "        T.reads(" from "[v])", "        T.writes(" to "[v])", "        " to "[v] = " from "[v]"

static struct tir *diamond(void) {
  return read_function(ONE_D, "B = T.sblock_alloc_buffer((8,))", "C = T.sblock_alloc_buffer((8,))",
                       STAGE("B", "A", "B"), STAGE("C", "A", "C"),
                       "for i in range(8):", "    with T.sblock(\"D\"):", "        v = T.axis.spatial(8, i)",
                       "        T.reads(C[v], B[v])", "        T.writes(D[v])", "        D[v] = C[v] - B[v]");
}

static void expect_blocks(struct tir *ir, const tir_block *found, uint32_t count, const char *names) {
  char text[256] = "";
  for (uint32_t i = 0; i < count; i++) {
    strcat(text, i ? " " : "");
    strcat(text, tir_block_name(ir, found[i]));
  }
  assert_string_equal(text, names);
}

static void finds_producers_by_region(void **state) {
  (void)state;
  struct tir *ir = diamond();
  tir_block found[8];
  uint32_t count;
  assert_accepted(tir_get_producers(ir, block_named(ir, "D"), found, 8, &count, err));
  expect_blocks(ir, found, count, "C B");
  assert_accepted(tir_get_producers(ir, block_named(ir, "D"), found, 1, &count, err));
  assert_int_equal(count, 2);
  expect_blocks(ir, found, 1, "C");
  assert_accepted(tir_get_producers(ir, block_named(ir, "B"), found, 8, &count, err));
  assert_int_equal(count, 0);
  assert_accepted(tir_get_consumers(ir, block_named(ir, "B"), found, 8, &count, err));
  expect_blocks(ir, found, count, "D");
  tir_free(ir);
}

static void finds_children_and_outputs(void **state) {
  (void)state;
  struct tir *ir = diamond();
  tir_block found[8], root = block_named(ir, "root");
  uint32_t count;
  assert_accepted(tir_get_child_blocks(ir, root, found, 8, &count, err));
  expect_blocks(ir, found, count, "B C D");
  assert_accepted(tir_get_child_blocks(ir, loop_of(ir, "C", 0), found, 8, &count, err));
  expect_blocks(ir, found, count, "C");
  assert_accepted(tir_get_output_blocks(ir, root, found, 8, &count, err));
  expect_blocks(ir, found, count, "D");
  tir_free(ir);
}

static void later_writers_consume(void **state) {
  (void)state;
  struct tir *ir = read_function(ONE_D, STAGE("B", "A", "D"), STAGE("C", "A", "D"));
  tir_block found[8];
  uint32_t count;
  assert_accepted(tir_get_consumers(ir, block_named(ir, "B"), found, 8, &count, err));
  expect_blocks(ir, found, count, "C");
  assert_accepted(tir_get_producers(ir, block_named(ir, "C"), found, 8, &count, err));
  expect_blocks(ir, found, count, "B");
  tir_free(ir);
}

/* Forty blocks that write one buffer, and read another that the first writes: look-ups of long lists, before and after
 * statements move. */
enum { MANY = 40 };
static struct tir *many_blocks(void) {
  char text[16384] = "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), "
                     "\"float32\")):\n    X = T.sblock_alloc_buffer((8,))\n";
  for (int i = 0; i <= MANY; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text),
             "    for i%d in range(8):\n        with T.sblock(\"b%d\"):\n            v = T.axis.spatial(8, i%d)\n"
             "            %s[v] = %s[v] * T.float32(%d)\n",
             i, i, i, i ? "B" : "X", i ? "X" : "A", i);
  ms_error why = {0};
  struct tir *ir = tir_read(text, strlen(text), "test", &why);
  if (!ir) fail_msg("%s", why.message);
  return ir;
}

/* Its blocks from `first` up to `end`, in order of text. */
static void expect_numbered(struct tir *ir, const tir_block *found, uint32_t count, int first, int end) {
  assert_int_equal(count, end - first);
  for (int i = first; i < end; i++) {
    char name[16];
    snprintf(name, sizeof name, "b%d", i);
    assert_string_equal(tir_block_name(ir, found[i - first]), name);
  }
}

static void finds_many_users_in_order(void **state) {
  (void)state;
  struct tir *ir = many_blocks();
  tir_block found[MANY + 1], b20 = block_named(ir, "b20");
  uint32_t count;
  assert_accepted(tir_get_consumers(ir, block_named(ir, "b0"), found, MANY + 1, &count, err));
  expect_numbered(ir, found, count, 1, MANY + 1);
  assert_accepted(tir_get_consumers(ir, b20, found, MANY + 1, &count, err));
  expect_numbered(ir, found, count, 21, MANY + 1);
  assert_accepted(tir_get_producers(ir, b20, found, MANY + 1, &count, err));
  assert_int_equal(count, 20); /* first what writes what it reads */
  expect_numbered(ir, found, 20, 0, 20);
  assert_accepted(tir_get_producers(ir, b20, found, 5, &count, err)); /* as many as there is room for, and how many */
  assert_int_equal(count, 20);
  expect_numbered(ir, found, 5, 0, 5);
  tir_stmt last = loop_of(ir, "b40", 0), first = loop_of(ir, "b1", 0); /* b40 before b1 */
  tir_detach(ir, last);
  tir_insert_before(ir, first, last);
  assert_accepted(tir_get_consumers(ir, block_named(ir, "b40"), found, MANY + 1, &count, err));
  expect_numbered(ir, found, count, 1, MANY);
  assert_accepted(tir_get_consumers(ir, block_named(ir, "b0"), found, MANY + 1, &count, err));
  assert_int_equal(count, MANY);
  assert_string_equal(tir_block_name(ir, found[0]), "b40");
  expect_numbered(ir, found + 1, count - 1, 1, MANY);
  struct tir *copy = many_blocks(); /* its order is known, and is forgotten when it becomes the other */
  assert_true(tir_compare_position(copy, loop_of(copy, "b1", 0), loop_of(copy, "b40", 0)) < 0);
  tir_copy(copy, ir);
  assert_true(tir_compare_position(copy, loop_of(copy, "b1", 0), loop_of(copy, "b40", 0)) > 0);
  tir_free(copy);
  tir_free(ir);
}

static void compares_positions_as_a_walk_does(void **state) {
  (void)state;
  struct tir *ir = many_blocks();
  tir_stmt order[512];
  uint32_t count = 0;
  tir_stmt top = ir->funcs.at[1].body;
  for (tir_stmt s = tir_next(ir, top, top); s; s = tir_next(ir, s, top)) order[count++] = s;
  for (uint32_t a = 0; a < count; a++)
    for (uint32_t b = 0; b < count; b++)
      assert_int_equal(tir_compare_position(ir, order[a], order[b]), a == b ? 0 : a < b ? -1 : 1);
  tir_free(ir);
}

static void refuses_look_ups(void **state) {
  (void)state;
  struct tir *ir =
      read_function(ONE_D, "B = T.sblock_alloc_buffer((8,))", STAGE("twice", "A", "B"), STAGE("twice", "B", "D"));
  tir_block found[8];
  uint32_t count;
  assert_refused(ir, MS_BLOCK_NOT_FOUND, tir_get_block(ir, "once", NULL, found, err));
  assert_refused(ir, MS_BLOCK_NOT_UNIQUE, tir_get_block(ir, "twice", "main", found, err));
  assert_refused(ir, MS_FUNCTION_NOT_FOUND, tir_get_block(ir, "twice", "other", found, err));
  tir_block root = block_named(ir, "root");
  assert_refused(ir, MS_ROOT_BLOCK, tir_get_producers(ir, root, found, 8, &count, err));
  assert_refused(ir, MS_ROOT_BLOCK, tir_get_consumers(ir, root, found, 8, &count, err));
  tir_free(ir);
}

/* ---- Complete and reduction blocks ---- */

/* why: what the refusal says; NULL: the block is one. */
static void expect(struct tir *ir, const char *name, bool (*check)(struct tir *, tir_block, tir_block, ms_error *),
                   const char *why) {
  ms_error err = {.message = ""};
  tir_block b = block_named(ir, name);
  bool is = check(ir, b, tir_parent_block(ir, b), &err);
  if (is != !why || (why && !strstr(err.message, why))) fail_msg("%s: %s", name, err.message);
}
#define expect_complete(ir, name, why)  expect(ir, name, tir_check_complete_block, why)
#define expect_reduction(ir, name, why) expect(ir, name, tir_check_reduction_block, why)

static void knows_complete_blocks(void **state) {
  (void)state;
  struct tir *ir = diamond();
  expect_complete(ir, "B", NULL);
  expect_complete(ir, "D", NULL);
  expect_reduction(ir, "D", "it has no init");
  tir_free(ir);
  ir = read_function(ONE_D, STAGE("B", "A", "D"), STAGE("C", "A", "D"));
  expect_complete(ir, "B", "it is not the only writer of what it writes");
  tir_block b = block_named(ir, "B"), root = block_named(ir, "root");
  assert_refused(ir, MS_NOT_COMPLETE_BLOCK, tir_check_complete_block(ir, b, root, err));
  assert_refused(ir, MS_NOT_COMPLETE_OR_REDUCTION, tir_check_complete_or_reduction_block(ir, b, root, err));
  tir_free(ir);
  ir = read_function(ONE_D, STAGE("D", "D", "D"));
  expect_complete(ir, "D", "it reads what it writes");
  tir_free(ir);
}

#define SUM "A: T.Buffer((8, 16), \"float32\"), S: T.Buffer((8,), \"float32\")"

static void knows_reduction_blocks(void **state) {
  (void)state;
  struct tir *ir = read_function(
      SUM, "for i, k in T.grid(8, 16):", "    with T.sblock(\"S\"):", "        x, y = T.axis.remap(\"SR\", [i, k])",
      "        T.reads(A[x, y])", "        T.writes(S[x])",
      "        with T.init():", "            S[x] = T.float32(0.0)", "        S[x] = S[x] + A[x, y]");
  expect_reduction(ir, "S", NULL);
  expect_complete(ir, "S", "one of its iterations is not spatial");
  tir_free(ir);
  ir = read_function(
      SUM, "for i, k in T.grid(8, 16):", "    with T.sblock(\"S\"):", "        x = T.axis.spatial(8, (i + k) // 3)",
      "        y = T.axis.reduce(16, k)", "        T.reads(A[x, y])", "        T.writes(S[x])",
      "        with T.init():", "            S[x] = T.float32(0.0)", "        S[x] = S[x] + A[x, y]");
  expect_reduction(ir, "S", "its bindings are not affine iterators");
  tir_free(ir);
  ir = read_function(SUM, "for i, k in T.grid(8, 16):", "    with T.sblock(\"S\"):", "        x = T.axis.spatial(8, i)",
                     "        y = T.axis.opaque(16, k)", "        T.reads(A[x, y])", "        T.writes(S[x])",
                     "        with T.init():", "            S[x] = T.float32(0.0)", "        S[x] = S[x] + A[x, y]");
  expect_reduction(ir, "S", "one of its iterations is opaque");
  tir_free(ir);
  ir = read_function(
      SUM, "for i, k in T.grid(8, 8):", "    with T.sblock(\"S\"):", "        x, y = T.axis.remap(\"SR\", [i, k])",
      "        T.reads(A[x, y])", "        T.writes(S[y])",
      "        with T.init():", "            S[y] = T.float32(0.0)", "        S[y] = S[y] + A[x, y]");
  expect_reduction(ir, "S", "a reduction iteration indexes what it writes");
  tir_block s = block_named(ir, "S"), root = block_named(ir, "root");
  assert_refused(ir, MS_NOT_REDUCTION_BLOCK, tir_check_reduction_block(ir, s, root, err));
  tir_free(ir);
}

/* ---- Stage pipelines ---- */

static bool is_pipeline(struct tir *ir) {
  ms_error err = {.brief = true};
  bool yes = tir_check_stage_pipeline(ir, block_named(ir, "root"), &err);
  if (!yes) assert_int_equal(err.code, MS_NOT_STAGE_PIPELINE);
  return yes;
}

static void knows_pipelines(void **state) {
  (void)state;
  struct tir *ir = diamond();
  assert_true(is_pipeline(ir));
  tir_free(ir);
  ir = read_function(ONE_D, STAGE("B", "D", "A"), STAGE("C", "A", "D")); /* what was read is written */
  assert_false(is_pipeline(ir));
  assert_refused(ir, MS_NOT_STAGE_PIPELINE, tir_check_stage_pipeline(ir, block_named(ir, "root"), err));
  tir_free(ir);
}

#define TILES(extent)                                                                                                  \
  "B = T.sblock_alloc_buffer((8,))", "for o in range(2):", "    for i in range(" extent "):",                          \
      "        with T.sblock(\"B\"):", "            v = T.axis.spatial(8, o * 4 + i)", "            T.reads(A[v])",    \
      "            T.writes(B[v])", "            B[v] = A[v]",                                                         \
      "    for i in range(4):", "        with T.sblock(\"D\"):", "            v = T.axis.spatial(8, o * 4 + i)",       \
      "            T.reads(B[v])", "            T.writes(D[v])", "            D[v] = B[v]"

static void knows_cover_below_a_loop(void **state) {
  (void)state;
  struct tir *ir = read_function(ONE_D, TILES("4"));
  assert_true(is_pipeline(ir));
  tir_free(ir);
  ir = read_function(ONE_D, TILES("3"));
  assert_false(is_pipeline(ir));
  tir_free(ir);
}

/* Shared memory is filled by all threads together; global memory under the same loop is not. */
#define COOPERATIVE(scope)                                                                                             \
  "B = T.sblock_alloc_buffer((8,), scope=\"" scope "\")", "for t in T.thread_binding(8, thread=\"threadIdx.x\"):",     \
      "    with T.sblock(\"B\"):", "        v = T.axis.spatial(8, t)", "        T.reads(A[v])",                        \
      "        T.writes(B[v])", "        B[v] = A[v]",                                                                 \
      "    with T.sblock(\"D\"):", "        v = T.axis.spatial(8, t)", "        T.reads(B[0:8])",                      \
      "        T.writes(D[v])", "        D[v] = B[7 - v]"

static void threads_fill_shared_memory(void **state) {
  (void)state;
  struct tir *ir = read_function(ONE_D, COOPERATIVE("shared"));
  assert_true(is_pipeline(ir));
  tir_free(ir);
  ir = read_function(ONE_D, COOPERATIVE("global"));
  assert_false(is_pipeline(ir));
  tir_free(ir);
}

static void knows_bindings(void **state) {
  (void)state;
  struct tir *ir = diamond();
  tir_block d = block_named(ir, "D");
  tir_loop loop = loop_of(ir, "D", 0), out[2];
  assert_int_equal(tir_loop_iter_kinds(ir, loop, d), 1);
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, 2)};
  assert_accepted(tir_split(ir, loop, factors, 2, true, false, out, err));
  assert_true(tir_is_affine_binding(ir, d, TIR_NONE));
  assert_true(tir_is_affine_binding(ir, d, out[0]));
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_producers_by_region),
      cmocka_unit_test(finds_children_and_outputs),
      cmocka_unit_test(finds_many_users_in_order),
      cmocka_unit_test(compares_positions_as_a_walk_does),
      cmocka_unit_test(later_writers_consume),
      cmocka_unit_test(refuses_look_ups),
      cmocka_unit_test(knows_complete_blocks),
      cmocka_unit_test(knows_reduction_blocks),
      cmocka_unit_test(knows_pipelines),
      cmocka_unit_test(knows_cover_below_a_loop),
      cmocka_unit_test(threads_fill_shared_memory),
      cmocka_unit_test(knows_bindings),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

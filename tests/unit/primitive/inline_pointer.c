/* Inlining and caching where buffers are used otherwise than by loads and stores of elements: pointers, slices, ranges
 * of loops. */
#include "unit/script.h"

#define ABC "A: T.Buffer((16,), \"float32\"), C: T.Buffer((16,), \"float32\")"
#define VI  "        vi = T.axis.spatial(16, i)"
#define PRODUCER                                                                                                       \
  "for i in range(16):", "    with T.sblock(\"B\"):", VI, "        T.reads(A[vi])", "        T.writes(B[vi])",         \
      "        B[vi] = A[vi] * T.float32(2)"
#define COPY_OF_B                                                                                                      \
  "for ax0 in range(16):", "    with T.sblock(\"B_local\"):", "        v0 = T.axis.spatial(16, ax0)",                  \
      "        T.reads(B[v0])", "        T.writes(B_local[v0])", "        B_local[v0] = B[v0]"
#define ALLOC       "B = T.sblock_alloc_buffer((16,))"
#define ALLOC_LOCAL ALLOC, "B_local = T.sblock_alloc_buffer((16,), scope=\"local\")"
#define CONSUMER(read, body)                                                                                           \
  "for i in range(16):", "    with T.sblock(\"C\"):", VI, "        T.reads(" read ")", "        T.writes(C[vi])", body

static bool cache_read(struct tir *ir, const char *block, uint32_t index, ms_error *err) {
  tir_block stage;
  return tir_cache_read(ir, block_named(ir, block), index, "local", NULL, 0, &stage, err);
}

static bool cache_write(struct tir *ir, const char *block, ms_error *err) {
  tir_block stage;
  return tir_cache_write(ir, block_named(ir, block), 0, "local", NULL, 0, &stage, err);
}

#define LOOK_UP(b) "        C[vi] = T.call_extern(\"float32\", \"look_up\", " b ".data, vi)"

static void reads_through_pointer(void **state) {
  (void)state;
  struct tir *ir = read_function(ABC, ALLOC, PRODUCER, CONSUMER("B[vi]", LOOK_UP("B")));
  assert_refused(ir, MS_OPAQUE_ACCESS, tir_compute_inline(ir, block_named(ir, "B"), err));
  assert_accepted(cache_read(ir, "C", 0, err));
  assert_function(ir, ABC, ALLOC_LOCAL, PRODUCER, COPY_OF_B, CONSUMER("B_local[vi]", LOOK_UP("B_local")));
}

#define FILL(b)                                                                                                        \
  "for i in range(16):", "    with T.sblock(\"C\"):", VI, "        T.reads(A[vi])", "        T.writes(" b "[vi])",     \
      "        T.evaluate(T.call_extern(\"int32\", \"fill\", " b ".data, vi))"

static void writes_through_pointer(void **state) {
  (void)state;
  struct tir *ir = read_function(ABC, FILL("C"));
  assert_accepted(cache_write(ir, "C", err));
  assert_function(ir, ABC, "C_local = T.sblock_alloc_buffer((16,), scope=\"local\")", FILL("C_local"),
                  "for ax0 in range(16):", "    with T.sblock(\"C_local\"):", "        v0 = T.axis.spatial(16, ax0)",
                  "        T.reads(C_local[v0])", "        T.writes(C[v0])", "        C[v0] = C_local[v0]");
}

#define APC ABC ", P: T.Buffer((16,), \"float32\")"

/* A buffer that the consumer uses through its pointer is declared as read and written, after the others. */
static void inlines_beside_pointer(void **state) {
  (void)state;
  struct tir *ir = read_function(
      APC, ALLOC, PRODUCER,
      CONSUMER("B[vi], P[0:16]", "        C[vi] = B[vi] + T.call_extern(\"float32\", \"look_up\", P.data, vi)"));
  assert_accepted(tir_compute_inline(ir, block_named(ir, "B"), err));
  assert_function(ir, APC, "for i in range(16):", "    with T.sblock(\"C\"):", VI, "        T.reads(A[vi], P[0:16])",
                  "        T.writes(C[vi], P[0:16])",
                  "        C[vi] = A[vi] * T.float32(2) + T.call_extern(\"float32\", \"look_up\", P.data, vi)");
}

#define CSR "N: T.Buffer((17,), \"int32\"), A: T.Buffer((64,), \"float32\"), C: T.Buffer((16,), \"float32\")"
#define ROWS(n)                                                                                                        \
  "for i in range(16):", "    with T.sblock(\"C\"):", VI, "        T.reads(" n "[vi:vi + 2], A[0:64])",                \
      "        T.writes(C[vi])", "        C[vi] = T.float32(0)",                                                       \
      "        for k in range(" n "[vi + 1] - " n "[vi]):", "            C[vi] = A[" n "[vi] + k]"

/* A loop whose range is read from the cache has a new variable, and its body follows. */
static void caches_ranges_of_loops(void **state) {
  (void)state;
  struct tir *ir = read_function(CSR, ROWS("N"));
  assert_accepted(cache_read(ir, "C", 0, err));
  assert_function(ir, CSR, "N_local = T.sblock_alloc_buffer((17,), \"int32\", scope=\"local\")",
                  "for ax0 in range(17):", "    with T.sblock(\"N_local\"):", "        v0 = T.axis.spatial(17, ax0)",
                  "        T.reads(N[v0])", "        T.writes(N_local[v0])", "        N_local[v0] = N[v0]",
                  ROWS("N_local"));
}

#define INDICES "A: T.Buffer((16,), \"int32\"), D: T.Buffer((32,), \"float32\"), C: T.Buffer((16,), \"float32\")"

/* What is inlined into an index becomes part of it. */
static void inlines_into_indices(void **state) {
  (void)state;
  struct tir *ir = read_function(
      INDICES, "B = T.sblock_alloc_buffer((16,), \"int32\")", "for i in range(16):", "    with T.sblock(\"B\"):", VI,
      "        T.reads(A[vi])", "        T.writes(B[vi])", "        B[vi] = vi * 2",
      "for i in range(16):", "    with T.sblock(\"C\"):", VI, "        T.reads(D[0:32], B[vi])",
      "        T.writes(C[vi])", "        C[vi] = D[B[vi] + 1]");
  assert_accepted(tir_compute_inline(ir, block_named(ir, "B"), err));
  assert_function(ir, INDICES, "for i in range(16):", "    with T.sblock(\"C\"):", VI, "        T.reads(D[vi * 2 + 1])",
                  "        T.writes(C[vi])", "        C[vi] = D[vi * 2 + 1]");
}

/* An expression that doubles at every inlining is a graph: the work grows with the blocks, not with the text. */
static void inlines_long_chains(void **state) {
  (void)state;
  char text[32768], *at = text;
  at += sprintf(at, "@T.prim_func(s_tir=True)\ndef main(B0: T.Buffer((4,), \"float32\"), B40: T.Buffer((4,), "
                    "\"float32\")):\n");
  for (int b = 1; b < 40; b++) at += sprintf(at, "    B%d = T.sblock_alloc_buffer((4,))\n", b);
  for (int b = 1; b <= 40; b++)
    at += sprintf(at,
                  "    for i in range(4):\n        with T.sblock(\"B%d\"):\n            vi = T.axis.spatial(4, i)\n"
                  "            B%d[vi] = B%d[vi] * B%d[vi]\n",
                  b, b, b - 1, b - 1);
  ms_error error = {0};
  struct tir *ir = tir_read(text, (size_t)(at - text), "test", &error);
  if (!ir) fail_msg("%s", error.message);
  uint32_t before = ir->exprs.count;
  for (int b = 1; b < 40; b++) {
    char name[16];
    snprintf(name, sizeof name, "B%d", b);
    assert_accepted(tir_compute_inline(ir, block_named(ir, name), err));
  }
  assert_true(ir->exprs.count - before < 2000);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_through_pointer),  cmocka_unit_test(writes_through_pointer),
      cmocka_unit_test(inlines_beside_pointer), cmocka_unit_test(caches_ranges_of_loops),
      cmocka_unit_test(inlines_into_indices),   cmocka_unit_test(inlines_long_chains),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Random splits, fusions, reorderings and kinds: whatever is accepted leaves a valid module that computes the same, and
 * whatever is refused leaves the module as it was. */
#include "unit/script.h"

#define MATMUL "A: T.Buffer((5, 7), \"float32\"), B: T.Buffer((7, 6), \"float32\"), D: T.Buffer((5, 6), \"float32\")"

static struct tir *matmul(void) {
  return read_function(
      MATMUL, "C = T.sblock_alloc_buffer((5, 6))", "for i, j, k in T.grid(5, 6, 7):", "    with T.sblock(\"C\"):",
      "        x, y, z = T.axis.remap(\"SSR\", [i, j, k])", "        T.reads(A[x, z], B[z, y])",
      "        T.writes(C[x, y])", "        with T.init():", "            C[x, y] = T.float32(0)",
      "        C[x, y] = C[x, y] + A[x, z] * B[z, y]",
      "for i, j in T.grid(5, 6):", "    with T.sblock(\"D\"):", "        x, y = T.axis.remap(\"SS\", [i, j])",
      "        T.reads(C[x, y])", "        T.writes(D[x, y])", "        D[x, y] = T.max(C[x, y], T.float32(0))");
}

static uint32_t below(uint64_t *seed, uint32_t bound) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33) % bound;
}

enum { MOST_LOOPS = 24 };

static bool split(struct tir *ir, uint64_t *seed, tir_loop loop, ms_error *err) {
  uint32_t count = 1 + below(seed, 3), open = below(seed, 4);
  tir_expr factors[3];
  tir_loop out[3];
  for (uint32_t i = 0; i < count; i++)
    factors[i] = i == open ? TIR_NONE : tir_int(ir, TIR_T_I32, 1 + (int64_t)below(seed, 4));
  return tir_split(ir, loop, factors, count, below(seed, 3) > 0, false, out, err);
}

static bool reorder(struct tir *ir, uint64_t *seed, tir_loop *loops, uint32_t count, ms_error *err) {
  for (uint32_t i = count; i > 1; i--) {
    uint32_t j = below(seed, i);
    tir_loop t = loops[i - 1];
    loops[i - 1] = loops[j];
    loops[j] = t;
  }
  return tir_reorder(ir, loops, 2 + below(seed, count), err);
}

static bool step(struct tir *ir, uint64_t *seed, ms_error *err) {
  tir_loop loops[MOST_LOOPS], out;
  tir_block block = block_named(ir, below(seed, 3) ? "C" : "D");
  uint32_t count = tir_loops_of(ir, block, loops, MOST_LOOPS);
  if (count > MOST_LOOPS / 2) return true;
  uint32_t at = below(seed, count);
  switch (below(seed, 8)) {
  case 0:
  case 1:
  case 2: return split(ir, seed, loops[at], err);
  case 3:
  case 4: return tir_fuse(ir, loops + at, 1 + below(seed, count - at), below(seed, 3) > 0, &out, err);
  case 5: return below(seed, 2) ? tir_parallel(ir, loops[at], err) : tir_vectorize(ir, loops[at], err);
  case 6: return tir_bind(ir, loops[at], below(seed, 2) ? "threadIdx.x" : "blockIdx.x", err);
  default: return count < 2 || reorder(ir, seed, loops, count - 1, err);
  }
}

static bool try_step(struct tir *ir, uint64_t *seed) {
  ms_error err = {.brief = true}, broken = {0};
  uint64_t before = tir_structural_hash(ir, TIR_NONE);
  bool accepted = step(ir, seed, &err);
  if (!accepted) assert_int_equal(before, tir_structural_hash(ir, TIR_NONE));
  if (!tir_verify(ir, &broken)) fail_msg("%s", broken.message);
  return accepted;
}

static void keeps_what_is_computed(void **state) {
  (void)state;
  enum { SEQUENCES = 500, STEPS = 10 };
  struct tir *workload = matmul(), *ir = tir_new();
  uint32_t accepted = 0;
  for (uint32_t i = 0; i < SEQUENCES; i++) {
    uint64_t seed = i;
    ms_error err = {0};
    tir_copy(ir, workload);
    for (uint32_t j = 0; j < STEPS; j++) accepted += try_step(ir, &seed);
    if (!tir_equal_results(workload, 1, NULL, ir, 1, NULL, 1, &err)) {
      char *text = tir_print(ir, TIR_NONE, 0);
      fail_msg("sequence %u: %s\n%s", i, err.message, text);
    }
  }
  assert_true(accepted > SEQUENCES * STEPS / 2);
  tir_free(workload);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(keeps_what_is_computed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

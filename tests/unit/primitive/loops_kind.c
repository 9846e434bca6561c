/* Parallel, vectorize, bind, unroll, annotations: what they change and refuse. */
#include "unit/script.h"

#define SUM "A: T.Buffer((8, 16), \"float32\"), S: T.Buffer((8,), \"float32\")"
#define SUM_BODY                                                                                                       \
  "        x, y = T.axis.remap(\"SR\", [i, k])", "        T.reads(A[x, y])", "        T.writes(S[x])",                 \
      "        with T.init():", "            S[x] = T.float32(0.0)", "        S[x] = S[x] + A[x, y]"

static struct tir *row_sums(void) {
  return read_function(SUM, "for i, k in T.grid(8, 16):", "    with T.sblock(\"S\"):", SUM_BODY);
}

static void sets_kinds(void **state) {
  (void)state;
  struct tir *ir = row_sums();
  tir_loop i = loop_of(ir, "S", 0), k = loop_of(ir, "S", 1);
  assert_accepted(tir_parallel(ir, i, err));
  assert_accepted(tir_unroll(ir, k, err));
  assert_int_equal(tir_stmt_at(ir, i)->loop_kind, TIR_PARALLEL);
  assert_int_equal(tir_stmt_at(ir, k)->loop_kind, TIR_UNROLLED);
  assert_accepted(tir_vectorize(ir, i, err));
  assert_int_equal(tir_stmt_at(ir, i)->loop_kind, TIR_VECTORIZED);
  tir_free(ir);
}

static void binds(void **state) {
  (void)state;
  struct tir *ir = row_sums();
  assert_accepted(tir_bind(ir, loop_of(ir, "S", 0), "blockIdx.x", err));
  assert_accepted(tir_bind(ir, loop_of(ir, "S", 1), "threadIdx.x", err)); /* threads reduce together */
  assert_function(ir, SUM, "for i in T.thread_binding(8, thread=\"blockIdx.x\"):",
                  "    for k in T.thread_binding(16, thread=\"threadIdx.x\"):", "        with T.sblock(\"S\"):",
                  "            x, y = T.axis.remap(\"SR\", [i, k])", "            T.reads(A[x, y])",
                  "            T.writes(S[x])", "            with T.init():", "                S[x] = T.float32(0.0)",
                  "            S[x] = S[x] + A[x, y]");
}

static void unrolling_unbinds(void **state) {
  (void)state;
  struct tir *ir = row_sums();
  tir_loop i = loop_of(ir, "S", 0);
  assert_accepted(tir_bind(ir, i, "threadIdx.x", err) && tir_unroll(ir, i, err));
  assert_int_equal(tir_stmt_at(ir, i)->loop_kind, TIR_UNROLLED);
  assert_int_equal(tir_stmt_at(ir, i)->loop.thread, TIR_NONE);
  tir_free(ir);
}

static void refuses_reductions(void **state) {
  (void)state;
  struct tir *ir = row_sums();
  tir_loop k = loop_of(ir, "S", 1);
  assert_refused(ir, MS_LOOP_NOT_DATA_PARALLEL, tir_parallel(ir, k, err));
  assert_refused(ir, MS_LOOP_NOT_DATA_PARALLEL, tir_vectorize(ir, k, err));
  assert_refused(ir, MS_LOOP_NOT_DATA_PARALLEL, tir_bind(ir, k, "blockIdx.x", err));
  assert_refused(ir, MS_LOOP_NOT_DATA_PARALLEL, tir_bind(ir, k, "vthread.x", err));
  tir_free(ir);
}

static void refuses_unknown_threads(void **state) {
  (void)state;
  struct tir *ir = row_sums();
  assert_refused(ir, MS_THREAD_UNKNOWN, tir_bind(ir, loop_of(ir, "S", 0), "threadIdx.w", err));
  tir_free(ir);
}

static struct tir *row_of(long long extent) {
  char params[80], loop[60], iteration[60];
  snprintf(params, sizeof params, "A: T.Buffer((%lld,), \"float32\")", extent);
  snprintf(loop, sizeof loop, "for i in range(%lld):", extent);
  snprintf(iteration, sizeof iteration, "        x = T.axis.spatial(%lld, i)", extent);
  return read_function(params, loop, "    with T.sblock(\"S\"):", iteration, "        A[x] = T.float32(0.0)");
}

/* As many blocks and threads as every device launches, and one more. */
static void refuses_extents_beyond_an_axis(void **state) {
  (void)state;
  static const struct {
    const char *axis;
    int64_t most;
  } axes[] = {
      {"blockIdx.y", 65535}, {"blockIdx.z", 65535}, {"threadIdx.x", 1024}, {"threadIdx.y", 1024}, {"threadIdx.z", 64}};
  for (size_t i = 0; i < sizeof axes / sizeof *axes; i++)
    for (int more = 0; more < 2; more++) {
      struct tir *ir = row_of(axes[i].most + more);
      if (more)
        assert_refused(ir, MS_AXIS_LIMIT, tir_bind(ir, loop_of(ir, "S", 0), axes[i].axis, err));
      else
        assert_accepted(tir_bind(ir, loop_of(ir, "S", 0), axes[i].axis, err));
      tir_free(ir);
    }
  struct tir *ir = row_of(65536);
  assert_accepted(tir_bind(ir, loop_of(ir, "S", 0), "blockIdx.x", err));
  assert_accepted(tir_bind(ir, loop_of(ir, "S", 0), "vthread.x", err));
  tir_free(ir);
}

static void refuses_without_init(void **state) {
  (void)state;
  struct tir *ir = read_function(
      SUM, "for i, k in T.grid(8, 16):", "    with T.sblock(\"S\"):", "        x, y = T.axis.remap(\"SR\", [i, k])",
      "        T.reads(S[x], A[x, y])", "        T.writes(S[x])", "        S[x] = S[x] + A[x, y]");
  assert_refused(ir, MS_NOT_COMPACT_DATAFLOW, tir_parallel(ir, loop_of(ir, "S", 0), err));
  tir_free(ir);
}

static void annotates(void **state) {
  (void)state;
  struct tir *ir = row_sums();
  tir_loop i = loop_of(ir, "S", 0);
  tir_block s = block_named(ir, "S");
  tir_annotate_symbol(ir, i, tir_symbol_of(ir, "b"), tir_int(ir, TIR_T_I32, 3));
  tir_annotate_symbol(ir, i, tir_symbol_of(ir, "a"), tir_string(ir, tir_symbol_of(ir, "text")));
  tir_annotate_symbol(ir, s, tir_symbol_of(ir, "c"), tir_int(ir, TIR_T_I32, 1));
  tir_annotate_symbol(ir, s, tir_symbol_of(ir, "c"), tir_int(ir, TIR_T_I32, 2)); /* the first value stays */
  assert_function(ir, SUM, "for i in T.serial(8, annotations={\"a\": \"text\", \"b\": 3}):", "    for k in range(16):",
                  "        with T.sblock(\"S\"):", "            x, y = T.axis.remap(\"SR\", [i, k])",
                  "            T.reads(A[x, y])", "            T.writes(S[x])", "            T.sblock_attr({\"c\": 1})",
                  "            with T.init():", "                S[x] = T.float32(0.0)",
                  "            S[x] = S[x] + A[x, y]");
}

static void unannotates(void **state) {
  (void)state;
  struct tir *ir = row_sums();
  tir_loop i = loop_of(ir, "S", 0);
  assert_refused(ir, MS_ANNOTATION_NOT_FOUND, tir_unannotate(ir, i, "a", err));
  tir_annotate_symbol(ir, i, tir_symbol_of(ir, "a"), tir_int(ir, TIR_T_I32, 3));
  assert_refused(ir, MS_ANNOTATION_NOT_FOUND, tir_unannotate(ir, i, "b", err));
  assert_accepted(tir_unannotate(ir, i, "a", err));
  assert_function(ir, SUM, "for i, k in T.grid(8, 16):", "    with T.sblock(\"S\"):", SUM_BODY);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sets_kinds),
      cmocka_unit_test(binds),
      cmocka_unit_test(unrolling_unbinds),
      cmocka_unit_test(refuses_reductions),
      cmocka_unit_test(refuses_unknown_threads),
      cmocka_unit_test(refuses_extents_beyond_an_axis),
      cmocka_unit_test(refuses_without_init),
      cmocka_unit_test(annotates),
      cmocka_unit_test(unannotates),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

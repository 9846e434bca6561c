/* Tensorize: what is compared of a block and an intrinsic's description, statement by statement. */
#include "tir/analysis/analysis.h"
#include "unit/script.h"

/* `pattern`, each line of it indented; a[, c[ become `a`, `c`. */
static void append(char *text, size_t size, const char *pattern, const char *indent, const char *a, const char *c) {
  size_t n = strlen(text);
  for (bool begins = true; *pattern; pattern++) {
    assert_true(n + 64 < size);
    if (begins) n += (size_t)snprintf(text + n, size - n, "%s", indent);
    begins = *pattern == '\n';
    if (pattern[0] == '@')
      n += (size_t)snprintf(text + n, size - n, "%s", *++pattern == 'a' ? a : c);
    else
      text[n++] = *pattern, text[n] = 0;
  }
}

static struct tir *read_text(const char *text) {
  ms_error err = {0};
  struct tir *ir = tir_read(text, strlen(text), "test", &err);
  if (!ir) fail_msg("%s\n%s", err.message, text);
  return ir;
}

/* A function of whole rows, and one that does `pattern` for each of eight. */
static struct tir *read_row(const char *pattern) {
  char text[4096] = "@T.prim_func(s_tir=True)\n"
                    "def main(a: T.Buffer((4,), \"float32\"), c: T.Buffer((4,), \"float32\")):\n"
                    "    with T.sblock(\"root\"):\n        T.reads(a[0:4])\n        T.writes(c[0:4])\n";
  append(text, sizeof text, pattern, "        ", "a[", "c[");
  return read_text(text);
}

static struct tir *read_rows(const char *pattern) {
  char text[4096] = "@T.prim_func(s_tir=True)\n"
                    "def main(A: T.Buffer((8, 4), \"float32\"), C: T.Buffer((8, 4), \"float32\")):\n"
                    "    for i in range(8):\n        with T.sblock(\"row\"):\n            v_i = T.axis.spatial(8, i)\n"
                    "            T.reads(A[v_i, 0:4])\n            T.writes(C[v_i, 0:4])\n";
  append(text, sizeof text, pattern, "            ", "A[v_i, ", "C[v_i, ");
  return read_text(text);
}

#define LOOP(range, binding, more, statement)                                                                          \
  "for j in " range ":\n    with T.sblock(\"x\"):\n        v_j = " binding "\n" more "        T.reads(@av_j])\n"       \
  "        T.writes(@cv_j])\n        " statement "\n"
#define PLAIN(statement) LOOP("range(4)", "T.axis.spatial(4, j)", "", statement)
#define TWICE            "@cv_j] = @av_j] * T.float32(2.0)"
#define WHOLE(statement)                                                                                               \
  "for j in range(4):\n    with T.sblock(\"x\"):\n        v_j = T.axis.spatial(4, j)\n        T.reads(@a0:4])\n"       \
  "        T.writes(@c0:4])\n        " statement "\n"
#define CALL(name, index) "T.evaluate(T.call_extern(\"int32\", \"" name "\", " index "))"

static const struct {
  const char *own, *described, *words; /* NULL: it matches */
} rows[] = {
    {PLAIN(TWICE), PLAIN(TWICE), NULL},
    {PLAIN("@cv_j] = T.Cast(\"float32\", v_j)"), PLAIN("@cv_j] = T.Cast(\"float32\", T.Cast(\"int64\", v_j))"), NULL},
    {PLAIN("@cv_j] = T.Cast(\"float32\", v_j * 2000000000)"),
     PLAIN("@cv_j] = T.Cast(\"float32\", T.Cast(\"int64\", v_j) * T.int64(2000000000))"), "another value is written"},
    {PLAIN(TWICE), LOOP("T.unroll(4)", "T.axis.spatial(4, j)", "", TWICE), "a loop is of another kind"},
    {LOOP("T.serial(4, annotations={\"x\": 1})", "T.axis.spatial(4, j)", "", TWICE),
     LOOP("T.serial(4, annotations={\"x\": 1})", "T.axis.spatial(4, j)", "", TWICE), NULL},
    {LOOP("T.serial(4, annotations={\"x\": 1})", "T.axis.spatial(4, j)", "", TWICE),
     LOOP("T.serial(4, annotations={\"x\": 2})", "T.axis.spatial(4, j)", "", TWICE), "a loop is of another kind"},
    {LOOP("T.serial(4, annotations={\"x\": 1})", "T.axis.spatial(4, j)", "", TWICE),
     LOOP("T.serial(4, annotations={\"y\": 1})", "T.axis.spatial(4, j)", "", TWICE), "a loop is of another kind"},
    {PLAIN(TWICE), LOOP("range(3)", "T.axis.spatial(4, j)", "", TWICE), "a loop has another range"},
    {PLAIN(TWICE), LOOP("range(4)", "T.axis.spatial(4, 3 - j)", "", TWICE), "a block has other iterations"},
    {PLAIN(TWICE), LOOP("range(4)", "T.axis.opaque(4, j)", "", TWICE), "a block has other iterations"},
    {PLAIN(TWICE), LOOP("range(4)", "T.axis.spatial(4, j)", "        T.where(j < 3)\n", TWICE),
     "a block has another predicate"},
    {LOOP("range(4)", "T.axis.spatial(4, j)", "        T.where(j < 3)\n", TWICE),
     LOOP("range(4)", "T.axis.spatial(4, j)", "        T.where(j < 3)\n", TWICE), NULL},
    {LOOP("range(4)", "T.axis.spatial(4, j)", "        q = T.sblock_alloc_buffer((2,))\n", TWICE),
     LOOP("range(4)", "T.axis.spatial(4, j)", "        q = T.sblock_alloc_buffer((2,))\n", TWICE), NULL},
    {LOOP("range(4)", "T.axis.spatial(4, j)", "        q = T.sblock_alloc_buffer((2,))\n", TWICE),
     LOOP("range(4)", "T.axis.spatial(4, j)", "        q = T.sblock_alloc_buffer((3,))\n", TWICE), "allocates"},
    {LOOP("range(4)", "T.axis.spatial(4, j)", "        q = T.sblock_alloc_buffer((2,))\n", TWICE),
     LOOP("range(4)", "T.axis.spatial(4, j)", "        q = T.sblock_alloc_buffer((2,), \"int8\")\n", TWICE),
     "allocates"},
    {LOOP("range(4)", "T.axis.spatial(4, j)", "        q = T.sblock_alloc_buffer((2,))\n", TWICE), PLAIN(TWICE),
     "allocates"},
    {PLAIN(TWICE), WHOLE(TWICE), "a block writes other regions"},
    {WHOLE(TWICE), WHOLE("@c3 - v_j] = @av_j] * T.float32(2.0)"), "another element is written"},
    {PLAIN(TWICE), PLAIN("@cv_j] = @av_j] * T.float32(3.0)"), "another value is written"},
    {PLAIN("@cv_j] = T.pow(@av_j], T.float32(2.0))"), PLAIN("@cv_j] = T.pow(@av_j], T.float32(2.0))"), NULL},
    {PLAIN("@cv_j] = T.pow(@av_j], T.float32(2.0))"), PLAIN("@cv_j] = T.pow(@av_j], T.float32(3.0))"),
     "another value is written"},
    {WHOLE("@cv_j] = T.exp(@av_j])"), WHOLE("@cv_j] = T.exp(@a3 - v_j])"), "another value is written"},
    {PLAIN("if v_j < 3:\n            " TWICE), PLAIN("if v_j < 3:\n            " TWICE), NULL},
    {PLAIN("if v_j < 3:\n            " TWICE), PLAIN("if v_j < 2:\n            " TWICE), "there is another condition"},
    {PLAIN("if v_j < 3:\n            " TWICE),
     PLAIN("if v_j < 3:\n            " TWICE "\n        else:\n            @cv_j] = T.float32(0.0)"),
     "more statements, or fewer"},
    {PLAIN("t: T.let[T.float32] = @av_j] * T.float32(2.0)\n        @cv_j] = t"),
     PLAIN("t: T.let[T.float32] = @av_j] * T.float32(2.0)\n        @cv_j] = t"), NULL},
    {PLAIN("t: T.let[T.float32] = @av_j] * T.float32(2.0)\n        @cv_j] = t"),
     PLAIN("t: T.let[T.float32] = @av_j] * T.float32(4.0)\n        @cv_j] = t"), "another value is bound"},
    {PLAIN(CALL("f", "v_j") "\n        " TWICE), PLAIN(CALL("f", "v_j") "\n        " TWICE), NULL},
    {PLAIN(CALL("f", "v_j") "\n        " TWICE), PLAIN(CALL("g", "v_j") "\n        " TWICE), "there is another call"},
    {PLAIN(CALL("f", "v_j") "\n        " TWICE), PLAIN(CALL("f", "v_j + 1") "\n        " TWICE),
     "there is another call"},
    {PLAIN(TWICE), PLAIN(TWICE "\n        " TWICE), "more statements, or fewer"},
    {PLAIN(TWICE), PLAIN(CALL("f", "v_j") "\n        " TWICE), "a statement is of another kind"},
    {PLAIN("while @cv_j] < T.float32(0.0):\n            " TWICE),
     PLAIN("while @cv_j] < T.float32(0.0):\n            " TWICE), "is not compared"},
};

static void compares_statements(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct tir *own = read_rows(rows[i].own), *described = read_row(rows[i].described),
               *implementation = read_row("@c0] = @a0]\n");
    ms_error err = {0};
    char *before = tir_print(own, TIR_NONE, 0);
    bool accepted = tir_tensorize(own, block_named(own, "row"), described, implementation, true, &err);
    char *after = tir_print(own, TIR_NONE, 0);
    if (accepted != !rows[i].words) fail_msg("row %zu: %s", i, accepted ? "accepted" : err.message);
    if (!accepted) {
      assert_int_equal(err.code, MS_TENSORIZE_MISMATCH);
      if (!strstr(err.message, rows[i].words)) fail_msg("row %zu: %s", i, err.message);
      assert_string_equal(before, after);
    } else {
      assert_null(strstr(after, "\"x\""));
      if (!tir_verify(own, &err)) fail_msg("row %zu: %s", i, err.message);
    }
    free(before), free(after);
    tir_free(own), tir_free(described), tir_free(implementation);
  }
}

/* A loop that does not match is no block afterwards either. */
static void a_refused_loop_stays(void **state) {
  (void)state;
  struct tir *own = read_rows(PLAIN(TWICE)), *described = read_row(PLAIN("@cv_j] = @av_j] * T.float32(3.0)"));
  assert_refused(own, MS_TENSORIZE_MISMATCH, tir_tensorize(own, loop_of(own, "x", 0), described, described, true, err));
  tir_free(own), tir_free(described);
}

static void the_root_is_refused(void **state) {
  (void)state;
  struct tir *own = read_rows(PLAIN(TWICE)), *described = read_row(PLAIN(TWICE));
  assert_refused(own, MS_ROOT_BLOCK, tir_tensorize(own, tir_root_block(own, 1), described, described, true, err));
  tir_free(own), tir_free(described);
}

/* Both functions of an intrinsic have the same parameters, and their roots say what they do with them. */
static void intrinsics_are_checked(void **state) {
  (void)state;
  struct tir *own = read_rows(PLAIN(TWICE)), *described = read_row(PLAIN(TWICE));
  struct tir *one = read_function("a: T.Buffer((4,), \"float32\")", "with T.sblock(\"root\"):", "    T.reads(a[0:4])",
                                  "    T.writes()", "    T.evaluate(0)");
  struct tir *silent =
      read_function("a: T.Buffer((4,), \"float32\"), c: T.Buffer((4,), \"float32\")",
                    "with T.sblock(\"root\"):", "    T.reads(a[0:4])", "    T.writes()", "    T.evaluate(0)");
  assert_refused(own, MS_BAD_INTRINSIC, tir_tensorize(own, block_named(own, "row"), described, one, true, err));
  assert_refused(own, MS_BAD_INTRINSIC, tir_tensorize(own, block_named(own, "row"), described, silent, true, err));
  tir_free(own), tir_free(described), tir_free(one), tir_free(silent);
}

static void the_implementation_comes_whole(void **state) {
  (void)state;
  struct tir *own = read_rows(PLAIN(TWICE)), *described = read_row(PLAIN(TWICE));
  struct tir *implementation = read_row("T.sblock_attr({\"lanes\": 4})\nq = T.sblock_alloc_buffer((4,))\n"
                                        "for j in T.vectorized(4):\n    q[j] = @aj]\n"
                                        "for j in T.vectorized(4):\n    @cj] = q[j] + q[j]\n");
  assert_accepted(tir_tensorize(own, block_named(own, "row"), described, implementation, true, err));
  tir_free(described), tir_free(implementation);
  assert_function(own, "A: T.Buffer((8, 4), \"float32\"), C: T.Buffer((8, 4), \"float32\")",
                  "for i in range(8):", "    with T.sblock(\"row\"):", "        v_i = T.axis.spatial(8, i)",
                  "        T.reads(A[v_i, 0:4])", "        T.writes(C[v_i, 0:4])",
                  "        T.sblock_attr({\"lanes\": 4})", "        q = T.sblock_alloc_buffer((4,))",
                  "        a = T.match_buffer(A[v_i, 0:4], (4,))", "        c = T.match_buffer(C[v_i, 0:4], (4,))",
                  "        for j in T.vectorized(4):", "            q[j] = a[j]",
                  "        for j in T.vectorized(4):", "            c[j] = q[j] + q[j]");
}

/* What is stored becomes its square, so many times over: of two to that power factors, all shared. */
static void square(struct tir *ir, const char *block, int times) {
  tir_stmt store = tir_only_store(ir, block_named(ir, block), TIR_BODY);
  tir_expr value = tir_as(ir, store, TIR_STORE)->store.value;
  for (int i = 0; i < times; i++) value = tir_binary(ir, TIR_MUL, value, value);
  tir_as(ir, store, TIR_STORE)->store.value = value;
}

/* Neither takes the time of all orders that factors can have. */
static void shared_factors_are_compared_in_time(void **state) {
  (void)state;
  enum { TIMES = 24 };
  struct tir *own = read_rows(PLAIN(TWICE)), *described = read_row(PLAIN("@cv_j] = @av_j] * T.float32(3.0)"));
  ms_error err = {0};
  square(own, "x", TIMES), square(described, "x", TIMES);
  assert_false(tir_tensorize(own, block_named(own, "row"), described, described, true, &err));
  assert_int_equal(err.code, MS_TENSORIZE_MISMATCH);
  tir_free(described), described = read_row(PLAIN("@cv_j] = T.float32(2.0) * @av_j]"));
  square(described, "x", TIMES);
  struct tir *implementation = read_row("@c0] = @a0]\n");
  assert_accepted(tir_tensorize(own, block_named(own, "row"), described, implementation, true, err));
  tir_free(own), tir_free(described), tir_free(implementation);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(compares_statements),    cmocka_unit_test(the_implementation_comes_whole),
      cmocka_unit_test(a_refused_loop_stays),   cmocka_unit_test(the_root_is_refused),
      cmocka_unit_test(intrinsics_are_checked), cmocka_unit_test(shared_factors_are_compared_in_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Structural equality and hashes: what does not count, and the first difference where something does. */
#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LINES(...) ((const char *const[]){__VA_ARGS__, NULL})

static struct tir *read_lines(const char *const *lines) {
  char text[8192];
  size_t n = 0;
  for (; *lines; lines++) n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", *lines);
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, n, "f.py", &err);
  if (!ir) fail_msg("%s", err.message);
  return ir;
}

static void check_same(const char *const *x, const char *const *y) {
  struct tir *a = read_lines(x), *b = read_lines(y);
  char why[400];
  if (!tir_structural_equal(a, 1, b, 1, why, sizeof why)) fail_msg("%s", why);
  assert_true(tir_structural_equal(b, 1, a, 1, NULL, 0));
  assert_true(tir_structural_hash(a, 1) == tir_structural_hash(b, 1));
  tir_free(a);
  tir_free(b);
}

static void check_different(const char *const *x, const char *const *y, const char *reason) {
  struct tir *a = read_lines(x), *b = read_lines(y);
  char why[400];
  assert_false(tir_structural_equal(a, 1, b, 1, why, sizeof why));
  assert_string_equal(why, reason);
  assert_false(tir_structural_equal(b, 1, a, 1, NULL, 0));
  assert_true(tir_structural_hash(a, 1) != tir_structural_hash(b, 1));
  tir_free(a);
  tir_free(b);
}

/* A function of three loops around one block; the parts that the tests change. */
#define MATMUL(params, allocs, loops, name, bindings, reads, init, body)                                               \
  LINES("@T.prim_func(s_tir=True)", "def main(" params "):", allocs, "    for " loops ":",                             \
        "        with T.sblock(\"" name "\"):", "            vi, vj, vk = T.axis.remap(\"SSR\", " bindings ")",        \
        "            T.reads(" reads ")", "            T.writes(C[vi, vj])",                                           \
        "            with T.init():", "                C[vi, vj] = " init, "            C[vi, vj] = " body)

#define PARAMS "A: T.Buffer((8, 4)), B: T.Buffer((4, 8)), C: T.Buffer((8, 8))"
#define READS  "A[vi, vk], B[vk, vj]"
#define BODY   "C[vi, vj] + A[vi, vk] * B[vk, vj]"

static const char *const *const base =
    MATMUL(PARAMS, "    pass", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]", READS, "T.float32(0)", BODY);

static void names_do_not_count(void **state) {
  (void)state;
  check_same(base, base);
  check_same(base,
             LINES("@T.prim_func(s_tir=True)",
                   "def other(X: T.Buffer((8, 4)), Y: T.Buffer((4, 8)), Z: T.Buffer((8, 8))):",
                   "    for a in range(8):", "        for b, c in T.grid(8, 4):", "            with T.sblock(\"C\"):",
                   "                p, q, s = T.axis.remap(\"SSR\", [a, b, c])",
                   "                T.reads(X[p, s], Y[s, q])", "                T.writes(Z[p, q])",
                   "                with T.init():", "                    Z[p, q] = T.float32(0)",
                   "                Z[p, q] = Z[p, q] + X[p, s] * Y[s, q]"));
}

static void operands_commute(void **state) {
  (void)state;
  check_same(base, MATMUL(PARAMS, "    pass", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]", READS, "T.float32(0)",
                          "B[vk, vj] * A[vi, vk] + C[vi, vj]"));
#define STORE(line)                                                                                                    \
  LINES("@T.prim_func(s_tir=True)", "def main(A: T.Buffer((99,), \"int32\"), n: T.int32, m: T.int32):", line)
  check_same(STORE("    A[n * 4 + m + 3] = 1"), STORE("    A[3 + m + 4 * n] = 1"));
  check_same(STORE("    A[n * 4 + (m - 1) * 2] = 1"), STORE("    A[m * 2 - 2 + n + n * 3] = 1"));
  check_same(STORE("    A[n - m] = T.max(n, m)"), STORE("    A[n + m * -1] = T.max(m, n)"));
  check_same(STORE("    A[n] = T.Select(n < m and m == 3, 1, 2)"),
             STORE("    A[n] = T.Select(3 == m and n < m, 1, 2)"));
  check_same(STORE("    A[(n + m) // 4] = 1"), STORE("    A[(m + n) // 4] = 1"));
  check_same(STORE("    A[T.Mul(0, 16) + n] = 1"), STORE("    A[n] = 1"));
  check_different(STORE("    A[n - m] = 1"), STORE("    A[m - n] = 1"), "function main: store to A: n - m, m - n");
  check_different(STORE("    A[n // 4] = 1"), STORE("    A[n // 5] = 1"), "function main: store to A: n // 4, n // 5");
  check_different(STORE("    A[n // m] = 1"), STORE("    A[m // n] = 1"), "function main: store to A: n // m, m // n");
  check_different(STORE("    A[n] = T.Select(n < m, 1, 2)"), STORE("    A[n] = T.Select(m < n, 1, 2)"),
                  "function main: store to A: T.Select(n < m, 1, 2), T.Select(m < n, 1, 2)");
  check_different(STORE("    A[n] = T.call_extern(\"int32\", \"f\", n)"),
                  STORE("    A[n] = T.call_extern(\"int32\", \"g\", n)"),
                  "function main: store to A: T.call_extern(\"int32\", \"f\", n), T.call_extern(\"int32\", \"g\", n)");
}

static void differences_are_named(void **state) {
  (void)state;
  check_different(base,
                  MATMUL("A: T.Buffer((8, 4)), B: T.Buffer((4, 8)), C: T.Buffer((8, 8), \"float16\")", "    pass",
                         "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]", READS, "T.float16(0)", BODY),
                  "buffer C: float32, float16");
  check_different(base,
                  MATMUL(PARAMS ", D: T.Buffer((1,))", "    pass", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]",
                         READS, "T.float32(0)", BODY),
                  "3 parameters, 4");
  check_different(
      base, MATMUL(PARAMS, "    pass", "i, k, j in T.grid(8, 4, 8)", "C", "[i, j, k]", READS, "T.float32(0)", BODY),
      "loop j: 8, 4");
  check_different(
      base, MATMUL(PARAMS, "    pass", "i, j, k in T.grid(8, 8, 4)", "D", "[i, j, k]", READS, "T.float32(0)", BODY),
      "block C, D");
  check_different(
      base, MATMUL(PARAMS, "    pass", "i, j, k in T.grid(8, 8, 4)", "C", "[j, i, k]", READS, "T.float32(0)", BODY),
      "block C: binding 0: i, j");
  check_different(
      base,
      MATMUL(PARAMS, "    pass", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]", "A[vi, vk]", "T.float32(0)", BODY),
      "block C: reads: 2 regions, 1");
  check_different(
      base, MATMUL(PARAMS, "    pass", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]", READS, "T.float32(1)", BODY),
      "block C: store to C: T.float32(0.0), T.float32(1.0)");
  check_different(base,
                  MATMUL(PARAMS, "    pass", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]", READS, "T.float32(0)",
                         "C[vi, vj] - A[vi, vk] * B[vk, vj]"),
                  "block C: store to C: C[vi, vj] + A[vi, vk] * B[vk, vj], C[vi, vj] - A[vi, vk] * B[vk, vj]");
  check_different(base,
                  MATMUL(PARAMS, "    T.func_attr({\"a\": 1})", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]", READS,
                         "T.float32(0)", BODY),
                  "function main: 0 annotations, 1");
  check_different(base,
                  MATMUL(PARAMS, "    X = T.sblock_alloc_buffer((4,))", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]",
                         READS, "T.float32(0)", BODY),
                  "block root: 0 buffers allocated, 1");
  check_different(
      base,
      MATMUL(PARAMS, "    T.evaluate(0)", "i, j, k in T.grid(8, 8, 4)", "C", "[i, j, k]", READS, "T.float32(0)", BODY),
      "block root: loop, evaluate");
}

#define TWO(first, second, x, y)                                                                                       \
  LINES("@T.prim_func(s_tir=True)", "def main(A: T.Buffer((8,))):", "    " first, "    " second,                       \
        "    for i in range(8):", "        with T.sblock(\"x\"):", "            vi = T.axis.spatial(8, i)",            \
        "            " x "[vi] = A[vi]",                                                                               \
        "    for i in range(8):", "        with T.sblock(\"y\"):", "            vi = T.axis.spatial(8, i)",            \
        "            " y "[vi] = " x "[vi]")

/* The order in which a block allocates its buffers does not count; which of them is used where does. */
static void allocations_are_a_set(void **state) {
  (void)state;
  const char *const *one = TWO("X = T.sblock_alloc_buffer((8,))", "Y = T.sblock_alloc_buffer((8,))", "X", "Y");
  check_same(one, TWO("Y = T.sblock_alloc_buffer((8,))", "X = T.sblock_alloc_buffer((8,))", "X", "Y"));
  check_same(one, TWO("P = T.sblock_alloc_buffer((8,))", "Q = T.sblock_alloc_buffer((8,))", "Q", "P"));
  check_different(one, TWO("X = T.sblock_alloc_buffer((8,))", "Y = T.sblock_alloc_buffer((8,))", "X", "X"),
                  "block y: writes: buffer Y, X");
  check_different(one,
                  TWO("X = T.sblock_alloc_buffer((8,))", "Y = T.sblock_alloc_buffer((8,), scope=\"local\")", "X", "Y"),
                  "buffer Y: scope global, local");
}

#define LOOP(header)                                                                                                   \
  LINES("@T.prim_func(s_tir=True)", "def main(A: T.Buffer((8,))):", "    for i in " header ":", "        A[i] = 1")

static void loops_and_annotations(void **state) {
  (void)state;
  check_same(LOOP("T.serial(8, annotations={\"a\": 1, \"b\": {\"x\": 1, \"y\": [2]}})"),
             LOOP("T.serial(8, annotations={\"b\": {\"y\": [2], \"x\": 1}, \"a\": T.int64(1)})"));
  check_different(LOOP("range(8)"), LOOP("T.parallel(8)"), "loop i: kind");
  check_different(LOOP("T.thread_binding(8, thread=\"threadIdx.x\")"),
                  LOOP("T.thread_binding(8, thread=\"threadIdx.y\")"), "loop i: thread");
  check_different(LOOP("T.serial(8, annotations={\"a\": 1})"), LOOP("T.serial(8, annotations={\"a\": 2})"),
                  "loop i: annotation \"a\": 1, 2");
  check_different(LOOP("T.serial(8, annotations={\"a\": 1})"), LOOP("T.serial(8, annotations={\"b\": 1})"),
                  "loop i: annotation \"a\", \"b\"");
  check_different(LOOP("T.serial(8, annotations={\"a\": [1, 2]})"), LOOP("T.serial(8, annotations={\"a\": [2, 1]})"),
                  "loop i: annotation \"a\": [1, 2], [2, 1]");
  check_different(LOOP("T.serial(0, 8)"), LOOP("T.serial(1, 8)"), "loop i: 0, 1");
}

/* A module hashes by its functions, whatever their order; interning in another order changes nothing. */
static void modules(void **state) {
  (void)state;
#define F(name, value)                                                                                                 \
  "    @T.prim_func(s_tir=True)", "    def " name "(A: T.Buffer((8,), \"int32\")):", "        A[0] = " value
  struct tir *a = read_lines(LINES("@I.ir_module", "class M:", F("f", "1"), F("g", "2")));
  struct tir *b = read_lines(LINES("@I.ir_module", "class N:", F("g", "2"), F("f", "1")));
  struct tir *c = read_lines(LINES("@I.ir_module", "class N:", F("g", "1"), F("f", "2")));
  char why[200];
  assert_true(tir_structural_equal(a, TIR_NONE, b, TIR_NONE, NULL, 0));
  assert_true(tir_structural_hash(a, TIR_NONE) == tir_structural_hash(b, TIR_NONE));
  assert_false(tir_structural_equal(a, TIR_NONE, c, TIR_NONE, why, sizeof why));
  assert_string_equal(why, "function f: store to A: 1, 2");
  assert_true(tir_structural_hash(a, TIR_NONE) != tir_structural_hash(c, TIR_NONE));
  assert_true(tir_structural_equal(a, 1, b, 2, NULL, 0));
  struct tir *copy = tir_new();
  tir_copy(copy, a);
  for (int i = 0; i < 100; i++) tir_int(copy, TIR_T_I64, i);
  assert_true(tir_structural_hash(copy, TIR_NONE) == tir_structural_hash(a, TIR_NONE));
  tir_free(copy);
  tir_free(a);
  tir_free(b);
  tir_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(names_do_not_count),    cmocka_unit_test(operands_commute),
                                     cmocka_unit_test(differences_are_named), cmocka_unit_test(allocations_are_a_set),
                                     cmocka_unit_test(loops_and_annotations), cmocka_unit_test(modules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

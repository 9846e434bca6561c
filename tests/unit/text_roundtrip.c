/* The text form: what is read and printed is read again as the same text. */
#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What one text becomes when it is printed. */
static char *printed(const char *text) {
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, strlen(text), "test.py", &err);
  if (!ir) fail_msg("%s", err.message);
  char *out = tir_print(ir, TIR_NONE, TIR_PRINT_FUNCTION);
  tir_free(ir);
  return out;
}

static void check(const char *text, const char *expected) {
  char *once = printed(text);
  assert_string_equal(once, expected);
  char *twice = printed(once);
  assert_string_equal(twice, once);
  free(once);
  free(twice);
}

#define HEAD "# from tvm.script import tirx as T\n\n"

static void test_matmul(void **state) {
  (void)state;
  const char *text = HEAD "@T.prim_func(s_tir=True)\n"
                          "def main(A: T.Buffer((16, 8), \"float32\"), B: T.Buffer((8, 32), \"float32\"), "
                          "C: T.Buffer((16, 32), \"float32\")):\n"
                          "    T.func_attr({\"tirx.noalias\": True})\n"
                          "    # with T.sblock(\"root\"):\n"
                          "    for i, j, k in T.grid(16, 32, 8):\n"
                          "        with T.sblock(\"C\"):\n"
                          "            v_i, v_j, v_k = T.axis.remap(\"SSR\", [i, j, k])\n"
                          "            T.reads(A[v_i, v_k], B[v_k, v_j])\n"
                          "            T.writes(C[v_i, v_j])\n"
                          "            with T.init():\n"
                          "                C[v_i, v_j] = T.float32(0.0)\n"
                          "            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]\n";
  check(text, text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_matmul)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

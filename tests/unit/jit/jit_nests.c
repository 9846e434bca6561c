/* Functions of many equal nests: one more is a call more, in machine code and in C, and not its code once more. What
 * they compute: case/lower/outline/. */
#include "unit/script.h"

#include "jit/jit.h"

enum { MOST_NESTS = 30, NEST_TEXT = 400 }; /* characters of a nest */

/* A product of 16 x 16 by X, so many times; each begins with a loop of zeros. */
static struct tir *read_chain(int nests) {
  char *text = malloc((MOST_NESTS + 2) * NEST_TEXT), *at = text;
  assert_non_null(text);
  at += sprintf(at,
                "@T.prim_func(s_tir=True)\ndef main(T0: T.Buffer((16, 16), \"float32\"), "
                "X: T.Buffer((16, 16), \"float32\"), T%d: T.Buffer((16, 16), \"float32\")):\n",
                nests);
  for (int n = 1; n < nests; n++) at += sprintf(at, "    T%d = T.alloc_buffer((16, 16))\n", n);
  for (int n = 1; n <= nests; n++)
    at += sprintf(at,
                  "    for i, j in T.grid(16, 16):\n        T%d[i, j] = T.float32(0)\n"
                  "    for k in range(16):\n        for i in T.unroll(16):\n            for j in T.vectorized(16):\n"
                  "                T%d[i, j] = T%d[i, j] + T%d[i, k] * X[k, j]\n",
                  n, n, n, n - 1);
  assert_true(at < text + (MOST_NESTS + 2) * NEST_TEXT);
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, strlen(text), "chain.py", &err);
  if (!ir) fail_msg("%s\n%s", err.message, text);
  free(text);
  return ir;
}

/* Bytes of its object file. */
static size_t object_bytes(int nests) {
  struct jit_target target;
  struct tir *ir = read_chain(nests);
  assert_accepted(jit_target_parse("llvm -mcpu=x86-64-v3 -num-cores=1", &target, err));
  ms_error err = {.message = ""};
  struct jit_code *code = jit_compile(ir, tir_find_func(ir, "main"), &target, NULL, &err);
  if (!code) fail_msg("%s", err.message);
  size_t bytes;
  jit_code_object(code, &bytes);
  jit_code_free(code);
  tir_free(ir);
  return bytes;
}

/* Two nests are as they are written. */
static void one_more_is_a_call(void **state) {
  (void)state;
  size_t one = object_bytes(2) - object_bytes(1), more = object_bytes(MOST_NESTS) - object_bytes(MOST_NESTS / 2);
  size_t call = more / (MOST_NESTS / 2);
  printf("a nest takes %zu bytes, a call of its function %zu\n", one, call);
  assert_true(call < one / 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_more_is_a_call)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

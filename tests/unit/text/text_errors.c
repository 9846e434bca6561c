/* What cannot be read is refused with its place: the first line of the message starts with line:column. */
#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct refusal {
  enum ms_code code;
  const char *place, *says, *text;
};

#define HEAD                                                                                                           \
  "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((8, 8), \"float32\"), B: T.Buffer((8,), \"int32\"), n: T.int32):\n"
#define BLOCK HEAD "    for i, j in T.grid(8, 8):\n        with T.sblock(\"x\"):\n"

static const struct refusal refusals[] = {
    {MS_TEXT_SYNTAX, "1:1", "no function", ""},
    {MS_TEXT_SYNTAX, "1:1", "expected @T.prim_func", "def main():\n    pass\n"},
    {MS_TEXT_UNSUPPORTED, "1:4", "expected T.prim_func or I.ir_module", "@T.jit\ndef main():\n    pass\n"},
    {MS_TEXT_SYNTAX, "2:5", "the name of the function", "@T.prim_func\ndef (A):\n    pass\n"},
    {MS_TEXT_SYNTAX, "2:11", "and the type of the parameter", "@T.prim_func\ndef main(A):\n    pass\n"},
    {MS_TEXT_SYNTAX, "3:1", "an indented suite", "@T.prim_func\ndef main():\npass\n"},
    {MS_TEXT_SYNTAX, "4:5", "indented more than the ones above", "@T.prim_func\ndef main():\n  pass\n    pass\n"},
    {MS_TEXT_SYNTAX, "4:3", "matches no line above", HEAD "    B[0] = 1\n  B[1] = 2\n"},
    {MS_TEXT_SYNTAX, "4:1", "ends inside a bracket", HEAD "    B[0] = (1 + 2\n"},
    {MS_TEXT_SYNTAX, "3:17", "closes none", HEAD "    B[0] = 1 + 2)\n"},
    {MS_TEXT_SYNTAX, "3:12", "no end on its line", HEAD "    B[0] = \"abc\n"},
    {MS_TEXT_SYNTAX, "3:14", "no meaning", HEAD "    B[0] = 1 $ 2\n"},
    {MS_TEXT_SYNTAX, "3:12", "does not fit in 64 bits", HEAD "    B[0] = 99999999999999999999\n"},
    {MS_TEXT_TYPE, "3:12", "does not fit in 64 bits", HEAD "    B[0] = 9223372036854775808\n"},
    {MS_TEXT_SYNTAX, "3:14", "the end of the line", HEAD "    B[0] = 1 2\n"},
    {MS_TEXT_SYNTAX, "3:15", "expected an expression", HEAD "    B[0] = 1 +\n"},
    {MS_TEXT_NAME, "3:12", "\"x\" is not defined", HEAD "    B[0] = x\n"},
    {MS_TEXT_NAME, "5:12", "\"i\" is not defined", HEAD "    for i in range(8):\n        B[i] = 1\n    B[0] = i\n"},
    {MS_TEXT_NAME, "7:12", "\"vi\" is not defined",
     BLOCK "            vi, vj = T.axis.remap(\"SS\", [i, j])\n            A[vi, vj] = T.float32(0)\n    B[0] = vi\n"},
    {MS_TEXT_TYPE, "3:6", "2 dimensions, 1 are indexed", HEAD "    A[0] = T.float32(1)\n"},
    {MS_TEXT_TYPE, "3:10", "only 1 dimensions", HEAD "    B[0, 1] = 1\n"},
    {MS_TEXT_TYPE, "3:7", "expected an integer index", HEAD "    B[A[0, 0]] = 1\n"},
    {MS_TEXT_TYPE, "3:17", "do not go together", HEAD "    B[0] = B[0] + \"x\"\n"},
    {MS_TEXT_TYPE, "3:17", "ambiguous", HEAD "    B[0] = B[0] / 2\n"},
    {MS_TEXT_TYPE, "3:17", "division by zero", HEAD "    B[0] = B[0] // 0\n"},
    {MS_TEXT_TYPE, "3:14", "division by zero", HEAD "    B[0] = 1 // 0\n"},
    {MS_TEXT_TYPE, "3:8", "expected a condition", HEAD "    if n:\n        B[0] = 1\n"},
    {MS_TEXT_TYPE, "3:14", "conditions on both sides", HEAD "    B[0] = n and n\n"},
    {MS_TEXT_TYPE, "3:19", "does not fit in int8", HEAD "    B[0] = T.int8(300)\n"},
    {MS_TEXT_TYPE, "3:12", "1 arguments", HEAD "    B[0] = T.abs(n, n)\n"},
    {MS_TEXT_TYPE, "3:19", "no data type", HEAD "    B[0] = T.Cast(\"int33\", n)\n"},
    {MS_TEXT_SYNTAX, "3:12", "cannot stand here", HEAD "    B[0] = T.reads(A[0, 0])\n"},
    {MS_TEXT_SYNTAX, "3:18", "expected ',' or ')'", HEAD "    T.evaluate(1 2)\n"},
    {MS_TEXT_UNSUPPORTED, "3:17", "'**'", HEAD "    B[0] = B[0] ** 2\n"},
    {MS_TEXT_UNSUPPORTED, "3:14", "T.if_then_else", HEAD "    B[0] = 1 if n else 2\n"},
    {MS_TEXT_UNSUPPORTED, "3:5", "cannot stand in a function", HEAD "    def f():\n        pass\n"},
    {MS_TEXT_SYNTAX, "3:5", "only a name or an element", HEAD "    n > n = 1\n"},
    {MS_TEXT_SYNTAX, "3:5", "only a name or an element", HEAD "    n + n = 1\n"},
    {MS_TEXT_SYNTAX, "3:14", "kind of loop", HEAD "    for i in T.foo(8):\n        pass\n"},
    {MS_TEXT_SYNTAX, "3:14", "expected range", HEAD "    for i in 8:\n        pass\n"},
    {MS_TEXT_SYNTAX, "3:5", "2 names for 3 loops", HEAD "    for i, j in T.grid(1, 2, 3):\n        pass\n"},
    {MS_TEXT_EXTENT, "3:21", "extent of this loop is -1", HEAD "    for i in T.grid(-1):\n        pass\n"},
    {MS_TEXT_EXTENT, "3:14", "extent of this loop is -3", HEAD "    for i in range(5, 2):\n        pass\n"},
    {MS_TEXT_UNSUPPORTED, "3:26", "step", HEAD "    for i in range(0, 8, 2):\n        pass\n"},
    {MS_TEXT_TYPE, "3:14", "threadIdx", HEAD "    for i in T.thread_binding(8):\n        pass\n"},
    {MS_TEXT_EXTENT, "2:23", "extent of a dimension is -2",
     "@T.prim_func\ndef main(A: T.Buffer((-2, 4), \"int8\")):\n    pass\n"},
    {MS_TEXT_EXTENT, "2:23", "extent of a dimension is -4",
     "@T.prim_func\ndef main(A: T.Buffer((-4,), \"int8\")):\n    pass\n"},
    {MS_TEXT_EXTENT, "2:10", "too large for memory",
     "@T.prim_func\ndef main(A: T.Buffer((1000000, 1000000, 1000), \"int8\")):\n    pass\n"},
    {MS_TEXT_EXTENT, "2:23", "too large",
     "@T.prim_func\ndef main(A: T.Buffer((9000000000000000000,), \"int8\")):\n    pass\n"},
    {MS_TEXT_NAME, "2:23", "\"m\" is not defined", "@T.prim_func\ndef main(A: T.Buffer((m,), \"int8\")):\n    pass\n"},
    {MS_TEXT_SYNTAX, "2:23", "nothing more", "@T.prim_func\ndef main(A: T.Buffer((\"n m\",), \"int8\")):\n    pass\n"},
    {MS_TEXT_SYNTAX, "3:5", "stands directly in a block", HEAD "    T.reads(A[0, 0])\n"},
    {MS_TEXT_SYNTAX, "3:10", "stands directly in a block", HEAD "    vi = T.axis.spatial(8, n)\n"},
    {MS_TEXT_SYNTAX, "6:13", "stands before the block's statements",
     BLOCK "            A[0, 0] = T.float32(0)\n            T.reads()\n"},
    {MS_TEXT_SYNTAX, "6:13", "stands twice", BLOCK "            T.reads()\n            T.reads()\n"},
    {MS_TEXT_TYPE, "5:21", "expected a region", BLOCK "            T.reads(3)\n"},
    {MS_TEXT_EXTENT, "5:33", "is -5", BLOCK "            vi = T.axis.spatial(-5, i)\n"},
    {MS_TEXT_SYNTAX, "5:18", "1 names, 2 kinds", BLOCK "            vi = T.axis.remap(\"SS\", [i])\n"},
    {MS_TEXT_TYPE, "5:37", "a loop variable", BLOCK "            vi = T.axis.remap(\"S\", [n])\n"},
    {MS_TEXT_TYPE, "5:31", "S, spatial, and R", BLOCK "            vi = T.axis.remap(\"X\", [i])\n"},
    {MS_TEXT_UNSUPPORTED, "5:18", "no kind of iteration", BLOCK "            vi = T.axis.scan(8, i)\n"},
    {MS_TEXT_UNSUPPORTED, "4:14", "write its T.reads", BLOCK "            T.call_extern(\"void\", \"f\", A.data)\n"},
    {MS_TEXT_UNSUPPORTED, "4:14", "write its T.reads",
     BLOCK "            X = T.match_buffer(B[0:4], (4,))\n            T.call_extern(\"void\", \"f\", "
           "X.access_ptr(\"rw\"))\n"},
    {MS_TEXT_NAME, "3:7", "no such attribute", HEAD "    A.foo[0] = 1\n"},
    {MS_TEXT_UNSUPPORTED, "3:37", "layouts", HEAD "    X = T.alloc_buffer((4,), layout=\"x\")\n"},
    {MS_TEXT_UNSUPPORTED, "3:41", "takes no argument \"foo\"", HEAD "    X = T.sblock_alloc_buffer((4,), foo=3)\n"},
    {MS_TEXT_NAME, "7:9", "\"main\" already",
     "@I.ir_module\nclass M:\n    @T.prim_func\n    def main():\n        pass\n"
     "    @T.prim_func\n    def main():\n        pass\n"},
};

static void refuses(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    const struct refusal *r = &refusals[i];
    ms_error err = {.message = ""};
    char expected[64];
    assert_null(tir_read(r->text, strlen(r->text), "f.py", &err));
    snprintf(expected, sizeof expected, "f.py:%s: ", r->place);
    if (strncmp(err.message, expected, strlen(expected)) || !strstr(err.message, r->says) || err.code != r->code)
      print_error("%s\nexpected at %s: %s (%s)\ngot %s: %s\n", r->text, r->place, r->says, ms_code_name(r->code),
                  ms_code_name(err.code), err.message);
  }
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    const struct refusal *r = &refusals[i];
    ms_error err = {.message = ""};
    tir_read(r->text, strlen(r->text), "f.py", &err);
    assert_int_equal(err.code, r->code);
    assert_non_null(strstr(err.message, r->says));
    assert_non_null(strstr(err.message, r->place));
    assert_non_null(strstr(err.message, "^")); /* the line and a caret */
  }
}

/* The whole message: place, what was expected, the line, the caret below what is wrong. */
static void shows_the_line(void **state) {
  (void)state;
  const char *text = HEAD "    B[0] = B[1] + y * 2  # a comment\n";
  ms_error err = {.message = ""};
  assert_null(tir_read(text, strlen(text), "dir/f.py", &err));
  assert_string_equal(err.message, "dir/f.py:3:19: \"y\" is not defined here\n"
                                   "    B[0] = B[1] + y * 2  # a comment\n"
                                   "                  ^");
}

/* A caller that wants the code only, or nothing. */
static void may_be_brief(void **state) {
  (void)state;
  ms_error err = {.brief = true};
  assert_null(tir_read("@", 1, "f.py", &err));
  assert_int_equal(err.code, MS_TEXT_SYNTAX);
  assert_string_equal(err.message, "");
  assert_null(tir_read("@", 1, "f.py", NULL));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(refuses), cmocka_unit_test(shows_the_line),
                                     cmocka_unit_test(may_be_brief)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

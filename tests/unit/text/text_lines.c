/* Lines of a block as they are read: types of operands, folding of constants, calls by name; each as TVM reads it. */
#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* H, I8, … are buffers of the types their names say; n and m are scalars. */
#define HEAD                                                                                                           \
  "@T.prim_func(s_tir=True)\n"                                                                                         \
  "def main(H: T.Buffer((16,), \"float16\"), I8: T.Buffer((16,), \"int8\"), U8: T.Buffer((16,), \"uint8\"), "          \
  "L: T.Buffer((16,), \"int64\"), P: T.Buffer((16,), \"bool\"), D: T.Buffer((16,), \"float64\"), "                     \
  "F: T.Buffer((16,), \"float32\"), B: T.Buffer((16,), \"int32\"), BF: T.Buffer((16,), \"bfloat16\"), n: T.int32, "    \
  "m: T.int64):\n"                                                                                                     \
  "    with T.sblock(\"D\"):\n"                                                                                        \
  "        T.reads()\n"                                                                                                \
  "        T.writes()\n"

struct line {
  const char *text, *expected;
};

/* clang-format off */
static const struct line lines[] = {
    {"H[0] = H[1] * 2.0 + 1",
     "H[0] = T.Cast(\"float16\", T.Cast(\"float32\", H[1]) * T.float32(2.0) + T.float32(1.0))"},
    {"H[0] = H[1] * H[2] + 1.5",
     "H[0] = T.Cast(\"float16\", T.Cast(\"float32\", H[1] * H[2]) + T.float32(1.5))"},
    {"I8[0] = I8[1] + 1",
     "I8[0] = T.Cast(\"int8\", T.Cast(\"int32\", I8[1]) + 1)"},
    {"U8[0] = U8[1] * 2",
     "U8[0] = T.Cast(\"uint8\", T.Cast(\"int32\", U8[1]) * 2)"},
    {"U8[0] = U8[1] * 2 + B[0]",
     "U8[0] = T.Cast(\"uint8\", T.Cast(\"int32\", U8[1]) * 2 + B[0])"},
    {"L[0] = L[1] + 1 + n",
     "L[0] = L[1] + T.int64(1) + T.Cast(\"int64\", n)"},
    {"L[0] = L[1] + 3000000000",
     "L[0] = L[1] + T.int64(3000000000)"},
    {"P[0] = n < 3",
     "P[0] = n < 3"},
    {"P[0] = P[1] and n < m",
     "P[0] = P[1] and T.Cast(\"int64\", n) < m"},
    {"P[0] = P[1] == True",
     "P[0] = P[1] == T.bool(True)"},
    {"D[0] = D[1] * 0.5 + F[0]",
     "D[0] = D[1] * T.float64(0.5) + T.Cast(\"float64\", F[0])"},
    {"F[0] = F[1] * 0.1 + B[0]",
     "F[0] = F[1] * T.float32(0.10000000000000001) + T.Cast(\"float32\", B[0])"},
    {"F[0] = F[1] + T.float32(0.1) * 3",
     "F[0] = F[1] + T.float32(0.30000001192092896)"},
    {"F[0] = T.max(F[1], 0) + T.min(F[2], 1.5)",
     "F[0] = T.max(F[1], T.float32(0.0)) + T.min(F[2], T.float32(1.5))"},
    {"F[0] = T.if_then_else(n < 3, F[1], 0)",
     "F[0] = T.if_then_else(n < 3, F[1], T.float32(0.0))"},
    {"F[0] = T.Select(n < 3, F[1], T.float32(0))",
     "F[0] = T.Select(n < 3, F[1], T.float32(0.0))"},
    {"F[0] = T.exp(2.0) + T.sqrt(B[0])",
     "F[0] = T.exp(T.float32(2.0)) + T.Cast(\"float32\", T.sqrt(B[0]))"},
    {"F[0] = T.pow(F[1], 2)",
     "F[0] = T.pow(F[1], T.float32(2.0))"},
    {"F[0] = T.Cast(\"float32\", 3)",
     "F[0] = T.Cast(\"float32\", 3)"},
    {"F[0] = T.float32(n) + T.float32(3)",
     "F[0] = T.Cast(\"float32\", n) + T.float32(3.0)"},
    {"F[0] = 3",
     "F[0] = T.float32(3.0)"},
    {"B[0] = 3.5",
     "B[0] = 3"},
    {"B[0] = T.int64(3)",
     "B[0] = 3"},
    {"B[L[0]] = 3",
     "B[L[0]] = 3"},
    {"B[0] = T.Cast(\"int32\", T.int64(3) + m)",
     "B[0] = T.Cast(\"int32\", T.int64(3) + m)"},
    {"B[0] = T.abs(B[0]) + T.floor(B[0])",
     "B[0] = T.Select(B[0] >= 0, B[0], 0 - B[0]) + B[0]"},
    {"F[0] = T.sigmoid(F[1]) + T.floor(F[0]) + T.round(F[0])",
     "F[0] = T.sigmoid(F[1]) + T.floor(F[0]) + T.round(F[0])"},
    {"F[0] = T.erf(F[0]) + T.atan2(F[0], F[1]) + T.popcount(B[0])",
     "F[0] = T.erf(F[0]) + T.atan2(F[0], F[1]) + T.Cast(\"float32\", T.popcount(B[0]))"},
    {"F[0:4] = F[4:8] + T.Broadcast(T.float32(1), 4)",
     "F[0:4] = F[4:8] + T.Broadcast(T.float32(1.0), 4)"},
    {"F[0:4] = F[4:8]",
     "F[0:4] = F[4:8]"},
    {"F[0:4] = F[4:8:1] + F[T.Ramp(0, 2, 4)] * 2",
     "F[0:4] = F[4:8] + F[0:8:2] * T.Broadcast(T.float32(2.0), 4)"},
    {"B[0] = T.bitwise_and(n, 3) + (n & 7) + (n | 1) + (n ^ 2) + (n << 2) + (n >> 3)",
     "B[0] = T.bitwise_and(n, 3) + T.bitwise_and(n, 7) + T.bitwise_or(n, 1) + T.bitwise_xor(n, 2) + T.shift_left(n, 2) "
     "+ T.shift_right(n, 3)"},
    {"B[0] = T.min_value(\"int32\") + T.max_value(\"int8\")",
     "B[0] = -2147483521"},
    {"F[0] = T.infinity(\"float32\") + T.min_value(\"float32\")",
     "F[0] = T.float32(\"inf\")"},
    {"F[0] = T.Cast(\"float32\", T.max_value(\"bfloat16\")) + T.Cast(\"float32\", T.max_value(\"float16\"))",
     "F[0] = T.Cast(\"float32\", T.bfloat16(340282346638528859811704183484516925440.0)) + "
     "T.Cast(\"float32\", T.float16(65504.0))"},
    {"F[0] = T.float32(\"-inf\")",
     "F[0] = T.float32(\"-inf\")"},
    {"F[0] = T.float32(-1)",
     "F[0] = T.float32(-1.0)"},
    {"B[0] = n + (-1) + (1 - 2) - -3",
     "B[0] = n + -1 + -1 - -3"},
    {"B[0] = T.floordiv(n, 3) + T.floormod(n, 3) + T.ceildiv(n, 3) + T.truncdiv(n, 3)",
     "B[0] = n // 3 + n % 3 + (n + 3 - 1) // 3 + T.Div(n, 3)"},
    {"P[0] = T.Not(P[1]) or T.And(P[1], P[2]) or T.EQ(n, 3) or T.likely(P[3])",
     "P[0] = not P[1] or P[1] and P[2] or n == 3 or T.likely(P[3])"},
    {"P[0] = not P[1] == P[2]",
     "P[0] = not P[1] == P[2]"},
    {"P[0] = not (not P[1])",
     "P[0] = not not P[1]"},
    {"P[0] = (n < 3) == P[1]",
     "P[0] = (n < 3) == P[1]"},
    {"P[0] = (n < 3 and n > 1) == (P[1] or P[2])",
     "P[0] = (n < 3 and n > 1) == (P[1] or P[2])"},
    {"X = T.match_buffer(F[0:4], (4,)); X[0] = 3.0",
     "X = T.match_buffer(F[0:4], (4,))\nX[0] = T.float32(3.0)"},
    {"X = T.match_buffer(F[n:n+4], (4,), offset_factor=1); X[0] = X.elem_offset",
     "X = T.match_buffer(F[n:n + 4], (4,), offset_factor=1)\nX[0] = T.Cast(\"float32\", X.elem_offset)"},
    {"X = T.match_buffer(F[n:n+4], (4,), offset_factor=4); X[0] = X.elem_offset",
     "X = T.match_buffer(F[n:n + 4], (4,), offset_factor=4)\nX[0] = T.Cast(\"float32\", X.elem_offset)"},
    {"X = T.match_buffer(F[n], (1,), strides=(\"s\",), offset_factor=1); X[0] = X.strides[0]",
     "X = T.match_buffer(F[n], (1,), strides=(\"s\",), offset_factor=1)\nX[0] = T.Cast(\"float32\", X.strides[0])"},
    {"with T.launch_thread(\"blockIdx.x\", 4) as bx: B[bx] = 3",
     "for bx in T.thread_binding(4, thread=\"blockIdx.x\"):\n    B[bx] = 3"},
    {"for i in T.thread_binding(4, thread=\"vthread.x\"): B[i] = 3",
     "for i in T.thread_binding(4, thread=\"vthread.x\"):\n    B[i] = 3"},
    {"B[0] = T.call_extern(\"int32\", \"f\", F[0:4], F)",
     "B[0] = T.call_extern(\"int32\", \"f\", F[0:4], F.data)"},
    {"T.call_intrin(\"void\", \"tirx.tvm_storage_sync\", \"shared\")",
     "T.tvm_storage_sync(\"shared\", T.bool(False), -1)"},
    {"B[0] = T.call_intrin(\"int32\", \"tirx.popcount\", B[0])",
     "B[0] = T.popcount(B[0])"},
    {"T.evaluate(T.call_extern(\"int32\", \"f\"))",
     "T.call_extern(\"int32\", \"f\")"},
    {"F[0] = T.Add(F[0], 0)",
     "F[0] = T.Add(F[0], T.float32(0.0))"},
    {"F[0] = T.Add(F[0], T.float32(0))",
     "F[0] = T.Add(F[0], T.float32(0.0))"},
    {"L[0] = T.Mul(L[0], 0)",
     "L[0] = T.Mul(L[0], T.int64(0))"},
    {"B[0] = T.Mul(0, 16) + n",
     "B[0] = T.Mul(0, 16) + n"},
    {"P[0] = T.And(True, P[0])",
     "P[0] = T.And(T.bool(True), P[0])"},
    {"P[0] = T.Not(True)",
     "P[0] = not T.bool(True)"},
    {"F[0] = F[0] + -0.0",
     "F[0] = F[0]"},
    {"B[0] = 1 - (n + 2)",
     "B[0] = 1 - (n + 2)"},
    {"F[0] = F[0] - (F[1] - F[2]) / F[3]",
     "F[0] = F[0] - (F[1] - F[2]) / F[3]"},
    {"P[0] = T.bool(1)",
     "P[0] = T.bool(True)"},
    {"B[0] = T.Cast(\"int32\", P[0]) + 1",
     "B[0] = T.Cast(\"int32\", P[0]) + 1"},
    {"B[0] = P[0] + 1",
     "B[0] = T.Cast(\"int32\", P[0]) + 1"},
    {"P[0] = n < 3 and (n > 1 or n == 2) and not (n > 1 and n < 4)",
     "P[0] = n < 3 and (n > 1 or n == 2) and not (n > 1 and n < 4)"},
    {"P[0] = T.And(T.bool(True), P[1])",
     "P[0] = T.And(T.bool(True), P[1])"},
    {"B[0] = n - (n - 1) - (n - (n - 2))",
     "B[0] = n - (n - 1) - (n - (n - 2))"},
    {"B[0] = (n + 1) * 2 // (n * 3) % (n % 5)",
     "B[0] = (n + 1) * 2 // (n * 3) % (n % 5)"},
    {"B[0] = T.FloorDiv(7, 2) + T.FloorMod(n, 1) + T.Sub(n, 0)",
     "B[0] = T.FloorDiv(7, 2) + T.FloorMod(n, 1) + T.Sub(n, 0)"},
    {"B[0] = T.Min(n, n) + T.max(n, T.min(n, 4))",
     "B[0] = T.Min(n, n) + T.max(n, T.min(n, 4))"},
    {"B[0] = 0x10 + 0b11 + 0o17 + 1_000",
     "B[0] = 1034"},
    {"F[0] = 1e3 * F[1] + .5 + 2. + 1E-3",
     "F[0] = T.float32(1000.0) * F[1] + T.float32(0.5) + T.float32(2.0) + T.float32(0.001)"},
    {"F[0] = T.float32(\"nan\") + T.float32(\"-inf\")",
     "F[0] = T.float32(\"nan\")"},
    {"BF[0] = T.bfloat16(1.5) + BF[1]",
     "BF[0] = T.bfloat16(1.5) + BF[1]"},
    {"L[0] = T.int64(-9223372036854775808)",
     "L[0] = T.int64(-9223372036854775808)"},
    {"L[0] = T.int64(9223372036854775807) - L[1]",
     "L[0] = T.int64(9223372036854775807) - L[1]"},
    {"U8[0] = T.uint8(255)",
     "U8[0] = T.uint8(255)"},
    {"F[0:8:2] = F[1:9:2] * T.Broadcast(T.float32(2), 4)",
     "F[0:8:2] = F[1:9:2] * T.Broadcast(T.float32(2.0), 4)"},
    {"F[T.Ramp(n, 3, 4)] = T.Cast(\"float32x4\", B[T.Ramp(0, 1, 4)])",
     "F[n:n + 12:3] = T.Cast(\"float32x4\", B[0:4])"},
    {"F[0:4] = T.exp(F[4:8]) + T.Select(T.Broadcast(P[0], 4), F[0:4], F[8:12])",
     "F[0:4] = T.exp(F[4:8]) + T.Select(T.Broadcast(P[0], 4), F[0:4], F[8:12])"},
    {"B[0] = T.Select(P[0] and P[1], B[1], B[2])",
     "B[0] = T.Select(P[0] and P[1], B[1], B[2])"},
    {"x: T.let[T.int64] = n",
     "x: T.let[T.int64] = T.Cast(\"int64\", n)"},
    {"x: T.let = F[0]; F[1] = x",
     "x: T.let[T.float32] = F[0]\nF[1] = x"},
    {"(F[0])",
     "T.evaluate(F[0])"},
    {"pass; B[0] = 1; B[1] = 2",
     "B[0] = 1\nB[1] = 2"},
    {"if n > 3: B[0] = 1",
     "if n > 3:\n    B[0] = 1"},
    {"B[0] = T.call_intrin(\"int32\", \"tirx.shift_left\", n, 2)",
     "B[0] = T.shift_left(n, 2)"},
    {"F[0] = F.vload([0]) + F.vload([n], \"float32\")",
     "F[0] = F[0] + F[n]"},
    {"F.vstore([0], T.float32(1))",
     "F[0] = T.float32(1.0)"},
    {"F[0] = F[n].astype(\"float16\").astype(\"float32\")",
     "F[0] = T.Cast(\"float32\", T.Cast(\"float16\", F[n]))"},
    {"T.evaluate(F.elem_offset + F.shape[0])",
     "T.evaluate(16)"},
    {"B[0] = T.isnan(F[0]) or T.isinf(H[0]) or T.isfinite(D[0])",
     "B[0] = T.Cast(\"int32\", T.isnan(F[0]) or T.fabs(H[0]) == T.float16(\"inf\") "
     "and not T.isnan(T.Cast(\"float32\", H[0])) or not (T.fabs(D[0]) == T.float64(\"inf\") "
     "and not T.isnan(D[0])) and not T.isnan(D[0]))"},
    {"B[0] = T.abs(-3) + T.floor(T.float32(1.5)) + T.ceil(T.float32(1.5)) + T.round(T.float32(2.5)) "
     "+ T.trunc(T.float32(-1.5))",
     "B[0] = 7"},
    {"P[0] = 0 <= n < 5 != m",
     "P[0] = 0 <= n and n < 5 and T.int64(5) != m"},
    {"P[0] = 0 < n < B[0] <= 9",
     "P[0] = 0 < n and n < B[0] and B[0] <= 9"},
    {"B[0] = T.some.intrinsic(n, \"x\", F.data)",
     "B[0] = T.some.intrinsic(n, \"x\", F.data)"},
    {"F[0] = T.ptx_mma(\"float32\", \"m16n8k8\", n)",
     "F[0] = T.ptx_mma(\"float32\", \"m16n8k8\", n)"},
    {"T.call_extern(\"void\", \"f\", F.access_ptr(\"rw\"), F.access_ptr(\"w\", offset=4))",
     "T.call_extern(\"void\", \"f\", T.tvm_access_ptr(T.type_annotation(\"float32\"), F.data, 0, 16, 3), "
     "T.tvm_access_ptr(T.type_annotation(\"float32\"), F.data, 4, 12, 2))"},
    {"T.call_extern(\"void\", \"f\", F[0:4], F[2:n], F[:])",
     "T.call_extern(\"void\", \"f\", F[0:4], F[2:n], F[0:16])"},
    {"with T.attr(None, \"k\", n): B[0] = 1",
     "with T.attr(None, \"k\", n):\n    B[0] = 1"},
    {"with T.attr({\"k\": n, \"l\": 2}): B[0] = 1",
     "with T.attr(0, \"k\", n):\n    with T.attr(0, \"l\", 2):\n        B[0] = 1"},
    {"X = T.alloc_buffer((4, n), \"int8\", scope=\"local\", align=128, annotations={\"a\": 1.5}); X[0, 0] = 1",
     "X = T.alloc_buffer((4, n), \"int8\", scope=\"local\", align=128, annotations={\"a\": 1.5})\nX[0, 0] = T.int8(1)"},
    {"while n < B[0]: B[0] = B[0] - 1",
     "while n < B[0]:\n    B[0] = B[0] - 1"},
    {"T.evaluate(\"text \\\"quoted\\\" \\x41\\n\")",
     "T.evaluate(\"text \\\"quoted\\\" A\\n\")"},
    {"B[0] //= n",
     "B[0] = B[0] // n"},
    {"x: T.int32 = n; x += 2; x //= 3; x %= 4",
     "x = T.alloc_buffer((1,), \"int32\", scope=\"local\")\nx[0] = n\nx[0] = x[0] + 2\nx[0] = x[0] // 3\n"
     "x[0] = x[0] % 4"},
};
/* clang-format on */

/* The lines of the block's body, without their indentation. */
static char *body_of(const char *line) {
  char text[2048];
  ms_error err = {.message = ""};
  int length = snprintf(text, sizeof text, HEAD "        %s\n", line);
  struct tir *ir = tir_read(text, (size_t)length, "lines.py", &err);
  if (!ir) fail_msg("%s", err.message);
  char *printed = tir_print(ir, TIR_NONE, TIR_PRINT_FUNCTION);
  tir_free(ir);
  const char *from = strstr(printed, "T.writes()\n");
  assert_non_null(from);
  from += strlen("T.writes()\n");
  char *body = calloc(1, strlen(from) + 1), *to = body;
  for (; *from; from++) {
    for (int i = 0; i < 8 && *from == ' '; i++) from++;
    for (; *from && *from != '\n'; from++) *to++ = *from;
    if (from[1]) *to++ = '\n';
  }
  free(printed);
  return body;
}

static void reads_lines(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    char *once = body_of(lines[i].text);
    assert_string_equal(once, lines[i].expected);
    free(once);
  }
}

/* What is printed, a line or several, is read as the same. */
static void reads_them_again(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    char again[4096];
    size_t n = 0;
    for (const char *c = lines[i].expected; *c; c++) {
      again[n++] = *c;
      if (*c == '\n') n += (size_t)sprintf(again + n, "        ");
      assert_true(n + 16 < sizeof again);
    }
    again[n] = 0;
    char *twice = body_of(again);
    assert_string_equal(twice, lines[i].expected);
    free(twice);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reads_lines), cmocka_unit_test(reads_them_again)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

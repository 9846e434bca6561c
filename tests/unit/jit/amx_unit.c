/* The tile unit that tests run AMX's instructions on (amx/): what the assembler writes is decoded, each instruction
 * computes what a plain model does, and what the manual says to fault is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#ifdef __x86_64__
#include "amx/unit.h"

#include <math.h>
#include <stdlib.h>

/* ---- Encodings ---- */

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, NONE = -1 };
enum { SLOT = 32, HERE = true };

/* E(text, operation, tile, left, right, base, index, scale, displacement, relative to the next) */
#define EACH_ENCODING(E)                                                                                               \
  E("ldtilecfg (%rax)", LDTILECFG, 0, 0, 0, RAX, NONE, 0, 0, false)                                                    \
  E("ldtilecfg 64(%rsp)", LDTILECFG, 0, 0, 0, RSP, NONE, 0, 64, false)                                                 \
  E("ldtilecfg -4096(%r13)", LDTILECFG, 0, 0, 0, R13, NONE, 0, -4096, false)                                           \
  E("ldtilecfg (%r12)", LDTILECFG, 0, 0, 0, R12, NONE, 0, 0, false)                                                    \
  E("ldtilecfg 0x1234(%rip)", LDTILECFG, 0, 0, 0, NONE, NONE, 0, 0x1234, HERE)                                         \
  E("ldtilecfg 16(%rbp,%r9,2)", LDTILECFG, 0, 0, 0, RBP, R9, 1, 16, false)                                             \
  E("sttilecfg (%r8)", STTILECFG, 0, 0, 0, R8, NONE, 0, 0, false)                                                      \
  E("sttilecfg 0x10000(%rdi)", STTILECFG, 0, 0, 0, RDI, NONE, 0, 0x10000, false)                                       \
  E("tilerelease", TILERELEASE, 0, 0, 0, NONE, NONE, 0, 0, false)                                                      \
  E("tilezero %tmm0", TILEZERO, 0, 0, 0, NONE, NONE, 0, 0, false)                                                      \
  E("tilezero %tmm7", TILEZERO, 7, 0, 0, NONE, NONE, 0, 0, false)                                                      \
  E("tileloadd (%rax,%rbx), %tmm0", TILELOADD, 0, 0, 0, RAX, RBX, 0, 0, false)                                         \
  E("tileloadd (%rbp,%rcx,2), %tmm1", TILELOADD, 1, 0, 0, RBP, RCX, 1, 0, false)                                       \
  E("tileloadd -128(%r13,%r15,4), %tmm2", TILELOADD, 2, 0, 0, R13, R15, 2, -128, false)                                \
  E("tileloadd 128(%rsp,%r12,8), %tmm3", TILELOADD, 3, 0, 0, RSP, R12, 3, 128, false)                                  \
  E("tileloadd 0x7fffffff(%r8,%rdx), %tmm4", TILELOADD, 4, 0, 0, R8, RDX, 0, 0x7fffffff, false)                        \
  E("tileloadd (%rsi), %tmm5", TILELOADD, 5, 0, 0, RSI, NONE, 0, 0, false)                                             \
  E("tileloadd 64(,%rdi,8), %tmm6", TILELOADD, 6, 0, 0, NONE, RDI, 3, 64, false)                                       \
  E("tileloadd (%r12,%r13), %tmm7", TILELOADD, 7, 0, 0, R12, R13, 0, 0, false)                                         \
  E("tileloadd (%r11,%rbp), %tmm7", TILELOADD, 7, 0, 0, R11, RBP, 0, 0, false)                                         \
  E("tileloaddt1 (%r14,%rax), %tmm5", TILELOADDT1, 5, 0, 0, R14, RAX, 0, 0, false)                                     \
  E("tileloaddt1 1024(%rbx,%r10,2), %tmm4", TILELOADDT1, 4, 0, 0, RBX, R10, 1, 1024, false)                            \
  E("tilestored %tmm0, (%rdi,%r11)", TILESTORED, 0, 0, 0, RDI, R11, 0, 0, false)                                       \
  E("tilestored %tmm6, -64(%r9,%rsi,4)", TILESTORED, 6, 0, 0, R9, RSI, 2, -64, false)                                  \
  E("tilestored %tmm3, 0x400(%rdx,%r8)", TILESTORED, 3, 0, 0, RDX, R8, 0, 0x400, false)                                \
  E("tdpbssd %tmm3, %tmm2, %tmm1", TDPBSSD, 1, 2, 3, NONE, NONE, 0, 0, false)                                          \
  E("tdpbssd %tmm7, %tmm0, %tmm4", TDPBSSD, 4, 0, 7, NONE, NONE, 0, 0, false)                                          \
  E("tdpbsud %tmm6, %tmm5, %tmm0", TDPBSUD, 0, 5, 6, NONE, NONE, 0, 0, false)                                          \
  E("tdpbusd %tmm1, %tmm7, %tmm3", TDPBUSD, 3, 7, 1, NONE, NONE, 0, 0, false)                                          \
  E("tdpbuud %tmm0, %tmm1, %tmm2", TDPBUUD, 2, 1, 0, NONE, NONE, 0, 0, false)                                          \
  E("tdpbf16ps %tmm5, %tmm4, %tmm7", TDPBF16PS, 7, 4, 5, NONE, NONE, 0, 0, false)                                      \
  E(".byte 0xc4, 0xe2, 0x63, 0x5c, 0xca # tdpfp16ps", TDPFP16PS, 1, 2, 3, NONE, NONE, 0, 0, false)

/* Each in its slot, behind its length. */
#define SLOT_OF(text, ...) ".balign 32, 0xcc\n.byte 2f - 1f\n1: " text "\n2:\n"
__asm__(".pushsection .rodata\n.balign 32\namx_encodings:\n" EACH_ENCODING(SLOT_OF) ".balign 32, 0xcc\n.popsection\n");
extern const uint8_t amx_encodings[];

static const struct {
  const char *text;
  enum amx_operation operation;
  int tile, left, right, base, index, scale;
  int32_t displacement;
  bool behind;
} encodings[] = {
#define ROW_OF(text, operation, ...) {text, AMX_##operation, __VA_ARGS__},
    EACH_ENCODING(ROW_OF)};
enum { ENCODINGS = sizeof encodings / sizeof *encodings };

static void encodings_are_decoded(void **state) {
  (void)state;
  bool seen[AMX_OPERATIONS] = {false};
  for (int i = 0; i < ENCODINGS; i++) {
    const uint8_t *at = amx_encodings + i * SLOT;
    struct amx_instruction in;
    bool is_product = encodings[i].operation >= AMX_TDPBSSD;
    if (!amx_decode(at + 1, &in)) fail_msg("%s: not decoded", encodings[i].text);
    bool same = in.operation == encodings[i].operation && in.length == *at && in.tile == encodings[i].tile &&
                (!is_product || (in.left == encodings[i].left && in.right == encodings[i].right)) &&
                in.base == encodings[i].base && in.index == encodings[i].index && in.scale == encodings[i].scale &&
                in.displacement == encodings[i].displacement && in.behind == encodings[i].behind && !in.narrow;
    if (in.wrong || !same)
      fail_msg("%s: %s, %d bytes, tiles %d %d %d, base %d, index %d, scale %d, displacement %d: %s", encodings[i].text,
               amx_names[in.operation], in.length, in.tile, in.left, in.right, in.base, in.index, in.scale,
               in.displacement, in.wrong ? in.wrong : "differs");
    seen[in.operation] = true;
  }
  for (int o = 0; o < AMX_OPERATIONS; o++)
    if (!seen[o]) fail_msg("no encoding of %s", amx_names[o]);
}

/* Code that is none of them, and encodings that are undefined. */
static void other_code_is_not(void **state) {
  (void)state;
  static const struct {
    uint8_t code[AMX_LONGEST];
    const char *wrong; /* NULL: it is not AMX's */
  } others[] = {
      {{0x0f, 0x0b}, NULL},
      {{0xc5, 0xf8, 0x77}, NULL},
      {{0xc4, 0xe1, 0x63, 0x5e, 0xca}, NULL}, /* another map */
      {{0xc4, 0xe2, 0x63, 0x5f, 0xca}, NULL},
      {{0xc4, 0xe2, 0x63, 0x5e, 0x0a}, NULL}, /* a product of memory */
      {{0xc4, 0xe2, 0xe3, 0x5e, 0xca}, "VEX.W"},
      {{0xc4, 0xe2, 0x67, 0x5e, 0xca}, "VEX.L"},
      {{0xc4, 0xe2, 0x23, 0x5e, 0xca}, "eight tiles"}, /* tmm11 */
      {{0xc4, 0xc2, 0x63, 0x5e, 0xca}, "eight tiles"},
      {{0xc4, 0x62, 0x63, 0x5e, 0xca}, "eight tiles"},
      {{0xc4, 0xe2, 0x73, 0x4b, 0x04, 0x18}, "vvvv"},
      {{0xc4, 0xe2, 0x7b, 0x4b, 0x00}, "SIB"},
      {{0xc4, 0xe2, 0x78, 0x49, 0xc8}, "ModRM.reg"},
      {{0xc4, 0xe2, 0x7b, 0x49, 0xc1}, "ModRM.rm"},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct amx_instruction in;
    bool is = amx_decode(others[i].code, &in);
    if (is != (others[i].wrong != NULL) || (is && (!in.wrong || !strstr(in.wrong, others[i].wrong))))
      fail_msg("%zu: %s", i, !is ? "not decoded" : in.wrong ? in.wrong : "defined");
  }
  struct amx_instruction in;
  assert_true(amx_decode((const uint8_t[]){0x67, 0xc4, 0xe2, 0x7b, 0x4b, 0x04, 0x18}, &in) && in.narrow);
}

/* ---- Units ---- */

struct shape {
  int rows, bytes;
};

static const char *do_at(struct amx_unit *unit, enum amx_operation o, int tile, void *at, int64_t stride) {
  return amx_perform(unit, &(struct amx_instruction){.operation = o, .tile = tile}, at, stride);
}
static const char *multiply(struct amx_unit *unit, enum amx_operation o, int c, int a, int b) {
  return amx_perform(unit, &(struct amx_instruction){.operation = o, .tile = c, .left = a, .right = b}, NULL, 0);
}
static const char *configure(struct amx_unit *unit, const struct shape shapes[AMX_TILES]) {
  uint8_t text[64] = {1};
  for (int t = 0; t < AMX_TILES; t++) {
    text[16 + 2 * t] = (uint8_t)shapes[t].bytes, text[17 + 2 * t] = (uint8_t)(shapes[t].bytes >> 8);
    text[48 + t] = (uint8_t)shapes[t].rows;
  }
  return do_at(unit, AMX_LDTILECFG, 0, text, 0);
}

static uint32_t draw(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u; }

/* ---- Products, beside a plain model ---- */

static int byte_of(const uint8_t *at, bool is_signed) { return is_signed ? (int8_t)*at : *at; }

static float flushed(float x) { return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x; }
static float bfloat(const uint8_t *at) {
  float value;
  memcpy(&value, &(uint32_t){(uint32_t)(at[0] | at[1] << 8) << 16}, sizeof value);
  return flushed(value);
}
static float half(const uint8_t *at) {
  int bits = at[0] | at[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  double value = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                 : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                : ldexp(fraction, -24);
  return (float)(bits & 0x8000 ? -value : value);
}

static int32_t sum_of_bytes(enum amx_operation o, uint32_t sum, const uint8_t *a, const uint8_t (*b)[AMX_ROW_BYTES],
                            int n, int deep) {
  for (int k = 0; k < 4 * deep; k++)
    sum += (uint32_t)(byte_of(a + k, o == AMX_TDPBSSD || o == AMX_TDPBSUD) *
                      byte_of(&b[k / 4][4 * n + k % 4], o == AMX_TDPBSSD || o == AMX_TDPBUSD));
  return (int32_t)sum;
}
static float sum_of_pairs(float (*read)(const uint8_t *), float sum, const uint8_t *a,
                          const uint8_t (*b)[AMX_ROW_BYTES], int n, int deep) {
  float parts[2] = {0, 0};
  for (int k = 0; k < 2 * deep; k++)
    parts[k % 2] = flushed(fmaf(read(a + 2 * k), read(&b[k / 2][4 * n + k % 2 * 2]), parts[k % 2]));
  return flushed(flushed(sum) + flushed(parts[0] + parts[1]));
}

static bool is_pairs(enum amx_operation o) { return o == AMX_TDPBF16PS || o == AMX_TDPFP16PS; }

/* Of pairs: small numbers, numbers of all sizes, and subnormal ones; no sum is NaN. */
static void fill(uint8_t *at, int bytes, enum amx_operation o, uint32_t *seed) {
  for (int i = 0; i < bytes; i++) at[i] = (uint8_t)(draw(seed) >> 24);
  for (int i = 1; is_pairs(o) && i < bytes; i += 2) {
    int kind = (int)(draw(seed) >> 29);
    bool bf = o == AMX_TDPBF16PS;
    if (kind == 0)
      at[i] &= 0x80; /* subnormal or 0 */
    else if (kind < 6)
      at[i] = (uint8_t)((at[i] & 0x83) | (bf ? 0x3c : 0x38)); /* about 1 */
    else
      at[i] &= bf ? 0x9f : 0xbb; /* down to the smallest, so that products are subnormal */
  }
}

static void products_are_the_models(void **state) {
  (void)state;
  if (!amx_is_possible()) skip();
  uint32_t seed = 26, subnormal = 0;
  for (int round = 0; round < 300; round++) {
    enum amx_operation o = AMX_TDPBSSD + round % 6;
    int rows = 1 + (int)(draw(&seed) >> 28), columns = 1 + (int)(draw(&seed) >> 28),
        deep = 1 + (int)(draw(&seed) >> 28);
    uint8_t a[AMX_ROWS][AMX_ROW_BYTES] = {{0}}, b[AMX_ROWS][AMX_ROW_BYTES] = {{0}}, c[AMX_ROWS][AMX_ROW_BYTES] = {{0}};
    static struct amx_unit unit;
    fill(a[0], sizeof a, o, &seed);
    fill(b[0], sizeof b, o, &seed);
    for (int i = 0; i < AMX_ROWS * 16; i++) {
      float sum = (float)((int)(draw(&seed) >> 20) - 2048) * (i % 3 ? 0x1p-12f : 0x1p-127f);
      memcpy((uint8_t *)c + 4 * i, is_pairs(o) ? (void *)&sum : (void *)&(uint32_t){draw(&seed)}, 4);
    }
    assert_null(configure(&unit, (struct shape[AMX_TILES]){
                                     [2] = {rows, 4 * columns}, [5] = {rows, 4 * deep}, [7] = {deep, 4 * columns}}));
    assert_null(do_at(&unit, AMX_TILELOADD, 2, c, AMX_ROW_BYTES));
    assert_null(do_at(&unit, AMX_TILELOADDT1, 5, a, AMX_ROW_BYTES));
    assert_null(do_at(&unit, AMX_TILELOADD, 7, b, AMX_ROW_BYTES));
    assert_null(multiply(&unit, o, 2, 5, 7));
    uint8_t out[AMX_ROWS * 2][AMX_ROW_BYTES];
    memset(out, 0x5a, sizeof out);
    assert_null(do_at(&unit, AMX_TILESTORED, 2, out[1], 2 * AMX_ROW_BYTES - 64 * (round % 2)));
    for (int m = 0; m < rows; m++)
      for (int n = 0; n < columns; n++) {
        const uint8_t *own = out[1 + m * (2 - round % 2)] + 4 * n;
        uint32_t want, was;
        memcpy(&was, c[m] + 4 * n, 4);
        if (is_pairs(o)) {
          float sum;
          memcpy(&sum, &was, 4);
          sum =
              sum_of_pairs(o == AMX_TDPBF16PS ? bfloat : half, sum, a[m], (const uint8_t(*)[AMX_ROW_BYTES])b, n, deep);
          assert_false(isnan(sum));
          subnormal += sum == 0;
          memcpy(&want, &sum, 4);
        } else {
          want = (uint32_t)sum_of_bytes(o, was, a[m], (const uint8_t(*)[AMX_ROW_BYTES])b, n, deep);
        }
        if (memcmp(own, &want, 4) != 0)
          fail_msg("%s, round %d: %d x %d x %d at %d, %d", amx_names[o], round, rows, columns, deep, m, n);
      }
    for (int i = 0; i < AMX_ROW_BYTES; i++) assert_int_equal(out[0][i], 0x5a);
    for (int i = 4 * columns; i < AMX_ROW_BYTES; i++) assert_int_equal(out[1][i], 0x5a);
  }
  assert_true(subnormal < 1000);
}

/* In which order floats are added shows: even places and odd ones apart, the result last. */
static void pairs_are_added_in_order(void **state) {
  (void)state;
  if (!amx_is_possible()) skip();
  static struct amx_unit unit;
  enum { ONE = 0x3f80, BIG = 0x4b80 /* 2^24 */, MINUS_BIG = 0xcb80 };
  uint16_t a[4] = {ONE, ONE, ONE, ONE};
  static const struct {
    uint16_t b[4]; /* places 0 1 2 3: the first pair, then the second */
    float c, sum;
  } cases[] = {
      {{BIG, ONE, ONE, MINUS_BIG}, 0, 0}, /* (2^24 + 1 -> 2^24) + (1 - 2^24 -> exact) */
      {{BIG, ONE, MINUS_BIG, ONE}, 0, 2}, /* (2^24 - 2^24) + (1 + 1) */
      {{BIG, MINUS_BIG, ONE, ONE}, 1, 2}, /* 2^24 + (1 - 2^24 exactly) is 1, and 1 */
      {{ONE, BIG, 0, 0}, -0x1p24f, 0},    /* 1 + 2^24 is 2^24, before the result */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    float c = cases[i].c;
    uint16_t b[2][2] = {{cases[i].b[0], cases[i].b[1]}, {cases[i].b[2], cases[i].b[3]}};
    assert_null(configure(&unit, (struct shape[AMX_TILES]){{1, 4}, {1, 8}, {2, 4}}));
    assert_null(do_at(&unit, AMX_TILELOADD, 0, &c, 0));
    assert_null(do_at(&unit, AMX_TILELOADD, 1, a, 0));
    assert_null(do_at(&unit, AMX_TILELOADD, 2, b, 4));
    assert_null(multiply(&unit, AMX_TDPBF16PS, 0, 1, 2));
    assert_null(do_at(&unit, AMX_TILESTORED, 0, &c, 0));
    float parts[2] = {0, 0};
    for (int k = 0; k < 4; k++) parts[k % 2] += bfloat((const uint8_t *)&cases[i].b[k]);
    float want = cases[i].c + (parts[0] + parts[1]);
    if (c != want) fail_msg("%zu: %g, not %g", i, (double)c, (double)want);
  }
}

/* ---- Faults ---- */

static void expect(const char *why, const char *part) {
  if (!why || !strstr(why, part)) fail_msg("%s, not %s", why ? why : "nothing", part);
}

static void configurations_are_checked(void **state) {
  (void)state;
  static struct amx_unit unit;
  static const struct {
    int at, value;
    const char *why;
  } wrong[] = {{0, 2, "palette"},   {2, 1, "bytes 2 to 15"}, {15, 1, "bytes 2 to 15"}, {16, 68, "64 bytes"},
               {17, 1, "64 bytes"}, {48, 17, "16 rows"},     {48, 0, "no rows"},       {16, 0, "no rows"},
               {32, 4, "eight"},    {56, 1, "eight"},        {63, 1, "eight"},         {30, 4, "no rows"},
               {55, 1, "no rows"}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    uint8_t text[64] = {1, [16] = 64, [48] = 16};
    assert_null(do_at(&unit, AMX_LDTILECFG, 0, text, 0));
    text[wrong[i].at] = (uint8_t)wrong[i].value;
    const char *why = do_at(&unit, AMX_LDTILECFG, 0, text, 0);
    if (!why || !strstr(why, "#GP")) fail_msg("%zu: %s", i, why ? why : "accepted");
    assert_true(unit.configured && unit.rows[0] == 16);
  }
  uint8_t text[64] = {1, 1, [16] = 64, [30] = 12, [48] = 16, [55] = 3}, read[64];
  assert_null(do_at(&unit, AMX_LDTILECFG, 0, text, 0));
  assert_null(do_at(&unit, AMX_STTILECFG, 0, read, 0));
  assert_memory_equal(read, text, sizeof text);
  text[0] = 0; /* the palette that configures none */
  assert_null(do_at(&unit, AMX_LDTILECFG, 0, text, 0));
  assert_false(unit.configured);
  assert_null(do_at(&unit, AMX_STTILECFG, 0, read, 0));
  for (int i = 0; i < 64; i++) assert_int_equal(read[i], 0);
}

static void tiles_are_checked(void **state) {
  (void)state;
  if (!amx_is_possible()) skip();
  static struct amx_unit unit;
  uint8_t row[64] = {0};
  assert_null(do_at(&unit, AMX_TILERELEASE, 0, NULL, 0));
  expect(do_at(&unit, AMX_TILEZERO, 0, NULL, 0), "configured");
  expect(do_at(&unit, AMX_TILELOADD, 0, row, 0), "configured");
  expect(multiply(&unit, AMX_TDPBSSD, 0, 1, 2), "configured");
  static const struct shape shapes[AMX_TILES] = {{4, 12}, {4, 8}, {2, 12}, {3, 12}, {4, 16}, {2, 10}, {4, 6}};
  assert_null(configure(&unit, shapes));
  assert_null(multiply(&unit, AMX_TDPBSSD, 0, 1, 2));
  expect(do_at(&unit, AMX_TILEZERO, 7, NULL, 0), "no rows");
  expect(do_at(&unit, AMX_TILESTORED, 7, row, 0), "no rows");
  expect(multiply(&unit, AMX_TDPBSSD, 0, 1, 7), "no rows");
  expect(multiply(&unit, AMX_TDPBSSD, 0, 0, 2), "same tile");
  expect(multiply(&unit, AMX_TDPBF16PS, 0, 2, 2), "same tile");
  expect(multiply(&unit, AMX_TDPBSSD, 0, 3, 2), "number of rows");
  expect(multiply(&unit, AMX_TDPBSSD, 4, 1, 2), "another length");
  expect(multiply(&unit, AMX_TDPBSSD, 0, 4, 2), "do not fit");
  expect(multiply(&unit, AMX_TDPBSSD, 0, 6, 2), "multiples of 4");
  /* A first row: what is before it stays, and it is 0 afterwards. */
  uint8_t text[64] = {1, 2, [16] = 4, [48] = 3};
  assert_null(do_at(&unit, AMX_LDTILECFG, 0, text, 0));
  expect(multiply(&unit, AMX_TDPBSSD, 0, 1, 2), "first row");
  assert_null(do_at(&unit, AMX_TILELOADD, 0, (uint8_t[12]){1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, 4));
  assert_true(unit.tile[0][0][0] == 0 && unit.tile[0][1][0] == 0 && unit.tile[0][2][0] == 3 && unit.start_row == 0);
  text[1] = 3;
  assert_null(do_at(&unit, AMX_LDTILECFG, 0, text, 0));
  expect(do_at(&unit, AMX_TILELOADD, 0, row, 0), "behind");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(encodings_are_decoded),      cmocka_unit_test(other_code_is_not),
      cmocka_unit_test(products_are_the_models),    cmocka_unit_test(pairs_are_added_in_order),
      cmocka_unit_test(configurations_are_checked), cmocka_unit_test(tiles_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void) {
  puts("skipped: AMX is of x86");
  return 77;
}
#endif

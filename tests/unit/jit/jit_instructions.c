/* Tensor intrinsics that name an instruction of the machine: code for targets that have it holds it, code for others
 * does not, and what it computes is what the description says where this CPU has it too. */
#include "unit/exported.h"
#include "unit/script.h"

#include "vm/run.h"

#define AMX_OF_BYTES(types, a, b, holds)                                                                               \
  {                                                                                                                    \
    "amx_16x16x64_" types, AMX_PARAMETERS(a, b), "C[vi, vj]", AMX_PRODUCT, 32, 32, 32, 4, {16, 16}, "sapphirerapids",  \
        {holds, "tileloadd", "tilestored"}, "vpmulld", "x86-64-v4"                                                     \
  }
#define AMX_PARAMETERS(a, b)                                                                                           \
  "A: T.Buffer((32, 128), \"" a "\"), B: T.Buffer((32, 32, 4), \"" b "\"), C: T.Buffer((32, 32), \"int32\")"
#define AMX_PRODUCT "T.Cast(\"int32\", A[vi, vk * 4 + vp]) * T.Cast(\"int32\", B[vk, vj, vp])"

/* Of 14 rows. */
#define AMX_OF_LINES(types, a, b, c, width, depth, holds)                                                              \
  {                                                                                                                    \
    "amx_14x16x" types,                                                                                                \
        "A: T.Buffer((28, " #depth " * 2), \"" a "\"), B: T.Buffer((32, 32, " #width "), \"" b "\"), "                 \
        "C: T.Buffer((28, 32), \"" c "\")",                                                                            \
        "C[vi, vj]", "T.Cast(\"" c "\", A[vi, vk * " #width " + vp]) * T.Cast(\"" c "\", B[vk, vj, vp])", 28, 32, 32,  \
        width, {14, 16}, "sapphirerapids", {holds, "tileloadd", "tilestored"}, "vpmulld", "x86-64-v4"                  \
  }

#define AMX_OF_BFLOATS(order, value)                                                                                   \
  {                                                                                                                    \
    "amx_16x16x32_bf16" order,                                                                                         \
        "A: T.Buffer((32, 64), \"bfloat16\"), B: T.Buffer((32, 32, 2), \"bfloat16\"), "                                \
        "C: T.Buffer((32, 32), \"float32\")",                                                                          \
        "C[vi, vj]", value, 32, 32, 32, 2, {16, 16}, "x86-64-v4,+amx-tile,+amx-bf16",                                  \
        {"tdpbf16ps", "tileloadd", "tilestored"}, "vfmadd", "x86-64-v4"                                                \
  }
#define AMX_BFLOAT_A "T.Cast(\"float32\", A[vi, vk * 2 + vp])"
#define AMX_BFLOAT_B "T.Cast(\"float32\", B[vk, vj, vp])"

/* The cases: what is computed, as the description has it, and where. */
static const struct {
  const char *intrinsic, *parameters, *element, *value;
  int rows, columns, depth, packed; /* depth is columns of A; packed: how many of them lie together in B */
  int tile[2];                      /* rows and depth of what the intrinsic does */
  const char *target, *holds[3], *lacks, *without; /* without: a target that has them not */
  const char *becomes; /* NULL, or: what stands for it where the CPU has a better instruction */
} cases[] = {
    {"dot_16x4_vnni",
     "A: T.Buffer((8,), \"uint8\"), B: T.Buffer((2, 32, 4), \"int8\"), C: T.Buffer((32,), \"int32\")",
     "C[vj]",
     "T.Cast(\"int32\", A[vk * 4 + vp]) * T.Cast(\"int32\", B[vk, vj, vp])",
     1,
     32,
     2,
     4,
     {1, 1},
     "x86-64-v4,+avx512vnni",
     {"vpdpbusd"},
     "vpmulld",
     "x86-64-v4"},
    {"dot_16x4_avx512",
     "A: T.Buffer((8,), \"uint8\"), B: T.Buffer((2, 32, 4), \"int8\"), C: T.Buffer((32,), \"int32\")",
     "C[vj]",
     "T.Cast(\"int32\", A[vk * 4 + vp]) * T.Cast(\"int32\", B[vk, vj, vp])",
     1,
     32,
     2,
     4,
     {1, 1},
     "x86-64-v4",
     {"zmm", "vpaddd"},
     "vpdpbusd",
     "x86-64",
     "vpdpbusd"},
    AMX_OF_BYTES("i8", "int8", "int8", "tdpbssd"),
    AMX_OF_BYTES("u8", "uint8", "uint8", "tdpbuud"),
    AMX_OF_BYTES("u8i8", "uint8", "int8", "tdpbusd"),
    AMX_OF_BYTES("i8u8", "int8", "uint8", "tdpbsud"),
    AMX_OF_LINES("64_i8", "int8", "int8", "int32", 4, 64, "tdpbssd"),
    AMX_OF_LINES("32_bf16", "bfloat16", "bfloat16", "float32", 2, 32, "tdpbf16ps"),
    AMX_OF_BFLOATS("", AMX_BFLOAT_A " * " AMX_BFLOAT_B),
    AMX_OF_BFLOATS("_columns_first", AMX_BFLOAT_B " * " AMX_BFLOAT_A),
    {"microkernel_6x16_f32",
     "A: T.Buffer((12, 8), \"float32\"), B: T.Buffer((8, 32), \"float32\"), C: T.Buffer((12, 32), \"float32\")",
     "C[vi, vj]",
     "A[vi, vk] * B[vk, vj]",
     12,
     32,
     8,
     1,
     {6, 4},
     "x86-64-v4",
     {"vfmadd", "zmm"},
     "vmulss",
     "x86-64-v2"},
};
enum { CASES = sizeof cases / sizeof *cases };

static struct tir *read_case(int c) {
  char grid[100], init[100], update[300];
  bool packed = cases[c].packed > 1, real = strstr(cases[c].parameters, "\"float32\"");
  int used = snprintf(grid, sizeof grid, "for i, j, k%s in T.grid(%d, %d, %d", packed ? ", p" : "", cases[c].rows,
                      cases[c].columns, cases[c].depth);
  snprintf(grid + used, sizeof grid - (size_t)used, packed ? ", %d):" : "):", cases[c].packed);
  snprintf(init, sizeof init, "            %s = %s", cases[c].element, real ? "T.float32(0)" : "0");
  snprintf(update, sizeof update, "        %s = %s + %s", cases[c].element, cases[c].element, cases[c].value);
  return read_function(cases[c].parameters, grid, "    with T.sblock(\"C\"):",
                       packed ? "        vi, vj, vk, vp = T.axis.remap(\"SSRR\", [i, j, k, p])"
                              : "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
                       "        with T.init():", init, update);
}

static void split(struct tir *ir, tir_loop loop, int64_t inner, tir_loop out[2]) {
  tir_expr factors[] = {TIR_NONE, tir_int(ir, TIR_T_I32, inner)};
  assert_accepted(tir_split(ir, loop, factors, 2, true, false, out, err));
}

/* Tiles of 16 columns, and of rows where there are rows; rows of tiles in parallel. `beside`: those of a row side by
 * side inside of the loop over k. */
static void tensorize_by(struct tir *ir, int c, bool beside) {
  struct vm_intrinsics *table = NULL;
  const struct tir *description, *implementation;
  vm_add_shipped_intrinsic(&table, cases[c].intrinsic);
  assert_true(vm_find_intrinsic(table, cases[c].intrinsic, &description, &implementation));
  bool rows = cases[c].rows > 1;
  bool packed = cases[c].packed > 1;
  tir_loop i[2] = {0}, j[2], k[2] = {0}, p = packed ? loop_of(ir, "C", 3) : TIR_NONE, kk = loop_of(ir, "C", 2);
  split(ir, loop_of(ir, "C", 1), 16, j);
  if (rows) {
    split(ir, loop_of(ir, "C", 0), cases[c].tile[0], i);
    split(ir, kk, cases[c].tile[1], k);
    tir_loop order[] = {i[0], beside ? k[0] : j[0], beside ? j[0] : k[0], i[1], j[1], k[1], p};
    assert_accepted(tir_reorder(ir, order, packed ? 7 : 6, err));
    assert_accepted(tir_parallel(ir, i[0], err));
    if (beside) assert_accepted(tir_unroll(ir, j[0], err));
  } else {
    tir_loop order[] = {j[0], kk, j[1], p};
    assert_accepted(tir_reorder(ir, order, 4, err));
  }
  tir_block zero;
  assert_accepted(tir_decompose_reduction(ir, block_named(ir, "C"), rows ? k[0] : kk, &zero, err));
  assert_accepted(tir_tensorize(ir, rows ? i[1] : j[1], description, implementation, false, err));
  vm_intrinsics_free(table);
}

static void tensorize(struct tir *ir, int c) { tensorize_by(ir, c, false); }

/* Without what does without tiles where the system refuses them. */
static void cut_plain(char *text) {
  char *plain = strstr(text, ".plain.inner:");
  if (plain) *plain = 0;
}

/* The second time for a target whose cpu's name lacks the instructions, and whose features have them. */
static void code_holds_them(void **state) {
  (void)state;
  static const char virtual[] = "llvm -mcpu=rocketlake -mattr=+amx-int8,+amx-bf16";
  for (int n = 0; n < 2 * CASES; n++) {
    int c = n % CASES;
    struct tir *ir = read_case(c);
    tensorize(ir, c);
    char *with = assembly(ir, n < CASES ? cases[c].target : virtual), *without = assembly(ir, cases[c].without);
    bool better = n >= CASES && cases[c].becomes;
    cut_plain(with);
    if (better) assert_non_null(strstr(with, cases[c].becomes));
    for (int i = 0; i < 3 && cases[c].holds[i] && !better; i++) {
      if (!strstr(with, cases[c].holds[i])) fail_msg("%s: no %s", cases[c].intrinsic, cases[c].holds[i]);
      assert_null(strstr(without, cases[c].holds[i]));
    }
    if (n < CASES && strstr(with, cases[c].lacks)) fail_msg("%s: still %s", cases[c].intrinsic, cases[c].lacks);
    free(with);
    free(without);
    tir_free(ir);
  }
}

static int count(const char *text, const char *part) {
  int n = 0;
  for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) n++;
  return n;
}

/* Two tiles of a row are loaded before the loop over k and stored behind it, and in it what both
 * products read is loaded once. */
static void accumulators_stay_in_registers(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++) {
    if (!strstr(cases[c].intrinsic, "amx_")) continue;
    struct tir *ir = read_case(c);
    tensorize_by(ir, c, true);
    char *text = assembly(ir, cases[c].target);
    int products = count(text, cases[c].holds[0]);
    assert_true(products > 0 && products % 2 == 0);
    assert_int_equal(count(text, "tilestored"), 2);
    assert_int_equal(count(text, "tileloadd"), 2 + products / 2 * 3);
    free(text);
    tir_free(ir);
  }
}

/* On this CPU, whatever it has; and on the level that all have, by the statement that the instruction stands for. */
static void runs_equal(void **state) {
  (void)state;
  for (int c = 0; c < CASES; c++)
    for (int level = 0; level < 2; level++) {
      struct jit_target target;
      struct tir *source = read_case(c), *ir = read_case(c);
      tir_func f = tir_find_func(source, "main");
      struct tir_arguments expected, actual;
      struct tir_run_report report = {0};
      tensorize(ir, c);
      assert_accepted(jit_target_parse(level ? "x86-64" : "native", &target, err));
      assert_accepted(tir_make_arguments(source, f, 3, &expected, err));
      tir_copy_arguments(source, f, &expected, &actual);
      assert_accepted(
          tir_run(source, f, expected.args, expected.count, &(struct tir_run_options){.report = &report}, err));
      assert_accepted(jit_run(ir, tir_find_func(ir, "main"), &target, NULL, actual.args, err));
      double tolerance = tir_tolerance(source, f, report.epsilon);
      ms_error err = {0};
      if (!tir_same_arguments(source, f, &expected, &actual, tolerance, &err))
        fail_msg("%s: %s", cases[c].intrinsic, err.message);
      tir_arguments_free(&expected);
      tir_arguments_free(&actual);
      tir_free(source);
      tir_free(ir);
    }
}

/* Where the memory does not lie as the instruction needs it, the statement stands. */
static void refused_layout_computes(void **state) {
  (void)state;
  struct tir *ir = read_function(
      "A: T.Buffer((8,), \"uint8\"), B: T.Buffer((32, 4), \"int8\"), C: T.Buffer((16,), \"int32\")",
      "with T.attr(0, \"instruction\", T.vpdpbusd(T.address_of(C[0]), T.address_of(C[1]), T.address_of(A[0]), "
      "T.address_of(A[1]), T.address_of(B[0, 0]), T.address_of(B[2, 0]), T.address_of(B[0, 1]))):",
      "    for i in T.vectorized(16):",
      "        C[i] = C[i] + T.Cast(\"int32\", A[0]) * T.Cast(\"int32\", B[i * 2, 0])");
  char *text = assembly(ir, "x86-64-v4,+avx512vnni");
  assert_null(strstr(text, "vpdpbusd"));
  free(text);
  tir_free(ir);
}

/* Whatever a target's text has of features, code for it is made; what LLVM cannot select would end this process. */
static void no_target_ends_llvm(void **state) {
  (void)state;
  static const char *const features[] = {"avx",      "avx2",       "fma",        "avx512f",     "avx512bw", "avx512vl",
                                         "avx512dq", "avx512vnni", "avx512fp16", "avx512bf16",  "amx-tile", "amx-int8",
                                         "amx-bf16", "avxvnni",    "f16c",       "avxneconvert"};
  static const char *const bases[] = {"x86-64", "x86-64-v3", "skylake-avx512", "sapphirerapids"};
  enum { FEATURES = sizeof features / sizeof *features };
  uint64_t random = 1;
  enum { TRIED = 60 };
  for (int n = 0; n < TRIED; n++) {
    struct tir *ir = read_case(n % CASES);
    char text[JIT_TARGET_TEXT];
    int used = snprintf(text, sizeof text, "llvm -mcpu=%s -mattr=+avx", bases[n / CASES % 4]);
    for (int i = 0; i < 5; i++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      used += snprintf(text + used, sizeof text - (size_t)used, ",%c%s", "+-"[random >> 40 & 1],
                       features[(random >> 33) % FEATURES]);
    }
    struct jit_target target;
    assert_accepted(jit_target_parse(text, &target, err));
    if (strstr(target.features, "+avx512vl") && n % 3 == 0)
      snprintf(text + used, sizeof text - (size_t)used, " -vector-bits=256");
    assert_accepted(jit_target_parse(text, &target, err));
    tensorize(ir, n % CASES);
    char *code = assembly(ir, text);
    assert_true(target.tile_bytes || !strstr(code, "tdpbssd"));
    assert_true(target.tile_bfloats || !strstr(code, "tdpbf16ps"));
    /* tiles are configured with whatever registers the CPU has */
    assert_true(target.vector_bits == 512 || strstr(code, "tileloadd") || !strstr(code, "%zmm"));
    free(code);
    tir_free(ir);
  }
}

static void targets_add_features(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int bits;
    bool vnni, amx;
  } targets[] = {{"x86-64-v4", 512, false, false},
                 {"x86-64-v4,+avx512vnni", 512, true, false},
                 {"x86-64-v3,+avx512vnni", 512, true, false},
                 {"llvm -mcpu=cascadelake -mattr=-avx512vnni", 512, false, false},
                 {"sapphirerapids", 512, true, true},
                 {"llvm -mcpu=sapphirerapids -mattr=-amx-int8,-avx512f", 256, false, false}};
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    struct jit_target t, again;
    char text[JIT_TARGET_TEXT];
    assert_accepted(jit_target_parse(targets[i].text, &t, err));
    jit_target_text(&t, text, sizeof text);
    assert_accepted(jit_target_parse(text, &again, err));
    assert_string_equal(t.features, again.features);
    assert_int_equal(t.vector_bits, targets[i].bits);
    assert_int_equal(t.avx512_vnni, targets[i].vnni);
    assert_int_equal(t.tile_bytes, targets[i].amx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(code_holds_them),     cmocka_unit_test(accumulators_stay_in_registers),
      cmocka_unit_test(runs_equal),          cmocka_unit_test(refused_layout_computes),
      cmocka_unit_test(no_target_ends_llvm), cmocka_unit_test(targets_add_features)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

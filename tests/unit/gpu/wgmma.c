/* Warp-group MMA (wgmma): layouts of registers and shared memory, kernels on three oracles, refusals. */
#define _GNU_SOURCE
#include "cuda/oracle.h"
#include "jit/c/emit_c.h"
#include "jit/cuda/nvrtc.h"
#include "jit/cuda/resources.h"
#include "unit/script.h"

#include <stdio.h>

/* ---- Registers ---- */

static void each_register_once(void **state) {
  (void)state;
  for (int n = 8; n <= TIR_WGMMA_MOST_COLUMNS; n += 8) {
    static uint8_t seen[TIR_WGMMA_ROWS][TIR_WGMMA_MOST_COLUMNS];
    memset(seen, 0, sizeof seen);
    for (int t = 0; t < TIR_GROUP; t++)
      for (int i = 0; i < n / 2; i++) {
        struct tir_mma_place p = tir_wgmma_place(t, i);
        assert_true(p.row >= 0 && p.row < TIR_WGMMA_ROWS && p.column >= 0 && p.column < n);
        assert_int_equal(seen[p.row][p.column]++, 0);
      }
  }
}

/* From the figures of the PTX ISA, "WGMMA .m64nNk16 register fragment layout for accumulator matrix D". */
static void places_are_as_published(void **state) {
  (void)state;
  static const struct {
    int thread, element, row, column;
  } known[] = {{0, 0, 0, 0},    {0, 1, 0, 1},     {1, 0, 0, 2},     {4, 0, 1, 0},     {0, 2, 8, 0},
               {0, 4, 0, 8},    {31, 3, 15, 7},   {32, 0, 16, 0},   {64, 0, 32, 0},   {96, 0, 48, 0},
               {127, 3, 63, 7}, {127, 7, 63, 15}, {5, 126, 9, 250}, {5, 127, 9, 251}, {37, 6, 25, 10}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct tir_mma_place p = tir_wgmma_place(known[i].thread, known[i].element);
    assert_int_equal(p.row, known[i].row);
    assert_int_equal(p.column, known[i].column);
  }
}

/* ---- The canonical layout ---- */

/* Each byte has one place, pieces of 16 bytes stay whole, and eight rows that follow one upon the other meet in no
 * bank. */
static void panels_lose_nothing(void **state) {
  (void)state;
  for (int64_t row = 32; row <= 512; row += 32)
    for (int64_t rows = 8; rows <= 64; rows *= 2) {
      int64_t panel = row % 128 == 0 ? 128 : row % 64 == 0 ? 64 : 32, bytes[8];
      struct tir_swizzle s = {.shift = 7, .mask = (int)(panel / 16 - 1), .panel = panel, .row = row, .rows = rows};
      uint8_t *seen = calloc(1, (size_t)(row * rows));
      for (int64_t b = 0; b < row * rows; b++) {
        int64_t at = tir_swizzled(s, b);
        assert_true(at >= 0 && at < row * rows);
        assert_int_equal(at % 16, b % 16);
        assert_int_equal(seen[at]++, 0);
      }
      for (int64_t first = 0; first < rows; first += 8)
        for (int64_t piece = 0; piece < row; piece += 16) {
          for (int r = 0; r < 8; r++) bytes[r] = tir_swizzled(s, (first + r) * row + piece);
          assert_int_equal(tir_bank_passes(bytes, 8, 16), 1);
        }
      free(seen);
    }
}

/* Rows of accumulators with a padding of eight elements, as the rule sets it: stores of a warp have no bank
 * conflict. */
static void stored_sums_meet_in_no_bank(void **state) {
  (void)state;
  enum { BYTES = 8, LEAST = TIR_WARP * BYTES / 128 };
  for (int n = 64; n <= 256; n += 64)
    for (int element = 0; element < n / 2; element += 2) {
      int64_t apart[TIR_WARP], close[TIR_WARP];
      for (int t = 0; t < TIR_WARP; t++) {
        struct tir_mma_place p = tir_wgmma_place(t, element);
        apart[t] = 4 * (p.row * (n + 8) + p.column), close[t] = 4 * (p.row * n + p.column);
      }
      assert_int_equal(tir_bank_passes(apart, TIR_WARP, BYTES), LEAST);
      assert_true(tir_bank_passes(close, TIR_WARP, BYTES) > LEAST);
    }
}

/* ---- Kernels ---- */

struct product {
  const char *type;
  int groups, fragments, n, k; /* each warp group has so many fragments, one below the other */
  bool by_rows;                /* b's */
  const char *start_b;         /* where b begins; NULL: at 0 */
  const char *pipeline;        /* annotations of the loop over tiles of 64 of k; NULL: the tiles are the matrices */
  const char *text, *plain;    /* instead of what these make; NULL: they make it */
  bool producer;               /* with a producer warp group */
  int blocks;                  /* that do all tiles; 0: one each */
};

/* C = A * B, tiles in shared memory as large as the matrices. */
static char *text_of(const struct product *p) {
  char *text = NULL;
  int rows = p->groups * p->fragments * TIR_WGMMA_ROWS, threads = p->groups * TIR_GROUP, n = p->n, k = p->k;
  int b_rows = p->by_rows ? k : n, b_columns = p->by_rows ? n : k;
  if (asprintf(&text,
               "@T.prim_func(s_tir=True)\n"
               "def main(A: T.Buffer((%d, %d), \"%s\"), B: T.Buffer((%d, %d), \"%s\"), C: T.Buffer((%d, %d), "
               "\"float32\")):\n"
               "    for bx in T.thread_binding(1, thread=\"blockIdx.x\"):\n"
               "        S = T.alloc_buffer((%d, %d), \"%s\", scope=\"shared.panels\")\n"
               "        U = T.alloc_buffer((%d, %d), \"%s\", scope=\"shared.panels\")\n"
               "        Z = T.alloc_buffer((%d, %d), \"float32\", scope=\"wgmma.accumulator\")\n"
               "        for ty in T.thread_binding(%d, thread=\"threadIdx.y\"):\n"
               "            for tx in T.thread_binding(128, thread=\"threadIdx.x\"):\n"
               "                for i in range(%d):\n"
               "                    S[(i * %d + ty * 128 + tx) // %d, (i * %d + ty * 128 + tx) %% %d] = "
               "A[(i * %d + ty * 128 + tx) // %d, (i * %d + ty * 128 + tx) %% %d]\n"
               "                for i in range(%d):\n"
               "                    if i * %d + ty * 128 + tx < %d:\n"
               "                        U[(i * %d + ty * 128 + tx) // %d, (i * %d + ty * 128 + tx) %% %d] = "
               "B[(i * %d + ty * 128 + tx) // %d, (i * %d + ty * 128 + tx) %% %d]\n"
               "        for ty in T.thread_binding(%d, thread=\"threadIdx.y\"):\n"
               "            for tx in T.thread_binding(128, thread=\"threadIdx.x\"):\n"
               "                for f in range(%d):\n"
               "                    T.wgmma_fill(Z.data, f, %d, T.float32(0))\n"
               "                for k in range(%d):\n"
               "                    for f in range(%d):\n"
               "                        T.wgmma_mma(Z.data, f, %d, S.access_ptr(\"r\", offset=(ty * %d + f) * %d + k * "
               "16), %d, "
               "U.access_ptr(\"r\", offset=%s%sk * %d), %d, \"%s\")\n"
               "                for f in range(%d):\n"
               "                    T.wgmma_store(Z.data, f, %d, C.access_ptr(\"w\", offset=(ty * %d + f) * %d), %d)\n",
               rows, k, p->type, b_rows, b_columns, p->type, rows, n, /* parameters */
               rows, k, p->type, b_rows, b_columns, p->type, p->fragments * TIR_WGMMA_ROWS, n, p->groups, /* buffers */
               rows * k / threads, threads, k, threads, k, threads, k, threads, k,                        /* A */
               (n * k + threads - 1) / threads, threads, n * k, threads, b_columns, threads, b_columns, threads,
               b_columns, threads, b_columns, p->groups, /* B */
               p->fragments, n, k / TIR_WGMMA_DEPTH, p->fragments, n, p->fragments, TIR_WGMMA_ROWS * k, k,
               p->start_b ? p->start_b : "", p->start_b ? " + " : "", p->by_rows ? 16 * n : 16, b_columns,
               p->by_rows ? "row_major" : "col_major", p->fragments, n, p->fragments, TIR_WGMMA_ROWS * n, n) < 0)
    abort();
  return text;
}

/* The same, with copies of tiles and products in one loop. `besides`: what that loop does after its products. */
__attribute__((noinline)) static char *pipelined_text_of(const struct product *p, const char *besides) {
  char *text = NULL;
  int rows = p->groups * p->fragments * TIR_WGMMA_ROWS, threads = p->groups * TIR_GROUP, n = p->n, k = p->k;
  int length = p->by_rows ? n / 8 : 8; /* of a row of b's tile, in vectors */
  if (asprintf(
          &text,
          "@T.prim_func(s_tir=True)\n"
          "def main(A: T.Buffer((%d, %d), \"%s\"), B: T.Buffer((%d, %d), \"%s\"), C: T.Buffer((%d, %d), "
          "\"float32\")):\n"
          "    for bx in T.thread_binding(1, thread=\"blockIdx.x\"):\n"
          "        Z = T.alloc_buffer((%d, %d), \"float32\", scope=\"wgmma.accumulator\")\n"
          "        for t in T.thread_binding(%d, thread=\"threadIdx.x\"):\n"
          "            for f in range(%d):\n"
          "                T.wgmma_fill(Z.data, f, %d, T.float32(0))\n"
          "        for k in T.serial(%d, annotations={%s}):\n"
          "            S = T.alloc_buffer((%d, 64), \"%s\", scope=\"shared.panels\")\n"
          "            U = T.alloc_buffer((%d, %d), \"%s\", scope=\"shared.panels\")\n"
          "            for t in T.thread_binding(%d, thread=\"threadIdx.x\"):\n"
          "                for i in range(%d):\n"
          "                    for v in T.vectorized(8):\n"
          "                        S[(i * %d + t) // 8, t %% 8 * 8 + v] = A[(i * %d + t) // 8, k * 64 + t %% 8 * 8 + "
          "v]\n"
          "            for t in T.thread_binding(%d, thread=\"threadIdx.x\"):\n"
          "                for i in range(%d):\n"
          "                    for v in T.vectorized(8):\n"
          "                        U[(i * %d + t) // %d, t %% %d * 8 + v] = B[%s(i * %d + t) // %d, %st %% %d * 8 + "
          "v]\n"
          "            for t in T.thread_binding(%d, thread=\"threadIdx.x\"):\n"
          "                for j in range(4):\n"
          "                    for f in range(%d):\n"
          "                        T.wgmma_mma(Z.data, f, %d, S.access_ptr(\"r\", offset=(t // 128 * %d + f) * 4096 + "
          "j * "
          "16), 64, U.access_ptr(\"r\", offset=j * %d), %d, \"%s\")\n%s"
          "        for t in T.thread_binding(%d, thread=\"threadIdx.x\"):\n"
          "            for f in range(%d):\n"
          "                T.wgmma_store(Z.data, f, %d, C.access_ptr(\"w\", offset=(t // 128 * %d + f) * %d), %d)\n",
          rows, k, p->type, p->by_rows ? k : n, p->by_rows ? n : k, p->type, rows, n, /* parameters */
          p->fragments * TIR_WGMMA_ROWS, n, threads, p->fragments, n, k / 64, p->pipeline, rows, p->type,
          p->by_rows ? 64 : n, p->by_rows ? n : 64, p->type, threads, rows * 8 / threads, threads, threads, /* a */
          threads, n * 8 / threads, threads, length, length, p->by_rows ? "k * 64 + " : "", threads, length,
          p->by_rows ? "" : "k * 64 + ", length, threads, /* b */
          p->fragments, n, p->fragments, p->by_rows ? 16 * n : 16, p->by_rows ? n : 64,
          p->by_rows ? "row_major" : "col_major", besides, threads, p->fragments, n, p->fragments, TIR_WGMMA_ROWS * n,
          n) < 0)
    abort();
  return text;
}

/* What they compute, by plain loops. */
static struct tir *read_plain(const struct product *p) {
  ms_error err = {0};
  char *text = p->plain ? strdup(p->plain) : NULL;
  int rows = p->groups * p->fragments * TIR_WGMMA_ROWS;
  if (!text && asprintf(&text,
                        "@T.prim_func(s_tir=True)\n"
                        "def main(A: T.Buffer((%d, %d), \"%s\"), B: T.Buffer((%d, %d), \"%s\"), C: T.Buffer((%d, %d), "
                        "\"float32\")):\n"
                        "    for i, j in T.grid(%d, %d):\n"
                        "        C[i, j] = T.float32(0)\n"
                        "        for k in range(%d):\n"
                        "            C[i, j] = C[i, j] + T.Cast(\"float32\", A[i, k]) * T.Cast(\"float32\", B[%s])\n",
                        rows, p->k, p->type, p->by_rows ? p->k : p->n, p->by_rows ? p->n : p->k, p->type, rows, p->n,
                        rows, p->n, p->k, p->by_rows ? "k, j" : "j, k") < 0)
    abort();
  struct tir *ir = tir_read(text, strlen(text), "plain", &err);
  if (!ir) fail_msg("%s\n%s", err.message, text);
  free(text);
  return ir;
}

/* The text with a producer warp group, and with so many blocks that do all tiles. Takes it. */
static char *with_producer(char *text, int blocks) {
  static const char asks[] = "\"software_pipeline_tensor_copies\": 1";
  char *made = malloc(strlen(text) + 128);
  if (!made || !strstr(text, asks)) abort();
  size_t until = strlen(text) - strlen(strstr(text, asks));
  sprintf(made, "%.*s\"software_pipeline_producer\": 1, \"software_pipeline_blocks\": %d, %s", (int)until, text, blocks,
          text + until);
  free(text);
  return made;
}

static struct tir *read_product(const struct product *p) {
  ms_error err = {0};
  char *text = p->text ? strdup(p->text) : p->pipeline ? pipelined_text_of(p, "") : text_of(p);
  if (p->producer) text = with_producer(text, p->blocks);
  struct tir *ir = tir_read(text, strlen(text), "product", &err);
  if (!ir) fail_msg("%s\n%s", err.message, text);
  free(text);
  return ir;
}

static const struct tir_lower_options lowering = {.device = TIR_GPU,
                                                  .verify = true,
                                                  .vector_bits = 128,
                                                  .shared_bytes = 232448,
                                                  .capabilities = TIR_SET(ASYNC_COPIES) | TIR_SET(TENSOR_COPIES)};

#define AHEAD(stage, in_flight)                                                                                        \
  "\"software_pipeline_stage\": [0, 0, " #stage "], \"software_pipeline_order\": [0, 1, 2], "                          \
  "\"software_pipeline_async_stages\": [0], \"software_pipeline_products_in_flight\": " #in_flight
#define BOXES(stage, in_flight) AHEAD(stage, in_flight) ", \"software_pipeline_tensor_copies\": 1"

/* One tile of 64 rows and columns of a matrix that is smaller, in steps of 64: zeros where it ends. Or three of them,
 * from three matrices in a row. */
#define STEPS(parameters, blocks, a, b, c)                                                                             \
  "@T.prim_func(s_tir=True)\ndef main(" parameters "):\n"                                                              \
  "    for bx in T.thread_binding(" #blocks ", thread=\"blockIdx.x\"):\n"                                              \
  "        Z = T.alloc_buffer((64, 64), \"float32\", scope=\"wgmma.accumulator\")\n"                                   \
  "        for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                                  \
  "            T.wgmma_fill(Z.data, 0, 64, T.float32(0))\n"                                                            \
  "        for k in T.serial(5, annotations={" BOXES(                                                                  \
      2,                                                                                                               \
      1) "}):\n"                                                                                                       \
         "            S = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")\n"                            \
         "            U = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")\n"                            \
         "            for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                       \
         "                for i, v in T.grid(4, 8):\n"                                                                 \
         "                    S[(i * 128 + t) // 8, t % 8 * 8 + v] = " a "\n"                                          \
         "            for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                       \
         "                for i, v in T.grid(6, 8):\n"                                                                 \
         "                    if i * 128 + t < 512:\n"                                                                 \
         "                        U[(i * 128 + t) // 8, t % 8 * 8 + v] = " b "\n"                                      \
         "            for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                       \
         "                for j in range(4):\n"                                                                        \
         "                    T.wgmma_mma(Z.data, 0, 64, S.access_ptr(\"r\", offset=j * 16), 64, U.access_ptr(\"r\", " \
         "offset=j * 1024), 64, \"row_major\")\n"                                                                      \
         "        for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                           \
         "            T.wgmma_store(Z.data, 0, 64, C.access_ptr(\"w\"" c "), 64)\n"
#define ENDING_PARAMETERS                                                                                              \
  "A: T.Buffer((50, 312), \"float16\"), B: T.Buffer((312, 40), \"float16\"), C: T.Buffer((64, 64), \"float32\")"
#define ENDING(a, b) STEPS(ENDING_PARAMETERS, 1, a, b, "")
#define ENDING_A                                                                                                       \
  "T.if_then_else((i * 128 + t) // 8 < 50 and k * 64 + t % 8 * 8 + v < 312, A[(i * 128 + t) // 8, k * 64 + t % 8 * 8 " \
  "+ v], T.float16(0))"
#define ENDING_B                                                                                                       \
  "T.if_then_else(t % 8 * 8 + v < 40 and k * 64 + (i * 128 + t) // 8 < 312, B[k * 64 + (i * 128 + t) // 8, t % 8 * 8 " \
  "+ v], T.float16(0))"
#define ENDING_PLAIN                                                                                                   \
  "@T.prim_func(s_tir=True)\ndef main(" ENDING_PARAMETERS "):\n"                                                       \
  "    for i, j in T.grid(64, 64):\n"                                                                                  \
  "        C[i, j] = T.float32(0)\n"                                                                                   \
  "        for k in range(312):\n"                                                                                     \
  "            if i < 50 and j < 40:\n"                                                                                \
  "                C[i, j] = C[i, j] + T.Cast(\"float32\", A[i, k]) * T.Cast(\"float32\", B[k, j])\n"
#define ROWS_PARAMETERS                                                                                                \
  "A: T.Buffer((3, 64, 320), \"float16\"), B: T.Buffer((3, 320, 64), \"float16\"), C: T.Buffer((3, 64, 64), "          \
  "\"float32\")"
#define THREE                                                                                                          \
  STEPS(ROWS_PARAMETERS, 3, "A[bx, (i * 128 + t) // 8, k * 64 + t % 8 * 8 + v]",                                       \
        "B[bx, k * 64 + (i * 128 + t) // 8, t % 8 * 8 + v]", ", offset=bx * 4096")
#define THREE_PLAIN                                                                                                    \
  "@T.prim_func(s_tir=True)\ndef main(" ROWS_PARAMETERS "):\n"                                                         \
  "    for b, i, j in T.grid(3, 64, 64):\n"                                                                            \
  "        C[b, i, j] = T.float32(0)\n"                                                                                \
  "        for k in range(320):\n"                                                                                     \
  "            C[b, i, j] = C[b, i, j] + T.Cast(\"float32\", A[b, i, k]) * T.Cast(\"float32\", B[b, k, j])\n"

/* Six tiles along two axes of blocks, whose last rows and columns end early; sums go by way of shared
 * memory. */
#define GRID_PARAMETERS                                                                                                \
  "A: T.Buffer((104, 120), \"float16\"), B: T.Buffer((120, 184), \"float16\"), C: T.Buffer((104, 184), \"float32\")"
#define GRID(pipeline)                                                                                                 \
  "@T.prim_func(s_tir=True)\ndef main(" GRID_PARAMETERS "):\n"                                                         \
  "    for by in T.thread_binding(2, thread=\"blockIdx.y\"):\n"                                                        \
  "      for bx in T.thread_binding(3, thread=\"blockIdx.x\"):\n"                                                      \
  "        Z = T.alloc_buffer((64, 64), \"float32\", scope=\"wgmma.accumulator\")\n"                                   \
  "        D = T.alloc_buffer((64, 72), scope=\"shared\")\n"                                                           \
  "        for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                                  \
  "            T.wgmma_fill(Z.data, 0, 64, T.float32(0))\n"                                                            \
  "        for k in T.serial(2, annotations={" pipeline "}):\n"                                                        \
  "            S = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")\n"                                   \
  "            U = T.alloc_buffer((64, 64), \"float16\", scope=\"shared.panels\")\n"                                   \
  "            for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                              \
  "                for i, v in T.grid(4, 8):\n"                                                                        \
  "                    S[(i * 128 + t) // 8, t % 8 * 8 + v] = T.if_then_else(by * 64 + (i * 128 + t) // 8 < 104 and "  \
  "k * 64 + t % 8 * 8 + v < 120, A[by * 64 + (i * 128 + t) // 8, k * 64 + t % 8 * 8 + v], T.float16(0))\n"             \
  "            for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                              \
  "                for i, v in T.grid(4, 8):\n"                                                                        \
  "                    U[(i * 128 + t) // 8, t % 8 * 8 + v] = T.if_then_else(k * 64 + (i * 128 + t) // 8 < 120 and "   \
  "bx * 64 + t % 8 * 8 + v < 184, B[k * 64 + (i * 128 + t) // 8, bx * 64 + t % 8 * 8 + v], T.float16(0))\n"            \
  "            for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                              \
  "                for j in range(4):\n"                                                                               \
  "                    T.wgmma_mma(Z.data, 0, 64, S.access_ptr(\"r\", offset=j * 16), 64, "                            \
  "U.access_ptr(\"r\", offset=j * 1024), 64, \"row_major\")\n"                                                         \
  "        for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                                  \
  "            T.wgmma_store(Z.data, 0, 64, D.access_ptr(\"w\"), 72)\n"                                                \
  "        for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"                                                  \
  "            for i in range(32):\n"                                                                                  \
  "                if by * 64 + i * 2 + t // 64 < 104 and bx * 64 + t % 64 < 184:\n"                                   \
  "                    C[by * 64 + i * 2 + t // 64, bx * 64 + t % 64] = D[i * 2 + t // 64, t % 64]\n"
#define GRID_PLAIN                                                                                                     \
  "@T.prim_func(s_tir=True)\ndef main(" GRID_PARAMETERS "):\n"                                                         \
  "    for i, j in T.grid(104, 184):\n"                                                                                \
  "        C[i, j] = T.float32(0)\n"                                                                                   \
  "        for k in range(120):\n"                                                                                     \
  "            C[i, j] = C[i, j] + T.Cast(\"float32\", A[i, k]) * T.Cast(\"float32\", B[k, j])\n"

static const struct product products[] = {
    {"float16", 1, 1, 64, 64, true, NULL, NULL},
    {"float16", 1, 1, 64, 64, false, NULL, NULL},
    {"bfloat16", 2, 1, 128, 32, true, NULL, NULL},
    {"float16", 2, 2, 32, 128, true, NULL, NULL},
    {"bfloat16", 1, 2, 24, 48, false, NULL, NULL},
    {"float16", 1, 1, 256, 16, true, NULL, NULL},
    {"bfloat16", 1, 1, 96, 32, true, NULL, NULL},
    {"float16", 1, 1, 16, 96, true, NULL, NULL},
    {"float16", 1, 1, 192, 80, false, NULL, NULL},
    {"bfloat16", 1, 1, 8, 192, false, NULL, NULL},
    {"float16", 1, 1, 64, 320, true, NULL, AHEAD(2, 1)},
    {"bfloat16", 2, 1, 96, 384, false, NULL, AHEAD(2, 1)},
    {"float16", 2, 2, 64, 256, true, NULL, AHEAD(1, 1)},
    {"bfloat16", 1, 1, 128, 512, false, NULL, AHEAD(3, 1)},
    {"float16", 1, 1, 128, 256, true, NULL, AHEAD(2, 0)},
    {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1)},
    {"bfloat16", 2, 1, 96, 384, false, NULL, BOXES(2, 1)},
    {"float16", 2, 2, 64, 256, true, NULL, BOXES(1, 1)},
    {"bfloat16", 1, 1, 128, 512, false, NULL, BOXES(3, 1)},
    {"float16", 1, 1, 128, 640, true, NULL, BOXES(2, 0)},
    {"float16", 2, 1, 256, 192, true, NULL, BOXES(1, 0)},
    {"bfloat16", 1, 1, 32, 320, true, NULL, BOXES(2, 1)},
    {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1), ENDING(ENDING_A, ENDING_B), ENDING_PLAIN},
    {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1), THREE, THREE_PLAIN},
    {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1), .producer = true},
    {"bfloat16", 2, 1, 96, 384, false, NULL, BOXES(2, 1), .producer = true},
    {"float16", 2, 2, 64, 256, true, NULL, BOXES(1, 1), .producer = true},
    {"bfloat16", 1, 1, 128, 128, false, NULL, BOXES(3, 1), .producer = true}, /* two iterations of five versions */
    {"float16", 2, 1, 128, 320, true, NULL, BOXES(0, 1), .producer = true},   /* one version */
    {"float16", 2, 1, 256, 320, true, NULL, BOXES(1, 0), .producer = true},
    {"bfloat16", 3, 1, 96, 256, false, NULL, BOXES(2, 1), .producer = true},
    {"float16", 2, 2, 192, 128, false, NULL, BOXES(1, 0), .producer = true}, /* 192 sums a thread */
    {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1), ENDING(ENDING_A, ENDING_B), ENDING_PLAIN, true},
    {"float16", 1, 1, 64, 320, true, NULL, BOXES(3, 0), THREE, THREE_PLAIN, true},
    {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1), THREE, THREE_PLAIN, true, 1}, /* one block does all */
    {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1), THREE, THREE_PLAIN, true, 2}, /* two tiles, and one */
    {"float16", 1, 1, 64, 128, true, NULL, BOXES(2, 1), GRID(BOXES(2, 1)), GRID_PLAIN, true, 2},
    {"float16", 1, 1, 64, 128, true, NULL, BOXES(0, 0), GRID(BOXES(0, 0)), GRID_PLAIN, true, 5},
};
enum { COUNT = sizeof products / sizeof *products };

/* NVRTC compiles it: products wait for nothing, sums are in registers. false: NVRTC is missing. */
static bool check_code(const char *source, struct c_kernels *kernels, const char *what) {
  struct jit_target target;
  struct nvrtc_code code;
  ms_error err = {0};
  assert_true(jit_target_parse("cuda -arch=sm_90a", &target, &err));
  int64_t expected = kernels->at[0].shared_bytes;
  bool ok = nvrtc_compile(source, &target, false, false, &code, &err);
  if (!ok && err.code != MS_NO_LIBRARY) fail_msg("%s: %s\n%s", what, err.message, source);
  if (ok) {
    struct jit_resources *k = &kernels->at[0];
    if (!resources_note(code.log, &target, k, 1, &err)) fail_msg("%s: %s", what, err.message);
    if (k->serialized || strstr(code.log, "(C75")) fail_msg("%s: products wait for one another:\n%s", what, code.log);
    assert_true(k->compiled);
    assert_int_equal(k->spill_stores, 0);
    assert_int_equal(k->stack_bytes, 0);
    assert_int_equal(k->shared_bytes, expected);
  }
  nvrtc_code_free(&code);
  return ok;
}

static void three_oraclees_agree(void **state) {
  (void)state;
  static struct oracle oraclees[COUNT];
  static struct tir *modules[COUNT];
  static char paths[COUNT][ORACLE_PATH];
  char folder[] = "/tmp/wgmma.XXXXXX", command[64], what[64], blocks[32];
  bool compiled = true;
  struct jit_target target;
  ms_error err = {0};
  assert_non_null(mkdtemp(folder));
  assert_true(jit_target_parse("cuda -arch=sm_90a", &target, &err));
  for (uint32_t i = 0; i < COUNT; i++) {
    const struct product *p = &products[i];
    struct c_kernels kernels = {0};
    snprintf(what, sizeof what, "%s, n %d, k %d, %s", p->type, p->n, p->k, p->by_rows ? "by rows" : "by columns");
    modules[i] = p->pipeline ? read_plain(p) : read_product(p);
    struct tir *ir = read_product(p);
    if (!tir_lower(ir, 1, &lowering, &err)) fail_msg("%s: %s", what, err.message);
    if (!oracle_open(&oraclees[i], modules[i], 1, 3, &err)) fail_msg("%s: %s", what, err.message);
    if (!oracle_interprets(&oraclees[i], ir, 1, &err)) fail_msg("%s: %s", what, err.message);
    char *source = jit_emit_c(ir, 1, "product", &target, NULL, &kernels, &err);
    if (!source) fail_msg("%s: %s", what, err.message);
    /* Whether b's columns or its rows lie side by side is PTX's last operand, which the shim does not see. */
    assert_non_null(strstr(source, p->by_rows ? ", p, 1, 1, 0, 1;" : ", p, 1, 1, 0, 0;"));
    bool boxes = p->pipeline && strstr(p->pipeline, "tensor_copies");
    assert_int_equal(boxes, !!strstr(source, "ms_tensor_copy_"));
    assert_null(strstr(source, "const int64_t tx")); /* barriers of 64 bits make no index wide */
    assert_true(!boxes || !strstr(source, "ms_copy_"));
    assert_int_equal(kernels.at[0].threads, (p->groups + p->producer) * TIR_GROUP);
    snprintf(blocks, sizeof blocks, "dim3(%d, 1, 1)", p->blocks);
    assert_true(!p->blocks || strstr(source, blocks));
    assert_int_equal(p->producer && p->groups == 2, !!strstr(source, "ms_more_registers<232>()"));
    assert_int_equal(p->producer && p->groups == 3, !!strstr(source, "ms_more_registers<152>()"));
    compiled = check_code(source, &kernels, what) && compiled;
    oracle_write(folder, i, source, paths[i]);
    free(source);
    free(kernels.at);
    tir_free(ir);
  }
  if (!compiled) printf("NVRTC skipped: it is missing\n");
  bool runs = oracle_compile(folder);
  if (!runs) printf("the shim skipped: there is no g++\n");
  for (uint32_t i = 0; i < COUNT; i++) {
    char why[ORACLE_TEXT];
    if (runs && !oracle_agrees(&oraclees[i], paths[i], why)) fail_msg("%s: %s", paths[i], why);
    oracle_close(&oraclees[i]);
    tir_free(modules[i]);
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

/* The interpreter's own run of what is not lowered has no fences to ask for: the product is as plain loops have it. */
static void products_are_sums(void **state) {
  (void)state;
  ms_error err = {0};
  struct tir *ir = read_product(&products[1]);
  struct tir *plain = read_function(
      "A: T.Buffer((64, 64), \"float16\"), B: T.Buffer((64, 64), \"float16\"), C: T.Buffer((64, 64), \"float32\")",
      "for i, j, k in T.grid(64, 64, 64):", "    with T.sblock(\"C\"):",
      "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
      "        with T.init():", "            C[vi, vj] = T.float32(0)",
      "        C[vi, vj] = C[vi, vj] + T.Cast(\"float32\", A[vi, vk]) * T.Cast(\"float32\", B[vj, vk])");
  struct tir *lowered = tir_new();
  const struct tir_run_options options = {.lowered = true};
  tir_copy(lowered, ir);
  if (!tir_lower(lowered, 1, &lowering, &err)) fail_msg("%s", err.message);
  if (!tir_equal_results(plain, 1, NULL, lowered, 1, &options, 3, &err)) fail_msg("%s", err.message);
  tir_free(lowered);
  tir_free(plain);
  tir_free(ir);
}

/* ---- Groups in flight ---- */

/* One after the other, as far as there is room. */
static void note(void *data, const char *text) {
  size_t length = strlen(data);
  snprintf((char *)data + length, 300 - length, "%s; ", text);
}

static char *lowered_text(char *text, char *noted) {
  struct tir_lower_options options = lowering;
  ms_error err = {0};
  options.noted = note, options.data = noted;
  noted[0] = '\0';
  struct tir *ir = tir_read(text, strlen(text), "product", &err);
  if (!ir) fail_msg("%s\n%s", err.message, text);
  free(text);
  if (!tir_lower(ir, 1, &options, &err)) fail_msg("%s", err.message);
  text = tir_print(ir, TIR_NONE, 0);
  tir_free(ir);
  return text;
}

static int count_of(const char *text, const char *what) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, what)); at++) count++;
  return count;
}

static int barriers_in_loop(const char *text) {
  const char *loop = strstr(text, "                    for k in"),
             *end = loop ? strstr(loop, "\n                    T.") : NULL;
  if (!end) fail_msg("%s", text);
  char *body = strndup(loop, (size_t)(end - loop));
  int count = count_of(body, "T.tvm_storage_sync(");
  free(body);
  return count;
}

/* Threads synchronize once an iteration, with TMA copies not at all: copies are to other stage buffers than wgmma
 * reads. The loop's wgmma groups stay in flight, and those of the steps behind it, but for the last. */
static void groups_stay_in_flight(void **state) {
  (void)state;
  char noted[300];
  for (size_t i = 0; i < COUNT; i++) {
    if (!products[i].pipeline || products[i].producer) continue;
    bool stays = strstr(products[i].pipeline, "in_flight\": 1");
    char *text = lowered_text(pipelined_text_of(&products[i], ""), noted);
    int ahead;
    assert_int_equal(sscanf(strstr(products[i].pipeline, "[0, 0, "), "[0, 0, %d]", &ahead), 1);
    assert_int_equal(count_of(text, "T.wgmma_wait(1, Z.data)"), ahead - 1 + stays);
    assert_int_equal(count_of(text, "T.wgmma_wait(0, Z.data)"), 2 - stays);
    assert_int_equal(barriers_in_loop(text), !strstr(products[i].pipeline, "tensor_copies"));
    assert_string_equal(noted, "");
    assert_null(strstr(text, "in_flight"));
    free(text);
  }
}

/* What cannot be proved is waited for, and told. */
static void what_is_not_proved_is_waited_for(void **state) {
  (void)state;
  char noted[300];
  const struct product one = {"float16", 1, 1, 64, 320, true, NULL, AHEAD(0, 1)}; /* each step overwrites the tile */
  const struct product more = {"float16",
                               1,
                               1,
                               64,
                               320,
                               true,
                               NULL,
                               "\"software_pipeline_stage\": [0, 0, 2, 2], \"software_pipeline_order\": [0, 1, 2, 3], "
                               "\"software_pipeline_async_stages\": [0], \"software_pipeline_products_in_flight\": 1"};
  char *text = lowered_text(pipelined_text_of(&one, ""), noted);
  assert_null(strstr(text, "wgmma_wait(1"));
  assert_non_null(strstr(noted, "products go on"));
  free(text);
  /* The sums are stored in each iteration. */
  text =
      lowered_text(pipelined_text_of(&more, "            for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"
                                            "                T.wgmma_store(Z.data, 0, 64, C.access_ptr(\"w\"), 64)\n"),
                   noted);
  assert_null(strstr(text, "wgmma_wait(1"));
  assert_non_null(strstr(noted, "products go on"));
  free(text);
  struct tir *ir = read_product(&(struct product){"float16", 1, 1, 64, 320, true, NULL, AHEAD(2, 2)});
  ms_error err = {0};
  assert_false(tir_lower(ir, 1, &lowering, &err));
  assert_int_equal(err.code, MS_LOWER_PIPELINE);
  assert_non_null(strstr(err.message, "neither 0 nor 1"));
  tir_free(ir);
}

/* ---- TMA copies ---- */

/* What is no box is copied by all threads, and told. */
static void what_is_no_box_is_told(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {
      {ENDING("T.if_then_else(t % 8 * 8 + v < 40, A[(i * 128 + t) // 16, t % 8 * 8 + v], T.float16(0))", ENDING_B),
       "statement 0 is a TMA bulk tensor copy: rows or columns that it loads do not lie as it stores them"},
      {ENDING("T.if_then_else((i * 128 + t) // 8 < 40, A[(i * 128 + t) // 8, t % 8 * 8 + v], T.float16(0))", ENDING_B),
       "statement 0 is a TMA bulk tensor copy: it copies under a condition that does not say what lies in the tensor"},
      {ENDING("T.if_then_else((i * 128 + t) // 8 < 50, A[(i * 128 + t) // 8, t % 8 * 8 + v], T.float16(1))", ENDING_B),
       "statement 0 is a TMA bulk tensor copy: what it does not load is not zero"},
      {ENDING("A[0, t % 8 * 8 + v] + T.float16(1)", ENDING_B),
       "statement 0 is a TMA bulk tensor copy: it computes what it stores"},
      {STEPS("A: T.Buffer((64, 321), \"float16\"), B: T.Buffer((320, 64), \"float16\"), C: T.Buffer((64, 64), "
             "\"float32\")",
             1, "A[(i * 128 + t) // 8, k * 64 + t % 8 * 8 + v]", "B[k * 64 + (i * 128 + t) // 8, t % 8 * 8 + v]", ""),
       "statement 0 is a TMA bulk tensor copy: its rows in memory do not begin at multiples of 16 bytes"},
      {STEPS("A: T.Buffer((64, 320), \"float16\"), B: T.Buffer((320, 64), \"float16\"), C: T.Buffer((64, 64), "
             "\"float32\")",
             1, "A[(i * 128 + t) // 8, k * 64 + t % 8 * 8 + v]",
             "B[k * 64 + (i * 128 + t) // 8, t % 8 * 8 + v]\n                    if i * 128 + t < 500:\n"
             "                        U[(i * 128 + t) // 8, t % 8 * 8 + v] = T.float16(0)",
             ""),
       "statement 1 is a TMA bulk tensor copy: it does more than copy one buffer"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char noted[300];
    char *text = lowered_text(strdup(cases[i].text), noted);
    if (!strstr(noted, cases[i].says)) fail_msg("%zu: %s", i, noted);
    free(text);
  }
}

/* What has no producer is done by the threads that there are, and told. */
static void what_has_no_producer_is_told(void **state) {
  (void)state;
  static const struct product whole = {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1)},
                              two = {"float16", 2, 1, 64, 320, true, NULL, BOXES(2, 1)};
  static const struct product more = {
      "float16",
      1,
      1,
      64,
      320,
      true,
      NULL,
      "\"software_pipeline_stage\": [0, 0, 2, 2], \"software_pipeline_order\": [0, 1, 2, 3], "
      "\"software_pipeline_async_stages\": [0], \"software_pipeline_tensor_copies\": 1"};
  static const char besides[] = "            for t in T.thread_binding(128, thread=\"threadIdx.x\"):\n"
                                "                C[0, 0] = T.float32(k)\n";
  char noted[300], *text = lowered_text(with_producer(pipelined_text_of(&whole, ""), 0), noted);
  assert_string_equal(noted, "");
  assert_non_null(strstr(text, "thread_binding(256"));
  free(text);
  text = lowered_text(with_producer(pipelined_text_of(&more, besides), 0), noted);
  if (!strstr(noted, "a producer warp group: it does more than such copies and MMAs")) fail_msg("%s", noted);
  assert_non_null(strstr(text, "thread_binding(128"));
  free(text);
  struct tir_lower_options few = lowering;
  ms_error err = {0};
  few.block_threads = 256, few.noted = note, few.data = noted, noted[0] = '\0';
  text = with_producer(pipelined_text_of(&two, ""), 0);
  struct tir *ir = tir_read(text, strlen(text), "product", &err);
  assert_true(tir_lower(ir, 1, &few, &err));
  if (!strstr(noted, "a producer warp group: the block would have too many threads")) fail_msg("%s", noted);
  tir_free(ir);
  free(text);
}

/* As many blocks as there are tiles do one each; an axis of blocks may be another's. */
static void what_is_not_persistent_is_told(void **state) {
  (void)state;
  static const struct product one = {"float16", 1, 1, 64, 320, true, NULL, BOXES(2, 1)};
  static const char says[] = "blocks that do one tile after the other: ";
  char noted[300], *text = lowered_text(with_producer(strdup(GRID(BOXES(2, 1))), 4), noted);
  assert_string_equal(noted, "");
  assert_non_null(strstr(text, "thread_binding(4, thread=\"blockIdx.x\")"));
  assert_int_equal(count_of(text, "for turn in range("), 2);
  free(text);
  free(lowered_text(with_producer(strdup(GRID(BOXES(2, 1))), 6), noted));
  if (!strstr(noted, says) || !strstr(noted, "there are no more tiles")) fail_msg("%s", noted);
  text = with_producer(pipelined_text_of(&one, ""), 4);
  *(strstr(text, "producer\": 1") + strlen("producer\": ")) = '0';
  free(lowered_text(text, noted));
  if (!strstr(noted, says) || !strstr(noted, "no producer warp group copies")) fail_msg("%s", noted);
  text = with_producer(strdup(GRID(BOXES(2, 1))), -4);
  ms_error err = {0};
  struct tir *ir = tir_read(text, strlen(text), "product", &err);
  if (!ir) fail_msg("%s", err.message);
  assert_false(tir_lower(ir, 1, &lowering, &err));
  assert_int_equal(err.code, MS_LOWER_PIPELINE);
  assert_non_null(strstr(err.message, "a number of blocks that is no constant, or below 0"));
  tir_free(ir);
  free(text);
}

/* A buffer that not all of is filled stays as it was; the annotation is 0 or 1. */
static void what_is_not_filled_is_no_box(void **state) {
  (void)state;
  char noted[300], *text = strdup(THREE), *at = strstr(text, "< 512");
  assert_non_null(at);
  at[2] = '4'; /* 412 */
  free(lowered_text(text, noted));
  assert_non_null(strstr(noted, "statement 1 is a TMA bulk tensor copy: it is not shown to fill the whole buffer"));
  text = strdup(THREE), at = strstr(text, "tensor_copies\": 1");
  assert_non_null(at);
  at[strlen("tensor_copies\": ")] = '2';
  ms_error err = {0};
  struct tir *ir = tir_read(text, strlen(text), "product", &err);
  assert_false(tir_lower(ir, 1, &lowering, &err));
  assert_int_equal(err.code, MS_LOWER_PIPELINE);
  assert_non_null(strstr(err.message, "neither 0 nor 1"));
  tir_free(ir);
  free(text);
}

/* ---- What is refused ---- */

static void expect_refused(struct tir *ir, const char *says) {
  ms_error err = {0};
  if (tir_lower(ir, 1, &lowering, &err)) fail_msg("lowered: %s", says);
  assert_int_equal(err.code, MS_LOWER_GROUP);
  if (!strstr(err.message, says)) fail_msg("%s", err.message);
  tir_free(ir);
}

static struct tir *changed(const struct product *p, const char *is, const char *becomes) {
  ms_error err = {0};
  char *text = text_of(p), *at = strstr(text, is), *made = NULL;
  if (!at || asprintf(&made, "%.*s%s%s", (int)(at - text), text, becomes, at + strlen(is)) < 0)
    fail_msg("no %s in %s", is, text);
  struct tir *ir = tir_read(made, strlen(made), "product", &err);
  if (!ir) fail_msg("%s\n%s", err.message, made);
  free(made);
  free(text);
  return ir;
}

static void what_descriptors_cannot_name(void **state) {
  (void)state;
  const struct product p = products[0], deep = {"float16", 1, 1, 64, 128, false, NULL, NULL};
  expect_refused(changed(&p, "U.access_ptr(\"r\", offset=k", "U.access_ptr(\"r\", offset=4 * 64 + k"),
                 "in the middle of eight rows");
  expect_refused(changed(&p, "U.access_ptr(\"r\", offset=k", "U.access_ptr(\"r\", offset=8 + k"),
                 "in the middle of eight rows");
  expect_refused(changed(&deep, "U.access_ptr(\"r\", offset=k", "U.access_ptr(\"r\", offset=8 + k"),
                 "or of a swizzled tile");
  expect_refused(changed(&p, "\"float16\", scope=\"shared.panels\"", "\"float16\", scope=\"shared\""),
                 "not in the canonical layout");
  expect_refused(changed(&p, "64, U.access_ptr", "32, U.access_ptr"), "not those of the buffer");
  expect_refused(changed(&p, "T.wgmma_mma(Z.data, f, 64", "T.wgmma_mma(Z.data, f, 60"), "no product");
  expect_refused(changed(&p, "wgmma_mma(Z.data, f", "wgmma_mma(Z.data, f + tx"), "no constant");
  expect_refused(changed(&p, "C.access_ptr(\"w\", offset=", "C.access_ptr(\"w\", offset=1 + "), "begin at an odd one");
}

/* Another architecture has no such products. */
static void other_targets_refuse(void **state) {
  (void)state;
  struct jit_target target;
  ms_error err = {0};
  struct tir *ir = read_product(&products[0]);
  assert_true(jit_target_parse("cuda -arch=sm_90", &target, &err));
  if (!tir_lower(ir, 1, &lowering, &err)) fail_msg("%s", err.message);
  assert_null(jit_emit_c(ir, 1, "product", &target, NULL, NULL, &err));
  assert_int_equal(err.code, MS_NOT_COMPILABLE);
  assert_non_null(strstr(err.message, "are for sm_90a, and the target is sm_90"));
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_register_once),
                                     cmocka_unit_test(places_are_as_published),
                                     cmocka_unit_test(panels_lose_nothing),
                                     cmocka_unit_test(stored_sums_meet_in_no_bank),
                                     cmocka_unit_test(products_are_sums),
                                     cmocka_unit_test(three_oraclees_agree),
                                     cmocka_unit_test(groups_stay_in_flight),
                                     cmocka_unit_test(what_is_not_proved_is_waited_for),
                                     cmocka_unit_test(what_is_no_box_is_told),
                                     cmocka_unit_test(what_has_no_producer_is_told),
                                     cmocka_unit_test(what_is_not_filled_is_no_box),
                                     cmocka_unit_test(what_is_not_persistent_is_told),
                                     cmocka_unit_test(what_descriptors_cannot_name),
                                     cmocka_unit_test(other_targets_refuse)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

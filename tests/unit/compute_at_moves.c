/* compute_at and reverse_compute_at: moves that are accepted. Each result is also run against the function as it was.
 */
#include "script.h"

static bool split(struct tir *ir, tir_loop loop, const int64_t *factors, uint32_t count, ms_error *err) {
  tir_expr f[8];
  tir_loop out[8];
  for (uint32_t i = 0; i < count; i++) f[i] = tir_int(ir, TIR_T_I32, factors[i]);
  return tir_split(ir, loop, f, count, true, false, out, err);
}

static bool reorder(struct tir *ir, const char *block, const uint32_t *order, uint32_t count, ms_error *err) {
  tir_loop loops[8];
  for (uint32_t i = 0; i < count; i++) loops[i] = loop_of(ir, block, order[i]);
  return tir_reorder(ir, loops, count, err);
}

static bool annotate(struct tir *ir, tir_stmt where, ms_error *err) {
  return tir_annotate(ir, where, "note", tir_int(ir, TIR_T_I32, 1), err);
}

/* The moved function gives the same results. */
static void same_results(struct tir *moved, const char *parameters, const char *const *lines) {
  struct tir *before = read_lines(parameters, lines);
  ms_error err = {0};
  if (!tir_equal_results(before, 1, NULL, moved, 1, NULL, 1, &err)) fail_msg("%s", err.message);
  tir_free(before);
}

static const char matmul_parameters[] =
    "A: T.Buffer((128, 128), \"float32\"), B: T.Buffer((128, 128), \"float32\"), D: T.Buffer((128, 128), \"float32\")";
static const char *const matmul[] = {"C = T.sblock_alloc_buffer((128, 128))",
                                     "for i, j, k in T.grid(128, 128, 128):",
                                     "    with T.sblock(\"C\"):",
                                     "        v_i, v_j, v_k = T.axis.remap(\"SSR\", [i, j, k])",
                                     "        T.reads(A[v_i, v_k], B[v_k, v_j])",
                                     "        T.writes(C[v_i, v_j])",
                                     "        with T.init():",
                                     "            C[v_i, v_j] = T.float32(0.0)",
                                     "        C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]",
                                     "for i, j in T.grid(128, 128):",
                                     "    with T.sblock(\"D\"):",
                                     "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
                                     "        T.reads(C[v_i, v_j])",
                                     "        T.writes(D[v_i, v_j])",
                                     "        D[v_i, v_j] = T.max(C[v_i, v_j], T.float32(0.0))",
                                     NULL};

static const char convolution_parameters[] = "X: T.Buffer((1, 14, 14, 8), \"float32\"), W: T.Buffer((3, 3, 8, 16), "
                                             "\"float32\"), Y: T.Buffer((1, 7, 7, 16), \"float32\")";
static const char *const convolution[] = {
    "pad = T.sblock_alloc_buffer((1, 17, 17, 8))",
    "for n, h, w, c in T.grid(1, 17, 17, 8):",
    "    with T.sblock(\"pad\"):",
    "        v_n, v_h, v_w, v_c = T.axis.remap(\"SSSS\", [n, h, w, c])",
    "        T.reads(X[v_n, v_h - 1, v_w - 1, v_c])",
    "        T.writes(pad[v_n, v_h, v_w, v_c])",
    "        pad[v_n, v_h, v_w, v_c] = T.if_then_else(1 <= v_h and v_h < 15 and 1 <= v_w and v_w < 15, X[v_n, v_h - 1, "
    "v_w - 1, v_c], T.float32(0.0))",
    "for n, h, w, o, rh, rw, rc in T.grid(1, 7, 7, 16, 3, 3, 8):",
    "    with T.sblock(\"Y\"):",
    "        v_n, v_h, v_w, v_o, v_rh, v_rw, v_rc = T.axis.remap(\"SSSSRRR\", [n, h, w, o, rh, rw, rc])",
    "        T.reads(pad[v_n, v_h * 2 + v_rh * 2, v_w * 2 + v_rw * 2, v_rc], W[v_rh, v_rw, v_rc, v_o])",
    "        T.writes(Y[v_n, v_h, v_w, v_o])",
    "        with T.init():",
    "            Y[v_n, v_h, v_w, v_o] = T.float32(0.0)",
    "        Y[v_n, v_h, v_w, v_o] = Y[v_n, v_h, v_w, v_o] + pad[v_n, v_h * 2 + v_rh * 2, v_w * 2 + v_rw * 2, v_rc] * "
    "W[v_rh, v_rw, v_rc, v_o]",
    NULL};

static const char softmax_parameters[] = "A: T.Buffer((16, 32), \"float32\"), O: T.Buffer((16, 32), \"float32\")";
static const char *const softmax[] = {"M = T.sblock_alloc_buffer((16,))",
                                      "S = T.sblock_alloc_buffer((16,))",
                                      "for i, k in T.grid(16, 32):",
                                      "    with T.sblock(\"M\"):",
                                      "        v_i, v_k = T.axis.remap(\"SR\", [i, k])",
                                      "        T.reads(A[v_i, v_k])",
                                      "        T.writes(M[v_i])",
                                      "        with T.init():",
                                      "            M[v_i] = T.float32(-1e30)",
                                      "        M[v_i] = T.max(M[v_i], A[v_i, v_k])",
                                      "for i, k in T.grid(16, 32):",
                                      "    with T.sblock(\"S\"):",
                                      "        v_i, v_k = T.axis.remap(\"SR\", [i, k])",
                                      "        T.reads(A[v_i, v_k], M[v_i])",
                                      "        T.writes(S[v_i])",
                                      "        with T.init():",
                                      "            S[v_i] = T.float32(0.0)",
                                      "        S[v_i] = S[v_i] + T.exp(A[v_i, v_k] - M[v_i])",
                                      "for i, j in T.grid(16, 32):",
                                      "    with T.sblock(\"O\"):",
                                      "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
                                      "        T.reads(A[v_i, v_j], M[v_i], S[v_i])",
                                      "        T.writes(O[v_i, v_j])",
                                      "        O[v_i, v_j] = T.exp(A[v_i, v_j] - M[v_i]) / S[v_i]",
                                      NULL};

static const char chain_parameters[] = "A: T.Buffer((40,), \"float32\"), C: T.Buffer((40,), \"float32\")";
static const char *const chain[] = {"B = T.sblock_alloc_buffer((40,))",
                                    "for i in range(40):",
                                    "    with T.sblock(\"B\"):",
                                    "        v = T.axis.spatial(40, i)",
                                    "        T.reads(A[v])",
                                    "        T.writes(B[v])",
                                    "        B[v] = A[v] * T.float32(2.0)",
                                    "for i in range(40):",
                                    "    with T.sblock(\"C\"):",
                                    "        v = T.axis.spatial(40, i)",
                                    "        T.reads(B[v])",
                                    "        T.writes(C[v])",
                                    "        C[v] = B[v] + T.float32(1.0)",
                                    NULL};

static const char reshape_parameters[] = "A: T.Buffer((6, 20), \"float32\"), C: T.Buffer((120,), \"float32\")";
static const char *const reshape[] = {
    "B = T.sblock_alloc_buffer((6, 20))",  "for i, j in T.grid(6, 20):",
    "    with T.sblock(\"B\"):",           "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
    "        T.reads(A[v_i, v_j])",        "        T.writes(B[v_i, v_j])",
    "        B[v_i, v_j] = A[v_i, v_j]",   "for f in range(120):",
    "    with T.sblock(\"C\"):",           "        v = T.axis.spatial(120, f)",
    "        T.reads(B[v // 20, v % 20])", "        T.writes(C[v])",
    "        C[v] = B[v // 20, v % 20]",   NULL};

static const char row_sum_parameters[] = "A: T.Buffer((8, 32), \"float32\"), S: T.Buffer((8,), \"float32\")";
static const char *const row_sum[] = {"E = T.sblock_alloc_buffer((8, 32))",
                                      "for i, k in T.grid(8, 32):",
                                      "    with T.sblock(\"E\"):",
                                      "        v_i, v_k = T.axis.remap(\"SS\", [i, k])",
                                      "        T.reads(A[v_i, v_k])",
                                      "        T.writes(E[v_i, v_k])",
                                      "        E[v_i, v_k] = T.exp(A[v_i, v_k])",
                                      "for i, k in T.grid(8, 32):",
                                      "    with T.sblock(\"S\"):",
                                      "        v_i, v_k = T.axis.remap(\"SR\", [i, k])",
                                      "        T.reads(E[v_i, v_k])",
                                      "        T.writes(S[v_i])",
                                      "        with T.init():",
                                      "            S[v_i] = T.float32(0.0)",
                                      "        S[v_i] = S[v_i] + E[v_i, v_k]",
                                      NULL};

static void moves_a_consumer_under_tiles(void **state) {
  (void)state;
  struct tir *ir = read_lines(matmul_parameters, matmul);
  assert_accepted(split(ir, loop_of(ir, "C", 0), (const int64_t[]){4, 32}, 2, err));
  assert_accepted(split(ir, loop_of(ir, "C", 2), (const int64_t[]){4, 32}, 2, err));
  assert_accepted(reorder(ir, "C", (const uint32_t[]){0, 2, 1, 3, 4}, 5, err));
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "D"), loop_of(ir, "C", 1), true, -1, err));
  same_results(ir, matmul_parameters, matmul);
  assert_function(
      ir, matmul_parameters, "# with T.sblock(\"root\"):", "C = T.sblock_alloc_buffer((128, 128))",
      "for i_0, j_0 in T.grid(4, 4):", "    for i_1, j_1, k in T.grid(32, 32, 128):", "        with T.sblock(\"C\"):",
      "            v_i = T.axis.spatial(128, i_0 * 32 + i_1)", "            v_j = T.axis.spatial(128, j_0 * 32 + j_1)",
      "            v_k = T.axis.reduce(128, k)", "            T.reads(A[v_i, v_k], B[v_k, v_j])",
      "            T.writes(C[v_i, v_j])", "            with T.init():", "                C[v_i, v_j] = T.float32(0.0)",
      "            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]", "    for ax0, ax1 in T.grid(32, 32):",
      "        with T.sblock(\"D\"):", "            v_i = T.axis.spatial(128, i_0 * 32 + ax0)",
      "            v_j = T.axis.spatial(128, j_0 * 32 + ax1)", "            T.reads(C[v_i, v_j])",
      "            T.writes(D[v_i, v_j])", "            D[v_i, v_j] = T.max(C[v_i, v_j], T.float32(0.0))");
}

static void leaves_out_unit_loops(void **state) {
  (void)state;
  struct tir *ir = read_lines(matmul_parameters, matmul);
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "D"), loop_of(ir, "C", 1), false, -1, err));
  same_results(ir, matmul_parameters, matmul);
  assert_function(
      ir, matmul_parameters, "# with T.sblock(\"root\"):", "C = T.sblock_alloc_buffer((128, 128))",
      "for i, j in T.grid(128, 128):", "    for k in range(128):", "        with T.sblock(\"C\"):",
      "            v_i, v_j, v_k = T.axis.remap(\"SSR\", [i, j, k])", "            T.reads(A[v_i, v_k], B[v_k, v_j])",
      "            T.writes(C[v_i, v_j])", "            with T.init():", "                C[v_i, v_j] = T.float32(0.0)",
      "            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]",
      "    with T.sblock(\"D\"):", "        v_i, v_j = T.axis.remap(\"SS\", [i, j])", "        T.reads(C[v_i, v_j])",
      "        T.writes(D[v_i, v_j])", "        D[v_i, v_j] = T.max(C[v_i, v_j], T.float32(0.0))");
}

static void keeps_unit_loops(void **state) {
  (void)state;
  struct tir *ir = read_lines(matmul_parameters, matmul);
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "D"), loop_of(ir, "C", 1), true, -1, err));
  same_results(ir, matmul_parameters, matmul);
  assert_function(
      ir, matmul_parameters, "# with T.sblock(\"root\"):", "C = T.sblock_alloc_buffer((128, 128))",
      "for i, j in T.grid(128, 128):", "    for k in range(128):", "        with T.sblock(\"C\"):",
      "            v_i, v_j, v_k = T.axis.remap(\"SSR\", [i, j, k])", "            T.reads(A[v_i, v_k], B[v_k, v_j])",
      "            T.writes(C[v_i, v_j])", "            with T.init():", "                C[v_i, v_j] = T.float32(0.0)",
      "            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]", "    for ax0, ax1 in T.grid(1, 1):",
      "        with T.sblock(\"D\"):", "            v_i = T.axis.spatial(128, i + ax0)",
      "            v_j = T.axis.spatial(128, j + ax1)", "            T.reads(C[v_i, v_j])",
      "            T.writes(D[v_i, v_j])", "            D[v_i, v_j] = T.max(C[v_i, v_j], T.float32(0.0))");
}

/* Overlapping windows: what is required is a range with gaps. */
static void moves_a_padding_under_a_strided_dilated_convolution(void **state) {
  (void)state;
  struct tir *ir = read_lines(convolution_parameters, convolution);
  assert_accepted(tir_compute_at(ir, block_named(ir, "pad"), loop_of(ir, "Y", 2), false, -1, err));
  same_results(ir, convolution_parameters, convolution);
  assert_function(
      ir, convolution_parameters, "# with T.sblock(\"root\"):", "pad = T.sblock_alloc_buffer((1, 17, 17, 8))",
      "for n, h, w in T.grid(1, 7, 7):", "    for ax0, ax1, ax2 in T.grid(5, 5, 8):", "        with T.sblock(\"pad\"):",
      "            v_n = T.axis.spatial(1, 0)", "            v_h = T.axis.spatial(17, h * 2 + ax0)",
      "            v_w = T.axis.spatial(17, w * 2 + ax1)", "            v_c = T.axis.spatial(8, ax2)",
      "            T.reads(X[v_n, v_h - 1, v_w - 1, v_c])", "            T.writes(pad[v_n, v_h, v_w, v_c])",
      "            pad[v_n, v_h, v_w, v_c] = T.if_then_else(1 <= v_h and v_h < 15 and 1 <= v_w and v_w < 15, X[v_n, "
      "v_h - 1, v_w - 1, v_c], T.float32(0.0))",
      "    for o, rh, rw, rc in T.grid(16, 3, 3, 8):", "        with T.sblock(\"Y\"):",
      "            v_n, v_h, v_w, v_o, v_rh, v_rw, v_rc = T.axis.remap(\"SSSSRRR\", [n, h, w, o, rh, rw, rc])",
      "            T.reads(pad[v_n, v_h * 2 + v_rh * 2, v_w * 2 + v_rw * 2, v_rc], W[v_rh, v_rw, v_rc, v_o])",
      "            T.writes(Y[v_n, v_h, v_w, v_o])",
      "            with T.init():", "                Y[v_n, v_h, v_w, v_o] = T.float32(0.0)",
      "            Y[v_n, v_h, v_w, v_o] = Y[v_n, v_h, v_w, v_o] + pad[v_n, v_h * 2 + v_rh * 2, v_w * 2 + v_rw * 2, "
      "v_rc] * W[v_rh, v_rw, v_rc, v_o]");
}

static void moves_a_padding_under_a_reduction_loop(void **state) {
  (void)state;
  struct tir *ir = read_lines(convolution_parameters, convolution);
  assert_accepted(tir_compute_at(ir, block_named(ir, "pad"), loop_of(ir, "Y", 4), false, -1, err));
  same_results(ir, convolution_parameters, convolution);
  assert_function(
      ir, convolution_parameters, "# with T.sblock(\"root\"):", "pad = T.sblock_alloc_buffer((1, 17, 17, 8))",
      "for n, h, w, o, rh in T.grid(1, 7, 7, 16, 3):", "    for ax0, ax1 in T.grid(5, 8):",
      "        with T.sblock(\"pad\"):", "            v_n = T.axis.spatial(1, 0)",
      "            v_h = T.axis.spatial(17, h * 2 + rh * 2)", "            v_w = T.axis.spatial(17, w * 2 + ax0)",
      "            v_c = T.axis.spatial(8, ax1)", "            T.reads(X[v_n, v_h - 1, v_w - 1, v_c])",
      "            T.writes(pad[v_n, v_h, v_w, v_c])",
      "            pad[v_n, v_h, v_w, v_c] = T.if_then_else(1 <= v_h and v_h < 15 and 1 <= v_w and v_w < 15, X[v_n, "
      "v_h - 1, v_w - 1, v_c], T.float32(0.0))",
      "    for rw, rc in T.grid(3, 8):", "        with T.sblock(\"Y\"):",
      "            v_n, v_h, v_w, v_o, v_rh, v_rw, v_rc = T.axis.remap(\"SSSSRRR\", [n, h, w, o, rh, rw, rc])",
      "            T.reads(pad[v_n, v_h * 2 + v_rh * 2, v_w * 2 + v_rw * 2, v_rc], W[v_rh, v_rw, v_rc, v_o])",
      "            T.writes(Y[v_n, v_h, v_w, v_o])",
      "            with T.init():", "                Y[v_n, v_h, v_w, v_o] = T.float32(0.0)",
      "            Y[v_n, v_h, v_w, v_o] = Y[v_n, v_h, v_w, v_o] + pad[v_n, v_h * 2 + v_rh * 2, v_w * 2 + v_rw * 2, "
      "v_rc] * W[v_rh, v_rw, v_rc, v_o]");
}

/* Softmax: a reduction under its consumer, then the one before it. */
static void moves_one_after_the_other(void **state) {
  (void)state;
  struct tir *ir = read_lines(softmax_parameters, softmax);
  assert_accepted(tir_compute_at(ir, block_named(ir, "S"), loop_of(ir, "O", 0), false, -1, err));
  assert_accepted(tir_compute_at(ir, block_named(ir, "M"), loop_of(ir, "O", 0), false, -1, err));
  same_results(ir, softmax_parameters, softmax);
  assert_function(
      ir, softmax_parameters, "# with T.sblock(\"root\"):", "M = T.sblock_alloc_buffer((16,))",
      "S = T.sblock_alloc_buffer((16,))", "for i in range(16):", "    for ax0 in range(32):",
      "        with T.sblock(\"M\"):", "            v_i, v_k = T.axis.remap(\"SR\", [i, ax0])",
      "            T.reads(A[v_i, v_k])", "            T.writes(M[v_i])",
      "            with T.init():", "                M[v_i] = T.float32(-1000000000000000019884624838656.0)",
      "            M[v_i] = T.max(M[v_i], A[v_i, v_k])", "    for ax0 in range(32):", "        with T.sblock(\"S\"):",
      "            v_i, v_k = T.axis.remap(\"SR\", [i, ax0])", "            T.reads(A[v_i, v_k], M[v_i])",
      "            T.writes(S[v_i])", "            with T.init():", "                S[v_i] = T.float32(0.0)",
      "            S[v_i] = S[v_i] + T.exp(A[v_i, v_k] - M[v_i])",
      "    for j in range(32):", "        with T.sblock(\"O\"):", "            v_i, v_j = T.axis.remap(\"SS\", [i, j])",
      "            T.reads(A[v_i, v_j], M[v_i], S[v_i])", "            T.writes(O[v_i, v_j])",
      "            O[v_i, v_j] = T.exp(A[v_i, v_j] - M[v_i]) / S[v_i]");
}

static void chooses_the_first_place(void **state) {
  (void)state;
  struct tir *ir = read_lines(softmax_parameters, softmax);
  assert_accepted(tir_compute_at(ir, block_named(ir, "S"), loop_of(ir, "O", 0), false, -1, err));
  assert_accepted(tir_compute_at(ir, block_named(ir, "M"), loop_of(ir, "O", 0), false, -2, err));
  same_results(ir, softmax_parameters, softmax);
  assert_function(
      ir, softmax_parameters, "# with T.sblock(\"root\"):", "M = T.sblock_alloc_buffer((16,))",
      "S = T.sblock_alloc_buffer((16,))", "for i in range(16):", "    for ax0 in range(32):",
      "        with T.sblock(\"M\"):", "            v_i, v_k = T.axis.remap(\"SR\", [i, ax0])",
      "            T.reads(A[v_i, v_k])", "            T.writes(M[v_i])",
      "            with T.init():", "                M[v_i] = T.float32(-1000000000000000019884624838656.0)",
      "            M[v_i] = T.max(M[v_i], A[v_i, v_k])", "    for ax0 in range(32):", "        with T.sblock(\"S\"):",
      "            v_i, v_k = T.axis.remap(\"SR\", [i, ax0])", "            T.reads(A[v_i, v_k], M[v_i])",
      "            T.writes(S[v_i])", "            with T.init():", "                S[v_i] = T.float32(0.0)",
      "            S[v_i] = S[v_i] + T.exp(A[v_i, v_k] - M[v_i])",
      "    for j in range(32):", "        with T.sblock(\"O\"):", "            v_i, v_j = T.axis.remap(\"SS\", [i, j])",
      "            T.reads(A[v_i, v_j], M[v_i], S[v_i])", "            T.writes(O[v_i, v_j])",
      "            O[v_i, v_j] = T.exp(A[v_i, v_j] - M[v_i]) / S[v_i]");
}

/* After the last producer, before the end. */
static void takes_a_place_by_number(void **state) {
  (void)state;
  struct tir *ir = read_lines(softmax_parameters, softmax);
  assert_accepted(tir_compute_at(ir, block_named(ir, "S"), loop_of(ir, "O", 0), false, -1, err));
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "M"), loop_of(ir, "O", 0), false, 0, err));
  same_results(ir, softmax_parameters, softmax);
  assert_function(
      ir, softmax_parameters, "# with T.sblock(\"root\"):", "M = T.sblock_alloc_buffer((16,))",
      "S = T.sblock_alloc_buffer((16,))", "for i in range(16):", "    for ax0, ax1 in T.grid(16, 32):",
      "        with T.sblock(\"M\"):", "            v_i, v_k = T.axis.remap(\"SR\", [ax0, ax1])",
      "            T.reads(A[v_i, v_k])", "            T.writes(M[v_i])",
      "            with T.init():", "                M[v_i] = T.float32(-1000000000000000019884624838656.0)",
      "            M[v_i] = T.max(M[v_i], A[v_i, v_k])", "    for ax0 in range(32):", "        with T.sblock(\"S\"):",
      "            v_i, v_k = T.axis.remap(\"SR\", [i, ax0])", "            T.reads(A[v_i, v_k], M[v_i])",
      "            T.writes(S[v_i])", "            with T.init():", "                S[v_i] = T.float32(0.0)",
      "            S[v_i] = S[v_i] + T.exp(A[v_i, v_k] - M[v_i])",
      "    for j in range(32):", "        with T.sblock(\"O\"):", "            v_i, v_j = T.axis.remap(\"SS\", [i, j])",
      "            T.reads(A[v_i, v_j], M[v_i], S[v_i])", "            T.writes(O[v_i, v_j])",
      "            O[v_i, v_j] = T.exp(A[v_i, v_j] - M[v_i]) / S[v_i]");
}

static void adds_a_predicate_for_an_imperfect_split(void **state) {
  (void)state;
  struct tir *ir = read_lines(chain_parameters, chain);
  assert_accepted(split(ir, loop_of(ir, "C", 0), (const int64_t[]){3, 16}, 2, err));
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 0), false, -1, err));
  same_results(ir, chain_parameters, chain);
  assert_function(ir, chain_parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((40,))",
                  "for i_0 in range(3):", "    for ax0 in range(16):", "        with T.sblock(\"B\"):",
                  "            v = T.axis.spatial(40, i_0 * 16 + ax0)", "            T.where(i_0 * 16 + ax0 < 40)",
                  "            T.reads(A[v])", "            T.writes(B[v])", "            B[v] = A[v] * T.float32(2.0)",
                  "    for i_1 in range(16):", "        with T.sblock(\"C\"):",
                  "            v = T.axis.spatial(40, i_0 * 16 + i_1)", "            T.where(i_0 * 16 + i_1 < 40)",
                  "            T.reads(B[v])", "            T.writes(C[v])",
                  "            C[v] = B[v] + T.float32(1.0)");
}

static void reverse_keeps_to_the_domain(void **state) {
  (void)state;
  struct tir *ir = read_lines(chain_parameters, chain);
  assert_accepted(split(ir, loop_of(ir, "B", 0), (const int64_t[]){3, 16}, 2, err));
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "C"), loop_of(ir, "B", 0), false, -1, err));
  same_results(ir, chain_parameters, chain);
  assert_function(ir, chain_parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((40,))",
                  "for i_0 in range(3):", "    for i_1 in range(16):", "        with T.sblock(\"B\"):",
                  "            v = T.axis.spatial(40, i_0 * 16 + i_1)", "            T.where(i_0 * 16 + i_1 < 40)",
                  "            T.reads(A[v])", "            T.writes(B[v])", "            B[v] = A[v] * T.float32(2.0)",
                  "    for ax0 in range(16):", "        with T.sblock(\"C\"):",
                  "            v = T.axis.spatial(40, i_0 * 16 + ax0)", "            T.where(i_0 * 16 + ax0 < 40)",
                  "            T.reads(B[v])", "            T.writes(C[v])",
                  "            C[v] = B[v] + T.float32(1.0)");
}

static void computes_for_all_threads_of_shared_memory(void **state) {
  (void)state;
  const char *parameters = "A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float32\")";
  const char *const lines[] = {"B = T.sblock_alloc_buffer((64,), scope=\"shared\")",
                               "for i in range(64):",
                               "    with T.sblock(\"B\"):",
                               "        v = T.axis.spatial(64, i)",
                               "        T.reads(A[v])",
                               "        T.writes(B[v])",
                               "        B[v] = A[v] * T.float32(2.0)",
                               "for i in range(64):",
                               "    with T.sblock(\"C\"):",
                               "        v = T.axis.spatial(64, i)",
                               "        T.reads(B[v])",
                               "        T.writes(C[v])",
                               "        C[v] = B[v] + T.float32(1.0)",
                               NULL};
  struct tir *ir = read_lines(parameters, lines);
  assert_accepted(split(ir, loop_of(ir, "C", 0), (const int64_t[]){2, 8, 4}, 3, err));
  assert_accepted(tir_bind(ir, loop_of(ir, "C", 0), "blockIdx.x", err));
  assert_accepted(tir_bind(ir, loop_of(ir, "C", 1), "threadIdx.x", err));
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 1), false, -1, err));
  same_results(ir, parameters, lines);
  assert_function(ir, parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((64,), scope=\"shared\")",
                  "for i_0 in T.thread_binding(2, thread=\"blockIdx.x\"):",
                  "    for i_1 in T.thread_binding(8, thread=\"threadIdx.x\"):", "        for ax0 in range(32):",
                  "            with T.sblock(\"B\"):", "                v = T.axis.spatial(64, i_0 * 32 + ax0)",
                  "                T.reads(A[v])", "                T.writes(B[v])",
                  "                B[v] = A[v] * T.float32(2.0)",
                  "        for i_2 in range(4):", "            with T.sblock(\"C\"):",
                  "                v = T.axis.spatial(64, i_0 * 32 + i_1 * 4 + i_2)", "                T.reads(B[v])",
                  "                T.writes(C[v])", "                C[v] = B[v] + T.float32(1.0)");
}

static void computes_for_one_thread_of_local_memory(void **state) {
  (void)state;
  const char *parameters = "A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float32\")";
  const char *const lines[] = {"B = T.sblock_alloc_buffer((64,), scope=\"local\")",
                               "for i in range(64):",
                               "    with T.sblock(\"B\"):",
                               "        v = T.axis.spatial(64, i)",
                               "        T.reads(A[v])",
                               "        T.writes(B[v])",
                               "        B[v] = A[v] * T.float32(2.0)",
                               "for i in range(64):",
                               "    with T.sblock(\"C\"):",
                               "        v = T.axis.spatial(64, i)",
                               "        T.reads(B[v])",
                               "        T.writes(C[v])",
                               "        C[v] = B[v] + T.float32(1.0)",
                               NULL};
  struct tir *ir = read_lines(parameters, lines);
  assert_accepted(split(ir, loop_of(ir, "C", 0), (const int64_t[]){2, 8, 4}, 3, err));
  assert_accepted(tir_bind(ir, loop_of(ir, "C", 0), "blockIdx.x", err));
  assert_accepted(tir_bind(ir, loop_of(ir, "C", 1), "threadIdx.x", err));
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 1), false, -1, err));
  same_results(ir, parameters, lines);
  assert_function(
      ir, parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((64,), scope=\"local\")",
      "for i_0 in T.thread_binding(2, thread=\"blockIdx.x\"):",
      "    for i_1 in T.thread_binding(8, thread=\"threadIdx.x\"):", "        for ax0 in range(4):",
      "            with T.sblock(\"B\"):", "                v = T.axis.spatial(64, i_0 * 32 + i_1 * 4 + ax0)",
      "                T.reads(A[v])", "                T.writes(B[v])", "                B[v] = A[v] * T.float32(2.0)",
      "        for i_2 in range(4):", "            with T.sblock(\"C\"):",
      "                v = T.axis.spatial(64, i_0 * 32 + i_1 * 4 + i_2)", "                T.reads(B[v])",
      "                T.writes(C[v])", "                C[v] = B[v] + T.float32(1.0)");
}

/* The consumer reads quotient and remainder. */
static void inverts_a_reshape(void **state) {
  (void)state;
  struct tir *ir = read_lines(reshape_parameters, reshape);
  assert_accepted(split(ir, loop_of(ir, "C", 0), (const int64_t[]){12, 10}, 2, err));
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 0), false, -1, err));
  same_results(ir, reshape_parameters, reshape);
  assert_function(ir, reshape_parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((6, 20))",
                  "for f_0 in range(12):", "    for ax0 in range(10):", "        with T.sblock(\"B\"):",
                  "            v_i = T.axis.spatial(6, f_0 // 2)",
                  "            v_j = T.axis.spatial(20, f_0 % 2 * 10 + ax0)", "            T.reads(A[v_i, v_j])",
                  "            T.writes(B[v_i, v_j])", "            B[v_i, v_j] = A[v_i, v_j]",
                  "    for f_1 in range(10):", "        with T.sblock(\"C\"):",
                  "            v = T.axis.spatial(120, f_0 * 10 + f_1)", "            T.reads(B[v // 20, v % 20])",
                  "            T.writes(C[v])", "            C[v] = B[v // 20, v % 20]");
}

static void reverse_inverts_a_reshape(void **state) {
  (void)state;
  struct tir *ir = read_lines(reshape_parameters, reshape);
  assert_accepted(split(ir, loop_of(ir, "B", 1), (const int64_t[]){5, 4}, 2, err));
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "C"), loop_of(ir, "B", 1), false, -1, err));
  same_results(ir, reshape_parameters, reshape);
  assert_function(ir, reshape_parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((6, 20))",
                  "for i, j_0 in T.grid(6, 5):", "    for j_1 in range(4):", "        with T.sblock(\"B\"):",
                  "            v_i = T.axis.spatial(6, i)", "            v_j = T.axis.spatial(20, j_0 * 4 + j_1)",
                  "            T.reads(A[v_i, v_j])", "            T.writes(B[v_i, v_j])",
                  "            B[v_i, v_j] = A[v_i, v_j]", "    for ax0 in range(4):", "        with T.sblock(\"C\"):",
                  "            v = T.axis.spatial(120, i * 20 + j_0 * 4 + ax0)",
                  "            T.reads(B[v // 20, v % 20])", "            T.writes(C[v])",
                  "            C[v] = B[v // 20, v % 20]");
}

static void continues_a_reduction_over_rounds(void **state) {
  (void)state;
  struct tir *ir = read_lines(row_sum_parameters, row_sum);
  assert_accepted(split(ir, loop_of(ir, "E", 1), (const int64_t[]){4, 8}, 2, err));
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "S"), loop_of(ir, "E", 1), false, -1, err));
  same_results(ir, row_sum_parameters, row_sum);
  assert_function(ir, row_sum_parameters, "# with T.sblock(\"root\"):", "E = T.sblock_alloc_buffer((8, 32))",
                  "for i, k_0 in T.grid(8, 4):", "    for k_1 in range(8):", "        with T.sblock(\"E\"):",
                  "            v_i = T.axis.spatial(8, i)", "            v_k = T.axis.spatial(32, k_0 * 8 + k_1)",
                  "            T.reads(A[v_i, v_k])", "            T.writes(E[v_i, v_k])",
                  "            E[v_i, v_k] = T.exp(A[v_i, v_k])",
                  "    for ax0 in range(8):", "        with T.sblock(\"S\"):", "            v_i = T.axis.spatial(8, i)",
                  "            v_k = T.axis.reduce(32, k_0 * 8 + ax0)", "            T.reads(E[v_i, v_k])",
                  "            T.writes(S[v_i])",
                  "            with T.init():", "                S[v_i] = T.float32(0.0)",
                  "            S[v_i] = S[v_i] + E[v_i, v_k]");
}

static void splits_a_reduction_that_begins_anew(void **state) {
  (void)state;
  struct tir *ir = read_lines(row_sum_parameters, row_sum);
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "S"), loop_of(ir, "E", 0), false, -1, err));
  same_results(ir, row_sum_parameters, row_sum);
  assert_function(
      ir, row_sum_parameters, "# with T.sblock(\"root\"):", "E = T.sblock_alloc_buffer((8, 32))", "for i in range(8):",
      "    for k in range(32):", "        with T.sblock(\"E\"):", "            v_i, v_k = T.axis.remap(\"SS\", [i, k])",
      "            T.reads(A[v_i, v_k])", "            T.writes(E[v_i, v_k])",
      "            E[v_i, v_k] = T.exp(A[v_i, v_k])", "    for ax0 in range(32):", "        with T.sblock(\"S\"):",
      "            v_i, v_k = T.axis.remap(\"SR\", [i, ax0])", "            T.reads(E[v_i, v_k])",
      "            T.writes(S[v_i])", "            with T.init():", "                S[v_i] = T.float32(0.0)",
      "            S[v_i] = S[v_i] + E[v_i, v_k]");
}

static void removes_the_nest_as_far_as_it_is_empty(void **state) {
  (void)state;
  const char *parameters =
      "A: T.Buffer((8, 16), \"float32\"), C: T.Buffer((8, 16), \"float32\"), D: T.Buffer((8,), \"float32\")";
  const char *const lines[] = {"B = T.sblock_alloc_buffer((8, 16))",
                               "for i in range(8):",
                               "    for j in range(16):",
                               "        with T.sblock(\"B\"):",
                               "            v_i, v_j = T.axis.remap(\"SS\", [i, j])",
                               "            T.reads(A[v_i, v_j])",
                               "            T.writes(B[v_i, v_j])",
                               "            B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)",
                               "    with T.sblock(\"D\"):",
                               "        v_i = T.axis.spatial(8, i)",
                               "        T.reads(A[v_i, 0])",
                               "        T.writes(D[v_i])",
                               "        D[v_i] = A[v_i, 0]",
                               "for i, j in T.grid(8, 16):",
                               "    with T.sblock(\"C\"):",
                               "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
                               "        T.reads(B[v_i, v_j])",
                               "        T.writes(C[v_i, v_j])",
                               "        C[v_i, v_j] = B[v_i, v_j]",
                               NULL};
  struct tir *ir = read_lines(parameters, lines);
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 1), false, -1, err));
  same_results(ir, parameters, lines);
  assert_function(ir, parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((8, 16))",
                  "for i in range(8):", "    with T.sblock(\"D\"):", "        v_i = T.axis.spatial(8, i)",
                  "        T.reads(A[v_i, 0])", "        T.writes(D[v_i])", "        D[v_i] = A[v_i, 0]",
                  "for i, j in T.grid(8, 16):", "    with T.sblock(\"B\"):",
                  "        v_i, v_j = T.axis.remap(\"SS\", [i, j])", "        T.reads(A[v_i, v_j])",
                  "        T.writes(B[v_i, v_j])", "        B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)",
                  "    with T.sblock(\"C\"):", "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
                  "        T.reads(B[v_i, v_j])", "        T.writes(C[v_i, v_j])", "        C[v_i, v_j] = B[v_i, v_j]");
}

/* Those of the block stay, those of the loops go. */
static void takes_annotations_along(void **state) {
  (void)state;
  struct tir *ir = read_lines(chain_parameters, chain);
  assert_accepted(annotate(ir, block_named(ir, "B"), err));
  assert_accepted(annotate(ir, loop_of(ir, "B", 0), err));
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 0), true, -1, err));
  same_results(ir, chain_parameters, chain);
  assert_function(
      ir, chain_parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((40,))", "for i in range(40):",
      "    for ax0 in range(1):", "        with T.sblock(\"B\"):", "            v = T.axis.spatial(40, i + ax0)",
      "            T.reads(A[v])", "            T.writes(B[v])", "            T.sblock_attr({\"note\": 1})",
      "            B[v] = A[v] * T.float32(2.0)", "    with T.sblock(\"C\"):", "        v = T.axis.spatial(40, i)",
      "        T.reads(B[v])", "        T.writes(C[v])", "        C[v] = B[v] + T.float32(1.0)");
}

/* Instances that the predicate leaves out stay out. */
static void keeps_what_a_predicate_says(void **state) {
  (void)state;
  const char *parameters = "A: T.Buffer((40,), \"float32\"), C: T.Buffer((30,), \"float32\")";
  const char *const lines[] = {"B = T.sblock_alloc_buffer((40,))",
                               "for i in range(40):",
                               "    with T.sblock(\"B\"):",
                               "        v = T.axis.spatial(40, i)",
                               "        T.reads(A[v])",
                               "        T.writes(B[v])",
                               "        B[v] = A[v] * T.float32(2.0)",
                               "for i in range(40):",
                               "    with T.sblock(\"C\"):",
                               "        v = T.axis.spatial(40, i)",
                               "        T.where(i < 30)",
                               "        T.reads(B[v])",
                               "        T.writes(C[v])",
                               "        C[v] = B[v] + T.float32(1.0)",
                               NULL};
  struct tir *ir = read_lines(parameters, lines);
  assert_accepted(split(ir, loop_of(ir, "B", 0), (const int64_t[]){5, 8}, 2, err));
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "C"), loop_of(ir, "B", 0), false, -1, err));
  same_results(ir, parameters, lines);
  assert_function(
      ir, parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((40,))", "for i_0 in range(5):",
      "    for i_1 in range(8):", "        with T.sblock(\"B\"):", "            v = T.axis.spatial(40, i_0 * 8 + i_1)",
      "            T.reads(A[v])", "            T.writes(B[v])", "            B[v] = A[v] * T.float32(2.0)",
      "    for ax0 in range(8):", "        with T.sblock(\"C\"):", "            v = T.axis.spatial(40, i_0 * 8 + ax0)",
      "            T.where(i_0 * 8 + ax0 < 30)", "            T.reads(B[v])", "            T.writes(C[v])",
      "            C[v] = B[v] + T.float32(1.0)");
}

static void joins_what_two_consumers_read(void **state) {
  (void)state;
  const char *parameters =
      "A: T.Buffer((32,), \"float32\"), C: T.Buffer((32,), \"float32\"), D: T.Buffer((32,), \"float32\")";
  const char *const lines[] = {"B = T.sblock_alloc_buffer((34,))",
                               "for i in range(34):",
                               "    with T.sblock(\"B\"):",
                               "        v = T.axis.spatial(34, i)",
                               "        T.reads(A[v])",
                               "        T.writes(B[v])",
                               "        B[v] = T.if_then_else(v < 32, A[v], T.float32(0.0))",
                               "for i in range(32):",
                               "    with T.sblock(\"C\"):",
                               "        v = T.axis.spatial(32, i)",
                               "        T.reads(B[v])",
                               "        T.writes(C[v])",
                               "        C[v] = B[v]",
                               "    with T.sblock(\"D\"):",
                               "        v = T.axis.spatial(32, i)",
                               "        T.reads(B[v + 1:v + 3])",
                               "        T.writes(D[v])",
                               "        D[v] = B[v + 1] + B[v + 2]",
                               NULL};
  struct tir *ir = read_lines(parameters, lines);
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 0), false, -1, err));
  same_results(ir, parameters, lines);
  assert_function(
      ir, parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((34,))", "for i in range(32):",
      "    for ax0 in range(3):", "        with T.sblock(\"B\"):", "            v = T.axis.spatial(34, i + ax0)",
      "            T.reads(A[v])", "            T.writes(B[v])",
      "            B[v] = T.if_then_else(v < 32, A[v], T.float32(0.0))",
      "    with T.sblock(\"C\"):", "        v = T.axis.spatial(32, i)", "        T.reads(B[v])",
      "        T.writes(C[v])", "        C[v] = B[v]", "    with T.sblock(\"D\"):", "        v = T.axis.spatial(32, i)",
      "        T.reads(B[v + 1:v + 1 + 2])", "        T.writes(D[v])", "        D[v] = B[v + 1] + B[v + 2]");
}

/* What reads arguments only may go before a consumer; it runs whole. */
static void needs_no_producer(void **state) {
  (void)state;
  struct tir *ir = read_lines(chain_parameters, chain);
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 0), false, -1, err));
  same_results(ir, chain_parameters, chain);
  assert_function(ir, chain_parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((40,))",
                  "for i in range(40):", "    for ax0 in range(40):", "        with T.sblock(\"B\"):",
                  "            v = T.axis.spatial(40, ax0)", "            T.reads(A[v])", "            T.writes(B[v])",
                  "            B[v] = A[v] * T.float32(2.0)",
                  "    with T.sblock(\"C\"):", "        v = T.axis.spatial(40, i)", "        T.reads(B[v])",
                  "        T.writes(C[v])", "        C[v] = B[v] + T.float32(1.0)");
}

/* Two instances read one element. */
static void follows_a_quotient(void **state) {
  (void)state;
  const char *parameters = "A: T.Buffer((20,), \"float32\"), C: T.Buffer((40,), \"float32\")";
  const char *const lines[] = {"B = T.sblock_alloc_buffer((20,))",
                               "for i in range(20):",
                               "    with T.sblock(\"B\"):",
                               "        v = T.axis.spatial(20, i)",
                               "        T.reads(A[v])",
                               "        T.writes(B[v])",
                               "        B[v] = A[v] * T.float32(2.0)",
                               "for i, j in T.grid(40, 1):",
                               "    with T.sblock(\"C\"):",
                               "        v, r = T.axis.remap(\"SR\", [i, j])",
                               "        T.reads(B[v // 2])",
                               "        T.writes(C[v])",
                               "        with T.init():",
                               "            C[v] = T.float32(0.0)",
                               "        C[v] = C[v] + B[v // 2]",
                               NULL};
  struct tir *ir = read_lines(parameters, lines);
  assert_accepted(split(ir, loop_of(ir, "B", 0), (const int64_t[]){5, 4}, 2, err));
  assert_accepted(tir_reverse_compute_at(ir, block_named(ir, "C"), loop_of(ir, "B", 0), false, -1, err));
  same_results(ir, parameters, lines);
  assert_function(
      ir, parameters, "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((20,))", "for i_0 in range(5):",
      "    for i_1 in range(4):", "        with T.sblock(\"B\"):", "            v = T.axis.spatial(20, i_0 * 4 + i_1)",
      "            T.reads(A[v])", "            T.writes(B[v])", "            B[v] = A[v] * T.float32(2.0)",
      "    for ax0 in range(8):", "        with T.sblock(\"C\"):", "            v = T.axis.spatial(40, i_0 * 8 + ax0)",
      "            r = T.axis.reduce(1, 0)", "            T.reads(B[v // 2])", "            T.writes(C[v])",
      "            with T.init():", "                C[v] = T.float32(0.0)", "            C[v] = C[v] + B[v // 2]");
}

static void moves_under_symbolic_extents(void **state) {
  (void)state;
  const char *parameters = "a: T.handle, c: T.handle";
  const char *const lines[] = {"n = T.int32()",
                               "A = T.match_buffer(a, (n, 16))",
                               "C = T.match_buffer(c, (n, 16))",
                               "B = T.sblock_alloc_buffer((n, 16))",
                               "for i, j in T.grid(n, 16):",
                               "    with T.sblock(\"B\"):",
                               "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
                               "        T.reads(A[v_i, v_j])",
                               "        T.writes(B[v_i, v_j])",
                               "        B[v_i, v_j] = A[v_i, v_j]",
                               "for i, j in T.grid(n, 16):",
                               "    with T.sblock(\"C\"):",
                               "        v_i, v_j = T.axis.remap(\"SS\", [i, j])",
                               "        T.reads(B[v_i, v_j])",
                               "        T.writes(C[v_i, v_j])",
                               "        C[v_i, v_j] = B[v_i, v_j]",
                               NULL};
  struct tir *ir = read_lines(parameters, lines);
  assert_accepted(tir_compute_at(ir, block_named(ir, "B"), loop_of(ir, "C", 0), false, -1, err));
  same_results(ir, parameters, lines);
  assert_function(
      ir, parameters, "n = T.int32()", "A = T.match_buffer(a, (n, 16))", "C = T.match_buffer(c, (n, 16))",
      "# with T.sblock(\"root\"):", "B = T.sblock_alloc_buffer((n, 16))",
      "for i in range(n):", "    for ax0 in range(16):", "        with T.sblock(\"B\"):",
      "            v_i, v_j = T.axis.remap(\"SS\", [i, ax0])", "            T.reads(A[v_i, v_j])",
      "            T.writes(B[v_i, v_j])", "            B[v_i, v_j] = A[v_i, v_j]",
      "    for j in range(16):", "        with T.sblock(\"C\"):", "            v_i, v_j = T.axis.remap(\"SS\", [i, j])",
      "            T.reads(B[v_i, v_j])", "            T.writes(C[v_i, v_j])", "            C[v_i, v_j] = B[v_i, v_j]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(moves_a_consumer_under_tiles),
      cmocka_unit_test(leaves_out_unit_loops),
      cmocka_unit_test(keeps_unit_loops),
      cmocka_unit_test(moves_a_padding_under_a_strided_dilated_convolution),
      cmocka_unit_test(moves_a_padding_under_a_reduction_loop),
      cmocka_unit_test(moves_one_after_the_other),
      cmocka_unit_test(chooses_the_first_place),
      cmocka_unit_test(takes_a_place_by_number),
      cmocka_unit_test(adds_a_predicate_for_an_imperfect_split),
      cmocka_unit_test(reverse_keeps_to_the_domain),
      cmocka_unit_test(computes_for_all_threads_of_shared_memory),
      cmocka_unit_test(computes_for_one_thread_of_local_memory),
      cmocka_unit_test(inverts_a_reshape),
      cmocka_unit_test(reverse_inverts_a_reshape),
      cmocka_unit_test(continues_a_reduction_over_rounds),
      cmocka_unit_test(splits_a_reduction_that_begins_anew),
      cmocka_unit_test(removes_the_nest_as_far_as_it_is_empty),
      cmocka_unit_test(takes_annotations_along),
      cmocka_unit_test(keeps_what_a_predicate_says),
      cmocka_unit_test(joins_what_two_consumers_read),
      cmocka_unit_test(needs_no_producer),
      cmocka_unit_test(follows_a_quotient),
      cmocka_unit_test(moves_under_symbolic_extents),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

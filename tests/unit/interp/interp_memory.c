/* The reference interpreter on statements and memory: blocks, init, views, allocations, limits; each refusal provoked.
 */
#include "unit/script.h"

struct outcome {
  bool ok;
  ms_error err;
  struct tir_run_report report;
};

static struct outcome run_with(struct tir *ir, const struct tir_arg *args, uint32_t count,
                               struct tir_run_options options) {
  struct outcome o = {0};
  options.report = &o.report;
  o.ok = tir_run(ir, tir_find_func(ir, "main"), args, count, &options, &o.err);
  tir_free(ir);
  return o;
}

static struct outcome run_plain(struct tir *ir, const struct tir_arg *args, uint32_t count) {
  return run_with(ir, args, count, (struct tir_run_options){0});
}

static void expect_ok(struct outcome o) {
  if (!o.ok) fail_msg("%s", o.err.message);
}

static void expect_code(struct outcome o, enum ms_code code, const char *said) {
  assert_false(o.ok);
  assert_string_equal(ms_code_name(o.err.code), ms_code_name(code));
  if (!strstr(o.err.message, said)) fail_msg("\"%s\" does not say \"%s\"", o.err.message, said);
}

static float a[16], b[16], c[16];
static struct tir_arg three[3] = {
    {.data = a, .bytes = sizeof a}, {.data = b, .bytes = sizeof b}, {.data = c, .bytes = sizeof c}};

static int fill(void **state) {
  (void)state;
  for (int i = 0; i < 16; i++) a[i] = (float)i, b[i] = (float)(i % 3), c[i] = -1;
  return 0;
}

/* ---- Blocks ---- */

#define A_B_C "A: T.Buffer((4, 4), \"float32\"), B: T.Buffer((4, 4), \"float32\"), C: T.Buffer((4, 4), \"float32\")"

static void runs_reductions_from_their_init(void **state) {
  (void)state;
  three[2].unwritten = true;
  expect_ok(run_plain(read_function(A_B_C, "for i, j, k in T.grid(4, 4, 4):", "    with T.sblock(\"C\"):",
                                    "        vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
                                    "        with T.init():", "            C[vi, vj] = T.float32(0)",
                                    "        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]"),
                      three, 3));
  three[2].unwritten = false;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      float sum = 0;
      for (int k = 0; k < 4; k++) sum += a[4 * i + k] * b[4 * k + j];
      assert_true(c[4 * i + j] == sum);
    }
}

/* What a let loaded is not what a branch of a later statement loads, once both branches do. */
static void loads_again_after_a_store(void **state) {
  (void)state;
  three[0].unwritten = true;
  expect_ok(
      run_plain(read_function(A_B_C, "for i, j in T.grid(4, 4):", "    x: T.let[T.float32] = C[i, j]",
                              "    C[i, j] = B[i, j] * T.float32(2)",
                              "    C[i, j] = T.if_then_else(B[i, j] > T.float32(1), C[i, j] + T.float32(1), C[i, j])",
                              "    A[i, j] = x"),
                three, 3));
  three[0].unwritten = false;
  for (int i = 0; i < 16; i++) {
    assert_true(a[i] == -1);
    assert_true(c[i] == (float)(i % 3 * 2 + (i % 3 > 1)));
  }
}

/* A domain that starts elsewhere: init runs at its minimum. Predicates and fused bindings hold. */
static void follows_bindings_and_predicates(void **state) {
  (void)state;
  expect_ok(run_plain(
      read_function(
          "A: T.Buffer((4, 4), \"float32\"), C: T.Buffer((4,), \"float32\")",
          "for i, k0, k1 in T.grid(4, 2, 2):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(4, i)",
          "        vk = T.axis.reduce((1, 4), k0 * 2 + k1)", "        T.where(1 <= k0 * 2 + k1)",
          "        with T.init():", "            C[vi] = T.float32(100)", "        C[vi] = C[vi] + A[vi, vk]"),
      (struct tir_arg[]){three[0], {.data = c, .bytes = 16}}, 2));
  for (int i = 0; i < 4; i++) assert_true(c[i] == 100 + 3 * 4 * i + 6);
}

static void refuses_a_binding_outside_its_domain(void **state) {
  (void)state;
  expect_code(
      run_plain(read_function("C: T.Buffer((16,), \"float32\")", "for i in range(5):", "    with T.sblock(\"C\"):",
                              "        vi = T.axis.spatial(4, i)", "        C[vi] = T.float32(1)"),
                &three[2], 1),
      MS_RUN_DOMAIN, "vi is bound to 4; its domain is [0, 4)");
}

/* ---- Accesses ---- */

/* The reader lets none of these through: they are made by hand. */
static void refuses_what_is_not_there(void **state) {
  (void)state;
  const char *body[] = {"for i in range(4):", "    C[i] = T.float32(1)"};
  for (int k = 0; k < 2; k++) {
    struct tir *ir = read_function("C: T.Buffer((4,), \"float32\")", body[0], body[1]);
    tir_stmt store = ir->stmts.count - 1;
    while (!tir_is(ir, store, TIR_STORE)) store--;
    tir_buffer c = tir_stmt_at(ir, store)->store.buffer;
    tir_expr extents[2] = {tir_int(ir, TIR_T_I32, 4), tir_int(ir, TIR_T_I32, 1)};
    tir_buffer other = tir_new_buffer(ir, tir_buffer_at(ir, c)->name, tir_buffer_at(ir, c)->type, extents, 2,
                                      tir_buffer_at(ir, c)->scope);
    tir_expr zero = tir_int(ir, TIR_T_I32, 0), elsewhere[2] = {zero, zero}, twice[2] = {zero, zero};
    tir_expr value = k ? tir_load(ir, other, elsewhere, 2, TIR_NONE) : tir_load(ir, c, twice, 2, TIR_NONE);
    tir_stmt_at(ir, store)->store.value = value;
    expect_code(run_plain(ir, &three[2], 1), k ? MS_RUN_NOT_IN_SCOPE : MS_RUN_RANK,
                k ? "neither a parameter nor allocated" : "has 1 dimensions and is accessed with 2 indices");
  }
}

static void refuses_accesses_out_of_bounds(void **state) {
  (void)state;
  expect_code(run_plain(read_function("C: T.Buffer((4, 4), \"float32\")",
                                      "for i in range(4):", "    C[i, i + 1] = T.float32(0)"),
                        &three[2], 1),
              MS_RUN_OUT_OF_BOUNDS, "C[3, 4] is out of bounds: the shape is (4, 4)");
  expect_code(run_plain(read_function("C: T.Buffer((2, 2, 2, 2), \"float32\")",
                                      "for i in range(2):", "    C[i, 0, 0, 0] = C[0, 0, 0, i - 1]"),
                        &three[2], 1),
              MS_RUN_OUT_OF_BOUNDS, "C[0, 0, 0, -1]");
}

static void refuses_reads_of_what_is_unwritten(void **state) {
  (void)state;
  expect_code(run_plain(read_function("C: T.Buffer((16,), \"float32\")", "D = T.alloc_buffer((4,))",
                                      "D[0] = T.float32(1)", "for i in range(2):", "    C[i] = D[i]"),
                        &three[2], 1),
              MS_RUN_UNWRITTEN, "element 1 of C is left a copy of what was never written");
  struct tir_arg output = three[2];
  output.unwritten = true;
  const char *const line[] = {"for i in range(4):", "    C[i] = C[i] + T.float32(1)", NULL};
  expect_code(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", line), &output, 1), MS_RUN_UNWRITTEN, "C[0]");
  struct outcome noted = run_with(read_lines("C: T.Buffer((16,), \"float32\")", line), &output, 1,
                                  (struct tir_run_options){.note_unwritten = true});
  expect_ok(noted);
  assert_int_equal(noted.report.read_first, 1);
  const char *const none[] = {"for i in range(0):", "    C[i] = T.float32(1)", NULL}; /* never written: it is given */
  noted = run_with(read_lines("C: T.Buffer((16,), \"float32\")", none), &output, 1,
                   (struct tir_run_options){.note_unwritten = true});
  expect_ok(noted);
  assert_int_equal(noted.report.read_first, 1);
  const char *const all[] = {"for i in range(1):", "    C[i] = T.float32(1)", NULL}; /* written, it is not */
  noted = run_with(read_lines("C: T.Buffer((16,), \"float32\")", all), &output, 1,
                   (struct tir_run_options){.note_unwritten = true});
  expect_ok(noted);
  assert_int_equal(noted.report.read_first, 0);
}

/* A plain copy of an unwritten element is no use of it; its target is as unwritten as its source, in every lane. */
static void copies_what_is_unwritten(void **state) {
  (void)state;
  const char *const scalar[] = {"D = T.alloc_buffer((4,))",
                                "E = T.alloc_buffer((4,))",
                                "D[0] = T.float32(1)",
                                "for i in range(4):",
                                "    E[i] = D[i]",
                                "C[0] = E[0]",
                                "C[1] = E[1] + T.float32(1)",
                                NULL};
  expect_code(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", scalar), &three[2], 1), MS_RUN_UNWRITTEN,
              "E[1] is read before it is written");
  const char *const over[] = {"D = T.alloc_buffer((4, 1, 1, 1), \"int8\")",
                              "E = T.alloc_buffer((4,), \"int8\")",
                              "E[1] = T.int8(1)",
                              "E[1] = D[2, 0, 0, 0]",
                              "C[0] = T.Cast(\"float32\", E[1])",
                              NULL};
  expect_code(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", over), &three[2], 1), MS_RUN_UNWRITTEN, "E[1]");
  const char *const vector[] = {"D = T.alloc_buffer((4,))",
                                "E = T.alloc_buffer((4,))",
                                "D[2] = T.float32(1)",
                                "E[T.Ramp(0, 1, 4)] = D[T.Ramp(0, 1, 4)]",
                                "C[2] = E[2] + E[2]",
                                "C[3] = E[3] + E[3]",
                                NULL};
  expect_code(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", vector), &three[2], 1), MS_RUN_UNWRITTEN,
              "E[3] is read before it is written");
  const char *const fine[] = {"D = T.alloc_buffer((4,))",
                              "E = T.alloc_buffer((4,))",
                              "D[0] = T.float32(1)",
                              "for i in range(4):",
                              "    E[i] = D[i]",
                              "C[0] = E[0] + E[0]",
                              NULL};
  expect_ok(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", fine), &three[2], 1));
}

/* A dot product's lane, of columns past the last, is as unwritten as what is its own, and nobody's. What all lanes
 * share has to be written. */
static void lanes_of_dot_products_are_apart(void **state) {
  (void)state;
  const char *lines[] = {
      "X = T.alloc_buffer((4,), \"uint8\")",
      "Y = T.alloc_buffer((16,), \"int8\")",
      "S = T.alloc_buffer((4,), \"int32\")",
      "X[T.Ramp(0, 1, 4)] = T.Broadcast(T.uint8(2), 4)",
      "Y[T.Ramp(0, 1, 12)] = T.Broadcast(T.int8(3), 12)",
      "S[T.Ramp(0, 1, 4)] = T.Broadcast(1, 4)",
      "for k in range(2):",
      "    S[T.Ramp(0, 1, 4)] = T.dot_lanes(S[T.Ramp(0, 1, 4)], X[T.Ramp(0, 1, 4)], Y[T.Ramp(0, 1, 16)])",
      "C[0] = T.Cast(\"float32\", S[0])",
      "C[1] = T.Cast(\"float32\", S[2])",
      NULL,
      NULL};
  expect_ok(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", lines), &three[2], 1));
  assert_true(c[0] == 49 && c[1] == 49);
  lines[10] = "C[2] = T.Cast(\"float32\", S[3])";
  expect_code(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", lines), &three[2], 1), MS_RUN_UNWRITTEN,
              "S[3] is read before it is written");
  lines[10] = NULL, lines[3] = "X[T.Ramp(0, 1, 2)] = T.Broadcast(T.uint8(2), 2)";
  expect_code(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", lines), &three[2], 1), MS_RUN_UNWRITTEN,
              "X[2] is read before it is written");
}

/* What an unwritten argument held may be carried around and back, not what memory of the function held. */
static void carries_back_what_an_argument_held(void **state) {
  (void)state;
  struct tir_arg output = three[2];
  output.unwritten = true;
  const char *const back[] = {"D = T.alloc_buffer((16,))",
                              "for i in range(16):",
                              "    D[i] = C[i]",
                              "D[3] = T.float32(7)",
                              "for i in range(16):",
                              "    C[i] = D[i]",
                              NULL};
  c[2] = 5;
  expect_ok(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", back), &output, 1));
  assert_true(c[2] == 5 && c[3] == 7);
  const char *const allocated_again[] = {"for i in range(2):",
                                         "    with T.sblock(\"b\"):",
                                         "        vi = T.axis.spatial(2, i)",
                                         "        D = T.sblock_alloc_buffer((4,))",
                                         "        if vi == 0:",
                                         "            D[1] = C[1]",
                                         "        C[0] = D[1]",
                                         NULL};
  expect_code(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", allocated_again), &output, 1), MS_RUN_UNWRITTEN,
              "element 0 of C is left a copy of what was never written");
  const char *const mended[] = {"D = T.alloc_buffer((4,))", "C[0] = D[1]", "C[0] = T.float32(2)", NULL};
  expect_ok(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", mended), &output, 1));
}

/* An allocation in a loop is new each time. */
static void forgets_what_is_allocated_anew(void **state) {
  (void)state;
  expect_code(
      run_plain(read_function("C: T.Buffer((16,), \"float32\")", "for i in range(300):", "    with T.sblock(\"b\"):",
                              "        vi = T.axis.spatial(300, i)", "        D = T.sblock_alloc_buffer((4,))",
                              "        if vi < 299:", "            D[1] = T.float32(1)", "        C[0] = D[1]"),
                &three[2], 1),
      MS_RUN_UNWRITTEN, "D[1]");
}

/* ---- Control ---- */

static void runs_control_flow(void **state) {
  (void)state;
  expect_ok(
      run_plain(read_function("C: T.Buffer((16,), \"float32\")", "n = T.alloc_buffer((1,), \"int32\")", "n[0] = 0",
                              "while n[0] < 10:", "    if n[0] % 2 == 0:", "        C[n[0]] = T.float32(2)",
                              "    else:", "        C[n[0]] = T.float32(3)", "    x: T.let[T.int32] = n[0]",
                              "    n[0] = x + 1", "for i in range(10, 16):", "    C[i] = T.Cast(\"float32\", i)"),
                &three[2], 1));
  for (int i = 0; i < 16; i++) assert_true(c[i] == (i < 10 ? (float)(2 + i % 2) : (float)i));
}

static void refuses_a_false_assertion(void **state) {
  (void)state;
  expect_code(run_plain(read_function("C: T.Buffer((16,), \"float32\")", "for i in range(4):",
                                      "    assert i < 2, \"too many\"", "    C[i] = T.float32(0)"),
                        &three[2], 1),
              MS_RUN_ASSERTION, "too many");
}

static void stops_at_its_limits(void **state) {
  (void)state;
  const char *const endless[] = {"n = T.alloc_buffer((1,), \"int32\")", "n[0] = 0", "while n[0] < 1:", "    n[0] = 0",
                                 NULL};
  expect_code(run_with(read_lines("C: T.Buffer((16,), \"float32\")", endless), &three[2], 1,
                       (struct tir_run_options){.most_steps = 100000}),
              MS_RUN_STEPS, "steps");
  static const volatile int stop = 1;
  expect_code(run_with(read_lines("C: T.Buffer((16,), \"float32\")", endless), &three[2], 1,
                       (struct tir_run_options){.stop = &stop}),
              MS_RUN_STOPPED, "stopped");
  expect_code(run_plain(read_function("C: T.Buffer((16,), \"float32\")", "D = T.alloc_buffer((1048576, 1048576))",
                                      "C[0] = T.float32(0)"),
                        &three[2], 1),
              MS_RUN_MEMORY, "bytes pass the limit");
  struct tir_arg args[2] = {three[2], {.scalar = 1ll << 40}};
  expect_code(run_plain(read_function("C: T.Buffer((16,), \"float32\"), k: T.int64", "D = T.alloc_buffer((k, k))",
                                      "C[0] = T.float32(0)"),
                        args, 2),
              MS_RUN_MEMORY, "D is too large");
}

/* ---- Arguments ---- */

static void checks_arguments(void **state) {
  (void)state;
  const char *const line[] = {"C[0] = T.float32(0)", NULL};
  expect_code(run_plain(read_lines("C: T.Buffer((16,), \"float32\")", line), three, 2), MS_RUN_ARGUMENT,
              "takes 1 arguments, not 2");
  expect_code(run_plain(read_lines("C: T.Buffer((17,), \"float32\")", line), three, 1), MS_RUN_ARGUMENT,
              "takes 68 bytes, not 64");
}

static void binds_scalars_and_shapes(void **state) {
  (void)state;
  struct tir_arg args[3] = {three[0], {.scalar = 3}, {.real = 0.5}};
  expect_ok(run_plain(read_function("A: T.Buffer((\"n\", 4), \"float32\"), k: T.int32, x: T.float32", "n = T.int32()",
                                    "for i in range(n):", "    A[i, k] = T.Cast(\"float32\", n) + x"),
                      args, 3));
  for (int i = 0; i < 4; i++) assert_true(a[4 * i + 3] == 4.5f);
}

/* ---- Views ---- */

/* mac(C, stride of C, A): C[i, j] += A[j, i] on tiles of 2 x 2. */
static bool add_turned(struct tir_extern_call *call, void *data) {
  ++*(int *)data;
  for (int64_t i = 0; i < 2; i++)
    for (int64_t j = 0; j < 2; j++) {
      struct tir_value x, y;
      int64_t stride = tir_call_value(call, 1).integer;
      if (!tir_call_load(call, 0, i * stride + j, &x) || !tir_call_load(call, 2, j * 4 + i, &y)) return false;
      x.real += y.real;
      if (!tir_call_store(call, 0, i * stride + j, x)) return false;
    }
  tir_call_return(call, (struct tir_value){.type = TIR_T_I32, .integer = 7});
  return true;
}

#define TILES                                                                                                          \
  "for i, j in T.grid(2, 2):", "    with T.sblock(\"tile\"):", "        vi, vj = T.axis.remap(\"SS\", [i, j])",        \
      "        T.reads(C[vi * 2:vi * 2 + 2, vj * 2:vj * 2 + 2], A[vj * 2:vj * 2 + 2, vi * 2:vi * 2 + 2])",             \
      "        T.writes(C[vi * 2:vi * 2 + 2, vj * 2:vj * 2 + 2])",                                                     \
      "        X = T.match_buffer(C[vi * 2:vi * 2 + 2, vj * 2:vj * 2 + 2], (2, 2), strides=(\"s\", 1), "               \
      "offset_factor=2)"

static void calls_what_is_registered(void **state) {
  (void)state;
  int calls = 0;
  const struct tir_extern externs[] = {{"add_turned", add_turned, &calls}};
  struct tir_run_options options = {.externs = externs, .extern_count = 1};
  const char *const lines[] = {TILES,
                               "        Y = T.match_buffer(A[vj * 2:vj * 2 + 2, vi * 2:vi * 2 + 2], (2, 2), "
                               "strides=(4, 1), offset_factor=1)",
                               "        T.evaluate(T.call_extern(\"int32\", \"add_turned\", X.access_ptr(\"rw\"), "
                               "X.strides[0], Y.access_ptr(\"r\")))",
                               NULL};
  expect_ok(run_with(read_lines("A: T.Buffer((4, 4), \"float32\"), C: T.Buffer((4, 4), \"float32\")", lines),
                     (struct tir_arg[]){three[0], three[2]}, 2, options));
  assert_int_equal(calls, 4);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) assert_true(c[4 * i + j] == a[4 * j + i] - 1);
  expect_code(run_plain(read_lines("A: T.Buffer((4, 4), \"float32\"), C: T.Buffer((4, 4), \"float32\")", lines),
                        (struct tir_arg[]){three[0], three[2]}, 2),
              MS_RUN_UNKNOWN_CALL, "add_turned");
}

static bool read_past(struct tir_extern_call *call, void *data) {
  struct tir_value v;
  return tir_call_load(call, 0, *(int64_t *)data, &v) && tir_call_store(call, 0, 0, v);
}

static void checks_what_is_registered(void **state) {
  (void)state;
  int64_t index = 16;
  const struct tir_extern externs[] = {{"f", read_past, &index}};
  struct tir_run_options options = {.externs = externs, .extern_count = 1};
  const char *const lines[] = {"T.evaluate(T.call_extern(\"int32\", \"f\", C.access_ptr(\"r\")))", NULL};
  expect_code(run_with(read_lines("C: T.Buffer((16,), \"float32\")", lines), &three[2], 1, options),
              MS_RUN_OUT_OF_BOUNDS, "element 16 of argument 0");
  index = 0;
  expect_code(run_with(read_lines("C: T.Buffer((16,), \"float32\")", lines), &three[2], 1, options),
              MS_RUN_OUT_OF_BOUNDS, "may not be written");
}

static void maps_views_to_their_source(void **state) {
  (void)state;
  expect_ok(run_plain(read_function("A: T.Buffer((4, 4), \"float32\"), C: T.Buffer((4, 4), \"float32\")", TILES,
                                    "        for x, y in T.grid(2, 2):",
                                    "            X[x, y] = T.Cast(\"float32\", vi * 1000 + vj * 100 + x * 10 + y)"),
                      (struct tir_arg[]){three[0], three[2]}, 2));
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) assert_true(c[4 * i + j] == (float)(i / 2 * 1000 + j / 2 * 100 + i % 2 * 10 + j % 2));
}

static void refuses_views_that_do_not_fit(void **state) {
  (void)state;
  static const struct {
    const char *view, *said;
  } cases[] = {
      {"X = T.match_buffer(C[vi:vi + 2, 0:2], (2, 3))", "an extent is stated as 3 and is 2"},
      {"X = T.match_buffer(C[vi:vi + 2, 0:2], (2, 2), strides=(5, 1))", "a stride is stated as 5 and is 4"},
      {"X = T.match_buffer(C[vi:vi + 2, 1:3], (2, 2), offset_factor=4)", "is no multiple of 4"},
      {"X = T.match_buffer(C[vi + 3:vi + 5, 0:2], (2, 2))", "views [3, 3 + 2) of dimension 0"},
      {"X = T.match_buffer(C[vi:vi + 2, 0:2], (2,))", "leaves out dimension 0"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char line[200];
    snprintf(line, sizeof line, "        %s", cases[i].view);
    expect_code(
        run_plain(read_function("C: T.Buffer((4, 4), \"float32\")", "for i in range(1):", "    with T.sblock(\"b\"):",
                                "        vi = T.axis.spatial(1, i)", "        T.reads()",
                                "        T.writes(C[0:4, 0:4])", line, "        C[0, 0] = T.float32(0)"),
                  &three[2], 1),
        MS_RUN_MATCH, cases[i].said);
  }
}

static void declares_views_of_data(void **state) {
  (void)state;
  expect_ok(run_plain(read_function("C: T.Buffer((4, 4), \"float32\")",
                                    "D = T.decl_buffer((8,), \"float32\", data=C.data, elem_offset=4)",
                                    "for i in range(8):", "    D[i] = T.Cast(\"float32\", i)"),
                      &three[2], 1));
  for (int i = 0; i < 16; i++) assert_true(c[i] == (i >= 4 && i < 12 ? (float)(i - 4) : -1));
  expect_code(
      run_plain(read_function("C: T.Buffer((4, 4), \"float32\")", "D = T.decl_buffer((32,), \"float32\", data=C.data)",
                              "for i in range(32):", "    D[i] = T.float32(0)"),
                &three[2], 1),
      MS_RUN_OUT_OF_BOUNDS, "D[16] lies outside of the memory");
}

static void respects_strides_of_parameters(void **state) {
  (void)state;
  struct tir_arg args[1] = {{.data = c, .bytes = (3 * 5 + 1) * sizeof(float)}};
  expect_ok(run_plain(read_function("c: T.handle", "C = T.match_buffer(c, (4, 1), \"float32\", strides=(5, 1))",
                                    "for i in range(4):", "    C[i, 0] = T.Cast(\"float32\", i)"),
                      args, 1));
  for (int i = 0; i < 16; i++) assert_true(c[i] == (i % 5 == 0 ? (float)(i / 5) : -1));
}

/* ---- Depth ---- */

/* Nesting costs no C stack; expressions are bounded. */
static void runs_deep_nests(void **state) {
  (void)state;
  enum { DEPTH = 3000 };
  struct tir *ir = read_function("C: T.Buffer((16,), \"float32\")", "C[0] = T.float32(1)");
  tir_expr one = tir_int(ir, TIR_T_I32, 1), zero = tir_int(ir, TIR_T_I32, 0);
  tir_stmt store = ir->funcs.at[1].body;
  while (!tir_is(ir, store, TIR_STORE)) store = tir_next(ir, store, TIR_NONE);
  for (int i = 0; i < DEPTH; i++) {
    tir_var v = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "i"), TIR_T_I32, zero, one);
    tir_wrap(ir, store, tir_new_loop(ir, v, zero, one, TIR_SERIAL));
  }
  expect_ok(run_plain(ir, &three[2], 1));
  assert_true(c[0] == 1);
}

static void bounds_the_depth_of_expressions(void **state) {
  (void)state;
  static const struct {
    int depth;
    bool ok;
  } cases[] = {{3900, true}, {5000, false}};
  for (int i = 0; i < 2; i++) {
    struct tir *ir = read_function("C: T.Buffer((16,), \"float32\")", "C[0] = T.float32(1)");
    tir_stmt store = ir->funcs.at[1].body;
    while (!tir_is(ir, store, TIR_STORE)) store = tir_next(ir, store, TIR_NONE);
    tir_expr one = tir_float(ir, TIR_T_F32, 1), sum = one;
    for (int k = 0; k < cases[i].depth; k++) sum = tir_binary(ir, TIR_ADD, sum, one);
    tir_stmt_at(ir, store)->store.value = sum;
    struct outcome o = run_plain(ir, &three[2], 1);
    if (cases[i].ok)
      expect_ok(o);
    else
      expect_code(o, MS_TOO_LARGE, "nested too deeply");
  }
  assert_true(c[0] == 3901);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, fill)
  const struct CMUnitTest tests[] = {
      TEST(runs_reductions_from_their_init),
      TEST(loads_again_after_a_store),
      TEST(follows_bindings_and_predicates),
      TEST(refuses_a_binding_outside_its_domain),
      TEST(refuses_what_is_not_there),
      TEST(refuses_accesses_out_of_bounds),
      TEST(refuses_reads_of_what_is_unwritten),
      TEST(copies_what_is_unwritten),
      TEST(lanes_of_dot_products_are_apart),
      TEST(carries_back_what_an_argument_held),
      TEST(forgets_what_is_allocated_anew),
      TEST(runs_control_flow),
      TEST(refuses_a_false_assertion),
      TEST(stops_at_its_limits),
      TEST(checks_arguments),
      TEST(binds_scalars_and_shapes),
      TEST(calls_what_is_registered),
      TEST(checks_what_is_registered),
      TEST(maps_views_to_their_source),
      TEST(refuses_views_that_do_not_fit),
      TEST(declares_views_of_data),
      TEST(respects_strides_of_parameters),
      TEST(runs_deep_nests),
      TEST(bounds_the_depth_of_expressions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Arithmetic of 16-bit floats, two at once, on three oracles: the interpreter, which knows lanes only, the source on
 * this CPU, whose pairs are rounded once from what is exact, and NVRTC for each architecture. Of numbers of all kinds:
 * subnormal, largest, infinite, none, zeros of either sign, which their reciprocals tell apart; no difference is let
 * pass. Which instructions are emitted: case/lower/emitted/pairs_of_short_floats.case. */
#define _GNU_SOURCE
#include "cuda/oracle.h"
#include "jit/c/emit_c.h"
#include "jit/cuda/nvrtc.h"
#include "unit/script.h"

enum { EXTENT = 1024, MOST = 16 };

/* Of X = A[i], Y = B[i] and S, a scalar; HALF: the type. */
static const char *const operations[] = {
    "X + Y",
    "X - Y",
    "X * Y",
    "T.max(X, Y) + T.HALF(0)", /* of two zeros a GPU takes either, the interpreter +0 */
    "T.min(X, Y) + T.HALF(0)",
    "X * Y + X",
    "T.max(X * T.HALF(0.75) - Y, T.HALF(0))",
    "T.sqrt(X) * Y + T.exp(Y)",
    "T.if_then_else(bx < 2, X + Y, X)",
    "S[0] * X - T.HALF(3) / Y",
    ("T.sqrt((X * Y + X) * (X - Y) + (T.min(X, Y) + T.HALF(0)) * (Y * Y))"
     " - ((X * Y + X) * (X - Y) + (T.min(X, Y) + T.HALF(0)) * (Y * Y)) * X"),
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* `from` with X, Y and HALF replaced. */
static void spell(const char *from, const char *x, const char *y, const char *type, char *out, size_t size) {
  size_t n = 0;
  for (const char *c = from; *c && n + 60 < size;) {
    bool word = c > from && (c[-1] == '_' || (c[-1] >= 'a' && c[-1] <= 'z') || (c[-1] >= 'A' && c[-1] <= 'Z'));
    if (!strncmp(c, "HALF", 4))
      n += (size_t)snprintf(out + n, size - n, "%s", type), c += 4;
    else if ((*c == 'X' || *c == 'Y') && !word)
      n += (size_t)snprintf(out + n, size - n, "%s", *c == 'X' ? x : y), c++;
    else
      out[n++] = *c++;
  }
  out[n] = 0;
}

enum { MOST_LINES = 4 * OPERATIONS + 8, LINE = 700 };
struct lines {
  char text[MOST_LINES][LINE];
  const char *at[MOST_LINES + 1];
  int count;
};

static void line(struct lines *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(struct lines *to, const char *format, ...) {
  va_list args;
  va_start(args, format);
  assert_true(to->count < MOST_LINES && vsnprintf(to->text[to->count], LINE, format, args) < LINE);
  va_end(args);
  to->at[to->count] = to->text[to->count];
  to->at[++to->count] = NULL;
}

/* Each operation's results in a part of C of their own, the reciprocals in D. own: what is computed is kept in a
 * thread's own memory, doubled there, and stored from there. */
static struct tir *read_operations(const char *const *of, int count, const char *type, int lanes, bool own) {
  static struct lines to;
  char params[300], at[40], a[50], b[50], value[LINE];
  to.count = 0;
  snprintf(params, sizeof params,
           "A: T.Buffer((1024,), \"%s\"), B: T.Buffer((1024,), \"%s\"), S: T.Buffer((1,), \"%s\"), "
           "C: T.Buffer((%d,), \"%s\"), D: T.Buffer((%d,), \"%s\")",
           type, type, type, count * EXTENT, type, count * EXTENT, type);
  snprintf(at, sizeof at, "bx * 256 + tx * %d + v", lanes);
  snprintf(a, sizeof a, "A[%s]", at), snprintf(b, sizeof b, "B[%s]", at);
  line(&to, "for bx in T.thread_binding(4, thread=\"blockIdx.x\"):");
  line(&to, "    for tx in T.thread_binding(%d, thread=\"threadIdx.x\"):", 256 / lanes);
  if (own) line(&to, "        L = T.alloc_buffer((%d,), \"%s\", scope=\"local\")", lanes, type);
  for (int i = 0; i < count; i++) {
    spell(of[i], a, b, type, value, sizeof value);
    line(&to, "        for v in T.vectorized(%d):", lanes);
    if (own) {
      line(&to, "            L[v] = %s", value);
      line(&to, "        for v in T.vectorized(%d):", lanes);
    }
    line(&to, "            C[%d + %s] = %s", i * EXTENT, at, own ? "L[v] + L[v]" : value);
  }
  line(&to, "for b2 in T.thread_binding(%d, thread=\"blockIdx.x\"):", 4 * count);
  line(&to, "    for t2 in T.thread_binding(256, thread=\"threadIdx.x\"):");
  line(&to, "        D[b2 * 256 + t2] = T.%s(1) / C[b2 * 256 + t2]", type);
  return read_lines(params, to.at);
}

/* All pairs of what is special, then any bits. */
static void fill(uint16_t *a, uint16_t *b, uint16_t *s, bool bfloat) {
  static const uint16_t of_half[] = {0,      0x8000, 0x3c00, 0xbc00, 1,      0x8001, 0x3ff,
                                     0x400,  0x83ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
                                     0x7d01, 0x3555, 0x6400, 0x1400, 0x0c01, 0x8c01, 0x77ff},
                        of_bfloat[] = {0,      0x8000, 0x3f80, 0xbf80, 1,      0x8001, 0x7f,
                                       0x80,   0x807f, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0,
                                       0x7f81, 0x3eab, 0x4380, 0x1f81, 0x2000, 0x9f81, 0x7eff};
  enum { SPECIAL = sizeof of_half / sizeof *of_half };
  const uint16_t *special = bfloat ? of_bfloat : of_half;
  uint32_t x = 12345;
  static_assert(sizeof of_half == sizeof of_bfloat && SPECIAL * SPECIAL < EXTENT, "all pairs");
  for (int i = 0; i < EXTENT; i++) {
    x = x * 1664525u + 1013904223u;
    a[i] = i < SPECIAL * SPECIAL ? special[i % SPECIAL] : (uint16_t)(x >> 16);
    x = x * 1664525u + 1013904223u;
    b[i] = i < SPECIAL * SPECIAL ? special[i / SPECIAL] : (uint16_t)(x >> 16);
  }
  *s = special[15];
}

static void open_oracle(struct oracle *w, const struct tir *ir, bool bfloat) {
  ms_error err = {0};
  *w = (struct oracle){.ir = ir, .f = tir_find_func(ir, "main")};
  if (!tir_make_arguments(ir, w->f, 1, &w->expected, &err)) fail_msg("%s", err.message);
  fill(w->expected.args[0].data, w->expected.args[1].data, w->expected.args[2].data, bfloat);
  tir_copy_arguments(ir, w->f, &w->expected, &w->given);
  if (!tir_run(ir, w->f, w->expected.args, w->expected.count, NULL, &err)) fail_msg("%s", err.message);
}

static void judge_lowered(const struct oracle *w, const struct tir *lowered, const char *what) {
  const struct tir_run_options real = {.lowered = true};
  struct tir_arguments args;
  ms_error err = {0};
  tir_copy_arguments(w->ir, w->f, &w->given, &args);
  if (!tir_run(lowered, w->f, args.args, args.count, &real, &err) ||
      !tir_same_arguments(w->ir, w->f, &w->expected, &args, 0, &err))
    fail_msg("%s: %s", what, err.message);
  tir_arguments_free(&args);
}

/* ---- */

static struct {
  struct tir *ir;
  bool bfloat;
  char path[ORACLE_PATH], what[200];
} all[MOST];
static uint32_t count;
static char folder[] = "/tmp/pairs.XXXXXX";
static bool no_nvrtc;

static struct jit_target target_of(const char *arch) {
  struct jit_target target;
  ms_error err = {0};
  char text[40];
  snprintf(text, sizeof text, "cuda -arch=%s", arch);
  if (!jit_target_parse(text, &target, &err)) fail_msg("%s", err.message);
  return target;
}

static struct tir *lowered_copy(const struct tir *ir) {
  const struct tir_lower_options options = {
      .device = TIR_GPU, .verify = true, .vector_bits = 128, .shared_bytes = 65536};
  struct tir *lowered = tir_new();
  ms_error err = {0};
  tir_copy(lowered, ir);
  if (!tir_lower(lowered, tir_find_func(ir, "main"), &options, &err)) fail_msg("%s", err.message);
  return lowered;
}

static char *source_for(const struct tir *ir, const char *arch) {
  struct jit_target target = target_of(arch);
  ms_error err = {0};
  struct tir *lowered = lowered_copy(ir);
  char *source = jit_emit_c(lowered, tir_find_func(lowered, "main"), "pairs", &target, NULL, NULL, &err);
  if (!source) fail_msg("%s", err.message);
  tir_free(lowered);
  return source;
}

/* NVRTC takes it for each architecture that it knows. */
static void compile_for_all(const struct tir *ir, const char *what) {
  static const char *const archs[] = {"sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"};
  for (size_t i = 0; i < sizeof archs / sizeof *archs && !no_nvrtc; i++) {
    struct jit_target target = target_of(archs[i]);
    struct nvrtc_code code;
    ms_error err = {0};
    char *source = source_for(ir, archs[i]);
    bool ok = nvrtc_compile(source, &target, true, false, &code, &err);
    bool unknown = !ok && strstr(err.message, "has no code for");
    no_nvrtc = !ok && !unknown && err.code == MS_NO_LIBRARY;
    if (!ok && !unknown && !no_nvrtc) fail_msg("%s: %s\n%s", what, err.message, source);
    nvrtc_code_free(&code);
    free(source);
  }
}

static void add(const char *const *of, int operation_count, const char *type, int lanes, bool own, const char *arch,
                const char *says) {
  bool bfloat = !strcmp(type, "bfloat16");
  struct oracle w;
  assert_true(count < MOST && (count || mkdtemp(folder)));
  all[count].ir = read_operations(of, operation_count, type, lanes, own);
  all[count].bfloat = bfloat;
  char *what = all[count].what;
  snprintf(what, sizeof all[count].what, "%s and so on, %d of %s, %s%s", *of, lanes, type, arch,
           own ? ", of its own" : "");
  open_oracle(&w, all[count].ir, bfloat);
  struct tir *lowered = lowered_copy(w.ir);
  judge_lowered(&w, lowered, what);
  tir_free(lowered);
  oracle_close(&w);
  char *source = source_for(all[count].ir, arch);
  if (says && !strstr(source, says)) fail_msg("%s: \"%s\" does not stand in\n%s", what, says, source);
  oracle_write(folder, count, source, all[count].path);
  free(source);
  count++;
}

static void each_operation_goes_by_pairs(void **state) {
  (void)state;
  for (int t = 0; t < 2; t++) {
    const char *type = t ? "bfloat16" : "float16";
    add(operations, OPERATIONS, type, 8, false, "sm_90", t ? "bfloat8(" : "half8(");
    add(operations, OPERATIONS, type, 4, true, "sm_80", t ? "bfloat4(" : "half4(");
    compile_for_all(all[count - 2].ir, all[count - 2].what);
    compile_for_all(all[count - 1].ir, all[count - 1].what);
  }
  if (no_nvrtc) printf("NVRTC skipped: it is missing\n");
}

static void by_the_instruction_that_there_is(void **state) {
  (void)state;
  static const char *const sum = "X + Y", *const difference = "X - Y", *const most = "T.max(X, Y) + T.HALF(0)";
  add(&sum, 1, "float16", 2, false, "sm_70", "add.rn.f16x2");
  add(&difference, 1, "bfloat16", 2, true, "sm_80", "fma.rn.bf16x2");
  add(&most, 1, "bfloat16", 4, false, "sm_86", "ms_larger_bfloat2");
}

static void on_the_cpu_they_compute_the_same(void **state) {
  (void)state;
  if (!oracle_compile(folder)) {
    printf("the shim skipped: there is no g++\n");
    skip();
  }
  for (uint32_t i = 0; i < count; i++) {
    struct oracle w;
    char why[ORACLE_TEXT];
    open_oracle(&w, all[i].ir, all[i].bfloat);
    if (!oracle_agrees(&w, all[i].path, why)) fail_msg("%s, %s: %s", all[i].path, all[i].what, why);
    oracle_close(&w);
    tir_free(all[i].ir);
  }
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_operation_goes_by_pairs),
                                     cmocka_unit_test(by_the_instruction_that_there_is),
                                     cmocka_unit_test(on_the_cpu_they_compute_the_same)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

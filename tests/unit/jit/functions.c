/* Each row of tir/functions.def: the interpreter, LLVM, in a fixed order and without fast math, C's text and CUDA's, as
 * this CPU runs it, compute the same, within what the row allows. In a free order, and on more patterns of float32:
 * tests/tools/float_functions.c. */
#define _GNU_SOURCE
#include "cuda/oracle.h"
#include "jit/c/emit_c.h"
#include "unit/exported.h"
#include "unit/script.h"

#include <float.h>
#include <math.h>

/* By first and second names. */
static const struct called {
  const char *name;
  enum tir_function f;
} called[] = {
#define TIR_FUNCTION(name, ...)    {#name, TIR_FUNCTION_##name},
#define TIR_SYNONYM(name, of, ...) {#name, TIR_FUNCTION_##of},
#include "tir/functions.def"
};
enum { CALLED = sizeof called / sizeof *called, VALUES = 32, LANES = 4 };

/* A module has each function of so many types. */
struct types {
  int count;
  const char *names[2];
};
static const struct types half = {1, {"float16"}}, both = {2, {"float32", "float64"}};

/* ---- The rows ---- */

static void rows_are_whole(void **state) {
  (void)state;
  for (int i = 0; i < CALLED; i++)
    assert_int_equal(tir_function_named(called[i].name), called[i].f); /* no name twice */
  for (enum tir_function f = 0; f < TIR_FUNCTIONS; f++) {
    const struct tir_function_row *row = &tir_functions[f];
    assert_true(*row->doc && row->doc[strlen(row->doc) - 1] != '.');
    assert_true((row->of_one != NULL) == (row->operands == 1) && (row->of_two != NULL) == (row->operands == 2));
    assert_true(row->operands >= 1 && row->operands <= 3);
    assert_true(row->free_error >= 0 && (row->free_error > 0) == (row->library_error > 0));
    assert_true(!row->rounds || row->free_error > 0); /* what is rounded is compared */
    assert_true(!row->in_te || row->operands == 1);
  }
  assert_int_equal(tir_function_named("asin_"), TIR_FUNCTIONS);
  assert_int_equal(tir_function_named(""), TIR_FUNCTIONS);
}

/* ---- Functions that call each ---- */

/* A type's operands are X and Y, its results R; a suffix tells types apart. */
static void parameters(FILE *out, const struct types *types) {
  for (int t = 0; t < types->count; t++)
    fprintf(out, "%sX%d: T.Buffer((%d,), \"%s\"), Y%d: T.Buffer((%d,), \"%s\"), R%d: T.Buffer((%d,), \"%s\")",
            t ? ", " : "", t, VALUES, types->names[t], t, VALUES, types->names[t], t, CALLED * VALUES, types->names[t]);
}

static void call_of(FILE *out, int t, const struct called *c, const char *at) {
  static const char operands[] = "XYY";
  fprintf(out, "T.%s(", c->name);
  for (uint32_t i = 0; i < tir_functions[c->f].operands; i++)
    fprintf(out, "%s%c%d[%s]", i ? ", " : "", operands[i], t, at);
  fputs(")\n", out);
}

static struct tir *read_and_free(char *text, size_t size) {
  ms_error err = {0};
  struct tir *ir = tir_read(text, size, "functions", &err);
  if (!ir) fail_msg("%s", err.message);
  free(text);
  return ir;
}

static struct tir *functions_of(const struct types *types, bool fixed) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  fputs("@T.prim_func(s_tir=True)\ndef main(", out);
  parameters(out, types);
  fputs("):\n    with T.sblock(\"root\"):\n", out);
  if (fixed) fputs("        T.sblock_attr({\"" JIT_FIXED_ORDER "\": 1})\n", out);
  for (int t = 0; t < types->count; t++)
    for (int i = 0; i < CALLED; i++) {
      fprintf(out,
              "        for o in range(%d):\n            for l in T.vectorized(%d):\n                with "
              "T.sblock(\"%s%d\"):\n"
              "                    v = T.axis.spatial(%d, o * %d + l)\n                    R%d[%d + v] = ",
              VALUES / LANES, LANES, called[i].name, t, VALUES, LANES, t, i * VALUES);
      call_of(out, t, &called[i], "v");
    }
  fclose(out);
  return read_and_free(text, size);
}

static struct tir *kernel_of_functions(const struct types *types) {
  char *text = NULL, at[] = "tx";
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  fputs("@T.prim_func(s_tir=True)\ndef main(", out);
  parameters(out, types);
  fprintf(out, "):\n    for tx in T.thread_binding(%d, thread=\"threadIdx.x\"):\n", VALUES);
  for (int t = 0; t < types->count; t++)
    for (int i = 0; i < CALLED; i++) {
      fprintf(out, "        R%d[%d + tx] = ", t, i * VALUES);
      call_of(out, t, &called[i], at);
    }
  fclose(out);
  return read_and_free(text, size);
}

/* ---- Wrong numbers of operands ---- */

static void operands_are_counted(void **state) {
  (void)state;
  struct jit_target target;
  ms_error err = {0};
  int refused = 0;
  assert_true(jit_target_parse("native", &target, &err));
  for (enum tir_function f = 0; f < TIR_FUNCTIONS; f++) {
    static const char *const too_many[] = {"A[i], A[i]", "A[i], A[i], A[i]", "A[i], A[i], A[i], A[i]"};
    char text[300];
    int length = snprintf(text, sizeof text,
                          "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), "
                          "\"float32\")):\n    for i in range(8):\n        B[i] = T.%s(%s)\n",
                          tir_functions[f].name, too_many[tir_functions[f].operands - 1]);
    struct tir *ir = tir_read(text, (size_t)length, "operands", &err);
    if (!ir) continue; /* those whose text has a meaning of its own */
    struct tir_arguments args;
    assert_true(tir_make_arguments(ir, 1, 1, &args, &err));
    assert_false(tir_run(ir, 1, args.args, args.count, NULL, &err));
    assert_null(jit_compile(ir, 1, &target, NULL, &err));
    assert_int_equal(err.code, MS_NOT_COMPILABLE);
    assert_null(jit_emit_c(ir, 1, "f", &target, NULL, NULL, &err));
    assert_int_equal(err.code, MS_NOT_COMPILABLE);
    tir_arguments_free(&args);
    tir_free(ir);
    refused++;
  }
  assert_true(refused > TIR_FUNCTIONS / 2);
}

/* ---- Values ---- */

static const double values[VALUES] = {0,   -0.0, 1,    -1,   0.5,  -0.5,     2.5,       -2.5, 0.1,  -0.1, 3.5,
                                      7,   -7,   10,   -10,  20,   -20,      1e-3,      100,  -100, 0.99, 1.01,
                                      1.5, -1.5, 0.75, -3.5, 1e-5, INFINITY, -INFINITY, NAN,  8191, 65504};

static tir_type type_of(const char *name) {
  tir_type type = TIR_T_VOID;
  assert_true(tir_type_parse(name, &type));
  return type;
}

static void fill(const struct tir_arguments *to, const struct types *types) {
  for (int t = 0; t < types->count; t++) {
    tir_type type = type_of(types->names[t]);
    size_t size = (size_t)tir_type_bits(type) / 8;
    for (size_t i = 0; i < VALUES; i++) {
      tir_put_element(type, (char *)to->args[3 * t].data + i * size, values[i]);
      tir_put_element(type, (char *)to->args[3 * t + 1].data + i * size, values[(i * 7 + 3) % VALUES]);
    }
  }
}

/* ---- Comparison ---- */

enum way { FIXED, CALLS };

/* The distance in units in the last place; infinite, where one is NaN, infinite or has another sign. */
static double distance(tir_type type, double a, double b) {
  enum { HALF_MANT_DIG = 11, HALF_MIN_EXP = -13 };
  int bits = tir_type_bits(type);
  int precision = bits == 16 ? HALF_MANT_DIG : bits == 32 ? FLT_MANT_DIG : DBL_MANT_DIG;
  int least = (bits == 16 ? HALF_MIN_EXP : bits == 32 ? FLT_MIN_EXP : DBL_MIN_EXP) - 1;
  if ((isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b))) return 0;
  if (isnan(a) || isnan(b) || isinf(a) || isinf(b) || signbit(a) != signbit(b)) return INFINITY;
  return fabs(a - b) / ldexp(1, (b == 0 || ilogb(b) < least ? least : ilogb(b)) - precision + 1);
}

/* Both are rounded from within the row's error of what is exact. */
static double allowed(const struct tir_function_row *row, enum way way) {
  return way == FIXED || row->library_error == 0 ? 0 : row->library_error + 0.5;
}

static void compare(const struct tir_arguments *wanted, const struct tir_arguments *got, const struct types *types,
                    enum way way, const char *what) {
  for (int t = 0; t < types->count; t++) {
    tir_type type = type_of(types->names[t]);
    size_t size = (size_t)tir_type_bits(type) / 8;
    const char *x = wanted->args[3 * t].data, *y = wanted->args[3 * t + 1].data;
    for (int i = 0; i < CALLED * VALUES; i++) {
      const struct called *c = &called[i / VALUES];
      double a = tir_fetch_element(type, (char *)got->args[3 * t + 2].data + (size_t)i * size);
      double b = tir_fetch_element(type, (char *)wanted->args[3 * t + 2].data + (size_t)i * size);
      size_t at = (size_t)(i % VALUES) * size;
      if (distance(type, a, b) > allowed(&tir_functions[c->f], way))
        fail_msg("%s of %s, %s, of %g, %g: %.17g, interpreted %.17g", c->name, types->names[t], what,
                 tir_fetch_element(type, x + at), tir_fetch_element(type, y + at), a, b);
    }
  }
}

/* ---- Computed alike ---- */

static void interpret(const struct tir *ir, const struct types *types, struct tir_arguments *given,
                      struct tir_arguments *wanted) {
  ms_error err = {0};
  tir_func f = tir_find_func(ir, "main");
  if (!tir_make_arguments(ir, f, 1, given, &err)) fail_msg("%s", err.message);
  fill(given, types);
  tir_copy_arguments(ir, f, given, wanted);
  if (!tir_run(ir, f, wanted->args, wanted->count, NULL, &err)) fail_msg("%s", err.message);
}

static void compiled(const struct types *types, enum way way, const char *what) {
  struct tir *ir = functions_of(types, way == FIXED);
  struct jit_target target;
  struct tir_arguments given, wanted;
  ms_error err = {0};
  const struct jit_options options = {.no_fast_math = way == CALLS};
  interpret(ir, types, &given, &wanted);
  if (!jit_target_parse("native", &target, &err) ||
      !jit_run(ir, tir_find_func(ir, "main"), &target, &options, given.args, &err))
    fail_msg("%s: %s", what, err.message);
  compare(&wanted, &given, types, way, what);
  tir_arguments_free(&given);
  tir_arguments_free(&wanted);
  tir_free(ir);
}

static void llvm_computes_what_is_interpreted(void **state) {
  (void)state;
  compiled(&half, FIXED, "LLVM, a fixed order");
  compiled(&both, CALLS, "LLVM, without fast math");
}

static void c_computes_what_is_interpreted(void **state) {
  (void)state;
  struct tir *ir = functions_of(&both, false);
  struct jit_target target;
  struct tir_arguments given, wanted;
  ms_error err = {0};
  interpret(ir, &both, &given, &wanted);
  if (!jit_target_parse("llvm -mcpu=x86-64-v3", &target, &err)) fail_msg("%s", err.message);
  run_exported_source(ir, &target, &(struct jit_options){.no_fast_math = true}, "-O0 -Wno-psabi", &given);
  compare(&wanted, &given, &both, CALLS, "the C text");
  tir_arguments_free(&given);
  tir_arguments_free(&wanted);
  tir_free(ir);
}

/* Within the oracle's tolerance. */
static void cuda_computes_what_is_interpreted(void **state) {
  (void)state;
  const struct tir_lower_options options = {.device = TIR_GPU, .verify = true, .vector_bits = 128};
  char folder[] = "/tmp/functions.XXXXXX", path[ORACLE_PATH], why[ORACLE_TEXT], remove[60];
  struct tir *ir = kernel_of_functions(&both), *lowered = tir_new();
  struct oracle w = {.ir = ir, .f = tir_find_func(ir, "main"), .tolerance = 2e-6};
  ms_error err = {0};
  interpret(ir, &both, &w.given, &w.expected);
  tir_copy(lowered, ir);
  if (!tir_lower(lowered, w.f, &options, &err)) fail_msg("%s", err.message);
  char *source = oracle_source(lowered, w.f, "functions", &err);
  if (!source) fail_msg("%s", err.message);
  assert_non_null(mkdtemp(folder));
  oracle_write(folder, 0, source, path);
  if (!oracle_compile(folder))
    print_message("there is no g++\n");
  else if (!oracle_agrees(&w, path, why))
    fail_msg("%s", why);
  snprintf(remove, sizeof remove, "rm -r %s", folder);
  assert_int_equal(system(remove), 0);
  free(source);
  oracle_close(&w);
  tir_free(lowered);
  tir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_whole),
      cmocka_unit_test(operands_are_counted),
      cmocka_unit_test(llvm_computes_what_is_interpreted),
      cmocka_unit_test(c_computes_what_is_interpreted),
      cmocka_unit_test(cuda_computes_what_is_interpreted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

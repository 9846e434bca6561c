/* Expressions, by properties: any that the IR can hold prints, in both dialects, as text that is read as the same. */
#include "tir/tir.h"
#include "vm/vm.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const types[] = {"int8",   "int16", "int32",   "int64",    "uint8",   "uint16", "uint32",
                                    "uint64", "bool",  "float16", "bfloat16", "float32", "float64"};
enum { TYPES = sizeof types / sizeof *types, MOST_DEPTH = 5, LANES = 4 };

struct maker {
  struct vm_stream random;
  struct tir *ir;
  tir_buffer buffers[TYPES];
  tir_var vars[TYPES];
  uint32_t made[TIR_KIND_COUNT];
};

static uint32_t below(struct maker *m, uint32_t bound) { return vm_stream_below(&m->random, bound); }

static tir_type type_at(uint32_t i) {
  tir_type type;
  assert_true(tir_type_parse(types[i], &type));
  return type;
}

static uint32_t number_of(tir_type type) {
  uint32_t i = 0;
  while (type_at(i) != tir_type_with_lanes(type, 1)) i++;
  return i;
}

/* A function with a buffer and a variable of each type, and one statement, whose value is replaced. */
static struct tir *frame(struct maker *m) {
  char text[4096] = "@T.prim_func(s_tir=True)\ndef main(";
  for (uint32_t i = 0; i < TYPES; i++)
    snprintf(text + strlen(text), sizeof text - strlen(text), "%sB%u: T.Buffer((64,), \"%s\"), x%u: T.%s",
             i ? ", " : "", i, types[i], i, types[i]);
  strcat(text,
         "):\n    with T.sblock(\"root\"):\n        T.reads()\n        T.writes()\n        with T.sblock(\"S\"):\n"
         "            T.reads()\n            T.writes()\n            T.evaluate(0)\n");
  ms_error err = {0};
  m->ir = tir_read(text, strlen(text), "frame", &err);
  if (!m->ir) fail_msg("%s", err.message);
  const struct tir_param *params = m->ir->params.at + m->ir->funcs.at[tir_find_func(m->ir, "main")].params.first;
  for (uint32_t i = 0; i < TYPES; i++) m->buffers[i] = params[2 * i].buffer, m->vars[i] = params[2 * i + 1].var;
  return m->ir;
}

static tir_expr make(struct maker *m, tir_type type, int depth);

static tir_type any_type(struct maker *m, int lanes) { return tir_type_with_lanes(type_at(below(m, TYPES)), lanes); }

static tir_expr make_constant(struct maker *m, tir_type type) {
  static const double reals[] = {0, -0.0, 1, -1, 0.5, 0.1, 65504, 1e-7, -3.25, 1e20, INFINITY, -INFINITY, NAN, 2};
  if (tir_type_is_float(type)) {
    double real = reals[below(m, sizeof reals / sizeof *reals)];
    if (tir_type_bits(type) == 16 && tir_type_code(type) == TIR_FLOAT && isfinite(real) && fabs(real) > 65504) real = 2;
    return tir_float(m->ir, type, real);
  }
  int bits = tir_type_bits(type);
  bool is_signed = tir_type_code(type) == TIR_INT;
  int64_t most = tir_type_code(type) == TIR_BOOL ? 1 : INT64_MAX >> (bits == 64 ? 0 : 64 - bits - !is_signed);
  int64_t edges[] = {0, 1, is_signed ? -1 : 1, most < 2 ? most : 2, most, is_signed ? -most - 1 : most};
  return tir_int(m->ir, type, edges[below(m, 6)]);
}

static tir_expr make_leaf(struct maker *m, tir_type type) {
  uint32_t i = number_of(type);
  int lanes = tir_type_lanes(type);
  if (lanes == 1 && below(m, 2)) return tir_var_expr(m->ir, m->vars[i]);
  if (lanes == 1 && below(m, 2)) return make_constant(m, type);
  tir_expr index = tir_int(m->ir, TIR_T_I32, below(m, 8));
  if (lanes > 1) index = tir_ramp(m->ir, index, tir_int(m->ir, TIR_T_I32, 1 + below(m, 3)), lanes);
  return tir_load(m->ir, m->buffers[i], &index, 1, TIR_NONE);
}

/* A call of a name whose type follows from its arguments, is written, or is given. */
static tir_expr make_call(struct maker *m, tir_type type, int depth) {
  static const char *const names[] = {"exp",         "bitwise_and",  "likely", "unheard_of",
                                      "reinterpret", "if_then_else", "isnan"};
  uint32_t which = below(m, type == TIR_T_BOOL ? 7 : 6); /* isnan gives a truth */
  if (which == 1 && tir_type_is_float(type)) which = 0;
  tir_type condition = TIR_T_BOOL, of = any_type(m, tir_type_lanes(type));
  if (which == 6)
    of = below(m, 2) ? TIR_T_F32 : TIR_TYPE(TIR_FLOAT, 64, 1); /* of 16 bits it widens, of integers it is false */
  tir_expr args[3] = {make(m, which == 5 ? condition : which == 4 || which == 6 ? of : type, depth + 1)};
  uint32_t count = which == 1 || which == 3 ? 2 : 1;
  if (which == 5) count = 3;
  for (uint32_t i = 1; i < count; i++) args[i] = make(m, type, depth + 1);
  if (which == 3 && below(m, 2))
    args[1] = tir_string(m->ir, tir_symbol_of(m->ir, below(m, 2) ? "a \"b\"\n\\" : "int8"));
  bool constant = tir_at(m->ir, args[0])->kind == TIR_INT_IMM || tir_at(m->ir, args[0])->kind == TIR_FLOAT_IMM;
  if (which == 2 && constant) return args[0]; /* nothing is likely of a constant */
  if (which == 5 && tir_is_int(m->ir, args[0]))
    args[0] = tir_var_expr(m->ir, m->vars[8]); /* decided where it is read */
  return tir_call(m->ir, type, tir_symbol_of(m->ir, names[which]), args, count);
}

static tir_expr make_let(struct maker *m, tir_type type, int depth) {
  tir_type of = any_type(m, 1);
  tir_var var = tir_new_var(m->ir, TIR_VAR_LET, tir_name_of(m->ir, "t"), of, TIR_NONE, TIR_NONE);
  tir_expr value = make(m, of, depth + 1);
  tir_expr use = tir_unary(m->ir, TIR_CAST, tir_type_with_lanes(type, 1), tir_var_expr(m->ir, var));
  if (tir_type_lanes(type) > 1) use = tir_unary(m->ir, TIR_BROADCAST, type, use);
  enum tir_kind kind = tir_type_code(type) == TIR_BOOL ? TIR_OR : TIR_MAX;
  return tir_let(m->ir, var, value, tir_binary(m->ir, kind, use, make(m, type, depth + 1)));
}

/* Nodes of vectors alone. */
static tir_expr make_vector(struct maker *m, tir_type type, int depth) {
  tir_type scalar = tir_type_with_lanes(type, 1);
  if (tir_type_is_int(type) && below(m, 2))
    return tir_ramp(m->ir, make(m, scalar, depth + 1), make(m, scalar, depth + 1), tir_type_lanes(type));
  return tir_unary(m->ir, TIR_BROADCAST, type, make(m, scalar, depth + 1));
}

/* A node that gives a truth. */
static tir_expr make_truth(struct maker *m, tir_type type, int depth) {
  tir_type of = any_type(m, tir_type_lanes(type));
  enum tir_kind kind = TIR_EQ + below(m, 9);
  if (kind > TIR_OR) return tir_unary(m->ir, TIR_NOT, type, make(m, type, depth + 1));
  if (kind >= TIR_AND) of = type;
  tir_expr a = make(m, of, depth + 1);
  return tir_binary(m->ir, kind, a, below(m, 8) ? make(m, of, depth + 1) : a);
}

static tir_expr make(struct maker *m, tir_type type, int depth) {
  int lanes = tir_type_lanes(type);
  if (depth == MOST_DEPTH || !below(m, 6))
    return lanes > 1 && below(m, 2) ? make_vector(m, type, MOST_DEPTH - 1) : make_leaf(m, type);
  bool truth = tir_type_code(type) == TIR_BOOL; /* truths have no arithmetic */
  if (truth && below(m, 3)) return make_truth(m, type, depth);
  switch (below(m, 12)) {
  case 0: return make_call(m, type, depth);
  case 1: return make_let(m, type, depth);
  case 2: return tir_unary(m->ir, TIR_CAST, type, make(m, any_type(m, lanes), depth + 1));
  case 3: {
    tir_expr condition = make(m, tir_type_with_lanes(TIR_T_BOOL, below(m, 2) ? lanes : 1), depth + 1);
    tir_expr a = make(m, type, depth + 1);
    return tir_select(m->ir, condition, a, make(m, type, depth + 1));
  }
  case 4:
    if (lanes > 1) return make_vector(m, type, depth);
    return make_leaf(m, type);
  default: {
    if (truth) return make_truth(m, type, depth);
    enum tir_kind kind = TIR_ADD + below(m, 9);
    tir_expr a = make(m, type, depth + 1);
    return tir_binary(m->ir, kind, a, below(m, 8) ? make(m, type, depth + 1) : a);
  }
  }
}

static bool note_kind(void *data, tir_expr e) {
  struct maker *m = data;
  m->made[tir_at(m->ir, e)->kind]++;
  return true;
}

static tir_stmt the_statement(const struct tir *ir) {
  tir_stmt top = ir->funcs.at[tir_find_func(ir, "main")].body;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_EVALUATE)) return s;
  fail_msg("no statement");
  return TIR_NONE;
}

static void expect_same(const struct tir *ir, const char *text, uint64_t seed) {
  ms_error err = {0};
  char why[400];
  struct tir *again = tir_read(text, strlen(text), "printed", &err);
  if (!again) fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, err.message, text);
  if (!tir_structural_equal(ir, TIR_NONE, again, TIR_NONE, why, sizeof why))
    fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, why, text);
  char *twice = tir_print(again, TIR_NONE, 0), *once = tir_print(ir, TIR_NONE, 0);
  if (strcmp(once, twice)) fail_msg("seed %llu: printed otherwise\n%s\n%s", (unsigned long long)seed, once, twice);
  free(once);
  free(twice);
  tir_free(again);
}

static void replace(char *text, const char *from, const char *to) {
  for (char *at; (at = strstr(text, from)) != NULL;) {
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
  }
}

/* The words of the dialect before. */
static void make_old(char *text) {
  replace(text, "@T.prim_func(s_tir=True)", "@T.prim_func");
  replace(text, "from tvm.script import tirx as T", "from tvm.script import tir as T");
  replace(text, "T.sblock(", "T.block(");
}

static void any_expression(void **state) {
  (void)state;
  uint32_t made[TIR_KIND_COUNT] = {0};
  for (uint64_t seed = 0; seed < 4000; seed++) {
    struct maker m = {.random = vm_stream_of(seed, 0, 0, 0)};
    struct tir *ir = frame(&m);
    tir_expr e = make(&m, any_type(&m, below(&m, 3) ? 1 : LANES), 0);
    ir->stmts.at[the_statement(ir)].evaluate.value = e;
    tir_walk_expr(ir, e, note_kind, &m);
    for (int k = 0; k < TIR_KIND_COUNT; k++) made[k] += m.made[k];
    char *text = tir_print(ir, TIR_NONE, 0);
    expect_same(ir, text, seed);
    make_old(text);
    expect_same(ir, text, seed);
    free(text);
    tir_free(ir);
  }
  static const enum tir_kind left_out[] = {TIR_BAD_EXPR, TIR_NONE_IMM, TIR_DATA, TIR_SLICE, TIR_LIST, TIR_MAP};
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++) made[left_out[i]] = 1;
  for (int k = 0; k < TIR_KIND_COUNT; k++)
    if (!made[k]) fail_msg("kind %d: none was made", k);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_expression)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

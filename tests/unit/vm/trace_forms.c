/* The forms of traces, by properties: a trace of any instructions with any values, written and read, is the same trace
 * in each form. */
#include "support/forms.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Random values ---- */

struct maker {
  struct vm_stream random;
  struct vm_trace *trace;
  bool attribute; /* what is made is for one: nothing drawn */
};

static uint32_t below(struct maker *m, uint32_t bound) { return vm_stream_below(&m->random, bound); }

static int64_t make_int(struct maker *m) {
  static const int64_t edges[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_MIN + 1, 1ll << 53, 255};
  return below(m, 2) ? edges[below(m, sizeof edges / sizeof *edges)] : (int64_t)vm_stream_next(&m->random);
}

static double make_real(struct maker *m) {
  static const double edges[] = {0.0,     -0.0,     0.1,       1e300, -1e-300,
                                 5e-324,  1.0,      1e21,      1e16,  123456,
                                 1.0 / 3, INFINITY, -INFINITY, NAN,   2.2250738585072014e-308,
                                 16777217};
  double real;
  uint64_t bits = vm_stream_next(&m->random);
  memcpy(&real, &bits, sizeof real);
  return below(m, 2) || isnan(real) ? edges[below(m, sizeof edges / sizeof *edges)] : real;
}

static struct vm_value make_string(struct maker *m, bool empty) {
  static const char *const pieces[] = {
      "\"", "\\",       "\n",  "'", "v1", "b0",       "None", "é",       "\xf0\x9f\x98\x80",
      "\t", "\x7f",     "\r",  "{", "]",  "lambda i", "\x01", "ms.rest", "a",
      " ",  "\\u0000+", "1.5", "-", "--", "end",      "NaN",  "Infinity"};
  char text[200] = "";
  for (uint32_t n = below(m, 5) + !empty; n; n--) strcat(text, pieces[below(m, sizeof pieces / sizeof *pieces)]);
  return vm_string(m->trace, text, strlen(text));
}

static struct vm_value ref_of(struct maker *m, uint8_t type) {
  const struct vm_steps *s = m->trace->steps;
  for (;;) {
    uint32_t v = below(m, s->variables);
    if (s->types[v] == type) return vm_ref(v);
  }
}

static struct vm_value make_annotation(struct maker *m, int depth) {
  struct vm_value items[8];
  uint32_t count = below(m, 4);
  switch (below(m, depth < 4 ? 8 : 5)) {
  case 0: return vm_int(make_int(m));
  case 1: return vm_real(make_real(m));
  case 2: return vm_bool(below(m, 2));
  case 3: return make_string(m, true);
  case 4: return m->attribute ? vm_int(7) : ref_of(m, VM_T_INT);
  case 5:
    for (uint32_t i = 0; i < count; i++) {
      char key[16];
      snprintf(key, sizeof key, "%s%u", below(m, 2) ? "k" : "\"", i);
      items[2 * i] = vm_string(m->trace, key, strlen(key));
      items[2 * i + 1] = make_annotation(m, depth + 1);
    }
    return vm_list(m->trace, VM_MAP, items, 2 * count);
  default:
    for (uint32_t i = 0; i < count; i++) items[i] = make_annotation(m, depth + 1);
    return vm_list(m->trace, VM_LIST, items, count);
  }
}

/* ---- Random formulas, as texts ---- */

struct formula {
  char text[8000];
  size_t length;
  bool condition;
  uint32_t params;
};

static void put(struct formula *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(struct formula *f, const char *format, ...) {
  va_list args;
  va_start(args, format);
  f->length += (size_t)vsnprintf(f->text + f->length, sizeof f->text - f->length, format, args);
  va_end(args);
}

static void put_leaf(struct maker *m, struct formula *f) {
  if (f->params && below(m, 2))
    put(f, "p%u", below(m, f->params));
  else if (below(m, 2))
    put(f, "v%u", (unsigned)ref_of(m, VM_T_INT).ref);
  else if (below(m, 4))
    put(f, "%u", below(m, 100));
  else
    put(f, "%lld", (long long)make_int(m));
}

static void put_formula(struct maker *m, struct formula *f, int depth);

static void put_truth(struct maker *m, struct formula *f, int depth) {
  static const char *const compared[] = {"<", "<=", ">", ">=", "==", "!="};
  uint32_t choice = depth < 6 ? below(m, 4) : 0;
  put(f, choice == 1 ? "not (" : "(");
  if (choice > 1)
    put_truth(m, f, depth + 1);
  else
    put_formula(m, f, depth + 1);
  put(f, " %s ", choice > 1 ? choice == 2 ? "and" : "or" : compared[below(m, 6)]);
  if (choice > 1)
    put_truth(m, f, depth + 1);
  else
    put_formula(m, f, depth + 1);
  put(f, ")");
}

/* What a map has and a condition has not. */
static void put_choice(struct maker *m, struct formula *f, int depth) {
  static const char *const heads[] = {"T.Cast(\"int64\", ", "T.Cast(\"int32\", ", "~(", "T.bitwise_not("};
  uint32_t choice = below(m, 6);
  if (choice < 4) {
    put(f, "%s", heads[choice]);
  } else {
    put(f, choice == 4 ? "T.Select(" : "T.if_then_else(");
    put_truth(m, f, depth + 1);
    put(f, ", ");
    put_formula(m, f, depth + 1);
    put(f, ", ");
  }
  put_formula(m, f, depth + 1);
  put(f, ")");
}

static void put_formula(struct maker *m, struct formula *f, int depth) {
  static const char *const infix[] = {
      "+", "-", "*", "//", "%", "+", "<", "<=", ">", ">=", "==", "!=", "~=", "and", "or"};
  static const char *const bits[] = {"+", "-", "*", "//", "%", "<<", ">>", "&", "^", "|"};
  static const char *const calls[] = {"max", "T.min", "T.floordiv", "floormod", "T.truncdiv", "truncmod"};
  uint32_t choice = depth < 6 ? below(m, 9) : 0;
  if (choice < 2) {
    put_leaf(m, f);
  } else if (choice == 2) {
    put(f, f->condition && below(m, 2) ? "(not " : "-(");
    put_formula(m, f, depth + 1);
    put(f, ")");
  } else if (choice == 3) {
    put(f, "%s((", calls[below(m, sizeof calls / sizeof *calls)]);
    put_formula(m, f, depth + 1);
    put(f, "), ");
    put_leaf(m, f);
    put(f, ")");
  } else if (choice == 4 && !f->condition) {
    put_choice(m, f, depth);
  } else {
    put(f, "(");
    put_formula(m, f, depth + 1);
    put(f, " %s ", f->condition ? infix[below(m, sizeof infix / sizeof *infix)] : bits[below(m, 10)]);
    put_formula(m, f, depth + 1);
    put(f, ")");
  }
}

static struct vm_value make_formula(struct maker *m, bool condition) {
  struct formula f = {.condition = condition, .params = condition ? 0 : below(m, 4)};
  if (condition) {
    put_formula(m, &f, 0);
    return vm_string(m->trace, f.text, f.length);
  }
  put(&f, "lambda ");
  for (uint32_t i = 0; i < f.params; i++) put(&f, "%sp%u", i ? ", " : "", i);
  put(&f, ": (");
  for (uint32_t n = 1 + below(m, 3); n; n--) {
    put(&f, below(m, 8) ? "(" : "T.int64(");
    put_formula(m, &f, 2);
    put(&f, " + 0), ");
  }
  put(&f, ")");
  return vm_string(m->trace, f.text, f.length);
}

/* ---- Random instructions ---- */

static struct vm_value make_one(struct maker *m, const struct vm_param *p) {
  switch (p->type) {
  case VM_T_BLOCK: return ref_of(m, VM_T_BLOCK);
  case VM_T_LOOP:
  case VM_T_NEST: return ref_of(m, below(m, 2) ? VM_T_LOOP : VM_T_LOCATION);
  case VM_T_LOCATION: return ref_of(m, VM_T_LOCATION);
  case VM_T_PLACE: return ref_of(m, below(m, 2) ? VM_T_LOOP : VM_T_BLOCK);
  case VM_T_INT:
    return !m->attribute && below(m, 2) ? ref_of(m, VM_T_INT)
                                        : vm_int(p->list || p->repeat ? make_int(m) : (int32_t)make_int(m));
  case VM_T_REAL: return vm_real(make_real(m));
  case VM_T_BOOL:
  case VM_T_BIT: return vm_bool(below(m, 2));
  case VM_T_STRING: return make_string(m, true);
  case VM_T_MAP: return make_formula(m, false);
  case VM_T_CONDITION: return make_formula(m, true);
  default: return make_annotation(m, 0);
  }
}

static struct vm_value make_value(struct maker *m, const struct vm_param *p) {
  struct vm_value items[4];
  if (p->optional && !below(m, 3)) return vm_none();
  if (!p->list) return make_one(m, p);
  uint32_t count = below(m, 4);
  for (uint32_t i = 0; i < count; i++) items[i] = make_one(m, p);
  return vm_list(m->trace, VM_LIST, items, count);
}

/* True: it was appended. What is refused is a formula that names a number too large, or the text "None" where None may
 * stand. */
static bool append(struct maker *m, enum vm_kind kind) {
  struct vm_value values[2 * VM_MOST_PARAMS];
  uint32_t inputs = 0, count = 0;
  ms_error err = {0};
  const struct vm_signature *sig = vm_signature_of(kind);
  for (uint32_t p = 0; p < (uint32_t)sig->inputs + sig->attrs; p++) {
    m->attribute = p >= sig->inputs;
    for (uint32_t n = sig->at[p].repeat ? 1 + below(m, 3) : 1; n; n--) values[count++] = make_value(m, &sig->at[p]);
    if (p + 1 == sig->inputs) inputs = count;
  }
  uint32_t outputs = !sig->outputs ? 0 : sig->output.repeat ? 1 + below(m, 3) : 1;
  uint32_t draw = below(m, 3) ? VM_NO_DRAW : below(m, 100000);
  if (!vm_append(m->trace, kind, values, inputs, values + inputs, count - inputs, outputs, draw, &err)) {
    if (err.code != MS_BAD_FORMULA) fail_msg("%s", err.message);
    return false;
  }
  const struct vm_instruction *i = &m->trace->steps->instructions[m->trace->steps->count - 1];
  int64_t decision[4] = {make_int(m), make_int(m), make_int(m), make_int(m)};
  if (i->draw != VM_NO_DRAW && below(m, 3))
    vm_decide(m->trace, m->trace->steps->count - 1, decision, below(m, 4) ? outputs : 4);
  return true;
}

static const char START[] = "[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\"]],"
                            "[\"SamplePerfectTile\",[\"l1\"],[2,16],[\"v3\",\"v4\"]],"
                            "[\"SampleComputeLocation\",[\"b0\"],[],[\"l5\"]]],[]]";

static struct vm_trace *read_json(const char *text) {
  ms_error err = {0};
  struct vm_trace *trace = vm_read_json(text, strlen(text), &err);
  if (!trace) fail_msg("%s\n%s", err.message, text);
  return trace;
}

static void any_trace(void **state) {
  (void)state;
  uint32_t appended[VM_KIND_COUNT] = {0};
  char why[20000];
  for (uint64_t seed = 0; seed < 1500; seed++) {
    struct maker m = {vm_stream_of(seed, 0, 0, 0), read_json(START)};
    for (uint32_t n = 1 + below(&m, 6); n; n--) {
      enum vm_kind kind = below(&m, VM_KIND_COUNT);
      appended[kind] += append(&m, kind);
    }
    if (!forms_agree(m.trace, why, sizeof why)) fail_msg("seed %llu: %s", (unsigned long long)seed, why);
    vm_trace_free(m.trace);
  }
  for (int kind = 0; kind < VM_KIND_COUNT; kind++)
    if (!appended[kind]) fail_msg("%s: none was made", vm_kind_info(kind)->name);
}

/* ---- What is not made at random ---- */

static void expect_agree(const char *json) {
  char why[4000];
  struct vm_trace *trace = read_json(json);
  if (!forms_agree(trace, why, sizeof why)) fail_msg("%s", why);
  vm_trace_free(trace);
}

#define MAP(names_0, names_1, dtype, value)                                                                            \
  "[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"SampleCategorical\",[],[[1],[1]],[\"v1\"]],"                      \
  "[\"TransformBlockLayout\",[\"b0\"],[\"{\\\"root_index\\\":12,\\\"nodes\\\":[{\\\"type\\\":\\\"None\\\"},"           \
  "{\\\"type\\\":\\\"ir.PrimType\\\",\\\"data\\\":{\\\"dtype\\\":\\\"" dtype "\\\"}},"                                 \
  "{\\\"type\\\":\\\"ffi.String\\\",\\\"data\\\":\\\"" names_0 "\\\"},{\\\"type\\\":\\\"ir.Var\\\",\\\"data\\\":"      \
  "{\\\"ty\\\":1,\\\"name\\\":2}},{\\\"type\\\":\\\"ffi.String\\\",\\\"data\\\":\\\"" names_1 "\\\"},"                 \
  "{\\\"type\\\":\\\"ir.Var\\\",\\\"data\\\":{\\\"ty\\\":1,\\\"name\\\":4}},{\\\"type\\\":\\\"ffi.Array\\\","          \
  "\\\"data\\\":[3,5]},{\\\"type\\\":\\\"ir.IntImm\\\",\\\"data\\\":{\\\"ty\\\":1,\\\"value\\\":" value "}},"          \
  "{\\\"type\\\":\\\"tirx.FloorDiv\\\",\\\"data\\\":{\\\"ty\\\":1,\\\"a\\\":5,\\\"b\\\":7}},{\\\"type\\\":"            \
  "\\\"ffi.String\\\",\\\"data\\\":\\\"v1\\\"},{\\\"type\\\":\\\"ir.Var\\\",\\\"data\\\":{\\\"ty\\\":1,\\\"name\\\":"  \
  "9}},"                                                                                                               \
  "{\\\"type\\\":\\\"ffi.Array\\\",\\\"data\\\":[8,3,10]},{\\\"type\\\":\\\"tirx.IndexMap\\\",\\\"data\\\":"           \
  "{\\\"initial_indices\\\":6,\\\"final_indices\\\":11}}]}\"],[]]],[]]"

/* A graph's parameters may have any names: of nothing that a text can hold, the same twice, of what was drawn. */
static void names_of_parameters(void **state) {
  (void)state;
  expect_agree(MAP("i", "j", "int32", "4"));
  expect_agree(MAP("i", "j", "int64", "4"));
  expect_agree(MAP("i", "i", "int64", "-9223372036854775808"));
  expect_agree(MAP("", "j k", "int32", "2"));
  expect_agree(MAP("lambda", "v1", "int32", "2"));
  expect_agree(MAP("b7", "T", "int32", "2"));
}

/* The type of a map's variables is kept by Lua text. */
static void types_of_maps(void **state) {
  (void)state;
  struct vm_trace *trace = read_json(MAP("i", "j", "int64", "4"));
  char *lua = vm_write_lua(trace);
  assert_non_null(strstr(lua, "\"lambda i, j: (T.int64(j // 4), i, v1)\""));
  free(lua);
  vm_trace_free(trace);
}

static void numbers_that_are_not_finite(void **state) {
  (void)state;
  const char *text =
      "[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"Annotate\",[\"b0\",[Infinity,-Infinity,NaN,-0.0,"
      "\"\\\"NaN, Infinity\\\"\"]],[\"NaN\"],[]]],[]]";
  struct vm_trace *trace = read_json(text);
  char *json = vm_write_json(trace);
  assert_string_equal(json, text);
  free(json);
  vm_trace_free(trace);
  expect_agree(text);
  expect_agree("[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],"
               "[\"TransformLayout\",[\"b0\",\"lambda i: (i,)\"],[0,0,Infinity,false],[]]],[]]");
}

/* {} is a list in Lua, and a map's drawn numbers stand beside texts in JSON. */
static void maps(void **state) {
  (void)state;
  expect_agree(
      "[[[\"SampleCategorical\",[],[[1],[1]],[\"v0\"]],[\"GetSBlock\",[],[\"C\",\"main\"],[\"b1\"]],"
      "[\"Annotate\",[\"b1\",{}],[\"k\"],[]],[\"Annotate\",[\"b1\",{\"a\":\"v0\",\"b\":{\"\":\"v0\"},\"c\":[{}]}],"
      "[\"k\"],[]]],[]]");
}

/* A decision of the wrong length stays one. */
static void decisions_that_do_not_fit(void **state) {
  (void)state;
  const char *text = "[[[\"SampleCategorical\",[],[[1,2],[0.5,0.5]],[\"v0\"]]],[[0,[]]]]";
  struct vm_trace *trace = read_json("[[[\"SampleCategorical\",[],[[1,2],[0.5,0.5]],[\"v0\"]]],[[0,[1,1]]]]");
  char *json = vm_write_json(trace);
  assert_string_equal(json, text);
  assert_int_equal(trace->decided[0], VM_ILL_FORMED);
  free(json);
  vm_trace_free(trace);
  expect_agree(text);
}

static void refused(struct vm_trace *trace, enum vm_kind kind, const struct vm_value *inputs,
                    const struct vm_value *attrs, uint32_t outputs, uint32_t draw) {
  ms_error err = {0};
  const struct vm_signature *sig = vm_signature_of(kind);
  assert_false(vm_append(trace, kind, inputs, sig->inputs, attrs, sig->attrs, outputs, draw, &err));
  assert_string_equal(ms_code_name(err.code), "wrong_operand");
}

/* Texts that the forms cannot hold, maps with a key twice, ids without end: refused when they are given. */
static void what_no_form_holds(void **state) {
  (void)state;
  struct vm_trace *t = read_json(START);
  struct vm_value broken = vm_string(t, "a\xff", 2), zero = vm_string(t, "a\0b", 3), key = vm_string(t, "k", 1),
                  empty = vm_string(t, "", 0), twice[] = {key, vm_int(1), key, vm_int(2)}, none[] = {empty, vm_int(1)};
  struct vm_value bad[] = {broken, zero, vm_list(t, VM_MAP, twice, 4), vm_list(t, VM_MAP, none, 2)};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    refused(t, VM_Annotate, (struct vm_value[]){vm_ref(0), bad[i]}, &key, 0, VM_NO_DRAW);
  refused(t, VM_Unannotate, (struct vm_value[]){vm_ref(0)}, &broken, 0, VM_NO_DRAW);
  /* what is drawn is no attribute */
  struct vm_value tile[] = {vm_ref(3), vm_int(16)}, loop = vm_ref(1);
  refused(t, VM_SamplePerfectTile, &loop, tile, 2, VM_NO_DRAW);
  struct vm_value one = vm_int(1), half = vm_real(0.5), lists[2];
  lists[0] = vm_list(t, VM_LIST, &one, 1), lists[1] = vm_list(t, VM_LIST, &half, 1);
  refused(t, VM_SampleCategorical, NULL, lists, 1, UINT32_MAX - 1);
  vm_trace_free(t);
}

/* Wherever in a long text a byte stands that no text holds; characters of several bytes are held anywhere. */
static void texts_byte_by_byte(void **state) {
  (void)state;
  enum { LENGTH = 21 };
  struct vm_trace *t = read_json(START);
  struct vm_value key = vm_string(t, "k", 1);
  for (int at = 0; at < LENGTH; at++) {
    static const char wrong[] = {0, (char)0x80, (char)0xc1, (char)0xff};
    char text[LENGTH + 1] = "abcdefghijklmnopqrstu", sign[] = "\xe2\x82\xac";
    for (size_t i = 0; i < sizeof wrong; i++) {
      text[at] = wrong[i];
      refused(t, VM_Annotate, (struct vm_value[]){vm_ref(0), vm_string(t, text, LENGTH)}, &key, 0, VM_NO_DRAW);
    }
    text[at] = 'x';
    if (at <= LENGTH - 3) memcpy(text + at, sign, 3);
    ms_error err = {0};
    struct vm_value inputs[] = {vm_ref(0), vm_string(t, text, LENGTH)};
    assert_true(vm_append(t, VM_Annotate, inputs, 2, &key, 1, 0, VM_NO_DRAW, &err));
  }
  vm_trace_free(t);
}

/* A formula as deep as it is long: a chain, and parentheses, within the limit of nodes. */
static void deep_formulas(void **state) {
  (void)state;
  for (int shape = 0; shape < 3; shape++) {
    char text[9000] = "[[[\"SampleCategorical\",[],[[1],[1]],[\"v0\"]],[\"Assert\",[],[\"";
    static const char *const open[] = {"", "(1 + ", "T.max(2, "}, *const close[] = {" + 1", ")", ")"};
    for (int i = 0; i < 500; i++) strcat(text, open[shape]);
    strcat(text, "v0");
    for (int i = 0; i < 500; i++) strcat(text, close[shape]);
    strcat(text, "\"],[]]],[]]");
    expect_agree(text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_trace),
      cmocka_unit_test(names_of_parameters),
      cmocka_unit_test(types_of_maps),
      cmocka_unit_test(numbers_that_are_not_finite),
      cmocka_unit_test(maps),
      cmocka_unit_test(decisions_that_do_not_fit),
      cmocka_unit_test(what_no_form_holds),
      cmocka_unit_test(texts_byte_by_byte),
      cmocka_unit_test(deep_formulas),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

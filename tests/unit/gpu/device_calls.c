/* The tables of a GPU's: device calls, which all consumers and the guide have; capabilities of architectures;
 * limits. */
#define _GNU_SOURCE
#include "jit/c/emit_c.h"
#include "tests/support/case.h"
#include "tir/text/calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- The table ---- */

static uint32_t count_of(const char *text, char mark) {
  uint32_t count = 0;
  for (; *text; text++) count += *text == mark;
  return count;
}

static void rows_are_whole(void **state) {
  (void)state;
  for (enum tir_device_call w = 0; w < TIR_DEVICE_CALLS; w++) {
    const struct tir_device_call_row *row = &tir_device_calls[w];
    uint32_t fragment, number, fragments = 0, words = *row->operands ? count_of(row->operands, ' ') + 1 : 0;
    assert_int_equal(tir_device_call_named(row->name), w); /* no name twice */
    assert_true(*row->doc && row->doc[strlen(row->doc) - 1] != '.');
    assert_int_equal(count_of(row->operands, '@'), count_of(row->operands, '#'));
    assert_int_equal(row->counts > 0, count_of(row->operands, '@') > 0);
    assert_true(!row->counts || row->effects & TIR_DOES_FRAGMENT);
    assert_true(row->needs < TIR_CAPABILITIES);
    while (tir_fragment_operand(w, fragments, &fragment, &number)) {
      assert_true(fragment < words && number < words && fragment < number);
      fragments++;
    }
    assert_int_equal(fragments, count_of(row->operands, '@'));
    bool any = strstr(row->operands, "...") != NULL;
    assert_int_equal(tir_takes_operands(w, words), true);
    assert_int_equal(tir_takes_operands(w, words + 1), any);
    if (words) assert_int_equal(tir_takes_operands(w, words - 1), any);
    if (words > 1) assert_false(tir_takes_operands(w, words - 2));
  }
  assert_int_equal(tir_device_call_named("tvm_mma_sync_"), TIR_DEVICE_CALLS);
  assert_int_equal(tir_device_call_named(""), TIR_DEVICE_CALLS);
}

/* Text without a type is read as the table says, and printed without one. */
static void text_has_no_type(void **state) {
  (void)state;
  for (enum tir_device_call w = 0; w < TIR_DEVICE_CALLS; w++) {
    char line[100], *text = NULL, *printed;
    ms_error err = {0};
    if (tir_call_rule_of(tir_device_calls[w].name) != TIR_CALL_NOTHING || w == TIR_STORAGE_SYNC) continue;
    snprintf(line, sizeof line, "T.%s(1, 2)", tir_device_calls[w].name);
    assert_true(asprintf(&text, "@T.prim_func(s_tir=True)\ndef main():\n    T.evaluate(%s)\n", line) > 0);
    struct tir *ir = tir_read(text, strlen(text), "call", &err);
    if (!ir) fail_msg("%s", err.message);
    printed = tir_print(ir, TIR_NONE, 0);
    if (!strstr(printed, line)) fail_msg("no `%s` in\n%s", line, printed);
    free(printed), free(text);
    tir_free(ir);
  }
}

/* ---- Wrong numbers of operands ---- */

static struct tir *kernel_of(const char *call) {
  char *text = NULL;
  ms_error err = {0};
  assert_true(asprintf(&text,
                       "@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((128,), \"float32\")):\n"
                       "    for tx in T.thread_binding(128, thread=\"threadIdx.x\"):\n"
                       "        T.evaluate(%s)\n        A[tx] = T.float32(0)\n",
                       call) > 0);
  struct tir *ir = tir_read(text, strlen(text), "kernel", &err);
  if (!ir) fail_msg("%s\n%s", err.message, text);
  free(text);
  return ir;
}

static void operands_are_counted(void **state) {
  (void)state;
  static const bool compiled[] = {
#define CALLED                                                  false
#define COMPILED                                                true
#define TIR_DEVICE_CALL(id, name, operands, type, by, run, ...) [TIR_##id] = run,
#include "tir/gpu/calls.def"
  };
  enum { TOO_MANY = 20 };
  struct jit_target target;
  ms_error err = {0};
  int refused = 0;
  assert_true(jit_target_parse("cuda -arch=sm_90a", &target, &err));
  for (enum tir_device_call w = 0; w < TIR_DEVICE_CALLS; w++) {
    char call[200];
    if (tir_takes_operands(w, TOO_MANY)) continue;
    int length = snprintf(call, sizeof call, "T.call_intrin(\"int32\", \"tirx.%s\"", tir_device_calls[w].name);
    for (int i = 0; i < TOO_MANY; i++) length += snprintf(call + length, sizeof call - (size_t)length, ", %d", i);
    strcat(call, ")");
    struct tir *ir = kernel_of(call);
    float zeros[128] = {0};
    const struct tir_arg arg = {.data = zeros, .bytes = sizeof zeros};
    err = (ms_error){0};
    if (compiled[w]) {
      assert_false(tir_run(ir, 1, &arg, 1, NULL, &err));
      assert_non_null(strstr(err.message, tir_device_calls[w].name));
      assert_non_null(strstr(err.message, "not 20 operands"));
    }
    /* What the emitter does not write it refuses; groups of no copies are gone by then. */
    bool lowered = tir_lower(ir, 1, &(struct tir_lower_options){.device = TIR_GPU}, &err);
    if (lowered && !(tir_device_calls[w].effects & TIR_DOES_COPY_GROUP)) {
      assert_null(jit_emit_c(ir, 1, "kernel", &target, NULL, NULL, &err));
      assert_int_equal(err.code, MS_NOT_COMPILABLE);
      refused++;
    }
    tir_free(ir);
  }
  assert_true(refused > TIR_DEVICE_CALLS / 2);
}

/* ---- Pointers ---- */

static void pointers_are_taken_apart(void **state) {
  (void)state;
  struct tir *ir = tir_new();
  struct tir_pointer p;
  tir_expr size = tir_int(ir, TIR_T_I32, 64), five = tir_int(ir, TIR_T_I32, 5), ten = tir_int(ir, TIR_T_I32, 10);
  tir_buffer b = tir_new_buffer(ir, tir_symbol_of(ir, "A"), TIR_T_F32, &size, 1, tir_scope_named(ir, TIR_SCOPE_SHARED));
  tir_expr made = tir_new_pointer(ir, b, five, size, TIR_POINTER_WRITES), moved = tir_pointer_from(ir, made, ten);
  assert_true(tir_pointer_of(ir, tir_at(ir, moved), &p));
  assert_true(p.buffer == b && p.offset == ten && p.extent == size && p.uses == TIR_POINTER_WRITES);
  assert_true(tir_pointer_from(ir, moved, five) == made && tir_pointed(ir, made) == b);
  /* Its operands: of another pointer, and of a number that is no constant. */
  const struct tir_expr_node n = *tir_at(ir, made);
  tir_expr at[5];
  memcpy(at, tir_operands(ir, n.operands), sizeof at);
  at[1] = made, at[4] = tir_var_expr(ir, tir_new_var(ir, TIR_VAR_PLAIN, tir_name_of(ir, "n"), TIR_T_I32, 0, 0));
  tir_expr other = tir_call(ir, n.type, n.ref, at, 5);
  assert_true(tir_pointer_of(ir, tir_at(ir, other), &p) && !p.buffer && p.data == made && p.uses == -1);
  assert_int_equal(tir_pointed(ir, other), TIR_NONE);
  assert_false(tir_pointer_of(ir, tir_at(ir, tir_call(ir, n.type, n.ref, at, 4)), &p));
  assert_int_equal(tir_pointed(ir, five), TIR_NONE);
  tir_free(ir);
}

/* ---- Capabilities ---- */

static void architectures_have_capabilities(void **state) {
  (void)state;
  unsigned pairs = TIR_SET(PAIRS), turing = pairs | TIR_SET(MMA8);
  unsigned ampere = turing | TIR_SET(MMA) | TIR_SET(ASYNC_COPIES) | TIR_SET(BFLOAT_PAIRS);
  unsigned ada = ampere | TIR_SET(FLOAT_BYTES);
  unsigned hopper = ada | TIR_SET(BFLOAT_COMPARED) | TIR_SET(CLUSTERS) | TIR_SET(MATRIX_STORES);
  assert_int_equal(tir_capabilities_of("sm_70"), pairs);
  assert_int_equal(tir_capabilities_of("sm_75"), turing);
  assert_int_equal(tir_capabilities_of("sm_80"), ampere);
  assert_int_equal(tir_capabilities_of("sm_86"), ampere);
  assert_int_equal(tir_capabilities_of("sm_89"), ada);
  assert_int_equal(tir_capabilities_of("sm_90"), hopper);
  assert_int_equal(tir_capabilities_of("sm_90a"), hopper | TIR_SET(WGMMA) | TIR_SET(TENSOR_COPIES));
  assert_int_equal(tir_capabilities_of("sm_100a"), hopper); /* another's own instructions are not its */
  bool own;
  assert_int_equal(tir_arch_number("sm_90a", &own), 90);
  assert_true(own);
  assert_int_equal(tir_arch_number("sm_100", &own), 100);
  assert_false(own);
}

static void targets_have_their_capabilities(void **state) {
  (void)state;
  static const char *const archs[] = {"sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_90a"};
  for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
    struct jit_target target;
    struct jit_number numbers[JIT_MOST_NUMBERS];
    ms_error err = {0};
    char text[40];
    uint32_t seen = 0;
    snprintf(text, sizeof text, "cuda -arch=%s", archs[i]);
    assert_true(jit_target_parse(text, &target, &err));
    assert_int_equal(target.gpu.capabilities, tir_capabilities_of(archs[i]));
    uint32_t count = jit_target_numbers(&target, numbers);
    for (uint32_t k = 0; k < count; k++)
      for (enum tir_capability_id c = 0; c < TIR_CAPABILITIES; c++) {
        if (strcmp(numbers[k].name, tir_capabilities[c].name) != 0) continue;
        assert_int_equal(numbers[k].value, tir_has(target.gpu.capabilities, c));
        seen++;
      }
    assert_int_equal(seen, TIR_CAPABILITIES);
  }
}

/* ---- Limits ---- */

/* The message of the rule names the numbers that are checked. */
static void limits_are_told(void **state) {
  (void)state;
  const char *rule = ms_code_text(MS_AXIS_LIMIT);
  for (enum tir_axis a = TIR_BLOCK_X; a < TIR_AXIS_COUNT; a++) {
    char number[24];
    if (tir_axis_limit(a) == INT64_MAX) continue;
    snprintf(number, sizeof number, "%lld ", (long long)tir_axis_limit(a));
    if (!strstr(rule, number)) fail_msg("no %son %s in: %s", number, tir_axis_name(a), rule);
  }
}

/* ---- The guide ---- */

static void print_row(FILE *out, enum tir_device_call w) {
  static const char *const by[] = {"a thread", "one thread", "a warp's lanes", "a warp", "a warp group", "the block"};
  const struct tir_device_call_row *row = &tir_device_calls[w];
  fprintf(out, "| `%s(", row->name);
  for (const char *at = row->operands; *at; at++)
    if (*at == ' ')
      fputs(", ", out);
    else if (*at != '@' && *at != '#')
      fputc(*at, out);
  fprintf(out, ")` | %s | %s | ", by[row->by], row->needs < 0 ? "" : tir_capabilities[row->needs].least);
  fprintf(out, *row->spelling ? "`%s` | %s |\n" : "%s| %s |\n", row->spelling, row->doc);
}

static void guide_has_each_call(void **state) {
  (void)state;
  static const char path[] = TEST_ROOT "/../lua/guide/gpus.md";
  char *text = NULL, *table = NULL;
  size_t size = 0, capacity = 0;
  FILE *out = open_memstream(&table, &size);
  for (enum tir_device_call w = 0; w < TIR_DEVICE_CALLS; w++) print_row(out, w);
  fclose(out);
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  assert_true(getdelim(&text, &capacity, 0, in) > 0);
  fclose(in);
  bool same = strstr(text, table) != NULL;
  if (!same) fprintf(stderr, "%s should have:\n%s", path, table);
  assert_true(same);
  free(text), free(table);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_whole),
      cmocka_unit_test(text_has_no_type),
      cmocka_unit_test(operands_are_counted),
      cmocka_unit_test(pointers_are_taken_apart),
      cmocka_unit_test(architectures_have_capabilities),
      cmocka_unit_test(targets_have_their_capabilities),
      cmocka_unit_test(limits_are_told),
      cmocka_unit_test(guide_has_each_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

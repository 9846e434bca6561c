/* Texts of functions, traces and C source where the host's numbers have a decimal comma, or are rounded otherwise: they
 * are those that the C locale makes, and are read. The locale is made by support/comma_locale.sh; where it cannot be
 * the test is skipped. */
#include "support/case.h"
#include "support/traces.h"
#include "unit/exported.h"

#include <fenv.h>
#include <locale.h>

struct texts {
  char *function, *json, *lua, *source;
};

/* What is written of a case; what is written of its trace is read again. */
static struct texts write_texts(const char *name) {
  char path[256];
  ms_error err = {.message = ""};
  struct jit_target target;
  snprintf(path, sizeof path, "%s/case/%s", TEST_ROOT, name);
  char *text = case_read_file(path);
  assert_non_null(text);
  struct section before = case_section(text, "before"), steps = case_section(text, "trace");
  struct tir *ir = tir_read(before.at, before.length, name, &err);
  if (!ir) fail_msg("%s", err.message);
  struct vm_trace *trace = vm_read_trace(steps.at, steps.length, &err);
  if (!trace) fail_msg("%s", err.message);
  assert_true(jit_target_parse("native", &target, &err));
  struct texts out = {tir_print(ir, TIR_NONE, 0), vm_write_json(trace), vm_write_lua(trace),
                      exported(ir, &target, NULL, ".c", NULL)};
  struct vm_trace *again = vm_read_trace(out.lua, strlen(out.lua), &err);
  if (!again) fail_msg("%s", err.message);
  expect_json(again, out.json);
  if (case_judge(text, "after", name, CASE_OURS, 1, &err) != CASE_EQUAL) fail_msg("%s: %s", name, err.message);
  vm_trace_free(again);
  vm_trace_free(trace);
  tir_free(ir);
  free(text);
  return out;
}

static void changes_no_text(void **state) {
  (void)state;
  static const char *const names[] = {"transform_layout/pad_lambda.case", "sample_categorical/arg_maximum_of_4.case"};
  char folder[] = "/tmp/msched-locale-XXXXXX", command[512], number[8];
  assert_non_null(mkdtemp(folder));
  snprintf(command, sizeof command, "sh %s/support/comma_locale.sh %s", TEST_ROOT, folder);
  bool comma = system(command) == 0 && !setenv("LOCPATH", folder, 1) && setlocale(LC_NUMERIC, "comma");
  if (comma) {
    snprintf(number, sizeof number, "%g", 1.5);
    assert_string_equal(number, "1,5");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      assert_non_null(setlocale(LC_NUMERIC, "comma"));
      struct texts there = write_texts(names[i]);
      assert_non_null(setlocale(LC_NUMERIC, "C"));
      struct texts here = write_texts(names[i]);
      assert_string_equal(there.function, here.function);
      assert_string_equal(there.json, here.json);
      assert_string_equal(there.lua, here.lua);
      assert_string_equal(there.source, here.source);
      const struct texts *all[] = {&there, &here};
      for (int k = 0; k < 2; k++) free(all[k]->function), free(all[k]->json), free(all[k]->lua), free(all[k]->source);
    }
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
  if (!comma) skip();
}

/* Numbers are written and read alike however the host rounds, or where it takes subnormal floats for 0. */
static void takes_no_rounding_of_the_host(void **state) {
  (void)state;
  static const int roundings[] = {FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO, FE_TONEAREST};
  static const char *const texts[] = {"0.10000000000000001", "0.33333333333333331", "4.9406564584124654e-324"};
  const double values[] = {0.1, 1.0 / 3, 0x1p-1074};
  fenv_t before;
  fegetenv(&before);
  for (size_t r = 0; r < sizeof roundings / sizeof *roundings; r++)
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
      char out[64];
      assert_int_equal(fesetround(roundings[r]), 0);
#if defined(__SSE__)
      __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* subnormal results and operands are 0 */
#endif
      tir_number_text(out, sizeof out, "%.17g", values[i]);
      double value = tir_text_number(texts[i], NULL);
      assert_int_equal(fegetround(), roundings[r]);
      fesetenv(&before);
      assert_string_equal(out, texts[i]);
      assert_memory_equal(&value, &values[i], sizeof value);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(changes_no_text),
                                     cmocka_unit_test(takes_no_rounding_of_the_host)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

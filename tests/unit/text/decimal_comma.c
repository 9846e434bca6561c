/* Texts of functions, traces and C source where the host's numbers have a decimal comma: what is made is what the C
 * locale makes, and is read. The locale is made by support/comma_locale.sh; where it cannot be the
 * test is skipped. */
#include "support/case.h"
#include "support/traces.h"
#include "unit/exported.h"

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
                      exported(ir, &target, ".c", NULL)};
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(changes_no_text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

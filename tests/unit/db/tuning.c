/* Lines of TVM's tuning records: what is read of them, what is refused, what is written. */
#include "db/db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRACE                                                                                                          \
  "[[[\"GetBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\"]],"                          \
  "[\"SamplePerfectTile\",[\"l1\"],[2,16],[\"v3\",\"v4\"]],[\"Split\",[\"l1\",\"v3\",\"v4\"],[1],[\"l5\",\"l6\"]]],"   \
  "[[2,[4,2]]]]"
#define TARGET                                                                                                         \
  "{\"tag\":\"\",\"num-cores\":8,\"keys\":[\"cpu\"],\"mattr\":[\"+avx2\",\"+fma\"],\"mcpu\":\"znver4\","               \
  "\"kind\":\"llvm\"}"
#define ARGS                                      "[[\"TENSOR\",\"float32\",[8,4]],[\"TENSOR\",\"int8\",[]]]"
#define LINE(workload, trace, runs, target, args) "[" workload ",[" trace "," runs "," target "," args "]]"
static const char LINE_3[] = LINE("3", TRACE, "[0.5,2,1e-3]", TARGET, ARGS);

static void reads_a_line(void **state) {
  (void)state;
  ms_error err = {0};
  struct db_tuning t;
  if (!db_read_tuning(LINE_3, strlen(LINE_3), &t, &err)) fail_msg("%s", err.message);
  assert_int_equal(t.workload, 3);
  assert_int_equal(t.trace->steps->count, 4);
  assert_int_equal(t.trace->decisions[0], 4);
  assert_int_equal(t.runs, 3);
  assert_true(t.seconds[0] == 0.5 && t.seconds[1] == 2 && t.seconds[2] == 1e-3);
  assert_string_equal(t.target, "llvm -mcpu=znver4 -num-cores=8 -mattr=+avx2,+fma");
  assert_int_equal(t.arg_count, 2);
  assert_string_equal(t.args[0].type, "float32");
  assert_true(t.args[0].rank == 2 && t.args[0].shape[0] == 8 && t.args[0].shape[1] == 4 && t.args[1].rank == 0);
  db_clear_tuning(&t);
}

/* What is written reads back as the same, and is written the same again. */
static void writes_what_it_reads(void **state) {
  (void)state;
  ms_error err = {0};
  static const char *const lines[] = {LINE_3, LINE("0", TRACE, "null", "null", "null"),
                                      LINE("0", TRACE, "[1]", "{\"kind\":\"cuda\",\"arch\":\"sm_90\"}", "[]")};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
    struct db_tuning t, again;
    if (!db_read_tuning(lines[i], strlen(lines[i]), &t, &err)) fail_msg("%s", err.message);
    char *text = db_write_tuning(&t);
    assert_non_null(text);
    if (!db_read_tuning(text, strlen(text), &again, &err)) fail_msg("%s: %s", err.message, text);
    assert_true(again.workload == t.workload && again.runs == t.runs && again.arg_count == t.arg_count);
    assert_true(!t.target == !again.target && (!t.target || !strcmp(t.target, again.target)));
    char *twice = db_write_tuning(&again);
    assert_string_equal(text, twice);
    free(text), free(twice);
    db_clear_tuning(&t), db_clear_tuning(&again);
  }
}

/* A target's keys follow from its kind, whatever an option of that name says; options stand in order. */
static void writes_the_keys_of_a_kind(void **state) {
  (void)state;
  ms_error err = {0};
  struct db_tuning t;
  const char *line = LINE("0", TRACE, "[1]", "\"llvm -num-cores=2 -b=1 -keys=gpu -a=2 -=3\"", "[]");
  if (!db_read_tuning(line, strlen(line), &t, &err)) fail_msg("%s", err.message);
  char *text = db_write_tuning(&t);
  assert_non_null(strstr(text, "\"keys\":[\"cpu\"],\"num-cores\":2,\"a\":2,\"b\":1}"));
  free(text);
  db_clear_tuning(&t);
}

static void reads_other_forms(void **state) {
  (void)state;
  ms_error err = {0};
  static const struct {
    const char *line, *target;
    uint32_t runs;
  } forms[] = {
      {"[" TRACE ",[1.5],\"llvm -mcpu=x\",null]", "llvm -mcpu=x", 1},      /* no number, and the target as text */
      {LINE("0", TRACE, "[0.25]", "[\"kind\",\"tag\"]", "null"), NULL, 1}, /* the names of its options alone */
      {LINE("0", TRACE, "[10000000000]", "null", "null"), NULL, 0},        /* a failure */
      {LINE("0", TRACE, "[]", "{\"kind\":\"llvm\",\"x\":true}", "[]"), "llvm -x=1", 0},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    struct db_tuning t;
    if (!db_read_tuning(forms[i].line, strlen(forms[i].line), &t, &err)) fail_msg("%zu: %s", i, err.message);
    assert_int_equal(t.runs, forms[i].runs);
    assert_true(!t.target == !forms[i].target && (!t.target || !strcmp(t.target, forms[i].target)));
    db_clear_tuning(&t);
  }
}

/* Each is refused with its reason. */
static void refuses_what_is_none(void **state) {
  (void)state;
  static const struct {
    const char *line, *why;
    enum ms_code code;
  } bad[] = {
      {"", "column", MS_BAD_RECORD},
      {"7", "column", MS_BAD_RECORD},
      {"[]", "a record is", MS_BAD_RECORD},
      {"{}", "a record is", MS_BAD_RECORD},
      {LINE("-1", TRACE, "[1]", "null", "null"), "no number from 0", MS_BAD_RECORD},
      {LINE("1.5", TRACE, "[1]", "null", "null"), "no number from 0", MS_BAD_RECORD},
      {LINE("99999999999999999999", TRACE, "[1]", "null", "null"), "too big", MS_BAD_RECORD},
      {"[0,[" TRACE ",[1],null]]", "a record is", MS_BAD_RECORD},
      {LINE("0", "null", "[1]", "null", "null"), "the trace is no list", MS_BAD_RECORD},
      {LINE("0", "[[],[],[]]", "[1]", "null", "null"), "a trace is", MS_BAD_TRACE},
      {LINE("0", "[[[\"Fly\",[],[],[]]],[]]", "[1]", "null", "null"), "no instruction \"Fly\"", MS_UNKNOWN_INSTRUCTION},
      {LINE("0", TRACE, "1", "null", "null"), "no list", MS_BAD_RECORD},
      {LINE("0", TRACE, "[\"1\"]", "null", "null"), "no number of seconds", MS_BAD_RECORD},
      {LINE("0", TRACE, "[0]", "null", "null"), "above 0", MS_BAD_RECORD},
      {LINE("0", TRACE, "[-1]", "null", "null"), "above 0", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1e999]", "null", "null"), "real number overflow", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "5", "null"), "the target", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "\"\"", "null"), "the target", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "\" -mcpu=x\"", "null"), "the target", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "{}", "null"), "the target", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "{\"kind\":\"llvm\",\"mcpu\":\"a b\"}", "null"), "the target", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "{\"kind\":\"llvm\",\"mcpu\":{}}", "null"), "the target", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "null", "7"), "the arguments", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "null", "[7]"), "an argument is no", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "null", "[[\"TENSOR\",\"real\",[1]]]"), "type is not known", MS_BAD_RECORD},
      {LINE("0", TRACE, "[1]", "null", "[[\"TENSOR\",\"int8\",[1.5]]]"), "extent", MS_BAD_RECORD},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    ms_error err = {.code = MS_OK};
    struct db_tuning t;
    if (db_read_tuning(bad[i].line, strlen(bad[i].line), &t, &err)) fail_msg("taken: %s", bad[i].line);
    if (err.code != bad[i].code || !strstr(err.message, bad[i].why)) fail_msg("%s: %s", bad[i].line, err.message);
  }
}

/* At any byte, and nested without end; the text has no zero after it, so that reading past it shows. */
static void refuses_what_is_cut(void **state) {
  (void)state;
  for (size_t length = 0; length < strlen(LINE_3); length++) {
    ms_error err = {0};
    struct db_tuning t;
    char *cut = malloc(length + 1);
    assert_non_null(cut);
    memcpy(cut, LINE_3, length);
    cut[length] = '[';
    assert_false(db_read_tuning(cut, length, &t, &err));
    assert_true(*err.message);
    free(cut);
  }
  size_t depth = 1000000;
  char *deep = malloc(depth);
  assert_non_null(deep);
  memset(deep, '[', depth);
  ms_error err = {0};
  struct db_tuning t;
  assert_false(db_read_tuning(deep, depth, &t, &err));
  free(deep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_a_line),
      cmocka_unit_test(writes_what_it_reads),
      cmocka_unit_test(writes_the_keys_of_a_kind),
      cmocka_unit_test(reads_other_forms),
      cmocka_unit_test(refuses_what_is_none),
      cmocka_unit_test(refuses_what_is_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

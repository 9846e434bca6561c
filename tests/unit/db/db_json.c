/* JSON taken apart: what jansson takes, with the same values, and nothing else. */
#include "db/exchange/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

static void compare(const struct db_json_value *got, const json_t *expected, const char *text) {
  static const json_type kinds[] = {
      [DB_JSON_STRING] = JSON_STRING, [DB_JSON_INTEGER] = JSON_INTEGER, [DB_JSON_REAL] = JSON_REAL,
      [DB_JSON_TRUE] = JSON_TRUE,     [DB_JSON_FALSE] = JSON_FALSE,     [DB_JSON_NULL] = JSON_NULL,
      [DB_JSON_LIST] = JSON_ARRAY,    [DB_JSON_OBJECT] = JSON_OBJECT};
  if (kinds[got->kind] != json_typeof(expected)) fail_msg("%s: a value of another kind", text);
  if (json_is_string(expected)) assert_string_equal(got->text, json_string_value(expected));
  if (json_is_integer(expected)) assert_true(got->integer == json_integer_value(expected));
  if (json_is_number(expected)) assert_true(got->number == json_number_value(expected));
  size_t count = 0;
  for (const struct db_json_value *at = db_json_first(got); at; at = db_json_next(got, at), count++) {
    json_t *its = json_is_array(expected) ? json_array_get(expected, count) : json_object_get(expected, at->key);
    if (!its) fail_msg("%s: an item that is none", text);
    compare(at, its, text);
    if (json_is_object(expected)) assert_ptr_equal(db_json_get(got, at->key), at);
  }
  assert_int_equal(count, json_is_array(expected) ? json_array_size(expected) : json_object_size(expected));
}

/* In memory of its own, so that a byte behind it is found out. */
static void expect_as_jansson(const char *line) {
  static struct db_json json;
  size_t length = strlen(line);
  char *text = malloc(length + 1);
  assert_non_null(text);
  memcpy(text, line, length + 1);
  json_t *expected = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, NULL);
  bool taken = db_json_read(&json, text, length);
  if (taken != (expected != NULL)) fail_msg("%s: %s", text, taken ? "taken" : "refused");
  if (taken) compare(json.at, expected, text);
  json_decref(expected);
  free(text);
  db_json_free(&json);
}

static void test_values(void **state) {
  (void)state;
  static const char *const all[] = {"",
                                    " ",
                                    "{}",
                                    " { } ",
                                    "[]",
                                    "[1,2]",
                                    "[1,]",
                                    "[,1]",
                                    "{,}",
                                    "{\"a\":1}",
                                    "{\"a\":1,}",
                                    "{\"a\" : 1 , \"b\":[]}",
                                    "{\"a\":1,\"a\":2}",
                                    "{\"a\":{\"a\":1},\"b\":{\"a\":1}}",
                                    "{a:1}",
                                    "{\"a\"}",
                                    "{\"a\":}",
                                    "{1:1}",
                                    "{} {}",
                                    "{}x",
                                    "true",
                                    "false",
                                    "null",
                                    "nul",
                                    "truex",
                                    "True",
                                    "0",
                                    "-0",
                                    "-",
                                    "+1",
                                    "01",
                                    "-01",
                                    "1.",
                                    ".5",
                                    "1.5",
                                    "-1.5e3",
                                    "1e",
                                    "1e+",
                                    "1e+5",
                                    "1E-5",
                                    "1e400",
                                    "-1e400",
                                    "1e-400",
                                    "0.1e1x",
                                    "9223372036854775807",
                                    "9223372036854775808",
                                    "-9223372036854775808",
                                    "-9223372036854775809",
                                    "99999999999999999999",
                                    "0x10",
                                    "1 2",
                                    "NaN",
                                    "Infinity",
                                    "4.9406564584124654e-324",
                                    "1.7976931348623157e308",
                                    "0.1",
                                    "123456789.123456789",
                                    "\"\"",
                                    "\"a\"",
                                    "\"a",
                                    "a\"",
                                    "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
                                    "\"\\a\"",
                                    "\"\\",
                                    "\"\\u\"",
                                    "\"\\u12\"",
                                    "\"\\u00e9\\u00E9\"",
                                    "\"\\u0000\"",
                                    "\"\\ud83d\\ude00\"",
                                    "\"\\ud83d\"",
                                    "\"\\ude00\"",
                                    "\"\\ud83d\\ud83d\"",
                                    "\"\\ud83dx\"",
                                    "\"\\uffff\"",
                                    "\"\t\"",
                                    "\"\n\"",
                                    "\"\x7f\"",
                                    "\"\x1f\"",
                                    "\"\xc3\xa9\"",
                                    "\"\xff\"",
                                    "\"\xc3\"",
                                    "\"\xed\xa0\x80\"",
                                    "\"\xf0\x9f\x98\x80\"",
                                    "\"\xc0\x80\"",
                                    "\"eight by\"",
                                    "\"eight by\\nte\"",
                                    "\"eight b\\\"\"",
                                    "\"12345678123\xc3\xa9\"",
                                    "\"1234567\x01\"",
                                    "{\"\":0}",
                                    "{\"\\u0061\":0,\"a\":1}",
                                    "\xef\xbb\xbf{}"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) expect_as_jansson(all[i]);
}

/* Each byte another, and each end. */
static void test_spoiled(void **state) {
  (void)state;
  char line[] =
      "{\"record\":\"01ab\",\"seconds\":1.25e-5,\"runs\":-12,\"high\":null,\"busy\":false,\"pinned\":true,\"trace\":"
      "\"return function\\n  v.b0 = \\\"C\\\"\\u00e9\",\"facts\":{\"clock\":[1, 2.5],\"l3\":{}}}";
  static const char others[] = "\"\\{}[]:,0e-. u\x01\xc3";
  for (size_t i = 0; i < sizeof line - 1; i++) {
    char was = line[i];
    line[i] = 0;
    expect_as_jansson(line);
    for (const char *other = others; *other; other++) {
      line[i] = *other;
      expect_as_jansson(line);
    }
    line[i] = was;
  }
  expect_as_jansson(line);
}

/* So many of one text, and an end. */
static void expect(bool taken, const char *begin, const char *each, uint32_t count, const char *end) {
  struct db_json json = {0};
  char *text = NULL;
  size_t size;
  FILE *out = open_memstream(&text, &size);
  assert_non_null(out);
  fputs(begin, out);
  for (uint32_t i = 0; i < count; i++) fprintf(out, each, i);
  fputs(end, out);
  fclose(out);
  assert_int_equal(db_json_read(&json, text, size), taken);
  db_json_free(&json);
  free(text);
}

static void test_bounds(void **state) {
  (void)state;
  expect(true, "{", "\"a%u\":1,", 1023, "\"b\":1}");
  expect(false, "{", "\"a%u\":1,", 1024, "\"b\":1}");
  expect(true, "[", "%u,", 65534, "1]");
  expect(false, "[", "%u,", 65535, "1]");
  expect(true, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "", 0, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
  expect(false, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "", 0, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
  expect(false, "", "[", 1000000, "");
}

static void test_missing(void **state) {
  (void)state;
  struct db_json json = {0};
  assert_true(db_json_read(&json, "{\"a\":1}", 7));
  assert_null(db_json_get(json.at, "b"));
  assert_null(db_json_get(json.at + 1, "a"));
  assert_null(db_json_get(NULL, "a"));
  assert_null(db_json_first(NULL));
  assert_string_equal(db_json_text(json.at, "a"), "");
  db_json_free(&json);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_spoiled),
                                     cmocka_unit_test(test_bounds), cmocka_unit_test(test_missing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

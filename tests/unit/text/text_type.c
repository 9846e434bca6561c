/* The text of data types. */
#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void reads_and_prints(void **state) {
  (void)state;
  static const char *const texts[] = {
      "bool",     "boolx4",  "int8",    "int8x4",        "int16",   "int32",         "int64",       "uint8",
      "uint64x2", "float16", "float32", "float32x65535", "float64", "bfloat16",      "bfloat16x8",  "handle",
      "void",     "string",  "int1",    "int4",          "uint1",   "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnx16"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    tir_type type;
    char text[24];
    assert_true(tir_type_parse(texts[i], &type));
    assert_string_equal(tir_type_text(type, text), texts[i]);
  }
  tir_type type;
  assert_true(tir_type_parse("float32", &type));
  assert_int_equal(type, TIR_T_F32);
  assert_true(tir_type_parse("int8x4", &type));
  assert_int_equal(type, TIR_TYPE(TIR_INT, 8, 4));
  assert_true(tir_type_parse("int32x1", &type));
  assert_int_equal(type, TIR_T_I32);
  char text[24];
  static const char *const older[][2] = {{"e4m3_float8", "float8_e4m3fn"},
                                         {"e5m2_float8x4", "float8_e5m2x4"},
                                         {"float8_e4m3fnx65535", "float8_e4m3fnx65535"}};
  for (size_t i = 0; i < sizeof older / sizeof older[0]; i++) {
    assert_true(tir_type_parse(older[i][0], &type));
    assert_string_equal(tir_type_text(type, text), older[i][1]);
    assert_true(tir_type_is_float(type) && tir_type_is_short(type) && !tir_type_is_half(type));
  }
  assert_string_equal(tir_type_text(TIR_TYPE(TIR_CODES, 32, 1), text), "unknown");
}

static void refuses_others(void **state) {
  (void)state;
  static const char *const texts[] = {"",       "int",         "int7",        "int032",
                                      "int33",  "float8",      "float128",    "bfloat32",
                                      "int32x", "int32x0",     "int32x65536", "int32x99999999999",
                                      "voidx2", "boolean",     "Int32",       "int32 ",
                                      " int32", "float8_e4m3", "int-8",       "uint99999999999999999999"};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
    tir_type type;
    assert_false(tir_type_parse(texts[i], &type));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(reads_and_prints), cmocka_unit_test(refuses_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

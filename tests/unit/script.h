/* For tests that read TVMScript, apply a primitive and compare with TVMScript. Include in one file a program.
 *
 *   struct tir *ir = read_function("A: T.Buffer((8,), \"float32\")",
 *                                  "for i in range(8):",
 *                                  "    with T.sblock(\"B\"):", …);
 * Comparison is of the printed text: names count. */
#ifndef MSCHED_TEST_SCRIPT_H
#define MSCHED_TEST_SCRIPT_H

#include "tir/tir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static inline struct tir *read_lines(const char *parameters, const char *const *lines) {
  char text[16384];
  size_t length = (size_t)snprintf(text, sizeof text, "@T.prim_func(s_tir=True)\ndef main(%s):\n", parameters);
  for (; *lines; lines++) {
    length += (size_t)snprintf(text + length, sizeof text - length, "    %s\n", *lines);
    assert_true(length < sizeof text);
  }
  ms_error err = {0};
  struct tir *ir = tir_read(text, length, "test", &err);
  if (!ir) fail_msg("%s", err.message);
  return ir;
}

#define read_function(parameters, ...) read_lines(parameters, (const char *const[]){__VA_ARGS__, NULL})

static inline void compare_and_free(struct tir *ir, struct tir *expected) {
  ms_error err = {0};
  if (!tir_verify(ir, &err)) fail_msg("%s", err.message);
  char *got = tir_print(ir, TIR_NONE, TIR_PRINT_FUNCTION), *wanted = tir_print(expected, TIR_NONE, TIR_PRINT_FUNCTION);
  if (strcmp(got, wanted)) { /* fail_msg cuts what is long */
    fprintf(stderr, "got:\n%s\nexpected:\n%s\n", got, wanted);
    fail_msg("the function is not as expected");
  }
  free(got);
  free(wanted);
  tir_free(ir);
  tir_free(expected);
}

/* Both modules are freed. */
#define assert_function(ir, parameters, ...) compare_and_free(ir, read_function(parameters, __VA_ARGS__))

static inline tir_block block_named(struct tir *ir, const char *name) {
  tir_block b = TIR_NONE;
  ms_error err = {0};
  if (!tir_get_block(ir, name, NULL, &b, &err)) fail_msg("%s", err.message);
  return b;
}

/* The loop around a block, counted from the outermost. */
static inline tir_loop loop_of(struct tir *ir, const char *name, uint32_t index) {
  tir_loop loops[64];
  uint32_t count = tir_loops_of(ir, block_named(ir, name), loops, 64);
  assert_true(index < count && count <= 64);
  return loops[index];
}

/* A call was refused with the code, said why, and left the module as it was (`before` is freed). */
static inline void check_refusal(bool accepted, enum ms_code code, const ms_error *err, const struct tir *ir,
                                 char *before) {
  assert_false(accepted);
  assert_string_equal(ms_code_name(err->code), ms_code_name(code));
  assert_true(strlen(err->message) > 0);
  char *after = tir_print(ir, TIR_NONE, 0);
  assert_string_equal(after, before);
  free(after);
  free(before);
}

/* The verifier refuses the module, which is freed, with the code, and says so. */
static inline void expect_broken(struct tir *ir, enum ms_code code, const char *said) {
  ms_error err = {0};
  assert_false(tir_verify(ir, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(code));
  if (!strstr(err.message, said)) fail_msg("\"%s\" does not say \"%s\"", err.message, said);
  tir_free(ir);
}

/* call: an expression that uses `err`, of type ms_error *. */
#define assert_refused(ir, expected_code, call)                                                                        \
  do {                                                                                                                 \
    ms_error refusal = {0}, *err = &refusal;                                                                           \
    char *before = tir_print(ir, TIR_NONE, 0);                                                                         \
    bool accepted = (call);                                                                                            \
    check_refusal(accepted, expected_code, err, ir, before);                                                           \
  } while (0)

#define assert_accepted(call)                                                                                          \
  do {                                                                                                                 \
    ms_error refusal = {0}, *err = &refusal;                                                                           \
    if (!(call)) fail_msg("%s", err->message);                                                                         \
  } while (0)

#endif

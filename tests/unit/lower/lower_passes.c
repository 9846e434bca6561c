/* Each lowering pass gives a function that computes the same: what is printed after it is read again, and run beside
 * the unscheduled function. The functions are the examples, at small sizes, and candidates of each of their sketches.
 * MSCHED_PROGRAM: the program that schedules them. */
#include "unit/script.h"

enum { MOST_MODULES = 64 };

/* ---- Modules, as the program prints them ---- */

struct modules {
  char *text;
  const char *names[MOST_MODULES], *texts[MOST_MODULES]; /* into text; the first is not scheduled */
  uint32_t count;
};

static char *output_of(const char *command) {
  char *text = NULL, block[4096];
  size_t length = 0, got;
  FILE *out = open_memstream(&text, &length), *from = popen(command, "r");
  assert_non_null(from);
  while ((got = fread(block, 1, sizeof block, from)) > 0) fwrite(block, 1, got, out);
  fclose(out);
  if (pclose(from) != 0) fail_msg("%s: failed", command);
  return text;
}

static struct modules modules_of(const char *example) {
  struct modules m = {0};
  char command[2048];
  snprintf(command, sizeof command, "'%s' '%s/lua/scheduled.lua' '%s/..' %s", getenv("MSCHED_PROGRAM"), TEST_ROOT,
           TEST_ROOT, example);
  m.text = output_of(command);
  for (char *at = m.text; (at = strstr(at, "### ")) != NULL;) {
    assert_true(m.count < MOST_MODULES);
    *at = 0; /* the module before ends */
    m.names[m.count] = at + 4;
    at += 4 + strcspn(at + 4, "\n");
    *at++ = 0;
    m.texts[m.count++] = at;
  }
  return m;
}

static struct tir *read_module(const char *text, const char *name) {
  ms_error err = {0};
  struct tir *ir = tir_read(text, strlen(text), name, &err);
  if (!ir) fail_msg("%s: %s\n%s", name, err.message, text);
  return ir;
}

static tir_func only_function(const struct tir *ir) {
  assert_int_equal(ir->funcs.count, 2); /* none, and the one */
  return 1;
}

/* ---- Passes ---- */

static char *dumped_after(const struct tir *ir, const char *pass) {
  char *text = NULL;
  size_t length = 0;
  struct tir_lower_options options = {.threads = 3,
                                      .stack_bytes = 1,
                                      .finite = true,
                                      .verify = true,
                                      .dump_after = pass,
                                      .dump = open_memstream(&text, &length)};
  struct tir *lowered = tir_new();
  tir_copy(lowered, ir);
  assert_accepted(tir_lower(lowered, only_function(lowered), &options, err));
  fclose(options.dump);
  tir_free(lowered);
  return text;
}

struct reference {
  struct tir *ir;
  tir_func func;
  struct tir_arguments inputs, results;
  double epsilon; /* of what its run rounded */
};

/* Parameters of a flat function have one dimension: their extents follow from sizes. */
static void expect_equal(const struct reference *r, const char *text, const char *name, const char *pass) {
  struct tir *ir = read_module(text, pass);
  struct tir_arguments actual;
  struct tir_arg flat[16];
  struct tir_run_report report = {0};
  struct tir_run_options options = {.lowered = true, .report = &report};
  ms_error err = {0};
  tir_copy_arguments(r->ir, r->func, &r->inputs, &actual);
  assert_true(actual.count <= 16);
  for (uint32_t i = 0; i < actual.count; i++) flat[i] = actual.args[i], flat[i].shape = NULL;
  bool ok = tir_run(ir, only_function(ir), flat, actual.count, &options, &err);
  double epsilon = r->epsilon > report.epsilon ? r->epsilon : report.epsilon;
  ok = ok && tir_same_arguments(r->ir, r->func, &r->results, &actual, tir_tolerance(r->ir, r->func, epsilon), &err);
  if (!ok) {
    fprintf(stderr, "%s\n", text);
    fail_msg("%s, after %s: %s", name, pass, err.message);
  }
  tir_arguments_free(&actual);
  tir_free(ir);
}

/* Returns the number of passes that changed the function. */
static uint32_t check_passes(const struct reference *r, const char *text, const char *name) {
  struct tir *ir = read_module(text, name);
  char *before = NULL;
  const char *what, *pass;
  uint32_t changed = 0;
  for (uint32_t i = 0; (pass = tir_lower_pass(TIR_CPU, i, &what)) != NULL; i++) {
    char *after = dumped_after(ir, pass);
    assert_true(strlen(after) > 0);
    if (before && !strcmp(before, after)) {
      free(after);
      continue;
    }
    changed++;
    expect_equal(r, after, name, pass);
    free(before);
    before = after;
  }
  free(before);
  tir_free(ir);
  return changed;
}

static struct reference reference_of(const char *text) {
  struct reference r = {.ir = read_module(text, "source")};
  struct tir_run_report report = {0};
  struct tir_run_options options = {.report = &report};
  r.func = only_function(r.ir);
  assert_accepted(tir_make_arguments(r.ir, r.func, 11, &r.inputs, err));
  tir_copy_arguments(r.ir, r.func, &r.inputs, &r.results);
  assert_accepted(tir_run(r.ir, r.func, r.results.args, r.results.count, &options, err));
  r.epsilon = report.epsilon;
  return r;
}

static void check_example(const char *example) {
  struct modules m = modules_of(example);
  assert_true(m.count >= 2);
  struct reference r = reference_of(m.texts[0]);
  uint32_t most = 0;
  for (uint32_t i = 0; i < m.count; i++) {
    uint32_t changed = check_passes(&r, m.texts[i], m.names[i]);
    most = changed > most ? changed : most;
  }
  assert_true(most >= 5); /* the schedules give the passes work */
  tir_arguments_free(&r.inputs);
  tir_arguments_free(&r.results);
  tir_free(r.ir);
  free(m.text);
}

static void products(void **state) {
  (void)state;
  check_example("gemm 32 32 16");
  check_example("gemm 13 18 7");
}

static void convolutions(void **state) {
  (void)state;
  check_example("conv2d_bn_relu 6 4");
}

static void softmaxes(void **state) {
  (void)state;
  check_example("softmax 8 24");
}

int main(void) {
  if (!getenv("MSCHED_PROGRAM")) return fprintf(stderr, "MSCHED_PROGRAM is not set\n"), 77;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products),
      cmocka_unit_test(convolutions),
      cmocka_unit_test(softmaxes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

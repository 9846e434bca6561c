/* For tests of lowering for GPUs: what is lowered is run with threads that are real, and computes what the function
 * does with loops in their order; each of its barriers is needed; its source, compiled for the CPU, computes the same.
 * Include in one file a program, which has sources_compute_the_same_on_the_cpu for its last test. */
#ifndef MSCHED_TEST_KERNELS_H
#define MSCHED_TEST_KERNELS_H

#include "cuda/oracle.h"
#include "script.h"

static const struct tir_run_options real = {.lowered = true};

static bool lower(struct tir *ir, ms_error *err) {
  const struct tir_lower_options options = {.device = TIR_GPU,
                                            .verify = true,
                                            .vector_bits = 128,
                                            .shared_bytes = 65536,
                                            .capabilities = TIR_SET(ASYNC_COPIES)};
  return tir_lower(ir, tir_find_func(ir, "main"), &options, err);
}

static struct tir *lowered_copy(const struct tir *ir) {
  struct tir *lowered = tir_new();
  tir_copy(lowered, ir);
  assert_accepted(lower(lowered, err));
  return lowered;
}

static bool same(const struct tir *ir, const struct tir *lowered, ms_error *err) {
  return tir_equal_results(ir, tir_find_func(ir, "main"), NULL, lowered, tir_find_func(lowered, "main"), &real, 5, err);
}

static bool is_barrier(const struct tir *ir, tir_stmt s) {
  if (!tir_is(ir, s, TIR_EVALUATE)) return false;
  const struct tir_expr_node *n = tir_at(ir, tir_as(ir, s, TIR_EVALUATE)->evaluate.value);
  return n->kind == TIR_CALL && !strcmp(tir_text(ir, n->ref), "tvm_storage_sync");
}

static tir_stmt nth_barrier(const struct tir *ir, uint32_t n) {
  tir_stmt top = ir->funcs.at[tir_find_func(ir, "main")].body;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (is_barrier(ir, s) && n-- == 0) return s;
  return TIR_NONE;
}

/* Without any one of its barriers the function races. */
static void expect_barriers_needed(const struct tir *lowered) {
  struct tir *less = tir_new();
  for (uint32_t n = 0; nth_barrier(lowered, n); n++) {
    ms_error err = {0};
    tir_copy(less, lowered);
    tir_kill(less, nth_barrier(less, n));
    assert_false(same(lowered, less, &err) && same(less, less, &err));
    assert_string_equal(ms_code_name(err.code), ms_code_name(MS_RUN_RACE));
  }
  tir_free(less);
}

/* ---- Sources: compiled together, at the end ---- */

enum { MOST_KEPT = 64 };
static struct {
  struct tir *ir;
  char path[ORACLE_PATH];
} kept[MOST_KEPT];
static uint32_t kept_count;
static char folder[] = "/tmp/kernels.XXXXXX";

/* Takes the module. */
static void keep_source(struct tir *ir, const struct tir *lowered) {
  ms_error err = {0};
  assert_true(kept_count < MOST_KEPT && (kept_count || mkdtemp(folder)));
  char *text = oracle_source(lowered, tir_find_func(lowered, "main"), "kernels", &err);
  if (!text) fail_msg("%s", err.message);
  kept[kept_count].ir = ir;
  oracle_write(folder, kept_count, text, kept[kept_count].path);
  kept_count++;
  free(text);
}

static void sources_compute_the_same_on_the_cpu(void **state) {
  (void)state;
  if (!oracle_compile(folder)) skip();
  for (uint32_t i = 0; i < kept_count; i++) {
    struct oracle w;
    ms_error err = {0};
    char why[ORACLE_TEXT];
    if (!oracle_open(&w, kept[i].ir, tir_find_func(kept[i].ir, "main"), 5, &err)) fail_msg("%s", err.message);
    if (!oracle_agrees(&w, kept[i].path, why)) fail_msg("%s: %s", kept[i].path, why);
    oracle_close(&w);
    tir_free(kept[i].ir);
  }
  char command[64];
  snprintf(command, sizeof command, "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

/* ---- */

static void keep_note(void *data, const char *text) { snprintf(data, 400, "%s", text); }

/* What lowering says that it left out; "": nothing. Takes the module. */
static inline void expect_noted(struct tir *ir, const char *note) {
  char noted[400] = "";
  const struct tir_lower_options options = {.device = TIR_GPU,
                                            .vector_bits = 128,
                                            .shared_bytes = 65536,
                                            .capabilities = TIR_SET(ASYNC_COPIES),
                                            .noted = keep_note,
                                            .data = noted};
  assert_accepted(tir_lower(ir, tir_find_func(ir, "main"), &options, err));
  if (*note ? !strstr(noted, note) : *noted) fail_msg("\"%s\", not \"%s\"", noted, note);
  tir_free(ir);
}

/* Lowered it has so many barriers, each needed, and computes the same; `says` stands in its text. */
static inline void expect_lowered(struct tir *ir, uint32_t barriers, const char *says) {
  struct tir *lowered = lowered_copy(ir);
  uint32_t count = 0;
  while (nth_barrier(lowered, count)) count++;
  char *text = tir_print(lowered, TIR_NONE, TIR_PRINT_FUNCTION);
  ms_error err = {0};
  if (!same(ir, lowered, &err)) fail_msg("%s\n%s", err.message, text);
  if (says && !strstr(text, says)) fail_msg("no \"%s\" in\n%s", says, text);
  if (count != barriers) fail_msg("%u barriers, not %u, in\n%s", count, barriers, text);
  expect_barriers_needed(lowered);
  keep_source(ir, lowered);
  free(text);
  tir_free(lowered);
}

static inline void expect_refused(struct tir *ir, enum ms_code code, const char *says) {
  ms_error err = {0};
  assert_false(lower(ir, &err));
  assert_string_equal(ms_code_name(err.code), ms_code_name(code));
  if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
  tir_free(ir);
}

#define BX(n)  "for bx in T.thread_binding(" #n ", thread=\"blockIdx.x\"):"
#define TX(n)  "    for tx in T.thread_binding(" #n ", thread=\"threadIdx.x\"):"
#define S(n)   "    S = T.alloc_buffer((" #n ",), scope=\"shared\")"
#define A_C    "A: T.Buffer((64,), \"float32\"), C: T.Buffer((64,), \"float32\")"
#define A_C_96 "A: T.Buffer((96,), \"float32\"), C: T.Buffer((96,), \"float32\")"

#endif

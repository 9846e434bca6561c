/* Texts cut or spoiled at any byte go all the way: what is read and passes the verifier is interpreted, lowered and
 * compiled, or refused with a message; what runs to its end computes the same at each stage. */
#include "unit/file.h"

#include "jit/c/emit_c.h"
#include "jit/llvm/emit/emit.h"
#include "jit/llvm/machine.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 20000, MOST_MEMORY = 16 << 20, MOST_COMPILED = 40 };

struct judged {
  uint64_t *hashes; /* of the modules that were judged: each once */
  uint32_t count, capacity;
  uint32_t lowered, refused, ran, compiled;
  struct jit_target target;
};

/* Whether the module is a new one. */
static bool add_module(struct judged *j, const struct tir *ir) {
  uint64_t hash = tir_structural_hash(ir, TIR_NONE);
  for (uint32_t i = 0; i < j->count; i++)
    if (j->hashes[i] == hash) return false;
  if (j->count == j->capacity) {
    j->capacity = j->capacity ? 2 * j->capacity : 256;
    j->hashes = realloc(j->hashes, j->capacity * sizeof *j->hashes);
    assert_non_null(j->hashes);
  }
  j->hashes[j->count++] = hash;
  return true;
}

static void stop(const struct tir *ir, const char *what, const char *why) {
  char *text = tir_print(ir, TIR_NONE, 0);
  fail_msg("%s: %s\n%s", what, why, text);
}

static void check_refusal(struct judged *j, const struct tir *ir, const ms_error *err) {
  if (err->code == MS_OK || !*err->message) stop(ir, "refused", "without a code or a message");
  j->refused++;
}

/* Arguments of the lowered function, whose buffers have one dimension. */
static bool run_flat(const struct tir *lowered, tir_func f, const struct tir_arguments *to, bool jit,
                     const struct jit_target *target, const struct tir *ir, ms_error *err) {
  struct tir_arg args[64];
  const struct tir_run_options options = {.most_steps = 100 * MOST_STEPS, .lowered = true};
  for (uint32_t i = 0; i < to->count; i++) args[i] = to->args[i], args[i].shape = NULL;
  if (jit) return jit_run(ir, f, target, &(struct jit_options){.no_fast_math = true}, to->args, err);
  return tir_run(lowered, f, args, to->count, &options, err);
}

/* The function runs to its end within the limits: then so does what became of it, with the same results. */
static void run(struct judged *j, const struct tir *ir, tir_func f, const struct tir *lowered) {
  ms_error err = {.message = ""};
  struct tir_arguments before, expected, actual;
  struct tir_run_report report = {0};
  const struct tir_run_options options = {.most_steps = MOST_STEPS, .most_memory = MOST_MEMORY, .report = &report};
  if (!tir_make_arguments(ir, f, 1, &before, &err)) return;
  tir_copy_arguments(ir, f, &before, &expected);
  if (expected.count <= 64 && tir_run(ir, f, expected.args, expected.count, &options, &err)) {
    double tolerance = tir_tolerance(ir, f, report.epsilon);
    for (int jit = 0; jit < 2 && (!jit || j->compiled < MOST_COMPILED); jit++) {
      tir_copy_arguments(ir, f, &before, &actual);
      if (!run_flat(lowered, f, &actual, jit, &j->target, ir, &err)) {
        if (jit && err.code == MS_NOT_COMPILABLE)
          check_refusal(j, ir, &err);
        else
          stop(ir, jit ? "compiled" : "lowered", err.message);
      } else if (!tir_same_arguments(ir, f, &expected, &actual, tolerance, &err))
        stop(ir, jit ? "compiled" : "lowered", err.message);
      tir_arguments_free(&actual);
      j->compiled += jit;
    }
    j->ran++;
  }
  tir_arguments_free(&expected);
  tir_arguments_free(&before);
}

static void emit(struct judged *j, const struct tir *ir, const struct tir *lowered, tir_func f) {
  ms_error err = {.message = ""};
  char *text = jit_emit_c(lowered, f, "kernel", &j->target, NULL, NULL, &err), *message = NULL;
  if (!text) check_refusal(j, ir, &err);
  free(text);
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("hostile", context);
  if (!jit_emit(module, lowered, f, "kernel", NULL, &j->target, NULL, &err))
    check_refusal(j, ir, &err);
  else if (LLVMVerifyModule(module, LLVMReturnStatusAction, &message))
    stop(ir, "LLVM's verifier", message);
  LLVMDisposeMessage(message);
  LLVMDisposeModule(module);
  LLVMContextDispose(context);
}

static void judge_function(struct judged *j, const struct tir *ir, tir_func f) {
  ms_error err = {.message = ""}, none = {.message = ""};
  struct tir *lowered = tir_new();
  tir_copy(lowered, ir);
  const struct tir_lower_options options = {.verify = tir_verify(ir, &none)};
  if (tir_lower(lowered, f, &options, &err)) {
    j->lowered++;
    if (!tir_verify_scopes(lowered, &err)) stop(ir, "the verifier, lowered", err.message);
    emit(j, ir, lowered, f);
    run(j, ir, f, lowered);
  } else {
    if (err.code >= MS_VERIFY_STORAGE && err.code <= MS_VERIFY_REGION) stop(ir, "a pass's verifier", err.message);
    check_refusal(j, ir, &err);
  }
  tir_free(lowered);
}

static void judge(struct judged *j, const char *text, size_t length) {
  ms_error err = {.message = ""};
  struct tir *ir = tir_read(text, length, "f.py", &err);
  if (!ir) return;
  if (add_module(j, ir)) {
    if (!tir_verify_scopes(ir, &err))
      check_refusal(j, ir, &err);
    else
      for (tir_func f = 1; f < ir->funcs.count; f++) judge_function(j, ir, f);
  }
  tir_free(ir);
}

/* What is done to a text: each way to cut it, or to spoil it. */
static void cut(struct judged *j, char *text, size_t length) {
  for (size_t at = 0; at <= length; at += EACH) judge(j, text, at);
}

static void spoil(struct judged *j, char *text, size_t length) {
  static const char others[] = {'(', '9', '\n', '"', '0', ' ', '-', ':'};
  for (size_t i = 0; i < length; i += EACH) {
    char was = text[i];
    text[i] = others[i % sizeof others];
    judge(j, text, length);
    text[i] = was;
  }
}

static void start(struct judged *j) {
  ms_error err = {.message = ""};
  *j = (struct judged){0};
  if (!jit_target_parse("x86-64-v3", &j->target, &err)) fail_msg("%s", err.message);
  if (!jit_start_llvm(&err)) fail_msg("%s", err.message);
}

static void finish(struct judged *j) {
  assert_true(j->lowered > 100 && j->refused > 0 && j->ran > 0 && j->compiled > 0);
  free(j->hashes);
}

static void on_file(struct judged *j, const char *name, void (*change)(struct judged *, char *, size_t)) {
  char path[2048];
  snprintf(path, sizeof path, "%s/%s", TEST_ROOT, name);
  char *text = read_file(path, NULL);
  change(j, text, strlen(text));
  free(text);
}

static void on_folder(struct judged *j, const char *folder, void (*change)(struct judged *, char *, size_t)) {
  char inside[1024], path[512];
  snprintf(inside, sizeof inside, "%s/%s", TEST_ROOT, folder);
  struct dirent **entries;
  int count = scandir(inside, &entries, NULL, alphasort);
  assert_true(count > 0);
  for (int i = 0; i < count; i++) {
    size_t length = strlen(entries[i]->d_name);
    snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (length > 3 && !strcmp(entries[i]->d_name + length - 3, ".py")) on_file(j, path, change);
    free(entries[i]);
  }
  free(entries);
}

static const char *const workloads[] = {"../lua/bench/data/workloads/SFM.py", "../lua/bench/data/workloads/GMM_ROW.py",
                                        "../lua/bench/data/workloads/CBR.py", "../lua/bench/data/workloads/T2D.py",
                                        "../lua/bench/data/workloads/NRM.py", "../lua/bench/data/workloads/TBG.py"};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

static void cut_anywhere(void **state) {
  struct judged j;
  (void)state;
  start(&j);
  on_folder(&j, "text", cut);
  on_folder(&j, "text/loose", cut);
  for (int i = 0; i < WORKLOADS; i++) on_file(&j, workloads[i], cut);
  finish(&j);
}

static void spoiled_anywhere(void **state) {
  struct judged j;
  (void)state;
  start(&j);
  on_folder(&j, "text/loose", spoil);
  for (int i = 0; i < WORKLOADS; i++) on_file(&j, workloads[i], spoil);
  finish(&j);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(cut_anywhere), cmocka_unit_test(spoiled_anywhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

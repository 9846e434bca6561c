/* Traces in every form: each is read as JSON and replayed; printed as Lua text, read and replayed; and so in the binary
 * form; every time it is the same module, and what is printed again is the same bytes.
 *
 * usage: round_trips FILE|DIRECTORY…
 *   NAME.case          its trace on its function; "sketch …" and "postprocessed …" are traces too
 *   NAME.json, NAME.jsonl, which has one a line   on the function NAME.py beside it, or in ../workloads
 * What a replay refuses is refused in each form, by the same instruction with the same code. */
#include "support/case.h"
#include "support/lowering.h"
#include "vm/vm.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct totals {
  int traces, refused, failed;
};

struct outcome {
  bool accepted;
  uint64_t hash;
  int instruction;
  enum ms_code code;
  char *script;
};

static struct outcome replay(struct tir *ir, const struct vm_trace *trace) {
  ms_error err = {.instruction = -1};
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace};
  struct vm_schedule *sch = vm_apply(ir, trace, &draws, &err);
  struct outcome out = {.accepted = sch != NULL, .instruction = err.instruction, .code = err.code};
  if (sch) out.hash = tir_structural_hash(sch->ir, TIR_NONE), out.script = tir_print(sch->ir, TIR_NONE, 0);
  vm_schedule_free(sch);
  return out;
}

static bool same_outcome(const struct outcome *a, const struct outcome *b) {
  if (a->accepted != b->accepted) return false;
  if (!a->accepted) return a->instruction == b->instruction && a->code == b->code;
  return a->hash == b->hash && !strcmp(a->script, b->script);
}

static const char *const forms[] = {"JSON", "Lua text", "binary"};
enum { FORMS = 3 };

static void *write_form(const struct vm_trace *trace, int form, size_t *length) {
  if (form == 2) return vm_write_binary(trace, length);
  char *text = form ? vm_write_lua(trace) : vm_write_json(trace);
  *length = strlen(text);
  return text;
}

/* From one form to the next, to the first again. */
static bool go_round(const char *what, struct tir *ir, const struct vm_trace *trace, const struct outcome *expected) {
  ms_error err = {.instruction = -1};
  struct vm_trace *at = vm_trace_copy(trace);
  void *first[FORMS] = {NULL};
  size_t length[FORMS], size;
  const char *why = NULL;
  int form = 0;
  for (int i = 0; i < 2 * FORMS && !why; i++) {
    form = i % FORMS;
    void *bytes = write_form(at, form, &size);
    if (i < FORMS)
      first[form] = bytes, length[form] = size;
    else if (size != length[form] || memcmp(bytes, first[form], size) != 0)
      why = "written differently after a round";
    vm_trace_free(at);
    at = vm_read_trace(bytes, size, &err);
    if (!at) why = err.message;
    if (i >= FORMS) free(bytes);
    struct outcome got = at ? replay(ir, at) : (struct outcome){.accepted = false};
    if (at && !same_outcome(expected, &got)) why = "another module";
    free(got.script);
  }
  for (int i = 0; i < FORMS; i++) free(first[i]);
  vm_trace_free(at);
  if (why) fprintf(stderr, "%s: %s: %s\n", what, forms[form], why);
  return !why;
}

static void run_trace(struct totals *t, const char *what, struct tir *ir, struct section text) {
  ms_error err = {.instruction = -1};
  struct vm_trace *trace = vm_read_trace(text.at, text.length, &err);
  struct outcome expected = {.accepted = false};
  t->traces++;
  if (!trace) {
    fprintf(stderr, "%s: %s\n", what, err.message);
    t->failed++;
    return;
  }
  expected = replay(ir, trace);
  t->refused += !expected.accepted;
  t->failed += !go_round(what, ir, trace, &expected);
  free(expected.script);
  vm_trace_free(trace);
}

static struct tir *read_function(struct totals *t, const char *path, struct section text) {
  ms_error err = {.instruction = -1};
  struct tir *ir = text.at ? tir_read(text.at, text.length, path, &err) : NULL;
  if (ir) return ir;
  fprintf(stderr, "%s: %s\n", path, text.at ? err.message : "there is no function");
  t->failed++;
  return NULL;
}

static bool is_trace_title(const char *title) {
  return !strncmp(title, "trace", 5) || !strncmp(title, "sketch ", 7) || !strncmp(title, "postprocessed ", 14);
}

static void run_case(struct totals *t, const char *path, const char *text) {
  if (lowering_is_case(text)) return; /* it has no trace */
  struct tir *ir = read_function(t, path, case_section(text, "before"));
  for (const char *at = text; ir && at; at = strstr(at + 1, "\n### ")) {
    char title[64] = "", what[4200];
    if (sscanf(at, " ### %63[^\n]", title) != 1 || !is_trace_title(title)) continue;
    snprintf(what, sizeof what, "%s: %s", path, title);
    run_trace(t, what, ir, case_section(text, title));
  }
  tir_free(ir);
}

static bool ends_with(const char *path, const char *suffix) {
  size_t length = strlen(path), size = strlen(suffix);
  return length > size && !strcmp(path + length - size, suffix);
}

static void run_json(struct totals *t, const char *path, const char *text) {
  char function[4096];
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  int folder = (int)(name - path), length = (int)strcspn(name, ".");
  struct stat info;
  snprintf(function, sizeof function, "%.*s%.*s.py", folder, path, length, name);
  if (stat(function, &info))
    snprintf(function, sizeof function, "%.*s../workloads/%.*s.py", folder, path, length, name);
  char *script = case_read_file(function);
  struct tir *ir = read_function(t, function, (struct section){script, script ? strlen(script) : 0});
  bool lines = ends_with(path, ".jsonl");
  for (const char *at = text; ir && *at;) {
    size_t size = lines ? strcspn(at, "\n") : strlen(at);
    run_trace(t, path, ir, (struct section){at, size});
    at += size + (at[size] == '\n');
  }
  tir_free(ir);
  free(script);
}

static void run_file(struct totals *t, const char *path) {
  char *text = case_read_file(path);
  if (!text) {
    fprintf(stderr, "%s: cannot be read\n", path);
    t->failed++;
  } else if (ends_with(path, ".case")) {
    run_case(t, path, text);
  } else {
    run_json(t, path, text);
  }
  free(text);
}

static void run_path(struct totals *t, const char *path) {
  struct stat info;
  struct dirent **entries;
  if (stat(path, &info) || !S_ISDIR(info.st_mode)) {
    run_file(t, path);
    return;
  }
  int count = scandir(path, &entries, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    char inner[4096];
    snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);
    bool folder = *entries[i]->d_name != '.' && !stat(inner, &info) && S_ISDIR(info.st_mode);
    bool lines = ends_with(inner, ".jsonl") && !ends_with(inner, ".records.jsonl");
    if (folder || lines || ends_with(inner, ".case") || ends_with(inner, ".json")) run_path(t, inner);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
}

int main(int argc, char **argv) {
  struct totals t = {0};
  for (int i = 1; i < argc; i++) run_path(&t, argv[i]);
  printf("%d traces, %d of them refused in each form, %d failed\n", t.traces, t.refused, t.failed);
  return t.failed || !t.traces;
}

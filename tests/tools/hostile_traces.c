/* hostile_traces DIRECTORY [STRIDE]: spoils the traces of cases, and applies what is left of them. Each number, string
 * and list of each instruction and decision is replaced by others or left out. What comes of it is a refusal with a
 * message, or a module that the verifier passes. STRIDE: only every so many-th change is tried. */
#include "support/case.h"
#include "vm/vm.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

struct spoiling {
  const char *name;
  struct tir *before;
  json_t *trace;
  uint32_t stride, changes, tried, accepted, failures;
};

static void fail(struct spoiling *s, const char *text, const char *why) {
  printf("%s: %s\n%s\n", s->name, why, text);
  s->failures++;
}

static void apply(struct spoiling *s, const char *text, const struct vm_trace *trace) {
  ms_error err = {.instruction = -1};
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = trace, .seed = 1};
  struct vm_schedule *sch = vm_apply(s->before, trace, &draws, &err);
  if (!sch) {
    if (!*err.message || err.instruction < 0) fail(s, text, "refused without a message and an instruction");
    return;
  }
  s->accepted++;
  if (!vm_verify(trace, sch->ir, &err)) fail(s, text, err.message);
  vm_schedule_free(sch);
}

static void try_trace(struct spoiling *s) {
  if (s->changes++ % s->stride) return;
  char *text = json_dumps(s->trace, JSON_COMPACT);
  ms_error err = {.instruction = -1};
  struct vm_trace *trace = vm_read_trace(text, strlen(text), &err);
  s->tried++;
  if (trace)
    apply(s, text, trace);
  else if (!*err.message)
    fail(s, text, "not read, without a message");
  vm_trace_free(trace);
  free(text);
}

/* Values of every kind, some of them absurd. */
static json_t *other_value(int which) {
  static const int64_t numbers[] = {0, -1, 1, 7, INT32_MAX, (int64_t)INT32_MAX + 1, INT64_MAX, INT64_MIN};
  static const char *const strings[] = {"", "b0", "l1", "v4", "no such thing", "global", "root"};
  enum { NUMBERS = sizeof numbers / sizeof *numbers, STRINGS = sizeof strings / sizeof *strings };
  if (which < NUMBERS) return json_integer(numbers[which]);
  if (which < NUMBERS + STRINGS) return json_string(strings[which - NUMBERS]);
  switch (which - NUMBERS - STRINGS) {
  case 0: return json_null();
  case 1: return json_real(1e300);
  case 2: return json_array();
  case 3: return json_object();
  default: return NULL;
  }
}

static void spoil(struct spoiling *s, json_t *list) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    json_t *kept = json_incref(json_array_get(list, i)), *other;
    if (json_is_array(kept)) spoil(s, kept);
    for (int which = 0; (other = other_value(which)); which++) {
      json_array_set_new(list, i, other);
      try_trace(s);
    }
    json_array_remove(list, i);
    try_trace(s);
    json_array_insert(list, i, kept);
    json_array_insert(list, i, kept); /* twice */
    try_trace(s);
    json_array_remove(list, i);
    json_decref(kept);
  }
}

static void spoil_case(struct spoiling *s, const char *path) {
  char *text = case_read_file(path);
  if (!text) return fail(s, path, "cannot be read");
  struct section before = case_section(text, "before"), trace = case_section(text, "trace");
  ms_error err = {0};
  s->before = before.at && trace.at ? tir_read(before.at, before.length, s->name, &err) : NULL;
  s->trace = s->before ? json_loadb(trace.at, trace.length, 0, NULL) : NULL;
  if (s->trace) spoil(s, s->trace);
  json_decref(s->trace);
  tir_free(s->before);
  free(text);
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "usage: hostile_traces DIRECTORY [STRIDE]\n"), 2;
  struct case_paths paths = case_find(argv[1]);
  struct spoiling s = {.stride = argc > 2 ? (uint32_t)atoi(argv[2]) : 1};
  if (!s.stride) s.stride = 1;
  for (uint32_t i = 0; i < paths.count; i++) spoil_case(&s, s.name = paths.at[i]);
  case_free_paths(&paths);
  printf("%u spoiled traces: %u accepted, %u failures\n", s.tried, s.accepted, s.failures);
  return s.failures || !s.tried;
}

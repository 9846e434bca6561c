/* Traces changed as traces: a mutator for libFuzzer. */
#include "fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

struct mutation {
  struct vm_stream random;
  json_t *root;
  json_t *lists[512]; /* the lists in it, the first ones */
  uint32_t count;
};

static void find_lists(struct mutation *m, json_t *j) {
  size_t i;
  json_t *item;
  if (!json_is_array(j) || m->count == sizeof m->lists / sizeof *m->lists) return;
  m->lists[m->count++] = j;
  json_array_foreach(j, i, item) { find_lists(m, item); }
}

static json_t *list_of(struct mutation *m) { return m->lists[vm_stream_below(&m->random, m->count)]; }

static json_t *new_value(struct mutation *m) {
  static const int64_t numbers[] = {0, -1, 1, 2, 3, 4, 7, 8, 16, 64, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  static const char *const strings[] = {"",
                                        "None",
                                        "global",
                                        "shared",
                                        "local",
                                        "threadIdx.x",
                                        "read",
                                        "float16",
                                        "main",
                                        "lambda i, j: (j, i // 4, i % 4)",
                                        "v3 * v4 <= 64 and not v3 == 1"};
  char name[16];
  switch (vm_stream_below(&m->random, 6)) {
  case 0: return json_string(strings[vm_stream_below(&m->random, sizeof strings / sizeof *strings)]);
  case 1: return vm_stream_below(&m->random, 2) ? json_real(0.5) : json_boolean(vm_stream_below(&m->random, 2));
  case 2: return vm_stream_below(&m->random, 2) ? json_array() : json_null();
  case 3: return json_integer(numbers[vm_stream_below(&m->random, sizeof numbers / sizeof *numbers)]);
  default:
    snprintf(name, sizeof name, "%c%u", "blv"[vm_stream_below(&m->random, 3)], vm_stream_below(&m->random, 24));
    return json_string(name);
  }
}

/* An instruction of any kind, with operands that may fit. */
static json_t *new_instruction(struct mutation *m) {
  enum vm_kind kind = vm_stream_below(&m->random, VM_KIND_COUNT);
  const struct vm_signature *sig = vm_signature_of(kind);
  json_t *columns[2] = {json_array(), json_array()}, *outputs = json_array();
  for (uint32_t p = 0; p < (uint32_t)sig->inputs + sig->attrs; p++)
    json_array_append_new(columns[p >= sig->inputs], new_value(m));
  for (uint32_t o = sig->outputs ? vm_stream_below(&m->random, 3) + !sig->output.repeat : 0; o; o--) {
    char name[24];
    snprintf(name, sizeof name, "n%u", vm_stream_below(&m->random, 1 << 30));
    json_array_append_new(outputs, json_string(name));
  }
  return json_pack("[s, o, o, o]", vm_kind_info(kind)->name, columns[0], columns[1], outputs);
}

static json_t *kind_name(struct mutation *m) {
  return json_string(vm_kind_info(vm_stream_below(&m->random, VM_KIND_COUNT))->name);
}

static void change(struct mutation *m) {
  json_t *list = list_of(m), *other = list_of(m), *item;
  size_t size = json_array_size(list), place = size ? vm_stream_below(&m->random, (uint32_t)size) : 0;
  switch (vm_stream_below(&m->random, 8)) {
  case 0: json_array_remove(list, place); break;
  case 1: json_array_insert_new(list, place, new_value(m)); break;
  case 2:
    if (size) json_array_insert_new(list, place, json_deep_copy(json_array_get(list, place)));
    break;
  case 3:
    item = json_array_get(other, vm_stream_below(&m->random, (uint32_t)json_array_size(other) + 1));
    if (item && size) json_array_set_new(list, place, json_deep_copy(item));
    break;
  case 4:
    list = json_array_get(m->root, 0);
    if (json_is_array(list))
      json_array_insert_new(list, vm_stream_below(&m->random, (uint32_t)json_array_size(list) + 1), new_instruction(m));
    break;
  case 5:
    list = json_array_get(json_array_get(m->root, 0), place);
    if (json_is_array(list) && json_array_size(list)) json_array_set_new(list, 0, kind_name(m));
    break;
  default:
    if (size) json_array_set_new(list, place, new_value(m));
  }
}

static char *mutate_json(const char *text, size_t size, unsigned seed) {
  struct mutation m = {.random = vm_stream_of(seed, 0, 0, 0), .root = json_loadb(text, size, 0, NULL)};
  char *out = NULL;
  if (m.root) {
    for (uint32_t times = 1 + vm_stream_below(&m.random, 3); times; times--) {
      m.count = 0;
      find_lists(&m, m.root);
      if (m.count) change(&m);
    }
    out = json_dumps(m.root, JSON_COMPACT);
  }
  json_decref(m.root);
  return out;
}

/* By way of JSON; NULL: what is there is no trace, or what came of it is none. */
static void *mutate_trace(enum fuzz_form form, const uint8_t *data, size_t size, unsigned seed, size_t *length) {
  struct vm_trace *trace =
      form == FUZZ_LUA ? vm_read_lua((const char *)data, size, NULL) : vm_read_binary(data, size, NULL);
  char *json = trace ? vm_write_json(trace) : NULL, *changed = json ? mutate_json(json, strlen(json), seed) : NULL;
  struct vm_trace *after = changed ? vm_read_json(changed, strlen(changed), NULL) : NULL;
  void *out = NULL;
  if (after && form == FUZZ_LUA) out = vm_write_lua(after), *length = strlen(out);
  if (after && form == FUZZ_BINARY) out = vm_write_binary(after, length);
  vm_trace_free(after);
  vm_trace_free(trace);
  free(json);
  free(changed);
  return out;
}

size_t fuzz_mutate(enum fuzz_form form, uint8_t *data, size_t size, size_t most, unsigned seed) {
  size_t length = 0;
  void *out = NULL;
  if (seed % 4) {
    out =
        form == FUZZ_JSON ? mutate_json((const char *)data, size, seed) : mutate_trace(form, data, size, seed, &length);
    if (out && form == FUZZ_JSON) length = strlen(out);
  }
  bool fits = out && length <= most;
  if (fits) memcpy(data, out, length);
  free(out);
  return fits ? length : LLVMFuzzerMutate(data, size, most);
}

/* Any bytes as a module in TVM's graph of nodes, alone or as a line of its workloads: it is refused with a reason, or
 * gives a module that the verifier passes, and that reads back as equal from its TVMScript, and from its graph. */
#include "db/db.h"
#include "support/fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

/* ---- Mutation: fields and items refer to other nodes, nodes become others' ---- */

static json_t *other_value(struct vm_stream *random, json_t *nodes) {
  static const int64_t numbers[] = {-1, 0, 1, 2, 3, 4, 64, INT32_MAX, INT64_MIN};
  switch (vm_stream_below(random, 8)) {
  case 0: return json_integer(numbers[vm_stream_below(random, sizeof numbers / sizeof *numbers)]);
  case 1: return vm_stream_below(random, 2) ? json_string("float32x4") : json_real(1e300);
  default: return json_integer(vm_stream_below(random, (uint32_t)json_array_size(nodes)));
  }
}

static void change(struct vm_stream *random, json_t *nodes) {
  uint32_t count = (uint32_t)json_array_size(nodes);
  json_t *node = json_array_get(nodes, vm_stream_below(random, count));
  json_t *other = json_array_get(nodes, vm_stream_below(random, count)), *data = json_object_get(node, "data");
  size_t size = json_is_array(data) ? json_array_size(data) : json_object_size(data);
  size_t at = size ? vm_stream_below(random, (uint32_t)size) : 0;
  if (!vm_stream_below(random, 8)) {
    json_object_set(node, vm_stream_below(random, 2) ? "type" : "data", json_object_get(other, "data"));
  } else if (json_is_array(data) && (!size || !vm_stream_below(random, 4))) {
    json_array_insert_new(data, at, other_value(random, nodes));
  } else if (json_is_array(data) && !vm_stream_below(random, 3)) {
    json_array_remove(data, at);
  } else if (json_is_array(data)) {
    json_array_set_new(data, at, other_value(random, nodes));
  } else if (json_is_object(data)) {
    void *field = json_object_iter(data);
    for (; at && field; at--) field = json_object_iter_next(data, field);
    if (field) json_object_iter_set_new(data, field, other_value(random, nodes));
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
  struct vm_stream random = vm_stream_of(seed, 0, 0, 0);
  json_t *root = seed % 8 ? json_loadb((const char *)data, size, 0, NULL) : NULL;
  json_t *nodes = json_object_get(root, "nodes");
  char *text = NULL;
  for (uint32_t i = json_array_size(nodes) ? 1 + vm_stream_below(&random, 4) : 0; i; i--) {
    change(&random, nodes);
    text = i == 1 ? json_dumps(root, JSON_COMPACT) : NULL;
  }
  json_decref(root);
  size_t length = text ? strlen(text) : most + 1;
  if (length <= most) memcpy(data, text, length);
  free(text);
  return length <= most ? length : LLVMFuzzerMutate(data, size, most);
}

/* ---- Judgement ---- */

static void judge_written(const struct tir *ir) {
  ms_error err = {0};
  char why[400] = "";
  tir_func f = tir_find_func(ir, "main");
  if (ir->funcs.count != 2 || strcmp(tir_text(ir, ir->funcs.at[f].name), "main") != 0) return;
  char *text = vm_write_module_graph(ir, f, &err);
  if (!text) return fuzz_check_refusal(&err);
  struct tir *again = vm_read_module_graph(text, strlen(text), &err);
  if (!again) fuzz_stop(text, err.message);
  if (!tir_structural_equal(ir, TIR_NONE, again, TIR_NONE, why, sizeof why)) fuzz_stop(text, why);
  tir_free(again);
  free(text);
}

static void judge(const struct tir *ir) {
  ms_error err = {0};
  char why[400] = "";
  if (!tir_verify_scopes(ir, &err)) fuzz_stop("scopes", err.message);
  char *text = tir_print(ir, TIR_NONE, 0);
  struct tir *again = tir_read(text, strlen(text), "printed", &err);
  if (!again) fuzz_stop(text, err.message);
  if (!tir_structural_equal(ir, TIR_NONE, again, TIR_NONE, why, sizeof why)) fuzz_stop(text, why);
  tir_free(again);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ms_error err = {0};
  bool line = size && *data == '[';
  struct tir *ir =
      line ? db_read_workload((const char *)data, size, &err) : vm_read_module_graph((const char *)data, size, &err);
  if (!ir) {
    fuzz_check_refusal(&err);
    return 0;
  }
  judge(ir);
  judge_written(ir);
  tir_free(ir);
  return 0;
}

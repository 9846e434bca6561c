/* Modules from TVM's graphs of nodes: each spoiled reference and value is refused by node and field, or gives a module
 * that is sound; what refers to itself, is nested without end or stands for too much is refused. */
#include "support/case.h"
#include "unit/file.h"
#include "vm/vm.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *load(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/tvm/graphs/%s.json", TEST_ROOT, name);
  json_t *graph = json_load_file(path, 0, NULL);
  assert_non_null(graph);
  return graph;
}

static struct tir *read_json(const json_t *graph, ms_error *err) {
  char *text = json_dumps(graph, JSON_COMPACT);
  *err = (ms_error){.instruction = -1};
  struct tir *ir = vm_read_module_graph(text, strlen(text), err);
  free(text);
  return ir;
}

static void judge(const json_t *graph) {
  ms_error err;
  char why[400] = "";
  struct tir *ir = read_json(graph, &err);
  if (!ir) {
    assert_true(err.code != MS_OK && err.message[0]);
    return;
  }
  char *text = tir_print(ir, TIR_NONE, 0);
  struct tir *again = tir_read(text, strlen(text), "printed", &err);
  if (!again) fail_msg("%s\n%s", err.message, text);
  if (!tir_structural_equal(ir, TIR_NONE, again, TIR_NONE, why, sizeof why)) fail_msg("%s\n%s", why, text);
  tir_free(again);
  tir_free(ir);
  free(text);
}

/* A node's field or item, and what it is replaced by: nothing, no node, itself, another node, absurd numbers, a text.
 */
static void spoil(json_t *graph, json_int_t node, json_t *data, const char *key, size_t item) {
  json_t *old = json_incref(key ? json_object_get(data, key) : json_array_get(data, item));
  json_t *values[] = {json_null(),
                      json_integer(0),
                      json_integer(-1),
                      json_integer(node),
                      json_integer(node / 2),
                      json_integer(INT64_MAX),
                      json_string("int64x4"),
                      json_real(1e300)};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    if ((i + (size_t)node) % EACH) {
      json_decref(values[i]);
      continue;
    }
    if (key)
      json_object_set_new(data, key, values[i]);
    else
      json_array_set_new(data, item, values[i]);
    judge(graph);
  }
  if (key)
    json_object_set_new(data, key, old);
  else
    json_array_set_new(data, item, old);
}

static void is_spoiled(void **state) {
  static const char *const names[] = {"let_expression", "threads", "intrinsic", "quoted_shapes"};
  (void)state;
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    json_t *graph = load(names[n]), *nodes = json_object_get(graph, "nodes"), *node;
    size_t i;
    json_array_foreach(nodes, i, node) {
      json_t *data = json_object_get(node, "data");
      const char *type = json_string_value(json_object_get(node, "type"));
      if (!strncmp(type, "relax.", 6) || !strcmp(type, "ir.Span")) continue; /* which are not looked at */
      for (size_t item = 0; item < json_array_size(data); item++) spoil(graph, (json_int_t)i, data, NULL, item);
      const char *keys[24];
      size_t count = 0;
      for (void *at = json_object_iter(data); at && count < 24; at = json_object_iter_next(data, at))
        keys[count++] = json_object_iter_key(at);
      for (size_t k = 0; k < count; k++) spoil(graph, (json_int_t)i, data, keys[k], 0);
    }
    json_decref(graph);
  }
}

static void expect(const json_t *graph, const char *words) {
  ms_error err;
  struct tir *ir = read_json(graph, &err);
  if (ir || !strstr(err.message, words)) fail_msg("no \"%s\" in: %s", words, ir ? "(accepted)" : err.message);
  assert_int_equal(err.code, MS_BAD_GRAPH);
}

/* The number of the last node of a type. */
static json_int_t find(const json_t *graph, const char *type) {
  const json_t *nodes = json_object_get(graph, "nodes");
  size_t i = json_array_size(nodes);
  while (i-- > 0)
    if (!strcmp(json_string_value(json_object_get(json_array_get(nodes, i), "type")), type)) return (json_int_t)i;
  fail_msg("no %s", type);
  return 0;
}

static json_t *data_of(const json_t *graph, json_int_t node) {
  return json_object_get(json_array_get(json_object_get(graph, "nodes"), (size_t)node), "data");
}

static void expect_field(const char *name, const char *type, const char *field, json_t *value, const char *words) {
  json_t *graph = load(name);
  json_object_set_new(data_of(graph, find(graph, type)), field, value);
  expect(graph, words);
  json_decref(graph);
}

static void is_named(void **state) {
  (void)state;
  expect_field("int64", "tirx.For", "kind", json_integer(7), "For, field kind: there is no such kind of loop");
  expect_field("int64", "tirx.For", "extent", json_integer(0), "For, field extent: it is None");
  expect_field("int64", "tirx.For", "loop_var", json_integer(1), "For, field loop_var: a node Var is expected");
  expect_field("int64", "tirx.For", "body", json_integer(1), "SourceName: this kind of node is no statement");
  expect_field("int64", "tirx.For", "body", json_integer(1 << 30), "For, field body: it refers to no node before it");
  expect_field("int64", "tirx.SBlock", "name_hint", json_null(), "SBlock, field name_hint: it refers to no node");
  expect_field("int64", "tirx.IterVar", "iter_type", json_integer(1), "IterVar, field iter_type: it is neither");
  expect_field("int64", "tirx.BufferStore", "buffer", json_integer(1), "BufferStore, field buffer: a node Var");
  expect_field("int64", "tirx.BufferType", "data_alignment", json_integer(-9), "BufferType: its alignment");
  expect_field("int64", "ir.PrimType", "dtype", json_string("float4_e2m1fn"), "PrimType, field dtype: float4_e2m1fn");
  expect_field("int64", "ir.IntImm", "value", json_string("1"), "IntImm, field value: it is no integer");
  expect_field("int64", "ir.IRModule", "functions", json_integer(1), "IRModule, field functions: a node Map");
  expect_field("scalars", "tirx.SeqStmt", "seq", json_integer(32), "SeqStmt, field seq: it is empty");
  expect_field("scalars", "tirx.Iter", "axis", json_integer(1), "BufferType, field layout: layouts");
}

static void is_no_graph(void **state) {
  static const char *const texts[] = {"",
                                      "{",
                                      "[]",
                                      "7",
                                      "{\"nodes\": []}",
                                      "{\"nodes\": {}, \"root_index\": 0}",
                                      "{\"root\": 1, \"nodes\": []}",
                                      "{\"root_index\": -1, \"nodes\": [{}]}",
                                      "{\"root_index\": 0, \"nodes\": [{}]}",
                                      "{\"root_index\": 0, \"nodes\": [7]}"};
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ms_error err = {.instruction = -1};
    assert_null(vm_read_module_graph(texts[i], strlen(texts[i]), &err));
    assert_int_equal(err.code, MS_BAD_GRAPH);
    assert_true(err.message[0]);
  }
}

/* The last value of the function becomes a sum of the one before with itself, so many times. */
static json_t *doubled(const char *name, int times) {
  json_t *graph = load(name), *nodes = json_object_get(graph, "nodes");
  json_int_t store = find(graph, "tirx.BufferStore");
  json_t *data = data_of(graph, store);
  json_int_t value = json_integer_value(json_object_get(data, "value"));
  json_t *type = json_object_get(data_of(graph, value), "ty");
  json_t *sums = json_array();
  for (int i = 0; i < times; i++) {
    json_int_t of = i ? store + i - 1 : value;
    json_array_append_new(sums, json_pack("{s:s, s:{s:i, s:O, s:I, s:I}}", "type", "tirx.Add", "data", "span", 0, "ty",
                                          type, "a", of, "b", of));
  }
  /* What stood from the store on stands after the sums, and so do references to it. */
  for (size_t i = (size_t)store; i < json_array_size(nodes); i++) {
    json_t *own = json_object_get(json_array_get(nodes, i), "data"), *item;
    const char *key;
    size_t k;
    json_object_foreach(own, key, item) if (json_is_integer(item) && json_integer_value(item) >= store)
        json_integer_set(item, json_integer_value(item) + times);
    json_array_foreach(own, k, item) if (json_is_integer(item) && json_integer_value(item) >= store)
        json_integer_set(item, json_integer_value(item) + times);
  }
  json_object_set_new(data, "value", json_integer(store + times - 1));
  for (int i = 0; i < times; i++) json_array_insert(nodes, (size_t)(store + i), json_array_get(sums, (size_t)i));
  json_decref(sums);
  json_integer_set(json_object_get(graph, "root_index"),
                   json_integer_value(json_object_get(graph, "root_index")) + times);
  return graph;
}

static void is_bounded(void **state) {
  (void)state;
  json_t *graph = doubled("int64", 2);
  ms_error err;
  struct tir *ir = read_json(graph, &err);
  if (!ir) fail_msg("%s", err.message);
  tir_free(ir);
  json_decref(graph);
  graph = doubled("int64", 60);
  expect(graph, "the graph stands for more than");
  json_decref(graph);
  graph = doubled("int64", 300);
  expect(graph, "nested more than 250 levels deep");
  json_decref(graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(is_no_graph), cmocka_unit_test(is_named),
                                     cmocka_unit_test(is_bounded), cmocka_unit_test(is_spoiled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

#define _GNU_SOURCE
/* Traces: reading, writing, and parts of them. */
#include "support/traces.h"

/* JSON -> Lua -> binary -> JSON. */
static void round_trip(const char *text) {
  ms_error err = {0};
  struct vm_trace *first = read_trace(text);
  char *lua = vm_write_lua(first);
  struct vm_trace *second = vm_read_lua(lua, strlen(lua), &err);
  if (!second) fail_msg("%s\n%s", err.message, lua);
  size_t length;
  void *bytes = vm_write_binary(second, &length);
  struct vm_trace *third = vm_read_binary(bytes, length, &err);
  if (!third) fail_msg("%s", err.message);
  expect_json(third, text);
  char *again = vm_write_lua(third);
  assert_string_equal(lua, again);
  free(lua), free(bytes), free(again);
  vm_trace_free(first), vm_trace_free(second), vm_trace_free(third);
}

static const char GEMM[] =
    "[[[\"GetSBlock\",[],[\"Z\",\"main\"],[\"b0\"]],[\"Annotate\",[\"b0\",\"\\\"SSRSRS\\\"\"],[\"tiling\"],[]],"
    "[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\",\"l3\"]],[\"SamplePerfectTile\",[\"l1\"],[2,64],[\"v4\",\"v5\"]],"
    "[\"Split\",[\"l1\",\"v4\",\"v5\"],[true,false],[\"l6\",\"l7\"]],[\"Split\",[\"l2\",\"None\",16],[true,false],["
    "\"l8\",\"l9\"]],"
    "[\"Fuse\",[\"l6\",\"l8\"],[1],[\"l10\"]],[\"CacheWrite\",[\"b0\",[\"b0\"]],[0,\"global\"],[\"b11\"]],"
    "[\"SampleCategorical\",[],[[0,16],[0.25,0.75]],[\"v12\"]],[\"Annotate\",[\"l10\",[\"v12\",1,0.5,true,"
    "\"\\\"a\\\"\"]],[\"k\"],[]],"
    "[\"SampleComputeLocation\",[\"b11\"],[],[\"l13\"]],[\"ComputeAt\",[\"b11\",\"l13\"],[0,-1],[]],[\"EnterPostproc\","
    "[],[],[]]],"
    "[[3,[8,128]],[8,1],[10,-2]]]";

static void test_round_trips(void **state) {
  (void)state;
  round_trip("[[],[]]");
  round_trip(GEMM);
}

/* Older names, fewer attributes, strings without quotes of their own, names of any kind, 1 for true. */
static void test_older_forms(void **state) {
  (void)state;
  struct vm_trace *t =
      read_trace("[[[\"GetBlock\",[],[\"C\"],[\"block\"]],[\"GetLoops\",[\"block\"],[],[\"i\",\"j\"]],"
                 "[\"Split\",[\"i\",null,4],[1],[\"_\",\"_\"]],[\"Annotate\",[\"j\",\"hot\"],[\"note\"],[]],"
                 "[\"CacheRead\",[\"block\"],[0,\"local\"],[\"copy\"]]],[]]");
  expect_json(t, "[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\"]],"
                 "[\"Split\",[\"l1\",\"None\",4],[true,false],[\"l3\",\"l4\"]],[\"Annotate\",[\"l2\",\"\\\"hot\\\"\"],["
                 "\"note\"],[]],"
                 "[\"CacheRead\",[\"b0\",[]],[0,\"local\"],[\"b5\"]]],[]]");
  vm_trace_free(t);
}

/* words: of the message. */
static void refused_with(const char *text, enum ms_code code, int instruction, const char *words) {
  ms_error err = {.instruction = -2};
  struct vm_trace *trace = vm_read_trace(text, strlen(text), &err);
  if (trace) fail_msg("accepted: %s", text);
  if (err.code != code) fail_msg("%s: %s, %s", text, ms_code_name(err.code), err.message);
  if (err.instruction != instruction) fail_msg("%s: instruction %d", text, err.instruction);
  if (!strstr(err.message, words)) fail_msg("%s: no \"%s\" in: %s", text, words, err.message);
}

static void refused(const char *text, enum ms_code code, int instruction) { refused_with(text, code, instruction, ""); }

/* A message names what is wrong, not what is wanted alone. */
static void test_words(void **state) {
  (void)state;
#define BLOCK "[\"GetSBlock\",[],[\"a\"],[\"b0\"]]"
  refused_with(" \n", MS_BAD_TRACE, -1, "nothing in it");
  refused_with("{}", MS_BAD_TRACE, -1, "begins as none");
  refused_with("MSTR\2", MS_BAD_TRACE, -1, "of version 2, and this msched reads version 1");
  refused_with("[0,[[[],[]],null,null,null]]", MS_BAD_TRACE, -1, "a tuning record");
  refused_with("[[" BLOCK "],[[9,1]]]", MS_BAD_TRACE, -1, "instruction 9, and the trace has 1, from 0");
  refused_with("[[" BLOCK "," BLOCK "],[]]", MS_BAD_TRACE, 1, "output \"b0\"");
  refused_with("[[" BLOCK ",[\"SetScope\",[\"b0\"],[4294967296,\"local\"],[]]],[]]", MS_WRONG_OPERAND, 1,
               "4294967296, which does not fit 32 bits");
  refused_with("[[" BLOCK ",[\"TransformBlockLayout\",[\"b0\"],[\"lambda i: (i, k)\"],[]]],[]]", MS_BAD_FORMULA, 1,
               "`k` is neither a parameter nor drawn");
  refused_with("[[" BLOCK ",[\"TransformBlockLayout\",[\"b0\"],[\"lambda i: (f(i),)\"],[]]],[]]", MS_BAD_FORMULA, 1,
               "`f` is no function");
#undef BLOCK
}

static void test_refusals(void **state) {
  (void)state;
  refused("", MS_BAD_TRACE, -1);
  refused("[", MS_BAD_TRACE, -1);
  refused("[[]]", MS_BAD_TRACE, -1);
  refused("[[[1,[],[],[]]],[]]", MS_BAD_TRACE, 0);
  refused("[[[\"Teleport\",[],[],[]]],[]]", MS_UNKNOWN_INSTRUCTION, 0);
  refused("[[[\"GetSBlock\",[],[],[\"b0\"]]],[]]", MS_WRONG_OPERAND, 0);
  refused("[[[\"GetSBlock\",[],[7],[\"b0\"]]],[]]", MS_WRONG_OPERAND, 0);
  refused("[[[\"GetSBlock\",[],[\"a\"],[]]],[]]", MS_WRONG_OPERAND, 0);
  refused("[[[\"GetSBlock\",[],[\"a\"],[\"b0\"]],[\"GetLoops\",[\"b1\"],[],[]]],[]]", MS_WRONG_OPERAND, 1);
  refused("[[[\"GetSBlock\",[],[\"a\"],[\"b0\"]],[\"Parallel\",[\"b0\"],[],[]]],[]]", MS_WRONG_OPERAND, 1);
  refused("[[[\"GetSBlock\",[],[\"a\"],[\"b0\"]],[\"GetSBlock\",[],[\"a\"],[\"b0\"]]],[]]", MS_BAD_TRACE, 1);
  refused("[[[\"GetSBlock\",[],[\"a\"],[\"b0\"]],[\"Annotate\",[\"b0\",\"v9\"],[\"k\"],[]]],[]]", MS_WRONG_OPERAND, 1);
  refused("[[[\"GetSBlock\",[],[\"a\"],[\"b0\"]],[\"CacheRead\",[\"b0\",[1]],[0,\"x\"],[\"b1\"]]],[]]",
          MS_WRONG_OPERAND, 1);
  refused("[[[\"GetSBlock\",[],[\"a\"],[\"b0\"]],[\"CacheRead\",[\"b0\"],[99999999999,\"x\"],[\"b1\"]]],[]]",
          MS_WRONG_OPERAND, 1);
  refused("[[],[[0,1]]]", MS_BAD_TRACE, -1);
  refused("[[[\"EnterPostproc\",[],[],[]]],[[0,1]]]", MS_BAD_TRACE, 0);
  refused("[[[\"SampleCategorical\",[],[[1],[1]],[\"v0\"]]],[[0,\"x\"]]]", MS_BAD_TRACE, 0);
  refused("return function(ms, sch, v) sch:parallel(v.b0) end", MS_BAD_TRACE, 0);
  refused("return function(ms, sch, v) sch:parallel(os) end", MS_BAD_TRACE, 0);
  refused("return function(ms, sch, v) os.exit() end", MS_BAD_TRACE, 0);
  refused("return function(ms, sch, v) sch:nothing() end", MS_UNKNOWN_INSTRUCTION, 0);
  refused("return function(ms, sch, v) sch:enter_postproc() end x", MS_BAD_TRACE, 1);
  refused("return function(ms, sch, v) v.a = sch:get_sblock(\"x\\q\") end", MS_BAD_TRACE, 0);
  refused("return function(ms, sch, v) v.a = sch:get_sblock(\"\\255\") end", MS_BAD_TRACE, 0);
}

/* Any prefix, and any change of one byte, of a binary trace is read or refused. */
static void test_broken_binary(void **state) {
  (void)state;
  struct vm_trace *t = read_trace(GEMM);
  size_t length;
  uint8_t *bytes = vm_write_binary(t, &length);
  for (size_t n = 0; n < length; n++) {
    void *part = malloc(n + 1);
    memcpy(part, bytes, n);
    assert_null(vm_read_binary(part, n, NULL));
    free(part);
  }
  for (size_t n = 0; n < length; n++)
    for (unsigned change = 1; change < 256; change += 37) {
      bytes[n] ^= (uint8_t)change;
      vm_trace_free(vm_read_binary(bytes, length, NULL));
      bytes[n] ^= (uint8_t)change;
    }
  free(bytes);
  vm_trace_free(t);
}

static void test_broken_texts(void **state) {
  (void)state;
  struct vm_trace *t = read_trace(GEMM);
  char *lua = vm_write_lua(t);
  for (size_t n = 0; n < strlen(lua); n++) {
    char *part = malloc(n + 1); /* no 0 follows: a reader must not look for it */
    memcpy(part, lua, n);
    vm_trace_free(vm_read_lua(part, n, NULL));
    memcpy(part, GEMM, n < sizeof GEMM ? n : 0);
    vm_trace_free(vm_read_json(part, n < sizeof GEMM ? n : 0, NULL));
    free(part);
  }
  for (size_t n = 0; lua[n]; n++) {
    char kept = lua[n];
    for (const char *c = "\"{(,\\-1v"; *c; c++) {
      lua[n] = *c;
      vm_trace_free(vm_read_lua(lua, strlen(lua), NULL));
    }
    lua[n] = kept;
  }
  free(lua);
  vm_trace_free(t);
}

static void test_deep_values(void **state) {
  (void)state;
  char text[4096] = "[[[\"GetSBlock\",[],[\"a\"],[\"b0\"]],[\"Annotate\",[\"b0\",", *end = text + strlen(text);
  memset(end, '[', 200), memset(end + 200, ']', 200);
  strcpy(end + 400, "],[\"k\"],[]]],[]]");
  refused(text, MS_BAD_TRACE, 1);
}

/* A look-up or draw stays if what it gives is used, inside lists too; draw ids stay. */
static void test_simplified(void **state) {
  (void)state;
  struct vm_trace *t = read_trace(
      "[[[\"GetSBlock\",[],[\"a\",\"main\"],[\"b0\"]],[\"GetSBlock\",[],[\"b\",\"main\"],[\"b1\"]],"
      "[\"GetSBlock\",[],[\"c\",\"main\"],[\"b2\"]],[\"GetLoops\",[\"b2\"],[],[\"l3\"]],"
      "[\"SampleCategorical\",[],[[1],[1.0]],[\"v4\"]],[\"SampleCategorical\",[],[[1,2],[0.5,0.5]],[\"v5\"]],"
      "[\"CacheRead\",[\"b0\",[\"b1\"]],[0,\"local\"],[\"b6\"]],[\"Annotate\",[\"b0\",[\"v5\"]],[\"k\"],[]],"
      "[\"EnterPostproc\",[],[],[]],[\"Unannotate\",[\"b2\"],[\"k\"],[]]],[[4,0],[5,1]]]");
  struct vm_trace *whole = vm_trace_simplified(t, true), *sketch = vm_trace_simplified(t, false);
  expect_json(
      sketch,
      "[[[\"GetSBlock\",[],[\"a\",\"main\"],[\"b0\"]],[\"GetSBlock\",[],[\"b\",\"main\"],[\"b1\"]],"
      "[\"SampleCategorical\",[],[[1,2],[0.5,0.5]],[\"v2\"]],[\"CacheRead\",[\"b0\",[\"b1\"]],[0,\"local\"],[\"b3\"]],"
      "[\"Annotate\",[\"b0\",[\"v2\"]],[\"k\"],[]]],[[2,1]]]");
  assert_int_equal(whole->steps->count, 8);
  assert_int_equal(sketch->steps->instructions[2].draw, 1);
  assert_int_equal(sketch->steps->next_draw, 2);
  struct vm_trace *head = vm_trace_head(t, 2);
  assert_int_equal(head->steps->count, 2);
  vm_trace_free(head), vm_trace_free(t), vm_trace_free(whole), vm_trace_free(sketch);
}

static void test_decisions(void **state) {
  (void)state;
  struct vm_trace *t = read_trace(GEMM);
  struct vm_trace *copy = vm_trace_copy(t);
  assert_ptr_equal(copy->steps, t->steps);
  vm_forget_decisions(copy);
  assert_int_equal(t->decided[t->steps->instructions[3].decision], VM_DECIDED);
  assert_int_equal(copy->decided[t->steps->instructions[3].decision], VM_OPEN);
  assert_true(vm_decide(copy, 3, (int64_t[]){4, 4}, 2));
  assert_false(vm_decide(copy, 3, (int64_t[]){4, 4, 4}, 3));
  assert_int_equal(copy->decided[t->steps->instructions[3].decision], VM_ILL_FORMED);
  assert_false(vm_decide(copy, 0, (int64_t[]){1}, 1));
  assert_true(vm_trace_is_safe(t));
  vm_trace_free(copy), vm_trace_free(t);
}

/* A layout that is assumed to be injective may change what is computed, unless it plainly is. */
static void test_assumed_layouts(void **state) {
  (void)state;
  static const struct {
    const char *map, *assumed;
    bool safe;
  } layouts[] = {{"i, j: (i // 4, j, i % 4)", "true", true},
                 {"i, j: (i % 4, i // 4, j)", "true", true},
                 {"i, j: (j, i)", "true", true},
                 {"i, j: (i // 4, j, i % 2)", "true", false},
                 {"i, j: (i // 4, j)", "true", false},
                 {"i, j: (i // 4, j, j % 4)", "true", false},
                 {"i, j: (i // 4, i, i % 4)", "true", false},
                 {"i, j: (i * 2 + j,)", "true", false},
                 {"i, j: (i * 2 + j,)", "false", true}};
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
    char text[300];
    snprintf(text, sizeof text,
             "[[[\"GetSBlock\",[],[\"a\"],[\"b0\"]],[\"TransformLayout\",[\"b0\",\"lambda %s\"],[0,1,null,%s],[]]],[]]",
             layouts[i].map, layouts[i].assumed);
    struct vm_trace *t = read_trace(text);
    if (vm_trace_is_safe(t) != layouts[i].safe) fail_msg("%s", text);
    vm_trace_free(t);
  }
}

/* A packed trace, unpacked, says what it said, and needs nothing that it was made of; those that add the same have the
 * same steps. */
static void test_packed(void **state) {
  (void)state;
  struct vm_shared *shared = vm_shared_new();
  struct vm_trace *head = read_trace(GEMM), *other = read_trace("[[],[]]"), *before = vm_trace_copy(other), *longer[2];
  struct vm_packed *packed[4];
  for (int i = 0; i < 2; i++) {
    longer[i] = vm_trace_copy(head);
    assert_true(vm_append(longer[i], VM_EnterPostproc, NULL, 0, NULL, 0, 0, VM_NO_DRAW, NULL));
    assert_true(vm_decide(longer[i], 3, (int64_t[]){64 >> i, 16 << i}, 2));
    packed[i] = vm_pack(shared, longer[i], head);
  }
  packed[2] = vm_pack(shared, head, head);
  packed[3] = vm_pack(shared, head, longer[0]); /* which it does not begin with */
  char *texts[4] = {vm_write_json(longer[0]), vm_write_json(longer[1]), vm_write_json(head), vm_write_json(head)};
  vm_trace_free(longer[0]), vm_trace_free(longer[1]), vm_trace_free(head);
  struct vm_steps *steps[4];
  for (int i = 0; i < 4; i++) {
    struct vm_trace *unpacked = vm_unpack(packed[i]), *again = vm_unpack(packed[i]);
    expect_json(unpacked, texts[i]);
    assert_ptr_equal(again->steps, unpacked->steps);
    steps[i] = unpacked->steps;
    assert_true(vm_append(again, VM_EnterPostproc, NULL, 0, NULL, 0, 0, VM_NO_DRAW, NULL)); /* of its own */
    expect_json(unpacked, texts[i]);
    vm_trace_free(unpacked), vm_trace_free(again), free(texts[i]);
  }
  assert_ptr_equal(steps[0], steps[1]);
  assert_ptr_not_equal(steps[0], steps[2]);
  for (int i = 0; i < 4; i++) vm_packed_free(packed[i]);
  for (int i = 0; i < 3000; i++) { /* more than are kept at a time */
    struct vm_trace *annotated = read_trace("[[[\"GetSBlock\",[],[\"Z\",\"main\"],[\"b0\"]]],[]]");
    struct vm_value value[] = {vm_ref(0), vm_int(i)}, key = vm_string(annotated, "key", 3);
    assert_true(vm_append(annotated, VM_Annotate, value, 2, &key, 1, 0, VM_NO_DRAW, NULL));
    struct vm_packed *made = vm_pack(shared, annotated, i % 2 ? other : before); /* as long as that, but for a number */
    struct vm_trace *unpacked = vm_unpack(made);
    assert_int_equal(unpacked->steps->values[unpacked->steps->instructions[1].values + 1].integer, i);
    vm_trace_free(unpacked), vm_packed_free(made), vm_trace_free(before);
    before = annotated;
  }
  vm_shared_free(shared);
  vm_trace_free(other), vm_trace_free(before);
}

/* Appending to a trace whose steps are shared leaves the others as they are. */
static void test_sharing(void **state) {
  (void)state;
  struct vm_trace *t = read_trace(GEMM), *copy = vm_trace_copy(t);
  uint32_t count = t->steps->count;
  assert_true(vm_append(copy, VM_EnterPostproc, NULL, 0, NULL, 0, 0, VM_NO_DRAW, NULL));
  assert_int_equal(t->steps->count, count);
  assert_int_equal(copy->steps->count, count + 1);
  vm_trace_free(t), vm_trace_free(copy);
}

static void test_table(void **state) {
  (void)state;
  for (int k = 0; k < VM_KIND_COUNT; k++) {
    const struct vm_kind_info *info = vm_kind_info((enum vm_kind)k);
    const struct vm_signature *sig = vm_signature_of((enum vm_kind)k);
    assert_int_equal(vm_find_kind(info->name, strlen(info->name)), k);
    assert_int_equal(vm_find_kind(info->method, sig->method_length), k);
    for (unsigned p = 0; p + 1 < sig->inputs; p++) assert_false(sig->at[p].repeat);
  }
  assert_int_equal(vm_find_kind("GetBlock", 8), VM_GetSBlock);
  static const char *const unknown[] = {"", "GetBloc", "GetBlockX", "getblock", "split ", "nothing", " "};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
    assert_int_equal(vm_find_kind(unknown[i], strlen(unknown[i])), VM_KIND_COUNT);
}

/* Strings of Lua's: escapes between plain bytes; those that do not end, with another quote too, are refused. */
static void test_strings(void **state) {
  (void)state;
  static const struct {
    const char *lua, *value; /* NULL: it is refused */
  } all[] = {{"\"C\"", "C"},         {"''", ""},
             {"\"it's\"", "it's"},   {"'a\\tb\\\\c\\'d\\x41\\066e'", "a\tb\\c'dABe"},
             {"\"a\\\nb\"", "a\nb"}, {"\"C'", NULL},
             {"\"C", NULL},          {"\"C\\", NULL},
             {"\"C\nD\"", NULL},     {"\"a\\qb\"", NULL},
             {"\"\xff\"", NULL},     {"\"a\\255b\"", NULL}};
  struct vm_trace *t = read_trace("[[[\"GetSBlock\",[],[\"@\",\"main\"],[\"b0\"]]],[]]");
  char *lua = vm_write_lua(t), *at = strstr(lua, "\"@\"");
  assert_non_null(at);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    char text[200];
    ms_error err = {0};
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - lua), lua, all[i].lua, at + 3);
    struct vm_trace *read = vm_read_lua(text, strlen(text), &err);
    if (!read != !all[i].value) fail_msg("%s: %s", text, read ? "accepted" : err.message);
    if (!read) continue;
    const struct vm_value *v = &read->steps->values[read->steps->instructions[0].values];
    assert_int_equal(v->count, strlen(all[i].value));
    assert_memory_equal(read->steps->text + v->first, all[i].value, v->count);
    vm_trace_free(read);
  }
  free(lua);
  vm_trace_free(t);
}

/* A text after others is read as by itself, or refused with the same words. */
static void expect_alike(struct vm_lua_reader *reader, const char *text, size_t length) {
  ms_error alone_err = {0}, err = {0};
  struct vm_trace *alone = vm_read_lua(text, length, &alone_err);
  struct vm_trace *read = vm_read_next_lua(reader, text, length, &err);
  if (!alone != !read) fail_msg("%.*s: alone %s, after others %s", (int)length, text, alone_err.message, err.message);
  if (!read) {
    assert_string_equal(err.message, alone_err.message);
    assert_int_equal(err.instruction, alone_err.instruction);
    return;
  }
  size_t alone_bytes, bytes;
  void *expected = vm_write_binary(alone, &alone_bytes), *got = vm_write_next_binary(reader, read, &bytes);
  if (bytes != alone_bytes || memcmp(expected, got, bytes) != 0) fail_msg("another trace: %.*s", (int)length, text);
  free(expected), free(got);
  vm_trace_free(alone), vm_trace_free(read);
}

/* The text with its first `from` replaced. */
static void expect_replaced(struct vm_lua_reader *reader, const char *text, const char *from, const char *to) {
  char *at = strstr(text, from), *made = NULL;
  assert_non_null(at);
  assert_true(asprintf(&made, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
  expect_alike(reader, text, strlen(text));
  expect_alike(reader, made, strlen(made));
  free(made);
}

static void test_alike(void **state) {
  (void)state;
  static const char *const decisions[] = {"{4, 256}",
                                          "{8,128}",
                                          "{ 8, 128}",
                                          "{8, 128 }",
                                          "{8, 128, 1}",
                                          "{8}",
                                          "{}",
                                          "8",
                                          "{-8, -0}",
                                          "{- 8, 1}",
                                          "{999999999999999999, 1}",
                                          "{1000000000000000000, 1}",
                                          "{9223372036854775807, 1}",
                                          "{9223372036854775808, 1}",
                                          "{-9223372036854775808, 1}",
                                          "{8.5, 1}",
                                          "{8e1, 1}",
                                          "{8, nil}",
                                          "{[\"a\"] = 1}",
                                          "\"{8, 128}\"",
                                          "{8, 128}}",
                                          "{8, 128}, decision = {8, 128}",
                                          "{8, 128}, draw = 5",
                                          "{8, --\n128}",
                                          "{8; 128}",
                                          "{00008, 128}",
                                          "{8, 128"};
  struct vm_lua_reader *reader = vm_lua_reader_new();
  struct vm_trace *t = read_trace(GEMM);
  char *lua = vm_write_lua(t);
  for (size_t i = 0; i < sizeof decisions / sizeof *decisions; i++)
    expect_replaced(reader, lua, "{8, 128}", decisions[i]);
  expect_replaced(reader, lua, "decision = 1}", "decision = 0}");
  expect_replaced(reader, lua, "decision = 1}", "decision = 0x1}");
  expect_replaced(reader, lua, "decision = -2}", "decision = {-2}}");
  expect_replaced(reader, lua, "\"tiling\"", "\", {draw = 0, decision = {8, 128}}\"");
  expect_replaced(reader, lua, "\"tiling\"", "\", {draw = 0, decision = {9, 128}}\"");
  expect_replaced(reader, lua, "end\n", "end\n ");
  expect_replaced(reader, lua, "end\n", "end\n1");
  for (size_t i = 0; i < strlen(lua); i++) { /* each byte another, and each end */
    static const char others[] = "0-,.{} \"x";
    char was = lua[i], other = others[i % (sizeof others - 1)];
    expect_alike(reader, lua, i);
    lua[i] = other;
    expect_alike(reader, lua, strlen(lua));
    lua[i] = was;
  }
  free(lua);
  vm_trace_free(t);
  vm_lua_reader_free(reader);
  vm_lua_reader_free(NULL);
}

/* A binary form after others is read as by itself, and written so as Lua, or refused with the same words; and known to
 * be one or none. */
static void expect_alike_binary(struct vm_binary_reader *reader, struct vm_binary_checker *checker,
                                const uint8_t *bytes, size_t length) {
  ms_error alone_err = {0}, err = {0};
  struct vm_trace *alone = vm_read_binary(bytes, length, &alone_err);
  assert_true(vm_check_next_binary(checker, 5, bytes, length) == (alone != NULL));
  assert_true(vm_check_next_binary(checker, length, bytes, length) == (alone != NULL));
  struct vm_trace *read = vm_read_next_binary(reader, bytes, length, &err);
  assert_true(!alone == !read);
  if (!read) {
    assert_string_equal(err.message, alone_err.message);
    assert_int_equal(err.instruction, alone_err.instruction);
    return;
  }
  char *expected = vm_write_lua(alone), *got = vm_write_next_lua(reader, read);
  assert_string_equal(got, expected);
  assert_true(vm_next_is_safe(reader, read) == vm_trace_is_safe(alone));
  size_t alone_bytes, its_bytes;
  void *first = vm_write_binary(alone, &alone_bytes), *second = vm_write_binary(read, &its_bytes);
  assert_true(alone_bytes == its_bytes && !memcmp(first, second, its_bytes));
  free(expected), free(got), free(first), free(second);
  vm_trace_free(alone), vm_trace_free(read);
}

/* Each byte another, behind the sound one, and each end; twenty kinds of steps take each other's places. */
static void test_alike_binary(void **state) {
  (void)state;
  struct vm_binary_reader *reader = vm_binary_reader_new();
  struct vm_binary_checker *checker = vm_binary_checker_new();
  struct vm_trace *t = read_trace(GEMM);
  size_t length;
  uint8_t *bytes = vm_write_binary(t, &length), *part = malloc(length);
  assert_non_null(part);
  for (size_t i = 0; i < length; i++) {
    static const uint8_t others[] = {0, 1, 2, 127, 128, 255};
    expect_alike_binary(reader, checker, bytes, length);
    memcpy(part, bytes, length);
    part[i] = others[i % sizeof others];
    expect_alike_binary(reader, checker, part, length);
    free(part);
    part = malloc(i + 1); /* nothing follows: a reader must not look for it */
    assert_non_null(part);
    memcpy(part, bytes, i);
    expect_alike_binary(reader, checker, part, i);
    free(part);
    part = malloc(length);
    assert_non_null(part);
  }
  for (uint32_t n = 0; n < 2 * t->steps->count; n++) {
    struct vm_trace *head = vm_trace_head(t, n % (t->steps->count + 1));
    size_t its;
    uint8_t *form = vm_write_binary(head, &its);
    expect_alike_binary(reader, checker, form, its);
    free(form);
    vm_trace_free(head);
  }
  free(bytes), free(part);
  vm_trace_free(t);
  vm_binary_reader_free(reader);
  vm_binary_reader_free(NULL);
  vm_binary_checker_free(checker);
  vm_binary_checker_free(NULL);
}

/* Tiles multiply up, keep the limit, and are uniform: 2^3 in two factors, 4 ways. */
static void test_tiles(void **state) {
  (void)state;
  static const int64_t extents[] = {1, 2, 7, 36, 56, 1024, 1000003, 2147483647, 5040, (int64_t)1 << 40};
  for (unsigned e = 0; e < sizeof extents / sizeof *extents; e++)
    for (uint32_t n = 2; n <= 5; n++)
      for (uint32_t draw = 0; draw < 50; draw++) {
        struct vm_stream stream = vm_stream_of(1, 2, draw, 0);
        int64_t tile[5], product = 1;
        vm_draw_tile(&stream, extents[e], n, 64, tile);
        for (uint32_t i = 0; i < n; i++) product *= tile[i];
        assert_true(product == extents[e]);
        assert_true(tile[n - 1] <= 64);
      }
  int ways[4] = {0};
  for (uint32_t draw = 0; draw < 4000; draw++) {
    struct vm_stream stream = vm_stream_of(7, 0, draw, 0);
    int64_t tile[2];
    vm_draw_tile(&stream, 8, 2, 0, tile);
    ways[tile[0] == 1 ? 0 : tile[0] == 2 ? 1 : tile[0] == 4 ? 2 : 3]++;
  }
  for (int i = 0; i < 4; i++) assert_in_range(ways[i], 900, 1100);
  int three = 0; /* 2^2 in three factors: 6 ways */
  for (uint32_t draw = 0; draw < 6000; draw++) {
    struct vm_stream stream = vm_stream_of(8, 0, draw, 0);
    int64_t tile[3];
    vm_draw_tile(&stream, 4, 3, 0, tile);
    three += tile[0] == 2 && tile[2] == 2;
  }
  assert_in_range(three, 900, 1100);
}

/* The divisors are those that trial division finds, and are had at once of any extent. */
static void test_divisors(void **state) {
  (void)state;
  uint32_t count;
  for (int64_t extent = 1; extent < 2000; extent++) {
    int64_t *list = vm_divisors(extent, &count);
    uint32_t at = 0;
    for (int64_t f = 1; f <= extent; f++)
      if (extent % f == 0) assert_true(at < count && list[at++] == f);
    assert_int_equal(at, count);
    free(list);
  }
  static const struct {
    int64_t extent;
    uint32_t count;
  } large[] = {{INT64_C(1) << 62, 63}, {INT64_C(897612484786617600), 103680}, {2147483647, 2}, {INT64_MAX, 96}};
  for (unsigned i = 0; i < sizeof large / sizeof *large; i++) {
    int64_t *list = vm_divisors(large[i].extent, &count);
    assert_int_equal(count, large[i].count);
    for (uint32_t k = 0; k < count; k++)
      assert_true(large[i].extent % list[k] == 0 && (k == 0 ? list[k] == 1 : list[k] > list[k - 1]));
    free(list);
  }
}

/* A stream is a function of its key. */
static void test_streams(void **state) {
  (void)state;
  struct vm_stream a = vm_stream_of(1, 2, 3, 4), b = vm_stream_of(1, 2, 3, 4), c = vm_stream_of(1, 2, 4, 3);
  uint64_t first = vm_stream_next(&a);
  assert_true(first == vm_stream_next(&b));
  assert_true(first != vm_stream_next(&c));
  assert_true(first == 0xad5ce8983f92c5e1u); /* on any machine */
  for (int i = 0; i < 1000; i++) {
    assert_true(vm_stream_below(&a, 7) < 7);
    double unit = vm_stream_unit(&a);
    assert_true(unit >= 0 && unit < 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trips),     cmocka_unit_test(test_older_forms),   cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_words),           cmocka_unit_test(test_broken_binary), cmocka_unit_test(test_broken_texts),
      cmocka_unit_test(test_deep_values),     cmocka_unit_test(test_simplified),    cmocka_unit_test(test_decisions),
      cmocka_unit_test(test_assumed_layouts), cmocka_unit_test(test_sharing),       cmocka_unit_test(test_packed),
      cmocka_unit_test(test_table),           cmocka_unit_test(test_strings),       cmocka_unit_test(test_tiles),
      cmocka_unit_test(test_streams),         cmocka_unit_test(test_divisors),      cmocka_unit_test(test_alike),
      cmocka_unit_test(test_alike_binary),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Pieces of traces: cut out where they stand alone, joined, found again. */
#include "support/traces.h"

#define BLOCK(name, block)          "[\"GetSBlock\",[],[\"" name "\",\"main\"],[\"" block "\"]]"
#define LOOPS(block, loops)         "[\"GetLoops\",[\"" block "\"],[],[" loops "]]"
#define TILE(loop, factors)         "[\"SamplePerfectTile\",[\"" loop "\"],[2,64],[" factors "]]"
#define SPLIT(loop, factors, loops) "[\"Split\",[\"" loop "\"," factors "],[true,false],[" loops "]]"
#define FIRST                                                                                                          \
  BLOCK("A", "b0")                                                                                                     \
  "," LOOPS("b0", "\"l1\"") "," TILE("l1", "\"v2\",\"v3\"") "," SPLIT("l1", "\"v2\",\"v3\"", "\"l4\",\"l5\"")
#define SECOND BLOCK("B", "b6") "," LOOPS("b6", "\"l7\"") "," SPLIT("l7", "\"None\",16", "\"l8\",\"l9\"")
#define ALONE  BLOCK("B", "b0") "," LOOPS("b0", "\"l1\"") "," SPLIT("l1", "\"None\",16", "\"l2\",\"l3\"")

static void test_parts(void **state) {
  (void)state;
  struct vm_trace *whole = read_trace("[[" FIRST "," SECOND "],[[2,[4,8]]]]");
  struct vm_trace *first = vm_trace_part(whole, 0, 4), *second = vm_trace_part(whole, 4, 7);
  expect_json(first, "[[" FIRST "],[[2,[4,8]]]]");
  expect_json(second, "[[" ALONE "],[]]");
  assert_null(vm_trace_part(whole, 5, 7)); /* it takes a block given before */
  struct vm_trace *none = vm_trace_part(whole, 3, 3);
  assert_int_equal(none->steps->count, 0);
  const struct vm_trace *parts[] = {first, none, second, first};
  struct vm_trace *joined = vm_trace_join(parts, 3), *twice = vm_trace_join(parts, 4);
  expect_json(joined, "[[" FIRST "," SECOND "],[[2,[4,8]]]]");
  assert_int_equal(twice->steps->count, 11);
  assert_int_equal(twice->steps->instructions[2].draw, 0);
  assert_int_equal(twice->steps->instructions[9].draw, 1); /* an id of its own */
  assert_true(vm_trace_has_at(twice, 0, whole) && vm_trace_has_at(twice, 7, first) && vm_trace_has_at(twice, 11, none));
  assert_false(vm_trace_has_at(twice, 1, first) || vm_trace_has_at(twice, 8, first) ||
               vm_trace_has_at(whole, 4, first));
  struct vm_trace *all[] = {whole, first, second, none, joined, twice};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) vm_trace_free(all[i]);
}

/* What differs only in an attribute, a variable, a number of outputs. */
static void test_differences(void **state) {
  (void)state;
  struct vm_trace *whole = read_trace("[[" FIRST "],[]]");
  static const char *const others[] = {
      "[[" BLOCK("B", "b0") "],[]]",
      "[[" BLOCK("A", "b0") "," LOOPS("b0", "\"l1\",\"l2\"") "],[]]",
      "[[" BLOCK("A", "b0") "," LOOPS("b0", "\"l1\"") ",[\"SamplePerfectTile\",[\"l1\"],[2,32],[\"v2\",\"v3\"]]],[]]",
      "[[" BLOCK("A", "b0") "," LOOPS("b0", "\"l1\"") "," TILE("l1", "\"v2\",\"v3\"") "," SPLIT(
          "l1", "\"v3\",\"v2\"", "\"l4\",\"l5\"") "],[]]",
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct vm_trace *other = read_trace(others[i]);
    assert_false(vm_trace_has_at(whole, 0, other));
    vm_trace_free(other);
  }
  vm_trace_free(whole);
}

/* A branch is never parted. */
static void test_branches(void **state) {
  (void)state;
  struct vm_trace *whole =
      read_trace("[[[\"SampleCategorical\",[],[[0,1],[0.5,0.5]],[\"v0\"]],[\"If\",[],[\"v0 == 1\"],[]]," BLOCK(
          "A", "b1") ",[\"Else\",[],[],[]]," BLOCK("B", "b2") ",[\"End\",[],[],[]]],[]]");
  uint32_t count = whole->steps->count;
  assert_int_equal(count, 6);
  for (uint32_t first = 0; first <= count; first++)
    for (uint32_t end = first; end <= count; end++) {
      struct vm_trace *part = vm_trace_part(whole, first, end);
      bool parted = (first > 0 && first < 6 && end > first) && !(first == end - 1 && (first == 2 || first == 4));
      bool open = first == 0 && end > 1 && end < 6;
      assert_int_equal(part != NULL, !parted && !open);
      vm_trace_free(part);
    }
  vm_trace_free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_parts), cmocka_unit_test(test_differences),
                                     cmocka_unit_test(test_branches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

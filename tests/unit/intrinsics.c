/* The shipped tensor intrinsics: each can be read, and both of its functions are sound. */
#include "vm/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_shipped(void **state) {
  (void)state;
  char name[64];
  uint32_t count = 0;
  for (; vm_shipped_intrinsic(count, name, sizeof name); count++) {
    struct vm_intrinsics *table = NULL;
    const struct tir *parts[2];
    ms_error err = {0};
    vm_add_shipped_intrinsic(&table, name);
    assert_true(vm_find_intrinsic(table, name, &parts[0], &parts[1]));
    for (int i = 0; i < 2; i++)
      if (!tir_verify(parts[i], &err)) fail_msg("%s: %s", name, err.message);
    vm_intrinsics_free(table);
  }
  assert_true(count >= 14);
}

static void test_unknown(void **state) {
  (void)state;
  struct vm_intrinsics *table = NULL;
  vm_add_shipped_intrinsic(&table, "no_such");
  assert_null(table);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shipped), cmocka_unit_test(test_unknown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

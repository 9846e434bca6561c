/* Memory of Lua states: blocks of every size keep what is in them while they grow and shrink, none lies on another, and
 * what is given back is used again. */
#include "unit/file.h"

#include "lua/bind/state/cells.h"

#include <string.h>

enum { BLOCKS = 64, STEPS = 20000, LARGEST = 3 * 512 };

struct block {
  uint8_t *at, mark;
  size_t size;
};

static void check(const struct block *b) {
  for (size_t i = 0; i < b->size; i++) assert_int_equal(b->at[i], b->mark);
}

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % below;
}

static void blocks_keep_what_is_in_them(void **state) {
  (void)state;
  struct cells cells = {0};
  struct block blocks[BLOCKS] = {0};
  uint32_t random = 1;
  for (uint32_t step = 0; step < STEPS; step++) {
    struct block *b = &blocks[draw(&random, BLOCKS)];
    size_t size = draw(&random, 4) ? draw(&random, LARGEST) : 0, kept = size < b->size ? size : b->size;
    check(b);
    b->at = cells_resize(&cells, b->at, b->size, size);
    assert_true(!b->at == !size);
    b->size = kept;
    check(b);
    b->size = size;
    b->mark = (uint8_t)step;
    if (size) memset(b->at, b->mark, size);
  }
  for (uint32_t i = 0; i < BLOCKS; i++) cells_resize(&cells, blocks[i].at, blocks[i].size, 0);
  cells_clear(&cells);
  assert_null(cells.chunks);
}

static void what_is_given_back_is_used_again(void **state) {
  (void)state;
  struct cells cells = {0};
  void *first = cells_resize(&cells, NULL, 0, 40);
  assert_int_equal((uintptr_t)first % CELL_UNIT, 0);
  cells_resize(&cells, first, 40, 0);
  void *second = cells_resize(&cells, NULL, 0, 33);
  if (CELL_MOST > 0) assert_ptr_equal(first, second); /* blocks of 33 and of 40 bytes take as much */
  cells_resize(&cells, second, 33, 0);
  cells_clear(&cells);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blocks_keep_what_is_in_them),
      cmocka_unit_test(what_is_given_back_is_used_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

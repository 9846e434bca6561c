/* unit NAME: runs a file of unit tests, by its name without folder and suffix. */
#include <stdio.h>
#include <string.h>

#define UNIT(name) int unit_##name(void);
#include "unit_names.def"
#undef UNIT

static const struct {
  const char *name;
  int (*run)(void);
} tests[] = {
#define UNIT(name) {#name, unit_##name},
#include "unit_names.def"
#undef UNIT
};

int main(int argc, char **argv) {
  for (size_t i = 0; argc == 2 && i < sizeof tests / sizeof *tests; i++)
    if (!strcmp(argv[1], tests[i].name)) return tests[i].run();
  fprintf(stderr, "usage: %s NAME; there are\n", argv[0]);
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) fprintf(stderr, "  %s\n", tests[i].name);
  return 2;
}

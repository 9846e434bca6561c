/* Prints what libinject counted: a line `ROLE CALL COUNT ERRNO` for each call that was used. See inject/inject.c.
 * usage: inject_counts STATE */
#include "inject/inject.h"

#include <stdio.h>

int main(int argc, char **argv) {
#define INJECT_ERROR(name, error) error,
  static const char *const errors[] = {INJECT_EACH_CALL(INJECT_ERROR)};
  struct inject_state state;
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file || fread(&state, sizeof state, 1, file) != 1) {
    fprintf(stderr, "usage: inject_counts STATE\n");
    return 2;
  }
  fclose(file);
  for (int role = 0; role < INJECT_ROLES; role++)
    for (int call = 0; call < INJECT_CALLS; call++)
      if (state.used[role][call])
        printf("%s %s %u %s\n", inject_roles[role], inject_calls[call], state.used[role][call], errors[call]);
  return 0;
}

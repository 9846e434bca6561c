/* Runs a candidate and the unscheduled function, both exported as C source, on equal arrays of small whole numbers:
 * every element must agree. Linked with a file that draw.lua writes: the arguments' sizes, and what to call. */
#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *filled(int number, size_t count) {
  float *at = malloc(count * sizeof *at);
  if (!at) abort();
  uint32_t state = 12345 + (uint32_t)number;
  for (size_t i = 0; i < count; i++) {
    state = state * 1664525 + 1013904223;
    at[i] = (float)(state >> 29) - 3;
  }
  return at;
}

static void call(entry *f, void **args, size_t bytes) {
  void *workspace = bytes ? aligned_alloc(64, (bytes + 63) / 64 * 64) : NULL;
  if (bytes && !workspace) abort();
  if (bytes) memset(workspace, 0xff, bytes);
  if (f(args, workspace)) abort();
  free(workspace);
}

int main(void) {
  void *got[MOST_ARGUMENTS], *wanted[MOST_ARGUMENTS];
  for (int i = 0; i < argument_count; i++) {
    got[i] = filled(i, argument_sizes[i]);
    wanted[i] = filled(i, argument_sizes[i]);
  }
  call(candidate, got, candidate_workspace);
  call(unscheduled, wanted, unscheduled_workspace);
  for (int i = 0; i < argument_count; i++) {
    const float *a = got[i], *b = wanted[i];
    double largest = 0;
    for (size_t k = 0; k < argument_sizes[i]; k++) largest = fmax(largest, fabs((double)b[k]));
    for (size_t k = 0; k < argument_sizes[i]; k++)
      if (!(fabs((double)a[k] - b[k]) <= 1e-4 * largest) && !(isnan(a[k]) && isnan(b[k]))) {
        printf("argument %d, element %zu: %g is expected, %g was computed\n", i, k, b[k], a[k]);
        return 1;
      }
  }
  for (int i = 0; i < argument_count; i++) free(got[i]), free(wanted[i]);
  return 0;
}

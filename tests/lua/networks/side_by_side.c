/* A network whose calls run side by side, by one host, by ten threads, and by the child of a fork: FOLDER has x and i,
 * which it takes, and y and s, which it gives, bit for bit; with NEAR, as far as another compiler's roundings go. With
 * NO_FORK there is no child: OpenMP's threads do not live there. */
#include "side.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 10, RUNS = 30 };

static const char *folder;
static struct side *net;
static void *inputs[2], *outputs[2];

static void *read_all(const char *name, size_t bytes) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  void *data = malloc(bytes);
  if (!file || !data || fread(data, 1, bytes, file) != bytes) exit(10);
  fclose(file);
  return data;
}

static int differs(const void *a, const void *b, size_t bytes) {
#ifdef NEAR
  const float *x = a, *y = b;
  for (size_t i = 0; i < bytes / sizeof *x; i++)
    if (!(fabsf(x[i] - y[i]) <= 1e-4f * fmaxf(1, fabsf(y[i])))) return 1;
  return 0;
#else
  return memcmp(a, b, bytes);
#endif
}

/* Gives its argument where a run fails or gives something else, else NULL. */
static void *run(void *number) {
  void *workspace = (size_t)number % 2 ? aligned_alloc(64, (side_WORKSPACE + 63) / 64 * 64) : NULL;
  void *made[2] = {malloc(side_outputs[0].bytes), malloc(side_outputs[1].bytes)};
  int failed = 0;
  for (int i = 0; i < RUNS && !failed; i++) {
    memset(made[0], 0, side_outputs[0].bytes), memset(made[1], 0, side_outputs[1].bytes);
    failed = side_run(net, (const void *const *)inputs, made, workspace);
    for (int k = 0; k < 2; k++) failed = failed || differs(made[k], outputs[k], side_outputs[k].bytes);
  }
  free(made[0]), free(made[1]), free(workspace);
  return failed ? number : NULL;
}

static int run_by_threads(void) {
  pthread_t threads[THREADS];
  int failed = 0;
  for (size_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, run, (void *)(i + 1))) exit(11);
  for (size_t i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    failed = failed || result;
  }
  return failed;
}

static int run_in_child(void) {
#ifdef NO_FORK
  return 0;
#else
  int status;
  pid_t child = fork();
  if (!child) _exit(run((void *)1) ? 1 : 0);
  return child < 0 || waitpid(child, &status, 0) != child || status != 0;
#endif
}

int main(int count, char **arguments) {
  char path[4096];
  if (count != 2) return 9;
  folder = arguments[1];
  snprintf(path, sizeof path, "%s/side.weights", folder);
  net = side_open(path, NULL);
  if (!net) return 8;
  inputs[0] = read_all("x", side_inputs[0].bytes), inputs[1] = read_all("i", side_inputs[1].bytes);
  outputs[0] = read_all("y", side_outputs[0].bytes), outputs[1] = read_all("s", side_outputs[1].bytes);
  if (run((void *)1) || run((void *)2)) return 1;
  if (run_by_threads()) return 2;
  if (run_in_child()) return 3;
  ((int64_t *)inputs[1])[5] = 40; /* out of its range: what ran before changes nothing of that */
  if (side_run(net, (const void *const *)inputs,
               (void *[]){malloc(side_outputs[0].bytes), malloc(side_outputs[1].bytes)}, NULL) != 3)
    return 4;
  side_close(net);
  return 0;
}

/* Two exported networks in one process, each run by ten threads with workspaces of their own, then by ten that open and
 * close networks of their own: networks FOLDER reads one.x and two.x, writes one.y and two.y, and says what opening the
 * wrong files gives. */
#include "one.h"
#include "two.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 10, RUNS = 20 };

static const char *folder;
static _Thread_local char path[4096];
static const char *in_folder(const char *name) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void *read_all(const char *name, size_t bytes) {
  FILE *file = fopen(in_folder(name), "rb");
  void *data = malloc(bytes);
  if (!file || !data || fread(data, 1, bytes, file) != bytes) exit(10);
  fclose(file);
  return data;
}

static struct one *first;
static struct two *second;
static void *x1, *x2, *y1, *y2;

static int run_one(struct one *net, void *workspace) {
  void *y = malloc(one_outputs[0].bytes);
  int status = one_run(net, (const void *[]){x1}, (void *[]){y}, workspace);
  if (!status && memcmp(y, y1, one_outputs[0].bytes)) status = -1;
  free(y);
  return status;
}

static int run_two(struct two *net) {
  void *y = malloc(two_outputs[0].bytes);
  int status = two_run(net, (const void *[]){x2}, (void *[]){y}, NULL);
  if (!status && memcmp(y, y2, two_outputs[0].bytes)) status = -1;
  free(y);
  return status;
}

/* Threads return their number where something fails, else NULL. */
static void *run(void *number) {
  for (int i = 0; i < RUNS; i++) {
    void *workspace = (size_t)number % 2 ? aligned_alloc(64, (one_WORKSPACE + 63) / 64 * 64) : NULL;
    int failed = run_one(first, workspace) || run_two(second);
    free(workspace);
    if (failed) return number;
  }
  return NULL;
}

static void *run_opened(void *number) {
  for (int i = 0; i < RUNS; i++) {
    struct one *net = one_open(in_folder("one.weights"), NULL);
    struct two *other = (size_t)number % 2 ? two_open(in_folder("two.weights"), NULL) : NULL;
    if (!net || run_one(net, NULL) || (other ? run_two(other) : (size_t)number % 2)) return number;
    one_close(net), two_close(other);
  }
  return NULL;
}

static int in_threads(void *(*start)(void *)) {
  pthread_t threads[THREADS];
  int count = 0;
  for (size_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, start, (void *)(i + 1))) return 3;
  for (size_t i = 0; i < THREADS; i++) {
    void *failed;
    pthread_join(threads[i], &failed);
    count += failed != NULL;
  }
  return count ? 4 : 0;
}

static struct one *open_one(const char *constants) {
  const char *why;
  struct one *net = one_open(constants, &why);
  puts(net ? "opened" : why);
  return net;
}

static void put(const char *name, const void *data, size_t bytes) {
  FILE *file = fopen(in_folder(name), "wb");
  if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file)) exit(11);
}

int main(int argc, char **argv) {
  if (argc != 2) return 9;
  folder = argv[1];
  first = open_one(in_folder("one.weights"));
  second = two_open(in_folder("two.weights"), NULL);
  open_one(in_folder("two.weights"));
  open_one(in_folder("damaged"));
  open_one(in_folder("cut"));
  open_one(in_folder("one.h"));
  open_one(in_folder("none"));
  open_one(in_folder("pipe"));
  open_one(NULL);
  if (!first || !second) return 1;
  x1 = read_all("one.x", one_inputs[0].bytes), x2 = read_all("two.x", two_inputs[0].bytes);
  y1 = malloc(one_outputs[0].bytes), y2 = malloc(two_outputs[0].bytes);
  if (one_run(first, (const void *[]){x1}, (void *[]){y1}, NULL) ||
      two_run(second, (const void *[]){x2}, (void *[]){y2}, NULL))
    return 2;
  put("one.y", y1, one_outputs[0].bytes), put("two.y", y2, two_outputs[0].bytes);
  int failed = in_threads(run);
  if (!failed) failed = in_threads(run_opened);
  if (failed) return failed;
  pid_t child = fork(); /* it has none of the threads */
  if (!child) _exit(run((void *)1) ? 5 : 0);
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child || status) return 5;
  one_close(first), two_close(second), one_close(NULL);
  printf("equal\n");
  return 0;
}

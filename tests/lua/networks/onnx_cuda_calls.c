/* What the network of onnx_cuda.lua asks of CUDA's driver, which counts calls (cuda/fake/counting.c) or has one fail.
 * usage: calls counts|fails|closed|devices FOLDER */
#define _GNU_SOURCE
#include "net.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 5, BYTES = 1024, THREADS = 10, ROUNDS = 5, RUNS = 3 };

static float x[1 * 3 * 6 * 6];
static int64_t chosen[] = {4, 0};
static char expected[OUTPUTS][BYTES];

static int run(const struct net *of, char out[OUTPUTS][BYTES]) {
  const void *inputs[] = {x, chosen};
  void *outputs[OUTPUTS];
  for (int i = 0; i < OUTPUTS; i++) outputs[i] = out[i];
  return net_run(of, inputs, outputs, NULL);
}

static void fail(const char *what) {
  puts(what);
  exit(1);
}

static void *driver_symbol(const char *name) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *symbol = library ? dlsym(library, name) : NULL;
  if (!symbol) fail(name);
  return symbol;
}

static struct net *open_net(const char *folder, const char **why) {
  char path[1000];
  snprintf(path, sizeof path, "%s/net.weights", folder);
  return net_open(path, why);
}

static const char *const NAMES[] = {"cuStreamCreate",       "cuGraphInstantiateWithFlags",
                                    "cuModuleLoadData",     "cuMemAlloc_v2",
                                    "cuLaunchKernel",       "cuGraphLaunch",
                                    "cuMemcpyHtoDAsync_v2", "bytes"};
enum { COUNTS = sizeof NAMES / sizeof *NAMES };

static void read_counts(long long out[COUNTS]) {
  long long (*calls)(const char *);
  *(void **)&calls = driver_symbol("driver_calls");
  for (int i = 0; i < COUNTS; i++) out[i] = calls(NAMES[i]);
}

/* What opening asks for, and what a run does. */
static void count(const char *folder) {
  long long opened[COUNTS], ran[COUNTS];
  const char *why;
  struct net *own = open_net(folder, &why);
  if (!own) fail(why);
  read_counts(opened);
  for (int i = 0; i < RUNS; i++)
    if (run(own, expected)) fail(net_error(own));
  read_counts(ran);
  for (int i = 0; i < COUNTS; i++) printf("%s %lld %lld\n", NAMES[i], opened[i], (ran[i] - opened[i]) / RUNS);
  net_close(own);
}

/* What was made before the failure is given back. */
static void check_given_back(void) {
  static const char *const pairs[][2] = {{"cuMemAlloc_v2", "cuMemFree_v2"},
                                         {"cuModuleLoadData", "cuModuleUnload"},
                                         {"cuStreamCreate", "cuStreamDestroy_v2"},
                                         {"cuGraphInstantiateWithFlags", "cuGraphExecDestroy"}};
  long long (*calls)(const char *);
  *(void **)&calls = driver_symbol("driver_calls");
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    bool failed = !strcmp(getenv("FAIL_CALL"), pairs[i][0]);
    if (calls(pairs[i][0]) - failed != calls(pairs[i][1])) fail(pairs[i][1]);
  }
}

static void see_failure(const char *folder) {
  const char *why;
  struct net *own = open_net(folder, &why);
  if (!own) {
    printf("not opened: %s\n", why);
    check_given_back();
    return;
  }
  int result = run(own, expected);
  printf("%d: %s\n", result, result ? net_error(own) : "it runs");
  if (run(own, expected)) fail("it fails again"); /* a call that failed once leaves the network as it was */
  net_close(own);
  check_given_back();
}

static void close_twice(const char *folder) {
  const char *why;
  struct net *first = open_net(folder, &why), *second = open_net(folder, &why);
  if (!first || !second) fail(why);
  net_close(first);
  net_close(first);
  net_close(NULL);
  if (run(first, expected) != 5 || net_start(first, NULL) != 5 || net_error(first)) fail("a closed network runs");
  if (net_input(first, 0) || net_output(first, 0)) fail("a closed network has places");
  if (run(second, expected)) fail("another network is closed too");
  if (!net_input(second, 1) || net_input(second, 2) || net_input(second, -1) || net_output(second, OUTPUTS))
    fail("numbers are not looked at");
  net_close(second);
  puts("closed");
}

static void *run_often(void *of) {
  for (int i = 0; i < ROUNDS; i++) {
    char out[OUTPUTS][BYTES] = {0};
    if (run(of, out) || memcmp(out, expected, sizeof out)) fail("threads are in each other's way");
  }
  return NULL;
}

static void run_in_threads(struct net *const *nets, int count_of_nets) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, run_often, nets[i % count_of_nets])) fail("there is no thread");
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* A network on each of two devices, and ten threads without contexts of their own. */
static void use_devices(const char *folder) {
  int (*push)(void *), (*retain)(void **, int), (*pop)(void **);
  void *context, *popped;
  const char *why;
  *(void **)&push = driver_symbol("cuCtxPushCurrent_v2");
  *(void **)&pop = driver_symbol("cuCtxPopCurrent_v2");
  *(void **)&retain = driver_symbol("cuDevicePrimaryCtxRetain");
  struct net *nets[2] = {open_net(folder, &why)};
  if (!nets[0]) fail(why);
  if (retain(&context, 1) || push(context)) fail("there is no second device");
  if (!(nets[1] = open_net(folder, &why))) fail(why);
  if (pop(&popped) || popped != context) fail("opening leaves another context");
  if (run(nets[0], expected)) fail(net_error(nets[0]));
  run_in_threads(nets, 2);
  for (int i = 0; i < 2; i++) net_close(nets[i]);
  puts("two devices, ten threads");
}

int main(int words, char **word) {
  const char *what = words == 3 ? word[1] : "", *folder = word[words - 1];
  char path[1000];
  snprintf(path, sizeof path, "%s/x", folder);
  FILE *in = fopen(path, "rb");
  if (!in || fread(x, sizeof x, 1, in) != 1) fail("there is no input");
  fclose(in);
  if (!strcmp(what, "counts")) count(folder);
  if (!strcmp(what, "fails")) see_failure(folder);
  if (!strcmp(what, "closed")) close_twice(folder);
  if (!strcmp(what, "devices")) use_devices(folder);
}

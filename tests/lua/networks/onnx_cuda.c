/* Uses the network of onnx_cuda.lua as a library: two threads at once, data that stays on the device, and what it
 * refuses. usage: uses FOLDER */
#include "net.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 5, BYTES = 1024, ROUNDS = 20 };

static const struct net *net;
static float x[1 * 3 * 6 * 6];
static int64_t chosen[] = {4, 0};

struct outputs {
  char at[OUTPUTS][BYTES];
};

static int run(struct outputs *out) {
  const void *inputs[] = {x, chosen};
  void *outputs[OUTPUTS];
  for (int i = 0; i < OUTPUTS; i++) outputs[i] = out->at[i];
  return net_run(net, inputs, outputs, NULL);
}

static void fail(const char *what) {
  puts(what);
  exit(1);
}

static void *run_often(void *expected) {
  for (int i = 0; i < ROUNDS; i++) {
    struct outputs out = {0};
    if (run(&out) || memcmp(&out, expected, sizeof out)) fail("threads are in each other's way");
  }
  return NULL;
}

/* What is sent, started and fetched by the driver's own calls. */
static void run_there(const struct outputs *expected) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *stream = NULL;
  int (*push)(void *), (*retain)(void **, int), (*new_stream)(void **, unsigned), (*synchronize)(void *);
  int (*send)(uint64_t, const void *, size_t), (*fetch)(void *, uint64_t, size_t);
  void *context;
  if (!library) fail("the driver is gone");
  *(void **)&push = dlsym(library, "cuCtxPushCurrent_v2"),
         *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
  *(void **)&new_stream = dlsym(library, "cuStreamCreate"),
         *(void **)&synchronize = dlsym(library, "cuStreamSynchronize");
  *(void **)&send = dlsym(library, "cuMemcpyHtoD_v2"), *(void **)&fetch = dlsym(library, "cuMemcpyDtoH_v2");
  if (retain(&context, 0) || push(context) || new_stream(&stream, 0)) fail("the driver refuses a stream");
  if (send(net_input(net, 0), x, sizeof x) || send(net_input(net, 1), chosen, sizeof chosen))
    fail("inputs have no places");
  if (net_start(net, stream) || synchronize(stream)) fail("it does not start");
  for (int i = 0; i < OUTPUTS; i++) {
    char got[BYTES] = {0};
    if (fetch(got, net_output(net, i), net_outputs[i].bytes) || memcmp(got, expected->at[i], sizeof got))
      fail("it gives something else there");
  }
}

static const char *why_not(const char *folder, const char *file) {
  char path[1000];
  const char *why = "it opens";
  if (file) snprintf(path, sizeof path, "%s/%s", folder, file);
  struct net *other = net_open(file ? path : NULL, &why);
  net_close(other);
  return other ? "opened" : why;
}

static void write_outputs(const char *folder, const struct outputs *out) {
  for (int i = 0; i < OUTPUTS; i++) {
    char path[1000];
    snprintf(path, sizeof path, "%s/library.%s", folder, net_outputs[i].name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(out->at[i], net_outputs[i].bytes, 1, file) != 1 || fclose(file)) fail("cannot be written");
  }
}

int main(int count, char **words) {
  char path[1000];
  const char *why, *folder = words[count - 1];
  static struct outputs first, second;
  snprintf(path, sizeof path, "%s/net.weights", folder);
  net = net_open(path, &why);
  if (!net) fail(why);
  puts("opened");
  puts(why_not(folder, "cut"));
  puts(why_not(folder, NULL));
  snprintf(path, sizeof path, "%s/x", folder);
  FILE *in = fopen(path, "rb");
  if (!in || fread(x, sizeof x, 1, in) != 1) fail("there is no input");
  fclose(in);
  chosen[0] = 5;
  if (run(&first) == 3) puts("an index is out of its range");
  chosen[0] = 4;
  if (run(&first) || net_error(net)) fail("it does not run");
  pthread_t threads[2];
  second = first;
  for (int i = 0; i < 2; i++)
    if (pthread_create(&threads[i], NULL, run_often, &second)) fail("there is no thread");
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  run_there(&first);
  write_outputs(folder, &first);
  net_close((struct net *)net);
  puts("equal");
}

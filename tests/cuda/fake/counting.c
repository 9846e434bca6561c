/* A driver before another, to which it is linked: it counts calls, and has one of them fail. FAIL_CALL, FAIL_AT: the
 * call's name, and which of its calls fails, 1 the first; FAIL_AS: the CUresult, 719 unless said. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct call {
  const char *name;
  atomic_int count;
  void *next;
};
static atomic_llong bytes_sent;

/* Counts a call; its result where it is to fail, else 0. */
static int counted(struct call *call) {
  const char *failing = getenv("FAIL_CALL"), *at = getenv("FAIL_AT"), *as = getenv("FAIL_AS");
  int number = atomic_fetch_add(&call->count, 1) + 1;
  if (!call->next) call->next = dlsym(RTLD_NEXT, call->name);
  if (!call->next) abort();
  return failing && !strcmp(failing, call->name) && number == (at ? atoi(at) : 1) ? as ? atoi(as) : 719 : 0;
}

#define CALLS                                                                                                          \
  CALL(cuDevicePrimaryCtxRetain, (void **a, int b), (a, b))                                                            \
  CALL(cuCtxPushCurrent_v2, (void *a), (a))                                                                            \
  CALL(cuModuleLoadData, (void **a, const void *b), (a, b))                                                            \
  CALL(cuModuleUnload, (void *a), (a))                                                                                 \
  CALL(cuModuleGetFunction, (void **a, void *b, const char *c), (a, b, c))                                             \
  CALL(cuLaunchKernel,                                                                                                 \
       (void *a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g, unsigned h, void *i,          \
        void **j, void **k),                                                                                           \
       (a, b, c, d, e, f, g, h, i, j, k))                                                                              \
  CALL(cuMemAlloc_v2, (uint64_t * a, size_t b), (a, b))                                                                \
  CALL(cuMemFree_v2, (uint64_t a), (a))                                                                                \
  CALL(cuMemsetD8Async, (uint64_t a, unsigned char b, size_t c, void *d), (a, b, c, d))                                \
  CALL(cuMemcpyDtoHAsync_v2, (void *a, uint64_t b, size_t c, void *d), (a, b, c, d))                                   \
  CALL(cuMemcpyDtoDAsync_v2, (uint64_t a, uint64_t b, size_t c, void *d), (a, b, c, d))                                \
  CALL(cuStreamCreate, (void **a, unsigned b), (a, b))                                                                 \
  CALL(cuStreamDestroy_v2, (void *a), (a))                                                                             \
  CALL(cuStreamSynchronize, (void *a), (a))                                                                            \
  CALL(cuStreamBeginCapture_v2, (void *a, int b), (a, b))                                                              \
  CALL(cuStreamEndCapture, (void *a, void **b), (a, b))                                                                \
  CALL(cuGraphInstantiateWithFlags, (void **a, void *b, unsigned long long c), (a, b, c))                              \
  CALL(cuGraphExecDestroy, (void *a), (a))                                                                             \
  CALL(cuGraphLaunch, (void *a, void *b), (a, b))

#define CALL(name, parameters, arguments)                                                                              \
  static struct call call_##name = {#name, 0, NULL};                                                                   \
  int name parameters {                                                                                                \
    int result = counted(&call_##name);                                                                                \
    int(*next) parameters;                                                                                             \
    *(void **)&next = call_##name.next;                                                                                \
    return result ? result : next arguments;                                                                           \
  }
CALLS
#undef CALL

static struct call call_cuMemcpyHtoDAsync_v2 = {"cuMemcpyHtoDAsync_v2", 0, NULL};
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  int result = counted(&call_cuMemcpyHtoDAsync_v2);
  int (*next)(uint64_t, const void *, size_t, void *);
  *(void **)&next = call_cuMemcpyHtoDAsync_v2.next;
  atomic_fetch_add(&bytes_sent, (long long)bytes);
  return result ? result : next(to, from, bytes, stream);
}

/* How often it was called; of "bytes" what was sent. */
long long driver_calls(const char *name) {
#define CALL(name, parameters, arguments) &call_##name,
  struct call *all[] = {CALLS & call_cuMemcpyHtoDAsync_v2};
  if (!strcmp(name, "bytes")) return bytes_sent;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!strcmp(all[i]->name, name)) return all[i]->count;
  abort();
}

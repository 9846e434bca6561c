/* CUDA's driver without a GPU: the entry points that ours uses, on this CPU. Memory is malloc's; kernels are functions of a
 * library, whose path the image says (nvrtc.c makes it), run by fibers. What environment variables say, at any time:
 *   FAKE_CUDA_DEVICES  architectures, as `90 80`; unset: one of 90
 *   FAKE_CUDA_L2       bytes that their cache holds; unset: 50 MiB
 *   FAKE_CUDA_VERSION  the newest CUDA that it knows, as 13000; an image of a newer one is refused
 *   FAKE_CUDA_GONE     a path: when a file is there, no device is
 *   FAKE_CUDA_FAULTS   what becomes of kernels, by the threads of a block, as `64=700 32=hang`: a CUresult, which the
 *                      context keeps from then on; or L and one that the launch alone gives; hang; gone: the file is
 *                      made; or wrong, nan, past (what lies before it), beyond (behind it) and the number of an operand,
 *                      whose buffer is spoiled; `64=+9past1`: the tenth time and later alone. `part=700,hang`: of the kernels that FAKE_CUDA_PART names, by their
 *                      source one of these
 *   FAKE_CUDA_PART     `5 2`: kernels whose source, as a number, leaves 2 by 5
 *   FAKE_CUDA_SKIPPED  kernels whose names begin with one of these words are not run, take their time, and have no faults
 *   FAKE_CUDA_EASY     the part of its time that a kernel takes whose first operand is a buffer that begins with small whole
 *                      numbers, of whatever float, and so what else of their libraries: as a device's clock rises
 *                      where few bits change; unset: 1
 *   FAKE_CUDA_TIMES    milliseconds of a kernel, alike, or for all, as `any=0.01`, from that to ten times it, by its
 *                      source: events follow a clock that these move; unset: 0.01. Twice that
 *                      where the cache was flushed: by filling as much as it holds, which takes a millisecond */
#define _GNU_SOURCE
#include "../fibers.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  SUCCESS,
  INVALID_VALUE,
  OUT_OF_MEMORY,
  NO_DEVICE = 100,
  INVALID_DEVICE,
  INVALID_IMAGE = 200,
  NO_BINARY = 209,
  NOT_FOUND = 500,
  UNKNOWN = 999
};
enum { MOST_THREADS = 1024, MOST_DEVICES = 8 };

static int sticky; /* the context's fault */
static double now; /* milliseconds of the devices' clock */
static int is_cold;

static const char *setting(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value && *value ? value : otherwise;
}

static int l2_bytes(void) { return atoi(setting("FAKE_CUDA_L2", "52428800")); }

static int is_gone(void) {
  const char *path = setting("FAKE_CUDA_GONE", NULL);
  return path && access(path, F_OK) == 0;
}

/* What a list says for a key: the text after `=`; NULL: nothing. */
static const char *said_for(const char *name, const char *key) {
  const char *list = setting(name, "");
  for (const char *word = list; word; word = strchr(word, ' ')) {
    word += strspn(word, " ");
    if (!strncmp(word, key, strlen(key))) return word + strlen(key);
  }
  return NULL;
}

static const char *said_of(const char *name, unsigned threads) {
  char key[24];
  snprintf(key, sizeof key, "%u=", threads);
  return said_for(name, key);
}

/* ---- Devices ---- */

static int devices(int archs[MOST_DEVICES]) {
  const char *at = setting("FAKE_CUDA_DEVICES", "90");
  int count = 0, length;
  while (!is_gone() && count < MOST_DEVICES && sscanf(at, "%d%n", &archs[count], &length) == 1) at += length, count++;
  return count;
}

int cuInit(unsigned flags) {
  int archs[MOST_DEVICES];
  (void)flags;
  return devices(archs) ? SUCCESS : NO_DEVICE;
}
int cuDriverGetVersion(int *version) {
  *version = atoi(setting("FAKE_CUDA_VERSION", "13000"));
  return SUCCESS;
}
int cuDeviceGetCount(int *count) {
  int archs[MOST_DEVICES];
  *count = devices(archs);
  return SUCCESS;
}
int cuDeviceGet(int *device, int ordinal) {
  int archs[MOST_DEVICES];
  *device = ordinal;
  return ordinal < devices(archs) ? SUCCESS : INVALID_DEVICE;
}
int cuDeviceGetName(char *name, int size, int device) {
  int archs[MOST_DEVICES];
  if (device >= devices(archs)) return INVALID_DEVICE;
  snprintf(name, (size_t)size, "Fake %d", archs[device]);
  return SUCCESS;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  int archs[MOST_DEVICES];
  if (device >= devices(archs)) return INVALID_DEVICE;
  switch (attribute) {
  case 13: *value = 1500000; return SUCCESS;
  case 16: *value = 132; return SUCCESS;
  case 38: *value = l2_bytes(); return SUCCESS;
  case 75: *value = archs[device] / 10; return SUCCESS;
  case 76: *value = archs[device] % 10; return SUCCESS;
  case 97: *value = 232448; return SUCCESS;
  default: return INVALID_VALUE;
  }
}
int cuDeviceGetPCIBusId(char *text, int size, int device) {
  int archs[MOST_DEVICES];
  if (device >= devices(archs)) return INVALID_DEVICE;
  snprintf(text, (size_t)size, "0000:0%d:00.0", device);
  return SUCCESS;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = (size_t)80 << 30;
  return SUCCESS;
}

/* ---- Contexts ---- */

int cuDevicePrimaryCtxRetain(void **context, int device) {
  static char contexts[MOST_DEVICES];
  *context = &contexts[device];
  return is_gone() ? NO_DEVICE : SUCCESS;
}
int cuCtxSetCurrent(void *context) { return context ? SUCCESS : INVALID_VALUE; }
int cuCtxSynchronize(void) {
  while (sticky == -1) pause(); /* a kernel that never ends */
  return is_gone() ? UNKNOWN : sticky;
}

/* ---- Memory ---- */

static void *host(uint64_t at) { return (void *)(uintptr_t)at; }

/* What was allocated, as far as is known, for who writes behind it. */
static struct piece {
  char *at;
  size_t bytes;
} pieces[256];
enum { PIECES = sizeof pieces / sizeof *pieces };

static void note_piece(char *at, size_t bytes) {
  for (size_t i = 0; i < PIECES; i++)
    if (!pieces[i].at) {
      pieces[i] = (struct piece){at, bytes};
      return;
    }
}

static char *end_of_piece(const char *in) {
  for (size_t i = 0; i < PIECES; i++)
    if (pieces[i].at && in >= pieces[i].at && in < pieces[i].at + pieces[i].bytes)
      return pieces[i].at + pieces[i].bytes;
  abort();
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes) {
  if (sticky || bytes > (size_t)atoll(setting("FAKE_CUDA_MEMORY", "1000000000")))
    return sticky ? sticky : OUT_OF_MEMORY;
  void *got = aligned_alloc(512, (bytes + 511) & ~(size_t)511);
  *at = (uint64_t)(uintptr_t)got;
  if (got) note_piece(got, bytes);
  return got ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemFree_v2(uint64_t at) {
  for (size_t i = 0; i < PIECES; i++)
    if (pieces[i].at == host(at)) pieces[i] = (struct piece){0};
  free(host(at));
  return sticky;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  memcpy(host(to), from, bytes);
  return cuCtxSynchronize();
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  memcpy(to, host(from), bytes);
  return cuCtxSynchronize();
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
  memcpy(host(to), host(from), bytes);
  return sticky;
}
int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t bytes) {
  bool flushes = bytes >= (size_t)l2_bytes();
  if (!flushes) memset(host(at), byte, bytes);
  if (flushes) is_cold = 1, now += 1;
  return sticky;
}

/* ---- Kernels ---- */

/* As the image's source has it, for each kernel: the library's function NAME_call. */
typedef void kernel_call(const unsigned *extents, void **args, unsigned shared_bytes);

int cuModuleLoadData(void **module, const void *image) {
  int version, length;
  char path[1000];
  if (sticky) return sticky;
  if (sscanf(image, "fake cubin %d %999s%n", &version, path, &length) != 2) return INVALID_IMAGE;
  if (version > atoi(setting("FAKE_CUDA_VERSION", "13000"))) return NO_BINARY;
  *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!*module) fprintf(stderr, "fake driver: %s\n", dlerror());
  return *module ? SUCCESS : INVALID_IMAGE;
}
int cuModuleUnload(void *module) {
  dlclose(module);
  return sticky;
}
static void skip(const unsigned *extents, void **args, unsigned shared_bytes) {
  (void)extents, (void)args, (void)shared_bytes;
}

struct function {
  kernel_call *call;
  uint64_t source;      /* as a number */
  unsigned most_shared; /* bytes that a launch may ask for; 0: as many as it may unasked */
};

int cuModuleGetFunction(void **function, void *module, const char *name) {
  static struct function *all[4096]; /* of this process: a handle for each call and source */
  static size_t count;
  char symbol[300];
  struct function f = {0};
  snprintf(symbol, sizeof symbol, "%s_call", name);
  void *call = dlsym(module, symbol);
  const uint64_t *source = dlsym(module, "fake_source");
  if (!call || !source) return NOT_FOUND;
  memcpy(&f.call, &call, sizeof call);
  f.source = *source;
  for (const char *word = setting("FAKE_CUDA_SKIPPED", ""); *word; word += strspn(word, " ")) {
    size_t length = strcspn(word, " ");
    if (!strncmp(name, word, length)) f.call = skip;
    word += length;
  }
  for (size_t i = 0; i < count; i++)
    if (all[i]->call == f.call && all[i]->source == f.source) return *function = all[i], SUCCESS;
  if (count == sizeof all / sizeof *all || !(all[count] = malloc(sizeof f))) abort();
  *all[count] = f;
  *function = all[count++];
  return SUCCESS;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  enum { MAX_DYNAMIC_SHARED_BYTES = 8 };
  if (!function || attribute != MAX_DYNAMIC_SHARED_BYTES || value < 0 || value > 232448) return INVALID_VALUE;
  ((struct function *)function)->most_shared = (unsigned)value;
  return SUCCESS;
}

static void make_gone(void) {
  int file = open(setting("FAKE_CUDA_GONE", "/dev/null"), O_CREAT | O_WRONLY, 0600);
  if (file >= 0) close(file);
}

/* After the kernel, its buffer: its first element is another number, or none; or what lies before it is written. */
static void spoil(const char *fault, void **args) {
  size_t length = strcspn(fault, "0123456789");
  unsigned char *at = *(unsigned char **)args[atoi(fault + length)];
  if (!strncmp(fault, "wrong", length)) at[2] ^= 0x55;
  if (!strncmp(fault, "nan", length)) memset(at, 0xff, 4);
  if (!strncmp(fault, "past", length)) at[-1] ^= 0x55;
  if (!strncmp(fault, "beyond", length)) end_of_piece((char *)at)[-1] ^= 0x55; /* the guard behind it ends there */
}

/* Gives what the launch does. */
static int fail(const char *fault, void **args) {
  if (*fault == 'L') return atoi(fault + 1);
  if (!strncmp(fault, "hang", 4))
    sticky = -1;
  else if (!strncmp(fault, "gone", 4))
    make_gone();
  else if (*fault >= '0' && *fault <= '9')
    sticky = atoi(fault);
  else
    spoil(fault, args);
  return SUCCESS;
}

/* The fault of a kernel that is one of the part that has some, in a list with commas; NULL: it is not. */
static const char *fault_of_part(uint64_t source) {
  const char *list = said_for("FAKE_CUDA_FAULTS", "part="), *faults[32];
  unsigned of, rest;
  size_t count = 0;
  if (!list || sscanf(setting("FAKE_CUDA_PART", ""), "%u %u", &of, &rest) != 2 || !of || source % of != rest)
    return NULL;
  for (const char *at = list; at && count < sizeof faults / sizeof *faults; at = strpbrk(at, ", ")) {
    if (*at == ' ') break;
    faults[count++] = at += *at == ',';
  }
  return faults[source / of % count];
}

/* Of a kernel, in milliseconds. */
static double time_of(unsigned threads, uint64_t source) {
  const char *own = said_of("FAKE_CUDA_TIMES", threads), *any = said_for("FAKE_CUDA_TIMES", "any=");
  return own ? atof(own) : any ? atof(any) * (1 + (double)(source >> 20 & 0xffff) * 9 / 65536) : 0.01;
}

/* The fault, once that launches it lets pass were made; NULL: not yet. */
static const char *later(const char *fault) {
  static long launches;
  char *end;
  if (!fault || *fault != '+') return fault;
  long passed = strtol(fault + 1, &end, 10);
  return launches++ < passed ? NULL : end;
}

/* What another library does takes time too. */
void fake_cuda_pass(double milliseconds) {
  now += milliseconds * (1 + is_cold);
  is_cold = 0;
}

/* What of its time is taken where data begins so. Small whole numbers leave the last digits of any float 0: here the last six
 * bits of each half of a word. */
double fake_cuda_ease(const void *data) {
  const char *part = setting("FAKE_CUDA_EASY", NULL);
  uint16_t first[4], digits = 0;
  if (!part) return 1;
  memcpy(first, data, sizeof first);
  for (int i = 0; i < 4; i++) digits |= first[i] & 63;
  return digits ? 1 : atof(part);
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **args, void **extra) {
  const unsigned extents[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
  unsigned threads = block_x * block_y * block_z;
  (void)stream, (void)extra;
  if (sticky) return sticky;
  if (!threads || threads > MOST_THREADS) return INVALID_VALUE;
  const struct function *f = function;
  if (shared_bytes > (f->most_shared ? f->most_shared : 48u << 10)) return INVALID_VALUE;
  const char *of_threads = said_of("FAKE_CUDA_FAULTS", threads), *fault = NULL;
  if (f->call != skip) fault = of_threads ? later(of_threads) : fault_of_part(f->source);
  fake_cuda_pass(time_of(threads, f->source) * fake_cuda_ease(*(void **)args[0]));
  if (!fault || *fault > '9') f->call(extents, args, shared_bytes);
  return fault ? fail(fault, args) : SUCCESS;
}

/* ---- Events ---- */

int cuEventCreate(void **event, unsigned flags) {
  (void)flags;
  *event = calloc(1, sizeof(double));
  return sticky;
}
int cuEventRecord(void *event, void *stream) {
  (void)stream;
  *(double *)event = now;
  return sticky > 0 ? sticky : SUCCESS;
}
int cuEventSynchronize(void *event) {
  (void)event;
  return cuCtxSynchronize();
}
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  *milliseconds = (float)(*(double *)end - *(double *)start);
  return sticky;
}
int cuEventDestroy_v2(void *event) {
  free(event);
  return sticky;
}

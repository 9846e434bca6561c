/* CUDA's driver without a GPU: the entry points that ours uses, on this CPU. It refuses what CUDA's documentation says that
 * the driver refuses: calls in a process that did not start it, or of a thread without a context, handles of another
 * context, memory that was not allocated, launches and attributes that no device takes. Memory is malloc's; kernels are functions of a
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
#include <pthread.h>
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
  NOT_INITIALIZED,
  NO_DEVICE = 100,
  INVALID_DEVICE,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT,
  NO_BINARY = 209,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  UNKNOWN = 999
};
enum { MOST_THREADS = 1024, MOST_DEVICES = 8 };

static int sticky; /* the context's fault */
static double now; /* milliseconds of the devices' clock */
static int is_cold;
static pid_t started_by;                  /* the process: a child of its own has to start it again */
static _Thread_local const char *current; /* the thread's context */
static char contexts[MOST_DEVICES];

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
  if (flags) return INVALID_VALUE;
  started_by = getpid();
  return devices(archs) ? SUCCESS : NO_DEVICE;
}
static bool is_started(void) { return started_by == getpid(); }

/* What a call in a context gives before it does anything. */
static int refusal(void) {
  return !is_started() ? NOT_INITIALIZED : !current ? INVALID_CONTEXT : sticky > 0 ? sticky : SUCCESS;
}

/* The most shared memory that a block may have, once it was asked for. Source: CUDA C++ Programming Guide, "Technical
 * Specifications per Compute Capability", less the 1 KiB that is the system's. */
static int most_shared_of(int arch) {
  switch (arch) {
  case 70: return 96 << 10;
  case 75: return 64 << 10;
  case 80:
  case 87: return 163 << 10;
  case 86:
  case 89:
  case 120: return 99 << 10;
  default: return 227 << 10;
  }
}

int cuDriverGetVersion(int *version) {
  *version = atoi(setting("FAKE_CUDA_VERSION", "13000"));
  return SUCCESS;
}
int cuDeviceGetCount(int *count) {
  int archs[MOST_DEVICES];
  *count = devices(archs);
  return is_started() ? SUCCESS : NOT_INITIALIZED;
}
int cuDeviceGet(int *device, int ordinal) {
  int archs[MOST_DEVICES];
  *device = ordinal;
  if (!is_started()) return NOT_INITIALIZED;
  return ordinal >= 0 && ordinal < devices(archs) ? SUCCESS : INVALID_DEVICE;
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
  case 97: *value = most_shared_of(archs[device]); return SUCCESS;
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
  int archs[MOST_DEVICES];
  if (!is_started()) return NOT_INITIALIZED;
  if (is_gone()) return NO_DEVICE;
  if (device < 0 || device >= devices(archs)) return INVALID_DEVICE;
  *context = &contexts[device];
  return SUCCESS;
}
int cuCtxSetCurrent(void *context) {
  if (!is_started()) return NOT_INITIALIZED;
  current = context;
  return SUCCESS;
}
int cuCtxSynchronize(void) {
  while (sticky == -1) pause(); /* a kernel that never ends */
  return is_gone() ? UNKNOWN : refusal();
}

/* ---- Memory ---- */

static void *host(uint64_t at) { return (void *)(uintptr_t)at; }

/* What was allocated. */
static struct piece {
  char *at;
  size_t bytes;
} pieces[4096];
enum { PIECES = sizeof pieces / sizeof *pieces };
static pthread_mutex_t of_pieces = PTHREAD_MUTEX_INITIALIZER;

/* The piece that bytes lie in, all of them; its number, or PIECES: there is none. */
static size_t find_piece(const char *at, size_t bytes) {
  size_t i = 0;
  while (i < PIECES && !(pieces[i].at && at >= pieces[i].at && bytes <= pieces[i].bytes &&
                         (size_t)(at - pieces[i].at) <= pieces[i].bytes - bytes))
    i++;
  return i;
}

static bool note_piece(char *at, size_t bytes) {
  size_t i = 0;
  pthread_mutex_lock(&of_pieces);
  while (i < PIECES && pieces[i].at) i++;
  if (i < PIECES) pieces[i] = (struct piece){at, bytes};
  pthread_mutex_unlock(&of_pieces);
  return i < PIECES;
}

/* Takes a piece that begins there off the list. */
static bool drop_piece(const char *at) {
  size_t i = 0;
  pthread_mutex_lock(&of_pieces);
  while (i < PIECES && pieces[i].at != at) i++;
  if (i < PIECES) pieces[i] = (struct piece){0};
  pthread_mutex_unlock(&of_pieces);
  return i < PIECES;
}

static bool is_allocated(uint64_t at, size_t bytes) {
  pthread_mutex_lock(&of_pieces);
  bool is = find_piece(host(at), bytes) < PIECES;
  pthread_mutex_unlock(&of_pieces);
  return is;
}

static char *end_of_piece(const char *in) {
  size_t i = find_piece(in, 1);
  if (i == PIECES) abort();
  return pieces[i].at + pieces[i].bytes;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes) {
  if (refusal()) return refusal();
  if (!bytes) return INVALID_VALUE;
  if (bytes > (size_t)atoll(setting("FAKE_CUDA_MEMORY", "1000000000"))) return OUT_OF_MEMORY;
  void *got = aligned_alloc(512, (bytes + 511) & ~(size_t)511);
  *at = (uint64_t)(uintptr_t)got;
  if (got && note_piece(got, bytes)) return SUCCESS;
  free(got);
  return OUT_OF_MEMORY;
}
int cuMemFree_v2(uint64_t at) {
  if (refusal()) return refusal();
  if (at && !drop_piece(host(at))) return INVALID_VALUE;
  free(host(at));
  return SUCCESS;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  if (refusal() || !is_allocated(to, bytes)) return refusal() ? refusal() : INVALID_VALUE;
  memcpy(host(to), from, bytes);
  return cuCtxSynchronize();
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  if (refusal() || !is_allocated(from, bytes)) return refusal() ? refusal() : INVALID_VALUE;
  memcpy(to, host(from), bytes);
  return cuCtxSynchronize();
}
int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t bytes) {
  if (refusal() || !is_allocated(to, bytes) || !is_allocated(from, bytes)) return refusal() ? refusal() : INVALID_VALUE;
  memcpy(host(to), host(from), bytes);
  return SUCCESS;
}
int cuMemsetD8_v2(uint64_t at, unsigned char byte, size_t bytes) {
  bool flushes = bytes >= (size_t)l2_bytes();
  if (refusal() || !is_allocated(at, bytes)) return refusal() ? refusal() : INVALID_VALUE;
  if (!flushes) memset(host(at), byte, bytes);
  if (flushes) is_cold = 1, now += 1;
  return SUCCESS;
}

/* ---- Kernels ---- */

/* As the image's source has it, for each kernel: the library's function NAME_call. */
typedef void kernel_call(const unsigned *extents, void **args, unsigned shared_bytes);

int cuModuleLoadData(void **module, const void *image) {
  int version, length;
  char path[1000];
  if (refusal()) return refusal();
  if (sscanf(image, "fake cubin %d %999s%n", &version, path, &length) != 2) return INVALID_IMAGE;
  if (version > atoi(setting("FAKE_CUDA_VERSION", "13000"))) return NO_BINARY;
  *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!*module) fprintf(stderr, "fake driver: %s\n", dlerror());
  return *module ? SUCCESS : INVALID_IMAGE;
}
int cuModuleUnload(void *module) {
  if (refusal()) return refusal();
  dlclose(module);
  return SUCCESS;
}
static void skip(const unsigned *extents, void **args, unsigned shared_bytes) {
  (void)extents, (void)args, (void)shared_bytes;
}

struct function {
  kernel_call *call;
  uint64_t source; /* as a number */
  const char *context;
  unsigned most_shared; /* bytes that a launch may ask for; 0: as many as it may unasked */
};

int cuModuleGetFunction(void **function, void *module, const char *name) {
  static struct function *all[4096]; /* of this process: a handle for each call and source */
  static size_t count;
  char symbol[300];
  struct function f = {0};
  if (refusal()) return refusal();
  snprintf(symbol, sizeof symbol, "%s_call", name);
  void *call = dlsym(module, symbol);
  const uint64_t *source = dlsym(module, "fake_source");
  if (!call || !source) return NOT_FOUND;
  memcpy(&f.call, &call, sizeof call);
  f.source = *source, f.context = current;
  for (const char *word = setting("FAKE_CUDA_SKIPPED", ""); *word; word += strspn(word, " ")) {
    size_t length = strcspn(word, " ");
    if (!strncmp(name, word, length)) f.call = skip;
    word += length;
  }
  for (size_t i = 0; i < count; i++)
    if (all[i]->call == f.call && all[i]->source == f.source && all[i]->context == current)
      return *function = all[i], SUCCESS;
  if (count == sizeof all / sizeof *all || !(all[count] = malloc(sizeof f))) abort();
  *all[count] = f;
  *function = all[count++];
  return SUCCESS;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  enum { MAX_DYNAMIC_SHARED_BYTES = 8 };
  int archs[MOST_DEVICES], count = devices(archs);
  if (refusal()) return refusal();
  if (!function || attribute != MAX_DYNAMIC_SHARED_BYTES || value < 0) return INVALID_VALUE;
  if (current - contexts < count && value > most_shared_of(archs[current - contexts])) return INVALID_VALUE;
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

/* Source: CUDA C++ Programming Guide, the same table. */
static bool takes(const unsigned grid[3], const unsigned block[3]) {
  return grid[0] && grid[1] && grid[2] && grid[0] <= 0x7fffffff && grid[1] <= 65535 && grid[2] <= 65535 && block[0] &&
         block[1] && block[2] && block[0] <= MOST_THREADS && block[1] <= MOST_THREADS && block[2] <= 64 &&
         (uint64_t)block[0] * block[1] * block[2] <= MOST_THREADS;
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
  if (refusal()) return refusal();
  if (sticky) return sticky;
  if (!function || !takes(extents, extents + 3)) return INVALID_VALUE;
  const struct function *f = function;
  if (f->context != current) return INVALID_HANDLE;
  if (shared_bytes > (f->most_shared ? f->most_shared : 48u << 10)) return INVALID_VALUE;
  const char *of_threads = said_of("FAKE_CUDA_FAULTS", threads), *fault = NULL;
  if (f->call != skip) fault = of_threads ? later(of_threads) : fault_of_part(f->source);
  fake_cuda_pass(time_of(threads, f->source) * fake_cuda_ease(*(void **)args[0]));
  if (!fault || *fault > '9') f->call(extents, args, shared_bytes);
  return fault ? fail(fault, args) : SUCCESS;
}

/* ---- Events ---- */

struct event {
  const char *context;
  bool recorded;
  double at; /* milliseconds */
};

int cuEventCreate(void **event, unsigned flags) {
  if (refusal() || flags) return refusal() ? refusal() : INVALID_VALUE;
  struct event *e = calloc(1, sizeof *e);
  if (!e) abort();
  e->context = current;
  *event = e;
  return SUCCESS;
}
int cuEventRecord(void *event, void *stream) {
  struct event *e = event;
  (void)stream;
  if (refusal() || !e || e->context != current) return refusal() ? refusal() : INVALID_HANDLE;
  e->at = now, e->recorded = true;
  return SUCCESS;
}
int cuEventSynchronize(void *event) { return event ? cuCtxSynchronize() : INVALID_HANDLE; }
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  const struct event *from = start, *to = end;
  if (refusal()) return refusal();
  if (!from || !to || !from->recorded || !to->recorded || from->context != to->context) return INVALID_HANDLE;
  *milliseconds = (float)(to->at - from->at);
  return SUCCESS;
}
int cuEventDestroy_v2(void *event) {
  if (!event) return INVALID_HANDLE;
  free(event);
  return refusal();
}

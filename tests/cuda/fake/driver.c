/* CUDA's driver without a GPU: the entry points that ours uses, on this CPU. It refuses what CUDA's documentation says
 * that the driver refuses: calls in a process that did not start it, or of a thread without a context, handles of
 * another context, memory that was not allocated, launches and attributes that no device takes. Memory is malloc's;
 * kernels are functions of a library, whose path the image says (nvrtc.c makes it), run by fibers. What environment
 * variables say, at any time:
 *   FAKE_CUDA_DEVICES  architectures, as `90 80`; unset: one of 90
 *   FAKE_CUDA_L2       bytes that their cache holds; unset: 50 MiB
 *   FAKE_CUDA_VERSION  the newest CUDA that it knows, as 13000; an image of a newer one is refused
 *   FAKE_CUDA_GONE     a path: when a file is there, no device is
 *   FAKE_CUDA_FAULTS   what becomes of kernels, by the threads of a block, as `64=700 32=hang`: a CUresult, which the
 *                      context keeps from then on; or L and one that the launch alone gives; hang; gone: the file is
 *                      made; or wrong, nan, past (what lies before it), beyond (behind it) and the number of an
 *                      operand, whose buffer is spoiled; `64=+9past1`: the tenth time and later alone. `part=700,hang`:
 *                      of the kernels that FAKE_CUDA_PART names, by their source one of these
 *   FAKE_CUDA_CLUSTERS blocks of the largest cluster that it launches; unset: 8
 *   FAKE_CUDA_PART     `5 2`: kernels whose source, as a number, leaves 2 by 5
 *   FAKE_CUDA_MEMORY   bytes that all allocations of a process have at most; unset: 80 GiB, and 1 GB each
 *   FAKE_CUDA_SKIPPED  kernels whose names begin with one of these words are not run, take their time, and have no
 *                      faults
 *   FAKE_CUDA_EASY     the part of its time that a kernel takes whose first operand is a buffer that begins with small
 *                      whole numbers, of whatever float, and so what else of their libraries: as a device's clock rises
 *                      where few bits change; unset: 1
 *   FAKE_CUDA_CLOCK    megahertz of their processors, as `1500`; or, as `1980 1500 3`, another from the third
 *                      millisecond on that kernels take: those take longer by as much. Unset: 1500
 *   FAKE_CUDA_CAPTURE  what becomes of graphs: `none`, capturing is refused; `spoiled`, it is spoiled at the end;
 *                      `instance`, none is instantiated
 *   FAKE_CUDA_TRACE    a file in which each stretch of kernels between two events is noted: process, when it began and
 *                      ended in nanoseconds of the machine's clock
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
#include <time.h>
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
  CAPTURE_UNSUPPORTED = 900,
  INVALID_CLUSTER_SIZE = 912,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_UNMATCHED = 903,
  CAPTURE_IMPLICIT = 906,
  UNKNOWN = 999
};
enum { MOST_THREADS = 1024, MOST_DEVICES = 8, MOST_ARGS = 256 };

static int sticky;      /* the context's fault */
static double now;      /* milliseconds of the devices' clock */
static double busy_for; /* milliseconds that kernels took */
static int is_cold;
static char pace;                         /* stands for the module and the function of the pace kernel */
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

/* Those that CUDA_VISIBLE_DEVICES lists, in its order, up to the first that is none. */
static int keep_seen(int archs[MOST_DEVICES], int count) {
  const char *at = getenv("CUDA_VISIBLE_DEVICES");
  int seen[MOST_DEVICES], kept = 0, number, length;
  if (!at) return count;
  while (kept < MOST_DEVICES && sscanf(at, "%d%n", &number, &length) == 1 && number >= 0 && number < count) {
    seen[kept++] = archs[number];
    at += length;
    at += *at == ',';
  }
  memcpy(archs, seen, (size_t)kept * sizeof *archs);
  return kept;
}

static int devices(int archs[MOST_DEVICES]) {
  const char *at = setting("FAKE_CUDA_DEVICES", "90");
  int count = 0, length;
  while (!is_gone() && count < MOST_DEVICES && sscanf(at, "%d%n", &archs[count], &length) == 1) at += length, count++;
  return keep_seen(archs, count);
}

int cuInit(unsigned flags) {
  int archs[MOST_DEVICES];
  if (flags) return INVALID_VALUE;
  started_by = getpid();
  setenv("XDG_RUNTIME_DIR", setting("FAKE_NVRTC_FOLDER", "/tmp"), 1); /* its locks are in the test's own folder */
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
/* Devices of one folder are the same for all its processes. */
int cuDeviceGetUuid_v2(unsigned char uuid[16], int device) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char *c = setting("FAKE_NVRTC_FOLDER", ""); *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
  memset(uuid, device, 16);
  memcpy(uuid, &hash, sizeof hash);
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
int cuDevicePrimaryCtxRelease_v2(int device) {
  int archs[MOST_DEVICES];
  return !is_started() ? NOT_INITIALIZED : device < 0 || device >= devices(archs) ? INVALID_DEVICE : SUCCESS;
}

/* The contexts below the thread's current one. */
static _Thread_local const char *below[16];
static _Thread_local unsigned below_count;

int cuCtxGetCurrent(void **context) {
  *context = (void *)(uintptr_t)current;
  return is_started() ? SUCCESS : NOT_INITIALIZED;
}
int cuCtxPushCurrent_v2(void *context) {
  if (!is_started()) return NOT_INITIALIZED;
  if (!context || below_count == sizeof below / sizeof *below) return INVALID_CONTEXT;
  below[below_count++] = current;
  current = context;
  return SUCCESS;
}
int cuCtxPopCurrent_v2(void **context) {
  if (!is_started()) return NOT_INITIALIZED;
  if (!below_count) return INVALID_CONTEXT;
  *context = (void *)(uintptr_t)current;
  current = below[--below_count];
  return SUCCESS;
}
int cuGetErrorName(int result, const char **name) {
  *name = result == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
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

static const size_t MEMORY = (size_t)80 << 30, MOST_BYTES = 1000000000;
static size_t memory_of(void) {
  const char *said = setting("FAKE_CUDA_MEMORY", NULL);
  return said ? (size_t)atoll(said) : MEMORY;
}
static size_t memory_left(void) {
  size_t used = 0, all = memory_of();
  pthread_mutex_lock(&of_pieces);
  for (size_t i = 0; i < PIECES; i++) used += pieces[i].bytes;
  pthread_mutex_unlock(&of_pieces);
  return all > used ? all - used : 0;
}
int cuMemGetInfo_v2(size_t *left, size_t *all) {
  if (refusal()) return refusal();
  *left = memory_left(), *all = memory_of();
  return SUCCESS;
}
int cuMemAlloc_v2(uint64_t *at, size_t bytes) {
  if (refusal()) return refusal();
  if (!bytes) return INVALID_VALUE;
  if (bytes > memory_left() || bytes > MOST_BYTES) return OUT_OF_MEMORY;
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
/* ---- Streams and graphs ---- */

struct function;

/* Work that is captured: kernels with copies of their operands, copies, and time of other libraries. */
struct node {
  struct function *function; /* NULL: a copy, or another library's */
  uint64_t to, from;         /* of a copy, or 0 */
  size_t bytes;
  unsigned extents[6], shared_bytes;
  void *args[MOST_ARGS];
  unsigned count;
  double milliseconds;
  const void *data; /* what that depends on, as fake_cuda_ease has it; NULL: nothing */
};
struct graph {
  const char *context;
  struct node *nodes;
  size_t count;
  int owners; /* itself, and what was instantiated of it */
};
static struct stream {
  const char *context;
  struct graph *captured; /* NULL: nothing is */
  bool spoiled;
} streams[64];
static struct stream *capturing; /* one at a time */
static void *library_stream;     /* where other libraries start their work */

static void free_nodes(struct graph *g) {
  if (--g->owners) return;
  for (size_t i = 0; i < g->count; i++)
    for (unsigned a = 0; a < g->nodes[i].count; a++) free(g->nodes[i].args[a]);
  free(g->nodes);
  free(g);
}

int cuStreamCreate(void **stream, unsigned flags) {
  size_t i = 0;
  if (refusal() || flags > 1) return refusal() ? refusal() : INVALID_VALUE;
  while (i < sizeof streams / sizeof *streams && streams[i].context) i++;
  if (i == sizeof streams / sizeof *streams) return OUT_OF_MEMORY;
  streams[i].context = current;
  *stream = &streams[i];
  return SUCCESS;
}

/* Whether work may be started there: a result. Work on the default stream spoils what is captured on another. */
static int enter_stream(const struct stream *s) {
  if (s) return s->context == current ? SUCCESS : INVALID_HANDLE;
  if (!capturing) return SUCCESS;
  capturing->spoiled = true;
  return CAPTURE_IMPLICIT;
}

int cuStreamDestroy_v2(void *stream) {
  struct stream *s = stream;
  if (refusal() || !s || s->context != current) return refusal() ? refusal() : INVALID_HANDLE;
  s->context = NULL;
  return SUCCESS;
}
int cuStreamSynchronize(void *stream) {
  const struct stream *s = stream;
  return s && s->context != current ? INVALID_HANDLE : cuCtxSynchronize();
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
  struct stream *s = stream;
  if (refusal() || mode != 2) return refusal() ? refusal() : INVALID_VALUE;
  if (!s || !strcmp(setting("FAKE_CUDA_CAPTURE", ""), "none")) return CAPTURE_UNSUPPORTED;
  if (s->context != current) return INVALID_HANDLE;
  if (capturing) return INVALID_VALUE;
  s->captured = calloc(1, sizeof *s->captured);
  if (!s->captured) abort();
  *s->captured = (struct graph){.context = current, .owners = 1};
  s->spoiled = !strcmp(setting("FAKE_CUDA_CAPTURE", ""), "spoiled");
  capturing = s;
  return SUCCESS;
}
int cuStreamEndCapture(void *stream, void **graph) {
  struct stream *s = stream;
  *graph = NULL;
  if (!s || s != capturing) return CAPTURE_UNMATCHED;
  struct graph *g = s->captured;
  s->captured = NULL, capturing = NULL;
  if (!s->spoiled) return *graph = g, SUCCESS;
  free_nodes(g);
  return CAPTURE_INVALIDATED;
}

static struct node *add_node(struct graph *g) {
  g->nodes = realloc(g->nodes, (g->count + 1) * sizeof *g->nodes);
  if (!g->nodes) abort();
  g->nodes[g->count] = (struct node){0};
  return &g->nodes[g->count++];
}

int cuGraphGetNodes(void *graph, void **nodes, size_t *count) {
  if (nodes || !graph) return INVALID_VALUE;
  *count = ((struct graph *)graph)->count;
  return SUCCESS;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  struct graph *g = graph;
  if (refusal() || !g || flags) return refusal() ? refusal() : INVALID_VALUE;
  if (!strcmp(setting("FAKE_CUDA_CAPTURE", ""), "instance")) return OUT_OF_MEMORY;
  g->owners++;
  *executable = g;
  return SUCCESS;
}
int cuGraphDestroy(void *graph) {
  free_nodes(graph);
  return SUCCESS;
}
int cuGraphExecDestroy(void *executable) {
  free_nodes(executable);
  return SUCCESS;
}
int cuGraphUpload(void *executable, void *stream) { return executable && stream ? refusal() : INVALID_VALUE; }

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
/* No graph of ours has a node of what the host's memory is copied to or from. */
static int enter_copy(const void *stream) {
  return refusal()                          ? refusal()
         : enter_stream(stream)             ? enter_stream(stream)
         : capturing && stream == capturing ? CAPTURE_UNSUPPORTED
                                            : SUCCESS;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  int result = enter_copy(stream);
  return result ? result : cuMemcpyHtoD_v2(to, from, bytes);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  int result = enter_copy(stream);
  return result ? result : cuMemcpyDtoH_v2(to, from, bytes);
}
int cuMemsetD8Async(uint64_t at, unsigned char byte, size_t bytes, void *stream) {
  int result = enter_copy(stream);
  if (result || !is_allocated(at, bytes)) return result ? result : INVALID_VALUE;
  memset(host(at), byte, bytes);
  return SUCCESS;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
  if (refusal() || enter_stream(stream)) return refusal() ? refusal() : enter_stream(stream);
  if (!capturing || stream != capturing) return cuMemcpyDtoD_v2(to, from, bytes);
  if (!is_allocated(to, bytes) || !is_allocated(from, bytes)) return INVALID_VALUE;
  *add_node(capturing->captured) = (struct node){.to = to, .from = from, .bytes = bytes};
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
  if (!strncmp(image, ".version", 8)) return *module = &pace, SUCCESS;
  if (sscanf(image, "fake cubin %d %999s%n", &version, path, &length) != 2) return INVALID_IMAGE;
  if (version > atoi(setting("FAKE_CUDA_VERSION", "13000"))) return NO_BINARY;
  *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!*module) fprintf(stderr, "fake driver: %s\n", dlerror());
  return *module ? SUCCESS : INVALID_IMAGE;
}
int cuModuleUnload(void *module) {
  if (refusal()) return refusal();
  if (module != &pace) dlclose(module);
  return SUCCESS;
}
static void skip(const unsigned *extents, void **args, unsigned shared_bytes) {
  (void)extents, (void)args, (void)shared_bytes;
}

struct function {
  kernel_call *call;
  uint64_t source; /* as a number */
  const char *context;
  unsigned most_shared;           /* bytes that a launch may ask for; 0: as many as it may unasked */
  unsigned (*sizes)(size_t *out); /* bytes of each operand */
  unsigned cluster;               /* blocks of one */
};

int cuModuleGetFunction(void **function, void *module, const char *name) {
  static struct function *all[4096]; /* of this process: a handle for each call and source */
  static size_t count;
  char symbol[300];
  struct function f = {0};
  if (refusal()) return refusal();
  if (module == &pace) return *function = &pace, SUCCESS;
  snprintf(symbol, sizeof symbol, "%s_sizes", name);
  void *sizes = dlsym(module, symbol);
  snprintf(symbol, sizeof symbol, "%s_call", name);
  void *call = dlsym(module, symbol);
  snprintf(symbol, sizeof symbol, "%s_cluster", name);
  void *cluster = dlsym(module, symbol);
  unsigned (*cluster_of)(void);
  const uint64_t *source = dlsym(module, "fake_source");
  if (!call || !sizes || !source || !cluster) return NOT_FOUND;
  memcpy(&cluster_of, &cluster, sizeof cluster_of);
  f.cluster = cluster_of();
  memcpy(&f.call, &call, sizeof call);
  memcpy(&f.sizes, &sizes, sizeof sizes);
  f.source = *source, f.context = current;
  for (const char *word = setting("FAKE_CUDA_SKIPPED", ""); *word; word += strspn(word, " ")) {
    size_t length = strcspn(word, " ");
    if (!strncmp(name, word, length)) f.call = skip;
    word += length;
  }
  for (size_t i = 0; i < count; i++)
    if (all[i]->call == f.call && all[i]->sizes == f.sizes && all[i]->source == f.source && all[i]->context == current)
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

/* What of its time is taken where data begins so; NULL: all of it. Small whole numbers leave the last digits of any
 * float 0: here the last six bits of each half of a word. */
static struct {
  const void *data;
  double part;
} eased = {NULL, 1}; /* what was asked last */
void fake_cuda_spoil(int result) { sticky = result; }
double fake_cuda_ease(const void *data) {
  const char *part = setting("FAKE_CUDA_EASY", NULL);
  uint16_t first[4], digits = 0;
  if (!data) return 1;
  memcpy(first, data, sizeof first);
  for (int i = 0; i < 4; i++) digits |= first[i] & 63;
  eased.data = data, eased.part = digits || !part ? 1 : atof(part);
  return eased.part;
}

/* Megahertz. */
static double clock_now(void) {
  double first = 1500, later = 0, from = 0;
  int said = sscanf(setting("FAKE_CUDA_CLOCK", ""), "%lf %lf %lf", &first, &later, &from);
  return said == 3 && busy_for >= from ? later : first;
}

/* Kernels take their time at the first clock. */
static void pass(double milliseconds) {
  double first = 1500;
  sscanf(setting("FAKE_CUDA_CLOCK", ""), "%lf", &first);
  busy_for += milliseconds;
  now += milliseconds * (1 + is_cold) * first / clock_now();
  is_cold = 0;
}

/* What another library does takes time too, and may be captured: when it takes time is what is kept of it. */
void fake_cuda_pass(double milliseconds) {
  if (enter_stream(library_stream)) return;
  if (capturing && library_stream == capturing)
    *add_node(capturing->captured) = (struct node){.milliseconds = milliseconds / eased.part, .data = eased.data};
  else
    pass(milliseconds);
}
/* The stream on which other libraries start what follows. */
void fake_cuda_on(void *stream) { library_stream = stream; }

/* The pace kernel of ours, which is PTX: it adds cycles and nanoseconds to what its first operand points to. */
static void run_pace(void **args) {
  const double CYCLES = 75000;
  uint64_t *sums = host(*(uint64_t *)args[0]);
  sums[0] += (uint64_t)CYCLES;
  sums[1] += (uint64_t)(1e3 * CYCLES / clock_now());
  now += 1e-3 * CYCLES / clock_now();
}

/* One kernel at a time: the shim's threads of a block share what it knows of the block. */
static pthread_mutex_t of_kernels = PTHREAD_MUTEX_INITIALIZER;

static int run_function(const struct function *f, const unsigned extents[6], void **args, unsigned shared_bytes,
                        bool again) {
  unsigned threads = extents[3] * extents[4] * extents[5];
  const char *of_threads = said_of("FAKE_CUDA_FAULTS", threads), *fault = NULL;
  pthread_mutex_lock(&of_kernels);
  if (f->call != skip) fault = of_threads ? later(of_threads) : fault_of_part(f->source);
  pass(time_of(threads, f->source) * fake_cuda_ease(*(void **)args[0]));
  if (!again && (!fault || *fault > '9')) f->call(extents, args, shared_bytes);
  int result = fault ? fail(fault, args) : SUCCESS;
  pthread_mutex_unlock(&of_kernels);
  return result;
}

/* Vectors are aligned as widely as any, and the descriptions of tensors. */
static void capture_launch(struct function *f, const unsigned extents[6], void **args, unsigned shared_bytes) {
  struct node *n = add_node(capturing->captured);
  size_t sizes[MOST_ARGS];
  n->function = f, n->shared_bytes = shared_bytes;
  memcpy(n->extents, extents, sizeof n->extents);
  n->count = f->sizes(sizes);
  for (unsigned i = 0; i < n->count; i++) {
    n->args[i] = aligned_alloc(128, (sizes[i] + 127) & ~(size_t)127);
    if (!n->args[i]) abort();
    memcpy(n->args[i], args[i], sizes[i]);
  }
}

/* Whether a node does what the one before it did: it takes its time, and may fail, and is not computed again. */
static bool is_same(const struct node *a, const struct node *b) {
  size_t sizes[MOST_ARGS];
  if (a->function != b->function || memcmp(a->extents, b->extents, sizeof a->extents)) return false;
  for (unsigned i = 0, count = a->function->sizes(sizes); i < count; i++)
    if (memcmp(a->args[i], b->args[i], sizes[i])) return false;
  return true;
}

int cuGraphLaunch(void *executable, void *stream) {
  const struct graph *g = executable;
  int result = SUCCESS;
  if (refusal()) return refusal();
  if (!g || !stream || g->context != current || enter_stream(stream)) return INVALID_HANDLE;
  if (capturing) return CAPTURE_UNSUPPORTED;
  for (size_t i = 0; i < g->count && !result && !sticky; i++) {
    struct node *n = &g->nodes[i];
    if (n->to)
      result = cuMemcpyDtoD_v2(n->to, n->from, n->bytes);
    else if (!n->function)
      pass(n->milliseconds * (n->data ? fake_cuda_ease(n->data) : 1));
    else
      result = run_function(n->function, n->extents, n->args, n->shared_bytes,
                            i && g->nodes[i - 1].function && is_same(n, &g->nodes[i - 1]));
  }
  return result;
}

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **args, void **extra) {
  const unsigned extents[] = {grid_x, grid_y, grid_z, block_x, block_y, block_z};
  (void)extra;
  if (refusal()) return refusal();
  if (sticky) return sticky;
  if (!function || !takes(extents, extents + 3)) return INVALID_VALUE;
  if (enter_stream(stream)) return enter_stream(stream);
  if (function == &pace) return capturing ? CAPTURE_UNSUPPORTED : (run_pace(args), SUCCESS);
  struct function *f = function;
  if (f->context != current) return INVALID_HANDLE;
  if (grid_x % f->cluster || (int)f->cluster > atoi(setting("FAKE_CUDA_CLUSTERS", "8"))) return INVALID_CLUSTER_SIZE;
  if (shared_bytes > (f->most_shared ? f->most_shared : 48u << 10)) return INVALID_VALUE;
  if (!capturing || stream != capturing) return run_function(f, extents, args, shared_bytes, false);
  capture_launch(f, extents, args, shared_bytes);
  return SUCCESS;
}

/* ---- Events ---- */

struct event {
  const char *context;
  bool recorded;
  double at;    /* milliseconds */
  long machine; /* nanoseconds of the machine's clock */
};

static long machine_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* One write: processes that share the file leave whole lines. */
static void trace(const struct event *from, const struct event *to) {
  const char *path = setting("FAKE_CUDA_TRACE", NULL);
  char line[100];
  int file = path ? open(path, O_CREAT | O_WRONLY | O_APPEND, 0600) : -1;
  if (file < 0) return;
  int length = snprintf(line, sizeof line, "%d %ld %ld\n", (int)getpid(), from->machine, to->machine);
  if (write(file, line, (size_t)length) != length) abort();
  close(file);
}

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
  if (enter_stream(stream)) return enter_stream(stream);
  if (refusal() || !e || e->context != current) return refusal() ? refusal() : INVALID_HANDLE;
  e->at = now, e->recorded = true, e->machine = machine_now();
  return SUCCESS;
}
int cuEventSynchronize(void *event) { return event ? cuCtxSynchronize() : INVALID_HANDLE; }
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  const struct event *from = start, *to = end;
  if (refusal()) return refusal();
  if (!from || !to || !from->recorded || !to->recorded || from->context != to->context) return INVALID_HANDLE;
  trace(from, to);
  *milliseconds = (float)(to->at - from->at);
  return SUCCESS;
}
int cuEventDestroy_v2(void *event) {
  if (!event) return INVALID_HANDLE;
  free(event);
  return refusal();
}

/* Kernels on CUDA's devices: loading, memory between zones of a pattern, launching, timing by events around graphs,
 * or around launches. */
#include "driver.h"
#include "graph.h"
#include "jit/cuda/cuda.h"
#include "jit/cuda/launch.h"
#include "jit/cuda/nvrtc.h"
#include "lease.h"
#include "pace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* ---- Which devices ---- */

/* Whether code for the architecture runs on a device: the same, or a later one of its generation. */
static bool runs_on(const struct jit_target *target, const struct jit_device_info *device) {
  bool exact;
  int arch = tir_arch_number(target->cpu, &exact);
  return exact ? arch == device->arch : arch / 10 == device->arch / 10 && arch <= device->arch;
}

/* Devices that run the target's code and are of one make: their times are compared. */
static uint32_t find_devices(const struct jit_target *target, int ordinals[DRIVER_MOST_DEVICES], char *others,
                             size_t size, ms_error *err) {
  struct jit_device_info all[DRIVER_MOST_DEVICES];
  uint32_t count = jit_devices(all, DRIVER_MOST_DEVICES, err), found = 0;
  if (size) *others = 0;
  for (uint32_t i = 0; i < count; i++) {
    size_t length = strlen(others);
    if (runs_on(target, &all[i]) && (!found || !strcmp(all[i].name, all[ordinals[0]].name)))
      ordinals[found++] = (int)i;
    else if (length < size)
      snprintf(others + length, size - length, "%s%.90s (sm_%d)", length ? ", " : "", all[i].name, all[i].arch);
  }
  return found;
}

uint32_t cuda_count(const struct jit_target *target) {
  int ordinals[DRIVER_MOST_DEVICES];
  char others[300];
  return find_devices(target, ordinals, others, sizeof others, NULL);
}

/* A driver knows the code of its own generation's compilers, and of those before. */
static bool knows_code(const struct driver *d, ms_error *err) {
  int major, minor;
  if (!nvrtc_version(&major, &minor, err)) return false;
  return d->known / 1000 >= major ||
         ms_fail(
             err, MS_NO_DEVICE,
             "the driver knows CUDA %d.%d, and NVRTC is of %d.%d: its code is newer than the driver; install a newer "
             "driver, or NVRTC of CUDA %d and say where by MSCHED_NVRTC",
             d->known / 1000, d->known % 1000 / 10, major, minor, d->known / 1000);
}

bool cuda_runs_here(const struct jit_target *target, ms_error *err) {
  int ordinals[DRIVER_MOST_DEVICES];
  char others[300];
  ms_error why = {.instruction = -1};
  const struct driver *d = driver_find(err);
  if (!d) return false;
  if (find_devices(target, ordinals, others, sizeof others, &why))
    return knows_code(d, err) && nvrtc_knows(target, err);
  if (*why.message) return ms_fail(err, MS_NO_DEVICE, "%s", why.message);
  return ms_fail(err, MS_NO_DEVICE, "no CUDA device runs code for %s; there %s %s", target->cpu, *others ? "is" : "are",
                 *others ? others : "none");
}

bool cuda_open(const struct jit_target *target, uint32_t number, struct jit_device **out, ms_error *err) {
  int ordinals[DRIVER_MOST_DEVICES];
  char others[300];
  ms_error why = {.instruction = -1};
  uint32_t count = find_devices(target, ordinals, others, sizeof others, &why);
  if (number >= count)
    return ms_fail(err, MS_NO_DEVICE, "device %u is gone%s%s", number, *why.message ? ": " : "", why.message);
  *out = driver_open(ordinals[number], err);
  if (!*out && err && err->code != MS_DEVICE_MEMORY) err->code = MS_NO_DEVICE;
  return *out != NULL;
}

static bool memory_left(const struct jit_device *device, size_t *left, size_t *all) {
  const struct driver *d = device->driver;
  return d->memory_left && driver_enter(device, NULL) && !d->memory_left(left, all);
}

/* Without NVML nothing is known of clocks. */
void cuda_describe(const struct jit_device *device, struct jit_ran_on *out) {
  struct jit_device_info info;
  *out = (struct jit_ran_on){.driver = device->driver->known};
  if (!driver_describe(device->driver, device->ordinal, &info, NULL)) return;
  memcpy(out->name, info.name, sizeof out->name);
  jit_device_clocks((uint32_t)device->ordinal, &out->clocks, NULL);
  const struct nvml_others others = nvml_others((uint32_t)device->ordinal);
  size_t left, all;
  out->others = others.count, out->others_bytes = others.bytes;
  if (memory_left(device, &left, &all) && (others.count || left < all / 10)) out->memory_left = left ? left : 1;
  memcpy(out->uncaptured, device->uncaptured, sizeof out->uncaptured);
}

/* A context takes more addresses than the machine has memory. */
void cuda_prepare(const struct jit_target *target) {
  struct rlimit limit;
  (void)target;
  if (getrlimit(RLIMIT_AS, &limit)) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_AS, &limit);
}

/* ---- Memory ---- */

enum { ZONE = 512, PATTERN = 0xa5 };

static uint64_t address(const void *at) { return (uint64_t)(uintptr_t)at; }

/* How much was asked for, and is left. */
static void say_left(const struct jit_device *device, size_t bytes, ms_error *err) {
  static const double MIB = 1024 * 1024;
  size_t left, all;
  if (!err || err->code != MS_DEVICE_MEMORY || !memory_left(device, &left, &all)) return;
  size_t at = strlen(err->message);
  snprintf(err->message + at, sizeof err->message - at, ": of %.1f MiB; %.1f of the device's %.1f MiB are left",
           (double)bytes / MIB, (double)left / MIB, (double)all / MIB);
}

static void *get(struct jit_device *device, size_t bytes, ms_error *err) {
  const struct driver *d = device->driver;
  uint64_t base = 0;
  if (!driver_enter(device, err)) return NULL;
  if (!driver_check(d->allocate(&base, bytes + 2 * ZONE), "memory for a buffer", err))
    return say_left(device, bytes, err), NULL;
  if (driver_check(d->fill(base, PATTERN, ZONE), "writing a guard", err) &&
      driver_check(d->fill(base + ZONE + bytes, PATTERN, ZONE), "writing a guard", err))
    return (void *)(uintptr_t)(base + ZONE);
  d->release(base);
  return NULL;
}

static void release(struct jit_device *device, void *at, size_t bytes) {
  (void)bytes;
  if (at && driver_enter(device, NULL)) device->driver->release(address(at) - ZONE);
}

static bool write_to(struct jit_device *device, void *to, const void *from, size_t bytes, ms_error *err) {
  return driver_enter(device, err) &&
         driver_check(device->driver->upload(address(to), from, bytes), "sending a buffer", err);
}
static bool read_from(struct jit_device *device, void *to, const void *from, size_t bytes, ms_error *err) {
  return driver_enter(device, err) &&
         driver_check(device->driver->download(to, address(from), bytes), "fetching a buffer", err);
}
static bool copy(struct jit_device *device, void *to, const void *from, size_t bytes, ms_error *err) {
  return driver_enter(device, err) &&
         driver_check(device->driver->copy(address(to), address(from), bytes), "copying a buffer", err);
}
static bool fill(struct jit_device *device, void *at, uint8_t byte, size_t bytes, ms_error *err) {
  return driver_enter(device, err) &&
         driver_check(device->driver->fill(address(at), byte, bytes), "filling a buffer", err);
}

static bool check_zone(struct jit_device *device, uint64_t at, const char *where, size_t bytes, ms_error *err) {
  uint8_t zone[ZONE];
  if (!read_from(device, zone, (void *)(uintptr_t)at, ZONE, err)) return false;
  for (int i = 0; i < ZONE; i++)
    if (zone[i] != PATTERN)
      return ms_fail(err, MS_ILLEGAL_ADDRESS, "a kernel wrote %s a buffer of %zu bytes", where, bytes);
  return true;
}

static bool check_guards(struct jit_device *device, const void *at, size_t bytes, ms_error *err) {
  return check_zone(device, address(at) - ZONE, "before", bytes, err) &&
         check_zone(device, address(at) + bytes, "past", bytes, err);
}

const struct jit_memory cuda_memory = {.get = get,
                                       .release = release,
                                       .write = write_to,
                                       .read = read_from,
                                       .copy = copy,
                                       .fill = fill,
                                       .check_guards = check_guards};

/* ---- Loading ---- */

struct loaded {
  struct cuda_plan plan; /* its lists lie in `bytes` */
  void *bytes, *module, **functions;
  void *start, *end; /* events */
  struct jit_captured *captured;
};

static bool find_functions(const struct driver *d, struct loaded *l, ms_error *err) {
  l->functions = calloc(l->plan.launch_count + 1, sizeof *l->functions);
  if (!l->functions) abort();
  for (uint32_t i = 0; i < l->plan.launch_count; i++) {
    const struct cuda_launch *launch = &l->plan.launches[i];
    if (!driver_check(d->function(&l->functions[i], l->module, launch->name), launch->name, err)) return false;
    if (launch->shared_bytes > TIR_STATIC_SHARED_BYTES &&
        !driver_check(d->set_attribute(l->functions[i], DRIVER_DYNAMIC_SHARED_BYTES, (int)launch->shared_bytes),
                      launch->name, err))
      return false;
  }
  return driver_check(d->new_event(&l->start, 0), "making an event", err) &&
         driver_check(d->new_event(&l->end, 0), "making an event", err);
}

/* The module is the one's that has bytes. */
static void unload(const struct jit_device *device, struct loaded *l) {
  const struct driver *d = device->driver;
  cuda_free_captured(l->captured);
  if (driver_enter(device, NULL)) {
    if (l->start) d->free_event(l->start);
    if (l->end) d->free_event(l->end);
    if (l->module && l->bytes) d->unload(l->module);
  }
  free(l->functions);
  free(l->bytes);
  free(l);
}

void cuda_unload(struct jit_kernel *kernel) {
  assert(kernel->loaded);
  if (kernel->pack_loaded) unload(kernel->device, kernel->pack_loaded);
  unload(kernel->device, kernel->loaded);
}

static bool read_plan(const void *bytes, size_t count, struct loaded *l, const void **image, ms_error *err) {
  if (!cuda_plan_read(bytes, count, &l->plan, image))
    return ms_fail(err, MS_NOT_COMPILABLE, "what was compiled cannot be read");
  return !*l->plan.refusal ||
         ms_fail(err, MS_NOT_LAUNCHED, "%s; .cu can be exported, and launched by your own program", l->plan.refusal);
}

/* Where the plan of what packs constants is, behind the other; 0: it is no such place. */
static size_t begin_of_pack(const uint8_t *bytes, size_t count) {
  uint64_t begin = 0;
  if (count > sizeof begin) memcpy(&begin, bytes + count - sizeof begin, sizeof begin);
  return begin % 8 == 0 && begin < count ? (size_t)begin : 0;
}

/* Kernels of the same module. */
static bool load_pack(struct jit_kernel *kernel, size_t count, ms_error *err) {
  struct loaded *l = kernel->pack_loaded = calloc(1, sizeof *l), *own = kernel->loaded;
  const void *nothing;
  size_t begin = begin_of_pack(own->bytes, count);
  if (!l) abort();
  if (!begin) return ms_fail(err, MS_NOT_COMPILABLE, "what was compiled cannot be read");
  l->module = own->module;
  return read_plan((const uint8_t *)own->bytes + begin, count - begin, l, &nothing, err) &&
         find_functions(kernel->device->driver, l, err);
}

bool cuda_load(const void *bytes, size_t count, struct jit_kernel *kernel, ms_error *err) {
  const struct driver *d = kernel->device->driver;
  const void *image;
  struct loaded *l = kernel->loaded = calloc(1, sizeof *l);
  if (!l || !(l->bytes = malloc(count))) abort();
  memcpy(l->bytes, bytes, count);
  bool ok = read_plan(l->bytes, count, l, &image, err) && driver_enter(kernel->device, err) &&
            driver_check(d->load(&l->module, image), "loading kernels", err) && find_functions(d, l, err) &&
            (!kernel->packing.count || load_pack(kernel, count, err));
  if (!ok) cuda_unload(kernel);
  return ok;
}

/* ---- Launching ---- */

enum { MOST_OPERANDS = 256 };

/* The address of an operand's value, which may be made in *value. */
static void *operand_of(const struct cuda_operand *o, void **args, const void *workspace, uint64_t *value) {
  assert(o->kind != CUDA_WORKSPACE || workspace);
  switch (o->kind) {
  case CUDA_BUFFER: *value = address(args[o->parameter]); return value;
  case CUDA_WORKSPACE: *value = address(workspace) + o->offset; return value;
  default: return args[o->parameter];
  }
}

/* The tensor of a TMA bulk tensor copy, as the driver describes it. */
static bool describe(const struct driver *d, const struct tensor_map *m, uint64_t at, CUtensorMap *out, ms_error *err) {
  uint32_t steps[TIR_BOX_MOST_RANK];
  assert(m->rank >= 1 && m->rank <= TIR_BOX_MOST_RANK);
  if (!d->describe_tensor || !d->describe_pixels)
    return ms_fail(err, MS_NO_DEVICE,
                   "the driver has no %s, which TMA bulk tensor copies need: install one of CUDA 12 or later",
                   d->describe_tensor ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled");
  for (uint32_t i = 0; i < m->rank; i++) steps[i] = tensor_map_step(m, i);
  if (m->im2col) {
    int of_pixels = d->describe_pixels(out, (int)m->type, m->rank, (void *)(uintptr_t)at, m->extents, m->strides,
                                       m->lower, m->upper, m->box[0], m->box[m->rank - 1], steps,
                                       DRIVER_INTERLEAVE_NONE, (int)m->swizzle, DRIVER_PROMOTION_128, DRIVER_FILL_ZERO);
    return driver_check(of_pixels, "describing a tensor of pixels", err);
  }
  int result =
      d->describe_tensor(out, (int)m->type, m->rank, (void *)(uintptr_t)at, m->extents, m->strides, m->box, steps,
                         DRIVER_INTERLEAVE_NONE, (int)m->swizzle, DRIVER_PROMOTION_128, DRIVER_FILL_ZERO);
  return driver_check(result, "describing a tensor", err);
}

/* The operands of one launch: their values, or what describes them. */
struct given {
  uint64_t values[MOST_OPERANDS];
  void *at[MOST_OPERANDS];
  CUtensorMap maps[TENSOR_MAPS_MOST];
};

static bool give(const struct loaded *l, const struct cuda_launch *launch, const struct driver *d, void **args,
                 const void *workspace, struct given *g, ms_error *err) {
  uint32_t maps = 0;
  if (launch->count > MOST_OPERANDS) return ms_fail(err, MS_NOT_LAUNCHED, "%s: too many operands", launch->name);
  for (uint32_t o = 0; o < launch->count; o++) {
    assert(launch->first + o < l->plan.operand_count);
    const struct cuda_operand *operand = &l->plan.operands[launch->first + o];
    g->at[o] = operand_of(operand, args, workspace, &g->values[o]);
    if (!operand->map) continue;
    assert(maps < TENSOR_MAPS_MOST);
    if (!describe(d, &l->plan.maps[operand->map - 1], g->values[o], &g->maps[maps], err)) return false;
    g->at[o] = &g->maps[maps++];
  }
  return true;
}

bool cuda_start(const struct jit_kernel *kernel, void **args, const void *workspace, void *stream, ms_error *err) {
  const struct loaded *l = kernel->loaded;
  const struct driver *d = kernel->device->driver;
  for (uint32_t i = 0; i < l->plan.launch_count; i++) {
    const struct cuda_launch *launch = &l->plan.launches[i];
    struct given given;
    if (!give(l, launch, d, args, workspace, &given, err)) return false;
    int result = d->launch(l->functions[i], launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                           launch->block[1], launch->block[2], launch->shared_bytes, stream, given.at, NULL);
    if (!driver_check(result, launch->name, err)) return false;
  }
  return true;
}

bool cuda_start_copy(struct jit_device *device, void *to, const void *from, size_t bytes, void *stream, ms_error *err) {
  const struct driver *d = device->driver;
  if (!d->start_copy) return ms_fail(err, MS_NO_DEVICE, "the driver has no cuMemcpyDtoDAsync");
  return driver_check(d->start_copy(address(to), address(from), bytes, stream), "copying a buffer", err);
}

bool cuda_run(const struct jit_kernel *kernel, void **args, void *workspace, bool outlive, const volatile int *stop,
              ms_error *err) {
  (void)outlive, (void)stop; /* a fault is the device's, which is not stopped */
  return driver_enter(kernel->device, err) && cuda_start(kernel, args, workspace, NULL, err) &&
         driver_check(kernel->device->driver->synchronize(), "running kernels", err);
}

/* Writes twice as much as the L2 cache holds: nothing of what kernels use is left there. */
static bool flush(struct jit_device *device, ms_error *err) {
  const struct driver *d = device->driver;
  if (!device->flushed) {
    struct jit_device_info info;
    if (!driver_describe(d, device->ordinal, &info, err)) return false;
    device->flushed_bytes = 2 * (info.l2_bytes > 0 ? (size_t)info.l2_bytes : (size_t)64 << 20);
    if (!driver_check(d->allocate(&device->flushed, device->flushed_bytes), "memory to flush the cache with", err))
      return false;
  }
  return driver_check(d->fill(device->flushed, 0, device->flushed_bytes), "flushing the cache", err);
}

/* What is started on the device, ours or another library's. */
struct work {
  struct jit_device *device;
  void *start_event, *end_event;
  const struct jit_kernel *kernel; /* ours, with its arguments */
  void *const *args, *workspace;
  jit_routine_start *start; /* or another's, with data for it */
  void *data;
};

static bool start_on(void *work, void *stream, ms_error *err) {
  const struct work *w = work;
  if (w->kernel) return cuda_start(w->kernel, (void **)w->args, w->workspace, stream, err);
  return w->start(w->data, w->args, stream) || ms_fail(err, MS_NOT_LAUNCHED, "the library does not start its routine");
}

static bool start(const struct work *w, ms_error *err) { return start_on((void *)w, NULL, err); }

/* ---- Timing ---- */

/* What a graph was captured of: it holds addresses and scalars. */
struct jit_captured {
  struct graph *graph; /* NULL: it cannot be captured */
  uint64_t operands;   /* of which values */
  char why[160];
};

void cuda_free_captured(struct jit_captured *captured) {
  if (captured) graph_free(captured->graph);
  free(captured);
}

/* FNV-1a of the operands' values; of another library's routine they stay. */
static uint64_t hash_of_operands(const struct work *w) {
  uint64_t hash = 0xcbf29ce484222325u, value = 0;
  const struct loaded *l = w->kernel ? w->kernel->loaded : NULL;
  for (uint32_t i = 0; l && i < l->plan.launch_count; i++)
    for (uint32_t o = 0; o < l->plan.launches[i].count; o++) {
      const struct cuda_operand *operand = &l->plan.operands[l->plan.launches[i].first + o];
      memcpy(&value, operand_of(operand, (void **)w->args, w->workspace, &value), sizeof value);
      hash = (hash ^ value) * 0x100000001b3u;
    }
  return hash;
}

/* The work as a graph, captured when it is first asked for. NULL: it cannot be; *failed: it was replayed, and
 * failed. */
static const struct graph *graph_of(const struct work *w, struct jit_captured **kept, bool *failed, ms_error *err) {
  uint64_t operands = hash_of_operands(w);
  *failed = false;
  if (!*kept || (*kept)->operands != operands) {
    const struct graph_work work = {start_on, (void *)w};
    ms_error why = {.instruction = -1};
    cuda_free_captured(*kept);
    *kept = calloc(1, sizeof **kept);
    if (!*kept) abort();
    (*kept)->operands = operands;
    (*kept)->graph = graph_new(w->device, &work, failed, &why);
    snprintf((*kept)->why, sizeof(*kept)->why, "%.150s", (*kept)->graph ? "" : why.message);
    if (*failed && err) *err = why;
  }
  memcpy(w->device->uncaptured, (*kept)->why, sizeof w->device->uncaptured);
  return (*kept)->graph;
}

/* Milliseconds of so many runs in a row. */
static bool time_runs(const struct work *w, uint32_t runs, float *milliseconds, ms_error *err) {
  const struct driver *d = w->device->driver;
  bool ok = driver_check(d->record(w->start_event, NULL), "timing kernels", err);
  for (uint32_t i = 0; i < runs && ok; i++) ok = start(w, err);
  return ok && driver_check(d->record(w->end_event, NULL), "timing kernels", err) &&
         driver_check(d->wait(w->end_event), "running kernels", err) &&
         driver_check(d->elapsed(milliseconds, w->start_event, w->end_event), "timing kernels", err);
}

/* By launches one after another, what they cost the host included where that is more than the kernels take; with the
 * cache flushed before each, which takes longer than a launch, so that none is waited for. */
static double sample_launches(const struct work *w, bool cold, uint32_t calls, ms_error *err) {
  bool ok = driver_enter(w->device, err);
  uint32_t rounds = cold ? calls : 1;
  double sum = 0;
  assert(calls > 0);
  for (uint32_t i = 0; i < rounds && ok; i++) {
    float milliseconds = 0;
    ok = (!cold || flush(w->device, err)) && time_runs(w, cold ? 1 : calls, &milliseconds, err);
    sum += milliseconds;
  }
  return ok ? 1e-3 * sum / calls : -1;
}

/* A graph has as many runs as it needs, whatever calls says. */
static double sample(const struct work *w, bool cold, struct jit_captured **kept, uint32_t calls, ms_error *err) {
  bool failed = false;
  *w->device->uncaptured = 0;
  lease_take(w->device);
  const struct graph *graph = cold ? NULL : graph_of(w, kept, &failed, err);
  double seconds = failed ? -1 : graph ? graph_sample(graph, err) : sample_launches(w, cold, calls, err);
  if (!graph && seconds >= 0) pace_launch(w->device, NULL); /* its clock is known all the same */
  lease_give(w->device);
  return seconds;
}

/* Microseconds since 1970. */
static uint64_t time_of_day(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return 1000000 * (uint64_t)now.tv_sec + (uint64_t)now.tv_nsec / 1000;
}
enum { SAMPLED = 1000000 }; /* microseconds: what others compute is looked up from so long before */

void cuda_turn(struct jit_device *device, bool begins, struct jit_conditions *out) {
  if (begins) lease_take(device);
  if (begins && device->lease.depth == 1) device->turn_began = time_of_day() - SAMPLED;
  *out = (struct jit_conditions){.clock = begins ? pace_now(device) : pace_clock(device),
                                 .by_launches = *device->uncaptured != 0};
  if (!begins) out->shared = nvml_others_computed((uint32_t)device->ordinal, device->turn_began);
  if (!begins) lease_give(device);
}

double cuda_sample(const struct jit_kernel *kernel, void **args, void *workspace, uint32_t calls,
                   const volatile int *stop, ms_error *err) {
  struct loaded *l = kernel->loaded;
  (void)stop;
  const struct work w = {.device = kernel->device,
                         .start_event = l->start,
                         .end_event = l->end,
                         .kernel = kernel,
                         .args = args,
                         .workspace = workspace};
  return sample(&w, l->plan.cold != 0, &l->captured, calls, err);
}

bool cuda_run_other(struct jit_device *device, jit_routine_start *routine, void *data, void *const *buffers,
                    ms_error *err) {
  const struct work w = {.device = device, .args = buffers, .start = routine, .data = data};
  return driver_enter(device, err) && start(&w, err) &&
         driver_check(device->driver->synchronize(), "running a library's routine", err);
}

double cuda_sample_other(struct jit_device *device, jit_routine_start *routine, void *data, void *const *buffers,
                         bool cold, struct jit_captured **captured, uint32_t calls, ms_error *err) {
  struct work w = {.device = device, .args = buffers, .start = routine, .data = data};
  const struct driver *d = device->driver;
  bool ok = driver_enter(device, err) && driver_check(d->new_event(&w.start_event, 0), "making an event", err) &&
            driver_check(d->new_event(&w.end_event, 0), "making an event", err);
  double seconds = ok ? sample(&w, cold, captured, calls, err) : -1;
  if (w.start_event) d->free_event(w.start_event);
  if (w.end_event) d->free_event(w.end_event);
  return seconds;
}

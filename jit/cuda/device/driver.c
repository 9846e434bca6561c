#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- The library ---- */

static struct driver driver;
static char missing[JIT_LIBRARY_MISSING]; /* why there is none; "": there is */

static const struct jit_library_function functions[] = {
#define DRIVER_FUNCTION(field, symbol, parameters) {#symbol, &driver.field, false},
#define DRIVER_OPTIONAL(field, symbol, parameters) {#symbol, &driver.field, true},
#include "driver.def"
};

/* By its name or, as what CUDA 13 declares by it, its second version's. */
static void *find(void *library, const char *name) {
  char second[64];
  void *at = dlsym(library, name);
  snprintf(second, sizeof second, "%s_v2", name);
  return at ? at : dlsym(library, second);
}

static void open_driver(void) {
  static const char *const names[] = {"libcuda.so.1", "libcuda.so", NULL};
  void *library = jit_open_library("MSCHED_LIBCUDA", names, false, missing);
  for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
    void *at = find(library, functions[i].name);
    memcpy(functions[i].to, &at, sizeof at);
    if (!at && !functions[i].optional) snprintf(missing, sizeof missing, "it has no %s", functions[i].name);
  }
  ms_error err = {.instruction = -1};
  if (*missing) return;
  if (!driver_check(driver.init(0), "it does not start", &err) ||
      !driver_check(driver.version(&driver.known), "it does not say its version", &err))
    snprintf(missing, sizeof missing, "%.390s", err.message);
}

const struct driver *driver_find(ms_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_driver);
  if (!*missing) return &driver;
  ms_fail(
      err, MS_NO_DEVICE,
      "CUDA's driver is missing (libcuda: %.300s): install NVIDIA's driver, or set MSCHED_LIBCUDA to its path; space, "
      "apply, lower, build, export, checks and tune --no-tune need none",
      missing);
  return NULL;
}

/* ---- Faults ---- */

static const struct {
  int result;
  const char *name;
  enum ms_code code;
  const char *words;
} faults[] = {
#define DRIVER_FAULT(result, name, code, words) {result, #name, MS_##code, words},
#include "driver.def"
};

bool driver_check(int result, const char *doing, ms_error *err) {
  if (!result) return true;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    if (faults[i].result == result)
      return ms_fail(err, faults[i].code, "%s: %s (CUDA_ERROR_%s)", doing, faults[i].words, faults[i].name);
  return ms_fail(err, MS_KERNEL_FAILED, "%s: CUDA's error %d", doing, result);
}

/* ---- Devices ---- */

bool driver_describe(const struct driver *d, int ordinal, struct jit_device_info *out, ms_error *err) {
  int device, major = 0, minor = 0, kilohertz = 0;
  size_t bytes = 0;
  *out = (struct jit_device_info){0};
  bool ok = driver_check(d->get(&device, ordinal), "asking for a device", err) &&
            driver_check(d->name(out->name, sizeof out->name, device), "asking for its name", err) &&
            driver_check(d->attribute(&major, DRIVER_MAJOR, device), "asking for its architecture", err) &&
            driver_check(d->attribute(&minor, DRIVER_MINOR, device), "asking for its architecture", err) &&
            driver_check(d->memory(&bytes, device), "asking for its memory", err);
  d->attribute(&out->processors, DRIVER_PROCESSORS, device); /* what follows is shown, and decides nothing */
  d->attribute(&out->l2_bytes, DRIVER_L2_BYTES, device);
  d->attribute(&out->shared_bytes, DRIVER_SHARED_BYTES, device);
  d->attribute(&kilohertz, DRIVER_CLOCK_RATE, device);
  out->arch = 10 * major + minor, out->memory = bytes, out->clock = 1e3 * kilohertz;
  return ok;
}

bool driver_enter(const struct jit_device *device, ms_error *err) {
  return driver_check(device->driver->set_current(device->context), "entering the device", err);
}

uint32_t jit_devices(struct jit_device_info *out, uint32_t most, ms_error *err) {
  const struct driver *d = driver_find(err);
  int count = 0;
  if (!d || !driver_check(d->count(&count), "counting devices", err)) return 0;
  uint32_t described = 0;
  while (described < most && (int)described < count && driver_describe(d, (int)described, &out[described], err))
    described++;
  return described;
}

int jit_driver_version(ms_error *err) {
  const struct driver *d = driver_find(err);
  return d ? d->known : 0;
}

struct jit_device *driver_open(int ordinal, ms_error *err) {
  static struct jit_device devices[DRIVER_MOST_DEVICES];
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  const struct driver *d = driver_find(err);
  assert(ordinal >= 0 && ordinal < DRIVER_MOST_DEVICES);
  if (!d) return NULL;
  pthread_mutex_lock(&lock);
  struct jit_device *opened = &devices[ordinal];
  int device;
  bool ok = opened->context || (driver_check(d->get(&device, ordinal), "asking for a device", err) &&
                                driver_check(d->retain(&opened->context, device), "opening the device", err));
  opened->driver = d, opened->ordinal = ordinal;
  pthread_mutex_unlock(&lock);
  return ok ? opened : NULL;
}

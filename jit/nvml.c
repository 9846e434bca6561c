/* A device's clocks, by NVML, where it is installed. Source: NVIDIA Management Library, nvml.h. */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Its functions; 0 is success. A device is a pointer to what only the library knows. */
static struct {
  int (*init)(void);
  int (*find)(const char *bus, void **device);
  int (*clock)(void *device, int kind, unsigned *megahertz);
  int (*slowed)(void *device, unsigned long long *reasons);
  char missing[300]; /* why there is none; "": there is */
} nvml;

static const struct {
  const char *name;
  void *to;
} functions[] = {{"nvmlInit_v2", &nvml.init},
                 {"nvmlDeviceGetHandleByPciBusId_v2", &nvml.find},
                 {"nvmlDeviceGetClockInfo", &nvml.clock},
                 {"nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.slowed}};

/* It stays open: threads of its own may run to the end. */
static void open_nvml(void) {
  const char *own = getenv("MSCHED_LIBNVML");
  void *library = dlopen(own && *own ? own : "libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  const char *reason = library ? NULL : dlerror();
  if (!library) snprintf(nvml.missing, sizeof nvml.missing, "%s", reason ? reason : "it cannot be opened");
  for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
    void *at = dlsym(library, functions[i].name);
    memcpy(functions[i].to, &at, sizeof at);
    if (!at) snprintf(nvml.missing, sizeof nvml.missing, "it has no %s", functions[i].name);
  }
  int result = *nvml.missing ? 0 : nvml.init();
  if (result) snprintf(nvml.missing, sizeof nvml.missing, "it does not start: NVML's error %d", result);
}

/* nvmlClockType_t; nvmlClocksEventReasons: power, the hardware's own, heat. */
enum { PROCESSORS = 1, MEMORY = 2 };
static const unsigned long long SLOWED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

bool jit_device_clocks(uint32_t device, struct jit_device_clocks *out, ms_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const struct driver *d = driver_find(err);
  char bus[64];
  int number;
  void *found;
  unsigned processors, memory;
  unsigned long long reasons = 0;
  assert(out && device < DRIVER_MOST_DEVICES);
  *out = (struct jit_device_clocks){0};
  if (!d || !driver_check(d->get(&number, (int)device), "asking for a device", err) ||
      !driver_check(d->place(bus, sizeof bus, number), "asking where a device is", err))
    return false;
  pthread_once(&once, open_nvml);
  if (*nvml.missing)
    return ms_fail(err, MS_NO_LIBRARY,
                   "NVML is missing (%s): it comes with NVIDIA's driver, or set MSCHED_LIBNVML to its path",
                   nvml.missing);
  if (nvml.find(bus, &found) || nvml.clock(found, PROCESSORS, &processors) || nvml.clock(found, MEMORY, &memory))
    return ms_fail(err, MS_NO_DEVICE, "NVML does not say the clocks of the device at %s", bus);
  nvml.slowed(found, &reasons); /* not every device says so */
  *out = (struct jit_device_clocks){1e6 * processors, 1e6 * memory, (reasons & SLOWED) != 0};
  return true;
}

/* A device's clocks and who else has it, by NVML, where it is installed. Source: NVIDIA Management Library, nvml.h. */
#include "driver.h"
#include "jit/host/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Its functions; 0 is success. A device is a pointer to what only the library knows. */
static struct {
  int (*init)(void);
  int (*find)(const char *bus, void **device);
  int (*clock)(void *device, int kind, unsigned *megahertz);
  int (*slowed)(void *device, unsigned long long *reasons);
  int (*processes)(void *device, unsigned *count, void *processes);                       /* NULL: an older one */
  int (*samples)(void *device, void *samples, unsigned *count, unsigned long long since); /* NULL likewise */
  char missing[JIT_LIBRARY_MISSING]; /* why there is none; "": there is */
} nvml;

static const struct jit_library_function functions[] = {
    {"nvmlInit_v2", &nvml.init},
    {"nvmlDeviceGetHandleByPciBusId_v2", &nvml.find},
    {"nvmlDeviceGetClockInfo", &nvml.clock},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.slowed},
    {"nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes, true},
    {"nvmlDeviceGetProcessUtilization", &nvml.samples, true}};

static void open_nvml(void) {
  static const char *const names[] = {"libnvidia-ml.so.1", NULL};
  void *library = jit_open_library("MSCHED_LIBNVML", names, false, nvml.missing);
  jit_find_functions(library, functions, sizeof functions / sizeof *functions, nvml.missing);
  int result = *nvml.missing ? 0 : nvml.init();
  if (result) snprintf(nvml.missing, sizeof nvml.missing, "it does not start: NVML's error %d", result);
}

/* nvmlClockType_t; nvmlClocksEventReasons: power, the hardware's own, heat. */
enum { PROCESSORS = 1, MEMORY = 2 };
static const unsigned long long SLOWED = 0x4 | 0x8 | 0x20 | 0x40 | 0x80;

/* NULL: NVML is missing, or does not know the device. */
static void *find_device(uint32_t device, ms_error *err) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const struct driver *d = driver_find(err);
  char bus[64];
  int number;
  void *found = NULL;
  assert(device < DRIVER_MOST_DEVICES);
  if (!d || !driver_check(d->get(&number, (int)device), "asking for a device", err) ||
      !driver_check(d->place(bus, sizeof bus, number), "asking where a device is", err))
    return NULL;
  pthread_once(&once, open_nvml);
  if (*nvml.missing)
    ms_fail(err, MS_NO_LIBRARY,
            "NVML is missing (%s): it comes with NVIDIA's driver, or set MSCHED_LIBNVML to its path", nvml.missing);
  else if (nvml.find(bus, &found))
    ms_fail(err, MS_NO_DEVICE, "NVML does not know the device at %s", bus), found = NULL;
  return found;
}

/* nvmlProcessInfo_t */
struct process {
  unsigned id;
  unsigned long long bytes;
  unsigned instances[2];
};
enum { MOST_PROCESSES = 64 };

static const unsigned long long UNKNOWN_BYTES = ~0ull; /* NVML_VALUE_NOT_AVAILABLE */

struct nvml_others nvml_others(uint32_t device) {
  struct process all[MOST_PROCESSES];
  unsigned count = MOST_PROCESSES;
  struct nvml_others others = {0}, none = {0};
  bool knows_us = false;
  void *found = find_device(device, NULL);
  if (!found || !nvml.processes || nvml.processes(found, &count, all) || count > MOST_PROCESSES) return none;
  for (unsigned i = 0; i < count; i++) {
    knows_us |= all[i].id == (unsigned)getpid();
    if (process_is_family((pid_t)all[i].id)) continue;
    others.count++;
    if (all[i].bytes != UNKNOWN_BYTES) others.bytes += all[i].bytes;
  }
  return knows_us ? others : none;
}

/* nvmlProcessUtilizationSample_t; shares in percent, of some tenths of a second. */
struct sample {
  unsigned id;
  unsigned long long at;
  unsigned processors, memory, encoder, decoder;
};
enum { MOST_SAMPLES = 256 };

bool nvml_others_computed(uint32_t device, uint64_t since) {
  struct sample all[MOST_SAMPLES];
  unsigned count = MOST_SAMPLES;
  void *found = nvml_others(device).count ? find_device(device, NULL) : NULL;
  if (!found || !nvml.samples || nvml.samples(found, all, &count, since) || count > MOST_SAMPLES) return false;
  for (unsigned i = 0; i < count; i++)
    if (all[i].at > since && all[i].processors && !process_is_family((pid_t)all[i].id)) return true;
  return false;
}

bool jit_device_clocks(uint32_t device, struct jit_device_clocks *out, ms_error *err) {
  unsigned processors, memory;
  unsigned long long reasons = 0;
  assert(out);
  *out = (struct jit_device_clocks){0};
  void *found = find_device(device, err);
  if (!found) return false;
  if (nvml.clock(found, PROCESSORS, &processors) || nvml.clock(found, MEMORY, &memory))
    return ms_fail(err, MS_NO_DEVICE, "NVML does not say the clocks of device %u", device);
  nvml.slowed(found, &reasons); /* not every device says so */
  *out = (struct jit_device_clocks){1e6 * processors, 1e6 * memory, (reasons & SLOWED) != 0};
  return true;
}

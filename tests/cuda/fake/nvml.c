/* NVML without a GPU. FAKE_NVML_CLOCKS: megahertz of a device's processors and memory, and whether heat slows it, as
 * `1980 2619 1`; unset: `1500 1000 0`. FAKE_NVML_PROCESSES: numbers of processes that have a device besides the one
 * that asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned clocks[3];

int nvmlInit_v2(void) {
  const char *said = getenv("FAKE_NVML_CLOCKS");
  return sscanf(said ? said : "1500 1000 0", "%u %u %u", &clocks[0], &clocks[1], &clocks[2]) == 3 ? 0 : 999;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  *device = clocks;
  return strncmp(bus, "0000:0", 6) ? 6 : 0;
}
int nvmlDeviceGetClockInfo(void *device, int kind, unsigned *megahertz) {
  if (device != clocks || kind < 1 || kind > 2) return 2;
  *megahertz = clocks[kind - 1];
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
  *reasons = device == clocks && clocks[2] ? 0x40 : 1; /* heat; or idle, which is no slowing */
  return 0;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes) {
  struct {
    unsigned id;
    unsigned long long bytes;
    unsigned instances[2];
  } *all = processes;
  const char *at = getenv("FAKE_NVML_PROCESSES");
  unsigned most = *count, found = 0;
  if (device != clocks) return 2;
  all[found++].id = (unsigned)getpid();
  for (char *end; at && *at && found < most; at = end) all[found++].id = (unsigned)strtoul(at, &end, 10);
  *count = found;
  return 0;
}

/* NVML without a GPU. FAKE_NVML_CLOCKS: megahertz of a device's processors and memory, and whether heat slows it, as
 * `1980 2619 1`; unset: `1500 1000 0`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

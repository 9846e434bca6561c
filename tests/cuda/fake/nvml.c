/* NVML without a GPU. FAKE_NVML_CLOCKS: megahertz of a device's processors and memory, and whether heat slows it, as
 * `1980 2619 1`; unset: `1500 1000 0`. FAKE_NVML_PROCESSES: processes that have a device besides the one that asks:
 * their numbers; then, behind colons, bytes of its memory, else not known, and how busy they keep it, in percent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

struct said {
  unsigned id, busy;
  unsigned long long bytes;
};
/* The next that is said of a process, and where what follows begins; NULL: there is none. */
static const char *next_process(const char *at, struct said *out) {
  char *end;
  if (!at || !*at) return NULL;
  *out = (struct said){.id = (unsigned)strtoul(at, &end, 10), .bytes = ~0ull};
  if (*end == ':') out->bytes = strtoull(end + 1, &end, 10);
  if (*end == ':') out->busy = (unsigned)strtoul(end + 1, &end, 10);
  return end;
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *processes) {
  struct {
    unsigned id;
    unsigned long long bytes;
    unsigned instances[2];
  } *all = processes;
  const char *at = getenv("FAKE_NVML_PROCESSES");
  struct said said;
  unsigned most = *count, found = 0;
  if (device != clocks) return 2;
  all[found].id = (unsigned)getpid(), all[found++].bytes = 1 << 30;
  while (found < most && (at = next_process(at, &said))) all[found].id = said.id, all[found++].bytes = said.bytes;
  *count = found;
  return 0;
}

/* Each has one sample, of now, and one of long ago, in which it was busy. */
int nvmlDeviceGetProcessUtilization(void *device, void *samples, unsigned *count, unsigned long long since) {
  struct {
    unsigned id;
    unsigned long long at;
    unsigned processors, memory, encoder, decoder;
  } *all = samples;
  const char *at = getenv("FAKE_NVML_PROCESSES");
  struct said said;
  struct timespec now;
  unsigned most = *count, found = 0;
  if (device != clocks) return 2;
  clock_gettime(CLOCK_REALTIME, &now);
  while (found + 1 < most && (at = next_process(at, &said))) {
    all[found].id = said.id, all[found].at = since, all[found++].processors = 100;
    all[found].id = said.id, all[found].at = 1000000ull * (unsigned long long)now.tv_sec + 999999,
    all[found++].processors = said.busy;
  }
  *count = found;
  return 0;
}

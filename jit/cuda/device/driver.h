/* CUDA's driver, where it is installed: opened when it is first asked for. Its devices, and one's context in this
 * process. Internal to jit. */
#ifndef MSCHED_JIT_DRIVER_H
#define MSCHED_JIT_DRIVER_H

#include "jit/jit.h"

#define DRIVER_TYPE(name, type) typedef type name;
#include "driver.def"
enum {
#define DRIVER_NUMBER(name, number, original) DRIVER_##name = number,
#include "driver.def"
};

struct driver {
#define DRIVER_FUNCTION(field, symbol, parameters) int(*field) parameters;
#include "driver.def"
  int known; /* the newest CUDA that it knows: 12040 for 12.4 */
};
/* The library is MSCHED_LIBCUDA, or found by its name. NULL: it is not there, or lacks a function, or does not start:
 * err says which, and what goes without. Thread-safe. */
const struct driver *driver_find(ms_error *err);

/* Whether a call went well; else err has the fault's own code. doing: what was tried, in words. */
bool driver_check(int result, const char *doing, ms_error *err);

enum { DRIVER_MOST_DEVICES = 16 };
/* A device by its number; false: it cannot be asked. */
bool driver_describe(const struct driver *driver, int ordinal, struct jit_device_info *out, ms_error *err);

/* Makes the context of a device this thread's. */
struct jit_device {
  const struct driver *driver;
  int ordinal;
  void *context;
  uint64_t flushed; /* memory that is written to flush its cache; 0: it was not asked for yet */
  size_t flushed_bytes;
  void *stream; /* on which graphs are captured and launched; NULL: none was yet */
  struct pace { /* pace.h */
    void *module, *function;
    uint64_t sums;
    bool tried;
  } pace;
  struct lease { /* lease.h */
    bool opened;
    int file; /* -1: it cannot be */
    uint32_t depth;
  } lease;
  uint64_t turn_began;  /* nvml_others_computed */
  char uncaptured[160]; /* why what was timed last was no graph; "": it was, or is not to be */
};
/* One a device in a process, which keeps it. NULL: err is filled. */
struct jit_device *driver_open(int ordinal, ms_error *err);
bool driver_enter(const struct jit_device *device, ms_error *err);

/* Processes that are not of this one's family (process_is_family) on a device, by NVML (nvml.c). */
struct nvml_others {
  uint32_t count; /* 0: none, or it is not known, as where processes have other numbers here than there */
  uint64_t bytes; /* of the device's memory that they have, as far as that is known */
};
struct nvml_others nvml_others(uint32_t device);
/* Whether such a process computed on the device since a time of the machine's clock, in microseconds since 1970; false:
 * none, or it is not known. */
bool nvml_others_computed(uint32_t device, uint64_t since);

#endif

/* Who times on a device: one process at a time, by a lock on a file that its own end gives back. Internal to jit. */
#ifndef MSCHED_JIT_LEASE_H
#define MSCHED_JIT_LEASE_H

#include "driver.h"

/* Waits until no other process holds it; jit_say_waiting's function is called after a second. Calls within one another
 * count as one. Where no such file can be had, nobody waits. */
void lease_take(struct jit_device *device);
void lease_give(struct jit_device *device);
/* The file of a device, by its UUID, or else its bus: in XDG_RUNTIME_DIR where that is a folder of this user's, else in
 * /tmp. */
void lease_path(const struct jit_device *device, char *out, size_t size);

#endif

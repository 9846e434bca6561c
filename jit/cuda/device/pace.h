/* The pace kernel: a fixed piece of work on one thread of a device, whose cycles and nanoseconds the device counts
 * itself. Between samples of what is timed it says the clock at which that ran: cards are limited in power, and what is
 * timed later runs slower. Internal to jit. */
#ifndef MSCHED_JIT_PACE_H
#define MSCHED_JIT_PACE_H

#include "driver.h"

/* Runs it on a stream, some 50 us; counts add up. false: the device has none, as its driver compiles no PTX. */
bool pace_launch(struct jit_device *device, void *stream);
/* The clock, in hertz, over all launches since it was last asked; 0: not known. Waits for the device. */
double pace_clock(struct jit_device *device);
/* The clock just now, by a launch or a few of their own; 0: not known. Forgets those before. */
double pace_now(struct jit_device *device);

#endif

/* The pace kernel. It waits for the global timer to tick, reads the cycles, adds products in a chain, each of which
 * waits for the one before it, and waits for a tick again: cycles between ticks over nanoseconds between ticks are the
 * clock, however coarse the timer is. One thread of one multiprocessor draws next to no power. As PTX, which the driver
 * compiles.
 * Source: PTX ISA, "Special Registers": %clock64, %globaltimer. */
#include "pace.h"

#include <string.h>

static const char text[] = ".version 6.0\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry msched_pace(.param .u64 sums, .param .u32 rounds) {\n"
                           "  .reg .pred %again;\n"
                           "  .reg .b32 %left;\n"
                           "  .reg .f32 %value, %factor;\n"
                           "  .reg .b64 %at, %before, %begun, %ended, %first, %last, %old;\n"
                           "  ld.param.u64 %at, [sums];\n"
                           "  cvta.to.global.u64 %at, %at;\n"
                           "  ld.param.u32 %left, [rounds];\n"
                           "  cvt.rn.f32.u32 %value, %left;\n"
                           "  mov.f32 %factor, 0f3F000000;\n"
                           "  mov.u64 %before, %globaltimer;\n"
                           "BEGIN:\n"
                           "  mov.u64 %begun, %globaltimer;\n"
                           "  setp.eq.u64 %again, %begun, %before;\n"
                           "  @%again bra BEGIN;\n"
                           "  mov.u64 %first, %clock64;\n"
                           "WORK:\n"
#define FOUR                                                                                                           \
  "  fma.rn.f32 %value, %value, %factor, %factor;\n"                                                                   \
  "  fma.rn.f32 %value, %value, %factor, %factor;\n"                                                                   \
  "  fma.rn.f32 %value, %value, %factor, %factor;\n"                                                                   \
  "  fma.rn.f32 %value, %value, %factor, %factor;\n"
    FOUR FOUR FOUR FOUR
#undef FOUR
                           "  sub.u32 %left, %left, 1;\n"
                           "  setp.ne.u32 %again, %left, 0;\n"
                           "  @%again bra WORK;\n"
                           "  mov.u64 %before, %globaltimer;\n"
                           "END:\n"
                           "  mov.u64 %ended, %globaltimer;\n"
                           "  setp.eq.u64 %again, %ended, %before;\n"
                           "  @%again bra END;\n"
                           "  mov.u64 %last, %clock64;\n"
                           "  sub.u64 %last, %last, %first;\n"
                           "  sub.u64 %ended, %ended, %begun;\n"
                           "  ld.global.u64 %old, [%at];\n"
                           "  add.u64 %old, %old, %last;\n"
                           "  st.global.u64 [%at], %old;\n"
                           "  ld.global.u64 %old, [%at+8];\n"
                           "  add.u64 %old, %old, %ended;\n"
                           "  st.global.u64 [%at+8], %old;\n"
                           "  st.global.f32 [%at+16], %value;\n"
                           "  ret;\n"
                           "}\n";

struct sums {
  uint64_t cycles, nanoseconds, value;
};
static_assert(sizeof(struct sums) == 24, "the kernel adds at 0 and 8, and writes at 16");
static const uint32_t ROUNDS = 1200; /* of 16 additions of 4 cycles: some 50 us at 1.6 GHz */
enum { LAUNCHES = 2 };               /* of pace_now: the first wakes the device */

static bool open_pace(struct jit_device *device) {
  const struct driver *d = device->driver;
  struct pace *p = &device->pace;
  if (p->tried) return p->function != NULL;
  assert(!p->module && !p->function);
  p->tried = true;
  if (d->load(&p->module, text)) return false;
  if (d->function(&p->function, p->module, "msched_pace") || d->allocate(&p->sums, sizeof(struct sums)) ||
      d->fill(p->sums, 0, sizeof(struct sums)))
    p->function = NULL;
  return p->function != NULL;
}

bool pace_launch(struct jit_device *device, void *stream) {
  struct pace *p = &device->pace;
  uint32_t rounds = ROUNDS;
  void *operands[] = {&p->sums, &rounds};
  return open_pace(device) && !device->driver->launch(p->function, 1, 1, 1, 1, 1, 1, 0, stream, operands, NULL);
}

double pace_clock(struct jit_device *device) {
  const struct driver *d = device->driver;
  struct sums sums = {0};
  if (!driver_enter(device, NULL) || !device->pace.function) return 0;
  if (d->download(&sums, device->pace.sums, sizeof sums) || d->fill(device->pace.sums, 0, sizeof sums)) return 0;
  return sums.nanoseconds ? 1e9 * (double)sums.cycles / (double)sums.nanoseconds : 0;
}

double pace_now(struct jit_device *device) {
  if (!driver_enter(device, NULL)) return 0;
  for (int i = 0; i < LAUNCHES; i++) {
    pace_clock(device);
    if (!pace_launch(device, NULL)) return 0;
  }
  return pace_clock(device);
}

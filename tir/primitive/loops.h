/* What the primitives that remake loops share. Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_LOOPS_H
#define MSCHED_TIR_PRIMITIVE_LOOPS_H

#include "../analysis.h"

/* Refuses a loop that has annotations, is bound to a thread, or does not start at zero. */
bool tir_check_plain_loop(struct tir *ir, tir_loop loop, ms_error *err);
/* In the bindings of the blocks below, loops of extent 1 give way to the one value they take. `loop` and those around
 * it count too. */
void tir_drop_unit_iters(struct tir *ir, tir_loop loop);

#endif

/* What the primitives that remake loops share. Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_LOOPS_H
#define MSCHED_TIR_PRIMITIVE_LOOPS_H

#include "../analysis.h"

/* Refuses a loop that has annotations, is bound to a thread, or does not start at zero. */
bool tir_check_plain_loop(struct tir *ir, tir_loop loop, ms_error *err);
/* Brings the bindings of the blocks below into simplest form, as maps of the loops in their scope, where arithmetic alone
 * does not: under predicates, and unless unit iterators are preserved, without the loops of extent 1. */
void tir_simplify_bindings(struct tir *ir, tir_loop loop, bool preserve_unit_iters);
/* Copies of `count` > 0 loops, outermost first, each directly inside the one before it: same ranges, kinds and
 * annotations, new variables named with `suffix` appended. The nest is detached, its innermost body empty. Leaves in the
 * substitution what the old variables have become. */
void tir_copy_nest(struct tir *ir, const tir_loop *loops, uint32_t count, const char *suffix, tir_loop *out);

#endif

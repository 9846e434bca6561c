/* What the primitives that remake loops share. Internal to primitive/. */
#ifndef MSCHED_TIR_PRIMITIVE_LOOPS_H
#define MSCHED_TIR_PRIMITIVE_LOOPS_H

#include "tir/analysis/analysis.h"

/* Refuses a loop that has annotations or is bound to a thread. */
bool tir_check_free_loop(struct tir *ir, tir_loop loop, ms_error *err);
/* Refuses a loop that has annotations, is bound to a thread, or does not start at zero. */
bool tir_check_plain_loop(struct tir *ir, tir_loop loop, ms_error *err);
/* Brings the bindings of the blocks below into simplest form, as maps of the loops in their scope, where arithmetic
 * alone does not: under predicates, and unless unit iterators are preserved, without the loops of extent 1. */
void tir_simplify_bindings(struct tir *ir, tir_loop loop, bool preserve_unit_iters);
/* A guard over unit loops whose bindings do without them is no constraint of an affine map: what follows would not know
 * the bindings for what they were. So primitives that drop unit iterators try it on a copy, `after`, where blocks below
 * `loop` have predicates (a guard), and refuse where a block's bindings are affine no more. */
bool tir_has_guard(const struct tir *ir, tir_loop loop);
bool tir_check_bindings_kept(struct tir *ir, tir_loop loop, struct tir *after, ms_error *err);
/* Copies of `count` > 0 loops, outermost first, each directly inside the one before it: same ranges, kinds and
 * annotations, new variables named with `suffix` appended. The nest is detached, its innermost body empty. Leaves in
 * the substitution what the old variables have become. */
void tir_copy_nest(struct tir *ir, const tir_loop *loops, uint32_t count, const char *suffix, tir_loop *out);
/* Puts the statement, which is detached, into new serial loops over the variables' domains, outermost first. Gives the
 * outermost; the statement, if there are none. */
tir_stmt tir_put_in_loops(struct tir *ir, tir_stmt s, const tir_var *vars, uint32_t count);

/* Refuses a block whose init touches a buffer that the block allocates or matches: elsewhere it is not there. */
bool tir_check_init_buffers(struct tir *ir, tir_block block, ms_error *err);
/* Declares what the init of `block` touches: it writes what the block does, and reads, of the regions that the block
 * reads, those of buffers that `init`, a detached block that holds it, loads; the whole buffer where a region depends
 * on a reduction; so for blocks below the init. In terms of the block's iterations: to be substituted afterwards. */
void tir_take_init_regions(struct tir *ir, tir_block block, tir_block init);
/* A reduction that begins elsewhere reads what it writes. */
void tir_read_what_is_written(struct tir *ir, tir_block block);

#endif

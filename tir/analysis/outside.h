/* What a scope does outside of its blocks, and in which order. Internal to tir.
 *
 * Regions say what blocks use. A scope does more, which no region declares: it stores, evaluates and asks conditions at
 * statements that are in no block of it; and it loads what says how often, where and whether blocks run, in ranges of
 * loops and in bindings and predicates, each time that it comes to them. Here all of that is one list, in order of
 * text. A primitive that moves, adds, divides or copies what runs asks here: of the buffers that it has to do with,
 * whether the scope uses them on the way; of the loops and blocks that it makes others of, whether these would be
 * evaluated where something else is in the buffers by then. */
#ifndef MSCHED_TIR_OUTSIDE_H
#define MSCHED_TIR_OUTSIDE_H

#include "tir/node/arena.h"

struct tir_outside_use {
  tir_stmt at;
  bool reads, writes;
  bool places; /* at a loop or a block: before what is in it runs */
};
/* The next use that the scope makes of the buffer at `top` or below it (TIR_NONE: anywhere), after the one at `after`
 * (TIR_NONE: the first). False: there is none. */
bool tir_next_outside_use(struct tir *ir, tir_block scope, tir_buffer buffer, tir_stmt top, tir_stmt after,
                          struct tir_outside_use *out);
/* The first statement of the scope, after the statement and what is in it, at which it reads the buffer; TIR_NONE:
 * there is none. */
tir_stmt tir_first_load_by_scope(struct tir *ir, tir_buffer buffer, tir_block scope, tir_stmt after);
/* Refuses where the scope loads, for the range of the loop `s` or for the bindings and the predicate of the block `s`,
 * what is written at `top` or below it, by a block or by a scope: evaluated at another time, it may be something
 * else. */
bool tir_check_loads_steady(struct tir *ir, tir_stmt s, tir_stmt top, ms_error *err);
static inline bool tir_check_place_steady(struct tir *ir, tir_stmt s, tir_stmt top, ms_error *err) {
  return !ir->indirect ||
         tir_check_loads_steady(ir, s, top, err); /* where nothing loads, that is seen without a call */
}
/* The same of `s` and all loops around it, up to `top`. */
bool tir_check_places_steady(struct tir *ir, tir_stmt s, tir_stmt top, ms_error *err);

#endif

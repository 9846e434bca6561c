/* The threads of a kernel's blocks: where they come alike, which elements of a buffer each touches by an access, and
 * whether two touch one. Internal to the passes for GPUs. */
#ifndef MSCHED_TIR_FOOTPRINT_H
#define MSCHED_TIR_FOOTPRINT_H

#include "tir/lower/lower.h"

/* A load or a store in a kernel, or a call that may do both anywhere. */
struct lower_use {
  tir_stmt stmt;
  tir_buffer buffer; /* TIR_NONE: any memory */
  bool writes;
  bool anywhere;   /* in the buffer: by a pointer */
  bool elected;    /* by one thread, the same for all of these */
  bool arrives;    /* a TMA bulk tensor copy: who reads what it brings waits for that by other means */
  bool awaits;     /* such a copy that waits, by other means, for MMAs that read what it overwrites */
  bool multiplies; /* of a warp-group MMA */
  tir_expr
      stage_buffer; /* the stage buffer, where it is anywhere in that: lower_stage_buffer_number. TIR_NONE: not known */
  uint32_t count, indices; /* in tir.operands */
};

/* The axes of a block of threads. */
struct lower_threads {
  tir_var var[3];    /* TIR_NONE: no such axis */
  int64_t extent[3]; /* then 1 */
};
/* Of a kernel's nest; *innermost: the last of its loops. */
struct lower_threads lower_threads_of(const struct tir *ir, tir_stmt kernel, tir_stmt *innermost);
/* The outermost statement around s, or s, below `innermost`, that may let some threads of a block in and others not;
 * TIR_NONE: all of a block come to what is in s. */
tir_stmt lower_find_divergence(const struct tir *ir, const struct lower_threads *threads, tir_stmt s,
                               tir_stmt innermost);

/* An expression where a variable is a value, which is cast to its type. */
tir_expr lower_with_value(struct tir *ir, tir_expr e, tir_var v, tir_expr value);

/* All lanes of a warp come to the statement: axis x alone tells them apart. */
bool lower_comes_whole(struct tir *ir, tir_stmt kernel, tir_stmt s);

/* The place of an element, as the buffer lies in memory; TIR_NONE: it is not known. */
tir_expr lower_place_of(struct tir *ir, tir_buffer buffer, const tir_expr *indices);

/* Whether two uses of the same indices, none of which a loop below `around` changes, are one thread's wherever they are
 * of one element: the indices keep threads apart. */
bool lower_is_one_thread(struct tir *ir, const struct lower_threads *threads, const struct lower_use *a,
                         const struct lower_use *b, tir_stmt around);
/* What a touches in one iteration of the loop, and b in the next one, are different stage buffers. */
bool lower_are_apart_in_next(struct tir *ir, const struct lower_threads *threads, const struct lower_use *a,
                             const struct lower_use *b, tir_stmt loop);
/* Whether a thread may touch by `a` what another touches by `b`, both below `around`, whose loops are in one iteration
 * for both; the loop `carried`, if any, and those below may be in any. True unless the opposite is shown: by running
 * through all threads and iterations, where indices are known. Uses of one buffer. */
bool lower_may_meet(struct tir *ir, const struct lower_threads *threads, const struct lower_use *a,
                    const struct lower_use *b, tir_stmt around);

#endif

/* Growing the arrays of a module. Internal to tir.
 *
 * tir_grow_NAME(ir, n) makes room for n more elements of array NAME and returns the index of the first; the caller
 * fills them. A pointer into an array does not outlive a growth of that array. tir_append_NAME(ir, from, n) fills them
 * from n elements, which may lie in the array itself. */
#ifndef MSCHED_TIR_ARENA_H
#define MSCHED_TIR_ARENA_H

#include "tir/tir.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Memory for `size` bytes: what there is on the stack, or where that is too little, allocated, to be freed. */
static inline void *tir_room(void *on_stack, size_t there, size_t size) {
  void *at = size <= there ? on_stack : malloc(size);
  if (!at) abort();
  return at;
}

#define TIR_ARRAY_GROW(type, name)                                                                                     \
  static inline uint32_t tir_grow_##name(struct tir *ir, uint32_t n) {                                                 \
    uint32_t first = ir->name.count;                                                                                   \
    if ((uint64_t)first + n > ir->name.capacity)                                                                       \
      ir->name.at = (type *)tir_enlarge(ir->name.at, &ir->name.capacity, (uint64_t)first + n, sizeof(type));           \
    ir->name.count = first + n;                                                                                        \
    return first;                                                                                                      \
  }                                                                                                                    \
  static inline uint32_t tir_append_##name(struct tir *ir, const type *from, uint32_t n) {                             \
    bool inside = from && from >= ir->name.at && from < ir->name.at + ir->name.count;                                  \
    size_t offset = inside ? (size_t)(from - ir->name.at) : 0;                                                         \
    uint32_t first = tir_grow_##name(ir, n);                                                                           \
    if (n) memcpy(ir->name.at + first, inside ? ir->name.at + offset : from, n * sizeof(type));                        \
    return first;                                                                                                      \
  }
TIR_ARRAYS(TIR_ARRAY_GROW)
#undef TIR_ARRAY_GROW

/* ---- Working memory ---------------------------------------------------------------------------------------------- */

/* Memory that a file keeps in a module from call to call: made, zeroed, when it is first asked for, freed with the
 * module, no part of it. Its layout is its owner's affair; here owners are known by number only. */
enum tir_scratch_owner {
  TIR_SCRATCH_SUBST,  /* subst.c: the map, and what became of each expression while it stands */
  TIR_SCRATCH_LOADS,  /* analysis/loads.c: what became of each expression while loads are rewritten */
  TIR_SCRATCH_FACTS,  /* arith/known.c: what was found of maps of late */
  TIR_SCRATCH_HASHES, /* hash.c: what a walk has met */
  TIR_SCRATCH_SUMS,   /* arith/linear.c: a stack of terms being summed */
  TIR_SCRATCH_INTS,   /* expr.c: constants asked for of late */
  TIR_SCRATCH_MAPS,   /* arith/iter_map.c: the last iterator map */
  TIR_SCRATCH_BACKUP, /* primitive/tensorize.c: the module, while it tries what it may have to take back */
  TIR_SCRATCH_ORDER,  /* stmt.c: the order of the statements of one long list */
  TIR_SCRATCH_PLAIN,  /* analysis/init_cover.c: plain updates found of late */
  TIR_SCRATCH_OWNERS
};
struct tir_scratch_kind {
  size_t size;
  void (*release)(void *); /* frees what the memory holds, not the memory; NULL: it holds nothing */
  /* Expressions go, or become others: all but those before the mark (tir_rewind, tir_copy). NULL: nothing is known of
   * any. */
  void (*forget)(void *, const struct tir_mark *left);
};
struct tir_scratch {
  struct tir_scratch_part {
    void *at; /* NULL: not made yet */
    const struct tir_scratch_kind *kind;
  } of[TIR_SCRATCH_OWNERS];
  uint64_t links; /* how often statements were linked or detached */
};
void *tir_make_scratch(const struct tir *ir, enum tir_scratch_owner owner, const struct tir_scratch_kind *kind)
    __attribute__((cold, returns_nonnull));
/* One owner passes one kind. */
static inline void *tir_scratch_of(const struct tir *ir, enum tir_scratch_owner owner,
                                   const struct tir_scratch_kind *kind) {
  void *at = ir->scratch->of[owner].at;
  return at ? at : tir_make_scratch(ir, owner, kind);
}

/* Takes the exprs from `mark` on out of the table of interned expressions (tir_rewind). */
void tir_unintern(struct tir *ir, uint32_t mark);
void tir_unintern_symbols(struct tir *ir, uint32_t mark);
/* A copy of a block's record for `copy`, whose statement is a copy of `from`'s. */
void tir_copy_block_record(struct tir *ir, tir_block from, tir_block copy);
void tir_forget_undeclared(struct tir *ir, tir_block b); /* it is about to die */
/* A copy of annotations: those of one statement may be changed in place. */
struct tir_span tir_copy_annotations(struct tir *ir, struct tir_span from);

/* As tir_uses_any_var, for callers that keep the variables' mask: bit (variable mod 64) of each. */
bool tir_uses_masked_var(const struct tir *ir, tir_expr e, uint64_t mask, const tir_var *vars, uint32_t count);

/* Substitution in one statement, not in what is below it. A loop whose range changes gets a new variable, which the map
 * then leads to: statements are visited in order of text. */
void tir_subst_one(struct tir *ir, tir_stmt s);
/* Until the map is cleared: comparisons in which something is substituted come out as < and <=, where they stay. */
void tir_subst_order(struct tir *ir);
/* Until the substitution is cleared: variables are only renamed; nothing that follows from their new domains is made
 * simpler. */
void tir_subst_as_is(struct tir *ir);
/* Until the map is cleared: x // c % d, where x becomes a sum of which the quotient gives up terms, is divided first,
 * so that a loop whose variable goes with them is known to read the same elements. Without it the form of iterators
 * stays, as TVM writes it. */
void tir_subst_divide(struct tir *ir);

#endif

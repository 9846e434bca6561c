/* Growing the arrays of a module. Internal to tir.
 *
 * tir_grow_NAME(ir, n) makes room for n more elements of array NAME and returns the index of the first; the caller
 * fills them. A pointer into an array does not outlive a growth of that array. tir_append_NAME(ir, from, n) fills them
 * from n elements, which may lie in the array itself. */
#ifndef MSCHED_TIR_ARENA_H
#define MSCHED_TIR_ARENA_H

#include "tir.h"

#include <assert.h>
#include <string.h>

#define TIR_ARRAY_GROW(type, name)                                                                                     \
  static inline uint32_t tir_grow_##name(struct tir *ir, uint32_t n) {                                                 \
    uint32_t first = ir->name.count;                                                                                   \
    if ((uint64_t)first + n > ir->name.capacity)                                                                       \
      ir->name.at = (type *)tir_enlarge(ir->name.at, &ir->name.capacity, (uint64_t)first + n, sizeof(type));           \
    ir->name.count = first + n;                                                                                        \
    return first;                                                                                                      \
  }                                                                                                                    \
  static inline uint32_t tir_append_##name(struct tir *ir, const type *from, uint32_t n) {                             \
    bool inside = from >= ir->name.at && from < ir->name.at + ir->name.count;                                          \
    size_t offset = inside ? (size_t)(from - ir->name.at) : 0;                                                         \
    uint32_t first = tir_grow_##name(ir, n);                                                                           \
    if (n) memcpy(ir->name.at + first, inside ? ir->name.at + offset : from, n * sizeof(type));                        \
    return first;                                                                                                      \
  }
TIR_ARRAYS(TIR_ARRAY_GROW)
#undef TIR_ARRAY_GROW

/* Hashes of what a walk has met; they hold where `epoch` is the walk's. */
struct tir_hash_slot {
  uint64_t hash;
  uint32_t epoch;
};
struct tir_hash_buffer_slot {
  uint64_t hash;
  uint32_t declared, used, block;
};
struct tir_hash_tables {
  struct tir_hash_slot *exprs, *vars;
  struct tir_hash_buffer_slot *buffers;
  uint32_t expr_capacity, var_capacity, buffer_capacity, epoch;
};

enum { TIR_KEPT_INTS = 256, TIR_KEPT_BINDING = 96 };

/* Working memory, kept from call to call; holds nothing between public calls but what each part says. */
struct tir_scratch {
  struct { /* substitution: the map, and what became of each expression while it stands */
    uint32_t *var_to, *buffer_to;
    uint32_t var_capacity, buffer_capacity;
    uint32_t *changed_vars, *changed_buffers;
    uint32_t changed_var_count, changed_var_capacity, changed_buffer_count, changed_buffer_capacity;
    uint64_t mask;
    bool orders;  /* tir_subst_order */
    bool as_is;   /* tir_subst_as_is */
    unsigned how; /* the way of the last rewriting */
    struct {
      uint32_t epoch, to;
    } * memo;
    uint32_t memo_capacity, epoch;
  } subst;
  struct { /* rewriting of loads: what became of each expression */
    struct {
      uint32_t epoch, to;
    } * memo;
    uint32_t memo_capacity, epoch;
  } loads;
  struct { /* the last bindings under a predicate that were found to be affine: analysis/binding.c */
    uint32_t iters, vars, key[TIR_KEPT_BINDING];
  } affine;
  struct tir_hash_tables hashes; /* of structural hashing (hash.h) */
  struct tir_term *terms;        /* a stack of terms being summed */
  uint32_t term_count, term_capacity;
  tir_expr ints[TIR_KEPT_INTS];  /* constants asked for of late, by value: each is looked at before it is believed */
  struct tir_iter_map *iter_map; /* made when first used: iter_map.h */
  struct tir *backup;            /* of the module, while a primitive tries what it may have to take back */
};

void tir_scratch_free(struct tir_scratch *scratch);
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

#endif

/* Structural hashes of expressions, variables and buffers, as they are met on a walk of a function. Internal to tir.
 *
 * Variables and buffers count by the order in which they are first met, not by name. Sums are hashed by their linear
 * form: the hash of a sum is the sum of the hashes of its terms, so that order and grouping do not matter; operators
 * that commute do so in the hash. */
#ifndef MSCHED_TIR_HASH_H
#define MSCHED_TIR_HASH_H

#include "arena.h"

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

struct tir_hasher {
  const struct tir *ir;
  struct tir_hash_tables *tables;
  uint32_t numbered; /* variables and buffers met so far */
  uint32_t block;    /* number of the block the walk is in */
};

/* Starts a walk: what the tables held is forgotten, at no cost. */
struct tir_hasher tir_hasher_start(const struct tir *ir, struct tir_hash_tables *tables);
void tir_hash_tables_free(struct tir_hash_tables *tables);

static inline uint64_t tir_mix(uint64_t a, uint64_t b) {
  __uint128_t product = (__uint128_t)(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xC2B2AE3D27D4EB4Fu);
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Meets a variable: it gets the next number. Met again, nothing changes. */
void tir_hash_define(struct tir_hasher *h, tir_var v);
uint64_t tir_hash_expr(struct tir_hasher *h, tir_expr e); /* TIR_NONE: 0 */
/* Meets a buffer's declaration, in the block h->block; returns the hash of its type, shape, scope and the like. Its
 * number comes with its first use: the order of declarations in one block does not count. */
uint64_t tir_hash_declare(struct tir_hasher *h, tir_buffer b);
uint64_t tir_hash_buffer(struct tir_hasher *h, tir_buffer b); /* of a use */

/* An expression that is a sum, a difference or a multiple: its hash is linear in its parts. */
bool tir_is_sum(const struct tir *ir, tir_expr e);
bool tir_commutes(enum tir_kind kind);

#endif

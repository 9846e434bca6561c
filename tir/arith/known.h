/* What was found of maps of late. Internal to tir. */
#ifndef MSCHED_TIR_KNOWN_H
#define MSCHED_TIR_KNOWN_H

#include "tir/tir.h"

enum tir_map_fact {
  TIR_FACT_NONE,
  TIR_FACT_AFFINE, /* tir_is_affine_map */
  TIR_FACT_ONCE    /* a bijection, trivial variables aside: tir_takes_steps_once */
};
struct tir_map {
  tir_expr predicate;
  const tir_expr *indices;
  const tir_var *vars;
  uint32_t count, var_count;
};

/* Whether this is one of the last facts that were kept. */
bool tir_is_known_map(const struct tir *ir, enum tir_map_fact fact, const struct tir_map *map);
/* Keeps a fact, in the place of the oldest; one of a large map is not kept. */
void tir_keep_map(struct tir *ir, enum tir_map_fact fact, const struct tir_map *map);

#endif

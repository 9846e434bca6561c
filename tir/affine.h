/* Quasi-affine iterator maps: which tuples of expressions over loop variables are one-to-one, and what they cover.
 * Internal to tir.
 *
 * A map is recognized when each expression is a sum of pieces x // a % b * c of the iterators (or of fused groups of
 * them) that fit together without overlap. Fast for sums of whole variables, which is nearly all that schedules make.
 * Source: the iterator maps of TensorIR (ASPLOS 2023, section 3.3). */
#ifndef MSCHED_TIR_AFFINE_H
#define MSCHED_TIR_AFFINE_H

#include "analysis.h"

enum tir_map_check { TIR_MAP_SURJECTIVE, TIR_MAP_BIJECTIVE, TIR_MAP_ANY };

/* Whether `indices` are independent quasi-affine iterators of `vars` (whose domains are in the table of variables)
 * under `predicate` (TIR_NONE: true). padding_free: the covered space is a box. */
bool tir_detect_iter_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                         tir_expr predicate, enum tir_map_check check, bool simplify_trivial);
/* The same, and the indices rewritten in simplest form. Where the map is not recognized, out is simplified plainly. */
void tir_simplify_iter_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                           uint32_t var_count, tir_expr predicate, enum tir_map_check check, tir_expr *out);
/* Inverse: expressions of each of `vars` in terms of `outputs` (one expression an index). False: not invertible. */
bool tir_inverse_affine_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                            uint32_t var_count, tir_expr predicate, const tir_expr *outputs, tir_expr *var_values);
/* The values an affine map takes while `relaxed` run and the other variables stay: exact ranges. False: not exact.
 * (TVM: EstimateRegionStrictBound; lower bound when `lower`.) */
bool tir_estimate_region(struct tir *ir, const struct tir_range *region, uint32_t rank, const tir_var *relaxed,
                         uint32_t count, tir_expr predicate, bool lower, struct tir_range *out);

#endif

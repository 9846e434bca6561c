/* Quasi-affine iterator maps: which tuples of expressions over loop variables are one-to-one, and what they cover.
 * Internal to tir.
 *
 * A map is recognized when each expression is a sum of pieces x // a % b * c of the iterators (or of fused groups of
 * them) that fit together without overlap. Fast for sums of whole variables, which is nearly all that schedules make.
 * Source: the iterator maps of TensorIR (ASPLOS 2023, section 3.3). */
#ifndef MSCHED_TIR_AFFINE_H
#define MSCHED_TIR_AFFINE_H

#include "tir/node/arena.h"

/* What is asked of a map besides being one:
 *   surjective  the iterators of the result are independent, each runs over a whole interval
 *   bijective   and every variable with more than one value is used, all its values kept apart */
enum tir_map_check { TIR_MAP_SURJECTIVE, TIR_MAP_BIJECTIVE, TIR_MAP_ANY };

/* Common to what follows: `indices` are expressions over `vars`, whose domains are those of the table of variables and
 * must not depend on each other; other variables are symbols. `predicate` (TIR_NONE: true) is a conjunction of
 * comparisons that constrain the variables; a map under a predicate that is none is not recognized. Arrays are the
 * caller's and must not lie in the arena's arrays, as these move. `simplify_trivial`: a variable of one value counts as
 * that value; else it stays an iterator of extent 1. Expressions may be interned; nothing else changes. */

/* What an index of a map runs through: base, base + scale, base + 2 * scale, …; extent values in all. scale TIR_NONE:
 * base alone (then extent is TIR_NONE too). Under predicates that bound parts of a map in odd ways, fewer. */
struct tir_progression {
  tir_expr base, scale, extent;
};

/* Whether `indices` are independent quasi-affine iterators of `vars`. out (may be NULL): `count` progressions.
 * (TVM: DetectIterMap.) */
bool tir_detect_iter_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                         uint32_t var_count, tir_expr predicate, enum tir_map_check check, bool simplify_trivial,
                         struct tir_progression *out);
/* Whether block iterations bound to `indices` have affine bindings: a surjective map each of whose iterators advances
 * by
 * 1. Trivial variables are kept. No variables: true. (TVM: IsAffineBinding.) */
bool tir_is_affine_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                       tir_expr predicate);
/* The indices rewritten in simplest form: equal for all values of `vars` that satisfy the predicate. Where the map is
 * not recognized, out[i] is indices[i]. `out` may be `indices`. True: the indices were found to be an affine map, as by
 * tir_is_affine_map, and are. (TVM: IterMapSimplify.) */
bool tir_simplify_iter_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                           uint32_t var_count, tir_expr predicate, enum tir_map_check check, bool simplify_trivial,
                           tir_expr *out);
/* Inverts a bijective map, trivial variables kept: the value of each variable where the indices are `outputs`, for
 * `points` such tuples one after the other (count outputs each); values[point * var_count + i] is that of vars[i], or
 * TIR_NONE for a variable that no index uses. False: the map is not bijective, or not known to be invertible.
 * (TVM: DetectIterMap and InverseAffineIterMap.) */
bool tir_inverse_affine_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                            uint32_t var_count, tir_expr predicate, const tir_expr *outputs, uint32_t points,
                            tir_expr *values);

/* Index i as outer * inner_extent + inner, where `inner`, within [0, inner_extent), is of the first `inner_count`
 * variables alone and `outer`, within [0, outer_extent), of the others. predicates: of the outer variables, then of the
 * inner ones; together they say what `predicate` said. False: there is no such division, or none is known.
 * (TVM: SubspaceDivide.) */
struct tir_division {
  tir_expr outer, outer_extent, inner, inner_extent;
};
bool tir_divide_map(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                    uint32_t inner_count, tir_expr predicate, bool simplify_trivial, struct tir_division *out,
                    tir_expr predicates[2]);

#endif

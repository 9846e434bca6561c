/* Index maps on expressions: what they make of indices and shapes, and their inverses. Internal to tir. */
#ifndef MSCHED_TIR_INDEX_MAP_H
#define MSCHED_TIR_INDEX_MAP_H

#include "analysis/analysis.h"
#include "arith/affine.h"

enum { TIR_MOST_MAP_RANK = 16 };

/* The results at `args`, one a parameter, in the type of the arguments. As written: nothing is simplified, so that what
 * they pad can be seen. The arguments do not lie in the arena's arrays. */
void tir_map_as_written(struct tir *ir, const struct tir_index_map *map, const tir_expr *args, tir_expr *out);
/* The same, simplified. */
void tir_map_indices(struct tir *ir, const struct tir_index_map *map, const tir_expr *args, tir_expr *out);
/* The least shape that holds all of `indices` (as written, over `vars` and their domains) and what they pad. False: an
 * index has no known bounds, or does not start at 0. (TVM: IndexMap::MapShape.) */
bool tir_mapped_shape(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                      tir_expr *shape);
/* The value of each of `vars` where the indices are `outputs`. False: the indices are no bijection, all of whose
 * variables are kept apart. */
bool tir_invert_bijection(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                          uint32_t var_count, const tir_expr *outputs, tir_expr *values);
/* The same for indices that may leave out some of the outputs' values: *padding is true where the outputs are no image
 * of the variables, TIR_NONE where there are no such. The outputs are variables whose domains are the mapped shape.
 * (TVM: IndexMap::NonSurjectiveInverse.) */
bool tir_invert_padding(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                        uint32_t var_count, const tir_expr *outputs, tir_expr *values, tir_expr *padding);

#endif

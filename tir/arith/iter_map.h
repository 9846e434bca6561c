/* Iterator maps in full: marks, splits and sums. Internal to affine.c and the files iter_*.c.
 *
 *   mark   a whole iterator, [0, extent): a variable (less its minimum), or a sum of splits fused into one iterator
 *   split  a piece of a mark: mark // lower % extent * scale
 *   sum    splits, outermost first, plus a base that no iterator is in
 *
 * Marks and splits are numbered in one workspace that is kept from call to call; a mark is made after all that it is
 * made of. Amounts are expressions, mostly constants. Two marks are the same iterator when their numbers are equal.
 * Source: the iterator maps of TVM's arithmetic analyzer, whose verdicts these follow, padding included. */
#ifndef MSCHED_TIR_ITER_MAP_H
#define MSCHED_TIR_ITER_MAP_H

#include "affine.h"

struct iter_split {
  uint32_t mark;
  tir_expr lower, extent, scale;
};
struct iter_sum {
  uint32_t first, count; /* in splits; never written after */
  tir_expr base;
};
struct iter_mark {
  tir_expr source;  /* the variable's expression; TIR_NONE: the sum */
  tir_expr written; /* the expression of the sum, once it was asked for */
  struct iter_sum sum;
  tir_expr extent;
  tir_type type;
  uint32_t padded_from; /* the mark that this one pads, plus 1; 0: none */
  uint32_t var;         /* of the map's variables, plus 1; 0: none */
  bool loose;           /* of extent 1 inside a constraint: its scale does not matter */
};
/* A fused iterator: the splits it is made of as they stood (flat), and the mark, which starts at `offset`. */
struct iter_fused {
  struct iter_sum flat, structured;
  uint32_t mark;
  tir_expr offset;
  bool constrained;
};
/* How a mark is padded so that all divisions of it leave no rest. */
struct iter_padding {
  uint32_t mark, padded; /* padded: the new mark, plus 1; 0: not yet made */
  tir_expr factor, left;
};
/* A piece of a constrained iterator that is also a piece of the whole: `of` (scale aside) is `to`. */
struct iter_alias {
  struct iter_split of, to;
};
/* A mark of extent 1 that stands in the bound of a constrained mark. */
struct iter_unit {
  uint32_t constrained, unit;
};
struct iter_constraint { /* lower <= iter < upper; TIR_NONE: no bound */
  tir_expr iter, lower, upper;
  uint32_t size;
};

#define ITER_ARRAYS(X)                                                                                                 \
  X(struct iter_split, splits)                                                                                         \
  X(struct iter_mark, marks)                                                                                           \
  X(struct iter_fused, fused)                                                                                          \
  X(struct iter_padding, paddings)                                                                                     \
  X(struct iter_alias, aliases)                                                                                        \
  X(struct iter_unit, units)                                                                                           \
  X(struct iter_constraint, constraints)                                                                               \
  X(struct iter_sum, constrained) /* the flat forms of constrained iterators that have no aliases */                   \
  X(struct iter_sum, indices)     /* the result */                                                                     \
  X(struct iter_sum, values)      /* what each variable is replaced by */                                              \
  X(uint32_t, asked)              /* the indices and variables of the last map, if it still stands */                  \
  X(uint32_t, refuted)            /* all that was asked when last there was no map; empty: nothing, or it went */

struct tir_iter_map {
  struct tir *ir;
  const tir_var *vars;
  uint32_t var_count;
  const tir_expr *given; /* the indices, as they came */
  uint32_t given_count;
  tir_type type; /* of most amounts, with its 0 and 1 */
  tir_expr zero, one;
  uint64_t mask;
  enum tir_map_check check;
  bool pads;          /* the first pass over the indices collects paddings */
  bool needs_padding; /* it found some */
  bool ignores;       /* a constraint was left out of account */
  bool stands;        /* nothing that the last map was made of or gave has gone since; what was asked: */
  bool found, asked_trivial;
  tir_expr asked_predicate;
  bool exact; /* no constraint is left out of account: the indices cover all that their extents say */
#define ITER_ARRAY_FIELD(type, name)                                                                                   \
  struct {                                                                                                             \
    type *at;                                                                                                          \
    uint32_t count, capacity;                                                                                          \
  } name;
  ITER_ARRAYS(ITER_ARRAY_FIELD)
#undef ITER_ARRAY_FIELD
};

#define ITER_ARRAY_ADD(type, name)                                                                                     \
  static inline uint32_t iter_add_##name(struct tir_iter_map *m, type value) {                                         \
    if (m->name.count == m->name.capacity)                                                                             \
      m->name.at = (type *)tir_enlarge(m->name.at, &m->name.capacity, m->name.count + 1ull, sizeof(type));             \
    m->name.at[m->name.count] = value;                                                                                 \
    return m->name.count++;                                                                                            \
  }
ITER_ARRAYS(ITER_ARRAY_ADD)
#undef ITER_ARRAY_ADD

/* ---- iter_map.c ---- */

/* The workspace of a module, with the map of `indices` in it; NULL: they are no map. It lives until the next call. */
struct tir_iter_map *iter_map_detect(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                                     uint32_t var_count, tir_expr predicate, enum tir_map_check check,
                                     bool simplify_trivial);
/* The last map is not to be given again: expressions may go, or it was added to. */
void iter_map_forget(struct tir_iter_map *m);

/* Rewrites an expression as a sum. False: it is none. */
bool iter_rewrite(struct tir_iter_map *m, tir_expr e, struct iter_sum *out);
struct iter_sum iter_constant(const struct tir_iter_map *m, tir_expr base);
struct iter_sum iter_sum_of(struct tir_iter_map *m, struct iter_split split, tir_expr base);

/* ---- iter_constrain.c ---- */

/* The domains of the variables, [min[i], end[i]), which bounds on a variable alone narrow. */
struct iter_domains {
  tir_expr *min, *end;
};
/* Collects the conjuncts of a predicate. False: one is no bound of an iterator. */
bool iter_read_predicate(struct tir_iter_map *m, tir_expr e, struct iter_domains d);
/* Applies them. False: they contradict the form of a map. */
bool iter_constrain(struct tir_iter_map *m);
/* After a check that failed: where groups of iterators are divided, their members become pieces of the group. True: the
 * indices, rewritten, may now be independent. */
bool iter_regroup(struct tir_iter_map *m);

/* ---- iter_fuse.c ---- */

/* Joins splits of one mark that are neighbours, and replaces pieces of constrained iterators. True: something changed.
 */
bool iter_join(struct tir_iter_map *m, struct iter_sum *sum);
/* Writes a sum as one iterator times a scale, plus a base. `early`: splits of one mark that join need no mark of their
 * own. False: it is none. */
bool iter_fuse(struct tir_iter_map *m, struct iter_sum sum, bool early, struct iter_sum *out);
/* The entry of a mark that iter_fuse made. */
struct iter_fused *iter_find_fused(struct tir_iter_map *m, uint32_t mark);
bool iter_same_piece(const struct iter_split *a, const struct iter_split *b); /* whatever the scale */

/* ---- iter_check.c ---- */

/* The iterators of the indices are independent, and cover what the check asks for. */
bool iter_check_mapping(struct tir_iter_map *m);
tir_expr iter_sum_expr(const struct tir_iter_map *m, struct iter_sum sum);
tir_expr iter_split_expr(const struct tir_iter_map *m, struct iter_split split);
/* As tir_inverse_affine_map, one point. */
bool iter_invert(const struct tir_iter_map *m, const tir_expr *outputs, tir_expr *values);

/* ---- affine.c ---- */

enum iter_verdict { ITER_NO, ITER_YES, ITER_UNDECIDED };
/* The short way alone, for a surjective map with trivial iterators simplified; the scale of each index, 0 for a
 * constant. Where it says yes, the indices cover the box between their ends in steps of their scales. */
enum iter_verdict iter_short_cover(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                                   uint32_t var_count, tir_expr predicate, int64_t *scales);
/* As tir_detect_iter_map for such a map, and only if what the indices cover is all of the box of their progressions. */
bool iter_covers_box(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                     tir_expr predicate, struct tir_progression *out);

/* ---- Amounts (iter_amount.c) ---- */

bool iter_holds_iterator(const struct tir_iter_map *m, tir_expr e);
bool iter_same(const struct tir_iter_map *m, tir_expr a, tir_expr b);
bool iter_divides(const struct tir_iter_map *m, tir_expr a, tir_expr b); /* b divides a */
tir_expr iter_ceil_quotient(const struct tir_iter_map *m, tir_expr a, tir_expr b);
bool iter_at_least(const struct tir_iter_map *m, tir_expr a, tir_expr b);
static inline bool iter_is(const struct tir_iter_map *m, tir_expr e, int64_t value) {
  return tir_is_const(m->ir, e, value);
}
static inline tir_expr iter_int(const struct tir_iter_map *m, tir_type type, int64_t value) {
  bool kept = type == m->type && (value == 0 || value == 1);
  return kept ? (value ? m->one : m->zero) : tir_int(m->ir, type, value);
}

#endif

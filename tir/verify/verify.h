/* The verifier: what its files share. Internal to tir.
 *
 * Three passes, each relying on the one before: the storage (verify_storage.c: every index in range, links and lists in
 * step, interned nodes with right facts), the scopes (verify.c: variables, buffers, types, blocks), the regions
 * (verify_region.c: what blocks say they touch covers what they touch). Of a lowered function also the layout of its
 * workspace (verify_workspace.c). */
#ifndef MSCHED_TIR_VERIFY_H
#define MSCHED_TIR_VERIFY_H

#include "tir/analysis/analysis.h"

/* Facts of expressions and linear forms: of those made since. */
bool tir_verify_storage(const struct tir *ir, struct tir_verified since, ms_error *err);
/* expr.c: the node's hash, mask, flags and bounds are what its operands give, and its text is interned here only. */
bool tir_expr_is_consistent(const struct tir *ir, tir_expr e);

/* Where a variable stands while the tree is walked. */
struct var_state {
  bool defined;       /* in scope */
  bool seen;          /* defined somewhere, now or before */
  uint32_t isolation; /* how many blocks with iteration variables were around its definition */
  tir_block iter_of;  /* the block it is an iteration variable of */
};
struct verifier {
  const struct tir *ir;
  ms_error *err;
  struct var_state *vars;
  bool *buffers;          /* by buffer: in scope */
  bool *buffers_seen;     /* by buffer: defined somewhere, now or before */
  uint32_t *expr_seen_at; /* by expression: the stamp when it was last checked */
  uint32_t stamp;         /* grows with each statement, and where a block begins */
  tir_stmt place;
  tir_block block; /* the innermost around `place` */
  uint32_t isolation;
  bool trusts_regions; /* what blocks say they touch is not compared with what they touch */
};

/* Checks an access of the innermost block: `ranges` are indices (extents NULL) or minima and extents in turn. guarded:
 * it may not be reached for all values of the variables around it. */
struct touched {
  tir_buffer buffer;
  const tir_expr *ranges;
  bool region, writes, either, guarded;
  tir_block inner;    /* the block whose iteration variables stand for their bindings, or TIR_NONE */
  tir_expr predicate; /* of the block that is to say so */
};
/* Whether a statement may not be reached for some values of the variables around it: those of blocks and loops further
 * out too, up to `top`, as what a condition leaves of them is all that there is further in. */
bool tir_is_guarded(const struct tir *ir, tir_stmt s, tir_stmt top);
bool tir_verify_touch(struct verifier *v, tir_block block, const struct touched *t);

#endif

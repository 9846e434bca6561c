/* The verifier. Part of tir.h; included from there only. */

/* Checks every invariant of the storage and TensorIR's well-formedness: links, lists, variables defined and in scope,
 * blocks that use nothing of the loops around them but their bindings, regions that cover what the body touches (only
 * what is certainly outside is refused), names of buffers allocated once. Near-linear in the module's size. */
bool tir_verify(const struct tir *ir, ms_error *err);
/* All of that but the regions: what a text from outside must hold before it is scheduled. */
bool tir_verify_scopes(const struct tir *ir, ms_error *err);
/* As tir_verify, or without regions as tir_verify_scopes; of expressions the facts of those alone that were made since
 * the last time: an expression is never changed. */
bool tir_verify_new(struct tir *ir, bool regions, ms_error *err);

/* Whether every reduction of floats of a scheduled module is done in the order in which `original`, the module as it
 * was written, does it: by the same block, over the same iterations, the same ones first, one after the other; so that
 * each result is rounded alike. Refuses (MS_REDUCTION_ORDER) with the block, and the primitive that may have changed
 * it. */
bool tir_check_reduction_order(const struct tir *ir, const struct tir *original, ms_error *err);

/* The first load of a function, in order of text, that is not shown to stay within its buffer. */
struct tir_escape {
  tir_block block;
  tir_buffer buffer;
  uint32_t nth;       /* of the block's loads, from 1 */
  uint32_t dimension; /* from 0 */
  int64_t low, high;  /* what its index can be, as far as is known */
  int64_t extent;
};
bool tir_find_escape(struct tir *ir, tir_func f, struct tir_escape *out); /* false: all stay within */

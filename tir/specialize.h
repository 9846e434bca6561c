/* Functions for given sizes: numbers for variables of shapes, loops that never run. Part of tir.h; included from there
 * only. */

/* Values for variables that no loop or block binds: of parameters' shapes, strides, offsets, and integer parameters. */
struct tir_dim {
  const char *name;
  int64_t value;
};
/* The function alone, in which these variables are numbers, and which has those of its parameters no more that were
 * given. NULL: err says which name it does not have, or what does not hold with these values. Owned by the caller. */
struct tir *tir_specialize(const struct tir *ir, tir_func f, const struct tir_dim *dims, uint32_t count, ms_error *err);
/* Whether an extent is 0 of a loop, a block, or a buffer, but of a parameter that no block uses. */
bool tir_find_empty(const struct tir *ir);
/* Whether an extent of the buffer is 0. */
bool tir_has_no_elements(const struct tir *ir, tir_buffer buffer);
/* The function alone without its loops of extent 0, what is in them, and buffers without elements of its own.
 * Parameters stay. NULL: no block is left, or an extent of 0 is. Owned by the caller. */
struct tir *tir_without_empty(const struct tir *ir, tir_func f);
struct tir_symbol_use {
  tir_var var;
  tir_buffer buffer; /* the first parameter that has it */
  const char *role;  /* there: "extent", "stride", "offset" */
};
/* Variables of parameters' shapes, strides and offsets that are no parameters; their number, at most `most`. */
uint32_t tir_symbolic_variables(const struct tir *ir, tir_func f, struct tir_symbol_use *out, uint32_t most);
/* Names them all and says what to do; their number. */
uint32_t tir_symbolic_text(const struct tir *ir, tir_func f, char *out, size_t size);

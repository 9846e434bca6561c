/* Sums of products, of which those of neighbours become dot products: what dots.c and gpu/dots.c share. */
#ifndef MSCHED_TIR_LOWER_PRODUCTS_H
#define MSCHED_TIR_LOWER_PRODUCTS_H

#include "tir/lower/lower.h"

enum { MOST_PRODUCTS = 64 }; /* a sum of more is left as it is */

/* An element of a buffer of one dimension that is a factor, or the first of those of several lanes. */
struct factor {
  tir_buffer buffer;
  tir_expr index;
  int64_t stride;      /* from lane to lane */
  int64_t offset;      /* that is added to the element; of a constant, its value */
  bool constant;       /* there is no buffer */
  uint8_t shift, mask; /* of a part of a byte: (element >> shift) & mask; mask 0: it is whole */
};
struct product {
  struct factor a, b;
};
struct sum {
  struct lowering *low;
  struct tir *ir;
  tir_type type;
  struct product products[MOST_PRODUCTS];
  tir_expr as_written[MOST_PRODUCTS]; /* of each product; TIR_NONE: it is part of a dot product */
  uint32_t count;
  tir_expr rest; /* what is added besides; TIR_NONE: nothing */
  bool too_many;
};

typedef bool lower_read_factor(const struct sum *s, tir_expr e, struct factor *out); /* false: it is none */
/* Makes a dot product of that product and those behind it, if there are such: adds it to the rest, and takes them out
 * of as_written. */
typedef void lower_join_product(struct sum *s, uint32_t first);

/* Takes the value that a store stores apart, and puts it together again with dot products, where there are any. */
void lower_join_products(struct lowering *low, tir_stmt store, lower_read_factor *read, lower_join_product *join);

/* The product of what stands so far behind the factors of another, in either order; -1: there is none that is left. */
int lower_product_behind(const struct sum *s, struct product first, int64_t by);

#endif

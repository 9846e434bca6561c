/* A copy that threads share out among them, while it is looked at. Internal to pipeline/:
 * tma_index.c, tma_points.c, im2col.c, tma_parts.c, tma_copy.c, each of which calls those before it. */
#ifndef MSCHED_TIR_TMA_COPY_H
#define MSCHED_TIR_TMA_COPY_H

#include "tir/lower/lower.h"

enum { TMA_MOST_VARS = 16, TMA_MOST_CONDITIONS = 16 };

struct tma_variable {
  tir_var var;
  int64_t min, extent, now;
};

struct tma_statement {
  struct tir *ir;
  tir_stmt loop, store; /* the pipelined loop */
  tir_buffer to, from;
  uint32_t to_rank, from_rank;
  int64_t shape[TIR_MOST_RANK]; /* of what it fills */
  tir_expr stored[TIR_MOST_RANK], loaded[TIR_MOST_RANK];
  struct tma_variable vars[TMA_MOST_VARS]; /* its own: of threads, and of the loops in the statement */
  uint32_t var_count;
  tir_expr conditions[TMA_MOST_CONDITIONS]; /* under which it loads */
  uint32_t condition_count, tests;          /* the first so many keep it from storing besides */
  tir_expr pixel;                           /* of im2col mode, the number of the one that is copied; TIR_NONE: none */
  int64_t pixels;                           /* those from this number on lie in no image */
  const char *why;
};

static inline bool tma_refuse(struct tma_statement *c, const char *why) {
  c->why = why;
  return false;
}

static inline bool tma_uses_own(const struct tma_statement *c, tir_expr e) {
  for (uint32_t i = 0; i < c->var_count; i++)
    if (tir_uses_var(c->ir, e, c->vars[i].var)) return true;
  return false;
}

int64_t tma_greatest_divisor(int64_t a, int64_t b);
/* An index of what the copy loads less one of what it stores, or TIR_NONE; TIR_NONE: its own variables decide that. */
tir_expr tma_coordinate(struct tma_statement *c, tir_expr loaded, tir_expr stored);
/* e = outer + inner, of which its own variables decide the second alone; false: it is not known to come apart. */
bool tma_split(struct tma_statement *c, tir_expr e, tir_expr *outer, tir_expr *inner);
/* What is positive where the condition holds, of integers that are compared; TIR_NONE: it is no such condition. */
tir_expr tma_margin(struct tir *ir, tir_expr condition);
/* What is divided, and by which number, in a quotient, or in a sum with one: a + x // m is (a * m + x) // m.
 * TIR_NONE: it is none. */
tir_expr tma_as_quotient(struct tir *ir, tir_expr e, int64_t *by);
/* Fills what im2col mode takes, where rows are pixels that follow one another. */
bool tma_find_pixels(struct tma_statement *c, struct lower_tma_copy *out);

/* Runs through all threads and iterations, from the first on; false: they are too many. */
bool tma_begin(struct tma_statement *c);
bool tma_advance(struct tma_statement *c); /* to the next; false: that was the last */
/* Of integers now, and whether it is known. */
int64_t tma_value(struct tma_statement *c, tir_expr e, bool *known);
/* The element that is stored now; -1: none, or it is not known which. */
int64_t tma_element(struct tma_statement *c, bool *known);
/* Each of so many elements of the buffer is stored. `within`: the conditions that threads and the copy's iterations
 * decide alone. */
bool tma_covers(struct tma_statement *c, const tir_expr *within, uint32_t count, int64_t elements);

/* Makes one dimension of those of the tensor that an index runs through one after the other; false: there are none.
 * stored: also where that is only seen by what the copy stores. */
bool tma_merge_dimensions(struct tma_statement *c, struct lower_tma_copy *out, bool stored);
/* Fills one or several parts, each of as many rows as the others. */
bool tma_find_parts(struct tma_statement *c, struct lower_tma_copy *out);

#endif

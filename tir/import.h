/* Copying expressions and statements from one module into another. Internal to tir.
 *
 * An import is open for a while: what was copied once is found again. Variables and buffers of the source get copies
 * of their own, unless they are mapped first. */
#ifndef MSCHED_TIR_IMPORT_H
#define MSCHED_TIR_IMPORT_H

#include "tir/node/arena.h"

struct tir_import {
  struct tir *to;
  const struct tir *from;
  bool wide;         /* indices become 64 bits wide */
  uint32_t *exprs;   /* by expression of the source: what it has become, or TIR_NONE */
  uint32_t *vars;    /* by variable: an expression */
  uint32_t *buffers; /* by buffer */
  uint32_t *bases;   /* by buffer: accesses are counted from these operands of `to`, one a dimension; or TIR_NONE */
};

void tir_import_open(struct tir_import *import, struct tir *to, const struct tir *from);
void tir_import_close(struct tir_import *import);
/* Maps. `bases`: the indices of the copy where the source's are 0, one for each dimension of `to`, which has as many
 * dimensions as `from` or more: those in front stay at their base. */
void tir_import_map_var(struct tir_import *import, tir_var from, tir_expr to);
void tir_import_map_buffer(struct tir_import *import, tir_buffer from, tir_buffer to, const tir_expr *bases);

tir_expr tir_import_expr(struct tir_import *import, tir_expr e);
tir_buffer tir_import_buffer(struct tir_import *import, tir_buffer b);
struct tir_span tir_import_annotations(struct tir_import *import, struct tir_span span);
/* A copy of the statement and all below it, detached. */
tir_stmt tir_import_stmt(struct tir_import *import, tir_stmt s);

#endif

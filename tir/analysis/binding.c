/* Affine bindings of blocks. Under a predicate that takes the long way, and is asked by instruction after instruction:
 * the last bindings under one that were found to be affine are kept with what that depends on. */
#include "../arith/affine.h"
#include "analysis.h"

#include <stdlib.h>
#include <string.h>

/* What the answer depends on. */
enum { MOST_KEPT = 96 };

struct binding {
  uint32_t on_stack[MOST_KEPT], *at; /* predicate, bindings, variables of the loops around */
  uint32_t iters, vars;
};

static uint32_t size_of(const struct binding *b) { return 1 + b->iters + b->vars; }

static void read_binding(const struct tir *ir, tir_block block, tir_stmt high, struct binding *b) {
  b->iters = tir_block_at(ir, block)->iters.count;
  b->at = b->on_stack;
  uint32_t room = MOST_KEPT > 1 + b->iters ? MOST_KEPT - 1 - b->iters : 0;
  b->vars = tir_loop_vars(ir, block, high, b->at + 1 + b->iters, room);
  if (b->vars > room || !room) {
    b->at = malloc(size_of(b) * sizeof *b->at);
    if (!b->at) abort();
    tir_loop_vars(ir, block, high, b->at + 1 + b->iters, b->vars);
  }
  b->at[0] = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  for (uint32_t i = 0; i < b->iters; i++) b->at[1 + i] = tir_iters(ir, block)[i].binding;
}

static void free_binding(struct binding *b) {
  if (b->at != b->on_stack) free(b->at);
}

static bool is_affine(struct tir *ir, const struct binding *b) {
  return tir_is_affine_map(ir, b->at + 1, b->iters, b->at + 1 + b->iters, b->vars, b->at[0]);
}

/* The last bindings under a predicate that were found to be affine. */
struct kept {
  uint32_t iters, vars, key[MOST_KEPT];
};

static void forget(void *memory) { ((struct kept *)memory)->vars = 0; }

static struct kept *kept_of(const struct tir *ir) {
  static const struct tir_scratch_kind kind = {sizeof(struct kept), NULL, forget};
  return tir_scratch_of(ir, TIR_SCRATCH_BINDINGS, &kind);
}

static bool is_kept(const struct tir *ir, const struct binding *b) {
  const struct kept *k = kept_of(ir);
  return k->iters == b->iters && k->vars == b->vars && !memcmp(k->key, b->at, size_of(b) * sizeof *b->at);
}

static void keep(struct tir *ir, const struct binding *b) {
  struct kept *k = kept_of(ir);
  if (size_of(b) > MOST_KEPT) return;
  k->iters = b->iters;
  k->vars = b->vars;
  memcpy(k->key, b->at, size_of(b) * sizeof *b->at);
}

void tir_keep_affine(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct binding b;
  read_binding(ir, block, TIR_NONE, &b);
#ifdef MSCHED_CHECK
  assert(is_affine(ir, &b) && "bindings in simplest form are as affine as before");
#endif
  if (b.at[0]) keep(ir, &b);
  free_binding(&b);
}

bool tir_is_affine_binding(struct tir *ir, tir_block block, tir_stmt high) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct binding b;
  bool affine = true;
  read_binding(ir, block, high, &b);
  if (b.vars && !(b.at[0] && is_kept(ir, &b))) {
    affine = is_affine(ir, &b);
    if (affine && b.at[0]) keep(ir, &b);
  }
  free_binding(&b);
  return affine;
}

/* Which runs of elements stand at a multiple of their size, so that one instruction may load or store them: a GPU
 * refuses others. Those of tir/lower/gpu/gpu_vectorize.c do; a function may have slices of its own from anywhere.
 *
 * Requires: every buffer begins at a multiple of TIR_BASE_ALIGNMENT. */
#include "emit_cuda.h"

#include <stdlib.h>

enum { ALL = 63 }; /* bits of zero */

struct alignment_search {
  const struct emit_c *e;
  int left; /* nodes that are looked at: what is shared is looked at again */
};

static int lesser(int a, int b) { return a < b ? a : b; }
static int zeros(int64_t x) { return x ? lesser(__builtin_ctzll((uint64_t)x), ALL) : ALL; }

static int trailing_zeros(struct alignment_search *s, tir_expr x);

/* Rounded down or to zero: nothing is rounded where the dividend has as many zeros as the divisor, a power of two. */
static int of_quotient(struct alignment_search *s, const struct tir_expr_node *n) {
  const struct tir *ir = s->e->ir;
  int64_t by = tir_is_int(ir, n->b) ? tir_at(ir, n->b)->imm : 0;
  if (by <= 0 || (by & (by - 1)) != 0) return 0;
  int have = trailing_zeros(s, n->a);
  return have == ALL ? ALL : have > zeros(by) ? have - zeros(by) : 0;
}

/* How many bits of an integer are zero from the lowest on, whatever its variables are. */
static int trailing_zeros(struct alignment_search *s, tir_expr x) {
  const struct tir_expr_node *n = tir_at(s->e->ir, x);
  if (--s->left < 0) return 0;
  switch (n->kind) {
  case TIR_INT_IMM: return zeros(n->imm);
  case TIR_VAR: return s->e->bound[n->ref] ? trailing_zeros(s, s->e->bound[n->ref]) : 0;
  case TIR_CAST: return trailing_zeros(s, n->a);
  case TIR_ADD:
  case TIR_SUB:
  case TIR_MIN:
  case TIR_MAX:
  case TIR_MOD:
  case TIR_FLOORMOD: return lesser(trailing_zeros(s, n->a), trailing_zeros(s, n->b));
  case TIR_MUL: return lesser(trailing_zeros(s, n->a) + trailing_zeros(s, n->b), ALL);
  case TIR_DIV:
  case TIR_FLOORDIV: return of_quotient(s, n);
  default: return 0;
  }
}

bool emit_cuda_is_aligned(const struct emit_c *e, tir_expr index) {
  enum { MOST_NODES = 2000 };
  const struct tir_expr_node *n = tir_at(e->ir, index);
  int lanes = tir_type_lanes(n->type);
  if (lanes == 1) return true;
  assert(n->kind == TIR_RAMP && e->bound);
  struct alignment_search s = {e, MOST_NODES};
  return (lanes & (lanes - 1)) == 0 && trailing_zeros(&s, n->a) >= zeros(lanes);
}

void emit_cuda_note_bound(struct emit_c *e) {
  tir_stmt top = e->ir->funcs.at[e->func].body;
  e->bound = calloc(e->ir->vars.count, sizeof *e->bound);
  if (!e->bound) abort();
  for (tir_stmt s = top; s; s = tir_next(e->ir, s, top)) {
    if (!tir_is(e->ir, s, TIR_BIND)) continue;
    const struct tir_stmt_node *n = tir_as(e->ir, s, TIR_BIND);
    if (tir_type_is_int(tir_type_of(e->ir, n->bind.value))) e->bound[n->bind.var] = n->bind.value;
  }
}

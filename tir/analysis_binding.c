/* Whether a block's bindings are affine iterators of the loops around it.
 *
 * What splits and fusions make is a sum in mixed radix: for i in 8, j in 16, the binding i * 16 + j; each loop stands
 * in one binding. That is decided here from coefficients; the rest by the general iterator maps. */
#include "affine.h"

bool tir_is_trivial_binding(struct tir *ir, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    const struct tir_expr_node *n = tir_at(ir, ir->iters.at[i].binding);
    if (n->kind != TIR_VAR || ir->vars.at[n->ref].kind != TIR_VAR_LOOP) return false;
  }
  return true;
}

enum { MOST_LOOPS = 32 };

/* The loops that bindings are maps of. */
struct domain {
  tir_var vars[MOST_LOOPS];
  int64_t extents[MOST_LOOPS]; /* -1: no constant */
  bool used[MOST_LOOPS];
  uint32_t count;
  uint64_t mask;
};

static bool collect(const struct tir *ir, tir_block block, tir_stmt high, struct domain *d) {
  d->count = 0;
  d->mask = 0;
  uint64_t free_vars = 0;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s && s != high && !tir_is(ir, s, TIR_BLOCK);
       s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    if (d->count == MOST_LOOPS) return false;
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    d->vars[d->count] = n->loop.var;
    d->extents[d->count] = tir_loop_extent(ir, s);
    d->used[d->count++] = false;
    d->mask |= 1ull << (n->loop.var & 63);
    free_vars |= tir_at(ir, n->loop.min)->vars | tir_at(ir, n->loop.extent)->vars;
  }
  return !(free_vars & d->mask); /* ranges that depend on loops are no box */
}

static int find(const struct domain *d, tir_var v) {
  for (uint32_t i = 0; i < d->count; i++)
    if (d->vars[i] == v) return (int)i;
  return -1;
}

struct digit {
  int64_t coefficient, extent;
};

/* The binding's loops, by rising coefficient. False: not a sum of loops that stand nowhere else. */
static int read_digits(struct tir *ir, tir_expr binding, struct domain *d, struct digit *digits) {
  int count = 0;
  struct tir_linear l = tir_linear_of(ir, binding);
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = ir->terms.at[l.first + i];
    const struct tir_expr_node *n = tir_at(ir, t.atom);
    if (!(n->vars & d->mask)) continue;
    int k = n->kind == TIR_VAR ? find(d, n->ref) : -1;
    if (k < 0 && n->kind == TIR_VAR) continue; /* another variable that shares its bit */
    if (k < 0 || d->used[k]) return -1;
    d->used[k] = true;
    struct digit digit = {t.coefficient, d->extents[k]};
    int at = count++;
    for (; at > 0; at--) {
      const struct digit *below = &digits[at - 1];
      bool in_order = below->coefficient < digit.coefficient ||
                      (below->coefficient == digit.coefficient && below->extent <= digit.extent);
      if (in_order) break;
      digits[at] = *below;
    }
    digits[at] = digit;
  }
  return count;
}

static bool is_mixed_radix(const struct digit *digits, int count) {
  int64_t expected = 1;
  for (int i = 0; i < count; i++) {
    if (digits[i].coefficient != expected) return false;
    if (i + 1 < count && (digits[i].extent <= 0 || __builtin_mul_overflow(expected, digits[i].extent, &expected)))
      return false;
  }
  return true;
}

static bool is_plainly_affine(struct tir *ir, tir_block block, struct domain *d) {
  if (tir_stmt_at(ir, block)->block.predicate) return false;
  struct digit digits[MOST_LOOPS];
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = 0; i < iters.count; i++) {
    int count = read_digits(ir, ir->iters.at[iters.first + i].binding, d, digits);
    if (count < 0 || !is_mixed_radix(digits, count)) return false;
  }
  for (uint32_t i = 0; i < d->count; i++)
    if (d->extents[i] == 0) return false;
  return true;
}

bool tir_is_affine_binding(struct tir *ir, tir_block block, tir_stmt high) {
  struct domain d;
  if (!collect(ir, block, high, &d)) return false;
  return d.count == 0 || is_plainly_affine(ir, block, &d);
}

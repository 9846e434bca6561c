/* Threads and loops of a copy, run through one after the other: which element each stores, and from where. */
#include "tma_copy.h"

#include <stdlib.h>

static const int64_t MOST_POINTS = 1 << 17;

int64_t tma_value(struct tma_statement *c, tir_expr e, bool *known) {
  const struct tir_expr_node *n = tir_at(c->ir, e);
  if (n->kind == TIR_INT_IMM) return n->imm;
  if (n->kind == TIR_CAST) return tma_value(c, n->a, known);
  if (n->kind == TIR_NOT) return !tma_value(c, n->a, known);
  if (n->kind == TIR_VAR) {
    for (uint32_t i = 0; i < c->var_count; i++)
      if (c->vars[i].var == n->ref) return c->vars[i].now;
    return *known = false;
  }
  if (n->kind < TIR_ADD || n->kind > TIR_OR) return *known = false;
  int64_t a = tma_value(c, n->a, known), b = tma_value(c, n->b, known), value = 0;
  if (*known) *known = tir_compute((enum tir_kind)n->kind, a, b, &value);
  return value;
}

int64_t tma_element(struct tma_statement *c, bool *known) {
  int64_t element = 0;
  for (uint32_t d = 0; d < c->to_rank; d++) {
    int64_t at = tma_value(c, c->stored[d], known);
    if (at < 0 || at >= c->shape[d]) return -1;
    element = element * c->shape[d] + at;
  }
  return element;
}

bool tma_advance(struct tma_statement *c) {
  for (uint32_t i = 0; i < c->var_count; i++) {
    if (++c->vars[i].now < c->vars[i].min + c->vars[i].extent) return true;
    c->vars[i].now = c->vars[i].min;
  }
  return false;
}

bool tma_begin(struct tma_statement *c) {
  int64_t points = 1;
  for (uint32_t i = 0; i < c->var_count; i++) {
    c->vars[i].now = c->vars[i].min;
    points = c->vars[i].extent < 1 || points > MOST_POINTS ? MOST_POINTS + 1 : points * c->vars[i].extent;
  }
  return points <= MOST_POINTS || tma_refuse(c, "it is too large to be run through");
}

bool tma_covers(struct tma_statement *c, const tir_expr *within, uint32_t count, int64_t elements) {
  int64_t left = elements;
  if (!tma_begin(c)) return false;
  uint8_t *seen = calloc(1, (size_t)elements);
  if (!seen) abort();
  bool known = true;
  do {
    bool stores = true;
    for (uint32_t i = 0; i < count && stores; i++) stores = tma_value(c, within[i], &known) != 0;
    int64_t at = stores ? tma_element(c, &known) : -1;
    if (at >= 0 && !seen[at]) seen[at] = 1, left--;
  } while (known && left && tma_advance(c));
  free(seen);
  return (known && !left) || tma_refuse(c, "it is not shown to fill the whole buffer");
}

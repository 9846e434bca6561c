/* Choices by comparison that compilers made of LLVM merge, though they differ for NaN: users' clang, and NVRTC.
 *
 * `x < y ? y : x` is the larger of two numbers, as `x > y ? x : y` is. Where y is a constant and x is NaN, the first
 * gives x and the second gives y; LLVM takes one of the other, to the same constant, for the inner one (see
 * jit/llvm/clamps.c, where our own use of LLVM is guarded). So what a choice gives that may keep NaN is written so that
 * no compiler looks through it, where the function has another that may give the constant. */
#include "choices.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct choice {
  bool larger, keeps, gives; /* NaN; its constant */
};

static bool is_constant(const struct tir *ir, tir_expr x) {
  const struct tir_expr_node *n = tir_at(ir, x);
  return n->kind == TIR_FLOAT_IMM || (n->kind == TIR_BROADCAST && is_constant(ir, n->a));
}

/* Maxima and minima of floats are choices where a target has no instruction for them; they leave NaN out. */
static bool read_extreme(const struct tir_expr_node *n, struct choice *out) {
  if ((n->kind != TIR_MIN && n->kind != TIR_MAX) || !tir_type_is_float(n->type)) return false;
  *out = (struct choice){.larger = n->kind == TIR_MAX, .gives = true};
  return true;
}

static bool read_choice(const struct tir *ir, tir_expr x, struct choice *out) {
  const struct tir_expr_node *n = tir_at(ir, x);
  if (read_extreme(n, out)) return true;
  bool call = n->kind == TIR_CALL && n->count == 3 && !strcmp(tir_text(ir, n->ref), "if_then_else");
  if (!call && n->kind != TIR_SELECT) return false;
  const tir_expr *parts = call ? tir_operands(ir, n->operands) : &n->a;
  const struct tir_expr_node *by = tir_at(ir, parts[0]);
  bool negated = false;
  for (; by->kind == TIR_NOT || by->kind == TIR_BROADCAST; by = tir_at(ir, by->a)) negated ^= by->kind == TIR_NOT;
  bool more = by->kind == TIR_GT || by->kind == TIR_GE, less = by->kind == TIR_LT || by->kind == TIR_LE;
  if ((!more && !less) || !tir_type_is_float(tir_type_of(ir, by->a))) return false;
  tir_expr chosen = parts[1 + negated], other = parts[2 - negated]; /* where the comparison holds, and where not */
  bool straight = by->a == chosen && by->b == other;
  if (!straight && !(by->a == other && by->b == chosen)) return false;
  *out =
      (struct choice){.larger = more == straight, .keeps = !is_constant(ir, other), .gives = !is_constant(ir, chosen)};
  return true;
}

struct choice_search {
  const struct tir *ir;
  bool *met; /* by expression */
  struct jit_choices found;
};

static bool look(void *data, tir_expr x) {
  struct choice_search *search = data;
  struct choice c;
  if (search->met[x]) return false;
  search->met[x] = true;
  if (read_choice(search->ir, x, &c) && c.gives) search->found.giving[c.larger]++;
  return true;
}

struct jit_choices jit_choices_of(const struct tir *ir, tir_func f) {
  struct choice_search search = {.ir = ir, .met = calloc(ir->exprs.count, sizeof *search.met)};
  tir_stmt body = ir->funcs.at[f].body;
  assert(search.met);
  for (tir_stmt s = tir_next(ir, body, body); s; s = tir_next(ir, s, body)) {
    tir_expr own[4];
    for (uint32_t i = tir_stmt_exprs(ir, s, own); i-- > 0;)
      if (own[i]) tir_walk_expr(ir, own[i], look, &search);
  }
  free(search.met);
  return search.found;
}

bool jit_is_merged(const struct tir *ir, const struct jit_choices *all, tir_expr x) {
  struct choice c;
  if (!all->giving[0] && !all->giving[1]) return false;
  return read_choice(ir, x, &c) && c.keeps && all->giving[c.larger] > c.gives;
}

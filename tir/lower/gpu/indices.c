/* Indices: what is computed to find an element, and the loops that this uses, take 32 bits where no part of it needs
 * more; and the function says whether any is left that does: attribute "index_bits", 32 or 64.
 * Requires: buffers of one dimension. Gives: loops of 32 bits where their range has no more; the attribute. Keeps:
 * everything else: values that are stored keep their type. A GPU's integers of 64 bits are pairs of registers. */
#include "tir/lower/lower.h"
#include "tir/node/node_map.h"

static bool fits(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->lo >= INT32_MIN && n->hi <= INT32_MAX;
}

static bool is_wide(tir_type t) { return tir_type_code(t) == TIR_INT && tir_type_bits(t) == 64; }

struct narrowing {
  struct tir *ir;
  struct tir_node_map made; /* of each node: in 32 bits, or TIR_NONE */
  bool any_wide;            /* an index needs more */
};

static tir_expr narrow(struct narrowing *w, tir_expr e);

static tir_expr narrow_ramp(struct narrowing *w, struct tir_expr_node n) {
  struct tir *ir = w->ir;
  int lanes = tir_type_lanes(n.type);
  tir_expr last = tir_add(ir, n.a, tir_mul(ir, n.b, tir_int(ir, tir_type_of(ir, n.b), lanes - 1)));
  tir_expr base = narrow(w, n.a), stride = narrow(w, n.b);
  return base && stride && fits(ir, last) ? tir_ramp(ir, base, stride, lanes) : TIR_NONE;
}

/* The same value in 32 bits, each part of it too. */
static tir_expr narrow_node(struct narrowing *w, tir_expr e) {
  struct tir *ir = w->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_RAMP) return narrow_ramp(w, n);
  if (n.kind == TIR_BROADCAST) {
    tir_expr a = narrow(w, n.a);
    return a ? tir_unary(ir, TIR_BROADCAST, tir_type_with_lanes(TIR_T_I32, tir_type_lanes(n.type)), a) : TIR_NONE;
  }
  if (!fits(ir, e)) return TIR_NONE;
  if (n.kind == TIR_INT_IMM) return tir_int(ir, TIR_T_I32, n.imm);
  if (n.kind == TIR_CAST) return tir_type_of(ir, n.a) == TIR_T_I32 ? n.a : TIR_NONE;
  if (n.kind < TIR_ADD || n.kind > TIR_MAX) return TIR_NONE;
  tir_expr a = narrow(w, n.a), b = narrow(w, n.b);
  return a && b ? tir_binary(ir, (enum tir_kind)n.kind, a, b) : TIR_NONE;
}

static tir_expr narrow(struct narrowing *w, tir_expr e) {
  bool fresh;
  if (!is_wide(tir_type_of(w->ir, e))) return tir_type_bits(tir_type_of(w->ir, e)) == 32 ? e : TIR_NONE;
  tir_expr known = *tir_node_map_at(&w->made, e, 0, &fresh);
  if (!fresh) return known;
  tir_expr made = narrow_node(w, e);
  assert(!made || tir_type_bits(tir_type_of(w->ir, made)) == 32);
  return *tir_node_map_at(&w->made, e, 0, &fresh) = made;
}

static bool narrow_access(struct tir *ir, void *data, struct access *a) {
  struct narrowing *w = data;
  bool changed = false;
  for (uint32_t d = 0; d < a->count; d++) {
    if (!is_wide(tir_type_of(ir, a->indices[d]))) continue;
    tir_expr made = narrow(w, a->indices[d]);
    w->any_wide |= !made;
    if (made) a->indices[d] = made, changed = true;
  }
  return changed;
}

/* A comparison of what fits is one of 32 bits. */
static void narrow_condition(struct narrowing *w, tir_stmt test) {
  struct tir *ir = w->ir;
  struct tir_expr_node n = *tir_at(ir, tir_as(ir, test, TIR_IF)->test.condition);
  if (n.kind < TIR_EQ || n.kind > TIR_GE || !is_wide(tir_type_of(ir, n.a))) return;
  tir_expr a = narrow(w, n.a), b = narrow(w, n.b);
  if (a && b) tir_as(ir, test, TIR_IF)->test.condition = tir_binary(ir, (enum tir_kind)n.kind, a, b);
}

static void narrow_loop(struct narrowing *w, tir_stmt loop) {
  struct tir *ir = w->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct tir_var_node v = ir->vars.at[n.loop.var];
  if (!is_wide(v.type)) return;
  tir_expr min = narrow(w, n.loop.min), extent = narrow(w, n.loop.extent);
  if (!min || !extent || !fits(ir, v.expr)) {
    w->any_wide = true;
    return;
  }
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, v.name, TIR_T_I32, min, extent);
  assert(tir_type_of(ir, min) == TIR_T_I32 && tir_type_of(ir, extent) == TIR_T_I32);
  tir_subst_var(ir, n.loop.var, tir_unary(ir, TIR_CAST, v.type, tir_var_expr(ir, var)));
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  struct tir_stmt_node *to = tir_stmt_at(ir, loop);
  to->loop.var = var, to->loop.min = min, to->loop.extent = extent;
}

bool lower_indices(struct lowering *low) {
  struct tir *ir = low->ir;
  struct narrowing w = {.ir = ir};
  tir_node_map_init(&w.made);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_LOOP)) narrow_loop(&w, s);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_IF)) narrow_condition(&w, s);
  lower_rewrite(ir, low->body, narrow_access, &w);
  tir_node_map_free(&w.made);
  struct tir_span attrs = ir->funcs.at[low->func].attrs;
  tir_annotate_span(ir, &attrs, tir_symbol_of(ir, LOWER_INDEX_BITS), tir_int(ir, TIR_T_I32, w.any_wide ? 64 : 32));
  ir->funcs.at[low->func].attrs = attrs;
  return true;
}

/* Accesses that can leave their buffers.
 *
 * An index is within its extent if that can be shown for all values of the variables around it, given the conditions of
 * the if_then_else around the access: the operand that is not chosen is not computed. A Select computes both. */
#include "tir/analysis/loads.h"
#include "tir/arith/bounds.h"
#include "tir/arith/linear.h"

struct escape_search {
  struct tir *ir;
  struct tir_escape *out;
  bool found;
  tir_block block; /* that is walked */
  uint32_t met;    /* loads in it so far, in order of text */
};

/* Where `condition` does not hold; TIR_NONE where that says nothing that a proof could use. */
static tir_expr opposite(struct tir *ir, tir_expr condition) {
  struct tir_expr_node n = *tir_at(ir, condition);
  if (n.kind != TIR_OR) return n.kind == TIR_AND ? TIR_NONE : tir_not(ir, condition);
  return tir_and(ir, opposite(ir, n.a), opposite(ir, n.b));
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* Narrows the bounds of `index` by what a conjunction says of it as it stands: an index that was loaded is nothing that
 * proofs look into. */
static void narrow(const struct tir *ir, tir_expr given, tir_expr index, struct tir_bounds *b) {
  if (!given) return;
  struct tir_expr_node n = *tir_at(ir, given);
  if (n.kind == TIR_AND) {
    narrow(ir, n.a, index, b);
    narrow(ir, n.b, index, b);
  }
  if (n.kind < TIR_EQ || n.kind > TIR_GE || n.kind == TIR_NE || (n.a != index && n.b != index)) return;
  bool left = n.a == index, less = n.kind == TIR_LT || n.kind == TIR_LE, strict = n.kind == TIR_LT || n.kind == TIR_GT;
  struct tir_bounds other = tir_bounds_of(ir, left ? n.b : n.a);
  if (n.kind == TIR_EQ || less == left) b->hi = least(b->hi, tir_sat_add(other.hi, strict ? -1 : 0));
  if (n.kind == TIR_EQ || less != left) b->lo = most_of(b->lo, tir_sat_add(other.lo, strict ? 1 : 0));
}

static void check_load(struct escape_search *s, const struct tir_expr_node *load, tir_expr given) {
  struct tir *ir = s->ir;
  for (uint32_t d = 0; d < load->count && !s->found; d++) {
    tir_expr index = tir_operands(ir, load->operands)[d];
    tir_expr extent = tir_operands(ir, tir_buffer_at(ir, load->ref)->shape)[d];
    if (!tir_is_int(ir, extent) || tir_at(ir, index)->kind == TIR_RAMP) continue;
    tir_type type = tir_type_of(ir, index);
    int64_t most = tir_at(ir, extent)->imm - 1;
    struct tir_bounds b = tir_bounds_of(ir, index);
    narrow(ir, given, index, &b);
    if (b.lo < 0 && tir_prove_under(ir, given, tir_make(ir, TIR_LE, tir_int(ir, type, 0), index))) b.lo = 0;
    if (b.hi > most && tir_prove_under(ir, given, tir_make(ir, TIR_LE, index, tir_int(ir, type, most)))) b.hi = most;
    if (b.lo >= 0 && b.hi <= most) continue;
    s->found = true;
    *s->out = (struct tir_escape){s->block, load->ref, s->met, d, b.lo, b.hi, most + 1};
  }
}

static void check_value(struct escape_search *s, tir_expr e, tir_expr given);

/* Where one of several conditions holds, the value is looked at under each of them. */
static void check_under(struct escape_search *s, tir_expr e, tir_expr given, tir_expr condition) {
  struct tir_expr_node n = {0};
  if (condition) n = *tir_at(s->ir, condition);
  if (n.kind != TIR_OR) return check_value(s, e, condition ? tir_and(s->ir, given, condition) : given);
  uint32_t met = s->met;
  check_under(s, e, given, n.a);
  if (s->found) return;
  s->met = met;
  check_under(s, e, given, n.b);
}

static void check_value(struct escape_search *s, tir_expr e, tir_expr given) {
  if (e == TIR_NONE || s->found) return;
  struct tir_expr_node n = *tir_at(s->ir, e);
  if (n.kind == TIR_INT_IMM || n.kind == TIR_FLOAT_IMM) return;
  if (tir_is_choice(s->ir, &n)) {
    tir_expr condition = tir_operands(s->ir, n.operands)[0];
    check_value(s, condition, given);
    check_under(s, tir_operands(s->ir, n.operands)[1], given, condition);
    check_under(s, tir_operands(s->ir, n.operands)[2], given, opposite(s->ir, condition));
    return;
  }
  if (n.kind == TIR_LOAD) {
    s->met++;
    check_load(s, &n, given);
  }
  check_value(s, n.a, given);
  check_value(s, n.b, given);
  check_value(s, n.c, given);
  for (uint32_t i = 0; i < n.count; i++) check_value(s, tir_operands(s->ir, n.operands)[i], given);
}

static tir_block block_around(const struct tir *ir, tir_stmt at) {
  while (at && !tir_is(ir, at, TIR_BLOCK)) at = tir_stmt_at(ir, at)->parent;
  return at;
}

bool tir_find_escape(struct tir *ir, tir_func f, struct tir_escape *out) {
  assert(tir_is_func(ir, f));
  tir_stmt body = ir->funcs.at[f].body;
  struct tir_mark mark = tir_mark(ir);
  struct escape_search s = {.ir = ir, .out = out};
  for (tir_stmt at = body; at && !s.found; at = tir_next(ir, at, body)) {
    struct tir_stmt_node n = *tir_stmt_at(ir, at);
    if (n.kind != TIR_STORE && n.kind != TIR_BIND) continue;
    tir_block block = block_around(ir, at);
    if (block != s.block) s.met = 0;
    s.block = block;
    check_value(&s, n.kind == TIR_STORE ? n.store.value : n.bind.value, TIR_NONE);
  }
  tir_rewind(ir, &mark);
  return s.found;
}

/* Reading a sketch for the analytical model: what the store of a block touches, and what it computes. */
#include "analytical.h"

#include <string.h>

struct walk {
  struct tir *ir;
  const struct search_machine *machine;
  const bool *constant; /* of each buffer */
  struct model_nest *nest;
  tir_block block;
  double conversions; /* between floats, as multiply-adds of a GPU */
};

/* Another load of what is read already: a tap, unless it is the same. */
static void read_tap(struct tir *ir, struct model_access *a, const tir_expr *indices, tir_expr load) {
  for (uint32_t i = 0; i < a->taps; i++)
    if (a->tap_loads[i] == load) return;
  if (!load || a->taps == MODEL_TAPS) return;
  for (uint32_t d = 0; d < a->rank; d++) {
    int64_t at = tir_linear_of(ir, indices[d]).constant;
    if (!a->taps || at < a->first[d]) a->first[d] = at;
    if (!a->taps || at > a->last[d]) a->last[d] = at;
  }
  a->tap_loads[a->taps++] = load;
}

/* Whether an index has the remainder to a quotient, alone or as a part of a sum. */
static bool has_remainder(struct tir *ir, tir_expr index, const struct tir_expr_node *quotient) {
  struct tir_linear l = tir_linear_of(ir, index);
  for (uint32_t t = 0; t < l.count; t++) {
    const struct tir_expr_node *other = tir_at(ir, tir_terms(ir, l)[t].atom);
    if (other->kind == TIR_FLOORMOD && other->a == quotient->a && other->b == quotient->b) return true;
  }
  return false;
}

/* How far the quotient of a variable goes when it rises by one: about as far. Where another dimension has the
 * remainder, as neighbours in dot products and columns of tiles lie, it goes on by its part. */
static double quotient_moved(struct tir *ir, const struct model_access *a, const tir_expr *indices,
                             struct tir_expr_node n) {
  for (uint32_t d = a->rank; d-- > 0;)
    if (has_remainder(ir, indices[d], &n) || (d + 1 == a->rank && a->rank > 1 && tir_is_const(ir, n.b, a->extents[d])))
      return 1.0 / (double)tir_at(ir, n.b)->imm;
  return 1;
}

/* Whether e rises or falls by one when the variable does; the constant in it. */
static bool goes_by_one(struct tir *ir, tir_expr e, tir_var v, int64_t *constant) {
  struct tir_linear l = tir_linear_of(ir, e);
  int64_t by = 0;
  for (uint32_t t = 0; t < l.count; t++) {
    struct tir_term term = tir_terms(ir, l)[t];
    if (term.atom == tir_var_expr(ir, v))
      by += term.coefficient;
    else if (tir_uses_var(ir, term.atom, v))
      return false;
  }
  *constant = l.constant;
  return by == 1 || by == -1;
}

/* How a variable stands in an index: as it is, or divided by a constant. Returns how far the atom goes when it rises by
 * one. */
static double read_atom(struct tir *ir, struct model_access *a, const tir_expr *indices, tir_expr atom, tir_var v,
                        uint32_t iter) {
  const struct tir_expr_node n = *tir_at(ir, atom); /* linear forms add expressions */
  bool divides = (n.kind == TIR_FLOORDIV || n.kind == TIR_FLOORMOD) && tir_is_int(ir, n.b);
  int64_t *by = n.kind == TIR_FLOORDIV ? a->quotients : a->remainders;
  int64_t divisor = divides ? tir_at(ir, n.b)->imm : 0, constant = 0;
  if (divisor > 0 && (!by[iter] || by[iter] == divisor) && goes_by_one(ir, n.a, v, &constant)) {
    by[iter] = divisor;
    a->shifted[iter] |= constant % divisor != 0;
  } else {
    a->whole[iter] = true;
  }
  bool quotient = divides && n.kind == TIR_FLOORDIV && n.a == tir_var_expr(ir, v);
  return quotient ? quotient_moved(ir, a, indices, n) : 1;
}

/* Whether a term is the group of a variable, of several channels, beside another term, the channel: a GPU's tiles stay
 * within one group (rules/rule/multi_level_tiling.lua), so that nothing of the index moves with the variable. */
static bool is_group(const struct walk *w, const struct tir_linear *l, struct tir_term term, tir_var v) {
  const struct tir_expr_node *n = tir_at(w->ir, term.atom);
  bool divides = n->kind == TIR_FLOORDIV && n->a == tir_var_expr(w->ir, v);
  return divides && term.coefficient > 1 && l->count > 1 && w->machine->gpu.sms > 0;
}

/* Whether an atom goes on where a quotient does: it is one, or its remainder. */
static bool is_quotient(const struct tir *ir, tir_expr atom) {
  const struct tir_expr_node *n = tir_at(ir, atom);
  return n->kind == TIR_FLOORDIV || (n->kind == TIR_FLOORMOD && tir_at(ir, n->a)->kind == TIR_FLOORDIV);
}

/* load: the expression that reads it; 0: it is written. */
static void read_access(const struct walk *w, tir_buffer buffer, const tir_expr *indices, tir_expr load) {
  struct tir *ir = w->ir;
  struct model_nest *nest = w->nest;
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  bool written = !load;
  for (uint32_t i = 0; i < nest->access_count; i++) {
    if (nest->accesses[i].buffer != buffer) continue;
    nest->accesses[i].written |= written;
    read_tap(ir, &nest->accesses[i], indices, load);
    return;
  }
  if (nest->access_count == MODEL_ACCESSES || b->rank > MODEL_RANK) return;
  struct model_access *a = &nest->accesses[nest->access_count++];
  *a = (struct model_access){.buffer = buffer, .written = written, .rank = b->rank, .passed = b->where != TIR_NONE};
  a->bytes = (tir_type_bits(b->type) + 7) / 8;
  a->constant = w->constant[buffer];
  a->passed = a->passed && !a->constant;
  enum tir_memory memory = tir_buffer_memory(ir, buffer);
  a->memory = memory == TIR_BLOCK_MEMORY ? MODEL_SHARED : memory == TIR_DEVICE_MEMORY ? MODEL_DEVICE : MODEL_LOCAL;
  int64_t stride = 1;
  for (uint32_t d = b->rank; d-- > 0; stride *= a->extents[d]) {
    tir_expr extent = tir_operands(ir, tir_buffer_at(ir, buffer)->shape)[d];
    a->extents[d] = tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : 1;
    struct tir_linear l = tir_linear_of(ir, indices[d]);
    for (uint32_t t = 0; t < l.count; t++) {
      struct tir_term term = tir_terms(ir, l)[t];
      for (uint32_t k = 0; k < nest->iter_count; k++) {
        tir_var v = tir_iters(ir, w->block)[k].var;
        if (!tir_uses_var(ir, term.atom, v) || is_group(w, &l, term, v)) continue;
        double moved = read_atom(ir, a, indices, term.atom, v, k);
        a->moves[d][k] += (double)term.coefficient * (term.atom == tir_var_expr(ir, v) ? 1 : moved);
        if (!is_quotient(ir, term.atom)) a->steps[k] += term.coefficient * stride;
      }
    }
    for (uint32_t k = 0; k < nest->iter_count; k++) a->moved[d] |= (uint32_t)(a->moves[d][k] != 0) << k;
    a->iters |= a->moved[d];
  }
  read_tap(ir, a, indices, load);
}

static void count_branch(struct walk *w, tir_expr condition) {
  const struct tir *ir = w->ir;
  w->nest->inside *= model_part_inside(ir, w->block, w->nest, condition);
  w->nest->branches++;
  for (uint32_t k = 0; k < w->nest->iter_count; k++)
    if (tir_uses_var(ir, condition, tir_iters(ir, w->block)[k].var)) w->nest->decides |= 1u << k;
}

static bool is_choice(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == TIR_CALL && n->count == 3 && !strcmp(tir_text(ir, n->ref), "if_then_else");
}

/* Whether a CPU widens elements of 8 or 16 bits, which is an instruction of its own; a GPU's reading of them is counted
 * elsewhere. */
static bool widens(const struct walk *w, const struct tir_expr_node *cast) {
  tir_type from = tir_type_of(w->ir, cast->a);
  return w->machine->gpu.sms < 1 && tir_type_bits(from) <= 16 && tir_type_bits(from) > 1 &&
         tir_type_bits(cast->type) > tir_type_bits(from);
}

/* Multiply-adds in the time of which a GPU converts between floats: one to short ones, two at once at half the rate, or
 * from 16 bits, and two from 8. By machine code of attention. */
static double conversion_of(const struct tir *ir, const struct tir_expr_node *cast) {
  tir_type from = tir_type_of(ir, cast->a);
  if (!tir_type_is_float(from) || !tir_type_is_float(cast->type)) return 0;
  int bits = tir_type_bits(from);
  return bits == tir_type_bits(cast->type) ? 0 : bits == 8 ? 2 : 1;
}

/* A product that is added is a multiply-add: the addition counts, and the product not again. */
static void count_operation(struct walk *w, tir_expr e) {
  const struct tir *ir = w->ir;
  struct model_nest *nest = w->nest;
  const struct tir_expr_node *n = tir_at(ir, e);
  switch (n->kind) {
  case TIR_ADD:
  case TIR_SUB: nest->simple += 1 - (tir_at(ir, n->a)->kind == TIR_MUL || tir_at(ir, n->b)->kind == TIR_MUL); break;
  case TIR_MUL:
  case TIR_MIN:
  case TIR_MAX:
  case TIR_SELECT: nest->simple++; break;
  case TIR_CAST: /* of what is computed; of a load, see read_widened */
    nest->simple += widens(w, n);
    w->conversions += conversion_of(ir, n);
    break;
  case TIR_DIV: nest->divisions++; break;
  case TIR_CALL:
    if (is_choice(ir, e))
      count_branch(w, tir_operands(ir, n->operands)[0]);
    else if (!strcmp(tir_text(ir, n->ref), "fabs"))
      nest->simple++;
    else
      nest->calls++;
    break;
  default: break;
  }
}

static bool read_load(void *data, tir_expr e);

/* What a name stands for, as the results of reductions of pairs have them. */
static void read_bound(struct walk *w, tir_var var) {
  struct tir *ir = w->ir;
  for (tir_stmt s = w->block; s; s = tir_next(ir, s, w->block))
    if (tir_is(ir, s, TIR_BIND) && tir_as(ir, s, TIR_BIND)->bind.var == var)
      tir_walk_expr(ir, tir_as(ir, s, TIR_BIND)->bind.value, read_load, w);
}

static void set_widened(struct model_access *a, bool in_copy) {
  a->in_copy = in_copy && a->passed;
  a->widened = !a->in_copy;
}

/* Reads a load that a CPU widens, or one that a condition guards: as often as it is loaded, not for each result. */
static bool read_widened(struct walk *w, tir_expr cast) {
  struct tir *ir = w->ir;
  struct model_nest *nest = w->nest;
  tir_expr from = tir_at(ir, cast)->a;
  if (!widens(w, tir_at(ir, cast))) return false;
  tir_expr load = is_choice(ir, from) ? tir_operands(ir, tir_at(ir, from)->operands)[1] : from;
  if (tir_at(ir, load)->kind != TIR_LOAD) return false;
  tir_buffer buffer = tir_at(ir, load)->ref;
  tir_walk_expr(ir, from, read_load, w);
  bool in_copy = tir_type_is_float(tir_type_of(ir, load)); /* where it is stored (tir/lower/memory/widen.c) */
  for (uint32_t i = 0; i < nest->access_count; i++)
    if (nest->accesses[i].buffer == buffer) set_widened(&nest->accesses[i], in_copy);
  return true;
}

static bool read_load(void *data, tir_expr e) {
  struct walk *w = data;
  struct tir *ir = w->ir;
  const struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_CAST && read_widened(w, e)) return false;
  if (n.kind == TIR_VAR && w->machine->gpu.sms > 0) read_bound(w, n.ref);
  if (n.kind != TIR_LOAD) {
    count_operation(w, e);
    if (!is_choice(ir, e)) return true;
    for (uint32_t i = 1; i < n.count; i++) tir_walk_expr(ir, tir_operands(ir, n.operands)[i], read_load, w);
    return false; /* what decides it is no arithmetic of the element */
  }
  tir_expr indices[MODEL_RANK];
  if (n.count > MODEL_RANK) return false;
  memcpy(indices, tir_operands(ir, n.operands), n.count * sizeof *indices);
  read_access(w, n.ref, indices, e);
  return false;
}

double model_read_accesses(const struct search_estimator *d, struct tir *ir, const bool *constant,
                           struct model_nest *nest, tir_block block, tir_stmt store) {
  struct walk w = {ir, &d->machine, constant, nest, block, 0};
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
  tir_expr indices[MODEL_RANK];
  assert(nest->access_count == 0 && n.kind == TIR_STORE && rank <= MODEL_RANK);
  memcpy(indices, tir_operands(ir, n.store.indices), rank * sizeof *indices);
  read_access(&w, n.store.buffer, indices, 0);
  tir_walk_expr(ir, n.store.value, read_load, &w);
  return w.conversions;
}

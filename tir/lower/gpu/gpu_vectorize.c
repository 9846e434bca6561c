/* Vectors: a vectorized loop of a kernel stays one where the machine has each access along it: elements side by side, a
 * power of two of them, the first at a multiple of that many; of its narrowest type no more bytes than the machine's
 * widest access, of others a few accesses. Elsewhere its iterations are unrolled.
 *
 *   for v in vectorized(4): if 4 * t + v < 468: S[4 * t + v] = A[9 * t + v]     t * 9 is no multiple of 4: unrolled
 *   S[(4 * t + v) // 12, (4 * t + v) % 12]  becomes  S[4 * t // 12, 4 * t % 12 + v], as a fused copy of rows has it
 *
 *   for v in unrolled(2): O[8 * p + 2 * t + v] = cast(C[2 * p + v] / M[q])      of a fragment's elements: vectorized
 *
 * Requires: no blocks; kernels. Gives: vectorized loops that become loads and stores of whole vectors, without masks:
 * where all of a vector meets a condition or none, the condition stands for its first element. Keeps: everything else.
 * Buffers begin at multiples of TIR_BASE_ALIGNMENT; a thread's own memory lies in registers, however it is indexed. */
#include "footprint.h"
#include "tir/analysis/loads.h"
#include "tir/arith/linear.h"

#include <string.h>

struct run {
  struct tir *ir;
  tir_stmt loop;
  tir_var var;
  int64_t lanes, most_bits, least_bits; /* of the machine's widest access; of the loop's narrowest, or INT64_MAX */
  bool fits;
};

/* The expression as step * var + rest; false: it is no such sum. */
static bool take_apart(struct run *r, tir_expr e, int64_t *step, tir_expr *rest) {
  struct tir *ir = r->ir;
  tir_expr var = tir_var_expr(ir, r->var);
  *step = 0;
  if (!tir_is_index(ir, e)) return false;
  struct tir_linear l = tir_linear_of(ir, e);
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = tir_terms(ir, l)[i];
    if (t.atom == var)
      *step = t.coefficient;
    else if (tir_uses_var(ir, t.atom, r->var))
      return false;
  }
  tir_expr moved = tir_mul(ir, tir_cast(ir, tir_type_of(ir, e), var), tir_int(ir, tir_type_of(ir, e), *step));
  *rest = tir_sub(ir, e, moved);
  return true;
}

static bool is_multiple(struct run *r, tir_expr e, int64_t of) {
  int64_t modulus, remainder;
  tir_modular(r->ir, e, &modulus, &remainder);
  return modulus % of == 0 && remainder % of == 0;
}

/* All lanes of a vector that begins at a multiple of their number have one quotient by a multiple of it, and remainders
 * side by side. */
static tir_expr divide_first(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  struct run *r = data;
  struct tir_expr_node n = *tir_at(ir, made);
  int64_t step;
  tir_expr first;
  (void)before;
  if ((n.kind != TIR_FLOORDIV && n.kind != TIR_FLOORMOD) || !tir_is_int(ir, n.b) || !tir_uses_var(ir, n.a, r->var) ||
      !tir_is_index(ir, n.a))
    return made;
  int64_t divisor = tir_at(ir, n.b)->imm;
  if (divisor <= 0 || divisor % r->lanes || !take_apart(r, n.a, &step, &first) || step != 1 ||
      !is_multiple(r, first, r->lanes))
    return made;
  tir_expr divided = tir_binary(ir, (enum tir_kind)n.kind, first, n.b);
  if (n.kind == TIR_FLOORDIV) return divided;
  return tir_add(ir, divided, tir_cast(ir, n.type, tir_var_expr(ir, r->var)));
}

static void see_access(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct run *r = data;
  bool moves = false;
  (void)s;
  for (uint32_t d = 0; d < a->count; d++) moves |= tir_uses_var(ir, a->indices[d], r->var);
  if (!r->fits || tir_buffer_memory(ir, a->buffer) == TIR_THREAD_MEMORY || (!moves && !writes)) return;
  int64_t step, bits = r->lanes * tir_type_bits(tir_buffer_at(ir, a->buffer)->type);
  tir_expr at = lower_place_of(ir, a->buffer, a->indices), first;
  if (bits < r->least_bits) r->least_bits = bits;
  r->fits = at && take_apart(r, at, &step, &first) && step == 1 && bits <= LOWER_MOST_ACCESSES * r->most_bits &&
            bits % 8 == 0 && is_multiple(r, first, r->lanes);
}

/* A comparison has one outcome for all lanes where its sides differ by a multiple of their number at the first. */
static bool is_alike(struct run *r, tir_expr condition) {
  struct tir *ir = r->ir;
  struct tir_expr_node n = *tir_at(ir, condition);
  int64_t step;
  tir_expr first;
  if (!tir_uses_var(ir, condition, r->var)) return true;
  if (n.kind == TIR_AND || n.kind == TIR_OR) return is_alike(r, n.a) && is_alike(r, n.b);
  if (n.kind == TIR_GT || n.kind == TIR_LE) {
    n.kind = n.kind == TIR_GT ? TIR_LT : TIR_GE;
    tir_expr a = n.a;
    n.a = n.b, n.b = a;
  }
  if (n.kind != TIR_LT && n.kind != TIR_GE) return false;
  if (!tir_is_index(ir, n.a) || !tir_is_index(ir, n.b) || tir_type_of(ir, n.a) != tir_type_of(ir, n.b)) return false;
  return take_apart(r, tir_sub(ir, n.a, n.b), &step, &first) && step == 1 && is_multiple(r, first, r->lanes);
}

/* What chooses within a value otherwise for one lane than for another is for each to decide. */
static bool find_choice(void *data, tir_expr e) {
  struct run *r = data;
  const struct tir_expr_node *n = tir_at(r->ir, e);
  if (n->kind == TIR_CALL && tir_is_choice(r->ir, n)) r->fits &= is_alike(r, tir_operands(r->ir, n->operands)[0]);
  return r->fits;
}

static void look_at(struct run *r) {
  struct tir *ir = r->ir;
  lower_visit(ir, r->loop, see_access, r);
  for (tir_stmt s = tir_next(ir, r->loop, r->loop); s && r->fits; s = tir_next(ir, s, r->loop)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind == TIR_IF)
      r->fits = is_alike(r, n->test.condition);
    else if (n->kind == TIR_STORE)
      tir_walk_expr(ir, n->store.value, find_choice, r);
    else
      r->fits = false;
  }
}

static tir_expr at_first(struct run *r, tir_expr condition) {
  assert(r->fits && tir_is_const(r->ir, tir_as(r->ir, r->loop, TIR_LOOP)->loop.min, 0));
  tir_subst_var(r->ir, r->var, tir_as(r->ir, r->loop, TIR_LOOP)->loop.min);
  tir_expr first = tir_subst(r->ir, condition);
  tir_subst_clear(r->ir);
  return first;
}

static tir_expr choose_by_first(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  struct run *r = data;
  struct tir_expr_node n = *tir_at(ir, made);
  (void)before;
  if (n.kind != TIR_CALL || !tir_is_choice(ir, &n) || !tir_uses_var(ir, ir->operands.at[n.operands], r->var))
    return made;
  tir_expr args[3];
  assert(n.count == 3);
  memcpy(args, ir->operands.at + n.operands, sizeof args);
  args[0] = at_first(r, args[0]);
  return tir_call(ir, n.type, n.ref, args, n.count);
}

/* Conditions for the first lane stand for all. */
static void settle_conditions(struct run *r) {
  struct tir *ir = r->ir;
  for (tir_stmt s = tir_next(ir, r->loop, r->loop); s; s = tir_next(ir, s, r->loop)) {
    if (!tir_is(ir, s, TIR_IF)) continue;
    tir_expr condition = at_first(r, tir_as(ir, s, TIR_IF)->test.condition);
    tir_as(ir, s, TIR_IF)->test.condition = condition;
  }
  lower_map(ir, r->loop, TIR_HAS_CALL, choose_by_first, r);
}

/* ---- Results of fragments ---- */

static bool find_foreign(void *data, tir_expr e) {
  struct run *r = data;
  const struct tir_expr_node *n = tir_at(r->ir, e);
  bool foreign = n->kind == TIR_LOAD && tir_buffer_memory(r->ir, n->ref) != TIR_THREAD_MEMORY;
  if (foreign || n->kind == TIR_DATA || tir_device_call_of(r->ir, e) != TIR_DEVICE_CALLS) r->fits = false;
  return r->fits;
}

/* An unrolled loop that does nothing but store to the device what is computed of a thread's own memory: its iterations
 * are lanes. */
static bool stores_own(struct run *r) {
  const struct tir *ir = r->ir;
  tir_stmt s = tir_stmt_at(ir, r->loop)->first[TIR_BODY];
  if (!s || !tir_is(ir, s, TIR_STORE) || tir_stmt_at(ir, s)->next) return false;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  if (n->store.predicate || tir_buffer_memory(ir, n->store.buffer) != TIR_DEVICE_MEMORY) return false;
  bool alone = tir_type_lanes(tir_buffer_at(ir, n->store.buffer)->type) == 1;
  if (alone) tir_walk_expr(ir, n->store.value, find_foreign, r);
  return alone && r->fits;
}

static void join_stores(struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct run r = {.ir = ir, .loop = loop, .var = n.loop.var, .lanes = tir_loop_extent(ir, loop)};
  r.most_bits = lower_vector_bits(low), r.least_bits = INT64_MAX;
  r.fits = r.lanes > 1 && !(r.lanes & (r.lanes - 1)) && tir_is_const(ir, n.loop.min, 0);
  if (!r.fits || !stores_own(&r)) return;
  look_at(&r);
  if (!r.fits || r.least_bits > r.most_bits) return;
  settle_conditions(&r);
  tir_stmt_at(ir, loop)->loop_kind = TIR_VECTORIZED;
}

bool lower_gpu_vectorize(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    if (tir_stmt_at(ir, s)->loop_kind == TIR_UNROLLED) join_stores(low, s);
    if (tir_stmt_at(ir, s)->loop_kind != TIR_VECTORIZED) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    struct run r = {.ir = ir, .loop = s, .var = n.loop.var, .lanes = tir_loop_extent(ir, s)};
    r.most_bits = lower_vector_bits(low), r.least_bits = INT64_MAX;
    r.fits = r.lanes > 0 && !(r.lanes & (r.lanes - 1)) && tir_is_const(ir, n.loop.min, 0);
    if (r.fits) lower_map(ir, s, TIR_HAS_DIVMOD, divide_first, &r);
    look_at(&r);
    if (r.fits && (r.least_bits == INT64_MAX || r.least_bits <= r.most_bits)) {
      settle_conditions(&r);
      continue;
    }
    if (r.lanes != 1)
      lower_note(low, s,
                 "vectorized: it has accesses that are not of a power of two of elements side by side, from a "
                 "multiple of as many on");
    tir_stmt_at(ir, s)->loop_kind = TIR_UNROLLED;
  }
  return true;
}

/* Copies: those that are to be asynchronous are where the machine has such a copy: of 4, 8 or 16 bytes, side by
 * side, or as many zeros.
 * Requires: vectors. Gives: stores of TIR_ASYNC_COPY that are one instruction; of a kernel without any, no groups.
 * Keeps: what is computed: a copy that is done where it begins has arrived when it is waited for. */
#include "tir/analysis/loads.h"
#include "tir/lower/lower.h"

#include <math.h>

bool lower_is_async(const struct tir *ir, tir_stmt s) {
  return tir_is(ir, s, TIR_STORE) && tir_is_device_call(ir, tir_as(ir, s, TIR_STORE)->store.value, TIR_ASYNC_COPY);
}

/* Positive zero, or such in all lanes. */
static bool is_zero(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return tir_is_zero_bits(ir, n->kind == TIR_BROADCAST ? n->a : e);
}

const struct tir_expr_node *tir_copied_load(const struct tir *ir, tir_expr value, tir_expr *condition) {
  const struct tir_expr_node *n = tir_at(ir, value);
  bool calls = tir_is_choice(ir, n);
  *condition = TIR_NONE;
  if (calls || n->kind == TIR_SELECT) {
    const tir_expr *parts = calls ? tir_operands(ir, n->operands) : &n->a;
    if (tir_type_lanes(tir_type_of(ir, parts[0])) > 1 || !is_zero(ir, parts[2])) return NULL;
    *condition = parts[0];
    n = tir_at(ir, parts[1]);
  }
  return n->kind == TIR_LOAD && !n->a ? n : NULL;
}

/* Whether the elements, scalars or vectors, lie side by side from a multiple of their number on. */
static bool is_aligned(struct tir *ir, tir_expr index) {
  struct tir_expr_node n = *tir_at(ir, index);
  int lanes = tir_type_lanes(n.type);
  int64_t modulus, remainder;
  if (lanes == 1) return true;
  if (n.kind != TIR_RAMP || !tir_is_const(ir, n.b, 1)) return false;
  tir_modular(ir, n.a, &modulus, &remainder);
  return modulus % lanes == 0 && remainder % lanes == 0;
}

/* A choice that became certain may have left zero. */
static bool is_one_copy(struct tir *ir, tir_stmt store) {
  const struct tir_expr_node *call = tir_at(ir, tir_as(ir, store, TIR_STORE)->store.value);
  int bits = tir_type_bits(call->type) * tir_type_lanes(call->type);
  assert(call->count == 1 && tir_buffer_memory(ir, tir_as(ir, store, TIR_STORE)->store.buffer) == TIR_BLOCK_MEMORY);
  tir_expr condition;
  const struct tir_expr_node *load = tir_copied_load(ir, tir_operands(ir, call->operands)[0], &condition);
  if (!load || tir_as(ir, store, TIR_STORE)->store.predicate || (bits != 32 && bits != 64 && bits != 128)) return false;
  tir_expr from = tir_operands(ir, load->operands)[0],
           to = ir->operands.at[tir_as(ir, store, TIR_STORE)->store.indices];
  return is_aligned(ir, from) && is_aligned(ir, to);
}

/* One value for all that is stored is no copy. */
static void drop_broadcast(struct tir *ir, tir_stmt store) {
  struct tir_expr_node n = *tir_at(ir, tir_as(ir, store, TIR_STORE)->store.value);
  if (n.kind != TIR_BROADCAST || !tir_is_device_call(ir, n.a, TIR_ASYNC_COPY)) return;
  tir_expr one = tir_operands(ir, tir_at(ir, n.a)->operands)[0], value = tir_unary(ir, TIR_BROADCAST, n.type, one);
  tir_as(ir, store, TIR_STORE)->store.value = value;
}

static void drop_groups(struct tir *ir, tir_stmt kernel) {
  for (tir_stmt s = kernel, next; s; s = next) {
    next = tir_next(ir, s, kernel);
    if (lower_has_effect(ir, s, TIR_DOES_COPY_GROUP)) tir_kill(ir, s);
  }
}

/* Tells it of the loop whose copies they were to be. */
static void note_at(const struct lowering *low, tir_stmt s) {
  while (s && !(tir_is(low->ir, s, TIR_LOOP) && tir_stmt_at(low->ir, s)->loop_kind != TIR_THREAD_BINDING))
    s = tir_stmt_at(low->ir, s)->parent;
  if (s) lower_note(low, s, "one all of whose copies are asynchronous: those are of 4, 8 or 16 bytes side by side");
}

bool lower_copies(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt k = tir_stmt_at(ir, low->body)->first[TIR_BODY]; k; k = tir_stmt_at(ir, k)->next) {
    bool any = false;
    for (tir_stmt s = k; s; s = tir_next(ir, s, k)) {
      if (tir_is(ir, s, TIR_STORE)) drop_broadcast(ir, s);
      if (!lower_is_async(ir, s)) continue;
      if (is_one_copy(ir, s)) {
        any = true;
        continue;
      }
      const struct tir_expr_node *call = tir_at(ir, tir_as(ir, s, TIR_STORE)->store.value);
      note_at(low, s);
      tir_as(ir, s, TIR_STORE)->store.value = tir_operands(ir, call->operands)[0];
    }
    if (!any) drop_groups(ir, k);
  }
  return true;
}

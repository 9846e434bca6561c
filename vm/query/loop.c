/* What queries say of one loop: what it iterates over, and how far a region moves with it. */
#include "query.h"

#include <assert.h>

const char *vm_loop_iter_kind(const struct tir *ir, tir_loop loop) {
  assert(tir_is(ir, loop, TIR_LOOP));
  tir_var var = tir_as(ir, loop, TIR_LOOP)->loop.var;
  bool spatial = false, other = false;
  for (tir_stmt s = tir_next(ir, loop, loop); s;) {
    bool block = tir_is(ir, s, TIR_BLOCK);
    uint32_t count = block ? tir_block_at(ir, s)->iters.count : 0;
    for (uint32_t i = 0; i < count; i++) {
      struct tir_iter iter = ir->iters.at[tir_block_at(ir, s)->iters.first + i];
      if (!tir_uses_var(ir, iter.binding, var)) continue;
      spatial = spatial || iter.kind == TIR_SPATIAL;
      other = other || iter.kind != TIR_SPATIAL;
    }
    s = block ? tir_after(ir, s, loop) : tir_next(ir, s, loop);
  }
  return spatial && other ? "mixed" : spatial ? "spatial" : other ? "reduce" : "none";
}

/* ---- Strides ---- */

/* By how much a sum changes with a variable; false: not by a constant. */
static bool slope_of(struct tir *ir, tir_expr e, tir_var v, int64_t *out) {
  struct tir_linear l = tir_linear_of(ir, e);
  *out = 0;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term term = tir_terms(ir, l)[i];
    if (term.atom == tir_var_expr(ir, v))
      *out = term.coefficient;
    else if (tir_uses_var(ir, term.atom, v))
      return false;
  }
  return true;
}

/* An iteration variable whose binding the loop stands in. */
struct moved {
  tir_var var;
  tir_expr binding;
  int64_t slope;
  bool known; /* that it moves by a constant */
};
enum { MOST_MOVED = 64 };

/* Those of a block; more than MOST_MOVED where there are too many. */
static uint32_t find_moved(struct tir *ir, tir_block block, tir_var loop_var, struct moved out[MOST_MOVED]) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  uint32_t count = 0;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    struct tir_iter iter = ir->iters.at[i];
    if (!tir_uses_var(ir, iter.binding, loop_var)) continue;
    if (count == MOST_MOVED) return MOST_MOVED + 1;
    struct moved *m = &out[count++];
    m->var = iter.var;
    m->binding = iter.binding;
    m->known = slope_of(ir, iter.binding, loop_var, &m->slope);
  }
  return count;
}

/* As slope_of, where iteration variables stand in quotients: of what they are bound to. */
static bool slope_when_bound(struct tir *ir, tir_expr e, tir_var loop_var, const struct moved *moved, uint32_t count,
                             int64_t *out) {
  for (uint32_t i = 0; i < count; i++) tir_subst_var(ir, moved[i].var, moved[i].binding);
  tir_expr bound = tir_subst(ir, e);
  tir_subst_clear(ir);
  return slope_of(ir, bound, loop_var, out);
}

/* As slope_of, through a block's bindings: its region speaks of iteration variables, the loop stands in what they are
 * bound to. */
static bool slope_through(struct tir *ir, tir_expr e, tir_var loop_var, const struct moved *moved, uint32_t count,
                          int64_t *out) {
  assert(count <= MOST_MOVED);
  if (!slope_of(ir, e, loop_var, out)) return false;
  for (uint32_t i = 0; i < count; i++) {
    int64_t inner;
    if (!slope_of(ir, e, moved[i].var, &inner)) return slope_when_bound(ir, e, loop_var, moved, count, out);
    if (inner && !moved[i].known) return false;
    if (inner) *out += inner * moved[i].slope;
  }
  return true;
}

bool vm_stride_of(struct tir *ir, tir_block block, struct tir_region region, tir_loop loop, int64_t *out) {
  struct tir_buffer_node b = *tir_buffer_at(ir, region.buffer);
  tir_var var = tir_as(ir, loop, TIR_LOOP)->loop.var;
  struct moved moved[MOST_MOVED];
  uint32_t count = find_moved(ir, block, var, moved);
  int64_t stride = 1;
  *out = 0;
  if (count > MOST_MOVED) return false;
  for (uint32_t d = b.rank; d-- > 0;) {
    int64_t slope;
    if (b.strides.count) {
      tir_expr given = tir_operands(ir, b.strides.first)[d];
      if (!tir_is_int(ir, given)) return false;
      stride = tir_at(ir, given)->imm;
    }
    if (!slope_through(ir, tir_operands(ir, region.ranges)[2 * d], var, moved, count, &slope)) return false;
    *out += slope * stride;
    tir_expr extent = tir_operands(ir, b.shape)[d];
    if (!b.strides.count && d && !tir_is_int(ir, extent)) return false;
    if (!b.strides.count) stride *= tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : 1;
  }
  return true;
}

/* ---- Pieces: of indices that are linear between multiples of a number ---- */

/* By how much an index changes in a piece of the loop; false: not by a constant. whole: where the piece begins, it is a
 * multiple of VM_PIECE_LANES, and so are quotients by such multiples the same in the piece. */
static bool slope_in_pieces(struct tir *ir, tir_expr e, tir_var v, int64_t *out, bool *whole) {
  struct tir_linear l = tir_linear_of(ir, e);
  *out = 0;
  *whole = l.constant % VM_PIECE_LANES == 0;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term term = tir_terms(ir, l)[i];
    struct tir_expr_node n = *tir_at(ir, term.atom);
    int64_t slope = 0;
    bool begins = false;
    if (term.atom == tir_var_expr(ir, v)) {
      slope = 1;
      begins = true;
    } else if (tir_uses_var(ir, term.atom, v)) {
      bool divides = (n.kind == TIR_FLOORDIV || n.kind == TIR_FLOORMOD) && tir_is_int(ir, n.b);
      if (!divides || tir_at(ir, n.b)->imm <= 0 || tir_at(ir, n.b)->imm % VM_PIECE_LANES) return false;
      if (!slope_in_pieces(ir, n.a, v, &slope, &begins) || !begins || slope < 0 || slope > 1) return false;
      begins = n.kind == TIR_FLOORMOD;
      if (!begins) slope = 0;
    }
    *out += term.coefficient * slope;
    *whole = *whole && (begins || term.coefficient % VM_PIECE_LANES == 0);
  }
  return true;
}

enum { MOST_LOADS = 16 };
struct loads {
  const struct tir *ir;
  tir_buffer buffer;
  uint32_t count; /* MOST_LOADS + 1: there are more */
  tir_expr at[MOST_LOADS];
};

static bool note_load(void *data, tir_expr e) {
  struct loads *l = data;
  const struct tir_expr_node *n = tir_at(l->ir, e);
  if (n->kind != TIR_LOAD || n->ref != l->buffer || l->count > MOST_LOADS) return true;
  if (l->count < MOST_LOADS) l->at[l->count] = e;
  l->count++;
  return true;
}

bool vm_moves_in_pieces(struct tir *ir, tir_block block, tir_buffer buffer, tir_loop loop) {
  tir_var var = tir_as(ir, loop, TIR_LOOP)->loop.var;
  struct loads loads = {.ir = ir, .buffer = buffer};
  struct moved moved[MOST_MOVED];
  uint32_t moves = find_moved(ir, block, var, moved), rank = tir_buffer_at(ir, buffer)->rank;
  if (moves > MOST_MOVED || tir_buffer_at(ir, buffer)->strides.count) return false;
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    if (!tir_is(ir, s, TIR_STORE)) return false;
    tir_walk_expr(ir, tir_stmt_at(ir, s)->store.value, note_load, &loads);
  }
  if (!loads.count || loads.count > MOST_LOADS) return false;
  for (uint32_t i = 0; i < moves; i++) tir_subst_var(ir, moved[i].var, moved[i].binding);
  bool good = true;
  for (uint32_t i = 0; good && i < loads.count; i++)
    for (uint32_t d = 0; good && d < rank; d++) {
      int64_t slope;
      bool whole;
      tir_expr index = tir_subst(ir, tir_operands(ir, tir_at(ir, loads.at[i])->operands)[d]);
      good = slope_in_pieces(ir, index, var, &slope, &whole) && (slope == 0 || (slope == 1 && d + 1 == rank));
    }
  tir_subst_clear(ir);
  return good;
}

/* TMA copies: copies of a part of a tensor that threads share out among them, and which one instruction can do instead.
 *
 *   for i: for v: S[(i * 128 + t) // 8, t % 8 * 8 + v] = A[(i * 128 + t) // 8 + 64 * bx, k * 64 + t % 8 * 8 + v]
 *
 * becomes one call a swizzled tile: tensor_copy(S, …, A, …, coordinates 64 * bx and k * 64).
 *
 * A statement of a software pipeline is that where each index of what it loads is that of what it stores and a
 * coordinate, which is the same for all threads; where threads and iterations, all of them run through, store each
 * element of the buffer; and where what it does not load, but sets to zero, lies outside of the tensor. The
 * instruction asks for an innermost dimension whose elements lie side by side, rows at multiples of 16 bytes, a box
 * of at most 256 elements a dimension, and a canonical layout. Source: PTX ISA, "Tensors"; CUDA Driver API,
 * "cuTensorMapEncodeTiled". */
#include "tma_copy.h"
#include "tir/analysis/loads.h"
#include "tir/arith/linear.h"
#include "tir/lower/gpu/footprint.h"

#include <stdlib.h>
#include <string.h>

/* ---- What the statement is ---- */

static bool add_var(struct tma_statement *c, tir_stmt loop) {
  const struct tir *ir = c->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  if (!tir_is_int(ir, n->loop.min) || !tir_is_int(ir, n->loop.extent) || c->var_count == TMA_MOST_VARS)
    return tma_refuse(c, "the loops of the copy are not constant");
  c->vars[c->var_count++] =
      (struct tma_variable){n->loop.var, tir_at(ir, n->loop.min)->imm, tir_at(ir, n->loop.extent)->imm, 0};
  return true;
}

static bool add_conditions(struct tma_statement *c, tir_expr condition) {
  const struct tir_expr_node *n = tir_at(c->ir, condition);
  if (n->kind == TIR_AND) {
    tir_expr a = n->a, b = n->b;
    return add_conditions(c, a) && add_conditions(c, b);
  }
  if (n->flags & TIR_HAS_LOAD) return tma_refuse(c, "memory decides what is copied");
  if (c->condition_count == TMA_MOST_CONDITIONS) return tma_refuse(c, "it is under too many conditions");
  c->conditions[c->condition_count++] = condition;
  return true;
}

/* Loops, conditions without another branch, and one store in them. */
static bool walk_down(struct tma_statement *c, tir_stmt top) {
  const struct tir *ir = c->ir;
  for (tir_stmt s = top; s; s = tir_stmt_at(ir, s)->first[TIR_BODY]) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->next && s != top) return tma_refuse(c, "it does more than copy one buffer");
    if (n->kind == TIR_STORE) return c->store = s, c->tests = c->condition_count, true;
    if (n->kind == TIR_LOOP && n->loop_kind != TIR_THREAD_BINDING && add_var(c, s)) continue;
    if (n->kind == TIR_IF && !n->first[TIR_ELSE] && add_conditions(c, n->test.condition)) continue;
    if (n->kind != TIR_ATTR) return c->why || tma_refuse(c, "it does more than copy one buffer");
  }
  return tma_refuse(c, "it copies nothing");
}

/* Where the pipeline stands: no loop repeats it, no condition keeps threads from it. */
static bool walk_up(struct tma_statement *c) {
  const struct tir *ir = c->ir;
  for (tir_stmt s = tir_stmt_at(ir, c->loop)->parent; s; s = tir_stmt_at(ir, s)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind == TIR_IF || n->kind == TIR_WHILE || (n->kind == TIR_ATTR && lower_is_stage(ir, s)))
      return tma_refuse(c, "its pipeline is in a condition or in another pipeline");
    if (n->kind != TIR_LOOP) continue;
    enum tir_axis axis = tir_loop_axis(ir, s);
    bool thread = tir_is_thread_axis(axis);
    if (!thread && (tir_is_block_axis(axis) || tir_loop_extent(ir, s) == 1)) continue;
    if (!thread) return tma_refuse(c, "its pipeline is repeated by a loop");
    if (!add_var(c, s)) return false;
  }
  return true;
}

static bool read_value(struct tma_statement *c) {
  struct tir *ir = c->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, c->store);
  struct tir_expr_node v = *tir_at(ir, n.store.value);
  while (tir_is_choice(ir, &v)) {
    const tir_expr *args = tir_operands(ir, v.operands);
    tir_expr condition = args[0], chosen = args[1];
    if (!tir_is_zero_bits(ir, args[2])) return tma_refuse(c, "what it does not load is not zero");
    if (!add_conditions(c, condition)) return false;
    v = *tir_at(ir, chosen);
  }
  if (v.kind != TIR_LOAD || v.a || n.store.predicate) return tma_refuse(c, "it computes what it stores");
  c->to = n.store.buffer, c->from = v.ref;
  c->to_rank = tir_buffer_at(ir, c->to)->rank, c->from_rank = v.count;
  if (c->to_rank > TIR_MOST_RANK || c->from_rank > TIR_MOST_RANK)
    return tma_refuse(c, "its buffers have too many dimensions");
  memcpy(c->stored, tir_operands(ir, n.store.indices), c->to_rank * sizeof *c->stored);
  memcpy(c->loaded, tir_operands(ir, v.operands), c->from_rank * sizeof *c->loaded);
  return true;
}

/* Loops are no longer than conditions on what is stored let them be; those of one iteration stand in no index. */
static bool shorten_loops(struct tma_statement *c) {
  struct tir *ir = c->ir;
  struct tir_guards guards = tir_find_guards(ir, c->store);
  for (uint32_t i = 0; i < c->var_count; i++) {
    struct tma_variable *v = &c->vars[i];
    tir_var old = v->var;
    for (uint32_t g = 0; g < guards.count; g++) {
      const struct tir_expr_node *n = tir_at(ir, guards.var[g]);
      if (guards.left[g] != tir_var_expr(ir, old)) continue;
      v->var = n->ref, v->min = n->lo, v->extent = n->hi - n->lo + 1;
    }
    if (v->extent == 1)
      tir_subst_var(ir, old, tir_int(ir, tir_var_at(ir, old)->type, v->min));
    else if (v->var != old)
      tir_subst_var(ir, old, tir_var_expr(ir, v->var));
  }
  for (uint32_t d = 0; d < c->to_rank; d++) c->stored[d] = tir_subst(ir, c->stored[d]);
  for (uint32_t d = 0; d < c->from_rank; d++) c->loaded[d] = tir_subst(ir, c->loaded[d]);
  for (uint32_t i = 0; i < c->condition_count; i++) c->conditions[i] = tir_subst(ir, c->conditions[i]);
  tir_subst_clear(ir);
  for (uint32_t d = 0; d < c->to_rank; d++) c->stored[d] = tir_simplify(ir, c->stored[d]);
  for (uint32_t d = 0; d < c->from_rank; d++) c->loaded[d] = tir_simplify(ir, c->loaded[d]);
  return true;
}

/* ---- Memory ---- */

static bool read_shape(const struct tir *ir, tir_buffer buffer, int64_t *out) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  for (uint32_t d = 0; d < b->rank; d++) {
    tir_expr extent = ir->operands.at[b->shape + d];
    if (!tir_is_int(ir, extent) || tir_at(ir, extent)->imm < 1) return false;
    out[d] = tir_at(ir, extent)->imm;
  }
  return !b->strides.count && !b->data;
}

static bool is_stored(const struct tma_statement *c, tir_buffer buffer) {
  tir_stmt kernel = c->loop;
  for (tir_stmt s = kernel; s && tir_is(c->ir, s, TIR_LOOP); s = tir_stmt_at(c->ir, s)->parent) kernel = s;
  for (tir_stmt s = kernel; s; s = tir_next(c->ir, s, kernel))
    if (tir_is(c->ir, s, TIR_STORE) && tir_stmt_at(c->ir, s)->store.buffer == buffer) return true;
  return false;
}

/* The tensor, and rows that fill whole swizzled tiles. */
static bool find_tensor(struct tma_statement *c, struct lower_tma_copy *out) {
  struct tir *ir = c->ir;
  int64_t bytes = tir_type_bits(tir_buffer_at(ir, c->to)->type) / 8, rows = 1;
  if (!tir_requests_rows(ir, c->to, TIR_ROWS_CANONICAL))
    return tma_refuse(c, "it fills no canonical layout of shared memory");
  if (tir_buffer_at(ir, c->from)->type != tir_buffer_at(ir, c->to)->type || bytes < 1 || bytes > 8)
    return tma_refuse(c, "the types of what it loads and stores differ");
  if (tir_type_lanes(tir_buffer_at(ir, c->to)->type) > 1) return tma_refuse(c, "its buffers are of vectors");
  if (c->from_rank < 2 || c->from_rank > TIR_BOX_MOST_RANK || c->to_rank < 2)
    return tma_refuse(c, "what it copies has not two to five dimensions");
  if (tir_buffer_memory(ir, c->from) != TIR_DEVICE_MEMORY || !read_shape(ir, c->from, out->extents) ||
      is_stored(c, c->from))
    return tma_refuse(c, "it copies from no tensor of constant size, or memory is written meanwhile");
  if (!read_shape(ir, c->to, c->shape)) return tma_refuse(c, "what it fills is not of constant size");
  for (uint32_t d = 0; d < c->from_rank; d++)
    if (out->extents[d] > INT32_MAX) return tma_refuse(c, "the tensor is too large");
  for (uint32_t d = 0; d + 1 < c->to_rank; d++) rows *= c->shape[d];
  int64_t row = c->shape[c->to_rank - 1] * bytes;
  if (!tir_panel_of(row) || rows % TIR_PANEL_ROWS) return tma_refuse(c, "its rows are not a number of swizzled tiles");
  out->to = c->to, out->from = c->from, out->rank = c->from_rank, out->bytes = rows * row, out->parts = 1;
  return true;
}

/* ---- Coordinates ---- */

/* The box as the whole buffer has it. */
static bool find_sides(struct tma_statement *c, struct lower_tma_copy *out) {
  for (uint32_t d = 0; d < c->from_rank; d++) {
    int64_t at = (int64_t)d + c->to_rank - c->from_rank;
    out->box[d] = at < 0 ? 1 : c->shape[at];
    if (d + 1 < c->from_rank && out->box[d] > TIR_BOX_MOST_SIDE) return tma_refuse(c, "its box has too many rows");
  }
  for (uint32_t d = 0; d + c->from_rank < c->to_rank; d++)
    if (c->shape[d] != 1) return tma_refuse(c, "what it fills has more dimensions than what it loads");
  return true;
}

static bool find_coordinates(struct tma_statement *c, struct lower_tma_copy *out) {
  for (uint32_t d = 0; d < c->from_rank; d++) {
    int64_t at = (int64_t)d + c->to_rank - c->from_rank;
    if (!tir_is_index(c->ir, c->loaded[d])) return tma_refuse(c, "an index of what it loads depends on memory");
    out->at[d] = tma_coordinate(c, c->loaded[d], at < 0 ? TIR_NONE : c->stored[at]);
    if (!out->at[d]) return tma_refuse(c, "rows or columns that it loads do not lie as it stores them");
  }
  return true;
}

/* One copy in tiled mode of the tensor as it is, or, if they may be, several. */
static bool find_boxes(struct tma_statement *c, struct lower_tma_copy *out, bool several) {
  int64_t row = out->extents[out->rank - 1] * (tir_type_bits(tir_buffer_at(c->ir, c->to)->type) / 8);
  if (row % TIR_BOX_ALIGNMENT) return tma_refuse(c, "its rows in memory do not begin at multiples of 16 bytes");
  if (find_sides(c, out) && find_coordinates(c, out)) return true;
  const char *why = c->why;
  return (several && tma_find_parts(c, out)) || tma_refuse(c, why);
}

/* ---- What is set to zero ---- */

tir_expr tma_margin(struct tir *ir, tir_expr condition) {
  struct tir_expr_node n = *tir_at(ir, condition);
  bool less = n.kind == TIR_LT || n.kind == TIR_LE, compares = less || n.kind == TIR_GT || n.kind == TIR_GE;
  if (!compares || !tir_is_index(ir, n.a) || !tir_is_index(ir, n.b)) return TIR_NONE;
  tir_expr margin = tir_simplify(ir, less ? tir_sub(ir, n.b, n.a) : tir_sub(ir, n.a, n.b));
  bool equal = n.kind == TIR_LE || n.kind == TIR_GE;
  return equal ? tir_add(ir, margin, tir_int(ir, tir_type_of(ir, margin), 1)) : margin;
}

/* Both are positive together: one is a multiple of the other, less what does not reach the next. */
static bool are_alike(struct tir *ir, tir_expr margin, tir_expr other) {
  enum { MOST_FACTOR = 256 };
  if (tir_type_of(ir, margin) != tir_type_of(ir, other)) return false;
  for (int64_t factor = 1; factor <= MOST_FACTOR; factor *= 2) {
    tir_expr whole = tir_mul(ir, margin, tir_int(ir, tir_type_of(ir, margin), factor));
    struct tir_bounds b = tir_difference_bounds(ir, whole, other);
    if (b.lo >= 0 && b.hi < factor) return true;
  }
  return false;
}

/* It is positive as long as an index is less than the extent, or is not negative. */
static bool is_end_of(struct tir *ir, tir_expr margin, tir_expr index, int64_t extent) {
  tir_type type = tir_type_of(ir, index);
  return are_alike(ir, margin, tir_sub(ir, tir_int(ir, type, extent), index)) ||
         are_alike(ir, margin, tir_add(ir, index, tir_int(ir, type, 1)));
}

/* It is positive as long as pixels are in the tensor's images. */
static bool ends_pixels(struct tma_statement *c, tir_expr margin) {
  struct tir *ir = c->ir;
  tir_type type = tir_type_of(ir, c->pixel);
  if (tir_type_of(ir, margin) != type) margin = tir_cast(ir, type, margin);
  return tir_is_const(ir, tir_simplify(ir, tir_add(ir, margin, c->pixel)), c->pixels);
}

/* Where the condition does not hold, an index is outside of the tensor, and where all are inside, it holds. */
static bool is_bound_of(struct tma_statement *c, const struct lower_tma_copy *b, tir_expr condition) {
  struct tir *ir = c->ir;
  tir_expr margin = tma_margin(ir, condition);
  if (tir_prove(ir, condition)) return true;
  if (margin) margin = tir_simplify(ir, margin);
  if (margin && b->im2col && c->pixel && ends_pixels(c, margin)) return true;
  for (uint32_t d = 0; margin && d < c->from_rank; d++) {
    int64_t by;
    tir_expr number = tma_as_quotient(ir, c->loaded[d], &by);
    if (is_end_of(ir, margin, c->loaded[d], b->extents[d])) return true;
    if (number && b->extents[d] <= INT32_MAX / by && is_end_of(ir, margin, number, b->extents[d] * by)) return true;
  }
  return false;
}

/* Conditions of the copy's own variables alone say who copies what; the others, what lies in the tensor. */
static bool sort_conditions(struct tma_statement *c, const struct lower_tma_copy *b, tir_expr *within,
                            uint32_t *count) {
  *count = 0;
  for (uint32_t i = 0; i < c->condition_count; i++) {
    if (is_bound_of(c, b, c->conditions[i])) continue;
    if (i >= c->tests || !tma_uses_own(c, c->conditions[i]))
      return tma_refuse(c, "it copies under a condition that does not say what lies in the tensor");
    within[(*count)++] = c->conditions[i];
  }
  return true;
}

/* ---- Where it lies ---- */

/* Tiled mode of the tensor with fewer dimensions, where conditions still say what lies in it. */
static bool find_merged(struct tma_statement *c, struct lower_tma_copy *out, bool stored) {
  tir_expr within[TMA_MOST_CONDITIONS];
  uint32_t count;
  struct tma_statement as_it_is = *c;
  struct lower_tma_copy begun = *out;
  if (tma_merge_dimensions(c, out, stored) && find_boxes(c, out, true) && sort_conditions(c, out, within, &count))
    return true;
  *c = as_it_is, *out = begun;
  return false;
}

/* Tiled mode; or else pixels. */
static bool find_places(struct tma_statement *c, struct lower_tma_copy *out) {
  if (find_boxes(c, out, false)) return true;
  const char *why = c->why;
  if (find_merged(c, out, false)) return true;
  struct tma_statement as_it_is = *c;
  struct lower_tma_copy begun = *out;
  if (find_boxes(c, out, true) || tma_find_pixels(c, out)) return true;
  *c = as_it_is, *out = begun;
  return find_merged(c, out, true) || tma_refuse(c, why);
}

bool lower_find_tma_copy(struct tir *ir, tir_stmt loop, tir_stmt top, struct lower_tma_copy *out, const char **why) {
  struct tma_statement c = {.ir = ir, .loop = loop};
  tir_expr within[TMA_MOST_CONDITIONS];
  int64_t elements = 1;
  uint32_t count;
  *out = (struct lower_tma_copy){0};
  bool ok = walk_down(&c, top) && walk_up(&c) && read_value(&c) && shorten_loops(&c);
  ok = ok && find_tensor(&c, out) && find_places(&c, out) && sort_conditions(&c, out, within, &count);
  for (uint32_t d = 0; ok && d < c.to_rank; d++) elements *= c.shape[d];
  ok = ok && tma_covers(&c, within, count, elements);
  *why = c.why;
  return ok;
}

/* ---- In its place ---- */

tir_stmt lower_elect(struct tir *ir, tir_stmt loop, tir_stmt s) {
  tir_expr first = TIR_NONE;
  for (tir_stmt p = loop; p; p = tir_stmt_at(ir, p)->parent) {
    struct tir_stmt_node n = *tir_stmt_at(ir, p);
    if (!tir_is_thread_axis(tir_loop_axis(ir, p)) || tir_loop_extent(ir, p) == 1) continue;
    first = tir_and(ir, first, tir_make(ir, TIR_EQ, tir_var_expr(ir, n.loop.var), n.loop.min));
  }
  if (!first) return s;
  tir_stmt test = tir_new_if(ir, first);
  tir_wrap(ir, s, test);
  return test;
}

tir_expr lower_lane(struct tir *ir, tir_stmt kernel) {
  tir_stmt inside;
  struct lower_threads t = lower_threads_of(ir, kernel, &inside);
  tir_expr number = tir_int(ir, TIR_T_I32, 0), warp = tir_int(ir, TIR_T_I32, TIR_WARP);
  int64_t apart = 1; /* threads from one to the next on this axis */
  for (int a = 0; a < 3; apart *= t.extent[a++]) {
    if (!t.var[a] || apart % TIR_WARP == 0) continue;
    tir_expr var = tir_cast(ir, TIR_T_I32, tir_var_expr(ir, t.var[a]));
    number = tir_add(ir, number, tir_mul(ir, var, tir_int(ir, TIR_T_I32, apart)));
  }
  return tir_simplify(ir, tir_floormod(ir, number, warp));
}

tir_expr lower_pointer(struct tir *ir, tir_buffer buffer, tir_expr offset, int uses) {
  uint64_t bits = (uint64_t)tir_type_bits(tir_buffer_at(ir, buffer)->type);
  tir_expr elements = tir_int(ir, TIR_T_I32, (int64_t)(tir_allocation_bytes(ir, buffer) * 8 / bits));
  return tir_new_pointer(ir, buffer, offset, elements, uses);
}

enum { MOST_OPERANDS = TIR_BOX_LISTS + 3 * TIR_BOX_MOST_RANK + 4 * TIR_PIXELS_MOST_RANK };

/* The call for one swizzled tile, of the rows of a part. */
static void put_panel(struct tir *ir, const struct lower_tma_copy *b, tir_expr barrier, uint32_t part, int64_t column,
                      int64_t panel, tir_stmt to) {
  uint32_t last = b->rank - 1, count = TIR_BOX_LISTS + 3 * b->rank, pixels = b->rank - 2;
  int64_t columns = b->box[last], rows = 1;
  for (uint32_t d = 0; d < last; d++) rows *= b->box[d];
  tir_expr first = tir_int(ir, TIR_T_I32, part * rows * columns + column), zero = tir_int(ir, TIR_T_I32, 0);
  if (b->first) first = tir_add(ir, b->first, first);
  tir_expr args[MOST_OPERANDS] = {[TIR_BOX_TO] = lower_pointer(ir, b->to, first, TIR_POINTER_WRITES),
                                  [TIR_BOX_STRIDE] = tir_int(ir, TIR_T_I32, columns),
                                  [TIR_BOX_BARRIER] = barrier,
                                  [TIR_BOX_FROM] = lower_pointer(ir, b->from, zero, TIR_POINTER_READS),
                                  [TIR_BOX_RANK] = tir_int(ir, TIR_T_I32, b->rank)};
  for (uint32_t d = 0; d < b->rank; d++) {
    int64_t moved = b->moved[part][d] + (d == last ? column : 0);
    tir_expr move = tir_int(ir, tir_type_of(ir, b->at[d]), moved);
    args[TIR_BOX_LISTS + d] = tir_int(ir, TIR_T_I32, b->extents[d]);
    args[TIR_BOX_LISTS + b->rank + d] = d == last || moved ? tir_add(ir, b->at[d], move) : b->at[d];
    args[TIR_BOX_LISTS + 2 * b->rank + d] = tir_int(ir, TIR_T_I32, d == last ? panel : b->box[d]);
  }
  for (uint32_t d = 0; d < pixels && b->im2col; d++) {
    args[count + d] = b->offsets[d];
    args[count + pixels + d] = tir_int(ir, TIR_T_I32, b->pixels.lower[d]);
    args[count + 2 * pixels + d] = tir_int(ir, TIR_T_I32, b->pixels.upper[d]);
    args[count + 3 * pixels + d] = tir_int(ir, TIR_T_I32, b->pixels.step[d]);
  }
  if (b->blocks) args[count] = tir_int(ir, TIR_T_I32, b->blocks);
  if (b->blocks)
    lower_append_call(ir, to, TIR_MULTICAST_COPY, args, count + 1);
  else if (b->im2col)
    lower_append_call(ir, to, TIR_IM2COL_COPY, args, tir_im2col_operands(b->rank));
  else
    lower_append_call(ir, to, TIR_TENSOR_COPY, args, count);
}

void lower_put_tma_copy(struct tir *ir, const struct lower_tma_copy *b, tir_buffer barriers, tir_expr barrier,
                        tir_stmt to) {
  uint32_t last = b->rank - 1;
  int64_t bytes = tir_type_bits(tir_buffer_at(ir, b->to)->type) / 8, columns = b->box[last];
  int64_t panel = tir_panel_of(columns * bytes) / bytes;
  assert(panel && columns % panel == 0 && b->rank >= 2 && b->rank <= TIR_BOX_MOST_RANK);
  assert(tir_memory_scope_of(ir, barriers) == TIR_SCOPE_MBARRIER && tir_type_of(ir, barrier));
  tir_expr at = lower_pointer(ir, barriers, barrier, TIR_POINTER_READS);
  tir_expr expect[] = {at, tir_int(ir, TIR_T_I32, b->bytes)};
  lower_append_call(ir, to, TIR_MBARRIER_EXPECT, expect, 2);
  for (uint32_t part = 0; part < b->parts; part++)
    for (int64_t column = 0; column < columns; column += panel) put_panel(ir, b, at, part, column, panel, to);
}

/* ---- Reading it ---- */

/* Lists of constants, one behind the other. */
static bool read_list(const struct tir *ir, const tir_expr **at, uint32_t count, int64_t *out) {
  for (uint32_t d = 0; d < count; d++, ++*at) {
    if (!tir_is_int(ir, **at)) return false;
    out[d] = tir_at(ir, **at)->imm;
  }
  return true;
}

static bool read_store(const struct tir *ir, tir_expr call, struct tir_box *out) {
  const struct tir_expr_node *n = tir_at(ir, call);
  const tir_expr *args = tir_operands(ir, n->operands), *at = args + TIR_STORE_LISTS;
  if (n->count < TIR_STORE_LISTS || !tir_is_int(ir, args[TIR_STORE_STRIDE]) || !tir_is_int(ir, args[TIR_STORE_RANK]))
    return false;
  int64_t rank = tir_at(ir, args[TIR_STORE_RANK])->imm;
  if (rank < 2 || rank > TIR_BOX_MOST_RANK || n->count != TIR_STORE_LISTS + 3 * (uint32_t)rank) return false;
  *out = (struct tir_box){.to = args[TIR_STORE_FROM],
                          .from = args[TIR_STORE_TO],
                          .stride = tir_at(ir, args[TIR_STORE_STRIDE])->imm,
                          .rank = (uint32_t)rank};
  if (!read_list(ir, &at, out->rank, out->extents)) return false;
  for (uint32_t d = 0; d < out->rank; d++) out->at[d] = *at++;
  return read_list(ir, &at, out->rank, out->box) && tir_pointed(ir, out->to) && tir_pointed(ir, out->from);
}

bool tir_box_of(const struct tir *ir, tir_expr call, struct tir_box *out) {
  const struct tir_expr_node *n = tir_at(ir, call);
  if (tir_is_device_call(ir, call, TIR_TENSOR_STORE)) return read_store(ir, call, out);
  bool im2col = tir_is_device_call(ir, call, TIR_IM2COL_COPY), many = tir_is_device_call(ir, call, TIR_MULTICAST_COPY);
  if (n->count < TIR_BOX_LISTS || !(im2col || many || tir_is_device_call(ir, call, TIR_TENSOR_COPY))) return false;
  const tir_expr *args = tir_operands(ir, n->operands), *at = args + TIR_BOX_LISTS;
  if (!tir_is_int(ir, args[TIR_BOX_STRIDE]) || !tir_is_int(ir, args[TIR_BOX_RANK])) return false;
  int64_t rank = tir_at(ir, args[TIR_BOX_RANK])->imm;
  if (rank < (im2col ? 3 : 2) || rank > TIR_BOX_MOST_RANK) return false;
  uint32_t count = TIR_BOX_LISTS + 3 * (uint32_t)rank + many, pixels = im2col ? (uint32_t)rank - 2 : 0;
  if (n->count != (im2col ? tir_im2col_operands((uint32_t)rank) : count)) return false;
  *out = (struct tir_box){.to = args[TIR_BOX_TO],
                          .barrier = args[TIR_BOX_BARRIER],
                          .from = args[TIR_BOX_FROM],
                          .stride = tir_at(ir, args[TIR_BOX_STRIDE])->imm,
                          .rank = (uint32_t)rank,
                          .im2col = im2col};
  if (!read_list(ir, &at, out->rank, out->extents)) return false;
  for (uint32_t d = 0; d < out->rank; d++) out->at[d] = *at++;
  if (!read_list(ir, &at, out->rank, out->box) || (many && !read_list(ir, &at, 1, &out->blocks))) return false;
  for (uint32_t d = 0; d < pixels; d++) out->offsets[d] = *at++;
  if (!read_list(ir, &at, pixels, out->pixels.lower) || !read_list(ir, &at, pixels, out->pixels.upper) ||
      !read_list(ir, &at, pixels, out->pixels.step))
    return false;
  return tir_pointed(ir, out->to) && tir_pointed(ir, out->barrier) && tir_pointed(ir, out->from);
}

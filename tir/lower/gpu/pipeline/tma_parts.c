/* Copies of matrices in a tensor: of rows that one box does not bring, or that the tensor has in several dimensions.
 *
 *   S[r, c] = W[(k * 64 + r) // 96, (k * 64 + r) // 32 % 3, (k * 64 + r) % 32, c]
 *
 * copies rows of W as it lies in memory, with 64 * k + r for the first three of its dimensions. What one instruction
 * does not bring is copied by several: more than 256 rows, or matrices of a batch. Where each row comes from is read
 * off by running through all threads and iterations. */
#include "tir/arith/linear.h"
#include "tma_copy.h"

#include <stdlib.h>
#include <string.h>

/* ---- Fewer dimensions ---- */

static bool is_within(struct tir *ir, tir_expr e, int64_t extent) {
  struct tir_bounds b = tir_difference_bounds(ir, e, tir_int(ir, tir_type_of(ir, e), 0));
  return b.lo >= 0 && b.hi < extent;
}

static bool is_same(struct tir *ir, tir_expr a, tir_expr b) {
  return tir_is_const(ir, tir_simplify(ir, tir_sub(ir, a, b)), 0);
}

/* Of a number, inner is the remainder by `below`, and outer the quotient: gives the number; or that below `count`, and
 * the number less what is above. TIR_NONE: they are not. */
static tir_expr with_digits(struct tir *ir, tir_expr number, tir_expr outer, int64_t count, tir_expr inner,
                            int64_t below) {
  tir_type type = tir_type_of(ir, inner);
  tir_expr by = tir_int(ir, type, below);
  number = tir_simplify(ir, number);
  if (!is_same(ir, inner, tir_floormod(ir, number, by))) return TIR_NONE;
  tir_expr above = tir_floordiv(ir, number, by), low = tir_floormod(ir, number, tir_int(ir, type, count * below));
  if (is_same(ir, outer, above)) return number;
  bool same = is_same(ir, outer, tir_floormod(ir, above, tir_int(ir, type, count)));
  return same || is_same(ir, outer, tir_floordiv(ir, low, by)) ? tir_simplify(ir, low) : TIR_NONE;
}

/* The number that two indices are of, of a dimension of so many elements and of the next: what inner is a remainder of,
 * or outer a quotient. */
static tir_expr number_of(struct tir *ir, tir_expr outer, int64_t count, tir_expr inner, int64_t below) {
  struct tir_expr_node n = *tir_at(ir, inner);
  int64_t by;
  tir_expr number = TIR_NONE;
  if (n.kind == TIR_FLOORMOD) number = with_digits(ir, n.a, outer, count, inner, below);
  if (number) return number;
  n = *tir_at(ir, outer);
  number = tma_as_quotient(ir, n.kind == TIR_FLOORMOD ? n.a : outer, &by);
  if (!number || by % below) return TIR_NONE;
  number = tir_floordiv(ir, number, tir_int(ir, tir_type_of(ir, number), by / below));
  return with_digits(ir, number, outer, count, inner, below);
}

/* The same of indices that do not say of what number they are: it is what the buffer's row or column moves by one. */
static tir_expr stored_number_of(struct tma_statement *c, tir_expr outer, int64_t count, tir_expr inner,
                                 int64_t below) {
  struct tir *ir = c->ir;
  tir_type type = tir_type_of(ir, inner);
  tir_expr whole = tir_add(ir, tir_mul(ir, outer, tir_int(ir, type, below)), inner), rest, own, found = TIR_NONE;
  if (!tma_split(c, whole, &rest, &own)) return TIR_NONE;
  for (uint32_t d = c->to_rank; d-- > 0 && d + 2 >= c->to_rank && !found;)
    if (tir_type_of(ir, c->stored[d]) == type)
      found = with_digits(ir, tir_add(ir, rest, c->stored[d]), outer, count, inner, below);
  return found;
}

/* Dimension d and the next are one: the second is never left, so that what lies outside of the tensor does so by d. */
static bool merge_pair(struct tma_statement *c, struct lower_tma_copy *out, uint32_t d, bool stored) {
  struct tir *ir = c->ir;
  int64_t count = out->extents[d], below = out->extents[d + 1];
  tir_expr outer = c->loaded[d], inner = c->loaded[d + 1];
  if (!tir_is_index(ir, outer) || !tir_is_index(ir, inner) || tir_type_of(ir, outer) != tir_type_of(ir, inner))
    return false;
  if (!is_within(ir, inner, below) || count > INT32_MAX / below) return false;
  outer = tir_simplify(ir, outer), inner = tir_simplify(ir, inner);
  tir_expr whole = below == 1                              ? outer
                   : count == 1 && is_within(ir, outer, 1) ? inner
                                                           : number_of(ir, outer, count, inner, below);
  if (!whole && stored) whole = stored_number_of(c, outer, count, inner, below);
  if (!whole) return false;
  c->loaded[d] = whole, out->extents[d] *= below;
  for (uint32_t i = d + 1; i + 1 < out->rank; i++)
    c->loaded[i] = c->loaded[i + 1], out->extents[i] = out->extents[i + 1];
  c->from_rank = --out->rank;
  return true;
}

bool tma_merge_dimensions(struct tma_statement *c, struct lower_tma_copy *out, bool stored) {
  bool any = false;
  for (uint32_t d = out->rank - 1; d > 0 && out->rank > 2; d--) any |= merge_pair(c, out, d - 1, stored);
  return any;
}

/* ---- Parts ---- */

/* An index of what it loads: what threads and the copy's loops decide, and the rest. */
static bool split_index(struct tma_statement *c, uint32_t d, tir_expr *outer, tir_expr *inner) {
  struct tir *ir = c->ir;
  if (!tir_is_index(ir, c->loaded[d])) return false;
  *inner = c->stored[d + 1 == c->from_rank ? c->to_rank - 1 : c->to_rank - 2];
  *outer = tma_coordinate(c, c->loaded[d], *inner);
  return *outer || tma_split(c, c->loaded[d], outer, inner);
}

/* For each row of the buffer, what `inner` is in its first column; false: its columns do not lie side by side. */
static bool find_rows(struct tma_statement *c, const tir_expr *inner, int64_t rows, int64_t *places) {
  int64_t columns = c->shape[c->to_rank - 1];
  bool known = tma_begin(c), same = true;
  if (!known) return false;
  uint8_t *seen = calloc(1, (size_t)rows);
  if (!seen) abort();
  do {
    int64_t at = tma_element(c, &known), row = at / columns;
    if (at < 0) continue;
    for (uint32_t d = 0; d < c->from_rank && same; d++) {
      int64_t place = tma_value(c, inner[d], &known) - (d + 1 == c->from_rank ? at % columns : 0);
      if (!seen[row]) places[row * c->from_rank + d] = place;
      same = places[row * c->from_rank + d] == place;
    }
    seen[row] = 1;
  } while (known && same && tma_advance(c));
  for (int64_t row = 0; row < rows; row++) same &= seen[row];
  free(seen);
  return known && same;
}

/* Each part's rows follow one another along dimension d. */
static bool are_runs(const int64_t *places, uint32_t rank, int64_t rows, int64_t length, uint32_t d) {
  for (int64_t row = 0; row < rows; row++)
    for (uint32_t e = 0; e < rank; e++) {
      int64_t along = row % length, first = (row - along) * rank;
      if (places[row * rank + e] != places[first + e] + (e == d ? along : 0)) return false;
    }
  return true;
}

static bool choose_parts(const int64_t *places, int64_t rows, struct lower_tma_copy *out) {
  for (uint32_t parts = 1; parts <= LOWER_TMA_PARTS; parts++) {
    int64_t length = rows / parts;
    if (rows % parts || length > TIR_BOX_MOST_SIDE || length % TIR_PANEL_ROWS) continue;
    for (uint32_t d = 0; d + 1 < out->rank; d++) {
      if (!are_runs(places, out->rank, rows, length, d)) continue;
      out->parts = parts, out->box[d] = length;
      return true;
    }
  }
  return false;
}

bool tma_find_parts(struct tma_statement *c, struct lower_tma_copy *out) {
  struct tir *ir = c->ir;
  uint32_t rank = out->rank;
  tir_expr outer[TIR_BOX_MOST_RANK], inner[TIR_BOX_MOST_RANK];
  int64_t rows = 1;
  for (uint32_t d = 0; d < rank; d++)
    if (!split_index(c, d, &outer[d], &inner[d])) return false;
  for (uint32_t d = 0; d + 1 < c->to_rank; d++) rows *= c->shape[d];
  for (uint32_t d = 0; d < rank; d++) out->box[d] = d + 1 < rank ? 1 : c->shape[c->to_rank - 1];
  int64_t *places = malloc((size_t)rows * rank * sizeof *places);
  if (!places) abort();
  bool found = find_rows(c, inner, rows, places) && choose_parts(places, rows, out);
  for (uint32_t d = 0; d < rank && found; d++) {
    out->at[d] = tir_simplify(ir, tir_add(ir, outer[d], tir_int(ir, tir_type_of(ir, outer[d]), places[d])));
    for (uint32_t part = 0; part < out->parts; part++)
      out->moved[part][d] = places[part * (rows / out->parts) * rank + d] - places[d];
  }
  free(places);
  return found;
}

/* Pixels: copies whose rows are pixels of a tensor one after the other, moved by a window's tap, which one instruction
 * can do in im2col mode. With p = 64 * bx + r,
 *
 *   S[r, c] = X[p // 196, p // 14 % 14 + k // 12 - 1, p % 14 + k // 4 % 3 - 1, k % 4 * 64 + c]
 *
 * copies pixels of images of 14 x 14 from p = 64 * bx on, at coordinates p // 196, p // 14 % 14 - 1, p % 14 - 1 and
 * k % 4 * 64, with the offsets k // 12 and k // 4 % 3 of the tap. A pixel's place in a dimension is `lower` and a
 * number of steps, so many as the digit of its number says; behind the last of a row comes the first of the next.
 * Pixels behind the last image, as of a product that is padded, are zero.
 * Source: PTX ISA, "Im2col mode"; CUDA Driver API, "cuTensorMapEncodeIm2col". */
#include "tir/arith/linear.h"
#include "tma_copy.h"

/* ---- Digits of a pixel's number ---- */

/* number // by % below; below is 0: the whole quotient. */
struct digit {
  int64_t by, below;
};

struct pixels {
  struct tma_statement *copy;
  tir_expr row; /* the row's index */
};

/* A number of pixels is that of the first, which the copy's own variables do not decide, and the row's; less, perhaps,
 * whole times `all`, of which there are no digits. 0: there are digits of all. */
static bool is_number(struct pixels *p, tir_expr e, int64_t all, tir_expr *first) {
  enum { MOST_TERMS = 16 };
  struct tir *ir = p->copy->ir;
  if (tir_type_of(ir, e) != tir_type_of(ir, p->row)) return false;
  struct tir_linear sum = tir_linear_of(ir, tir_simplify(ir, tir_sub(ir, e, p->row)));
  struct tir_term others[MOST_TERMS];
  uint32_t count = 0;
  if (sum.count > MOST_TERMS) return false;
  for (uint32_t i = 0; i < sum.count; i++) {
    struct tir_term t = tir_terms(ir, sum)[i];
    if (!tma_uses_own(p->copy, t.atom))
      others[count++] = t;
    else if (!all || t.coefficient % all)
      return false;
  }
  *first = tir_simplify(ir, tir_from_terms(ir, tir_type_of(ir, e), sum.constant, others, count));
  return true;
}

/* What is below quotients and remainders, and which digit these make of it. */
static bool read_divisions(struct tir *ir, tir_expr e, struct digit *out, tir_expr *divided) {
  struct tir_expr_node n = *tir_at(ir, e);
  int64_t by;
  bool remains = n.kind == TIR_FLOORMOD && tir_is_int(ir, n.b);
  tir_expr below = remains ? n.a : tma_as_quotient(ir, e, &by);
  if (!below) return *out = (struct digit){1, 0}, *divided = e, true;
  if (!read_divisions(ir, below, out, divided)) return false;
  if (remains) by = tir_at(ir, n.b)->imm;
  if (by < 1 || (out->below && out->below % by)) return false;
  if (remains) return out->below = by, true;
  return out->by *= by, out->below /= by, true;
}

/* Of a number of pixels, or of something finer, whose quotient is that number. */
static bool read_digit(struct pixels *p, tir_expr e, struct digit *out, tir_expr *first) {
  enum { FINEST = 256 };
  struct tir *ir = p->copy->ir;
  tir_expr divided;
  if (!read_divisions(ir, e, out, &divided)) return false;
  for (int64_t of = 1; of <= out->by && of <= FINEST; of++) {
    tir_expr by = tir_int(ir, tir_type_of(ir, divided), of);
    if (out->by % of) continue;
    tir_expr number = of == 1 ? divided : tir_simplify(ir, tir_floordiv(ir, divided, by));
    if (!is_number(p, number, out->by / of * out->below, first)) continue;
    return out->by /= of, true;
  }
  return false;
}

/* An index of what is loaded: steps of a digit, and the rest, which the copy's own variables do not decide. */
struct place {
  int64_t step; /* 0: it has no digit */
  struct digit digit;
  tir_expr first, all, rest; /* the number of the first pixel; the digit's expression */
};

enum { MOST_PARTS = 16 };

/* Parts of it that the copy's own variables decide are steps of one digit, which may have to be found (find_digit);
 * what they do not decide, and what a tap makes of a row, is of the rest. */
static bool read_place(struct pixels *p, tir_expr e, struct place *out) {
  struct tma_statement *c = p->copy;
  struct tir *ir = c->ir;
  if (!tir_is_index(ir, e)) return false;
  tir_expr whole = tir_simplify(ir, e), outer, inner;
  tir_type type = tir_type_of(ir, whole);
  struct tir_linear sum = tir_linear_of(ir, whole);
  struct tir_term terms[MOST_PARTS];
  uint32_t own = 0, count = sum.count;
  *out = (struct place){.rest = tir_int(ir, type, sum.constant)};
  if (count > MOST_PARTS) return false;
  for (uint32_t i = 0; i < count; i++) terms[i] = tir_terms(ir, sum)[i];
  for (uint32_t i = 0; i < count; i++) {
    struct tir_term t = terms[i];
    if (tma_split(c, t.atom, &outer, &inner) && tir_is_const(ir, tir_simplify(ir, inner), 0)) {
      out->rest = tir_add(ir, out->rest, tir_mul(ir, outer, tir_int(ir, type, t.coefficient)));
      continue;
    }
    if (t.coefficient < 1) return false;
    out->step = tma_greatest_divisor(out->step, t.coefficient), terms[own++] = t;
  }
  out->rest = tir_simplify(ir, out->rest);
  if (!own) return true;
  for (uint32_t i = 0; i < own; i++) terms[i].coefficient /= out->step;
  out->all = tir_from_terms(ir, type, 0, terms, own);
  if (!read_digit(p, out->all, &out->digit, &out->first)) out->digit.by = 0;
  return true;
}

static int64_t count_of(struct pixels *p, const struct place *place);

/* A digit by so many pixels, of a number of something coarser, as of lines of an image. */
static bool find_coarse_digit(struct pixels *p, struct place *place, int64_t by) {
  struct tir *ir = p->copy->ir;
  tir_expr divided, first;
  struct digit digit;
  if (!read_divisions(ir, place->all, &digit, &divided) || by % digit.by || digit.by == by) return false;
  tir_expr lines = tir_int(ir, tir_type_of(ir, p->row), by / digit.by);
  struct pixels of_lines = {p->copy, tir_simplify(ir, tir_floordiv(ir, p->row, lines))};
  if (!is_number(&of_lines, divided, digit.by * digit.below, &first)) return false;
  place->digit = (struct digit){by, digit.below};
  place->first = tir_simplify(ir, tir_mul(ir, first, lines));
  return true;
}

/* A digit whose expression says it of no number is that of the row's number by so many pixels, where it is the same. */
static bool find_row_digit(struct pixels *p, struct place *place, int64_t by) {
  struct tir *ir = p->copy->ir;
  tir_type type = tir_type_of(ir, p->row);
  place->digit = (struct digit){by, 0}, place->first = tir_int(ir, type, 0);
  int64_t count = count_of(p, place);
  if (tir_type_of(ir, place->all) != type || count < 1) return false;
  tir_expr quotient = tir_floordiv(ir, p->row, tir_int(ir, type, by));
  if (tir_is_const(ir, tir_simplify(ir, tir_sub(ir, quotient, place->all)), 0)) return true;
  place->digit.below = count;
  tir_expr remainder = tir_simplify(ir, tir_floormod(ir, quotient, tir_int(ir, type, count)));
  return tir_is_const(ir, tir_simplify(ir, tir_sub(ir, remainder, place->all)), 0);
}

static bool find_digit(struct pixels *p, struct place *place, int64_t by) {
  if (!place->step || place->digit.by) return true;
  return find_row_digit(p, place, by) || find_coarse_digit(p, place, by);
}

/* ---- What the instruction takes ---- */

bool tir_fits_im2col(uint32_t rank, const struct tir_pixels *pixels, int64_t most_offset) {
  static const int64_t corner[] = {1 << 15, 1 << 7, 1 << 4}; /* bits that one, two and three dimensions have */
  assert(rank >= 3 && rank <= TIR_BOX_MOST_RANK);
  for (uint32_t d = 0; d + 2 < rank; d++) {
    int64_t most = corner[rank - 3];
    if (pixels->lower[d] < -most || pixels->lower[d] >= most || pixels->upper[d] < -most || pixels->upper[d] >= most)
      return false;
    if (pixels->step[d] < 1 || pixels->step[d] > TIR_PIXELS_MOST_STEP) return false;
  }
  return most_offset >= 0 && most_offset < corner[rank - 3];
}

/* The steps of the first pixel's digit. */
static tir_expr first_steps(struct pixels *p, const struct place *place) {
  struct tir *ir = p->copy->ir;
  tir_type type = tir_type_of(ir, place->first);
  tir_expr e = tir_floordiv(ir, place->first, tir_int(ir, type, place->digit.by));
  if (place->digit.below) e = tir_floormod(ir, e, tir_int(ir, type, place->digit.below));
  e = tir_mul(ir, e, tir_int(ir, type, place->step));
  return type == tir_type_of(ir, place->rest) ? e : tir_cast(ir, tir_type_of(ir, place->rest), e);
}

/* With x - x // m * m in the place of x % m. */
static tir_expr without_remainders(struct tir *ir, tir_expr e) {
  enum { MOST_TERMS = 8 };
  struct tir_linear sum = tir_linear_of(ir, e);
  struct tir_term terms[MOST_TERMS];
  tir_type type = tir_type_of(ir, e);
  if (sum.count > MOST_TERMS) return e;
  for (uint32_t i = 0; i < sum.count; i++) terms[i] = tir_terms(ir, sum)[i];
  tir_expr all = tir_int(ir, type, sum.constant);
  for (uint32_t i = 0; i < sum.count; i++) {
    tir_expr atom = terms[i].atom;
    struct tir_expr_node n = *tir_at(ir, atom);
    if (n.kind == TIR_FLOORMOD) atom = tir_sub(ir, n.a, tir_mul(ir, tir_floordiv(ir, n.a, n.b), n.b));
    all = tir_add(ir, all, tir_mul(ir, atom, tir_int(ir, type, terms[i].coefficient)));
  }
  return tir_simplify(ir, all);
}

/* The digit is that of another number too, if these differ by whole times all values of the digit. */
static bool is_digit_of(struct pixels *p, const struct place *place, tir_expr first) {
  struct tir *ir = p->copy->ir;
  int64_t modulus, rest, all = place->digit.by * place->digit.below;
  tir_expr apart = without_remainders(ir, tir_simplify(ir, tir_sub(ir, place->first, first)));
  if (!all) return tir_is_const(ir, apart, 0);
  tir_modular(ir, apart, &modulus, &rest);
  return modulus % all == 0 && rest % all == 0;
}

/* How many values a digit has. */
static int64_t count_of(struct pixels *p, const struct place *place) {
  struct tir *ir = p->copy->ir;
  if (!place->step) return 1;
  struct tir_bounds b = tir_difference_bounds(ir, place->all, tir_int(ir, tir_type_of(ir, place->all), 0));
  return place->digit.below ? place->digit.below : b.lo < 0 || b.hi >= INT32_MAX ? 0 : b.hi + 1;
}

/* What the pipelined loop decides of an index is of a tap; the rest is of coordinates. */
static bool split_tap(struct pixels *p, tir_expr e, tir_expr *rest, tir_expr *tap) {
  struct tma_statement of_loop = {.ir = p->copy->ir, .var_count = 1};
  of_loop.vars[0].var = tir_as(p->copy->ir, p->copy->loop, TIR_LOOP)->loop.var;
  return tma_split(&of_loop, e, rest, tap);
}

static bool bounds_of(struct pixels *p, tir_expr e, struct tir_bounds *out) {
  *out = tir_difference_bounds(p->copy->ir, e, tir_int(p->copy->ir, tir_type_of(p->copy->ir, e), 0));
  return out->lo >= INT32_MIN && out->hi <= INT32_MAX;
}

/* Dimension d between the first and the last: corners, and where the first pixel is. stays: no pixel begins again from
 * the lower corner, so that coordinates may say where the first is; else all is said by offsets. */
static bool put_place(struct pixels *p, const struct place *place, int64_t count, bool stays, uint32_t d,
                      struct lower_tma_copy *out, int64_t *most_offset) {
  struct tir *ir = p->copy->ir;
  tir_type type = tir_type_of(ir, place->rest);
  tir_expr at = tir_int(ir, type, 0), tap = place->rest;
  struct tir_bounds moved, taps;
  int64_t step = place->step ? place->step : 1, modulus, over;
  if (stays && !split_tap(p, place->rest, &at, &tap)) at = tir_int(ir, type, 0), tap = place->rest;
  if (!bounds_of(p, at, &moved) || !bounds_of(p, tap, &taps)) return false;
  tir_modular(ir, tir_sub(ir, at, tir_int(ir, type, moved.lo)), &modulus, &over);
  if (modulus % step || over % step) return false;
  out->pixels.lower[d - 1] = moved.lo + taps.lo, out->pixels.step[d - 1] = step;
  out->pixels.upper[d - 1] = moved.hi + taps.lo + (count - 1) * step - (out->extents[d] - 1);
  out->offsets[d - 1] = tir_simplify(ir, tir_sub(ir, tap, tir_int(ir, type, taps.lo)));
  if (taps.hi - taps.lo > *most_offset) *most_offset = taps.hi - taps.lo;
  if (place->step) at = tir_add(ir, at, first_steps(p, place));
  out->at[d] = tir_simplify(ir, tir_add(ir, at, tir_int(ir, type, taps.lo)));
  return true;
}

/* The pixels of a copy end where the digit begins again, or before. */
static bool ends_in_time(struct pixels *p, const struct place *place, int64_t pixels) {
  int64_t modulus, rest, all = place->digit.by * place->digit.below;
  tir_modular(p->copy->ir, place->first, &modulus, &rest);
  int64_t apart = tma_greatest_divisor(all, modulus); /* where the first pixel may be, less the rest */
  return rest % apart + pixels <= apart;
}

/* Digits of dimensions, the innermost first, make up the number: all of it, so that it begins nowhere again; or of an
 * image, which no copy leaves. The outermost digit's number is that of the pixel, perhaps less whole images. */
static bool put_places(struct pixels *p, struct place *places, struct lower_tma_copy *out) {
  struct tir *ir = p->copy->ir;
  const struct place *outermost = places;
  int64_t by = 1, most_offset = 0;
  for (uint32_t d = out->rank - 1; d-- > 0;) {
    if (!find_digit(p, &places[d], by)) return false;
    int64_t count = count_of(p, &places[d]);
    if (count < 1 || count > INT32_MAX / by) return false;
    by *= count;
  }
  by = 1;
  for (uint32_t d = 0; d + 2 < out->rank && !outermost->step; d++) outermost++;
  if (!outermost->step || (outermost->digit.below && !ends_in_time(p, outermost, out->box[0]))) return false;
  for (uint32_t d = out->rank - 2; d > 0; d--) {
    const struct place *place = &places[d];
    int64_t count = count_of(p, place);
    if (place->step && (place->digit.by != by || !is_digit_of(p, place, outermost->first))) return false;
    if (place->step && place != outermost && !place->digit.below) return false;
    if (count < 1 || count > INT32_MAX / by || !put_place(p, place, count, place <= outermost, d, out, &most_offset))
      return false;
    by *= count;
  }
  if (places->step && (places->step != 1 || places->digit.by != by)) return false;
  out->at[0] = places->rest;
  if (places->step) out->at[0] = tir_simplify(ir, tir_add(ir, places->rest, first_steps(p, places)));
  return tir_fits_im2col(out->rank, &out->pixels, most_offset);
}

/* ---- Where images end ---- */

/* Of the only image, which nothing counts, as pixels would be numbered where there were more: below a condition's end.
 * What is behind it then lies in a second image, and not in rows behind the last. */
static void count_image(struct pixels *p, struct place *places, const struct lower_tma_copy *out) {
  struct tir *ir = p->copy->ir;
  struct place *outermost = places + 1;
  while (outermost < places + out->rank - 2 && !outermost->step) outermost++;
  if (places->step || out->extents[0] != 1 || !tir_is_const(ir, places->rest, 0)) return;
  if (!outermost->step || outermost->digit.below) return;
  tir_type type = tir_type_of(ir, outermost->first);
  tir_expr number = tir_add(ir, outermost->first, p->row);
  for (uint32_t i = 0; i < p->copy->condition_count; i++) {
    tir_expr margin = tma_margin(ir, p->copy->conditions[i]);
    if (!margin || tir_type_of(ir, margin) != type) continue;
    tir_expr end = tir_simplify(ir, tir_add(ir, margin, number));
    int64_t pixels = tir_is_int(ir, end) ? tir_at(ir, end)->imm : 0;
    if (pixels < 1 || pixels % outermost->digit.by) continue;
    outermost->digit.below = pixels / outermost->digit.by;
    *places = (struct place){.step = 1, .digit = {pixels, 0}, .first = outermost->first, .rest = places->rest};
    return;
  }
}

/* Notes how many pixels the images have in all. */
static void count_pixels(struct pixels *p, const struct place *images, const struct lower_tma_copy *out) {
  struct tma_statement *c = p->copy;
  c->pixel = TIR_NONE;
  if (images->step != 1 || !tir_is_const(c->ir, images->rest, 0)) return;
  if (images->digit.by > INT32_MAX / out->extents[0]) return;
  c->pixel = tir_add(c->ir, images->first, p->row), c->pixels = images->digit.by * out->extents[0];
}

bool tma_find_pixels(struct tma_statement *c, struct lower_tma_copy *out) {
  struct pixels p = {.copy = c, .row = c->stored[c->to_rank - 2]};
  struct place places[TIR_BOX_MOST_RANK];
  uint32_t last = out->rank - 1;
  int64_t element = tir_type_bits(tir_buffer_at(c->ir, c->to)->type) / 8;
  if (out->rank < 3 || out->extents[last] * element % TIR_BOX_ALIGNMENT) return false;
  for (uint32_t d = 0; d + 2 < c->to_rank; d++)
    if (c->shape[d] != 1) return false;
  for (uint32_t d = 0; d <= last; d++) out->box[d] = 1;
  out->box[0] = c->shape[c->to_rank - 2], out->box[last] = c->shape[c->to_rank - 1];
  if (out->box[0] > TIR_PIXELS_MOST) return false;
  for (uint32_t d = 0; d < last; d++)
    if (!read_place(&p, c->loaded[d], &places[d])) return false;
  if (!tir_is_index(c->ir, c->loaded[last])) return false;
  out->at[last] = tma_coordinate(c, c->loaded[last], c->stored[c->to_rank - 1]);
  count_image(&p, places, out);
  out->im2col = out->at[last] && put_places(&p, places, out);
  count_pixels(&p, places, out);
  return out->im2col;
}

/* Agreement on real numbers: data whose sums round, and how far apart two orders of computing may then come.
 *
 * Small integers show a wrong index, a term left out or taken twice, but not arithmetic that is coarser than the
 * function's, since their sums are exact in float16 too. Real numbers show that. What they cost is a tolerance. */
#include "interp.h"

#include <math.h>
#include <string.h>

/* ---- Types ---- */

double tir_type_epsilon(tir_type type) {
  if (!tir_type_is_float(type)) return 0;
  if (tir_type_bits(type) == 64) return 0x1p-52;
  if (tir_type_bits(type) == 32) return 0x1p-23;
  if (tir_type_is_byte(type)) return tir_type_code(type) == TIR_E4M3 ? 0x1p-3 : 0x1p-2;
  return tir_type_code(type) == TIR_BFLOAT ? 0x1p-7 : 0x1p-10;
}

/* Loads, constants, minima and selections give a number that there was before. */
static bool rounds(const struct tir_expr_node *n) {
  bool arithmetic = n->kind >= TIR_ADD && n->kind <= TIR_FLOORMOD;
  return arithmetic || n->kind == TIR_CAST || n->kind == TIR_CALL;
}

double tir_coarsest_epsilon(const struct tir *ir) {
  double most = 0;
  for (tir_expr e = 1; e < ir->exprs.count; e++)
    if (rounds(tir_at(ir, e))) most = fmax(most, tir_type_epsilon(tir_type_with_lanes(tir_at(ir, e)->type, 1)));
  return most;
}

/* ---- Steps ---- */

static bool is_float(const struct tir *ir, tir_expr e) { return tir_type_is_float(tir_at(ir, e)->type); }

static bool is_step(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind >= TIR_EQ && n->kind <= TIR_GE) return is_float(ir, n->a);
  if (n->kind == TIR_CAST) return is_float(ir, n->a) && !tir_type_is_float(n->type);
  if (n->kind == TIR_MOD || n->kind == TIR_FLOORDIV || n->kind == TIR_FLOORMOD) return tir_type_is_float(n->type);
  enum tir_function f = n->kind == TIR_CALL ? tir_function_named(tir_text(ir, n->ref)) : TIR_FUNCTIONS;
  return f < TIR_FUNCTIONS && tir_functions[f].jumps;
}

bool tir_has_steps(const struct tir *ir) {
  for (tir_expr e = 1; e < ir->exprs.count; e++)
    if (is_step(ir, e)) return true;
  return false;
}

/* ---- Data ---- */

static tir_type element_of(const struct tir *ir, tir_func f, uint32_t parameter) {
  tir_buffer b = ir->params.at[ir->funcs.at[f].params.first + parameter].buffer;
  return b ? tir_type_with_lanes(tir_buffer_at(ir, b)->type, 1) : TIR_T_VOID;
}

/* Either sign, from 1/8 to 1: no term is lost beside the others, and quotients stay small. */
static double draw(uint64_t seed, uint32_t parameter, uint64_t element) {
  uint64_t drawn = tir_drawn(seed, parameter, element);
  double x = 0.125 + 0.875 * (double)(drawn >> 12) * 0x1p-52;
  return drawn & 1 ? x : -x;
}

typedef double change_element(double x, tir_type type, uint64_t seed, uint32_t parameter, uint64_t element);

/* Calls change(x, …) on every element of a buffer of floats. */
static void each_of(const struct tir *ir, tir_func f, const struct tir_arg *arg, uint64_t seed, uint32_t parameter,
                    change_element *change) {
  tir_type type = element_of(ir, f, parameter);
  if (!tir_type_is_float(type)) return;
  enum format format = interp_format(type);
  uint64_t size = (uint64_t)interp_format_size(format);
  for (uint64_t k = 0; k < arg->bytes / size; k++) {
    uint8_t *at = (uint8_t *)arg->data + k * size;
    tir_put_element(type, at, change(interp_fetch(format, at).f, type, seed, parameter, k));
  }
}

/* The same of all buffers of floats. */
static void each_float(const struct tir *ir, tir_func f, struct tir_arguments *arguments, uint64_t seed,
                       change_element *change) {
  for (uint32_t i = 0; i < arguments->count; i++) each_of(ir, f, &arguments->args[i], seed, i, change);
}

static double fill_real(double x, tir_type type, uint64_t seed, uint32_t parameter, uint64_t element) {
  (void)x, (void)type;
  return draw(seed, parameter, element);
}

bool tir_make_real_arguments(const struct tir *ir, tir_func f, uint64_t seed, struct tir_arguments *out,
                             ms_error *err) {
  if (!tir_make_arguments(ir, f, seed, out, err)) return false;
  each_float(ir, f, out, seed, fill_real);
  return true;
}

void tir_fill_real_argument(const struct tir *ir, tir_func f, uint64_t seed, uint32_t parameter,
                            const struct tir_arg *arg) {
  each_of(ir, f, arg, seed, parameter, fill_real);
}

/* By up to four times the spacing of its type, either way. Types of 16 bits are left: their spacing is far wider than
 * what a sum in float32 loses. */
static double nudged(double x, tir_type type, uint64_t seed, uint32_t parameter, uint64_t element) {
  if (tir_type_bits(type) < 32) return x;
  return x * (1 + 4 * tir_type_epsilon(type) * draw(seed + 1, parameter, element));
}

void tir_nudge_arguments(const struct tir *ir, tir_func f, uint64_t seed, struct tir_arguments *arguments) {
  each_float(ir, f, arguments, seed, nudged);
}

/* ---- Tolerance ---- */

/* Sums of n terms differ by order. In the worst case by 2n roundings of half a spacing each; roundings being as good as
 * independent, by some sqrt(n) of them (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019): eight times that is
 * allowed. Where a sum is so long that terms vanish beside it, they are not independent. */
static double roundings_of_sum(double n, double epsilon) { return n * epsilon < 1 ? fmin(8 * sqrt(n), 2 * n) : 2 * n; }

double tir_real_tolerance(const struct tir *ir, tir_func f) {
  double epsilon = tir_coarsest_epsilon(ir), roundings = 8;
  tir_stmt top = ir->funcs.at[f].body;
  for (tir_stmt s = top; s != TIR_NONE; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_STORE)) roundings += roundings_of_sum(tir_reduction_length(ir, s), epsilon);
  return epsilon * roundings;
}

double tir_whole_tolerance(const struct tir *ir, tir_func f, const struct tir_arguments *results, uint32_t parameter) {
  tir_type type = element_of(ir, f, parameter);
  double epsilon = tir_type_epsilon(type), most = 0;
  if (epsilon == 0) return INFINITY;
  const struct tir_arg *arg = &results->args[parameter];
  size_t size = (size_t)tir_type_bits(type) / 8;
  for (size_t at = 0; at + size <= arg->bytes; at += size) {
    double x = fabs(tir_fetch_element(type, (const uint8_t *)arg->data + at));
    if (x != floor(x) || !(x < 1 / epsilon)) return INFINITY;
    most = fmax(most, x);
  }
  return most > 0 ? 0.49 / most : INFINITY;
}

/* ---- Differences ---- */

static double difference_of(tir_type type, const struct tir_arg *x, const struct tir_arg *y) {
  enum format format = interp_format(type);
  uint64_t size = (uint64_t)interp_format_size(format);
  double most = 0, largest = 0;
  for (uint64_t i = 0; i < x->bytes / size; i++) {
    double a = interp_fetch(format, (uint8_t *)x->data + i * size).f;
    double b = interp_fetch(format, (uint8_t *)y->data + i * size).f;
    if (isnan(a) && isnan(b)) continue;
    if (isfinite(a)) largest = fmax(largest, fabs(a));
    if (a != b) most = isfinite(a) && isfinite(b) ? fmax(most, fabs(a - b)) : INFINITY;
  }
  return most == 0 ? 0 : most / largest;
}

double tir_difference(const struct tir *ir, tir_func f, const struct tir_arguments *expected,
                      const struct tir_arguments *actual) {
  double most = 0;
  for (uint32_t i = 0; i < expected->count; i++) {
    tir_type type = element_of(ir, f, i);
    const struct tir_arg *x = &expected->args[i], *y = &actual->args[i];
    if (type == TIR_T_VOID || !memcmp(x->data, y->data, x->bytes)) continue;
    most = fmax(most, tir_type_is_float(type) ? difference_of(type, x, y) : INFINITY);
  }
  return most;
}

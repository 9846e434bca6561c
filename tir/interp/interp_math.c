/* Arithmetic of the reference interpreter: types rounded and wrapped, elements in memory, calls by name. */
#include "interp.h"

#include <assert.h>
#include <math.h>
#include <string.h>

_Thread_local unsigned interp_rounded;

/* ---- Floats of 16 and of 8 bits ---- */

/* What a narrow float type can hold: bits of its significand (the hidden one counted), the exponent of its smallest
 * normal number, and the first magnitude that rounds to infinity, or else, where there is a greatest, to that: floats
 * of 8 bits saturate, infinities too, as PTX's cvt.satfinite and ONNX's Cast do. */
struct narrow {
  int precision, min_exponent;
  double overflow, greatest;
  unsigned flag;
};
static const struct narrow half = {11, -14, 65520.0, 0, ROUNDED_F16};
static const struct narrow brain = {8, -126, 0x1.FFp127, 0, ROUNDED_BF16};
static const struct narrow e4m3 = {4, -6, 448.0, 448.0, ROUNDED_E4M3};
static const struct narrow e5m2 = {3, -14, 57344.0, 57344.0, ROUNDED_E5M2};
static const struct narrow *byte_of(enum tir_code code) { return code == TIR_E4M3 ? &e4m3 : &e5m2; }

/* A double's exponent, and powers of two, by their bits: frexp and ldexp are calls, and most of a conversion's time. */
enum { FRACTION_BITS = 52, BIAS = 1023 };

static uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Of a normal number; of a subnormal one, one less than any normal number's. */
static int exponent_of(double x) { return (int)(bits_of(x) >> FRACTION_BITS & 0x7FF) - BIAS; }

static double power_of_two(int exponent) {
  assert(exponent > -BIAS && exponent <= BIAS);
  uint64_t bits = (uint64_t)(exponent + BIAS) << FRACTION_BITS;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static double round_narrow(const struct narrow *n, double x) {
  if (x == 0 || isnan(x) || (isinf(x) && !n->greatest)) return x;
  if (fabs(x) >= n->overflow) {
    if (fabs(x) != n->greatest) interp_rounded |= n->flag;
    return copysign(n->greatest ? n->greatest : INFINITY, x);
  }
  int exponent = exponent_of(x), lowest = exponent < n->min_exponent ? n->min_exponent : exponent;
  /* The quantum is a power of two: scaling by it is exact, and nearbyint rounds to nearest, ties to even. */
  int quantum = lowest - n->precision + 1;
  double rounded = nearbyint(x * power_of_two(-quantum)) * power_of_two(quantum);
  if (rounded != x) interp_rounded |= n->flag;
  return rounded;
}

double interp_round_to(tir_type t, double x) {
  if (tir_type_code(t) == TIR_BFLOAT) return round_narrow(&brain, x);
  if (tir_type_is_byte(t)) return round_narrow(byte_of(tir_type_code(t)), x);
  switch (tir_type_bits(t)) {
  case 16: return round_narrow(&half, x);
  case 32: return (double)(float)x;
  default: return x;
  }
}

/* Bits of a value that round_narrow gave. */
enum { HALF_FRACTION_BITS = 10, HALF_BIAS = 15, HALF_FRACTION = (1 << HALF_FRACTION_BITS) - 1 };
static uint16_t half_bits(double x) {
  uint16_t sign = signbit(x) ? 0x8000 : 0;
  if (isnan(x)) return sign | 0x7E00;
  if (isinf(x)) return sign | 0x7C00;
  int exponent = exponent_of(x);
  if (exponent < half.min_exponent) return sign | (uint16_t)(fabs(x) * 0x1p24);
  uint64_t fraction = bits_of(x) >> (FRACTION_BITS - HALF_FRACTION_BITS) & HALF_FRACTION;
  return sign | (uint16_t)((exponent + HALF_BIAS) << HALF_FRACTION_BITS) | (uint16_t)fraction;
}

static uint16_t interp_to_half(double x) { return half_bits(round_narrow(&half, x)); }

/* Its exponent and fraction in a double's places are the number by 2^(HALF_BIAS - BIAS), subnormal or not. */
static double interp_from_half(uint16_t h) {
  uint64_t magnitude = h & 0x7FFF, bits = magnitude << (FRACTION_BITS - HALF_FRACTION_BITS);
  double x;
  memcpy(&x, &bits, sizeof x);
  x = magnitude < 0x7C00 ? x * 0x1p1008 : magnitude == 0x7C00 ? INFINITY : NAN;
  return h & 0x8000 ? -x : x;
}
static_assert(BIAS - HALF_BIAS == 1008, "the power of two that interp_from_half multiplies by");

/* An infinity stays one where the type has it: it is a copy of such. */
static uint8_t to_byte(const struct narrow *n, double x) {
  int fraction = n->precision - 1;
  uint8_t sign = signbit(x) ? 0x80 : 0;
  if (isnan(x)) return 0x7F;
  if (isinf(x) && n == &e5m2) return sign | 0x7C;
  x = round_narrow(n, x);
  int exponent = exponent_of(x);
  if (exponent < n->min_exponent) return sign | (uint8_t)(fabs(x) * power_of_two(fraction - n->min_exponent));
  uint64_t rest = bits_of(x) >> (FRACTION_BITS - fraction) & ((1u << fraction) - 1);
  return sign | (uint8_t)((exponent - n->min_exponent + 1) << fraction) | (uint8_t)rest;
}

static double from_byte(const struct narrow *n, uint8_t b) {
  enum { MAGNITUDE = 0x7F, INFINITE = 0x7C };
  int fraction = n->precision - 1, magnitude = b & MAGNITUDE, exponent = magnitude >> fraction;
  int rest = magnitude & ((1 << fraction) - 1), hidden = exponent ? 1 << fraction : 0;
  double x = (rest + hidden) * power_of_two((exponent ? exponent : 1) + n->min_exponent - 1 - fraction);
  if (n == &e4m3 && magnitude == MAGNITUDE) x = NAN;
  if (n == &e5m2 && magnitude >= INFINITE) x = magnitude == INFINITE ? INFINITY : NAN;
  return b & 0x80 ? -x : x;
}

static double from_brain(uint16_t b) {
  uint32_t bits = (uint32_t)b << 16;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static uint16_t to_brain(double x) {
  float narrow = (float)round_narrow(&brain, x);
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return isnan(x) ? (uint16_t)(bits >> 16 | 0x40) : (uint16_t)(bits >> 16);
}

/* ---- Integers ---- */

int64_t interp_wrap(tir_type t, int64_t x) {
  int bits = tir_type_bits(t);
  if (tir_type_code(t) == TIR_BOOL) return x != 0;
  if (bits >= 64 || bits == 0) return x;
  uint64_t low = (uint64_t)x << (64 - bits);
  return tir_type_code(t) == TIR_INT ? (int64_t)low >> (64 - bits) : (int64_t)(low >> (64 - bits));
}

double interp_to_tf32(double x) {
  float single = (float)x;
  uint32_t bits, half = 1u << 12;
  memcpy(&bits, &single, sizeof bits);
  if (isfinite(single)) bits = (bits + half) & ~(2 * half - 1);
  memcpy(&single, &bits, sizeof bits);
  return single;
}

double interp_from_int(tir_type t, int64_t x, bool is_signed) {
  if (t == TIR_T_F32) return is_signed ? (float)x : (float)(uint64_t)x;
  uint64_t bits = (uint64_t)x, size = is_signed && x < 0 ? 0 - bits : bits, unit = 1 << 12;
  /* Bits below those of a double stand as one above the last that it has: no tie comes of rounding twice. */
  if (tir_type_bits(t) < 64 && size >> 53) size = (size & ~(unit - 1)) | (size & (unit - 1) ? unit / 2 : 0);
  return interp_round_to(t, is_signed && x < 0 ? -(double)size : (double)size);
}

int64_t interp_to_int(tir_type t, double x) {
  if (isnan(x)) return 0;
  if (tir_type_code(t) == TIR_BOOL) return x != 0;
  int bits = tir_type_bits(t);
  bool is_signed = tir_type_code(t) == TIR_INT;
  double below = is_signed ? -ldexp(1.0, bits - 1) : 0.0, above = ldexp(1.0, is_signed ? bits - 1 : bits);
  x = trunc(x);
  if (x < below) x = below;
  if (x >= above) {
    uint64_t most = UINT64_MAX >> (64 - bits);
    return (int64_t)(is_signed ? most >> 1 : most);
  }
  return is_signed ? (int64_t)x : (int64_t)(uint64_t)x;
}

/* ---- Elements in memory ---- */

enum format interp_format(tir_type t) {
  int bits = tir_type_bits(t);
  switch (tir_type_code(t)) {
  case TIR_BOOL: return FORMAT_U8;
  case TIR_INT:
  case TIR_UINT: {
    bool is_signed = tir_type_code(t) == TIR_INT;
    if (bits <= 8) return is_signed ? FORMAT_I8 : FORMAT_U8;
    if (bits == 16) return is_signed ? FORMAT_I16 : FORMAT_U16;
    if (bits == 32) return is_signed ? FORMAT_I32 : FORMAT_U32;
    return bits == 64 ? FORMAT_I64 : FORMAT_BAD;
  }
  case TIR_FLOAT: return bits == 16 ? FORMAT_F16 : bits == 32 ? FORMAT_F32 : bits == 64 ? FORMAT_F64 : FORMAT_BAD;
  case TIR_BFLOAT: return bits == 16 ? FORMAT_BF16 : FORMAT_BAD;
  case TIR_E4M3: return FORMAT_E4M3;
  case TIR_E5M2: return FORMAT_E5M2;
  case TIR_HANDLE: return FORMAT_I64;
  default: return FORMAT_BAD;
  }
}

int interp_format_size(enum format format) {
  assert(format <= FORMAT_BAD);
  static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 2, 2, 4, 8, 1, 1, 1};
  return sizes[format];
}

#define FETCH(type, field)                                                                                             \
  {                                                                                                                    \
    type element;                                                                                                      \
    memcpy(&element, at, sizeof element);                                                                              \
    v.field = element;                                                                                                 \
    return v;                                                                                                          \
  }
union value interp_fetch(enum format format, const void *at) {
  assert(format != FORMAT_BAD && at);
  union value v = {0};
  uint16_t bits;
  switch (format) {
  case FORMAT_I8: FETCH(int8_t, i)
  case FORMAT_U8: FETCH(uint8_t, i)
  case FORMAT_I16: FETCH(int16_t, i)
  case FORMAT_U16: FETCH(uint16_t, i)
  case FORMAT_I32: FETCH(int32_t, i)
  case FORMAT_U32: FETCH(uint32_t, i)
  case FORMAT_I64: FETCH(int64_t, i)
  case FORMAT_F32: FETCH(float, f)
  case FORMAT_F64: FETCH(double, f)
  case FORMAT_F16:
  case FORMAT_BF16:
    memcpy(&bits, at, sizeof bits);
    v.f = format == FORMAT_F16 ? interp_from_half(bits) : from_brain(bits);
    return v;
  case FORMAT_E4M3: v.f = from_byte(&e4m3, *(const uint8_t *)at); return v;
  case FORMAT_E5M2: v.f = from_byte(&e5m2, *(const uint8_t *)at); return v;
  case FORMAT_BAD: break;
  }
  assert(!"an element without a format");
  return v;
}
#undef FETCH

#define PUT(type, field)                                                                                               \
  {                                                                                                                    \
    type element = (type)v.field;                                                                                      \
    memcpy(at, &element, sizeof element);                                                                              \
    return;                                                                                                            \
  }
void interp_put(enum format format, void *at, union value v) {
  assert(format != FORMAT_BAD && at);
  uint16_t bits;
  switch (format) {
  case FORMAT_I8:
  case FORMAT_U8: PUT(uint8_t, i)
  case FORMAT_I16:
  case FORMAT_U16: PUT(uint16_t, i)
  case FORMAT_I32:
  case FORMAT_U32: PUT(uint32_t, i)
  case FORMAT_I64: PUT(int64_t, i)
  case FORMAT_F32: PUT(float, f)
  case FORMAT_F64: PUT(double, f)
  case FORMAT_F16:
  case FORMAT_BF16:
    bits = format == FORMAT_F16 ? interp_to_half(v.f) : to_brain(v.f);
    memcpy(at, &bits, sizeof bits);
    return;
  case FORMAT_E4M3: *(uint8_t *)at = to_byte(&e4m3, v.f); return;
  case FORMAT_E5M2: *(uint8_t *)at = to_byte(&e5m2, v.f); return;
  case FORMAT_BAD: break;
  }
  assert(!"an element without a format");
}
#undef PUT

union value interp_reinterpret(tir_type from, tir_type to, union value v) {
  unsigned char bytes[8] = {0};
  interp_put(interp_format(from), bytes, v);
  return interp_fetch(interp_format(to), bytes);
}

/* ---- Elementary functions ---- */

int interp_math_find(const char *name, uint32_t arity) {
  enum tir_function f = tir_function_named(name);
  bool found = f < TIR_FUNCTIONS && tir_functions[f].operands == arity && arity <= 2;
  return found ? (int)f : -1;
}
double interp_math1(int which, double x) { return tir_functions[which].of_one(x); }
double interp_math2(tir_type t, int which, double x, double y) {
  bool steps = which == TIR_FUNCTION_nextafter && tir_type_bits(t) == 32; /* the step is the type's */
  return steps ? (double)nextafterf((float)x, (float)y) : tir_functions[which].of_two(x, y);
}

double tir_fetch_element(tir_type type, const void *at) {
  assert(tir_type_lanes(type) <= 1);
  union value v = interp_fetch(interp_format(type), at);
  return tir_type_is_float(type) ? v.f : (double)v.i;
}

void tir_put_element(tir_type type, void *at, double value) {
  assert(tir_type_lanes(type) <= 1);
  union value v;
  if (tir_type_is_float(type))
    v.f = value;
  else
    v.i = interp_to_int(type, value);
  interp_put(interp_format(type), at, v);
}

/* Floats of 16 bits, two at once: each result is rounded once, from what is exact in double. NaNs are as the GPU gives
 * them. */

/* To the nearest of `precision` bits, ties to even, whose least normal number is 2^least. */
static inline double shim_round(double x, int precision, int least) {
  int power;
  if (x == 0 || !isfinite(x)) return x;
  frexp(x, &power);
  double quantum = ldexp(1, (power - 1 < least ? least : power - 1) - precision + 1);
  return copysign(nearbyint(fabs(x) / quantum) * quantum, x);
}

static inline double shim_half(uint32_t bits) { return fibers_of_half((uint16_t)bits); }
static inline uint32_t shim_to_half(double x) {
  x = shim_round(x, 11, -14);
  return isnan(x) ? 0x7fffu : fibers_to_half(fabs(x) >= 65536 ? (float)copysign(INFINITY, x) : (float)x);
}
static inline double shim_bfloat(uint32_t bits) {
  float x;
  bits <<= 16;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static inline uint32_t shim_to_bfloat(double x) {
  float rounded = (float)shim_round(x, 8, -126);
  uint32_t bits;
  memcpy(&bits, &rounded, sizeof bits);
  return isnan(x) ? 0x7fffu : bits >> 16;
}

#define SHIM_PAIR(low, high) ((low) | (high) << 16)
#define SHIM_HALVES(name, operator)                                                                                    \
  [[maybe_unused]] static uint32_t name(uint32_t a, uint32_t b) {                                                      \
    return SHIM_PAIR(shim_to_half(shim_half(a) operator shim_half(b)),                                                 \
                     shim_to_half(shim_half(a >> 16) operator shim_half(b >> 16)));                                    \
  }
SHIM_HALVES(ms_add_half2, +)
SHIM_HALVES(ms_sub_half2, -)
SHIM_HALVES(ms_mul_half2, *)
[[maybe_unused]] static uint32_t ms_above_half2(uint32_t a, uint32_t b) {
  return SHIM_PAIR(shim_half(a) > shim_half(b) ? 0xffffu : 0, shim_half(a >> 16) > shim_half(b >> 16) ? 0xffffu : 0);
}
[[maybe_unused]] static uint32_t ms_above_bfloat2(uint32_t a, uint32_t b) {
  return SHIM_PAIR(shim_bfloat(a & 0xffffu) > shim_bfloat(b & 0xffffu) ? 0xffffu : 0,
                   shim_bfloat(a >> 16) > shim_bfloat(b >> 16) ? 0xffffu : 0);
}
[[maybe_unused]] static uint32_t ms_fma_bfloat2(uint32_t a, uint32_t b, uint32_t c) {
  return SHIM_PAIR(shim_to_bfloat(shim_bfloat(a & 0xffffu) * shim_bfloat(b & 0xffffu) + shim_bfloat(c & 0xffffu)),
                   shim_to_bfloat(shim_bfloat(a >> 16) * shim_bfloat(b >> 16) + shim_bfloat(c >> 16)));
}

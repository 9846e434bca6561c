/* What a warp does with mma.sync and ldmatrix, on a CPU: lanes hold what the layout of fragments says, each of the
 * others reads it from their registers. */

static const void *shim_row_of_thread[FIBERS_MOST_THREADS];

/* Rows that meet in a bank are taken for a mistake. Lane l names row l % 8 of matrix l / 8, and gets of each matrix
 * what its number says: two elements of 16 bits of row l / 4, or of column l / 4. */
template <bool TRANSPOSED> static void shim_ldmatrix(uint32_t *d, uint32_t at) {
  const void *row = fibers_shared_at(at);
  unsigned thread = fibers_thread(), lane = thread % 32, first = thread - lane;
  if ((uintptr_t)row % 16) fibers_fail("ldmatrix: lane %u names a row that begins between multiples of 16 bytes", lane);
  shim_row_of_thread[thread] = row;
  fibers_shuffle(~0u, 0, 0, 32, -5); /* as one */
  fibers_check_banks(&shim_row_of_thread[first], 32, 16);
  for (unsigned i = 0; i < 4; i++) {
    uint16_t part[2];
    for (unsigned p = 0; p < 2; p++) {
      unsigned of = TRANSPOSED ? lane % 4 * 2 + p : lane / 4, at = TRANSPOSED ? lane / 4 : lane % 4 * 2 + p;
      memcpy(&part[p], (const uint16_t *)shim_row_of_thread[first + 8 * i + of] + at, sizeof part[p]);
    }
    d[i] = part[0] | (uint32_t)part[1] << 16;
  }
  fibers_shuffle(~0u, 0, 0, 32, -6);
}
[[maybe_unused]] static void ms_ldmatrix_x4(uint32_t *d, uint32_t at) { shim_ldmatrix<false>(d, at); }
[[maybe_unused]] static void ms_ldmatrix_x4_trans(uint32_t *d, uint32_t at) { shim_ldmatrix<true>(d, at); }
[[maybe_unused]] static float ms_short_exp2(float x) { return exp2f(x); }
[[maybe_unused]] static uint32_t ms_to_tf32(uint32_t bits) { return fibers_to_tf32(bits); }

/* Elements as a register holds them. */
struct shim_f16 {
  enum { bits = 16 };
  static double value(uint32_t x) { return fibers_of_half((uint16_t)x); }
};
struct shim_bf16 {
  enum { bits = 16 };
  static double value(uint32_t x) {
    float f;
    x <<= 16;
    memcpy(&f, &x, sizeof f);
    return f;
  }
};
struct shim_tf32 {
  enum { bits = 32 };
  static double value(uint32_t x) {
    float f;
    x &= ~0x1fffu; /* the unit does not read them */
    memcpy(&f, &x, sizeof f);
    return f;
  }
};
struct shim_e4m3 {
  enum { bits = 8 };
  static double value(uint32_t x) { return fibers_of_byte((uint8_t)x, true); }
};
struct shim_e5m2 {
  enum { bits = 8 };
  static double value(uint32_t x) { return fibers_of_byte((uint8_t)x, false); }
};
struct shim_s8 {
  enum { bits = 8 };
  static double value(uint32_t x) { return (int8_t)x; }
};
struct shim_u8 {
  enum { bits = 8 };
  static double value(uint32_t x) { return (uint8_t)x; }
};

template <class IN> static double shim_element(const void *registers, int element) {
  enum { held = 32 / IN::bits };
  uint32_t word = ((const uint32_t *)registers)[element / held];
  return IN::value(word >> element % held * IN::bits & (~0u >> (32 - IN::bits)));
}

/* Sums as lanes hold them: one a register, or two halves in one. */
template <class S> static double shim_sum(const S *d, int i) { return d[i]; }
static double shim_sum(const uint32_t *d, int i) { return fibers_of_half((uint16_t)(d[i / 2] >> i % 2 * 16)); }
template <class S> static void shim_put_sum(S *d, int i, double sum) { shim_round(&d[i], sum); }
static void shim_put_sum(uint32_t *d, int i, double sum) {
  d[i / 2] = (d[i / 2] & 0xffff0000u >> i % 2 * 16) | (uint32_t)fibers_to_half((float)sum) << i % 2 * 16;
}

/* What a warp multiplies, as its lanes hold it. */
struct shim_fragments {
  bool read;
  double x[16][32], y[32][8];
};
static struct shim_fragments shim_fragments_of[FIBERS_MOST_THREADS / 32];

/* d += a * b of 16 rows, 8 columns; a of so many columns: with half of what fills its registers it has half of them. */
template <class IN, int DEPTH, class SUM> static void shim_mma(SUM *d, const uint32_t *a, const uint32_t *b) {
  enum { of_lane = 16 * DEPTH / 32 };
  unsigned thread = fibers_thread(), lane = thread % 32, first = thread - lane;
  struct shim_fragments *f = &shim_fragments_of[thread / 32];
  shim_of_thread[thread] = {a, b, d};
  f->read = false;
  fibers_shuffle(~0u, 0, 0, 32, -7);
  for (unsigned l = 0; l < 32 && !f->read; l++) /* the first to go on reads them for all */
    for (int i = 0; i < of_lane; i++) {
      struct fibers_place p = fibers_mma_place(0, IN::bits, (int)l, i);
      f->x[p.row][p.column] = shim_element<IN>(shim_of_thread[first + l].a, i);
      if (i >= of_lane / 2) continue;
      p = fibers_mma_place(1, IN::bits, (int)l, i);
      f->y[p.row][p.column] = shim_element<IN>(shim_of_thread[first + l].b, i);
    }
  f->read = true;
  for (int i = 0; i < 4; i++) {
    struct fibers_place p = fibers_mma_place(2, IN::bits, (int)lane, i);
    double sum = shim_sum(d, i);
    for (int k = 0; k < DEPTH; k++) sum += f->x[p.row][k] * f->y[k][p.column];
    shim_put_sum(d, i, sum);
  }
  fibers_shuffle(~0u, 0, 0, 32, -8); /* others have read what stands in registers */
}
[[maybe_unused]] static void ms_mma_m16n8k8_f16_f32(float *d, const uint32_t *a, const uint32_t *b) {
  shim_mma<shim_f16, 8>(d, a, b);
}
[[maybe_unused]] static void ms_mma_m16n8k8_f16_f16(uint32_t *d, const uint32_t *a, const uint32_t *b) {
  shim_mma<shim_f16, 8>(d, a, b);
}

#define SHIM_MMA(depth, element, S)                                                                                    \
  [[maybe_unused]] static void ms_mma_m16n8k##depth##_##element(S *d, const uint32_t *a, const uint32_t *b) {          \
    shim_mma<shim_##element, depth>(d, a, b);                                                                          \
  }
SHIM_MMA(16, f16, float)
SHIM_MMA(16, bf16, float)
SHIM_MMA(8, tf32, float)
SHIM_MMA(32, s8, int32_t)
SHIM_MMA(32, u8, int32_t)
SHIM_MMA(32, e4m3, float)
SHIM_MMA(32, e5m2, float)

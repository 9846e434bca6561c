/* What a warp does with fragments of 16 x 16 x 16, on a CPU. A lane holds eight elements that lie in a row in memory,
 * half a row of the matrix, or of its transpose where it was loaded by columns: a product that is given another is
 * wrong. */

#define SHIM_SIDE 16
#define SHIM_HELD 8 /* elements of a lane */

struct shim_operands {
  const void *a, *b, *c;
};
static struct shim_operands shim_of_thread[FIBERS_MOST_THREADS];

static inline double shim_value(float x) { return x; }
static inline double shim_value(int32_t x) { return x; }
static inline double shim_value(int8_t x) { return x; }
static inline double shim_value(uint8_t x) { return x; }
static inline double shim_value(uint16_t bits) { return fibers_of_half(bits); }

static inline void shim_round(float *to, double x) { *to = (float)x; }
static inline void shim_round(int32_t *to, double x) { *to = (int32_t)(int64_t)x; }
static inline void shim_round(uint16_t *to, double x) { *to = fibers_to_half((float)x); }

enum shim_layout { shim_row, shim_col };

/* Element (i, j) of the matrix whose pieces the lanes of a warp hold. */
template <class T>
static double shim_held(const void *shim_operands::*which, unsigned warp, shim_layout layout, int i, int j) {
  int at = layout == shim_row ? i * SHIM_SIDE + j : j * SHIM_SIDE + i;
  const T *held = (const T *)(shim_of_thread[warp * 32 + (unsigned)(at / SHIM_HELD)].*which);
  return shim_value(held[at % SHIM_HELD]);
}

template <class T> static void shim_move(void *to, const void *from) { memcpy(to, from, sizeof(T)); }

template <class T> static void shim_load(void *d, const void *from, size_t stride) {
  unsigned lane = fibers_thread() % 32;
  fibers_shuffle(~0u, 0, 0, 32, -1); /* as one */
  for (unsigned e = 0; e < SHIM_HELD; e++) {
    unsigned at = lane * SHIM_HELD + e;
    shim_move<T>((T *)d + e, (const T *)from + at / SHIM_SIDE * stride + at % SHIM_SIDE);
  }
}

template <class T> static void shim_store(void *to, const void *d, size_t stride) {
  unsigned lane = fibers_thread() % 32;
  fibers_shuffle(~0u, 0, 0, 32, -2);
  for (unsigned e = 0; e < SHIM_HELD; e++) {
    unsigned at = lane * SHIM_HELD + e;
    shim_move<T>((T *)to + at / SHIM_SIDE * stride + at % SHIM_SIDE, (const T *)d + e);
  }
}

/* What a warp multiplies. */
struct shim_matrices {
  bool read;
  double a[SHIM_SIDE][SHIM_SIDE], b[SHIM_SIDE][SHIM_SIDE];
};
static struct shim_matrices shim_matrices_of[FIBERS_MOST_THREADS / 32];

/* d = a * b + c */
template <class IN, class SUM>
static void shim_multiply(shim_layout a_layout, shim_layout b_layout, void *d, const void *a, const void *b,
                          const void *c) {
  unsigned thread = fibers_thread(), lane = thread % 32, warp = thread / 32;
  SUM sums[SHIM_HELD];
  struct shim_matrices *m = &shim_matrices_of[warp];
  shim_of_thread[thread] = {a, b, c};
  m->read = false;
  fibers_shuffle(~0u, 0, 0, 32, -3);
  for (int i = 0; i < SHIM_SIDE && !m->read; i++) /* the first to go on reads them for all */
    for (int j = 0; j < SHIM_SIDE; j++) {
      m->a[i][j] = shim_held<IN>(&shim_operands::a, warp, a_layout, i, j);
      m->b[i][j] = shim_held<IN>(&shim_operands::b, warp, b_layout, i, j);
    }
  m->read = true;
  for (unsigned e = 0; e < SHIM_HELD; e++) {
    int i = (int)(lane * SHIM_HELD + e) / SHIM_SIDE, j = (int)(lane * SHIM_HELD + e) % SHIM_SIDE;
    double sum = shim_held<SUM>(&shim_operands::c, warp, shim_row, i, j);
    for (int k = 0; k < SHIM_SIDE; k++) sum += m->a[i][k] * m->b[k][j];
    shim_round(&sums[e], sum);
  }
  fibers_shuffle(~0u, 0, 0, 32, -4); /* others have read what d replaces */
  memcpy(d, sums, sizeof sums);
}

#define SHIM_LOADS(role, element, T)                                                                                   \
  [[maybe_unused]] static void ms_wmma_load_##role##_row_##element(void *d, const void *from, uint32_t stride) {       \
    shim_load<T>(d, from, stride);                                                                                     \
  }                                                                                                                    \
  [[maybe_unused]] static void ms_wmma_load_##role##_col_##element(void *d, const void *from, uint32_t stride) {       \
    shim_load<T>(d, from, stride);                                                                                     \
  }
#define SHIM_PRODUCT(a_layout, b_layout, sum, element, T, S)                                                           \
  [[maybe_unused]] static void ms_wmma_mma_##a_layout##_##b_layout##_##sum##_##element(void *d, const void *a,         \
                                                                                       const void *b, const void *c) { \
    shim_multiply<T, S>(shim_##a_layout, shim_##b_layout, d, a, b, c);                                                 \
  }
#define SHIM_PRODUCTS(sum, element, T, S)                                                                              \
  SHIM_PRODUCT(row, row, sum, element, T, S)                                                                           \
  SHIM_PRODUCT(row, col, sum, element, T, S)                                                                           \
  SHIM_PRODUCT(col, row, sum, element, T, S)                                                                           \
  SHIM_PRODUCT(col, col, sum, element, T, S)
#define SHIM_STORE(element, T)                                                                                         \
  [[maybe_unused]] static void ms_wmma_store_##element(void *to, const void *d, uint32_t stride) {                     \
    shim_store<T>(to, d, stride);                                                                                      \
  }

SHIM_LOADS(a, f16, uint16_t)
SHIM_LOADS(b, f16, uint16_t)
SHIM_LOADS(a, s8, int8_t)
SHIM_LOADS(b, s8, int8_t)
SHIM_LOADS(a, u8, uint8_t)
SHIM_LOADS(b, u8, uint8_t)
SHIM_PRODUCTS(f32, f16, uint16_t, float)
SHIM_PRODUCTS(f16, f16, uint16_t, uint16_t)
SHIM_PRODUCTS(s32, s8, int8_t, int32_t)
SHIM_PRODUCTS(s32, u8, uint8_t, int32_t)
SHIM_STORE(f32, float)
SHIM_STORE(f16, uint16_t)
SHIM_STORE(s32, int32_t)

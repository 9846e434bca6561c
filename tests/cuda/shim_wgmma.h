/* What a warp group does with tensor units, on a CPU. A thread computes what its registers get; matrices are read where
 * their descriptors say, piece by piece, as the PTX ISA's canonical layouts have it. Products are done when their
 * thread waits for their group, and no sooner; until then their sums have no value, and who overwrites a matrix before
 * then spoils them. */

struct shim_matrix {
  uint32_t start, leading, stride, width; /* bytes; of the rows that are exchanged as one */
};

static inline struct shim_matrix shim_described(uint64_t d) {
  uint32_t mode = (uint32_t)(d >> 62);
  if (!mode) fibers_fail("a descriptor has no swizzle: such layouts are not made");
  if (d >> 49 & 7) fibers_fail("a descriptor's base offset is not 0");
  return {(uint32_t)(d & 0x3fff) << 4, (uint32_t)(d >> 16 & 0x3fff) << 4, (uint32_t)(d >> 32 & 0x3fff) << 4,
          256u >> mode};
}

/* Element `k` of row (or column) `i`, of so many bytes. along_k: elements that are summed lie side by side. */
static inline uint32_t shim_of_matrix(const struct shim_matrix *m, uint32_t bytes, bool along_k, uint32_t i,
                                      uint32_t k) {
  uint32_t at = along_k
                    ? i / 8 * m->stride + i % 8 * m->width + bytes * k
                    : bytes * i / m->width * m->leading + bytes * i % m->width + k / 8 * m->stride + k % 8 * m->width;
  uint32_t bits = 0;
  at += m->start;
  at ^= (at >> 7 & (m->width / 16 - 1)) << 4;
  memcpy(&bits, fibers_shared_at(at), bytes);
  return bits;
}

struct shim_product {
  void *d; /* registers of 32 bits */
  uint64_t a, b;
  int n, group;
  bool by_rows, a_by_columns;
  void (*run)(const struct shim_product *product, void *sums);
  const uint32_t *registers[4]; /* of the lanes that share rows: a, where it is in registers */
};
struct shim_sums {
  void *d;
  int count;
  uint32_t kept[128];
};
enum { SHIM_MOST_PRODUCTS = 512, SHIM_MOST_SUMS = 16 };
struct shim_group {
  struct shim_product products[SHIM_MOST_PRODUCTS];
  struct shim_sums sums[SHIM_MOST_SUMS]; /* what products change that are not done */
  int count, sum_count, groups;
  bool fenced;
};
static struct shim_group *shim_group_of[FIBERS_MOST_THREADS];

static inline struct shim_group *shim_own_group() {
  struct shim_group **own = &shim_group_of[fibers_thread()];
  if (!*own) *own = (struct shim_group *)calloc(1, sizeof **own);
  if (!*own) fibers_fail("no memory for products");
  return *own;
}

static inline struct shim_sums *shim_sums_of(struct shim_group *g, const void *d) {
  for (int i = 0; i < g->sum_count; i++)
    if (g->sums[i].d == d) return &g->sums[i];
  return NULL;
}

static const uint32_t *shim_registers_of[FIBERS_MOST_THREADS];

static inline void shim_begin_product(struct shim_product product, const uint32_t *registers) {
  struct shim_group *g = shim_own_group();
  unsigned thread = fibers_thread();
  void *d = product.d;
  product.group = g->groups;
  shim_registers_of[thread] = registers;
  fibers_shuffle(~0u, 0, 0, 32, -9); /* as one */
  for (unsigned i = 0; i < 4; i++) product.registers[i] = shim_registers_of[thread - thread % 4 + i];
  fibers_shuffle(~0u, 0, 0, 32, -13);
  if (!g->fenced) fibers_fail("a product of a warp group begins without a fence");
  fibers_check_proxies();
  if (g->count == SHIM_MOST_PRODUCTS) fibers_fail("too many products are waited for at once");
  if (!shim_sums_of(g, d)) {
    if (g->sum_count == SHIM_MOST_SUMS) fibers_fail("too many sums are waited for at once");
    struct shim_sums *s = &g->sums[g->sum_count++];
    s->d = d, s->count = product.n / 2;
    memcpy(s->kept, d, sizeof *s->kept * (size_t)s->count);
    memset(d, 0xff, sizeof *s->kept * (size_t)s->count);
  }
  g->products[g->count++] = product;
}

/* Element `k` of a row, which four lanes share: each has a register of neighbours, two of eight columns or four of
 * sixteen, and as many columns on the next one. lower: of the row eight further down. Registers are read when the
 * product is done: who changes them before then spoils it. */
static inline uint32_t shim_of_registers(const struct shim_product *p, int bits, bool lower, uint32_t k) {
  const uint32_t held = 32u / (uint32_t)bits, shared = 4 * held;
  return p->registers[k % shared / held][k / shared * 2 + lower] >> k % held * (uint32_t)bits & 0xffffu >> (16 - bits);
}

template <class IN, class SUM, class BY = IN> static void shim_do_product(const struct shim_product *p, void *all) {
  enum { bytes = IN::bits / 8, depth = 32 / bytes };
  SUM *sums = (SUM *)all;
  struct shim_matrix a = {}, b = shim_described(p->b);
  double x[2][depth]; /* of the thread's two rows */
  int rows[2] = {-1, -1};
  if (!p->registers[0]) a = shim_described(p->a);
  for (int e = 0; e < p->n / 2; e++) {
    struct fibers_place at = fibers_wgmma_place((int)(fibers_thread() % 128), e);
    bool lower = at.row % 16 >= 8;
    for (uint32_t k = 0; k < depth && rows[lower] != at.row; k++)
      x[lower][k] = IN::value(p->registers[0] ? shim_of_registers(p, IN::bits, lower, k)
                                              : shim_of_matrix(&a, bytes, !p->a_by_columns, (uint32_t)at.row, k));
    rows[lower] = at.row;
    double sum = sums[e];
    for (uint32_t k = 0; k < depth; k++)
      sum += x[lower][k] * BY::value(shim_of_matrix(&b, bytes, !p->by_rows, (uint32_t)at.column, k));
    shim_round(&sums[e], sum);
  }
}

/* Sums that no product adds to any more have their values. */
static inline void shim_give_sums(struct shim_group *g) {
  int waited = 0;
  for (int i = 0; i < g->sum_count; i++) {
    struct shim_sums s = g->sums[i];
    bool added = false;
    for (int k = 0; k < g->count; k++) added |= g->products[k].d == s.d;
    if (added)
      g->sums[waited++] = s;
    else
      memcpy(s.d, s.kept, sizeof *s.kept * (size_t)s.count);
  }
  g->sum_count = waited;
}

static inline void shim_wait_products(int left) {
  struct shim_group *g = shim_own_group();
  int kept = 0;
  fibers_shuffle(~0u, 0, 0, 32, -10);
  for (int i = 0; i < g->count; i++) {
    struct shim_product *p = &g->products[i];
    if (p->group + left >= g->groups)
      g->products[kept++] = *p;
    else
      p->run(p, shim_sums_of(g, p->d)->kept);
  }
  g->count = kept;
  shim_give_sums(g);
  g->fenced = false;
  fibers_shuffle(~0u, 0, 0, 32, -11); /* the warp's products are done together */
}

[[maybe_unused]] static void ms_wgmma_fence() { shim_own_group()->fenced = true; }
[[maybe_unused]] static void ms_wgmma_commit() { shim_own_group()->groups++; }
[[maybe_unused]] static void ms_wgmma_wait_0() { shim_wait_products(0); }
[[maybe_unused]] static void ms_wgmma_wait_1() { shim_wait_products(1); }
[[maybe_unused]] static void ms_wgmma_wait_2() { shim_wait_products(2); }
[[maybe_unused]] static void ms_wgmma_hold_one(float *) {}
[[maybe_unused]] static void ms_wgmma_hold_s32_one(int32_t *) {}
[[maybe_unused]] static void ms_wgmma_hold_a_one(uint32_t *) {}
[[maybe_unused]] static void ms_proxy_fence() { fibers_proxy_fence(); }
[[maybe_unused]] static int32_t ms_group_thread() { return (int32_t)(fibers_thread() % 128); }
/* Its shuffles are the checks: lanes that have other values end the process. */
[[maybe_unused]] static uint32_t ms_uniform(uint32_t x) {
  for (int distance = 1; distance < 32; distance *= 2)
    if (fibers_shuffle(~0u, x, distance, 32, -12) != x) fibers_fail("lanes have several values of what is one a warp");
  return x;
}
[[maybe_unused]] static uint32_t ms_shared_address(const void *at) { return fibers_shared_address(at); }

#define SHIM_WGMMA_OF(n, depth, element, S, layout, by_rows)                                                           \
  [[maybe_unused]] static void ms_wgmma_m64n##n##k##depth##_##element##_##layout(S *d, uint64_t a, uint64_t b) {       \
    shim_begin_product({d, a, b, n, 0, by_rows, false, shim_do_product<shim_##element, S>, {}}, NULL);                 \
  }
#define SHIM_WGMMA_REGISTERS(n, depth, element, layout, by_rows)                                                       \
  [[maybe_unused]] static void ms_wgmma_m64n##n##k##depth##_##element##_##layout##_registers(float *d, uint32_t *a,    \
                                                                                             uint64_t b) {             \
    shim_begin_product({d, 0, b, n, 0, by_rows, false, shim_do_product<shim_##element, float>, {}}, a);                \
  }
#define SHIM_WGMMA_BYTES(n, element, by)                                                                               \
  [[maybe_unused]] static void ms_wgmma_m64n##n##k32_##element##by##_col(int32_t *d, uint64_t a, uint64_t b) {         \
    shim_begin_product({d, a, b, n, 0, false, false, shim_do_product<shim_##element, int32_t, shim_##by>, {}}, NULL);  \
  }
#define SHIM_WGMMA_SHORT(n, element, layout, by_rows)                                                                  \
  SHIM_WGMMA_OF(n, 16, element, float, layout, by_rows)                                                                \
  [[maybe_unused]] static void ms_wgmma_m64n##n##k16_##element##_##layout##_columns(float *d, uint64_t a,              \
                                                                                    uint64_t b) {                      \
    shim_begin_product({d, a, b, n, 0, by_rows, true, shim_do_product<shim_##element, float>, {}}, NULL);              \
  }                                                                                                                    \
  SHIM_WGMMA_REGISTERS(n, 16, element, layout, by_rows)
#define SHIM_WGMMA(n)                                                                                                  \
  SHIM_WGMMA_SHORT(n, f16, row, true)                                                                                  \
  SHIM_WGMMA_SHORT(n, f16, col, false)                                                                                 \
  SHIM_WGMMA_SHORT(n, bf16, row, true)                                                                                 \
  SHIM_WGMMA_SHORT(n, bf16, col, false)                                                                                \
  SHIM_WGMMA_OF(n, 8, tf32, float, col, false)                                                                         \
  SHIM_WGMMA_OF(n, 32, s8, int32_t, col, false)                                                                        \
  SHIM_WGMMA_OF(n, 32, u8, int32_t, col, false)                                                                        \
  SHIM_WGMMA_BYTES(n, u8, s8)                                                                                          \
  SHIM_WGMMA_BYTES(n, s8, u8)                                                                                          \
  SHIM_WGMMA_OF(n, 32, e4m3, float, col, false)                                                                        \
  SHIM_WGMMA_OF(n, 32, e5m2, float, col, false)                                                                        \
  SHIM_WGMMA_REGISTERS(n, 32, e4m3, col, false)                                                                        \
  SHIM_WGMMA_REGISTERS(n, 32, e5m2, col, false)
SHIM_WGMMA(8)
SHIM_WGMMA(16)
SHIM_WGMMA(24)
SHIM_WGMMA(32)
SHIM_WGMMA(40)
SHIM_WGMMA(48)
SHIM_WGMMA(64)
SHIM_WGMMA(96)
SHIM_WGMMA(128)
SHIM_WGMMA(192)
SHIM_WGMMA(256)

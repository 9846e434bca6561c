#include "products.h"

#include "fibers.h"

#include <stdlib.h>
#include <string.h>

enum { WARP = 32, WARP_GROUP = 128, ROWS = 16, COLUMNS = 8, MOST_DEPTH = 32, MOST_COLUMNS = 256 };

/* ---- Elements, as registers and memory hold them ---- */

static int bits_of(enum products_element element) {
  switch (element) {
  case PRODUCTS_f16:
  case PRODUCTS_bf16: return 16;
  case PRODUCTS_tf32: return 32;
  default: return 8;
  }
}

static double float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static double value_of(enum products_element element, uint32_t bits) {
  switch (element) {
  case PRODUCTS_f16: return fibers_of_half((uint16_t)bits);
  case PRODUCTS_bf16: return float_of(bits << 16);
  case PRODUCTS_tf32: return float_of(bits & ~0x1fffu); /* the unit does not read them */
  case PRODUCTS_s8: return (int8_t)bits;
  case PRODUCTS_u8: return (uint8_t)bits;
  default: return fibers_of_byte((uint8_t)bits, element == PRODUCTS_e4m3);
  }
}

/* ---- Fragments of a warp: lanes hold what the layout says, each of the others reads it from their registers ---- */

static const void *row_of[FIBERS_MOST_THREADS];

/* Rows that meet in a bank are taken for a mistake. Lane l names row l % 8 of matrix l / 8, and gets of each matrix
 * what its number says: two elements of row l / 4, or of column l / 4. */
void products_load_matrices(uint32_t *d, uint32_t at, bool transposed) {
  const void *row = fibers_shared_at(at);
  unsigned thread = fibers_thread(), lane = thread % WARP, first = thread - lane;
  if ((uintptr_t)row % 16) fibers_fail("ldmatrix: lane %u names a row that begins between multiples of 16 bytes", lane);
  row_of[thread] = row;
  fibers_shuffle(~0u, 0, 0, WARP, -5); /* as one */
  fibers_check_banks(&row_of[first], WARP, 16);
  for (unsigned i = 0; i < 4; i++) {
    uint16_t part[2];
    for (unsigned p = 0; p < 2; p++) {
      unsigned of = transposed ? lane % 4 * 2 + p : lane / 4, column = transposed ? lane / 4 : lane % 4 * 2 + p;
      memcpy(&part[p], (const uint16_t *)row_of[first + 8 * i + of] + column, sizeof part[p]);
    }
    d[i] = part[0] | (uint32_t)part[1] << 16;
  }
  fibers_shuffle(~0u, 0, 0, WARP, -6);
}

struct operands {
  const uint32_t *a, *b;
};
static struct operands operands_of[FIBERS_MOST_THREADS];

/* What a warp multiplies, as its lanes hold it. */
static struct fragments {
  bool read;
  double a[ROWS][MOST_DEPTH], b[MOST_DEPTH][COLUMNS];
} fragments_of[FIBERS_MOST_THREADS / WARP];

static double held(enum products_element element, const uint32_t *registers, int i) {
  int bits = bits_of(element), a_register = 32 / bits;
  return value_of(element, registers[i / a_register] >> i % a_register * bits & ~0u >> (32 - bits));
}

static void read_fragments(enum products_element element, int of_lane, unsigned first, struct fragments *f) {
  int bits = bits_of(element);
  for (int l = 0; l < WARP; l++)
    for (int i = 0; i < of_lane; i++) {
      struct fibers_place p = fibers_mma_place(0, bits, l, i);
      f->a[p.row][p.column] = held(element, operands_of[first + (unsigned)l].a, i);
      if (i >= of_lane / 2) continue;
      p = fibers_mma_place(1, bits, l, i);
      f->b[p.row][p.column] = held(element, operands_of[first + (unsigned)l].b, i);
    }
  f->read = true;
}

static double sum_of(enum products_sum kind, const void *d, int i) {
  if (kind == PRODUCTS_FLOAT) return ((const float *)d)[i];
  if (kind == PRODUCTS_INT) return ((const int32_t *)d)[i];
  return fibers_of_half((uint16_t)(((const uint32_t *)d)[i / 2] >> i % 2 * 16));
}

static void put_sum(enum products_sum kind, void *d, int i, double sum) {
  if (kind == PRODUCTS_FLOAT)
    ((float *)d)[i] = (float)sum;
  else if (kind == PRODUCTS_INT)
    ((int32_t *)d)[i] = (int32_t)(int64_t)sum;
  else {
    uint32_t *two = (uint32_t *)d + i / 2;
    *two = (*two & 0xffff0000u >> i % 2 * 16) | (uint32_t)fibers_to_half((float)sum) << i % 2 * 16;
  }
}

void products_mma(enum products_element element, int depth, enum products_sum kind, void *d, const uint32_t *a,
                  const uint32_t *b) {
  unsigned thread = fibers_thread(), lane = thread % WARP;
  struct fragments *f = &fragments_of[thread / WARP];
  operands_of[thread] = (struct operands){a, b};
  f->read = false;
  fibers_shuffle(~0u, 0, 0, WARP, -7);
  if (!f->read) read_fragments(element, ROWS * depth / WARP, thread - lane, f); /* the first to go on, for all */
  for (int i = 0; i < 4; i++) {
    struct fibers_place p = fibers_mma_place(2, bits_of(element), (int)lane, i);
    double sum = sum_of(kind, d, i);
    for (int k = 0; k < depth; k++) sum += f->a[p.row][k] * f->b[k][p.column];
    put_sum(kind, d, i, sum);
  }
  fibers_shuffle(~0u, 0, 0, WARP, -8); /* others have read what stands in registers */
}

/* ---- Matrices of a warp group: they are read where their descriptors say, piece by piece, as the PTX ISA's canonical
 * layouts have it ---- */

struct matrix {
  uint32_t start, leading, stride, width; /* bytes; of the rows that are exchanged as one */
  uint32_t bytes;                         /* of an element */
  bool along_k;                           /* elements that are summed lie side by side */
};

static struct matrix described(uint64_t d, enum products_element element, bool along_k) {
  uint32_t mode = (uint32_t)(d >> 62);
  if (!mode) fibers_fail("a descriptor has no swizzle: such layouts are not made");
  if (d >> 49 & 7) fibers_fail("a descriptor's base offset is not 0");
  return (struct matrix){(uint32_t)(d & 0x3fff) << 4,       (uint32_t)(d >> 16 & 0x3fff) << 4,
                         (uint32_t)(d >> 32 & 0x3fff) << 4, 256u >> mode,
                         (uint32_t)bits_of(element) / 8,    along_k};
}

/* Element `k` of row (or column) `i`. */
static uint32_t bits_at(const struct matrix *m, uint32_t i, uint32_t k) {
  uint32_t at = m->along_k ? i / 8 * m->stride + i % 8 * m->width + m->bytes * k
                           : m->bytes * i / m->width * m->leading + m->bytes * i % m->width + k / 8 * m->stride +
                                 k % 8 * m->width;
  uint32_t bits = 0;
  at += m->start;
  at ^= (at >> 7 & (m->width / 16 - 1)) << 4;
  memcpy(&bits, fibers_shared_at(at), m->bytes);
  return bits;
}

struct begun {
  struct product product;
  int group;
  const uint32_t *registers[4]; /* of the lanes that share rows: a, where it is in registers */
};
struct sums {
  void *d;
  int count;
  uint32_t kept[MOST_COLUMNS / 2];
};
enum { MOST_PRODUCTS = 512, MOST_SUMS = 16 };
/* What a thread has begun. */
struct queue {
  struct begun products[MOST_PRODUCTS];
  struct sums sums[MOST_SUMS]; /* what products change that are not done */
  int count, sum_count, groups;
  bool fenced;
};
static struct queue *queue_of[FIBERS_MOST_THREADS];
static bool is_done[FIBERS_MOST_THREADS / WARP]; /* what a warp waits for together */

static struct queue *own_queue(void) {
  struct queue **own = &queue_of[fibers_thread()];
  if (!*own) *own = calloc(1, sizeof **own);
  if (!*own) fibers_fail("no memory for products");
  return *own;
}

void products_forget(void) {
  for (unsigned i = 0; i < FIBERS_MOST_THREADS; i++)
    if (queue_of[i]) queue_of[i]->count = queue_of[i]->sum_count = queue_of[i]->groups = 0, queue_of[i]->fenced = false;
}

static struct sums *find_sums(struct queue *q, const void *d) {
  for (int i = 0; i < q->sum_count; i++)
    if (q->sums[i].d == d) return &q->sums[i];
  return NULL;
}

static const uint32_t *registers_of[FIBERS_MOST_THREADS];

void products_begin(const struct product *product, const uint32_t *a) {
  struct queue *q = own_queue();
  unsigned thread = fibers_thread();
  struct begun begun = {.product = *product, .group = q->groups};
  registers_of[thread] = a;
  fibers_shuffle(~0u, 0, 0, WARP, -9); /* as one */
  for (unsigned i = 0; i < 4; i++) begun.registers[i] = registers_of[thread - thread % 4 + i];
  fibers_shuffle(~0u, 0, 0, WARP, -13);
  if (!q->fenced) fibers_fail("a product of a warp group begins without a fence");
  fibers_check_proxies();
  if (q->count == MOST_PRODUCTS) fibers_fail("too many products are waited for at once");
  if (!find_sums(q, product->d)) {
    if (q->sum_count == MOST_SUMS) fibers_fail("too many sums are waited for at once");
    struct sums *s = &q->sums[q->sum_count++];
    s->d = product->d, s->count = product->n / 2;
    memcpy(s->kept, s->d, sizeof *s->kept * (size_t)s->count);
    memset(s->d, 0xff, sizeof *s->kept * (size_t)s->count);
  }
  q->products[q->count++] = begun;
}

/* Element `k` of a row, which four lanes share: each has a register of neighbours, two of eight columns or four of
 * sixteen, and as many columns on the next one. lower: of the row eight further down. Registers are read when the
 * product is done: who changes them before then spoils it. */
static uint32_t bits_in_registers(const struct begun *b, int bits, bool lower, uint32_t k) {
  const uint32_t in_one = 32u / (uint32_t)bits, shared = 4 * in_one;
  return b->registers[k % shared / in_one][k / shared * 2 + lower] >> k % in_one * (uint32_t)bits &
         0xffffu >> (16 - bits);
}

/* The second matrix of a product, which the lanes of a warp have in common. */
struct columns {
  uint64_t descriptor;
  double of[MOST_COLUMNS][MOST_DEPTH];
};

static void read_columns(const struct product *p, uint32_t depth, struct columns *out) {
  struct matrix b = described(p->b, p->by, !p->by_rows);
  out->descriptor = p->b;
  for (uint32_t i = 0; i < (uint32_t)p->n; i++)
    for (uint32_t k = 0; k < depth; k++) out->of[i][k] = value_of(p->by, bits_at(&b, i, k));
}

static void multiply(const struct begun *begun, unsigned thread, const struct columns *columns, void *sums) {
  const struct product *p = &begun->product;
  const int bits = bits_of(p->element);
  const uint32_t depth = MOST_DEPTH * 8 / (uint32_t)bits;
  struct matrix a = {0};
  double x[2][MOST_DEPTH]; /* of the thread's two rows */
  int rows[2] = {-1, -1};
  if (!begun->registers[0]) a = described(p->a, p->element, !p->a_by_columns);
  for (int e = 0; e < p->n / 2; e++) {
    struct fibers_place at = fibers_wgmma_place((int)(thread % WARP_GROUP), e);
    bool lower = at.row % 16 >= 8;
    for (uint32_t k = 0; k < depth && rows[lower] != at.row; k++)
      x[lower][k] = value_of(p->element, begun->registers[0] ? bits_in_registers(begun, bits, lower, k)
                                                             : bits_at(&a, (uint32_t)at.row, k));
    rows[lower] = at.row;
    double sum = sum_of(p->sum, sums, e);
    for (uint32_t k = 0; k < depth; k++) sum += x[lower][k] * columns->of[at.column][k];
    put_sum(p->sum, sums, e, sum);
  }
}

static bool is_waited_for(const struct queue *q, int i, int left) {
  return i < q->count && q->products[i].group + left < q->groups;
}

/* The nth products of a warp's threads, of which those that wait for them are done: first in their queues. */
static bool do_products(unsigned first, int n, int left) {
  static struct columns columns;
  bool is_read = false;
  for (unsigned thread = first; thread < first + WARP; thread++) {
    struct queue *q = queue_of[thread];
    if (!q || !is_waited_for(q, n, left)) continue;
    const struct begun *begun = &q->products[n];
    const struct product *p = &begun->product;
    if (!is_read || p->b != columns.descriptor)
      read_columns(p, MOST_DEPTH * 8 / (uint32_t)bits_of(p->element), &columns);
    is_read = true;
    multiply(begun, thread, &columns, find_sums(q, p->d)->kept);
  }
  return is_read;
}

/* Sums that no product adds to any more have their values. */
static void give_sums(struct queue *q) {
  int waited = 0;
  for (int i = 0; i < q->sum_count; i++) {
    struct sums s = q->sums[i];
    bool added = false;
    for (int k = 0; k < q->count; k++) added |= q->products[k].product.d == s.d;
    if (added)
      q->sums[waited++] = s;
    else
      memcpy(s.d, s.kept, sizeof *s.kept * (size_t)s.count);
  }
  q->sum_count = waited;
}

void products_wait(int left) {
  struct queue *q = own_queue();
  unsigned thread = fibers_thread();
  int kept = 0;
  is_done[thread / WARP] = false;
  fibers_shuffle(~0u, 0, 0, WARP, -10);
  for (int n = 0; !is_done[thread / WARP] && do_products(thread - thread % WARP, n, left);) n++; /* for all, once */
  is_done[thread / WARP] = true;
  for (int i = 0; i < q->count; i++)
    if (!is_waited_for(q, i, left)) q->products[kept++] = q->products[i];
  q->count = kept;
  give_sums(q);
  q->fenced = false;
  fibers_shuffle(~0u, 0, 0, WARP, -11); /* the warp's products are done together */
}

void products_fence(void) { own_queue()->fenced = true; }
void products_commit(void) { own_queue()->groups++; }

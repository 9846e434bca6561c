/* Features of scheduled functions: a row a buffer store, 164 numbers.
 *
 *   57  group 1: counts of arithmetic (16); lengths, product and number of vectorized, unrolled, parallel loops and the
 *       place of the innermost (3 x 11); thread extents (8)
 *   5 x 18  group 2: of the 5 buffers that move most bytes: access (3), bytes, unique bytes, lines, unique lines, reuse
 *       (3), its distance in iterations and bytes, count, the bytes and lines an access reuses, stride
 *   10  group 3: the arithmetic-intensity curve
 *   4   group 4: the buffer written: elements, outer product, inner product, auto-unroll step
 *   3   group 5: outer loops: product of extents, number, auto-unroll steps
 * Numbers are log2(1 + x), but for truths. Source: Zheng et al., "Ansor", OSDI 2020, appendix B; the rows are
 * MetaSchedule's groups. */
#include "search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  ARITHMETIC = 16,
  KINDS = 3,
  PLACES = 8,
  KIND_WIDTH = 3 + PLACES,
  THREADS = 8,
  BUFFERS = 5,
  BUFFER_WIDTH = 18,
  CURVE = 10,
  REST = 7,
  GROUP1 = ARITHMETIC + KINDS * KIND_WIDTH + THREADS,
  WIDTH = GROUP1 + BUFFERS * BUFFER_WIDTH + CURVE + REST
};
_Static_assert(WIDTH == 164, "the rows are 164 numbers wide");

uint32_t search_feature_count(void) { return WIDTH; }

static const char *const arithmetic_names[ARITHMETIC] = {
    "float_multiply_add", "float_add_sub",    "float_multiply", "float_divide", "float_compare", "float_math",
    "float_other_calls",  "int_multiply_add", "int_add_sub",    "int_multiply", "int_divide",    "int_compare",
    "int_other_calls",    "truth_operations", "selections",     "casts"};
static const char *const kind_names[KINDS] = {"vectorized", "unrolled", "parallel"};
static const char *const place_names[PLACES] = {"none",         "inner_spatial", "middle_spatial", "outer_spatial",
                                                "inner_reduce", "middle_reduce", "outer_reduce",   "mixed"};
static const char *const buffer_names[BUFFER_WIDTH] = {"read",
                                                       "write",
                                                       "read_write",
                                                       "bytes",
                                                       "unique_bytes",
                                                       "lines",
                                                       "unique_lines",
                                                       "reuse_loop_multiple_reads",
                                                       "reuse_serial",
                                                       "reuse_none",
                                                       "reuse_distance_iterations",
                                                       "reuse_distance_bytes",
                                                       "reuse_count",
                                                       "bytes_by_reuse",
                                                       "unique_bytes_by_reuse",
                                                       "lines_by_reuse",
                                                       "unique_lines_by_reuse",
                                                       "stride"};
static const char *const rest_names[REST] = {"written_elements", "written_outer", "written_inner",    "unroll_step",
                                             "outer_product",    "outer_loops",   "outer_unroll_step"};

const char *search_feature_name(uint32_t i) {
  static _Thread_local char name[64];
  if (i < ARITHMETIC) return arithmetic_names[i];
  i -= ARITHMETIC;
  if (i < KINDS * KIND_WIDTH) {
    uint32_t k = i % KIND_WIDTH;
    const char *what = k == 0 ? "number" : k == 1 ? "product" : k == 2 ? "length" : place_names[k - 3];
    return snprintf(name, sizeof name, "%s_%s", kind_names[i / KIND_WIDTH], what), name;
  }
  i -= KINDS * KIND_WIDTH;
  if (i < THREADS) return snprintf(name, sizeof name, "thread_%u", i), name;
  i -= THREADS;
  if (i < BUFFERS * BUFFER_WIDTH)
    return snprintf(name, sizeof name, "buffer%u_%s", i / BUFFER_WIDTH, buffer_names[i % BUFFER_WIDTH]), name;
  i -= BUFFERS * BUFFER_WIDTH;
  if (i < CURVE) return snprintf(name, sizeof name, "intensity_%u", i), name;
  i -= CURVE;
  return i < REST ? rest_names[i] : NULL;
}

static float scaled(double x) { return (float)(x < 0 ? -log2(1 - x) : log2(1 + x)); }

/* ---- What surrounds a store ---- */

enum { MOST_LOOPS = 64, MOST_ACCESSES = 32, LINE = 64 };

struct loop_info {
  tir_var var;
  double extent;
  uint8_t kind;
  bool reduces;
  const char *thread;
};
struct access {
  tir_buffer buffer;
  bool read, write;
  uint32_t count;              /* accesses merged */
  int64_t strides[MOST_LOOPS]; /* elements an iteration of each loop moves, innermost first; of the first access */
  double bytes, unique_bytes, lines, unique_lines;
  double touched[MOST_LOOPS + 1]; /* unique bytes of the i innermost loops */
  double reuse_distance_iterations, reuse_distance_bytes, reuse_count;
  int reuse; /* 0 several reads in one iteration, 1 a loop, 2 none */
  double stride;
};
struct store_info {
  struct tir *ir;
  struct loop_info loops[MOST_LOOPS]; /* innermost first */
  uint32_t loop_count;
  double iterations, arithmetic[ARITHMETIC], unroll_step;
  struct access accesses[MOST_ACCESSES];
  uint32_t access_count;
  tir_block block; /* around the store, or TIR_NONE */
};

/* ---- Arithmetic ---- */

static bool is_real(const struct tir *ir, tir_expr e) { return tir_type_is_float(tir_type_of(ir, e)); }

static bool is_product(const struct tir *ir, tir_expr e) { return tir_at(ir, e)->kind == TIR_MUL; }

static void count_arithmetic(struct store_info *s, tir_expr e) {
  const struct tir_expr_node *n = tir_at(s->ir, e);
  bool real = is_real(s->ir, e), real_operands = n->kind >= TIR_ADD && n->kind <= TIR_OR && is_real(s->ir, n->a);
  switch (n->kind) {
  case TIR_ADD:
  case TIR_SUB:
    if (is_product(s->ir, n->a) || is_product(s->ir, n->b))
      s->arithmetic[real ? 0 : 7]++;
    else
      s->arithmetic[real ? 1 : 8]++;
    break;
  case TIR_MUL: s->arithmetic[real ? 2 : 9]++; break;
  case TIR_DIV:
  case TIR_MOD:
  case TIR_FLOORDIV:
  case TIR_FLOORMOD: s->arithmetic[real ? 3 : 10]++; break;
  case TIR_MIN:
  case TIR_MAX: s->arithmetic[real ? 4 : 11]++; break;
  case TIR_EQ:
  case TIR_NE:
  case TIR_LT:
  case TIR_LE:
  case TIR_GT:
  case TIR_GE: s->arithmetic[real_operands ? 4 : 11]++; break;
  case TIR_AND:
  case TIR_OR:
  case TIR_NOT: s->arithmetic[13]++; break;
  case TIR_SELECT: s->arithmetic[14]++; break;
  case TIR_CAST: s->arithmetic[15]++; break;
  case TIR_CALL:
    if (!strcmp(tir_text(s->ir, n->ref), "if_then_else"))
      s->arithmetic[14]++;
    else
      s->arithmetic[real ? 5 : 12]++;
    break;
  default: break;
  }
}

/* ---- Accesses ---- */

/* The bindings of the blocks around the store give what an index is in terms of loops. */
static void bind_iterations(struct tir *ir, tir_stmt store) {
  tir_block chain[MOST_LOOPS];
  uint32_t count = 0;
  for (tir_block b = tir_parent_block(ir, store); b && count < MOST_LOOPS; b = tir_parent_block(ir, b))
    chain[count++] = b;
  while (count > 0) {
    struct tir_span iters = tir_block_at(ir, chain[--count])->iters;
    for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
      tir_subst_var(ir, ir->iters.at[i].var, tir_subst(ir, ir->iters.at[i].binding));
  }
}

static int64_t slope(struct tir *ir, tir_expr index, tir_var v) {
  if (!tir_uses_var(ir, index, v)) return 0;
  struct tir_linear l = tir_linear_of(ir, index);
  int64_t moved = 0;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = tir_terms(ir, l)[i];
    if (t.atom == tir_var_expr(ir, v))
      moved += t.coefficient;
    else if (tir_uses_var(ir, t.atom, v))
      moved += t.coefficient; /* v // c, v % c: about as far */
  }
  return moved;
}

static void add_access(struct store_info *s, tir_buffer buffer, const tir_expr *indices, bool write) {
  struct access *a = NULL;
  for (uint32_t i = 0; i < s->access_count; i++)
    if (s->accesses[i].buffer == buffer) a = &s->accesses[i];
  if (a) {
    a->read |= !write;
    a->write |= write;
    a->count++;
    return;
  }
  if (s->access_count == MOST_ACCESSES) return;
  a = &s->accesses[s->access_count++];
  *a = (struct access){.buffer = buffer, .read = !write, .write = write, .count = 1};
  struct tir *ir = s->ir;
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  for (uint32_t l = 0; l < s->loop_count; l++) {
    int64_t stride = 1;
    for (uint32_t d = rank; d-- > 0;) {
      tir_expr extent = tir_operands(ir, tir_buffer_at(ir, buffer)->shape)[d];
      a->strides[l] += slope(ir, indices[d], s->loops[l].var) * stride;
      stride *= tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : 1;
    }
  }
}

/* Of what a store computes: a value used again is computed, or loaded, once. */
static bool add_node(void *data, tir_expr e) {
  struct store_info *s = data;
  struct tir *ir = s->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  count_arithmetic(s, e);
  if (n.kind != TIR_LOAD) return true;
  tir_expr indices[32];
  for (uint32_t i = 0; i < n.count && i < 32; i++) indices[i] = tir_subst(ir, tir_operands(ir, n.operands)[i]);
  if (n.count <= 32) add_access(s, n.ref, indices, false);
  return false;
}

/* Unique elements that the n innermost loops touch: those with a stride reach different ones. */
static double unique_elements(const struct store_info *s, const struct access *a, uint32_t n) {
  double elements = 1;
  for (uint32_t l = 0; l < n; l++)
    if (a->strides[l] != 0) elements *= s->loops[l].extent;
  return elements;
}

static void measure_access(struct store_info *s, struct access *a) {
  const struct tir_buffer_node *b = tir_buffer_at(s->ir, a->buffer);
  double element = (tir_type_bits(b->type) + 7) / 8;
  for (uint32_t n = 0; n <= s->loop_count; n++) a->touched[n] = unique_elements(s, a, n) * element;
  a->bytes = s->iterations * element * a->count;
  a->unique_bytes = a->touched[s->loop_count];
  int64_t smallest = 0;
  for (uint32_t l = 0; l < s->loop_count; l++) {
    int64_t step = a->strides[l] < 0 ? -a->strides[l] : a->strides[l];
    if (step && s->loops[l].extent > 1 && (!smallest || step < smallest)) smallest = step;
  }
  a->stride = (double)smallest;
  double per_line = smallest * element >= LINE ? 1 : LINE / (smallest ? smallest * element : LINE);
  a->lines = s->iterations * a->count / per_line;
  a->unique_lines = a->unique_bytes / element / per_line;
  if (a->unique_lines < 1) a->unique_lines = 1;
}

/* The innermost loop that does not move the access: after as many iterations as are inside, the same element returns.
 */
static void find_reuse(struct store_info *s, struct access *a) {
  double inside = 1;
  a->reuse = 2;
  if (a->count > 1) {
    a->reuse = 0;
    a->reuse_distance_iterations = 1;
    a->reuse_distance_bytes = 0;
    for (uint32_t i = 0; i < s->access_count; i++) a->reuse_distance_bytes += s->accesses[i].touched[0];
    a->reuse_count = a->count - 1;
    return;
  }
  for (uint32_t l = 0; l < s->loop_count; inside *= s->loops[l++].extent) {
    if (a->strides[l] != 0 || s->loops[l].extent <= 1) continue;
    a->reuse = 1;
    a->reuse_distance_iterations = inside;
    a->reuse_count = s->loops[l].extent;
    for (uint32_t i = 0; i < s->access_count; i++) a->reuse_distance_bytes += s->accesses[i].touched[l];
    return;
  }
}

/* ---- Rows ---- */

static void write_loops(const struct store_info *s, float *row) {
  static const uint8_t kinds[KINDS] = {TIR_VECTORIZED, TIR_UNROLLED, TIR_PARALLEL};
  for (int k = 0; k < KINDS; k++, row += KIND_WIDTH) {
    double number = 0, product = 1, length = 0;
    int place = 0;
    for (uint32_t l = s->loop_count; l-- > 0;) { /* outermost first: the innermost is kept */
      if (s->loops[l].kind != kinds[k]) continue;
      number++;
      product *= s->loops[l].extent;
      length = s->loops[l].extent;
      int third = l * 3 < s->loop_count ? 0 : l * 3 < 2 * s->loop_count ? 1 : 2;
      place = 1 + third + (s->loops[l].reduces ? 3 : 0);
    }
    row[0] = scaled(number);
    row[1] = number ? scaled(product) : 0;
    row[2] = scaled(length);
    row[3 + place] = 1;
  }
  static const char *const threads[THREADS] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z", "threadIdx.x",
                                               "threadIdx.y", "threadIdx.z", "vthread",    "vthread.x"};
  for (int t = 0; t < THREADS; t++)
    for (uint32_t l = 0; l < s->loop_count; l++)
      if (s->loops[l].thread && !strcmp(s->loops[l].thread, threads[t])) row[t] = scaled(s->loops[l].extent);
}

static int by_bytes(const void *x, const void *y) {
  const struct access *a = x, *b = y;
  if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
  return a->buffer < b->buffer ? -1 : a->buffer > b->buffer;
}

static void write_access(const struct access *a, float *row) {
  double by = a->reuse_count > 0 ? a->reuse_count : 0.5;
  row[0] = a->read && !a->write;
  row[1] = a->write && !a->read;
  row[2] = a->read && a->write;
  row[3] = scaled(a->bytes), row[4] = scaled(a->unique_bytes), row[5] = scaled(a->lines),
  row[6] = scaled(a->unique_lines);
  row[7 + a->reuse] = 1;
  row[10] = scaled(a->reuse_distance_iterations), row[11] = scaled(a->reuse_distance_bytes),
  row[12] = scaled(a->reuse_count);
  row[13] = scaled(a->bytes / by), row[14] = scaled(a->unique_bytes / by), row[15] = scaled(a->lines / by),
  row[16] = scaled(a->unique_lines / by);
  row[17] = scaled(a->stride);
}

/* Operations per byte of the i innermost loops, at CURVE points along the logarithm of the work done. */
static void write_curve(const struct store_info *s, float *row) {
  double operations = 0, work[MOST_LOOPS + 1], intensity[MOST_LOOPS + 1], done = 1;
  for (int i = 0; i < ARITHMETIC; i++) operations += s->arithmetic[i] * (i == 0 ? 2 : 1);
  for (uint32_t n = 0; n <= s->loop_count; n++) {
    double bytes = 0;
    for (uint32_t i = 0; i < s->access_count; i++) bytes += s->accesses[i].touched[n];
    work[n] = log2(1 + operations * done);
    intensity[n] = bytes > 0 ? operations * done / bytes : 0;
    if (n < s->loop_count) done *= s->loops[n].extent;
  }
  for (int i = 0; i < CURVE; i++) {
    double at = work[s->loop_count] * (i + 1) / CURVE;
    uint32_t n = 0;
    while (n < s->loop_count && work[n] < at) n++;
    row[i] = scaled(intensity[n]);
  }
}

static void write_row(struct store_info *s, float *row) {
  for (int i = 0; i < ARITHMETIC; i++) row[i] = scaled(s->arithmetic[i] * s->iterations);
  write_loops(s, row + ARITHMETIC);
  for (uint32_t i = 0; i < s->access_count; i++) measure_access(s, &s->accesses[i]);
  for (uint32_t i = 0; i < s->access_count; i++) find_reuse(s, &s->accesses[i]);
  write_curve(s, row + GROUP1 + BUFFERS * BUFFER_WIDTH);
  double written = 1;
  for (uint32_t i = 0; i < s->access_count; i++)
    if (s->accesses[i].write) written = unique_elements(s, &s->accesses[i], s->loop_count);
  qsort(s->accesses, s->access_count, sizeof *s->accesses, by_bytes);
  for (uint32_t i = 0; i < s->access_count && i < BUFFERS; i++)
    write_access(&s->accesses[i], row + GROUP1 + i * BUFFER_WIDTH);
  float *rest = row + GROUP1 + BUFFERS * BUFFER_WIDTH + CURVE;
  double serial = 1;
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (s->loops[l].kind == TIR_SERIAL) serial *= s->loops[l].extent;
  rest[0] = scaled(written), rest[1] = scaled(s->iterations), rest[2] = scaled(serial),
  rest[3] = scaled(s->unroll_step);
  rest[4] = scaled(s->iterations), rest[5] = scaled(s->loop_count), rest[6] = scaled(s->unroll_step);
}

static bool is_reduction(const struct tir *ir, tir_block block, tir_var v) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if (ir->iters.at[i].kind == TIR_REDUCE && tir_uses_var(ir, ir->iters.at[i].binding, v)) return true;
  return false;
}

static void describe_loops(struct store_info *s, tir_stmt store) {
  struct tir *ir = s->ir;
  s->iterations = 1;
  s->block = tir_parent_block(ir, store);
  for (tir_stmt p = tir_stmt_at(ir, store)->parent; p; p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP)) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, p);
    tir_expr step = tir_annotation(ir, n.annotations, "pragma_auto_unroll_max_step");
    if (step && tir_is_int(ir, step)) s->unroll_step = (double)tir_at(ir, step)->imm;
    double extent = tir_is_int(ir, n.loop.extent) ? (double)tir_at(ir, n.loop.extent)->imm : 1;
    s->iterations *= extent;
    if (s->loop_count == MOST_LOOPS) continue;
    s->loops[s->loop_count++] =
        (struct loop_info){n.loop.var, extent, n.loop_kind, s->block && is_reduction(ir, s->block, n.loop.var),
                           n.loop.thread ? tir_text(ir, n.loop.thread) : NULL};
  }
}

static void describe_store(struct tir *ir, tir_stmt store, float *row) {
  struct store_info s = {.ir = ir};
  describe_loops(&s, store);
  bind_iterations(ir, store);
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
  tir_expr indices[32];
  for (uint32_t i = 0; i < rank && i < 32; i++) indices[i] = tir_subst(ir, tir_operands(ir, n.store.indices)[i]);
  if (rank <= 32) add_access(&s, n.store.buffer, indices, true);
  tir_walk_expr(ir, n.store.value, add_node, &s);
  tir_subst_clear(ir);
  write_row(&s, row);
}

bool search_features(struct tir *ir, tir_func f, float **rows, uint32_t *count, ms_error *err) {
  assert(tir_is_func(ir, f));
  tir_stmt body = ir->funcs.at[f].body;
  uint32_t stores = 0;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) stores += tir_is(ir, s, TIR_STORE);
  (void)err;
  *count = 0;
  *rows = calloc((size_t)(stores ? stores : 1) * WIDTH, sizeof **rows);
  if (!*rows) abort();
  for (tir_stmt s = body; s; s = tir_next(ir, s, body))
    if (tir_is(ir, s, TIR_STORE)) describe_store(ir, s, *rows + (size_t)(*count)++ * WIDTH);
  return true;
}

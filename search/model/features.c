/* Features of scheduled functions: a row a buffer store, 165 numbers: groups of columns that the tables below list.
 * Numbers are log2(1 + x), but for truths, 0 or 1.
 * Source: Zheng et al., "Ansor", OSDI 2020, appendix B; the groups are MetaSchedule's. */
#include "search/search.h"

#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the numbers are ---- */

enum { REAL = 0, WHOLE = 6, TRUTHS = 12, SELECTIONS, CASTS, LOADS, ARITHMETIC }; /* where the counts of each are */
enum { MULTIPLY_ADD, ADD, MULTIPLY, DIVIDE, COMPARE, CALL };                     /* of reals or of whole numbers */
enum { NUMBER, PRODUCT, LENGTH, PLACE, KIND_WIDTH = PLACE + 8 };                 /* loops of a kind */
enum { BUFFERS = 5, BUFFER_WIDTH = 18, KINDS = 3, THREADS = 9, CURVE = 10, REST = 7 };

struct column {
  const char *name, *doc;
};

static const struct column arithmetic_columns[ARITHMETIC] = {
    {"float_multiply_add", "additions and subtractions of a product, with that product"},
    {"float_add_sub", "other additions and subtractions"},
    {"float_multiply", "other products"},
    {"float_divide", "quotients and remainders"},
    {"float_compare", "comparisons, minima and maxima"},
    {"float_call", "exp, sqrt and other functions"},
    {"int_multiply_add", "of integers, as the six before are of real numbers; indices are not counted"},
    {"int_add_sub", "of integers"},
    {"int_multiply", "of integers"},
    {"int_divide", "of integers"},
    {"int_compare", "of integers"},
    {"int_call", "of integers"},
    {"truth_operations", "and, or, not"},
    {"selections", "select, if_then_else"},
    {"casts", "conversions of type"},
    {"loads", "elements read"},
};
static const char *const kind_names[KINDS] = {"vectorized", "unrolled", "parallel"};
static const struct column kind_columns[KIND_WIDTH] = {
    [NUMBER] = {"number", "loops of the kind around the store"},
    [PRODUCT] = {"product", "the product of their extents"},
    [LENGTH] = {"length", "the extent of the innermost"},
    [PLACE] = {"none", "whether there is none"},
    {"inner_spatial", "whether the innermost is in the inner third of the loops, and drives no reduction"},
    {"middle_spatial", "likewise in the middle third"},
    {"outer_spatial", "likewise in the outer third"},
    {"inner_reduce", "whether it is in the inner third, and drives a reduction only"},
    {"middle_reduce", "likewise in the middle third"},
    {"outer_reduce", "likewise in the outer third"},
    {"mixed", "whether it drives both"},
};
static const enum tir_axis thread_axes[THREADS] = {TIR_BLOCK_X,  TIR_BLOCK_Y, TIR_BLOCK_Z,   TIR_THREAD_X, TIR_THREAD_Y,
                                                   TIR_THREAD_Z, TIR_VTHREAD, TIR_VTHREAD_X, TIR_CLUSTER_X};
static const struct column thread_columns[] = {{"extent", "of the loop that is bound to the axis"}};
static const char *const buffer_names[BUFFERS] = {"buffer0", "buffer1", "buffer2", "buffer3", "buffer4"};
static const struct column buffer_columns[BUFFER_WIDTH] = {
    {"read", "whether the buffer is only read; buffers come in order of the bytes moved"},
    {"write", "whether it is only written"},
    {"read_write", "whether it is read and written"},
    {"bytes", "bytes moved: accesses times the size of an element"},
    {"unique_bytes", "bytes of distinct elements"},
    {"lines", "cache lines moved"},
    {"unique_lines", "distinct cache lines"},
    {"reuse_in_iteration", "whether several of its elements are accessed in one iteration"},
    {"reuse_in_loop", "whether a loop comes back to the same element"},
    {"reuse_none", "whether neither is so"},
    {"reuse_distance_iterations", "iterations until the same element is accessed again"},
    {"reuse_distance_bytes", "bytes of all buffers that are touched meanwhile"},
    {"reuse_count", "how often it is accessed again"},
    {"bytes_by_reuse", "bytes by reuse_count; where that is 0, by 1/2, as the next three"},
    {"unique_bytes_by_reuse", "unique_bytes by reuse_count"},
    {"lines_by_reuse", "lines by reuse_count"},
    {"unique_lines_by_reuse", "unique_lines by reuse_count"},
    {"stride", "the least number of elements that a loop moves the access by"},
};
static const struct column curve_columns[CURVE] = {
    {"intensity_1", "operations a byte of the fewest inner loops that do a tenth of the work, on its logarithm"},
    {"intensity_2", "two tenths"},
    {"intensity_3", "three tenths"},
    {"intensity_4", "four tenths"},
    {"intensity_5", "five tenths"},
    {"intensity_6", "six tenths"},
    {"intensity_7", "seven tenths"},
    {"intensity_8", "eight tenths"},
    {"intensity_9", "nine tenths"},
    {"intensity_10", "all of it"},
};
static const struct column rest_columns[REST] = {
    {"written_elements", "distinct elements that the store writes"},
    {"written_bytes", "the size of the buffer that it writes"},
    {"serial_product", "the product of the extents of serial loops"},
    {"unroll_step", "as many statements as loops are to be unrolled to; 0: they are not"},
    {"iterations", "the product of the extents of all loops"},
    {"loops", "loops around the store"},
    {"conditions", "predicates of blocks and ifs around the store"},
};

/* The columns, for each of the prefixes if there are any; of threads, these are axes. */
static const struct group {
  const struct column *columns;
  uint32_t width, count;
  const char *const *prefixes;
} groups[] = {
    {arithmetic_columns, ARITHMETIC, 1, NULL}, {kind_columns, KIND_WIDTH, KINDS, kind_names},
    {thread_columns, 1, THREADS, NULL},        {buffer_columns, BUFFER_WIDTH, BUFFERS, buffer_names},
    {curve_columns, CURVE, 1, NULL},           {rest_columns, REST, 1, NULL},
};
enum {
  AT_KINDS = ARITHMETIC,
  AT_THREADS = AT_KINDS + KINDS * KIND_WIDTH,
  AT_BUFFERS = AT_THREADS + THREADS,
  AT_CURVE = AT_BUFFERS + BUFFERS * BUFFER_WIDTH,
  AT_REST = AT_CURVE + CURVE,
  WIDTH = AT_REST + REST
};
_Static_assert(WIDTH == 165, "the rows are 165 numbers wide");

uint32_t search_feature_count(void) { return WIDTH; }

/* Which column number i is; *prefix: of its name, or NULL. */
static const struct column *column_at(uint32_t i, const char **prefix) {
  assert(i < WIDTH);
  const struct group *g = groups;
  for (; i >= g->width * g->count; g++) i -= g->width * g->count;
  *prefix = g->columns == thread_columns ? tir_axis_name(thread_axes[i]) : NULL;
  if (g->prefixes) *prefix = g->prefixes[i / g->width];
  return &g->columns[i % g->width];
}

const char *search_feature_name(uint32_t i) {
  static _Thread_local char name[64];
  const char *prefix;
  const struct column *column = column_at(i, &prefix);
  snprintf(name, sizeof name, "%s%s%s", prefix ? prefix : "", prefix ? "_" : "", column->name);
  return name;
}

const char *search_feature_doc(uint32_t i) {
  const char *prefix;
  return column_at(i, &prefix)->doc;
}

/* Most numbers are 0, or small and whole: those take no logarithm. */
enum { SMALL = 1024 };
static float logarithms[SMALL]; /* of 1 and more */
/* The others are few too, in all candidates of a function: what came of each is kept, in the place that its bits give.
 * Each thread has its own on the heap: a library that is loaded late gets little memory for threads. */
enum { KEPT_BITS = 9 };
struct kept {
  double x, logarithm; /* of 0: 0, as it is at first */
};
static pthread_key_t kept_key;
static pthread_once_t logarithms_once = PTHREAD_ONCE_INIT;
static void fill_logarithms(void) {
  for (int i = 0; i < SMALL; i++) logarithms[i] = (float)log2(1.0 + i);
  if (pthread_key_create(&kept_key, free)) abort();
}

static struct kept *kept_logarithms(void) {
  struct kept *kept = pthread_getspecific(kept_key);
  if (kept) return kept;
  kept = calloc((size_t)1 << KEPT_BITS, sizeof *kept);
  if (!kept || pthread_setspecific(kept_key, kept)) abort();
  return kept;
}

/* Of 1 and more. */
static double logarithm_of(double x) {
  struct kept *kept = kept_logarithms();
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t at = (bits * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - KEPT_BITS);
  if (kept[at].x != x) kept[at].logarithm = log2(1 + x), kept[at].x = x;
  return kept[at].logarithm;
}

static float scaled(double x) {
  if (x >= 0 && x < SMALL && x == (int)x) return logarithms[(int)x];
  return (float)(x < 0 ? -logarithm_of(-x) : logarithm_of(x));
}

/* ---- What surrounds a store ---- */

enum { MOST_LOOPS = 64, MOST_ACCESSES = 32, MOST_COMPARED = 8, LINE = 64 };

struct loop_info {
  tir_var var;
  double extent;
  uint8_t kind;
  bool reduces, spatial; /* what it drives */
  enum tir_axis axis;
};
struct access {
  tir_buffer buffer;
  bool read, write;
  uint32_t count;                 /* accesses merged */
  bool several;                   /* not all at the same place */
  tir_expr places[MOST_COMPARED]; /* the indices of the first, in the first dimensions */
  double bytes, unique_elements, unique_bytes, lines, unique_lines;
  double reuse_distance_iterations, reuse_distance_bytes, reuse_count;
  int reuse; /* 0 several reads in one iteration, 1 a loop, 2 none */
  double stride;
  /* of the loops there are: */
  int64_t strides[MOST_LOOPS];    /* elements an iteration of each loop moves, innermost first; of the first access */
  double touched[MOST_LOOPS + 1]; /* unique bytes of the i innermost loops */
};
struct store_info {
  struct tir *ir;
  uint32_t loop_count, access_count;
  double iterations, arithmetic[ARITHMETIC], unroll_step;
  double conditions;
  tir_block block; /* around the store, or TIR_NONE */
  /* as many as are counted: */
  struct loop_info loops[MOST_LOOPS]; /* innermost first */
  struct access accesses[MOST_ACCESSES];
};

/* ---- Arithmetic ---- */

static bool is_real(const struct tir *ir, tir_expr e) { return tir_type_is_float(tir_type_of(ir, e)); }

static bool is_product(const struct tir *ir, tir_expr e) { return tir_at(ir, e)->kind == TIR_MUL; }

/* A product that is added is no product besides: it is visited later, and then counted. */
static void count_sum(struct store_info *s, double *counts, const struct tir_expr_node *n) {
  bool product = is_product(s->ir, n->a) || is_product(s->ir, n->b);
  counts[product ? MULTIPLY_ADD : ADD]++;
  if (product) counts[MULTIPLY]--;
}

static void count_arithmetic(struct store_info *s, tir_expr e) {
  const struct tir_expr_node *n = tir_at(s->ir, e);
  double *counts = s->arithmetic + (is_real(s->ir, e) ? REAL : WHOLE);
  switch (n->kind) {
  case TIR_ADD:
  case TIR_SUB: count_sum(s, counts, n); break;
  case TIR_MUL: counts[MULTIPLY]++; break;
  case TIR_DIV:
  case TIR_MOD:
  case TIR_FLOORDIV:
  case TIR_FLOORMOD: counts[DIVIDE]++; break;
  case TIR_MIN:
  case TIR_MAX: counts[COMPARE]++; break;
  case TIR_EQ:
  case TIR_NE:
  case TIR_LT:
  case TIR_LE:
  case TIR_GT:
  case TIR_GE: s->arithmetic[(is_real(s->ir, n->a) ? REAL : WHOLE) + COMPARE]++; break;
  case TIR_AND:
  case TIR_OR:
  case TIR_NOT: s->arithmetic[TRUTHS]++; break;
  case TIR_SELECT: s->arithmetic[SELECTIONS]++; break;
  case TIR_CAST: s->arithmetic[CASTS]++; break;
  case TIR_LOAD: s->arithmetic[LOADS]++; break;
  case TIR_CALL:
    if (!strcmp(tir_text(s->ir, n->ref), "if_then_else"))
      s->arithmetic[SELECTIONS]++;
    else
      counts[CALL]++;
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

/* Adds by how many elements each loop moves the access, of one index that counts `stride` elements. */
static void add_strides(struct store_info *s, tir_expr index, int64_t stride, int64_t *strides) {
  struct tir_linear linear = tir_linear_of(s->ir, index);
  for (uint32_t i = 0; i < linear.count; i++) {
    struct tir_term t = tir_terms(s->ir, linear)[i];
    const struct tir_expr_node *atom = tir_at(s->ir, t.atom);
    for (uint32_t l = 0; l < s->loop_count; l++) {
      tir_var v = s->loops[l].var; /* in v // c and v % c it moves about as far */
      bool moves = atom->kind == TIR_VAR ? atom->ref == v : tir_uses_var(s->ir, t.atom, v);
      if (moves) strides[l] += t.coefficient * stride;
    }
  }
}

static void add_access(struct store_info *s, tir_buffer buffer, const tir_expr *indices, bool write) {
  assert(s->access_count <= MOST_ACCESSES);
  struct access *a = NULL;
  for (uint32_t i = 0; i < s->access_count; i++)
    if (s->accesses[i].buffer == buffer) a = &s->accesses[i];
  uint32_t rank = tir_buffer_at(s->ir, buffer)->rank, compared = rank < MOST_COMPARED ? rank : MOST_COMPARED;
  if (a) {
    a->read |= !write;
    a->write |= write;
    a->several |= memcmp(a->places, indices, compared * sizeof *indices) != 0;
    a->count++;
    return;
  }
  if (s->access_count == MOST_ACCESSES) return;
  a = &s->accesses[s->access_count++];
  memset(a, 0, offsetof(struct access, strides));
  a->buffer = buffer, a->read = !write, a->write = write, a->count = 1;
  memcpy(a->places, indices, compared * sizeof *indices);
  memset(a->strides, 0, s->loop_count * sizeof *a->strides);
  int64_t stride = 1;
  for (uint32_t d = rank; d-- > 0;) {
    add_strides(s, indices[d], stride, a->strides);
    tir_expr extent = tir_operands(s->ir, tir_buffer_at(s->ir, buffer)->shape)[d];
    stride *= tir_is_int(s->ir, extent) ? tir_at(s->ir, extent)->imm : 1;
  }
}

/* Of what a store computes: a value used again is computed, or loaded, once. */
static bool add_node(void *data, tir_expr e) {
  struct store_info *s = data;
  struct tir *ir = s->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  count_arithmetic(s, e);
  if (n.kind != TIR_LOAD) return true;
  tir_expr indices[TIR_MOST_RANK];
  for (uint32_t i = 0; i < n.count && i < TIR_MOST_RANK; i++)
    indices[i] = tir_subst(ir, tir_operands(ir, n.operands)[i]);
  if (n.count <= TIR_MOST_RANK) add_access(s, n.ref, indices, false);
  return false;
}

/* Unique elements that the n innermost loops touch, for each n: those with a stride reach different ones. */
static void measure_touched(const struct store_info *s, struct access *a, double element) {
  double elements = 1;
  for (uint32_t n = 0; n < s->loop_count; n++) {
    a->touched[n] = elements * element;
    if (a->strides[n] != 0) elements *= s->loops[n].extent;
  }
  a->touched[s->loop_count] = elements * element;
  a->unique_elements = elements;
}

static void measure_access(struct store_info *s, struct access *a) {
  const struct tir_buffer_node *b = tir_buffer_at(s->ir, a->buffer);
  double element = (tir_type_bits(b->type) + 7) / 8;
  measure_touched(s, a, element);
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
  if (a->several) {
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

/* Where a loop stands among those around the store: the column that says so. */
static int place_of(const struct store_info *s, uint32_t l) {
  assert(l < s->loop_count);
  if (s->loops[l].reduces && s->loops[l].spatial) return PLACE + 7;
  int third = l * 3 < s->loop_count ? 0 : l * 3 < 2 * s->loop_count ? 1 : 2;
  return PLACE + 1 + third + (s->loops[l].reduces ? 3 : 0);
}

static void write_kind(const struct store_info *s, enum tir_loop_kind kind, float *row) {
  double number = 0, product = 1, length = 0;
  int place = PLACE;
  for (uint32_t l = s->loop_count; l-- > 0;) { /* outermost first: the innermost is kept */
    if (s->loops[l].kind != kind) continue;
    number++;
    product *= s->loops[l].extent;
    length = s->loops[l].extent;
    place = place_of(s, l);
  }
  assert(place >= PLACE && place < KIND_WIDTH);
  row[NUMBER] = scaled(number);
  row[PRODUCT] = number > 0 ? scaled(product) : 0;
  row[LENGTH] = scaled(length);
  row[place] = 1;
}

static void write_threads(const struct store_info *s, float *row) {
  for (uint32_t l = 0; l < s->loop_count; l++)
    for (int t = 0; t < THREADS; t++)
      if (s->loops[l].axis == thread_axes[t]) row[t] = scaled(s->loops[l].extent);
}

static bool comes_before(const struct access *a, const struct access *b) {
  return a->bytes != b->bytes ? a->bytes > b->bytes : a->buffer < b->buffer;
}

/* The accesses by their bytes, the most first. They are few, and large. */
static void order_accesses(const struct store_info *s, const struct access **out) {
  for (uint32_t i = 0; i < s->access_count; i++) {
    uint32_t at = i;
    for (; at > 0 && comes_before(&s->accesses[i], out[at - 1]); at--) out[at] = out[at - 1];
    out[at] = &s->accesses[i];
  }
}

static void write_access(const struct access *a, float *row) {
  double by = a->reuse_count > 0 ? a->reuse_count : 0.5;
  row[0] = a->read && !a->write;
  row[1] = a->write && !a->read;
  row[2] = a->read && a->write;
  row[3] = scaled(a->bytes), row[4] = scaled(a->unique_bytes), row[5] = scaled(a->lines),
  row[6] = scaled(a->unique_lines);
  assert(a->reuse >= 0 && a->reuse <= 2);
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
  for (int i = 0; i < LOADS; i++) operations += s->arithmetic[i] * (i == REAL + MULTIPLY_ADD ? 2 : 1);
  for (uint32_t n = 0; n <= s->loop_count; n++) {
    double bytes = 0;
    for (uint32_t i = 0; i < s->access_count; i++) bytes += s->accesses[i].touched[n];
    work[n] = logarithm_of(operations * done);
    intensity[n] = bytes > 0 ? operations * done / bytes : 0;
    if (n < s->loop_count) done *= s->loops[n].extent;
  }
  uint32_t last = 0;
  float value = 0;
  for (int i = 0; i < CURVE; i++) {
    double at = work[s->loop_count] * (i + 1) / CURVE;
    uint32_t n = 0;
    while (n < s->loop_count && work[n] < at) n++;
    if (!i || n != last) value = scaled(intensity[n]);
    row[i] = value, last = n;
  }
}

static void write_rest(const struct store_info *s, tir_buffer written, float *row) {
  const struct tir_buffer_node *b = tir_buffer_at(s->ir, written);
  double elements = 1, bytes = (tir_type_bits(b->type) + 7) / 8, serial = 1;
  for (uint32_t i = 0; i < s->access_count; i++)
    if (s->accesses[i].write) elements = s->accesses[i].unique_elements;
  for (uint32_t d = 0; d < b->rank; d++) {
    tir_expr extent = tir_operands(s->ir, b->shape)[d];
    bytes *= tir_is_int(s->ir, extent) ? (double)tir_at(s->ir, extent)->imm : 1;
  }
  for (uint32_t l = 0; l < s->loop_count; l++)
    if (s->loops[l].kind == TIR_SERIAL) serial *= s->loops[l].extent;
  const double numbers[REST] = {elements, bytes, serial, s->unroll_step, s->iterations, s->loop_count, s->conditions};
  for (int i = 0; i < REST; i++) row[i] = scaled(numbers[i]);
}

static void write_row(struct store_info *s, tir_buffer written, float *row) {
  assert(s->loop_count <= MOST_LOOPS && s->access_count <= MOST_ACCESSES);
  for (int i = 0; i < ARITHMETIC; i++) row[i] = scaled(fmax(s->arithmetic[i], 0) * s->iterations);
  write_kind(s, TIR_VECTORIZED, row + AT_KINDS);
  write_kind(s, TIR_UNROLLED, row + AT_KINDS + KIND_WIDTH);
  write_kind(s, TIR_PARALLEL, row + AT_KINDS + 2 * KIND_WIDTH);
  write_threads(s, row + AT_THREADS);
  for (uint32_t i = 0; i < s->access_count; i++) measure_access(s, &s->accesses[i]);
  for (uint32_t i = 0; i < s->access_count; i++) find_reuse(s, &s->accesses[i]);
  write_curve(s, row + AT_CURVE);
  write_rest(s, written, row + AT_REST);
  const struct access *ordered[MOST_ACCESSES];
  order_accesses(s, ordered);
  for (uint32_t i = 0; i < s->access_count && i < BUFFERS; i++)
    write_access(ordered[i], row + AT_BUFFERS + i * BUFFER_WIDTH);
}

static void describe_iterations(const struct tir *ir, tir_block block, struct loop_info *loop) {
  struct tir_span iters = block ? tir_block_at(ir, block)->iters : (struct tir_span){0, 0};
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    if (!tir_uses_var(ir, ir->iters.at[i].binding, loop->var)) continue;
    loop->reduces |= ir->iters.at[i].kind == TIR_REDUCE;
    loop->spatial |= ir->iters.at[i].kind == TIR_SPATIAL;
  }
}

static bool is_condition(const struct tir *ir, tir_stmt s) {
  if (tir_is(ir, s, TIR_IF)) return true;
  return tir_is(ir, s, TIR_BLOCK) && tir_as(ir, s, TIR_BLOCK)->block.predicate != TIR_NONE;
}

static void describe_loops(struct store_info *s, tir_stmt store) {
  struct tir *ir = s->ir;
  s->iterations = 1;
  s->block = tir_parent_block(ir, store);
  for (tir_stmt p = tir_stmt_at(ir, store)->parent; p; p = tir_stmt_at(ir, p)->parent) {
    s->conditions += is_condition(ir, p);
    if (!tir_is(ir, p, TIR_LOOP)) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, p);
    tir_expr step = tir_annotation(ir, n.annotations, "pragma_auto_unroll_max_step");
    if (step && tir_is_int(ir, step)) s->unroll_step = (double)tir_at(ir, step)->imm;
    double extent = tir_is_int(ir, n.loop.extent) ? (double)tir_at(ir, n.loop.extent)->imm : 1;
    s->iterations *= extent;
    if (s->loop_count == MOST_LOOPS) continue;
    struct loop_info *loop = &s->loops[s->loop_count++];
    *loop = (struct loop_info){.var = n.loop.var, .extent = extent, .kind = n.loop_kind, .axis = tir_loop_axis(ir, p)};
    describe_iterations(ir, s->block, loop);
  }
}

static void describe_store(struct tir *ir, tir_stmt store, float *row) {
  struct store_info s;
  memset(&s, 0, offsetof(struct store_info, loops));
  s.ir = ir;
  describe_loops(&s, store);
  bind_iterations(ir, store);
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
  tir_expr indices[TIR_MOST_RANK];
  for (uint32_t i = 0; i < rank && i < TIR_MOST_RANK; i++)
    indices[i] = tir_subst(ir, tir_operands(ir, n.store.indices)[i]);
  if (rank <= TIR_MOST_RANK) add_access(&s, n.store.buffer, indices, true);
  tir_walk_expr(ir, n.store.value, add_node, &s);
  tir_subst_clear(ir);
  write_row(&s, n.store.buffer, row);
}

bool search_features(struct tir *ir, tir_func f, float **rows, uint32_t *count, ms_error *err) {
  assert(tir_is_func(ir, f));
  pthread_once(&logarithms_once, fill_logarithms);
  tir_stmt body = ir->funcs.at[f].body;
  uint32_t stores = 0;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) stores += tir_is(ir, s, TIR_STORE);
  (void)err;
  *count = 0;
  *rows = calloc((size_t)(stores ? stores : 1) * WIDTH, sizeof **rows);
  if (!*rows) abort();
  for (tir_stmt s = body; s; s = tir_next(ir, s, body))
    if (tir_is(ir, s, TIR_STORE)) describe_store(ir, s, *rows + (size_t)(*count)++ * WIDTH);
  assert(*count == stores); /* to describe one changes none */
  return true;
}

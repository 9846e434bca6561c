/* What tensor units do: calls by name that a warp of threads makes as one, on memory that only such calls touch.
 *
 * A fragment of wmma is 256 elements in a row, as they lie in the matrix it was loaded from; how it was loaded says
 * whether that is the matrix or its transpose. Fragments of mma are spread over the registers of a warp; here they keep
 * the places that the buffer's indices say, which the numbers of registers are turned back into.
 * Where threads are real, a warp shares its fragments, and waits for its threads before and after a call; the first of
 * them acts for all, except where each lane loads a row. */
#include "interp.h"

#include <string.h>

enum { FRAGMENT = TIR_WMMA_SIDE };

/* A matrix that a call reads or writes: element (i, j) is `base + i * row + j * column` from where argument `arg`
 * leads.
 */
struct matrix {
  uint32_t arg;
  int64_t base, row, column;
};

static bool acts(struct tir_extern_call *call, uint32_t count, bool *skip) {
  *skip = !interp_call_leads(call);
  return tir_call_count(call) == count ||
         tir_call_fail(call, "%u arguments instead of %u", tir_call_count(call), count);
}

static int64_t whole(const struct tir_extern_call *call, uint32_t arg) { return tir_call_value(call, arg).integer; }

static bool says(const struct tir_extern_call *call, uint32_t arg, const char *text) {
  const char *said = tir_call_value(call, arg).text;
  return said && !strcmp(said, text);
}

/* What a function says may be absurd: sums wrap, and the element they name is out of bounds. */
static int64_t add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

static int64_t index_of(const struct matrix *m, int64_t i, int64_t j) {
  return add(m->base, add(mul(i, m->row), mul(j, m->column)));
}

static bool load_of_matrix(struct tir_extern_call *call, const struct matrix *m, int64_t i, int64_t j,
                           struct tir_value *out) {
  return tir_call_load(call, m->arg, index_of(m, i, j), out);
}

static bool store(struct tir_extern_call *call, const struct matrix *m, int64_t i, int64_t j, struct tir_value value) {
  return tir_call_store(call, m->arg, index_of(m, i, j), value);
}

static bool copy(struct tir_extern_call *call, const struct matrix *from, const struct matrix *to, int rows,
                 int columns) {
  struct tir_value v;
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      if (!load_of_matrix(call, from, i, j, &v) || !store(call, to, i, j, v)) return false;
  return true;
}

/* d = a * b + c, each [rows][columns] of [depth]. */
static bool multiply(struct tir_extern_call *call, const struct matrix *a, const struct matrix *b,
                     const struct matrix *c, const struct matrix *d, const int shape[3]) {
  struct tir_value x, y, sum;
  for (int i = 0; i < shape[0]; i++)
    for (int j = 0; j < shape[1]; j++) {
      if (!load_of_matrix(call, c, i, j, &sum)) return false;
      for (int k = 0; k < shape[2]; k++) {
        if (!load_of_matrix(call, a, i, k, &x) || !load_of_matrix(call, b, k, j, &y)) return false;
        sum.integer = add(sum.integer, mul(x.integer, y.integer));
        sum.real += x.real * y.real;
      }
      if (!store(call, d, i, j, sum)) return false;
    }
  return true;
}

/* ---- wmma: 16x16x16 ---- */

static struct matrix fragment(const struct tir_extern_call *call, uint32_t arg, uint32_t index) {
  return (struct matrix){arg, mul(whole(call, index), FRAGMENT * FRAGMENT), FRAGMENT, 1};
}

static bool is_shape(struct tir_extern_call *call, uint32_t first) {
  for (uint32_t i = first; i < first + 3; i++)
    if (whole(call, i) != FRAGMENT) return tir_call_fail(call, "only fragments of 16x16x16 are interpreted");
  return true;
}

/* (data, m, n, k, index, value) */
bool interp_do_tvm_fill_fragment(struct tir_extern_call *call, void *data) {
  bool skip;
  (void)data;
  if (!acts(call, 6, &skip) || skip) return skip;
  struct matrix to = fragment(call, 0, 4);
  struct tir_value v = tir_call_value(call, 5);
  if (tir_type_is_float(v.type))
    v.integer = interp_to_int(TIR_T_I64, v.real);
  else
    v.real = (double)v.integer;
  for (int i = 0; i < FRAGMENT * FRAGMENT; i++)
    if (!store(call, &to, 0, i, v)) return false;
  return is_shape(call, 1);
}

/* (data, m, n, k, index, pointer, stride, layout) */
bool interp_do_tvm_load_matrix_sync(struct tir_extern_call *call, void *data) {
  bool skip;
  (void)data;
  if (!acts(call, 8, &skip) || skip) return skip;
  struct matrix to = fragment(call, 0, 4), from = {5, 0, whole(call, 6), 1};
  struct object *o = interp_call_object(call, 0);
  if (o) o->transposed = says(call, 7, "col_major");
  return is_shape(call, 1) && copy(call, &from, &to, FRAGMENT, FRAGMENT);
}

bool interp_do_tvm_store_matrix_sync(struct tir_extern_call *call, void *data) {
  bool skip;
  (void)data;
  if (!acts(call, 8, &skip) || skip) return skip;
  if (!says(call, 7, "row_major")) return tir_call_fail(call, "only rows are stored");
  struct matrix from = fragment(call, 0, 4), to = {5, 0, whole(call, 6), 1};
  return is_shape(call, 1) && copy(call, &from, &to, FRAGMENT, FRAGMENT);
}

static struct matrix as_loaded(struct tir_extern_call *call, uint32_t arg, uint32_t index) {
  struct matrix m = fragment(call, arg, index);
  const struct object *o = interp_call_object(call, arg);
  if (o && o->transposed) m.row = 1, m.column = FRAGMENT;
  return m;
}

/* (d, index, a, index, b, index, c, index) */
bool interp_do_tvm_mma_sync(struct tir_extern_call *call, void *data) {
  bool skip;
  (void)data;
  if (!acts(call, 8, &skip) || skip) return skip;
  struct matrix d = fragment(call, 0, 1), a = as_loaded(call, 2, 3), b = as_loaded(call, 4, 5);
  struct matrix c = fragment(call, 6, 7);
  return multiply(call, &a, &b, &c, &d, (const int[]){FRAGMENT, FRAGMENT, FRAGMENT});
}

/* ---- mma: 16x8x8, of buffers whose scope says which operand they hold ---- */

/* Where the registers from number `index` on lie. A is loaded 32 rows at a time, two tiles of 16; B 32 columns, four
 * tiles of 8; tiles of C are two rows of 8. */
static bool registers(struct tir_extern_call *call, uint32_t arg, uint32_t index, char operand, struct matrix *out) {
  int64_t stride = interp_call_stride(call, arg), at = whole(call, index);
  int64_t wide = operand == 'B' ? 32 : 8;
  if (stride < 8 || stride % 8 || (stride > wide && stride % wide) || at < 0 || at > INT32_MAX)
    return tir_call_fail(call, "argument %u is no matrix of such tiles", arg);
  int64_t across = stride > wide ? stride / wide : 1, tile = operand == 'C' ? at / 4 : at / 8, part = at % 8;
  int64_t row = operand == 'A'   ? tile / across * 32 + part / 4 * 16
                : operand == 'B' ? tile / across * 8
                                 : tile / across * 16;
  int64_t column = tile % across * wide + (operand == 'B' ? part / 2 * 8 : 0);
  *out = (struct matrix){arg, add(mul(row, stride), column), stride, 1};
  return true;
}

/* (transposed, count, type, data, index, pointer, offset, lane): lane t loads row t % 8 of matrix t / 8. The matrices
 * of A lie one below the other, those of B, which are transposed, side by side. */
bool interp_do_ptx_ldmatrix(struct tir_extern_call *call, void *data) {
  (void)data;
  if (tir_call_count(call) != 8 || whole(call, 1) != 4)
    return tir_call_fail(call, "only four matrices are interpreted");
  int64_t lane = whole(call, 7);
  bool b = whole(call, 0);
  struct matrix to, from = {5, whole(call, 6), 0, 1};
  if (!registers(call, 3, 4, b ? 'B' : 'A', &to)) return false;
  to.base = add(to.base, b ? add(mul(lane % 8, to.row), lane / 8 * 8) : mul(lane, to.row));
  return copy(call, &from, &to, 1, 8);
}

/* (shape, layouts, types, a, index, b, index, c, index, saturate) */
bool interp_do_ptx_mma(struct tir_extern_call *call, void *data) {
  bool skip;
  struct matrix a, b, c;
  (void)data;
  if (!acts(call, 13, &skip) || skip) return skip;
  if (!says(call, 0, "m16n8k8")) return tir_call_fail(call, "only m16n8k8 is interpreted");
  return registers(call, 6, 7, 'A', &a) && registers(call, 8, 9, 'B', &b) && registers(call, 10, 11, 'C', &c) &&
         multiply(call, &a, &b, &c, &c, (const int[]){TIR_MMA8_ROWS, TIR_MMA8_COLUMNS, TIR_MMA8_DEPTH});
}

/* Where a lane's register of the sums lies, whose number is argument 1. */
static bool element_of(struct tir_extern_call *call, int64_t lane, struct matrix *tile, int *row, int *column) {
  int64_t at = whole(call, 1);
  if (!registers(call, 0, 1, 'C', tile)) return false;
  struct tir_mma_place p = tir_mma_place(TIR_MMA_C, 16, (int)((uint64_t)lane % TIR_WARP), (int)(at % 4));
  *row = p.row, *column = p.column;
  return true;
}

/* (c, register, lane) */
bool interp_do_mma_lane_get(struct tir_extern_call *call, void *data) {
  struct matrix tile;
  struct tir_value v;
  int row, column;
  (void)data;
  if (tir_call_count(call) != 3) return tir_call_fail(call, "a fragment and the number of a register are expected");
  if (!element_of(call, whole(call, 2), &tile, &row, &column) || !load_of_matrix(call, &tile, row, column, &v))
    return false;
  tir_call_return(call, v);
  return true;
}

/* (c, register, value, lane) */
bool interp_do_mma_lane_put(struct tir_extern_call *call, void *data) {
  struct matrix tile;
  int row, column;
  (void)data;
  if (tir_call_count(call) != 4)
    return tir_call_fail(call, "a fragment, the number of a register and a value are expected");
  return element_of(call, whole(call, 3), &tile, &row, &column) &&
         store(call, &tile, row, column, tir_call_value(call, 2));
}

/* ---- mma: fragments as they lie in memory ---- */

/* Rows and columns of a fragment. */
struct tile {
  tir_type type;
  int rows, columns;
};

static bool tile_of(struct tir_extern_call *call, uint32_t arg, enum tir_mma_operand operand, bool by_columns,
                    struct tile *out) {
  tir_type type = interp_call_type(call, arg);
  int bits = tir_type_bits(type);
  if (bits != 8 && bits != 16 && bits != 32) return tir_call_fail(call, "argument %u: elements of %d bits", arg, bits);
  if (by_columns && operand != TIR_MMA_B) return tir_call_fail(call, "only b lies by columns");
  bool deep_rows = operand == TIR_MMA_B && !by_columns, deep_columns = operand != TIR_MMA_C && !deep_rows;
  out->type = type;
  out->rows = deep_rows ? tir_mma_depth(bits) : TIR_MMA_SIDE;
  out->columns = deep_columns ? tir_mma_depth(bits) : TIR_MMA_SIDE;
  return true;
}

/* Fragment `number`, by the rows of the buffer, where its indices say that it is: so elements can be touched by these
 * too. */
static struct matrix fragment_of(const struct tir_extern_call *call, uint32_t arg, const struct tile *t,
                                 int64_t number) {
  int64_t stride = interp_call_stride(call, arg);
  if (stride < t->columns || stride % t->columns) stride = t->columns;
  int64_t across = stride / t->columns, row = mul(number / across, t->rows), column = number % across * t->columns;
  return (struct matrix){arg, add(mul(row, stride), column), stride, 1};
}

static struct matrix part_of(const struct tir_extern_call *call, uint32_t arg, const struct tile *t) {
  return fragment_of(call, arg, t, whole(call, arg + 1));
}

/* (c, index, value) */
bool interp_do_mma_fill(struct tir_extern_call *call, void *data) {
  bool skip;
  struct tile t = {0};
  (void)data;
  if (!acts(call, 3, &skip) || skip) return skip;
  if (!tile_of(call, 0, TIR_MMA_C, false, &t)) return false;
  struct matrix to = part_of(call, 0, &t);
  struct tir_value v = tir_call_value(call, 2);
  if (!tir_type_is_float(v.type)) v.real = (double)v.integer;
  for (int i = 0; i < t.rows; i++)
    for (int j = 0; j < t.columns; j++)
      if (!store(call, &to, i, j, v)) return false;
  return true;
}

/* (d, index, pointer, stride, layout, operand) */
bool interp_do_mma_load(struct tir_extern_call *call, void *data) {
  bool skip;
  struct tile t = {0};
  (void)data;
  if (!acts(call, 6, &skip) || skip) return skip;
  if (!tile_of(call, 0, says(call, 5, "b") ? TIR_MMA_B : TIR_MMA_A, says(call, 4, "col_major"), &t)) return false;
  struct matrix to = part_of(call, 0, &t), from = {2, 0, whole(call, 3), 1};
  struct tir_value v;
  for (int i = 0; i < t.rows; i++)
    for (int j = 0; j < t.columns; j++) {
      if (!load_of_matrix(call, &from, i, j, &v)) return false;
      if (tir_type_is_float(t.type) && tir_type_bits(t.type) == 32) v.real = interp_to_tf32(v.real);
      if (!store(call, &to, i, j, v)) return false;
    }
  return true;
}

/* (c, index, pointer, stride) */
bool interp_do_mma_store(struct tir_extern_call *call, void *data) {
  bool skip;
  struct tile t = {0};
  (void)data;
  if (!acts(call, 4, &skip) || skip) return skip;
  if (!tile_of(call, 0, TIR_MMA_C, false, &t)) return false;
  struct matrix from = part_of(call, 0, &t), to = {2, 0, whole(call, 3), 1};
  return copy(call, &from, &to, t.rows, t.columns);
}

/* Where the element lies whose number among a lane's is argument 1. */
static bool held_at(struct tir_extern_call *call, int64_t lane, struct matrix *of, struct tir_mma_place *place) {
  enum { HELD = TIR_MMA_SIDE * TIR_MMA_SIDE / TIR_WARP };
  int64_t at = whole(call, 1);
  const struct tile t = {TIR_T_VOID, TIR_MMA_SIDE, TIR_MMA_SIDE};
  if (at < 0) return tir_call_fail(call, "element %lld of a fragment", (long long)at);
  *place = tir_mma_place(TIR_MMA_C, 16, (int)((uint64_t)lane % TIR_WARP), (int)(at % HELD));
  *of = fragment_of(call, 0, &t, at / HELD);
  return true;
}

/* (c, element, lane) */
bool interp_do_mma_get(struct tir_extern_call *call, void *data) {
  struct matrix of = {0};
  struct tir_mma_place p = {0};
  struct tir_value v;
  (void)data;
  if (tir_call_count(call) != 3) return tir_call_fail(call, "a fragment and the number of an element are expected");
  if (!held_at(call, whole(call, 2), &of, &p) || !load_of_matrix(call, &of, p.row, p.column, &v)) return false;
  tir_call_return(call, v);
  return true;
}

/* (c, element, value, lane) */
bool interp_do_mma_put(struct tir_extern_call *call, void *data) {
  struct matrix of = {0};
  struct tir_mma_place p = {0};
  (void)data;
  if (tir_call_count(call) != 4)
    return tir_call_fail(call, "a fragment, the number of an element and a value are expected");
  return held_at(call, whole(call, 3), &of, &p) && store(call, &of, p.row, p.column, tir_call_value(call, 2));
}

/* (c, index, a, index, b, index, layout of b) */
bool interp_do_mma_sync(struct tir_extern_call *call, void *data) {
  bool skip;
  struct tile a = {0}, b = {0}, c = {0};
  (void)data;
  if (!acts(call, 7, &skip) || skip) return skip;
  bool by_columns = says(call, 6, "col_major");
  if (!tile_of(call, 0, TIR_MMA_C, false, &c) || !tile_of(call, 2, TIR_MMA_A, false, &a) ||
      !tile_of(call, 4, TIR_MMA_B, by_columns, &b))
    return false;
  if (a.type != b.type) return tir_call_fail(call, "a and b are of two types");
  struct matrix x = part_of(call, 2, &a), y = part_of(call, 4, &b), z = part_of(call, 0, &c);
  if (by_columns) y.column = y.row, y.row = 1;
  return multiply(call, &x, &y, &z, &z, (const int[]){TIR_MMA_SIDE, TIR_MMA_SIDE, a.columns});
}

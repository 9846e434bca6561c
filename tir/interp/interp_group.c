/* What warp groups do with tensor units: calls by name that 128 threads make as one. Sums keep the places that the
 * buffer's indices say; a thread stores those that its registers hold. Products are done where they begin, and their
 * sums are of no use until they are committed and waited for: each way to use them before is refused. */
#include "interp.h"

#include <string.h>

enum products { PRODUCTS_DONE, PRODUCTS_FENCED, PRODUCTS_BEGUN, PRODUCTS_COMMITTED };

static int64_t whole(const struct tir_extern_call *call, uint32_t arg) { return tir_call_value(call, arg).integer; }

static int64_t add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
static int64_t mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* Fragment `number` of n columns, where the indices of the buffer say that it is: its first element, and the distance
 * of its rows. */
struct place {
  int64_t first, stride;
};

static struct place place_of(const struct tir_extern_call *call, uint32_t arg, int64_t number, int64_t n) {
  int64_t stride = interp_call_stride(call, arg);
  if (stride < n || stride % n) stride = n;
  int64_t across = stride / n;
  return (struct place){add(mul(mul(number / across, TIR_WGMMA_ROWS), stride), number % across * n), stride};
}

static int64_t element_at(struct place p, int64_t row, int64_t column) {
  return add(p.first, add(mul(row, p.stride), column));
}

/* What argument `arg` leads to, registers of a warp group, must be in one of these states. */
static bool is_in(struct tir_extern_call *call, uint32_t arg, unsigned states) {
  const struct object *o = interp_call_object(call, arg);
  bool waited = o && (!o->in_flight || states >> PRODUCTS_BEGUN & 1);
  if (interp_call_lane(call) < 0 || !o || (waited && states >> o->products & 1)) return true;
  return tir_call_fail(call, !waited || o->products >= PRODUCTS_BEGUN ? "the sums are not waited for"
                                                                      : "no fence stands before the first product");
}

/* The fragment that arguments 0 to 2 name; the sums must be in one of these states. False: refused. */
static bool fragment(struct tir_extern_call *call, uint32_t count, unsigned states, struct place *out) {
  if (tir_call_count(call) != count)
    return tir_call_fail(call, "%u arguments instead of %u", tir_call_count(call), count);
  int64_t n = whole(call, 2);
  if (!tir_is_wgmma_width(n)) return tir_call_fail(call, "there is no product of %lld columns", (long long)n);
  if (!interp_call_whole_groups(call)) return tir_call_fail(call, "a block is not of whole warp groups");
  *out = place_of(call, 0, whole(call, 1), n);
  return is_in(call, 0, states);
}

/* (c, index, n, value) */
bool interp_do_wgmma_fill(struct tir_extern_call *call, void *data) {
  struct place of;
  (void)data;
  if (!fragment(call, 4, 1 << PRODUCTS_DONE | 1 << PRODUCTS_FENCED, &of)) return false;
  int lane = interp_call_lane(call);
  struct object *o = interp_call_object(call, 0);
  if (lane > 0) return true;
  if (o) o->products = PRODUCTS_DONE;
  struct tir_value v = tir_call_value(call, 3);
  if (!tir_type_is_float(v.type)) v.real = (double)v.integer;
  for (int64_t i = 0; i < TIR_WGMMA_ROWS; i++)
    for (int64_t j = 0; j < whole(call, 2); j++)
      if (!tir_call_store(call, 0, element_at(of, i, j), v)) return false;
  return true;
}

/* The type of a product's elements, those of a, where b's, argument 5, go with them. False: refused. */
static bool input_of(struct tir_extern_call *call, tir_type *out) {
  enum { A = 3, B = 5 };
  *out = interp_call_type(call, A);
  if (tir_wgmma_pairs(*out, interp_call_type(call, B)) &&
      tir_wgmma_multiplies(*out, interp_call_type(call, 0), whole(call, 2)))
    return true;
  return tir_call_fail(call, "there is no product of elements of these types");
}

/* What is multiplied of an element, as a float. */
static double operand_of(tir_type input, struct tir_value v) {
  return tir_type_is_float(input) ? tir_wgmma_operand(input, v.real) : (double)v.integer;
}

/* A part of a matrix, as floats; nobody may write it until the product is waited for. */
static bool load_of_group(struct tir_extern_call *call, uint32_t arg, int64_t rows, int64_t columns, int64_t row,
                          int64_t column, double *out) {
  struct tir_value v;
  tir_type type = interp_call_type(call, arg);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) {
      int64_t at = add(mul(i, row), mul(j, column));
      if (!tir_call_load(call, arg, at, &v)) return false;
      interp_call_hold(call, arg, at);
      out[i * columns + j] = operand_of(type, v);
    }
  return true;
}

/* c += a * b, a being loaded, `depth` products a sum, which are exact; argument `arg` is b, then come the distance of
 * its rows, and its layout. */
static bool multiply(struct tir_extern_call *call, struct place of, const double *a, int64_t depth, uint32_t arg,
                     bool by_columns) {
  double b[TIR_WGMMA_MOST_DEPTH * TIR_WGMMA_MOST_COLUMNS];
  int64_t n = whole(call, 2), stride = whole(call, arg + 1);
  bool real = tir_type_is_float(interp_call_type(call, 0));
  struct tir_value sum;
  if (!load_of_group(call, arg, depth, n, by_columns ? 1 : stride, by_columns ? stride : 1, b)) return false;
  for (int64_t i = 0; i < TIR_WGMMA_ROWS; i++)
    for (int64_t j = 0; j < n; j++) {
      int64_t at = element_at(of, i, j);
      if (!tir_call_load(call, 0, at, &sum)) return false;
      if (!real) sum.real = 0;
      for (int64_t k = 0; k < depth; k++) sum.real += a[i * depth + k] * b[k * n + j];
      if (!real) sum.integer = add(sum.integer, (int64_t)sum.real);
      if (!tir_call_store(call, 0, at, sum)) return false;
    }
  return true;
}

static bool read_layout(struct tir_extern_call *call, struct tir_wgmma_layout *out) {
  return tir_wgmma_layout_of(tir_call_value(call, 7).text, out) ||
         tir_call_fail(call, "an operand lies neither by rows nor by columns");
}

/* A product that changes or reads these registers begins. */
static void begin(struct tir_extern_call *call, uint32_t arg) {
  struct object *o = interp_call_object(call, arg);
  if (o && interp_call_lane(call) == 0) o->products = PRODUCTS_BEGUN, o->in_flight = interp_call_groups(call) + 1;
}

enum { MAY_BEGIN = 1 << PRODUCTS_FENCED | 1 << PRODUCTS_BEGUN };

/* (c, index, n, a, stride, b, stride, layout) */
bool interp_do_wgmma_mma(struct tir_extern_call *call, void *data) {
  struct place of;
  double a[TIR_WGMMA_ROWS * TIR_WGMMA_MOST_DEPTH];
  struct tir_wgmma_layout lies;
  tir_type input;
  (void)data;
  if (!fragment(call, 8, MAY_BEGIN, &of) || !read_layout(call, &lies) || !input_of(call, &input)) return false;
  if ((!lies.b_by_columns || lies.a_by_columns) && !tir_wgmma_takes_rows(input))
    return tir_call_fail(call, "a lies by columns, or b by rows");
  if (interp_call_lane(call) > 0) return true;
  int64_t depth = tir_mma_depth(tir_type_bits(input));
  begin(call, 0);
  int64_t stride = whole(call, 4), row = lies.a_by_columns ? 1 : stride, column = lies.a_by_columns ? stride : 1;
  return load_of_group(call, 3, TIR_WGMMA_ROWS, depth, row, column, a) &&
         multiply(call, of, a, depth, 5, lies.b_by_columns);
}

/* (c, index, n, a, index, b, stride, layout of b) */
bool interp_do_wgmma_mma_registers(struct tir_extern_call *call, void *data) {
  struct place of;
  double a[TIR_WGMMA_ROWS * TIR_WGMMA_MOST_DEPTH];
  struct tir_wgmma_layout lies;
  tir_type input;
  (void)data;
  if (!fragment(call, 8, MAY_BEGIN, &of) || !is_in(call, 3, MAY_BEGIN) || !read_layout(call, &lies)) return false;
  if (lies.a_by_columns) return tir_call_fail(call, "an operand in registers lies by rows");
  if (!input_of(call, &input)) return false;
  if (!tir_wgmma_takes_registers(input)) return tir_call_fail(call, "registers hold floats of 16 or 8 bits alone");
  if (!lies.b_by_columns && !tir_wgmma_takes_rows(input)) return tir_call_fail(call, "b lies by rows");
  if (interp_call_lane(call) > 0) return true;
  begin(call, 0), begin(call, 3);
  int bits = tir_type_bits(input), depth = tir_mma_depth(bits);
  struct place from = place_of(call, 3, whole(call, 4), depth);
  struct tir_value v;
  for (int i = 0; i < TIR_WGMMA_ROWS; i++)
    for (int k = 0; k < depth; k++) {
      if (!tir_call_load(call, 3, element_at(from, i, tir_wgmma_column_of(bits, k)), &v)) return false;
      a[i * depth + k] = v.real;
    }
  return multiply(call, of, a, depth, 5, lies.b_by_columns);
}

/* Where the element lies whose number among a thread's is argument 2. */
static bool held_at(struct tir_extern_call *call, int64_t lane, unsigned states, int64_t *at) {
  int64_t n = whole(call, 1), element = whole(call, 2);
  if (!tir_is_wgmma_width(n) || element < 0)
    return tir_call_fail(call, "element %lld of fragments of %lld columns", (long long)element, (long long)n);
  struct tir_mma_place p = tir_wgmma_place((int)((uint64_t)lane % TIR_GROUP), (int)(element % (n / 2)));
  *at = element_at(place_of(call, 0, element / (n / 2), n), p.row, p.column);
  return is_in(call, 0, states);
}

/* (c, n, element, lane) */
bool interp_do_wgmma_get(struct tir_extern_call *call, void *data) {
  int64_t at;
  struct tir_value v;
  (void)data;
  if (tir_call_count(call) != 4) return tir_call_fail(call, "a fragment, its columns and an element are expected");
  if (!held_at(call, whole(call, 3), 1 << PRODUCTS_DONE | 1 << PRODUCTS_FENCED, &at) || !tir_call_load(call, 0, at, &v))
    return false;
  tir_call_return(call, v);
  return true;
}

/* (c, n, element, value, …, lane): a pair's elements are neighbours. */
bool interp_do_wgmma_put(struct tir_extern_call *call, void *data) {
  enum { VALUES = 3, PAIR = 2 };
  uint32_t count = tir_call_count(call), values = count - VALUES - 1;
  int64_t at;
  (void)data;
  if (count < VALUES + 2 || values > PAIR)
    return tir_call_fail(call, "a fragment, its columns, an element and one value or two are expected");
  if (values == PAIR && whole(call, 2) % PAIR) return tir_call_fail(call, "a pair begins with an odd element");
  if (!held_at(call, whole(call, count - 1), 1 << PRODUCTS_DONE | 1 << PRODUCTS_FENCED, &at)) return false;
  struct object *o = interp_call_object(call, 0);
  if (o) o->products = PRODUCTS_DONE;
  for (uint32_t i = 0; i < values; i++)
    if (!tir_call_store(call, 0, add(at, i), tir_call_value(call, VALUES + i))) return false;
  return true;
}

/* (c, index, n, pointer, stride): each thread what its registers hold; outside of a kernel one thread does all. */
bool interp_do_wgmma_store(struct tir_extern_call *call, void *data) {
  struct place of;
  int64_t n = whole(call, 2);
  int lane = interp_call_lane(call);
  (void)data;
  if (!fragment(call, 5, 1 << PRODUCTS_DONE, &of)) return false;
  for (int t = lane < 0 ? 0 : lane; t < (lane < 0 ? TIR_GROUP : lane + 1); t++)
    for (int i = 0; i < n / 2; i++) {
      struct tir_mma_place p = tir_wgmma_place(t, i);
      struct tir_value v;
      if (!tir_call_load(call, 0, element_at(of, p.row, p.column), &v)) return false;
      if (!tir_call_store(call, 3, add(mul(p.row, whole(call, 4)), p.column), v)) return false;
    }
  return true;
}

/* Registers that products in flight change or read may be those of further products. */
bool interp_do_wgmma_fence(struct tir_extern_call *call, void *data) {
  (void)data;
  for (uint32_t i = 0; i < tir_call_count(call); i++) {
    struct object *o = interp_call_object(call, i);
    if (o && o->products != PRODUCTS_BEGUN) o->products = PRODUCTS_FENCED;
  }
  return true;
}

/* It names no buffers: a group is all that its warp group began. */
bool interp_do_wgmma_commit(struct tir_extern_call *call, void *data) {
  (void)data;
  interp_call_bring(call, PRODUCTS_BEGUN, PRODUCTS_COMMITTED);
  if (interp_call_lane(call) == 0) interp_call_commit(call);
  return true;
}

/* (left, c, ...): sums that a group which is left changes stay in flight. */
bool interp_do_wgmma_wait(struct tir_extern_call *call, void *data) {
  (void)data;
  if (interp_call_lane(call) < 0) return true;
  int64_t left = whole(call, 0);
  if (left < 0) return tir_call_fail(call, "it leaves %lld groups", (long long)left);
  if (interp_call_lane(call) == 0 && !interp_call_release(call, left)) return false;
  for (uint32_t i = 1; i < tir_call_count(call); i++) {
    struct object *o = interp_call_object(call, i);
    if (!o) continue;
    bool stays = o->in_flight && (int64_t)o->in_flight - 1 + left >= (int64_t)interp_call_groups(call);
    if (stays && o->products == PRODUCTS_FENCED) o->products = PRODUCTS_COMMITTED;
    if (!stays) o->products = PRODUCTS_DONE, o->in_flight = 0;
  }
  return true;
}

/* Memory is one here. */
bool interp_do_fence_proxy_async(struct tir_extern_call *call, void *data) {
  (void)call, (void)data;
  return true;
}

/* The warp's first lane is the one. */
bool interp_do_elect_one(struct tir_extern_call *call, void *data) {
  (void)data;
  bool first = !call->machine->in_kernel || call->thread == call->thread->leader;
  tir_call_return(call, (struct tir_value){.type = TIR_T_I32, .integer = first});
  return true;
}

/* (value) */
bool interp_do_warp_uniform(struct tir_extern_call *call, void *data) {
  (void)data;
  if (tir_call_count(call) != 1) return tir_call_fail(call, "a value is expected");
  tir_call_return(call, (struct tir_value){.type = TIR_T_I32, .integer = whole(call, 0)});
  return true;
}

/* (count, more) */
bool interp_do_set_registers(struct tir_extern_call *call, void *data) {
  (void)data;
  struct machine *m = call->machine;
  int64_t count = tir_call_count(call) == 2 ? whole(call, 0) : 0, each = tir_registers_each(m->block_threads);
  if (!m->in_kernel) return true;
  if (count % TIR_REGISTERS_UNIT || count < TIR_LEAST_REGISTERS || count > TIR_MOST_REGISTERS)
    return tir_call_fail(call, "no thread has %lld registers", (long long)count);
  if (whole(call, 1) ? count < each : count > each)
    return tir_call_fail(call, "%lld registers are not %s than %lld", (long long)count,
                         whole(call, 1) ? "more" : "fewer", (long long)each);
  call->thread->registers = count;
  return true;
}

/* (number, threads) */
bool interp_do_named_arrive(struct tir_extern_call *call, void *data) {
  (void)data;
  struct thread *t = call->thread;
  int64_t number = tir_call_count(call) == 2 ? whole(call, 0) : -1;
  if (!call->machine->in_kernel) return tir_call_fail(call, "a thread arrives outside of a kernel");
  if (number < 0 || number >= TIR_NAMED_BARRIERS) return tir_call_fail(call, "there is no such barrier");
  if (t->arrived >> number & 1)
    return tir_call_fail(call, "a thread arrives at barrier %lld, where it is counted already", (long long)number);
  t->arrived |= 1u << number, t->arrived_for = whole(call, 1);
  return true;
}

bool interp_check_registers(struct machine *m, const struct thread *threads, uint32_t count) {
  int64_t sum = 0, each = tir_registers_each(count);
  for (uint32_t i = 0; i < count; i++) {
    const struct thread *first = &threads[i - i % TIR_GROUP];
    sum += threads[i].registers ? threads[i].registers : each;
    if (threads[i].registers != first->registers)
      return interp_fail(m, &threads[i], MS_RUN_BARRIER, "threads of one warp group set unlike numbers of registers");
  }
  return sum <= each * count || interp_fail(m, &threads[0], MS_RUN_BARRIER,
                                            "the block's threads wait for registers: %lld are asked for, it has %lld",
                                            (long long)sum, (long long)(each * count));
}

/* Lane stores: what lanes hold of rows as tensor cores have it (rows.c), pairs of neighbours, of four lanes that share
 * a row, leaves their registers by whole accesses.
 *
 *   for p in unrolled(4), v in unrolled(2): D[r(t), 8 * p + t % 4 * 2 + v] = f(p, v)      becomes
 *
 *   store_pairs(D + …, f(0, 0), f(0, 1), f(1, 0), … f(3, 1))       to device memory: each lane stores 16 bytes
 *   store_matrices(D + …, stride, f(0, 0), … f(3, 1))              to shared memory, of 16 bits: by stmatrix
 *   for v in vectorized(2): D[r(t), 8 * p + t % 4 * 2 + v] = own[v]       to shared memory, of 8 or 32 bits: no
 *                                                                         exchange, and no bank conflict if swizzled
 *
 * What the values load of device memory, pairs of neighbours too, is loaded before, a pair at once.
 *
 * Requires: kernels; unrolled loops. Gives: such calls, where all lanes of a warp come to them and the rows that a
 * call stores begin at multiples of 16 bytes. Keeps: everything else; what is otherwise stays as it was.
 * Source: PTX ISA, "stmatrix"; "shfl.sync". */
#include "footprint.h"
#include "tir/arith/linear.h"

#include <string.h>

enum { LANES_A_ROW = 4, PAIR = 2, GROUP = LANES_A_ROW * PAIR, ROWS = TIR_WARP / LANES_A_ROW, ACCESS = 16 };
enum { MOST_VALUES = ACCESS };

/* A loop of groups of columns, in it one of pairs, in that the store. */
struct lane_store {
  struct tir *ir;
  tir_stmt groups, pair, store;
  tir_var p, v, lane; /* lane: the axis x of the threads, a block's or a warp group's */
  int64_t at_once;    /* groups that a call stores */
  int64_t stride;     /* elements from one of eight rows to the next; -1: they are no such rows */
  tir_expr place;     /* of the element, as the buffer lies in memory */
  bool shared, plain; /* plain: each lane stores its pairs */
};

static tir_expr number(struct tir *ir, int64_t n) { return tir_int(ir, TIR_T_I32, n); }

static tir_var var_of(const struct tir *ir, tir_stmt loop) { return tir_as(ir, loop, TIR_LOOP)->loop.var; }

static bool is_unrolled(const struct tir *ir, tir_stmt s) {
  return s && tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_UNROLLED &&
         tir_is_const(ir, tir_as(ir, s, TIR_LOOP)->loop.min, 0);
}

static bool is_apart(struct tir *ir, tir_expr a, tir_expr b, int64_t distance) {
  return tir_is_const(ir, tir_simplify(ir, tir_sub(ir, a, b)), distance);
}

/* Lanes of a row hold neighbours, from a multiple of 16 bytes on; notes how far apart rows are. */
static bool is_of_lanes(struct lane_store *s, int64_t extent) {
  struct tir *ir = s->ir;
  tir_expr zero = number(ir, 0), warps = number(ir, extent / TIR_WARP);
  tir_var warp = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "warp"), TIR_T_I32, zero, warps);
  tir_expr of_warp = tir_mul(ir, tir_var_expr(ir, warp), number(ir, TIR_WARP));
  tir_expr first = lower_with_value(ir, lower_with_value(ir, s->place, s->p, zero), s->v, zero), row = TIR_NONE,
           rows[ROWS];
  int64_t bytes = tir_type_bits(tir_buffer_at(ir, tir_as(ir, s->store, TIR_STORE)->store.buffer)->type) / 8;
  for (int64_t l = 0; l < TIR_WARP; l++) {
    tir_expr at = lower_with_value(ir, first, s->lane, tir_add(ir, of_warp, number(ir, l)));
    if (l % LANES_A_ROW == 0) row = rows[l / LANES_A_ROW] = at;
    bool begins = l % LANES_A_ROW || tir_is_multiple(ir, at, ACCESS / bytes);
    if (!begins || !is_apart(ir, at, row, l % LANES_A_ROW * PAIR)) return false;
  }
  tir_expr apart = tir_simplify(ir, tir_sub(ir, rows[1], rows[0]));
  s->stride = tir_is_int(ir, apart) ? tir_at(ir, apart)->imm : -1;
  for (int64_t r = 1; r < ROWS && s->stride >= 0; r++)
    if (!is_apart(ir, rows[r], rows[0], r * s->stride)) s->stride = -1;
  return true;
}

/* A pair is one access, whatever other lanes have. */
static bool is_of_pairs(struct lane_store *s) {
  tir_expr zero = number(s->ir, 0);
  tir_expr first = lower_with_value(s->ir, s->place, s->v, zero),
           second = lower_with_value(s->ir, s->place, s->v, number(s->ir, 1));
  return tir_is_multiple(s->ir, tir_simplify(s->ir, first), PAIR) && is_apart(s->ir, second, first, 1);
}

/* Columns go on by eight from group to group, and by one in a pair. */
static bool is_by_pairs(struct lane_store *s) {
  struct tir *ir = s->ir;
  tir_expr zero = number(ir, 0), rest = lower_with_value(ir, lower_with_value(ir, s->place, s->p, zero), s->v, zero);
  tir_expr p = tir_cast(ir, tir_type_of(ir, rest), tir_var_expr(ir, s->p));
  tir_expr v = tir_cast(ir, tir_type_of(ir, rest), tir_var_expr(ir, s->v));
  tir_expr sum = tir_add(ir, rest, tir_add(ir, tir_mul(ir, p, tir_int(ir, tir_type_of(ir, rest), GROUP)), v));
  return tir_prove_equal(ir, s->place, sum);
}

static bool find_store(const struct lowering *low, tir_stmt kernel, const struct lower_threads *threads, tir_stmt loop,
                       struct lane_store *out) {
  struct tir *ir = low->ir;
  *out = (struct lane_store){.ir = ir, .groups = loop, .lane = threads->var[0]};
  if (!is_unrolled(ir, loop) || !out->lane || threads->extent[0] % TIR_WARP) return false;
  out->pair = tir_only_child(ir, loop);
  if (!is_unrolled(ir, out->pair) || tir_loop_extent(ir, out->pair) != PAIR) return false;
  out->store = tir_only_child(ir, out->pair);
  if (!out->store || !tir_is(ir, out->store, TIR_STORE)) return false;
  struct tir_stmt_node n = *tir_as(ir, out->store, TIR_STORE);
  tir_type type = tir_buffer_at(ir, n.store.buffer)->type;
  enum tir_memory memory = tir_buffer_memory(ir, n.store.buffer);
  int bits = tir_type_bits(type);
  out->shared = memory == TIR_BLOCK_MEMORY;
  out->plain = out->shared && (bits == 8 || bits == 32);
  bool known = bits == 32 || bits == 8 || (bits == 16 && tir_type_is_float(type));
  if (!known || n.store.predicate || (memory != TIR_DEVICE_MEMORY && !out->shared)) return false;
  bool matrices = low->options && tir_has(low->options->capabilities, TIR_HAS_MATRIX_STORES);
  if (out->shared && !out->plain && !matrices) return false;
  out->at_once = out->plain ? 1 : ACCESS / (bits / 8) / PAIR;
  out->p = var_of(ir, loop), out->v = var_of(ir, out->pair);
  if (tir_loop_extent(ir, loop) % out->at_once) return false;
  tir_expr place = lower_place_of(ir, n.store.buffer, tir_operands(ir, n.store.indices));
  out->place = place ? tir_simplify(ir, place) : TIR_NONE;
  if (out->plain) return out->place && is_of_pairs(out);
  return out->place && lower_comes_whole(ir, kernel, loop) && is_by_pairs(out) &&
         is_of_lanes(out, threads->extent[0]) && (!out->shared || out->stride > 0);
}

/* ---- What values load ---- */

enum { MOST_LOADS = 4 };

struct pair_loads {
  struct lane_store *store;
  tir_stmt at; /* where own memory is declared */
  tir_expr loads[MOST_LOADS];
  tir_buffer own[MOST_LOADS];
  uint32_t count;
};

/* A choice's branches may not be loaded ahead of it. */
static bool is_choice(void *data, tir_expr e) {
  const struct tir *ir = *(const struct tir *const *)data;
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind == TIR_SELECT || (n->kind == TIR_CALL && !strcmp(tir_text(ir, n->ref), "if_then_else"));
}

/* Of each group of columns the lane loads a pair, from a multiple of two on. */
static bool loads_pairs(struct lane_store *s, tir_expr load) {
  struct tir *ir = s->ir;
  struct tir_expr_node n = *tir_at(ir, load);
  int bits = tir_type_bits(n.type);
  bool known = bits == 8 || bits == 16 || bits == 32;
  if (n.kind != TIR_LOAD || n.a || tir_type_lanes(n.type) != 1 || !known) return false;
  if (tir_buffer_memory(ir, n.ref) != TIR_DEVICE_MEMORY) return false;
  tir_expr place = lower_place_of(ir, n.ref, tir_operands(ir, n.operands));
  if (!place || !tir_uses_var(ir, place, s->v)) return false;
  tir_expr first = lower_with_value(ir, place, s->v, number(ir, 0)),
           second = lower_with_value(ir, place, s->v, number(ir, 1));
  return tir_is_multiple(ir, tir_simplify(ir, first), PAIR) && is_apart(ir, second, first, 1);
}

/* The lane's own memory for what a call's groups have. */
static tir_buffer new_own(struct pair_loads *p, tir_type type) {
  struct tir *ir = p->store->ir;
  tir_expr size = number(ir, p->store->at_once * PAIR);
  tir_buffer own = tir_new_buffer(ir, tir_symbol_of(ir, "pairs"), type, &size, 1, tir_scope_named(ir, TIR_SCOPE_LOCAL));
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  tir_stmt_at(ir, alloc)->alloc.buffer = own;
  tir_buffer_at(ir, own)->where = alloc;
  tir_insert_before(ir, p->at, alloc);
  return own;
}

/* That for what a call's values load so; TIR_NONE: there is none. */
static tir_buffer own_of(struct pair_loads *p, tir_expr load) {
  for (uint32_t i = 0; i < p->count; i++)
    if (p->loads[i] == load) return p->own[i];
  if (p->count == MOST_LOADS || !loads_pairs(p->store, load)) return TIR_NONE;
  tir_buffer own = new_own(p, tir_at(p->store->ir, load)->type);
  p->loads[p->count] = load, p->own[p->count++] = own;
  return own;
}

static tir_expr take_load(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  struct pair_loads *p = data;
  tir_buffer own = tir_at(ir, before)->kind == TIR_LOAD && before == made ? own_of(p, before) : TIR_NONE;
  if (!own) return made;
  tir_expr group = tir_floormod(ir, tir_var_expr(ir, p->store->p), number(ir, p->store->at_once));
  tir_expr at = tir_add(ir, tir_mul(ir, group, number(ir, PAIR)), tir_var_expr(ir, p->store->v));
  return tir_load(ir, own, &at, 1, TIR_NONE);
}

/* Has the values read the lane's own memory; unrolled loops cannot repeat its declaration. */
static void take_loads(struct lane_store *s, struct pair_loads *p) {
  struct tir *ir = s->ir;
  *p = (struct pair_loads){.store = s, .at = s->groups};
  for (tir_stmt t = s->groups; t; t = tir_stmt_at(ir, t)->parent)
    if (tir_is(ir, t, TIR_LOOP) && tir_stmt_at(ir, t)->loop_kind == TIR_UNROLLED) p->at = t;
  if (tir_count_in_tree(ir, tir_as(ir, s->store, TIR_STORE)->store.value, is_choice, &ir)) return;
  lower_map(ir, s->store, TIR_HAS_LOAD, take_load, p);
}

/* own[2 * g + v] = R[…] for the groups of a call that begin with `first`. */
static void put_loads(const struct pair_loads *p, tir_expr first, tir_stmt to) {
  struct tir *ir = p->store->ir;
  for (uint32_t i = 0; i < p->count; i++)
    for (int64_t g = 0; g < p->store->at_once; g++) {
      tir_expr zero = number(ir, 0), size = number(ir, PAIR);
      tir_var v = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "v"), TIR_T_I32, zero, size);
      tir_expr value = lower_with_value(ir, p->loads[i], p->store->p, tir_add(ir, first, number(ir, g)));
      value = lower_with_value(ir, value, p->store->v, tir_var_expr(ir, v));
      tir_expr at = tir_add(ir, number(ir, g * PAIR), tir_var_expr(ir, v));
      tir_stmt loop = tir_new_loop(ir, v, zero, size, TIR_VECTORIZED);
      tir_append(ir, loop, TIR_BODY, tir_new_store(ir, p->own[i], &at, value));
      tir_append(ir, to, TIR_BODY, loop);
    }
}

/* ---- In its place ---- */

static tir_expr value_at(struct tir *ir, const struct lane_store *s, tir_expr e, tir_expr group, tir_expr v) {
  return lower_with_value(ir, lower_with_value(ir, e, s->p, group), s->v, v);
}

/* The call that stores groups from `first` on. */
static tir_stmt new_call(struct lane_store *s, tir_expr first) {
  struct tir *ir = s->ir;
  struct tir_stmt_node n = *tir_as(ir, s->store, TIR_STORE);
  tir_expr args[2 + MOST_VALUES], extent = number(ir, (s->at_once - 1) * GROUP + PAIR);
  tir_expr at = value_at(ir, s, s->place, first, number(ir, 0));
  uint32_t count = 0;
  args[count++] = tir_new_pointer(ir, n.store.buffer, at, extent, TIR_POINTER_WRITES);
  if (s->shared) args[count++] = number(ir, s->stride);
  for (int64_t g = 0; g < s->at_once; g++)
    for (int64_t v = 0; v < PAIR; v++)
      args[count++] = value_at(ir, s, n.store.value, tir_add(ir, first, number(ir, g)), number(ir, v));
  return lower_new_call(ir, s->shared ? TIR_STORE_MATRICES : TIR_STORE_PAIRS, args, count);
}

/* The pair of a group is computed to the lane's own memory, and stored by one access. */
static void put_pair(struct lane_store *s, struct pair_loads *p, tir_expr group, tir_stmt to) {
  struct tir *ir = s->ir;
  struct tir_stmt_node n = *tir_as(ir, s->store, TIR_STORE);
  tir_buffer own = new_own(p, tir_buffer_at(ir, n.store.buffer)->type);
  tir_expr zero = number(ir, 0), size = number(ir, PAIR);
  for (int64_t v = 0; v < PAIR; v++) {
    tir_expr at = number(ir, v);
    tir_append(ir, to, TIR_BODY, tir_new_store(ir, own, &at, value_at(ir, s, n.store.value, group, at)));
  }
  tir_var v = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "v"), TIR_T_I32, zero, size);
  tir_expr lane = tir_var_expr(ir, v);
  tir_stmt loop = tir_new_loop(ir, v, zero, size, TIR_VECTORIZED), store = tir_clone_stmt(ir, s->store);
  tir_expr loaded = tir_load(ir, own, &lane, 1, TIR_NONE);
  tir_as(ir, store, TIR_STORE)->store.value = loaded;
  tir_append(ir, loop, TIR_BODY, store);
  tir_subst_var(ir, s->p, tir_cast(ir, ir->vars.at[s->p].type, group));
  tir_subst_var(ir, s->v, tir_cast(ir, ir->vars.at[s->v].type, lane));
  tir_subst_stmt(ir, store);
  tir_subst_clear(ir);
  tir_append(ir, to, TIR_BODY, loop);
}

/* What stores in place of the loops; several times where there are more columns than are stored at once. */
static tir_stmt put_stores(struct lane_store *s) {
  struct tir *ir = s->ir;
  struct pair_loads loads;
  take_loads(s, &loads);
  tir_expr zero = number(ir, 0), size = number(ir, tir_loop_extent(ir, s->groups) / s->at_once);
  tir_var part = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "part"), TIR_T_I32, zero, size);
  tir_expr first = tir_mul(ir, tir_var_expr(ir, part), number(ir, s->at_once));
  tir_stmt loop = tir_new_loop(ir, part, zero, size, TIR_UNROLLED);
  put_loads(&loads, first, loop);
  if (s->plain)
    put_pair(s, &loads, first, loop);
  else
    tir_append(ir, loop, TIR_BODY, new_call(s, first));
  tir_replace(ir, s->groups, loop);
  tir_kill(ir, s->groups);
  return loop;
}

bool lower_lane_stores(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt kernel = tir_stmt_at(ir, low->body)->first[TIR_BODY]; kernel; kernel = tir_stmt_at(ir, kernel)->next) {
    tir_stmt innermost;
    if (!tir_is_bound(ir, kernel)) continue;
    struct lower_threads threads = lower_threads_of(ir, kernel, &innermost);
    for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel)) {
      struct lane_store store;
      if (find_store(low, kernel, &threads, s, &store)) s = put_stores(&store);
    }
  }
  return true;
}

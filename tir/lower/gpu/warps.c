/* Warps: threads that reduce together do so by shuffles within warps, else through shared memory.
 *
 * Groups of threads with consecutive numbers that fill warps, or of which a power of two fills one, halve the distance
 * to the partner each time, all lanes of a warp taking part; of groups of several warps, the first lane of each leaves
 * what its warp has in shared memory, and every warp joins what all have left there, so that each thread has the result
 * and nothing is sent back. Other groups (along threadIdx.y alone, say) put each thread's value in shared memory and
 * halve their number there. Barriers come later (barriers.c): what is shared is shared by stores and loads.
 *
 * Requires: kernels. Gives: no LOWER_REDUCE; tvm_warp_shuffle_xor(mask, value, lanes, 32, 32) for all threads of whole
 * warps. Keeps: everything else. A reduction that not all threads reach is refused. Values of fewer than 32 bits are
 * shuffled as ones of 32. */
#include "footprint.h"

#include <string.h>

enum { AXES = 3 };

struct join {
  struct lowering *low;
  tir_stmt attr, innermost; /* of the kernel's loops */
  struct lower_threads threads;
  bool reduced[AXES];
  uint32_t count;
  tir_expr left[TIR_MOST_REDUCED], right[TIR_MOST_REDUCED], result[TIR_MOST_REDUCED], identity[TIR_MOST_REDUCED];
  tir_expr value[TIR_MOST_REDUCED]; /* what a thread brings, and where its result goes: elements of its own memory */
  tir_expr condition;
  tir_buffer held[TIR_MOST_REDUCED]; /* what a thread has so far */
};

static tir_expr number(struct tir *ir, int64_t n) { return tir_int(ir, TIR_T_I32, n); }

/* ---- Reading the call ---- */

static void read_call(struct join *j) {
  struct tir *ir = j->low->ir;
  tir_stmt call = tir_stmt_at(ir, j->attr)->first[TIR_BODY];
  const struct tir_expr_node *n = tir_at(ir, tir_as(ir, call, TIR_EVALUATE)->evaluate.value);
  const tir_expr *args = tir_operands(ir, n->operands);
  const tir_expr *parts = tir_operands(ir, tir_at(ir, tir_stmt_at(ir, j->attr)->attr.node)->operands);
  uint32_t count = j->count = (uint32_t)tir_at(ir, args[0])->imm;
  assert(count <= TIR_MOST_REDUCED);
  for (uint32_t k = 0; k < count; k++) {
    j->value[k] = args[1 + k];
    j->left[k] = parts[k], j->right[k] = parts[count + k];
    j->result[k] = parts[2 * count + k], j->identity[k] = parts[3 * count + k];
  }
  j->condition = args[1 + count];
  for (uint32_t i = 2 + 2 * count; i < n->count; i++)
    for (int a = 0; a < AXES; a++)
      if (j->threads.var[a] && tir_uses_var(ir, args[i], j->threads.var[a])) j->reduced[a] = true;
}

static bool check_reached(const struct join *j) {
  const struct tir *ir = j->low->ir;
  return !lower_find_divergence(ir, &j->threads, tir_stmt_at(ir, j->attr)->parent, j->innermost) ||
         tir_refuse(ir, j->low->err, MS_LOWER_REDUCTION, TIR_NONE,
                    "threads reduce together where not all of them come");
}

/* ---- Making statements, before the attribute ---- */

static void put(struct join *j, tir_stmt s) { tir_insert_before(j->low->ir, j->attr, s); }

static tir_buffer allocate(struct join *j, uint32_t k, const char *suffix, int64_t elements,
                           enum tir_memory_scope scope) {
  assert(k < j->count && elements > 0);
  struct tir *ir = j->low->ir;
  const struct tir_expr_node *n = tir_at(ir, j->value[k]);
  tir_symbol name = tir_symbol_format(ir, "%s_%s", tir_buffer_name(ir, n->ref), suffix);
  tir_expr extent = number(ir, elements);
  tir_buffer b = tir_new_buffer(ir, name, tir_buffer_at(ir, tir_at(ir, j->value[k])->ref)->type, &extent, 1,
                                tir_scope_named(ir, scope));
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  tir_stmt_at(ir, alloc)->alloc.buffer = b;
  tir_buffer_at(ir, b)->where = alloc;
  put(j, alloc);
  return b;
}

static tir_expr load_at(struct tir *ir, tir_buffer b, tir_expr index) { return tir_load(ir, b, &index, 1, TIR_NONE); }
static tir_expr held(struct join *j, uint32_t k) { return load_at(j->low->ir, j->held[k], number(j->low->ir, 0)); }

static tir_expr choose(struct tir *ir, tir_expr condition, tir_expr yes, tir_expr no) {
  if (tir_is_int(ir, condition)) return tir_at(ir, condition)->imm ? yes : no;
  tir_expr args[] = {condition, yes, no};
  return tir_call(ir, tir_type_of(ir, yes), tir_symbol_of(ir, "if_then_else"), args, 3);
}

static tir_expr bind(struct join *j, const char *name, tir_expr value) {
  struct tir *ir = j->low->ir;
  tir_var v = tir_new_let(ir, tir_name_of(ir, name), value);
  tir_stmt s = tir_new_stmt(ir, TIR_BIND);
  tir_as(ir, s, TIR_BIND)->bind.var = v;
  tir_as(ir, s, TIR_BIND)->bind.value = value;
  put(j, s);
  return tir_var_expr(ir, v);
}

/* Stores elements[k] = values[k] under a condition (TIR_NONE: always). */
static void store(struct join *j, const tir_buffer *to, tir_expr index, const tir_expr *values, tir_expr condition) {
  struct tir *ir = j->low->ir;
  tir_stmt test = condition ? tir_new_stmt(ir, TIR_IF) : TIR_NONE;
  if (test) {
    tir_as(ir, test, TIR_IF)->test.condition = condition;
    put(j, test);
  }
  for (uint32_t k = 0; k < j->count; k++) {
    tir_stmt s = tir_new_store(ir, to[k], &index, values[k]);
    if (test)
      tir_append(ir, test, TIR_BODY, s);
    else
      put(j, s);
  }
}

/* Of what a thread has and what another had, as they join. */
static void combine(struct join *j, const tir_expr *a, const tir_expr *b, tir_expr *out) {
  struct tir *ir = j->low->ir;
  for (uint32_t k = 0; k < j->count; k++) {
    tir_subst_var(ir, tir_at(ir, j->left[k])->ref, a[k]);
    assert(tir_type_of(ir, a[k]) == tir_type_of(ir, b[k]));
    tir_subst_var(ir, tir_at(ir, j->right[k])->ref, b[k]);
  }
  for (uint32_t k = 0; k < j->count; k++) out[k] = tir_subst(ir, j->result[k]);
  tir_subst_clear(ir);
}

/* What a thread has becomes that joined with `other`; bound first, since each may decide the other. */
static void join_with(struct join *j, const tir_expr *other) {
  tir_expr own[TIR_MOST_REDUCED], made[TIR_MOST_REDUCED];
  for (uint32_t k = 0; k < j->count; k++) own[k] = held(j, k);
  combine(j, own, other, made);
  for (uint32_t k = 0; k < j->count && j->count > 1; k++) made[k] = bind(j, "joined", made[k]);
  store(j, j->held, number(j->low->ir, 0), made, TIR_NONE);
}

/* The thread's number in the block. */
static tir_expr thread_number(struct join *j) {
  struct tir *ir = j->low->ir;
  tir_expr sum = number(ir, 0);
  int64_t stride = 1;
  for (int a = 0; a < AXES; a++) {
    if (!j->threads.var[a]) continue;
    tir_expr at = tir_cast(ir, TIR_T_I32, tir_var_expr(ir, j->threads.var[a]));
    sum = tir_add(ir, sum, tir_mul(ir, at, number(ir, stride)));
    stride *= j->threads.extent[a];
  }
  return sum;
}

/* ---- By shuffles ---- */

/* Types that lanes exchange; others go as one of these that holds all their values. */
static tir_type shuffled_type(tir_type t) {
  if (tir_type_bits(t) >= 32) return t;
  return tir_type_is_float(t) ? TIR_T_F32 : TIR_T_I32;
}

static tir_expr from_lane(struct join *j, uint32_t k, int64_t distance) {
  struct tir *ir = j->low->ir;
  tir_expr mine = held(j, k);
  tir_type type = tir_type_of(ir, mine), wide = shuffled_type(type);
  if (wide != type) mine = tir_unary(ir, TIR_CAST, wide, mine);
  tir_expr args[] = {tir_int(ir, TIR_TYPE(TIR_UINT, 32, 1), UINT32_MAX), mine, number(ir, distance),
                     number(ir, TIR_WARP), number(ir, TIR_WARP)};
  tir_expr other = bind(j, "other", tir_call(ir, wide, tir_device_symbol(ir, TIR_SHUFFLE_XOR), args, 5));
  return wide != type ? tir_unary(ir, TIR_CAST, type, other) : other;
}

/* Joins what `lanes` neighbours have, a power of two, so that each of them has it all. */
static void join_lanes(struct join *j, int64_t lanes) {
  assert(lanes > 0 && lanes <= TIR_WARP && !(lanes & (lanes - 1)));
  for (int64_t distance = lanes / 2; distance; distance /= 2) {
    tir_expr other[TIR_MOST_REDUCED];
    for (uint32_t k = 0; k < j->count; k++) other[k] = from_lane(j, k, distance);
    join_with(j, other);
  }
}

static int64_t power_of_two(int64_t least) {
  int64_t p = 1;
  while (p < least) p *= 2;
  return p;
}

/* Joins what the warps of a group of `group` threads have. */
static void join_warps(struct join *j, int64_t group, int64_t threads) {
  struct tir *ir = j->low->ir;
  tir_expr thread = thread_number(j), warp = number(ir, TIR_WARP), left[TIR_MOST_REDUCED], mine[TIR_MOST_REDUCED];
  tir_expr lane = tir_floormod(ir, thread, warp);
  tir_buffer staged[TIR_MOST_REDUCED];
  int64_t warps = group / TIR_WARP;
  assert(group % TIR_WARP == 0 && threads % group == 0 && warps <= TIR_WARP);
  for (uint32_t k = 0; k < j->count; k++) {
    staged[k] = allocate(j, k, "warps", threads / TIR_WARP, TIR_SCOPE_SHARED);
    mine[k] = held(j, k);
  }
  store(j, staged, tir_floordiv(ir, thread, warp), mine, tir_make(ir, TIR_EQ, lane, number(ir, 0)));
  tir_expr row = tir_mul(ir, tir_floordiv(ir, thread, number(ir, group)), number(ir, warps));
  tir_expr exists = tir_make(ir, TIR_LT, lane, number(ir, warps));
  for (uint32_t k = 0; k < j->count; k++)
    left[k] = choose(ir, exists, load_at(ir, staged[k], tir_add(ir, row, lane)), j->identity[k]);
  store(j, j->held, number(ir, 0), left, TIR_NONE);
  join_lanes(j, power_of_two(warps));
}

/* ---- Through shared memory ---- */

/* The thread's number along the axes that are reduced (or the others), and of how many. */
static tir_expr number_along(struct join *j, bool reduced, int64_t *of) {
  struct tir *ir = j->low->ir;
  tir_expr sum = number(ir, 0);
  *of = 1;
  for (int a = 0; a < AXES; a++) {
    if (!j->threads.var[a] || j->reduced[a] != reduced) continue;
    tir_expr at = tir_cast(ir, TIR_T_I32, tir_var_expr(ir, j->threads.var[a]));
    sum = tir_add(ir, sum, tir_mul(ir, at, number(ir, *of)));
    *of *= j->threads.extent[a];
  }
  return sum;
}

static void join_shared(struct join *j) {
  struct tir *ir = j->low->ir;
  int64_t members, groups;
  tir_expr member = number_along(j, true, &members), group = number_along(j, false, &groups);
  assert(members >= 1 && members * groups <= TIR_BLOCK_THREADS);
  tir_expr stride = number(ir, groups), first = tir_add(ir, tir_mul(ir, member, stride), group);
  tir_expr mine[TIR_MOST_REDUCED], other[TIR_MOST_REDUCED], made[TIR_MOST_REDUCED];
  tir_buffer staged[TIR_MOST_REDUCED];
  for (uint32_t k = 0; k < j->count; k++) {
    staged[k] = allocate(j, k, "threads", members * groups, TIR_SCOPE_SHARED);
    mine[k] = held(j, k);
  }
  store(j, staged, first, mine, TIR_NONE);
  for (int64_t half = power_of_two(members) / 2; half; half /= 2) {
    tir_expr partner = tir_add(ir, first, number(ir, half * groups));
    int64_t last = half < members - half ? half : members - half;
    for (uint32_t k = 0; k < j->count; k++) other[k] = load_at(ir, staged[k], partner);
    combine(j, mine, other, made);
    /* A thread's own sum stays with it; what others have read of it is theirs. */
    tir_expr active = tir_make(ir, TIR_LT, member, number(ir, last));
    for (uint32_t k = 0; k < j->count; k++) made[k] = choose(ir, active, made[k], mine[k]);
    for (uint32_t k = 0; k < j->count && j->count > 1; k++) made[k] = bind(j, "joined", made[k]);
    store(j, j->held, number(ir, 0), made, TIR_NONE);
    if (half > 1) store(j, staged, first, mine, active);
    members = half;
  }
  store(j, staged, group, mine, tir_make(ir, TIR_EQ, member, number(ir, 0)));
  for (uint32_t k = 0; k < j->count; k++) made[k] = load_at(ir, staged[k], group);
  store(j, j->held, number(ir, 0), made, TIR_NONE);
}

/* ---- One reduction ---- */

/* Threads of a group when those have consecutive numbers and fill warps, or several groups fill one; else 0. */
static int64_t group_in_warps(const struct join *j) {
  int64_t group = 1, threads = j->threads.extent[0] * j->threads.extent[1] * j->threads.extent[2];
  bool before = true; /* all axes so far are reduced */
  for (int a = 0; a < AXES; a++) {
    if (j->threads.extent[a] == 1) continue;
    if (j->reduced[a] && !before) return 0;
    if (j->reduced[a]) group *= j->threads.extent[a];
    before = j->reduced[a];
  }
  bool fills = group < TIR_WARP ? TIR_WARP % group == 0 : group % TIR_WARP == 0;
  return fills && threads % TIR_WARP == 0 && group <= TIR_WARP * TIR_WARP ? group : 0;
}

static void join_threads(struct join *j) {
  struct tir *ir = j->low->ir;
  tir_expr begin[TIR_MOST_REDUCED], result[TIR_MOST_REDUCED];
  for (uint32_t k = 0; k < j->count; k++) {
    j->held[k] = allocate(j, k, "held", 1, TIR_SCOPE_LOCAL);
    begin[k] = choose(ir, j->condition, j->value[k], j->identity[k]);
  }
  store(j, j->held, number(ir, 0), begin, TIR_NONE);
  int64_t group = group_in_warps(j);
  if (group) join_lanes(j, group < TIR_WARP ? group : TIR_WARP);
  if (group > TIR_WARP) join_warps(j, group, j->threads.extent[0] * j->threads.extent[1] * j->threads.extent[2]);
  if (!group) join_shared(j);
  for (uint32_t k = 0; k < j->count; k++) {
    struct tir_expr_node n = *tir_at(ir, j->value[k]);
    tir_expr indices[TIR_MOST_RANK];
    memcpy(indices, tir_operands(ir, n.operands), n.count * sizeof *indices);
    result[k] = held(j, k);
    put(j, tir_new_store(ir, n.ref, indices, result[k]));
  }
  tir_kill(ir, j->attr);
}

bool lower_warps(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt kernel = tir_stmt_at(ir, low->body)->first[TIR_BODY]; kernel; kernel = tir_stmt_at(ir, kernel)->next)
    for (tir_stmt s = kernel, next; s; s = next) {
      next = tir_next(ir, s, kernel);
      if (!lower_is_attr(ir, s, LOWER_REDUCE)) continue;
      struct join j = {.low = low, .attr = s};
      next = tir_after(ir, s, kernel);
      j.threads = lower_threads_of(ir, kernel, &j.innermost);
      read_call(&j);
      if (!check_reached(&j)) return false;
      join_threads(&j);
    }
  return true;
}

/* Queries for rules: how blocks stand to one another and to the loops around them. */
#include "query.h"
#include "vm/run.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool vm_ask_scope(struct vm_ask *q) {
  tir_block scope = tir_scope_of(q->ir, q->args[0].statement);
  const char *name = scope ? tir_block_name(q->ir, scope) : "";
  q->answer = vm_string(q->pool, name, strlen(name));
  return true;
}

bool vm_ask_is_below_root(struct vm_ask *q) {
  tir_block scope = tir_scope_of(q->ir, q->args[0].statement);
  q->answer = vm_bool(scope && !tir_parent_block(q->ir, scope));
  return true;
}

bool vm_ask_shared_loops(struct vm_ask *q) {
  tir_stmt both = tir_lowest_common_ancestor(q->ir, q->args[0].statement, q->args[1].statement);
  bool in_loop = both && tir_is(q->ir, both, TIR_LOOP);
  q->answer = vm_int(in_loop ? tir_loops_of(q->ir, both, NULL, 0) + 1 : 0);
  return true;
}

static int64_t common_divisor(int64_t a, int64_t b) {
  assert(a > 0 && b >= 0);
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

bool vm_ask_dot_width(struct vm_ask *q) {
  tir_stmt body = tir_stmt_at(q->ir, q->args[0].statement)->first[TIR_BODY];
  bool alone = body && !tir_stmt_at(q->ir, body)->next;
  q->answer = vm_int(alone ? tir_dot_width(q->ir, body) : 0);
  return true;
}

bool vm_ask_part_bits(struct vm_ask *q) {
  tir_stmt body = tir_stmt_at(q->ir, q->args[0].statement)->first[TIR_BODY];
  bool alone = body && !tir_stmt_at(q->ir, body)->next;
  q->answer = vm_int(alone ? tir_part_bits(q->ir, body) : 0);
  return true;
}

bool vm_ask_copy_tile(struct vm_ask *q) {
  struct tir_copy_tile tile = tir_copy_tile_of(q->ir, q->args[0].statement);
  struct vm_value items[] = {vm_int(tile.rows), vm_int(tile.columns)};
  q->answer = vm_list(q->pool, VM_LIST, items, 2);
  return true;
}

struct period {
  struct tir *ir;
  tir_var v;
  int64_t period;
};

static bool find_remainder(void *data, tir_expr e) {
  struct period *p = data;
  const struct tir_expr_node n = *tir_at(p->ir, e);
  if (n.kind != TIR_FLOORMOD || !tir_is_int(p->ir, n.b)) return true;
  int64_t of = tir_at(p->ir, n.b)->imm;
  struct tir_linear l = tir_linear_of(p->ir, n.a);
  for (uint32_t i = 0; i < l.count && of > 0; i++) {
    struct tir_term t = tir_terms(p->ir, l)[i];
    if (t.atom != tir_var_expr(p->ir, p->v)) continue;
    int64_t own = of / common_divisor(of, llabs(t.coefficient % of));
    assert(of % own == 0 && p->period > 0);
    if (__builtin_mul_overflow(p->period, own / common_divisor(own, p->period), &p->period)) p->period = INT64_MAX;
  }
  return true;
}

/* Looks at each place where the block's regions read, for the iteration variable that is a loop alone, if any. */
static void for_each_place(const struct vm_ask *q, struct period *p, void (*look)(struct period *p, tir_expr place)) {
  const struct tir_block_record *record = tir_block_at(q->ir, q->args[0].statement);
  struct tir_span reads = record->reads, iters = record->iters;
  tir_expr loop = tir_var_expr(q->ir, tir_as(q->ir, q->args[1].statement, TIR_LOOP)->loop.var);
  for (uint32_t i = 0; i < iters.count; i++) {
    if (q->ir->iters.at[iters.first + i].binding != loop) continue;
    p->v = q->ir->iters.at[iters.first + i].var;
    for (uint32_t r = 0; r < reads.count; r++) {
      struct tir_region region = q->ir->regions.at[reads.first + r];
      for (uint32_t d = 0; d < tir_buffer_at(q->ir, region.buffer)->rank; d++)
        look(p, tir_operands(q->ir, region.ranges)[2 * d]);
    }
  }
}

static void find_remainders(struct period *p, tir_expr place) { tir_walk_expr(p->ir, place, find_remainder, p); }

bool vm_ask_period(struct vm_ask *q) {
  struct period p = {q->ir, TIR_NONE, 1};
  for_each_place(q, &p, find_remainders);
  q->answer = vm_int(p.period);
  return true;
}

/* The period is the length of groups, 0 where they differ. */
static void find_groups(struct period *p, tir_expr place) {
  struct tir_linear l = tir_linear_of(p->ir, place);
  for (uint32_t i = 0; i < l.count && l.count > 1; i++) {
    const struct tir_expr_node n = *tir_at(p->ir, tir_terms(p->ir, l)[i].atom);
    if (n.kind != TIR_FLOORDIV || n.a != tir_var_expr(p->ir, p->v) || !tir_is_int(p->ir, n.b)) continue;
    int64_t length = tir_at(p->ir, n.b)->imm;
    p->period = p->period == 1 || p->period == length ? length : 0;
  }
}

bool vm_ask_group(struct vm_ask *q) {
  struct period p = {q->ir, TIR_NONE, 1};
  for_each_place(q, &p, find_groups);
  q->answer = vm_int(p.period > 0 ? p.period : 1);
  return true;
}

/* The dimension that a written region has at this iteration variable, or -1: the only one that is at it plainly. */
static int written_at(const struct tir *ir, const struct tir_region *write, tir_expr var) {
  uint32_t rank = tir_buffer_at(ir, write->buffer)->rank;
  for (uint32_t d = 0; d < rank; d++)
    if (tir_operands(ir, write->ranges)[2 * d] == var) return (int)d;
  return -1;
}

static bool writes_plain_variables(const struct tir *ir, const struct tir_region *write) {
  uint32_t rank = tir_buffer_at(ir, write->buffer)->rank;
  for (uint32_t d = 0; d < rank; d++)
    if (tir_at(ir, tir_operands(ir, write->ranges)[2 * d])->kind != TIR_VAR) return false;
  return true;
}

/* Each dimension read is at a constant, or at a variable of the write plus one; those come in rising order. */
static bool reads_in_order(struct tir *ir, const struct tir_region *read, const struct tir_region *write) {
  int last = -1;
  for (uint32_t d = 0; d < tir_buffer_at(ir, read->buffer)->rank; d++) {
    tir_expr min = tir_operands(ir, read->ranges)[2 * d];
    if (tir_is_int(ir, min)) continue;
    struct tir_linear l = tir_linear_of(ir, min);
    if (l.count != 1 || tir_terms(ir, l)[0].coefficient != 1) return false;
    int at = written_at(ir, write, tir_terms(ir, l)[0].atom);
    if (at <= last) return false;
    last = at;
  }
  return true;
}

bool vm_ask_reads_in_order(struct vm_ask *q) {
  struct tir_span reads = tir_block_at(q->ir, q->args[0].statement)->reads;
  struct tir_span writes = tir_block_at(q->ir, q->args[0].statement)->writes;
  bool ordered = writes.count == 1;
  struct tir_region write = ordered ? q->ir->regions.at[writes.first] : (struct tir_region){0};
  ordered = ordered && writes_plain_variables(q->ir, &write);
  for (uint32_t i = 0; ordered && i < reads.count; i++) {
    struct tir_region read = q->ir->regions.at[reads.first + i];
    ordered = reads_in_order(q->ir, &read, &write);
  }
  q->answer = vm_bool(ordered);
  return true;
}

/* ---- All blocks of a function ------------------------------------------------------------------------------------ */

typedef bool (*test_block)(const struct vm_ask *q, tir_block block);

/* The names of the blocks that pass a test, in order of text. All are found first: what a test looks for may be a
 * string of the pool, which names that are added move. */
static bool ask_blocks_that(struct vm_ask *q, test_block test) {
  uint32_t count = 0;
  tir_block *blocks = malloc((q->ir->blocks.count + 1) * sizeof *blocks);
  struct vm_value *items = malloc((q->ir->blocks.count + 1) * sizeof *items);
  if (!blocks || !items) abort();
  for (tir_func f = 1; f < q->ir->funcs.count; f++) {
    tir_stmt top = q->ir->funcs.at[f].body;
    for (tir_stmt s = tir_next(q->ir, top, top); s; s = tir_next(q->ir, s, top))
      if (tir_is(q->ir, s, TIR_BLOCK) && test(q, s)) blocks[count++] = s;
  }
  assert(count <= q->ir->blocks.count);
  for (uint32_t i = 0; i < count; i++) {
    const char *name = tir_block_name(q->ir, blocks[i]);
    items[i] = vm_string(q->pool, name, strlen(name));
  }
  q->answer = vm_list(q->pool, VM_LIST, items, count);
  free(items);
  free(blocks);
  return true;
}

static bool reduces(const struct vm_ask *q, tir_block block) {
  return tir_stmt_at(q->ir, block)->first[TIR_INIT] != TIR_NONE;
}

static bool has_key(const struct vm_ask *q, tir_stmt s) {
  return tir_annotation(q->ir, tir_stmt_at(q->ir, s)->annotations, q->args[0].text) != TIR_NONE;
}

static bool is_under_key(const struct vm_ask *q, tir_block block) {
  for (tir_stmt s = tir_stmt_at(q->ir, block)->parent; s && tir_is(q->ir, s, TIR_LOOP);
       s = tir_stmt_at(q->ir, s)->parent)
    if (has_key(q, s)) return true;
  return false;
}

/* Loops around it are bound to an axis of blocks, and to one of threads. */
static bool is_bound(const struct tir *ir, tir_block block) {
  bool blocks = false, threads = false;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s; s = tir_stmt_at(ir, s)->parent)
    blocks |= tir_is_block_axis(tir_loop_axis(ir, s)), threads |= tir_is_thread_axis(tir_loop_axis(ir, s));
  return blocks && threads;
}

/* A block of the root's scope. */
static bool is_unbound(const struct vm_ask *q, tir_block block) {
  tir_block scope = tir_scope_of(q->ir, block);
  return scope && !tir_scope_of(q->ir, scope) && !is_bound(q->ir, block);
}

bool vm_ask_reduction_blocks(struct vm_ask *q) { return ask_blocks_that(q, reduces); }
bool vm_ask_blocks_with(struct vm_ask *q) { return ask_blocks_that(q, has_key); }
bool vm_ask_blocks_under(struct vm_ask *q) { return ask_blocks_that(q, is_under_key); }
bool vm_ask_unbound_blocks(struct vm_ask *q) { return ask_blocks_that(q, is_unbound); }

bool vm_ask_has_dynamic_loop(struct vm_ask *q) {
  bool dynamic = false;
  for (tir_func f = 1; f < q->ir->funcs.count; f++) {
    tir_stmt top = q->ir->funcs.at[f].body;
    for (tir_stmt s = tir_next(q->ir, top, top); s && !dynamic; s = tir_next(q->ir, s, top))
      dynamic = tir_is(q->ir, s, TIR_LOOP) && tir_loop_extent(q->ir, s) < 0;
  }
  q->answer = vm_bool(dynamic);
  return true;
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static struct vm_value number(int64_t n) { return n < 0 ? vm_none() : vm_int(n); }

static struct vm_value kernel_value(struct vm_ask *q, const struct tir_kernel *k) {
  const struct {
    const char *name;
    struct vm_value value;
  } fields[] = {{"uniform", vm_bool(k->uniform)},
                {"launchable", vm_bool(k->launchable)},
                {"threads", number(k->threads)},
                {"vthreads", number(k->vthreads)},
                {"least_threads", number(k->least_threads)},
                {"most_threads", k->most_threads ? number(k->most_threads) : vm_none()},
                {"shared_bytes", number(k->shared_bytes)},
                {"local_bytes", number(k->local_bytes)},
                {"vector_bytes", number(k->vector_bytes)}};
  enum { FIELDS = sizeof fields / sizeof *fields };
  struct vm_value items[2 * FIELDS];
  for (int i = 0; i < FIELDS; i++) {
    items[2 * i] = vm_string(q->pool, fields[i].name, strlen(fields[i].name));
    items[2 * i + 1] = fields[i].value;
  }
  return vm_list(q->pool, VM_MAP, items, 2 * FIELDS);
}

/* The function's kernels, the caller's, and their number. */
static struct tir_kernel *kernels_of(struct vm_ask *q, uint32_t *count) {
  tir_func main = tir_find_func(q->ir, "main");
  *count = tir_kernels(q->ir, main, NULL, 0);
  struct tir_kernel *kernels = malloc((*count + 1) * sizeof *kernels);
  if (!kernels) abort();
  uint32_t again = tir_kernels(q->ir, main, kernels, *count);
  assert(again == *count);
  (void)again;
  return kernels;
}

bool vm_ask_kernels(struct vm_ask *q) {
  uint32_t count;
  struct tir_kernel *kernels = kernels_of(q, &count);
  struct vm_value *items = malloc((count + 1) * sizeof *items);
  if (!items) abort();
  for (uint32_t i = 0; i < count; i++) items[i] = kernel_value(q, &kernels[i]);
  q->answer = vm_list(q->pool, VM_LIST, items, count);
  free(items);
  free(kernels);
  return true;
}

static bool is_within(int64_t n, const struct vm_argument *most) { return n >= 0 && n <= most->integer; }

static bool kernel_fits(const struct tir_kernel *k, const struct vm_argument *most) {
  bool allowed = k->threads >= k->least_threads && (k->most_threads <= 0 || k->threads <= k->most_threads);
  return k->uniform && k->launchable && allowed && is_within(k->threads, &most[0]) &&
         is_within(k->vthreads, &most[1]) && is_within(k->shared_bytes, &most[2]) &&
         is_within(k->local_bytes, &most[3]) && is_within(k->vector_bytes, &most[4]);
}

bool vm_ask_kernels_fit(struct vm_ask *q) {
  uint32_t count;
  struct tir_kernel *kernels = kernels_of(q, &count);
  bool fit = true;
  for (uint32_t i = 0; i < count && fit; i++) fit = kernel_fits(&kernels[i], q->args);
  free(kernels);
  q->answer = vm_bool(fit);
  return true;
}

bool vm_ask_scope_bytes(struct vm_ask *q) {
  q->answer = number(tir_scope_bytes(q->ir, tir_find_func(q->ir, "main"), q->args[0].text));
  return true;
}

/* ---- Tensor intrinsics ------------------------------------------------------------------------------------------- */

/* The loops around the block that a description's root block holds, and what they drive. */
static struct vm_value described_loops(struct vm_ask *q, const struct tir *description) {
  enum { MOST = 16 };
  struct vm_value items[MOST];
  uint32_t count = 0;
  tir_block root = tir_root_block(description, 1);
  assert(root && "an intrinsic's functions are checked when it is taken in");
  for (tir_stmt s = tir_stmt_at(description, root)->first[TIR_BODY];
       s && count < MOST && tir_is(description, s, TIR_LOOP); s = tir_stmt_at(description, s)->first[TIR_BODY]) {
    const char *kind = vm_loop_iter_kind(description, s);
    struct vm_value fields[] = {vm_string(q->pool, "kind", 4), vm_string(q->pool, kind, strlen(kind)),
                                vm_string(q->pool, "extent", 6), number(tir_loop_extent(description, s))};
    items[count++] = vm_list(q->pool, VM_MAP, fields, 4);
  }
  return vm_list(q->pool, VM_LIST, items, count);
}

bool vm_ask_intrinsic_loops(struct vm_ask *q) {
  const char *name = q->args[0].text;
  const struct tir *description, *implementation;
  bool found = vm_find_known_intrinsic(q->intrinsics, name, &description, &implementation);
  if (found) q->answer = described_loops(q, description);
  return found || ms_fail(q->err, MS_INTRINSIC_NOT_FOUND, "there is no tensor intrinsic `%.100s`", name);
}

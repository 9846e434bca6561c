/* Kernels: threads, memory and vectors, as they will be once buffers hold only what lives at a time. */
#include "tir/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

enum { MOST_LOOPS = 128, MOST_RANK = 32 };

static bool is_below(const struct tir *ir, tir_stmt s, tir_stmt top) { return s == top || tir_is_below(ir, s, top); }

/* The lowest statement around all blocks below `top` that declare the buffer; TIR_NONE: there are none. */
static tir_stmt common_to_users(const struct tir *ir, tir_buffer buffer, tir_stmt top) {
  const uint32_t heads[] = {tir_buffer_at(ir, buffer)->writers, tir_buffer_at(ir, buffer)->readers};
  tir_stmt common = TIR_NONE;
  for (int i = 0; i < 2; i++)
    for (uint32_t u = heads[i]; u; u = ir->uses.at[u].next) {
      tir_block block = ir->uses.at[u].block;
      if (is_below(ir, block, top)) common = common ? tir_lowest_common_ancestor(ir, common, block) : block;
    }
  return common;
}

/* Loops of one iteration around `s`: their variables are one value, whatever stands for it elsewhere. */
static uint32_t unit_loops(const struct tir *ir, tir_stmt s, tir_var *out, uint32_t most) {
  uint32_t count = 0;
  for (; s && count < most; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) == 1) out[count++] = tir_as(ir, s, TIR_LOOP)->loop.var;
  return count;
}

/* Of a block in another: what the iterations of that one are. */
static void over_loops_of(struct tir *ir, tir_block around, tir_expr *ranges, uint32_t rank) {
  tir_subst_iters(ir, around);
  for (uint32_t d = 0; d < rank; d++) ranges[2 * d] = tir_subst(ir, ranges[2 * d]);
  tir_subst_clear(ir);
}

/* Of what blocks of a cluster touch, the first one's: each has memory of its own. */
static void of_first_block(struct tir *ir, tir_stmt s, tir_stmt high, tir_expr *ranges, uint32_t rank,
                           struct tir_guards *guards) {
  while (s && s != high && tir_loop_axis(ir, s) != TIR_CLUSTER_X) s = tir_stmt_at(ir, s)->parent;
  if (!s || s == high) return;
  tir_subst_var(ir, tir_as(ir, s, TIR_LOOP)->loop.var, tir_as(ir, s, TIR_LOOP)->loop.min);
  for (uint32_t i = 0; i < 2 * rank; i++) ranges[i] = tir_subst(ir, ranges[i]);
  for (uint32_t i = 0; i < guards->count; i++) guards->left[i] = tir_subst(ir, guards->left[i]);
  tir_subst_clear(ir);
}

/* What is touched of a dimension, where conditions are left aside; and no more than they let it, where that is kept
 * apart, since a block had some. */
struct extent {
  struct tir_touched unguarded, guarded;
  bool apart; /* in all dimensions or in none */
};

/* Adds what a block touches while the loops below `high`, and the threads that share the memory, run. */
static void add_region(struct tir *ir, struct extent *box, tir_block block, struct tir_region region, tir_stmt high) {
  tir_var vars[MOST_LOOPS + TIR_MOST_GUARDS];
  tir_expr ranges[2 * MOST_RANK];
  struct tir_guards guards = tir_find_guards(ir, block);
  struct tir_interval now[MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  uint32_t count = tir_running_loops(ir, block, high, tir_buffer_at(ir, region.buffer)->scope, vars, MOST_LOOPS);
  if (count > MOST_LOOPS) count = MOST_LOOPS;
  count += unit_loops(ir, high, vars + count, MOST_LOOPS - count);
  tir_region_over_loops(ir, block, region, ranges);
  for (tir_block around = tir_parent_block(ir, block); around && tir_is_below(ir, around, high);
       around = tir_parent_block(ir, around))
    over_loops_of(ir, around, ranges, rank);
  of_first_block(ir, block, high, ranges, rank, &guards);
  tir_relax_region(ir, ranges, rank, vars, count, now);
  for (uint32_t d = 0; d < rank && guards.count && !box[d].apart; d++)
    box[d].apart = true, box[d].guarded = box[d].unguarded; /* of the blocks before */
  for (uint32_t d = 0; d < rank; d++) tir_touch(ir, &box[d].unguarded, now[d]);
  if (guards.count) {
    count += tir_guard_vars(ir, &guards, vars + count);
    for (uint32_t d = 0; d < rank; d++) ranges[2 * d] = tir_guarded(ir, ranges[2 * d], &guards);
    tir_relax_region(ir, ranges, rank, vars, count, now);
  }
  for (uint32_t d = 0; d < rank && box[0].apart; d++) tir_touch(ir, &box[d].guarded, now[d]);
}

static void add_regions(struct tir *ir, struct extent *box, tir_buffer buffer, tir_stmt top, tir_stmt high) {
  for (int writes = 0; writes < 2; writes++) {
    uint32_t u = writes ? tir_buffer_at(ir, buffer)->writers : tir_buffer_at(ir, buffer)->readers;
    for (; u; u = ir->uses.at[u].next) {
      tir_block block = ir->uses.at[u].block;
      if (!is_below(ir, block, top)) continue;
      struct tir_span regions = writes ? tir_block_at(ir, block)->writes : tir_block_at(ir, block)->reads;
      const struct tir_region *region = tir_region_of(ir, regions, buffer);
      if (region) add_region(ir, box, block, *region, high);
    }
  }
}

/* ---- Software pipelines ---- */

/* A loop's plan before the function is lowered, which takes all for granted that is requested. Each child of the
 * loop becomes one statement or several: an inner pipeline TIR_PIPELINE_PARTS, a copy by way of registers two. */
struct planned {
  tir_stmt loop;
  struct tir_pipeline_plan plan;
};
/* All of a kernel, in order of text. */
struct plans {
  struct planned *at;
  uint32_t count, capacity;
};

static bool uses_in(const struct tir *ir, tir_stmt child, uint32_t uses) {
  for (uint32_t u = uses; u; u = ir->uses.at[u].next)
    if (is_below(ir, ir->uses.at[u].block, child)) return true;
  return false;
}

static bool is_in_panels(const struct tir *ir, tir_buffer buffer) {
  return tir_rows_of(ir, buffer) == TIR_ROWS_CANONICAL;
}

/* A block in the statement reads what only warp-group MMA reads so. */
static bool multiplies(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span reads = tir_block_at(ir, s)->reads;
    for (uint32_t i = 0; i < reads.count; i++)
      if (is_in_panels(ir, ir->regions.at[reads.first + i].buffer)) return true;
  }
  return false;
}

static uint32_t statements_of(const struct tir *ir, tir_stmt child) {
  if (tir_is_pipeline(ir, child)) return TIR_PIPELINE_PARTS;
  return tir_statement_requests(ir, child) & TIR_STATEMENT_BY_REGISTERS ? 2 : 1;
}

/* False: the pipeline is none that can be. */
static bool plan_loop(const struct tir *ir, tir_stmt loop, struct tir_pipeline_plan *plan) {
  *plan = (struct tir_pipeline_plan){.frees = true};
  for (tir_stmt c = tir_stmt_at(ir, loop)->first[TIR_BODY]; c; c = tir_stmt_at(ir, c)->next) {
    uint32_t count = statements_of(ir, c);
    if (plan->count + count > TIR_PIPELINE_STATEMENTS) return false;
    for (uint32_t i = 0; i < count; i++)
      plan->statements[plan->count++] = (struct tir_pipeline_statement){
          .multiplies = multiplies(ir, c), .doubles = (tir_statement_requests(ir, c) & TIR_STATEMENT_DOUBLES) != 0};
  }
  return tir_read_pipeline(ir, loop, plan, NULL);
}

/* What each statement of the planned loop does with the buffer: of several that a child becomes, all may read, and
 * the last one writes. */
static void find_uses(const struct tir *ir, const struct planned *p, tir_buffer buffer, uint8_t *uses) {
  uint32_t at = 0;
  for (tir_stmt c = tir_stmt_at(ir, p->loop)->first[TIR_BODY]; c; c = tir_stmt_at(ir, c)->next) {
    bool writes = uses_in(ir, c, tir_buffer_at(ir, buffer)->writers);
    bool reads = uses_in(ir, c, tir_buffer_at(ir, buffer)->readers);
    uint32_t count = statements_of(ir, c);
    for (uint32_t i = 0; i < count; i++)
      uses[at++] = (reads ? TIR_STATEMENT_READS : 0) | (writes && i + 1 == count ? TIR_STATEMENT_WRITES : 0);
  }
  assert(at == p->plan.count);
}

static const struct planned *plan_of(const struct plans *plans, tir_stmt loop) {
  for (uint32_t i = 0; i < plans->count; i++)
    if (plans->at[i].loop == loop) return &plans->at[i];
  return NULL;
}

/* How many iterations' contents of the buffer live at a time, whose users have the loop in common. */
static int64_t stage_buffers_of(const struct tir *ir, const struct plans *plans, tir_buffer buffer, tir_stmt loop) {
  const struct planned *p = plan_of(plans, loop);
  uint8_t uses[TIR_PIPELINE_STATEMENTS];
  if (!p) return 1;
  find_uses(ir, p, buffer, uses);
  return tir_stage_buffers(&p->plan, uses, NULL, NULL);
}

/* The stage buffers of what TMA brings. */
static uint32_t ring_of(const struct tir *ir, const struct planned *p, struct tir_span allocs) {
  uint32_t ring = 1;
  for (uint32_t i = 0; i < allocs.count && p->plan.bulk; i++) {
    tir_buffer buffer = ir->operands.at[allocs.first + i];
    uint8_t uses[TIR_PIPELINE_STATEMENTS];
    if (!is_in_panels(ir, buffer)) continue;
    find_uses(ir, p, buffer, uses);
    uint32_t needed = tir_stage_buffers(&p->plan, uses, NULL, NULL);
    if (needed > ring) ring = needed;
  }
  return p->plan.bulk ? ring : 0;
}

static struct plans plan_loops(const struct tir *ir, tir_stmt top, struct tir_span allocs) {
  struct plans plans = {0};
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is_pipeline(ir, s) || tir_loop_extent(ir, s) == 1) continue;
    struct planned p = {.loop = s};
    if (!plan_loop(ir, s, &p.plan)) continue;
    p.plan.ring = ring_of(ir, &p, allocs);
    plans.capacity = plans.count + 1; /* they are few, and large */
    plans.at = tir_enlarge(plans.at, &plans.capacity, plans.capacity, sizeof *plans.at);
    plans.at[plans.count++] = p;
  }
  return plans;
}

/* Number i of an entry of StorageAlign's annotation. */
static int64_t entry_at(const struct tir *ir, tir_expr entry, uint32_t i) {
  return tir_at(ir, tir_operands(ir, tir_at(ir, entry)->operands)[i])->imm;
}

tir_expr tir_row_entry(const struct tir *ir, tir_block block, uint32_t i) {
  enum { ENTRY = 4 };
  tir_expr all = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, "buffer_dim_align");
  if (!all || tir_at(ir, all)->kind != TIR_LIST || i >= tir_at(ir, all)->count) return TIR_NONE;
  tir_expr entry = tir_operands(ir, tir_at(ir, all)->operands)[i];
  if (tir_at(ir, entry)->kind != TIR_LIST || tir_at(ir, entry)->count != ENTRY) return TIR_NONE;
  for (uint32_t k = 0; k < ENTRY; k++)
    if (!tir_is_int(ir, tir_operands(ir, tir_at(ir, entry)->operands)[k])) return TIR_NONE;
  return entry;
}

/* Until as many elements lie between two along the axis as the entry asks for, where that can be. */
void tir_pad_row(const struct tir *ir, tir_expr entry, int64_t *extents, uint32_t rank) {
  int64_t axis = entry_at(ir, entry, 1), factor = entry_at(ir, entry, 2), offset = entry_at(ir, entry, 3), inner = 1;
  if (axis < 0 || axis + 1 >= rank || factor <= 0) return;
  for (uint32_t d = (uint32_t)axis + 1; d < rank; d++) {
    if (extents[d] < 0) return;
    if (d > axis + 1) inner *= extents[d];
  }
  for (int64_t more = 0; more < factor && more < TIR_MOST_APART; more++) {
    if (((extents[axis + 1] + more) * inner - offset) % factor) continue;
    extents[axis + 1] += more;
    return;
  }
}

void tir_pad_rows(const struct tir *ir, tir_block block, tir_buffer buffer, int64_t *extents, uint32_t rank) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  tir_expr entry;
  for (uint32_t i = 0; (entry = tir_row_entry(ir, block, i)); i++) {
    int64_t index = entry_at(ir, entry, 0);
    if (index >= 0 && index < writes.count && ir->regions.at[writes.first + index].buffer == buffer)
      tir_pad_row(ir, entry, extents, rank);
  }
}

/* How long a dimension is once the buffer holds no more than that: as tir/lower/memory/compact.c has it. */
static int64_t extent_of(struct tir *ir, const struct extent *box, tir_expr size) {
  int64_t all = tir_touched_extent(ir, &box->unguarded, size);
  int64_t guarded = box->apart ? tir_touched_extent(ir, &box->guarded, size) : all;
  return guarded < 0 || (all >= 0 && all < guarded) ? all : guarded;
}

/* Bytes of the buffer that live at a time below `top`; -1: not known. */
static int64_t bytes_below(struct tir *ir, const struct plans *plans, tir_buffer buffer, tir_stmt top) {
  tir_stmt high = common_to_users(ir, buffer, top);
  struct extent box[MOST_RANK] = {0};
  if (!high) return 0;
  if (tir_is(ir, high, TIR_BLOCK)) high = tir_stmt_at(ir, high)->parent;
  if (tir_buffer_at(ir, buffer)->rank > MOST_RANK) return -1;
  add_regions(ir, box, buffer, top, high);
  struct tir_buffer_node b = *tir_buffer_at(ir, buffer);
  int64_t elements = stage_buffers_of(ir, plans, buffer, high), extents[MOST_RANK];
  for (uint32_t d = 0; d < b.rank; d++) extents[d] = extent_of(ir, &box[d], tir_operands(ir, b.shape)[d]);
  for (uint32_t u = b.writers; u; u = ir->uses.at[u].next)
    if (is_below(ir, ir->uses.at[u].block, top)) tir_pad_rows(ir, ir->uses.at[u].block, buffer, extents, b.rank);
  for (uint32_t d = 0; d < b.rank; d++)
    if (extents[d] < 0 || __builtin_mul_overflow(elements, extents[d], &elements)) return -1;
  return (elements * tir_type_bits(b.type) * tir_type_lanes(b.type) + 7) / 8;
}

static int64_t add_bytes(int64_t sum, int64_t bytes) { return sum < 0 || bytes < 0 ? -1 : sum + bytes; }

static int64_t bytes_of_scope(struct tir *ir, const struct plans *plans, tir_block root, tir_stmt top,
                              tir_symbol scope) {
  struct tir_span allocs = tir_block_at(ir, root)->allocs;
  int64_t sum = 0;
  for (uint32_t i = 0; i < allocs.count && scope; i++) { /* in a scope that was never named nothing lies */
    tir_buffer buffer = ir->operands.at[allocs.first + i];
    if (tir_buffer_at(ir, buffer)->scope == scope) sum = add_bytes(sum, bytes_below(ir, plans, buffer, top));
  }
  return sum;
}

/* ---- What lives at a time ---- */

/* A buffer from the first to the last of the statements that use it, by their places in the text; loops bound to
 * threads are none of them, as they are joined. */
struct life {
  int64_t bytes;
  uint32_t first, last;
};

/* The largest statement around a user that is repeated, or the user, below `high`. */
static tir_stmt repeated_around(const struct tir *ir, tir_stmt user, tir_stmt high) {
  tir_stmt around = user;
  for (tir_stmt p = user; p && p != high; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && tir_stmt_at(ir, p)->loop_kind != TIR_THREAD_BINDING) around = p;
  return around;
}

static void extend(const struct tir *ir, struct life *life, tir_stmt top, const uint32_t *position) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (position[s] < life->first) life->first = position[s];
    if (position[s] > life->last) life->last = position[s];
  }
}

/* A buffer with several stage buffers lives all along the loop. */
static struct life life_of(struct tir *ir, const struct plans *plans, tir_buffer buffer, tir_stmt top,
                           const uint32_t *position) {
  struct life life = {bytes_below(ir, plans, buffer, top), UINT32_MAX, 0};
  tir_stmt high = common_to_users(ir, buffer, top);
  const uint32_t heads[] = {tir_buffer_at(ir, buffer)->writers, tir_buffer_at(ir, buffer)->readers};
  bool several = high && !tir_is(ir, high, TIR_BLOCK) && stage_buffers_of(ir, plans, buffer, high) > 1;
  if (several || (high && tir_is(ir, high, TIR_BLOCK))) extend(ir, &life, high, position);
  for (int i = 0; high && i < 2; i++)
    for (uint32_t u = heads[i]; u; u = ir->uses.at[u].next) {
      tir_block block = ir->uses.at[u].block;
      if (is_below(ir, block, top)) extend(ir, &life, repeated_around(ir, block, high), position);
    }
  return life;
}

/* Whether a loop of the block asks to store what it copies by TMA. */
static bool is_stored_in_bulk(const struct tir *ir, tir_block block, tir_stmt high) {
  for (tir_stmt p = block; p && p != high; p = tir_stmt_at(ir, p)->parent) {
    tir_expr value =
        tir_is(ir, p, TIR_LOOP) ? tir_annotation(ir, tir_stmt_at(ir, p)->annotations, TIR_TENSOR_STORES) : TIR_NONE;
    if (value && tir_is_int(ir, value) && tir_at(ir, value)->imm > 0) return true;
  }
  return false;
}

/* What bulk stores read lives to the kernel's end, and where it is repeated from its begin on. */
static void extend_stored(const struct tir *ir, struct life *life, tir_buffer buffer, tir_stmt top) {
  tir_stmt high = common_to_users(ir, buffer, top);
  bool repeated = false;
  for (uint32_t u = tir_buffer_at(ir, buffer)->readers; u; u = ir->uses.at[u].next) {
    tir_block block = ir->uses.at[u].block;
    if (is_below(ir, block, top) && is_stored_in_bulk(ir, block, high)) life->last = UINT32_MAX;
  }
  for (tir_stmt p = high; p && p != top && life->last == UINT32_MAX; p = tir_stmt_at(ir, p)->parent)
    repeated |=
        tir_is(ir, p, TIR_LOOP) && tir_stmt_at(ir, p)->loop_kind != TIR_THREAD_BINDING && tir_loop_extent(ir, p) != 1;
  if (repeated) life->first = 0;
}

static int64_t mbarrier_bytes(const struct plans *plans) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < plans->count; i++) {
    int64_t own = TIR_MBARRIER_BYTES * (int64_t)tir_pipeline_mbarriers(&plans->at[i].plan);
    bytes += (own + TIR_SHARED_ALIGNMENT - 1) / TIR_SHARED_ALIGNMENT * TIR_SHARED_ALIGNMENT;
  }
  return bytes;
}

/* Blocks do one tile after the other, of so many: what is copied lives beside all else. */
static bool are_persistent(const struct plans *plans, int64_t tiles) {
  bool any = false;
  for (uint32_t i = 0; i < plans->count; i++) any |= plans->at[i].plan.blocks > 0 && tiles > plans->at[i].plan.blocks;
  return any;
}

/* As tir/lower/gpu/shared_memory.c lays them out, where no gaps are left: the most bytes of shared buffers that live at
 * one place. */
static int64_t shared_bytes_of(struct tir *ir, const struct plans *plans, tir_block root, tir_stmt top, int64_t tiles) {
  struct tir_span allocs = tir_block_at(ir, root)->allocs;
  uint32_t *position = calloc(ir->stmts.count, sizeof *position), next = 0, count = 0;
  struct life *lives = calloc(allocs.count + 1, sizeof *lives);
  if (!position || !lives) abort();
  int64_t most = 0;
  bool all = are_persistent(plans, tiles);
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) position[s] = next++;
  for (uint32_t i = 0; i < allocs.count; i++) {
    tir_buffer buffer = ir->operands.at[allocs.first + i];
    if (tir_buffer_memory(ir, buffer) != TIR_BLOCK_MEMORY) continue;
    lives[count] = life_of(ir, plans, buffer, top, position);
    extend_stored(ir, &lives[count++], buffer, top);
  }
  for (uint32_t i = 0; i < count; i++) {
    int64_t sum = 0; /* where the life of i begins */
    for (uint32_t k = 0; k < count; k++)
      if (all || lives[k].bytes < 0 || (lives[k].first <= lives[i].first && lives[i].first <= lives[k].last))
        sum = add_bytes(sum, lives[k].bytes);
    if (sum < 0 || most < 0)
      most = -1;
    else if (sum > most)
      most = sum;
  }
  free(position);
  free(lives);
  return most < 0 ? most : most + mbarrier_bytes(plans);
}

int64_t tir_scope_bytes(struct tir *ir, tir_func f, const char *scope) {
  tir_block root = tir_root_block(ir, f);
  tir_symbol symbol = tir_find_symbol(ir, scope);
  if (!root) return 0;
  struct plans plans = plan_loops(ir, root, tir_block_at(ir, root)->allocs);
  int64_t bytes = bytes_of_scope(ir, &plans, root, root, symbol);
  free(plans.at);
  return bytes;
}

/* ---- Threads and vectors ----------------------------------------------------------------------------------------- */

/* The extents of the axes that its loops are bound to; 0: no loop is, -1: no constant. */
struct axes {
  int64_t extent[TIR_AXIS_COUNT];
};

static void add_axis(struct tir_kernel *k, struct axes *axes, enum tir_axis axis, int64_t extent) {
  if (axis == TIR_AXIS_COUNT) return;
  k->launchable = k->launchable && extent <= tir_axis_limit(axis);
  k->uniform = k->uniform && (!axes->extent[axis] || axes->extent[axis] == extent);
  if (!axes->extent[axis]) axes->extent[axis] = extent;
}

/* The product of the extents of axes from one to another. */
static int64_t product_of(const struct axes *axes, enum tir_axis first, enum tir_axis last) {
  int64_t product = 1;
  for (enum tir_axis a = first; a <= last; a++) {
    if (!axes->extent[a]) continue;
    if (axes->extent[a] < 0 || __builtin_mul_overflow(product, axes->extent[a], &product)) return -1;
  }
  return product;
}

static int64_t noted(const struct tir *ir, tir_block block, const char *key) {
  tir_expr value = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, key);
  return value && tir_is_int(ir, value) ? tir_at(ir, value)->imm : 0;
}

static void add_bounds(const struct tir *ir, struct tir_kernel *k, tir_block block) {
  int64_t least = noted(ir, block, "meta_schedule.thread_extent_low_inclusive");
  int64_t most = noted(ir, block, "meta_schedule.thread_extent_high_inclusive");
  if (least > k->least_threads) k->least_threads = least;
  if (most && (!k->most_threads || most < k->most_threads)) k->most_threads = most;
}

/* The bytes of the narrowest element that a block under the loop reads or writes: of wider ones a vector is several
 * accesses (tir/lower/gpu/gpu_vectorize.c). 0: of none. */
static int64_t narrowest_element(const struct tir *ir, tir_loop loop) {
  int64_t narrowest = 0;
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    const struct tir_span spans[] = {tir_block_at(ir, s)->reads, tir_block_at(ir, s)->writes};
    for (int w = 0; w < 2; w++)
      for (uint32_t i = 0; i < spans[w].count; i++) {
        tir_type type = tir_buffer_at(ir, ir->regions.at[spans[w].first + i].buffer)->type;
        int64_t bytes = tir_type_bytes(type);
        if (!narrowest || bytes < narrowest) narrowest = bytes;
      }
  }
  return narrowest;
}

static void add_loop(const struct tir *ir, struct tir_kernel *k, struct axes *axes, tir_loop loop) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  int64_t extent = tir_loop_extent(ir, loop);
  add_axis(k, axes, tir_loop_axis(ir, loop), extent);
  if (n->loop_kind != TIR_VECTORIZED || k->vector_bytes < 0) return;
  int64_t bytes = extent < 0 ? -1 : extent * narrowest_element(ir, loop);
  if (bytes < 0 || bytes > k->vector_bytes) k->vector_bytes = bytes;
}

/* A kernel has one producer warp group at most. */
static int64_t threads_with_producer(const struct plans *plans, int64_t threads) {
  int64_t most = threads;
  for (uint32_t i = 0; i < plans->count; i++) {
    const struct tir_pipeline_plan *plan = &plans->at[i].plan;
    if (plan->bulk && tir_pipeline_threads(plan, threads) > most) most = tir_pipeline_threads(plan, threads);
  }
  return most;
}

static struct tir_kernel look_at(struct tir *ir, tir_block root, tir_stmt top) {
  struct tir_kernel k = {.uniform = true, .launchable = true};
  struct axes axes = {0};
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (tir_is(ir, s, TIR_LOOP)) add_loop(ir, &k, &axes, s);
    if (tir_is(ir, s, TIR_BLOCK)) add_bounds(ir, &k, s);
  }
  k.threads = product_of(&axes, TIR_THREAD_X, TIR_THREAD_Z), k.vthreads = product_of(&axes, TIR_VTHREAD_X, TIR_VTHREAD);
  struct plans plans = plan_loops(ir, top, tir_block_at(ir, root)->allocs);
  if (k.threads > 0) k.threads = threads_with_producer(&plans, k.threads);
  k.shared_bytes = shared_bytes_of(ir, &plans, root, top, product_of(&axes, TIR_BLOCK_X, TIR_BLOCK_Z));
  int64_t local = bytes_of_scope(ir, &plans, root, top, tir_find_symbol(ir, tir_memory_scope_name(TIR_SCOPE_LOCAL)));
  free(plans.at);
  k.local_bytes = local < 0 || k.vthreads < 0 || __builtin_mul_overflow(local, k.vthreads, &local) ? -1 : local;
  return k;
}

uint32_t tir_kernels(struct tir *ir, tir_func f, struct tir_kernel *out, uint32_t most) {
  tir_block root = tir_root_block(ir, f);
  uint32_t count = 0;
  for (tir_stmt s = root ? tir_stmt_at(ir, root)->first[TIR_BODY] : TIR_NONE; s; s = tir_stmt_at(ir, s)->next) {
    if (count < most) out[count] = look_at(ir, root, s);
    count++;
  }
  return count;
}

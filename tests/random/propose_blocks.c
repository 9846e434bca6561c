/* Proposals that move, merge, split and copy blocks. */
#include "random.h"
#include "tir/analysis/analysis.h"

#include <string.h>

static bool is(enum vm_kind kind, const char *name) { return !strcmp(vm_kind_info(kind)->name, name); }

/* One block, no attributes. */
static bool on_block(struct grow *g, enum vm_kind kind, tir_block b) {
  struct vm_value block;
  return ref_block(g, b, &block) && perform(g, kind, VALUES(block), NO_VALUES, NULL, NULL);
}

/* ---- Moving ---- */

bool propose_inline(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  for (uint32_t i = 0; i < blocks.count && percent(g, 90); i++) {
    tir_block b = blocks.at[i];
    if (reduces(g, b)) continue;
    uint32_t n = kind == VM_ComputeInline ? consumers_of(g, b).count : producers_of(g, b).count;
    if (kind == VM_ComputeInline ? n >= 1 : n == 1) return on_block(g, kind, b);
  }
  return on_block(g, kind, draw_block(g));
}

bool propose_compute_at(struct grow *g, enum vm_kind kind) {
  static const int64_t places[] = {-1, -1, -1, -2};
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value block, loop;
  for (uint32_t i = 0; i < blocks.count; i++) {
    tir_block b = blocks.at[i];
    struct block_list ends = kind == VM_ComputeAt ? consumers_of(g, b) : producers_of(g, b);
    if (!ends.count && percent(g, 95)) continue;
    if (!ends.count) ends = blocks;
    tir_block end = ends.at[below(g, ends.count)];
    struct loop_list loops = loops_around(g, end);
    if (!loops.count) continue;
    tir_loop l = loops.at[below(g, loops.count)];
    if (!ref_loop(g, end, l, &loop) || !ref_block(g, b, &block)) return false;
    int64_t place = once_in(g, 12) ? below(g, 3) : places[below(g, 4)];
    return perform(g, kind, VALUES(block, loop), VALUES(vm_bool(percent(g, 30)), vm_int(place)), NULL, NULL);
  }
  return false;
}

/* ---- Reductions ---- */

/* A block with an init and a loop that drives one of its reductions; the loop's number in *loops. */
static tir_block find_reduction(struct grow *g, struct loop_list *loops, uint32_t *number) {
  struct block_list blocks = shuffled_blocks(g);
  for (uint32_t i = 0; i < blocks.count; i++) {
    if (!reduces(g, blocks.at[i]) || !has_init(g, blocks.at[i])) continue;
    *loops = loops_around(g, blocks.at[i]);
    uint32_t found[MOST_LOOPS], count = 0;
    for (uint32_t k = 0; k < loops->count; k++)
      if (drives(g, blocks.at[i], loops->at[k], TIR_REDUCE)) found[count++] = k;
    if (!count) continue;
    *number = found[below(g, count)];
    return blocks.at[i];
  }
  return TIR_NONE;
}

bool propose_decompose(struct grow *g, enum vm_kind kind) {
  struct loop_list loops;
  uint32_t number = 0, first = 0;
  struct vm_value block, loop;
  tir_block b = find_reduction(g, &loops, &number);
  if (!b) b = draw_block(g), loops = loops_around(g, b), number = loops.count ? below(g, loops.count) : 0;
  if (!loops.count) return false;
  while (first < loops.count && !drives(g, b, loops.at[first], TIR_REDUCE)) first++;
  if (percent(g, 70) && first < loops.count) number = below(g, first + 1);
  if (!ref_block(g, b, &block) || !ref_loop(g, b, loops.at[number], &loop)) return false;
  return perform(g, kind, VALUES(block, loop), NO_VALUES, NULL, NULL);
}

/* Often the loop is split before, so that one part is factored. */
bool propose_rfactor(struct grow *g, enum vm_kind kind) {
  static const int64_t axes[] = {0, 0, 0, 0, 1, -1};
  static const int64_t factors[] = {2, 3, 4, 5, 6, 8};
  struct loop_list loops;
  uint32_t number = 0, first, count;
  struct vm_value loop;
  tir_block b = find_reduction(g, &loops, &number);
  if (!b) b = draw_block(g), loops = loops_around(g, b), number = loops.count ? below(g, loops.count) : 0;
  if (!loops.count || !ref_loop(g, b, loops.at[number], &loop)) return false;
  int64_t extent = extent_of(g, loops.at[number]), factor = factors[below(g, 6)];
  bool divides = extent > factor && extent % factor == 0;
  if (percent(g, 60) && (divides || once_in(g, 10)) &&
      perform(g, VM_Split, VALUES(loop, vm_none(), vm_int(factor)), VALUES(vm_bool(true), vm_bool(false)), &first,
              &count))
    loop = vm_ref(first + below(g, count));
  return perform(g, kind, VALUES(loop), VALUES(vm_int(axes[below(g, 6)])), NULL, NULL);
}

/* What a reduction gives, copied where nothing else follows it. */
static bool fuse_copy(struct grow *g, enum vm_kind kind, tir_block b) {
  struct vm_value reduction, list = vm_list(&g->schedule->trace, VM_LIST, NULL, 0);
  uint32_t first;
  return ref_block(g, b, &reduction) &&
         perform(g, VM_CacheWrite, VALUES(reduction, list), VALUES(vm_int(0), draw_scope(g)), &first, NULL) &&
         perform(g, kind, VALUES(reduction, vm_ref(first)), NO_VALUES, NULL, NULL);
}

bool propose_epilogue(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value reduction, epilogue;
  for (uint32_t i = 0; i < blocks.count; i++) {
    struct block_list producers = producers_of(g, blocks.at[i]);
    if (reduces(g, blocks.at[i]) || !producers.count) continue;
    tir_block p = producers.at[below(g, producers.count)];
    if (!once_in(g, 10) && !(reduces(g, p) && has_init(g, p))) continue;
    if (!ref_block(g, p, &reduction) || !ref_block(g, blocks.at[i], &epilogue)) return false;
    return perform(g, kind, VALUES(reduction, epilogue), NO_VALUES, NULL, NULL);
  }
  for (uint32_t i = 0; i < blocks.count; i++)
    if (reduces(g, blocks.at[i]) && has_init(g, blocks.at[i])) return fuse_copy(g, kind, blocks.at[i]);
  return false;
}

bool propose_unroll_reduction(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  for (uint32_t i = 0; i < blocks.count && percent(g, 95); i++)
    if (reduces(g, blocks.at[i]) && has_init(g, blocks.at[i])) return on_block(g, kind, blocks.at[i]);
  return on_block(g, kind, draw_block(g));
}

/* The sum reads exponentials, which are inlined first where a block makes them between it and the maximum: *inlined,
 * and blocks that were listed before are stale. */
static bool fuse_softmax(struct grow *g, enum vm_kind kind, tir_block sum, tir_block between, bool *inlined) {
  struct vm_value maximum, total;
  struct block_list producers = producers_of(g, between ? between : sum);
  for (uint32_t i = 0; i < producers.count; i++) {
    tir_block p = producers.at[i];
    if (!reduces(g, p) || !has_init(g, p)) continue;
    if (between && !on_block(g, VM_ComputeInline, between)) return false;
    *inlined = between != TIR_NONE;
    const struct tir *ir = g->schedule->ir; /* a stray operand may have had one of the two inlined instead */
    return tir_is(ir, p, TIR_BLOCK) && tir_is(ir, sum, TIR_BLOCK) && ref_block(g, p, &maximum) &&
           ref_block(g, sum, &total) && perform(g, kind, VALUES(maximum, total), NO_VALUES, NULL, NULL);
  }
  return false;
}

bool propose_online_softmax(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  bool inlined = false;
  for (uint32_t i = 0; i < blocks.count; i++) {
    struct block_list producers = producers_of(g, blocks.at[i]);
    if (!once_in(g, 20) && !(reduces(g, blocks.at[i]) && has_init(g, blocks.at[i]))) continue;
    if (fuse_softmax(g, kind, blocks.at[i], TIR_NONE, &inlined)) return true;
    for (uint32_t k = 0; k < producers.count && !inlined; k++)
      if (!reduces(g, producers.at[k]) && fuse_softmax(g, kind, blocks.at[i], producers.at[k], &inlined)) return true;
    if (inlined) return false;
  }
  return false;
}

/* A divisor of n, most often. */
static int64_t draw_divisor(struct grow *g, int64_t n) {
  int64_t divisor = 1 + below(g, (uint32_t)n);
  while (!once_in(g, 20) && n % divisor) divisor--;
  return divisor;
}

/* How many terms a sum has, by the first iteration that reduces; 1: that is not known. */
static int64_t terms_of(const struct tir *ir, tir_block sum) {
  for (uint32_t i = 0; i < tir_block_at(ir, sum)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, sum)[i];
    if (iter.kind == TIR_REDUCE && tir_is_int(ir, ir->vars.at[iter.var].extent))
      return tir_at(ir, ir->vars.at[iter.var].extent)->imm;
  }
  return 1;
}

/* Most often of a block that reduces floats so, TIR_ADD or TIR_MAX. */
static bool is_drawn(struct grow *g, tir_block block, enum tir_kind reduction) {
  if (once_in(g, 20)) return true;
  const struct tir *ir = g->schedule->ir;
  tir_stmt store = reduces(g, block) && has_init(g, block) ? tir_only_store(ir, block, TIR_BODY) : TIR_NONE;
  if (!store) return false;
  tir_expr value = tir_as(ir, store, TIR_STORE)->store.value;
  return tir_at(ir, value)->kind == reduction && tir_type_is_float(tir_type_of(ir, value));
}

/* The sum's exponentials are its own, or a block's between it and the maximum. */
bool propose_rebase_exponential(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value first, second;
  for (uint32_t i = 0; i < blocks.count; i++) {
    if (!is_drawn(g, blocks.at[i], TIR_ADD)) continue;
    struct block_list from = producers_of(g, blocks.at[i]);
    for (uint32_t k = 0, own = from.count; k < from.count; k++) {
      tir_block p = from.at[k];
      struct block_list more = k < own && !reduces(g, p) ? producers_of(g, p) : (struct block_list){.count = 0};
      for (uint32_t m = 0; m < more.count && from.count < MOST_BLOCKS; m++) from.at[from.count++] = more.at[m];
      if (!is_drawn(g, p, TIR_MAX)) continue;
      int64_t terms = terms_of(g->schedule->ir, blocks.at[i]), lanes = draw_divisor(g, terms);
      struct vm_value steps = vm_int(draw_divisor(g, terms / lanes));
      return ref_block(g, p, &first) && ref_block(g, blocks.at[i], &second) &&
             perform(g, kind, VALUES(first, second, steps, vm_int(lanes)), NO_VALUES, NULL, NULL);
    }
  }
  return false;
}

/* The last two reductions, in order of text, that the block reads from; false: there are not two. */
static bool last_two(struct grow *g, tir_block block, tir_block *before, tir_block *last) {
  struct block_list producers = producers_of(g, block);
  *before = *last = TIR_NONE;
  for (uint32_t i = 0; i < producers.count; i++) {
    tir_block p = producers.at[i];
    if (!reduces(g, p) || !has_init(g, p)) continue;
    bool later = !*last || tir_compare_position(g->schedule->ir, p, *last) > 0;
    if (later || !*before || tir_compare_position(g->schedule->ir, p, *before) > 0) *before = later ? *last : p;
    if (later) *last = p;
  }
  return *before != TIR_NONE;
}

bool propose_fuse_online_softmax(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  tir_block maximum, sum;
  struct vm_value first, second, product;
  for (uint32_t i = 0; i < blocks.count; i++) {
    if (!reduces(g, blocks.at[i]) || !last_two(g, blocks.at[i], &maximum, &sum)) continue;
    bool swap = once_in(g, 20);
    int64_t rows = 1 + below(g, 6), multiple = percent(g, 50) ? 0 : rows * (1 + below(g, 3)) + once_in(g, 20);
    return ref_block(g, swap ? sum : maximum, &first) && ref_block(g, swap ? maximum : sum, &second) &&
           ref_block(g, blocks.at[i], &product) &&
           perform(g, kind,
                   VALUES(first, second, product, vm_int(rows), vm_int(1 + below(g, 8)), vm_int(multiple),
                          vm_int(percent(g, 50) ? 1 : 1 + below(g, 4))),
                   VALUES(vm_bool(percent(g, 50))), NULL, NULL);
  }
  return false;
}

static bool pads(const struct grow *g, tir_block b) {
  const char *name = tir_block_name(g->schedule->ir, b);
  return !strncmp(name, "pad", 3) || !strcmp(name, "P");
}

bool propose_decompose_padding(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value block, loop;
  for (uint32_t i = 0; i < blocks.count; i++) {
    struct loop_list loops = loops_around(g, blocks.at[i]);
    if (!loops.count || (!pads(g, blocks.at[i]) && !once_in(g, 8))) continue;
    tir_loop l = loops.at[percent(g, 60) ? 0 : below(g, loops.count)];
    if (!ref_block(g, blocks.at[i], &block) || !ref_loop(g, blocks.at[i], l, &loop)) return false;
    return perform(g, kind, VALUES(block, loop), NO_VALUES, NULL, NULL);
  }
  return false;
}

/* ---- Copies ---- */

/* The number of a region that the block reads or writes; now and then one past the last. */
static int64_t draw_region(struct grow *g, tir_block b, bool writes) {
  uint32_t n = regions_of(g, b, writes).count;
  if (!n || once_in(g, 20)) n++;
  return below(g, n);
}

bool propose_cache(struct grow *g, enum vm_kind kind) {
  tir_block b = draw_block(g);
  struct vm_value block, consumer, list = vm_list(&g->schedule->trace, VM_LIST, NULL, 0);
  if (!ref_block(g, b, &block)) return false;
  int64_t number = draw_region(g, b, kind == VM_CacheWrite);
  if (once_in(g, 5)) {
    struct block_list consumers = consumers_of(g, b);
    tir_block c = consumers.count && percent(g, 70) ? consumers.at[below(g, consumers.count)] : draw_block(g);
    if (!ref_block(g, c, &consumer)) return false;
    list = vm_list(&g->schedule->trace, VM_LIST, &consumer, 1);
  }
  return perform(g, kind, VALUES(block, list), VALUES(vm_int(number), draw_scope(g)), NULL, NULL);
}

bool propose_cache_inplace(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value block;
  for (uint32_t i = 0; i < blocks.count; i++)
    for (uint32_t r = 0; r < regions_of(g, blocks.at[i], false).count; r++)
      for (uint32_t w = 0; w < regions_of(g, blocks.at[i], true).count; w++) {
        tir_buffer read = region_at(g, blocks.at[i], false, r).buffer;
        if (read != region_at(g, blocks.at[i], true, w).buffer) continue;
        return ref_block(g, blocks.at[i], &block) &&
               perform(g, kind, VALUES(block), VALUES(vm_int(r), draw_scope(g)), NULL, NULL);
      }
  /* No block updates in place: make one. */
  struct loop_list loops;
  uint32_t number = 0;
  struct vm_value loop;
  tir_block b = find_reduction(g, &loops, &number);
  if (b && ref_block(g, b, &block) && ref_loop(g, b, loops.at[0], &loop) &&
      perform(g, VM_DecomposeReduction, VALUES(block, loop), NO_VALUES, NULL, NULL))
    return perform(g, kind, VALUES(block), VALUES(vm_int(0), draw_scope(g)), NULL, NULL);
  return ref_block(g, draw_block(g), &block) &&
         perform(g, kind, VALUES(block), VALUES(vm_int(0), draw_scope(g)), NULL, NULL);
}

bool propose_cache_index(struct grow *g, enum vm_kind kind) {
  struct vm_value block;
  return ref_block(g, draw_block(g), &block) &&
         perform(g, kind, VALUES(block), VALUES(text_value(g, "global"), vm_int(below(g, 3))), NULL, NULL);
}

bool propose_reindex(struct grow *g, enum vm_kind kind) {
  tir_block b = draw_block(g);
  struct vm_value block;
  bool writes = once_in(g, 2);
  if (!ref_block(g, b, &block)) return false;
  return perform(g, kind, VALUES(block), VALUES(vm_int(draw_region(g, b, writes)), vm_int(writes)), NULL, NULL);
}

/* "lambda v0, v1, …: (those of `used` in the order given,)" */
static void lambda_of(char *out, size_t size, uint32_t count, const uint32_t *used, uint32_t used_count) {
  size_t at = (size_t)snprintf(out, size, "lambda ");
  for (uint32_t i = 0; i < count; i++) at += (size_t)snprintf(out + at, size - at, i ? ", v%u" : "v%u", i);
  at += (size_t)snprintf(out + at, size - at, ": (");
  for (uint32_t i = 0; i < used_count; i++) at += (size_t)snprintf(out + at, size - at, "v%u, ", used[i]);
  snprintf(out + at - 1, size - at + 1, ")");
}

static bool region_uses(const struct grow *g, struct tir_region region, tir_var v) {
  const struct tir *ir = g->schedule->ir;
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  for (uint32_t d = 0; d < 2 * rank; d += 2)
    if (tir_uses_var(ir, tir_operands(ir, region.ranges)[d], v)) return true;
  return false;
}

/* Indices are the iterations that the region depends on, in some order. */
bool propose_reindex_cache(struct grow *g, enum vm_kind kind) {
  const struct tir *ir = g->schedule->ir;
  bool writes = is(kind, "ReindexCacheWrite");
  tir_block b = draw_block(g);
  struct vm_value block;
  if (!b || !regions_of(g, b, writes).count || tir_block_at(ir, b)->iters.count > 12) return false;
  uint32_t number = below(g, regions_of(g, b, writes).count), used[16], count = 0;
  uint32_t iters = tir_block_at(ir, b)->iters.count;
  for (uint32_t i = 0; i < iters; i++)
    if (region_uses(g, region_at(g, b, writes, number), tir_iters(ir, b)[i].var) || once_in(g, 12)) used[count++] = i;
  for (uint32_t i = count; i > 1; i--) {
    uint32_t k = below(g, i), held = used[i - 1];
    used[i - 1] = used[k], used[k] = held;
  }
  char lambda[256];
  if (!count || !ref_block(g, b, &block)) return false;
  lambda_of(lambda, sizeof lambda, iters, used, count);
  return perform(g, kind, VALUES(block, text_value(g, lambda)), VALUES(vm_int(number), draw_scope(g)), NULL, NULL);
}

/* ReadAt and WriteAt: staging at a loop around the block. */
bool propose_copy_at(struct grow *g, enum vm_kind kind) {
  tir_block b = draw_block(g);
  struct loop_list loops = loops_around(g, b);
  struct vm_value block, loop;
  if (!loops.count || !ref_block(g, b, &block) || !ref_loop(g, b, loops.at[below(g, loops.count)], &loop)) return false;
  int64_t number = draw_region(g, b, is(kind, "WriteAt"));
  return perform(g, kind, VALUES(loop, block), VALUES(vm_int(number), text_value(g, g->threads ? "local" : "shared")),
                 NULL, NULL);
}

/* A dimension of a region in which what neighbouring rounds of a loop access overlaps; the loop, or TIR_NONE. */
static tir_loop sliding_loop(struct grow *g, tir_block b, struct tir_region region, const struct loop_list *loops) {
  const struct tir *ir = g->schedule->ir;
  uint32_t rank = tir_buffer_at(ir, region.buffer)->rank;
  tir_loop found[MOST_LOOPS];
  uint32_t count = 0;
  for (uint32_t d = 0; d < rank; d++) {
    const uint32_t *range = tir_operands(ir, region.ranges) + 2 * (size_t)d;
    uint32_t moved = !tir_is_const(ir, range[1], 1);
    for (uint32_t i = 0; i < tir_block_at(ir, b)->iters.count; i++)
      moved += tir_uses_var(ir, range[0], tir_iters(ir, b)[i].var);
    for (uint32_t i = 0; i < tir_block_at(ir, b)->iters.count && moved > 1; i++) {
      struct tir_iter iter = tir_iters(ir, b)[i];
      if (iter.kind != TIR_SPATIAL || !tir_uses_var(ir, range[0], iter.var)) continue;
      for (uint32_t l = 0; l < loops->count && count < MOST_LOOPS; l++)
        if (tir_uses_var(ir, iter.binding, tir_stmt_at(ir, loops->at[l])->loop.var)) found[count++] = loops->at[l];
    }
  }
  return count ? found[below(g, count)] : TIR_NONE;
}

/* The block that makes what b reads there: one that there is, or a copy made now. */
static bool ref_maker(struct grow *g, tir_block b, uint32_t number, struct vm_value *out) {
  struct block_list blocks = blocks_of(g);
  tir_buffer buffer = region_at(g, b, false, number).buffer;
  struct vm_value block, list = vm_list(&g->schedule->trace, VM_LIST, NULL, 0);
  uint32_t first;
  for (uint32_t i = 0; i < blocks.count && percent(g, 80); i++)
    if (blocks.at[i] != b && !reduces(g, blocks.at[i]) && touches(g, blocks.at[i], true, buffer))
      return ref_block(g, blocks.at[i], out);
  if (!ref_block(g, b, &block) ||
      !perform(g, VM_CacheRead, VALUES(block, list), VALUES(vm_int(number), draw_scope(g)), &first, NULL))
    return false;
  *out = vm_ref(first);
  return true;
}

/* What is made at a loop whose rounds overlap is what a window rolls over. */
static bool roll(struct grow *g, enum vm_kind kind, tir_block b, uint32_t number) {
  struct loop_list loops = loops_around(g, b);
  tir_loop at = sliding_loop(g, b, region_at(g, b, false, number), &loops);
  struct vm_value block, loop;
  if (!at || !ref_maker(g, b, number, &block) || !ref_loop(g, b, at, &loop)) return false;
  if (!perform(g, VM_ComputeAt, VALUES(block, loop), VALUES(vm_bool(once_in(g, 2)), vm_int(-1)), NULL, NULL) &&
      !once_in(g, 4))
    return false;
  return perform(g, kind, VALUES(block), VALUES(vm_int(0)), NULL, NULL);
}

bool propose_rolling_buffer(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value block;
  for (uint32_t i = 0; i < blocks.count; i++)
    for (uint32_t r = 0; r < regions_of(g, blocks.at[i], false).count; r++)
      if (roll(g, kind, blocks.at[i], r)) return true;
  return once_in(g, 4) && ref_block(g, draw_block(g), &block) &&
         perform(g, kind, VALUES(block), VALUES(vm_int(0)), NULL, NULL);
}

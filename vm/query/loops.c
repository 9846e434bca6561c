/* Queries of the loops around a block at once, for postprocessors, which run for every candidate. */
#include "query.h"

#include <assert.h>
#include <string.h>

enum { MOST_LOOPS = 256 };

/* The loops around a block, outermost first; 0: there are more than can be looked at. */
static uint32_t loops_around(const struct vm_ask *q, tir_loop loops[MOST_LOOPS]) {
  uint32_t count = tir_loops_of(q->ir, q->args[0].statement, loops, MOST_LOOPS);
  return count > MOST_LOOPS ? 0 : count;
}

static bool has_one_child(const struct tir *ir, tir_loop loop) {
  tir_stmt child = tir_stmt_at(ir, loop)->first[TIR_BODY];
  return child && !tir_stmt_at(ir, child)->next;
}

/* A plain loop over space, of constant extent, not yet marked to be unrolled: another block below it may have had its
 * turn. One of a single iteration may drive nothing. */
static bool is_free(const struct tir *ir, tir_loop loop) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  const char *drives = vm_loop_iter_kind(ir, loop);
  return n->loop_kind == TIR_SERIAL && tir_loop_extent(ir, loop) >= 0 &&
         !tir_annotation(ir, n->annotations, "pragma_auto_unroll_max_step") &&
         (!strcmp(drives, "spatial") || (tir_loop_extent(ir, loop) == 1 && !strcmp(drives, "none")));
}

/* The product, or the most that there is. */
static int64_t times(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* How many of the outermost are, fused, more than so many jobs. */
static uint32_t parallel_loops(const struct tir *ir, const tir_loop *loops, uint32_t all, int64_t jobs) {
  uint32_t count = 0;
  int64_t product = 1;
  while (jobs > 0 && count < all && is_free(ir, loops[count])) {
    tir_loop loop = loops[count++];
    product = times(product, tir_loop_extent(ir, loop));
    if (product > jobs || !has_one_child(ir, loop)) break;
  }
  assert(count <= all);
  return product > 1 ? count : 0;
}

enum { MOST_REGIONS = 64 };

/* Loops fused into a vector, from inside: next[i] is how far region i moves in one run of them, 0 where it does not. */
struct fused {
  int64_t next[MOST_REGIONS], product;
  bool reduces;
  bool pieces; /* what is read lies together in pieces of the innermost loop */
};

/* Whether a region repeats itself in the vector when a loop is fused with those inside it: it moves with some of them
 * alone, and so is gathered, at each step of a reduction. */
static bool repeats(const struct fused *f, uint32_t region, bool moves) {
  return f->reduces && f->product > 1 && moves == !f->next[region];
}

/* Whether every region of the block goes on without a gap when the loop is fused with those inside it. The innermost
 * loop may leave gaps, if that is allowed. */
static bool goes_on(struct vm_ask *q, tir_loop loop, struct fused *f, bool may_leave_gaps) {
  const struct tir_block_record *record = tir_block_at(q->ir, q->args[0].statement);
  struct tir_span reads = record->reads, writes = record->writes;
  int64_t extent = tir_loop_extent(q->ir, loop);
  assert(reads.count + writes.count <= MOST_REGIONS && extent >= 0); /* is_free */
  for (uint32_t i = 0; i < reads.count + writes.count; i++) {
    uint32_t at = i < reads.count ? reads.first + i : writes.first + i - reads.count;
    int64_t stride;
    bool known = vm_stride_of(q->ir, q->args[0].statement, q->ir->regions.at[at], loop, &stride);
    if (extent > 1 && known && repeats(f, i, stride != 0)) return false;
    if (known && !stride) continue;
    tir_buffer read = i < reads.count ? q->ir->regions.at[at].buffer : TIR_NONE;
    bool alone = f->product == 1 && !f->reduces && !may_leave_gaps;
    if (!known && alone && read && vm_moves_in_pieces(q->ir, q->args[0].statement, read, loop)) {
      f->pieces = true;
      continue;
    }
    if ((!known || stride != (f->next[i] ? f->next[i] : 1)) && !may_leave_gaps) return false;
    f->next[i] = known ? times(stride, extent) : 0;
  }
  f->product = times(f->product, extent);
  return true;
}

static bool block_reduces(const struct tir *ir, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = 0; i < iters.count; i++)
    if (ir->iters.at[iters.first + i].kind == TIR_REDUCE) return true;
  return false;
}

struct vectors {
  uint32_t loops; /* of the innermost that are, fused, one of at most so many elements */
  bool whole;     /* all loops are such vectors */
  bool divides;   /* the innermost is several */
  bool pieces;    /* what is read lies together in pieces of it alone */
};

static struct vectors vectors_of(struct vm_ask *q, const tir_loop *loops, uint32_t all, int64_t most) {
  const struct tir_block_record *record = tir_block_at(q->ir, q->args[0].statement);
  struct fused f = {.product = 1, .reduces = !q->args[3].integer && block_reduces(q->ir, q->args[0].statement)};
  uint32_t count = 0, dense = 0;
  bool divides = false;
  bool may = most > 0 && record->reads.count + record->writes.count <= MOST_REGIONS;
  while (may && dense < all) {
    tir_loop loop = loops[all - 1 - dense];
    if (!is_free(q->ir, loop) || !has_one_child(q->ir, loop)) break;
    if (!goes_on(q, loop, &f, !dense && q->args[3].integer)) break;
    dense++;
    if (f.product <= most) count = dense;
    if (f.pieces && f.product > 1 && dense == 1) { /* no loop is fused with it */
      bool many = f.product > most;
      return (struct vectors){many ? 0 : 1, false, many && f.product % most == 0, true};
    }
    if (dense == 1) divides = f.product > most && f.product % most == 0;
  }
  assert(count <= dense && dense <= all);
  bool whole = may && all && dense == all && f.product > most && f.product % most == 0;
  return (struct vectors){f.product > 1 ? count : 0, whole, divides, false};
}

bool vm_ask_data_parallel_loops(struct vm_ask *q) {
  tir_loop loops[MOST_LOOPS];
  uint32_t all = loops_around(q, loops);
  struct vectors v = vectors_of(q, loops, all, q->args[2].integer);
  struct vm_value fields[] = {
      vm_string(q->pool, "parallel", 8), vm_int(parallel_loops(q->ir, loops, all, q->args[1].integer)),
      vm_string(q->pool, "vector", 6),   vm_int(v.loops),
      vm_string(q->pool, "whole", 5),    vm_bool(v.whole),
      vm_string(q->pool, "divides", 7),  vm_bool(v.divides),
      vm_string(q->pool, "pieces", 6),   vm_bool(v.pieces)};
  q->answer = vm_list(q->pool, VM_MAP, fields, 10);
  return true;
}

bool vm_ask_reducing_loop(struct vm_ask *q) {
  tir_loop loops[MOST_LOOPS];
  uint32_t all = loops_around(q, loops), first = 0;
  for (uint32_t i = 0; i < all; i++) {
    bool thread = tir_stmt_at(q->ir, loops[i])->loop_kind == TIR_THREAD_BINDING;
    if (first && !thread) continue;
    const char *kind = vm_loop_iter_kind(q->ir, loops[i]);
    bool reduces = !strcmp(kind, "reduce") || !strcmp(kind, "mixed");
    if (reduces && !first) first = i + 1;
    if (reduces && thread) {
      first = 0;
      break;
    }
  }
  assert(first <= all); /* a loop's number from 1, or none */
  q->answer = vm_int(first);
  return true;
}

bool vm_ask_thread_extent(struct vm_ask *q) {
  tir_loop loops[MOST_LOOPS];
  enum tir_axis axis = tir_axis_named(q->args[1].text);
  for (uint32_t i = loops_around(q, loops); i-- > 0 && axis < TIR_AXIS_COUNT;) {
    if (tir_loop_axis(q->ir, loops[i]) != axis || tir_loop_extent(q->ir, loops[i]) < 0) continue;
    q->answer = vm_int(tir_loop_extent(q->ir, loops[i]));
    break;
  }
  return true;
}

bool vm_ask_threads_around(struct vm_ask *q) {
  tir_loop loops[MOST_LOOPS];
  struct vm_value items[2 * MOST_LOOPS];
  uint32_t all = loops_around(q, loops), count = 0;
  for (uint32_t i = 0; i < all; i++) {
    const struct tir_stmt_node *n = tir_stmt_at(q->ir, loops[i]);
    int64_t extent = tir_loop_extent(q->ir, loops[i]);
    if (n->loop_kind != TIR_THREAD_BINDING || extent < 0) continue;
    const char *axis = tir_text(q->ir, n->loop.thread);
    items[2 * count] = vm_string(q->pool, axis, strlen(axis));
    items[2 * count++ + 1] = vm_int(extent);
  }
  q->answer = vm_list(q->pool, VM_MAP, items, 2 * count);
  return true;
}

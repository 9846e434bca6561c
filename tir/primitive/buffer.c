/* Buffers under change: who uses them, and the way from one to another. */
#include "buffer.h"

#include "tir/analysis/access.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/detect.h"
#include "tir/analysis/loads.h"
#include "tir/arith/affine.h"
#include "tir/arith/linear.h"

#include <stdlib.h>

/* ---- Checks ---- */

bool tir_check_region_number(const struct tir *ir, tir_block block, int64_t number, bool write, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  const struct tir_block_record *b = tir_block_at(ir, block);
  uint32_t count = write ? b->writes.count : b->reads.count;
  const char *side = write ? "write" : "read", *name = tir_block_name(ir, block);
  if (number >= 0 && number < count) return true;
  if (!count)
    return tir_refuse(ir, err, MS_BUFFER_INDEX_OUT_OF_RANGE, block, "block `%s` has no %s region", name, side);
  return tir_refuse(ir, err, MS_BUFFER_INDEX_OUT_OF_RANGE, block,
                    "block `%s` has %u %s region%s: there is no number %lld", name, count, side, count == 1 ? "" : "s",
                    (long long)number);
}

bool tir_check_buffer_of(struct tir *ir, tir_block block, uint32_t index, bool write, tir_buffer *out, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_span span = tir_regions(ir, block, write);
  if (!tir_check_region_number(ir, block, index, write, err)) return false;
  *out = ir->regions.at[span.first + index].buffer;
  uint32_t rank = tir_buffer_at(ir, *out)->rank;
  if (rank <= TIR_MOST_EDITED_RANK) return true;
  return tir_refuse(ir, err, MS_TOO_LARGE, block, "buffer `%s` has %u dimensions", tir_buffer_name(ir, *out), rank);
}

bool tir_check_allocated(struct tir *ir, tir_block block, tir_buffer buffer, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  tir_stmt where = tir_buffer_at(ir, buffer)->where;
  if (where && tir_is(ir, where, TIR_BLOCK) && tir_allocates(ir, where, buffer)) return true;
  return tir_refuse(ir, err, MS_BUFFER_NOT_ALLOCATED, block, "buffer `%s` is allocated by no block",
                    tir_buffer_name(ir, buffer));
}

/* ---- Users ---- */

void tir_blocks_free(struct tir_blocks *blocks) {
  if (blocks->at != blocks->on_stack) free(blocks->at);
}

static bool holds(const struct tir_blocks *blocks, tir_block b) {
  for (uint32_t i = 0; i < blocks->count; i++)
    if (blocks->at[i] == b) return true;
  return false;
}

/* Before the first that is around it: what is inside it stands before that too. */
static void add_block(const struct tir *ir, struct tir_blocks *out, tir_block b) {
  uint32_t at = 0;
  while (at < out->count && !tir_is_below(ir, b, out->at[at])) at++;
  for (uint32_t i = out->count++; i > at; i--) out->at[i] = out->at[i - 1];
  out->at[at] = b;
}

void tir_find_users(struct tir *ir, tir_buffer buffer, tir_stmt top, struct tir_blocks *out) {
  assert(tir_is_buffer(ir, buffer));
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  uint32_t lists[] = {n->readers, n->writers, n->undeclared}, most = 0;
  for (int i = 0; i < 3; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next) most++;
  out->count = 0;
  out->at = tir_room(out->on_stack, sizeof out->on_stack, most * sizeof *out->at);
  for (int i = 0; i < 3; i++)
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next) {
      tir_block b = ir->uses.at[u].block;
      if ((!top || b == top || tir_is_below(ir, b, top)) && !holds(out, b)) add_block(ir, out, b);
    }
}

/* ---- Changes ---- */

void tir_change_own_uses(struct tir *ir, const struct tir_buffer_change *change, tir_block block) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_load_rule rule = {change->from, change->to, change->load, change->context};
  tir_rewrite_own_loads(ir, &rule, block);
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) {
    if (tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == change->from)
      change->store(ir, change->context, s);
  }
}

void tir_change_range_loads(struct tir *ir, const struct tir_buffer_change *change) {
  struct tir_load_rule rule = {change->from, change->to, change->load, change->context};
  for (uint32_t i = 1; i < ir->blocks.count && ir->indirect; i++) {
    tir_block b = ir->blocks.at[i].block;
    if (b && tir_is(ir, b, TIR_BLOCK) && tir_regions_load(ir, b, change->from)) tir_rewrite_region_loads(ir, &rule, b);
  }
}

enum { MOST_REGIONS = 32 };

typedef struct tir_region change_region(struct tir *ir, const void *context, struct tir_region region);

static void change_side(struct tir *ir, tir_block block, bool write, tir_buffer from, change_region *change,
                        const void *context) {
  struct tir_span span = tir_regions(ir, block, write);
  if (!span.count || !tir_has_region_of(ir, span, from)) return;
  struct tir_region on_stack[MOST_REGIONS], *made = tir_room(on_stack, sizeof on_stack, span.count * sizeof *made);
  for (uint32_t i = 0; i < span.count; i++) {
    made[i] = ir->regions.at[span.first + i];
    if (made[i].buffer == from) made[i] = change(ir, context, made[i]);
  }
  (write ? tir_set_writes : tir_set_reads)(ir, block, made, span.count);
  if (made != on_stack) free(made);
}

void tir_change_regions(struct tir *ir, tir_block block, tir_buffer from,
                        struct tir_region (*change)(struct tir *ir, const void *context, struct tir_region region),
                        const void *context) {
  change_side(ir, block, false, from, change, context);
  change_side(ir, block, true, from, change, context);
}

static struct tir_region retarget(struct tir *ir, const void *context, struct tir_region region) {
  (void)ir;
  region.buffer = *(const tir_buffer *)context;
  return region;
}

void tir_retarget_regions(struct tir *ir, tir_block block, tir_buffer from, tir_buffer to) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, from) && tir_is_buffer(ir, to));
  tir_change_regions(ir, block, from, retarget, &to);
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    if (ir->matches.at[i].source.buffer == from) ir->matches.at[i].source.buffer = to;
}

/* What was found of a buffer; all of it where it is declared, but not seen to be used. */
static struct tir_region region_again(struct tir *ir, const void *context, struct tir_region region) {
  const struct tir_region *found = context;
  (void)region;
  return found->ranges ? *found : tir_region_of_box(ir, found->buffer, NULL);
}

/* The block declares that it reads what it writes of the buffer, as those do whose init was taken out of them. */
static bool reads_what_is_written(const struct tir *ir, tir_block block, tir_buffer buffer) {
  const struct tir_region *read = tir_region_of(ir, tir_regions(ir, block, false), buffer);
  const struct tir_region *written = tir_region_of(ir, tir_regions(ir, block, true), buffer);
  return read && written && tir_same_operands(ir, read->ranges, written->ranges, 2 * tir_buffer_at(ir, buffer)->rank);
}

void tir_renew_regions_of(struct tir *ir, tir_block block, tir_buffer from, tir_buffer to, bool own) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, from) && tir_is_buffer(ir, to));
  struct tir_span declared[] = {tir_regions(ir, block, false), tir_regions(ir, block, true)};
  struct tir_region found[2];
  bool same = reads_what_is_written(ir, block, from);
  tir_renew_regions(ir, block);
  for (int write = 0; write < 2; write++) {
    const struct tir_region *region = tir_region_of(ir, tir_regions(ir, block, write || own), to);
    found[write] = region ? *region : (struct tir_region){to, TIR_NONE};
  }
  if (same && !found[0].ranges) found[0] = found[1];
  for (int write = 0; write < 2; write++) {
    (write ? tir_set_writes : tir_set_reads)(ir, block, ir->regions.at + declared[write].first, declared[write].count);
    change_side(ir, block, write, from, region_again, &found[write]);
  }
}

/* ---- Indices ---- */

static void add_var(const struct tir *ir, struct tir_vars_in *out, tir_var v) {
  const struct tir_var_node *n = &ir->vars.at[v];
  if (!n->min || !n->extent || out->count == TIR_MOST_VARS_IN) return;
  out->units = out->units || tir_is_const(ir, n->extent, 1);
  out->at[out->count++] = v;
}

void tir_find_vars_in(const struct tir *ir, tir_block block, struct tir_vars_in *out) {
  assert(tir_is(ir, block, TIR_BLOCK));
  out->count = 0;
  out->units = false;
  for (tir_block b = block; b; b = tir_parent_block(ir, b)) {
    struct tir_span iters = tir_block_at(ir, b)->iters;
    for (uint32_t i = 0; i < iters.count; i++) add_var(ir, out, ir->iters.at[iters.first + i].var);
  }
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) {
    if (tir_is(ir, s, TIR_LOOP)) add_var(ir, out, tir_as(ir, s, TIR_LOOP)->loop.var);
  }
}

void tir_simplify_access(struct tir *ir, const struct tir_vars_in *vars, const tir_expr *indices, uint32_t count,
                         tir_expr *out) {
  tir_expr plain[TIR_MOST_EDITED_RANK];
  bool sums = false;
  assert(count <= TIR_MOST_EDITED_RANK);
  for (uint32_t i = 0; i < count; i++) {
    plain[i] = indices[i];
    sums = sums || (tir_is_index(ir, indices[i]) && tir_at(ir, indices[i])->kind > TIR_VAR);
  }
  if (sums && vars->units)
    tir_simplify_iter_map(ir, plain, count, vars->at, vars->count, TIR_NONE, TIR_MAP_SURJECTIVE, true, out);
  for (uint32_t i = 0; i < count; i++)
    if (!sums || !vars->units || tir_at(ir, plain[i])->kind == TIR_VAR) out[i] = plain[i];
}

tir_buffer tir_copy_buffer(struct tir *ir, tir_buffer from) {
  assert(tir_is_buffer(ir, from));
  tir_buffer made = tir_grow_buffers(ir, 1);
  struct tir_buffer_node n = *tir_buffer_at(ir, from);
  n.readers = n.writers = n.undeclared = n.where = TIR_NONE;
  *tir_buffer_at(ir, made) = n;
  return made;
}

void tir_replace_alloc(struct tir *ir, tir_block block, tir_buffer from, tir_buffer to) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, from) && tir_is_buffer(ir, to));
  struct tir_span old = tir_block_at(ir, block)->allocs;
  uint32_t first = tir_grow_operands(ir, old.count);
  for (uint32_t i = 0; i < old.count; i++) {
    tir_buffer b = ir->operands.at[old.first + i];
    ir->operands.at[first + i] = b == from ? to : b;
  }
  tir_block_at(ir, block)->allocs.first = first;
  tir_buffer_at(ir, to)->where = block;
}

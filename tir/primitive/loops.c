/* What the primitives that remake loops share. */
#include "loops.h"

#include "tir/analysis/analysis.h"
#include "tir/analysis/detect.h"
#include "tir/analysis/loads.h"
#include "tir/arith/affine.h"
#include "tir/arith/known.h"

bool tir_check_free_loop(struct tir *ir, tir_loop loop, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  if (n->annotations.count) return tir_refuse(ir, err, MS_LOOP_ANNOTATED_OR_BOUND, loop, "this loop is annotated");
  if (n->loop_kind == TIR_THREAD_BINDING)
    return tir_refuse(ir, err, MS_LOOP_ANNOTATED_OR_BOUND, loop, "this loop is bound to %s",
                      tir_text(ir, n->loop.thread));
  return true;
}

bool tir_check_plain_loop(struct tir *ir, tir_loop loop, ms_error *err) {
  assert(tir_is(ir, loop, TIR_LOOP));
  if (!tir_check_free_loop(ir, loop, err)) return false;
  if (!tir_loop_starts_at_zero(ir, loop))
    return tir_refuse(ir, err, MS_LOOP_NOT_FROM_ZERO, loop, "this loop does not start at zero");
  return true;
}

enum { MOST_ITERS = 64, MOST_VARS = 64 };

/* Blocks without iterations bind nothing: those inside them see the loops around them. */
static uint32_t collect_vars(const struct tir *ir, tir_block block, tir_block scope, tir_var *vars) {
  uint32_t count = 0;
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s && s != scope; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP)) continue;
    if (count < MOST_VARS) vars[count] = tir_as(ir, s, TIR_LOOP)->loop.var;
    count++;
  }
  return count;
}

/* More loops or iterations than there is room for: the bindings stay as they are, which is as right. */
static void simplify_block(struct tir *ir, tir_block block, tir_block scope, bool preserve_unit_iters) {
  tir_var vars[MOST_VARS];
  tir_expr bindings[MOST_ITERS] = {TIR_NONE};
  uint32_t iters = tir_block_at(ir, block)->iters.count, count = collect_vars(ir, block, scope, vars);
  if (iters > MOST_ITERS || count > MOST_VARS) return;
  for (uint32_t i = 0; i < iters; i++) bindings[i] = tir_iters(ir, block)[i].binding;
  bool affine = tir_simplify_iter_map(ir, bindings, iters, vars, count, tir_as(ir, block, TIR_BLOCK)->block.predicate,
                                      TIR_MAP_SURJECTIVE, !preserve_unit_iters, bindings);
  for (uint32_t i = 0; i < iters; i++) tir_iters(ir, block)[i].binding = bindings[i];
  if (affine && tir_loop_vars(ir, block, TIR_NONE, NULL, 0) == count) tir_keep_affine(ir, block);
}

void tir_simplify_bindings(struct tir *ir, tir_loop loop, bool preserve_unit_iters) {
  assert(tir_is(ir, loop, TIR_LOOP));
  tir_block scope = tir_parent_block(ir, loop);
  for (tir_stmt s = tir_next(ir, loop, loop); s;) {
    bool bound = tir_is(ir, s, TIR_BLOCK) && tir_block_at(ir, s)->iters.count;
    if (bound && (!preserve_unit_iters || tir_as(ir, s, TIR_BLOCK)->block.predicate))
      simplify_block(ir, s, scope, preserve_unit_iters);
    s = bound ? tir_after(ir, s, loop) : tir_next(ir, s, loop);
  }
}

bool tir_has_guard(const struct tir *ir, tir_loop loop) {
  assert(tir_is(ir, loop, TIR_LOOP));
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop))
    if (tir_is(ir, s, TIR_BLOCK) && tir_as(ir, s, TIR_BLOCK)->block.predicate) return true;
  return false;
}

bool tir_check_bindings_kept(struct tir *ir, tir_loop loop, struct tir *after, ms_error *err) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next_in_scope(ir, s, loop))
    if (tir_is(ir, s, TIR_BLOCK) && tir_is_affine_binding(ir, s, TIR_NONE) &&
        !tir_is_affine_binding(after, s, TIR_NONE))
      return tir_refuse(ir, err, MS_BINDING_LOST, s, "this block's bindings would be affine no more");
  return true;
}

static tir_loop copy_loop(struct tir *ir, tir_loop loop, const char *suffix) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct tir_var_node v = ir->vars.at[n.loop.var];
  tir_expr min = tir_subst(ir, n.loop.min), extent = tir_subst(ir, n.loop.extent);
  tir_name name = *suffix ? tir_name_suffix(ir, v.name, suffix) : v.name;
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, name, v.type, min, extent);
  tir_loop copy = tir_new_loop(ir, var, min, extent, (enum tir_loop_kind)n.loop_kind);
  struct tir_span annotations = tir_copy_annotations(ir, n.annotations);
  tir_stmt_at(ir, copy)->annotations = annotations;
  tir_as(ir, copy, TIR_LOOP)->loop.thread = n.loop.thread;
  tir_subst_var(ir, n.loop.var, tir_var_expr(ir, var));
  return copy;
}

void tir_copy_nest(struct tir *ir, const tir_loop *loops, uint32_t count, const char *suffix, tir_loop *out) {
  assert(count > 0);
  for (uint32_t i = 0; i < count; i++) {
    out[i] = copy_loop(ir, loops[i], suffix);
    if (i > 0) tir_append(ir, out[i - 1], TIR_BODY, out[i]);
  }
}

tir_stmt tir_put_in_loops(struct tir *ir, tir_stmt s, const tir_var *vars, uint32_t count) {
  for (uint32_t i = count; i-- > 0;) {
    struct tir_var_node v = *tir_var_at(ir, vars[i]);
    tir_loop loop = tir_new_loop(ir, vars[i], v.min, v.extent, TIR_SERIAL);
    tir_append(ir, loop, TIR_BODY, s);
    s = loop;
  }
  return s;
}

static bool uses_buffer(struct tir *ir, void *context, tir_expr e) {
  return tir_uses_buffer(ir, e, *(const tir_buffer *)context);
}

/* Blocks below too: those of an init that was made a block before. */
static bool loads_buffer(struct tir *ir, tir_block init, tir_buffer buffer) {
  for (tir_stmt s = init; s; s = tir_next(ir, s, init))
    if (tir_is(ir, s, TIR_BLOCK) && tir_any_own_expr(ir, s, uses_buffer, &buffer)) return true;
  return false;
}

/* Whether ranges depend on a reduction; opaque: or on an opaque iteration. */
static bool is_reduced(const struct tir *ir, tir_block block, const tir_expr *ranges, uint32_t rank, bool opaque) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    bool kept = ir->iters.at[i].kind == TIR_SPATIAL || (ir->iters.at[i].kind == TIR_OPAQUE && !opaque);
    for (uint32_t d = 0; d < 2 * rank && !kept; d++)
      if (tir_uses_var(ir, ranges[d], ir->iters.at[i].var)) return true;
  }
  return false;
}

static bool any_reduced(const struct tir *ir, tir_block block, struct tir_span regions, bool opaque) {
  for (uint32_t i = regions.first; i < regions.first + regions.count; i++) {
    struct tir_region r = ir->regions.at[i];
    if (is_reduced(ir, block, ir->operands.at + r.ranges, tir_buffer_at(ir, r.buffer)->rank, opaque)) return true;
  }
  return false;
}

/* A region of the block in the init's terms: where it depends on a reduction, what is found to be touched; where that
 * is not known, the whole buffer. */
static struct tir_region init_region(struct tir *ir, tir_block block, struct tir_region r, bool opaque,
                                     struct tir_span found) {
  bool reduced = is_reduced(ir, block, ir->operands.at + r.ranges, tir_buffer_at(ir, r.buffer)->rank, opaque);
  if (!reduced) return r;
  const struct tir_region *touched = tir_region_of(ir, found, r.buffer);
  return touched && !tir_buffer_at(ir, r.buffer)->user_annotated ? *touched : tir_region_of_box(ir, r.buffer, NULL);
}

/* Gives `init`, the init of the block or a block in it, these regions in the init's terms; of the reads, those of
 * buffers that it loads. */
static void set_init_regions(struct tir *ir, tir_block block, tir_block init, struct tir_span reads,
                             struct tir_span writes) {
  struct tir_span read = {0, 0}, written = {0, 0};
  if (any_reduced(ir, block, reads, true) || any_reduced(ir, block, writes, false)) {
    bool known = tir_detect_regions(ir, init, true, true);
    if (known) read = tir_block_at(ir, init)->reads, written = tir_block_at(ir, init)->writes;
  }
  uint32_t first = tir_grow_regions(ir, reads.count + writes.count), count = 0;
  for (uint32_t i = 0; i < writes.count; i++) {
    struct tir_region r = init_region(ir, block, ir->regions.at[writes.first + i], false, written);
    ir->regions.at[first + i] = r;
  }
  for (uint32_t i = 0; i < reads.count; i++) {
    if (!loads_buffer(ir, init, ir->regions.at[reads.first + i].buffer)) continue;
    struct tir_region r = init_region(ir, block, ir->regions.at[reads.first + i], true, read);
    ir->regions.at[first + writes.count + count++] = r;
  }
  tir_set_writes(ir, init, ir->regions.at + first, writes.count);
  tir_set_reads(ir, init, ir->regions.at + first + writes.count, count);
}

/* Blocks below the init, made of it before, name no iteration that it has not; those further in first. */
static void widen_below(struct tir *ir, tir_block block, tir_stmt s) {
  for (; s; s = tir_stmt_at(ir, s)->next) {
    widen_below(ir, block, tir_stmt_at(ir, s)->first[TIR_INIT]);
    widen_below(ir, block, tir_stmt_at(ir, s)->first[TIR_BODY]);
    widen_below(ir, block, tir_stmt_at(ir, s)->first[TIR_ELSE]);
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span reads = tir_block_at(ir, s)->reads, writes = tir_block_at(ir, s)->writes;
    if (any_reduced(ir, block, reads, true) || any_reduced(ir, block, writes, false))
      set_init_regions(ir, block, s, reads, writes);
  }
}

static bool stores_to(const struct tir *ir, tir_stmt s, tir_buffer buffer) {
  return tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == buffer;
}

static bool evaluates(struct tir *ir, tir_stmt s, tir_buffer buffer) {
  tir_expr own[4];
  uint32_t count = tir_stmt_exprs(ir, s, own);
  for (uint32_t i = 0; i < count; i++)
    if (own[i] && tir_uses_buffer(ir, own[i], buffer)) return true;
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  for (uint32_t i = 0; n.kind == TIR_STORE && i < tir_buffer_at(ir, n.store.buffer)->rank; i++)
    if (tir_uses_buffer(ir, ir->operands.at[n.store.indices + i], buffer)) return true;
  return false;
}

static bool init_touches(struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt top = tir_stmt_at(ir, block)->first[TIR_INIT]; top; top = tir_stmt_at(ir, top)->next)
    for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
      if (tir_is(ir, s, TIR_BLOCK) && tir_any_own_expr(ir, s, uses_buffer, &buffer)) return true;
      if (!tir_is(ir, s, TIR_BLOCK) && (stores_to(ir, s, buffer) || evaluates(ir, s, buffer))) return true;
    }
  return false;
}

bool tir_check_init_buffers(struct tir *ir, tir_block block, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_span allocs = tir_block_at(ir, block)->allocs, matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = 0; i < allocs.count + matches.count; i++) {
    tir_buffer b =
        i < allocs.count ? ir->operands.at[allocs.first + i] : ir->matches.at[matches.first + i - allocs.count].buffer;
    if (init_touches(ir, block, b))
      return tir_refuse(ir, err, MS_INIT_USES_OWN_BUFFER, block, "the init of block `%s` touches `%s`",
                        tir_block_name(ir, block), tir_buffer_name(ir, b));
  }
  return true;
}

void tir_take_init_regions(struct tir *ir, tir_block block, tir_block init) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, init, TIR_BLOCK));
  struct tir_span reads = tir_block_at(ir, block)->reads, writes = tir_block_at(ir, block)->writes;
  widen_below(ir, block, tir_stmt_at(ir, init)->first[TIR_BODY]);
  set_init_regions(ir, block, init, reads, writes);
}

void tir_read_what_is_written(struct tir *ir, tir_block block) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct tir_span reads = tir_block_at(ir, block)->reads, writes = tir_block_at(ir, block)->writes;
  uint32_t first = tir_grow_regions(ir, reads.count + writes.count), count = 0;
  for (uint32_t i = 0; i < writes.count; i++) {
    struct tir_region r = ir->regions.at[writes.first + i];
    if (!tir_has_region_of(ir, reads, r.buffer)) ir->regions.at[first + count++] = r;
  }
  for (uint32_t i = 0; i < reads.count; i++) ir->regions.at[first + count++] = ir->regions.at[reads.first + i];
  tir_set_reads(ir, block, ir->regions.at + first, count);
}

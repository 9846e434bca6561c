/* Copying stages, and blocks that use a buffer at one place. */
#include "copy_stage.h"

#include "loops.h"
#include "tir/analysis/loads.h"

#include <stdlib.h>

/* ---- Making ---- */

bool tir_check_copied_back(struct tir *ir, tir_block block, tir_buffer buffer, const tir_expr *places, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  if (!tir_within_bounds(ir, buffer, places)) return tir_check_stores_all(ir, block, buffer, TIR_NONE, err);
  return tir_refuse(ir, err, MS_REINDEX_BOUNDS, block, "an index of buffer `%s` may leave it: a condition guards it",
                    tir_buffer_name(ir, buffer));
}

static tir_expr value_of(struct tir *ir, const struct tir_copy_stage *s) {
  tir_expr value = tir_load(ir, s->from, s->from_at, s->from_rank, TIR_NONE);
  tir_expr within = s->inside ? TIR_NONE : tir_within_bounds(ir, s->from, s->from_at);
  if (!within) return value;
  tir_type type = tir_type_of(ir, value);
  tir_expr outside = s->outside;
  if (!outside) outside = tir_type_is_float(type) ? tir_float(ir, type, 0.0) : tir_int(ir, type, 0);
  tir_expr args[3] = {within, value, outside};
  return tir_call(ir, type, tir_symbol_of(ir, "if_then_else"), args, 3);
}

tir_symbol tir_free_block_name(struct tir *ir, tir_symbol name) {
  tir_symbol found = name;
  for (uint32_t n = 1; ir->symbols.at[found].first_block; n++)
    found = tir_symbol_format(ir, "%.1000s_%u", tir_text(ir, name), n);
  return found;
}

void tir_copy_dimension(struct tir *ir, struct tir_copy_stage *s, uint32_t d, tir_expr extent) {
  assert(d < s->loop_count && d < s->iter_count && d < TIR_MOST_EDITED_RANK);
  tir_type type = tir_type_of(ir, extent);
  tir_expr zero = tir_int(ir, type, 0);
  s->loops[d] = tir_new_var(ir, TIR_VAR_LOOP, tir_name_ordinal(ir, tir_symbol_of(ir, "i"), d), type, zero, extent);
  tir_var v = tir_new_var(ir, TIR_VAR_ITER, tir_name_ordinal(ir, tir_symbol_of(ir, "v"), d), type, zero, extent);
  s->iters[d] = (struct tir_iter){v, TIR_SPATIAL, tir_var_expr(ir, s->loops[d])};
  s->from_at[d] = s->to_at[d] = tir_var_expr(ir, v);
}

tir_stmt tir_make_copy_stage(struct tir *ir, const struct tir_copy_stage *s, tir_block *out) {
  assert(s->loop_count <= TIR_MOST_STAGE && s->iter_count <= TIR_MOST_STAGE);
  tir_block block = tir_new_block(ir, s->name);
  tir_set_iters(ir, block, s->iters, s->iter_count);
  tir_as(ir, block, TIR_BLOCK)->block.predicate = s->predicate;
  struct tir_region reads = tir_point_region(ir, s->from, s->from_at), writes = tir_point_region(ir, s->to, s->to_at);
  tir_set_reads(ir, block, &reads, 1);
  tir_set_writes(ir, block, &writes, 1);
  tir_expr value = value_of(ir, s);
  tir_append(ir, block, TIR_BODY, tir_new_store(ir, s->to, s->to_at, value));
  *out = block;
  return tir_put_in_loops(ir, block, s->loops, s->loop_count);
}

/* ---- Finding ---- */

struct finding {
  tir_buffer buffer;
  struct tir_single_access *out;
  uint32_t found;
  bool differs;
};

static void meet(struct tir *ir, struct finding *f, const tir_expr *indices) {
  for (uint32_t i = 0; i < f->out->rank; i++) {
    if (!f->found) f->out->at[i] = indices[i];
    f->differs = f->differs || !tir_prove_equal(ir, f->out->at[i], indices[i]);
  }
  f->found++;
}

enum { MOST_LOADS = 64 };

static bool meet_loads(struct tir *ir, void *context, tir_expr e) {
  struct finding *f = context;
  tir_expr loads[MOST_LOADS], indices[TIR_MOST_EDITED_RANK];
  uint32_t count = tir_find_loads(ir, e, f->buffer, loads, MOST_LOADS);
  f->differs = f->differs || count > MOST_LOADS || tir_uses_opaquely(ir, e, f->buffer);
  for (uint32_t i = 0; i < count && !f->differs; i++) {
    struct tir_expr_node n = *tir_at(ir, loads[i]);
    for (uint32_t d = 0; d < n.count; d++) indices[d] = ir->operands.at[n.operands + d];
    meet(ir, f, indices);
  }
  return false;
}

static void meet_stores(struct tir *ir, struct finding *f, tir_block block) {
  tir_expr indices[TIR_MOST_EDITED_RANK];
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind != TIR_STORE || n->store.buffer != f->buffer) continue;
    f->differs = f->differs || n->store.predicate;
    for (uint32_t d = 0; d < f->out->rank; d++) indices[d] = ir->operands.at[n->store.indices + d];
    meet(ir, f, indices);
  }
}

/* Of a loop, or bound, in the block: other variables are iterations, its own or of blocks around it. */
static bool is_inner(const struct tir *ir, const void *context, tir_var v) {
  (void)context;
  return tir_var_at(ir, v)->kind == TIR_VAR_LOOP || tir_is_let(ir, v);
}

bool tir_uses_inner_var(const struct tir *ir, tir_expr e) { return tir_any_var(ir, e, is_inner, NULL); }

static bool is_over_iters(const struct tir *ir, const struct tir_single_access *access) {
  for (uint32_t i = 0; i < access->rank; i++)
    if (tir_at(ir, access->at[i])->flags & (TIR_HAS_LOAD | TIR_HAS_CALL) || tir_uses_inner_var(ir, access->at[i]))
      return false;
  return true;
}

/* A unit loop in the block adds nothing to a place. */
static void drop_unit_loops(struct tir *ir, tir_block block, struct tir_single_access *access) {
  bool any = false;
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    if (n.kind != TIR_LOOP || !tir_is_const(ir, n.loop.extent, 1)) continue;
    tir_subst_var(ir, n.loop.var, n.loop.min);
    any = true;
  }
  for (uint32_t i = 0; i < access->rank && any; i++) access->at[i] = tir_subst(ir, access->at[i]);
  tir_subst_clear(ir);
}

bool tir_find_single_access(struct tir *ir, tir_block block, tir_buffer buffer, bool unit_loops,
                            struct tir_single_access *out, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  if (tir_block_at(ir, block)->matches.count || tir_child_blocks(ir, block, NULL, 0))
    return tir_refuse(ir, err, MS_NOT_A_LEAF, block, "block `%s` holds other blocks, or views",
                      tir_block_name(ir, block));
  struct finding f = {.buffer = buffer, .out = out};
  out->rank = tir_buffer_at(ir, buffer)->rank;
  meet_stores(ir, &f, block);
  tir_any_own_expr(ir, block, meet_loads, &f);
  if (f.found && unit_loops) drop_unit_loops(ir, block, out);
  if (f.found && !f.differs && is_over_iters(ir, out)) return true;
  return tir_refuse(ir, err, MS_NOT_ONE_ACCESS, block, "block `%s` does not use buffer `%s` at one place",
                    tir_block_name(ir, block), tir_buffer_name(ir, buffer));
}

/* ---- Replacing ---- */

struct replacement {
  tir_buffer to;
  const tir_expr *at;
  uint32_t rank;
};

static tir_expr load_of_copy(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  (void)indices, (void)count;
  const struct replacement *r = context;
  return tir_load(ir, r->to, r->at, r->rank, TIR_NONE);
}

static void store(struct tir *ir, void *context, tir_stmt s) {
  const struct replacement *r = context;
  uint32_t first = tir_add_operands(ir, r->at, r->rank);
  tir_as(ir, s, TIR_STORE)->store.buffer = r->to;
  tir_as(ir, s, TIR_STORE)->store.indices = first;
}

static struct tir_region replace_region(struct tir *ir, const void *context, struct tir_region region) {
  (void)region;
  const struct replacement *r = context;
  return tir_point_region(ir, r->to, r->at);
}

void tir_replace_access(struct tir *ir, tir_block block, tir_buffer from, tir_buffer to, const tir_expr *at,
                        uint32_t rank) {
  assert(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, from) && tir_is_buffer(ir, to));
  struct replacement r = {to, at, rank};
  struct tir_buffer_change change = {from, to, load_of_copy, store, &r};
  tir_change_own_uses(ir, &change, block);
  tir_change_regions(ir, block, from, replace_region, &r);
}

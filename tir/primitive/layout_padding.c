/* Nests that write all of a buffer, and what becomes of them where its new layout has padding. */
#include "layout_padding.h"

#include <stdio.h>

/* ---- Finding ---- */

static bool is_iter_of(const struct tir *ir, tir_block block, uint32_t i, tir_expr index) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (i >= iters.count || ir->iters.at[iters.first + i].kind != TIR_SPATIAL) return false;
  return tir_var_expr(ir, ir->iters.at[iters.first + i].var) == index;
}

/* A loop, or a value that is bound: what it evaluates may be evaluated in the padding too, where loads would leave
 * their buffers. */
static bool is_harmless(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  uint32_t flags = TIR_HAS_LOAD;
  if (n->kind == TIR_BIND) flags = tir_at(ir, n->bind.value)->flags;
  if (n->kind == TIR_LOOP) flags = tir_at(ir, n->loop.min)->flags | tir_at(ir, n->loop.extent)->flags;
  return !(flags & (TIR_HAS_LOAD | TIR_HAS_CALL));
}

/* All that is stored under the block goes to the buffer, at iterations that follow one another, under no condition. */
static bool find_iters(const struct tir *ir, tir_buffer buffer, tir_block block, uint32_t *first) {
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, stores = 0;
  *first = 0;
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind != TIR_STORE && !is_harmless(ir, s)) return false;
    if (n->kind != TIR_STORE) continue;
    if (n->store.buffer != buffer || n->store.predicate || !rank) return false;
    const uint32_t *indices = ir->operands.at + n->store.indices;
    while (!stores && *first < tir_block_at(ir, block)->iters.count && !is_iter_of(ir, block, *first, indices[0]))
      ++*first;
    for (uint32_t i = 0; i < rank; i++)
      if (!is_iter_of(ir, block, *first + i, indices[i])) return false;
    stores++;
  }
  return stores > 0;
}

/* The loop around the statement, up to its block, or as far as below `high` if that is given. */
static tir_loop loop_of(const struct tir *ir, tir_stmt inner, tir_block high, tir_expr var) {
  for (tir_stmt s = tir_stmt_at(ir, inner)->parent; s && s != high; s = tir_stmt_at(ir, s)->parent) {
    if (tir_is(ir, s, TIR_LOOP) && tir_var_expr(ir, tir_as(ir, s, TIR_LOOP)->loop.var) == var) return s;
    if (!high && tir_is(ir, s, TIR_BLOCK)) return TIR_NONE;
  }
  return TIR_NONE;
}

/* The loop is the next of the nest: alone in the one before, over all of its dimension. */
static bool add_loop(const struct tir *ir, tir_buffer buffer, uint32_t i, tir_loop loop, struct tir_full_nest *out) {
  assert(i < tir_buffer_at(ir, buffer)->rank);
  if (!loop ||
      (i && (tir_stmt_at(ir, loop)->parent != out->loops[i - 1] || tir_only_child(ir, out->loops[i - 1]) != loop)))
    return false;
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  out->loops[i] = loop;
  return n->loop_kind == TIR_SERIAL && tir_is_const(ir, n->loop.min, 0) &&
         n->loop.extent == ir->operands.at[tir_buffer_at(ir, buffer)->shape + i];
}

static bool find_nest_of_iters(const struct tir *ir, tir_buffer buffer, tir_block block, struct tir_full_nest *out) {
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (!find_iters(ir, buffer, block, &out->first_iter)) return false;
  for (uint32_t i = 0; i < rank; i++)
    if (!add_loop(ir, buffer, i, loop_of(ir, block, TIR_NONE, tir_iters(ir, block)[out->first_iter + i].binding), out))
      return false;
  return tir_is_nest_of(ir, out->loops[rank - 1], block); /* nothing else would run in the padding too */
}

static bool uses_loops(const struct tir *ir, const struct tir_full_nest *nest, uint32_t rank, tir_expr e) {
  for (uint32_t i = 0; i < rank; i++)
    if (tir_uses_var(ir, e, tir_as(ir, nest->loops[i], TIR_LOOP)->loop.var)) return true;
  return false;
}

/* The block runs for the same of its iterations, whatever the nest's loops are at. */
static bool is_apart(const struct tir *ir, tir_block block, const struct tir_full_nest *nest, uint32_t rank) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if (uses_loops(ir, nest, rank, ir->iters.at[i].binding)) return false;
  return !tir_as(ir, block, TIR_BLOCK)->block.predicate && !tir_block_at(ir, block)->matches.count;
}

static bool stores_at_loops(const struct tir *ir, tir_buffer buffer, tir_stmt store, const struct tir_full_nest *nest) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, store);
  if (n->store.buffer != buffer || n->store.predicate) return false;
  for (uint32_t i = 0; i < tir_buffer_at(ir, buffer)->rank; i++)
    if (ir->operands.at[n->store.indices + i] != tir_var_expr(ir, tir_as(ir, nest->loops[i], TIR_LOOP)->loop.var))
      return false;
  return true;
}

/* The statement may run where the loops are in the padding: it only stores to the buffer there, what is then replaced,
 * and evaluates nothing else that loads. */
static bool may_run_in_padding(const struct tir *ir, tir_buffer buffer, tir_stmt s, const struct tir_full_nest *nest) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  switch (n->kind) {
  case TIR_BLOCK: return is_apart(ir, s, nest, tir_buffer_at(ir, buffer)->rank);
  case TIR_STORE: return stores_at_loops(ir, buffer, s, nest);
  default: return is_harmless(ir, s);
  }
}

static tir_stmt first_store(const struct tir *ir, tir_buffer buffer, tir_block block) {
  tir_stmt s = tir_next(ir, block, block);
  while (s && !(tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == buffer))
    s = tir_next(ir, s, block);
  return s;
}

/* The block stores at loops, in it or around it, and not at its iterations. */
static bool find_nest_of_loops(const struct tir *ir, tir_buffer buffer, tir_block block, struct tir_full_nest *out) {
  tir_stmt store = first_store(ir, buffer, block);
  tir_block scope = tir_parent_block(ir, block);
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (!store || !rank || !scope) return false;
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr index = ir->operands.at[tir_as(ir, store, TIR_STORE)->store.indices + i];
    if (!add_loop(ir, buffer, i, loop_of(ir, store, scope, index), out)) return false;
  }
  for (tir_stmt s = tir_next(ir, out->loops[0], out->loops[0]); s; s = tir_next(ir, s, out->loops[0]))
    if (!may_run_in_padding(ir, buffer, s, out)) return false;
  return true;
}

bool tir_find_full_nest(struct tir *ir, tir_buffer buffer, tir_block block, struct tir_full_nest *out) {
  assert(tir_is_buffer(ir, buffer) && tir_is(ir, block, TIR_BLOCK));
  out->block = block;
  out->by_loops = find_nest_of_loops(ir, buffer, block, out);
  return out->by_loops || find_nest_of_iters(ir, buffer, block, out);
}

/* ---- Filling ---- */

static void make_vars(struct tir *ir, const struct tir_padded_layout *layout, enum tir_var_kind kind, const char *stem,
                      tir_expr *out) {
  for (uint32_t i = 0; i < layout->new_rank; i++) {
    tir_type type = tir_type_of(ir, layout->shape[i]);
    tir_var v = tir_new_var(ir, kind, tir_name_ordinal(ir, tir_symbol_of(ir, stem), i), type, tir_int(ir, type, 0),
                            layout->shape[i]);
    out[i] = tir_var_expr(ir, v);
  }
}

/* The old indices, and whether there is padding, where the new indices are `at`. */
static tir_expr values_at(struct tir *ir, const struct tir_padded_layout *layout, const tir_expr *at,
                          tir_expr *values) {
  for (uint32_t i = 0; i < layout->new_rank; i++) tir_subst_var(ir, tir_at(ir, layout->outputs[i])->ref, at[i]);
  for (uint32_t i = 0; i < layout->rank; i++) values[i] = tir_subst(ir, layout->values[i]);
  tir_expr padding = tir_subst(ir, layout->padding);
  tir_subst_clear(ir);
  return padding;
}

/* Gives the innermost of the new loops. */
static tir_loop replace_loops(struct tir *ir, const struct tir_padded_layout *layout, const struct tir_full_nest *nest,
                              const tir_expr *loops) {
  tir_loop above = TIR_NONE;
  for (uint32_t i = 0; i < layout->new_rank; i++) {
    const struct tir_var_node v = ir->vars.at[tir_at(ir, loops[i])->ref];
    tir_loop loop = tir_new_loop(ir, tir_at(ir, loops[i])->ref, v.min, v.extent, TIR_SERIAL);
    if (above)
      tir_append(ir, above, TIR_BODY, loop);
    else
      tir_insert_before(ir, nest->loops[0], loop);
    above = loop;
  }
  tir_move_children(ir, nest->loops[layout->rank - 1], TIR_BODY, above, TIR_BODY);
  tir_kill(ir, nest->loops[0]);
  return above;
}

/* Old loops and iterations are the inverse of the new ones, in all that the nest holds. */
static void subst_nest(struct tir *ir, const struct tir_padded_layout *layout, const struct tir_full_nest *nest,
                       const tir_var *vars, const tir_expr *by_loops, const tir_expr *by_iters) {
  for (uint32_t i = 0; i < layout->rank; i++) {
    tir_subst_var(ir, vars[i], by_loops[i]);
    if (nest->by_loops) continue;
    struct tir_iter iter = tir_iters(ir, nest->block)[nest->first_iter + i];
    tir_subst_var(ir, iter.var, by_iters[i]);
  }
}

enum { MOST_ITERS = 64 };

static void replace_iters(struct tir *ir, const struct tir_padded_layout *layout, const struct tir_full_nest *nest,
                          const tir_expr *iters, const tir_expr *loops) {
  struct tir_iter made[MOST_ITERS + TIR_MOST_EDITED_RANK];
  struct tir_span old = tir_block_at(ir, nest->block)->iters;
  uint32_t count = 0;
  for (uint32_t i = 0; i < nest->first_iter; i++) made[count++] = ir->iters.at[old.first + i];
  for (uint32_t i = 0; i < layout->new_rank; i++)
    made[count++] = (struct tir_iter){tir_at(ir, iters[i])->ref, TIR_SPATIAL, loops[i]};
  for (uint32_t i = nest->first_iter + layout->rank; i < old.count; i++) made[count++] = ir->iters.at[old.first + i];
  tir_set_iters(ir, nest->block, made, count);
}

static void replace_stores(struct tir *ir, const struct tir_padded_layout *layout, tir_stmt top, tir_buffer to,
                           const tir_expr *iters, tir_expr padding) {
  tir_symbol choose = tir_symbol_of(ir, "if_then_else");
  for (tir_stmt s = tir_next(ir, top, top); s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    tir_expr args[3] = {padding, layout->pad, tir_as(ir, s, TIR_STORE)->store.value};
    uint32_t indices = tir_add_operands(ir, iters, layout->new_rank);
    tir_expr value = tir_call(ir, tir_type_of(ir, layout->pad), choose, args, 3);
    struct tir_stmt_node *n = tir_stmt_at(ir, s);
    n->store.buffer = to;
    n->store.indices = indices;
    n->store.value = value;
  }
}

void tir_fill_padding(struct tir *ir, const struct tir_padded_layout *layout, const struct tir_full_nest *nest,
                      tir_buffer to) {
  assert(tir_is_buffer(ir, to));
  tir_expr loops[TIR_MOST_EDITED_RANK], iters[TIR_MOST_EDITED_RANK], by_loops[TIR_MOST_EDITED_RANK],
      by_iters[TIR_MOST_EDITED_RANK];
  tir_var vars[TIR_MOST_EDITED_RANK];
  for (uint32_t i = 0; i < layout->rank; i++) vars[i] = tir_as(ir, nest->loops[i], TIR_LOOP)->loop.var;
  make_vars(ir, layout, TIR_VAR_LOOP, "axis", loops);
  if (!nest->by_loops) make_vars(ir, layout, TIR_VAR_ITER, "v_axis", iters);
  const tir_expr *at = nest->by_loops ? loops : iters;
  values_at(ir, layout, loops, by_loops);
  tir_expr padding = values_at(ir, layout, at, by_iters);
  tir_loop innermost = replace_loops(ir, layout, nest, loops);
  subst_nest(ir, layout, nest, vars, by_loops, by_iters);
  for (tir_stmt s = tir_stmt_at(ir, innermost)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  replace_stores(ir, layout, innermost, to, at, padding);
  if (!nest->by_loops) replace_iters(ir, layout, nest, iters, loops);
}

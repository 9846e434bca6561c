/* Nests that write all of a buffer, and what becomes of them where its new layout has padding. */
#include "layout_padding.h"

#include <stdio.h>

/* ---- Finding ---- */

static bool is_iter_of(const struct tir *ir, tir_block block, uint32_t i, tir_expr index) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (i >= iters.count || ir->iters.at[iters.first + i].kind != TIR_SPATIAL) return false;
  return tir_var_expr(ir, ir->iters.at[iters.first + i].var) == index;
}

/* All that is stored under the block goes to the buffer, at iterations that follow one another. */
static bool find_iters(const struct tir *ir, tir_buffer buffer, tir_block block, uint32_t *first) {
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, stores = 0;
  *first = 0;
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind == TIR_BLOCK) return false;
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

static tir_loop loop_of(const struct tir *ir, tir_block block, tir_expr var) {
  for (tir_stmt s = tir_stmt_at(ir, block)->parent; s && !tir_is(ir, s, TIR_BLOCK); s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_var_expr(ir, tir_stmt_at(ir, s)->loop.var) == var) return s;
  return TIR_NONE;
}

bool tir_find_full_nest(struct tir *ir, tir_buffer buffer, tir_block block, struct tir_full_nest *out) {
  assert(tir_is_buffer(ir, buffer) && tir_is(ir, block, TIR_BLOCK));
  if (!find_iters(ir, buffer, block, &out->first_iter)) return false;
  out->block = block;
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, shape = tir_buffer_at(ir, buffer)->shape;
  for (uint32_t i = 0; i < rank; i++) {
    tir_loop loop = loop_of(ir, block, tir_iters(ir, block)[out->first_iter + i].binding);
    if (!loop ||
        (i && (tir_stmt_at(ir, loop)->parent != out->loops[i - 1] || tir_only_child(ir, out->loops[i - 1]) != loop)))
      return false;
    const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
    if (n->loop_kind != TIR_SERIAL || !tir_is_const(ir, n->loop.min, 0)) return false;
    if (n->loop.extent != ir->operands.at[shape + i]) return false;
    out->loops[i] = loop;
  }
  return tir_child_blocks(ir, out->loops[rank - 1], NULL, 0) == 1;
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

static void replace_loops(struct tir *ir, const struct tir_padded_layout *layout, const struct tir_full_nest *nest,
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
}

/* Old loops and iterations are the inverse of the new ones, in all that the nest holds. */
static void subst_nest(struct tir *ir, const struct tir_padded_layout *layout, const struct tir_full_nest *nest,
                       const tir_expr *by_loops, const tir_expr *by_iters) {
  for (uint32_t i = 0; i < layout->rank; i++) {
    struct tir_iter iter = tir_iters(ir, nest->block)[nest->first_iter + i];
    tir_subst_var(ir, tir_at(ir, iter.binding)->ref, by_loops[i]);
    tir_subst_var(ir, iter.var, by_iters[i]);
  }
}

enum { MOST_ITERS = 64 };

static void replace_iters(struct tir *ir, const struct tir_padded_layout *layout, const struct tir_full_nest *nest,
                          const tir_expr *iters, const tir_expr *loops) {
  struct tir_iter made[MOST_ITERS + TIR_MOST_RANK];
  struct tir_span old = tir_block_at(ir, nest->block)->iters;
  uint32_t count = 0;
  for (uint32_t i = 0; i < nest->first_iter; i++) made[count++] = ir->iters.at[old.first + i];
  for (uint32_t i = 0; i < layout->new_rank; i++)
    made[count++] = (struct tir_iter){tir_at(ir, iters[i])->ref, TIR_SPATIAL, loops[i]};
  for (uint32_t i = nest->first_iter + layout->rank; i < old.count; i++) made[count++] = ir->iters.at[old.first + i];
  tir_set_iters(ir, nest->block, made, count);
}

static void replace_stores(struct tir *ir, const struct tir_padded_layout *layout, tir_block block, tir_buffer to,
                           const tir_expr *iters, tir_expr padding) {
  tir_symbol choose = tir_symbol_of(ir, "if_then_else");
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    tir_expr args[3] = {padding, layout->pad, tir_stmt_at(ir, s)->store.value};
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
  tir_expr loops[TIR_MOST_RANK], iters[TIR_MOST_RANK], by_loops[TIR_MOST_RANK], by_iters[TIR_MOST_RANK];
  make_vars(ir, layout, TIR_VAR_LOOP, "axis", loops);
  make_vars(ir, layout, TIR_VAR_ITER, "v_axis", iters);
  values_at(ir, layout, loops, by_loops);
  tir_expr padding = values_at(ir, layout, iters, by_iters);
  replace_loops(ir, layout, nest, loops);
  tir_loop innermost = tir_stmt_at(ir, nest->block)->parent;
  while (tir_stmt_at(ir, innermost)->loop.var != tir_at(ir, loops[layout->new_rank - 1])->ref)
    innermost = tir_stmt_at(ir, innermost)->parent;
  subst_nest(ir, layout, nest, by_loops, by_iters);
  for (tir_stmt s = tir_stmt_at(ir, innermost)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  replace_stores(ir, layout, nest->block, to, iters, padding);
  replace_iters(ir, layout, nest, iters, loops);
}

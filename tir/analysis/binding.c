/* Affine bindings of blocks. Under a predicate that takes the long way: what was found there is kept. */
#include "analysis.h"
#include "tir/arith/affine.h"
#include "tir/arith/known.h"

#include <stdlib.h>

/* What the answer depends on. */
enum { MOST_ON_STACK = 96 };

struct binding {
  struct tir_map map;
  uint32_t on_stack[MOST_ON_STACK], *at; /* bindings, variables of the loops around */
};

static void read_binding(const struct tir *ir, tir_block block, tir_stmt high, struct binding *b) {
  uint32_t count = tir_block_at(ir, block)->iters.count, room = MOST_ON_STACK > count ? MOST_ON_STACK - count : 0;
  b->at = b->on_stack;
  uint32_t vars = tir_loop_vars(ir, block, high, b->at + (room ? count : 0), room);
  if (vars > room || !room) {
    b->at = malloc((count + vars + 1) * sizeof *b->at);
    if (!b->at) abort();
    tir_loop_vars(ir, block, high, b->at + count, vars);
  }
  for (uint32_t i = 0; i < count; i++) b->at[i] = tir_iters(ir, block)[i].binding;
  b->map = (struct tir_map){tir_as(ir, block, TIR_BLOCK)->block.predicate, b->at, b->at + count, count, vars};
}

static void free_binding(struct binding *b) {
  if (b->at != b->on_stack) free(b->at);
}

static bool is_affine(struct tir *ir, const struct tir_map *m) {
  return tir_is_affine_map(ir, m->indices, m->count, m->vars, m->var_count, m->predicate);
}

void tir_keep_affine(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct binding b;
  read_binding(ir, block, TIR_NONE, &b);
#ifdef MSCHED_CHECK
  assert(is_affine(ir, &b.map) && "bindings in simplest form are as affine as before");
#endif
  if (b.map.predicate) tir_keep_map(ir, TIR_FACT_AFFINE, &b.map);
  free_binding(&b);
}

bool tir_is_affine_binding(struct tir *ir, tir_block block, tir_stmt high) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct binding b;
  read_binding(ir, block, high, &b);
  bool affine = !b.map.var_count || (b.map.predicate && tir_is_known_map(ir, TIR_FACT_AFFINE, &b.map));
  if (!affine) {
    affine = is_affine(ir, &b.map);
    if (affine && b.map.predicate) tir_keep_map(ir, TIR_FACT_AFFINE, &b.map);
  }
  free_binding(&b);
  return affine;
}

/* The variable has one value wherever the predicate holds: that never does with a greater one. */
static bool has_one_value(struct tir *ir, tir_var var, tir_expr predicate) {
  struct tir_var_node v = ir->vars.at[var];
  if (!v.extent || !v.min || !tir_is_int(ir, v.min) || !tir_is_int(ir, v.extent)) return false;
  if (tir_is_const(ir, v.extent, 1)) return true;
  if (!predicate || !tir_uses_var(ir, predicate, var) || tir_at(ir, v.extent)->imm < 1) return false;
  tir_expr next = tir_add(ir, v.min, tir_int(ir, v.type, 1));
  tir_subst_var(ir, var, tir_make(ir, TIR_MAX, tir_var_expr(ir, var), next));
  predicate = tir_subst(ir, predicate);
  tir_subst_clear(ir);
  return tir_prove(ir, tir_not(ir, predicate));
}

uint32_t tir_subst_single(struct tir *ir, const tir_var *vars, uint32_t count, tir_expr predicate, tir_var *left) {
  uint32_t others = 0;
  uint64_t single = 0;
  assert(count <= 64);
  for (uint32_t i = 0; i < count; i++) single |= (uint64_t)has_one_value(ir, vars[i], predicate) << i;
  for (uint32_t i = 0; i < count; i++) {
    if (single >> i & 1)
      tir_subst_var(ir, vars[i], ir->vars.at[vars[i]].min);
    else
      left[others++] = vars[i];
  }
  return others;
}

bool tir_is_affine_without_single(struct tir *ir, tir_block block) {
  struct binding b;
  read_binding(ir, block, TIR_NONE, &b);
  struct tir_map *m = &b.map;
  uint32_t *indices = b.at, *vars = b.at + m->count, count = m->var_count < 64 ? m->var_count : 64;
  uint32_t left = tir_subst_single(ir, vars, count, TIR_NONE, vars);
  bool units = left < count;
  while (count < m->var_count) vars[left++] = vars[count++];
  m->var_count = left;
  for (uint32_t i = 0; units && i < m->count; i++) indices[i] = tir_subst(ir, indices[i]);
  if (units && m->predicate) m->predicate = tir_subst(ir, m->predicate);
  tir_subst_clear(ir);
  bool affine = units && is_affine(ir, m);
  free_binding(&b);
  return affine;
}

#include "arena.h"

#include <stdlib.h>
#include <string.h>

/* Starts the table of interned expressions large enough for the candidates that will be copied from a small module. */
enum { FIRST_EXPR_SLOTS = 2048, FIRST_SYMBOL_SLOTS = 256 };

static_assert(sizeof(struct tir_expr_node) == 64 && sizeof(struct tir_stmt_node) == 64 &&
                  sizeof(struct tir_block_record) == 64,
              "what is indexed most is found by a shift");

struct tir *tir_new(void) {
  struct tir *ir = calloc(1, sizeof *ir);
  if (!ir) abort();
  ir->scratch = calloc(1, sizeof *ir->scratch);
  if (!ir->scratch) abort();
    /* Index 0 of each array is TIR_NONE. */
#define RESERVE_NONE(type, name)                                                                                       \
  tir_grow_##name(ir, 1);                                                                                              \
  memset(ir->name.at, 0, sizeof(type));
  RESERVE_NONE(struct tir_expr_node, exprs)
  RESERVE_NONE(struct tir_linear, linears)
  RESERVE_NONE(struct tir_term, terms)
  RESERVE_NONE(uint32_t, operands)
  RESERVE_NONE(struct tir_var_node, vars)
  RESERVE_NONE(struct tir_name_node, names)
  RESERVE_NONE(struct tir_symbol_node, symbols)
  RESERVE_NONE(char, text)
  RESERVE_NONE(struct tir_stmt_node, stmts)
  RESERVE_NONE(struct tir_block_record, blocks)
  RESERVE_NONE(struct tir_iter, iters)
  RESERVE_NONE(struct tir_region, regions)
  RESERVE_NONE(struct tir_match, matches)
  RESERVE_NONE(struct tir_annotation, annotations)
  RESERVE_NONE(struct tir_buffer_node, buffers)
  RESERVE_NONE(struct tir_use, uses)
  RESERVE_NONE(struct tir_func_node, funcs)
  RESERVE_NONE(struct tir_param, params)
#undef RESERVE_NONE
  tir_grow_expr_slots(ir, FIRST_EXPR_SLOTS);
  memset(ir->expr_slots.at, 0, FIRST_EXPR_SLOTS * sizeof(uint32_t));
  tir_grow_symbol_slots(ir, FIRST_SYMBOL_SLOTS);
  memset(ir->symbol_slots.at, 0, FIRST_SYMBOL_SLOTS * sizeof(uint32_t));
  return ir;
}

/* ---- Working memory ---- */

static void free_scratch(struct tir_scratch *scratch) {
  for (int i = 0; i < TIR_SCRATCH_OWNERS; i++) {
    struct tir_scratch_part *part = &scratch->of[i];
    if (part->at && part->kind->release) part->kind->release(part->at);
    free(part->at);
  }
  free(scratch);
}

void tir_free(struct tir *ir) {
  if (!ir) return;
#define FREE_ARRAY(type, name) free(ir->name.at);
  TIR_ARRAYS(FREE_ARRAY)
#undef FREE_ARRAY
  free_scratch(ir->scratch);
  free(ir);
}

/* Expressions go, or become others: all but those before the mark. */
static void forget_expressions(struct tir *ir, const struct tir_mark *left) {
  for (int i = 0; i < TIR_SCRATCH_OWNERS; i++) {
    struct tir_scratch_part *part = &ir->scratch->of[i];
    if (part->at && part->kind->forget) part->kind->forget(part->at, left);
  }
}

void tir_copy(struct tir *to, const struct tir *from) {
  assert(to != from);
#define COPY_ARRAY(type, name)                                                                                         \
  to->name.count = 0;                                                                                                  \
  tir_grow_##name(to, from->name.count);                                                                               \
  if (from->name.count) memcpy(to->name.at, from->name.at, from->name.count * sizeof(type));
  TIR_ARRAYS(COPY_ARRAY)
#undef COPY_ARRAY
  to->indirect = from->indirect;
  to->undeclared = from->undeclared;
  to->has_empty = from->has_empty;
  to->aliased = from->aliased;
  to->has_lets = from->has_lets;
  to->verified = from->verified;
  forget_expressions(to, &(struct tir_mark){0});
}

size_t tir_bytes(const struct tir *ir) {
  size_t bytes = sizeof *ir;
#define ADD_ARRAY(type, name) bytes += ir->name.capacity * sizeof(type);
  TIR_ARRAYS(ADD_ARRAY)
#undef ADD_ARRAY
  return bytes;
}

struct tir_mark tir_mark(const struct tir *ir) {
  return (struct tir_mark){ir->exprs.count, ir->linears.count, ir->terms.count, ir->operands.count, ir->vars.count,
                           ir->names.count, ir->symbols.count, ir->text.count,  ir->regions.count,  ir->iters.count};
}

void tir_rewind(struct tir *ir, const struct tir_mark *mark) {
  forget_expressions(ir, mark);
  tir_unintern(ir, mark->exprs);
  tir_unintern_symbols(ir, mark->symbols);
  ir->exprs.count = mark->exprs;
  if (ir->verified.exprs > mark->exprs) ir->verified.exprs = mark->exprs;
  if (ir->verified.terms > mark->terms) ir->verified.terms = mark->terms;
  ir->linears.count = mark->linears;
  /* A linear form made after the mark for an expression from before it stands on terms that go. */
  for (uint32_t e = 0; e < ir->linears.count && ir->terms.count > mark->terms; e++)
    if (ir->linears.at[e].first != UINT32_MAX && ir->linears.at[e].first + ir->linears.at[e].count > mark->terms)
      ir->linears.at[e].first = UINT32_MAX;
  ir->terms.count = mark->terms;
  ir->operands.count = mark->operands;
  ir->vars.count = mark->vars;
  ir->names.count = mark->names;
  ir->symbols.count = mark->symbols;
  ir->text.count = mark->text;
  ir->regions.count = mark->regions;
  ir->iters.count = mark->iters;
}

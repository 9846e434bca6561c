/* What there is to name in a schedule: blocks, loops, and variables for them. */
#include "random.h"

#include <string.h>

struct block_list blocks_of(const struct grow *g) {
  const struct tir *ir = g->schedule->ir;
  struct block_list list = {.count = 0};
  tir_func f = tir_find_func(ir, "main");
  tir_stmt top = ir->funcs.at[f].body;
  tir_block root = tir_root_block(ir, f);
  for (tir_stmt s = top; s && list.count < MOST_BLOCKS; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_BLOCK) && s != root) list.at[list.count++] = s;
  return list;
}

struct block_list shuffled_blocks(struct grow *g) {
  struct block_list list = blocks_of(g);
  for (uint32_t i = list.count; i > 1; i--) {
    uint32_t j = below(g, i);
    tir_block held = list.at[i - 1];
    list.at[i - 1] = list.at[j];
    list.at[j] = held;
  }
  return list;
}

tir_block draw_block(struct grow *g) {
  struct block_list list = blocks_of(g);
  return list.count ? list.at[below(g, list.count)] : TIR_NONE;
}

struct loop_list loops_around(const struct grow *g, tir_block b) {
  struct loop_list list;
  uint32_t count = b ? tir_loops_of(g->schedule->ir, b, list.at, MOST_LOOPS) : 0;
  list.count = count < MOST_LOOPS ? count : MOST_LOOPS;
  return list;
}

int64_t extent_of(const struct grow *g, tir_loop l) {
  const struct tir *ir = g->schedule->ir;
  tir_expr extent = tir_stmt_at(ir, l)->loop.extent;
  return tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : 0;
}

bool reduces(const struct grow *g, tir_block b) {
  const struct tir *ir = g->schedule->ir;
  for (uint32_t i = 0; i < tir_block_at(ir, b)->iters.count; i++)
    if (tir_iters(ir, b)[i].kind == TIR_REDUCE) return true;
  return false;
}

bool has_init(const struct grow *g, tir_block b) {
  return tir_stmt_at(g->schedule->ir, b)->first[TIR_INIT] != TIR_NONE;
}

bool drives(const struct grow *g, tir_block b, tir_loop l, enum tir_iter_kind kind) {
  const struct tir *ir = g->schedule->ir;
  for (uint32_t i = 0; i < tir_block_at(ir, b)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, b)[i];
    if (iter.kind == kind && tir_uses_var(ir, iter.binding, tir_stmt_at(ir, l)->loop.var)) return true;
  }
  return false;
}

struct tir_span regions_of(const struct grow *g, tir_block b, bool writes) {
  const struct tir_block_record *record = tir_block_at(g->schedule->ir, b);
  return writes ? record->writes : record->reads;
}

struct tir_region region_at(const struct grow *g, tir_block b, bool writes, uint32_t i) {
  return g->schedule->ir->regions.at[regions_of(g, b, writes).first + i];
}

bool touches(const struct grow *g, tir_block b, bool writes, tir_buffer buffer) {
  for (uint32_t i = 0; i < regions_of(g, b, writes).count; i++)
    if (region_at(g, b, writes, i).buffer == buffer) return true;
  return false;
}

/* Blocks that write what b reads, or read what b writes. */
static struct block_list neighbours(const struct grow *g, tir_block b, bool producers) {
  struct block_list all = blocks_of(g), found = {.count = 0};
  for (uint32_t k = 0; k < all.count; k++) {
    bool any = false;
    for (uint32_t i = 0; i < regions_of(g, b, !producers).count && !any; i++)
      any = touches(g, all.at[k], producers, region_at(g, b, !producers, i).buffer);
    if (any && all.at[k] != b) found.at[found.count++] = all.at[k];
  }
  return found;
}
struct block_list producers_of(const struct grow *g, tir_block b) {
  return neighbours(g, b, true);
}
struct block_list consumers_of(const struct grow *g, tir_block b) {
  return neighbours(g, b, false);
}

bool is_parameter(const struct grow *g, tir_buffer b) { return tir_buffer_at(g->schedule->ir, b)->where == TIR_NONE; }

struct vm_value text_value(struct grow *g, const char *text) {
  return vm_string(&g->schedule->trace, text, strlen(text));
}

struct vm_value draw_scope(struct grow *g) {
  static const char *const scopes[] = {"global", "shared", "local", "global"};
  uint32_t i = below(g, 4);
  return text_value(g, g->threads && i == 1 ? "local" : scopes[i]);
}

/* ---- Variables ---- */

/* A variable that stands for the statement now; the latest, or any if several do. */
static bool find_variable(struct grow *g, tir_stmt s, struct vm_value *out) {
  bool found = false;
  for (uint32_t v = 0; v < g->schedule->trace.steps->variables; v++)
    if (vm_statement(g->schedule, v) == s && (!found || once_in(g, 2))) *out = vm_ref(v), found = true;
  return found;
}

/* Any variable, fit or not: what a careless user writes. */
static bool stray(struct grow *g, struct vm_value *out) {
  uint32_t count = g->schedule->trace.steps->variables;
  if (!count || !once_in(g, 60)) return false;
  *out = vm_ref(below(g, count));
  return true;
}

bool ref_block(struct grow *g, tir_block b, struct vm_value *out) {
  if (!b) return false;
  if (stray(g, out)) return true;
  if (percent(g, 60) && find_variable(g, b, out)) return true;
  uint32_t first;
  char name[256];
  snprintf(name, sizeof name, "%s", tir_block_name(g->schedule->ir, b));
  if (!perform(g, VM_GetSBlock, NO_VALUES, VALUES(text_value(g, name), text_value(g, "main")), &first, NULL))
    return find_variable(g, b, out);
  *out = vm_ref(first);
  return true;
}

bool ref_loop(struct grow *g, tir_block b, tir_loop l, struct vm_value *out) {
  uint32_t first, count;
  struct vm_value block;
  if (stray(g, out)) return true;
  if (percent(g, 80) && find_variable(g, l, out)) return true;
  if (!ref_block(g, b, &block) || !perform(g, VM_GetLoops, VALUES(block), NO_VALUES, &first, &count)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (vm_statement(g->schedule, first + i) == l) return *out = vm_ref(first + i), true;
  return false;
}

bool ref_loops(struct grow *g, tir_block b, const tir_loop *loops, uint32_t count, struct vm_value *out) {
  for (uint32_t i = 0; i < count; i++)
    if (!ref_loop(g, b, loops[i], &out[i])) return false;
  return true;
}

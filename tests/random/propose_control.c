/* Proposals that steer: Assert, If and For over drawn numbers, with instructions between. */
#include "random.h"

/* A number that was drawn, or one drawn now; *value: what it is. */
static bool draw_number(struct grow *g, struct vm_value *out, int64_t *value) {
  bool found = false;
  for (int tries = 0; tries < 2 && !found; tries++) {
    const struct vm_steps *s = g->schedule->trace.steps;
    for (uint32_t i = 0; i < s->count; i++) {
      const struct vm_instruction *at = &s->instructions[i];
      bool numbers = at->kind == VM_SampleCategorical || at->kind == VM_SamplePerfectTile;
      if (!numbers || !at->outputs || (found && once_in(g, 2))) continue;
      out->ref = at->first_output + below(g, at->outputs);
      found = g->schedule->slots[out->ref] != VM_NIL;
    }
    if (!found && !propose_categorical(g, VM_SampleCategorical)) return false;
  }
  if (found) *out = vm_ref(out->ref), *value = g->schedule->slots[out->ref];
  return found;
}

/* A condition on a number that is `value`: one that holds, or not. */
static struct vm_value draw_condition(struct grow *g, struct vm_value number, int64_t value, bool holds) {
  static const enum tir_kind ways[2][3] = {{TIR_GT, TIR_LT, TIR_NE}, {TIR_LE, TIR_GE, TIR_EQ}};
  uint32_t way = below(g, 3);
  int64_t more = holds ? below(g, 3) : 0;
  int64_t bound = way == 0 ? value + more : way == 1 ? value - more : value;
  struct vm_value sides[2] = {number, vm_int(bound)};
  struct vm_value comparison = vm_list(&g->schedule->trace, VM_APPLY, sides, 2);
  comparison.op = (uint16_t)ways[holds][way];
  struct vm_value condition = vm_list(&g->schedule->trace, VM_INDEX_MAP, &comparison, 1);
  condition.bare = VM_CONDITION;
  return condition;
}

bool propose_assert(struct grow *g, enum vm_kind kind) {
  struct vm_value number;
  int64_t value;
  if (!draw_number(g, &number, &value)) return false;
  return perform(g, kind, NO_VALUES, VALUES(draw_condition(g, number, value, !once_in(g, 8))), NULL, NULL);
}

/* What may stand in a branch, taken or not: judging knows of no layout that changes there. */
static void propose_inside(struct grow *g) {
  switch (below(g, 6)) {
  case 0: propose_split(g, VM_Split); return;
  case 1: propose_loop_kind(g, VM_Unroll); return;
  case 2: propose_cache(g, VM_CacheRead); return;
  case 3: propose_compute_at(g, VM_ComputeAt); return;
  case 4: propose_inline(g, VM_ComputeInline); return;
  default: propose_annotate(g, VM_Annotate); return;
  }
}

/* A For that cannot be ended, since a round is refused, stays open: what stands is judged then. */
static bool end(struct grow *g) { return perform(g, VM_End, NO_VALUES, NO_VALUES, NULL, NULL); }

bool propose_if(struct grow *g, enum vm_kind kind) {
  struct vm_value number;
  int64_t value;
  if (!draw_number(g, &number, &value)) return false;
  if (!perform(g, kind, NO_VALUES, VALUES(draw_condition(g, number, value, once_in(g, 2))), NULL, NULL)) return false;
  propose_inside(g);
  if (once_in(g, 2) && perform(g, VM_Else, NO_VALUES, NO_VALUES, NULL, NULL)) propose_inside(g);
  return end(g);
}

/* Instructions that are possible in each round: the block is looked up again. */
static void propose_in_round(struct grow *g, tir_block b) {
  char name[256];
  uint32_t first;
  snprintf(name, sizeof name, "%s", tir_block_name(g->schedule->ir, b));
  if (!perform(g, VM_GetSBlock, NO_VALUES, VALUES(text_value(g, name), text_value(g, "main")), &first, NULL)) return;
  struct vm_value none = vm_list(&g->schedule->trace, VM_LIST, NULL, 0), block = vm_ref(first);
  switch (below(g, 3)) {
  case 0: perform(g, VM_AddUnitLoop, VALUES(block), NO_VALUES, NULL, NULL); return;
  case 1: perform(g, VM_CacheRead, VALUES(block, none), VALUES(vm_int(0), draw_scope(g)), NULL, NULL); return;
  default: perform(g, VM_CacheWrite, VALUES(block, none), VALUES(vm_int(0), draw_scope(g)), NULL, NULL); return;
  }
}

bool propose_for(struct grow *g, enum vm_kind kind) {
  struct vm_value number, rounds = vm_int(below(g, 4));
  int64_t value;
  tir_block b = draw_block(g);
  if (once_in(g, 2) && draw_number(g, &number, &value) && value >= 0 && value <= 4) rounds = number;
  if (!b || !perform(g, kind, VALUES(rounds), NO_VALUES, NULL, NULL)) return false;
  propose_in_round(g, b);
  return end(g);
}

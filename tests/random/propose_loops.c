/* Proposals that change loops, and those that look and draw. */
#include "random.h"

#include <string.h>

/* ---- Operands of the right types, and no further thought ---- */

static bool any_statement(struct grow *g, bool loop, struct vm_value *out) {
  tir_block b = draw_block(g);
  struct loop_list loops = loops_around(g, b);
  if (loop && loops.count) return ref_loop(g, b, loops.at[below(g, loops.count)], out);
  return ref_block(g, b, out);
}

static bool any_value(struct grow *g, const struct vm_param *param, struct vm_value *out) {
  static const int64_t numbers[] = {0, 0, 1, 2, -1, 4};
  switch (param->type) {
  case VM_T_BLOCK: return any_statement(g, false, out);
  case VM_T_LOOP:
  case VM_T_LOCATION: return any_statement(g, true, out);
  case VM_T_PLACE: return any_statement(g, once_in(g, 2), out);
  case VM_T_BOOL:
  case VM_T_BIT: return *out = vm_bool(once_in(g, 2)), true;
  case VM_T_REAL: return *out = vm_real(0.5), true;
  case VM_T_STRING: return *out = draw_scope(g), true;
  case VM_T_MAP: return *out = text_value(g, "lambda i, j: (j, i,)"), true;
  default: return *out = vm_int(numbers[below(g, 6)]), true;
  }
}

bool propose_any(struct grow *g, enum vm_kind kind) {
  struct vm_value values[VM_MOST_PARAMS];
  const struct vm_signature *signature = vm_signature_of(kind);
  uint32_t count = (uint32_t)signature->inputs + signature->attrs;
  for (uint32_t p = 0; p < count; p++) {
    if (!any_value(g, &signature->at[p], &values[p])) return false;
    if (signature->at[p].list) values[p] = vm_list(&g->schedule->trace, VM_LIST, &values[p], 1);
  }
  if (kind == VM_GetSBlock) { /* a name that is there, mostly */
    tir_block b = draw_block(g);
    values[0] = text_value(g, b && !once_in(g, 20) ? tir_block_name(g->schedule->ir, b) : "nothing");
    values[1] = text_value(g, "main");
  }
  return perform(g, kind, values, signature->inputs, values + signature->inputs, signature->attrs, NULL, NULL);
}

/* A random block and one of its loops. */
static bool draw_loop(struct grow *g, tir_block *b, struct loop_list *loops, uint32_t *number) {
  *b = draw_block(g);
  *loops = loops_around(g, *b);
  if (!loops->count) return false;
  *number = below(g, loops->count);
  return true;
}

static bool draw_loop_value(struct grow *g, struct vm_value *out, tir_loop *loop) {
  tir_block b;
  struct loop_list loops;
  uint32_t at;
  if (!draw_loop(g, &b, &loops, &at)) return false;
  if (loop) *loop = loops.at[at];
  return ref_loop(g, b, loops.at[at], out);
}

/* ---- Looking and drawing ---- */

bool propose_output_blocks(struct grow *g, enum vm_kind kind) {
  uint32_t first;
  if (!perform(g, VM_GetSBlock, NO_VALUES, VALUES(text_value(g, "root"), text_value(g, "main")), &first, NULL))
    return false;
  return perform(g, kind, VALUES(vm_ref(first)), NO_VALUES, NULL, NULL);
}

bool propose_categorical(struct grow *g, enum vm_kind kind) {
  struct vm_value candidates[] = {vm_int(0), vm_int(16), vm_int(64), vm_int(512)};
  struct vm_value chances[] = {vm_real(0.25), vm_real(0.25), vm_real(0.25), vm_real(0.25)};
  struct vm_value a = vm_list(&g->schedule->trace, VM_LIST, candidates, 4);
  return perform(g, kind, NO_VALUES, VALUES(a, vm_list(&g->schedule->trace, VM_LIST, chances, 4)), NULL, NULL);
}

/* Splits a loop by what was drawn. */
static bool split_by(struct grow *g, struct vm_value loop, uint32_t first, uint32_t count) {
  struct vm_value inputs[MOST_LOOPS] = {loop};
  if (count + 1 > MOST_LOOPS) return false;
  for (uint32_t i = 0; i < count; i++) inputs[i + 1] = vm_ref(first + i);
  return perform(g, VM_Split, inputs, count + 1, VALUES(vm_bool(true), vm_bool(false)), NULL, NULL);
}

bool propose_perfect_tile(struct grow *g, enum vm_kind kind) {
  static const int64_t limits[] = {4, 16, 64};
  struct vm_value loop;
  uint32_t first, count;
  if (!draw_loop_value(g, &loop, NULL)) return false;
  struct vm_value n = vm_int(2 + below(g, 3)), limit = vm_int(limits[below(g, 3)]);
  return perform(g, kind, VALUES(loop), VALUES(n, limit), &first, &count) && split_by(g, loop, first, count);
}

bool propose_partitioned_tile(struct grow *g, enum vm_kind kind) {
  struct vm_value loop;
  uint32_t first, count;
  if (!draw_loop_value(g, &loop, NULL)) return false;
  struct vm_value position = vm_int(below(g, 3)), factor = vm_int(1 << below(g, 3));
  return perform(g, kind, VALUES(loop), VALUES(vm_int(3), position, factor), &first, &count) &&
         split_by(g, loop, first, count);
}

bool propose_compute_location(struct grow *g, enum vm_kind kind) {
  tir_block b = draw_block(g);
  uint32_t first;
  struct vm_value block;
  if (!ref_block(g, b, &block) || !perform(g, kind, VALUES(block), NO_VALUES, &first, NULL)) return false;
  if (once_in(g, 2)) return true;
  return perform(g, VM_ComputeAt, VALUES(block, vm_ref(first)), VALUES(vm_bool(true), vm_int(-1)), NULL, NULL);
}

/* ---- Loops ---- */

static int64_t draw_divisor(struct grow *g, int64_t extent) {
  int64_t divisors[64];
  uint32_t count = 0;
  for (int64_t d = 1; d <= extent && count < 64; d++)
    if (extent % d == 0) divisors[count++] = d;
  return count ? divisors[below(g, count)] : 1;
}

/* Split and LoopPartition: mostly divisors, mostly one left open. */
bool propose_split(struct grow *g, enum vm_kind kind) {
  static const int64_t others[] = {2, 3, 4, 5, 7, 8, 16};
  tir_loop loop;
  struct vm_value inputs[4];
  uint32_t n = 2 + (below(g, 3) == 2), open = below(g, n);
  if (!draw_loop_value(g, &inputs[0], &loop)) return false;
  int64_t extent = extent_of(g, loop), product = 1;
  for (uint32_t i = 0; i < n; i++) {
    int64_t f = percent(g, 70) ? draw_divisor(g, extent) : others[below(g, 7)];
    if (product * f > 2 * extent && extent) f = 1; /* else repeated splits make loops that run for ever */
    product *= f;
    inputs[i + 1] = vm_int(f);
  }
  if (percent(g, 85)) inputs[open + 1] = vm_none();
  struct vm_value keep = vm_bool(percent(g, 80)), unpredicated = vm_bool(g->unsafe && once_in(g, 4));
  if (!strcmp(vm_kind_info(kind)->name, "LoopPartition"))
    return perform(g, kind, inputs, n + 1, VALUES(vm_bool(true)), NULL, NULL);
  return perform(g, kind, inputs, n + 1, VALUES(keep, unpredicated), NULL, NULL);
}

bool propose_fuse(struct grow *g, enum vm_kind kind) {
  tir_block b;
  struct loop_list loops;
  struct vm_value inputs[3];
  uint32_t at, n = 2 + (below(g, 3) == 2);
  if (!draw_loop(g, &b, &loops, &at)) return false;
  if (at + n > loops.count) at = loops.count >= n ? loops.count - n : 0;
  if (n > loops.count) n = loops.count;
  if (once_in(g, 8)) loops.at[at] = loops.at[below(g, loops.count)];
  if (!ref_loops(g, b, loops.at + at, n, inputs)) return false;
  return perform(g, kind, inputs, n, VALUES(vm_bool(percent(g, 80))), NULL, NULL);
}

bool propose_merge(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value inputs[2];
  for (uint32_t i = 0; i + 1 < blocks.count; i++)
    for (uint32_t k = i + 1; k < blocks.count; k++) {
      struct loop_list x = loops_around(g, blocks.at[i]), y = loops_around(g, blocks.at[k]);
      if (!x.count || !y.count || x.at[0] == y.at[0]) continue;
      if (!once_in(g, 6) && extent_of(g, x.at[0]) != extent_of(g, y.at[0])) continue;
      return ref_loop(g, blocks.at[i], x.at[0], &inputs[0]) && ref_loop(g, blocks.at[k], y.at[0], &inputs[1]) &&
             perform(g, kind, inputs, 2, NO_VALUES, NULL, NULL);
    }
  return false;
}

bool propose_reorder(struct grow *g, enum vm_kind kind) {
  tir_block b;
  struct loop_list loops;
  struct vm_value inputs[MOST_LOOPS];
  uint32_t at, n;
  if (!draw_loop(g, &b, &loops, &at)) return false;
  n = once_in(g, 2) ? loops.count : 1 + below(g, loops.count);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t k = i + below(g, loops.count - i);
    tir_loop held = loops.at[i];
    loops.at[i] = loops.at[k];
    loops.at[k] = held;
  }
  if (!ref_loops(g, b, loops.at, n, inputs)) return false;
  return perform(g, kind, inputs, n, NO_VALUES, NULL, NULL);
}

bool propose_unit_loop(struct grow *g, enum vm_kind kind) {
  struct vm_value place;
  return any_statement(g, once_in(g, 2), &place) && perform(g, kind, VALUES(place), NO_VALUES, NULL, NULL);
}

/* Parallel, Vectorize, Unroll: mostly outermost, or innermost; mostly a loop that is still serial and drives no
 * reduction. */
bool propose_loop_kind(struct grow *g, enum vm_kind kind) {
  tir_block b;
  struct loop_list loops;
  struct vm_value loop;
  uint32_t at;
  if (!draw_loop(g, &b, &loops, &at)) return false;
  if (percent(g, 70)) at = kind == VM_Parallel ? 0 : loops.count - 1;
  for (uint32_t tries = 0; tries < 4 && kind != VM_Unroll; tries++) {
    bool serial = tir_stmt_at(g->schedule->ir, loops.at[at])->loop_kind == TIR_SERIAL;
    if (serial && !drives(g, b, loops.at[at], TIR_REDUCE)) break;
    at = below(g, loops.count);
  }
  return ref_loop(g, b, loops.at[at], &loop) && perform(g, kind, VALUES(loop), NO_VALUES, NULL, NULL);
}

bool propose_bind(struct grow *g, enum vm_kind kind) {
  static const char *const threads[] = {"blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread.x"};
  tir_block b;
  struct loop_list loops;
  struct vm_value loop;
  uint32_t at;
  if (!g->threads || !draw_loop(g, &b, &loops, &at) || !ref_loop(g, b, loops.at[at], &loop)) return false;
  return perform(g, kind, VALUES(loop), VALUES(text_value(g, threads[below(g, 4)])), NULL, NULL);
}

/* ---- Annotations ---- */

bool propose_annotate(struct grow *g, enum vm_kind kind) {
  static const char *const keys[] = {"pragma_auto_unroll_max_step", "meta_schedule.parallel", "note", "factor"};
  struct vm_value place, value;
  uint32_t k = below(g, 4);
  if (!any_statement(g, once_in(g, 2), &place)) return false;
  value = k == 0 ? vm_int(16) : k == 1 ? vm_int(64) : k == 2 ? text_value(g, "hot") : vm_real(0.5);
  return perform(g, kind, VALUES(place, value), VALUES(text_value(g, keys[k])), NULL, NULL);
}

static const char *first_key(const struct grow *g, tir_stmt s) {
  const struct tir *ir = g->schedule->ir;
  struct tir_span span = tir_stmt_at(ir, s)->annotations;
  return span.count ? tir_text(ir, ir->annotations.at[span.first].key) : NULL;
}

/* What has an annotation; if nothing has, some block, which mostly gets one first. */
bool propose_unannotate(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value place;
  char key[64] = "note";
  for (uint32_t i = 0; i < blocks.count; i++) {
    struct loop_list loops = loops_around(g, blocks.at[i]);
    for (uint32_t k = 0; k <= loops.count; k++) {
      const char *found = first_key(g, k < loops.count ? loops.at[k] : blocks.at[i]);
      if (!found) continue;
      snprintf(key, sizeof key, "%s", found);
      bool ok = k < loops.count ? ref_loop(g, blocks.at[i], loops.at[k], &place) : ref_block(g, blocks.at[i], &place);
      return ok && perform(g, kind, VALUES(place), VALUES(text_value(g, key)), NULL, NULL);
    }
  }
  if (!ref_block(g, draw_block(g), &place)) return false;
  if (percent(g, 70) && !perform(g, VM_Annotate, VALUES(place, vm_int(1)), VALUES(text_value(g, key)), NULL, NULL))
    return false;
  return perform(g, kind, VALUES(place), VALUES(text_value(g, key)), NULL, NULL);
}

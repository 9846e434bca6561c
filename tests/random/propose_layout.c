/* Proposals that change buffers, layouts and iterations; blocks made of loops. */
#include "random.h"

#include <stdarg.h>
#include <string.h>

/* A block, mostly one whose result another uses. */
static tir_block draw_producer(struct grow *g) {
  struct block_list blocks = shuffled_blocks(g);
  tir_block b = draw_block(g);
  for (uint32_t i = 0; i < blocks.count && percent(g, 90); i++)
    if (consumers_of(g, blocks.at[i]).count) b = blocks.at[i];
  return b;
}

bool propose_storage_align(struct grow *g, enum vm_kind kind) {
  static const int64_t axes[] = {0, -2, -1, 1}, factors[] = {8, 32}, offsets[] = {0, 4, 8};
  struct vm_value block;
  tir_block b = draw_producer(g);
  struct vm_value axis = vm_int(axes[below(g, 4)]), factor = vm_int(factors[below(g, 2)]);
  return ref_block(g, b, &block) &&
         perform(g, kind, VALUES(block), VALUES(vm_int(0), axis, factor, vm_int(offsets[below(g, 3)])), NULL, NULL);
}

bool propose_set_scope(struct grow *g, enum vm_kind kind) {
  static const char *const scopes[] = {"local", "global", "shared", "shared.dyn"};
  struct vm_value block;
  tir_block b = draw_producer(g);
  return ref_block(g, b, &block) &&
         perform(g, kind, VALUES(block), VALUES(vm_int(0), text_value(g, scopes[below(g, g->threads ? 2 : 4)])), NULL,
                 NULL);
}

/* ---- Index maps ---- */

struct text {
  char at[512];
  uint32_t items;
};

__attribute__((format(printf, 2, 3))) static void item(struct text *t, const char *format, ...) {
  va_list args;
  size_t length = strlen(t->at);
  if (t->items++) length += (size_t)snprintf(t->at + length, sizeof t->at - length, ", ");
  va_start(args, format);
  vsnprintf(t->at + length, sizeof t->at - length, format, args);
  va_end(args);
}

/* Bijective mostly: a permutation, an index in two parts, two indices in one, an index in two parts far apart. */
static struct vm_value draw_map(struct grow *g, const int64_t *extents, uint32_t rank) {
  static const int factors[] = {2, 4, 3, 8};
  struct text t = {.at = "lambda ", .items = 0};
  uint32_t mode = below(g, 4), k = below(g, rank), order[16];
  int f = factors[below(g, 4)];
  if (extents[k] % f && !once_in(g, 5)) mode = 0;
  if (mode == 2 && (rank < 2 || k + 1 == rank)) mode = 0;
  for (uint32_t d = 0; d < rank; d++) order[d] = d, item(&t, "i%d", (int)d);
  for (uint32_t d = rank; d > 1 && mode == 0; d--) {
    uint32_t j = below(g, d), held = order[d - 1];
    order[d - 1] = order[j], order[j] = held;
  }
  t.items = 0;
  strcat(t.at, ": (");
  if (mode == 3) item(&t, "i%d // %d", (int)k, f);
  for (uint32_t d = 0; d < rank; d++) {
    if (mode == 1 && d == k)
      item(&t, "i%d // %d", (int)d, f), item(&t, "i%d %% %d", (int)d, f);
    else if (mode == 2 && d == k)
      item(&t, "i%d * %d + i%d", (int)d, (int)extents[d + 1], (int)d + 1);
    else if ((mode != 2 || d != k + 1) && (mode != 3 || d != k))
      item(&t, "i%d", (int)order[d]);
  }
  if (mode == 3) item(&t, "i%d %% %d", (int)k, f);
  strcat(t.at, ",)");
  return text_value(g, t.at);
}

bool propose_transform_layout(struct grow *g, enum vm_kind kind) {
  const struct tir *ir = g->schedule->ir;
  tir_block b = draw_block(g);
  bool writes = once_in(g, 2);
  struct vm_value block;
  int64_t extents[12];
  if (!b || !regions_of(g, b, writes).count) return false;
  uint32_t number = below(g, regions_of(g, b, writes).count);
  tir_buffer buffer = region_at(g, b, writes, number).buffer;
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (!rank || rank > 12) return false;
  if (is_parameter(g, buffer) && (g->plain || g->maps >= 2)) return false;
  for (uint32_t d = 0; d < rank; d++) {
    tir_expr extent = tir_operands(ir, tir_buffer_at(ir, buffer)->shape)[d];
    if (!tir_is_int(ir, extent)) return false;
    extents[d] = tir_at(ir, extent)->imm;
  }
  if (!ref_block(g, b, &block)) return false;
  if (g->plain && vm_statement(g->schedule, block.ref) != b) return false; /* a stray one's may be a parameter */
  struct vm_value map = draw_map(g, extents, rank), pad = percent(g, 66) ? vm_none() : vm_real(0);
  return perform(g, kind, VALUES(block, map),
                 VALUES(vm_int(number), vm_int(writes), pad, vm_bool(g->unsafe && once_in(g, 3))), NULL, NULL);
}

/* The extents of a block's iterations; 0: there are none, or one is unknown. */
static uint32_t iter_extents(const struct grow *g, tir_block b, int64_t *out, uint32_t most) {
  const struct tir *ir = g->schedule->ir;
  uint32_t count = tir_block_at(ir, b)->iters.count;
  for (uint32_t i = 0; i < count && i < most; i++) {
    tir_expr extent = ir->vars.at[tir_iters(ir, b)[i].var].extent;
    if (!extent || !tir_is_int(ir, extent)) return 0;
    out[i] = tir_at(ir, extent)->imm;
  }
  return count <= most ? count : 0;
}

bool propose_transform_block(struct grow *g, enum vm_kind kind) {
  tir_block b = draw_block(g);
  int64_t extents[12];
  struct vm_value block;
  uint32_t rank = b ? iter_extents(g, b, extents, 12) : 0;
  if (!rank || !ref_block(g, b, &block)) return false;
  return perform(g, kind, VALUES(block), VALUES(draw_map(g, extents, rank)), NULL, NULL);
}

bool propose_reorder_iters(struct grow *g, enum vm_kind kind) {
  tir_block b = draw_block(g);
  struct vm_value block, order[32];
  uint32_t n = b ? tir_block_at(g->schedule->ir, b)->iters.count : 0;
  if (!n || n > 32 || !ref_block(g, b, &block)) return false;
  for (uint32_t i = 0; i < n; i++) order[i] = vm_int(i);
  for (uint32_t i = n; i > 1; i--) {
    uint32_t k = below(g, i);
    struct vm_value held = order[i - 1];
    order[i - 1] = order[k], order[k] = held;
  }
  if (once_in(g, 20)) order[0] = vm_int(below(g, n + 1));
  return perform(g, kind, VALUES(block, vm_list(&g->schedule->trace, VM_LIST, order, n)), NO_VALUES, NULL, NULL);
}

bool propose_pad_einsum(struct grow *g, enum vm_kind kind) {
  static const int64_t sizes[] = {1, 4, 8, 16};
  struct block_list blocks = shuffled_blocks(g);
  struct vm_value block, padding[16];
  tir_block b = draw_block(g);
  for (uint32_t i = 0; i < blocks.count && percent(g, 90); i++)
    if (reduces(g, blocks.at[i]) && has_init(g, blocks.at[i])) b = blocks.at[i];
  uint32_t n = b ? tir_block_at(g->schedule->ir, b)->iters.count : 0;
  if (!n || n > 16 || !ref_block(g, b, &block)) return false;
  for (uint32_t i = 0; i < n; i++) padding[i] = vm_int(once_in(g, 2) ? 1 : sizes[below(g, 4)]);
  struct vm_value list = vm_list(&g->schedule->trace, VM_LIST, padding, n);
  return perform(g, kind, VALUES(block), VALUES(list), NULL, NULL);
}

/* ---- Blocks made of loops ---- */

bool propose_blockize(struct grow *g, enum vm_kind kind) {
  tir_block b = draw_block(g);
  struct loop_list loops = loops_around(g, b);
  struct vm_value loop;
  if (!loops.count || !ref_loop(g, b, loops.at[below(g, loops.count)], &loop)) return false;
  return perform(g, kind, VALUES(loop), VALUES(vm_bool(true)), NULL, NULL);
}

/* ---- What may change what is computed ---- */

bool propose_dtype(struct grow *g, enum vm_kind kind) {
  static const char *const types[] = {"float16", "float64", "float32", "bfloat16", "int32", "int8", "bool", "float33"};
  struct vm_value block;
  return ref_block(g, draw_producer(g), &block) &&
         perform(g, kind, VALUES(block), VALUES(vm_int(once_in(g, 20)), text_value(g, types[below(g, 8)])), NULL, NULL);
}

/* One or two regions; now and then one that there is not. */
bool propose_hide(struct grow *g, enum vm_kind kind) {
  tir_block b = draw_block(g);
  bool writes = once_in(g, 2);
  struct vm_value block, numbers[2];
  uint32_t n = b ? regions_of(g, b, writes).count : 0, count = 1 + once_in(g, 4);
  if (!b || !ref_block(g, b, &block)) return false;
  for (uint32_t i = 0; i < count; i++) numbers[i] = vm_int(below(g, n + (!n || once_in(g, 20))));
  return perform(
      g, kind,
      VALUES(block, text_value(g, writes ? "write" : "read"), vm_list(&g->schedule->trace, VM_LIST, numbers, count)),
      NO_VALUES, NULL, NULL);
}

/* Where a dimension begins and ends: at an iteration, a multiple of one, or from the start to some end. */
static void range_item(struct grow *g, struct text *t, uint32_t iters) {
  int v = (int)below(g, iters), more = (int)below(g, 5);
  switch (iters ? below(g, 4) : 3) {
  case 0: item(t, "(v%d // 2, v%d // 2 + %d)", v, v, 1 + more); return;
  case 1:
  case 2: item(t, "(v%d, v%d + %d)", v, v, more / 2); return;
  default: item(t, "(0, %d)", 1 << more); return;
  }
}

bool propose_annotate_access(struct grow *g, enum vm_kind kind) {
  const struct tir *ir = g->schedule->ir;
  tir_block b = draw_block(g);
  bool writes = once_in(g, 2);
  struct vm_value block;
  struct text t = {.at = "lambda ", .items = 0};
  uint32_t iters = b ? tir_block_at(ir, b)->iters.count : 0;
  if (!b || !iters || iters > 8 || !regions_of(g, b, writes).count) return false;
  uint32_t number = below(g, regions_of(g, b, writes).count);
  uint32_t rank = tir_buffer_at(ir, region_at(g, b, writes, number).buffer)->rank;
  if (rank > 8 || !ref_block(g, b, &block)) return false;
  for (uint32_t i = 0; i < iters; i++) item(&t, "v%d", (int)i);
  t.items = 0;
  strcat(t.at, ": (");
  for (uint32_t d = 0; d < rank; d++) range_item(g, &t, iters);
  strcat(t.at, ",)");
  return perform(g, kind, VALUES(block, vm_int(number), vm_int(writes), text_value(g, t.at)), NO_VALUES, NULL, NULL);
}

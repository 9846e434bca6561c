/* Proposals of tensor intrinsics: a block that one may fit is brought into its shape first. */
#include "random.h"

#include <string.h>

/* What a block must look like for an intrinsic: its last iterations, how many each tile has of them, the buffers. */
struct pattern {
  const char *name, *kinds; /* of iterations, in order: spatial, reduction */
  int64_t tiles[4];
  uint32_t reads;             /* buffers read, but what is written */
  const char *written, *read; /* types of elements; read: of the first, where there is one */
  bool interpreted;           /* only the interpreter knows how */
};

static const struct pattern patterns[] = {
    {"mac_4x4x4_f32", "SSR", {4, 4, 4}, 2, "float32", "float32", true},
    {"tile_4x4x4_f32", "SSR", {4, 4, 4}, 2, "float32", "float32", false},
    {"tile_4x4x4_tn", "SSR", {4, 4, 4}, 2, "float32", "float32", false},
    {"tile_4x4x4_f16", "SSR", {4, 4, 4}, 2, "float32", "float16", false},
    {"tile_4x4x4_i8", "SSR", {4, 4, 4}, 2, "int32", "int8", false},
    {"dot_4_f32", "R", {4}, 2, "float32", "float32", false},
    {"sum_4_f32", "R", {4}, 1, "float32", "float32", false},
    {"max_4_f32", "R", {4}, 1, "float32", "float32", false},
    {"colmax_4x4_i32", "SR", {4, 4}, 1, "int32", "int32", false},
    {"fill_4x4_f32", "SS", {4, 4}, 0, "float32", NULL, false},
    {"fill_4x4_s32", "SS", {4, 4}, 0, "int32", NULL, false},
    {"fill_4_f32", "S", {4}, 0, "float32", NULL, false},
    {"fill_4_s32", "S", {4}, 0, "int32", NULL, false},
    {"copy_4x4_f32", "SS", {4, 4}, 1, "float32", "float32", false},
    {"copy_4x4_f16", "SS", {4, 4}, 1, "float16", "float16", false},
    {"copy_4x4_s32", "SS", {4, 4}, 1, "int32", "int32", false},
    {"copy_4x4_s8", "SS", {4, 4}, 1, "int8", "int8", false},
    {"copy_4x4_u8", "SS", {4, 4}, 1, "uint8", "uint8", false},
    {"copy_4_f32", "S", {4}, 1, "float32", "float32", false},
    {"copy_4_f16", "S", {4}, 1, "float16", "float16", false},
    {"copy_4_s32", "S", {4}, 1, "int32", "int32", false},
    {"relu_4_f32", "S", {4}, 1, "float32", "float32", false},
    {"increase_4x4_f32", "SS", {4, 4}, 1, "float32", "float32", false},
    {"microkernel_6x16_f32", "SSR", {6, 16, 4}, 2, "float32", "float32", false},
    {"dot_16x4_vnni", "SR", {16, 4}, 2, "int32", "uint8", false},
    {"dot_16x4_avx512", "SR", {16, 4}, 2, "int32", "uint8", false},
    {"amx_16x16x64_i8", "SSRR", {16, 16, 16, 4}, 2, "int32", "int8", false},
    {"amx_16x16x32_bf16", "SSRR", {16, 16, 16, 2}, 2, "float32", "bfloat16", false},
};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* ---- What fits ---- */

static bool holds(struct grow *g, tir_buffer buffer, const char *type) {
  const struct tir *ir = g->schedule->ir;
  tir_type t;
  bool global = tir_memory_scope_of(ir, buffer) == TIR_SCOPE_GLOBAL;
  return !type || (tir_type_parse(type, &t) && tir_buffer_at(ir, buffer)->type == t && (global || once_in(g, 20)));
}

static bool buffers_fit(struct grow *g, tir_block b, const struct pattern *p) {
  uint32_t reads = 0;
  if (regions_of(g, b, true).count != 1) return false;
  tir_buffer written = region_at(g, b, true, 0).buffer;
  for (uint32_t i = 0; i < regions_of(g, b, false).count; i++) {
    tir_buffer buffer = region_at(g, b, false, i).buffer;
    if (buffer == written) continue;
    if (!reads++ && !holds(g, buffer, p->read)) return false;
  }
  return reads == p->reads && holds(g, written, p->written);
}

/* The loop that alone is an iteration's binding; TIR_NONE: it is more than that. */
static tir_loop loop_of(const struct grow *g, const struct loop_list *loops, struct tir_iter iter) {
  const struct tir *ir = g->schedule->ir;
  const struct tir_expr_node *e = tir_at(ir, iter.binding);
  for (uint32_t i = 0; i < loops->count && e->kind == TIR_VAR; i++)
    if (tir_stmt_at(ir, loops->at[i])->loop.var == e->ref) return loops->at[i];
  return TIR_NONE;
}

/* A loop for each iteration of the pattern, from the last on; almost always the nearest for the last of each kind,
 * which is where elements lie side by side, and mostly for the others. */
static bool choose_loops(struct grow *g, tir_block b, const struct pattern *p, tir_loop *out) {
  const struct tir *ir = g->schedule->ir;
  struct loop_list loops = loops_around(g, b);
  uint32_t at = tir_block_at(ir, b)->iters.count;
  bool seen[2] = {false, false};
  for (uint32_t n = (uint32_t)strlen(p->kinds); n-- > 0;) {
    enum tir_iter_kind kind = p->kinds[n] == 'S' ? TIR_SPATIAL : TIR_REDUCE;
    for (out[n] = TIR_NONE; at > 0 && !out[n];) {
      struct tir_iter iter = tir_iters(ir, b)[--at];
      tir_loop loop = iter.kind == kind ? loop_of(g, &loops, iter) : TIR_NONE;
      int64_t extent = loop ? extent_of(g, loop) : 0;
      bool fits = extent >= p->tiles[n] && (extent % p->tiles[n] == 0 || once_in(g, 20));
      if (fits && percent(g, seen[kind == TIR_REDUCE] ? 85 : 97)) out[n] = loop;
      if (iter.kind == kind && !seen[kind == TIR_REDUCE] && !out[n] && !once_in(g, 20)) return false;
    }
    if (!out[n]) return false;
    seen[kind == TIR_REDUCE] = true;
  }
  return true;
}

/* ---- Into shape ---- */

/* The loops of the tile, apart from those of the tiles. */
static bool split_tile(struct grow *g, tir_block b, const struct pattern *p, const tir_loop *loops,
                       struct vm_value *inner) {
  for (uint32_t n = 0; p->kinds[n]; n++) {
    uint32_t first;
    struct vm_value loop;
    if (!ref_loop(g, b, loops[n], &inner[n])) return false;
    if (!tir_is(g->schedule->ir, loops[n], TIR_LOOP)) return false; /* a stray handle's split took it */
    if (extent_of(g, loops[n]) == p->tiles[n] && percent(g, 80)) continue;
    loop = inner[n];
    if (!perform(g, VM_Split, VALUES(loop, vm_none(), vm_int(p->tiles[n])), VALUES(vm_bool(true), vm_bool(false)),
                 &first, NULL))
      return false;
    inner[n] = vm_ref(first + 1);
  }
  return true;
}

static bool is_inner(const struct grow *g, tir_loop l, const struct vm_value *inner, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (vm_statement(g->schedule, inner[i].ref) == l) return true;
  return false;
}

/* The tile's loops innermost. */
static bool sink(struct grow *g, tir_block b, const struct vm_value *inner, uint32_t count) {
  struct vm_value order[MOST_LOOPS];
  struct loop_list loops = loops_around(g, b);
  uint32_t n = 0;
  for (uint32_t i = 0; i < loops.count; i++) {
    if (is_inner(g, loops.at[i], inner, count)) continue;
    if (n + count == MOST_LOOPS || !ref_loop(g, b, loops.at[i], &order[n++])) return false;
  }
  if (n + count < 2) return true;
  memcpy(order + n, inner, count * sizeof *inner);
  return perform(g, VM_Reorder, order, n + count, NO_VALUES, NULL, NULL);
}

/* The init apart; *init: its block. */
static bool decompose(struct grow *g, tir_block b, tir_block *init) {
  struct loop_list loops = loops_around(g, b);
  struct vm_value block, loop;
  uint32_t first, i = 0;
  while (i < loops.count && !drives(g, b, loops.at[i], TIR_REDUCE)) i++;
  if (i == loops.count || !ref_block(g, b, &block) || !ref_loop(g, b, loops.at[i], &loop) ||
      !perform(g, VM_DecomposeReduction, VALUES(block, loop), NO_VALUES, &first, NULL))
    return false;
  *init = vm_statement(g->schedule, first);
  return true;
}

/* The tile, as a loop or as a block made of it, is done by the intrinsic. */
static bool tensorize(struct grow *g, const struct pattern *p, struct vm_value tile, bool keep_units) {
  struct vm_value name = text_value(g, p->name);
  uint32_t first;
  if (once_in(g, 2)) {
    if (!perform(g, VM_Blockize, VALUES(tile), VALUES(vm_bool(keep_units)), &first, NULL)) return false;
    tile = vm_ref(first);
  }
  return perform(g, VM_Tensorize, VALUES(tile), VALUES(name, vm_bool(keep_units)), NULL, NULL);
}

static bool fit(struct grow *g, tir_block b, const struct pattern *p, const tir_loop *loops, tir_block *init) {
  struct vm_value inner[4];
  uint32_t count = (uint32_t)strlen(p->kinds);
  bool whole = tir_block_at(g->schedule->ir, b)->iters.count == count;
  if (!split_tile(g, b, p, loops, inner) || !sink(g, b, inner, count)) return false;
  if (reduces(g, b) && has_init(g, b) && percent(g, 95) && !decompose(g, b, init)) return false;
  return tensorize(g, p, inner[0], percent(g, whole ? 80 : 20));
}

/* Blocks in random order, and for each the patterns from a random one on. */
bool propose_tensorize(struct grow *g, enum vm_kind kind) {
  struct block_list blocks = shuffled_blocks(g);
  tir_loop loops[4];
  tir_block init;
  struct vm_value loop;
  for (uint32_t i = 0; i < blocks.count; i++)
    for (uint32_t k = 0, start = below(g, PATTERNS); k < PATTERNS; k++) {
      const struct pattern *p = &patterns[(start + k) % PATTERNS];
      if ((g->plain && p->interpreted) || !buffers_fit(g, blocks.at[i], p)) continue;
      if (choose_loops(g, blocks.at[i], p, loops)) return fit(g, blocks.at[i], p, loops, &init);
    }
  tir_block b = draw_block(g);
  struct loop_list around = loops_around(g, b);
  if (!around.count || !ref_loop(g, b, around.at[around.count - 1], &loop)) return false;
  struct vm_value name = text_value(g, patterns[below(g, PATTERNS)].name);
  return perform(g, kind, VALUES(loop), VALUES(name, vm_bool(true)), NULL, NULL);
}

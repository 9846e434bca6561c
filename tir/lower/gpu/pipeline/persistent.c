/* Persistent: as many blocks as a device has at a time do all tiles of a kernel, each one after the other, so that a
 * warp group which only copies (producer.c) goes on to the next tile while the others still store what they have
 * summed up.
 *
 *   for bx(256): { producer: for k: copy S[k % 3] }; C = 0; for k: C += S[k % 3]; store C     becomes, of 132 blocks,
 *
 *   for bx(132): { producer: for turn(1 + (255 - bx) / 132): for k(9): copy S[(turn * 9 + k) % 3], of that tile }
 *                for turn(1 + (255 - bx) / 132): C = 0; for k(9): C += S[(turn * 9 + k) % 3]; store C
 *
 * A software pipeline that has a producer asks for it, by the number of blocks. Iterations are numbered on from tile
 * to tile, so that stage buffers and parities of barriers go on as well; behind a tile's last products what they
 * have read may be overwritten (mbarrier.c). All else that a kernel does is done again for each tile, and what its
 * threads share besides lives at no time beside the stage buffers (shared_memory.c), and is kept apart from the next
 * tile's by barriers (barriers.c). The number of turns is the same for all threads of a block, and needs not be that
 * of other blocks. Source: Shah et al., "FlashAttention-3", NeurIPS 2024, section 3.1; CUTLASS, "Efficient GEMM in
 * CUDA", persistent kernels. */
#include "pipeline.h"

static bool has_barriers(const struct tir *ir, tir_stmt kernel) {
  for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel))
    if (lower_calls(ir, s, TIR_MBARRIER_INIT)) return true;
  return false;
}

/* Notes the kernel's loops of blocks, x first, and how many tiles these are; -1: that is no constant. */
static int64_t find_tiles(struct pipeline *p) {
  const struct tir *ir = p->low->ir;
  int64_t tiles = 1;
  for (tir_stmt s = pipeline_kernel(p); tir_is_bound(ir, s); s = tir_stmt_at(ir, s)->first[TIR_BODY]) {
    enum tir_axis axis = tir_loop_axis(ir, s);
    if (!tir_is_block_axis(axis)) continue;
    int64_t extent = tir_loop_extent(ir, s);
    p->axes[axis] = s;
    if (extent < 0 || __builtin_mul_overflow(tiles, extent, &tiles) || tiles > INT32_MAX) return -1;
  }
  return tiles;
}

/* NULL: as many blocks can do all tiles. */
static const char *why_not_persistent(struct pipeline *p, int64_t blocks, int64_t tiles) {
  if (!p->plan.producer) return "no producer warp group copies";
  if (!tir_is_int(p->low->ir, p->extent)) return "its iterations are no constant number";
  if (tiles < 0) return "the number of tiles is no constant";
  if (tiles <= blocks) return "there are no more tiles than that";
  return has_barriers(p->low->ir, pipeline_kernel(p)) ? "another loop of the kernel has mbarriers" : NULL;
}

/* How many tiles the block does: its own, and each that is a multiple of all blocks after it. */
static tir_expr turns_of(struct tir *ir, tir_type type, tir_expr block, int64_t tiles, int64_t blocks) {
  if (tiles % blocks == 0) return tir_int(ir, type, tiles / blocks);
  tir_expr behind = tir_sub(ir, tir_int(ir, type, tiles - 1), tir_cast(ir, type, block));
  return tir_add(ir, tir_floordiv(ir, behind, tir_int(ir, type, blocks)), tir_int(ir, type, 1));
}

void pipeline_find_tiles(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  int64_t blocks = p->plan.blocks;
  if (!blocks) return;
  int64_t tiles = p->tiles = find_tiles(p);
  const char *why = why_not_persistent(p, blocks, tiles);
  if (why) {
    char note[200];
    snprintf(note, sizeof note, "one of %lld blocks that do one tile after the other: %s", (long long)blocks, why);
    lower_note(p->low, p->loop, note);
    p->plan.blocks = 0;
    return;
  }
  tir_type type = tir_type_of(ir, p->extent);
  tir_expr zero = tir_int(ir, TIR_T_I32, 0), size = tir_int(ir, TIR_T_I32, blocks);
  p->block = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "block"), TIR_T_I32, zero, size);
  tir_expr turns = turns_of(ir, type, tir_var_expr(ir, p->block), tiles, blocks);
  p->turn = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "turn"), type, tir_int(ir, type, 0), turns);
}

/* Blocks are numbered along x first: those of one row of the grid are neighbours. */
static void name_tile(struct pipeline *p, tir_expr tile) {
  assert(p->tiles > p->plan.blocks && p->plan.blocks > 0 && tir_type_of(p->low->ir, tile) == TIR_T_I32);
  struct tir *ir = p->low->ir;
  tir_expr at[3] = {TIR_NONE, TIR_NONE, TIR_NONE};
  int64_t left = p->tiles; /* the pipelined loop is gone by now: none are found from it */
  for (int a = 0; a < 3; a++) {
    if (!p->axes[a]) continue;
    struct tir_stmt_node n = *tir_as(ir, p->axes[a], TIR_LOOP);
    tir_expr extent = tir_cast(ir, TIR_T_I32, n.loop.extent);
    left /= tir_at(ir, extent)->imm; /* tiles are no more than there are: of the last axis no remainder is needed */
    tir_expr place = left > 1 ? tir_floormod(ir, tile, extent) : tile;
    at[a] = tir_add(ir, n.loop.min, tir_cast(ir, ir->vars.at[n.loop.var].type, tir_simplify(ir, place)));
    tile = left > 1 ? tir_floordiv(ir, tile, extent) : tir_int(ir, TIR_T_I32, 0);
  }
  assert(left == 1 && "all axes together have the tiles");
  for (int a = 0; a < 3; a++)
    if (at[a]) tir_subst_var(ir, tir_as(ir, p->axes[a], TIR_LOOP)->loop.var, at[a]);
}

/* The list's statements from `first` on, once a tile; `turn` numbers these. */
static tir_stmt repeat(struct pipeline *p, tir_var turn, tir_stmt first) {
  struct tir *ir = p->low->ir;
  struct tir_var_node v = ir->vars.at[turn];
  tir_stmt loop = tir_new_loop(ir, turn, v.min, v.extent, TIR_SERIAL);
  tir_insert_before(ir, first, loop);
  for (tir_stmt s = first, next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    tir_detach(ir, s);
    tir_append(ir, loop, TIR_BODY, s);
  }
  tir_expr done = tir_cast(ir, TIR_T_I32, tir_var_expr(ir, turn)), blocks = ir->vars.at[p->block].extent;
  name_tile(p, tir_add(ir, tir_mul(ir, done, blocks), tir_var_expr(ir, p->block)));
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  return loop;
}

/* The first axis has the blocks, the others one each. */
static void set_axes(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  bool first = true;
  for (int a = 0; a < 3; a++) {
    if (!p->axes[a]) continue;
    struct tir_var_node v = ir->vars.at[tir_as(ir, p->axes[a], TIR_LOOP)->loop.var];
    tir_expr zero = tir_int(ir, v.type, 0), one = tir_int(ir, v.type, 1);
    tir_var var = first ? p->block : tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, zero, one);
    struct tir_var_node now = ir->vars.at[var];
    struct tir_stmt_node *n = tir_as(ir, p->axes[a], TIR_LOOP);
    n->loop.var = var, n->loop.min = now.min, n->loop.extent = now.extent;
    first = false;
  }
}

void pipeline_put_tiles(struct pipeline *p) {
  assert(p->plan.producer && lower_is_producer(p->low->ir, p->producer));
  struct tir *ir = p->low->ir;
  struct tir_var_node v = ir->vars.at[p->turn];
  tir_var own = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, v.min, v.extent);
  tir_stmt copies = repeat(p, own, tir_stmt_at(ir, p->producer)->first[TIR_BODY]);
  tir_subst_var(ir, p->turn, tir_var_expr(ir, own));
  for (tir_stmt s = tir_stmt_at(ir, copies)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  repeat(p, p->turn, tir_stmt_at(ir, p->producer)->next);
  set_axes(p);
}

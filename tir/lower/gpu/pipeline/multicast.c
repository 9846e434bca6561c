/* Multicast: blocks of a cluster that copy the same part of a tensor share its copy. Each brings a part of the rows to
 * the shared memory of all, so that the device's second-level cache is read once.
 *
 *   for bx(8): producer: wait(empty); expect(full); copy S <- A[0], U <- B[bx]        becomes, in clusters of 2,
 *
 *   for bx(8): producer: wait(empty); expect(full); copy half bx % 2 of A[0] to S of both, U <- B[bx]
 *
 * Blocks are neighbours along x, which what they share does not depend on. A full mbarrier counts the bytes that both
 * bring to its block; an empty one waits for the consumers of both, since each block writes to the stage buffers of
 * all: of each warp, lane r arrives in block r. A block's mbarriers are there before another copies to it, and until
 * the last has arrived: a barrier of the cluster stands at the kernel's start and end (producer.c).
 *
 * A software pipeline asks for it, by the number of blocks, where a producer warp group copies. Persistent blocks are
 * a whole number of clusters, so that those of one do neighbouring tiles at a time. Source: PTX ISA,
 * "cp.async.bulk.tensor"; CUTLASS, "sm90_pipeline.hpp", PipelineTmaAsync. */
#include "pipeline.h"

static tir_stmt loop_along_x(const struct pipeline *p) {
  const struct tir *ir = p->low->ir;
  for (tir_stmt s = pipeline_kernel(p); tir_is_bound(ir, s); s = tir_stmt_at(ir, s)->first[TIR_BODY])
    if (tir_loop_axis(ir, s) == TIR_BLOCK_X) return s;
  return TIR_NONE;
}

/* ---- Which copies ---- */

/* Blocks whose number differs only in its remainder copy from the same place. */
static bool is_shared(struct pipeline *p, const struct lower_tma_copy *copy) {
  struct tir *ir = p->low->ir;
  struct tir_var_node v = ir->vars.at[tir_as(ir, p->along_x, TIR_LOOP)->loop.var];
  tir_expr zero = tir_int(ir, v.type, 0), blocks = tir_int(ir, v.type, p->plan.multicast);
  int64_t clusters = tir_loop_extent(ir, p->along_x) / p->plan.multicast;
  tir_var cluster = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, zero, tir_int(ir, v.type, clusters));
  tir_var rank = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, zero, blocks);
  tir_expr block = tir_add(ir, tir_mul(ir, tir_var_expr(ir, cluster), blocks), tir_var_expr(ir, rank));
  tir_expr at[TIR_BOX_MOST_RANK];
  bool shared = true;
  tir_subst_var(ir, tir_as(ir, p->along_x, TIR_LOOP)->loop.var, tir_add(ir, v.min, block));
  for (uint32_t d = 0; d < copy->rank; d++) at[d] = tir_subst(ir, copy->at[d]);
  tir_subst_clear(ir);
  for (uint32_t d = 0; d < copy->rank; d++) shared = shared && !tir_uses_var(ir, tir_simplify(ir, at[d]), rank);
  return shared;
}

/* Rows of one box are divided where each part is whole pieces of the canonical layout: along the first dimension that
 * has several. NO_DIMENSION: they cannot be. */
enum { NO_DIMENSION = TIR_BOX_MOST_RANK };
static uint32_t find_divided(const struct lower_tma_copy *copy, int64_t parts) {
  int64_t rows = 1;
  uint32_t d = 0;
  while (d + 2 < copy->rank && copy->box[d] == 1) d++;
  for (uint32_t i = d; i + 1 < copy->rank; i++) rows *= copy->box[i];
  bool divides = !copy->im2col && copy->parts == 1 && copy->box[d] % parts == 0 && rows / parts % TIR_PANEL_ROWS == 0;
  return divides ? d : NO_DIMENSION;
}

/* NULL: the copies of some statement are shared, which then say so. */
static const char *why_not_shared(struct pipeline *p) {
  const char *why = "none of its copies is the same in neighbouring blocks";
  bool any = false;
  for (uint32_t i = 0; i < p->plan.count; i++) {
    struct part *part = &p->parts[i];
    if (!part->bulk || !is_shared(p, &part->copy)) continue;
    part->shared = find_divided(&part->copy, p->plan.multicast) != NO_DIMENSION;
    any |= part->shared;
    why = "the rows of a copy do not come apart in as many parts";
  }
  return any ? NULL : why;
}

/* ---- The cluster ---- */

static const char *why_no_cluster(struct pipeline *p) {
  const struct tir *ir = p->low->ir;
  int64_t blocks = p->plan.multicast;
  p->along_x = loop_along_x(p);
  int64_t extent = p->along_x ? tir_loop_extent(ir, p->along_x) : -1;
  int64_t already = p->along_x ? tir_cluster_of(ir, p->along_x) : 1;
  if (!p->plan.producer) return "no producer warp group copies";
  if (extent < 0 || extent % blocks) return "clusters do not divide the blocks along x";
  if (p->plan.blocks % blocks) return "clusters do not divide the persistent blocks";
  if (already != 1 && already != blocks) return "clusters are asked to be of another number of blocks";
  return why_not_shared(p);
}

void pipeline_find_cluster(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  if (p->plan.multicast == 1) return;
  const char *why = why_no_cluster(p);
  if (why) {
    char note[200];
    snprintf(note, sizeof note, "one whose copies are multicast to %lld blocks: %s", (long long)p->plan.multicast, why);
    lower_note(p->low, p->loop, note);
    p->plan.multicast = 1;
    return;
  }
  tir_expr blocks = tir_int(ir, TIR_T_I32, p->plan.multicast);
  tir_annotate_symbol(ir, p->along_x, tir_symbol_of(ir, TIR_CLUSTER), blocks);
  tir_var x = p->plan.blocks ? p->block : tir_as(ir, p->along_x, TIR_LOOP)->loop.var;
  p->rank = tir_floormod(ir, tir_cast(ir, TIR_T_I32, tir_var_expr(ir, x)), blocks);
}

struct lower_tma_copy pipeline_own_part(struct pipeline *p, uint32_t part) {
  struct tir *ir = p->low->ir;
  struct lower_tma_copy copy = p->parts[part].copy;
  if (!p->parts[part].shared || p->plan.multicast == 1) return copy;
  uint32_t d = find_divided(&p->parts[part].copy, p->plan.multicast);
  assert(d != NO_DIMENSION && p->rank);
  copy.box[d] /= p->plan.multicast;
  int64_t elements = 1;
  for (uint32_t i = d; i < copy.rank; i++) elements *= copy.box[i];
  tir_type type = tir_type_of(ir, copy.at[d]);
  tir_expr rows = tir_mul(ir, tir_cast(ir, type, p->rank), tir_int(ir, type, copy.box[d]));
  copy.at[d] = tir_add(ir, copy.at[d], rows);
  copy.first = tir_mul(ir, p->rank, tir_int(ir, TIR_T_I32, elements));
  copy.blocks = (1 << p->plan.multicast) - 1;
  return copy;
}

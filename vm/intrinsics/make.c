/* Tensor intrinsics from functions: a description written as a tensor expression, say, and an implementation.
 *
 * What Tensorize compares with is an update, whose root block says what it reads and writes. A function that says
 * nothing of this is brought into that form: its reductions add to what is there, without an init, and its root block
 * reads and writes what its blocks do of the parameters, in that order, whole. */
#include "vm/run.h"

#include <string.h>

enum { MOST_REGIONS = 64 };

/* A reduction's block without its init: it reads what it writes, first. */
static bool drop_init(struct tir *ir, tir_block block) {
  struct tir_region reads[MOST_REGIONS];
  struct tir_span old = tir_block_at(ir, block)->reads, writes = tir_block_at(ir, block)->writes;
  if (!tir_stmt_at(ir, block)->first[TIR_INIT]) return true;
  if (old.count + writes.count > MOST_REGIONS) return false;
  for (tir_stmt s; (s = tir_stmt_at(ir, block)->first[TIR_INIT]) != TIR_NONE;) tir_kill(ir, s);
  memcpy(reads, ir->regions.at + writes.first, writes.count * sizeof *reads);
  memcpy(reads + writes.count, ir->regions.at + old.first, old.count * sizeof *reads);
  tir_set_reads(ir, block, reads, writes.count + old.count);
  return true;
}

static bool is_param(const struct tir *ir, tir_buffer buffer) {
  struct tir_span params = ir->funcs.at[1].params;
  for (uint32_t i = 0; i < params.count; i++)
    if (ir->params.at[params.first + i].buffer == buffer) return true;
  return false;
}

/* Adds whole buffers for the parameters among the regions. */
static bool add_whole(struct tir *ir, struct tir_span regions, struct tir_region *out, uint32_t *count) {
  for (uint32_t i = 0; i < regions.count; i++) {
    tir_buffer buffer = ir->regions.at[regions.first + i].buffer;
    bool there = !is_param(ir, buffer);
    for (uint32_t k = 0; k < *count; k++) there |= out[k].buffer == buffer;
    if (there) continue;
    tir_expr ranges[2 * MOST_REGIONS];
    uint32_t rank = tir_buffer_at(ir, buffer)->rank;
    if (*count == MOST_REGIONS || rank > MOST_REGIONS) return false;
    for (uint32_t d = 0; d < rank; d++) {
      ranges[2 * d + 1] = tir_operands(ir, tir_buffer_at(ir, buffer)->shape)[d];
      ranges[2 * d] = tir_int(ir, tir_type_of(ir, ranges[2 * d + 1]), 0);
    }
    out[(*count)++] = tir_new_region(ir, buffer, ranges);
  }
  return true;
}

static bool say_regions(struct tir *ir, tir_block root) {
  struct tir_region reads[MOST_REGIONS], writes[MOST_REGIONS];
  uint32_t read = 0, written = 0;
  for (tir_stmt s = tir_next(ir, root, root); s; s = tir_next(ir, s, root)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    if (!drop_init(ir, s) || !add_whole(ir, tir_block_at(ir, s)->reads, reads, &read) ||
        !add_whole(ir, tir_block_at(ir, s)->writes, writes, &written))
      return false;
  }
  assert(read <= MOST_REGIONS && written <= MOST_REGIONS);
  tir_set_reads(ir, root, reads, read);
  tir_set_writes(ir, root, writes, written);
  return true;
}

static tir_expr own_variable(struct tir *ir, const char *name) {
  tir_var v = tir_new_var(ir, TIR_VAR_PLAIN, tir_name_of(ir, name), TIR_T_I32, TIR_NONE, TIR_NONE);
  return tir_var_expr(ir, v);
}

/* Parameters of an implementation are parts of larger buffers: they may begin anywhere, rows any distance apart. */
static void free_layout(struct tir *ir, tir_buffer buffer) {
  tir_expr strides[MOST_REGIONS];
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (tir_buffer_at(ir, buffer)->strides.count || tir_buffer_at(ir, buffer)->elem_offset) return;
  for (uint32_t d = 0; d < rank; d++) strides[d] = own_variable(ir, "s");
  tir_expr offset = own_variable(ir, "elem_offset");
  uint32_t first = tir_add_operands(ir, strides, rank);
  struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  b->strides = (struct tir_span){first, rank};
  b->elem_offset = offset;
  b->offset_factor = 1;
}

/* A copy in the form that Tensorize takes. NULL: it has no such form. */
static struct tir *as_update(const struct tir *from, bool implements) {
  tir_block root = from->funcs.count == 2 ? tir_root_block(from, 1) : TIR_NONE;
  if (!root) return NULL;
  struct tir *ir = tir_new();
  tir_copy(ir, from);
  const struct tir_block_record *r = tir_block_at(ir, root);
  if (r->reads.count || r->writes.count) return ir;
  struct tir_span params = ir->funcs.at[1].params;
  for (uint32_t i = 0; i < params.count && implements; i++) {
    tir_buffer buffer = ir->params.at[params.first + i].buffer;
    if (buffer && tir_buffer_at(ir, buffer)->rank <= MOST_REGIONS) free_layout(ir, buffer);
  }
  if (say_regions(ir, root)) return ir;
  tir_free(ir);
  return NULL;
}

bool vm_add_intrinsic(struct vm_intrinsics *table, const char *name, const struct tir *description,
                      const struct tir *implementation, ms_error *err) {
  struct tir *parts[2] = {as_update(description, false), as_update(implementation, true)};
  bool good = parts[0] && parts[1];
  if (!good)
    ms_fail(err, MS_BAD_INTRINSIC, "`%.100s`: description and implementation are one function of buffers each", name);
  good = good && vm_check_intrinsic(name, parts, err) && vm_intrinsics_put(table, name, parts, err);
  for (int i = 0; i < 2 && !good; i++)
    if (parts[i]) tir_free(parts[i]);
  return good;
}

/* Storage align: the strides of a buffer's dimension are to be some multiple and an offset. What allocates the memory
 * reads the annotation `buffer_dim_align` of the block that writes the buffer: [[index, axis, factor, offset], …].
 *
 * Requires: the block has a write region of this number; the factor is positive; the axis is one of the buffer's,
 *           counted from the end if negative; a block allocates the buffer; the annotation, if there, has that form.
 * After:    the annotation has an entry for the buffer and axis; one that was there is replaced in its place.
 * Forward:  nothing. */
#include "buffer.h"

enum { MOST_ENTRIES = 64, ENTRY = 4 };

struct storage_align_plan {
  int64_t entry[ENTRY]; /* buffer index, axis, factor, offset */
  tir_expr entries[MOST_ENTRIES];
  uint32_t count;
};

static bool is_entry(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_LIST || n->count != ENTRY) return false;
  for (uint32_t i = 0; i < ENTRY; i++)
    if (!tir_is_int(ir, ir->operands.at[n->operands + i])) return false;
  return true;
}

static bool read_annotation(const struct tir *ir, tir_block block, struct storage_align_plan *plan) {
  tir_expr value = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, "buffer_dim_align");
  plan->count = 0;
  if (!value) return true;
  const struct tir_expr_node *n = tir_at(ir, value);
  if (n->kind != TIR_LIST || n->count >= MOST_ENTRIES) return false;
  for (; plan->count < n->count; plan->count++) {
    plan->entries[plan->count] = ir->operands.at[n->operands + plan->count];
    if (!is_entry(ir, plan->entries[plan->count])) return false;
  }
  return true;
}

static bool check_storage_align(struct tir *ir, tir_block block, struct storage_align_plan *plan, ms_error *err) {
  tir_buffer buffer;
  if (plan->entry[0] < 0) plan->entry[0] = UINT32_MAX; /* out of range all the same */
  if (!tir_check_buffer_of(ir, block, (uint32_t)plan->entry[0], true, &buffer, err)) return false;
  if (plan->entry[2] <= 0)
    return tir_refuse(ir, err, MS_ALIGN_FACTOR, block, "the factor is %lld", (long long)plan->entry[2]);
  int64_t rank = tir_buffer_at(ir, buffer)->rank, axis = plan->entry[1];
  if (axis < -rank || axis >= rank)
    return tir_refuse(ir, err, MS_ALIGN_AXIS, block, "buffer `%s` has %lld dimensions: there is no axis %lld",
                      tir_buffer_name(ir, buffer), (long long)rank, (long long)axis);
  if (axis < 0) plan->entry[1] = axis + rank;
  if (!tir_check_allocated(ir, block, buffer, err)) return false;
  if (read_annotation(ir, block, plan)) return true;
  return tir_refuse(ir, err, MS_ALIGN_ANNOTATION, block, "the annotation `buffer_dim_align` of block `%s` is another",
                    tir_block_name(ir, block));
}

static bool is_int(const struct tir *ir, tir_expr entry, uint32_t i, int64_t value) {
  return tir_is_const(ir, ir->operands.at[tir_at(ir, entry)->operands + i], value);
}

static void edit_storage_align(struct tir *ir, tir_block block, struct storage_align_plan *plan) {
  tir_expr items[ENTRY];
  for (uint32_t i = 0; i < ENTRY; i++) items[i] = tir_int(ir, TIR_T_I32, plan->entry[i]);
  uint32_t at = 0;
  while (at < plan->count &&
         !(is_int(ir, plan->entries[at], 0, plan->entry[0]) && is_int(ir, plan->entries[at], 1, plan->entry[1])))
    at++;
  if (at == plan->count) plan->count++;
  plan->entries[at] = tir_list_value(ir, items, ENTRY);
  tir_expr value = tir_list_value(ir, plan->entries, plan->count);
  tir_symbol key = tir_symbol_of(ir, "buffer_dim_align");
  struct tir_span span = tir_stmt_at(ir, block)->annotations;
  tir_annotate_span(ir, &span, key, value);
  tir_stmt_at(ir, block)->annotations = span;
}

bool tir_storage_align(struct tir *ir, tir_block block, int buffer_index, int axis, int factor, int offset,
                       ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct storage_align_plan plan = {.entry = {buffer_index, axis, factor, offset}};
  if (!check_storage_align(ir, block, &plan, err)) return false;
  edit_storage_align(ir, block, &plan);
  return true;
}

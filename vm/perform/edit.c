/* Instructions that edit: operands fetched, a primitive of tir called. */
#include "vm/run.h"

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

/* A factor as a constant of the loop's type; None is left open. */
static bool get_factor(struct vm_run *r, const struct vm_operand *o, tir_type type, tir_expr *out) {
  int64_t factor = vm_get_int(r, o);
  *out = TIR_NONE;
  if (factor == VM_NIL) return true;
  if (tir_type_bits(type) <= 32 && factor != (int32_t)factor)
    return ms_fail(r->err, MS_INVALID_ARGUMENT, "the factor %lld does not fit the loop's type", (long long)factor);
  *out = tir_int(r->ir, type, factor);
  return true;
}

bool vm_do_split(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  if (!vm_get_loop(r, vm_input(r, s, 0), &loop)) return false;
  tir_type type = tir_type_of(r->ir, tir_as(r->ir, loop, TIR_LOOP)->loop.extent);
  uint32_t count = s->inputs - 1, *factors = vm_out(r, 2 * count), *loops = factors + count;
  for (uint32_t i = 0; i < count; i++)
    if (!get_factor(r, vm_input(r, s, i + 1), type, &factors[i])) return false;
  return tir_split(r->ir, loop, factors, count, vm_attr(r, s, 0)->value, vm_attr(r, s, 1)->value, loops, r->err) &&
         vm_give(r, s, loops, count);
}

static bool get_loops(struct vm_run *r, const struct vm_step *s, tir_loop **out) {
  *out = vm_out(r, s->inputs);
  for (uint32_t i = 0; i < s->inputs; i++)
    if (!vm_get_loop(r, vm_input(r, s, i), &(*out)[i])) return false;
  return true;
}

bool vm_do_fuse(struct vm_run *r, const struct vm_step *s) {
  tir_loop *loops, fused;
  return get_loops(r, s, &loops) && tir_fuse(r->ir, loops, s->inputs, vm_attr(r, s, 0)->value, &fused, r->err) &&
         vm_give_one(r, s, fused);
}

bool vm_do_reorder(struct vm_run *r, const struct vm_step *s) {
  tir_loop *loops;
  return get_loops(r, s, &loops) && tir_reorder(r->ir, loops, s->inputs, r->err) && vm_give(r, s, NULL, 0);
}

bool vm_do_merge(struct vm_run *r, const struct vm_step *s) {
  tir_loop *loops, merged;
  return get_loops(r, s, &loops) && tir_merge(r->ir, loops, s->inputs, &merged, r->err) && vm_give_one(r, s, merged);
}

enum { MOST_PARTS = 64 };

bool vm_do_loop_partition(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  int64_t factors[MOST_PARTS];
  uint32_t count = s->inputs - 1, parts, *loops = vm_out(r, count + 1);
  if (count > MOST_PARTS) return ms_fail(r->err, MS_TOO_LARGE, "a partition into %u parts", count);
  for (uint32_t i = 0; i < count; i++) factors[i] = vm_get_int(r, vm_input(r, s, i + 1));
  return vm_get_loop(r, vm_input(r, s, 0), &loop) &&
         tir_loop_partition(r->ir, loop, factors, count, loops, &parts, r->err) && vm_give(r, s, loops, parts);
}

bool vm_do_add_unit_loop(struct vm_run *r, const struct vm_step *s) {
  tir_stmt target;
  tir_loop loop;
  return vm_get_place(r, vm_input(r, s, 0), &target) && tir_add_unit_loop(r->ir, target, &loop, r->err) &&
         vm_give_one(r, s, loop);
}

bool vm_do_reorder_block_iter_var(struct vm_run *r, const struct vm_step *s) {
  enum { MOST_ITERS = 256 };
  tir_block block;
  int64_t order[MOST_ITERS];
  const struct vm_operand *list = vm_input(r, s, 1);
  if (list->count > MOST_ITERS) return ms_fail(r->err, MS_TOO_LARGE, "an order of %u iterations", list->count);
  for (uint32_t i = 0; i < list->count; i++) order[i] = vm_get_int(r, r->operands + list->value + i);
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_reorder_block_iter_var(r->ir, block, order, list->count, r->err) && vm_give(r, s, NULL, 0);
}

bool vm_do_parallel(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  return vm_get_loop(r, vm_input(r, s, 0), &loop) && tir_parallel(r->ir, loop, r->err) && vm_give(r, s, NULL, 0);
}

bool vm_do_vectorize(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  return vm_get_loop(r, vm_input(r, s, 0), &loop) && tir_vectorize(r->ir, loop, r->err) && vm_give(r, s, NULL, 0);
}

bool vm_do_unroll(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  return vm_get_loop(r, vm_input(r, s, 0), &loop) && tir_unroll(r->ir, loop, r->err) && vm_give(r, s, NULL, 0);
}

bool vm_do_bind(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  return vm_get_loop(r, vm_input(r, s, 0), &loop) && tir_bind(r->ir, loop, vm_string_at(r, vm_attr(r, s, 0)), r->err) &&
         vm_give(r, s, NULL, 0);
}

/* ---- Where a block is computed ----------------------------------------------------------------------------------- */

bool vm_do_compute_inline(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  return vm_get_block(r, vm_input(r, s, 0), &block) && tir_compute_inline(r->ir, block, r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_reverse_compute_inline(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  return vm_get_block(r, vm_input(r, s, 0), &block) && tir_reverse_compute_inline(r->ir, block, r->err) &&
         vm_give(r, s, NULL, 0);
}

typedef bool (*move)(struct tir *ir, tir_block block, tir_loop loop, bool preserve_unit_loops, int index,
                     ms_error *err);
typedef bool (*inlining)(struct tir *ir, tir_block block, ms_error *err);

/* A location drawn may be a mark: at the root the block stays, inlined it goes. */
static bool compute_at(struct vm_run *r, const struct vm_step *s, move move_under, inlining inline_into) {
  tir_block block;
  tir_loop loop;
  if (!vm_get_block(r, vm_input(r, s, 0), &block)) return false;
  int64_t location = r->slots[vm_input(r, s, 1)->value];
  if (location == VM_MARK_ROOT) return vm_give(r, s, NULL, 0);
  if (location == VM_MARK_INLINE) return inline_into(r->ir, block, r->err) && vm_give(r, s, NULL, 0);
  return vm_get_loop(r, vm_input(r, s, 1), &loop) &&
         move_under(r->ir, block, loop, vm_attr(r, s, 0)->value, (int)vm_attr(r, s, 1)->value, r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_compute_at(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  if (!vm_get_block(r, vm_input(r, s, 0), &block)) return false;
  bool located = r->located == block && r->located_by == r->next;
  return compute_at(r, s, located ? tir_compute_located : tir_compute_at, tir_compute_inline);
}

bool vm_do_reverse_compute_at(struct vm_run *r, const struct vm_step *s) {
  return compute_at(r, s, tir_reverse_compute_at, tir_reverse_compute_inline);
}

/* ---- Caches ------------------------------------------------------------------------------------------------------ */

typedef bool (*caching)(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                        const tir_block *consumers, uint32_t count, tir_block *out, ms_error *err);

static bool cache(struct vm_run *r, const struct vm_step *s, caching make) {
  tir_block block, made;
  const struct vm_operand *consumers = vm_input(r, s, 1);
  uint32_t *list = vm_out(r, consumers->count);
  if (!vm_get_block(r, vm_input(r, s, 0), &block) || !vm_get_blocks(r, consumers, list)) return false;
  int64_t index = vm_attr(r, s, 0)->value;
  if (index < 0) return ms_fail(r->err, MS_INVALID_ARGUMENT, "the buffer's index is %lld", (long long)index);
  return make(r->ir, block, (uint32_t)index, vm_string_at(r, vm_attr(r, s, 1)), list, consumers->count, &made,
              r->err) &&
         vm_give_one(r, s, made);
}

bool vm_do_cache_read(struct vm_run *r, const struct vm_step *s) { return cache(r, s, tir_cache_read); }
bool vm_do_cache_write(struct vm_run *r, const struct vm_step *s) { return cache(r, s, tir_cache_write); }

bool vm_do_rolling_buffer(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  int64_t index = vm_attr(r, s, 0)->value;
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_rolling_buffer(r->ir, block, index < 0 ? UINT32_MAX : (uint32_t)index, r->err) && vm_give(r, s, NULL, 0);
}

/* ---- Reductions -------------------------------------------------------------------------------------------------- */

bool vm_do_decompose_reduction(struct vm_run *r, const struct vm_step *s) {
  tir_block block, init;
  tir_loop loop;
  return vm_get_block(r, vm_input(r, s, 0), &block) && vm_get_loop(r, vm_input(r, s, 1), &loop) &&
         tir_decompose_reduction(r->ir, block, loop, &init, r->err) && vm_give_one(r, s, init);
}

bool vm_do_decompose_padding(struct vm_run *r, const struct vm_step *s) {
  tir_block block, constant;
  tir_loop loop;
  return vm_get_block(r, vm_input(r, s, 0), &block) && vm_get_loop(r, vm_input(r, s, 1), &loop) &&
         tir_decompose_padding(r->ir, block, loop, &constant, r->err) && vm_give_one(r, s, constant);
}

bool vm_do_rfactor(struct vm_run *r, const struct vm_step *s) {
  tir_loop loop;
  tir_block made;
  return vm_get_loop(r, vm_input(r, s, 0), &loop) &&
         tir_rfactor(r->ir, loop, (int)vm_attr(r, s, 0)->value, &made, r->err) && vm_give_one(r, s, made);
}

bool vm_do_fuse_reduction_epilogue(struct vm_run *r, const struct vm_step *s) {
  tir_block reduction, epilogue;
  return vm_get_block(r, vm_input(r, s, 0), &reduction) && vm_get_block(r, vm_input(r, s, 1), &epilogue) &&
         tir_fuse_reduction_epilogue(r->ir, reduction, epilogue, r->err) && vm_give(r, s, NULL, 0);
}

bool vm_do_online_softmax(struct vm_run *r, const struct vm_step *s) {
  tir_block maximum, sum;
  return vm_get_block(r, vm_input(r, s, 0), &maximum) && vm_get_block(r, vm_input(r, s, 1), &sum) &&
         tir_online_softmax(r->ir, maximum, sum, r->err) && vm_give(r, s, NULL, 0);
}

bool vm_do_rebase_exponential(struct vm_run *r, const struct vm_step *s) {
  tir_block maximum, sum, made[3];
  return vm_get_block(r, vm_input(r, s, 0), &maximum) && vm_get_block(r, vm_input(r, s, 1), &sum) &&
         tir_rebase_exponential(r->ir, maximum, sum, vm_get_int(r, vm_input(r, s, 2)), vm_get_int(r, vm_input(r, s, 3)),
                                made, r->err) &&
         vm_give(r, s, made, 3);
}

bool vm_do_unroll_reduction(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  return vm_get_block(r, vm_input(r, s, 0), &block) && tir_unroll_reduction(r->ir, block, r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_fuse_online_softmax(struct vm_run *r, const struct vm_step *s) {
  tir_block blocks[3], made;
  for (uint32_t i = 0; i < 3; i++)
    if (!vm_get_block(r, vm_input(r, s, i), &blocks[i])) return false;
  struct tir_softmax_tiling tiling = {.rows = vm_get_int(r, vm_input(r, s, 3)),
                                      .columns = vm_get_int(r, vm_input(r, s, 4)),
                                      .row_multiple = vm_get_int(r, vm_input(r, s, 5)),
                                      .parts = vm_get_int(r, vm_input(r, s, 6)),
                                      .skips = vm_attr(r, s, 0)->value};
  return tir_fuse_online_softmax(r->ir, blocks, &tiling, &made, r->err) && vm_give_one(r, s, made);
}

/* ---- Annotations ------------------------------------------------------------------------------------------------- */

static bool get_annotation(struct vm_run *r, const struct vm_operand *o, tir_expr *out);

static bool get_annotation_list(struct vm_run *r, const struct vm_operand *o, tir_expr *out) {
  enum { MOST_ITEMS = 4096 };
  tir_expr items[MOST_ITEMS];
  if (o->count > MOST_ITEMS) return ms_fail(r->err, MS_TOO_LARGE, "an annotation of %u items", o->count);
  assert(o->kind == VM_AT_LIST || o->count % 2 == 0); /* a map: key and value in turn */
  for (uint32_t i = 0; i < o->count; i++)
    if (!get_annotation(r, r->operands + o->value + i, &items[i])) return false;
  *out = o->kind == VM_AT_LIST ? tir_list_value(r->ir, items, o->count) : tir_map_value(r->ir, items, o->count);
  return true;
}

/* The expression of an annotation value: made when the plan was, but where it holds something drawn. */
static bool get_annotation(struct vm_run *r, const struct vm_operand *o, tir_expr *out) {
  if (o->kind == VM_AT_EXPR) return *out = (tir_expr)o->value, true;
  if (o->kind == VM_AT_LIST || o->kind == VM_AT_DICT) return get_annotation_list(r, o, out);
  int64_t value = r->slots[o->value];
  if (value == VM_NIL) return ms_fail(r->err, MS_WRONG_OPERAND, "a factor left open has no value to annotate with");
  *out = tir_int(r->ir, value == (int32_t)value ? TIR_T_I32 : TIR_T_I64, value);
  return true;
}

bool vm_do_annotate(struct vm_run *r, const struct vm_step *s) {
  tir_stmt target;
  tir_expr value;
  if (!vm_get_place(r, vm_input(r, s, 0), &target) || !get_annotation(r, vm_input(r, s, 1), &value)) return false;
  tir_annotate_symbol(r->ir, target, (tir_symbol)vm_attr(r, s, 0)->value, value);
  return vm_give(r, s, NULL, 0);
}

bool vm_do_unannotate(struct vm_run *r, const struct vm_step *s) {
  tir_stmt target;
  return vm_get_place(r, vm_input(r, s, 0), &target) &&
         tir_unannotate(r->ir, target, vm_string_at(r, vm_attr(r, s, 0)), r->err) && vm_give(r, s, NULL, 0);
}

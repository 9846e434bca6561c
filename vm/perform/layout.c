/* Instructions that change buffers: their scope, type and layout. */
#include "pad_value.h"
#include "vm/run.h"

#include <stdlib.h>
#include <string.h>

/* A region's number as the primitives take it: one below zero is out of every range. */
static uint32_t buffer_index(const struct vm_run *r, const struct vm_step *s, uint32_t attr) {
  int64_t index = vm_attr(r, s, attr)->value;
  return index < 0 ? UINT32_MAX : (uint32_t)index;
}

/* A buffer that the block writes, by its number, is given a word: a scope, a type. */
static bool set_word(struct vm_run *r, const struct vm_step *s,
                     bool (*set)(struct tir *, tir_block, uint32_t, const char *, ms_error *)) {
  tir_block block;
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         set(r->ir, block, buffer_index(r, s, 0), vm_string_at(r, vm_attr(r, s, 1)), r->err) && vm_give(r, s, NULL, 0);
}

bool vm_do_set_scope(struct vm_run *r, const struct vm_step *s) { return set_word(r, s, tir_set_scope); }
bool vm_do_unsafe_set_dtype(struct vm_run *r, const struct vm_step *s) { return set_word(r, s, tir_unsafe_set_dtype); }

bool vm_do_storage_align(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  int numbers[4];
  for (uint32_t i = 0; i < 4; i++) numbers[i] = (int)vm_attr(r, s, i)->value;
  return vm_get_block(r, vm_input(r, s, 0), &block) &&
         tir_storage_align(r->ir, block, numbers[0], numbers[1], numbers[2], numbers[3], r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_transform_block_layout(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  struct tir_index_map map;
  return vm_get_block(r, vm_input(r, s, 0), &block) && vm_get_map(r, vm_attr(r, s, 0), &map) &&
         tir_transform_block_layout(r->ir, block, &map, r->err) && vm_give(r, s, NULL, 0);
}

enum { BUFFER_READ, BUFFER_WRITTEN };

/* Which of the block's lists: type 0 its reads, 1 its writes. */
static bool get_side(struct vm_run *r, const struct vm_operand *o, bool *write) {
  *write = o->value == BUFFER_WRITTEN;
  return *write || o->value == BUFFER_READ ||
         ms_fail(r->err, MS_INVALID_ARGUMENT, "the buffer index type is %lld, not 0 or 1", (long long)o->value);
}

/* A number becomes one of the buffer's type where it is one: an integer for integers, else a real. */
static tir_expr make_pad(struct vm_run *r, tir_block block, uint32_t index, bool write, tir_expr given) {
  struct tir *ir = r->ir;
  struct tir_span span = write ? tir_block_at(ir, block)->writes : tir_block_at(ir, block)->reads;
  if (index >= span.count) return given;
  tir_type type = tir_buffer_at(ir, ir->regions.at[span.first + index].buffer)->type;
  const struct tir_expr_node n = *tir_at(ir, given);
  if (n.kind == TIR_INT_IMM && n.type != TIR_T_BOOL && tir_type_is_int(type)) return tir_int(ir, type, n.imm);
  if (n.kind == TIR_FLOAT_IMM && tir_type_is_float(type)) return tir_float(ir, type, n.real);
  return given;
}

/* What is being recorded says the type that a number became, where that is another than a number has in TVM's form. */
static void record_pad(struct vm_run *r, tir_expr given, tir_expr made, uint32_t dimensions) {
  struct vm_trace *trace = &r->schedule->trace;
  if (!r->recording || tir_type_of(r->ir, given) == tir_type_of(r->ir, made)) return;
  char *text = vm_pad_lambda_of(r->ir, made, dimensions);
  struct vm_value value = vm_string(trace, text, strlen(text));
  const struct vm_instruction *last = &trace->steps->instructions[trace->steps->count - 1];
  assert(last->kind == VM_TransformLayout);
  trace->steps->values[last->values + last->inputs + 2] = value;
  free(text);
}

bool vm_do_transform_layout(struct vm_run *r, const struct vm_step *s) {
  tir_block block;
  struct tir_index_map map;
  bool write;
  const struct vm_operand *pad = vm_attr(r, s, 2);
  if (!vm_get_block(r, vm_input(r, s, 0), &block) || !vm_get_map(r, vm_input(r, s, 1), &map) ||
      !get_side(r, vm_attr(r, s, 1), &write))
    return false;
  uint32_t index = buffer_index(r, s, 0);
  tir_expr value = pad->kind == VM_AT_EXPR ? (tir_expr)pad->value : TIR_NONE;
  if (value && tir_at(r->ir, value)->kind == TIR_NONE_IMM) value = TIR_NONE;
  if (value && tir_at(r->ir, value)->kind == TIR_STRING_IMM) {
    const char *text = tir_text(r->ir, tir_at(r->ir, value)->ref);
    value = vm_read_pad(r->ir, text);
    if (!value) return ms_fail(r->err, MS_INVALID_ARGUMENT, "the pad value is no map to one constant");
  } else if (value) {
    tir_expr made = make_pad(r, block, index, write, value);
    record_pad(r, value, made, map.result_count);
    value = made;
  }
  return tir_transform_layout(r->ir, block, index, write, &map, value, vm_attr(r, s, 3)->value, r->err) &&
         vm_give(r, s, NULL, 0);
}

bool vm_do_reindex(struct vm_run *r, const struct vm_step *s) {
  tir_block block, made;
  bool write;
  return vm_get_block(r, vm_input(r, s, 0), &block) && get_side(r, vm_attr(r, s, 1), &write) &&
         tir_reindex(r->ir, block, buffer_index(r, s, 0), write, &made, r->err) && vm_give_one(r, s, made);
}

typedef bool (*reindexing)(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope,
                           const struct tir_index_map *map, tir_block *out, ms_error *err);

static bool reindex_cache(struct vm_run *r, const struct vm_step *s, reindexing make) {
  tir_block block, made;
  struct tir_index_map map;
  return vm_get_block(r, vm_input(r, s, 0), &block) && vm_get_map(r, vm_input(r, s, 1), &map) &&
         make(r->ir, block, buffer_index(r, s, 0), vm_string_at(r, vm_attr(r, s, 1)), &map, &made, r->err) &&
         vm_give_one(r, s, made);
}

bool vm_do_reindex_cache_read(struct vm_run *r, const struct vm_step *s) {
  return reindex_cache(r, s, tir_reindex_cache_read);
}
bool vm_do_reindex_cache_write(struct vm_run *r, const struct vm_step *s) {
  return reindex_cache(r, s, tir_reindex_cache_write);
}

bool vm_do_pad_einsum(struct vm_run *r, const struct vm_step *s) {
  enum { MOST_PADDING = 64 };
  tir_block block;
  int64_t padding[MOST_PADDING];
  const struct vm_operand *list = vm_attr(r, s, 0);
  if (list->count > MOST_PADDING) return ms_fail(r->err, MS_TOO_LARGE, "%u multiples are given", list->count);
  for (uint32_t i = 0; i < list->count; i++) padding[i] = vm_get_int(r, r->operands + list->value + i);
  return vm_get_block(r, vm_input(r, s, 0), &block) && tir_pad_einsum(r->ir, block, padding, list->count, r->err) &&
         vm_give(r, s, NULL, 0);
}

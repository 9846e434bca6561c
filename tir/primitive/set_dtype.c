/* Unsafe set dtype: a buffer that a block allocates holds elements of another type. What is computed may change.
 *
 * Requires: the block has a write region of this number; the type is one that a buffer can hold; a block allocates the
 *           buffer. A buffer of the type already may be any.
 * After:    stores cast to the new type, loads cast back; so do those of what blocks match of the buffer.
 * Forward:  nothing dies. */
#include "buffer.h"

struct change {
  tir_buffer to;
  tir_type old;
};

static tir_expr load_and_cast(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct change *c = context;
  tir_expr made = tir_load(ir, c->to, indices, count, TIR_NONE);
  return tir_cast(ir, tir_type_with_lanes(c->old, tir_type_lanes(tir_type_of(ir, made))), made);
}

static void store(struct tir *ir, void *context, tir_stmt s) {
  const struct change *c = context;
  tir_expr value = tir_as(ir, s, TIR_STORE)->store.value;
  int lanes = tir_type_lanes(tir_type_of(ir, value));
  value = tir_cast(ir, tir_type_with_lanes(tir_buffer_at(ir, c->to)->type, lanes), value);
  tir_as(ir, s, TIR_STORE)->store.buffer = c->to;
  tir_as(ir, s, TIR_STORE)->store.value = value;
}

static bool check_set_dtype(struct tir *ir, tir_block block, uint32_t index, const char *dtype, tir_type *type,
                            tir_buffer *buffer, ms_error *err) {
  if (!tir_check_buffer_of(ir, block, index, true, buffer, err)) return false;
  bool known = tir_type_parse(dtype, type) && tir_type_bits(*type) && tir_type_code(*type) != TIR_HANDLE;
  if (!known || tir_type_lanes(*type) != 1)
    return tir_refuse(ir, err, MS_BUFFER_TYPE, block, "a buffer cannot hold elements of type `%s`", dtype);
  return tir_buffer_at(ir, *buffer)->type == *type || tir_check_allocated(ir, block, *buffer, err);
}

static tir_buffer change_type(struct tir *ir, tir_buffer from, tir_type type);

static void change_matches(struct tir *ir, tir_block block, tir_buffer source, tir_type type) {
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++) {
    if (ir->matches.at[i].source.buffer != source) continue;
    tir_buffer made = change_type(ir, ir->matches.at[i].buffer, type);
    tir_buffer_at(ir, made)->where = block;
    ir->matches.at[i].buffer = made;
  }
}

static tir_buffer change_type(struct tir *ir, tir_buffer from, tir_type type) {
  struct change c = {tir_copy_buffer(ir, from), tir_buffer_at(ir, from)->type};
  tir_buffer_at(ir, c.to)->type = type;
  struct tir_buffer_change how = {from, c.to, load_and_cast, store, &c};
  tir_block where = tir_buffer_at(ir, from)->where;
  struct tir_blocks users;
  tir_find_users(ir, from, TIR_NONE, &users);
  tir_change_own_uses(ir, &how, where);
  for (uint32_t i = 0; i < users.count; i++) {
    if (users.at[i] != where) tir_change_own_uses(ir, &how, users.at[i]);
    change_matches(ir, users.at[i], from, type);
    tir_retarget_regions(ir, users.at[i], from, c.to);
  }
  tir_blocks_free(&users);
  tir_change_range_loads(ir, &how);
  return c.to;
}

bool tir_unsafe_set_dtype(struct tir *ir, tir_block block, uint32_t buffer_index, const char *dtype, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  tir_buffer buffer;
  tir_type type;
  if (!check_set_dtype(ir, block, buffer_index, dtype, &type, &buffer, err)) return false;
  if (tir_buffer_at(ir, buffer)->type == type) return true;
  tir_block where = tir_buffer_at(ir, buffer)->where;
  tir_replace_alloc(ir, where, buffer, change_type(ir, buffer, type));
  return true;
}

/* Transform layout: the elements of a buffer are kept where an index map puts them.
 *
 * Requires: the block has a region of this number; the buffer is a parameter, or a block allocates it; its strides are
 *           not annotated by a user; it is used by loads and stores of elements alone. The map takes an index a
 *           dimension. Unless it is assumed to be injective, it can be inverted; where it leaves out elements, a pad
 *           value of the buffer's type is given, and a block that stores all of the buffer in order can fill them.
 * After:    the buffer has the map's shape, and every access goes through the map. A block that fills padding iterates
 *           over the new shape.
 * Forward:  loops of a block that fills padding are dead.
 *
 * An assumed injection is not looked at: what is computed may change. */
#include "inline.h"
#include "layout_padding.h"
#include "tir/analysis/loads.h"
#include "tir/index_map.h"

enum { MOST_NESTS = 16 };

struct transform_layout_plan {
  const struct tir_index_map *map;
  struct tir_index_map within; /* the map, simplified for indices within the buffer */
  struct tir_padded_layout layout;
  tir_buffer to;           /* made by the edit */
  struct tir_vars_in vars; /* of the block that the edit is at */
  tir_var dims[TIR_MOST_EDITED_RANK];
  tir_expr indices[TIR_MOST_EDITED_RANK]; /* the map's results over `dims`, as written */
  struct tir_full_nest nests[MOST_NESTS];
  uint32_t nest_count;
};

/* ---- Check ---- */

static bool has_strides(const struct tir *ir, tir_buffer buffer) {
  struct tir_span strides = tir_buffer_at(ir, buffer)->strides;
  return strides.count && !(strides.count == 1 && tir_is_const(ir, ir->operands.at[strides.first], 1));
}

static bool check_buffer(struct tir *ir, tir_block block, struct transform_layout_plan *plan, ms_error *err) {
  tir_buffer buffer = plan->layout.from;
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  plan->layout.rank = n->rank;
  plan->layout.new_rank = plan->map->result_count;
  if (n->rank != plan->map->param_count)
    return tir_refuse(ir, err, MS_INDEX_MAP_RANK, block, "the map takes %u indices; buffer `%s` has %u dimensions",
                      plan->map->param_count, tir_buffer_name(ir, buffer), n->rank);
  if (n->where && !tir_check_allocated(ir, block, buffer, NULL))
    return tir_refuse(ir, err, MS_BUFFER_IS_VIEW, block, "buffer `%s` is neither a parameter nor a block's",
                      tir_buffer_name(ir, buffer));
  if (has_strides(ir, buffer))
    return tir_refuse(ir, err, MS_BUFFER_STRIDED, block, "buffer `%s` has strides of its own",
                      tir_buffer_name(ir, buffer));
  return tir_check_no_opaque_access(ir, buffer, TIR_NONE, err);
}

static tir_var new_dim(struct tir *ir, tir_name name, tir_expr extent) {
  tir_type type = tir_type_of(ir, extent);
  return tir_new_var(ir, TIR_VAR_PLAIN, name, type, tir_int(ir, type, 0), extent);
}

static bool map_shape(struct tir *ir, tir_block block, struct transform_layout_plan *plan, ms_error *err) {
  struct tir_padded_layout *l = &plan->layout;
  tir_expr dims[TIR_MOST_EDITED_RANK];
  tir_name name = tir_name_of(ir, "axis");
  for (uint32_t i = 0; i < l->rank; i++) {
    plan->dims[i] = new_dim(ir, name, ir->operands.at[tir_buffer_at(ir, l->from)->shape + i]);
    dims[i] = tir_var_expr(ir, plan->dims[i]);
  }
  tir_map_as_written(ir, plan->map, dims, plan->indices);
  if (!tir_mapped_shape(ir, plan->indices, l->new_rank, plan->dims, l->rank, l->shape))
    return tir_refuse(ir, err, MS_INDEX_MAP_SHAPE, block, "the indices that the map gives have no shape");
  for (uint32_t i = 0; i < l->new_rank; i++) l->outputs[i] = tir_var_expr(ir, new_dim(ir, name, l->shape[i]));
  return true;
}

/* What is accessed lies in the buffer, whatever conditions make sure of it. */
static void simplify_map(struct tir *ir, struct transform_layout_plan *plan) {
  plan->within.param_count = plan->layout.rank;
  plan->within.result_count = plan->layout.new_rank;
  for (uint32_t i = 0; i < plan->layout.rank; i++) plan->within.params[i] = tir_var_expr(ir, plan->dims[i]);
  for (uint32_t i = 0; i < plan->layout.new_rank; i++) plan->within.results[i] = tir_simplify(ir, plan->indices[i]);
}

/* Each once, though several blocks in it write the buffer. */
static void find_nests(struct tir *ir, struct transform_layout_plan *plan) {
  for (uint32_t u = tir_buffer_at(ir, plan->layout.from)->writers; u; u = ir->uses.at[u].next) {
    struct tir_full_nest *made = &plan->nests[plan->nest_count];
    if (plan->nest_count == MOST_NESTS || !tir_find_full_nest(ir, plan->layout.from, ir->uses.at[u].block, made))
      continue;
    uint32_t i = 0;
    while (i < plan->nest_count && plan->nests[i].loops[0] != made->loops[0]) i++;
    plan->nest_count += i == plan->nest_count;
  }
}

static bool check_padding(struct tir *ir, tir_block block, struct transform_layout_plan *plan, ms_error *err) {
  struct tir_padded_layout *l = &plan->layout;
  if (!tir_invert_padding(ir, plan->indices, l->new_rank, plan->dims, l->rank, l->outputs, l->values, &l->padding))
    return tir_refuse(ir, err, MS_INDEX_MAP_NOT_INVERTED, block, "the map has no inverse that is known");
  if (!l->padding) return true;
  if (!l->pad)
    return tir_refuse(ir, err, MS_LAYOUT_PADS, block, "the layout has elements that buffer `%s` has not",
                      tir_buffer_name(ir, l->from));
  find_nests(ir, plan);
  if (plan->nest_count) return true;
  return tir_refuse(ir, err, MS_PADDING_NOT_FILLED, block, "no block can store the pad value in buffer `%s`",
                    tir_buffer_name(ir, l->from));
}

static bool check_transform_layout(struct tir *ir, tir_block block, uint32_t index, bool write, tir_expr pad,
                                   bool assume_injective, struct transform_layout_plan *plan, ms_error *err) {
  struct tir_padded_layout *l = &plan->layout;
  if (!tir_check_buffer_of(ir, block, index, write, &l->from, err) || !check_buffer(ir, block, plan, err)) return false;
  l->pad = pad;
  if (pad && tir_type_of(ir, pad) != tir_buffer_at(ir, l->from)->type)
    return tir_refuse(ir, err, MS_PAD_TYPE, block, "the pad value is of another type than buffer `%s`",
                      tir_buffer_name(ir, l->from));
  if (!map_shape(ir, block, plan, err) || (!assume_injective && !check_padding(ir, block, plan, err))) return false;
  simplify_map(ir, plan);
  return true;
}

/* ---- Edit ---- */

static tir_expr load_by_new_layout(struct tir *ir, void *context, const tir_expr *indices, uint32_t count) {
  const struct transform_layout_plan *plan = context;
  tir_expr mapped[TIR_MOST_EDITED_RANK];
  assert(count == plan->layout.rank);
  tir_map_indices(ir, &plan->within, indices, mapped);
  tir_simplify_access(ir, &plan->vars, mapped, plan->layout.new_rank, mapped);
  return tir_load(ir, plan->to, mapped, plan->layout.new_rank, TIR_NONE);
}

static void store(struct tir *ir, void *context, tir_stmt s) {
  const struct transform_layout_plan *plan = context;
  tir_expr indices[TIR_MOST_EDITED_RANK], mapped[TIR_MOST_EDITED_RANK];
  for (uint32_t i = 0; i < plan->layout.rank; i++)
    indices[i] = ir->operands.at[tir_as(ir, s, TIR_STORE)->store.indices + i];
  tir_map_indices(ir, &plan->within, indices, mapped);
  tir_simplify_access(ir, &plan->vars, mapped, plan->layout.new_rank, mapped);
  uint32_t first = tir_add_operands(ir, mapped, plan->layout.new_rank);
  tir_as(ir, s, TIR_STORE)->store.buffer = plan->to;
  tir_as(ir, s, TIR_STORE)->store.indices = first;
}

/* A bit a user: it reads nothing of the buffer but what its own init wrote. Not known of those past the last bit. */
static uint64_t find_own_readers(struct tir *ir, const struct tir_blocks *users, tir_buffer buffer) {
  uint64_t own = 0;
  for (uint32_t i = 0; i < users->count && i < 64; i++)
    if (tir_has_region_of(ir, tir_block_at(ir, users->at[i])->reads, buffer) &&
        !tir_reads_from_before(ir, users->at[i], buffer))
      own |= 1ull << i;
  return own;
}

/* The buffer in its new layout, defined where the old one was. */
static void make_buffer(struct tir *ir, tir_block block, struct transform_layout_plan *plan) {
  const struct tir_padded_layout *l = &plan->layout;
  plan->to = tir_copy_buffer(ir, l->from);
  uint32_t shape = tir_add_operands(ir, l->shape, l->new_rank);
  tir_buffer_at(ir, plan->to)->shape = shape;
  tir_buffer_at(ir, plan->to)->rank = l->new_rank;
  tir_block where = tir_buffer_at(ir, l->from)->where;
  if (where) {
    tir_replace_alloc(ir, where, l->from, plan->to);
    return;
  }
  struct tir_span params = ir->funcs.at[tir_func_of(ir, block)].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++)
    if (ir->params.at[i].buffer == l->from) ir->params.at[i].buffer = plan->to;
}

static void edit_transform_layout(struct tir *ir, tir_block block, struct transform_layout_plan *plan) {
  struct tir_blocks users;
  tir_find_users(ir, plan->layout.from, TIR_NONE, &users);
  uint64_t own = find_own_readers(ir, &users, plan->layout.from);
  make_buffer(ir, block, plan);
  struct tir_buffer_change change = {plan->layout.from, plan->to, load_by_new_layout, store, plan};
  for (uint32_t i = 0; i < plan->nest_count; i++) tir_fill_padding(ir, &plan->layout, &plan->nests[i], plan->to);
  for (uint32_t i = 0; i < users.count; i++) {
    tir_find_vars_in(ir, users.at[i], &plan->vars);
    tir_change_own_uses(ir, &change, users.at[i]);
    tir_renew_regions_of(ir, users.at[i], plan->layout.from, plan->to, i < 64 && own >> i & 1);
  }
  plan->vars.count = 0, plan->vars.units = false;
  tir_change_range_loads(ir, &change);
  tir_blocks_free(&users);
}

bool tir_transform_layout(struct tir *ir, tir_block block, uint32_t buffer_index, bool write,
                          const struct tir_index_map *map, tir_expr pad_value, bool assume_injective, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  struct transform_layout_plan plan = {.map = map};
  struct tir_mark mark = tir_mark(ir);
  if (!tir_rewind_unless(
          ir, &mark, check_transform_layout(ir, block, buffer_index, write, pad_value, assume_injective, &plan, err)))
    return false;
  edit_transform_layout(ir, block, &plan);
  return true;
}

/* Compiles what makes buffers for the reference interpreter: parameters, allocations, views.
 *
 * A shape, a stride or an offset that is a variable without a value is bound by the buffer that mentions it; any other
 * must agree with what is there. */
#include "interp_compile.h"

#include <string.h>

/* ---- Variables that buffers bind ---- */

static bool is_unbound(const struct compiler *c, tir_expr e) {
  const struct tir_expr_node *n = tir_at(c->ir, e);
  return n->kind == TIR_VAR && c->var_at[n->ref] == NO_OPERAND;
}

static const tir_expr *strides_of(const struct compiler *c, const struct tir_buffer_node *b) {
  /* A list of another length is a remark of the text, not a layout. */
  if (b->strides.count != b->rank || b->rank == 0) return NULL;
  return tir_operands(c->ir, b->strides.first);
}

/* Takes the value of a stride or offset from the view: binds the variable, or emits the check that they agree. */
static operand take(struct compiler *c, tir_expr e, enum op op, uint32_t slot, uint32_t dim, enum agreement what) {
  operand at = interp_registers(c, 1);
  interp_emit(c, op, at, (operand)slot, (operand)dim, 0, 0);
  if (is_unbound(c, e))
    interp_define_var(c, tir_at(c->ir, e)->ref, at);
  else
    interp_emit(c, OP_CHECK_EQUAL, 0, interp_expr(c, e, 0), at, (operand)what, (operand)slot);
  return at;
}

/* Compiles the strides of a buffer that has its own memory: all known, or none (then the memory is compact). */
static struct tir_span own_strides(struct compiler *c, const struct tir_buffer_node *b) {
  const tir_expr *strides = strides_of(c, b);
  operand values[INTERP_MOST_RANK];
  if (!strides) return (struct tir_span){0};
  for (uint32_t d = 0; d < b->rank; d++)
    if (is_unbound(c, strides[d])) return (struct tir_span){0};
  for (uint32_t d = 0; d < b->rank; d++) values[d] = interp_expr(c, strides[d], 0);
  return (struct tir_span){interp_list(c, values, b->rank), b->rank};
}

static struct tir_span own_shape(struct compiler *c, const struct tir_buffer_node *b) {
  operand values[INTERP_MOST_RANK];
  for (uint32_t d = 0; d < b->rank; d++) values[d] = interp_expr(c, tir_operands(c->ir, b->shape)[d], 0);
  return (struct tir_span){interp_list(c, values, b->rank), b->rank};
}

static bool is_fit(struct compiler *c, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(c->ir, buffer);
  char text[24];
  if (b->rank + 1 > INTERP_MOST_RANK)
    interp_refuse(c, MS_TOO_LARGE, "buffer %s has too many dimensions", tir_text(c->ir, b->name));
  if (!interp_has_format(tir_type_with_lanes(b->type, 1)))
    interp_refuse(c, MS_RUN_UNSUPPORTED, "buffer %s: elements of type %s are not interpreted", tir_text(c->ir, b->name),
                  tir_type_text(b->type, text));
  return !c->failed;
}

/* Emits `op` for a buffer whose layout is its own affair, then binds what variables its strides and offset are. */
static uint32_t emit_own(struct compiler *c, enum op op, tir_buffer buffer, struct site site) {
  assert(op == OP_PARAM || op == OP_ALLOC || op == OP_MATCH || op == OP_DECLARE);
  const struct tir_buffer_node *b = tir_buffer_at(c->ir, buffer);
  if (!is_fit(c, buffer)) return 0;
  site.buffer = buffer;
  site.shape = own_shape(c, b);
  site.strides = own_strides(c, b);
  site.offset = b->elem_offset && !is_unbound(c, b->elem_offset) ? interp_expr(c, b->elem_offset, 0) : NO_OPERAND;
  site.slot = interp_define_buffer(c, buffer);
  INTERP_PUSH(c->program->sites, site);
  interp_emit(c, op, 0, (operand)(c->program->sites.count - 1), 0, 0, 0);
  const tir_expr *strides = strides_of(c, b);
  for (uint32_t d = 0; strides && !site.strides.count && d < b->rank; d++)
    take(c, strides[d], OP_VIEW_STRIDE, site.slot, d, AGREE_STRIDE);
  if (b->elem_offset && is_unbound(c, b->elem_offset))
    take(c, b->elem_offset, OP_VIEW_OFFSET, site.slot, 0, AGREE_OFFSET);
  return site.slot;
}

/* ---- Memory of its own ---- */

void interp_param(struct compiler *c, const struct tir_param *param, uint32_t index) {
  assert(param->buffer || param->var);
  uint32_t slot = emit_own(c, OP_PARAM, param->buffer, (struct site){.param = index});
  if (!param->var || c->failed) return;
  operand at = interp_registers(c, 1);
  interp_emit(c, OP_DATA, at, (operand)slot, 0, 0, 0);
  interp_define_var(c, param->var, at);
}

/* Within a kernel, shared memory belongs to a block of threads, global memory to all, and operands of tensor units to a
 * warp; the rest is each thread's. */
static enum share share_of(const struct compiler *c, tir_buffer buffer) {
  enum tir_memory memory = tir_buffer_memory(c->ir, buffer);
  if (!c->in_kernel) return SHARE_NONE;
  if (memory == TIR_BLOCK_MEMORY) return SHARE_BLOCK;
  if (tir_is_group_fragment(c->ir, buffer)) return SHARE_WARP_GROUP;
  if (tir_is_fragment(c->ir, buffer)) return SHARE_WARP;
  return memory == TIR_DEVICE_MEMORY ? SHARE_GRID : SHARE_NONE;
}

/* Of the allocations in workspaces. */
static uint8_t smallest_element(const struct compiler *c) {
  int least = 8;
  for (tir_buffer b = 1; b < c->ir->buffers.count; b++) {
    if (!tir_is_placed(c->ir, b)) continue;
    enum format format = interp_format(tir_type_with_lanes(tir_buffer_at(c->ir, b)->type, 1));
    int size = format == FORMAT_BAD ? 1 : interp_format_size(format);
    if (size < least) least = size;
  }
  return (uint8_t)least;
}

void interp_alloc(struct compiler *c, tir_buffer buffer) {
  assert(tir_is_buffer(c->ir, buffer));
  enum share share = share_of(c, buffer);
  /* No lane begins the buffer's next life while others still use the last one, nor before it is made. */
  if (share == SHARE_WARP || share == SHARE_WARP_GROUP)
    interp_emit(c, OP_WARP, 0, share == SHARE_WARP ? WARP : TIR_GROUP, 0, 0, 0);
  uint8_t grain = buffer == c->workspace.buffer ? smallest_element(c) : 0;
  emit_own(c, OP_ALLOC, buffer, (struct site){.share = (uint8_t)share, .grain = grain});
}

void interp_declare(struct compiler *c, tir_buffer buffer) {
  assert(tir_is_buffer(c->ir, buffer));
  tir_expr data = tir_buffer_at(c->ir, buffer)->data;
  if (!data) {
    interp_alloc(c, buffer);
    return;
  }
  operand pointer = interp_expr(c, data, 0);
  struct site site = {.args = {interp_list(c, &pointer, 1), 1}, .begins = tir_is_placed(c->ir, buffer)};
  emit_own(c, OP_DECLARE, buffer, site);
}

/* ---- Views of a region ---- */

/* The view's shape is the region's extents, its last dimensions. */
static struct tir_span match_shape(struct compiler *c, const struct tir_buffer_node *b, const operand *extents) {
  operand values[INTERP_MOST_RANK];
  for (uint32_t d = 0; d < b->rank; d++) {
    tir_expr shape = tir_operands(c->ir, b->shape)[d];
    values[d] = extents[d];
    if (is_unbound(c, shape))
      interp_define_var(c, tir_at(c->ir, shape)->ref, extents[d]);
    else
      interp_emit(c, OP_CHECK_EQUAL, 0, interp_expr(c, shape, 0), extents[d], AGREE_EXTENT, 0);
  }
  return (struct tir_span){interp_list(c, values, b->rank), b->rank};
}

void interp_match(struct compiler *c, const struct tir_match *match) {
  assert(tir_is_buffer(c->ir, match->buffer) && tir_is_buffer(c->ir, match->source.buffer));
  const struct tir_buffer_node *b = tir_buffer_at(c->ir, match->buffer);
  const struct tir_buffer_node *source = tir_buffer_at(c->ir, match->source.buffer);
  const tir_expr *ranges = tir_operands(c->ir, match->source.ranges);
  operand mins[INTERP_MOST_RANK], extents[INTERP_MOST_RANK];
  if (!is_fit(c, match->buffer) || !is_fit(c, match->source.buffer)) return;
  if (b->rank > source->rank || b->type != source->type) {
    interp_refuse(c, MS_RUN_MATCH, "%s cannot be a view of %s: its dimensions or its type differ",
                  tir_text(c->ir, b->name), tir_text(c->ir, source->name));
    return;
  }
  for (uint32_t d = 0; d < source->rank; d++) {
    mins[d] = interp_expr(c, ranges[2 * d], 0);
    extents[d] = interp_expr(c, ranges[2 * d + 1], 0);
  }
  struct site site = {.buffer = match->buffer, .source = match->source.buffer, .offset = NO_OPERAND};
  site.source_slot = interp_slot(c, match->source.buffer);
  site.args = (struct tir_span){interp_list(c, mins, source->rank), 2 * source->rank};
  interp_list(c, extents, source->rank);
  site.shape = match_shape(c, b, extents + (source->rank - b->rank));
  site.slot = interp_define_buffer(c, match->buffer);
  INTERP_PUSH(c->program->sites, site);
  interp_emit(c, OP_MATCH, 0, (operand)(c->program->sites.count - 1), 0, 0, 0);
  const tir_expr *strides = strides_of(c, b);
  for (uint32_t d = 0; strides && d < b->rank; d++) take(c, strides[d], OP_VIEW_STRIDE, site.slot, d, AGREE_STRIDE);
  if (!b->elem_offset) return;
  operand offset = take(c, b->elem_offset, OP_VIEW_OFFSET, site.slot, 0, AGREE_OFFSET);
  if (b->offset_factor > 1)
    interp_emit(c, OP_CHECK_DIVISIBLE, 0, offset, interp_int(c, b->offset_factor), 0, (operand)site.slot);
}

/* Elements, vectors and regions of buffers by subscripts; attributes of buffers. */
#include "reader.h"
#include "tir/arith/linear.h"

#include <string.h>

/* ---- Subscripts ---- */

/* An element of an index: a value or a slice. */
static bool tir_read_index(struct tir_reader *r, struct tir_item *out) {
  struct tir_item parts[3] = {{.kind = TIR_ITEM_NONE}, {.kind = TIR_ITEM_NONE}, {.kind = TIR_ITEM_NONE}};
  uint32_t token = r->at, colons = 0;
  for (;;) {
    if (!tir_reader_is_char(r, ':') && !tir_reader_is_char(r, ',') && !tir_reader_is_char(r, ']'))
      if (!tir_read_value(r, &parts[colons])) return false;
    if (colons == 2 || !tir_reader_take_char(r, ':')) break;
    colons++;
  }
  if (!colons) {
    if (r->at == token) return tir_reader_fail(r, token, MS_TEXT_SYNTAX, "expected an index");
    *out = parts[0];
    return true;
  }
  *out = (struct tir_item){.kind = TIR_ITEM_SLICE, .token = token, .first = r->item_count, .count = 3};
  for (int i = 0; i < 3; i++) tir_reader_push_item(r, parts[i]);
  return true;
}

/* A slice's start, stop and step, of one type; false where one is missing, or no integer. */
static bool slice_parts(struct tir_reader *r, struct tir_item slice, tir_expr parts[3]) {
  assert(slice.kind == TIR_ITEM_SLICE && slice.count == 3 && slice.first + 3 <= r->item_count);
  struct tir_item step = r->items[slice.first + 2];
  if (r->items[slice.first].kind == TIR_ITEM_NONE || r->items[slice.first + 1].kind == TIR_ITEM_NONE)
    return tir_reader_fail(r, slice.token, MS_TEXT_TYPE, "a vector's slice needs both its start and its stop");
  if (step.kind == TIR_ITEM_NONE) step = (struct tir_item){.kind = TIR_ITEM_INT, .token = slice.token, .integer = 1};
  return tir_reader_as_expr(r, r->items[slice.first], &parts[0]) &&
         tir_reader_as_expr(r, r->items[slice.first + 1], &parts[1]) && tir_reader_as_expr(r, step, &parts[2]) &&
         tir_reader_match(r, slice.token, &parts[0], &parts[1]) &&
         tir_reader_match(r, slice.token, &parts[0], &parts[2]);
}

/* The number of elements of a slice, if it is a constant a vector can have; else 0. */
static int slice_lanes(struct tir *ir, const tir_expr parts[3]) {
  if (!tir_is_index(ir, parts[0]) || !tir_is_index(ir, parts[1]) || !tir_is_int(ir, parts[2])) return 0;
  int64_t stride = tir_at(ir, parts[2])->imm;
  tir_expr length = tir_sub(ir, parts[1], parts[0]);
  if (stride < 1 || !tir_is_int(ir, length) || tir_at(ir, length)->imm < 1) return 0;
  int64_t count = (tir_at(ir, length)->imm - 1) / stride + 1;
  return count <= TIR_MOST_LANES ? (int)count : 0;
}

/* start:stop:step as a ramp; one element is a plain index. */
static bool slice_as_ramp(struct tir_reader *r, struct tir_item slice, tir_expr *out) {
  tir_expr parts[3];
  if (!slice_parts(r, slice, parts)) return false;
  int lanes = slice_lanes(r->ir, parts);
  if (!lanes)
    return tir_reader_fail(r, slice.token, MS_TEXT_TYPE,
                           "expected a slice of a constant number of elements, 1 to %d, with a positive step",
                           TIR_MOST_LANES);
  *out = lanes == 1 ? parts[0] : tir_ramp(r->ir, parts[0], parts[2], lanes);
  return tir_reader_note(r, slice.token, *out);
}

bool tir_reader_load(struct tir_reader *r, struct tir_item region, tir_expr *out) {
  assert(region.kind == TIR_ITEM_REGION && region.count <= TIR_MOST_RANK);
  tir_expr indices[TIR_MOST_RANK];
  if (region.count != tir_buffer_at(r->ir, region.buffer)->rank)
    return tir_reader_fail(r, region.token, MS_TEXT_TYPE, "expected an element or a vector, found a region");
  int64_t lanes = tir_type_lanes(tir_buffer_at(r->ir, region.buffer)->type);
  for (uint32_t i = 0; i < region.count; i++) {
    struct tir_item item = r->items[region.first + i];
    if (item.kind == TIR_ITEM_SLICE ? !slice_as_ramp(r, item, &indices[i]) : !tir_reader_as_expr(r, item, &indices[i]))
      return false;
    tir_type type = tir_type_of(r->ir, indices[i]);
    if (!tir_type_is_int(type)) return tir_reader_fail(r, item.token, MS_TEXT_TYPE, "expected an integer index");
    if (!tir_reader_count_lanes(r, item.token, indices[i], &lanes)) return false;
  }
  *out = tir_load(r->ir, region.buffer, indices, region.count, TIR_NONE);
  return tir_reader_note(r, region.token, *out);
}

/* One dimension of a region given as an argument: an index, or a slice whose bounds default to the buffer's. */
static bool region_index(struct tir_reader *r, struct tir_item v, uint32_t i, tir_expr *out) {
  assert(i < tir_buffer_at(r->ir, v.buffer)->rank);
  struct tir_item item = {.kind = TIR_ITEM_NONE, .token = v.token}, from = item, to = item;
  if (i < v.count) item = r->items[v.first + i];
  if (item.kind == TIR_ITEM_SLICE) from = r->items[item.first], to = r->items[item.first + 1];
  tir_expr stop = tir_operands(r->ir, tir_buffer_at(r->ir, v.buffer)->shape)[i];
  tir_expr start = tir_reader_zero(r, tir_type_of(r->ir, stop));
  bool index = i < v.count && item.kind != TIR_ITEM_SLICE;
  if (index && !tir_reader_as_expr(r, item, &start)) return false;
  if (from.kind != TIR_ITEM_NONE && !tir_reader_as_expr(r, from, &start)) return false;
  if (to.kind != TIR_ITEM_NONE && !tir_reader_as_expr(r, to, &stop)) return false;
  if (!tir_type_is_int(tir_type_of(r->ir, start)) || !tir_type_is_int(tir_type_of(r->ir, stop)))
    return tir_reader_fail(r, item.token, MS_TEXT_TYPE, "expected integers as indices");
  *out = index ? start : tir_slice(r->ir, start, stop, TIR_NONE);
  return tir_reader_note(r, v.token, *out);
}

/* A region given as an argument: a load whose indices are slices. With one slice, of a constant length, it is a vector:
 * the text does not distinguish them. */
static bool region_as_load(struct tir_reader *r, struct tir_item v, tir_expr *out) {
  tir_expr indices[TIR_MOST_RANK], *slice = NULL;
  uint32_t rank = tir_buffer_at(r->ir, v.buffer)->rank, slices = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (!region_index(r, v, i, &indices[i])) return false;
    if (tir_at(r->ir, indices[i])->kind != TIR_SLICE) continue;
    slice = &indices[i];
    slices++;
  }
  if (slices == 1) {
    tir_expr parts[3] = {tir_at(r->ir, *slice)->a, tir_at(r->ir, *slice)->b, tir_int(r->ir, TIR_T_I32, 1)};
    if (!tir_reader_match(r, v.token, &parts[0], &parts[1]) || !tir_reader_match(r, v.token, &parts[0], &parts[2]))
      return false;
    int lanes = slice_lanes(r->ir, parts);
    if (lanes == 1) *slice = parts[0];
    if (lanes > 1) *slice = tir_ramp(r->ir, parts[0], parts[2], lanes);
    if (!tir_reader_note(r, v.token, *slice)) return false;
  }
  *out = tir_load(r->ir, v.buffer, indices, rank, TIR_NONE);
  return tir_reader_note(r, v.token, *out);
}

bool tir_reader_as_argument(struct tir_reader *r, struct tir_item v, tir_expr *out) {
  return v.kind == TIR_ITEM_REGION ? region_as_load(r, v, out) : tir_reader_as_expr(r, v, out);
}

/* buffer[…], at the opening bracket. */
bool tir_read_subscript(struct tir_reader *r, struct tir_item buffer, struct tir_item *out) {
  assert(buffer.kind == TIR_ITEM_BUFFER && tir_reader_is_char(r, '['));
  struct tir_item indices[TIR_MOST_RANK];
  uint32_t count = 0, rank = tir_buffer_at(r->ir, buffer.buffer)->rank, open = r->at++;
  bool open_slice = false;
  if (tir_reader_is(r, r->at, TIR_PUNCT('(', 0)) && tir_reader_is(r, r->at + 1, TIR_PUNCT(')', 0)) &&
      tir_reader_is(r, r->at + 2, TIR_PUNCT(']', 0)))
    r->at += 2;
  while (!tir_reader_is_char(r, ']')) {
    if (count == rank) return tir_reader_fail(r, r->at, MS_TEXT_TYPE, "this buffer has only %u dimensions", rank);
    if (!tir_read_index(r, &indices[count])) return false;
    if (indices[count].kind == TIR_ITEM_SLICE) open_slice |= r->items[indices[count].first + 2].kind == TIR_ITEM_NONE;
    count++;
    if (!tir_reader_take_char(r, ',')) break;
  }
  if (!tir_reader_expect_char(r, ']', "after the indices")) return false;
  if (count != rank && !(count < rank && open_slice))
    return tir_reader_fail(r, open, MS_TEXT_TYPE, "this buffer has %u dimensions, %u are indexed", rank, count);
  *out = (struct tir_item){
      .kind = TIR_ITEM_REGION, .token = buffer.token, .buffer = buffer.buffer, .first = r->item_count, .count = count};
  for (uint32_t i = 0; i < count; i++) tir_reader_push_item(r, indices[i]);
  if (open_slice) return true;
  tir_expr e;
  if (!tir_reader_load(r, *out, &e)) return false;
  *out = tir_item_of_expr(e, buffer.token);
  return true;
}

bool tir_subscript_list(struct tir_reader *r, struct tir_item list, struct tir_item *out) {
  assert(list.kind == TIR_ITEM_LIST && list.first + list.count <= r->item_count);
  uint32_t token = r->at++;
  struct tir_item index;
  int64_t i;
  if (!tir_read_value(r, &index) || !tir_reader_as_int(r, index, "an index", &i) ||
      !tir_reader_expect_char(r, ']', "after the index"))
    return false;
  if (i < 0 || i >= list.count) return tir_reader_fail(r, token, MS_TEXT_TYPE, "there are %u elements", list.count);
  *out = r->items[list.first + (uint32_t)i];
  return true;
}

/* ---- Attributes of buffers ---- */

static struct tir_item list_of_operands(struct tir_reader *r, uint32_t first, uint32_t count, uint32_t token) {
  struct tir_item list = {.kind = TIR_ITEM_LIST, .token = token, .first = r->item_count, .count = count};
  for (uint32_t i = 0; i < count; i++) tir_reader_push_item(r, tir_item_of_expr(r->ir->operands.at[first + i], token));
  return list;
}

static tir_expr elem_offset_of(struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (b->elem_offset) return b->elem_offset;
  tir_type type = b->rank ? tir_type_of(ir, ir->operands.at[b->shape]) : TIR_T_I32;
  return tir_int(ir, type, 0);
}

/* The elements a pointer to the whole buffer reaches: its first dimension by its stride, or the product of its shape.
 */
static bool extent_of_buffer(struct tir_reader *r, uint32_t token, tir_buffer buffer, tir_expr *out) {
  const struct tir_buffer_node b = *tir_buffer_at(r->ir, buffer);
  const uint32_t *shape = tir_operands(r->ir, b.shape);
  if (b.rank && b.strides.count == b.rank)
    return tir_reader_binary(r, token, TIR_MUL, r->ir->operands.at[b.strides.first], shape[0], out);
  *out = tir_int(r->ir, b.rank ? tir_type_of(r->ir, shape[0]) : TIR_T_I32, 1);
  if (!tir_reader_note(r, token, *out)) return false;
  for (uint32_t i = 0; i < b.rank; i++)
    if (!tir_reader_binary(r, token, TIR_MUL, *out, r->ir->operands.at[b.shape + i], out)) return false;
  return true;
}

/* buffer.access_ptr("rw"): the pointer and how it is used, as tvm_access_ptr. */
static bool read_access_ptr(struct tir_reader *r, uint32_t token, tir_buffer buffer, struct tir_item *out) {
  struct tir_args args = {.name = "access_ptr"};
  struct tir_item mask, extent_value, offset_value;
  if (!tir_read_args(r, &args)) return false;
  if (!tir_arg_at(r, &args, 0, "access_mask", &mask) || mask.kind != TIR_ITEM_STRING)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected how it is used: \"r\", \"w\" or \"rw\"");
  int bits = 0;
  for (const char *c = tir_reader_word(r, mask.word); *c; c++)
    bits |= *c == 'r' ? TIR_POINTER_READS : *c == 'w' ? TIR_POINTER_WRITES : 0;
  tir_expr extent, offset = elem_offset_of(r->ir, buffer), moved = TIR_NONE;
  if (!tir_reader_note(r, token, offset) || !extent_of_buffer(r, token, buffer, &extent)) return false;
  if (tir_arg_at(r, &args, 3, "offset", &offset_value)) {
    if (!tir_reader_as_expr(r, offset_value, &moved) || !tir_reader_binary(r, token, TIR_ADD, offset, moved, &offset) ||
        !tir_reader_binary(r, token, TIR_SUB, extent, moved, &extent))
      return false;
  }
  if (tir_arg_at(r, &args, 4, "extent", &extent_value) && !tir_reader_as_expr(r, extent_value, &extent)) return false;
  if (!tir_args_done(r, &args, 5)) return false;
  if (!tir_reader_note(r, token, offset) || !tir_reader_note(r, token, extent)) return false;
  tir_expr e = tir_new_pointer(r->ir, buffer, offset, extent, bits);
  *out = tir_item_of_expr(e, token);
  return tir_reader_note(r, token, e);
}

/* The arguments of buffer.vload([…], predicate=…) and buffer.vstore([…], value, predicate=…). */
bool tir_read_masked(struct tir_reader *r, uint32_t token, tir_buffer buffer, bool store, tir_expr *indices,
                     struct tir_item *value, tir_expr *predicate) {
  struct tir_args args = {.token = token, .name = store ? "vstore" : "vload"};
  struct tir_item list, mask;
  uint32_t rank = tir_buffer_at(r->ir, buffer)->rank;
  if (!tir_read_args(r, &args)) return false;
  if (!tir_arg_at(r, &args, 0, "begin", &list) || list.kind != TIR_ITEM_LIST || list.count != rank)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected a list of %u indices", rank);
  for (uint32_t i = 0; i < rank; i++) {
    struct tir_item item = r->items[list.first + i];
    if (!tir_reader_as_expr(r, item, &indices[i])) return false;
    if (!tir_type_is_int(tir_type_of(r->ir, indices[i])))
      return tir_reader_fail(r, item.token, MS_TEXT_TYPE, "expected an integer index");
  }
  if (!tir_arg_at(r, &args, 1, store ? "value" : "dtype", value) && store)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected the value to store");
  *predicate = TIR_NONE;
  if (tir_arg_at(r, &args, 2, "predicate", &mask) && mask.kind != TIR_ITEM_NONE) {
    if (!tir_reader_as_expr(r, mask, predicate)) return false;
    if (tir_type_code(tir_type_of(r->ir, *predicate)) != TIR_BOOL)
      return tir_reader_fail(r, mask.token, MS_TEXT_TYPE, "expected a condition as predicate");
  }
  return tir_args_done(r, &args, 3);
}

static bool read_vload(struct tir_reader *r, uint32_t token, tir_buffer buffer, struct tir_item *out) {
  tir_expr indices[TIR_MOST_RANK], predicate;
  struct tir_item type;
  if (!tir_read_masked(r, token, buffer, false, indices, &type, &predicate)) return false;
  int64_t lanes = tir_type_lanes(tir_buffer_at(r->ir, buffer)->type);
  for (uint32_t i = 0; i < tir_buffer_at(r->ir, buffer)->rank; i++)
    if (!tir_reader_count_lanes(r, token, indices[i], &lanes)) return false;
  tir_expr e = tir_load(r->ir, buffer, indices, tir_buffer_at(r->ir, buffer)->rank, predicate);
  *out = tir_item_of_expr(e, token);
  return tir_reader_note(r, token, e);
}

/* buffer.name, after the dot. */
bool tir_read_buffer_attribute(struct tir_reader *r, struct tir_item v, struct tir_item *out) {
  assert(tir_is_buffer(r->ir, v.buffer));
  uint32_t token = r->at;
  struct tir *ir = r->ir;
  const struct tir_buffer_node *b = tir_buffer_at(ir, v.buffer);
  tir_expr e;
  if (tir_reader_take_name(r, "data")) {
    e = tir_data(ir, v.buffer);
  } else if (tir_reader_take_name(r, "elem_offset")) {
    e = elem_offset_of(ir, v.buffer);
  } else if (tir_reader_take_name(r, "shape")) {
    return *out = list_of_operands(r, b->shape, b->rank, token), true;
  } else if (tir_reader_take_name(r, "strides")) {
    return *out = list_of_operands(r, b->strides.first, b->strides.count, token), true;
  } else if (tir_reader_take_name(r, "dtype")) {
    return *out = (struct tir_item){.kind = TIR_ITEM_TYPE, .token = token, .type = b->type}, true;
  } else if (tir_reader_take_name(r, "access_ptr")) {
    return read_access_ptr(r, token, v.buffer, out);
  } else if (tir_reader_take_name(r, "vload")) {
    return read_vload(r, token, v.buffer, out);
  } else {
    return tir_reader_fail(
        r, token, MS_TEXT_NAME,
        "a buffer has no such attribute; expected data, elem_offset, strides, shape, dtype or access_ptr");
  }
  *out = tir_item_of_expr(e, v.token);
  return tir_reader_note(r, token, e);
}

/* expression.astype("float32"), after the dot. */
bool tir_read_attribute(struct tir_reader *r, struct tir_item v, struct tir_item *out) {
  uint32_t token = r->at;
  if (v.kind == TIR_ITEM_EXPR && tir_reader_take_name(r, "astype")) {
    struct tir_args args = {.name = "astype"};
    struct tir_item type_value;
    tir_type type;
    tir_expr e;
    if (!tir_read_args(r, &args)) return false;
    if (!tir_arg_at(r, &args, 0, "dtype", &type_value))
      return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected a data type");
    if (!tir_reader_as_type(r, type_value, &type) || !tir_args_done(r, &args, 1) ||
        !tir_reader_cast(r, token, type, v.expr, &e))
      return false;
    *out = tir_item_of_expr(e, v.token);
    return true;
  }
  if (v.kind == TIR_ITEM_EXPR && tir_reader_take_name(r, "dtype")) {
    *out = (struct tir_item){.kind = TIR_ITEM_TYPE, .token = token, .type = tir_type_of(r->ir, v.expr)};
    return true;
  }
  if (v.kind == TIR_ITEM_TYPE && tir_reader_take_name(r, "ty")) return *out = v, true;
  return tir_reader_fail(r, token, MS_TEXT_NAME, "this has no such attribute");
}

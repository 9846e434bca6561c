/* Types, buffers and regions from graphs of nodes. */
#include "module_graph.h"

#include <string.h>

/* ---- Types ------------------------------------------------------------------------------------------------------- */

static bool read_type(struct module_graph *g, uint32_t at, tir_type *out) {
  const json_t *node = graph_node(g->nodes, at);
  if (module_is(g, at, "PointerType")) return *out = TIR_T_HANDLE, true;
  if (module_is(g, at, "PrimType")) {
    const char *text = graph_value_type(g->nodes, node);
    if (!*text || !strcmp(text, "void")) return *out = TIR_T_VOID, true;
    return tir_type_parse(text, out) || module_fail(g, at, "dtype", "%.60s is no type that is known here", text);
  }
  struct node_list fields;
  *out = TIR_T_VOID;
  if (module_is(g, at, "TupleType") && module_list(g, at, "fields", &fields))
    return !fields.count || module_fail(g, at, "fields", "several results are not supported");
  return module_fail(g, at, NULL, "it is no type of a value");
}

bool module_type(struct module_graph *g, uint32_t node, const char *field, tir_type *out) {
  uint32_t type;
  return module_ref(g, node, field, NULL, &type) && read_type(g, type, out);
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

/* More than any machine's memory. */
static const int64_t MOST_BYTES = 1ll << 42;

bool module_check_extent(struct module_graph *g, uint32_t node, const char *field, tir_expr extent) {
  const struct tir_expr_node *n = tir_at(g->ir, extent);
  if (n->kind == TIR_INT_IMM) g->ir->has_empty |= n->imm == 0;
  if (n->kind != TIR_INT_IMM || (n->imm >= 0 && n->imm <= MOST_BYTES)) return true;
  return module_fail(g, node, field, "an extent of %lld makes no sense", (long long)n->imm);
}

static bool check_size(struct module_graph *g, uint32_t node, tir_type type, const tir_expr *shape, uint32_t rank) {
  int64_t bytes = tir_type_bytes(type);
  for (uint32_t i = 0; i < rank; i++)
    if (tir_is_int(g->ir, shape[i]) &&
        (__builtin_mul_overflow(bytes, tir_at(g->ir, shape[i])->imm, &bytes) || bytes > MOST_BYTES))
      return module_fail(g, node, "shape", "a buffer of this shape is too large for memory");
  return true;
}

static bool check_index(struct module_graph *g, uint32_t node, tir_expr e) {
  tir_type type = tir_type_of(g->ir, e);
  return (tir_type_is_int(type) && tir_type_lanes(type) == 1) || module_fail(g, node, NULL, "an integer is expected");
}

/* Extents or strides. */
static bool read_extents(struct module_graph *g, uint32_t type, const char *field, tir_expr *out, uint32_t *count) {
  struct node_list list;
  uint32_t item;
  if (!module_list(g, type, field, &list)) return false;
  if (list.count > GRAPH_MOST_RANK) return module_fail(g, type, field, "there are more than %d", GRAPH_MOST_RANK);
  *count = list.count;
  for (uint32_t i = 0; i < list.count; i++)
    if (!module_item(g, &list, i, &item) || !module_expr(g, item, &out[i]) || !check_index(g, item, out[i]))
      return false;
  return true;
}

/* A layout that says what is meant without one: rows one after another, on the axis of memory. */
static bool is_plain(struct module_graph *g, uint32_t layout, const tir_expr *shape, uint32_t rank) {
  struct node_list shard, replica, offset;
  uint32_t iter, axis;
  int64_t stride = 1;
  if (!module_is(g, layout, "TileLayout") || !module_list(g, layout, "shard", &shard) ||
      !module_list(g, layout, "replica", &replica) || !module_map(g, layout, "offset", &offset) ||
      shard.count != rank || replica.count || offset.count)
    return false;
  for (uint32_t i = rank; i-- > 0;) {
    tir_expr extent, own;
    if (!module_item(g, &shard, i, &iter) || !module_is(g, iter, "Iter") ||
        !module_index_of(g, iter, "extent", &extent) || !module_index_of(g, iter, "stride", &own) ||
        !module_ref(g, iter, "axis", "Axis", &axis))
      return false;
    const char *name = graph_text(graph_node(g->nodes, axis));
    if (!name || strcmp(name, "m") != 0 || !tir_is_int(g->ir, extent) || extent != shape[i] ||
        !tir_is_const(g->ir, own, stride) || __builtin_mul_overflow(stride, tir_at(g->ir, extent)->imm, &stride))
      return false;
  }
  return true;
}

/* What a buffer of TVM's may have and ours has not. */
static bool refuse_layout(struct module_graph *g, uint32_t type, const tir_expr *shape, uint32_t rank) {
  uint32_t layout;
  struct node_list address;
  if (!module_maybe(g, type, "layout", &layout) || !module_list(g, type, "allocated_addr", &address)) return false;
  if (layout && !is_plain(g, layout, shape, rank))
    return module_fail(g, type, "layout", "layouts of buffers are not supported");
  return !address.count || module_fail(g, type, "allocated_addr", "addresses of buffers are not supported");
}

struct buffer_parts {
  tir_type type;
  uint32_t rank, stride_count;
  tir_expr shape[GRAPH_MOST_RANK], strides[GRAPH_MOST_RANK], offset;
  int64_t alignment, factor;
  const char *scope;
};

static bool read_parts(struct module_graph *g, uint32_t type, bool matched, struct buffer_parts *p) {
  bool declares = g->declares;
  if (!module_type(g, type, "dtype", &p->type) || !module_text(g, type, "storage_scope", &p->scope) ||
      !module_integer(g, type, "data_alignment", &p->alignment) ||
      !module_integer(g, type, "offset_factor", &p->factor) || !read_extents(g, type, "shape", p->shape, &p->rank) ||
      !refuse_layout(g, type, p->shape, p->rank))
    return false;
  g->declares = matched; /* strides and the offset of what is matched are variables */
  bool good = read_extents(g, type, "strides", p->strides, &p->stride_count) &&
              module_index_of(g, type, "elem_offset", &p->offset);
  g->declares = declares;
  if (!good) return false;
  for (uint32_t i = 0; i < p->rank; i++)
    if (!module_check_extent(g, type, "shape", p->shape[i])) return false;
  if (p->alignment < -1 || p->alignment > 1 << 20 || p->factor < 0 || p->factor > 1 << 20)
    return module_fail(g, type, NULL, "its alignment or its factor makes no sense");
  if (!tir_type_is_int(p->type) && !tir_type_is_float(p->type) && tir_type_code(p->type) != TIR_BOOL &&
      tir_type_code(p->type) != TIR_HANDLE)
    return module_fail(g, type, "dtype", "a buffer has no elements of this type");
  return check_size(g, type, p->type, p->shape, p->rank);
}

bool module_new_buffer(struct module_graph *g, uint32_t var, bool matched, tir_buffer *out) {
  assert(out);
  uint32_t type;
  const char *name;
  struct buffer_parts p;
  if (!module_is(g, var, "Var")) return module_fail(g, var, NULL, "a buffer is a variable");
  if (!module_text(g, var, "name", &name) || !module_ref(g, var, "ty", "BufferType", &type) ||
      !read_parts(g, type, matched, &p))
    return false;
  struct tir *ir = g->ir;
  *out = tir_new_buffer(ir, tir_symbol_of(ir, name), p.type, p.shape, p.rank,
                        tir_symbol_of(ir, *p.scope ? p.scope : "global"));
  uint32_t first = p.stride_count ? tir_add_operands(ir, p.strides, p.stride_count) : 0;
  struct tir_buffer_node *b = tir_buffer_at(ir, *out);
  b->strides = (struct tir_span){first, p.stride_count};
  b->elem_offset = tir_is_const(ir, p.offset, 0) ? TIR_NONE : p.offset;
  b->alignment = p.alignment == 64 || p.alignment < 0 ? 0 : (uint32_t)p.alignment;
  /* 1 is said where the offset is the buffer's own variable. */
  bool own = tir_at(ir, p.offset)->kind == TIR_VAR && matched;
  b->offset_factor = p.factor == 1 && !own ? 0 : (uint32_t)p.factor;
  return module_bind(g, var, true, *out);
}

bool module_buffer(struct module_graph *g, uint32_t node, const char *field, tir_buffer *out) {
  uint32_t var;
  if (!module_ref(g, node, field, "Var", &var)) return false;
  *out = g->bindings[var].ref;
  return (*out && g->bindings[var].is_buffer) || module_fail(g, node, field, "this buffer is not known here");
}

/* ---- Regions ----------------------------------------------------------------------------------------------------- */

/* An extent is of the type of its beginning. */
static bool read_range(struct module_graph *g, uint32_t range, tir_expr *out) {
  if (!module_is(g, range, "Range")) return module_fail(g, range, NULL, "a Range is expected");
  if (!module_index_of(g, range, "min", &out[0]) || !module_index_of(g, range, "extent", &out[1])) return false;
  tir_type type = tir_type_of(g->ir, out[0]);
  if (tir_type_of(g->ir, out[1]) == type) return true;
  if (!tir_is_int(g->ir, out[1])) return module_fail(g, range, "extent", "it is of another type than the beginning");
  out[1] = tir_int(g->ir, type, tir_at(g->ir, out[1])->imm);
  return true;
}

bool module_region(struct module_graph *g, uint32_t node, struct tir_region *out) {
  assert(out);
  struct node_list list;
  tir_buffer buffer;
  tir_expr ranges[2 * GRAPH_MOST_RANK];
  uint32_t range;
  if (!module_is(g, node, "BufferRegion")) return module_fail(g, node, NULL, "a BufferRegion is expected");
  if (!module_buffer(g, node, "buffer", &buffer) || !module_list(g, node, "region", &list)) return false;
  if (list.count != tir_buffer_at(g->ir, buffer)->rank)
    return module_fail(g, node, "region", "the buffer has %u dimensions, the region %u",
                       tir_buffer_at(g->ir, buffer)->rank, list.count);
  for (uint32_t i = 0; i < list.count; i++)
    if (!module_item(g, &list, i, &range) || !read_range(g, range, ranges + 2 * i)) return false;
  *out = tir_new_region(g->ir, buffer, ranges);
  return true;
}

bool module_new_var(struct module_graph *g, uint32_t node, const char *field, enum tir_var_kind kind, tir_expr min,
                    tir_expr extent, tir_var *out) {
  uint32_t var;
  const char *name;
  tir_type type;
  if (!module_ref(g, node, field, "Var", &var) || !module_text(g, var, "name", &name) ||
      !module_type(g, var, "ty", &type))
    return false;
  if (extent && (!tir_type_is_int(type) || tir_type_lanes(type) != 1 || type != tir_type_of(g->ir, extent) ||
                 type != tir_type_of(g->ir, min)))
    return module_fail(g, var, "ty", "it is not of the type of its range");
  if (type == TIR_T_VOID || type == TIR_T_STRING) return module_fail(g, var, "ty", "it is no type of a variable");
  *out = tir_new_var(g->ir, kind, tir_name_of(g->ir, name), type, min, extent);
  return module_bind(g, var, false, tir_var_expr(g->ir, *out));
}

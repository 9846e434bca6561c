/* Index maps on expressions. */
#include "index_map.h"

#include "arith/iter_map.h"

/* ---- Results ---- */

struct application {
  struct tir *ir;
  const struct tir_index_map *map;
  const tir_expr *args;
  tir_type own, type; /* of the map's variables, and of the arguments */
  bool simplify;
};

static tir_expr apply(const struct application *a, tir_expr e);

static tir_expr converted(const struct application *a, tir_expr e, tir_type type) {
  if (tir_type_of(a->ir, e) == type) return e;
  return a->simplify ? tir_cast(a->ir, type, e) : tir_unary(a->ir, TIR_CAST, type, e);
}

/* Both of the wider of their types. */
static void apply_pair(const struct application *a, tir_expr x, tir_expr y, tir_expr *out) {
  out[0] = apply(a, x), out[1] = apply(a, y);
  tir_type type = tir_type_of(a->ir, out[0]), other = tir_type_of(a->ir, out[1]);
  if (tir_type_bits(other) > tir_type_bits(type)) type = other;
  for (int i = 0; i < 2; i++) out[i] = converted(a, out[i], type);
}

/* A call has one argument, or two of one type, or a condition before them. */
static tir_expr apply_call(const struct application *a, const struct tir_expr_node *n) {
  tir_expr args[3] = {TIR_NONE}, given[3] = {TIR_NONE};
  uint32_t choice = n->count == 3;
  assert(n->count >= 1 && n->count <= 3);
  for (uint32_t i = 0; i < n->count; i++) given[i] = a->ir->operands.at[n->operands + i];
  if (n->count != 2) args[0] = apply(a, given[0]);
  if (n->count != 1) apply_pair(a, given[choice], given[choice + 1], args + choice);
  return tir_call(a->ir, tir_type_of(a->ir, args[choice]), n->ref, args, n->count);
}

static tir_expr apply_binary(const struct application *a, enum tir_kind kind, tir_expr x, tir_expr y) {
  tir_expr pair[2];
  apply_pair(a, x, y, pair);
  return a->simplify ? tir_make(a->ir, kind, pair[0], pair[1]) : tir_binary(a->ir, kind, pair[0], pair[1]);
}

static tir_expr apply_select(const struct application *a, tir_expr condition, tir_expr x, tir_expr y) {
  tir_expr pair[2], c = apply(a, condition);
  apply_pair(a, x, y, pair);
  return tir_select(a->ir, c, pair[0], pair[1]);
}

/* A number of the map's own type; one that the arguments' type does not hold keeps it. */
static tir_expr apply_number(const struct application *a, tir_expr e) {
  const struct tir_expr_node n = *tir_at(a->ir, e);
  bool fits = tir_type_bits(a->type) >= 64 || n.imm == (int32_t)n.imm;
  return n.type == a->own && fits ? tir_int(a->ir, a->type, n.imm) : e;
}

static tir_expr apply(const struct application *a, tir_expr e) {
  struct tir *ir = a->ir;
  const struct tir_expr_node n = *tir_at(ir, e);
  switch (n.kind) {
  case TIR_INT_IMM: return apply_number(a, e);
  case TIR_VAR:
    for (uint32_t i = 0; i < a->map->param_count; i++)
      if (a->map->params[i] == e) return a->args[i];
    return e;
  case TIR_CAST: return converted(a, apply(a, n.a), n.type);
  case TIR_NOT: return a->simplify ? tir_not(ir, apply(a, n.a)) : tir_unary(ir, TIR_NOT, n.type, apply(a, n.a));
  case TIR_SELECT: return apply_select(a, n.a, n.b, n.c);
  case TIR_CALL: return apply_call(a, &n);
  default: return apply_binary(a, (enum tir_kind)n.kind, n.a, n.b);
  }
}

static void apply_all(struct tir *ir, const struct tir_index_map *map, const tir_expr *args, bool simplify,
                      tir_expr *out) {
  struct application a = {ir, map, args, TIR_T_I32, TIR_T_I32, simplify};
  if (map->param_count) a.own = tir_type_of(ir, map->params[0]);
  for (uint32_t i = 0; i < map->param_count; i++)
    if (tir_type_bits(tir_type_of(ir, args[i])) > tir_type_bits(a.type) || i == 0) a.type = tir_type_of(ir, args[i]);
  for (uint32_t i = 0; i < map->result_count; i++) out[i] = converted(&a, apply(&a, map->results[i]), a.type);
}

void tir_map_as_written(struct tir *ir, const struct tir_index_map *map, const tir_expr *args, tir_expr *out) {
  apply_all(ir, map, args, false, out);
}

void tir_map_indices(struct tir *ir, const struct tir_index_map *map, const tir_expr *args, tir_expr *out) {
  apply_all(ir, map, args, true, out);
}

/* ---- Shapes ---- */

/* The terms of an index are orthogonal: its extent is that of the largest. */
static tir_expr extent_of(struct tir_iter_map *m, struct iter_sum sum, tir_type type) {
  struct tir *ir = m->ir;
  tir_expr extent = tir_int(ir, type, 1);
  assert(sum.first + sum.count <= m->splits.count);
  for (uint32_t i = 0; i < sum.count; i++) {
    const struct iter_split split = m->splits.at[sum.first + i];
    tir_expr reach = tir_mul(ir, split.extent, split.scale);
    extent = i ? tir_make(ir, TIR_MAX, extent, reach) : reach;
  }
  return extent;
}

/* Positive, and its type holds it. */
static bool is_extent(const struct tir *ir, tir_expr extent) {
  const struct tir_expr_node *n = tir_at(ir, extent);
  return n->kind != TIR_INT_IMM || (n->imm > 0 && (tir_type_bits(n->type) >= 64 || n->imm == (int32_t)n->imm));
}

static bool shape_by_bounds(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                            uint32_t var_count, tir_expr *shape) {
  for (uint32_t i = 0; i < count; i++) {
    struct tir_interval reach = tir_relax(ir, tir_simplify(ir, indices[i]), vars, var_count);
    if (reach.empty || !reach.min || !reach.max || !tir_is_const(ir, reach.min, 0)) return false;
    shape[i] = tir_interval_extent(ir, reach);
    if (!is_extent(ir, shape[i])) return false;
  }
  return true;
}

bool tir_mapped_shape(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars, uint32_t var_count,
                      tir_expr *shape) {
  struct tir_iter_map *m = iter_map_detect(ir, indices, count, vars, var_count, TIR_NONE, TIR_MAP_ANY, false);
  if (!m) return shape_by_bounds(ir, indices, count, vars, var_count, shape);
  for (uint32_t i = 0; i < count; i++) {
    struct iter_sum sum = m->indices.at[i];
    if (!tir_is_const(ir, sum.base, 0)) return false;
    shape[i] = extent_of(m, sum, tir_type_of(ir, indices[i]));
    if (!is_extent(ir, shape[i])) return false;
  }
  return true;
}

/* ---- Inverses ---- */

/* A variable of one value need not be kept apart. */
static bool fill_units(struct tir *ir, const tir_var *vars, uint32_t var_count, tir_expr *values) {
  for (uint32_t i = 0; i < var_count; i++) {
    const struct tir_var_node *v = &ir->vars.at[vars[i]];
    if (!values[i] && tir_is_const(ir, v->extent, 1)) values[i] = v->min;
    if (!values[i]) return false;
  }
  return true;
}

bool tir_invert_bijection(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                          uint32_t var_count, const tir_expr *outputs, tir_expr *values) {
  return tir_inverse_affine_map(ir, indices, count, vars, var_count, TIR_NONE, outputs, 1, values) &&
         fill_units(ir, vars, var_count, values);
}

static void add_outside(struct tir *ir, tir_expr *padding, tir_expr outside) {
  if (tir_is_const(ir, outside, 0) || tir_prove(ir, tir_not(ir, outside))) return;
  *padding = *padding ? tir_make(ir, TIR_OR, *padding, outside) : outside;
}

/* end <= value, where all that is divided by `factor` is padded to a multiple of it: in the group where the end is,
 * what comes after the end. */
static tir_expr beyond(struct tir *ir, tir_expr value, tir_expr end, tir_expr factor) {
  tir_expr group = tir_make(ir, TIR_EQ, tir_floordiv(ir, value, factor), tir_floordiv(ir, end, factor));
  tir_expr rest = tir_make(ir, TIR_LE, tir_floormod(ir, end, factor), tir_floormod(ir, value, factor));
  return tir_make(ir, TIR_AND, group, rest);
}

static tir_expr padding_factor(const struct tir_iter_map *m, uint32_t var) {
  for (uint32_t i = 0; i < m->paddings.count; i++) {
    const struct iter_padding *p = &m->paddings.at[i];
    if (m->marks.at[p->mark].var == var + 1 && tir_is_const(m->ir, p->left, 0)) return p->factor;
  }
  return TIR_NONE;
}

/* From the indices of an element follow its own: else two elements share a place. */
static bool tells_apart(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                        uint32_t var_count, const tir_expr *outputs, const tir_expr *values) {
  tir_expr back[TIR_MOST_MAP_RANK];
  assert(var_count <= TIR_MOST_MAP_RANK);
  for (uint32_t i = 0; i < count; i++) tir_subst_var(ir, tir_at(ir, outputs[i])->ref, indices[i]);
  for (uint32_t i = 0; i < var_count; i++) back[i] = tir_subst(ir, values[i]);
  tir_subst_clear(ir);
  for (uint32_t i = 0; i < var_count; i++)
    if (!tir_prove_equal(ir, back[i], tir_var_expr(ir, vars[i]))) return false;
  return true;
}

bool tir_invert_padding(struct tir *ir, const tir_expr *indices, uint32_t count, const tir_var *vars,
                        uint32_t var_count, const tir_expr *outputs, tir_expr *values, tir_expr *padding) {
  struct tir_iter_map *m = iter_map_detect(ir, indices, count, vars, var_count, TIR_NONE, TIR_MAP_ANY, false);
  if (!m || !iter_invert(m, outputs, values) || !fill_units(ir, vars, var_count, values) ||
      !tells_apart(ir, indices, count, vars, var_count, outputs, values))
    return false;
  *padding = TIR_NONE;
  for (uint32_t i = 0; i < var_count; i++) {
    struct tir_var_node v = ir->vars.at[vars[i]];
    tir_expr end = tir_add(ir, v.min, v.extent), factor = padding_factor(m, i);
    tir_expr outside = tir_make(ir, TIR_LE, end, values[i]);
    if (factor && tir_is_const(ir, v.min, 0) && !tir_prove(ir, tir_not(ir, outside)))
      outside = beyond(ir, values[i], end, factor);
    add_outside(ir, padding, tir_make(ir, TIR_LT, values[i], v.min));
    add_outside(ir, padding, outside);
  }
  return true;
}

/* Flatten: every buffer has one dimension; an index is the sum of indices times strides, plus the buffer's offset.
 * Requires: no blocks; strides of parameters that are known where the function is called. Gives: buffers of rank 1
 * (rank 0 becomes one element), no strides, no offsets. Keeps: statements and loops; and a matrix that lies in the
 * registers of a warp, whose elements have no place in a row: calls name registers by number, which rows and columns
 * follow from. */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

struct flattening {
  struct tir *ir;
  struct {
    uint32_t rank, shape;
    struct tir_span strides;
    tir_expr offset;
    bool kept;
  } * before;
};

static tir_expr to_type(struct tir *ir, tir_type type, tir_expr e) {
  return tir_cast(ir, tir_type_with_lanes(type, tir_type_lanes(tir_type_of(ir, e))), e);
}

/* Vectors stand last in a sum, so that a ramp's base and stride stay apart. */
static tir_expr add_scaled(struct tir *ir, tir_expr sum, tir_expr index, tir_expr stride) {
  const struct tir_expr_node *n = tir_at(ir, index);
  if (n->kind == TIR_RAMP) {
    tir_expr base = add_scaled(ir, sum, n->a, stride), step = tir_mul(ir, tir_at(ir, index)->b, stride);
    return tir_ramp(ir, base, step, tir_type_lanes(tir_type_of(ir, index)));
  }
  if (tir_at(ir, sum)->kind == TIR_RAMP) {
    tir_expr base = add_scaled(ir, tir_at(ir, sum)->a, index, stride);
    return tir_ramp(ir, base, tir_at(ir, sum)->b, tir_type_lanes(tir_type_of(ir, sum)));
  }
  return tir_add(ir, sum, tir_mul(ir, index, stride));
}

static bool is_wide(struct tir *ir, tir_expr e) { return tir_type_bits(tir_type_of(ir, e)) == 64; }

/* Strides or an offset may be past 32 bits where no index is. */
static bool is_laid_out_wide(struct tir *ir, struct tir_span strides, tir_expr offset) {
  bool wide = offset && is_wide(ir, offset);
  for (uint32_t i = 0; i < strides.count; i++) wide = wide || is_wide(ir, ir->operands.at[strides.first + i]);
  return wide;
}

static bool flatten_access(struct tir *ir, void *data, struct access *a) {
  struct flattening *f = data;
  if (f->before[a->buffer].kept) return false;
  assert(a->count == f->before[a->buffer].rank && a->count <= TIR_MOST_RANK);
  bool wide = is_laid_out_wide(ir, f->before[a->buffer].strides, f->before[a->buffer].offset);
  for (uint32_t i = 0; i < a->count; i++) wide = wide || is_wide(ir, a->indices[i]);
  tir_type type = wide ? TIR_T_I64 : TIR_T_I32;
  tir_expr stride = tir_int(ir, type, 1), strides[TIR_MOST_RANK], sum = tir_int(ir, type, 0);
  for (uint32_t i = a->count; i-- > 0;) {
    strides[i] = stride;
    if (f->before[a->buffer].strides.count)
      strides[i] = to_type(ir, type, ir->operands.at[f->before[a->buffer].strides.first + i]);
    else
      stride = tir_mul(ir, stride, to_type(ir, type, ir->operands.at[f->before[a->buffer].shape + i]));
  }
  if (f->before[a->buffer].offset) sum = to_type(ir, type, f->before[a->buffer].offset);
  for (uint32_t i = 0; i < a->count; i++) sum = add_scaled(ir, sum, to_type(ir, type, a->indices[i]), strides[i]);
  a->count = 1;
  a->indices[0] = sum;
  return true;
}

/* The number of elements from the first to the last. */
static tir_expr size_of(struct tir *ir, tir_buffer b) {
  struct tir_buffer_node n = ir->buffers.at[b];
  assert(!n.strides.count || n.strides.count == n.rank);
  tir_type type = n.rank ? tir_type_of(ir, ir->operands.at[n.shape]) : TIR_T_I32;
  if (is_laid_out_wide(ir, n.strides, n.elem_offset)) type = TIR_T_I64;
  tir_expr size = tir_int(ir, type, 1);
  if (!n.strides.count) {
    for (uint32_t i = 0; i < n.rank; i++) size = tir_mul(ir, size, to_type(ir, type, ir->operands.at[n.shape + i]));
  } else {
    for (uint32_t i = 0; i < n.rank; i++) {
      tir_expr last = tir_sub(ir, to_type(ir, type, ir->operands.at[n.shape + i]), tir_int(ir, type, 1));
      size = tir_add(ir, size, tir_mul(ir, last, to_type(ir, type, ir->operands.at[n.strides.first + i])));
    }
  }
  return n.elem_offset ? tir_add(ir, size, to_type(ir, type, n.elem_offset)) : size;
}

/* Whether a call binds the variable's value: as a scalar, or as an extent. */
static bool is_bound(const struct tir *ir, struct tir_span params, tir_var v) {
  for (uint32_t i = params.first; i < params.first + params.count; i++) {
    const struct tir_param *p = &ir->params.at[i];
    if (!p->buffer && p->var == v) return true;
    if (!p->buffer) continue;
    const struct tir_buffer_node *b = tir_buffer_at(ir, p->buffer);
    for (uint32_t d = 0; d < b->rank; d++)
      if (tir_at(ir, ir->operands.at[b->shape + d])->kind == TIR_VAR &&
          tir_at(ir, ir->operands.at[b->shape + d])->ref == v)
        return true;
  }
  return false;
}

static bool is_unbound(const struct tir *ir, const void *context, tir_var v) {
  return !is_bound(ir, *(const struct tir_span *)context, v);
}

/* A stride or an offset that nothing but the array itself holds is lost with its dimensions. */
static bool check_strides(const struct lowering *low, const char *symbols) {
  const struct tir *ir = low->ir;
  struct tir_span params = ir->funcs.at[low->func].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++) {
    tir_buffer buffer = ir->params.at[i].buffer;
    struct tir_span strides = buffer ? tir_buffer_at(ir, buffer)->strides : (struct tir_span){0, 0};
    bool lost = buffer && tir_any_var(ir, tir_buffer_at(ir, buffer)->elem_offset, is_unbound, &params);
    for (uint32_t k = strides.first; k < strides.first + strides.count; k++)
      lost = lost || tir_any_var(ir, ir->operands.at[k], is_unbound, &params);
    if (lost)
      return tir_refuse(ir, low->err, MS_LOWER_UNKNOWN_STRIDE, TIR_NONE,
                        "no argument binds the strides of %s, or where it begins; %s", tir_buffer_name(ir, buffer),
                        symbols);
  }
  return true;
}

struct unknown {
  const struct tir *ir;
  const uint8_t *known;
  tir_var var; /* TIR_NONE: all are known */
};

static bool find_unknown(void *data, tir_expr e) {
  struct unknown *u = data;
  const struct tir_expr_node *n = tir_at(u->ir, e);
  if (n->kind == TIR_VAR && u->ir->vars.at[n->ref].kind == TIR_VAR_PLAIN && !u->known[n->ref]) u->var = n->ref;
  return !u->var;
}

static tir_var first_unknown(const struct tir *ir, tir_stmt body, const uint8_t *known) {
  struct unknown u = {ir, known, TIR_NONE};
  for (tir_stmt s = body; s && !u.var; s = tir_next(ir, s, body)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(ir, s, all);
    for (uint32_t i = 0; i < count; i++) tir_walk_expr(ir, all[i], find_unknown, &u);
    for (uint32_t i = 0; n->kind == TIR_STORE && i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
      tir_walk_expr(ir, ir->operands.at[n->store.indices + i], find_unknown, &u);
    for (uint32_t i = 0; n->kind == TIR_ALLOC && i < tir_buffer_at(ir, n->alloc.buffer)->rank; i++)
      tir_walk_expr(ir, ir->operands.at[tir_buffer_at(ir, n->alloc.buffer)->shape + i], find_unknown, &u);
  }
  return u.var;
}

/* The variable that a parameter's extent defines, being it or a multiple of it; TIR_NONE: it defines none. */
static tir_var defined_by(const struct tir *ir, tir_expr extent) {
  const struct tir_expr_node *n = tir_at(ir, extent);
  if (n->kind == TIR_MUL && tir_is_int(ir, n->b)) return defined_by(ir, n->a);
  if (n->kind == TIR_MUL && tir_is_int(ir, n->a)) return defined_by(ir, n->b);
  return n->kind == TIR_VAR ? n->ref : TIR_NONE;
}

static tir_expr new_extent(struct tir *ir, tir_buffer b, tir_type type) {
  tir_name name = tir_name_suffix(ir, tir_name_of(ir, tir_buffer_name(ir, b)), "_size");
  return tir_var_expr(ir, tir_new_var(ir, TIR_VAR_PLAIN, name, type, TIR_NONE, TIR_NONE));
}

/* Finds which variables the parameters define. An extent that defines none, and that nothing before says (a product of
 * several variables), becomes a variable of its own. A byte a variable; free() it. */
static uint8_t *define_extents(struct tir *ir, struct tir_span params) {
  uint32_t room = ir->vars.count + params.count;
  uint8_t *known = calloc(room, 1);
  if (!known) abort();
  for (uint32_t i = params.first; i < params.first + params.count; i++) known[ir->params.at[i].var] = 1;
  for (uint32_t i = params.first; i < params.first + params.count; i++) {
    tir_buffer b = ir->params.at[i].buffer;
    if (!b || tir_buffer_at(ir, b)->rank != 1) continue;
    tir_expr extent = ir->operands.at[tir_buffer_at(ir, b)->shape];
    struct unknown u = {ir, known, TIR_NONE};
    if (!defined_by(ir, extent)) tir_walk_expr(ir, extent, find_unknown, &u);
    if (u.var) {
      extent = new_extent(ir, b, tir_type_of(ir, extent));
      uint32_t shape = tir_add_operands(ir, &extent, 1);
      tir_buffer_at(ir, b)->shape = shape;
    }
    known[defined_by(ir, extent)] = 1;
  }
  return known;
}

/* A variable that only an extent held which is no more is not known: what is computed must do without it. */
static bool check_variables(const struct lowering *low, const char *symbols) {
  struct tir *ir = low->ir;
  uint8_t *known = define_extents(ir, ir->funcs.at[low->func].params);
  tir_var lost = first_unknown(ir, low->body, known);
  free(known);
  if (!lost) return true;
  char name[100];
  tir_name_render(ir, ir->vars.at[lost].name, name, sizeof name);
  return tir_refuse(ir, low->err, MS_LOWER_UNKNOWN_EXTENT, TIR_NONE, "no argument says what %s is%s%s", name,
                    *symbols ? "; " : "", symbols);
}

static void note_accessed(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  uint8_t *own = data;
  (void)ir, (void)s, (void)writes;
  own[a->buffer] = 1;
}

/* A byte a buffer: 1 where the function has it as a parameter, allocates or accesses it. Those of other functions of
 * the module keep their dimensions. free() it. */
static uint8_t *find_own_buffers(const struct lowering *low, const uint8_t *pointed) {
  struct tir *ir = low->ir;
  uint8_t *own = malloc(ir->buffers.count);
  if (!own) abort();
  memcpy(own, pointed, ir->buffers.count);
  struct tir_span params = ir->funcs.at[low->func].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++) own[ir->params.at[i].buffer] = 1;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_ALLOC) || tir_is(ir, s, TIR_DECLARE)) own[tir_stmt_at(ir, s)->alloc.buffer] = 1;
  lower_visit(ir, low->body, note_accessed, own);
  return own;
}

/* Operands of mma, where calls reach them by pointers. */
static bool lies_in_registers(const struct tir *ir, tir_buffer b, const uint8_t *pointed) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, b);
  return pointed[b] && n->rank == 2 && !n->strides.count && !n->elem_offset && tir_is_mma8_fragment(ir, b);
}

bool lower_flatten(struct lowering *low) {
  struct tir *ir = low->ir;
  char symbols[1000]; /* as long as the parameters have their dimensions */
  tir_symbolic_text(ir, low->func, symbols, sizeof symbols);
  if (!check_strides(low, symbols)) return false;
  struct flattening f = {ir, calloc(ir->buffers.count, sizeof *f.before)};
  if (!f.before) abort();
  uint8_t *pointed = lower_pointers(ir, low->body), *own = find_own_buffers(low, pointed);
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    const struct tir_buffer_node *n = tir_buffer_at(ir, b);
    f.before[b].rank = n->rank;
    f.before[b].shape = n->shape;
    f.before[b].strides = n->strides;
    f.before[b].offset = n->elem_offset;
    f.before[b].kept = !own[b] || lies_in_registers(ir, b, pointed);
  }
  free(own);
  free(pointed);
  lower_rewrite(ir, low->body, flatten_access, &f);
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    if (f.before[b].kept) continue;
    tir_expr size = size_of(ir, b);
    uint32_t shape = tir_add_operands(ir, &size, 1);
    struct tir_buffer_node *n = tir_buffer_at(ir, b);
    n->rank = 1;
    n->shape = shape;
    n->strides = (struct tir_span){0, 0};
    n->elem_offset = TIR_NONE;
  }
  free(f.before);
  return check_variables(low, symbols);
}

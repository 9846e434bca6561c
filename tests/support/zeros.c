/* Signs of zeros: which functions have them whatever their schedule, and whether two runs have the same.
 *
 * IEEE 754 says the sign of each zero that an operation gives, but which of two zeros of unlike signs a maximum or
 * minimum gives. A schedule changes no operation, but an element's update by itself: its steps come in any order, and
 * partial results begin with a zero of their own. What only copies, chooses and computes elementwise keeps its
 * signs. */
#include "zeros.h"

#include <assert.h>

struct found {
  const struct tir *ir;
  bool open; /* an operation whose zero has no one sign */
};

static bool note_operation(void *data, tir_expr e) {
  struct found *f = data;
  const struct tir_expr_node *n = tir_at(f->ir, e);
  bool chooses = n->kind == TIR_MIN || n->kind == TIR_MAX;
  bool remainder = n->kind == TIR_MOD || n->kind == TIR_FLOORMOD || n->kind == TIR_FLOORDIV; /* made of others */
  if ((chooses || remainder) && tir_type_is_float(n->type)) f->open = true;
  return !f->open;
}

bool keeps_zeros(const struct tir *ir, tir_func f) {
  assert(tir_is_func(ir, f));
  struct found found = {ir, false};
  tir_stmt top = ir->funcs.at[f].body;
  for (tir_stmt s = top; s && !found.open; s = tir_next(ir, s, top)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(ir, s, all);
    for (uint32_t i = 0; i < count; i++) tir_walk_expr(ir, all[i], note_operation, &found);
    if (n->kind == TIR_STORE && tir_uses_buffer(ir, n->store.value, n->store.buffer)) found.open = true;
  }
  return !found.open;
}

/* A float of any width in memory: -0 and 0 have no bit but the sign's, which is the last byte's highest. */
static bool is_zero(const uint8_t *at, size_t size) {
  unsigned bits = at[size - 1] & 0x7f;
  for (size_t i = 0; i + 1 < size; i++) bits |= at[i];
  return !bits;
}

static bool same_buffer(const struct tir *ir, tir_buffer buffer, const struct tir_arg *x, const struct tir_arg *y,
                        ms_error *err) {
  tir_type type = tir_type_with_lanes(tir_buffer_at(ir, buffer)->type, 1);
  size_t size = (size_t)tir_type_bits(type) / 8;
  if (!tir_type_is_float(type)) return true;
  for (size_t i = 0; i < x->bytes / size; i++) {
    const uint8_t *at = (const uint8_t *)x->data + i * size, *other = (const uint8_t *)y->data + i * size;
    if (is_zero(at, size) && is_zero(other, size) && at[size - 1] != other[size - 1])
      return tir_refuse_element(ir, buffer, x->shape, i, at, other, 0, err);
  }
  return true;
}

bool same_zeros(const struct tir *ir, tir_func f, const struct tir_arguments *expected,
                const struct tir_arguments *actual, ms_error *err) {
  assert(tir_is_func(ir, f) && expected->count == actual->count);
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = 0; i < params.count; i++) {
    tir_buffer b = ir->params.at[params.first + i].buffer;
    if (b && !same_buffer(ir, b, &expected->args[i], &actual->args[i], err)) return false;
  }
  return true;
}

/* Sums of products: taken apart, and put together again with dot products. Requires: buffers of one dimension. */
#include "products.h"

#include "tir/arith/linear.h"

static void add_to_rest(struct sum *s, tir_expr e) { s->rest = s->rest ? tir_binary(s->ir, TIR_ADD, s->rest, e) : e; }

static void gather(struct sum *s, tir_expr e, lower_read_factor *read) {
  struct tir_expr_node n = *tir_at(s->ir, e);
  struct product p;
  if (n.kind == TIR_ADD && n.type == s->type) {
    gather(s, n.a, read);
    gather(s, n.b, read);
  } else if (n.kind == TIR_MUL && read(s, n.a, &p.a) && read(s, n.b, &p.b)) {
    s->too_many |= s->count == MOST_PRODUCTS;
    if (s->too_many) return;
    s->products[s->count] = p, s->as_written[s->count] = e;
    s->count++;
  } else {
    add_to_rest(s, e);
  }
}

static bool stands_behind(struct tir *ir, struct factor first, struct factor other, int64_t by) {
  if (first.constant || other.constant) return first.constant && other.constant && first.offset == other.offset;
  return first.buffer == other.buffer && first.offset == other.offset && first.stride == other.stride &&
         first.shift == other.shift && first.mask == other.mask &&
         tir_type_of(ir, first.index) == tir_type_of(ir, other.index) &&
         tir_is_const(ir, tir_sub(ir, other.index, first.index), by);
}

int lower_product_behind(const struct sum *s, struct product first, int64_t by) {
  assert(by > 0 && s->count <= MOST_PRODUCTS);
  for (uint32_t i = 0; i < s->count; i++) {
    struct product p = s->products[i];
    if (!s->as_written[i]) continue;
    if (stands_behind(s->ir, first.a, p.a, by) && stands_behind(s->ir, first.b, p.b, by)) return (int)i;
    if (stands_behind(s->ir, first.a, p.b, by) && stands_behind(s->ir, first.b, p.a, by)) return (int)i;
  }
  return -1;
}

void lower_join_products(struct lowering *low, tir_stmt store, lower_read_factor *read, lower_join_product *join) {
  tir_expr value = tir_as(low->ir, store, TIR_STORE)->store.value;
  struct sum s = {.low = low, .ir = low->ir, .type = tir_type_of(low->ir, value)};
  gather(&s, value, read);
  tir_expr before = s.rest;
  for (uint32_t i = 0; i < s.count && !s.too_many; i++)
    if (s.as_written[i]) join(&s, i);
  if (s.rest == before || s.too_many) return;
  for (uint32_t i = 0; i < s.count; i++)
    if (s.as_written[i]) add_to_rest(&s, s.as_written[i]);
  tir_as(low->ir, store, TIR_STORE)->store.value = s.rest;
}

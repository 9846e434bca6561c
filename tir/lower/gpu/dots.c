/* Dots: where a sum has four products of bytes, of neighbours in memory on either side, they become one dot product,
 * which GPUs add to a sum by one instruction (dp4a).
 *
 *   C[0] + i32(A[4k]) * i32(B[4k]) + … + i32(A[4k+3]) * i32(B[4k+3])     becomes     dp4a(A[4k:4k+4], B[4k:4k+4], C[0])
 *
 * Requires: buffers of one dimension; kernels. Gives: calls of dp4a on loads of four bytes, from multiples of four on
 * in memory that is no thread's own. Keeps: what is computed, as integers wrap around. */
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"
#include "tir/lower/vector/products.h"

enum { WIDTH = 4 };

/* A byte that is widened. */
static bool read_byte(const struct sum *s, tir_expr e, struct factor *out) {
  const struct tir_expr_node *cast = tir_at(s->ir, e);
  if (cast->kind != TIR_CAST || cast->type != s->type) return false;
  const struct tir_expr_node *load = tir_at(s->ir, cast->a);
  if (load->kind != TIR_LOAD || load->count != 1 || load->a || !tir_type_is_int(load->type)) return false;
  if (tir_type_bits(load->type) != 8 || tir_type_lanes(load->type) != 1) return false;
  const struct tir_buffer_node *b = tir_buffer_at(s->ir, load->ref);
  *out = (struct factor){load->ref, tir_operands(s->ir, load->operands)[0], 0};
  return b->rank == 1 && !b->elem_offset && !b->strides.count && b->type == load->type &&
         tir_buffer_memory(s->ir, load->ref) != TIR_THREAD_MEMORY && tir_is_index(s->ir, out->index);
}

static bool is_aligned(struct tir *ir, tir_expr index) {
  int64_t modulus, remainder;
  tir_modular(ir, index, &modulus, &remainder);
  return modulus % WIDTH == 0 && remainder % WIDTH == 0;
}

static tir_expr four_bytes(struct tir *ir, struct factor first) {
  tir_expr ramp = tir_ramp(ir, first.index, tir_int(ir, tir_type_of(ir, first.index), 1), WIDTH);
  assert(is_aligned(ir, first.index) && tir_buffer_at(ir, first.buffer)->rank == 1);
  return tir_load(ir, first.buffer, &ramp, 1, TIR_NONE);
}

/* A dot product that begins with product i, if there is one. */
static void join(struct sum *s, uint32_t i) {
  struct tir *ir = s->ir;
  struct product first = s->products[i];
  int others[WIDTH];
  if (!is_aligned(ir, first.a.index) || !is_aligned(ir, first.b.index)) return;
  for (int k = 1; k < WIDTH; k++)
    if ((others[k] = lower_product_behind(s, first, k)) < 0) return;
  tir_expr args[] = {four_bytes(ir, first.a), four_bytes(ir, first.b), s->rest ? s->rest : tir_int(ir, s->type, 0)};
  s->rest = tir_call(ir, s->type, tir_device_symbol(ir, TIR_DOT), args, 3);
  s->as_written[i] = TIR_NONE;
  for (int k = 1; k < WIDTH; k++) s->as_written[others[k]] = TIR_NONE;
}

bool lower_dots(struct lowering *low) {
  for (tir_stmt s = low->body; s; s = tir_next(low->ir, s, low->body)) {
    tir_type type =
        tir_is(low->ir, s, TIR_STORE) ? tir_type_of(low->ir, tir_as(low->ir, s, TIR_STORE)->store.value) : 0;
    bool fits = tir_is(low->ir, s, TIR_STORE) && tir_type_is_int(type) && tir_type_bits(type) == 32 &&
                tir_type_lanes(type) == 1;
    if (fits) lower_join_products(low, s, read_byte, join);
  }
  return true;
}

/* Dots: where a sum has four products of bytes, of neighbours in memory on either side, they become one dot product, which
 * GPUs add to a sum by one instruction (dp4a).
 *
 *   C[0] + i32(A[4k]) * i32(B[4k]) + … + i32(A[4k+3]) * i32(B[4k+3])     becomes     dp4a(A[4k:4k+4], B[4k:4k+4], C[0])
 *
 * Requires: buffers of one dimension; kernels. Gives: calls of dp4a on loads of four bytes, from multiples of four on in
 * memory that is no thread's own. Keeps: what is computed, as integers wrap around. */
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

enum { WIDTH = 4, MOST_ADDENDS = 64 };

/* A byte that is widened: where it stands in a buffer. */
struct byte {
  tir_buffer buffer;
  tir_expr index;
};
struct product {
  struct byte a, b;
};
struct sum {
  struct tir *ir;
  tir_type type;
  struct product products[MOST_ADDENDS];
  tir_expr as_written[MOST_ADDENDS]; /* of each product; TIR_NONE: it is part of a dot product */
  uint32_t count;
  tir_expr rest; /* TIR_NONE: nothing is added */
  bool too_many;
};

static bool is_byte(const struct sum *s, tir_expr e, struct byte *out) {
  const struct tir_expr_node *cast = tir_at(s->ir, e);
  if (cast->kind != TIR_CAST || cast->type != s->type) return false;
  const struct tir_expr_node *load = tir_at(s->ir, cast->a);
  if (load->kind != TIR_LOAD || load->count != 1 || load->a || !tir_type_is_int(load->type)) return false;
  if (tir_type_bits(load->type) != 8 || tir_type_lanes(load->type) != 1) return false;
  const struct tir_buffer_node *b = tir_buffer_at(s->ir, load->ref);
  *out = (struct byte){load->ref, tir_operands(s->ir, load->operands)[0]};
  return b->rank == 1 && !b->elem_offset && !b->strides.count && b->type == load->type &&
         tir_buffer_memory(s->ir, load->ref) != TIR_THREAD_MEMORY && tir_is_index(s->ir, out->index);
}

static void add_to_rest(struct sum *s, tir_expr e) { s->rest = s->rest ? tir_binary(s->ir, TIR_ADD, s->rest, e) : e; }

static void gather(struct sum *s, tir_expr e) {
  struct tir_expr_node n = *tir_at(s->ir, e);
  struct product p;
  if (n.kind == TIR_ADD && n.type == s->type) {
    gather(s, n.a);
    gather(s, n.b);
  } else if (n.kind == TIR_MUL && is_byte(s, n.a, &p.a) && is_byte(s, n.b, &p.b)) {
    s->too_many |= s->count == MOST_ADDENDS;
    if (s->too_many) return;
    s->products[s->count] = p, s->as_written[s->count] = e;
    s->count++;
  } else {
    add_to_rest(s, e);
  }
}

static bool stands_behind(struct tir *ir, struct byte first, struct byte other, int64_t by) {
  return first.buffer == other.buffer && tir_type_of(ir, first.index) == tir_type_of(ir, other.index) &&
         tir_is_const(ir, tir_sub(ir, other.index, first.index), by);
}

/* The product of what stands so far behind; -1: there is none. */
static int find_behind(const struct sum *s, struct product first, int64_t by) {
  for (uint32_t i = 0; i < s->count; i++) {
    struct product p = s->products[i];
    if (!s->as_written[i]) continue;
    if (stands_behind(s->ir, first.a, p.a, by) && stands_behind(s->ir, first.b, p.b, by)) return (int)i;
    if (stands_behind(s->ir, first.a, p.b, by) && stands_behind(s->ir, first.b, p.a, by)) return (int)i;
  }
  return -1;
}

static bool is_aligned(struct tir *ir, tir_expr index) {
  int64_t modulus, remainder;
  tir_modular(ir, index, &modulus, &remainder);
  return modulus % WIDTH == 0 && remainder % WIDTH == 0;
}

static tir_expr four_bytes(struct tir *ir, struct byte first) {
  tir_expr ramp = tir_ramp(ir, first.index, tir_int(ir, tir_type_of(ir, first.index), 1), WIDTH);
  assert(is_aligned(ir, first.index) && tir_buffer_at(ir, first.buffer)->rank == 1);
  return tir_load(ir, first.buffer, &ramp, 1, TIR_NONE);
}

/* A dot product that begins with product i, if there is one. */
static void join(struct sum *s, uint32_t i) {
  struct tir *ir = s->ir;
  struct product first = s->products[i];
  int others[WIDTH];
  if (!s->as_written[i] || !is_aligned(ir, first.a.index) || !is_aligned(ir, first.b.index)) return;
  for (int k = 1; k < WIDTH; k++)
    if ((others[k] = find_behind(s, first, k)) < 0) return;
  tir_expr args[] = {four_bytes(ir, first.a), four_bytes(ir, first.b), s->rest ? s->rest : tir_int(ir, s->type, 0)};
  s->rest = tir_call(ir, s->type, tir_device_symbol(ir, TIR_DOT), args, 3);
  s->as_written[i] = TIR_NONE;
  for (int k = 1; k < WIDTH; k++) s->as_written[others[k]] = TIR_NONE;
}

static void look_at(struct tir *ir, tir_stmt store) {
  tir_expr value = tir_as(ir, store, TIR_STORE)->store.value;
  struct sum s = {.ir = ir, .type = tir_type_of(ir, value)};
  if (!tir_type_is_int(s.type) || tir_type_bits(s.type) != 32 || tir_type_lanes(s.type) != 1) return;
  gather(&s, value);
  tir_expr before = s.rest;
  for (uint32_t i = 0; i < s.count && !s.too_many; i++) join(&s, i);
  if (s.rest == before || s.too_many) return;
  for (uint32_t i = 0; i < s.count; i++)
    if (s.as_written[i]) add_to_rest(&s, s.as_written[i]);
  tir_as(ir, store, TIR_STORE)->store.value = s.rest;
}

bool lower_dots(struct lowering *low) {
  for (tir_stmt s = low->body; s; s = tir_next(low->ir, s, low->body))
    if (tir_is(low->ir, s, TIR_STORE)) look_at(low->ir, s);
  return true;
}

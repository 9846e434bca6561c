/* Dots: where a vectorized loop adds products of short neighbours, each lane adds a dot product, which CPUs do by one
 * instruction (vpdpbusd of four bytes, vdpbf16ps of two bfloat16), or by few (pmaddwd).
 *
 * lower_dot_loops, before tiles go to registers, joins the loop over the neighbours:
 *   for j in vectorized: for p in 4: C[j] = C[j] + i32(A[k + p]) * i32(B[j, p])
 *                                                 becomes     C[j] = C[j] + (i32(A[k]) * i32(B[j, 0]) + … )
 * lower_lane_dots, on vectors, makes one call of it, if the target has the instruction for as many lanes:
 *   dot_lanes(C, A[k:k + 4], B[4 j:4 j + 4 lanes])      one operand of four elements stands for those of all lanes
 * Targets that multiply pairs of int16 add two products of bytes at once, too, where neighbours lie by twos.
 * Where the target has none of their signs, operands become those of a dot product that it has. For that of uint8 and
 * int8, of two int8 the one that is the same in all lanes goes on as x + 128, of two uint8 the other as y - 128, by its
 * highest bit; for that of two int8, an uint8 goes on as x - 128. What that adds, 128 times the other's sum, is taken
 * away again; what has an offset already (offsets.c) goes on so. An operand may be a part of an uint8, (B[j, p] >> s) &
 * m: integers of few bits. Products by such a part as a float are joined so, too, one after another as they were: the
 * neighbours of a lane are a word then, of which the target may take part after part (jit/llvm/emit/emit_parts.c).
 * Requires: (loops) no blocks; (lanes) buffers of one dimension, no vectorized loops. Keeps: sums of integers, which
 * wrap around, bit for bit; those of floats but for their order and, in the instruction, for denormal numbers, which
 * are 0. */
#include "products.h"
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <string.h>

enum { MOST_WIDTH = 4 };

/* How many products of two types are added to a sum of a third at once; 0: there is no such instruction. */
static int width_of(tir_type x, tir_type y, tir_type sum) {
  x = tir_type_with_lanes(x, 1), y = tir_type_with_lanes(y, 1), sum = tir_type_with_lanes(sum, 1);
  if (tir_type_is_int(x) && tir_type_is_int(y) && tir_type_bits(x) == 8 && tir_type_bits(y) == 8)
    return tir_type_is_int(sum) && tir_type_bits(sum) == 32 ? 4 : 0;
  return tir_type_code(x) == TIR_BFLOAT && tir_type_bits(x) == 16 && x == y && sum == TIR_T_F32 ? 2 : 0;
}

static bool is_offered(const struct lowering *low, int width) {
  unsigned all = low->options ? low->options->dots : 0;
  return width > 0 && all & (width == 4 ? TIR_DOTS_OF_BYTES : 1u << TIR_DOT_BFLOATS);
}

static bool fits_int16(tir_type t) {
  return tir_type_is_int(t) && (tir_type_bits(t) == 8 || (tir_type_bits(t) == 16 && tir_type_code(t) == TIR_INT));
}

enum tir_dot tir_dot_of(tir_type a, tir_type b) {
  tir_type byte = TIR_TYPE(TIR_UINT, 8, 1), signed_byte = TIR_TYPE(TIR_INT, 8, 1);
  a = tir_type_with_lanes(a, 1), b = tir_type_with_lanes(b, 1);
  if (a == byte && (b == signed_byte || b == byte)) return b == byte ? TIR_DOT_UNSIGNED : TIR_DOT_BYTES;
  if (a == signed_byte && b == signed_byte) return TIR_DOT_SIGNED;
  if (a == TIR_TYPE(TIR_BFLOAT, 16, 1) && a == b) return TIR_DOT_BFLOATS;
  return fits_int16(a) && fits_int16(b) ? TIR_DOT_PAIRS : TIR_DOTS;
}

static tir_expr without_broadcast(const struct tir *ir, tir_expr e) {
  return tir_at(ir, e)->kind == TIR_BROADCAST ? tir_at(ir, e)->a : e;
}

static bool is_call(const struct tir *ir, const struct tir_expr_node *n, const char *name) {
  return n->kind == TIR_CALL && n->count == 2 && !strcmp(tir_text(ir, n->ref), name);
}

/* Bits of an element: (element >> shift) & mask; mask 0: all. */
struct part {
  tir_expr shift; /* TIR_NONE: none */
  int64_t mask;
};

/* The element that an expression is a part of; NULL: of none. */
static const struct tir_expr_node *read_part(const struct tir *ir, const struct tir_expr_node *n, struct part *part) {
  *part = (struct part){TIR_NONE, 0};
  if (n->kind == TIR_LOAD) return n;
  if (tir_type_with_lanes(n->type, 1) != TIR_TYPE(TIR_UINT, 8, 1) || !is_call(ir, n, "bitwise_and")) return NULL;
  const tir_expr *args = tir_operands(ir, n->operands);
  tir_expr mask = without_broadcast(ir, args[1]);
  if (!tir_is_int(ir, mask)) return NULL;
  part->mask = tir_at(ir, mask)->imm;
  n = tir_at(ir, args[0]);
  if (is_call(ir, n, "shift_right")) {
    args = tir_operands(ir, n->operands);
    part->shift = without_broadcast(ir, args[1]);
    n = tir_at(ir, args[0]);
  }
  bool byte = n->kind == TIR_LOAD && tir_type_with_lanes(n->type, 1) == TIR_TYPE(TIR_UINT, 8, 1);
  return byte && part->mask > 0 && part->mask <= UINT8_MAX ? n : NULL;
}

/* The element of a buffer that an expression widens, or a part of, or NULL. */
static const struct tir_expr_node *widened(const struct tir *ir, tir_expr e, tir_type to, struct part *part) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_CAST || tir_type_with_lanes(n->type, 1) != to) return NULL;
  return read_part(ir, tir_at(ir, n->a), part);
}

/* Whether both operands have so many elements, or as many in each of the lanes. */
static bool has_width(const struct tir *ir, const tir_expr *args, int lanes, int width) {
  for (int i = 1; i < 3; i++) {
    int own = tir_type_lanes(tir_type_of(ir, args[i]));
    if (own != width && own != width * lanes) return false;
  }
  return true;
}

int tir_dot_lanes_width(const struct tir *ir, const struct tir_expr_node *call) {
  if (call->kind != TIR_CALL || call->count != 3) return 0;
  const tir_expr *args = tir_operands(ir, call->operands);
  enum tir_dot kind = tir_dot_of(tir_type_of(ir, args[1]), tir_type_of(ir, args[2]));
  int lanes = tir_type_lanes(call->type), width = 1 << kind & TIR_DOTS_OF_BYTES ? 4 : 2;
  if (width == 4 && !has_width(ir, args, lanes, width)) width = 2;
  if (kind == TIR_DOTS || !has_width(ir, args, lanes, width)) return 0;
  tir_type sum = tir_type_with_lanes(call->type, 1);
  bool fits = kind == TIR_DOT_BFLOATS ? sum == TIR_T_F32 : tir_type_is_int(sum) && tir_type_bits(sum) == 32;
  return fits && tir_type_of(ir, args[0]) == call->type ? width : 0;
}

/* ---- Loops over neighbours ---- */

static int dot_width(const struct tir *ir, tir_expr sum, tir_expr product) {
  tir_type to = tir_type_of(ir, sum);
  const struct tir_expr_node *p = tir_at(ir, product);
  if (p->kind != TIR_MUL || p->type != to) return 0;
  struct part part;
  const struct tir_expr_node *x = widened(ir, p->a, to, &part), *y = widened(ir, p->b, to, &part);
  return x && y ? width_of(x->type, y->type, to) : 0;
}

/* What a store adds to its element; TIR_NONE: it does something else. */
static tir_expr product_added(const struct tir *ir, tir_stmt store) {
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  if (n.kind != TIR_STORE || n.store.predicate) return TIR_NONE;
  const struct tir_expr_node *value = tir_at(ir, n.store.value);
  if (value->kind != TIR_ADD) return TIR_NONE;
  for (int side = 0; side < 2; side++) {
    const struct tir_expr_node *load = tir_at(ir, side ? value->b : value->a);
    uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
    bool same = load->kind == TIR_LOAD && load->ref == n.store.buffer && load->count == rank;
    for (uint32_t d = 0; d < rank && same; d++)
      same = ir->operands.at[load->operands + d] == ir->operands.at[n.store.indices + d];
    if (same) return side ? value->a : value->b;
  }
  return TIR_NONE;
}

int tir_dot_width(const struct tir *ir, tir_stmt store) {
  tir_expr product = product_added(ir, store);
  return product ? dot_width(ir, tir_stmt_at(ir, store)->store.value, product) : 0;
}

/* Bits of the part of a byte that an expression makes a float32: (i32(byte) >> s) & mask; 0: it does none. */
static int bits_of_part(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_CAST || n->type != TIR_T_F32 || !is_call(ir, tir_at(ir, n->a), "bitwise_and")) return 0;
  const tir_expr *args = tir_operands(ir, tir_at(ir, n->a)->operands);
  const struct tir_expr_node *mask = tir_at(ir, args[1]), *of = tir_at(ir, args[0]);
  if (mask->kind != TIR_INT_IMM || mask->imm < 1 || mask->imm > UINT8_MAX) return 0;
  if (is_call(ir, of, "shift_right")) of = tir_at(ir, tir_operands(ir, of->operands)[0]);
  bool byte = of->kind == TIR_CAST && of->type == TIR_T_I32 && tir_at(ir, of->a)->kind == TIR_LOAD &&
              tir_at(ir, of->a)->type == TIR_TYPE(TIR_UINT, 8, 1);
  return byte ? 32 - __builtin_clz((unsigned)mask->imm) : 0;
}

int tir_part_bits(const struct tir *ir, tir_stmt store) {
  tir_expr e = product_added(ir, store);
  const struct tir_expr_node *product = e ? tir_at(ir, e) : NULL;
  if (!product || product->kind != TIR_MUL || product->type != TIR_T_F32) return 0;
  int a = bits_of_part(ir, product->a), b = bits_of_part(ir, product->b);
  return a > b ? a : b;
}

/* The sum of what is added in each iteration of a loop, to what was there before, if any. */
static tir_expr join_products(struct tir *ir, tir_expr sum, tir_expr product, tir_var var, int64_t count) {
  assert(count > 0 && tir_uses_var(ir, product, var));
  for (int64_t i = 0; i < count; i++) {
    tir_subst_var(ir, var, tir_int(ir, ir->vars.at[var].type, i));
    tir_expr one = tir_subst_value(ir, product);
    tir_subst_clear(ir);
    sum = sum ? tir_binary(ir, TIR_ADD, sum, one) : one;
  }
  return sum;
}

/* The store that is all there is below a loop, under conditions that are the same in all of its iterations. */
static tir_stmt store_below(const struct tir *ir, tir_stmt loop) {
  tir_stmt s = tir_only_child(ir, loop);
  tir_var var = tir_as(ir, loop, TIR_LOOP)->loop.var;
  while (s && tir_is(ir, s, TIR_IF)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->first[TIR_ELSE] || tir_uses_var(ir, n->test.condition, var)) return TIR_NONE;
    s = tir_only_child(ir, s);
  }
  return s && tir_is(ir, s, TIR_STORE) ? s : TIR_NONE;
}

static bool is_in_vector(const struct tir *ir, tir_stmt s) {
  tir_stmt p = tir_stmt_at(ir, s)->parent;
  while (p && tir_is(ir, p, TIR_IF) && tir_only_child(ir, p) == s) s = p, p = tir_stmt_at(ir, p)->parent;
  return p && tir_only_child(ir, p) == s && tir_is(ir, p, TIR_LOOP) && tir_stmt_at(ir, p)->loop_kind == TIR_VECTORIZED;
}

/* The store that adds a product in each iteration of a loop over neighbours, which is all there is in a vectorized
 * loop; TIR_NONE: the loop is no such. */
static tir_stmt adds_neighbours(const struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  if (n.loop_kind != TIR_SERIAL && n.loop_kind != TIR_UNROLLED) return TIR_NONE;
  if (!tir_is_const(ir, n.loop.min, 0) || !is_in_vector(ir, loop)) return TIR_NONE;
  tir_stmt store = store_below(ir, loop);
  int width = store ? tir_dot_width(ir, store) : 0;
  int64_t extent = tir_loop_extent(ir, loop);
  if (store && !width && tir_part_bits(ir, store))
    width = MOST_WIDTH; /* each in its order, from a word of bytes */
  else if (!is_offered(low, width))
    return TIR_NONE;
  bool adds = extent > 1 && extent <= width && !lower_indices_use(ir, store, n.loop.var);
  return adds ? store : TIR_NONE;
}

bool lower_dot_loops(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    tir_stmt store = tir_is(ir, s, TIR_LOOP) ? adds_neighbours(low, s) : TIR_NONE;
    if (!store) continue;
    struct tir_stmt_node loop = *tir_stmt_at(ir, s);
    struct tir_expr_node value = *tir_at(ir, tir_stmt_at(ir, store)->store.value);
    bool first = tir_at(ir, value.a)->kind == TIR_MUL,
         in_order = tir_type_is_float(value.type) && !tir_dot_width(ir, store);
    tir_expr self = first ? value.b : value.a, product = first ? value.a : value.b;
    tir_expr joined = join_products(ir, in_order ? self : TIR_NONE, product, loop.loop.var, tir_loop_extent(ir, s));
    tir_as(ir, store, TIR_STORE)->store.value = in_order ? joined : tir_binary(ir, TIR_ADD, self, joined);
    tir_kill_alone(ir, s);
    next = tir_next(ir, store, low->body);
  }
  return true;
}

/* ---- Lanes ---- */

/* Whether all lanes may be loaded, whatever a mask says: they lie in the buffer. */
static bool is_inside(struct tir *ir, const struct tir_expr_node *load, tir_expr first, int64_t span) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, load->ref);
  tir_expr extent = ir->operands.at[b->shape];
  const struct tir_expr_node *at = tir_at(ir, first);
  return tir_is_int(ir, extent) && at->lo >= 0 && at->hi < tir_at(ir, extent)->imm - span + 1;
}

static bool is_offset(const struct tir *ir, tir_expr e) {
  return tir_is_int(ir, e) && (tir_at(ir, e)->imm == 128 || tir_at(ir, e)->imm == -128);
}

/* What is added to a byte, or taken from it, that makes a byte of the other sign of it (offsets.c); gives the byte. */
static tir_expr split_offset(const struct tir *ir, tir_expr e, int64_t *offset) {
  struct tir_expr_node n = *tir_at(ir, e);
  *offset = 0;
  if (n.kind != TIR_ADD && n.kind != TIR_SUB) return e;
  tir_expr by = without_broadcast(ir, n.b);
  if (!is_offset(ir, by)) return e;
  *offset = n.kind == TIR_ADD ? tir_at(ir, by)->imm : -tir_at(ir, by)->imm;
  return without_broadcast(ir, n.a);
}

/* The type of a factor, with its offset; 0: there is none of bytes. */
static tir_type type_of_factor(const struct tir *ir, const struct factor *f) {
  tir_type unsigned_byte = TIR_TYPE(TIR_UINT, 8, 1), signed_byte = TIR_TYPE(TIR_INT, 8, 1);
  if (f->constant) return f->offset > 0 ? unsigned_byte : signed_byte;
  tir_type own = tir_buffer_at(ir, f->buffer)->type;
  if (!f->offset) return own;
  return own == signed_byte && f->offset > 0 ? unsigned_byte : own == unsigned_byte && f->offset < 0 ? signed_byte : 0;
}

/* A factor that is such a part, and nothing else yet; false: it is not known which. */
static bool set_part(const struct tir *ir, const struct part *part, struct factor *out) {
  tir_expr by = part->shift && tir_at(ir, part->shift)->kind == TIR_CAST ? tir_at(ir, part->shift)->a : part->shift;
  if (by && (!tir_is_int(ir, by) || tir_at(ir, by)->imm < 0 || tir_at(ir, by)->imm > 7)) return false;
  *out = (struct factor){.shift = by ? (uint8_t)tir_at(ir, by)->imm : 0, .mask = (uint8_t)part->mask};
  return true;
}

/* Its stride is how far apart the lanes' elements lie; 0: one for all. */
static bool read_factor(const struct sum *s, tir_expr e, struct factor *out) {
  struct tir *ir = s->ir;
  tir_type to = tir_type_with_lanes(s->type, 1);
  int64_t offset;
  e = without_broadcast(ir, e);
  if (is_offset(ir, e)) return *out = (struct factor){.offset = tir_at(ir, e)->imm, .constant = true}, true;
  e = split_offset(ir, e, &offset);
  struct part part;
  const struct tir_expr_node *load = widened(ir, e, to, &part);
  if (!load || !set_part(ir, &part, out) || load->count != 1 || tir_buffer_at(ir, load->ref)->rank != 1) return false;
  const struct tir_buffer_node *b = tir_buffer_at(ir, load->ref);
  struct tir_expr_node index = *tir_at(ir, tir_operands(ir, load->operands)[0]);
  out->buffer = load->ref, out->index = tir_operands(ir, load->operands)[0], out->offset = offset;
  if (!type_of_factor(ir, out)) return false;
  if (b->elem_offset || b->strides.count || b->type != tir_type_with_lanes(load->type, 1)) return false;
  if (index.kind == TIR_BROADCAST) {
    out->index = index.a;
  } else if (index.kind == TIR_RAMP) {
    if (!tir_is_int(ir, index.b)) return false;
    out->index = index.a, out->stride = tir_at(ir, index.b)->imm;
  } else if (tir_type_lanes(index.type) > 1) {
    return false;
  }
  int64_t span = out->stride * (tir_type_lanes(s->type) - 1) + 1;
  return tir_is_index(ir, out->index) && (!load->a || (span > 0 && is_inside(ir, load, out->index, span)));
}

static tir_expr splat(struct tir *ir, tir_type type, int64_t value) {
  return tir_unary(ir, TIR_BROADCAST, type, tir_int(ir, tir_type_with_lanes(type, 1), value));
}

/* The value with its highest bit turned over, as the other type of a byte: 128 more, or less. */
static tir_expr turned(struct tir *ir, tir_expr e) {
  tir_type from = tir_type_of(ir, e);
  bool is_signed = tir_type_code(from) == TIR_INT;
  assert(tir_type_is_int(from) && tir_type_bits(from) == 8);
  tir_expr operands[] = {e, splat(ir, from, is_signed ? -128 : 128)};
  tir_expr flipped = tir_call(ir, from, tir_symbol_of(ir, "bitwise_xor"), operands, 2);
  return tir_unary(ir, TIR_CAST, TIR_TYPE(is_signed ? TIR_UINT : TIR_INT, 8, tir_type_lanes(from)), flipped);
}

/* The part of each byte that the factor is. */
static tir_expr part_of(struct tir *ir, tir_expr bytes, const struct factor *f) {
  tir_type type = tir_type_of(ir, bytes);
  assert(f->mask && f->shift < 8 && tir_type_code(type) == TIR_UINT && tir_type_bits(type) == 8);
  if (f->shift) {
    tir_expr operands[] = {bytes, splat(ir, type, f->shift)};
    bytes = tir_call(ir, type, tir_symbol_of(ir, "shift_right"), operands, 2);
  }
  tir_expr operands[] = {bytes, splat(ir, type, f->mask)};
  return tir_call(ir, type, tir_symbol_of(ir, "bitwise_and"), operands, 2);
}

/* The neighbours of a factor as a vector: those of all lanes, or one lane's for all. */
static tir_expr neighbours(const struct sum *s, struct factor f, int width) {
  struct tir *ir = s->ir;
  if (f.constant) return splat(ir, tir_type_with_lanes(type_of_factor(ir, &f), width), f.offset);
  int lanes = f.stride ? width * tir_type_lanes(s->type) : width;
  tir_expr ramp = tir_ramp(ir, f.index, tir_int(ir, tir_type_of(ir, f.index), 1), lanes);
  assert(f.stride == 0 || f.stride == width);
  tir_expr all = tir_load(ir, f.buffer, &ramp, 1, TIR_NONE);
  if (f.mask) all = part_of(ir, all, &f);
  return f.offset ? turned(ir, all) : all;
}

static tir_expr dot(const struct sum *s, tir_expr c, tir_expr a, tir_expr b) {
  tir_expr operands[] = {c, a, b}, call = tir_call(s->ir, s->type, tir_symbol_of(s->ir, TIR_DOT_LANES), operands, 3);
  assert(tir_dot_lanes_width(s->ir, tir_at(s->ir, call)) > 0);
  return call;
}

static bool is_signed(const struct tir *ir, tir_expr e) { return tir_type_code(tir_type_of(ir, e)) == TIR_INT; }

static bool is_there(const struct sum *s, enum tir_dot kind) { return s->low->options->dots >> kind & 1; }

/* The operand of two whose sign changes, for a dot product that the target has. */
static bool is_turned(const struct sum *s, tir_expr e, tir_expr other) {
  const struct tir *ir = s->ir;
  if (!is_there(s, TIR_DOT_BYTES)) return is_signed(ir, e) != is_there(s, TIR_DOT_SIGNED);
  bool alike = tir_type_lanes(tir_type_of(ir, e)) < tir_type_lanes(tir_type_of(ir, other));
  return alike == is_signed(ir, e); /* the same for all lanes, of two int8 */
}

/* The sum of a dot product of bytes of other signs than the target's, by y of the other sign. */
static tir_expr turned_dot(const struct sum *s, tir_expr from, tir_expr zero, tir_expr x, tir_expr y) {
  struct tir *ir = s->ir;
  tir_expr other = turned(ir, y);
  tir_expr by = splat(ir, tir_type_with_lanes(tir_type_of(ir, other), MOST_WIDTH), is_signed(ir, y) ? 128 : -128);
  bool first = !is_signed(ir, x) && is_signed(ir, other); /* uint8 comes first */
  tir_expr sum = first ? dot(s, from, x, other) : dot(s, from, other, x);
  tir_expr added = first ? dot(s, zero, x, by) : dot(s, zero, by, x);
  return tir_binary(ir, TIR_SUB, sum, added);
}

/* The sum so far and a dot product; of bytes of different signs, x is uint8. */
static tir_expr add_dot(const struct sum *s, tir_expr x, tir_expr y) {
  struct tir *ir = s->ir;
  tir_expr zero = tir_type_is_float(s->type) ? tir_float(ir, TIR_T_F32, 0) : tir_int(ir, TIR_T_I32, 0);
  zero = tir_unary(ir, TIR_BROADCAST, s->type, zero);
  tir_expr from = s->rest ? s->rest : zero;
  if (is_there(s, tir_dot_of(tir_type_of(ir, x), tir_type_of(ir, y)))) return dot(s, from, x, y);
  return is_turned(s, y, x) ? turned_dot(s, from, zero, x, y) : turned_dot(s, from, zero, y, x);
}

/* Whether bytes that lie by twos, as they are, are a dot product of pairs. */
static bool is_pair(const struct sum *s, const struct product *p) {
  bool whole = !p->a.mask && !p->b.mask && !p->a.constant && !p->b.constant && !p->a.offset && !p->b.offset;
  return whole && is_there(s, TIR_DOT_PAIRS) && (p->a.stride == 2 || p->b.stride == 2);
}

/* A dot product that begins with product i, if there is one. */
static void join(struct sum *s, uint32_t i) {
  struct tir *ir = s->ir;
  struct product first = s->products[i];
  int others[MOST_WIDTH];
  tir_type x = type_of_factor(ir, &first.a), y = type_of_factor(ir, &first.b);
  int width = width_of(x, y, s->type);
  if (!is_offered(s->low, width) || (!first.a.stride && !first.b.stride)) return;
  if (width == 4 && is_pair(s, &first)) width = 2;
  if ((first.a.stride && first.a.stride != width) || (first.b.stride && first.b.stride != width)) return;
  for (int k = 1; k < width; k++)
    if ((others[k] = lower_product_behind(s, first, k)) < 0) return;
  bool swapped = width == 4 && tir_type_code(x) == TIR_INT && tir_type_code(y) == TIR_UINT;
  tir_expr a = neighbours(s, first.a, width), b = neighbours(s, first.b, width);
  s->rest = swapped ? add_dot(s, b, a) : add_dot(s, a, b);
  s->as_written[i] = TIR_NONE;
  for (int k = 1; k < width; k++) s->as_written[others[k]] = TIR_NONE;
}

static bool fills_register(const struct lowering *low, int lanes) {
  int bits = 32 * lanes;
  return (bits == 128 || bits == 256 || bits == 512) && bits <= lower_vector_bits(low);
}

bool lower_lane_dots(struct lowering *low) {
  if (!low->options || !low->options->dots) return true;
  for (tir_stmt s = low->body; s; s = tir_next(low->ir, s, low->body)) {
    tir_type type =
        tir_is(low->ir, s, TIR_STORE) ? tir_type_of(low->ir, tir_as(low->ir, s, TIR_STORE)->store.value) : 0;
    bool fits = tir_is(low->ir, s, TIR_STORE) && tir_type_bits(type) == 32 && fills_register(low, tir_type_lanes(type));
    if (fits) lower_join_products(low, s, read_factor, join);
  }
  return true;
}

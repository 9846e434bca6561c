/* Tiles of accumulators: a loop that only multiplies tiles (AMX's instructions, tir/lower/instruction.c), and adds the
 * products to tiles of which it changes no address, holds these in registers while it runs.
 *
 *   T.attr(0, "msched.accumulators", T.tiles(C's tile, its next row, another tile, its next row, …))
 *
 * stands around the outermost such loop: its tiles are loaded before it and stored behind it. What makes tiles of them
 * zero just before the loop goes below the attribute, too: these are not loaded, but begin as zeros in registers. So do
 * products without a loop that are added to such tiles.
 * Requires: flat buffers; instructions as the target has them. Keeps what is computed.
 * Source: Intel, "Optimization Reference Manual", chapter "Intel AMX": the accumulators in four tiles, two and two of
 * the operands. */
#include "tir/lower/lower.h"

#include <string.h>

enum {
  RESULT = 0, /* a product's arguments: where each operand's addresses begin, the first one and the next row's */
  LEFT = 3,
  RIGHT = 6,
  SIDE = 16,
  MOST_VARS = 16,
  MOST_HELD = 6 /* of eight registers: a product takes two others; a target may have fewer */
};

struct loop_tiles {
  struct tir *ir;
  tir_var vars[MOST_VARS];                    /* that change while the loop runs */
  uint32_t vars_count, count, products, most; /* most: tiles that registers hold */
  int rows;                                   /* of each tile of results */
  tir_expr addresses[2 * MOST_HELD];
  tir_buffer held; /* the buffer that has the accumulators */
};

static const struct tir_expr_node *element_of(const struct tir *ir, tir_expr address) {
  const struct tir_expr_node *element = tir_at(ir, tir_operands(ir, tir_at(ir, address)->operands)[0]);
  assert(element->kind == TIR_LOAD && element->count == 1); /* pass "instruction" left no other */
  return element;
}

static tir_expr index_of(const struct tir *ir, tir_expr address) {
  return ir->operands.at[element_of(ir, address)->operands];
}

static bool difference(struct tir *ir, tir_expr from, tir_expr to, int64_t *by) {
  tir_expr e = tir_sub(ir, index_of(ir, to), index_of(ir, from));
  *by = tir_is_int(ir, e) ? tir_at(ir, e)->imm : 0;
  return tir_is_int(ir, e);
}

/* Whether two tiles of so many rows, which are as far apart, have no element in common. */
static bool are_disjoint(struct tir *ir, const tir_expr *a, const tir_expr *b, int rows) {
  int64_t stride, other, by;
  if (!difference(ir, a[0], a[1], &stride) || !difference(ir, b[0], b[1], &other) || !difference(ir, a[0], b[0], &by))
    return false;
  if (stride != other || stride < SIDE) return false;
  int64_t row = by / stride, column = by % stride; /* the other begins so far down, and so far to the right */
  if (column < 0) column += stride, row--;
  bool right = column >= SIDE || row >= rows || row <= -rows;                    /* of this row */
  bool wrapped = column <= stride - SIDE || row + 1 >= rows || row + 1 <= -rows; /* of the row after it */
  return right && wrapped;
}

static bool changes(const struct loop_tiles *t, tir_expr address) {
  for (uint32_t i = 0; i < t->vars_count; i++)
    if (tir_uses_var(t->ir, address, t->vars[i])) return true;
  return false;
}

/* Notes the tile that a product is added to; false: it cannot be held beside the others. */
static bool add_result(struct loop_tiles *t, const tir_expr *at) {
  for (uint32_t i = 0; i < t->count; i++) {
    const tir_expr *other = t->addresses + 2 * i;
    if (other[0] == at[0] && other[1] == at[1]) return true;
    if (!are_disjoint(t->ir, other, at, t->rows)) return false;
  }
  if (t->count == t->most) return false;
  t->addresses[2 * t->count] = at[0], t->addresses[2 * t->count + 1] = at[1];
  t->count++;
  return true;
}

static bool add_product(struct loop_tiles *t, tir_stmt attr) {
  struct tir *ir = t->ir;
  tir_expr args[12];
  struct tir_expr_node call = *tir_at(ir, tir_as(ir, attr, TIR_ATTR)->attr.value);
  assert(call.count <= sizeof args / sizeof *args);
  memcpy(args, tir_operands(ir, call.operands), call.count * sizeof *args);
  tir_buffer result = element_of(ir, args[RESULT])->ref;
  t->rows = t->products ? t->rows : tir_tile_rows(ir, attr);
  t->held = t->products++ ? t->held : result;
  for (int i = 0; i < 2; i++)
    if (changes(t, args[RESULT + i])) return false;
  /* One piece of memory, which operands have no part of; a view of another's might be of the same. */
  if (result != t->held || tir_buffer_at(ir, result)->data || tir_tile_rows(ir, attr) != t->rows) return false;
  for (int first = LEFT; first <= RIGHT; first += RIGHT - LEFT) {
    tir_buffer operand = element_of(ir, args[first])->ref;
    if (operand == result || tir_buffer_at(ir, operand)->data) return false;
  }
  return add_result(t, args + RESULT);
}

static bool add_var(struct loop_tiles *t, tir_var v) {
  if (t->vars_count == MOST_VARS) return false;
  t->vars[t->vars_count++] = v;
  return true;
}

/* A loop that runs, in order; of which nothing is known where it has no constant extent. */
static bool runs_in_order(const struct tir *ir, tir_stmt s) {
  return tir_as(ir, s, TIR_LOOP)->loop_kind == TIR_SERIAL && tir_loop_extent(ir, s) > 0;
}

static bool is_product(const struct tir *ir, tir_stmt s) { return tir_is_tile_product(tir_instruction_of(ir, s)); }

/* Past what a product's statement is in loops. */
static tir_stmt next_of(const struct tir *ir, tir_stmt s, tir_loop loop) {
  return is_product(ir, s) ? tir_after(ir, s, loop) : tir_next(ir, s, loop);
}

static bool only_multiplies(struct loop_tiles *t, tir_loop loop) {
  struct tir *ir = t->ir;
  for (tir_stmt s = loop; s; s = next_of(ir, s, loop)) {
    if (is_product(ir, s)) continue;
    if (!tir_is(ir, s, TIR_LOOP) || !runs_in_order(ir, s) || !add_var(t, tir_stmt_at(ir, s)->loop.var)) return false;
  }
  for (tir_stmt s = loop; s; s = next_of(ir, s, loop)) /* once all variables are known */
    if (is_product(ir, s) && !add_product(t, s)) return false;
  return t->count > 0;
}

/* Whether a statement makes one of the tiles zero. */
static bool is_their_zero(const struct loop_tiles *t, tir_stmt s) {
  const struct tir *ir = t->ir;
  if (tir_instruction_of(ir, s) != TIR_TILEZERO || tir_tile_rows(ir, s) != t->rows) return false;
  const struct tir_expr_node *call = tir_at(ir, tir_as(ir, s, TIR_ATTR)->attr.value);
  const tir_expr *at = tir_operands(ir, call->operands);
  for (uint32_t i = 0; i < t->count; i++)
    if (t->addresses[2 * i] == at[RESULT] && t->addresses[2 * i + 1] == at[RESULT + 1]) return true;
  return false;
}

/* Puts a loop, or products that stand side by side, from the first to the last, below an attribute. */
static void hold(struct tir *ir, tir_stmt first, tir_stmt last, const struct loop_tiles *t) {
  tir_expr value = tir_call(ir, TIR_T_I32, tir_symbol_of(ir, "tiles"), t->addresses, 2 * t->count);
  tir_stmt at = first;
  bool more = first != last;
  lower_wrap_in_attr(ir, first, TIR_ACCUMULATORS, value);
  tir_stmt attr = tir_stmt_at(ir, first)->parent;
  while (more) {
    tir_stmt s = tir_stmt_at(ir, attr)->next;
    more = s != last;
    tir_detach(ir, s);
    tir_insert_after(ir, at, s);
    at = s;
  }
  for (tir_stmt s; (s = tir_stmt_at(ir, attr)->prev) && is_their_zero(t, s); first = s) {
    tir_detach(ir, s);
    tir_insert_before(ir, first, s);
  }
}

/* The last of the products that stand side by side from this one on, and are added to tiles that can be held. */
static tir_stmt last_of_products(struct loop_tiles *t, tir_stmt first) {
  struct tir *ir = t->ir;
  tir_stmt last = TIR_NONE;
  for (tir_stmt s = first; s && is_product(ir, s) && add_product(t, s); s = tir_stmt_at(ir, s)->next) last = s;
  return last;
}

/* Products that no loop has, as where there is one step of the reduction, pay where their tiles begin as zeros. */
static tir_stmt hold_products(struct tir *ir, tir_stmt first, uint32_t most) {
  struct loop_tiles t = {.ir = ir, .most = most};
  tir_stmt before = tir_stmt_at(ir, first)->prev, last = before ? last_of_products(&t, first) : TIR_NONE;
  if (!last || !is_their_zero(&t, before)) return first;
  hold(ir, first, last, &t);
  return last;
}

bool lower_tiles(struct lowering *low) {
  struct tir *ir = low->ir;
  uint32_t most = low->options ? low->options->tile_accumulators : 0;
  if (!most || most > MOST_HELD) most = MOST_HELD;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    struct loop_tiles t = {.ir = ir, .most = most};
    if (is_product(ir, s)) {
      next = tir_after(ir, hold_products(ir, s, most), low->body);
    } else if (tir_is(ir, s, TIR_LOOP) && only_multiplies(&t, s)) {
      next = tir_after(ir, s, low->body);
      hold(ir, s, s, &t);
    }
  }
  return true;
}

uint32_t tir_accumulators_of(const struct tir *ir, tir_stmt s, const tir_expr **addresses) {
  if (!lower_is_attr(ir, s, TIR_ACCUMULATORS)) return 0;
  const struct tir_expr_node *call = tir_at(ir, tir_stmt_at(ir, s)->attr.value);
  if (call->kind != TIR_CALL || call->count % 2 != 0) return 0;
  *addresses = tir_operands(ir, call->operands);
  return call->count / 2;
}

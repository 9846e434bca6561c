/* Offsets: where sums of products of bytes of equal signs are added to a tile again and again, the operand that all
 * lanes share goes on as a byte of the other sign, 128 more or less, as the machine's dot products take it. What that
 * adds, 128 times each lane's sum, is summed up once for all rows that share the lanes' operand, and taken away before.
 *
 *   for i: for k: for j in vectorized: C[i, j] = C[i, j] + (i32(A[i, 4k]) * i32(B[k, j, 0]) + … )      becomes
 *     for j: s[j] = 0
 *     for k: for j: s[j] = s[j] + (i32(B[k, j, 0]) * 128 + … )
 *     for i: for j: C[i, j] = C[i, j] - s[j]
 *            for k: for j: C[i, j] = C[i, j] + ((i32(A[i, 4k]) + 128) * i32(B[k, j, 0]) + … )
 * Requires: no blocks; sums of neighbours that are joined (dots.c). Gives: small buffers. Keeps: results, as integers
 * wrap around. Sums that no rows share stay: there dots.c takes away what each product adds. */
#include "tir/arith/bounds.h"
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <stdlib.h>

enum { WIDTH = 4, MOST_LOOPS = 16, MOST_COLUMNS = 4096 };

/* What is multiplied: an element of a buffer that all lanes share, and one of each. */
struct pair {
  tir_expr shared, each; /* as they are widened */
};
struct found {
  struct lowering *low;
  /* lanes: the vectorized loop; top: the outermost loop that adds to the tile; outer: that rows are in, or top */
  tir_stmt store, lanes, top, outer;
  tir_stmt inner[MOST_LOOPS]; /* from the store outwards up to top: loops and conditions */
  uint32_t count;
  struct pair pairs[WIDTH];
  tir_expr self;
  int64_t offset; /* of the shared operand */
};

/* ---- What there is ---- */

static const struct tir_expr_node *byte_of(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  n = n->kind == TIR_CAST ? tir_at(ir, n->a) : NULL;
  return n && n->kind == TIR_LOAD && !n->a && tir_type_is_int(n->type) && tir_type_bits(n->type) == 8 ? n : NULL;
}

static bool load_uses(const struct tir *ir, const struct tir_expr_node *load, tir_var v) {
  for (uint32_t i = 0; i < load->count; i++)
    if (tir_uses_var(ir, tir_operands(ir, load->operands)[i], v)) return true;
  return false;
}

/* The products of a sum; false: it has others, or not as many as a dot product. */
static bool read_pairs(struct found *f, tir_expr e, tir_var lane, uint32_t *count) {
  const struct tir *ir = f->low->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_ADD) return read_pairs(f, n->a, lane, count) && read_pairs(f, n->b, lane, count);
  if (n->kind != TIR_MUL || *count == WIDTH) return false;
  const struct tir_expr_node *x = byte_of(ir, n->a), *y = byte_of(ir, n->b);
  if (!x || !y || x->type != y->type) return false;
  if (f->low->options->dots >> tir_dot_of(x->type, y->type) & 1 || load_uses(ir, x, lane) == load_uses(ir, y, lane))
    return false;
  bool swapped = load_uses(ir, x, lane);
  f->pairs[(*count)++] = swapped ? (struct pair){n->b, n->a} : (struct pair){n->a, n->b};
  return true;
}

/* Whether an element lies so far behind the first along the last dimension, and by others where that does. */
static bool lies_behind(struct tir *ir, const struct tir_expr_node *first, const struct tir_expr_node *other,
                        int64_t by) {
  if (first->ref != other->ref || first->count != other->count) return false;
  const tir_expr *a = tir_operands(ir, first->operands), *b = tir_operands(ir, other->operands);
  for (uint32_t d = 0; d + 1 < first->count; d++)
    if (a[d] != b[d]) return false;
  uint32_t last = first->count - 1;
  return tir_is_const(ir, tir_sub(ir, tir_operands(ir, other->operands)[last], tir_operands(ir, first->operands)[last]),
                      by);
}

/* Whether the products are those of one dot product: each lane's four lie together, lane by lane. */
static bool are_neighbours(struct found *f, tir_var lane) {
  struct tir *ir = f->low->ir;
  const struct tir_expr_node shared = *byte_of(ir, f->pairs[0].shared), each = *byte_of(ir, f->pairs[0].each);
  const struct tir_buffer_node *b = tir_buffer_at(ir, each.ref);
  int64_t step = 0;
  if (each.count < 2 || each.count != b->rank || b->strides.count) return false;
  if (!tir_is_const(ir, ir->operands.at[b->shape + b->rank - 1], WIDTH)) return false;
  if (!lower_find_step(ir, ir->operands.at[each.operands + each.count - 2], lane, &step) || step != 1) return false;
  for (uint32_t d = 0; d < each.count; d++)
    if (d + 2 != each.count && tir_uses_var(ir, ir->operands.at[each.operands + d], lane)) return false;
  for (int p = 1; p < WIDTH; p++) {
    const struct tir_expr_node x = *byte_of(ir, f->pairs[p].shared), y = *byte_of(ir, f->pairs[p].each);
    if (!lies_behind(ir, &shared, &x, p) || !lies_behind(ir, &each, &y, p)) return false;
  }
  return true;
}

/* The sum that the store adds to the element it writes. */
static bool read_sum(struct found *f, tir_var lane) {
  struct tir *ir = f->low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, f->store);
  struct tir_expr_node value = *tir_at(ir, n.store.value);
  if (n.store.predicate || value.kind != TIR_ADD || value.type != TIR_T_I32) return false;
  f->self = tir_at(ir, value.a)->kind == TIR_LOAD ? value.a : value.b;
  struct tir_expr_node self = *tir_at(ir, f->self);
  if (self.kind != TIR_LOAD || self.ref != n.store.buffer || self.a) return false;
  for (uint32_t d = 0; d < self.count; d++)
    if (ir->operands.at[self.operands + d] != ir->operands.at[n.store.indices + d]) return false;
  uint32_t count = 0;
  if (!read_pairs(f, f->self == value.a ? value.b : value.a, lane, &count) || count != WIDTH) return false;
  const struct tir_expr_node *x = byte_of(ir, f->pairs[0].shared), *y = byte_of(ir, f->pairs[0].each);
  f->offset = tir_type_code(x->type) == TIR_INT ? 128 : -128;
  return x->ref != n.store.buffer && y->ref != n.store.buffer && are_neighbours(f, lane);
}

/* ---- Around it ---- */

static bool is_plain_loop(const struct tir *ir, tir_stmt s) {
  if (!tir_is(ir, s, TIR_LOOP)) return false;
  int kind = tir_stmt_at(ir, s)->loop_kind;
  return kind == TIR_SERIAL || kind == TIR_UNROLLED;
}

static tir_var var_of(const struct tir *ir, tir_stmt loop) { return tir_as(ir, loop, TIR_LOOP)->loop.var; }

static bool each_uses(const struct found *f, tir_var v) {
  return load_uses(f->low->ir, byte_of(f->low->ir, f->pairs[0].each), v);
}

/* Climbs from the store over the loops of the tile and those that add to it. */
static bool climb(struct found *f) {
  struct tir *ir = f->low->ir;
  f->count = 0, f->top = TIR_NONE;
  uint32_t up_to_top = 0;
  for (tir_stmt s = f->store; lower_is_alone(ir, s) && f->count < MOST_LOOPS; s = f->inner[f->count - 1]) {
    tir_stmt p = tir_stmt_at(ir, s)->parent;
    bool test = tir_is(ir, p, TIR_IF) && !tir_stmt_at(ir, p)->first[TIR_ELSE];
    bool lanes = !f->lanes && tir_is(ir, p, TIR_LOOP) && tir_stmt_at(ir, p)->loop_kind == TIR_VECTORIZED;
    if (!test && !lanes && !is_plain_loop(ir, p)) break;
    if (!test && !lanes && !f->lanes) return false;
    if (lanes) f->lanes = p;
    bool of_tile = !test && lower_indices_use(ir, f->store, var_of(ir, p));
    if (of_tile && f->top) break;
    f->inner[f->count++] = p;
    if (!test && !of_tile) f->top = p, up_to_top = f->count;
  }
  f->count = up_to_top;
  return f->top != TIR_NONE && lower_indices_use(ir, f->store, var_of(ir, f->lanes));
}

/* Conditions of the tile that decide which lanes are added stand around their sums too; others must not say which there
 * are. */
static bool is_of_lanes(const struct found *f, tir_stmt test) {
  const struct tir *ir = f->low->ir;
  for (uint32_t i = 0; i < f->count; i++)
    if (tir_is(ir, f->inner[i], TIR_LOOP) && !each_uses(f, var_of(ir, f->inner[i])) &&
        tir_uses_var(ir, tir_stmt_at(ir, test)->test.condition, var_of(ir, f->inner[i])))
      return false;
  return true;
}

/* The conditions can be tested without the loops that only rows have. */
static bool are_conditions_apart(const struct found *f) {
  const struct tir *ir = f->low->ir;
  for (uint32_t i = 0; i < f->count; i++) {
    if (!tir_is(ir, f->inner[i], TIR_IF)) continue;
    tir_expr condition = tir_stmt_at(ir, f->inner[i])->test.condition;
    if (tir_at(ir, condition)->flags & TIR_HAS_LOAD) return false;
    bool rows = !is_of_lanes(f, f->inner[i]);
    for (uint32_t k = 0; k < f->count; k++) {
      if (!tir_is(ir, f->inner[k], TIR_LOOP) || !tir_uses_var(ir, condition, var_of(ir, f->inner[k]))) continue;
      bool adds = !lower_indices_use(ir, f->store, var_of(ir, f->inner[k]));
      if (adds || (rows && each_uses(f, var_of(ir, f->inner[k])))) return false;
    }
  }
  return true;
}

static bool writes_each(struct found *f, tir_stmt top) {
  struct tir *ir = f->low->ir;
  tir_buffer b = byte_of(ir, f->pairs[0].each)->ref;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (!tir_is(ir, s, TIR_LOOP) && !tir_is(ir, s, TIR_IF) &&
        (!tir_is(ir, s, TIR_STORE) || tir_as(ir, s, TIR_STORE)->store.buffer == b))
      return true;
  return false;
}

/* Whether a condition that stands around the lanes' sums depends on the loop. */
static bool lanes_depend_on(const struct found *f, tir_stmt loop) {
  const struct tir *ir = f->low->ir;
  for (uint32_t i = 0; i < f->count; i++)
    if (tir_is(ir, f->inner[i], TIR_IF) && is_of_lanes(f, f->inner[i]) &&
        tir_uses_var(ir, tir_stmt_at(ir, f->inner[i])->test.condition, var_of(ir, loop)))
      return true;
  return each_uses(f, var_of(ir, loop));
}

static bool is_of_each(const struct tir *ir, const void *context, tir_var v) {
  (void)ir;
  return each_uses(context, v);
}

/* Whether it is a condition of rows alone: what the lanes read is the same whether it holds or not. */
static bool is_of_rows(const struct found *f, tir_stmt s) {
  const struct tir *ir = f->low->ir;
  if (!tir_is(ir, s, TIR_IF)) return false;
  tir_expr condition = tir_stmt_at(ir, s)->test.condition;
  return !(tir_at(ir, condition)->flags & TIR_HAS_LOAD) && !tir_any_var(ir, condition, is_of_each, f);
}

/* The outermost loop in whose iterations the sums of the lanes are the same; and how many rows share them, at least. */
static int64_t find_outer(struct found *f) {
  struct tir *ir = f->low->ir;
  int64_t rows = 1;
  assert(f->count > 0 && f->inner[f->count - 1] == f->top);
  f->outer = f->top;
  for (uint32_t i = 0; i < f->count; i++)
    if (tir_is(ir, f->inner[i], TIR_LOOP) && lower_indices_use(ir, f->store, var_of(ir, f->inner[i])) &&
        !each_uses(f, var_of(ir, f->inner[i])))
      rows = tir_sat_mul(rows, tir_loop_extent(ir, f->inner[i]));
  for (tir_stmt p = tir_stmt_at(ir, f->top)->parent; is_plain_loop(ir, p) || is_of_rows(f, p);
       p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP)) continue;
    if (lanes_depend_on(f, p) || writes_each(f, p)) break;
    f->outer = p, rows = tir_sat_mul(rows, tir_loop_extent(ir, p));
  }
  return rows;
}

/* Loop bounds of the tile use no variable of a loop that the sums leave. */
static bool are_bounds_constant(const struct found *f) {
  const struct tir *ir = f->low->ir;
  int64_t columns = 1;
  for (uint32_t i = 0; i < f->count; i++) {
    if (!tir_is(ir, f->inner[i], TIR_LOOP)) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, f->inner[i]);
    if (!tir_is_int(ir, n.loop.min) || tir_loop_extent(ir, f->inner[i]) < 1) return false;
    if (lower_indices_use(ir, f->store, n.loop.var) && each_uses(f, n.loop.var))
      columns = tir_sat_mul(columns, tir_loop_extent(ir, f->inner[i]));
  }
  return columns <= MOST_COLUMNS;
}

static bool find(struct lowering *low, tir_stmt store, struct found *f) {
  *f = (struct found){.low = low, .store = store};
  return climb(f) && read_sum(f, var_of(low->ir, f->lanes)) && are_bounds_constant(f) && are_conditions_apart(f) &&
         find_outer(f) > 1;
}

/* ---- What becomes of it ---- */

/* Which loops of the nest stand around a statement. */
enum around { OF_LANES = 1, OF_ROWS = 2, THAT_ADD = 4 };

static enum around kind_of(const struct found *f, tir_stmt loop) {
  const struct tir *ir = f->low->ir;
  if (!lower_indices_use(ir, f->store, var_of(ir, loop))) return THAT_ADD;
  return each_uses(f, var_of(ir, loop)) ? OF_LANES : OF_ROWS;
}

/* The statement in loops of these kinds, of variables of their own, and under the conditions decided by them. */
static tir_stmt surrounded(struct found *f, tir_stmt s, unsigned kinds) {
  struct tir *ir = f->low->ir;
  for (uint32_t i = 0; i < f->count; i++) {
    struct tir_stmt_node n = *tir_stmt_at(ir, f->inner[i]);
    tir_stmt around;
    if (n.kind == TIR_LOOP) {
      if (!(kind_of(f, f->inner[i]) & kinds)) continue;
      around = tir_new_loop(ir, n.loop.var, n.loop.min, n.loop.extent, (enum tir_loop_kind)n.loop_kind);
    } else {
      if (!(kinds & OF_ROWS) && !is_of_lanes(f, f->inner[i])) continue;
      around = tir_new_if(ir, n.test.condition);
    }
    tir_append(ir, around, TIR_BODY, s);
    s = around;
  }
  tir_stmt made = tir_clone_stmt(ir, s);
  tir_kill(ir, s);
  return made;
}

/* The buffer of the lanes' sums, and where one is, by the loops of the lanes. */
static tir_buffer new_sums(struct found *f, tir_expr at[MOST_LOOPS], uint32_t *rank) {
  struct tir *ir = f->low->ir;
  tir_expr shape[MOST_LOOPS];
  *rank = 0;
  for (uint32_t i = f->count; i-- > 0;) {
    if (!tir_is(ir, f->inner[i], TIR_LOOP) || kind_of(f, f->inner[i]) != OF_LANES) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, f->inner[i]);
    shape[*rank] = n.loop.extent, at[(*rank)++] = tir_sub(ir, tir_var_expr(ir, n.loop.var), n.loop.min);
  }
  assert(*rank > 0);
  tir_buffer result = tir_as(ir, f->store, TIR_STORE)->store.buffer;
  tir_symbol name = tir_symbol_format(ir, "%s_offset", tir_buffer_name(ir, result));
  tir_buffer sums = tir_new_buffer(ir, name, tir_buffer_at(ir, result)->type, shape, *rank, TIR_NONE);
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  tir_stmt_at(ir, alloc)->alloc.buffer = sums;
  tir_buffer_at(ir, sums)->where = alloc;
  tir_insert_before(ir, f->outer, alloc);
  return sums;
}

static void put_sums(struct found *f) {
  struct tir *ir = f->low->ir;
  tir_expr at[MOST_LOOPS], indices[TIR_MOST_RANK];
  uint32_t rank;
  tir_buffer sums = new_sums(f, at, &rank), result = tir_as(ir, f->store, TIR_STORE)->store.buffer;
  tir_type type = tir_buffer_at(ir, sums)->type;
  tir_expr offset = tir_int(ir, type, f->offset), sum = TIR_NONE, here = tir_load(ir, sums, at, rank, TIR_NONE);
  for (int p = 0; p < WIDTH; p++) {
    tir_expr one = tir_binary(ir, TIR_MUL, f->pairs[p].each, offset);
    sum = sum ? tir_binary(ir, TIR_ADD, sum, one) : one;
  }
  tir_stmt zero = tir_new_store(ir, sums, at, tir_int(ir, type, 0));
  tir_stmt add = tir_new_store(ir, sums, at, tir_binary(ir, TIR_ADD, here, sum));
  tir_insert_before(ir, f->outer, surrounded(f, zero, OF_LANES));
  tir_insert_before(ir, f->outer, surrounded(f, add, OF_LANES | THAT_ADD));
  uint32_t count = tir_buffer_at(ir, result)->rank;
  for (uint32_t d = 0; d < count; d++) indices[d] = ir->operands.at[tir_as(ir, f->store, TIR_STORE)->store.indices + d];
  tir_stmt take = tir_new_store(ir, result, indices, tir_binary(ir, TIR_SUB, f->self, here));
  tir_insert_before(ir, f->top, surrounded(f, take, OF_LANES | OF_ROWS));
}

static void put_offset(struct found *f) {
  struct tir *ir = f->low->ir;
  assert(tir_as(ir, f->store, TIR_STORE)->store.value != f->self);
  tir_expr value = f->self, offset = tir_int(ir, tir_type_of(ir, f->self), f->offset), sum = TIR_NONE;
  for (int p = 0; p < WIDTH; p++) {
    tir_expr shared = tir_binary(ir, TIR_ADD, f->pairs[p].shared, offset);
    tir_expr one = tir_binary(ir, TIR_MUL, shared, f->pairs[p].each);
    sum = sum ? tir_binary(ir, TIR_ADD, sum, one) : one;
  }
  tir_as(ir, f->store, TIR_STORE)->store.value = tir_binary(ir, TIR_ADD, value, sum);
}

/* Another name may write what is read, or read what is written. */
static bool is_shared(const struct found *f, const uint8_t *pointers) {
  const struct tir *ir = f->low->ir;
  tir_buffer result = tir_as(ir, f->store, TIR_STORE)->store.buffer;
  return pointers[result] || pointers[byte_of(ir, f->pairs[0].each)->ref] ||
         pointers[byte_of(ir, f->pairs[0].shared)->ref];
}

bool lower_offsets(struct lowering *low) {
  struct tir *ir = low->ir;
  if (!low->options || !(low->options->dots >> TIR_DOT_BYTES & 1)) return true;
  uint8_t *pointers = lower_pointers(ir, low->body); /* none is made here of a buffer that is looked at */
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    struct found f;
    if (!tir_is(ir, s, TIR_STORE) || !find(low, s, &f) || is_shared(&f, pointers)) continue;
    put_sums(&f);
    put_offset(&f);
    next = tir_next(ir, s, low->body);
  }
  free(pointers);
  return true;
}

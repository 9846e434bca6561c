/* Overlap: in a loop of two warp-group MMAs with work between (attention: scores, their softmax, the product with the
 * values), the second of one iteration goes on beside that work of the next.
 *
 *   for k in range(n):                     S = A(0); P = f(S)
 *     S = A(k)                             for k in range(1, n):
 *     P = f(S)                               S = A(k); O += P * V(k - 1)     begun, one behind the other
 *     O = O * x + P * V(k)       becomes     wait for S; N = f(S)            while the second goes on
 *                                            wait for O; O = O * x; P = N
 *                                          O += P * V(n - 1)
 *
 * The second MMAs add to O itself, which is registers of accumulators from then on, instead of to a tile that is added
 * to it: that takes half the registers. What frees the stage buffers comes an iteration later, so that there are two at
 * least.
 *
 * Alternate: two consumer warp groups take turns (ping-pong). A barrier with a number of each lets it begin its MMAs
 * once the other has begun its own: one's softmax goes beside the other's MMAs.
 *
 * Requires: kernels; fences, commits and waits of MMAs (groups.c); for alternate, barriers. Gives: no annotation that
 * requests either. Keeps: everything else; what cannot be done is noted.
 * Source: Shah et al., "FlashAttention-3", NeurIPS 2024, sections 3.1 and 3.2. */
#include "pipeline.h"
#include "tir/lower/gpu/footprint.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STATEMENTS = 64, PAIR = 2, HELD = 4, ROWS = 2 };

/* The loop's statements, but for allocations, and where those stand that matter. */
struct overlap {
  struct lowering *low;
  struct tir *ir;
  tir_stmt loop, at[MOST_STATEMENTS];
  uint32_t count;
  uint32_t fence[2], commit[2]; /* of both MMAs; waits stand behind the commits */
  tir_buffer scores, tile, operand, sums;
  int64_t columns; /* of the sums */
  tir_expr scale;  /* that they are multiplied with */
};

static const tir_expr *arguments(const struct tir *ir, tir_stmt s) {
  return tir_operands(ir, tir_at(ir, tir_as(ir, s, TIR_EVALUATE)->evaluate.value)->operands);
}

static tir_expr number(struct tir *ir, int64_t n) { return tir_int(ir, TIR_T_I32, n); }

/* The only thing that loops around it do; TIR_NONE: there are several. */
static tir_stmt innermost(const struct tir *ir, tir_stmt s) {
  while (s && tir_is(ir, s, TIR_LOOP)) {
    tir_stmt c = tir_stmt_at(ir, s)->first[TIR_BODY];
    s = c && !tir_stmt_at(ir, c)->next ? c : TIR_NONE;
  }
  return s;
}

static tir_buffer held_by(const struct tir *ir, tir_expr data) {
  const struct tir_expr_node *n = tir_at(ir, data);
  return n->kind == TIR_DATA ? n->ref : TIR_NONE;
}

/* ---- What the loop does ---- */

static bool list_statements(struct overlap *o) {
  const struct tir *ir = o->ir;
  for (tir_stmt s = tir_stmt_at(ir, o->loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    if (tir_is(ir, s, TIR_ALLOC)) continue;
    if (o->count == MOST_STATEMENTS) return false;
    o->at[o->count++] = s;
  }
  return o->count > 0;
}

/* Two fences, each with MMAs, a commit and a wait for all behind it. */
static bool find_products(struct overlap *o) {
  const struct tir *ir = o->ir;
  uint32_t fences = 0, commits = 0;
  for (uint32_t i = 0; i < o->count; i++) {
    bool fence = lower_calls(ir, o->at[i], TIR_WGMMA_FENCE), commit = lower_calls(ir, o->at[i], TIR_WGMMA_COMMIT);
    if ((fence && (fences == 2 || fences != commits)) || (commit && commits + 1 != fences)) return false;
    if (fence) o->fence[fences++] = i;
    if (commit) o->commit[commits++] = i;
  }
  if (fences != 2 || commits != 2) return false;
  for (int k = 0; k < 2; k++) {
    tir_stmt wait = o->commit[k] + 1 < o->count ? o->at[o->commit[k] + 1] : TIR_NONE;
    if (!wait || !lower_calls(ir, wait, TIR_WGMMA_WAIT) || !tir_is_const(ir, arguments(ir, wait)[0], 0)) return false;
  }
  return true;
}

static tir_stmt first_product(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (lower_is_product(ir, s)) return s;
  return TIR_NONE;
}

/* A wait, then what begins the scores; at the end the sums, and that a stage buffer is empty. */
static bool find_rims(struct overlap *o) {
  enum { A = 3, VALUE = 3 };
  const struct tir *ir = o->ir;
  uint32_t tail = o->commit[1] + 2;
  if (!lower_calls(ir, o->at[0], TIR_MBARRIER_WAIT) || tail + 2 != o->count || !tir_is(ir, o->at[tail + 1], TIR_IF) ||
      !lower_is_arrival(ir, innermost(ir, tir_stmt_at(ir, o->at[tail + 1])->first[TIR_BODY])))
    return false;
  for (uint32_t i = 1; i < o->fence[0]; i++)
    if (!lower_calls(ir, o->at[i], TIR_WGMMA_FILL)) return false;
  tir_stmt first = first_product(ir, o->at[o->fence[0] + 1]), second = first_product(ir, o->at[o->fence[1] + 1]);
  tir_stmt fill = o->at[o->fence[1] - 1];
  if (!first || !second || !lower_calls(ir, second, TIR_WGMMA_MMA_REGISTERS) ||
      lower_calls(ir, first, TIR_WGMMA_MMA_REGISTERS) || !lower_calls(ir, fill, TIR_WGMMA_FILL))
    return false;
  o->scores = held_by(ir, arguments(ir, first)[0]), o->tile = held_by(ir, arguments(ir, second)[0]);
  o->operand = held_by(ir, arguments(ir, second)[A]), o->columns = tir_at(ir, arguments(ir, second)[2])->imm;
  const struct tir_expr_node *value = tir_at(ir, arguments(ir, fill)[VALUE]);
  return o->tile && o->operand && o->scores && o->tile != o->scores && held_by(ir, arguments(ir, fill)[0]) == o->tile &&
         value->kind == TIR_FLOAT_IMM && value->real == 0;
}

/* The element's number among the accumulators that a thread holds, of its rows and its own columns of them. */
static tir_expr element_of(struct tir *ir, const tir_expr *indices, uint32_t rank) {
  tir_expr row = indices[rank - 2], column = indices[rank - 1], two = number(ir, PAIR);
  tir_expr pair = tir_mul(ir, tir_floordiv(ir, column, two), number(ir, HELD));
  tir_expr below = tir_mul(ir, row, two);
  return tir_simplify(ir, tir_add(ir, tir_add(ir, pair, below), tir_floormod(ir, column, two)));
}

static bool is_held_so(const struct overlap *o, tir_buffer buffer) {
  const struct tir *ir = o->ir;
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (b->rank < 2 || tir_buffer_memory(ir, buffer) != TIR_THREAD_MEMORY || b->type != tir_buffer_at(ir, o->tile)->type)
    return false;
  for (uint32_t d = 0; d < b->rank; d++) {
    int64_t extent = d + 2 < b->rank ? 1 : d + 1 < b->rank ? ROWS : o->columns / (2 * ROWS);
    if (!tir_is_const(ir, ir->operands.at[b->shape + d], extent)) return false;
  }
  return true;
}

/* Sums times a scale, and the tile's element. */
static bool find_sums(struct overlap *o) {
  enum { ELEMENT = 2 };
  struct tir *ir = o->ir;
  tir_stmt store = innermost(ir, o->at[o->commit[1] + 2]);
  if (!store || !tir_is(ir, store, TIR_STORE)) return false;
  struct tir_stmt_node s = *tir_stmt_at(ir, store);
  struct tir_expr_node sum = *tir_at(ir, s.store.value);
  if (sum.kind != TIR_ADD || tir_at(ir, sum.a)->kind != TIR_MUL || s.store.predicate) return false;
  struct tir_expr_node product = *tir_at(ir, sum.a), load = *tir_at(ir, product.a);
  const struct tir_expr_node *get = tir_at(ir, sum.b);
  o->sums = s.store.buffer, o->scale = product.b;
  if (load.kind != TIR_LOAD || load.ref != o->sums || !is_held_so(o, o->sums) ||
      !tir_is_device_call(ir, sum.b, TIR_WGMMA_GET) || held_by(ir, tir_operands(ir, get->operands)[0]) != o->tile)
    return false;
  uint32_t rank = tir_buffer_at(ir, o->sums)->rank;
  tir_expr element = tir_operands(ir, get->operands)[ELEMENT];
  for (uint32_t d = 0; d < rank; d++)
    if (tir_operands(ir, load.operands)[d] != tir_operands(ir, s.store.indices)[d]) return false;
  return tir_prove(ir, tir_make(ir, TIR_EQ, element_of(ir, tir_operands(ir, s.store.indices), rank), element));
}

/* What is between the MMAs has nothing to do with what the second changes, and nobody else knows of the tile. */
static bool are_apart(const struct overlap *o) {
  const struct tir *ir = o->ir;
  for (uint32_t i = 0; i + 1 < o->fence[1]; i++)
    if (lower_uses_buffer(ir, o->at[i], o->sums) || lower_uses_buffer(ir, o->at[i], o->tile)) return false;
  for (uint32_t i = 0; i <= o->commit[0] + 1; i++)
    if (lower_uses_buffer(ir, o->at[i], o->operand)) return false;
  const tir_buffer own[] = {o->scores, o->tile, o->operand};
  for (int i = 0; i < 3; i++) {
    tir_stmt where = tir_buffer_at(ir, own[i])->where;
    if (!where || !tir_is(ir, where, TIR_ALLOC) || tir_stmt_at(ir, where)->parent != o->loop) return false;
  }
  uint8_t *pointers = lower_pointers(ir, o->low->body);
  bool apart = !pointers[o->sums];
  free(pointers);
  return apart;
}

/* NULL: it can be done. */
static const char *why_not(struct overlap *o) {
  struct tir *ir = o->ir;
  struct tir_stmt_node n = *tir_as(ir, o->loop, TIR_LOOP);
  if (n.loop_kind == TIR_THREAD_BINDING || !list_statements(o) || !find_products(o) || !find_rims(o))
    return "it is not one of two MMAs, the second of registers, whose stage buffers mbarriers free";
  if (!find_sums(o) || !are_apart(o)) return "the second MMAs' tile is not added to sums alone";
  struct tir_pointer phase;
  bool leads = tir_pointer_of(ir, tir_at(ir, arguments(ir, o->at[0])[0]), &phase);
  const struct tir_buffer_node *phases = leads ? tir_buffer_at(ir, phase.buffer) : NULL;
  int64_t ring = leads ? tir_ring_of_mbarriers(tir_at(ir, ir->operands.at[phases->shape])->imm) : 0;
  if (ring < 2) return "it has one stage buffer";
  return tir_bounds_of(ir, n.loop.extent).lo < 1 ? "it may have no iteration" : NULL;
}

/* ---- The sums are accumulators ---- */

static tir_expr get_of(struct tir *ir, tir_buffer from, int64_t columns, tir_expr element) {
  tir_expr args[] = {tir_data(ir, from), number(ir, columns), element};
  return tir_call(ir, tir_buffer_at(ir, from)->type, tir_device_symbol(ir, TIR_WGMMA_GET), args, 3);
}

static tir_stmt put_to(struct tir *ir, tir_buffer to, int64_t columns, tir_expr element, tir_expr value) {
  tir_expr args[] = {tir_data(ir, to), number(ir, columns), element, value};
  return lower_new_call(ir, TIR_WGMMA_PUT, args, 4);
}

static tir_expr change_load(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  const struct overlap *o = data;
  struct tir_expr_node n = *tir_at(ir, made);
  (void)before;
  if (n.kind != TIR_LOAD || n.ref != o->sums) return made;
  return get_of(ir, o->tile, o->columns, element_of(ir, tir_operands(ir, n.operands), n.count));
}

/* In place of the sums, which were each lane's own, the kernel has the tile, and its second MMAs begin with nothing. */
static void add_in_place(struct overlap *o) {
  struct tir *ir = o->ir;
  tir_stmt carry = innermost(ir, o->at[o->commit[1] + 2]);
  struct tir_stmt_node s = *tir_as(ir, carry, TIR_STORE);
  tir_expr indices[TIR_MOST_RANK];
  uint32_t rank = tir_buffer_at(ir, o->sums)->rank;
  memcpy(indices, tir_operands(ir, s.store.indices), rank * sizeof *indices);
  tir_expr old = tir_load(ir, o->sums, indices, rank, TIR_NONE), scaled = tir_mul(ir, old, o->scale);
  tir_as(ir, carry, TIR_STORE)->store.value = scaled;
  tir_stmt where = tir_buffer_at(ir, o->sums)->where, own = tir_buffer_at(ir, o->tile)->where;
  tir_detach(ir, own);
  tir_insert_before(ir, where, own);
  lower_map(ir, o->low->body, TIR_HAS_LOAD, change_load, o);
  for (tir_stmt t = o->low->body, next; t; t = next) {
    next = tir_next(ir, t, o->low->body);
    if (!tir_is(ir, t, TIR_STORE) || tir_stmt_at(ir, t)->store.buffer != o->sums) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, t);
    tir_expr element = element_of(ir, tir_operands(ir, n.store.indices), rank);
    tir_stmt put = put_to(ir, o->tile, o->columns, element, n.store.value);
    tir_replace(ir, t, put);
    tir_kill(ir, t);
  }
  tir_kill(ir, where);
}

/* ---- The order ---- */

/* Where clones come to: behind `after`, which follows them. */
struct place {
  struct overlap *o;
  tir_stmt after;
  tir_expr iteration;
};

static void put(struct place *p, tir_stmt s) {
  tir_insert_after(p->o->ir, p->after, s);
  p->after = s;
}

static void put_copies(struct place *p, uint32_t from, uint32_t to) {
  struct tir *ir = p->o->ir;
  for (uint32_t i = from; i <= to; i++) {
    tir_stmt copy = tir_clone_stmt(ir, p->o->at[i]);
    tir_subst_var(ir, tir_as(ir, p->o->loop, TIR_LOOP)->loop.var, p->iteration);
    tir_subst_stmt(ir, copy);
    tir_subst_clear(ir);
    put(p, copy);
  }
}

static void put_call(struct place *p, enum tir_device_call which, int64_t left, const tir_buffer *held,
                     uint32_t count) {
  enum { MOST = 4 };
  struct tir *ir = p->o->ir;
  tir_expr args[MOST];
  uint32_t n = 0;
  assert(count < MOST);
  if (left >= 0) args[n++] = number(ir, left);
  for (uint32_t i = 0; i < count; i++) args[n++] = tir_data(ir, held[i]);
  put(p, lower_new_call(ir, which, args, n));
}

static tir_expr change_operand(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  const tir_buffer *change = data;
  (void)before;
  return tir_at(ir, made)->kind == TIR_DATA && tir_at(ir, made)->ref == change[0] ? tir_data(ir, change[1]) : made;
}

/* The operand that the next MMAs read, while the last ones may still read theirs. */
static tir_buffer new_operand(struct overlap *o) {
  struct tir *ir = o->ir;
  struct tir_buffer_node b = *tir_buffer_at(ir, o->operand);
  tir_expr shape[TIR_MOST_RANK];
  memcpy(shape, &ir->operands.at[b.shape], b.rank * sizeof *shape);
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  tir_buffer made = tir_new_buffer(ir, tir_symbol_of(ir, "next_operand"), b.type, shape, b.rank, b.scope);
  tir_as(ir, alloc, TIR_ALLOC)->alloc.buffer = made;
  tir_buffer_at(ir, made)->where = alloc;
  tir_insert_before(ir, tir_stmt_at(ir, o->loop)->first[TIR_BODY], alloc);
  return made;
}

static tir_stmt copy_operand(struct overlap *o, tir_buffer from) {
  struct tir *ir = o->ir;
  int64_t held =
      (int64_t)(tir_allocation_bytes(ir, from) * 8 / (unsigned)tir_type_bits(tir_buffer_at(ir, from)->type)) /
      TIR_GROUP;
  int bits = tir_type_bits(tir_buffer_at(ir, from)->type), depth = tir_mma_depth(bits);
  int64_t at_once = bits == 8 ? PAIR : 1;
  tir_expr zero = number(ir, 0), count = number(ir, held / at_once);
  tir_var e = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, "e"), TIR_T_I32, zero, count);
  tir_stmt loop = tir_new_loop(ir, e, zero, count, TIR_UNROLLED);
  tir_expr element = tir_mul(ir, tir_var_expr(ir, e), number(ir, at_once));
  tir_expr args[3 + PAIR] = {tir_data(ir, o->operand), number(ir, depth), element};
  for (int64_t i = 0; i < at_once; i++) args[3 + i] = get_of(ir, from, depth, tir_add(ir, element, number(ir, i)));
  tir_append(ir, loop, TIR_BODY, lower_new_call(ir, TIR_WGMMA_PUT, args, 3 + (uint32_t)at_once));
  return loop;
}

static tir_stmt new_loop(struct overlap *o) {
  struct tir *ir = o->ir;
  struct tir_stmt_node n = *tir_as(ir, o->loop, TIR_LOOP);
  struct tir_var_node v = ir->vars.at[n.loop.var];
  tir_expr one = tir_int(ir, v.type, 1);
  tir_expr min = tir_simplify(ir, tir_add(ir, n.loop.min, one)),
           extent = tir_simplify(ir, tir_sub(ir, n.loop.extent, one));
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, min, extent);
  tir_stmt loop = tir_new_loop(ir, var, min, extent, (enum tir_loop_kind)n.loop_kind);
  for (uint32_t i = n.annotations.first; i < n.annotations.first + n.annotations.count; i++)
    tir_annotate_symbol(ir, loop, ir->annotations.at[i].key, ir->annotations.at[i].value);
  return loop;
}

/* Allocations of a loop come to the head of another, or before it. */
static void move_allocations(struct tir *ir, tir_stmt from, tir_stmt loop, bool before) {
  tir_stmt head = before ? TIR_NONE : tir_stmt_at(ir, loop)->first[TIR_BODY];
  for (tir_stmt s = tir_stmt_at(ir, from)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_detach(ir, s);
    tir_insert_before(ir, before ? loop : head, s);
  }
}

/* The first iteration, up to its second MMAs, which adds to sums that are scaled; with memory of its own. */
static void put_first(struct overlap *o, uint32_t last, uint32_t tail) {
  struct tir *ir = o->ir;
  struct overlap first = {.low = o->low, .ir = ir, .loop = tir_clone_stmt(ir, o->loop)};
  tir_insert_before(ir, o->loop, first.loop);
  bool listed = list_statements(&first);
  assert(listed && first.count == o->count);
  (void)listed;
  move_allocations(ir, first.loop, first.loop, true);
  struct place p = {&first, tir_stmt_at(ir, first.loop)->prev, tir_as(ir, o->loop, TIR_LOOP)->loop.min};
  put_copies(&p, 0, last);
  put_copies(&p, tail, tail);
  tir_kill(ir, first.loop);
}

static void take_turns(struct overlap *o) {
  struct tir *ir = o->ir;
  const tir_buffer all[] = {o->scores, o->tile, o->operand}, *sums = all + 1;
  uint32_t tail = o->commit[1] + 2, between = o->commit[0] + 2, last = o->fence[1] - 2; /* before the tile is filled */
  struct tir_stmt_node n = *tir_as(ir, o->loop, TIR_LOOP);
  tir_type type = tir_type_of(ir, n.loop.extent);
  tir_stmt where = tir_buffer_at(ir, o->operand)->where;
  tir_detach(ir, where);
  tir_insert_before(ir, o->loop, where);
  put_first(o, last, tail);
  tir_stmt loop = new_loop(o), head = tir_new_if(ir, tir_int(ir, TIR_T_BOOL, 1));
  tir_append(ir, loop, TIR_BODY, head);
  tir_buffer change[] = {o->operand, new_operand(o)};
  for (uint32_t i = between; i <= last; i++) lower_map(ir, o->at[i], 0, change_operand, change);
  tir_expr one = tir_int(ir, type, 1), here = tir_var_expr(ir, tir_as(ir, loop, TIR_LOOP)->loop.var);
  tir_expr before = tir_sub(ir, here, one);
  struct place p = {o, head, here};
  put_copies(&p, 0, o->fence[0] - 1);
  put_call(&p, TIR_WGMMA_FENCE, -1, all, 3);
  put_copies(&p, o->fence[0] + 1, o->commit[0]);
  p.iteration = before;
  put_copies(&p, o->fence[1] + 1, o->commit[1]);
  put_call(&p, TIR_WGMMA_WAIT, 1, all, 1);
  p.iteration = here;
  put_copies(&p, between, last);
  put_call(&p, TIR_WGMMA_WAIT, 0, sums, 2);
  put_copies(&p, tail, tail);
  put(&p, copy_operand(o, change[1]));
  p.iteration = before;
  put_copies(&p, tail + 1, tail + 1);
  move_allocations(ir, o->loop, loop, false);
  tir_kill(ir, head);
  tir_insert_after(ir, o->loop, loop);
  tir_expr end = tir_sub(ir, tir_add(ir, n.loop.min, n.loop.extent), one);
  p = (struct place){o, loop, tir_simplify(ir, end)};
  put_call(&p, TIR_WGMMA_FENCE, -1, sums, 2);
  put_copies(&p, o->fence[1] + 1, o->commit[1] + 1);
  put_copies(&p, tail + 1, tail + 1);
  tir_kill(ir, o->loop);
}

/* Takes the request off the loop; false: there is none, or it asks for nothing. */
static bool take_request(struct tir *ir, tir_stmt loop, const char *key) {
  tir_expr request = tir_annotation(ir, tir_stmt_at(ir, loop)->annotations, key);
  if (!request) return false;
  bool asks = !tir_is_const(ir, request, 0);
  tir_annotate_span(ir, &tir_stmt_at(ir, loop)->annotations, tir_symbol_of(ir, key), TIR_NONE);
  return asks;
}

static void note(const struct lowering *low, tir_stmt loop, const char *what, const char *why) {
  char text[200];
  snprintf(text, sizeof text, "%s: %s", what, why);
  lower_note(low, loop, text);
}

bool lower_overlap(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!tir_is(ir, s, TIR_LOOP) || !take_request(ir, s, TIR_PIPELINE_OVERLAP)) continue;
    struct overlap o = {.low = low, .ir = ir, .loop = s};
    const char *why = why_not(&o);
    if (why) {
      note(low, s, "one whose second products go on beside the next iteration", why);
      continue;
    }
    next = tir_after(ir, s, low->body);
    add_in_place(&o);
    take_turns(&o);
  }
  return true;
}

/* ---- Two groups take turns ---- */

enum { FIRST_TURN = 2 }; /* of barriers with numbers: 0 is the block's, 1 the consumers' (producer.c) */

/* The kernel around a loop. */
static tir_stmt kernel_of(const struct lowering *low, tir_stmt s) {
  while (tir_stmt_at(low->ir, s)->parent != low->body) s = tir_stmt_at(low->ir, s)->parent;
  return s;
}

/* The number of the thread's warp group. */
static tir_expr group_of(struct tir *ir, const struct lower_threads *t) {
  tir_expr sum = number(ir, 0);
  int64_t apart = 1; /* threads from one to the next on this axis */
  for (int a = 0; a < 3; apart *= t->extent[a++]) {
    if (!t->var[a]) continue;
    tir_expr var = tir_cast(ir, TIR_T_I32, tir_var_expr(ir, t->var[a]));
    sum = tir_add(ir, sum, tir_mul(ir, var, number(ir, apart)));
  }
  tir_expr of = tir_simplify(ir, tir_floordiv(ir, sum, number(ir, TIR_GROUP)));
  return tir_call(ir, TIR_T_I32, tir_device_symbol(ir, TIR_UNIFORM), &of, 1);
}

static tir_stmt new_turn(struct tir *ir, enum tir_device_call which, tir_expr group) {
  tir_expr args[] = {tir_add(ir, number(ir, FIRST_TURN), group), number(ir, 2 * TIR_GROUP)};
  return lower_new_call(ir, which, args, 2);
}

static tir_stmt for_group(struct tir *ir, tir_expr group, int64_t which, tir_stmt s) {
  tir_stmt test = tir_new_if(ir, tir_make(ir, TIR_EQ, group, number(ir, which)));
  tir_append(ir, test, TIR_BODY, s);
  return test;
}

/* NULL: they do. */
static const char *alternate(struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  tir_stmt kernel = kernel_of(low, loop), inside, fence = TIR_NONE, commit = TIR_NONE;
  struct lower_threads t = lower_threads_of(ir, kernel, &inside);
  if (t.extent[0] * t.extent[1] * t.extent[2] != 2 * TIR_GROUP) return "it is not of two warp groups";
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    if (lower_calls(ir, s, TIR_STORAGE_SYNC)) return "all threads synchronize in it";
    if (!fence && lower_calls(ir, s, TIR_WGMMA_FENCE)) fence = s;
    if (lower_calls(ir, s, TIR_WGMMA_WAIT)) break;
    if (lower_calls(ir, s, TIR_WGMMA_COMMIT)) commit = s;
  }
  if (!fence || !commit) return "no MMAs stand in it";
  tir_expr group = group_of(ir, &t), other = tir_sub(ir, number(ir, 1), group);
  tir_insert_before(ir, fence, new_turn(ir, TIR_NAMED_BARRIER, group));
  tir_insert_after(ir, commit, new_turn(ir, TIR_NAMED_ARRIVE, other));
  tir_insert_before(ir, loop, for_group(ir, group, 1, new_turn(ir, TIR_NAMED_ARRIVE, number(ir, 0))));
  tir_insert_after(ir, loop, for_group(ir, group, 0, new_turn(ir, TIR_NAMED_BARRIER, number(ir, 0))));
  return NULL;
}

bool lower_alternate(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!tir_is(ir, s, TIR_LOOP) || !take_request(ir, s, TIR_PIPELINE_ALTERNATE)) continue;
    const char *why = alternate(low, s);
    if (why) note(low, s, "one whose warp groups take turns", why);
  }
  return true;
}

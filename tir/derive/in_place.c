/* In place: a function that gives a buffer in the memory of another that it takes.
 *
 *   f(A, B, C): C[i] = A[i] + B[i]     becomes     f(A, B): A[i] = A[i] + B[i]
 *
 * Right where each element of the input is read at most once in the whole run, by what the same element of the output
 * is computed of: whatever the order of iterations and threads, a value is computed after what it is computed of, so
 * that an element is read before it is written, and nobody reads it after. This is asked of the accesses of the
 * function as it is scheduled. What comes after it, lowering and backends, sees one buffer. */
#include "tir/analysis/analysis.h"
#include "tir/primitive/buffer.h"

#include <stdlib.h>
#include <string.h>

enum { OPAQUE = 255, MOST_LOOPS = 64, MOST_STAGES = 8 };

struct place {
  struct tir *ir;
  tir_func f;
  tir_block root;
  tir_buffer in, out;
  tir_stmt reader; /* the store whose value loads the input */
  bool is_bound;   /* loops are bound to threads */
  tir_stmt *store; /* by buffer: the last of its stores */
  uint8_t *stores; /* by buffer: their number; OPAQUE: it is used in other ways too */
  const char *why; /* not */
};

static bool no(struct place *p, const char *why) {
  p->why = why;
  return false;
}

/* ---- Which uses there are ---- */

struct loads {
  struct place *place;
  tir_stmt store; /* whose value they stand in; TIR_NONE: they stand elsewhere */
  const char *why;
};

static bool see(void *data, tir_expr e) {
  struct loads *l = data;
  struct place *p = l->place;
  const struct tir_expr_node *n = tir_at(p->ir, e);
  if (n->kind == TIR_DATA) p->stores[n->ref] = OPAQUE;
  if (n->kind != TIR_LOAD) return true;
  if (n->ref == p->out) l->why = "the output is read";
  if (n->ref != p->in) return true;
  if (!l->store || (p->reader && p->reader != l->store)) l->why = "the input is read in several places";
  p->reader = l->store;
  return true;
}

static bool look(struct place *p, tir_expr e, tir_stmt store) {
  struct loads l = {p, store, NULL};
  if (e) tir_walk_expr(p->ir, e, see, &l);
  return !l.why || no(p, l.why);
}

static bool look_at_block(struct place *p, tir_block block) {
  const struct tir_block_record *r = tir_block_at(p->ir, block);
  for (uint32_t i = 0; i < r->matches.count; i++)
    p->stores[p->ir->matches.at[r->matches.first + i].source.buffer] = OPAQUE;
  for (uint32_t i = 0; i < r->iters.count; i++)
    if (!look(p, p->ir->iters.at[r->iters.first + i].binding, TIR_NONE)) return false;
  return look(p, tir_stmt_at(p->ir, block)->block.predicate, TIR_NONE);
}

static bool look_at_store(struct place *p, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(p->ir, s);
  tir_buffer b = n->store.buffer;
  if (p->stores[b] < OPAQUE - 1) p->stores[b]++;
  p->store[b] = s;
  if (!look(p, n->store.predicate, TIR_NONE)) return false;
  for (uint32_t d = 0; d < tir_buffer_at(p->ir, b)->rank; d++)
    if (!look(p, tir_operands(p->ir, n->store.indices)[d], TIR_NONE)) return false;
  return look(p, n->store.value, s);
}

static bool look_at_all(struct place *p) {
  tir_stmt body = p->ir->funcs.at[p->f].body;
  for (tir_stmt s = body; s; s = tir_next(p->ir, s, body)) {
    p->is_bound = p->is_bound || tir_is_bound(p->ir, s);
    if (tir_is(p->ir, s, TIR_STORE)) {
      if (!look_at_store(p, s)) return false;
      continue;
    }
    tir_expr own[4];
    uint32_t count = tir_is(p->ir, s, TIR_DECLARE) ? 0 : tir_stmt_exprs(p->ir, s, own);
    for (uint32_t i = 0; i < count; i++)
      if (!look(p, own[i], TIR_NONE)) return false;
    if (tir_is(p->ir, s, TIR_BLOCK) && !look_at_block(p, s)) return false;
  }
  for (tir_buffer b = 1; b < p->ir->buffers.count; b++) {
    tir_buffer memory = tir_viewed_memory(p->ir, b);
    if (memory && memory != b) p->stores[memory] = OPAQUE;
  }
  return true;
}

/* ---- Elements ---- */

static bool is_unit(const struct tir *ir, tir_expr extent) { return tir_is_const(ir, extent, 1); }

/* The block that the store stands in, below the root, if it stores one element an iteration, and different iterations
 * different ones: indices are its iterations, each once. TIR_NONE: it does not. */
static tir_block block_of(const struct place *p, tir_stmt s) {
  const struct tir *ir = p->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  tir_block block = n->parent;
  if (!tir_is(ir, block, TIR_BLOCK) || n->list != TIR_BODY || tir_stmt_at(ir, block)->first[TIR_INIT]) return TIR_NONE;
  if (tir_scope_of(ir, block) != p->root) return TIR_NONE;
  const struct tir_buffer_node *b = tir_buffer_at(ir, n->store.buffer);
  struct tir_span iters = tir_block_at(ir, block)->iters;
  uint64_t met = 0;
  if (iters.count > MOST_LOOPS) return TIR_NONE;
  for (uint32_t d = 0; d < b->rank; d++) {
    const struct tir_expr_node *index = tir_at(ir, tir_operands(ir, n->store.indices)[d]);
    int i = index->kind == TIR_VAR ? tir_iter_of(ir, block, index->ref) : -1;
    if (i >= 0 ? met >> i & 1 : !is_unit(ir, tir_operands(ir, b->shape)[d])) return TIR_NONE;
    if (i >= 0) met |= 1ull << i;
  }
  for (uint32_t i = 0; i < iters.count; i++) {
    const struct tir_iter *iter = &ir->iters.at[iters.first + i];
    if (iter->kind != TIR_SPATIAL || (!(met >> i & 1) && !is_unit(ir, tir_var_at(ir, iter->var)->extent)))
      return TIR_NONE;
  }
  return block;
}

/* Whether a load takes the element that the store stores: all indices are the same, but where there is one element. */
static bool is_same_element(const struct tir *ir, const struct tir_expr_node *load, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  const struct tir_buffer_node *a = tir_buffer_at(ir, n->store.buffer), *b = tir_buffer_at(ir, load->ref);
  if (a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; d++) {
    bool unit = is_unit(ir, tir_operands(ir, a->shape)[d]) && is_unit(ir, tir_operands(ir, b->shape)[d]);
    if (!unit && tir_operands(ir, n->store.indices)[d] != tir_operands(ir, load->operands)[d]) return false;
  }
  return true;
}

struct sources {
  const struct place *place;
  tir_stmt store;
  bool other;                       /* the input is read at another element */
  tir_buffer same[MOST_STAGES * 2]; /* of what other buffers the same element is read */
  uint32_t count;
};

static bool see_source(void *data, tir_expr e) {
  struct sources *s = data;
  const struct tir *ir = s->place->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind != TIR_LOAD) return true;
  bool same = is_same_element(ir, n, s->store);
  if (n->ref == s->place->in)
    s->other = s->other || !same;
  else if (same && s->count < MOST_STAGES * 2)
    s->same[s->count++] = n->ref;
  return true;
}

static void find_sources(const struct place *p, tir_stmt store, struct sources *out) {
  *out = (struct sources){.place = p, .store = store};
  tir_walk_expr(p->ir, tir_stmt_at(p->ir, store)->store.value, see_source, out);
}

/* Whether what is in an element of the buffer was computed of the same element of the input. */
static bool comes_of_input(const struct place *p, tir_buffer b, uint32_t depth) {
  if (p->stores[b] != 1 || depth > MOST_STAGES || !block_of(p, p->store[b])) return false;
  if (p->store[b] == p->reader) return true;
  struct sources s;
  find_sources(p, p->store[b], &s);
  for (uint32_t i = 0; i < s.count; i++)
    if (comes_of_input(p, s.same[i], depth + 1)) return true;
  return false;
}

static bool reads_once(struct place *p) {
  assert(p->reader);
  tir_block block = block_of(p, p->reader);
  tir_loop loops[MOST_LOOPS];
  struct sources s;
  if (!block) return no(p, "the block that reads the input does not store an element of its own in each iteration");
  find_sources(p, p->reader, &s);
  if (s.other) return no(p, "the input is read at other elements than what is stored");
  uint32_t count = tir_loops_of(p->ir, block, loops, MOST_LOOPS);
  if (count > MOST_LOOPS || !tir_block_takes_steps_once(p->ir, block, loops, count))
    return no(p, "elements of the input may be read more than once");
  return true;
}

/* ---- Buffers ---- */

static bool is_plain(const struct tir *ir, tir_buffer b) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, b);
  return !n->strides.count && !n->elem_offset && !n->data && n->where == TIR_NONE;
}

static bool are_alike(const struct tir *ir, tir_buffer x, tir_buffer y) {
  const struct tir_buffer_node *a = tir_buffer_at(ir, x), *b = tir_buffer_at(ir, y);
  if (a->type != b->type || a->rank != b->rank || a->scope != b->scope || !is_plain(ir, x) || !is_plain(ir, y))
    return false;
  for (uint32_t d = 0; d < a->rank; d++) {
    tir_expr extent = tir_operands(ir, a->shape)[d];
    if (!tir_is_int(ir, extent) || extent != tir_operands(ir, b->shape)[d]) return false;
  }
  return true;
}

/* No constant that is packed ahead stands behind the output: parameters keep their numbers. */
static bool keeps_numbers(const struct tir *ir, tir_func f, uint32_t out) {
  tir_expr list = tir_annotation(ir, ir->funcs.at[f].attrs, "layout_free_buffers");
  if (!list || tir_at(ir, list)->kind != TIR_LIST) return !list;
  for (uint32_t i = 0; i < tir_at(ir, list)->count; i++) {
    tir_expr e = tir_operands(ir, tir_at(ir, list)->operands)[i];
    if (!tir_is_int(ir, e) || tir_at(ir, e)->imm >= out) return false;
  }
  return true;
}

static bool may_share(struct place *p) {
  if (!p->root || p->ir->aliased) return no(p, "it is no function of blocks");
  if (!are_alike(p->ir, p->in, p->out)) return no(p, "the buffers are not alike");
  if (!look_at_all(p)) return false;
  if (!p->reader) return no(p, "the input is not read");
  if (p->stores[p->in]) return no(p, "the input is written, or used in other ways than by elements");
  if (p->stores[p->out] != 1) return no(p, "the output is not written in one place");
  if (!reads_once(p)) return false;
  /* each of a GPU's threads computes what is its own, others' elements too */
  if (p->is_bound && p->store[p->out] != p->reader) return no(p, "threads read the input before they write the output");
  return comes_of_input(p, p->out, 0) || no(p, "the output is not computed of the same element of the input");
}

static void share(struct place *p, uint32_t number) {
  struct tir *ir = p->ir;
  struct tir_blocks users;
  assert(p->reader && p->stores[p->in] == 0 && p->stores[p->out] == 1);
  tir_find_users(ir, p->out, TIR_NONE, &users);
  tir_stmt_at(ir, p->store[p->out])->store.buffer = p->in;
  for (uint32_t i = 0; i < users.count; i++) tir_retarget_regions(ir, users.at[i], p->out, p->in);
  tir_blocks_free(&users);
  struct tir_span old = ir->funcs.at[p->f].params;
  assert(number < old.count);
  uint32_t first = ir->params.count;
  ir->params.at = tir_enlarge(ir->params.at, &ir->params.capacity, (uint64_t)first + old.count, sizeof *ir->params.at);
  for (uint32_t i = 0; i < old.count; i++)
    if (i != number) ir->params.at[ir->params.count++] = ir->params.at[old.first + i];
  ir->funcs.at[p->f].params = (struct tir_span){first, ir->params.count - first};
}

struct tir *tir_in_place(const struct tir *ir, tir_func f, uint32_t in, uint32_t out, const char **why) {
  struct tir_span params = ir->funcs.at[f].params;
  assert(tir_is_func(ir, f) && in < params.count && out < params.count && in != out && why);
  struct place p = {.ir = tir_new(), .f = f, .root = tir_root_block(ir, f)};
  p.in = ir->params.at[params.first + in].buffer, p.out = ir->params.at[params.first + out].buffer;
  tir_copy(p.ir, ir);
  p.store = calloc(ir->buffers.count, sizeof *p.store), p.stores = calloc(ir->buffers.count, 1);
  if (!p.store || !p.stores) abort();
  ms_error err = {.instruction = -1};
  bool given = p.in && p.out && !ir->params.at[params.first + out].var && keeps_numbers(ir, f, out);
  bool ok = given ? may_share(&p) : no(&p, "they are no buffers that may be given so");
  if (ok) share(&p, out);
  if (ok && !tir_verify(p.ir, &err)) ok = no(&p, "the verifier refuses it");
  free(p.store), free(p.stores);
  *why = p.why;
  if (ok) return p.ir;
  tir_free(p.ir);
  return NULL;
}

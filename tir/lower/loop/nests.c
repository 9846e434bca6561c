/* Nests that are the same but for the buffers that they use: a function of many equal blocks would hold as many copies
 * of one piece of machine code, more than the caches of instructions have room for. Found here, for outline.c: each
 * becomes a call of one function.
 *
 * A nest is what stands between two places of the function's list across which nothing lives that has to stay in one
 * function: tiles in registers, allocations that are only touched at constant indices, which LLVM keeps in registers,
 * views, and names. Other allocations are memory anyway: those that only one nest uses move into it, to the others
 * nests have pointers. Where nests of one kind are followed by nests of another, they are one: an initialization and
 * the loops behind it.
 *
 * Nests that may leave the function, or have parallel loops in them, are none. */
#include "same.h"

#include <stdlib.h>

/* At least so many nests, each of so many statements, and of so many together. A statement is a vector instruction or
 * two, ten bytes or less. Calls cost nothing that could be measured of nests of 80 statements; ten times the last
 * number no longer fits a first cache of instructions. Below it there is little to gain, and functions are as they are
 * read. */
enum { LEAST_COUNT = 3, LEAST_SIZE = 16, LEAST_TOTAL = 512 };
/* Nests of two kinds that follow one another are one where of either no more than one of so many is left. */
enum { MOST_LEFT = 8 };

/* Of a buffer: it is allocated in the function's list, and not in the workspace; a view; accessed where loops say. */
enum { OWN = 1, VIEW = 2, VARIES = 4 };
enum { NO_KIND = UINT32_MAX };

struct nest {
  uint32_t from, to; /* elements, with the last */
  uint32_t next;     /* the nest behind it */
  uint32_t size;     /* statements */
  uint32_t kind;     /* NO_KIND: it stays as it is, or is part of the one before it */
};

struct kind {
  uint64_t hash;
  uint32_t first, count;
  uint32_t other;         /* the next kind whose hash is in the same bucket; NO_KIND: there is none */
  uint32_t behind, votes; /* the kind that follows most of its nests, if one does */
  uint32_t pairs;         /* so many nests does that follow */
  uint32_t refused;       /* this kind follows, and does not make one kind with it */
};

/* Elements that use a buffer or a variable, from 1; first 0: none does. */
struct uses {
  uint32_t first, last;
};

struct finding {
  struct lowering *low;
  struct tir *ir;
  struct lower_same *same;
  tir_stmt *elements; /* the statements of the function's list but allocations */
  uint32_t element_count, element;
  struct uses *buffers, *vars;
  uint8_t *bits;     /* by buffer */
  uint32_t *reaches; /* by element: the last that belongs to the same nest */
  struct nest *nests;
  uint32_t nest_count;
  struct kind *kinds;
  uint32_t kind_count;
  uint32_t *buckets; /* of hashes: the last kind of each */
};

/* ---- What uses what ---- */

static void note(struct finding *f, struct uses *uses) {
  assert(f->element < f->element_count);
  if (!uses->first) uses->first = f->element + 1;
  uses->last = f->element + 1;
}

static bool varies(const struct tir *ir, tir_expr index) {
  return tir_at(ir, index)->flags & (TIR_OF_DATA | TIR_HAS_VAR);
}

static void note_access(struct finding *f, tir_buffer b, uint32_t indices, uint32_t count) {
  note(f, &f->buffers[b]);
  for (uint32_t i = 0; i < count; i++)
    if (varies(f->ir, f->ir->operands.at[indices + i])) f->bits[b] |= VARIES;
}

static bool note_expr(void *data, tir_expr e) {
  struct finding *f = data;
  const struct tir_expr_node *n = tir_at(f->ir, e);
  if (n->kind == TIR_VAR || n->kind == TIR_LET) note(f, &f->vars[n->ref]);
  if (n->kind == TIR_LOAD) note_access(f, n->ref, n->operands, n->count);
  if (n->kind == TIR_DATA) note(f, &f->buffers[n->ref]), f->bits[n->ref] |= VARIES; /* memory that has an address */
  if (n->kind != TIR_CALL) return true;
  for (uint32_t i = 0; i < n->count; i++) { /* so has an element that is an argument: of address_of */
    const struct tir_expr_node *argument = tir_at(f->ir, f->ir->operands.at[n->operands + i]);
    if (argument->kind == TIR_LOAD && tir_type_code(n->type) == TIR_HANDLE) f->bits[argument->ref] |= VARIES;
  }
  return true;
}

static void note_statement(struct finding *f, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(f->ir, s);
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(f->ir, s, all);
  for (uint32_t i = 0; i < count; i++)
    if (all[i]) tir_walk_expr(f->ir, all[i], note_expr, f);
  if (n->kind == TIR_BIND) note(f, &f->vars[n->bind.var]);
  if (n->kind == TIR_DECLARE) note(f, &f->buffers[n->alloc.buffer]);
  if (n->kind != TIR_STORE) return;
  uint32_t rank = tir_buffer_at(f->ir, n->store.buffer)->rank;
  note_access(f, n->store.buffer, n->store.indices, rank);
  for (uint32_t i = 0; i < rank; i++) tir_walk_expr(f->ir, f->ir->operands.at[n->store.indices + i], note_expr, f);
}

static tir_stmt list_of(const struct finding *f) { return tir_stmt_at(f->ir, f->low->body)->first[TIR_BODY]; }

static void note_elements(struct finding *f) {
  for (tir_stmt s = list_of(f); s; s = tir_stmt_at(f->ir, s)->next) {
    const struct tir_stmt_node *n = tir_stmt_at(f->ir, s);
    bool declares = n->kind == TIR_ALLOC || n->kind == TIR_DECLARE;
    if (declares && tir_is_view(f->ir, n->alloc.buffer)) f->bits[n->alloc.buffer] |= VIEW;
    if (declares && !tir_buffer_at(f->ir, n->alloc.buffer)->data && !n->annotations.count)
      f->bits[n->alloc.buffer] |= OWN;
    if (lower_allocates(f->ir, s)) continue;
    f->elements[f->element = f->element_count++] = s;
    for (tir_stmt at = s; at; at = tir_next(f->ir, at, s)) note_statement(f, at);
  }
}

/* ---- Nests ---- */

static void keep_together(struct finding *f, struct uses uses) {
  assert(uses.first <= uses.last && uses.last <= f->element_count);
  if (uses.first && f->reaches[uses.first - 1] < uses.last - 1) f->reaches[uses.first - 1] = uses.last - 1;
}

static void find_reaches(struct finding *f) {
  for (uint32_t i = 0; i < f->element_count; i++) {
    f->reaches[i] = i;
    if (tir_is(f->ir, f->elements[i], TIR_BIND))
      keep_together(f, f->vars[tir_as(f->ir, f->elements[i], TIR_BIND)->bind.var]);
  }
  for (tir_buffer b = 1; b < f->ir->buffers.count; b++) {
    bool registers = f->bits[b] & OWN && (!(f->bits[b] & VARIES) || b >= f->low->first_tile);
    if (registers || f->bits[b] & VIEW) keep_together(f, f->buffers[b]);
  }
}

static struct lower_run run_of(const struct finding *f, uint32_t from, uint32_t to) {
  return (struct lower_run){f->elements[from], f->elements[to]};
}

/* It does not leave the function, and emitters make no functions of parts of it. */
static bool stays_inside(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_ASSERT) || lower_is_attr(ir, s, TIR_OUTLINED)) return false;
  return true;
}

static bool has_placed(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_DECLARE) && tir_is_placed(ir, tir_stmt_at(ir, s)->alloc.buffer)) return true;
  return false;
}

/* Whether the allocations between its statements may stand in front of it: those in the workspace may take memory that
 * what was before them has given back. */
static bool may_begin_with_allocations(const struct finding *f, uint32_t from, uint32_t to) {
  bool placed = false;
  for (tir_stmt s = f->elements[from]; s != f->elements[to]; s = tir_stmt_at(f->ir, s)->next) {
    if (placed && lower_allocates(f->ir, s) && tir_is_placed(f->ir, tir_stmt_at(f->ir, s)->alloc.buffer)) return false;
    placed |= !lower_allocates(f->ir, s) && has_placed(f->ir, s);
  }
  return true;
}

/* A parameter that no function of ours takes: a pointer beside its buffer, or a vector. */
static bool takes_no_number(const struct finding *f, uint32_t from, uint32_t to) {
  struct tir_span params = f->ir->funcs.at[f->low->func].params;
  for (uint32_t i = 0; i < params.count; i++) {
    tir_var v = f->ir->params.at[params.first + i].var;
    tir_type type = v ? f->ir->vars.at[v].type : TIR_T_I32;
    if (tir_type_code(type) != TIR_HANDLE && tir_type_lanes(type) == 1) continue;
    if (f->vars[v].first <= to + 1 && f->vars[v].last > from) return true;
  }
  return false;
}

static bool is_internal(const struct finding *f, tir_buffer b, uint32_t from, uint32_t to) {
  return f->bits[b] & OWN && f->buffers[b].first > from && f->buffers[b].last <= to + 1;
}

/* Two runs of elements do the same, and what is memory of one's own is the other's own too. */
static bool are_same(const struct finding *f, uint32_t a, uint32_t a_to, uint32_t b, uint32_t b_to) {
  if (!lower_same_runs(f->same, run_of(f, a, a_to), run_of(f, b, b_to))) return false;
  uint32_t count;
  const struct lower_pair *pairs = lower_same_pairs(f->same, &count);
  for (uint32_t i = 0; i < count; i++)
    if (is_internal(f, pairs[i].a, a, a_to) != is_internal(f, pairs[i].b, b, b_to)) return false;
  return true;
}

static uint32_t new_kind(struct finding *f, uint64_t hash, uint32_t first, uint32_t count) {
  assert(f->kind_count < 2 * (uint64_t)f->element_count && first < f->nest_count);
  f->kinds[f->kind_count] =
      (struct kind){.hash = hash, .first = first, .count = count, .other = NO_KIND, .refused = NO_KIND};
  return f->kind_count++;
}

static uint32_t kind_of(struct finding *f, uint32_t nest) {
  const struct nest *n = &f->nests[nest];
  uint64_t hash = lower_same_hash(f->same, run_of(f, n->from, n->to));
  uint32_t *bucket = &f->buckets[hash % f->element_count];
  for (uint32_t k = *bucket; k != NO_KIND; k = f->kinds[k].other) {
    struct kind *kind = &f->kinds[k];
    const struct nest *first = &f->nests[kind->first];
    if (kind->hash != hash || !are_same(f, first->from, first->to, n->from, n->to)) continue;
    kind->count++;
    return k;
  }
  uint32_t made = new_kind(f, hash, nest, 1);
  f->kinds[made].other = *bucket;
  return *bucket = made;
}

static void cut_nests(struct finding *f) {
  for (uint32_t i = 0, to; i < f->element_count; i = to + 1) {
    bool good = true;
    struct nest n = {.from = i, .next = f->nest_count + 1, .kind = NO_KIND};
    to = f->reaches[i];
    for (uint32_t k = i; k <= to; k++) {
      if (f->reaches[k] > to) to = f->reaches[k];
      n.size += lower_size(f->ir, f->elements[k]);
      good = good && stays_inside(f->ir, f->elements[k]);
    }
    assert(i <= to && to < f->element_count);
    n.to = to;
    f->nests[f->nest_count++] = n;
    if (good && !takes_no_number(f, i, to) && may_begin_with_allocations(f, i, to))
      f->nests[f->nest_count - 1].kind = kind_of(f, f->nest_count - 1);
  }
}

/* ---- Nests that follow one another ---- */

static uint32_t kind_behind(const struct finding *f, const struct nest *n) {
  return n->next < f->nest_count ? f->nests[n->next].kind : NO_KIND;
}

/* The first nest from this one on that is of a kind, and followed by one of the other; nest_count: there is none. */
static uint32_t find_pair(const struct finding *f, uint32_t from, uint32_t kind, uint32_t behind) {
  while (from < f->nest_count && (f->nests[from].kind != kind || kind_behind(f, &f->nests[from]) != behind))
    from = f->nests[from].next;
  return from;
}

static uint32_t next_pair(const struct finding *f, uint32_t i, uint32_t kind, uint32_t behind) {
  return find_pair(f, f->nests[i].next, kind, behind);
}

/* Whether it is no loss that so many nests of a kind make pairs with others, and the rest is left. */
static bool may_split(const struct finding *f, uint32_t kind, uint32_t pairs) {
  uint32_t left = f->kinds[kind].count - pairs;
  return f->nests[f->kinds[kind].first].size < LEAST_SIZE || left <= pairs / MOST_LEFT;
}

/* Of each kind, that which is behind most of its nests, if there is one, and behind how many. Source: Boyer and Moore,
 * "MJRTY", 1991. */
static void find_followers(struct finding *f) {
  for (uint32_t k = 0; k < f->kind_count; k++) f->kinds[k].votes = f->kinds[k].pairs = 0;
  for (uint32_t i = 0; i < f->nest_count; i = f->nests[i].next) {
    if (f->nests[i].kind == NO_KIND) continue;
    struct kind *kind = &f->kinds[f->nests[i].kind];
    uint32_t behind = kind_behind(f, &f->nests[i]);
    if (!kind->votes) kind->behind = behind;
    kind->votes = behind == kind->behind ? kind->votes + 1 : kind->votes - 1;
  }
  for (uint32_t i = 0; i < f->nest_count; i = f->nests[i].next)
    if (f->nests[i].kind != NO_KIND)
      f->kinds[f->nests[i].kind].pairs += f->kinds[f->nests[i].kind].behind == kind_behind(f, &f->nests[i]);
}

static bool is_worth_joining(const struct finding *f, uint32_t kind) {
  const struct kind *k = &f->kinds[kind];
  if (!k->count || k->behind == NO_KIND || k->behind == kind || k->behind == k->refused) return false;
  return k->pairs >= LEAST_COUNT && may_split(f, kind, k->pairs) && may_split(f, k->behind, k->pairs);
}

static bool are_same_joined(const struct finding *f, uint32_t kind, uint32_t behind) {
  uint32_t start = find_pair(f, 0, kind, behind);
  const struct nest *first = &f->nests[start];
  for (uint32_t i = start; i < f->nest_count; i = next_pair(f, i, kind, behind)) {
    const struct nest *n = &f->nests[i];
    uint32_t to = f->nests[n->next].to;
    if (!may_begin_with_allocations(f, n->from, to)) return false;
    if (i != start && !are_same(f, first->from, f->nests[first->next].to, n->from, to)) return false;
  }
  return true;
}

static void leave_kind(struct finding *f, uint32_t kind, uint32_t count) {
  assert(count <= f->kinds[kind].count);
  uint32_t i = 0;
  f->kinds[kind].count -= count;
  while (i < f->nest_count && f->nests[i].kind != kind) i = f->nests[i].next;
  assert(i < f->nest_count || !f->kinds[kind].count);
  f->kinds[kind].first = i;
}

static void join(struct finding *f, uint32_t kind, uint32_t behind) {
  uint32_t start = find_pair(f, 0, kind, behind), made = new_kind(f, 0, start, 0), count = 0;
  for (uint32_t i = start; i < f->nest_count; i = find_pair(f, f->nests[i].next, kind, behind), count++) {
    struct nest *n = &f->nests[i], *second = &f->nests[n->next];
    n->to = second->to, n->size += second->size, n->next = second->next, n->kind = made;
  }
  assert(kind != behind && count == f->kinds[kind].pairs);
  f->kinds[made].count = count;
  leave_kind(f, kind, count);
  leave_kind(f, behind, count);
}

/* The kind that is to be joined with what is behind it: that of most pairs, and the first of those. So what is done
 * again and again is cut where it begins. NO_KIND: none is. */
static uint32_t next_to_join(struct finding *f) {
  uint32_t best = NO_KIND;
  find_followers(f);
  for (uint32_t k = 0; k < f->kind_count; k++) {
    if (!is_worth_joining(f, k)) continue;
    const struct kind *kind = &f->kinds[k], *b = best == NO_KIND ? NULL : &f->kinds[best];
    if (!b || kind->pairs > b->pairs || (kind->pairs == b->pairs && kind->first < b->first)) best = k;
  }
  return best;
}

static void join_nests(struct finding *f) {
  for (uint32_t kind; (kind = next_to_join(f)) != NO_KIND;) {
    uint32_t behind = f->kinds[kind].behind;
    if (are_same_joined(f, kind, behind))
      join(f, kind, behind);
    else
      f->kinds[kind].refused = behind;
  }
}

/* ---- Shared functions ---- */

bool lower_may_share(const struct lowering *low) { return lower_size(low->ir, low->body) >= LEAST_TOTAL; }

bool lower_is_worth_sharing(uint32_t count, uint32_t size) {
  return count >= LEAST_COUNT && size >= LEAST_SIZE && (uint64_t)count * size >= LEAST_TOTAL;
}

static void move_before(struct tir *ir, tir_stmt at, tir_stmt s) {
  tir_detach(ir, s);
  tir_insert_before(ir, at, s);
}

/* Allocations between its statements that others use too move in front of it; the first of what is its own, into it, in
 * the order in which they are used. */
static struct lower_run gather_allocations(struct finding *f, const struct nest *n) {
  struct tir *ir = f->ir;
  struct lower_run run = run_of(f, n->from, n->to);
  uint32_t count;
  for (tir_stmt s = run.first, next; s != run.last; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (lower_allocates(ir, s)) move_before(ir, run.first, s);
  }
  tir_stmt first = run.first;
  lower_same_runs(f->same, run, run);
  const struct lower_pair *pairs = lower_same_pairs(f->same, &count);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_internal(f, pairs[i].a, n->from, n->to)) continue;
    tir_stmt alloc = tir_buffer_at(ir, pairs[i].a)->where;
    move_before(ir, run.first, alloc);
    if (first == run.first) first = alloc;
  }
  run.first = first;
  return run;
}

static bool is_shared(const struct finding *f, uint32_t kind) {
  return kind != NO_KIND && lower_is_worth_sharing(f->kinds[kind].count, f->nests[f->kinds[kind].first].size);
}

static uint32_t share(struct finding *f, struct lower_nest **out) {
  uint32_t count = 0, number = 0, *numbers = calloc(f->kind_count + 1u, sizeof *numbers);
  struct lower_nest *at = calloc(f->nest_count + 1u, sizeof *at);
  if (!numbers || !at) abort();
  for (uint32_t i = 0; i < f->nest_count; i = f->nests[i].next) {
    uint32_t kind = f->nests[i].kind;
    if (!is_shared(f, kind)) continue;
    if (!numbers[kind]) numbers[kind] = ++number;
    at[count++] = (struct lower_nest){gather_allocations(f, &f->nests[i]), numbers[kind]};
  }
  free(numbers);
  *out = at;
  return count;
}

static void *cleared(size_t count, size_t size) {
  void *at = calloc(count + 1, size);
  if (!at) abort();
  return at;
}

uint32_t lower_find_nests(struct lowering *low, struct lower_same *same, struct lower_nest **out) {
  struct tir *ir = low->ir;
  uint32_t statements = 0;
  *out = NULL;
  for (tir_stmt s = tir_stmt_at(ir, low->body)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    statements += !lower_allocates(ir, s) && !lower_is_attr(ir, s, TIR_OUTLINED);
  if (statements < LEAST_COUNT) return 0;
  struct finding f = {.low = low, .ir = ir, .same = same};
  f.elements = cleared(ir->stmts.count, sizeof *f.elements);
  f.buffers = cleared(ir->buffers.count, sizeof *f.buffers);
  f.vars = cleared(ir->vars.count, sizeof *f.vars);
  f.bits = cleared(ir->buffers.count, sizeof *f.bits);
  note_elements(&f);
  f.reaches = cleared(f.element_count, sizeof *f.reaches);
  f.nests = cleared(f.element_count, sizeof *f.nests);
  f.kinds = cleared(2 * (size_t)f.element_count, sizeof *f.kinds); /* what is joined makes a new one of two */
  f.buckets = cleared(f.element_count, sizeof *f.buckets);
  for (uint32_t i = 0; i < f.element_count; i++) f.buckets[i] = NO_KIND;
  find_reaches(&f);
  cut_nests(&f);
  join_nests(&f);
  uint32_t count = share(&f, out);
  free(f.elements);
  free(f.buffers);
  free(f.vars);
  free(f.bits);
  free(f.reaches);
  free(f.nests);
  free(f.kinds);
  free(f.buckets);
  return count;
}

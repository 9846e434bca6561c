/* Register pressure of a kernel's threads, estimated. What a thread keeps is known: arrays of its own and fragments
 * of tensor units, from the first statement that uses them to the last, where loops that index them are unrolled by
 * the compiler. What is under way beside them is estimated, in the region where it is most: loads that come before
 * their first use, addresses, a counter for each loop around. Blocks of many threads hide latency by their number,
 * and ptxas loads less ahead. */
#include "registers.h"

#include <stdlib.h>
#include <string.h>

/* Operations that a loop becomes at most, for the compiler to unroll it: where it indexes a small array of the
 * thread, a larger one, none. Found by what stays in memory. */
enum { WITH_SMALL = 8500, WITH_LARGE = 4800, WITH_NONE = 800, SMALL_WORDS = 128 };

/* An array of a thread's own, or its part of fragments. */
struct own {
  tir_buffer buffer;
  tir_stmt where; /* that allocates it */
  double words;
  uint32_t first, last; /* by order: where it lives */
  bool indexed;         /* by what is no number: it lies in memory */
};

/* Statements between barriers, and between loops that are not unrolled. Words of 32 bits. */
struct region {
  tir_stmt loop;  /* the innermost such loop around it; the kernel, where there is none */
  uint32_t depth; /* how many there are */
  double trips;   /* of the loop, where it is all of it; else 1 */
  double held;    /* own arrays that live at one of its statements, at most */
  double used;    /* loaded from the device's memory, to compute with */
  double moved;   /* the same, to be stored in another memory as it is */
  double guarded; /* loaded from there under a condition */
  double shared;  /* loaded from shared memory */
  double places;  /* of shared memory, that differ by more than a number */
  bool serial;    /* it loads from the device's memory what it stores there: an iteration waits for the one before */
  double copies;  /* asynchronous ones, begun in the loop: each has addresses of its own */
  double hoisted; /* of these, from an address that a loop further out leaves the same: it is kept all along that */
};

enum { MOST_KEPT = 32 };
struct walk {
  const struct tir *ir;
  tir_loop kernel;
  bool *unrolled;     /* by statement: a loop that the compiler unrolls */
  uint32_t *order;    /* by statement: its place in the text */
  double *copies;     /* by variable: iterations of its loop, where that is unrolled; 1: a number; 0: it is none */
  tir_expr *value_of; /* by variable: what it is bound to */
  uint32_t *own_of;   /* by buffer: its number in `own`, from 1; 0: it is none */
  uint32_t *seen;     /* by expression: the region that last counted it */
  uint32_t *loaded;   /* by buffer of the device: the region that last loads it */
  struct own *own;
  uint32_t own_count, own_capacity;
  struct region *regions;
  uint32_t region_count, region_capacity;
  uint64_t *keys; /* of places of the last region */
  uint32_t key_count, key_capacity;
  uint32_t statements;
  double *live; /* by order: words of own arrays */
  tir_stmt loop;
  tir_var around[MOST_KEPT]; /* variables of loops that are not unrolled, the outermost first; 0: of none */
  uint32_t depth, guards;    /* loops that are not unrolled, and conditions, around what is looked at */
  bool moves, begins_copy;   /* the statement that is looked at: stores what it loads; begins a copy that goes on */
  bool kept;                 /* a loop was met that is not unrolled */
};

static bool is_call(const struct walk *w, tir_expr x, const char *name) {
  const struct tir_expr_node *n = tir_at(w->ir, x);
  return n->kind == TIR_CALL && !strcmp(tir_text(w->ir, n->ref), name);
}

static bool is_barrier(const struct walk *w, tir_stmt s) {
  return tir_is(w->ir, s, TIR_EVALUATE) &&
         tir_is_device_call(w->ir, tir_as(w->ir, s, TIR_EVALUATE)->evaluate.value, TIR_STORAGE_SYNC);
}

static bool is_shared(const struct walk *w, tir_buffer b) { return tir_buffer_memory(w->ir, b) == TIR_BLOCK_MEMORY; }

/* The index of a store, and the expressions of the statement itself. */
static uint32_t exprs_of(const struct walk *w, tir_stmt s, tir_expr out[5]) {
  uint32_t count = tir_stmt_exprs(w->ir, s, out), some = 0;
  if (tir_is(w->ir, s, TIR_STORE)) out[count++] = tir_operands(w->ir, tir_stmt_at(w->ir, s)->store.indices)[0];
  for (uint32_t i = 0; i < count; i++)
    if (out[i]) out[some++] = out[i];
  return some;
}

/* ---- A thread's own arrays ---- */

static void note_own(struct walk *w, tir_stmt s) {
  tir_buffer b = tir_as(w->ir, s, TIR_ALLOC)->alloc.buffer;
  const struct tir_buffer_node *n = tir_buffer_at(w->ir, b);
  double bytes = (double)tir_allocation_bytes(w->ir, b);
  int bits = tir_type_bits(n->type);
  struct own own = {.buffer = b, .where = s, .first = UINT32_MAX};
  if (tir_is_group_fragment(w->ir, b))
    own.words = bytes / sizeof(float) / TIR_GROUP;
  else if (tir_is_fragment(w->ir, b))
    own.words = bytes / sizeof(float) / TIR_WARP;
  else if (tir_memory_scope_of(w->ir, b) == TIR_SCOPE_LOCAL)
    own.words = bytes * 8 / (bits < 32 ? bits : 32); /* a short element has a register to itself */
  else
    return;
  w->own = tir_enlarge(w->own, &w->own_capacity, (uint64_t)w->own_count + 1, sizeof *w->own);
  w->own[w->own_count++] = own;
  w->own_of[b] = w->own_count;
}

/* ---- Loops that are unrolled ---- */

static bool has_var(const struct walk *w, tir_expr x) { return (tir_at(w->ir, x)->flags & TIR_HAS_VAR) != 0; }

/* The words of the largest own array below a loop that is indexed by variables. */
struct largest {
  const struct walk *w;
  double words;
};

static void raise_to(struct largest *l, tir_buffer b, tir_expr index) {
  uint32_t own = l->w->own_of[b];
  if (own && has_var(l->w, index) && l->w->own[own - 1].words > l->words) l->words = l->w->own[own - 1].words;
}

/* A call names own arrays by pointers, and what it wants of them by what follows. */
static bool see_indexed(void *data, tir_expr x) {
  struct largest *l = data;
  const struct tir *ir = l->w->ir;
  const struct tir_expr_node *n = tir_at(ir, x);
  const tir_expr *args = n->kind == TIR_CALL || n->kind == TIR_LOAD ? tir_operands(ir, n->operands) : NULL;
  if (n->kind == TIR_LOAD) raise_to(l, n->ref, args[0]);
  for (uint32_t i = 0; n->kind == TIR_CALL && i < n->count; i++)
    for (uint32_t k = i + 1; tir_at(ir, args[i])->kind == TIR_DATA && k < n->count; k++)
      raise_to(l, tir_at(ir, args[i])->ref, args[k]);
  return true;
}

static double limit_of(const struct walk *w, tir_loop loop) {
  struct largest l = {w, 0};
  for (tir_stmt s = loop; s; s = tir_next(w->ir, s, loop)) {
    tir_expr all[5];
    uint32_t count = exprs_of(w, s, all);
    if (is_barrier(w, s)) return WITH_NONE;
    for (uint32_t i = 0; i < count; i++) tir_walk_expr(w->ir, all[i], see_indexed, &l);
    if (tir_is(w->ir, s, TIR_STORE)) raise_to(&l, tir_stmt_at(w->ir, s)->store.buffer, all[count - 1]);
  }
  return l.words == 0 ? WITH_NONE : l.words <= SMALL_WORDS ? WITH_SMALL : WITH_LARGE;
}

struct weight {
  const struct tir *ir;
  double sum;
};

static bool add_operation(void *data, tir_expr x) {
  struct weight *w = data;
  const struct tir_expr_node *n = tir_at(w->ir, x);
  double lanes = tir_type_lanes(n->type) > 1 ? tir_type_lanes(n->type) : 1;
  bool divides = n->kind >= TIR_DIV && n->kind <= TIR_FLOORMOD,
       repeats = n->kind == TIR_RAMP || n->kind == TIR_BROADCAST;
  if (n->kind == TIR_LOAD)
    w->sum += 2;
  else if (n->kind == TIR_CALL)
    w->sum += 4 * lanes;
  else if (n->kind > TIR_DATA && tir_type_is_float(n->type) && !repeats)
    w->sum += lanes;
  else if (divides)
    w->sum += 2;
  else if (n->kind >= TIR_EQ && n->kind <= TIR_OR)
    w->sum += 1;
  return true;
}

static double weigh_list(struct walk *w, tir_stmt first);

/* Operations that the loop becomes; marks it where it is unrolled, which needs that all loops in it are. */
static double weigh_loop(struct walk *w, tir_loop s, double inside, bool kept) {
  int64_t extent = tir_loop_extent(w->ir, s);
  double all = (double)extent * inside;
  bool bound = tir_stmt_at(w->ir, s)->loop_kind == TIR_THREAD_BINDING;
  int64_t count = tir_unroll_count(w->ir, s);
  bool requested = count && count >= extent, stays = count == 1;
  w->unrolled[s] = !bound && !kept && extent >= 0 && (requested || (!stays && all <= limit_of(w, s)));
  if (w->unrolled[s]) return all;
  w->kept = w->kept || !bound;
  return inside + 3;
}

static double weigh(struct walk *w, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(w->ir, s);
  bool before = w->kept;
  w->kept = false;
  double inside = weigh_list(w, n->first[TIR_BODY]) + weigh_list(w, n->first[TIR_ELSE]);
  bool kept = w->kept;
  w->kept = before || kept;
  if (n->kind == TIR_LOOP) return weigh_loop(w, s, inside, kept);
  struct weight own = {w->ir, inside + (n->kind == TIR_STORE || n->kind == TIR_EVALUATE ? 2 : 0)};
  tir_expr all[5];
  uint32_t count = exprs_of(w, s, all);
  for (uint32_t i = 0; i < count; i++) tir_walk_expr(w->ir, all[i], add_operation, &own);
  return own.sum;
}

static double weigh_list(struct walk *w, tir_stmt first) {
  double sum = 0;
  for (tir_stmt s = first; s; s = tir_stmt_at(w->ir, s)->next) sum += weigh(w, s);
  return sum;
}

/* ---- Where arrays live ---- */

static bool is_unknown(const struct tir *ir, const void *context, tir_expr x) {
  const struct walk *w = context;
  const struct tir_expr_node *n = tir_at(ir, x);
  return n->kind == TIR_LOAD || n->kind == TIR_CALL || (n->kind == TIR_VAR && w->copies[n->ref] == 0);
}

/* Whether an expression is a number once loops are unrolled. */
static bool is_number(const struct walk *w, tir_expr x) {
  return !tir_any_node(w->ir, x, TIR_HAS_LOAD | TIR_HAS_CALL | TIR_HAS_VAR, is_unknown, w);
}

/* It lives all along a loop in which it is used and that it is allocated outside of. */
static void extend(const struct walk *w, struct own *o, tir_stmt user) {
  tir_stmt around = user, above = tir_stmt_at(w->ir, o->where)->parent;
  for (tir_stmt p = user; p && p != above; p = tir_stmt_at(w->ir, p)->parent)
    if (tir_is(w->ir, p, TIR_LOOP)) around = p;
  assert(w->order[around] <= w->order[user] && "a loop stands before what it holds");
  tir_stmt after = tir_after(w->ir, around, w->kernel);
  uint32_t last = after ? w->order[after] - 1 : w->statements - 1;
  if (w->order[around] < o->first) o->first = w->order[around];
  if (last > o->last) o->last = last;
}

static void bind(struct walk *w, tir_var v, tir_expr value) {
  w->value_of[v] = value;
  w->copies[v] = is_number(w, value) ? 1 : 0;
}

struct use {
  struct walk *w;
  tir_stmt stmt;
};

static bool see_use(void *data, tir_expr x) {
  struct use *u = data;
  struct walk *w = u->w;
  const struct tir_expr_node *n = tir_at(w->ir, x);
  if (n->kind == TIR_LET) bind(w, n->ref, n->a);
  uint32_t own = n->kind == TIR_LOAD || n->kind == TIR_DATA ? w->own_of[n->ref] : 0;
  if (own) extend(w, &w->own[own - 1], u->stmt);
  if (own && n->kind == TIR_LOAD && !is_number(w, tir_operands(w->ir, n->operands)[0])) w->own[own - 1].indexed = true;
  return true;
}

static void see_uses(struct walk *w, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(w->ir, s);
  struct use use = {w, s};
  tir_expr all[5];
  uint32_t count = exprs_of(w, s, all), own = n->kind == TIR_STORE ? w->own_of[n->store.buffer] : 0;
  for (uint32_t i = 0; i < count; i++) tir_walk_expr(w->ir, all[i], see_use, &use);
  if (n->kind == TIR_BIND) bind(w, n->bind.var, n->bind.value);
  if (!own) return;
  extend(w, &w->own[own - 1], s);
  if (!is_number(w, all[count - 1])) w->own[own - 1].indexed = true;
}

/* Whether another array takes this one's place, an element for each of it, where it is last used: as many statements as
 * there are elements use both. */
static bool is_replaced_by(const struct own *o, const struct own *other) {
  bool follows = o->first < other->first && other->first <= o->last && o->last < other->last && !other->indexed;
  return follows && o->words == other->words && o->last - other->first < o->words;
}

static void place_own(struct walk *w) {
  for (tir_stmt s = w->kernel; s; s = tir_next(w->ir, s, w->kernel)) {
    w->order[s] = w->statements++;
    if (w->unrolled[s]) w->copies[tir_as(w->ir, s, TIR_LOOP)->loop.var] = (double)tir_loop_extent(w->ir, s);
  }
  for (tir_stmt s = w->kernel; s; s = tir_next(w->ir, s, w->kernel)) see_uses(w, s);
  if (!(w->live = calloc(w->statements, sizeof *w->live))) abort();
  for (uint32_t i = 0; i < w->own_count; i++) {
    const struct own *o = &w->own[i];
    if (o->first == UINT32_MAX || o->indexed) continue;
    assert(o->first <= o->last && o->last < w->statements);
    uint32_t end = o->last + 1;
    for (uint32_t k = 0; k < w->own_count; k++)
      if (is_replaced_by(o, &w->own[k]) && w->own[k].first < end) end = w->own[k].first;
    for (uint32_t p = o->first; p < end; p++) w->live[p] += o->words;
  }
}

/* ---- Variables ---- */

struct vars {
  const struct walk *w;
  void (*see)(void *data, tir_var var);
  void *data;
};

static bool see_var(void *data, tir_expr x) {
  struct vars *v = data;
  const struct tir_expr_node *n = tir_at(v->w->ir, x);
  if (n->kind != TIR_VAR) return true;
  if (v->w->value_of[n->ref]) tir_walk_expr(v->w->ir, v->w->value_of[n->ref], see_var, v);
  v->see(v->data, n->ref);
  return true;
}

/* Calls see for each variable that x depends on, those of what is bound to its names too. */
static void walk_vars(const struct walk *w, tir_expr x, void (*see)(void *data, tir_var var), void *data) {
  struct vars v = {w, see, data};
  tir_walk_expr(w->ir, x, see_var, &v);
}

/* ---- Values of an expression, loops being unrolled ---- */

enum { MOST_VARS = 16 };
struct values {
  const struct walk *w;
  double count;
  tir_var vars[MOST_VARS];
  uint32_t known;
};

static void multiply(void *data, tir_var var) {
  struct values *v = data;
  for (uint32_t i = 0; i < v->known; i++)
    if (v->vars[i] == var) return;
  if (v->w->copies[var] <= 1 || v->known == MOST_VARS) return;
  v->vars[v->known++] = var;
  v->count *= v->w->copies[var];
}

static double values_of(const struct walk *w, tir_expr x) {
  struct values v = {.w = w, .count = 1};
  walk_vars(w, x, multiply, &v);
  return v.count;
}

/* What is added up in an address, without numbers, which are part of instructions: equal for those that differ by a
 * number. `values`: how many such there are. */
static uint64_t key_of(const struct walk *w, tir_expr x, struct values *values) {
  const struct tir_expr_node *n = tir_at(w->ir, x);
  switch (n->kind) {
  case TIR_INT_IMM: return 0;
  case TIR_ADD: return key_of(w, n->a, values) + key_of(w, n->b, values);
  case TIR_SUB: return key_of(w, n->a, values) - key_of(w, n->b, values);
  case TIR_RAMP:
  case TIR_CAST:
  case TIR_BROADCAST: return key_of(w, n->a, values);
  case TIR_MUL:
    if (tir_is_int(w->ir, n->b)) return key_of(w, n->a, values) * (uint64_t)(2 * tir_at(w->ir, n->b)->imm + 1);
    break;
  default: break;
  }
  if (is_number(w, x)) return 0;
  walk_vars(w, x, multiply, values);
  return (uint64_t)x * 0x9e3779b97f4a7c15u;
}

/* ---- Regions ---- */

static struct region *now(struct walk *w) {
  assert(w->region_count > 0);
  return &w->regions[w->region_count - 1];
}

static void begin_region(struct walk *w) {
  w->regions = tir_enlarge(w->regions, &w->region_capacity, (uint64_t)w->region_count + 1, sizeof *w->regions);
  w->regions[w->region_count++] = (struct region){.loop = w->loop, .depth = w->depth, .trips = 1};
  w->key_count = 0;
}

static void add_place(struct walk *w, tir_buffer b, tir_expr index) {
  struct values values = {.w = w, .count = 1};
  struct tir_swizzle swizzle;
  if (!is_shared(w, b)) return;
  uint64_t key = key_of(w, index, &values) ^ (uint64_t)b << 40;
  if (tir_swizzle_of(w->ir, b, &swizzle)) key = (uint64_t)index << 1 | 1, values.count = values_of(w, index);
  for (uint32_t i = 0; i < w->key_count; i++)
    if (w->keys[i] == key) return;
  w->keys = tir_enlarge(w->keys, &w->key_capacity, (uint64_t)w->key_count + 1, sizeof *w->keys);
  w->keys[w->key_count++] = key;
  now(w)->places += values.count;
}

struct mention {
  tir_var var;
  bool found;
};

static void see_mention(void *data, tir_var var) {
  struct mention *m = data;
  m->found |= var == m->var;
}

/* Whether a loop outside of the innermost that is not unrolled leaves an address the same. */
static bool is_hoisted(const struct walk *w, tir_expr index) {
  for (uint32_t d = 0; d + 1 < w->depth && d < MOST_KEPT; d++) {
    struct mention m = {w->around[d], false};
    walk_vars(w, index, see_mention, &m);
    if (m.var && !m.found) return true;
  }
  return false;
}

static void count_copies(struct walk *w, tir_expr index, double times) {
  now(w)->copies += times;
  if (is_hoisted(w, index)) now(w)->hoisted += times;
}

static void count_load(struct walk *w, const struct tir_expr_node *n) {
  struct region *r = now(w);
  tir_expr index = tir_operands(w->ir, n->operands)[0];
  double words = (double)tir_type_bits(n->type) * tir_type_lanes(n->type) / 32, times = values_of(w, index);
  words = (words < 1 ? 1 : words) * times;
  if (w->own_of[n->ref]) return;
  if (!is_shared(w, n->ref)) w->loaded[n->ref] = w->region_count;
  if (is_shared(w, n->ref))
    r->shared += words;
  else if (w->begins_copy)
    count_copies(w, index, times);
  else if (w->guards)
    r->guarded += words;
  else if (w->moves)
    r->moved += words;
  else
    r->used += words;
  add_place(w, n->ref, index);
}

/* Each expression once a region: what is equal is computed once. */
static bool count_node(void *data, tir_expr x) {
  struct walk *w = data;
  const struct tir_expr_node *n = tir_at(w->ir, x);
  if (w->seen[x] == w->region_count) return false;
  w->seen[x] = w->region_count;
  if (n->kind == TIR_LOAD) count_load(w, n);
  struct tir_pointer to;
  if (tir_pointer_of(w->ir, n, &to) && to.buffer) add_place(w, to.buffer, to.offset);
  return true;
}

static bool chooses(const struct tir *ir, const void *context, tir_expr x) {
  return tir_at(ir, x)->kind == TIR_SELECT || is_call(context, x, "if_then_else");
}

static void count_statement(struct walk *w, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(w->ir, s);
  tir_expr all[5];
  uint32_t count = exprs_of(w, s, all);
  bool guarded = n->kind == TIR_STORE && tir_any_node(w->ir, n->store.value, 0, chooses, w);
  if (w->live[w->order[s]] > now(w)->held) now(w)->held = w->live[w->order[s]];
  if (n->kind == TIR_STORE) {
    w->begins_copy = tir_is_device_call(w->ir, n->store.value, TIR_ASYNC_COPY);
    w->moves = tir_at(w->ir, n->store.value)->kind == TIR_LOAD && !w->own_of[n->store.buffer];
  }
  w->guards += guarded;
  for (uint32_t i = 0; i < count; i++) tir_walk_expr(w->ir, all[i], count_node, w);
  w->guards -= guarded;
  w->begins_copy = w->moves = false;
  if (n->kind != TIR_STORE) return;
  now(w)->serial = now(w)->serial || w->loaded[n->store.buffer] == w->region_count;
  add_place(w, n->store.buffer, all[count - 1]);
}

/* Copies of all of a loop's regions, from number `first` on, as often as its iterations are unrolled side by side;
 * what is kept for those iterations differs by a number. */
static void share_copies(struct walk *w, uint32_t first, double times) {
  double sum = 0, hoisted = 0;
  for (uint32_t i = first; i < w->region_count; i++)
    if (w->regions[i].loop == w->loop) sum += w->regions[i].copies, hoisted += w->regions[i].hoisted;
  for (uint32_t i = first; i < w->region_count; i++)
    if (w->regions[i].loop == w->loop) w->regions[i].copies = sum * times, w->regions[i].hoisted = hoisted;
}

static void count_list(struct walk *w, tir_stmt first);

static void count_kept_loop(struct walk *w, tir_stmt s) {
  enum { ALL = 16, SOME = 4 }; /* iterations that are unrolled at most; and of a longer loop */
  tir_stmt outer = w->loop;
  int64_t extent = tir_is(w->ir, s, TIR_LOOP) ? tir_loop_extent(w->ir, s) : -1;
  if (w->depth < MOST_KEPT) w->around[w->depth] = tir_is(w->ir, s, TIR_LOOP) ? tir_as(w->ir, s, TIR_LOOP)->loop.var : 0;
  w->loop = s, w->depth++;
  begin_region(w);
  uint32_t own = w->region_count;
  count_statement(w, s);
  count_list(w, tir_stmt_at(w->ir, s)->first[TIR_BODY]);
  if (w->region_count == own && extent > 0 && !now(w)->serial) w->regions[own - 1].trips = (double)extent;
  share_copies(w, own - 1, extent > 0 && extent <= ALL ? (double)extent : SOME);
  assert(w->depth > 0 && w->loop == s);
  w->loop = outer, w->depth--;
  begin_region(w);
}

static void count_list(struct walk *w, tir_stmt first) {
  for (tir_stmt s = first; s; s = tir_stmt_at(w->ir, s)->next) {
    const struct tir_stmt_node *n = tir_stmt_at(w->ir, s);
    bool repeats = n->kind == TIR_LOOP && !w->unrolled[s] && n->loop_kind != TIR_THREAD_BINDING;
    if (repeats || n->kind == TIR_WHILE) {
      count_kept_loop(w, s);
      continue;
    }
    if (is_barrier(w, s)) begin_region(w);
    count_statement(w, s);
    w->guards += n->kind == TIR_IF;
    count_list(w, n->first[TIR_BODY]);
    count_list(w, n->first[TIR_ELSE]);
    w->guards -= n->kind == TIR_IF;
  }
}

/* ---- What they take ---- */

static double least(double a, double b) { return a < b ? a : b; }

/* Fitted, see registers.h. An address that is kept all along a loop has two registers, and mostly one more where it
 * copies to; no more are kept than there are. */
static double need_of(const struct region *r, int threads, int most) {
  double warps = threads > TIR_WARP ? (double)threads / TIR_WARP : 1;
  double ahead = least(r->used * least(r->trips, 32), 32 / warps) + least(0.87 * r->moved, 73 / warps) +
                 least(1.3 * r->guarded, 12) + 0.06 * r->shared * least(r->trips, 2);
  double addresses = least(2.6 * r->places, 18) + least(0.65 * r->copies, 22);
  double rest = 10 + 7.7 * r->depth + r->held + ahead, need = rest + addresses;
  double kept = least(rest + least(2.6 * r->places, 18) + 2.5 * r->hoisted, most);
  return kept > need ? kept : need;
}

static void estimate(struct walk *w, int most, int own, struct jit_resources *k) {
  enum { FEW_WORDS = 8 }; /* of an array in memory that counts for little */
  double need = 0;
  bool in_memory = false;
  for (uint32_t i = 0; i < w->region_count; i++) {
    double some = need_of(&w->regions[i], k->threads, own);
    if (some > need) need = some;
  }
  for (uint32_t i = 0; i < w->own_count; i++)
    in_memory = in_memory || (w->own[i].indexed && w->own[i].words >= FEW_WORDS);
  k->estimated_spills = in_memory || need > 1.1 * own;
  k->estimated_registers = k->estimated_spills || need > most ? most : (int)need;
  assert(own >= most && k->estimated_registers >= 0 && k->estimated_registers <= most);
}

/* Registers of the threads that have most: a warp group that gets more by setmaxnreg has these. */
static int most_of_roles(const struct tir *ir, tir_loop kernel, int most) {
  for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel)) {
    if (!tir_is(ir, s, TIR_EVALUATE)) continue;
    tir_expr call = tir_as(ir, s, TIR_EVALUATE)->evaluate.value;
    if (!tir_is_device_call(ir, call, TIR_SET_REGISTERS)) continue;
    int64_t count = tir_at(ir, tir_operands(ir, tir_at(ir, call)->operands)[0])->imm;
    if (count > most) most = (int)count;
  }
  return most;
}

void registers_estimate(const struct tir *ir, tir_loop kernel, int most, struct jit_resources *k) {
  assert(tir_is(ir, kernel, TIR_LOOP) && most > 0);
  struct walk w = {.ir = ir, .kernel = kernel, .loop = kernel};
  w.unrolled = calloc(ir->stmts.count, sizeof *w.unrolled);
  w.order = calloc(ir->stmts.count, sizeof *w.order);
  w.copies = calloc(ir->vars.count, sizeof *w.copies);
  w.value_of = calloc(ir->vars.count, sizeof *w.value_of);
  w.own_of = calloc(ir->buffers.count, sizeof *w.own_of);
  w.loaded = calloc(ir->buffers.count, sizeof *w.loaded);
  w.seen = calloc(ir->exprs.count, sizeof *w.seen);
  if (!w.unrolled || !w.order || !w.copies || !w.value_of || !w.own_of || !w.loaded || !w.seen) abort();
  for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel))
    if (tir_is(ir, s, TIR_ALLOC)) note_own(&w, s);
  weigh(&w, kernel);
  place_own(&w);
  begin_region(&w);
  count_list(&w, kernel);
  assert(!w.depth && !w.guards && "each loop and condition that was entered was left");
  share_copies(&w, 0, 1);
  estimate(&w, most, most_of_roles(ir, kernel, most), k);
  void *const all[] = {w.unrolled, w.order, w.copies,  w.value_of, w.own_of, w.loaded,
                       w.seen,     w.own,   w.regions, w.keys,     w.live};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

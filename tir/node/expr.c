/* Interned expressions: one index for one text. Nodes are written once, with their facts. */
#include "arena.h"
#include "node_map.h"
#include "slots.h"
#include "tir/arith/bounds.h"
#include "tir/verify/verify.h"

#include <string.h>

/* ---- The table of nodes ---- */

static uint64_t fold(uint64_t a, uint64_t b) {
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A node's text is handed around as arguments, not in memory: nodes are looked up far more often than made, and reading
 * back a node that was just written in pieces stalls. `payload`: a in the low half, b in the high one; or imm, real. */
static inline uint32_t hash_of(enum tir_kind kind, tir_type type, uint64_t payload, uint32_t c, uint32_t ref,
                               const uint32_t *operands, uint32_t count) {
  uint64_t h = fold(payload ^ 0x9E3779B97F4A7C15u, ((uint64_t)type << 32 | c) ^ 0xD1B54A32D192ED03u);
  h = fold(h ^ ((uint64_t)ref << 8 | (uint64_t)kind), 0x8BB84B93962EACC9u ^ count);
  for (uint32_t i = 0; i < count; i++) h = fold(h ^ operands[i], 0x2D358DCCAA6C78A5u);
  return (uint32_t)(h ^ h >> 32);
}

static inline bool is_node(const struct tir *ir, tir_expr e, uint32_t hash, enum tir_kind kind, tir_type type,
                           uint64_t payload, uint32_t c, uint32_t ref, const uint32_t *operands, uint32_t count) {
  const struct tir_expr_node *x = &ir->exprs.at[e];
  if (x->hash != hash || x->kind != kind || x->type != type || (uint64_t)x->imm != payload || x->c != c ||
      x->ref != ref || x->count != count)
    return false;
  return !count || !memcmp(ir->operands.at + x->operands, operands, count * sizeof(uint32_t));
}

static inline uint32_t kept_hash(const struct tir *ir, uint32_t e) { return ir->exprs.at[e].hash; }

static void enlarge_slots(struct tir *ir) {
  tir_grow_expr_slots(ir, ir->expr_slots.count);
  slots_fill(ir, ir->expr_slots.at, ir->expr_slots.count, ir->exprs.count, kept_hash);
}

void tir_unintern(struct tir *ir, uint32_t mark) {
  slots_empty(ir, ir->expr_slots.at, ir->expr_slots.count, ir->exprs.count, mark, kept_hash);
}

/* ---- Facts of a new node ---- */

static void add_facts_of(const struct tir *ir, struct tir_expr_node *n, tir_expr below) {
  n->vars |= ir->exprs.at[below].vars;
  n->flags |= ir->exprs.at[below].flags;
}

static void set_bounds(const struct tir *ir, struct tir_expr_node *n) {
  struct tir_bounds b = tir_type_bounds(n->type);
  if (n->kind == TIR_INT_IMM) {
    b = (struct tir_bounds){n->imm, n->imm};
  } else if (n->kind >= TIR_ADD && n->kind <= TIR_OR) {
    if (tir_type_is_int(tir_type_of(ir, n->a)) || tir_type_code(tir_type_of(ir, n->a)) == TIR_BOOL) {
      b = tir_binary_bounds((enum tir_kind)n->kind, tir_bounds_of(ir, n->a), tir_bounds_of(ir, n->b));
      b = tir_wrapped_bounds((enum tir_kind)n->kind, n->type, n->flags, b);
    }
  } else if (n->kind == TIR_NOT) {
    struct tir_bounds x = tir_bounds_of(ir, n->a);
    if (x.lo >= 0 && x.hi <= 1) b = (struct tir_bounds){1 - x.hi, 1 - x.lo};
  } else if (n->kind == TIR_SELECT && tir_type_is_int(n->type)) {
    struct tir_bounds x = tir_bounds_of(ir, n->b), y = tir_bounds_of(ir, n->c);
    b = (struct tir_bounds){x.lo < y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi};
  } else if (n->kind == TIR_CAST && tir_type_is_int(tir_type_of(ir, n->a)) && tir_type_is_int(n->type)) {
    struct tir_bounds x = tir_bounds_of(ir, n->a);
    if (x.lo >= b.lo && x.hi <= b.hi) b = x;
  } else if (n->kind == TIR_BROADCAST) {
    b = tir_bounds_of(ir, n->a);
  }
  n->lo = b.lo;
  n->hi = b.hi;
}

/* Sums and products of scalar integers: most of what is made. */
static void set_facts_of_sum(const struct tir *ir, struct tir_expr_node *n) {
  const struct tir_expr_node *a = &ir->exprs.at[n->a], *b = &ir->exprs.at[n->b];
  n->vars = a->vars | b->vars;
  n->flags = a->flags | b->flags;
  struct tir_bounds x = {a->lo, a->hi}, y = {b->lo, b->hi}, both;
  if (n->kind == TIR_ADD)
    both = tir_add_bounds(x, y);
  else if (n->kind == TIR_MUL && b->kind == TIR_INT_IMM && !tir_is_inf(b->imm))
    both = tir_scale_bounds(b->imm, x);
  else
    both = tir_binary_bounds((enum tir_kind)n->kind, x, y);
  both = tir_wrapped_bounds((enum tir_kind)n->kind, n->type, n->flags, both);
  n->lo = both.lo;
  n->hi = both.hi;
}

static void set_facts_of_var(const struct tir *ir, struct tir_expr_node *n) {
  n->vars = 1ull << (n->ref & 63);
  n->flags = TIR_HAS_VAR | (ir->vars.at[n->ref].kind == TIR_VAR_DATA ? TIR_HAS_DATA : 0);
  const struct tir_var_node *v = &ir->vars.at[n->ref];
  struct tir_bounds b;
  if (v->min && v->extent) {
    const struct tir_expr_node *min = &ir->exprs.at[v->min], *extent = &ir->exprs.at[v->extent];
    b = (struct tir_bounds){min->lo, tir_sat_add(min->hi, tir_sat_add(extent->hi, -1))};
  } else {
    b = tir_type_bounds(n->type);
  }
  n->lo = b.lo;
  n->hi = b.hi;
}

static void set_facts(const struct tir *ir, struct tir_expr_node *n, const uint32_t *operands) {
  if (n->kind >= TIR_ADD && n->kind <= TIR_MUL && tir_type_is_int(tir_type_of(ir, n->a))) {
    set_facts_of_sum(ir, n);
    return;
  }
  if (n->kind == TIR_VAR) {
    set_facts_of_var(ir, n);
    return;
  }
  if (n->kind != TIR_INT_IMM && n->kind != TIR_FLOAT_IMM) {
    if (n->a) add_facts_of(ir, n, n->a);
    if (n->b) add_facts_of(ir, n, n->b);
    if (n->c) add_facts_of(ir, n, n->c);
    for (uint32_t i = 0; i < n->count; i++)
      if (operands[i]) add_facts_of(ir, n, operands[i]);
  }
  if (n->kind == TIR_LOAD) n->flags |= TIR_HAS_LOAD;
  if (n->kind == TIR_CALL) n->flags |= TIR_HAS_CALL;
  if (n->kind == TIR_DATA) n->flags |= TIR_HAS_POINTER;
  if (n->kind >= TIR_DIV && n->kind <= TIR_FLOORMOD) n->flags |= TIR_HAS_DIVMOD;
  if (n->kind == TIR_LET) n->vars |= 1ull << (n->ref & 63);
  set_bounds(ir, n);
}

/* An integer or a truth that loads: it may stand in ranges, bindings and predicates. */
static bool is_indirect(const struct tir_expr_node *n) {
  return (n->flags & TIR_HAS_LOAD) && (tir_type_is_int(n->type) || tir_type_code(n->type) == TIR_BOOL);
}

/* The parts of a node, in as few words as it has: all fit in registers. */
struct head {
  uint8_t kind, flags;
  uint16_t count;
  tir_type type;
};
struct tail {
  uint32_t c, ref;
};

/* Adds a node that is not in the table; `slot` is empty. Its operands and facts are the caller's to set. */
static __attribute__((noinline)) struct tir_expr_node *add_node(struct tir *ir, uint32_t slot, uint32_t hash,
                                                                struct head head, uint64_t payload, struct tail tail) {
  tir_expr e = tir_grow_exprs(ir, 1);
  tir_grow_linears(ir, 1);
  ir->linears.at[e].first = UINT32_MAX;
  struct tir_expr_node *n = &ir->exprs.at[e];
  *n = (struct tir_expr_node){.kind = head.kind, .count = head.count, .type = head.type};
  n->imm = (int64_t)payload;
  n->c = tail.c;
  n->ref = tail.ref;
  n->hash = hash;
  ir->expr_slots.at[slot] = e;
  return n;
}

/* The table grows with the nodes. */
static inline tir_expr admit(struct tir *ir, const struct tir_expr_node *n) {
  tir_expr e = (tir_expr)(n - ir->exprs.at);
  if (ir->exprs.count * 2ull > ir->expr_slots.count) enlarge_slots(ir);
  return e;
}

/* Inlined where it is called: most of what is compared is known there, and of facts, which there are. */
static inline __attribute__((always_inline)) tir_expr intern(struct tir *ir, enum tir_kind kind, tir_type type,
                                                             uint64_t payload, uint32_t c, uint32_t ref,
                                                             const uint32_t *operands, uint32_t count) {
  uint32_t hash = hash_of(kind, type, payload, c, ref, operands, count);
  uint32_t mask = ir->expr_slots.count - 1, slot = hash & mask;
  for (tir_expr e; (e = ir->expr_slots.at[slot]) != TIR_NONE; slot = (slot + 1) & mask)
    if (is_node(ir, e, hash, kind, type, payload, c, ref, operands, count)) return e;
  assert(count <= UINT16_MAX);
  uint32_t first = count ? tir_add_operands(ir, operands, count) : 0;
  struct head head = {.kind = (uint8_t)kind, .count = (uint16_t)count, .type = type};
  struct tir_expr_node *n = add_node(ir, slot, hash, head, payload, (struct tail){c, ref});
  n->operands = first;
  if (kind == TIR_INT_IMM) {
    n->lo = n->hi = (int64_t)payload;
  } else {
    set_facts(ir, n, ir->operands.at + n->operands);
    if (is_indirect(n)) ir->indirect = true;
  }
  return admit(ir, n);
}

/* The node of a new variable: the table holds none like it. */
static tir_expr add_var(struct tir *ir, tir_type type, tir_var v) {
  uint32_t hash = hash_of(TIR_VAR, type, 0, 0, v, NULL, 0);
  uint32_t slot = slots_where(ir->expr_slots.at, ir->expr_slots.count, hash, TIR_NONE);
  struct tir_expr_node *n =
      add_node(ir, slot, hash, (struct head){.kind = TIR_VAR, .type = type}, 0, (struct tail){0, v});
  set_facts_of_var(ir, n);
  return admit(ir, n);
}

static uint64_t pair(tir_expr a, tir_expr b) { return a | (uint64_t)b << 32; }

bool tir_expr_is_consistent(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  const uint32_t *operands = ir->operands.at + n->operands;
  enum tir_kind kind = (enum tir_kind)n->kind;
  struct tir_expr_node again = *n;
  again.flags = 0;
  again.vars = 0;
  set_facts(ir, &again, operands);
  uint64_t payload = (uint64_t)n->imm;
  uint32_t hash = hash_of(kind, n->type, payload, n->c, n->ref, operands, n->count);
  uint32_t mask = ir->expr_slots.count - 1, slot = n->hash & mask;
  for (tir_expr x; (x = ir->expr_slots.at[slot]) != TIR_NONE; slot = (slot + 1) & mask)
    if (is_node(ir, x, n->hash, kind, n->type, payload, n->c, n->ref, operands, n->count)) break;
  return ir->expr_slots.at[slot] == e && n->hash == hash && n->flags == again.flags && n->vars == again.vars &&
         n->lo == again.lo && n->hi == again.hi && (ir->indirect || !is_indirect(n));
}

uint32_t tir_add_operands(struct tir *ir, const uint32_t *values, uint32_t count) {
  return tir_append_operands(ir, values, count);
}

/* ---- Raw nodes ---- */

static __attribute__((noinline)) tir_expr intern_int(struct tir *ir, tir_type type, int64_t value, tir_expr *kept) {
  return *kept = intern(ir, TIR_INT_IMM, type, (uint64_t)value, 0, 0, NULL, 0);
}

/* Constants asked for of late, by value: each is looked at before it is believed. */
enum { RECENT_INTS = 256 };
static const struct tir_scratch_kind recent_ints = {RECENT_INTS * sizeof(tir_expr), NULL, NULL};

tir_expr tir_int(struct tir *ir, tir_type type, int64_t value) {
  uint32_t spread = ((uint32_t)value ^ type >> 20) * 0x9E3779B1u; /* powers of two apart */
  tir_expr *kept = (tir_expr *)tir_scratch_of(ir, TIR_SCRATCH_INTS, &recent_ints) + (spread >> 16) % RECENT_INTS;
  const struct tir_expr_node *n = &ir->exprs.at[*kept];
  if (*kept < ir->exprs.count && n->imm == value && n->type == type && n->kind == TIR_INT_IMM) return *kept;
  return intern_int(ir, type, value, kept);
}

tir_expr tir_float(struct tir *ir, tir_type type, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return intern(ir, TIR_FLOAT_IMM, type, bits, 0, 0, NULL, 0);
}

tir_expr tir_string(struct tir *ir, tir_symbol text) {
  return intern(ir, TIR_STRING_IMM, TIR_T_STRING, 0, 0, text, NULL, 0);
}

tir_expr tir_none(struct tir *ir) { return intern(ir, TIR_NONE_IMM, TIR_T_VOID, 0, 0, 0, NULL, 0); }

tir_expr tir_data(struct tir *ir, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  return intern(ir, TIR_DATA, TIR_T_HANDLE, 0, 0, buffer, NULL, 0);
}

static bool gives_truth(enum tir_kind kind) { return kind >= TIR_EQ && kind <= TIR_OR; }

tir_expr tir_binary(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b) {
  MS_CHECK(kind >= TIR_ADD && kind <= TIR_OR && a && b);
  assert(kind >= TIR_ADD && kind <= TIR_OR);
  tir_type type = tir_type_of(ir, a), other = tir_type_of(ir, b);
  if (other != type && tir_type_lanes(other) > tir_type_lanes(type)) type = other;
  if (gives_truth(kind)) type = tir_type_with_lanes(TIR_T_BOOL, tir_type_lanes(type));
  return intern(ir, kind, type, pair(a, b), 0, 0, NULL, 0);
}

tir_expr tir_unary(struct tir *ir, enum tir_kind kind, tir_type type, tir_expr a) {
  assert(kind == TIR_NOT || kind == TIR_CAST || kind == TIR_BROADCAST);
  return intern(ir, kind, type, pair(a, 0), 0, 0, NULL, 0);
}

tir_expr tir_select(struct tir *ir, tir_expr condition, tir_expr a, tir_expr b) {
  MS_CHECK(condition && a && b);
  return intern(ir, TIR_SELECT, tir_type_of(ir, a), pair(condition, a), b, 0, NULL, 0);
}

tir_expr tir_let(struct tir *ir, tir_var var, tir_expr value, tir_expr body) {
  MS_CHECK(var && var < ir->vars.count && value && body);
  return intern(ir, TIR_LET, tir_type_of(ir, body), pair(value, body), 0, var, NULL, 0);
}

tir_expr tir_ramp(struct tir *ir, tir_expr base, tir_expr stride, int lanes) {
  MS_CHECK(base && stride && lanes > 0);
  tir_type type = tir_type_with_lanes(tir_type_of(ir, base), lanes);
  return intern(ir, TIR_RAMP, type, pair(base, stride), 0, 0, NULL, 0);
}

tir_expr tir_slice(struct tir *ir, tir_expr start, tir_expr stop, tir_expr step) {
  tir_type type = tir_type_of(ir, start);
  return intern(ir, TIR_SLICE, type, pair(start, stop), step, 0, NULL, 0);
}

tir_expr tir_rebuild(struct tir *ir, struct tir_expr_node n, tir_expr a, tir_expr b, tir_expr c) {
  MS_CHECK(n.count == 0);
  if (n.kind >= TIR_ADD && n.kind <= TIR_OR) return tir_binary(ir, (enum tir_kind)n.kind, a, b);
  switch (n.kind) {
  case TIR_SELECT: return tir_select(ir, a, b, c);
  case TIR_LET: return tir_let(ir, n.ref, a, b);
  case TIR_RAMP: return tir_ramp(ir, a, b, tir_type_lanes(n.type));
  case TIR_SLICE: return tir_slice(ir, a, b, c);
  default: return tir_unary(ir, (enum tir_kind)n.kind, n.type, a);
  }
}

/* A load has the lanes of its one vector index. */
tir_expr tir_load(struct tir *ir, tir_buffer buffer, const tir_expr *indices, uint32_t count, tir_expr predicate) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  tir_type type = ir->buffers.at[buffer].type;
  for (uint32_t i = 0; i < count; i++) {
    int lanes = tir_type_lanes(tir_type_of(ir, indices[i]));
    if (lanes > 1) type = tir_type_with_lanes(type, tir_type_lanes(type) * lanes);
  }
  return intern(ir, TIR_LOAD, type, pair(predicate, 0), 0, buffer, indices, count);
}

tir_expr tir_call(struct tir *ir, tir_type type, tir_symbol op, const tir_expr *args, uint32_t count) {
  MS_CHECK(op && op < ir->symbols.count);
  return intern(ir, TIR_CALL, type, 0, 0, op, args, count);
}

tir_expr tir_list_value(struct tir *ir, const tir_expr *items, uint32_t count) {
  return intern(ir, TIR_LIST, TIR_T_VOID, 0, 0, 0, items, count);
}

tir_expr tir_map_value(struct tir *ir, const tir_expr *items, uint32_t count) {
  assert(count % 2 == 0);
  return intern(ir, TIR_MAP, TIR_T_VOID, 0, 0, 0, items, count);
}

tir_var tir_new_var(struct tir *ir, enum tir_var_kind kind, tir_name name, tir_type type, tir_expr min,
                    tir_expr extent) {
  tir_var v = tir_grow_vars(ir, 1);
  ir->has_lets |= kind >= TIR_VAR_LET;
  ir->vars.at[v] = (struct tir_var_node){name, type, kind, TIR_NONE, min, extent};
  tir_expr e = add_var(ir, type, v);
  ir->vars.at[v].expr = e;
  return v;
}

tir_var tir_new_let(struct tir *ir, tir_name name, tir_expr value) {
  const struct tir_expr_node *n = tir_at(ir, value);
  return tir_new_var(ir, n->flags & TIR_OF_DATA ? TIR_VAR_DATA : TIR_VAR_LET, name, n->type, TIR_NONE, TIR_NONE);
}

/* ---- Reading ---- */

struct walk {
  const struct tir *ir;
  bool (*visit)(void *data, tir_expr e);
  void *data;
  struct tir_node_map seen;
};

static void walk(struct walk *w, tir_expr e) {
  bool fresh = false;
  if (e == TIR_NONE) return;
  tir_node_map_at(&w->seen, e, 0, &fresh);
  if (!fresh || !w->visit(w->data, e)) return;
  const struct tir_expr_node *n = tir_at(w->ir, e);
  if (n->kind == TIR_INT_IMM || n->kind == TIR_FLOAT_IMM) return;
  tir_expr a = n->a, b = n->b, c = n->c;
  uint32_t first = n->operands, count = n->count;
  walk(w, a), walk(w, b), walk(w, c);
  for (uint32_t i = 0; i < count; i++) walk(w, w->ir->operands.at[first + i]);
}

void tir_walk_expr(const struct tir *ir, tir_expr e, bool (*visit)(void *data, tir_expr e), void *data) {
  if (e == TIR_NONE) return;
  if (tir_at(ir, e)->kind <= TIR_DATA) { /* nothing is below it */
    visit(data, e);
    return;
  }
  struct walk w = {.ir = ir, .visit = visit, .data = data};
  tir_node_map_init(&w.seen);
  walk(&w, e);
  tir_node_map_free(&w.seen);
}

struct counting {
  const struct tir *ir;
  bool (*counts)(void *data, tir_expr e);
  void *data;
  struct tir_node_map sums;
};

static uint32_t count_below(struct counting *c, tir_expr e) {
  bool fresh = false;
  if (e == TIR_NONE) return 0;
  uint32_t known = *tir_node_map_at(&c->sums, e, 0, &fresh);
  if (!fresh) return known;
  const struct tir_expr_node n = *tir_at(c->ir, e);
  uint64_t sum = c->counts(c->data, e);
  if (n.kind > TIR_DATA) sum += (uint64_t)count_below(c, n.a) + count_below(c, n.b) + count_below(c, n.c);
  for (uint32_t i = 0; i < n.count && n.kind > TIR_DATA; i++) sum += count_below(c, c->ir->operands.at[n.operands + i]);
  if (sum > UINT32_MAX) sum = UINT32_MAX;
  return *tir_node_map_at(&c->sums, e, 0, &fresh) = (uint32_t)sum;
}

uint32_t tir_count_in_tree(const struct tir *ir, tir_expr e, bool (*counts)(void *data, tir_expr e), void *data) {
  struct counting c = {.ir = ir, .counts = counts, .data = data};
  tir_node_map_init(&c.sums);
  uint32_t sum = count_below(&c, e);
  tir_node_map_free(&c.sums);
  return sum;
}

/* A search for one node: what it looks for says of each whether it is one, or may have one below. */
enum look { NOT_BELOW, MAYBE_BELOW, FOUND };

struct node_search {
  const struct tir *ir;
  enum look (*look)(const struct node_search *s, const struct tir_expr_node *n);
  union {
    struct {
      uint64_t mask;
      const tir_var *vars;
      uint32_t count;
    };
    struct {
      union {
        bool (*test)(const struct tir *ir, const void *context, tir_var v);
        tir_node_test *test_node;
      };
      const void *context;
      uint8_t flags; /* that a node has one of; 0: all nodes are tested */
    };
    tir_buffer buffer;
  };
  uint32_t steps; /* that are left to a plain search, which meets shared nodes again */
  tir_expr found;
};

enum { PLAIN_STEPS = 256 };

static bool search_plainly(struct node_search *s, tir_expr e) {
  const struct tir_expr_node *n = tir_at(s->ir, e);
  enum look look = s->look(s, n);
  if (look != MAYBE_BELOW) return look == FOUND && (s->found = e);
  if (!s->steps) return false;
  s->steps--;
  if ((n->a && search_plainly(s, n->a)) || (n->b && search_plainly(s, n->b)) || (n->c && search_plainly(s, n->c)))
    return true;
  for (uint32_t i = 0; i < n->count; i++) {
    tir_expr x = s->ir->operands.at[n->operands + i];
    if (x && search_plainly(s, x)) return true;
  }
  return false;
}

static bool visit_once(void *data, tir_expr e) {
  struct node_search *s = data;
  if (s->found) return false;
  enum look look = s->look(s, tir_at(s->ir, e));
  if (look == FOUND) s->found = e;
  return look == MAYBE_BELOW;
}

static tir_expr search(struct node_search s, tir_expr e) {
  s.steps = PLAIN_STEPS;
  if (!search_plainly(&s, e) && !s.steps) tir_walk_expr(s.ir, e, visit_once, &s);
  return s.found;
}

static enum look look_for_vars(const struct node_search *s, const struct tir_expr_node *n) {
  if (!(n->vars & s->mask)) return NOT_BELOW;
  if (n->kind != TIR_VAR) return MAYBE_BELOW;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->vars[i] == n->ref) return FOUND;
  return NOT_BELOW;
}

bool tir_uses_masked_var(const struct tir *ir, tir_expr e, uint64_t mask, const tir_var *vars, uint32_t count) {
  if (!(tir_at(ir, e)->vars & mask)) return false;
  return search((struct node_search){.ir = ir, .look = look_for_vars, .mask = mask, .vars = vars, .count = count}, e);
}

/* A plain search for one variable, which is asked for most; `steps` are left to it. */
static bool finds_var(const struct tir *ir, tir_expr e, tir_var v, uint32_t *steps) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (!(n->vars >> (v & 63) & 1)) return false;
  if (n->kind == TIR_VAR) return n->ref == v;
  if (!*steps) return false;
  --*steps;
  if ((n->a && finds_var(ir, n->a, v, steps)) || (n->b && finds_var(ir, n->b, v, steps)) ||
      (n->c && finds_var(ir, n->c, v, steps)))
    return true;
  for (uint32_t i = 0; i < n->count; i++) {
    tir_expr x = ir->operands.at[n->operands + i];
    if (x && finds_var(ir, x, v, steps)) return true;
  }
  return false;
}

bool tir_uses_var_below(const struct tir *ir, tir_expr e, tir_var v) {
  uint32_t steps = PLAIN_STEPS;
  return finds_var(ir, e, v, &steps) || (!steps && tir_uses_masked_var(ir, e, 1ull << (v & 63), &v, 1));
}

bool tir_uses_any_var(const struct tir *ir, tir_expr e, const tir_var *vars, uint32_t count) {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < count; i++) mask |= 1ull << (vars[i] & 63);
  return tir_uses_masked_var(ir, e, mask, vars, count);
}

static enum look test_var(const struct node_search *s, const struct tir_expr_node *n) {
  if (n->kind == TIR_VAR) return s->test(s->ir, s->context, n->ref) ? FOUND : NOT_BELOW;
  return n->flags & TIR_HAS_VAR ? MAYBE_BELOW : NOT_BELOW;
}

bool tir_any_var(const struct tir *ir, tir_expr e, bool (*test)(const struct tir *ir, const void *context, tir_var v),
                 const void *context) {
  if (e == TIR_NONE || !(tir_at(ir, e)->flags & TIR_HAS_VAR)) return false;
  return search((struct node_search){.ir = ir, .look = test_var, .test = test, .context = context}, e);
}

static enum look test_node(const struct node_search *s, const struct tir_expr_node *n) {
  if (s->flags && !(n->flags & s->flags)) return NOT_BELOW;
  if (s->test_node(s->ir, s->context, (tir_expr)(n - s->ir->exprs.at))) return FOUND;
  return n->kind > TIR_DATA ? MAYBE_BELOW : NOT_BELOW;
}

tir_expr tir_find_node(const struct tir *ir, tir_expr e, uint8_t flags, tir_node_test *test, const void *context) {
  if (e == TIR_NONE) return TIR_NONE;
  struct node_search s = {.ir = ir, .look = test_node, .test_node = test, .context = context, .flags = flags};
  return search(s, e);
}

static bool is_let(const struct tir *ir, const void *context, tir_var v) {
  (void)context;
  return tir_is_let(ir, v);
}

bool tir_uses_let(const struct tir *ir, tir_expr e) { return ir->has_lets && tir_any_var(ir, e, is_let, NULL); }

static enum look look_for_buffer(const struct node_search *s, const struct tir_expr_node *n) {
  if ((n->kind == TIR_LOAD || n->kind == TIR_DATA) && n->ref == s->buffer) return FOUND;
  return n->flags & (TIR_HAS_LOAD | TIR_HAS_POINTER) ? MAYBE_BELOW : NOT_BELOW;
}

bool tir_uses_buffer(const struct tir *ir, tir_expr e, tir_buffer b) {
  MS_CHECK(tir_is_buffer(ir, b));
  if (e == TIR_NONE || !(tir_at(ir, e)->flags & (TIR_HAS_LOAD | TIR_HAS_POINTER))) return false;
  return search((struct node_search){.ir = ir, .look = look_for_buffer, .buffer = b}, e);
}

/* ---- Values ---- */

bool tir_compute(enum tir_kind kind, int64_t a, int64_t b, int64_t *out) {
  bool divides = kind >= TIR_DIV && kind <= TIR_FLOORMOD;
  if (divides && (b == 0 || (a == INT64_MIN && b == -1))) return false;
  switch (kind) {
  case TIR_ADD: return !__builtin_add_overflow(a, b, out);
  case TIR_SUB: return !__builtin_sub_overflow(a, b, out);
  case TIR_MUL: return !__builtin_mul_overflow(a, b, out);
  case TIR_DIV: return *out = a / b, true;
  case TIR_MOD: return *out = a % b, true;
  case TIR_FLOORDIV: return *out = tir_floor_div(a, b), true;
  case TIR_FLOORMOD: return *out = tir_floor_mod(a, b), true;
  case TIR_MIN: return *out = a < b ? a : b, true;
  case TIR_MAX: return *out = a > b ? a : b, true;
  case TIR_EQ: return *out = a == b, true;
  case TIR_NE: return *out = a != b, true;
  case TIR_LT: return *out = a < b, true;
  case TIR_LE: return *out = a <= b, true;
  case TIR_GT: return *out = a > b, true;
  case TIR_GE: return *out = a >= b, true;
  case TIR_AND: return *out = a && b, true;
  case TIR_OR: return *out = a || b, true;
  default: return false;
  }
}

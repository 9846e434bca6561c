/* Vectorize: a vectorized loop of constant extent becomes one pass over vectors: its variable is a ramp, what depends
 * on it has as many lanes as the loop has iterations, conditions become masks. Requires: no blocks; the loop's
 * iterations are independent. Gives: no vectorized loops; ramps, broadcasts, predicates of loads and stores. A loop
 * with something in it that has no vector form becomes serial. */
#include "tir/lower/lower.h"
#include "tir/node/node_map.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LANES = 1024, MOST_LETS = 16, MOST_LOADS = 32, MOST_CHOICES = 8, MOST_WIDENED = 1 << 14 };

/* A load that a statement does in any case in the lanes of a mask. */
struct sure_load {
  tir_expr load, mask;
};

struct vectors {
  struct tir *ir;
  tir_var var;
  tir_expr ramp; /* what the variable becomes */
  int lanes;
  tir_expr mask;  /* under which the statement runs; TIR_NONE: always */
  tir_expr given; /* holds wherever the statement is reached, for all lanes; TIR_NONE: nothing is known */
  tir_buffer first_tile;
  bool failed;
  struct tir_node_map made; /* what became of each node, under each mask */
  tir_var lets[MOST_LETS];  /* bound to a value that differs from lane to lane, and what stands for each */
  tir_expr wide[MOST_LETS];
  uint32_t let_count;
  struct sure_load loads[MOST_LOADS]; /* of the statement, so far */
  tir_expr around[MOST_CHOICES];      /* masks of the choices around, outermost first: each has all lanes of the next */
  uint32_t load_count, choice_count;
  uint32_t widened; /* choices: a value that many choices share has as many masks as there are ways to it */
  bool reused;      /* a load went without a mask since it is done anyway in this statement */
};

static tir_expr widen(struct vectors *v, tir_expr e);

static tir_expr splat(struct vectors *v, tir_expr e, int lanes) {
  tir_type t = tir_type_of(v->ir, e);
  if (tir_type_lanes(t) == lanes) return e;
  return tir_unary(v->ir, TIR_BROADCAST, tir_type_with_lanes(t, lanes), e);
}

static int lanes_of(struct vectors *v, tir_expr e) { return tir_type_lanes(tir_type_of(v->ir, e)); }

/* Sums and products of ramps and scalars stay ramps. */
static tir_expr widen_index_binary(struct vectors *v, enum tir_kind kind, tir_expr a, tir_expr b) {
  struct tir *ir = v->ir;
  struct tir_expr_node na = *tir_at(ir, a), nb = *tir_at(ir, b);
  bool ra = na.kind == TIR_RAMP, rb = nb.kind == TIR_RAMP;
  int la = lanes_of(v, a), lb = lanes_of(v, b), lanes = la > lb ? la : lb;
  if ((kind == TIR_ADD || kind == TIR_SUB) && ra && rb)
    return tir_ramp(ir, tir_make(ir, kind, na.a, nb.a), tir_make(ir, kind, na.b, nb.b), lanes);
  if ((kind == TIR_ADD || kind == TIR_SUB) && ra && lb == 1)
    return tir_ramp(ir, tir_make(ir, kind, na.a, b), na.b, lanes);
  if (kind == TIR_ADD && rb && la == 1) return tir_ramp(ir, tir_add(ir, a, nb.a), nb.b, lanes);
  if (kind == TIR_SUB && rb && la == 1) {
    tir_expr zero = tir_int(ir, tir_type_of(ir, nb.b), 0);
    return tir_ramp(ir, tir_sub(ir, a, nb.a), tir_sub(ir, zero, nb.b), lanes);
  }
  if (kind == TIR_MUL && ra && lb == 1) return tir_ramp(ir, tir_mul(ir, na.a, b), tir_mul(ir, na.b, b), lanes);
  if (kind == TIR_MUL && rb && la == 1) return tir_ramp(ir, tir_mul(ir, nb.a, a), tir_mul(ir, nb.b, a), lanes);
  return tir_binary(ir, kind, splat(v, a, lanes), splat(v, b, lanes));
}

static tir_expr and_mask(struct vectors *v, tir_expr mask, tir_expr condition) {
  if (!mask) return condition;
  int a = lanes_of(v, mask), b = lanes_of(v, condition), lanes = a > b ? a : b;
  return tir_binary(v->ir, TIR_AND, splat(v, mask, lanes), splat(v, condition, lanes));
}

/* The mask of an access. A tile in registers is loaded, added to and stored under the same conditions, and has all
 * lanes: those that the mask leaves out are nobody's, and vectors without it stay in registers. */
static tir_expr mask_of(struct vectors *v, tir_buffer buffer, int lanes) {
  return v->mask && buffer < v->first_tile ? splat(v, v->mask, lanes) : TIR_NONE;
}

/* What was made of nodes with loads that are safe where they stand alone. */
static void forget_reused(struct vectors *v) {
  if (!v->reused) return;
  tir_node_map_free(&v->made);
  tir_node_map_init(&v->made);
  v->reused = false;
}

/* A branch of a choice that all lanes agree on: what it loads is not loaded in any case. */
static tir_expr widen_branch(struct vectors *v, tir_expr branch) {
  uint32_t loads = v->load_count;
  tir_expr made = widen(v, branch);
  v->load_count = loads;
  forget_reused(v);
  return made;
}

/* Both branches are computed, each under its condition: a load that a condition guards is masked by it, unless the
 * condition itself, or what is around, does it anyway. */
static tir_expr widen_choice(struct vectors *v, tir_expr condition, tir_expr a, tir_expr b) {
  struct tir *ir = v->ir;
  tir_expr c = widen(v, condition);
  if (lanes_of(v, c) == 1) {
    tir_expr args[] = {c, widen_branch(v, a), widen_branch(v, b)};
    int lanes = lanes_of(v, args[1]) > lanes_of(v, args[2]) ? lanes_of(v, args[1]) : lanes_of(v, args[2]);
    args[1] = splat(v, args[1], lanes);
    args[2] = splat(v, args[2], lanes);
    return tir_call(ir, tir_type_of(ir, args[1]), tir_symbol_of(ir, "if_then_else"), args, 3);
  }
  if (++v->widened > MOST_WIDENED) v->failed = true; /* left to the serial form */
  tir_expr outer = v->mask;
  bool counted = v->choice_count < MOST_CHOICES;
  if (counted) v->around[v->choice_count++] = outer;
  v->mask = and_mask(v, outer, c);
  tir_expr x = splat(v, widen(v, a), v->lanes);
  v->mask = and_mask(v, outer, tir_unary(ir, TIR_NOT, tir_type_of(ir, c), c));
  tir_expr y = splat(v, widen(v, b), v->lanes);
  v->mask = outer;
  if (counted) v->choice_count--;
  return tir_select(ir, c, x, y);
}

static bool is_inside(struct vectors *v, tir_buffer buffer, const tir_expr *indices, uint32_t count) {
  struct tir *ir = v->ir;
  for (uint32_t i = 0; i < count; i++) {
    tir_expr extent = ir->operands.at[tir_buffer_at(ir, buffer)->shape + i];
    tir_expr zero = tir_int(ir, tir_type_of(ir, indices[i]), 0);
    if (!tir_prove_under(ir, v->given, tir_binary(ir, TIR_GE, indices[i], zero)) ||
        !tir_prove_under(ir, v->given, tir_binary(ir, TIR_LT, indices[i], extent)))
      return false;
  }
  return true;
}

/* One element for all lanes: loaded plainly where it is surely in the buffer, else by the lanes that want it. */
static tir_expr widen_scalar_load(struct vectors *v, struct tir_expr_node n, tir_expr *indices) {
  if (!v->mask || is_inside(v, n.ref, indices, n.count)) return tir_load(v->ir, n.ref, indices, n.count, TIR_NONE);
  if (n.count == 0) return tir_load(v->ir, n.ref, indices, n.count, TIR_NONE);
  indices[n.count - 1] = splat(v, indices[n.count - 1], v->lanes);
  return tir_load(v->ir, n.ref, indices, n.count, splat(v, v->mask, v->lanes));
}

static tir_expr widen_operands(struct vectors *v, struct tir_expr_node n) {
  struct tir *ir = v->ir;
  const char *name = n.kind == TIR_CALL ? tir_text(ir, n.ref) : "";
  if (n.count > TIR_MOST_RANK) {
    v->failed = true;
    return tir_int(ir, TIR_T_I32, 0);
  }
  tir_expr args[TIR_MOST_RANK];
  if (!strcmp(name, "if_then_else") && n.count == 3) {
    for (int i = 0; i < 3; i++) args[i] = ir->operands.at[n.operands + (uint32_t)i];
    return widen_choice(v, args[0], args[1], args[2]);
  }
  int lanes = 1, vectors = 0;
  for (uint32_t i = 0; i < n.count; i++) {
    args[i] = widen(v, ir->operands.at[n.operands + i]);
    if (lanes_of(v, args[i]) > 1) lanes = lanes_of(v, args[i]), vectors++;
  }
  if (n.kind == TIR_LOAD) {
    if (vectors > 1) v->failed = true; /* the flat index would be a sum of vectors: left to the serial form */
    if (vectors == 0) return widen_scalar_load(v, n, args);
    return tir_load(ir, n.ref, args, n.count, mask_of(v, n.ref, lanes));
  }
  bool elementwise = tir_type_is_float(n.type) || tir_type_is_int(n.type) || tir_type_code(n.type) == TIR_BOOL;
  static const char *const opaque[] = {"call_extern", "call_pure_extern", "tvm_access_ptr", "address_of", "access_ptr"};
  for (size_t i = 0; i < sizeof opaque / sizeof *opaque; i++) elementwise &= strcmp(name, opaque[i]) != 0;
  enum tir_device_call which = tir_device_call_named(name);
  elementwise &= which == TIR_DEVICE_CALLS || tir_device_calls[which].effects == TIR_DOES_NONE;
  if (!elementwise) v->failed = true;
  for (uint32_t i = 0; i < n.count; i++) args[i] = splat(v, args[i], lanes);
  return tir_call(ir, tir_type_with_lanes(n.type, lanes), n.ref, args, n.count);
}

static tir_expr widen_var(const struct vectors *v, tir_var var) {
  for (uint32_t i = v->let_count; i-- > 0;)
    if (v->lets[i] == var) return v->wide[i];
  assert(var == v->var);
  return v->ramp;
}

static bool differs_by_lane(const struct vectors *v, tir_expr e) {
  bool differs = tir_uses_var(v->ir, e, v->var);
  for (uint32_t i = 0; i < v->let_count && !differs; i++) differs = tir_uses_var(v->ir, e, v->lets[i]);
  return differs;
}

/* ---- What must not be computed in lanes that do not want it: divisions by zero, accesses outside buffers ---- */

struct traps {
  struct vectors *v;
  bool loads, found; /* loads: they count */
};

static bool find_trap(void *data, tir_expr e) {
  struct traps *t = data;
  struct tir *ir = t->v->ir;
  const struct tir_expr_node n = *tir_at(ir, e);
  tir_expr indices[TIR_MOST_RANK];
  bool load = t->loads && n.kind == TIR_LOAD && n.count <= TIR_MOST_RANK;
  for (uint32_t i = 0; load && i < n.count; i++) indices[i] = ir->operands.at[n.operands + i];
  t->found = t->found || tir_division_may_trap(ir, &n) || (load && !is_inside(t->v, n.ref, indices, n.count));
  return !t->found;
}

static bool may_trap(struct vectors *v, tir_expr e, bool loads) {
  struct traps t = {v, loads, false};
  tir_walk_expr(v->ir, e, find_trap, &t);
  return t.found;
}

/* Lanes that do not want the quotient divide by one. */
static tir_expr widen_division(struct vectors *v, struct tir_expr_node n) {
  struct tir *ir = v->ir;
  tir_expr a = splat(v, widen(v, n.a), v->lanes), b = splat(v, widen(v, n.b), v->lanes);
  tir_expr one = splat(v, tir_int(ir, tir_type_of(ir, n.b), 1), v->lanes);
  if (v->failed) return a;
  return tir_binary(ir, (enum tir_kind)n.kind, a, tir_select(ir, splat(v, v->mask, v->lanes), b, one));
}

/* The second of a conjunction or a disjunction, where the first does not decide. */
static tir_expr widen_second(struct vectors *v, enum tir_kind kind, tir_expr first, tir_expr second) {
  if (!may_trap(v, second, true)) return widen(v, second);
  tir_expr outer = v->mask, open = first;
  if (kind == TIR_OR) open = tir_unary(v->ir, TIR_NOT, tir_type_of(v->ir, first), first);
  bool counted = v->choice_count < MOST_CHOICES;
  if (counted) v->around[v->choice_count++] = outer;
  v->mask = and_mask(v, outer, splat(v, open, v->lanes));
  tir_expr made = splat(v, widen(v, second), v->lanes);
  v->mask = outer;
  if (counted) v->choice_count--;
  return made;
}

static tir_expr widen_node(struct vectors *v, tir_expr e) {
  struct tir *ir = v->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_VAR) return widen_var(v, n.ref);
  if (n.kind == TIR_LOAD || n.kind == TIR_CALL) return widen_operands(v, n);
  if (v->mask && tir_division_may_trap(ir, &n)) return widen_division(v, n);
  if (n.kind == TIR_AND || n.kind == TIR_OR) {
    tir_expr a = widen(v, n.a), b = widen_second(v, (enum tir_kind)n.kind, a, n.b);
    return widen_index_binary(v, (enum tir_kind)n.kind, a, b);
  }
  if (n.kind >= TIR_ADD && n.kind <= TIR_OR) {
    tir_expr a = widen(v, n.a), b = widen(v, n.b);
    return widen_index_binary(v, (enum tir_kind)n.kind, a, b);
  }
  if (n.kind == TIR_SELECT) return widen_choice(v, n.a, n.b, n.c);
  if (n.kind == TIR_NOT || n.kind == TIR_CAST) {
    tir_expr a = widen(v, n.a);
    const struct tir_expr_node *na = tir_at(ir, a);
    const struct tir_expr_node *from = tir_at(ir, n.a);
    bool wraps = tir_may_wrap(from->type, from->flags) && tir_type_bits(n.type) > tir_type_bits(from->type);
    if (n.kind == TIR_CAST && na->kind == TIR_RAMP && tir_type_is_int(n.type) && !wraps) {
      tir_expr base = tir_cast(ir, n.type, na->a);
      return tir_ramp(ir, base, tir_cast(ir, n.type, tir_at(ir, a)->b), lanes_of(v, a));
    }
    return tir_unary(ir, (enum tir_kind)n.kind, tir_type_with_lanes(n.type, lanes_of(v, a)), a);
  }
  v->failed = true;
  return e;
}

/* The outermost mask around under which the statement does a load in any case; else the present one. */
static tir_expr mask_of_load(const struct vectors *v, tir_expr load) {
  for (uint32_t k = 0; k < v->choice_count; k++)
    for (uint32_t i = 0; i < v->load_count; i++)
      if (v->loads[i].load == load && v->loads[i].mask == v->around[k]) return v->around[k];
  return v->mask;
}

static void note_load(struct vectors *v, tir_expr load) {
  if (v->load_count < MOST_LOADS) v->loads[v->load_count++] = (struct sure_load){load, v->mask};
}

/* A load under the widest mask that is safe. */
static tir_expr widen_load(struct vectors *v, tir_expr load) {
  tir_expr inner = v->mask, made;
  v->mask = mask_of_load(v, load);
  v->reused |= v->mask != inner;
  note_load(v, load);
  made = widen_node(v, load);
  v->mask = inner;
  return made;
}

static tir_expr widen(struct vectors *v, tir_expr e) {
  if (!e) return TIR_NONE;
  bool masked_load = v->mask && (tir_at(v->ir, e)->flags & TIR_HAS_LOAD), fresh;
  if (!differs_by_lane(v, e) && !masked_load && !(v->mask && may_trap(v, e, false))) return e;
  if (lanes_of(v, e) > 1) v->failed = true;
  if (v->failed) return e;
  tir_expr known = *tir_node_map_at(&v->made, e, v->mask, &fresh);
  if (!fresh) return known;
  tir_expr made = tir_at(v->ir, e)->kind == TIR_LOAD ? widen_load(v, e) : widen_node(v, e);
  return *tir_node_map_at(&v->made, e, v->mask, &fresh) = made;
}

/* ---- Statements ---- */

static void widen_store(struct vectors *v, tir_stmt s) {
  struct tir *ir = v->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank, vectors = 0;
  tir_expr indices[TIR_MOST_RANK];
  bool in_vectors = lanes_of(v, n.store.value) > 1 || tir_type_lanes(tir_buffer_at(ir, n.store.buffer)->type) > 1;
  if (rank > TIR_MOST_RANK || n.store.predicate || in_vectors) { /* vectors of vectors have no form */
    v->failed = true;
    return;
  }
  for (uint32_t i = 0; i < rank; i++) {
    indices[i] = widen(v, ir->operands.at[n.store.indices + i]);
    vectors += lanes_of(v, indices[i]) > 1;
  }
  if (vectors != 1) v->failed = true; /* a reduction, or a diagonal */
  tir_expr value = splat(v, widen(v, n.store.value), v->lanes);
  tir_expr mask = mask_of(v, n.store.buffer, v->lanes);
  if (v->failed) return;
  uint32_t first = tir_add_operands(ir, indices, rank);
  struct tir_stmt_node *to = tir_stmt_at(ir, s);
  to->store.indices = first;
  to->store.value = value;
  to->store.predicate = mask;
}

/* A value that differs from lane to lane is bound as a vector. */
static void widen_let(struct vectors *v, tir_stmt s) {
  struct tir *ir = v->ir;
  tir_var var = tir_as(ir, s, TIR_BIND)->bind.var;
  tir_expr value = widen(v, tir_as(ir, s, TIR_BIND)->bind.value);
  if (lanes_of(v, value) > 1) {
    struct tir_var_node old = ir->vars.at[var];
    if (v->let_count == MOST_LETS) v->failed = true;
    if (v->failed) return;
    tir_var wide = tir_new_let(ir, old.name, value);
    v->lets[v->let_count] = var;
    v->wide[v->let_count++] = tir_at(ir, value)->kind == TIR_RAMP ? value : tir_var_expr(ir, wide); /* as an index */
    tir_as(ir, s, TIR_BIND)->bind.var = wide;
  }
  tir_as(ir, s, TIR_BIND)->bind.value = value;
}

static void widen_list(struct vectors *v, tir_stmt first);

static tir_expr conjunction(struct tir *ir, tir_expr a, tir_expr b) {
  return a && b ? tir_binary(ir, TIR_AND, a, b) : a ? a : b;
}

/* What holds wherever a statement is reached. */
static tir_expr conditions_around(struct tir *ir, tir_stmt s) {
  tir_expr all = TIR_NONE;
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; s = p, p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_IF) && tir_stmt_at(ir, s)->list == TIR_BODY)
      all = conjunction(ir, all, tir_stmt_at(ir, p)->test.condition);
  return all;
}

/* Parts a conjunction into what is the same for all lanes and reads nothing, and the rest. TIR_NONE: there is none. */
static void part_conjunction(struct vectors *v, tir_expr condition, tir_expr *same, tir_expr *each) {
  struct tir *ir = v->ir;
  const struct tir_expr_node *n = tir_at(ir, condition);
  if (n->kind == TIR_AND) {
    tir_expr second = n->b;
    part_conjunction(v, n->a, same, each);
    part_conjunction(v, second, same, each);
    return;
  }
  bool alike = !differs_by_lane(v, condition) && !(n->flags & (TIR_HAS_LOAD | TIR_HAS_CALL)) &&
               !(*each && may_trap(v, condition, false)); /* what is the same comes first */
  tir_expr *part = alike ? same : each;
  *part = conjunction(ir, *part, condition);
}

static bool is_stored(const struct tir *ir, tir_stmt parent, tir_buffer buffer) {
  for (tir_stmt s = tir_next(ir, parent, parent); s; s = tir_next(ir, s, parent))
    if (tir_is(ir, s, TIR_STORE) && tir_may_share_memory(ir, buffer, tir_stmt_at(ir, s)->store.buffer)) return true;
  return false;
}

static bool loads_stored(const struct tir *ir, const void *branch, tir_expr e) {
  return tir_at(ir, e)->kind == TIR_LOAD && is_stored(ir, *(const tir_stmt *)branch, tir_at(ir, e)->ref);
}

/* Each statement of a branch computes the branch's mask: what it reads may change only with the last of them. */
static bool changes_its_condition(const struct tir *ir, tir_stmt s) {
  tir_stmt only = tir_stmt_at(ir, s)->first[TIR_BODY];
  if (tir_is(ir, only, TIR_STORE) && !tir_stmt_at(ir, only)->next) return false;
  return tir_any_node(ir, tir_stmt_at(ir, s)->test.condition, TIR_HAS_LOAD, loads_stored, &s);
}

/* What all lanes agree on stays a branch; what they do not becomes a mask. */
static void widen_if(struct vectors *v, tir_stmt s) {
  struct tir *ir = v->ir;
  tir_expr same = TIR_NONE, each = TIR_NONE, outer = v->mask, given = v->given;
  part_conjunction(v, tir_stmt_at(ir, s)->test.condition, &same, &each);
  if (each) each = widen(v, each);
  if (each && lanes_of(v, each) == 1) {
    same = conjunction(ir, same, each);
    each = TIR_NONE;
  }
  if (each && (tir_stmt_at(ir, s)->first[TIR_ELSE] || changes_its_condition(ir, s))) {
    v->failed = true;
    return;
  }
  if (each) v->mask = and_mask(v, outer, each);
  v->given = conjunction(ir, given, same);
  widen_list(v, tir_stmt_at(ir, s)->first[TIR_BODY]);
  v->mask = outer;
  v->given = given;
  widen_list(v, tir_stmt_at(ir, s)->first[TIR_ELSE]);
  tir_stmt_at(ir, s)->test.condition = same ? same : tir_int(ir, TIR_T_BOOL, 1);
}

/* Another statement does other loads. */
static void forget_loads(struct vectors *v) {
  assert(v->choice_count == 0);
  v->load_count = 0;
  forget_reused(v);
}

static void widen_list(struct vectors *v, tir_stmt first) {
  struct tir *ir = v->ir;
  for (tir_stmt s = first; s && !v->failed; s = tir_stmt_at(ir, s)->next) {
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    forget_loads(v);
    if (n.kind == TIR_STORE)
      widen_store(v, s);
    else if (n.kind == TIR_BIND)
      widen_let(v, s);
    else if (n.kind == TIR_IF)
      widen_if(v, s);
    else if (n.kind == TIR_LOOP && !differs_by_lane(v, n.loop.min) && !differs_by_lane(v, n.loop.extent) &&
             n.loop_kind != TIR_PARALLEL && n.loop_kind != TIR_VECTORIZED)
      widen_list(v, n.first[TIR_BODY]);
    else
      v->failed = true;
  }
}

static void vectorize(struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  int64_t extent = tir_loop_extent(ir, loop);
  tir_stmt_at(ir, loop)->loop_kind = TIR_SERIAL;
  if (extent < 0 || extent > MOST_LANES) lower_note(low, loop, "vectorized: its extent is no number of lanes");
  if (extent < 2 || extent > MOST_LANES) return;
  tir_stmt copy = tir_clone_stmt(ir, loop); /* the loop stays as it is should a statement have no vector form */
  n = *tir_stmt_at(ir, copy);
  assert(n.kind == TIR_LOOP && !n.parent && n.loop.var != tir_as(ir, loop, TIR_LOOP)->loop.var);
  tir_type type = ir->vars.at[n.loop.var].type;
  struct vectors v = {.ir = ir,
                      .var = n.loop.var,
                      .lanes = (int)extent,
                      .first_tile = low->first_tile,
                      .given = conditions_around(ir, loop)};
  v.ramp = tir_ramp(ir, n.loop.min, tir_int(ir, type, 1), (int)extent);
  assert(tir_type_lanes(tir_type_of(ir, v.ramp)) == v.lanes);
  tir_node_map_init(&v.made);
  widen_list(&v, n.first[TIR_BODY]);
  tir_node_map_free(&v.made);
  if (v.failed) {
    lower_note(low, loop, "vectorized: a statement in it has no form for vectors");
    tir_kill(ir, copy);
    return;
  }
  tir_insert_before(ir, loop, copy);
  tir_kill_alone(ir, copy);
  tir_kill(ir, loop);
}

bool lower_vectorize(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind != TIR_VECTORIZED) continue;
    next = tir_after(ir, s, low->body);
    vectorize(low, s);
  }
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) /* in one that became serial */
    if (tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_VECTORIZED)
      tir_stmt_at(ir, s)->loop_kind = TIR_SERIAL;
  return lower_loops(low);
}

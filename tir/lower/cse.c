/* Share: a value that an expression uses again is bound to a variable, by a let, and computed once. Expressions are
 * graphs; code is made of them as of trees, where a chain of stages that each read the last twice doubles at each
 * stage.
 * Requires: nothing. Gives: expressions that are not much larger written out than their graph; what cannot be
 * brought there is refused. Keeps: results, and under which conditions a value is computed.
 *
 * A region is an expression without the parts that are computed only under a condition (the branches of a choice,
 * the right side of and and or, the body of a let): these are regions of their own. What is computed anyway in a
 * region is bound around the whole of it, and seen by the regions in it; so a load or a division that a condition
 * guards stays guarded. A let lies within one statement: no store comes between a load and its use. Small values are
 * not bound, those of addresses less than others: code generators find them equal, and see addresses whole. */
#include "lower.h"
#include "tir/analysis/loads.h"
#include "tir/node/node_map.h"

#include <stdlib.h>

enum {
  LEAST_VALUE = 16,      /* nodes of a value that is bound, written out */
  LEAST_INDEX = 64,      /* the same in an address */
  COST_OF_CALL = 16,     /* of a function, in nodes */
  MOST_WORK = 1 << 22,   /* nodes looked at in a statement */
  MOST_WRITTEN = 1 << 20 /* nodes of an expression, written out */
};

struct sharing {
  struct tir *ir;
  struct tir_node_map bound; /* the variable that stands for a node, where one is in scope */
  struct tir_node_map made;  /* what became of a node, by region */
  uint32_t regions, work;
  bool failed;
};

/* ---- Parts of a node ---- */

struct part {
  tir_expr expr;
  bool guarded, indexes; /* computed under a condition; an index of a load */
};

/* A call that may do more than give a value, or takes addresses, is left as it is. */
static bool is_opaque(const struct tir *ir, const struct tir_expr_node *n) {
  return (n->kind == TIR_CALL && !tir_is_pure_call(ir, n)) || n->kind > TIR_CALL;
}

static uint32_t part_count(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return n->kind <= TIR_DATA || is_opaque(ir, n) ? 0 : 3u + n->count;
}

static struct part part_at(const struct tir *ir, tir_expr e, uint32_t i) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (i >= 3) {
    return (struct part){ir->operands.at[n->operands + i - 3], tir_is_choice(ir, n) && i > 3, n->kind == TIR_LOAD};
  }
  bool decides = n->kind == TIR_AND || n->kind == TIR_OR || n->kind == TIR_LET;
  return (struct part){(const tir_expr[]){n->a, n->b, n->c}[i], (n->kind == TIR_SELECT || decides) && i > 0, false};
}

/* ---- What a region computes ---- */

struct region {
  struct sharing *s;
  struct tir_node_map always;  /* nodes that are computed whenever the region is */
  struct tir_node_map uses;    /* of each node, by parts of nodes */
  struct tir_node_map indexes; /* nodes met (second: 1, in an address) */
  struct tir_node_map costs;   /* nodes of each, written out; 0: something opaque is in it */
  tir_expr *order;             /* all nodes, each after its parts */
  uint32_t count, capacity;
};

static bool is_end(const struct region *r, tir_expr e) { return !e || tir_node_map_get(&r->s->bound, e, 0); }

/* Whether it is met for the first time. */
static bool mark(struct region *r, struct tir_node_map *map, tir_expr e, uint32_t second) {
  if (tir_node_map_get(map, e, second)) return false;
  tir_node_map_set(map, e, second, 1);
  if (++r->s->work > MOST_WORK) r->s->failed = true;
  return !r->s->failed;
}

static void find_always(struct region *r, tir_expr e) {
  if (is_end(r, e) || !mark(r, &r->always, e, 0)) return;
  for (uint32_t i = 0; i < part_count(r->s->ir, e); i++) {
    struct part p = part_at(r->s->ir, e, i);
    if (!p.guarded) find_always(r, p.expr);
  }
}

static void find_indexes(struct region *r, tir_expr e, bool indexes) {
  if (is_end(r, e) || !mark(r, &r->indexes, e, indexes)) return;
  for (uint32_t i = 0; i < part_count(r->s->ir, e); i++) {
    struct part p = part_at(r->s->ir, e, i);
    find_indexes(r, p.expr, indexes || p.indexes);
  }
}

static void count_uses(struct region *r, tir_expr e) {
  if (is_end(r, e)) return;
  uint32_t uses = tir_node_map_get(&r->uses, e, 0);
  tir_node_map_set(&r->uses, e, 0, uses + 1);
  if (uses) return;
  for (uint32_t i = 0; i < part_count(r->s->ir, e); i++) count_uses(r, part_at(r->s->ir, e, i).expr);
  if (r->count == r->capacity) {
    r->capacity = r->capacity ? 2 * r->capacity : 64;
    r->order = realloc(r->order, r->capacity * sizeof *r->order);
    if (!r->order) abort();
  }
  r->order[r->count++] = e;
}

/* ---- What of it is bound ---- */

static uint32_t cost_of(struct region *r, tir_expr e) {
  const struct tir_expr_node *n = tir_at(r->s->ir, e);
  if (n->kind > TIR_DATA && is_opaque(r->s->ir, n)) return 0;
  uint64_t cost = n->kind == TIR_CALL ? COST_OF_CALL : 1;
  for (uint32_t i = 0; i < part_count(r->s->ir, e); i++) {
    struct part p = part_at(r->s->ir, e, i);
    if (!p.expr) continue;
    uint32_t of_part = is_end(r, p.expr) ? 1 : tir_node_map_get(&r->costs, p.expr, 0);
    if (!of_part) return 0;
    cost += of_part;
  }
  return cost > UINT32_MAX ? UINT32_MAX : (uint32_t)cost;
}

/* Vectors of integers are ramps where they stand in addresses, and have to be seen as such; vectors of truth values
 * have no form of their own in C. */
static bool has_variables(const struct region *r, tir_expr e) {
  tir_type t = tir_type_of(r->s->ir, e);
  bool indexes = tir_node_map_get(&r->indexes, e, 1);
  return tir_type_is_float(t) || (tir_type_is_int(t) && (tir_type_lanes(t) == 1 || !indexes));
}

static bool is_bound(const struct region *r, tir_expr top, tir_expr e, uint32_t cost) {
  uint32_t least = tir_node_map_get(&r->indexes, e, 1) ? LEAST_INDEX : LEAST_VALUE;
  return e != top && tir_node_map_get(&r->always, e, 0) && tir_node_map_get(&r->uses, e, 0) > 1 && cost >= least &&
         has_variables(r, e);
}

/* Moves what is to be bound to the front of the order, where it stays in order; gives its number. */
static uint32_t choose(struct region *r, tir_expr top) {
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    tir_expr e = r->order[i];
    uint32_t cost = cost_of(r, e);
    bool binds = is_bound(r, top, e, cost);
    tir_node_map_set(&r->costs, e, 0, binds ? 1 : cost);
    if (binds) r->order[chosen++] = e;
  }
  return chosen;
}

/* ---- Rebuilding ---- */

static tir_expr share_region(struct sharing *s, tir_expr top);
static tir_expr rebuild(struct sharing *s, uint32_t region, tir_expr e);

static tir_expr rebuild_part(struct sharing *s, uint32_t region, struct part p) {
  if (!p.expr || !p.guarded) return rebuild(s, region, p.expr);
  tir_expr made = tir_node_map_get(&s->made, p.expr, 2 * region + 1);
  if (made) return made;
  made = share_region(s, p.expr);
  tir_node_map_set(&s->made, p.expr, 2 * region + 1, made);
  return made;
}

static tir_expr rebuild_node(struct sharing *s, uint32_t region, tir_expr e) {
  struct tir *ir = s->ir;
  struct tir_expr_node n = *tir_at(ir, e);
  uint32_t count = part_count(ir, e);
  if (!count) return e;
  tir_expr *parts = malloc(count * sizeof *parts);
  if (!parts) abort();
  for (uint32_t i = 0; i < count; i++) parts[i] = rebuild_part(s, region, part_at(ir, e, i));
  tir_expr made;
  if (n.kind == TIR_LOAD)
    made = tir_load(ir, n.ref, parts + 3, n.count, parts[0]);
  else if (n.kind == TIR_CALL)
    made = tir_call(ir, n.type, n.ref, parts + 3, n.count);
  else
    made = tir_rebuild(ir, n, parts[0], parts[1], parts[2]);
  free(parts);
  return made;
}

static tir_expr rebuild(struct sharing *s, uint32_t region, tir_expr e) {
  if (!e || s->failed) return e;
  tir_expr made = tir_node_map_get(&s->bound, e, 0);
  if (!made) made = tir_node_map_get(&s->made, e, 2 * region);
  if (made) return made;
  made = rebuild_node(s, region, e);
  tir_node_map_set(&s->made, e, 2 * region, made);
  return made;
}

static tir_var new_variable(struct sharing *s, tir_expr e) {
  tir_name name = tir_name_of(s->ir, "shared");
  return tir_new_let(s->ir, name, e);
}

/* Binds nodes, each after what it is made of, around the region's expression. */
static tir_expr bind(struct sharing *s, tir_expr top, const tir_expr *nodes, uint32_t count) {
  uint32_t region = s->regions++;
  tir_var *vars = malloc((count + 1) * sizeof *vars);
  tir_expr *values = malloc((count + 1) * sizeof *values);
  if (!vars || !values) abort();
  for (uint32_t i = 0; i < count; i++) {
    values[i] = rebuild(s, region, nodes[i]);
    vars[i] = new_variable(s, nodes[i]);
    tir_node_map_set(&s->bound, nodes[i], 0, tir_var_expr(s->ir, vars[i]));
  }
  tir_expr made = rebuild(s, region, top);
  for (uint32_t i = count; i-- > 0;) {
    made = tir_let(s->ir, vars[i], values[i], made);
    tir_node_map_set(&s->bound, nodes[i], 0, TIR_NONE);
  }
  free(vars);
  free(values);
  return made;
}

static tir_expr share_region(struct sharing *s, tir_expr top) {
  struct region *r = calloc(1, sizeof *r);
  if (!r) abort();
  if (tir_node_map_get(&s->bound, top, 0)) {
    free(r);
    return tir_node_map_get(&s->bound, top, 0);
  }
  r->s = s;
  tir_node_map_init(&r->always), tir_node_map_init(&r->uses);
  tir_node_map_init(&r->indexes), tir_node_map_init(&r->costs);
  find_always(r, top);
  find_indexes(r, top, false);
  count_uses(r, top);
  tir_expr made = s->failed ? top : bind(s, top, r->order, choose(r, top));
  tir_node_map_free(&r->always), tir_node_map_free(&r->uses);
  tir_node_map_free(&r->indexes), tir_node_map_free(&r->costs);
  free(r->order);
  free(r);
  return made;
}

/* ---- Statements ---- */

static bool is_node(void *data, tir_expr e) {
  (void)data, (void)e;
  return true;
}

static uint32_t written_out(const struct tir *ir, tir_expr e) { return tir_count_in_tree(ir, e, is_node, NULL); }

static tir_expr share(struct tir *ir, tir_expr e, bool *failed) {
  if (!e || written_out(ir, e) <= LEAST_VALUE) return e;
  struct sharing s = {.ir = ir, .regions = 1};
  tir_node_map_init(&s.bound), tir_node_map_init(&s.made);
  tir_expr made = share_region(&s, e);
  tir_node_map_free(&s.bound), tir_node_map_free(&s.made);
  *failed |= s.failed || written_out(ir, made) > MOST_WRITTEN;
  return made;
}

static void share_store(struct tir *ir, tir_stmt s, bool *failed) {
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  uint32_t rank = tir_buffer_at(ir, n.store.buffer)->rank;
  tir_expr value = share(ir, n.store.value, failed), predicate = share(ir, n.store.predicate, failed);
  for (uint32_t i = 0; i < rank; i++) *failed |= written_out(ir, ir->operands.at[n.store.indices + i]) > MOST_WRITTEN;
  tir_as(ir, s, TIR_STORE)->store.value = value;
  tir_as(ir, s, TIR_STORE)->store.predicate = predicate;
}

static void share_statement(struct tir *ir, tir_stmt s, bool *failed) {
  tir_expr made;
  switch (tir_stmt_at(ir, s)->kind) {
  case TIR_STORE: share_store(ir, s, failed); break;
  case TIR_IF:
  case TIR_WHILE:
  case TIR_ASSERT:
    made = share(ir, tir_stmt_at(ir, s)->test.condition, failed);
    tir_stmt_at(ir, s)->test.condition = made;
    break;
  case TIR_BIND:
    made = share(ir, tir_as(ir, s, TIR_BIND)->bind.value, failed);
    tir_as(ir, s, TIR_BIND)->bind.value = made;
    break;
  case TIR_EVALUATE: *failed |= written_out(ir, tir_as(ir, s, TIR_EVALUATE)->evaluate.value) > MOST_WRITTEN; break;
  case TIR_LOOP:
    *failed |= written_out(ir, tir_as(ir, s, TIR_LOOP)->loop.min) > MOST_WRITTEN ||
               written_out(ir, tir_as(ir, s, TIR_LOOP)->loop.extent) > MOST_WRITTEN;
    break;
  default: break;
  }
}

/* What stands below an instruction's attribute is not emitted, but what the instruction is known to compute. */
bool lower_cse(struct lowering *low) {
  struct tir *ir = low->ir;
  bool failed = false;
  for (tir_stmt s = low->body, next; s && !failed; s = next) {
    bool instruction = tir_instruction_of(ir, s) != TIR_INSTRUCTIONS;
    next = instruction ? tir_after(ir, s, low->body) : tir_next(ir, s, low->body);
    if (!instruction) share_statement(ir, s, &failed);
  }
  return !failed || tir_refuse(ir, low->err, MS_TOO_LARGE, TIR_NONE,
                               "an expression of %s has more than %d nodes when each use of a part is counted",
                               tir_text(ir, ir->funcs.at[low->func].name), MOST_WRITTEN);
}

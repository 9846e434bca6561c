/* Commutative updates: whether the order in which iterations of a block come to an element matters. */
#include "dependence.h"
#include "iteration_order.h"
#include "tir/analysis/analysis.h"
#include "tir/analysis/loads.h"

/* The operation by which repeated updates combine an element; sums and products count differences and quotients. */
static uint32_t operation_of(const struct tir *ir, const struct tir_expr_node *n) {
  switch (n->kind) {
  case TIR_ADD:
  case TIR_MUL:
  case TIR_MIN:
  case TIR_MAX:
  case TIR_AND:
  case TIR_OR: return n->kind;
  case TIR_SUB: return TIR_ADD;
  case TIR_DIV: return tir_type_is_float(n->type) ? TIR_MUL : 0;
  case TIR_CALL:
    return !strncmp(tir_text(ir, n->ref), "bitwise_", 8) && strcmp(tir_text(ir, n->ref), "bitwise_not") ? n->ref << 8
                                                                                                        : 0;
  default: return 0;
  }
}

/* What the updates of a block do to what they combine. */
struct updates {
  uint32_t operation;    /* 0: none is found so far */
  bool narrows, to_bool; /* a conversion of integers leaves bits out; one gives a bool */
};

/* So it is with the conversions around the operation: the lower bits of sums, products and bitwise results do not
 * depend on the order of the operands, but those of maxima do, and so does whether a sum is 0 on the way. */
static bool commutes_converted(const struct updates *u) {
  bool of_conditions = u->operation == TIR_AND || u->operation == TIR_OR || u->operation == TIR_MUL;
  bool extreme = u->operation == TIR_MIN || u->operation == TIR_MAX;
  return !(u->narrows && extreme) && (!u->to_bool || of_conditions || !u->operation);
}

/* The name of a dot product of x86 that saturates (vpdpbusds, vpdpwssds): a sum that was cut at its limit depends on
 * what came before. */
static bool saturates(const char *dot) {
  size_t letters = strspn(dot, "abcdefghijklmnopqrstuvwxyz");
  return letters > 1 && dot[letters - 1] == 's' && dot[letters - 2] == 'd';
}

/* LLVM's dot products, of x86 and Arm, which add to their first operand the products of the others; no other function
 * that is called by name: exp(C) + x is no sum. */
static bool accumulates(const struct tir *ir, const struct tir_expr_node *call, tir_expr load) {
  static const char *const names[] = {".vpdp", ".dpbf16ps", ".sdot", ".udot", ".smmla", ".ummla", ".usmmla", ".bfdot"};
  const char *function = tir_text(ir, call->ref);
  if (strcmp(function, "call_llvm_intrin") != 0 && strcmp(function, "call_llvm_pure_intrin") != 0) return false;
  const tir_expr *operands = tir_operands(ir, call->operands);
  bool known = false;
  uint32_t loads = 0;
  for (uint32_t i = 0; i < call->count; i++) {
    const struct tir_expr_node *n = tir_at(ir, operands[i]);
    for (size_t k = 0; n->kind == TIR_STRING_IMM && k < sizeof names / sizeof *names; k++) {
      const char *found = strstr(tir_text(ir, n->ref), names[k]);
      known |= found && !saturates(found + 1);
    }
    if (operands[i] == load)
      loads++;
    else if (tir_uses_buffer(ir, operands[i], tir_at(ir, load)->ref))
      return false;
  }
  return known && loads == 1;
}

/* Of what e computes of the element `load`: one of e's operands holds it, no other. */
static bool combines(struct tir *ir, tir_expr e, tir_expr load, struct updates *u);

static bool combines_either(struct tir *ir, tir_expr a, tir_expr b, bool both, tir_expr load, struct updates *u) {
  tir_buffer buffer = tir_at(ir, load)->ref;
  bool in_a = tir_uses_buffer(ir, a, buffer), in_b = tir_uses_buffer(ir, b, buffer);
  if (in_a == in_b) return both && in_a && combines(ir, a, load, u) && combines(ir, b, load, u);
  return !both && combines(ir, in_a ? a : b, load, u);
}

static bool combines(struct tir *ir, tir_expr e, tir_expr load, struct updates *u) {
  struct tir_expr_node n = *tir_at(ir, e);
  if (e == load) return true;
  if (n.kind == TIR_CAST) {
    tir_type from = tir_type_of(ir, n.a);
    u->narrows |= !tir_type_is_float(n.type) && tir_type_bits(n.type) < tir_type_bits(from);
    u->to_bool |= tir_type_code(n.type) == TIR_BOOL && tir_type_code(from) != TIR_BOOL;
    return tir_type_is_float(n.type) == tir_type_is_float(from) && combines(ir, n.a, load, u);
  }
  bool choice = n.kind == TIR_CALL && tir_is_choice(ir, &n);
  if (n.kind == TIR_SELECT || choice) {
    const uint32_t *of = choice ? tir_operands(ir, n.operands) : NULL;
    tir_expr condition = choice ? of[0] : n.a, b = choice ? of[1] : n.b, c = choice ? of[2] : n.c;
    return !tir_uses_buffer(ir, condition, tir_at(ir, load)->ref) && combines_either(ir, b, c, true, load, u);
  }
  if (n.kind == TIR_CALL && accumulates(ir, &n, load)) {
    bool same = !u->operation || u->operation == TIR_ADD;
    u->operation = TIR_ADD;
    return same;
  }
  uint32_t own = operation_of(ir, &n);
  if (!own || (u->operation && u->operation != own)) return false;
  u->operation = own;
  if (n.kind == TIR_CALL)
    return n.count == 2 &&
           combines_either(ir, ir->operands.at[n.operands], ir->operands.at[n.operands + 1], false, load, u);
  bool ordered = n.kind == TIR_SUB || n.kind == TIR_DIV;
  return (!ordered || !tir_uses_buffer(ir, n.b, tir_at(ir, load)->ref)) &&
         combines_either(ir, n.a, n.b, false, load, u);
}

/* An expression of s, in the block, with what iterations of blocks between are bound to in their place. */
static tir_expr over_iterations(struct tir *ir, tir_stmt s, tir_expr e, tir_block block) {
  for (tir_block b = tir_is(ir, s, TIR_BLOCK) ? s : tir_parent_block(ir, s); b != block; b = tir_parent_block(ir, b)) {
    tir_subst_iters(ir, b);
    e = tir_subst(ir, e);
    tir_subst_clear(ir);
  }
  return e;
}

static bool uses_iterations(const struct tir *ir, tir_expr e, tir_block block, bool any) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
    if ((any || ir->iters.at[i].kind != TIR_SPATIAL) && tir_uses_var(ir, e, ir->iters.at[i].var)) return true;
  return false;
}

static bool uses_loops_in_reach(const struct tir *ir, tir_expr e, tir_block block) {
  enum { MOST = 48 };
  tir_var vars[MOST];
  uint32_t count = tir_loops_in_reach(ir, block, vars, MOST);
  return count > MOST || tir_uses_any_var(ir, e, vars, count);
}

static bool depends_on_reductions(struct tir *ir, tir_stmt s, tir_expr e, tir_block block) {
  e = over_iterations(ir, s, e, block);
  return uses_iterations(ir, e, block, false) || tir_varies_by_itself(ir, e);
}

static bool depends_on_any(struct tir *ir, tir_stmt s, tir_expr e, tir_block block) {
  e = over_iterations(ir, s, e, block);
  return uses_iterations(ir, e, block, true) || uses_loops_in_reach(ir, e, block) || tir_varies_by_itself(ir, e);
}

/* Something that an expression of s, in the block, may have. */
typedef bool expr_test(struct tir *ir, tir_stmt s, tir_expr e, tir_block block);

/* A condition around the statement, in the block, has test. */
static bool any_condition(struct tir *ir, tir_stmt s, tir_block block, expr_test *test) {
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p != block; p = tir_stmt_at(ir, p)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, p);
    tir_expr condition = n->kind == TIR_IF || n->kind == TIR_WHILE ? n->test.condition
                         : n->kind == TIR_BLOCK                    ? n->block.predicate
                                                                   : TIR_NONE;
    if (condition && test(ir, p, condition, block)) return true;
  }
  return false;
}

static bool loads_own(struct tir *ir, tir_stmt s, tir_expr e, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  (void)s;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    if (tir_uses_buffer(ir, e, ir->regions.at[i].buffer)) return true;
  return false;
}

/* The value of an update loads of another buffer that the block writes: what is combined depends on how far that has
 * come. */
static bool loads_others(struct tir *ir, const struct tir_stmt_node *store, tir_block block) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  tir_buffer own = store->store.buffer;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++) {
    tir_buffer buffer = ir->regions.at[i].buffer;
    if (buffer != own && tir_uses_buffer(ir, store->store.value, buffer)) return true;
  }
  return false;
}

/* A store of the block goes on with what is in the buffer: one that overwrites an element takes away what iterations
 * before it have added, and not what those after it add. */
static bool is_updated_beside(const struct tir *ir, tir_buffer buffer, tir_block block) {
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_BODY]; s; s = tir_next(ir, s, block))
    if (tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == buffer &&
        tir_uses_buffer(ir, tir_as(ir, s, TIR_STORE)->store.value, buffer))
      return true;
  return false;
}

/* Loops in the block change the expression. */
static bool depends_on_inner(struct tir *ir, tir_stmt s, tir_expr e, tir_block block) {
  e = over_iterations(ir, s, e, block);
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p != block; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && tir_uses_var(ir, e, tir_as(ir, p, TIR_LOOP)->loop.var)) return true;
  return false;
}

/* An index of the store has test. */
static bool any_index(struct tir *ir, tir_stmt store, tir_block block, expr_test *test) {
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  for (uint32_t d = 0; d < tir_buffer_at(ir, n.store.buffer)->rank; d++)
    if (test(ir, store, ir->operands.at[n.store.indices + d], block)) return true;
  return false;
}

/* Both stores give all their elements one value. */
static bool store_the_same(struct tir *ir, tir_stmt a, tir_stmt b, tir_block block) {
  tir_expr value = tir_as(ir, a, TIR_STORE)->store.value, other = tir_as(ir, b, TIR_STORE)->store.value;
  return over_iterations(ir, a, value, block) == over_iterations(ir, b, other, block) &&
         !depends_on_inner(ir, a, value, block) && !depends_on_inner(ir, b, other, block);
}

/* Where iterations store to other elements, one may store to what another has given another value: by another store, or
 * by the same one in another step of a loop in the block. */
static bool overwrites_others(struct tir *ir, tir_stmt store, tir_block block, expr_test *differs) {
  bool moves = any_index(ir, store, block, differs);
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_BODY]; s; s = tir_next(ir, s, block))
    if (tir_is(ir, s, TIR_STORE) && tir_stmt_at(ir, s)->store.buffer == tir_stmt_at(ir, store)->store.buffer &&
        (moves || any_index(ir, s, block, differs)) && !store_the_same(ir, store, s, block))
      return true;
  return false;
}

static bool is_commutative_store(struct tir *ir, tir_stmt s, tir_block block, bool any, struct updates *u) {
  MS_CHECK(tir_is(ir, s, TIR_STORE));
  expr_test *differs = any ? depends_on_any : depends_on_reductions;
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  if (any_condition(ir, s, block, loads_own) || any_index(ir, s, block, loads_own)) return false;
  if (tir_uses_buffer(ir, n.store.value, n.store.buffer)) {
    if (loads_others(ir, &n, block)) return false;
    tir_expr load = tir_load(ir, n.store.buffer, tir_operands(ir, n.store.indices),
                             tir_buffer_at(ir, n.store.buffer)->rank, TIR_NONE);
    return combines(ir, n.store.value, load, u) && commutes_converted(u);
  }
  return !is_updated_beside(ir, n.store.buffer, block) && !differs(ir, s, n.store.value, block) &&
         !any_condition(ir, s, block, differs) && !loads_own(ir, s, n.store.value, block) &&
         !overwrites_others(ir, s, block, differs);
}

bool tir_is_commutative(struct tir *ir, tir_block block, bool any) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct updates u = {0};
  bool stores = true;
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_BODY]; s && stores; s = tir_next(ir, s, block)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind == TIR_BIND || (n->kind == TIR_BLOCK && n->first[TIR_INIT]))
      stores = false;
    else if (n->kind == TIR_STORE)
      stores = is_commutative_store(ir, s, block, any, &u);
  }
  return stores || tir_is_known_update(ir, block);
}

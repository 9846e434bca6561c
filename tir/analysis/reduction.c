/* Which reduction a block computes: its statements are taken apart, and what a known reducer would make of the parts is
 * compared with what stands there. Expressions are interned, so that the comparison is one of indices. */
#include "analysis.h"

/* ---- The reducers ---- */

enum identity { ZERO, ONE, MINUS_ONE, LEAST, GREATEST, LEAST_FINITE };

/* Up to TIR_MAX `kind` combines each buffer by itself; else it compares the values of an arg reducer, and `tie` the
 * indices of equal values (0: the comparison of values decides). TIR_CALL: combine_exps does it. */
static const struct {
  uint8_t count, kind, tie, identity[TIR_MOST_REDUCED];
} reducers[TIR_REDUCER_COUNT] = {
    [TIR_REDUCE_SUM] = {1, TIR_ADD, 0, {ZERO}},
    [TIR_REDUCE_PRODUCT] = {1, TIR_MUL, 0, {ONE}},
    [TIR_REDUCE_MIN] = {1, TIR_MIN, 0, {GREATEST}},
    [TIR_REDUCE_MAX] = {1, TIR_MAX, 0, {LEAST}},
    [TIR_REDUCE_SUM_PAIR] = {2, TIR_ADD, 0, {ZERO, ZERO}},
    [TIR_REDUCE_ARGMAX] = {2, TIR_GE, 0, {MINUS_ONE, LEAST}},
    [TIR_REDUCE_ARGMAX_FIRST] = {2, TIR_GT, TIR_LT, {MINUS_ONE, LEAST}},
    [TIR_REDUCE_ARGMAX_LAST] = {2, TIR_GT, TIR_GT, {MINUS_ONE, LEAST}},
    [TIR_REDUCE_ARGMIN] = {2, TIR_LE, 0, {MINUS_ONE, GREATEST}},
    [TIR_REDUCE_ARGMIN_FIRST] = {2, TIR_LT, TIR_LT, {MINUS_ONE, GREATEST}},
    [TIR_REDUCE_ARGMIN_LAST] = {2, TIR_LT, TIR_GT, {MINUS_ONE, GREATEST}},
    [TIR_REDUCE_MAX_AND_EXPS] = {2, TIR_CALL, 0, {LEAST_FINITE, ZERO}},
};

static tir_expr as_type(struct tir *ir, tir_type type, tir_expr e) {
  return tir_type_of(ir, e) == type ? e : tir_unary(ir, TIR_CAST, type, e);
}

/* The greater maximum m, and the sums brought to it: of the factors exp(left - m) and exp(right - m) that the rule has,
 * one is exp(0), the other exp(-|left - right|). m * 0 adds nothing, but NaN where the greatest element is infinite, as
 * the sum of exp(x - m) has it; m - m would be left out where sums may be reassociated. */
static void combine_exps(struct tir *ir, const tir_expr *left, const tir_expr *right, tir_expr *out) {
  tir_type type = tir_type_of(ir, left[1]);
  tir_expr most = tir_binary(ir, TIR_MAX, left[0], right[0]), wins = tir_binary(ir, TIR_GE, left[0], right[0]);
  tir_expr apart = tir_binary(ir, TIR_SUB, as_type(ir, type, left[0]), as_type(ir, type, right[0]));
  tir_expr distance = tir_call(ir, type, tir_symbol_of(ir, "fabs"), &apart, 1);
  tir_expr below = tir_binary(ir, TIR_SUB, tir_float(ir, type, 0), distance);
  tir_expr scale = tir_call(ir, type, tir_symbol_of(ir, "exp"), &below, 1);
  tir_expr scaled = tir_binary(ir, TIR_MUL, tir_select(ir, wins, right[1], left[1]), scale);
  tir_expr sum = tir_binary(ir, TIR_ADD, tir_select(ir, wins, left[1], right[1]), scaled);
  tir_expr nothing = tir_binary(ir, TIR_MUL, as_type(ir, type, most), tir_float(ir, type, 0));
  out[0] = most;
  out[1] = tir_binary(ir, TIR_ADD, sum, nothing);
}

void tir_combine(struct tir *ir, enum tir_reducer reducer, const tir_expr *left, const tir_expr *right, tir_expr *out) {
  MS_CHECK(reducer < TIR_REDUCER_COUNT);
  enum tir_kind kind = (enum tir_kind)reducers[reducer].kind, tie = (enum tir_kind)reducers[reducer].tie;
  if (kind <= TIR_MAX) {
    for (uint32_t i = 0; i < reducers[reducer].count; i++) out[i] = tir_binary(ir, kind, left[i], right[i]);
    return;
  }
  if (reducer == TIR_REDUCE_MAX_AND_EXPS) {
    combine_exps(ir, left, right, out);
    return;
  }
  tir_expr larger = tir_binary(ir, kind, left[1], right[1]), wins = larger;
  if (tie) {
    tir_expr equal = tir_binary(ir, TIR_EQ, left[1], right[1]), before = tir_binary(ir, tie, left[0], right[0]);
    wins = tir_binary(ir, TIR_OR, larger, tir_binary(ir, TIR_AND, equal, before));
  }
  tir_expr index = tir_select(ir, wins, left[0], right[0]), value = tir_select(ir, larger, left[1], right[1]);
  out[0] = index;
  out[1] = value;
}

/* ---- Identities ---- */

static bool is_extreme_int(tir_type type, int64_t value, bool greatest) {
  int bits = tir_type_bits(type);
  if (tir_type_code(type) == TIR_INT) {
    int64_t most = (int64_t)(UINT64_MAX >> (65 - bits));
    return value == (greatest ? most : -most - 1);
  }
  if (tir_type_code(type) != TIR_UINT) return false;
  /* The largest uint64 is no constant of this IR. */
  return greatest ? bits < 64 && value == (int64_t)(UINT64_MAX >> (64 - bits)) : value == 0;
}

static bool is_extreme_float(tir_type type, double value, bool greatest) {
  if (!greatest) value = -value;
  return value == tir_greatest_float(type) || value == tir_greatest_written(type);
}

static bool is_identity(const struct tir *ir, tir_expr e, enum identity wanted) {
  static const int plain[] = {[ZERO] = 0, [ONE] = 1, [MINUS_ONE] = -1};
  const struct tir_expr_node *n = tir_at(ir, e);
  if (wanted == LEAST_FINITE) /* less than it is infinity, whose distance to itself is no number */
    return n->kind == TIR_FLOAT_IMM && n->real == -tir_greatest_float(n->type);
  if (n->kind == TIR_INT_IMM)
    return wanted < LEAST ? n->imm == plain[wanted] : is_extreme_int(n->type, n->imm, wanted == GREATEST);
  if (n->kind == TIR_FLOAT_IMM)
    return wanted < LEAST ? n->real == plain[wanted] : is_extreme_float(n->type, n->real, wanted == GREATEST);
  return false;
}

bool tir_is_identity(const struct tir *ir, tir_expr e, enum tir_reducer reducer, uint32_t buffer) {
  MS_CHECK(reducer < TIR_REDUCER_COUNT && buffer < reducers[reducer].count);
  return is_identity(ir, e, (enum identity)reducers[reducer].identity[buffer]);
}

/* ---- A block's stores ---- */

struct store {
  tir_buffer buffer;
  uint32_t indices;
  tir_expr value;
};

static struct store store_of(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  return (struct store){n->store.buffer, n->store.indices, n->store.value};
}

static bool is_plain_store(const struct tir *ir, tir_stmt s) {
  return s && tir_is(ir, s, TIR_STORE) && !tir_as(ir, s, TIR_STORE)->store.predicate;
}

static bool collect_inits(const struct tir *ir, tir_block block, struct store *inits, uint32_t *count, ms_error *err) {
  *count = 0;
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = tir_stmt_at(ir, s)->next) {
    if (!is_plain_store(ir, s) || *count == TIR_MOST_REDUCED)
      return tir_refuse(ir, err, MS_REDUCTION_INIT_FORM, block, "the init of block \"%s\" is not one store or two",
                        tir_block_name(ir, block));
    inits[(*count)++] = store_of(ir, s);
  }
  if (*count == 0)
    return tir_refuse(ir, err, MS_REDUCTION_INIT_FORM, block, "block \"%s\" has no init", tir_block_name(ir, block));
  if (*count == 2 && inits[0].buffer == inits[1].buffer)
    return tir_refuse(ir, err, MS_REDUCTION_BUFFER_TWICE, block, "the init of block \"%s\" writes a buffer twice",
                      tir_block_name(ir, block));
  return true;
}

/* What a statement, and for a variable the one after it, which assigns its only value, bind. */
struct bound {
  tir_expr name, value; /* what stands for the value, below */
  tir_stmt next;        /* after it */
};

/* `v: T.let[T.int32] = value`, or `v: T.int32 = value`, which is a variable: a buffer of one element. */
static bool read_bound(struct tir *ir, tir_stmt s, struct bound *out) {
  if (s && tir_is(ir, s, TIR_BIND)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    *out = (struct bound){tir_var_expr(ir, n->bind.var), n->bind.value, n->next};
    return true;
  }
  tir_stmt store = s && tir_is(ir, s, TIR_ALLOC) ? tir_stmt_at(ir, s)->next : TIR_NONE;
  if (!is_plain_store(ir, store)) return false;
  struct store assigned = store_of(ir, store);
  const struct tir_buffer_node *b = tir_buffer_at(ir, assigned.buffer);
  if (assigned.buffer != tir_stmt_at(ir, s)->alloc.buffer || b->rank != 1 ||
      !tir_is_const(ir, tir_operands(ir, b->shape)[0], 1) ||
      !tir_is_const(ir, tir_operands(ir, assigned.indices)[0], 0) ||
      tir_uses_buffer(ir, assigned.value, assigned.buffer))
    return false;
  tir_expr name = tir_load(ir, assigned.buffer, tir_operands(ir, assigned.indices), 1, TIR_NONE);
  *out = (struct bound){name, assigned.value, tir_stmt_at(ir, store)->next};
  return true;
}

/* The bound values, then the stores of all of them in any order; updates come in the order of the values. */
static bool collect_let_updates(struct tir *ir, tir_block block, struct store *updates, uint32_t count, ms_error *err) {
  struct bound bound[TIR_MOST_REDUCED];
  tir_stmt s = tir_stmt_at(ir, block)->first[TIR_BODY];
  const char *name = tir_block_name(ir, block);
  for (uint32_t i = 0; i < count; i++, s = bound[i - 1].next) {
    if (!read_bound(ir, s, &bound[i]))
      return tir_refuse(ir, err, MS_REDUCTION_BODY_FORM, block, "block \"%s\" does not bind %u values", name, count);
    updates[i] = (struct store){TIR_NONE, 0, bound[i].value};
  }
  for (uint32_t i = 0; i < count; i++, s = tir_stmt_at(ir, s)->next) {
    if (!is_plain_store(ir, s))
      return tir_refuse(ir, err, MS_REDUCTION_BODY_FORM, block, "block \"%s\" does not store %u values", name, count);
    uint32_t k = 0;
    while (k < count && bound[k].name != tir_as(ir, s, TIR_STORE)->store.value) k++;
    if (k == count || updates[k].buffer)
      return tir_refuse(ir, err, MS_REDUCTION_VALUES_STORED, block, "block \"%s\" stores another value", name);
    updates[k].buffer = tir_as(ir, s, TIR_STORE)->store.buffer;
    updates[k].indices = tir_as(ir, s, TIR_STORE)->store.indices;
  }
  if (s)
    return tir_refuse(ir, err, MS_REDUCTION_BODY_FORM, block, "block \"%s\" does more than %u stores", name, count);
  if (count == 2 && updates[0].buffer == updates[1].buffer)
    return tir_refuse(ir, err, MS_REDUCTION_BUFFER_TWICE, block, "block \"%s\" writes a buffer twice", name);
  return true;
}

static bool collect_updates(struct tir *ir, tir_block block, struct store *updates, uint32_t count, ms_error *err) {
  tir_stmt store = tir_only_store(ir, block, TIR_BODY);
  if (count > 1 || !store) return collect_let_updates(ir, block, updates, count, err);
  updates[0] = store_of(ir, store);
  return true;
}

/* Puts the inits in the order of the updates. */
static bool pair_buffers(const struct tir *ir, tir_block block, struct store *inits, const struct store *updates,
                         uint32_t count, ms_error *err) {
  if (count == 2 && inits[0].buffer == updates[1].buffer) {
    struct store t = inits[0];
    inits[0] = inits[1];
    inits[1] = t;
  }
  for (uint32_t i = 0; i < count; i++)
    if (inits[i].buffer != updates[i].buffer)
      return tir_refuse(ir, err, MS_REDUCTION_BUFFERS_DIFFER, block,
                        "the init and the body of block \"%s\" write different buffers", tir_block_name(ir, block));
  return true;
}

static bool prove_all_equal(struct tir *ir, uint32_t a, uint32_t b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!tir_prove_equal(ir, ir->operands.at[a + i], ir->operands.at[b + i])) return false;
  return true;
}

static bool check_one_element(struct tir *ir, tir_block block, const struct store *inits, const struct store *updates,
                              uint32_t count, ms_error *err) {
  assert(count > 0);
  uint32_t rank = tir_buffer_at(ir, updates[0].buffer)->rank, shape = tir_buffer_at(ir, updates[0].buffer)->shape;
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_buffer_node *b = tir_buffer_at(ir, updates[i].buffer);
    if (b->rank != rank || !prove_all_equal(ir, shape, b->shape, rank))
      return tir_refuse(ir, err, MS_REDUCTION_SHAPES_DIFFER, block, "block \"%s\" reduces buffers of different shapes",
                        tir_block_name(ir, block));
    if (!prove_all_equal(ir, updates[0].indices, updates[i].indices, rank) ||
        !prove_all_equal(ir, updates[0].indices, inits[i].indices, rank))
      return tir_refuse(ir, err, MS_REDUCTION_INDICES_DIFFER, block, "block \"%s\" stores to different elements",
                        tir_block_name(ir, block));
  }
  return true;
}

/* ---- Recognition ---- */

/* Of combine_exps: the maximum's right, or the right of select(wins, left, right) + scaled + nothing. */
static tir_expr right_of_exps(const struct tir *ir, tir_expr value, tir_expr left) {
  const struct tir_expr_node *n = tir_at(ir, value);
  if (n->kind == TIR_MAX) return n->a == left ? n->b : TIR_NONE;
  for (int i = 0; i < 2; i++, n = tir_at(ir, n->a))
    if (n->kind != TIR_ADD) return TIR_NONE;
  return n->kind == TIR_SELECT && n->b == left ? n->c : TIR_NONE;
}

/* What would be on the right of the combination if `reducer` made `value`; TIR_NONE: it did not. */
static tir_expr right_of(const struct tir *ir, enum tir_reducer reducer, tir_expr value, tir_expr left) {
  if (reducer == TIR_REDUCE_MAX_AND_EXPS) return right_of_exps(ir, value, left);
  const struct tir_expr_node *n = tir_at(ir, value);
  if (reducers[reducer].kind <= TIR_MAX) return n->kind == reducers[reducer].kind && n->a == left ? n->b : TIR_NONE;
  return n->kind == TIR_SELECT && n->b == left ? n->c : TIR_NONE;
}

static bool combines_as(struct tir *ir, enum tir_reducer reducer, const struct store *updates,
                        struct tir_reduction *r) {
  if (reducers[reducer].count != r->count) return false;
  for (uint32_t i = 0; i < r->count; i++) {
    r->right[i] = right_of(ir, reducer, updates[i].value, r->left[i]);
    if (!r->right[i] || tir_type_of(ir, r->right[i]) != tir_type_of(ir, r->left[i])) return false;
  }
  if (reducer == TIR_REDUCE_MAX_AND_EXPS && !tir_type_is_float(tir_type_of(ir, r->left[1]))) return false;
  tir_expr made[TIR_MOST_REDUCED];
  tir_combine(ir, reducer, r->left, r->right, made);
  for (uint32_t i = 0; i < r->count; i++)
    if (made[i] != updates[i].value) return false;
  r->reducer = reducer;
  return true;
}

static bool is_made_by(struct tir *ir, enum tir_reducer reducer, const struct store *updates, struct tir_reduction *r) {
  for (uint32_t i = 0; i < r->count && reducers[reducer].count == r->count; i++)
    if (!is_identity(ir, r->identity[i], (enum identity)reducers[reducer].identity[i])) return false;
  return combines_as(ir, reducer, updates, r);
}

/* What is combined is a function of the iteration alone: neither of what was reduced before, nor of what is bound
 * beside it.
 */
static bool is_independent(const struct tir *ir, tir_block block, const struct tir_reduction *r) {
  for (uint32_t i = 0; i < r->count; i++) {
    for (uint32_t k = 0; k < r->count; k++)
      if (tir_uses_buffer(ir, r->right[i], r->buffers[k])) return false;
    for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
      if ((tir_is(ir, s, TIR_BIND) && tir_uses_var(ir, r->right[i], tir_as(ir, s, TIR_BIND)->bind.var)) ||
          (tir_is(ir, s, TIR_ALLOC) && tir_uses_buffer(ir, r->right[i], tir_as(ir, s, TIR_ALLOC)->alloc.buffer)))
        return false;
  }
  return true;
}

/* Of equal values it keeps that which came first: which one, depends on the order of iterations. */
static bool ties_by_order(enum tir_reducer reducer) {
  return reducer == TIR_REDUCE_ARGMAX || reducer == TIR_REDUCE_ARGMIN;
}

/* The value of an arg reducer, where it compares indices of equal values: whichever of two equal ones. */
static void choose_strictly(struct tir *ir, struct store *updates) {
  struct tir_expr_node n = *tir_at(ir, updates[1].value), chosen;
  if (n.kind != TIR_SELECT) return;
  chosen = *tir_at(ir, n.a);
  if (chosen.kind != TIR_GE && chosen.kind != TIR_LE) return;
  tir_expr strictly = tir_binary(ir, chosen.kind == TIR_GE ? TIR_GT : TIR_LT, chosen.a, chosen.b);
  updates[1].value = tir_select(ir, strictly, n.b, n.c);
}

static bool combines_known(struct tir *ir, tir_block block, const struct store *updates, struct tir_reduction *r) {
  for (uint32_t reducer = 0; reducer < TIR_REDUCER_COUNT; reducer++)
    if (combines_as(ir, (enum tir_reducer)reducer, updates, r) && is_independent(ir, block, r))
      return !ties_by_order(r->reducer);
  return false;
}

bool tir_is_known_update(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct store updates[TIR_MOST_REDUCED];
  struct tir_reduction r = {.count = TIR_MOST_REDUCED};
  if (!collect_let_updates(ir, block, updates, r.count, NULL) ||
      !check_one_element(ir, block, updates, updates, r.count, NULL))
    return false;
  for (uint32_t i = 0; i < r.count; i++) {
    r.buffers[i] = updates[i].buffer;
    r.left[i] = tir_load(ir, updates[i].buffer, tir_operands(ir, updates[i].indices),
                         tir_buffer_at(ir, updates[i].buffer)->rank, TIR_NONE);
  }
  if (combines_known(ir, block, updates, &r)) return true;
  choose_strictly(ir, updates);
  return combines_known(ir, block, updates, &r);
}

bool tir_find_reduction(struct tir *ir, tir_block block, struct tir_reduction *out, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct store inits[TIR_MOST_REDUCED], updates[TIR_MOST_REDUCED];
  uint32_t count;
  if (!collect_inits(ir, block, inits, &count, err) || !collect_updates(ir, block, updates, count, err) ||
      !pair_buffers(ir, block, inits, updates, count, err) || !check_one_element(ir, block, inits, updates, count, err))
    return false;
  *out = (struct tir_reduction){.count = count, .indices = updates[0].indices};
  for (uint32_t i = 0; i < count; i++) {
    uint32_t rank = tir_buffer_at(ir, updates[i].buffer)->rank;
    out->buffers[i] = updates[i].buffer;
    out->identity[i] = inits[i].value;
    out->left[i] = tir_load(ir, updates[i].buffer, tir_operands(ir, updates[i].indices), rank, TIR_NONE);
  }
  for (uint32_t reducer = 0; reducer < TIR_REDUCER_COUNT; reducer++)
    if (is_made_by(ir, (enum tir_reducer)reducer, updates, out) && is_independent(ir, block, out)) return true;
  return tir_refuse(ir, err, MS_NO_REDUCER, block, "no known reducer makes what block \"%s\" computes",
                    tir_block_name(ir, block));
}

bool tir_find_free_reduction(struct tir *ir, tir_block block, struct tir_reduction *out, ms_error *err) {
  if (!tir_find_reduction(ir, block, out, err)) return false;
  return !ties_by_order(out->reducer) ||
         tir_refuse(ir, err, MS_REDUCTION_TIES, block,
                    "block \"%s\" keeps the index of that of equal elements which came first, so that its iterations "
                    "cannot be reduced apart",
                    tir_block_name(ir, block));
}

bool tir_find_sum(struct tir *ir, tir_block block, struct tir_reduction *out) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  tir_stmt store = tir_only_store(ir, block, TIR_BODY);
  if (!store) return false;
  struct store update = store_of(ir, store);
  uint32_t rank = tir_buffer_at(ir, update.buffer)->rank;
  *out = (struct tir_reduction){.count = 1, .reducer = TIR_REDUCE_SUM, .indices = update.indices};
  out->buffers[0] = update.buffer;
  out->left[0] = tir_load(ir, update.buffer, tir_operands(ir, update.indices), rank, TIR_NONE);
  const struct tir_expr_node *sum = tir_at(ir, update.value);
  if (sum->kind != TIR_ADD || (sum->a != out->left[0] && sum->b != out->left[0])) return false;
  out->right[0] = sum->a == out->left[0] ? sum->b : sum->a;
  return is_independent(ir, block, out);
}

bool tir_only_loops_between(const struct tir *ir, tir_stmt s, tir_stmt top) {
  for (;;) {
    for (tir_stmt p = tir_stmt_at(ir, s)->prev; p; p = tir_stmt_at(ir, p)->prev)
      if (tir_is(ir, p, TIR_BIND) || tir_is(ir, p, TIR_ALLOC) || tir_is(ir, p, TIR_DECLARE)) return false;
    s = tir_stmt_at(ir, s)->parent;
    assert(s && "top is above s");
    if (s == top) return true;
    if (!tir_is(ir, s, TIR_LOOP)) return false;
  }
}

bool tir_has_reducer(struct tir *ir, tir_block block) {
  struct tir_reduction found;
  return tir_find_reduction(ir, block, &found, NULL);
}

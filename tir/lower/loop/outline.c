/* Outline: around each parallel loop, and around each kernel, which become functions of their own in generated code,
 * stands what that function takes: attr(0, "outlined", captures(A.data, …, n, …)). On CPUs a number stands in place of
 * the 0 where one function does for several loops, which are the same but for what they take (same.c); and such
 * attributes stand around nests of serial code of which there are many (nests.c), or that add to memory in the
 * workspace beside other memory there.
 * Requires: nothing. Gives: the statements that lowered.h describes; the interpreter hides all else from what is below.
 * Keeps: everything else. Loops within one that is outlined stay loops; allocations of the function's list may move to
 * another place in front of what uses them. */
#include "same.h"

#include <stdlib.h>

/* ---- What is captured ---- */

enum { USED = 1, DEFINED = 2, LOADED = 4, STORED = 8 };

struct gathering {
  const struct tir *ir;
  uint8_t *buffers, *vars;  /* bits an index */
  tir_buffer *used_buffers; /* in the order in which they are met */
  tir_var *used_vars;
  uint32_t buffer_count, var_count;
};

/* how: LOADED, STORED, or 0: its address is taken. */
static void use_buffer(struct gathering *g, tir_buffer b, uint8_t how) {
  if (!(g->buffers[b] & USED)) g->used_buffers[g->buffer_count++] = b;
  g->buffers[b] |= USED | how;
}

static bool takes_buffer(const struct gathering *g, tir_buffer b) { return !(g->buffers[b] & DEFINED); }

static void use_var(struct gathering *g, tir_var v) {
  if (!(g->vars[v] & USED)) g->used_vars[g->var_count++] = v;
  g->vars[v] |= USED;
}

static bool note_expr(void *data, tir_expr e) {
  struct gathering *g = data;
  const struct tir_expr_node *n = tir_at(g->ir, e);
  if (n->kind == TIR_VAR) use_var(g, n->ref);
  if (n->kind == TIR_LET) g->vars[n->ref] |= DEFINED;
  if (n->kind == TIR_LOAD || n->kind == TIR_DATA) use_buffer(g, n->ref, n->kind == TIR_LOAD ? LOADED : 0);
  return true;
}

static void note_statement(struct gathering *g, tir_stmt s) {
  const struct tir *ir = g->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(ir, s, all);
  for (uint32_t i = 0; i < count; i++)
    if (all[i]) tir_walk_expr(ir, all[i], note_expr, g);
  switch (n->kind) {
  case TIR_LOOP: g->vars[n->loop.var] |= DEFINED; break;
  case TIR_BIND: g->vars[n->bind.var] |= DEFINED; break;
  case TIR_ALLOC:
  case TIR_DECLARE: g->buffers[n->alloc.buffer] |= DEFINED; break;
  case TIR_STORE:
    use_buffer(g, n->store.buffer, STORED);
    for (uint32_t i = 0; i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
      tir_walk_expr(ir, ir->operands.at[n->store.indices + i], note_expr, g);
    break;
  default: break;
  }
}

static int by_index(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Of what is one's own they are in the order of their indices; of what shares a function, in the order of their uses,
 * which is that of all who share it. */
static tir_expr captures_call(struct tir *ir, struct gathering *g, bool shares) {
  tir_expr *all = malloc((g->buffer_count + (size_t)g->var_count + 1) * sizeof *all);
  uint32_t count = 0;
  if (!all) abort();
  if (!shares) {
    qsort(g->used_buffers, g->buffer_count, sizeof *g->used_buffers, by_index);
    qsort(g->used_vars, g->var_count, sizeof *g->used_vars, by_index);
  }
  for (uint32_t i = 0; i < g->buffer_count; i++)
    if (takes_buffer(g, g->used_buffers[i])) all[count++] = tir_data(ir, g->used_buffers[i]);
  for (uint32_t i = 0; i < g->var_count; i++)
    if (g->vars[g->used_vars[i]] == USED) all[count++] = tir_var_expr(ir, g->used_vars[i]);
  tir_expr made = tir_call(ir, TIR_T_VOID, tir_symbol_of(ir, "captures"), all, count);
  free(all);
  return made;
}

static struct gathering start_gathering(const struct tir *ir) {
  struct gathering g = {.ir = ir,
                        .buffers = calloc(ir->buffers.count, sizeof *g.buffers),
                        .vars = calloc(ir->vars.count, sizeof *g.vars),
                        .used_buffers = malloc(ir->buffers.count * sizeof *g.used_buffers),
                        .used_vars = malloc(ir->vars.count * sizeof *g.used_vars)};
  if (!g.buffers || !g.vars || !g.used_buffers || !g.used_vars) abort();
  return g;
}

static void end_gathering(struct gathering *g) {
  free(g->buffers);
  free(g->vars);
  free(g->used_buffers);
  free(g->used_vars);
}

/* A loop's range is evaluated outside. */
static tir_expr captures_of_loop(struct tir *ir, tir_loop loop, bool shares) {
  struct gathering g = start_gathering(ir);
  g.vars[tir_as(ir, loop, TIR_LOOP)->loop.var] = DEFINED;
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) note_statement(&g, s);
  tir_expr made = captures_call(ir, &g, shares);
  end_gathering(&g);
  return made;
}

static tir_expr captures_of_run(struct tir *ir, struct lower_run run) {
  struct gathering g = start_gathering(ir);
  for (tir_stmt top = run.first;; top = tir_stmt_at(ir, top)->next) {
    for (tir_stmt s = top; s; s = tir_next(ir, s, top)) note_statement(&g, s);
    if (top == run.last) break;
  }
  tir_expr made = captures_call(ir, &g, true);
  end_gathering(&g);
  return made;
}

/* ---- Loops ---- */

static bool is_outlined(const struct tir *ir, tir_stmt s) { return lower_is_attr(ir, s, TIR_OUTLINED); }

static void outline(struct tir *ir, tir_loop loop) {
  assert(tir_is(ir, loop, TIR_LOOP) && !is_outlined(ir, tir_stmt_at(ir, loop)->parent));
  lower_wrap_in_attr(ir, loop, TIR_OUTLINED, captures_of_loop(ir, loop, false));
}

static void outline_loops(struct lowering *low, enum tir_loop_kind kind) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s; s = next) {
    bool outlines = tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == kind;
    next = outlines ? tir_after(ir, s, low->body) : tir_next(ir, s, low->body);
    if (outlines) outline(ir, s);
  }
}

/* ---- What is shared ---- */

static void set_number(struct tir *ir, tir_stmt attr, uint32_t number) {
  tir_stmt_at(ir, attr)->attr.node = tir_int(ir, TIR_T_I32, number);
}

/* The loops that are outlined, each with the number of the first that is the same, from 1. */
struct outlined {
  tir_stmt attr;
  uint64_t hash;
  uint32_t same, count; /* count: of those that are as this one */
};

static tir_loop loop_of(const struct tir *ir, tir_stmt attr) { return tir_stmt_at(ir, attr)->first[TIR_BODY]; }

/* Where its range is constant: what gives another is no part of the function. */
static bool may_share(const struct tir *ir, tir_loop loop) {
  return tir_is_int(ir, tir_stmt_at(ir, loop)->loop.min) && tir_is_int(ir, tir_stmt_at(ir, loop)->loop.extent);
}

static struct outlined *compare_loops(struct lowering *low, struct lower_same *same, uint32_t *count) {
  struct tir *ir = low->ir;
  struct outlined *at = NULL;
  uint32_t capacity = 0, all = 0;
  *count = 0;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) all += is_outlined(ir, s);
  if (!lower_is_worth_sharing(all, UINT32_MAX)) return NULL;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!is_outlined(ir, s) || !may_share(ir, loop_of(ir, s))) continue;
    struct lower_run run = {loop_of(ir, s), loop_of(ir, s)};
    struct outlined o = {s, lower_same_hash(same, run), *count, 1};
    for (uint32_t i = 0; i < *count && o.same == *count; i++) {
      struct lower_run first = {loop_of(ir, at[i].attr), loop_of(ir, at[i].attr)};
      if (at[i].same == i && at[i].hash == o.hash && lower_same_runs(same, first, run)) o.same = i, at[i].count++;
    }
    at = tir_enlarge(at, &capacity, *count + 1ull, sizeof *at);
    at[(*count)++] = o;
  }
  return at;
}

static uint32_t share_loops(struct lowering *low, struct outlined *at, uint32_t count, uint32_t number) {
  struct tir *ir = low->ir;
  uint32_t *numbers = calloc(count + 1u, sizeof *numbers);
  if (!numbers) abort();
  for (uint32_t i = 0; i < count; i++) {
    uint32_t first = at[i].same;
    if (!lower_is_worth_sharing(at[first].count, lower_size(ir, loop_of(ir, at[i].attr)))) continue;
    if (!numbers[first]) numbers[first] = ++number;
    set_number(ir, at[i].attr, numbers[first]);
    tir_expr captures = captures_of_loop(ir, loop_of(ir, at[i].attr), true);
    tir_stmt_at(ir, at[i].attr)->attr.value = captures;
  }
  free(numbers);
  return number;
}

static void share_nest(struct tir *ir, struct lower_run run, uint32_t number) {
  tir_stmt attr = lower_new_attr(ir, TIR_OUTLINED, captures_of_run(ir, run));
  set_number(ir, attr, number);
  tir_insert_before(ir, run.first, attr);
  for (tir_stmt s = run.first, next;; s = next) {
    next = tir_stmt_at(ir, s)->next;
    tir_detach(ir, s);
    tir_append(ir, attr, TIR_BODY, s);
    if (s == run.last) return;
  }
}

/* All is compared before anything is added. */
static void share(struct lowering *low) {
  struct lower_same *same = lower_same_new(low->ir);
  struct lower_nest *nests;
  uint32_t loop_count, number = 0;
  struct outlined *loops = compare_loops(low, same, &loop_count);
  uint32_t nest_count = lower_find_nests(low, same, &nests);
  lower_same_free(same);
  for (uint32_t i = 0; i < nest_count; i++) {
    share_nest(low->ir, nests[i].run, nests[i].number);
    if (nests[i].number > number) number = nests[i].number;
  }
  share_loops(low, loops, loop_count, number);
  free(loops);
  free(nests);
}

/* ---- Nests of their own ---- */

/* What a serial nest takes is memory that has an address, and numbers; it does not leave the function, and holds no
 * tiles of the machine's. */
static bool may_be_a_function(tir_loop loop, const struct gathering *g) {
  const struct tir *ir = g->ir;
  for (tir_stmt s = loop; s; s = tir_next(ir, s, loop))
    if (tir_is(ir, s, TIR_ASSERT) || tir_is(ir, s, TIR_ATTR)) return false;
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    tir_buffer b = g->used_buffers[i];
    if (!takes_buffer(g, b)) continue;
    bool allocated = tir_buffer_at(ir, b)->where != TIR_NONE;
    if (tir_is_view(ir, b) || (allocated && !tir_is_placed(ir, b))) return false;
  }
  for (uint32_t i = 0; i < g->var_count; i++) {
    tir_type type = ir->vars.at[g->used_vars[i]].type;
    if (g->vars[g->used_vars[i]] == USED && (tir_type_code(type) == TIR_HANDLE || tir_type_lanes(type) > 1))
      return false;
  }
  return true;
}

/* Whether a nest adds to memory in the workspace while it reads other memory there: only parameters say that these lie
 * apart. LLVM does not find that out from offsets in one allocation which loops add to, and would load and store what
 * it adds to in each iteration. */
static bool adds_beside_others(const struct gathering *g) {
  uint32_t added = 0, read = 0;
  for (uint32_t i = 0; i < g->buffer_count; i++) {
    tir_buffer b = g->used_buffers[i];
    if (!takes_buffer(g, b) || !tir_is_placed(g->ir, b)) continue;
    added += g->buffers[b] == (USED | LOADED | STORED);
    read += g->buffers[b] == (USED | LOADED);
  }
  return added > 0 && (read > 0 || added > 1);
}

static void outline_nests(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = tir_stmt_at(ir, low->body)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind != TIR_SERIAL) continue;
    struct gathering g = start_gathering(ir);
    for (tir_stmt at = s; at; at = tir_next(ir, at, s)) note_statement(&g, at);
    if (may_be_a_function(s, &g) && adds_beside_others(&g))
      lower_wrap_in_attr(ir, s, TIR_OUTLINED, captures_call(ir, &g, false));
    end_gathering(&g);
  }
}

/* ---- The pass ---- */

bool lower_outline(struct lowering *low) {
  struct tir *ir = low->ir;
  bool gpu = low->options && low->options->device == TIR_GPU;
  for (tir_stmt s = low->body, next; s; s = next) { /* a function that was lowered before and read again */
    next = tir_next(ir, s, low->body);
    if (is_outlined(ir, s)) tir_kill_alone(ir, s);
  }
  outline_loops(low, gpu ? TIR_THREAD_BINDING : TIR_PARALLEL);
  if (!gpu && lower_may_share(low)) share(low);
  if (!gpu) outline_nests(low);
  return true;
}

/* ---- Reading what is stated ---- */

static uint32_t count_kind(const struct tir *ir, const struct tir_expr_node *call, uint32_t from, enum tir_kind kind) {
  uint32_t i = from;
  while (i < call->count && tir_at(ir, tir_operands(ir, call->operands)[i])->kind == kind) i++;
  return i - from;
}

bool tir_captures_of(const struct tir *ir, tir_stmt s, struct tir_captures *out) {
  assert(s && out);
  if (!is_outlined(ir, s) || !tir_stmt_at(ir, s)->first[TIR_BODY]) return false;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  const struct tir_expr_node *call = tir_at(ir, n->attr.value), *number = tir_at(ir, n->attr.node);
  if (call->kind != TIR_CALL || number->kind != TIR_INT_IMM) return false;
  uint32_t buffers = count_kind(ir, call, 0, TIR_DATA);
  *out = (struct tir_captures){.first = n->first[TIR_BODY],
                               .number = (uint32_t)number->imm,
                               .at = tir_operands(ir, call->operands),
                               .buffers = buffers,
                               .vars = count_kind(ir, call, buffers, TIR_VAR)};
  const struct tir_stmt_node *first = tir_stmt_at(ir, out->first);
  bool loop = first->kind == TIR_LOOP && (first->loop_kind == TIR_PARALLEL || first->loop_kind == TIR_THREAD_BINDING);
  if (loop) out->loop = out->first;
  return out->buffers + out->vars == call->count;
}

bool tir_is_captured_apart(const struct tir *ir, const struct tir_captures *captures, uint32_t i) {
  assert(i < captures->buffers);
  for (uint32_t k = 0; k < captures->buffers; k++)
    if (k != i && tir_may_share_memory(ir, tir_at(ir, captures->at[i])->ref, tir_at(ir, captures->at[k])->ref))
      return false;
  return true;
}

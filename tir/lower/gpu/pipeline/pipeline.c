/* Pipeline: a loop annotated as a software pipeline runs its statements for several iterations side by side.
 *
 *   for k in range(9), stages 0 and 2:    S[0] = A[0]; S[1] = A[1]
 *     S = A[k]                            for k in range(2, 9): S[k % 3] = A[k]; C += S[(k - 2) % 3]
 *     C += S                              C += S[1]; C += S[2]
 *
 * Requires: kernels; buffers that are no larger than they need be; attributes around the statements (stages.c).
 * Gives: no such loop or attribute. Keeps: everything else. In step t the statement of stage s does iteration t - s,
 * in the places that the order names: steps before the deepest stage is reached stand before the loop, those after
 * the last iteration behind it. An extent that is no constant guards them. What the loop allocates has as many
 * stage buffers as iterations are under way; iteration k has number k modulo that (multi_buffer.c). Memory from outside
 * of the loop has one, so its uses keep their order, or the pipeline is refused.
 *
 * A loop of one iteration, if it is no statement of another pipeline, is done as it stands.
 *
 * In an asynchronous stage, copies from the device's memory to shared memory are such. Each run of such
 * statements ends its group, in every step, whether or not something was copied in it: so it is known how many
 * groups may be on their way when an earlier step's must have arrived. What needs those waits for them as its step
 * begins: threads then synchronize but once a step.
 *
 * TMA bulk tensor copies are issued by one thread instead, where the annotation requests it
 * (mbarrier.c). Source: Lam, "Software Pipelining", PLDI 1988; PTX ISA, "cp.async". */
#include "pipeline.h"
#include "tir/lower/gpu/footprint.h"

#include <stdlib.h>
#include <string.h>

/* What is asked of a pipeline; the last ones outlive it (flight.c, overlap.c). */
static const char *const asked[] = {
    TIR_PIPELINE_STAGE,  TIR_PIPELINE_ORDER,     TIR_PIPELINE_ASYNC,     TIR_PIPELINE_BULK,    TIR_PIPELINE_PRODUCER,
    TIR_PIPELINE_BLOCKS, TIR_PIPELINE_MULTICAST, TIR_PIPELINE_IN_FLIGHT, TIR_PIPELINE_OVERLAP, TIR_PIPELINE_ALTERNATE};
enum { ASKED = sizeof asked / sizeof *asked, OUTLIVE = 3 };

/* ---- Statements ---- */

/* The loops between a statement and the stage it is in, outermost first: how often each runs, and which time it is.
 * False: some are too many, or not constant. */
static bool iterations_of(struct tir *ir, tir_stmt s, tir_stmt stage, struct access *at, tir_expr *extents) {
  at->count = 0;
  for (tir_stmt l = s; l != stage; l = tir_stmt_at(ir, l)->parent) {
    if (!tir_is(ir, l, TIR_LOOP)) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, l);
    if (!tir_is_int(ir, n.loop.extent) || at->count == TIR_MOST_RANK) return false;
    memmove(at->indices + 1, at->indices, at->count * sizeof *at->indices);
    memmove(extents + 1, extents, at->count * sizeof *extents);
    at->indices[0] = tir_sub(ir, tir_var_expr(ir, n.loop.var), n.loop.min);
    extents[0] = n.loop.extent;
    at->count++;
  }
  return at->count > 0;
}

/* TIR_NONE: it stores nothing, or by several statements, or calls something, which must not be done twice. */
static tir_stmt only_store(const struct tir *ir, tir_stmt stage) {
  tir_stmt store = TIR_NONE;
  for (tir_stmt s = stage; s; s = tir_next(ir, s, stage)) {
    if (tir_is(ir, s, TIR_EVALUATE)) return TIR_NONE;
    if (!tir_is(ir, s, TIR_STORE)) continue;
    if (store) return TIR_NONE;
    store = s;
  }
  return store;
}

/* What a copy moves goes by registers: a statement that loads comes before the one that stores. */
static void go_by_registers(struct pipeline *p, tir_stmt stage) {
  struct tir *ir = p->low->ir;
  struct access to, from;
  tir_expr shape[TIR_MOST_RANK];
  tir_stmt store = only_store(ir, stage);
  if (!store || !iterations_of(ir, store, stage, &from, shape)) return;
  tir_stmt before = tir_clone_stmt(ir, stage), alloc = tir_new_stmt(ir, TIR_ALLOC), old = only_store(ir, before);
  iterations_of(ir, old, before, &to, shape);
  tir_type type = tir_type_of(ir, tir_as(ir, store, TIR_STORE)->store.value);
  tir_symbol name = tir_symbol_of(ir, "in_registers"), scope = tir_scope_named(ir, TIR_SCOPE_LOCAL);
  tir_buffer registers = tir_new_buffer(ir, name, type, shape, to.count, scope);
  tir_as(ir, alloc, TIR_ALLOC)->alloc.buffer = registers;
  tir_buffer_at(ir, registers)->where = alloc;
  p->own[registers] = 1;
  tir_expr none = tir_int(ir, TIR_T_I32, 0);
  tir_as(ir, before, TIR_ATTR)->attr.value = none;
  tir_replace(ir, old, tir_new_store(ir, registers, to.indices, tir_as(ir, old, TIR_STORE)->store.value));
  tir_expr loaded = tir_load(ir, registers, from.indices, from.count, TIR_NONE);
  tir_as(ir, store, TIR_STORE)->store.value = loaded;
  tir_insert_before(ir, stage, before);
  tir_insert_before(ir, tir_stmt_at(ir, p->loop)->first[TIR_BODY], alloc);
}

static bool multiplies(const struct tir *ir, tir_stmt stage) {
  for (tir_stmt s = stage; s; s = tir_next(ir, s, stage))
    if (lower_is_product(ir, s)) return true;
  return false;
}

static bool gather(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  uint32_t stages = 0;
  for (tir_stmt s = tir_stmt_at(ir, p->loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    stages += lower_is_stage(ir, s);
  if (stages > TIR_PIPELINE_STATEMENTS / 2) return pipeline_refuse(p, "it has too many statements");
  for (tir_stmt s = tir_stmt_at(ir, p->loop)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (tir_is(ir, s, TIR_ALLOC)) {
      p->own[tir_stmt_at(ir, s)->alloc.buffer] = 1;
    } else if (!lower_is_stage(ir, s)) {
      return pipeline_refuse(p, "its body names a value or a view for the statements behind it");
    } else if (pipeline_requests(ir, s) & TIR_STATEMENT_BY_REGISTERS) {
      go_by_registers(p, s);
    }
  }
  for (tir_stmt s = tir_stmt_at(ir, p->loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    if (tir_is(ir, s, TIR_ALLOC)) continue;
    assert(p->plan.count < TIR_PIPELINE_STATEMENTS);
    p->parts[p->plan.count] = (struct part){.stmt = s, .run = -1};
    p->plan.statements[p->plan.count++] = (struct tir_pipeline_statement){
        .multiplies = multiplies(ir, s), .doubles = (pipeline_requests(ir, s) & TIR_STATEMENT_DOUBLES) != 0};
  }
  return true;
}

/* ---- The plan ---- */

static bool read_plan(struct pipeline *p) {
  if (!tir_read_pipeline(p->low->ir, p->loop, &p->plan, p->low->err)) return false;
  for (uint32_t i = 0; i < p->plan.count; i++) p->by_order[p->plan.statements[i].order] = i;
  for (uint32_t i = 0; i < p->plan.count; i++) assert(p->plan.statements[p->by_order[i]].order == i);
  return true;
}

/* ---- Asynchronous copies ---- */

/* A load from the device's memory, or zero where there is nothing to load. */
static bool is_copied(const struct tir *ir, tir_expr value) {
  const struct tir_expr_node *n = tir_at(ir, value);
  if (tir_is_choice(ir, n)) {
    const tir_expr *args = tir_operands(ir, n->operands);
    const struct tir_expr_node *zero = tir_at(ir, args[2]);
    bool is_zero = (zero->kind == TIR_INT_IMM && zero->imm == 0) || (zero->kind == TIR_FLOAT_IMM && zero->real == 0);
    return is_zero && !(tir_at(ir, args[0])->flags & TIR_HAS_LOAD) && tir_at(ir, args[1])->kind == TIR_LOAD &&
           is_copied(ir, args[1]);
  }
  return n->kind == TIR_LOAD && !n->a && tir_buffer_memory(ir, n->ref) == TIR_DEVICE_MEMORY &&
         tir_type_of(ir, value) == tir_buffer_at(ir, n->ref)->type;
}

static void begin_copies(struct pipeline *p, uint32_t part) {
  struct tir *ir = p->low->ir;
  tir_stmt top = p->parts[part].stmt;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    bool moves = p->own[n.store.buffer] && tir_buffer_memory(ir, n.store.buffer) == TIR_BLOCK_MEMORY &&
                 !n.store.predicate && is_copied(ir, n.store.value) &&
                 tir_type_of(ir, n.store.value) == tir_buffer_at(ir, n.store.buffer)->type;
    if (!moves || !pipeline_is_for_others(p, part, n.store.buffer)) continue;
    tir_expr value =
        tir_call(ir, tir_type_of(ir, n.store.value), tir_device_symbol(ir, TIR_ASYNC_COPY), &n.store.value, 1);
    tir_as(ir, s, TIR_STORE)->store.value = value;
    *uses_at(p, part, n.store.buffer) |= PIPELINE_COPIES;
    p->parts[part].copies = true;
  }
}

/* ---- Groups of copies ---- */

/* The part touches what the other copies. */
static bool needs(const struct pipeline *p, uint32_t part, uint32_t other) {
  bool any = false;
  for (tir_buffer b = 1; b < p->buffers && part != other; b++)
    any |= (uses_of(p, other, b) & PIPELINE_COPIES) && uses_of(p, part, b);
  return any;
}

/* Statements side by side whose copies are one group. */
static void number_runs(struct pipeline *p) {
  uint32_t first = 0; /* of the run */
  for (uint32_t at = 0; at < p->plan.count; at++) {
    struct part *part = &p->parts[p->by_order[at]];
    if (!part->copies) continue;
    bool joins = at && p->parts[p->by_order[at - 1]].copies;
    for (uint32_t k = first; k < at; k++) joins &= !needs(p, p->by_order[at], p->by_order[k]);
    if (!joins) first = at;
    part->run = joins ? (int)p->runs - 1 : (int)p->runs++;
    assert(part->run >= 0 && part->run < (int)p->runs);
  }
}

/* How many groups may still be on their way where the part begins, -1: any. `early`: of copies of steps before its own,
 * as the step begins; else of its own step. */
static int64_t groups_left(const struct pipeline *p, uint32_t part, bool early) {
  int64_t least = -1, before = 0;
  for (uint32_t at = 0; at < p->plan.statements[part].order; at++) {
    const struct part *q = &p->parts[p->by_order[at]];
    if (q->copies && q->run + 1 > before) before = q->run + 1;
  }
  for (uint32_t i = 0; i < p->plan.count; i++) {
    int64_t apart = p->plan.statements[part].stage - p->plan.statements[i].stage;
    if (!needs(p, part, i) || (apart > 0) != early) continue;
    int64_t left = early ? apart * p->runs - 1 - p->parts[i].run : before - 1 - p->parts[i].run;
    assert(apart >= 0 && left >= 0);
    if (least < 0 || left < least) least = left;
  }
  return least;
}

/* ---- Steps ---- */

static void evaluate(struct tir *ir, tir_stmt to, enum tir_device_call function, int64_t number) {
  tir_expr argument = tir_int(ir, TIR_T_I32, number);
  lower_append_call(ir, to, function, &argument, number < 0 ? 0 : 1);
}

/* Whether the part has something to do in step t: TIR_NONE: certainly; else a condition. */
static tir_expr condition_in(struct pipeline *p, uint32_t part, tir_expr t) {
  struct tir *ir = p->low->ir;
  tir_type type = tir_type_of(ir, p->extent);
  tir_expr iteration = tir_sub(ir, t, tir_int(ir, type, p->plan.statements[part].stage));
  tir_expr within =
      tir_and(ir, tir_make(ir, TIR_GE, iteration, tir_int(ir, type, 0)), tir_make(ir, TIR_LT, iteration, p->extent));
  if (!within) return TIR_NONE;
  within = tir_simplify(ir, within);
  return tir_is_const(ir, within, 1) ? TIR_NONE : within;
}

static void do_part(struct pipeline *p, uint32_t part, tir_expr t, tir_expr condition, tir_stmt to) {
  struct tir *ir = p->low->ir;
  tir_type type = tir_type_of(ir, p->extent);
  tir_expr iteration = tir_sub(ir, t, tir_int(ir, type, p->plan.statements[part].stage));
  tir_stmt copy = tir_clone_stmt(ir, p->parts[part].stmt);
  tir_subst_var(ir, p->var, tir_add(ir, p->min, iteration));
  tir_subst_stmt(ir, copy);
  tir_subst_clear(ir);
  tir_append(ir, to, TIR_BODY, copy);
  if (condition) {
    tir_stmt test = tir_new_if(ir, condition);
    tir_wrap(ir, copy, test);
  }
  tir_kill_alone(ir, copy);
}

/* Appends what is done in step t, counted from the first. whole: by every part. more: steps that copy may follow. */
static void do_step(struct pipeline *p, tir_expr t, bool whole, bool more, tir_stmt to) {
  struct tir *ir = p->low->ir;
  tir_expr when[TIR_PIPELINE_STATEMENTS];
  int64_t early = -1;
  for (uint32_t i = 0; i < p->plan.count; i++) {
    when[i] = whole ? TIR_NONE : condition_in(p, i, t);
    int64_t left = groups_left(p, i, true);
    if (left < 0 || (when[i] && tir_is_const(ir, when[i], 0))) continue;
    if (early < 0 || left < early) early = left;
  }
  if (early >= 0) evaluate(ir, to, TIR_WAIT_GROUP, early);
  for (uint32_t at = 0; at < p->plan.count; at++) {
    uint32_t i = p->by_order[at];
    if (p->plan.producer && p->parts[i].bulk) continue;
    bool none = when[i] && tir_is_const(ir, when[i], 0);
    int64_t left = none ? -1 : groups_left(p, i, false);
    if (left >= 0) evaluate(ir, to, TIR_WAIT_GROUP, left);
    if (!none && pipeline_needs_tma_copies(p, i)) pipeline_wait_for_tma_copies(p, i, t, when[i], to);
    if (!none) do_part(p, i, t, when[i], to);
    if (!none && more && pipeline_needs_tma_copies(p, i)) pipeline_free_tma_copies(p, i, t, when[i], to);
    bool ends = p->parts[i].copies && (at + 1 == p->plan.count || p->parts[p->by_order[at + 1]].run != p->parts[i].run);
    if (ends) evaluate(ir, to, TIR_COMMIT_GROUP, -1);
  }
}

typedef bool is_call(const struct tir *ir, tir_stmt s);

/* The statement's only calls are such, and nothing is stored. */
static bool only_calls(const struct tir *ir, tir_stmt top, is_call *is) {
  bool only = true;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    only &= !tir_is(ir, s, TIR_STORE) && (!tir_is(ir, s, TIR_EVALUATE) || is(ir, s));
  return only;
}

/* Where consumers of a producer warp group do nothing but multiply, as many iterations as there are stage buffers. */
static int64_t ring_of_consumers(const struct pipeline *p) {
  bool only = true;
  for (uint32_t i = 0; i < p->plan.count && only; i++)
    only = p->parts[i].bulk || only_calls(p->low->ir, p->parts[i].stmt, lower_is_product);
  return only ? p->plan.ring : 0;
}

static bool is_of_fragments(const struct tir *ir, tir_stmt s) {
  return lower_calls(ir, s, TIR_MMA_LOAD) || lower_calls(ir, s, TIR_MMA_SYNC);
}

/* Where all threads copy to stage buffers, and do nothing besides but load fragments from there and multiply them: as
 * many iterations as all of these have; 0: it is no such pipeline, or buffers have unlike numbers of them. */
static int64_t ring_of_copies(const struct pipeline *p) {
  bool copies = false, multiplies = false, others = false;
  uint32_t ring = 0;
  for (uint32_t i = 0; i < p->plan.count; i++) {
    bool of_fragments = only_calls(p->low->ir, p->parts[i].stmt, is_of_fragments);
    copies |= p->parts[i].copies, multiplies |= of_fragments;
    others |= !p->parts[i].copies && !of_fragments;
  }
  for (tir_buffer b = 1; b < p->buffers; b++) {
    if (p->stage_buffers[b] < 2) continue;
    if (ring && p->stage_buffers[b] != ring) return 0;
    ring = p->stage_buffers[b];
  }
  return copies && multiplies && !others && !p->arrivals ? ring : 0;
}

/* As many iterations at once as there are stage buffers: which of them, and its mbarriers, are then constants. Nothing
 * is computed of the iteration but the parity, or where threads copy from. */
static void unroll_by_ring(const struct pipeline *p, tir_stmt loop) {
  struct tir *ir = p->low->ir;
  int64_t extent = tir_loop_extent(ir, loop), ring = p->plan.producer ? ring_of_consumers(p) : ring_of_copies(p);
  int64_t least = p->plan.producer ? ring : 2 * ring; /* of which a loop over rings stays (loop/unroll.c) */
  if (ring > 1 && extent >= least && (!p->turn || extent % ring == 0))
    tir_annotate_symbol(ir, loop, tir_symbol_of(ir, TIR_UNROLL_COUNT), tir_int(ir, TIR_T_I32, ring));
}

/* The steps in which every stage has an iteration. What its stage buffers are in registers is indexed by constants.
 * Where a producer warp group copies, what is left runs all iterations, each in its own step. */
static tir_stmt main_loop(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, p->loop);
  struct tir_var_node v = ir->vars.at[p->var];
  int64_t early = p->plan.producer ? 0 : p->plan.depth;
  tir_expr depth = tir_int(ir, v.type, early), zero = tir_int(ir, v.type, 0);
  tir_expr count = tir_sub(ir, p->extent, depth), min = tir_add(ir, p->min, depth);
  if (!tir_is_int(ir, p->extent)) count = tir_make(ir, TIR_MAX, count, zero);
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, min, count);
  bool in_registers = tir_is_int(ir, count) && tir_at(ir, count)->imm <= PIPELINE_UNROLLED && has_register_buffers(p);
  tir_stmt loop = tir_new_loop(ir, var, min, count, in_registers ? TIR_UNROLLED : (enum tir_loop_kind)n.loop_kind);
  for (uint32_t i = n.annotations.first; i < n.annotations.first + n.annotations.count; i++) {
    struct tir_annotation a = ir->annotations.at[i];
    bool keep = true;
    for (int k = 0; k < ASKED - OUTLIVE; k++) keep &= strcmp(tir_text(ir, a.key), asked[k]) != 0;
    if (keep) tir_annotate_symbol(ir, loop, a.key, a.value);
  }
  tir_expr step = tir_sub(ir, tir_var_expr(ir, var), tir_sub(ir, p->min, tir_int(ir, v.type, p->plan.depth - early)));
  do_step(p, step, true, true, loop);
  unroll_by_ring(p, loop);
  return loop;
}

/* TMA copies in steps behind the last iteration's first, too. */
static bool copies_late(const struct pipeline *p) {
  bool late = false;
  for (uint32_t i = 0; i < p->plan.count; i++) late |= p->parts[i].bulk && p->plan.statements[i].stage > 0;
  return late;
}

/* Three statements take the loop's place: steps before all stages run, while they do, after that. In a statement of a
 * pipeline around it, they are statements of that. */
static void rotate(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  tir_stmt pieces[TIR_PIPELINE_PARTS];
  tir_type type = tir_type_of(ir, p->extent);
  int64_t extent = tir_is_int(ir, p->extent) ? tir_at(ir, p->extent)->imm : -1;
  for (int i = 0; i < TIR_PIPELINE_PARTS; i++) {
    pieces[i] = lower_new_stage(ir, 0);
    tir_insert_before(ir, p->loop, pieces[i]);
  }
  int64_t rim = p->plan.producer ? 0 : p->plan.depth; /* steps before all stages run, and as many behind */
  assert(rim <= TIR_PIPELINE_DEEPEST);
  for (int64_t t = 0; t < rim; t++) do_step(p, tir_int(ir, type, t), false, true, pieces[0]);
  if (extent < 0 || extent > rim) tir_append(ir, pieces[1], TIR_BODY, main_loop(p));
  tir_expr depth = tir_int(ir, type, p->plan.depth), from = tir_make(ir, TIR_MAX, p->extent, depth);
  for (int64_t t = 0; t < rim; t++)
    do_step(p, tir_add(ir, from, tir_int(ir, type, t)), false, copies_late(p), pieces[2]);
  if (p->turn) pipeline_free_last(p, pieces[2]);
  tir_stmt around = tir_stmt_at(ir, p->loop)->parent;
  tir_kill(ir, p->loop);
  if (lower_is_stage(ir, around))
    tir_kill_alone(ir, around);
  else
    for (int i = 0; i < TIR_PIPELINE_PARTS; i++) tir_kill_alone(ir, pieces[i]);
}

/* ---- A loop ---- */

/* It is done as it stands. */
static void drop(struct tir *ir, tir_stmt loop) {
  for (int i = 0; i < ASKED; i++)
    tir_annotate_span(ir, &tir_stmt_at(ir, loop)->annotations, tir_symbol_of(ir, asked[i]), TIR_NONE);
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (lower_is_stage(ir, s)) tir_kill_alone(ir, s);
  }
}

static bool is_in_order(const struct pipeline *p) {
  for (uint32_t i = 0; i < p->plan.count; i++)
    if (p->plan.statements[i].order != i) return false;
  return !p->plan.depth && !p->runs && !p->arrivals;
}

static void hoist_allocations(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  for (tir_stmt s = tir_stmt_at(ir, p->loop)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_detach(ir, s);
    tir_insert_before(ir, p->loop, s);
  }
}

static bool run_ahead(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  bool once = tir_is_int(ir, p->extent) && tir_at(ir, p->extent)->imm <= 1;
  if (once && !lower_is_stage(ir, tir_stmt_at(ir, p->loop)->parent)) return drop(ir, p->loop), true;
  if (!gather(p) || !read_plan(p)) return false;
  pipeline_find_uses(p);
  if (!pipeline_check_order(p)) return false;
  pipeline_find_tma_copies(p);
  bool async = p->low->options && tir_has(p->low->options->capabilities, TIR_HAS_ASYNC_COPIES);
  for (uint32_t i = 0; i < p->plan.count && async; i++)
    if (p->plan.statements[i].async && !p->parts[i].bulk) begin_copies(p, i);
  number_runs(p);
  if (is_in_order(p)) return drop(ir, p->loop), true;
  pipeline_find_ring(p);
  pipeline_find_producer(p);
  pipeline_find_tiles(p);
  pipeline_find_cluster(p);
  pipeline_put_tma_copies(p);
  if (!pipeline_multi_buffer(p)) return false;
  if (p->plan.producer) pipeline_put_producer(p);
  hoist_allocations(p);
  rotate(p);
  if (p->turn) pipeline_put_tiles(p);
  return true;
}

/* A loop that was made for a delay (loop/delay.c), which nobody asked to be a pipeline, is done as it stands where it
 * cannot be one. */
static bool run_ahead_or_drop(struct pipeline *p) {
  struct lowering *low = p->low;
  bool on_gpu = low->options && low->options->device == TIR_GPU;
  bool delays = tir_annotation(low->ir, tir_stmt_at(low->ir, p->loop)->annotations, TIR_JAM) != TIR_NONE;
  if (on_gpu || !delays) return run_ahead(p);
  ms_error *err = low->err, ignored;
  ms_clear(&ignored);
  low->err = &ignored;
  if (!run_ahead(p)) drop(low->ir, p->loop);
  low->err = err;
  return true;
}

static bool start(struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct pipeline p = {.low = low, .loop = loop, .var = n.loop.var, .min = n.loop.min, .extent = n.loop.extent};
  p.buffers = ir->buffers.count + TIR_PIPELINE_STATEMENTS; /* those that go by registers come to them */
  p.own = calloc(p.buffers, TIR_PIPELINE_STATEMENTS + 1);
  p.stage_buffers = calloc(p.buffers, sizeof *p.stage_buffers);
  if (!p.own || !p.stage_buffers) abort();
  p.uses = p.own + p.buffers;
  bool ok = run_ahead_or_drop(&p);
  free(p.stage_buffers);
  free(p.own);
  return ok;
}

bool lower_pipeline(struct lowering *low) {
  struct tir *ir = low->ir;
  tir_stmt *loops = NULL;
  uint32_t count = 0, capacity = 0;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is_pipeline(ir, s)) continue;
    loops = tir_enlarge(loops, &capacity, (uint64_t)count + 1, sizeof *loops);
    loops[count++] = s;
  }
  bool ok = true;
  while (ok && count) ok = start(low, loops[--count]); /* inner ones first */
  free(loops);
  return ok;
}

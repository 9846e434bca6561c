/* Barriers: between what one thread of a block writes, and what another reads or writes of the same memory after it
 * or before it, all threads of the block synchronize.
 * Requires: kernels; no other pass that lets allocations share memory runs later. Gives: calls of tvm_storage_sync,
 * where no condition or loop differs between threads. Keeps: everything else; but a condition on threads around
 * statements that a barrier must separate comes to stand around each of them.
 *
 * A list of statements is walked with what was touched since the last barrier. Before a statement that may meet some
 * of it a barrier is put, at the level of the list: that separates all that stands before from all that stands
 * after. A loop begins with one where an iteration may meet what the one before touched last. A statement that by
 * itself both reads and writes what threads share cannot be separated, and is refused. Two threads that store one
 * element by one statement store one value, as iterations of blocks do.
 *
 * An asynchronous copy writes from where it begins until its thread has waited for it: what was touched before it is
 * kept apart from where it begins, what comes after the wait from the wait. What comes between touches other stage
 * buffers (pipeline.c). A warp-group MMA reads until it is waited for: the wait reads what it does; where the stage
 * buffer is known that it reads, or that a fragment is loaded from, copies to others need no barrier. Nor do TMA bulk
 * tensor copies, which one thread issues: who reads what they bring waits for that at an mbarrier, and where threads
 * arrive at mbarriers, so does who copies, for the MMAs that read what is overwritten (mbarrier.c). */
#include "footprint.h"
#include "tir/arith/linear.h"

#include <stdlib.h>
#include <string.h>

struct uses {
  struct lower_use *at;
  uint32_t count, capacity;
};

/* What a statement touches before its first barrier, and after its last; without one, both are all. */
struct summary {
  struct uses first, last;
  bool barrier; /* threads certainly synchronize in it */
};

struct pass {
  struct lowering *low;
  struct lower_threads threads;
  uint8_t *watched;    /* by buffer: threads share it, and one of them writes it */
  uint8_t *copied;     /* by buffer: asynchronous copies write it */
  uint8_t *multiplied; /* by buffer: warp-group MMAs read it */
  uint8_t *freed;      /* by buffer of barriers: threads arrive there when they have read */
  tir_stmt top;        /* the innermost of the kernel's loops */
  tir_stmt divided;    /* the condition to be taken apart, which keeps a barrier from standing where it should */
  bool failed;
};

/* ---- Uses ---- */

static void add_use(struct uses *uses, struct lower_use use) {
  uses->at = tir_enlarge(uses->at, &uses->capacity, (uint64_t)uses->count + 1, sizeof *uses->at);
  uses->at[uses->count++] = use;
}

static void add_uses(struct uses *to, const struct uses *from) {
  for (uint32_t i = 0; i < from->count; i++) add_use(to, from->at[i]);
}

static void forget(struct uses *uses) {
  free(uses->at);
  *uses = (struct uses){0};
}

static void free_summary(struct summary *s) {
  forget(&s->first);
  forget(&s->last);
}

struct gathering {
  struct pass *pass;
  struct uses *uses;
  tir_stmt stmt;
};

/* A pointer says what a call does with a buffer. */
static bool gather_pointer(const struct gathering *g, const struct tir_expr_node *n) {
  struct tir_pointer p;
  if (!tir_pointer_of(g->pass->low->ir, n, &p) || !p.buffer || p.uses < 0) return false;
  struct lower_use use = {.stmt = g->stmt, .buffer = p.buffer, .anywhere = true};
  if (p.uses & TIR_POINTER_READS) add_use(g->uses, use);
  use.writes = true;
  if (p.uses & TIR_POINTER_WRITES) add_use(g->uses, use);
  return true;
}

static bool gather_load(void *data, tir_expr e) {
  struct gathering *g = data;
  const struct tir *ir = g->pass->low->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (gather_pointer(g, n)) return false;
  if (n->kind == TIR_DATA && tir_buffer_memory(ir, n->ref) == TIR_THREAD_MEMORY) return false; /* of a warp, at most */
  /* Whoever has another pointer may read and write what it leads to. */
  if (n->kind == TIR_DATA || (n->kind == TIR_CALL && !strcmp(tir_text(ir, n->ref), "address_of")))
    add_use(g->uses, (struct lower_use){.stmt = g->stmt, .writes = true});
  if (n->kind == TIR_LOAD && g->pass->watched[n->ref])
    add_use(g->uses, (struct lower_use){.stmt = g->stmt, .buffer = n->ref, .count = n->count, .indices = n->operands});
  return (n->flags & TIR_HAS_LOAD) || n->kind == TIR_CALL;
}

/* What a statement touches by itself, reads first. */
static void gather(struct pass *p, tir_stmt s, struct uses *uses) {
  const struct tir *ir = p->low->ir;
  struct gathering g = {p, uses, s};
  tir_expr all[4];
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  uint32_t count = n->kind == TIR_DECLARE || n->kind == TIR_ALLOC ? 0 : tir_stmt_exprs(ir, s, all);
  for (uint32_t i = 0; i < count; i++) tir_walk_expr(ir, all[i], gather_load, &g);
  if (n->kind != TIR_STORE) return;
  uint32_t rank = tir_buffer_at(ir, n->store.buffer)->rank;
  for (uint32_t d = 0; d < rank; d++) tir_walk_expr(ir, ir->operands.at[n->store.indices + d], gather_load, &g);
  if (p->watched[n->store.buffer])
    add_use(uses,
            (struct lower_use){
                .stmt = s, .buffer = n->store.buffer, .writes = true, .count = rank, .indices = n->store.indices});
}

static bool same_indices(const struct tir *ir, const struct lower_use *a, const struct lower_use *b) {
  return a->count == b->count && tir_same_operands(ir, a->indices, b->indices, a->count);
}

/* Each variable is of a loop around `around`, so that both uses below it are in one iteration. */
static bool is_settled(struct tir *ir, tir_expr e, tir_stmt around) {
  struct tir_linear l = tir_linear_of(ir, e);
  for (uint32_t i = 0; i < l.count; i++) {
    const struct tir_expr_node *atom = tir_at(ir, tir_terms(ir, l)[i].atom);
    tir_stmt s = around;
    while (s && !(tir_is(ir, s, TIR_LOOP) && atom->kind == TIR_VAR && tir_as(ir, s, TIR_LOOP)->loop.var == atom->ref))
      s = tir_stmt_at(ir, s)->parent;
    if (!s) return false;
  }
  return true;
}

/* One is of an MMA or a fragment, the other of a copy, to another stage buffer. */
static bool are_other_stage_buffers(struct tir *ir, const struct lower_use *a, const struct lower_use *b,
                                    tir_stmt around) {
  if (a->stage_buffer && b->stage_buffer)
    return is_settled(ir, a->stage_buffer, around) && is_settled(ir, b->stage_buffer, around) &&
           lower_are_other_stage_buffers(ir, a->buffer, a->stage_buffer, b->stage_buffer);
  if (b->stage_buffer) return !a->stage_buffer && are_other_stage_buffers(ir, b, a, around);
  if (!a->stage_buffer || b->anywhere || !b->count) return false;
  tir_expr number = lower_stage_buffer_number(ir, ir->operands.at[b->indices], a->buffer);
  return number && is_settled(ir, a->stage_buffer, around) && is_settled(ir, number, around) &&
         lower_are_other_stage_buffers(ir, a->buffer, a->stage_buffer, number);
}

/* Whether a barrier must stand between the two, which are both below `around`. */
static bool conflict(struct pass *p, const struct lower_use *a, const struct lower_use *b, tir_stmt around) {
  struct tir *ir = p->low->ir;
  if (!a->writes && !b->writes) return false;
  if (a->stmt == b->stmt && a->writes && b->writes && a->buffer) return false;
  if (!a->buffer || !b->buffer) return true;
  if ((a->elected && b->elected) || (a->buffer == b->buffer && a->arrives && !b->writes)) return false;
  if (a->buffer == b->buffer && a->multiplies && b->awaits) return false;
  if (a->buffer != b->buffer) return lower_share_bytes(ir, a->buffer, b->buffer);
  if (a->anywhere || b->anywhere) return !are_other_stage_buffers(ir, a, b, around);
  return !lower_is_one_thread(ir, &p->threads, a, b, around) && lower_may_meet(ir, &p->threads, a, b, around);
}

static bool conflicts(struct pass *p, const struct uses *a, const struct uses *b, tir_stmt around) {
  for (uint32_t i = 0; i < a->count; i++)
    for (uint32_t k = 0; k < b->count; k++)
      if (conflict(p, &a->at[i], &b->at[k], around)) return true;
  return false;
}

/* Of an iteration, after its last barrier, and the next one, before its first. */
static bool conflicts_next(struct pass *p, const struct uses *last, const struct uses *first, tir_stmt loop) {
  struct tir *ir = p->low->ir;
  for (uint32_t i = 0; i < last->count; i++)
    for (uint32_t k = 0; k < first->count; k++)
      if (conflict(p, &last->at[i], &first->at[k], tir_stmt_at(ir, loop)->parent) &&
          !lower_are_apart_in_next(ir, &p->threads, &last->at[i], &first->at[k], loop))
        return true;
  return false;
}

/* All threads come to what is in the statement; else what keeps some from it is noted. */
static bool is_reached_by_all(struct pass *p, tir_stmt s) {
  p->divided = lower_find_divergence(p->low->ir, &p->threads, s, p->top);
  return !p->divided;
}

static bool refuse(struct pass *p, tir_stmt place, const char *what) {
  const struct tir *ir = p->low->ir;
  while (place && !tir_is(ir, place, TIR_LOOP)) place = tir_stmt_at(ir, place)->parent;
  p->failed = true;
  return tir_refuse(ir, p->low->err, MS_LOWER_BARRIER, place, "%s", what);
}

/* ---- Putting barriers ---- */

static bool is_barrier(const struct tir *ir, tir_stmt s) { return lower_calls(ir, s, TIR_STORAGE_SYNC); }

static bool summarize(struct pass *p, tir_stmt s, struct summary *out);

/* Puts barriers into a list; what it touches first and last is added to `out`. False: it is not possible as it
 * stands. */
static bool walk_list(struct pass *p, tir_stmt parent, enum tir_list list, struct summary *out) {
  struct tir *ir = p->low->ir;
  bool ok = true;
  for (tir_stmt s = tir_stmt_at(ir, parent)->first[list]; s && ok; s = tir_stmt_at(ir, s)->next) {
    struct summary of = {0};
    ok = summarize(p, s, &of);
    if (ok && conflicts(p, &out->last, &of.first, parent)) {
      ok = is_reached_by_all(p, parent);
      if (ok) tir_insert_before(ir, s, lower_new_barrier(ir));
      out->barrier = true;
      forget(&out->last);
    }
    if (!out->barrier) add_uses(&out->first, &of.first);
    if (of.barrier) forget(&out->last), out->barrier = true;
    add_uses(&out->last, &of.last);
    free_summary(&of);
  }
  return ok;
}

/* Uses of one iteration of the loop. */
static void settle(struct tir *ir, struct uses *uses, tir_stmt loop, tir_expr iteration) {
  tir_subst_var(ir, tir_as(ir, loop, TIR_LOOP)->loop.var, iteration);
  for (uint32_t i = 0; i < uses->count; i++)
    if (uses->at[i].count) uses->at[i].indices = tir_subst_operands(ir, uses->at[i].indices, uses->at[i].count);
  tir_subst_clear(ir);
}

/* Where each iteration has a barrier, what comes before the first is the first iteration's, what comes after the
 * last is the last one's. */
static void settle_ends(struct tir *ir, struct summary *body, tir_stmt loop) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  tir_expr one = tir_int(ir, tir_type_of(ir, n.loop.extent), 1);
  settle(ir, &body->first, loop, n.loop.min);
  settle(ir, &body->last, loop, tir_add(ir, n.loop.min, tir_sub(ir, n.loop.extent, one)));
}

static bool walk_loop(struct pass *p, tir_stmt loop, struct summary *out) {
  struct tir *ir = p->low->ir;
  struct summary body = {0};
  bool ok = walk_list(p, loop, TIR_BODY, &body);
  bool meets = body.barrier ? conflicts_next(p, &body.last, &body.first, loop)
                            : conflicts(p, &body.last, &body.first, tir_stmt_at(ir, loop)->parent);
  if (ok && meets) {
    ok = is_reached_by_all(p, loop);
    if (ok) tir_insert_before(ir, tir_stmt_at(ir, loop)->first[TIR_BODY], lower_new_barrier(ir));
    body.barrier = true;
    forget(&body.first);
  }
  bool runs = tir_is(ir, loop, TIR_LOOP) && tir_loop_extent(ir, loop) > 0;
  out->barrier = body.barrier && runs;
  if (body.barrier && tir_is(ir, loop, TIR_LOOP)) settle_ends(ir, &body, loop);
  add_uses(&out->first, &body.first);
  add_uses(&out->last, &body.last);
  free_summary(&body);
  return ok;
}

/* What others than the kernel's threads do: those wait for what it brings, and for all to know of barriers in shared
 * memory as it begins (producer.c). */
static bool walk_producer(struct pass *p, tir_stmt attr, struct summary *out) {
  struct summary of = {0};
  bool ok = walk_list(p, attr, TIR_BODY, &of);
  assert(!ok || !of.barrier);
  add_uses(&out->last, &of.last);
  free_summary(&of);
  return ok && (out->barrier = true);
}

static bool walk_if(struct pass *p, tir_stmt test, struct summary *out) {
  struct summary yes = {0}, no = {0};
  bool ok = walk_list(p, test, TIR_BODY, &yes) && walk_list(p, test, TIR_ELSE, &no);
  out->barrier = yes.barrier && no.barrier;
  add_uses(&out->first, &yes.first);
  add_uses(&out->first, &no.first);
  add_uses(&out->last, &yes.last);
  add_uses(&out->last, &no.last);
  free_summary(&yes);
  free_summary(&no);
  return ok;
}

/* What a wait waits for is there for others only behind a barrier. */
static void add_arrivals(const struct pass *p, tir_stmt wait, struct uses *uses) {
  for (tir_buffer b = 1; b < p->low->ir->buffers.count; b++)
    if (p->copied[b]) add_use(uses, (struct lower_use){.stmt = wait, .buffer = b, .anywhere = true, .writes = true});
}

/* Notes what the MMA reads, and of which stage buffers. */
static void note_product(const struct pass *p, tir_stmt product, struct uses *uses) {
  struct lower_stage_buffer of[2];
  bool known = lower_find_stage_buffers(p->low->ir, product, of) && of[0].buffer != of[1].buffer;
  for (uint32_t i = 0; i < uses->count; i++) {
    struct lower_use *u = &uses->at[i];
    if (!u->buffer || u->writes) continue;
    p->multiplied[u->buffer] = 1, u->multiplies = true;
    if (known && u->anywhere && u->buffer == of[0].buffer) u->stage_buffer = of[0].number;
    if (known && u->anywhere && u->buffer == of[1].buffer) u->stage_buffer = of[1].number;
  }
}

/* Barriers in memory, and copies that they wait for, are one thread's to begin (lower_elect). */
static void note_elected(const struct pass *p, tir_stmt s, struct uses *uses) {
  enum tir_device_call which = tir_is(p->low->ir, s, TIR_EVALUATE)
                                   ? tir_device_call_of(p->low->ir, tir_as(p->low->ir, s, TIR_EVALUATE)->evaluate.value)
                                   : TIR_DEVICE_CALLS;
  bool elected = which != TIR_DEVICE_CALLS && tir_device_calls[which].by == TIR_BY_ONE;
  for (uint32_t i = 0; i < uses->count && elected; i++) uses->at[i].elected = true;
}

/* Notes which stage buffer the copy writes. */
static void note_tma_copy(const struct pass *p, tir_stmt copy, struct uses *uses) {
  struct lower_stage_buffer of;
  struct tir_box b;
  bool known = lower_find_copied_stage_buffer(p->low->ir, copy, &of);
  bool awaits = tir_box_of(p->low->ir, tir_as(p->low->ir, copy, TIR_EVALUATE)->evaluate.value, &b) &&
                p->freed[tir_pointed(p->low->ir, b.barrier)];
  for (uint32_t i = 0; i < uses->count; i++) {
    struct lower_use *u = &uses->at[i];
    if (!u->writes || !u->buffer) continue;
    u->arrives = true, u->awaits = awaits;
    if (known && u->buffer == of.buffer) u->stage_buffer = of.number;
  }
}

/* Notes of which stage buffer the fragment is. */
static void note_fragment(const struct pass *p, tir_stmt load, struct uses *uses) {
  struct lower_stage_buffer of;
  if (!lower_find_loaded_stage_buffer(p->low->ir, load, &of)) return;
  for (uint32_t i = 0; i < uses->count; i++) {
    struct lower_use *u = &uses->at[i];
    if (!u->writes && u->anywhere && u->buffer == of.buffer) u->stage_buffer = of.number;
  }
}

/* MMAs read until they are waited for: who writes after the wait is kept apart from that. Who writes before it
 * has to do with where they begin. */
static void add_products(const struct pass *p, tir_stmt wait, struct uses *uses) {
  for (tir_buffer b = 1; b < p->low->ir->buffers.count; b++)
    if (p->multiplied[b])
      add_use(uses, (struct lower_use){.stmt = wait, .buffer = b, .anywhere = true, .multiplies = true});
}

/* Of one statement, what it reads is there before any thread has written. */
static bool walk_leaf(struct pass *p, tir_stmt s, struct summary *out) {
  struct tir *ir = p->low->ir;
  if (is_barrier(ir, s) || lower_calls(ir, s, TIR_CLUSTER_BARRIER)) return out->barrier = true;
  if (lower_calls(ir, s, TIR_WAIT_GROUP)) return add_arrivals(p, s, &out->last), true;
  if (lower_calls(ir, s, TIR_WGMMA_WAIT)) return add_products(p, s, &out->last), true;
  gather(p, s, &out->first);
  note_elected(p, s, &out->first);
  if (lower_is_product(ir, s)) note_product(p, s, &out->first);
  if (lower_is_tma_copy(ir, s)) note_tma_copy(p, s, &out->first);
  if (lower_calls(ir, s, TIR_MMA_LOAD)) note_fragment(p, s, &out->first);
  add_uses(&out->last, &out->first);
  if (!out->first.count || !tir_is(ir, s, TIR_STORE)) return true;
  const struct lower_use *write = &out->first.at[out->first.count - 1];
  for (uint32_t i = 0; write->writes && write->buffer && i + 1 < out->first.count; i++)
    if (!same_indices(ir, &out->first.at[i], write) &&
        conflict(p, &out->first.at[i], write, tir_stmt_at(ir, s)->parent))
      return refuse(p, s, "one statement writes what other threads read by it");
  return true;
}

static bool summarize(struct pass *p, tir_stmt s, struct summary *out) {
  switch ((enum tir_stmt_kind)tir_stmt_at(p->low->ir, s)->kind) {
  case TIR_LOOP:
  case TIR_WHILE: gather(p, s, &out->first); return walk_loop(p, s, out);
  case TIR_IF: gather(p, s, &out->first); return walk_if(p, s, out);
  case TIR_ATTR: return lower_is_producer(p->low->ir, s) ? walk_producer(p, s, out) : walk_list(p, s, TIR_BODY, out);
  default: return walk_leaf(p, s, out);
  }
}

/* ---- Conditions in the way ---- */

static tir_stmt under(struct tir *ir, tir_stmt s, tir_expr condition) {
  tir_stmt test = tir_new_if(ir, condition);
  tir_wrap(ir, s, test);
  return test;
}

/* Each statement of the list gets the condition for itself. False: a value that holds for the rest of the list is
 * loaded, which the condition must guard. */
static bool guard_each(struct tir *ir, tir_stmt parent, enum tir_list list, tir_expr condition) {
  for (tir_stmt s = tir_stmt_at(ir, parent)->first[list], next; s; s = next) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    next = n->next;
    if (n->kind == TIR_BIND && (tir_at(ir, n->bind.value)->flags & TIR_HAS_LOAD)) return false;
    if (n->kind != TIR_BIND && n->kind != TIR_ALLOC && n->kind != TIR_DECLARE) under(ir, s, condition);
  }
  return true;
}

/* The condition and those right below it, which have nothing beside them, become one. */
static tir_expr join_conditions(struct tir *ir, tir_stmt test) {
  tir_expr condition = tir_as(ir, test, TIR_IF)->test.condition;
  for (;;) {
    tir_stmt inner = tir_stmt_at(ir, test)->first[TIR_BODY];
    bool alone = inner && !tir_stmt_at(ir, inner)->next && !tir_stmt_at(ir, test)->first[TIR_ELSE];
    if (!alone || !tir_is(ir, inner, TIR_IF) || tir_stmt_at(ir, inner)->first[TIR_ELSE]) return condition;
    condition = tir_and(ir, condition, tir_as(ir, inner, TIR_IF)->test.condition);
    tir_kill_alone(ir, inner);
  }
}

/* Takes the condition in the way apart: it comes to stand around each statement below it; if there is but one, around
 * each in that. */
static bool divide(struct pass *p) {
  struct tir *ir = p->low->ir;
  tir_stmt test = p->divided;
  assert(test && !p->failed);
  if (!tir_is(ir, test, TIR_IF))
    return refuse(p, test, "threads must synchronize in a loop that some leave before others");
  tir_expr condition = join_conditions(ir, test);
  if (tir_at(ir, condition)->flags & TIR_HAS_LOAD)
    return refuse(p, test, "threads must synchronize where memory decides which of them come there");
  tir_stmt only = tir_only_child(ir, test);
  bool inside =
      only && !tir_stmt_at(ir, test)->first[TIR_ELSE] && (tir_is(ir, only, TIR_LOOP) || tir_is(ir, only, TIR_ATTR));
  bool whole =
      inside ? guard_each(ir, only, TIR_BODY, condition)
             : guard_each(ir, test, TIR_BODY, condition) && guard_each(ir, test, TIR_ELSE, tir_not(ir, condition));
  if (!whole) return refuse(p, test, "threads must synchronize where a value is loaded that some of them do not have");
  tir_move_children(ir, test, TIR_ELSE, test, TIR_BODY);
  tir_kill_alone(ir, test);
  return true;
}

/* ---- A kernel ---- */

static void drop_barriers(struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top, next; s; s = next) {
    next = tir_next(ir, s, top);
    if (is_barrier(ir, s)) tir_kill(ir, s);
  }
}

/* The buffer of barriers where threads arrive. */
static tir_buffer barrier_at(const struct tir *ir, tir_stmt arrive) {
  tir_expr call = tir_as(ir, arrive, TIR_EVALUATE)->evaluate.value;
  return tir_pointed(ir, tir_operands(ir, tir_at(ir, call)->operands)[0]);
}

static void watch(struct tir *ir, void *data, tir_stmt s, const struct access *access, bool writes) {
  struct pass *p = data;
  if (writes && lower_is_async(ir, s)) p->copied[access->buffer] = 1;
  enum tir_memory memory = tir_buffer_memory(ir, access->buffer);
  if (memory == TIR_BLOCK_MEMORY || (memory == TIR_DEVICE_MEMORY && writes)) p->watched[access->buffer] = 1;
}

static bool set_barriers(struct lowering *low, tir_stmt kernel) {
  struct tir *ir = low->ir;
  struct pass p = {.low = low, .watched = calloc(4, ir->buffers.count)};
  if (!p.watched) abort();
  p.copied = p.watched + ir->buffers.count, p.multiplied = p.copied + ir->buffers.count;
  p.freed = p.multiplied + ir->buffers.count;
  p.threads = lower_threads_of(ir, kernel, &p.top);
  lower_visit(ir, kernel, watch, &p);
  for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel))
    if (lower_is_arrival(ir, s)) p.freed[barrier_at(ir, s)] = 1;
  for (bool done = false; !done && !p.failed;) {
    struct summary whole = {0};
    drop_barriers(ir, kernel);
    done = walk_list(&p, p.top, TIR_BODY, &whole);
    free_summary(&whole);
    if (!done && !p.failed) divide(&p);
  }
  free(p.watched);
  return !p.failed;
}

bool lower_barriers(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = tir_stmt_at(ir, low->body)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    if (tir_is_bound(ir, s) && !set_barriers(low, s)) return false;
  return true;
}

/* Mbarriers: TMA bulk tensor copies in a software pipeline (pipeline.c), which one thread issues, and mbarriers in
 * shared memory that keep who copies and who multiplies apart.
 *
 *   for k: S[k % 3] = A[k]; C += S[(k - 1) % 3]    becomes, with two mbarriers a stage buffer, 0 to 2 and 3 to 5:
 *
 *   for k: if first thread: mbarrier_wait(3 + k % 3, …); mbarrier_expect(k % 3, …); tensor_copy(S[k % 3], …)
 *          mbarrier_wait((k - 1) % 3, …); C += S[(k - 1) % 3]; if first of a warp: mbarrier_arrive(3 + (k - 1) % 3)
 *
 * Those of iteration k have number k modulo the stage buffers, and their phases end for the k / stage buffers'th
 * time: that decides the parity that consumers wait for, and, one time later, the producer; the phase before the
 * first has ended. What products in flight read may be overwritten one iteration later (groups.c puts waits between
 * products and what follows). Each warp arrives, since it waits for its own products. Where others than one
 * statement of warp-group MMAs read what the copies bring, or anything is read besides that the loop writes, threads
 * synchronize instead (barriers.c). Source: PTX ISA, "mbarrier"; CUTLASS, "sm90_pipeline.hpp". */
#include "pipeline.h"
#include "tir/lower/gpu/footprint.h"

#include <string.h>

void pipeline_find_tma_copies(struct pipeline *p) {
  const struct lowering *low = p->low;
  int64_t stage = -1;
  for (uint32_t i = 0; i < p->plan.count && p->plan.bulk; i++) {
    struct part *part = &p->parts[i];
    const struct tir_pipeline_statement *planned = &p->plan.statements[i];
    const char *why = "the target has no such copies";
    if (!planned->async) continue;
    bool found = low->options && tir_has(low->options->capabilities, TIR_HAS_TENSOR_COPIES);
    found = found && lower_find_tma_copy(low->ir, p->loop, part->stmt, &part->copy, &why);
    if (found && (!p->own[part->copy.to] || !pipeline_is_for_others(p, i, part->copy.to)))
      found = false, why = "another statement writes what it fills";
    if (found && stage >= 0 && planned->stage != stage) found = false, why = "another stage has such copies";
    if (!found) {
      char note[200];
      snprintf(note, sizeof note, "one whose statement %u is a TMA bulk tensor copy: %s", i, why);
      lower_note(low, p->loop, note);
      continue;
    }
    stage = planned->stage, part->bulk = true, p->arrivals++;
    *uses_at(p, i, part->copy.to) = PIPELINE_WRITES | PIPELINE_BY_INDEX | PIPELINE_TMA_COPIES;
  }
  p->plan.bulk = p->arrivals > 0;
}

bool pipeline_needs_tma_copies(const struct pipeline *p, uint32_t part) {
  bool any = false;
  for (uint32_t i = 0; i < p->plan.count; i++)
    for (tir_buffer b = 1; b < p->buffers && i != part; b++)
      any |= (uses_of(p, i, b) & PIPELINE_TMA_COPIES) && uses_of(p, part, b);
  return any;
}

static int64_t threads_of(const struct pipeline *p) {
  tir_stmt inside;
  struct lower_threads t = lower_threads_of(p->low->ir, pipeline_kernel(p), &inside);
  return t.extent[0] * t.extent[1] * t.extent[2];
}

/* ---- What may be overwritten ---- */

/* One statement reads what TMA brings, by warp-group MMAs, and nothing besides that threads share and the loop writes;
 * NULL: so it is. */
static const char *why_not_freed(struct pipeline *p) {
  const struct tir *ir = p->low->ir;
  uint32_t readers = 0;
  for (uint32_t i = 0; i < p->plan.count; i++) {
    const struct part *part = &p->parts[i];
    if (part->bulk && pipeline_buffers_for(p, part->copy.to) != p->plan.ring)
      return "they are more for one buffer than for another";
    if (!pipeline_needs_tma_copies(p, i)) continue;
    if (readers++ || !p->plan.statements[i].multiplies) return "others than MMAs of one statement read them";
    for (tir_buffer b = 1; b < ir->buffers.count; b++) {
      if (!(uses_of(p, i, b) & PIPELINE_READS) || tir_buffer_memory(ir, b) != TIR_BLOCK_MEMORY) continue;
      bool brought = false, written = false;
      for (uint32_t k = 0; k < p->plan.count; k++) {
        brought |= (uses_of(p, k, b) & PIPELINE_TMA_COPIES) != 0;
        written |= (uses_of(p, k, b) & PIPELINE_WRITES) != 0;
      }
      if (written && !brought) return "MMAs read what threads copy besides";
    }
  }
  return threads_of(p) % TIR_GROUP ? "the block is not of whole warp groups" : NULL;
}

/* ---- Barriers ---- */

static void init(struct pipeline *p, uint32_t number, int64_t arrivals, tir_stmt to) {
  assert(arrivals > 0 && number < tir_pipeline_mbarriers(&p->plan));
  struct tir *ir = p->low->ir;
  tir_expr args[] = {lower_pointer(ir, p->mbarriers, tir_int(ir, TIR_T_I32, number), TIR_POINTER_WRITES),
                     tir_int(ir, TIR_T_I32, arrivals)};
  lower_append_call(ir, to, TIR_MBARRIER_INIT, args, 2);
}

/* At the kernel's start, where one thread makes them, and all synchronize before they are used. */
static void allocate_barriers(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  tir_stmt inside;
  lower_threads_of(ir, pipeline_kernel(p), &inside);
  uint32_t count = tir_pipeline_mbarriers(&p->plan);
  assert(count && p->arrivals && (!p->plan.frees || threads_of(p) % TIR_GROUP == 0));
  tir_expr size = tir_int(ir, TIR_T_I32, count);
  p->mbarriers = tir_new_buffer(ir, tir_symbol_of(ir, "phases"), TIR_TYPE(TIR_UINT, 64, 1), &size, 1,
                                tir_scope_named(ir, TIR_SCOPE_MBARRIER));
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC), begin = lower_new_stage(ir, 0);
  tir_stmt_at(ir, alloc)->alloc.buffer = p->mbarriers;
  tir_buffer_at(ir, p->mbarriers)->where = alloc;
  for (uint32_t i = 0; i < count; i++)
    init(p, i, i < tir_first_empty_mbarrier(&p->plan) ? p->arrivals : threads_of(p) / TIR_WARP * p->plan.multicast,
         begin);
  lower_append_call(ir, begin, TIR_MBARRIER_FENCE, NULL, 0);
  tir_insert_before(ir, tir_stmt_at(ir, inside)->first[TIR_BODY], alloc);
  tir_insert_after(ir, alloc, begin);
  p->made = lower_elect(ir, p->loop, begin);
  tir_kill_alone(ir, begin);
}

/* The barrier of the iteration, from the first of its kind on. */
static tir_expr barrier_of(struct pipeline *p, tir_expr iteration, uint32_t first) {
  assert(p->plan.ring && first + p->plan.ring <= tir_pipeline_mbarriers(&p->plan));
  struct tir *ir = p->low->ir;
  tir_type type = tir_type_of(ir, iteration);
  tir_expr number = tir_floormod(ir, pipeline_number(p, iteration), tir_int(ir, type, p->plan.ring));
  return lower_pointer(ir, p->mbarriers, tir_add(ir, number, tir_int(ir, type, first)), TIR_POINTER_READS);
}

/* The parity of the phase of the iteration, or of so many after it. */
static tir_expr parity_of(struct pipeline *p, tir_expr iteration, int64_t later) {
  struct tir *ir = p->low->ir;
  tir_type type = tir_type_of(ir, iteration);
  tir_expr time = tir_floordiv(ir, pipeline_number(p, iteration), tir_int(ir, type, p->plan.ring));
  return tir_floormod(ir, tir_add(ir, time, tir_int(ir, type, later)), tir_int(ir, type, 2));
}

/* Takes what `stage` holds, which was appended to what stands around it, under the condition. */
static void settle(struct tir *ir, tir_stmt stage, tir_expr condition) {
  if (condition) {
    tir_stmt test = tir_new_if(ir, condition);
    tir_wrap(ir, stage, test);
  }
  tir_kill_alone(ir, stage);
}

/* ---- Around copies and products ---- */

/* All statements that may be TMA bulk tensor copies are. */
static bool all_asked(const struct pipeline *p) {
  bool all = true;
  for (uint32_t i = 0; i < p->plan.count; i++) all &= !p->plan.statements[i].async || p->parts[i].bulk;
  return all;
}

void pipeline_find_ring(struct pipeline *p) {
  if (!p->arrivals) return;
  p->plan.ring = 1;
  for (uint32_t i = 0; i < p->plan.count; i++) {
    uint32_t needed = p->parts[i].bulk ? pipeline_buffers_for(p, p->parts[i].copy.to) : 0;
    if (needed > p->plan.ring) p->plan.ring = needed;
  }
  const char *why = why_not_freed(p);
  p->plan.frees = !why;
  if (why && all_asked(p)) { /* else what is no such copy is noted */
    char note[200];
    snprintf(note, sizeof note, "one whose stage buffers are freed by mbarriers: %s", why);
    lower_note(p->low, p->loop, note);
  }
}

void pipeline_put_tma_copies(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  if (!p->arrivals) return;
  allocate_barriers(p);
  tir_expr iteration = tir_sub(ir, tir_var_expr(ir, p->var), p->min);
  bool waits = p->plan.frees;
  for (uint32_t at = 0; at < p->plan.count; at++) {
    struct part *part = &p->parts[p->by_order[at]];
    if (!part->bulk) continue;
    struct lower_tma_copy copy = pipeline_own_part(p, p->by_order[at]);
    tir_stmt stage = lower_new_stage(ir, pipeline_requests(ir, part->stmt)), begin = lower_new_stage(ir, 0);
    tir_append(ir, stage, TIR_BODY, begin);
    if (waits) { /* in each step, for all that are copied in it */
      tir_expr args[] = {barrier_of(p, iteration, tir_first_empty_mbarrier(&p->plan)), parity_of(p, iteration, 1)};
      lower_append_call(ir, begin, TIR_MBARRIER_WAIT, args, 2);
      waits = false;
    }
    tir_expr ring = tir_int(ir, tir_type_of(ir, iteration), p->plan.ring);
    lower_put_tma_copy(ir, &copy, p->mbarriers, tir_floormod(ir, pipeline_number(p, iteration), ring), begin);
    tir_insert_before(ir, part->stmt, stage);
    if (!p->plan.producer) lower_elect(ir, p->loop, begin);
    tir_kill_alone(ir, begin);
    tir_kill(ir, part->stmt);
    part->stmt = stage;
  }
}

static tir_expr iteration_in(struct pipeline *p, uint32_t part, tir_expr t) {
  struct tir *ir = p->low->ir;
  return tir_sub(ir, t, tir_int(ir, tir_type_of(ir, p->extent), p->plan.statements[part].stage));
}

void pipeline_wait_for_tma_copies(struct pipeline *p, uint32_t part, tir_expr t, tir_expr condition, tir_stmt to) {
  struct tir *ir = p->low->ir;
  tir_expr iteration = iteration_in(p, part, t);
  tir_expr args[] = {barrier_of(p, iteration, 0), parity_of(p, iteration, 0)};
  tir_stmt stage = lower_new_stage(ir, 0);
  lower_append_call(ir, stage, TIR_MBARRIER_WAIT, args, 2);
  tir_append(ir, to, TIR_BODY, stage);
  settle(ir, stage, condition);
}

void pipeline_free_tma_copies(struct pipeline *p, uint32_t part, tir_expr t, tir_expr condition, tir_stmt to) {
  struct tir *ir = p->low->ir;
  if (!p->plan.frees) return;
  tir_type type = tir_type_of(ir, p->extent);
  tir_expr lag = tir_int(ir, type, tir_pipeline_lag(&p->plan)), iteration = iteration_in(p, part, t);
  tir_expr any = tir_simplify(ir, tir_make(ir, TIR_GE, iteration, lag));
  if (tir_is_const(ir, any, 0)) return;
  if (!tir_is_const(ir, any, 1) && !tir_prove(ir, any)) condition = tir_and(ir, condition, any);
  tir_expr at = barrier_of(p, tir_sub(ir, iteration, lag), tir_first_empty_mbarrier(&p->plan));
  tir_stmt stage = lower_new_stage(ir, 0);
  tir_expr lane = lower_lane(ir, pipeline_kernel(p)), blocks = tir_int(ir, TIR_T_I32, p->plan.multicast);
  tir_expr args[] = {at, lane};
  bool several = p->plan.multicast > 1; /* lane r arrives in block r of the cluster */
  lower_append_call(ir, stage, several ? TIR_MBARRIER_ARRIVE_AT : TIR_MBARRIER_ARRIVE, args, several ? 2 : 1);
  tir_append(ir, to, TIR_BODY, stage);
  tir_expr first = several ? tir_make(ir, TIR_LT, lane, blocks) : tir_make(ir, TIR_EQ, lane, tir_int(ir, TIR_T_I32, 0));
  settle(ir, stage, condition ? tir_and(ir, first, condition) : first);
}

/* What products left in flight have read is freed by iterations behind them: here, by none. */
void pipeline_free_last(struct pipeline *p, tir_stmt to) {
  struct tir *ir = p->low->ir;
  tir_type type = tir_type_of(ir, p->extent);
  for (uint32_t i = 0; i < p->plan.count; i++)
    for (int64_t late = 0; pipeline_needs_tma_copies(p, i) && late < tir_pipeline_lag(&p->plan); late++)
      pipeline_free_tma_copies(p, i, tir_add(ir, p->extent, tir_int(ir, type, p->plan.statements[i].stage + late)),
                               TIR_NONE, to);
}

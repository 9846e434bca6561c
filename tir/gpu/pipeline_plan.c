/* Plans of software pipelines: what annotations request, how many stage buffers that needs, how many registers each
 * role of warp groups gets. The only place that decides these. */
#include "tir/tir.h"

bool tir_is_pipeline(const struct tir *ir, tir_stmt s) {
  return tir_is(ir, s, TIR_LOOP) && tir_annotation(ir, tir_stmt_at(ir, s)->annotations, TIR_PIPELINE_STAGE);
}

static bool requests(const struct tir *ir, tir_block block, const char *key) {
  tir_expr value = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, key);
  return value && tir_is_int(ir, value);
}

unsigned tir_statement_requests(const struct tir *ir, tir_stmt top) {
  tir_block only = TIR_NONE;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    if (only) return 0;
    only = s;
  }
  if (!only) return 0;
  return (requests(ir, only, "tir.manifest_shared_memory_local_stage") ? TIR_STATEMENT_BY_REGISTERS : 0) |
         (requests(ir, only, "double_buffer_scope") ? TIR_STATEMENT_DOUBLES : 0);
}

/* ---- Annotations ---- */

struct plan_reading {
  const struct tir *ir;
  tir_stmt loop;
  struct tir_pipeline_plan *plan;
  ms_error *err;
};

static tir_expr annotation_of(const struct plan_reading *r, const char *key) {
  return tir_annotation(r->ir, tir_stmt_at(r->ir, r->loop)->annotations, key);
}

/* A list of integers; NULL: it is none. */
static const struct tir_expr_node *numbers_of(const struct plan_reading *r, const char *key) {
  const struct tir *ir = r->ir;
  tir_expr value = annotation_of(r, key);
  const struct tir_expr_node *n = value ? tir_at(ir, value) : NULL;
  for (uint32_t i = 0; n && n->kind == TIR_LIST && i < n->count; i++)
    if (!tir_is_int(ir, tir_operands(ir, n->operands)[i])) return NULL;
  return n && n->kind == TIR_LIST ? n : NULL;
}

static int64_t number_at(const struct plan_reading *r, const struct tir_expr_node *list, uint32_t i) {
  assert(i < list->count);
  return tir_at(r->ir, tir_operands(r->ir, list->operands)[i])->imm;
}

static bool refuse_plan(const struct plan_reading *r, const char *what) {
  return tir_refuse(r->ir, r->err, MS_LOWER_PIPELINE, r->loop, "%s", what);
}

static bool read_statements(const struct plan_reading *r) {
  struct tir_pipeline_plan *plan = r->plan;
  const struct tir_expr_node *stages = numbers_of(r, TIR_PIPELINE_STAGE), *order = numbers_of(r, TIR_PIPELINE_ORDER);
  const struct tir_expr_node *async = numbers_of(r, TIR_PIPELINE_ASYNC);
  bool taken[TIR_PIPELINE_STATEMENTS] = {false};
  if (!stages || !order || stages->count != plan->count || order->count != plan->count)
    return tir_refuse(r->ir, r->err, MS_LOWER_PIPELINE, r->loop,
                      "its body has %u statements, and is given %u stages and %u places", plan->count,
                      stages ? stages->count : 0, order ? order->count : 0);
  int64_t first = INT64_MAX;
  for (uint32_t i = 0; i < plan->count; i++)
    if (number_at(r, stages, i) < first) first = number_at(r, stages, i);
  for (uint32_t i = 0; i < plan->count; i++) {
    struct tir_pipeline_statement *s = &plan->statements[i];
    int64_t at = number_at(r, order, i), stage = number_at(r, stages, i);
    if (at < 0 || at >= plan->count || taken[at])
      return refuse_plan(r, "two of its statements are given one place, or one none");
    taken[at] = true;
    if (stage - first > TIR_PIPELINE_DEEPEST) return refuse_plan(r, "it has more stages than a pipeline may");
    s->order = (uint32_t)at, s->stage = stage - first, s->async = false;
    for (uint32_t k = 0; async && k < async->count; k++) s->async |= number_at(r, async, k) == stage;
    if (s->stage > plan->depth) plan->depth = s->stage;
  }
  return true;
}

/* An annotation that is 0 or 1; none is as 0. */
static bool read_switch(const struct plan_reading *r, const char *key, bool *out) {
  tir_expr value = annotation_of(r, key);
  *out = value && tir_is_const(r->ir, value, 1);
  return !value || *out || tir_is_const(r->ir, value, 0) ||
         tir_refuse(r->ir, r->err, MS_LOWER_PIPELINE, r->loop, "%s is neither 0 nor 1", key);
}

static bool read_blocks(const struct plan_reading *r) {
  tir_expr value = annotation_of(r, TIR_PIPELINE_BLOCKS);
  bool constant = value && tir_is_int(r->ir, value);
  r->plan->blocks = constant ? tir_at(r->ir, value)->imm : 0;
  return !value || (constant && r->plan->blocks >= 0 && r->plan->blocks <= INT32_MAX) ||
         refuse_plan(r, "it asks for a number of blocks that is no constant, or below 0");
}

static bool read_multicast(const struct plan_reading *r) {
  tir_expr value = annotation_of(r, TIR_PIPELINE_MULTICAST);
  int64_t blocks = value && tir_is_int(r->ir, value) ? tir_at(r->ir, value)->imm : -1;
  r->plan->multicast = blocks > 1 ? blocks : 1;
  return !value || (blocks >= 0 && blocks <= TIR_CLUSTER_MOST && !(blocks & (blocks - 1))) ||
         tir_refuse(r->ir, r->err, MS_LOWER_PIPELINE, r->loop, "%s is none of 0, 1, 2, 4 and %d",
                    TIR_PIPELINE_MULTICAST, TIR_CLUSTER_MOST);
}

bool tir_read_pipeline(const struct tir *ir, tir_stmt loop, struct tir_pipeline_plan *plan, ms_error *err) {
  assert(tir_is_pipeline(ir, loop) && plan->count <= TIR_PIPELINE_STATEMENTS && !plan->depth);
  struct plan_reading r = {ir, loop, plan, err};
  bool in_flight;
  if (!read_statements(&r) || !read_switch(&r, TIR_PIPELINE_IN_FLIGHT, &in_flight)) return false;
  plan->in_flight = in_flight;
  return read_switch(&r, TIR_PIPELINE_BULK, &plan->bulk) && read_switch(&r, TIR_PIPELINE_PRODUCER, &plan->producer) &&
         read_blocks(&r) && read_multicast(&r);
}

/* ---- Stage buffers ---- */

/* With n of them, iteration k + n writes where iteration k has read: that use comes first, in a step before or
 * earlier in the same. What products in flight read, they do for a step more. */
uint32_t tir_stage_buffers(const struct tir_pipeline_plan *plan, const uint8_t *uses, tir_statements_apart *apart,
                           void *data) {
  int64_t most = 1;
  assert(plan->count <= TIR_PIPELINE_STATEMENTS);
  for (uint32_t w = 0; w < plan->count; w++) {
    const struct tir_pipeline_statement *writer = &plan->statements[w];
    if (!(uses[w] & TIR_STATEMENT_WRITES)) continue;
    if (writer->doubles && most < 2) most = 2;
    for (uint32_t u = 0; u < plan->count; u++) {
      const struct tir_pipeline_statement *user = &plan->statements[u];
      if (u == w || !uses[u]) continue;
      int64_t steps = user->stage - writer->stage, needed = writer->order > user->order ? steps : steps + 1;
      if (user->multiplies) needed += tir_pipeline_lag(plan);
      if (needed > most && (!apart || !apart(data, w, u))) most = needed;
    }
  }
  assert(most >= 1 && most <= TIR_PIPELINE_DEEPEST + 2);
  return (uint32_t)most;
}

/* ---- Registers ---- */

int64_t tir_registers_each(int64_t threads) {
  assert(threads > 0);
  int64_t each = TIR_BLOCK_REGISTERS / threads / TIR_REGISTERS_UNIT * TIR_REGISTERS_UNIT;
  return each < TIR_MOST_REGISTERS ? each : TIR_MOST_REGISTERS;
}

/* A block's, shared out in whole units. */
bool tir_share_registers(int64_t consumers, struct tir_role_registers *out) {
  enum { ENOUGH_TO_COPY = 40, MOST_OF_USE = 240 };
  int64_t each = tir_registers_each(consumers + TIR_GROUP);
  if (each >= MOST_OF_USE) return false;
  int64_t left = each * (consumers + TIR_GROUP) - ENOUGH_TO_COPY * TIR_GROUP;
  int64_t own = left / consumers / TIR_REGISTERS_UNIT * TIR_REGISTERS_UNIT;
  *out = (struct tir_role_registers){own < MOST_OF_USE ? own : MOST_OF_USE, ENOUGH_TO_COPY};
  assert(out->consumer * consumers + out->producer * TIR_GROUP <= TIR_BLOCK_REGISTERS);
  return true;
}

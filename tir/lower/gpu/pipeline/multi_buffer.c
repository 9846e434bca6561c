/* Versions: what a software pipeline's statements touch, whether they keep its order, and how many iterations'
 * contents a buffer of the loop's own must hold at a time. */
#include "pipeline.h"

#include <string.h>

/* ---- Uses ---- */

struct use_search {
  struct pipeline *p;
  uint32_t part;
};

static bool find_use(void *data, tir_expr e) {
  struct use_search *s = data;
  const struct tir *ir = s->p->low->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  const tir_expr *args = tir_operands(ir, n->operands);
  if (n->kind == TIR_LOAD) *uses_at(s->p, s->part, n->ref) |= PIPELINE_READS | PIPELINE_BY_INDEX;
  if (n->kind == TIR_DATA) *uses_at(s->p, s->part, n->ref) |= PIPELINE_BY_POINTER | PIPELINE_READS | PIPELINE_WRITES;
  if (n->kind == TIR_CALL && n->count == 1 && !strcmp(tir_text(ir, n->ref), "address_of") &&
      tir_at(ir, args[0])->kind == TIR_LOAD)
    *uses_at(s->p, s->part, tir_at(ir, args[0])->ref) |= PIPELINE_BY_POINTER | PIPELINE_READS | PIPELINE_WRITES;
  struct tir_pointer to;
  if (!tir_pointer_of(ir, n, &to) || !to.buffer || to.uses < 0) return true;
  *uses_at(s->p, s->part, to.buffer) |= (uint8_t)(PIPELINE_BY_POINTER | to.uses);
  tir_walk_expr(ir, to.offset, find_use, s);
  return false;
}

void pipeline_find_uses(struct pipeline *p) {
  const struct tir *ir = p->low->ir;
  assert(ir->buffers.count <= p->buffers);
  for (uint32_t i = 0; i < p->plan.count; i++) {
    struct use_search search = {p, i};
    for (tir_stmt s = p->parts[i].stmt; s; s = tir_next(ir, s, p->parts[i].stmt)) {
      tir_expr all[4];
      const struct tir_stmt_node *n = tir_stmt_at(ir, s);
      uint32_t count = n->kind == TIR_ALLOC ? 0 : tir_stmt_exprs(ir, s, all);
      for (uint32_t k = 0; k < count; k++) tir_walk_expr(ir, all[k], find_use, &search);
      if (n->kind != TIR_STORE) continue;
      *uses_at(p, i, n->store.buffer) |= PIPELINE_WRITES | PIPELINE_BY_INDEX;
      for (uint32_t d = 0; d < tir_buffer_at(ir, n->store.buffer)->rank; d++)
        tir_walk_expr(ir, ir->operands.at[n->store.indices + d], find_use, &search);
    }
  }
}

/* ---- Order ---- */

/* In one iteration, `first` still comes before `then`. */
static bool comes_first(const struct tir_pipeline_statement *first, const struct tir_pipeline_statement *then) {
  return first->stage < then->stage || (first->stage == then->stage && first->order < then->order);
}

/* Of what has one stage buffer, `then` of an iteration also comes before `first` of the next one. */
static bool ends_first(const struct tir_pipeline_statement *first, const struct tir_pipeline_statement *then) {
  return then->stage < first->stage + 1 || (then->stage == first->stage + 1 && then->order < first->order);
}

bool pipeline_check_order(const struct pipeline *p) {
  const struct tir *ir = p->low->ir;
  for (tir_buffer b = 1; b < ir->buffers.count; b++)
    for (uint32_t i = 0; i < p->plan.count; i++)
      for (uint32_t k = i + 1; k < p->plan.count && uses_of(p, i, b); k++) {
        if (!uses_of(p, k, b) || !((uses_of(p, i, b) | uses_of(p, k, b)) & PIPELINE_WRITES)) continue;
        if (!comes_first(&p->plan.statements[i], &p->plan.statements[k]))
          return tir_refuse(ir, p->low->err, MS_LOWER_PIPELINE, p->loop,
                            "statement %u touches %s before statement %u of the same iteration", k,
                            tir_buffer_name(ir, b), i);
        if (!p->own[b] && !ends_first(&p->plan.statements[i], &p->plan.statements[k]))
          return tir_refuse(
              ir, p->low->err, MS_LOWER_PIPELINE, p->loop,
              "statement %u touches %s, which is not the loop's own, before statement %u of the iteration "
              "before is done",
              i, tir_buffer_name(ir, b), k);
      }
  return true;
}

/* ---- How many ---- */

/* What two statements touch of the buffer, in whatever iterations, has nothing in common. */
static bool is_apart(struct pipeline *p, uint32_t i, uint32_t k, tir_buffer buffer) {
  struct tir *ir = p->low->ir;
  struct lower_windows a, b;
  if ((uses_of(p, i, buffer) | uses_of(p, k, buffer)) & PIPELINE_BY_POINTER) return false;
  if (!lower_find_windows(ir, p->parts[i].stmt, buffer, &a) || !lower_find_windows(ir, p->parts[k].stmt, buffer, &b))
    return false;
  for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) {
    struct tir_interval x = tir_interval_union(ir, a.read[d], a.written[d]);
    struct tir_interval y = tir_interval_union(ir, b.read[d], b.written[d]);
    if (x.empty || y.empty || !x.min || !x.max || !y.min || !y.max) return false;
    bool moves = tir_uses_var(ir, x.min, p->var) || tir_uses_var(ir, x.max, p->var) ||
                 tir_uses_var(ir, y.min, p->var) || tir_uses_var(ir, y.max, p->var);
    if (!moves &&
        (tir_prove(ir, tir_make(ir, TIR_LT, x.max, y.min)) || tir_prove(ir, tir_make(ir, TIR_LT, y.max, x.min))))
      return true;
  }
  return false;
}

struct apart_search {
  struct pipeline *p;
  tir_buffer buffer;
};

static bool are_apart(void *data, uint32_t a, uint32_t b) {
  const struct apart_search *s = data;
  return is_apart(s->p, a, b, s->buffer);
}

uint32_t pipeline_buffers_for(struct pipeline *p, tir_buffer buffer) {
  uint8_t uses[TIR_PIPELINE_STATEMENTS];
  struct apart_search search = {p, buffer};
  for (uint32_t i = 0; i < p->plan.count; i++) uses[i] = *uses_at(p, i, buffer);
  return tir_stage_buffers(&p->plan, uses, are_apart, &search);
}

bool has_register_buffers(const struct pipeline *p) {
  const struct tir *ir = p->low->ir;
  for (tir_buffer b = 1; b < ir->buffers.count; b++)
    if (p->stage_buffers[b] > 1 && tir_buffer_memory(ir, b) == TIR_THREAD_MEMORY) return true;
  return false;
}

/* ---- Naming them ---- */

static tir_expr stage_buffer_of(struct pipeline *p, tir_buffer buffer) {
  struct tir *ir = p->low->ir;
  tir_expr iteration = pipeline_number(p, tir_sub(ir, tir_var_expr(ir, p->var), p->min));
  return tir_floormod(ir, iteration, tir_int(ir, tir_type_of(ir, iteration), p->stage_buffers[buffer]));
}

static bool has_stage_buffers(const struct pipeline *p, tir_buffer buffer) {
  return buffer < p->buffers && p->stage_buffers[buffer] > 1;
}

static bool add_stage_buffer(struct tir *ir, void *data, struct access *a) {
  struct pipeline *p = data;
  assert(ir == p->low->ir);
  if (!has_stage_buffers(p, a->buffer)) return false;
  assert(a->count < TIR_MOST_RANK);
  memmove(a->indices + 1, a->indices, a->count++ * sizeof *a->indices);
  a->indices[0] = stage_buffer_of(p, a->buffer);
  return true;
}

/* Elements of one stage buffer: what shapes of the loop's own are is constant. 0: it is not. */
static int64_t elements_of(const struct tir *ir, tir_buffer buffer) {
  int64_t product = 1;
  for (uint32_t d = 0; d < tir_buffer_at(ir, buffer)->rank; d++) {
    tir_expr extent = ir->operands.at[tir_buffer_at(ir, buffer)->shape + d];
    if (!tir_is_int(ir, extent)) return 0;
    product *= tir_at(ir, extent)->imm;
  }
  return product;
}

/* The call, where it names fragments by buffers and by their numbers there, which may be moved; else
 * TIR_DEVICE_CALLS. */
static enum tir_device_call numbering(const struct tir *ir, tir_expr e) {
  enum tir_device_call which = tir_device_call_of(ir, e);
  bool counted = which != TIR_DEVICE_CALLS && tir_device_calls[which].counts;
  return counted && tir_takes_operands(which, tir_at(ir, e)->count) ? which : TIR_DEVICE_CALLS;
}

enum { MOST_ARGUMENTS = 16 };

static tir_expr moved(struct pipeline *p, tir_buffer buffer, tir_expr at, int64_t unit) {
  struct tir *ir = p->low->ir;
  tir_type type = tir_type_of(ir, at);
  assert(unit > 0 && elements_of(ir, buffer) % unit == 0);
  tir_expr step = tir_int(ir, type, elements_of(ir, buffer) / unit);
  return tir_add(ir, at, tir_mul(ir, tir_cast(ir, type, stage_buffer_of(p, buffer)), step));
}

static tir_expr move_pointer(struct tir *ir, void *data, tir_expr before, tir_expr made) {
  struct pipeline *p = data;
  struct tir_expr_node n = *tir_at(ir, made);
  tir_expr args[MOST_ARGUMENTS];
  (void)before;
  struct tir_pointer to;
  if (tir_pointer_of(ir, &n, &to) && has_stage_buffers(p, to.buffer))
    return tir_pointer_from(ir, made, moved(p, to.buffer, to.offset, 1));
  if (n.kind != TIR_CALL || n.count > MOST_ARGUMENTS) return made;
  memcpy(args, tir_operands(ir, n.operands), n.count * sizeof *args);
  enum tir_device_call which = numbering(ir, made);
  uint32_t fragment, number;
  for (uint32_t i = 0; which != TIR_DEVICE_CALLS && tir_fragment_operand(which, i, &fragment, &number); i++) {
    const struct tir_expr_node *data = tir_at(ir, args[fragment]);
    if (data->kind == TIR_DATA && has_stage_buffers(p, data->ref))
      args[number] = moved(p, data->ref, args[number], tir_device_calls[which].counts);
  }
  return tir_call(ir, n.type, n.ref, args, n.count);
}

/* Pointers that stand elsewhere lead to the first stage buffer only. */
struct pointing {
  const struct pipeline *p;
  tir_buffer lost;
};

static bool find_lost(void *data, tir_expr e) {
  struct pointing *s = data;
  const struct tir *ir = s->p->low->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_DATA && has_stage_buffers(s->p, n->ref)) s->lost = n->ref;
  if (tir_pointed(ir, e)) return false;
  if (numbering(ir, e) == TIR_DEVICE_CALLS) return true;
  for (uint32_t k = 0; k < n->count; k++)
    if (tir_at(ir, tir_operands(ir, n->operands)[k])->kind != TIR_DATA)
      tir_walk_expr(ir, tir_operands(ir, n->operands)[k], find_lost, s);
  return false;
}

static bool check_pointers(struct pipeline *p) {
  const struct tir *ir = p->low->ir;
  struct pointing search = {p, TIR_NONE};
  for (tir_stmt s = p->loop; s && !search.lost; s = tir_next(ir, s, p->loop)) {
    tir_expr all[4];
    uint32_t count = tir_is(ir, s, TIR_ALLOC) ? 0 : tir_stmt_exprs(ir, s, all);
    for (uint32_t i = 0; i < count; i++) tir_walk_expr(ir, all[i], find_lost, &search);
  }
  return !search.lost || tir_refuse(ir, p->low->err, MS_LOWER_PIPELINE, p->loop,
                                    "%s needs several stage buffers, and a call has a pointer to it that names none",
                                    tir_buffer_name(ir, search.lost));
}

/* Room for the stage buffers: in a dimension of their own; where calls alone touch the buffer, which know it as
 * rows, in that of rows. */
static void widen(struct pipeline *p, tir_buffer buffer) {
  struct tir *ir = p->low->ir;
  struct tir_buffer_node n = *tir_buffer_at(ir, buffer);
  tir_expr shape[TIR_MOST_RANK];
  unsigned all = 0;
  for (uint32_t i = 0; i < p->plan.count; i++) all |= uses_of(p, i, buffer);
  uint32_t more = n.rank == 0 || (all & PIPELINE_BY_INDEX) ? 1 : 0;
  assert(p->own[buffer] && n.rank + more <= TIR_MOST_RANK && !n.strides.count);
  memcpy(shape + more, tir_operands(ir, n.shape), n.rank * sizeof *shape);
  tir_expr count = tir_int(ir, n.rank ? tir_type_of(ir, shape[more]) : TIR_T_I32, p->stage_buffers[buffer]);
  shape[0] = more ? count : tir_mul(ir, shape[0], count);
  uint32_t first = tir_add_operands(ir, shape, n.rank + more);
  tir_buffer_at(ir, buffer)->shape = first;
  tir_buffer_at(ir, buffer)->rank = n.rank + more;
}

bool pipeline_multi_buffer(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  for (tir_buffer b = 1; b < ir->buffers.count; b++) {
    if (!p->own[b]) continue;
    p->stage_buffers[b] = pipeline_buffers_for(p, b);
    const struct tir_buffer_node *n = tir_buffer_at(ir, b);
    if (p->stage_buffers[b] > 1 && (n->strides.count || n->rank + 1 > TIR_MOST_RANK || !elements_of(ir, b)))
      return tir_refuse(ir, p->low->err, MS_LOWER_PIPELINE, p->loop,
                        "%s needs several stage buffers, and is not compact and of constant size",
                        tir_buffer_name(ir, b));
  }
  if (!check_pointers(p)) return false;
  lower_map(ir, p->loop, TIR_HAS_CALL, move_pointer, p);
  lower_rewrite(ir, p->loop, add_stage_buffer, p);
  for (tir_buffer b = 1; b < ir->buffers.count; b++)
    if (has_stage_buffers(p, b)) widen(p, b);
  return true;
}

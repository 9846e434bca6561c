/* What a reduction reads of its own output. Modules of older TVM list it among the reads, today's leave it out; where
 * the init writes it all first, both are the same block. What the init may not have begun is read from before. */
#include "analysis.h"
#include "loads.h"
#include "tir/analysis/order/order.h"
#include "tir/node/arena.h"

enum { MOST_LOOPS = 32, MOST_RANK = 16 };

/* Statements of the init in turn, not those in its blocks; NULL: none is left. */
static tir_stmt next_of_init(const struct tir *ir, tir_block block, tir_stmt s) {
  s = tir_next_in_scope(ir, s, block);
  tir_stmt top = s;
  while (top && tir_stmt_at(ir, top)->parent != block) top = tir_stmt_at(ir, top)->parent;
  return top && tir_stmt_at(ir, top)->list == TIR_INIT ? s : TIR_NONE;
}

/* The init is made of loops, stores and blocks, and loads nothing of the buffer. */
static bool only_writes(struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = next_of_init(ir, block, s)) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    switch (n->kind) {
    case TIR_LOOP: break;
    case TIR_STORE:
      if (tir_uses_buffer(ir, n->store.value, buffer)) return false;
      break;
    case TIR_BLOCK:
      if (tir_has_region_of(ir, tir_block_at(ir, s)->reads, buffer)) return false;
      break;
    default: return false;
    }
  }
  return true;
}

/* The init is one store of a value that no memory holds, to an element that none names. */
static bool stores_known_value(const struct tir *ir, tir_block block) {
  tir_stmt init = tir_only_store(ir, block, TIR_INIT);
  if (!init) return false;
  const struct tir_stmt_node *n = tir_stmt_at(ir, init);
  uint8_t flags = tir_at(ir, n->store.value)->flags;
  for (uint32_t d = 0; d < tir_buffer_at(ir, n->store.buffer)->rank; d++)
    flags |= tir_at(ir, ir->operands.at[n->store.indices + d])->flags;
  return !(flags & (TIR_HAS_LOAD | TIR_HAS_POINTER));
}

bool tir_init_loads(struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  if (stores_known_value(ir, block)) return false;
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = next_of_init(ir, block, s)) {
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    if (n.kind == TIR_BLOCK && tir_has_region_of(ir, tir_block_at(ir, s)->reads, buffer)) return true;
    tir_expr own[4];
    uint32_t count = tir_stmt_exprs(ir, s, own);
    for (uint32_t i = 0; i < count; i++)
      if (own[i] && tir_uses_buffer(ir, own[i], buffer)) return true;
    for (uint32_t d = 0; n.kind == TIR_STORE && d < tir_buffer_at(ir, n.store.buffer)->rank; d++)
      if (tir_uses_buffer(ir, tir_operands(ir, n.store.indices)[d], buffer)) return true;
  }
  return false;
}

/* The box that the statement, a store or a block, surely writes while the loops around it in the init run. */
static bool find_written(struct tir *ir, tir_block block, tir_stmt s, tir_buffer buffer, struct tir_interval *out) {
  if (tir_nearest_condition(ir, s, block)) return false;
  struct tir_stmt_node n = *tir_stmt_at(ir, s);
  tir_expr ranges[2 * MOST_RANK];
  tir_var vars[MOST_LOOPS];
  uint32_t rank = tir_buffer_at(ir, buffer)->rank, count = tir_loop_vars(ir, s, block, vars, MOST_LOOPS);
  if (n.kind == TIR_BLOCK) {
    const struct tir_region *region = tir_region_of(ir, tir_block_at(ir, s)->writes, buffer);
    return region && tir_sure_region_from(ir, s, *region, block, TIR_NONE, TIR_NONE, out);
  }
  if (n.kind != TIR_STORE || n.store.buffer != buffer || n.store.predicate || count > MOST_LOOPS) return false;
  tir_point_ranges(ir, tir_operands(ir, n.store.indices), rank, ranges);
  return tir_region_exact(ir, ranges, rank, vars, count, TIR_NONE, out);
}

/* One statement of the init writes all that the region holds. */
static bool init_covers(struct tir *ir, tir_block block, struct tir_region region) {
  struct tir_interval read[MOST_RANK], written[MOST_RANK];
  for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++)
    read[d] = tir_interval_of(ir, ir->operands.at[region.ranges + 2 * d], ir->operands.at[region.ranges + 2 * d + 1]);
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_INIT]; s; s = next_of_init(ir, block, s))
    if (find_written(ir, block, s, region.buffer, written) && tir_region_covers(ir, region.buffer, written, read))
      return true;
  return false;
}

/* ---- Element by element ---- */

enum { MOST_LOADS = 32, MOST_STEPS = 256 };

/* What the walk for loads of other elements than the store's knows. */
struct elsewhere {
  const struct tir *ir;
  tir_buffer buffer;
  uint32_t indices, steps; /* so many nodes are left to it, which meets shared ones again */
};

static bool loads_elsewhere(struct elsewhere *w, tir_expr e);

/* Most operands hold no load: that is seen without a call. */
static inline bool below_loads_elsewhere(struct elsewhere *w, tir_expr e) {
  return e && tir_at(w->ir, e)->flags & TIR_HAS_LOAD && loads_elsewhere(w, e);
}

/* A load of the buffer is of another element, or there are too many nodes to know. */
static bool loads_elsewhere(struct elsewhere *w, tir_expr e) {
  const struct tir_expr_node *n = tir_at(w->ir, e);
  const tir_expr *operands = tir_operands(w->ir, n->operands);
  if (!w->steps) return true;
  w->steps--;
  if (n->kind == TIR_LOAD && n->ref == w->buffer && !tir_same_operands(w->ir, w->indices, n->operands, n->count))
    return true;
  if (n->kind == TIR_LOAD && !w->ir->indirect) return false; /* no index or predicate loads */
  for (uint32_t i = 0; i < n->count; i++)
    if (below_loads_elsewhere(w, operands[i])) return true;
  return below_loads_elsewhere(w, n->a) || below_loads_elsewhere(w, n->b) || below_loads_elsewhere(w, n->c);
}

/* The stores of plain updates found of late: checks ask of the same block several times. */
struct updates {
  struct update {
    tir_expr value;                    /* that the body stores; TIR_NONE: none is kept here */
    uint32_t begun, indices, operands; /* of the init's store, of the body's; all are below `operands` */
  } at[4];
  uint32_t next;
};

static void forget_updates(void *memory, const struct tir_mark *left) {
  struct updates *updates = memory;
  for (int i = 0; i < 4; i++)
    if (updates->at[i].value >= left->exprs || updates->at[i].operands > left->operands)
      updates->at[i].value = TIR_NONE;
}

static struct updates *updates_of(const struct tir *ir) {
  static const struct tir_scratch_kind kind = {sizeof(struct updates), NULL, forget_updates};
  return tir_scratch_of(ir, TIR_SCRATCH_PLAIN, &kind);
}

static bool is_known_update(const struct updates *updates, tir_expr value, uint32_t begun, uint32_t indices) {
  for (uint32_t i = 0; i < 4; i++) { /* the last first */
    const struct update *known = &updates->at[(updates->next - 1 - i) % 4];
    if (known->value == value && known->begun == begun && known->indices == indices) return true;
  }
  return false;
}

static bool updates_begun(const struct tir *ir, const struct tir_stmt_node *init, const struct tir_stmt_node *update) {
  uint32_t rank = tir_buffer_at(ir, update->store.buffer)->rank, indices = update->store.indices;
  struct elsewhere w = {ir, update->store.buffer, indices, MOST_STEPS};
  if (init->store.buffer != update->store.buffer || !tir_same_operands(ir, init->store.indices, indices, rank))
    return false;
  for (uint32_t d = 0; d < rank; d++)
    if (tir_at(ir, ir->operands.at[indices + d])->flags & TIR_HAS_LOAD) return false;
  return !below_loads_elsewhere(&w, update->store.value);
}

tir_buffer tir_plainly_updated(const struct tir *ir, tir_block block) {
  tir_stmt first = tir_only_store(ir, block, TIR_INIT), then = first ? tir_only_store(ir, block, TIR_BODY) : TIR_NONE;
  if (!then) return TIR_NONE;
  struct updates *updates = updates_of(ir);
  const struct tir_stmt_node *init = tir_stmt_at(ir, first), *update = tir_stmt_at(ir, then);
  uint32_t begun = init->store.indices, indices = update->store.indices;
  if (is_known_update(updates, update->store.value, begun, indices)) return update->store.buffer;
  if (!updates_begun(ir, init, update)) return TIR_NONE;
  uint32_t last = begun > indices ? begun : indices;
  updates->at[updates->next++ % 4] =
      (struct update){update->store.value, begun, indices, last + tir_buffer_at(ir, update->store.buffer)->rank};
  return update->store.buffer;
}

static bool same_element(const struct tir *ir, tir_stmt store, tir_expr load) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, store);
  return tir_same_operands(ir, n->store.indices, tir_at(ir, load)->operands, tir_buffer_at(ir, n->store.buffer)->rank);
}

/* A statement of the list, before `end`, stores the element that is loaded, whatever holds. */
static bool stores_first(const struct tir *ir, tir_stmt first, tir_stmt end, tir_expr load) {
  for (tir_stmt s = first; s && s != end; s = tir_stmt_at(ir, s)->next) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (n->kind == TIR_STORE && n->store.buffer == tir_at(ir, load)->ref && !n->store.predicate &&
        same_element(ir, s, load))
      return true;
  }
  return false;
}

/* The init stores the element that a statement of the body, below `top` of its list, loads; or the body has by then. */
static bool is_begun(struct tir *ir, tir_block block, tir_stmt top, tir_expr load) {
  tir_expr at[MOST_RANK];
  struct tir_expr_node n = *tir_at(ir, load);
  if (stores_first(ir, tir_stmt_at(ir, block)->first[TIR_INIT], TIR_NONE, load) ||
      stores_first(ir, tir_stmt_at(ir, block)->first[TIR_BODY], top, load))
    return true;
  for (uint32_t d = 0; d < n.count && n.count <= MOST_RANK; d++) at[d] = ir->operands.at[n.operands + d];
  return n.count <= MOST_RANK && init_covers(ir, block, tir_point_region(ir, n.ref, at));
}

/* A store of the body is to the element. */
static bool is_updated(const struct tir *ir, tir_block block, tir_expr load) {
  for (tir_stmt s = tir_stmt_at(ir, block)->first[TIR_BODY]; s; s = tir_next_in_scope(ir, s, block))
    if (tir_is(ir, s, TIR_STORE) && tir_as(ir, s, TIR_STORE)->store.buffer == tir_at(ir, load)->ref &&
        same_element(ir, s, load))
      return true;
  return false;
}

static bool expr_loads_unbegun(struct tir *ir, tir_block block, tir_stmt top, tir_expr e, tir_buffer buffer) {
  tir_expr loads[MOST_LOADS];
  if (!e || !(tir_at(ir, e)->flags & TIR_HAS_LOAD)) return false;
  uint32_t count = tir_find_loads(ir, e, buffer, loads, MOST_LOADS);
  for (uint32_t i = 0; i < count && i < MOST_LOADS; i++) {
    tir_buffer of = tir_at(ir, loads[i])->ref;
    if (!buffer && !tir_has_region_of(ir, tir_block_at(ir, block)->writes, of)) continue;
    if ((buffer || is_updated(ir, block, loads[i])) && !is_begun(ir, block, top, loads[i])) return true;
  }
  return count > MOST_LOADS;
}

bool tir_loads_unbegun(struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  if (!tir_stmt_at(ir, block)->first[TIR_INIT]) return false;
  tir_buffer plain = tir_plainly_updated(ir, block);
  if (plain && (!buffer || buffer == plain)) return false;
  for (tir_stmt top = tir_stmt_at(ir, block)->first[TIR_BODY]; top; top = tir_stmt_at(ir, top)->next)
    for (tir_stmt s = top; s; s = tir_is(ir, s, TIR_BLOCK) ? tir_after(ir, s, top) : tir_next(ir, s, top)) {
      struct tir_stmt_node n = *tir_stmt_at(ir, s);
      tir_expr own[4];
      uint32_t count = tir_stmt_exprs(ir, s, own);
      for (uint32_t i = 0; i < count; i++)
        if (expr_loads_unbegun(ir, block, top, own[i], buffer)) return true;
      for (uint32_t d = 0; n.kind == TIR_STORE && d < tir_buffer_at(ir, n.store.buffer)->rank; d++)
        if (expr_loads_unbegun(ir, block, top, ir->operands.at[n.store.indices + d], buffer)) return true;
    }
  return false;
}

/* ---- By regions ---- */

static bool loads(struct tir *ir, void *context, tir_expr e) { return tir_uses_buffer(ir, e, *(tir_buffer *)context); }

/* The block, or one in it, has a load of the buffer. */
static bool loads_of(struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block))
    if (tir_is(ir, s, TIR_BLOCK) && tir_has_region_of(ir, tir_block_at(ir, s)->reads, buffer)) return true;
  return tir_any_own_expr(ir, block, loads, &buffer);
}

/* A block in it has an init of its own, and goes on with what that has not begun: regions do not say so. */
static bool inner_reads_from_before(struct tir *ir, tir_block block, tir_buffer buffer) {
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block))
    if (tir_is(ir, s, TIR_BLOCK) && tir_stmt_at(ir, s)->first[TIR_INIT] &&
        tir_has_region_of(ir, tir_block_at(ir, s)->writes, buffer) && tir_reads_from_before(ir, s, buffer))
      return true;
  return false;
}

bool tir_begun_reads_from_before(struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_span reads = tir_block_at(ir, block)->reads;
  bool begins = tir_stmt_at(ir, block)->first[TIR_INIT];
  if (begins && tir_matches_part_of(ir, block, buffer)) return true; /* what is begun under another name is not seen */
  if (!tir_has_region_of(ir, reads, buffer))
    return begins ? tir_init_loads(ir, block, buffer) || tir_loads_unbegun(ir, block, buffer)
                  : inner_reads_from_before(ir, block, buffer);
  if (tir_buffer_at(ir, buffer)->rank > MOST_RANK || !only_writes(ir, block, buffer)) return true;
  for (uint32_t i = reads.first; i < reads.first + reads.count; i++)
    if (ir->regions.at[i].buffer == buffer && !init_covers(ir, block, ir->regions.at[i])) return true;
  return false;
}

bool tir_reads_from_before(struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  bool declared = tir_has_region_of(ir, tir_block_at(ir, block)->reads, buffer);
  return tir_begun_reads_from_before(ir, block, buffer) ||
         (tir_updates_unbegun(ir, block) && (declared || loads_of(ir, block, buffer)));
}

#include "analysis.h"
#include "loads.h"

#include <stdlib.h>

/* ---- Undeclared uses: found from the bodies ---- */

enum { READS = TIR_USE_READS, WRITES = TIR_USE_WRITES, OPAQUE = 8 };

struct found {
  tir_buffer buffer;
  struct tir_use use;
};

/* What a block does with buffers, as its statements and expressions say; and what of all blocks is undeclared. */
struct used {
  uint8_t *kinds;    /* by buffer */
  tir_buffer *order; /* those of some kind, as they were met */
  uint32_t count;
  struct found *found;
  uint32_t found_count, found_capacity;
};

static void note(struct used *u, tir_buffer buffer, uint8_t kind) {
  if (!u->kinds[buffer]) u->order[u->count++] = buffer;
  u->kinds[buffer] |= kind;
}

static bool has_slice(const struct tir *ir, const struct tir_expr_node *n) {
  for (uint32_t i = 0; i < n->count; i++)
    if (tir_at(ir, ir->operands.at[n->operands + i])->kind == TIR_SLICE) return true;
  return false;
}

static bool note_expr(struct tir *ir, void *context, tir_expr e) {
  struct used *u = context;
  if (!e || tir_visited(ir, e)) return false;
  const struct tir_expr_node n = *tir_at(ir, e);
  if (n.kind == TIR_DATA) note(u, n.ref, OPAQUE);
  if (n.kind <= TIR_DATA) return false;
  if (n.kind == TIR_LOAD) note(u, n.ref, has_slice(ir, &n) ? OPAQUE : READS);
  note_expr(ir, u, n.a), note_expr(ir, u, n.b), note_expr(ir, u, n.c);
  for (uint32_t i = 0; i < n.count; i++) note_expr(ir, u, ir->operands.at[n.operands + i]);
  return false;
}

static void find_used(struct tir *ir, tir_block block, struct used *u) {
  struct tir_span matches = tir_block_at(ir, block)->matches;
  tir_forget_visits(ir);
  tir_any_own_expr(ir, block, note_expr, u);
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next_in_scope(ir, s, block)) {
    if (tir_is(ir, s, TIR_STORE)) note(u, tir_as(ir, s, TIR_STORE)->store.buffer, WRITES);
  }
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    note(u, ir->matches.at[i].source.buffer, OPAQUE);
}

/* A root's regions are whatever its blocks touch, and are not written down; and no region of a block names a buffer
 * that it allocates, or matches a part of another as. */
static bool needs_no_region(const struct tir *ir, tir_block block, tir_buffer buffer) {
  tir_stmt where = tir_buffer_at(ir, buffer)->where;
  return tir_is(ir, tir_stmt_at(ir, block)->parent, TIR_FUNCTION) ||
         (where && (where == block || tir_is_below(ir, where, block)));
}

/* Another block declares that it uses the buffer. */
static bool is_declared(const struct tir *ir, tir_buffer buffer) {
  return tir_buffer_at(ir, buffer)->readers || tir_buffer_at(ir, buffer)->writers;
}

/* What a block does with a buffer through a pointer or a match is what it declares, if it does so at all; and of its
 * own result, so far, a reduction need not declare that it is read. */
static unsigned undeclared_of(const struct tir *ir, tir_block block, tir_buffer buffer, unsigned kind) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  bool reads = tir_has_region_of(ir, r->reads, buffer), writes = tir_has_region_of(ir, r->writes, buffer);
  if (needs_no_region(ir, block, buffer)) {
    if (!is_declared(ir, buffer)) return 0; /* it concerns nobody else */
    return TIR_USE_OF_SCOPE | (kind & OPAQUE ? READS | WRITES : kind);
  }
  if (kind & OPAQUE) kind = !reads && !writes ? READS | WRITES : kind & ~(unsigned)(OPAQUE | READS);
  reads |= writes && tir_stmt_at(ir, block)->first[TIR_INIT];
  return kind & ~((reads ? READS : 0u) | (writes ? WRITES : 0u));
}

static void add_undeclared(struct tir *ir, tir_block block, struct used *u) {
  u->count = 0;
  find_used(ir, block, u);
  for (uint32_t i = 0; i < u->count; i++) {
    tir_buffer buffer = u->order[i];
    unsigned kinds = undeclared_of(ir, block, buffer, u->kinds[buffer]);
    u->kinds[buffer] = 0;
    if (!kinds) continue;
    if (u->found_count == u->found_capacity)
      u->found = tir_enlarge(u->found, &u->found_capacity, u->found_count + 1ull, sizeof *u->found);
    u->found[u->found_count++] = (struct found){buffer, {block, TIR_NONE, kinds}};
  }
}

/* The lists hold what was found, and no more: they stay as they are, so that it does not matter how often it is
 * asked. */
static bool is_listed(const struct tir *ir, const struct used *u, uint32_t *next) {
  for (tir_buffer b = 1; b < ir->buffers.count; b++) next[b] = ir->buffers.at[b].undeclared;
  for (uint32_t i = u->found_count; i-- > 0;) {
    struct tir_use use = u->found[i].use, listed = ir->uses.at[next[u->found[i].buffer]];
    if (!next[u->found[i].buffer] || listed.block != use.block || listed.undeclared != use.undeclared) return false;
    next[u->found[i].buffer] = listed.next;
  }
  for (tir_buffer b = 1; b < ir->buffers.count; b++)
    if (next[b]) return false;
  return true;
}

static void list_again(struct tir *ir, const struct used *u) {
  for (tir_buffer b = 1; b < ir->buffers.count; b++) tir_buffer_at(ir, b)->undeclared = TIR_NONE;
  for (uint32_t i = 0; i < u->found_count; i++) {
    uint32_t use = tir_grow_uses(ir, 1);
    struct tir_buffer_node *buffer = tir_buffer_at(ir, u->found[i].buffer);
    ir->uses.at[use] = u->found[i].use;
    ir->uses.at[use].next = buffer->undeclared;
    buffer->undeclared = use;
  }
}

void tir_find_undeclared(struct tir *ir) {
  struct used u = {calloc(ir->buffers.count, 1), malloc(ir->buffers.count * sizeof *u.order), 0, NULL, 0, 0};
  if (!u.kinds || !u.order) abort();
  for (uint32_t i = 1; i < ir->blocks.count; i++) {
    tir_block b = ir->blocks.at[i].block;
    if (b && tir_stmt_at(ir, b)->parent) add_undeclared(ir, b, &u);
  }
  if (!is_listed(ir, &u, u.order)) list_again(ir, &u);
  ir->undeclared = u.found_count ? TIR_SOME_UNDECLARED : TIR_NONE_UNDECLARED;
  free(u.found);
  free(u.kinds);
  free(u.order);
}

bool tir_declares_all(struct tir *ir) {
  tir_find_undeclared(ir);
  return ir->undeclared == TIR_NONE_UNDECLARED;
}

/* ---- The table ---- */

struct tir_access tir_access_of(const struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  const struct tir_block_record *r = tir_block_at(ir, block);
  struct tir_access a = {.block = block,
                         .at = block,
                         .declares_reads = tir_has_region_of(ir, r->reads, buffer),
                         .declares_writes = tir_has_region_of(ir, r->writes, buffer)};
  unsigned kinds = 0;
  for (uint32_t u = tir_buffer_at(ir, buffer)->undeclared; u; u = ir->uses.at[u].next)
    if (ir->uses.at[u].block == block) kinds = ir->uses.at[u].undeclared;
  a.declares_reads |= kinds & TIR_USE_OF_SCOPE && kinds & READS;
  a.declares_writes |= kinds & TIR_USE_OF_SCOPE && kinds & WRITES;
  a.reads = a.declares_reads || kinds & READS;
  a.writes = a.declares_writes || kinds & WRITES;
  return a;
}

struct tir_access tir_own_use_at(struct tir *ir, tir_block block, tir_stmt s, tir_buffer buffer) {
  MS_CHECK(!tir_is(ir, s, TIR_LOOP) && !tir_is(ir, s, TIR_BLOCK));
  struct tir_access a = {.block = block, .at = s};
  const struct tir_stmt_node n = *tir_stmt_at(ir, s);
  tir_expr own[4];
  for (uint32_t i = tir_stmt_exprs(ir, s, own); i-- > 0;) {
    a.reads |= own[i] && tir_uses_buffer(ir, own[i], buffer);
    a.writes |= own[i] && tir_uses_opaquely(ir, own[i], buffer);
  }
  if (n.kind != TIR_STORE) return a;
  a.writes |= n.store.buffer == buffer;
  for (uint32_t i = 0; i < tir_buffer_at(ir, n.store.buffer)->rank; i++)
    a.reads |= tir_uses_buffer(ir, ir->operands.at[n.store.indices + i], buffer);
  return a;
}

bool tir_may_use_outside(const struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  return !needs_no_region(ir, block, buffer) || tir_buffer_at(ir, buffer)->undeclared;
}

bool tir_matches_part_of(const struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    if (ir->matches.at[i].source.buffer == buffer) return true;
  return false;
}

static bool stands_in(const struct tir *ir, struct tir_region region, const tir_var *vars, uint32_t count) {
  for (uint32_t i = 0; i < 2u * tir_buffer_at(ir, region.buffer)->rank; i++)
    if (tir_uses_any_var(ir, ir->operands.at[region.ranges + i], vars, count)) return true;
  return false;
}

bool tir_matches_by_vars(const struct tir *ir, tir_block block, const tir_var *vars, uint32_t count) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span matches = tir_block_at(ir, block)->matches;
  for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
    if (stands_in(ir, ir->matches.at[i].source, vars, count)) return true;
  return false;
}

void tir_note_annotated(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct tir_span annotations = tir_stmt_at(ir, block)->annotations;
  struct tir_span spans[] = {tir_block_at(ir, block)->reads, tir_block_at(ir, block)->writes};
  if (!tir_annotation(ir, annotations, "explicit_read_region") &&
      !tir_annotation(ir, annotations, "explicit_write_region"))
    return;
  for (int w = 0; w < 2; w++)
    for (uint32_t i = spans[w].first; i < spans[w].first + spans[w].count; i++)
      tir_buffer_at(ir, ir->regions.at[i].buffer)->user_annotated = 1;
}

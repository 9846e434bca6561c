/* Conflicts of accesses that regions do not declare, and checks of what they declare. */
#include "access.h"
#include "analysis.h"
#include "outside.h"

/* The innermost block around `block`, within the scope, that does not declare its use; TIR_NONE: all do. */
static tir_block find_around(const struct tir *ir, tir_block block, tir_block scope, tir_buffer buffer, bool writes) {
  for (tir_block b = tir_parent_block(ir, block); b && b != scope; b = tir_parent_block(ir, b)) {
    const struct tir_block_record *r = tir_block_at(ir, b);
    if (tir_allocates(ir, b, buffer)) return TIR_NONE;
    if (!tir_has_region_of(ir, writes ? r->writes : r->reads, buffer) && !tir_has_region_of(ir, r->writes, buffer))
      return b;
  }
  return TIR_NONE;
}

/* How a block below the scope uses the buffer, as far as the scope can see: what a block around it does not declare is
 * not declared. */
static struct tir_access access_below(const struct tir *ir, tir_block block, tir_block scope, tir_buffer buffer) {
  struct tir_access a = tir_access_of(ir, block, buffer);
  if (a.declares_writes) a.around = find_around(ir, block, scope, buffer, true);
  if (a.declares_reads && !a.around) a.around = find_around(ir, block, scope, buffer, false);
  if (a.around) a.declares_reads = a.declares_writes = false;
  return a;
}

/* A read and a write, or two writes, one of which is not declared. */
static bool is_undeclared_conflict(const struct tir_access *a, const struct tir_access *b) {
  if (a->writes && b->writes && !(a->declares_writes && b->declares_writes)) return true;
  if (a->writes && b->reads && !(a->declares_writes && b->declares_reads)) return true;
  return a->reads && b->writes && !(a->declares_reads && b->declares_writes);
}

/* Visits those of one use with the uses of other blocks of the scope, and of its own. */
static bool visit_users(struct tir *ir, tir_buffer buffer, tir_block scope, struct tir_access own,
                        const struct tir_conflict_visitor *visitor) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  uint32_t lists[] = {n->readers, n->writers, n->undeclared};
  struct tir_conflict c = {.buffer = buffer, .own = own};
  for (int i = own.writes ? 0 : 1; i < 3; i++) /* not two reads */
    for (uint32_t u = lists[i]; u; u = ir->uses.at[u].next) {
      tir_block b = ir->uses.at[u].block;
      if (b == own.block) continue;
      bool plain = !lists[2] && tir_parent_block(ir, b) == scope; /* all of it is declared */
      if (plain || !tir_is_below(ir, b, scope)) continue;
      c.other = access_below(ir, b, scope, buffer);
      if (is_undeclared_conflict(&own, &c.other) && !visitor->visit(ir, visitor->context, &c)) return false;
    }
  if (own.block == scope || !tir_may_use_outside(ir, scope, buffer)) return true;
  struct tir_outside_use use;
  for (tir_stmt s = TIR_NONE; tir_next_outside_use(ir, scope, buffer, TIR_NONE, s, &use); s = use.at) {
    if (use.places || !(own.writes || use.writes)) continue; /* places: moved blocks ask of these themselves */
    c.other = tir_own_use_at(ir, scope, use.at, buffer);
    if (!visitor->visit(ir, visitor->context, &c)) return false;
  }
  return true;
}

/* Who visits, and the block with what is in it that is not visited. */
struct outside_of {
  tir_block block;
  const struct tir_conflict_visitor *visitor;
};

static bool visit_outside(struct tir *ir, void *context, const struct tir_conflict *c) {
  const struct outside_of *o = context;
  return c->other.at == o->block || tir_is_below(ir, c->other.at, o->block) ||
         o->visitor->visit(ir, o->visitor->context, c);
}

/* Visits those of blocks in the block that it does not declare, but for those with one another. */
static bool visit_inner(struct tir *ir, tir_block block, tir_block scope, const struct tir_conflict_visitor *visitor) {
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block))
    for (int w = 0; tir_is(ir, s, TIR_BLOCK) && w < 2; w++) {
      struct tir_span regions = tir_regions(ir, s, w);
      for (uint32_t i = regions.first; i < regions.first + regions.count; i++) {
        tir_buffer buffer = ir->regions.at[i].buffer;
        struct tir_access own = access_below(ir, s, scope, buffer);
        struct outside_of outside = {block, visitor};
        if (own.around && !visit_users(ir, buffer, scope, own, &(struct tir_conflict_visitor){visit_outside, &outside}))
          return false;
      }
    }
  return true;
}

bool tir_each_undeclared_conflict(struct tir *ir, tir_block block, tir_block scope,
                                  const struct tir_conflict_visitor *visitor) {
  assert(tir_is(ir, scope, TIR_BLOCK) && tir_is_below(ir, block, scope));
  for (int w = 0; w < 2; w++) {
    struct tir_span regions = tir_regions(ir, block, w);
    for (uint32_t i = regions.first; i < regions.first + regions.count; i++) {
      tir_buffer buffer = ir->regions.at[i].buffer;
      if (!w && !tir_buffer_at(ir, buffer)->writers) continue; /* what is undeclared comes below */
      if (!visit_users(ir, buffer, scope, tir_access_of(ir, block, buffer), visitor)) return false;
    }
  }
  for (tir_stmt s = ir->undeclared == TIR_SOME_UNDECLARED ? block : TIR_NONE; s; s = tir_next(ir, s, block))
    for (tir_buffer b = 1; tir_is(ir, s, TIR_BLOCK) && b < ir->buffers.count; b++) {
      if (!tir_buffer_at(ir, b)->undeclared) continue;
      struct tir_access own = tir_access_of(ir, s, b);
      if ((own.reads || own.writes) && !visit_users(ir, b, scope, own, visitor)) return false;
    }
  return visit_inner(ir, block, scope, visitor);
}

static bool stop(struct tir *ir, void *context, const struct tir_conflict *conflict) {
  (void)ir, (void)context, (void)conflict;
  return false;
}

bool tir_has_undeclared_conflict(struct tir *ir, tir_block block, tir_block scope) {
  return !tir_each_undeclared_conflict(ir, block, scope, &(struct tir_conflict_visitor){stop, NULL});
}

static bool is_elsewhere(struct tir *ir, void *context, const struct tir_conflict *conflict) {
  tir_block within = *(const tir_block *)context, around = conflict->other.around;
  if (around && tir_is_below(ir, within, around)) return true; /* a block around both sides, or around `within` alone */
  return conflict->other.at != within && !tir_is_below(ir, conflict->other.at, within);
}

bool tir_conflict_undeclared(struct tir *ir, tir_block a, tir_block b) {
  MS_CHECK(tir_is(ir, a, TIR_BLOCK) && tir_is(ir, b, TIR_BLOCK));
  tir_stmt scope = tir_lowest_common_ancestor(ir, a, b);
  while (!tir_is(ir, scope, TIR_BLOCK)) scope = tir_stmt_at(ir, scope)->parent;
  return !tir_each_undeclared_conflict(ir, a, scope, &(struct tir_conflict_visitor){is_elsewhere, &b}) ||
         !tir_each_undeclared_conflict(ir, b, scope, &(struct tir_conflict_visitor){is_elsewhere, &a});
}

/* ---- Checks ---- */

bool tir_refuse_undeclared(const struct tir *ir, tir_block block, tir_buffer buffer, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  return tir_refuse(ir, err, MS_ACCESS_UNDECLARED, block,
                    "block `%s` does not declare that it, or a block in it, uses `%s`", tir_block_name(ir, block),
                    tir_buffer_name(ir, buffer));
}

static bool refuse_around(struct tir *ir, void *err, const struct tir_conflict *conflict) {
  tir_block around = conflict->other.around;
  return !around || tir_refuse_undeclared(ir, around, conflict->buffer, err);
}

bool tir_check_declared_around(struct tir *ir, tir_buffer buffer, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is_buffer(ir, buffer) && tir_is(ir, scope, TIR_BLOCK));
  struct tir_access any = {.block = scope, .reads = true, .writes = true};
  return visit_users(ir, buffer, scope, any, &(struct tir_conflict_visitor){refuse_around, err});
}

bool tir_writes_are_declared(struct tir *ir, tir_buffer buffer, tir_block scope) {
  MS_CHECK(tir_is_buffer(ir, buffer) && tir_is(ir, scope, TIR_BLOCK));
  for (uint32_t u = tir_buffer_at(ir, buffer)->undeclared; u; u = ir->uses.at[u].next)
    if (ir->uses.at[u].undeclared & TIR_USE_WRITES) return false;
  struct tir_access read = {.block = scope, .reads = true, .declares_reads = true};
  return visit_users(ir, buffer, scope, read, &(struct tir_conflict_visitor){stop, NULL});
}

bool tir_check_declared_below(struct tir *ir, tir_buffer buffer, tir_stmt top, ms_error *err) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  tir_block first = TIR_NONE;
  for (uint32_t u = tir_buffer_at(ir, buffer)->undeclared; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    struct tir_access a = tir_access_of(ir, b, buffer);
    if (a.declares_reads || a.declares_writes || (b != top && !tir_is_below(ir, b, top))) continue;
    if (!first || tir_compare_position(ir, b, first) < 0) first = b;
  }
  return !first || tir_refuse_undeclared(ir, first, buffer, err);
}

/* The buffer is allocated between the two blocks, or by a statement in the outer one. */
static bool is_inside(const struct tir *ir, tir_block b, tir_block block, tir_buffer buffer) {
  tir_stmt where = tir_buffer_at(ir, buffer)->where;
  if (where && tir_is(ir, where, TIR_ALLOC) && tir_is_below(ir, where, block)) return true;
  for (b = tir_parent_block(ir, b);; b = tir_parent_block(ir, b)) {
    if (tir_allocates(ir, b, buffer)) return true;
    if (b == block) return false;
  }
}

bool tir_check_declares_inner(const struct tir *ir, tir_block block, ms_error *err) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  const struct tir_block_record *own = tir_block_at(ir, block);
  for (tir_stmt s = tir_next(ir, block, block); s; s = tir_next(ir, s, block)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    struct tir_span regions[] = {tir_block_at(ir, s)->reads, tir_block_at(ir, s)->writes};
    for (int w = 0; w < 2; w++)
      for (uint32_t i = regions[w].first; i < regions[w].first + regions[w].count; i++) {
        tir_buffer buffer = ir->regions.at[i].buffer;
        bool declared = tir_has_region_of(ir, own->writes, buffer) || (!w && tir_has_region_of(ir, own->reads, buffer));
        if (!declared && !is_inside(ir, s, block, buffer)) return tir_refuse_undeclared(ir, block, buffer, err);
      }
  }
  return true;
}

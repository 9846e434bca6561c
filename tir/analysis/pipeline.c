/* Stage pipelines: whether each block of a scope reads only what earlier blocks have written.
 *
 * What is produced is taken as a lower bound (the exact box, or nothing), what is consumed as an upper bound, both
 * below the lowest statement around producer and consumer. Source: TensorIR (ASPLOS 2023), section 3.3,
 * producer-consumer cover. */
#include "analysis.h"
#include "loads.h"
#include "tir/arith/affine.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_VARS = 64, MOST_RANK = 16, MOST_WRITERS = 32 };

/* What is surely written below a statement; of a scalar, which has no dimensions, whether it is. */
struct produced {
  struct tir_interval dims[MOST_RANK];
  bool any;
};

/* Adds what the block surely writes of the buffer below `high`, where the use's predicate holds. */
static void add_produced(struct tir *ir, const struct tir_use_at *use, tir_block producer, tir_stmt high,
                         struct produced *all) {
  uint32_t rank = tir_buffer_at(ir, use->buffer)->rank;
  struct tir_span writes = tir_block_at(ir, producer)->writes;
  for (uint32_t i = 0; i < writes.count; i++) {
    struct tir_interval one[MOST_RANK];
    struct tir_region region = ir->regions.at[writes.first + i];
    if (region.buffer != use->buffer ||
        !tir_sure_region_from(ir, producer, region, high, tir_memory_of(ir, use->buffer), use->predicate, one))
      continue;
    if (all->any)
      tir_join_box(ir, all->dims, one, rank);
    else
      memcpy(all->dims, one, rank * sizeof *one);
    all->any = true;
  }
}

/* Whether the producers that meet the use at `high` cover it. */
static bool covers_at(struct tir *ir, const struct tir_use_at *use, const tir_block *producers, const tir_stmt *meets,
                      uint32_t count, tir_stmt high) {
  uint32_t rank = tir_buffer_at(ir, use->buffer)->rank;
  struct produced produced = {.any = false};
  struct tir_interval consumed[MOST_RANK];
  tir_var vars[MOST_VARS];
  for (uint32_t i = 0; i < count; i++)
    if (meets[i] == high) add_produced(ir, use, producers[i], high, &produced);
  if (!produced.any) return false;
  uint32_t relaxed = tir_running_loops(ir, use->at, high, tir_memory_of(ir, use->buffer), vars, MOST_VARS);
  if (relaxed > MOST_VARS) return false;
  tir_region_upper_bound(ir, use->ranges, rank, vars, relaxed, use->predicate, consumed);
  return tir_region_covers(ir, use->buffer, produced.dims, consumed);
}

/* What declares that it writes the buffer before covers the use. */
static bool writers_cover(struct tir *ir, const struct tir_use_at *use, tir_block scope) {
  tir_block writers[MOST_WRITERS];
  tir_stmt meets[MOST_WRITERS];
  uint32_t count = tir_users_of(ir, use->buffer, true, use->at, scope, false, writers, MOST_WRITERS);
  if (count == 0) return true;
  if (count > MOST_WRITERS || tir_buffer_at(ir, use->buffer)->rank > MOST_RANK) return false;
  for (uint32_t i = 0; i < count; i++) meets[i] = tir_lowest_common_ancestor(ir, writers[i], use->at);
  for (uint32_t i = 0; i < count; i++) {
    bool known = false;
    for (uint32_t j = 0; j < i && !known; j++) known = meets[j] == meets[i];
    if (!known && !covers_at(ir, use, writers, meets, count, meets[i])) return false;
  }
  return true;
}

bool tir_is_covered(struct tir *ir, const struct tir_use_at *use, tir_block scope) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK) && tir_is_buffer(ir, use->buffer));
  return tir_writes_are_declared(ir, use->buffer, scope) && writers_cover(ir, use, scope);
}

static bool is_covered(struct tir *ir, tir_block consumer, struct tir_region region, tir_block scope) {
  tir_expr ranges[2 * MOST_RANK];
  if (!tir_buffer_at(ir, region.buffer)->writers) return true;
  if (tir_buffer_at(ir, region.buffer)->rank > MOST_RANK) return false;
  tir_region_over_loops(ir, consumer, region, ranges);
  struct tir_use_at use = {consumer, region.buffer, ranges, tir_as(ir, consumer, TIR_BLOCK)->block.predicate};
  return writers_cover(ir, &use, scope);
}

/* Of tir_block_record.facts. */
enum { PIPELINE = 1, NO_PIPELINE = 2, COVERED = 4, NOT_COVERED = 8, INHERITED = 16, ACROSS = 32 };

bool tir_reads_are_covered(struct tir *ir, tir_block consumer, tir_block scope) {
  MS_CHECK(tir_is(ir, consumer, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  struct tir_span reads = tir_block_at(ir, consumer)->reads;
  bool covered = true;
  for (uint32_t i = 0; i < reads.count && covered; i++)
    covered = is_covered(ir, consumer, ir->regions.at[reads.first + i], scope);
  return covered;
}

static bool find_cover(struct tir *ir, tir_block consumer, tir_block scope) {
  bool covered = tir_reads_are_covered(ir, consumer, scope);
  struct tir_block_record *record = tir_block_at(ir, consumer);
  if (!(record->facts & (COVERED | NOT_COVERED))) record->facts |= covered ? COVERED : NOT_COVERED;
  return covered;
}

bool tir_has_region_cover(struct tir *ir, tir_block consumer, tir_block scope) {
  MS_CHECK(tir_is(ir, consumer, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  uint32_t facts = tir_block_at(ir, consumer)->facts;
  if (facts & (COVERED | NOT_COVERED)) return facts & COVERED;
  if (tir_block_at(ir, scope)->facts & (PIPELINE | NO_PIPELINE)) return true;
  return find_cover(ir, consumer, scope);
}

void tir_note_uncovered(struct tir *ir, tir_block consumer, tir_block scope) {
  MS_CHECK(tir_is(ir, consumer, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  struct tir_block_record *c = tir_block_at(ir, consumer), *s = tir_block_at(ir, scope);
  c->facts = (c->facts & ~(uint32_t)COVERED) | NOT_COVERED;
  s->facts = (s->facts & ~(uint32_t)PIPELINE) | NO_PIPELINE;
}

void tir_note_across(struct tir *ir, tir_block scope) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK));
  tir_block_at(ir, scope)->facts |= ACROSS;
}

bool tir_reads_across(const struct tir *ir, tir_block scope) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK));
  return tir_block_at(ir, scope)->facts & ACROSS;
}

void tir_inherit_cover(struct tir *ir, tir_block made, tir_block from, tir_block scope) {
  if (!(tir_block_at(ir, from)->facts & NOT_COVERED)) return;
  tir_note_uncovered(ir, made, scope);
  tir_block_at(ir, made)->facts |= INHERITED;
}

bool tir_covers_buffer(struct tir *ir, tir_block consumer, tir_block scope, tir_buffer buffer) {
  return tir_has_region_cover(ir, consumer, scope) ||
         (tir_block_at(ir, consumer)->facts & INHERITED && !tir_buffer_at(ir, buffer)->writers);
}

void tir_forget_cover(struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  tir_block_at(ir, block)->facts &= ~(uint32_t)(COVERED | NOT_COVERED | INHERITED);
}

void tir_renew_pipeline(struct tir *ir, tir_block scope) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK));
  ms_error err;
  ms_clear(&err);
  err.brief = true;
  tir_block_at(ir, scope)->facts = 0;
  for (tir_stmt s = tir_next(ir, scope, scope); s; s = tir_next_in_scope(ir, s, scope))
    if (tir_is(ir, s, TIR_BLOCK))
      tir_block_at(ir, s)->facts &= ~(uint32_t)(COVERED | NOT_COVERED | INHERITED); /* of its own scope */
  tir_check_stage_pipeline(ir, scope, &err);
}

static bool writes_what_was_read(const struct tir *ir, tir_block block, tir_block scope) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = 0; i < writes.count; i++)
    if (tir_users_of(ir, ir->regions.at[writes.first + i].buffer, false, block, scope, false, NULL, 0)) return true;
  return false;
}

/* Looks at every child, so that each one's cover is known after (`keep`). Of a scope that was looked at before, the
 * children without a cover are newer: nothing is kept of them, since who asks now, as an instruction that is refused,
 * has no part in a replay. */
static tir_block find_breach(struct tir *ir, tir_block scope, bool keep, const char **why) {
  tir_block breach = TIR_NONE;
  for (tir_stmt s = tir_stmt_at(ir, scope)->first[TIR_BODY]; s; s = tir_next_in_scope(ir, s, scope)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    bool covered = keep ? find_cover(ir, s, scope) : tir_reads_are_covered(ir, s, scope);
    bool late = writes_what_was_read(ir, s, scope);
    if (!breach && (late || !covered)) {
      breach = s;
      *why = late ? "writes what an earlier block reads" : "reads more than earlier blocks have written";
    }
  }
  return breach;
}

bool tir_check_stage_pipeline(struct tir *ir, tir_block scope, ms_error *err) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK));
  uint32_t facts = tir_block_at(ir, scope)->facts;
  if (facts & PIPELINE) return true;
  const char *why = "was no stage pipeline"; /* if what broke it is gone or hidden by now */
  tir_block breach = find_breach(ir, scope, !(facts & NO_PIPELINE), &why);
  if (!(facts & NO_PIPELINE)) tir_block_at(ir, scope)->facts |= breach ? NO_PIPELINE : PIPELINE;
  if (!breach && !(facts & NO_PIPELINE)) return true;
  if (!breach) breach = scope;
  return tir_refuse(ir, err, MS_NOT_STAGE_PIPELINE, breach, "block `%s` %s", tir_block_name(ir, breach), why);
}

void tir_find_pipelines(struct tir *ir, uint32_t first) {
  bool find = ir->undeclared != TIR_NONE_UNDECLARED;
  for (uint32_t record = first; record < ir->blocks.count && !find; record++)
    find = ir->blocks.at[record].block && tir_is_placed_by_loads(ir, ir->blocks.at[record].block);
  if (find)
    tir_find_undeclared(ir);
  else
    MS_CHECK(tir_declares_all(ir));
  ms_error err;
  ms_clear(&err);
  err.brief = true;
  for (uint32_t record = first; record < ir->blocks.count; record++) {
    tir_block block = ir->blocks.at[record].block;
    if (block && !(ir->blocks.at[record].facts & (PIPELINE | NO_PIPELINE))) tir_check_stage_pipeline(ir, block, &err);
  }
}

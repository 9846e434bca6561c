/* Where a block stands: the loops around it, its scope, and who produces and consumes there what it touches. Asks
 * nothing of other analyses, which all may ask it.
 *
 * Blocks in the init of another are children of no scope: nothing here sees them. */
#include "analysis.h"

#include <stdlib.h>
#include <string.h>

tir_stmt tir_only_child(const struct tir *ir, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  return n->first[TIR_BODY] == n->last[TIR_BODY] ? n->first[TIR_BODY] : TIR_NONE;
}

bool tir_is_nest_of(const struct tir *ir, tir_stmt s, tir_block block) {
  while (s && s != block && tir_is(ir, s, TIR_LOOP)) s = tir_only_child(ir, s);
  return s == block;
}

tir_stmt tir_lowest_common_ancestor(const struct tir *ir, tir_stmt a, tir_stmt b) {
  MS_CHECK(a && b);
  while (a != b && !tir_is_below(ir, b, a)) a = tir_stmt_at(ir, a)->parent;
  while (a && !tir_is(ir, a, TIR_LOOP) && !tir_is(ir, a, TIR_BLOCK)) a = tir_stmt_at(ir, a)->parent;
  return a;
}

uint32_t tir_loop_vars(const struct tir *ir, tir_stmt s, tir_stmt high, tir_var *out, uint32_t most) {
  uint32_t count = 0;
  const struct tir_stmt_node *n;
  for (s = tir_stmt_at(ir, s)->parent; s && s != high; s = n->parent) {
    n = tir_stmt_at(ir, s);
    if (n->kind == TIR_BLOCK) break;
    if (n->kind != TIR_LOOP) continue;
    if (count < most) out[count] = n->loop.var;
    count++;
  }
  return count;
}

/* ---- Producers and consumers ---- */

tir_block tir_scope_of(const struct tir *ir, tir_block block) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  const struct tir_stmt_node *n = tir_stmt_at(ir, block), *parent;
  for (; n->parent; n = parent) {
    parent = tir_stmt_at(ir, n->parent);
    if (parent->kind == TIR_BLOCK) return n->list == TIR_INIT ? TIR_NONE : n->parent;
  }
  return TIR_NONE;
}

bool tir_find_scope(const struct tir *ir, tir_block block, tir_block *scope, ms_error *err) {
  *scope = tir_scope_of(ir, block);
  return *scope || tir_refuse(ir, err, MS_ROOT_BLOCK, block, "block `%s` is in no scope", tir_block_name(ir, block));
}

/* Blocks found so far: those from `fixed` on are kept in order of text. */
struct found {
  tir_block *out;
  uint32_t count, most, fixed;
};

static void add_in_order(const struct tir *ir, struct found *f, tir_block b) {
  uint32_t known = f->count < f->most ? f->count : f->most;
  for (uint32_t i = 0; i < known; i++)
    if (f->out[i] == b) return;
  uint32_t i = known;
  for (; i > f->fixed && tir_compare_position(ir, b, f->out[i - 1]) < 0; i--)
    if (i < f->most) f->out[i] = f->out[i - 1];
  if (i < f->most) f->out[i] = b;
  f->count++;
}

/* Where a block belongs among those kept in order of text; they are looked at from the middle. */
static uint32_t place_in_order(const struct tir *ir, const struct found *f, uint32_t known, tir_block b) {
  uint32_t low = f->fixed, high = known;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (tir_compare_position(ir, b, f->out[middle]) < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* As add_in_order, for blocks that are not among those found. */
static void insert_in_order(const struct tir *ir, struct found *f, tir_block b) {
  uint32_t known = f->count < f->most ? f->count : f->most, place = known;
  if (known > f->fixed && tir_compare_position(ir, b, f->out[known - 1]) < 0) place = place_in_order(ir, f, known, b);
  f->count++;
  if (place >= f->most) return;
  uint32_t moved = (known < f->most ? known : f->most - 1) - place;
  memmove(f->out + place + 1, f->out + place, moved * sizeof *f->out);
  f->out[place] = b;
}

/* Of a buffer that many blocks use: marks distinguish them, and come in the order in which they were made, which
 * is mostly that of the text. */
static void add_many_users(const struct tir *ir, struct found *f, uint32_t uses, uint32_t count, tir_block block,
                           tir_block scope, int side) {
  uint8_t *seen = calloc(ir->stmts.count, 1);
  tir_block *users = malloc(count * sizeof *users);
  if (!seen || !users) abort();
  uint32_t user_count = 0, known = f->count < f->most ? f->count : f->most;
  for (uint32_t i = 0; i < known; i++) seen[f->out[i]] = 1;
  for (uint32_t u = uses; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == block || seen[b]) continue;
    seen[b] = 1;
    users[user_count++] = b;
  }
  while (user_count-- > 0) {
    tir_block b = users[user_count];
    if (tir_scope_of(ir, b) == scope && tir_compare_position(ir, b, block) == side) insert_in_order(ir, f, b);
  }
  free(seen);
  free(users);
}

/* `side`: -1 adds users before the block, 1 those after it. */
static void add_users(const struct tir *ir, struct found *f, uint32_t uses, tir_block block, tir_block scope,
                      int side) {
  enum { MANY = 16 };
  uint32_t count = 0;
  for (uint32_t u = uses; u; u = ir->uses.at[u].next) count++;
  if (count > MANY) {
    add_many_users(ir, f, uses, count, block, scope, side);
    return;
  }
  for (uint32_t u = uses; u; u = ir->uses.at[u].next) {
    tir_block b = ir->uses.at[u].block;
    if (b == block || tir_scope_of(ir, b) != scope || tir_compare_position(ir, b, block) != side) continue;
    add_in_order(ir, f, b);
  }
}

uint32_t tir_users_of(const struct tir *ir, tir_buffer buffer, bool writers, tir_block block, tir_block scope,
                      bool later, tir_block *out, uint32_t most) {
  MS_CHECK(tir_is_buffer(ir, buffer) && tir_is(ir, scope, TIR_BLOCK));
  struct found f = {out, 0, most, 0};
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  add_users(ir, &f, writers ? n->writers : n->readers, block, scope, later ? 1 : -1);
  return f.count;
}

uint32_t tir_producers(const struct tir *ir, tir_block block, tir_block *out, uint32_t most) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct found f = {out, 0, most, 0};
  tir_block scope = tir_scope_of(ir, block);
  if (!scope) return 0;
  const struct tir_span spans[] = {tir_block_at(ir, block)->reads, tir_block_at(ir, block)->writes};
  for (int k = 0; k < 2; k++)
    for (uint32_t i = 0; i < spans[k].count; i++) {
      f.fixed = f.count < most ? f.count : most;
      add_users(ir, &f, tir_buffer_at(ir, ir->regions.at[spans[k].first + i].buffer)->writers, block, scope, -1);
    }
  return f.count;
}

uint32_t tir_consumers(const struct tir *ir, tir_block block, tir_block *out, uint32_t most) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  struct found f = {out, 0, most, 0};
  tir_block scope = tir_scope_of(ir, block);
  if (!scope) return 0;
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = 0; i < writes.count; i++) {
    const struct tir_buffer_node *buffer = tir_buffer_at(ir, ir->regions.at[writes.first + i].buffer);
    add_users(ir, &f, buffer->readers, block, scope, 1);
    add_users(ir, &f, buffer->writers, block, scope, 1);
  }
  return f.count;
}

bool tir_allocates(const struct tir *ir, tir_block block, tir_buffer buffer) {
  MS_CHECK(tir_is_buffer(ir, buffer));
  struct tir_span allocs = tir_block_at(ir, block)->allocs;
  for (uint32_t i = allocs.first; i < allocs.first + allocs.count; i++)
    if (ir->operands.at[i] == buffer) return true;
  return false;
}

bool tir_is_output_block(const struct tir *ir, tir_block block, tir_block scope) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK) && tir_is(ir, scope, TIR_BLOCK));
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = 0; i < writes.count; i++)
    if (!tir_allocates(ir, scope, ir->regions.at[writes.first + i].buffer)) return true;
  return false;
}

static bool reaches(const struct tir *ir, tir_stmt s) {
  return s && (!tir_is(ir, s, TIR_BLOCK) || !tir_block_at(ir, s)->iters.count);
}

uint32_t tir_loops_in_reach(const struct tir *ir, tir_block block, tir_var *out, uint32_t most) {
  MS_CHECK(tir_is(ir, block, TIR_BLOCK));
  uint32_t count = 0;
  for (tir_stmt s = block; reaches(ir, s); s = tir_stmt_at(ir, s)->parent) count += tir_is(ir, s, TIR_LOOP);
  uint32_t at = count;
  for (tir_stmt s = block; reaches(ir, s); s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && --at < most) out[at] = tir_as(ir, s, TIR_LOOP)->loop.var;
  return count;
}

unsigned tir_loop_iter_kinds(struct tir *ir, tir_loop loop, tir_block block) {
  MS_CHECK(tir_is(ir, loop, TIR_LOOP) && tir_is(ir, block, TIR_BLOCK));
  static const unsigned bits[] = {[TIR_SPATIAL] = 1, [TIR_REDUCE] = 2, [TIR_OPAQUE] = 4};
  tir_var v = tir_as(ir, loop, TIR_LOOP)->loop.var;
  unsigned kinds = 0;
  for (uint32_t i = 0; i < tir_block_at(ir, block)->iters.count; i++) {
    const struct tir_iter *iter = &tir_iters(ir, block)[i];
    if (tir_uses_var(ir, iter->binding, v)) kinds |= bits[iter->kind];
  }
  return kinds;
}

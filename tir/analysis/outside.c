#include "outside.h"

#include "access.h"
#include "loads.h"

enum { MOST_LOADS = 32 };

static bool is_place(const struct tir *ir, tir_stmt s) { return tir_is(ir, s, TIR_LOOP) || tir_is(ir, s, TIR_BLOCK); }

static bool use_at(struct tir *ir, tir_block scope, tir_buffer buffer, tir_stmt s, struct tir_outside_use *out) {
  struct tir_access own;
  *out = (struct tir_outside_use){.at = s, .places = is_place(ir, s)};
  if (out->places) {
    out->reads = ir->indirect && tir_scope_loads(ir, s, buffer, NULL, 0);
  } else if (tir_may_use_outside(ir, scope, buffer)) {
    own = tir_own_use_at(ir, scope, s, buffer);
    out->reads = own.reads;
    out->writes = own.writes;
  }
  return out->reads || out->writes;
}

bool tir_next_outside_use(struct tir *ir, tir_block scope, tir_buffer buffer, tir_stmt top, tir_stmt after,
                          struct tir_outside_use *out) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK) && tir_is_buffer(ir, buffer));
  if (!ir->indirect && !tir_may_use_outside(ir, scope, buffer)) return false;
  tir_stmt high = top && top != scope ? top : scope;
  tir_stmt s = after ? tir_next_in_scope(ir, after, high) : high == scope ? tir_next(ir, scope, scope) : high;
  if (s == high && high != scope && !after) {
    if (use_at(ir, scope, buffer, s, out)) return true;
    s = tir_is(ir, s, TIR_BLOCK) ? TIR_NONE : tir_next_in_scope(ir, s, high);
  }
  for (; s; s = tir_next_in_scope(ir, s, high))
    if (use_at(ir, scope, buffer, s, out)) return true;
  return false;
}

tir_stmt tir_first_load_by_scope(struct tir *ir, tir_buffer buffer, tir_block scope, tir_stmt after) {
  MS_CHECK(tir_is(ir, scope, TIR_BLOCK));
  bool may_load = ir->indirect || tir_buffer_at(ir, buffer)->undeclared;
  struct tir_outside_use use;
  for (tir_stmt s = may_load ? tir_after(ir, after, scope) : TIR_NONE; s; s = tir_next_in_scope(ir, s, scope))
    if (use_at(ir, scope, buffer, s, &use) && use.reads) return s;
  return TIR_NONE;
}

/* ---- Places ---- */

static bool declares_writing(const struct tir *ir, tir_block block, tir_buffer buffer) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = writes.first; i < writes.first + writes.count; i++)
    if (tir_may_share_memory(ir, ir->regions.at[i].buffer, buffer)) return true;
  return false;
}

/* Something at or below `top` may write the buffer: a block that declares it, or a statement of any block. */
static bool is_written_below(struct tir *ir, tir_buffer buffer, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (tir_is(ir, s, TIR_STORE) && tir_may_share_memory(ir, tir_stmt_at(ir, s)->store.buffer, buffer)) return true;
    if (tir_is(ir, s, TIR_BLOCK) && declares_writing(ir, s, buffer)) return true;
    tir_expr own[4];
    for (uint32_t i = tir_stmt_exprs(ir, s, own); i-- > 0;)
      if (own[i] && tir_uses_opaquely(ir, own[i], buffer)) return true;
  }
  return false;
}

static bool refuse_place(struct tir *ir, tir_stmt s, tir_buffer buffer, ms_error *err) {
  bool block = tir_is(ir, s, TIR_BLOCK);
  return tir_refuse(ir, err, MS_PLACE_WRITTEN, s, "%s depends on `%s`, which is written while it runs",
                    block ? "where this block runs" : "this loop's range", tir_buffer_name(ir, buffer));
}

bool tir_check_loads_steady(struct tir *ir, tir_stmt s, tir_stmt top, ms_error *err) {
  MS_CHECK(s == top || tir_is_below(ir, s, top));
  tir_expr loads[MOST_LOADS];
  if (!is_place(ir, s)) return true;
  uint32_t count = tir_scope_loads(ir, s, TIR_NONE, loads, MOST_LOADS);
  for (uint32_t i = 0; i < count && i < MOST_LOADS; i++)
    if (count > MOST_LOADS || is_written_below(ir, tir_at(ir, loads[i])->ref, top))
      return refuse_place(ir, s, tir_at(ir, loads[i])->ref, err);
  return true;
}

bool tir_check_places_steady(struct tir *ir, tir_stmt s, tir_stmt top, ms_error *err) {
  for (; ir->indirect; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_check_loads_steady(ir, s, top, err)) return false;
    if (s == top) return true;
  }
  return true;
}

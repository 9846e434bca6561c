/* What one iteration of a loop reads of a buffer and what it writes, and whether that says which iterations depend on
 * others.
 */
#include "lower.h"
#include "tir/arith/linear.h"

#include <string.h>

enum { MOST_LOOPS = 64 };

struct window_search {
  struct lower_windows *windows;
  tir_stmt site;
  bool known;
  tir_stmt first_read; /* what is written at it or behind it is left out; TIR_NONE: nothing is */
};

/* What a statement reads of the element that it writes is where it writes. */
static bool is_own_element(const struct tir *ir, tir_stmt s, const struct access *a) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  return n->kind == TIR_STORE && n->store.buffer == a->buffer &&
         !memcmp(tir_operands(ir, n->store.indices), a->indices, a->count * sizeof *a->indices);
}

static struct tir_interval whole_dimension(struct tir *ir, tir_buffer buffer, uint32_t d) {
  tir_expr extent = ir->operands.at[tir_buffer_at(ir, buffer)->shape + d];
  return tir_interval_of(ir, tir_int(ir, tir_type_of(ir, extent), 0), extent);
}

/* What the statement uses, these ranges in terms of loops, is added to what all do. `whole`: dimensions, a bit each, of
 * which it may be all. */
static void widen(struct tir *ir, struct window_search *search, tir_stmt s, const tir_expr *ranges, uint32_t rank,
                  uint32_t whole, bool writes) {
  struct lower_windows *w = search->windows;
  tir_var inner[MOST_LOOPS];
  tir_expr predicate = TIR_NONE;
  struct tir_interval now[TIR_MOST_RANK];
  uint32_t count = 0;
  tir_stmt around = s == search->site ? s : tir_stmt_at(ir, s)->parent; /* the site's own range is in no loop of it */
  for (tir_stmt p = around; p != search->site; p = tir_stmt_at(ir, p)->parent) {
    if (tir_is(ir, p, TIR_BLOCK) && !predicate && !writes) predicate = tir_as(ir, p, TIR_BLOCK)->block.predicate;
    if (!tir_is(ir, p, TIR_LOOP)) continue;
    if (count < MOST_LOOPS) inner[count] = tir_as(ir, p, TIR_LOOP)->loop.var;
    count++;
  }
  search->known = count <= MOST_LOOPS;
  if (!search->known) return;
  if (predicate) predicate = tir_over_loops(ir, s, predicate);
  tir_region_upper_bound(ir, ranges, rank, inner, count, predicate, now);
  for (uint32_t d = 0; d < rank && search->known; d++) {
    struct tir_interval *all = writes ? &w->written[d] : &w->read[d];
    *all = tir_interval_union(ir, *all, whole >> d & 1 ? whole_dimension(ir, w->buffer, d) : now[d]);
    search->known = !all->empty && all->min && all->max;
  }
}

static bool is_left_out(const struct tir *ir, const struct window_search *search, tir_stmt s) {
  return search->first_read && tir_compare_position(ir, s, search->first_read) >= 0;
}

/* Where data decides what is read along a dimension, that may be all of it. */
static void widen_by_access(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct window_search *search = data;
  tir_expr ranges[2 * TIR_MOST_RANK];
  uint32_t whole = 0;
  if (a->buffer != search->windows->buffer || !search->known || (!writes && is_own_element(ir, s, a))) return;
  if (writes && is_left_out(ir, search, s)) return;
  for (uint32_t d = 0; d < a->count && search->known; d++) {
    bool decided = !tir_is_index(ir, a->indices[d]);
    if (decided && writes) search->known = false;
    whole |= (uint32_t)decided << d;
    ranges[2 * d] = decided ? tir_int(ir, tir_type_of(ir, a->indices[d]), 0) : tir_over_loops(ir, s, a->indices[d]);
    ranges[2 * d + 1] = tir_int(ir, tir_type_of(ir, ranges[2 * d]), 1);
  }
  if (search->known) widen(ir, search, s, ranges, a->count, whole, writes);
}

/* A block that matches a part of the buffer uses it by another name: by its regions, then. */
static void widen_by_matches(struct tir *ir, struct window_search *search, tir_block block) {
  const struct tir_block_record *r = tir_block_at(ir, block);
  tir_expr ranges[2 * TIR_MOST_RANK];
  bool matches = false;
  for (uint32_t i = r->matches.first; i < r->matches.first + r->matches.count; i++)
    matches |= ir->matches.at[i].source.buffer == search->windows->buffer;
  for (int writes = 0; writes < 2 && matches && search->known; writes++) {
    const struct tir_region *region = tir_region_of(ir, writes ? r->writes : r->reads, search->windows->buffer);
    if (!region || (writes && is_left_out(ir, search, block))) continue;
    uint32_t rank = tir_buffer_at(ir, search->windows->buffer)->rank;
    tir_stmt inside = tir_stmt_at(ir, block)->first[TIR_BODY];
    for (uint32_t i = 0; i < 2 * rank && inside; i++)
      ranges[i] = tir_over_loops(ir, inside, ir->operands.at[region->ranges + i]);
    if (inside) widen(ir, search, block, ranges, rank, 0, writes);
  }
}

static bool find_windows(struct tir *ir, struct window_search *search, tir_buffer buffer) {
  struct lower_windows *w = search->windows;
  uint32_t rank = tir_buffer_at(ir, buffer)->rank;
  if (rank > TIR_MOST_RANK) return false;
  w->buffer = buffer;
  for (uint32_t d = 0; d < rank; d++) w->read[d] = w->written[d] = tir_nothing();
  lower_visit(ir, search->site, widen_by_access, search);
  for (tir_stmt s = search->site; s; s = tir_next(ir, s, search->site))
    if (tir_is(ir, s, TIR_BLOCK)) widen_by_matches(ir, search, s);
  return search->known;
}

bool lower_find_windows(struct tir *ir, tir_stmt site, tir_buffer buffer, struct lower_windows *out) {
  assert(tir_is_buffer(ir, buffer));
  struct window_search search = {.windows = out, .site = site, .known = true};
  return find_windows(ir, &search, buffer);
}

static void note_read(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct window_search *search = data;
  if (a->buffer != search->windows->buffer || writes || is_own_element(ir, s, a)) return;
  if (!search->first_read || tir_compare_position(ir, s, search->first_read) < 0) search->first_read = s;
}

bool lower_find_windows_before(struct tir *ir, tir_stmt site, tir_buffer buffer, struct lower_windows *out) {
  assert(tir_is_buffer(ir, buffer));
  struct window_search search = {.windows = out, .site = site, .known = true};
  out->buffer = buffer;
  lower_visit(ir, site, note_read, &search);
  return find_windows(ir, &search, buffer);
}

bool lower_reads_other_iterations(struct tir *ir, const struct lower_windows *w, tir_var v) {
  for (uint32_t d = 0; d < tir_buffer_at(ir, w->buffer)->rank; d++) {
    struct tir_interval all = whole_dimension(ir, w->buffer, d);
    struct tir_interval r = w->read[d], o = w->written[d];
    if (r.empty || o.empty || !tir_uses_var(ir, o.min, v)) continue;
    if (!tir_interval_covers(ir, o, r) && !tir_interval_covers(ir, o, tir_interval_intersect(ir, r, all))) return true;
  }
  return false;
}

bool lower_find_step(struct tir *ir, tir_expr e, tir_var v, int64_t *step) {
  struct tir_linear l = tir_linear_of(ir, e);
  *step = 0;
  for (uint32_t t = 0; t < l.count; t++) {
    struct tir_term term = ir->terms.at[l.first + t];
    if (tir_at(ir, term.atom)->kind != TIR_VAR) return false;
    if (tir_at(ir, term.atom)->ref == v) *step = term.coefficient;
  }
  return true;
}

bool lower_indices_use(const struct tir *ir, tir_stmt store, tir_var v) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, store);
  for (uint32_t i = 0; i < tir_buffer_at(ir, n->store.buffer)->rank; i++)
    if (tir_uses_var(ir, ir->operands.at[n->store.indices + i], v)) return true;
  return false;
}

/* A loop between the two adds into the same elements: the tile of the store is inside of it. */
static bool repeats_between(const struct tir *ir, tir_stmt store, tir_stmt loop) {
  for (tir_stmt p = store; p != loop; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && !lower_indices_use(ir, store, tir_as(ir, p, TIR_LOOP)->loop.var)) return true;
  return false;
}

bool lower_is_tile(struct tir *ir, tir_stmt loop) {
  for (tir_stmt s = loop; s; s = tir_next(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    if (!tir_uses_buffer(ir, n.store.value, n.store.buffer) || repeats_between(ir, s, loop)) continue;
    for (tir_stmt p = tir_stmt_at(ir, loop)->parent; p; p = tir_stmt_at(ir, p)->parent)
      if (tir_is(ir, p, TIR_LOOP) && !lower_indices_use(ir, s, tir_as(ir, p, TIR_LOOP)->loop.var)) return true;
  }
  return false;
}

bool lower_is_alone(const struct tir *ir, tir_stmt s) { return !tir_stmt_at(ir, s)->prev && !tir_stmt_at(ir, s)->next; }

uint32_t lower_size(const struct tir *ir, tir_stmt top) {
  uint32_t count = 0;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) count++;
  return count;
}

/* Of a parallel loop that is in parts (partition.c), the part binds a variable that has its range. */
double lower_times_run(const struct tir *ir, tir_stmt top) {
  double times = 1, part = 0;
  for (tir_stmt s = top, p = tir_stmt_at(ir, s)->parent; p; s = p, p = tir_stmt_at(ir, p)->parent) {
    for (tir_stmt b = tir_stmt_at(ir, s)->prev; b; b = tir_stmt_at(ir, b)->prev) {
      if (!tir_is(ir, b, TIR_BIND)) continue;
      const struct tir_var_node *v = &ir->vars.at[tir_as(ir, b, TIR_BIND)->bind.var];
      if (v->extent && tir_is_int(ir, v->extent)) part = (double)tir_at(ir, v->extent)->imm;
    }
    if (!tir_is(ir, p, TIR_LOOP)) continue;
    int64_t extent = tir_loop_extent(ir, p);
    if (part > 0)
      times *= part, part = 0;
    else if (extent > 0)
      times *= (double)extent;
  }
  return times;
}

double lower_work(const struct tir *ir, tir_stmt top) {
  double work = 0;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (tir_is(ir, s, TIR_STORE)) work += lower_times_run(ir, s);
  return work;
}

void lower_split_loop(struct tir *ir, tir_stmt loop, int64_t inner, enum tir_loop_kind kind) {
  assert(inner > 0 && tir_loop_extent(ir, loop) % inner == 0);
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct tir_var_node v = ir->vars.at[n.loop.var];
  tir_expr zero = tir_int(ir, v.type, 0), width = tir_int(ir, v.type, inner);
  tir_expr count = tir_int(ir, v.type, tir_loop_extent(ir, loop) / inner);
  tir_var outer_var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, zero, count);
  tir_var inner_var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, zero, width);
  tir_expr first = tir_mul(ir, tir_var_expr(ir, outer_var), width);
  tir_subst_var(ir, n.loop.var, tir_add(ir, n.loop.min, tir_add(ir, first, tir_var_expr(ir, inner_var))));
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  tir_stmt body = tir_new_loop(ir, inner_var, zero, width, kind);
  tir_move_children(ir, loop, TIR_BODY, body, TIR_BODY);
  tir_append(ir, loop, TIR_BODY, body);
  struct tir_stmt_node *outer = tir_stmt_at(ir, loop);
  outer->loop.var = outer_var, outer->loop.min = zero, outer->loop.extent = count;
}

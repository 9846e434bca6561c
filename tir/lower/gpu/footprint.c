/* Footprints: an access is run through for each thread of the block and each iteration of the loops of its own; what
 * loops around both accesses add to an index is the same for both, and left out. */
#include "footprint.h"

#include "tir/arith/affine.h"
#include "tir/arith/linear.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 1 << 17, MOST_VARS = 24, MOST_CONDITIONS = 16, SEVERAL = -1, NOBODY = -2 };

/* An element, and the thread that touches it. */
struct point {
  int64_t element;
  int32_t thread;
};

struct footprint {
  struct tir *ir;
  const struct lower_threads *threads;
  const struct lower_use *use;
  tir_stmt around;
  tir_var vars[MOST_VARS]; /* that are run through: axes first */
  int64_t value[MOST_VARS], first[MOST_VARS], extent[MOST_VARS];
  uint32_t count;
  tir_expr own[TIR_MOST_RANK], common[TIR_MOST_RANK]; /* each index is the sum of both */
  tir_expr conditions[MOST_CONDITIONS];
  uint32_t condition_count;
  struct point *points;
  uint32_t point_count;
};

/* ---- A kernel's threads ---- */

struct lower_threads lower_threads_of(const struct tir *ir, tir_stmt kernel, tir_stmt *innermost) {
  assert(tir_is_bound(ir, kernel));
  struct lower_threads threads = {.extent = {1, 1, 1}};
  for (tir_stmt s = *innermost = kernel; s && tir_is_bound(ir, s); s = tir_stmt_at(ir, s)->first[TIR_BODY]) {
    enum tir_axis axis = tir_loop_axis(ir, s);
    *innermost = s;
    if (!tir_is_thread_axis(axis)) continue;
    threads.var[axis - TIR_THREAD_X] = tir_as(ir, s, TIR_LOOP)->loop.var;
    threads.extent[axis - TIR_THREAD_X] = tir_loop_extent(ir, s);
  }
  return threads;
}

/* What a let binds may be another value in each thread. */
static bool is_divergent(const struct tir *ir, const void *context, tir_var v) {
  const struct lower_threads *threads = context;
  for (int a = 0; a < 3; a++)
    if (threads->var[a] == v && threads->extent[a] > 1) return true;
  return tir_is_let(ir, v);
}

/* All threads of a block see one value. */
static bool is_uniform(const struct tir *ir, const struct lower_threads *threads, tir_expr e) {
  return !(tir_at(ir, e)->flags & TIR_HAS_LOAD) && !tir_any_var(ir, e, is_divergent, threads);
}

tir_stmt lower_find_divergence(const struct tir *ir, const struct lower_threads *threads, tir_stmt s,
                               tir_stmt innermost) {
  tir_stmt outermost = TIR_NONE;
  for (; s != innermost; s = tir_stmt_at(ir, s)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    bool alike = n->kind == TIR_LOOP ? is_uniform(ir, threads, n->loop.min) && is_uniform(ir, threads, n->loop.extent)
                 : n->kind == TIR_IF ? is_uniform(ir, threads, n->test.condition)
                                     : n->kind != TIR_WHILE;
    if (!alike) outermost = s;
  }
  return outermost;
}

tir_expr lower_with_value(struct tir *ir, tir_expr e, tir_var v, tir_expr value) {
  tir_subst_var(ir, v, tir_cast(ir, ir->vars.at[v].type, value));
  e = tir_subst(ir, e);
  tir_subst_clear(ir);
  return e;
}

bool lower_comes_whole(struct tir *ir, tir_stmt kernel, tir_stmt s) {
  tir_stmt innermost;
  struct lower_threads threads = lower_threads_of(ir, kernel, &innermost);
  threads.extent[1] = threads.extent[2] = 1;
  return !lower_find_divergence(ir, &threads, s, innermost);
}

tir_expr lower_place_of(struct tir *ir, tir_buffer buffer, const tir_expr *indices) {
  struct tir_buffer_node b = *tir_buffer_at(ir, buffer);
  tir_expr at[TIR_MOST_RANK]; /* operands move as expressions are made */
  tir_type type = TIR_T_I32;
  assert(b.rank <= TIR_MOST_RANK && (!b.strides.count || b.strides.count == b.rank));
  if (b.elem_offset || tir_type_lanes(b.type) > 1) return TIR_NONE;
  for (uint32_t d = 0; d < b.rank; d++) {
    at[d] = indices[d];
    if (!tir_is_index(ir, at[d])) return TIR_NONE;
    if (tir_type_bits(tir_type_of(ir, at[d])) == 64) type = TIR_T_I64;
  }
  tir_expr stride = tir_int(ir, type, 1), sum = tir_int(ir, type, 0);
  for (uint32_t d = b.rank; d-- > 0;) {
    if (b.strides.count) stride = tir_cast(ir, type, ir->operands.at[b.strides.first + d]);
    sum = tir_add(ir, sum, tir_mul(ir, tir_cast(ir, type, at[d]), stride));
    if (!b.strides.count) stride = tir_mul(ir, stride, tir_cast(ir, type, ir->operands.at[b.shape + d]));
  }
  return sum;
}

/* ---- Variables ---- */

static int axis_of(const struct footprint *f, tir_var v) {
  for (int a = 0; a < 3; a++)
    if (f->threads->var[a] == v) return a;
  return -1;
}

/* The loop of v, between the access and `around`; TIR_NONE: it is further out, or no loop's. */
static tir_stmt own_loop(const struct footprint *f, tir_var v) {
  const struct tir *ir = f->ir;
  for (tir_stmt p = tir_stmt_at(ir, f->use->stmt)->parent; p && p != f->around; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP) && tir_as(ir, p, TIR_LOOP)->loop.var == v) return p;
  return TIR_NONE;
}

static bool is_own(const struct tir *ir, const void *context, tir_var v) {
  (void)ir;
  const struct footprint *f = context;
  return axis_of(f, v) >= 0 || own_loop(f, v);
}

static bool is_common(const struct tir *ir, const void *context, tir_var v) { return !is_own(ir, context, v); }

/* A value bound below `around` is another in each iteration. */
static bool is_bound_below(const struct tir *ir, const void *context, tir_var v) {
  const struct footprint *f = context;
  return tir_var_at(ir, v)->kind != TIR_VAR_LOOP && tir_var_at(ir, v)->kind != TIR_VAR_PLAIN && !is_own(ir, f, v);
}

/* ---- What is run through ---- */

/* Takes an index apart. False: it is no sum of what is common and what is not. */
static bool split_index(struct footprint *f, uint32_t d, tir_expr index) {
  struct tir *ir = f->ir;
  if (!tir_is_index(ir, index) || tir_any_var(ir, index, is_bound_below, f)) return false;
  struct tir_linear l = tir_linear_of(ir, index);
  struct tir_term own[64], common[64];
  uint32_t owns = 0, commons = 0;
  if (l.count > 64) return false;
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = tir_terms(ir, l)[i];
    bool has_own = tir_any_var(ir, t.atom, is_own, f), has_common = tir_any_var(ir, t.atom, is_common, f);
    if (has_own && has_common) return false;
    if (has_own)
      own[owns++] = t;
    else
      common[commons++] = t;
  }
  f->own[d] = tir_from_terms(ir, tir_type_of(ir, index), l.constant, own, owns);
  f->common[d] = tir_from_terms(ir, tir_type_of(ir, index), 0, common, commons);
  return true;
}

static void add_condition(struct footprint *f, tir_expr e) {
  struct tir *ir = f->ir;
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_AND) {
    tir_expr b = n->b;
    add_condition(f, n->a);
    add_condition(f, b);
  } else if (f->condition_count < MOST_CONDITIONS && !(n->flags & (TIR_HAS_LOAD | TIR_HAS_CALL)) &&
             !tir_any_var(ir, e, is_common, f)) {
    f->conditions[f->condition_count++] = e;
  }
}

static void gather_conditions(struct footprint *f) {
  const struct tir *ir = f->ir;
  for (tir_stmt s = f->use->stmt, p; (p = tir_stmt_at(ir, s)->parent) != TIR_NONE; s = p) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, p);
    if (n->kind == TIR_IF && tir_stmt_at(ir, s)->list == TIR_BODY) add_condition(f, n->test.condition);
  }
}

static bool is_used(const struct footprint *f, tir_var v, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++)
    if (tir_uses_var(f->ir, f->own[d], v)) return true;
  for (uint32_t i = 0; i < f->condition_count; i++)
    if (tir_uses_var(f->ir, f->conditions[i], v)) return true;
  return false;
}

static bool add_var(struct footprint *f, tir_var v, int64_t first, int64_t extent) {
  if (f->count == MOST_VARS || extent < 0) return false;
  f->vars[f->count] = v, f->first[f->count] = first, f->extent[f->count] = extent;
  f->count++;
  return true;
}

/* The axes that decide what is touched, then the loops. */
static bool gather_vars(struct footprint *f, uint32_t rank) {
  const struct tir *ir = f->ir;
  for (int a = 0; a < 3; a++)
    if (f->threads->var[a] && is_used(f, f->threads->var[a], rank) &&
        !add_var(f, f->threads->var[a], 0, f->threads->extent[a]))
      return false;
  for (tir_stmt p = tir_stmt_at(ir, f->use->stmt)->parent; p && p != f->around; p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP) || !is_used(f, tir_as(ir, p, TIR_LOOP)->loop.var, rank)) continue;
    struct tir_stmt_node n = *tir_stmt_at(ir, p);
    int64_t extent = tir_loop_extent(ir, p);
    if (axis_of(f, n.loop.var) >= 0) continue;
    if (!tir_is_int(ir, n.loop.min) || !add_var(f, n.loop.var, tir_at(ir, n.loop.min)->imm, extent)) return false;
  }
  return true;
}

/* ---- Running ---- */

static bool evaluate(const struct footprint *f, tir_expr e, int64_t *out) {
  const struct tir_expr_node *n = tir_at(f->ir, e);
  int64_t a, b;
  switch ((enum tir_kind)n->kind) {
  case TIR_INT_IMM: *out = n->imm; return true;
  case TIR_VAR:
    for (uint32_t i = 0; i < f->count; i++)
      if (f->vars[i] == n->ref) return *out = f->value[i], true;
    return false;
  case TIR_NOT: return evaluate(f, n->a, &a) && (*out = !a, true);
  case TIR_CAST: return tir_type_is_int(n->type) && tir_type_bits(n->type) >= 32 && evaluate(f, n->a, out);
  case TIR_SELECT: return evaluate(f, n->a, &a) && evaluate(f, a ? n->b : n->c, out);
  default:
    if (n->kind < TIR_ADD || n->kind > TIR_OR || tir_type_is_float(tir_type_of(f->ir, n->a))) return false;
    return evaluate(f, n->a, &a) && evaluate(f, n->b, &b) && tir_compute((enum tir_kind)n->kind, a, b, out);
  }
}

/* The thread that f->value stands for; SEVERAL, where axes that are not run through have more threads than one. */
static int32_t thread_number(const struct footprint *f) {
  int64_t number = 0, stride = 1;
  for (int a = 0; a < 3; a++) {
    if (!f->threads->var[a]) continue;
    uint32_t i = 0;
    while (i < f->count && f->vars[i] != f->threads->var[a]) i++;
    if (i == f->count && f->threads->extent[a] > 1) return SEVERAL;
    if (i < f->count) number += stride * f->value[i];
    stride *= f->threads->extent[a];
  }
  return (int32_t)number;
}

static bool add_point(struct footprint *f, const int64_t *shape, uint32_t rank) {
  int64_t element = 0;
  for (uint32_t i = 0; i < f->condition_count; i++) {
    int64_t holds;
    if (evaluate(f, f->conditions[i], &holds) && !holds) return true;
  }
  for (uint32_t d = 0; d < rank; d++) {
    int64_t index;
    if (!evaluate(f, f->own[d], &index)) return false;
    if (__builtin_mul_overflow(element, shape[d], &element) || __builtin_add_overflow(element, index, &element))
      return false;
  }
  f->points[f->point_count++] = (struct point){element, thread_number(f)};
  return true;
}

static bool next_value(struct footprint *f) {
  for (uint32_t i = 0; i < f->count; i++) {
    if (++f->value[i] < f->first[i] + f->extent[i]) return true;
    f->value[i] = f->first[i];
  }
  return false;
}

static int by_element(const void *a, const void *b) {
  const struct point *x = a, *y = b;
  return (x->element > y->element) - (x->element < y->element);
}

/* Fills the points, sorted. False: they are not known, or too many. */
static bool run_through(struct footprint *f, const int64_t *shape, uint32_t rank) {
  uint64_t total = 1;
  for (uint32_t i = 0; i < f->count; i++) {
    if (__builtin_mul_overflow(total, (uint64_t)f->extent[i], &total) || total > MOST_POINTS) return false;
    f->value[i] = f->first[i];
  }
  f->points = malloc((total + 1) * sizeof *f->points);
  if (!f->points) abort();
  if (total == 0) return true;
  do
    if (!add_point(f, shape, rank)) return false;
  while (next_value(f));
  qsort(f->points, f->point_count, sizeof *f->points, by_element);
  return true;
}

/* ---- Two of them ---- */

/* Distances between the elements of neighbours, which are as far apart in both uses. */
static bool find_shape(const struct tir *ir, tir_buffer buffer, int64_t *shape) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  for (uint32_t d = 0; d < b->rank; d++) {
    tir_expr extent = tir_operands(ir, b->shape)[d];
    if (d && !tir_is_int(ir, extent)) return false;
    shape[d] = d ? tir_at(ir, extent)->imm : 1;
  }
  return b->rank <= TIR_MOST_RANK && !b->strides.count;
}

static bool prepare(struct footprint *f, struct tir *ir, const struct lower_threads *threads,
                    const struct lower_use *use, tir_stmt around) {
  *f = (struct footprint){.ir = ir, .threads = threads, .use = use, .around = around};
  for (uint32_t d = 0; d < use->count; d++)
    if (!split_index(f, d, ir->operands.at[use->indices + d])) return false;
  gather_conditions(f);
  return gather_vars(f, use->count);
}

/* Who touches the elements equal to that of *at; moves *at behind them. */
static int32_t toucher(const struct footprint *f, uint32_t *at) {
  int64_t element = f->points[*at].element;
  int32_t who = NOBODY;
  for (; *at < f->point_count && f->points[*at].element == element; ++*at)
    who = who == NOBODY || who == f->points[*at].thread ? f->points[*at].thread : SEVERAL;
  return who;
}

static bool do_meet(const struct footprint *a, const struct footprint *b) {
  for (uint32_t i = 0, k = 0; i < a->point_count && k < b->point_count;) {
    if (a->points[i].element < b->points[k].element) {
      i++;
    } else if (a->points[i].element > b->points[k].element) {
      k++;
    } else {
      int32_t one = toucher(a, &i), other = toucher(b, &k);
      if (one == SEVERAL || one != other) return true;
    }
  }
  return false;
}

/* Remainders by one number, of what differs by a constant that is no multiple of it; or two constants. */
static bool never_equal(struct tir *ir, tir_expr a, tir_expr b) {
  struct tir_expr_node x = *tir_at(ir, a), y = *tir_at(ir, b);
  if (x.kind == TIR_INT_IMM && y.kind == TIR_INT_IMM) return x.imm != y.imm;
  if (x.kind != TIR_FLOORMOD || y.kind != TIR_FLOORMOD || x.b != y.b || !tir_is_int(ir, x.b)) return false;
  tir_expr apart = tir_type_of(ir, x.a) == tir_type_of(ir, y.a) ? tir_sub(ir, x.a, y.a) : a;
  return tir_is_int(ir, apart) && tir_at(ir, x.b)->imm > 0 && tir_at(ir, apart)->imm % tir_at(ir, x.b)->imm != 0;
}

/* In the same iterations of all loops around both, the two touch different stage buffers: what neither threads nor
 * loops of their own decide keeps them apart. */
static bool are_stage_buffers(const struct footprint *a, const struct footprint *b, uint32_t rank) {
  for (uint32_t d = 0; d < rank; d++) {
    tir_expr x = tir_operands(a->ir, a->use->indices)[d], y = tir_operands(a->ir, b->use->indices)[d];
    if (tir_any_var(a->ir, x, is_own, a) || tir_any_var(a->ir, y, is_own, b)) continue;
    if (tir_any_var(a->ir, x, is_bound_below, a) || tir_any_var(a->ir, y, is_bound_below, b)) continue;
    if (never_equal(a->ir, x, y)) return true;
  }
  return false;
}

bool lower_are_apart_in_next(struct tir *ir, const struct lower_threads *threads, const struct lower_use *a,
                             const struct lower_use *b, tir_stmt loop) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  struct lower_use next = *b;
  tir_expr indices[TIR_MOST_RANK];
  if (n.kind != TIR_LOOP || a->buffer != b->buffer || a->anywhere || b->anywhere || b->count > TIR_MOST_RANK)
    return false;
  tir_expr var = tir_var_expr(ir, n.loop.var), one = tir_int(ir, tir_type_of(ir, var), 1);
  tir_subst_var(ir, n.loop.var, tir_add(ir, var, one));
  for (uint32_t d = 0; d < b->count; d++) indices[d] = tir_subst(ir, ir->operands.at[b->indices + d]);
  tir_subst_clear(ir);
  next.indices = tir_add_operands(ir, indices, b->count);
  struct footprint fa = {.ir = ir, .threads = threads, .use = a, .around = loop}, fb = fa;
  fb.use = &next;
  return are_stage_buffers(&fa, &fb, a->count);
}

bool lower_may_meet(struct tir *ir, const struct lower_threads *threads, const struct lower_use *a,
                    const struct lower_use *b, tir_stmt around) {
  assert(a->buffer && a->buffer == b->buffer && a->count == b->count);
  int64_t shape[TIR_MOST_RANK];
  struct footprint fa = {0}, fb = {0};
  bool known =
      find_shape(ir, a->buffer, shape) && prepare(&fa, ir, threads, a, around) && prepare(&fb, ir, threads, b, around);
  if (known && are_stage_buffers(&fa, &fb, a->count)) return false;
  for (uint32_t d = 0; known && d < a->count; d++)
    known = tir_type_of(ir, fa.common[d]) == tir_type_of(ir, fb.common[d]) &&
            tir_prove_equal(ir, fa.common[d], fb.common[d]);
  if (!known) return true;
  bool meets = !run_through(&fa, shape, a->count) || !run_through(&fb, shape, b->count) || do_meet(&fa, &fb);
  free(fa.points);
  free(fb.points);
  return meets;
}

/* ---- By the form of indices ---- */

/* Of all conditions around a use; TIR_NONE: there are none. */
static tir_expr condition_around(struct tir *ir, const struct lower_use *use) {
  tir_expr all = TIR_NONE;
  for (tir_stmt s = use->stmt, p; (p = tir_stmt_at(ir, s)->parent) != TIR_NONE; s = p)
    if (tir_is(ir, p, TIR_IF) && tir_stmt_at(ir, s)->list == TIR_BODY)
      all = tir_and(ir, all, tir_as(ir, p, TIR_IF)->test.condition);
  return all;
}

bool lower_is_one_thread(struct tir *ir, const struct lower_threads *threads, const struct lower_use *a,
                         const struct lower_use *b, tir_stmt around) {
  struct footprint f = {.ir = ir, .threads = threads, .use = a, .around = around};
  tir_expr indices[TIR_MOST_RANK];
  tir_var vars[MOST_VARS];
  uint32_t count = 0;
  if (a->count != b->count || a->count > TIR_MOST_RANK) return false;
  memcpy(indices, tir_operands(ir, a->indices), a->count * sizeof *indices);
  if (memcmp(indices, tir_operands(ir, b->indices), a->count * sizeof *indices) != 0) return false;
  for (uint32_t d = 0; d < a->count; d++)
    if (!tir_is_index(ir, indices[d])) return false;
  for (tir_stmt p = tir_stmt_at(ir, a->stmt)->parent; p; p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP)) continue;
    tir_var v = tir_as(ir, p, TIR_LOOP)->loop.var;
    bool used = false;
    for (uint32_t d = 0; d < a->count; d++) used |= tir_uses_var(ir, indices[d], v);
    bool thread = axis_of(&f, v) >= 0;
    if (used && !thread && own_loop(&f, v)) return false;
    if (!used && !(thread && tir_loop_extent(ir, p) > 1)) continue;
    if (count == MOST_VARS) return false;
    vars[count++] = v;
  }
  tir_expr condition = condition_around(ir, a);
  if (condition != condition_around(ir, b)) condition = TIR_NONE;
  return tir_detect_iter_map(ir, indices, a->count, vars, count, TIR_NONE, TIR_MAP_BIJECTIVE, true, NULL) ||
         (condition &&
          tir_detect_iter_map(ir, indices, a->count, vars, count, condition, TIR_MAP_BIJECTIVE, true, NULL));
}

/* Kernels: a statement of the function below which loops are bound to blocks and threads becomes a kernel: a nest of
 * loops, one an axis, blocks outermost, around all of it.
 *
 *   for bx: S; for tx(8): A; for tx(6): B    becomes    for bx: for tx(8): { if tx == 0: S; A; if tx < 6: B }
 *
 * Requires: no blocks. Gives: a function that is a list of allocations of device memory and kernels, in which no other
 * loop is bound but to virtual threads (vthreads.c). Keeps: the order of statements.
 * An axis has the largest extent that a loop bound to it has. What stands under no loop of an axis is done by its first
 * thread where others see it, and by every thread where it is memory of the thread's own. A reduction across threads
 * (reduce.c) is for all threads of a block to join in: guards stand around what is beside it, and threads beyond the
 * extent bring nothing. A block then has full warps. */
#include "tir/lower/lower.h"

#include <string.h>

enum { AXES = TIR_VTHREAD_X, FIRST_THREAD_AXIS = TIR_THREAD_X };
static const char *const names[AXES] = {"bx", "by", "bz", "tx", "ty", "tz"};

struct kernel {
  struct lowering *low;
  tir_stmt top;
  tir_expr extent[AXES]; /* TIR_NONE: the kernel has no such axis */
  tir_var var[AXES];
  int64_t cluster; /* blocks of a cluster */
  bool reduces_along_x, reduces;
};

/* -1: a virtual thread. */
static int axis_of(const struct tir *ir, tir_stmt loop) {
  enum tir_axis axis = tir_axis_named(tir_text(ir, tir_as(ir, loop, TIR_LOOP)->loop.thread));
  return axis < TIR_VTHREAD_X ? (int)axis : -1;
}

static bool refuse(const struct kernel *k, tir_stmt s, const char *what) {
  const struct tir *ir = k->low->ir;
  return tir_refuse(ir, k->low->err, MS_LOWER_KERNEL, tir_is(ir, s, TIR_LOOP) ? s : TIR_NONE, "%s", what);
}

/* ---- Axes ---- */

/* Blocks have no order, and meet nowhere: what they are for is not done again and again, nor beside other blocks. */
static bool check_block_axis(const struct kernel *k, tir_stmt loop, int axis) {
  const struct tir *ir = k->low->ir;
  if (k->extent[axis]) return refuse(k, loop, "a kernel has two loops of blocks that are bound to one axis");
  for (tir_stmt p = loop; p != k->top; p = tir_stmt_at(ir, p)->parent)
    if (!tir_is_bound(ir, tir_stmt_at(ir, p)->parent))
      return refuse(k, loop, "a loop of blocks stands in what is no loop of blocks or threads");
  return true;
}

/* One thread is not several: a loop within one of the same axis has no more iterations than that. */
static bool check_thread_axis(const struct kernel *k, tir_stmt loop, int axis) {
  const struct tir *ir = k->low->ir;
  int64_t extent = tir_loop_extent(ir, loop);
  if (extent < 0) return refuse(k, loop, "the number of threads is no constant");
  for (tir_stmt p = tir_stmt_at(ir, loop)->parent; p && p != tir_stmt_at(ir, k->top)->parent;
       p = tir_stmt_at(ir, p)->parent)
    if (tir_is_bound(ir, p) && axis_of(ir, p) == axis && tir_loop_extent(ir, p) < extent)
      return refuse(k, loop, "the loop takes more threads than the loop around it that is bound to the same axis");
  return true;
}

/* What a loop of blocks says of clusters is the kernel's. */
static bool take_cluster(struct kernel *k, tir_stmt loop) {
  struct tir *ir = k->low->ir;
  if (!tir_check_cluster(ir, loop, MS_LOWER_KERNEL, k->low->err)) return false;
  int64_t blocks = tir_cluster_of(ir, loop);
  tir_annotate_span(ir, &tir_stmt_at(ir, loop)->annotations, tir_symbol_of(ir, TIR_CLUSTER), TIR_NONE);
  if (blocks > 1) k->cluster = blocks;
  return true;
}

static bool add_axis(struct kernel *k, tir_stmt loop) {
  const struct tir *ir = k->low->ir;
  int axis = axis_of(ir, loop);
  tir_expr extent = tir_as(ir, loop, TIR_LOOP)->loop.extent;
  if (axis < 0) return true;
  if (tir_loop_extent(ir, loop) > tir_axis_limit((enum tir_axis)axis))
    return tir_refuse(ir, k->low->err, MS_AXIS_LIMIT, loop, "the loop has %lld iterations, and %s at most %lld",
                      (long long)tir_loop_extent(ir, loop), tir_axis_name((enum tir_axis)axis),
                      (long long)tir_axis_limit((enum tir_axis)axis));
  if (!take_cluster(k, loop)) return false;
  if (axis < FIRST_THREAD_AXIS ? !check_block_axis(k, loop, axis) : !check_thread_axis(k, loop, axis)) return false;
  if (!k->extent[axis] || tir_at(ir, k->extent[axis])->imm < tir_at(ir, extent)->imm) k->extent[axis] = extent;
  return true;
}

/* The call by which threads reduce, in the attribute that says how (reduce.c). */
static tir_expr reduction_of(const struct tir *ir, tir_stmt s) {
  if (!lower_is_attr(ir, s, LOWER_REDUCE)) return TIR_NONE;
  return tir_as(ir, tir_stmt_at(ir, s)->first[TIR_BODY], TIR_EVALUATE)->evaluate.value;
}

static bool holds_reduction(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (reduction_of(ir, s)) return true;
  return false;
}

static void note_reduction(struct kernel *k, tir_stmt s) {
  const struct tir *ir = k->low->ir;
  tir_expr call = reduction_of(ir, s);
  if (!call) return;
  k->reduces = true;
  for (tir_stmt p = s; p != tir_stmt_at(ir, k->top)->parent; p = tir_stmt_at(ir, p)->parent)
    if (tir_is_bound(ir, p) && axis_of(ir, p) == FIRST_THREAD_AXIS &&
        tir_uses_var(ir, call, tir_as(ir, p, TIR_LOOP)->loop.var))
      k->reduces_along_x = true;
}

static bool gather_axes(struct kernel *k) {
  const struct tir *ir = k->low->ir;
  for (tir_stmt s = k->top; s; s = tir_next(ir, s, k->top)) {
    if (tir_is_bound(ir, s) && !add_axis(k, s)) return false;
    if (lower_is_attr(ir, s, "thread_extent")) return refuse(k, s, "threads are bound by an attribute, not by loops");
    note_reduction(k, s);
  }
  return true;
}

static int64_t threads_along(const struct kernel *k, int axis) {
  return k->extent[axis] ? tir_at(k->low->ir, k->extent[axis])->imm : 1;
}

static int64_t block_threads(const struct kernel *k) {
  int64_t product = 1;
  for (int a = FIRST_THREAD_AXIS; a < AXES; a++)
    if (__builtin_mul_overflow(product, threads_along(k, a), &product)) return INT64_MAX;
  return product;
}

/* Where threads reduce along x, a row of them fills whole warps, or a power of two divides a warp; and all rows fill
 * warps. A block that would be too large then stays as it is. */
static void fill_warps(struct kernel *k, int64_t most) {
  tir_expr as_bound[AXES];
  memcpy(as_bound, k->extent, sizeof as_bound);
  int64_t x = threads_along(k, FIRST_THREAD_AXIS), row = 1;
  while (row < x && row < TIR_WARP) row *= 2;
  if (x > TIR_WARP) row = (x + TIR_WARP - 1) / TIR_WARP * TIR_WARP;
  if (k->reduces_along_x) k->extent[FIRST_THREAD_AXIS] = tir_int(k->low->ir, TIR_T_I32, row);
  for (int a = FIRST_THREAD_AXIS; a < AXES && block_threads(k) % TIR_WARP; a++) {
    if (!k->extent[a] || (a < AXES - 1 && k->extent[a + 1])) continue; /* the slowest axis that there is */
    int64_t rest = block_threads(k) / threads_along(k, a), count = threads_along(k, a);
    while (rest * count % TIR_WARP) count++;
    k->extent[a] = tir_int(k->low->ir, TIR_T_I32, count);
  }
  if (block_threads(k) > most) memcpy(k->extent, as_bound, sizeof as_bound);
  assert(block_threads(k) <= most);
}

static bool set_axes(struct kernel *k) {
  const struct tir_lower_options *o = k->low->options;
  struct tir *ir = k->low->ir;
  int64_t most = o && o->block_threads ? o->block_threads : TIR_BLOCK_THREADS;
  if (block_threads(k) > most) return refuse(k, k->top, "a block has more threads than the target allows");
  if (k->reduces) fill_warps(k, most);
  for (int a = 0; a < AXES; a++) {
    if (!k->extent[a]) continue;
    tir_type type = tir_type_of(ir, k->extent[a]);
    tir_expr zero = tir_int(ir, type, 0);
    k->var[a] = tir_new_var(ir, TIR_VAR_LOOP, tir_name_of(ir, names[a]), type, zero, k->extent[a]);
  }
  return true;
}

/* ---- Guards ---- */

/* The axes of loops around a statement, as bits. */
static unsigned axes_around(const struct kernel *k, tir_stmt s) {
  const struct tir *ir = k->low->ir;
  unsigned axes = 0;
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p != tir_stmt_at(ir, k->top)->parent; p = tir_stmt_at(ir, p)->parent)
    if (tir_is_bound(ir, p) && axis_of(ir, p) >= 0) axes |= 1u << axis_of(ir, p);
  return axes;
}

/* The axes whose threads share the memory. */
static unsigned axes_sharing(const struct tir *ir, tir_buffer buffer) {
  const unsigned blocks = (1u << FIRST_THREAD_AXIS) - 1, all = (1u << AXES) - 1;
  enum tir_memory memory = tir_buffer_memory(ir, buffer);
  return memory == TIR_DEVICE_MEMORY ? all : memory == TIR_BLOCK_MEMORY ? all & ~blocks : 0;
}

/* What is stored under fewer axes than share the memory, one thread stores. */
static void guard_store(struct kernel *k, tir_stmt store) {
  struct tir *ir = k->low->ir;
  unsigned missing = axes_sharing(ir, tir_as(ir, store, TIR_STORE)->store.buffer) & ~axes_around(k, store);
  tir_expr first = TIR_NONE;
  for (int a = 0; a < AXES; a++) {
    if (!(missing >> a & 1) || !k->extent[a] || tir_is_const(ir, k->extent[a], 1)) continue;
    tir_expr var = tir_var_expr(ir, k->var[a]);
    first = tir_and(ir, first, tir_make(ir, TIR_EQ, var, tir_int(ir, tir_type_of(ir, var), 0)));
  }
  if (first) tir_wrap(ir, store, tir_new_if(ir, first));
}

/* Has what is below `parent` done under a condition; a reduction, by all, to which it says who brings a value; and all
 * come to a barrier of the cluster. */
static void guard_below(struct tir *ir, tir_stmt parent, enum tir_list list, tir_expr condition) {
  for (tir_stmt s = tir_stmt_at(ir, parent)->first[list], next; s; s = next) {
    struct tir_stmt_node n = *tir_stmt_at(ir, s);
    next = n.next;
    if (n.kind == TIR_ALLOC || n.kind == TIR_DECLARE || n.kind == TIR_BIND) continue;
    if (lower_calls(ir, s, TIR_CLUSTER_BARRIER)) continue;
    tir_expr reduction = reduction_of(ir, s);
    if (reduction) {
      lower_restrict_reduction(ir, s, condition);
    } else if (holds_reduction(ir, s)) {
      guard_below(ir, s, TIR_BODY, condition);
      guard_below(ir, s, TIR_ELSE, condition);
    } else {
      tir_wrap(ir, s, tir_new_if(ir, condition));
    }
  }
}

/* ---- One nest ---- */

void lower_hand_down(struct tir *ir, tir_stmt loop) {
  struct tir_span from = tir_stmt_at(ir, loop)->annotations;
  for (tir_stmt s = from.count ? tir_next(ir, loop, loop) : TIR_NONE; s;) {
    if (!tir_is(ir, s, TIR_LOOP)) {
      s = tir_next(ir, s, loop);
      continue;
    }
    for (uint32_t i = from.first; i < from.first + from.count; i++) {
      struct tir_annotation a = ir->annotations.at[i];
      if (!tir_annotation(ir, tir_stmt_at(ir, s)->annotations, tir_text(ir, a.key)))
        tir_annotate_span(ir, &tir_stmt_at(ir, s)->annotations, a.key, a.value);
    }
    s = tir_after(ir, s, loop);
  }
}

/* The loop's iteration is the kernel's thread. Returns the statement from which the walk goes on. */
static tir_stmt join_axis(struct kernel *k, tir_stmt loop, int axis) {
  struct tir *ir = k->low->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  tir_type type = ir->vars.at[n.loop.var].type;
  tir_expr thread = tir_var_expr(ir, k->var[axis]), extent = k->extent[axis], guard = TIR_NONE;
  assert(axis < AXES && extent &&
         (n.loop.extent == extent || (tir_is_int(ir, extent) && tir_is_int(ir, n.loop.extent))));
  if (n.loop.extent != extent && tir_at(ir, n.loop.extent)->imm != tir_at(ir, extent)->imm)
    guard = tir_make(ir, TIR_LT, thread, tir_cast(ir, tir_type_of(ir, thread), n.loop.extent));
  tir_expr number = tir_is_const(ir, extent, 1) ? tir_int(ir, type, 0) : tir_cast(ir, type, thread);
  tir_subst_var(ir, n.loop.var, tir_add(ir, n.loop.min, number));
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  lower_hand_down(ir, loop);
  if (guard) guard_below(ir, loop, TIR_BODY, guard);
  tir_stmt first = tir_stmt_at(ir, loop)->first[TIR_BODY];
  tir_stmt after = first ? first : tir_after(ir, loop, k->top);
  tir_kill_alone(ir, loop);
  return after;
}

/* The kernel's loops take the place of its top, which stands in the innermost. */
static void make_nest(struct kernel *k) {
  struct tir *ir = k->low->ir;
  tir_stmt innermost = TIR_NONE;
  for (int a = 0; a < AXES; a++) {
    if (!k->extent[a]) continue;
    tir_stmt loop = tir_new_loop(ir, k->var[a], ir->vars.at[k->var[a]].min, k->extent[a], TIR_THREAD_BINDING);
    tir_as(ir, loop, TIR_LOOP)->loop.thread = tir_symbol_of(ir, tir_axis_name((enum tir_axis)a));
    if (a == TIR_BLOCK_X && k->cluster > 1)
      tir_annotate_symbol(ir, loop, tir_symbol_of(ir, TIR_CLUSTER), tir_int(ir, TIR_T_I32, k->cluster));
    if (innermost)
      tir_append(ir, innermost, TIR_BODY, loop);
    else
      tir_insert_before(ir, k->top, loop);
    innermost = loop;
  }
  assert(innermost && "a kernel has an axis");
  tir_detach(ir, k->top);
  tir_append(ir, innermost, TIR_BODY, k->top);
  k->top = innermost;
}

static void join_axes(struct kernel *k) {
  struct tir *ir = k->low->ir;
  for (tir_stmt s = tir_next(ir, k->top, k->top); s;) {
    int axis = tir_is_bound(ir, s) ? axis_of(ir, s) : -1;
    if (axis >= 0) {
      s = join_axis(k, s, axis);
      continue;
    }
    if (tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_PARALLEL) {
      lower_note(k->low, s, "parallel on a GPU, where bind makes threads: it runs in order");
      tir_stmt_at(ir, s)->loop_kind = TIR_SERIAL;
    }
    s = tir_next(ir, s, k->top);
  }
}

/* Memory of the device is allocated before the kernel. */
static void raise_allocations(struct kernel *k, tir_stmt before) {
  struct tir *ir = k->low->ir;
  for (tir_stmt s = k->top, next; s; s = next) {
    next = tir_next(ir, s, k->top);
    if (!tir_is(ir, s, TIR_ALLOC) || tir_buffer_memory(ir, tir_stmt_at(ir, s)->alloc.buffer) != TIR_DEVICE_MEMORY)
      continue;
    tir_detach(ir, s);
    tir_insert_before(ir, before, s);
  }
}

static bool has_axis(const struct kernel *k, int first, int end) {
  for (int a = first; a < end; a++)
    if (k->extent[a]) return true;
  return false;
}

static void note_missing_threads(const struct kernel *k, bool unbound) {
  if (unbound)
    lower_note(k->low, k->top,
               "bound, nor is any loop in it: one thread of the device runs it in order; bind makes blocks and threads "
               "of loops, blockIdx.x and threadIdx.x");
  else if (!has_axis(k, FIRST_THREAD_AXIS, AXES))
    lower_note(k->low, k->top,
               "of several threads a block: no loop in it is bound to threadIdx.x, and a thread of each warp works");
}

static bool make_kernel(struct lowering *low, tir_stmt top) {
  struct kernel k = {.low = low, .top = top};
  struct tir *ir = low->ir;
  if (!gather_axes(&k)) return false;
  bool unbound = !has_axis(&k, 0, AXES);
  if (tir_is(ir, top, TIR_LOOP)) note_missing_threads(&k, unbound);
  if (unbound) k.extent[FIRST_THREAD_AXIS] = tir_int(ir, TIR_T_I32, 1);
  if (!set_axes(&k)) return false;
  for (tir_stmt s = top, next; s; s = next) {
    next = tir_next(ir, s, top);
    if (!unbound && tir_is(ir, s, TIR_STORE)) guard_store(&k, s);
  }
  raise_allocations(&k, top);
  make_nest(&k);
  join_axes(&k);
  if (unbound) tir_annotate_symbol(ir, k.top, tir_symbol_of(ir, TIR_ONE_THREAD), tir_int(ir, TIR_T_I32, 1));
  return true;
}

/* ---- The function ---- */

static bool is_for_host(const struct tir *ir, tir_stmt s) {
  int kind = tir_stmt_at(ir, s)->kind;
  return kind == TIR_ALLOC || kind == TIR_DECLARE || kind == TIR_ASSERT || kind == TIR_BIND;
}

/* A host knows shapes and scalars, and has no memory but the device's. */
static bool check_for_host(const struct lowering *low, tir_stmt s) {
  const struct tir *ir = low->ir;
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  if (n->kind == TIR_BIND && (tir_at(ir, n->bind.value)->flags & TIR_HAS_LOAD))
    return tir_refuse(ir, low->err, MS_LOWER_KERNEL, TIR_NONE,
                      "a value that several kernels use is loaded outside of them");
  if ((n->kind == TIR_ALLOC || n->kind == TIR_DECLARE) && tir_buffer_memory(ir, n->alloc.buffer) != TIR_DEVICE_MEMORY)
    return tir_refuse(ir, low->err, MS_LOWER_KERNEL, TIR_NONE, "%s, of scope \"%s\", is allocated outside of a kernel",
                      tir_buffer_name(ir, n->alloc.buffer), tir_text(ir, tir_buffer_at(ir, n->alloc.buffer)->scope));
  return true;
}

bool lower_kernels(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = tir_stmt_at(ir, low->body)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (is_for_host(ir, s) ? !check_for_host(low, s) : !make_kernel(low, s)) return false;
  }
  return true;
}

/* Producer: a warp group beside a kernel's threads issues TMA bulk tensor copies for the others, which only multiply.
 *
 *   for k: first thread copies S[k % 3]; C += S[(k - 2) % 3]       becomes
 *
 *   if warp < 8: for k: C += S[k % 3]; …                  the consumers: all that the kernel does; warp is t // 32
 *   else if warp == 8: if elect_one(): for k: copy S[k % 3]
 *
 * The producer, one thread of it, runs ahead by as many iterations as there are stage buffers.
 *
 * A software pipeline asks for it. It is done in two steps. First, with the pipeline, what copies comes to stand at
 * the kernel's start in an attribute of its own, by which passes know that other threads do it than those of the
 * kernel (pipeline.c). Last, when barriers stand and all that looks at the kernel's threads is done: the kernel gets
 * the threads, which synchronize once, when barriers in shared memory have been made; from there on the kernel's own do
 * so at a named barrier. Where a block's threads cannot have 240 registers each the producer gives most of its
 * own to the others. Requires of the last step: kernels; barriers. Gives: no such attribute. Keeps: everything else.
 * Source: PTX ISA, "bar", "setmaxnreg"; Shah et al., "FlashAttention-3", NeurIPS 2024, section 3.1. */
#include "pipeline.h"
#include "tir/lower/gpu/footprint.h"

bool lower_is_producer(const struct tir *ir, tir_stmt s) { return lower_is_attr(ir, s, LOWER_PRODUCER); }

static tir_stmt find_producer(const struct tir *ir, tir_stmt inside) {
  tir_stmt s = tir_stmt_at(ir, inside)->first[TIR_BODY];
  while (s && !lower_is_producer(ir, s)) s = tir_stmt_at(ir, s)->next;
  return s;
}

/* ---- The block ---- */

struct shape {
  int axis;                           /* which grows: the last that has threads */
  int64_t before, threads, is, grown; /* threads between neighbours on it; of the block; its extent, then and now */
};

/* False: a warp group is no whole number of neighbours. */
static bool find_shape(const struct lower_threads *t, struct shape *out) {
  *out = (struct shape){.axis = 2, .before = 1, .threads = t->extent[0] * t->extent[1] * t->extent[2]};
  while (out->axis && t->extent[out->axis] == 1) out->axis--;
  for (int a = 0; a < out->axis; a++) out->before *= t->extent[a];
  out->is = t->extent[out->axis], out->grown = out->is + TIR_GROUP / out->before;
  return TIR_GROUP % out->before == 0;
}

/* ---- With the pipeline ---- */

/* NULL: the copies can be a warp group's of their own. */
static const char *why_no_producer(struct pipeline *p) {
  struct tir *ir = p->low->ir;
  tir_stmt inside;
  struct lower_threads threads = lower_threads_of(ir, pipeline_kernel(p), &inside);
  struct shape shape;
  int64_t most = p->low->options && p->low->options->block_threads ? p->low->options->block_threads : TIR_BLOCK_THREADS;
  if (!p->arrivals) return "no statement is a TMA bulk tensor copy";
  if (!p->plan.frees) return "stage buffers are not freed by mbarriers";
  if (p->arrivals + 1 != p->plan.count) return "it does more than such copies and MMAs";
  if (find_producer(ir, inside)) return "another loop of the kernel has one";
  if (!find_shape(&threads, &shape)) return "a warp group does not fill an axis of the block's threads";
  if (shape.threads + TIR_GROUP > most) return "the block would have too many threads";
  bool lets = tir_uses_let(ir, p->min) || tir_uses_let(ir, p->extent);
  for (uint32_t i = 0; i < p->plan.count; i++)
    for (uint32_t d = 0; p->parts[i].bulk && d < p->parts[i].copy.rank; d++)
      lets = lets || tir_uses_let(ir, p->parts[i].copy.at[d]);
  return lets ? "what is copied depends on a value that is bound in the kernel" : NULL;
}

void pipeline_find_producer(struct pipeline *p) {
  const char *why = p->plan.producer ? why_no_producer(p) : NULL;
  if (!why) return;
  p->plan.producer = false;
  char note[200];
  snprintf(note, sizeof note, "one with a producer warp group: %s", why);
  lower_note(p->low, p->loop, note);
}

/* Loops of one iteration around the pipeline (tma_copy.c knows of no others) are not around what copies. */
static void leave_loops(struct pipeline *p, tir_stmt top) {
  struct tir *ir = p->low->ir;
  for (tir_stmt s = tir_stmt_at(ir, p->loop)->parent; s != p->low->body; s = tir_stmt_at(ir, s)->parent) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind == TIR_THREAD_BINDING) continue;
    tir_subst_var(ir, tir_stmt_at(ir, s)->loop.var, tir_stmt_at(ir, s)->loop.min);
    tir_subst_stmt(ir, top);
    tir_subst_clear(ir);
  }
}

void pipeline_put_producer(struct pipeline *p) {
  assert(p->plan.producer && p->plan.frees && p->made && "mbarriers keep the roles apart");
  struct tir *ir = p->low->ir;
  struct tir_var_node v = ir->vars.at[p->var];
  tir_stmt attr = lower_new_attr(ir, LOWER_PRODUCER, TIR_NONE), at = p->made;
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, p->min, p->extent);
  tir_stmt loop = tir_new_loop(ir, var, p->min, p->extent, TIR_SERIAL);
  for (uint32_t place = 0; place < p->plan.count; place++) {
    struct part *part = &p->parts[p->by_order[place]];
    if (!part->bulk) continue;
    tir_stmt copy = tir_clone_stmt(ir, part->stmt);
    tir_subst_var(ir, p->var, tir_var_expr(ir, var));
    tir_subst_stmt(ir, copy);
    tir_subst_clear(ir);
    tir_append(ir, loop, TIR_BODY, copy);
    tir_kill_alone(ir, copy);
    tir_kill(ir, part->stmt);
  }
  for (tir_stmt s = tir_stmt_at(ir, p->loop)->first[TIR_BODY], next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_detach(ir, s);
    tir_insert_after(ir, at, s);
    at = s;
  }
  tir_append(ir, attr, TIR_BODY, loop);
  p->producer = attr;
  tir_insert_after(ir, at, attr);
  leave_loops(p, attr);
}

/* ---- Last ---- */

static tir_stmt new_registers(struct tir *ir, int64_t count, bool more) {
  tir_expr args[] = {tir_int(ir, TIR_T_I32, count), tir_int(ir, TIR_T_I32, more)};
  return lower_new_call(ir, TIR_SET_REGISTERS, args, 2);
}

/* Where the consumers meet no producer comes. */
static void name_barriers(struct tir *ir, tir_stmt top, int64_t threads) {
  enum { NUMBER = 1 };
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    if (!lower_calls(ir, s, TIR_STORAGE_SYNC)) continue;
    tir_expr args[] = {tir_int(ir, TIR_T_I32, NUMBER), tir_int(ir, TIR_T_I32, threads)};
    tir_expr call = tir_call(ir, TIR_T_VOID, tir_device_symbol(ir, TIR_NAMED_BARRIER), args, 2);
    tir_as(ir, s, TIR_EVALUATE)->evaluate.value = call;
  }
}

/* The axis gets the threads; gives its variable. */
static tir_var grow(struct tir *ir, tir_stmt kernel, tir_var old, int64_t extent) {
  tir_stmt loop = kernel;
  while (tir_as(ir, loop, TIR_LOOP)->loop.var != old) loop = tir_stmt_at(ir, loop)->first[TIR_BODY];
  struct tir_var_node v = ir->vars.at[old];
  tir_expr size = tir_int(ir, v.type, extent);
  tir_var var = tir_new_var(ir, TIR_VAR_LOOP, v.name, v.type, v.min, size);
  tir_as(ir, loop, TIR_LOOP)->loop.var = var, tir_as(ir, loop, TIR_LOOP)->loop.extent = size;
  tir_subst_var(ir, old, tir_var_expr(ir, var));
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
  return var;
}

/* The number of the thread's warp, of those that an axis has which is whole warps long where others come before it:
 * the assembler knows that it is the same in all lanes, and keeps what follows from it in uniform registers. */
static tir_expr warp_of(struct tir *ir, const struct lower_threads *t, const struct shape *shape, tir_var grown) {
  assert(shape->threads % TIR_WARP == 0);
  tir_expr number = tir_int(ir, TIR_T_I32, 0), warp = tir_int(ir, TIR_T_I32, TIR_WARP);
  int64_t apart = 1; /* threads from one to the next on this axis */
  for (int a = 0; a <= shape->axis; apart *= t->extent[a++]) {
    if (!t->var[a]) continue;
    tir_expr var = tir_cast(ir, TIR_T_I32, tir_var_expr(ir, a == shape->axis ? grown : t->var[a]));
    number = tir_add(ir, number, tir_mul(ir, var, tir_int(ir, TIR_T_I32, apart)));
  }
  tir_expr of = tir_simplify(ir, tir_floordiv(ir, number, warp));
  return tir_call(ir, TIR_T_I32, tir_device_symbol(ir, TIR_UNIFORM), &of, 1);
}

static tir_stmt new_test(struct tir *ir, tir_expr condition) {
  tir_stmt test = tir_new_if(ir, condition);
  return test;
}

/* None moves where all can have as many as are of use. */
static void share_registers(struct tir *ir, int64_t threads, tir_stmt test) {
  struct tir_role_registers each;
  if (!tir_share_registers(threads, &each)) return;
  assert(each.producer >= TIR_LEAST_REGISTERS && each.consumer % TIR_REGISTERS_UNIT == 0);
  tir_insert_before(ir, tir_stmt_at(ir, test)->first[TIR_BODY], new_registers(ir, each.consumer, true));
  tir_insert_before(ir, tir_stmt_at(ir, test)->first[TIR_ELSE], new_registers(ir, each.producer, false));
}

static void specialize(struct tir *ir, tir_stmt kernel, tir_stmt attr) {
  tir_stmt inside;
  struct lower_threads t = lower_threads_of(ir, kernel, &inside);
  struct shape shape;
  bool fits = find_shape(&t, &shape);
  assert(fits && t.var[shape.axis]);
  (void)fits;
  tir_var grown = grow(ir, kernel, t.var[shape.axis], shape.grown);
  tir_expr number = warp_of(ir, &t, &shape, grown), first = tir_int(ir, TIR_T_I32, shape.threads / TIR_WARP);
  tir_expr elected = tir_call(ir, TIR_T_I32, tir_device_symbol(ir, TIR_ELECT), NULL, 0);
  tir_stmt test = new_test(ir, tir_make(ir, TIR_LT, number, first));
  tir_stmt warp = new_test(ir, tir_make(ir, TIR_EQ, number, first));
  tir_stmt one = new_test(ir, tir_make(ir, TIR_NE, elected, tir_int(ir, TIR_T_I32, 0)));
  for (tir_stmt s = tir_stmt_at(ir, attr)->next, next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    tir_detach(ir, s);
    tir_append(ir, test, TIR_BODY, s);
  }
  name_barriers(ir, test, shape.threads);
  tir_move_children(ir, attr, TIR_BODY, one, TIR_BODY);
  tir_append(ir, warp, TIR_BODY, one);
  tir_append(ir, test, TIR_ELSE, warp);
  share_registers(ir, shape.threads, test);
  tir_insert_before(ir, attr, lower_new_call(ir, TIR_PROXY_FENCE, NULL, 0));
  bool many = tir_kernel_cluster(ir, kernel) > 1; /* mbarriers and stage buffers are other blocks' too, as long */
  tir_insert_before(ir, attr, many ? lower_new_call(ir, TIR_CLUSTER_BARRIER, NULL, 0) : lower_new_barrier(ir));
  if (many) tir_insert_after(ir, attr, lower_new_call(ir, TIR_CLUSTER_BARRIER, NULL, 0));
  tir_replace(ir, attr, test);
  tir_kill(ir, attr);
}

bool lower_producer(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = tir_stmt_at(ir, low->body)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    tir_stmt inside;
    if (!tir_is_bound(ir, s)) continue;
    lower_threads_of(ir, s, &inside);
    tir_stmt attr = find_producer(ir, inside);
    if (attr) specialize(ir, s, attr);
  }
  return true;
}

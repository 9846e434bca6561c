/* Unroll: unrolled loops, and the serial loops that a pragma lets be, become their iterations.
 * Requires: no blocks. Gives: no loops of kind unrolled. Keeps: the order of iterations. A loop too long to unroll
 * becomes serial. What pragmas let be is unrolled where most of the work is, as far as the function's code stays
 * small: the rim of an imperfect split, hardly run, costs as much to compile as the middle.
 * On GPUs long loops of stores stay loops, and an annotation has the compiler unroll them: as text they would take it
 * five times as long. Of a loop with more steps than its pragma names, as many iterations as divide it are unrolled;
 * what they load side by side becomes one access. Where a software pipeline has a loop unrolled by its ring of stage
 * buffers, a loop over rings stays: what counts them, such as the parity of mbarriers, is then computed once a ring. */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_COPIES = 4096 }; /* statements that one unrolled loop may become */

/* ---- Steps ---- */

/* A branch inside a store's value splits the code around it, which is dear to compile: it counts as so many stores. */
enum { STEPS_OF_BRANCH = 8, STEPS_OF_INSTRUCTION = 16 };

static bool is_branch(void *data, tir_expr e) {
  const struct tir *ir = *(const struct tir *const *)data;
  return tir_at(ir, e)->kind == TIR_CALL && !strcmp(tir_text(ir, tir_at(ir, e)->ref), "if_then_else");
}

static int64_t steps_of_store(const struct tir *ir, tir_stmt store) {
  return 1 +
         STEPS_OF_BRANCH * (int64_t)tir_count_in_tree(ir, tir_as(ir, store, TIR_STORE)->store.value, is_branch, &ir);
}

/* How many registers the lanes of a vectorized loop take, of 32 bits each: so many instructions does a store become. */
static int64_t registers_of(const struct lowering *low, tir_stmt loop) {
  int64_t lanes = tir_loop_extent(low->ir, loop), each = lower_vector_bits(low) / 32;
  return lanes < 0 ? lanes : (lanes + each - 1) / each;
}

/* Stores executed by one iteration of what is below, -1 when not constant. A condition that is left is a branch or a
 * mask. */
static int64_t steps_below(const struct lowering *low, tir_stmt top) {
  const struct tir *ir = low->ir;
  int64_t steps = 0;
  for (tir_stmt s = tir_stmt_at(ir, top)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    int64_t inner = 1;
    if (tir_is(ir, s, TIR_LOOP)) {
      bool vectorized = tir_stmt_at(ir, s)->loop_kind == TIR_VECTORIZED;
      int64_t extent = vectorized ? registers_of(low, s) : tir_loop_extent(ir, s);
      inner = steps_below(low, s);
      if (extent < 0 || inner < 0 || __builtin_mul_overflow(inner, extent, &inner)) return -1;
    } else if (tir_is(ir, s, TIR_IF)) {
      inner = steps_below(low, s);
      if (inner < 0 || __builtin_add_overflow(inner, STEPS_OF_BRANCH, &inner)) return -1;
    } else if (tir_is(ir, s, TIR_STORE)) {
      inner = steps_of_store(ir, s);
    } else if (tir_instruction_of(ir, s) != TIR_INSTRUCTIONS) {
      inner = STEPS_OF_INSTRUCTION;
    }
    if (__builtin_add_overflow(steps, inner, &steps)) return -1;
  }
  return steps;
}

/* ---- What is unrolled ---- */

/* Stores that may be unrolled in one function, besides loops marked as unrolled: more cost more time to compile than
 * they save. A loop of few is unrolled without a pragma: the compiler then sees what is in it. */
enum { MOST_STEPS = 512, FEW_STEPS = 32 };

/* A GPU's kernel has its main loop, and the last iterations of a software pipeline behind it. */
enum { MOST_STEPS_GPU = 3072 };

static bool is_for_gpu(const struct lowering *low) { return low->options && low->options->device == TIR_GPU; }

/* Whether the iterations of what is accessed lie side by side, or are one element, all along the loop. */
struct contiguous {
  tir_var along;
  bool all;
};

static void see_access(struct tir *ir, void *data, tir_stmt s, const struct access *a, bool writes) {
  struct contiguous *c = data;
  (void)s, (void)writes;
  for (uint32_t d = 0; d < a->count && c->all; d++) {
    int64_t step;
    c->all = lower_find_step(ir, a->indices[d], c->along, &step) && (step == 0 || (step == 1 && d + 1 == a->count));
  }
}

/* A loop of scalars that the compiler makes vectors of, as long as it is a loop, and what is in it is unrolled. */
static bool is_better_kept(const struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  struct contiguous c = {tir_as(ir, loop, TIR_LOOP)->loop.var, true};
  int64_t steps = steps_below(low, loop);
  if (tir_loop_extent(ir, loop) < 2 * lower_vector_bits(low) / 32 || steps < 0 || steps > FEW_STEPS) return false;
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    bool scalar = tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind != TIR_VECTORIZED;
    if (!scalar && !tir_is(ir, s, TIR_STORE)) return false;
  }
  lower_visit(ir, loop, see_access, &c);
  return c.all;
}

static bool has_better_kept(const struct lowering *low, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(low->ir, s, top))
    if (tir_is(low->ir, s, TIR_LOOP) && is_better_kept(low, s)) return true;
  return false;
}

/* A loop that may be unrolled, with all that is in it. */
struct candidate {
  tir_stmt loop;
  int64_t steps;
  double work; /* steps that are executed */
  uint32_t number;
  int64_t part; /* iterations of the loop that the compiler unrolls; 0: all become statements here */
};
struct candidates {
  struct candidate *at;
  uint32_t count, capacity;
};

static int64_t steps_of_loop(const struct lowering *low, tir_stmt loop) {
  int64_t extent = tir_loop_extent(low->ir, loop), inner = steps_below(low, loop), all;
  return extent < 0 || inner < 0 || __builtin_mul_overflow(extent, inner, &all) ? -1 : all;
}

static void add_candidate(struct candidates *c, struct candidate candidate) {
  if (c->count == c->capacity) {
    c->capacity = 2 * c->capacity + 16;
    c->at = realloc(c->at, c->capacity * sizeof *c->at);
    if (!c->at) abort();
  }
  candidate.number = c->count;
  c->at[c->count++] = candidate;
}

static int64_t own_step(const struct tir *ir, tir_stmt loop, int64_t max_step) {
  struct tir_span notes = tir_stmt_at(ir, loop)->annotations;
  tir_expr step = tir_annotation(ir, notes, "pragma_auto_unroll_max_step");
  tir_expr explicitly = tir_annotation(ir, notes, "pragma_unroll_explicit");
  if (!step || !tir_is_int(ir, step)) return max_step;
  bool allows = !explicitly || !tir_is_const(ir, explicitly, 0);
  return allows && tir_at(ir, step)->imm > FEW_STEPS ? tir_at(ir, step)->imm : FEW_STEPS;
}

/* Whether stores are all that a loop does, under loops and conditions. */
static bool only_stores(const struct tir *ir, tir_stmt loop) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_STORE) && !tir_is(ir, s, TIR_LOOP) && !tir_is(ir, s, TIR_IF)) return false;
    if (tir_instruction_of(ir, s) != TIR_INSTRUCTIONS) return false;
  }
  return true;
}

/* Iterations of a loop that the compiler of a GPU's kernel unrolls; 0: none. */
static int64_t part_of(const struct lowering *low, tir_stmt loop, int64_t max_step) {
  int64_t extent = tir_loop_extent(low->ir, loop), each = steps_below(low, loop);
  if (!is_for_gpu(low) || max_step <= FEW_STEPS || extent < 2 || each < 1 || !only_stores(low->ir, loop)) return 0;
  int64_t part = max_step / each < extent ? max_step / each : extent;
  while (part > 1 && extent % part) part--;
  return part > 1 && part * each > FEW_STEPS ? part : 0;
}

/* The outermost loops that may be unrolled whole, or by the compiler in part. copies: how often what is here will have
 * been repeated. */
static void gather(const struct lowering *low, tir_stmt first, int64_t max_step, int64_t copies,
                   struct candidates *out) {
  const struct tir *ir = low->ir;
  for (tir_stmt s = first; s; s = tir_stmt_at(ir, s)->next) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    bool is_loop = n->kind == TIR_LOOP;
    if (tir_instruction_of(ir, s) != TIR_INSTRUCTIONS) continue; /* what is below it is not emitted */
    int64_t own = is_loop ? own_step(ir, s, max_step) : max_step, inner = copies;
    if (is_loop && n->loop_kind == TIR_SERIAL && own > 0) {
      int64_t steps = steps_of_loop(low, s), part = part_of(low, s, own);
      if (part > 0) {
        int64_t some = steps / tir_loop_extent(ir, s) * part;
        add_candidate(out, (struct candidate){s, some * copies, (double)steps * lower_times_run(ir, s), 0, part});
        continue;
      }
      if (steps >= 0 && steps <= own && !has_better_kept(low, s)) {
        add_candidate(out, (struct candidate){s, steps * copies, (double)steps * lower_times_run(ir, s), 0, 0});
        continue;
      }
    }
    if (is_loop && n->loop_kind == TIR_UNROLLED && tir_loop_extent(ir, s) > 0) inner *= tir_loop_extent(ir, s);
    gather(low, n->first[TIR_BODY], own, inner < MOST_COPIES ? inner : MOST_COPIES, out);
    gather(low, n->first[TIR_ELSE], own, inner < MOST_COPIES ? inner : MOST_COPIES, out);
  }
}

static int by_work(const void *a, const void *b) {
  const struct candidate *x = a, *y = b;
  if (x->work != y->work) return x->work < y->work ? 1 : -1;
  return (x->number > y->number) - (x->number < y->number);
}

static void unroll_whole(struct tir *ir, tir_stmt loop) {
  for (tir_stmt s = loop, next; s; s = next) {
    bool instruction = tir_instruction_of(ir, s) != TIR_INSTRUCTIONS;
    next = instruction ? tir_after(ir, s, loop) : tir_next(ir, s, loop);
    if (tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_SERIAL)
      tir_stmt_at(ir, s)->loop_kind = TIR_UNROLLED;
  }
}

/* The loops in it are unrolled whole. */
static void leave_to_compiler(struct tir *ir, tir_stmt loop, int64_t part) {
  for (tir_stmt s = loop; s; s = tir_next(ir, s, loop)) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind != TIR_SERIAL) continue;
    int64_t count = s == loop ? part : tir_loop_extent(ir, s);
    assert(count > 0);
    tir_annotate_symbol(ir, s, tir_symbol_of(ir, TIR_UNROLL_COUNT), tir_int(ir, TIR_T_I32, count));
  }
}

static void choose(const struct lowering *low) {
  struct tir *ir = low->ir;
  struct candidates c = {0};
  int64_t left = is_for_gpu(low) ? MOST_STEPS_GPU : MOST_STEPS;
  gather(low, low->body, FEW_STEPS, 1, &c);
  if (c.count) qsort(c.at, c.count, sizeof *c.at, by_work);
  for (uint32_t i = 0; i < c.count; i++) {
    if (c.at[i].steps > left && i > 0) continue;
    left -= c.at[i].steps;
    if (c.at[i].part > 0)
      leave_to_compiler(ir, c.at[i].loop, c.at[i].part);
    else
      unroll_whole(ir, c.at[i].loop);
  }
  free(c.at);
}

/* ---- Writing out ---- */

/* Fragments of an iteration are its own: each is a scope. */
static void write_scopes(struct tir *ir, tir_stmt loop, int64_t extent) {
  tir_stmt at = loop;
  for (int64_t i = 0; i < extent; i++) {
    tir_stmt copy = tir_clone_stmt(ir, loop);
    struct tir_stmt_node n = *tir_as(ir, copy, TIR_LOOP);
    tir_stmt scope = lower_new_attr(ir, "iteration", tir_int(ir, TIR_T_I32, i));
    tir_move_children(ir, copy, TIR_BODY, scope, TIR_BODY);
    tir_subst_var(ir, n.loop.var, tir_add(ir, n.loop.min, tir_int(ir, ir->vars.at[n.loop.var].type, i)));
    tir_subst_stmt(ir, scope);
    tir_subst_clear(ir);
    tir_insert_after(ir, at, scope);
    tir_kill(ir, copy);
    at = scope;
  }
  tir_kill(ir, loop);
}

static bool allocates_fragments(const struct tir *ir, tir_stmt loop) {
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    if (tir_is(ir, s, TIR_ALLOC) && tir_is_fragment(ir, tir_stmt_at(ir, s)->alloc.buffer)) return true;
  return false;
}

static void write_out(struct tir *ir, tir_stmt loop, int64_t extent) {
  assert(tir_stmt_at(ir, loop)->loop_kind == TIR_UNROLLED && extent >= 0 && extent <= MOST_COPIES);
  if (allocates_fragments(ir, loop)) {
    write_scopes(ir, loop, extent);
    return;
  }
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  tir_type type = ir->vars.at[n.loop.var].type;
  tir_stmt at = loop;
  for (int64_t i = 0; i < extent; i++) {
    tir_expr value = tir_add(ir, n.loop.min, tir_int(ir, type, i));
    for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
      tir_stmt copy = tir_clone_stmt(ir, s);
      tir_subst_var(ir, n.loop.var, value);
      tir_subst_stmt(ir, copy);
      tir_subst_clear(ir);
      tir_insert_after(ir, at, copy);
      at = copy;
    }
  }
  tir_kill(ir, loop);
}

/* A flat statement that holds for the rest of its list cannot be repeated without a scope of its own; those of
 * fragments get one. */
static bool has_flat(const struct tir *ir, tir_stmt loop) {
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    bool fragment = tir_is(ir, s, TIR_ALLOC) && tir_is_fragment(ir, tir_stmt_at(ir, s)->alloc.buffer);
    if (tir_is(ir, s, TIR_BIND) || tir_is(ir, s, TIR_DECLARE) || (tir_is(ir, s, TIR_ALLOC) && !fragment)) return true;
  }
  return false;
}

/* Innermost loops first. */
static void unroll_list(struct lowering *low, tir_stmt first) {
  struct tir *ir = low->ir;
  for (tir_stmt s = first, next; s; s = next) {
    next = tir_stmt_at(ir, s)->next;
    unroll_list(low, tir_stmt_at(ir, s)->first[TIR_BODY]);
    unroll_list(low, tir_stmt_at(ir, s)->first[TIR_ELSE]);
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind != TIR_UNROLLED) continue;
    int64_t extent = tir_loop_extent(ir, s);
    bool fits = extent >= 0 && extent * (int64_t)(lower_size(ir, s) - 1) <= MOST_COPIES && !has_flat(ir, s);
    if (fits)
      write_out(ir, s, extent);
    else {
      lower_note(low, s, "unrolled: it would be too much code, or its extent is no constant");
      tir_stmt_at(ir, s)->loop_kind = TIR_SERIAL;
    }
  }
}

/* ---- Loops that stay ---- */

enum { MOST_REPEATED = 8, MOST_REPEATED_STEPS = 16 };
static const double SMALL_SHARE = 0.01; /* of the function's work: what does less is not worth the code */

/* Stores that one iteration of an innermost loop over vectors does, what is marked as unrolled being so; 0: it is
 * none. */
static int64_t vectors_in(const struct lowering *low, tir_stmt loop) {
  const struct tir *ir = low->ir;
  bool any = false;
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    bool is_loop = tir_is(ir, s, TIR_LOOP), vectorized = is_loop && tir_stmt_at(ir, s)->loop_kind == TIR_VECTORIZED;
    if (is_loop ? !vectorized && tir_stmt_at(ir, s)->loop_kind != TIR_UNROLLED : !tir_is(ir, s, TIR_STORE)) return 0;
    any |= vectorized;
  }
  return any ? steps_below(low, loop) : 0;
}

/* How often the body of a loop is repeated in one iteration, so that counting costs little of it. */
static int64_t repeats_of(const struct lowering *low, tir_stmt loop) {
  int64_t extent = tir_loop_extent(low->ir, loop), each = vectors_in(low, loop), repeats = 1;
  for (int64_t r = 2; each > 0 && r <= MOST_REPEATED && r * each <= MOST_REPEATED_STEPS; r++)
    if (extent % r == 0) repeats = r;
  assert(extent % repeats == 0);
  return repeats;
}

static void repeat_bodies(struct lowering *low) {
  struct tir *ir = low->ir;
  double least = SMALL_SHARE * lower_work(ir, low->body);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind != TIR_SERIAL) continue;
    int64_t repeats = repeats_of(low, s);
    if (repeats > 1 && lower_work(ir, s) >= least) lower_split_loop(ir, s, repeats, TIR_UNROLLED);
  }
}

int64_t tir_unroll_count(const struct tir *ir, tir_stmt loop) {
  tir_expr count = tir_annotation(ir, tir_as(ir, loop, TIR_LOOP)->annotations, TIR_UNROLL_COUNT);
  int64_t number = count && tir_is_int(ir, count) ? tir_at(ir, count)->imm : 0;
  return number > 0 && number <= INT32_MAX ? number : 0;
}

/* The loop becomes one over rings, of whose iterations the compiler unrolls none, and one over a ring, unrolled; what
 * is left over follows, unrolled. */
static void split_by_ring(struct tir *ir, tir_stmt loop, int64_t ring) {
  struct tir_stmt_node n = *tir_stmt_at(ir, loop);
  int64_t extent = tir_loop_extent(ir, loop);
  if (ring <= 1 || extent / ring < 2 || n.loop_kind != TIR_SERIAL || !tir_is_int(ir, n.loop.min)) return;
  tir_symbol key = tir_symbol_of(ir, TIR_UNROLL_COUNT);
  int64_t whole = extent / ring * ring;
  if (whole < extent) {
    int64_t from = tir_at(ir, n.loop.min)->imm + whole;
    tir_insert_after(ir, loop, lower_part_of(ir, loop, from, extent - whole));
    lower_set_domain(ir, loop, n.loop.min, tir_int(ir, tir_type_of(ir, n.loop.extent), whole));
  }
  lower_split_loop(ir, loop, ring, TIR_SERIAL);
  tir_stmt inner = tir_stmt_at(ir, loop)->first[TIR_BODY];
  assert(tir_is(ir, inner, TIR_LOOP) && tir_loop_extent(ir, inner) == ring);
  tir_annotate_symbol(ir, inner, key, tir_int(ir, TIR_T_I32, ring));
  tir_annotate_span(ir, &tir_stmt_at(ir, loop)->annotations, key, tir_int(ir, TIR_T_I32, 1));
}

/* Loops that came unrolled in part, by a software pipeline (gpu/pipeline/pipeline.c). */
static void split_rings(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body, next; s && is_for_gpu(low); s = next) {
    next = tir_next(ir, s, low->body);
    if (tir_is(ir, s, TIR_LOOP)) split_by_ring(ir, s, tir_unroll_count(ir, s));
  }
}

bool lower_unroll(struct lowering *low) {
  split_rings(low);
  choose(low);
  repeat_bodies(low);
  unroll_list(low, low->body);
  return true;
}

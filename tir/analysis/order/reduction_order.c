/* Whether reductions of floats are done in the order in which the function as it was written does them: sums that are
 * rounded in another order are other sums. Of each block that reduces, the iterations that reduce are taken apart into
 * the loops that drive them; which comes before which is compared with the block of the same name in the function. What
 * is not seen through is refused. A maximum or minimum is free: it rounds nothing, leaves out NaN and, where the order
 * is fixed, takes +0 for more than -0 (lower/legalize.c), so that it is the same in any order. */
#include "tir/analysis/analysis.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_LOOPS = 64, MOST_DIGITS = 128, MOST_NAME = 128 };

/* A part of an iteration that one loop drives: loop // lower % extent * scale. */
struct digit {
  uint32_t iter, depth; /* depth: of the loop, from outside */
  int64_t lower, extent, scale;
};

/* The iterations of a block that reduce, in the order in which they advance, the slowest first. */
struct order {
  const struct tir *ir;
  tir_block block;
  tir_loop loops[MOST_LOOPS];
  uint32_t loop_count;
  struct digit digits[MOST_DIGITS];
  uint32_t count;
  uint32_t iters[MOST_DIGITS];
  uint32_t iter_count;
};

/* ---- What drives an iteration ---- */

/* A loop, divided and reduced again and again. False: it is none. depth MOST_LOOPS: something that stays. */
static bool read_piece(const struct order *o, tir_expr e, struct digit *out) {
  const struct tir_expr_node *n = tir_at(o->ir, e);
  if (n->kind == TIR_CAST) return read_piece(o, n->a, out);
  if (n->kind == TIR_VAR) {
    for (uint32_t i = 0; i < o->loop_count; i++) {
      if (tir_stmt_at(o->ir, o->loops[i])->loop.var != n->ref) continue;
      *out = (struct digit){.depth = i, .lower = 1, .extent = tir_loop_extent(o->ir, o->loops[i])};
      return out->extent > 0;
    }
    *out = (struct digit){.depth = MOST_LOOPS, .lower = 1, .extent = 1};
    return true;
  }
  if ((n->kind != TIR_FLOORDIV && n->kind != TIR_FLOORMOD) || !tir_is_int(o->ir, n->b)) return false;
  int64_t by = tir_at(o->ir, n->b)->imm;
  if (by < 1 || !read_piece(o, n->a, out)) return false;
  if (n->kind == TIR_FLOORMOD) {
    out->extent = out->extent < by ? out->extent : by;
    return true;
  }
  out->extent = (out->extent + by - 1) / by;
  return !__builtin_mul_overflow(out->lower, by, &out->lower);
}

/* Adds the parts of a binding, times a scale. */
static bool read_binding(struct order *o, uint32_t iter, tir_expr e, int64_t scale) {
  const struct tir_expr_node n = *tir_at(o->ir, e);
  if (n.kind == TIR_INT_IMM) return true;
  if (n.kind == TIR_ADD) return read_binding(o, iter, n.a, scale) && read_binding(o, iter, n.b, scale);
  if (n.kind == TIR_MUL && tir_is_int(o->ir, n.a) != tir_is_int(o->ir, n.b)) {
    bool first = tir_is_int(o->ir, n.a);
    if (__builtin_mul_overflow(scale, tir_at(o->ir, first ? n.a : n.b)->imm, &scale)) return false;
    return read_binding(o, iter, first ? n.b : n.a, scale);
  }
  struct digit d;
  if (!read_piece(o, e, &d)) return false;
  if (d.extent == 1) return true;
  if (o->count == MOST_DIGITS || scale < 1) return false;
  d.iter = iter, d.scale = scale;
  o->digits[o->count++] = d;
  return true;
}

static int compare_digits(const void *left, const void *right) {
  const struct digit *a = left, *b = right;
  if (a->depth != b->depth) return a->depth < b->depth ? -1 : 1;
  return a->lower != b->lower ? (a->lower > b->lower ? -1 : 1) : 0;
}

/* ---- Blocks ---- */

/* It writes floats, and what an iteration writes depends on others before it. */
static bool reduces_floats(const struct tir *ir, tir_block block, bool *by_space) {
  const struct tir_block_record *record = tir_block_at(ir, block);
  bool floats = false, reads_own = false, reduces = false;
  for (uint32_t i = 0; i < record->writes.count; i++) {
    tir_buffer buffer = ir->regions.at[record->writes.first + i].buffer;
    floats = floats || tir_type_is_float(tir_buffer_at(ir, buffer)->type);
    for (uint32_t k = 0; k < record->reads.count; k++)
      reads_own = reads_own || ir->regions.at[record->reads.first + k].buffer == buffer;
  }
  for (uint32_t i = 0; i < record->iters.count; i++) reduces = reduces || tir_iters(ir, block)[i].kind != TIR_SPATIAL;
  *by_space = !reduces;
  return floats && (reduces || reads_own) && tir_parent_block(ir, block);
}

/* Whether each region that is written starts at the variable in some dimension: other iterations write other
 * elements. */
static bool indexes_writes(const struct tir *ir, tir_block block, tir_var v) {
  struct tir_span writes = tir_block_at(ir, block)->writes;
  for (uint32_t i = 0; i < writes.count; i++) {
    struct tir_region region = ir->regions.at[writes.first + i];
    const uint32_t *ranges = tir_operands(ir, region.ranges);
    bool indexes = false;
    for (uint32_t d = 0; d < tir_buffer_at(ir, region.buffer)->rank; d++)
      indexes = indexes || ranges[2 * d] == tir_var_expr(ir, v);
    if (!indexes) return false;
  }
  return true;
}

/* False: err says what is not seen through, or not in order. */
static bool find_order(const struct tir *ir, tir_block block, struct order *o, ms_error *err) {
  bool by_space;
  *o = (struct order){.ir = ir, .block = block};
  o->loop_count = tir_loops_of(ir, block, o->loops, MOST_LOOPS);
  bool seen = o->loop_count <= MOST_LOOPS && reduces_floats(ir, block, &by_space);
  for (uint32_t i = 0; seen && i < tir_block_at(ir, block)->iters.count; i++) {
    struct tir_iter iter = tir_iters(ir, block)[i];
    if (iter.kind != TIR_SPATIAL || (by_space && !indexes_writes(ir, block, iter.var)))
      seen = read_binding(o, i, iter.binding, 1);
  }
  if (!seen)
    return tir_refuse(ir, err, MS_REDUCTION_ORDER, block,
                      "block `%s`: the order in which its loops reduce is not known (fuse, transform_block_layout)",
                      tir_block_name(ir, block));
  qsort(o->digits, o->count, sizeof *o->digits, compare_digits);
  for (uint32_t i = 0; i < o->count; i++) {
    if (i && o->digits[i].iter == o->digits[i - 1].iter && o->digits[i].scale < o->digits[i - 1].scale) continue;
    for (uint32_t k = 0; k < o->iter_count; k++)
      if (o->iters[k] == o->digits[i].iter) {
        char name[MOST_NAME];
        tir_name_render(ir, tir_var_at(ir, tir_iters(ir, block)[o->iters[k]].var)->name, name, sizeof name);
        return tir_refuse(
            ir, err, MS_REDUCTION_ORDER, block,
            "block `%s`: parts of `%s` stand around other loops that reduce, or in another order (reorder "
            "after split)",
            tir_block_name(ir, block), name);
      }
    o->iters[o->iter_count++] = o->digits[i].iter;
  }
  return true;
}

/* No loop that reduces runs its iterations side by side. */
static bool check_kinds(const struct order *o, ms_error *err) {
  static const char *const words[] = {[TIR_PARALLEL] = "parallel",
                                      [TIR_VECTORIZED] = "vectorized (vectorize)",
                                      [TIR_THREAD_BINDING] = "bound to threads (bind)"};
  for (uint32_t i = 0; i < o->count; i++) {
    enum tir_loop_kind kind = (enum tir_loop_kind)tir_stmt_at(o->ir, o->loops[o->digits[i].depth])->loop_kind;
    if (kind != TIR_SERIAL && kind != TIR_UNROLLED)
      return tir_refuse(o->ir, err, MS_REDUCTION_ORDER, o->loops[o->digits[i].depth],
                        "block `%s`: a loop that reduces is %s", tir_block_name(o->ir, o->block), words[kind]);
  }
  return true;
}

static void name_iter(const struct order *o, uint32_t i, char out[MOST_NAME]) {
  tir_name_render(o->ir, tir_var_at(o->ir, tir_iters(o->ir, o->block)[o->iters[i]].var)->name, out, MOST_NAME);
}

static int64_t domain_of(const struct order *o, uint32_t i) {
  tir_expr extent = tir_var_at(o->ir, tir_iters(o->ir, o->block)[o->iters[i]].var)->extent;
  return extent && tir_is_int(o->ir, extent) ? tir_at(o->ir, extent)->imm : -1;
}

/* The block of the function that has the name, or its name without what decompose_reduction adds; TIR_NONE: none. */
static tir_block find_original(const struct tir *original, const char *name) {
  char stem[MOST_NAME];
  size_t length = strlen(name), suffix = strlen("_update");
  for (int step = 0; step < 2; step++) {
    tir_symbol symbol = tir_find_symbol(original, name);
    for (tir_block b = symbol ? original->symbols.at[symbol].first_block : TIR_NONE; b;
         b = tir_block_at(original, b)->next_same_name)
      if (tir_func_of(original, b) != TIR_NONE) return b;
    if (length <= suffix || length - suffix >= sizeof stem || strcmp(name + length - suffix, "_update") != 0) break;
    snprintf(stem, sizeof stem, "%.*s", (int)(length - suffix), name);
    name = stem;
  }
  return TIR_NONE;
}

/* What a reduction starts from: the init's store, or the only store of the block that decompose_reduction made of
 * it. */
static tir_expr start_of(const struct tir *ir, tir_block block) {
  char name[MOST_NAME];
  tir_stmt store = tir_only_store(ir, block, TIR_INIT);
  const char *own = tir_block_name(ir, block);
  size_t length = strlen(own), suffix = strlen("_update");
  if (!store && length > suffix && length < sizeof name && !strcmp(own + length - suffix, "_update")) {
    snprintf(name, sizeof name, "%.*s_init", (int)(length - suffix), own);
    tir_symbol symbol = tir_find_symbol(ir, name);
    tir_block init = symbol ? ir->symbols.at[symbol].first_block : TIR_NONE;
    store = init ? tir_only_store(ir, init, TIR_BODY) : TIR_NONE;
  }
  return store ? tir_stmt_at(ir, store)->store.value : TIR_NONE;
}

/* It starts from the same constant, in the same type. */
static bool starts_alike(const struct tir *ir, tir_block block, const struct tir *original, tir_block was) {
  struct tir_span writes = tir_block_at(ir, block)->writes, others = tir_block_at(original, was)->writes;
  for (uint32_t i = 0; i < writes.count; i++)
    if (tir_buffer_at(ir, ir->regions.at[writes.first + i].buffer)->type !=
        tir_buffer_at(original, original->regions.at[others.first + i].buffer)->type)
      return false;
  tir_expr now = start_of(ir, block), then = start_of(original, was);
  const struct tir_expr_node *a = now ? tir_at(ir, now) : NULL, *b = then ? tir_at(original, then) : NULL;
  if (!b || (b->kind != TIR_FLOAT_IMM && b->kind != TIR_INT_IMM)) return true;
  return a && a->kind == b->kind &&
         (a->kind == TIR_INT_IMM ? a->imm == b->imm : !memcmp(&a->real, &b->real, sizeof a->real));
}

/* The same iterations, in the same order. */
static bool check_same(const struct order *now, const struct order *then, ms_error *err) {
  const struct tir *ir = now->ir;
  const char *block = tir_block_name(ir, now->block);
  if (now->iter_count != then->iter_count)
    return tir_refuse(ir, err, MS_REDUCTION_ORDER, now->block,
                      "block `%s`: %u of its iterations reduce, not %u as in the function (rfactor)", block,
                      now->iter_count, then->iter_count);
  for (uint32_t i = 0; i < now->iter_count; i++) {
    char is[MOST_NAME], was[MOST_NAME];
    name_iter(now, i, is), name_iter(then, i, was);
    if (strcmp(is, was) != 0)
      return tir_refuse(ir, err, MS_REDUCTION_ORDER, now->block,
                        "block `%s` reduces by `%s` where the function reduces by `%s` (reorder, rfactor)", block, is,
                        was);
    if (domain_of(now, i) != domain_of(then, i) || domain_of(now, i) < 0)
      return tir_refuse(ir, err, MS_REDUCTION_ORDER, now->block,
                        "block `%s`: `%s` has %lld iterations, in the function %lld (rfactor, pad_einsum, blockize)",
                        block, is, (long long)domain_of(now, i), (long long)domain_of(then, i));
  }
  return true;
}

/* Its one store keeps the greater, or the lesser, of the element and of a value that does not depend on it. */
static bool is_extreme(const struct tir *ir, tir_block block) {
  tir_stmt only = tir_only_store(ir, block, TIR_BODY);
  if (!only) return false;
  const struct tir_stmt_node *store = tir_stmt_at(ir, only);
  const struct tir_expr_node *value = tir_at(ir, store->store.value);
  if (value->kind != TIR_MAX && value->kind != TIR_MIN) return false;
  tir_buffer buffer = store->store.buffer;
  const uint32_t *indices = tir_operands(ir, store->store.indices);
  size_t bytes = tir_buffer_at(ir, buffer)->rank * sizeof *indices;
  for (int side = 0; side < 2; side++) {
    const struct tir_expr_node *own = tir_at(ir, side ? value->b : value->a);
    bool same = own->kind == TIR_LOAD && own->ref == buffer && !memcmp(tir_operands(ir, own->operands), indices, bytes);
    if (same && !tir_uses_buffer(ir, side ? value->a : value->b, buffer)) return true;
  }
  return false;
}

static bool check_block(const struct tir *ir, tir_block block, const struct tir *original, ms_error *err) {
  struct order now, then;
  const char *name = tir_block_name(ir, block);
  tir_block was = find_original(original, name);
  bool is_free = is_extreme(ir, block) && (!was || is_extreme(original, was));
  if (!was && is_free) return true;
  if (!was)
    return tir_refuse(
        ir, err, MS_REDUCTION_ORDER, block,
        "block `%s`, which reduces, is none of the function's (rfactor, blockize, tensorize, loop_partition)", name);
  if (tir_block_at(ir, block)->writes.count != tir_block_at(original, was)->writes.count)
    return tir_refuse(ir, err, MS_REDUCTION_ORDER, block,
                      "block `%s` reduces more than in the function (online_softmax)", name);
  if (!starts_alike(ir, block, original, was))
    return tir_refuse(ir, err, MS_REDUCTION_ORDER, block,
                      "block `%s` starts from something else than in the function, or in another type "
                      "(fuse_reduction_epilogue, unsafe_set_dtype)",
                      name);
  if (is_free) return true;
  return find_order(original, was, &then, err) && find_order(ir, block, &now, err) && check_kinds(&now, err) &&
         check_same(&now, &then, err);
}

/* A block of that name in the module that reduces floats. */
static bool reduces_by_name(const struct tir *ir, const char *name) {
  bool by_space;
  tir_symbol symbol = tir_find_symbol(ir, name);
  for (tir_block b = symbol ? ir->symbols.at[symbol].first_block : TIR_NONE; b; b = tir_block_at(ir, b)->next_same_name)
    if (tir_func_of(ir, b) != TIR_NONE && reduces_floats(ir, b, &by_space)) return true;
  return false;
}

/* What the function sums is still summed by a block, whose order is known: an expression of all terms may have any,
 * and may have been inlined since. */
static bool check_still_reduces(const struct tir *ir, const struct tir *original, tir_block was, ms_error *err) {
  char updates[MOST_NAME];
  bool by_space;
  const char *name = tir_block_name(original, was);
  if (!reduces_floats(original, was, &by_space) || by_space || is_extreme(original, was)) return true;
  snprintf(updates, sizeof updates, "%s_update", name);
  return reduces_by_name(ir, name) || reduces_by_name(ir, updates) ||
         tir_refuse(ir, err, MS_REDUCTION_ORDER, TIR_NONE,
                    "block `%s` reduces no more: it is not known in which order its terms are added "
                    "(unroll_reduction)",
                    name);
}

bool tir_check_reduction_order(const struct tir *ir, const struct tir *original, ms_error *err) {
  bool by_space;
  for (uint32_t i = 1; i < original->blocks.count; i++) {
    tir_block was = original->blocks.at[i].block;
    bool stands = was && tir_is(original, was, TIR_BLOCK) && tir_func_of(original, was) != TIR_NONE;
    if (stands && !check_still_reduces(ir, original, was, err)) return false;
  }
  for (tir_func f = 1; f < ir->funcs.count; f++) {
    tir_stmt top = ir->funcs.at[f].body;
    for (tir_stmt s = tir_next(ir, top, top); s; s = tir_next(ir, s, top))
      if (tir_is(ir, s, TIR_BLOCK) && reduces_floats(ir, s, &by_space) && !check_block(ir, s, original, err))
        return false;
  }
  return true;
}

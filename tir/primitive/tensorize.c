/* Tensorize: a block that computes what a tensor intrinsic's description says does it by the intrinsic's
 * implementation.
 *
 * An intrinsic is two functions of the same parameters, buffers each, whose root blocks say what they read and write.
 * Requires: the target is a block, or a loop that can be made one (blockize.c). The block has no predicate; its regions
 *           are those of the description's root block, in order, moved to where the block's begin, dimensions in front
 *           being single elements; its body is the description's, statement for statement, up to names, and to equal
 *           index arithmetic; buffers have the same types and storage scopes, and the strides that the implementation
 *           states as numbers. A product may have its factors the other way round, and what is read first of two inputs
 *           is then the description's second.
 * After:    the block's body is the implementation's, whose parameters are matched to the block's regions; annotations
 *           of the implementation are added where the block has none of that name. An init stays.
 * Forward:  what was in the block is dead; so is the loop. */
#include "blockize.h"
#include "tir/arith/linear.h"
#include "tir/import.h"

#include <string.h>

/* ---- Intrinsics ---- */

struct part {
  const struct tir *ir;
  const struct tir_func_node *func;
  tir_block root;
};

static bool open_part(const struct tir *ir, struct part *out) {
  if (ir->funcs.count != 2) return false;
  *out = (struct part){ir, &ir->funcs.at[1], tir_root_block(ir, 1)};
  for (uint32_t i = 0; i < out->func->params.count; i++)
    if (!ir->params.at[out->func->params.first + i].buffer) return false;
  return out->root != TIR_NONE;
}

static tir_buffer param_of(const struct part *part, uint32_t i) {
  assert(i < part->func->params.count);
  return part->ir->params.at[part->func->params.first + i].buffer;
}

/* What the root block does with a parameter. */
static const struct tir_region *region_of(const struct part *part, tir_buffer buffer) {
  const struct tir_block_record *r = tir_block_at(part->ir, part->root);
  const struct tir_region *read = tir_region_of(part->ir, r->reads, buffer);
  return read ? read : tir_region_of(part->ir, r->writes, buffer);
}

static bool check_intrinsic(const struct tir *description, const struct tir *implementation, struct part *desc,
                            struct part *impl, ms_error *err) {
  bool good = open_part(description, desc) && open_part(implementation, impl) &&
              desc->func->params.count == impl->func->params.count &&
              !tir_block_at(implementation, impl->root)->matches.count &&
              !tir_block_at(implementation, impl->root)->iters.count;
  for (uint32_t i = 0; good && i < desc->func->params.count; i++)
    good =
        region_of(desc, param_of(desc, i)) && region_of(impl, param_of(impl, i)) &&
        tir_buffer_at(description, param_of(desc, i))->rank == tir_buffer_at(implementation, param_of(impl, i))->rank;
  return good || ms_fail(err, MS_BAD_INTRINSIC,
                         "description and implementation are not functions of the same buffers, whose root blocks say "
                         "what they read and write");
}

/* ---- Matching ---- */

/* The description is imported piece by piece, its variables and buffers mapped to the block's, and compared. */
struct match {
  struct tir *ir;
  struct part desc;
  struct tir_import import;
  bool turned;     /* the last two of what blocks read are compared the other way round, factors as they fit */
  const char *why; /* the first difference */
  tir_stmt at;
};

static bool differs(struct match *m, tir_stmt at, const char *why) {
  if (!m->why) m->why = why, m->at = at;
  return false;
}

/* Factors are tried in two orders, and operands are shared: what was found of a pair is kept, of pairs that fall on one
 * place the last. What is not found equal within so many pairs is taken for different. */
enum { KEPT_PAIRS = 256, MOST_PAIRS = 1 << 16 };
struct pair {
  tir_expr a, b;
  bool equal;
};
struct comparing {
  struct tir *ir;
  uint32_t pairs; /* compared so far */
  struct pair kept[KEPT_PAIRS];
};

static bool equal_parts(struct comparing *c, tir_expr a, tir_expr b);

/* Whether one is a product of what the other is, the factors the other way round: the same number, by IEEE 754. */
static bool equal_factors(struct comparing *c, const struct tir_expr_node *x, const struct tir_expr_node *y) {
  return x->kind == TIR_MUL && equal_parts(c, x->a, y->b) && equal_parts(c, x->b, y->a);
}

static bool equal_operands(struct comparing *c, const struct tir_expr_node *x, const struct tir_expr_node *y) {
  for (uint32_t i = 0; i < x->count; i++)
    if (!equal_parts(c, c->ir->operands.at[x->operands + i], c->ir->operands.at[y->operands + i])) return false;
  return true;
}

/* Integers of two widths: as the wider one, or as the narrower where that holds all values of the other. */
static bool equal_integers(struct tir *ir, tir_expr a, tir_expr b) {
  tir_type x = tir_type_of(ir, a), y = tir_type_of(ir, b);
  if (x == y) return tir_prove_equal(ir, a, b);
  tir_expr narrow = tir_type_bits(x) < tir_type_bits(y) ? a : b, wide = narrow == a ? b : a;
  if (tir_prove_equal(ir, tir_cast(ir, tir_type_of(ir, wide), narrow), wide)) return true;
  struct tir_bounds holds = tir_type_bounds(tir_type_of(ir, narrow)), values = tir_bounds_of(ir, wide);
  return values.lo >= holds.lo && values.hi <= holds.hi &&
         tir_prove_equal(ir, narrow, tir_cast(ir, tir_type_of(ir, narrow), wide));
}

/* Indices of another width are equal if their values are; all else in form and type. */
static bool compare_parts(struct comparing *c, tir_expr a, tir_expr b) {
  struct tir *ir = c->ir;
  struct tir_expr_node x = *tir_at(ir, a), y = *tir_at(ir, b);
  if (tir_is_index(ir, a) && tir_is_index(ir, b)) return equal_integers(ir, a, b);
  if (x.kind != y.kind || x.type != y.type || x.count != y.count) return false;
  if (x.kind <= TIR_DATA) return false; /* leaves are equal if they are one */
  if (x.ref != y.ref) return false;
  if (x.count) return equal_operands(c, &x, &y) && (x.kind != TIR_LOAD || equal_parts(c, x.a, y.a));
  return (equal_parts(c, x.a, y.a) && equal_parts(c, x.b, y.b) && equal_parts(c, x.c, y.c)) || equal_factors(c, &x, &y);
}

static bool equal_parts(struct comparing *c, tir_expr a, tir_expr b) {
  if (a == b) return true;
  if (!a || !b) return false;
  struct pair *kept = &c->kept[(a * 31 + b) % KEPT_PAIRS];
  if (kept->a == a && kept->b == b) return kept->equal;
  if (++c->pairs > MOST_PAIRS) return false;
  bool equal = compare_parts(c, a, b);
  *kept = (struct pair){a, b, equal};
  return equal;
}

static bool equal_exprs(struct tir *ir, tir_expr a, tir_expr b) {
  if (a == b) return true;
  struct comparing c = {.ir = ir};
  return equal_parts(&c, a, b);
}

static bool same(struct match *m, tir_expr own, tir_expr described) {
  if (!described || !own) {
    tir_expr there = own ? own : described;
    return !there || tir_is_const(own ? m->ir : m->desc.ir, there, 1);
  }
  return equal_exprs(m->ir, own, tir_import_expr(&m->import, described));
}

/* The two buffers correspond, so far. */
static bool can_map(const struct match *m, tir_buffer own, tir_buffer described) {
  const struct tir_buffer_node *a = tir_buffer_at(m->ir, own), *b = tir_buffer_at(m->desc.ir, described);
  for (uint32_t i = 1; i < m->desc.ir->buffers.count; i++)
    if (m->import.buffers[i] == own) return false;
  return a->type == b->type && a->rank >= b->rank && a->rank <= 32 &&
         !strcmp(tir_text(m->ir, a->scope), tir_text(m->desc.ir, b->scope));
}

static tir_expr as_type_of(struct tir *ir, tir_expr e, tir_expr like) {
  tir_type type = tir_type_of(ir, like);
  return tir_type_of(ir, e) == type ? e : tir_cast(ir, type, e);
}

/* Where the described buffer begins in the block's. */
static bool map_region(struct match *m, struct tir_region own, struct tir_region described) {
  tir_expr bases[32];
  struct tir *ir = m->ir;
  if (!can_map(m, own.buffer, described.buffer)) return false;
  uint32_t rank = tir_buffer_at(ir, own.buffer)->rank;
  uint32_t front = rank - tir_buffer_at(m->desc.ir, described.buffer)->rank;
  for (uint32_t i = 0; i < rank; i++) {
    bases[i] = ir->operands.at[own.ranges + 2 * i];
    if (i < front) continue;
    tir_expr min = tir_import_expr(&m->import, m->desc.ir->operands.at[described.ranges + 2 * (i - front)]);
    bases[i] = tir_sub(ir, bases[i], as_type_of(ir, min, bases[i]));
  }
  tir_import_map_buffer(&m->import, described.buffer, own.buffer, bases);
  return true;
}

static bool same_region(struct match *m, struct tir_region own, struct tir_region described, bool maps) {
  struct tir *ir = m->ir;
  tir_buffer mapped = m->import.buffers[described.buffer];
  if (!mapped && !(maps && map_region(m, own, described))) return false;
  if (mapped && mapped != own.buffer) return false;
  uint32_t rank = tir_buffer_at(ir, own.buffer)->rank, bases = m->import.bases[described.buffer];
  uint32_t front = rank - tir_buffer_at(m->desc.ir, described.buffer)->rank;
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr min = ir->operands.at[own.ranges + 2 * i], extent = ir->operands.at[own.ranges + 2 * i + 1];
    tir_expr wanted = bases ? ir->operands.at[bases + i] : TIR_NONE;
    if (i < front && !tir_is_const(ir, extent, 1)) return false;
    if (i >= front) {
      const uint32_t *ranges = tir_operands(m->desc.ir, described.ranges + 2 * (i - front));
      tir_expr own_min = tir_import_expr(&m->import, ranges[0]);
      wanted = wanted ? tir_add(ir, wanted, as_type_of(ir, own_min, wanted)) : own_min;
      if (!same(m, extent, ranges[1])) return false;
    }
    if (!equal_exprs(ir, min, wanted)) return false;
  }
  return true;
}

static bool same_regions(struct match *m, struct tir_span own, struct tir_span described, bool maps) {
  if (own.count != described.count) return false;
  bool turns = m->turned && own.count >= 2;
  for (uint32_t i = 0; i < own.count; i++) {
    uint32_t from_end = own.count - 1 - i, at = turns && from_end < 2 ? own.count - 2 + from_end : i;
    if (!same_region(m, m->ir->regions.at[own.first + at], m->desc.ir->regions.at[described.first + i], maps))
      return false;
  }
  return true;
}

static bool same_annotations(struct match *m, struct tir_span own, struct tir_span described) {
  if (own.count != described.count) return false;
  for (uint32_t i = 0; i < own.count; i++) {
    struct tir_annotation a = m->ir->annotations.at[own.first + i];
    struct tir_annotation b = m->desc.ir->annotations.at[described.first + i];
    if (strcmp(tir_text(m->ir, a.key), tir_text(m->desc.ir, b.key)) != 0 || !same(m, a.value, b.value)) return false;
  }
  return true;
}

static bool same_list(struct match *m, tir_stmt own, tir_stmt described, enum tir_list list);

static bool same_loop(struct match *m, tir_stmt own, tir_stmt described) {
  struct tir_stmt_node a = *tir_stmt_at(m->ir, own);
  const struct tir_stmt_node *b = tir_stmt_at(m->desc.ir, described);
  bool threads = a.loop.thread && b->loop.thread
                     ? !strcmp(tir_text(m->ir, a.loop.thread), tir_text(m->desc.ir, b->loop.thread))
                     : a.loop.thread == b->loop.thread;
  if (a.loop_kind != b->loop_kind || !threads || !same_annotations(m, a.annotations, b->annotations))
    return differs(m, own, "a loop is of another kind");
  if (!same(m, a.loop.min, b->loop.min) || !same(m, a.loop.extent, b->loop.extent))
    return differs(m, own, "a loop has another range");
  tir_import_map_var(&m->import, b->loop.var, tir_var_expr(m->ir, a.loop.var));
  return same_list(m, own, described, TIR_BODY);
}

static bool same_iters(struct match *m, tir_block own, tir_block described) {
  struct tir_span a = tir_block_at(m->ir, own)->iters, b = tir_block_at(m->desc.ir, described)->iters;
  if (a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; i++) {
    struct tir_iter x = m->ir->iters.at[a.first + i], y = m->desc.ir->iters.at[b.first + i];
    if (x.kind != y.kind || !same(m, x.binding, y.binding)) return false;
    tir_import_map_var(&m->import, y.var, tir_var_expr(m->ir, x.var));
  }
  return true;
}

static bool same_allocs(struct match *m, tir_block own, tir_block described) {
  struct tir_span a = tir_block_at(m->ir, own)->allocs, b = tir_block_at(m->desc.ir, described)->allocs;
  if (a.count != b.count) return false;
  for (uint32_t i = 0; i < a.count; i++) {
    tir_buffer x = m->ir->operands.at[a.first + i], y = m->desc.ir->operands.at[b.first + i];
    if (!can_map(m, x, y) || tir_buffer_at(m->ir, x)->rank != tir_buffer_at(m->desc.ir, y)->rank) return false;
    for (uint32_t d = 0; d < tir_buffer_at(m->ir, x)->rank; d++)
      if (!same(m, m->ir->operands.at[tir_buffer_at(m->ir, x)->shape + d],
                m->desc.ir->operands.at[tir_buffer_at(m->desc.ir, y)->shape + d]))
        return false;
    tir_import_map_buffer(&m->import, y, x, NULL);
  }
  return true;
}

static bool same_block(struct match *m, tir_block own, tir_block described) {
  const struct tir_block_record *a = tir_block_at(m->ir, own), *b = tir_block_at(m->desc.ir, described);
  struct tir_span writes = a->writes, reads = a->reads;
  if (a->matches.count || b->matches.count) return differs(m, own, "a block matches other buffers");
  if (!same_iters(m, own, described)) return differs(m, own, "a block has other iterations");
  if (!same(m, tir_as(m->ir, own, TIR_BLOCK)->block.predicate,
            tir_as(m->desc.ir, described, TIR_BLOCK)->block.predicate))
    return differs(m, own, "a block has another predicate");
  if (!same_allocs(m, own, described)) return differs(m, own, "a block allocates other buffers");
  if (!same_regions(m, writes, b->writes, false)) return differs(m, own, "a block writes other regions");
  if (!same_regions(m, reads, b->reads, false)) return differs(m, own, "a block reads other regions");
  return same_list(m, own, described, TIR_INIT) && same_list(m, own, described, TIR_BODY);
}

static bool same_store(struct match *m, tir_stmt own, tir_stmt described) {
  struct tir_stmt_node a = *tir_stmt_at(m->ir, own);
  const struct tir_stmt_node *b = tir_stmt_at(m->desc.ir, described);
  if (m->import.buffers[b->store.buffer] != a.store.buffer) return differs(m, own, "another buffer is written");
  uint32_t rank = tir_buffer_at(m->ir, a.store.buffer)->rank, bases = m->import.bases[b->store.buffer];
  uint32_t front = rank - tir_buffer_at(m->desc.ir, b->store.buffer)->rank;
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr wanted = bases ? m->ir->operands.at[bases + i] : TIR_NONE;
    if (i >= front) {
      tir_expr index = tir_import_expr(&m->import, m->desc.ir->operands.at[b->store.indices + i - front]);
      wanted = wanted ? tir_add(m->ir, wanted, as_type_of(m->ir, index, wanted)) : index;
    }
    if (!equal_exprs(m->ir, m->ir->operands.at[a.store.indices + i], wanted))
      return differs(m, own, "another element is written");
  }
  if (!same(m, a.store.predicate, b->store.predicate)) return differs(m, own, "a store has another predicate");
  return same(m, a.store.value, b->store.value) || differs(m, own, "another value is written");
}

static bool same_stmt(struct match *m, tir_stmt own, tir_stmt described) {
  const struct tir_stmt_node *a = tir_stmt_at(m->ir, own), *b = tir_stmt_at(m->desc.ir, described);
  if (a->kind != b->kind) return differs(m, own, "a statement is of another kind");
  switch (a->kind) {
  case TIR_LOOP: return same_loop(m, own, described);
  case TIR_BLOCK: return same_block(m, own, described);
  case TIR_STORE: return same_store(m, own, described);
  case TIR_IF:
    if (!same(m, a->test.condition, b->test.condition)) return differs(m, own, "there is another condition");
    return same_list(m, own, described, TIR_BODY) && same_list(m, own, described, TIR_ELSE);
  case TIR_BIND: {
    tir_var v = a->bind.var;
    if (!same(m, a->bind.value, b->bind.value)) return differs(m, own, "another value is bound");
    tir_import_map_var(&m->import, b->bind.var, tir_var_expr(m->ir, v));
    return true;
  }
  case TIR_EVALUATE: return same(m, a->evaluate.value, b->evaluate.value) || differs(m, own, "there is another call");
  default: return differs(m, own, "there is a statement of a kind that is not compared, other");
  }
}

static bool same_list(struct match *m, tir_stmt own, tir_stmt described, enum tir_list list) {
  tir_stmt a = tir_stmt_at(m->ir, own)->first[list], b = tir_stmt_at(m->desc.ir, described)->first[list];
  for (; a && b; a = tir_stmt_at(m->ir, a)->next, b = tir_stmt_at(m->desc.ir, b)->next)
    if (!same_stmt(m, a, b)) return false;
  return (!a && !b) || differs(m, own, "there are more statements, or fewer");
}

/* The block as a whole: what it reads and writes, moved, and its body. */
static bool matches(struct match *m, tir_block block) {
  const struct tir_block_record *own = tir_block_at(m->ir, block), *described = tir_block_at(m->desc.ir, m->desc.root);
  struct tir_span reads = own->reads;
  if (own->matches.count) return differs(m, block, "the block matches other buffers");
  if (!same(m, tir_as(m->ir, block, TIR_BLOCK)->block.predicate,
            tir_as(m->desc.ir, m->desc.root, TIR_BLOCK)->block.predicate))
    return differs(m, block, "the block has another predicate");
  if (!same_regions(m, own->writes, described->writes, true))
    return differs(m, block, "the block writes other regions");
  if (!same_regions(m, reads, described->reads, true)) return differs(m, block, "the block reads other regions");
  return same_list(m, block, m->desc.root, TIR_BODY);
}

static void open_description(struct match *m, bool turned) {
  m->turned = turned;
  tir_import_open(&m->import, m->ir, m->desc.ir);
}

/* As the description has them, or else with two inputs the other way round; a refusal is of the former. */
static bool check_match(struct match *m, tir_block block, ms_error *err) {
  m->why = NULL;
  if (matches(m, block)) return true;
  if (tir_block_at(m->ir, block)->reads.count >= 2) {
    tir_import_close(&m->import);
    open_description(m, true); /* the first difference stays */
    if (matches(m, block)) return true;
  }
  return tir_refuse(m->ir, err, MS_TENSORIZE_MISMATCH, m->at, "%s than what the intrinsic's description says", m->why);
}

/* By how many elements a buffer's dimension steps; TIR_NONE: it is dense, of extents that are no constants. */
static tir_expr stride_of(struct tir *ir, tir_buffer buffer, uint32_t d) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (b->strides.count == b->rank) return ir->operands.at[b->strides.first + d];
  int64_t stride = 1;
  for (uint32_t i = d + 1; i < b->rank; i++) {
    const struct tir_expr_node *extent = tir_at(ir, ir->operands.at[b->shape + i]);
    if (extent->kind != TIR_INT_IMM || __builtin_mul_overflow(stride, extent->imm, &stride)) return TIR_NONE;
  }
  return tir_int(ir, TIR_T_I64, stride);
}

/* The implementation may count on the strides that it states as numbers. */
static bool check_strides(struct match *m, tir_block block, const struct part *impl, ms_error *err) {
  for (uint32_t i = 0; i < impl->func->params.count; i++) {
    struct tir_buffer_node stated = *tir_buffer_at(impl->ir, param_of(impl, i));
    tir_buffer own = m->import.buffers[param_of(&m->desc, i)];
    uint32_t front = tir_buffer_at(m->ir, own)->rank - stated.rank;
    for (uint32_t d = 0; d < stated.strides.count && stated.strides.count == stated.rank; d++) {
      tir_expr wanted = impl->ir->operands.at[stated.strides.first + d];
      tir_expr stride = tir_is_int(impl->ir, wanted) ? stride_of(m->ir, own, front + d) : TIR_NONE;
      int64_t number = stride ? tir_at(impl->ir, wanted)->imm : 0;
      if (!stride || (tir_is_int(m->ir, stride) && tir_at(m->ir, stride)->imm == number)) continue;
      return tir_refuse(m->ir, err, MS_TENSORIZE_MISMATCH, block,
                        "dimension %u of `%s` has not the stride %lld that the implementation states", front + d,
                        tir_buffer_name(m->ir, own), (long long)number);
    }
  }
  return true;
}

/* ---- Edit ---- */

static bool has_wide_regions(const struct tir *ir, struct tir_span span) {
  for (uint32_t i = span.first; i < span.first + span.count; i++)
    for (uint32_t d = 0; d < tir_buffer_at(ir, ir->regions.at[i].buffer)->rank; d++)
      if (tir_type_bits(tir_type_of(ir, ir->operands.at[ir->regions.at[i].ranges + 2 * d])) == 64) return true;
  return false;
}

/* The part of the block's buffer that a parameter is, as large as the implementation says. */
static struct tir_region matched_region(struct match *m, struct tir_import *impl, tir_buffer described,
                                        struct tir_region used) {
  assert(m->import.buffers[described]); /* check_match mapped each parameter */
  tir_expr ranges[64];
  struct tir *ir = m->ir;
  tir_buffer own = m->import.buffers[described];
  uint32_t rank = tir_buffer_at(ir, own)->rank, front = rank - tir_buffer_at(m->desc.ir, described)->rank;
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr base = ir->operands.at[m->import.bases[described] + i];
    tir_expr extent = i < front ? tir_int(ir, tir_type_of(ir, base), 1)
                                : tir_import_expr(impl, impl->from->operands.at[used.ranges + 2 * (i - front) + 1]);
    ranges[2 * i] = base;
    ranges[2 * i + 1] = as_type_of(ir, extent, base);
  }
  return tir_new_region(ir, own, ranges);
}

static void match_params(struct match *m, tir_block block, const struct part *impl, struct tir_import *import) {
  uint32_t count = impl->func->params.count, first = tir_grow_matches(m->ir, count);
  for (uint32_t i = 0; i < count; i++) {
    tir_buffer param = param_of(impl, i), buffer = tir_import_buffer(import, param);
    struct tir_region source = matched_region(m, import, param_of(&m->desc, i), *region_of(impl, param));
    m->ir->matches.at[first + i] = (struct tir_match){buffer, source};
    tir_buffer_at(m->ir, buffer)->where = block;
  }
  tir_set_matches(m->ir, block, m->ir->matches.at + first, count);
}

static void add_annotations(struct tir *ir, tir_block block, struct tir_span added) {
  for (uint32_t i = 0; i < added.count; i++) {
    struct tir_annotation a = ir->annotations.at[added.first + i];
    struct tir_span span = tir_stmt_at(ir, block)->annotations;
    if (tir_annotation(ir, span, tir_text(ir, a.key))) continue;
    tir_annotate_span(ir, &span, a.key, a.value);
    tir_stmt_at(ir, block)->annotations = span;
  }
}

static void edit_tensorize(struct match *m, tir_block block, const struct part *impl) {
  assert(tir_is(m->ir, block, TIR_BLOCK) && impl->func->params.count == m->desc.func->params.count);
  struct tir *ir = m->ir;
  struct tir_import import;
  tir_import_open(&import, ir, impl->ir);
  import.wide =
      has_wide_regions(ir, tir_block_at(ir, block)->reads) || has_wide_regions(ir, tir_block_at(ir, block)->writes);
  for (tir_stmt s; (s = tir_stmt_at(ir, block)->first[TIR_BODY]) != TIR_NONE;) tir_kill(ir, s);
  match_params(m, block, impl, &import);
  struct tir_span allocs = tir_block_at(impl->ir, impl->root)->allocs;
  for (uint32_t i = 0; i < allocs.count; i++)
    tir_add_alloc(ir, block, tir_import_buffer(&import, impl->ir->operands.at[allocs.first + i]));
  tir_stmt s = tir_stmt_at(impl->ir, impl->root)->first[TIR_BODY];
  for (; s; s = tir_stmt_at(impl->ir, s)->next) tir_append(ir, block, TIR_BODY, tir_import_stmt(&import, s));
  add_annotations(ir, block, tir_import_annotations(&import, tir_stmt_at(impl->ir, impl->root)->annotations));
  tir_import_close(&import);
}

static bool tensorize_block(struct match *m, tir_block block, const struct part *impl, ms_error *err) {
  assert(tir_is(m->ir, block, TIR_BLOCK));
  open_description(m, false);
  bool accepted = check_match(m, block, err) && check_strides(m, block, impl, err);
  if (accepted) edit_tensorize(m, block, impl);
  tir_import_close(&m->import);
  return accepted;
}

static void free_backup(void *memory) { tir_free(*(struct tir **)memory); }
static const struct tir_scratch_kind backup = {sizeof(struct tir *), free_backup, NULL};

/* A loop becomes a block before it can be compared: a refusal then goes back to what was there. */
static bool tensorize_loop(struct match *m, tir_loop loop, bool preserve_unit_iters, const struct part *impl,
                           ms_error *err) {
  struct tir *ir = m->ir, **before = tir_scratch_of(ir, TIR_SCRATCH_BACKUP, &backup);
  struct tir_blockize_plan plan;
  struct tir_mark mark = tir_mark(ir);
  plan.around_first = true; /* its part is as large as what it is compared with */
  if (!tir_rewind_unless(ir, &mark, tir_check_blockize(ir, loop, preserve_unit_iters, &plan, err))) return false;
  if (!*before) *before = tir_new();
  tir_copy(*before, ir);
  if (tensorize_block(m, tir_edit_blockize(ir, &plan), impl, err)) return true;
  tir_copy(ir, *before);
  tir_rewind(ir, &mark);
  return false;
}

bool tir_tensorize(struct tir *ir, tir_stmt target, const struct tir *description, const struct tir *implementation,
                   bool preserve_unit_iters, ms_error *err) {
  assert(description && implementation && (tir_is(ir, target, TIR_LOOP) || tir_is(ir, target, TIR_BLOCK)));
  struct match m = {.ir = ir};
  struct part impl;
  if (!check_intrinsic(description, implementation, &m.desc, &impl, err)) return false;
  if (tir_is(ir, target, TIR_LOOP)) return tensorize_loop(&m, target, preserve_unit_iters, &impl, err);
  tir_block scope;
  if (!tir_find_scope(ir, target, &scope, err)) return false;
  struct tir_mark mark = tir_mark(ir);
  return tir_rewind_unless(ir, &mark, tensorize_block(&m, target, &impl, err));
}

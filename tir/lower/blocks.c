/* Blocks: each becomes its body, under its predicate, with its iteration variables replaced by their bindings; its init
 * runs where every reduction binding is at its least value. Matched buffers become the buffers they are matched on;
 * those of GPUs have shrunk before that (compact.c), as pointers have no dimensions afterwards.
 * Requires: no allocations in blocks (place.c). Gives: no blocks. Keeps: loops and flat allocations. */
#include "lower.h"

#include <stdlib.h>

struct matched {
  struct tir *ir;
  tir_buffer *to;
  uint32_t *region;
  uint32_t count;
};

/* The index, which may be a vector, in the type of the region's minimum. */
static tir_expr in_type_of(struct tir *ir, tir_expr min, tir_expr index) {
  tir_type type = tir_type_with_lanes(tir_type_of(ir, min), tir_type_lanes(tir_type_of(ir, index)));
  return tir_type_of(ir, index) == type ? index : tir_cast(ir, type, index);
}

/* An access of a matched buffer is one of its source, moved by the region's minimum; leading dimensions that the match
 * drops are at their minimum. */
static bool to_source(struct tir *ir, void *data, struct access *a) {
  struct matched *m = data;
  bool changed = false;
  while (a->buffer < m->count && m->to[a->buffer]) {
    tir_buffer source = m->to[a->buffer];
    uint32_t rank = tir_buffer_at(ir, source)->rank, dropped = rank - a->count;
    assert(source != a->buffer && rank >= a->count && rank <= TIR_MOST_RANK);
    tir_expr indices[TIR_MOST_RANK];
    for (uint32_t i = 0; i < rank; i++) {
      tir_expr min = tir_subst(ir, ir->operands.at[m->region[a->buffer] + 2 * i]);
      indices[i] = i < dropped ? min : tir_add(ir, min, in_type_of(ir, min, a->indices[i - dropped]));
    }
    a->buffer = source;
    a->count = rank;
    for (uint32_t i = 0; i < rank; i++) a->indices[i] = indices[i];
    changed = true;
  }
  return changed;
}

/* The stride of dimension i of a buffer. */
static tir_expr stride_of(struct tir *ir, tir_buffer buffer, uint32_t i) {
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (b->strides.count) return tir_subst(ir, ir->operands.at[b->strides.first + i]);
  tir_expr stride = tir_int(ir, TIR_T_I32, 1);
  for (uint32_t k = b->rank; --k > i;) {
    tir_expr extent = ir->operands.at[tir_buffer_at(ir, buffer)->shape + k];
    if (tir_type_of(ir, extent) != tir_type_of(ir, stride)) stride = tir_cast(ir, tir_type_of(ir, extent), stride);
    stride = tir_mul(ir, stride, tir_subst(ir, extent));
  }
  return stride;
}

static void define(struct tir *ir, tir_expr name, tir_expr value) {
  if (name && tir_at(ir, name)->kind == TIR_VAR) tir_subst_var(ir, tir_at(ir, name)->ref, value);
}

/* A match gives values to the variables among its strides and offset. */
static void define_match(struct tir *ir, const struct tir_match *match) {
  tir_buffer source = match->source.buffer;
  uint32_t rank = tir_buffer_at(ir, source)->rank, own = tir_buffer_at(ir, match->buffer)->rank;
  assert(rank >= own);
  struct tir_span strides = tir_buffer_at(ir, match->buffer)->strides;
  for (uint32_t i = 0; i < strides.count; i++)
    define(ir, ir->operands.at[strides.first + i], stride_of(ir, source, rank - own + i));
  tir_expr name = tir_buffer_at(ir, match->buffer)->elem_offset;
  if (!name || tir_at(ir, name)->kind != TIR_VAR) return;
  tir_expr offset = tir_int(ir, tir_type_of(ir, name), 0);
  for (uint32_t i = 0; i < rank; i++) {
    tir_expr min = tir_subst(ir, ir->operands.at[match->source.ranges + 2 * i]);
    offset = tir_add(ir, offset, tir_mul(ir, min, stride_of(ir, source, i)));
  }
  define(ir, name, offset);
}

static tir_expr at_first_reduction(struct tir *ir, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  tir_expr condition = TIR_NONE;
  for (uint32_t i = iters.first; i < iters.first + iters.count; i++) {
    struct tir_iter it = ir->iters.at[i];
    if (it.kind != TIR_REDUCE) continue;
    tir_expr least = ir->vars.at[it.var].min;
    condition = tir_and(ir, condition, tir_make(ir, TIR_EQ, tir_var_expr(ir, it.var), least));
  }
  return condition;
}

static void wrap_in_if(struct tir *ir, tir_stmt s, tir_expr condition) {
  assert(condition && tir_type_lanes(tir_type_of(ir, condition)) == 1);
  tir_stmt test = tir_new_if(ir, condition);
  tir_wrap(ir, s, test);
}

/* The body of a block that is noted to do nothing where a sum over its iterations is above 0 runs elsewhere: each
 * iteration's coefficient, and a constant, stand in the note. What has other iterations, as its init, always runs. */
static void leave_out_idle(struct tir *ir, tir_block block) {
  tir_expr note = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, TIR_IDLE_ABOVE_ZERO);
  struct tir_span iters = tir_block_at(ir, block)->iters;
  if (!note || tir_at(ir, note)->kind != TIR_LIST || tir_at(ir, note)->count != iters.count + 1) return;
  uint32_t list = tir_at(ir, note)->operands;
  tir_expr sum = TIR_NONE;
  for (uint32_t i = 0; i <= iters.count; i++) {
    tir_expr by = ir->operands.at[list + i];
    if (!tir_is_int(ir, by)) return;
    tir_expr it = i < iters.count ? tir_var_expr(ir, ir->iters.at[iters.first + i].var) : TIR_NONE;
    tir_expr term = tir_int(ir, it ? tir_type_of(ir, it) : tir_type_of(ir, sum ? sum : by), tir_at(ir, by)->imm);
    if (it) term = tir_mul(ir, it, term);
    sum = sum ? tir_add(ir, sum, term) : term;
  }
  tir_stmt test = tir_new_if(ir, tir_make(ir, TIR_LE, sum, tir_int(ir, tir_type_of(ir, sum), 0)));
  tir_move_children(ir, block, TIR_BODY, test, TIR_BODY);
  tir_append(ir, block, TIR_BODY, test);
}

/* How rows of what a block writes to shared memory lie apart. */
static void note_apart(struct lowering *low, tir_block block) {
  const struct tir *ir = low->ir;
  struct tir_span writes = tir_block_at(ir, block)->writes;
  tir_expr entry;
  for (uint32_t i = 0; (entry = tir_row_entry(ir, block, i)); i++) {
    int64_t index = tir_at(ir, tir_operands(ir, tir_at(ir, entry)->operands)[0])->imm;
    if (index < 0 || index >= writes.count) continue;
    tir_buffer buffer = ir->regions.at[writes.first + index].buffer;
    enum tir_memory_scope scope = tir_memory_scope_of(ir, buffer);
    if (scope != TIR_SCOPE_SHARED && scope != TIR_SCOPE_SHARED_DYNAMIC) continue;
    low->apart = tir_enlarge(low->apart, &low->apart_capacity, low->apart_count + 1, sizeof *low->apart);
    low->apart[low->apart_count++] = (struct lower_apart){buffer, entry};
  }
}

/* What it leaves behind holds its iteration variables, which are substituted as the walk comes to it. */
static void open_block(struct tir *ir, tir_block block) {
  assert(!tir_block_at(ir, block)->allocs.count && "place.c has moved them");
  tir_expr predicate = tir_as(ir, block, TIR_BLOCK)->block.predicate;
  leave_out_idle(ir, block);
  if (tir_stmt_at(ir, block)->first[TIR_INIT]) {
    tir_expr condition = at_first_reduction(ir, block);
    tir_stmt init = tir_new_if(ir, condition ? condition : tir_int(ir, TIR_T_BOOL, 1));
    tir_move_children(ir, block, TIR_INIT, init, TIR_BODY);
    tir_stmt first = tir_stmt_at(ir, block)->first[TIR_BODY];
    if (first)
      tir_insert_before(ir, first, init);
    else
      tir_append(ir, block, TIR_BODY, init);
  }
  if (predicate) wrap_in_if(ir, block, tir_subst_value(ir, predicate));
}

/* What is left of matched buffers once accesses are moved are pointers to their data: the source's. */
static void point_to_sources(struct tir *ir, tir_stmt body, const struct matched *m) {
  bool any = false;
  for (tir_buffer b = 1; b < m->count; b++) {
    tir_buffer source = m->to[b];
    if (!source) continue;
    while (source < m->count && m->to[source]) source = m->to[source];
    tir_subst_buffer(ir, b, source);
    any = true;
  }
  if (any) tir_subst_stmt(ir, body);
}

bool lower_blocks(struct lowering *low) {
  struct tir *ir = low->ir;
  if (!lower_note_copies(low)) return false;
  if (low->options && low->options->device == TIR_GPU) lower_compact_matched(low);
  struct matched m = {ir, calloc(ir->buffers.count, sizeof(tir_buffer)), calloc(ir->buffers.count, sizeof(uint32_t)),
                      ir->buffers.count};
  if (!m.to || !m.region) abort();
  tir_subst_divide(ir);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_BLOCK)) {
      tir_subst_one(ir, s);
      continue;
    }
    if (low->options && low->options->device == TIR_GPU) note_apart(low, s);
    open_block(ir, s);
    struct tir_span iters = tir_block_at(ir, s)->iters, matches = tir_block_at(ir, s)->matches;
    for (uint32_t i = iters.first; i < iters.first + iters.count; i++)
      tir_subst_var(ir, ir->iters.at[i].var, tir_subst(ir, ir->iters.at[i].binding));
    for (uint32_t i = matches.first; i < matches.first + matches.count; i++) {
      struct tir_match match = ir->matches.at[i];
      m.to[match.buffer] = match.source.buffer;
      m.region[match.buffer] = match.source.ranges;
      define_match(ir, &match);
    }
  }
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (tir_is(ir, s, TIR_BLOCK)) tir_kill_alone(ir, s);
  }
  lower_rewrite(ir, low->body, to_source, &m);
  point_to_sources(ir, low->body, &m);
  tir_subst_clear(ir);
  free(m.to);
  free(m.region);
  return true;
}

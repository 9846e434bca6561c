/* Queries: what may be asked of a schedule without being recorded. Answers are values in a trace that only holds them.
 */
#include "query.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- Making answers ---------------------------------------------------------------------------------------------- */

static struct vm_value text_value(struct vm_ask *q, const char *text) { return vm_string(q->pool, text, strlen(text)); }

/* An integer constant; None for what is not known. */
static struct vm_value int_value(const struct tir *ir, tir_expr e) {
  return e && tir_is_int(ir, e) ? vm_int(tir_at(ir, e)->imm) : vm_none();
}

static struct vm_value *room_for(uint32_t count) {
  struct vm_value *items = malloc((count + 1) * sizeof *items);
  if (!items) abort();
  return items;
}

static struct vm_value list_of(struct vm_ask *q, struct vm_value *items, uint32_t count) {
  struct vm_value list = vm_list(q->pool, VM_LIST, items, count);
  free(items);
  return list;
}

static struct vm_value names_of(struct vm_ask *q, const tir_block *blocks, uint32_t count) {
  struct vm_value *items = room_for(count);
  for (uint32_t i = 0; i < count; i++) items[i] = text_value(q, tir_block_name(q->ir, blocks[i]));
  return list_of(q, items, count);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

bool vm_ask_block_names(struct vm_ask *q) {
  uint32_t count = 0;
  struct vm_value *items = room_for(q->ir->blocks.count);
  for (tir_func f = 1; f < q->ir->funcs.count; f++) {
    tir_stmt top = q->ir->funcs.at[f].body;
    for (tir_stmt s = tir_next(q->ir, top, top); s; s = tir_next(q->ir, s, top))
      if (tir_is(q->ir, s, TIR_BLOCK)) items[count++] = text_value(q, tir_block_name(q->ir, s));
  }
  assert(count <= q->ir->blocks.count); /* the room: each block has a record, and is met once */
  q->answer = list_of(q, items, count);
  return true;
}

bool vm_ask_has_block(struct vm_ask *q) {
  tir_symbol name = tir_find_symbol(q->ir, q->args[0].text);
  bool has = false;
  for (tir_block b = name ? q->ir->symbols.at[name].first_block : TIR_NONE; b && !has;
       b = tir_block_at(q->ir, b)->next_same_name)
    has = tir_func_of(q->ir, b) != TIR_NONE;
  q->answer = vm_bool(has);
  return true;
}

bool vm_ask_root_block(struct vm_ask *q) {
  tir_func main = tir_find_func(q->ir, "main");
  tir_block root = main ? tir_root_block(q->ir, main) : TIR_NONE;
  q->answer = root ? text_value(q, tir_block_name(q->ir, root)) : vm_none();
  return true;
}

bool vm_ask_is_root(struct vm_ask *q) {
  q->answer = vm_bool(tir_parent_block(q->ir, q->args[0].statement) == TIR_NONE);
  return true;
}

bool vm_ask_block_name(struct vm_ask *q) {
  q->answer = text_value(q, tir_block_name(q->ir, q->args[0].statement));
  return true;
}

typedef bool (*look_up)(struct tir *ir, tir_stmt of, tir_block *out, uint32_t most, uint32_t *count, ms_error *err);

static bool ask_blocks(struct vm_ask *q, look_up find) {
  uint32_t count = 0, most = q->ir->blocks.count;
  tir_block *blocks = malloc((most + 1) * sizeof *blocks);
  if (!blocks) abort();
  bool done = find(q->ir, q->args[0].statement, blocks, most, &count, q->err);
  assert(!done || count <= most);
  if (done) q->answer = names_of(q, blocks, count);
  free(blocks);
  return done;
}

bool vm_ask_producers(struct vm_ask *q) { return ask_blocks(q, tir_get_producers); }
bool vm_ask_consumers(struct vm_ask *q) { return ask_blocks(q, tir_get_consumers); }
bool vm_ask_output_blocks(struct vm_ask *q) { return ask_blocks(q, tir_get_output_blocks); }

bool vm_ask_iter_kinds(struct vm_ask *q) {
  static const char *const names[] = {[TIR_SPATIAL] = "spatial", [TIR_REDUCE] = "reduce", [TIR_OPAQUE] = "opaque"};
  const struct tir_block_record *record = tir_block_at(q->ir, q->args[0].statement);
  struct vm_value *items = room_for(record->iters.count);
  for (uint32_t i = 0; i < record->iters.count; i++)
    items[i] = text_value(q, names[q->ir->iters.at[record->iters.first + i].kind]);
  q->answer = list_of(q, items, record->iters.count);
  return true;
}

static bool is_spatial(const struct tir *ir, tir_block block) {
  struct tir_span iters = tir_block_at(ir, block)->iters;
  bool spatial = true;
  for (uint32_t i = 0; i < iters.count; i++) spatial &= ir->iters.at[iters.first + i].kind == TIR_SPATIAL;
  return spatial;
}

bool vm_ask_is_spatial(struct vm_ask *q) {
  q->answer = vm_bool(is_spatial(q->ir, q->args[0].statement));
  return true;
}

bool vm_ask_is_spatial_function(struct vm_ask *q) {
  bool spatial = true;
  for (tir_func f = 1; f < q->ir->funcs.count; f++) {
    tir_stmt top = q->ir->funcs.at[f].body;
    for (tir_stmt s = tir_next(q->ir, top, top); s && spatial; s = tir_next(q->ir, s, top))
      spatial = !tir_is(q->ir, s, TIR_BLOCK) || is_spatial(q->ir, s);
  }
  q->answer = vm_bool(spatial);
  return true;
}

bool vm_ask_iter_extents(struct vm_ask *q) {
  const struct tir_block_record *record = tir_block_at(q->ir, q->args[0].statement);
  struct vm_value *items = room_for(record->iters.count);
  for (uint32_t i = 0; i < record->iters.count; i++)
    items[i] = int_value(q->ir, q->ir->vars.at[q->ir->iters.at[record->iters.first + i].var].extent);
  q->answer = list_of(q, items, record->iters.count);
  return true;
}

static struct tir_span regions_of(const struct vm_ask *q, bool writes) {
  const struct tir_block_record *record = tir_block_at(q->ir, q->args[0].statement);
  return writes ? record->writes : record->reads;
}

/* The number, from 1, of the block's iteration variable that an expression is; 0: it is none. */
static int64_t number_of_iter(const struct vm_ask *q, tir_expr e) {
  struct tir_span iters = tir_block_at(q->ir, q->args[0].statement)->iters;
  for (uint32_t i = 0; i < iters.count; i++)
    if (tir_var_expr(q->ir, q->ir->iters.at[iters.first + i].var) == e) return i + 1;
  return 0;
}

bool vm_ask_read_iters(struct vm_ask *q) {
  struct tir_span regions = regions_of(q, false);
  struct vm_value *lists = room_for(regions.count);
  for (uint32_t r = 0; r < regions.count; r++) {
    struct tir_region region = q->ir->regions.at[regions.first + r];
    uint32_t rank = tir_buffer_at(q->ir, region.buffer)->rank;
    struct vm_value *items = room_for(rank);
    for (uint32_t d = 0; d < rank; d++) {
      const uint32_t *range = tir_operands(q->ir, region.ranges) + 2 * d;
      items[d] = vm_int(tir_is_const(q->ir, range[1], 1) ? number_of_iter(q, range[0]) : 0);
    }
    lists[r] = list_of(q, items, rank);
  }
  q->answer = list_of(q, lists, regions.count);
  return true;
}

static bool region_uses(const struct vm_ask *q, struct tir_region region, tir_var v) {
  uint32_t ranges = 2 * tir_buffer_at(q->ir, region.buffer)->rank;
  for (uint32_t i = 0; i < ranges; i++)
    if (tir_uses_var(q->ir, tir_operands(q->ir, region.ranges)[i], v)) return true;
  return false;
}

static bool ask_uses(struct vm_ask *q, bool writes) {
  struct tir_span regions = regions_of(q, writes), iters = tir_block_at(q->ir, q->args[0].statement)->iters;
  struct vm_value *lists = room_for(regions.count);
  for (uint32_t r = 0; r < regions.count; r++) {
    struct vm_value *items = room_for(iters.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < iters.count; i++)
      if (region_uses(q, q->ir->regions.at[regions.first + r], q->ir->iters.at[iters.first + i].var))
        items[count++] = vm_int(i + 1);
    lists[r] = list_of(q, items, count);
  }
  q->answer = list_of(q, lists, regions.count);
  return true;
}

bool vm_ask_read_uses(struct vm_ask *q) { return ask_uses(q, false); }
bool vm_ask_write_uses(struct vm_ask *q) { return ask_uses(q, true); }

bool vm_ask_is_trivial(struct vm_ask *q) {
  struct tir_span iters = tir_block_at(q->ir, q->args[0].statement)->iters;
  bool trivial = true;
  for (uint32_t i = 0; i < iters.count; i++)
    trivial &= tir_at(q->ir, q->ir->iters.at[iters.first + i].binding)->kind == TIR_VAR;
  q->answer = vm_bool(trivial);
  return true;
}

bool vm_ask_has_reducer(struct vm_ask *q) {
  q->answer = vm_bool(tir_has_reducer(q->ir, q->args[0].statement));
  return true;
}

bool vm_ask_has_init(struct vm_ask *q) {
  q->answer = vm_bool(tir_stmt_at(q->ir, q->args[0].statement)->first[TIR_INIT] != TIR_NONE);
  return true;
}

bool vm_ask_can_inline(struct vm_ask *q) {
  q->answer = vm_bool(tir_can_compute_inline(q->ir, q->args[0].statement));
  return true;
}

bool vm_ask_can_reverse_inline(struct vm_ask *q) {
  q->answer = vm_bool(tir_can_reverse_compute_inline(q->ir, q->args[0].statement));
  return true;
}

bool vm_ask_can_compute_at(struct vm_ask *q) {
  q->answer = vm_bool(tir_can_compute_at(q->ir, q->args[0].statement, q->args[1].statement));
  return true;
}

bool vm_ask_can_reverse_compute_at(struct vm_ask *q) {
  q->answer = vm_bool(tir_can_reverse_compute_at(q->ir, q->args[0].statement, q->args[1].statement));
  return true;
}

bool vm_ask_can_decompose_reduction(struct vm_ask *q) {
  q->answer = vm_bool(tir_can_decompose_reduction(q->ir, q->args[0].statement, q->args[1].statement));
  return true;
}

bool vm_ask_can_rfactor(struct vm_ask *q) {
  int64_t axis = q->args[1].integer;
  bool fits = axis >= INT_MIN && axis <= INT_MAX;
  q->answer = vm_bool(fits && tir_can_rfactor(q->ir, q->args[0].statement, (int)axis));
  return true;
}

bool vm_ask_compute_locations(struct vm_ask *q) {
  tir_block block = q->args[0].statement;
  uint32_t most = tir_compute_locations(q->ir, block, NULL, 0), count = 0;
  tir_loop *loops = malloc((most + 1) * sizeof *loops);
  if (!loops) abort();
  uint32_t found = tir_compute_locations(q->ir, block, loops, most);
  assert(found == most && "asking of locations leaves the module as it was");
  (void)found;
  struct vm_value *items = room_for(most + 2);
  if (tir_can_compute_inline(q->ir, block)) items[count++] = vm_int(VM_MARK_INLINE);
  items[count++] = vm_int(VM_MARK_ROOT);
  for (uint32_t i = 0; i < most; i++) items[count++] = vm_int(tir_loops_of(q->ir, loops[i], NULL, 0));
  free(loops);
  q->answer = list_of(q, items, count);
  return true;
}

static bool is_call(const struct tir *ir, const void *op, tir_expr e) {
  return tir_at(ir, e)->kind == TIR_CALL && tir_at(ir, e)->ref == *(const tir_symbol *)op;
}

static bool divides_floats(const struct tir *ir, const void *context, tir_expr e) {
  (void)context;
  return tir_at(ir, e)->kind == TIR_DIV && tir_type_is_float(tir_at(ir, e)->type);
}

/* Whether what a block computes holds such a node; flags: as tir_find_node has them. */
static bool computes_any(const struct vm_ask *q, uint8_t flags, tir_node_test *test, const void *context) {
  tir_stmt top = q->args[0].statement;
  for (tir_stmt at = tir_next(q->ir, top, top); at; at = tir_next(q->ir, at, top)) {
    const struct tir_stmt_node *node = tir_stmt_at(q->ir, at);
    tir_expr value = node->kind == TIR_STORE      ? node->store.value
                     : node->kind == TIR_EVALUATE ? node->evaluate.value
                     : node->kind == TIR_BIND     ? node->bind.value
                     : node->kind == TIR_IF       ? node->test.condition
                                                  : TIR_NONE;
    if (tir_any_node(q->ir, value, flags, test, context)) return true;
  }
  return false;
}

bool vm_ask_has_call(struct vm_ask *q) {
  tir_symbol op = tir_find_symbol(q->ir, q->args[1].text);
  q->answer = vm_bool(op && computes_any(q, TIR_HAS_CALL, is_call, &op));
  return true;
}

bool vm_ask_divides_floats(struct vm_ask *q) {
  q->answer = vm_bool(computes_any(q, TIR_HAS_DIVMOD, divides_floats, NULL));
  return true;
}

/* ---- Regions ----------------------------------------------------------------------------------------------------- */

static struct vm_value extents_of(struct vm_ask *q, const uint32_t *first, uint32_t rank, uint32_t step) {
  struct vm_value *items = room_for(rank);
  for (uint32_t d = 0; d < rank; d++) items[d] = int_value(q->ir, first[d * step]);
  return list_of(q, items, rank);
}

static struct vm_value region_value(struct vm_ask *q, const struct tir_region *region) {
  const struct tir_buffer_node *b = tir_buffer_at(q->ir, region->buffer);
  const uint32_t *ranges = tir_operands(q->ir, region->ranges);
  char type[24];
  struct vm_value fields[12] = {
      text_value(q, "buffer"),  text_value(q, tir_text(q->ir, b->name)),
      text_value(q, "type"),    text_value(q, tir_type_text(b->type, type)),
      text_value(q, "bytes"),   vm_int(tir_type_bytes(b->type)),
      text_value(q, "scope"),   text_value(q, tir_text(q->ir, b->scope)),
      text_value(q, "shape"),   extents_of(q, tir_operands(q->ir, b->shape), b->rank, 1),
      text_value(q, "extents"), extents_of(q, ranges + 1, b->rank, 2),
  };
  return vm_list(q->pool, VM_MAP, fields, 12);
}

static bool ask_regions(struct vm_ask *q, struct tir_span regions) {
  struct vm_value *items = room_for(regions.count);
  for (uint32_t i = 0; i < regions.count; i++) items[i] = region_value(q, &q->ir->regions.at[regions.first + i]);
  q->answer = list_of(q, items, regions.count);
  return true;
}

bool vm_ask_reads(struct vm_ask *q) { return ask_regions(q, tir_block_at(q->ir, q->args[0].statement)->reads); }
bool vm_ask_writes(struct vm_ask *q) { return ask_regions(q, tir_block_at(q->ir, q->args[0].statement)->writes); }

/* The region that the second argument numbers. */
static bool region_at(struct vm_ask *q, struct tir_span regions, struct tir_region *out) {
  int64_t index = q->args[1].integer;
  if (index < 0 || index >= regions.count)
    return ms_fail(q->err, MS_INVALID_ARGUMENT, "region %lld of %u", (long long)index, regions.count);
  *out = q->ir->regions.at[regions.first + index];
  return true;
}

static bool reads_buffer(const struct tir *ir, tir_block block, tir_buffer buffer) {
  struct tir_span reads = tir_block_at(ir, block)->reads;
  for (uint32_t i = 0; i < reads.count; i++)
    if (ir->regions.at[reads.first + i].buffer == buffer) return true;
  return false;
}

bool vm_ask_readers(struct vm_ask *q) {
  struct tir_region region = {0};
  tir_block block = q->args[0].statement;
  if (!region_at(q, tir_block_at(q->ir, block)->reads, &region)) return false;
  uint32_t count = 0;
  struct vm_value *items = room_for(q->ir->blocks.count);
  tir_stmt top = q->ir->funcs.at[tir_func_of(q->ir, block)].body;
  for (tir_stmt s = tir_next(q->ir, top, top); s; s = tir_next(q->ir, s, top))
    if (tir_is(q->ir, s, TIR_BLOCK) && reads_buffer(q->ir, s, region.buffer))
      items[count++] = text_value(q, tir_block_name(q->ir, s));
  q->answer = list_of(q, items, count);
  return true;
}

static bool ask_stride(struct vm_ask *q, struct tir_span regions) {
  int64_t stride;
  struct tir_region region = {0};
  if (!region_at(q, regions, &region)) return false;
  bool known = vm_stride_of(q->ir, q->args[0].statement, region, q->args[2].statement, &stride);
  q->answer = known ? vm_int(stride) : vm_none();
  return true;
}

bool vm_ask_read_stride(struct vm_ask *q) { return ask_stride(q, tir_block_at(q->ir, q->args[0].statement)->reads); }
bool vm_ask_write_stride(struct vm_ask *q) { return ask_stride(q, tir_block_at(q->ir, q->args[0].statement)->writes); }

bool vm_ask_strides(struct vm_ask *q) {
  const struct tir_block_record *record = tir_block_at(q->ir, q->args[0].statement);
  struct tir_span reads = record->reads, writes = record->writes;
  struct vm_value *items = room_for(reads.count + writes.count);
  for (uint32_t i = 0; i < reads.count + writes.count; i++) {
    uint32_t at = i < reads.count ? reads.first + i : writes.first + i - reads.count;
    int64_t stride;
    bool known = vm_stride_of(q->ir, q->args[0].statement, q->ir->regions.at[at], q->args[1].statement, &stride);
    items[i] = known ? vm_int(stride) : vm_bool(false);
  }
  q->answer = list_of(q, items, reads.count + writes.count);
  return true;
}

bool vm_ask_child_count(struct vm_ask *q) {
  int64_t count = 0;
  for (tir_stmt s = tir_stmt_at(q->ir, q->args[0].statement)->first[TIR_BODY]; s; s = tir_stmt_at(q->ir, s)->next)
    count++;
  q->answer = vm_int(count);
  return true;
}

/* ---- Annotations ------------------------------------------------------------------------------------------------- */

static struct vm_value annotation_value(struct vm_ask *q, tir_expr e) {
  const struct tir_expr_node node = *tir_at(q->ir, e);
  switch (node.kind) {
  case TIR_INT_IMM: return node.type == TIR_T_BOOL ? vm_bool(node.imm) : vm_int(node.imm);
  case TIR_FLOAT_IMM: return vm_real(node.real);
  case TIR_STRING_IMM: return text_value(q, tir_text(q->ir, node.ref));
  case TIR_LIST:
  case TIR_MAP: break;
  default: return vm_none();
  }
  assert(node.kind == TIR_LIST || node.count % 2 == 0); /* a map: key and value in turn */
  struct vm_value *items = room_for(node.count);
  for (uint32_t i = 0; i < node.count; i++) items[i] = annotation_value(q, tir_operands(q->ir, node.operands)[i]);
  struct vm_value out = vm_list(q->pool, node.kind == TIR_LIST ? VM_LIST : VM_MAP, items, node.count);
  free(items);
  return out;
}

bool vm_ask_annotation(struct vm_ask *q) {
  tir_expr value = tir_annotation(q->ir, tir_stmt_at(q->ir, q->args[0].statement)->annotations, q->args[1].text);
  q->answer = value ? annotation_value(q, value) : vm_none();
  return true;
}

bool vm_ask_annotations(struct vm_ask *q) {
  struct tir_span span = tir_stmt_at(q->ir, q->args[0].statement)->annotations;
  struct vm_value *items = room_for(2 * span.count);
  for (uint32_t i = 0; i < span.count; i++) {
    struct tir_annotation a = q->ir->annotations.at[span.first + i];
    items[2 * i] = text_value(q, tir_text(q->ir, a.key));
    items[2 * i + 1] = annotation_value(q, a.value);
  }
  q->answer = vm_list(q->pool, VM_MAP, items, 2 * span.count);
  free(items);
  return true;
}

/* ---- Loops ------------------------------------------------------------------------------------------------------- */

bool vm_ask_extent(struct vm_ask *q) {
  q->answer = int_value(q->ir, tir_as(q->ir, q->args[0].statement, TIR_LOOP)->loop.extent);
  return true;
}

bool vm_ask_is_multiple(struct vm_ask *q) {
  int64_t extent = tir_loop_extent(q->ir, q->args[0].statement), of = q->args[1].integer;
  if (of <= 0) return ms_fail(q->err, MS_INVALID_ARGUMENT, "of must be positive, not %lld", (long long)of);
  q->answer = extent < 0 ? vm_none() : vm_bool(extent % of == 0);
  return true;
}

bool vm_ask_loop_kind(struct vm_ask *q) {
  static const char *const names[] = {[TIR_SERIAL] = "serial",
                                      [TIR_PARALLEL] = "parallel",
                                      [TIR_VECTORIZED] = "vectorized",
                                      [TIR_UNROLLED] = "unrolled",
                                      [TIR_THREAD_BINDING] = "thread_binding"};
  uint8_t kind = tir_stmt_at(q->ir, q->args[0].statement)->loop_kind;
  assert(kind < sizeof names / sizeof *names && names[kind]);
  q->answer = text_value(q, names[kind]);
  return true;
}

bool vm_ask_thread(struct vm_ask *q) {
  const struct tir_stmt_node *loop = tir_stmt_at(q->ir, q->args[0].statement);
  bool bound = loop->loop_kind == TIR_THREAD_BINDING;
  q->answer = bound ? text_value(q, tir_text(q->ir, loop->loop.thread)) : vm_none();
  return true;
}

bool vm_ask_is_data_parallel(struct vm_ask *q) {
  q->answer = vm_bool(tir_is_data_parallel(q->ir, q->args[0].statement));
  return true;
}

bool vm_ask_loop_iter_kind(struct vm_ask *q) {
  q->answer = text_value(q, vm_loop_iter_kind(q->ir, q->args[0].statement));
  return true;
}

bool vm_ask_loop_iter_kinds(struct vm_ask *q) {
  uint32_t count = tir_loops_of(q->ir, q->args[0].statement, NULL, 0);
  tir_loop *loops = malloc((count + 1) * sizeof *loops);
  if (!loops) abort();
  tir_loops_of(q->ir, q->args[0].statement, loops, count);
  struct vm_value *items = room_for(count);
  for (uint32_t i = 0; i < count; i++) items[i] = text_value(q, vm_loop_iter_kind(q->ir, loops[i]));
  free(loops);
  q->answer = list_of(q, items, count);
  return true;
}

/* ---- Functions --------------------------------------------------------------------------------------------------- */

bool vm_ask_function_attribute(struct vm_ask *q) {
  tir_func main = tir_find_func(q->ir, "main");
  tir_expr value = tir_annotation(q->ir, q->ir->funcs.at[main].attrs, q->args[0].text);
  q->answer = value ? annotation_value(q, value) : vm_none();
  return true;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static bool (*const performers[VM_QUERY_COUNT])(struct vm_ask *q) = {
#define QUERY(name, args, answer, performs, doc) vm_ask_##performs,
#include "vm/queries.def"
#undef QUERY
};

static bool take_argument(const struct vm_schedule *sch, const struct vm_value *v, const struct vm_trace *pool,
                          const struct vm_param *param, struct vm_argument *out, ms_error *err) {
  const struct tir *ir = sch->ir;
  char expected[80];
  out->statement = v->kind == VM_REF ? vm_statement(sch, v->ref) : TIR_NONE;
  bool block = out->statement && tir_is(ir, out->statement, TIR_BLOCK);
  bool loop = out->statement && tir_is(ir, out->statement, TIR_LOOP), fits = false;
  switch (param->type) {
  case VM_T_BLOCK: fits = block; break;
  case VM_T_LOOP: fits = loop; break;
  case VM_T_PLACE: fits = block || loop; break;
  case VM_T_INT:
    out->integer = v->integer;
    fits = v->kind == VM_INT;
    break;
  default: fits = v->kind == VM_STRING; out->text = fits ? pool->steps->text + v->first : NULL;
  }
  if (fits) return true;
  if (v->kind == VM_REF && !out->statement)
    return ms_fail(err, MS_STALE_HANDLE, "%.*s is no longer in the module", param->name_length, param->name);
  return ms_fail(err, MS_WRONG_OPERAND, "%.*s: expected %s", param->name_length, param->name,
                 vm_param_text(param, expected, sizeof expected));
}

/* What came is what the table, from which the help is made, says: of that kind, or None where it is not known. */
static bool is_as_declared(enum vm_query query, enum vm_value_kind kind) {
  static const struct {
    const char *words;
    enum vm_value_kind kind;
  } declared[] = {{"\"", VM_STRING}, /* one of the words that follow */
                  {"a boolean", VM_BOOL}, {"an integer", VM_INT}, {"a string", VM_STRING},
                  {"a list", VM_LIST},    {"a table", VM_MAP}};
  const char *answer = vm_query_info(query)->answer;
  for (size_t i = 0; i < sizeof declared / sizeof *declared; i++)
    if (!strncmp(answer, declared[i].words, strlen(declared[i].words))) return kind == declared[i].kind || !kind;
  return !strcmp(answer, "a value");
}

bool vm_ask(struct vm_schedule *sch, enum vm_query query, const struct vm_value *args, uint32_t count,
            struct vm_trace *pool, struct vm_value *answer, ms_error *err) {
  assert(query < VM_QUERY_COUNT);
  const struct vm_query_params *params = vm_query_params(query);
  assert(params->count <= VM_MOST_ARGUMENTS);
  struct vm_ask q = {.ir = sch->ir, .intrinsics = sch->intrinsics, .pool = pool, .err = err};
  if (count != params->count)
    return ms_fail(err, MS_WRONG_OPERAND, "%s takes %u argument%s, and %u are given", vm_query_info(query)->name,
                   params->count, params->count == 1 ? "" : "s", count);
  for (uint32_t i = 0; i < count; i++)
    if (!take_argument(sch, &args[i], pool, &params->at[i], &q.args[i], err)) return false;
  if (!performers[query](&q)) return false;
  assert(is_as_declared(query, q.answer.kind));
  *answer = q.answer;
  return true;
}

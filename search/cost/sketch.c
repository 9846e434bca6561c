/* Reading a sketch for the analytical model: which number each loop's extent is, and what each block touches.
 *
 * The sketch is replayed once, with decisions of its own or drawn. What its instructions say of extents (tiles that are
 * drawn, splits, fusions) holds for all decisions; the order of loops and blocks is taken from the replay. Loops that
 * moving a block made have no instruction: such a nest is taken to follow the tiles of the one that it moved to. */
#include "analytical.h"

#include <stdlib.h>
#include <string.h>

/* Where a loop comes from: the loop of an iteration variable that it is a part of, or several of which it is fused. */
struct origin {
  uint32_t count, numbers[MODEL_PARTS];
  uint32_t roots[MODEL_PARTS]; /* variables of the trace */
};

struct reading {
  struct search_estimator *estimator;
  const struct vm_steps *steps;
  const struct vm_schedule *made; /* the sketch, replayed */
  /* By instruction, of each GetLoops that was performed: the loop that each variable, up to its last output, stood for
   * then. */
  tir_stmt **seen;
  tir_stmt *statements;   /* by instruction, of each GetLoops and Annotate: what it was about */
  int64_t *extents;       /* of each variable that such an instruction gave: as long as it was then */
  uint32_t *numbers;      /* of each variable; 0: none */
  struct origin *origins; /* of each */
  uint32_t *fused;        /* of each: 1 + the variable of the fused loop that it is, or is a part of; 0: none */
  bool tensorized;        /* warps compute by intrinsics */
  uint32_t *lanes;        /* of each variable of a block: the number of elements copied at once; 0: none */
  bool *constant;         /* of each buffer: it is packed ahead of all runs, or need not be */
};

/* ---- Numbers ---- */

/* Of two numbers; constants are folded. */
static uint32_t combine(struct search_estimator *d, int op, uint32_t a, uint32_t b) {
  assert(a < d->number_count && b < d->number_count);
  struct model_number x = d->numbers[a], y = d->numbers[b];
  if (x.op != MODEL_CONSTANT || y.op != MODEL_CONSTANT) return model_add_number(d, (struct model_number){op, a, b, 0});
  return model_add_constant(d, op == MODEL_TIMES ? x.value * y.value : (x.value + y.value - 1) / y.value);
}

static int64_t extent_of(const struct tir *ir, tir_stmt loop) {
  tir_expr extent = tir_stmt_at(ir, loop)->loop.extent;
  return tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : 1;
}

static void read_draw(struct reading *r, const struct vm_instruction *in) {
  struct search_estimator *d = r->estimator;
  if (in->kind == VM_SampleCategorical) {
    const struct vm_value *list = vm_attrs_of(r->steps, in);
    d->tables = realloc(d->tables, (d->table_size + list->count) * sizeof *d->tables);
    if (!d->tables) abort();
    for (uint32_t i = 0; i < list->count; i++) d->tables[d->table_size + i] = r->steps->values[list->first + i].integer;
    r->numbers[in->first_output] =
        model_add_number(d, (struct model_number){MODEL_CHOICE, in->decision, d->table_size, 0});
    d->table_size += list->count;
    return;
  }
  for (uint32_t i = 0; i < in->outputs; i++)
    r->numbers[in->first_output + i] =
        model_add_number(d, (struct model_number){MODEL_DECISION, in->decision + i, 0, 0});
}

static uint32_t number_of(struct reading *r, const struct vm_value *v) {
  return model_number_of(r->estimator, r->numbers, v);
}

/* An open factor is what the others leave of the loop. */
static void read_split(struct reading *r, const struct vm_instruction *in) {
  struct search_estimator *d = r->estimator;
  const struct vm_value *inputs = vm_inputs_of(r->steps, in);
  uint32_t product = 0, open = UINT32_MAX;
  for (uint32_t i = 0; i < in->outputs; i++) {
    if (r->origins[inputs[0].ref].count == 1) r->origins[in->first_output + i] = r->origins[inputs[0].ref];
    r->fused[in->first_output + i] = r->fused[inputs[0].ref];
    uint32_t n = number_of(r, &inputs[i + 1]);
    r->numbers[in->first_output + i] = n;
    if (!n)
      open = i;
    else
      product = product ? combine(d, MODEL_TIMES, product, n) : n;
  }
  uint32_t whole = r->numbers[inputs[0].ref];
  if (open == UINT32_MAX || !whole) return;
  r->numbers[in->first_output + open] = product ? combine(d, MODEL_CEILING, whole, product) : whole;
}

/* What a loop is fused of, so far as that is known; one that is not fused is all of itself. */
static void join_origins(struct reading *r, const struct vm_instruction *in, struct origin *out) {
  const struct vm_value *inputs = vm_inputs_of(r->steps, in);
  for (uint32_t i = 0; i < in->inputs; i++) {
    const struct origin *o = &r->origins[inputs[i].ref];
    if (!o->count || out->count + o->count > MODEL_PARTS) {
      out->count = 0;
      return;
    }
    for (uint32_t k = 0; k < o->count; k++, out->count++) {
      out->numbers[out->count] = o->count == 1 ? r->numbers[inputs[i].ref] : o->numbers[k];
      out->roots[out->count] = o->roots[k];
    }
  }
}

static void read_fuse(struct reading *r, const struct vm_instruction *in) {
  const struct vm_value *inputs = vm_inputs_of(r->steps, in);
  uint32_t product = 0;
  join_origins(r, in, &r->origins[in->first_output]);
  r->fused[in->first_output] = in->first_output + 1;
  for (uint32_t i = 0; i < in->inputs; i++) {
    uint32_t n = r->numbers[inputs[i].ref];
    if (!n) return;
    product = product ? combine(r->estimator, MODEL_TIMES, product, n) : n;
  }
  r->numbers[in->first_output] = product;
}

/* Notes what loops and blocks were when they were given or annotated: later instructions change them. */
static void watch_loops(void *watcher, const struct vm_schedule *then, uint32_t at) {
  struct reading *r = watcher;
  const struct vm_instruction *in = &r->steps->instructions[at];
  if (in->kind == VM_GetLoops || in->kind == VM_Annotate)
    r->statements[at] = vm_statement(then, vm_inputs_of(r->steps, in)->ref);
  if (in->kind != VM_GetLoops) return;
  uint32_t end = in->first_output + in->outputs;
  if (!r->seen[at]) r->seen[at] = calloc(end + 1, sizeof *r->seen[at]);
  if (!r->seen[at]) abort();
  for (uint32_t v = 0; v < end; v++)
    r->seen[at][v] = r->steps->types[v] == VM_T_LOOP ? vm_statement(then, v) : TIR_NONE;
  for (uint32_t v = in->first_output; v < end; v++) r->extents[v] = extent_of(then->ir, r->seen[at][v]);
}

/* The loops over tiles and parts of a softmax's columns, where the parts are drawn (FuseOnlineSoftmax): these are as
 * many as drawn, and the tiles, of which there are as many as there were then, are divided among them. */
static void read_softmax_loops(struct reading *r, const struct vm_instruction *in) {
  const struct vm_instruction *fused = NULL;
  uint32_t block = vm_inputs_of(r->steps, in)->ref;
  for (uint32_t i = 0; i < r->steps->count && !fused; i++) {
    const struct vm_instruction *other = &r->steps->instructions[i];
    if (other->kind == VM_FuseOnlineSoftmax && other->first_output == block) fused = other;
  }
  if (!fused || in->outputs < 2) return;
  const struct vm_value *parts = &vm_inputs_of(r->steps, fused)[6];
  uint32_t last = in->first_output + in->outputs - 1, number = parts->kind == VM_REF ? number_of(r, parts) : 0;
  if (!number || r->numbers[last] || r->numbers[last - 1]) return;
  uint32_t all = model_add_constant(r->estimator, r->extents[last] * r->extents[last - 1]);
  r->numbers[last] = combine(r->estimator, MODEL_CEILING, all, number);
  r->numbers[last - 1] = number;
  for (uint32_t v = last - 1; v <= last; v++) r->origins[v] = (struct origin){.count = 1, .roots = {v}};
}

/* Loops that were given before have their numbers; others are as long as they were then. */
static void read_loops(struct reading *r, uint32_t at) {
  const struct vm_instruction *in = &r->steps->instructions[at];
  const tir_stmt *seen = r->seen[at];
  if (seen) read_softmax_loops(r, in);
  for (uint32_t i = in->first_output; seen && i < in->first_output + in->outputs; i++) {
    for (uint32_t v = 0; v < in->first_output && !r->numbers[i]; v++)
      if (r->steps->types[v] == VM_T_LOOP && seen[v] == seen[i])
        r->numbers[i] = r->numbers[v], r->origins[i] = r->origins[v], r->fused[i] = r->fused[v];
    if (r->numbers[i]) continue;
    r->numbers[i] = model_add_constant(r->estimator, r->extents[i]);
    r->origins[i] = (struct origin){.count = 1, .roots = {i}};
  }
}

static void read_note(struct reading *r, const struct vm_instruction *in) {
  const struct vm_value *inputs = vm_inputs_of(r->steps, in), *key = vm_attrs_of(r->steps, in);
  const char *name = r->steps->text + key->first;
  r->tensorized = r->tensorized || !strcmp(name, "warp_execution");
  if (!strcmp(name, "meta_schedule.cooperative_fetch") && inputs[0].kind == VM_REF)
    r->lanes[inputs[0].ref] = number_of(r, &inputs[1]);
  if (!strcmp(name, "meta_schedule.parallel")) r->estimator->jobs = number_of(r, &inputs[1]);
  if (!strncmp(name, "meta_schedule.unroll_", 21)) r->estimator->unroll = number_of(r, &inputs[1]);
  if (!strcmp(name, TIR_PIPELINE_OVERLAP)) r->estimator->overlap = number_of(r, &inputs[1]);
  if (!strcmp(name, TIR_PIPELINE_ALTERNATE)) r->estimator->turns = number_of(r, &inputs[1]);
  if (!strcmp(name, "meta_schedule.vectorize") && inputs[1].kind == VM_INT)
    r->estimator->most_vector = inputs[1].integer;
}

static void read_numbers(struct reading *r) {
  for (uint32_t i = 0; i < r->steps->count; i++) {
    const struct vm_instruction *in = &r->steps->instructions[i];
    switch (in->kind) {
    case VM_SampleCategorical:
    case VM_SamplePartitionedTile:
    case VM_SamplePerfectTile: read_draw(r, in); break;
    case VM_Split: read_split(r, in); break;
    case VM_Fuse: read_fuse(r, in); break;
    case VM_Annotate: read_note(r, in); break;
    case VM_GetLoops: read_loops(r, i); break;
    default: break;
    }
  }
}

/* ---- Nests ---- */

/* The variable of a loop of the whole sketch; UINT32_MAX: no instruction gives it. */
static uint32_t variable_of_loop(const struct reading *r, tir_stmt loop) {
  for (uint32_t v = 0; v < r->steps->variables; v++)
    if (r->steps->types[v] == VM_T_LOOP && r->numbers[v] && vm_statement(r->made, v) == loop) return v;
  return UINT32_MAX;
}

static uint32_t number_of_loop(const struct reading *r, tir_stmt loop) {
  uint32_t v = variable_of_loop(r, loop);
  return v == UINT32_MAX ? 0 : r->numbers[v];
}

/* The iteration variable that parts of the root loop move: that of a loop of the nest which moves no other. False:
 * there is none. */
static bool iter_of_root(const struct reading *r, const struct model_nest *nest, const tir_stmt *statements,
                         uint32_t root, uint32_t *iter) {
  for (uint32_t i = 0; i < nest->loop_count; i++) {
    uint32_t v = variable_of_loop(r, statements[i]), iters = nest->loops[i].iters;
    if (v == UINT32_MAX || r->origins[v].count != 1 || r->origins[v].roots[0] != root) continue;
    if (!iters || (iters & (iters - 1))) continue;
    *iter = (uint32_t)__builtin_ctz(iters);
    return true;
  }
  return false;
}

/* What each part of a fused loop moves. */
static void read_parts(const struct reading *r, struct model_nest *nest, const tir_stmt *statements) {
  for (uint32_t i = 0; i < nest->loop_count; i++) {
    uint32_t v = variable_of_loop(r, statements[i]);
    struct model_loop *l = &nest->loops[i];
    if (v == UINT32_MAX || r->origins[v].count < 2) continue;
    bool known = true;
    for (uint32_t k = 0; k < r->origins[v].count; k++) {
      l->parts[k] = r->origins[v].numbers[k];
      known = known && iter_of_root(r, nest, statements, r->origins[v].roots[k], &l->part_iters[k]);
    }
    if (known) l->part_count = r->origins[v].count;
  }
}

static bool is_dense(const struct model_nest *nest, uint32_t iter) {
  bool moves = false;
  for (uint32_t i = 0; i < nest->access_count; i++) {
    int64_t step = nest->accesses[i].steps[iter];
    if (nest->accesses[i].constant && step) step = 1;
    if (step != 0 && step != 1) return false;
    moves = moves || step == 1;
  }
  return moves;
}

static void read_iters(const struct reading *r, struct model_nest *nest, tir_block block) {
  struct tir *ir = r->made->ir;
  struct tir_span span = tir_block_at(ir, block)->iters;
  nest->iter_count = span.count < MODEL_ITERS ? span.count : MODEL_ITERS;
  for (uint32_t k = 0; k < nest->iter_count; k++) {
    const struct tir_iter *iter = &tir_iters(ir, block)[k];
    tir_expr extent = ir->vars.at[iter->var].extent;
    nest->iters[k].extent = extent && tir_is_int(ir, extent) ? tir_at(ir, extent)->imm : 1;
    nest->iters[k].reduces = iter->kind == TIR_REDUCE;
  }
}

static void read_axis(const struct tir *ir, tir_stmt loop, struct model_loop *l) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, loop);
  enum tir_axis axis = tir_loop_axis(ir, loop);
  l->axis = tir_is_block_axis(axis) || axis == TIR_CLUSTER_X ? MODEL_BLOCKS
            : tir_is_thread_axis(axis)                       ? MODEL_THREADS
            : n->loop_kind == TIR_THREAD_BINDING             ? MODEL_VIRTUAL
                                                             : MODEL_SERIAL;
  l->kind = n->loop_kind == TIR_PARALLEL     ? MODEL_PARALLEL
            : n->loop_kind == TIR_VECTORIZED ? MODEL_VECTOR
            : n->loop_kind == TIR_UNROLLED   ? MODEL_UNROLLED
                                             : MODEL_PLAIN;
  tir_expr stages = tir_annotation(ir, n->annotations, TIR_PIPELINE_STAGE);
  const struct tir_expr_node *list = stages ? tir_at(ir, stages) : NULL;
  for (uint32_t i = 0; list && list->kind == TIR_LIST && i < list->count; i++) {
    int64_t stage = tir_at(ir, tir_operands(ir, list->operands)[i])->imm;
    if (stage > l->ahead) l->ahead = (uint32_t)stage;
  }
}

/* Which of what a fused loop moves a part of it moves depends on how long the parts are: any may move all of it. */
static void share_iters(const struct reading *r, struct model_nest *nest, const tir_stmt *statements) {
  uint32_t fused[MODEL_LOOPS] = {0};
  for (uint32_t i = 0; i < nest->loop_count; i++) {
    uint32_t v = variable_of_loop(r, statements[i]);
    fused[i] = v == UINT32_MAX ? 0 : r->fused[v];
    for (uint32_t k = 0; k < i && fused[i]; k++)
      if (fused[k] == fused[i]) nest->loops[i].iters |= nest->loops[k].iters;
  }
  for (uint32_t i = nest->loop_count; i-- > 0;)
    for (uint32_t k = 0; k < i && fused[i]; k++)
      if (fused[k] == fused[i]) nest->loops[k].iters = nest->loops[i].iters;
}

/* The loops around a block, outermost first. Returns whether every one has its number. */
static bool read_nest_loops(const struct reading *r, struct model_nest *nest, tir_block block, tir_stmt statement,
                            tir_stmt *statements) {
  struct tir *ir = r->made->ir;
  tir_stmt around[MODEL_LOOPS];
  uint32_t count = 0;
  bool known = true;
  for (tir_stmt p = tir_stmt_at(ir, statement)->parent; p && count < MODEL_LOOPS; p = tir_stmt_at(ir, p)->parent)
    if (tir_is(ir, p, TIR_LOOP)) around[count++] = p;
  nest->loop_count = count;
  for (uint32_t i = 0; i < count; i++) {
    tir_stmt s = statements[i] = around[count - 1 - i];
    struct model_loop *l = &nest->loops[i];
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    *l = (struct model_loop){.extent = number_of_loop(r, s), .alone = n->first[TIR_BODY] == n->last[TIR_BODY]};
    read_axis(ir, s, l);
    if (!l->extent) known = false, l->extent = model_add_constant(r->estimator, extent_of(ir, s));
    for (uint32_t k = 0; k < nest->iter_count; k++) {
      if (!tir_uses_var(ir, tir_iters(ir, block)[k].binding, n->loop.var)) continue;
      l->iters |= 1u << k;
      l->reduces = l->reduces || nest->iters[k].reduces;
    }
  }
  if (r->estimator->machine.gpu.sms < 1 && !r->estimator->as_is) share_iters(r, nest, statements);
  read_parts(r, nest, statements);
  return known;
}

/* Threads that hold together what a GPU's nest touches: a warp group or a warp, where that is fragments. */
static double team_of(const struct reading *r, const struct model_nest *nest) {
  const struct tir *ir = r->made->ir;
  double team = 1;
  for (uint32_t i = 0; i < nest->access_count; i++) {
    tir_buffer b = nest->accesses[i].buffer;
    if (tir_is_group_fragment(ir, b)) return TIR_GROUP;
    if (tir_is_fragment(ir, b)) team = TIR_WARP;
  }
  return team;
}

/* Elements that a thread copies at once, where the block is noted to be shared out among threads. */
static uint32_t lanes_of(const struct reading *r, tir_block block) {
  for (uint32_t v = 0; v < r->steps->variables; v++)
    if (r->lanes[v] && vm_statement(r->made, v) == block) return r->lanes[v];
  return 0;
}

/* How rows of what the nest stores are laid apart: as the last entry has it. */
static void read_alignment(const struct tir *ir, struct model_nest *nest, tir_block block) {
  tir_expr entry;
  for (uint32_t i = 0; (entry = tir_row_entry(ir, block, i)); i++) {
    int64_t numbers[4];
    for (int k = 0; k < 4; k++) numbers[k] = tir_at(ir, tir_operands(ir, tir_at(ir, entry)->operands)[k])->imm;
    if (numbers[0] != 0 || numbers[1] < 0 || numbers[1] + 1 >= nest->accesses[0].rank) continue;
    nest->align_dimension = (uint32_t)numbers[1] + 1;
    nest->align_factor = numbers[2], nest->align_offset = numbers[3];
  }
}

/* A nest whose tiles another decides: they share loops, and a buffer that one writes and the other reads. */
static bool follow(struct model_nest *nest, struct model_nest *other, uint32_t shared) {
  for (uint32_t i = 0; i < nest->access_count; i++)
    for (uint32_t k = 0; k < other->access_count; k++) {
      const struct model_access *a = &nest->accesses[i], *b = &other->accesses[k];
      if (a->buffer != b->buffer || !(a->written || b->written)) continue;
      nest->follows = other, nest->at = shared, nest->access = k;
      return true;
    }
  return false;
}

static void compare_loops(struct search_estimator *d, tir_stmt (*loops)[MODEL_LOOPS]) {
  d->shared = calloc((size_t)d->nest_count * d->nest_count + 1, sizeof *d->shared);
  if (!d->shared) abort();
  for (uint32_t i = 0; i < d->nest_count; i++)
    for (uint32_t k = 0; k < d->nest_count; k++) {
      uint32_t *shared = &d->shared[i * d->nest_count + k];
      while (*shared < d->nests[i].loop_count && *shared < d->nests[k].loop_count &&
             loops[i][*shared] == loops[k][*shared])
        ++*shared;
    }
}

/* Loops around a nest that all others that touch the buffer of this access are in too. */
static uint32_t near_of(const struct search_estimator *d, uint32_t nest, uint32_t access) {
  uint32_t near = d->nests[nest].loop_count;
  for (uint32_t k = 0; k < d->nest_count; k++)
    for (uint32_t a = 0; a < d->nests[k].access_count; a++)
      if (d->nests[k].accesses[a].buffer == d->nests[nest].accesses[access].buffer && model_shared(d, nest, k) < near)
        near = model_shared(d, nest, k);
  return near;
}

static uint32_t copy_of(const struct search_estimator *d, uint32_t nest, uint32_t access) {
  for (uint32_t k = 0; k < d->nest_count; k++)
    if (k != nest && d->nests[k].access_count &&
        d->nests[k].accesses[0].buffer == d->nests[nest].accesses[access].buffer)
      return k + 1;
  return 0;
}

/* What is widened where it is stored is so in the nest that stores it, too. */
static void join_copy(struct search_estimator *d, struct model_access *a) {
  if (!a->in_copy || !a->copy) return;
  struct model_nest *copy = &d->nests[a->copy - 1];
  a->wide = copy->wide;
  copy->accesses[0].in_copy = true;
  copy->accesses[0].wide = copy->wide;
}

/* Whether a store is in the init of its block. */
static bool is_init(const struct tir *ir, tir_stmt store, tir_block block) {
  tir_stmt s = store;
  while (tir_stmt_at(ir, s)->parent != block) s = tir_stmt_at(ir, s)->parent;
  return tir_stmt_at(ir, s)->list == TIR_INIT;
}

/* The number of what an instruction notes on a block; 0: none does. */
static uint32_t note_of(struct reading *r, tir_block block, const char *note) {
  for (uint32_t i = 0; i < r->steps->count; i++) {
    const struct vm_instruction *in = &r->steps->instructions[i];
    if (in->kind != VM_Annotate) continue;
    const struct vm_value *inputs = vm_inputs_of(r->steps, in), *key = vm_attrs_of(r->steps, in);
    if (!strcmp(r->steps->text + key->first, note) && vm_statement(r->made, inputs[0].ref) == block)
      return number_of(r, &inputs[1]);
  }
  return 0;
}

/* The name of the tensor intrinsic that a block around it is for, or NULL. */
static const char *intrinsic_of(const struct tir *ir, tir_block block) {
  for (tir_block b = block; b; b = tir_parent_block(ir, b)) {
    tir_expr name = tir_annotation(ir, tir_stmt_at(ir, b)->annotations, "meta_schedule.auto_tensorize");
    if (name) return tir_at(ir, name)->kind == TIR_STRING_IMM ? tir_text(ir, tir_at(ir, name)->ref) : "";
  }
  return NULL;
}

/* Products of short types, as dot products of neighbours where the machine has these: nothing is widened then, but by
 * pairs of int16 what each lane has of its own. */
static void read_dots(const struct reading *r, struct model_nest *nest, tir_block block, tir_stmt store,
                      const tir_stmt *loops) {
  const struct tir *ir = r->made->ir;
  const char *intrinsic = intrinsic_of(ir, block);
  bool tiles = intrinsic && !strncmp(intrinsic, "amx_", 4);
  int width = tir_dot_width(ir, store);
  if (!width && tiles && strstr(intrinsic, "x32_f16")) width = 2;
  uint32_t last = nest->loop_count - 1;
  if (!width || r->estimator->machine.gpu.sms > 0) return;
  unsigned all = r->estimator->machine.dots, has = all & (width == 4 ? TIR_DOTS_OF_BYTES : 1u << TIR_DOT_BFLOATS);
  bool by_pairs = width == 4 && all >> TIR_DOT_PAIRS & 1 && tir_loop_extent(ir, loops[last]) == 2;
  nest->dots = has > 0 && nest->loop_count > 1 && nest->loops[last].reduces &&
               nest->loops[last - 1].kind == MODEL_VECTOR && (by_pairs || tir_loop_extent(ir, loops[last]) == width);
  nest->tensorized = intrinsic != NULL;
  if (tiles) {
    nest->tile_rows = atof(intrinsic + 4);
    nest->tile_products = nest->tile_rows * MODEL_TILE_SIDE * MODEL_TILE_SIDE * width;
  }
  bool multiplies = nest->dots || nest->tensorized;
  if (multiplies) nest->simple = 1;
  for (uint32_t a = 0; a < nest->access_count && multiplies; a++) {
    bool each = by_pairs && nest->dots && model_is_moved(nest, &nest->accesses[a], last - 1);
    nest->accesses[a].in_copy =
        by_pairs && nest->dots && nest->accesses[a].widened && nest->accesses[a].passed && !each;
    nest->accesses[a].widened = nest->accesses[a].widened && each;
  }
  if (nest->dots && !nest->tensorized && width == 2) nest->simple = r->estimator->machine.bfloats;
}

/* Products of two bytes, elements of buffers or zero beside them, that the machine adds as words which slide. */
static bool may_slide(const struct reading *r, const struct model_nest *nest, tir_stmt store) {
  const struct search_machine *m = &r->estimator->machine;
  tir_type sum = tir_type_of(r->made->ir, tir_as(r->made->ir, store, TIR_STORE)->store.value);
  bool bytes = nest->access_count == 3 && sum == TIR_T_I32;
  for (uint32_t a = 0; a < nest->access_count && bytes; a++)
    bytes = nest->accesses[a].written || (nest->accesses[a].widened && nest->accesses[a].bytes == 1);
  return bytes && m->slides && nest->sums && !nest->dots && !nest->tensorized && m->dots & TIR_DOTS_OF_BYTES;
}

/* Returns whether every loop has its number. */
static bool read_nest(struct reading *r, struct model_nest *nest, tir_block block, tir_stmt store, tir_stmt *loops) {
  struct tir *ir = r->made->ir;
  tir_expr value = tir_as(ir, store, TIR_STORE)->store.value;
  read_iters(r, nest, block);
  nest->inside = 1;
  double conversions = model_read_accesses(r->estimator, ir, r->constant, nest, block, store);
  for (uint32_t k = 0; k < nest->iter_count; k++) nest->iters[k].dense = is_dense(nest, k);
  nest->sums = tir_at(ir, value)->kind == TIR_ADD;
  nest->lanes = lanes_of(r, block);
  read_alignment(ir, nest, block);
  nest->team = team_of(r, nest);
  bool fragments = nest->team > 1 && r->estimator->machine.gpu.sms > 0; /* elsewhere they are hidden behind memory */
  nest->simple += fragments ? conversions : 0;
  tir_expr tiled = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, "msched.spatial_tile");
  nest->placed = (tiled && !tir_is_const(ir, tiled, 0)) ||
                 tir_annotation(ir, tir_stmt_at(ir, block)->annotations, "meta_schedule.inline_rule");
  nest->promoted = tir_annotation(ir, tir_stmt_at(ir, block)->annotations, "msched.register_tile") != 0;
  nest->init_before = note_of(r, block, "msched.init_before_tiles");
  nest->wide = note_of(r, block, TIR_WIDEN);
  nest->nontemporal = note_of(r, block, TIR_NONTEMPORAL);
  bool known = read_nest_loops(r, nest, block, store, loops);
  read_dots(r, nest, block, store, loops);
  nest->slides = may_slide(r, nest, store);
  return known;
}

/* ---- Constants: what packs them is no part of a run (tir/derive/packing.c) ---- */

static bool packs(const struct reading *r, tir_block block) {
  const struct tir *ir = r->made->ir;
  tir_func f = tir_find_func(ir, "main");
  return tir_annotation(ir, ir->funcs.at[f].attrs, "layout_free_buffers") &&
         tir_annotation(ir, tir_stmt_at(ir, block)->annotations, "meta_schedule.layout_rewrite_preproc");
}

/* What several blocks read stays as it is (rules/postproc/rewrite_layout.lua). */
static bool has_one_reader(const struct tir *ir, tir_buffer buffer) {
  uint32_t u = tir_buffer_at(ir, buffer)->readers;
  return u && !ir->uses.at[u].next;
}

static void find_constants(struct reading *r) {
  const struct tir *ir = r->made->ir;
  tir_func f = tir_find_func(ir, "main");
  const struct tir_func_node *n = &ir->funcs.at[f];
  tir_expr list = r->estimator->machine.gpu.sms < 1 ? tir_annotation(ir, n->attrs, "layout_free_buffers") : TIR_NONE;
  const struct tir_expr_node *items = list ? tir_at(ir, list) : NULL;
  r->constant = calloc(ir->buffers.count + 1, sizeof *r->constant);
  if (!r->constant) abort();
  for (uint32_t i = 0; items && items->kind == TIR_LIST && i < items->count; i++) {
    tir_expr e = tir_operands(ir, items->operands)[i];
    bool fits = tir_is_int(ir, e) && tir_at(ir, e)->imm >= 0 && tir_at(ir, e)->imm < n->params.count;
    if (!fits) continue;
    tir_buffer buffer = ir->params.at[n->params.first + tir_at(ir, e)->imm].buffer;
    r->constant[buffer] = has_one_reader(ir, buffer);
  }
  for (tir_stmt s = n->body; items && s; s = tir_next(ir, s, n->body)) {
    tir_block block = tir_is(ir, s, TIR_STORE) ? tir_parent_block(ir, s) : TIR_NONE;
    if (block && packs(r, block)) r->constant[tir_as(ir, s, TIR_STORE)->store.buffer] = true;
  }
}

/* Whether the nest writes, and computes nothing, what products of tiles or dot products read. */
static bool is_tile_copy(const struct search_estimator *d, const struct model_nest *nest) {
  if (nest->simple > 0 || nest->calls > 0 || nest->divisions > 0 || !nest->access_count) return false;
  for (uint32_t a = 0; a < nest->access_count; a++)
    if (nest->accesses[a].widened) return false;
  for (uint32_t k = 0; k < d->nest_count; k++) {
    bool reads = d->nests[k].tile_products > 0 || d->nests[k].dots;
    for (uint32_t a = 0; a < d->nests[k].access_count && reads; a++)
      if (!d->nests[k].accesses[a].written && d->nests[k].accesses[a].buffer == nest->accesses[0].buffer) return true;
  }
  return false;
}

/* The kernel of the first products that warps compute, which are no nests; TIR_NONE: there are none. */
static tir_stmt first_products(const struct tir *ir, tir_func f) {
  tir_stmt body = ir->funcs.at[f].body, root = tir_root_block(ir, f), s = body;
  while (s && !(tir_is(ir, s, TIR_BLOCK) &&
                tir_annotation(ir, tir_stmt_at(ir, s)->annotations, "meta_schedule.auto_tensorize")))
    s = tir_next(ir, s, body);
  while (s && tir_stmt_at(ir, s)->parent && tir_stmt_at(ir, s)->parent != root) s = tir_stmt_at(ir, s)->parent;
  return s;
}

/* Of all kernels, or of those before `end` alone (TIR_NONE: of all). */
static void read_nests(struct reading *r, tir_stmt end) {
  struct search_estimator *d = r->estimator;
  struct tir *ir = r->made->ir;
  tir_stmt body = ir->funcs.at[tir_find_func(ir, "main")].body;
  uint32_t stores = 0;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) stores += tir_is(ir, s, TIR_STORE);
  d->nests = calloc(stores + 1, sizeof *d->nests);
  tir_stmt(*loops)[MODEL_LOOPS] = calloc(stores + 1, sizeof *loops);
  bool *known = calloc(stores + 1, sizeof *known);
  if (!d->nests || !loops || !known) abort();
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) {
    if (!tir_is(ir, s, TIR_STORE)) continue;
    tir_block block = tir_parent_block(ir, s);
    if (!block || tir_buffer_at(ir, tir_stmt_at(ir, s)->store.buffer)->rank > MODEL_RANK || is_init(ir, s, block))
      continue;
    if (packs(r, block) || (end && tir_compare_position(ir, s, end) >= 0)) continue;
    known[d->nest_count] = read_nest(r, &d->nests[d->nest_count], block, s, loops[d->nest_count]);
    d->nest_count++;
  }
  compare_loops(d, loops);
  for (uint32_t i = 0; i < d->nest_count; i++) d->nests[i].tile_copy = is_tile_copy(d, &d->nests[i]);
  for (uint32_t i = 0; i < d->nest_count; i++)
    for (uint32_t k = 0; k < d->nest_count && !d->as_is && !known[i] && !d->nests[i].follows; k++)
      if (known[k]) follow(&d->nests[i], &d->nests[k], model_shared(d, i, k));
  for (uint32_t i = 0; i < d->nest_count; i++)
    for (uint32_t a = 0; a < d->nests[i].access_count; a++) {
      d->nests[i].accesses[a].near = near_of(d, i, a);
      d->nests[i].accesses[a].copy = copy_of(d, i, a);
      join_copy(d, &d->nests[i].accesses[a]);
    }
  free(loops);
  free(known);
}

/* Cycles of a multiprocessor for a tensor-core operation of mma.sync or wgmma; 0: it is none. */
static double operation_cycles(const struct tir *ir, const struct search_gpu *gpu, tir_expr call) {
  const tir_expr *args = tir_at(ir, call)->kind == TIR_CALL ? tir_operands(ir, tir_at(ir, call)->operands) : NULL;
  enum { SIDE = 16, DEEP = 256 /* bits of a row of operand a */ };
  if (args && tir_is_device_call(ir, call, TIR_MMA_SYNC) && tir_at(ir, args[2])->kind == TIR_DATA) {
    int bits = tir_type_bits(tir_buffer_at(ir, tir_at(ir, args[2])->ref)->type);
    double results = SIDE * SIDE, deep = (double)DEEP / bits;
    return results * deep / (gpu->tensor_products * gpu->tensor_alone * SIDE / bits);
  }
  if (!args) return 0;
  bool in_shared = tir_is_device_call(ir, call, TIR_WGMMA_MMA);
  /* Shorter elements are as many more in a product as they take less time. */
  bool grouped = in_shared || tir_is_device_call(ir, call, TIR_WGMMA_MMA_REGISTERS);
  return grouped ? 4.0 * SIDE * (double)tir_at(ir, args[2])->imm * SIDE / gpu->tensor_products : 0;
}

/* Those of all tensor-core operations: how loops are tiled does not change how many there are. */
static void read_operations(struct reading *r) {
  struct search_estimator *d = r->estimator;
  const struct tir *ir = r->made->ir;
  tir_stmt body = ir->funcs.at[tir_find_func(ir, "main")].body;
  if (d->machine.gpu.sms < 1 || d->machine.gpu.tensor_products <= 0) return;
  for (tir_stmt s = body; s; s = tir_next(ir, s, body)) {
    if (!tir_is(ir, s, TIR_EVALUATE)) continue;
    double cycles = operation_cycles(ir, &d->machine.gpu, tir_as(ir, s, TIR_EVALUATE)->evaluate.value);
    for (tir_stmt p = s; p && cycles > 0; p = tir_stmt_at(ir, p)->parent)
      if (tir_is(ir, p, TIR_LOOP)) cycles *= (double)extent_of(ir, p);
    d->multiplying += cycles / d->machine.gpu.sms;
  }
}

/* ---- Choices ---- */

struct tiles {
  struct model_draw *draw;
  int64_t most; /* of the last part; 0: no limit */
  const int64_t *divisors;
  uint32_t divisor_count;
  int64_t parts[MODEL_LOOPS];
};

enum { MOST_CHOICES = 1 << 16 };

/* All ways to be a product of so many parts, in order. */
static void list_tiles(struct tiles *t, uint32_t at, int64_t rest) {
  assert(at < t->draw->width && rest > 0);
  struct model_draw *d = t->draw;
  if (at + 1 < d->width) {
    for (uint32_t i = 0; i < t->divisor_count && t->divisors[i] <= rest && d->choices < MOST_CHOICES; i++)
      if (rest % t->divisors[i] == 0) t->parts[at] = t->divisors[i], list_tiles(t, at + 1, rest / t->divisors[i]);
    return;
  }
  if (t->most > 0 && rest > t->most) return;
  t->parts[at] = rest;
  if ((d->choices & (d->choices - 1)) == 0) { /* doubled at each power of two */
    d->values = realloc(d->values, (size_t)(d->choices ? 2 * d->choices : 1) * d->width * sizeof *d->values);
    if (!d->values) abort();
  }
  memcpy(d->values + (size_t)d->choices++ * d->width, t->parts, d->width * sizeof *t->parts);
}

static void list_candidates(struct model_draw *d, uint32_t count) {
  d->choices = count;
  d->values = malloc((count + 1) * sizeof *d->values);
  if (!d->values) abort();
  for (uint32_t i = 0; i < count; i++) d->values[i] = i;
}

/* The choices of a draw; none where what they are depends on other draws: it stays as it is in the sketch. */
static void list_choices(struct reading *r, const struct vm_instruction *in, struct model_draw *out) {
  const struct vm_value *attrs = vm_attrs_of(r->steps, in);
  if (in->kind == VM_SampleCategorical) {
    list_candidates(out, attrs->count);
    return;
  }
  struct model_number extent = r->estimator->numbers[r->numbers[vm_inputs_of(r->steps, in)->ref]];
  if (extent.op != MODEL_CONSTANT || out->width > MODEL_LOOPS) return;
  struct tiles t = {.draw = out, .most = attrs[1].integer};
  int64_t *divisors = vm_divisors(extent.value, &t.divisor_count);
  t.divisors = divisors;
  list_tiles(&t, 0, extent.value);
  free(divisors);
}

static void read_choices(struct reading *r, const struct vm_instruction *in) {
  struct search_estimator *d = r->estimator;
  struct model_draw draw = {.decision = in->decision, .width = in->outputs};
  list_choices(r, in, &draw);
  if (!draw.choices) {
    free(draw.values);
    return;
  }
  d->draws = realloc(d->draws, (d->draw_count + 1) * sizeof *d->draws);
  if (!d->draws) abort();
  d->draws[d->draw_count++] = draw;
}

static void begin(struct reading *r) {
  size_t variables = r->steps->variables + 1;
  r->seen = calloc(r->steps->count + 1, sizeof *r->seen);
  r->statements = calloc(r->steps->count + 1, sizeof *r->statements);
  r->extents = calloc(variables, sizeof *r->extents);
  r->numbers = calloc(variables, sizeof *r->numbers);
  r->lanes = calloc(variables, sizeof *r->lanes);
  r->origins = calloc(variables, sizeof *r->origins);
  r->fused = calloc(variables, sizeof *r->fused);
  if (!r->seen || !r->statements || !r->extents || !r->numbers || !r->lanes || !r->origins || !r->fused) abort();
}

static void end(struct reading *r) {
  for (uint32_t i = 0; i < r->steps->count; i++) free(r->seen[i]);
  free(r->seen);
  free(r->statements);
  free(r->extents);
  free(r->numbers);
  free(r->lanes);
  free(r->origins);
  free(r->fused);
  free(r->constant);
}

static bool read_made(struct reading *r, const struct vm_plan *plan, ms_error *err) {
  struct search_estimator *d = r->estimator;
  read_numbers(r);
  find_constants(r);
  bool by_warps = r->tensorized && d->machine.gpu.sms >= 1;
  if (by_warps && !model_read_products(d, r->made->ir, plan, r->statements, r->numbers))
    return ms_fail(err, MS_INVALID_ARGUMENT, "what warps compute by these intrinsics is not estimated");
  read_nests(r, by_warps ? first_products(r->made->ir, tir_find_func(r->made->ir, "main")) : TIR_NONE);
  if (!by_warps) read_operations(r);
  for (uint32_t i = 0; !d->as_is && i < r->steps->count; i++) {
    const struct vm_instruction *in = &r->steps->instructions[i];
    if (in->kind == VM_SampleCategorical || in->kind == VM_SamplePerfectTile) read_choices(r, in);
  }
  return true;
}

bool model_read_sketch(struct search_estimator *d, struct vm_schedule *into, const struct vm_plan *plan,
                       const struct vm_draws *draws, ms_error *err) {
  struct reading r = {.estimator = d, .steps = vm_plan_steps(plan), .made = into};
  struct vm_draws watched = *draws;
  begin(&r);
  watched.after = watch_loops, watched.watcher = &r;
  model_add_constant(d, 1); /* number 0 stands for none */
  bool ok = vm_replay(into, plan, &watched, err);
  if (ok) d->sketch = vm_trace_copy(&into->trace);
  ok = ok && read_made(&r, plan, err);
  end(&r);
  return ok;
}

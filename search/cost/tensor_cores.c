/* What a candidate costs a GPU whose tensor cores multiply, in cycles of one multiprocessor, from its decisions alone;
 * of all others gpu.c says it. Its structure is the rule's (rules/rule/multi_level_tiling_tensor_core.lua): blocks,
 * warps or groups of them, the fragments of each along both sides of the product, and the reduction in steps, each of
 * tiles in shared memory. A block computes as fast as tensor cores multiply, or as shared memory feeds them; latencies
 * are hidden by other blocks and by copies that run ahead. As in gpu.c, the longest of what runs side by side counts
 * whole, and a part of the rest.
 *
 * Sources: Zhu et al., "ROLLER", OSDI 2022, section 4; NVIDIA's data sheets, for products a cycle; Luo et al.,
 * "Benchmarking and dissecting the Nvidia Hopper GPU architecture via microbenchmarking", 2024, for mma.sync's share of
 * them. */
#include "analytical.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading ---- */

struct product_reading {
  struct search_estimator *estimator;
  const struct tir *ir; /* the function as the sketch makes it */
  const struct vm_steps *steps;
  const tir_stmt *statements; /* by instruction */
  const uint32_t *numbers;    /* by variable */
  struct model_product *last; /* the product whose block was annotated last; NULL: none was yet */
  tir_stmt block;             /* and that block */
  bool divided;               /* the reduction of the next one was factored */
  double all_bytes;           /* of the function's arguments */
};

static const char *text_of(const struct vm_steps *steps, const struct vm_value *v) {
  return v->kind == VM_STRING ? steps->text + v->first : "";
}

static void begin_product(struct product_reading *r, const struct vm_product *p, tir_stmt block) {
  struct search_estimator *d = r->estimator;
  d->products = realloc(d->products, (d->product_count + 1) * sizeof *d->products);
  if (!d->products) abort();
  r->last = &d->products[d->product_count++];
  r->block = block;
  *r->last = (struct model_product){.m = (double)p->m,
                                    .n = (double)p->n,
                                    .k = (double)p->k,
                                    .bytes = (tir_type_bits(p->inputs) + 7) / 8,
                                    .warps = 1,
                                    .divided = r->divided,
                                    .all_bytes = r->all_bytes};
  r->divided = false;
}

/* The stage of the last statement of a pipelined loop; the outermost loop's annotation comes last, the innermost's
 * counts. */
static void read_stages(struct product_reading *r, struct model_product *p, const struct vm_value *list) {
  if (p->ahead || list->kind != VM_LIST || !list->count) return;
  p->ahead = model_number_of(r->estimator, r->numbers, &r->steps->values[list->first + list->count - 1]);
}

/* Of all arguments that are buffers of constant shapes. */
static double bytes_of_arguments(const struct tir *ir) {
  const struct tir_func_node *n = &ir->funcs.at[tir_find_func(ir, "main")];
  double bytes = 0;
  for (uint32_t i = 0; i < n->params.count; i++) {
    tir_buffer b = ir->params.at[n->params.first + i].buffer;
    if (b) bytes += (double)tir_allocation_bytes(ir, b);
  }
  return bytes;
}

static double bytes_of(const struct tir *ir, tir_buffer b) { return tir_type_bits(tir_buffer_at(ir, b)->type) / 8.0; }

/* The buffer that a block writes; TIR_NONE: it is none. */
static tir_buffer written_by(const struct tir *ir, tir_stmt block) {
  struct tir_span writes = tir_is(ir, block, TIR_BLOCK) ? tir_block_at(ir, block)->writes : (struct tir_span){0};
  return writes.count ? ir->regions.at[writes.first].buffer : TIR_NONE;
}

static void read_result(const struct product_reading *r, struct model_product *p, tir_stmt block) {
  tir_buffer to = written_by(r->ir, block);
  p->stored_bytes = to ? bytes_of(r->ir, to) : 0;
}

/* What threads copy together, so many elements at once, where that is drawn: the result, or an input to tiles in shared
 * memory, the first one's first. */
static void read_copy(struct product_reading *r, struct model_product *p, tir_stmt block, uint32_t number) {
  tir_buffer to = written_by(r->ir, block);
  if (!to) return;
  if (tir_buffer_memory(r->ir, to) == TIR_DEVICE_MEMORY) {
    if (number) p->stored = number, p->stored_bytes = bytes_of(r->ir, to);
    return;
  }
  if (number && p->lane_count < MODEL_COPIES) p->lanes[p->lane_count++] = number;
  if (p->brought_count < 2 && tir_requests_rows(r->ir, to, TIR_ROWS_CANONICAL))
    p->brought[p->brought_count++] = tir_copy_tile_of(r->ir, block);
}

static void read_annotation(struct product_reading *r, const struct vm_plan *plan, uint32_t at) {
  const struct vm_instruction *in = &r->steps->instructions[at];
  const struct vm_value *value = &vm_inputs_of(r->steps, in)[1];
  const char *key = text_of(r->steps, vm_attrs_of(r->steps, in)), *store = text_of(r->steps, value);
  struct vm_product product;
  if (!strcmp(key, "meta_schedule.auto_tensorize") && vm_find_product(plan, text_of(r->steps, value), &product))
    begin_product(r, &product, r->statements[at]), r->last->by_columns = strstr(store, "_trans") != NULL,
                                                   r->last->a_by_columns = strstr(store, "_columns") != NULL;
  struct model_product *p = r->last;
  if (!p) return;
  if (!strncmp(store, "wgmma_store_", 12) && strstr(store, "_global")) p->straight = true;
  if (!strcmp(key, TIR_PIPELINE_STAGE)) read_stages(r, p, value);
  if (!strcmp(key, "warp_execution") && value->kind == VM_INT) p->warps = (double)value->integer;
  uint32_t number = model_number_of(r->estimator, r->numbers, value);
  if (!strcmp(key, "msched.lane_stores")) p->by_lanes = p->straight = true, read_result(r, p, r->statements[at]);
  if (!strcmp(key, "msched.epilogue_tile")) p->epilogue = number, read_result(r, p, r->statements[at]);
  if (!strcmp(key, TIR_TENSOR_STORES)) p->tensor_stores = number;
  if (!strcmp(key, TIR_PIPELINE_BULK)) p->bulk = number;
  if (!strcmp(key, TIR_PIPELINE_PRODUCER)) p->producer = number;
  if (!strcmp(key, TIR_PIPELINE_BLOCKS)) p->persistent = number;
  if (!strcmp(key, TIR_PIPELINE_MULTICAST)) p->multicast = number;
  if (!strcmp(key, "meta_schedule.cooperative_fetch")) read_copy(r, p, r->statements[at], number);
}

/* Whether a loop was given as one of the block's. */
static bool is_loop_of(const struct product_reading *r, uint32_t loop, tir_stmt block) {
  for (uint32_t i = 0; i < r->steps->count; i++) {
    const struct vm_instruction *in = &r->steps->instructions[i];
    if (in->kind == VM_GetLoops && loop >= in->first_output && loop < in->first_output + in->outputs)
      return r->statements[i] == block;
  }
  return false;
}

/* The parts that a loop of the product's block is drawn to be of. */
static void read_tile(struct product_reading *r, const struct vm_instruction *in) {
  struct model_product *p = r->last;
  if (!p || p->tile_count == MODEL_TILES || in->outputs > MODEL_PARTS) return;
  if (!is_loop_of(r, vm_inputs_of(r->steps, in)->ref, r->block)) return;
  struct model_tile_of *tile = &p->tiles[p->tile_count++];
  tile->count = in->outputs;
  for (uint32_t i = 0; i < in->outputs; i++) tile->parts[i] = r->numbers[in->first_output + i];
}

/* Blocks, warps and fragments of m and n; steps and their depth of k. */
static bool is_complete(const struct model_product *p) {
  if (p->tile_count < 3) return false;
  const struct model_tile_of *last = &p->tiles[p->tile_count - 3];
  return last[0].count >= 4 && last[1].count >= 4 && last[2].count >= 2;
}

bool model_read_products(struct search_estimator *d, const struct tir *ir, const struct vm_plan *plan,
                         const tir_stmt *statements, const uint32_t *numbers) {
  assert(!d->product_count && statements && numbers);
  struct product_reading r = {
      .estimator = d, .ir = ir, .steps = vm_plan_steps(plan), .statements = statements, .numbers = numbers};
  r.all_bytes = bytes_of_arguments(ir);
  for (uint32_t i = 0; i < r.steps->count && d->machine.gpu.tensor_products > 0; i++) {
    const struct vm_instruction *in = &r.steps->instructions[i];
    r.divided = r.divided || in->kind == VM_RFactor;
    if (in->kind == VM_Annotate) read_annotation(&r, plan, i);
    if (in->kind == VM_SamplePerfectTile || in->kind == VM_SamplePartitionedTile) read_tile(&r, in);
  }
  for (uint32_t i = 0; i < d->product_count; i++)
    if (!is_complete(&d->products[i])) return false;
  return d->product_count > 0;
}

/* ---- Estimating ---- */

static const double SHARED_BYTES = 128; /* that shared memory gives a cycle */
static const double SUBCORES = 4;       /* of a multiprocessor, each with tensor cores of its own, which a warp uses */
static const double ACCESS = 16, ACCUMULATOR = 4; /* bytes of a thread's widest access; of an accumulator */
static const double SHORT = 2, PAIR = 2;          /* bytes that stmatrix stores; elements of a lane side by side */
static const double EXCHANGE = 3;                 /* a shuffle of four bytes, and two choices */
static const double COPY = 2;                     /* cycles of a warp's load and store, where threads copy */
static const double COPY_APART = 13; /* of less than WORD bytes, whose place each thread computes; by machine code */
static const double WORD = 4;        /* bytes that an asynchronous copy has at least */
static const double PRODUCERS = TIR_GROUP / TIR_WARP; /* warps that only copy, where some do */

/* A product as a candidate has it. */
struct tiling {
  const struct model_product *product;
  const struct search_gpu *gpu;
  double blocks, teams;               /* of the kernel; of a block: what multiplies together, a warp or a group */
  double group[2], groups[2];         /* along m and n: tiles that follow one another, and such groups */
  double own_m, own_n, m, n;          /* results of a team, and of a block */
  double steps, depth, stages;        /* of the reduction: its steps, elements of one, and buffers of its tiles */
  double lanes[2];                    /* elements that a thread copies at once of each input */
  double warps, more;                 /* that multiply, and that only copy */
  double stores;                      /* accesses of a thread for each result, from shared memory and to the device's */
  double result_bytes;                /* of a result */
  double columns;                     /* of the tile by which results leave; 0: they do otherwise */
  bool tma_stores;                    /* which TMA stores */
  bool bulk;                          /* one thread has the tiles copied, by bulk tensor copies */
  double cluster, shared_m, shared_n; /* blocks of a cluster; of them, those that share the tiles of either input */
  bool persists; /* a block does one tile after the other, and copies the next while it stores one */
};

static double product_of(const struct model_tile_of *tile, uint32_t first, const double *numbers) {
  double all = 1;
  for (uint32_t i = first; i < tile->count; i++) all *= numbers[tile->parts[i]];
  return all;
}

static bool is_set(uint32_t number, const double *numbers) { return number && numbers[number] == 1; }

static bool is_whole(int64_t all, double part) { return all > 0 && fmod((double)all, part) == 0; }

/* Whether bulk tensor copies bring both operands' tiles, and not threads where a draw asks for them in vain. */
static bool is_brought(const struct tiling *t) {
  const struct model_product *p = t->product;
  const struct tir_copy_tile *a = &p->brought[0], *b = &p->brought[1];
  if (p->brought_count < 2) return true;
  return is_whole(a->rows, p->a_by_columns ? t->depth : t->m) &&
         is_whole(a->columns, p->a_by_columns ? t->m : t->depth) &&
         is_whole(b->rows, p->by_columns ? t->n : t->depth) && is_whole(b->columns, p->by_columns ? t->depth : t->n);
}

/* Neighbours share the first input's tiles where their columns differ, else the second's. */
static void read_cluster(struct tiling *t, const struct model_tile_of *m, const struct model_tile_of *n,
                         const double *x) {
  bool asked = t->product->multicast && t->more > 0 && t->steps > 1;
  double blocks = asked ? fmax(1, x[t->product->multicast]) : 1;
  bool along_n = fmod(x[n->parts[1]], blocks) == 0;
  bool along_m = !along_n && x[n->parts[1]] == 1 && fmod(x[m->parts[1]], blocks) == 0;
  t->cluster = along_n || along_m ? blocks : 1;
  t->shared_m = along_n ? t->cluster : 1, t->shared_n = along_m ? t->cluster : 1;
}

/* Of both inputs that threads copy: each by its own where one is copied below WORD bytes; else by the fewer of them,
 * which what an H100 took agrees with. */
static void read_lanes(struct tiling *t, const double *x) {
  const struct model_product *p = t->product;
  double least = p->lane_count ? INFINITY : 1;
  for (uint32_t i = 0; i < p->lane_count; i++) least = fmin(least, x[p->lanes[i]]);
  bool each = p->lane_count == 2 && least * p->bytes < WORD;
  for (uint32_t i = 0; i < 2; i++) t->lanes[i] = each ? x[p->lanes[i]] : least;
}

static struct tiling tiling_of(const struct search_estimator *d, const struct model_product *p, const double *numbers) {
  assert(is_complete(p));
  const struct model_tile_of *m = &p->tiles[p->tile_count - 3], *n = m + 1, *k = m + 2;
  const double *x = numbers;
  struct tiling t = {.product = p, .gpu = &d->machine.gpu};
  t.blocks = x[m->parts[0]] * x[m->parts[1]] * x[n->parts[0]] * x[n->parts[1]];
  for (uint32_t i = 0; i + 3 < p->tile_count; i++) t.blocks *= product_of(&p->tiles[i], 0, x);
  t.group[0] = x[m->parts[1]], t.group[1] = x[n->parts[1]], t.groups[0] = x[m->parts[0]], t.groups[1] = x[n->parts[0]];
  t.teams = x[m->parts[2]] * x[n->parts[2]];
  t.own_m = p->m * product_of(m, 3, x), t.own_n = p->n * product_of(n, 3, x);
  t.m = t.own_m * x[m->parts[2]], t.n = t.own_n * x[n->parts[2]];
  t.steps = x[k->parts[0]], t.depth = p->k * product_of(k, 1, x);
  t.stages = p->ahead && t.steps > 1 ? x[p->ahead] + (p->warps > 1 ? 2 : 1) : 1;
  read_lanes(&t, x);
  double stored = p->stored ? x[p->stored] : 1;
  t.stores = p->stored ? 1 / fmin(stored, ACCESS / ACCUMULATOR) + 1 / fmin(stored, ACCESS / p->stored_bytes) : 0;
  t.columns = p->epilogue ? x[p->epilogue] : 0;
  t.tma_stores = is_set(p->tensor_stores, x);
  /* To shared memory, by stmatrix or pair by pair, and, where threads do that, from it and to the device's. */
  double whole = p->stored_bytes / ACCESS;
  if (p->epilogue) t.stores = (p->stored_bytes == SHORT ? whole : 1 / PAIR) + (t.tma_stores ? 0 : 2 * whole);
  if (p->by_lanes) t.stores = whole + p->stored_bytes / ACCUMULATOR * EXCHANGE;
  t.result_bytes = p->stored_bytes > 0 ? p->stored_bytes : ACCUMULATOR;
  t.warps = t.teams * p->warps;
  t.bulk = is_set(p->bulk, x) && is_brought(&t);
  t.more = t.bulk && is_set(p->producer, x) ? PRODUCERS : 0;
  read_cluster(&t, m, n, x);
  t.persists = p->persistent && t.more > 0 && x[p->persistent] > 0 && t.steps > 1 && t.blocks > x[p->persistent];
  return t;
}

/* Registers of a thread: its accumulators, what it needs beside them, and what it copies of a step's tiles, unless
 * copies are asynchronous: all of its loads begin before it stores what the first one brings. */
static double registers_of(const struct tiling *t) {
  double threads = t->warps * t->gpu->warp, bytes = t->product->bytes;
  double copied = 0;
  for (int i = 0; i < 2; i++)
    copied += t->depth * (i ? t->n : t->m) * fmax(bytes, ACCUMULATOR / t->lanes[i]) / ACCUMULATOR;
  bool by_registers = !t->bulk && t->stages == 1;
  return (t->m * t->n + (by_registers ? copied : 0)) / threads + t->gpu->tensor_registers;
}

/* Blocks that a multiprocessor has at a time; 0: none can be launched. */
static double resident(const struct tiling *t) {
  const struct search_gpu *g = t->gpu;
  double threads = (t->warps + t->more) * g->warp;
  double least = ceil((t->m * t->n / (t->warps * g->warp) + g->tensor_registers) / 8) * 8; /* spills nothing of these */
  double registers = fmax(least, fmin(ceil(registers_of(t) / 8) * 8, g->own_registers));
  double tile = t->persists ? t->m * t->columns * t->result_bytes : 0; /* beside the others */
  double shared = fmax(t->stages * t->depth * (t->m + t->n) * t->product->bytes + tile, 1);
  if (threads > g->block_threads || shared > g->block_shared || least > g->own_registers) return 0;
  double by_threads = floor(g->sm_threads / threads), by_registers = floor(g->sm_registers / (registers * threads));
  return fmin(fmin(g->sm_blocks, by_threads), fmin(by_registers, floor(g->sm_shared / shared)));
}

/* What two take that run side by side: the longer, and a part of the other. */
static double most_of(const struct search_gpu *g, double a, double b) { return fmax(a, b) + g->exposed * fmin(a, b); }

/* Cycles of a block's step: of the tensor cores, of shared memory, and of the threads that copy. */
static double step_cycles(const struct tiling *t, double at_once) {
  const struct model_product *p = t->product;
  bool grouped = p->warps > 1;
  double rate = t->gpu->tensor_products * (2 / p->bytes) * (grouped ? 1 : t->gpu->tensor_alone);
  double multiplying = t->m * t->n * t->depth / rate / fmin(1, at_once * t->warps / SUBCORES);
  /* By a warp, into registers; groups of warps read for each product. */
  double read = grouped ? t->own_m * t->own_n / p->n + t->own_n * t->own_m / p->m : t->own_m + t->own_n;
  double feeding = t->teams * read * t->depth * p->bytes / SHARED_BYTES;
  double copying = 0;
  for (int i = 0; i < 2 && !t->bulk; i++)
    copying +=
        t->depth * (i ? t->n : t->m) / t->lanes[i] / t->gpu->warp * (t->lanes[i] * p->bytes < WORD ? COPY_APART : COPY);
  double spilled = fmax(0, registers_of(t) - t->gpu->own_registers); /* of each thread, stored and loaded again */
  return most_of(t->gpu, multiplying, feeding) + copying / SUBCORES + t->warps * 2 * spilled * t->gpu->spill;
}

/* Cycles for each accumulator on its way out. From registers, lanes store 8 bytes, four of them a sector, in more
 * passes than rows from shared memory take; whole accesses take no more. */
static double storing(const struct tiling *t) {
  return t->gpu->tensor_store * (t->product->straight && !t->product->by_lanes ? 1.1 : 1) +
         t->stores / t->gpu->warp / SUBCORES;
}

/* Threads synchronize before and behind each tile by which results leave. TMA reads one before the next is written, the
 * last beside what follows. */
static double leaving_cycles(const struct tiling *t) {
  if (t->columns <= 0) return 0;
  const struct search_gpu *g = t->gpu;
  double tiles = ceil(t->own_n / t->columns), reading = t->m * t->columns * t->result_bytes / SHARED_BYTES;
  return tiles * 2 * g->barrier + (t->tma_stores ? (tiles - 1) * (reading + g->shared_latency) : 0);
}

/* What a multiprocessor takes for its tiles, one after the other. Persistent blocks begin once: behind a tile the next
 * one's inputs are there. */
static double busy_cycles(const struct tiling *t, double at_once, double rounds, double begun) {
  const struct search_gpu *g = t->gpu;
  double step = step_cycles(t, at_once) + g->tensor_step;
  double begin = at_once < 2 ? g->tensor_begin : 0;
  return rounds * (t->steps * step + t->m * t->n * storing(t) + leaving_cycles(t)) + begun * begin;
}

/* What a step waits for its copies: they arrive so long after they begin, some steps ahead, and some of them late. */
static double late_cycles(const struct tiling *t, double at_once) {
  const double LATE = 0.02;
  double latency = t->gpu->memory_latency, ahead = t->stages - 1;
  if (ahead < 1) return latency;
  return fmax(0, latency / ahead - step_cycles(t, at_once)) + LATE * latency / ahead;
}

/* Bytes that tiles take from the device's memory again, those of a wave side by side: they share rows of the first
 * input and columns of the second. Tiles go row by row through a group, and groups row by row. What the second level
 * holds, as it does the pixels that taps of a window share, is read once. */
static double bytes_again(const struct tiling *t, double at_once) {
  const struct search_gpu *g = t->gpu;
  const double WINDOWS = 1.5; /* taps share so many times what is there */
  double all = t->product->all_bytes, stored = t->blocks * t->m * t->n * t->result_bytes;
  if (all <= g->l2_bytes) return 0;
  double group = t->group[0] * t->group[1], count = t->groups[0] * t->groups[1];
  double wave = fmin(t->blocks, g->sms * at_once), groups = fmin(fmax(1, wave / group), count);
  double columns = t->group[1] * fmin(groups, t->groups[1]), rows = t->group[0] * fmax(1, groups / t->groups[1]);
  if (wave < group) rows = ceil(wave / t->group[1]), columns = fmin(wave, t->group[1]);
  double matrices = fmax(1, wave / (group * count)), depth = t->steps * t->depth * t->product->bytes;
  double read = t->blocks / wave * matrices * depth * (rows * t->m + columns * t->n);
  double once =
      t->blocks / (group * count) * depth * (t->group[0] * t->groups[0] * t->m + t->group[1] * t->groups[1] * t->n);
  double again = fmax(read - once, 0);
  return once + stored > WINDOWS * all ? again * all / (once + stored) : again;
}

/* INFINITY: a block cannot be launched. */
static double product_cycles(const struct tiling *t) {
  const struct search_gpu *g = t->gpu;
  double at_once = resident(t), rounds = ceil(t->blocks / g->sms); /* tiles of the busiest multiprocessor */
  if (at_once < 1) return INFINITY;
  at_once = t->persists ? 1 : fmin(at_once, rounds);
  double met = t->more > 0 ? 0 : g->barrier; /* producers run ahead: the others do not wait for each other */
  double together = t->cluster > 1 ? 2 * g->barrier : 0; /* blocks of a cluster begin and end so */
  double waits = together + t->steps * (late_cycles(t, at_once) + met) + g->memory_latency;
  double begun = t->persists ? 1 : ceil(rounds / at_once); /* one after the other on a multiprocessor */
  double busy = busy_cycles(t, at_once, rounds, begun), waiting = begun * waits;
  double depth = t->steps * t->depth * t->product->bytes, stored = t->m * t->n * t->result_bytes;
  double bytes = depth * (t->m + t->n) + stored;
  double read = depth * (t->m / t->shared_m + t->n / t->shared_n) + stored; /* of the second level */
  double near = fmax(t->blocks * read / g->l2_bytes_a_cycle, rounds * bytes / g->sm_bytes_a_cycle);
  double far = bytes_again(t, at_once) / g->dram_bytes_a_cycle;
  return g->launch + most_of(g, most_of(g, most_of(g, busy, waiting), near), far);
}

/* The kernel that adds partial sums: it reads them where they are, in the second level if that holds them. */
static double adding_cycles(const struct tiling *t) {
  const struct search_gpu *g = t->gpu;
  double bytes = t->blocks * t->m * t->n * 4;
  return g->launch + bytes / (bytes <= g->l2_bytes ? g->l2_bytes_a_cycle : g->dram_bytes_a_cycle);
}

double model_products_cost(const struct search_estimator *d, const int64_t *decisions) {
  double numbers[MODEL_NUMBERS], cycles = 0;
  assert(d->product_count && d->number_count <= MODEL_NUMBERS);
  model_compute_numbers(d, decisions, numbers);
  for (uint32_t i = 0; i < d->product_count; i++) {
    struct tiling t = tiling_of(d, &d->products[i], numbers);
    cycles += product_cycles(&t) + (t.product->divided ? adding_cycles(&t) : 0);
  }
  return cycles;
}

/* Of the results of a team. */
uint64_t model_products_tile(const struct search_estimator *d, const int64_t *decisions) {
  double numbers[MODEL_NUMBERS];
  uint64_t key = 1469598103934665603u;
  assert(d->product_count && d->number_count <= MODEL_NUMBERS);
  model_compute_numbers(d, decisions, numbers);
  for (uint32_t i = 0; i < d->product_count; i++) {
    struct tiling t = tiling_of(d, &d->products[i], numbers);
    key = ((key ^ (uint64_t)t.own_m) * 1099511628211u ^ (uint64_t)t.own_n) * 1099511628211u;
  }
  return key;
}

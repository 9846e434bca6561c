#include "launch.h"
#include "jit/c/emit_c.h"

#include <stdlib.h>
#include <string.h>

/* ---- From a lowered function ---- */

struct planning {
  const struct tir *ir;
  struct tir_span params;
  const struct c_kernels *kernels;
  struct cuda_plan *plan;
  struct placed {
    tir_buffer buffer;
    uint64_t offset;
  } * placed; /* allocations between kernels */
  uint32_t placed_count, placed_capacity, launch_capacity, operand_capacity, map_capacity;
};

static void refuse(struct planning *p, const char *what) {
  if (!*p->plan->refusal) snprintf(p->plan->refusal, sizeof p->plan->refusal, "%s", what);
}

static bool add_buffer(struct planning *p, tir_buffer buffer, struct cuda_operand *out) {
  for (uint32_t i = 0; i < p->params.count; i++)
    if (p->ir->params.at[p->params.first + i].buffer == buffer) return out->parameter = i, true;
  out->kind = CUDA_WORKSPACE;
  for (uint32_t i = 0; i < p->placed_count; i++)
    if (p->placed[i].buffer == buffer) return out->offset = p->placed[i].offset, true;
  return false;
}

static bool add_variable(const struct planning *p, tir_var v, struct cuda_operand *out) {
  out->kind = CUDA_SCALAR;
  for (uint32_t i = 0; i < p->params.count; i++) {
    const struct tir_param *param = &p->ir->params.at[p->params.first + i];
    if (!param->buffer && param->var == v) return out->parameter = i, true;
  }
  return false;
}

static void add_operand(struct planning *p, struct cuda_operand operand) {
  struct cuda_plan *plan = p->plan;
  plan->operands =
      tir_enlarge(plan->operands, &p->operand_capacity, (uint64_t)plan->operand_count + 1, sizeof *plan->operands);
  plan->operands[plan->operand_count++] = operand;
}

static void add_operands(struct planning *p, const struct tir_captures *c) {
  for (uint32_t i = 0; i < c->buffers + c->vars; i++) {
    struct cuda_operand operand = {.kind = CUDA_BUFFER};
    uint32_t ref = tir_at(p->ir, c->at[i])->ref;
    if (i < c->buffers ? !add_buffer(p, ref, &operand) : !add_variable(p, ref, &operand))
      refuse(p, "a kernel takes what is neither a parameter nor memory between kernels");
    add_operand(p, operand);
  }
}

/* The tensors of its TMA bulk tensor copies, behind its other operands. */
static uint32_t add_maps(struct planning *p, const struct tir_captures *c) {
  struct cuda_plan *plan = p->plan;
  struct tensor_map maps[TENSOR_MAPS_MOST];
  tir_buffer buffers[TENSOR_MAPS_MOST];
  uint32_t count = tensor_maps_of(p->ir, c->loop, maps, buffers, TENSOR_MAPS_MOST);
  if (count > TENSOR_MAPS_MOST) count = 0, refuse(p, "a kernel has TMA bulk tensor copies of too many tensors");
  for (uint32_t i = 0; i < count; i++) {
    struct cuda_operand operand = {.kind = CUDA_BUFFER};
    if (!add_buffer(p, buffers[i], &operand)) refuse(p, "a kernel has TMA bulk tensor copies of what is no parameter");
    plan->maps = tir_enlarge(plan->maps, &p->map_capacity, plan->map_count + 1, sizeof *plan->maps);
    plan->maps[plan->map_count++] = maps[i];
    operand.map = plan->map_count;
    add_operand(p, operand);
  }
  return count;
}

/* The loops of the kernel: its blocks and threads. */
static void set_extents(struct planning *p, tir_stmt loop, struct cuda_launch *launch) {
  for (tir_stmt s = loop; s && tir_is(p->ir, s, TIR_LOOP); s = tir_stmt_at(p->ir, s)->first[TIR_BODY]) {
    const struct tir_stmt_node *n = tir_stmt_at(p->ir, s);
    if (n->loop_kind != TIR_THREAD_BINDING) return;
    enum tir_axis axis = tir_axis_named(tir_text(p->ir, n->loop.thread));
    int64_t extent = tir_loop_extent(p->ir, s);
    assert(axis < TIR_VTHREAD_X && extent <= tir_axis_limit(axis));
    if (extent < 0) refuse(p, "a kernel's number of blocks is no constant");
    (axis < TIR_THREAD_X ? launch->grid : launch->block)[axis % TIR_THREAD_X] = (uint32_t)extent;
  }
}

static void add_launch(struct planning *p, const struct tir_captures *c) {
  struct cuda_plan *plan = p->plan;
  assert(plan->launch_count < p->kernels->count);
  const struct jit_resources *asked = &p->kernels->at[plan->launch_count];
  struct cuda_launch launch = {
      .grid = {1, 1, 1}, .block = {1, 1, 1}, .first = plan->operand_count, .count = c->buffers + c->vars};
  memcpy(launch.name, asked->name, sizeof launch.name);
  launch.shared_bytes = (uint32_t)asked->dynamic_bytes;
  set_extents(p, c->loop, &launch);
  add_operands(p, c);
  launch.count += add_maps(p, c);
  plan->launches =
      tir_enlarge(plan->launches, &p->launch_capacity, (uint64_t)plan->launch_count + 1, sizeof *plan->launches);
  plan->launches[plan->launch_count++] = launch;
}

static void add_allocation(struct planning *p, tir_buffer buffer) {
  p->placed = tir_enlarge(p->placed, &p->placed_capacity, (uint64_t)p->placed_count + 1, sizeof *p->placed);
  p->placed[p->placed_count++] = (struct placed){buffer, p->plan->workspace};
  p->plan->workspace +=
      (tir_allocation_bytes(p->ir, buffer) + C_DEVICE_ALIGNMENT - 1) / C_DEVICE_ALIGNMENT * C_DEVICE_ALIGNMENT;
}

/* What is not in a kernel: allocations, and what states a kernel. */
static void walk(struct planning *p, tir_stmt first) {
  for (tir_stmt s = first; s; s = tir_stmt_at(p->ir, s)->next) {
    struct tir_captures captures;
    if (tir_captures_of(p->ir, s, &captures)) {
      add_launch(p, &captures);
      continue;
    }
    const struct tir_stmt_node *n = tir_stmt_at(p->ir, s);
    if (n->kind == TIR_ALLOC)
      add_allocation(p, n->alloc.buffer);
    else if (n->kind != TIR_ATTR)
      refuse(p, "something stands beside the kernels that the host would do");
    walk(p, tir_stmt_at(p->ir, s)->first[TIR_BODY]);
  }
}

void cuda_plan_make(const struct tir *lowered, tir_func f, const struct c_kernels *kernels, struct cuda_plan *out) {
  *out = (struct cuda_plan){0};
  struct planning p = {.ir = lowered, .params = lowered->funcs.at[f].params, .kernels = kernels, .plan = out};
  walk(&p, tir_stmt_at(lowered, lowered->funcs.at[f].body)->first[TIR_BODY]);
  free(p.placed);
  assert(*out->refusal || (out->launch_count == kernels->count && out->workspace == kernels->device_bytes));
}

void cuda_plan_free(struct cuda_plan *plan) {
  free(plan->launches);
  free(plan->operands);
  free(plan->maps);
  *plan = (struct cuda_plan){0};
}

/* ---- As bytes ---- */

/* Where the lists and the code lie behind the plan: each at a multiple of eight bytes, as what they hold needs. */
struct layout {
  size_t operands, maps, launches, code;
};

static struct layout layout_of(const struct cuda_plan *plan) {
  struct layout at = {.operands = sizeof *plan};
  at.maps = at.operands + plan->operand_count * sizeof *plan->operands;
  at.launches = at.maps + (size_t)plan->map_count * sizeof *plan->maps;
  at.code = at.launches + (plan->launch_count * sizeof *plan->launches + 7) / 8 * 8;
  return at;
}

static_assert(sizeof(struct cuda_plan) % 8 == 0 && sizeof(struct cuda_operand) % 8 == 0 &&
                  sizeof(struct tensor_map) % 8 == 0,
              "they are followed by lists");

void *cuda_plan_write(const struct cuda_plan *plan, const void *code, size_t code_bytes, size_t *bytes) {
  struct layout at = layout_of(plan);
  *bytes = at.code + code_bytes;
  uint8_t *out = calloc(1, *bytes);
  if (!out) abort();
  memcpy(out, plan, sizeof *plan);
  if (plan->operand_count) memcpy(out + at.operands, plan->operands, plan->operand_count * sizeof *plan->operands);
  if (plan->map_count) memcpy(out + at.maps, plan->maps, (size_t)plan->map_count * sizeof *plan->maps);
  if (plan->launch_count) memcpy(out + at.launches, plan->launches, plan->launch_count * sizeof *plan->launches);
  memcpy(out + at.code, code, code_bytes);
  return out;
}

bool cuda_plan_read(const void *bytes, size_t count, struct cuda_plan *out, const void **code) {
  const uint8_t *from = bytes;
  assert((uintptr_t)bytes % 8 == 0);
  if (count < sizeof *out) return false;
  memcpy(out, from, sizeof *out);
  struct layout at = layout_of(out);
  if (count < at.code) return false;
  out->operands = (struct cuda_operand *)(from + at.operands);
  out->maps = (struct tensor_map *)(from + at.maps);
  out->launches = (struct cuda_launch *)(from + at.launches);
  *code = from + at.code;
  return true;
}

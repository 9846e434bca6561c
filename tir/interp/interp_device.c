/* Device calls in the reference interpreter: those that are compiled to instructions of its own, and which functions
 * do the others (interp_tensor.c, interp_group.c, interp_tma_copy.c). Which are there the table tir/gpu/calls.def
 * says. */
#include "interp_compile.h"

#include <stdlib.h>

/* ---- Copies, and barriers ---- */

operand interp_compile_async_copy(struct compiler *c, const struct tir_expr_node *n, int lane) {
  return interp_expr(c, tir_operands(c->ir, n->operands)[0], lane);
}

/* Of asynchronous copies, which those outside of kernels are not. */
static operand copy_group(struct compiler *c, enum op op, operand left) {
  if (c->in_kernel) interp_emit(c, op, 0, left, 0, 0, 0);
  return interp_int(c, 0);
}

operand interp_compile_ptx_commit_group(struct compiler *c, const struct tir_expr_node *n, int lane) {
  (void)n, (void)lane;
  return copy_group(c, OP_COMMIT, interp_int(c, 0));
}

operand interp_compile_ptx_wait_group(struct compiler *c, const struct tir_expr_node *n, int lane) {
  (void)lane;
  return copy_group(c, OP_WAIT, interp_expr(c, tir_operands(c->ir, n->operands)[0], 0));
}

/* (at, parity), or (number, threads). */
static operand wait_at(struct compiler *c, enum op op, const struct tir_expr_node *n) {
  if (!c->in_kernel) return interp_refuse(c, MS_RUN_NEEDS_THREADS, "a thread waits outside of a kernel");
  const tir_expr *args = tir_operands(c->ir, n->operands);
  tir_expr second = args[1];
  operand at = interp_expr(c, args[0], 0), of = interp_expr(c, second, 0);
  interp_emit(c, op, 0, at, of, 0, 0);
  return interp_int(c, 0);
}

operand interp_compile_mbarrier_wait(struct compiler *c, const struct tir_expr_node *n, int lane) {
  (void)lane;
  return wait_at(c, OP_PHASE, n);
}

operand interp_compile_named_barrier(struct compiler *c, const struct tir_expr_node *n, int lane) {
  (void)lane;
  return wait_at(c, OP_NAMED, n);
}

operand interp_compile_tvm_storage_sync(struct compiler *c, const struct tir_expr_node *n, int lane) {
  (void)n, (void)lane;
  if (!c->in_kernel) return interp_refuse(c, MS_RUN_NEEDS_THREADS, "a barrier stands outside of concurrent threads");
  interp_emit(c, OP_BARRIER, 0, 0, 0, 0, 0);
  return interp_int(c, 0);
}

operand interp_compile_cluster_barrier(struct compiler *c, const struct tir_expr_node *n, int lane) {
  (void)n, (void)lane;
  if (!c->in_kernel) return interp_refuse(c, MS_RUN_NEEDS_THREADS, "a barrier stands outside of concurrent threads");
  interp_emit(c, OP_CLUSTER, 0, 0, 0, 0, 0);
  return interp_int(c, 0);
}

/* ---- Values ---- */

/* dp4a(four bytes, four bytes, what they are added to). */
operand interp_compile_dp4a(struct compiler *c, const struct tir_expr_node *n, int lane) {
  (void)lane;
  enum { BYTES = 4 };
  const tir_expr *args = tir_operands(c->ir, n->operands);
  for (int i = 0; i < 2; i++) {
    tir_type t = tir_type_of(c->ir, args[i]);
    if (!tir_type_is_int(t) || tir_type_bits(t) != 8 || tir_type_lanes(t) != BYTES)
      return interp_refuse(c, MS_RUN_UNSUPPORTED, "an operand of dp4a is not of four bytes");
  }
  operand sum = interp_expr(c, args[2], 0);
  for (int i = 0; i < BYTES; i++) {
    operand product = interp_binary(c, TIR_MUL, interp_expr(c, args[0], i), interp_expr(c, args[1], i), n->type);
    sum = interp_binary(c, TIR_ADD, sum, product, n->type);
  }
  return sum;
}

/* tvm_warp_shuffle_xor(mask, value, distance, width, warp): what the thread gives whose number in the warp differs in
 * these bits. All threads of a warp take part. */
operand interp_compile_tvm_warp_shuffle_xor(struct compiler *c, const struct tir_expr_node *n, int lane) {
  (void)lane;
  const tir_expr *args = tir_operands(c->ir, n->operands);
  if (!c->in_kernel) return interp_refuse(c, MS_RUN_NEEDS_THREADS, "a shuffle stands outside of concurrent threads");
  for (int i = 3; i < 5; i++)
    if (!tir_is_const(c->ir, args[i], WARP))
      return interp_refuse(c, MS_RUN_UNSUPPORTED, "a shuffle is not of a whole warp of %d threads", WARP);
  operand value = interp_expr(c, args[1], 0), distance = interp_expr(c, args[2], 0), dst = interp_registers(c, 1);
  interp_emit(c, OP_SHUFFLE, dst, value, distance, 0, 0);
  return dst;
}

/* ---- Cross-thread reduction ---- */

/* The function a reduction joins with: attribute reduce_scope around the call holds
 * comm_reducer(left…, right…, results…, identities…), a quarter of the operands each. */
struct reduction {
  uint32_t count;
  const tir_expr *left, *right, *results, *identities;
};

static bool find_reduction(struct compiler *c, uint32_t count, struct reduction *out) {
  const struct tir_expr_node *n = c->reducer ? tir_at(c->ir, c->reducer) : NULL;
  if (!n || n->kind != TIR_CALL || strcmp(tir_text(c->ir, n->ref), "comm_reducer") || n->count != 4 * count) {
    interp_refuse(c, MS_RUN_UNSUPPORTED, "a cross-thread reduction has no comm_reducer of %u values around it", count);
    return false;
  }
  const tir_expr *args = tir_operands(c->ir, n->operands);
  *out = (struct reduction){count, args, args + count, args + 2 * count, args + 3 * count};
  for (uint32_t i = 0; i < 2 * count; i++)
    if (tir_at(c->ir, args[i])->kind != TIR_VAR) {
      interp_refuse(c, MS_RUN_UNSUPPORTED, "an operand of a comm_reducer is no variable");
      return false;
    }
  return true;
}

/* Emits the combiner, jumped over: left = combine(left, right), then return. Gives its first instruction. */
static uint32_t combiner(struct compiler *c, const struct reduction *r, operand left, operand right) {
  assert(r->count > 0);
  uint32_t over = interp_emit(c, OP_JUMP, 0, 0, 0, 0, 0), entry = interp_here(c);
  struct scope scope = interp_enter(c);
  operand results = interp_registers(c, (int)r->count);
  for (uint32_t i = 0; i < r->count; i++) {
    interp_define_var(c, tir_at(c->ir, r->left[i])->ref, left + (operand)i);
    interp_define_var(c, tir_at(c->ir, r->right[i])->ref, right + (operand)i);
  }
  for (uint32_t i = 0; i < r->count; i++) interp_expr_to(c, results + (operand)i, r->results[i], 0);
  for (uint32_t i = 0; i < r->count; i++) interp_emit(c, OP_MOVE, left + (operand)i, results + (operand)i, 0, 0, 0);
  interp_emit(c, OP_RETURN, 0, 0, 0, 0, 0);
  interp_leave(c, scope);
  if (!c->failed) c->program->code.at[over].b = (operand)interp_here(c);
  return entry;
}

static uint32_t reduced_dims(struct compiler *c, const tir_expr *axes, uint32_t count) {
  uint32_t mask = 0;
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_expr_node *n = tir_at(c->ir, axes[i]);
    int dim = n->kind == TIR_VAR ? c->dim_of[n->ref] : -1;
    if (dim >= FIRST_THREAD_DIM)
      mask |= 1u << dim;
    else if (n->kind != TIR_INT_IMM)
      interp_refuse(c, MS_RUN_UNSUPPORTED, "a reduction goes over what is no threadIdx");
  }
  return mask;
}

static void store_result(struct compiler *c, tir_expr to, operand value) {
  const struct tir_expr_node *n = tir_at(c->ir, to);
  operand indices[INTERP_MOST_RANK];
  uint32_t rank = 0;
  if (n->kind == TIR_LOAD)
    rank = interp_indices(c, n->ref, tir_operands(c->ir, n->operands), n->count, 0, indices);
  else if (n->kind == TIR_DATA)
    for (uint32_t d = 0; d < tir_buffer_at(c->ir, n->ref)->rank && d < INTERP_MOST_RANK; d++)
      indices[rank++] = interp_int(c, 0);
  else
    interp_refuse(c, MS_RUN_UNSUPPORTED, "a reduction's result goes to what is no buffer");
  if (!c->failed)
    interp_emit_access(c, true, value, interp_slot(c, n->ref), tir_buffer_at(c->ir, n->ref)->type, indices, rank);
}

/* tvm_thread_allreduce(count, values…, condition, results…, axes…). */
operand interp_compile_tvm_thread_allreduce(struct compiler *c, const struct tir_expr_node *n, int lane) {
  assert(n->kind == TIR_CALL);
  (void)lane;
  const tir_expr *args = tir_operands(c->ir, n->operands);
  uint32_t count = n->count && tir_is_int(c->ir, args[0]) ? (uint32_t)tir_at(c->ir, args[0])->imm : 0;
  struct reduction r;
  if (!c->in_kernel)
    return interp_refuse(c, MS_RUN_NEEDS_THREADS, "a cross-thread reduction stands outside of threads");
  if (count == 0 || count > 16 || n->count < 2 * count + 2)
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "tvm_thread_allreduce is not well formed");
  if (!find_reduction(c, count, &r)) return 0;
  operand left = interp_registers(c, (int)count), right = interp_registers(c, (int)count);
  struct scope scope = interp_enter(c);
  for (uint32_t i = 0; i < count; i++) interp_expr_to(c, left + (operand)i, args[1 + i], 0);
  uint32_t skip = interp_emit(c, OP_JUMP_IF, 0, interp_expr(c, args[1 + count], 0), 0, 0, 0);
  interp_leave(c, scope);
  for (uint32_t i = 0; i < count; i++) interp_expr_to(c, left + (operand)i, r.identities[i], 0);
  interp_leave(c, scope);
  if (c->failed) return 0;
  c->program->code.at[skip].b = (operand)interp_here(c);
  struct site site = {.count = count, .entry = combiner(c, &r, left, right)};
  uint32_t mask = reduced_dims(c, args + 2 + 2 * count, n->count - 2 - 2 * count);
  INTERP_PUSH(c->program->sites, site);
  interp_emit(c, OP_ALLREDUCE, left, (operand)(c->program->sites.count - 1), (operand)mask, right, 0);
  for (uint32_t i = 0; i < count; i++) store_result(c, args[2 + count + i], left + (operand)i);
  return interp_int(c, 0);
}

/* ---- The table ---- */

typedef operand compile_call(struct compiler *c, const struct tir_expr_node *n, int lane);

/* A row has one of the two. */
static const struct device {
  compile_call *compile;
  struct tir_extern handler;
} devices[TIR_DEVICE_CALLS] = {
#define DEVICE_COMPILED(name)                                   .compile = interp_compile_##name
#define DEVICE_CALLED(name)                                     .handler = {#name, interp_do_##name, NULL}
#define TIR_DEVICE_CALL(id, name, operands, type, by, run, ...) [TIR_##id] = {DEVICE_##run(name)},
#include "tir/gpu/calls.def"
};

const struct tir_extern *interp_device_call(enum tir_device_call which) {
  return which == TIR_DEVICE_CALLS || devices[which].compile ? NULL : &devices[which].handler;
}

operand interp_compile_device(struct compiler *c, tir_expr call, int lane, bool *found) {
  const struct tir_expr_node *n = tir_at(c->ir, call);
  enum tir_device_call which = tir_device_call_of(c->ir, call);
  *found = which != TIR_DEVICE_CALLS && devices[which].compile;
  if (!*found) return 0;
  if (!tir_takes_operands(which, n->count))
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "%s takes (%s), not %u operands", tir_device_calls[which].name,
                         tir_device_calls[which].operands, n->count);
  return devices[which].compile(c, n, lane);
}

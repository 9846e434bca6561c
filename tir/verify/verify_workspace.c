/* The layout of a lowered function's workspace, read from the addresses that the function computes.
 *
 * What is allocated outside of parallel loops lies before the pieces of threads. Within a parallel loop an allocation
 * lies at thread * thread_bytes + offset, inside thread 0's piece when the thread is 0: then it is inside each thread's
 * own piece, and pieces do not overlap. Of allocations in one part of the workspace, those that live at once lie
 * apart. */
#include "verify.h"

#include <stdlib.h>
#include <string.h>

struct place {
  tir_buffer buffer;
  uint64_t first, end; /* bytes, of thread 0 */
};
struct layout {
  const struct tir *ir;
  struct tir_workspace workspace;
  struct place *live;
  uint32_t count, capacity;
  ms_error *err;
};

/* An offset: bytes + stride * the thread's number. */
struct offset {
  int64_t bytes, stride;
};

static bool read_offset(const struct tir *ir, tir_expr e, struct offset *out) {
  const struct tir_expr_node *n = tir_at(ir, e);
  struct offset a, b;
  *out = (struct offset){0, 0};
  if (tir_is_thread_number(ir, e)) {
    out->stride = 1;
    return true;
  }
  switch (n->kind) {
  case TIR_INT_IMM: out->bytes = n->imm; return true;
  case TIR_CAST: return read_offset(ir, n->a, out);
  case TIR_ADD:
    return read_offset(ir, n->a, &a) && read_offset(ir, n->b, &b) &&
           !__builtin_add_overflow(a.bytes, b.bytes, &out->bytes) &&
           !__builtin_add_overflow(a.stride, b.stride, &out->stride);
  case TIR_MUL:
    return read_offset(ir, n->a, &a) && read_offset(ir, n->b, &b) && !b.stride &&
           !__builtin_mul_overflow(a.bytes, b.bytes, &out->bytes) &&
           !__builtin_mul_overflow(a.stride, b.bytes, &out->stride);
  default: return false;
  }
}

static bool refuse(const struct layout *l, tir_stmt s, const char *what) {
  const char *name = tir_buffer_name(l->ir, tir_stmt_at(l->ir, s)->alloc.buffer);
  return tir_refuse(l->ir, l->err, MS_VERIFY_WORKSPACE, s, "%s %s", name, what);
}

static bool check_place(const struct layout *l, tir_stmt s, bool parallel, struct place *out) {
  const struct tir_buffer_node *b = tir_buffer_at(l->ir, tir_stmt_at(l->ir, s)->alloc.buffer);
  tir_expr first = tir_operands(l->ir, tir_at(l->ir, b->data)->operands)[0];
  uint64_t bytes = tir_allocation_bytes(l->ir, tir_stmt_at(l->ir, s)->alloc.buffer);
  uint64_t pieces = l->workspace.bytes - l->workspace.thread_bytes * l->workspace.threads;
  uint64_t low = parallel ? pieces : 0, high = parallel ? pieces + l->workspace.thread_bytes : pieces;
  struct offset at;
  if (!bytes || tir_at(l->ir, first)->ref != l->workspace.buffer || tir_at(l->ir, first)->count != 1 ||
      !read_offset(l->ir, tir_operands(l->ir, tir_at(l->ir, first)->operands)[0], &at))
    return refuse(l, s, "lies at no place in the workspace that is known");
  if ((uint64_t)at.stride != (parallel ? l->workspace.thread_bytes : 0))
    return refuse(l, s, "lies where another thread's memory may");
  if (at.bytes < 0 || (uint64_t)at.bytes < low || (uint64_t)at.bytes > high || bytes > high - (uint64_t)at.bytes)
    return refuse(l, s, parallel ? "leaves the piece of its thread" : "leaves the part before the pieces of threads");
  *out = (struct place){tir_stmt_at(l->ir, s)->alloc.buffer, (uint64_t)at.bytes, (uint64_t)at.bytes + bytes};
  return true;
}

static bool check_allocation(struct layout *l, tir_stmt s, bool parallel) {
  struct place p;
  if (!check_place(l, s, parallel, &p)) return false;
  for (uint32_t i = 0; i < l->count; i++) {
    if (p.end <= l->live[i].first || l->live[i].end <= p.first) continue;
    char what[300];
    snprintf(what, sizeof what, "overlaps with %.200s in the workspace", tir_buffer_name(l->ir, l->live[i].buffer));
    return refuse(l, s, what);
  }
  l->live = tir_enlarge(l->live, &l->capacity, (uint64_t)l->count + 1, sizeof *l->live);
  l->live[l->count++] = p;
  return true;
}

static bool check_list(struct layout *l, tir_stmt first, bool parallel) {
  uint32_t live = l->count;
  bool ok = true;
  for (tir_stmt s = first; s && ok; s = tir_stmt_at(l->ir, s)->next) {
    const struct tir_stmt_node *n = tir_stmt_at(l->ir, s);
    bool inside = parallel || (n->kind == TIR_LOOP && n->loop_kind == TIR_PARALLEL);
    if (n->kind == TIR_DECLARE && tir_is_placed(l->ir, n->alloc.buffer)) ok = check_allocation(l, s, parallel);
    ok = ok && check_list(l, n->first[TIR_BODY], inside) && check_list(l, n->first[TIR_ELSE], inside);
  }
  l->count = live;
  return ok;
}

bool tir_verify_workspace(const struct tir *ir, tir_func f, ms_error *err) {
  struct layout l = {.ir = ir, .workspace = tir_workspace_of(ir, f), .err = err};
  bool ok = check_list(&l, tir_stmt_at(ir, ir->funcs.at[f].body)->first[TIR_BODY], false);
  free(l.live);
  return ok;
}

/* Contracts: what passes give, asserted of a function after each pass from then on, and that its tree is one. */
#include "lower.h"

/* ---- The tree ---- */

/* Children, their neighbours and their parent name one another. */
static void check_links(const struct tir *ir, tir_stmt parent) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, parent);
  assert(n->kind != TIR_DEAD);
  for (int list = 0; list < 2; list++) {
    tir_stmt before = TIR_NONE;
    for (tir_stmt s = n->first[list]; s; s = tir_stmt_at(ir, s)->next) {
      assert(tir_stmt_at(ir, s)->parent == parent && tir_stmt_at(ir, s)->list == list);
      assert(tir_stmt_at(ir, s)->prev == before);
      before = s;
    }
    assert(n->last[list] == before);
  }
}

/* ---- Statements ---- */

/* A kernel's axes are loops around all of it, one each. */
static void check_axis(const struct tir *ir, tir_stmt body, tir_stmt loop) {
  for (tir_stmt p = tir_stmt_at(ir, loop)->parent; p != body; p = tir_stmt_at(ir, p)->parent) {
    if (tir_is(ir, p, TIR_ATTR)) continue; /* outline.c's */
    assert(tir_is_bound(ir, p));
    assert(tir_loop_axis(ir, p) < tir_loop_axis(ir, loop) && "blocks come first, and each axis once");
  }
}

static void check_loop(const struct lowering *low, tir_stmt s, unsigned gives) {
  const struct tir *ir = low->ir;
  enum tir_axis axis = tir_loop_axis(ir, s);
  int kind = tir_stmt_at(ir, s)->loop_kind;
  if ((gives & LOWER_KERNELS) && (tir_is_block_axis(axis) || tir_is_thread_axis(axis))) check_axis(ir, low->body, s);
  assert(!(gives & LOWER_NO_VTHREADS) || !tir_is_virtual_axis(axis));
  assert(!(gives & LOWER_NO_PIPELINES) || !tir_is_pipeline(ir, s));
  assert(!(gives & LOWER_NO_UNROLLED) || kind != TIR_UNROLLED);
  assert(!(gives & LOWER_NO_VECTORIZED) || kind != TIR_VECTORIZED);
}

static void check_store(const struct tir *ir, tir_stmt s, unsigned gives) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  tir_type type = tir_type_of(ir, n->store.value), element = tir_buffer_at(ir, n->store.buffer)->type;
  assert(tir_type_with_lanes(type, 1) == tir_type_with_lanes(element, 1));
  assert(!(gives & LOWER_FLAT) || tir_buffer_at(ir, n->store.buffer)->rank == 1 ||
         tir_is_fragment(ir, n->store.buffer));
}

/* Of memory that the threads of a block share a kernel has one allocation. */
static void check_allocation(const struct lowering *low, tir_stmt s, unsigned gives) {
  const struct tir *ir = low->ir;
  tir_buffer buffer = tir_stmt_at(ir, s)->alloc.buffer;
  assert(tir_buffer_at(ir, buffer)->where == s);
  if (!(gives & LOWER_ONE_SHARED) || tir_buffer_memory(ir, buffer) != TIR_BLOCK_MEMORY) return;
  tir_stmt kernel = s;
  while (tir_stmt_at(ir, kernel)->parent != low->body) kernel = tir_stmt_at(ir, kernel)->parent;
  for (tir_stmt other = kernel; other; other = tir_next(ir, other, kernel))
    assert(other == s || !tir_is(ir, other, TIR_ALLOC) ||
           tir_buffer_memory(ir, tir_stmt_at(ir, other)->alloc.buffer) != TIR_BLOCK_MEMORY);
}

static bool is_floor_division(const struct tir *ir, const void *none, tir_expr e) {
  (void)none;
  return tir_at(ir, e)->kind == TIR_FLOORDIV || tir_at(ir, e)->kind == TIR_FLOORMOD;
}

static void check_exprs(const struct tir *ir, tir_stmt s) {
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(ir, s, all);
  for (uint32_t i = 0; i < count; i++) assert(!tir_any_node(ir, all[i], TIR_HAS_DIVMOD, is_floor_division, NULL));
}

void lower_check_contract(const struct lowering *low, unsigned gives) {
  const struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    check_links(ir, s);
    if (gives & LOWER_LEGAL) check_exprs(ir, s);
    switch (tir_stmt_at(ir, s)->kind) {
    case TIR_LOOP: check_loop(low, s, gives); break;
    case TIR_STORE: check_store(ir, s, gives); break;
    case TIR_ALLOC: check_allocation(low, s, gives); break;
    case TIR_BLOCK:
      assert(!(gives & LOWER_NO_BLOCKS));
      assert(!(gives & LOWER_PLACED) || !tir_block_at(ir, s)->allocs.count);
      break;
    case TIR_ATTR:
      assert(!(gives & LOWER_NO_PIPELINES) || !lower_is_stage(ir, s));
      assert(!(gives & LOWER_NO_PRODUCERS) || !lower_is_producer(ir, s));
      break;
    default: break;
    }
  }
}

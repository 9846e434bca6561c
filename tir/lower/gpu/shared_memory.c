/* Shared: what a kernel allocates in memory that the threads of a block share becomes views of one piece of bytes.
 * Requires: kernels; allocations of constant size. Gives: one allocation of shared memory a kernel, of scope
 * "shared.dyn" where it is more than a launch gives unasked, else "shared". Keeps: everything else.
 *
 * An allocation lives from the first statement of its list that uses it, calls with pointers to it among them, to the
 * last, with all that these repeat; one with other names lives to the end of its list. Those
 * that never live at once may share bytes. The largest are placed first, each as low as those that live beside it
 * allow. What shares bytes is kept apart by barriers, which come later (barriers.c). Barriers in memory share theirs
 * with nothing: what holds one is used for nothing else. */
#include "footprint.h"

#include <stdlib.h>
#include <string.h>

static_assert(TIR_SHARED_ALIGNMENT % TIR_BASE_ALIGNMENT == 0 && TIR_PANEL_ALIGNMENT % TIR_SHARED_ALIGNMENT == 0,
              "vectors begin where they should");

struct piece {
  tir_stmt alloc;
  tir_buffer buffer;
  uint64_t bytes, offset;
  uint64_t alignment;
  uint32_t first, last; /* positions of statements, in order of text */
};
struct layout {
  struct piece *at;
  uint64_t alignment; /* of all */
  uint32_t count, capacity;
};

static bool is_shared(const struct tir *ir, tir_stmt s) {
  return tir_is(ir, s, TIR_ALLOC) && tir_buffer_memory(ir, tir_stmt_at(ir, s)->alloc.buffer) == TIR_BLOCK_MEMORY;
}

/* A number for each statement of the kernel, in order of text. free() it. */
static uint32_t *number_statements(const struct tir *ir, tir_stmt kernel) {
  uint32_t *position = calloc(ir->stmts.count, sizeof *position), next = 0;
  if (!position) abort();
  for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel)) position[s] = next++;
  return position;
}

static uint32_t end_of(const struct tir *ir, tir_stmt s, const uint32_t *position) {
  uint32_t last = position[s];
  for (tir_stmt t = s; t; t = tir_next(ir, t, s)) last = position[t];
  return last;
}

static void find_life(const struct tir *ir, struct piece *p, const uint32_t *position, bool named) {
  p->first = p->last = position[p->alloc];
  for (tir_stmt s = tir_stmt_at(ir, p->alloc)->next; s; s = tir_stmt_at(ir, s)->next) {
    if (!named && !lower_uses_buffer(ir, s, p->buffer)) continue;
    if (p->first == position[p->alloc]) p->first = position[s];
    p->last = end_of(ir, s, position);
  }
  assert(p->first <= p->last);
}

/* Its memory may be used by another name: a view of it, or a pointer that a value holds. */
static bool has_names(const struct tir *ir, tir_stmt kernel, tir_buffer buffer) {
  for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel)) {
    tir_expr all[4];
    if (!tir_is(ir, s, TIR_DECLARE) && !tir_is(ir, s, TIR_BIND)) continue;
    uint32_t count = tir_stmt_exprs(ir, s, all);
    for (uint32_t i = 0; i < count; i++)
      if (all[i] && tir_uses_buffer(ir, all[i], buffer)) return true;
  }
  return false;
}

/* Whether bulk stores read the buffer, which nothing but another of the same buffer waits for. */
static bool is_stored_in_bulk(const struct tir *ir, tir_stmt kernel, tir_buffer buffer) {
  for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel)) {
    if (!tir_is(ir, s, TIR_EVALUATE)) continue;
    tir_expr call = tir_stmt_at(ir, s)->evaluate.value;
    if (tir_is_device_call(ir, call, TIR_TENSOR_STORE) && tir_uses_buffer(ir, call, buffer)) return true;
  }
  return false;
}

/* Whether loops that threads run through repeat a statement. */
static bool is_repeated(const struct tir *ir, tir_stmt s) {
  for (s = tir_stmt_at(ir, s)->parent; s; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_WHILE) || (tir_is(ir, s, TIR_LOOP) && !tir_is_bound(ir, s) && tir_loop_extent(ir, s) != 1))
      return true;
  return false;
}

static bool gather(struct lowering *low, tir_stmt kernel, struct layout *l) {
  const struct tir *ir = low->ir;
  uint32_t *position = number_statements(ir, kernel);
  bool known = true;
  for (tir_stmt s = kernel; s && known; s = tir_next(ir, s, kernel)) {
    if (!is_shared(ir, s)) continue;
    struct piece p = {.alloc = s, .buffer = tir_stmt_at(ir, s)->alloc.buffer};
    p.bytes = tir_allocation_bytes(ir, p.buffer);
    struct tir_swizzle swizzle = {0};
    p.alignment = tir_swizzle_of(ir, p.buffer, &swizzle) && swizzle.panel ? TIR_PANEL_ALIGNMENT : TIR_SHARED_ALIGNMENT;
    if (p.alignment > l->alignment) l->alignment = p.alignment;
    known = p.bytes > 0 || tir_refuse(ir, low->err, MS_LOWER_SHARED, TIR_NONE, "the size of %s is not known",
                                      tir_buffer_name(ir, p.buffer));
    find_life(ir, &p, position, has_names(ir, kernel, p.buffer));
    if (tir_memory_scope_of(ir, p.buffer) == TIR_SCOPE_MBARRIER) p.first = 0, p.last = UINT32_MAX;
    if (is_stored_in_bulk(ir, kernel, p.buffer)) p.first = is_repeated(ir, s) ? 0 : p.first, p.last = UINT32_MAX;
    l->at = tir_enlarge(l->at, &l->capacity, (uint64_t)l->count + 1, sizeof *l->at);
    l->at[l->count++] = p;
  }
  free(position);
  return known;
}

static int by_size(const void *a, const void *b) {
  const struct piece *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return (x->first > y->first) - (x->first < y->first);
}

static bool live_together(const struct piece *a, const struct piece *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* Gives each a place; returns the bytes of all. */
static uint64_t place(struct layout *l) {
  uint64_t most = 0;
  qsort(l->at, l->count, sizeof *l->at, by_size);
  for (uint32_t i = 0; i < l->count; i++) {
    struct piece *p = &l->at[i];
    p->offset = 0;
    assert(p->bytes && l->alignment % p->alignment == 0);
    for (uint32_t k = 0; k < i; k++) { /* past one that is in the way, and again past all */
      const struct piece *q = &l->at[k];
      bool apart = p->offset + p->bytes <= q->offset || q->offset + q->bytes <= p->offset;
      if (apart || !live_together(p, q)) continue;
      p->offset = (q->offset + q->bytes + p->alignment - 1) / p->alignment * p->alignment;
      k = UINT32_MAX;
    }
    if (p->offset + p->bytes > most) most = p->offset + p->bytes;
  }
  return (most + TIR_SHARED_ALIGNMENT - 1) / TIR_SHARED_ALIGNMENT * TIR_SHARED_ALIGNMENT;
}

/* How its rows lie stays part of its scope. */
static tir_symbol scope_of_view(struct tir *ir, tir_buffer buffer, const char *name) {
  char scope[64];
  const char *own = tir_text(ir, tir_buffer_at(ir, buffer)->scope);
  bool plain = tir_rows_of(ir, buffer) == TIR_ROWS_PLAIN;
  snprintf(scope, sizeof scope, "%s%s", name,
           plain ? "" : own + strlen(tir_memory_scope_name(tir_memory_scope_of(ir, buffer))));
  return tir_symbol_of(ir, scope);
}

/* A view is the same in all iterations: loops that are unrolled cannot repeat its declaration. */
static void leave_unrolled(struct tir *ir, tir_stmt declaration) {
  tir_stmt outermost = TIR_NONE;
  for (tir_stmt s = tir_stmt_at(ir, declaration)->parent; s; s = tir_stmt_at(ir, s)->parent)
    if (tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_UNROLLED) outermost = s;
  if (!outermost) return;
  tir_detach(ir, declaration);
  tir_insert_before(ir, outermost, declaration);
}

static void make_views(struct tir *ir, tir_stmt kernel, const struct layout *l, uint64_t bytes) {
  tir_stmt inside;
  lower_threads_of(ir, kernel, &inside);
  tir_expr size = tir_int(ir, TIR_T_I32, (int64_t)bytes);
  const char *name =
      tir_memory_scope_name(bytes > TIR_STATIC_SHARED_BYTES ? TIR_SCOPE_SHARED_DYNAMIC : TIR_SCOPE_SHARED);
  tir_symbol scope = tir_symbol_of(ir, name);
  tir_buffer all = tir_new_buffer(ir, tir_symbol_of(ir, "shared"), TIR_TYPE(TIR_UINT, 8, 1), &size, 1, scope);
  tir_buffer_at(ir, all)->alignment = (int)l->alignment;
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  tir_stmt_at(ir, alloc)->alloc.buffer = all;
  tir_buffer_at(ir, all)->where = alloc;
  tir_insert_before(ir, tir_stmt_at(ir, inside)->first[TIR_BODY], alloc);
  for (uint32_t i = 0; i < l->count; i++) {
    const struct piece *p = &l->at[i];
    assert(p->offset % p->alignment == 0 && p->offset + p->bytes <= bytes);
    assert(tir_buffer_memory(ir, p->buffer) == TIR_BLOCK_MEMORY && !tir_buffer_at(ir, p->buffer)->data);
    tir_expr at = tir_int(ir, TIR_T_I32, (int64_t)l->at[i].offset), first = tir_load(ir, all, &at, 1, TIR_NONE);
    tir_expr data = tir_call(ir, TIR_T_HANDLE, tir_symbol_of(ir, "address_of"), &first, 1);
    tir_buffer_at(ir, l->at[i].buffer)->data = data;
    tir_symbol own = scope_of_view(ir, l->at[i].buffer, name);
    tir_buffer_at(ir, l->at[i].buffer)->scope = own;
    tir_stmt_at(ir, l->at[i].alloc)->kind = TIR_DECLARE;
    leave_unrolled(ir, l->at[i].alloc);
  }
}

static bool share(struct lowering *low, tir_stmt kernel) {
  struct layout l = {0};
  uint64_t limit = low->options && low->options->shared_bytes ? low->options->shared_bytes : TIR_STATIC_SHARED_BYTES,
           bytes = 0;
  bool fits = gather(low, kernel, &l);
  if (fits && l.count) bytes = place(&l);
  if (bytes > limit)
    fits = tir_refuse(low->ir, low->err, MS_LOWER_SHARED, TIR_NONE,
                      "a block uses %llu bytes of shared memory, the target has %llu", (unsigned long long)bytes,
                      (unsigned long long)limit);
  if (fits && bytes) make_views(low->ir, kernel, &l, bytes);
  free(l.at);
  return fits;
}

bool lower_shared_memory(struct lowering *low) {
  const struct tir *ir = low->ir;
  for (tir_stmt s = tir_stmt_at(ir, low->body)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    if (tir_is(ir, s, TIR_LOOP) && !share(low, s)) return false;
  return true;
}

/* ---- Reading a layout ---- */

/* The buffer that another is a view of, and the constant byte where it begins. TIR_NONE: it is not known. */
static tir_buffer viewed(const struct tir *ir, tir_buffer buffer, uint64_t *offset) {
  tir_expr data = tir_buffer_at(ir, buffer)->data;
  *offset = 0;
  if (!data) return buffer;
  const struct tir_expr_node *n = tir_at(ir, data);
  if (n->kind != TIR_CALL || n->count != 1 || strcmp(tir_text(ir, n->ref), "address_of") != 0) return TIR_NONE;
  const struct tir_expr_node *first = tir_at(ir, tir_operands(ir, n->operands)[0]);
  if (first->kind != TIR_LOAD || first->count != 1 || tir_buffer_at(ir, first->ref)->data) return TIR_NONE;
  tir_expr at = tir_operands(ir, first->operands)[0];
  if (!tir_is_int(ir, at) || tir_at(ir, at)->imm < 0) return TIR_NONE;
  *offset = (uint64_t)tir_at(ir, at)->imm * ((uint64_t)tir_type_bits(tir_buffer_at(ir, first->ref)->type) / 8);
  return first->ref;
}

bool lower_share_bytes(struct tir *ir, tir_buffer a, tir_buffer b) {
  uint64_t at_a, at_b, bytes_a = tir_allocation_bytes(ir, a), bytes_b = tir_allocation_bytes(ir, b);
  tir_buffer of_a = viewed(ir, a, &at_a), of_b = viewed(ir, b, &at_b);
  if (!of_a || !of_b) return true;
  if (of_a != of_b) return false;
  return !bytes_a || !bytes_b || (at_a < at_b + bytes_b && at_b < at_a + bytes_a);
}

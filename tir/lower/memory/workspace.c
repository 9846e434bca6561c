/* Workspace: large allocations become views of one buffer, which the caller of the function brings.
 * Requires: no blocks; allocations of constant size. Gives: a layout as lowered.h describes it. Keeps: small
 * allocations, which are registers or lie on the stack, and everything else.
 *
 * An allocation lives to the end of its list, and lists are nested: a place is given back when its list ends, so that
 * those which never live at once share it, in one parallel loop and the next too. Threads are at different places of a
 * loop at one time: what one has given back and taken again must lie in memory of its own. So a piece is one run of
 * bytes, as long as the most that any parallel loop needs, and a thread's next piece begins where its own ends.
 * Runs last: a thread's number holds inside its loop only, and passes before may move what looks constant. */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

enum { LINE = 64, DEFAULT_STACK_BYTES = 16 << 10 };
enum part { SHARED, PIECE, PARTS }; /* before the pieces, or in one */

struct placement {
  tir_stmt alloc;
  enum part part;
  uint64_t offset;
};
struct layout {
  struct tir *ir;
  uint64_t stack_bytes;
  uint64_t used[PARTS], most[PARTS];
  struct placement *placements;
  uint32_t count, capacity;
};

static uint64_t whole_lines(uint64_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }

static void place_allocation(struct layout *l, tir_stmt s, enum part part) {
  uint64_t bytes = tir_allocation_bytes(l->ir, tir_stmt_at(l->ir, s)->alloc.buffer);
  if (tir_is_fragment(l->ir, tir_stmt_at(l->ir, s)->alloc.buffer)) return;
  if (bytes <= l->stack_bytes) return; /* 0: the code generator refuses it */
  l->placements = tir_enlarge(l->placements, &l->capacity, (uint64_t)l->count + 1, sizeof *l->placements);
  l->placements[l->count++] = (struct placement){s, part, l->used[part]};
  l->used[part] += whole_lines(bytes);
  assert(l->used[part] % LINE == 0 && l->used[part] >= bytes);
  if (l->used[part] > l->most[part]) l->most[part] = l->used[part];
}

static void place_list(struct layout *l, tir_stmt first, enum part part) {
  uint64_t used = l->used[part];
  for (tir_stmt s = first; s; s = tir_stmt_at(l->ir, s)->next) {
    const struct tir_stmt_node *n = tir_stmt_at(l->ir, s);
    bool declared = n->kind == TIR_DECLARE && !tir_buffer_at(l->ir, n->alloc.buffer)->data;
    if (n->kind == TIR_ALLOC || declared) place_allocation(l, s, part);
    enum part inside = n->kind == TIR_LOOP && n->loop_kind == TIR_PARALLEL ? PIECE : part;
    place_list(l, n->first[TIR_BODY], inside);
    place_list(l, n->first[TIR_ELSE], inside);
  }
  assert(l->used[part] >= used && l->most[part] >= l->used[part]);
  l->used[part] = used;
}

/* The buffer, allocated before all else. */
static tir_buffer make_workspace(struct lowering *low, const struct layout *l) {
  struct tir *ir = low->ir;
  uint32_t threads = low->options->threads;
  tir_expr bytes = tir_int(ir, TIR_T_I64, (int64_t)(l->most[SHARED] + threads * l->most[PIECE]));
  tir_symbol name = tir_symbol_of(ir, "workspace"), scope = tir_scope_named(ir, TIR_SCOPE_WORKSPACE);
  tir_buffer workspace = tir_new_buffer(ir, name, TIR_TYPE(TIR_UINT, 8, 1), &bytes, 1, scope);
  tir_stmt alloc = tir_new_stmt(ir, TIR_ALLOC);
  struct tir_span notes = {0, 0};
  tir_annotate_span(ir, &notes, tir_symbol_of(ir, "thread_bytes"), tir_int(ir, TIR_T_I64, (int64_t)l->most[PIECE]));
  tir_annotate_span(ir, &notes, tir_symbol_of(ir, "threads"), tir_int(ir, TIR_T_I32, threads));
  tir_stmt_at(ir, alloc)->alloc.buffer = workspace;
  tir_stmt_at(ir, alloc)->annotations = notes;
  tir_buffer_at(ir, workspace)->where = alloc;
  tir_insert_before(ir, tir_stmt_at(ir, low->body)->first[TIR_BODY], alloc);
  return workspace;
}

static tir_expr thread_number(struct tir *ir) {
  tir_expr name = tir_string(ir, tir_symbol_of(ir, TIR_THREAD_NUMBER));
  tir_expr number = tir_call(ir, TIR_T_I32, tir_symbol_of(ir, "call_extern"), &name, 1);
  return tir_unary(ir, TIR_CAST, TIR_T_I64, number);
}

static void make_view(struct tir *ir, const struct layout *l, tir_buffer workspace, const struct placement *p) {
  uint64_t offset = p->offset + (p->part == PIECE ? l->most[SHARED] : 0);
  assert(offset % LINE == 0 && p->offset < l->most[p->part]);
  assert(!tir_buffer_at(ir, tir_stmt_at(ir, p->alloc)->alloc.buffer)->data && "placed once");
  tir_expr at = tir_int(ir, TIR_T_I64, (int64_t)offset);
  if (p->part == PIECE) {
    tir_expr stride = tir_int(ir, TIR_T_I64, (int64_t)l->most[PIECE]);
    tir_expr piece = tir_binary(ir, TIR_MUL, thread_number(ir), stride);
    at = offset ? tir_binary(ir, TIR_ADD, piece, at) : piece;
  }
  tir_expr first = tir_load(ir, workspace, &at, 1, TIR_NONE);
  tir_expr data = tir_call(ir, TIR_T_HANDLE, tir_symbol_of(ir, "address_of"), &first, 1);
  tir_buffer_at(ir, tir_stmt_at(ir, p->alloc)->alloc.buffer)->data = data;
  tir_stmt_at(ir, p->alloc)->kind = TIR_DECLARE;
}

/* A function that was lowered before and read again: its workspace is an allocation like others. */
static void forget_workspaces(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_buffer buffer = tir_stmt_at(ir, s)->alloc.buffer;
    if (tir_memory_scope_of(ir, buffer) != TIR_SCOPE_WORKSPACE) continue;
    tir_buffer_at(ir, buffer)->scope = tir_scope_named(ir, TIR_SCOPE_GLOBAL);
    tir_stmt_at(ir, s)->annotations = (struct tir_span){0, 0};
  }
}

bool lower_workspace(struct lowering *low) {
  if (!low->options || !low->options->threads) return true;
  struct layout l = {.ir = low->ir, .stack_bytes = low->options->stack_bytes};
  if (!l.stack_bytes) l.stack_bytes = DEFAULT_STACK_BYTES;
  forget_workspaces(low);
  place_list(&l, tir_stmt_at(low->ir, low->body)->first[TIR_BODY], SHARED);
  if (l.count) {
    tir_buffer workspace = make_workspace(low, &l);
    for (uint32_t i = 0; i < l.count; i++) make_view(low->ir, &l, workspace, &l.placements[i]);
  }
  free(l.placements);
  return tir_verify_workspace(low->ir, low->func, low->err);
}

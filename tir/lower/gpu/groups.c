/* Groups: warp-group MMAs are asynchronous; the fence before them, their commit and their wait are put here.
 *
 *   for i: wgmma_mma(c, i, …)    becomes    wgmma_fence(c); wgmma_mma(c, 0, …); wgmma_mma(c, 1, …); wgmma_commit();
 *                                           wgmma_wait(0, c)
 *
 * Requires: kernels; rows of shared memory as they stay; barriers come later, those after the waits. Gives: around
 * statements that stand one after the other and hold MMAs alone, a fence before the first, a commit and a wait after
 * the last. Where a loop's MMAs may go on while the next ones begin (flight.c), the wait leaves the group that was
 * begun last, and all are waited for behind the loop, or with the MMAs that follow where nothing is written before.
 * Unrolled loops whose variables number fragments, since registers have no index. Keeps: everything else. Refuses
 * MMAs of matrices that no descriptor can describe. The second pass, once there are barriers, makes what threads
 * wrote seen by MMAs: a fence of each thread before each barrier of a kernel that has MMAs. */
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <string.h>

enum { MOST_ACCUMULATORS = 8 }; /* buffers of accumulators, and of operands in registers, in one run */

static bool of_registers(const struct tir *ir, tir_stmt s) { return lower_calls(ir, s, TIR_WGMMA_MMA_REGISTERS); }

static const tir_expr *arguments(const struct tir *ir, tir_stmt s) {
  return tir_operands(ir, tir_at(ir, tir_as(ir, s, TIR_EVALUATE)->evaluate.value)->operands);
}

/* ---- What descriptors can describe ---- */

static bool refuse(const struct lowering *low, tir_stmt s, const char *what) {
  while (s && !tir_is(low->ir, s, TIR_LOOP)) s = tir_stmt_at(low->ir, s)->parent;
  return tir_refuse(low->ir, low->err, MS_LOWER_GROUP, s, "%s", what);
}

/* The column that an offset names in rows of `stride`, where its row is a multiple of TIR_PANEL_ROWS; TIR_NONE: that
 * is not shown. */
static tir_expr column_of(struct tir *ir, tir_expr offset, int64_t stride) {
  if (!tir_is_index(ir, offset)) return TIR_NONE;
  struct tir_linear l = tir_linear_of(ir, offset);
  tir_expr column = tir_int(ir, tir_type_of(ir, offset), l.constant % (TIR_PANEL_ROWS * stride));
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = tir_terms(ir, l)[i];
    if (t.coefficient % (TIR_PANEL_ROWS * stride) == 0) continue;
    column = tir_add(ir, column, tir_mul(ir, t.atom, tir_int(ir, tir_type_of(ir, offset), t.coefficient)));
  }
  struct tir_bounds b = tir_bounds_of(ir, column);
  return b.lo >= 0 && b.hi < stride ? column : TIR_NONE;
}

/* `columns`: of what is read of each row. */
static bool check_operand(const struct lowering *low, tir_stmt s, tir_expr pointer, tir_expr stride, int64_t columns) {
  struct tir *ir = low->ir;
  struct tir_swizzle panels = {0};
  struct tir_pointer p;
  if (!tir_pointer_of(ir, tir_at(ir, pointer), &p) || !p.buffer || !tir_swizzle_of(ir, p.buffer, &panels) ||
      !panels.panel)
    return refuse(low, s, "a warp-group MMA reads a matrix that is not in the canonical layout of shared memory");
  int64_t bytes = tir_type_bits(tir_buffer_at(ir, p.buffer)->type) / 8, panel = panels.panel / bytes;
  if (!tir_is_int(ir, stride) || tir_at(ir, stride)->imm * bytes != panels.row)
    return refuse(low, s, "a warp-group MMA reads rows that are not those of the buffer");
  tir_expr column = column_of(ir, p.offset, panels.row / bytes);
  bool whole = column && tir_is_multiple(ir, column, panel), within = panel % columns == 0;
  if (!whole && !(column && within && tir_is_multiple(ir, column, columns)))
    return refuse(low, s,
                  "a warp-group MMA reads a matrix that begins in the middle of eight rows or of a swizzled tile");
  return true;
}

/* Two elements side by side are stored at once. */
static bool check_store(const struct lowering *low, tir_stmt s) {
  enum { POINTER = 3, STRIDE = 4 };
  struct tir *ir = low->ir;
  struct tir_pointer p;
  uint32_t count = tir_at(ir, tir_as(ir, s, TIR_EVALUATE)->evaluate.value)->count;
  if (!tir_takes_operands(TIR_WGMMA_STORE, count) || !tir_pointer_of(ir, tir_at(ir, arguments(ir, s)[POINTER]), &p))
    return refuse(low, s, "a warp group stores to where no buffer is");
  tir_expr stride = arguments(ir, s)[STRIDE];
  bool even = tir_is_index(ir, p.offset) && tir_is_index(ir, stride) && tir_is_multiple(ir, p.offset, 2) &&
              tir_is_multiple(ir, stride, 2);
  return even || refuse(low, s, "a warp group stores pairs of elements, which begin at an odd one");
}

/* Of a product's first operand; TIR_T_VOID: the second is another's that does not go with it, or either no buffer's. */
tir_type lower_wgmma_input(const struct tir *ir, tir_stmt product) {
  enum { A = 3, B = 5 };
  const struct tir_expr_node *held = tir_at(ir, arguments(ir, product)[A]);
  tir_buffer a = held->kind == TIR_DATA ? held->ref : tir_pointed(ir, arguments(ir, product)[A]);
  tir_buffer b = tir_pointed(ir, arguments(ir, product)[B]);
  bool alike = a && b && tir_wgmma_pairs(tir_buffer_at(ir, a)->type, tir_buffer_at(ir, b)->type);
  return alike ? tir_buffer_at(ir, a)->type : TIR_T_VOID;
}

static bool check_product(const struct lowering *low, tir_stmt s) {
  enum { N = 2, A = 3, B = 5, LAYOUT = 7, COUNT = 8 };
  struct tir *ir = low->ir;
  struct tir_wgmma_layout lies = {0};
  const tir_expr *args = arguments(ir, s);
  uint32_t count = tir_at(ir, tir_as(ir, s, TIR_EVALUATE)->evaluate.value)->count;
  bool known = count == COUNT && tir_is_int(ir, args[N]) && tir_is_wgmma_width(tir_at(ir, args[N])->imm) &&
               tir_at(ir, args[LAYOUT])->kind == TIR_STRING_IMM &&
               tir_wgmma_layout_of(tir_text(ir, tir_at(ir, args[LAYOUT])->ref), &lies) &&
               !(of_registers(ir, s) && lies.a_by_columns);
  tir_type input = known ? lower_wgmma_input(ir, s) : TIR_T_VOID;
  const struct tir_expr_node *sums = known ? tir_at(ir, args[0]) : NULL;
  known = input != TIR_T_VOID && sums->kind == TIR_DATA &&
          tir_wgmma_multiplies(input, tir_buffer_at(ir, sums->ref)->type, tir_at(ir, args[N])->imm);
  if (!known) return refuse(low, s, "there is no product of a warp group of these arguments");
  tir_expr a = args[A], a_stride = args[A + 1], b = args[B], b_stride = args[B + 1];
  if ((!lies.b_by_columns || lies.a_by_columns) && !tir_wgmma_takes_rows(input))
    return refuse(low, s, "a warp group multiplies elements of 16 bits alone where b lies by rows, or a by columns");
  if (of_registers(ir, s) && !tir_wgmma_takes_registers(input))
    return refuse(low, s, "a warp group multiplies floats of 16 or 8 bits alone that it has in registers");
  int64_t n = tir_at(ir, args[N])->imm, depth = tir_mma_depth(tir_type_bits(input));
  return (of_registers(ir, s) || check_operand(low, s, a, a_stride, lies.a_by_columns ? TIR_WGMMA_ROWS : depth)) &&
         check_operand(low, s, b, b_stride, lies.b_by_columns ? depth : n);
}

/* ---- Registers have no index ---- */

static bool numbers_fragments(const struct tir *ir, tir_stmt s) {
  return lower_is_product(ir, s) || lower_calls(ir, s, TIR_WGMMA_FILL) || lower_calls(ir, s, TIR_WGMMA_STORE);
}

/* The only thread of an axis has its first number. */
static void number_alone(struct tir *ir, tir_stmt loop) {
  if (tir_stmt_at(ir, loop)->loop_kind != TIR_THREAD_BINDING || tir_loop_extent(ir, loop) != 1) return;
  struct tir_stmt_node n = *tir_as(ir, loop, TIR_LOOP);
  tir_subst_var(ir, n.loop.var, n.loop.min);
  for (tir_stmt s = n.first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) tir_subst_stmt(ir, s);
  tir_subst_clear(ir);
}

static bool write_out_loops(const struct lowering *low, tir_stmt s, int operand) {
  struct tir *ir = low->ir;
  tir_expr index = arguments(ir, s)[operand];
  for (tir_stmt p = tir_stmt_at(ir, s)->parent; p; p = tir_stmt_at(ir, p)->parent) {
    if (!tir_is(ir, p, TIR_LOOP) || !tir_uses_var(ir, index, tir_as(ir, p, TIR_LOOP)->loop.var)) continue;
    if (tir_stmt_at(ir, p)->loop_kind == TIR_THREAD_BINDING || tir_loop_extent(ir, p) < 0)
      return refuse(low, p, "fragments of a warp group are numbered by what is no constant");
    tir_stmt_at(ir, p)->loop_kind = TIR_UNROLLED;
  }
  return true;
}

/* ---- Fences and waits ---- */

/* The statement is a product, or loops of products alone. */
static bool is_run(const struct tir *ir, tir_stmt s) {
  if (lower_is_product(ir, s)) return true;
  if (!tir_is(ir, s, TIR_LOOP) || tir_stmt_at(ir, s)->loop_kind == TIR_THREAD_BINDING) return false;
  tir_stmt c = tir_stmt_at(ir, s)->first[TIR_BODY];
  for (; c && is_run(ir, c); c = tir_stmt_at(ir, c)->next) {}
  return !c;
}

struct accumulators {
  tir_expr data[MOST_ACCUMULATORS + 1]; /* the number of groups that are left, then pointers */
  uint32_t count;
};

static bool add_accumulator(const struct lowering *low, tir_stmt top, tir_expr data,
                            struct accumulators *accumulators) {
  uint32_t i = 1;
  while (i <= accumulators->count && accumulators->data[i] != data) i++;
  if (i <= accumulators->count) return true;
  if (accumulators->count == MOST_ACCUMULATORS)
    return refuse(low, top, "a warp group multiplies registers of too many buffers at once");
  accumulators->data[++accumulators->count] = data;
  return true;
}

/* Adds the buffers whose registers the products change or read. */
static bool add_accumulators(const struct lowering *low, tir_stmt top, struct accumulators *accumulators) {
  enum { A = 3 };
  const struct tir *ir = low->ir;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (lower_is_product(ir, s) &&
        (!add_accumulator(low, top, arguments(ir, s)[0], accumulators) ||
         (of_registers(ir, s) && !add_accumulator(low, top, arguments(ir, s)[A], accumulators))))
      return false;
  return true;
}

/* Puts them around the statements from `first` to `last`. */
static bool put_around(const struct lowering *low, tir_stmt first, tir_stmt last) {
  struct tir *ir = low->ir;
  struct accumulators accumulators = {{tir_int(ir, TIR_T_I32, 0)}, 0};
  for (tir_stmt s = first;; s = tir_stmt_at(ir, s)->next) {
    if (!add_accumulators(low, s, &accumulators)) return false;
    if (s == last) break;
  }
  bool stays = lower_may_stay_in_flight(ir, first, last, accumulators.data + 1, accumulators.count);
  assert(accumulators.count && tir_stmt_at(ir, first)->parent == tir_stmt_at(ir, last)->parent);
  tir_insert_before(ir, first, lower_new_call(ir, TIR_WGMMA_FENCE, accumulators.data + 1, accumulators.count));
  tir_stmt commit = lower_new_call(ir, TIR_WGMMA_COMMIT, NULL, 0);
  tir_insert_after(ir, last, commit);
  tir_stmt loop = tir_stmt_at(ir, first)->parent;
  if (stays) tir_insert_after(ir, loop, lower_new_call(ir, TIR_WGMMA_WAIT, accumulators.data, accumulators.count + 1));
  accumulators.data[0] = tir_int(ir, TIR_T_I32, stays);
  tir_insert_after(ir, commit, lower_new_call(ir, TIR_WGMMA_WAIT, accumulators.data, accumulators.count + 1));
  return true;
}

/* Takes the request for groups in flight away; one that is not fulfilled is noted. */
static void settle_request(const struct lowering *low, tir_stmt loop) {
  struct tir *ir = low->ir;
  tir_symbol key = tir_symbol_of(ir, TIR_PIPELINE_IN_FLIGHT);
  tir_expr request = tir_annotation(ir, tir_stmt_at(ir, loop)->annotations, TIR_PIPELINE_IN_FLIGHT);
  bool left = false;
  if (!request) return;
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next)
    left |= lower_calls(ir, s, TIR_WGMMA_WAIT) && !tir_is_const(ir, arguments(ir, s)[0], 0);
  if (!left && !tir_is_const(ir, request, 0))
    lower_note(low, loop, "one whose products go on into the next iteration: that they may is not proved");
  tir_annotate_span(ir, &tir_stmt_at(ir, loop)->annotations, key, TIR_NONE);
}

static bool walk(const struct lowering *low, tir_stmt parent) {
  struct tir *ir = low->ir;
  for (int list = TIR_BODY; list <= TIR_ELSE; list++)
    for (tir_stmt s = tir_stmt_at(ir, parent)->first[list]; s; s = tir_stmt_at(ir, s)->next) {
      if (!is_run(ir, s)) {
        if (!walk(low, s)) return false;
        continue;
      }
      tir_stmt last = s;
      while (tir_stmt_at(ir, last)->next && is_run(ir, tir_stmt_at(ir, last)->next)) last = tir_stmt_at(ir, last)->next;
      if (!put_around(low, s, last)) return false;
      s = last;
    }
  return true;
}

/* Only copies are waited for or ended between the statement and the fence of the next products, which is given; else
 * TIR_NONE. */
static tir_stmt next_fence(const struct tir *ir, tir_stmt after) {
  tir_stmt s = tir_stmt_at(ir, after)->next;
  while (s && (lower_has_effect(ir, s, TIR_DOES_COPY_GROUP) || lower_calls(ir, s, TIR_MBARRIER_WAIT)))
    s = tir_stmt_at(ir, s)->next;
  return s && lower_calls(ir, s, TIR_WGMMA_FENCE) ? s : TIR_NONE;
}

/* Both waits name the same accumulators. */
static bool same_accumulators(const struct tir *ir, tir_stmt a, tir_stmt b) {
  uint32_t count = tir_at(ir, tir_as(ir, a, TIR_EVALUATE)->evaluate.value)->count;
  return count == tir_at(ir, tir_as(ir, b, TIR_EVALUATE)->evaluate.value)->count &&
         !memcmp(arguments(ir, a) + 1, arguments(ir, b) + 1, (count - 1) * sizeof(tir_expr));
}

/* MMAs that others of the same accumulators follow, where nothing is written between, are waited for with these; the
 * last group of a loop, too. */
static void join_groups(struct tir *ir, tir_stmt wait) {
  tir_stmt then = next_fence(ir, wait);
  while (then && !lower_calls(ir, then, TIR_WGMMA_WAIT)) then = tir_stmt_at(ir, then)->next;
  if (!then || !tir_is_const(ir, arguments(ir, wait)[0], 0) || !same_accumulators(ir, wait, then)) return;
  if (!lower_calls(ir, tir_stmt_at(ir, wait)->prev, TIR_WGMMA_COMMIT)) {
    tir_kill(ir, wait);
    return;
  }
  tir_expr args[MOST_ACCUMULATORS + 1] = {tir_int(ir, TIR_T_I32, 1)};
  uint32_t count = tir_at(ir, tir_as(ir, wait, TIR_EVALUATE)->evaluate.value)->count;
  assert(count <= MOST_ACCUMULATORS + 1);
  memcpy(args + 1, arguments(ir, wait) + 1, (count - 1) * sizeof *args);
  tir_expr call = tir_call(ir, TIR_T_VOID, tir_device_symbol(ir, TIR_WGMMA_WAIT), args, count);
  tir_as(ir, wait, TIR_EVALUATE)->evaluate.value = call;
}

static bool has_products(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (lower_is_product(ir, s)) return true;
  return false;
}

bool lower_groups(struct lowering *low) {
  enum { INDEX = 1, A_INDEX = 4 };
  const struct tir *ir = low->ir;
  if (!has_products(ir, low->body)) return true;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_LOOP)) number_alone(low->ir, s);
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (lower_is_product(ir, s) && !check_product(low, s)) return false;
    if (lower_calls(ir, s, TIR_WGMMA_STORE) && !check_store(low, s)) return false;
    if (numbers_fragments(ir, s) && !write_out_loops(low, s, INDEX)) return false;
    if (of_registers(ir, s) && !write_out_loops(low, s, A_INDEX)) return false;
  }
  if (!walk(low, low->body)) return false;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body))
    if (tir_is(ir, s, TIR_LOOP)) settle_request(low, s);
  for (tir_stmt s = low->body, next; s; s = next) {
    next = tir_next(ir, s, low->body);
    if (lower_calls(ir, s, TIR_WGMMA_WAIT)) join_groups(low->ir, s);
  }
  return true;
}

/* Warp-group MMAs, or TMA bulk tensor copies and stores, which do not see what threads write unless those fence. */
static bool has_other_proxies(const struct tir *ir, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(ir, s, top))
    if (lower_is_product(ir, s) || lower_is_tma_copy(ir, s) || lower_calls(ir, s, TIR_TENSOR_STORE)) return true;
  return false;
}

bool lower_proxies(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt kernel = tir_stmt_at(ir, low->body)->first[TIR_BODY]; kernel; kernel = tir_stmt_at(ir, kernel)->next) {
    if (!has_other_proxies(ir, kernel)) continue;
    for (tir_stmt s = kernel; s; s = tir_next(ir, s, kernel))
      if (lower_calls(ir, s, TIR_STORAGE_SYNC)) tir_insert_before(ir, s, lower_new_call(ir, TIR_PROXY_FENCE, NULL, 0));
  }
  return true;
}

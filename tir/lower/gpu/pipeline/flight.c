/* Flight: whether warp-group MMAs may go on while the next iteration's begin.
 *
 *   for k: copy(S[k % 4]); wgmma_mma(c, S[(k - 2) % 4]); wgmma_commit(); wgmma_wait(1, c)
 *
 * From where they begin to the wait of the next iteration nothing else in the loop may touch their accumulators, or
 * write what they read. That is so where they read one stage buffer, and each store names another: the remainders
 * are of numbers that differ by what is no multiple of how many there are. Threads that are ahead or behind are kept
 * apart by barriers, which know waits as reads (barriers.c). */
#include "tir/analysis/loads.h"
#include "tir/arith/linear.h"
#include "tir/lower/lower.h"

#include <string.h>

enum { MOST_READ = 128 };

struct flight {
  struct tir *ir;
  tir_stmt loop;
  const tir_expr *accumulators;
  uint32_t accumulator_count;
  struct lower_stage_buffer read[MOST_READ];
  uint32_t count;
};

/* ---- What products read ---- */

/* The first dimension of a buffer numbers its stage buffers. Elements of one; 0: it has none. */
static int64_t elements_of(const struct tir *ir, tir_buffer buffer) {
  int64_t product = 1;
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  for (uint32_t d = 0; d < b->rank; d++) {
    tir_expr extent = ir->operands.at[b->shape + d];
    if (!tir_is_int(ir, extent)) return 0;
    if (d) product *= tir_at(ir, extent)->imm;
  }
  return b->rank > 1 ? product : 0;
}

static int64_t stage_buffers_of(const struct tir *ir, tir_buffer buffer) {
  return tir_at(ir, ir->operands.at[tir_buffer_at(ir, buffer)->shape])->imm;
}

tir_expr lower_stage_buffer_number(const struct tir *ir, tir_expr number, tir_buffer buffer) {
  const struct tir_expr_node *n = tir_at(ir, number);
  if (!elements_of(ir, buffer)) return TIR_NONE;
  return n->kind == TIR_FLOORMOD && tir_is_const(ir, n->b, stage_buffers_of(ir, buffer)) ? n->a : number;
}

bool lower_are_other_stage_buffers(struct tir *ir, tir_buffer buffer, tir_expr a, tir_expr b) {
  if (!a || !b || tir_type_of(ir, a) != tir_type_of(ir, b)) return false;
  struct tir_linear apart = tir_linear_of(ir, tir_sub(ir, a, b));
  return !apart.count && apart.constant % stage_buffers_of(ir, buffer) != 0;
}

/* The pointer leads into one stage buffer, and `reach` elements on it is still in that. */
static bool find_stage_buffer(struct tir *ir, tir_expr pointer, int64_t reach, struct lower_stage_buffer *out) {
  struct tir_pointer to;
  if (!tir_pointer_of(ir, tir_at(ir, pointer), &to) || !to.buffer || !tir_is_index(ir, to.offset)) return false;
  int64_t elements = elements_of(ir, to.buffer);
  assert(reach >= 0 && elements >= 0);
  if (!elements) return false;
  tir_type type = tir_type_of(ir, to.offset);
  struct tir_linear l = tir_linear_of(ir, to.offset);
  int64_t left = (l.constant % elements + elements) % elements;
  tir_expr number = tir_int(ir, type, (l.constant - left) / elements), rest = tir_int(ir, type, left);
  for (uint32_t i = 0; i < l.count; i++) {
    struct tir_term t = tir_terms(ir, l)[i];
    bool whole = t.coefficient % elements == 0;
    tir_expr *sum = whole ? &number : &rest;
    *sum = tir_add(ir, *sum, tir_mul(ir, t.atom, tir_int(ir, type, whole ? t.coefficient / elements : t.coefficient)));
  }
  struct tir_bounds b = tir_bounds_of(ir, rest);
  if (b.lo < 0 || b.hi >= elements - reach) return false;
  *out = (struct lower_stage_buffer){to.buffer, lower_stage_buffer_number(ir, number, to.buffer)};
  return true;
}

/* From the first element of a matrix to its last. */
static int64_t reach_of(int64_t rows, int64_t columns, bool by_columns, int64_t stride) {
  return by_columns ? (columns - 1) * stride + rows - 1 : (rows - 1) * stride + columns - 1;
}

/* (c, index, n, a, stride, b, stride, layout), which groups.c has checked. Registers are no stage buffer. */
bool lower_find_stage_buffers(struct tir *ir, tir_stmt product, struct lower_stage_buffer out[2]) {
  enum { N = 2, A = 3, B = 5, LAYOUT = 7 };
  assert(lower_is_product(ir, product));
  if (!lower_calls(ir, product, TIR_WGMMA_MMA)) return false;
  const tir_expr *args = tir_operands(ir, tir_at(ir, tir_as(ir, product, TIR_EVALUATE)->evaluate.value)->operands);
  tir_expr a = args[A], b = args[B];
  int64_t n = tir_at(ir, args[N])->imm, stride_a = tir_at(ir, args[A + 1])->imm,
          stride_b = tir_at(ir, args[B + 1])->imm;
  struct tir_wgmma_layout lies;
  if (!tir_wgmma_layout_of(tir_text(ir, tir_at(ir, args[LAYOUT])->ref), &lies)) return false;
  int64_t depth = tir_mma_depth(tir_type_bits(lower_wgmma_input(ir, product)));
  return find_stage_buffer(ir, a, reach_of(TIR_WGMMA_ROWS, depth, lies.a_by_columns, stride_a), &out[0]) &&
         find_stage_buffer(ir, b, reach_of(depth, n, lies.b_by_columns, stride_b), &out[1]);
}

bool lower_find_copied_stage_buffer(struct tir *ir, tir_stmt copy, struct lower_stage_buffer *out) {
  struct tir_box b;
  int64_t rows = 1;
  if (!tir_box_of(ir, tir_as(ir, copy, TIR_EVALUATE)->evaluate.value, &b)) return false;
  for (uint32_t d = 0; d + 1 < b.rank; d++) rows *= b.box[d];
  return find_stage_buffer(ir, b.to, (rows - 1) * b.stride + b.box[b.rank - 1] - 1, out);
}

static bool is_text(const struct tir *ir, tir_expr e, const char *text) {
  return tir_at(ir, e)->kind == TIR_STRING_IMM && !strcmp(tir_text(ir, tir_at(ir, e)->ref), text);
}

/* (d, index, pointer, stride, layout, operand): as many rows as a fragment has, of what is summed; or of b by rows the
 * other way round. */
bool lower_find_loaded_stage_buffer(struct tir *ir, tir_stmt load, struct lower_stage_buffer *out) {
  enum { POINTER = 2, STRIDE, LAYOUT, OPERAND, COUNT };
  const struct tir_expr_node *call = tir_at(ir, tir_as(ir, load, TIR_EVALUATE)->evaluate.value);
  const tir_expr *args = tir_operands(ir, call->operands);
  if (call->count != COUNT || !tir_is_int(ir, args[STRIDE])) return false;
  tir_buffer from = tir_pointed(ir, args[POINTER]);
  int bits = from ? tir_type_bits(tir_buffer_at(ir, from)->type) : 0;
  int64_t stride = tir_at(ir, args[STRIDE])->imm;
  if ((bits != 8 && bits != 16 && bits != 32) || stride < 0) return false;
  bool turned = is_text(ir, args[OPERAND], "b") && is_text(ir, args[LAYOUT], "row_major");
  return find_stage_buffer(ir, args[POINTER], reach_of(TIR_MMA_SIDE, tir_mma_depth(bits), turned, stride), out);
}

static bool add_reads(struct flight *f, tir_stmt product) {
  struct lower_stage_buffer of[2];
  if (!lower_find_stage_buffers(f->ir, product, of)) return false;
  for (int k = 0; k < 2; k++) {
    uint32_t i = 0;
    while (i < f->count && (f->read[i].buffer != of[k].buffer || f->read[i].number != of[k].number)) i++;
    if (i == MOST_READ) return false;
    f->read[i] = of[k];
    if (i == f->count) f->count++;
  }
  return true;
}

/* ---- What else the loop does ---- */

static bool is_sum(const struct flight *f, tir_buffer buffer) {
  for (uint32_t i = 0; i < f->accumulator_count; i++)
    if (tir_at(f->ir, f->accumulators[i])->ref == buffer) return true;
  return false;
}

/* A pointer to what a block shares, or accumulators. */
static bool may_point(const struct tir *ir, const void *context, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  if (n->kind == TIR_LOAD) return is_sum(context, n->ref);
  if (n->kind == TIR_DATA) return is_sum(context, n->ref) || tir_buffer_memory(ir, n->ref) == TIR_BLOCK_MEMORY;
  return n->kind == TIR_CALL && !strcmp(tir_text(ir, n->ref), "address_of");
}

/* What is written there, of the stage buffer of this number, is none of what the products of one iteration read, who
 * are in flight until those of the next have begun. `after`: it stands behind them, so that it is theirs; else it is
 * the next iteration's. */
static bool is_apart(const struct flight *f, tir_buffer buffer, tir_expr number, bool after) {
  struct tir *ir = f->ir;
  struct tir_stmt_node loop = *tir_stmt_at(ir, f->loop);
  for (uint32_t i = 0; i < f->count; i++) {
    struct lower_stage_buffer v = f->read[i];
    if (buffer != v.buffer && !lower_share_bytes(ir, buffer, v.buffer)) continue;
    if (buffer != v.buffer || !number) return false;
    tir_expr then = number;
    if (!after) {
      tir_expr var = tir_var_expr(ir, loop.loop.var);
      tir_subst_var(ir, loop.loop.var, tir_add(ir, var, tir_int(ir, tir_type_of(ir, var), 1)));
      then = tir_subst(ir, then);
      tir_subst_clear(ir);
    }
    if (!lower_are_other_stage_buffers(ir, v.buffer, then, v.number)) return false;
  }
  return true;
}

static bool is_store_apart(const struct flight *f, tir_stmt store, bool after) {
  struct tir *ir = f->ir;
  struct tir_stmt_node n = *tir_stmt_at(ir, store);
  if (is_sum(f, n.store.buffer)) return false;
  if (tir_buffer_memory(ir, n.store.buffer) != TIR_BLOCK_MEMORY) return true;
  tir_expr number = tir_buffer_at(ir, n.store.buffer)->rank
                        ? lower_stage_buffer_number(ir, ir->operands.at[n.store.indices], n.store.buffer)
                        : TIR_NONE;
  return is_apart(f, n.store.buffer, number, after);
}

/* TMA bulk tensor copies, and mbarriers that wait for them. */
static bool is_of_tma_copies(const struct tir *ir, tir_stmt s) { return lower_has_effect(ir, s, TIR_DOES_PHASE); }

/* The stage buffer that may be overwritten where threads arrive at this mbarrier: those come after as many others
 * (mbarrier.c). TIR_NONE: it is not known. */
static tir_expr freed_by(struct tir *ir, tir_stmt arrive) {
  tir_expr pointer = tir_operands(ir, tir_at(ir, tir_as(ir, arrive, TIR_EVALUATE)->evaluate.value)->operands)[0];
  struct tir_pointer phase;
  bool leads = tir_pointer_of(ir, tir_at(ir, pointer), &phase);
  assert(leads && tir_buffer_memory(ir, phase.buffer) == TIR_BLOCK_MEMORY);
  (void)leads;
  int64_t ring = tir_ring_of_mbarriers(stage_buffers_of(ir, phase.buffer));
  assert(ring > 0);
  struct tir_linear l = tir_linear_of(ir, phase.offset);
  tir_type type = tir_type_of(ir, phase.offset);
  if (!l.count) return tir_int(ir, type, l.constant - ring);
  if (l.count > 1 || tir_terms(ir, l)[0].coefficient != 1 || l.constant != ring) return TIR_NONE;
  const struct tir_expr_node *n = tir_at(ir, tir_terms(ir, l)[0].atom);
  return n->kind == TIR_FLOORMOD && tir_is_const(ir, n->b, ring) ? n->a : TIR_NONE;
}

/* None of what products in flight read is freed. */
static bool is_arrival_apart(const struct flight *f, tir_stmt arrive) {
  struct tir *ir = f->ir;
  tir_expr freed = freed_by(ir, arrive);
  bool apart = freed != TIR_NONE;
  for (uint32_t i = 0; i < f->count && apart; i++)
    apart = lower_are_other_stage_buffers(ir, f->read[i].buffer, freed, f->read[i].number);
  return apart;
}

static bool is_tma_copy_apart(const struct flight *f, tir_stmt s, bool after) {
  struct lower_stage_buffer of;
  if (lower_is_arrival(f->ir, s)) return after && is_arrival_apart(f, s);
  if (!lower_is_tma_copy(f->ir, s)) return true;
  return lower_find_copied_stage_buffer(f->ir, s, &of) && is_apart(f, of.buffer, of.number, after);
}

static bool leaves_alone(const struct flight *f, tir_stmt top, bool after) {
  const struct tir *ir = f->ir;
  for (tir_stmt s = top; s; s = tir_next(ir, s, top)) {
    tir_expr all[4];
    int kind = tir_stmt_at(ir, s)->kind;
    if (kind == TIR_ALLOC || kind == TIR_DECLARE) return false; /* memory that begins again in each iteration */
    if (is_of_tma_copies(ir, s)) {
      if (!is_tma_copy_apart(f, s, after)) return false;
      continue;
    }
    uint32_t count = tir_stmt_exprs(ir, s, all);
    for (uint32_t i = 0; i < count; i++)
      if (tir_any_node(ir, all[i], TIR_HAS_LOAD | TIR_HAS_POINTER | TIR_HAS_CALL, may_point, f)) return false;
    if (kind == TIR_STORE && !is_store_apart(f, s, after)) return false;
  }
  return true;
}

bool lower_may_stay_in_flight(struct tir *ir, tir_stmt first, tir_stmt last, const tir_expr *accumulators,
                              uint32_t count) {
  tir_stmt loop = tir_stmt_at(ir, first)->parent;
  assert(tir_stmt_at(ir, last)->parent == loop && count);
  if (!tir_is(ir, loop, TIR_LOOP) || tir_stmt_at(ir, loop)->loop_kind != TIR_SERIAL) return false;
  struct flight f = {.ir = ir, .loop = loop, .accumulators = accumulators, .accumulator_count = count};
  for (tir_stmt top = first;; top = tir_stmt_at(ir, top)->next) {
    for (tir_stmt s = top; s; s = tir_next(ir, s, top))
      if (lower_is_product(ir, s) && !add_reads(&f, s)) return false;
    if (top == last) break;
  }
  bool after = false;
  for (tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY]; s; s = tir_stmt_at(ir, s)->next) {
    if (s == first) {
      s = last, after = true;
      continue;
    }
    if (!leaves_alone(&f, s, after)) return false;
  }
  assert(after);
  return true;
}

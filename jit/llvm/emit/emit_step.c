/* Addresses in innermost loops over vectors: what an iteration does not change of them is computed in front of the
 * loop, and what all change alike, by so many bytes an iteration, is one counter for all of them.
 *
 *   for k in range(64): C[0:16] += A[y * 640 + k] * B[k * 32 + 16:…]   has   A + y * 640, by 4;  B, by 128, and 64 more
 *
 * This is the form that machines take: a pointer, a counter and a distance. LLVM finds it too, by loop strength
 * reduction, which takes a third of the time of its code generation. */
#include "emit.h"

#include <string.h>

/* A loop of so few iterations may be unrolled by LLVM: the one around it is innermost then. */
enum { MOST_UNROLLED = 8 };

static bool is_index(tir_type t) {
  return tir_type_code(t) == TIR_INT && tir_type_bits(t) >= 32 && tir_type_lanes(t) == 1;
}

static bool find_step(const struct emit *e, tir_expr x, tir_var v, int64_t *step);

/* A product, quotient or remainder, by a constant where the variable is in it. */
static bool find_step_of_product(const struct emit *e, const struct tir_expr_node *n, tir_var v, int64_t *step) {
  int64_t a, b;
  bool scales = n->kind == TIR_MUL, constant = tir_is_int(e->ir, n->b);
  if (!find_step(e, n->a, v, &a) || !find_step(e, n->b, v, &b)) return false;
  if (!scales && (!constant || tir_at(e->ir, n->b)->imm <= 0)) return false; /* it might be done though it never was */
  *step = 0;
  if (!a && !b) return true;
  return scales && constant && !__builtin_mul_overflow(a, tir_at(e->ir, n->b)->imm, step);
}

/* By how much an index grows from one value of v to the next, where all else in it stays; false: it is not known, or
 * what is in it is computed inside of the loop. */
static bool find_step(const struct emit *e, tir_expr x, tir_var v, int64_t *step) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  int64_t a, b;
  if (!is_index(n->type)) return false;
  switch (n->kind) {
  case TIR_INT_IMM: *step = 0; return true;
  case TIR_VAR: *step = n->ref == v; return !e->lets[n->ref];
  case TIR_ADD: return find_step(e, n->a, v, &a) && find_step(e, n->b, v, &b) && !__builtin_add_overflow(a, b, step);
  case TIR_SUB: return find_step(e, n->a, v, &a) && find_step(e, n->b, v, &b) && !__builtin_sub_overflow(a, b, step);
  case TIR_MUL:
  case TIR_DIV:
  case TIR_MOD: return find_step_of_product(e, n, v, step);
  default: return false;
  }
}

bool emit_is_stepped(const struct emit *e, tir_stmt loop) {
  bool vectors = false;
  if (tir_loop_extent(e->ir, loop) < 2) return false;
  tir_stmt only = tir_stmt_at(e->ir, loop)->first[TIR_BODY];
  if (only && !tir_stmt_at(e->ir, only)->next && tir_is(e->ir, only, TIR_LOOP))
    return tir_loop_extent(e->ir, only) <= MOST_UNROLLED && emit_is_stepped(e, only);
  for (tir_stmt s = tir_next(e->ir, loop, loop); s; s = tir_next(e->ir, s, loop)) {
    const struct tir_stmt_node *n = tir_stmt_at(e->ir, s);
    if (n->kind != TIR_STORE && n->kind != TIR_IF && !tir_nontemporal_alignment(e->ir, s)) return false;
    vectors |= n->kind == TIR_STORE && tir_type_lanes(tir_type_of(e->ir, n->store.value)) > 1;
  }
  return vectors;
}

/* To the end of a block: in front of what leaves it, if that is there. */
static void go_to(struct emit *e, LLVMBasicBlockRef block) {
  LLVMValueRef leaves = LLVMGetBasicBlockTerminator(block);
  if (leaves)
    LLVMPositionBuilderBefore(e->builder, leaves);
  else
    LLVMPositionBuilderAtEnd(e->builder, block);
}

/* The counter that grows by so many bytes, from 0; NULL: there are too many. */
static LLVMValueRef counter(struct emit *e, struct emit_steps *s, int64_t bytes) {
  uint32_t i = 0;
  while (i < s->counters && s->bytes[i] != bytes) i++;
  if (i == EMIT_MOST_STEPS) return NULL;
  if (i < s->counters) return s->counter[i];
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
  LLVMPositionBuilderBefore(e->builder, LLVMGetFirstInstruction(s->body));
  s->counters++;
  s->bytes[i] = bytes;
  s->counter[i] = LLVMBuildPhi(e->builder, LLVMInt64TypeInContext(e->context), "step");
  go_to(e, here);
  return s->counter[i];
}

/* The address of the first iteration, in front of the loop; there it may step too, from one iteration of the loop
 * around to the next. */
static LLVMValueRef first_address(struct emit *e, struct emit_steps *s, tir_buffer buffer, tir_expr index,
                                  LLVMTypeRef element) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
  for (uint32_t i = 0; i < s->firsts; i++)
    if (s->first[i].buffer == buffer && s->first[i].index == index) return s->first[i].address;
  LLVMValueRef now = e->vars[s->var];
  go_to(e, s->before);
  e->vars[s->var] = s->min;
  e->steps = LLVMIsConstant(s->min) ? s->outer : NULL;
  LLVMValueRef at = emit_stepped_address(e, buffer, index, element);
  if (!at) {
    at = emit_index(e, index);
    at = LLVMBuildGEP2(e->builder, element, e->buffers[buffer], &at, 1, "");
  }
  e->vars[s->var] = now;
  e->steps = s;
  go_to(e, here);
  if (s->firsts < EMIT_MOST_FIRSTS) s->first[s->firsts++] = (struct emit_first){buffer, index, at};
  return at;
}

int64_t emit_take_constant(const struct emit *e, tir_expr index, tir_expr *rest) {
  const struct tir_expr_node *n = tir_at(e->ir, index);
  bool apart = (n->kind == TIR_ADD || n->kind == TIR_SUB) && tir_is_int(e->ir, n->b);
  int64_t constant = apart ? tir_at(e->ir, n->b)->imm : 0;
  *rest = apart ? n->a : index;
  return n->kind == TIR_SUB ? -constant : constant;
}

LLVMValueRef emit_stepped_address(struct emit *e, tir_buffer buffer, tir_expr index, LLVMTypeRef element) {
  struct emit_steps *s = e->steps;
  int64_t step;
  assert(e->buffers[buffer]);
  if (!s || !find_step(e, index, s->var, &step)) return NULL;
  int64_t size = (int64_t)emit_type_bytes(tir_buffer_at(e->ir, buffer)->type), bytes;
  if (__builtin_mul_overflow(step, size, &bytes)) return NULL;
  LLVMValueRef by = bytes ? counter(e, s, bytes) : NULL;
  if (bytes && !by) return NULL;
  LLVMValueRef at = first_address(e, s, buffer, index, element);
  return by ? LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), at, &by, 1, "") : at;
}

/* Rows of a matrix that is not packed lie so far apart that a page has few of those which a tile reads: what the
 * hardware fetches ahead ends with the page. Fetched is what so many lines later will be read, at most so many
 * iterations later: enough to hide the second cache's latency, and few, as rows at whole ways of the first cache share
 * few of its sets. */
enum { LINE = 64, LINES_AHEAD = 32, MOST_AHEAD = 16 };
static const int64_t LEAST_APART = 1024, MOST_APART = 1 << 20; /* bytes */
static const uint64_t LEAST_BUFFER = 128 * 1024;               /* bytes: less is in the first caches, or soon is */

/* AMD's Zen fetches such rows well enough by itself: on Zen 5 others' products were 1.3 times as fast without, on Zen 3
 * convolutions up to 1.4 times, where a cache has the weights. From memory the times are 0.9 to 1.1 there with fetches
 * (lua/guide/figures.md). What is read row by row it does not (note_next_row). */
static bool gains_by_fetching(const struct jit_target *target) { return strncmp(target->cpu, "znver", 5) != 0; }

static void note_row(struct emit *e, tir_buffer buffer, tir_expr index, uint64_t bytes) {
  struct emit_steps *s = e->steps;
  int64_t step, apart, size = (int64_t)emit_type_bytes(tir_buffer_at(e->ir, buffer)->type);
  if (s->fetches == EMIT_MOST_FETCHED) return;
  if (!find_step(e, index, s->var, &step) || __builtin_mul_overflow(step, size, &apart)) return;
  if (apart < LEAST_APART || apart > MOST_APART) return;
  for (uint32_t i = 0; i < s->fetches; i++)
    if (s->fetched[i].buffer == buffer && s->fetched[i].index == index) return;
  s->fetched[s->fetches++] = (struct emit_fetched){buffer, index, apart, (int64_t)(bytes + LINE - 1) / LINE};
}

/* An operand that was packed for a sum is read in strips, one after another, each once for every tile that needs it.
 * The hardware sees the same strip again and again, and no stream that goes on with the next one. So each iteration
 * fetches what the next strip has in its place, or what is so many bytes further on in a long strip. */
static const int64_t LEAST_STRIP = 1024, MOST_STRIP_AHEAD = 16384; /* bytes */

bool emit_is_sum(const struct emit *e, tir_loop loop) {
  tir_var v = tir_stmt_at(e->ir, loop)->loop.var;
  for (tir_stmt s = tir_next(e->ir, loop, loop); s; s = tir_next(e->ir, s, loop)) {
    if (!tir_is(e->ir, s, TIR_STORE)) continue;
    tir_expr index = tir_operands(e->ir, tir_stmt_at(e->ir, s)->store.indices)[0];
    if (tir_at(e->ir, index)->kind == TIR_RAMP) index = tir_at(e->ir, index)->a;
    int64_t step;
    if (!find_step(e, index, v, &step) || step) return false;
  }
  return true;
}

/* The innermost loop that changes an index, by so many bytes an iteration; NULL: it is not known. */
static struct emit_steps *stepping(const struct emit *e, tir_buffer buffer, tir_expr index, int64_t *apart) {
  int64_t step, size = (int64_t)emit_type_bytes(tir_buffer_at(e->ir, buffer)->type);
  for (struct emit_steps *s = e->steps; s; s = s->outer) {
    if (!find_step(e, index, s->var, &step) || __builtin_mul_overflow(step, size, apart)) return NULL;
    if (*apart) return s;
  }
  return NULL;
}

static void note_strip(struct emit *e, tir_buffer buffer, tir_expr index, uint64_t bytes) {
  int64_t apart;
  struct emit_steps *s = stepping(e, buffer, index, &apart);
  if (!s || !s->sums || s->strips == EMIT_MOST_FETCHED) return;
  if (apart < LINE || apart >= LEAST_APART || apart * s->extent < LEAST_STRIP) return;
  for (uint32_t i = 0; i < s->strips; i++)
    if (s->strip[i].buffer == buffer && s->strip[i].index == index) return;
  s->strip[s->strips++] = (struct emit_fetched){buffer, index, apart, (int64_t)(bytes + LINE - 1) / LINE};
}

/* What a sum reads once, in the order in which it lies, comes from memory as fast as that gives it only where enough
 * of it is under way: beside other arithmetic the hardware's own streams fall behind. So each line is fetched so many
 * bytes before it is read: on one core of a Zen 5 weights of 4 bits came at 67 GB/s, without at 42, by a quarter of the
 * distance at 53. Arrays of a few MiB, as small networks have, are slower so (2 MiB each: 0.91 of the speed). */
static const int64_t STREAM_AHEAD = 16384;
static const uint64_t LEAST_STREAM = 4 << 20;

/* The loop around a statement that goes on, or TIR_NONE. */
static tir_loop loop_around(const struct emit *e, tir_stmt s) {
  do s = tir_stmt_at(e->ir, s)->parent;
  while (s && (!tir_is(e->ir, s, TIR_LOOP) || tir_loop_extent(e->ir, s) == 1));
  return s;
}

static bool is_read_once(const struct emit *e, tir_buffer buffer, tir_expr index) {
  tir_loop loop = e->store ? loop_around(e, e->store) : TIR_NONE;
  if (!loop || buffer == e->stored || tir_allocation_bytes(e->ir, buffer) < LEAST_STREAM) return false;
  for (tir_loop l = loop; l; l = loop_around(e, l)) {
    int64_t step;
    if (!find_step(e, index, tir_stmt_at(e->ir, l)->loop.var, &step) || step <= 0) return false;
  }
  return tir_stmt_at(e->ir, loop)->loop_kind != TIR_PARALLEL && emit_is_sum(e, loop);
}

/* What is read row by row, several times each, comes from memory while its first reader waits for it, and the others
 * compute. So one of these fetches of the next row what it reads of this one. */
static const int64_t LEAST_ROW = 2048, MOST_ROW = 1 << 18, MOST_STEP = 4096; /* bytes */
static const uint64_t LEAST_ROWS = 1 << 20;

/* Whether what stands in the loop `around` before another one in it loads of the buffer. */
static bool is_loaded_before(const struct emit *e, tir_loop around, tir_loop loop, tir_buffer buffer) {
  for (tir_stmt s = tir_next(e->ir, around, around); s && s != loop; s = tir_next(e->ir, s, around))
    if (tir_is(e->ir, s, TIR_STORE) && tir_uses_buffer(e->ir, tir_stmt_at(e->ir, s)->store.value, buffer)) return true;
  return false;
}

/* Whether what stands in the loop `around` behind another one in it loads of the buffer. */
static bool is_loaded_after(const struct emit *e, tir_loop around, tir_loop loop, tir_buffer buffer) {
  for (tir_stmt s = tir_after(e->ir, loop, around); s; s = tir_next(e->ir, s, around))
    if (tir_is(e->ir, s, TIR_STORE) && tir_uses_buffer(e->ir, tir_stmt_at(e->ir, s)->store.value, buffer)) return true;
  return false;
}

/* Bytes from what an index of the loop at hand names to the same of the next row; 0: these are no rows. */
static int64_t next_row(const struct emit *e, tir_buffer buffer, tir_expr index) {
  int64_t step, apart, size = (int64_t)emit_type_bytes(tir_buffer_at(e->ir, buffer)->type);
  for (tir_stmt s = e->steps->loop; (s = tir_stmt_at(e->ir, s)->parent);) {
    if (!tir_is(e->ir, s, TIR_LOOP) || tir_loop_extent(e->ir, s) == 1) continue;
    if (!find_step(e, index, tir_stmt_at(e->ir, s)->loop.var, &step)) return 0;
    if (!step) continue;
    bool again = is_loaded_before(e, s, e->steps->loop, buffer);
    return again && !__builtin_mul_overflow(step, size, &apart) ? apart : 0;
  }
  return 0;
}

/* Whether what a sum reads in rows is read once more in the same iteration of the loop that goes from row to row. Its
 * next reader then fetches the next row (note_next_row), beside arithmetic of its own: of softmax of 4096 x 4096 in C
 * that made 2.9 ms of 4.1 on one core of a Zen 5. */
static bool is_read_again(const struct emit *e, tir_buffer buffer, tir_expr index) {
  int64_t step, apart, size = (int64_t)emit_type_bytes(tir_buffer_at(e->ir, buffer)->type);
  tir_loop inner = e->store ? loop_around(e, e->store) : TIR_NONE;
  for (tir_loop s = inner; s && (s = loop_around(e, s)); inner = s) {
    if (!find_step(e, index, tir_stmt_at(e->ir, s)->loop.var, &step)) return false;
    if (!step) continue;
    if (__builtin_mul_overflow(step, size, &apart) || apart < LEAST_ROW || apart > MOST_ROW) return false;
    return is_loaded_after(e, s, inner, buffer);
  }
  return false;
}

static bool is_noted(const struct emit_steps *s, tir_buffer buffer, tir_expr index) {
  for (uint32_t i = 0; i < s->rows; i++)
    if (s->row[i].buffer == buffer && s->row[i].index == index) return true;
  return false;
}

/* Whether such a load is of a row: then its part of the next one is noted. */
static bool note_next_row(struct emit *e, tir_buffer buffer, tir_expr index, uint64_t bytes) {
  struct emit_steps *s = e->steps;
  int64_t step, size = (int64_t)emit_type_bytes(tir_buffer_at(e->ir, buffer)->type);
  if (s->sums && !is_read_once(e, buffer, index)) return false;
  if (s->rows == EMIT_MOST_FETCHED || tir_allocation_bytes(e->ir, buffer) < LEAST_ROWS) return false;
  if (!find_step(e, index, s->var, &step) || step * size < (int64_t)bytes || step * size > MOST_STEP) return false;
  int64_t apart = next_row(e, buffer, index);
  if (apart < LEAST_ROW || apart > MOST_ROW || apart < step * size * s->extent) return false;
  if (is_noted(s, buffer, index)) return true;
  s->row[s->rows++] = (struct emit_fetched){buffer, index, apart, (int64_t)(bytes + LINE - 1) / LINE};
  return true;
}

void emit_note_load(struct emit *e, tir_buffer buffer, tir_expr index, uint64_t bytes) {
  if (!e->steps || buffer == e->stored || tir_allocation_bytes(e->ir, buffer) < LEAST_BUFFER) return;
  if (note_next_row(e, buffer, index, bytes) || !gains_by_fetching(e->target)) return;
  note_row(e, buffer, index, bytes);
  note_strip(e, buffer, index, bytes);
}

static void fetch_line(struct emit *e, LLVMValueRef at, int64_t distance) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef by = emit_int64(e, distance);
  at = LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), at, &by, 1, "");
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID("llvm.prefetch", 13), &pointer, 1);
  LLVMValueRef args[] = {at, LLVMConstInt(i32, 0, false), LLVMConstInt(i32, 3, false), LLVMConstInt(i32, 1, false)};
  LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, 4, "");
}

/* What a load reads so many iterations later. */
static void fetch(struct emit *e, const struct emit_fetched *f, int64_t ahead) {
  tir_type type = tir_buffer_at(e->ir, f->buffer)->type;
  tir_expr rest;
  int64_t constant = emit_take_constant(e, f->index, &rest) * (int64_t)emit_type_bytes(type);
  LLVMValueRef at = emit_stepped_address(e, f->buffer, rest, emit_type(e, type));
  for (int64_t line = 0; at && line < f->lines; line++) fetch_line(e, at, constant + f->apart * ahead + line * LINE);
}

static void fetch_strips(struct emit *e, const struct emit_steps *s) {
  for (uint32_t i = 0; i < s->strips; i++) {
    int64_t most = MOST_STRIP_AHEAD / s->strip[i].apart;
    fetch(e, &s->strip[i], s->extent < most ? s->extent : most);
  }
}

static void fetch_rows(struct emit *e, const struct emit_steps *s) {
  int64_t lines = 0;
  for (uint32_t i = 0; i < s->fetches; i++) lines += s->fetched[i].lines;
  if (!lines || lines > LINES_AHEAD) return;
  int64_t ahead = LINES_AHEAD / lines < MOST_AHEAD ? LINES_AHEAD / lines : MOST_AHEAD;
  if (s->extent < 2 * ahead) return; /* more than half would be in vain */
  for (uint32_t i = 0; i < s->fetches; i++) fetch(e, &s->fetched[i], ahead);
}

void emit_fetch_ahead(struct emit *e) {
  if (!e->steps) return;
  for (uint32_t i = 0; i < e->steps->rows; i++) fetch(e, &e->steps->row[i], 1);
  fetch_strips(e, e->steps);
  fetch_rows(e, e->steps);
}

/* Whether a line was fetched for another load of the same loop. */
static bool is_fetched(struct emit *e, tir_buffer buffer, tir_expr index) {
  enum { COUNT = sizeof e->streamed / sizeof *e->streamed };
  for (uint32_t i = 0; i < e->streamed_count && i < COUNT; i++)
    if (e->streamed[i].buffer == buffer && e->streamed[i].index == index) return true;
  e->streamed[e->streamed_count++ % COUNT] = (struct emit_streamed){buffer, index};
  return false;
}

void emit_stream(struct emit *e, tir_buffer buffer, tir_expr index, LLVMValueRef at, uint64_t bytes) {
  tir_expr rest;
  int64_t first = emit_take_constant(e, index, &rest) * (int64_t)emit_type_bytes(tir_buffer_at(e->ir, buffer)->type);
  if (e->steps && is_noted(e->steps, buffer, index)) return; /* with the next row */
  if (is_read_again(e, buffer, index)) return;
  if (!is_read_once(e, buffer, index) || is_fetched(e, buffer, index)) return;
  int64_t begin = first & (LINE - 1) ? LINE - (first & (LINE - 1)) : 0; /* of the first line that begins here */
  for (int64_t line = begin; line < (int64_t)bytes; line += LINE) fetch_line(e, at, STREAM_AHEAD + line);
}

void emit_advance(struct emit *e, struct emit_steps *s) {
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->builder);
  for (uint32_t i = 0; i < s->counters; i++) {
    LLVMValueRef next = LLVMBuildNSWAdd(e->builder, s->counter[i], emit_int64(e, s->bytes[i]), "");
    LLVMAddIncoming(s->counter[i], (LLVMValueRef[]){emit_int64(e, 0), next}, (LLVMBasicBlockRef[]){s->before, latch},
                    2);
  }
}

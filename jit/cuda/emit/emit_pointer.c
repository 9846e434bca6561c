/* What calls of tensor units need: the capability of the target, and what they are given: pointers by
 * tvm_access_ptr, texts among their arguments, and places in swizzled rows. */
#include "emit_cuda.h"

#include <string.h>

bool emit_cuda_has(struct emit_c *e, enum tir_capability_id which) {
  assert(which < TIR_CAPABILITIES);
  const struct tir_capability *c = &tir_capabilities[which];
  if (tir_has(e->target->gpu.capabilities, which)) return true;
  emit_c_refuse(e, "%s are for %s%s, and the target is %s", c->what, c->least, tir_capability_since(which),
                e->target->cpu);
  return false;
}

bool emit_c_is_text(const struct emit_c *e, tir_expr x, const char *text) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  return n->kind == TIR_STRING_IMM && !strcmp(tir_text(e->ir, n->ref), text);
}

tir_buffer emit_c_pointed(struct emit_c *e, tir_expr pointer, tir_expr *offset) {
  struct tir_pointer p = {0};
  if (!tir_pointer_of(e->ir, tir_at(e->ir, pointer), &p) || !p.buffer)
    emit_c_refuse(e, "a matrix of a tensor unit lies where no buffer is");
  *offset = p.offset;
  return p.buffer;
}

void emit_c_pointer(struct emit_c *e, tir_expr pointer) {
  char name[32];
  tir_expr offset;
  tir_buffer buffer = emit_c_pointed(e, pointer, &offset);
  if (!buffer) return;
  if (*emit_c_swizzle(e, buffer, name))
    emit_c_refuse(e, "%s: its rows are swizzled, which this call of a tensor unit does not know",
                  tir_buffer_name(e->ir, buffer));
  emit_c_buffer(e, buffer);
  fputs(" + (", e->out);
  emit_c_index(e, offset);
  fputc(')', e->out);
}

enum { MOST_PARTS = 16 }; /* of a sum that are distinguished */

static uint32_t split_sum(const struct emit_c *e, tir_expr offset, tir_expr parts[MOST_PARTS]) {
  uint32_t count = 1;
  parts[0] = offset;
  for (uint32_t i = 0; i < count; i++)
    while (tir_at(e->ir, parts[i])->kind == TIR_ADD && count < MOST_PARTS) {
      const struct tir_expr_node *n = tir_at(e->ir, parts[i]);
      parts[count++] = n->b, parts[i] = n->a;
    }
  return count;
}

static bool is_multiple_of(const struct emit_c *e, const struct tir_expr_node *n, int64_t number) {
  return n->kind == TIR_MUL && tir_is_int(e->ir, n->b) && tir_at(e->ir, n->b)->imm % number == 0;
}

/* Whether a sum of these parts and the constant is in the row, of so many elements, that its whole rows begin, and so
 * many elements behind it are, too. */
static bool stays_in_row(const struct emit_c *e, const tir_expr *parts, uint32_t count, int64_t constant, int64_t row,
                         int64_t behind) {
  int64_t most = constant % row + behind;
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_expr_node *n = tir_at(e->ir, parts[i]);
    if (is_multiple_of(e, n, row)) continue;
    if (n->lo < 0 || __builtin_add_overflow(most, n->hi, &most)) return false;
  }
  return most < row;
}

/* Takes a part from the list; the others keep their order. */
static void take(tir_expr *parts, uint32_t at, uint32_t *count) {
  assert(at < *count);
  memmove(parts + at, parts + at + 1, (--*count - at) * sizeof *parts);
}

/* Writes those parts that are multiples of a number, but not of `row`, and takes them from the list. */
static uint32_t write_multiples(struct emit_c *e, tir_expr *parts, uint32_t count, int64_t number, int64_t row) {
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_expr_node *n = tir_at(e->ir, parts[i]);
    if (!is_multiple_of(e, n, number) || (row && is_multiple_of(e, n, row))) continue;
    emit_c_index_in(e, parts[i], C_SUM);
    fputs(" + ", e->out);
    take(parts, i--, &count);
  }
  return count;
}

/* Whether a part, of whole rounds, is the place of one of two, four or more stage buffers in turn. */
static bool has_turns(const struct emit_c *e, const tir_expr *parts, uint32_t count, int64_t round) {
  bool any = false;
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_expr_node *n = tir_at(e->ir, parts[i]);
    if (!is_multiple_of(e, n, round)) continue;
    n = tir_at(e->ir, n->a);
    if ((n->kind != TIR_MOD && n->kind != TIR_FLOORMOD) || !tir_is_int(e->ir, n->b)) continue;
    any |= __builtin_popcountll((uint64_t)tir_at(e->ir, n->b)->imm) == 1;
  }
  return any;
}

static int64_t take_constants(const struct emit_c *e, tir_expr *parts, uint32_t *count) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < *count; i++) {
    const struct tir_expr_node *n = tir_at(e->ir, parts[i]);
    if (n->kind != TIR_INT_IMM || n->imm < 0) continue;
    sum += n->imm;
    take(parts, i--, count);
  }
  return sum;
}

/* Whether all rows of a fragment begin at one place of the swizzle's rows. (Rows of 64 bytes do not: what moves the
 * fragment by one of them moves every other row to the next row of the swizzle.) */
static bool begins_alike(const struct emit_c *e, tir_expr stride, int64_t row) {
  return !stride || (tir_is_int(e->ir, stride) && tir_at(e->ir, stride)->imm % row == 0);
}

void emit_cuda_place(struct emit_c *e, tir_buffer in, tir_expr offset, tir_expr stride, const char *between) {
  struct tir_swizzle s;
  tir_expr parts[MOST_PARTS];
  uint32_t count = split_sum(e, offset, parts);
  int bytes = emit_c_stored(tir_buffer_at(e->ir, in)->type, 1).bits / 8, log = __builtin_ctz((unsigned)bytes);
  int64_t near = 0;
  assert(tir_type_lanes(tir_buffer_at(e->ir, in)->type) == 1);
  emit_cuda_shared_base(e, in);
  if (tir_swizzle_of(e->ir, in, &s) && !s.panel) {
    int64_t row = (int64_t)1 << (s.shift - log), round = (s.mask + 1) * row, run = (s.mask + 1) << (4 - log);
    near = take_constants(e, parts, &count);
    int64_t far = near / round * round;
    near -= far;
    bool turns = has_turns(e, parts, count, round);
    fprintf(e->out, " + %d * (uint32_t)(", bytes);
    count = write_multiples(e, parts, count, round, 0);
    int64_t behind = stride ? TIR_PIECE >> log : 0; /* a row of a fragment has two pieces */
    if (begins_alike(e, stride, row) && stays_in_row(e, parts, count, near, row, behind)) {
      int64_t beside = near % row / run * run;
      count = write_multiples(e, parts, count, run, row);
      far += beside, near -= beside;
    }
    /* Compilers make bits of a sum whose terms share none: no instruction would hold the constant. */
    if (turns)
      fprintf(e->out, "0) + %lldu", (long long)(far * bytes));
    else
      fprintf(e->out, "%lld)", (long long)far);
  }
  fputs(between, e->out);
  for (uint32_t i = 0; i < count; i++) {
    if (i) fputs(" + ", e->out);
    emit_c_index_in(e, parts[i], C_SUM);
  }
  if (near || !count) fprintf(e->out, "%s%lld", count ? " + " : "", (long long)near);
}

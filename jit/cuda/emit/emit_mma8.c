/* Products of 16 x 8 x 8 halves in CUDA's source, by mma.sync and ldmatrix, as TVM's intrinsics have them: fragments
 * are registers of each lane, counted in elements that it holds, and touched by calls alone (tir/lower/gpu/lanes.c).
 * Source: PTX ISA, "Matrix Fragments for mma.m16n8k8 with .f16 floating point type". */
#include "emit_cuda.h"

#include <string.h>

enum { PAIR = 2 };

/* A fragment, all of whose elements are registers: halves two in one, accumulators that are floats one each. */
struct fragment {
  bool is_sum, halves;
};

static bool find_fragment(const struct emit_c *e, tir_buffer buffer, struct fragment *out) {
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, buffer);
  out->halves = b->type == TIR_TYPE(TIR_FLOAT, 16, 1);
  out->is_sum = tir_memory_scope_of(e->ir, buffer) == TIR_SCOPE_MMA8_C;
  return tir_rows_of(e->ir, buffer) == TIR_ROWS_OF_LANES &&
         (out->halves || (out->is_sum && b->type == TIR_TYPE(TIR_FLOAT, 32, 1)));
}

bool emit_c_mma8_fragment(struct emit_c *e, tir_buffer buffer, uint64_t elements) {
  struct fragment f;
  if (!find_fragment(e, buffer, &f)) return false;
  emit_cuda_has(e, TIR_HAS_MMA8);
  uint64_t held = elements / TIR_WARP;
  const char *name = emit_c_declare_buffer(e, buffer);
  if (f.halves) /* one of a pair is put beside the other, which is something */
    emit_c_line(e, "uint32_t %s[%llu]%s;", name, (unsigned long long)(held + 1) / PAIR, f.is_sum ? " = {0}" : "");
  else
    emit_c_line(e, "float %s[%llu];", name, (unsigned long long)held);
  return true;
}

/* The fragment that argument `arg` has a pointer to; refused where it is none. */
static bool fragment_of(struct emit_c *e, tir_expr arg, bool is_sum, struct fragment *out) {
  const struct tir_expr_node *n = tir_at(e->ir, arg);
  if (n->kind == TIR_DATA && find_fragment(e, n->ref, out) && out->is_sum == is_sum) return true;
  emit_c_refuse(e, "a call of mma has a pointer to no fragment that CUDA has");
  return false;
}

static void write_registers(struct emit_c *e, const struct fragment *f, tir_expr data, tir_expr index) {
  emit_c_buffer(e, tir_at(e->ir, data)->ref);
  fputs(f->halves ? " + (" : " + ", e->out);
  emit_c_index_in(e, index, C_SUM);
  if (f->halves) fprintf(e->out, ") / %d", PAIR);
}

/* ---- Functions ---- */

static void product_function(struct emit_c *e, const struct fragment *sum, const char *name) {
  const char *type = sum->halves ? "f16" : "f32", *registers = sum->halves ? "uint32_t" : "float";
  if (!emit_c_needs(e, name)) return;
  fprintf(e->helpers, "MS_PTX(void, %s, (%s *d, const uint32_t *a, const uint32_t *b)) {\n", name, registers);
  fprintf(e->helpers, "  asm volatile(\"%s.row.col.%s.f16.f16.%s \"\n", emit_cuda_spelling(TIR_MMA8), type, type);
  fputs(sum->halves ? "               \"{%0, %1}, {%2, %3}, {%4}, {%0, %1};\"\n"
                      "               : \"+r\"(d[0]), \"+r\"(d[1])\n"
                    : "               \"{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};\"\n"
                      "               : \"+f\"(d[0]), \"+f\"(d[1]), \"+f\"(d[2]), \"+f\"(d[3])\n",
        e->helpers);
  fputs("               : \"r\"(a[0]), \"r\"(a[1]), \"r\"(b[0]));\n}\n", e->helpers);
}

/* ---- Calls ---- */

/* (transposed, count, type, data, index, pointer, offset): lane l names row l % 8 of matrix l / 8. */
void emit_cuda_ptx_ldmatrix(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  struct fragment f;
  char swizzled[32];
  tir_expr offset;
  if (!tir_is_const(e->ir, args[1], 4)) emit_c_refuse(e, "other than four matrices at once are loaded by no call here");
  if (!fragment_of(e, args[3], false, &f)) return;
  tir_buffer from = emit_c_pointed(e, args[5], &offset);
  if (!from) return;
  const char *swizzle = emit_c_swizzle(e, from, swizzled);
  fprintf(e->out, "%s(", emit_c_matrices(e, tir_is_const(e->ir, args[0], 1)));
  write_registers(e, &f, args[3], args[4]);
  fputs(", ", e->out);
  emit_cuda_shared_base(e, from);
  fprintf(e->out, " + %d * (uint32_t)%s(", emit_c_stored(tir_buffer_at(e->ir, from)->type, 1).bits / 8, swizzle);
  emit_c_index_in(e, offset, C_SUM);
  fputs(" + ", e->out);
  emit_c_index_in(e, args[6], C_SUM);
  fputs("))", e->out);
}

/* (shape, layouts, types, a, index, b, index, c, index, saturate) */
void emit_cuda_ptx_mma(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  struct fragment a, b, c;
  char name[64];
  if (!emit_c_is_text(e, args[0], "m16n8k8") || !emit_c_is_text(e, args[1], "row") ||
      !emit_c_is_text(e, args[2], "col"))
    emit_c_refuse(e, "a product of mma that is not of 16 x 8 x 8, of rows and columns");
  if (!fragment_of(e, args[6], false, &a) || !fragment_of(e, args[8], false, &b) || !fragment_of(e, args[10], true, &c))
    return;
  snprintf(name, sizeof name, "ms_mma_m16n8k8_f16_%s", c.halves ? "f16" : "f32");
  product_function(e, &c, name);
  fprintf(e->out, "%s(", name);
  write_registers(e, &c, args[10], args[11]);
  fputs(", ", e->out);
  write_registers(e, &a, args[6], args[7]);
  fputs(", ", e->out);
  write_registers(e, &b, args[8], args[9]);
  fputc(')', e->out);
}

static void write_element(struct emit_c *e, tir_expr data, tir_expr index) {
  emit_c_buffer(e, tir_at(e->ir, data)->ref);
  fputc('[', e->out);
  emit_c_index(e, index);
  fputc(']', e->out);
}

/* (c, register) */
void emit_cuda_mma_lane_get(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  struct fragment f;
  struct c_type real = {TIR_FLOAT, 32, 1};
  char of_half[64];
  if (!fragment_of(e, args[0], true, &f)) return;
  if (!f.halves) {
    write_element(e, args[0], args[1]);
    return;
  }
  fprintf(e->out, "%s(%s", emit_c_helper(e, "of_half", real, NULL, of_half), emit_c_half_of_pair(e, false));
  emit_c_buffer(e, tir_at(e->ir, args[0])->ref);
  fputs(", ", e->out);
  emit_c_index(e, args[1]);
  fputs("))", e->out);
}

/* (c, register, value) */
void emit_cuda_mma_lane_put(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  struct fragment f;
  struct c_type real = {TIR_FLOAT, 32, 1};
  char to_half[64];
  if (!fragment_of(e, args[0], true, &f)) return;
  if (!f.halves) {
    fputc('(', e->out);
    write_element(e, args[0], args[1]);
    fputs(" = ", e->out);
    emit_c_value(e, args[2], C_SCALAR);
    fputc(')', e->out);
    return;
  }
  const char *convert = emit_c_helper(e, "to_half", real, NULL, to_half);
  fputs(emit_c_half_of_pair(e, true), e->out);
  emit_c_buffer(e, tir_at(e->ir, args[0])->ref);
  fputs(", ", e->out);
  emit_c_index(e, args[1]);
  fprintf(e->out, ", %s(", convert);
  emit_c_value(e, args[2], C_SCALAR);
  fputs("))", e->out);
}

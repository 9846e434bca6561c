/* mma.sync in CUDA's source: fragments are registers of each lane, which tir_mma_place says the elements of. ldmatrix
 * loads them from shared memory, a register a lane for each of four matrices of eight rows of 16 bytes; a product of 16
 * columns is two of PTX. What a lane stores it stores by itself. */
#include "emit_cuda.h"

#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 4, SUMS = TIR_MMA_SIDE * TIR_MMA_SIDE / TIR_WARP };

bool emit_c_mma_fragment(struct emit_c *e, tir_buffer buffer, uint64_t count) {
  enum tir_mma_operand operand;
  char constraint;
  assert(tir_is_buffer(e->ir, buffer));
  if (!tir_mma_operand_of(e->ir, buffer, &operand)) return false;
  tir_type type = tir_buffer_at(e->ir, buffer)->type;
  bool is_sum = operand == TIR_MMA_C;
  const char *of = is_sum ? emit_cuda_sum_type(type, &constraint) : emit_cuda_element_of(type) ? "uint32_t" : NULL;
  if (!of) return false;
  uint64_t held = (uint64_t)TIR_MMA_SIDE * (is_sum ? TIR_MMA_SIDE : (unsigned)tir_mma_depth(tir_type_bits(type)));
  uint64_t registers = (count + held - 1) / held * (is_sum ? SUMS : REGISTERS);
  emit_c_line(e, "%s %s[%llu];", of, emit_c_declare_buffer(e, buffer), (unsigned long long)registers);
  return true;
}

/* ---- Functions ---- */

/* Of thread numbers, and not of %laneid: the compiler takes no assembly out of a loop, nor what is computed of it, as
 * the addresses that lanes load fragments from. */
const char *emit_c_lane_function(struct emit_c *e) {
  if (emit_c_needs(e, "ms_lane"))
    fputs("MS_HELPER int32_t ms_lane() {\n"
          "  return (int32_t)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);\n}\n",
          e->helpers);
  return "ms_lane()";
}

static void round_function(struct emit_c *e) {
  if (!emit_c_needs(e, "ms_to_tf32")) return;
  fputs("MS_PTX(uint32_t, ms_to_tf32, (uint32_t bits)) {\n  uint32_t d;\n"
        "  asm(\"{\\n  .reg .f32 x;\\n  mov.b32 x, %1;\\n  cvt.rna.tf32.f32 %0, x;\\n}\" : \"=r\"(d) : \"r\"(bits));\n"
        "  return d;\n}\n",
        e->helpers);
}

/* Where in memory the first element of the matrix lies that lanes 8 * number to 8 * number + 7 name the rows of: where
 * lane 0 has the first element of that register. */
static struct tir_mma_place origin_of(enum tir_mma_operand operand, int bits, int number, bool by_columns) {
  struct tir_mma_place p = tir_mma_place(operand, bits, 0, number * (32 / bits));
  return by_columns ? (struct tir_mma_place){p.column, p.row} : p;
}

/* Lane l names row l % 8 of matrix l / 8. Those that lie in memory as ldmatrix spreads them over lanes have in a row
 * what one group of lanes holds; others are transposed on their way, which is for elements of 16 bits. */
static const char *load_function(struct emit_c *e, enum tir_mma_operand operand, tir_type type, bool by_columns,
                                 const char *swizzle, char name[64]) {
  const struct emit_cuda_element *of = emit_cuda_element_of(type);
  assert(of && (operand == TIR_MMA_A || operand == TIR_MMA_B));
  int bits = tir_type_bits(type);
  bool transposed = operand == TIR_MMA_B && !by_columns;
  snprintf(name, 64, "ms_mma_load_%s_%s_%s%s", operand == TIR_MMA_A ? "a" : "b", by_columns ? "col" : "row", of->name,
           *swizzle ? swizzle + strlen("ms") : "");
  if (!emit_c_needs(e, name)) return name;
  bool rounds = !strcmp(of->name, "tf32");
  const char *matrices = emit_c_matrices(e, transposed);
  if (rounds) round_function(e);
  const char *lane = emit_c_lane_function(e);
  struct tir_mma_place odd = origin_of(operand, bits, 1, by_columns), upper = origin_of(operand, bits, 2, by_columns);
  struct tir_mma_place last = origin_of(operand, bits, 3, by_columns);
  assert(last.row == odd.row + upper.row && last.column == odd.column + upper.column);
  const char *index = emit_c_index_type(e);
  fprintf(
      e->helpers,
      "MS_HELPER void %s(uint32_t *d, uint32_t from, %s at, %s stride) {\n"
      "  const int32_t lane = %s, odd = lane / 8 %% 2, upper = lane / 16;\n"
      "  %s(d, from + %d * (uint32_t)%s(at + (lane %% 8 + %d * odd + %d * upper) * stride + %d * odd + %d * upper));\n",
      name, index, index, lane, matrices, emit_c_stored(type, 1).bits / 8, swizzle, odd.row, upper.row, odd.column,
      upper.column);
  if (rounds) fprintf(e->helpers, "  for (int i = 0; i < %d; i++) d[i] = ms_to_tf32(d[i]);\n", REGISTERS);
  fputs("}\n", e->helpers);
  return name;
}

static const char *fill_function(struct emit_c *e, tir_type type, char name[64]) {
  char constraint;
  const char *sum = emit_cuda_sum_type(type, &constraint);
  snprintf(name, 64, "ms_mma_fill_%s", constraint == 'f' ? "f32" : "s32");
  if (emit_c_needs(e, name))
    fprintf(e->helpers, "MS_HELPER void %s(%s *d, %s value) {\n  for (int i = 0; i < %d; i++) d[i] = value;\n}\n", name,
            sum, sum, SUMS);
  return name;
}

/* Lanes have two elements side by side, which are stored as they are: element by element, where tir_mma_place says. */
static const char *store_function(struct emit_c *e, tir_type type, char name[64]) {
  char constraint;
  const char *sum = emit_cuda_sum_type(type, &constraint);
  snprintf(name, 64, "ms_mma_store_%s", constraint == 'f' ? "f32" : "s32");
  if (!emit_c_needs(e, name)) return name;
  const char *lane = emit_c_lane_function(e);
  fprintf(e->helpers,
          "MS_HELPER void %s(%s *to, const %s *d, int32_t stride) {\n"
          "  to += %s / 4 * stride + %s %% 4 * 2;\n",
          name, sum, sum, lane, lane);
  for (int i = 0; i < SUMS; i++) {
    struct tir_mma_place p = tir_mma_place(TIR_MMA_C, 16, 0, i);
    fprintf(e->helpers, "  to[%d * stride + %d] = d[%d];\n", p.row, p.column, i);
  }
  fputs("}\n", e->helpers);
  return name;
}

/* d += a * b, eight columns: d has four registers, a four, b two. */
static void half_function(struct emit_c *e, const struct emit_cuda_element *of, const char *sum, char constraint,
                          int depth, const char *name) {
  if (!emit_c_needs(e, name)) return;
  fprintf(e->helpers, "MS_PTX(void, %s, (%s *d, const uint32_t *a, const uint32_t *b)) {\n", name, sum);
  fprintf(e->helpers,
          "  asm volatile(\"%s.m16n8k%d.row.col.%s.%s.%s.%s \"\n"
          "               \"{%%0, %%1, %%2, %%3}, {%%4, %%5, %%6, %%7}, {%%8, %%9}, {%%0, %%1, %%2, %%3};\"\n",
          emit_cuda_spelling(TIR_MMA_SYNC), depth, of->sum, of->name, of->name, of->sum);
  fprintf(e->helpers, "               : \"+%c\"(d[0]), \"+%c\"(d[1]), \"+%c\"(d[2]), \"+%c\"(d[3])\n", constraint,
          constraint, constraint, constraint);
  fputs("               : \"r\"(a[0]), \"r\"(a[1]), \"r\"(a[2]), \"r\"(a[3]), \"r\"(b[0]), \"r\"(b[1]));\n}\n",
        e->helpers);
}

static const char *multiply_function(struct emit_c *e, tir_type input, tir_type output, char name[64]) {
  const struct emit_cuda_element *of = emit_cuda_element_of(input);
  char constraint, half[64];
  const char *sum = emit_cuda_sum_type(output, &constraint);
  int depth = tir_mma_depth(tir_type_bits(input));
  snprintf(half, sizeof half, "ms_mma_m16n8k%d_%s", depth, of->name);
  half_function(e, of, sum, constraint, depth, half);
  snprintf(name, 64, "ms_mma_%s", of->name);
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_HELPER void %s(%s *d, const uint32_t *a, const uint32_t *b) {\n"
            "  %s(d, a, b);\n  %s(d + %d, a, b + %d);\n}\n",
            name, sum, half, half, SUMS / 2, REGISTERS / 2);
  return name;
}

/* ---- Calls ---- */

/* The elements of the operand that argument `arg` has a pointer to; TIR_T_VOID: refused. */
static tir_type operand_type(struct emit_c *e, tir_expr arg, enum tir_mma_operand expected) {
  const struct tir_expr_node *n = tir_at(e->ir, arg);
  enum tir_mma_operand operand;
  char constraint;
  if (n->kind == TIR_DATA && tir_mma_operand_of(e->ir, n->ref, &operand) && operand == expected) {
    tir_type type = tir_buffer_at(e->ir, n->ref)->type;
    if (operand == TIR_MMA_C ? emit_cuda_sum_type(type, &constraint) != NULL : emit_cuda_element_of(type) != NULL)
      return type;
  }
  emit_c_refuse(e, "a call of mma has a pointer to no fragment that CUDA has");
  return TIR_T_VOID;
}

static void write_fragment(struct emit_c *e, tir_expr data, int registers, tir_expr index) {
  emit_c_buffer(e, tir_at(e->ir, data)->ref);
  fprintf(e->out, " + %d * (", registers);
  emit_c_index(e, index);
  fputc(')', e->out);
}

/* (c, index, value) */
void emit_cuda_mma_fill(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  char name[64];
  tir_type type = operand_type(e, args[0], TIR_MMA_C);
  if (type == TIR_T_VOID) return;
  fprintf(e->out, "%s(", fill_function(e, type, name));
  write_fragment(e, args[0], SUMS, args[1]);
  fputs(", ", e->out);
  emit_c_value(e, args[2], C_SCALAR);
  fputc(')', e->out);
}

/* (d, index, pointer, stride, layout, operand) */
void emit_cuda_mma_load(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  char name[64], swizzled[32];
  bool b = emit_c_is_text(e, args[5], "b"), by_columns = emit_c_is_text(e, args[4], "col_major");
  enum tir_mma_operand operand = b ? TIR_MMA_B : TIR_MMA_A;
  tir_type type = operand_type(e, args[0], operand);
  if (type == TIR_T_VOID) return;
  if ((by_columns && !b) || (b && !by_columns && tir_type_bits(type) != 16))
    emit_c_refuse(e, "an operand of mma that ldmatrix loads neither as it lies in memory nor transposed");
  tir_expr offset;
  tir_buffer from = emit_c_pointed(e, args[2], &offset);
  if (!from) return;
  const char *swizzle = emit_c_swizzle(e, from, swizzled);
  fprintf(e->out, "%s(", load_function(e, operand, type, by_columns, swizzle, name));
  write_fragment(e, args[0], REGISTERS, args[1]);
  fputs(", ", e->out);
  emit_cuda_place(e, from, offset, args[3], ", ");
  fputs(", ", e->out);
  emit_c_index(e, args[3]);
  fputc(')', e->out);
}

/* (c, index, pointer, stride) */
void emit_cuda_mma_store(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  char name[64];
  tir_type type = operand_type(e, args[0], TIR_MMA_C);
  if (type == TIR_T_VOID) return;
  fprintf(e->out, "%s(", store_function(e, type, name));
  emit_c_pointer(e, args[2]);
  fputs(", ", e->out);
  write_fragment(e, args[0], SUMS, args[1]);
  fputs(", ", e->out);
  emit_c_index(e, args[3]);
  fputc(')', e->out);
}

/* ---- Elements ---- */

/* (c, element) */
void emit_cuda_mma_get(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  emit_c_held(e, args[0], args[1]);
}

/* (c, element, value) */
void emit_cuda_mma_put(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  emit_c_hold(e, args[0], args[1], args[2]);
}

/* (c, index, a, index, b, index, layout of b) */
void emit_cuda_mma_sync(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  char name[64];
  tir_type output = operand_type(e, args[0], TIR_MMA_C), input = operand_type(e, args[2], TIR_MMA_A);
  tir_type other = operand_type(e, args[4], TIR_MMA_B);
  if (output == TIR_T_VOID || input == TIR_T_VOID || other == TIR_T_VOID) return;
  if (other != input || tir_type_is_float(output) != tir_type_is_float(input))
    emit_c_refuse(e, "a product of fragments of two types");
  if (tir_type_is_byte(input) && !emit_cuda_has(e, TIR_HAS_FLOAT_BYTES)) return;
  fprintf(e->out, "%s(", multiply_function(e, input, output, name));
  write_fragment(e, args[0], SUMS, args[1]);
  fputs(", ", e->out);
  write_fragment(e, args[2], REGISTERS, args[3]);
  fputs(", ", e->out);
  write_fragment(e, args[4], REGISTERS, args[5]);
  fputc(')', e->out);
}

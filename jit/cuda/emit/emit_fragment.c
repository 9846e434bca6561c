/* What kinds of fragments share: types of elements, the load of four matrices, and elements that lanes hold. */
#include "emit_cuda.h"

#include <string.h>

static const struct emit_cuda_element elements[] = {
    {TIR_TYPE(TIR_FLOAT, 16, 1), "f16", "f32"},  {TIR_TYPE(TIR_BFLOAT, 16, 1), "bf16", "f32"},
    {TIR_TYPE(TIR_FLOAT, 32, 1), "tf32", "f32"}, {TIR_TYPE(TIR_INT, 8, 1), "s8", "s32"},
    {TIR_TYPE(TIR_UINT, 8, 1), "u8", "s32"},     {TIR_TYPE(TIR_E4M3, 8, 1), "e4m3", "f32"},
    {TIR_TYPE(TIR_E5M2, 8, 1), "e5m2", "f32"}};

const struct emit_cuda_element *emit_cuda_element_of(tir_type type) {
  for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
    if (elements[i].type == type) return &elements[i];
  return NULL;
}

/* What accumulators are in C and in asm; NULL: there are none of that type. */
const char *emit_cuda_sum_type(tir_type type, char *constraint) {
  bool real = type == TIR_TYPE(TIR_FLOAT, 32, 1);
  *constraint = real ? 'f' : 'r';
  return real ? "float" : type == TIR_T_I32 ? "int32_t" : NULL;
}

const char *emit_c_matrices(struct emit_c *e, bool transposed) {
  const char *name = transposed ? "ms_ldmatrix_x4_trans" : "ms_ldmatrix_x4";
  if (!emit_c_needs(e, name)) return name;
  fprintf(e->helpers,
          "MS_PTX(void, %s, (uint32_t *d, uint32_t row)) {\n"
          "  asm volatile(\"%s%s.shared.b16 {%%0, %%1, %%2, %%3}, [%%4];\"\n"
          "               : \"=r\"(d[0]), \"=r\"(d[1]), \"=r\"(d[2]), \"=r\"(d[3])\n"
          "               : \"r\"(row)\n               : \"memory\");\n}\n",
          name, emit_cuda_spelling(TIR_MMA_LOAD), transposed ? ".trans" : "");
  return name;
}

/* ---- Elements that lanes hold ---- */

const char *emit_c_half_of_pair(struct emit_c *e, bool puts) {
  if (!puts && emit_c_needs(e, "ms_mma_get"))
    fputs("MS_HELPER uint16_t ms_mma_get(const uint32_t *d, int32_t i) {\n"
          "  return (uint16_t)(d[i / 2] >> i % 2 * 16);\n}\n",
          e->helpers);
  if (puts && emit_c_needs(e, "ms_mma_put"))
    fputs("MS_HELPER void ms_mma_put(uint32_t *d, int32_t i, uint16_t h) {\n"
          "  d[i / 2] = (d[i / 2] & 0xffff0000u >> i % 2 * 16) | (uint32_t)h << i % 2 * 16;\n}\n",
          e->helpers);
  return puts ? "ms_mma_put(" : "ms_mma_get(";
}

/* Pairs of floats of 8 bits lie so in registers of a warp group's operand a that columns 8 further on share one
 * (tir_wgmma_column_of): pair 2 * p + r is of eight columns p and, of two rows, of r. */
static const char *byte_pair_function(struct emit_c *e, bool puts) {
#define PLACE "d[pair / 4 * 2 + pair % 2]"
  if (!puts && emit_c_needs(e, "ms_byte_pair_get"))
    fputs("MS_HELPER uint32_t ms_byte_pair_get(const uint32_t *d, int32_t pair) {\n"
          "  return " PLACE " >> pair / 2 % 2 * 16 & 0xffff;\n}\n",
          e->helpers);
  if (puts && emit_c_needs(e, "ms_byte_pair_put"))
    fputs("MS_HELPER void ms_byte_pair_put(uint32_t *d, int32_t pair, uint32_t both) {\n"
          "  " PLACE " = (" PLACE " & 0xffff0000u >> pair / 2 % 2 * 16) | both << pair / 2 % 2 * 16;\n}\n",
          e->helpers);
#undef PLACE
  return puts ? "ms_byte_pair_put" : "ms_byte_pair_get";
}

/* The function that converts one of the pair; an element by its number. */
static const char *byte_function(struct emit_c *e, tir_type type, char name[32]) {
  static const char *const ends[] = {"lower", "upper"};
  const char *format = emit_cuda_element_of(type)->name;
  snprintf(name, 32, "ms_%s_of_pairs", format);
  if (!emit_c_needs(e, name)) return name;
  for (int i = 0; i < 2; i++)
    fprintf(e->helpers,
            "MS_PTX(float, ms_%s_%s, (uint32_t pair)) {\n  float x;\n"
            "  asm(\"{\\n  .reg .b32 p;\\n  .reg .b16 lower, upper;\\n  cvt.rn.f16x2.%sx2 p, %%1;\\n\"\n"
            "      \"  mov.b32 {lower, upper}, p;\\n  cvt.f32.f16 %%0, %s;\\n}\" : \"=f\"(x)"
            " : \"h\"((uint16_t)pair));\n"
            "  return x;\n}\n",
            format, ends[i], format, ends[i]);
  const char *get = byte_pair_function(e, false);
  fprintf(e->helpers,
          "MS_HELPER float %s(const uint32_t *d, int32_t i) {\n"
          "  const uint32_t pair = %s(d, i / 2);\n  return i %% 2 ? ms_%s_upper(pair) : ms_%s_lower(pair);\n}\n",
          name, get, format, format);
  return name;
}

static const char *pack_bytes_function(struct emit_c *e, tir_type type, char name[32]) {
  const char *format = emit_cuda_element_of(type)->name;
  snprintf(name, 32, "ms_pack_%s", format);
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_PTX(uint32_t, %s, (float low, float high)) {\n  uint16_t pair;\n"
            "  asm(\"cvt.rn.satfinite.%sx2.f32 %%0, %%1, %%2;\" : \"=h\"(pair) : \"f\"(high), \"f\"(low));\n"
            "  return pair;\n}\n",
            name, format);
  return name;
}

/* Of a warp group's operand a. */
static bool is_of_bytes(const struct emit_c *e, tir_expr data) {
  const struct tir_expr_node *n = tir_at(e->ir, data);
  return n->kind == TIR_DATA && tir_memory_scope_of(e->ir, n->ref) == TIR_SCOPE_WGMMA_A &&
         tir_type_is_byte(tir_buffer_at(e->ir, n->ref)->type);
}

/* The fragment of which a lane's elements are touched, and their type: accumulators, or an operand a of 16 bits, of a
 * warp group also of 8. False: refused. */
static bool find_elements(struct emit_c *e, tir_expr data, bool *is_short, tir_type *type) {
  const struct tir_expr_node *n = tir_at(e->ir, data);
  enum tir_mma_operand operand = TIR_MMA_B;
  enum tir_memory_scope scope = n->kind == TIR_DATA ? tir_memory_scope_of(e->ir, n->ref) : TIR_SCOPE_OTHER;
  if (scope == TIR_SCOPE_WGMMA || scope == TIR_SCOPE_WGMMA_A)
    operand = scope == TIR_SCOPE_WGMMA ? TIR_MMA_C : TIR_MMA_A;
  else if (n->kind == TIR_DATA)
    tir_mma_operand_of(e->ir, n->ref, &operand);
  bool known = operand != TIR_MMA_B;
  char constraint;
  *type = known ? tir_buffer_at(e->ir, n->ref)->type : TIR_T_VOID;
  *is_short = known && operand == TIR_MMA_A;
  if (known && (*is_short ? (tir_type_is_half(*type) || is_of_bytes(e, data)) && emit_cuda_element_of(*type)
                          : emit_cuda_sum_type(*type, &constraint) != NULL))
    return true;
  emit_c_refuse(e, "a call of mma has a pointer to no fragment whose elements are in lanes' registers");
  return false;
}

static void write_elements(struct emit_c *e, tir_expr data, tir_expr element, const char *between) {
  emit_c_buffer(e, tir_at(e->ir, data)->ref);
  fputs(between, e->out);
  emit_c_index(e, element);
}

void emit_c_held(struct emit_c *e, tir_expr data, tir_expr element) {
  bool is_short;
  tir_type type;
  char convert[64];
  if (!find_elements(e, data, &is_short, &type)) return;
  if (is_of_bytes(e, data)) {
    fprintf(e->out, "%s(", byte_function(e, type, convert));
    write_elements(e, data, element, ", ");
    fputc(')', e->out);
    return;
  }
  if (is_short) fprintf(e->out, "%s(%s", emit_c_short_helper(e, "of", type, 1, convert), emit_c_half_of_pair(e, false));
  write_elements(e, data, element, is_short ? ", " : "[");
  fputs(is_short ? "))" : "]", e->out);
}

/* exp(x) whose result is rounded to 16 bits: 2^(x / ln 2), both to some 22 bits.
 * Source: PTX ISA, "Floating Point Instructions: ex2". */
static void write_short_exp2(struct emit_c *e) {
  if (emit_c_needs(e, "ms_short_exp2"))
    fputs("MS_PTX(float, ms_short_exp2, (float x)) {\n  float y;\n"
          "  asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(y) : \"f\"(x));\n  return y;\n}\n",
          e->helpers);
}

static const char *short_exp_function(struct emit_c *e) {
  write_short_exp2(e);
  if (emit_c_needs(e, "ms_short_exp"))
    fputs("MS_HELPER float ms_short_exp(float x) { return ms_short_exp2(x * 1.44269504f); }\n", e->helpers);
  return "ms_short_exp";
}

/* exp(a - b) likewise, by one multiplication and addition where b is the same for several a, as the maximum of a row
 * is: it errs by as much more as rounding b does. Where b / ln 2 may overflow, floats are so far apart that exp is 1 or
 * 0, and so is 2^(a - b). */
static const char *short_exp_apart_function(struct emit_c *e) {
  write_short_exp2(e);
  if (emit_c_needs(e, "ms_short_exp_apart"))
    fputs("MS_HELPER float ms_short_exp_apart(float a, float b) {\n"
          "  const float by = ::fabsf(b) < 2e38f ? 1.44269504f : 1.0f;\n"
          "  return ms_short_exp2(::fmaf(a, by, -(b * by)));\n}\n",
          e->helpers);
  return "ms_short_exp_apart";
}

static void write_short_exp(struct emit_c *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  bool apart = n->kind == TIR_SUB;
  fprintf(e->out, "%s(", apart ? short_exp_apart_function(e) : short_exp_function(e));
  emit_c_value(e, apart ? n->a : x, C_SCALAR);
  if (apart) {
    fputs(", ", e->out);
    emit_c_value(e, n->b, C_SCALAR);
  }
  fputc(')', e->out);
}

/* What is to be rounded to an element of 16 bits: a value that already is, as it was before. */
static void write_rounded(struct emit_c *e, tir_expr value, tir_type type) {
  const struct tir_expr_node *n = tir_at(e->ir, value), *inner;
  tir_type wide = TIR_TYPE(TIR_FLOAT, 32, 1);
  if (n->kind == TIR_CAST && n->type == type && tir_type_of(e->ir, n->a) == wide) value = n->a;
  inner = tir_at(e->ir, value);
  bool is_exp = inner->kind == TIR_CALL && inner->type == wide && inner->count == 1 &&
                !strcmp(tir_text(e->ir, inner->ref), "exp");
  if (!is_exp) {
    emit_c_value(e, value, C_SCALAR);
    return;
  }
  write_short_exp(e, tir_operands(e->ir, inner->operands)[0]);
}

/* Whether the value is an element of a fragment of that type, too, which is copied as it is; writes it. */
static bool write_copied(struct emit_c *e, tir_expr value, tir_type type) {
  bool get = tir_is_device_call(e->ir, value, TIR_WGMMA_GET), is_short;
  const struct tir_expr_node *n = tir_at(e->ir, value);
  tir_type own;
  if (!get || n->type != type || !find_elements(e, tir_operands(e->ir, n->operands)[0], &is_short, &own) || !is_short)
    return false;
  fputs(emit_c_half_of_pair(e, false), e->out);
  write_elements(e, tir_operands(e->ir, n->operands)[0], tir_operands(e->ir, n->operands)[2], ", ");
  fputc(')', e->out);
  return true;
}

void emit_c_hold(struct emit_c *e, tir_expr data, tir_expr element, tir_expr value) {
  bool is_short;
  tir_type type;
  char convert[64];
  if (!find_elements(e, data, &is_short, &type)) return;
  if (is_of_bytes(e, data)) {
    emit_c_refuse(e, "a call of wgmma puts one element of 8 bits, which are put by pairs");
    return;
  }
  if (is_short) emit_c_short_helper(e, "to", type, 1, convert);
  fputs(is_short ? emit_c_half_of_pair(e, true) : "(", e->out);
  write_elements(e, data, element, is_short ? ", " : "[");
  fputs(is_short ? ", " : "] = ", e->out);
  if (is_short && write_copied(e, value, type)) {
    fputc(')', e->out);
    return;
  }
  if (is_short) fprintf(e->out, "%s(", convert);
  if (is_short)
    write_rounded(e, value, type);
  else
    emit_c_value(e, value, C_SCALAR);
  fputs(is_short ? "))" : ")", e->out);
}

/* Whether both values are a pair of another such fragment; *from: its first. */
static bool is_copied_pair(const struct emit_c *e, const tir_expr *values, tir_type type, const tir_expr **from) {
  const tir_expr *args[2];
  for (int i = 0; i < 2; i++) {
    const struct tir_expr_node *n = tir_at(e->ir, values[i]);
    if (!tir_is_device_call(e->ir, values[i], TIR_WGMMA_GET) || n->type != type) return false;
    args[i] = tir_operands(e->ir, n->operands);
    if (!is_of_bytes(e, args[i][0]) || !tir_is_int(e->ir, args[i][2])) return false;
  }
  int64_t first = tir_at(e->ir, args[0][2])->imm;
  *from = args[0];
  return args[0][0] == args[1][0] && first % 2 == 0 && tir_at(e->ir, args[1][2])->imm == first + 1;
}

static void write_pair_number(struct emit_c *e, tir_expr data, tir_expr element) {
  emit_c_buffer(e, tir_at(e->ir, data)->ref);
  fputs(", (", e->out);
  emit_c_index(e, element);
  fputs(") / 2", e->out);
}

void emit_c_hold_pair(struct emit_c *e, tir_expr data, tir_expr element, const tir_expr values[2]) {
  const tir_expr *from;
  char name[32];
  if (!is_of_bytes(e, data)) {
    emit_c_refuse(e, "a call of wgmma puts two elements to no operand of 8 bits");
    return;
  }
  tir_type type = tir_buffer_at(e->ir, tir_at(e->ir, data)->ref)->type;
  fprintf(e->out, "%s(", byte_pair_function(e, true));
  write_pair_number(e, data, element);
  if (is_copied_pair(e, values, type, &from)) {
    fprintf(e->out, ", %s(", byte_pair_function(e, false));
    write_pair_number(e, from[0], from[2]);
  } else {
    fprintf(e->out, ", %s(", pack_bytes_function(e, type, name));
    write_rounded(e, values[0], type);
    fputs(", ", e->out);
    write_rounded(e, values[1], type);
  }
  fputs("))", e->out);
}

/* What lanes that share rows store together (tir/lower/gpu/lane_stores.c): pairs of neighbours become words of 32 bits;
 * lanes exchange these by shuffles, so that each has 16 bytes side by side, or stmatrix stores them, whose lanes name
 * rows of 16 bytes. Of 8 bits a word has two pairs. Source: PTX ISA, "stmatrix", "cvt". */
#include "emit_cuda.h"

#include <string.h>

enum { WORDS = 4, GROUP = 8, LANES_A_ROW = 4, FIRST_OF_PAIRS = 1, FIRST_OF_MATRICES = 2 };

static bool is_short(tir_type type) { return tir_type_bits(type) == 16; }

static const char *pack_function(struct emit_c *e, tir_type type, char name[32]) {
  const struct emit_cuda_element *of = emit_cuda_element_of(type);
  snprintf(name, 32, "ms_pack_%s", of->name);
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_PTX(uint32_t, %s, (float low, float high)) {\n  uint32_t pair;\n"
            "  asm(\"cvt.rn.%sx2.f32 %%0, %%1, %%2;\" : \"=r\"(pair) : \"f\"(high), \"f\"(low));\n  return pair;\n}\n",
            name, of->name);
  return name;
}

/* Steps of the exchange: words whose numbers differ in `word` change places between lanes that differ in `lane`. */
static void exchange(FILE *out, int word, int lane) {
  for (int i = 0; i < WORDS; i++)
    if (!(i & word)) fprintf(out, "  ms_exchange(w%d, w%d, lane & %d, %d);\n", i, i | word, lane, lane);
}

/* Bits of a column, low to high. Of 8 bits: in a pair, lane, lane, half of a word, word, word; of 16: in a pair, lane,
 * lane, word, word: those of lanes change places with those of words. Of 32 bits: word, lane, lane, word, which go
 * round by one. */
static const char *pairs_function(struct emit_c *e, int bits) {
  const char *name = bits == 8 ? "ms_store_pairs_of_8" : bits == 16 ? "ms_store_pairs_of_16" : "ms_store_pairs_of_32";
  emit_c_lane_function(e);
  if (emit_c_needs(e, "ms_exchange"))
    fputs("MS_HELPER void ms_exchange(uint32_t &a, uint32_t &b, int upper, int distance) {\n"
          "  const uint32_t other = __shfl_xor_sync(0xffffffffu, upper ? a : b, distance);\n"
          "  if (upper) a = other; else b = other;\n}\n",
          e->helpers);
  if (!emit_c_needs(e, name)) return name;
  FILE *out = e->helpers;
  fprintf(out,
          "MS_HELPER void %s(void *to, uint32_t w0, uint32_t w1, uint32_t w2, uint32_t w3) {\n"
          "  const int lane = ms_lane() %% %d;\n",
          name, LANES_A_ROW);
  exchange(out, 2, 2);
  exchange(out, bits == 32 ? 2 : 1, 1);
  if (bits == 8)
    fputs("  *(uint4 *)((uint8_t *)to + 14 * lane) = uint4{\n"
          "      (w0 & 0xffffu) | w1 << 16, (w2 & 0xffffu) | w3 << 16, w0 >> 16 | (w1 & 0xffff0000u),\n"
          "      w2 >> 16 | (w3 & 0xffff0000u)};\n}\n",
          out);
  else
    fprintf(out, "  *(uint4 *)((uint32_t *)to + %d * lane) = uint4{w0, w1, w2, w3};\n}\n", bits == 16 ? 3 : 2);
  return name;
}

static const char *matrices_function(struct emit_c *e) {
  const char *name = "ms_stmatrix_x4";
  if (emit_c_needs(e, name))
    fprintf(
        e->helpers,
        "MS_PTX(void, %s, (void *row, uint32_t a, uint32_t b, uint32_t c, uint32_t d)) {\n"
        "  asm volatile(\"%s [%%0], {%%1, %%2, %%3, %%4};\"\n"
        "               : : \"r\"((uint32_t)__cvta_generic_to_shared(row)), \"r\"(a), \"r\"(b), \"r\"(c), \"r\"(d)\n"
        "               : \"memory\");\n}\n",
        name, emit_cuda_spelling(TIR_STORE_MATRICES));
  return name;
}

/* Elements from what a lane holds first to the row that it names: row l % 8 of matrix l / 8. */
static const char *row_function(struct emit_c *e) {
  emit_c_lane_function(e);
  if (emit_c_needs(e, "ms_matrix_row"))
    fprintf(e->helpers,
            "MS_HELPER int32_t ms_matrix_row(int32_t stride) {\n  const int32_t lane = ms_lane();\n"
            "  return (lane %% %d - lane / %d) * stride + lane / %d * %d - lane %% %d * 2;\n}\n",
            GROUP, LANES_A_ROW, GROUP, GROUP, LANES_A_ROW);
  return "ms_matrix_row";
}

/* A float32 that is rounded to the type; TIR_NONE: the value is otherwise of the type. */
static tir_expr rounded(const struct emit_c *e, tir_expr value, tir_type type) {
  const struct tir_expr_node *n = tir_at(e->ir, value);
  bool casts = n->kind == TIR_CAST && n->type == type && tir_type_of(e->ir, n->a) == TIR_TYPE(TIR_FLOAT, 32, 1);
  return casts ? n->a : TIR_NONE;
}

static void write_pair(struct emit_c *e, const tir_expr *values, tir_type type) {
  tir_expr low = rounded(e, values[0], type), high = rounded(e, values[1], type);
  char name[32];
  bool packs = tir_has(e->target->gpu.capabilities, TIR_HAS_MMA); /* sm_80 and later: cvt of two */
  if (packs && low && high) {
    fprintf(e->out, "%s(", pack_function(e, type, name));
    emit_c_value(e, low, C_SCALAR);
    fputs(", ", e->out);
    emit_c_value(e, high, C_SCALAR);
    fputc(')', e->out);
    return;
  }
  for (int i = 0; i < 2; i++) {
    fputs(i ? " | (uint32_t)(uint16_t)(" : "((uint32_t)(uint16_t)(", e->out);
    emit_c_stored_value(e, values[i], type, C_SCALAR);
    fputs(i ? ") << 16)" : ")", e->out);
  }
}

static void write_bytes(struct emit_c *e, const tir_expr *values, tir_type type) {
  for (int i = 0; i < 4; i++) {
    fputs(i ? " | (uint32_t)(uint8_t)(" : "((uint32_t)(uint8_t)(", e->out);
    emit_c_stored_value(e, values[i], type, C_SCALAR);
    fprintf(e->out, i ? ") << %d" : ")", 8 * i);
  }
  fputc(')', e->out);
}

static void write_word(struct emit_c *e, tir_expr value, tir_type type) {
  bool real = tir_type_is_float(type);
  fputs(real ? "__float_as_uint(" : "(uint32_t)(", e->out);
  emit_c_stored_value(e, value, type, C_SCALAR);
  fputc(')', e->out);
}

/* The values are as many as fill 16 bytes. False: refused. */
static bool is_whole(struct emit_c *e, tir_expr call, tir_type type, uint32_t first) {
  uint32_t count = tir_at(e->ir, call)->count - first, bits = (uint32_t)tir_type_bits(type);
  bool known = bits == 32 || bits == 8 || (is_short(type) && emit_cuda_element_of(type));
  if (known && count * bits == 32u * WORDS) return true;
  emit_c_refuse(e, "lanes store 16 bytes each, of 8, 16 or 32 bits");
  return false;
}

static void write_words(struct emit_c *e, const tir_expr *values, tir_type type) {
  for (int w = 0; w < WORDS; w++) {
    fputs(", ", e->out);
    if (tir_type_bits(type) == 8)
      write_bytes(e, values + 4 * w, type);
    else if (is_short(type))
      write_pair(e, values + 2 * w, type);
    else
      write_word(e, values[w], type);
  }
  fputc(')', e->out);
}

/* (pointer, values...) */
void emit_cuda_store_pairs(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  tir_expr offset;
  tir_buffer to = emit_c_pointed(e, args[0], &offset);
  tir_type type = to ? tir_buffer_at(e->ir, to)->type : TIR_T_VOID;
  if (!to || !is_whole(e, call, type, FIRST_OF_PAIRS)) return;
  fprintf(e->out, "%s(", pairs_function(e, tir_type_bits(type)));
  emit_c_pointer(e, args[0]);
  write_words(e, args + FIRST_OF_PAIRS, type);
}

/* (pointer, stride, values...) */
void emit_cuda_store_matrices(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  char swizzle[32];
  tir_expr offset;
  tir_buffer to = emit_c_pointed(e, args[0], &offset);
  tir_type type = to ? tir_buffer_at(e->ir, to)->type : TIR_T_VOID;
  if (!to || !is_whole(e, call, type, FIRST_OF_MATRICES)) return;
  if (!is_short(type) || tir_buffer_memory(e->ir, to) != TIR_BLOCK_MEMORY) {
    emit_c_refuse(e, "matrices are stored to shared memory, of 16 bits");
    return;
  }
  fprintf(e->out, "%s(", matrices_function(e));
  emit_c_buffer(e, to);
  fprintf(e->out, " + %s(", emit_c_swizzle(e, to, swizzle));
  emit_c_index(e, offset);
  fprintf(e->out, " + %s(", row_function(e));
  emit_c_index(e, args[1]);
  fputs("))", e->out);
  write_words(e, args + FIRST_OF_MATRICES, type);
}

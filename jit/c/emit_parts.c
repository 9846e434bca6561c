/* Parts of bytes in vectors of words of 32 bits: bytes four apart, one a lane, are words, shifted, where LLVM's backend
 * takes them so (jit/llvm/emit/emit_parts.c). A part of at most four bits becomes a float by a permutation of the
 * sixteen that there are, where the target has one. */
#include "emit_c.h"
#include "jit/llvm/machine.h"

#include <string.h>

enum { WORD = 4, PART_BITS = 4, TABLE = 1 << PART_BITS, BYTE_BITS = 8 };

/* The operands of a call of two of this name, of which the second is a number that all lanes have; NULL: it is none. */
static const tir_expr *operands_of(const struct emit_c *e, tir_expr x, const char *name, int64_t *number) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (n->kind != TIR_CALL || n->count != 2 || strcmp(tir_text(e->ir, n->ref), name) != 0) return NULL;
  const tir_expr *operands = tir_operands(e->ir, n->operands);
  tir_expr second = operands[1];
  if (tir_at(e->ir, second)->kind == TIR_BROADCAST) second = tir_at(e->ir, second)->a;
  if (tir_at(e->ir, second)->kind == TIR_CAST) second = tir_at(e->ir, second)->a;
  if (!tir_is_int(e->ir, second)) return NULL;
  *number = tir_at(e->ir, second)->imm;
  return operands;
}

/* Bytes four apart: the buffer and the index of the first; its number in its word. */
struct bytes {
  tir_buffer buffer;
  tir_expr first;
  int number;
};

/* Whether an expression is such bytes, in words that lie in their buffer as a whole. */
static bool read_bytes(const struct emit_c *e, tir_expr x, struct bytes *out) {
  const struct tir_expr_node *load = tir_at(e->ir, x);
  if (load->kind != TIR_LOAD || load->a || load->count != 1) return false;
  if (tir_type_with_lanes(load->type, 1) != TIR_TYPE(TIR_UINT, BYTE_BITS, 1)) return false;
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, load->ref);
  const struct tir_expr_node *index = tir_at(e->ir, tir_operands(e->ir, load->operands)[0]);
  tir_expr size = b->rank == 1 ? e->ir->operands.at[b->shape] : TIR_NONE;
  bool apart = index->kind == TIR_RAMP && tir_is_const(e->ir, index->b, WORD);
  if (!apart || !size || !tir_is_int(e->ir, size) || b->type != TIR_TYPE(TIR_UINT, BYTE_BITS, 1)) return false;
  const struct tir_expr_node *first = tir_at(e->ir, index->a);
  tir_expr constant = first->kind == TIR_ADD ? first->b : index->a;
  int64_t number = tir_is_int(e->ir, constant) ? tir_at(e->ir, constant)->imm & (WORD - 1) : 0;
  int64_t lanes = tir_type_lanes(load->type);
  *out = (struct bytes){load->ref, index->a, (int)number};
  return first->lo >= number && first->hi - number <= tir_at(e->ir, size)->imm - WORD * lanes;
}

/* The words of bytes, shifted by so many bits. */
static void write_words(struct emit_c *e, const struct bytes *bytes, int64_t shift, struct c_chunk c) {
  struct c_type t = {TIR_UINT, 32, c.width};
  char type[32], name[48];
  emit_c_type_name(e, t, type);
  snprintf(name, sizeof name, "ms_words_%s", type);
  if (emit_c_needs(e, name))
    fprintf(e->helpers, "typedef uint32_t %s __attribute__((vector_size(%d), aligned(1), may_alias));\n", name,
            WORD * c.width);
  fprintf(e->out, "((%s)*(const %s *)(", type, name);
  emit_c_buffer(e, bytes->buffer);
  fputs(" + ", e->out);
  emit_c_index_in(e, bytes->first, C_SUM);
  if (c.lane) fprintf(e->out, " + %s * %d", c.lane, WORD);
  if (WORD * c.first != bytes->number) fprintf(e->out, " + %d", WORD * c.first - bytes->number);
  fputc(')', e->out);
  if (shift) fprintf(e->out, " >> %d", (int)shift);
  fputc(')', e->out);
}

/* Parts that words have in their lowest bits as floats. */
static const char *part_function(struct emit_c *e, int mask, char name[32]) {
  snprintf(name, 32, "ms_part_%d", mask);
  if (emit_c_needs(e, "ms_immintrin")) fputs("#ifdef __x86_64__\n#include <immintrin.h>\n#endif\n", e->helpers);
  char floats[32], words[32], integers[32];
  emit_c_type_name(e, (struct c_type){TIR_FLOAT, 32, TABLE}, floats);
  emit_c_type_name(e, (struct c_type){TIR_UINT, 32, TABLE}, words);
  emit_c_type_name(e, (struct c_type){TIR_INT, 32, TABLE}, integers);
  if (!emit_c_needs(e, name)) return name;
  fprintf(e->helpers, "MS_HELPER %s %s(%s x) {\n#if defined(__x86_64__) && defined(__AVX512F__)\n  const %s all = {",
          floats, name, words, floats);
  for (int i = 0; i < TABLE; i++) fprintf(e->helpers, i ? ", %d" : "%d", i & mask);
  fprintf(e->helpers,
          "};\n  return (%s)_mm512_permutexvar_ps((__m512i)x, (__m512)all);\n#else\n"
          "  return __builtin_convertvector((%s)(x & %d), %s);\n#endif\n}\n",
          floats, integers, mask, floats);
  return name;
}

/* The cast of a part of bytes to float32: ((int32)bytes >> by) & mask. */
static bool write_part(struct emit_c *e, tir_expr x, struct c_chunk c) {
  int64_t mask = 0, by = 0;
  struct bytes bytes;
  char name[32];
  if (c.width != TABLE || jit_table_lanes(e->target) < TABLE) return false;
  const tir_expr *operands = operands_of(e, x, "bitwise_and", &mask);
  if (!operands || mask < 1 || mask >= TABLE) return false;
  const tir_expr *shifted = operands_of(e, operands[0], "shift_right", &by);
  const struct tir_expr_node *n = tir_at(e->ir, shifted ? shifted[0] : operands[0]);
  if (by < 0 || by > BYTE_BITS - PART_BITS || n->kind != TIR_CAST || !read_bytes(e, n->a, &bytes)) return false;
  if (tir_type_with_lanes(n->type, 1) != TIR_T_I32) return false;
  fprintf(e->out, "%s(", part_function(e, (int)mask, name));
  write_words(e, &bytes, BYTE_BITS * bytes.number + by, c);
  fputc(')', e->out);
  return true;
}

bool emit_c_part(struct emit_c *e, tir_expr x, tir_type to, struct c_chunk c) {
  struct bytes bytes;
  char type[32];
  to = tir_type_with_lanes(to, 1);
  if (c.width == 1) return false;
  if (to == TIR_T_F32 && tir_type_with_lanes(tir_type_of(e->ir, x), 1) == TIR_T_I32) return write_part(e, x, c);
  if (to != TIR_T_I32 || !read_bytes(e, x, &bytes)) return false;
  fprintf(e->out, "((%s)(", emit_c_type_name(e, (struct c_type){TIR_INT, 32, c.width}, type));
  write_words(e, &bytes, BYTE_BITS * bytes.number, c);
  fputs(" & 255))", e->out);
  return true;
}

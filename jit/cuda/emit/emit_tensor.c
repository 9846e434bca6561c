/* Tensor cores in CUDA's source: fragments of 16 x 16 x 16 are registers of each lane, and what a warp does with them
 * is PTX, each instruction in a function of its own, so that nothing is included.
 *
 * What lane and register hold which element is the machine's own affair: only such calls touch fragments. A product is
 * given how its operands were loaded, by rows or by columns: the loads of a buffer must agree. */
#include "emit_cuda.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = TIR_WMMA_SIDE, ELEMENTS = SIDE * SIDE };

/* ---- Fragments ---- */

struct fragment {
  const char *role;    /* in PTX: a, b; c of accumulators */
  const char *element; /* in PTX */
  const char *type;    /* of a register */
  char constraint;     /* of a register, in asm */
  int registers;
};

static const struct {
  tir_type type;
  struct fragment fragment;
} operands[] = {{TIR_TYPE(TIR_FLOAT, 16, 1), {"a", "f16", "uint32_t", 'r', 8}},
                {TIR_TYPE(TIR_BFLOAT, 16, 1), {"a", "bf16", "uint32_t", 'r', 4}},
                {TIR_TYPE(TIR_INT, 8, 1), {"a", "s8", "uint32_t", 'r', 2}},
                {TIR_TYPE(TIR_UINT, 8, 1), {"a", "u8", "uint32_t", 'r', 2}}},
  accumulators[] = {{TIR_TYPE(TIR_FLOAT, 32, 1), {"c", "f32", "float", 'f', 8}},
                    {TIR_TYPE(TIR_FLOAT, 16, 1), {"c", "f16", "uint32_t", 'r', 4}},
                    {TIR_TYPE(TIR_INT, 32, 1), {"c", "s32", "int32_t", 'r', 8}}};

/* False: the buffer is no fragment, or of elements that have none. */
static bool find_fragment(const struct emit_c *e, tir_buffer buffer, struct fragment *out) {
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, buffer);
  enum tir_memory_scope scope = tir_memory_scope_of(e->ir, buffer);
  if (scope == TIR_SCOPE_WMMA_C) {
    for (size_t i = 0; i < sizeof accumulators / sizeof *accumulators; i++)
      if (accumulators[i].type == b->type) return *out = accumulators[i].fragment, true;
    return false;
  }
  bool a = scope == TIR_SCOPE_WMMA_A;
  if (!a && scope != TIR_SCOPE_WMMA_B) return false;
  for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
    if (operands[i].type != b->type) continue;
    *out = operands[i].fragment;
    if (!a) out->role = "b";
    return true;
  }
  return false;
}

bool emit_c_fragment(struct emit_c *e, tir_buffer buffer, uint64_t elements) {
  struct fragment f;
  assert(tir_is_buffer(e->ir, buffer));
  if (emit_c_wgmma_fragment(e, buffer) || emit_c_mma8_fragment(e, buffer, elements)) return true;
  if (!find_fragment(e, buffer, &f)) return emit_c_mma_fragment(e, buffer, elements);
  uint64_t registers = (elements + ELEMENTS - 1) / ELEMENTS * (unsigned)f.registers;
  emit_c_line(e, "%s %s[%llu];", f.type, emit_c_declare_buffer(e, buffer), (unsigned long long)registers);
  return true;
}

/* The fragment that argument `arg` has a pointer to; refused where it is none. */
static bool fragment_of(struct emit_c *e, tir_expr arg, struct fragment *out) {
  const struct tir_expr_node *n = tir_at(e->ir, arg);
  if (n->kind == TIR_DATA && find_fragment(e, n->ref, out)) return true;
  emit_c_refuse(e, "a call of a tensor unit has a pointer to no fragment that CUDA has");
  return false;
}

/* ---- Functions of PTX ---- */

/* "{%4, %5}" */
static void write_operands(FILE *out, int first, int count) {
  for (int i = 0; i < count; i++) fprintf(out, "%s%%%d", i ? ", " : "{", first + i);
  fputc('}', out);
}

/* "=r"(d[0]), "=r"(d[1]) */
static void bind_operands(FILE *out, const char *mode, const struct fragment *f, char name) {
  assert(f->registers && f->constraint);
  for (int i = 0; i < f->registers; i++)
    fprintf(out, "%s\"%s%c\"(%c[%d])", i ? ", " : "", mode, f->constraint, name, i);
}

static const char *load_function(struct emit_c *e, const struct fragment *f, const char *layout, char name[64]) {
  snprintf(name, 64, "ms_wmma_load_%s_%s_%s", f->role, layout, f->element);
  if (!emit_c_needs(e, name)) return name;
  FILE *out = e->helpers;
  fprintf(out, "MS_PTX(void, %s, (%s *d, const void *from, uint32_t stride)) {\n", name, f->type);
  fprintf(out, "  asm volatile(\"%s.%s.sync.aligned.%s.m16n16k16.%s ", emit_cuda_spelling(TIR_WMMA_LOAD), f->role,
          layout, f->element);
  write_operands(out, 0, f->registers);
  fprintf(out, ", [%%%d], %%%d;\"\n               : ", f->registers, f->registers + 1);
  bind_operands(out, "=", f, 'd');
  fputs("\n               : \"l\"(from), \"r\"(stride)\n               : \"memory\");\n}\n", out);
  return name;
}

static const char *store_function(struct emit_c *e, const struct fragment *f, char name[64]) {
  snprintf(name, 64, "ms_wmma_store_%s", f->element);
  if (!emit_c_needs(e, name)) return name;
  FILE *out = e->helpers;
  fprintf(out, "MS_PTX(void, %s, (void *to, const %s *d, uint32_t stride)) {\n", name, f->type);
  fprintf(out, "  asm volatile(\"%s.d.sync.aligned.row.m16n16k16.%s [%%%d], ", emit_cuda_spelling(TIR_WMMA_STORE),
          f->element, f->registers);
  write_operands(out, 0, f->registers);
  fprintf(out, ", %%%d;\"\n               :\n               : ", f->registers + 1);
  bind_operands(out, "", f, 'd');
  fputs(", \"l\"(to), \"r\"(stride)\n               : \"memory\");\n}\n", out);
  return name;
}

/* Products of halves name the types of accumulators alone, others those of all four matrices. */
static void write_types(FILE *out, const struct fragment *input, const struct fragment *sum) {
  if (!strcmp(input->element, "f16"))
    fprintf(out, "%s.%s", sum->element, sum->element);
  else
    fprintf(out, "%s.%s.%s.%s", sum->element, input->element, input->element, sum->element);
}

static const char *multiply_function(struct emit_c *e, const struct fragment *input, const struct fragment *sum,
                                     const char *a_layout, const char *b_layout, char name[64]) {
  snprintf(name, 64, "ms_wmma_mma_%s_%s_%s_%s", a_layout, b_layout, sum->element, input->element);
  if (!emit_c_needs(e, name)) return name;
  FILE *out = e->helpers;
  const int n = sum->registers, k = input->registers;
  fprintf(out, "MS_PTX(void, %s, (%s *d, const uint32_t *a, const uint32_t *b, const %s *c)) {\n", name, sum->type,
          sum->type);
  fprintf(out, "  asm volatile(\"%s.sync.aligned.%s.%s.m16n16k16.", emit_cuda_spelling(TIR_WMMA_SYNC), a_layout,
          b_layout);
  write_types(out, input, sum);
  for (int i = 0, first = 0; i < 4; i++) {
    int count = i == 1 || i == 2 ? k : n;
    fputs(i ? ", " : " ", out);
    write_operands(out, first, count);
    first += count;
  }
  fputs(";\"\n               : ", out);
  bind_operands(out, "=", sum, 'd');
  fputs("\n               : ", out);
  bind_operands(out, "", input, 'a');
  fputs(", ", out);
  bind_operands(out, "", input, 'b');
  fputs(", ", out);
  bind_operands(out, "", sum, 'c');
  fputs(");\n}\n", out);
  return name;
}

static const char *fill_function(struct emit_c *e, const struct fragment *f, char name[64]) {
  snprintf(name, 64, "ms_wmma_fill_%s", f->element);
  if (!emit_c_needs(e, name)) return name;
  fprintf(e->helpers, "MS_HELPER void %s(%s *d, %s value) {\n  for (int i = 0; i < %d; i++) d[i] = value;\n}\n", name,
          f->type, f->type, f->registers);
  return name;
}

/* ---- Calls ---- */

struct layout_search {
  const struct emit_c *e;
  tir_buffer buffer;
  const char *layout; /* NULL: no load was seen */
  bool differ;
};

static bool find_load(void *data, tir_expr x) {
  struct layout_search *s = data;
  const struct tir_expr_node *n = tir_at(s->e->ir, x);
  if (!tir_is_device_call(s->e->ir, x, TIR_WMMA_LOAD) || !tir_takes_operands(TIR_WMMA_LOAD, n->count)) return true;
  const tir_expr *args = tir_operands(s->e->ir, n->operands);
  if (tir_at(s->e->ir, args[0])->kind != TIR_DATA || tir_at(s->e->ir, args[0])->ref != s->buffer) return false;
  const char *layout = emit_c_is_text(s->e, args[7], "col_major") ? "col" : "row";
  s->differ |= s->layout && strcmp(s->layout, layout) != 0;
  s->layout = layout;
  return false;
}

/* How the fragments of the buffer were loaded, which argument `arg` has a pointer to. */
static const char *layout_of(struct emit_c *e, tir_expr arg) {
  struct layout_search s = {e, tir_at(e->ir, arg)->ref, NULL, false};
  tir_stmt top = e->ir->funcs.at[e->func].body;
  for (tir_stmt t = top; t; t = tir_next(e->ir, t, top))
    if (tir_is(e->ir, t, TIR_EVALUATE)) tir_walk_expr(e->ir, tir_stmt_at(e->ir, t)->evaluate.value, find_load, &s);
  if (!s.layout || s.differ)
    emit_c_refuse(e, "%s: its fragments are loaded both by rows and by columns, or not at all",
                  tir_buffer_name(e->ir, s.buffer));
  return s.layout ? s.layout : "row";
}

static void write_fragment(struct emit_c *e, const struct fragment *f, tir_expr data, tir_expr index) {
  emit_c_buffer(e, tir_at(e->ir, data)->ref);
  fprintf(e->out, " + %d * (", f->registers);
  emit_c_index(e, index);
  fputc(')', e->out);
}

/* Operands 1 to 3 say the shape. Refuses others. */
static bool is_known_shape(struct emit_c *e, const tir_expr *args) {
  for (int i = 1; i <= 3; i++) {
    if (tir_is_const(e->ir, args[i], SIDE)) continue;
    emit_c_refuse(e, "fragments that are not of 16 x 16 x 16 have no form in CUDA");
    return false;
  }
  return true;
}

/* (data, m, n, k, index, value) */
void emit_cuda_tvm_fill_fragment(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  struct fragment f;
  struct c_type real = {TIR_FLOAT, 32, 1};
  char name[64], to_half[64];
  if (!is_known_shape(e, args) || !fragment_of(e, args[0], &f)) return;
  bool halves = !strcmp(f.element, "f16"); /* two in a register */
  fprintf(e->out, "%s(", fill_function(e, &f, name));
  write_fragment(e, &f, args[0], args[4]);
  fprintf(e->out, halves ? ", 0x10001u * %s(" : ", ", halves ? emit_c_helper(e, "to_half", real, NULL, to_half) : "");
  emit_c_value(e, args[5], C_SCALAR);
  fputs(halves ? "))" : ")", e->out);
}

/* (data, m, n, k, index, pointer, stride, layout) */
void emit_cuda_tvm_load_matrix_sync(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  struct fragment f;
  char name[64];
  if (!is_known_shape(e, args) || !fragment_of(e, args[0], &f)) return;
  fprintf(e->out, "%s(", load_function(e, &f, emit_c_is_text(e, args[7], "col_major") ? "col" : "row", name));
  write_fragment(e, &f, args[0], args[4]);
  fputs(", ", e->out);
  emit_c_pointer(e, args[5]);
  fputs(", ", e->out);
  emit_c_index(e, args[6]);
  fputc(')', e->out);
}

/* The same arguments. */
void emit_cuda_tvm_store_matrix_sync(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  struct fragment f;
  char name[64];
  if (!is_known_shape(e, args) || !fragment_of(e, args[0], &f)) return;
  if (!emit_c_is_text(e, args[7], "row_major")) emit_c_refuse(e, "a fragment is stored by columns");
  fprintf(e->out, "%s(", store_function(e, &f, name));
  emit_c_pointer(e, args[5]);
  fputs(", ", e->out);
  write_fragment(e, &f, args[0], args[4]);
  fputs(", ", e->out);
  emit_c_index(e, args[6]);
  fputc(')', e->out);
}

/* (d, index, a, index, b, index, c, index) */
void emit_cuda_tvm_mma_sync(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  struct fragment f[4];
  char name[64];
  for (int i = 0; i < 4; i++)
    if (!fragment_of(e, args[2 * i], &f[i])) return;
  if (strcmp(f[1].element, f[2].element) != 0 || strcmp(f[0].element, f[3].element) != 0)
    emit_c_refuse(e, "a product of fragments of two types");
  const char *a = layout_of(e, args[2]), *b = layout_of(e, args[4]);
  fprintf(e->out, "%s(", multiply_function(e, &f[1], &f[0], a, b, name));
  for (int i = 0; i < 4; i++) {
    if (i) fputs(", ", e->out);
    write_fragment(e, &f[i], args[2 * i], args[2 * i + 1]);
  }
  fputc(')', e->out);
}

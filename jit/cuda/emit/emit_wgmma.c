/* Warp-group MMA in CUDA's source, for sm_90a: accumulators are registers of 128 threads, which tir_wgmma_place says
 * the elements of; matrices are named by descriptors, which say where in shared memory they begin, how far its tiles
 * and groups of eight rows lie apart, and how pieces are exchanged. Source: PTX ISA, "Asynchronous Warpgroup Level
 * Matrix Instructions". */
#include "emit_cuda.h"

#include <string.h>

enum { HELD_BY_A = 4 }; /* registers of a thread for a fragment of operand a */

/* Registers of a thread for all fragments of the buffer. */
static unsigned registers_of(const struct emit_c *e, tir_buffer buffer) {
  return (unsigned)(tir_allocation_bytes(e->ir, buffer) / sizeof(float) / TIR_GROUP);
}

static bool is_scope(const struct emit_c *e, tir_buffer buffer, enum tir_memory_scope scope) {
  return tir_memory_scope_of(e->ir, buffer) == scope;
}

bool emit_c_wgmma_fragment(struct emit_c *e, tir_buffer buffer) {
  tir_type type = tir_buffer_at(e->ir, buffer)->type;
  char constraint;
  const char *sum = is_scope(e, buffer, TIR_SCOPE_WGMMA) ? emit_cuda_sum_type(type, &constraint) : NULL;
  if (!sum && !(is_scope(e, buffer, TIR_SCOPE_WGMMA_A) && tir_wgmma_takes_registers(type))) return false;
  emit_c_line(e, "%s %s[%u];", sum ? sum : "uint32_t", emit_c_declare_buffer(e, buffer), registers_of(e, buffer));
  return true;
}

/* ---- Functions ---- */

/* What has neither arguments nor a value. */
static void write_plain(struct emit_c *e, const char *name, const char *ptx) {
  if (emit_c_needs(e, name))
    fprintf(e->helpers, "MS_PTX(void, %s, ()) { asm volatile(\"%s;\" : : : \"memory\"); }\n", name, ptx);
  fprintf(e->out, "%s()", name);
}

static void thread_function(struct emit_c *e) {
  if (!emit_c_needs(e, "ms_group_thread")) return;
  fprintf(
      e->helpers,
      "MS_PTX(int32_t, ms_group_thread, ()) {\n  int32_t thread;\n"
      "  asm(\"{\\n  .reg .u32 i, j, n;\\n  mov.u32 i, %%tid.z;\\n  mov.u32 n, %%ntid.y;\\n  mov.u32 j, %%tid.y;\\n\"\n"
      "      \"  mad.lo.u32 i, i, n, j;\\n  mov.u32 n, %%ntid.x;\\n  mov.u32 j, %%tid.x;\\n\"\n"
      "      \"  mad.lo.u32 i, i, n, j;\\n  and.b32 %%0, i, %d;\\n}\" : \"=r\"(thread));\n  return thread;\n}\n",
      TIR_GROUP - 1);
}

/* Addresses are of 18 bits, and what is added stays in the matrix's buffer: there is no carry out of 14. */
static void matrix_function(struct emit_c *e) {
  if (!emit_c_needs(e, "ms_wgmma_matrix")) return;
  fputs("MS_HELPER uint64_t ms_wgmma_matrix(uint32_t at, uint32_t units, uint32_t leading, uint32_t stride, "
        "uint32_t swizzle) {\n"
        "  const uint32_t low = (at >> 4 & 0x3fff) | leading >> 4 << 16;\n"
        "  return (uint64_t)(stride >> 4 | swizzle << 30) << 32 | (low + units);\n}\n",
        e->helpers);
}

/* sum: of accumulators; NULL: of an operand. */
static const char *hold_function(struct emit_c *e, const char *sum, char constraint) {
  bool real = sum && constraint == 'f';
  const char *name = !sum ? "ms_wgmma_hold_a" : real ? "ms_wgmma_hold" : "ms_wgmma_hold_s32";
  const char *type = sum ? sum : "uint32_t";
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_PTX(void, %s_one, (%s *d)) { asm volatile(\"\" : \"+%c\"(*d) : : \"memory\"); }\n"
            "MS_HELPER void %s(%s *d, int count) {\n#pragma unroll\n"
            "  for (int i = 0; i < count; i++) %s_one(d + i);\n}\n",
            name, type, real ? 'f' : 'r', name, type, name);
  return name;
}

static const char *fill_function(struct emit_c *e, const char *sum, char constraint) {
  const char *name = constraint == 'f' ? "ms_wgmma_fill" : "ms_wgmma_fill_s32";
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_HELPER void %s(%s *d, int count, %s value) {\n#pragma unroll\n"
            "  for (int i = 0; i < count; i++) d[i] = value;\n}\n",
            name, sum, sum);
  return name;
}

/* Registers come by fours: two elements side by side, which are stored at once, two of a row eight further down; eight
 * columns on, the next four. */
static const char *store_function(struct emit_c *e, const char *sum, char constraint) {
  bool real = constraint == 'f';
  const char *name = real ? "ms_wgmma_store" : "ms_wgmma_store_s32", *pair = real ? "float2" : "int2";
  if (!emit_c_needs(e, name)) return name;
  struct tir_mma_place below = tir_wgmma_place(0, 2), next = tir_wgmma_place(0, 4), warp = tir_wgmma_place(TIR_WARP, 0);
  struct tir_mma_place right = tir_wgmma_place(1, 0), lower = tir_wgmma_place(4, 0);
  assert(tir_wgmma_place(0, 1).column == 1 && !below.column && !next.row && !warp.column && !right.row &&
         !lower.column);
  thread_function(e);
  fprintf(e->helpers,
          "MS_HELPER void %s(%s *to, const %s *d, int columns, int32_t stride) {\n"
          "  const int32_t thread = ms_group_thread();\n"
          "  to += (thread / %d * %d + thread %% %d / 4 * %d) * stride + thread %% 4 * %d;\n#pragma unroll\n"
          "  for (int i = 0; i < columns / %d; i++) {\n"
          "    const %s upper = {d[4 * i], d[4 * i + 1]}, lower = {d[4 * i + 2], d[4 * i + 3]};\n"
          "    *(%s *)(to + %d * i) = upper;\n    *(%s *)(to + %d * stride + %d * i) = lower;\n  }\n}\n",
          name, sum, sum, TIR_WARP, warp.row, TIR_WARP, lower.row, right.column, next.column, pair, pair, next.column,
          pair, below.row, next.column);
  return name;
}

/* What follows the matrices: both are added as they are (integers have no other way), and where elements have 16 bits
 * each may be transposed: columns of a, and rows of b, are sixteen products then. */
static const char *ways_of(const struct emit_cuda_element *of, struct tir_wgmma_layout lies, bool of_registers) {
  static const char *const ways[2][2] = {{"p, 1, 1, 0, 1", "p, 1, 1, 0, 0"}, {"p, 1, 1, 1, 1", "p, 1, 1, 1, 0"}};
  if (of->sum[0] != 'f') return "p";
  if (!tir_wgmma_takes_rows(of->type)) return "p, 1, 1";
  if (of_registers) return lies.b_by_columns ? "p, 1, 1, 0" : "p, 1, 1, 1";
  return ways[lies.a_by_columns][lies.b_by_columns];
}

/* d += a * b: d has n / 2 registers, and a, where no descriptor says where it lies, four. */
static void multiply_function(struct emit_c *e, const struct emit_cuda_element *of, const struct emit_cuda_element *by,
                              int n, struct tir_wgmma_layout lies, bool of_registers, const char *name) {
  enum { A = HELD_BY_A };
  assert(tir_is_wgmma_width(n));
  if (!emit_c_needs(e, name)) return;
  FILE *out = e->helpers;
  bool real = of->sum[0] == 'f';
  int count = n / 2, a = of_registers ? A : 1;
  fprintf(out, "MS_PTX(void, %s, (%s *d, %s, uint64_t b)) {\n", name, real ? "float" : "int32_t",
          of_registers ? "uint32_t *a" : "uint64_t a");
  fprintf(out,
          "  asm volatile(\"{\\n  .reg .pred p;\\n  setp.ne.b32 p, 1, 0;\\n\"\n"
          "               \"  %s.m%dn%dk%d.%s.%s.%s {",
          emit_cuda_spelling(TIR_WGMMA_MMA), TIR_WGMMA_ROWS, n, tir_mma_depth(tir_type_bits(of->type)), of->sum,
          of->name, by->name);
  for (int i = 0; i < count; i++) fprintf(out, "%s%%%d", i ? ", " : "", i);
  fputs(of_registers ? "}, {" : "}, ", out);
  for (int i = 0; i < a; i++) fprintf(out, "%s%%%d", i ? ", " : "", count + i);
  fprintf(out, "%s, %%%d, %s;\\n}\"\n               : ", of_registers ? "}" : "", count + a,
          ways_of(of, lies, of_registers));
  for (int i = 0; i < count; i++) fprintf(out, "%s\"+%c\"(d[%d])", i ? ", " : "", real ? 'f' : 'r', i);
  fputs("\n               : ", out);
  for (int i = 0; i < a && of_registers; i++) fprintf(out, "\"r\"(a[%d]), ", i);
  fprintf(out, "%s\"l\"(b)\n               : \"memory\");\n}\n", of_registers ? "" : "\"l\"(a), ");
}

/* ---- Calls ---- */

/* What accumulators of a buffer are in C and in asm. */
static const char *sum_of(const struct emit_c *e, tir_buffer accumulators, char *constraint) {
  const char *sum = emit_cuda_sum_type(tir_buffer_at(e->ir, accumulators)->type, constraint);
  assert(sum);
  return sum;
}

/* The buffer of accumulators that an argument has a pointer to, TIR_NONE: refused. */
static tir_buffer accumulators_of(struct emit_c *e, tir_expr data) {
  const struct tir_expr_node *n = tir_at(e->ir, data);
  char constraint;
  bool accumulators = n->kind == TIR_DATA && is_scope(e, n->ref, TIR_SCOPE_WGMMA);
  if (accumulators && emit_cuda_sum_type(tir_buffer_at(e->ir, n->ref)->type, &constraint)) return n->ref;
  emit_c_refuse(e, "a call of wgmma has a pointer to no accumulators of a warp group");
  return TIR_NONE;
}

static int columns_of(struct emit_c *e, tir_expr n) {
  const struct tir_expr_node *x = tir_at(e->ir, n);
  if (x->kind == TIR_INT_IMM && tir_is_wgmma_width(x->imm)) return (int)x->imm;
  emit_c_refuse(e, "a call of wgmma of a number of columns that is no multiple of 8 up to %d", TIR_WGMMA_MOST_COLUMNS);
  return 8;
}

static void write_fragment(struct emit_c *e, tir_expr data, int columns, tir_expr index) {
  emit_c_buffer(e, tir_at(e->ir, data)->ref);
  fprintf(e->out, " + %d * (", columns / 2);
  emit_c_index(e, index);
  fputc(')', e->out);
}

/* (c, index, n, value) */
void emit_cuda_wgmma_fill(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  int n = columns_of(e, args[2]);
  tir_buffer to = accumulators_of(e, args[0]);
  char constraint;
  if (!to) return;
  const char *sum = sum_of(e, to, &constraint);
  fprintf(e->out, "%s(", fill_function(e, sum, constraint));
  write_fragment(e, args[0], n, args[1]);
  fprintf(e->out, ", %d, ", n / 2);
  emit_c_value(e, args[3], C_SCALAR);
  fputc(')', e->out);
}

/* (c, index, n, pointer, stride) */
void emit_cuda_wgmma_store(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  int n = columns_of(e, args[2]);
  tir_buffer from = accumulators_of(e, args[0]);
  char constraint;
  if (!from) return;
  const char *sum = sum_of(e, from, &constraint);
  fprintf(e->out, "%s(", store_function(e, sum, constraint));
  emit_c_pointer(e, args[3]);
  fputs(", ", e->out);
  write_fragment(e, args[0], n, args[1]);
  fprintf(e->out, ", %d, ", n);
  emit_c_index(e, args[4]);
  fputc(')', e->out);
}

/* A matrix in the canonical layout. Where its columns are what is summed, they are within one swizzled tile. */
static void write_matrix(struct emit_c *e, tir_expr pointer, bool sums_along_rows) {
  struct tir_swizzle s = {0};
  tir_expr offset;
  tir_buffer buffer = emit_c_pointed(e, pointer, &offset);
  if (!buffer) return;
  if (!tir_swizzle_of(e->ir, buffer, &s) || !s.panel) {
    emit_c_refuse(e, "%s: it has no canonical layout, which warp-group MMA reads", tir_buffer_name(e->ir, buffer));
    return;
  }
  matrix_function(e);
  fputs("ms_wgmma_matrix(", e->out);
  emit_cuda_shared(e, pointer, TIR_PIECE);
  assert(s.panel == 128 || s.panel == 64 || s.panel == 32);
  int swizzle = s.panel == 128 ? 1 : s.panel == 64 ? 2 : 3;
  fprintf(e->out, ", %lld, %lld, %d)", sums_along_rows ? (long long)TIR_PIECE : (long long)(s.rows * s.panel),
          (long long)(TIR_PANEL_ROWS * s.panel), swizzle);
}

/* The types of the elements of a product's operands. */
struct inputs {
  const struct emit_cuda_element *a, *b; /* a: NULL, refused */
};

static struct inputs inputs_of(struct emit_c *e, tir_buffer a, tir_expr b_pointer) {
  tir_expr offset;
  tir_buffer b = emit_c_pointed(e, b_pointer, &offset);
  if (!a || !b) return (struct inputs){NULL, NULL};
  tir_type of = tir_buffer_at(e->ir, a)->type, by = tir_buffer_at(e->ir, b)->type;
  struct inputs inputs = {emit_cuda_element_of(of), emit_cuda_element_of(by)};
  if (inputs.a && inputs.b && tir_wgmma_pairs(of, by)) return inputs;
  emit_c_refuse(e, "a product of a warp group is of floats, both alike, or of bytes");
  return (struct inputs){NULL, NULL};
}

static void write_product(struct emit_c *e, const tir_expr *args, const struct inputs *inputs, bool of_registers) {
  const struct emit_cuda_element *of = inputs->a;
  char name[64];
  int n = columns_of(e, args[2]);
  struct tir_wgmma_layout lies = {0};
  const struct tir_expr_node *layout = tir_at(e->ir, args[7]);
  if (layout->kind != TIR_STRING_IMM || !tir_wgmma_layout_of(tir_text(e->ir, layout->ref), &lies))
    emit_c_refuse(e, "an operand of wgmma lies neither by rows nor by columns");
  snprintf(name, sizeof name, "ms_wgmma_m64n%dk%d_%s%s_%s%s", n, tir_mma_depth(tir_type_bits(of->type)), of->name,
           inputs->b == of ? "" : inputs->b->name, lies.b_by_columns ? "col" : "row",
           of_registers        ? "_registers"
           : lies.a_by_columns ? "_columns"
                               : "");
  multiply_function(e, of, inputs->b, n, lies, of_registers, name);
  fprintf(e->out, "%s(", name);
  write_fragment(e, args[0], n, args[1]);
  fputs(", ", e->out);
  if (of_registers)
    write_fragment(e, args[3], 2 * HELD_BY_A, args[4]);
  else
    write_matrix(e, args[3], !lies.a_by_columns);
  fputs(", ", e->out);
  write_matrix(e, args[5], lies.b_by_columns);
  fputc(')', e->out);
}

/* (c, index, n, a, stride, b, stride, layout) */
void emit_cuda_wgmma_mma(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  tir_expr offset;
  const struct inputs inputs = inputs_of(e, emit_c_pointed(e, args[3], &offset), args[5]);
  if (accumulators_of(e, args[0]) && inputs.a) write_product(e, args, &inputs, false);
}

/* (c, index, n, a, index, b, stride, layout of b) */
void emit_cuda_wgmma_mma_registers(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  const struct tir_expr_node *a = tir_at(e->ir, args[3]);
  if (a->kind != TIR_DATA || !is_scope(e, a->ref, TIR_SCOPE_WGMMA_A)) {
    emit_c_refuse(e, "a call of wgmma has a pointer to no operand of a warp group");
    return;
  }
  const struct inputs inputs = inputs_of(e, a->ref, args[5]);
  if (accumulators_of(e, args[0]) && inputs.a) write_product(e, args, &inputs, true);
}

/* (c, n, element) */
void emit_cuda_wgmma_get(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  emit_c_held(e, args[0], args[2]);
}

/* (c, n, element, value, …) */
void emit_cuda_wgmma_put(struct emit_c *e, tir_expr call) {
  enum { ONE = 4, PAIR = 5 };
  const tir_expr *args = emit_cuda_operands(e, call);
  uint32_t count = tir_at(e->ir, call)->count;
  if (count == PAIR)
    emit_c_hold_pair(e, args[0], args[2], args + 3);
  else if (count == ONE)
    emit_c_hold(e, args[0], args[2], args[3]);
  else
    emit_c_refuse(e, "a call of wgmma_put has %u values", count - 3);
}

/* Registers that products change are where they are when products begin, and are what they are when these are done: the
 * compiler moves nothing of theirs across. */
static void hold(struct emit_c *e, tir_expr data) {
  const struct tir_expr_node *n = tir_at(e->ir, data);
  bool operand = n->kind == TIR_DATA && is_scope(e, n->ref, TIR_SCOPE_WGMMA_A);
  tir_buffer buffer = operand ? n->ref : accumulators_of(e, data);
  if (!buffer) return;
  char constraint = 'r';
  const char *sum = operand ? NULL : sum_of(e, buffer, &constraint);
  fprintf(e->out, "%s(", hold_function(e, sum, constraint));
  emit_c_buffer(e, buffer);
  fprintf(e->out, ", %u)", registers_of(e, buffer));
}

/* (c, ...) */
void emit_cuda_wgmma_fence(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  uint32_t count = tir_at(e->ir, call)->count;
  for (uint32_t i = 0; i < count; i++) {
    hold(e, args[i]);
    fputs(", ", e->out);
  }
  write_plain(e, "ms_wgmma_fence", emit_cuda_spelling(TIR_WGMMA_FENCE));
}

void emit_cuda_wgmma_commit(struct emit_c *e, tir_expr call) {
  (void)call;
  write_plain(e, "ms_wgmma_commit", emit_cuda_spelling(TIR_WGMMA_COMMIT));
}

/* (left, c, ...) */
void emit_cuda_wgmma_wait(struct emit_c *e, tir_expr call) {
  const tir_expr *args = emit_cuda_operands(e, call);
  uint32_t count = tir_at(e->ir, call)->count;
  char name[32], ptx[64];
  const struct tir_expr_node *left = tir_at(e->ir, args[0]);
  if (left->kind != TIR_INT_IMM || left->imm < 0 || left->imm > 7) {
    emit_c_refuse(e, "a wait of wgmma leaves a number of groups that is not from 0 to 7");
    return;
  }
  snprintf(name, sizeof name, "ms_wgmma_wait_%d", (int)left->imm);
  snprintf(ptx, sizeof ptx, "%s %d", emit_cuda_spelling(TIR_WGMMA_WAIT), (int)left->imm);
  write_plain(e, name, ptx);
  for (uint32_t i = 1; i < count; i++) {
    fputs(", ", e->out);
    hold(e, args[i]);
  }
}

void emit_cuda_fence_proxy_async(struct emit_c *e, tir_expr call) {
  (void)call;
  write_plain(e, "ms_proxy_fence", emit_cuda_spelling(TIR_PROXY_FENCE));
}

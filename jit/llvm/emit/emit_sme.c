/* Tiles of SME: the products that AMX has (tir/lower/instruction.c), as sums of outer products in the array ZA of a
 * machine whose streaming vectors have 512 bits; where they have others, the entry does without tiles.
 *
 * All this is in streaming mode, which one of LLVM's functions is in from its beginning to its end: a loop that holds
 * accumulators, or a product that none holds, is a function of its own, which takes what it uses. Accumulators are in
 * ZA0.S to ZA2.S. An outer product takes a column of A, as many neighbours a row as fill 32 bits: the rows are loaded
 * to slices of ZA3.S, which are read across.
 * Source: Arm, "A-profile A64 Instruction Set Architecture", SMOPA, UMOPA, SUMOPA, USMOPA (4-way), BFMOPA, FMOPA
 * (widening), LD1W, ST1W (tile slice), MOVA (tile to vector), ZERO (tiles), RDSVL. */
#include "emit.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE = TIR_TILE_ROWS, VECTOR_BYTES = 64, TURNED = 3, ALL_OF_VECTOR = 31 };
enum { RESULT = 0, LEFT = 3, RIGHT = 6 }; /* where a product's operands begin in its arguments */

/* What a function in streaming mode has. */
struct emit_sme {
  const tir_expr *held; /* two addresses each; the number of each is that of its tile */
  uint32_t count;
  LLVMValueRef all, rows; /* predicates: of words; of the rows that a tile has, an element of an operand each */
  LLVMTypeRef vector;     /* of operands */
  const tir_expr *left;   /* whose columns are at hand, in this block of code */
  LLVMBasicBlockRef block;
  LLVMValueRef columns[SIDE];
};

/* ---- Intrinsics ---- */

static LLVMValueRef call(struct emit *e, const char *name, LLVMTypeRef *over, unsigned overs, LLVMValueRef *args,
                         unsigned count) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  assert(id);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, id, over, overs);
  return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, count, "");
}

static LLVMTypeRef vector_of(struct emit *e, unsigned bits) {
  LLVMTypeRef element = LLVMIntTypeInContext(e->context, bits);
  return LLVMScalableVectorType(element, bits == 1 ? 4 : 128 / bits);
}

static LLVMValueRef int32(struct emit *e, unsigned value) {
  return LLVMConstInt(LLVMInt32TypeInContext(e->context), value, false);
}

/* ---- Rows of tiles in memory ---- */

/* A step along memory by so many rows. */
static LLVMValueRef row_at(struct emit *e, const tir_expr *at, unsigned row) {
  LLVMValueRef first = emit_address_argument(e, at[0]);
  LLVMValueRef stride = emit_stride_between(e, first, emit_address_argument(e, at[1]));
  LLVMValueRef bytes = LLVMBuildMul(e->builder, stride, emit_int64(e, row), "");
  return LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), first, &bytes, 1, "");
}

/* Rows between memory and a tile. */
static void move_rows(struct emit *e, const char *name, const tir_expr *at, unsigned tile, int rows) {
  assert(rows > 0 && rows <= SIDE);
  for (unsigned row = 0; row < (unsigned)rows; row++) {
    LLVMValueRef args[] = {e->sme->all, row_at(e, at, row), int32(e, tile), int32(e, row)};
    emit_machine_intrinsic(e, name, args, 4);
  }
}

static void make_zero(struct emit *e, unsigned tile) {
  LLVMValueRef mask = int32(e, 0x11u << tile); /* of tiles of 64 bits, of which one of 32 is every fourth */
  emit_machine_intrinsic(e, "llvm.aarch64.sme.zero", &mask, 1);
}

static unsigned tile_of(const struct emit *e, const tir_expr *result) {
  for (uint32_t i = 0; i < e->sme->count; i++)
    if (e->sme->held[2 * i] == result[0] && e->sme->held[2 * i + 1] == result[1]) return i;
  assert(!"an instruction adds to a tile that is held");
  return 0;
}

/* ---- Products ---- */

static const char *product_name(enum tir_instruction which) {
  switch (which) {
  case TIR_TDPBSSD: return "llvm.aarch64.sme.smopa.wide";
  case TIR_TDPBSUD: return "llvm.aarch64.sme.sumopa.wide";
  case TIR_TDPBUSD: return "llvm.aarch64.sme.usmopa.wide";
  case TIR_TDPBUUD: return "llvm.aarch64.sme.umopa.wide";
  default: assert(which == TIR_TDPBF16PS || which == TIR_TDPFP16PS); return "llvm.aarch64.sme.mopa.wide";
  }
}

static LLVMTypeRef operand_type(struct emit *e, enum tir_instruction which) {
  if (which == TIR_TDPBF16PS) return LLVMScalableVectorType(LLVMBFloatTypeInContext(e->context), 8);
  if (which == TIR_TDPFP16PS) return LLVMScalableVectorType(LLVMHalfTypeInContext(e->context), 8);
  return vector_of(e, 8);
}

/* The columns of the left operand, unless the product before had the same: between products nothing is stored. */
static void turn_left(struct emit *e, const tir_expr *at, int rows) {
  struct emit_sme *s = e->sme;
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
  if (s->left && s->block == here && s->left[0] == at[0] && s->left[1] == at[1]) return;
  LLVMTypeRef words = vector_of(e, 32);
  move_rows(e, "llvm.aarch64.sme.ld1w.horiz", at, TURNED, rows);
  for (unsigned k = 0; k < SIDE; k++) {
    LLVMValueRef args[] = {LLVMConstNull(words), s->all, int32(e, TURNED), int32(e, k)};
    LLVMValueRef column = call(e, "llvm.aarch64.sme.read.vert", &words, 1, args, 4);
    s->columns[k] = LLVMBuildBitCast(e->builder, column, s->vector, "");
  }
  s->left = at, s->block = here;
}

static void write_product(struct emit *e, const tir_expr *args, enum tir_instruction which, int rows) {
  struct emit_sme *s = e->sme;
  unsigned lanes = which == TIR_TDPBF16PS || which == TIR_TDPFP16PS ? 8 : 16;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  LLVMTypeRef mask = LLVMScalableVectorType(LLVMInt1TypeInContext(e->context), lanes), over[] = {mask, i64};
  LLVMValueRef pattern = int32(e, ALL_OF_VECTOR);
  LLVMValueRef ends[] = {emit_int64(e, 0), emit_int64(e, rows * (int)lanes / 4)};
  s->vector = operand_type(e, which);
  LLVMValueRef every = call(e, "llvm.aarch64.sve.ptrue", &mask, 1, &pattern, 1);
  LLVMValueRef some = rows == SIDE ? every : call(e, "llvm.aarch64.sve.whilelt", over, 2, ends, 2);
  turn_left(e, args + LEFT, rows);
  for (unsigned k = 0; k < SIDE; k++) {
    LLVMValueRef b = LLVMBuildLoad2(e->builder, s->vector, row_at(e, args + RIGHT, k), "");
    LLVMSetAlignment(b, 1);
    LLVMValueRef operands[] = {int32(e, tile_of(e, args + RESULT)), some, every, s->columns[k], b};
    call(e, product_name(which), &s->vector, 1, operands, 5);
  }
}

/* ---- Functions in streaming mode ---- */

/* What a statement takes: an expression for each buffer and each variable that is defined around it. */
struct taken {
  const struct emit *e;
  uint8_t *buffers, *vars;
  tir_expr *at_buffer, *at_var;
  uint32_t buffer_count, var_count;
};

static bool take(void *data, tir_expr x) {
  struct taken *t = data;
  const struct tir_expr_node *n = tir_at(t->e->ir, x);
  bool buffer = n->kind == TIR_LOAD || n->kind == TIR_DATA;
  if (buffer && t->e->buffers[n->ref] && !t->buffers[n->ref])
    t->buffers[n->ref] = 1, t->at_buffer[t->buffer_count++] = x;
  if (n->kind == TIR_VAR && t->e->vars[n->ref] && !t->vars[n->ref]) t->vars[n->ref] = 1, t->at_var[t->var_count++] = x;
  return true;
}

/* Of an instruction, its arguments alone: what it stands for is not written. */
static void take_all(struct taken *t, tir_stmt top) {
  const struct tir *ir = t->e->ir;
  for (tir_stmt s = top, next; s; s = next) {
    tir_expr all[4];
    uint32_t count = tir_stmt_exprs(ir, s, all);
    for (uint32_t i = 0; i < count; i++)
      if (all[i]) tir_walk_expr(ir, all[i], take, t);
    next = (tir_instruction_of(ir, s) == TIR_INSTRUCTIONS ? tir_next : tir_after)(ir, s, top);
  }
}

static struct taken start_taking(const struct emit *e) {
  uint32_t buffers = e->ir->buffers.count, vars = e->ir->vars.count;
  struct taken t = {.e = e,
                    .buffers = calloc(buffers + 1u, 1),
                    .vars = calloc(vars + 1u, 1),
                    .at_buffer = malloc((buffers + vars + 1u) * sizeof(tir_expr)),
                    .at_var = malloc((vars + 1u) * sizeof(tir_expr))};
  if (!t.buffers || !t.vars || !t.at_buffer || !t.at_var) abort();
  return t;
}

static void end_taking(struct taken *t) {
  free(t->buffers);
  free(t->vars);
  free(t->at_buffer);
  free(t->at_var);
}

/* Buffers first, as captures are. */
static struct tir_captures captures_of(struct taken *t) {
  memcpy(t->at_buffer + t->buffer_count, t->at_var, t->var_count * sizeof *t->at_var);
  return (struct tir_captures){.at = t->at_buffer, .buffers = t->buffer_count, .vars = t->var_count};
}

/* What LLVM's code calls as it enters streaming mode, of the file's own: the state of a caller that left ZA to
 * be saved is saved to the buffer that TPIDR2_EL0 leads to; nothing unwinds these functions, so their vectors' length
 * is none. Source: Arm, "Procedure Call Standard for the Arm 64-bit Architecture", SME support routines. */
static const char routines[] = "__arm_tpidr2_save:\n"
                               "mrs x14, TPIDR2_EL0\n"
                               "cbz x14, 2f\n"
                               "ldr x16, [x14]\n"
                               "ldrh w17, [x14, #8]\n"
                               "cbz x16, 2f\n"
                               "mov w15, #0\n"
                               "1: cmp w15, w17\n"
                               "b.hs 2f\n"
                               "str za[w15, 0], [x16]\n"
                               "addsvl x16, x16, #1\n"
                               "add w15, w15, #1\n"
                               "b 1b\n"
                               "2: ret\n"
                               "__arm_get_current_vg:\n"
                               "mov x0, #0\n"
                               "ret\n";

static void set_streaming(struct emit *e, LLVMValueRef f) {
  static const char *const names[] = {"aarch64_pstate_sm_body", "aarch64_new_za"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(e->context, names[i], (unsigned)strlen(names[i]), "", 0));
}

/* Rows of the first tile that an instruction below the statement adds to, which all have. */
static int rows_below(const struct emit *e, tir_stmt top) {
  for (tir_stmt s = top; s; s = tir_next(e->ir, s, top))
    if (tir_instruction_of(e->ir, s) != TIR_INSTRUCTIONS) return tir_tile_rows(e->ir, s);
  assert(!"a loop that holds accumulators has products");
  return 0;
}

static void write_body(struct emit *e, tir_stmt top, tir_stmt list) {
  struct emit_sme *s = e->sme;
  int rows = rows_below(e, top);
  LLVMTypeRef mask = vector_of(e, 1);
  LLVMValueRef pattern = int32(e, ALL_OF_VECTOR);
  s->all = call(e, "llvm.aarch64.sve.ptrue", &mask, 1, &pattern, 1);
  for (uint32_t i = 0; i < s->count; i++)
    if (!emit_begins_at_zero(e, top, s->held + 2 * i))
      move_rows(e, "llvm.aarch64.sme.ld1w.horiz", s->held + 2 * i, i, rows);
  if (list == top)
    emit_instruction(e, top);
  else
    emit_list(e, list);
  for (uint32_t i = 0; i < s->count; i++) move_rows(e, "llvm.aarch64.sme.st1w.horiz", s->held + 2 * i, i, rows);
}

/* A function in streaming mode, with such accumulators, for a list of statements below `top`, or for that alone; and
 * its call. */
static void write_function(struct emit *e, tir_stmt top, tir_stmt list, const tir_expr *held, uint32_t count) {
  assert(!e->sme && !e->steps && count <= TURNED);
  struct emit_sme sme = {.held = held, .count = count};
  struct taken taken = start_taking(e);
  take_all(&taken, top);
  const struct tir_captures c = captures_of(&taken);
  LLVMValueRef *args = malloc((c.buffers + c.vars + 1) * sizeof *args);
  LLVMTypeRef *types = malloc((c.buffers + c.vars + 1) * sizeof *types);
  if (!args || !types) abort();
  for (uint32_t i = 0; i < c.buffers; i++) args[i] = e->buffers[emit_captured_buffer(e, &c, i)];
  for (uint32_t i = 0; i < c.vars; i++) args[c.buffers + i] = e->vars[emit_captured_var(e, &c, i)];
  for (uint32_t i = 0; i < c.buffers + c.vars; i++) types[i] = LLVMTypeOf(args[i]);
  LLVMTypeRef signature = LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, c.buffers + c.vars, false);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
  char name[64];
  snprintf(name, sizeof name, "tiles.%u", e->bodies++);
  LLVMValueRef f = emit_declare_body(e, name, signature, &c, 0);
  emit_add_attribute(e, f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "noinline");
  set_streaming(e, f);
  struct emit outer = emit_begin_body(e, f, &c, 0);
  LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(e->context, f, "start");
  e->leave = LLVMAppendBasicBlockInContext(e->context, f, "leave");
  LLVMBuildBr(e->builder, start);
  LLVMPositionBuilderAtEnd(e->builder, start);
  e->sme = &sme;
  write_body(e, top, list);
  e->sme = NULL;
  LLVMBuildBr(e->builder, e->leave);
  emit_end_body(e, &outer);
  LLVMPositionBuilderAtEnd(e->builder, here);
  LLVMBuildCall2(e->builder, signature, f, args, c.buffers + c.vars, "");
  free(args), free(types);
  end_taking(&taken);
  if (!e->uses_tiles) LLVMAppendModuleInlineAsm(e->module, routines, sizeof routines - 1);
  e->uses_tiles = true;
}

void emit_sme_product(struct emit *e, tir_stmt attr, const tir_expr *args, enum tir_instruction which, int rows) {
  if (e->sme)
    write_product(e, args, which, rows);
  else
    write_function(e, attr, attr, args + RESULT, 1);
}

void emit_sme_zeros(struct emit *e, tir_stmt attr, const tir_expr *args) {
  if (e->sme)
    make_zero(e, tile_of(e, args + RESULT));
  else
    write_function(e, attr, attr, args + RESULT, 1);
}

void emit_sme_held(struct emit *e, tir_stmt attr, const tir_expr *held, uint32_t count) {
  write_function(e, attr, tir_stmt_at(e->ir, attr)->first[TIR_BODY], held, count);
}

LLVMValueRef emit_sme_refusal(struct emit *e) {
  LLVMValueRef bytes = emit_machine_intrinsic(e, "llvm.aarch64.sme.cntsb", NULL, 0);
  return LLVMBuildICmp(e->builder, LLVMIntNE, bytes, emit_int64(e, VECTOR_BYTES), "");
}

/* Tiles of AMX: values of LLVM's type x86_amx. LLVM gives them registers, and configures the unit where they are used.
 * The kernel lets no process touch them before it asked: code that uses them asks, once, where it is entered.
 *
 * Accumulators that a loop holds (tir/lower/vector/tiles.c) are vectors in cells on the stack, which LLVM makes phis of
 * and then tiles: the form in which clang has those of C. There, what two products of an iteration read is loaded once,
 * where all of it has registers. */
#include "emit.h"

enum { TILE_BYTES = 64, TILE_ELEMENTS = TIR_TILE_ROWS * TILE_BYTES / 4, TILE_REGISTERS = 8, MOST_READ = 8 };
enum { RESULT = 0, LEFT = 3, RIGHT = 6 }; /* where a product's operands begin in its arguments */

/* A tile that products of a loop read: its first element, the one below it, and what was loaded last, where. */
struct tile {
  tir_expr first, next;
  bool streams; /* it is read past the first cache */
  LLVMValueRef value;
  LLVMBasicBlockRef block;
  uint32_t uses;
};

struct emit_tiles {
  const tir_expr *held; /* two addresses each */
  uint32_t held_count, read_count;
  int rows; /* of each of the held */
  LLVMValueRef *cells;
  bool shares; /* what is read once more in an iteration is there already */
  struct tile read[MOST_READ];
};

/* ---- Tiles in memory and in cells ---- */

static LLVMTypeRef cell_type(struct emit *e) {
  return LLVMVectorType(LLVMInt32TypeInContext(e->context), TILE_ELEMENTS);
}

/* How many rows a tile has, which an instruction takes. */
static LLVMValueRef number(struct emit *e, int rows) {
  assert(rows > 0 && rows <= TIR_TILE_ROWS);
  return LLVMConstInt(LLVMInt16TypeInContext(e->context), (unsigned)rows, false);
}
static LLVMValueRef bytes(struct emit *e) {
  return LLVMConstInt(LLVMInt16TypeInContext(e->context), TILE_BYTES, false);
}

static LLVMValueRef load_tile_by(struct emit *e, const char *name, tir_expr first, tir_expr next, int rows) {
  LLVMValueRef at = emit_address_argument(e, first);
  LLVMValueRef operands[] = {number(e, rows), bytes(e), at, emit_stride_between(e, at, emit_address_argument(e, next))};
  return emit_machine_intrinsic(e, name, operands, 4);
}

static LLVMValueRef load_tile(struct emit *e, tir_expr first, tir_expr next, int rows) {
  return load_tile_by(e, "llvm.x86.tileloadd64.internal", first, next, rows);
}

/* The same with a hint: its lines need not stay in the first cache. */
static LLVMValueRef stream_tile(struct emit *e, tir_expr first, tir_expr next, int rows) {
  return load_tile_by(e, "llvm.x86.tileloaddt164.internal", first, next, rows);
}

static void store_tile(struct emit *e, tir_expr first, tir_expr next, int rows, LLVMValueRef value) {
  LLVMValueRef at = emit_address_argument(e, first);
  LLVMValueRef operands[] = {number(e, rows), bytes(e), at, emit_stride_between(e, at, emit_address_argument(e, next)),
                             value};
  emit_machine_intrinsic(e, "llvm.x86.tilestored64.internal", operands, 5);
}

static LLVMValueRef tile_of(struct emit *e, LLVMValueRef cell) {
  LLVMValueRef value = LLVMBuildLoad2(e->builder, cell_type(e), cell, "");
  return emit_intrinsic(e, "llvm.x86.cast.vector.to.tile", cell_type(e), &value, 1);
}

static void keep_tile(struct emit *e, LLVMValueRef cell, LLVMValueRef value) {
  LLVMBuildStore(e->builder, emit_intrinsic(e, "llvm.x86.cast.tile.to.vector", cell_type(e), &value, 1), cell);
}

/* ---- Products ---- */

static LLVMValueRef held_cell(const struct emit *e, const tir_expr *result) {
  const struct emit_tiles *t = e->tiles;
  for (uint32_t i = 0; t && i < t->held_count; i++)
    if (t->held[2 * i] == result[0] && t->held[2 * i + 1] == result[1]) return t->cells[i];
  return NULL;
}

/* An operand, loaded; where a loop's are shared, and it was loaded in this very block of code, as it was then: between
 * the products of such a loop nothing is stored. */
static LLVMValueRef operand(struct emit *e, const tir_expr *at, int rows) {
  struct emit_tiles *t = e->tiles;
  struct tile *read = NULL;
  for (uint32_t i = 0; t && i < t->read_count; i++)
    if (t->read[i].first == at[0] && t->read[i].next == at[1]) read = t->read + i;
  struct tile *kept = read && t->shares && read->uses > 1 ? read : NULL;
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
  if (kept && kept->block == here) return kept->value;
  LLVMValueRef value = (read && read->streams ? stream_tile : load_tile)(e, at[0], at[1], rows);
  if (kept) kept->value = value, kept->block = here;
  return value;
}

static const char *product_name(enum tir_instruction which) {
  switch (which) {
  case TIR_TDPBSSD: return "llvm.x86.tdpbssd.internal";
  case TIR_TDPBSUD: return "llvm.x86.tdpbsud.internal";
  case TIR_TDPBUSD: return "llvm.x86.tdpbusd.internal";
  case TIR_TDPBUUD: return "llvm.x86.tdpbuud.internal";
  case TIR_TDPFP16PS: return "llvm.x86.tdpfp16ps.internal";
  default: assert(which == TIR_TDPBF16PS); return "llvm.x86.tdpbf16ps.internal";
  }
}

void emit_tile_product(struct emit *e, const tir_expr *args, enum tir_instruction which, int rows) {
  LLVMValueRef cell = held_cell(e, args + RESULT);
  assert((cell || !e->tiles) && "a loop that holds accumulators adds to no others");
  LLVMValueRef c = cell ? tile_of(e, cell) : load_tile(e, args[RESULT], args[RESULT + 1], rows);
  LLVMValueRef a = operand(e, args + LEFT, rows), b = operand(e, args + RIGHT, TIR_TILE_ROWS);
  LLVMValueRef operands[] = {number(e, rows), bytes(e), bytes(e), c, a, b};
  LLVMValueRef product = emit_machine_intrinsic(e, product_name(which), operands, 6);
  if (cell)
    keep_tile(e, cell, product);
  else
    store_tile(e, args[RESULT], args[RESULT + 1], rows, product);
  e->uses_tiles = true;
}

static LLVMValueRef zeros(struct emit *e, int rows) {
  return emit_machine_intrinsic(e, "llvm.x86.tilezero.internal", (LLVMValueRef[]){number(e, rows), bytes(e)}, 2);
}

void emit_tile_of_zeros(struct emit *e, const tir_expr *args, int rows) {
  LLVMValueRef cell = held_cell(e, args + RESULT);
  if (cell)
    keep_tile(e, cell, zeros(e, rows));
  else
    store_tile(e, args[RESULT], args[RESULT + 1], rows, zeros(e, rows));
  e->uses_tiles = true;
}

/* ---- Loops that hold accumulators ---- */

/* Counts the reads of an operand; false: there are too many operands to say. */
static bool count_read(struct emit_tiles *t, const tir_expr *at) {
  uint32_t i = 0;
  while (i < t->read_count && (t->read[i].first != at[0] || t->read[i].next != at[1])) i++;
  if (i == MOST_READ) return false;
  if (i == t->read_count) t->read[t->read_count++] = (struct tile){.first = at[0], .next = at[1]};
  t->read[i].uses++;
  return true;
}

/* Whether what is read more than once has registers beside the accumulators, and beside what is read once. */
static bool find_shared(const struct emit *e, tir_stmt attr, struct emit_tiles *t) {
  uint32_t shared = 0, single = 0;
  for (tir_stmt s = attr; s; s = tir_next(e->ir, s, attr)) {
    if (!tir_is_tile_product(tir_instruction_of(e->ir, s))) continue;
    t->rows = tir_tile_rows(e->ir, s); /* they are the same for all */
    const tir_expr *args = tir_operands(e->ir, tir_at(e->ir, tir_stmt_at(e->ir, s)->attr.value)->operands);
    if (!count_read(t, args + LEFT) || !count_read(t, args + RIGHT)) return false;
  }
  for (uint32_t i = 0; i < t->read_count; i++)
    if (t->read[i].uses > 1)
      shared++;
    else
      single++;
  return t->held_count + shared + (single < 2 ? single : 2) <= TILE_REGISTERS;
}

/* The loop just around that runs more than once in order; TIR_NONE: it is parallel, or there is none. */
static tir_stmt loop_around(const struct tir *ir, tir_stmt attr) {
  tir_stmt s = tir_stmt_at(ir, attr)->parent;
  while (s && !(tir_is(ir, s, TIR_LOOP) && tir_loop_extent(ir, s) != 1)) s = tir_stmt_at(ir, s)->parent;
  return s && tir_as(ir, s, TIR_LOOP)->loop_kind == TIR_SERIAL ? s : TIR_NONE;
}

/* Of operands of which some are the same in each iteration of the loop around, the others stream: these would push
 * what is read again out of the first cache. Source: Intel, "Optimization Reference Manual", chapter "Intel AMX":
 * TILELOADDT1. */
static void find_streaming(const struct emit *e, tir_stmt attr, struct emit_tiles *t) {
  tir_stmt loop = loop_around(e->ir, attr);
  bool stays = false;
  for (uint32_t i = 0; loop && i < t->read_count; i++) {
    t->read[i].streams = tir_uses_var(e->ir, t->read[i].first, tir_stmt_at(e->ir, loop)->loop.var);
    stays = stays || !t->read[i].streams;
  }
  for (uint32_t i = 0; !stays && i < t->read_count; i++) t->read[i].streams = false;
}

bool emit_begins_at_zero(const struct emit *e, tir_stmt attr, const tir_expr *tile) {
  for (tir_stmt s = tir_stmt_at(e->ir, attr)->first[TIR_BODY]; s; s = tir_stmt_at(e->ir, s)->next) {
    if (tir_instruction_of(e->ir, s) != TIR_TILEZERO) continue;
    const tir_expr *args = tir_operands(e->ir, tir_at(e->ir, tir_stmt_at(e->ir, s)->attr.value)->operands);
    if (args[RESULT] == tile[0] && args[RESULT + 1] == tile[1]) return true;
  }
  return false;
}

void emit_held_tiles(struct emit *e, tir_stmt attr, const tir_expr *held, uint32_t count) {
  LLVMValueRef cells[TILE_REGISTERS];
  struct emit_tiles tiles = {.held = held, .held_count = count, .cells = cells};
  assert(count > 0 && count < TILE_REGISTERS && !e->tiles);
  tiles.shares = find_shared(e, attr, &tiles);
  find_streaming(e, attr, &tiles);
  for (uint32_t i = 0; i < count; i++) {
    cells[i] = emit_alloca(e, cell_type(e), 1, TILE_BYTES);
    if (!emit_begins_at_zero(e, attr, held + 2 * i))
      keep_tile(e, cells[i], load_tile(e, held[2 * i], held[2 * i + 1], tiles.rows));
  }
  e->tiles = &tiles;
  emit_list(e, tir_stmt_at(e->ir, attr)->first[TIR_BODY]);
  e->tiles = NULL;
  for (uint32_t i = 0; i < count; i++) store_tile(e, held[2 * i], held[2 * i + 1], tiles.rows, tile_of(e, cells[i]));
}

/* ---- Permission ---- */

enum { SYS_ARCH_PRCTL = 158, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

/* Asks the kernel for the tiles, unless this code has asked before. Gives whether it refused, as an i1. Source: Linux,
 * Documentation/arch/x86/xstate.rst. */
LLVMValueRef emit_tile_permission(struct emit *e, LLVMValueRef function) {
  LLVMBuilderRef w = e->builder;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context), signature = LLVMFunctionType(i64, &i64, 1, true);
  LLVMValueRef granted = LLVMAddGlobal(e->module, i64, "tiles.granted");
  LLVMSetInitializer(granted, LLVMConstNull(i64));
  LLVMSetLinkage(granted, LLVMInternalLinkage);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(w);
  LLVMBasicBlockRef ask = LLVMAppendBasicBlockInContext(e->context, function, "ask");
  LLVMBasicBlockRef known = LLVMAppendBasicBlockInContext(e->context, function, "known");
  LLVMValueRef had = LLVMBuildLoad2(w, i64, granted, "");
  LLVMBuildCondBr(w, LLVMBuildICmp(w, LLVMIntEQ, had, LLVMConstNull(i64), ""), ask, known);
  LLVMPositionBuilderAtEnd(w, ask);
  LLVMValueRef args[] = {emit_int64(e, SYS_ARCH_PRCTL), emit_int64(e, ARCH_REQ_XCOMP_PERM),
                         emit_int64(e, XFEATURE_XTILEDATA)};
  LLVMValueRef result = LLVMBuildCall2(w, signature, LLVMAddFunction(e->module, "syscall", signature), args, 3, "");
  LLVMValueRef refused = LLVMBuildICmp(w, LLVMIntNE, result, LLVMConstNull(i64), "");
  LLVMBuildStore(w, LLVMBuildZExt(w, LLVMBuildNot(w, refused, ""), i64, ""), granted);
  LLVMBuildBr(w, known);
  LLVMPositionBuilderAtEnd(w, known);
  LLVMValueRef verdict = LLVMBuildPhi(w, LLVMInt1TypeInContext(e->context), "");
  LLVMAddIncoming(verdict, (LLVMValueRef[]){LLVMConstNull(LLVMInt1TypeInContext(e->context)), refused},
                  (LLVMBasicBlockRef[]){before, ask}, 2);
  return verdict;
}

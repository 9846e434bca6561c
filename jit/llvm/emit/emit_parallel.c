/* Parallel loops: the body becomes a function that libgomp runs on every thread. The iterations are as many runs as the
 * target has cores. A thread claims pieces of its own run, the first of which is half of it, then of the next runs:
 * where a core is slow, as beside another tenant of its hardware, others do its work, and wait for a piece at most.
 * Where there are other than so many threads, or little to do, each has a run of its own.
 *
 *   caller   fills a closure on the stack, { begin, extent, status, buffers…, variables…, pieces claimed[runs] }, the
 *            last of which is empty where none are, and calls GOMP_parallel(start, closure)
 *   start    reads the closure, claims pieces and calls body for each
 *   body     (begin, end, thread, status, noalias buffers…, variables…): the loop
 *
 * A function that multiplies AMX's tiles configures the unit where it is entered, which takes a tenth of what the
 * shortest pieces do: of such a loop body claims the pieces, and is called once by each thread:
 *
 *   body     (begin, extent, thread, status, noalias buffers…, variables…, threads, pieces claimed)
 *
 * That buffers do not alias is promised again on body's parameters: a closure's fields cannot promise it. Views of one
 * memory make no such promise. */
#include "emit.h"

#include <math.h>
#include <stdlib.h>

/* The closure's first fields, and how many parameters of the body come before the buffers: begin, end, thread,
 * status. */
enum { BEGIN, EXTENT, STATUS, FIXED, FIRST = FIXED + 1 };
/* Pieces of the second half of a run; how far apart the counts of runs are, each on cache lines of its own, in int64s.
 */
enum { PIECES = 8, COUNT_STRIDE = 16 };
/* Runs that a thread asks for pieces, its own and the next: with a hundred cores, asking all would take longer than
 * many loops do. */
enum { ASKED = 4 };
/* A loop that stores fewer elements a core claims nothing: it takes a few microseconds, claims a tenth of that. */
enum { FEW_ELEMENTS = 1 << 15 };

/* ---- Whether pieces are claimed ---- */

/* How often a statement is run in all of a loop's iterations; INFINITY: not known. */
static double times_of(const struct tir *ir, tir_stmt s, tir_loop loop) {
  double times = 1;
  for (tir_stmt p = s; p != loop;) {
    p = tir_stmt_at(ir, p)->parent;
    if (tir_is(ir, p, TIR_WHILE)) return INFINITY;
    if (!tir_is(ir, p, TIR_LOOP)) continue;
    int64_t extent = tir_loop_extent(ir, p);
    if (extent < 0) return INFINITY;
    times *= (double)extent;
  }
  return times;
}

/* Elements that a loop stores, each as often as it does; INFINITY where that is not known, as of instructions. */
static double stored_elements(const struct tir *ir, tir_loop loop) {
  double elements = 0;
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop)) {
    if (tir_is(ir, s, TIR_EVALUATE)) return INFINITY;
    if (!tir_is(ir, s, TIR_STORE)) continue;
    elements += times_of(ir, s, loop) * tir_type_lanes(tir_type_of(ir, tir_stmt_at(ir, s)->store.value));
  }
  return elements;
}

static bool claims_pieces(const struct emit *e, tir_loop loop) {
  return e->target->cores > 1 && stored_elements(e->ir, loop) >= (double)FEW_ELEMENTS * e->target->cores;
}

static bool multiplies_tiles(const struct tir *ir, tir_loop loop) {
  for (tir_stmt s = tir_next(ir, loop, loop); s; s = tir_next(ir, s, loop))
    if (tir_is_tile_product(tir_instruction_of(ir, s))) return true;
  return false;
}

/* Body claims them, and not what calls it. */
static bool claims_inside(const struct emit *e, tir_loop loop) {
  return claims_pieces(e, loop) && multiplies_tiles(e->ir, loop);
}

/* ---- Closures ---- */

/* None where none is claimed. */
static LLVMTypeRef counts_type(struct emit *e, bool claims) {
  uint64_t runs = claims ? (uint64_t)e->target->cores : 0;
  return LLVMArrayType2(LLVMInt64TypeInContext(e->context), runs * COUNT_STRIDE);
}

static LLVMTypeRef closure_type(struct emit *e, const struct tir_captures *c) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i64 = LLVMInt64TypeInContext(e->context);
  uint32_t count = FIXED + c->buffers + c->vars + 1;
  LLVMTypeRef *fields = malloc(count * sizeof *fields);
  if (!fields) abort();
  fields[BEGIN] = fields[EXTENT] = i64;
  fields[STATUS] = pointer;
  for (uint32_t i = 0; i < c->buffers; i++) fields[FIXED + i] = pointer;
  for (uint32_t i = 0; i < c->vars; i++)
    fields[FIXED + c->buffers + i] = LLVMTypeOf(e->vars[emit_captured_var(e, c, i)]);
  fields[count - 1] = counts_type(e, claims_pieces(e, c->loop));
  LLVMTypeRef type = LLVMStructTypeInContext(e->context, fields, count, false);
  free(fields);
  return type;
}

static bool has_counts(LLVMTypeRef closure) {
  return LLVMGetArrayLength2(LLVMStructGetTypeAtIndex(closure, LLVMCountStructElementTypes(closure) - 1)) > 0;
}

static LLVMValueRef field(struct emit *e, LLVMTypeRef type, LLVMValueRef closure, uint32_t i) {
  assert(i < LLVMCountStructElementTypes(type));
  return LLVMBuildStructGEP2(e->builder, type, closure, i, "");
}

static LLVMValueRef library_function(struct emit *e, const char *name, LLVMTypeRef type) {
  LLVMValueRef f = LLVMGetNamedFunction(e->module, name);
  return f ? f : LLVMAddFunction(e->module, name, type);
}

static LLVMValueRef declare_body(struct emit *e, LLVMTypeRef closure, const struct tir_captures *c) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i64 = LLVMInt64TypeInContext(e->context);
  uint32_t fields = LLVMCountStructElementTypes(closure) - 1, count = fields + 1; /* but what is claimed */
  LLVMTypeRef *types = malloc((count + 2) * sizeof *types), *all = malloc((fields + 1) * sizeof *all);
  if (!types || !all) abort();
  LLVMGetStructElementTypes(closure, all);
  types[0] = types[1] = types[2] = i64; /* begin, end or extent, thread */
  types[3] = pointer;                   /* status */
  for (uint32_t i = FIXED; i < fields; i++) types[i + 1] = all[i];
  if (claims_inside(e, c->loop)) types[count++] = i64, types[count++] = pointer; /* threads, what is claimed */
  LLVMTypeRef signature = LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, count, false);
  char name[64];
  snprintf(name, sizeof name, "parallel.%u", e->bodies++);
  LLVMValueRef body = emit_declare_body(e, name, signature, c, FIRST);
  if (has_counts(closure)) /* values of all pieces would take registers */
    emit_add_attribute(e, body, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "noinline");
  emit_add_attribute(e, body, FIRST, "noalias"); /* the status */
  free(types);
  free(all);
  return body;
}

/* ---- What a thread runs ---- */

/* The values of the function that claims pieces, in all of its blocks. */
struct share {
  LLVMTypeRef closure;
  LLVMValueRef function, body, from, counts, begin, extent, thread;
  LLVMValueRef *args;              /* of body, the first two to be filled in */
  uint32_t count;                  /* of args */
  const struct tir_captures *loop; /* NULL: pieces are run by calls of body; else here */
};

static void run_loop(struct emit *e, const struct tir_captures *c, LLVMValueRef begin, LLVMValueRef end);

static LLVMBasicBlockRef block_of(struct emit *e, const struct share *s, const char *name) {
  return LLVMAppendBasicBlockInContext(e->context, s->function, name);
}

/* begin + extent * r / runs: where run r begins, and that before it ends. */
static LLVMValueRef run_begin(struct emit *e, const struct share *s, LLVMValueRef r, LLVMValueRef runs) {
  LLVMBuilderRef w = e->builder;
  return LLVMBuildAdd(w, s->begin, LLVMBuildUDiv(w, LLVMBuildMul(w, s->extent, r, ""), runs, ""), "");
}

static void call_body(struct emit *e, const struct share *s) {
  LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(s->body), s->body, s->args, s->count, "");
}

static void run_piece(struct emit *e, const struct share *s, LLVMValueRef begin, LLVMValueRef end) {
  if (s->loop) {
    run_loop(e, s->loop, begin, end);
    return;
  }
  s->args[0] = begin, s->args[1] = end;
  call_body(e, s);
}

/* How many pieces of a run are claimed. */
static LLVMValueRef count_of(struct emit *e, const struct share *s, LLVMValueRef run) {
  LLVMValueRef at = LLVMBuildMul(e->builder, run, emit_int64(e, COUNT_STRIDE), "");
  return LLVMBuildInBoundsGEP2(e->builder, LLVMInt64TypeInContext(e->context), s->counts, &at, 1, "");
}

/* Where piece `number` of a run begins: the first is `half`, the others `piece`. */
static LLVMValueRef piece_begin(struct emit *e, LLVMValueRef number, LLVMValueRef begin, LLVMValueRef half,
                                LLVMValueRef piece) {
  LLVMBuilderRef w = e->builder;
  LLVMValueRef behind = LLVMBuildMul(w, LLVMBuildSub(w, number, emit_int64(e, 1), ""), piece, "");
  behind = LLVMBuildAdd(w, LLVMBuildAdd(w, begin, half, ""), behind, "");
  return LLVMBuildSelect(w, LLVMBuildICmp(w, LLVMIntEQ, number, emit_int64(e, 0), ""), begin, behind, "");
}

static LLVMValueRef chosen(struct emit *e, LLVMIntPredicate which, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSelect(e->builder, LLVMBuildICmp(e->builder, which, a, b, ""), a, b, "");
}

/* What threads share out among them: so many runs, of which each asks so many for pieces; count: NULL, or where a run
 * that one thread has alone, as one piece, is counted. */
struct runs {
  LLVMValueRef count, asked, alone, single;
};

/* Claims pieces of a run, and runs them, until none is left. Ends in a new block. */
static void run_pieces(struct emit *e, const struct share *s, const struct runs *of, LLVMValueRef run) {
  LLVMBuilderRef w = e->builder;
  LLVMValueRef one = emit_int64(e, 1), none_left = emit_int64(e, 0);
  LLVMBasicBlockRef claim = block_of(e, s, "claim"), inside = block_of(e, s, "piece"), none = block_of(e, s, "none");
  LLVMValueRef begin = run_begin(e, s, run, of->count), end = run_begin(e, s, LLVMBuildAdd(w, run, one, ""), of->count);
  LLVMValueRef all = LLVMBuildSub(w, end, begin, ""), rest = LLVMBuildUDiv(w, all, emit_int64(e, 2), "");
  LLVMValueRef count = count_of(e, s, run);
  if (of->alone) rest = LLVMBuildSelect(w, of->alone, none_left, rest, "");
  if (of->alone) count = LLVMBuildSelect(w, of->alone, of->single, count, "");
  LLVMValueRef half = LLVMBuildSub(w, all, rest, "");
  LLVMValueRef piece = chosen(e, LLVMIntUGT, LLVMBuildUDiv(w, rest, emit_int64(e, PIECES), ""), one);
  LLVMBuildBr(w, claim);
  LLVMPositionBuilderAtEnd(w, claim);
  LLVMValueRef number = LLVMBuildAtomicRMW(w, LLVMAtomicRMWBinOpAdd, count, one, LLVMAtomicOrderingMonotonic, false);
  LLVMValueRef first = piece_begin(e, number, begin, half, piece);
  LLVMBuildCondBr(w, LLVMBuildICmp(w, LLVMIntSLT, first, end, ""), inside, none);
  LLVMPositionBuilderAtEnd(w, inside);
  LLVMValueRef next = piece_begin(e, LLVMBuildAdd(w, number, one, ""), begin, half, piece);
  run_piece(e, s, first, chosen(e, LLVMIntSLT, next, end));
  LLVMBuildBr(w, claim);
  LLVMPositionBuilderAtEnd(w, none);
}

static LLVMValueRef most_asked(struct emit *e) {
  return emit_int64(e, e->target->cores < ASKED ? e->target->cores : ASKED);
}

/* Pieces of this thread's run, then of the next. Ends in a new block. */
static void run_all_pieces(struct emit *e, const struct share *s, const struct runs *of) {
  LLVMBuilderRef w = e->builder;
  LLVMBasicBlockRef entry = LLVMGetInsertBlock(w), head = block_of(e, s, "runs");
  LLVMBasicBlockRef inside = block_of(e, s, "run"), leave = block_of(e, s, "leave");
  LLVMBuildBr(w, head);
  LLVMPositionBuilderAtEnd(w, head);
  LLVMValueRef i = LLVMBuildPhi(w, LLVMInt64TypeInContext(e->context), "i");
  LLVMBuildCondBr(w, LLVMBuildICmp(w, LLVMIntULT, i, of->asked, ""), inside, leave);
  LLVMPositionBuilderAtEnd(w, inside);
  run_pieces(e, s, of, LLVMBuildURem(w, LLVMBuildAdd(w, s->thread, i, ""), of->count, ""));
  LLVMValueRef next = LLVMBuildAdd(w, i, emit_int64(e, 1), "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(w);
  LLVMBuildBr(w, head);
  LLVMAddIncoming(i, (LLVMValueRef[]){emit_int64(e, 0), next}, (LLVMBasicBlockRef[]){entry, latch}, 2);
  LLVMPositionBuilderAtEnd(w, leave);
}

/* A run of its own for each thread: those that check results with other timing, on more threads than cores, rely on
 * it, since a late thread would have no piece left. */
static void run_own(struct emit *e, const struct share *s, LLVMValueRef threads) {
  s->args[0] = run_begin(e, s, s->thread, threads);
  s->args[1] = run_begin(e, s, LLVMBuildAdd(e->builder, s->thread, emit_int64(e, 1), ""), threads);
  call_body(e, s);
}

static LLVMValueRef thread_number(struct emit *e, const char *name) {
  LLVMTypeRef type = LLVMFunctionType(LLVMInt32TypeInContext(e->context), NULL, 0, false);
  LLVMValueRef number = LLVMBuildCall2(e->builder, type, library_function(e, name, type), NULL, 0, "");
  return LLVMBuildZExt(e->builder, number, LLVMInt64TypeInContext(e->context), "");
}

/* Reads the closure: what body is called with, its first two arguments left out. */
static void read_closure(struct emit *e, struct share *s) {
  LLVMBuilderRef w = e->builder;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  s->begin = LLVMBuildLoad2(w, i64, field(e, s->closure, s->from, BEGIN), "");
  s->extent = LLVMBuildLoad2(w, i64, field(e, s->closure, s->from, EXTENT), "");
  s->args[2] = s->thread;
  for (uint32_t i = STATUS; i < LLVMCountStructElementTypes(s->closure) - 1; i++)
    s->args[i + 1] = LLVMBuildLoad2(w, LLVMStructGetTypeAtIndex(s->closure, i), field(e, s->closure, s->from, i), "");
}

/* Where there are as many threads as cores, they claim pieces and return. Else goes on in a new block. */
static void claim_if_as_cores(struct emit *e, const struct share *s, LLVMValueRef threads) {
  LLVMBasicBlockRef own = block_of(e, s, "own"), shared = block_of(e, s, "shared");
  LLVMValueRef as_cores = LLVMBuildICmp(e->builder, LLVMIntEQ, threads, emit_int64(e, e->target->cores), "");
  LLVMBuildCondBr(e->builder, as_cores, shared, own);
  LLVMPositionBuilderAtEnd(e->builder, shared);
  run_all_pieces(e, s, &(struct runs){.count = emit_int64(e, e->target->cores), .asked = most_asked(e)});
  LLVMBuildRetVoid(e->builder);
  LLVMPositionBuilderAtEnd(e->builder, own);
}

/* All that a thread does, where body claims pieces. */
static void call_claiming(struct emit *e, const struct share *s, LLVMValueRef threads) {
  s->args[0] = s->begin, s->args[1] = s->extent;
  s->args[s->count - 2] = threads, s->args[s->count - 1] = s->counts;
  call_body(e, s);
}

static LLVMValueRef write_start(struct emit *e, LLVMTypeRef closure, LLVMValueRef body, bool inside) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0);
  LLVMTypeRef signature = LLVMFunctionType(LLVMVoidTypeInContext(e->context), &pointer, 1, false);
  LLVMValueRef start = LLVMAddFunction(e->module, "parallel.start", signature);
  LLVMSetLinkage(start, LLVMInternalLinkage);
  LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, start, "entry"));
  struct share s = {.closure = closure, .function = start, .body = body, .from = LLVMGetParam(start, 0)};
  s.count = LLVMCountParams(body);
  s.args = malloc(s.count * sizeof *s.args);
  if (!s.args) abort();
  s.counts = field(e, closure, s.from, LLVMCountStructElementTypes(closure) - 1);
  s.thread = thread_number(e, "omp_get_thread_num");
  LLVMValueRef threads = thread_number(e, "omp_get_num_threads");
  read_closure(e, &s);
  if (inside) {
    call_claiming(e, &s, threads);
  } else {
    if (has_counts(closure)) claim_if_as_cores(e, &s, threads);
    run_own(e, &s, threads);
  }
  LLVMBuildRetVoid(e->builder);
  free(s.args);
  return start;
}

/* Iterations from begin to end. Ends in a new block. */
static void run_loop(struct emit *e, const struct tir_captures *c, LLVMValueRef begin, LLVMValueRef end) {
  LLVMBuilderRef w = e->builder;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(w);
  LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->context, e->function, "head");
  LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(e->context, e->function, "inside");
  LLVMBasicBlockRef behind = LLVMAppendBasicBlockInContext(e->context, e->function, "behind");
  LLVMBuildBr(w, head);
  LLVMPositionBuilderAtEnd(w, head);
  LLVMValueRef i = LLVMBuildPhi(w, LLVMInt64TypeInContext(e->context), "i");
  LLVMBuildCondBr(w, LLVMBuildICmp(w, LLVMIntSLT, i, end, ""), inside, behind);
  LLVMPositionBuilderAtEnd(w, inside);
  e->vars[tir_as(e->ir, c->loop, TIR_LOOP)->loop.var] = i;
  emit_list(e, tir_stmt_at(e->ir, c->loop)->first[TIR_BODY]);
  LLVMValueRef next = LLVMBuildNSWAdd(w, i, emit_int64(e, 1), "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(w);
  LLVMBuildBr(w, head);
  LLVMAddIncoming(i, (LLVMValueRef[]){begin, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
  LLVMPositionBuilderAtEnd(w, behind);
}

/* Pieces as in `start`, with the loop inside; where there are other than so many threads, a run is one piece, of which
 * its thread alone knows. */
static void claim_inside(struct emit *e, LLVMValueRef body, const struct tir_captures *c) {
  LLVMBuilderRef w = e->builder;
  uint32_t last = LLVMCountParams(body) - 1;
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  struct share s = {.function = body,
                    .loop = c,
                    .counts = LLVMGetParam(body, last),
                    .begin = LLVMGetParam(body, 0),
                    .extent = LLVMGetParam(body, 1),
                    .thread = LLVMGetParam(body, 2)};
  struct runs runs = {.count = LLVMGetParam(body, last - 1), .single = emit_alloca(e, i64, 1, 8)};
  LLVMBuildStore(w, emit_int64(e, 0), runs.single);
  runs.alone = LLVMBuildICmp(w, LLVMIntNE, runs.count, emit_int64(e, e->target->cores), "");
  runs.asked = LLVMBuildSelect(w, runs.alone, emit_int64(e, 1), most_asked(e), "");
  run_all_pieces(e, &s, &runs);
}

/* The loop of one thread. */
static void write_body(struct emit *e, LLVMValueRef body, const struct tir_captures *c) {
  struct emit outer = emit_begin_body(e, body, c, FIRST);
  e->leave = LLVMAppendBasicBlockInContext(e->context, body, "leave");
  e->thread = LLVMGetParam(body, 2);
  e->status = LLVMGetParam(body, 3);
  if (claims_inside(e, c->loop))
    claim_inside(e, body, c);
  else
    run_loop(e, c, LLVMGetParam(body, 0), LLVMGetParam(body, 1));
  LLVMBuildBr(e->builder, e->leave);
  emit_end_body(e, &outer);
}

/* What threads start at, with the loop behind it. All loops of one number have that of the first. */
static LLVMValueRef start_of(struct emit *e, LLVMTypeRef closure, const struct tir_captures *c) {
  LLVMValueRef start = emit_shared(e, c->number);
  if (start) return start;
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
  LLVMValueRef body = declare_body(e, closure, c);
  write_body(e, body, c);
  start = write_start(e, closure, body, claims_inside(e, c->loop));
  LLVMPositionBuilderAtEnd(e->builder, here);
  emit_share(e, c->number, start);
  return start;
}

static void clear_counts(struct emit *e, LLVMValueRef counts) {
  int64_t bytes = (int64_t)e->target->cores * COUNT_STRIDE * (int64_t)sizeof(int64_t);
  LLVMBuildMemSet(e->builder, counts, LLVMConstNull(LLVMInt8TypeInContext(e->context)), emit_int64(e, bytes), 8);
}

void emit_parallel(struct emit *e, const struct tir_captures *c) {
  struct tir_stmt_node s = *tir_as(e->ir, c->loop, TIR_LOOP);
  LLVMTypeRef type = closure_type(e, c);
  LLVMBuilderRef w = e->builder;
  LLVMValueRef closure = emit_alloca(e, type, 1, 64);
  LLVMBuildStore(w, emit_number(e, s.loop.min), field(e, type, closure, BEGIN));
  LLVMBuildStore(w, emit_number(e, s.loop.extent), field(e, type, closure, EXTENT));
  LLVMBuildStore(w, e->status, field(e, type, closure, STATUS));
  for (uint32_t i = 0; i < c->buffers; i++)
    LLVMBuildStore(w, e->buffers[emit_captured_buffer(e, c, i)], field(e, type, closure, FIXED + i));
  for (uint32_t i = 0; i < c->vars; i++)
    LLVMBuildStore(w, e->vars[emit_captured_var(e, c, i)], field(e, type, closure, FIXED + c->buffers + i));
  if (has_counts(type)) clear_counts(e, field(e, type, closure, FIXED + c->buffers + c->vars));
  LLVMValueRef start = start_of(e, type, c);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i32 = LLVMInt32TypeInContext(e->context);
  LLVMTypeRef signature =
      LLVMFunctionType(LLVMVoidTypeInContext(e->context), (LLVMTypeRef[]){pointer, pointer, i32, i32}, 4, false);
  LLVMValueRef threads = LLVMConstInt(i32, (unsigned long long)e->target->cores, false);
  LLVMValueRef args[] = {start, closure, threads, LLVMConstNull(i32)};
  LLVMBuildCall2(w, signature, library_function(e, "GOMP_parallel", signature), args, 4, "");
}

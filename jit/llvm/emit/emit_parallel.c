/* Parallel loops: the body becomes a function that libgomp runs on every thread, each taking a run of the iterations.
 *
 *   caller   fills a closure on the stack, { begin, extent, status, buffers…, variables… }, and calls
 *            GOMP_parallel(start, closure)
 *   start    reads the closure, computes this thread's run and calls body
 *   body     (begin, end, thread, status, noalias buffers…, variables…): the loop
 *
 * That buffers do not alias is promised again on body's parameters: a closure's fields cannot promise it. Views of one
 * memory make no such promise. */
#include "emit.h"

#include <stdlib.h>
#include <string.h>

static tir_buffer buffer_at(const struct emit *e, const struct tir_captures *c, uint32_t i) {
  assert(i < c->buffers);
  return tir_at(e->ir, c->at[i])->ref;
}

static tir_var var_at(const struct emit *e, const struct tir_captures *c, uint32_t i) {
  assert(i < c->vars);
  return tir_at(e->ir, c->at[c->buffers + i])->ref;
}

/* The closure's first fields, and how many parameters of the body come before the buffers: begin, end, thread,
 * status. */
enum { BEGIN, EXTENT, STATUS, FIXED, FIRST = FIXED + 1 };

static LLVMTypeRef closure_type(struct emit *e, const struct tir_captures *c) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i64 = LLVMInt64TypeInContext(e->context);
  uint32_t count = FIXED + c->buffers + c->vars;
  LLVMTypeRef *fields = malloc(count * sizeof *fields);
  if (!fields) abort();
  fields[BEGIN] = fields[EXTENT] = i64;
  fields[STATUS] = pointer;
  for (uint32_t i = 0; i < c->buffers; i++) fields[FIXED + i] = pointer;
  for (uint32_t i = 0; i < c->vars; i++) fields[FIXED + c->buffers + i] = LLVMTypeOf(e->vars[var_at(e, c, i)]);
  LLVMTypeRef type = LLVMStructTypeInContext(e->context, fields, count, false);
  free(fields);
  return type;
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
  uint32_t fields = LLVMCountStructElementTypes(closure), count = fields + 1;
  LLVMTypeRef *types = malloc(count * sizeof *types), *all = malloc(fields * sizeof *all);
  if (!types || !all) abort();
  LLVMGetStructElementTypes(closure, all);
  types[0] = types[1] = types[2] = i64; /* begin, end, thread */
  types[3] = pointer;                   /* status */
  for (uint32_t i = FIXED; i < fields; i++) types[i + 1] = all[i];
  LLVMTypeRef signature = LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, count, false);
  char name[64];
  snprintf(name, sizeof name, "parallel.%u", e->bodies++);
  LLVMValueRef body = LLVMAddFunction(e->module, name, signature);
  LLVMSetLinkage(body, LLVMInternalLinkage);
  unsigned noalias = LLVMGetEnumAttributeKindForName("noalias", 7);
  for (uint32_t i = 3; i < FIRST + c->buffers; i++)
    if (i < FIRST || tir_is_captured_apart(e->ir, c, i - FIRST))
      LLVMAddAttributeAtIndex(body, i + 1, LLVMCreateEnumAttribute(e->context, noalias, 0));
  free(types);
  free(all);
  return body;
}

/* Iterations [begin + extent * t / n, begin + extent * (t + 1) / n) are thread t's of n. */
static LLVMValueRef write_start(struct emit *e, LLVMTypeRef closure, LLVMValueRef body) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i64 = LLVMInt64TypeInContext(e->context);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context), number = LLVMFunctionType(i32, NULL, 0, false);
  LLVMTypeRef signature = LLVMFunctionType(LLVMVoidTypeInContext(e->context), &pointer, 1, false);
  LLVMValueRef start = LLVMAddFunction(e->module, "parallel.start", signature);
  LLVMSetLinkage(start, LLVMInternalLinkage);
  LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, start, "entry"));
  LLVMBuilderRef w = e->builder;
  LLVMValueRef t = LLVMBuildCall2(w, number, library_function(e, "omp_get_thread_num", number), NULL, 0, "");
  LLVMValueRef n = LLVMBuildCall2(w, number, library_function(e, "omp_get_num_threads", number), NULL, 0, "");
  t = LLVMBuildZExt(w, t, i64, "");
  n = LLVMBuildZExt(w, n, i64, "");
  uint32_t fields = LLVMCountStructElementTypes(closure);
  LLVMValueRef *args = malloc((fields + 1) * sizeof *args), from = LLVMGetParam(start, 0);
  if (!args) abort();
  LLVMValueRef begin = LLVMBuildLoad2(w, i64, field(e, closure, from, BEGIN), "");
  LLVMValueRef extent = LLVMBuildLoad2(w, i64, field(e, closure, from, EXTENT), "");
  LLVMValueRef next = LLVMBuildAdd(w, t, emit_int64(e, 1), "");
  args[0] = LLVMBuildAdd(w, begin, LLVMBuildUDiv(w, LLVMBuildMul(w, extent, t, ""), n, ""), "");
  args[1] = LLVMBuildAdd(w, begin, LLVMBuildUDiv(w, LLVMBuildMul(w, extent, next, ""), n, ""), "");
  args[2] = t;
  for (uint32_t i = STATUS; i < fields; i++)
    args[i + 1] = LLVMBuildLoad2(w, LLVMStructGetTypeAtIndex(closure, i), field(e, closure, from, i), "");
  LLVMBuildCall2(w, LLVMGlobalGetValueType(body), body, args, fields + 1, "");
  free(args);
  LLVMBuildRetVoid(w);
  return start;
}

/* The loop of one thread, in a function of its own: what the emitter knows of values is the parameters' until it ends.
 */
static void write_body(struct emit *e, LLVMValueRef body, const struct tir_captures *c) {
  struct emit outer = *e;
  e->vars = calloc(e->ir->vars.count, sizeof *e->vars);
  e->buffers = calloc(e->ir->buffers.count, sizeof *e->buffers);
  if (!e->vars || !e->buffers) abort();
  e->function = body;
  e->streams = false;
  e->entry = LLVMAppendBasicBlockInContext(e->context, body, "entry");
  LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(e->context, body, "head");
  LLVMBasicBlockRef inside = LLVMAppendBasicBlockInContext(e->context, body, "inside");
  e->leave = LLVMAppendBasicBlockInContext(e->context, body, "leave");
  e->thread = LLVMGetParam(body, 2);
  e->status = LLVMGetParam(body, 3);
  for (uint32_t i = 0; i < c->buffers; i++) e->buffers[buffer_at(e, c, i)] = LLVMGetParam(body, FIRST + i);
  for (uint32_t i = 0; i < c->vars; i++) e->vars[var_at(e, c, i)] = LLVMGetParam(body, FIRST + c->buffers + i);
  LLVMBuilderRef w = e->builder;
  LLVMPositionBuilderAtEnd(w, e->entry);
  LLVMBuildBr(w, head);
  LLVMPositionBuilderAtEnd(w, head);
  LLVMValueRef i = LLVMBuildPhi(w, LLVMInt64TypeInContext(e->context), "i");
  LLVMBuildCondBr(w, LLVMBuildICmp(w, LLVMIntSLT, i, LLVMGetParam(body, 1), ""), inside, e->leave);
  LLVMPositionBuilderAtEnd(w, inside);
  e->vars[tir_as(e->ir, c->loop, TIR_LOOP)->loop.var] = i;
  emit_list(e, tir_stmt_at(e->ir, c->loop)->first[TIR_BODY]);
  LLVMValueRef next = LLVMBuildNSWAdd(w, i, emit_int64(e, 1), "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(w);
  LLVMBuildBr(w, head);
  LLVMAddIncoming(i, (LLVMValueRef[]){LLVMGetParam(body, 0), next}, (LLVMBasicBlockRef[]){e->entry, latch}, 2);
  LLVMPositionBuilderAtEnd(w, e->leave);
  emit_fence(e);
  LLVMBuildRetVoid(w);
  free(e->vars);
  free(e->buffers);
  outer.failed = e->failed;
  outer.bodies = e->bodies;
  outer.uses_tiles = e->uses_tiles;
  *e = outer;
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
    LLVMBuildStore(w, e->buffers[buffer_at(e, c, i)], field(e, type, closure, FIXED + i));
  for (uint32_t i = 0; i < c->vars; i++)
    LLVMBuildStore(w, e->vars[var_at(e, c, i)], field(e, type, closure, FIXED + c->buffers + i));
  LLVMBasicBlockRef here = LLVMGetInsertBlock(w);
  LLVMValueRef body = declare_body(e, type, c);
  write_body(e, body, c);
  LLVMValueRef start = write_start(e, type, body);
  LLVMPositionBuilderAtEnd(w, here);
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i32 = LLVMInt32TypeInContext(e->context);
  LLVMTypeRef signature =
      LLVMFunctionType(LLVMVoidTypeInContext(e->context), (LLVMTypeRef[]){pointer, pointer, i32, i32}, 4, false);
  LLVMValueRef threads = LLVMConstInt(i32, (unsigned long long)e->target->cores, false);
  LLVMValueRef args[] = {start, closure, threads, LLVMConstNull(i32)};
  LLVMBuildCall2(w, signature, library_function(e, "GOMP_parallel", signature), args, 4, "");
}

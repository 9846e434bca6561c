/* Functions that take what outlined code captures; nests, which are called where they stand. All nests of one number
 * are calls of the function of the first: (noalias buffers…, variables…). */
#include "emit.h"

#include <stdlib.h>

tir_buffer emit_captured_buffer(const struct emit *e, const struct tir_captures *c, uint32_t i) {
  assert(i < c->buffers);
  return tir_at(e->ir, c->at[i])->ref;
}

tir_var emit_captured_var(const struct emit *e, const struct tir_captures *c, uint32_t i) {
  assert(i < c->vars);
  return tir_at(e->ir, c->at[c->buffers + i])->ref;
}

/* ---- Functions ---- */

LLVMValueRef emit_declare_body(struct emit *e, const char *name, LLVMTypeRef signature, const struct tir_captures *c,
                               uint32_t first) {
  LLVMValueRef body = LLVMAddFunction(e->module, name, signature);
  LLVMSetLinkage(body, LLVMInternalLinkage);
  for (uint32_t i = 0; i < c->buffers; i++)
    if (tir_is_captured_apart(e->ir, c, i)) emit_add_attribute(e, body, first + i + 1, "noalias");
  return body;
}

struct emit emit_begin_body(struct emit *e, LLVMValueRef body, const struct tir_captures *c, uint32_t first) {
  struct emit outer = *e;
  e->vars = calloc(e->ir->vars.count, sizeof *e->vars);
  e->buffers = calloc(e->ir->buffers.count, sizeof *e->buffers);
  if (!e->vars || !e->buffers) abort();
  e->function = body;
  e->streams = false;
  e->entry = LLVMAppendBasicBlockInContext(e->context, body, "entry");
  for (uint32_t i = 0; i < c->buffers; i++) e->buffers[emit_captured_buffer(e, c, i)] = LLVMGetParam(body, first + i);
  for (uint32_t i = 0; i < c->vars; i++)
    e->vars[emit_captured_var(e, c, i)] = LLVMGetParam(body, first + c->buffers + i);
  LLVMPositionBuilderAtEnd(e->builder, e->entry);
  return outer;
}

void emit_end_body(struct emit *e, const struct emit *outer) {
  struct emit ended = *e;
  LLVMPositionBuilderAtEnd(e->builder, e->leave);
  emit_fence(e);
  LLVMBuildRetVoid(e->builder);
  free(e->vars);
  free(e->buffers);
  *e = *outer;
  e->failed = ended.failed;
  e->bodies = ended.bodies;
  e->uses_tiles = ended.uses_tiles;
  e->shared = ended.shared;
  e->shared_count = ended.shared_count;
}

LLVMValueRef emit_shared(const struct emit *e, uint32_t number) {
  return number < e->shared_count ? e->shared[number] : NULL;
}

void emit_share(struct emit *e, uint32_t number, LLVMValueRef function) {
  if (!number) return;
  if (number >= e->shared_count) {
    uint32_t count = 2 * number + 8;
    e->shared = realloc(e->shared, count * sizeof *e->shared);
    if (!e->shared) abort();
    while (e->shared_count < count) e->shared[e->shared_count++] = NULL;
  }
  e->shared[number] = function;
}

/* ---- Nests ---- */

static LLVMTypeRef signature_of(struct emit *e, const struct tir_captures *c) {
  LLVMTypeRef *types = malloc((c->buffers + c->vars + 1) * sizeof *types);
  if (!types) abort();
  for (uint32_t i = 0; i < c->buffers; i++) types[i] = LLVMPointerTypeInContext(e->context, 0);
  for (uint32_t i = 0; i < c->vars; i++) types[c->buffers + i] = LLVMTypeOf(e->vars[emit_captured_var(e, c, i)]);
  LLVMTypeRef made = LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, c->buffers + c->vars, false);
  free(types);
  return made;
}

static LLVMValueRef write_nest(struct emit *e, const struct tir_captures *c) {
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
  char name[64];
  snprintf(name, sizeof name, "nest.%u", e->bodies++);
  LLVMValueRef nest = emit_declare_body(e, name, signature_of(e, c), c, 0);
  emit_add_attribute(e, nest, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "noinline");
  struct emit outer = emit_begin_body(e, nest, c, 0);
  LLVMBasicBlockRef start = LLVMAppendBasicBlockInContext(e->context, nest, "start");
  e->leave = LLVMAppendBasicBlockInContext(e->context, nest, "leave");
  LLVMBuildBr(e->builder, start);
  LLVMPositionBuilderAtEnd(e->builder, start);
  emit_list(e, c->first);
  LLVMBuildBr(e->builder, e->leave);
  emit_end_body(e, &outer);
  LLVMPositionBuilderAtEnd(e->builder, here);
  return nest;
}

void emit_nest(struct emit *e, const struct tir_captures *c) {
  LLVMValueRef nest = emit_shared(e, c->number);
  if (!nest) emit_share(e, c->number, nest = write_nest(e, c));
  LLVMValueRef *args = malloc((c->buffers + c->vars + 1) * sizeof *args);
  if (!args) abort();
  for (uint32_t i = 0; i < c->buffers; i++) args[i] = e->buffers[emit_captured_buffer(e, c, i)];
  for (uint32_t i = 0; i < c->vars; i++) args[c->buffers + i] = e->vars[emit_captured_var(e, c, i)];
  LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(nest), nest, args, c->buffers + c->vars, "");
  free(args);
}

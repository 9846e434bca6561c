/* Statements, and the function around them. */
#include "emit.h"

#include "jit/backend.h"
#include "jit/llvm/machine.h"

#include <stdlib.h>
#include <string.h>

static LLVMBasicBlockRef new_block(struct emit *e, const char *name) {
  return LLVMAppendBasicBlockInContext(e->context, e->function, name);
}

/* ---- Control ---- */

/* Notes something on the loop that a jump goes on with; value: NULL, where the name says it all. Source: LLVM's
 * Language Reference, "llvm.loop"; a loop's node names itself first. */
static void note_loop(struct emit *e, LLVMValueRef back, const char *name, LLVMValueRef value) {
  static const char kind[] = "llvm.loop";
  LLVMMetadataRef pair[] = {LLVMMDStringInContext2(e->context, name, strlen(name)),
                            value ? LLVMValueAsMetadata(value) : NULL};
  LLVMMetadataRef itself = LLVMTemporaryMDNode(e->context, NULL, 0);
  LLVMMetadataRef parts[] = {itself, LLVMMDNodeInContext2(e->context, pair, value ? 2 : 1)};
  LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, parts, 2);
  LLVMMetadataReplaceAllUsesWith(itself, node);
  LLVMSetMetadata(back, LLVMGetMDKindIDInContext(e->context, kind, sizeof kind - 1),
                  LLVMMetadataAsValue(e->context, node));
}

static void forbid_vectors(struct emit *e, LLVMValueRef back) {
  note_loop(e, back, "llvm.loop.vectorize.enable", LLVMConstInt(LLVMInt1TypeInContext(e->context), 0, false));
}

static void emit_loop(struct emit *e, tir_loop loop) {
  assert(tir_is(e->ir, loop, TIR_LOOP));
  struct tir_stmt_node s = *tir_stmt_at(e->ir, loop);
  LLVMBuilderRef w = e->builder;
  LLVMValueRef min = emit_number(e, s.loop.min), extent = emit_number(e, s.loop.extent);
  LLVMValueRef end = LLVMBuildNSWAdd(w, min, extent, "");
  LLVMBasicBlockRef before = LLVMGetInsertBlock(w), body = new_block(e, "body"), after = new_block(e, "after");
  if (tir_is_int(e->ir, s.loop.extent) && tir_at(e->ir, s.loop.extent)->imm > 0)
    LLVMBuildBr(w, body);
  else
    LLVMBuildCondBr(w, LLVMBuildICmp(w, LLVMIntSLT, min, end, ""), body, after);
  LLVMPositionBuilderAtEnd(w, body);
  LLVMValueRef i = LLVMBuildPhi(w, LLVMInt64TypeInContext(e->context), "i");
  e->vars[s.loop.var] = i;
  struct emit_steps *outer = e->steps;
  struct emit_steps steps = {
      .outer = outer, .var = s.loop.var, .loop = loop, .min = min, .before = before, .body = body};
  steps.extent = tir_loop_extent(e->ir, loop);
  e->steps = emit_is_stepped(e, loop) ? &steps : NULL;
  steps.sums = e->steps && emit_is_sum(e, loop);
  e->streamed_count = 0;
  emit_list(e, s.first[TIR_BODY]);
  emit_fetch_ahead(e);
  e->steps = outer;
  e->vars[s.loop.var] = NULL;
  e->streamed_count = 0;
  emit_advance(e, &steps);
  LLVMValueRef next = LLVMBuildNSWAdd(w, i, emit_int64(e, 1), "");
  LLVMValueRef more = LLVMBuildICmp(w, LLVMIntSLT, next, end, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(w);
  LLVMValueRef back = LLVMBuildCondBr(w, more, body, after);
  if (jit_stores_come_back(e->ir, loop)) forbid_vectors(e, back);
  LLVMAddIncoming(i, (LLVMValueRef[]){min, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
  LLVMPositionBuilderAtEnd(w, after);
}

/* The loop that is all that a loop does, if both run a constant number of times; TIR_NONE: there is none. */
static tir_loop only_loop(const struct tir *ir, tir_loop loop) {
  tir_stmt s = tir_stmt_at(ir, loop)->first[TIR_BODY];
  bool only = s && !tir_stmt_at(ir, s)->next && tir_is(ir, s, TIR_LOOP);
  return only && tir_loop_extent(ir, loop) > 0 && tir_loop_extent(ir, s) > 0 ? s : TIR_NONE;
}

/* Loops that do nothing but the next one, as one: LLVM keeps tiles in registers over one loop alone, which it leaves as
 * it is. Each variable is what is left of the number of the iteration once those inside have had theirs. */
static void emit_as_one(struct emit *e, tir_loop outer) {
  LLVMBuilderRef w = e->builder;
  int64_t count = 1;
  tir_loop inner = TIR_NONE;
  for (tir_loop l = outer; l; l = only_loop(e->ir, l)) inner = l, count *= tir_loop_extent(e->ir, l);
  LLVMBasicBlockRef before = LLVMGetInsertBlock(w), body = new_block(e, "body"), after = new_block(e, "after");
  LLVMBuildBr(w, body);
  LLVMPositionBuilderAtEnd(w, body);
  LLVMValueRef i = LLVMBuildPhi(w, LLVMInt64TypeInContext(e->context), "i"), left = i;
  for (tir_loop l = inner;; l = tir_stmt_at(e->ir, l)->parent) {
    struct tir_stmt_node s = *tir_stmt_at(e->ir, l);
    LLVMValueRef extent = emit_int64(e, tir_loop_extent(e->ir, l));
    LLVMValueRef own = l == outer ? left : LLVMBuildURem(w, left, extent, "");
    e->vars[s.loop.var] = LLVMBuildNSWAdd(w, own, emit_number(e, s.loop.min), "");
    if (l == outer) break;
    left = LLVMBuildUDiv(w, left, extent, "");
  }
  emit_list(e, tir_stmt_at(e->ir, inner)->first[TIR_BODY]);
  for (tir_loop l = outer; l; l = only_loop(e->ir, l)) e->vars[tir_stmt_at(e->ir, l)->loop.var] = NULL;
  LLVMValueRef next = LLVMBuildNSWAdd(w, i, emit_int64(e, 1), "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(w);
  LLVMValueRef more = LLVMBuildICmp(w, LLVMIntSLT, next, emit_int64(e, count), "");
  note_loop(e, LLVMBuildCondBr(w, more, body, after), "llvm.loop.unroll.disable", NULL);
  LLVMAddIncoming(i, (LLVMValueRef[]){emit_int64(e, 0), next}, (LLVMBasicBlockRef[]){before, latch}, 2);
  LLVMPositionBuilderAtEnd(w, after);
}

static void emit_if(struct emit *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_IF));
  struct tir_stmt_node s = *tir_stmt_at(e->ir, at);
  LLVMBasicBlockRef then = new_block(e, "then"), otherwise = s.first[TIR_ELSE] ? new_block(e, "else") : NULL;
  LLVMBasicBlockRef join = new_block(e, "join");
  LLVMBuildCondBr(e->builder, emit_expr(e, s.test.condition), then, otherwise ? otherwise : join);
  LLVMPositionBuilderAtEnd(e->builder, then);
  emit_list(e, s.first[TIR_BODY]);
  LLVMBuildBr(e->builder, join);
  if (otherwise) {
    LLVMPositionBuilderAtEnd(e->builder, otherwise);
    emit_list(e, s.first[TIR_ELSE]);
    LLVMBuildBr(e->builder, join);
  }
  LLVMPositionBuilderAtEnd(e->builder, join);
}

static void emit_while(struct emit *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_WHILE));
  struct tir_stmt_node s = *tir_stmt_at(e->ir, at);
  LLVMBasicBlockRef head = new_block(e, "while"), body = new_block(e, "body"), after = new_block(e, "after");
  LLVMBuildBr(e->builder, head);
  LLVMPositionBuilderAtEnd(e->builder, head);
  LLVMBuildCondBr(e->builder, emit_expr(e, s.test.condition), body, after);
  LLVMPositionBuilderAtEnd(e->builder, body);
  emit_list(e, s.first[TIR_BODY]);
  LLVMValueRef back = LLVMBuildBr(e->builder, head);
  if (jit_stores_come_back(e->ir, at)) forbid_vectors(e, back);
  LLVMPositionBuilderAtEnd(e->builder, after);
}

static void emit_assert(struct emit *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_ASSERT));
  LLVMBasicBlockRef bad = new_block(e, "bad"), good = new_block(e, "good");
  LLVMBuildCondBr(e->builder, emit_expr(e, tir_stmt_at(e->ir, at)->test.condition), good, bad);
  LLVMPositionBuilderAtEnd(e->builder, bad);
  LLVMBuildStore(e->builder, LLVMConstInt(LLVMInt32TypeInContext(e->context), JIT_STATUS_ASSERTION, false), e->status);
  LLVMBuildBr(e->builder, e->leave);
  LLVMPositionBuilderAtEnd(e->builder, good);
}

/* ---- Allocations: the workspace is the caller's; what is not laid out in it is small, and lies on the stack ---- */

static void emit_allocation(struct emit *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_ALLOC));
  tir_buffer buffer = tir_stmt_at(e->ir, at)->alloc.buffer;
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, buffer);
  uint64_t bytes = tir_allocation_bytes(e->ir, buffer);
  if (!bytes) {
    emit_refusal(e, "buffer %s: its size is no positive constant, or too large", tir_text(e->ir, b->name));
    return;
  }
  if (buffer == tir_workspace_of(e->ir, e->func).buffer) {
    e->buffers[buffer] = e->workspace;
    return;
  }
  LLVMTypeRef element = tir_type_code(b->type) == TIR_BOOL ? LLVMInt8TypeInContext(e->context) : emit_type(e, b->type);
  e->buffers[buffer] = emit_alloca(e, element, bytes / emit_type_bytes(b->type), 64);
}

static void emit_declaration(struct emit *e, tir_stmt at) {
  tir_buffer buffer = tir_stmt_at(e->ir, at)->alloc.buffer;
  tir_expr data = tir_buffer_at(e->ir, buffer)->data;
  if (data)
    e->buffers[buffer] = emit_expr(e, data);
  else
    emit_allocation(e, at);
}

static void emit_binding(struct emit *e, tir_stmt at) {
  tir_var v = tir_as(e->ir, at, TIR_BIND)->bind.var;
  e->vars[v] = emit_bound(e, tir_as(e->ir, at, TIR_BIND)->bind.value);
}

static void emit_nontemporal(struct emit *e, tir_stmt attr) {
  e->aligned = tir_nontemporal_alignment(e->ir, attr);
  emit_list(e, tir_as(e->ir, attr, TIR_ATTR)->first[TIR_BODY]);
  e->aligned = 0;
}

static void emit_statement(struct emit *e, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(e->ir, s);
  struct tir_captures captures;
  const tir_expr *held;
  uint32_t count;
  switch (n->kind) {
  case TIR_LOOP: (e->tiles && only_loop(e->ir, s) ? emit_as_one : emit_loop)(e, s); break;
  case TIR_STORE: emit_store(e, s); break;
  case TIR_IF: emit_if(e, s); break;
  case TIR_WHILE: emit_while(e, s); break;
  case TIR_ASSERT: emit_assert(e, s); break;
  case TIR_BIND: emit_binding(e, s); break;
  case TIR_EVALUATE: emit_expr(e, n->evaluate.value); break;
  case TIR_ALLOC: emit_allocation(e, s); break;
  case TIR_DECLARE: emit_declaration(e, s); break;
  case TIR_ATTR:
    if (tir_captures_of(e->ir, s, &captures))
      (captures.loop ? emit_parallel : emit_nest)(e, &captures);
    else if (tir_nontemporal_alignment(e->ir, s))
      emit_nontemporal(e, s);
    else if ((count = tir_accumulators_of(e->ir, s, &held)))
      (jit_target_is_x86(e->target) ? emit_held_tiles : emit_sme_held)(e, s, held, count);
    else if (!emit_instruction(e, s))
      emit_list(e, n->first[TIR_BODY]);
    break;
  default: emit_refusal(e, "a block was not lowered");
  }
}

void emit_list(struct emit *e, tir_stmt first) {
  for (tir_stmt s = first; s && !e->failed; s = tir_stmt_at(e->ir, s)->next) {
    tir_stmt other = emit_other_half(e, s);
    if (other)
      emit_store_halves(e, s, other), s = other;
    else
      emit_statement(e, s);
  }
}

/* ---- Functions ---- */

static LLVMValueRef load_argument(struct emit *e, LLVMValueRef args, uint32_t i) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0);
  LLVMValueRef at = emit_int64(e, i);
  return LLVMBuildLoad2(e->builder, pointer, LLVMBuildInBoundsGEP2(e->builder, pointer, args, &at, 1, ""), "");
}

/* The inner function has a pointer a buffer, noalias, and a value a scalar: what promises about aliasing hang on. */
static LLVMValueRef declare_inner(struct emit *e, const char *name) {
  const struct tir_func_node *f = &e->ir->funcs.at[e->func];
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i64 = LLVMInt64TypeInContext(e->context);
  LLVMTypeRef *types = malloc((f->params.count + 2) * sizeof *types);
  if (!types) abort();
  for (uint32_t i = 0; i < f->params.count; i++) {
    const struct tir_param *p = &e->ir->params.at[f->params.first + i];
    tir_type t = p->buffer ? TIR_T_HANDLE : e->ir->vars.at[p->var].type;
    types[i] = tir_type_is_int(t) ? i64 : emit_type(e, t);
  }
  types[f->params.count] = types[f->params.count + 1] = pointer;
  LLVMTypeRef signature = LLVMFunctionType(LLVMVoidTypeInContext(e->context), types, f->params.count + 2, false);
  LLVMValueRef inner = LLVMAddFunction(e->module, name, signature);
  LLVMSetLinkage(inner, LLVMInternalLinkage);
  for (uint32_t i = 0; i < f->params.count + 2; i++)
    if (types[i] == pointer) emit_add_attribute(e, inner, i + 1, "noalias");
  free(types);
  return inner;
}

static void write_inner(struct emit *e, LLVMValueRef inner) {
  const struct tir_func_node *f = &e->ir->funcs.at[e->func];
  e->function = inner;
  e->entry = new_block(e, "entry");
  LLVMBasicBlockRef start = new_block(e, "start");
  e->leave = new_block(e, "leave");
  LLVMPositionBuilderAtEnd(e->builder, e->entry);
  LLVMBuildBr(e->builder, start);
  LLVMPositionBuilderAtEnd(e->builder, start);
  for (uint32_t i = 0; i < f->params.count; i++) {
    const struct tir_param *p = &e->ir->params.at[f->params.first + i];
    if (p->buffer) e->buffers[p->buffer] = LLVMGetParam(inner, i);
    if (p->var) e->vars[p->var] = LLVMGetParam(inner, i);
  }
  e->status = LLVMGetParam(inner, f->params.count);
  e->workspace = LLVMGetParam(inner, f->params.count + 1);
  emit_list(e, tir_stmt_at(e->ir, f->body)->first[TIR_BODY]);
  LLVMBuildBr(e->builder, e->leave);
  LLVMPositionBuilderAtEnd(e->builder, e->leave);
  emit_fence(e);
  LLVMBuildRetVoid(e->builder);
}

static LLVMValueRef scalar_argument(struct emit *e, LLVMValueRef at, tir_type type) {
  LLVMValueRef value = LLVMBuildLoad2(e->builder, emit_type(e, type), at, "");
  return tir_type_is_int(type) ? emit_cast(e, value, type, TIR_T_I64) : value;
}

static LLVMValueRef declare_entry(struct emit *e, const char *name) {
  LLVMTypeRef pointer = LLVMPointerTypeInContext(e->context, 0), i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef known = LLVMGetNamedFunction(e->module, name);
  return known ? known
               : LLVMAddFunction(e->module, name, LLVMFunctionType(i32, (LLVMTypeRef[]){pointer, pointer}, 2, false));
}

/* Where the system refuses tiles, the entry does without them, or says so. */
static void return_without_tiles(struct emit *e, LLVMValueRef entry) {
  LLVMBasicBlockRef without = LLVMAppendBasicBlockInContext(e->context, entry, "without");
  LLVMBasicBlockRef with = LLVMAppendBasicBlockInContext(e->context, entry, "with");
  LLVMValueRef refused = jit_target_is_x86(e->target) ? emit_tile_permission(e, entry) : emit_sme_refusal(e);
  LLVMBuildCondBr(e->builder, refused, without, with);
  LLVMPositionBuilderAtEnd(e->builder, without);
  LLVMValueRef result = LLVMConstInt(LLVMInt32TypeInContext(e->context), JIT_STATUS_NO_TILES, false);
  if (e->plain) {
    LLVMValueRef args[] = {LLVMGetParam(entry, 0), LLVMGetParam(entry, 1)};
    result = LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(entry), declare_entry(e, e->plain), args, 2, "");
  }
  LLVMBuildRet(e->builder, result);
  LLVMPositionBuilderAtEnd(e->builder, with);
}

/* int32_t NAME(void **args, void *workspace) */
static void write_entry(struct emit *e, const char *name, LLVMValueRef inner) {
  const struct tir_func_node *f = &e->ir->funcs.at[e->func];
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef entry = declare_entry(e, name);
  LLVMPositionBuilderAtEnd(e->builder, LLVMAppendBasicBlockInContext(e->context, entry, "entry"));
  LLVMValueRef status = LLVMBuildAlloca(e->builder, i32, "status");
  LLVMBuildStore(e->builder, LLVMConstNull(i32), status);
  LLVMValueRef *args = malloc((f->params.count + 2) * sizeof *args);
  if (!args) abort();
  for (uint32_t i = 0; i < f->params.count; i++) {
    const struct tir_param *p = &e->ir->params.at[f->params.first + i];
    args[i] = load_argument(e, LLVMGetParam(entry, 0), i);
    if (!p->buffer) args[i] = scalar_argument(e, args[i], e->ir->vars.at[p->var].type);
  }
  args[f->params.count] = status;
  args[f->params.count + 1] = LLVMGetParam(entry, 1);
  if (e->uses_tiles) return_without_tiles(e, entry);
  LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(inner), inner, args, f->params.count + 2, "");
  free(args);
  LLVMBuildRet(e->builder, LLVMBuildLoad2(e->builder, i32, status, ""));
}

bool jit_emit(LLVMModuleRef module, const struct tir *ir, tir_func f, const char *name, const char *plain,
              const struct jit_target *target, const struct jit_options *options, ms_error *err) {
  assert(tir_is_func(ir, f) && name && target);
  struct emit e = {.ir = ir,
                   .func = f,
                   .target = target,
                   .fast_math = !(options && options->no_fast_math),
                   .module = module,
                   .plain = plain,
                   .err = err};
  e.context = LLVMGetModuleContext(module);
  e.builder = LLVMCreateBuilderInContext(e.context);
  e.vars = calloc(ir->vars.count, sizeof *e.vars);
  e.lets = calloc(ir->vars.count, sizeof *e.lets);
  e.buffers = calloc(ir->buffers.count, sizeof *e.buffers);
  e.of_buffer = calloc(ir->buffers.count, sizeof *e.of_buffer);
  e.of_var = calloc(ir->vars.count, sizeof *e.of_var);
  if (!e.vars || !e.lets || !e.buffers || !e.of_buffer || !e.of_var) abort();
  emit_find_facts(&e);
  char inner_name[256];
  snprintf(inner_name, sizeof inner_name, "%s.inner", name);
  LLVMValueRef inner = declare_inner(&e, inner_name);
  write_inner(&e, inner);
  if (!e.failed) write_entry(&e, name, inner);
  LLVMDisposeBuilder(e.builder);
  free(e.vars);
  free(e.lets);
  free(e.buffers);
  free(e.of_buffer);
  free(e.of_var);
  free(e.shared);
  return !e.failed;
}

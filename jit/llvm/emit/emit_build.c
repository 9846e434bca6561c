/* What all that is emitted is built with: refusals, places on the stack, attributes, calls of intrinsics. */
#include "emit.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

LLVMValueRef emit_refusal(struct emit *e, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!e->failed) ms_vfail(e->err, MS_NOT_COMPILABLE, format, args);
  va_end(args);
  e->failed = true;
  return LLVMGetPoison(LLVMInt32TypeInContext(e->context));
}

LLVMValueRef emit_alloca(struct emit *e, LLVMTypeRef type, uint64_t count, unsigned align) {
  assert(count > 0);
  LLVMBasicBlockRef here = LLVMGetInsertBlock(e->builder);
  LLVMPositionBuilder(e->builder, e->entry, LLVMGetFirstInstruction(e->entry));
  LLVMTypeRef array = count == 1 ? type : LLVMArrayType2(type, count);
  LLVMValueRef cell = LLVMBuildAlloca(e->builder, array, "");
  LLVMSetAlignment(cell, align);
  LLVMPositionBuilderAtEnd(e->builder, here);
  return cell;
}

void emit_add_attribute(struct emit *e, LLVMValueRef f, unsigned index, const char *name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  LLVMAddAttributeAtIndex(f, index, LLVMCreateEnumAttribute(e->context, kind, 0));
}

LLVMValueRef emit_intrinsic(struct emit *e, const char *name, LLVMTypeRef overload, LLVMValueRef *args,
                            unsigned count) {
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID(name, strlen(name)), &overload, 1);
  return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, count, "");
}

LLVMValueRef emit_machine_intrinsic(struct emit *e, const char *name, LLVMValueRef *args, unsigned count) {
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID(name, strlen(name)), NULL, 0);
  return LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, count, "");
}

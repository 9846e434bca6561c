/* Clamps that LLVM must not merge.
 *
 * A clamp is `select (fcmp x, y), x, y`: the larger or the smaller of two numbers. Where y is a constant and x is NaN,
 * or a zero unlike y's, by its order it gives x, or it gives y. The instcombine of LLVM 19.1 takes a clamp of a clamp
 * to the same constant for the inner one (InstCombineSelect.cpp, foldSPFofSPF: max(max(x, y), y) is max(x, y)), though
 * the inner may give NaN where the outer gives y. So what the first kind gives passes through llvm.arithmetic.fence,
 * through which instcombine does not look, where the module has the second kind, too. That the one is the other's
 * operand is not asked, nor that y is a constant yet: instcombine itself forwards stores to loads, and follows branches
 * whose conditions are constant.
 *
 * Source: LLVM 19.1.7, ValueTracking.cpp, matchDecomposedSelectPattern: which selects are taken for clamps. */
#include "clamps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define FENCE "llvm.arithmetic.fence"

struct clamp {
  LLVMValueRef select, constant;  /* NULL: no operand is one so far, and either may become one */
  bool larger;                    /* else the smaller */
  bool keeps_nan, gives_constant; /* for NaN, it may */
};

struct clamps {
  struct clamp *at;
  size_t count, room;
};

static bool is_more(LLVMRealPredicate p) {
  return p == LLVMRealOGT || p == LLVMRealOGE || p == LLVMRealUGT || p == LLVMRealUGE;
}

static bool is_less(LLVMRealPredicate p) {
  return p == LLVMRealOLT || p == LLVMRealOLE || p == LLVMRealULT || p == LLVMRealULE;
}

static bool is_unordered(LLVMRealPredicate p) {
  return p == LLVMRealUGT || p == LLVMRealUGE || p == LLVMRealULT || p == LLVMRealULE;
}

/* Whether two constants compare as equal, lane by lane: +0 and -0 do, and numbers of unlike types may. */
static bool same_constant(LLVMValueRef a, LLVMValueRef b) {
  LLVMBool inexact;
  if (LLVMIsAConstantFP(a) && LLVMIsAConstantFP(b))
    return LLVMConstRealGetDouble(a, &inexact) == LLVMConstRealGetDouble(b, &inexact);
  bool vectors =
      LLVMGetTypeKind(LLVMTypeOf(a)) == LLVMVectorTypeKind && LLVMGetTypeKind(LLVMTypeOf(b)) == LLVMVectorTypeKind;
  if (!vectors) return a == b;
  for (unsigned i = 0; i < LLVMGetVectorSize(LLVMTypeOf(a)); i++) {
    LLVMValueRef x = LLVMGetAggregateElement(a, i), y = LLVMGetAggregateElement(b, i);
    if (!x || !y || !same_constant(x, y)) return false;
  }
  return true;
}

/* What is compared may be a wider form of what is chosen. */
static bool same(LLVMValueRef a, LLVMValueRef b) {
  bool widened = LLVMIsAInstruction(b) && LLVMGetInstructionOpcode(b) == LLVMFPExt;
  return a == b || (widened && a == LLVMGetOperand(b, 0)) ||
         (LLVMIsConstant(a) && LLVMIsConstant(b) && same_constant(a, b));
}

static bool is_fcmp(LLVMValueRef v) { return LLVMIsAInstruction(v) && LLVMGetInstructionOpcode(v) == LLVMFCmp; }

/* The comparison that chooses; of a maximum that leaves NaN out it is the first half of the condition. */
static LLVMValueRef comparison_of(LLVMValueRef condition, bool *leaves_nan_out) {
  *leaves_nan_out = LLVMIsAInstruction(condition) && LLVMGetInstructionOpcode(condition) == LLVMOr;
  LLVMValueRef by = *leaves_nan_out ? LLVMGetOperand(condition, 0) : condition;
  if (*leaves_nan_out && is_fcmp(by) && LLVMGetFCmpPredicate(by) == LLVMRealUNO) by = LLVMGetOperand(condition, 1);
  return is_fcmp(by) ? by : NULL;
}

/* Whether the instruction is a clamp, and which. */
static bool read_clamp(LLVMValueRef i, struct clamp *clamp) {
  if (LLVMGetInstructionOpcode(i) != LLVMSelect) return false;
  bool leaves_nan_out;
  LLVMValueRef by = comparison_of(LLVMGetOperand(i, 0), &leaves_nan_out);
  if (!by) return false;
  LLVMValueRef chosen = LLVMGetOperand(i, 1), other = LLVMGetOperand(i, 2);
  LLVMValueRef left = LLVMGetOperand(by, 0), right = LLVMGetOperand(by, 1);
  LLVMRealPredicate p = LLVMGetFCmpPredicate(by);
  bool straight = same(chosen, left) && same(other, right);
  if (!straight && !(same(chosen, right) && same(other, left))) return false;
  if (!is_more(p) && !is_less(p)) return false;
  LLVMValueRef constant = LLVMIsConstant(chosen) ? chosen : LLVMIsConstant(other) ? other : NULL;
  bool gives_constant = leaves_nan_out || LLVMIsConstant(is_unordered(p) ? chosen : other);
  *clamp = (struct clamp){.select = i,
                          .constant = constant,
                          .larger = is_more(p) == straight,
                          .keeps_nan = !gives_constant,
                          .gives_constant = gives_constant || !constant};
  return true;
}

static void add(struct clamps *all, struct clamp clamp) {
  if (all->count == all->room) {
    all->room = all->room ? 2 * all->room : 16;
    all->at = realloc(all->at, all->room * sizeof *all->at);
    assert(all->at);
  }
  all->at[all->count++] = clamp;
}

/* The module's clamps, in its order. */
static struct clamps clamps_of(LLVMModuleRef module) {
  struct clamps all = {0};
  struct clamp clamp;
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
      for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
        if (read_clamp(i, &clamp)) add(&all, clamp);
  return all;
}

/* Whether one that gives the constant for NaN may be merged with the number at, which may keep NaN. */
static bool may_be_merged(const struct clamps *all, size_t at) {
  const struct clamp *c = &all->at[at];
  if (!c->keeps_nan) return false;
  for (size_t i = 0; i < all->count; i++) {
    const struct clamp *other = &all->at[i];
    bool one = !c->constant || !other->constant || same_constant(other->constant, c->constant);
    if (i != at && other->gives_constant && other->larger == c->larger && one) return true;
  }
  return false;
}

static void hide(LLVMModuleRef module, LLVMBuilderRef builder, LLVMValueRef value, unsigned id) {
  LLVMTypeRef type = LLVMTypeOf(value);
  LLVMValueRef fence = LLVMGetIntrinsicDeclaration(module, id, &type, 1), none = LLVMGetPoison(type);
  LLVMPositionBuilderBefore(builder, LLVMGetNextInstruction(value));
  LLVMValueRef call = LLVMBuildCall2(builder, LLVMGlobalGetValueType(fence), fence, &none, 1, "");
  LLVMReplaceAllUsesWith(value, call);
  LLVMSetOperand(call, 0, value);
}

bool jit_hide_clamps(LLVMModuleRef module) {
  assert(module);
  struct clamps all = clamps_of(module);
  unsigned id = LLVMLookupIntrinsicID(FENCE, strlen(FENCE));
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(module));
  bool any = false;
  for (size_t i = 0; i < all.count; i++) {
    if (!may_be_merged(&all, i)) continue;
    hide(module, builder, all.at[i].select, id);
    any = true;
  }
  LLVMDisposeBuilder(builder);
  free(all.at);
  return any;
}

static void show_in(LLVMBasicBlockRef block, unsigned id) {
  for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
    next = LLVMGetNextInstruction(i);
    LLVMValueRef called = LLVMIsACallInst(i) ? LLVMGetCalledValue(i) : NULL;
    if (!called || !LLVMIsAFunction(called) || LLVMGetIntrinsicID(called) != id) continue;
    LLVMReplaceAllUsesWith(i, LLVMGetOperand(i, 0));
    LLVMInstructionEraseFromParent(i);
  }
}

void jit_show_clamps(LLVMModuleRef module) {
  assert(module);
  unsigned id = LLVMLookupIntrinsicID(FENCE, strlen(FENCE));
  for (LLVMValueRef f = LLVMGetFirstFunction(module); f; f = LLVMGetNextFunction(f))
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) show_in(b, id);
  for (LLVMValueRef f = LLVMGetFirstFunction(module), next; f; f = next) {
    next = LLVMGetNextFunction(f);
    if (LLVMGetIntrinsicID(f) == id) LLVMDeleteFunction(f);
  }
}

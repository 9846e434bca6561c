/* Expressions. */
#include "emit.h"
#include "jit/llvm/machine.h"
#include "jit/unknown.h"

#include <string.h>

static bool is_constant(const struct emit *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  return n->kind == TIR_FLOAT_IMM || (n->kind == TIR_BROADCAST && is_constant(e, n->a));
}

/* A step of an element's update by itself, as a sum has it. */
static bool is_update(const struct emit *e, const struct tir_expr_node *n) {
  if (!e->stored || (n->kind != TIR_ADD && n->kind != TIR_SUB && n->kind != TIR_MUL)) return false;
  if (is_constant(e, n->a) || is_constant(e, n->b)) return false;
  return tir_uses_buffer(e->ir, n->a, e->stored) || tir_uses_buffer(e->ir, n->b, e->stored);
}

/* A vector of a buffer that registers hold, as accumulators that were apart until here: LLVM would join the sums, and
 * each step would wait for the one before. */
static bool is_accumulator(const struct emit *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (n->kind != TIR_LOAD || n->ref == e->stored || tir_type_lanes(n->type) < 2) return false;
  uint64_t bytes = (uint64_t)e->target->vector_registers * (uint64_t)e->target->vector_bits / 8;
  return tir_allocation_bytes(e->ir, n->ref) <= bytes;
}

/* Products are fused with sums. Only sums are reordered, and may lose the sign of a zero: of other arithmetic LLVM
 * would leave out what infinities, NaN and -0 are kept by, as (x + y) - x and x + 0 do. */
static LLVMValueRef with_fast_math(const struct emit *e, const struct tir_expr_node *n, LLVMValueRef value) {
  unsigned flags = LLVMFastMathAllowContract;
  bool joins = n->kind == TIR_ADD && (is_accumulator(e, n->a) || is_accumulator(e, n->b));
  if (is_update(e, n)) flags |= (joins ? 0 : LLVMFastMathAllowReassoc) | LLVMFastMathNoSignedZeros;
  if (n->kind == TIR_MIN || n->kind == TIR_MAX) flags |= LLVMFastMathNoSignedZeros;
  if (LLVMIsAInstruction(value) && LLVMCanValueUseFastMathFlags(value)) LLVMSetFastMathFlags(value, flags);
  return value;
}

static LLVMValueRef refuse_variable(struct emit *e, tir_var v) {
  char text[JIT_UNKNOWN_TEXT];
  return emit_refusal(e, "%s", jit_unknown_variable(e->ir, e->func, v, text));
}

/* ---- Index arithmetic, 64 bits ---- */

static bool is_non_negative_division(const struct emit *e, const struct tir_expr_node *n) {
  return tir_at(e->ir, n->a)->lo >= 0 && tir_at(e->ir, n->b)->lo > 0;
}

/* Of what is not negative, division without a sign takes less: where the divisor is a power of two, a shift or a mask.
 */
static LLVMValueRef division(struct emit *e, const struct tir_expr_node *n, LLVMValueRef a, LLVMValueRef b) {
  assert(a && b && (n->kind == TIR_DIV || n->kind == TIR_MOD));
  LLVMBuilderRef w = e->builder;
  if (tir_type_code(n->type) != TIR_INT || is_non_negative_division(e, n))
    return n->kind == TIR_MOD ? LLVMBuildURem(w, a, b, "") : LLVMBuildUDiv(w, a, b, "");
  return n->kind == TIR_MOD ? LLVMBuildSRem(w, a, b, "") : LLVMBuildSDiv(w, a, b, "");
}

/* What arithmetic of float32 gave is no widened bfloat16. */
static bool is_computed(LLVMValueRef v) {
  if (!LLVMIsAInstruction(v)) return false;
  LLVMOpcode op = LLVMGetInstructionOpcode(v);
  return op == LLVMFMul || op == LLVMFAdd || op == LLVMFSub || op == LLVMFDiv;
}

/* LLVM narrows its functions of widened bfloat16, to round what needs no rounding by a routine that few have. */
static bool has_bfloat(const struct emit *e) {
  for (uint32_t b = 1; b < e->ir->buffers.count; b++)
    if (tir_type_code(e->ir->buffers.at[b].type) == TIR_BFLOAT) return true;
  return false;
}

/* NaN is left out, and comes of two only; of zeros of unlike signs either. Source: IEEE 754-2019, maximumNumber. */
static LLVMValueRef float_extreme(struct emit *e, bool least, LLVMValueRef a, LLVMValueRef b, tir_type type) {
  bool computed = is_computed(a) || is_computed(b);
  if (tir_type_code(type) == TIR_FLOAT && tir_type_bits(type) >= 32 && (computed || !has_bfloat(e))) {
    LLVMValueRef args[] = {a, b};
    LLVMValueRef value = emit_intrinsic(e, least ? "llvm.minnum" : "llvm.maxnum", LLVMTypeOf(a), args, 2);
    if (LLVMIsAInstruction(value)) LLVMSetFastMathFlags(value, LLVMFastMathNoSignedZeros);
    return value;
  }
  LLVMValueRef before = LLVMBuildFCmp(e->builder, least ? LLVMRealOLT : LLVMRealOGT, a, b, "");
  LLVMValueRef none = LLVMBuildFCmp(e->builder, LLVMRealUNO, b, b, "");
  return LLVMBuildSelect(e->builder, LLVMBuildOr(e->builder, before, none, ""), a, b, "");
}

/* Of two, the second of which is never NaN: what x86 has an instruction for. */
static LLVMValueRef extreme_of_number(struct emit *e, bool least, LLVMValueRef a, LLVMValueRef number) {
  LLVMValueRef before = LLVMBuildFCmp(e->builder, least ? LLVMRealOLT : LLVMRealOGT, a, number, "");
  return LLVMBuildSelect(e->builder, before, a, number, "");
}

static LLVMValueRef extreme(struct emit *e, bool least, LLVMValueRef a, LLVMValueRef b, tir_type type) {
  assert(a && b);
  LLVMValueRef before;
  if (tir_type_is_float(type)) return float_extreme(e, least, a, b, type);
  if (tir_type_code(type) == TIR_INT)
    before = LLVMBuildICmp(e->builder, least ? LLVMIntSLT : LLVMIntSGT, a, b, "");
  else
    before = LLVMBuildICmp(e->builder, least ? LLVMIntULT : LLVMIntUGT, a, b, "");
  return LLVMBuildSelect(e->builder, before, a, b, "");
}

LLVMValueRef emit_number(struct emit *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  bool index = tir_type_is_int(n->type) && tir_type_lanes(n->type) == 1 && !(n->flags & TIR_OF_DATA);
  bool bounded = n->lo > INT64_MIN && n->hi < INT64_MAX;
  return index && (bounded || n->kind == TIR_VAR) ? emit_index(e, x)
                                                  : emit_cast(e, emit_expr(e, x), n->type, TIR_T_I64);
}

LLVMValueRef emit_bound(struct emit *e, tir_expr value) {
  tir_type type = tir_type_of(e->ir, value);
  return tir_type_is_int(type) && tir_type_lanes(type) == 1 ? emit_number(e, value) : emit_expr(e, value);
}

LLVMValueRef emit_index(struct emit *e, tir_expr x) {
  assert(x && x < e->ir->exprs.count);
  const struct tir_expr_node *n = tir_at(e->ir, x);
  LLVMBuilderRef w = e->builder;
  bool index = tir_type_code(n->type) == TIR_INT && tir_type_bits(n->type) >= 32 && tir_type_lanes(n->type) == 1;
  if (index) {
    switch (n->kind) {
    case TIR_INT_IMM: return emit_int64(e, n->imm);
    case TIR_VAR:
      if (!e->vars[n->ref]) return refuse_variable(e, n->ref);
      return e->vars[n->ref];
    case TIR_ADD: return LLVMBuildNSWAdd(w, emit_index(e, n->a), emit_index(e, n->b), "");
    case TIR_SUB: return LLVMBuildNSWSub(w, emit_index(e, n->a), emit_index(e, n->b), "");
    case TIR_MUL: return LLVMBuildNSWMul(w, emit_index(e, n->a), emit_index(e, n->b), "");
    case TIR_MIN:
    case TIR_MAX: return extreme(e, n->kind == TIR_MIN, emit_number(e, n->a), emit_number(e, n->b), TIR_T_I64);
    case TIR_DIV:
    case TIR_MOD: {
      LLVMValueRef a = emit_number(e, n->a);
      return division(e, n, a, emit_number(e, n->b));
    }
    default: break;
    }
  }
  return emit_cast(e, emit_expr(e, x), n->type, TIR_T_I64);
}

/* ---- Data ---- */

/* Of a constant LLVM knows by itself that it is never NaN. */
static bool is_loaded_number(const struct emit *e, tir_expr x) {
  return (tir_at(e->ir, x)->flags & TIR_HAS_LOAD) && (emit_facts(e, x) & EMIT_NUMBER);
}

static LLVMValueRef arithmetic(struct emit *e, const struct tir_expr_node *n, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef w = e->builder;
  bool real = tir_type_is_float(n->type);
  switch (n->kind) {
  case TIR_ADD: return real ? LLVMBuildFAdd(w, a, b, "") : LLVMBuildAdd(w, a, b, "");
  case TIR_SUB: return real ? LLVMBuildFSub(w, a, b, "") : LLVMBuildSub(w, a, b, "");
  case TIR_MUL: return real ? LLVMBuildFMul(w, a, b, "") : LLVMBuildMul(w, a, b, "");
  case TIR_DIV: return real ? LLVMBuildFDiv(w, a, b, "") : division(e, n, a, b);
  case TIR_MOD: return real ? LLVMBuildFRem(w, a, b, "") : division(e, n, a, b);
  default: break;
  }
  assert(n->kind == TIR_MIN || n->kind == TIR_MAX);
  bool least = n->kind == TIR_MIN;
  if (real && jit_target_is_x86(e->target)) {
    if (is_loaded_number(e, n->b)) return extreme_of_number(e, least, a, b);
    if (is_loaded_number(e, n->a)) return extreme_of_number(e, least, b, a);
  }
  return extreme(e, least, a, b, n->type);
}

static LLVMValueRef comparison(struct emit *e, const struct tir_expr_node *n, LLVMValueRef a, LLVMValueRef b) {
  assert(n->kind >= TIR_EQ && n->kind <= TIR_GE);
  static const LLVMRealPredicate reals[] = {LLVMRealOEQ, LLVMRealUNE, LLVMRealOLT,
                                            LLVMRealOLE, LLVMRealOGT, LLVMRealOGE};
  static const LLVMIntPredicate ints[] = {LLVMIntEQ, LLVMIntNE, LLVMIntSLT, LLVMIntSLE, LLVMIntSGT, LLVMIntSGE};
  static const LLVMIntPredicate uints[] = {LLVMIntEQ, LLVMIntNE, LLVMIntULT, LLVMIntULE, LLVMIntUGT, LLVMIntUGE};
  tir_type type = tir_type_of(e->ir, n->a);
  int i = n->kind - TIR_EQ;
  if (tir_type_is_float(type)) return LLVMBuildFCmp(e->builder, reals[i], a, b, "");
  return LLVMBuildICmp(e->builder, tir_type_code(type) == TIR_INT ? ints[i] : uints[i], a, b, "");
}

/* ---- What is computed only where it is wanted ---- */

struct traps {
  const struct tir *ir;
  bool found;
};

/* A division of integers by what may be zero; a load that may be outside of its buffer. */
static bool find_trap(void *data, tir_expr x) {
  struct traps *t = data;
  const struct tir_expr_node *n = tir_at(t->ir, x);
  t->found |= tir_division_may_trap(t->ir, n);
  if (n->kind == TIR_LOAD && n->count == 1 && tir_type_lanes(n->type) == 1) {
    const struct tir_expr_node *index = tir_at(t->ir, tir_operands(t->ir, n->operands)[0]);
    const struct tir_expr_node *size = tir_at(t->ir, t->ir->operands.at[tir_buffer_at(t->ir, n->ref)->shape]);
    t->found |= (index->flags & TIR_OF_DATA) || index->lo < 0 || size->kind != TIR_INT_IMM || index->hi >= size->imm;
  }
  return !t->found;
}

static bool may_trap(const struct emit *e, tir_expr x) {
  struct traps t = {e->ir, false};
  if (tir_at(e->ir, x)->flags & (TIR_HAS_LOAD | TIR_HAS_DIVMOD)) tir_walk_expr(e->ir, x, find_trap, &t);
  return t.found;
}

LLVMValueRef emit_choice(struct emit *e, tir_type type, tir_expr condition, tir_expr then, tir_expr otherwise) {
  assert(tir_type_lanes(tir_type_of(e->ir, condition)) == 1 && (then || otherwise));
  LLVMValueRef decides = emit_expr(e, condition), values[2];
  const tir_expr parts[] = {then, otherwise};
  LLVMBasicBlockRef blocks[2], join;
  blocks[0] = LLVMAppendBasicBlockInContext(e->context, e->function, "then");
  blocks[1] = LLVMAppendBasicBlockInContext(e->context, e->function, "else");
  join = LLVMAppendBasicBlockInContext(e->context, e->function, "join");
  LLVMBuildCondBr(e->builder, decides, blocks[0], blocks[1]);
  for (int i = 0; i < 2; i++) {
    LLVMPositionBuilderAtEnd(e->builder, blocks[i]);
    values[i] = parts[i] ? emit_expr(e, parts[i]) : LLVMConstInt(emit_type(e, type), i == 0, false);
    if (parts[i] && tir_type_lanes(tir_type_of(e->ir, parts[i])) < tir_type_lanes(type))
      values[i] = emit_splat(e, values[i], tir_type_lanes(type));
    blocks[i] = LLVMGetInsertBlock(e->builder);
    LLVMBuildBr(e->builder, join);
  }
  LLVMPositionBuilderAtEnd(e->builder, join);
  if (e->failed) return LLVMGetPoison(emit_type(e, type));
  LLVMValueRef phi = LLVMBuildPhi(e->builder, emit_type(e, type), "");
  LLVMAddIncoming(phi, values, blocks, 2);
  return phi;
}

static LLVMValueRef binary(struct emit *e, const struct tir_expr_node *n, bool fast_math) {
  assert(n->kind >= TIR_ADD && n->kind <= TIR_OR);
  bool decides = (n->kind == TIR_AND || n->kind == TIR_OR) && tir_type_lanes(n->type) == 1;
  if (decides && may_trap(e, n->b))
    return emit_choice(e, n->type, n->a, n->kind == TIR_AND ? n->b : TIR_NONE, n->kind == TIR_AND ? TIR_NONE : n->b);
  tir_type ta = tir_type_of(e->ir, n->a), tb = tir_type_of(e->ir, n->b);
  int lanes = tir_type_lanes(n->type);
  tir_expr one = tir_at(e->ir, n->b)->kind == TIR_BROADCAST ? tir_at(e->ir, n->b)->a : n->b;
  bool repeats = tir_type_lanes(tir_type_of(e->ir, one)) == 1 && tir_type_lanes(ta) == lanes;
  if (n->kind == TIR_DIV && repeats && emit_divides_at_once(e, n->type, one)) {
    LLVMValueRef vector = emit_expr(e, n->a);
    return emit_divide_at_once(e, vector, emit_expr(e, one));
  }
  LLVMValueRef a = emit_expr(e, n->a), b = emit_expr(e, n->b);
  if (tir_type_lanes(ta) < lanes) a = emit_splat(e, a, lanes);
  if (tir_type_lanes(tb) < lanes) b = emit_splat(e, b, lanes);
  if (n->kind == TIR_AND) return LLVMBuildAnd(e->builder, a, b, "");
  if (n->kind == TIR_OR) return LLVMBuildOr(e->builder, a, b, "");
  bool compares = n->kind >= TIR_EQ && n->kind <= TIR_GE;
  LLVMValueRef value = compares ? comparison(e, n, a, b) : arithmetic(e, n, a, b);
  return fast_math ? with_fast_math(e, n, value) : value;
}

static LLVMValueRef ramp(struct emit *e, const struct tir_expr_node *n) {
  assert(n->kind == TIR_RAMP);
  int lanes = tir_type_lanes(n->type);
  LLVMTypeRef scalar = emit_type(e, tir_type_with_lanes(n->type, 1));
  LLVMValueRef steps[1024];
  if (lanes > 1024) return emit_refusal(e, "a vector of %d lanes is too wide; split the vectorized loop", lanes);
  for (int i = 0; i < lanes; i++) steps[i] = LLVMConstInt(scalar, (unsigned long long)i, true);
  LLVMValueRef step = LLVMConstVector(steps, (unsigned)lanes);
  LLVMValueRef base = emit_splat(e, emit_expr(e, n->a), lanes), stride = emit_splat(e, emit_expr(e, n->b), lanes);
  return LLVMBuildAdd(e->builder, base, LLVMBuildMul(e->builder, step, stride, ""), "");
}

static LLVMValueRef variable(struct emit *e, const struct tir_expr_node *n) {
  assert(n->kind == TIR_VAR);
  LLVMValueRef v = e->vars[n->ref];
  if (!v) return refuse_variable(e, n->ref);
  if (tir_type_is_int(n->type) && tir_type_lanes(n->type) == 1 && tir_type_bits(n->type) < 64)
    return LLVMBuildTrunc(e->builder, v, emit_type(e, n->type), "");
  return v;
}

static LLVMValueRef select_value(struct emit *e, const struct tir_expr_node *n) {
  assert(n->kind == TIR_SELECT);
  int lanes = tir_type_lanes(n->type);
  if (tir_type_lanes(tir_type_of(e->ir, n->a)) == 1 && (may_trap(e, n->b) || may_trap(e, n->c)))
    return emit_choice(e, n->type, n->a, n->b, n->c);
  LLVMValueRef c = emit_expr(e, n->a), a = emit_expr(e, n->b), b = emit_expr(e, n->c);
  if (tir_type_lanes(tir_type_of(e->ir, n->b)) < lanes) a = emit_splat(e, a, lanes);
  if (tir_type_lanes(tir_type_of(e->ir, n->c)) < lanes) b = emit_splat(e, b, lanes);
  return LLVMBuildSelect(e->builder, c, a, b, "");
}

static LLVMValueRef let_value(struct emit *e, const struct tir_expr_node *n) {
  assert(n->kind == TIR_LET);
  LLVMValueRef before = e->vars[n->ref];
  e->lets[n->ref] = 1;
  e->vars[n->ref] = emit_bound(e, n->a);
  LLVMValueRef body = emit_expr(e, n->b);
  e->vars[n->ref] = before;
  return body;
}

static bool is_widened(const struct emit *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  return n->kind == TIR_CAST && tir_type_is_short(tir_type_of(e->ir, n->a));
}

/* What arithmetic gave, where NaN is quiet; of two, either. */
static bool is_arithmetic(const struct emit *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (n->kind == TIR_SELECT) return is_arithmetic(e, n->b) && is_arithmetic(e, n->c);
  return n->kind >= TIR_ADD && n->kind <= TIR_DIV;
}

/* A step of arithmetic in 16 bits, computed in 32, is rounded before the next: LLVM, which makes one short operation of
 * it where the CPU has that, must not join it with another. */
static LLVMValueRef cast(struct emit *e, const struct tir_expr_node *n) {
  assert(n->kind == TIR_CAST);
  const struct tir_expr_node *of = tir_at(e->ir, n->a);
  LLVMValueRef part = emit_part(e, n);
  if (part) return part;
  bool step = tir_type_is_short(n->type) && of->kind >= TIR_ADD && of->kind <= TIR_MAX &&
              (is_widened(e, of->a) || is_widened(e, of->b));
  LLVMValueRef value = step ? binary(e, of, false) : emit_expr(e, n->a);
  bool rounds = tir_type_code(n->type) == TIR_BFLOAT && tir_type_with_lanes(of->type, 1) == TIR_T_F32;
  if (rounds && is_arithmetic(e, n->a) && (emit_facts(e, n->a) & EMIT_SHORT_NAN))
    return emit_round_to_bfloat(e, value, n->type);
  return emit_cast(e, value, of->type, n->type);
}

/* Of a type that is its bits, as integers. */
static LLVMValueRef real_constant(struct emit *e, const struct tir_expr_node *n) {
  LLVMTypeRef type = emit_type(e, n->type);
  if (LLVMGetTypeKind(type) != LLVMIntegerTypeKind) return LLVMConstReal(type, n->real);
  uint16_t bits = 0;
  assert(tir_type_bits(n->type) <= 16);
  tir_put_element(tir_type_with_lanes(n->type, 1), &bits, n->real);
  return LLVMConstInt(type, bits, false);
}

LLVMValueRef emit_expr(struct emit *e, tir_expr x) {
  assert(x && x < e->ir->exprs.count);
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (n->kind >= TIR_ADD && n->kind <= TIR_OR) return binary(e, n, e->fast_math);
  switch (n->kind) {
  case TIR_INT_IMM:
    return LLVMConstInt(emit_type(e, n->type), (unsigned long long)n->imm, tir_type_code(n->type) == TIR_INT);
  case TIR_FLOAT_IMM: return real_constant(e, n);
  case TIR_VAR: return variable(e, n);
  case TIR_DATA: return e->buffers[n->ref] ? e->buffers[n->ref] : emit_refusal(e, "a buffer is used outside its scope");
  case TIR_NOT: return LLVMBuildNot(e->builder, emit_expr(e, n->a), "");
  case TIR_CAST: return cast(e, n);
  case TIR_SELECT: return select_value(e, n);
  case TIR_LET: return let_value(e, n);
  case TIR_RAMP: return ramp(e, n);
  case TIR_BROADCAST: return emit_splat(e, emit_expr(e, n->a), tir_type_lanes(n->type));
  case TIR_LOAD: return emit_load(e, x);
  case TIR_CALL: return emit_call(e, x);
  default:
    return emit_refusal(e, "an expression has no machine code: %s", n->kind == TIR_STRING_IMM ? "a string" : "a slice");
  }
}

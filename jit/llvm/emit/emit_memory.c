/* Loads and stores of buffers of one dimension. */
#include "emit.h"

#include <string.h>

/* A bool, and an integer of less than a byte, is a byte in memory, extended by its sign where it has one: LLVM would
 * pack the lanes of a vector, and leave open what the other bits are. */
static bool is_narrow(tir_type t) {
  return tir_type_code(t) == TIR_BOOL || (!tir_type_is_float(t) && tir_type_bits(t) < 8);
}

static LLVMTypeRef stored_type(struct emit *e, tir_type type) {
  return emit_type(e, is_narrow(type) ? TIR_TYPE(TIR_UINT, 8, tir_type_lanes(type)) : type);
}

static LLVMValueRef from_memory(struct emit *e, LLVMValueRef value, tir_type type) {
  return is_narrow(type) ? LLVMBuildTrunc(e->builder, value, emit_type(e, type), "") : value;
}

static LLVMValueRef to_memory(struct emit *e, LLVMValueRef value, tir_type type) {
  if (!is_narrow(type)) return value;
  LLVMTypeRef stored = stored_type(e, type);
  return tir_type_code(type) == TIR_INT ? LLVMBuildSExt(e->builder, value, stored, "")
                                        : LLVMBuildZExt(e->builder, value, stored, "");
}

/* A vector's lanes lie side by side: LLVM would step over more than those of a vector of 3, which ends the memory
 * before the last element. */
static LLVMTypeRef element_type(struct emit *e, tir_buffer buffer) {
  tir_type type = tir_buffer_at(e->ir, buffer)->type;
  int lanes = tir_type_lanes(type);
  if (lanes > 1 && (is_narrow(type) || (lanes & (lanes - 1))))
    emit_refusal(e, "buffer %s: no elements of %d lanes of this type: give it one more dimension, of that extent",
                 tir_text(e->ir, tir_buffer_at(e->ir, buffer)->name), lanes);
  return stored_type(e, type);
}

static LLVMValueRef address(struct emit *e, tir_buffer buffer, LLVMValueRef index) {
  assert(tir_is_buffer(e->ir, buffer) && index);
  if (!e->buffers[buffer])
    return emit_refusal(e, "buffer %s is used outside its scope", tir_text(e->ir, tir_buffer_at(e->ir, buffer)->name));
  return LLVMBuildInBoundsGEP2(e->builder, element_type(e, buffer), e->buffers[buffer], &index, 1, "");
}

/* The element at an index. A constant in it is added to the pointer, last: elements whose indices differ by constants
 * have one pointer then, and distances that instructions hold, where LLVM would make a pointer of each. */
static LLVMValueRef element_at(struct emit *e, tir_buffer buffer, tir_expr index) {
  if (!e->buffers[buffer]) return address(e, buffer, emit_int64(e, 0)); /* which refuses */
  tir_expr rest;
  int64_t distance = emit_take_constant(e, index, &rest);
  LLVMTypeRef element = element_type(e, buffer);
  LLVMValueRef at = emit_stepped_address(e, buffer, rest, element), last = emit_int64(e, distance);
  if (!at && rest == index) return address(e, buffer, emit_index(e, index));
  if (!at) { /* it may lie outside of the buffer */
    at = emit_index(e, rest);
    at = LLVMBuildGEP2(e->builder, element, e->buffers[buffer], &at, 1, "");
  }
  return distance ? LLVMBuildGEP2(e->builder, element, at, &last, 1, "") : at;
}

static unsigned alignment(tir_type type) {
  unsigned bytes = (unsigned)emit_type_bytes(tir_type_with_lanes(type, 1));
  return bytes ? bytes : 1;
}

/* Past the caches. That takes a fence before others may read it: emit_fence. */
static void make_nontemporal(struct emit *e, LLVMValueRef store) {
  assert(e->aligned >= 16);
  LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(e->context), 1, false));
  LLVMValueRef node = LLVMMetadataAsValue(e->context, LLVMMDNodeInContext2(e->context, &one, 1));
  LLVMSetMetadata(store, LLVMGetMDKindIDInContext(e->context, "nontemporal", 11), node);
  LLVMSetAlignment(store, (unsigned)e->aligned);
  e->streams = true;
}

/* x86 orders its nontemporal stores with others by a fence only. */
void emit_fence(struct emit *e) {
  if (!e->streams || strncmp(LLVMGetTarget(e->module), "x86_64", 6) != 0) return;
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(e->context), NULL, 0, false);
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID("llvm.x86.sse.sfence", 19), NULL, 0);
  LLVMBuildCall2(e->builder, type, f, NULL, 0, "");
}

static LLVMValueRef plain_load(struct emit *e, LLVMValueRef at, tir_type type) {
  LLVMValueRef value = LLVMBuildLoad2(e->builder, stored_type(e, type), at, "");
  LLVMSetAlignment(value, alignment(type));
  return from_memory(e, value, type);
}

/* A vector of consecutive elements, under a mask. */
static LLVMValueRef masked_load(struct emit *e, LLVMValueRef at, tir_type type, LLVMValueRef mask) {
  LLVMTypeRef types[] = {stored_type(e, type), LLVMPointerTypeInContext(e->context, 0)};
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID("llvm.masked.load", 16), types, 2);
  LLVMValueRef args[] = {at, LLVMConstInt(LLVMInt32TypeInContext(e->context), alignment(type), false), mask,
                         LLVMConstNull(types[0])};
  return from_memory(e, LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, 4, ""), type);
}

static void masked_store(struct emit *e, LLVMValueRef at, tir_type type, LLVMValueRef value, LLVMValueRef mask) {
  LLVMTypeRef types[] = {stored_type(e, type), LLVMPointerTypeInContext(e->context, 0)};
  LLVMValueRef f = LLVMGetIntrinsicDeclaration(e->module, LLVMLookupIntrinsicID("llvm.masked.store", 17), types, 2);
  LLVMValueRef args[] = {value, at, LLVMConstInt(LLVMInt32TypeInContext(e->context), alignment(type), false), mask};
  LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(f), f, args, 4, "");
}

static bool is_contiguous(const struct emit *e, tir_expr index) {
  const struct tir_expr_node *n = tir_at(e->ir, index);
  return n->kind == TIR_RAMP && tir_is_const(e->ir, n->b, 1);
}

/* The stride of a ramp that is read as whole vectors; 0: it is not small, or the index is none. */
enum { MOST_STRIDE = 4, MOST_STRIDED = 64 /* lanes */ };
static int small_stride(const struct emit *e, tir_expr index) {
  const struct tir_expr_node *n = tir_at(e->ir, index);
  int lanes = tir_type_lanes(n->type);
  if (n->kind != TIR_RAMP || !tir_is_int(e->ir, n->b) || (lanes & (lanes - 1)) || lanes > MOST_STRIDED) return 0;
  int64_t stride = tir_at(e->ir, n->b)->imm;
  return stride > 1 && stride <= MOST_STRIDE ? (int)stride : 0;
}

/* The mask of a shuffle of what was picked before and of a part, whose first lane is so many elements behind the ramp's
 * first: lanes whose elements are in it, which is the `number`th, are taken from there. */
static LLVMValueRef picks(struct emit *e, int lanes, int stride, int number, int from) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  LLVMValueRef list[MOST_STRIDED];
  for (int i = 0; i < lanes; i++) {
    int owner = i * stride / lanes, taken = owner == number ? lanes + i * stride - from : i;
    list[i] = owner > number ? LLVMGetPoison(i32) : LLVMConstInt(i32, (unsigned long long)taken, false);
  }
  return LLVMConstVector(list, (unsigned)lanes);
}

/* Elements a small stride apart, from the address of the first on: whole vectors are read, of which lanes are picked.
 * The last of them ends with the last element, as what lies between elements is of their buffer, and no more is. */
static LLVMValueRef strided_load(struct emit *e, LLVMValueRef first, tir_type type, int stride) {
  int lanes = tir_type_lanes(type), span = (lanes - 1) * stride + 1, parts = (span + lanes - 1) / lanes;
  LLVMTypeRef vector = stored_type(e, type), element = stored_type(e, tir_type_with_lanes(type, 1));
  LLVMValueRef picked = LLVMGetPoison(vector);
  for (int i = 0; i < parts; i++) {
    int from = i < parts - 1 ? i * lanes : span - lanes;
    LLVMValueRef distance = emit_int64(e, from);
    LLVMValueRef at = LLVMBuildInBoundsGEP2(e->builder, element, first, &distance, 1, "");
    LLVMValueRef part = LLVMBuildLoad2(e->builder, vector, at, "");
    LLVMSetAlignment(part, alignment(type));
    picked = LLVMBuildShuffleVector(e->builder, picked, part, picks(e, lanes, stride, i, from), "");
  }
  return from_memory(e, picked, type);
}

/* Calls each(lane, index of the lane) for every lane, guarded by its bit of the mask. */
typedef void each_lane(struct emit *e, void *data, int lane, LLVMValueRef index);

static void for_each_lane(struct emit *e, tir_expr index, LLVMValueRef mask, each_lane *each, void *data) {
  LLVMValueRef all = emit_expr(e, index);
  tir_type type = tir_type_of(e->ir, index);
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  for (int i = 0; i < tir_type_lanes(type); i++) {
    LLVMValueRef lane = LLVMConstInt(i32, (unsigned long long)i, false);
    LLVMValueRef at = LLVMBuildExtractElement(e->builder, all, lane, "");
    at = LLVMBuildIntCast2(e->builder, at, LLVMInt64TypeInContext(e->context), true, "");
    if (!mask) {
      each(e, data, i, at);
      continue;
    }
    LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(e->context, e->function, "lane");
    LLVMBasicBlockRef next = LLVMAppendBasicBlockInContext(e->context, e->function, "next");
    LLVMBuildCondBr(e->builder, LLVMBuildExtractElement(e->builder, mask, lane, ""), then, next);
    LLVMPositionBuilderAtEnd(e->builder, then);
    each(e, data, i, at);
    LLVMBuildBr(e->builder, next);
    LLVMPositionBuilderAtEnd(e->builder, next);
  }
}

struct lanes {
  tir_buffer buffer;
  tir_type type;
  LLVMValueRef cell, value;
};

static LLVMValueRef lane_cell(struct emit *e, const struct lanes *l, int lane) {
  LLVMValueRef at = emit_int64(e, lane);
  return LLVMBuildInBoundsGEP2(e->builder, stored_type(e, tir_type_with_lanes(l->type, 1)), l->cell, &at, 1, "");
}

static void load_lane(struct emit *e, void *data, int lane, LLVMValueRef index) {
  struct lanes *l = data;
  tir_type scalar = tir_type_with_lanes(l->type, 1);
  LLVMValueRef v = LLVMBuildLoad2(e->builder, stored_type(e, scalar), address(e, l->buffer, index), "");
  LLVMSetAlignment(v, alignment(scalar));
  LLVMBuildStore(e->builder, v, lane_cell(e, l, lane));
}

static void store_lane(struct emit *e, void *data, int lane, LLVMValueRef index) {
  struct lanes *l = data;
  LLVMValueRef at = LLVMConstInt(LLVMInt32TypeInContext(e->context), (unsigned long long)lane, false);
  LLVMValueRef v = LLVMBuildExtractElement(e->builder, l->value, at, "");
  LLVMSetAlignment(LLVMBuildStore(e->builder, v, address(e, l->buffer, index)), alignment(l->type));
}

LLVMValueRef emit_address(struct emit *e, tir_expr load) {
  assert(tir_at(e->ir, load)->kind == TIR_LOAD);
  const struct tir_expr_node *n = tir_at(e->ir, load);
  return element_at(e, n->ref, tir_operands(e->ir, n->operands)[0]);
}

LLVMValueRef emit_address_argument(struct emit *e, tir_expr address) {
  return emit_address(e, tir_operands(e->ir, tir_at(e->ir, address)->operands)[0]);
}

LLVMValueRef emit_stride_between(struct emit *e, LLVMValueRef first, LLVMValueRef next) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(e->context);
  return LLVMBuildSub(e->builder, LLVMBuildPtrToInt(e->builder, next, i64, ""),
                      LLVMBuildPtrToInt(e->builder, first, i64, ""), "");
}

LLVMValueRef emit_load(struct emit *e, tir_expr load) {
  assert(tir_at(e->ir, load)->kind == TIR_LOAD);
  const struct tir_expr_node *n = tir_at(e->ir, load);
  if (n->count != 1) return emit_refusal(e, "a load of %u dimensions was not flattened", n->count);
  tir_expr index = tir_operands(e->ir, n->operands)[0];
  tir_type type = n->type;
  int lanes = tir_type_lanes(tir_type_of(e->ir, index));
  LLVMValueRef mask = n->a ? emit_expr(e, n->a) : NULL;
  if (lanes == 1 && !mask) return plain_load(e, element_at(e, n->ref, index), type);
  if (mask && tir_type_lanes(tir_type_of(e->ir, n->a)) < lanes) mask = emit_splat(e, mask, lanes);
  if (is_contiguous(e, index)) {
    LLVMValueRef at = element_at(e, n->ref, tir_at(e->ir, index)->a);
    if (!mask) emit_note_load(e, n->ref, tir_at(e->ir, index)->a, emit_type_bytes(type));
    if (!mask) emit_stream(e, n->ref, tir_at(e->ir, index)->a, at, emit_type_bytes(type));
    return mask ? masked_load(e, at, type, mask) : plain_load(e, at, type);
  }
  if (tir_at(e->ir, index)->kind == TIR_BROADCAST && !mask)
    return emit_splat(e, plain_load(e, element_at(e, n->ref, tir_at(e->ir, index)->a), tir_type_with_lanes(type, 1)),
                      lanes);
  int stride = mask || tir_type_lanes(type) != lanes ? 0 : small_stride(e, index);
  if (stride) return strided_load(e, element_at(e, n->ref, tir_at(e->ir, index)->a), type, stride);
  struct lanes l = {n->ref, type, emit_alloca(e, stored_type(e, type), 1, 64), NULL};
  if (mask) LLVMBuildStore(e->builder, LLVMConstNull(stored_type(e, type)), l.cell);
  for_each_lane(e, index, mask, load_lane, &l);
  return from_memory(e, LLVMBuildLoad2(e->builder, stored_type(e, type), l.cell, ""), type);
}

LLVMValueRef emit_load_words(struct emit *e, tir_expr load, int number) {
  const struct tir_expr_node *n = tir_at(e->ir, load);
  tir_expr first = tir_at(e->ir, tir_operands(e->ir, n->operands)[0])->a;
  tir_type words = TIR_TYPE(TIR_INT, 32, tir_type_lanes(n->type));
  LLVMValueRef back = emit_int64(e, -number), at = element_at(e, n->ref, first);
  assert(tir_type_bits(n->type) == 8 && number >= 0 && number < 4);
  at = LLVMBuildGEP2(e->builder, LLVMInt8TypeInContext(e->context), at, &back, 1, "");
  if (!number) emit_note_load(e, n->ref, first, emit_type_bytes(words));
  if (!number) emit_stream(e, n->ref, first, at, emit_type_bytes(words));
  LLVMValueRef value = LLVMBuildLoad2(e->builder, emit_type(e, words), at, "");
  LLVMSetAlignment(value, 1);
  return value;
}

/* What a store stores, as it is in memory; gives its type. */
static LLVMValueRef stored_value(struct emit *e, tir_stmt store, tir_type *type) {
  struct tir_stmt_node s = *tir_stmt_at(e->ir, store);
  int lanes = tir_type_lanes(tir_type_of(e->ir, tir_operands(e->ir, s.store.indices)[0]));
  *type = tir_type_of(e->ir, s.store.value);
  e->stored = s.store.buffer, e->store = store;
  LLVMValueRef value = emit_expr(e, s.store.value);
  e->stored = TIR_NONE, e->store = TIR_NONE;
  if (tir_type_lanes(*type) < lanes) {
    value = emit_splat(e, value, lanes);
    *type = tir_type_with_lanes(*type, lanes);
  }
  return to_memory(e, value, *type);
}

void emit_store(struct emit *e, tir_stmt store) {
  assert(tir_is(e->ir, store, TIR_STORE));
  struct tir_stmt_node s = *tir_stmt_at(e->ir, store);
  if (tir_buffer_at(e->ir, s.store.buffer)->rank != 1) {
    emit_refusal(e, "a store was not flattened");
    return;
  }
  tir_expr index = tir_operands(e->ir, s.store.indices)[0];
  int lanes = tir_type_lanes(tir_type_of(e->ir, index));
  tir_type type;
  LLVMValueRef value = stored_value(e, store, &type);
  LLVMValueRef mask = s.store.predicate ? emit_expr(e, s.store.predicate) : NULL;
  if (mask && tir_type_lanes(tir_type_of(e->ir, s.store.predicate)) < lanes) mask = emit_splat(e, mask, lanes);
  if (!mask && (lanes == 1 || is_contiguous(e, index))) {
    LLVMValueRef at = element_at(e, s.store.buffer, lanes == 1 ? index : tir_at(e->ir, index)->a);
    LLVMValueRef made = LLVMBuildStore(e->builder, value, at);
    LLVMSetAlignment(made, alignment(type));
    if (e->aligned && lanes > 1) make_nontemporal(e, made);
  } else if (is_contiguous(e, index)) {
    masked_store(e, element_at(e, s.store.buffer, tir_at(e->ir, index)->a), type, value, mask);
  } else {
    struct lanes l = {s.store.buffer, type, NULL, value};
    for_each_lane(e, index, mask, store_lane, &l);
  }
}

/* ---- Pairs: two stores of every second element of 16 bits, side by side, are one of all elements ---- */

enum { PAIR_BITS = 16, MOST_PAIRED = 32 /* lanes */ };

/* Whether a store is of every second element from `*first` on. */
static bool is_half(const struct emit *e, tir_stmt store, tir_expr *first) {
  if (!store || !tir_is(e->ir, store, TIR_STORE)) return false;
  const struct tir_stmt_node *s = tir_stmt_at(e->ir, store);
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, s->store.buffer);
  if (s->store.predicate || b->rank != 1 || tir_type_bits(b->type) != PAIR_BITS || tir_type_lanes(b->type) != 1)
    return false;
  const struct tir_expr_node *index = tir_at(e->ir, tir_operands(e->ir, s->store.indices)[0]);
  int lanes = tir_type_lanes(index->type);
  *first = index->a;
  return index->kind == TIR_RAMP && tir_is_const(e->ir, index->b, 2) && lanes <= MOST_PAIRED && !(lanes & (lanes - 1));
}

/* Whether it is no view of memory that another buffer may lie in while it lives. */
static bool is_apart(const struct emit *e, tir_buffer buffer) {
  return !tir_buffer_at(e->ir, buffer)->data || tir_is_placed(e->ir, buffer);
}

/* A load that may read what a buffer has been given. */
static bool may_read(const struct tir *ir, const void *context, tir_expr x) {
  const struct emit *e = context;
  const struct tir_expr_node *n = tir_at(ir, x);
  if (n->kind != TIR_LOAD) return n->kind == TIR_DATA;
  return n->ref == e->stored || !is_apart(e, n->ref);
}

tir_stmt emit_other_half(struct emit *e, tir_stmt store) {
  tir_expr first, second, rest, other;
  if (!is_half(e, store, &first)) return TIR_NONE;
  tir_stmt next = tir_stmt_at(e->ir, store)->next;
  if (!is_half(e, next, &second)) return TIR_NONE;
  const struct tir_stmt_node *s = tir_stmt_at(e->ir, store), *n = tir_stmt_at(e->ir, next);
  tir_type type = tir_type_of(e->ir, tir_operands(e->ir, s->store.indices)[0]);
  int64_t at = emit_take_constant(e, first, &rest), by = emit_take_constant(e, second, &other);
  bool beside = s->store.buffer == n->store.buffer && rest == other && by == at + 1 &&
                type == tir_type_of(e->ir, tir_operands(e->ir, n->store.indices)[0]);
  if (!beside || !is_apart(e, s->store.buffer)) return TIR_NONE;
  e->stored = s->store.buffer;
  bool reads = tir_any_node(e->ir, n->store.value, TIR_HAS_LOAD | TIR_HAS_POINTER, may_read, e);
  e->stored = TIR_NONE;
  return reads ? TIR_NONE : next;
}

void emit_store_halves(struct emit *e, tir_stmt store, tir_stmt other) {
  struct tir_stmt_node s = *tir_stmt_at(e->ir, store);
  tir_type type, same;
  LLVMValueRef values[] = {stored_value(e, store, &type), stored_value(e, other, &same)};
  unsigned lanes = (unsigned)tir_type_lanes(type);
  LLVMValueRef order[2 * MOST_PAIRED];
  assert(type == same && lanes <= MOST_PAIRED);
  for (unsigned i = 0; i < 2 * lanes; i++)
    order[i] = LLVMConstInt(LLVMInt32TypeInContext(e->context), i / 2 + (i % 2 ? lanes : 0), false);
  LLVMValueRef all = LLVMBuildShuffleVector(e->builder, values[0], values[1], LLVMConstVector(order, 2 * lanes), "");
  tir_expr first = tir_at(e->ir, tir_operands(e->ir, s.store.indices)[0])->a;
  LLVMSetAlignment(LLVMBuildStore(e->builder, all, element_at(e, s.store.buffer, first)), alignment(type));
}

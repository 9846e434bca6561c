/* Calls: elementary functions as polynomials on vectors of float32, or the C library's; selection; bit operations.
 *
 * exp and tanh follow the range reductions of Cephes (Moshier, netlib); polynomials are fitted for the least relative
 * error. Over all 2^32 floats, with fused multiply-add, the errors are at most 0.90 units in the last place (exp), 1.13
 * (tanh) and 1.07 (erf): tests/tools/float_functions.c. Other functions: lower/in_single.c and through_double.c. */
#include "emit.h"
#include "jit/llvm/machine.h"
#include "jit/llvm/x86.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- Polynomials on float32 ---- */

struct real {
  struct emit *e;
  LLVMTypeRef type;
}; /* constants and arithmetic of one vector type, no fast-math flags */

enum { AVX2_LANES = 8 };

/* Whether constants are operands in memory, all lanes of them. AVX2 has no operand that is one number for all lanes, as
 * AVX-512 has, and sixteen registers: what these cannot hold LLVM would bring there by an instruction each time. */
static bool has_constants_in_memory(struct real r) {
  const struct jit_target *t = r.e->target;
  bool fits = LLVMGetTypeKind(r.type) == LLVMVectorTypeKind && LLVMGetVectorSize(r.type) % AVX2_LANES == 0;
  return fits && jit_target_is_x86(t) && x86_has(t->x86, X86_AVX2) && !x86_has(t->x86, X86_AVX512F);
}

static LLVMValueRef in_memory(struct real r, double value) {
  char name[48];
  snprintf(name, sizeof name, "lanes%u.%a", LLVMGetVectorSize(r.type), value);
  LLVMValueRef global = LLVMGetNamedGlobal(r.e->module, name);
  if (global) return global;
  global = LLVMAddGlobal(r.e->module, r.type, name);
  LLVMSetInitializer(global, LLVMConstReal(r.type, value));
  LLVMSetLinkage(global, LLVMPrivateLinkage);
  LLVMSetGlobalConstant(global, true);
  LLVMSetAlignment(global, AVX2_LANES * sizeof(float));
  return global;
}

/* Left to LLVM, which holds it in a register: what many operations share, or what stands where none takes memory. */
static LLVMValueRef held(struct real r, double value) { return LLVMConstReal(r.type, value); }

/* An operand in memory, where the target has such. Volatile: of loads that it may join, LLVM makes one register. */
static LLVMValueRef constant(struct real r, double value) {
  if (!has_constants_in_memory(r)) return held(r, value);
  LLVMValueRef load = LLVMBuildLoad2(r.e->builder, r.type, in_memory(r, value), "");
  LLVMSetAlignment(load, AVX2_LANES * sizeof(float));
  LLVMSetVolatile(load, true);
  return load;
}

static LLVMValueRef plus(struct real r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFAdd(r.e->builder, a, b, "");
}
static LLVMValueRef minus(struct real r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFSub(r.e->builder, a, b, "");
}
static LLVMValueRef times(struct real r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFMul(r.e->builder, a, b, "");
}
static LLVMValueRef over(struct real r, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFDiv(r.e->builder, a, b, "");
}
static LLVMValueRef multiply_add(struct real r, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  LLVMValueRef args[] = {a, b, c};
  return emit_intrinsic(r.e, "llvm.fmuladd", r.type, args, 3);
}
static LLVMValueRef magnitude(struct real r, LLVMValueRef x) { return emit_intrinsic(r.e, "llvm.fabs", r.type, &x, 1); }

/* Coefficients from the highest power down. */
static LLVMValueRef polynomial(struct real r, LLVMValueRef x, const double *coefficients, int count) {
  assert(count > 1);
  LLVMValueRef p = constant(r, coefficients[0]);
  for (int i = 1; i < count; i++) p = multiply_add(r, p, x, constant(r, coefficients[i]));
  return p;
}

static LLVMTypeRef int_vector(struct real r) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(r.e->context);
  return LLVMGetTypeKind(r.type) == LLVMVectorTypeKind ? LLVMVectorType(i32, LLVMGetVectorSize(r.type)) : i32;
}

static LLVMValueRef int_constant(struct real r, int32_t value) {
  LLVMValueRef one = LLVMConstInt(LLVMInt32TypeInContext(r.e->context), (unsigned long long)value, true);
  if (LLVMGetTypeKind(r.type) != LLVMVectorTypeKind) return one;
  LLVMValueRef all[1024];
  unsigned lanes = LLVMGetVectorSize(r.type);
  for (unsigned i = 0; i < lanes; i++) all[i] = one;
  return LLVMConstVector(all, lanes);
}

#define JIT_POLYNOMIAL(name, ...) static const double of_##name[] = {__VA_ARGS__};
#include "jit/polynomials.def"
#define POLYNOMIAL(name) of_##name, sizeof of_##name / sizeof *of_##name

/* ---- Registers of 512 bits, which have vscalefps and tables of sixteen floats ---- */

enum { TABLE_LANES = 16, CURRENT_ROUNDING = 4 };

/* Whether the target has them for such vectors. */
static bool has_tables(struct real r) {
  unsigned lanes = LLVMGetTypeKind(r.type) == LLVMVectorTypeKind ? LLVMGetVectorSize(r.type) : 1;
  return lanes >= TABLE_LANES && !(lanes & (lanes - 1)) && jit_table_lanes(r.e->target) >= TABLE_LANES;
}

/* So many elements of one or two vectors, from `first` on. */
static LLVMValueRef elements(struct real r, LLVMValueRef a, LLVMValueRef b, unsigned first, unsigned lanes) {
  LLVMValueRef order[1024];
  for (unsigned i = 0; i < lanes; i++) order[i] = LLVMConstInt(LLVMInt32TypeInContext(r.e->context), first + i, false);
  return LLVMBuildShuffleVector(r.e->builder, a, b, LLVMConstVector(order, lanes), "");
}

/* What an instruction gives of the registers of two vectors, each with that of the other in its place. */
static LLVMValueRef by_registers(struct real r, LLVMValueRef a, LLVMValueRef b,
                                 LLVMValueRef (*instruction)(struct real, LLVMValueRef, LLVMValueRef)) {
  unsigned lanes = LLVMGetVectorSize(LLVMTypeOf(a)), half = lanes / 2;
  LLVMValueRef halves[2];
  if (lanes == TABLE_LANES) return instruction(r, a, b);
  for (unsigned i = 0; i < 2; i++)
    halves[i] = by_registers(r, elements(r, a, a, i * half, half), elements(r, b, b, i * half, half), instruction);
  return elements(r, halves[0], halves[1], 0, lanes);
}

/* x * 2^k, rounded once, k to the integer below. */
static LLVMValueRef scale(struct real r, LLVMValueRef x, LLVMValueRef k) {
  LLVMValueRef args[] = {x, k, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstAllOnes(LLVMInt16TypeInContext(r.e->context)),
                         LLVMConstInt(LLVMInt32TypeInContext(r.e->context), CURRENT_ROUNDING, false)};
  return emit_machine_intrinsic(r.e, "llvm.x86.avx512.mask.scalef.ps.512", args, 5);
}

LLVMValueRef emit_permuted(struct emit *e, LLVMValueRef table, LLVMValueRef at) {
  return emit_machine_intrinsic(e, "llvm.x86.avx512.permvar.sf.512", (LLVMValueRef[]){table, at}, 2);
}

static LLVMValueRef permute(struct real r, LLVMValueRef table, LLVMValueRef at) {
  return emit_permuted(r.e, table, at);
}

static LLVMValueRef look_up(struct real r, const double table[TABLE_LANES], LLVMValueRef at) {
  unsigned lanes = LLVMGetVectorSize(r.type);
  LLVMValueRef all[1024];
  for (unsigned i = 0; i < lanes; i++)
    all[i] = LLVMConstReal(LLVMFloatTypeInContext(r.e->context), table[i % TABLE_LANES]);
  return by_registers(r, LLVMConstVector(all, lanes), at, permute);
}

/* ---- Exponentials, hyperbolic tangents, the error function ---- */

/* x less k * ln(2), without error where k has few bits. */
static LLVMValueRef without_powers(struct real r, LLVMValueRef x, LLVMValueRef k) {
  LLVMValueRef rest = multiply_add(r, k, constant(r, -0.693359375), x);
  return multiply_add(r, k, constant(r, 2.12194440e-4), rest);
}

/* All sixteen 2^(i/16) times this are nearly floats: at most 0.28 units in the last place from one, and the first two,
 * whose reciprocals sigmoid takes, 0.05. Source of the idea: Gal & Bachelis, ACM TOMS 17, 1991. */
static const double PARTS = 1.00279641036;

/* e^x = 2^k * e^r, |r| <= ln(2)/32, k in sixteenths: vscalefps takes the integer below k, a table the rest. Adding
 * 1.5 * 2^19 rounds to sixteenths, which then stand in the low bits. Where x is so large that the result is 0 or
 * infinite, or is NaN, k alone makes it so, and r is nothing. */
static LLVMValueRef exponential_by_table(struct real r, LLVMValueRef x) {
  LLVMBuilderRef w = r.e->builder;
  LLVMValueRef magic = constant(r, 786432.0);
  double parts[TABLE_LANES];
  for (int i = 0; i < TABLE_LANES; i++) parts[i] = exp2(i / (double)TABLE_LANES) * PARTS;
  LLVMValueRef shifted = multiply_add(r, x, constant(r, 1.44269504088896341), magic), k = minus(r, shifted, magic);
  LLVMValueRef part = look_up(r, parts, LLVMBuildBitCast(w, shifted, int_vector(r), ""));
  LLVMValueRef rest = without_powers(r, x, k);
  LLVMValueRef less_one = polynomial(r, rest, POLYNOMIAL(exp_near));
  LLVMValueRef is_near = LLVMBuildFCmp(w, LLVMRealOLE, magnitude(r, x), constant(r, 104.0), "");
  LLVMValueRef near = LLVMBuildSelect(w, is_near, multiply_add(r, part, less_one, part), part, "");
  return by_registers(r, near, k, scale);
}

/* The lesser of x and a limit, or the greater; NaN stays. */
static LLVMValueRef at_most(struct real r, LLVMValueRef x, double limit) {
  LLVMValueRef top = held(r, limit);
  return LLVMBuildSelect(r.e->builder, LLVMBuildFCmp(r.e->builder, LLVMRealOGT, x, top, ""), top, x, "");
}

static LLVMValueRef at_least(struct real r, LLVMValueRef x, double limit) {
  LLVMValueRef bottom = held(r, limit);
  return LLVMBuildSelect(r.e->builder, LLVMBuildFCmp(r.e->builder, LLVMRealOLT, x, bottom, ""), bottom, x, "");
}

/* What the exponent of 2^(k + c) is next to, as a float whose low bits are an integer: 1.5 * 2^23 + 127 + c. All c here
 * are even, so that halves are rounded alike. */
static double rounding(int c) {
  assert(c % 2 == 0);
  return 12582912.0 + 127 + c;
}

/* e^x = 2^k * e^r, |r| <= ln(2)/2: e^r * 2^(k + c). Adding 1.5 * 2^23 rounds to an integer, which then stands in the
 * low bits: with what else is added there, an exponent, which a shift puts in its place. */
static LLVMValueRef exponential_moved(struct real r, LLVMValueRef x, LLVMValueRef moved) {
  LLVMBuilderRef w = r.e->builder;
  LLVMValueRef shifted = multiply_add(r, x, held(r, 1.44269504088896341), moved);
  LLVMValueRef near_one = polynomial(r, without_powers(r, x, minus(r, shifted, moved)), POLYNOMIAL(exp));
  LLVMValueRef exponent = LLVMBuildShl(w, LLVMBuildBitCast(w, shifted, int_vector(r), ""), int_constant(r, 23), "");
  return times(r, near_one, LLVMBuildBitCast(w, exponent, r.type, ""));
}

/* Of -87 <= x <= 88, or NaN: neither 2^k nor the result leaves the normal numbers. */
static LLVMValueRef exponential_within(struct real r, LLVMValueRef x) {
  return exponential_moved(r, x, held(r, rounding(0)));
}

/* Of x <= MOST_BELOW, or NaN: 2^(k + 64) is a normal number, and the last product rounds what is none. */
enum { MOST_BELOW = 44 };
static LLVMValueRef exponential_below(struct real r, LLVMValueRef x) {
  if (has_tables(r)) return exponential_by_table(r, x);
  return times(r, exponential_moved(r, at_least(r, x, -104), held(r, rounding(64))), held(r, 0x1p-64));
}

/* Of any x: c is 64 or -64, by the sign of x, so that results overflow and vanish as they should. */
static LLVMValueRef exponential(struct real r, LLVMValueRef x) {
  LLVMBuilderRef w = r.e->builder;
  if (has_tables(r)) return exponential_by_table(r, x);
  x = at_least(r, at_most(r, x, 89), -104);
  LLVMTypeRef ints = int_vector(r);
  LLVMValueRef negative = LLVMBuildICmp(w, LLVMIntSLT, LLVMBuildBitCast(w, x, ints, ""), LLVMConstNull(ints), "");
  LLVMValueRef moved = LLVMBuildSelect(w, negative, held(r, rounding(64)), held(r, rounding(-64)), "");
  LLVMValueRef part = LLVMBuildSelect(w, negative, held(r, 0x1p-64), held(r, 0x1p64), "");
  return times(r, exponential_moved(r, x, moved), part);
}

static LLVMValueRef copy_sign(struct real r, LLVMValueRef size, LLVMValueRef sign) {
  LLVMValueRef args[] = {size, sign};
  return emit_intrinsic(r.e, "llvm.copysign", r.type, args, 2);
}

static LLVMValueRef hyperbolic_tangent(struct real r, LLVMValueRef x) {
  LLVMBuilderRef w = r.e->builder;
  LLVMValueRef square = times(r, x, x), size = magnitude(r, x);
  LLVMValueRef small = multiply_add(r, times(r, polynomial(r, square, POLYNOMIAL(tanh)), square), x, x);
  LLVMValueRef twice = plus(r, size, size); /* beyond 20 the result is 1 */
  LLVMValueRef grown = has_tables(r) ? exponential_by_table(r, twice) : exponential_within(r, at_most(r, twice, 20));
  LLVMValueRef one = held(r, 1.0), large = minus(r, one, over(r, held(r, 2.0), plus(r, grown, one)));
  LLVMValueRef is_small = LLVMBuildFCmp(w, LLVMRealOLT, size, constant(r, 0.7), "");
  return copy_sign(r, LLVMBuildSelect(w, is_small, small, large, ""), x); /* of -0, too */
}

/* Of pieces of |x| as wide as 1 / PIECES, but the first, which ends at half of that: a number in each, erf of it
 * (nearly a float there), and the polynomials q of erf(at + u) = value + u * q(u), highest power first; of the first
 * erf(u) = u + u * q(u). After 3.9249 erf is 1, rounded. */
static const double PIECES = 3.9490447, LAST_PIECE_ENDS = 3.9249;
static const double piece_at[TABLE_LANES] = {0.0,        0.205003753, 0.506437898, 0.759666145, 1.01290584, 1.26616371,
                                             1.51936686, 1.77255595,  2.02579546,  2.27896547,  2.53226304, 2.78550935,
                                             3.03868413, 3.29203057,  3.54506612,  3.79848218};
static const double piece_value[TABLE_LANES] = {
    0.0,         0.228121862, 0.52613914,  0.71732527,  0.847989261, 0.92664665,  0.968342543, 0.987816095,
    0.995828688, 0.998731196, 0.999657929, 0.999918282, 0.999982715, 0.999996781, 0.999999464, 0.99999994};
static const double piece_polynomial[][TABLE_LANES] = {
    {0.11091312, 0.0805447027, 0.00615955843, -0.0539107546, -0.068383567, -0.0450898558, -0.0128261801, 0.00759759126,
     0.013030366, 0.0101283323, 0.00560640078, 0.00243888213, 0.000867798808, 0.000265106792, 6.59927609e-05,
     2.81544508e-05},
    {0.000302174216, 0.10782291, 0.182191357, 0.147514224, 0.064862527, -0.00940861925, -0.0455156937, -0.0471097603,
     -0.0327571034, -0.0176436566, -0.00773721561, -0.00283288863, -0.000877871993, 0.000113225535, -0.000111589856,
     0.000555645325},
    {-0.376143098, -0.33022815, -0.141757846, 0.0325536393, 0.141823068, 0.167017043, 0.135245591, 0.0858544558,
     0.0447567441, 0.0196016263, 0.00729900692, 0.00233074115, 0.000641787134, 0.000152715511, 3.16047954e-05,
     5.56657415e-06},
    {3.17963071e-07, -0.221802846, -0.442169219, -0.481334776, -0.409683168, -0.287541389, -0.170437321, -0.0864024311,
     -0.037737418, -0.0142756123, -0.00468907598, -0.00134148798, -0.000334924145, -7.85270022e-05, -1.29820755e-05,
     -1.14252489e-05},
    {0.128379166, 1.0819397, 0.873107076, 0.633617163, 0.404462606, 0.227094665, 0.112175189, 0.0487440377,
     0.0186284538, 0.00626421859, 0.00185184344, 0.00048165652, 0.000110243702, 2.21719401e-05, 3.93062737e-06,
     6.11295945e-07}};

static LLVMValueRef error_function_by_table(struct real r, LLVMValueRef x) {
  enum { COUNT = sizeof piece_polynomial / sizeof *piece_polynomial };
  LLVMBuilderRef w = r.e->builder;
  LLVMValueRef size = magnitude(r, x), magic = constant(r, 12582912.0), within = at_most(r, size, LAST_PIECE_ENDS);
  LLVMValueRef shifted = multiply_add(r, within, constant(r, PIECES), magic);
  LLVMValueRef piece = LLVMBuildBitCast(w, shifted, int_vector(r), "");
  LLVMValueRef u = minus(r, within, look_up(r, piece_at, piece)), q = look_up(r, piece_polynomial[0], piece);
  for (int i = 1; i < COUNT; i++) q = multiply_add(r, q, u, look_up(r, piece_polynomial[i], piece));
  LLVMValueRef is_first = LLVMBuildFCmp(w, LLVMRealOEQ, shifted, magic, "");
  LLVMValueRef value = LLVMBuildSelect(w, is_first, within, look_up(r, piece_value, piece), "");
  return copy_sign(r, multiply_add(r, q, u, value), x);
}

/* Below 1: x + x * near(x^2); above: 1 - e^far(|x|), far = ln(1 - erf). */
static LLVMValueRef error_function(struct real r, LLVMValueRef x) {
  LLVMBuilderRef w = r.e->builder;
  if (has_tables(r)) return error_function_by_table(r, x);
  LLVMValueRef size = magnitude(r, x);
  LLVMValueRef small = multiply_add(r, polynomial(r, times(r, x, x), POLYNOMIAL(erf_near)), x, x);
  LLVMValueRef rest = exponential_within(r, polynomial(r, at_most(r, size, 4), POLYNOMIAL(erf_far)));
  LLVMValueRef large = copy_sign(r, minus(r, held(r, 1.0), rest), x);
  return LLVMBuildSelect(w, LLVMBuildFCmp(w, LLVMRealOLT, size, constant(r, 1.0), ""), small, large, "");
}

/* ---- Functions by name ---- */

/* How a function is computed, by the table tir/functions.def. An intrinsic of vectors calls the C library lane by lane
 * where the CPU has no instruction. */
enum way { MADE, INTRINSIC, LIBRARY, OWN };
#define SINGLE(f)   NULL
#define DOUBLE(f)   NULL
#define BACKENDS(f) f
#define CALLED      NULL
static const struct {
  enum way way;
  const char *intrinsic;
  LLVMValueRef (*polynomial)(struct real, LLVMValueRef); /* of float32, with fast math */
} computed[TIR_FUNCTIONS] = {
#define TIR_FUNCTION(name, operands, value, free, fixed, llvm, ...) {llvm, "llvm." #name, free},
#include "tir/functions.def"
};

enum { MOST_LIBRARY_ARGUMENTS = 2 };

/* Of arguments of any type; the result has the type of the first. */
static LLVMValueRef call_library(struct emit *e, const char *name, tir_type type, LLVMValueRef *args, unsigned count) {
  assert(count > 0 && count <= MOST_LIBRARY_ARGUMENTS);
  LLVMTypeRef real = emit_type(e, tir_type_with_lanes(type, 1)), params[MOST_LIBRARY_ARGUMENTS];
  for (unsigned k = 0; k < count; k++) {
    params[k] = LLVMTypeOf(args[k]);
    if (LLVMGetTypeKind(params[k]) == LLVMVectorTypeKind) params[k] = LLVMGetElementType(params[k]);
  }
  LLVMTypeRef signature = LLVMFunctionType(real, params, count, false);
  char symbol[32];
  snprintf(symbol, sizeof symbol, "%s%s", name, tir_type_bits(type) == 32 ? "f" : "");
  LLVMValueRef f = LLVMGetNamedFunction(e->module, symbol);
  if (!f) f = LLVMAddFunction(e->module, symbol, signature);
  int lanes = tir_type_lanes(type);
  if (lanes == 1) return LLVMBuildCall2(e->builder, signature, f, args, count, "");
  LLVMValueRef all = LLVMGetPoison(emit_type(e, type));
  for (int i = 0; i < lanes; i++) {
    LLVMValueRef at = LLVMConstInt(LLVMInt32TypeInContext(e->context), (unsigned long long)i, false),
                 one[MOST_LIBRARY_ARGUMENTS];
    for (unsigned k = 0; k < count; k++) one[k] = LLVMBuildExtractElement(e->builder, args[k], at, "");
    LLVMValueRef value = LLVMBuildCall2(e->builder, signature, f, one, count, "");
    all = LLVMBuildInsertElement(e->builder, all, value, at, "");
  }
  return all;
}

/* ldexp: its second argument, an integer or a float that is one, goes to the C library as an int. */
static LLVMValueRef scaled(struct emit *e, tir_type type, LLVMValueRef *args, tir_type exponent) {
  int lanes = tir_type_lanes(type);
  args[1] = emit_cast(e, args[1], tir_type_with_lanes(exponent, lanes), TIR_TYPE(TIR_INT, 32, lanes));
  return call_library(e, "ldexp", type, args, 2);
}

/* NULL: no elementary function of so many arguments has this name. Values are float32 or float64. */
static LLVMValueRef elementary(struct emit *e, const char *name, tir_type type, LLVMValueRef *args,
                               const uint32_t *operands, unsigned count) {
  struct real r = {e, emit_type(e, type)};
  enum tir_function f = tir_function_named(name);
  if (f == TIR_FUNCTIONS || tir_functions[f].operands != count) return NULL;
  if (computed[f].polynomial && e->fast_math && tir_type_bits(type) == 32) {
    bool below = f == TIR_FUNCTION_exp && emit_most(e, operands[0]) <= MOST_BELOW;
    return below ? exponential_below(r, args[0]) : computed[f].polynomial(r, args[0]);
  }
  switch (computed[f].way) {
  case MADE: return NULL;
  case INTRINSIC: return emit_intrinsic(e, computed[f].intrinsic, r.type, args, count);
  case LIBRARY: return call_library(e, tir_functions[f].name, type, args, count);
  case OWN: break;
  }
  if (f == TIR_FUNCTION_ldexp) return scaled(e, type, args, tir_type_of(e->ir, operands[1]));
  assert(f == TIR_FUNCTION_rsqrt);
  return over(r, held(r, 1.0), emit_intrinsic(e, "llvm.sqrt", r.type, args, 1));
}

/* ---- Integers and bits ---- */

static LLVMValueRef bit_call(struct emit *e, const char *name, tir_type type, LLVMValueRef *args, unsigned count) {
  LLVMBuilderRef w = e->builder;
  bool is_signed = tir_type_code(type) == TIR_INT;
  LLVMValueRef no = LLVMConstNull(LLVMInt1TypeInContext(e->context));
  if (count == 2) {
    if (!strcmp(name, "bitwise_and")) return LLVMBuildAnd(w, args[0], args[1], "");
    if (!strcmp(name, "bitwise_or")) return LLVMBuildOr(w, args[0], args[1], "");
    if (!strcmp(name, "bitwise_xor")) return LLVMBuildXor(w, args[0], args[1], "");
    if (!strcmp(name, "shift_left")) return LLVMBuildShl(w, args[0], args[1], "");
    if (!strcmp(name, "shift_right"))
      return is_signed ? LLVMBuildAShr(w, args[0], args[1], "") : LLVMBuildLShr(w, args[0], args[1], "");
  }
  if (count != 1) return NULL;
  LLVMValueRef with_flag[] = {args[0], no};
  if (!strcmp(name, "bitwise_not")) return LLVMBuildNot(w, args[0], "");
  if (!strcmp(name, "popcount")) return emit_intrinsic(e, "llvm.ctpop", LLVMTypeOf(args[0]), args, 1);
  if (!strcmp(name, "clz")) return emit_intrinsic(e, "llvm.ctlz", LLVMTypeOf(args[0]), with_flag, 2);
  if (!strcmp(name, "abs") && is_signed) return emit_intrinsic(e, "llvm.abs", LLVMTypeOf(args[0]), with_flag, 2);
  return NULL;
}

/* ---- Calls ---- */

/* Only the branch that is taken is computed: it may guard an access. */
static LLVMValueRef if_then_else(struct emit *e, const struct tir_expr_node *n) {
  const uint32_t *args = tir_operands(e->ir, n->operands);
  if (tir_type_lanes(tir_type_of(e->ir, args[0])) > 1) {
    int lanes = tir_type_lanes(n->type);
    LLVMValueRef c = emit_expr(e, args[0]), a = emit_expr(e, args[1]), b = emit_expr(e, args[2]);
    if (tir_type_lanes(tir_type_of(e->ir, args[1])) < lanes) a = emit_splat(e, a, lanes);
    if (tir_type_lanes(tir_type_of(e->ir, args[2])) < lanes) b = emit_splat(e, b, lanes);
    return LLVMBuildSelect(e->builder, c, a, b, "");
  }
  return emit_choice(e, n->type, args[0], args[1], args[2]);
}

/* Of the thread that runs a parallel loop's iterations. */
static LLVMValueRef thread_number(struct emit *e) {
  LLVMTypeRef i32 = LLVMInt32TypeInContext(e->context);
  return e->thread ? LLVMBuildTrunc(e->builder, e->thread, i32, "") : LLVMConstNull(i32);
}

/* is_aligned(pointer, bytes) */
static LLVMValueRef is_aligned(struct emit *e, const tir_expr *args) {
  assert(tir_is_int(e->ir, args[1]) && tir_at(e->ir, args[1])->imm > 0);
  LLVMValueRef mask = emit_int64(e, tir_at(e->ir, args[1])->imm - 1), at = emit_expr(e, args[0]);
  if (e->failed) return at;
  at = LLVMBuildPtrToInt(e->builder, at, LLVMInt64TypeInContext(e->context), "");
  return LLVMBuildICmp(e->builder, LLVMIntEQ, LLVMBuildAnd(e->builder, at, mask, ""), emit_int64(e, 0), "");
}

enum { MOST_ARGUMENTS = 8 };

LLVMValueRef emit_call(struct emit *e, tir_expr call) {
  assert(tir_at(e->ir, call)->kind == TIR_CALL);
  struct tir_expr_node n = *tir_at(e->ir, call);
  const char *name = tir_text(e->ir, n.ref);
  const uint32_t *operands = tir_operands(e->ir, n.operands);
  if (!strcmp(name, "if_then_else") && n.count == 3) return if_then_else(e, &n);
  if (!strcmp(name, "likely") && n.count == 1) return emit_expr(e, operands[0]);
  if (tir_is_thread_number(e->ir, call)) return thread_number(e);
  if (!strcmp(name, TIR_DOT_LANES) && n.count == 3) return emit_dot(e, &n);
  if (!strcmp(name, TIR_SLIDE_LANES) && n.count == 2) return emit_slide(e, &n);
  if (!strcmp(name, TIR_IS_ALIGNED) && n.count == 2) return is_aligned(e, operands);
  if (!strcmp(name, "address_of") && n.count == 1 && tir_at(e->ir, operands[0])->kind == TIR_LOAD)
    return emit_address(e, operands[0]);
  if (n.count == 0 || n.count > MOST_ARGUMENTS)
    return emit_refusal(e, "T.%s of %u arguments is not known", name, n.count);
  tir_type from = tir_type_of(e->ir, operands[0]);
  LLVMValueRef args[MOST_ARGUMENTS], value = NULL;
  int lanes = tir_type_lanes(n.type);
  for (uint32_t i = 0; i < n.count; i++) {
    tir_type t = tir_type_of(e->ir, operands[i]);
    args[i] = emit_expr(e, operands[i]);
    if (tir_type_lanes(t) < lanes) args[i] = emit_splat(e, args[i], lanes);
  }
  from = tir_type_with_lanes(from, lanes);
  if (!strcmp(name, "isnan") && tir_type_is_float(from)) {
    if (tir_type_is_short(from)) args[0] = emit_cast(e, args[0], from, TIR_TYPE(TIR_FLOAT, 32, lanes));
    return LLVMBuildFCmp(e->builder, LLVMRealUNO, args[0], args[0], "");
  }
  if (!strcmp(name, "reinterpret") && tir_type_bits(from) != tir_type_bits(n.type))
    return emit_refusal(e, "T.reinterpret joins types of different size");
  if (!strcmp(name, "reinterpret")) return LLVMBuildBitCast(e->builder, args[0], emit_type(e, n.type), "");
  if (tir_type_is_float(n.type))
    value = elementary(e, name, n.type, args, operands, n.count);
  else if (tir_type_is_int(n.type) || tir_type_code(n.type) == TIR_BOOL)
    value = bit_call(e, name, n.type, args, n.count);
  return value ? value : emit_refusal(e, "T.%s has no machine code on this target", name);
}

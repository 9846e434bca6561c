/* Calls of T.name(…) in expressions: nodes of the IR by their name, functions whose result's type follows from a rule,
 * and any other name, which is kept as it is. */
#include "reader.h"
#include "tir/arith/bounds.h"
#include "tir/text/calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What they share ---- */

/* Exactly `count` positional arguments, as expressions. */
static bool exprs_of(struct tir_reader *r, struct tir_args *args, tir_expr *out, uint32_t count) {
  assert(args->first + args->count <= r->item_count);
  if (args->count != count)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes %u arguments, %u are given", args->name, count,
                           args->count);
  for (uint32_t i = 0; i < count; i++)
    if (!tir_reader_as_expr(r, r->items[args->first + i], &out[i])) return false;
  return tir_args_done(r, args, count);
}

static bool give(struct tir_reader *r, struct tir_args *args, tir_expr e, struct tir_item *out) {
  *out = tir_item_of_expr(e, args->token);
  return tir_reader_note(r, args->token, e);
}

static bool call_op(struct tir_reader *r, struct tir_args *args, tir_type type, const char *op,
                    const tir_expr *operands, uint32_t count, struct tir_item *out) {
  return give(r, args, tir_call(r->ir, type, tir_symbol_of(r->ir, op), operands, count), out);
}

static bool expect_number(struct tir_reader *r, struct tir_args *args, tir_expr e) {
  tir_type t = tir_type_of(r->ir, e);
  char text[24];
  if (tir_type_is_int(t) || tir_type_is_float(t) || tir_type_code(t) == TIR_BOOL) return true;
  return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes numbers, found %s", args->name,
                         tir_type_text(t, text));
}

/* ---- Binary nodes ---- */

struct binary {
  const char *name;
  enum tir_kind kind;
  bool raw;
};

/* Names in capitals are nodes kept as written; the others fold as the operators do. */
static const struct binary binaries[] = {{"Add", TIR_ADD, true},
                                         {"Sub", TIR_SUB, true},
                                         {"Mul", TIR_MUL, true},
                                         {"Div", TIR_DIV, true},
                                         {"Mod", TIR_MOD, true},
                                         {"FloorDiv", TIR_FLOORDIV, true},
                                         {"FloorMod", TIR_FLOORMOD, true},
                                         {"Min", TIR_MIN, true},
                                         {"Max", TIR_MAX, true},
                                         {"EQ", TIR_EQ, true},
                                         {"NE", TIR_NE, true},
                                         {"LT", TIR_LT, true},
                                         {"LE", TIR_LE, true},
                                         {"GT", TIR_GT, true},
                                         {"GE", TIR_GE, true},
                                         {"And", TIR_AND, true},
                                         {"Or", TIR_OR, true},
                                         {"min", TIR_MIN, false},
                                         {"max", TIR_MAX, false},
                                         {"div", TIR_DIV, false},
                                         {"truncdiv", TIR_DIV, false},
                                         {"truncmod", TIR_MOD, false},
                                         {"floordiv", TIR_FLOORDIV, false},
                                         {"floormod", TIR_FLOORMOD, false},
                                         {"indexdiv", TIR_FLOORDIV, false},
                                         {"indexmod", TIR_FLOORMOD, false}};

static bool read_binary_call(struct tir_reader *r, struct tir_args *args, const struct binary *b,
                             struct tir_item *out) {
  tir_expr e[2], result;
  if (!exprs_of(r, args, e, 2)) return false;
  if (!b->raw) {
    if (!tir_reader_binary(r, args->token, b->kind, e[0], e[1], &result)) return false;
    return *out = tir_item_of_expr(result, args->token), true;
  }
  if (!tir_reader_match(r, args->token, &e[0], &e[1])) return false;
  bool logical = b->kind == TIR_AND || b->kind == TIR_OR;
  if (logical && tir_type_code(tir_type_of(r->ir, e[0])) != TIR_BOOL)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes conditions", b->name);
  if (tir_is_arithmetic(b->kind) && (!expect_number(r, args, e[0]) || !tir_reader_refuse_truths(r, args->token, e[0])))
    return false;
  return give(r, args, tir_binary(r->ir, b->kind, e[0], e[1]), out);
}

/* ---- Other nodes ---- */

static bool read_ceildiv(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e[2], sum, one = tir_int(r->ir, TIR_T_I32, 1);
  if (!exprs_of(r, args, e, 2) || !tir_reader_note(r, args->token, one) ||
      !tir_reader_match(r, args->token, &e[0], &e[1]) ||
      !tir_reader_binary(r, args->token, TIR_ADD, e[0], e[1], &sum) ||
      !tir_reader_binary(r, args->token, TIR_SUB, sum, one, &sum) ||
      !tir_reader_binary(r, args->token, TIR_FLOORDIV, sum, e[1], &sum))
    return false;
  return *out = tir_item_of_expr(sum, args->token), true;
}

static bool check_condition(struct tir_reader *r, struct tir_args *args, tir_expr e) {
  return tir_type_code(tir_type_of(r->ir, e)) == TIR_BOOL ||
         tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes a condition first", args->name);
}

static bool read_not_call(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e;
  if (!exprs_of(r, args, &e, 1) || !check_condition(r, args, e)) return false;
  return give(r, args, tir_unary(r->ir, TIR_NOT, tir_type_of(r->ir, e), e), out);
}

/* T.Cast(type, value) is kept; T.cast(value, type) folds. */
static bool read_cast(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  bool raw = *args->name == 'C';
  struct tir_item type_value, value;
  tir_type type;
  tir_expr e;
  if (!tir_arg_at(r, args, raw ? 0 : 1, "dtype", &type_value) || !tir_arg_at(r, args, raw ? 1 : 0, "value", &value))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes a type and a value", args->name);
  if (!tir_args_done(r, args, 2) || !tir_reader_as_type(r, type_value, &type) || !tir_reader_as_expr(r, value, &e))
    return false;
  if (!raw) return tir_reader_cast(r, args->token, type, e, &e) && give(r, args, e, out);
  char text[24];
  if (!expect_number(r, args, e)) return false;
  if (tir_type_lanes(type) != tir_type_lanes(tir_type_of(r->ir, e)) || tir_type_code(type) == TIR_HANDLE ||
      tir_type_code(type) == TIR_VOID || tir_type_code(type) == TIR_STRING)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "this cannot be cast to %s", tir_type_text(type, text));
  return give(r, args, tir_unary(r->ir, TIR_CAST, type, e), out);
}

static bool read_select(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e[3];
  if (!exprs_of(r, args, e, 3) || !check_condition(r, args, e[0]) || !tir_reader_match(r, args->token, &e[1], &e[2]))
    return false;
  return give(r, args, tir_select(r->ir, e[0], e[1], e[2]), out);
}

static bool read_if_then_else(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e[3];
  if (!exprs_of(r, args, e, 3) || !check_condition(r, args, e[0]) || !tir_reader_match(r, args->token, &e[1], &e[2]))
    return false;
  if (tir_is_int(r->ir, e[0])) return give(r, args, tir_at(r->ir, e[0])->imm ? e[1] : e[2], out);
  return call_op(r, args, tir_type_of(r->ir, e[1]), "if_then_else", e, 3, out);
}

static bool read_lanes(struct tir_reader *r, struct tir_args *args, uint32_t position, tir_expr e, int *lanes) {
  struct tir_item v;
  int64_t n;
  if (!tir_arg_at(r, args, position, "lanes", &v))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "expected the number of lanes");
  if (!tir_reader_as_int(r, v, "the number of lanes", &n)) return false;
  if (n < 1 || n > TIR_MOST_LANES || tir_type_lanes(tir_type_of(r->ir, e)) != 1)
    return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a scalar and 1 to %d lanes", TIR_MOST_LANES);
  *lanes = (int)n;
  return tir_args_done(r, args, position + 1);
}

static bool read_ramp(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  struct tir_item base_value, stride_value;
  tir_expr base, stride;
  int lanes;
  if (!tir_arg_at(r, args, 0, "base", &base_value) || !tir_arg_at(r, args, 1, "stride", &stride_value))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.Ramp takes a base, a stride and the number of lanes");
  if (!tir_reader_as_expr(r, base_value, &base) || !tir_reader_as_expr(r, stride_value, &stride) ||
      !tir_reader_match(r, args->token, &base, &stride) || !read_lanes(r, args, 2, base, &lanes))
    return false;
  if (lanes == 1) return give(r, args, base, out);
  return give(r, args, tir_ramp(r->ir, base, stride, lanes), out);
}

static bool read_broadcast(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  struct tir_item v;
  tir_expr e;
  int lanes;
  if (!tir_arg_at(r, args, 0, "value", &v))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.Broadcast takes a value and the number of lanes");
  if (!tir_reader_as_expr(r, v, &e) || !expect_number(r, args, e) || !read_lanes(r, args, 1, e, &lanes)) return false;
  if (lanes == 1) return give(r, args, e, out);
  return give(r, args, tir_unary(r->ir, TIR_BROADCAST, tir_type_with_lanes(tir_type_of(r->ir, e), lanes), e), out);
}

/* The variable that a let binds: the name is the let's in the body, whatever it is around it, and of data where the
 * value is. Lets of one name and value have one. */
static tir_var let_of(struct tir_reader *r, tir_var named, tir_expr value) {
  for (uint32_t i = 0; i < r->let_count; i++)
    if (r->lets[i].named == named && r->lets[i].value == value) return r->lets[i].bound;
  tir_var bound = tir_new_let(r->ir, r->ir->vars.at[named].name, value);
  if (r->let_count == r->let_capacity)
    r->lets = tir_enlarge(r->lets, &r->let_capacity, (uint64_t)r->let_count + 1, sizeof *r->lets);
  r->lets[r->let_count++] = (struct tir_reader_let){named, value, bound};
  return bound;
}

/* T.Let(body, where={variable: value}) */
static bool read_let(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  struct tir_item body_value, where;
  tir_expr body, var, value;
  if (!tir_arg_at(r, args, 0, "expr", &body_value) || !tir_arg_at(r, args, 1, "where", &where) ||
      where.kind != TIR_ITEM_MAP || where.count != 2)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.Let takes an expression and where={variable: value}");
  if (!tir_args_done(r, args, 2) || !tir_reader_as_expr(r, body_value, &body) ||
      !tir_reader_as_expr(r, r->items[where.first], &var) || !tir_reader_as_expr(r, r->items[where.first + 1], &value))
    return false;
  if (tir_at(r->ir, var)->kind != TIR_VAR)
    return tir_reader_fail(r, where.token, MS_TEXT_TYPE, "expected a variable as the key");
  if (!tir_reader_cast(r, where.token, tir_type_of(r->ir, var), value, &value)) return false;
  tir_var named = tir_at(r->ir, var)->ref, bound = let_of(r, named, value);
  tir_subst_as_is(r->ir);
  tir_subst_var(r->ir, named, tir_var_expr(r->ir, bound));
  body = tir_subst(r->ir, body);
  tir_subst_clear(r->ir);
  return give(r, args, tir_let(r->ir, bound, value, body), out);
}

/* ---- Limits and rounding ---- */

static bool read_limit(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  struct tir_item v;
  tir_type t;
  if (!tir_arg_at(r, args, 0, "dtype", &v))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes a data type", args->name);
  if (!tir_reader_as_type(r, v, &t) || !tir_args_done(r, args, 1)) return false;
  int bits = tir_type_bits(t);
  bool least = !strcmp(args->name, "min_value"), infinite = !strcmp(args->name, "infinity");
  tir_expr e;
  if (tir_type_lanes(t) != 1 || (!tir_type_is_float(t) && (infinite || !tir_type_is_int(t))))
    return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "T.%s knows no value of this type", args->name);
  if (tir_type_is_float(t))
    e = tir_float(r->ir, t, infinite ? INFINITY : least ? -tir_greatest_written(t) : tir_greatest_written(t));
  else if (tir_type_code(t) == TIR_UINT)
    e = tir_int(r->ir, t, least ? 0 : bits == 64 ? INT64_MAX : (int64_t)((1ull << bits) - 1));
  else
    e = tir_int(r->ir, t, least ? INT64_MIN >> (64 - bits) : INT64_MAX >> (64 - bits));
  return give(r, args, e, out);
}

/* Integers are whole already; constants are rounded here. */
static bool read_rounding(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e;
  if (!exprs_of(r, args, &e, 1) || !expect_number(r, args, e)) return false;
  const struct tir_expr_node *n = tir_at(r->ir, e);
  if (!tir_type_is_float(n->type)) return give(r, args, e, out);
  if (n->kind != TIR_FLOAT_IMM) return call_op(r, args, n->type, args->name, &e, 1, out);
  double x = n->real;
  x = !strcmp(args->name, "floor")   ? floor(x)
      : !strcmp(args->name, "ceil")  ? ceil(x)
      : !strcmp(args->name, "trunc") ? trunc(x)
                                     : nearbyint(x);
  return give(r, args, tir_float(r->ir, n->type, x), out);
}

static bool absolute(struct tir_reader *r, struct tir_args *args, tir_expr e, tir_expr *out) {
  const struct tir_expr_node *n = tir_at(r->ir, e);
  tir_type type = n->type;
  if (n->kind == TIR_FLOAT_IMM)
    *out = tir_float(r->ir, type, fabs(n->real));
  else if (tir_type_is_float(type))
    *out = tir_call(r->ir, type, tir_symbol_of(r->ir, "fabs"), &e, 1);
  else if (tir_type_code(type) != TIR_INT)
    *out = e;
  else if (n->kind == TIR_INT_IMM && n->imm != INT64_MIN)
    *out = tir_int(r->ir, type, n->imm < 0 ? -n->imm : n->imm);
  else {
    tir_expr zero, negative, condition;
    if (!tir_reader_constant(r, args->token, type, 0, 0, false, &zero) ||
        !tir_reader_binary(r, args->token, TIR_SUB, zero, e, &negative) ||
        !tir_reader_binary(r, args->token, TIR_GE, e, zero, &condition))
      return false;
    *out = tir_select(r->ir, condition, e, negative);
  }
  return tir_reader_note(r, args->token, *out);
}

static bool read_abs(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e;
  return exprs_of(r, args, &e, 1) && expect_number(r, args, e) && tir_reader_refuse_truths(r, args->token, e) &&
         absolute(r, args, e, &e) && give(r, args, e, out);
}

/* isnan is a function of float32 and float64; isinf and isfinite are made of it. */
static bool is_nan(struct tir_reader *r, struct tir_args *args, tir_expr e, tir_expr *out) {
  tir_type type = tir_type_of(r->ir, e), truth = tir_type_with_lanes(TIR_T_BOOL, tir_type_lanes(type));
  if (!tir_type_is_float(type)) {
    *out = tir_int(r->ir, TIR_T_BOOL, 0);
    return tir_reader_note(r, args->token, *out);
  }
  if (tir_type_is_short(type) &&
      !tir_reader_cast(r, args->token, tir_type_with_lanes(TIR_T_F32, tir_type_lanes(type)), e, &e))
    return false;
  *out = tir_call(r->ir, truth, tir_symbol_of(r->ir, "isnan"), &e, 1);
  return tir_reader_note(r, args->token, *out);
}

static bool negated(struct tir_reader *r, struct tir_args *args, tir_expr e, tir_expr *out) {
  *out = tir_is_int(r->ir, e) ? tir_int(r->ir, TIR_T_BOOL, !tir_at(r->ir, e)->imm)
                              : tir_unary(r->ir, TIR_NOT, tir_type_of(r->ir, e), e);
  return tir_reader_note(r, args->token, *out);
}

static bool is_inf(struct tir_reader *r, struct tir_args *args, tir_expr e, tir_expr *out) {
  tir_expr size, infinity, nan, same;
  tir_type type = tir_type_of(r->ir, e);
  if (!tir_type_is_float(type)) return is_nan(r, args, e, out);
  /* An infinity of 8 bits has no absolute value of its type: arithmetic saturates. */
  tir_type wide = tir_type_with_lanes(TIR_T_F32, tir_type_lanes(type));
  if (tir_type_is_byte(type) && !tir_reader_cast(r, args->token, wide, e, &e)) return false;
  return absolute(r, args, e, &size) &&
         tir_reader_constant(r, args->token, tir_type_of(r->ir, e), INFINITY, 0, true, &infinity) &&
         tir_reader_binary(r, args->token, TIR_EQ, size, infinity, &same) && is_nan(r, args, e, &nan) &&
         negated(r, args, nan, &nan) && tir_reader_binary(r, args->token, TIR_AND, same, nan, out);
}

static bool read_class(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e, result, nan;
  if (!exprs_of(r, args, &e, 1) || !expect_number(r, args, e)) return false;
  if (!strcmp(args->name, "isnan")) return is_nan(r, args, e, &result) && give(r, args, result, out);
  if (!is_inf(r, args, e, &result)) return false;
  if (!strcmp(args->name, "isinf")) return give(r, args, result, out);
  return negated(r, args, result, &result) && is_nan(r, args, e, &nan) && negated(r, args, nan, &nan) &&
         tir_reader_binary(r, args->token, TIR_AND, result, nan, &result) && give(r, args, result, out);
}

/* ---- Calls with operands of one type ---- */

static bool read_matched(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e[2];
  const char *op = !strcmp(args->name, "power") ? "pow" : args->name;
  bool bits = strcmp(op, "pow") != 0;
  if (!exprs_of(r, args, e, 2) || !tir_reader_match(r, args->token, &e[0], &e[1]) || !expect_number(r, args, e[0]))
    return false;
  if (tir_is_arithmetic_call(op) && !tir_reader_refuse_truths(r, args->token, e[0])) return false;
  if (bits == tir_type_is_float(tir_type_of(r->ir, e[0])))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes %s", args->name, bits ? "integers" : "floats");
  return call_op(r, args, tir_type_of(r->ir, e[0]), op, e, 2, out);
}

/* T.tvm_storage_sync(scope): what is left out is filled in. */
static bool read_storage_sync(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  struct tir_item v;
  tir_expr e[3] = {TIR_NONE, tir_int(r->ir, TIR_T_BOOL, 0), tir_int(r->ir, TIR_T_I32, -1)};
  static const char *const names[] = {"storage_scope", "is_load", "num_blocks"};
  for (uint32_t i = 0; i < 3; i++)
    if (tir_arg_at(r, args, i, names[i], &v) && !tir_reader_as_expr(r, v, &e[i])) return false;
  if (!e[0]) return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "expected the scope to synchronize");
  return tir_args_done(r, args, 3) && call_op(r, args, TIR_T_VOID, args->name, e, 3, out);
}

static bool read_likely(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_expr e;
  if (!exprs_of(r, args, &e, 1)) return false;
  if (tir_is_int(r->ir, e)) return give(r, args, e, out);
  return call_op(r, args, tir_type_of(r->ir, e), "likely", &e, 1, out);
}

static const struct {
  const char *name;
  bool (*read)(struct tir_reader *, struct tir_args *, struct tir_item *);
} specials[] = {{"ceildiv", read_ceildiv},
                {"Not", read_not_call},
                {"Cast", read_cast},
                {"cast", read_cast},
                {"Select", read_select},
                {"if_then_else", read_if_then_else},
                {"Ramp", read_ramp},
                {"ramp", read_ramp},
                {"Broadcast", read_broadcast},
                {"broadcast", read_broadcast},
                {"Let", read_let},
                {"min_value", read_limit},
                {"max_value", read_limit},
                {"infinity", read_limit},
                {"floor", read_rounding},
                {"ceil", read_rounding},
                {"trunc", read_rounding},
                {"round", read_rounding},
                {"nearbyint", read_rounding},
                {"abs", read_abs},
                {"isnan", read_class},
                {"isinf", read_class},
                {"isfinite", read_class},
                {"pow", read_matched},
                {"power", read_matched},
                {"bitwise_and", read_matched},
                {"bitwise_or", read_matched},
                {"bitwise_xor", read_matched},
                {"shift_left", read_matched},
                {"shift_right", read_matched},
                {"tvm_storage_sync", read_storage_sync},
                {"likely", read_likely}};

/* ---- Calls by name ---- */

/* The type among the arguments, if it is there: takes it out of the run. */
static bool take_type(struct tir_reader *r, struct tir_args *args, enum tir_call_rule rule, tir_type *type,
                      bool *given) {
  struct tir_item v;
  *given = true;
  if (tir_arg_at(r, args, UINT32_MAX, "dtype", &v)) return tir_reader_as_type(r, v, type);
  if (rule == TIR_CALL_LAST && args->count) return tir_reader_as_type(r, r->items[args->first + --args->count], type);
  if (args->count) {
    v = r->items[args->first];
    bool names_type =
        v.kind == TIR_ITEM_TYPE || (v.kind == TIR_ITEM_STRING && tir_type_parse(tir_reader_word(r, v.word), type));
    if (rule == TIR_CALL_FIRST || (rule == TIR_CALL_SAME && names_type)) {
      args->first++;
      args->count--;
      return tir_reader_as_type(r, v, type);
    }
  }
  *given = false;
  if (rule != TIR_CALL_FIRST && rule != TIR_CALL_LAST) return true;
  return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes the data type of its result", args->name);
}

/* T.call_intrin(type, "tirx.name", …) is a call of that name. */
static bool take_intrinsic(struct tir_reader *r, struct tir_args *args) {
  if (!args->count || r->items[args->first].kind != TIR_ITEM_STRING)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.call_intrin takes a data type and a name");
  const char *name = tir_reader_word(r, r->items[args->first].word);
  if (!strncmp(name, "tirx.", 5))
    name += 5;
  else if (!strncmp(name, "tir.", 4))
    name += 4;
  bool good = *name && *name != '.';
  for (const char *c = name; *c && good; c++) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
    bool digit = *c >= '0' && *c <= '9' && c != name && c[-1] != '.';
    good = letter || digit || (*c == '.' && c[1] && c[1] != '.');
  }
  if (!good || strlen(name) > 100)
    return tir_reader_fail(r, args->token, MS_TEXT_NAME, "expected the name of an intrinsic");
  args->name = name;
  args->first++;
  args->count--;
  return true;
}

static bool call_named(struct tir_reader *r, struct tir_args *args, enum tir_call_rule rule, bool given, tir_type type,
                       struct tir_item *out) {
  if (!tir_args_done(r, args, TIR_MOST_ARGS)) return false;
  tir_expr small[16], *operands = args->count <= 16 ? small : malloc(args->count * sizeof *operands);
  if (!operands) abort();
  bool good = true;
  for (uint32_t i = 0; i < args->count && good; i++)
    good = tir_reader_as_argument(r, r->items[args->first + i], &operands[i]) &&
           (!tir_is_arithmetic_call(args->name) || tir_reader_refuse_truths(r, args->token, operands[i]));
  if (good) {
    if (!given) type = tir_call_type(r->ir, rule, operands, args->count);
    good = call_op(r, args, type, args->name, operands, args->count, out);
  }
  if (operands != small) free(operands);
  return good;
}

static bool read_named(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  if (!strncmp(args->name, "tvm_call_packed", 15) || !strncmp(args->name, "tvm_call_cpacked", 16)) args->name += 4;
  enum tir_call_rule rule = tir_call_rule_of(args->name);
  tir_type type = TIR_T_VOID;
  bool given;
  return take_type(r, args, rule, &type, &given) && call_named(r, args, rule, given, type, out);
}

/* T.float32(x): a constant, or x cast. */
static bool read_typed(struct tir_reader *r, struct tir_args *args, tir_type type, struct tir_item *out) {
  struct tir_item v;
  tir_expr e;
  if (!args->count)
    return tir_reader_fail(r, args->token, MS_TEXT_SYNTAX, "a variable is declared in a line of its own: x = T.%s()",
                           args->name);
  v = r->items[args->first];
  if (!tir_args_done(r, args, 1)) return false;
  if (v.kind == TIR_ITEM_STRING) {
    const char *text = tir_reader_word(r, v.word);
    bool negative = *text == '-';
    double real = !strcmp(text + negative, "inf") ? INFINITY : NAN;
    if (isnan(real) && strcmp(text + negative, "nan"))
      return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected \"inf\", \"-inf\" or \"nan\"");
    if (!tir_type_is_float(type))
      return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a float type for this value");
    return tir_reader_constant(r, v.token, type, negative ? -real : real, 0, true, &e) && give(r, args, e, out);
  }
  if (v.kind == TIR_ITEM_INT || v.kind == TIR_ITEM_REAL || v.kind == TIR_ITEM_TRUTH)
    return tir_reader_constant(r, v.token, type, v.kind == TIR_ITEM_REAL ? v.real : 0,
                               v.kind == TIR_ITEM_REAL ? 0 : v.integer, v.kind == TIR_ITEM_REAL, &e) &&
           give(r, args, e, out);
  return tir_reader_as_expr(r, v, &e) && tir_reader_cast(r, v.token, type, e, &e) && give(r, args, e, out);
}

/* Names that are statements, or parts of them. */
static const char *const not_expressions[] = {"axis.spatial",
                                              "axis.reduce",
                                              "axis.opaque",
                                              "axis.remap",
                                              "axis.S",
                                              "axis.R",
                                              "reads",
                                              "writes",
                                              "where",
                                              "sblock",
                                              "block",
                                              "init",
                                              "sblock_attr",
                                              "block_attr",
                                              "match_buffer",
                                              "alloc_buffer",
                                              "sblock_alloc_buffer",
                                              "decl_buffer",
                                              "Buffer",
                                              "attr",
                                              "func_attr",
                                              "grid",
                                              "serial",
                                              "parallel",
                                              "vectorized",
                                              "unroll",
                                              "thread_binding",
                                              "launch_thread",
                                              "env_thread",
                                              "evaluate",
                                              "alloc_shared",
                                              "alloc_local"};

static bool read_known(struct tir_reader *r, struct tir_args *args, struct tir_item *out, bool *known) {
  const char *name = args->name;
  tir_type type;
  *known = true;
  if (tir_type_parse(name, &type) || (!strcmp(name, "boolean") && (type = TIR_T_BOOL)))
    return read_typed(r, args, type, out);
  for (size_t i = 0; i < sizeof binaries / sizeof binaries[0]; i++)
    if (!strcmp(binaries[i].name, name)) return read_binary_call(r, args, &binaries[i], out);
  for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++)
    if (!strcmp(specials[i].name, name)) return specials[i].read(r, args, out);
  *known = false;
  return true;
}

/* Refuses names that are no functions. */
static bool check_name(struct tir_reader *r, const struct tir_args *args) {
  for (size_t i = 0; i < sizeof not_expressions / sizeof not_expressions[0]; i++)
    if (!strcmp(not_expressions[i], args->name))
      return tir_reader_fail(r, args->token, MS_TEXT_SYNTAX, "T.%s cannot stand here", args->name);
  if (strncmp(args->name, "Module.", 7)) return true; /* such names mean functions of this module */
  return tir_reader_fail(r, args->token, MS_TEXT_NAME, "\"%.80s\" is no name of TIR", args->name);
}

static bool read_intrinsic(struct tir_reader *r, struct tir_args *args, struct tir_item *out) {
  tir_type type = TIR_T_VOID;
  bool given, known;
  if (!take_type(r, args, TIR_CALL_FIRST, &type, &given) || !take_intrinsic(r, args) || !check_name(r, args) ||
      !read_known(r, args, out, &known))
    return false;
  if (!known) return call_named(r, args, TIR_CALL_FIRST, true, type, out);
  tir_expr e;
  char text[24];
  if (!tir_reader_as_expr(r, *out, &e)) return false;
  if (tir_type_of(r->ir, e) == type) return true;
  return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s gives %s here", args->name,
                         tir_type_text(tir_type_of(r->ir, e), text));
}

bool tir_read_call(struct tir_reader *r, const char *name, uint32_t token, struct tir_item *out) {
  assert(name && out);
  struct tir_args args = {.token = token, .name = name};
  bool known;
  if (!check_name(r, &args) || !tir_read_args(r, &args)) return false;
  if (!strcmp(name, "handle")) {
    *out = (struct tir_item){.kind = TIR_ITEM_TYPE, .token = token, .type = TIR_T_HANDLE};
    return true;
  }
  if (!strcmp(name, "call_intrin")) return read_intrinsic(r, &args, out);
  if (!read_known(r, &args, out, &known)) return false;
  return known || read_named(r, &args, out);
}

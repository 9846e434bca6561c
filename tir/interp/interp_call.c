/* Compiles calls by name for the reference interpreter: one table of what is known, device calls (interp_device.c),
 * then what callers register. */
#include "interp_compile.h"
#include "tir/arith/bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
enum form { /* how a call by name is compiled */
  FORM_SAME, FORM_CHOOSE, FORM_UNARY, FORM_BINARY, FORM_BITS, FORM_FMA, FORM_LIMIT, FORM_REINTERPRET, FORM_ASSUME,
  FORM_ZERO, FORM_ONE, FORM_ADDRESS, FORM_POINTER, FORM_RETURN, FORM_DOT, FORM_SLIDE
};
// clang-format on
static const struct builtin {
  const char *name;
  enum form form;
  int arity, which;
} builtins[] = {
    {"likely", FORM_SAME, 1, 0},
    {"if_then_else", FORM_CHOOSE, 3, 0},
    {"isnan", FORM_UNARY, 1, OP_IS_NAN},
    {"isinf", FORM_UNARY, 1, OP_IS_INF},
    {"isfinite", FORM_UNARY, 1, OP_IS_FINITE},
    {"clz", FORM_UNARY, 1, OP_CLZ},
    {"popcount", FORM_UNARY, 1, OP_POPCOUNT},
    {"bitwise_not", FORM_UNARY, 1, OP_BIT_NOT},
    {"bitwise_and", FORM_BITS, 2, OP_BIT_AND},
    {"bitwise_or", FORM_BITS, 2, OP_BIT_OR},
    {"bitwise_xor", FORM_BITS, 2, OP_BIT_XOR},
    {"shift_left", FORM_BITS, 2, OP_SHIFT_LEFT},
    {"shift_right", FORM_BITS, 2, OP_SHIFT_RIGHT},
    {"truncdiv", FORM_BINARY, 2, TIR_DIV},
    {"truncmod", FORM_BINARY, 2, TIR_MOD},
    {"floordiv", FORM_BINARY, 2, TIR_FLOORDIV},
    {"floormod", FORM_BINARY, 2, TIR_FLOORMOD},
    {"min", FORM_BINARY, 2, TIR_MIN},
    {"max", FORM_BINARY, 2, TIR_MAX},
    {"fma", FORM_FMA, 3, 0},
    {TIR_DOT_LANES, FORM_DOT, 3, 0},
    {TIR_SLIDE_LANES, FORM_SLIDE, 2, 0},
    {"infinity", FORM_LIMIT, -1, 0},
    {"max_value", FORM_LIMIT, -1, 1},
    {"min_value", FORM_LIMIT, -1, 2},
    {"reinterpret", FORM_REINTERPRET, 1, 0},
    {"assume", FORM_ASSUME, 1, 0},
    {"undef", FORM_ZERO, 0, 0},
    {TIR_IS_ALIGNED, FORM_ONE, 2, 0},
    {"address_of", FORM_ADDRESS, -1, 0},
    {"tvm_access_ptr", FORM_POINTER, 5, 0},
    {"ret", FORM_RETURN, 1, 0},
};

static const struct builtin *find_builtin(const char *name) {
  for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
    if (!strcmp(builtins[i].name, name)) return &builtins[i];
  return NULL;
}

static operand limit(struct compiler *c, tir_type t, int which) {
  union value v;
  int bits = tir_type_bits(t);
  if (tir_type_is_float(t)) {
    double most = tir_greatest_float(t);
    v.f = which == 0 ? INFINITY : which == 1 ? most : -most;
  } else if (tir_type_code(t) == TIR_INT) {
    int64_t most = (int64_t)(UINT64_MAX >> (64 - bits) >> 1);
    v.i = which == 1 ? most : -most - 1;
  } else {
    v.i = which == 2 ? 0 : (int64_t)(UINT64_MAX >> (64 - (bits ? bits : 1)));
  }
  if (!tir_type_is_float(t) && which == 0) return interp_refuse(c, MS_RUN_UNSUPPORTED, "an integer has no infinity");
  return interp_constant(c, v);
}

static operand math(struct compiler *c, const struct tir_expr_node *n, const char *name, int lane, bool *found) {
  assert(lane >= 0);
  tir_type t = tir_type_with_lanes(n->type, 1);
  const tir_expr *args = tir_operands(c->ir, n->operands);
  *found = true;
  if (n->count == 1 && tir_type_is_int(t) && (!strcmp(name, "abs") || !strcmp(name, "fabs"))) {
    operand a = interp_expr(c, args[0], lane), dst = interp_registers(c, 1);
    interp_emit(c, OP_ABS_INT, dst, a, 0, 0, (operand)t);
    return dst;
  }
  int which = interp_math_find(name, n->count);
  *found = which >= 0;
  if (which < 0) return 0;
  bool scales = !strcmp(name, "ldexp"); /* by an integer */
  for (uint32_t i = 0; i < n->count; i++)
    if (!tir_type_is_float(tir_type_of(c->ir, args[i])) && !(scales && i == 1))
      return interp_refuse(c, MS_RUN_UNSUPPORTED, "%s of an integer is not interpreted", name);
  operand a = interp_expr(c, args[0], lane), b = n->count == 2 ? interp_expr(c, args[1], lane) : 0,
          dst = interp_registers(c, 1);
  if (scales && tir_type_is_int(tir_type_of(c->ir, args[1]))) {
    operand exponent = interp_registers(c, 1);
    interp_emit(c, OP_FROM_INT, exponent, b, 0, 0, (operand)TIR_TYPE(TIR_FLOAT, 64, 1));
    b = exponent;
  }
  if (n->count == 1)
    interp_emit(c, OP_MATH1, dst, a, (operand)which, 0, (operand)t);
  else
    interp_emit(c, OP_MATH2, dst, a, b, (operand)which, (operand)t);
  return dst;
}

static operand assume(struct compiler *c, tir_expr condition) {
  operand a = interp_expr(c, condition, 0);
  interp_emit(c, OP_ASSERT, 0, a, 0, 0, 0);
  return a;
}

/* address_of(buffer[indices]). */
static operand address(struct compiler *c, const struct tir_expr_node *n) {
  assert(n->kind == TIR_CALL);
  const struct tir_expr_node *element = n->count ? tir_at(c->ir, tir_operands(c->ir, n->operands)[0]) : NULL;
  if (!element || element->kind != TIR_LOAD)
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "address_of takes an element of a buffer");
  operand indices[INTERP_MOST_RANK], dst = interp_registers(c, 1);
  uint32_t slot = interp_slot(c, element->ref);
  uint32_t rank = interp_indices(c, element->ref, tir_operands(c->ir, element->operands), element->count, 0, indices);
  if (c->failed) return 0;
  uint32_t first = interp_list(c, indices, rank);
  uint32_t at = interp_emit(c, OP_ADDRESS, dst, (operand)slot, (operand)first, 0, 0);
  if (!c->failed) c->program->code.at[at].rank = (uint8_t)rank;
  return dst;
}

/* The type that an argument such as type_annotation("float32") states. */
static tir_type annotated_type(const struct compiler *c, tir_expr e) {
  const struct tir_expr_node *n = tir_at(c->ir, e);
  tir_type t = n->type;
  if (n->kind == TIR_CALL && n->count == 1) n = tir_at(c->ir, tir_operands(c->ir, n->operands)[0]);
  if (n->kind == TIR_STRING_IMM && !tir_type_parse(tir_text(c->ir, n->ref), &t)) t = TIR_T_VOID;
  return t;
}

static operand pointer(struct compiler *c, const struct tir_expr_node *n) {
  struct tir_pointer p;
  bool leads = tir_pointer_of(c->ir, n, &p);
  assert(leads && "forms are distinguished by names and operands");
  (void)leads;
  tir_type t = tir_type_with_lanes(annotated_type(c, p.type), 1);
  if (!interp_has_format(t)) return interp_refuse(c, MS_RUN_UNSUPPORTED, "a pointer's type is not known");
  operand data = interp_expr(c, p.data, 0), offset = interp_expr(c, p.offset, 0), dst = interp_registers(c, 1);
  interp_emit(c, OP_POINTER_ADD, dst, data, offset, interp_int(c, interp_format_size(interp_format(t))), 0);
  return dst;
}

static struct call_arg call_argument(struct compiler *c, tir_expr e) {
  const struct tir_expr_node *n = tir_at(c->ir, e);
  struct call_arg arg = {.value = interp_int(c, 0), .extent = NO_OPERAND, .type = n->type, .access = 3};
  if (n->kind == TIR_STRING_IMM) {
    arg.text = n->ref;
    return arg;
  }
  const tir_expr *args = tir_operands(c->ir, n->operands);
  if (tir_type_lanes(n->type) > 1) interp_refuse(c, MS_RUN_UNSUPPORTED, "a vector is passed to a function by name");
  arg.value = interp_expr(c, e, 0);
  if (n->kind == TIR_DATA) arg.type = tir_buffer_at(c->ir, n->ref)->type, arg.slot = interp_slot(c, n->ref) + 1;
  if (n->kind == TIR_CALL && !strcmp(tir_text(c->ir, n->ref), "address_of") && n->count)
    arg.type = tir_type_of(c->ir, args[0]);
  struct tir_pointer p;
  if (tir_pointer_of(c->ir, n, &p)) {
    arg.type = tir_type_with_lanes(annotated_type(c, p.type), 1);
    arg.extent = interp_expr(c, p.extent, 0);
    if (p.uses >= 0) arg.access = (uint32_t)p.uses;
  }
  return arg;
}

static const struct tir_extern *find_extern(const struct compiler *c, const char *name) {
  for (uint32_t i = 0; c->options && i < c->options->extern_count; i++)
    if (!strcmp(c->options->externs[i].name, name)) return &c->options->externs[i];
  return interp_device_call(tir_device_call_named(name));
}

/* How many threads make a call of ours as one; 0: each makes it for itself. */
static operand threads_together(enum tir_device_call which) {
  static const operand together[] = {
      [TIR_BY_LANES] = WARP, [TIR_BY_WARP] = WARP, [TIR_BY_GROUP] = TIR_GROUP, [TIR_BY_BLOCK] = 0};
  return which == TIR_DEVICE_CALLS ? 0 : together[tir_device_calls[which].by];
}

/* The number of the thread that a statement is for, where threads take turns: that of the loop bound to threadIdx.x. */
static struct call_arg lane_argument(struct compiler *c) {
  struct call_arg lane = {.value = interp_int(c, 0), .extent = NO_OPERAND, .type = TIR_T_I32};
  for (tir_stmt s = c->place; s; s = tir_stmt_at(c->ir, s)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
    if (tir_loop_axis(c->ir, s) != TIR_THREAD_X) continue;
    lane.value = c->var_at[n->loop.var];
    break;
  }
  return lane;
}

static operand thread_number(struct compiler *c) {
  operand dst = interp_registers(c, 1);
  interp_emit(c, OP_THREAD_NUMBER, dst, 0, 0, 0, 0);
  return dst;
}

static operand external(struct compiler *c, const struct tir_expr_node *n, const char *name) {
  const tir_expr *args = tir_operands(c->ir, n->operands);
  uint32_t first = 0;
  if ((!strcmp(name, "call_extern") || !strcmp(name, "call_pure_extern")) && n->count) {
    tir_type t;
    /* The name is the first string that names no type. */
    while (first < n->count && (tir_at(c->ir, args[first])->kind != TIR_STRING_IMM ||
                                tir_type_parse(tir_text(c->ir, tir_at(c->ir, args[first])->ref), &t)))
      first++;
    if (first < n->count) name = tir_text(c->ir, tir_at(c->ir, args[first++])->ref);
  }
  if (!strcmp(name, TIR_THREAD_NUMBER) && first == n->count) return thread_number(c);
  const struct tir_extern *handler = find_extern(c, name);
  if (!handler) return interp_refuse(c, MS_RUN_UNKNOWN_CALL, "nothing is known of the function %s", name);
  struct site site = {.handler = handler, .result = n->type, .name = handler->name};
  INTERP_LIST(struct call_arg, list) = {0};
  for (uint32_t i = first; i < n->count; i++) INTERP_PUSH(list, call_argument(c, args[i]));
  enum tir_device_call which = tir_device_call_named(name);
  bool by_lanes = which != TIR_DEVICE_CALLS && tir_device_calls[which].by == TIR_BY_LANES;
  if (by_lanes) INTERP_PUSH(list, lane_argument(c));
  site.args.count = list.count;
  site.args.first = c->program->lists.count;
  for (uint32_t i = 0; i < list.count; i++) {
    struct call_arg a = list.at[i];
    interp_list(c,
                (int32_t[CALL_ARG_WORDS]){a.value, a.extent, (int32_t)a.type, (int32_t)a.access, (int32_t)a.text,
                                          (int32_t)a.slot},
                CALL_ARG_WORDS);
  }
  free(list.at);
  INTERP_PUSH(c->program->sites, site);
  operand dst = interp_registers(c, 1);
  operand together = handler == interp_device_call(which) ? threads_together(which) : 0;
  /* A lane touches elements that it alone holds under a condition of its own, too. */
  bool own = which == TIR_MMA_GET || which == TIR_MMA_PUT || which == TIR_WGMMA_GET || which == TIR_WGMMA_PUT;
  bool joint = c->in_kernel && together && !own;
  if (joint) interp_emit(c, OP_WARP, 0, together, 0, 0, 0);
  interp_emit(c, OP_EXTERN, dst, (operand)(c->program->sites.count - 1), 0, 0, 0);
  if (joint) interp_emit(c, OP_WARP, 0, together, 0, 0, 0);
  return dst;
}

/* ---- Every call ---- */

static operand unary(struct compiler *c, enum op op, tir_type of, operand a) {
  operand dst = interp_registers(c, 1);
  interp_emit(c, op, dst, a, 0, 0, (operand)tir_type_with_lanes(of, 1));
  return dst;
}

static operand bits(struct compiler *c, enum op op, tir_type of, operand a, operand b) {
  operand dst = interp_registers(c, 1);
  interp_emit(c, op, dst, a, b, 0, (operand)tir_type_with_lanes(of, 1));
  return dst;
}

static operand reinterpret(struct compiler *c, tir_type from, tir_type to, operand a) {
  from = tir_type_with_lanes(from, 1);
  to = tir_type_with_lanes(to, 1);
  enum format x = interp_format(from), y = interp_format(to);
  if (x == FORMAT_BAD || y == FORMAT_BAD || tir_type_bits(from) != tir_type_bits(to))
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "reinterpret joins types of different size");
  operand dst = interp_registers(c, 1);
  interp_emit(c, OP_REINTERPRET, dst, a, (operand)from, 0, (operand)to);
  return dst;
}

static operand fma_call(struct compiler *c, const tir_expr *args, tir_type t, int lane) {
  operand x = interp_expr(c, args[0], lane), y = interp_expr(c, args[1], lane), z = interp_expr(c, args[2], lane);
  operand dst = interp_registers(c, 1);
  interp_emit(c, OP_FMA, dst, x, y, z, (operand)tir_type_with_lanes(t, 1));
  return dst;
}

static operand widened(struct compiler *c, tir_expr e, int lane, tir_type to) {
  return interp_cast(c, tir_type_of(c->ir, e), to, interp_expr(c, e, lane));
}

/* dot_lanes(c, a, b): an operand of one lane's elements stands for each. A lane that is stored need not have a value:
 * lanes past the last column are nobody's (tir/lower/vector/dots.c). */
static operand dot_of_lane(struct compiler *c, const struct tir_expr_node *n, int lane) {
  const tir_expr *args = tir_operands(c->ir, n->operands);
  tir_type to = tir_type_with_lanes(n->type, 1);
  int width = tir_dot_lanes_width(c->ir, n), count[2];
  if (!width) return interp_refuse(c, MS_RUN_UNSUPPORTED, "the operands of dot_lanes are none that it takes");
  for (int i = 0; i < 2; i++) count[i] = tir_type_lanes(tir_type_of(c->ir, args[i + 1]));
  bool outer = c->loads_lane;
  c->loads_lane = c->stores_lanes;
  operand sum = interp_expr(c, args[0], lane);
  for (int p = 0; p < width; p++) {
    int a = count[0] == width ? p : lane * width + p, b = count[1] == width ? p : lane * width + p;
    c->loads_lane = c->stores_lanes && count[0] > width;
    operand x = widened(c, args[1], a, to);
    c->loads_lane = c->stores_lanes && count[1] > width;
    operand y = widened(c, args[2], b, to);
    sum = interp_binary(c, TIR_ADD, sum, interp_binary(c, TIR_MUL, x, y, to), to);
  }
  c->loads_lane = outer;
  return sum;
}

/* slide_lanes(words, elements): a word's elements but the first, and behind them the lane's. */
static operand slide(struct compiler *c, const struct tir_expr_node *n, int lane) {
  const tir_expr *args = tir_operands(c->ir, n->operands);
  if (!tir_is_slide(c->ir, n))
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "the operands of slide_lanes are none that it takes");
  bool last = lane % TIR_SLIDE_WORD == TIR_SLIDE_WORD - 1;
  return last ? interp_expr(c, args[1], lane / TIR_SLIDE_WORD) : interp_expr(c, args[0], lane + 1);
}

static operand call_builtin(struct compiler *c, const struct builtin *known, const struct tir_expr_node *n, int lane) {
  const tir_expr *args = tir_operands(c->ir, n->operands);
  tir_type of = n->count ? tir_type_with_lanes(tir_type_of(c->ir, args[0]), 1) : TIR_T_VOID;
  switch (known->form) {
  case FORM_SAME: return interp_expr(c, args[0], lane);
  case FORM_CHOOSE: return interp_choose(c, args[0], args[1], args[2], lane);
  case FORM_UNARY: return unary(c, (enum op)known->which, of, interp_expr(c, args[0], lane));
  case FORM_BITS: {
    operand a = interp_expr(c, args[0], lane), b = interp_expr(c, args[1], lane);
    return bits(c, (enum op)known->which, of, a, b);
  }
  case FORM_BINARY: {
    operand a = interp_expr(c, args[0], lane), b = interp_expr(c, args[1], lane);
    return interp_binary(c, (enum tir_kind)known->which, a, b, of);
  }
  case FORM_FMA: return fma_call(c, args, n->type, lane);
  case FORM_DOT: return dot_of_lane(c, n, lane);
  case FORM_SLIDE: return slide(c, n, lane);
  case FORM_LIMIT: return limit(c, n->type, known->which);
  case FORM_REINTERPRET: return reinterpret(c, of, n->type, interp_expr(c, args[n->count - 1], lane));
  case FORM_ASSUME: return assume(c, args[0]);
  case FORM_ZERO: return interp_int(c, 0);
  case FORM_ONE: return interp_int(c, 1);
  case FORM_ADDRESS: return address(c, n);
  case FORM_POINTER: return pointer(c, n);
  case FORM_RETURN:
    if (c->in_kernel) return interp_refuse(c, MS_RUN_UNSUPPORTED, "a thread of a kernel returns before its end");
    interp_emit(c, OP_HALT, 0, 0, 0, 0, 0);
    return interp_int(c, 0);
  }
  return 0;
}

operand interp_call(struct compiler *c, tir_expr e, int lane) {
  assert(tir_at(c->ir, e)->kind == TIR_CALL);
  const struct tir_expr_node *n = tir_at(c->ir, e);
  const char *name = tir_text(c->ir, n->ref);
  const struct builtin *known = find_builtin(name);
  if (known && known->arity >= 0 && (uint32_t)known->arity != n->count)
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "%s takes %d arguments, not %u", name, known->arity, n->count);
  if (known) return call_builtin(c, known, n, lane);
  bool found;
  operand compiled = interp_compile_device(c, e, lane, &found);
  if (found) return compiled;
  operand at = math(c, n, name, lane, &found);
  if (found || c->failed) return at;
  if (tir_type_lanes(n->type) > 1) return interp_refuse(c, MS_RUN_UNSUPPORTED, "%s gives a vector", name);
  return external(c, n, name);
}

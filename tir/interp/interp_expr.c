/* Compiles expressions for the reference interpreter, one lane at a time.
 *
 * What a program may leave out is left out: a Select, an and, an or, an if_then_else computes only the operands that
 * decide its value. TVM's Select computes both; that differs only by faults (an index out of bounds, a division by
 * zero) in the operand not taken, which compiled code tolerates, so the interpreter does. */
#include "interp_compile.h"
#include "tir/analysis/loads.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { MOST_DEPTH = 4000, MOST_CODE = 1 << 24 };

/* ---- Registers, constants, code ---- */

operand interp_refuse(struct compiler *c, enum ms_code code, const char *format, ...) {
  if (c->failed) return 0;
  c->failed = true;
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  tir_refuse(c->ir, c->err, code, c->place, "%s", text);
  return 0;
}

operand interp_registers(struct compiler *c, int count) {
  assert(count >= 0);
  operand first = c->registers;
  c->registers += count;
  if ((uint32_t)c->registers > c->program->registers) c->program->registers = (uint32_t)c->registers;
  return first;
}

operand interp_constant(struct compiler *c, union value v) {
  /* The newest are the likeliest to be wanted again. */
  for (uint32_t i = c->program->constants.count, tries = 16; i-- > 0 && tries-- > 0;)
    if (c->program->constants.at[i].i == v.i) return -1 - (operand)i;
  INTERP_PUSH(c->program->constants, v);
  return -(operand)c->program->constants.count;
}

uint32_t interp_emit(struct compiler *c, enum op op, operand dst, operand a, operand b, operand cc, operand d) {
  if (c->program->code.count >= MOST_CODE) interp_refuse(c, MS_TOO_LARGE, "the function is too large to interpret");
  if (c->failed) return 0;
  INTERP_PUSH(c->program->code, (struct instruction){.op = (uint16_t)op, .dst = dst, .a = a, .b = b, .c = cc, .d = d});
  INTERP_PUSH(c->program->places, c->place);
  return c->program->code.count - 1;
}

uint32_t interp_list(struct compiler *c, const int32_t *values, uint32_t count) {
  assert(values || !count);
  uint32_t first = c->program->lists.count;
  for (uint32_t i = 0; i < count; i++) INTERP_PUSH(c->program->lists, values[i]);
  return first;
}

/* ---- Scopes ---- */

struct scope interp_enter(const struct compiler *c) {
  return (struct scope){c->undos.count, c->registers};
}

void interp_leave(struct compiler *c, struct scope scope) {
  while (c->undos.count > scope.undos) {
    struct undo u = c->undos.at[--c->undos.count];
    operand *table = u.kind == DEFINED_EXPR ? c->computed : u.kind == DEFINED_VAR ? c->var_at : c->slot_of;
    table[u.index] = u.before;
    if (u.kind == DEFINED_EXPR) c->computed_by[u.index] = 0; /* what stood before was of another statement */
  }
  c->registers = scope.registers;
}

static void define(struct compiler *c, enum definition kind, operand *table, uint32_t index, operand at) {
  INTERP_PUSH(c->undos, (struct undo){kind, index, table[index]});
  table[index] = at;
}

void interp_define_var(struct compiler *c, tir_var v, operand at) { define(c, DEFINED_VAR, c->var_at, v, at); }

uint32_t interp_define_buffer(struct compiler *c, tir_buffer b) {
  uint32_t slot = c->program->slots.count;
  INTERP_PUSH(c->program->slots, b);
  define(c, DEFINED_BUFFER, c->slot_of, b, (operand)slot);
  return slot;
}

static bool is_among(const struct tir *ir, const tir_expr *at, uint32_t count, uint32_t index) {
  for (uint32_t i = 0; i < count; i++)
    if (tir_at(ir, at[i])->ref == index) return true;
  return false;
}

void interp_hide_others(struct compiler *c, const struct tir_captures *captures) {
  const tir_expr *vars = captures->at + captures->buffers;
  for (tir_buffer b = 1; b < c->ir->buffers.count; b++)
    if (c->slot_of[b] != NO_OPERAND && !is_among(c->ir, captures->at, captures->buffers, b))
      define(c, DEFINED_BUFFER, c->slot_of, b, NO_OPERAND);
  for (tir_var v = 1; v < c->ir->vars.count; v++)
    if (c->var_at[v] != NO_OPERAND && !is_among(c->ir, vars, captures->vars, v)) interp_define_var(c, v, NO_OPERAND);
}

uint32_t interp_slot(struct compiler *c, tir_buffer b) {
  if (c->slot_of[b] == NO_OPERAND) {
    interp_refuse(c, MS_RUN_NOT_IN_SCOPE, "buffer %s is used where it is neither a parameter nor allocated",
                  tir_buffer_name(c->ir, b));
    return 0;
  }
  return (uint32_t)c->slot_of[b];
}

/* ---- Binary operators ---- */

static bool is_uint64(tir_type t) { return tir_type_code(t) == TIR_UINT && tir_type_bits(t) == 64; }

/* The variant of ADD, SUB or MUL that keeps results in type t. */
static int arithmetic_variant(tir_type t) {
  assert(tir_type_lanes(t) <= 1 || tir_type_bits(t));
  int bits = tir_type_bits(t);
  if (tir_type_code(t) == TIR_FLOAT && bits == 32) return OP_ADD_F32 - OP_ADD_I32;
  if (tir_type_code(t) == TIR_FLOAT && bits == 64) return OP_ADD_F64 - OP_ADD_I32;
  if (tir_type_is_float(t)) return OP_ADD_FLOAT - OP_ADD_I32;
  if (bits == 64) return OP_ADD_I64 - OP_ADD_I32;
  return tir_type_code(t) == TIR_INT && bits == 32 ? 0 : OP_ADD_INT - OP_ADD_I32;
}

/* Of floats: floor(a / b), and a - floor(a / b) * b, each operation rounded. */
static operand floor_divide(struct compiler *c, enum tir_kind kind, tir_type t, operand a, operand b) {
  assert(kind == TIR_FLOORDIV || kind == TIR_FLOORMOD);
  operand quotient = interp_registers(c, 1), floored = interp_registers(c, 1);
  interp_emit(c, OP_DIV_FLOAT, quotient, a, b, 0, (operand)t);
  interp_emit(c, OP_MATH1, floored, quotient, TIR_FUNCTION_floor, 0, (operand)t);
  if (kind == TIR_FLOORDIV) return floored;
  operand product = interp_registers(c, 1), rest = interp_registers(c, 1);
  interp_emit(c, OP_MUL_FLOAT, product, floored, b, 0, (operand)t);
  interp_emit(c, OP_SUB_FLOAT, rest, a, product, 0, (operand)t);
  return rest;
}

static operand divide(struct compiler *c, enum tir_kind kind, tir_type t, operand a, operand b) {
  assert(kind >= TIR_DIV && kind <= TIR_FLOORMOD);
  bool floors = kind == TIR_FLOORDIV || kind == TIR_FLOORMOD;
  if (tir_type_is_float(t) && floors) return floor_divide(c, kind, t, a, b);
  operand dst = interp_registers(c, 1);
  if (tir_type_is_float(t)) {
    if (kind == TIR_DIV)
      interp_emit(c, t == TIR_T_F32 ? OP_DIV_F32 : OP_DIV_FLOAT, dst, a, b, 0, (operand)t);
    else
      interp_emit(c, OP_MOD_FLOAT, dst, a, b, 0, (operand)t);
    return dst;
  }
  bool quotient = kind == TIR_DIV || kind == TIR_FLOORDIV;
  enum op op;
  if (tir_type_code(t) == TIR_UINT)
    op = quotient ? OP_DIV_UINT : OP_MOD_UINT;
  else if (kind == TIR_DIV || kind == TIR_MOD)
    op = quotient ? OP_DIV_INT : OP_MOD_INT;
  else
    op = quotient ? OP_FLOORDIV_INT : OP_FLOORMOD_INT;
  interp_emit(c, op, dst, a, b, 0, (operand)t);
  return dst;
}

static enum op comparison(enum tir_kind kind, tir_type t) {
  assert(kind >= TIR_EQ && kind <= TIR_GE);
  bool real = tir_type_is_float(t), large = is_uint64(t);
  switch (kind) {
  case TIR_EQ: return real ? OP_EQ_FLOAT : OP_EQ_INT;
  case TIR_NE: return real ? OP_NE_FLOAT : OP_NE_INT;
  case TIR_LT:
  case TIR_GT: return real ? OP_LT_FLOAT : large ? OP_LT_UINT : OP_LT_INT;
  default: return real ? OP_LE_FLOAT : large ? OP_LE_UINT : OP_LE_INT;
  }
}

operand interp_binary(struct compiler *c, enum tir_kind kind, operand a, operand b, tir_type of) {
  if (kind >= TIR_DIV && kind <= TIR_FLOORMOD) return divide(c, kind, of, a, b);
  operand dst = interp_registers(c, 1);
  bool real = tir_type_is_float(of);
  switch (kind) {
  case TIR_ADD: interp_emit(c, OP_ADD_I32 + arithmetic_variant(of), dst, a, b, 0, (operand)of); break;
  case TIR_SUB: interp_emit(c, OP_SUB_I32 + arithmetic_variant(of), dst, a, b, 0, (operand)of); break;
  case TIR_MUL: interp_emit(c, OP_MUL_I32 + arithmetic_variant(of), dst, a, b, 0, (operand)of); break;
  case TIR_MIN: interp_emit(c, real ? OP_MIN_FLOAT : is_uint64(of) ? OP_MIN_UINT : OP_MIN_INT, dst, a, b, 0, 0); break;
  case TIR_MAX: interp_emit(c, real ? OP_MAX_FLOAT : is_uint64(of) ? OP_MAX_UINT : OP_MAX_INT, dst, a, b, 0, 0); break;
  case TIR_GT:
  case TIR_GE: interp_emit(c, comparison(kind, of), dst, b, a, 0, 0); break;
  default: interp_emit(c, comparison(kind, of), dst, a, b, 0, 0); break;
  }
  bool extreme = kind == TIR_MIN || kind == TIR_MAX;
  if (extreme && tir_type_is_byte(of)) interp_emit(c, OP_ROUND, dst, dst, 0, 0, (operand)of); /* infinities saturate */
  return dst;
}

static operand compile_binary(struct compiler *c, const struct tir_expr_node *n, int lane) {
  assert(n->kind >= TIR_ADD && n->kind <= TIR_OR);
  tir_type of = tir_type_of(c->ir, n->a);
  if (tir_type_is_float(of) != tir_type_is_float(tir_type_of(c->ir, n->b)))
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "an operator joins a float and an integer");
  operand a = interp_expr(c, n->a, lane), b = interp_expr(c, n->b, lane);
  return interp_binary(c, (enum tir_kind)n->kind, a, b, tir_type_with_lanes(of, 1));
}

/* ---- What is computed only if it decides ---- */

/* dst = condition ? yes : no, with only one of the two computed. */
operand interp_choose(struct compiler *c, tir_expr condition, tir_expr yes, tir_expr no, int lane) {
  operand dst = interp_registers(c, 1);
  struct scope outer = interp_enter(c);
  int condition_lane = tir_type_lanes(tir_type_of(c->ir, condition)) > 1 ? lane : 0;
  uint32_t to_no = interp_emit(c, OP_JUMP_IF_NOT, 0, interp_expr(c, condition, condition_lane), 0, 0, 0);
  interp_leave(c, outer);
  interp_expr_to(c, dst, yes, lane);
  interp_leave(c, outer);
  uint32_t to_end = interp_emit(c, OP_JUMP, 0, 0, 0, 0, 0);
  if (c->failed) return 0;
  c->program->code.at[to_no].b = (operand)interp_here(c);
  interp_expr_to(c, dst, no, lane);
  interp_leave(c, outer);
  if (c->failed) return 0;
  c->program->code.at[to_end].b = (operand)interp_here(c);
  return dst;
}

static operand short_circuit(struct compiler *c, const struct tir_expr_node *n, int lane) {
  assert(n->kind == TIR_AND || n->kind == TIR_OR);
  const struct tir_expr_node *b = tir_at(c->ir, n->b);
  /* What cannot fault is cheaper computed than jumped over. */
  if (!(b->flags & (TIR_HAS_LOAD | TIR_HAS_CALL | TIR_HAS_DIVMOD))) {
    operand x = interp_expr(c, n->a, lane), y = interp_expr(c, n->b, lane), dst = interp_registers(c, 1);
    interp_emit(c, n->kind == TIR_AND ? OP_AND : OP_OR, dst, x, y, 0, 0);
    return dst;
  }
  operand dst = interp_registers(c, 1);
  struct scope outer = interp_enter(c);
  interp_expr_to(c, dst, n->a, lane);
  uint32_t skip = interp_emit(c, n->kind == TIR_AND ? OP_JUMP_IF_NOT : OP_JUMP_IF, 0, dst, 0, 0, 0);
  interp_leave(c, outer);
  interp_expr_to(c, dst, n->b, lane);
  interp_leave(c, outer);
  if (c->failed) return 0;
  c->program->code.at[skip].b = (operand)interp_here(c);
  return dst;
}

/* ---- Casts ---- */

operand interp_cast(struct compiler *c, tir_type from, tir_type to, operand a) {
  from = tir_type_with_lanes(from, 1);
  to = tir_type_with_lanes(to, 1);
  char text[24], to_text[24];
  if (!interp_has_format(from) || !interp_has_format(to))
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "a cast from %s to %s is not interpreted", tir_type_text(from, text),
                         tir_type_text(to, to_text));
  if (from == to) return a;
  operand dst = interp_registers(c, 1);
  bool to_bool = tir_type_code(to) == TIR_BOOL;
  enum op op;
  if (tir_type_is_float(from))
    op = to_bool ? OP_FLOAT_TO_BOOL : tir_type_is_float(to) ? OP_ROUND : OP_TO_INT;
  else if (tir_type_is_float(to))
    op = is_uint64(from) ? OP_FROM_UINT : OP_FROM_INT;
  else
    op = to_bool ? OP_INT_TO_BOOL : OP_WRAP;
  interp_emit(c, op, dst, a, 0, 0, (operand)to);
  return dst;
}

/* ---- Accesses ---- */

uint32_t interp_indices(struct compiler *c, tir_buffer b, const tir_expr *indices, uint32_t count, int lane,
                        operand *out) {
  assert(count <= INTERP_MOST_RANK);
  const struct tir_buffer_node *buffer = tir_buffer_at(c->ir, b);
  if (count != buffer->rank || count + 1 > INTERP_MOST_RANK) {
    interp_refuse(c, MS_RUN_RANK, "buffer %s has %u dimensions and is accessed with %u indices",
                  tir_text(c->ir, buffer->name), buffer->rank, count);
    return 0;
  }
  int element_lanes = tir_type_lanes(buffer->type);
  for (uint32_t i = 0; i < count; i++) {
    bool vector = tir_type_lanes(tir_type_of(c->ir, indices[i])) > 1;
    out[i] = interp_expr(c, indices[i], vector ? lane / element_lanes : 0);
  }
  if (element_lanes == 1) return count;
  out[count] = interp_int(c, lane % element_lanes);
  return count + 1;
}

void interp_emit_access(struct compiler *c, bool store, operand value, uint32_t slot, tir_type type,
                        const operand *indices, uint32_t rank) {
  int op = store ? OP_STORE : OP_LOAD;
  if (rank < 1 || rank > 3) {
    uint32_t first = interp_list(c, indices, rank);
    uint32_t at = interp_emit(c, (enum op)op, value, (operand)slot, (operand)first, 0, 0);
    if (!c->failed) c->program->code.at[at].rank = (uint8_t)rank;
    return;
  }
  if (tir_type_with_lanes(type, 1) == TIR_T_F32)
    op = (store ? OP_STORE1_F32 : OP_LOAD1_F32) + (int)rank - 1;
  else
    op = (store ? OP_STORE1 : OP_LOAD1) + (int)rank - 1;
  uint32_t at = interp_emit(c, (enum op)op, value, (operand)slot, indices[0], rank > 1 ? indices[1] : 0,
                            rank > 2 ? indices[2] : 0);
  if (!c->failed) c->program->code.at[at].rank = (uint8_t)rank;
}

void interp_emit_after_store(struct compiler *c, enum op op, uint32_t first, uint32_t last, operand predicate,
                             uint32_t slot, const operand *indices, uint32_t rank) {
  operand list = (operand)interp_list(c, indices, rank);
  uint32_t at = interp_emit(c, op, (operand)first, (operand)slot, list, predicate, (operand)last);
  if (!c->failed) c->program->code.at[at].rank = (uint8_t)rank;
}

static operand compile_load(struct compiler *c, const struct tir_expr_node *n, int lane) {
  assert(n->kind == TIR_LOAD);
  const struct tir_buffer_node *buffer = tir_buffer_at(c->ir, n->ref);
  char text[24];
  if (!interp_has_format(tir_type_with_lanes(buffer->type, 1)))
    return interp_refuse(c, MS_RUN_UNSUPPORTED, "elements of type %s are not interpreted",
                         tir_type_text(buffer->type, text));
  operand dst = interp_registers(c, 1), indices[INTERP_MOST_RANK];
  struct scope scope = interp_enter(c);
  uint32_t skip = 0;
  bool for_lane = c->loads_lane;
  c->loads_lane = false; /* where it lies, and whether it is loaded, is known */
  if (n->a) {
    interp_emit(c, OP_MOVE, dst, interp_int(c, 0), 0, 0, 0);
    int predicate_lane = tir_type_lanes(tir_type_of(c->ir, n->a)) > 1 ? lane : 0;
    skip = interp_emit(c, OP_JUMP_IF_NOT, 0, interp_expr(c, n->a, predicate_lane), 0, 0, 0);
    interp_leave(c, scope);
  }
  uint32_t slot = interp_slot(c, n->ref);
  uint32_t rank = interp_indices(c, n->ref, tir_operands(c->ir, n->operands), n->count, lane, indices);
  if (c->failed) return 0;
  interp_emit_access(c, false, dst, slot, buffer->type, indices, rank);
  c->loads_lane = for_lane;
  bool apart = for_lane && tir_type_lanes(n->type) > 1;
  if (apart && !c->failed) c->program->code.at[interp_here(c) - 1].copies = COPIES_LANE;
  if (n->a) interp_leave(c, scope);
  if (n->a && !c->failed) c->program->code.at[skip].b = (operand)interp_here(c);
  return dst;
}

/* ---- Every expression ---- */

static operand variable(struct compiler *c, const struct tir_expr_node *n, int lane) {
  assert(n->kind == TIR_VAR);
  if (c->var_at[n->ref] != NO_OPERAND) return c->var_at[n->ref] + (c->var_at[n->ref] >= 0 ? lane : 0);
  char name[128];
  tir_name_render(c->ir, c->ir->vars.at[n->ref].name, name, sizeof name);
  return interp_refuse(c, MS_RUN_NOT_IN_SCOPE, "variable %s is used where it has no value", name);
}

static operand let(struct compiler *c, const struct tir_expr_node *n, int lane) {
  assert(n->kind == TIR_LET);
  operand dst = interp_registers(c, 1);
  struct scope scope = interp_enter(c);
  int lanes = tir_type_lanes(tir_type_of(c->ir, n->a));
  operand at = interp_registers(c, lanes);
  for (int i = 0; i < lanes; i++) interp_expr_to(c, at + i, n->a, i);
  interp_define_var(c, n->ref, at);
  interp_expr_to(c, dst, n->b, lane);
  interp_leave(c, scope);
  return dst;
}

static operand ramp(struct compiler *c, const struct tir_expr_node *n, int lane) {
  assert(n->kind == TIR_RAMP);
  operand base = interp_expr(c, n->a, 0);
  if (lane == 0) return base;
  tir_type t = tir_type_with_lanes(n->type, 1);
  operand step = interp_binary(c, TIR_MUL, interp_expr(c, n->b, 0), interp_int(c, lane), t);
  return interp_binary(c, TIR_ADD, base, step, t);
}

static operand address_of_data(struct compiler *c, tir_buffer buffer) {
  operand dst = interp_registers(c, 1);
  interp_emit(c, OP_DATA, dst, (operand)interp_slot(c, buffer), 0, 0, 0);
  return dst;
}

static operand not_a_value(struct compiler *c, const struct tir_expr_node *n) {
  const char *what = n->kind == TIR_STRING_IMM ? "a string" : n->kind == TIR_NONE_IMM ? "None" : "a list, map or slice";
  return interp_refuse(c, MS_RUN_UNSUPPORTED, "%s stands where a value is needed", what);
}

static operand compile(struct compiler *c, tir_expr e, int lane) {
  const struct tir_expr_node *n = tir_at(c->ir, e);
  switch ((enum tir_kind)n->kind) {
  case TIR_INT_IMM: return interp_int(c, interp_wrap(n->type, n->imm));
  case TIR_FLOAT_IMM: {
    unsigned rounded = interp_rounded;
    bool stays = tir_type_is_byte(n->type) && isinf(n->real); /* an infinity, where the type has it */
    union value v = {.f = n->real};
    unsigned char bits;
    if (stays) interp_put(interp_format(n->type), &bits, v), v = interp_fetch(interp_format(n->type), &bits);
    operand at = interp_constant(c, stays ? v : (union value){.f = interp_round_to(n->type, n->real)});
    interp_rounded = rounded;
    return at;
  }
  case TIR_VAR: return variable(c, n, tir_type_lanes(n->type) > 1 ? lane : 0);
  case TIR_DATA: return address_of_data(c, n->ref);
  case TIR_AND:
  case TIR_OR: return short_circuit(c, n, lane);
  case TIR_NOT: {
    operand a = interp_expr(c, n->a, lane), dst = interp_registers(c, 1);
    interp_emit(c, OP_NOT, dst, a, 0, 0, 0);
    return dst;
  }
  case TIR_CAST: return interp_cast(c, tir_type_of(c->ir, n->a), n->type, interp_expr(c, n->a, lane));
  case TIR_SELECT: return interp_choose(c, n->a, n->b, n->c, lane);
  case TIR_LET: return let(c, n, lane);
  case TIR_RAMP: return ramp(c, n, lane);
  case TIR_BROADCAST: return interp_expr(c, n->a, lane % tir_type_lanes(tir_type_of(c->ir, n->a)));
  case TIR_LOAD: return compile_load(c, n, lane);
  case TIR_CALL: return interp_call(c, e, lane);
  default: break;
  }
  if (n->kind >= TIR_ADD && n->kind <= TIR_GE) return compile_binary(c, n, lane);
  return not_a_value(c, n);
}

void interp_begin_statement(struct compiler *c, tir_stmt s) {
  tir_expr all[4];
  uint32_t count = tir_stmt_exprs(c->ir, s, all);
  const struct tir_stmt_node *n = tir_stmt_at(c->ir, s);
  c->place = s;
  c->statements++;
  c->is_pure = n->kind == TIR_STORE || n->kind == TIR_IF || n->kind == TIR_BIND;
  for (uint32_t i = 0; i < count; i++) c->is_pure = c->is_pure && !tir_has_effect(c->ir, all[i]);
  for (uint32_t i = 0; n->kind == TIR_STORE && i < tir_buffer_at(c->ir, n->store.buffer)->rank; i++)
    c->is_pure = c->is_pure && !tir_has_effect(c->ir, tir_operands(c->ir, n->store.indices)[i]);
}

/* Of scalars only: what no memory decides holds in the whole scope, the rest in the statement. */
static bool is_kept(const struct compiler *c, const struct tir_expr_node *n, int lane) {
  bool fixed = !(n->flags & (TIR_HAS_LOAD | TIR_HAS_CALL));
  return lane == 0 && n->kind > TIR_DATA && (fixed || (c->is_pure && tir_type_lanes(n->type) == 1));
}

static bool is_computed(const struct compiler *c, tir_expr e) {
  bool fixed = !(tir_at(c->ir, e)->flags & (TIR_HAS_LOAD | TIR_HAS_CALL));
  return c->computed[e] != NO_OPERAND && (fixed || c->computed_by[e] == c->statements);
}

operand interp_expr(struct compiler *c, tir_expr e, int lane) {
  if (c->failed) return 0;
  const struct tir_expr_node *n = tir_at(c->ir, e);
  if (tir_type_code(n->type) == TIR_FLOAT && tir_type_bits(n->type) == 32) c->program->has_float32 = true;
  bool keep = is_kept(c, n, lane);
  if (keep && is_computed(c, e)) return c->computed[e];
  if (++c->depth > MOST_DEPTH) return interp_refuse(c, MS_TOO_LARGE, "an expression is nested too deeply to interpret");
  operand at = compile(c, e, lane);
  c->depth--;
  if (!keep || c->failed) return at;
  define(c, DEFINED_EXPR, c->computed, e, at);
  c->computed_by[e] = c->statements;
  return at;
}

void interp_expr_to(struct compiler *c, operand dst, tir_expr e, int lane) {
  operand at = interp_expr(c, e, lane);
  interp_emit(c, OP_MOVE, dst, at, 0, 0, 0);
}

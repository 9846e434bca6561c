/* Expressions in C source. */
#include "emit_c.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int lanes_of(const struct emit_c *e, tir_expr x) { return tir_type_lanes(tir_type_of(e->ir, x)); }
static bool is_bool(tir_type t) { return tir_type_code(t) == TIR_BOOL; }

/* ---- Truth ---- */

static bool fits(const struct emit_c *e, tir_expr x); /* see below */

/* Integers whose bounds are known are compared as they stand. */
static void compared(struct emit_c *e, tir_expr x, struct c_chunk c) {
  if (c.width == 1 && emit_c_is_index(tir_type_of(e->ir, x)) && fits(e, x))
    emit_c_index_in(e, x, C_SUM);
  else
    emit_c_value(e, x, c);
}

static void comparison(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c) {
  assert(n->kind >= TIR_EQ && n->kind <= TIR_GE);
  fputc('(', e->out);
  compared(e, n->a, c);
  fprintf(e->out, " %s ", emit_c_operator((enum tir_kind)n->kind));
  compared(e, n->b, c);
  fputc(')', e->out);
}

/* The bits of the lanes that a condition's mask comes in; 0: any. */
static int mask_bits(struct emit_c *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (tir_type_lanes(n->type) == 1) return 0;
  if (n->kind >= TIR_EQ && n->kind <= TIR_GE) return emit_c_type(e, tir_type_of(e->ir, n->a), 1).bits;
  if (n->kind == TIR_LOAD) return 8;
  if (n->kind == TIR_NOT || n->kind == TIR_BROADCAST) return mask_bits(e, n->a);
  if (n->kind == TIR_CAST) return emit_c_type(e, tir_type_of(e->ir, n->a), 1).bits;
  if (n->kind == TIR_AND || n->kind == TIR_OR) {
    int a = mask_bits(e, n->a), b = mask_bits(e, n->b);
    return a > b ? a : b;
  }
  if (n->kind == TIR_CALL && n->count) {
    tir_type t = tir_type_of(e->ir, tir_operands(e->ir, n->operands)[0]);
    return is_bool(t) ? 32 : emit_c_type(e, t, 1).bits;
  }
  return 32;
}

static void mask_itself(struct emit_c *e, tir_expr x, struct c_chunk c, int bits) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  char type[32];
  struct c_type t = {TIR_INT, bits, c.width};
  emit_c_type_name(e, t, type);
  if (tir_type_lanes(n->type) == 1 || n->kind == TIR_BROADCAST) {
    char splat[64];
    fprintf(e->out, "%s(-", emit_c_helper(e, "splat", t, NULL, splat));
    emit_c_truth(e, n->kind == TIR_BROADCAST ? n->a : x);
    fputc(')', e->out);
  } else if (n->kind == TIR_AND || n->kind == TIR_OR) {
    fputc('(', e->out);
    emit_c_mask(e, n->a, c, bits);
    fputs(n->kind == TIR_AND ? " & " : " | ", e->out);
    emit_c_mask(e, n->b, c, bits);
    fputc(')', e->out);
  } else if (n->kind == TIR_NOT) {
    fputc('~', e->out);
    emit_c_mask(e, n->a, c, bits);
  } else if (n->kind >= TIR_EQ && n->kind <= TIR_GE) {
    fprintf(e->out, "(%s)", type);
    comparison(e, n, c);
  } else if (n->kind == TIR_LOAD) {
    fprintf(e->out, "(%s)(", type);
    emit_c_load(e, x, c);
    fputs(" != 0)", e->out);
  } else if (n->kind == TIR_CAST) {
    fprintf(e->out, "(%s)(", type);
    emit_c_value(e, n->a, c);
    fputs(" != 0)", e->out);
  } else if (n->kind == TIR_SELECT) {
    char select[64];
    t.code = TIR_INT;
    fprintf(e->out, "%s(", emit_c_helper(e, "select", t, NULL, select));
    emit_c_mask(e, n->a, c, bits);
    fputs(", ", e->out);
    emit_c_mask(e, n->b, c, bits);
    fputs(", ", e->out);
    emit_c_mask(e, n->c, c, bits);
    fputc(')', e->out);
  } else if (n->kind == TIR_CALL) {
    fprintf(e->out, "(%s)", type);
    emit_c_call(e, x, c);
  } else {
    emit_c_refuse(e, "a vector of truth values has no form in C");
  }
}

void emit_c_mask(struct emit_c *e, tir_expr x, struct c_chunk c, int bits) {
  assert(bits == 8 || bits == 16 || bits == 32 || bits == 64);
  int own = mask_bits(e, x);
  if (!own || own == bits) {
    mask_itself(e, x, c, bits);
    return;
  }
  char type[32];
  struct c_type t = {TIR_INT, bits, c.width};
  fputs("__builtin_convertvector(", e->out);
  mask_itself(e, x, c, own);
  fprintf(e->out, ", %s)", emit_c_type_name(e, t, type));
}

void emit_c_truth(struct emit_c *e, tir_expr x) { emit_c_value(e, x, C_SCALAR); }

static void truth_value(struct emit_c *e, tir_expr x, struct c_chunk c) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  switch (n->kind) {
  case TIR_INT_IMM: fprintf(e->out, "%d", n->imm != 0); break;
  case TIR_AND:
  case TIR_OR:
    fputc('(', e->out);
    emit_c_value(e, n->a, c);
    fputs(n->kind == TIR_AND ? " && " : " || ", e->out);
    emit_c_value(e, n->b, c);
    fputc(')', e->out);
    break;
  case TIR_NOT:
    fputc('!', e->out);
    emit_c_value(e, n->a, c);
    break;
  case TIR_CAST:
    fputc('(', e->out);
    emit_c_value(e, n->a, c);
    fputs(" != 0)", e->out);
    break;
  case TIR_LOAD:
    fputc('(', e->out);
    emit_c_load(e, x, c);
    fputs(" != 0)", e->out);
    break;
  default: comparison(e, n, c);
  }
}

/* ---- Numbers ---- */

/* The value cannot leave its type: arithmetic on indices gives it. */
static bool fits(const struct emit_c *e, tir_expr x) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  if (n->flags & TIR_OF_DATA) return false;
  return n->lo > INT64_MIN && n->hi < INT64_MAX &&
         (tir_type_bits(n->type) == 64 || (n->lo >= INT32_MIN && n->hi <= INT32_MAX));
}

static void literal(struct emit_c *e, const struct tir_expr_node *n) {
  assert(n->kind == TIR_INT_IMM || n->kind == TIR_FLOAT_IMM);
  if (n->kind == TIR_FLOAT_IMM) {
    unsigned char bytes[8];
    tir_type t = tir_type_with_lanes(n->type, 1);
    double value = n->real;
    if (tir_type_is_short(t)) tir_put_element(t, bytes, value), value = tir_fetch_element(t, bytes);
    bool wide = tir_type_bits(t) == 64;
    const char *suffix = wide ? "" : "f";
    char text[40];
    if (isnan(value) || isinf(value)) {
      fprintf(e->out, "(%s%s)", signbit(value) ? "-" : "",
              (isnan(value) ? e->dialect->nan : e->dialect->infinity)[wide]);
      return;
    }
    if (*suffix) value = (float)value;
    tir_number_text(text, sizeof text, *suffix ? "%.9g" : "%.17g", fabs(value));
    bool plain = !strpbrk(text, ".e");
    fprintf(e->out, signbit(value) ? "(-%s%s%s)" : "%s%s%s", text, plain ? ".0" : "", suffix);
    return;
  }
  int bits = tir_type_bits(n->type);
  if (tir_type_code(n->type) == TIR_UINT && bits >= 32)
    fprintf(e->out, bits == 64 ? "UINT64_C(%llu)" : "%lluu",
            (unsigned long long)n->imm & (bits == 64 ? UINT64_MAX : UINT32_MAX));
  else if (bits == 32 && n->imm == INT32_MIN)
    fputs("INT32_MIN", e->out);
  else
    emit_c_integer(e, n->imm, bits == 64);
}

static void call_two(struct emit_c *e, const char *helper, const struct tir_expr_node *n, struct c_chunk c) {
  fprintf(e->out, "%s(", helper);
  emit_c_value(e, n->a, c);
  fputs(", ", e->out);
  emit_c_value(e, n->b, c);
  fputc(')', e->out);
}

static void real_arithmetic(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c) {
  char helper[64];
  struct c_type t = emit_c_type(e, n->type, c.width);
  fputc('(', e->out);
  switch (n->kind) {
  case TIR_MIN: call_two(e, emit_c_helper(e, "least", t, NULL, helper), n, c); break;
  case TIR_MAX: call_two(e, emit_c_helper(e, "most", t, NULL, helper), n, c); break;
  case TIR_MOD: call_two(e, emit_c_helper(e, "call2", t, "fmod", helper), n, c); break;
  default:
    emit_c_value(e, n->a, c);
    fprintf(e->out, " %s ", emit_c_operator((enum tir_kind)n->kind));
    emit_c_value(e, n->b, c);
  }
  fputc(')', e->out);
}

/* Sums and products wrap around: they are computed without a sign. */
static void wrapping(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c) {
  struct c_type t = emit_c_type(e, n->type, c.width),
                u = {TIR_UINT, t.bits < 32 && t.width == 1 ? 32 : t.bits, t.width};
  char type[32], unsigned_type[32];
  emit_c_type_name(e, t, type);
  emit_c_type_name(e, u, unsigned_type);
  fprintf(e->out, "(%s)((%s)", type, unsigned_type);
  emit_c_value(e, n->a, c);
  fprintf(e->out, " %s (%s)", emit_c_operator((enum tir_kind)n->kind), unsigned_type);
  emit_c_value(e, n->b, c);
  fputc(')', e->out);
}

static void integer_arithmetic(struct emit_c *e, tir_expr x, struct c_chunk c) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  struct c_type t = emit_c_type(e, n->type, c.width);
  char type[32], helper[64];
  emit_c_type_name(e, t, type);
  switch (n->kind) {
  case TIR_ADD:
  case TIR_SUB:
  case TIR_MUL: wrapping(e, n, c); break;
  case TIR_MIN:
  case TIR_MAX: call_two(e, emit_c_helper(e, n->kind == TIR_MIN ? "min" : "max", t, NULL, helper), n, c); break;
  default:
    fprintf(e->out, "(%s)(", type);
    emit_c_value(e, n->a, c);
    fputs(n->kind == TIR_DIV ? " / " : " % ", e->out);
    emit_c_value(e, n->b, c);
    fputc(')', e->out);
  }
}

/* ---- Casts ---- */

static void convert(struct emit_c *e, tir_expr x, struct c_type from, struct c_type to, struct c_chunk c) {
  char type[32], helper[64];
  if (!memcmp(&from, &to, sizeof from)) {
    emit_c_value(e, x, c);
  } else if (from.code == TIR_FLOAT && to.code != TIR_FLOAT) {
    fprintf(e->out, "%s(", emit_c_conversion(e, from, to, helper));
    emit_c_value(e, x, c);
    fputc(')', e->out);
  } else if (c.width == 1) {
    fprintf(e->out, "(%s)", emit_c_type_name(e, to, type));
    emit_c_value(e, x, c);
  } else {
    fputs("__builtin_convertvector(", e->out);
    emit_c_value(e, x, c);
    fprintf(e->out, ", %s)", emit_c_type_name(e, to, type));
  }
}

/* The smaller or larger of two floats of a short type is one of that type; infinities of 8 bits saturate. */
static bool is_extreme_of(const struct emit_c *e, tir_expr x, tir_type t) {
  const struct tir_expr_node *n = tir_at(e->ir, x), *a = tir_at(e->ir, n->a), *b = tir_at(e->ir, n->b);
  if ((n->kind != TIR_MIN && n->kind != TIR_MAX) || a->kind != TIR_CAST || b->kind != TIR_CAST) return false;
  return !tir_type_is_byte(t) && tir_type_of(e->ir, a->a) == t && tir_type_of(e->ir, b->a) == t;
}

/* To floats of 16 or 8 bits, of what a float holds exactly (tir/lower/legalize.c). */
static void cast_to_short(struct emit_c *e, tir_expr x, tir_type to, struct c_chunk c) {
  tir_type from = tir_type_of(e->ir, x);
  char helper[64];
  struct c_type f = {TIR_FLOAT, 32, c.width};
  assert(tir_type_is_float(from) && tir_type_bits(from) <= 32);
  if (is_extreme_of(e, x, to)) {
    emit_c_value(e, x, c);
    return;
  }
  fprintf(e->out, "%s(", emit_c_short_helper(e, "round", to, c.width, helper));
  convert(e, x, emit_c_type(e, from, c.width), f, c);
  fputc(')', e->out);
}

void emit_c_unrounded(struct emit_c *e, tir_expr value, struct c_chunk c) {
  struct tir_expr_node n = *tir_at(e->ir, value);
  tir_type from = n.kind == TIR_CAST ? tir_type_of(e->ir, n.a) : n.type;
  assert(tir_type_is_short(n.type));
  bool rounds = tir_type_with_lanes(from, 1) == tir_type_with_lanes(TIR_T_F32, 1) && !is_extreme_of(e, n.a, n.type);
  if (n.kind == TIR_CAST && rounds)
    convert(e, n.a, emit_c_type(e, from, c.width), (struct c_type){TIR_FLOAT, 32, c.width}, c);
  else
    emit_c_value(e, value, c);
}

void emit_c_cast(struct emit_c *e, tir_expr x, tir_type to, struct c_chunk c) {
  tir_type from = tir_type_of(e->ir, x);
  bool wide = c.width > 1;
  if (emit_c_part(e, x, to, c)) return;
  if (tir_type_with_lanes(from, 1) == tir_type_with_lanes(to, 1)) {
    emit_c_value(e, x, c);
  } else if (is_bool(from) && wide) { /* 0 and -1 */
    struct c_type t = emit_c_type(e, to, c.width);
    char type[32];
    if (tir_type_is_float(to)) {
      fputs("__builtin_convertvector(-", e->out);
      emit_c_mask(e, x, c, t.bits);
      fprintf(e->out, ", %s)", emit_c_type_name(e, t, type));
    } else {
      fprintf(e->out, "(%s)-", emit_c_type_name(e, t, type));
      emit_c_mask(e, x, c, t.bits);
    }
  } else if (tir_type_is_short(to) && tir_type_code(from) != TIR_BOOL) {
    cast_to_short(e, x, to, c);
  } else {
    convert(e, x, emit_c_type(e, from, c.width), emit_c_type(e, to, c.width), c);
  }
}

/* ---- Vectors ---- */

/* The lane's number is put on the base, its multiples on the vector. */
static void ramp(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c) {
  assert(n->kind == TIR_RAMP);
  struct c_type t = emit_c_type(e, n->type, c.width), scalar = {t.code, t.bits, 1};
  char type[32], element[32], splat[64];
  emit_c_type_name(e, t, type);
  emit_c_type_name(e, scalar, element);
  if (c.width > 1) fprintf(e->out, "(%s", emit_c_helper(e, "splat", t, NULL, splat));
  fprintf(e->out, "((%s)(", element);
  emit_c_index(e, n->a);
  if (c.first || c.lane) {
    if (c.lane)
      fprintf(e->out, " + (%s + %d) * ", c.lane, c.first);
    else
      fprintf(e->out, " + %d * ", c.first);
    emit_c_index_in(e, n->b, C_UNIT);
  }
  fputs("))", e->out);
  if (c.width == 1) return;
  fprintf(e->out, " + (%s){", type);
  for (int l = 0; l < c.width; l++) fprintf(e->out, l ? ", %d" : "%d", l);
  fputc('}', e->out);
  if (!tir_is_const(e->ir, n->b, 1)) {
    fprintf(e->out, " * %s((%s)", splat, element);
    emit_c_index_in(e, n->b, C_UNIT);
    fputc(')', e->out);
  }
  fputc(')', e->out);
}

static void splat(struct emit_c *e, tir_expr x, struct c_chunk c) {
  char helper[64];
  struct c_type t = emit_c_type(e, tir_type_of(e->ir, x), c.width);
  fprintf(e->out, "%s(", emit_c_helper(e, "splat", t, NULL, helper));
  emit_c_value(e, x, C_SCALAR);
  fputc(')', e->out);
}

static void choice(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c) {
  if (c.width == 1 || lanes_of(e, n->a) == 1) {
    fputc('(', e->out);
    emit_c_value(e, n->a, lanes_of(e, n->a) == 1 ? C_SCALAR : c);
    fputs(" ? ", e->out);
    emit_c_value(e, n->b, c);
    fputs(" : ", e->out);
    emit_c_value(e, n->c, c);
    fputc(')', e->out);
    return;
  }
  struct c_type t = emit_c_type(e, n->type, c.width);
  char helper[64];
  fprintf(e->out, "%s(", emit_c_helper(e, "select", t, NULL, helper));
  emit_c_mask(e, n->a, c, t.bits);
  fputs(", ", e->out);
  emit_c_value(e, n->b, c);
  fputs(", ", e->out);
  emit_c_value(e, n->c, c);
  fputc(')', e->out);
}

uint32_t emit_c_open_let(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c) {
  assert(n->kind == TIR_LET);
  tir_type type = tir_type_of(e->ir, n->a);
  bool index = tir_type_is_int(type) && tir_type_lanes(type) == 1;
  int width = tir_type_lanes(type) > 1 ? c.width : 1;
  char name[32];
  uint32_t mark = emit_c_enter(e);
  if (tir_type_code(type) == TIR_BOOL && width > 1)
    emit_c_refuse(e, "a vector of truth values that is bound has no form in C");
  fprintf(e->out, "%sconst %s ", e->dialect->bound[0],
          index ? emit_c_index_type(e) : emit_c_type_name(e, emit_c_type(e, type, width), name));
  char *text = NULL; /* the value is in terms of what the name meant before */
  size_t size;
  FILE *out = e->out;
  if (!(e->out = open_memstream(&text, &size))) abort();
  if (index && fits(e, n->a)) /* else it wraps around, in its type */
    emit_c_index(e, n->a);
  else
    emit_c_value(e, n->a, tir_type_lanes(type) == 1 ? C_SCALAR : c);
  fclose(e->out);
  e->out = out;
  fprintf(e->out, "%s = %s; %s", emit_c_declare_var(e, n->ref), text, e->dialect->bound[1]);
  free(text);
  return mark;
}

void emit_c_close_let(struct emit_c *e, uint32_t mark) {
  fprintf(e->out, "; %s", e->dialect->bound[2]);
  emit_c_leave(e, mark);
}

static void let(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c) {
  bool whole = e->whole && e->whole[n->ref]; /* elsewhere; here it holds a lane */
  if (whole) e->whole[n->ref] = false;
  uint32_t mark = emit_c_open_let(e, n, c);
  emit_c_value(e, n->b, c);
  emit_c_close_let(e, mark);
  if (whole) e->whole[n->ref] = true;
}

/* ---- */

static void scalar_variable(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c) {
  assert(n->kind == TIR_VAR);
  tir_type t = n->type;
  char type[32];
  if (e->whole && e->whole[n->ref]) {
    e->dialect->lane(e, n->ref, c);
    return;
  }
  if (e->arrays[n->ref]) {
    emit_c_bound_lanes(e, n->ref, c);
    return;
  }
  if (tir_type_is_int(t) && tir_type_lanes(t) == 1 &&
      !(tir_type_bits(t) == e->index_bits && tir_type_code(t) == TIR_INT))
    fprintf(e->out, "(%s)", emit_c_type_name(e, emit_c_type(e, t, 1), type));
  emit_c_variable(e, n->ref);
}

/* Integers that cannot overflow are written as indices. */
static bool is_plain_index(struct emit_c *e, tir_expr x, struct c_chunk c) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  return c.width == 1 && n->kind >= TIR_ADD && n->kind <= TIR_MAX && emit_c_is_index(n->type) && fits(e, x);
}

static void binary(struct emit_c *e, tir_expr x, struct c_chunk c) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  char type[32];
  if (tir_type_is_float(n->type)) {
    real_arithmetic(e, n, c);
  } else if (is_plain_index(e, x, c)) {
    fprintf(e->out, "(%s)", emit_c_type_name(e, emit_c_type(e, n->type, 1), type));
    emit_c_index_in(e, x, C_UNIT);
  } else {
    integer_arithmetic(e, x, c);
  }
}

static void value(struct emit_c *e, tir_expr x, struct c_chunk c) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  bool truth = is_bool(n->type);
  if (truth && c.width > 1) {
    emit_c_mask(e, x, c, 32);
    return;
  }
  bool constant = n->kind == TIR_INT_IMM || n->kind == TIR_FLOAT_IMM; /* of all lanes */
  if ((tir_type_lanes(n->type) == 1 || constant) && c.width > 1) {
    splat(e, x, c);
    return;
  }
  if (n->kind == TIR_BROADCAST) {
    emit_c_value(e, n->a, c);
    return;
  }
  if (n->kind == TIR_SELECT) {
    choice(e, n, c);
    return;
  }
  if (truth && n->kind != TIR_CALL && n->kind != TIR_LET && n->kind != TIR_VAR) {
    truth_value(e, x, c);
    return;
  }
  if (n->kind >= TIR_ADD && n->kind <= TIR_MAX) {
    binary(e, x, c);
    return;
  }
  switch (n->kind) {
  case TIR_INT_IMM:
  case TIR_FLOAT_IMM: literal(e, n); break;
  case TIR_VAR: scalar_variable(e, n, c); break;
  case TIR_DATA:
    if (e->buffers[n->ref])
      fprintf(e->out, "(void *)%s", e->buffers[n->ref]);
    else
      emit_c_refuse(e, "a buffer is used outside its scope");
    break;
  case TIR_CAST: emit_c_cast(e, n->a, n->type, c); break;
  case TIR_LET: let(e, n, c); break;
  case TIR_RAMP: ramp(e, n, c); break;
  case TIR_LOAD: emit_c_load(e, x, c); break;
  case TIR_CALL: emit_c_call(e, x, c); break;
  default: emit_c_refuse(e, "an expression has no form in C: %s", n->kind == TIR_STRING_IMM ? "a string" : "a slice");
  }
}

void emit_c_value(struct emit_c *e, tir_expr x, struct c_chunk c) {
  assert(x && x < e->ir->exprs.count);
  char helper[64];
  if (e->failed) return;
  bool hidden = jit_is_merged(e->ir, &e->choices, x);
  if (hidden)
    fprintf(e->out, "%s(", emit_c_helper(e, "keep", emit_c_type(e, tir_type_of(e->ir, x), c.width), NULL, helper));
  value(e, x, c);
  if (hidden) fputc(')', e->out);
}

struct widest {
  struct emit_c *e;
  int bits;
};

static bool measure(void *data, tir_expr x) {
  struct widest *w = data;
  const struct tir_expr_node *n = tir_at(w->e->ir, x);
  if (tir_type_lanes(n->type) == 1) return false;
  int bits = tir_type_code(n->type) == TIR_BOOL ? 8 : emit_c_type(w->e, n->type, 1).bits;
  if (bits > w->bits) w->bits = bits;
  if (n->kind != TIR_LOAD) return true;
  /* Consecutive elements have one index. */
  const struct tir_expr_node *index = tir_at(w->e->ir, tir_operands(w->e->ir, n->operands)[0]);
  return n->a || index->kind != TIR_RAMP;
}

int emit_c_widest(struct emit_c *e, tir_expr x) {
  struct widest w = {e, 8};
  tir_walk_expr(e->ir, x, measure, &w);
  return w.bits;
}

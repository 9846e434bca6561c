/* Pairs: arithmetic of 16-bit floats in CUDA's source, two at once, where a vector of them is computed and stored
 * whole. Its lanes lie in registers as they do in memory, two in each.
 *
 * Legalized, an operation is on float32 and rounded after. The GPU's operation on pairs rounds once; that is the same:
 * where a sum, a difference or a product is rounded to 24 bits first, its rounding to p bits is as if it were rounded
 * once when 24 >= 2 p + 2, and halves have p = 11, bfloat16 8. (Figueroa, When is double rounding innocuous?, SIGNUM
 * Newsletter 30.3, 1995.) Nor do small results differ: products of halves and sums that are subnormal are exact in
 * float32, and a product of two bfloat16 has 16 bits at most, so that one which could be a tie in bfloat16 is exact in
 * float32 too.
 * PTX's max and min are another function than ours: a NaN gives the other operand, and 0 is more than -0. Ours is
 * a > b ? a : b.
 *
 * Vectors that do not stand at a multiple of their size are loaded lane by lane; to such nothing is stored whole. What
 * is loaded whole is so once, before all else (emit_vectors.c). */
#include "emit_cuda.h"

#include <stdlib.h>
#include <string.h>

static const struct pairs {
  int lanes;
  const char *type, *words; /* in C; "": it is one word */
} widths[] = {{2, "uint32_t", ""}, {4, "uint2", "xy"}, {8, "uint4", "xyzw"}};

static const struct pairs *pairs_of(tir_type t) {
  for (size_t i = 0; tir_type_is_half(t) && i < sizeof widths / sizeof *widths; i++)
    if (widths[i].lanes == tir_type_lanes(t)) return &widths[i];
  return NULL;
}

static bool is_bfloat(tir_type t) { return tir_type_code(t) == TIR_BFLOAT; }

static bool has_pairs(const struct emit_c *e, tir_type t) {
  return pairs_of(t) && tir_has(e->target->gpu.capabilities, is_bfloat(t) ? TIR_HAS_BFLOAT_PAIRS : TIR_HAS_PAIRS);
}

static uint32_t bits_of(tir_type type, double value) {
  uint16_t bits;
  tir_put_element(tir_type_with_lanes(type, 1), &bits, value);
  return bits;
}

/* ---- What is computed by pairs ---- */

static bool is_constant(tir_type type, double value) {
  uint16_t bits = (uint16_t)bits_of(type, value);
  return tir_fetch_element(tir_type_with_lanes(type, 1), &bits) == value;
}

/* Whether this vector of float32 is one of the type, widened. */
static bool is_widened(const struct emit_c *e, tir_expr x, tir_type type) {
  const struct tir_expr_node *n = tir_at(e->ir, x), *one;
  switch (n->kind) {
  case TIR_CAST: return tir_type_of(e->ir, n->a) == type;
  case TIR_VAR: return e->whole[n->ref] && e->whole_type == type;
  case TIR_BROADCAST:
    one = tir_at(e->ir, n->a);
    if (one->kind == TIR_FLOAT_IMM) return is_constant(type, one->real);
    return one->kind == TIR_CAST && tir_type_of(e->ir, one->a) == tir_type_with_lanes(type, 1);
  default: return false;
  }
}

static bool is_operation(const struct emit_c *e, tir_expr x, tir_type type) {
  const struct tir_expr_node *n = tir_at(e->ir, x), *made = tir_at(e->ir, n->a);
  if (n->kind != TIR_CAST || n->type != type) return false;
  bool known = made->kind == TIR_ADD || made->kind == TIR_SUB || made->kind == TIR_MUL || made->kind == TIR_MIN ||
               made->kind == TIR_MAX;
  return known && is_widened(e, made->a, type) && is_widened(e, made->b, type);
}

/* The operands of a choice whose condition is one for all lanes; NULL: it is none. */
static const tir_expr *choice_of(const struct emit_c *e, const struct tir_expr_node *n) {
  bool calls = n->kind == TIR_CALL && n->count == 3 && !strcmp(tir_text(e->ir, n->ref), "if_then_else");
  if (!calls && n->kind != TIR_SELECT) return NULL;
  const tir_expr *parts = calls ? tir_operands(e->ir, n->operands) : &n->a;
  return tir_type_lanes(tir_type_of(e->ir, parts[0])) == 1 ? parts : NULL;
}

/* A let whose value is such a vector, or one of float32 that is; or a scalar. */
static bool is_bound(const struct emit_c *e, const struct tir_expr_node *let, tir_type type) {
  tir_type of = tir_type_of(e->ir, let->a);
  return of == type || tir_type_lanes(of) == 1 || is_widened(e, let->a, type);
}

/* Whether an operation of pairs stands in the value, where it is computed whole. Marks the variables that are. */
static bool find_operation(struct emit_c *e, tir_expr x, tir_type type) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  const tir_expr *choice = choice_of(e, n);
  if (choice) {
    bool found = find_operation(e, choice[1], type);
    return find_operation(e, choice[2], type) || found;
  }
  if (n->kind == TIR_LET && is_bound(e, n, type)) {
    bool vector = tir_type_lanes(tir_type_of(e->ir, n->a)) > 1;
    bool found = vector && tir_type_of(e->ir, n->a) == type && find_operation(e, n->a, type);
    e->whole[n->ref] = vector;
    return find_operation(e, n->b, type) || found;
  }
  return is_operation(e, x, type);
}

/* ---- Functions ---- */

/* bfloat16 has fma.rn for pairs from sm_80 on, sums and products by themselves from sm_90 on: 1 a + b, -1 b + a and a
 * b - 0 are these, zeros' signs too. */
static void pair_function(struct emit_c *e, const char *operation, tir_type type) {
  char name[40];
  snprintf(name, sizeof name, "ms_%s_%s2", operation, emit_c_short_word(type));
  if (!emit_c_needs(e, name)) return;
  if (!is_bfloat(type)) {
    fprintf(e->helpers,
            "MS_PTX(uint32_t, %s, (uint32_t a, uint32_t b)) {\n  uint32_t d;\n"
            "  asm(\"%s.rn.f16x2 %%0, %%1, %%2;\" : \"=r\"(d) : \"r\"(a), \"r\"(b));\n  return d;\n}\n",
            name, operation);
    return;
  }
  if (emit_c_needs(e, "ms_fma_bfloat2"))
    fputs("MS_PTX(uint32_t, ms_fma_bfloat2, (uint32_t a, uint32_t b, uint32_t c)) {\n  uint32_t d;\n"
          "  asm(\"fma.rn.bf16x2 %0, %1, %2, %3;\" : \"=r\"(d) : \"r\"(a), \"r\"(b), \"r\"(c));\n  return d;\n}\n",
          e->helpers);
  const char *as = !strcmp(operation, "add")   ? "a, 0x3f803f80u, b"
                   : !strcmp(operation, "sub") ? "b, 0xbf80bf80u, a"
                                               : "a, b, 0x80008000u";
  fprintf(e->helpers, "MS_HELPER uint32_t %s(uint32_t a, uint32_t b) { return ms_fma_bfloat2(%s); }\n", name, as);
}

/* The function that gives a mask of the lanes in which a > b. PTX compares pairs of bfloat16 from sm_90 on. */
static const char *above_function(struct emit_c *e, tir_type type) {
  bool by_ptx = !is_bfloat(type) || tir_has(e->target->gpu.capabilities, TIR_HAS_BFLOAT_COMPARED);
  const char *name = !is_bfloat(type) ? "ms_above_half2" : by_ptx ? "ms_above_bfloat2" : "ms_larger_bfloat2";
  if (!emit_c_needs(e, name)) return name;
  if (by_ptx) {
    fprintf(e->helpers,
            "MS_PTX(uint32_t, %s, (uint32_t a, uint32_t b)) {\n  uint32_t d;\n"
            "  asm(\"set.gt.u32.%s %%0, %%1, %%2;\" : \"=r\"(d) : \"r\"(a), \"r\"(b));\n  return d;\n}\n",
            name, is_bfloat(type) ? "bf16x2" : "f16x2");
    return name;
  }
  char of[64];
  emit_c_helper(e, "of_bfloat", (struct c_type){TIR_FLOAT, 32, 1}, NULL, of);
  fprintf(e->helpers,
          "MS_HELPER uint32_t %s(uint32_t a, uint32_t b) {\n"
          "  return (%s(a & 0xffffu) > %s(b & 0xffffu) ? 0xffffu : 0u) |\n"
          "         (%s(a >> 16) > %s(b >> 16) ? 0xffff0000u : 0u);\n}\n",
          name, of, of, of, of);
  return name;
}

/* The function for the mask of the lanes that are NaN: what is left of them without the sign is past infinity. */
static const char *none_function(struct emit_c *e, tir_type type) {
  const char *name = is_bfloat(type) ? "ms_none_bfloat2" : "ms_none_half2";
  if (emit_c_needs(e, name))
    fprintf(e->helpers,
            "MS_HELPER uint32_t %s(uint32_t a) {\n"
            "  return (((a & 0x7fff7fffu) + %su) >> 15 & 0x00010001u) * 0xffffu;\n}\n",
            name, is_bfloat(type) ? "0x007f007f" : "0x03ff03ff");
  return name;
}

static void extreme_function(struct emit_c *e, const char *operation, tir_type type) {
  char name[40];
  bool most = !strcmp(operation, "max");
  snprintf(name, sizeof name, "ms_%s_%s2", operation, emit_c_short_word(type));
  if (!emit_c_needs(e, name)) return;
  const char *above = above_function(e, type), *none = none_function(e, type);
  fprintf(e->helpers,
          "MS_HELPER uint32_t %s(uint32_t a, uint32_t b) {\n  const uint32_t mask = %s(%s) | %s(b);\n"
          "  return (a & mask) | (b & ~mask);\n}\n",
          name, above, most ? "a, b" : "b, a", none);
}

static const char *operation_of(enum tir_kind kind) {
  switch (kind) {
  case TIR_ADD: return "add";
  case TIR_SUB: return "sub";
  case TIR_MUL: return "mul";
  case TIR_MIN: return "min";
  default: assert(kind == TIR_MAX); return "max";
  }
}

/* The operation on a whole vector, word by word. */
static const char *vector_function(struct emit_c *e, enum tir_kind kind, tir_type type, char name[40]) {
  const struct pairs *p = pairs_of(type);
  const char *operation = operation_of(kind);
  if (kind == TIR_MIN || kind == TIR_MAX)
    extreme_function(e, operation, type);
  else
    pair_function(e, operation, type);
  snprintf(name, 40, "ms_%s_%s%d", operation, emit_c_short_word(type), p->lanes);
  if (!*p->words || !emit_c_needs(e, name)) return name;
  fprintf(e->helpers, "MS_HELPER %s %s(%s a, %s b) {\n", p->type, name, p->type, p->type);
  for (const char *w = p->words; *w; w++)
    fprintf(e->helpers, "  a.%c = ms_%s_%s2(a.%c, b.%c);\n", *w, operation, emit_c_short_word(type), *w, *w);
  fputs("  return a;\n}\n", e->helpers);
  return name;
}

/* A vector of lanes, each in the low bits of a word. */
static const char *lanes_function(struct emit_c *e, const struct pairs *p, char name[40]) {
  snprintf(name, 40, "ms_pairs_%d", p->lanes);
  if (!emit_c_needs(e, name)) return name;
  fprintf(e->helpers, "MS_HELPER %s %s(", p->type, name);
  for (int l = 0; l < p->lanes; l++) fprintf(e->helpers, "%suint32_t l%d", l ? ", " : "", l);
  fprintf(e->helpers, ") {\n  %s v;\n", p->type);
  for (int l = 0; l < p->lanes; l += 2) {
    if (*p->words)
      fprintf(e->helpers, "  v.%c = l%d | l%d << 16;\n", p->words[l / 2], l, l + 1);
    else
      fprintf(e->helpers, "  v = l%d | l%d << 16;\n", l, l + 1);
  }
  fputs("  return v;\n}\n", e->helpers);
  return name;
}

static const char *same_function(struct emit_c *e, const struct pairs *p, char name[40]) {
  char of_lanes[40];
  snprintf(name, 40, "ms_same_%d", p->lanes);
  if (!emit_c_needs(e, name)) return name;
  lanes_function(e, p, of_lanes);
  fprintf(e->helpers, "MS_HELPER %s %s(uint32_t x) { return %s(", p->type, name, of_lanes);
  for (int l = 0; l < p->lanes; l++) fputs(l ? ", x" : "x", e->helpers);
  fputs("); }\n", e->helpers);
  return name;
}

/* A thread's own memory, which is in registers, is read and written however its parts are used elsewhere. */
static const char *own_function(struct emit_c *e, const struct pairs *p, bool writes, char name[40]) {
  snprintf(name, 40, writes ? "ms_put_%d" : "ms_get_%d", p->lanes);
  if (!emit_c_needs(e, name)) return name;
  if (writes)
    fprintf(e->helpers, "MS_HELPER void %s(uint16_t *to, %s v) { __builtin_memcpy(to, &v, sizeof v); }\n", name,
            p->type);
  else
    fprintf(e->helpers,
            "MS_HELPER %s %s(const uint16_t *from) {\n  %s v;\n  __builtin_memcpy(&v, from, sizeof v);\n"
            "  return v;\n}\n",
            p->type, name, p->type);
  return name;
}

/* ---- Values ---- */

/* The bits of one lane of any value of the type. */
static void lane_bits(struct emit_c *e, tir_expr x, struct c_chunk c) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  char helper[64];
  if (n->kind == TIR_LOAD && n->count == 1 && !n->a) {
    fputs("(uint32_t)", e->out);
    emit_c_raw(e, x, c);
  } else if (n->kind == TIR_FLOAT_IMM) {
    fprintf(e->out, "0x%xu", bits_of(n->type, n->real));
  } else {
    fprintf(e->out, "%s(", emit_c_short_helper(e, "to", n->type, 1, helper));
    emit_c_value(e, x, c);
    fputc(')', e->out);
  }
}

static void lane_by_lane(struct emit_c *e, tir_expr x, tir_type type) {
  char name[40];
  const struct pairs *p = pairs_of(type);
  fprintf(e->out, "%s(", lanes_function(e, p, name));
  for (int l = 0; l < p->lanes; l++) {
    if (l) fputs(", ", e->out);
    lane_bits(e, x, (struct c_chunk){l, 1, NULL});
  }
  fputc(')', e->out);
}

static bool is_own(const struct emit_c *e, tir_buffer buffer) {
  return tir_memory_scope_of(e->ir, buffer) == TIR_SCOPE_LOCAL;
}

static void emit_pair_loads(struct emit_c *e, const struct tir_expr_node *n, tir_type type) {
  char name[40];
  tir_expr index = tir_operands(e->ir, n->operands)[0];
  int ahead = emit_cuda_find_ahead(e, n->ref, index);
  if (ahead >= 0) {
    fprintf(e->out, "ms_ahead_%d_0", ahead);
    return;
  }
  if (is_own(e, n->ref))
    fprintf(e->out, "%s(", own_function(e, pairs_of(type), false, name));
  else
    fprintf(e->out, "*(const %s *)", pairs_of(type)->type);
  emit_c_run(e, n->ref, index, C_SCALAR);
  if (is_own(e, n->ref)) fputc(')', e->out);
}

/* Loads a vector that one access may load, or that is in registers. */
static bool is_whole(const struct emit_c *e, const struct tir_expr_node *n) {
  if (n->kind != TIR_LOAD || n->count != 1 || n->a) return false;
  tir_expr index = tir_operands(e->ir, n->operands)[0];
  return emit_c_is_run(e, n->ref, index) && (is_own(e, n->ref) || emit_cuda_is_aligned(e, index));
}

static void value(struct emit_c *e, tir_expr x, tir_type type);

static void widened(struct emit_c *e, tir_expr x, tir_type type) {
  const struct tir_expr_node *n = tir_at(e->ir, x);
  char name[40];
  if (n->kind == TIR_CAST) {
    value(e, n->a, type);
  } else if (n->kind == TIR_VAR) {
    emit_c_variable(e, n->ref);
  } else {
    const struct tir_expr_node *one = tir_at(e->ir, n->a);
    fprintf(e->out, "%s(", same_function(e, pairs_of(type), name));
    if (one->kind == TIR_FLOAT_IMM)
      fprintf(e->out, "0x%xu", bits_of(type, one->real));
    else
      lane_bits(e, one->a, C_SCALAR);
    fputc(')', e->out);
  }
}

static void let(struct emit_c *e, const struct tir_expr_node *n, tir_type type) {
  uint32_t mark;
  if (tir_type_lanes(tir_type_of(e->ir, n->a)) == 1) {
    mark = emit_c_open_let(e, n, C_SCALAR);
  } else {
    mark = emit_c_enter(e);
    fprintf(e->out, "%sconst %s ", e->dialect->bound[0], pairs_of(type)->type);
    fprintf(e->out, "%s = ", emit_c_declare_var(e, n->ref)); /* its value does not use the name */
    if (tir_type_of(e->ir, n->a) == type)
      value(e, n->a, type);
    else
      widened(e, n->a, type);
    fprintf(e->out, "; %s", e->dialect->bound[1]);
  }
  value(e, n->b, type);
  emit_c_close_let(e, mark);
}

static void value(struct emit_c *e, tir_expr x, tir_type type) {
  const struct tir_expr_node *n = tir_at(e->ir, x), *made = tir_at(e->ir, n->a);
  const tir_expr *choice = choice_of(e, n);
  char name[40];
  if (is_operation(e, x, type)) {
    fprintf(e->out, "%s(", vector_function(e, (enum tir_kind)made->kind, type, name));
    widened(e, made->a, type);
    fputs(", ", e->out);
    widened(e, made->b, type);
    fputc(')', e->out);
  } else if (choice) {
    fputc('(', e->out);
    emit_c_value(e, choice[0], C_SCALAR);
    fputs(" ? ", e->out);
    value(e, choice[1], type);
    fputs(" : ", e->out);
    value(e, choice[2], type);
    fputc(')', e->out);
  } else if (n->kind == TIR_LET && is_bound(e, n, type)) {
    let(e, n, type);
  } else if (n->kind == TIR_VAR && e->whole[n->ref]) {
    emit_c_variable(e, n->ref);
  } else if (is_whole(e, n)) {
    emit_pair_loads(e, n, type);
  } else if (n->kind == TIR_BROADCAST) {
    fprintf(e->out, "%s(", same_function(e, pairs_of(type), name));
    lane_bits(e, n->a, C_SCALAR);
    fputc(')', e->out);
  } else {
    lane_by_lane(e, x, type);
  }
}

void emit_c_pair_lane(struct emit_c *e, tir_var v, struct c_chunk c) {
  assert(e->whole && e->whole[v] && c.width == 1 && !c.lane);
  const struct pairs *p = pairs_of(e->whole_type);
  char helper[64];
  fprintf(e->out, "%s(", emit_c_short_helper(e, "of", e->whole_type, 1, helper));
  emit_c_variable(e, v);
  assert(c.first < p->lanes);
  if (*p->words) fprintf(e->out, ".%c", p->words[c.first / 2]);
  fputs(c.first % 2 ? " >> 16)" : " & 0xffffu)", e->out);
}

/* ---- Stores ---- */

static void write_store(struct emit_c *e, const struct tir_stmt_node *s, tir_expr index, tir_type type) {
  char name[40];
  bool own = is_own(e, s->store.buffer);
  assert(pairs_of(type) && !s->store.predicate);
  emit_c_begin(e);
  if (own)
    fprintf(e->out, "%s(", own_function(e, pairs_of(type), true, name));
  else
    fprintf(e->out, "*(%s *)", pairs_of(type)->type);
  emit_c_run(e, s->store.buffer, index, C_SCALAR);
  fputs(own ? ", " : " = ", e->out);
  value(e, s->store.value, type);
  fputs(own ? ");\n" : ";\n", e->out);
}

bool emit_c_store_pairs(struct emit_c *e, tir_stmt store) {
  const struct tir_stmt_node *s = tir_stmt_at(e->ir, store);
  tir_expr index = tir_operands(e->ir, s->store.indices)[0];
  tir_type type = tir_type_of(e->ir, s->store.value);
  if (!e->parallel || s->store.predicate || !has_pairs(e, type) || !emit_c_is_run(e, s->store.buffer, index))
    return false;
  if (!is_own(e, s->store.buffer) && !emit_cuda_is_aligned(e, index)) return false;
  assert(!e->whole); /* no store stands in another's value */
  e->whole = calloc(e->ir->vars.count, sizeof *e->whole);
  if (!e->whole) abort();
  e->whole_type = type;
  bool found = find_operation(e, s->store.value, type);
  if (found) {
    bool loads = emit_cuda_begin_ahead(e, s->store.value, tir_type_lanes(type));
    write_store(e, s, index, type);
    if (loads) emit_cuda_end_ahead(e);
  }
  free(e->whole);
  e->whole = NULL;
  return found;
}

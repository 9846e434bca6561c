/* Index expressions as text in prefix form ("+ * i 16 j"), and their values: for tests that read tables and for tests
 * that draw expressions at random. */
#ifndef MSCHED_TESTS_PREFIX_H
#define MSCHED_TESTS_PREFIX_H

#include "tir/tir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMED = 32 };
struct named {
  char name[16];
  tir_var var;
  int64_t min, extent, value;
  tir_expr extent_expr; /* TIR_NONE: the extent is a constant */
};
struct names {
  struct tir *ir;
  struct named at[MOST_NAMED];
  uint32_t count;
  bool simplifies; /* build with tir_make instead of raw nodes */
};

static inline struct named *find_name(struct names *names, const char *text, size_t length) {
  for (uint32_t i = 0; i < names->count; i++)
    if (strlen(names->at[i].name) == length && !memcmp(names->at[i].name, text, length)) return &names->at[i];
  return NULL;
}

static inline struct named *new_name(struct names *names, const char *name, int64_t min, int64_t extent) {
  struct named *n = &names->at[names->count++];
  if (names->count > MOST_NAMED) abort();
  *n = (struct named){.min = min, .extent = extent};
  snprintf(n->name, sizeof n->name, "%s", name);
  return n;
}

static inline struct named *add_name(struct names *names, const char *name, int64_t min, int64_t extent) {
  struct named *n = new_name(names, name, min, extent);
  n->var = tir_new_var(names->ir, TIR_VAR_LOOP, tir_name_of(names->ir, name), TIR_T_I32,
                       tir_int(names->ir, TIR_T_I32, min), tir_int(names->ir, TIR_T_I32, extent));
  return n;
}

/* A variable whose domain is not given: a shape. Tried for the values [min, min + extent). */
static inline struct named *add_symbol(struct names *names, const char *name, int64_t min, int64_t extent) {
  struct named *n = new_name(names, name, min, extent);
  n->var = tir_new_var(names->ir, TIR_VAR_PLAIN, tir_name_of(names->ir, name), TIR_T_I32, TIR_NONE, TIR_NONE);
  return n;
}

/* A variable from 0 to an expression of names added before it. */
static inline struct named *add_ranged(struct names *names, const char *name, tir_expr extent) {
  struct named *n = new_name(names, name, 0, 0);
  n->extent_expr = extent;
  n->var = tir_new_var(names->ir, TIR_VAR_LOOP, tir_name_of(names->ir, name), TIR_T_I32,
                       tir_int(names->ir, TIR_T_I32, 0), extent);
  return n;
}

static const struct {
  const char *text;
  enum tir_kind kind;
} prefix_operators[] = {{"+", TIR_ADD}, {"-", TIR_SUB},   {"*", TIR_MUL},   {"//", TIR_FLOORDIV}, {"%", TIR_FLOORMOD},
                        {"/", TIR_DIV}, {"mod", TIR_MOD}, {"min", TIR_MIN}, {"max", TIR_MAX},     {"<", TIR_LT},
                        {"<=", TIR_LE}, {">", TIR_GT},    {">=", TIR_GE},   {"==", TIR_EQ},       {"!=", TIR_NE},
                        {"&", TIR_AND}, {"or", TIR_OR}};

/* Reads one expression and moves *at behind it. Names not known abort. */
static inline tir_expr read_prefix(struct names *names, const char **at) {
  struct tir *ir = names->ir;
  *at += strspn(*at, " ");
  const char *word = *at;
  size_t length = strcspn(word, " |;,\n");
  *at += length;
  for (size_t i = 0; i < sizeof prefix_operators / sizeof *prefix_operators; i++) {
    if (strlen(prefix_operators[i].text) != length || memcmp(prefix_operators[i].text, word, length)) continue;
    tir_expr a = read_prefix(names, at), b = read_prefix(names, at);
    enum tir_kind kind = prefix_operators[i].kind;
    return names->simplifies ? tir_make(ir, kind, a, b) : tir_binary(ir, kind, a, b);
  }
  if (length == 1 && *word == '?') {
    tir_expr c = read_prefix(names, at), a = read_prefix(names, at);
    return tir_select(ir, c, a, read_prefix(names, at));
  }
  struct named *n = find_name(names, word, length);
  if (n) return tir_var_expr(ir, n->var);
  char *end;
  int64_t value = strtoll(word, &end, 10);
  if (end != word + length) {
    fprintf(stderr, "no expression: %s\n", word);
    abort();
  }
  return tir_int(ir, TIR_T_I32, value);
}

static inline int64_t floor_quotient(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a % b < 0) != (b < 0)); }

/* The value under the values of names. Division by zero gives 0 and sets *wrong. */
static inline int64_t value_of(const struct names *names, tir_expr e, bool *wrong) {
  const struct tir_expr_node n = *tir_at(names->ir, e);
  if (n.kind == TIR_INT_IMM) return n.imm;
  if (n.kind == TIR_VAR) {
    for (uint32_t i = 0; i < names->count; i++)
      if (names->at[i].var == n.ref) return names->at[i].value;
    abort();
  }
  if (n.kind == TIR_NOT) return !value_of(names, n.a, wrong);
  if (n.kind == TIR_SELECT) return value_of(names, value_of(names, n.a, wrong) ? n.b : n.c, wrong);
  int64_t a = value_of(names, n.a, wrong), b = value_of(names, n.b, wrong);
  bool divides = n.kind >= TIR_DIV && n.kind <= TIR_FLOORMOD;
  if (divides && b == 0) {
    *wrong = true;
    return 0;
  }
  switch (n.kind) {
  case TIR_ADD: return a + b;
  case TIR_SUB: return a - b;
  case TIR_MUL: return a * b;
  case TIR_DIV: return a / b;
  case TIR_MOD: return a % b;
  case TIR_FLOORDIV: return floor_quotient(a, b);
  case TIR_FLOORMOD: return a - b * floor_quotient(a, b);
  case TIR_MIN: return a < b ? a : b;
  case TIR_MAX: return a > b ? a : b;
  case TIR_EQ: return a == b;
  case TIR_NE: return a != b;
  case TIR_LT: return a < b;
  case TIR_LE: return a <= b;
  case TIR_GT: return a > b;
  case TIR_GE: return a >= b;
  case TIR_AND: return a && b;
  case TIR_OR: return a || b;
  default: abort();
  }
}

/* Sets the values of all names to their minima; next_values counts on, the last name fastest. False: all were seen, and
 * all are at their minima again. next_values_among counts those from `first` on, the others staying as they are. */
static inline void first_values(struct names *names) {
  for (uint32_t i = 0; i < names->count; i++) names->at[i].value = names->at[i].min;
}
static inline bool next_values_among(struct names *names, uint32_t first, uint32_t end) {
  for (uint32_t i = end; i-- > first;) {
    struct named *n = &names->at[i];
    bool wrong = false;
    int64_t extent = n->extent_expr ? value_of(names, n->extent_expr, &wrong) : n->extent;
    if (++n->value < n->min + extent) return true;
    n->value = n->min;
  }
  return false;
}
static inline bool next_values(struct names *names) { return next_values_among(names, 0, names->count); }

static inline void print_prefix(const struct names *names, tir_expr e, FILE *to) {
  const struct tir_expr_node n = *tir_at(names->ir, e);
  if (n.kind == TIR_INT_IMM) {
    fprintf(to, "%lld", (long long)n.imm);
  } else if (n.kind == TIR_VAR) {
    for (uint32_t i = 0; i < names->count; i++)
      if (names->at[i].var == n.ref) fputs(names->at[i].name, to);
  } else {
    const char *text = n.kind == TIR_SELECT ? "?" : n.kind == TIR_NOT ? "!" : "_";
    for (size_t i = 0; i < sizeof prefix_operators / sizeof *prefix_operators; i++)
      if (prefix_operators[i].kind == n.kind) text = prefix_operators[i].text;
    fprintf(to, "%s ", text);
    print_prefix(names, n.a, to);
    if (n.b) fputc(' ', to), print_prefix(names, n.b, to);
    if (n.c) fputc(' ', to), print_prefix(names, n.c, to);
  }
}

#endif

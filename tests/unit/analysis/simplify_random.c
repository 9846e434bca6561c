/* Random index expressions: what is simplified has the same value, what is proven holds, for all values of the
 * variables. MSCHED_ROUNDS=N draws N times as many. */
#include "unit/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t seed = 88172645463325252ull;
static int times = 1;

static int64_t draw(int64_t below) { /* xorshift: Marsaglia, 2003 */
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return (int64_t)(seed % (uint64_t)below);
}

static const enum tir_kind arithmetic[] = {TIR_ADD,      TIR_ADD, TIR_ADD,      TIR_SUB,      TIR_MUL,
                                           TIR_MIN,      TIR_MAX, TIR_FLOORDIV, TIR_FLOORMOD, TIR_FLOORDIV,
                                           TIR_FLOORMOD, TIR_DIV, TIR_MOD};
static const enum tir_kind comparisons[] = {TIR_LT, TIR_LE, TIR_GT, TIR_GE, TIR_EQ, TIR_NE};
static const int64_t constants[] = {0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, -1, -2, -3, -8};

static tir_expr make(struct names *n, enum tir_kind kind, tir_expr a, tir_expr b) {
  return n->simplifies ? tir_make(n->ir, kind, a, b) : tir_binary(n->ir, kind, a, b);
}

static tir_expr draw_expr(struct names *n, int depth);

static tir_expr draw_constant(struct names *n) {
  return tir_int(n->ir, TIR_T_I32, constants[draw(sizeof constants / sizeof *constants)]);
}

static tir_expr draw_condition(struct names *n, int depth) {
  tir_expr a = draw_expr(n, depth + 1), b = draw(2) ? draw_constant(n) : draw_expr(n, depth + 1);
  tir_expr c = make(n, comparisons[draw(6)], a, b);
  if (depth > 2 || draw(3)) return c;
  return make(n, draw(2) ? TIR_AND : TIR_OR, c, draw_condition(n, depth + 1));
}

static tir_expr draw_expr(struct names *n, int depth) {
  if (depth > 4 || draw(8) < 2) return draw(6) ? tir_var_expr(n->ir, n->at[draw(n->count)].var) : draw_constant(n);
  if (draw(40) == 0) {
    tir_expr c = draw_condition(n, depth + 2), a = draw_expr(n, depth + 1);
    return tir_select(n->ir, c, a, draw_expr(n, depth + 1));
  }
  enum tir_kind kind = arithmetic[draw(sizeof arithmetic / sizeof *arithmetic)];
  bool scales = kind == TIR_MUL || (kind >= TIR_DIV && kind <= TIR_FLOORMOD);
  tir_expr a = draw_expr(n, depth + 1), b;
  if (scales && draw(8))
    b = tir_int(n->ir, TIR_T_I32, constants[1 + draw(11)]);
  else
    b = draw_expr(n, depth + 1);
  return make(n, kind, a, b);
}

static void draw_names(struct names *n, bool simplifies) {
  *n = (struct names){.ir = tir_new(), .simplifies = simplifies};
  static const int64_t extents[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 24};
  static const char *const texts[] = {"a", "b", "c"};
  int64_t total = 1;
  for (int i = 0; i < 3; i++) {
    int64_t extent = extents[draw(10)];
    if (total * extent > 400) extent = 2;
    total *= extent;
    add_name(n, texts[i], draw(4) ? 0 : draw(9) - 4, extent);
  }
}

/* A value that divides by zero anywhere has no meaning. */
static void expect_equal(struct names *n, tir_expr e, tir_expr simple) {
  first_values(n);
  do {
    bool wrong = false, after = false;
    int64_t value = value_of(n, e, &wrong), got = value_of(n, simple, &after);
    if (wrong || value == got) continue;
    print_prefix(n, e, stderr), fputs("\nbecame ", stderr);
    print_prefix(n, simple, stderr), fputs("\nwhere", stderr);
    for (uint32_t i = 0; i < n->count; i++) fprintf(stderr, " %s = %ld", n->at[i].name, (long)n->at[i].value);
    fprintf(stderr, "; %ld for %ld\n", (long)got, (long)value);
    fail();
  } while (next_values(n));
}

static void simplified_values_are_equal(void **state) {
  (void)state;
  for (int round = 0; round < 4000 * times; round++) {
    struct names n;
    draw_names(&n, false);
    tir_expr e = draw_expr(&n, 0);
    tir_expr simple = tir_simplify(n.ir, e);
    expect_equal(&n, e, simple);
    expect_equal(&n, e, tir_simplify(n.ir, simple));
    struct tir_expr_node node = *tir_at(n.ir, simple);
    first_values(&n);
    do {
      bool wrong = false;
      int64_t value = value_of(&n, e, &wrong);
      if (!wrong) assert_true(value >= node.lo && value <= node.hi);
    } while (next_values(&n));
    tir_free(n.ir);
  }
}

/* The condition c holds wherever `given` does (TIR_NONE: everywhere). */
static void expect_holds(struct names *n, tir_expr given, tir_expr c) {
  first_values(n);
  do {
    bool wrong = false;
    if ((given && !value_of(n, given, &wrong)) || value_of(n, c, &wrong) || wrong) continue;
    if (given) print_prefix(n, given, stderr), fputs("\ndoes not give ", stderr);
    print_prefix(n, c, stderr), fputc('\n', stderr);
    fail();
  } while (next_values(n));
}

static void proven_conditions_hold(void **state) {
  (void)state;
  unsigned proven = 0;
  for (int round = 0; round < 6000 * times; round++) {
    struct names n;
    draw_names(&n, draw(2));
    tir_expr c = draw_condition(&n, 2);
    expect_equal(&n, c, tir_simplify(n.ir, c));
    if (tir_prove(n.ir, c)) {
      proven++;
      expect_holds(&n, TIR_NONE, c);
    }
    tir_free(n.ir);
  }
  assert_true(proven > 500);
}

static void conditional_proofs_hold(void **state) {
  (void)state;
  unsigned proven = 0;
  for (int round = 0; round < 6000 * times; round++) {
    struct names n;
    draw_names(&n, draw(2));
    tir_expr given = draw_condition(&n, 3), c = draw(2) ? draw_condition(&n, 3) : TIR_NONE;
    if (!c) { /* a consequence, often: a given bound moved a little */
      struct tir_expr_node g = *tir_at(n.ir, given);
      bool compares = g.kind >= TIR_LT && g.kind <= TIR_GE;
      c = compares ? make(&n, (enum tir_kind)g.kind, g.a, make(&n, TIR_ADD, g.b, draw_constant(&n))) : given;
    }
    if (tir_prove_under(n.ir, given, c) && !tir_prove(n.ir, c)) {
      proven++;
      expect_holds(&n, given, c);
    }
    tir_free(n.ir);
  }
  assert_true(proven > 200);
}

/* Residues hold for all values. */
static void residues_hold(void **state) {
  (void)state;
  for (int round = 0; round < 2000 * times; round++) {
    struct names n;
    int64_t modulus, remainder;
    draw_names(&n, draw(2));
    tir_expr e = draw_expr(&n, 1);
    tir_modular(n.ir, e, &modulus, &remainder);
    first_values(&n);
    do {
      bool wrong = false;
      int64_t value = value_of(&n, e, &wrong) - remainder;
      if (!wrong) assert_true(modulus ? value % modulus == 0 : value == 0);
    } while (next_values(&n));
    tir_free(n.ir);
  }
}

int main(void) {
  const char *rounds = getenv("MSCHED_ROUNDS");
  if (rounds && atoi(rounds) > 0) times = atoi(rounds);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(simplified_values_are_equal),
      cmocka_unit_test(proven_conditions_hold),
      cmocka_unit_test(conditional_proofs_hold),
      cmocka_unit_test(residues_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}

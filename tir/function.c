/* Elementary functions: the rows of functions.def, their values that C's library has not, their second names. */
#include "tir/tir.h"

#include <math.h>
#include <string.h>

static double reciprocal_root(double x) { return 1.0 / sqrt(x); }
/* Below, 1 + e^-x is e^-x, which has no reciprocal before the result is 0. */
static double logistic(double x) { return x < -40 ? exp(x) : 1.0 / (1.0 + exp(-x)); }
static double power_of_ten(double x) { return pow(10.0, x); }

/* A float's exponent is cut to an integer; beyond these all results are 0 or infinite, or as x is. */
static double scaled_by_power(double x, double exponent) {
  double clamped = fmin(fmax(trunc(exponent), -5000), 5000);
  return isnan(exponent) ? x : ldexp(x, (int)clamped);
}

#define VALUE_OF_1(value) value, NULL
#define VALUE_OF_2(value) NULL, value
#define VALUE_OF_3(value) NULL, NULL
#define STEPS(f)          true
#define ROUNDED           true
#define EXACT             false
#define STEP              true
#define SMOOTH            false
#define MEMBER            true
#define NONE              false
const struct tir_function_row tir_functions[TIR_FUNCTIONS] = {
#define TIR_FUNCTION(name, operands, value, free, fixed, llvm, c, jumps, of_free, of_library, te, doc)                 \
  {#name, doc, operands, VALUE_OF_##operands(value), fixed, jumps, te, of_free, of_library},
#include "functions.def"
};

#define MEMBER true
#define NONE   false
static const struct synonym {
  const char *name;
  enum tir_function of;
  bool in_te;
} synonyms[] = {
#define TIR_SYNONYM(name, of, te) {#name, TIR_FUNCTION_##of, te},
#include "functions.def"
};
enum { SYNONYMS = sizeof synonyms / sizeof *synonyms };

enum tir_function tir_function_named(const char *name) {
  for (enum tir_function f = 0; f < TIR_FUNCTIONS; f++)
    if (!strcmp(tir_functions[f].name, name)) return f;
  for (int i = 0; i < SYNONYMS; i++)
    if (!strcmp(synonyms[i].name, name)) return synonyms[i].of;
  return TIR_FUNCTIONS;
}

void tir_each_te_function(void (*f)(void *data, const char *name, const char *doc), void *data) {
  for (enum tir_function i = 0; i < TIR_FUNCTIONS; i++)
    if (tir_functions[i].in_te) f(data, tir_functions[i].name, tir_functions[i].doc);
  for (int i = 0; i < SYNONYMS; i++)
    if (synonyms[i].in_te) f(data, synonyms[i].name, tir_functions[synonyms[i].of].doc);
}

/* Elementary functions, by the table functions.def. Part of the public header tir.h; included from there only. */

enum tir_function {
#define TIR_FUNCTION(name, ...) TIR_FUNCTION_##name,
#include "functions.def"
  TIR_FUNCTIONS
};
struct tir_function_row {
  const char *name, *doc;
  uint32_t operands;
  double (*of_one)(double); /* its value, by the number of operands; of three: NULL, NULL */
  double (*of_two)(double, double);
  bool rounds;                      /* the result depends on the precision that it is computed in */
  bool jumps;                       /* it is a step function */
  bool in_te;                       /* te.NAME(x) */
  double free_error, library_error; /* allowed of float32, in units in the last place; 0: none */
};
extern const struct tir_function_row tir_functions[TIR_FUNCTIONS];

enum tir_function tir_function_named(const char *name); /* by a second name, too; TIR_FUNCTIONS: there is none */
/* Calls f with each name that te has a function for, and what that computes. */
void tir_each_te_function(void (*f)(void *data, const char *name, const char *doc), void *data);

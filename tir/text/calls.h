/* Calls by name, T.name(…): what type they give, and how the text says so. Internal to tir. */
#ifndef MSCHED_TIR_CALLS_H
#define MSCHED_TIR_CALLS_H

#include "tir/tir.h"

/* What a call gives: the type of its first or second argument, a fixed type, or one that is written as its first or
 * last argument. Names that are not known give the type of their first argument. */
enum tir_call_rule {
  TIR_CALL_SAME,
  TIR_CALL_SECOND,
  TIR_CALL_INT32,
  TIR_CALL_UINT32,
  TIR_CALL_TRUTH,
  TIR_CALL_POINTER,
  TIR_CALL_NOTHING,
  TIR_CALL_FIRST,
  TIR_CALL_LAST
};
enum tir_call_rule tir_call_rule_of(const char *name);
/* The type that a call has if the text does not give one. */
tir_type tir_call_type(const struct tir *ir, enum tir_call_rule rule, const tir_expr *args, uint32_t count);

/* Where the type of a call stands in its text: nowhere, as its first or last argument, or as dtype="…". */
enum tir_dtype_place { TIR_DTYPE_ABSENT, TIR_DTYPE_FIRST, TIR_DTYPE_LAST, TIR_DTYPE_KEYWORD };
enum tir_dtype_place tir_call_dtype_place(const struct tir *ir, tir_expr call);

#endif

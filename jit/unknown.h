/* Variables that no code gives a value. Internal to jit. */
#ifndef MSCHED_JIT_UNKNOWN_H
#define MSCHED_JIT_UNKNOWN_H

#include "tir/tir.h"

/* The message about one: in most cases it is a parameter's extent. */
enum { JIT_UNKNOWN_TEXT = 1000 };
const char *jit_unknown_variable(const struct tir *ir, tir_func f, tir_var v, char out[JIT_UNKNOWN_TEXT]);

#endif

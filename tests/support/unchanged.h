/* What a refusal must leave alone. */
#ifndef TEST_UNCHANGED_H
#define TEST_UNCHANGED_H

#include "tir/tir.h"

/* The name of an array of the module that differs from what it was; NULL: there is none. */
const char *changed_array(const struct tir *before, const struct tir *after);

#endif

/* What a refusal must leave alone. */
#ifndef TEST_UNCHANGED_H
#define TEST_UNCHANGED_H

#include "tir/tir.h"

/* The name of an array of the module that differs from what it was; NULL: there is none. Facts that are found when
 * asked for may have been found (`before` forgets them). */
const char *changed_array(struct tir *before, const struct tir *after);

#endif

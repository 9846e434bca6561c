/* For tests of passes of the lowering: what a function has become after one, as text. */
#ifndef MSCHED_TEST_LOWERED_TEXT_H
#define MSCHED_TEST_LOWERED_TEXT_H

#include "script.h"

#include <stdio.h>

/* The function `main` after the pass, for a CPU with vectors of 256 bits; free it. The module is freed. */
static inline char *text_after(struct tir *ir, const char *pass) {
  char *text = NULL;
  size_t length = 0;
  struct tir_lower_options options = {
      .vector_bits = 256, .finite = true, .verify = true, .dump_after = pass, .dump = open_memstream(&text, &length)};
  assert_non_null(options.dump);
  assert_accepted(tir_lower(ir, tir_find_func(ir, "main"), &options, err));
  fclose(options.dump);
  tir_free(ir);
  return text;
}

static inline uint32_t count_of(const char *text, const char *part) {
  uint32_t count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) count++;
  return count;
}

#endif

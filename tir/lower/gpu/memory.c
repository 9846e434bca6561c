/* Which memory of a GPU a buffer lies in, by its scope. */
#include "tir/lower/lower.h"

#include <string.h>

enum lower_memory lower_memory_of(const struct tir *ir, tir_buffer buffer) {
  const char *scope = tir_text(ir, tir_buffer_at(ir, buffer)->scope);
  if (!*scope || !strncmp(scope, "global", 6)) return LOWER_DEVICE;
  return !strncmp(scope, "shared", 6) ? LOWER_BLOCK : LOWER_THREAD;
}

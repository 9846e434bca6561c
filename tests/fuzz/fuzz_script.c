/* Any bytes as TVMScript: they are refused with a message, or read; what is read is printed, and reads back as equal;
 * what passes the verifier is lowered, and passes it after each pass, or is refused with a message. */
#include "tir/tir.h"

#include <stdlib.h>
#include <string.h>

static void stop(const char *what, const char *text, const char *why) {
  fprintf(stderr, "%s: %s\n%s\n", what, why, text);
  abort();
}

static void lower(const struct tir *ir, const char *text) {
  ms_error err = {.message = ""}, none = {.message = ""};
  if (!tir_verify_scopes(ir, &none)) return;
  const struct tir_lower_options options = {.verify = tir_verify(ir, &none)};
  for (tir_func f = 1; f < ir->funcs.count; f++) {
    struct tir *lowered = tir_new();
    tir_copy(lowered, ir);
    bool done = tir_lower(lowered, f, &options, &err);
    if (!done && (!*err.message || (err.code >= MS_VERIFY_STORAGE && err.code <= MS_VERIFY_REGION)))
      stop("lowering", text, err.message);
    tir_free(lowered);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ms_error err = {.message = ""};
  char why[400];
  struct tir *ir = tir_read((const char *)data, size, "fuzz.py", &err);
  if (!ir) {
    if (strncmp(err.message, "fuzz.py:", 8)) stop("an error without its place", "", err.message);
    return 0;
  }
  char *text = tir_print(ir, TIR_NONE, 0);
  struct tir *again = tir_read(text, strlen(text), "printed.py", &err);
  if (!again) stop("the printed text is refused", text, err.message);
  if (!tir_structural_equal(ir, TIR_NONE, again, TIR_NONE, why, sizeof why)) stop("not equal", text, why);
  if (tir_structural_hash(ir, TIR_NONE) != tir_structural_hash(again, TIR_NONE)) stop("hashes differ", text, "");
  char *twice = tir_print(again, TIR_NONE, 0);
  if (strcmp(text, twice)) stop("printed differently", text, twice);
  lower(ir, text);
  free(twice);
  free(text);
  tir_free(again);
  tir_free(ir);
  return 0;
}

/* Real numbers as text, in whatever locale a host has set. */
#include "tir.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* The C library's own locale, which needs no memory and is always there. POSIX.1-2017, newlocale. */
static locale_t plain(void) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  assert(c != (locale_t)0);
  return c;
}

int tir_number_text(char *out, size_t size, const char *format, double value) {
  assert(out && size && format && strchr(format, '%'));
  locale_t host = uselocale(plain());
  int length = snprintf(out, size, format, value);
  uselocale(host);
  assert(length > 0 && (size_t)length < size);
  return length;
}

double tir_text_number(const char *text, char **end) {
  assert(text);
  locale_t host = uselocale(plain());
  double value = strtod(text, end);
  uselocale(host);
  return value;
}

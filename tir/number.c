/* Real numbers as text, in whatever locale a host has set, however its floats are rounded or flushed to zero. */
#include "tir.h"

#include <fenv.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* The C library's own locale, which needs no memory and is always there. POSIX.1-2017, newlocale. */
static locale_t plain(void) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  assert(c != (locale_t)0);
  return c;
}

/* The C library rounds decimal digits as it finds the thread, and takes subnormal floats for 0 where that is set, as
 * libraries do that were built by -ffast-math. */
static locale_t enter(fenv_t *floats) {
  fegetenv(floats);
  fesetenv(FE_DFL_ENV);
  return uselocale(plain());
}
static void leave(locale_t host, const fenv_t *floats) {
  uselocale(host);
  fesetenv(floats);
}

int tir_number_text(char *out, size_t size, const char *format, double value) {
  assert(out && size && format && strchr(format, '%'));
  fenv_t floats;
  locale_t host = enter(&floats);
  int length = snprintf(out, size, format, value);
  leave(host, &floats);
  assert(length > 0 && (size_t)length < size);
  return length;
}

double tir_text_number(const char *text, char **end) {
  assert(text);
  fenv_t floats;
  locale_t host = enter(&floats);
  double value = strtod(text, end);
  leave(host, &floats);
  return value;
}

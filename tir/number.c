/* Real numbers as text, in whatever locale a host has set, however its floats are rounded or flushed to zero. */
#include "tir.h"

#include <fenv.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

/* The C library's own locale, which needs no memory and is always there. POSIX.1-2017, newlocale. */
static locale_t plain(void) {
  locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  assert(c != (locale_t)0);
  return c;
}

struct host {
  locale_t locale;
  bool set; /* floats are set, and put back */
  fenv_t floats;
  unsigned raised; /* not set: what stands in their place */
};

#ifdef __x86_64__
/* Whether floats are as a program begins with them, but for what was raised: setting them costs time. */
static bool is_default(void) {
  enum { RAISED = 0x3f, ALL_MASKED = 0x1f80 }; /* Intel SDM volume 1, 10.2.3: rounded to nearest, subnormals kept */
  return (_mm_getcsr() & ~(unsigned)RAISED) == ALL_MASKED && fegetround() == FE_TONEAREST;
}
static unsigned get_raised(void) { return _mm_getcsr(); }
static void put_raised(unsigned raised) { _mm_setcsr(raised); }
#else
static bool is_default(void) { return false; }
static unsigned get_raised(void) { return 0; }
static void put_raised(unsigned raised) { (void)raised; }
#endif

/* The C library rounds decimal digits as it finds the thread, and takes subnormal floats for 0 where that is set, as
 * libraries do that were built by -ffast-math. */
static struct host enter(void) {
  struct host h = {.set = !is_default()};
  if (h.set) {
    fegetenv(&h.floats);
    fesetenv(FE_DFL_ENV);
  } else {
    h.raised = get_raised();
  }
  h.locale = uselocale(plain());
  return h;
}
static void leave(const struct host *h) {
  uselocale(h->locale);
  if (h->set)
    fesetenv(&h->floats);
  else
    put_raised(h->raised);
}

int tir_number_text(char *out, size_t size, const char *format, double value) {
  assert(out && size && format && strchr(format, '%'));
  struct host host = enter();
  int length = snprintf(out, size, format, value);
  leave(&host);
  assert(length > 0 && (size_t)length < size);
  return length;
}

double tir_text_number(const char *text, char **end) {
  assert(text);
  struct host host = enter();
  double value = strtod(text, end);
  leave(&host);
  return value;
}

/* The text that is written: its lines, and what cannot be written. */
#include "emit_c.h"

#include <stdarg.h>

void emit_c_refuse(struct emit_c *e, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!e->failed) ms_vfail(e->err, MS_NOT_COMPILABLE, format, args);
  va_end(args);
  e->failed = true;
}

void emit_c_begin(struct emit_c *e) { fprintf(e->out, "%*s", 2 * e->indent, ""); }

void emit_c_line(struct emit_c *e, const char *format, ...) {
  va_list args;
  emit_c_begin(e);
  va_start(args, format);
  vfprintf(e->out, format, args);
  va_end(args);
  fputc('\n', e->out);
}

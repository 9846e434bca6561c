/* What ends a run, and where: the statement, and in a kernel the thread. */
#include "interp.h"

#include <stdarg.h>

bool interp_fail(struct machine *m, const struct thread *t, enum ms_code code, const char *format, ...) {
  assert(code != MS_OK);
  char text[900], thread[128] = "";
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (m->in_kernel && t)
    snprintf(thread, sizeof thread, " (block %lld, %lld, %lld, thread %lld, %lld, %lld)", (long long)t->at[0],
             (long long)t->at[1], (long long)t->at[2], (long long)t->at[3], (long long)t->at[4], (long long)t->at[5]);
  return tir_refuse(m->ir, m->err, code, t ? m->program->places.at[t->pc] : TIR_NONE, "%s%s", text, thread);
}

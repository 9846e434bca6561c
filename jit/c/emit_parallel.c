/* Parallel loops in C source: the loop of one thread is a function, so that restrict holds in it, called on every
 * thread of an OpenMP region; each takes a run of the iterations. Without OpenMP the function is called once, for all
 * of them. */
#include "emit_c.h"

#include <stdlib.h>
#include <string.h>

static void write_body(struct emit_c *e, const struct tir_captures *c, uint32_t number) {
  struct tir_stmt_node s = *tir_as(e->ir, c->loop, TIR_LOOP);
  FILE *outer = e->out;
  int indent = e->indent;
  bool streams = e->streams;
  char *text = NULL;
  size_t size;
  if (!(e->out = open_memstream(&text, &size))) abort();
  fprintf(e->out,
          "static __attribute__((noinline)) void ms_parallel_%u(int64_t ms_begin, int64_t ms_end, int64_t ms_thread, "
          "int32_t *ms_status",
          number);
  if (c->buffers + c->vars) fputs(", ", e->out);
  emit_c_captured(e, c, C_PARAMETERS);
  fprintf(e->out, ") {\n  (void)ms_thread;\n  (void)ms_status;\n");
  uint32_t mark = emit_c_enter(e);
  const char *i = emit_c_declare_var(e, s.loop.var);
  e->indent = 1;
  e->parallel = true;
  e->streams = false;
  emit_c_line(e, "for (int64_t %s = ms_begin; %s < ms_end; %s++) {", i, i, i);
  e->indent++;
  emit_c_list(e, s.first[TIR_BODY]);
  e->indent--;
  emit_c_line(e, "}");
  emit_c_fence(e);
  fputs("}\n\n", e->out);
  e->parallel = false;
  e->streams = streams;
  emit_c_leave(e, mark);
  fclose(e->out);
  e->out = outer;
  e->indent = indent;
  fputs(text, e->functions);
  free(text);
}

void emit_c_parallel(struct emit_c *e, const struct tir_captures *c) {
  struct tir_stmt_node s = *tir_as(e->ir, c->loop, TIR_LOOP);
  uint32_t number = e->bodies++;
  write_body(e, c, number);
  emit_c_line(e, "{");
  e->indent++;
  emit_c_begin(e);
  fputs("const int64_t ms_begin = ", e->out);
  emit_c_number(e, s.loop.min, C_LOW);
  fputs(", ms_extent = ", e->out);
  emit_c_number(e, s.loop.extent, C_LOW);
  fputs(";\n", e->out);
  fprintf(e->out, "#ifdef _OPENMP\n#pragma omp parallel num_threads(%d)\n#endif\n", e->target->cores);
  emit_c_line(e, "{");
  e->indent++;
  emit_c_line(e, "const int64_t ms_t = MS_THREAD, ms_n = MS_THREADS;");
  emit_c_begin(e);
  fprintf(e->out,
          "ms_parallel_%u(ms_begin + ms_extent * ms_t / ms_n, ms_begin + ms_extent * (ms_t + 1) / ms_n, ms_t, "
          "ms_status",
          number);
  if (c->buffers + c->vars) fputs(", ", e->out);
  emit_c_captured(e, c, C_ARGUMENTS);
  fputs(");\n", e->out);
  e->indent--;
  emit_c_line(e, "}");
  e->indent--;
  emit_c_line(e, "}");
}

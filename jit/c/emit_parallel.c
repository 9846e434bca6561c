/* Outlined code in C source: functions, so that restrict holds in them.
 *
 * The loop of one thread is called on every thread of an OpenMP region; each takes a run of the iterations. Without
 * OpenMP it is called once, for all of them. A nest is called where it stands. What has one number has one function,
 * that of the first. */
#include "emit_c.h"

#include <stdlib.h>
#include <string.h>

/* ---- Functions ---- */

/* Where the text goes meanwhile, and what it goes on with after it. */
struct outer {
  FILE *out;
  char *text;
  size_t size;
  int indent;
  bool streams;
};

static void begin_function(struct emit_c *e, struct outer *o) {
  *o = (struct outer){.out = e->out, .indent = e->indent, .streams = e->streams};
  if (!(e->out = open_memstream(&o->text, &o->size))) abort();
  e->indent = 1;
  e->streams = false;
}

static void end_function(struct emit_c *e, struct outer *o) {
  emit_c_fence(e);
  fputs("}\n\n", e->out);
  fclose(e->out);
  e->out = o->out;
  e->indent = o->indent;
  e->streams = o->streams;
  fputs(o->text, e->functions);
  free(o->text);
}

/* The function's number; *fresh: it is not written yet. */
static uint32_t number_of(struct emit_c *e, const struct tir_captures *c, bool *fresh) {
  *fresh = c->number >= e->shared_capacity || !e->shared[c->number];
  if (!c->number) return *fresh = true, e->bodies++;
  if (!*fresh) return e->shared[c->number] - 1;
  uint32_t before = e->shared_capacity;
  if (c->number >= before) {
    e->shared = tir_enlarge(e->shared, &e->shared_capacity, c->number + 1ull, sizeof *e->shared);
    memset(e->shared + before, 0, (e->shared_capacity - before) * sizeof *e->shared);
  }
  e->shared[c->number] = ++e->bodies;
  return e->bodies - 1;
}

/* ---- Parallel loops ---- */

static void write_body(struct emit_c *e, const struct tir_captures *c, uint32_t number) {
  struct tir_stmt_node s = *tir_as(e->ir, c->loop, TIR_LOOP);
  struct outer outer;
  begin_function(e, &outer);
  fprintf(e->out,
          "static __attribute__((noinline)) void ms_parallel_%u(int64_t ms_begin, int64_t ms_end, int64_t ms_thread, "
          "int32_t *ms_status",
          number);
  if (c->buffers + c->vars) fputs(", ", e->out);
  emit_c_captured(e, c, C_PARAMETERS);
  fprintf(e->out, ") {\n  (void)ms_thread;\n  (void)ms_status;\n");
  uint32_t mark = emit_c_enter(e);
  const char *i = emit_c_declare_var(e, s.loop.var);
  e->parallel = true;
  emit_c_line(e, "for (int64_t %s = ms_begin; %s < ms_end; %s++) {", i, i, i);
  e->indent++;
  emit_c_list(e, s.first[TIR_BODY]);
  e->indent--;
  emit_c_line(e, "}");
  e->parallel = false;
  emit_c_leave(e, mark);
  end_function(e, &outer);
}

static void emit_loop(struct emit_c *e, const struct tir_captures *c) {
  struct tir_stmt_node s = *tir_as(e->ir, c->loop, TIR_LOOP);
  bool fresh;
  uint32_t number = number_of(e, c, &fresh);
  e->threads = true;
  if (fresh) write_body(e, c, number);
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

/* ---- Nests ---- */

static void write_nest(struct emit_c *e, const struct tir_captures *c, uint32_t number) {
  struct outer outer;
  begin_function(e, &outer);
  fprintf(e->out, "static __attribute__((noinline)) void ms_nest_%u(", number);
  if (c->buffers + c->vars == 0) fputs("void", e->out);
  emit_c_captured(e, c, C_PARAMETERS);
  fputs(") {\n", e->out);
  emit_c_list(e, c->first);
  end_function(e, &outer);
}

static void emit_nest(struct emit_c *e, const struct tir_captures *c) {
  bool fresh;
  uint32_t number = number_of(e, c, &fresh);
  if (fresh) write_nest(e, c, number);
  emit_c_begin(e);
  fprintf(e->out, "ms_nest_%u(", number);
  emit_c_captured(e, c, C_ARGUMENTS);
  fputs(");\n", e->out);
}

void emit_c_outlined(struct emit_c *e, const struct tir_captures *c) { (c->loop ? emit_loop : emit_nest)(e, c); }

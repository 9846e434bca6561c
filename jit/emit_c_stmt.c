/* Statements in C source, and the function around them. */
#include "emit_c.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

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

static void emit_body(struct emit_c *e, tir_stmt first) {
  e->indent++;
  emit_c_list(e, first);
  e->indent--;
}

/* ---- Control ---- */

static void emit_loop(struct emit_c *e, tir_loop loop) {
  assert(tir_is(e->ir, loop, TIR_LOOP));
  struct tir_stmt_node s = *tir_stmt_at(e->ir, loop);
  const struct tir_expr_node *min = tir_at(e->ir, s.loop.min), *extent = tir_at(e->ir, s.loop.extent);
  bool constant = tir_is_int(e->ir, s.loop.min) && tir_is_int(e->ir, s.loop.extent);
  uint32_t mark = emit_c_enter(e);
  char *from = NULL; /* in terms of names as they are outside the loop */
  size_t size;
  FILE *out = e->out;
  if (!(e->out = open_memstream(&from, &size))) abort();
  emit_c_index(e, s.loop.min);
  if (!constant) {
    fprintf(e->out, ", ms_end_%u = ", e->scope_count);
    emit_c_index(e, s.loop.min);
    fputs(" + (", e->out);
    emit_c_index(e, s.loop.extent);
    fputc(')', e->out);
  }
  fclose(e->out);
  e->out = out;
  uint32_t number = e->scope_count;
  const char *i = emit_c_declare_var(e, s.loop.var);
  if (constant)
    emit_c_line(e, "for (int64_t %s = %s; %s < %lld; %s++) {", i, from, i, (long long)(min->imm + extent->imm), i);
  else
    emit_c_line(e, "for (int64_t %s = %s; %s < ms_end_%u; %s++) {", i, from, i, number, i);
  free(from);
  emit_body(e, s.first[TIR_BODY]);
  emit_c_line(e, "}");
  emit_c_leave(e, mark);
}

/* A condition in the parentheses that `if` wants, once: twice they are warned of. */
void emit_c_condition(struct emit_c *e, tir_expr condition) {
  const struct tir_expr_node *n = tir_at(e->ir, condition);
  bool wrapped = (n->kind >= TIR_EQ && n->kind <= TIR_GE) || n->kind == TIR_AND || n->kind == TIR_OR;
  if (!wrapped) fputc('(', e->out);
  emit_c_truth(e, condition);
  if (!wrapped) fputc(')', e->out);
}

static void emit_condition(struct emit_c *e, const char *word, tir_expr condition, const char *after) {
  emit_c_begin(e);
  fprintf(e->out, "%s ", word);
  emit_c_condition(e, condition);
  fprintf(e->out, "%s\n", after);
}

static void emit_if(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_IF));
  struct tir_stmt_node s = *tir_stmt_at(e->ir, at);
  emit_condition(e, "if", s.test.condition, " {");
  emit_body(e, s.first[TIR_BODY]);
  if (s.first[TIR_ELSE]) {
    emit_c_line(e, "} else {");
    emit_body(e, s.first[TIR_ELSE]);
  }
  emit_c_line(e, "}");
}

static void emit_while(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_WHILE));
  emit_condition(e, "while", tir_stmt_at(e->ir, at)->test.condition, " {");
  emit_body(e, tir_stmt_at(e->ir, at)->first[TIR_BODY]);
  emit_c_line(e, "}");
}

static void emit_assert(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_ASSERT));
  emit_c_begin(e);
  fputs("if (!", e->out);
  emit_c_condition(e, tir_stmt_at(e->ir, at)->test.condition);
  fputs(") {\n", e->out);
  emit_c_line(e, "  __atomic_store_n(ms_status, 1, __ATOMIC_RELAXED);");
  emit_c_line(e, "  return;");
  emit_c_line(e, "}");
}

/* ---- Allocations: the workspace is the caller's; what is not laid out in it is small, and lies on the stack ---- */

static void emit_allocation(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_ALLOC));
  tir_buffer buffer = tir_stmt_at(e->ir, at)->alloc.buffer;
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, buffer);
  uint64_t bytes = tir_allocation_bytes(e->ir, buffer);
  char type[32];
  if (!bytes) {
    emit_c_refuse(e, "buffer %s: its size is no positive constant, or too large", tir_text(e->ir, b->name));
    return;
  }
  struct c_type t = emit_c_stored(b->type, 1);
  const char *name = emit_c_declare_buffer(e, buffer);
  emit_c_type_name(e, t, type);
  if (buffer == tir_workspace_of(e->ir, e->func).buffer)
    emit_c_line(e, "%s *%s = (%s *)ms_workspace;", type, name, type);
  else
    emit_c_line(e, "%s %s[%llu] __attribute__((aligned(64), unused));", type, name,
                (unsigned long long)bytes / ((unsigned)t.bits / 8));
}

static void emit_declaration(struct emit_c *e, tir_stmt at) {
  tir_buffer buffer = tir_stmt_at(e->ir, at)->alloc.buffer;
  tir_expr data = tir_buffer_at(e->ir, buffer)->data;
  char type[32];
  if (!data) {
    emit_allocation(e, at);
    return;
  }
  emit_c_type_name(e, emit_c_stored(tir_buffer_at(e->ir, buffer)->type, 1), type);
  FILE *out = e->out;
  char *text = NULL;
  size_t size;
  if (!(e->out = open_memstream(&text, &size))) abort();
  emit_c_value(e, data, C_SCALAR);
  fclose(e->out);
  e->out = out;
  emit_c_line(e, "%s *%s __attribute__((unused)) = (%s *)(%s);", type, emit_c_declare_buffer(e, buffer), type, text);
  free(text);
}

static void emit_binding(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_BIND));
  tir_var v = tir_as(e->ir, at, TIR_BIND)->bind.var;
  tir_expr value = tir_as(e->ir, at, TIR_BIND)->bind.value;
  tir_type type = e->ir->vars.at[v].type;
  char name[32];
  if (tir_type_lanes(type) != 1) {
    emit_c_refuse(e, "a vector that is bound to a name has no form in C");
    return;
  }
  FILE *out = e->out;
  char *text = NULL;
  size_t size;
  if (!(e->out = open_memstream(&text, &size))) abort();
  if (tir_type_is_int(type))
    emit_c_index(e, value);
  else
    emit_c_value(e, value, C_SCALAR);
  fclose(e->out);
  e->out = out;
  if (tir_type_is_int(type))
    strcpy(name, "int64_t");
  else if (tir_type_code(type) == TIR_HANDLE)
    strcpy(name, "void *");
  else
    emit_c_type_name(e, emit_c_type(e, type, 1), name);
  emit_c_line(e, "%s %s __attribute__((unused)) = %s;", name, emit_c_declare_var(e, v), text);
  free(text);
}

static void emit_statement(struct emit_c *e, tir_stmt s) {
  const struct tir_stmt_node *n = tir_stmt_at(e->ir, s);
  struct tir_captures captures;
  switch (n->kind) {
  case TIR_LOOP: emit_loop(e, s); break;
  case TIR_STORE: emit_c_store(e, s); break;
  case TIR_IF: emit_if(e, s); break;
  case TIR_WHILE: emit_while(e, s); break;
  case TIR_ASSERT: emit_assert(e, s); break;
  case TIR_BIND: emit_binding(e, s); break;
  case TIR_EVALUATE:
    emit_c_begin(e);
    fputs("(void)", e->out);
    emit_c_value(e, n->evaluate.value, C_SCALAR);
    fputs(";\n", e->out);
    break;
  case TIR_ALLOC: emit_allocation(e, s); break;
  case TIR_DECLARE: emit_declaration(e, s); break;
  case TIR_ATTR:
    if (tir_captures_of(e->ir, s, &captures)) {
      emit_c_parallel(e, &captures);
      break;
    }
    emit_c_line(e, "{");
    emit_body(e, n->first[TIR_BODY]);
    emit_c_line(e, "}");
    break;
  default: emit_c_refuse(e, "a block was not lowered");
  }
}

/* What a list declares ends with it. */
void emit_c_list(struct emit_c *e, tir_stmt first) {
  uint32_t mark = emit_c_enter(e);
  for (tir_stmt s = first; s && !e->failed; s = tir_stmt_at(e->ir, s)->next) emit_statement(e, s);
  emit_c_leave(e, mark);
}

/* ---- The function ---- */

static void parameter(struct emit_c *e, const struct tir_param *p) {
  char type[32];
  if (p->buffer) {
    emit_c_type_name(e, emit_c_stored(tir_buffer_at(e->ir, p->buffer)->type, 1), type);
    const char *name = emit_c_declare_buffer(e, p->buffer);
    fprintf(e->out, "%s *restrict %s, ", type, name);
    if (p->var) { /* the pointer itself may be used too */
      const char *handle = emit_c_declare_var(e, p->var);
      fprintf(e->out, "void *%s, ", handle);
    }
    return;
  }
  tir_type t = e->ir->vars.at[p->var].type;
  if (tir_type_is_int(t))
    strcpy(type, "int64_t ");
  else if (tir_type_code(t) == TIR_HANDLE)
    strcpy(type, "void *");
  else
    emit_c_type_name(e, emit_c_type(e, t, 1), type), strcat(type, " ");
  fprintf(e->out, "%s%s, ", type, emit_c_declare_var(e, p->var));
}

static void write_inner(struct emit_c *e) {
  struct tir_span params = e->ir->funcs.at[e->func].params;
  uint32_t mark = emit_c_enter(e);
  fputs("static void ms_body(", e->out);
  for (uint32_t i = 0; i < params.count; i++) parameter(e, &e->ir->params.at[params.first + i]);
  fputs("int32_t *ms_status, char *ms_workspace) {\n", e->out);
  for (uint32_t i = mark; i < e->scope_count; i++) fprintf(e->out, "  (void)%s;\n", e->scope[i]);
  fputs("  (void)ms_status;\n  (void)ms_workspace;\n", e->out);
  e->indent = 1;
  emit_c_list(e, tir_stmt_at(e->ir, e->ir->funcs.at[e->func].body)->first[TIR_BODY]);
  e->indent = 0;
  fputs("}\n\n", e->out);
  emit_c_leave(e, mark);
}

static void scalar_argument(struct emit_c *e, tir_type t, uint32_t i) {
  char type[32];
  char helper[64];
  struct c_type f = {TIR_FLOAT, 32, 1};
  if (tir_type_code(t) == TIR_HANDLE)
    fprintf(e->out, "*(void **)args[%u], ", i);
  else if (tir_type_is_float(t) && tir_type_bits(t) == 16)
    fprintf(e->out, "%s(*(const uint16_t *)args[%u]), ",
            emit_c_helper(e, tir_type_code(t) == TIR_BFLOAT ? "of_bfloat" : "of_half", f, NULL, helper), i);
  else
    fprintf(e->out, "*(const %s *)args[%u], ", emit_c_type_name(e, emit_c_stored(t, 1), type), i);
}

static void write_entry(struct emit_c *e) {
  struct tir_span params = e->ir->funcs.at[e->func].params;
  fprintf(e->out, "int32_t %s(void **args, void *workspace);\nint32_t %s(void **args, void *workspace) {\n", e->name,
          e->name);
  fputs("  int32_t ms_status = 0;\n", e->out);
  if (!params.count) fputs("  (void)args;\n", e->out);
  fputs("  ms_body(", e->out);
  for (uint32_t i = 0; i < params.count; i++) {
    const struct tir_param *p = &e->ir->params.at[params.first + i];
    char type[32];
    if (p->buffer) {
      fprintf(e->out, "(%s *)args[%u], ",
              emit_c_type_name(e, emit_c_stored(tir_buffer_at(e->ir, p->buffer)->type, 1), type), i);
      if (p->var) fprintf(e->out, "args[%u], ", i);
    } else {
      scalar_argument(e, e->ir->vars.at[p->var].type, i);
    }
  }
  fputs("&ms_status, (char *)workspace);\n  return ms_status;\n}\n", e->out);
}

static void write_head(const struct emit_c *e, FILE *out) {
  char target[JIT_TARGET_TEXT];
  jit_target_text(e->target, target, sizeof target);
  fprintf(out,
          "/* %s, made by msched for %s.\n"
          " * Compile with gcc or clang: cc -O3 -march=native -fopenmp -c; link with -fopenmp -lm. Without -fopenmp it "
          "runs on\n"
          " * one thread. Vectors are of %d bits: for narrower registers add -Wno-psabi. args: one a parameter, the "
          "address of a buffer's first element or of "
          "a\n"
          " * scalar's value; workspace: %llu bytes aligned to 64. Returns 0, or 1 when an assertion of the function "
          "failed. */\n",
          e->name, target, e->target->vector_bits, (unsigned long long)tir_workspace_of(e->ir, e->func).bytes);
  fputs("#include <stdint.h>\n", out);
  if (e->bodies)
    fputs("#ifdef _OPENMP\n#include <omp.h>\n#define MS_THREAD omp_get_thread_num()\n"
          "#define MS_THREADS omp_get_num_threads()\n#else\n#define MS_THREAD 0\n#define MS_THREADS 1\n#endif\n",
          out);
  fputs("\n#define MS_HELPER static inline __attribute__((always_inline, unused))\n"
        "#pragma GCC diagnostic ignored \"-Wpsabi\" /* helpers are inlined: no vector crosses a call */\n"
        "#ifndef __clang__ /* guards that are the same let nothing through */\n"
        "#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"\n#endif\n",
        out);
  if (!e->fast_math)
    fputs("#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#else\n#pragma GCC optimize(\"fp-contract=off\")\n#endif\n",
          out);
  fputc('\n', out);
}

static char *assemble(struct emit_c *e, const char *helpers, const char *functions, const char *text) {
  char *all = NULL;
  size_t size;
  FILE *out = open_memstream(&all, &size);
  if (!out) abort();
  write_head(e, out);
  fprintf(out, "%s\n%s%s", helpers, functions, text);
  fclose(out);
  return all;
}

char *jit_emit_c(const struct tir *ir, tir_func f, const char *name, const struct jit_target *target,
                 const struct jit_options *options, ms_error *err) {
  assert(tir_is_func(ir, f) && name && target);
  struct emit_c e = {.ir = ir,
                     .func = f,
                     .target = target,
                     .fast_math = !(options && options->no_fast_math),
                     .name = name,
                     .err = err};
  char *helpers = NULL, *functions = NULL, *text = NULL, *all = NULL;
  size_t sizes[3];
  e.helpers = open_memstream(&helpers, &sizes[0]);
  e.functions = open_memstream(&functions, &sizes[1]);
  e.out = open_memstream(&text, &sizes[2]);
  e.vars = calloc(ir->vars.count, sizeof *e.vars);
  e.buffers = calloc(ir->buffers.count, sizeof *e.buffers);
  if (!e.helpers || !e.functions || !e.out || !e.vars || !e.buffers) abort();
  write_inner(&e);
  if (!e.failed) write_entry(&e);
  fclose(e.helpers);
  fclose(e.functions);
  fclose(e.out);
  if (!e.failed) all = assemble(&e, helpers, functions, text);
  for (uint32_t i = 0; i < e.known_count; i++) free(e.known[i]);
  free(e.known);
  free(e.scope);
  free(e.vars);
  free(e.buffers);
  free(helpers);
  free(functions);
  free(text);
  return all;
}

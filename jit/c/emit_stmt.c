/* Statements in C source, and the function around them. */
#include "emit_c.h"
#include "jit/backend.h"

#include <stdlib.h>
#include <string.h>

/* One level further in. */
static void emit_c_body(struct emit_c *e, tir_stmt first) {
  e->indent++;
  emit_c_list(e, first);
  e->indent--;
}

/* ---- Control ---- */

/* What stands before a loop: clang's vectorizer is LLVM's. */
static void emit_c_pragma(struct emit_c *e, tir_stmt loop) {
  if (!e->dialect->vectorized || !jit_stores_come_back(e->ir, loop)) return;
  fputs("#ifdef __clang__ /* it would reorder stores to one place */\n"
        "#pragma clang loop vectorize(disable)\n#endif\n",
        e->out);
}

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
  emit_c_number(e, s.loop.min, C_LOW);
  if (!constant) {
    fprintf(e->out, ", ms_end_%u = ", e->scope_count);
    emit_c_number(e, s.loop.min, C_SUM);
    fputs(" + (", e->out);
    emit_c_number(e, s.loop.extent, C_LOW);
    fputc(')', e->out);
  }
  fclose(e->out);
  e->out = out;
  uint32_t number = e->scope_count;
  const char *i = emit_c_declare_var(e, s.loop.var), *type = emit_c_index_type(e);
  emit_c_pragma(e, loop);
  int64_t unrolled = tir_unroll_count(e->ir, loop);
  if (unrolled) emit_c_line(e, "#pragma unroll %lld", (long long)unrolled);
  if (constant)
    emit_c_line(e, "for (%s %s = %s; %s < %lld; %s++) {", type, i, from, i, (long long)(min->imm + extent->imm), i);
  else
    emit_c_line(e, "for (%s %s = %s; %s < ms_end_%u; %s++) {", type, i, from, i, number, i);
  free(from);
  emit_c_body(e, s.first[TIR_BODY]);
  emit_c_line(e, "}");
  emit_c_leave(e, mark);
}

/* A condition in the parentheses that `if` wants, once: twice they are warned of. */
static void emit_c_condition(struct emit_c *e, tir_expr condition) {
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
  emit_c_body(e, s.first[TIR_BODY]);
  if (s.first[TIR_ELSE]) {
    emit_c_line(e, "} else {");
    emit_c_body(e, s.first[TIR_ELSE]);
  }
  emit_c_line(e, "}");
}

static void emit_while(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_WHILE));
  emit_c_pragma(e, at);
  emit_condition(e, "while", tir_stmt_at(e->ir, at)->test.condition, " {");
  emit_c_body(e, tir_stmt_at(e->ir, at)->first[TIR_BODY]);
  emit_c_line(e, "}");
}

static void emit_assert(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_ASSERT));
  emit_c_begin(e);
  fputs("if (!", e->out);
  emit_c_condition(e, tir_stmt_at(e->ir, at)->test.condition);
  fputs(") {\n", e->out);
  emit_c_line(e, "  %s", e->dialect->fails);
  emit_c_line(e, "  return;");
  emit_c_line(e, "}");
}

/* ---- Allocations ---- */

static void emit_allocation(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_ALLOC));
  tir_buffer buffer = tir_stmt_at(e->ir, at)->alloc.buffer;
  const struct tir_buffer_node *b = tir_buffer_at(e->ir, buffer);
  uint64_t bytes = tir_allocation_bytes(e->ir, buffer);
  if (!bytes) {
    emit_c_refuse(e, "buffer %s: its size is no positive constant, or too large", tir_text(e->ir, b->name));
    return;
  }
  struct c_type t = emit_c_stored(b->type, 1);
  e->dialect->allocate(e, buffer, t, bytes / ((unsigned)t.bits / 8));
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
  if (e->dialect->declared) e->dialect->declared(e, buffer);
}

static void emit_binding(struct emit_c *e, tir_stmt at) {
  assert(tir_is(e->ir, at, TIR_BIND));
  tir_var v = tir_as(e->ir, at, TIR_BIND)->bind.var;
  tir_expr value = tir_as(e->ir, at, TIR_BIND)->bind.value;
  tir_type type = e->ir->vars.at[v].type;
  char name[32];
  if (tir_type_lanes(type) != 1) {
    emit_c_bind_vector(e, v, value);
    return;
  }
  FILE *out = e->out;
  char *text = NULL;
  size_t size;
  if (!(e->out = open_memstream(&text, &size))) abort();
  if (tir_type_is_int(type))
    emit_c_number(e, value, C_LOW);
  else
    emit_c_value(e, value, C_SCALAR);
  fclose(e->out);
  e->out = out;
  if (tir_type_is_int(type))
    strcpy(name, emit_c_index_type(e));
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
      e->dialect->outlined(e, &captures);
      break;
    }
    e->aligned = tir_nontemporal_alignment(e->ir, s);
    emit_c_line(e, "{");
    emit_c_body(e, n->first[TIR_BODY]);
    emit_c_line(e, "}");
    e->aligned = 0;
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

/* ---- Functions ---- */

static void parameter_type(struct emit_c *e, tir_var v, char out[32]) {
  tir_type t = e->ir->vars.at[v].type;
  if (tir_type_is_int(t))
    strcpy(out, emit_c_index_type(e));
  else if (tir_type_code(t) == TIR_HANDLE)
    strcpy(out, "void *");
  else
    emit_c_type_name(e, emit_c_type(e, t, 1), out);
}

static void captured_buffer(struct emit_c *e, const struct tir_captures *c, uint32_t i, enum c_captured as) {
  tir_buffer b = tir_at(e->ir, c->at[i])->ref;
  char type[32];
  if (as == C_PARAMETERS)
    fprintf(e->out, "%s *%s", emit_c_type_name(e, emit_c_stored(tir_buffer_at(e->ir, b)->type, 1), type),
            tir_is_captured_apart(e->ir, c, i) ? e->dialect->restricts : "");
  emit_c_buffer(e, b);
}

static void captured_variable(struct emit_c *e, tir_var v, enum c_captured as) {
  char type[32];
  if (e->arrays[v]) emit_c_refuse(e, "a vector that a parallel loop or a kernel takes from outside has no form in C");
  bool bits = e->dialect->scalars_as_bits && tir_type_is_short(e->ir->vars.at[v].type);
  if (as == C_PARAMETERS && bits) fprintf(e->out, "uint%d_t ", tir_type_bits(e->ir->vars.at[v].type));
  if (as == C_PARAMETERS && !bits) parameter_type(e, v, type), fprintf(e->out, "%s ", type);
  if (as == C_PARAMETERS && bits) fputs("ms_", e->out);
  emit_c_variable(e, v);
}

void emit_c_captured(struct emit_c *e, const struct tir_captures *c, enum c_captured as) {
  for (uint32_t i = 0; i < c->buffers + c->vars; i++) {
    if (i) fputs(", ", e->out);
    if (as == C_ADDRESSES) fputs("(void *)&", e->out);
    if (i < c->buffers)
      captured_buffer(e, c, i, as);
    else
      captured_variable(e, tir_at(e->ir, c->at[i])->ref, as);
  }
}

static char *assemble(struct emit_c *e, const char *helpers, const char *functions, const char *text) {
  char *all = NULL;
  size_t size;
  FILE *out = open_memstream(&all, &size);
  if (!out) abort();
  e->dialect->head(e, out);
  fprintf(out, "%s\n%s%s", helpers, functions, text);
  fclose(out);
  return all;
}

/* One of the functions of a source. */
static void emit_function(struct emit_c *e, const struct tir *ir, tir_func f, const char *name, const char *body) {
  e->ir = ir, e->func = f, e->name = name, e->body = body, e->device_bytes = 0;
  e->choices = jit_choices_of(ir, f);
  e->vars = calloc(ir->vars.count, sizeof *e->vars);
  e->buffers = calloc(ir->buffers.count, sizeof *e->buffers);
  e->arrays = calloc(ir->vars.count, sizeof *e->arrays);
  if (!e->vars || !e->buffers || !e->arrays) abort();
  e->dialect->function(e);
  free(e->scope);
  free(e->vars);
  free(e->buffers);
  free(e->arrays);
  free(e->shared);
  e->scope = e->vars = e->buffers = NULL;
  e->scope_count = e->scope_capacity = 0;
  e->shared = NULL, e->shared_capacity = 0;
}

char *emit_c_source(const struct c_dialect *dialect, const struct tir *ir, tir_func f, const char *name,
                    const struct jit_beside *beside, const struct jit_target *target, const struct jit_options *options,
                    struct c_kernels *kernels, ms_error *err) {
  assert(dialect && tir_is_func(ir, f) && name && target);
  struct emit_c e = {.dialect = dialect,
                     .index_bits = 64,
                     .target = target,
                     .fast_math = !(options && options->no_fast_math),
                     .kernels = kernels,
                     .err = err};
  char *helpers = NULL, *functions = NULL, *text = NULL, *all = NULL;
  size_t sizes[3];
  e.helpers = open_memstream(&helpers, &sizes[0]);
  e.functions = open_memstream(&functions, &sizes[1]);
  e.out = open_memstream(&text, &sizes[2]);
  if (!e.helpers || !e.functions || !e.out) abort();
  if (beside) emit_function(&e, beside->lowered, beside->f, beside->name, "ms_body_of_pack");
  if (kernels) kernels->beside = kernels->count, kernels->beside_bytes = kernels->device_bytes;
  if (!e.failed) emit_function(&e, ir, f, name, "ms_body");
  fclose(e.helpers);
  fclose(e.functions);
  fclose(e.out);
  if (!e.failed) all = assemble(&e, helpers, functions, text);
  for (uint32_t i = 0; i < e.known_count; i++) free(e.known[i]);
  free(e.known);
  free(helpers);
  free(functions);
  free(text);
  return all;
}

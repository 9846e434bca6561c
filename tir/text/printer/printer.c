/* The text form of modules and functions. */
#include "printer.h"

#include <stdlib.h>
#include <string.h>

/* ---- Parameters ---- */

static bool is_param(const struct tir *ir, const struct tir_func_node *f, tir_var v) {
  for (uint32_t i = 0; i < f->params.count; i++)
    if (ir->params.at[f->params.first + i].var == v) return true;
  return false;
}

static void print_param(struct tir_printer *p, const struct tir_param *param) {
  char type[24];
  if (param->var) {
    /* The shape of a buffer before it may have declared the name. */
    const char *name = tir_has_name(p, param->var) ? tir_var_name(p, param->var) : tir_name_var(p, param->var);
    tir_put(&p->line, name);
    tir_putf(&p->line, ": T.%s", tir_type_text(p->ir->vars.at[param->var].type, type));
    return;
  }
  tir_put(&p->line, tir_name_buffer(p, param->buffer));
  tir_put(&p->line, ": T.Buffer(");
  tir_print_buffer(p, param->buffer, true, true);
  tir_put_n(&p->line, ")", 1);
}

/* Variables that shapes declared are declared again in the body, which declares their types; but not those that are
 * parameters, whose type stands there. */
static void drop_params(struct tir_printer *p, const struct tir_func_node *f) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p->pending_count; i++)
    if (!is_param(p->ir, f, p->pending[i])) p->pending[kept++] = p->pending[i];
  p->pending_count = kept;
}

static bool flag(const struct tir *ir, struct tir_span attrs, const char *key) {
  tir_expr value = tir_annotation(ir, attrs, key);
  return value && tir_is_int(ir, value) && tir_at(ir, value)->imm;
}

/* ---- Attributes ---- */

/* What the decorator or the name says already is left out. */
static bool is_shown(const struct tir *ir, const struct tir_func_node *f, const struct tir_annotation *a) {
  const char *key = tir_text(ir, a->key);
  if (!strcmp(key, "private") || !strcmp(key, "s_tir")) return false;
  const struct tir_expr_node *value = tir_at(ir, a->value);
  return strcmp(key, "global_symbol") || value->kind != TIR_STRING_IMM || value->ref != f->name;
}

static void print_attributes(struct tir_printer *p, const struct tir_func_node *f) {
  bool first = true;
  for (uint32_t i = 0; i < f->attrs.count; i++) {
    const struct tir_annotation *a = &p->ir->annotations.at[f->attrs.first + i];
    if (!is_shown(p->ir, f, a)) continue;
    tir_put(&p->line, first ? "T.func_attr({" : ", ");
    tir_print_string(&p->line, tir_text(p->ir, a->key), p->ir->symbols.at[a->key].length);
    tir_put_n(&p->line, ": ", 2);
    tir_print_annotation(p, a->value);
    first = false;
  }
  if (first) return;
  tir_put(&p->line, "})");
  tir_flush_line(p);
}

static void print_matches(struct tir_printer *p, const struct tir_func_node *f) {
  for (uint32_t i = 0; i < f->params.count; i++) {
    const struct tir_param *param = &p->ir->params.at[f->params.first + i];
    if (!param->var || !param->buffer) continue;
    tir_put(&p->line, tir_name_buffer(p, param->buffer));
    tir_put(&p->line, " = T.match_buffer(");
    tir_put(&p->line, tir_var_name(p, param->var));
    tir_put_n(&p->line, ", ", 2);
    tir_print_buffer(p, param->buffer, false, false);
    tir_put_n(&p->line, ")", 1);
    tir_flush_line(p);
  }
}

/* ---- Functions ---- */

static void flush_pending(struct tir_printer *p) {
  if (!p->pending_count) return;
  tir_flush_line(p); /* leaves an empty line, which is taken back */
  while (p->out.count && (p->out.at[p->out.count - 1] == ' ' || p->out.at[p->out.count - 1] == '\n')) p->out.count--;
  tir_put_n(&p->out, "\n", 1);
}

static void print_body(struct tir_printer *p, const struct tir_func_node *f) {
  tir_stmt body = f->body;
  tir_stmt first = tir_stmt_at(p->ir, body)->first[TIR_BODY];
  bool block = first && tir_is(p->ir, first, TIR_BLOCK) && !tir_stmt_at(p->ir, first)->next;
  if (block && tir_root_is_implied(p->ir, first)) {
    tir_print_root(p, first);
    return;
  }
  p->indent--;
  tir_print_children(p, body, TIR_BODY);
  p->indent++;
}

static void print_func(struct tir_printer *p, tir_func func) {
  assert(tir_is_func(p->ir, func));
  const struct tir_func_node *f = &p->ir->funcs.at[func];
  uint32_t mark = tir_printer_open(p);
  char type[24];
  tir_put(&p->line,
          flag(p->ir, f->attrs, "private") ? "@T.prim_func(private=True, s_tir=True)" : "@T.prim_func(s_tir=True)");
  tir_flush_line(p);
  tir_put(&p->line, "def ");
  tir_put(&p->line, tir_text(p->ir, f->name));
  tir_put_n(&p->line, "(", 1);
  for (uint32_t i = 0; i < f->params.count; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    print_param(p, &p->ir->params.at[f->params.first + i]);
  }
  tir_put_n(&p->line, ")", 1);
  if (f->result) tir_putf(&p->line, " -> T.%s", tir_type_text(f->result, type));
  tir_put_n(&p->line, ":", 1);
  uint32_t pending = p->pending_count;
  p->pending_count = 0;
  tir_flush_line(p);
  p->pending_count = pending;
  drop_params(p, f);
  p->indent++;
  flush_pending(p);
  print_attributes(p, f);
  print_matches(p, f);
  print_body(p, f);
  p->indent--;
  tir_printer_close(p, mark);
}

/* ---- Entry points ---- */

static char *finish(struct tir_printer *p, unsigned flags) {
  char *text = p->out.at;
  p->out.at = NULL;
  tir_printer_free(p);
  return flags & TIR_PRINT_COLOUR ? tir_colour(text) : text;
}

char *tir_print(const struct tir *ir, tir_func f, unsigned flags) {
  assert(f < ir->funcs.count);
  struct tir_printer p;
  bool module = !(flags & TIR_PRINT_FUNCTION);
  tir_printer_start(&p, ir);
  if (module) tir_put(&p.out, "# from tvm.script import ir as I\n");
  tir_put(&p.out, "# from tvm.script import tirx as T\n\n");
  if (module) tir_put(&p.out, "@I.ir_module\nclass Module:\n");
  p.indent = module;
  bool first = true;
  for (tir_func i = 1; i < ir->funcs.count; i++) {
    if (f != TIR_NONE && i != f) continue;
    if (!first) tir_put(&p.out, "\n");
    print_func(&p, i);
    first = false;
  }
  if (first && module) tir_put(&p.out, "    pass\n");
  return finish(&p, flags);
}

char *tir_print_stmt(const struct tir *ir, tir_stmt s, unsigned flags) {
  assert(s && s < ir->stmts.count);
  struct tir_printer p;
  tir_printer_start(&p, ir);
  p.fragment = true;
  if (tir_is(ir, s, TIR_FUNCTION))
    print_func(&p, tir_as(ir, s, TIR_FUNCTION)->function.func);
  else
    tir_print_one(&p, s);
  return finish(&p, flags);
}

char *tir_print_expr(const struct tir *ir, tir_expr e) {
  assert(e < ir->exprs.count);
  struct tir_printer p;
  tir_printer_start(&p, ir);
  p.fragment = true;
  tir_print_value(&p, e);
  char *text = p.line.at;
  p.line.at = NULL;
  tir_printer_free(&p);
  return text;
}

/* Statements and blocks as text. */
#include "printer.h"

#include <stdlib.h>
#include <string.h>

/* ---- Declarations of buffers ---- */

struct variable {
  const struct tir *ir;
  tir_var var;
};

static bool is_variable(void *data, tir_expr e) {
  const struct variable *v = data;
  const struct tir_expr_node *n = tir_at(v->ir, e);
  return n->kind == TIR_VAR && n->ref == v->var;
}

/* How often a variable stands in a buffer's shape, strides and offset. */
static uint64_t occurrences(const struct tir *ir, const struct tir_buffer_node *b, tir_var v) {
  struct variable is = {ir, v};
  uint64_t n = tir_count_in_tree(ir, b->elem_offset, is_variable, &is);
  for (uint32_t i = 0; i < b->rank; i++) n += tir_count_in_tree(ir, ir->operands.at[b->shape + i], is_variable, &is);
  for (uint32_t i = 0; i < b->strides.count; i++)
    n += tir_count_in_tree(ir, ir->operands.at[b->strides.first + i], is_variable, &is);
  return n;
}

/* A variable that this buffer is the first to use, and uses once: it needs no declaration of its own, if it is of the
 * type that it is given without one, the first dimension's. */
static bool is_own(const struct tir_printer *p, const struct tir_buffer_node *b, tir_expr e) {
  const struct tir_expr_node *n = tir_at(p->ir, e);
  tir_type type = b->rank ? tir_type_of(p->ir, p->ir->operands.at[b->shape]) : TIR_T_I32;
  return n->kind == TIR_VAR && n->type == type && !tir_has_name(p, n->ref) &&
         p->ir->vars.at[n->ref].kind == TIR_VAR_PLAIN && occurrences(p->ir, b, n->ref) == 1;
}

static bool is_undeclared(const struct tir *ir, const void *context, tir_var v) {
  (void)ir;
  return !tir_has_name(context, v);
}

static void print_dimension(struct tir_printer *p, tir_expr e, bool quoted) {
  bool undeclared = quoted && tir_any_var(p->ir, e, is_undeclared, p);
  size_t start = p->line.count;
  tir_print_value(p, e);
  if (!undeclared) return;
  struct tir_text value = {0};
  tir_put_n(&value, p->line.at + start, p->line.count - start);
  p->line.count = start;
  tir_print_string(&p->line, value.at, value.count);
  free(value.at);
}

static void print_tuple_end(struct tir_printer *p, uint32_t count) { tir_put(&p->line, count == 1 ? ",)" : ")"); }

static void print_strides(struct tir_printer *p, tir_buffer buffer) {
  assert(tir_is_buffer(p->ir, buffer));
  const struct tir_buffer_node *b = tir_buffer_at(p->ir, buffer);
  char text[400];
  tir_put(&p->line, ", strides=(");
  for (uint32_t i = 0; i < b->strides.count; i++) {
    tir_expr e = p->ir->operands.at[b->strides.first + i];
    if (i) tir_put_n(&p->line, ", ", 2);
    if (!is_own(p, b, e)) {
      tir_print_value(p, e);
      continue;
    }
    tir_var v = tir_at(p->ir, e)->ref;
    tir_name_render(p->ir, p->ir->vars.at[v].name, text, sizeof text);
    tir_print_string(&p->line, text, strlen(text));
    snprintf(text, sizeof text, "%.300s.strides[%u]", tir_printed_buffer(p, buffer), i);
    tir_alias_var(p, v, text);
  }
  print_tuple_end(p, b->strides.count);
}

/* The offset if it says something; true if it is a variable of the buffer's own, which its factor declares. */
static bool print_offset(struct tir_printer *p, tir_buffer buffer) {
  const struct tir_buffer_node *b = tir_buffer_at(p->ir, buffer);
  if (!b->elem_offset || tir_is_const(p->ir, b->elem_offset, 0)) {
    if (b->offset_factor > 1) tir_put(&p->line, ", elem_offset=0"); /* else the factor would declare a variable */
    return false;
  }
  if (is_own(p, b, b->elem_offset)) {
    char text[400];
    snprintf(text, sizeof text, "%.300s.elem_offset", tir_printed_buffer(p, buffer));
    tir_alias_var(p, tir_at(p->ir, b->elem_offset)->ref, text);
    return true;
  }
  tir_put(&p->line, ", elem_offset=");
  tir_print_value(p, b->elem_offset);
  return false;
}

void tir_print_buffer(struct tir_printer *p, tir_buffer buffer, bool with_type, bool quoted) {
  assert(tir_is_buffer(p->ir, buffer));
  const struct tir *ir = p->ir;
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  tir_put_n(&p->line, "(", 1);
  for (uint32_t i = 0; i < b->rank; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    print_dimension(p, ir->operands.at[b->shape + i], quoted);
  }
  print_tuple_end(p, b->rank);
  if (with_type || b->type != TIR_T_F32) {
    tir_put_n(&p->line, ", ", 2);
    tir_print_type(&p->line, b->type);
  }
  if (b->data) {
    tir_put(&p->line, ", data=");
    tir_print_value(p, b->data);
  }
  if (b->strides.count) print_strides(p, buffer);
  bool own_offset = print_offset(p, buffer);
  const char *scope = tir_text(ir, b->scope);
  if (*scope && strcmp(scope, "global")) {
    tir_put(&p->line, ", scope=");
    tir_print_string(&p->line, scope, strlen(scope));
  }
  if (b->alignment && b->alignment != 64) tir_putf(&p->line, ", align=%u", b->alignment);
  if (own_offset || b->offset_factor > 1)
    tir_putf(&p->line, ", offset_factor=%u", b->offset_factor ? b->offset_factor : 1);
  if (b->axis_separators.count) {
    tir_put(&p->line, ", axis_separators=[");
    for (uint32_t i = 0; i < b->axis_separators.count; i++)
      tir_putf(&p->line, i ? ", %u" : "%u", ir->operands.at[b->axis_separators.first + i]);
    tir_put_n(&p->line, "]", 1);
  }
}

static void print_declaration(struct tir_printer *p, tir_buffer b, const char *call) {
  const char *name = tir_name_buffer(p, b);
  tir_put(&p->line, name);
  tir_putf(&p->line, " = T.%s(", call);
  tir_print_buffer(p, b, false, false);
}

static void end_call(struct tir_printer *p) {
  tir_put_n(&p->line, ")", 1);
  tir_flush_line(p);
}

/* ---- Loops ---- */

static bool joins_grid(const struct tir *ir, tir_stmt s, const tir_var *outer, uint32_t count) {
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  if (n->kind != TIR_LOOP || n->loop_kind != TIR_SERIAL || n->annotations.count || !tir_is_const(ir, n->loop.min, 0))
    return false;
  for (uint32_t i = 0; i < count; i++)
    if (tir_uses_var(ir, n->loop.extent, outer[i])) return false;
  return true;
}

enum { MOST_GRID = 64 };

/* Loops that one T.grid can stand for, this one first: serial, from 0, each the only child, of independent extents. */
static uint32_t grid_of(const struct tir *ir, tir_stmt s, tir_stmt *loops) {
  tir_var vars[MOST_GRID];
  uint32_t count = 0;
  while (count < MOST_GRID && joins_grid(ir, s, vars, count)) {
    vars[count] = tir_as(ir, s, TIR_LOOP)->loop.var;
    loops[count++] = s;
    s = tir_stmt_at(ir, s)->first[TIR_BODY];
    if (!s || tir_stmt_at(ir, s)->next) break;
  }
  return count;
}

static void print_grid(struct tir_printer *p, const tir_stmt *loops, uint32_t count) {
  assert(count > 1);
  tir_put(&p->line, "for ");
  for (uint32_t i = 0; i < count; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    tir_put(&p->line, tir_name_var(p, tir_as(p->ir, loops[i], TIR_LOOP)->loop.var));
  }
  tir_put(&p->line, " in T.grid(");
  for (uint32_t i = 0; i < count; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    tir_print_value(p, tir_as(p->ir, loops[i], TIR_LOOP)->loop.extent);
  }
  tir_put(&p->line, "):");
}

static void print_single_loop(struct tir_printer *p, const struct tir_stmt_node *n) {
  static const char *const kinds[] = {"T.serial", "T.parallel", "T.vectorized", "T.unroll", "T.thread_binding"};
  bool range = n->loop_kind == TIR_SERIAL && !n->annotations.count;
  struct tir_text before = p->line; /* the bounds do not see the variable: they are printed first */
  p->line = (struct tir_text){NULL, 0, 0};
  tir_put(&p->line, range ? "range(" : kinds[n->loop_kind]);
  if (!range) tir_put_n(&p->line, "(", 1);
  if (tir_is_const(p->ir, n->loop.min, 0)) {
    tir_print_value(p, n->loop.extent);
  } else {
    tir_print_value(p, n->loop.min);
    tir_put_n(&p->line, ", ", 2);
    tir_print_sum(p, n->loop.min, n->loop.extent);
  }
  if (n->loop_kind == TIR_THREAD_BINDING) {
    tir_put(&p->line, ", thread=");
    tir_print_string(&p->line, tir_text(p->ir, n->loop.thread), p->ir->symbols.at[n->loop.thread].length);
  }
  if (n->annotations.count) {
    tir_put(&p->line, ", annotations=");
    tir_print_dict(p, n->annotations);
  }
  struct tir_text bounds = p->line;
  p->line = before;
  tir_put(&p->line, "for ");
  tir_put(&p->line, tir_name_var(p, n->loop.var));
  tir_put(&p->line, " in ");
  tir_put_n(&p->line, bounds.at, bounds.count);
  tir_put_n(&p->line, "):", 2);
  free(bounds.at);
}

static void print_loop(struct tir_printer *p, tir_stmt s) {
  assert(tir_is(p->ir, s, TIR_LOOP));
  tir_stmt loops[MOST_GRID];
  uint32_t mark = tir_printer_open(p), count = grid_of(p->ir, s, loops);
  if (count > 1)
    print_grid(p, loops, count);
  else
    print_single_loop(p, tir_stmt_at(p->ir, s));
  tir_flush_line(p);
  tir_print_children(p, count > 1 ? loops[count - 1] : s, TIR_BODY);
  tir_printer_close(p, mark);
}

/* ---- Blocks ---- */

/* Bound to a loop's variable, with the loop's domain: T.axis.remap can declare it. */
static bool remaps(const struct tir *ir, const struct tir_iter *iter) {
  const struct tir_expr_node *n = tir_at(ir, iter->binding);
  if (n->kind != TIR_VAR || iter->kind == TIR_OPAQUE) return false;
  const struct tir_var_node *loop = &ir->vars.at[n->ref], *v = &ir->vars.at[iter->var];
  return loop->kind == TIR_VAR_LOOP && loop->type == v->type && loop->min == v->min && loop->extent == v->extent;
}

static void print_axis(struct tir_printer *p, const struct tir_iter *iter) {
  static const char *const kinds[] = {"spatial", "reduce", "opaque"};
  const struct tir_var_node *v = &p->ir->vars.at[iter->var];
  tir_put(&p->line, tir_name_var(p, iter->var));
  tir_putf(&p->line, " = T.axis.%s(", kinds[iter->kind]);
  if (tir_is_const(p->ir, v->min, 0)) {
    tir_print_value(p, v->extent);
  } else {
    tir_put_n(&p->line, "(", 1);
    tir_print_value(p, v->min);
    tir_put_n(&p->line, ", ", 2);
    tir_print_sum(p, v->min, v->extent);
    tir_put_n(&p->line, ")", 1);
  }
  tir_put_n(&p->line, ", ", 2);
  tir_print_value(p, iter->binding);
  end_call(p);
}

static void print_remap(struct tir_printer *p, const struct tir_iter *iters, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    tir_put(&p->line, tir_name_var(p, iters[i].var));
  }
  tir_put(&p->line, " = T.axis.remap(\"");
  for (uint32_t i = 0; i < count; i++) tir_put(&p->line, iters[i].kind == TIR_SPATIAL ? "S" : "R");
  tir_put(&p->line, "\", [");
  for (uint32_t i = 0; i < count; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    tir_print_value(p, iters[i].binding);
  }
  tir_put_n(&p->line, "]", 1);
  end_call(p);
}

static void print_iters(struct tir_printer *p, struct tir_span span) {
  const struct tir_iter *iters = p->ir->iters.at + span.first;
  for (uint32_t i = 0; i < span.count;) {
    uint32_t n = 0;
    while (i + n < span.count && n < MOST_GRID && remaps(p->ir, &iters[i + n])) n++;
    if (n > 1)
      print_remap(p, iters + i, n);
    else
      print_axis(p, iters + i);
    i += n > 1 ? n : 1;
  }
}

static void print_regions(struct tir_printer *p, const char *call, struct tir_span span) {
  tir_putf(&p->line, "T.%s(", call);
  for (uint32_t i = 0; i < span.count; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    tir_print_region(p, p->ir->regions.at[span.first + i]);
  }
  end_call(p);
}

static void print_allocs(struct tir_printer *p, struct tir_span span) {
  for (uint32_t i = 0; i < span.count; i++) {
    print_declaration(p, p->ir->operands.at[span.first + i], "sblock_alloc_buffer");
    end_call(p);
  }
}

static void print_matches(struct tir_printer *p, struct tir_span span) {
  for (uint32_t i = 0; i < span.count; i++) {
    const struct tir_match *m = &p->ir->matches.at[span.first + i];
    tir_put(&p->line, tir_name_buffer(p, m->buffer));
    tir_put(&p->line, " = T.match_buffer(");
    tir_print_region(p, m->source);
    tir_put_n(&p->line, ", ", 2);
    tir_print_buffer(p, m->buffer, false, false);
    end_call(p);
  }
}

static void print_block(struct tir_printer *p, tir_block s) {
  assert(tir_is(p->ir, s, TIR_BLOCK));
  const struct tir_block_record *r = tir_block_at(p->ir, s);
  uint32_t mark = tir_printer_open(p);
  tir_put(&p->line, "with T.sblock(");
  tir_print_string(&p->line, tir_text(p->ir, r->name), p->ir->symbols.at[r->name].length);
  tir_put(&p->line, "):");
  tir_flush_line(p);
  p->indent++;
  print_iters(p, r->iters);
  const struct tir_stmt_node *n = tir_stmt_at(p->ir, s);
  if (n->block.predicate && !tir_is_const(p->ir, n->block.predicate, 1)) {
    tir_put(&p->line, "T.where(");
    tir_print_value(p, n->block.predicate);
    end_call(p);
  }
  print_regions(p, "reads", r->reads);
  print_regions(p, "writes", r->writes);
  if (n->annotations.count) {
    tir_put(&p->line, "T.sblock_attr(");
    tir_print_dict(p, n->annotations);
    end_call(p);
  }
  print_allocs(p, r->allocs);
  print_matches(p, r->matches);
  if (n->first[TIR_INIT]) {
    tir_put(&p->line, "with T.init():");
    tir_flush_line(p);
    tir_print_children(p, s, TIR_INIT);
  }
  p->indent--;
  tir_print_children(p, s, TIR_BODY);
  tir_printer_close(p, mark);
}

bool tir_root_is_implied(const struct tir *ir, tir_block root) {
  assert(tir_is(ir, root, TIR_BLOCK));
  const struct tir_stmt_node *n = tir_stmt_at(ir, root);
  const struct tir_block_record *r = tir_block_at(ir, root);
  bool plain = !r->iters.count && !r->reads.count && !r->writes.count && !r->matches.count && !n->annotations.count &&
               !n->first[TIR_INIT] && (!n->block.predicate || tir_is_const(ir, n->block.predicate, 1)) &&
               !strcmp(tir_text(ir, r->name), "root");
  if (!plain || r->allocs.count) return plain;
  tir_stmt body = n->first[TIR_BODY];
  bool only_block = body && !tir_stmt_at(ir, body)->next && tir_is(ir, body, TIR_BLOCK);
  return only_block ? tir_block_at(ir, body)->iters.count > 0 : tir_contains_block(ir, root);
}

void tir_print_root(struct tir_printer *p, tir_block root) {
  assert(tir_is(p->ir, root, TIR_BLOCK));
  tir_put(&p->line, "# with T.sblock(\"root\"):");
  tir_flush_line(p);
  print_allocs(p, tir_block_at(p->ir, root)->allocs);
  p->indent--;
  tir_print_children(p, root, TIR_BODY);
  p->indent++;
}

/* ---- Other statements ---- */

static void print_store(struct tir_printer *p, const struct tir_stmt_node *n) {
  assert(n->kind == TIR_STORE);
  uint32_t rank = tir_buffer_at(p->ir, n->store.buffer)->rank;
  if (!n->store.predicate) {
    tir_print_element(p, n->store.buffer, n->store.indices, rank);
    tir_put_n(&p->line, " = ", 3);
    tir_print_value(p, n->store.value);
    tir_flush_line(p);
    return;
  }
  tir_put(&p->line, tir_printed_buffer(p, n->store.buffer));
  tir_put(&p->line, ".vstore([");
  for (uint32_t i = 0; i < rank; i++) {
    if (i) tir_put_n(&p->line, ", ", 2);
    tir_print_value(p, p->ir->operands.at[n->store.indices + i]);
  }
  tir_put(&p->line, "], ");
  tir_print_value(p, n->store.value);
  tir_put(&p->line, ", predicate=");
  tir_print_value(p, n->store.predicate);
  end_call(p);
}

static void print_if(struct tir_printer *p, tir_stmt s) {
  assert(tir_is(p->ir, s, TIR_IF));
  tir_put(&p->line, "if ");
  tir_print_value(p, tir_stmt_at(p->ir, s)->test.condition);
  tir_put_n(&p->line, ":", 1);
  tir_flush_line(p);
  tir_print_children(p, s, TIR_BODY);
  if (!tir_stmt_at(p->ir, s)->first[TIR_ELSE]) return;
  tir_put(&p->line, "else:");
  tir_flush_line(p);
  tir_print_children(p, s, TIR_ELSE);
}

static void print_bind(struct tir_printer *p, const struct tir_stmt_node *n) {
  assert(n->kind == TIR_BIND);
  tir_type type = p->ir->vars.at[n->bind.var].type;
  const struct tir_expr_node *value = tir_at(p->ir, n->bind.value);
  char text[24];
  struct tir_text before = p->line; /* the value does not see the variable */
  p->line = (struct tir_text){NULL, 0, 0};
  tir_print_value(p, n->bind.value);
  struct tir_text right = p->line;
  p->line = before;
  tir_put(&p->line, tir_name_var(p, n->bind.var));
  tir_putf(&p->line, ": T.let[T.%s", tir_type_text(type, text));
  if (value->kind == TIR_DATA) {
    const struct tir_buffer_node *b = tir_buffer_at(p->ir, value->ref);
    tir_put_n(&p->line, "(", 1);
    tir_print_type(&p->line, b->type);
    tir_put_n(&p->line, ", ", 2);
    tir_print_string(&p->line, tir_text(p->ir, b->scope), p->ir->symbols.at[b->scope].length);
    tir_put_n(&p->line, ")", 1);
  }
  tir_put(&p->line, "] = ");
  tir_put_n(&p->line, right.at, right.count);
  free(right.at);
  tir_flush_line(p);
}

/* A call for its effect stands by itself, and a result is returned. */
static void print_evaluate(struct tir_printer *p, tir_expr e) {
  const struct tir_expr_node *n = tir_at(p->ir, e);
  bool call = n->kind == TIR_CALL;
  if (call && n->count == 1 && !strcmp(tir_text(p->ir, n->ref), "ret")) {
    tir_put(&p->line, "return ");
    tir_print_value(p, p->ir->operands.at[n->operands]);
    tir_flush_line(p);
    return;
  }
  if (!call) tir_put(&p->line, "T.evaluate(");
  tir_print_value(p, e);
  if (!call) tir_put_n(&p->line, ")", 1);
  tir_flush_line(p);
}

/* The message is a kind of error and its parts, or one string. */
static void print_assert(struct tir_printer *p, const struct tir_stmt_node *n) {
  assert(n->kind == TIR_ASSERT);
  tir_put(&p->line, "assert ");
  tir_print_value(p, n->test.condition);
  tir_put_n(&p->line, ", ", 2);
  const struct tir_expr_node *m = n->test.message ? tir_at(p->ir, n->test.message) : NULL;
  if (!m) {
    tir_put(&p->line, "\"\"");
  } else if (m->kind != TIR_LIST || !m->count) {
    tir_print_value(p, n->test.message);
  } else {
    tir_put_n(&p->line, "(", 1);
    tir_print_value(p, p->ir->operands.at[m->operands]);
    tir_put_n(&p->line, ", [", 3);
    for (uint32_t i = 1; i < m->count; i++) {
      if (i > 1) tir_put_n(&p->line, ", ", 2);
      tir_print_value(p, p->ir->operands.at[m->operands + i]);
    }
    tir_put_n(&p->line, "])", 2);
  }
  tir_flush_line(p);
}

static void print_attr(struct tir_printer *p, tir_stmt s) {
  assert(tir_is(p->ir, s, TIR_ATTR));
  const struct tir_stmt_node *n = tir_stmt_at(p->ir, s);
  tir_put(&p->line, "with T.attr(");
  tir_print_annotation(p, n->attr.node);
  tir_put_n(&p->line, ", ", 2);
  tir_print_string(&p->line, tir_text(p->ir, n->attr.key), p->ir->symbols.at[n->attr.key].length);
  tir_put_n(&p->line, ", ", 2);
  tir_print_value(p, n->attr.value);
  tir_put(&p->line, "):");
  tir_flush_line(p);
  tir_print_children(p, s, TIR_BODY);
}

static void print_alloc(struct tir_printer *p, const struct tir_stmt_node *n) {
  assert(n->kind == TIR_ALLOC || n->kind == TIR_DECLARE);
  print_declaration(p, n->alloc.buffer, n->kind == TIR_ALLOC ? "alloc_buffer" : "decl_buffer");
  if (n->annotations.count) {
    tir_put(&p->line, ", annotations=");
    tir_print_dict(p, n->annotations);
  }
  end_call(p);
}

void tir_print_one(struct tir_printer *p, tir_stmt s) {
  assert(s && !tir_is(p->ir, s, TIR_DEAD));
  const struct tir_stmt_node *n = tir_stmt_at(p->ir, s);
  switch (n->kind) {
  case TIR_LOOP: print_loop(p, s); break;
  case TIR_BLOCK: print_block(p, s); break;
  case TIR_STORE: print_store(p, n); break;
  case TIR_IF: print_if(p, s); break;
  case TIR_BIND: print_bind(p, n); break;
  case TIR_EVALUATE: print_evaluate(p, n->evaluate.value); break;
  case TIR_WHILE:
    tir_put(&p->line, "while ");
    tir_print_value(p, n->test.condition);
    tir_put_n(&p->line, ":", 1);
    tir_flush_line(p);
    tir_print_children(p, s, TIR_BODY);
    break;
  case TIR_ASSERT: print_assert(p, n); break;
  case TIR_ATTR: print_attr(p, s); break;
  case TIR_ALLOC:
  case TIR_DECLARE: print_alloc(p, n); break;
  default: break;
  }
}

void tir_print_children(struct tir_printer *p, tir_stmt s, enum tir_list list) {
  uint32_t mark = tir_printer_open(p);
  p->indent++;
  tir_stmt child = tir_stmt_at(p->ir, s)->first[list];
  if (!child) {
    tir_put(&p->line, "pass");
    tir_flush_line(p);
  }
  for (; child; child = tir_stmt_at(p->ir, child)->next) tir_print_one(p, child);
  p->indent--;
  tir_printer_close(p, mark);
}

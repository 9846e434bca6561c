/* Functions of constant shapes, of those whose shapes, strides and offsets hold variables that no loop or block
 * binds. */
#include "tir/text/reader/reader.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Which variables there are ---- */

enum {
  MOST_SYMBOLS = 64
}; /* of a function that are told apart; what has more is refused by the name of one of these */

struct symbols {
  const struct tir *ir;
  tir_func func;
  tir_buffer buffer;
  const char *role; /* of the expression that is walked, in its buffer */
  struct tir_symbol_use *at;
  uint32_t count, most;
};

static bool is_scalar_param(const struct tir *ir, tir_func f, tir_var v) {
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++)
    if (!ir->params.at[i].buffer && ir->params.at[i].var == v) return true;
  return false;
}

static bool note_variable(void *data, tir_expr e) {
  struct symbols *s = data;
  const struct tir_expr_node *n = tir_at(s->ir, e);
  if (n->kind != TIR_VAR || is_scalar_param(s->ir, s->func, n->ref) || s->count == s->most) return true;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->at[i].var == n->ref) return true;
  s->at[s->count++] = (struct tir_symbol_use){n->ref, s->buffer, s->role};
  return true;
}

uint32_t tir_symbolic_variables(const struct tir *ir, tir_func f, struct tir_symbol_use *out, uint32_t most) {
  assert(tir_is_func(ir, f) && out);
  struct symbols s = {.ir = ir, .func = f, .at = out, .most = most};
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++) {
    s.buffer = ir->params.at[i].buffer;
    if (!s.buffer) continue;
    const struct tir_buffer_node *b = tir_buffer_at(ir, s.buffer);
    s.role = "extent";
    for (uint32_t d = 0; d < b->rank; d++) tir_walk_expr(ir, ir->operands.at[b->shape + d], note_variable, &s);
    s.role = "stride";
    for (uint32_t d = 0; d < b->strides.count; d++)
      tir_walk_expr(ir, ir->operands.at[b->strides.first + d], note_variable, &s);
    s.role = "offset";
    if (b->elem_offset) tir_walk_expr(ir, b->elem_offset, note_variable, &s);
  }
  return s.count;
}

/* ---- Words for them ---- */

struct text {
  char *at;
  size_t size;
};

static __attribute__((format(printf, 2, 3))) void put(struct text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int length = vsnprintf(t->at, t->size, format, args);
  va_end(args);
  size_t used = length < 0 ? 0 : (size_t)length < t->size ? (size_t)length : t->size - 1;
  t->at += used, t->size -= used;
}

static const char *between(uint32_t i, uint32_t count) { return !i ? "" : i + 1 < count ? ", " : " and "; }

/* A run of them, each by a format that takes its name. */
static void put_names(struct text *t, const struct tir *ir, const struct tir_symbol_use *uses, uint32_t count,
                      const char *before, const char *after, const char *separator) {
  char name[100];
  for (uint32_t i = 0; i < count; i++) {
    tir_name_render(ir, tir_var_at(ir, uses[i].var)->name, name, sizeof name);
    put(t, "%s%s%s%s", i ? separator : "", before, name, after);
  }
}

uint32_t tir_symbolic_text(const struct tir *ir, tir_func f, char *out, size_t size) {
  assert(out && size);
  enum { SHOWN = 8 };
  struct tir_symbol_use uses[MOST_SYMBOLS];
  struct text t = {out, size};
  uint32_t count = tir_symbolic_variables(ir, f, uses, MOST_SYMBOLS), shown = count < SHOWN ? count : SHOWN;
  char name[100], type[24];
  *out = 0;
  for (uint32_t i = 0; i < shown; i++) {
    tir_name_render(ir, tir_var_at(ir, uses[i].var)->name, name, sizeof name);
    put(&t, "%s%s %s of %.60s", between(i, count), uses[i].role, name, tir_buffer_name(ir, uses[i].buffer));
  }
  if (!count) return 0;
  if (count > shown) put(&t, " and %u more", count - shown);
  put(&t, count > 1 ? " are variables that no parameter gives: add parameters "
                    : " is a variable that no parameter gives: add a parameter ");
  for (uint32_t i = 0; i < shown; i++) {
    const struct tir_var_node *v = tir_var_at(ir, uses[i].var);
    tir_name_render(ir, v->name, name, sizeof name);
    put(&t, "%s%s: T.%s", i ? ", " : "", name, tir_type_text(v->type, type));
  }
  put(&t, ", or give %s: ", count > 1 ? "their values" : "its value");
  put_names(&t, ir, uses, shown, "--dim ", "=N", " ");
  put(&t, ", or ms.specialize(func, {");
  put_names(&t, ir, uses, shown, "", " = N", ", ");
  put(&t, "})");
  return count;
}

/* ---- Making it ---- */

/* The variables that may get numbers: those above, and integer parameters. */
static uint32_t variables_of(const struct tir *ir, tir_func f, struct tir_symbol_use uses[MOST_SYMBOLS]) {
  uint32_t count = tir_symbolic_variables(ir, f, uses, MOST_SYMBOLS);
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = params.first; i < params.first + params.count && count < MOST_SYMBOLS; i++) {
    const struct tir_param *p = &ir->params.at[i];
    if (!p->buffer && tir_type_is_int(tir_var_at(ir, p->var)->type))
      uses[count++] = (struct tir_symbol_use){p->var, TIR_NONE, "parameter"};
  }
  return count;
}

static bool check_names(const struct tir *ir, tir_func f, const struct tir_dim *dims, uint32_t count, ms_error *err) {
  struct tir_symbol_use uses[MOST_SYMBOLS];
  uint32_t known = variables_of(ir, f, uses), k;
  char name[256], list[600] = "";
  for (uint32_t i = 0; i < count; i++) {
    for (k = 0; k < known; k++) {
      tir_name_render(ir, tir_var_at(ir, uses[k].var)->name, name, sizeof name);
      if (!strcmp(name, dims[i].name)) break;
    }
    for (uint32_t other = 0; other < i; other++)
      if (!strcmp(dims[i].name, dims[other].name))
        return ms_fail(err, MS_INVALID_ARGUMENT, "%.60s is given twice, as %lld and as %lld", dims[i].name,
                       (long long)dims[other].value, (long long)dims[i].value);
    if (k < known) continue;
    put_names(&(struct text){list, sizeof list}, ir, uses, known, "", "", ", ");
    return ms_fail(err, MS_INVALID_ARGUMENT,
                   "`%s` has no variable %.60s%s%s (of shapes, strides and offsets, and integer parameters)",
                   tir_text(ir, ir->funcs.at[f].name), dims[i].name, known ? "; it has " : "", list);
  }
  return true;
}

/* What the text is called in messages of the reader: the function, with what is given. */
static void describe(const char *func, const struct tir_dim *dims, uint32_t count, char *out, size_t size) {
  struct text t = {out, size};
  put(&t, "%s with", func);
  for (uint32_t i = 0; i < count; i++) put(&t, " %.40s=%lld", dims[i].name, (long long)dims[i].value);
}

/* An offset that is a variable is left out of the text where nothing else has it, so it becomes its number before. */
static void set_offsets(struct tir *ir, tir_func f, const struct tir_dim *dims, uint32_t count) {
  struct tir_span params = ir->funcs.at[f].params;
  char name[256];
  for (uint32_t i = params.first; i < params.first + params.count; i++) {
    tir_buffer b = ir->params.at[i].buffer;
    tir_expr offset = b ? tir_buffer_at(ir, b)->elem_offset : TIR_NONE;
    if (!offset || tir_at(ir, offset)->kind != TIR_VAR) continue;
    tir_name_render(ir, tir_var_at(ir, tir_at(ir, offset)->ref)->name, name, sizeof name);
    for (uint32_t k = 0; k < count; k++) {
      if (strcmp(dims[k].name, name)) continue;
      tir_expr value = dims[k].value ? tir_int(ir, tir_type_of(ir, offset), dims[k].value) : TIR_NONE;
      tir_buffer_at(ir, b)->elem_offset = value;
      if (!value) tir_buffer_at(ir, b)->offset_factor = 0; /* which alone would declare a variable again */
    }
  }
}

/* The nth parameter that is a buffer; TIR_NONE: there are fewer. */
static tir_buffer nth_buffer(const struct tir *ir, tir_func f, uint32_t n) {
  struct tir_span params = ir->funcs.at[f].params;
  for (uint32_t i = params.first; i < params.first + params.count; i++)
    if (ir->params.at[i].buffer && n-- == 0) return ir->params.at[i].buffer;
  return TIR_NONE;
}

/* An offset that stays a variable keeps its name, which the text left out. */
static void keep_names(const struct tir *ir, tir_func f, struct tir *made) {
  char name[256];
  tir_buffer from, to;
  for (uint32_t i = 0; (from = nth_buffer(ir, f, i)) && (to = nth_buffer(made, 1, i)); i++) {
    tir_expr offset = tir_buffer_at(ir, from)->elem_offset, kept = tir_buffer_at(made, to)->elem_offset;
    if (!offset || !kept || tir_at(ir, offset)->kind != TIR_VAR || tir_at(made, kept)->kind != TIR_VAR) continue;
    tir_name_render(ir, tir_var_at(ir, tir_at(ir, offset)->ref)->name, name, sizeof name);
    tir_var_at(made, tir_at(made, kept)->ref)->name = tir_name_of(made, name);
  }
}

struct tir *tir_specialize(const struct tir *ir, tir_func f, const struct tir_dim *dims, uint32_t count,
                           ms_error *err) {
  assert(tir_is_func(ir, f) && (dims || !count));
  if (!check_names(ir, f, dims, count, err)) return NULL;
  char what[400];
  describe(tir_text(ir, ir->funcs.at[f].name), dims, count, what, sizeof what);
  struct tir *copy = tir_new();
  tir_copy(copy, ir);
  set_offsets(copy, f, dims, count);
  char *text = tir_print(copy, f, 0);
  tir_free(copy);
  struct tir *made = tir_read_with(text, strlen(text), what, dims, count, err);
  free(text);
  if (made) keep_names(ir, f, made);
  if (made && !tir_verify_scopes(made, err)) tir_free(made), made = NULL;
  return made;
}

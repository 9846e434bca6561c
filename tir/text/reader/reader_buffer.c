/* What declares a buffer: shape, type, strides, offset, scope; and regions of buffers. */
#include "reader.h"

#include <stdlib.h>
#include <string.h>

/* ---- Shapes ---- */

bool tir_reader_check_extent(struct tir_reader *r, uint32_t token, tir_expr extent, const char *what) {
  assert(extent && what);
  const struct tir_expr_node *n = tir_at(r->ir, extent);
  char text[24];
  if (!tir_type_is_int(n->type) || tir_type_lanes(n->type) != 1)
    return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected an integer as %s, found %s", what,
                           tir_type_text(n->type, text));
  if (n->kind != TIR_INT_IMM) return true;
  if (n->imm < 0)
    return tir_reader_fail(r, token, MS_TEXT_EXTENT, "%s is %lld; it must not be negative", what, (long long)n->imm);
  r->ir->has_empty |= n->imm == 0;
  if (n->imm > TIR_MOST_BUFFER_BYTES)
    return tir_reader_fail(r, token, MS_TEXT_EXTENT, "%s is %lld, which is too large", what, (long long)n->imm);
  return true;
}

static bool check_size(struct tir_reader *r, uint32_t token, tir_type type, const tir_expr *shape, uint32_t rank) {
  assert(rank <= TIR_MOST_RANK);
  int64_t bytes = tir_type_bytes(type);
  for (uint32_t i = 0; i < rank; i++) {
    if (!tir_is_int(r->ir, shape[i])) continue;
    if (__builtin_mul_overflow(bytes, tir_at(r->ir, shape[i])->imm, &bytes) || bytes > TIR_MOST_BUFFER_BYTES)
      return tir_reader_fail(r, token, MS_TEXT_EXTENT, "a buffer of this shape is too large for memory");
  }
  return true;
}

/* A quoted expression declares the names in it that are not known. */
static bool declare_quoted(struct tir_reader *r, const struct tir_tokens *tokens) {
  for (uint32_t i = 0; i < tokens->count; i++) {
    const struct tir_token *t = &tokens->at[i];
    if (t->kind != TIR_TOKEN_NAME || t->symbol == r->prefix) continue;
    if (i && tokens->at[i - 1].kind == TIR_TOKEN_PUNCT && tokens->at[i - 1].punct == TIR_PUNCT('.', 0)) continue;
    struct tir_binding b = tir_reader_lookup(r, t->symbol);
    if (b.kind != TIR_UNBOUND && b.kind != TIR_BOUND_TYPE) continue;
    tir_type type = b.kind == TIR_BOUND_TYPE ? b.ref : TIR_T_I32;
    tir_expr e;
    if (!tir_reader_symbol_value(r, i, tir_reader_name(r, t->symbol), type, &e)) return false;
    tir_reader_bind(r, t->symbol, TIR_BOUND_EXPR, e);
  }
  return true;
}

/* The expression in a string, as the shapes of parameters have them: its unknown names become variables. */
static bool read_quoted(struct tir_reader *r, struct tir_item string, tir_expr *out) {
  assert(string.kind == TIR_ITEM_STRING);
  uint32_t offset = tir_reader_token(r, string.token)->offset, at = r->at;
  struct tir_tokens outer = r->tokens, inner = {NULL, 0, 0};
  const char *outer_text = r->text, *why;
  size_t length = r->words->symbols.at[string.word].length, place;
  if (r->quoted != UINT32_MAX)
    return tir_reader_fail(r, string.token, MS_TEXT_SYNTAX, "a string inside a quoted expression");
  char *copy = malloc(length + 1);
  if (!copy) abort();
  memcpy(copy, tir_reader_word(r, string.word), length + 1);
  r->quoted = offset;
  bool good = tir_lex(r->words, copy, length, &inner, &place, &why);
  if (!good) {
    tir_reader_fail(r, 0, MS_TEXT_SYNTAX, "%s", why);
  } else {
    r->tokens = inner;
    r->text = copy;
    r->at = 0;
    good = declare_quoted(r, &inner) && tir_read_expr(r, out);
    uint32_t kind = tir_reader_token(r, r->at)->kind;
    if (good && kind != TIR_TOKEN_NEWLINE && kind != TIR_TOKEN_END)
      good = tir_reader_fail(r, r->at, MS_TEXT_SYNTAX, "expected an expression and nothing more");
  }
  free(inner.at);
  free(copy);
  r->tokens = outer;
  r->text = outer_text;
  r->at = at;
  r->quoted = UINT32_MAX;
  return good;
}

static bool shape_item(struct tir_reader *r, struct tir_item v, bool quoted, tir_expr *out) {
  bool good = quoted && v.kind == TIR_ITEM_STRING ? read_quoted(r, v, out) : tir_reader_as_expr(r, v, out);
  return good && tir_reader_check_extent(r, v.token, *out, "the extent of a dimension");
}

static bool read_shape(struct tir_reader *r, struct tir_args *args, const struct tir_buffer_text *how, tir_expr *shape,
                       uint32_t *rank) {
  struct tir_item v;
  if (!tir_arg_at(r, args, how->first, "shape", &v))
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "T.%s takes a shape", args->name);
  if (v.kind != TIR_ITEM_LIST) {
    *rank = 1;
    return shape_item(r, v, how->quoted_shape, &shape[0]);
  }
  if (v.count > TIR_MOST_RANK)
    return tir_reader_fail(r, v.token, MS_TOO_LARGE, "a buffer has at most %d dimensions", TIR_MOST_RANK);
  *rank = v.count;
  for (uint32_t i = 0; i < v.count; i++)
    if (!shape_item(r, r->items[v.first + i], how->quoted_shape, &shape[i])) return false;
  return true;
}

/* ---- The rest ---- */

static tir_expr new_index_var(struct tir_reader *r, tir_name name, tir_type type) {
  return tir_var_expr(r->ir, tir_new_var(r->ir, TIR_VAR_PLAIN, name, type, TIR_NONE, TIR_NONE));
}

bool tir_reader_symbol_value(struct tir_reader *r, uint32_t token, tir_name name, tir_type type, tir_expr *out) {
  assert(r->dims || !r->dim_count);
  char text[256];
  bool binds = r->dim_count && tir_type_is_int(type);
  if (binds) tir_name_render(r->ir, name, text, sizeof text);
  for (uint32_t i = 0; binds && i < r->dim_count; i++) {
    if (strcmp(r->dims[i].name, text)) continue;
    return tir_reader_constant(r, token, type, 0, r->dims[i].value, false, out);
  }
  *out = new_index_var(r, name, type);
  return tir_reader_note(r, token, *out);
}

/* A string among the strides declares a variable. */
static bool read_strides(struct tir_reader *r, struct tir_args *args, uint32_t position, tir_type index_type,
                         struct tir_span *out) {
  struct tir_item v;
  tir_expr strides[TIR_MOST_RANK];
  *out = (struct tir_span){0, 0};
  if (!tir_arg_at(r, args, position, "strides", &v) || v.kind == TIR_ITEM_NONE) return true;
  if (v.kind != TIR_ITEM_LIST || v.count > TIR_MOST_RANK)
    return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected the strides in brackets, at most %d", TIR_MOST_RANK);
  for (uint32_t i = 0; i < v.count; i++) {
    struct tir_item item = r->items[v.first + i];
    bool good = item.kind == TIR_ITEM_STRING && r->block
                    ? (strides[i] = new_index_var(r, tir_reader_name(r, item.word), index_type), true)
                : item.kind == TIR_ITEM_STRING
                    ? tir_reader_symbol_value(r, item.token, tir_reader_name(r, item.word), index_type, &strides[i])
                    : tir_reader_as_expr(r, item, &strides[i]);
    if (!good) return false;
    if (!tir_type_is_int(tir_type_of(r->ir, strides[i])) || tir_type_lanes(tir_type_of(r->ir, strides[i])) != 1)
      return tir_reader_fail(r, item.token, MS_TEXT_TYPE, "expected an integer as stride");
    if (!tir_reader_note(r, item.token, strides[i])) return false;
  }
  if (v.count) *out = (struct tir_span){tir_add_operands(r->ir, strides, v.count), v.count};
  return true;
}

static bool read_scope(struct tir_reader *r, struct tir_args *args, uint32_t position, tir_symbol *out) {
  struct tir_item v;
  *out = tir_scope_named(r->ir, TIR_SCOPE_GLOBAL);
  if (!tir_arg_at(r, args, position, "scope", &v) || v.kind == TIR_ITEM_NONE) return true;
  if (v.kind != TIR_ITEM_STRING) return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a string as scope");
  if (*tir_reader_word(r, v.word)) *out = tir_reader_symbol(r, v.word);
  return true;
}

static bool read_count(struct tir_reader *r, struct tir_args *args, uint32_t position, const char *keyword,
                       uint32_t *out) {
  struct tir_item v;
  int64_t n;
  *out = 0;
  if (!tir_arg_at(r, args, position, keyword, &v) || v.kind == TIR_ITEM_NONE) return true;
  if (!tir_reader_as_int(r, v, keyword, &n)) return false;
  if (n < -1 || n > 1 << 20) return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "this %s makes no sense", keyword);
  if (n > 0) *out = (uint32_t)n;
  return true;
}

static bool read_data(struct tir_reader *r, struct tir_args *args, uint32_t position, tir_expr *out) {
  struct tir_item v;
  *out = TIR_NONE;
  if (!tir_arg_at(r, args, position, "data", &v) || v.kind == TIR_ITEM_NONE) return true;
  if (!tir_reader_as_expr(r, v, out)) return false;
  if (tir_type_code(tir_type_of(r->ir, *out)) == TIR_HANDLE) return true;
  return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a pointer as data");
}

static bool read_separators(struct tir_reader *r, struct tir_args *args, struct tir_span *out) {
  struct tir_item v;
  uint32_t separators[TIR_MOST_RANK];
  *out = (struct tir_span){0, 0};
  if (!tir_arg_at(r, args, UINT32_MAX, "axis_separators", &v) || v.kind == TIR_ITEM_NONE) return true;
  if (v.kind != TIR_ITEM_LIST || v.count > TIR_MOST_RANK)
    return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a list of axes");
  for (uint32_t i = 0; i < v.count; i++) {
    int64_t axis;
    if (!tir_reader_as_int(r, r->items[v.first + i], "an axis", &axis)) return false;
    if (axis < 0 || axis > TIR_MOST_RANK) return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "there is no such axis");
    separators[i] = (uint32_t)axis;
  }
  if (v.count) *out = (struct tir_span){tir_add_operands(r->ir, separators, v.count), v.count};
  return true;
}

/* Arguments that say nothing here: layouts other than the plain one are of another dialect. */
static bool skip_layout(struct tir_reader *r, struct tir_args *args, uint32_t position) {
  struct tir_item v;
  if (!tir_arg_at(r, args, position, "layout", &v) || v.kind == TIR_ITEM_NONE) return true;
  if (v.kind == TIR_ITEM_STRING && !strcmp(tir_reader_word(r, v.word), "default")) return true;
  return tir_reader_fail(r, v.token, MS_TEXT_UNSUPPORTED, "layouts of buffers are not supported");
}

/* The offset as given; with only a factor, a variable of the buffer's own. */
static bool read_offset(struct tir_reader *r, struct tir_args *args, uint32_t position, uint32_t factor,
                        tir_type index_type, tir_expr *out) {
  struct tir_item v;
  *out = TIR_NONE;
  if (tir_arg_at(r, args, position, "elem_offset", &v) && v.kind != TIR_ITEM_NONE) {
    if (!tir_reader_as_expr(r, v, out)) return false;
    if (!tir_type_is_int(tir_type_of(r->ir, *out)) || tir_type_lanes(tir_type_of(r->ir, *out)) != 1)
      return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected an integer as offset");
    if (tir_is_const(r->ir, *out, 0)) *out = TIR_NONE;
    return true;
  }
  if (!factor) return true;
  *out = new_index_var(r, tir_name_of(r->ir, "elem_offset"), index_type);
  return tir_reader_note(r, args->token, *out);
}

bool tir_read_buffer(struct tir_reader *r, struct tir_args *args, const struct tir_buffer_text *how, tir_buffer *out) {
  tir_expr shape[TIR_MOST_RANK], data, offset;
  uint32_t rank = 0, at = how->first, alignment, factor;
  struct tir_item v;
  struct tir_span strides, separators;
  tir_type type = TIR_T_F32;
  tir_symbol scope;
  if (tir_arg_at(r, args, at + 1, "dtype", &v) && !tir_reader_as_type(r, v, &type)) return false;
  if (!read_shape(r, args, how, shape, &rank)) return false;
  tir_type index_type = rank ? tir_type_of(r->ir, shape[0]) : TIR_T_I32;
  /* Some calls have byte_offset before the scope. */
  if (tir_arg_at(r, args, at + 5, "byte_offset", &v) && v.kind != TIR_ITEM_NONE && v.kind != TIR_ITEM_STRING)
    return tir_reader_fail(r, v.token, MS_TEXT_UNSUPPORTED, "offsets in bytes are not supported: write elem_offset");
  bool scope_early = at + 5 < args->count && v.kind == TIR_ITEM_STRING;
  uint32_t rest = at + (scope_early ? 5 : 6);
  if (!read_data(r, args, at + 2, &data) || !read_strides(r, args, at + 3, index_type, &strides) ||
      !read_scope(r, args, rest, &scope) || !read_count(r, args, rest + 1, "align", &alignment) ||
      !read_count(r, args, rest + 2, "offset_factor", &factor) ||
      !read_offset(r, args, at + 4, factor, index_type, &offset) || !skip_layout(r, args, rest + 3) ||
      !read_separators(r, args, &separators) || !check_size(r, args->token, type, shape, rank))
    return false;
  if (tir_type_code(type) == TIR_VOID || tir_type_code(type) == TIR_STRING)
    return tir_reader_fail(r, args->token, MS_TEXT_TYPE, "a buffer has no elements of this type");
  if (!tir_args_done(r, args, rest + 4)) return false;
  *out = tir_new_buffer(r->ir, how->name, type, shape, rank, scope);
  struct tir_buffer_node *b = tir_buffer_at(r->ir, *out);
  b->strides = strides;
  b->elem_offset = offset;
  b->data = data;
  b->alignment = alignment == 64 ? 0 : alignment; /* 64 is what is meant where nothing is said */
  b->offset_factor = factor;
  b->axis_separators = separators;
  return true;
}

/* ---- Regions ---- */

static bool whole_dimension(struct tir_reader *r, tir_buffer buffer, uint32_t i, tir_expr *range) {
  assert(i < tir_buffer_at(r->ir, buffer)->rank);
  range[1] = tir_operands(r->ir, tir_buffer_at(r->ir, buffer)->shape)[i];
  range[0] = tir_int(r->ir, tir_type_of(r->ir, range[1]), 0);
  return true;
}

static bool slice_range(struct tir_reader *r, tir_buffer buffer, uint32_t i, struct tir_item slice, tir_expr *range) {
  assert(slice.kind == TIR_ITEM_SLICE && slice.count == 3 && i < tir_buffer_at(r->ir, buffer)->rank);
  struct tir_item start = r->items[slice.first], stop = r->items[slice.first + 1];
  tir_expr end;
  if (!whole_dimension(r, buffer, i, range)) return false;
  if (start.kind == TIR_ITEM_NONE && stop.kind == TIR_ITEM_NONE) return true;
  end = range[1];
  if (start.kind != TIR_ITEM_NONE && !tir_reader_as_expr(r, start, &range[0])) return false;
  if (stop.kind != TIR_ITEM_NONE && !tir_reader_as_expr(r, stop, &end)) return false;
  if (!tir_reader_match(r, slice.token, &range[0], &end)) return false;
  if (!tir_type_is_int(tir_type_of(r->ir, end)))
    return tir_reader_fail(r, slice.token, MS_TEXT_TYPE, "expected integers in a slice");
  return tir_reader_extent(r, slice.token, range[0], end, &range[1]);
}

/* Indices of a load: a ramp of stride 1 is a range. */
static bool index_range(struct tir_reader *r, uint32_t token, tir_expr index, tir_expr *range) {
  const struct tir_expr_node *n = tir_at(r->ir, index);
  if (!tir_type_is_int(n->type)) return tir_reader_fail(r, token, MS_TEXT_TYPE, "expected an integer index");
  bool ramp = n->kind == TIR_RAMP && tir_is_const(r->ir, n->b, 1);
  range[0] = ramp ? n->a : index;
  range[1] = tir_int(r->ir, tir_type_of(r->ir, range[0]), ramp ? tir_type_lanes(n->type) : 1);
  return tir_reader_note(r, token, range[1]);
}

bool tir_reader_as_region(struct tir_reader *r, struct tir_item v, struct tir_region *out) {
  tir_expr ranges[2 * TIR_MOST_RANK];
  tir_buffer buffer;
  uint32_t given = 0, rank;
  if (v.kind == TIR_ITEM_EXPR && tir_at(r->ir, v.expr)->kind == TIR_LOAD) {
    buffer = tir_at(r->ir, v.expr)->ref;
    given = rank = tir_at(r->ir, v.expr)->count;
    for (uint32_t i = 0; i < rank; i++) {
      const struct tir_expr_node *load = tir_at(r->ir, v.expr);
      if (!index_range(r, v.token, tir_operands(r->ir, load->operands)[i], ranges + 2 * i)) return false;
    }
  } else if (v.kind == TIR_ITEM_REGION || v.kind == TIR_ITEM_BUFFER) {
    buffer = v.buffer;
    rank = tir_buffer_at(r->ir, buffer)->rank;
    given = v.kind == TIR_ITEM_REGION ? v.count : 0;
    for (uint32_t i = 0; i < given; i++) {
      struct tir_item item = r->items[v.first + i];
      tir_expr index;
      if (item.kind == TIR_ITEM_SLICE
              ? !slice_range(r, buffer, i, item, ranges + 2 * i)
              : !tir_reader_as_expr(r, item, &index) || !index_range(r, item.token, index, ranges + 2 * i))
        return false;
    }
  } else {
    return tir_reader_fail(r, v.token, MS_TEXT_TYPE, "expected a region of a buffer");
  }
  for (uint32_t i = given; i < rank; i++) whole_dimension(r, buffer, i, ranges + 2 * i);
  *out = tir_new_region(r->ir, buffer, ranges);
  return true;
}

#include "layout.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- The text of a lambda ---- */

struct pieces {
  const char *at[MOST_LAYOUT_RANK];
  int length[MOST_LAYOUT_RANK];
  uint32_t count;
};

/* Splits at commas outside of parentheses; an empty last piece is none. */
static bool split(const char *text, const char *end, struct pieces *out) {
  int depth = 0;
  const char *start = text;
  out->count = 0;
  for (const char *c = text; c <= end; c++) {
    if (c < end && *c == '(') depth++;
    if (c < end && *c == ')') depth--;
    if (c < end && (*c != ',' || depth > 0)) continue;
    while (start < c && *start == ' ') start++;
    if (start == c && c == end) break;
    if (out->count == MOST_LAYOUT_RANK) return false;
    out->at[out->count] = start;
    out->length[out->count++] = (int)(c - start);
    start = c + 1;
  }
  return true;
}

static bool parse(const char *lambda, struct pieces *names, struct pieces *indices) {
  const char *head = strstr(lambda, "lambda "), *colon = head ? strchr(head, ':') : NULL;
  const char *open = colon ? strchr(colon, '(') : NULL, *close = open ? strrchr(open, ')') : NULL;
  return close && split(head + 7, colon, names) && split(open + 1, close, indices);
}

/* ---- The map, run as a function that writes the new indices of each element ---- */

static void append(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *out, size_t size, const char *format, ...) {
  size_t length = strlen(out);
  va_list args;
  va_start(args, format);
  vsnprintf(out + length, size - length, format, args);
  va_end(args);
}

static void write_function(char *out, size_t size, const struct pieces *names, const struct pieces *indices,
                           const int64_t *shape) {
  char list[512] = "";
  for (uint32_t d = 0; d < names->count; d++) append(list, sizeof list, "%lld, ", (long long)shape[d]);
  append(out, size, "from tvm.script import tirx as T\n@T.prim_func(s_tir=True)\ndef main(");
  for (uint32_t i = 0; i < indices->count; i++)
    append(out, size, "%sO%u: T.Buffer((%s), \"int32\")", i ? ", " : "", i, list);
  append(out, size, "):\n");
  int indent = 4;
  for (uint32_t d = 0; d < names->count; d++, indent += 4)
    append(out, size, "%*sfor %.*s in range(%lld):\n", indent, "", names->length[d], names->at[d], (long long)shape[d]);
  for (uint32_t i = 0; i < indices->count; i++) {
    append(out, size, "%*sO%u[", indent, "", i);
    for (uint32_t d = 0; d < names->count; d++)
      append(out, size, "%s%.*s", d ? ", " : "", names->length[d], names->at[d]);
    append(out, size, "] = %.*s\n", indices->length[i], indices->at[i]);
  }
}

static bool run(const char *text, struct tir_arguments *out) {
  ms_error err = {0};
  struct tir *ir = tir_read(text, strlen(text), "map", &err);
  if (!ir) return false;
  bool made = tir_make_arguments(ir, tir_find_func(ir, "main"), 0, out, &err);
  bool ok = made && tir_run(ir, tir_find_func(ir, "main"), out->args, out->count, NULL, &err);
  if (made && !ok) tir_arguments_free(out);
  tir_free(ir);
  return ok;
}

static int32_t new_index(const struct tir_arguments *made, uint32_t dim, uint64_t element) {
  return ((const int32_t *)made->args[dim].data)[element];
}

bool layout_make(const char *lambda, const int64_t *shape, uint32_t rank, struct layout *out) {
  struct pieces names, indices;
  struct tir_arguments made;
  char text[8192] = "";
  *out = (struct layout){.from_rank = rank, .from_count = 1, .to_count = 1};
  if (!parse(lambda, &names, &indices) || names.count != rank || indices.count == 0) return false;
  write_function(text, sizeof text, &names, &indices, shape);
  if (!run(text, &made)) return false;
  for (uint32_t d = 0; d < rank; d++) out->from_count *= (uint64_t)(out->from[d] = shape[d]);
  out->to_rank = indices.count;
  for (uint32_t d = 0; d < out->to_rank; d++) {
    out->to[d] = 1;
    for (uint64_t i = 0; i < out->from_count; i++)
      if (new_index(&made, d, i) >= out->to[d]) out->to[d] = new_index(&made, d, i) + 1;
    out->to_count *= (uint64_t)out->to[d];
  }
  out->place = calloc(out->from_count + 1, sizeof *out->place);
  if (!out->place) abort();
  for (uint64_t i = 0; i < out->from_count; i++)
    for (uint32_t d = 0; d < out->to_rank; d++)
      out->place[i] = out->place[i] * (uint64_t)out->to[d] + (uint64_t)new_index(&made, d, i);
  tir_arguments_free(&made);
  return true;
}

void layout_join(struct layout *first, const struct layout *second) {
  for (uint64_t i = 0; i < first->from_count; i++) first->place[i] = second->place[first->place[i]];
  first->to_rank = second->to_rank;
  first->to_count = second->to_count;
  memcpy(first->to, second->to, sizeof first->to);
}

void layout_free(struct layout *layout) {
  free(layout->place);
  *layout = (struct layout){0};
}

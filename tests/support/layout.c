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
    append(out, size, "] = T.Cast(\"int32\", %.*s)\n", indices->length[i], indices->at[i]);
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

static void find_places(struct layout *l) {
  for (uint64_t i = 0; i < l->from_count; i++) {
    l->place[i] = 0;
    for (uint32_t d = 0; d < l->to_rank; d++)
      l->place[i] = l->place[i] * (uint64_t)l->to[d] + (uint64_t)l->indices[i * l->to_rank + d];
  }
}

static void find_shape(struct layout *l) {
  l->to_count = 1;
  for (uint32_t d = 0; d < l->to_rank; d++) {
    l->to[d] = 1;
    for (uint64_t i = 0; i < l->from_count; i++)
      if (l->indices[i * l->to_rank + d] >= l->to[d]) l->to[d] = l->indices[i * l->to_rank + d] + 1;
    l->to_count *= (uint64_t)l->to[d];
  }
}

bool layout_make(const char *lambda, const int64_t *shape, uint32_t rank, struct layout *out) {
  struct pieces names, indices;
  struct tir_arguments made;
  char text[8192] = "";
  *out = (struct layout){.from_rank = rank, .from_count = 1};
  if (!parse(lambda, &names, &indices) || names.count != rank || indices.count == 0) return false;
  write_function(text, sizeof text, &names, &indices, shape);
  if (!run(text, &made)) return false;
  for (uint32_t d = 0; d < rank; d++) out->from_count *= (uint64_t)(out->from[d] = shape[d]);
  out->to_rank = indices.count;
  out->indices = calloc(out->from_count * out->to_rank + 1, sizeof *out->indices);
  out->place = calloc(out->from_count + 1, sizeof *out->place);
  if (!out->place || !out->indices) abort();
  for (uint64_t i = 0; i < out->from_count; i++)
    for (uint32_t d = 0; d < out->to_rank; d++) out->indices[i * out->to_rank + d] = new_index(&made, d, i);
  tir_arguments_free(&made);
  find_shape(out);
  find_places(out);
  return true;
}

bool layout_fit(struct layout *l, const int64_t *shape, uint32_t rank) {
  if (rank != l->to_rank) return false;
  l->to_count = 1;
  for (uint32_t d = 0; d < rank; d++) {
    if (shape[d] < l->to[d]) return false;
    l->to[d] = shape[d];
    l->to_count *= (uint64_t)shape[d];
  }
  find_places(l);
  return true;
}

void layout_join(struct layout *first, const struct layout *second) {
  int64_t *indices = calloc(first->from_count * second->to_rank + 1, sizeof *indices);
  if (!indices) abort();
  for (uint64_t i = 0; i < first->from_count; i++)
    memcpy(indices + i * second->to_rank, second->indices + first->place[i] * second->to_rank,
           second->to_rank * sizeof *indices);
  free(first->indices);
  first->indices = indices;
  first->to_rank = second->to_rank;
  find_shape(first);
  find_places(first);
}

void layout_free(struct layout *layout) {
  free(layout->indices);
  free(layout->place);
  *layout = (struct layout){0};
}

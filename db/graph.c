/* Functions as TVM keeps them: lines of MetaSchedule's database_workload.json.
 *
 *   line = [structural hash, graph]
 *
 * The graph is JSON in base64, after its length in 8 bytes. The hash is TVM's affair, which computes it anew. */
#include "db.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static int digit_of(char c) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const char *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

/* The caller's to free(). NULL: it is no base64. */
static char *decode(const char *text, size_t length, size_t *size) {
  while (length && text[length - 1] == '=') length--;
  char *out = malloc(length / 4 * 3 + 4);
  unsigned bits = 0, held = 0;
  if (!out) abort();
  *size = 0;
  for (size_t i = 0; i < length; i++) {
    int digit = digit_of(text[i]);
    if (digit < 0) return free(out), NULL;
    bits = bits << 6 | (unsigned)digit;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out[(*size)++] = (char)(bits >> held & 255);
    bits &= (1u << held) - 1;
  }
  return out;
}

static struct tir *read_graph(const char *text, size_t length, ms_error *err) {
  enum { LENGTH = 8 }; /* bytes that say how long the rest is */
  size_t size;
  if (length && *text == '{') return vm_read_module_graph(text, length, err);
  char *bytes = decode(text, length, &size);
  struct tir *ir = NULL;
  size_t skipped = bytes && size > LENGTH && *bytes != '{' ? LENGTH : 0;
  if (bytes)
    ir = vm_read_module_graph(bytes + skipped, size - skipped, err);
  else
    ms_fail(err, MS_BAD_GRAPH, "the graph is no base64");
  free(bytes);
  return ir;
}

struct tir *db_read_workload(const char *text, size_t length, ms_error *err) {
  json_error_t why;
  json_t *line = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
  const json_t *graph = json_array_get(line, 1);
  struct tir *ir = NULL;
  if (!line)
    ms_fail(err, MS_BAD_GRAPH, "column %d: %s", why.column, why.text);
  else if (json_array_size(line) != 2 || !json_is_string(json_array_get(line, 0)) || !json_is_string(graph))
    ms_fail(err, MS_BAD_GRAPH, "a function is [hash, graph], both texts");
  else
    ir = read_graph(json_string_value(graph), json_string_length(graph), err);
  json_decref(line);
  return ir;
}

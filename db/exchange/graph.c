/* Functions as TVM keeps them: lines of MetaSchedule's database_workload.json.
 *
 *   line = [structural hash, graph]
 *
 * The graph is JSON in base64, after its length in 8 bytes. The hash is TVM's affair, which computes it again. */
#include "db/db.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
enum { LENGTH = 8 }; /* bytes in front that say how long the rest is */

/* ---- Reading ---- */

static int digit_of(char c) {
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

/* ---- Writing ---- */

/* The caller's to free(). */
static char *encode(const unsigned char *bytes, size_t size) {
  char *out = malloc((size + 2) / 3 * 4 + 1), *at = out;
  if (!out) abort();
  for (size_t i = 0; i < size; i += 3) {
    unsigned group =
        (unsigned)bytes[i] << 16 | (i + 1 < size ? bytes[i + 1] << 8 : 0) | (i + 2 < size ? bytes[i + 2] : 0);
    for (int k = 0; k < 4; k++) *at++ = i + (size_t)k > size ? '=' : digits[group >> (18 - 6 * k) & 63];
  }
  *at = 0;
  return out;
}

char *db_write_workload(const struct tir *ir, tir_func f, ms_error *err) {
  assert(tir_is_func(ir, f));
  char *graph = vm_write_module_graph(ir, f, err);
  if (!graph) return NULL;
  size_t length = strlen(graph);
  unsigned char *bytes = malloc(LENGTH + length);
  if (!bytes) abort();
  for (int i = 0; i < LENGTH; i++) bytes[i] = (unsigned char)((uint64_t)length >> 8 * i);
  memcpy(bytes + LENGTH, graph, length);
  char *text = encode(bytes, LENGTH + length);
  json_t *line = json_pack("[s, s]", "0", text);
  free(graph);
  free(bytes);
  free(text);
  text = json_dumps(line, JSON_COMPACT);
  json_decref(line);
  return text;
}

/* JSON with the numbers that JSON has no text for. Infinity, -Infinity and NaN are read and written as TVM and Python
 * do; jansson knows none of them, so they pass through it as strings that begin with a zero byte, which no text holds.
 */
#include "index_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *word, *marker; /* the marker as JSON; its second character says which it is */
} specials[] = {{"Infinity", "\"\\u0000+\""}, {"-Infinity", "\"\\u0000-\""}, {"NaN", "\"\\u0000?\""}};
enum { SPECIALS = sizeof specials / sizeof *specials };

/* Replaces one by the other outside of strings, or, where markers are replaced, anywhere: no other string has a zero
 * byte in it. NULL: there is none. */
static char *replace(const char *text, size_t length, bool words, size_t *out_length) {
  struct vm_text out = {0};
  size_t kept = 0;
  bool quoted = false;
  for (size_t at = 0; at < length;) {
    size_t step = 1;
    for (int i = 0; i < SPECIALS && !(words && quoted); i++) {
      const char *from = words ? specials[i].word : specials[i].marker,
                 *to = words ? specials[i].marker : specials[i].word;
      if (length - at < strlen(from) || memcmp(text + at, from, strlen(from)) != 0) continue;
      vm_put(&out, text + kept, at - kept);
      vm_put(&out, to, strlen(to));
      kept = at += strlen(from), step = 0;
      break;
    }
    if (!step) continue;
    if (text[at] == '"') quoted = !quoted;
    at += quoted && text[at] == '\\' ? 2 : 1;
  }
  if (!out.at) return NULL;
  vm_put(&out, text + kept, length - kept);
  *out_length = out.size;
  return out.at;
}

json_t *vm_json_load(const char *text, size_t length, json_error_t *why) {
  char *copy = replace(text, length, true, &length);
  json_t *root = json_loadb(copy ? copy : text, length, JSON_REJECT_DUPLICATES | (copy ? JSON_ALLOW_NUL : 0), why);
  free(copy);
  return root;
}

char *vm_json_dump(const json_t *root) {
  char *text = json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII);
  size_t length = strlen(text);
  char *copy = replace(text, length, false, &length);
  if (!copy) return text;
  free(text);
  return copy;
}

json_t *vm_json_real(double value) {
  if (isfinite(value)) return json_real(value);
  return json_stringn(isnan(value) ? "\0?" : value > 0 ? "\0+" : "\0-", 2);
}

bool vm_json_is_real(const json_t *j, double *out) {
  const char *text = json_string_value(j);
  if (!text || json_string_length(j) != 2 || text[0] || !strchr("+-?", text[1])) return false;
  *out = text[1] == '?' ? NAN : text[1] == '+' ? INFINITY : -INFINITY;
  return true;
}

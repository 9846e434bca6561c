/* JSON by its grammar, RFC 8259, into one array. */
#include "json.h"

#include "db/bytes.h"
#include "vm/vm.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 32, MOST_MEMBERS = 1024, MOST_VALUES = 1 << 16 };

struct reader {
  struct db_json *json;
  const char *at, *end;
  char *text; /* where the next string is put */
  int depth;
};

/* ---- Strings ---- */

static bool is_plain(unsigned char c) { return c >= ' ' && c < 0x80 && c != '"' && c != '\\'; }

/* Eight bytes at a time, as long as all of them are. */
static const char *skip_plain(const char *at, const char *end) {
  const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
  for (uint64_t word, quote, slash; (size_t)(end - at) >= sizeof word; at += sizeof word) {
    memcpy(&word, at, sizeof word);
    quote = word ^ (ones * '"'), slash = word ^ (ones * '\\');
    if ((word | (word - ones * ' ') | (quote - ones) | (slash - ones)) & high) break;
  }
  while (is_plain((unsigned char)*at)) at++;
  return at;
}

static bool read_hex(struct reader *r, uint32_t *out) {
  *out = 0;
  for (int i = 0; i < 4; i++) {
    int digit = bytes_hex_digit(*r->at);
    if (digit < 0) return false;
    r->at++;
    *out = *out << 4 | (uint32_t)digit;
  }
  return true;
}

static void put_utf8(struct reader *r, uint32_t code) {
  int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  static const uint8_t first[] = {0, 0xc0, 0xe0, 0xf0};
  *r->text++ = (char)(first[more] | code >> 6 * more);
  while (more-- > 0) *r->text++ = (char)(0x80 | (code >> 6 * more & 0x3f));
}

/* Behind "\u": a character, or the two halves of one; zero would end the text. */
static bool read_code(struct reader *r) {
  uint32_t code, low;
  if (!read_hex(r, &code) || !code || (code >= 0xdc00 && code < 0xe000)) return false;
  if (code >= 0xd800 && code < 0xdc00) {
    if (r->at[0] != '\\' || r->at[1] != 'u') return false;
    r->at += 2;
    if (!read_hex(r, &low) || low < 0xdc00 || low >= 0xe000) return false;
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  put_utf8(r, code);
  return true;
}

static bool read_escape(struct reader *r) {
  static const char NAMES[] = "\"\\/bfnrt", ARE[] = "\"\\/\b\f\n\r\t";
  char name = *r->at++;
  if (name == 'u') return read_code(r);
  const char *found = name ? strchr(NAMES, name) : NULL;
  if (found) *r->text++ = ARE[found - NAMES];
  return found;
}

/* Behind the opening quote. What is put takes no more room than what is read. */
static bool read_string(struct reader *r, const char **out, size_t *length) {
  char *first = r->text;
  bool ascii = true;
  for (*out = first;;) {
    const char *run = r->at;
    r->at = skip_plain(run, r->end);
    memcpy(r->text, run, (size_t)(r->at - run));
    r->text += r->at - run;
    unsigned char c = (unsigned char)*r->at++;
    if (c == '"') break;
    if (c == '\\') {
      if (!read_escape(r)) return false;
    } else if (c < 0x80) { /* a control character, or the text's end */
      return false;
    } else {
      *r->text++ = (char)c;
      ascii = false;
    }
  }
  *length = (size_t)(r->text - first);
  *r->text++ = 0;
  assert((size_t)(r->text - r->json->texts) <= r->json->text_room);
  return ascii || vm_is_text(first, *length);
}

/* ---- Numbers ---- */

static const char *skip_digits(const char *at) {
  while (*at >= '0' && *at <= '9') at++;
  return at;
}

/* What is no integer of 64 bits, or no finite number, is refused. */
static bool read_number(struct reader *r, struct db_json_value *out) {
  const char *first = r->at, *digits = first + (*first == '-'), *end = skip_digits(digits);
  bool negative = digits > first, real = *end == '.' || (*end | 32) == 'e';
  if (end == digits || (*digits == '0' && end > digits + 1)) return false;
  if (*end == '.') {
    const char *point = end;
    end = skip_digits(end + 1);
    if (end == point + 1) return false;
  }
  if ((*end | 32) == 'e') {
    end += end[1] == '+' || end[1] == '-' ? 2 : 1;
    const char *exponent = end;
    end = skip_digits(end);
    if (end == exponent) return false;
  }
  r->at = end;
  out->kind = real ? DB_JSON_REAL : DB_JSON_INTEGER;
  if (real) {
    out->number = tir_text_number(first, NULL);
    return isfinite(out->number);
  }
  uint64_t value = 0, most = (uint64_t)INT64_MAX + negative;
  for (; digits < end; digits++) {
    uint64_t digit = (uint64_t)(*digits - '0');
    if (value > (most - digit) / 10) return false;
    value = value * 10 + digit;
  }
  out->integer = negative ? (int64_t)-value : (int64_t)value;
  out->number = (double)out->integer;
  return true;
}

/* ---- Values ---- */

static void skip_space(struct reader *r) {
  while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || *r->at == '\n') r->at++;
}

static bool take(struct reader *r, char c) {
  skip_space(r);
  if (*r->at != c) return false;
  r->at++;
  return true;
}

static bool take_word(struct reader *r, const char *word, enum db_json_kind kind, struct db_json_value *out) {
  size_t length = strlen(word);
  if (strncmp(r->at, word, length) != 0) return false;
  r->at += length;
  out->kind = kind;
  return true;
}

/* Its place. */
static uint32_t add(struct db_json *json) {
  if (json->count == json->room) {
    json->room = json->room ? 2 * json->room : 32;
    json->at = realloc(json->at, json->room * sizeof *json->at);
    if (!json->at) abort();
  }
  json->at[json->count] = (struct db_json_value){.key = "", .text = ""};
  return json->count++;
}

static bool has_key(const struct db_json *json, uint32_t holder, const char *key, size_t length) {
  for (uint32_t i = holder + 1; i < json->count; i += 1 + json->at[i].count)
    if (json->at[i].key_length == length && !memcmp(json->at[i].key, key, length)) return true;
  return false;
}

static bool read_value(struct reader *r, const char *key, size_t key_length);

/* Behind the bracket that opens it. */
static bool read_items(struct reader *r, uint32_t holder, bool keyed) {
  char close = keyed ? '}' : ']';
  if (++r->depth > MOST_DEPTH) return false;
  bool more = !take(r, close);
  for (uint32_t members = 0; more; members++) {
    const char *key = "";
    size_t length = 0;
    if (keyed && (members == MOST_MEMBERS || !take(r, '"') || !read_string(r, &key, &length) || !take(r, ':') ||
                  has_key(r->json, holder, key, length)))
      return false;
    if (!read_value(r, key, length)) return false;
    r->json->at[holder].count = r->json->count - holder - 1;
    more = take(r, ',');
    if (!more && !take(r, close)) return false;
  }
  r->depth--;
  return true;
}

static bool read_value(struct reader *r, const char *key, size_t key_length) {
  size_t length;
  if (r->json->count == MOST_VALUES) return false;
  uint32_t place = add(r->json);
  struct db_json_value *v = &r->json->at[place];
  v->key = key, v->key_length = key_length;
  skip_space(r);
  switch (*r->at) {
  case '"': r->at++; return v->kind = DB_JSON_STRING, read_string(r, &v->text, &length);
  case '{': r->at++; return v->kind = DB_JSON_OBJECT, read_items(r, place, true);
  case '[': r->at++; return v->kind = DB_JSON_LIST, read_items(r, place, false);
  case 't': return take_word(r, "true", DB_JSON_TRUE, v);
  case 'f': return take_word(r, "false", DB_JSON_FALSE, v);
  case 'n': return take_word(r, "null", DB_JSON_NULL, v);
  default: return read_number(r, v);
  }
}

bool db_json_read(struct db_json *json, const char *text, size_t length) {
  assert(text && !text[length]);
  if (length >= json->text_room) {
    json->text_room = length + length / 4 + 64;
    free(json->texts);
    json->texts = malloc(json->text_room);
    if (!json->texts) abort();
  }
  json->count = 0;
  struct reader r = {.json = json, .at = text, .end = text + length, .text = json->texts};
  if (!read_value(&r, "", 0)) return false;
  assert(!r.depth && json->at->count == json->count - 1); /* the first holds all others */
  skip_space(&r);
  return r.at == r.end;
}

void db_json_free(struct db_json *json) {
  free(json->at);
  free(json->texts);
  *json = (struct db_json){0};
}

/* ---- What was read ---- */

const struct db_json_value *db_json_first(const struct db_json_value *holder) {
  return holder && holder->count ? holder + 1 : NULL;
}

const struct db_json_value *db_json_next(const struct db_json_value *holder, const struct db_json_value *at) {
  assert(at > holder && at <= holder + holder->count);
  const struct db_json_value *next = at + 1 + at->count;
  return next <= holder + holder->count ? next : NULL;
}

const struct db_json_value *db_json_get(const struct db_json_value *object, const char *key) {
  size_t length = strlen(key);
  if (!object || object->kind != DB_JSON_OBJECT) return NULL;
  for (const struct db_json_value *v = object + 1, *end = v + object->count; v < end; v += 1 + v->count)
    if (v->key_length == length && !memcmp(v->key, key, length)) return v;
  return NULL;
}

const char *db_json_text(const struct db_json_value *object, const char *key) {
  const struct db_json_value *v = db_json_get(object, key);
  return v ? v->text : "";
}

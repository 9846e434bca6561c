#include "lexer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Deeper indentation than any program has; it also keeps the reader's recursion over suites bounded. */
enum { MOST_INDENTS = 250, MOST_BRACKETS = 1000 };

struct lexer {
  struct tir *ir;
  const char *text;
  size_t length, at;
  struct tir_tokens *out;
  uint32_t indents[MOST_INDENTS];
  uint32_t indent_count;
  char brackets[MOST_BRACKETS];
  uint32_t bracket_count;
  char *scratch; /* for strings with escapes; as long as the text */
  size_t place;
  const char *why;
};

static bool fail(struct lexer *l, size_t place, const char *why) {
  assert(why);
  l->place = place;
  l->why = why;
  return false;
}

static struct tir_token *push(struct lexer *l, enum tir_token_kind kind, size_t offset, size_t length) {
  struct tir_tokens *t = l->out;
  if (t->count == t->capacity) {
    t->capacity = t->capacity ? t->capacity * 2 : 256;
    t->at = realloc(t->at, t->capacity * sizeof *t->at);
    if (!t->at) abort();
  }
  struct tir_token *token = &t->at[t->count++];
  *token = (struct tir_token){.offset = (uint32_t)offset, .length = (uint32_t)length, .kind = kind};
  return token;
}

static char peek(const struct lexer *l, size_t ahead) { return l->at + ahead < l->length ? l->text[l->at + ahead] : 0; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80); }
static bool in_name(char c) { return starts_name(c) || is_digit(c); }

static void skip_comment(struct lexer *l) {
  while (l->at < l->length && l->text[l->at] != '\n') l->at++;
}

/* ---- Indentation ---- */

/* At the start of a logical line: skips blank lines, then compares the indentation with that of the lines before. */
static bool start_line(struct lexer *l) {
  uint32_t column;
  for (;;) {
    column = 0;
    for (; l->at < l->length; l->at++) {
      char c = l->text[l->at];
      if (c == ' ')
        column++;
      else if (c == '\t')
        column = (column / 8 + 1) * 8;
      else if (c != '\r' && c != '\f')
        break;
    }
    if (l->at >= l->length) return true;
    if (l->text[l->at] == '#') skip_comment(l);
    if (l->at >= l->length || l->text[l->at] != '\n') break;
    l->at++;
  }
  if (l->at >= l->length) return true;
  if (column > l->indents[l->indent_count - 1]) {
    if (l->indent_count == MOST_INDENTS) return fail(l, l->at, "the text is nested too deeply");
    l->indents[l->indent_count++] = column;
    push(l, TIR_TOKEN_INDENT, l->at, 0);
    return true;
  }
  while (column < l->indents[l->indent_count - 1]) {
    l->indent_count--;
    push(l, TIR_TOKEN_DEDENT, l->at, 0);
  }
  if (column == l->indents[l->indent_count - 1]) return true;
  return fail(l, l->at, "this indentation matches no line above");
}

/* ---- Literals ---- */

/* A digit's value in a base of up to 16; 99 for what is no digit, the text's end among it. */
static int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

static bool lex_radix(struct lexer *l, size_t start, int radix) {
  assert(radix == 2 || radix == 8 || radix == 16);
  l->at += 2;
  uint64_t value = 0;
  size_t digits = 0;
  for (; digit_value(peek(l, 0)) < radix || peek(l, 0) == '_'; l->at++) {
    if (peek(l, 0) == '_') continue;
    if (__builtin_mul_overflow(value, (uint64_t)radix, &value) ||
        __builtin_add_overflow(value, (uint64_t)digit_value(peek(l, 0)), &value) || value > (uint64_t)INT64_MAX)
      return fail(l, start, "this integer does not fit in 64 bits");
    digits++;
  }
  if (!digits || in_name(peek(l, 0))) return fail(l, start, "this is no number");
  push(l, TIR_TOKEN_INT, start, l->at - start)->integer = (int64_t)value;
  return true;
}

/* Copies a number's text without underscores, for tir_text_number and strtoull. */
static bool copy_digits(struct lexer *l, size_t start, char *out, size_t size) {
  assert(size > 1);
  size_t n = 0;
  for (size_t i = start; i < l->at; i++) {
    if (l->text[i] == '_') continue;
    if (n + 1 >= size) return false;
    out[n++] = l->text[i];
  }
  out[n] = 0;
  return true;
}

static void skip_digits(struct lexer *l) {
  while (is_digit(peek(l, 0)) || (peek(l, 0) == '_' && is_digit(peek(l, 1)))) l->at++;
}

static bool lex_number(struct lexer *l) {
  size_t start = l->at;
  if (peek(l, 0) == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X')) return lex_radix(l, start, 16);
  if (peek(l, 0) == '0' && (peek(l, 1) == 'b' || peek(l, 1) == 'B')) return lex_radix(l, start, 2);
  if (peek(l, 0) == '0' && (peek(l, 1) == 'o' || peek(l, 1) == 'O')) return lex_radix(l, start, 8);
  bool real = false;
  skip_digits(l);
  if (peek(l, 0) == '.' && !starts_name(peek(l, 1))) {
    real = true;
    l->at++;
    skip_digits(l);
  }
  size_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
  if ((peek(l, 0) == 'e' || peek(l, 0) == 'E') && is_digit(peek(l, 1 + sign))) {
    real = true;
    l->at += 1 + sign;
    skip_digits(l);
  }
  if (in_name(peek(l, 0))) return fail(l, start, "this is no number");
  char digits[1100]; /* DBL_MAX has 309 digits, the exact value of a double at most 767 significant ones */
  if (!copy_digits(l, start, digits, sizeof digits)) return fail(l, start, "this number is too long");
  if (real) {
    double value = tir_text_number(digits, NULL);
    push(l, TIR_TOKEN_REAL, start, l->at - start)->real = value;
    return true;
  }
  if (digits[0] == '0' && strspn(digits, "0") != strlen(digits)) return fail(l, start, "a number may not start with 0");
  errno = 0;
  unsigned long long value = strtoull(digits, NULL, 10);
  /* 2^63 is kept as the least integer: the reader negates it, and refuses it bare. */
  if (errno || value > 9223372036854775808ull) return fail(l, start, "this integer does not fit in 64 bits");
  push(l, TIR_TOKEN_INT, start, l->at - start)->integer = (int64_t)value;
  return true;
}

static size_t put_utf8(char *out, uint32_t c) {
  assert(c <= 0x10FFFF);
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
  out[0] = (char)(0xe0 | c >> 12);
  out[1] = (char)(0x80 | (c >> 6 & 63));
  out[2] = (char)(0x80 | (c & 63));
  return 3;
}

/* An escape after its backslash, which l->at stands behind. Writes at most as many bytes as the escape has. */
static bool lex_escape(struct lexer *l, char *out, size_t *n) {
  char c = peek(l, 0);
  size_t place = l->at - 1;
  l->at++;
  static const char from[] = "ntr0abfv\\'\"", to[] = "\n\t\r\0\a\b\f\v\\'\"";
  if (c == 'x' || c == 'u') {
    uint32_t value = 0;
    int digits = c == 'x' ? 2 : 4;
    for (int i = 0; i < digits; i++, l->at++) {
      if (digit_value(peek(l, 0)) > 15) return fail(l, place, "this escape is incomplete");
      value = value * 16 + (uint32_t)digit_value(peek(l, 0));
    }
    if (value == 0) return fail(l, place, "a string may not contain a zero byte");
    if (c == 'x')
      out[(*n)++] = (char)value;
    else
      *n += put_utf8(out + *n, value);
    return true;
  }
  if (c == '\n') return true;
  const char *found = c ? strchr(from, c) : NULL;
  if (!found) {
    out[(*n)++] = '\\';
    if (c) out[(*n)++] = c;
    return true;
  }
  if (*found == '0') return fail(l, place, "a string may not contain a zero byte");
  out[(*n)++] = to[found - from];
  return true;
}

static bool lex_string(struct lexer *l) {
  size_t start = l->at, n = 0;
  char quote = peek(l, 0);
  bool triple = peek(l, 1) == quote && peek(l, 2) == quote;
  l->at += triple ? 3 : 1;
  for (;;) {
    if (l->at >= l->length) return fail(l, start, "this string has no end");
    char c = l->text[l->at];
    if (c == quote && (!triple || (peek(l, 1) == quote && peek(l, 2) == quote))) break;
    if (c == '\n' && !triple) return fail(l, start, "this string has no end on its line");
    if (c == 0) return fail(l, l->at, "the text contains a zero byte");
    l->at++;
    if (c != '\\')
      l->scratch[n++] = c;
    else if (!lex_escape(l, l->scratch, &n))
      return false;
  }
  l->at += triple ? 3 : 1;
  push(l, TIR_TOKEN_STRING, start, l->at - start)->symbol = tir_symbol_n(l->ir, l->scratch, n);
  return true;
}

/* ---- Punctuation ---- */

static bool lex_punct(struct lexer *l) {
  static const char pairs[][3] = {
      "//", "**", "<<", ">>", "<=", ">=", "==", "!=", "->", "+=", "-=", "*=", "/=", "%=", ":="};
  char c = peek(l, 0), d = peek(l, 1);
  size_t length = 1;
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    if (pairs[i][0] == c && pairs[i][1] == d) length = 2;
  if (length == 1 && (c == 0 || !strchr("+-*/%<>=()[]{},:.;@&|^~", c)))
    return fail(l, l->at, c ? "this character has no meaning here" : "the text contains a zero byte");
  if (c == '(' || c == '[' || c == '{') {
    if (l->bracket_count == MOST_BRACKETS) return fail(l, l->at, "brackets are nested too deeply");
    l->brackets[l->bracket_count++] = c == '(' ? ')' : c == '[' ? ']' : '}';
  } else if (c == ')' || c == ']' || c == '}') {
    if (!l->bracket_count || l->brackets[l->bracket_count - 1] != c) return fail(l, l->at, "this bracket closes none");
    l->bracket_count--;
  }
  bool floor_assign = length == 2 && c == '/' && d == '/' && peek(l, 2) == '=';
  if (floor_assign) length = 3;
  push(l, TIR_TOKEN_PUNCT, l->at, length)->punct =
      floor_assign ? TIR_PUNCT_FLOOR_ASSIGN : TIR_PUNCT(c, length == 2 ? d : 0);
  l->at += length;
  return true;
}

/* ---- All of it ---- */

static bool lex_token(struct lexer *l) {
  char c = l->text[l->at];
  if (c == ' ' || c == '\t' || c == '\r' || c == '\f') return l->at++, true;
  if (c == '#') return skip_comment(l), true;
  if (c == '\\' && (peek(l, 1) == '\n' || (peek(l, 1) == '\r' && peek(l, 2) == '\n'))) {
    l->at += peek(l, 1) == '\n' ? 2 : 3;
    return true;
  }
  if (c == '\n') {
    l->at++;
    if (l->bracket_count) return true;
    push(l, TIR_TOKEN_NEWLINE, l->at - 1, 0);
    return start_line(l);
  }
  if (starts_name(c)) {
    size_t start = l->at;
    while (in_name(peek(l, 0))) l->at++;
    push(l, TIR_TOKEN_NAME, start, l->at - start)->symbol = tir_symbol_n(l->ir, l->text + start, l->at - start);
    return true;
  }
  if (is_digit(c) || (c == '.' && is_digit(peek(l, 1)))) return lex_number(l);
  if (c == '"' || c == '\'') return lex_string(l);
  return lex_punct(l);
}

static bool run(struct lexer *l) {
  l->indents[0] = 0;
  l->indent_count = 1;
  if (l->length >= 3 && !memcmp(l->text, "\xef\xbb\xbf", 3))
    l->at = 3; /* a byte order mark, which some editors write */
  if (!start_line(l)) return false;
  while (l->at < l->length)
    if (!lex_token(l)) return false;
  if (l->bracket_count) return fail(l, l->length, "the text ends inside a bracket");
  uint32_t count = l->out->count;
  if (count && l->out->at[count - 1].kind != TIR_TOKEN_NEWLINE) push(l, TIR_TOKEN_NEWLINE, l->length, 0);
  while (l->indent_count > 1) {
    l->indent_count--;
    push(l, TIR_TOKEN_DEDENT, l->length, 0);
  }
  push(l, TIR_TOKEN_END, l->length, 0);
  return true;
}

bool tir_lex(struct tir *ir, const char *text, size_t length, struct tir_tokens *tokens, size_t *place,
             const char **why) {
  struct lexer l = {.ir = ir, .text = text, .length = length, .out = tokens};
  /* Offsets and the arrays of the module are 32 bits wide. */
  if (length > 1u << 28) return *place = 0, *why = "the text is longer than 256 megabytes", false;
  l.scratch = malloc(length + 1);
  if (!l.scratch) abort();
  bool done = run(&l);
  free(l.scratch);
  *place = l.place;
  *why = l.why;
  return done;
}

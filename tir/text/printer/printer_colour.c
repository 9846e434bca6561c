/* Colours for printed text: keywords, names of TIR, numbers, strings, comments. The text is cut into tokens again, so
 * that printing itself knows nothing of terminals. */
#include "printer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KEYWORD "\x1b[35m"
#define CALLEE  "\x1b[36m"
#define NUMBER  "\x1b[33m"
#define STRING  "\x1b[32m"
#define COMMENT "\x1b[90m"
#define PLAIN   "\x1b[0m"

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t name_length(const char *text) {
  size_t n = 0;
  while (in_name(text[n])) n++;
  return n;
}

static bool is_keyword(const char *text, size_t length) {
  static const char *const keywords[] = {"for",  "in",    "with",   "if",     "else", "elif", "while",
                                         "def",  "class", "assert", "return", "and",  "or",   "not",
                                         "pass", "as",    "True",   "False",  "None", "range"};
  for (size_t i = 0; i < sizeof keywords / sizeof keywords[0]; i++)
    if (strlen(keywords[i]) == length && !strncmp(keywords[i], text, length)) return true;
  return false;
}

static size_t string_length(const char *text) {
  size_t n = 1;
  while (text[n] && text[n] != '"') n += text[n] == '\\' && text[n + 1] ? 2 : 1;
  return text[n] ? n + 1 : n;
}

/* T.name.name */
static size_t path_length(const char *text) {
  size_t n = 1;
  while (text[n] == '.' && in_name(text[n + 1])) n += 1 + name_length(text + n + 1);
  return n;
}

static void put_coloured(struct tir_text *out, const char *colour, const char *text, size_t length) {
  tir_put(out, colour);
  tir_put_n(out, text, length);
  tir_put(out, PLAIN);
}

char *tir_colour(char *text) {
  struct tir_text out = {NULL, 0, 0};
  tir_put(&out, "");
  for (const char *c = text; *c;) {
    size_t length = 1;
    const char *colour = NULL;
    if (*c == '#' || *c == '@') {
      length = strcspn(c, "\n");
      colour = COMMENT;
    } else if (*c == '"') {
      length = string_length(c);
      colour = STRING;
    } else if ((*c == 'T' || *c == 'I') && c[1] == '.') {
      length = path_length(c);
      colour = CALLEE;
    } else if (isdigit((unsigned char)*c)) {
      while (in_name(c[length]) || c[length] == '.') length++;
      colour = NUMBER;
    } else if (in_name(*c)) {
      length = name_length(c);
      if (is_keyword(c, length)) colour = KEYWORD;
    }
    if (colour)
      put_coloured(&out, colour, c, length);
    else
      tir_put_n(&out, c, length);
    c += length;
  }
  free(text);
  return out.at;
}

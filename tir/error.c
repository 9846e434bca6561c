/* The list of what can go wrong, and the messages made from it. */
#include "tir.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name, *text, *hint;
} codes[MS_CODE_COUNT] = {
    {"ok", "", ""},
#define MS_ERROR(code, text, hint) {#code, text, hint},
#include "errors.def"
#undef MS_ERROR
};

/* Codes are written in capitals once, in errors.def; their names are the same in lower case. */
static char names[MS_CODE_COUNT][40];
static pthread_once_t named = PTHREAD_ONCE_INIT;
static void make_names(void) {
  for (uint32_t code = 0; code < MS_CODE_COUNT; code++) {
    assert(strlen(codes[code].name) < sizeof *names);
    for (size_t i = 0; codes[code].name[i]; i++) names[code][i] = (char)tolower((unsigned char)codes[code].name[i]);
  }
}
const char *ms_code_name(enum ms_code code) {
  assert(code < MS_CODE_COUNT);
  pthread_once(&named, make_names);
  return names[code];
}
const char *ms_code_text(enum ms_code code) { return codes[code].text; }
const char *ms_code_hint(enum ms_code code) { return codes[code].hint; }

/* False: there is nothing to fill, or no message is wanted. */
static bool begin(ms_error *err, enum ms_code code) {
  if (!err) return false;
  err->code = code;
  err->instruction = -1;
  err->message[0] = 0;
  return !err->brief;
}

bool ms_vfail(ms_error *err, enum ms_code code, const char *format, va_list args) {
  assert(code != MS_OK && format);
  if (begin(err, code)) vsnprintf(err->message, sizeof err->message, format, args);
  return false;
}

bool ms_fail(ms_error *err, enum ms_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ms_vfail(err, code, format, args);
  va_end(args);
  return false;
}

void ms_explain(ms_error *err) {
  if (!err || err->brief || strstr(err->message, "\nrequired: ")) return;
  size_t length = strlen(err->message);
  snprintf(err->message + length, sizeof err->message - length, "\nrequired: %s\nhint: %s", ms_code_text(err->code),
           ms_code_hint(err->code));
}

/* Copies the lines around the place that is marked, so that a message stays a screen at most. */
static size_t quote_place(const struct tir *ir, tir_stmt place, char *out, size_t size) {
  enum { MOST_LINES = 8 };
  char *text = tir_print_stmt(ir, place, 0);
  if (!text) return 0;
  size_t length = 0;
  int lines = 0;
  for (const char *c = text; *c && lines < MOST_LINES && length + 8 < size; c++) {
    if (c == text || c[-1] == '\n') {
      memcpy(out + length, "  | ", 4);
      length += 4;
    }
    out[length++] = *c;
    lines += *c == '\n';
  }
  if (length && out[length - 1] != '\n') out[length++] = '\n';
  out[length] = 0;
  free(text);
  return length;
}

bool tir_refuse(const struct tir *ir, ms_error *err, enum ms_code code, uint32_t place, const char *format, ...) {
  if (!begin(err, code)) return false;
  size_t size = sizeof err->message;
  va_list args;
  va_start(args, format);
  int written = vsnprintf(err->message, size / 2, format, args);
  va_end(args);
  size_t length = written < 0 ? 0 : (size_t)written < size / 2 ? (size_t)written : size / 2 - 1;
  length += (size_t)snprintf(err->message + length, size - length, "\n");
  if (place != TIR_NONE && length + 200 < size)
    length += quote_place(ir, place, err->message + length, size - length - 200);
  err->message[length - 1] = 0; /* the newline is ms_explain's */
  ms_explain(err);
  return false;
}

/* Growing texts. */
#include "vm/steps.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void vm_put(struct vm_text *text, const char *bytes, size_t length) {
  assert(bytes || !length);
  uint64_t size = (uint64_t)text->size + length + 1;
  if (size > text->capacity) text->at = tir_enlarge(text->at, &text->capacity, size, 1);
  if (length) memcpy(text->at + text->size, bytes, length);
  text->size += (uint32_t)length;
  text->at[text->size] = 0;
}

void vm_putf(struct vm_text *text, const char *format, ...) {
  char piece[256];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  if (length > 0) vm_put(text, piece, (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1);
}

void vm_put_whole(struct vm_text *text, int64_t value) {
  char digits[20], *at = digits + sizeof digits;
  uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
  do *--at = (char)('0' + left % 10);
  while (left /= 10);
  if (value < 0) *--at = '-';
  vm_put(text, at, (size_t)(digits + sizeof digits - at));
}

void vm_put_real(struct vm_text *text, double value) {
  char out[40];
  if (!isfinite(value)) {
    vm_putf(text, "%f", value);
    return;
  }
  static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    tir_number_text(out, sizeof out, formats[i], value);
    if (tir_text_number(out, NULL) == value) break;
  }
  if (!strpbrk(out, ".e")) strcat(out, ".0");
  vm_put(text, out, strlen(out));
}

/* The first byte, eight at a time, of eight that are not all ASCII without zeros. */
static size_t skip_plain(const char *bytes, size_t length) {
  const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
  size_t i = 0;
  for (uint64_t word; i + sizeof word <= length; i += sizeof word) {
    memcpy(&word, bytes + i, sizeof word);
    if ((word | (word - ones)) & high) break;
  }
  return i;
}

bool vm_is_text(const char *bytes, size_t length) {
  for (size_t i = skip_plain(bytes, length); i < length;) {
    unsigned char c = (unsigned char)bytes[i++];
    if (!c || (c >= 0x80 && c < 0xc2) || c > 0xf4) return false;
    int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    uint32_t code = more ? c & (0x3fu >> more) : c;
    for (; more; more--) {
      if (i == length || ((unsigned char)bytes[i] & 0xc0) != 0x80) return false;
      code = code << 6 | ((unsigned char)bytes[i++] & 0x3f);
      if (more == 1 && ((code >= 0xd800 && code < 0xe000) || code > 0x10ffff)) return false;
    }
    if (c >= 0xe0 && code < (c < 0xf0 ? 0x800u : 0x10000u)) return false;
  }
  return true;
}

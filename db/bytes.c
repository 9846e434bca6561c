/* Numbers as bytes, and back. */
#include "bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- Writing ---- */

uint8_t *bytes_extend(struct byte_writer *w, size_t size) {
  assert(w->size <= w->room && (w->at || !w->room));
  if (w->size + size > w->room) {
    w->room = (w->size + size) * 2 + 256;
    w->at = realloc(w->at, w->room);
    if (!w->at) abort();
  }
  w->size += size;
  return w->at + w->size - size;
}

void bytes_put(struct byte_writer *w, const void *bytes, size_t size) {
  assert(bytes || !size);
  uint8_t *to = bytes_extend(w, size);
  if (size) memcpy(to, bytes, size);
}

void bytes_put_fixed(struct byte_writer *w, uint64_t n) {
  uint8_t *to = bytes_extend(w, 8);
  for (int i = 0; i < 8; i++) to[i] = (uint8_t)(n >> 8 * i);
}

void bytes_put_real(struct byte_writer *w, double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  bytes_put_fixed(w, bits);
}

void bytes_put_number(struct byte_writer *w, uint64_t n) {
  uint8_t bytes[10];
  size_t size = 0;
  do bytes[size++] = (uint8_t)((n & 127) | (n > 127 ? 128 : 0));
  while (n >>= 7);
  assert(size <= sizeof bytes);
  bytes_put(w, bytes, size);
}

/* ---- Reading ---- */

struct byte_reader bytes_reader(const void *bytes, size_t size) {
  assert(bytes || !size);
  return (struct byte_reader){bytes, size ? (const uint8_t *)bytes + size : bytes, false};
}

const void *bytes_take(struct byte_reader *r, uint64_t size) {
  assert(r->at <= r->end);
  if (r->bad || size > (size_t)(r->end - r->at)) {
    r->bad = true;
    return NULL;
  }
  if (!size) return r->at;
  r->at += size;
  return r->at - size;
}

uint64_t bytes_take_fixed(struct byte_reader *r) {
  const uint8_t *bytes = bytes_take(r, 8);
  uint64_t n = 0;
  for (int i = 0; bytes && i < 8; i++) n |= (uint64_t)bytes[i] << 8 * i;
  return n;
}

double bytes_take_real(struct byte_reader *r) {
  uint64_t bits = bytes_take_fixed(r);
  double x;
  memcpy(&x, &bits, 8);
  return x;
}

uint64_t bytes_take_number(struct byte_reader *r) {
  uint64_t n = 0;
  for (int shift = 0; shift < 64 && !r->bad; shift += 7) {
    const uint8_t *byte = bytes_take(r, 1);
    if (!byte) break;
    n |= (uint64_t)(*byte & 127) << shift;
    if (*byte < 128) return n;
  }
  r->bad = true;
  return 0;
}

int bytes_hex_digit(char c) {
  static const char DIGITS[] = "0123456789abcdef0123456789ABCDEF";
  const char *digit = c ? strchr(DIGITS, c) : NULL;
  return digit ? (int)((digit - DIGITS) % 16) : -1;
}

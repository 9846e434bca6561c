/* Bytes put together, and a stranger's taken apart. Integers are little-endian, or LEB128 (DWARF 5, section 7.6).
 * Internal to db. */
#ifndef MSCHED_DB_BYTES_H
#define MSCHED_DB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* {0} is empty; what it holds is freed by its user. */
struct byte_writer {
  uint8_t *at;
  size_t size, room;
};
uint8_t *bytes_extend(struct byte_writer *w, size_t size); /* so many bytes more, which the caller fills */
void bytes_put(struct byte_writer *w, const void *bytes, size_t size);
void bytes_put_fixed(struct byte_writer *w, uint64_t n); /* 8 bytes */
void bytes_put_real(struct byte_writer *w, double x);    /* 8 bytes */
void bytes_put_number(struct byte_writer *w, uint64_t n);

int bytes_hex_digit(char c); /* 0 to 15; -1: it is none */

/* bad: something was not there; from then on there is nothing: NULL, and 0. */
struct byte_reader {
  const uint8_t *at, *end;
  bool bad;
};
struct byte_reader bytes_reader(const void *bytes, size_t size);
const void *bytes_take(struct byte_reader *r, uint64_t size);
uint64_t bytes_take_fixed(struct byte_reader *r);
double bytes_take_real(struct byte_reader *r);
uint64_t bytes_take_number(struct byte_reader *r);

#endif

/* Bytes as their difference to others. Internal to db.
 *
 * A difference is a list of steps to the end: how many bytes follow (LEB128), those bytes, how far the copy's place in
 * the base is from where the one before ended (signed, zigzag, less the bytes that follow), how many are copied. The
 * last step has no copy where the bytes end it. */
#ifndef MSCHED_DB_DELTA_H
#define MSCHED_DB_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that differences are made to, with where each run of four stands. */
struct delta_base {
  uint8_t *bytes;
  size_t size;
  int32_t *first, *next; /* of a hash; behind a place: the next with the same hash */
};
enum { DELTA_MOST = 1 << 20 }; /* bytes of a base, and of what is made from it */

void delta_prepare(struct delta_base *base, const void *bytes, size_t size); /* copies them; size at most DELTA_MOST */
void delta_free(struct delta_base *base);
/* Writes at most `room` bytes to out; returns how many, or 0 where they do not suffice. */
size_t delta_write(const struct delta_base *base, const void *bytes, size_t size, uint8_t *out, size_t room);
/* Reads a stranger's difference into `size` bytes. False: it gives another number of bytes, or names places that the
 * base has not. */
bool delta_read(const void *base, size_t base_size, const void *delta, size_t delta_size, uint8_t *out, size_t size);

#endif

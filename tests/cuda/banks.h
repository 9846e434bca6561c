/* Shared memory by banks: where swizzled bytes lie, and what a load costs. */
#ifndef TEST_BANKS_H
#define TEST_BANKS_H

#include "tir/tir.h"

#include <assert.h>

/* The place of a byte of a buffer whose rows are swizzled so. */
static inline int64_t swizzled_byte(struct tir_swizzle s, int64_t byte) {
  assert(byte >= 0);
  if (s.panel) byte = (byte % s.row / s.panel * s.rows + byte / s.row) * s.panel + byte % s.panel;
  return byte ^ (byte >> s.shift & s.mask) * TIR_PIECE;
}

/* Whether each lane loads what the lane so far from it does. */
static inline bool banks_are_paired(const int64_t *bytes, int lanes, int apart) {
  for (int l = 0; l < lanes; l++)
    if ((l ^ apart) < lanes && bytes[l] != bytes[l ^ apart]) return false;
  return true;
}

/* How many passes the 32 banks of 4 bytes make for what lanes load at once: `width` bytes each, from bytes[lane] on.
 * A load of 16 bytes a lane is made for eight lanes at once, one of 8 for sixteen, and for twice as many where two
 * each load the same (G. Smith, NVIDIA's forum, "Unexpected shared memory bank conflict", 2019). */
static inline int bank_passes(const int64_t *bytes, int lanes, int width) {
  enum { MOST = 128 };
  int together = width > TIR_BANK_BYTES ? TIR_BANK_ROW / width : TIR_BANKS, passes = 0;
  bool paired = banks_are_paired(bytes, lanes, 1) || banks_are_paired(bytes, lanes, 2);
  if (width > TIR_BANK_BYTES && paired) together *= 2;
  for (int first = 0; first < lanes; first += together) {
    int64_t words[TIR_BANKS][MOST];
    int count[TIR_BANKS] = {0}, most = 0;
    for (int l = first; l < lanes && l < first + together; l++)
      for (int64_t word = bytes[l] / TIR_BANK_BYTES; word <= (bytes[l] + width - 1) / TIR_BANK_BYTES; word++) {
        int bank = (int)(word % TIR_BANKS), i = 0;
        while (i < count[bank] && words[bank][i] != word) i++;
        if (i == count[bank]) words[bank][count[bank]++] = word;
        if (count[bank] > most) most = count[bank];
      }
    passes += most;
  }
  return passes;
}

#endif

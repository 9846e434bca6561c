/* Banks of shared memory: where the bytes of swizzled rows lie, and how many passes the banks make. What a buffer's
 * scope says of it is put there by lower/gpu/swizzle.c. */
#include "tir/tir.h"

#include <stdlib.h>
#include <string.h>

int64_t tir_panel_of(int64_t row) {
  for (int64_t panel = TIR_BANK_ROW; panel >= 2 * TIR_PIECE; panel /= 2)
    if (row > 0 && row % panel == 0) return panel;
  return 0;
}

static bool read_panels(const char *numbers, struct tir_swizzle *out) {
  long long row, rows;
  if (sscanf(numbers, "%lld.%lld", &row, &rows) != 2 || !tir_panel_of(row) || rows < 1) return false;
  *out = (struct tir_swizzle){.shift = 7, .panel = tir_panel_of(row), .row = row, .rows = rows};
  out->mask = (int)(out->panel / TIR_PIECE - 1);
  return true;
}

static bool read_swizzle(const char *numbers, struct tir_swizzle *out) {
  long row = strtol(numbers, NULL, 10);
  if (row < 2 * TIR_PIECE || (row & (row - 1))) return false;
  *out = (struct tir_swizzle){.mask = (row < TIR_BANK_ROW ? row : TIR_BANK_ROW) / TIR_PIECE - 1};
  for (long bytes = row > TIR_BANK_ROW ? row : TIR_BANK_ROW; bytes > 1; bytes /= 2) out->shift++;
  return true;
}

bool tir_swizzle_of(const struct tir *ir, tir_buffer buffer, struct tir_swizzle *out) {
  enum tir_rows rows = tir_rows_of(ir, buffer);
  if (rows == TIR_ROWS_PLAIN || !tir_scope_symbol(ir, buffer)->sized) return false;
  const char *text = tir_text(ir, tir_buffer_at(ir, buffer)->scope);
  bool panels = rows == TIR_ROWS_CANONICAL;
  const char *numbers = strstr(text, panels ? TIR_PANELS "." : TIR_SWIZZLE ".");
  assert(numbers);
  return panels ? read_panels(numbers + strlen(TIR_PANELS "."), out)
                : read_swizzle(numbers + strlen(TIR_SWIZZLE "."), out);
}

int64_t tir_swizzled(struct tir_swizzle s, int64_t byte) {
  assert(byte >= 0);
  if (s.panel) byte = (byte % s.row / s.panel * s.rows + byte / s.row) * s.panel + byte % s.panel;
  return byte ^ (byte >> s.shift & s.mask) * TIR_PIECE;
}

/* A load of 16 bytes a lane is made for eight lanes at once, one of 8 for sixteen. */
int tir_bank_passes(const int64_t *bytes, int lanes, int width) {
  enum { MOST = 128 };
  int together = width > TIR_BANK_BYTES ? TIR_BANK_ROW / width : TIR_BANKS, passes = 0;
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

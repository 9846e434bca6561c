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

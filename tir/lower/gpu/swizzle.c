/* Swizzle: where rows of a shared buffer lie, whose scope ends in TIR_SWIZZLE or in TIR_PANELS.
 * Requires: no blocks; shared allocations as large as they stay. Gives: the scope of such a buffer says how many bytes a row
 * has, and how many there are, from which follows where elements lie. Keeps: everything else: indices count elements as though nothing were
 * exchanged.
 *
 * Threads that load a column of pieces of 16 bytes, as tensor units have them do, meet in banks where rows are a multiple of
 * 128 bytes or a part of it. Rows of 32 bytes or more, of a power of two, exchange their pieces, each row its own way, which
 * takes no memory; rows of other even numbers of pieces get one more when they are compacted (compact.c); odd numbers of pieces
 * meet in no bank. */
#include "tir/lower/lower.h"

#include <stdlib.h>
#include <string.h>

enum { PIECE = 16, BANKS_BYTES = 128, PIECES = BANKS_BYTES / PIECE };

static const char *scope_of(const struct tir *ir, tir_buffer buffer) {
  tir_symbol scope = tir_buffer_at(ir, buffer)->scope;
  return scope ? tir_text(ir, scope) : "";
}

int64_t lower_panel_of(int64_t row) {
  for (int64_t panel = BANKS_BYTES; panel >= 2 * PIECE; panel /= 2)
    if (row > 0 && row % panel == 0) return panel;
  return 0;
}

static bool read_panels(const char *scope, struct tir_swizzle *out) {
  const char *at = strstr(scope, TIR_PANELS ".");
  long long row, rows;
  if (!at || sscanf(at + strlen(TIR_PANELS "."), "%lld.%lld", &row, &rows) != 2 || !lower_panel_of(row) || rows < 1)
    return false;
  *out = (struct tir_swizzle){.shift = 7, .panel = lower_panel_of(row), .row = row, .rows = rows};
  out->mask = (int)(out->panel / PIECE - 1);
  return true;
}

bool tir_swizzle_of(const struct tir *ir, tir_buffer buffer, struct tir_swizzle *out) {
  if (read_panels(scope_of(ir, buffer), out)) return true;
  const char *at = strstr(scope_of(ir, buffer), TIR_SWIZZLE ".");
  long row = at ? strtol(at + strlen(TIR_SWIZZLE "."), NULL, 10) : 0;
  if (row < 2 * PIECE || (row & (row - 1))) return false;
  *out = (struct tir_swizzle){.mask = (row < BANKS_BYTES ? row : BANKS_BYTES) / PIECE - 1};
  for (long bytes = row > BANKS_BYTES ? row : BANKS_BYTES; bytes > 1; bytes /= 2) out->shift++;
  return true;
}

int64_t tir_swizzled(struct tir_swizzle s, int64_t byte) {
  assert(byte >= 0);
  if (s.panel) byte = (byte % s.row / s.panel * s.rows + byte / s.row) * s.panel + byte % s.panel;
  return byte ^ (byte >> s.shift & s.mask) * PIECE;
}

/* A load of 16 bytes a lane is made for eight lanes at once, one of 8 for sixteen. */
int tir_bank_passes(const int64_t *bytes, int lanes, int width) {
  enum { BANKS = 32, BANK = 4, MOST = 128 };
  int together = width > BANK ? BANKS_BYTES / width : BANKS, passes = 0;
  for (int first = 0; first < lanes; first += together) {
    int64_t words[BANKS][MOST];
    int count[BANKS] = {0}, most = 0;
    for (int l = first; l < lanes && l < first + together; l++)
      for (int64_t word = bytes[l] / BANK; word <= (bytes[l] + width - 1) / BANK; word++) {
        int bank = (int)(word % BANKS), i = 0;
        while (i < count[bank] && words[bank][i] != word) i++;
        if (i == count[bank]) words[bank][count[bank]++] = word;
        if (count[bank] > most) most = count[bank];
      }
    passes += most;
  }
  return passes;
}

/* Whether the scope asks for it, and nothing is said yet. */
static bool is_asked(const struct tir *ir, tir_buffer buffer, const char *what) {
  const char *scope = scope_of(ir, buffer);
  size_t length = strlen(scope), end = strlen(what);
  return length > end && !strcmp(scope + length - end, what) && lower_memory_of(ir, buffer) == LOWER_BLOCK;
}

/* The bytes of a row of so many elements, where it is an even number of pieces; else 0. */
static int64_t even_row(const struct tir *ir, tir_buffer buffer, tir_expr elements) {
  int element = tir_type_bits(tir_buffer_at(ir, buffer)->type) / 8;
  int64_t row = tir_is_int(ir, elements) ? tir_at(ir, elements)->imm * element : 0;
  return element >= 1 && row > 0 && row % (2 * PIECE) == 0 ? row : 0;
}

void lower_spread_rows(struct tir *ir, tir_buffer buffer, tir_expr *shape, uint32_t rank) {
  if (rank < 2 || !is_asked(ir, buffer, TIR_SWIZZLE)) return;
  tir_expr *last = &shape[rank - 1];
  int64_t row = even_row(ir, buffer, *last), element = tir_type_bits(tir_buffer_at(ir, buffer)->type) / 8;
  if ((row & (row - 1)) != 0) *last = tir_int(ir, tir_type_of(ir, *last), (row + PIECE) / element);
}

static void name_rows(struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  if (n->rank < 2 || n->strides.count) return;
  int64_t row = even_row(ir, buffer, ir->operands.at[n->shape + n->rank - 1]);
  if (!row || (row & (row - 1)) != 0) return;
  char scope[64];
  snprintf(scope, sizeof scope, "shared%s.%lld", TIR_SWIZZLE, (long long)row);
  tir_symbol symbol = tir_symbol_of(ir, scope);
  tir_buffer_at(ir, buffer)->scope = symbol;
}

/* Panels have a multiple of eight rows: the exchange is the same in each. */
static void name_panels(struct tir *ir, tir_buffer buffer) {
  const struct tir_buffer_node *n = tir_buffer_at(ir, buffer);
  if (n->rank < 2 || n->strides.count) return;
  int64_t row = even_row(ir, buffer, ir->operands.at[n->shape + n->rank - 1]);
  int64_t rows = row ? (int64_t)tir_allocation_bytes(ir, buffer) / row : 0;
  if (!lower_panel_of(row) || rows < 1 || rows % 8) return;
  char scope[64];
  snprintf(scope, sizeof scope, "shared%s.%lld.%lld", TIR_PANELS, (long long)row, (long long)rows);
  tir_symbol symbol = tir_symbol_of(ir, scope);
  tir_buffer_at(ir, buffer)->scope = symbol;
}

bool lower_swizzle(struct lowering *low) {
  struct tir *ir = low->ir;
  for (tir_stmt s = low->body; s; s = tir_next(ir, s, low->body)) {
    if (!tir_is(ir, s, TIR_ALLOC)) continue;
    tir_buffer buffer = tir_stmt_at(ir, s)->alloc.buffer;
    if (is_asked(ir, buffer, TIR_SWIZZLE)) name_rows(ir, buffer);
    if (is_asked(ir, buffer, TIR_PANELS)) name_panels(ir, buffer);
  }
  return true;
}

/* Set scope: a buffer that a block allocates is kept in another storage scope.
 *
 * Requires: the block has a write region of this number; the storage scope is known; a block allocates the buffer. A
 *           buffer that is in the scope already may be any.
 * After:    the buffer, and what blocks match of it, is in the scope, and named after it.
 * Forward:  nothing. */
#include "buffer.h"
#include "cache_stage.h"

#include <string.h>

static bool check_set_scope(struct tir *ir, tir_block block, uint32_t index, const char *scope, tir_buffer *buffer,
                            ms_error *err) {
  if (!tir_check_buffer_of(ir, block, index, true, buffer, err)) return false;
  if (!strcmp(tir_text(ir, tir_buffer_at(ir, *buffer)->scope), scope)) return true;
  return tir_check_storage_scope(scope, err) && tir_check_allocated(ir, block, *buffer, err);
}

static void edit_set_scope(struct tir *ir, tir_buffer buffer, tir_symbol scope) {
  if (tir_buffer_at(ir, buffer)->scope == scope) return;
  tir_symbol name = tir_symbol_format(ir, "%s_%s", tir_buffer_name(ir, buffer), tir_text(ir, scope));
  tir_buffer_at(ir, buffer)->scope = scope;
  tir_buffer_at(ir, buffer)->name = name;
  uint32_t lists[] = {tir_buffer_at(ir, buffer)->readers, tir_buffer_at(ir, buffer)->writers};
  for (int list = 0; list < 2; list++)
    for (uint32_t u = lists[list]; u; u = ir->uses.at[u].next) {
      struct tir_span matches = tir_block_at(ir, ir->uses.at[u].block)->matches;
      for (uint32_t i = matches.first; i < matches.first + matches.count; i++)
        if (ir->matches.at[i].source.buffer == buffer) edit_set_scope(ir, ir->matches.at[i].buffer, scope);
    }
}

bool tir_set_scope(struct tir *ir, tir_block block, uint32_t buffer_index, const char *scope, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  tir_buffer buffer;
  if (!check_set_scope(ir, block, buffer_index, scope, &buffer, err)) return false;
  edit_set_scope(ir, buffer, tir_symbol_of(ir, scope));
  return true;
}

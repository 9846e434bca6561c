/* Look-ups: a block by name, and blocks by their relation to others. Nothing changes.
 *
 * Requires: get block: one block of the name in the function. Producers, consumers: the block is no root.
 * Gives:    child blocks, consumers and output blocks in order of text; producers in the order of the regions that the
 *           block reads, then writes, and for each region in order of text. */
#include "tir/analysis/analysis.h"

/* The function around a block; TIR_NONE where the block stands in an init, which no look-up sees. */
static tir_func func_of_scope(const struct tir *ir, tir_block b) {
  for (tir_stmt s = b;; s = tir_stmt_at(ir, s)->parent) {
    const struct tir_stmt_node *n = tir_stmt_at(ir, s);
    if (!n->parent) return n->kind == TIR_FUNCTION ? n->function.func : TIR_NONE;
    if (n->list == TIR_INIT && tir_is(ir, n->parent, TIR_BLOCK)) return TIR_NONE;
  }
}

/* Names some blocks that there are: a text within `size`. */
static const char *name_blocks(const struct tir *ir, tir_func f, char *out, size_t size) {
  enum { MOST_NAMED = 12 };
  tir_stmt top = ir->funcs.at[f].body;
  size_t length = 0;
  int named = 0;
  *out = 0;
  for (tir_stmt s = tir_next(ir, top, top); s && named <= MOST_NAMED && length < size; s = tir_next(ir, s, top)) {
    if (!tir_is(ir, s, TIR_BLOCK) || func_of_scope(ir, s) != f || !tir_parent_block(ir, s)) continue;
    const char *name = named == MOST_NAMED ? "…" : tir_block_name(ir, s);
    length += (size_t)snprintf(out + length, size - length, "%s%.60s", named++ ? ", " : "", name);
  }
  return named ? out : "none";
}

bool tir_get_block(struct tir *ir, const char *name, const char *func, tir_block *out, ms_error *err) {
  assert(name && out);
  if (!func) func = "main";
  tir_func f = tir_find_func(ir, func);
  if (!f) return tir_refuse(ir, err, MS_FUNCTION_NOT_FOUND, TIR_NONE, "the module has no function `%s`", func);
  tir_symbol symbol = tir_find_symbol(ir, name);
  tir_block found = TIR_NONE;
  uint32_t count = 0;
  if (symbol)
    for (tir_block b = ir->symbols.at[symbol].first_block; b; b = tir_block_at(ir, b)->next_same_name) {
      if (func_of_scope(ir, b) != f) continue;
      found = b;
      count++;
    }
  if (!count) {
    char names[900];
    bool wordy = err && !err->brief;
    return tir_refuse(ir, err, MS_BLOCK_NOT_FOUND, TIR_NONE, "function `%s` has no block `%s`; its blocks: %s", func,
                      name, wordy ? name_blocks(ir, f, names, sizeof names) : "");
  }
  if (count > 1)
    return tir_refuse(ir, err, MS_BLOCK_NOT_UNIQUE, TIR_NONE, "function `%s` has %u blocks `%s`", func, count, name);
  *out = found;
  return true;
}

bool tir_get_child_blocks(struct tir *ir, tir_stmt of, tir_block *out, uint32_t most, uint32_t *count, ms_error *err) {
  (void)err;
  *count = tir_child_blocks(ir, of, out, most);
  return true;
}

static bool check_not_root(const struct tir *ir, tir_block block, ms_error *err) {
  if (tir_parent_block(ir, block)) return true;
  return tir_refuse(ir, err, MS_ROOT_BLOCK, TIR_NONE, "block `%s` is a root", tir_block_name(ir, block));
}

bool tir_get_producers(struct tir *ir, tir_block block, tir_block *out, uint32_t most, uint32_t *count, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  if (!check_not_root(ir, block, err)) return false;
  *count = tir_producers(ir, block, out, most);
  return true;
}

bool tir_get_consumers(struct tir *ir, tir_block block, tir_block *out, uint32_t most, uint32_t *count, ms_error *err) {
  assert(tir_is(ir, block, TIR_BLOCK));
  if (!check_not_root(ir, block, err)) return false;
  *count = tir_consumers(ir, block, out, most);
  return true;
}

/* All blocks below the scope, however deep, that write what the scope directly around them does not allocate. */
bool tir_get_output_blocks(struct tir *ir, tir_block scope, tir_block *out, uint32_t most, uint32_t *count,
                           ms_error *err) {
  assert(tir_is(ir, scope, TIR_BLOCK));
  (void)err;
  *count = 0;
  for (tir_stmt s = tir_next(ir, scope, scope); s; s = tir_next(ir, s, scope)) {
    if (!tir_is(ir, s, TIR_BLOCK)) continue;
    tir_block around = tir_scope_of(ir, s);
    if (!around || !tir_is_output_block(ir, s, around)) continue;
    if (*count < most) out[*count] = s;
    ++*count;
  }
  return true;
}

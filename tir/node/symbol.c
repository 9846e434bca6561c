/* Interned strings, and names made of others. */
#include "arena.h"
#include "slots.h"

#include <stdarg.h>
#include <string.h>

#include <xxhash.h>

static uint32_t slot_of(const struct tir *ir, const char *text, size_t length, uint32_t hash) {
  uint32_t mask = ir->symbol_slots.count - 1;
  for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
    tir_symbol s = ir->symbol_slots.at[i];
    if (!s) return i;
    const struct tir_symbol_node *node = &ir->symbols.at[s];
    if (node->hash == hash && node->length == length && !memcmp(ir->text.at + node->offset, text, length)) return i;
  }
}

static inline uint32_t hash_of(const struct tir *ir, uint32_t s) { return ir->symbols.at[s].hash; }

static void enlarge_slots(struct tir *ir) {
  tir_grow_symbol_slots(ir, ir->symbol_slots.count);
  slots_fill(ir, ir->symbol_slots.at, ir->symbol_slots.count, ir->symbols.count, hash_of);
}

tir_symbol tir_symbol_n(struct tir *ir, const char *text, size_t length) {
  assert(text || !length);
  assert(length < UINT32_MAX / 2);
  uint32_t hash = (uint32_t)XXH3_64bits(text, length);
  uint32_t slot = slot_of(ir, text, length, hash);
  if (ir->symbol_slots.at[slot]) return ir->symbol_slots.at[slot];
  uint32_t offset = tir_grow_text(ir, (uint32_t)length + 1);
  memcpy(ir->text.at + offset, text, length);
  ir->text.at[offset + length] = 0;
  tir_symbol s = tir_grow_symbols(ir, 1);
  ir->symbols.at[s] = (struct tir_symbol_node){.offset = offset, .length = (uint32_t)length, .hash = hash};
  tir_classify_scope(ir->text.at + offset, &ir->symbols.at[s]);
  ir->symbol_slots.at[slot] = s;
  if (ir->symbols.count * 2 > ir->symbol_slots.count) enlarge_slots(ir);
  return s;
}

tir_symbol tir_symbol_of(struct tir *ir, const char *text) { return tir_symbol_n(ir, text, strlen(text)); }

tir_symbol tir_find_symbol(const struct tir *ir, const char *text) {
  size_t length = strlen(text);
  return ir->symbol_slots.at[slot_of(ir, text, length, (uint32_t)XXH3_64bits(text, length))];
}

tir_symbol tir_symbol_format(struct tir *ir, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  assert(length >= 0);
  /* A name past a kilobyte is cut: names that long come only from programs that nest derivations without end. */
  if ((size_t)length >= sizeof text) length = sizeof text - 1;
  return tir_symbol_n(ir, text, (size_t)length);
}

tir_symbol tir_symbol_suffix(struct tir *ir, tir_symbol base, const char *suffix) {
  char text[1024];
  size_t length = ir->symbols.at[base].length, more = strlen(suffix);
  assert(more < sizeof text);
  if (length > sizeof text - more) length = sizeof text - more; /* cut, as above */
  memcpy(text, tir_text(ir, base), length);
  memcpy(text + length, suffix, more);
  return tir_symbol_n(ir, text, length + more);
}

void tir_unintern_symbols(struct tir *ir, uint32_t mark) {
  slots_empty(ir, ir->symbol_slots.at, ir->symbol_slots.count, ir->symbols.count, mark, hash_of);
}

/* A name derived this often from others keeps its last form: rendering stays shallow, and the printer keeps names
 * apart. */
enum { MOST_DERIVATIONS = 200 };

static tir_name new_name(struct tir *ir, enum tir_name_kind kind, uint32_t a, uint32_t b) {
  uint32_t depth = 0;
  if (kind > TIR_NAME_ORDINAL) depth = ir->names.at[a].depth + 1u;
  if (kind == TIR_NAME_JOIN && ir->names.at[b].depth >= depth) depth = ir->names.at[b].depth + 1u;
  if (depth > MOST_DERIVATIONS) return a;
  tir_name name = tir_grow_names(ir, 1);
  ir->names.at[name] = (struct tir_name_node){(uint16_t)kind, (uint16_t)depth, a, b};
  return name;
}

tir_name tir_name_of(struct tir *ir, const char *text) {
  return new_name(ir, TIR_NAME_TEXT, tir_symbol_of(ir, text), 0);
}
tir_name tir_name_ordinal(struct tir *ir, tir_symbol stem, uint32_t number) {
  return new_name(ir, TIR_NAME_ORDINAL, stem, number);
}
tir_name tir_name_number(struct tir *ir, tir_name base, uint32_t number) {
  MS_CHECK(base);
  return new_name(ir, TIR_NAME_NUMBER, base, number);
}
tir_name tir_name_join(struct tir *ir, tir_name a, tir_name b) { return new_name(ir, TIR_NAME_JOIN, a, b); }
tir_name tir_name_suffix(struct tir *ir, tir_name base, const char *suffix) {
  return new_name(ir, TIR_NAME_SUFFIX, base, tir_symbol_of(ir, suffix));
}
tir_name tir_name_prefix(struct tir *ir, const char *prefix, tir_name base) {
  return new_name(ir, TIR_NAME_PREFIX, base, tir_symbol_of(ir, prefix));
}

struct rendering {
  char *out;
  size_t size, length;
};

static void put(struct rendering *r, const char *text, size_t length) {
  for (size_t i = 0; i < length; i++, r->length++)
    if (r->length + 1 < r->size) r->out[r->length] = text[i];
}

static void put_number(const char *format, uint32_t number, struct rendering *r) {
  char text[16];
  put(r, text, (size_t)snprintf(text, sizeof text, format, number));
}

static void render(const struct tir *ir, tir_name name, struct rendering *r) {
  const struct tir_name_node *node = &ir->names.at[name];
  if (r->length >= r->size) return; /* full: deep derivations stop here */
  if (node->kind <= TIR_NAME_ORDINAL) {
    put(r, tir_text(ir, node->a), ir->symbols.at[node->a].length);
    if (node->kind == TIR_NAME_ORDINAL) put_number("%u", node->b, r);
    return;
  }
  if (node->kind == TIR_NAME_PREFIX) put(r, tir_text(ir, node->b), ir->symbols.at[node->b].length);
  render(ir, node->a, r);
  if (node->kind == TIR_NAME_PREFIX) return;
  if (node->kind == TIR_NAME_NUMBER) {
    put_number("_%u", node->b, r);
  } else if (node->kind == TIR_NAME_SUFFIX) {
    put(r, tir_text(ir, node->b), ir->symbols.at[node->b].length);
  } else {
    put(r, "_", 1);
    render(ir, node->b, r);
  }
}

size_t tir_name_render(const struct tir *ir, tir_name name, char *out, size_t size) {
  assert(size > 0);
  struct rendering r = {out, size, 0};
  render(ir, name, &r);
  if (r.length >= size) r.length = size - 1;
  out[r.length] = 0;
  return r.length;
}

tir_symbol tir_scope_named(struct tir *ir, enum tir_memory_scope scope) {
  return tir_symbol_of(ir, tir_memory_scope_name(scope));
}

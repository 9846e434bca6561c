/* Names of variables and buffers in printed text: each unique among those that are in use at its place. */
#include "printer.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ---- */

void tir_put_n(struct tir_text *t, const char *text, size_t length) {
  assert(text || !length);
  if (t->count + length + 1 > t->capacity) {
    t->capacity = 2 * (t->count + length + 64);
    t->at = realloc(t->at, t->capacity);
    if (!t->at) abort();
  }
  memcpy(t->at + t->count, text, length);
  t->count += length;
  t->at[t->count] = 0;
}

void tir_put(struct tir_text *t, const char *text) { tir_put_n(t, text, strlen(text)); }

void tir_putf(struct tir_text *t, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  assert(length >= 0 && (size_t)length < sizeof text);
  tir_put_n(t, text, (size_t)length);
}

/* ---- The table of names in use ---- */

static uint32_t hash_of(const char *text) {
  uint32_t h = 2166136261u;
  for (; *text; text++) h = (h ^ (unsigned char)*text) * 16777619u;
  return h;
}

static const char *text_at(const struct tir_printer *p, size_t offset) { return p->names.at + offset; }

static void enlarge(struct tir_printer *p) {
  /* Slots move, and the scope names them by index: they are looked up again by their text. */
  struct tir_used_name *old = p->used;
  uint32_t capacity = p->used_capacity;
  uint32_t *moved = malloc((capacity + 1) * sizeof *moved);
  p->used_capacity = capacity ? capacity * 2 : 128;
  p->used = calloc(p->used_capacity, sizeof *p->used);
  if (!p->used || !moved) abort();
  for (uint32_t i = 0; i < capacity; i++) {
    if (!old[i].text) continue;
    uint32_t slot = old[i].hash & (p->used_capacity - 1);
    while (p->used[slot].text) slot = (slot + 1) & (p->used_capacity - 1);
    p->used[slot] = old[i];
    moved[i] = slot;
  }
  for (uint32_t i = 0; i < p->scope_count; i++) {
    p->scope[i].slot = moved[p->scope[i].slot];
    p->scope[i].base = moved[p->scope[i].base];
  }
  free(moved);
  free(old);
}

/* The slot of a name; made if it has none. Offsets of text are kept plus 1: 0 is an empty slot. */
static uint32_t slot_of(struct tir_printer *p, const char *text) {
  uint32_t hash = hash_of(text);
  if (2 * (p->used_count + 1) > p->used_capacity) enlarge(p);
  uint32_t slot = hash & (p->used_capacity - 1);
  for (; p->used[slot].text; slot = (slot + 1) & (p->used_capacity - 1))
    if (p->used[slot].hash == hash && !strcmp(text_at(p, p->used[slot].text - 1), text)) return slot;
  p->used[slot] = (struct tir_used_name){p->names.count + 1, hash, 0, 1};
  tir_put_n(&p->names, text, strlen(text) + 1);
  p->used_count++;
  return slot;
}

/* ---- Giving names ---- */

/* What Python or TVMScript gives a meaning of its own. */
static const char *const reserved[] = {
    "T",       "Module", "cls",   "range",  "True",     "False",  "None",  "and",  "as",     "assert",
    "async",   "await",  "break", "class",  "continue", "def",    "del",   "elif", "else",   "except",
    "finally", "for",    "from",  "global", "if",       "import", "in",    "is",   "lambda", "nonlocal",
    "not",     "or",     "pass",  "raise",  "return",   "try",    "while", "with", "yield"};

void tir_printer_start(struct tir_printer *p, const struct tir *ir) {
  *p = (struct tir_printer){.ir = ir};
  p->var_names = calloc(ir->vars.count + 1, sizeof(uint32_t));
  p->buffer_names = calloc(ir->buffers.count + 1, sizeof(uint32_t));
  if (!p->var_names || !p->buffer_names) abort();
  tir_put(&p->line, "");
  tir_put(&p->out, "");
  for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
    uint32_t slot = slot_of(p, reserved[i]);
    p->used[slot].live = 1;
  }
}

void tir_printer_free(struct tir_printer *p) {
  free(p->out.at);
  free(p->line.at);
  free(p->names.at);
  free(p->var_names);
  free(p->buffer_names);
  free(p->used);
  free(p->scope);
  free(p->pending);
}

/* Makes an identifier of any text. */
static void sanitize(char *text, const char *fallback, size_t size) {
  if (!*text) snprintf(text, size, "%s", fallback);
  for (char *c = text; *c; c++) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
    bool digit = *c >= '0' && *c <= '9' && c != text;
    if (!letter && !digit) *c = '_';
  }
}

static uint32_t give(struct tir_printer *p, char *wanted, uint32_t *owner) {
  assert(*wanted);
  uint32_t base = slot_of(p, wanted), slot = base, number = 0;
  if (p->used[slot].live) {
    char numbered[300];
    for (number = p->used[base].next;; number++) {
      snprintf(numbered, sizeof numbered, "%.280s_%u", wanted, number);
      slot = slot_of(p, numbered);
      base = slot_of(p, wanted); /* the table may have grown */
      slot = slot_of(p, numbered);
      if (!p->used[slot].live) break;
    }
    p->used[base].next = number + 1;
  }
  p->used[slot].live = 1;
  if (p->scope_count == p->scope_capacity)
    p->scope = tir_enlarge(p->scope, &p->scope_capacity, p->scope_count + 1ull, sizeof *p->scope);
  p->scope[p->scope_count++] = (struct tir_name_scope_entry){slot, base, number, owner};
  return *owner = (uint32_t)p->used[slot].text; /* already the offset plus 1 */
}

uint32_t tir_printer_open(const struct tir_printer *p) { return p->scope_count; }

void tir_printer_close(struct tir_printer *p, uint32_t mark) {
  while (p->scope_count > mark) {
    struct tir_name_scope_entry *e = &p->scope[--p->scope_count];
    p->used[e->slot].live = 0;
    if (e->number && e->number < p->used[e->base].next) p->used[e->base].next = e->number;
    *e->owner = 0;
  }
}

const char *tir_name_var(struct tir_printer *p, tir_var v) {
  assert(v && v < p->ir->vars.count);
  char wanted[280];
  tir_name_render(p->ir, p->ir->vars.at[v].name, wanted, sizeof wanted);
  sanitize(wanted, "v", sizeof wanted);
  return text_at(p, give(p, wanted, &p->var_names[v]) - 1);
}

const char *tir_name_buffer(struct tir_printer *p, tir_buffer b) {
  assert(tir_is_buffer(p->ir, b));
  char wanted[280];
  snprintf(wanted, sizeof wanted, "%s", tir_text(p->ir, p->ir->buffers.at[b].name));
  sanitize(wanted, "buffer", sizeof wanted);
  return text_at(p, give(p, wanted, &p->buffer_names[b]) - 1);
}

bool tir_has_name(const struct tir_printer *p, tir_var v) { return p->var_names[v] != 0; }

const char *tir_var_name(struct tir_printer *p, tir_var v) {
  assert(v && v < p->ir->vars.count);
  if (p->var_names[v]) return text_at(p, p->var_names[v] - 1);
  const char *name = tir_name_var(p, v);
  if (p->fragment) return name;
  if (p->pending_count == p->pending_capacity)
    p->pending = tir_enlarge(p->pending, &p->pending_capacity, p->pending_count + 1ull, sizeof *p->pending);
  p->pending[p->pending_count++] = v;
  return text_at(p, p->var_names[v] - 1);
}

const char *tir_printed_buffer(struct tir_printer *p, tir_buffer b) {
  assert(tir_is_buffer(p->ir, b));
  if (p->buffer_names[b]) return text_at(p, p->buffer_names[b] - 1);
  return tir_name_buffer(p, b);
}

void tir_alias_var(struct tir_printer *p, tir_var v, const char *text) {
  if (p->scope_count == p->scope_capacity)
    p->scope = tir_enlarge(p->scope, &p->scope_capacity, p->scope_count + 1ull, sizeof *p->scope);
  uint32_t slot = slot_of(p, text); /* with its dot it is no name that could be given */
  p->var_names[v] = (uint32_t)p->used[slot].text;
  p->scope[p->scope_count++] = (struct tir_name_scope_entry){slot, slot, 0, &p->var_names[v]};
}

/* ---- Lines ---- */

static void put_indent(struct tir_printer *p) {
  for (uint32_t i = 0; i < p->indent; i++) tir_put_n(&p->out, "    ", 4);
}

void tir_flush_line(struct tir_printer *p) {
  for (uint32_t i = 0; i < p->pending_count; i++) {
    char type[24];
    put_indent(p);
    tir_put(&p->out, tir_var_name(p, p->pending[i]));
    tir_put(&p->out, " = T.");
    tir_put(&p->out, tir_type_text(p->ir->vars.at[p->pending[i]].type, type));
    tir_put(&p->out, "()\n");
  }
  p->pending_count = 0;
  put_indent(p);
  tir_put_n(&p->out, p->line.at, p->line.count);
  tir_put_n(&p->out, "\n", 1);
  p->line.count = 0;
  p->line.at[0] = 0;
}

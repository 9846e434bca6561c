/* Facts of a record, as bytes: a name and its zero, a letter for the kind of value, then a number's eight bytes, a
 * boolean's one, or a text and its zero. */
#include "db/file/store.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char LETTERS[] = {[DB_NUMBER] = 'n', [DB_BOOLEAN] = 'b', [DB_TEXT] = 't'};

static uint64_t bits_of(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

size_t db_fact_bytes(const struct db_fact *f) {
  size_t value = f->kind == DB_TEXT ? strlen(f->text) + 1 : f->kind == DB_BOOLEAN ? 1 : 8;
  return strlen(f->name) + 2 + value;
}

void db_write_fact(const struct db_fact *f, uint8_t *out) {
  size_t name = strlen(f->name) + 1;
  memcpy(out, f->name, name);
  assert(f->kind >= 0 && (size_t)f->kind < sizeof LETTERS && LETTERS[f->kind]);
  out[name] = (uint8_t)LETTERS[f->kind];
  out += name + 1;
  if (f->kind == DB_TEXT) memcpy(out, f->text, strlen(f->text) + 1);
  if (f->kind == DB_BOOLEAN) out[0] = f->number != 0;
  if (f->kind == DB_NUMBER)
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(bits_of(f->number) >> 8 * i);
}

void db_append_fact(struct db_record *r, const struct db_fact *fact) {
  assert(fact->name && (fact->kind != DB_TEXT || fact->text));
  if (fact->kind == DB_NUMBER && !isfinite(fact->number)) return;
  size_t size = db_fact_bytes(fact);
  uint8_t *all = realloc((void *)r->facts, r->fact_bytes + size);
  if (!all) abort();
  db_write_fact(fact, all + r->fact_bytes);
  r->facts = all;
  r->fact_bytes += size;
}

/* A text that ends before `end`; NULL: there is none. */
static const char *text_at(const uint8_t *at, const uint8_t *end) {
  return at < end && memchr(at, 0, (size_t)(end - at)) ? (const char *)at : NULL;
}

static bool read_value(const uint8_t *at, const uint8_t *end, struct db_fact *out, size_t *size) {
  size_t left = (size_t)(end - at);
  uint64_t bits = 0;
  switch (out->kind) {
  case DB_TEXT:
    out->text = text_at(at, end);
    *size = out->text ? strlen(out->text) + 1 : 0;
    return out->text != NULL;
  case DB_BOOLEAN:
    *size = 1;
    if (left < 1 || *at > 1) return false;
    out->number = *at;
    return true;
  default:
    *size = 8;
    for (int i = 0; i < 8 && left >= 8; i++) bits |= (uint64_t)at[i] << 8 * i;
    memcpy(&out->number, &bits, sizeof bits);
    return left >= 8 && isfinite(out->number);
  }
}

bool db_next_fact(const struct db_record *r, size_t *at, struct db_fact *out) {
  if (*at >= r->fact_bytes) return false;
  const uint8_t *all = r->facts, *end = all + r->fact_bytes;
  const char *name = text_at(all + *at, end);
  const uint8_t *kind = name ? (const uint8_t *)name + strlen(name) + 1 : end;
  const char *letter = kind < end ? memchr(LETTERS, *kind, sizeof LETTERS) : NULL;
  size_t size;
  if (!letter) return false;
  *out = (struct db_fact){.name = name};
  out->kind = (int)(letter - LETTERS);
  if (!read_value(kind + 1, end, out, &size)) return false;
  *at = (size_t)(kind + 1 - all) + size;
  assert(*at <= r->fact_bytes);
  return true;
}

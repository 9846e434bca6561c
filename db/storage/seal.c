/* Checksums: what is kept with its key begins with a seal, so that a bit that changed on the disk is noticed.
 *
 *   1, "ms", kind    4 bytes: no name, no record and no text of before seals begins so
 *   checksum         8 bytes, little-endian: XXH3-64 of the value, seeded with that of the key
 *   the value
 *
 * Entries of before there were seals are read as they are. */
#include "seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

enum { MARK = 4, SEAL = MARK + 8 };

static void make_seal(char kind, const MDB_val *key, const void *value, size_t size, uint8_t out[SEAL]) {
  assert(value || !size);
  const uint8_t mark[MARK] = {1, 'm', 's', (uint8_t)kind};
  uint64_t sum = XXH3_64bits_withSeed(value, size, XXH3_64bits(key->mv_data, key->mv_size));
  memcpy(out, mark, MARK);
  for (int i = 0; i < 8; i++) out[MARK + i] = (uint8_t)(sum >> 8 * i);
}

int db_put_sealed(MDB_txn *txn, MDB_dbi table, char kind, const db_id *id, const void *value, size_t size) {
  return db_put_sealed_at(txn, table, kind, (MDB_val){16, (void *)id->bytes}, value, size);
}

int db_put_sealed_at(MDB_txn *txn, MDB_dbi table, char kind, MDB_val key, const void *value, size_t size) {
  MDB_val sealed = {SEAL + size, NULL};
  int code = mdb_put(txn, table, &key, &sealed, MDB_RESERVE);
  if (code) return code;
  make_seal(kind, &key, value, size, sealed.mv_data);
  memcpy((uint8_t *)sealed.mv_data + SEAL, value, size);
  return 0;
}

enum db_seal db_unseal(char kind, const MDB_val *key, MDB_val *value) {
  assert(key && value);
  const uint8_t *bytes = value->mv_data;
  uint8_t seal[SEAL];
  if (value->mv_size < MARK || bytes[0] != 1 || bytes[1] != 'm' || bytes[2] != 's' || bytes[3] != kind)
    return DB_UNSEALED;
  if (value->mv_size < SEAL) return DB_BROKEN;
  *value = (MDB_val){value->mv_size - SEAL, (void *)(bytes + SEAL)};
  make_seal(kind, key, value->mv_data, value->mv_size, seal);
  return memcmp(seal, bytes, SEAL) != 0 ? DB_BROKEN : DB_SEALED;
}

/* ---- What is damaged is named once, a line a walk ---- */

db_id db_id_of_key(MDB_val key) {
  db_id id = {{0}};
  memcpy(id.bytes, key.mv_data, key.mv_size < sizeof id.bytes ? key.mv_size : sizeof id.bytes);
  return id;
}

void db_note_damage(struct db *db, char kind, MDB_val key) {
  struct db_damage *d = &db->damage;
  struct db_damaged one = {.kind = kind, .id = db_id_of_key(key)};
  for (size_t i = 0; i < d->count; i++)
    if (d->at[i].kind == kind && !memcmp(&d->at[i].id, &one.id, sizeof one.id)) return;
  d->at = realloc(d->at, (d->count + 1) * sizeof *d->at);
  if (!d->at) abort();
  d->at[d->count++] = one;
}

const char *db_kind_name(char kind) {
  switch (kind) {
  case DB_RECORD: return "record";
  case DB_WORKLOAD: return "workload";
  case DB_CONTEXT: return "context";
  case DB_SKETCH: return "sketch";
  default: return "tensor intrinsic";
  }
}

void db_report_damage(struct db *db) {
  enum { SHOWN = 4 };
  struct db_damage *d = &db->damage;
  char *line = NULL, id[DB_ID_TEXT];
  size_t size;
  if (d->reported == d->count || !d->report) return;
  FILE *out = open_memstream(&line, &size);
  if (!out) abort();
  fprintf(out, "%s: damaged, and left out:", db->path);
  for (size_t i = d->reported; i < d->count && i < d->reported + SHOWN; i++) {
    db_id_text(&d->at[i].id, id);
    fprintf(out, "%s %s %.12s", i > d->reported ? "," : "", db_kind_name(d->at[i].kind), id);
  }
  if (d->count - d->reported > SHOWN) fprintf(out, " and %zu more", d->count - d->reported - SHOWN);
  fprintf(out, "; `msched db repair` drops what is damaged");
  fclose(out);
  d->reported = d->count;
  d->report(d->data, line);
  free(line);
}

void db_on_damage(struct db *db, db_damage_report *report, void *data) {
  db->damage.report = report;
  db->damage.data = data;
}

db_id db_content_id(const void *bytes, size_t length) {
  assert(bytes || !length);
  db_id id;
  XXH128_canonical_t hash;
  XXH128_canonicalFromHash(&hash, XXH3_128bits(bytes, length));
  memcpy(id.bytes, hash.digest, 16);
  return id;
}

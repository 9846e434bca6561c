/* Tensor intrinsics by content: what records name is here as it was when they were measured. */
#include "db/file/snapshot.h"
#include "db/storage/seal.h"

#include <stdlib.h>
#include <string.h>

/* ---- Putting ---- */

struct putting {
  db_id id;
  const char *text;
};

static int put_intrinsic(struct db *db, MDB_txn *txn, void *data) {
  struct putting *p = data;
  MDB_val old;
  int code;
  if (db_find_intrinsic(db, txn, &p->id, &old, &code)) return 0;
  return code != MDB_NOTFOUND ? code
                              : db_put_sealed(txn, db->intrinsics, DB_INTRINSIC, &p->id, p->text, strlen(p->text));
}

bool db_put_intrinsic(struct db *db, const char *text, db_id *out, ms_error *err) {
  struct putting p = {.id = db_content_id(text, strlen(text)), .text = text};
  *out = p.id;
  return db_write(db, put_intrinsic, &p, strlen(text), "keeping a tensor intrinsic", err);
}

bool db_names_intrinsic(const struct db_record *r, const char *name) {
  size_t at = 0;
  db_id id;
  const char *other;
  while (db_next_intrinsic(r, &at, &id, &other))
    if (!strcmp(name, other)) return true;
  return false;
}

void db_append_intrinsic(struct db_record *r, const db_id *id, const char *name) {
  assert(name && *name);
  size_t length = strlen(name) + 1;
  uint8_t *all = realloc((void *)r->intrinsics, r->intrinsic_bytes + 16 + length);
  if (!all) abort();
  memcpy(all + r->intrinsic_bytes, id->bytes, 16);
  memcpy(all + r->intrinsic_bytes + 16, name, length);
  r->intrinsics = all;
  r->intrinsic_bytes += 16 + length;
}

bool db_keep_intrinsics(struct db *db, const struct vm_trace *trace, const struct vm_intrinsics *table,
                        struct db_record *r, ms_error *err) {
  const char *name;
  db_id id;
  r->intrinsics = NULL;
  r->intrinsic_bytes = 0;
  for (uint32_t at = 0; (name = vm_next_intrinsic(trace, &at));) {
    char *text = db_names_intrinsic(r, name) ? NULL : vm_write_intrinsics(table, name);
    bool kept = !text || db_put_intrinsic(db, text, &id, err);
    if (text && kept) db_append_intrinsic(r, &id, name);
    free(text);
    if (!kept) return false;
  }
  return true;
}

/* ---- Finding ---- */

bool db_find_intrinsic(struct db *db, MDB_txn *txn, const db_id *id, MDB_val *text, int *code) {
  MDB_val key = {16, (void *)id->bytes};
  *code = db_get(db, txn, DB_INTRINSICS, &key, text);
  if (!*code && db_read_intrinsic_entry(key, text)) {
    db_note_damage(db, DB_INTRINSIC, key);
    *code = MDB_NOTFOUND;
  }
  return !*code;
}

static bool refuse_missing(struct db *db, const db_id *id, const char *name, ms_error *err) {
  char text[DB_ID_TEXT];
  db_id_text(id, text);
  return ms_fail(
      err, MS_STORE,
      "%s: the record's tensor intrinsic `%.100s` (%.12s) is not in the store; import it with the records of "
      "the store that has it (`msched db export`, `msched db import`)",
      db->path, name, text);
}

static struct vm_intrinsics *read_intrinsic(struct db *db, const db_id *id, const char *name, ms_error *err) {
  MDB_txn *txn;
  MDB_val value;
  int code;
  if (!db_begin_read(db, &txn, err)) return NULL;
  char *text = db_find_intrinsic(db, txn, id, &value, &code) ? strndup(value.mv_data, value.mv_size) : NULL;
  code = db_end_read(db, txn, code);
  db_report_damage(db);
  if (code == MDB_NOTFOUND)
    refuse_missing(db, id, name, err);
  else if (code)
    db_failed(db, code, "reading a tensor intrinsic", err);
  struct vm_intrinsics *made = text ? vm_read_intrinsics(text, db->path, err) : NULL;
  free(text);
  return made;
}

bool db_take_intrinsics(struct db *db, const struct db_record *r, struct vm_intrinsics *table, ms_error *err) {
  size_t at = 0;
  db_id id;
  const char *name;
  while (db_next_intrinsic(r, &at, &id, &name)) {
    struct vm_intrinsics *one = read_intrinsic(db, &id, name, err);
    bool added = one && vm_add_intrinsics(table, one, err);
    vm_intrinsics_free(one);
    if (!added) return false;
  }
  return true;
}

bool db_each_intrinsic(struct db *db, db_intrinsic_visit *visit, void *data, ms_error *err) {
  MDB_txn *txn;
  struct db_cursor cursor;
  MDB_val key, value;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = db_cursor_open(db, txn, DB_INTRINSICS, &cursor);
  bool go_on = true;
  for (int step = code; go_on && !step && !(step = db_cursor_next(&cursor, &key, &value));) {
    db_id id;
    if (db_read_intrinsic_entry(key, &value)) {
      db_note_damage(db, DB_INTRINSIC, key);
      continue;
    }
    memcpy(id.bytes, key.mv_data, 16);
    char *text = strndup(value.mv_data, value.mv_size);
    if (!text) abort();
    go_on = visit(data, &id, text);
    free(text);
  }
  if (!code) db_cursor_close(&cursor);
  code = db_end_read(db, txn, code);
  db_report_damage(db);
  return code ? db_failed(db, code, "reading tensor intrinsics", err) : true;
}

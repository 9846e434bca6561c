/* Outlines: what lists say of workloads, so that they need not read functions. A workload never changes, nor does its
 * outline; it is written in the same transaction.
 *
 *   "mwo1", operations of floats and of integers, bytes read and written (8 bytes each), and a text for each argument
 *
 * Where tir_count_work counts otherwise than before, the number of the form is another: outlines of another form are
 * left out, as those that are damaged are, and made again by db_compact. */
#include "outlines.h"

#include "db/bytes.h"
#include "db/file/snapshot.h"
#include "db/ids.h"
#include "seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char MAGIC[] = {'m', 'w', 'o', '1'};

/* ---- As bytes ---- */

/* "float32[8, 4]"; of a scalar its type. */
static void put_argument(struct byte_writer *w, const struct tir *ir, const struct tir_param *p) {
  char type[24], number[32];
  const struct tir_buffer_node *n = p->buffer ? tir_buffer_at(ir, p->buffer) : NULL;
  const char *text = tir_type_text(n ? n->type : ir->vars.at[p->var].type, type);
  bytes_put(w, text, strlen(text));
  if (n) bytes_put(w, "[", 1);
  for (uint32_t d = 0; n && d < n->rank; d++) {
    const struct tir_expr_node *e = tir_at(ir, tir_operands(ir, n->shape)[d]);
    int length =
        snprintf(number, sizeof number, "%s%lld", d ? ", " : "", e->kind == TIR_INT_IMM ? (long long)e->imm : -1LL);
    bytes_put(w, number, (size_t)length);
  }
  if (n) bytes_put(w, "]", 1);
  bytes_put(w, "", 1);
}

static struct byte_writer write_outline(const struct tir *ir, tir_func f) {
  struct byte_writer w = {0};
  struct tir_work work;
  double operations[2] = {0};
  struct tir_span params = ir->funcs.at[f].params;
  tir_count_work(ir, f, &work);
  for (int k = 0; k < TIR_WORK_KINDS; k++)
    operations[tir_work_is_of_floats((enum tir_work_kind)k) ? 0 : 1] += work.operations[k];
  bytes_put(&w, MAGIC, sizeof MAGIC);
  bytes_put_real(&w, operations[0]);
  bytes_put_real(&w, operations[1]);
  bytes_put_real(&w, work.read_bytes);
  bytes_put_real(&w, work.written_bytes);
  for (uint32_t i = 0; i < params.count; i++) put_argument(&w, ir, &ir->params.at[params.first + i]);
  return w;
}

/* Of a sealed entry. */
static bool is_of_this_form(MDB_val value) {
  return value.mv_size >= sizeof MAGIC && !memcmp(value.mv_data, MAGIC, sizeof MAGIC);
}

/* Whether an entry is one of this version, and sound; the value is without its seal then. */
static bool is_sound(MDB_val key, MDB_val *value) {
  return key.mv_size == sizeof(db_id) && db_unseal(DB_OUTLINE, &key, value) == DB_SEALED && is_of_this_form(*value);
}

/* ---- Keeping ---- */

int db_put_outline(struct db *db, MDB_txn *txn, const db_id *id, const struct tir *ir, tir_func f) {
  struct byte_writer w = write_outline(ir, f);
  MDB_val key = {sizeof *id, (void *)id->bytes}, value;
  int code = db_get(db, txn, DB_OUTLINES, &key, &value);
  bool same = !code && is_sound(key, &value) && value.mv_size == w.size && !memcmp(value.mv_data, w.at, w.size);
  if (!same && (!code || code == MDB_NOTFOUND)) code = db_put_sealed(txn, db->outlines, DB_OUTLINE, id, w.at, w.size);
  free(w.at);
  return code;
}

static struct tir *read_function(const char *text, size_t length, tir_func *f) {
  ms_error err = {.brief = true};
  struct tir *ir = tir_read(text, length, "workload", &err);
  *f = ir ? tir_find_func(ir, "main") : TIR_NONE;
  return ir;
}

int db_make_outline(struct db *db, MDB_txn *txn, const db_id *id, const char *text, size_t length) {
  tir_func f;
  struct tir *ir = read_function(text, length, &f);
  int code = f ? db_put_outline(db, txn, id, ir, f) : 0;
  tir_free(ir);
  return code;
}

static int make_one(struct db *db, MDB_txn *txn, void *data) {
  const db_id *id = data;
  struct db_workload_text w;
  MDB_val key = {sizeof *id, (void *)id->bytes}, value;
  int code = db_get(db, txn, DB_WORKLOADS, &key, &value);
  if (code) return code == MDB_NOTFOUND ? 0 : code;
  if (db_read_workload_entry(key, value, &w)) return 0;
  char *text = strndup(w.text, w.length); /* what is written may move it */
  if (!text) abort();
  code = db_make_outline(db, txn, id, text, strlen(text));
  free(text);
  return code;
}

static int list_lacking(struct db *db, MDB_txn *txn, struct db_ids *out) {
  struct db_cursor cursor;
  MDB_val key, value, outline;
  int code = db_cursor_open(db, txn, DB_WORKLOADS, &cursor);
  if (code) return code;
  while (!(code = db_cursor_next(&cursor, &key, &value))) {
    db_id id = db_id_of_key(key);
    int found = db_get(db, txn, DB_OUTLINES, &key, &outline);
    if (found && found != MDB_NOTFOUND) break;
    if (found || db_check_outline(db, txn, key, outline) || !is_sound(key, &outline)) db_add_id(out, &id);
  }
  db_cursor_close(&cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

bool db_make_outlines(struct db *db, ms_error *err) {
  struct db_ids ids = {0};
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = list_lacking(db, txn, &ids);
  code = db_end_read(db, txn, code);
  bool ok = code ? db_failed(db, code, "reading workloads", err) : !ids.count || db_begin_batch(db, err);
  for (size_t i = 0; ok && i < ids.count; i++) ok = db_write(db, make_one, &ids.at[i], 0, "outlining workloads", err);
  if (!code && ids.count) ok = db_end_batch(db, ok ? err : NULL) && ok;
  free(ids.at);
  return ok;
}

/* ---- Asking ---- */

/* Of a sound entry; false: a text of it does not end, or a number is none. */
static bool show(void *data, const db_id *id, MDB_val value, db_outline_visit *visit, bool *go_on) {
  struct byte_reader r = bytes_reader(value.mv_data, value.mv_size);
  struct db_outline o = {0};
  bytes_take(&r, sizeof MAGIC);
  o.floats = bytes_take_real(&r);
  o.integers = bytes_take_real(&r);
  o.read_bytes = bytes_take_real(&r);
  o.written_bytes = bytes_take_real(&r);
  const char *texts = (const char *)r.at, *end = (const char *)r.end;
  size_t count = 0;
  for (const char *c = texts; c < end; c++) count += !*c;
  if (r.bad || !(o.floats >= 0 && o.integers >= 0 && o.read_bytes >= 0 && o.written_bytes >= 0)) return false;
  if (texts < end && end[-1]) return false;
  const char **arguments = calloc(count + 1, sizeof *arguments);
  if (!arguments) abort();
  for (size_t i = 0; i < count; i++, texts += strlen(texts) + 1) arguments[i] = texts;
  o.arguments = arguments;
  *go_on = visit(data, id, &o);
  free(arguments);
  return true;
}

bool db_each_outline(struct db *db, db_outline_visit *visit, void *data, ms_error *err) {
  assert(visit);
  MDB_txn *txn;
  struct db_cursor cursor;
  bool go_on = true;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = db_cursor_open(db, txn, DB_OUTLINES, &cursor), step = code;
  for (MDB_val key, value; go_on && !step && !(step = db_cursor_next(&cursor, &key, &value));) {
    db_id id = db_id_of_key(key);
    if (is_sound(key, &value)) show(data, &id, value, visit, &go_on); /* else it has none */
  }
  if (!code) db_cursor_close(&cursor);
  code = db_end_read(db, txn, code);
  return code ? db_failed(db, code, "reading outlines", err) : true;
}

/* ---- Checking ---- */

const char *db_check_outline(struct db *db, MDB_txn *txn, MDB_val key, MDB_val value) {
  struct db_workload_text w;
  MDB_val text;
  tir_func f;
  if (key.mv_size != sizeof(db_id) || db_unseal(DB_OUTLINE, &key, &value) != DB_SEALED) return "its outline is damaged";
  if (db_get(db, txn, DB_WORKLOADS, &key, &text)) return "it has an outline, and is not there";
  if (!is_of_this_form(value) || db_read_workload_entry(key, text, &w)) return NULL; /* the latter is said of it */
  struct tir *ir = read_function(w.text, w.length, &f);
  struct byte_writer its = f ? write_outline(ir, f) : (struct byte_writer){0};
  bool same = !f || (its.size == value.mv_size && !memcmp(its.at, value.mv_data, its.size));
  free(its.at);
  tir_free(ir);
  return same ? NULL : "its outline says something else than its function";
}

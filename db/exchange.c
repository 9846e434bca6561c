/* The store as lines of JSON: workloads, tensor intrinsics, then records; traces as Lua text, which keeps draw ids. */
#include "bounds.h"
#include "db/ids.h"
#include "db/lines.h"
#include "db/storage/group.h"
#include "db/storage/seal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* ---- Export ---- */

struct writing {
  struct db *db;
  FILE *out;
  bool failed;
};

/* ASCII without control characters, so that a terminal shows it as it is. */
static void write_line(struct writing *w, json_t *object) {
  assert(object);
  char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
  json_decref(object);
  w->failed |= !text;
  for (const char *at = text, *end; at && *at; at = *end ? end + 1 : end) {
    end = at + strcspn(at, "\177");
    fwrite(at, 1, (size_t)(end - at), w->out);
    if (*end) fputs("\\u007f", w->out);
  }
  free(text);
  if (fputc('\n', w->out) == EOF || ferror(w->out)) w->failed = true;
}

/* JSON has no infinity: an end of an interval that is not known is null. */
static json_t *number_or_null(double x) { return isfinite(x) ? json_real(x) : json_null(); }

/* By name, or NULL where there are none. */
static json_t *intrinsics_of(const struct db_record *r) {
  json_t *all = r->intrinsic_bytes ? json_object() : NULL;
  size_t at = 0;
  db_id id;
  const char *name;
  char text[DB_ID_TEXT];
  while (db_next_intrinsic(r, &at, &id, &name)) {
    db_id_text(&id, text);
    json_object_set_new(all, name, json_string(text));
  }
  return all;
}

static json_t *json_of_number(double x) {
  return x == trunc(x) && fabs(x) < 1e15 ? json_integer((json_int_t)x) : json_real(x);
}

/* By name, or NULL where there are none. */
static json_t *facts_of(const struct db_record *r) {
  json_t *all = r->fact_bytes ? json_object() : NULL;
  size_t at = 0;
  struct db_fact f;
  while (db_next_fact(r, &at, &f))
    json_object_set_new(all, f.name,
                        f.kind == DB_TEXT      ? json_string(f.text)
                        : f.kind == DB_BOOLEAN ? json_boolean(f.number != 0)
                                               : json_of_number(f.number));
  return all;
}

static bool write_intrinsic(void *data, const db_id *id, const char *text) {
  struct writing *w = data;
  char name[DB_ID_TEXT];
  db_id_text(id, name);
  write_line(w, json_pack("{s:s, s:s}", "intrinsic", name, "sections", text));
  return !w->failed;
}

static bool write_record(void *data, const struct db_record *r) {
  struct writing *w = data;
  char id[DB_ID_TEXT], workload[DB_ID_TEXT], hash[20];
  struct vm_trace *trace = vm_read_binary(r->trace, r->trace_bytes, NULL);
  if (!trace) { /* a later version's */
    db_note_damage(w->db, DB_RECORD, (MDB_val){sizeof r->id.bytes, (void *)r->id.bytes});
    return true;
  }
  char *text = vm_write_lua(trace);
  vm_trace_free(trace);
  db_id_text(&r->id, id);
  db_id_text(&r->workload, workload);
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->module_hash);
  write_line(
      w,
      json_pack(
          "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:s, s:s, s:I, s:I, s:I, s:b, s:b, s:b, s:s, s:o*, s:o*}",
          "record", id, "workload", workload, "target", r->target, "module", hash, "status", db_status_names[r->status],
          "seconds", number_or_null(r->seconds), "low", number_or_null(r->low), "high", number_or_null(r->high), "runs",
          (json_int_t)r->runs, "reason", r->reason, "versions", r->versions, "seed", (json_int_t)r->seed, "candidate",
          (json_int_t)r->candidate, "when", (json_int_t)r->when, "unsafe", (int)r->unsafe, "busy", (int)r->busy,
          "pinned", (int)r->pinned, "trace", text, "intrinsics", intrinsics_of(r), "facts", facts_of(r)));
  free(text);
  return !w->failed;
}

/* One that cannot be read is left out, and said at the end. */
static bool write_workload(struct writing *w, const db_id *id) {
  struct tir *ir = db_get_workload(w->db, id, NULL);
  if (!ir) {
    db_note_damage(w->db, DB_WORKLOAD, (MDB_val){sizeof id->bytes, (void *)id->bytes});
    return true;
  }
  char text[DB_ID_TEXT], *script = tir_print(ir, TIR_NONE, 0);
  db_id_text(id, text);
  write_line(w, json_pack("{s:s, s:s}", "workload", text, "script", script ? script : ""));
  free(script);
  tir_free(ir);
  return !w->failed;
}

bool db_export_json(struct db *db, FILE *out, ms_error *err) {
  assert(out);
  struct writing w = {db, out, false};
  struct db_ids ids = {0};
  bool ok = db_each_workload(db, db_collect_id, &ids, err);
  for (size_t i = 0; ok && i < ids.count; i++) ok = write_workload(&w, &ids.at[i]);
  free(ids.at);
  if (ok) ok = db_each_intrinsic(db, write_intrinsic, &w, err);
  if (ok) ok = db_each_record(db, NULL, NULL, write_record, &w, err);
  errno = 0; /* what could not be written before, cannot be now */
  if (fflush(out) != 0 || w.failed)
    ok = ms_fail(err, MS_IO, "the export cannot be written: %s", strerror(errno ? errno : EIO));
  return ok;
}

/* ---- Import ---- */

struct importing {
  struct db *db;
  struct db_import *out;
  struct db_group *group; /* records that lines before held: put before anything else is */
  const char *file;
  size_t line, size; /* size: of the refusals */
  bool stopped;      /* the store is at fault: nothing more is read */
  bool found;        /* the workload of the record before: it is in the store, and reads */
  db_id workload;
  ms_error why;
};

static bool bad(struct importing *m, const char *what) { return ms_fail(&m->why, MS_BAD_RECORD, "%s", what); }

/* The store said no: that is no fault of the line's. */
static bool stop(struct importing *m) {
  m->stopped = true;
  return false;
}

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* What a field holds that is of another kind, in a few characters. */
static const char *kind_of(const json_t *x) {
  return json_is_string(x)    ? "a string"
         : json_is_number(x)  ? "a number"
         : json_is_null(x)    ? "null"
         : json_is_boolean(x) ? "true or false"
         : json_is_array(x)   ? "a list"
                              : "an object";
}

/* Whether the fields of a record that are no numbers are of their kinds, where they are there: older lines lack
 * some. */
static bool check_kinds(struct importing *m, const json_t *object) {
  static const struct {
    const char *key;
    json_type type, other; /* either */
    const char *kind;
  } fields[] = {
      {"workload", JSON_STRING, JSON_STRING, "a string"},   {"target", JSON_STRING, JSON_STRING, "a string"},
      {"status", JSON_STRING, JSON_STRING, "a string"},     {"reason", JSON_STRING, JSON_STRING, "a string"},
      {"versions", JSON_STRING, JSON_STRING, "a string"},   {"trace", JSON_STRING, JSON_STRING, "a string"},
      {"busy", JSON_TRUE, JSON_FALSE, "true or false"},     {"pinned", JSON_TRUE, JSON_FALSE, "true or false"},
      {"unsafe", JSON_TRUE, JSON_FALSE, "true or false"},   {"facts", JSON_OBJECT, JSON_OBJECT, "an object"},
      {"intrinsics", JSON_OBJECT, JSON_OBJECT, "an object"}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const json_t *x = json_object_get(object, fields[i].key);
    if (x && json_typeof(x) != fields[i].type && json_typeof(x) != fields[i].other)
      return ms_fail(&m->why, MS_BAD_RECORD, "`%s` must be %s, not %s", fields[i].key, fields[i].kind, kind_of(x));
  }
  return *text_of(object, "target") || bad(m, "`target` must name what the record was measured on");
}

static bool parse_id(const char *text, db_id *out) {
  static const char DIGITS[] = "0123456789abcdef0123456789ABCDEF";
  if (strlen(text) != 32) return false;
  *out = (db_id){{0}};
  for (int i = 0; i < 32; i++) {
    const char *digit = strchr(DIGITS, text[i]);
    if (!digit) return false;
    out->bytes[i / 2] = (uint8_t)(out->bytes[i / 2] << 4 | (digit - DIGITS) % 16);
  }
  return true;
}

static bool import_workload(struct importing *m, const json_t *object) {
  const char *script = text_of(object, "script");
  struct tir *ir = tir_read(script, strlen(script), "script", &m->why);
  if (!ir) return false;
  db_id id;
  tir_func f = tir_find_func(ir, "main");
  bool ok = f ? db_put_workload(m->db, ir, f, &id, &m->why) || stop(m)
              : bad(m, "a workload has one function, or one named main");
  tir_free(ir);
  return ok;
}

static bool import_intrinsic(struct importing *m, const json_t *object) {
  const char *text = text_of(object, "sections");
  struct vm_intrinsics *made = vm_read_intrinsics(text, "sections", &m->why);
  db_id id;
  vm_intrinsics_free(made);
  return made && (db_put_intrinsic(m->db, text, &id, &m->why) || stop(m));
}

static bool has_intrinsic(struct importing *m, const db_id *id) {
  MDB_txn *txn;
  MDB_val text;
  int code;
  if (!db_begin_read(m->db, &txn, &m->why)) return stop(m);
  bool found = db_find_intrinsic(m->db, txn, id, &text, &code);
  db_end_read(m->db, txn, code);
  return found;
}

/* Keeps the one that was given besides the file, if it is the one that the record names. */
static bool take_given(struct importing *m, const char *name, const db_id *id) {
  db_id put;
  char *text = vm_write_intrinsics(m->out->intrinsics, name);
  db_id given = db_content_id(text ? text : "", text ? strlen(text) : 0);
  bool same = text && !memcmp(&given, id, sizeof given);
  bool kept = same && (db_put_intrinsic(m->db, text, &put, &m->why) || stop(m));
  free(text);
  return kept;
}

/* Those that a record names must be there. What it holds is freed by the caller. */
static bool read_intrinsics(struct importing *m, json_t *object, struct db_record *r) {
  const char *name;
  json_t *text;
  json_object_foreach(json_object_get(object, "intrinsics"), name, text) {
    db_id id;
    if (!json_is_string(text) || !parse_id(json_string_value(text), &id))
      return bad(m, "`intrinsics` holds what is no id");
    if (!has_intrinsic(m, &id) && (m->stopped || !take_given(m, name, &id)))
      return m->stopped
                 ? false
                 : ms_fail(&m->why, MS_BAD_RECORD,
                           "the record's tensor intrinsic `%.100s` is neither in the file before it nor in the store, "
                           "nor is it among those of --intrinsics",
                           name);
    db_append_intrinsic(r, &id, name);
  }
  return true;
}

/* The caller frees what a record holds. Of a later version's facts those are taken that are known here. */
static void read_facts(json_t *object, struct db_record *r) {
  const char *name;
  json_t *value;
  json_object_foreach(json_object_get(object, "facts"), name, value) {
    struct db_fact fact = {.name = name, .number = json_number_value(value), .text = json_string_value(value)};
    if (json_is_boolean(value)) fact.number = json_is_true(value);
    fact.kind = json_is_string(value) ? DB_TEXT : json_is_boolean(value) ? DB_BOOLEAN : DB_NUMBER;
    if (json_is_string(value) || json_is_boolean(value) || json_is_number(value)) db_append_fact(r, &fact);
  }
}

/* Whether the store knows of a later time what the line says. One that is pinned stays so. */
static bool is_newer(struct importing *m, struct db_record *r) {
  struct db_record old;
  if (db_find_module(m->db, &r->workload, r->target, r->module_hash, r->versions, &old, NULL) <= 0) return false;
  r->pinned |= old.pinned;
  return old.when > r->when;
}

static bool has_workload(struct importing *m, const db_id *id) {
  if (m->found && !memcmp(&m->workload, id, sizeof *id)) return true;
  struct tir *workload = db_get_workload(m->db, id, NULL);
  m->found = workload;
  m->workload = *id;
  tir_free(workload);
  return m->found;
}

static bool put_record(struct importing *m, struct db_record *r) {
  db_id id = db_record_id(r);
  if (db_group_has(m->group, &id) && !db_group_put(m->group, &m->why)) return stop(m);
  if (is_newer(m, r)) return true;
  bool ok = has_workload(m, &r->workload)
                ? db_group_add(m->group, r, &m->why) || stop(m)
                : bad(m, "the record's workload is neither in the file before it nor in the store");
  if (ok) m->out->added++;
  return ok;
}

/* What says nothing that is known counts as failed. */
static enum db_status status_named(const char *name) {
  for (int i = 0; db_status_names[i]; i++)
    if (!strcmp(db_status_names[i], name)) return (enum db_status)i;
  return DB_FAILED;
}

/* A field's number. Older lines lack some; null is what an export writes of infinity. */
static bool read_real(struct importing *m, const json_t *object, const char *key, double missing, double null,
                      double *out) {
  const json_t *x = json_object_get(object, key);
  *out = !x ? missing : json_is_null(x) ? null : json_number_value(x);
  return !x || json_is_null(x) || json_is_number(x) ||
         ms_fail(&m->why, MS_BAD_RECORD, "`%s` must be a number of seconds, not %s", key, kind_of(x));
}

static bool read_whole(struct importing *m, const json_t *object, const char *key, json_int_t least, json_int_t most,
                       json_int_t *out) {
  const json_t *x = json_object_get(object, key);
  *out = json_integer_value(x);
  if (!x || (json_is_integer(x) && *out >= least && *out <= most)) return true;
  char value[40];
  if (json_is_integer(x))
    snprintf(value, sizeof value, "%lld", (long long)*out);
  else if (json_is_real(x))
    snprintf(value, sizeof value, "%g", json_real_value(x));
  else
    snprintf(value, sizeof value, "%s", kind_of(x));
  return ms_fail(&m->why, MS_BAD_RECORD, "`%s` must be an integer from %lld to %lld, not %s", key, (long long)least,
                 (long long)most, value);
}

static bool read_hash(struct importing *m, const json_t *object, uint64_t *out) {
  const char *text = text_of(object, "module");
  size_t length = strlen(text);
  *out = strtoull(text, NULL, 16);
  return (length >= 1 && length <= 16 && strspn(text, "0123456789abcdefABCDEF") == length) ||
         ms_fail(&m->why, MS_BAD_RECORD, "`module` must be 1 to 16 hexadecimal digits, not \"%.40s\"", text);
}

static bool read_numbers(struct importing *m, const json_t *object, struct db_record *r) {
  json_int_t runs, seed, candidate, when;
  r->status = status_named(text_of(object, "status"));
  double untimed = r->status == DB_FAILED || r->status == DB_UNMEASURED ? 0 : INFINITY;
  if (!read_real(m, object, "seconds", untimed, untimed, &r->seconds) || !read_real(m, object, "low", 0, 0, &r->low) ||
      !read_real(m, object, "high", INFINITY, INFINITY, &r->high) || !read_hash(m, object, &r->module_hash) ||
      !read_whole(m, object, "runs", 0, UINT32_MAX, &runs) ||
      !read_whole(m, object, "seed", INT64_MIN, INT64_MAX, &seed) ||
      !read_whole(m, object, "candidate", 0, ((json_int_t)1 << 53) - 1, &candidate) ||
      !read_whole(m, object, "when", 0, 253402300799, &when))
    return false;
  r->runs = (uint32_t)runs;
  r->seed = (uint64_t)seed;
  r->candidate = (uint64_t)candidate;
  r->when = when;
  r->busy = json_is_true(json_object_get(object, "busy")); /* older lines do not say */
  r->pinned = json_is_true(json_object_get(object, "pinned"));
  return true;
}

static bool import_record(struct importing *m, const struct db_line *line) {
  json_t *object = line->object;
  struct db_record r = {.target = text_of(object, "target"),
                        .reason = text_of(object, "reason"),
                        .versions = text_of(object, "versions"),
                        .trace = line->trace,
                        .trace_bytes = line->trace_bytes,
                        .unsafe = line->unsafe};
  if (!check_kinds(m, object)) return false;
  if (!parse_id(text_of(object, "workload"), &r.workload)) return bad(m, "`workload` is no id");
  if (!read_numbers(m, object, &r)) return false;
  if (!line->trace) {
    m->why = line->why;
    return false;
  }
  read_facts(object, &r);
  char wrong[DB_WRONG_TEXT];
  bool in_range = !db_find_wrong_number(&r, wrong) || bad(m, wrong);
  bool ok = in_range && read_intrinsics(m, object, &r) && put_record(m, &r);
  free((void *)r.intrinsics);
  free((void *)r.facts);
  return ok;
}

/* The reader says of what it is in the text, which lacks a line and has a column of this one. */
static bool refuse_json(struct importing *m, const json_error_t *where) {
  return ms_fail(&m->why, MS_BAD_RECORD, "column %d: %s", where->column, where->text);
}

static bool import_object(struct importing *m, const struct db_line *line) {
  return !line->object                               ? refuse_json(m, &line->where)
         : json_object_get(line->object, "record")   ? import_record(m, line)
         : json_object_get(line->object, "script")   ? import_workload(m, line->object)
         : json_object_get(line->object, "sections") ? import_intrinsic(m, line->object)
                                                     : bad(m, "neither a workload, an intrinsic nor a record");
}

static bool import_line(struct importing *m, const struct db_line *line) {
  size_t space = strspn(line->text, " \t\r\n");
  m->why = (ms_error){.instruction = -1};
  if (space == line->length) return true;
  if (strlen(line->text) != line->length) return bad(m, "a byte of the line is zero");
  if (line->text[space] != '[') return import_object(m, line);
  if (!db_group_put(m->group, &m->why)) return stop(m);
  if (!db_import_tuning(m->db, line->text, line->length, m->out, &m->stopped, &m->why)) return false;
  m->out->added++;
  return true;
}

/* A refusal of a replay says its instruction itself, one of a reader does not. */
static void note_refusal(struct importing *m) {
  char place[40] = "";
  char *message = m->why.message, *all = NULL;
  size_t size;
  if (m->why.instruction >= 0 && strncmp(message, "instruction ", 12) != 0)
    snprintf(place, sizeof place, "instruction %d: ", m->why.instruction);
  m->out->refused++;
  FILE *text = open_memstream(&all, &size);
  if (!text) abort();
  fprintf(text, "%s%s:%zu: %s%s\n", m->out->refusals ? m->out->refusals : "", m->file, m->line, place, message);
  fclose(text);
  free(m->out->refusals);
  m->out->refusals = all;
}

/* What was taken is on disk then. */
static bool end_batch(struct importing *m) {
  bool put = m->stopped || db_group_put(m->group, &m->why);
  return db_end_batch(m->db, m->stopped || !put ? NULL : &m->why) && put;
}

bool db_import_json(struct db *db, FILE *in, const char *file, struct db_import *import, ms_error *err) {
  assert(in && import);
  enum { MOST_REFUSALS = 20 }; /* that are shown */
  struct importing m = {.db = db, .out = import, .group = db_group_new(db), .file = file};
  import->added = import->refused = 0;
  import->refusals = NULL;
  if (!db_begin_batch(db, err)) {
    db_group_free(m.group);
    return false;
  }
  struct db_lines *lines = db_lines_new(in);
  for (struct db_line *line; !m.stopped && (line = db_lines_next(lines)) != NULL;) {
    m.line++;
    if (import_line(&m, line) || m.stopped) continue;
    if (import->refused < MOST_REFUSALS)
      note_refusal(&m);
    else
      import->refused++;
  }
  db_lines_free(lines);
  bool kept = end_batch(&m);
  db_group_free(m.group);
  return (kept && !m.stopped) || ms_fail(err, m.why.code, "%s", m.why.message);
}

/* A store's lines of JSON, read into it (export.c writes them). */
#include "db/bounds.h"
#include "db/bytes.h"
#include "db/storage/group.h"
#include "lines.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* What a field holds that is of another kind, in a few characters. */
static const char *kind_of(const struct db_json_value *x) {
  static const char *const kinds[] = {
      [DB_JSON_STRING] = "a string",    [DB_JSON_INTEGER] = "a number",    [DB_JSON_REAL] = "a number",
      [DB_JSON_TRUE] = "true or false", [DB_JSON_FALSE] = "true or false", [DB_JSON_NULL] = "null",
      [DB_JSON_LIST] = "a list",        [DB_JSON_OBJECT] = "an object"};
  return kinds[x->kind];
}

static bool is_number(const struct db_json_value *x) { return x->kind == DB_JSON_INTEGER || x->kind == DB_JSON_REAL; }

/* Whether the fields of a record that are no numbers are of their kinds, where they are there: older lines lack
 * some. */
static bool check_kinds(struct importing *m, const struct db_json_value *object) {
  static const struct {
    const char *key;
    enum db_json_kind type, other; /* either */
    const char *kind;
  } fields[] = {{"workload", DB_JSON_STRING, DB_JSON_STRING, "a string"},
                {"target", DB_JSON_STRING, DB_JSON_STRING, "a string"},
                {"status", DB_JSON_STRING, DB_JSON_STRING, "a string"},
                {"reason", DB_JSON_STRING, DB_JSON_STRING, "a string"},
                {"versions", DB_JSON_STRING, DB_JSON_STRING, "a string"},
                {"trace", DB_JSON_STRING, DB_JSON_STRING, "a string"},
                {"busy", DB_JSON_TRUE, DB_JSON_FALSE, "true or false"},
                {"pinned", DB_JSON_TRUE, DB_JSON_FALSE, "true or false"},
                {"unsafe", DB_JSON_TRUE, DB_JSON_FALSE, "true or false"},
                {"facts", DB_JSON_OBJECT, DB_JSON_OBJECT, "an object"},
                {"intrinsics", DB_JSON_OBJECT, DB_JSON_OBJECT, "an object"}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    const struct db_json_value *x = db_json_get(object, fields[i].key);
    if (x && x->kind != fields[i].type && x->kind != fields[i].other)
      return ms_fail(&m->why, MS_BAD_RECORD, "`%s` must be %s, not %s", fields[i].key, fields[i].kind, kind_of(x));
  }
  return *db_json_text(object, "target") || bad(m, "`target` must name what the record was measured on");
}

static bool parse_id(const char *text, db_id *out) {
  if (strlen(text) != 32) return false;
  *out = (db_id){{0}};
  for (int i = 0; i < 32; i++) {
    int digit = bytes_hex_digit(text[i]);
    if (digit < 0) return false;
    out->bytes[i / 2] = (uint8_t)(out->bytes[i / 2] << 4 | digit);
  }
  return true;
}

static bool import_workload(struct importing *m, const struct db_json_value *object) {
  const char *script = db_json_text(object, "script");
  struct tir *ir = tir_read(script, strlen(script), "script", &m->why);
  if (!ir) return false;
  db_id id;
  tir_func f = tir_find_func(ir, "main");
  bool ok = f ? db_put_workload(m->db, ir, f, &id, &m->why) || stop(m)
              : bad(m, "a workload has one function, or one named main");
  tir_free(ir);
  return ok;
}

static bool import_intrinsic(struct importing *m, const struct db_json_value *object) {
  const char *text = db_json_text(object, "sections");
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
static bool read_intrinsics(struct importing *m, const struct db_json_value *object, struct db_record *r) {
  const struct db_json_value *all = db_json_get(object, "intrinsics");
  for (const struct db_json_value *at = db_json_first(all); at; at = db_json_next(all, at)) {
    const char *name = at->key;
    db_id id;
    if (at->kind != DB_JSON_STRING || !parse_id(at->text, &id)) return bad(m, "`intrinsics` holds what is no id");
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
static void read_facts(const struct db_json_value *object, struct db_record *r) {
  const struct db_json_value *all = db_json_get(object, "facts");
  for (const struct db_json_value *at = db_json_first(all); at; at = db_json_next(all, at)) {
    struct db_fact fact = {.name = at->key, .number = at->number, .text = at->text};
    bool truth = at->kind == DB_JSON_TRUE || at->kind == DB_JSON_FALSE;
    if (truth) fact.number = at->kind == DB_JSON_TRUE;
    fact.kind = at->kind == DB_JSON_STRING ? DB_TEXT : truth ? DB_BOOLEAN : DB_NUMBER;
    if (fact.kind != DB_NUMBER || is_number(at)) db_append_fact(r, &fact);
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
static bool read_real(struct importing *m, const struct db_json_value *object, const char *key, double missing,
                      double null, double *out) {
  const struct db_json_value *x = db_json_get(object, key);
  bool is_null = x && x->kind == DB_JSON_NULL;
  *out = !x ? missing : is_null ? null : x->number;
  return !x || is_null || is_number(x) ||
         ms_fail(&m->why, MS_BAD_RECORD, "`%s` must be a number of seconds, not %s", key, kind_of(x));
}

static bool read_whole(struct importing *m, const struct db_json_value *object, const char *key, int64_t least,
                       int64_t most, int64_t *out) {
  const struct db_json_value *x = db_json_get(object, key);
  *out = x ? x->integer : 0;
  if (!x || (x->kind == DB_JSON_INTEGER && *out >= least && *out <= most)) return true;
  char value[40];
  if (x->kind == DB_JSON_INTEGER)
    snprintf(value, sizeof value, "%lld", (long long)*out);
  else if (x->kind == DB_JSON_REAL)
    snprintf(value, sizeof value, "%g", x->number);
  else
    snprintf(value, sizeof value, "%s", kind_of(x));
  return ms_fail(&m->why, MS_BAD_RECORD, "`%s` must be an integer from %lld to %lld, not %s", key, (long long)least,
                 (long long)most, value);
}

static bool read_hash(struct importing *m, const struct db_json_value *object, uint64_t *out) {
  const char *text = db_json_text(object, "module");
  size_t length = strlen(text);
  *out = strtoull(text, NULL, 16);
  return (length >= 1 && length <= 16 && strspn(text, "0123456789abcdefABCDEF") == length) ||
         ms_fail(&m->why, MS_BAD_RECORD, "`module` must be 1 to 16 hexadecimal digits, not \"%.40s\"", text);
}

static bool is_true(const struct db_json_value *object, const char *key) {
  const struct db_json_value *x = db_json_get(object, key);
  return x && x->kind == DB_JSON_TRUE;
}

static bool read_numbers(struct importing *m, const struct db_json_value *object, struct db_record *r) {
  int64_t runs, seed, candidate, when;
  r->status = status_named(db_json_text(object, "status"));
  double untimed = r->status == DB_FAILED || r->status == DB_UNMEASURED ? 0 : INFINITY;
  if (!read_real(m, object, "seconds", untimed, untimed, &r->seconds) || !read_real(m, object, "low", 0, 0, &r->low) ||
      !read_real(m, object, "high", INFINITY, INFINITY, &r->high) || !read_hash(m, object, &r->module_hash) ||
      !read_whole(m, object, "runs", 0, UINT32_MAX, &runs) ||
      !read_whole(m, object, "seed", INT64_MIN, INT64_MAX, &seed) ||
      !read_whole(m, object, "candidate", 0, DB_MOST_CANDIDATE, &candidate) ||
      !read_whole(m, object, "when", 0, DB_MOST_WHEN, &when))
    return false;
  r->runs = (uint32_t)runs;
  r->seed = (uint64_t)seed;
  r->candidate = (uint64_t)candidate;
  r->when = when;
  r->busy = is_true(object, "busy"); /* older lines do not say */
  r->pinned = is_true(object, "pinned");
  return true;
}

static bool import_record(struct importing *m, const struct db_line *line) {
  const struct db_json_value *object = line->json.at;
  struct db_record r = {.target = db_json_text(object, "target"),
                        .reason = db_json_text(object, "reason"),
                        .versions = db_json_text(object, "versions"),
                        .trace = line->trace,
                        .trace_bytes = line->trace_bytes,
                        .unsafe = line->unsafe};
  if (!check_kinds(m, object)) return false;
  if (!parse_id(db_json_text(object, "workload"), &r.workload)) return bad(m, "`workload` is no id");
  if (!read_numbers(m, object, &r)) return false;
  if (!line->trace) {
    m->why = line->why;
    return false;
  }
  assert(line->trace_bytes); /* a form has a mark, whatever is in it */
  read_facts(object, &r);
  char wrong[DB_WRONG_TEXT];
  bool in_range = !db_find_wrong_number(&r, wrong) || bad(m, wrong);
  bool ok = in_range && read_intrinsics(m, object, &r) && put_record(m, &r);
  free((void *)r.intrinsics);
  free((void *)r.facts);
  return ok;
}

static bool import_object(struct importing *m, const struct db_line *line) {
  const struct db_json_value *object = line->json.at;
  return !line->is_json                    ? bad(m, line->refused)
         : db_json_get(object, "record")   ? import_record(m, line)
         : db_json_get(object, "script")   ? import_workload(m, object)
         : db_json_get(object, "sections") ? import_intrinsic(m, object)
                                           : bad(m, "neither a workload, an intrinsic nor a record");
}

static bool import_line(struct importing *m, const struct db_line *line) {
  size_t space = strspn(line->text, " \t\r\n");
  m->why = (ms_error){.instruction = -1};
  if (space == line->length) return true;
  m->out->lines++;
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
  import->added = import->refused = import->lines = 0;
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
  assert(import->lines <= m.line);
  assert(import->added + import->refused <= import->lines); /* a line is taken, refused, or says nothing that is new */
  db_lines_free(lines);
  bool kept = end_batch(&m);
  db_group_free(m.group);
  return (kept && !m.stopped) || ms_fail(err, m.why.code, "%s", m.why.message);
}

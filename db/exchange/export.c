/* The store as lines of JSON: workloads, tensor intrinsics, then records; traces as Lua text, which keeps draw ids. */
#include "db/bytes.h"
#include "db/ids.h"
#include "db/storage/seal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct writing {
  struct db *db;
  FILE *out;
  struct byte_writer line;
  struct vm_binary_reader *traces;
  bool failed;
  int why; /* errno, as writing failed */
};

/* ---- JSON ---- */

static void put(struct writing *w, const char *text) { bytes_put(&w->line, text, strlen(text)); }

/* A character of UTF-8 as one escape, or as two halves. */
static void put_code(struct writing *w, const uint8_t **at) {
  const uint8_t *c = *at;
  int more = *c < 0xc0 ? 0 : *c < 0xe0 ? 1 : *c < 0xf0 ? 2 : 3;
  uint32_t code = more ? *c & (0x3fu >> more) : *c;
  char text[16];
  for (int i = 1; i <= more && (c[i] & 0xc0) == 0x80; i++, (*at)++) code = code << 6 | (c[i] & 0x3f);
  (*at)++;
  if (code < 0x10000)
    snprintf(text, sizeof text, code == 0x7f ? "\\u%04x" : "\\u%04X", code);
  else
    snprintf(text, sizeof text, "\\u%04X\\u%04X", 0xd800 + ((code - 0x10000) >> 10 & 0x3ff), 0xdc00 + (code & 0x3ff));
  put(w, text);
}

static bool is_plain(uint8_t c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

/* ASCII without control characters, so that a terminal shows it as it is. */
static void put_string(struct writing *w, const char *text) {
  static const char ARE[] = "\"\\\b\f\n\r\t", NAMES[] = "\"\\bfnrt";
  const uint8_t *at = (const uint8_t *)text;
  for (put(w, "\"");;) {
    const uint8_t *run = at;
    while (is_plain(*at)) at++;
    bytes_put(&w->line, run, (size_t)(at - run));
    if (!*at) break;
    const char *named = strchr(ARE, *at);
    if (named) {
      bytes_put(&w->line, (char[]){'\\', NAMES[named - ARE]}, 2);
      at++;
    } else {
      put_code(w, &at);
    }
  }
  put(w, "\"");
}

static void put_key(struct writing *w, const char *key) {
  put(w, w->line.size && w->line.at[w->line.size - 1] == '{' ? "" : ",");
  put_string(w, key);
  put(w, ":");
}

static void put_text(struct writing *w, const char *key, const char *text) {
  put_key(w, key);
  put_string(w, text);
}

static void put_whole(struct writing *w, const char *key, int64_t value) {
  char text[24];
  put_key(w, key);
  snprintf(text, sizeof text, "%" PRId64, value);
  put(w, text);
}

static void put_truth(struct writing *w, const char *key, bool truth) {
  put_key(w, key);
  put(w, truth ? "true" : "false");
}

/* An exponent without its plus and zeros, as jansson writes it. */
static void shorten_exponent(char *text) {
  char *to = strchr(text, 'e'), *from = to;
  if (!to) return;
  to++, from++;
  if (*from == '-') to++;
  from++;
  while (*from == '0') from++;
  memmove(to, from, strlen(from) + 1);
}

/* JSON has no infinity: an end of an interval that is not known is null. */
static void put_real(struct writing *w, const char *key, double x) {
  char text[40];
  put_key(w, key);
  if (!isfinite(x)) return put(w, "null");
  tir_number_text(text, sizeof text, "%.17g", x);
  shorten_exponent(text);
  put(w, text);
  if (!strpbrk(text, ".e")) put(w, ".0"); /* it is read as what it is */
}

static void end_line(struct writing *w) {
  put(w, "}\n");
  if (fwrite(w->line.at, 1, w->line.size, w->out) != w->line.size && !w->failed) w->failed = true, w->why = errno;
  w->line.size = 0;
}

/* ---- Entries ---- */

/* By name. */
static void put_intrinsics(struct writing *w, const struct db_record *r) {
  size_t at = 0;
  db_id id;
  const char *name;
  char text[DB_ID_TEXT];
  if (!r->intrinsic_bytes) return;
  put_key(w, "intrinsics");
  put(w, "{");
  while (db_next_intrinsic(r, &at, &id, &name)) {
    db_id_text(&id, text);
    put_text(w, name, text);
  }
  put(w, "}");
}

static void put_number(struct writing *w, const char *key, double x) {
  if (x == trunc(x) && fabs(x) < 1e15)
    put_whole(w, key, (int64_t)x);
  else
    put_real(w, key, x);
}

/* By name. */
static void put_facts(struct writing *w, const struct db_record *r) {
  size_t at = 0;
  struct db_fact f;
  if (!r->fact_bytes) return;
  put_key(w, "facts");
  put(w, "{");
  while (db_next_fact(r, &at, &f))
    if (f.kind == DB_TEXT)
      put_text(w, f.name, f.text);
    else if (f.kind == DB_BOOLEAN)
      put_truth(w, f.name, f.number != 0);
    else
      put_number(w, f.name, f.number);
  put(w, "}");
}

static bool write_pair(struct writing *w, const char *kind, const db_id *id, const char *what, const char *text) {
  char name[DB_ID_TEXT];
  db_id_text(id, name);
  put(w, "{");
  put_text(w, kind, name);
  put_text(w, what, text);
  end_line(w);
  return !w->failed;
}

static bool write_intrinsic(void *data, const db_id *id, const char *text) {
  return write_pair(data, "intrinsic", id, "sections", text);
}

static void put_record(struct writing *w, const struct db_record *r, const char *trace) {
  assert((unsigned)r->status <= DB_UNMEASURED && r->target && r->reason && r->versions && trace);
  char id[DB_ID_TEXT], workload[DB_ID_TEXT], hash[20];
  db_id_text(&r->id, id);
  db_id_text(&r->workload, workload);
  snprintf(hash, sizeof hash, "%016" PRIx64, r->module_hash);
  put(w, "{");
  put_text(w, "record", id);
  put_text(w, "workload", workload);
  put_text(w, "target", r->target);
  put_text(w, "module", hash);
  put_text(w, "status", db_status_names[r->status]);
  put_real(w, "seconds", r->seconds);
  put_real(w, "low", r->low);
  put_real(w, "high", r->high);
  put_whole(w, "runs", r->runs);
  put_text(w, "reason", r->reason);
  put_text(w, "versions", r->versions);
  put_whole(w, "seed", (int64_t)r->seed);
  put_whole(w, "candidate", (int64_t)r->candidate);
  put_whole(w, "when", r->when);
  put_truth(w, "unsafe", r->unsafe);
  put_truth(w, "busy", r->busy);
  put_truth(w, "pinned", r->pinned);
  put_text(w, "trace", trace);
  put_intrinsics(w, r);
  put_facts(w, r);
  end_line(w);
}

static bool write_record(void *data, const struct db_record *r) {
  struct writing *w = data;
  struct vm_trace *trace = vm_read_next_binary(w->traces, r->trace, r->trace_bytes, NULL);
  if (!trace) { /* a later version's */
    db_note_damage(w->db, DB_RECORD, (MDB_val){sizeof r->id.bytes, (void *)r->id.bytes});
    return true;
  }
  char *text = vm_write_next_lua(w->traces, trace);
  vm_trace_free(trace);
  put_record(w, r, text);
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
  char *script = tir_print(ir, TIR_NONE, 0);
  write_pair(w, "workload", id, "script", script ? script : "");
  free(script);
  tir_free(ir);
  return !w->failed;
}

bool db_export_json(struct db *db, FILE *out, ms_error *err) {
  assert(out);
  struct writing w = {.db = db, .out = out, .traces = vm_binary_reader_new()};
  struct db_ids ids = {0};
  bool ok = db_each_workload(db, db_collect_id, &ids, err);
  for (size_t i = 0; ok && i < ids.count; i++) ok = write_workload(&w, &ids.at[i]);
  free(ids.at);
  if (ok) ok = db_each_intrinsic(db, write_intrinsic, &w, err);
  if (ok) ok = db_each_record(db, NULL, NULL, write_record, &w, err);
  vm_binary_reader_free(w.traces);
  free(w.line.at);
  if (fflush(out) != 0 && !w.failed) w.failed = true, w.why = errno;
  if (w.failed) ok = ms_fail(err, MS_IO, "the export cannot be written: %s", strerror(w.why ? w.why : EIO));
  return ok;
}

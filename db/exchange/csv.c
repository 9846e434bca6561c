/* Records as lines of comma-separated values (RFC 4180), for tables and data frames. */
#include "db/file/store.h"
#include "db/storage/seal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const columns[] = {"id",   "workload", "task", "target", "device",   "status", "seconds",
                                      "low",  "high",     "runs", "when",   "versions", "seed",   "candidate",
                                      "hash", "unsafe",   "busy", "pinned", "reason",   "worker"};

struct writing {
  FILE *out;
  bool first; /* of its line */
  struct {
    db_id id;
    char *name;
  } * workloads; /* sorted by id */
  size_t count, room;
};

static void separate(struct writing *w) {
  if (!w->first) fputc(',', w->out);
  w->first = false;
}

/* Bytes of a character of UTF-8 that a table may show; 0: it is a control character, or none. */
static size_t shown_bytes(const char *at) {
  const unsigned char *c = (const unsigned char *)at;
  if (*c < 0x80) return *c >= 0x20 && *c != 0x7f;
  size_t size = *c >= 0xf0 ? 4 : *c >= 0xe0 ? 3 : 2;
  for (size_t i = 1; i < size; i++)
    if ((c[i] & 0xc0) != 0x80) return 0;
  bool shorter = (*c == 0xe0 && c[1] < 0xa0) || (*c == 0xf0 && c[1] < 0x90); /* forms of what fewer bytes say */
  bool behind = (*c == 0xed && c[1] > 0x9f) || (*c == 0xf4 && c[1] > 0x8f);  /* surrogates, and past the last */
  bool control = *c == 0xc2 && c[1] < 0xa0;
  bool turns = *c == 0xe2 && ((c[1] == 0x80 && c[2] >= 0xaa && c[2] <= 0xae) || (c[1] == 0x81 && c[2] >= 0xa6));
  return *c < 0xc2 || *c > 0xf4 || shorter || behind || control || turns ? 0 : size;
}

/* A stranger's text: quoted; what a spreadsheet would take for a formula begins with an apostrophe, and control
 * characters are written as \xHH. */
static void put_text(struct writing *w, const char *text) {
  separate(w);
  fputc('"', w->out);
  if (*text && strchr("=+-@", *text)) fputc('\'', w->out);
  for (const char *at = text; *at;) {
    size_t size = shown_bytes(at);
    if (!size)
      fprintf(w->out, "\\x%02x", (unsigned char)*at);
    else if (*at == '"')
      fputs("\"\"", w->out);
    else
      fwrite(at, 1, size, w->out);
    at += size ? size : 1;
  }
  fputc('"', w->out);
}

/* What is not known is empty. */
static void put_real(struct writing *w, double x) {
  char text[40];
  separate(w);
  tir_number_text(text, sizeof text, "%.15g", x); /* shorter, where it is the same number */
  if (tir_text_number(text, NULL) != x) tir_number_text(text, sizeof text, "%.17g", x);
  if (isfinite(x)) fputs(text, w->out);
}

static void put_whole(struct writing *w, uint64_t x) {
  separate(w);
  fprintf(w->out, "%llu", (unsigned long long)x);
}

static void put_plain(struct writing *w, const char *text) {
  separate(w);
  fputs(text, w->out);
}

static void put_id(struct writing *w, const db_id *id) {
  char text[DB_ID_TEXT];
  db_id_text(id, text);
  put_plain(w, text);
}

static void put_day(struct writing *w, int64_t when) {
  char text[40];
  time_t seconds = (time_t)when;
  struct tm day;
  bool known = gmtime_r(&seconds, &day) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &day);
  put_plain(w, known ? text : "");
}

static int compare_ids(const void *a, const void *b) { return memcmp(a, b, sizeof(db_id)); }

static const char *name_of(const struct writing *w, const db_id *id) {
  const db_id *found = w->count ? bsearch(id, w->workloads, w->count, sizeof *w->workloads, compare_ids) : NULL;
  return found ? w->workloads[(size_t)((const char *)found - (const char *)w->workloads) / sizeof *w->workloads].name
               : "";
}

static bool note_workload(void *data, const db_id *id, const char *name, uint64_t records) {
  struct writing *w = data;
  (void)records;
  if (w->count == w->room) {
    w->room = 2 * w->room + 64;
    w->workloads = realloc(w->workloads, w->room * sizeof *w->workloads);
    if (!w->workloads) abort();
  }
  w->workloads[w->count].id = *id;
  w->workloads[w->count].name = strdup(name);
  if (!w->workloads[w->count++].name) abort();
  return true;
}

/* A fact that is text: of a device its name, of a fleet's record its worker. */
static const char *fact_of(const struct db_record *r, const char *name) {
  struct db_fact f;
  for (size_t at = 0; db_next_fact(r, &at, &f);)
    if (f.kind == DB_TEXT && !strcmp(f.name, name)) return f.text;
  return "";
}

static bool write_record(void *data, const struct db_record *r) {
  struct writing *w = data;
  char hash[20];
  snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->module_hash);
  w->first = true;
  put_id(w, &r->id);
  put_id(w, &r->workload);
  put_text(w, name_of(w, &r->workload));
  put_text(w, r->target);
  put_text(w, fact_of(r, "name"));
  put_plain(w, db_status_names[r->status]);
  bool timed = r->status == DB_MEASURED || r->status == DB_CENSORED;
  put_real(w, timed ? r->seconds : INFINITY);
  put_real(w, timed ? r->low : INFINITY);
  put_real(w, timed ? r->high : INFINITY);
  put_whole(w, r->runs);
  put_day(w, r->when);
  put_text(w, r->versions);
  put_whole(w, r->seed);
  put_whole(w, r->candidate);
  put_plain(w, hash);
  put_plain(w, r->unsafe ? "true" : "false");
  put_plain(w, r->busy ? "true" : "false");
  put_plain(w, r->pinned ? "true" : "false");
  put_text(w, r->reason);
  put_text(w, fact_of(r, "worker"));
  fputs("\r\n", w->out);
  return !ferror(w->out);
}

bool db_export_csv(struct db *db, FILE *out, ms_error *err) {
  assert(out);
  struct writing w = {.out = out, .first = true};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) put_plain(&w, columns[i]);
  fputs("\r\n", out);
  bool ok = db_each_workload(db, note_workload, &w, err); /* in order of their ids */
  if (ok) ok = db_each_result(db, write_record, &w, err);
  for (size_t i = 0; i < w.count; i++) free(w.workloads[i].name);
  free(w.workloads);
  errno = 0; /* what could not be written before, cannot be now */
  if (fflush(out) != 0 || ferror(out))
    ok = ms_fail(err, MS_IO, "the export cannot be written: %s", strerror(errno ? errno : EIO));
  return ok;
}

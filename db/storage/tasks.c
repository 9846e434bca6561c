/* Summaries of tasks, a workload on a target each: what lists say of them without reading their records.
 *
 *   "mst1", 1 if it is stale, records of each status, day of the last, how many are pinned, one that is (16 bytes),
 *   text of the target, and devices: a text and how many records name it
 *
 * Each put and each deletion keeps it. Where that takes more than the record at hand (the last is deleted, or the store
 * is older), it is stale, and made again from the records when somebody asks who may write. */
#include "tasks.h"

#include "db/bytes.h"
#include "db/file/snapshot.h"
#include "packed.h"
#include "seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

enum { STATUSES = DB_UNMEASURED + 1, MAGIC = 4, KEY = DB_TASK_KEY };
static const char SUMMARY_MAGIC[] = {'m', 's', 't', '1'};

struct device {
  char *name;
  uint64_t records;
};
struct summary {
  bool stale;
  uint64_t counts[STATUSES], pins;
  int64_t last;
  db_id pinned;
  char *target;
  struct device *devices;
  size_t device_count;
};

static void clear(struct summary *s) {
  for (size_t i = 0; i < s->device_count; i++) free(s->devices[i].name);
  free(s->devices);
  free(s->target);
  *s = (struct summary){0};
}

static char *copy_text(const char *text) {
  char *copy = strdup(text);
  if (!copy) abort();
  return copy;
}

static struct device *device_of(struct summary *s, const char *name) {
  for (size_t i = 0; i < s->device_count; i++)
    if (!strcmp(s->devices[i].name, name)) return &s->devices[i];
  s->devices = realloc(s->devices, (s->device_count + 1) * sizeof *s->devices);
  if (!s->devices) abort();
  s->devices[s->device_count] = (struct device){copy_text(name), 0};
  return &s->devices[s->device_count++];
}

/* ---- As bytes ---- */

static void put_text(struct byte_writer *w, const char *text) { bytes_put(w, text, strlen(text) + 1); }

static int keep(struct db *db, MDB_txn *txn, uint8_t key[KEY], const struct summary *s) {
  const uint8_t stale = s->stale;
  struct byte_writer w = {0};
  bytes_put(&w, SUMMARY_MAGIC, MAGIC);
  bytes_put(&w, &stale, 1);
  for (int i = 0; i < STATUSES; i++) bytes_put_fixed(&w, s->counts[i]);
  bytes_put_fixed(&w, (uint64_t)s->last);
  bytes_put_fixed(&w, s->pins);
  bytes_put(&w, s->pinned.bytes, sizeof s->pinned);
  put_text(&w, s->target ? s->target : "");
  for (size_t i = 0; i < s->device_count; i++) {
    put_text(&w, s->devices[i].name);
    bytes_put_fixed(&w, s->devices[i].records);
  }
  int code = db_put_sealed_at(txn, db->tasks, DB_TASK, (MDB_val){KEY, key}, w.at, w.size);
  free(w.at);
  return code;
}

static const char *take_text(struct byte_reader *r) {
  const uint8_t *end = r->bad ? NULL : memchr(r->at, 0, (size_t)(r->end - r->at));
  if (!end) r->bad = true;
  return end ? bytes_take(r, (size_t)(end + 1 - r->at)) : "";
}

/* False: it is damaged. What was read is the caller's to clear, in any case. */
static bool read_summary(MDB_val key, MDB_val value, struct summary *out) {
  *out = (struct summary){0};
  if (key.mv_size != KEY || db_unseal(DB_TASK, &key, &value) != DB_SEALED) return false;
  struct byte_reader r = bytes_reader(value.mv_data, value.mv_size);
  const void *magic = bytes_take(&r, MAGIC);
  if (!magic || memcmp(magic, SUMMARY_MAGIC, MAGIC) != 0) return false;
  const uint8_t *stale = bytes_take(&r, 1);
  out->stale = !stale || *stale;
  for (int i = 0; i < STATUSES; i++) out->counts[i] = bytes_take_fixed(&r);
  out->last = (int64_t)bytes_take_fixed(&r);
  out->pins = bytes_take_fixed(&r);
  const void *pinned = bytes_take(&r, sizeof out->pinned);
  if (pinned) memcpy(out->pinned.bytes, pinned, sizeof out->pinned);
  out->target = copy_text(take_text(&r));
  while (!r.bad && r.at < r.end) {
    const char *name = take_text(&r);
    uint64_t records = bytes_take_fixed(&r);
    if (!r.bad) device_of(out, name)->records = records;
  }
  return !r.bad;
}

/* ---- Counting ---- */

static const char *device_name(const struct db_record *r) {
  struct db_fact f;
  for (size_t at = 0; db_next_fact(r, &at, &f);)
    if (f.kind == DB_TEXT && !strcmp(f.name, "name")) return f.text;
  return NULL;
}

static void add(struct summary *s, const struct db_record *r) {
  const char *device = device_name(r);
  if (!s->target) s->target = copy_text(r->target);
  s->counts[r->status]++;
  if (r->when > s->last) s->last = r->when;
  if (r->pinned) s->pins++, s->pinned = r->id;
  if (device) device_of(s, device)->records++;
}

static uint64_t count_all(const struct summary *s) {
  uint64_t all = 0;
  for (int i = 0; i < STATUSES; i++) all += s->counts[i];
  return all;
}

/* Stale afterwards where more than the record would have to be known; by: what takes its place, or NULL. */
static void subtract(struct summary *s, const struct db_record *r, const struct db_record *by) {
  const char *name = device_name(r);
  struct device *device = name ? device_of(s, name) : NULL;
  s->stale |= !s->counts[r->status] || (r->pinned && !s->pins) || (device && !device->records);
  if (s->stale) return;
  s->counts[r->status]--;
  if (r->pinned && --s->pins) s->stale |= !memcmp(&s->pinned, &r->id, sizeof r->id);
  if (device && !--device->records) {
    free(device->name);
    *device = s->devices[--s->device_count];
  }
  s->stale |= r->when >= s->last && !(by && by->when >= s->last);
  s->stale &= by || count_all(s); /* of none all is known */
}

static void task_key(const struct db_record *r, uint8_t out[KEY]) {
  uint8_t time[DB_TIME_KEY];
  db_time_key(r, time);
  memcpy(out, time, KEY);
}

/* Whether the task has a record with another id. */
static bool has_others(struct db *db, MDB_txn *txn, uint8_t task[KEY], const db_id *id) {
  struct db_cursor cursor;
  MDB_val key = {KEY, task}, value;
  bool found = false;
  if (db_cursor_open(db, txn, DB_TIMES, &cursor)) return true;
  for (int code = db_cursor_seek(&cursor, &key, &value); !code && !found;
       code = db_cursor_next(&cursor, &key, &value)) {
    if (key.mv_size != DB_TIME_KEY || memcmp(key.mv_data, task, KEY) != 0) break;
    found = memcmp((uint8_t *)key.mv_data + DB_TIME_KEY - 16, id->bytes, 16) != 0;
  }
  db_cursor_close(&cursor);
  return found;
}

/* Of one task: `removed` goes, `added` comes; NULL: none does. */
static int recount(struct db *db, MDB_txn *txn, const struct db_record *removed, const struct db_record *added) {
  const struct db_record *r = added ? added : removed;
  uint8_t task[KEY];
  struct summary s = {0};
  task_key(r, task);
  MDB_val key = {KEY, task}, value;
  int code = db_get(db, txn, DB_TASKS, &key, &value);
  if (code && code != MDB_NOTFOUND) return code;
  if (code || !read_summary(key, value, &s)) {
    clear(&s);
    s.stale = has_others(db, txn, task, &r->id);
    removed = NULL;
  } else if (s.stale) {
    clear(&s);
    return 0;
  }
  if (removed && !s.stale) subtract(&s, removed, added);
  if (added && !s.stale) add(&s, added);
  if (s.stale || count_all(&s))
    code = keep(db, txn, task, &s);
  else if ((code = mdb_del(txn, db->tasks, &key, NULL)) == MDB_NOTFOUND)
    code = 0;
  clear(&s);
  return code;
}

int db_count_record(struct db *db, MDB_txn *txn, const struct db_record *removed, const struct db_record *added) {
  uint8_t from[KEY], to[KEY];
  if (!removed || !added) return recount(db, txn, removed, added);
  task_key(removed, from), task_key(added, to);
  if (!memcmp(from, to, KEY)) return recount(db, txn, removed, added);
  int code = recount(db, txn, removed, NULL);
  return code ? code : recount(db, txn, NULL, added);
}

int db_doubt_task(struct db *db, MDB_txn *txn, const void *time_key) {
  uint8_t task[KEY];
  memcpy(task, time_key, KEY);
  return keep(db, txn, task, &(struct summary){.stale = true});
}

/* ---- Asking ---- */

static bool add_one(void *data, const struct db_record *r) {
  add(data, r);
  return true;
}

/* From the records. */
static int make(struct db *db, MDB_txn *txn, const uint8_t task[KEY], struct summary *out) {
  *out = (struct summary){0};
  return db_walk_task(db, txn, task, KEY, true, add_one, out);
}

static int remake(struct db *db, MDB_txn *txn, void *data) {
  uint8_t *task = data;
  struct summary s;
  MDB_val key = {KEY, task};
  int code = make(db, txn, task, &s);
  if (!code && count_all(&s))
    code = keep(db, txn, task, &s);
  else if (!code && (code = mdb_del(txn, db->tasks, &key, NULL)) == MDB_NOTFOUND)
    code = 0;
  clear(&s);
  return code;
}

/* Whether the store has a summary of the task that is not stale. */
static bool find(struct db *db, MDB_txn *txn, const uint8_t task[KEY], struct summary *out) {
  MDB_val key = {KEY, (void *)task}, value;
  *out = (struct summary){0};
  if (db_get(db, txn, DB_TASKS, &key, &value)) return false;
  bool sound = read_summary(key, value, out) && !out->stale;
  if (!sound) clear(out);
  return sound;
}

struct tasks {
  uint8_t (*at)[KEY];
  size_t count, room;
};

/* The next key of the index behind all of a task. False: it was the last. */
static bool step_over(uint8_t task[KEY]) {
  for (int i = KEY - 1; i >= 0; i--)
    if (++task[i]) return true;
  return false;
}

/* The tasks that have records, of a workload or of all: by one step in the index each. */
static int list_tasks(struct db *db, MDB_txn *txn, const db_id *workload, struct tasks *out) {
  struct db_cursor cursor;
  uint8_t from[KEY] = {0};
  if (workload) memcpy(from, workload->bytes, sizeof workload->bytes);
  int code = db_cursor_open(db, txn, DB_TIMES, &cursor);
  if (code) return code;
  for (;;) {
    MDB_val key = {KEY, from}, value;
    code = db_cursor_seek(&cursor, &key, &value);
    if (code || key.mv_size != DB_TIME_KEY) break;
    if (workload && memcmp(key.mv_data, workload->bytes, sizeof workload->bytes) != 0) break;
    if (out->count == out->room) {
      out->room = out->room * 2 + 64;
      out->at = realloc(out->at, out->room * sizeof *out->at);
      if (!out->at) abort();
    }
    memcpy(out->at[out->count], key.mv_data, KEY);
    memcpy(from, out->at[out->count++], KEY);
    if (!step_over(from)) break;
  }
  db_cursor_close(&cursor);
  return code == MDB_NOTFOUND ? 0 : code;
}

int64_t db_count_tasks(struct db *db, MDB_txn *txn, const db_id *workload) {
  struct tasks tasks = {0};
  int64_t all = list_tasks(db, txn, workload, &tasks) ? -1 : 0;
  for (size_t i = 0; i < tasks.count && all >= 0; i++) {
    struct summary s;
    all = find(db, txn, tasks.at[i], &s) ? all + (int64_t)count_all(&s) : -1;
    clear(&s);
  }
  free(tasks.at);
  return all;
}

static bool take_first(void *data, const struct db_record *r) {
  struct db_task *t = data;
  t->has_best = true;
  t->best = r->id;
  t->seconds = r->seconds;
  return false;
}

static int show(struct db *db, MDB_txn *txn, const uint8_t task[KEY], const struct summary *s, db_task_visit *visit,
                void *data, bool *go_on) {
  struct db_task t = {.target = s->target, .last = s->last, .has_pinned = s->pins > 0, .pinned = s->pinned};
  uint8_t measured[KEY + 1];
  memcpy(t.workload.bytes, task, sizeof t.workload.bytes);
  memcpy(t.counts, s->counts, sizeof t.counts);
  memcpy(measured, task, KEY);
  measured[KEY] = DB_MEASURED;
  int code = db_walk_task(db, txn, measured, sizeof measured, true, take_first, &t);
  const char **names = calloc(s->device_count + 1, sizeof *names);
  if (!names) abort();
  for (size_t i = 0; i < s->device_count; i++) names[i] = s->devices[i].name;
  t.devices = names;
  if (!code) *go_on = visit(data, &t);
  free(names);
  return code;
}

/* Those that have none, or a stale one, get one where that may be written. */
static bool refresh(struct db *db, const struct tasks *tasks, ms_error *err) {
  bool ok = true;
  for (size_t i = 0; i < tasks->count && ok; i++) {
    MDB_txn *txn;
    struct summary s;
    if (!db_begin_read(db, &txn, err)) return false;
    bool found = find(db, txn, tasks->at[i], &s);
    int code = db_end_read(db, txn, 0);
    clear(&s);
    if (code) return db_failed(db, code, "reading tasks", err);
    if (!found) ok = db_write(db, remake, tasks->at[i], 0, "counting records", err);
  }
  return ok;
}

bool db_refresh_tasks(struct db *db, ms_error *err) {
  struct tasks tasks = {0};
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = list_tasks(db, txn, NULL, &tasks);
  code = db_end_read(db, txn, code);
  bool ok = code ? db_failed(db, code, "reading tasks", err) : refresh(db, &tasks, err);
  free(tasks.at);
  return ok;
}

bool db_each_task(struct db *db, const db_id *workload, db_task_visit *visit, void *data, ms_error *err) {
  assert(visit);
  struct tasks tasks = {0};
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = list_tasks(db, txn, workload, &tasks);
  bool go_on = true;
  for (size_t i = 0; i < tasks.count && !code && go_on; i++) {
    struct summary s;
    if (!find(db, txn, tasks.at[i], &s)) code = make(db, txn, tasks.at[i], &s);
    if (!code && count_all(&s)) code = show(db, txn, tasks.at[i], &s, visit, data, &go_on); /* none: all are damaged */
    clear(&s);
  }
  code = db_end_read(db, txn, code);
  db_report_damage(db);
  free(tasks.at);
  return code ? db_failed(db, code, "reading tasks", err) : true;
}

/* ---- Checking ---- */

static bool same_devices(const struct summary *a, const struct summary *b) {
  if (a->device_count != b->device_count) return false;
  for (size_t i = 0; i < a->device_count; i++) {
    size_t k = 0;
    while (k < b->device_count && strcmp(a->devices[i].name, b->devices[k].name) != 0) k++;
    if (k == b->device_count || a->devices[i].records != b->devices[k].records) return false;
  }
  return true;
}

static uint64_t count_entries(struct db *db, MDB_txn *txn, uint8_t task[KEY]) {
  struct db_cursor cursor;
  MDB_val key = {KEY, task}, value;
  uint64_t count = 0;
  if (db_cursor_open(db, txn, DB_TIMES, &cursor)) return 0;
  for (int code = db_cursor_seek(&cursor, &key, &value); !code; code = db_cursor_next(&cursor, &key, &value), count++)
    if (key.mv_size != DB_TIME_KEY || memcmp(key.mv_data, task, KEY) != 0) break;
  db_cursor_close(&cursor);
  return count;
}

/* Summaries made of the records as they come, in a table by the task. */
struct db_tally {
  struct tallied {
    uint8_t task[KEY];
    bool used;
    struct summary s;
  } * at;
  size_t room, count;
};

struct db_tally *db_tally_new(void) {
  struct db_tally *t = calloc(1, sizeof *t);
  if (!t) abort();
  return t;
}

void db_tally_free(struct db_tally *t) {
  for (size_t i = 0; i < t->room; i++) clear(&t->at[i].s);
  free(t->at);
  free(t);
}

/* Where the task is, or would be. */
static struct tallied *find_tallied(const struct db_tally *t, const uint8_t task[KEY]) {
  size_t i = XXH3_64bits(task, KEY) & (t->room - 1);
  while (t->at[i].used && memcmp(t->at[i].task, task, KEY) != 0) i = (i + 1) & (t->room - 1);
  return &t->at[i];
}

static void grow_tally(struct db_tally *t) {
  struct db_tally larger = {.room = t->room ? 2 * t->room : 256, .count = t->count};
  larger.at = calloc(larger.room, sizeof *larger.at);
  if (!larger.at) abort();
  for (size_t i = 0; i < t->room; i++)
    if (t->at[i].used) *find_tallied(&larger, t->at[i].task) = t->at[i];
  free(t->at);
  *t = larger;
}

void db_tally_add(struct db_tally *t, const struct db_record *r) {
  uint8_t task[KEY];
  task_key(r, task);
  if (2 * t->count >= t->room) grow_tally(t);
  struct tallied *at = find_tallied(t, task);
  if (!at->used) {
    memcpy(at->task, task, KEY);
    at->used = true;
    t->count++;
  }
  add(&at->s, r);
}

const char *db_check_task(struct db *db, MDB_txn *txn, const struct db_tally *tally, MDB_val key, MDB_val value) {
  struct summary s, its = {0};
  const char *wrong = read_summary(key, value, &s) ? NULL : "its summary is damaged";
  if (!wrong && !s.stale) {
    uint8_t task[KEY];
    memcpy(task, key.mv_data, KEY);
    if (tally->room) its = find_tallied(tally, task)->s;        /* the tally's own; none: it is empty */
    bool all = count_all(&its) == count_entries(db, txn, task); /* else one is damaged, which is said of it */
    if (all && (memcmp(s.counts, its.counts, sizeof s.counts) != 0 || s.last != its.last || s.pins != its.pins ||
                !same_devices(&s, &its) || (s.target && its.target && strcmp(s.target, its.target) != 0)))
      wrong = "its summary says something else than its records";
  }
  clear(&s);
  return wrong;
}

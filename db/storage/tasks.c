/* Summaries of tasks, a workload on a target each: what lists say of them without reading their records.
 *
 *   "mst2", 1 if it is stale, records of each status, day of the last, how many are pinned, one that is (16 bytes),
 *   how many have a limit, bytes of the list of the fastest and the list (bests.c), text of the target, and devices: a
 *   text and how many records name it
 *
 * Older ones, "mst1", have neither limits nor a list.
 *
 * Each put and each deletion keeps it. Where that takes more than the record at hand (the last is deleted, or the store
 * is older), it is stale, and made again from the records when somebody asks who may write. */
#include "tasks.h"

#include "bests.h"
#include "db/bytes.h"
#include "db/file/snapshot.h"
#include "packed.h"
#include "seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

enum { STATUSES = DB_UNMEASURED + 1, MAGIC = 4, KEY = DB_TASK_KEY };
static const char SUMMARY_MAGIC[] = {'m', 's', 't', '2'}, OLDER_MAGIC[] = {'m', 's', 't', '1'};
static const uint64_t UNKNOWN = UINT64_MAX;
enum { LEAST_BESTS = 10 }; /* a list of fewer is made again, where the task has more */

struct device {
  char *name;
  uint64_t records;
};
struct summary {
  bool stale;
  uint64_t counts[STATUSES], pins, limited; /* limited: how many have a limit, or UNKNOWN */
  int64_t last;
  db_id pinned;
  char *target;
  struct device *devices;
  size_t device_count;
  uint8_t *list; /* of the fastest, as bytes, as long as they are not read */
  size_t list_bytes;
  struct bests bests; /* the same, where they are */
};

static void clear(struct summary *s) {
  for (size_t i = 0; i < s->device_count; i++) free(s->devices[i].name);
  free(s->devices);
  free(s->target);
  free(s->list);
  bests_clear(&s->bests);
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

static void put_list(struct byte_writer *w, const struct summary *s) {
  struct byte_writer list = {0};
  if (!s->list) bests_write(&list, &s->bests);
  const void *bytes = s->list ? s->list : list.at;
  size_t size = s->list ? s->list_bytes : list.size;
  bytes_put_fixed(w, size);
  bytes_put(w, bytes, size);
  free(list.at);
}

static int keep(struct db *db, MDB_txn *txn, uint8_t key[KEY], const struct summary *s) {
  const uint8_t stale = s->stale;
  struct byte_writer w = {0};
  bytes_put(&w, SUMMARY_MAGIC, MAGIC);
  bytes_put(&w, &stale, 1);
  for (int i = 0; i < STATUSES; i++) bytes_put_fixed(&w, s->counts[i]);
  bytes_put_fixed(&w, (uint64_t)s->last);
  bytes_put_fixed(&w, s->pins);
  bytes_put(&w, s->pinned.bytes, sizeof s->pinned);
  bytes_put_fixed(&w, s->limited);
  put_list(&w, s);
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

static void take_list(struct byte_reader *r, struct summary *out) {
  out->limited = bytes_take_fixed(r);
  uint64_t size = bytes_take_fixed(r);
  const void *list = bytes_take(r, size);
  if (!list || !size) {
    r->bad = true;
    return;
  }
  out->list = malloc(size);
  if (!out->list) abort();
  memcpy(out->list, list, size);
  out->list_bytes = size;
}

/* Reads the list, which is none where it is damaged. */
static struct bests *bests_of(struct summary *s) {
  if (!s->list) return &s->bests;
  struct byte_reader r = bytes_reader(s->list, s->list_bytes);
  if (!bests_read(&r, &s->bests)) bests_clear(&s->bests);
  free(s->list);
  s->list = NULL;
  return &s->bests;
}

static uint32_t count_listed(const struct summary *s) {
  return s->list ? bests_count(s->list, s->list_bytes) : s->bests.count;
}

/* False: it is damaged. What was read is the caller's to clear, in any case. */
static bool read_summary(MDB_val key, MDB_val value, struct summary *out) {
  *out = (struct summary){0};
  if (key.mv_size != KEY || db_unseal(DB_TASK, &key, &value) != DB_SEALED) return false;
  struct byte_reader r = bytes_reader(value.mv_data, value.mv_size);
  const void *magic = bytes_take(&r, MAGIC);
  bool older = magic && !memcmp(magic, OLDER_MAGIC, MAGIC);
  if (!magic || (!older && memcmp(magic, SUMMARY_MAGIC, MAGIC) != 0)) return false;
  const uint8_t *stale = bytes_take(&r, 1);
  out->stale = !stale || *stale;
  for (int i = 0; i < STATUSES; i++) out->counts[i] = bytes_take_fixed(&r);
  out->last = (int64_t)bytes_take_fixed(&r);
  out->pins = bytes_take_fixed(&r);
  const void *pinned = bytes_take(&r, sizeof out->pinned);
  if (pinned) memcpy(out->pinned.bytes, pinned, sizeof out->pinned);
  if (older)
    out->limited = UNKNOWN;
  else
    take_list(&r, out);
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

static bool has_limit(const struct db_record *r) {
  const char *name;
  double seconds;
  return bests_limit(r, &name, &seconds);
}

static void add(struct summary *s, const struct db_record *r) {
  const char *device = device_name(r);
  if (!s->target) s->target = copy_text(r->target);
  s->counts[r->status]++;
  if (s->limited != UNKNOWN) s->limited += has_limit(r);
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
  assert(!s->stale);
  const char *name = device_name(r);
  struct device *device = name ? device_of(s, name) : NULL;
  bool limited = s->limited != UNKNOWN && has_limit(r);
  s->stale |= !s->counts[r->status] || (r->pinned && !s->pins) || (device && !device->records);
  s->stale |= limited && !s->limited;
  if (s->stale) return;
  s->counts[r->status]--;
  s->limited -= limited;
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

/* ---- The fastest ---- */

struct listing {
  struct bests *bests;
  const struct db_record *removed, *added; /* neither is listed; NULL: there is none */
  bool all;
};

static bool is_record(const struct db_record *r, const db_id *id) { return r && !memcmp(&r->id, id, sizeof *id); }

static bool list_one(void *data, const struct db_record *r) {
  struct listing *l = data;
  if (is_record(l->removed, &r->id) || is_record(l->added, &r->id)) return true;
  return l->all = bests_append(l->bests, r);
}

/* From the index, which has neither seen `removed` go nor `added` come. */
static int list_fastest(struct db *db, MDB_txn *txn, const uint8_t task[KEY], const struct db_record *removed,
                        const struct db_record *added, struct bests *out) {
  struct listing l = {.bests = out, .removed = removed, .added = added, .all = true};
  uint8_t measured[KEY + 1];
  memcpy(measured, task, KEY);
  measured[KEY] = DB_MEASURED;
  bests_clear(out);
  assert(!removed || !added || !memcmp(&removed->workload, &added->workload, sizeof added->workload));
  int code = db_walk_task(db, txn, measured, sizeof measured, false, list_one, &l);
  if (!code && added) bests_change(out, NULL, added, l.all);
  return code;
}

/* Of a summary that says of the records already that `removed` goes and `added` comes; known: how many were measured
 * before. */
static int keep_list(struct db *db, MDB_txn *txn, const uint8_t task[KEY], struct summary *s, uint64_t known,
                     const struct db_record *removed, const struct db_record *added) {
  bool complete = count_listed(s) == known;
  if (s->list && !bests_touch(s->list, s->list_bytes, removed, added, complete)) return 0;
  bests_change(bests_of(s), removed, added, complete);
  bool more = s->bests.count < s->counts[DB_MEASURED];
  return more && s->bests.count < LEAST_BESTS ? list_fastest(db, txn, task, removed, added, &s->bests) : 0;
}

/* Of one task: `removed` goes, `added` comes; NULL: none does. */
static int recount(struct db *db, MDB_txn *txn, const struct db_record *removed, const struct db_record *added) {
  assert(removed || added);
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
  uint64_t known = s.counts[DB_MEASURED];
  if (removed && !s.stale) subtract(&s, removed, added);
  if (added && !s.stale) add(&s, added);
  code = s.stale ? 0 : keep_list(db, txn, task, &s, known, removed, added);
  if (!code && (s.stale || count_all(&s)))
    code = keep(db, txn, task, &s);
  else if (!code && (code = mdb_del(txn, db->tasks, &key, NULL)) == MDB_NOTFOUND)
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
  int code = db_walk_task(db, txn, task, KEY, true, add_one, out);
  return code ? code : list_fastest(db, txn, task, NULL, NULL, &out->bests);
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

/* Whether it took more room. */
static bool add_task(struct tasks *out, const void *task) {
  bool grows = out->count == out->room;
  if (grows) {
    out->room = out->room * 2 + 64;
    out->at = realloc(out->at, out->room * sizeof *out->at);
    if (!out->at) abort();
  }
  memcpy(out->at[out->count++], task, KEY);
  return grows;
}

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
    add_task(out, key.mv_data);
    memcpy(from, key.mv_data, KEY);
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

/* Of a task whose list is none, by one step in the index. */
static int find_best(struct db *db, MDB_txn *txn, const uint8_t task[KEY], struct db_task *out) {
  uint8_t measured[KEY + 1];
  memcpy(measured, task, KEY);
  measured[KEY] = DB_MEASURED;
  return db_walk_task(db, txn, measured, sizeof measured, true, take_first, out);
}

static void show_bests(const struct bests *b, struct db_best *out) {
  for (uint32_t i = 0; i < b->count; i++) {
    const struct best *at = &b->at[i];
    out[i] = (struct db_best){.id = at->id,
                              .seconds = at->seconds,
                              .limit_seconds = at->limit_seconds,
                              .versions = b->texts[at->versions],
                              .limit = b->texts[at->limit],
                              .unsafe = at->notes & BEST_UNSAFE,
                              .busy = at->notes & BEST_BUSY,
                              .pinned = at->notes & BEST_PINNED,
                              .ordered = at->notes & BEST_ORDERED};
  }
}

static int show(struct db *db, MDB_txn *txn, const uint8_t task[KEY], struct summary *s, db_task_visit *visit,
                void *data, bool *go_on) {
  struct db_task t = {.target = s->target, .last = s->last, .has_pinned = s->pins > 0, .pinned = s->pinned};
  struct db_best bests[DB_MOST_BESTS];
  memcpy(t.workload.bytes, task, sizeof t.workload.bytes);
  memcpy(t.counts, s->counts, sizeof t.counts);
  t.has_limits = s->limited > 0;
  t.best_count = bests_of(s)->count;
  t.bests = bests;
  show_bests(&s->bests, bests);
  t.has_best = t.best_count > 0;
  if (t.has_best) t.best = bests[0].id, t.seconds = bests[0].seconds;
  int code = !t.has_best && t.counts[DB_MEASURED] ? find_best(db, txn, task, &t) : 0;
  const char **names = calloc(s->device_count + 1, sizeof *names);
  if (!names) abort();
  for (size_t i = 0; i < s->device_count; i++) names[i] = s->devices[i].name;
  t.devices = names;
  if (!code) *go_on = visit(data, &t);
  free(names);
  return code;
}

/* Whether there is nothing that it lacks. */
static bool is_full(const struct summary *s) {
  uint32_t listed = count_listed(s);
  return s->limited != UNKNOWN && (listed >= LEAST_BESTS || listed == s->counts[DB_MEASURED]);
}

/* Those that have none, or a stale one, get one where that may be written. */
static bool refresh(struct db *db, const struct tasks *tasks, ms_error *err) {
  bool ok = true;
  for (size_t i = 0; i < tasks->count && ok; i++) {
    MDB_txn *txn;
    struct summary s;
    if (!db_begin_read(db, &txn, err)) return false;
    bool found = find(db, txn, tasks->at[i], &s) && is_full(&s);
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

/* All summaries, read one after the other; their keys are the tasks. */
struct summaries {
  struct tasks tasks;
  struct summary *at; /* of each task */
};

static void clear_summaries(struct summaries *all) {
  for (size_t i = 0; i < all->tasks.count; i++) clear(&all->at[i]);
  free(all->at);
  free(all->tasks.at);
  *all = (struct summaries){0};
}

static int read_all(struct db *db, MDB_txn *txn, struct summaries *out, uint64_t *records) {
  struct db_cursor cursor;
  MDB_val key, value;
  int code = db_cursor_open(db, txn, DB_TASKS, &cursor);
  if (code) return code;
  while (!(code = db_cursor_next(&cursor, &key, &value))) {
    struct summary s;
    bool sound = read_summary(key, value, &s) && !s.stale;
    *records += count_all(&s);
    if (!sound) clear(&s);
    if (!sound) break;
    if (add_task(&out->tasks, key.mv_data)) {
      out->at = realloc(out->at, out->tasks.room * sizeof *out->at);
      if (!out->at) abort();
    }
    out->at[out->tasks.count - 1] = s;
  }
  db_cursor_close(&cursor);
  return code;
}

/* The summaries of all tasks; false: they do not say of all records, and *out is empty. */
static bool find_all(struct db *db, MDB_txn *txn, struct summaries *out) {
  uint64_t records = 0, times = 0;
  *out = (struct summaries){0};
  bool all = read_all(db, txn, out, &records) == MDB_NOTFOUND && !db_count_entries(db, txn, DB_TIMES, &times);
  if (all && records == times) return true;
  clear_summaries(out);
  return false;
}

struct db_counts {
  struct summaries all;
  size_t at;
};

struct db_counts *db_counts_new(struct db *db, MDB_txn *txn) {
  struct db_counts *c = calloc(1, sizeof *c);
  if (!c) abort();
  if (find_all(db, txn, &c->all)) return c;
  free(c);
  return NULL;
}

uint64_t db_counts_next(struct db_counts *c, const db_id *workload) {
  uint64_t records = 0;
  for (; c->at < c->all.tasks.count; c->at++) {
    int order = memcmp(c->all.tasks.at[c->at], workload->bytes, sizeof workload->bytes);
    if (order > 0) break;
    if (!order) records += count_all(&c->all.at[c->at]);
  }
  return records;
}

void db_counts_free(struct db_counts *c) {
  if (c) clear_summaries(&c->all);
  free(c);
}

/* By the index, where summaries lack some. */
static int show_by_index(struct db *db, MDB_txn *txn, const db_id *workload, db_task_visit *visit, void *data) {
  struct tasks tasks = {0};
  bool go_on = true;
  int code = list_tasks(db, txn, workload, &tasks);
  for (size_t i = 0; i < tasks.count && !code && go_on; i++) {
    struct summary s;
    if (!find(db, txn, tasks.at[i], &s)) code = make(db, txn, tasks.at[i], &s);
    if (!code && count_all(&s)) code = show(db, txn, tasks.at[i], &s, visit, data, &go_on); /* none: all are damaged */
    clear(&s);
  }
  free(tasks.at);
  return code;
}

bool db_each_task(struct db *db, const db_id *workload, db_task_visit *visit, void *data, ms_error *err) {
  assert(visit);
  struct summaries all = {0};
  MDB_txn *txn;
  if (!db_begin_read(db, &txn, err)) return false;
  int code = 0;
  bool go_on = true;
  if (workload || !find_all(db, txn, &all)) code = show_by_index(db, txn, workload, visit, data);
  for (size_t i = 0; i < all.tasks.count && !code && go_on; i++)
    code = show(db, txn, all.tasks.at[i], &all.at[i], visit, data, &go_on);
  code = db_end_read(db, txn, code);
  db_report_damage(db);
  clear_summaries(&all);
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
  assert(t->room && !(t->room & (t->room - 1)) && t->count < t->room);
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

/* Whether the list is what the index begins with, or as much of it as it has. */
static bool has_fastest(struct db *db, MDB_txn *txn, const uint8_t task[KEY], struct summary *s) {
  struct bests its = {0};
  bool known = bests_of(s)->count > 0 && !list_fastest(db, txn, task, NULL, NULL, &its);
  if (its.count > s->bests.count) its.count = s->bests.count;
  bool same = !s->bests.count || (known && bests_equal(&its, &s->bests));
  bests_clear(&its);
  return same;
}

const char *db_check_task(struct db *db, MDB_txn *txn, const struct db_tally *tally, MDB_val key, MDB_val value) {
  struct summary s, its = {0};
  const char *wrong = read_summary(key, value, &s) ? NULL : "its summary is damaged";
  if (!wrong && !s.stale) {
    uint8_t task[KEY];
    memcpy(task, key.mv_data, KEY);
    if (tally->room) its = find_tallied(tally, task)->s;        /* the tally's own; none: it is empty */
    bool all = count_all(&its) == count_entries(db, txn, task); /* else one is damaged, which is said of it */
    bool limits = s.limited == UNKNOWN || s.limited == its.limited;
    if (all &&
        (!limits || memcmp(s.counts, its.counts, sizeof s.counts) != 0 || s.last != its.last || s.pins != its.pins ||
         !same_devices(&s, &its) || (s.target && its.target && strcmp(s.target, its.target) != 0)))
      wrong = "its summary says something else than its records";
    if (all && !wrong && !has_fastest(db, txn, task, &s)) wrong = "its list of the fastest is not that of its records";
  }
  clear(&s);
  return wrong;
}

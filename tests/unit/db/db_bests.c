/* Lists of the fastest records, kept with each write; the beginnings of ids that several records have. */
#include "unit/stored.h"

#include "db/file/store.h"
#include "db/storage/bests.h"
#include "db/storage/prefixes.h"
#include "db/storage/tasks.h"

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525 + 1013904223;
  return (*state >> 8) % below;
}

/* ---- Lists ---- */

struct shown {
  int tasks;
  uint32_t count;
  bool has_limits, has_best;
  db_id best;
  struct db_best at[DB_MOST_BESTS]; /* their texts are in `texts` */
  char texts[2 * DB_MOST_BESTS][130];
};

static bool show(void *data, const struct db_task *t) {
  struct shown *s = data;
  s->tasks++;
  s->count = t->best_count, s->has_limits = t->has_limits, s->has_best = t->has_best, s->best = t->best;
  for (uint32_t i = 0; i < t->best_count; i++) {
    s->at[i] = t->bests[i];
    s->at[i].versions = strcpy(s->texts[2 * i], t->bests[i].versions);
    s->at[i].limit = strcpy(s->texts[2 * i + 1], t->bests[i].limit);
  }
  return true;
}

/* Of the store's only task. */
static struct shown *list_of(struct fixture *x) {
  static struct shown s;
  ms_error err = {0};
  s = (struct shown){0};
  if (!db_each_task(x->db, NULL, show, &s, &err)) fail_msg("%s", err.message);
  return &s;
}

static void put_with(struct fixture *x, uint64_t module, double seconds, const char *limit, const char *versions,
                     bool pinned) {
  ms_error err = {0};
  struct db_record r = record(x, module, seconds, seconds > 0 ? DB_MEASURED : DB_FAILED);
  r.pinned = pinned, r.busy = module % 2, r.versions = versions;
  if (limit) {
    db_append_fact(&r, &(struct db_fact){.name = "limit", .kind = DB_TEXT, .text = limit});
    db_append_fact(&r, &(struct db_fact){.name = "limit_seconds", .kind = DB_NUMBER, .number = seconds / 2});
  }
  if (!db_put_record(x->db, &r, &err)) fail_msg("%s", err.message);
  free((void *)r.facts);
}

static void put(struct fixture *x, uint64_t module, double seconds) { put_with(x, module, seconds, NULL, "1", false); }

static db_id id_of(struct fixture *x, uint64_t module) {
  struct db_record r = record(x, module, 1.0, DB_MEASURED);
  return db_record_id(&r);
}

static void drop(struct fixture *x, uint64_t module) {
  ms_error err = {0};
  db_id id = id_of(x, module);
  if (!db_delete_record(x->db, &id, &err)) fail_msg("%s", err.message);
}

/* The list names these modules first. */
static void expect_first(struct fixture *x, const uint64_t *modules, uint32_t count) {
  struct shown *s = list_of(x);
  assert_true(s->tasks == 1 && s->count >= count);
  for (uint32_t i = 0; i < count; i++) {
    db_id id = id_of(x, modules[i]);
    assert_memory_equal(&s->at[i].id, &id, sizeof id);
  }
}

static void lists_say_what_is_shown(void **state) {
  struct fixture *x = *state;
  put_with(x, 1, 3.0, "memory", "1", false);
  put_with(x, 2, 2.0, NULL, "2", true);
  put(x, 3, 0);
  struct shown *s = list_of(x);
  assert_true(s->count == 2 && s->has_limits && s->has_best);
  assert_true(s->at[0].seconds == 2.0 && s->at[0].pinned && !s->at[0].busy && !s->at[0].unsafe && !s->at[0].ordered);
  assert_true(s->at[0].limit_seconds == 0 && !strcmp(s->at[0].limit, "") && !strcmp(s->at[0].versions, "2"));
  assert_true(s->at[1].seconds == 3.0 && s->at[1].limit_seconds == 1.5 && s->at[1].busy && !s->at[1].pinned);
  assert_true(!strcmp(s->at[1].limit, "memory") && !strcmp(s->at[1].versions, "1"));
  ms_error err = {0};
  struct db_record noted = record(x, 5, 1.0, DB_MEASURED);
  noted.trace = "a msched.fixed_order b", noted.trace_bytes = strlen(noted.trace), noted.unsafe = true;
  assert_true(db_put_record(x->db, &noted, &err));
  s = list_of(x);
  assert_true(s->count == 3 && s->at[0].ordered && s->at[0].unsafe && !s->at[1].ordered && !s->at[1].unsafe);
  drop(x, 5);
  put(x, 1, 3.0); /* without its limit: none has one */
  s = list_of(x);
  assert_true(s->count == 2 && !s->has_limits && !strcmp(s->at[1].limit, ""));
  drop(x, 1);
  put(x, 4, 2.5);
  s = list_of(x);
  assert_true(s->count == 2 && s->at[0].seconds == 2.0 && s->at[1].seconds == 2.5);
}

/* Of more records than a list has, also where those at its top go, or become slower. */
static void lists_begin_with_the_fastest(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  for (uint64_t i = 0; i < 40; i++) put(x, 100 + i * 7 % 40, 1.0 + (double)(i * 7 % 40));
  assert_int_equal(list_of(x)->count, DB_MOST_BESTS);
  expect_first(x, (const uint64_t[]){100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110}, 11);
  put(x, 101, 60.0); /* measured again: the slowest of all */
  put(x, 139, 1.5);
  put(x, 104, 8.5);
  drop(x, 102);
  expect_first(x, (const uint64_t[]){100, 139, 103, 105, 106, 107, 104, 108, 109, 110}, 10);
  drop(x, 100), drop(x, 139), drop(x, 103);
  for (uint64_t module = 105; module < 130; module++) { /* each the fastest, or nearly */
    drop(x, module);
    struct shown *s = list_of(x);
    uint32_t left = (uint32_t)(139 - module) + 1;
    assert_true(s->count >= (left < 10 ? left : 10));
    assert_int_equal(db_check(x->db, stderr, &err), 0);
  }
  expect_first(x, (const uint64_t[]){104, 130, 131}, 3);
}

/* Against what the records say in order, after any changes; some have texts that lists do not take. */
static bool take_ids(void *data, const struct db_record *r) {
  db_id **at = data;
  if (r->status == DB_MEASURED) *(*at)++ = r->id;
  return true;
}

static void lists_follow_any_changes(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  uint32_t random = 7, full = 0;
  char long_text[200];
  memset(long_text, 'v', sizeof long_text), long_text[sizeof long_text - 1] = 0;
  assert_true(db_begin_batch(x->db, &err));
  for (int i = 0; i < 1200; i++) {
    uint64_t module = draw(&random, 60);
    db_id id = id_of(x, module), ids[200], *end = ids;
    const char *limit = draw(&random, 40) == 0 ? long_text : draw(&random, 2) ? "memory" : NULL;
    if (draw(&random, 4))
      put_with(x, module, draw(&random, 30), limit, "1", draw(&random, 5) == 0);
    else
      db_delete_record(x->db, &id, &err); /* where it is there */
    assert_true(db_each_record(x->db, NULL, NULL, take_ids, &end, &err));
    struct shown *s = list_of(x);
    assert_true(s->count <= (size_t)(end - ids));
    for (uint32_t k = 0; k < s->count; k++) assert_memory_equal(&s->at[k].id, &ids[k], sizeof ids[k]);
    full += s->count >= 10;
    if (i % 20 == 0) assert_int_equal(db_check(x->db, stderr, &err), 0);
  }
  assert_true(db_end_batch(x->db, &err));
  assert_true(full > 300); /* long texts cut some short */
}

static int write_list(struct db *db, MDB_txn *txn, void *data) {
  struct fixture *x = data;
  struct db_record other = record(x, 77, 0.5, DB_MEASURED), gone = record(x, 1, 2.0, DB_MEASURED);
  other.id = db_record_id(&other), gone.id = db_record_id(&gone);
  return db_count_record(db, txn, &gone, &other); /* which the records do not say */
}

static void wrong_lists_are_found(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  char *text = NULL;
  size_t size;
  put(x, 1, 2.0);
  assert_true(db_write(x->db, write_list, x, 0, "test", &err));
  FILE *report = open_memstream(&text, &size);
  assert_int_equal(db_check(x->db, report, &err), 1);
  fclose(report);
  assert_non_null(strstr(text, "its list of the fastest is not that of its records"));
  free(text);
}

/* A stranger's bytes are a list, or none; nothing outside of them is read. */
static void strange_lists_end_nothing(void **state) {
  struct fixture *x = *state;
  struct bests made = {0};
  struct byte_writer w = {0};
  uint32_t random = 3;
  int refused = 0;
  for (int i = 0; i < 5; i++) {
    struct db_record r = record(x, (uint64_t)i, 1.0 + i, DB_MEASURED);
    r.id = db_record_id(&r);
    assert_true(bests_append(&made, &r));
  }
  bests_write(&w, &made);
  for (int i = 0; i < 4000; i++) {
    size_t size = i % 2 ? w.size : draw(&random, (uint32_t)w.size);
    uint8_t *bytes = malloc(size + !size);
    memcpy(bytes, w.at, size);
    if (i % 2) bytes[draw(&random, (uint32_t)size)] = (uint8_t)draw(&random, 256);
    struct byte_reader r = bytes_reader(bytes, size);
    struct bests read;
    if (bests_read(&r, &read))
      for (uint32_t k = 0; k < read.count; k++) assert_non_null(read.texts[read.at[k].versions]);
    else
      refused++;
    struct db_record like = record(x, 3, 4.0, DB_MEASURED);
    bests_touch(bytes, size, &like, &like, i % 3 == 0);
    bests_clear(&read);
    free(bytes);
  }
  assert_true(refused > 2000);
  bests_clear(&made);
  free(w.at);
}

/* ---- Ids ---- */

struct module {
  uint64_t number;
  db_id id;
};

static int compare(const void *a, const void *b) {
  return memcmp(&((const struct module *)a)->id, &((const struct module *)b)->id, sizeof(db_id));
}

/* Two modules whose records' ids begin with the same 7 digits. */
static void find_alike(struct fixture *x, struct module out[2]) {
  enum { COUNT = 60000 };
  struct module *all = malloc(COUNT * sizeof *all);
  uint8_t before[DB_PREFIX], its[DB_PREFIX];
  for (uint64_t i = 0; i < COUNT; i++) all[i] = (struct module){i, id_of(x, i)};
  qsort(all, COUNT, sizeof *all, compare);
  for (int i = 1; i < COUNT; i++) {
    db_prefix_of(&all[i - 1].id, before), db_prefix_of(&all[i].id, its);
    if (memcmp(before, its, sizeof its) != 0) continue;
    out[0] = all[i - 1], out[1] = all[i];
    free(all);
    return;
  }
  fail_msg("no two are alike");
}

static size_t digits_of(struct fixture *x, const db_id *id) {
  char text[DB_ID_TEXT], whole[DB_ID_TEXT];
  db_short_id(x->db, id, text);
  db_id_text(id, whole);
  assert_memory_equal(text, whole, strlen(text));
  return strlen(text);
}

static int forget_prefixes(struct db *db, MDB_txn *txn, void *unused) {
  (void)unused;
  return mdb_drop(txn, db->prefixes, 0);
}

static void ids_that_begin_alike_are_told_apart(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  struct module alike[2];
  find_alike(x, alike);
  put(x, alike[0].number, 1.0);
  put(x, 99999999, 2.0);
  db_id other = id_of(x, 99999999);
  assert_int_equal(digits_of(x, &alike[0].id), 7);
  put(x, alike[1].number, 3.0);
  assert_true(digits_of(x, &alike[0].id) > 7 && digits_of(x, &alike[1].id) > 7 && digits_of(x, &other) == 7);
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  assert_true(db_write(x->db, forget_prefixes, NULL, 0, "test", &err));
  assert_int_equal(db_check(x->db, NULL, &err), 1);
  assert_true(db_find_prefixes(x->db, &err));
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  assert_true(digits_of(x, &alike[0].id) > 7);
  drop(x, alike[1].number);
  assert_int_equal(digits_of(x, &alike[0].id), 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      STORED_TEST(lists_say_what_is_shown),   STORED_TEST(lists_begin_with_the_fastest),
      STORED_TEST(lists_follow_any_changes),  STORED_TEST(wrong_lists_are_found),
      STORED_TEST(strange_lists_end_nothing), STORED_TEST(ids_that_begin_alike_are_told_apart)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Pages of the store's file: every sound file passes, whatever was done with it; a spoiled one is refused or does as
 * before, and never ends the process. */
#include "unit/file.h"
#include "unit/stored.h"

#include "db/file/snapshot.h"

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525 + 1013904223;
  return (*state >> 8) % below;
}

/* ---- Sound files ---- */

static bool fail_at_bad(void *data, uint64_t page, const char *why) {
  fail_msg("%s: page %llu: %s", (const char *)data, (unsigned long long)page, why);
  return false;
}

static void count_entry(void *data, const char *table, MDB_val key, MDB_val value) {
  (void)data, (void)table;
  volatile uint8_t last = key.mv_size + value.mv_size ? 0 : 1;
  for (size_t i = 0; i < value.mv_size; i += 512) last ^= ((const uint8_t *)value.mv_data)[i];
  (void)last;
}

static void walk_sound(const char *path) {
  struct db_page_visit visit = {fail_at_bad, count_entry, (void *)path};
  struct db_pages pages;
  ms_error err = {0};
  if (!db_map_pages(path, false, &pages, &err)) fail_msg("%s", err.message);
  assert_int_equal(db_walk_pages(&pages, &visit, NULL), DB_OURS);
  db_unmap_pages(&pages);
}

static void change_at_random(MDB_env *env, uint32_t *state, MDB_dbi tables[2]) {
  static uint8_t bytes[30000];
  MDB_txn *txn;
  assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
  for (uint32_t i = 0, n = 1 + draw(state, 40); i < n; i++) {
    uint32_t number = draw(state, 600), size = draw(state, 4) ? draw(state, 1500) : draw(state, sizeof bytes);
    uint8_t key[300] = {(uint8_t)(number * 7), (uint8_t)number, (uint8_t)(number >> 8)};
    MDB_val k = {3 + number % 290, key}, v = {size, bytes};
    MDB_dbi table = tables[draw(state, 2)];
    int code = draw(state, 5) < 2 ? mdb_del(txn, table, &k, NULL) : mdb_put(txn, table, &k, &v, 0);
    assert_true(code == 0 || code == MDB_NOTFOUND);
  }
  if (draw(state, 60) == 0) assert_int_equal(mdb_drop(txn, tables[draw(state, 2)], 0), 0);
  if (draw(state, 8) == 0)
    mdb_txn_abort(txn);
  else
    assert_int_equal(mdb_txn_commit(txn), 0);
}

/* What a snapshot shows is what LMDB does: all entries in order, and each key and what follows it. */
static void compare_reads(MDB_env *env, MDB_dbi table, uint32_t *state) {
  struct db db = {.env = env};
  struct db_cursor ours;
  MDB_cursor *theirs;
  MDB_txn *txn;
  MDB_val key, value, its_key, its_value;
  int code = 0, its_code = 0, entries = 0;
  uint64_t counted = 0;
  assert_int_equal(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
  assert_int_equal(db_take_snapshot(&db, txn), 0);
  assert_int_equal(mdb_cursor_open(txn, table, &theirs), 0);
  assert_int_equal(db_cursor_open(&db, txn, DB_RECORDS, &ours), 0);
  while (!code) {
    code = db_cursor_next(&ours, &key, &value);
    its_code = mdb_cursor_get(theirs, &its_key, &its_value, MDB_NEXT);
    assert_int_equal(code, its_code);
    if (code) break;
    entries++;
    assert_true(key.mv_size == its_key.mv_size && !memcmp(key.mv_data, its_key.mv_data, key.mv_size));
    assert_true(value.mv_size == its_value.mv_size && !memcmp(value.mv_data, its_value.mv_data, value.mv_size));
  }
  assert_true(code == MDB_NOTFOUND && entries > 50);
  assert_int_equal(db_count_entries(&db, txn, DB_RECORDS, &counted), 0);
  assert_int_equal(counted, entries);
  for (int i = 0; i < 5000; i++) {
    uint8_t bytes[3] = {(uint8_t)draw(state, 256), (uint8_t)draw(state, 256), (uint8_t)draw(state, 4)};
    key = its_key = (MDB_val){draw(state, 3) + 1, bytes};
    code = db_cursor_seek(&ours, &key, &value);
    its_code = mdb_cursor_get(theirs, &its_key, &its_value, MDB_SET_RANGE);
    assert_int_equal(code, its_code);
    if (code) continue;
    assert_true(key.mv_size == its_key.mv_size && !memcmp(key.mv_data, its_key.mv_data, key.mv_size));
    assert_true(value.mv_size == its_value.mv_size && !memcmp(value.mv_data, its_value.mv_data, value.mv_size));
    assert_int_equal(db_get(&db, txn, DB_RECORDS, &key, &its_value), 0);
    assert_ptr_equal(its_value.mv_data, value.mv_data);
  }
  assert_int_equal(db_get(&db, txn, DB_TASKS, &(MDB_val){1, "x"}, &value), MDB_NOTFOUND); /* there is no such table */
  mdb_cursor_close(theirs);
  assert_int_equal(db_drop_snapshot(&db, txn), 0);
  mdb_txn_abort(txn);
  db_forget_snapshots(&db);
}

static void passes_what_lmdb_writes(void **state) {
  struct fixture *x = *state;
  char path[120], copy[140];
  snprintf(path, sizeof path, "%s/random", x->folder);
  snprintf(copy, sizeof copy, "%s.copy", path);
  uint32_t random = 1;
  MDB_env *env;
  MDB_txn *txn;
  MDB_dbi tables[2];
  mdb_env_create(&env);
  mdb_env_set_maxdbs(env, 4);
  mdb_env_set_mapsize(env, 64 << 20);
  assert_int_equal(mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOTLS | MDB_NOSYNC, 0666), 0);
  assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
  assert_int_equal(mdb_dbi_open(txn, "meta", MDB_CREATE, &tables[0]), 0);
  assert_int_equal(mdb_dbi_open(txn, "records", MDB_CREATE, &tables[1]), 0);
  assert_int_equal(mdb_txn_commit(txn), 0);
  for (int i = 0; i < 1500 / EACH; i++) {
    change_at_random(env, &random, tables);
    walk_sound(path);
  }
  assert_int_equal(mdb_env_copy2(env, copy, MDB_CP_COMPACT), 0);
  walk_sound(copy);
  compare_reads(env, tables[1], &random);
  mdb_env_close(env);
}

/* ---- Spoiled files ---- */

static char *original;
static size_t original_size;

static void keep_original(struct fixture *x) {
  ms_error err = {0};
  char *large = malloc(20000);
  memset(large, 'x', 19999);
  large[19999] = 0;
  for (uint64_t i = 0; i < 30; i++) {
    struct db_record r = record(x, i, 1.0 + (double)i, DB_FAILED);
    r.reason = i % 10 == 3 ? large : "none";
    assert_true(db_put_record(x->db, &r, &err));
  }
  free(large);
  assert_true(db_compact(x->db, &err));
  db_close(x->db);
  x->db = NULL;
  FILE *file = fopen(x->path, "rb");
  original = malloc(1 << 20);
  original_size = fread(original, 1, 1 << 20, file);
  fclose(file);
}

static void write_spoiled(struct fixture *x, size_t at, uint8_t value) {
  FILE *file = fopen(x->path, "r+b");
  fseek(file, (long)at, SEEK_SET);
  fputc(value, file);
  fclose(file);
}

static bool count_short(void *data, const struct db_record *r) {
  *(int *)data += strlen(r->reason) < 30000;
  return true;
}

static void assert_refused(struct fixture *x, const ms_error *err) {
  if (err->code != MS_STORE || !strstr(err->message, x->path)) fail_msg("%d: %s", err->code, err->message);
}

/* One that is opened without a walk is refused where it is read or written, if it is not when it is opened. */
static void use_unwalked(struct fixture *x, bool write, int *opened, int *refused) {
  ms_error err = {0};
  int records = 0;
  struct db *db = db_open(x->path, (write ? 0 : DB_READ_ONLY) | DB_WALK_NONE, &err);
  bool read = db && db_each_record(db, NULL, NULL, count_short, &records, &err);
  int64_t problems = db ? db_check(db, NULL, &err) : -1;
  struct db_record r = record(x, 1000, 1.0, DB_MEASURED), found;
  bool found_one = db && db_find_module(db, &x->workload, r.target, 3, r.versions, &found, &err) >= 0;
  assert_true(records <= 30 && (!read || problems != 0 || records == 30));
  bool wrote = db && write && db_put_record(db, &r, &err);
  if (!db || !read || problems < 0 || !found_one || (write && !wrote)) assert_refused(x, &err);
  ++*(db && read && problems >= 0 ? opened : refused);
  db_close(db);
}

/* What it may do is refuse with a message, or read what is sound. */
static void use(struct fixture *x, bool write, int *opened, int *refused) {
  ms_error err = {0};
  int records = 0;
  if (write) {
    static char kept[1 << 20];
    FILE *file = fopen(x->path, "rb");
    size_t size = fread(kept, 1, sizeof kept, file);
    fclose(file);
    use_unwalked(x, true, opened, refused);
    file = fopen(x->path, "wb");
    assert_int_equal(fwrite(kept, 1, size, file), size);
    fclose(file);
  } else {
    use_unwalked(x, false, opened, refused);
  }
  struct db *db = db_open(x->path, write ? 0 : DB_READ_ONLY, &err);
  ++*(db ? opened : refused);
  if (!db) {
    assert_refused(x, &err);
    return;
  }
  assert_true(db_each_record(db, NULL, NULL, count_short, &records, &err));
  int64_t problems = db_check(db, NULL, &err);
  assert_true(problems >= 0 && records <= 30 && (problems > 0 || records == 30));
  if (write) {
    struct db_record r = record(x, 1000, 1.0, DB_MEASURED);
    assert_true(db_put_record(db, &r, &err));
    assert_true(db_delete_record(db, &r.id, &err));
    assert_true(db_check(db, NULL, &err) <= problems); /* what records share is mended by putting one */
  }
  db_close(db);
}

static void restore(struct fixture *x) {
  FILE *file = fopen(x->path, "wb");
  assert_int_equal(fwrite(original, 1, original_size, file), original_size);
  fclose(file);
}

static void spoiled_heads_of_pages_end_nothing(void **state) {
  struct fixture *x = *state;
  int opened = 0, refused = 0;
  keep_original(x);
  restore(x);
  for (size_t page = 0; page < original_size / 4096; page++)
    for (size_t at = page * 4096; at < page * 4096 + 65; at += EACH) {
      uint8_t was = (uint8_t)original[at];
      const uint8_t values[] = {0, 0xff, was ^ 1, was ^ 4, was ^ 0x80};
      for (size_t i = 0; i < sizeof values; i++) {
        if (values[i] == was) continue;
        write_spoiled(x, at, values[i]);
        use(x, false, &opened, &refused);
      }
      write_spoiled(x, at, was);
    }
  assert_true(opened > 100 && refused > 1000);
  free(original);
}

static void spoiled_bytes_anywhere_end_nothing(void **state) {
  struct fixture *x = *state;
  int opened = 0, refused = 0;
  uint32_t random = 7;
  keep_original(x);
  for (int i = 0; i < 600; i++) {
    restore(x);
    for (uint32_t n = 1 + draw(&random, 3); n > 0; n--)
      write_spoiled(x, draw(&random, (uint32_t)original_size), (uint8_t)draw(&random, 256));
    use(x, i % 10 == 0, &opened, &refused);
  }
  assert_true(opened > 100 && refused > 10);
  free(original);
}

int main(void) {
  const struct CMUnitTest tests[] = {STORED_TEST(passes_what_lmdb_writes),
                                     STORED_TEST(spoiled_heads_of_pages_end_nothing),
                                     STORED_TEST(spoiled_bytes_anywhere_end_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

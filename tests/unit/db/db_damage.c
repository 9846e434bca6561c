/* Damaged entries: each is named once, left out of what is read, and can be replaced or removed. Older stores, whose
 * entries have no checksum, are read. */
#include "unit/stored.h"

#include "db/file/store.h"
#include "db/storage/seal.h"

#include <math.h>

/* Changes a byte of the file wherever the text stands, which is in older pages too: the last of it. */
static void spoil(struct fixture *x, const char *text) {
  size_t length = strlen(text), size;
  char *bytes = malloc(1 << 20);
  int found = 0;
  db_close(x->db);
  FILE *file = fopen(x->path, "r+b");
  assert_non_null(file);
  size = fread(bytes, 1, 1 << 20, file);
  for (size_t i = 0; i + length <= size; i++) {
    if (memcmp(bytes + i, text, length) != 0) continue;
    fseek(file, (long)(i + length - 1), SEEK_SET);
    fputc(text[length - 1] ^ 1, file);
    found++;
  }
  assert_true(found > 0);
  fclose(file);
  free(bytes);
  x->db = open_store(x);
}

struct heard {
  int lines;
  char last[400];
};
static void hear(void *data, const char *line) {
  struct heard *h = data;
  h->lines++;
  snprintf(h->last, sizeof h->last, "%s", line);
}

static int64_t problems(struct fixture *x) {
  ms_error err = {0};
  return db_check(x->db, NULL, &err);
}

static void put_three(struct fixture *x, struct db_record out[3]) {
  static const char *const reasons[] = {"reason-one", "reason-two", "reason-three"};
  ms_error err = {0};
  for (int i = 0; i < 3; i++) {
    out[i] = record(x, 100 + (uint64_t)i, 1.0 + i, DB_FAILED);
    out[i].reason = reasons[i];
    assert_true(db_put_record(x->db, &out[i], &err));
  }
}

static void names_a_damaged_record(void **state) {
  struct fixture *x = *state;
  struct db_record three[3], found;
  struct heard heard = {0};
  ms_error err = {0};
  char id[DB_ID_TEXT];
  put_three(x, three);
  spoil(x, "reason-two");
  db_on_damage(x->db, hear, &heard);
  db_id_text(&three[1].id, id);
  assert_int_equal(count_records(x->db), 2);
  assert_int_equal(count_records(x->db), 2);
  assert_int_equal(heard.lines, 1);
  id[12] = 0;
  assert_non_null(strstr(heard.last, id));
  assert_non_null(strstr(heard.last, "record"));
  assert_int_equal(db_find_record(x->db, id, &found, &err), -1);
  assert_non_null(strstr(err.message, "damaged") ? strstr(err.message, id) : NULL);
  assert_int_equal(db_find_module(x->db, &x->workload, "llvm -mcpu=x", 101, "1", &found, &err), 0);
  assert_int_equal(problems(x), 1);
}

static void replaces_a_damaged_record(void **state) {
  struct fixture *x = *state;
  struct db_record three[3];
  ms_error err = {0};
  put_three(x, three);
  spoil(x, "reason-two");
  three[1].seconds = 9;
  assert_true(db_put_record(x->db, &three[1], &err));
  assert_int_equal(count_records(x->db), 3);
  assert_int_equal(problems(x), 0);
}

static void deletes_a_damaged_record(void **state) {
  struct fixture *x = *state;
  struct db_record three[3];
  db_id id;
  char text[DB_ID_TEXT];
  ms_error err = {0};
  put_three(x, three);
  spoil(x, "reason-three");
  db_id_text(&three[2].id, text);
  assert_int_equal(db_find_id(x->db, text, &id, &err), 1);
  assert_true(db_delete_record(x->db, &id, &err));
  assert_int_equal(count_records(x->db), 2);
  assert_int_equal(problems(x), 0);
}

static bool count_workload(void *data, const db_id *id, const char *name, uint64_t records) {
  (void)id, (void)name, (void)records;
  ++*(int *)data;
  return true;
}

static void restores_a_damaged_workload(void **state) {
  struct fixture *x = *state;
  struct heard heard = {0};
  ms_error err = {0};
  db_id id;
  int n = 0;
  spoil(x, "T.float32(1.0"); /* it parses, and is another function */
  db_on_damage(x->db, hear, &heard);
  assert_true(db_each_workload(x->db, count_workload, &n, &err));
  assert_int_equal(n, 0);
  assert_int_equal(heard.lines, 1);
  assert_non_null(strstr(heard.last, "workload"));
  assert_null(db_get_workload(x->db, &x->workload, &err));
  assert_non_null(strstr(err.message, "damaged"));
  assert_int_equal(problems(x), 1);
  assert_true(db_put_workload(x->db, x->ir, 1, &id, &err));
  assert_true(db_each_workload(x->db, count_workload, &n, &err));
  assert_int_equal(n, 1);
  assert_int_equal(problems(x), 0);
}

static bool count_intrinsic(void *data, const db_id *id, const char *text) {
  (void)id, (void)text;
  ++*(int *)data;
  return true;
}

static void restores_a_damaged_intrinsic(void **state) {
  static const char text[] =
      "### double.desc\n@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), "
      "\"float32\")):\n    for i in range(8):\n        with T.sblock(\"B\"):\n            v = T.axis.spatial(8, i)\n"
      "            B[v] = A[v] * T.float32(2)\n### double.impl\n@T.prim_func(s_tir=True)\n"
      "def f(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), \"float32\")):\n    for i in range(8):\n"
      "        B[i] = A[i] + A[i]\n";
  struct fixture *x = *state;
  ms_error err = {0};
  db_id id;
  int n = 0;
  assert_true(db_put_intrinsic(x->db, text, &id, &err));
  spoil(x, "A[v] * T.float32(2");
  assert_true(db_each_intrinsic(x->db, count_intrinsic, &n, &err));
  assert_int_equal(n, 0);
  assert_int_equal(problems(x), 1);
  assert_true(db_put_intrinsic(x->db, text, &id, &err));
  assert_true(db_each_intrinsic(x->db, count_intrinsic, &n, &err));
  assert_int_equal(n, 1);
  assert_int_equal(problems(x), 0);
}

/* A store of three records that the program of before there were checksums wrote. */
static void take_older_store(struct fixture *x) {
  char command[300];
  db_close(x->db);
  snprintf(command, sizeof command, "cp %s/unit/data/store_format_1.db %s", TEST_ROOT, x->path);
  assert_int_equal(system(command), 0);
  ms_error err = {0};
  x->db = db_open(x->path, DB_READ_ONLY, &err);
  if (!x->db) fail_msg("%s", err.message);
}

static void reads_older_stores(void **state) {
  struct fixture *x = *state;
  struct db_record r;
  ms_error err = {0};
  take_older_store(x);
  assert_int_equal(count_records(x->db), 3);
  assert_int_equal(problems(x), 0);
  db_close(x->db);
  x->db = open_store(x); /* which may write: what is there stays as it is */
  assert_int_equal(count_records(x->db), 3);
  assert_true(db_put_workload(x->db, x->ir, 1, &x->workload, &err));
  r = record(x, 1, 1.0, DB_MEASURED);
  assert_true(db_put_record(x->db, &r, &err));
  assert_int_equal(count_records(x->db), 4);
  assert_int_equal(problems(x), 0);
}

/* Without a checksum it is the trace that does not decode, and the function that does not parse. */
static void leaves_out_what_older_stores_have_damaged(void **state) {
  struct fixture *x = *state;
  int n = 0;
  ms_error err = {0};
  take_older_store(x);
  spoil(x, "@T.prim_func(s_tir=True");
  assert_true(db_each_workload(x->db, count_workload, &n, &err));
  assert_int_equal(n, 0);
  assert_int_equal(problems(x), 1);
}

/* ---- Numbers out of range, in a sound file of a stranger's ---- */

static int insert_unchecked(struct db *db, MDB_txn *txn, void *data) { return db_insert_record(db, txn, data); }

static void leaves_out_numbers_out_of_range(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  const struct {
    double seconds, low, high;
    uint64_t candidate;
    int64_t when;
    double fact;
    enum db_status status;
    bool sound;
  } cases[] = {{1, 1, 1, 1, 1, 1, DB_MEASURED, true},
               {1e-12, 0, INFINITY, ((uint64_t)1 << 53) - 1, 253402300799, 1e18, DB_MEASURED, true},
               {1e6, 1e6, 1e6, 0, 0, 0, DB_CENSORED, true},
               {0, 0, 0, 0, 0, 0, DB_FAILED, true},
               {INFINITY, 0, INFINITY, 0, 0, 0, DB_UNMEASURED, true},
               {0, 1, 1, 1, 1, 1, DB_MEASURED, false},
               {-0.0, 1, 1, 1, 1, 1, DB_CENSORED, false},
               {5e-324, 1, 1, 1, 1, 1, DB_MEASURED, false},
               {1e300, 1, 1, 1, 1, 1, DB_MEASURED, false},
               {NAN, 1, 1, 1, 1, 1, DB_MEASURED, false},
               {INFINITY, 1, 1, 1, 1, 1, DB_MEASURED, false},
               {-1, 1, 1, 1, 1, 1, DB_FAILED, false},
               {NAN, 1, 1, 1, 1, 1, DB_FAILED, false},
               {1, -1, 1, 1, 1, 1, DB_MEASURED, false},
               {1, NAN, 1, 1, 1, 1, DB_MEASURED, false},
               {1, INFINITY, 1, 1, 1, 1, DB_MEASURED, false},
               {1, 1, NAN, 1, 1, 1, DB_MEASURED, false},
               {1, 1, 1e300, 1, 1, 1, DB_MEASURED, false},
               {1, 1, 1, (uint64_t)1 << 53, 1, 1, DB_MEASURED, false},
               {1, 1, 1, UINT64_MAX, 1, 1, DB_MEASURED, false},
               {1, 1, 1, 1, -1, 1, DB_MEASURED, false},
               {1, 1, 1, 1, INT64_MAX, 1, DB_MEASURED, false},
               {1, 1, 1, 1, 1, -1, DB_MEASURED, false},
               {1, 1, 1, 1, 1, 1e300, DB_MEASURED, false}};
  int sound = 0, count_of_cases = (int)(sizeof cases / sizeof *cases);
  for (int i = 0; i < count_of_cases; i++) {
    struct db_record r = record(x, 500 + (uint64_t)i, cases[i].seconds, cases[i].status), put;
    r.low = cases[i].low, r.high = cases[i].high, r.candidate = cases[i].candidate, r.when = cases[i].when;
    db_append_fact(&r, &(struct db_fact){.name = "clock", .kind = DB_NUMBER, .number = cases[i].fact});
    put = r;
    put.module_hash += 1000;
    err.message[0] = 0;
    assert_int_equal(db_put_record(x->db, &put, &err), cases[i].sound);
    assert_true(cases[i].sound || (err.code == MS_INVALID_ARGUMENT && strstr(err.message, "must be from")));
    if (cases[i].sound) assert_true(db_delete_record(x->db, &put.id, &err));
    r.id.bytes[0] = (uint8_t)(i + 1);
    assert_true(db_write(x->db, insert_unchecked, &r, 0, "test", &err));
    free((void *)r.facts);
    sound += cases[i].sound;
  }
  assert_int_equal(count_records(x->db), sound);
  assert_int_equal(problems(x), count_of_cases - sound);
  db_close(x->db);
  x->db = NULL;
  struct db_repair done;
  assert_true(db_repair_file(x->path, NULL, &done, &err));
  free(done.backup);
  assert_true(done.needed && done.dropped == (uint64_t)(count_of_cases - sound) && done.records == (uint64_t)sound);
  x->db = open_store(x);
  assert_int_equal(problems(x), 0);
}

/* ---- Outlines of workloads: what lists say of them ---- */

static bool count_outline(void *data, const db_id *id, const struct db_outline *o) {
  assert_true(o->floats == 8 && o->integers == 0 && o->read_bytes == 32 && o->written_bytes == 32);
  assert_string_equal(o->arguments[0], "float32[8]");
  assert_string_equal(o->arguments[1], "float32[8]");
  assert_null(o->arguments[2]);
  assert_non_null(id);
  ++*(int *)data;
  return true;
}

static int outlines(struct db *db) {
  ms_error err = {0};
  int count = 0;
  assert_true(db_each_outline(db, count_outline, &count, &err));
  return count;
}

struct put {
  db_id id;
  const void *bytes; /* NULL: it is deleted */
  size_t size;
  int spoiled; /* a byte of what was put; -1: none */
};
static int put_bytes(struct db *db, MDB_txn *txn, void *data) {
  const struct put *p = data;
  MDB_val key = {sizeof p->id, (void *)p->id.bytes}, value;
  if (!p->bytes) return mdb_del(txn, db->outlines, &key, NULL);
  int code = db_put_sealed(txn, db->outlines, DB_OUTLINE, &p->id, p->bytes, p->size);
  if (code || p->spoiled < 0) return code;
  assert_int_equal(mdb_get(txn, db->outlines, &key, &value), 0);
  uint8_t *bytes = malloc(value.mv_size);
  memcpy(bytes, value.mv_data, value.mv_size);
  bytes[p->spoiled] ^= 1;
  value.mv_data = bytes;
  code = mdb_put(txn, db->outlines, &key, &value, 0);
  free(bytes);
  return code;
}

/* How many outlines there are, and problems, with such an entry; and none of them where it is made again. */
static void expect_outlined(struct fixture *x, struct put put, int shown, int problems_then) {
  ms_error err = {0};
  db_id id;
  assert_true(db_write(x->db, put_bytes, &put, 0, "a test", &err));
  assert_int_equal(outlines(x->db), shown);
  assert_int_equal(problems(x), problems_then);
  assert_true(db_put_workload(x->db, x->ir, 1, &id, &err));
  assert_int_equal(outlines(x->db), 1);
  assert_int_equal(problems(x), 0);
  assert_true(db_write(x->db, put_bytes, &put, 0, "a test", &err) && db_compact(x->db, &err));
  assert_int_equal(outlines(x->db), 1);
  assert_int_equal(problems(x), 0);
}

static void outlines_workloads(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  static char text[] = "mwo1________________________________float32[8]";
  struct put other = {.id = {{1}}, .bytes = text, .size = 4 + 32, .spoiled = -1};
  struct db_record r = record(x, 1, 1.0, DB_MEASURED);
  assert_int_equal(outlines(x->db), 1);
  assert_true(db_put_record(x->db, &r, &err) && db_delete_record(x->db, &r.id, &err));
  assert_int_equal(outlines(x->db), 1);
  expect_outlined(x, (struct put){.id = x->workload}, 0, 0);                      /* an older version's */
  expect_outlined(x, (struct put){x->workload, "mwo0", 4, -1}, 0, 0);             /* another's form */
  expect_outlined(x, (struct put){x->workload, "mwo1", 4, 5}, 0, 1);              /* its checksum is wrong */
  expect_outlined(x, (struct put){x->workload, "mwo1", 4, 0}, 0, 1);              /* it has none */
  expect_outlined(x, (struct put){x->workload, text, 4 + 32 - 1, -1}, 0, 1);      /* a number is cut */
  expect_outlined(x, (struct put){x->workload, text, sizeof text - 1, -1}, 0, 1); /* a text does not end */
  text[4 + 7] = (char)0x80;                                                       /* a number below 0 */
  expect_outlined(x, (struct put){x->workload, text, sizeof text, -1}, 0, 1);
  assert_true(db_write(x->db, put_bytes, &other, 0, "a test", &err)); /* of no workload */
  assert_int_equal(problems(x), 1);
  db_close(x->db);
  struct db_repair done;
  assert_true(db_repair_file(x->path, NULL, &done, &err) && done.needed);
  free(done.backup);
  x->db = open_store(x);
  assert_int_equal(outlines(x->db), 1);
  assert_int_equal(problems(x), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {STORED_TEST(leaves_out_numbers_out_of_range),
                                     STORED_TEST(names_a_damaged_record),
                                     STORED_TEST(replaces_a_damaged_record),
                                     STORED_TEST(deletes_a_damaged_record),
                                     STORED_TEST(restores_a_damaged_workload),
                                     STORED_TEST(restores_a_damaged_intrinsic),
                                     STORED_TEST(reads_older_stores),
                                     STORED_TEST(leaves_out_what_older_stores_have_damaged),
                                     STORED_TEST(outlines_workloads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The store: records and their indexes, reopening, strangers' files. */
#include "db/file/store.h"
#include "unit/stored.h"

#include <math.h>
#include <sys/stat.h>

static bool collect(void *data, const struct db_record *r) {
  double **at = data;
  *(*at)++ = r->status == DB_MEASURED ? r->seconds : -r->seconds;
  return true;
}

static void keeps_records_by_time(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  const double times[] = {3e-3, 1e-3, 2e-3};
  for (int i = 0; i < 3; i++) {
    struct db_record r = record(x, 100 + (uint64_t)i, times[i], DB_MEASURED);
    assert_true(db_put_record(x->db, &r, &err));
  }
  struct db_record failed = record(x, 200, 1e-9, DB_FAILED);
  assert_true(db_put_record(x->db, &failed, &err));
  db_close(x->db);
  x->db = open_store(x);
  double seen[8], *at = seen;
  assert_true(db_each_record(x->db, &x->workload, "llvm -mcpu=x", collect, &at, &err));
  assert_int_equal(at - seen, 4);
  assert_true(seen[0] == 1e-3 && seen[1] == 2e-3 && seen[2] == 3e-3 && seen[3] == -1e-9);
  assert_int_equal(db_check(x->db, stderr, &err), 0);
}

static void samples_records(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  for (int i = 0; i < 20; i++) {
    struct db_record r = record(x, 100 + (uint64_t)i, 1 + i, DB_MEASURED);
    assert_true(db_put_record(x->db, &r, &err));
  }
  double seen[20], *at = seen;
  assert_true(db_each_sampled(x->db, &x->workload, "llvm -mcpu=x", (struct db_sample){3, 5}, collect, &at, &err));
  assert_int_equal(at - seen, 7);
  const double expected[] = {1, 2, 3, 4, 9, 14, 19};
  assert_memory_equal(seen, expected, sizeof expected);
  at = seen;
  assert_true(db_each_sampled(x->db, NULL, NULL, (struct db_sample){0, 30}, collect, &at, &err));
  assert_true(at - seen == 1 && seen[0] == 1);
}

static void finds_by_prefix_and_module(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  struct db_record r = record(x, 7, 1.0, DB_MEASURED), found;
  assert_true(db_put_record(x->db, &r, &err));
  char text[DB_ID_TEXT];
  db_short_id(x->db, &r.id, text);
  assert_int_equal(strlen(text), 7);
  assert_int_equal(db_find_record(x->db, text, &found, &err), 1);
  assert_true(found.seconds == 1.0 && !strcmp(found.target, "llvm -mcpu=x"));
  assert_int_equal(db_find_module(x->db, &x->workload, "llvm -mcpu=x", 7, "1", &found, &err), 1);
  assert_int_equal(db_find_module(x->db, &x->workload, "llvm -mcpu=x", 7, "2", &found, &err), 0);
  assert_int_equal(db_find_record(x->db, "zz", &found, &err), -1);
  assert_int_equal(db_find_record(x->db, "00000000000000", &found, &err), 0);
}

static void replaces_a_record(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  struct db_record r = record(x, 7, 1.0, DB_MEASURED);
  assert_true(db_put_record(x->db, &r, &err));
  r.seconds = 0.5;
  assert_true(db_put_record(x->db, &r, &err));
  double seen[4], *at = seen;
  assert_true(db_each_record(x->db, NULL, NULL, collect, &at, &err));
  assert_int_equal(at - seen, 1);
  assert_true(seen[0] == 0.5);
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  assert_true(db_delete_record(x->db, &r.id, &err));
  assert_int_equal(db_check(x->db, stderr, &err), 0);
}

static void grows(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  size_t size = 1 << 20;
  char *large = malloc(size);
  memset(large, 'x', size - 1);
  large[size - 1] = 0;
  for (uint64_t i = 0; i < 40; i++) {
    struct db_record r = record(x, i, 1.0 + (double)i, DB_FAILED);
    r.reason = large;
    assert_true(db_put_record(x->db, &r, &err));
  }
  free(large);
  double seen[64], *at = seen;
  assert_true(db_each_record(x->db, NULL, NULL, collect, &at, &err));
  assert_int_equal(at - seen, 40);
  assert_true(db_compact(x->db, &err));
  assert_int_equal(db_check(x->db, stderr, &err), 0);
}

static off_t size_of(const char *path) {
  struct stat s;
  assert_int_equal(stat(path, &s), 0);
  return s.st_size;
}

static bool count_one(void *data, const struct db_record *r) { return r->seconds > 0 && ++*(size_t *)data; }

/* Keys are hashes, so that puts leave pages two thirds full. */
static void compacts_to_full_pages(void **state) {
  enum { RECORDS = 2500 };
  struct fixture *x = *state;
  ms_error err = {0};
  size_t seen = 0;
  assert_true(db_begin_batch(x->db, &err));
  for (uint64_t i = 0; i < RECORDS; i++) {
    struct db_record r = record(x, i, 1.0 + (double)i, DB_MEASURED);
    assert_true(db_put_record(x->db, &r, &err));
  }
  assert_true(db_end_batch(x->db, &err));
  off_t before = size_of(x->path);
  assert_true(before < RECORDS * 450); /* a batch writes no page of a new store twice */
  assert_true(db_compact(x->db, &err));
  assert_true(size_of(x->path) < before * 9 / 10);
  assert_true(size_of(x->path) <= RECORDS * 300);
  assert_true(db_each_record(x->db, &x->workload, "llvm -mcpu=x", count_one, &seen, &err));
  assert_int_equal(seen, RECORDS);
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  struct db_record more = record(x, RECORDS, 0.5, DB_MEASURED); /* into full pages */
  assert_true(db_put_record(x->db, &more, &err));
  assert_int_equal(db_check(x->db, stderr, &err), 0);
}

static void goes_through_json(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  struct db_record r = record(x, 7, 0.25, DB_MEASURED);
  r.high = INFINITY; /* of a censored one */
  assert_true(db_put_record(x->db, &r, &err));
  FILE *file = tmpfile();
  assert_true(db_export_json(x->db, file, &err));
  assert_true(db_delete_record(x->db, &r.id, &err));
  rewind(file);
  struct db_import import = {0};
  if (!db_import_json(x->db, file, "export", &import, &err)) fail_msg("%s", err.message);
  fclose(file);
  assert_true(import.added == 1 && !import.refused && !import.refusals);
  double seen[4], *at = seen;
  assert_true(db_each_record(x->db, NULL, NULL, collect, &at, &err));
  assert_true(at - seen == 1 && seen[0] == 0.25);
}

static struct db_record only_record(struct fixture *x, const db_id *id) {
  ms_error err = {0};
  struct db_record found;
  char text[DB_ID_TEXT];
  db_id_text(id, text);
  assert_int_equal(db_find_record(x->db, text, &found, &err), 1);
  return found;
}

/* What a record notes stays with it, in the file and through JSON; an import says itself what is unsafe. */
static void keeps_notes(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  for (int notes = 0; notes < 4; notes++) {
    struct db_record r = record(x, 300 + (uint64_t)notes, 0.25, DB_MEASURED), found;
    r.unsafe = notes & 1, r.busy = notes & 2;
    assert_true(db_put_record(x->db, &r, &err));
    found = only_record(x, &r.id);
    assert_true(found.unsafe == r.unsafe && found.busy == r.busy);
    FILE *file = tmpfile();
    assert_true(db_export_json(x->db, file, &err));
    assert_true(db_delete_record(x->db, &r.id, &err));
    rewind(file);
    struct db_import import = {0};
    assert_true(db_import_json(x->db, file, "export", &import, &err));
    fclose(file);
    assert_true(only_record(x, &r.id).busy == r.busy);
  }
}

static void expect_facts(const struct db_record *r) {
  struct db_fact f;
  size_t at = 0;
  assert_true(db_next_fact(r, &at, &f) && f.kind == DB_TEXT && !strcmp(f.name, "name") && !strcmp(f.text, "Fake 90"));
  assert_true(db_next_fact(r, &at, &f) && f.kind == DB_NUMBER && !strcmp(f.name, "clock") && f.number == 1.98e9);
  assert_true(db_next_fact(r, &at, &f) && f.kind == DB_BOOLEAN && !strcmp(f.name, "slowed") && f.number == 1);
  assert_false(db_next_fact(r, &at, &f));
}

/* A device's properties stay with a record, in the file and through JSON, beside intrinsics or without them. */
static void keeps_facts(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  struct db_record r = record(x, 400, 0.25, DB_MEASURED), found;
  db_append_fact(&r, &(struct db_fact){.name = "name", .kind = DB_TEXT, .text = "Fake 90"});
  db_append_fact(&r, &(struct db_fact){.name = "clock", .kind = DB_NUMBER, .number = 1.98e9});
  db_append_fact(&r, &(struct db_fact){.name = "lost", .kind = DB_NUMBER, .number = NAN});
  db_append_fact(&r, &(struct db_fact){.name = "slowed", .kind = DB_BOOLEAN, .number = 1});
  expect_facts(&r);
  assert_true(db_put_record(x->db, &r, &err));
  found = only_record(x, &r.id);
  expect_facts(&found);
  FILE *file = tmpfile();
  assert_true(db_export_json(x->db, file, &err) && db_delete_record(x->db, &r.id, &err));
  rewind(file);
  struct db_import import = {0};
  assert_true(db_import_json(x->db, file, "export", &import, &err));
  fclose(file);
  found = only_record(x, &r.id);
  expect_facts(&found);
  r.intrinsics = "0123456789abcdefgone", r.intrinsic_bytes = 16 + sizeof "gone";
  assert_true(db_put_record(x->db, &r, &err));
  found = only_record(x, &r.id);
  assert_int_equal(found.intrinsic_bytes, r.intrinsic_bytes);
  expect_facts(&found);
  free((void *)r.facts);
}

/* Records are written in the oldest format that holds them; cut anywhere, or of a later format, they are none. */
static void reads_formats(void **state) {
  struct fixture *x = *state;
  for (int format = 1; format <= 3; format++) {
    struct db_record r = record(x, 1, 0.25, DB_MEASURED), read;
    uint8_t *bytes;
    if (format >= 2) r.intrinsics = "0123456789abcdefgone", r.intrinsic_bytes = 16 + sizeof "gone";
    if (format >= 3) db_append_fact(&r, &(struct db_fact){.name = "registers", .kind = DB_NUMBER, .number = 32});
    size_t size = db_encode_record(&r, (void **)&bytes);
    assert_true(!memcmp(bytes, "msr", 3) && bytes[3] == '0' + format);
    assert_true(db_decode_record(bytes, size, &read) && read.fact_bytes == r.fact_bytes && read.seconds == 0.25);
    for (size_t cut = 0; cut < size; cut++) assert_false(db_decode_record(bytes, cut, &read));
    bytes[3] = '4'; /* packed ones are read by what they share */
    assert_false(db_decode_record(bytes, size, &read));
    free(bytes);
    free((void *)r.facts);
  }
}

static bool take_name(void *data, const db_id *id, const char *name, uint64_t records) {
  (void)id, (void)records;
  snprintf(data, 32, "%s", name);
  return true;
}

/* TVM's functions are all `main`: lists call them by what distinguishes them. */
static void names_workloads(void **state) {
  static const char *const bodies[][2] = {
      {"def main(A: T.Buffer((8,), \"float32\"), B: T.Buffer((1,), \"float32\"), C: T.Buffer((1,), \"float32\")):\n"
       "    for k in range(8):\n        with T.sblock(\"total\"):\n            r = T.axis.reduce(8, k)\n"
       "            with T.init():\n                B[0] = T.float32(0)\n            B[0] = B[0] + A[r]\n"
       "    with T.sblock(\"last\"):\n        C[0] = B[0]\n",
       "total"},
      {"def main(A: T.Buffer((8,), \"float32\")):\n    T.func_attr({\"global_symbol\": \"scale\"})\n"
       "    for i in range(8):\n        with T.sblock(\"A\"):\n            v = T.axis.spatial(8, i)\n"
       "            A[v] = A[v] * T.float32(2)\n",
       "scale"},
      {"def add(A: T.Buffer((8,), \"float32\")):\n    for i in range(8):\n        with T.sblock(\"A\"):\n"
       "            v = T.axis.spatial(8, i)\n            A[v] = A[v] + T.float32(2)\n",
       "add"}};
  struct fixture *x = *state;
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    char text[900], name[32] = "", path[120];
    ms_error err = {0};
    db_id id;
    snprintf(text, sizeof text, "@T.prim_func(s_tir=True)\n%s", bodies[i][0]);
    snprintf(path, sizeof path, "%s/named%zu", x->folder, i);
    struct tir *ir = tir_read(text, strlen(text), "f", &err);
    struct db *db = db_open(path, DB_CREATE, &err);
    if (!ir || !db || !db_put_workload(db, ir, 1, &id, &err)) fail_msg("%s", err.message);
    assert_true(db_each_workload(db, take_name, name, &err));
    assert_string_equal(name, bodies[i][1]);
    db_close(db);
    tir_free(ir);
  }
}

static void write_bytes(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void refuses_strange_files(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  char path[120];
  snprintf(path, sizeof path, "%s/other", x->folder);
  write_bytes(path, "SQLite format 3\0and more of it, long enough to look like a page", 60);
  assert_null(db_open(path, DB_CREATE, &err));
  assert_int_equal(err.code, MS_STORE);
  assert_non_null(strstr(err.message, "no store of msched"));
  assert_null(db_open(x->path, DB_CREATE, &err));
  assert_non_null(strstr(err.message, "open already"));
  snprintf(path, sizeof path, "%s/none", x->folder);
  assert_null(db_open(path, 0, &err));
  assert_non_null(strstr(err.message, "there is no store"));
}

static void refuses_a_truncated_file(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  db_close(x->db);
  x->db = NULL;
  assert_int_equal(truncate(x->path, 3 * 4096), 0);
  assert_null(db_open(x->path, 0, &err));
  assert_non_null(strstr(err.message, "cut short"));
}

static void reads_only(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  db_close(x->db);
  assert_int_equal(chmod(x->path, 0444), 0);
  x->db = db_open(x->path, DB_READ_ONLY, &err);
  assert_non_null(x->db);
  struct db_record r = record(x, 7, 0.25, DB_MEASURED);
  r.high = INFINITY; /* of a censored one */
  assert_false(db_put_record(x->db, &r, &err));
  assert_non_null(strstr(err.message, "reading only"));
}

/* What a function that doubles is described and done by; the second does it otherwise. */
static struct vm_intrinsics *doubling(const char *by) {
  char text[1200];
  ms_error err = {0};
  snprintf(
      text, sizeof text,
      "### double.desc\n@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), "
      "\"float32\")):\n    for i in range(8):\n        with T.sblock(\"B\"):\n            v = T.axis.spatial(8, i)\n"
      "            B[v] = A[v] * T.float32(2)\n"
      "### double.impl\n@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((8,), \"float32\"), B: T.Buffer((8,), "
      "\"float32\")):\n    for i in %s(8):\n        B[i] = A[i] + A[i]\n",
      by);
  struct vm_intrinsics *made = vm_read_intrinsics(text, "test", &err);
  if (!made) fail_msg("%s", err.message);
  return made;
}

static struct vm_trace *tensorizing(void) {
  static const char text[] = "return function(ms, sch, v)\n  v.b0 = sch:get_sblock(\"B\", \"main\")\n"
                             "  v.l1 = sch:get_loops(v.b0)\n  sch:tensorize(v.l1, \"double\", true)\nend\n";
  ms_error err = {0};
  struct vm_trace *trace = vm_read_lua(text, strlen(text), &err);
  if (!trace) fail_msg("%s", err.message);
  return trace;
}

static void keeps_intrinsics(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  struct vm_trace *trace = tensorizing();
  const char *const loops[] = {"range", "T.unroll"};
  for (uint64_t i = 0; i < 2; i++) {
    struct vm_intrinsics *table = doubling(loops[i]);
    struct db_record r = record(x, 100 + i, 1e-3, DB_MEASURED);
    assert_true(db_keep_intrinsics(x->db, trace, table, &r, &err) && r.intrinsic_bytes == 16 + sizeof "double");
    assert_true(db_put_record(x->db, &r, &err));
    free((void *)r.intrinsics);
    vm_intrinsics_free(table);
  }
  vm_trace_free(trace);
  db_close(x->db);
  x->db = open_store(x);
  for (uint64_t i = 0; i < 2; i++) {
    struct vm_intrinsics *table = vm_intrinsics_new(), *same = doubling(loops[i]), *other = doubling(loops[1 - i]);
    struct db_record found;
    assert_int_equal(db_find_module(x->db, &x->workload, "llvm -mcpu=x", 100 + i, "1", &found, &err), 1);
    assert_true(db_take_intrinsics(x->db, &found, table, &err) && db_take_intrinsics(x->db, &found, same, &err));
    char *text = vm_write_intrinsics(table, "double");
    assert_non_null(text);
    assert_true(!strstr(text, "T.unroll") == (i == 0));
    free(text);
    assert_false(db_take_intrinsics(x->db, &found, other, &err));
    assert_int_equal(err.code, MS_BAD_INTRINSIC);
    vm_intrinsics_free(table), vm_intrinsics_free(same), vm_intrinsics_free(other);
  }
  assert_int_equal(db_check(x->db, stderr, &err), 0);
}

/* A record that names what is not there says which it is. */
static void misses_an_intrinsic(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  struct vm_intrinsics *table = vm_intrinsics_new();
  struct db_record r = record(x, 1, 1e-3, DB_MEASURED);
  r.intrinsics = "0123456789abcdefgone", r.intrinsic_bytes = 16 + sizeof "gone";
  assert_true(db_put_record(x->db, &r, &err));
  assert_false(db_take_intrinsics(x->db, &r, table, &err));
  assert_int_equal(err.code, MS_STORE);
  assert_non_null(strstr(err.message, "`gone`"));
  assert_int_equal(db_check(x->db, NULL, &err), 1);
  vm_intrinsics_free(table);
}

/* Whether a record that is put now is refused, by a message that says so. */
static void refuses_to_write(struct fixture *x, const char *why) {
  ms_error err = {0};
  struct db_record r = record(x, 9, 1e-3, DB_MEASURED);
  assert_false(db_put_record(x->db, &r, &err));
  assert_int_equal(err.code, MS_STORE);
  assert_non_null(strstr(err.message, why));
}

/* What other programs do to an open store's file. */
static void sees_the_file_cut_short(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  MDB_txn *txn;
  assert_int_equal(truncate(x->path, 4096), 0);
  refuses_to_write(x, "was cut short while it was in use");
  assert_false(db_begin_read(x->db, &txn, &err));
  assert_non_null(strstr(err.message, "was cut short while it was in use"));
}

static void sees_the_file_moved(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  char moved[128];
  struct db_record r = record(x, 1, 1e-3, DB_MEASURED);
  snprintf(moved, sizeof moved, "%s/moved.db", x->folder);
  assert_int_equal(rename(x->path, moved), 0);
  assert_true(db_put_record(x->db, &r, &err));
  assert_int_equal(unlink(moved), 0);
  refuses_to_write(x, "was removed or replaced while it was in use");
  assert_int_equal(count_records(x->db), 1);
  FILE *other = fopen(x->path, "w");
  assert_non_null(other);
  fclose(other);
  refuses_to_write(x, "was removed or replaced while it was in use");
}

static void hear(void *data, const char *line) { snprintf(data, 200, "%s", line); }

/* A store that is not there reads as an empty one, and leaves nothing; the first write makes it, in a batch too; what
 * another has written meanwhile is read. */
static void makes_no_file_for_nothing(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  char folder[96], path[128], heard[200] = "";
  snprintf(folder, sizeof folder, "%s/new", x->folder);
  snprintf(path, sizeof path, "%s/store.db", folder);
  for (int i = 0; i < 2; i++) {
    struct db *db = db_open(path, DB_CREATE, &err);
    assert_non_null(db);
    assert_string_equal(db_path(db), path);
    assert_int_equal(count_records(db), 0);
    assert_false(db_compact(db, &err));
    assert_true(!i || (db_begin_batch(db, &err) && db_end_batch(db, &err)));
    db_close(db);
    assert_int_equal(access(folder, F_OK), -1);
  }
  assert_null(db_open(path, 0, &err));
  assert_non_null(strstr(err.message, "there is no store"));
  struct db *db = db_open(path, DB_CREATE, &err), *late = db_open(path, DB_CREATE, &err);
  assert_true(db && late);
  db_on_damage(db, hear, heard);
  db_id workload;
  struct db_record r = record(x, 1, 1e-3, DB_MEASURED);
  assert_true(db_begin_batch(db, &err) && db_put_workload(db, x->ir, 1, &workload, &err) &&
              db_put_record(db, &r, &err));
  assert_true(db_end_batch(db, &err));
  assert_int_equal(count_records(db), 1);
  assert_non_null(strstr(heard, "/new: made this folder, for the store"));
  assert_false(db_put_workload(late, x->ir, 1, &workload, &err)); /* a process opens a file once */
  assert_non_null(strstr(err.message, "has the store open already"));
  db_close(late);
  assert_int_equal(db_check(db, stderr, &err), 0);
  db_close(db);
  char command[128];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  assert_int_equal(system(command), 0);
}

/* A link to no file, or what may not be looked for, is not taken for a store that is not there. */
static void names_what_leads_to_no_store(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  char link[128], path[400];
  snprintf(link, sizeof link, "%s/link.db", x->folder);
  snprintf(path, sizeof path, "%s/%0300d.db", x->folder, 0);
  assert_int_equal(symlink("nowhere.db", link), 0);
  for (unsigned i = 0; i < 2; i++) {
    assert_null(db_open(link, i ? DB_CREATE : DB_READ_ONLY, &err));
    assert_non_null(strstr(err.message, "a link that leads to no file"));
    assert_null(db_open(path, i ? DB_CREATE : DB_READ_ONLY, &err));
    assert_non_null(strstr(err.message, "the store cannot be looked for: File name too long"));
  }
  assert_int_equal(unlink(link), 0);
}

static void joins_a_file_made_meanwhile(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  db_id workload;
  db_close(x->db);
  x->db = NULL;
  assert_int_equal(unlink(x->path), 0);
  struct db *late = db_open(x->path, DB_CREATE, &err), *first;
  assert_non_null(late);
  assert_int_equal(count_records(late), 0);
  assert_non_null(first = db_open(x->path, DB_CREATE, &err));
  struct db_record r = record(x, 1, 1e-3, DB_MEASURED);
  assert_true(db_put_workload(first, x->ir, 1, &workload, &err) && db_put_record(first, &r, &err));
  db_close(first);
  assert_int_equal(count_records(late), 1);
  r = record(x, 2, 2e-3, DB_MEASURED);
  assert_true(db_put_record(late, &r, &err));
  assert_int_equal(count_records(late), 2);
  x->db = late;
}

int main(void) {
  const struct CMUnitTest tests[] = {STORED_TEST(keeps_records_by_time),
                                     STORED_TEST(samples_records),
                                     STORED_TEST(finds_by_prefix_and_module),
                                     STORED_TEST(replaces_a_record),
                                     STORED_TEST(grows),
                                     STORED_TEST(compacts_to_full_pages),
                                     STORED_TEST(goes_through_json),
                                     STORED_TEST(refuses_strange_files),
                                     STORED_TEST(refuses_a_truncated_file),
                                     STORED_TEST(sees_the_file_cut_short),
                                     STORED_TEST(sees_the_file_moved),
                                     STORED_TEST(reads_only),
                                     STORED_TEST(keeps_intrinsics),
                                     STORED_TEST(misses_an_intrinsic),
                                     STORED_TEST(keeps_facts),
                                     STORED_TEST(reads_formats),
                                     STORED_TEST(names_workloads),
                                     STORED_TEST(makes_no_file_for_nothing),
                                     STORED_TEST(names_what_leads_to_no_store),
                                     STORED_TEST(joins_a_file_made_meanwhile),
                                     STORED_TEST(keeps_notes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

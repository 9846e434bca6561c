/* A store into another, and records that are put in groups. */
#include "db/storage/group.h"
#include "unit/stored.h"

struct two {
  struct fixture *x;
  char path[112];
  struct db *other;
};

static struct two open_other(struct fixture *x) {
  struct two t = {.x = x};
  ms_error err = {0};
  snprintf(t.path, sizeof t.path, "%s/other.db", x->folder);
  t.other = db_open(t.path, DB_CREATE, &err);
  if (!t.other) fail_msg("%s", err.message);
  return t;
}

static void put(struct db *db, struct db_record r) {
  ms_error err = {0};
  if (!db_put_record(db, &r, &err)) fail_msg("%s", err.message);
}

static struct db_merge merge(struct two *t) {
  struct db_merge out;
  ms_error err = {0};
  if (!db_merge(t->other, t->x->db, &out, &err)) fail_msg("%s", err.message);
  assert_int_equal(db_check(t->other, stderr, &err), 0);
  return out;
}

static bool find(struct db *db, struct fixture *x, uint64_t module, struct db_record *out) {
  ms_error err = {0};
  return db_find_module(db, &x->workload, "llvm -mcpu=x", module, "1", out, &err) > 0;
}

static bool count_outline(void *data, const db_id *id, const struct db_outline *o) {
  (void)id;
  assert_true(o->floats == 8);
  ++*(int *)data;
  return true;
}

/* More records than a group has, with all that they say; the store that they come from stays as it is. */
static void takes_everything(void **state) {
  struct fixture *x = *state;
  struct two t = open_other(x);
  struct db_record found;
  enum { COUNT = 150 };
  ms_error merged = {0};
  for (uint64_t i = 0; i < COUNT; i++) {
    struct db_record r = record(x, i, 1e-3 * (double)(i + 1), i % 3 ? DB_MEASURED : DB_FAILED);
    db_append_fact(&r, &(struct db_fact){.name = "clock", .number = (double)i});
    r.busy = i % 2, r.seed = i, r.candidate = 2 * i, r.reason = i % 3 ? "" : "it is wrong";
    put(x->db, r);
    free((void *)r.facts);
  }
  struct db_merge out = merge(&t);
  assert_true(out.added == COUNT && !out.known && !out.refused && !out.refusals);
  for (uint64_t i = 0; i < COUNT; i++) {
    struct db_fact f;
    size_t at = 0;
    assert_true(find(t.other, x, i, &found));
    assert_true(found.seconds == 1e-3 * (double)(i + 1) && found.status == (i % 3 ? DB_MEASURED : DB_FAILED));
    assert_true(found.busy == (i % 2 != 0) && found.seed == i && found.candidate == 2 * i && found.runs == 3);
    assert_string_equal(found.reason, i % 3 ? "" : "it is wrong");
    assert_true(db_next_fact(&found, &at, &f) && f.number == (double)i && !db_next_fact(&found, &at, &f));
    assert_int_equal(found.trace_bytes, x->trace_bytes);
    assert_memory_equal(found.trace, x->trace, x->trace_bytes);
  }
  out = merge(&t);
  assert_true(!out.added && out.known == COUNT && !out.refused);
  int outlines = 0;
  assert_true(db_each_outline(t.other, count_outline, &outlines, &merged));
  assert_int_equal(outlines, 1);
  ms_error err = {0};
  assert_int_equal(db_check(x->db, stderr, &err), 0);
  db_close(t.other);
}

static void keeps_the_later(void **state) {
  struct fixture *x = *state;
  struct two t = open_other(x);
  struct db_record ours = record(x, 1, 1.0, DB_MEASURED), theirs = record(x, 1, 2.0, DB_MEASURED), found;
  put(x->db, ours);
  merge(&t);
  theirs.when = ours.when + 1;
  put(t.other, theirs);
  struct db_merge out = merge(&t);
  assert_true(!out.added && out.known == 1 && find(t.other, x, 1, &found) && found.seconds == 2.0);
  theirs.when = ours.when - 1, theirs.pinned = true;
  put(t.other, theirs);
  out = merge(&t);
  assert_true(!out.added && out.known == 1 && find(t.other, x, 1, &found));
  assert_true(found.seconds == 1.0 && found.pinned);
  db_close(t.other);
}

/* A trace says itself whether it is safe, whatever the record says. */
static void judges_traces(void **state) {
  struct fixture *x = *state;
  struct two t = open_other(x);
  struct db_record r = record(x, 1, 1.0, DB_MEASURED), found;
  r.unsafe = true;
  put(x->db, r);
  struct db_record later = record(x, 2, 1.0, DB_MEASURED);
  later.trace = "a later version's", later.trace_bytes = 17;
  put(x->db, later);
  struct db_merge out;
  ms_error err = {0};
  assert_true(db_merge(t.other, x->db, &out, &err));
  assert_true(out.added == 1 && !out.known && !out.refused);
  assert_true(find(t.other, x, 1, &found) && !found.unsafe && !find(t.other, x, 2, &found));
  assert_true(x->db->damage.count == 1);
  db_close(t.other);
}

/* A record whose workload or tensor intrinsic is in neither store, or that cannot be, is refused alone. */
static void refuses_records(void **state) {
  struct fixture *x = *state;
  struct two t = open_other(x);
  struct db_record strange = record(x, 1, 1.0, DB_MEASURED), wrong = record(x, 2, 1.0, DB_MEASURED);
  struct db_record lacking = record(x, 3, 1.0, DB_MEASURED);
  strange.workload.bytes[0] ^= 1;
  wrong.low = 2, wrong.high = 1;
  lacking.intrinsics = "0123456789abcdefgone", lacking.intrinsic_bytes = 16 + sizeof "gone";
  put(x->db, strange), put(x->db, wrong), put(x->db, lacking), put(x->db, record(x, 4, 1.0, DB_MEASURED));
  struct db_merge out = merge(&t);
  assert_true(out.added == 1 && !out.known && out.refused == 3);
  assert_non_null(strstr(out.refusals, ": its workload is in neither store\n"));
  assert_non_null(strstr(out.refusals, ": `low`, 2, must not be above `high`, 1\n"));
  assert_non_null(strstr(out.refusals, ": a tensor intrinsic of it is in neither store\n"));
  free(out.refusals);
  struct db_record found;
  assert_true(find(t.other, x, 4, &found));
  db_close(t.other);
}

static void refuses_stores(void **state) {
  struct fixture *x = *state;
  struct two t = open_other(x);
  struct db_merge out;
  ms_error err = {0};
  put(x->db, record(x, 1, 1.0, DB_MEASURED));
  merge(&t);
  db_close(t.other);
  t.other = db_open(t.path, DB_READ_ONLY, &err);
  assert_non_null(t.other);
  assert_false(db_merge(t.other, x->db, &out, &err));
  assert_non_null(strstr(err.message, "for reading only"));
  db_close(t.other);
}

/* A group is not in the store before it is put; what its owner changes afterwards does not show. */
static void puts_groups(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  struct db_group *g = db_group_new(x->db);
  char reason[] = "as it was";
  struct db_record r = record(x, 1, 1.0, DB_FAILED), found;
  r.reason = reason;
  assert_true(db_group_add(g, &r, &err));
  reason[0] = 'X';
  r.id = db_record_id(&r);
  assert_true(db_group_has(g, &r.id) && !find(x->db, x, 1, &found));
  assert_true(db_group_put(g, &err) && !db_group_has(g, &r.id));
  assert_true(find(x->db, x, 1, &found));
  assert_string_equal(found.reason, "as it was");
  r = record(x, 2, -1.0, DB_MEASURED);
  assert_false(db_group_add(g, &r, &err));
  assert_int_equal(err.code, MS_INVALID_ARGUMENT);
  r = record(x, 3, 1.0, DB_MEASURED);
  assert_true(db_group_add(g, &r, &err));
  db_group_free(g);
  assert_false(find(x->db, x, 2, &found) || find(x->db, x, 3, &found));
  assert_int_equal(db_check(x->db, stderr, &err), 0);
}

/* The later of two lines of one record is kept, though both come before the first is put. */
static void imports_twins(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  for (int turn = 0; turn < 2; turn++) {
    struct db_record r = record(x, 1, 1.0, DB_MEASURED), found;
    FILE *file = tmpfile();
    for (int i = 0; i < 2; i++) {
      r.when = i == turn ? 9 : 5, r.seconds = r.low = r.high = (double)r.when, r.pinned = !i;
      put(x->db, r);
      assert_true(db_export_json(x->db, file, &err));
    }
    assert_true(find(x->db, x, 1, &found));
    assert_true(db_delete_record(x->db, &found.id, &err));
    rewind(file);
    struct db_import import = {0};
    assert_true(db_import_json(x->db, file, "export", &import, &err));
    fclose(file);
    assert_true(!import.refused && find(x->db, x, 1, &found) && found.seconds == 9);
    assert_true(found.pinned);
    assert_true(db_delete_record(x->db, &found.id, &err));
  }
}

/* A line of a record as other programs may write it: with spaces, escapes, other orders; and what is none. */
static void write_line(FILE *out, struct fixture *x, int module, const char *rest) {
  char id[DB_ID_TEXT];
  db_id_text(&x->workload, id);
  fprintf(
      out,
      "{\"record\": \"\", \"workload\": \"%s\", \"target\": \"llvm\", \"module\": \"%x\", \"status\": \"measured\", "
      "\"seconds\": 1.5, \"runs\": 1, \"versions\": \"1\", %s}\n",
      id, (unsigned)module, rest);
}

#define TRACE_TEXT "return function(ms, sch, v)\\nend"
static void imports_lines_of_others(void **state) {
  struct fixture *x = *state;
  ms_error err = {0};
  static const struct {
    const char *rest, *refusal; /* NULL: it is taken */
  } lines[] = {{"\"trace\": \"" TRACE_TEXT "\"", NULL},
               {"\"trace\" : \"\\u0072eturn function(ms, sch, v)\\r\\nend\"", NULL},
               {"\"facts\": {\"trace\": \"none\"}, \"trace\":\"" TRACE_TEXT "\"", NULL},
               {"\"trace\":\"" TRACE_TEXT "\", \"facts\": {\"trace\": \"none\"}", NULL},
               {"\"reason\": \"\\\"trace\\\":\\\"x\", \"trace\":\"" TRACE_TEXT "\"", NULL},
               {"\"trace\":\"" TRACE_TEXT "\", \"trace\":\"" TRACE_TEXT "\"", "duplicate object key near"},
               {"\"trace\":\"\\u0001\"", "expected return"},
               {"\"trace\":\"\"", "expected return"},
               {"\"trace\":\"" TRACE_TEXT, "column"},
               {"\"trace\":\"return \\x\"", "column"},
               {"\"trace\":\"a\tb\"", "column"},
               {"\"trace\": 5", "`trace` must be a string, not a number"},
               {"\"reason\": \"\"", "expected return"}};
  enum { LINES = sizeof lines / sizeof *lines, BEFORE = 1100 };
  for (int i = 0; i < LINES; i++) {
    struct db_import import = {0};
    FILE *file = tmpfile();
    for (int k = 0; k < BEFORE; k++) fputc('\n', file); /* more than are read at a time */
    write_line(file, x, 0x100 + i, lines[i].rest);
    rewind(file);
    assert_true(db_import_json(x->db, file, "lines", &import, &err));
    fclose(file);
    assert_int_equal(import.added, !lines[i].refusal);
    if (lines[i].refusal && (!import.refusals || strncmp(import.refusals, "lines:1101: ", 12) != 0 ||
                             !strstr(import.refusals, lines[i].refusal)))
      fail_msg("%s: %s", lines[i].rest, import.refusals);
    free(import.refusals);
  }
  int taken = 0;
  assert_true(db_each_record(x->db, NULL, NULL, count_record, &taken, &err));
  assert_int_equal(taken, 5);
  assert_int_equal(db_check(x->db, stderr, &err), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {STORED_TEST(takes_everything), STORED_TEST(keeps_the_later),
                                     STORED_TEST(judges_traces),    STORED_TEST(refuses_records),
                                     STORED_TEST(refuses_stores),   STORED_TEST(puts_groups),
                                     STORED_TEST(imports_twins),    STORED_TEST(imports_lines_of_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}

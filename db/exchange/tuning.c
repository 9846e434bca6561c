/* TVM's tuning records as text: the lines of MetaSchedule's database_tuning_record.json.
 *
 *   line   = [workload, record]                    record alone: of workload 0
 *   record = [trace, run_secs, target, args_info]  all but the trace may be null
 *
 * A run of 1e10 seconds is how TVM writes a failure. A target is an object, in older lines its text; one that is a
 * list, of the object's keys without their values, says nothing. */
#include "db/bounds.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static const double FAILED = 1e10;

enum { MOST_TARGET = 1399, MOST_RUNS = 1 << 20, MOST_ARGS = 4096 };

static bool fail(ms_error *err, const char *what) { return ms_fail(err, MS_BAD_RECORD, "%s", what); }

static void *make(size_t count, size_t size) {
  void *at = calloc(count + 1, size);
  if (!at) abort();
  return at;
}

/* ---- Reading ---- */

static bool read_runs(const json_t *list, struct db_tuning *out, ms_error *err) {
  size_t count = json_array_size(list);
  bool failed = !count;
  if (!json_is_null(list) && !json_is_array(list)) return fail(err, "the run times are no list");
  if (count > MOST_RUNS) return fail(err, "there are too many run times");
  out->seconds = make(count, sizeof *out->seconds);
  for (size_t i = 0; i < count; i++) {
    const json_t *item = json_array_get(list, i);
    double seconds = json_number_value(item);
    if (!json_is_number(item)) return ms_fail(err, MS_BAD_RECORD, "run time %zu is no number of seconds above 0", i);
    if (!db_is_run_time(seconds, DB_MEASURED) && !(seconds >= FAILED && isfinite(seconds)))
      return ms_fail(err, MS_BAD_RECORD,
                     "run time %zu must be above 0, from %g to %g seconds, or %g where it failed, not %g", i,
                     DB_LEAST_SECONDS, DB_MOST_SECONDS, FAILED, seconds);
    failed = failed || seconds >= FAILED;
    out->seconds[i] = seconds;
  }
  out->runs = failed ? 0 : (uint32_t)count;
  return true;
}

struct target_text {
  char at[MOST_TARGET + 1];
  size_t size;
  bool bad;
};

static void put_word(struct target_text *t, const char *word) {
  size_t length = strlen(word);
  for (size_t i = 0; i < length; i++) t->bad = t->bad || !isgraph((unsigned char)word[i]);
  if (t->bad || length > MOST_TARGET - t->size) {
    t->bad = true;
    return;
  }
  memcpy(t->at + t->size, word, length + 1);
  t->size += length;
  assert(t->size <= MOST_TARGET && !t->at[t->size]);
}

static void put_value(struct target_text *t, const json_t *value, bool nested) {
  char number[32];
  if (json_is_string(value)) {
    put_word(t, json_string_value(value));
  } else if (json_is_integer(value)) {
    snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    put_word(t, number);
  } else if (json_is_boolean(value)) {
    put_word(t, json_is_true(value) ? "1" : "0");
  } else if (json_is_array(value) && !nested) {
    for (size_t i = 0; i < json_array_size(value); i++) {
      if (i) put_word(t, ",");
      put_value(t, json_array_get(value, i), true);
    }
  } else {
    t->bad = true;
  }
}

static void put_option(struct target_text *t, const char *key, const json_t *value) {
  assert(t->size <= MOST_TARGET);
  if (t->size < MOST_TARGET) t->at[t->size++] = ' ';
  put_word(t, "-");
  put_word(t, key);
  put_word(t, "=");
  put_value(t, value, false);
}

static int compare_keys(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_among(const char *key, const char *const *keys, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!strcmp(key, keys[i])) return true;
  return false;
}

/* No options: what the kind implies. */
static bool is_implied(const char *key) {
  return is_among(key, (const char *const[]){"kind", "tag", "keys", "host"}, 4);
}

/* The names of the options: mcpu and num-cores in front, the others in order. The caller's to free(). */
static const char **order_options(json_t *object, size_t *count) {
  static const char *const in_front[] = {"mcpu", "num-cores"};
  const char **keys = make(json_object_size(object), sizeof *keys);
  size_t front = 0;
  for (size_t i = 0; i < 2; i++)
    if (json_object_get(object, in_front[i])) keys[front++] = in_front[i];
  *count = front;
  for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
    if (!is_implied(json_object_iter_key(at)) && !is_among(json_object_iter_key(at), in_front, 2))
      keys[(*count)++] = json_object_iter_key(at);
  qsort(keys + front, *count - front, sizeof *keys, compare_keys);
  return keys;
}

/* "KIND -mcpu=… -num-cores=… -KEY=VALUE…" */
static void put_target(struct target_text *t, json_t *object) {
  size_t count;
  const char **keys = order_options(object, &count);
  put_value(t, json_object_get(object, "kind"), true);
  t->bad = t->bad || !t->size;
  for (size_t i = 0; i < count; i++) put_option(t, keys[i], json_object_get(object, keys[i]));
  free(keys);
}

static bool read_target(json_t *j, struct db_tuning *out, ms_error *err) {
  struct target_text t = {.size = 0};
  if (json_is_null(j) || json_is_array(j)) return true;
  if (json_is_object(j)) {
    put_target(&t, j);
  } else if (json_is_string(j)) {
    const char *text = json_string_value(j);
    t.bad = !*text || *text == ' ' || strlen(text) > MOST_TARGET;
    for (const char *c = text; *c; c++) t.bad = t.bad || !isprint((unsigned char)*c);
    if (!t.bad) strcpy(t.at, text);
  } else {
    t.bad = true;
  }
  if (t.bad) return fail(err, "the target is no object of a kind and options");
  out->target = strdup(t.at);
  if (!out->target) abort();
  return true;
}

static bool read_tensor(const json_t *j, struct db_tensor *out, ms_error *err) {
  const char *kind = json_string_value(json_array_get(j, 0)), *type = json_string_value(json_array_get(j, 1));
  const json_t *shape = json_array_get(j, 2);
  tir_type parsed;
  if (json_array_size(j) != 3 || !kind || strcmp(kind, "TENSOR") != 0 || !type || !json_is_array(shape))
    return fail(err, "an argument is no [\"TENSOR\", type, shape]");
  if (!tir_type_parse(type, &parsed)) return fail(err, "an argument's type is not known");
  if (json_array_size(shape) > DB_MOST_RANK) return fail(err, "an argument has too many dimensions");
  tir_type_text(parsed, out->type);
  for (; out->rank < json_array_size(shape); out->rank++) {
    const json_t *extent = json_array_get(shape, out->rank);
    if (!json_is_integer(extent)) return fail(err, "an argument's extent is no integer");
    out->shape[out->rank] = json_integer_value(extent);
  }
  return true;
}

static bool read_args(const json_t *list, struct db_tuning *out, ms_error *err) {
  size_t count = json_array_size(list);
  if (!json_is_null(list) && !json_is_array(list)) return fail(err, "the arguments are no list");
  if (count > MOST_ARGS) return fail(err, "there are too many arguments");
  out->args = make(count, sizeof *out->args);
  for (; out->arg_count < count; out->arg_count++)
    if (!read_tensor(json_array_get(list, out->arg_count), &out->args[out->arg_count], err)) return false;
  return true;
}

static bool read_trace(const json_t *j, struct db_tuning *out, ms_error *err) {
  char *text = json_is_array(j) ? json_dumps(j, JSON_COMPACT) : NULL;
  if (!text) return fail(err, "the trace is no list");
  out->trace = vm_read_json(text, strlen(text), err);
  free(text);
  return out->trace != NULL;
}

static bool read_line(json_t *line, struct db_tuning *out, ms_error *err) {
  json_t *record = line, *number = json_array_get(line, 0);
  if (json_array_size(line) == 2) {
    if (json_is_string(number) && json_is_string(json_array_get(line, 1)))
      return fail(err, "this is a function of TVM's database_workload.json: --workload names its file");
    if (!json_is_integer(number) || json_integer_value(number) < 0)
      return fail(err, "the workload is no number from 0");
    out->workload = (uint64_t)json_integer_value(number);
    record = json_array_get(line, 1);
  }
  if (json_array_size(record) != 4) return fail(err, "a record is [trace, run times, target, arguments]");
  return read_runs(json_array_get(record, 1), out, err) && read_target(json_array_get(record, 2), out, err) &&
         read_args(json_array_get(record, 3), out, err) && read_trace(json_array_get(record, 0), out, err);
}

bool db_read_tuning(const char *text, size_t length, struct db_tuning *out, ms_error *err) {
  json_error_t why;
  json_t *line = json_loadb(text, length, JSON_REJECT_DUPLICATES, &why);
  memset(out, 0, sizeof *out);
  if (err) err->instruction = -1;
  bool done = line ? read_line(line, out, err) : ms_fail(err, MS_BAD_RECORD, "column %d: %s", why.column, why.text);
  json_decref(line);
  if (!done) db_clear_tuning(out);
  return done;
}

void db_clear_tuning(struct db_tuning *t) {
  vm_trace_free(t->trace);
  free(t->seconds);
  free(t->target);
  free(t->args);
  memset(t, 0, sizeof *t);
}

/* ---- Writing ---- */

/* What TVM says of a kind besides the options. */
static json_t *keys_of(const char *kind) {
  if (!strcmp(kind, "llvm") || !strcmp(kind, "c")) return json_pack("[s]", "cpu");
  return strcmp(kind, "cuda") != 0 ? json_array() : json_pack("[s, s]", "cuda", "gpu");
}

static json_t *write_value(const char *key, const char *value) {
  char *end;
  if (!strcmp(key, "mattr")) {
    json_t *list = json_array();
    for (size_t length; *value; value += length + (value[length] == ',')) {
      length = strcspn(value, ",");
      if (length) json_array_append_new(list, json_stringn(value, length));
    }
    return list;
  }
  errno = 0;
  long long number = strtoll(value, &end, 10);
  return *value && !*end && !errno ? json_integer(number) : json_string(value);
}

static json_t *write_target(const char *text) {
  if (!text) return json_null();
  char words[MOST_TARGET + 1], *rest = words, *word;
  snprintf(words, sizeof words, "%s", text);
  const char *kind = strsep(&rest, " ");
  json_t *target = json_pack("{s:s, s:s, s:o}", "kind", kind, "tag", "", "keys", keys_of(kind));
  json_t *options = json_object();
  while ((word = strsep(&rest, " ")) != NULL) {
    char *value = strchr(word, '=');
    if (!value) continue;
    *value++ = 0;
    word += strspn(word, "-");
    if (*word && !is_implied(word)) json_object_set_new(options, word, write_value(word, value));
  }
  size_t count;
  const char **keys = order_options(options, &count);
  for (size_t i = 0; i < count; i++) json_object_set(target, keys[i], json_object_get(options, keys[i]));
  free(keys);
  json_decref(options);
  return target;
}

static json_t *write_runs(const struct db_tuning *t) {
  json_t *list = json_array();
  assert(!t->runs || t->seconds);
  for (uint32_t i = 0; i < t->runs; i++) json_array_append_new(list, json_real(t->seconds[i]));
  if (!t->runs) json_array_append_new(list, json_real(FAILED));
  return list;
}

static json_t *write_args(const struct db_tuning *t) {
  if (!t->arg_count) return json_null();
  json_t *list = json_array();
  for (uint32_t i = 0; i < t->arg_count; i++) {
    json_t *shape = json_array();
    assert(t->args[i].rank <= DB_MOST_RANK);
    for (uint32_t d = 0; d < t->args[i].rank; d++) json_array_append_new(shape, json_integer(t->args[i].shape[d]));
    json_array_append_new(list, json_pack("[s, s, o]", "TENSOR", t->args[i].type, shape));
  }
  return list;
}

static bool is_known_to_tvm(const struct vm_trace *trace) {
  for (uint32_t i = 0; i < trace->steps->count; i++)
    if (vm_kind_info(trace->steps->instructions[i].kind)->own) return false;
  return true;
}

char *db_write_tuning(const struct db_tuning *t) {
  if (!is_known_to_tvm(t->trace)) return NULL;
  char *text = vm_write_json(t->trace);
  json_t *trace = json_loads(text, 0, NULL);
  free(text);
  if (!trace) return NULL; /* it holds a number that is not finite */
  json_t *line = json_pack("[I, [o, o, o, o]]", (json_int_t)t->workload, trace, write_runs(t), write_target(t->target),
                           write_args(t));
  text = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
  if (!text) abort();
  json_decref(line);
  return text;
}

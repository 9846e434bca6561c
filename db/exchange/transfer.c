/* Tuning records of TVM's into the store, replayed on their workloads, and out of it. */
#include "db/file/store.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char VERSIONS[] = "TVM"; /* that measured them: their lines do not say which */

/* ---- In ---- */

static bool same_extent(const struct tir *ir, tir_expr extent, int64_t expected) {
  return !tir_is_int(ir, extent) || tir_at(ir, extent)->imm == expected; /* one that is open may be any */
}

static bool same_tensor(const struct tir *ir, tir_buffer buffer, const struct db_tensor *arg) {
  assert(tir_is_buffer(ir, buffer));
  char text[24];
  if (!buffer) return false;
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (strcmp(tir_type_text(b->type, text), arg->type) != 0 || b->rank != arg->rank) return false;
  for (uint32_t d = 0; d < b->rank; d++)
    if (!same_extent(ir, ir->operands.at[b->shape + d], arg->shape[d])) return false;
  return true;
}

/* Whether the arguments are the function's. A record that does not say may be of any. */
static bool check_args(const struct db_workload *w, const struct db_tuning *t, ms_error *err) {
  struct tir_span params = w->ir->funcs.at[w->func].params;
  if (!t->arg_count) return true;
  if (params.count != t->arg_count)
    return ms_fail(err, MS_BAD_RECORD, "the record is of a function of %u arguments, and workload %llu has %u",
                   t->arg_count, (unsigned long long)t->workload, params.count);
  for (uint32_t i = 0; i < params.count; i++)
    if (!same_tensor(w->ir, w->ir->params.at[params.first + i].buffer, &t->args[i]))
      return ms_fail(err, MS_BAD_RECORD, "argument %u has another type or shape in workload %llu", i,
                     (unsigned long long)t->workload);
  return true;
}

/* An undecided draw would be resampled, and its time would be another module's. */
static bool check_decisions(const struct vm_trace *trace, ms_error *err) {
  for (uint32_t i = 0; i < trace->steps->count; i++) {
    const struct vm_instruction *at = &trace->steps->instructions[i];
    if (at->draw == VM_NO_DRAW || trace->decided[at->decision] == VM_DECIDED) continue;
    ms_fail(err, MS_BAD_RECORD, "%s has no decision of as many numbers as it gives", vm_kind_info(at->kind)->name);
    if (err) err->instruction = (int)i;
    return false;
  }
  return true;
}

static int compare_times(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The least and the largest of six runs hold the median in 97 of 100 cases; fewer bound it no closer than 95. */
static void set_times(struct db_tuning *t, struct db_record *r) {
  enum { BOUNDING = 6 };
  r->status = t->runs ? DB_MEASURED : DB_FAILED;
  r->reason = t->runs ? "" : "the record has no time";
  r->runs = t->runs;
  if (!t->runs) return;
  qsort(t->seconds, t->runs, sizeof *t->seconds, compare_times);
  r->seconds = (t->seconds[(t->runs - 1) / 2] + t->seconds[t->runs / 2]) / 2;
  r->low = t->runs >= BOUNDING ? t->seconds[0] : 0;
  r->high = t->runs >= BOUNDING ? t->seconds[t->runs - 1] : INFINITY;
}

/* Whether the store has the module already, from TVM, and as fast. */
static int is_known(struct db *db, const struct db_record *r, ms_error *err) {
  struct db_record old;
  int found = db_find_module(db, &r->workload, r->target, r->module_hash, r->versions, &old, err);
  if (found <= 0) return found;
  return r->status == DB_FAILED || (old.status == DB_MEASURED && old.seconds <= r->seconds);
}

static bool put(struct db *db, struct db_record *r, const struct vm_schedule *sch, bool *store, ms_error *err) {
  r->module_hash = tir_structural_hash(sch->ir, TIR_NONE);
  r->unsafe = !vm_trace_is_safe(&sch->trace);
  r->versions = VERSIONS;
  r->when = db_when(time(NULL));
  void *bytes = vm_write_binary(&sch->trace, &r->trace_bytes);
  r->trace = bytes;
  int known = is_known(db, r, err);
  bool done = known > 0 ||
              (!known && db_keep_intrinsics(db, &sch->trace, sch->intrinsics, r, err) && db_put_record(db, r, err));
  *store = !done;
  free((void *)r->intrinsics);
  free(bytes);
  return done;
}

/* The trace on the workload as the store has it, which a later replay will see. */
static bool replay(struct db *db, struct db_tuning *t, const struct vm_intrinsics *intrinsics, struct db_record *r,
                   bool *store, ms_error *err) {
  struct tir *ir = db_get_workload(db, &r->workload, err);
  *store = !ir;
  if (!ir) return false;
  struct vm_draws draws = {.mode = VM_REPAIR, .decisions = t->trace};
  struct vm_schedule *sch = vm_apply_with(ir, t->trace, intrinsics, &draws, err);
  bool done = sch && put(db, r, sch, store, err);
  vm_schedule_free(sch);
  tir_free(ir);
  return done;
}

static bool take(struct db *db, struct db_tuning *t, const struct db_import *import, bool *store, ms_error *err) {
  char name[1400];
  if (t->workload >= import->workload_count)
    return ms_fail(err, MS_BAD_RECORD,
                   "the record is of workload %llu, and %s%u given: --workload names each, in order",
                   (unsigned long long)t->workload, import->workload_count == 1 ? "only " : "", import->workload_count);
  const struct db_workload *w = &import->workloads[t->workload];
  if (!w->ir)
    return ms_fail(err, MS_BAD_RECORD, "workload %llu, which the record is of, cannot be read: %s",
                   (unsigned long long)t->workload, w->why);
  struct db_record r = {.target = t->target ? t->target : import->target ? import->target : ""};
  if (!check_args(w, t, err) || !check_decisions(t->trace, err)) return false;
  if (import->name_target && import->name_target(r.target, name, sizeof name)) r.target = name;
  set_times(t, &r);
  *store = true;
  if (!db_put_workload(db, w->ir, w->func, &r.workload, err)) return false;
  return replay(db, t, import->intrinsics, &r, store, err);
}

bool db_import_tuning(struct db *db, const char *line, size_t length, const struct db_import *import, bool *store,
                      ms_error *err) {
  struct db_tuning t;
  *store = false;
  if (!db_read_tuning(line, length, &t, err)) return false;
  bool done = take(db, &t, import, store, err);
  db_clear_tuning(&t);
  return done;
}

/* ---- Out ---- */

struct writing {
  FILE *out;
  const struct vm_intrinsics *registered; /* with TVM, besides its own */
  uint64_t number, *written, *left_out;
  struct db_tensor *args;
  uint32_t arg_count;
};

static bool describe(const struct tir *ir, tir_buffer buffer, struct db_tensor *out) {
  if (!buffer) return false;
  const struct tir_buffer_node *b = tir_buffer_at(ir, buffer);
  if (b->rank > DB_MOST_RANK) return false;
  tir_type_text(b->type, out->type);
  out->rank = b->rank;
  for (uint32_t d = 0; d < b->rank; d++) {
    tir_expr extent = ir->operands.at[b->shape + d];
    if (!tir_is_int(ir, extent)) return false;
    out->shape[d] = tir_at(ir, extent)->imm;
  }
  return true;
}

/* What TVM says of arguments: tensors of constant shape. Of others nothing is said. */
static void describe_args(const struct tir *ir, struct writing *w) {
  struct tir_span params = ir->funcs.at[tir_find_func(ir, "main")].params;
  w->args = calloc(params.count + 1, sizeof *w->args);
  if (!w->args) abort();
  for (w->arg_count = 0; w->arg_count < params.count; w->arg_count++)
    if (!describe(ir, ir->params.at[params.first + w->arg_count].buffer, &w->args[w->arg_count])) break;
  if (w->arg_count < params.count) w->arg_count = 0;
}

/* TVM performs the instructions of all records when it opens them: one that it cannot perform would keep it from the
 * others. Those of these groups it has itself. */
static bool tvm_tensorizes(const struct vm_trace *trace, const struct db_record *r,
                           const struct vm_intrinsics *registered) {
  static const char *const groups[] = {"dot_16x4_", "dot_4x4_", "dp4a_", "wmma_", "mma_"};
  const char *name;
  const struct tir *description, *implementation;
  for (uint32_t at = 0; (name = vm_next_intrinsic(trace, &at));) {
    bool has = vm_find_intrinsic(registered, name, &description, &implementation);
    for (size_t i = 0; i < sizeof groups / sizeof *groups && !db_names_intrinsic(r, name); i++)
      has = has || !strncmp(name, groups[i], strlen(groups[i]));
    if (!has) return false;
  }
  return true;
}

static bool write_record(void *data, const struct db_record *r) {
  struct writing *w = data;
  double seconds = r->seconds;
  struct db_tuning t = {.workload = w->number,
                        .seconds = &seconds,
                        .runs = r->status == DB_MEASURED,
                        .target = (char *)r->target,
                        .args = w->args,
                        .arg_count = w->arg_count};
  bool is_result = r->status == DB_MEASURED || r->status == DB_FAILED;
  t.trace = !is_result ? NULL : vm_read_binary(r->trace, r->trace_bytes, NULL);
  char *line = t.trace && tvm_tensorizes(t.trace, r, w->registered) ? db_write_tuning(&t) : NULL;
  if (line) fprintf(w->out, "%s\n", line);
  ++*(line ? w->written : w->left_out);
  free(line);
  vm_trace_free(t.trace);
  return !ferror(w->out);
}

bool db_export_tuning(struct db *db, const db_id *workload, uint64_t number, const struct vm_intrinsics *registered,
                      FILE *out, uint64_t *written, uint64_t *left_out, ms_error *err) {
  struct writing w = {.out = out, .registered = registered, .number = number, .written = written, .left_out = left_out};
  struct tir *ir = db_get_workload(db, workload, err);
  if (!ir) return false;
  describe_args(ir, &w);
  *written = *left_out = 0;
  bool done = db_each_record(db, workload, NULL, write_record, &w, err);
  errno = 0; /* what could not be written before, cannot be now */
  if (done && (fflush(out) != 0 || ferror(out)))
    done = ms_fail(err, MS_IO, "the records cannot be written: %s", strerror(errno ? errno : EIO));
  free(w.args);
  tir_free(ir);
  return done;
}

/* A store's entries into another: workloads, tensor intrinsics, then records, as they are kept. */
#include "db/ids.h"
#include "db/storage/group.h"
#include "db/storage/seal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct merging {
  struct db *to, *from;
  struct db_merge *out;
  struct db_group *group;
  struct vm_binary_reader *traces;
  struct db_ids intrinsics; /* of the last records, which the store has */
  db_id workload;           /* of the record before */
  bool asked, has;          /* whether it was looked for; whether the store has it */
  bool ok;                  /* false: the store that takes cannot be written */
  ms_error *err;
};

static bool has(const struct db_ids *ids, const db_id *id) {
  for (size_t i = 0; i < ids->count; i++)
    if (!memcmp(&ids->at[i], id, sizeof *id)) return true;
  return false;
}

/* One that cannot be read is left out, and named at the end. */
static bool merge_workload(struct merging *m, const db_id *id) {
  struct tir *ir = db_get_workload(m->from, id, NULL);
  if (!ir) {
    db_note_damage(m->from, DB_WORKLOAD, (MDB_val){sizeof id->bytes, (void *)id->bytes});
    return true;
  }
  db_id put;
  bool ok = db_put_workload(m->to, ir, tir_find_func(ir, "main"), &put, m->err);
  tir_free(ir);
  return ok;
}

static bool merge_intrinsic(void *data, const db_id *id, const char *text) {
  struct merging *m = data;
  db_id put;
  (void)id;
  m->ok = db_put_intrinsic(m->to, text, &put, m->err);
  return m->ok;
}

/* What is wrong with a record keeps it alone out. */
static bool refuse(struct merging *m, const struct db_record *r, const char *why) {
  char id[DB_ID_TEXT], *all = NULL;
  size_t size;
  db_id_text(&r->id, id);
  enum { SHOWN = 20 };
  if (m->out->refused++ >= SHOWN) return true;
  FILE *text = open_memstream(&all, &size);
  if (!text) abort();
  fprintf(text, "%srecord %.12s: %s\n", m->out->refusals ? m->out->refusals : "", id, why);
  fclose(text);
  free(m->out->refusals);
  m->out->refusals = all;
  return true;
}

static bool has_workload(struct merging *m, const db_id *id) {
  if (m->asked && !memcmp(&m->workload, id, sizeof *id)) return m->has;
  struct tir *workload = db_get_workload(m->to, id, NULL);
  m->asked = true;
  m->has = workload;
  m->workload = *id;
  tir_free(workload);
  return m->has;
}

static bool has_intrinsics(struct merging *m, const struct db_record *r) {
  size_t at = 0;
  db_id id;
  const char *name;
  MDB_txn *txn;
  while (db_next_intrinsic(r, &at, &id, &name)) {
    MDB_val text;
    int code;
    if (has(&m->intrinsics, &id)) continue;
    if (!db_begin_read(m->to, &txn, NULL)) return false;
    bool found = db_find_intrinsic(m->to, txn, &id, &text, &code);
    db_end_read(m->to, txn, code);
    if (!found) return false;
    db_add_id(&m->intrinsics, &id);
  }
  return true;
}

/* Of a record that both have the later stays, and of two of one time the one that comes; a pin stays in any case. */
static bool take(struct merging *m, struct db_record *r) {
  assert(m->ok); /* after a write that failed no record comes */
  struct db_record old;
  int found = db_find_module(m->to, &r->workload, r->target, r->module_hash, r->versions, &old, NULL);
  if (found > 0 && old.when > r->when) {
    m->out->known++;
    return true;
  }
  r->pinned |= found > 0 && old.pinned;
  if (!has_workload(m, &r->workload)) return refuse(m, r, "its workload is in neither store");
  if (!has_intrinsics(m, r)) return refuse(m, r, "a tensor intrinsic of it is in neither store");
  char wrong[DB_WRONG_TEXT];
  if (db_find_wrong_number(r, wrong)) return refuse(m, r, wrong);
  ++*(found > 0 ? &m->out->known : &m->out->added);
  m->ok = db_group_add(m->group, r, m->err);
  return m->ok;
}

static bool merge_record(void *data, const struct db_record *record) {
  struct merging *m = data;
  struct db_record r = *record;
  struct vm_trace *trace = vm_read_next_binary(m->traces, r.trace, r.trace_bytes, NULL);
  if (!trace) { /* a later version's */
    db_note_damage(m->from, DB_RECORD, (MDB_val){sizeof r.id.bytes, (void *)r.id.bytes});
    return true;
  }
  r.unsafe = !vm_next_is_safe(m->traces, trace);
  vm_trace_free(trace);
  return take(m, &r);
}

static bool merge_all(struct merging *m) {
  struct db_ids workloads = {0};
  bool ok = db_each_workload(m->from, db_collect_id, &workloads, m->err);
  for (size_t i = 0; ok && i < workloads.count; i++) ok = merge_workload(m, &workloads.at[i]);
  free(workloads.at);
  ok = ok && db_each_intrinsic(m->from, merge_intrinsic, m, m->err) && m->ok;
  ok = ok && db_each_record(m->from, NULL, NULL, merge_record, m, m->err) && m->ok;
  return ok && db_group_put(m->group, m->err);
}

bool db_merge(struct db *to, struct db *from, struct db_merge *out, ms_error *err) {
  assert(to != from && out);
  *out = (struct db_merge){0};
  if (!db_begin_batch(to, err)) return false;
  struct merging m = {.to = to, .from = from, .out = out, .ok = true, .err = err};
  m.group = db_group_new(to);
  m.traces = vm_binary_reader_new();
  bool ok = merge_all(&m);
  db_group_free(m.group);
  vm_binary_reader_free(m.traces);
  free(m.intrinsics.at);
  bool kept = db_end_batch(to, ok ? err : NULL);
  return ok && kept;
}

/* Entries as they are read. */
#include "db/bounds.h"
#include "delta.h"
#include "packed.h"
#include "seal.h"

#include <string.h>

static bool is_id(MDB_val key, const db_id *id) {
  return key.mv_size == sizeof id->bytes && !memcmp(key.mv_data, id->bytes, sizeof id->bytes);
}

static bool decodes(const struct db_record *r) {
  ms_error err = {.brief = true};
  struct vm_trace *trace = vm_read_binary(r->trace, r->trace_bytes, &err);
  vm_trace_free(trace);
  return trace;
}

/* A trace that was sealed decoded once: to decode it takes far longer than to check the seal. */
const char *db_read_record(struct db_parts *parts, MDB_val key, MDB_val value, struct db_record *out) {
  memset(out, 0, sizeof *out);
  enum db_seal seal = db_unseal(DB_RECORD, &key, &value);
  if (seal == DB_BROKEN) return "its checksum is wrong";
  bool packed = db_is_packed(value.mv_data, value.mv_size);
  if (packed && seal != DB_SEALED) return "it has no checksum";
  const char *missing = packed ? db_unpack_record(parts, value.mv_data, value.mv_size, out) : NULL;
  if (missing) return missing;
  if (!packed && !db_decode_record(value.mv_data, value.mv_size, out)) return "it does not decode";
  char wrong[DB_WRONG_TEXT];
  if (db_find_out_of_range(out, wrong)) return "a number of it is out of its range";
  if (!is_id(key, &out->id)) return "it is kept under another id than its own";
  return seal == DB_SEALED || decodes(out) ? NULL : "its trace does not decode";
}

static bool parses(const struct db_workload_text *w) {
  ms_error err = {.brief = true};
  struct tir *ir = tir_read(w->text, w->length, "workload", &err);
  bool ok = ir && tir_find_func(ir, "main");
  tir_free(ir);
  return ok;
}

const char *db_read_workload_entry(MDB_val key, MDB_val value, struct db_workload_text *out) {
  enum db_seal seal = db_unseal(DB_WORKLOAD, &key, &value);
  if (seal == DB_BROKEN) return "its checksum is wrong";
  const char *end = memchr(value.mv_data, 0, value.mv_size);
  if (key.mv_size != sizeof(db_id) || !end) return "it does not decode";
  out->name = value.mv_data;
  out->text = end + 1;
  out->length = value.mv_size - (size_t)(end + 1 - out->name);
  return seal == DB_SEALED || parses(out) ? NULL : "it does not parse";
}

const char *db_read_part_entry(char kind, MDB_val key, MDB_val value) {
  enum db_seal seal = db_unseal(kind, &key, &value);
  if (seal != DB_SEALED) return seal == DB_BROKEN ? "its checksum is wrong" : "it has no checksum";
  db_id id = db_content_id(value.mv_data, value.mv_size);
  if (kind == DB_CONTEXT && !is_id(key, &id)) return "it is another than its id says";
  if (kind == DB_CONTEXT && !db_is_context(value.mv_data, value.mv_size)) return "it does not decode";
  return key.mv_size == sizeof id && value.mv_size <= DELTA_MOST ? NULL : "it does not decode";
}

const char *db_read_intrinsic_entry(MDB_val key, MDB_val *value) {
  enum db_seal seal = db_unseal(DB_INTRINSIC, &key, value);
  if (seal == DB_BROKEN) return "its checksum is wrong";
  db_id id = db_content_id(value->mv_data, value->mv_size); /* it is kept by content */
  return is_id(key, &id) ? NULL : "its text is another than its id says";
}

/* Lines of JSON (RFC 8259) taken apart: what a store's lines need, bounded. Internal to db. */
#ifndef MSCHED_DB_JSON_H
#define MSCHED_DB_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum db_json_kind {
  DB_JSON_STRING,
  DB_JSON_INTEGER,
  DB_JSON_REAL,
  DB_JSON_TRUE,
  DB_JSON_FALSE,
  DB_JSON_NULL,
  DB_JSON_LIST,
  DB_JSON_OBJECT
};

struct db_json_value {
  enum db_json_kind kind;
  const char *key; /* of a member of an object, else "" */
  size_t key_length;
  const char *text; /* of a string: UTF-8 without zeros; else "" */
  int64_t integer;
  double number;  /* of integers, too */
  uint32_t count; /* of the values that follow which it holds, theirs included */
};

/* What a line holds, in the line's order: the first value is the whole. {0} is empty; valid until the next is read. */
struct db_json {
  struct db_json_value *at;
  uint32_t count, room;
  char *texts;
  size_t text_room;
};

/* Reads a text that ends by a zero. False: it is no JSON, or out of bounds: nested more than 32 deep, an object of more
 * than 1,024 members or with a key twice, more than 65,536 values. */
bool db_json_read(struct db_json *json, const char *text, size_t length);
void db_json_free(struct db_json *json);

/* An object's member; NULL: it has none of that name, or is no object, or NULL. */
const struct db_json_value *db_json_get(const struct db_json_value *object, const char *key);
/* The text of a member that is a string, else "". */
const char *db_json_text(const struct db_json_value *object, const char *key);
/* The first value that an object or list holds, or the one behind; NULL: there is no more. */
const struct db_json_value *db_json_first(const struct db_json_value *holder);
const struct db_json_value *db_json_next(const struct db_json_value *holder, const struct db_json_value *at);

#endif

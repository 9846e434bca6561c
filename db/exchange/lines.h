/* Lines of an import, parsed ahead of those that are put. Internal to db. */
#ifndef MSCHED_DB_LINES_H
#define MSCHED_DB_LINES_H

#include "db/db.h"
#include "json.h"

enum { DB_REFUSED_TEXT = 200 };

struct db_line {
  char *text; /* with a zero behind its bytes */
  size_t length, room;
  struct db_json json; /* of a line that is neither blank nor a list */
  bool is_json;        /* else `refused` says why */
  char refused[DB_REFUSED_TEXT];
  void *trace; /* of an object that is a record: binary form; NULL: `why` is filled */
  size_t trace_bytes;
  bool unsafe;
  ms_error why;
};

/* Reads `in` in blocks, the next of which other threads parse while the lines of one are taken. */
struct db_lines *db_lines_new(FILE *in);
void db_lines_free(struct db_lines *lines);
/* The next line, valid until the call after it; NULL: there is none. */
struct db_line *db_lines_next(struct db_lines *lines);

#endif

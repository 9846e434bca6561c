/* The fastest records of a task, as its summary keeps them: what lists show of each. Internal to db. */
#ifndef MSCHED_DB_BESTS_H
#define MSCHED_DB_BESTS_H

#include "db/bytes.h"
#include "db/file/store.h"

/* The first of the task's measured records in the order of the index of times, whatever their number; {0}: none. */
struct bests {
  uint32_t count;
  struct best {
    db_id id;
    double seconds, limit_seconds; /* the latter 0: the record has no limit */
    uint8_t notes;                 /* BEST_… */
    uint8_t versions, limit;       /* of the texts */
  } at[DB_MOST_BESTS];
  char *texts[2 * DB_MOST_BESTS]; /* NULL: not in use */
};
enum { BEST_UNSAFE = 1, BEST_BUSY = 2, BEST_PINNED = 4, BEST_ORDERED = 8, BEST_NOTES = 16 };

void bests_clear(struct bests *bests);
/* The limit that a record has, as facts of it say. False: it has none. */
bool bests_limit(const struct db_record *record, const char **name, double *seconds);
/* Of one task: `removed` goes, `added` comes in its place; NULL: none does. complete: the list has all measured records
 * of the task. */
void bests_change(struct bests *bests, const struct db_record *removed, const struct db_record *added, bool complete);
/* Behind the last; false: no more are taken, and those behind it are not either. */
bool bests_append(struct bests *bests, const struct db_record *record);
void bests_write(struct byte_writer *w, const struct bests *bests);
/* A stranger's bytes. False: they are none; *out is the caller's to clear all the same. */
bool bests_read(struct byte_reader *r, struct bests *out);
/* Of bytes that bests_write made, without reading them: how many they list; whether bests_change would change what they
 * list. */
uint32_t bests_count(const void *bytes, size_t size);
bool bests_touch(const void *bytes, size_t size, const struct db_record *removed, const struct db_record *added,
                 bool complete);
bool bests_equal(const struct bests *a, const struct bests *b);

#endif

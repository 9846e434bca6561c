/* The pages of an LMDB file, read without LMDB, which asserts or runs astray on those that are damaged. A file is
 * looked at here before it is opened there. Internal to db. */
#ifndef MSCHED_DB_PAGES_H
#define MSCHED_DB_PAGES_H

#include "store.h"

/* One of LMDB's tables, as it stands in a meta page or in the table of tables. */
struct db_tree {
  uint32_t pad;
  uint16_t flags, depth;
  uint64_t branches, leaves, overflows, entries, root;
};

struct db_pages {
  const uint8_t *at; /* mapped; NULL: the file is empty */
  size_t bytes;
  uint32_t page;  /* bytes of each */
  uint64_t count; /* of the snapshot and in the file */
  uint64_t named; /* of the snapshot: free pages at its end may never have been written */
  uint64_t txn;   /* of the snapshot */
  bool lost;      /* a meta page is damaged: this may be the older snapshot */
  struct db_tree free, main;
};

/* Maps the file and reads its newer snapshot. damaged: one of its two meta pages suffices. */
bool db_map_pages(const char *path, bool damaged, struct db_pages *out, ms_error *err);
/* Takes the snapshot of a transaction. False: it is gone from the meta pages. */
bool db_select_snapshot(struct db_pages *pages, uint64_t txn);
void db_unmap_pages(struct db_pages *pages);
bool db_refuse_cut(const char *path, const struct db_pages *pages, ms_error *err); /* returns false */

extern const char db_page_behind_end[]; /* why a page is bad that names one which the file is too short for */
struct db_page_visit {
  bool (*bad)(void *data, uint64_t page, const char *why);                  /* returns whether to go on */
  void (*entry)(void *data, const char *table, MDB_val key, MDB_val value); /* of sound pages; or NULL */
  void *data;
};
enum db_owner { DB_OURS, DB_NEW, DB_STRANGE };
enum db_use { DB_UNUSED, DB_USED, DB_BAD };
/* Walks every table of the snapshot: page numbers, kinds, bounds, order of keys, counts, and that each page is used or
 * free, once. used: a db_use a page, which the caller frees; pages of the free list are used. NULL: nobody asks. */
enum db_owner db_walk_pages(const struct db_pages *pages, const struct db_page_visit *visit, uint8_t **used);
/* Shows what looks like an entry of the page, whatever is wrong with it: the one who is shown it judges it. */
void db_scan_page(const struct db_pages *pages, uint64_t page, void (*entry)(void *data, MDB_val key, MDB_val value),
                  void *data);

#endif

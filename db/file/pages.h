/* The pages of an LMDB file, read without LMDB, which asserts or runs astray on those that are damaged. A file is
 * looked at here before it is opened there. Internal to db. */
#ifndef MSCHED_DB_PAGES_H
#define MSCHED_DB_PAGES_H

#include "store.h"

#include <string.h>

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

/* ---- One page */

#define DB_NO_PAGE UINT64_MAX                        /* the root of an empty tree */
static inline uint64_t db_get64(const uint8_t *at) { /* at any address */
  uint64_t x;
  memcpy(&x, at, sizeof x);
  return x;
}

struct db_node {
  const uint8_t *key;
  uint32_t key_size;
  uint64_t child;       /* of a branch */
  const uint8_t *value; /* of a leaf: in the node, */
  uint64_t overflow;    /* or there, if not 0 */
  uint64_t value_size;
  uint16_t flags;
  uint32_t size; /* of the node */
};
/* Keys of a page are from the least to those below `above`; NULL: there is none. Of a branch the first key stands for
 * all that are less. */
struct db_bounds {
  const uint8_t *least, *above;
  uint32_t least_size, above_size;
};
enum { DB_DEEPEST = 32 };                    /* pages from a root to a leaf */
enum { DB_BIG_VALUE = 1, DB_SUB_TABLE = 2 }; /* flags of nodes */
/* NULL, or what is wrong with a page that the file has: first its head, then its nodes and their keys. Keys of the free
 * list are numbers. */
const char *db_check_head(const struct db_pages *pages, uint64_t number, bool leaf, bool free_list);
const char *db_check_nodes(const struct db_pages *pages, uint64_t number, bool leaf, bool free_list,
                           struct db_bounds bounds);
/* Of a page whose nodes were checked: whether its keys are within the bounds. */
const char *db_check_place(const struct db_pages *pages, uint64_t number, bool leaf, struct db_bounds bounds);
uint32_t db_count_nodes(const uint8_t *page);
/* The ith node. False: it leaves the page, whatever was checked before. */
bool db_read_node(const struct db_pages *pages, const uint8_t *page, uint32_t i, bool leaf, struct db_node *out);
/* Finds a value that has pages of its own, whose number is *count, else 0. NULL, or what is wrong. */
const char *db_read_value(const struct db_pages *pages, struct db_node *node, uint64_t *count);
int db_compare_keys(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size);
const char *db_why_missing(const struct db_pages *pages, uint64_t number); /* a page that is not in the file */
/* The tree of a table, which a node of the table of tables describes. False: it describes none. */
bool db_read_tree(const struct db_node *node, struct db_tree *out);
const char *db_check_tree(const struct db_tree *tree, bool free_list); /* NULL, or what is wrong */

/* ---- A file */

/* Maps the file and reads its newer snapshot. damaged: one of its two meta pages suffices. */
bool db_map_pages(const char *path, bool damaged, struct db_pages *out, ms_error *err);
/* Takes the snapshot of a transaction. False: it is gone from the meta pages. */
bool db_select_snapshot(struct db_pages *pages, uint64_t txn);
void db_unmap_pages(struct db_pages *pages);
bool db_refuse_cut(const char *path, const struct db_pages *pages, ms_error *err); /* returns false */

/* fail.c: why a page is bad that names one which the file is too short for */
extern const char db_page_behind_end[];
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

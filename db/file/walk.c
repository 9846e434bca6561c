/* Walks all trees of an LMDB file: every page is looked at, and used once. */
#include "pages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES = 11, LEAST_TABLES = 2 }; /* that make a file ours, where one may be damaged */

struct table {
  struct db_tree tree;
  uint64_t from; /* the page that describes it */
  bool there;
};

struct walk {
  const struct db_pages *pages;
  const struct db_page_visit *visit;
  uint8_t *used;
  const char *table;
  struct db_tree tree, found; /* what the table says of itself, and what is there */
  struct table tables[TABLES];
  unsigned ours, others; /* how many tables */
  bool stop;
};

static void bad(struct walk *w, uint64_t page, const char *why) {
  if (page < w->pages->count) w->used[page] = DB_BAD;
  if (!w->stop && w->visit->bad) w->stop = !w->visit->bad(w->visit->data, page, why);
}

/* Takes a page into use: it is there, and nothing else uses it. */
static bool claim(struct walk *w, uint64_t from, uint64_t page) {
  if (page < 2 || page >= w->pages->count) return bad(w, from, db_why_missing(w->pages, page)), false;
  if (w->used[page]) return bad(w, page, "it is used twice"), false;
  w->used[page] = DB_USED;
  return true;
}

/* The ith node of a page whose packing was checked. */
static struct db_node sound_node(const struct db_pages *p, const uint8_t *page, uint32_t i, bool leaf) {
  struct db_node n = {0};
  bool there = db_read_node(p, page, i, leaf, &n);
  assert(there);
  (void)there;
  return n;
}

static bool take_overflow(struct walk *w, uint64_t from, struct db_node *n) {
  uint64_t pages;
  const char *why = db_read_value(w->pages, n, &pages);
  if (why) return bad(w, from, why), false;
  for (uint64_t i = 0; i < pages; i++)
    if (!claim(w, from, n->overflow + i)) return false;
  w->found.overflows += pages;
  return true;
}

static const char *const table_names[TABLES] = {"meta",    "workloads",  "contexts", "sketches", "records", "times",
                                                "modules", "intrinsics", "tasks",    "outlines", "prefixes"};

/* Of the table of tables: walked when that is. */
static void note_table(struct walk *w, uint64_t from, const struct db_node *n) {
  struct db_tree tree;
  bool described = db_read_tree(n, &tree);
  for (size_t i = 0; described && i < TABLES; i++) {
    if (n->key_size != strlen(table_names[i]) || memcmp(n->key, table_names[i], n->key_size) != 0) continue;
    w->tables[i] = (struct table){tree, from, true};
    w->ours++;
    return;
  }
  w->others++;
}

/* The free list: for a transaction, how many pages, then their numbers, falling. */
static void walk_free(struct walk *w, uint64_t from, const struct db_node *n) {
  uint64_t count = n->value_size >= 8 ? db_get64(n->value) : UINT64_MAX, last = DB_NO_PAGE;
  if (db_get64(n->key) > w->pages->txn || n->value_size / 8 < count || n->value_size / 8 - 1 < count) {
    bad(w, from, "an entry of the free list is ill-formed");
    return;
  }
  for (uint64_t i = 1; i <= count; i++) {
    uint64_t page = db_get64(n->value + 8 * i);
    if (page >= last) {
      bad(w, from, "an entry of the free list is not in order");
      return;
    }
    bool never_written = page >= w->pages->count && page < w->pages->named;
    if (!never_written && !claim(w, from, page)) return;
    last = page;
  }
}

static void walk_leaf(struct walk *w, uint64_t number, const uint8_t *page) {
  for (uint32_t i = 0, count = db_count_nodes(page); i < count && !w->stop; i++) {
    struct db_node n = sound_node(w->pages, page, i, true);
    bool of_main = w->table && !*w->table;
    if (n.flags & ~(of_main ? DB_BIG_VALUE | DB_SUB_TABLE : DB_BIG_VALUE)) {
      bad(w, number, "a node of it has flags that it cannot have");
      continue;
    }
    w->found.entries++;
    if (!take_overflow(w, number, &n)) continue;
    if (!w->table)
      walk_free(w, number, &n);
    else if (of_main)
      note_table(w, number, &n);
    else if (w->visit->entry)
      w->visit->entry(w->visit->data, w->table, (MDB_val){n.key_size, (void *)n.key},
                      (MDB_val){n.value_size, (void *)n.value});
  }
}

static void walk_page(struct walk *w, uint64_t from, uint64_t number, uint32_t level, struct db_bounds bounds) {
  if (w->stop || !claim(w, from, number)) return;
  bool leaf = level + 1 == w->tree.depth;
  const uint8_t *page = w->pages->at + number * w->pages->page;
  const char *why = db_check_head(w->pages, number, leaf, !w->table);
  if (!why) why = db_check_nodes(w->pages, number, leaf, !w->table, bounds);
  if (why) {
    bad(w, number, why);
    return;
  }
  ++*(leaf ? &w->found.leaves : &w->found.branches);
  if (leaf) {
    walk_leaf(w, number, page);
    return;
  }
  for (uint32_t i = 0, count = db_count_nodes(page); i < count; i++) {
    struct db_node n = sound_node(w->pages, page, i, false);
    struct db_bounds its = bounds;
    if (i > 0) its.least = n.key, its.least_size = n.key_size;
    if (i + 1 < count) {
      struct db_node next = sound_node(w->pages, page, i + 1, false);
      its.above = next.key, its.above_size = next.key_size;
    }
    walk_page(w, number, n.child, level + 1, its);
  }
}

/* table: its name; "" is the table of tables, NULL the free list. from: the page that holds the tree's description. */
static void walk_tree(struct walk *w, const char *table, struct db_tree tree, uint64_t from) {
  w->table = table;
  w->tree = tree;
  w->found = (struct db_tree){0};
  const char *why = db_check_tree(&tree, !table);
  if (why)
    bad(w, from, why);
  else if (tree.depth)
    walk_page(w, from, tree.root, 0, (struct db_bounds){0});
  if (w->stop) return;
  if (w->found.branches != tree.branches || w->found.leaves != tree.leaves || w->found.overflows != tree.overflows ||
      w->found.entries != tree.entries)
    bad(w, from, "a table that it describes has not as many pages and entries as it says");
}

enum db_owner db_walk_pages(const struct db_pages *p, const struct db_page_visit *visit, uint8_t **used) {
  struct walk w = {.pages = p, .visit = visit};
  if (used) *used = NULL;
  if (!p->at) return DB_NEW;
  w.used = calloc(p->count, 1);
  if (!w.used) abort();
  uint64_t meta = p->txn % 2;
  walk_tree(&w, "", p->main, meta);
  bool strange = w.others && w.ours < LEAST_TABLES;
  for (size_t i = 0; !strange && i < TABLES; i++)
    if (w.tables[i].there) walk_tree(&w, table_names[i], w.tables[i].tree, w.tables[i].from);
  if (!strange && !w.others) walk_tree(&w, NULL, p->free, meta); /* a later version's tables may hold what it names */
  if (used)
    *used = w.used;
  else
    free(w.used);
  return strange ? DB_STRANGE : w.ours ? DB_OURS : DB_NEW;
}

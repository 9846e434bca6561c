/* Walks the trees of an LMDB file, trusting nothing.
 *
 * A page begins with its number (8 bytes), 2 unused, flags (2), and the ends of its two free borders (2 each) or, where
 * it begins an overflow, its number of pages (4). Pages of a tree then hold the offsets of their nodes, 2 bytes each;
 * the nodes are packed at the page's end. A node: 4 bytes of the size of its value, flags (2), size of the key (2),
 * key, value; in a branch the first six bytes are the number of a page. Pages 0 and 1 hold the last two snapshots.
 * Source: LMDB 0.9, mdb.c, which has not changed the form since its version 1 of data. */
#include "pages.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

_Static_assert(MDB_VERSION_MAJOR == 0 && MDB_VERSION_MINOR == 9, "pages.c knows the files of LMDB 0.9");

enum { HEADER = 16, NODE = 8, TREE = 48, DEEPEST = 32, LONGEST_KEY = 511 };
enum { BRANCH = 1, LEAF = 2, OVERFLOW = 4, META = 8 }; /* flags of pages */
enum { BIG_VALUE = 1, SUB_TABLE = 2 };                 /* flags of nodes */
enum { INTEGER_KEYS = 8, NO_FOLDER = 0x4000 };         /* flags of tables; the second is the file's */
static const uint64_t NO_PAGE = UINT64_MAX;
static const uint32_t MAGIC = 0xBEEFC0DE, VERSION = 1;

static uint16_t get16(const uint8_t *at) {
  uint16_t x;
  memcpy(&x, at, sizeof x);
  return x;
}
static uint32_t get32(const uint8_t *at) {
  uint32_t x;
  memcpy(&x, at, sizeof x);
  return x;
}
static uint64_t get64(const uint8_t *at) {
  uint64_t x;
  memcpy(&x, at, sizeof x);
  return x;
}

static struct db_tree get_tree(const uint8_t *at) {
  return (struct db_tree){get32(at),      get16(at + 4),  get16(at + 6),  get64(at + 8),
                          get64(at + 16), get64(at + 24), get64(at + 32), get64(at + 40)};
}

/* ---- Meta pages ---- */

enum {
  META_MAGIC = HEADER,
  META_VERSION = 20,
  META_FREE = 40,
  META_MAIN = 88,
  META_LAST = 136,
  META_TXN = 144,
  META_END = 152
};

static bool is_page_size(uint64_t size) { return size >= 512 && size <= 32768 && (size & (size - 1)) == 0; }

/* What LMDB reads of either meta page when it opens a file. */
static bool is_meta(const struct db_pages *p, unsigned which) {
  assert(which < 2);
  const uint8_t *at = p->at + (size_t)which * p->page;
  uint64_t txn = get64(at + META_TXN);
  return get64(at) == which && get16(at + 10) == META && get32(at + META_MAGIC) == MAGIC &&
         get32(at + META_VERSION) == VERSION && get32(at + META_FREE) == p->page &&
         (get16(at + META_FREE + 4) & ~NO_FOLDER) == INTEGER_KEYS && (txn == 0 || txn % 2 == which);
}

static void take_meta(struct db_pages *p, unsigned which) {
  const uint8_t *at = p->at + (size_t)which * p->page;
  p->txn = get64(at + META_TXN);
  p->free = get_tree(at + META_FREE);
  p->main = get_tree(at + META_MAIN);
}

/* A page that a transaction took and gave back was never written: at the snapshot's end the file lacks it, until it is
 * used again. */
static void set_count(struct db_pages *p, uint64_t named) {
  uint64_t there = p->bytes / p->page;
  p->named = named;
  p->count = named < there ? named : there;
}

/* The size of a page stands in the meta pages, the second of which is a page behind the first. */
static bool find_page_size(struct db_pages *p) {
  if (p->bytes < META_END) return false;
  p->page = get32(p->at + META_FREE);
  if (is_page_size(p->page) && p->bytes >= p->page + META_END && (is_meta(p, 0) || is_meta(p, 1))) return true;
  for (p->page = 512; p->page <= 32768; p->page *= 2)
    if (p->bytes >= p->page + META_END && is_meta(p, 1)) return true;
  return false;
}

/* Every commit writes the older of the two, so that they follow one another. */
static bool read_metas(struct db_pages *p, bool damaged) {
  if (!find_page_size(p)) return false;
  bool sound[2] = {is_meta(p, 0), is_meta(p, 1)};
  p->lost = !(sound[0] && sound[1]);
  uint64_t txn[2] = {get64(p->at + META_TXN), get64(p->at + p->page + META_TXN)};
  bool follow = txn[0] == txn[1] + 1 || txn[1] == txn[0] + 1 || (txn[0] == 0 && txn[1] == 0);
  if (!damaged && !(sound[0] && sound[1] && follow)) return false;
  unsigned newer = sound[0] && sound[1] ? txn[1] > txn[0] : sound[1];
  take_meta(p, newer);
  set_count(p, get64(p->at + (size_t)newer * p->page + META_LAST) + 1);
  return true;
}

/* Neither meta page can be read: there are pages, and nothing says of what. */
static bool guess_metas(struct db_pages *p) {
  p->page = (uint32_t)sysconf(_SC_PAGESIZE);
  set_count(p, p->bytes / p->page);
  p->free.root = p->main.root = NO_PAGE;
  p->lost = true;
  return p->count >= 2;
}

bool db_select_snapshot(struct db_pages *p, uint64_t txn) {
  assert(p->at);
  for (unsigned i = 0; i < 2; i++) {
    struct db_pages before = *p, after = *p; /* a commit that happens now is seen as a difference */
    take_meta(&before, i);
    if (!is_meta(p, i) || before.txn != txn) continue;
    set_count(&before, get64(p->at + (size_t)i * p->page + META_LAST) + 1);
    take_meta(&after, i);
    if (after.txn != txn) continue;
    *p = before;
    return true;
  }
  return false;
}

static bool map_file(const char *path, struct db_pages *p, ms_error *err) {
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat s;
  if (file < 0) return ms_fail(err, MS_STORE, "%s: %s", path, strerror(errno));
  bool ok = fstat(file, &s) == 0 && S_ISREG(s.st_mode);
  if (!ok) ms_fail(err, MS_STORE, "%s: this is no file", path);
  p->bytes = ok ? (size_t)s.st_size : 0;
  if (p->bytes) {
    void *map = mmap(NULL, p->bytes, PROT_READ, MAP_SHARED, file, 0);
    p->at = map == MAP_FAILED ? NULL : map;
    if (!p->at) ok = ms_fail(err, MS_STORE, "%s: it cannot be mapped: %s", path, strerror(errno));
  }
  close(file);
  return ok;
}

/* Of a snapshot that names more than the file has, the walk finds out whether it needs them. */
static bool check_size(const char *path, bool damaged, struct db_pages *p, ms_error *err) {
  struct db db = {.path = (char *)path};
  if (damaged) set_count(p, p->bytes / p->page); /* what lies behind it may be of the other one, which cannot be read */
  if (p->named < 2 || p->named > DB_MOST_MAP / p->page) return db_failed(&db, MDB_INVALID, "open", err);
  return p->count >= 2 || db_refuse_cut(path, p, err);
}

bool db_refuse_cut(const char *path, const struct db_pages *p, ms_error *err) {
  return ms_fail(err, MS_STORE,
                 "%s: the store is cut short: %zu bytes of %llu are there; `msched db repair` saves what can be read",
                 path, p->bytes, (unsigned long long)(p->named * p->page));
}

/* Another process may be writing the meta pages: what cannot be read is looked at again while it changes. */
static bool read_live_metas(struct db_pages *p, bool damaged) {
  enum { TRIES = 200, SAME = 3, LOOKED_AT = 2 * 32768 };
  size_t size = p->bytes < LOOKED_AT ? p->bytes : LOOKED_AT;
  uint64_t before = XXH3_64bits(p->at, size);
  for (int i = 0, same = 0; i < TRIES && same < SAME; i++) {
    if (read_metas(p, damaged)) return true;
    usleep(1000);
    uint64_t now = XXH3_64bits(p->at, size);
    same = now == before ? same + 1 : 0;
    before = now;
  }
  return read_metas(p, damaged);
}

bool db_map_pages(const char *path, bool damaged, struct db_pages *out, ms_error *err) {
  memset(out, 0, sizeof *out);
  if (!map_file(path, out, err)) return false;
  if (!out->at) return true;
  struct db db = {.path = (char *)path};
  bool read = read_live_metas(out, damaged) || (damaged && guess_metas(out));
  bool ok = read ? check_size(path, damaged, out, err) : db_failed(&db, MDB_INVALID, "open", err);
  if (!ok) db_unmap_pages(out);
  return ok;
}

void db_unmap_pages(struct db_pages *p) {
  assert(p);
  if (p->at) munmap((void *)p->at, p->bytes);
  p->at = NULL;
}

/* ---- Trees ---- */

enum { TABLES = 9, LEAST_TABLES = 2 }; /* that make a file ours, where one may be damaged */

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

const char db_page_behind_end[] = "it names a page behind the end of the file";

static const char *why_missing(const struct db_pages *p, uint64_t page) {
  return page >= p->count && page < p->named ? db_page_behind_end : "it names a page that is not there";
}

/* Takes a page into use: it is there, and nothing else uses it. */
static bool claim(struct walk *w, uint64_t from, uint64_t page) {
  if (page < 2 || page >= w->pages->count) return bad(w, from, why_missing(w->pages, page)), false;
  if (w->used[page]) return bad(w, page, "it is used twice"), false;
  w->used[page] = DB_USED;
  return true;
}

struct node {
  const uint8_t *key;
  uint32_t key_size;
  uint64_t child;       /* of a branch */
  const uint8_t *value; /* of a leaf: in the node, */
  uint64_t overflow;    /* or there, if not 0 */
  uint64_t value_size;
  uint16_t flags;
  uint32_t size; /* of the node */
};

/* False: it leaves the page. */
static bool read_node(const struct db_pages *p, const uint8_t *page, uint32_t at, bool leaf, struct node *out) {
  if (at + NODE > p->page) return false;
  const uint8_t *node = page + at;
  uint64_t low = get32(node);
  *out = (struct node){.key = node + NODE, .key_size = get16(node + 6), .flags = leaf ? get16(node + 4) : 0};
  uint64_t size = NODE + (uint64_t)out->key_size;
  if (leaf) {
    bool big = out->flags & BIG_VALUE;
    out->value_size = low;
    out->value = node + size;
    size += big ? 8 : low;
    if (at + size > p->page) return false;
    if (big) out->overflow = get64(out->value);
  } else {
    out->child = low | (uint64_t)get16(node + 4) << 32;
  }
  out->size = (uint32_t)(size + size % 2);
  return at + size <= p->page;
}

static int compare_keys(const struct walk *w, const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size) {
  if (!w->table) { /* the free list's are numbers */
    uint64_t x = get64(a), y = get64(b);
    return (x > y) - (x < y);
  }
  int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
  return order ? order : (a_size > b_size) - (a_size < b_size);
}

static uint32_t count_nodes(const uint8_t *page) { return (uint32_t)(get16(page + 12) - HEADER) / 2; }
static uint32_t node_at(const uint8_t *page, uint32_t i) { return get16(page + HEADER + 2 * i); }

/* The ith node of a page whose packing was checked. */
static struct node sound_node(const struct db_pages *p, const uint8_t *page, uint32_t i, bool leaf) {
  struct node n = {0};
  bool there = read_node(p, page, node_at(page, i), leaf, &n);
  assert(there);
  (void)there;
  return n;
}

/* The nodes fill the page from its upper border to its end, one behind the other. */
static const char *check_packing(const struct db_pages *p, const uint8_t *page, bool leaf) {
  uint32_t upper = get16(page + 14), total = 0, count = count_nodes(page);
  uint8_t begins[32768 / 8] = {0};
  struct node n;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at = node_at(page, i);
    if (at < upper || at % 2 || !read_node(p, page, at, leaf, &n)) return "a node of it is out of its bounds";
    if (begins[at / 8] & 1 << at % 8) return "two of its nodes are one";
    begins[at / 8] |= (uint8_t)(1 << at % 8);
    total += n.size;
  }
  for (uint32_t i = 0; i < count; i++) {
    n = sound_node(p, page, i, leaf);
    uint32_t end = node_at(page, i) + n.size;
    if (end > p->page || (end < p->page && !(begins[end / 8] & 1 << end % 8))) return "its nodes overlap";
  }
  return total == p->page - upper ? NULL : "its nodes do not fill it";
}

static const char *check_header(const struct walk *w, uint64_t number, const uint8_t *page, bool leaf) {
  uint32_t lower = get16(page + 12), upper = get16(page + 14);
  if (get64(page) != number) return "its number is another";
  if (get16(page + 10) != (leaf ? LEAF : BRANCH)) return "it is of another kind";
  if (lower < HEADER || lower % 2 || lower > upper || upper % 2 || upper > w->pages->page)
    return "its borders are wrong";
  if (count_nodes(page) < (leaf || !w->table ? 1 : 2)) return "it is empty";
  return check_packing(w->pages, page, leaf);
}

/* Keys: a first one of a branch stands for all that are less. */
struct bounds {
  const uint8_t *least, *above; /* NULL: there is none */
  uint32_t least_size, above_size;
};

static const char *check_keys(const struct walk *w, const uint8_t *page, bool leaf, struct bounds bounds) {
  const uint8_t *last = bounds.least;
  uint32_t last_size = bounds.least_size;
  bool may_equal = true; /* the first may be the one that the parent names */
  for (uint32_t i = 0, count = count_nodes(page); i < count; i++) {
    struct node n = sound_node(w->pages, page, i, leaf);
    if (!leaf && i == 0) continue;
    if (n.key_size == 0 || n.key_size > LONGEST_KEY || (!w->table && n.key_size != 8))
      return "a key of it is ill-formed";
    int order = last ? compare_keys(w, last, last_size, n.key, n.key_size) : -1;
    if (order > 0 || (order == 0 && !may_equal)) return "its keys are not in order";
    last = n.key, last_size = n.key_size, may_equal = false;
  }
  if (last && bounds.above && compare_keys(w, last, last_size, bounds.above, bounds.above_size) >= 0)
    return "its keys are not in order";
  return NULL;
}

/* A value of pages of its own. NULL: it is damaged, and *why is set. */
static const uint8_t *read_overflow(const struct db_pages *p, uint64_t page, uint64_t size, uint64_t *pages) {
  if (page < 2 || page >= p->count) return NULL;
  const uint8_t *at = p->at + page * p->page;
  *pages = get32(at + 12);
  if (get64(at) != page || get16(at + 10) != OVERFLOW || *pages > p->count - page) return NULL;
  return size + HEADER <= *pages * p->page ? at + HEADER : NULL;
}

static bool take_overflow(struct walk *w, uint64_t from, struct node *n) {
  uint64_t pages = 0;
  if (!(n->flags & BIG_VALUE)) return true;
  n->value = read_overflow(w->pages, n->overflow, n->value_size, &pages);
  if (!n->value) {
    uint64_t last = n->overflow + (n->value_size + HEADER - 1) / w->pages->page;
    bool behind = n->overflow >= 2 && last >= w->pages->count && last < w->pages->named;
    return bad(w, from, behind ? db_page_behind_end : "a large value of it is not there"), false;
  }
  for (uint64_t i = 0; i < pages; i++)
    if (!claim(w, from, n->overflow + i)) return false;
  w->found.overflows += pages;
  return true;
}

static const char *const table_names[TABLES] = {"meta",  "workloads", "contexts",   "sketches", "records",
                                                "times", "modules",   "intrinsics", "tasks"};

/* Of the table of tables: walked when that is. */
static void note_table(struct walk *w, uint64_t from, const struct node *n) {
  for (size_t i = 0; n->flags == SUB_TABLE && n->value_size == TREE && i < TABLES; i++) {
    if (n->key_size != strlen(table_names[i]) || memcmp(n->key, table_names[i], n->key_size) != 0) continue;
    w->tables[i] = (struct table){get_tree(n->value), from, true};
    w->ours++;
    return;
  }
  w->others++;
}

/* The free list: for a transaction, how many pages, then their numbers, falling. */
static void walk_free(struct walk *w, uint64_t from, const struct node *n) {
  uint64_t count = n->value_size >= 8 ? get64(n->value) : UINT64_MAX, last = NO_PAGE;
  if (get64(n->key) > w->pages->txn || n->value_size / 8 < count || n->value_size / 8 - 1 < count) {
    bad(w, from, "an entry of the free list is ill-formed");
    return;
  }
  for (uint64_t i = 1; i <= count; i++) {
    uint64_t page = get64(n->value + 8 * i);
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
  for (uint32_t i = 0, count = count_nodes(page); i < count && !w->stop; i++) {
    struct node n = sound_node(w->pages, page, i, true);
    bool of_main = w->table && !*w->table;
    if (n.flags & ~(of_main ? BIG_VALUE | SUB_TABLE : BIG_VALUE)) {
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

static void walk_page(struct walk *w, uint64_t from, uint64_t number, uint32_t level, struct bounds bounds) {
  if (w->stop || !claim(w, from, number)) return;
  bool leaf = level + 1 == w->tree.depth;
  const uint8_t *page = w->pages->at + number * w->pages->page;
  const char *why = check_header(w, number, page, leaf);
  if (!why) why = check_keys(w, page, leaf, bounds);
  if (why) {
    bad(w, number, why);
    return;
  }
  ++*(leaf ? &w->found.leaves : &w->found.branches);
  if (leaf) {
    walk_leaf(w, number, page);
    return;
  }
  for (uint32_t i = 0, count = count_nodes(page); i < count; i++) {
    struct node n = sound_node(w->pages, page, i, false);
    struct bounds its = bounds;
    if (i > 0) its.least = n.key, its.least_size = n.key_size;
    if (i + 1 < count) {
      struct node next = sound_node(w->pages, page, i + 1, false);
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
  if (table && tree.flags)
    bad(w, from, "it describes a table of a kind that the store has not");
  else if (tree.depth > DEEPEST || (tree.depth == 0) != (tree.root == NO_PAGE))
    bad(w, from, "it describes a table without a root");
  else if (tree.depth)
    walk_page(w, from, tree.root, 0, (struct bounds){0});
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

/* ---- What a page holds, whatever it is ---- */

void db_scan_page(const struct db_pages *p, uint64_t number, void (*entry)(void *data, MDB_val key, MDB_val value),
                  void *data) {
  assert(entry && number < p->count);
  const uint8_t *page = p->at + number * p->page;
  struct node n;
  uint64_t pages;
  for (uint32_t i = 0; HEADER + 2 * i + 2 <= p->page; i++) {
    uint32_t at = node_at(page, i);
    if (at < HEADER || at >= p->page) break;
    if (!read_node(p, page, at, true, &n)) continue;
    if (n.flags & BIG_VALUE) n.value = read_overflow(p, n.overflow, n.value_size, &pages);
    if (n.value) entry(data, (MDB_val){n.key_size, (void *)n.key}, (MDB_val){n.value_size, (void *)n.value});
  }
}

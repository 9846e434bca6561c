/* The pages of an LMDB file, trusting nothing: walk.c walks their trees, snapshot.c reads them.
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

enum { HEADER = 16, NODE = 8, TREE = 48, LONGEST_KEY = 511 };
enum { BRANCH = 1, LEAF = 2, OVERFLOW = 4, META = 8 }; /* flags of pages */
enum { INTEGER_KEYS = 8, NO_FOLDER = 0x4000 };         /* flags of tables; the second is the file's */
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

static struct db_tree get_tree(const uint8_t *at) {
  return (struct db_tree){get32(at),         get16(at + 4),     get16(at + 6),     db_get64(at + 8),
                          db_get64(at + 16), db_get64(at + 24), db_get64(at + 32), db_get64(at + 40)};
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
  uint64_t txn = db_get64(at + META_TXN);
  return db_get64(at) == which && get16(at + 10) == META && get32(at + META_MAGIC) == MAGIC &&
         get32(at + META_VERSION) == VERSION && get32(at + META_FREE) == p->page &&
         (get16(at + META_FREE + 4) & ~NO_FOLDER) == INTEGER_KEYS && (txn == 0 || txn % 2 == which);
}

static void take_meta(struct db_pages *p, unsigned which) {
  assert(which < 2 && p->bytes >= (size_t)which * p->page + META_END);
  const uint8_t *at = p->at + (size_t)which * p->page;
  p->txn = db_get64(at + META_TXN);
  p->free = get_tree(at + META_FREE);
  p->main = get_tree(at + META_MAIN);
}

/* A page that a transaction took and gave back was never written: at the snapshot's end the file lacks it, until it is
 * used again. */
static void set_count(struct db_pages *p, uint64_t named) {
  assert(p->page);
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
  uint64_t txn[2] = {db_get64(p->at + META_TXN), db_get64(p->at + p->page + META_TXN)};
  bool follow = txn[0] == txn[1] + 1 || txn[1] == txn[0] + 1 || (txn[0] == 0 && txn[1] == 0);
  if (!damaged && !(sound[0] && sound[1] && follow)) return false;
  unsigned newer = sound[0] && sound[1] ? txn[1] > txn[0] : sound[1];
  take_meta(p, newer);
  set_count(p, db_get64(p->at + (size_t)newer * p->page + META_LAST) + 1);
  return true;
}

/* Neither meta page can be read: there are pages, and nothing says of what. */
static bool guess_metas(struct db_pages *p) {
  p->page = (uint32_t)sysconf(_SC_PAGESIZE);
  set_count(p, p->bytes / p->page);
  p->free.root = p->main.root = DB_NO_PAGE;
  p->lost = true;
  return p->count >= 2;
}

bool db_select_snapshot(struct db_pages *p, uint64_t txn) {
  assert(p->at);
  for (unsigned i = 0; i < 2; i++) {
    struct db_pages before = *p, after = *p; /* a commit that happens now is seen as a difference */
    take_meta(&before, i);
    if (!is_meta(p, i) || before.txn != txn) continue;
    set_count(&before, db_get64(p->at + (size_t)i * p->page + META_LAST) + 1);
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

/* ---- One page ---- */

uint32_t db_count_nodes(const uint8_t *page) { return (uint32_t)(get16(page + 12) - HEADER) / 2; }

static uint32_t node_at(const uint8_t *page, uint32_t i) { return get16(page + HEADER + 2 * i); }

static bool read_node_at(const struct db_pages *p, const uint8_t *page, uint32_t at, bool leaf, struct db_node *out) {
  if (at + NODE > p->page) return false;
  const uint8_t *node = page + at;
  uint64_t low = get32(node);
  *out = (struct db_node){.key = node + NODE, .key_size = get16(node + 6), .flags = leaf ? get16(node + 4) : 0};
  uint64_t size = NODE + (uint64_t)out->key_size;
  if (leaf) {
    bool big = out->flags & DB_BIG_VALUE;
    out->value_size = low;
    out->value = node + size;
    size += big ? 8 : low;
    if (at + size > p->page) return false;
    if (big) out->overflow = db_get64(out->value);
  } else {
    out->child = low | (uint64_t)get16(node + 4) << 32;
  }
  out->size = (uint32_t)(size + size % 2);
  return at + size <= p->page;
}

bool db_read_node(const struct db_pages *p, const uint8_t *page, uint32_t i, bool leaf, struct db_node *out) {
  return HEADER + 2 * i + 2 <= p->page && read_node_at(p, page, node_at(page, i), leaf, out);
}

int db_compare_keys(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size) {
  int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
  return order ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_keys(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, bool numbers) {
  if (!numbers) return db_compare_keys(a, a_size, b, b_size);
  uint64_t x = db_get64(a), y = db_get64(b);
  return (x > y) - (x < y);
}

/* The nodes fill the page from its upper border to its end, one behind the other. */
static const char *check_packing(const struct db_pages *p, const uint8_t *page, bool leaf) {
  uint32_t upper = get16(page + 14), total = 0, count = db_count_nodes(page);
  uint8_t begins[32768 / 8] = {0};
  struct db_node n;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at = node_at(page, i);
    if (at < upper || at % 2 || !read_node_at(p, page, at, leaf, &n)) return "a node of it is out of its bounds";
    if (begins[at / 8] & 1 << at % 8) return "two of its nodes are one";
    begins[at / 8] |= (uint8_t)(1 << at % 8);
    total += n.size;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!db_read_node(p, page, i, leaf, &n)) return "a node of it is out of its bounds";
    uint32_t end = node_at(page, i) + n.size;
    if (end > p->page || (end < p->page && !(begins[end / 8] & 1 << end % 8))) return "its nodes overlap";
  }
  return total == p->page - upper ? NULL : "its nodes do not fill it";
}

const char *db_check_head(const struct db_pages *p, uint64_t number, bool leaf, bool free_list) {
  const uint8_t *page = p->at + number * p->page;
  uint32_t lower = get16(page + 12), upper = get16(page + 14);
  if (db_get64(page) != number) return "its number is another";
  if (get16(page + 10) != (leaf ? LEAF : BRANCH)) return "it is of another kind";
  if (lower < HEADER || lower % 2 || lower > upper || upper % 2 || upper > p->page) return "its borders are wrong";
  return db_count_nodes(page) < (leaf || free_list ? 1 : 2) ? "it is empty" : NULL;
}

static const char *check_keys(const struct db_pages *p, const uint8_t *page, bool leaf, bool free_list,
                              struct db_bounds bounds) {
  const uint8_t *last = bounds.least;
  uint32_t last_size = bounds.least_size;
  bool may_equal = true; /* the first may be the one that the parent names */
  for (uint32_t i = 0, count = db_count_nodes(page); i < count; i++) {
    struct db_node n;
    if (!leaf && i == 0) continue;
    if (!db_read_node(p, page, i, leaf, &n) || n.key_size == 0 || n.key_size > LONGEST_KEY ||
        (free_list && n.key_size != 8))
      return "a key of it is ill-formed";
    int order = last ? compare_keys(last, last_size, n.key, n.key_size, free_list) : -1;
    if (order > 0 || (order == 0 && !may_equal)) return "its keys are not in order";
    last = n.key, last_size = n.key_size, may_equal = false;
  }
  if (last && bounds.above && compare_keys(last, last_size, bounds.above, bounds.above_size, free_list) >= 0)
    return "its keys are not in order";
  return NULL;
}

const char *db_check_nodes(const struct db_pages *p, uint64_t number, bool leaf, bool free_list,
                           struct db_bounds bounds) {
  const uint8_t *page = p->at + number * p->page;
  const char *why = check_packing(p, page, leaf);
  return why ? why : check_keys(p, page, leaf, free_list, bounds);
}

const char *db_check_place(const struct db_pages *p, uint64_t number, bool leaf, struct db_bounds bounds) {
  const uint8_t *page = p->at + number * p->page;
  struct db_node first, last;
  uint32_t count = db_count_nodes(page), least = leaf ? 0 : 1;
  if (count <= least) return NULL;
  if (!db_read_node(p, page, least, leaf, &first) || !db_read_node(p, page, count - 1, leaf, &last))
    return "a node of it is out of its bounds";
  bool below = bounds.least && db_compare_keys(first.key, first.key_size, bounds.least, bounds.least_size) < 0;
  bool above = bounds.above && db_compare_keys(last.key, last.key_size, bounds.above, bounds.above_size) >= 0;
  return below || above ? "its keys are not in order" : NULL;
}

const char *db_why_missing(const struct db_pages *p, uint64_t number) {
  return number >= p->count && number < p->named ? db_page_behind_end : "it names a page that is not there";
}

const char *db_read_value(const struct db_pages *p, struct db_node *n, uint64_t *count) {
  *count = 0;
  if (!(n->flags & DB_BIG_VALUE)) return NULL;
  uint64_t last = n->overflow + (n->value_size + HEADER - 1) / p->page;
  if (n->overflow >= 2 && last >= p->count && last < p->named) return db_page_behind_end;
  n->value = NULL;
  if (n->overflow < 2 || n->overflow >= p->count) return "a large value of it is not there";
  const uint8_t *at = p->at + n->overflow * p->page;
  *count = get32(at + 12);
  if (db_get64(at) != n->overflow || get16(at + 10) != OVERFLOW || *count > p->count - n->overflow ||
      n->value_size + HEADER > *count * p->page)
    return "a large value of it is not there";
  n->value = at + HEADER;
  return NULL;
}

bool db_read_tree(const struct db_node *n, struct db_tree *out) {
  bool described = n->flags == DB_SUB_TABLE && n->value_size == TREE;
  if (described) *out = get_tree(n->value);
  return described;
}

const char *db_check_tree(const struct db_tree *tree, bool free_list) {
  if (!free_list && tree->flags) return "it describes a table of a kind that the store has not";
  return tree->depth > DB_DEEPEST || (tree->depth == 0) != (tree->root == DB_NO_PAGE)
             ? "it describes a table without a root"
             : NULL;
}

/* ---- What a page holds, whatever it is ---- */

void db_scan_page(const struct db_pages *p, uint64_t number, void (*entry)(void *data, MDB_val key, MDB_val value),
                  void *data) {
  assert(entry && number < p->count);
  const uint8_t *page = p->at + number * p->page;
  struct db_node n;
  uint64_t count;
  for (uint32_t i = 0; HEADER + 2 * i + 2 <= p->page; i++) {
    uint32_t at = node_at(page, i);
    if (at < HEADER || at >= p->page) break;
    if (!read_node_at(p, page, at, true, &n)) continue;
    if (!db_read_value(p, &n, &count))
      entry(data, (MDB_val){n.key_size, (void *)n.key}, (MDB_val){n.value_size, (void *)n.value});
  }
}

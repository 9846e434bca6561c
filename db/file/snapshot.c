/* Reading pages of a snapshot. The file is mapped beside LMDB, whose map is not to be had; what was mapped stays as
 * long as a snapshot is read from it. */
#include "snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

const char *const db_table_names[DB_TABLES] = {"meta",     "workloads", "intrinsics", "records",  "times",
                                               "contexts", "sketches",  "tasks",      "outlines", "prefixes"};

MDB_dbi *db_table_of(struct db *db, enum db_table table) {
  MDB_dbi *const all[DB_TABLES] = {&db->meta,     &db->workloads, &db->intrinsics, &db->records,  &db->times,
                                   &db->contexts, &db->sketches,  &db->tasks,      &db->outlines, &db->prefixes};
  return all[table];
}

/* ---- The file, mapped ---- */

struct db_map {
  uint8_t *at;
  size_t bytes;
  unsigned users; /* snapshots, and the store itself */
};

/* Which pages were found sound, by the low bits of the snapshot's number and 1: a later one may have another there; and
 * the node that named each, as node_of numbers it: a page that the same node names has the same place. */
struct db_sound {
  struct sound_page {
    uint32_t mark, node;
    uint64_t parent;
  } * at;
  uint64_t count;
};

struct db_snapshot {
  MDB_txn *txn;
  struct db *db;
  struct db_map *map;
  struct db_pages pages;
  uint32_t mark;
  uint64_t serial;
  struct {
    bool known, there;
    struct db_tree tree;
  } tables[DB_TABLES];
  struct db_snapshot *next;
};

static void leave_map(struct db_map *map) {
  assert(!map || map->users > 0);
  if (!map || --map->users) return;
  munmap(map->at, map->bytes);
  free(map);
}

static int map_file(struct db *db, int file, size_t bytes) {
  if (db->map && db->map->bytes >= bytes) return 0;
  size_t room = bytes + bytes / 8 + ((size_t)1 << 20); /* the file grows by pages: what lies behind it is not touched */
  void *at = mmap(NULL, room, PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) at = mmap(NULL, room = bytes, PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return errno;
  leave_map(db->map);
  db->map = malloc(sizeof *db->map);
  if (!db->map) abort();
  *db->map = (struct db_map){at, room, 1};
  return 0;
}

static void grow_sound(struct db *db, uint64_t count) {
  struct db_sound *s = db->sound;
  if (!s && !(s = db->sound = calloc(1, sizeof *s))) abort();
  if (s->count >= count) return;
  uint64_t room = count + count / 4 + 256;
  struct sound_page *larger = calloc(room, sizeof *larger); /* pages of it that are not touched take no memory */
  if (!larger) abort();
  if (s->count) memcpy(larger, s->at, s->count * sizeof *larger);
  free(s->at);
  s->at = larger;
  s->count = room;
}

int db_take_snapshot(struct db *db, MDB_txn *txn) {
  int file = -1;
  struct stat s;
  struct db_pages pages = {0};
  if (mdb_env_get_fd(db->env, &file) || fstat(file, &s) != 0) return EIO;
  int code = map_file(db, file, (size_t)s.st_size);
  if (code) return code;
  MDB_stat stat;
  mdb_env_stat(db->env, &stat);
  pages.at = db->map->at;
  pages.bytes = (size_t)s.st_size;
  pages.page = stat.ms_psize;
  if (pages.bytes < 2 * (size_t)pages.page) return DB_CUT;
  if (!db_select_snapshot(&pages, mdb_txn_id(txn))) return DB_AGAIN;
  struct db_snapshot *made = calloc(1, sizeof *made);
  if (!made) abort();
  *made = (struct db_snapshot){.txn = txn,
                               .db = db,
                               .map = db->map,
                               .pages = pages,
                               .mark = (uint32_t)pages.txn + 1,
                               .serial = ++db->snapshots_taken,
                               .next = db->snapshots};
  made->map->users++;
  if (!db->snapshots) db->bad.why = NULL;
  db->snapshots = made;
  grow_sound(db, pages.count);
  return 0;
}

static struct db_snapshot *snapshot_of(struct db *db, const MDB_txn *txn) {
  struct db_snapshot *s = db->snapshots;
  while (s && s->txn != txn) s = s->next;
  return s;
}

const struct db_pages *db_snapshot_pages(struct db *db, MDB_txn *txn) {
  struct db_snapshot *s = snapshot_of(db, txn);
  assert(s);
  return &s->pages;
}

uint64_t db_snapshot_serial(struct db *db, MDB_txn *txn) {
  const struct db_snapshot *s = snapshot_of(db, txn);
  return s ? s->serial : 0;
}

int db_drop_snapshot(struct db *db, MDB_txn *txn) {
  struct db_snapshot *s = snapshot_of(db, txn);
  assert(s);
  for (struct db_snapshot **link = &db->snapshots; *link; link = &(*link)->next)
    if (*link == s) {
      *link = s->next;
      break;
    }
  leave_map(s->map);
  free(s);
  return db->bad.why ? DB_DAMAGED : 0;
}

void db_forget_snapshots(struct db *db) {
  while (db->snapshots) db_drop_snapshot(db, db->snapshots->txn);
  leave_map(db->map);
  db->map = NULL;
  if (db->sound) free(db->sound->at);
  free(db->sound);
  db->sound = NULL;
  db->bad.why = NULL;
}

/* ---- Pages ---- */

/* What is said is the first page that is bad. */
static int bad_page(struct db_snapshot *s, uint64_t page, const char *why) {
  struct db *db = s->db;
  if (!db->bad.why) {
    db->bad.page = page;
    db->bad.why = why;
    db->bad.named_bytes = s->pages.named * s->pages.page;
    db->bad.bytes = s->pages.bytes;
  }
  return DB_DAMAGED;
}

/* What names a page: a node of a page, or a table, and whether a leaf is meant. */
struct place {
  uint64_t page;
  uint32_t node;
  bool leaf;
};
static uint32_t node_of(struct place from) { return from.node << 1 | from.leaf; }

/* Finds a page of a tree, which another names; *out is the page. Where it was sound before, its place is looked at, but
 * where the same node named it: keys rise from leaf to leaf, so that no walk goes on for ever. */
static int come_to(struct db_snapshot *s, struct place from, uint64_t number, struct db_bounds bounds,
                   const uint8_t **out) {
  const struct db_pages *p = &s->pages;
  if (number < 2 || number >= p->count) return bad_page(s, from.page, db_why_missing(p, number));
  struct sound_page *sound = &s->db->sound->at[number];
  *out = p->at + number * p->page;
  bool seen = sound->mark == s->mark;
  if (seen && sound->parent == from.page && sound->node == node_of(from)) return 0;
  const char *why = db_check_head(p, number, from.leaf, false);
  if (!why && !seen) why = db_check_nodes(p, number, from.leaf, false, bounds);
  if (!why && seen) why = db_check_place(p, number, from.leaf, bounds);
  if (why) return bad_page(s, number, why);
  *sound = (struct sound_page){s->mark, node_of(from), from.page};
  return 0;
}

static int read_node(struct db_cursor *c, uint32_t level, uint32_t i, struct db_node *out) {
  const struct db_pages *p = &c->snapshot->pages;
  uint64_t number = c->path[level].number;
  return db_read_node(p, p->at + number * p->page, i, level + 1 == c->tree.depth, out)
             ? 0
             : bad_page(c->snapshot, number, "a node of it is out of its bounds");
}

/* Takes a page as the path's next; node: of the page `from`, or of a root the tree's. */
static int step_into(struct db_cursor *c, uint64_t from, uint32_t node, uint64_t number, struct db_bounds bounds) {
  assert(c->depth < c->tree.depth && c->tree.depth <= DB_DEEPEST);
  const uint8_t *page;
  struct place place = {from, node, c->depth + 1 == c->tree.depth};
  int code = come_to(c->snapshot, place, number, bounds, &page);
  if (!code) c->path[c->depth++] = (struct db_step){number, 0, db_count_nodes(page), bounds};
  return code;
}

/* From a branch to the child that it is at. */
static int step_down(struct db_cursor *c) {
  const struct db_step *step = &c->path[c->depth - 1];
  assert(c->depth && step->at < step->count);
  struct db_bounds bounds = step->bounds;
  struct db_node n, next;
  int code = read_node(c, c->depth - 1, step->at, &n);
  if (!code && step->at > 0) bounds.least = n.key, bounds.least_size = n.key_size;
  if (!code && step->at + 1 < step->count && !(code = read_node(c, c->depth - 1, step->at + 1, &next)))
    bounds.above = next.key, bounds.above_size = next.key_size;
  return code ? code : step_into(c, step->number, step->at, n.child, bounds);
}

/* The first node of the page whose key is not less, or, of a branch, the last whose key is not greater. */
static int find_in_page(struct db_cursor *c, const MDB_val *key, bool leaf) {
  struct db_step *step = &c->path[c->depth - 1];
  uint32_t low = leaf ? 0 : 1, high = step->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    struct db_node n;
    int code = read_node(c, c->depth - 1, middle, &n);
    if (code) return code;
    int order = db_compare_keys(n.key, n.key_size, key->mv_data, key->mv_size);
    if (leaf ? order < 0 : order <= 0)
      low = middle + 1;
    else
      high = middle;
  }
  step->at = leaf ? low : low - 1;
  return 0;
}

/* To the leaf where the key would be; NULL: to the first. */
static int descend(struct db_cursor *c, const MDB_val *key) {
  int code = 0;
  while (!code && c->depth < c->tree.depth) {
    if (key) code = find_in_page(c, key, false);
    if (!code) code = step_down(c);
  }
  return !code && key ? find_in_page(c, key, true) : code;
}

static int seek(struct db_cursor *c, const MDB_val *key) {
  c->depth = 0;
  if (!c->tree.depth) return MDB_NOTFOUND;
  int code = step_into(c, c->snapshot->pages.txn % 2, c->tree.depth, c->tree.root, (struct db_bounds){0});
  return code ? code : descend(c, key);
}

/* Where the leaf ends, to the next one. */
static int settle(struct db_cursor *c) {
  assert(c->depth);
  if (c->path[c->depth - 1].at < c->path[c->depth - 1].count) return 0;
  do {
    if (!--c->depth) return MDB_NOTFOUND;
  } while (++c->path[c->depth - 1].at >= c->path[c->depth - 1].count);
  return descend(c, NULL);
}

static int show(struct db_cursor *c, MDB_val *key, MDB_val *value) {
  assert(c->depth && c->depth == c->tree.depth);
  const struct db_step *step = &c->path[c->depth - 1];
  struct db_node n;
  uint64_t pages;
  int code = read_node(c, c->depth - 1, step->at, &n);
  const char *why = code ? NULL : db_read_value(&c->snapshot->pages, &n, &pages);
  if (!code && n.flags & ~DB_BIG_VALUE) why = "a node of it has flags that it cannot have";
  if (why) code = bad_page(c->snapshot, step->number, why);
  if (code) return code;
  *key = (MDB_val){n.key_size, (void *)n.key};
  *value = (MDB_val){n.value_size, (void *)n.value};
  return 0;
}

/* ---- Tables ---- */

static const struct db_tree *find_table(struct db_snapshot *s, enum db_table table, int *code) {
  *code = 0;
  if (s->tables[table].known) return s->tables[table].there ? &s->tables[table].tree : NULL;
  struct db_cursor c = {.snapshot = s, .tree = s->pages.main};
  MDB_val key = {strlen(db_table_names[table]), (void *)db_table_names[table]};
  const char *why = db_check_tree(&c.tree, false);
  *code = why ? bad_page(s, s->pages.txn % 2, why) : seek(&c, &key);
  if (!*code) *code = settle(&c);
  struct db_node n = {0};
  if (!*code) *code = read_node(&c, c.depth - 1, c.path[c.depth - 1].at, &n);
  bool there = !*code && !db_compare_keys(n.key, n.key_size, key.mv_data, key.mv_size);
  if (there)
    why = db_read_tree(&n, &s->tables[table].tree) ? db_check_tree(&s->tables[table].tree, false) : "it is none";
  if (there && why) *code = bad_page(s, c.path[c.depth - 1].number, why);
  if (*code == MDB_NOTFOUND) *code = 0;
  if (*code) return NULL;
  s->tables[table].known = true;
  s->tables[table].there = there;
  return there ? &s->tables[table].tree : NULL;
}

int db_cursor_open(struct db *db, MDB_txn *txn, enum db_table table, struct db_cursor *out) {
  out->lmdb = NULL;
  out->depth = 0;
  out->snapshot = snapshot_of(db, txn);
  out->tree = (struct db_tree){0};
  if (!out->snapshot) return mdb_cursor_open(txn, *db_table_of(db, table), &out->lmdb);
  int code;
  const struct db_tree *tree = find_table(out->snapshot, table, &code);
  if (tree) out->tree = *tree;
  return code;
}

void db_cursor_close(struct db_cursor *c) {
  if (c->lmdb) mdb_cursor_close(c->lmdb);
  c->lmdb = NULL;
}

int db_cursor_seek(struct db_cursor *c, MDB_val *key, MDB_val *value) {
  if (c->lmdb) return mdb_cursor_get(c->lmdb, key, value, key->mv_size ? MDB_SET_RANGE : MDB_FIRST);
  int code = seek(c, key->mv_size ? key : NULL);
  if (!code) code = settle(c);
  return code ? code : show(c, key, value);
}

int db_cursor_next(struct db_cursor *c, MDB_val *key, MDB_val *value) {
  if (c->lmdb) return mdb_cursor_get(c->lmdb, key, value, MDB_NEXT);
  if (!c->depth) {
    *key = (MDB_val){0, NULL};
    return db_cursor_seek(c, key, value);
  }
  c->path[c->depth - 1].at++;
  int code = settle(c);
  return code ? code : show(c, key, value);
}

int db_get(struct db *db, MDB_txn *txn, enum db_table table, const MDB_val *key, MDB_val *value) {
  MDB_val its = *key;
  struct db_cursor c;
  if (!snapshot_of(db, txn)) return mdb_get(txn, *db_table_of(db, table), &its, value);
  int code = db_cursor_open(db, txn, table, &c);
  if (!code) code = db_cursor_seek(&c, &its, value);
  return !code && db_compare_keys(its.mv_data, its.mv_size, key->mv_data, key->mv_size) ? MDB_NOTFOUND : code;
}

int db_count_entries(struct db *db, MDB_txn *txn, enum db_table table, uint64_t *out) {
  struct db_cursor c;
  MDB_stat stat = {0};
  int code = db_cursor_open(db, txn, table, &c);
  if (!code && c.lmdb) code = mdb_stat(txn, *db_table_of(db, table), &stat);
  *out = c.lmdb ? stat.ms_entries : c.tree.entries;
  db_cursor_close(&c);
  return code;
}

#define _GNU_SOURCE
/* The fastest records of all tasks, as lists show them: from the tasks' summaries, without the records. */
#include "bind_store.h"
#include "lua/bind/rates.h"
#include "lua/bind/state/visible.h"

#include <stdlib.h>
#include <string.h>

#define BOUND_BESTS "msched.bests"

struct listed_task {
  db_id workload;
  char *target;
  uint64_t records;
  bool has_limits;
  uint32_t count, first; /* of `at`, of `ids` */
  struct db_best *at;    /* in one block with their texts */
};

/* In the order of their workloads. */
struct bests {
  struct listed_task *tasks;
  size_t count, room;
  db_id *ids;
  char (*short_ids)[DB_ID_TEXT];
  size_t id_count, id_room;
  uint32_t most; /* of each task */
};

static int collect_bests(lua_State *L) {
  struct bests *b = luaL_checkudata(L, 1, BOUND_BESTS);
  for (size_t i = 0; i < b->count; i++) {
    free(b->tasks[i].target);
    free(b->tasks[i].at);
  }
  free(b->tasks);
  free(b->ids);
  free(b->short_ids);
  memset(b, 0, sizeof *b);
  return 0;
}

static struct db_best *copy_bests(const struct db_best *from, uint32_t count) {
  size_t bytes = (count + 1) * sizeof *from;
  for (uint32_t i = 0; i < count; i++) bytes += strlen(from[i].versions) + strlen(from[i].limit) + 2;
  struct db_best *to = malloc(bytes);
  if (!to) abort();
  char *text = (char *)(to + count);
  for (uint32_t i = 0; i < count; i++) {
    to[i] = from[i];
    to[i].versions = text;
    text = stpcpy(text, from[i].versions) + 1;
    to[i].limit = text;
    text = stpcpy(text, from[i].limit) + 1;
  }
  return to;
}

static void *grow(void *at, size_t count, size_t *room, size_t size) {
  if (count <= *room) return at;
  *room = count + *room + 64;
  void *larger = realloc(at, *room * size);
  if (!larger) abort();
  return larger;
}

static bool list_task(void *data, const struct db_task *t) {
  struct bests *b = data;
  assert(!b->count || memcmp(&b->tasks[b->count - 1].workload, &t->workload, sizeof t->workload) <= 0);
  b->tasks = grow(b->tasks, b->count + 1, &b->room, sizeof *b->tasks);
  struct listed_task *to = &b->tasks[b->count++];
  *to = (struct listed_task){.workload = t->workload, .has_limits = t->has_limits, .first = (uint32_t)b->id_count};
  to->target = strdup(t->target);
  if (!to->target) abort();
  for (int i = 0; db_status_names[i]; i++) to->records += t->counts[i];
  to->count = t->best_count < b->most ? t->best_count : b->most;
  to->at = copy_bests(t->bests, to->count);
  b->ids = grow(b->ids, b->id_count + to->count, &b->id_room, sizeof *b->ids);
  for (uint32_t i = 0; i < to->count; i++) b->ids[b->id_count++] = t->bests[i].id;
  return true;
}

/* store:bests(most): the fastest of each task, at most so many of each */
static int store_bests(lua_State *L) {
  struct db *db = bind_open_store(L);
  lua_Integer most = luaL_checkinteger(L, 2);
  luaL_argcheck(L, most >= 1, 2, "a number of at least 1 is expected");
  struct bests *b = lua_newuserdatauv(L, sizeof *b, 0);
  *b = (struct bests){.most = most < DB_MOST_BESTS ? (uint32_t)most : DB_MOST_BESTS};
  luaL_setmetatable(L, BOUND_BESTS);
  ms_error err = {.instruction = -1};
  if (!db_each_task(db, NULL, list_task, b, &err)) return bind_raise(L, &err);
  b->short_ids = malloc((b->id_count + 1) * sizeof *b->short_ids);
  if (!b->short_ids) abort();
  db_short_ids(db, b->ids, b->id_count, b->short_ids);
  return 1;
}

/* The first task of the workload, or where it would be. */
static size_t find_tasks(const struct bests *b, const db_id *workload) {
  size_t low = 0, high = b->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (memcmp(&b->tasks[middle].workload, workload, sizeof *workload) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* ---- Lines ---- */

struct writing {
  FILE *out;
  double operations, bytes;
  const char *unit;
  int64_t at, most; /* lines */
};

/* What a stranger may have written. */
static void put_shown(FILE *out, const char *text) {
  char *shown = visible_text(text, strlen(text), VISIBLE_LINE);
  fputs(shown, out);
  free(shown);
}

static void put_remark(FILE *out, bool holds, const char *before, const char *remark, int *count) {
  if (!holds) return;
  fprintf(out, "%s%s", *count ? ", " : "  (", before);
  put_shown(out, remark);
  ++*count;
}

static void put_line(struct writing *w, const struct listed_task *t, const struct db_best *r, const char *short_id) {
  char time[RATES_TEXT], operations[RATES_TEXT], bytes[RATES_TEXT];
  rates_time(r->seconds, time);
  rates_operations(w->operations, w->unit, r->seconds, operations);
  rates_bytes(w->bytes, r->seconds, bytes);
  fprintf(w->out, "  %3lld  %s  %s  %s%s%s  ", (long long)++w->at, short_id, time, operations,
          *operations && *bytes ? " " : "", bytes);
  double share = rates_share(r->limit_seconds, r->seconds);
  if (share >= 0) {
    fprintf(w->out, "%.0f %% of ", 100 * share);
    put_shown(w->out, r->limit);
    fputs("  ", w->out);
  }
  put_shown(w->out, t->target);
  int remarks = 0;
  put_remark(w->out, r->pinned, "", "pinned", &remarks);
  put_remark(w->out, r->ordered, "", "fixed order", &remarks);
  put_remark(w->out, r->unsafe, "", "unsafe", &remarks);
  put_remark(w->out, r->busy, "", "busy machine", &remarks);
  put_remark(w->out, strcmp(r->versions, bind_versions()) != 0, "by ", r->versions, &remarks);
  if (remarks) fputc(')', w->out);
  fputc('\n', w->out);
}

/* False: the records say more than the list does. */
static bool put_task(struct writing *w, const struct bests *b, const struct listed_task *t) {
  for (uint32_t i = 0; i < t->count && w->at < w->most; i++) {
    if (t->at[i].limit_seconds == 0 && t->has_limits) return false; /* that of another record may hold for it */
    put_line(w, t, &t->at[i], b->short_ids[t->first + i]);
  }
  return w->at == w->most || t->count == t->records;
}

struct text {
  char *at;
  size_t size;
};

static int collect_text(lua_State *L) {
  struct text *t = lua_touserdata(L, 1);
  free(t->at);
  t->at = NULL;
  return 0;
}

/* bests:lines(workload, target, most, operations, unit, bytes): the lines of a workload's fastest, of a target or of
 * all where that is nil; nil where the records have to be read */
static int bests_lines(lua_State *L) {
  const struct bests *b = luaL_checkudata(L, 1, BOUND_BESTS);
  db_id workload = bind_check_id(L, 2);
  const char *target = luaL_optstring(L, 3, NULL);
  struct writing w = {.most = luaL_checkinteger(L, 4),
                      .operations = luaL_checknumber(L, 5),
                      .unit = luaL_checkstring(L, 6),
                      .bytes = luaL_checknumber(L, 7)};
  struct text *text = bind_hold(L, sizeof *text, "msched.text", collect_text);
  w.out = open_memstream(&text->at, &text->size);
  if (!w.out) abort();
  bool all = true;
  for (size_t i = find_tasks(b, &workload); i < b->count && all && w.at < w.most; i++) {
    const struct listed_task *t = &b->tasks[i];
    if (memcmp(&t->workload, &workload, sizeof workload) != 0) break;
    if (!target || !strcmp(target, t->target)) all = put_task(&w, b, t);
  }
  if (fclose(w.out) != 0) abort();
  if (!all) return 0;
  lua_pushlstring(L, text->at, text->size);
  return 1;
}

const luaL_Reg bind_bests_methods[] = {{"bests", store_bests}, {NULL, NULL}};

void bind_bests(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"lines", bests_lines}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect_bests}, {NULL, NULL}};
  bind_type(L, BOUND_BESTS, methods, meta);
}

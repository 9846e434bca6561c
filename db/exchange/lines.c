/* Lines parsed ahead. */
#include "lines.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

/* So long that lines are parsed while a part of the batch is committed, too. */
enum { BLOCK = 1024, MOST_THREADS = 4 };
static const size_t BLOCK_BYTES = (size_t)4 << 20;

struct worker {
  pthread_t thread;
  struct block *block;
  uint32_t number, of;          /* it takes each so-manyth line */
  struct vm_lua_reader *reader; /* its own */
};

struct block {
  struct db_line lines[BLOCK];
  uint32_t count, at;
  struct worker workers[MOST_THREADS];
  uint32_t started;
};

struct db_lines {
  FILE *in;
  struct vm_lua_reader *readers[MOST_THREADS];
  struct block *now, *next;
  uint32_t threads;
  bool ended;
};

/* ---- Parsing ---- */

static void read_trace(struct db_line *line, struct vm_lua_reader *reader, const char *text) {
  struct vm_trace *trace = vm_read_next_lua(reader, text, strlen(text), &line->why);
  if (!trace) return;
  line->unsafe = !vm_trace_is_safe(trace);
  line->trace = vm_write_next_binary(reader, trace, &line->trace_bytes);
  vm_trace_free(trace);
}

/* What is wrong with a line that is read as none, in jansson's words: it says where. */
static void say_why(struct db_line *line) {
  json_error_t where;
  json_t *object = json_loads(line->text, JSON_REJECT_DUPLICATES, &where);
  if (object)
    snprintf(line->refused, sizeof line->refused, "more values, or deeper ones, than a line of a store has");
  else
    snprintf(line->refused, sizeof line->refused, "column %d: %s", where.column, where.text);
  json_decref(object);
}

static void parse(struct db_line *line, struct vm_lua_reader *reader) {
  line->why = (ms_error){.instruction = -1};
  size_t space = strspn(line->text, " \t\r\n");
  if (space == line->length || line->text[space] == '[' || strlen(line->text) != line->length) return;
  line->is_json = db_json_read(&line->json, line->text, line->length) && line->json.at->kind == DB_JSON_OBJECT;
  if (!line->is_json)
    say_why(line);
  else if (db_json_get(line->json.at, "record"))
    read_trace(line, reader, db_json_text(line->json.at, "trace"));
}

static void *parse_some(void *data) {
  const struct worker *w = data;
  for (uint32_t i = w->number; i < w->block->count; i += w->of) parse(&w->block->lines[i], w->reader);
  return NULL;
}

/* ---- Blocks ---- */

static void free_line(struct db_line *line) {
  free(line->text);
  db_json_free(&line->json);
}

/* A line's memory is room for the next that stands there, unless it is much longer than most. */
static void clear(struct block *b) {
  enum { MOST_VALUES = 256 };
  static const size_t MOST_ROOM = (size_t)1 << 14;
  assert(!b->started && b->at <= b->count && b->count <= BLOCK); /* no thread reads it */
  for (uint32_t i = 0; i < b->count; i++) {
    struct db_line *line = &b->lines[i];
    free(line->trace);
    bool stays = line->room <= MOST_ROOM && line->json.room <= MOST_VALUES;
    if (!stays) free_line(line);
    *line = stays ? (struct db_line){.text = line->text, .room = line->room, .json = line->json} : (struct db_line){0};
  }
  b->count = b->at = 0;
}

static void free_block(struct block *b) {
  clear(b);
  for (uint32_t i = 0; i < BLOCK; i++) free_line(&b->lines[i]);
  free(b);
}

static void finish(struct block *b) {
  for (uint32_t i = 0; i < b->started; i++) pthread_join(b->workers[i].thread, NULL);
  b->started = 0;
}

/* What no thread could be had for is parsed here. */
static void begin(struct db_lines *l, struct block *b) {
  assert(!b->started && l->threads >= 1 && l->threads <= MOST_THREADS);
  clear(b);
  for (size_t bytes = 0; b->count < BLOCK && bytes < BLOCK_BYTES; b->count++) {
    struct db_line *line = &b->lines[b->count];
    ssize_t length = getline(&line->text, &line->room, l->in);
    l->ended = length < 0;
    if (l->ended) break;
    line->length = (size_t)length;
    bytes += line->length;
  }
  for (uint32_t i = 0; i < l->threads; i++) {
    struct worker *w = &b->workers[b->started];
    *w = (struct worker){.block = b, .number = i, .of = l->threads, .reader = l->readers[i]};
    if (!b->count || pthread_create(&w->thread, NULL, parse_some, w) != 0)
      parse_some(w);
    else
      b->started++;
  }
}

static uint32_t count_cores(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return (uint32_t)(cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : cores);
}

struct db_lines *db_lines_new(FILE *in) {
  assert(in);
  struct db_lines *l = calloc(1, sizeof *l);
  if (!l || !(l->now = calloc(1, sizeof *l->now)) || !(l->next = calloc(1, sizeof *l->next))) abort();
  l->in = in;
  l->threads = count_cores();
  for (uint32_t i = 0; i < l->threads; i++) l->readers[i] = vm_lua_reader_new();
  begin(l, l->next);
  return l;
}

void db_lines_free(struct db_lines *l) {
  if (!l) return;
  finish(l->next);
  free_block(l->now), free_block(l->next);
  for (uint32_t i = 0; i < l->threads; i++) vm_lua_reader_free(l->readers[i]);
  free(l);
}

struct db_line *db_lines_next(struct db_lines *l) {
  if (l->now->at == l->now->count) {
    struct block *taken = l->now;
    finish(l->next);
    l->now = l->next;
    l->next = taken;
    if (l->ended)
      clear(l->next);
    else
      begin(l, l->next);
  }
  return l->now->at < l->now->count ? &l->now->lines[l->now->at++] : NULL;
}

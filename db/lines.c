/* Lines parsed ahead. A record's trace is most of its line, as a text in which lines end: it is taken out before JSON
 * is read, and what is read has a mark in its place. */
#include "lines.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- A trace's text, taken out of its line ---- */

/* Whether a byte stands in JSON's strings for itself. */
static bool is_plain(unsigned char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

/* Behind the quote that opens the value of the first key `trace`; NULL: there is none that is a string. */
static const char *find_trace(const char *text) {
  static const char KEY[] = "\"trace\"";
  const char *at = strstr(text, KEY);
  if (!at || at == text || at[-1] == '\\') return NULL;
  at += strlen(KEY);
  at += strspn(at, " \t");
  if (*at++ != ':') return NULL;
  at += strspn(at, " \t");
  return *at == '"' ? at + 1 : NULL;
}

/* The string that begins at *at, which is its closing quote afterwards; NULL: it has more than plain characters and
 * what is escaped by one. */
static char *unescape(const char **at) {
  const char *from = *at;
  char *out = malloc(strlen(from) + 1), *to = out;
  if (!out) abort();
  for (;;) {
    const char *run = from;
    while (is_plain((unsigned char)*from)) from++;
    memcpy(to, run, (size_t)(from - run));
    to += from - run;
    if (*from != '\\') break;
    char c = from[1];
    if (c != 'n' && c != '"' && c != '\\') break;
    *to++ = c == 'n' ? '\n' : c;
    from += 2;
  }
  *to = 0;
  *at = from;
  if (*from == '"') return out;
  free(out);
  return NULL;
}

/* What stands for a trace that was taken out, in JSON and as it is read. */
static const char MARK[] = "\\u0001", MARK_READ[] = "\001";

/* The line's object without its trace's text, which is the caller's to free(); NULL: the line has to be read whole. */
static json_t *read_without_trace(const struct db_line *line, char **trace) {
  const char *begin = find_trace(line->text), *end = begin;
  *trace = begin ? unescape(&end) : NULL;
  if (!*trace) return NULL;
  assert(begin <= end && end < line->text + line->length);
  size_t before = (size_t)(begin - line->text), behind = line->length - (size_t)(end - line->text);
  char *rest = malloc(before + strlen(MARK) + behind + 1);
  if (!rest) abort();
  memcpy(rest, line->text, before);
  memcpy(stpcpy(rest + before, MARK), end, behind + 1);
  json_t *object = json_loads(rest, JSON_REJECT_DUPLICATES, NULL);
  free(rest);
  const char *mark = json_string_value(json_object_get(object, "trace"));
  if (mark && !strcmp(mark, MARK_READ)) return object;
  json_decref(object);
  free(*trace);
  *trace = NULL;
  return NULL;
}

/* ---- Parsing ---- */

static void read_trace(struct db_line *line, struct vm_lua_reader *reader, const char *text) {
  struct vm_trace *trace = vm_read_next_lua(reader, text, strlen(text), &line->why);
  if (!trace) return;
  line->unsafe = !vm_trace_is_safe(trace);
  line->trace = vm_write_next_binary(reader, trace, &line->trace_bytes);
  vm_trace_free(trace);
}

static void parse(struct db_line *line, struct vm_lua_reader *reader) {
  char *taken;
  line->why = (ms_error){.instruction = -1};
  size_t space = strspn(line->text, " \t\r\n");
  if (space == line->length || line->text[space] == '[' || strlen(line->text) != line->length) return;
  line->object = read_without_trace(line, &taken);
  if (!line->object) line->object = json_loads(line->text, JSON_REJECT_DUPLICATES, &line->where);
  if (json_object_get(line->object, "record")) {
    const char *text = taken ? taken : json_string_value(json_object_get(line->object, "trace"));
    read_trace(line, reader, text ? text : "");
  }
  free(taken);
}

static void *parse_some(void *data) {
  const struct worker *w = data;
  for (uint32_t i = w->number; i < w->block->count; i += w->of) parse(&w->block->lines[i], w->reader);
  return NULL;
}

/* ---- Blocks ---- */

/* A line's text is room for the next that stands there, unless it is much longer than most. */
static void clear(struct block *b) {
  static const size_t MOST_ROOM = (size_t)1 << 14;
  for (uint32_t i = 0; i < b->count; i++) {
    struct db_line *line = &b->lines[i];
    free(line->trace);
    json_decref(line->object);
    bool stays = line->room <= MOST_ROOM;
    if (!stays) free(line->text);
    *line = stays ? (struct db_line){.text = line->text, .room = line->room} : (struct db_line){0};
  }
  b->count = b->at = 0;
}

static void free_block(struct block *b) {
  clear(b);
  for (uint32_t i = 0; i < BLOCK; i++) free(b->lines[i].text);
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

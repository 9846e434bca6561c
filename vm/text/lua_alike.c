/* Lua texts of traces that are alike: most of a file differ from one before them in their decisions alone. Such a text
 * is compared with that one, and only its decisions are read; the trace shares the other's steps. Any other text is
 * read as by itself: what is read is the same in any case. */
#include "vm/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FORMS = 8, MOST_DIGITS = 18 };
static const size_t LONGEST = (size_t)1 << 16; /* a text that is kept */

struct form {
  char *text;
  size_t length;
  struct vm_trace *trace; /* of the text; NULL: there is none yet */
  struct vm_spans decided;
  struct vm_text binary; /* of the steps; empty: none was asked for */
};

struct vm_lua_reader {
  struct form forms[FORMS];
  uint32_t last;      /* the form that served last */
  uint32_t next;      /* the one that another text takes the place of */
  int64_t *decisions; /* of the text that is read; room for those of any form */
  uint32_t room;
};

struct vm_lua_reader *vm_lua_reader_new(void) {
  struct vm_lua_reader *r = calloc(1, sizeof *r);
  if (!r) abort();
  return r;
}

static void clear(struct form *f) {
  free(f->text);
  free(f->decided.at);
  free(f->binary.at);
  vm_trace_free(f->trace);
  *f = (struct form){0};
}

void vm_lua_reader_free(struct vm_lua_reader *r) {
  if (!r) return;
  for (int i = 0; i < FORMS; i++) clear(&r->forms[i]);
  free(r->decisions);
  free(r);
}

/* ---- Decisions: numbers as they are written, so few digits that they fit ---- */

static bool read_number(const char **at, const char *end, int64_t *out) {
  const char *c = *at;
  bool negative = c < end && *c == '-';
  c += negative;
  const char *first = c;
  int64_t value = 0;
  for (; c < end && *c >= '0' && *c <= '9' && c - first < MOST_DIGITS; c++) value = value * 10 + (*c - '0');
  if (c == first) return false;
  *out = negative ? -value : value;
  *at = c;
  return true;
}

static bool take(const char **at, const char *end, const char *what, size_t length) {
  if ((size_t)(end - *at) < length || memcmp(*at, what, length) != 0) return false;
  *at += length;
  return true;
}

/* One number, or so many in braces with ", " between. */
static bool read_decision(const char **at, const char *end, bool list, uint32_t count, int64_t *out) {
  if (!list) return count == 1 && read_number(at, end, out);
  if (!take(at, end, "{", 1)) return false;
  for (uint32_t i = 0; i < count; i++)
    if ((i && !take(at, end, ", ", 2)) || !read_number(at, end, &out[i])) return false;
  return take(at, end, "}", 1);
}

static uint32_t outputs_of(const struct form *f, uint32_t span) {
  return f->trace->steps->instructions[f->decided.at[span].instruction].outputs;
}

/* Reads all decisions of a text that is the form's but for them. */
static bool read_decisions(const struct form *f, const char *text, size_t length, int64_t *out) {
  const char *at = text, *end = text + length;
  size_t done = 0;
  for (uint32_t i = 0; i < f->decided.count; i++) {
    const struct vm_span *s = &f->decided.at[i];
    uint32_t count = outputs_of(f, i);
    if (!take(&at, end, f->text + done, s->from - done)) return false;
    if (!read_decision(&at, end, f->text[s->from] == '{', count, out)) return false;
    out += count;
    done = s->to;
  }
  return (size_t)(end - at) == f->length - done && !memcmp(at, f->text + done, f->length - done);
}

/* ---- Forms ---- */

static struct vm_trace *decide(const struct form *f, const int64_t *decisions) {
  struct vm_trace *trace = vm_trace_new();
  vm_trace_adopt(trace, f->trace->steps);
  for (uint32_t i = 0; i < f->decided.count; i++) {
    uint32_t count = outputs_of(f, i);
    vm_decide(trace, f->decided.at[i].instruction, decisions, count);
    decisions += count;
  }
  return trace;
}

/* Keeps a text, in the place of another, whose decisions are all as read_decision reads them: others may stand in their
 * places. Takes the spans. */
static void keep(struct vm_lua_reader *r, const char *text, size_t length, struct vm_trace *trace,
                 struct vm_spans *decided) {
  struct form *f = &r->forms[r->next];
  uint64_t numbers = 0;
  if (length > LONGEST) return;
  clear(f);
  *f = (struct form){malloc(length + 1), length, vm_trace_copy(trace), *decided, {0}};
  if (!f->text) abort();
  memcpy(f->text, text, length);
  for (uint32_t i = 0; i < decided->count; i++) numbers += outputs_of(f, i);
  *decided = (struct vm_spans){0};
  if (numbers > r->room) r->decisions = tir_enlarge(r->decisions, &r->room, numbers, sizeof *r->decisions);
  if (!read_decisions(f, f->text, f->length, r->decisions)) {
    clear(f);
    return;
  }
  r->last = r->next;
  r->next = (r->next + 1) % FORMS;
}

struct vm_trace *vm_read_next_lua(struct vm_lua_reader *r, const char *text, size_t length, ms_error *err) {
  assert(r && (text || !length));
  for (uint32_t k = 0, from = r->last; k < FORMS; k++) {
    const struct form *f = &r->forms[(from + k) % FORMS];
    if (!f->trace || !read_decisions(f, text, length, r->decisions)) continue;
    r->last = (from + k) % FORMS;
    return decide(f, r->decisions);
  }
  struct vm_spans decided = {0};
  struct vm_trace *trace = vm_read_lua_spans(text, length, &decided, err);
  if (trace) keep(r, text, length, trace, &decided);
  free(decided.at);
  return trace;
}

void *vm_write_next_binary(struct vm_lua_reader *r, const struct vm_trace *trace, size_t *length) {
  assert(r && trace->steps && length);
  struct form *f = &r->forms[r->last];
  struct vm_text out = {0};
  if (!f->trace || f->trace->steps != trace->steps) return vm_write_binary(trace, length);
  if (!f->binary.size) vm_put_binary_steps(&f->binary, trace->steps);
  vm_put(&out, f->binary.at, f->binary.size);
  vm_put_binary_decisions(&out, trace);
  *length = out.size;
  return out.at;
}

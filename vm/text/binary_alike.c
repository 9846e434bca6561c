/* Binary forms of traces that are alike: of most, the bytes of the steps are those of one before them. Such a trace
 * shares the other's steps, and its text is that one's with other decisions. Any other is read and written as by
 * itself: what comes of it is the same in any case. */
#include "vm/steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FORMS = 16 };
static const size_t LONGEST = (size_t)1 << 16; /* bytes of steps that are kept */

struct form {
  void *bytes; /* of the steps; NULL: there are none yet */
  size_t length;
  struct vm_trace *trace; /* which has the steps */
  bool safe;
  struct vm_text lua; /* of the steps; empty: none was asked for */
  struct vm_spans draws;
};

struct vm_binary_reader {
  struct form forms[FORMS];
  uint32_t last, next; /* the form that served last; the one that another takes the place of */
};

struct vm_binary_reader *vm_binary_reader_new(void) {
  struct vm_binary_reader *r = calloc(1, sizeof *r);
  if (!r) abort();
  return r;
}

static void clear(struct form *f) {
  free(f->bytes);
  free(f->lua.at);
  free(f->draws.at);
  vm_trace_free(f->trace);
  *f = (struct form){0};
}

void vm_binary_reader_free(struct vm_binary_reader *r) {
  if (!r) return;
  for (int i = 0; i < FORMS; i++) clear(&r->forms[i]);
  free(r);
}

static void keep(struct vm_binary_reader *r, const void *bytes, size_t length, const struct vm_trace *trace) {
  struct form *f = &r->forms[r->next];
  clear(f);
  *f = (struct form){.bytes = malloc(length), .length = length, .trace = vm_trace_copy(trace)};
  if (!f->bytes) abort();
  memcpy(f->bytes, bytes, length);
  f->safe = vm_trace_is_safe(trace);
  r->last = r->next;
  r->next = (r->next + 1) % FORMS;
}

static struct vm_trace *read_alike(const struct form *f, const void *bytes, size_t length, ms_error *err) {
  struct vm_trace *trace = vm_trace_new();
  vm_trace_adopt(trace, f->trace->steps);
  if (vm_read_binary_decisions(trace, (const uint8_t *)bytes + f->length, length - f->length, err)) return trace;
  vm_trace_free(trace);
  return NULL;
}

struct vm_trace *vm_read_next_binary(struct vm_binary_reader *r, const void *bytes, size_t length, ms_error *err) {
  assert(r && (bytes || !length));
  for (uint32_t k = 0, from = r->last; k < FORMS; k++) {
    const struct form *f = &r->forms[(from + k) % FORMS];
    if (!f->bytes || f->length > length || memcmp(f->bytes, bytes, f->length) != 0) continue;
    r->last = (from + k) % FORMS;
    return read_alike(f, bytes, length, err);
  }
  size_t steps;
  struct vm_trace *trace = vm_read_binary_parts(bytes, length, &steps, err);
  if (trace && steps <= LONGEST) keep(r, bytes, steps, trace);
  return trace;
}

/* The form whose steps a trace shares, which was read last; NULL: it was not kept. */
static struct form *form_of(struct vm_binary_reader *r, const struct vm_trace *trace) {
  struct form *f = &r->forms[r->last];
  return f->trace && f->trace->steps == trace->steps ? f : NULL;
}

bool vm_next_is_safe(struct vm_binary_reader *r, const struct vm_trace *trace) {
  const struct form *f = form_of(r, trace);
  return f ? f->safe : vm_trace_is_safe(trace);
}

char *vm_write_next_lua(struct vm_binary_reader *r, const struct vm_trace *trace) {
  struct form *f = form_of(r, trace);
  if (!f) return vm_write_lua(trace);
  if (!f->lua.size) vm_put_lua_steps(&f->lua, trace->steps, &f->draws);
  return vm_put_lua_decisions(&f->lua, &f->draws, trace);
}

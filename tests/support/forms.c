#include "forms.h"

#include <stdlib.h>
#include <string.h>

/* The binary form of a trace holds all that it is. */
bool same_trace(const struct vm_trace *a, const struct vm_trace *b) {
  size_t a_length, b_length;
  void *a_bytes = vm_write_binary(a, &a_length), *b_bytes = vm_write_binary(b, &b_length);
  bool same = a_length == b_length && !memcmp(a_bytes, b_bytes, a_length);
  free(a_bytes);
  free(b_bytes);
  return same;
}

/* A copy with draws numbered in order. */
static struct vm_trace *renumbered(const struct vm_trace *trace) {
  struct vm_trace *copy = vm_trace_head(trace, trace->steps->count);
  uint32_t draws = 0;
  for (uint32_t i = 0; i < copy->steps->count; i++)
    if (copy->steps->instructions[i].draw != VM_NO_DRAW) copy->steps->instructions[i].draw = draws++;
  copy->steps->next_draw = draws;
  return copy;
}

enum form { JSON, LUA, BINARY };
static const char *const form_names[] = {"JSON", "Lua text", "binary"};

static void *write(enum form form, const struct vm_trace *trace, size_t *length) {
  if (form == BINARY) return vm_write_binary(trace, length);
  char *text = form == JSON ? vm_write_json(trace) : vm_write_lua(trace);
  *length = text ? strlen(text) : 0;
  return text;
}

static struct vm_trace *read(enum form form, const void *bytes, size_t length, ms_error *err) {
  return form == JSON  ? vm_read_json(bytes, length, err)
         : form == LUA ? vm_read_lua(bytes, length, err)
                       : vm_read_binary(bytes, length, err);
}

/* JSON writes what a layout is padded with as TVM does, with a type: what is read is another value that means the same.
 */
static bool has_padding(const struct vm_trace *trace) {
  const struct vm_steps *s = trace->steps;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->instructions[i].kind == VM_TransformLayout && vm_attrs_of(s, &s->instructions[i])[2].kind != VM_NONE)
      return true;
  return false;
}

static bool form_agrees(enum form form, const struct vm_trace *trace, char *why, size_t size) {
  ms_error err = {0};
  size_t length, again_length;
  char *text = write(form, trace, &length), *again = NULL;
  const char *shown = form == BINARY ? "" : text;
  struct vm_trace *back = text ? read(form, text, length, &err) : NULL;
  struct vm_trace *expected = form == JSON ? renumbered(trace) : vm_trace_copy(trace);
  /* Lua text has no place for ids that have been given and are not there any more */
  if (back && form == LUA && back->steps->next_draw < expected->steps->next_draw)
    back->steps->next_draw = expected->steps->next_draw;
  bool ok = false;
  if (!back)
    snprintf(why, size, "%s is refused: %s\n%s", form_names[form], err.message, shown);
  else if (!(form == JSON && has_padding(trace)) && !same_trace(back, expected))
    snprintf(why, size, "%s gives another trace\n%s", form_names[form], shown);
  else if (again = write(form, back, &again_length), again_length != length || memcmp(again, text, length) != 0)
    snprintf(why, size, "%s is written otherwise\n%s\n%s", form_names[form], shown, form == BINARY ? "" : again);
  else
    ok = true;
  vm_trace_free(back);
  vm_trace_free(expected);
  free(text);
  free(again);
  return ok;
}

bool forms_agree(const struct vm_trace *trace, char *why, size_t size) {
  return form_agrees(JSON, trace, why, size) && form_agrees(LUA, trace, why, size) &&
         form_agrees(BINARY, trace, why, size);
}

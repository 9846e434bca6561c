/* Parts of traces: the first instructions, or those that matter. */
#include "steps.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void mark_used(void *data, uint32_t variable) { ((uint8_t *)data)[variable] = 1; }

/* keep[i]: whether instruction i stays. From the last to the first: one that only looks or draws stays if something
 * that stays uses what it gives. */
static void find_live(const struct vm_steps *s, uint32_t count, uint8_t *keep) {
  assert(count <= s->count);
  uint8_t *used = calloc(s->variables + 1, 1);
  if (!used) abort();
  for (uint32_t n = count; n-- > 0;) {
    const struct vm_instruction *i = &s->instructions[n];
    enum vm_effect effect = vm_kind_info(i->kind)->effect;
    keep[n] = effect == VM_EFFECT_edit || effect == VM_EFFECT_mark;
    for (uint32_t o = 0; o < i->outputs && !keep[n]; o++) keep[n] = used[i->first_output + o];
    if (!keep[n]) continue;
    for (uint32_t v = 0; v < i->inputs + i->attrs; v++)
      vm_visit_variables(s, &s->values[i->values + v], mark_used, used);
  }
  free(used);
}

struct copier {
  const struct vm_steps *from;
  struct vm_trace *to;
  uint32_t *variables; /* old number -> new */
};

static struct vm_value copy_value(struct copier *c, const struct vm_value *v) {
  struct vm_value out = *v;
  if (v->kind == VM_REF) out.ref = c->variables[v->ref];
  if (v->kind == VM_STRING) out = vm_string(c->to, c->from->text + v->first, v->count);
  if (v->kind == VM_LIST || v->kind == VM_MAP || v->kind == VM_INDEX_MAP || v->kind == VM_APPLY) {
    struct vm_value *items = v->count ? malloc(v->count * sizeof *items) : NULL;
    if (v->count && !items) abort();
    for (uint32_t i = 0; i < v->count; i++) items[i] = copy_value(c, &c->from->values[v->first + i]);
    out.first = vm_list(c->to, v->kind, items, v->count).first;
    free(items);
  }
  return out;
}

static void copy_instruction(struct copier *c, const struct vm_trace *trace, uint32_t n) {
  assert(n < c->from->count);
  const struct vm_instruction *i = &c->from->instructions[n];
  struct vm_value *values = malloc((i->inputs + i->attrs + 1) * sizeof *values);
  if (!values) abort();
  for (uint32_t v = 0; v < i->inputs + i->attrs; v++) values[v] = copy_value(c, &c->from->values[i->values + v]);
  bool fits = vm_append(c->to, i->kind, values, i->inputs, values + i->inputs, i->attrs, i->outputs, i->draw, NULL);
  assert(fits && "an instruction fits a part of its trace");
  (void)fits;
  free(values);
  const struct vm_instruction *copy = &c->to->steps->instructions[c->to->steps->count - 1];
  for (uint32_t o = 0; o < i->outputs; o++) c->variables[i->first_output + o] = copy->first_output + o;
  if (i->draw == VM_NO_DRAW) return;
  memcpy(c->to->decisions + copy->decision, trace->decisions + i->decision, i->outputs * sizeof *trace->decisions);
  c->to->decided[copy->decision] = trace->decided[i->decision];
}

static struct vm_trace *copy_part(const struct vm_trace *trace, uint32_t count, const uint8_t *keep) {
  assert(count <= trace->steps->count);
  struct copier c = {.from = trace->steps, .to = vm_trace_new()};
  c.variables = calloc(trace->steps->variables + 1, sizeof *c.variables);
  if (!c.variables) abort();
  for (uint32_t n = 0; n < count; n++)
    if (!keep || keep[n]) copy_instruction(&c, trace, n);
  free(c.variables);
  c.to->steps->next_draw = trace->steps->next_draw; /* an id is never given twice */
  return c.to;
}

struct vm_trace *vm_trace_head(const struct vm_trace *trace, uint32_t n) {
  assert(n <= trace->steps->count);
  return copy_part(trace, n, NULL);
}

struct vm_trace *vm_trace_simplified(const struct vm_trace *trace, bool postprocessing) {
  const struct vm_steps *s = trace->steps;
  uint32_t count = s->count;
  for (uint32_t n = 0; n < count && !postprocessing; n++)
    if (s->instructions[n].kind == VM_EnterPostproc) count = n;
  uint8_t *keep = calloc(count + 1, 1);
  if (!keep) abort();
  find_live(s, count, keep);
  struct vm_trace *out = copy_part(trace, count, keep);
  free(keep);
  return out;
}

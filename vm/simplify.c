/* Parts of traces: the first instructions, those that matter, or a piece; and traces made of pieces. */
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
  bool new_draws;      /* draws get ids of the new trace's */
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
  uint32_t draw = c->new_draws ? VM_NO_DRAW : i->draw;
  bool fits = vm_append(c->to, i->kind, values, i->inputs, values + i->inputs, i->attrs, i->outputs, draw, NULL);
  assert(fits && "an instruction fits a part of its trace");
  (void)fits;
  free(values);
  const struct vm_instruction *copy = &c->to->steps->instructions[c->to->steps->count - 1];
  for (uint32_t o = 0; o < i->outputs; o++) c->variables[i->first_output + o] = copy->first_output + o;
  if (i->draw == VM_NO_DRAW) return;
  memcpy(c->to->decisions + copy->decision, trace->decisions + i->decision, i->outputs * sizeof *trace->decisions);
  c->to->decided[copy->decision] = trace->decided[i->decision];
}

/* Adds the instructions from `first` on, up to `end`, but those that keep says no to. */
static void copy_range(struct copier *c, const struct vm_trace *trace, uint32_t first, uint32_t end,
                       const uint8_t *keep) {
  assert(first <= end && end <= trace->steps->count);
  c->from = trace->steps;
  c->variables = calloc(trace->steps->variables + 1, sizeof *c->variables);
  if (!c->variables) abort();
  for (uint32_t n = first; n < end; n++)
    if (!keep || keep[n]) copy_instruction(c, trace, n);
  free(c->variables);
}

static struct vm_trace *copy_part(const struct vm_trace *trace, uint32_t count, const uint8_t *keep) {
  struct copier c = {.to = vm_trace_new()};
  copy_range(&c, trace, 0, count, keep);
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

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

static void note_least(void *data, uint32_t variable) {
  uint32_t *least = data;
  if (variable < *least) *least = variable;
}

/* Whether the instructions take nothing from before them, and the branches that they begin end among them. */
static bool stands_alone(const struct vm_steps *s, uint32_t first, uint32_t end) {
  uint32_t least = UINT32_MAX, depth = 0;
  for (uint32_t n = first; n < end; n++) {
    const struct vm_instruction *i = &s->instructions[n];
    for (uint32_t v = 0; v < i->inputs + i->attrs; v++)
      vm_visit_variables(s, &s->values[i->values + v], note_least, &least);
    if (i->kind == VM_If || i->kind == VM_For) depth++;
    if ((i->kind == VM_Else || i->kind == VM_End) && !depth) return false;
    if (i->kind == VM_End) depth--;
  }
  return !depth && (first == end || least >= s->instructions[first].first_output);
}

struct vm_trace *vm_trace_part(const struct vm_trace *trace, uint32_t first, uint32_t end) {
  assert(first <= end && end <= trace->steps->count);
  if (!stands_alone(trace->steps, first, end)) return NULL;
  struct copier c = {.to = vm_trace_new(), .new_draws = true};
  copy_range(&c, trace, first, end, NULL);
  return c.to;
}

struct vm_trace *vm_trace_join(const struct vm_trace *const *parts, uint32_t count) {
  uint64_t variables = 0;
  for (uint32_t p = 0; p < count; p++) variables += parts[p]->steps->variables;
  if (variables > VM_MOST_VARIABLES) return NULL;
  struct copier c = {.to = vm_trace_new(), .new_draws = true};
  for (uint32_t p = 0; p < count; p++) copy_range(&c, parts[p], 0, parts[p]->steps->count, NULL);
  return c.to;
}

/* Whether two values say the same, the variables of b counted from `offset` on. */
static bool same_value(const struct vm_steps *sa, const struct vm_value *a, const struct vm_steps *sb,
                       const struct vm_value *b, uint32_t offset) {
  if (a->kind != b->kind || a->bare != b->bare || a->op != b->op) return false;
  switch (a->kind) {
  case VM_NONE: return true;
  case VM_REF: return b->ref >= offset && a->ref == b->ref - offset;
  case VM_STRING: return a->count == b->count && !memcmp(sa->text + a->first, sb->text + b->first, a->count);
  case VM_LIST:
  case VM_MAP:
  case VM_INDEX_MAP:
  case VM_APPLY:
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
      if (!same_value(sa, &sa->values[a->first + i], sb, &sb->values[b->first + i], offset)) return false;
    return true;
  case VM_PARAM: return a->ref == b->ref;
  default: return a->integer == b->integer; /* a real's bits, too */
  }
}

bool vm_trace_has_at(const struct vm_trace *trace, uint32_t first, const struct vm_trace *part) {
  const struct vm_steps *s = trace->steps, *p = part->steps;
  if (first > s->count || p->count > s->count - first) return false;
  for (uint32_t n = 0; n < p->count; n++) {
    const struct vm_instruction *a = &p->instructions[n], *b = &s->instructions[first + n];
    if (a->kind != b->kind || a->inputs != b->inputs || a->attrs != b->attrs || a->outputs != b->outputs) return false;
    uint32_t offset = s->instructions[first].first_output;
    for (uint32_t v = 0; v < a->inputs + a->attrs; v++)
      if (!same_value(p, &p->values[a->values + v], s, &s->values[b->values + v], offset)) return false;
  }
  return true;
}

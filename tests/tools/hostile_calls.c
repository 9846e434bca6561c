/* hostile_calls DIRECTORY [TIMES]: each instruction of the cases performed with operands that are wrong: of another
 * kind, absurd, stale, of no schedule, left out, repeated, one too many. A refusal has a code and a message and leaves
 * module and trace as they were, bit for bit; what is accepted gives a module that the verifier passes. Each wrong
 * value of each operand of each kind of instruction is tried TIMES times (2 unless said), in different cases. */
#include "support/case.h"
#include "support/unchanged.h"
#include "vm/vm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VALUES = 256, WRONG = 64, PLACES = 2 * VM_MOST_PARAMS + 2 };

struct hostile {
  const char *name; /* of the case */
  struct tir *workload, *before;
  const struct vm_trace *trace;
  struct vm_schedule *sch; /* what the first `head` instructions made */
  uint32_t head, at;       /* at: the instruction that is performed */
  uint32_t times, calls, refused, failures;
  uint8_t tried[VM_KIND_COUNT][PLACES][WRONG];
  uint32_t refusals[VM_KIND_COUNT];
};

/* The operands of one call. */
struct operands {
  struct vm_value inputs[MOST_VALUES], attrs[MOST_VALUES];
  uint32_t input_count, attr_count;
};

static void fail(struct hostile *h, const char *why) {
  const struct vm_instruction *i = &h->trace->steps->instructions[h->at];
  printf("%s: instruction %u, %s: %s\n", h->name, h->at, vm_kind_info(i->kind)->name, why);
  h->failures++;
}

/* ---- One call ---------------------------------------------------------------------------------------------------- */

/* The schedule as the instructions before made it. */
static bool start(struct hostile *h) {
  struct vm_trace *head = vm_trace_head(h->trace, h->head);
  struct vm_draws draws = {.mode = VM_STRICT, .decisions = head, .seed = 1};
  struct vm_plan *plan = vm_prepare(h->workload, head);
  ms_error err = {0};
  vm_schedule_free(h->sch);
  h->sch = vm_schedule_new(h->workload, 1);
  h->sch->workload = h->workload;
  bool done = vm_replay(h->sch, plan, &draws, &err);
  vm_plan_free(plan);
  vm_trace_free(head);
  return done;
}

static void check_refusal(struct hostile *h, const struct vm_steps *was, const ms_error *err) {
  const struct vm_steps *s = h->sch->trace.steps;
  const char *array = changed_array(h->before, h->sch->ir);
  if (array) fail(h, array), fail(h, err->message);
  if (s->count != was->count || s->variables != was->variables || s->next_draw != was->next_draw ||
      s->decisions != was->decisions)
    fail(h, "a refusal changed the trace");
  /* an Assert is refused at the draw that it leaves no number */
  bool numbered = h->trace->steps->instructions[h->at].kind == VM_Assert ? err->instruction <= (int)h->head
                                                                         : err->instruction == (int)h->head;
  if (err->code == MS_OK || err->code >= MS_CODE_COUNT || !*err->message || !numbered || err->instruction < 0)
    fail(h, "refused without a code, a message or its number");
  h->refused++;
  h->refusals[h->trace->steps->instructions[h->at].kind]++;
}

static void call(struct hostile *h, const struct operands *o, const int64_t *decision, uint32_t count) {
  const struct vm_steps was = *h->sch->trace.steps;
  uint32_t first, made;
  ms_error err = {.instruction = -1};
  h->calls++;
  tir_copy(h->before, h->sch->ir);
  if (!vm_call(h->sch, h->trace->steps->instructions[h->at].kind, o->inputs, o->input_count, o->attrs, o->attr_count,
               decision, count, &first, &made, &err)) {
    check_refusal(h, &was, &err);
    return;
  }
  if (!vm_verify(&h->sch->trace, h->sch->ir, &err)) fail(h, err.message);
  if (!start(h)) fail(h, "what was performed is refused");
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* A value of the trace in the schedule's own trace, whose variables have the same numbers. */
static struct vm_value carry(struct hostile *h, const struct vm_value *v) {
  const struct vm_steps *from = h->trace->steps;
  struct vm_value out = *v, items[MOST_VALUES];
  if (v->kind == VM_STRING) out = vm_string(&h->sch->trace, from->text + v->first, v->count);
  bool list = v->kind == VM_LIST || v->kind == VM_MAP || v->kind == VM_INDEX_MAP || v->kind == VM_APPLY;
  if (!list || v->count > MOST_VALUES) return out;
  for (uint32_t i = 0; i < v->count; i++) items[i] = carry(h, &from->values[v->first + i]);
  out.first = vm_list(&h->sch->trace, v->kind, items, v->count).first;
  return out;
}

static struct operands operands_of(struct hostile *h) {
  const struct vm_steps *s = h->trace->steps;
  const struct vm_instruction *i = &s->instructions[h->at];
  struct operands o = {.input_count = i->inputs, .attr_count = i->attrs};
  for (uint32_t n = 0; n < i->inputs; n++) o.inputs[n] = carry(h, &vm_inputs_of(s, i)[n]);
  for (uint32_t n = 0; n < i->attrs; n++) o.attrs[n] = carry(h, &vm_attrs_of(s, i)[n]);
  return o;
}

/* A variable that is no longer in the module; else one that nothing gives. */
static struct vm_value stale(const struct hostile *h) {
  const struct vm_steps *s = h->sch->trace.steps;
  for (uint32_t v = 0; v < s->variables; v++)
    if (s->types[v] != VM_T_INT && h->sch->slots[v] > 0 && !vm_statement(h->sch, v)) return vm_ref(v);
  return vm_ref(s->variables);
}

/* The first or last variable of a type; else one that nothing gives. */
static struct vm_value variable(const struct hostile *h, uint8_t type, bool last) {
  const struct vm_steps *s = h->sch->trace.steps;
  uint32_t found = s->variables;
  for (uint32_t v = 0; v < s->variables; v++)
    if (s->types[v] == type && (last || found == s->variables)) found = v;
  return vm_ref(found);
}

static struct vm_value text(struct hostile *h, const char *bytes, size_t length) {
  return vm_string(&h->sch->trace, bytes, length);
}

/* False: there are no more. */
static bool wrong_value(struct hostile *h, uint32_t which, struct vm_value *out) {
  static const int64_t numbers[] = {0, 1, -1, 2, 3, 7, 64, 1 << 20, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
  static const double reals[] = {0.5, -0.0, 1e300, NAN, INFINITY};
  static const char *const texts[] = {"",
                                      "global",
                                      "shared",
                                      "root",
                                      "b0",
                                      "v4",
                                      "None",
                                      "threadIdx.x",
                                      "int8",
                                      "read",
                                      "lambda i: (i,)",
                                      "lambda i, j: (j, i)",
                                      "lambda i, j, k: (i // 0, k % j)",
                                      "lambda *i: i",
                                      "v1 == 1",
                                      "no such thing",
                                      "dot_16x4_vnni"};
  static const uint8_t kinds[] = {VM_T_BLOCK, VM_T_LOOP, VM_T_LOCATION, VM_T_INT};
  enum { NUMBERS = sizeof numbers / sizeof *numbers, REALS = 5, TEXTS = sizeof texts / sizeof *texts };
  struct vm_value two[2];
  if (which < NUMBERS) return *out = vm_int(numbers[which]), true;
  if ((which -= NUMBERS) < REALS) return *out = vm_real(reals[which]), true;
  if ((which -= REALS) < TEXTS) return *out = text(h, texts[which], strlen(texts[which])), true;
  if ((which -= TEXTS) < 8) return *out = variable(h, kinds[which / 2], which % 2), true;
  switch (which - 8) {
  case 0: return *out = vm_none(), true;
  case 1: return *out = vm_bool(true), true;
  case 2: return *out = stale(h), true;
  case 3: return *out = vm_ref(UINT32_MAX), true;
  case 4: return *out = text(h, "a\xff", 2), true;
  case 5: return *out = vm_list(&h->sch->trace, VM_LIST, NULL, 0), true;
  case 6: return *out = vm_list(&h->sch->trace, VM_MAP, NULL, 0), true;
  case 7:
    two[0] = variable(h, VM_T_BLOCK, false), two[1] = variable(h, VM_T_BLOCK, true);
    return *out = vm_list(&h->sch->trace, VM_LIST, two, 2), true;
  case 8:
    two[0] = variable(h, VM_T_LOOP, false), two[1] = vm_int(-3);
    return *out = vm_list(&h->sch->trace, VM_LIST, two, 2), true;
  case 9: two[0] = two[1] = vm_int(0); return *out = vm_list(&h->sch->trace, VM_LIST, two, 2), true;
  default: return false;
  }
}

/* ---- What is tried of an instruction ----------------------------------------------------------------------------- */

/* Whether this wrong value of this place is still to be tried. */
static bool is_due(struct hostile *h, uint32_t place, uint32_t which) {
  uint8_t *tried = &h->tried[h->trace->steps->instructions[h->at].kind][place][which];
  if (*tried == h->times) return false;
  ++*tried;
  return true;
}

static struct vm_value *slot_of(struct operands *o, uint32_t n) {
  return n < o->input_count ? &o->inputs[n] : &o->attrs[n - o->input_count];
}

/* Each wrong value in place of the n-th operand, or of an item of it. */
static void try_operand(struct hostile *h, struct operands *o, uint32_t n, uint32_t place, bool item) {
  struct vm_value wrong, items[MOST_VALUES];
  for (uint32_t which = 0; which < WRONG; which++) {
    *o = operands_of(h);
    struct vm_value *slot = slot_of(o, n);
    if (item && (slot->kind != VM_LIST || !slot->count)) return;
    if (!wrong_value(h, which, &wrong)) return;
    if (!is_due(h, place, which)) continue;
    if (item) {
      memcpy(items, h->sch->trace.steps->values + slot->first, slot->count * sizeof *items);
      items[which % slot->count] = wrong;
      *slot = vm_list(&h->sch->trace, VM_LIST, items, slot->count);
    } else {
      *slot = wrong;
    }
    call(h, o, NULL, 0);
  }
}

/* Operands left out, one too many, one repeated. */
static void try_counts(struct hostile *h, struct operands *o) {
  enum { COUNTS = 6 };
  for (uint32_t which = 0; which < COUNTS; which++) {
    if (!is_due(h, PLACES - 1, which)) continue;
    *o = operands_of(h);
    switch (which) {
    case 0: o->input_count -= o->input_count > 0; break;
    case 1: o->attr_count -= o->attr_count > 0; break;
    case 2: o->input_count = o->attr_count = 0; break;
    case 3: o->inputs[o->input_count++] = vm_int(1); break;
    case 4: o->attrs[o->attr_count++] = vm_int(1); break;
    default:
      if (o->input_count) o->inputs[o->input_count] = o->inputs[0], o->input_count++;
    }
    call(h, o, NULL, 0);
  }
}

static void try_decisions(struct hostile *h, struct operands *o) {
  static const int64_t decisions[][4] = {{0},    {-1},     {INT64_MAX}, {INT64_MIN, 1},
                                         {3, 5}, {-8, -8}, {0, 0},      {1, 1, 1, 1}};
  enum { DECISIONS = sizeof decisions / sizeof *decisions };
  for (uint32_t which = 0; which < 4 * DECISIONS; which++) {
    if (!is_due(h, PLACES - 2, which)) continue;
    *o = operands_of(h);
    call(h, o, decisions[which / 4], which % 4 + 1);
  }
}

static void try_instruction(struct hostile *h) {
  static struct operands o;
  const struct vm_instruction *i = &h->trace->steps->instructions[h->at];
  uint32_t last = PLACES / 2 - 1;
  for (uint32_t n = 0; n < i->inputs + i->attrs; n++) {
    uint32_t place = n < i->inputs && n > 1 ? 1 : n < i->inputs ? n : 2 + n - i->inputs;
    if (place > last - 1) place = last - 1;
    try_operand(h, &o, n, place, false);
    try_operand(h, &o, n, last + place, true);
  }
  try_counts(h, &o);
  if (i->draw != VM_NO_DRAW) try_decisions(h, &o);
}

/* What is in a branch has no module of its own while it is recorded: only what opens one is tried, and what would end
 * one that is not open. */
static void try_trace(struct hostile *h) {
  const struct vm_steps *s = h->trace->steps;
  bool branches = false;
  for (h->at = 0; h->at < s->count; h->at++) {
    enum vm_kind kind = s->instructions[h->at].kind;
    bool ends = kind == VM_Else || kind == VM_End;
    if (branches && !ends) continue;
    h->head = ends ? 0 : h->at;
    if (!start(h)) return; /* a case that is refused before */
    try_instruction(h);
    branches = branches || kind == VM_If || kind == VM_For;
  }
}

static void try_case(struct hostile *h, const char *path) {
  char *text = case_read_file(path);
  if (!text) exit(2);
  struct section before = case_section(text, "before"), steps = case_section(text, "trace");
  ms_error err = {0};
  h->workload = before.at && steps.at ? tir_read(before.at, before.length, h->name, &err) : NULL;
  struct vm_trace *trace = h->workload ? vm_read_trace(steps.at, steps.length, &err) : NULL;
  h->trace = trace;
  if (trace) try_trace(h);
  vm_schedule_free(h->sch);
  h->sch = NULL;
  vm_trace_free(trace);
  tir_free(h->workload);
  free(text);
}

/* Each kind is there, and has refused something. */
static void check_kinds(struct hostile *h) {
  for (int kind = 0; kind < VM_KIND_COUNT; kind++) {
    if (h->refusals[kind]) continue;
    printf("%s: nothing was refused\n", vm_kind_info(kind)->name);
    h->failures++;
  }
}

int main(int argc, char **argv) {
  static struct hostile h;
  if (argc < 2) return fprintf(stderr, "usage: hostile_calls DIRECTORY [TIMES]\n"), 2;
  struct case_paths paths = case_find(argv[1]);
  h.times = argc > 2 ? (uint32_t)atoi(argv[2]) : 2;
  h.before = tir_new();
  for (uint32_t i = 0; i < paths.count; i++) try_case(&h, h.name = paths.at[i]);
  case_free_paths(&paths);
  tir_free(h.before);
  check_kinds(&h);
  printf("%u calls, %u refused, %u failures\n", h.calls, h.refused, h.failures);
  return h.failures || !h.calls;
}

/* Instructions that steer: Assert, If, Else, For, End. In a replay they move the place where it goes on.
 *
 * A branch that is not taken gives nothing: what it would give has no value, and its draws keep what was decided. A
 * draw has one decision, so none may stand inside a For. */
#include "run.h"

#include <stdlib.h>

/* ---- Conditions -------------------------------------------------------------------------------------------------- */

static bool apply(const struct vm_steps *s, const struct vm_value *v, const int64_t *slots, int64_t *out);

/* Numbers and variables take no call: they are half of a condition, and a candidate's have thousands of values. */
static inline bool evaluate(const struct vm_steps *s, const struct vm_value *v, const int64_t *slots, int64_t *out) {
  assert(v->kind <= VM_APPLY);
  if (v->kind == VM_INT) return *out = v->integer, true;
  if (v->kind == VM_REF) return *out = slots[v->ref], *out > VM_UNSET;
  return v->kind == VM_APPLY && apply(s, v, slots, out);
}

static bool apply(const struct vm_steps *s, const struct vm_value *v, const int64_t *slots, int64_t *out) {
  const struct vm_value *items = &s->values[v->first];
  int64_t a, b;
  if (!evaluate(s, &items[0], slots, &a)) return false;
  if (v->op == TIR_AND && !a) return *out = 0, true;
  if (v->op == TIR_OR && a) return *out = 1, true;
  if (!evaluate(s, &items[1], slots, &b)) return false;
  switch (v->op) {
  case TIR_AND:
  case TIR_OR: return *out = b != 0, true;
  case TIR_ADD: return !__builtin_add_overflow(a, b, out); /* the most frequent, as tir_compute has them */
  case TIR_MUL: return !__builtin_mul_overflow(a, b, out);
  default: return tir_compute((enum tir_kind)v->op, a, b, out);
  }
}

const struct vm_value *vm_condition_of(const struct vm_steps *s, const struct vm_instruction *i) {
  return &s->values[vm_attrs_of(s, i)->first];
}

bool vm_holds(const struct vm_steps *s, const struct vm_value *condition, const int64_t *slots, bool *holds) {
  int64_t value = 0;
  bool known = evaluate(s, condition, slots, &value);
  *holds = known && value;
  return known;
}

static void print_condition(const struct vm_steps *s, const struct vm_instruction *i, char *out, size_t size) {
  vm_print_value(s, vm_attrs_of(s, i), out, size);
}

/* The instruction that a step was made of. */
static const struct vm_instruction *instruction_of(const struct vm_run *r, const struct vm_step *s) {
  assert(s >= r->plan->at && s < r->plan->at + r->plan->count);
  return &r->plan->steps->instructions[r->plan->first + (uint32_t)(s - r->plan->at)];
}

static bool decide_condition(struct vm_run *r, const struct vm_step *s, bool *holds) {
  const struct vm_instruction *i = instruction_of(r, s);
  char text[200];
  if (vm_holds(r->plan->steps, vm_condition_of(r->plan->steps, i), r->slots, holds)) return true;
  print_condition(r->plan->steps, i, text, sizeof text);
  return ms_fail(r->err, MS_CONDITION_VALUE, "%s has no value", text);
}

bool vm_do_assert(struct vm_run *r, const struct vm_step *s) {
  bool holds;
  char text[200];
  if (!decide_condition(r, s, &holds)) return false;
  if (holds) return true;
  print_condition(r->plan->steps, instruction_of(r, s), text, sizeof text);
  return ms_fail(r->err, MS_ASSERT_FAILS, "%s does not hold", text);
}

/* ---- Branches ---------------------------------------------------------------------------------------------------- */

static bool refuse_unmatched(struct vm_run *r, const char *what) { return ms_fail(r->err, MS_UNBALANCED, "%s", what); }

/* Goes on at step `to`: what lies between gives nothing. */
static void skip(struct vm_run *r, const struct vm_step *s, uint32_t to) {
  assert(to <= r->plan->count);
  const struct vm_trace *given = r->draws->decisions;
  struct vm_trace *trace = &r->schedule->trace;
  for (uint32_t i = (uint32_t)(s - r->plan->at) + 1; i < to; i++) {
    const struct vm_step *skipped = &r->plan->at[i];
    for (uint32_t o = 0; o < skipped->outputs; o++) {
      r->slots[skipped->first_output + o] = VM_UNSET;
      if (skipped->draw == VM_NO_DRAW || !given || r->recording) continue;
      trace->decisions[skipped->decision + o] = given->decisions[skipped->decision + o];
      trace->decided[skipped->decision] = given->decided[skipped->decision];
    }
  }
  r->next = to;
  r->skipped = true;
}

/* Whether all that an instruction takes was given. A condition may ask for more than it needs. */
struct unset {
  const int64_t *slots;
  int64_t variable; /* one that was not; -1: none */
};

static void find_unset(void *data, uint32_t variable) {
  struct unset *u = data;
  if (u->slots[variable] == VM_UNSET) u->variable = variable;
}

bool vm_check_given(const struct vm_run *r, const struct vm_instruction *i) {
  const struct vm_steps *steps = r->plan->steps;
  struct unset u = {r->slots, -1};
  char name[16];
  if (i->kind == VM_Assert || i->kind == VM_If) return true;
  for (uint32_t v = 0; v < i->inputs + i->attrs; v++)
    vm_visit_variables(steps, &steps->values[i->values + v], find_unset, &u);
  if (u.variable < 0) return true;
  vm_variable_name(steps, (uint32_t)u.variable, name);
  return ms_fail(r->err, MS_STALE_HANDLE, "%s is nothing: the branch that gives it was not taken", name);
}

bool vm_do_if(struct vm_run *r, const struct vm_step *s) {
  bool holds;
  if (!decide_condition(r, s, &holds)) return false;
  if (r->recording) return r->made = 0, r->holds = holds, true;
  if (s->jump == VM_NO_JUMP) return refuse_unmatched(r, "no End follows");
  if (!holds) skip(r, s, s->jump + 1);
  return true;
}

bool vm_do_else(struct vm_run *r, const struct vm_step *s) {
  if (r->recording) return r->made = 0, true;
  if (s->jump == VM_NO_JUMP) return refuse_unmatched(r, "no If stands before it, or no End after");
  skip(r, s, s->jump + 1);
  return true;
}

bool vm_do_for(struct vm_run *r, const struct vm_step *s) {
  assert(r->depth <= VM_MOST_NESTED);
  int64_t iterations = vm_get_int(r, vm_input(r, s, 0)), first = 0;
  if (iterations < 0 || iterations > VM_MOST_ITERATIONS)
    return ms_fail(r->err, MS_INVALID_ARGUMENT, "%lld iterations: from 0 to %d are possible", (long long)iterations,
                   VM_MOST_ITERATIONS);
  if (!vm_give_numbers(r, s, &first, 1)) return false;
  if (r->recording) return r->holds = iterations > 0, true;
  if (s->jump == VM_NO_JUMP) return refuse_unmatched(r, "no End follows");
  if (!iterations)
    skip(r, s, s->jump + 1);
  else
    r->iterations[r->depth++] = iterations;
  return true;
}

bool vm_do_end(struct vm_run *r, const struct vm_step *s) {
  if (r->recording) return r->made = 0, true;
  if (s->jump == VM_NO_JUMP) return refuse_unmatched(r, "no If or For stands before it");
  const struct vm_step *opener = &r->plan->at[s->jump];
  if (instruction_of(r, opener)->kind != VM_For) return true;
  int64_t *iteration = &r->slots[opener->first_output];
  if (++*iteration == r->iterations[r->depth - 1]) {
    --*iteration, r->depth--;
    return true;
  }
  r->next = s->jump + 1;
  return ++r->all_rounds <= VM_MOST_ALL_ITERATIONS ||
         ms_fail(r->err, MS_INVALID_ARGUMENT, "more than %d iterations of For in all", VM_MOST_ALL_ITERATIONS);
}

static bool refuse_draw(struct vm_run *r, const struct vm_step *s) {
  (void)s;
  return ms_fail(r->err, MS_DRAW_IN_FOR, "a draw has one decision for all iterations: draw before the For");
}

/* ---- Which belong together --------------------------------------------------------------------------------------- */

void vm_plan_match(struct vm_plan *plan) {
  assert(plan->count <= plan->capacity);
  uint32_t open[VM_MOST_NESTED], depth = 0, loops = 0;
  for (uint32_t i = 0; i < plan->count; i++) {
    const struct vm_instruction *at = &plan->steps->instructions[plan->first + i];
    if (at->draw != VM_NO_DRAW && loops) plan->at[i].perform = refuse_draw;
    if (at->kind != VM_If && at->kind != VM_For && at->kind != VM_Else && at->kind != VM_End) continue;
    plan->at[i].jump = VM_NO_JUMP;
    if (at->kind == VM_If || at->kind == VM_For) {
      if (depth == VM_MOST_NESTED) return; /* what follows stays without its match, and is refused */
      open[depth++] = i;
      loops += at->kind == VM_For;
      continue;
    }
    if (!depth) continue;
    uint32_t opener = open[--depth];
    enum vm_kind kind = plan->steps->instructions[plan->first + opener].kind;
    if (at->kind == VM_Else) {
      if (kind != VM_If) return;
      open[depth++] = i; /* takes the If's place */
    } else {
      loops -= kind == VM_For;
      plan->at[i].jump = opener;
    }
    plan->at[opener].jump = i;
  }
}

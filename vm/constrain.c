/* Draws under Asserts: a number is drawn only if the Asserts that it decides hold. Where none is left, the last draw
 * before it that can have to do with that is made again without the number that led there, and so on backwards: no
 * number is tried twice, and if nothing is left, nothing satisfies the Asserts.
 * Source: Prosser, "Hybrid algorithms for the constraint satisfaction problem", 1993: conflict-directed backjumping. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* ---- Which draws decide which Asserts ---------------------------------------------------------------------------- */

struct last_draw {
  const struct vm_steps *steps;
  int64_t last; /* -1: none; -2: something that is no draw is among them */
};

static void find_last_draw(void *data, uint32_t variable) {
  struct last_draw *l = data;
  uint32_t giver = vm_giver_of(l->steps, variable);
  if (l->steps->instructions[giver].draw == VM_NO_DRAW) l->last = -2;
  if (l->last != -2 && giver > l->last) l->last = giver;
}

/* The last draw that an Assert depends on; -1: there is none that could be made otherwise. */
static int64_t last_draw_of(const struct vm_steps *s, const struct vm_instruction *assertion) {
  struct last_draw l = {s, -1};
  vm_visit_variables(s, vm_condition_of(s, assertion), find_last_draw, &l);
  return l.last;
}

/* Asserts outside of branches are sure to be met. Each is listed with the last of its draws: counted, given room, put
 * there. */
void vm_plan_constrain(struct vm_plan *plan) {
  assert(plan->steps && plan->first + plan->count <= plan->steps->count);
  const struct vm_steps *s = plan->steps;
  for (int pass = 0; pass < 2; pass++) {
    uint32_t depth = 0, room = 0;
    for (uint32_t i = 0; i < plan->count; i++) {
      enum vm_kind kind = s->instructions[i].kind;
      depth += kind == VM_If || kind == VM_For;
      depth -= kind == VM_End && depth;
      if (kind != VM_Assert || depth) continue;
      int64_t last = last_draw_of(s, &s->instructions[i]);
      if (last < 0) continue;
      struct vm_step *draw = &plan->at[last];
      if (pass) plan->asserts[draw->asserts + draw->assert_count] = i;
      draw->assert_count++;
      plan->assert_count += !pass;
    }
    if (pass || !plan->assert_count) return;
    plan->asserts = tir_enlarge(plan->asserts, &plan->assert_capacity, plan->assert_count, sizeof *plan->asserts);
    for (uint32_t i = 0; i < plan->count; i++) {
      plan->at[i].asserts = room;
      room += plan->at[i].assert_count;
      plan->at[i].assert_count = 0;
    }
  }
}

/* ---- Dead ends --------------------------------------------------------------------------------------------------- */

/* Numbers that a draw must not give again while the draws before it stay as they are, and what is to blame. */
struct vm_dead_ends {
  int64_t *entries; /* step, count, numbers… */
  uint32_t size, capacity;
  uint32_t steps; /* of the plan */
  uint32_t unmet; /* the step of a draw for whose Asserts no number was found */
  uint8_t *blame; /* steps x steps: blame[s * steps + d]: draw d has a part in s having found no number */
};
/* What may be done for one replay: a factor tried is 1, a step performed again STEP_WORK. */
enum { MOST_WORK = 1 << 25, STEP_WORK = 128, MOST_STEPS = 8192 };

static bool has_worked_enough(const struct vm_run *r) { return r->work > MOST_WORK || r->plan->count > MOST_STEPS; }

void vm_forget_dead_ends(struct vm_schedule *sch) {
  if (!sch->dead_ends) return;
  free(sch->dead_ends->entries);
  free(sch->dead_ends->blame);
  free(sch->dead_ends);
  sch->dead_ends = NULL;
}

static struct vm_dead_ends *dead_ends_of(struct vm_run *r) {
  struct vm_schedule *sch = r->schedule;
  if (sch->dead_ends) return sch->dead_ends;
  sch->dead_ends = calloc(1, sizeof *sch->dead_ends);
  if (!sch->dead_ends) abort();
  sch->dead_ends->steps = r->plan->count;
  sch->dead_ends->blame = calloc((size_t)r->plan->count * r->plan->count, 1);
  if (!sch->dead_ends->blame) abort();
  return sch->dead_ends;
}

static void add_dead_end(struct vm_dead_ends *d, uint32_t step, const int64_t *numbers, uint32_t count) {
  assert(!count || numbers);
  uint64_t size = (uint64_t)d->size + 2 + count;
  if (size > d->capacity) d->entries = tir_enlarge(d->entries, &d->capacity, size, sizeof *d->entries);
  int64_t *at = d->entries + d->size;
  at[0] = step, at[1] = count;
  memcpy(at + 2, numbers, count * sizeof *numbers);
  d->size = (uint32_t)size;
}

/* Those of draws after `step` held only for the number it had. */
static void drop_after(struct vm_dead_ends *d, uint32_t step) {
  assert(d);
  uint32_t to = 0;
  for (uint32_t from = 0, length; from < d->size; from += length) {
    length = 2 + (uint32_t)d->entries[from + 1];
    if (d->entries[from] > step) continue;
    memmove(d->entries + to, d->entries + from, length * sizeof *d->entries);
    to += length;
  }
  d->size = to;
  for (uint32_t s = step + 1; s < d->steps; s++) memset(d->blame + (size_t)s * d->steps, 0, d->steps);
}

static bool is_dead_end(const struct vm_dead_ends *d, uint32_t step, const int64_t *numbers, uint32_t count) {
  if (!d) return false;
  for (uint32_t at = 0; at < d->size; at += 2 + (uint32_t)d->entries[at + 1])
    if (d->entries[at] == step && d->entries[at + 1] == count &&
        !memcmp(d->entries + at + 2, numbers, count * sizeof *numbers))
      return true;
  return false;
}

/* ---- Drawing ----------------------------------------------------------------------------------------------------- */

bool vm_admits(struct vm_run *r, const struct vm_step *s, const int64_t *numbers, uint32_t count) {
  assert(count <= VM_MOST_OUTPUTS);
  if (r->schedule->dead_ends) r->work += r->schedule->dead_ends->size / 4; /* what is searched */
  if (is_dead_end(r->schedule->dead_ends, (uint32_t)(s - r->plan->at), numbers, count)) return false;
  if (s->assert_count) memcpy(r->slots + s->first_output, numbers, count * sizeof *numbers);
  for (uint32_t i = 0; i < s->assert_count; i++) {
    const struct vm_instruction *assertion = &r->plan->steps->instructions[r->plan->asserts[s->asserts + i]];
    bool holds;
    /* without a value, it is refused where it stands */
    if (vm_holds(r->plan->steps, vm_condition_of(r->plan->steps, assertion), r->slots, &holds) && !holds) return false;
  }
  return true;
}

/* A draw takes what it would take without Asserts where that will do: so it takes the same when a replay starts again.
 */
static bool go_back(struct vm_run *r, const struct vm_step *s);
enum vm_verdict vm_judge_drawn(struct vm_run *r, const struct vm_step *s, const int64_t *numbers, uint32_t count,
                               bool decided) {
  if (vm_admits(r, s, numbers, count)) return VM_TAKE;
  if (!decided || r->draws->mode == VM_REPAIR) return VM_OTHER;
  return go_back(r, s) ? VM_BACK : VM_TAKE;
}

/* Some are drawn first: most often one of them is admissible. Then all, one after the other, innermost factors first;
 * each admissible one takes the place of those before it with the chance of one in their number. */
struct tiling {
  struct vm_run *r;
  const struct vm_step *s;
  const struct vm_tile_rule *rule;
  struct vm_stream stream;
  uint32_t found;
  int64_t tile[64], refused[64], *out;
};

static bool is_other_tile(void *data, const int64_t *tile) {
  struct tiling *t = data;
  int64_t inner = 1;
  for (int64_t i = t->rule->position; i < t->rule->n; i++) inner *= tile[i];
  return inner % t->rule->factor == 0 && memcmp(tile, t->refused, t->rule->n * sizeof *tile) &&
         vm_admits(t->r, t->s, tile, t->rule->n);
}

static void consider(struct tiling *t) {
  if (is_other_tile(t, t->tile) && !vm_stream_below(&t->stream, ++t->found))
    memcpy(t->out, t->tile, t->rule->n * sizeof *t->tile);
}

static void try_factors(struct tiling *t, uint32_t at, int64_t rest);

static void try_factor(struct tiling *t, uint32_t at, int64_t rest, int64_t factor) {
  assert(factor > 0 && rest > 0);
  if (at == t->rule->n - 1 && t->rule->most && factor > t->rule->most) return;
  t->tile[at] = factor;
  if (at)
    try_factors(t, at - 1, rest / factor);
  else
    consider(t);
}

/* The outermost factor is the rest. */
static void try_factors(struct tiling *t, uint32_t at, int64_t rest) {
  assert(at < t->rule->n && rest > 0);
  if (!at) {
    try_factor(t, 0, rest, rest);
    return;
  }
  for (int64_t f = 1; f <= rest / f && !has_worked_enough(t->r); f++) {
    t->r->work++;
    if (rest % f) continue;
    try_factor(t, at, rest, f);
    if (rest / f != f) try_factor(t, at, rest, rest / f);
  }
}

bool vm_draw_other_tile(struct vm_run *r, const struct vm_step *s, const struct vm_tile_rule *rule, int64_t *tile) {
  assert(rule->n >= 1 && rule->extent >= 1);
  struct tiling t = {.r = r, .s = s, .rule = rule, .out = tile};
  t.stream = vm_stream_of(r->draws->seed, r->draws->candidate, s->draw, r->draws->attempt + 1);
  memcpy(t.refused, tile, rule->n * sizeof *tile);
  if (vm_draw_admitted_tile(&t.stream, rule->extent, rule->n, rule->most, is_other_tile, &t, tile)) return true;
  try_factors(&t, rule->n - 1, rule->extent);
  return t.found || vm_no_number(r, s);
}

/* ---- Going back -------------------------------------------------------------------------------------------------- */

/* The draws that a variable's instruction depends on: what it was given, in turn; and what edits before it were given,
 * where it looked at the module. */
struct causes {
  const struct vm_steps *steps;
  uint8_t *seen, *blame;
};

static void blame_variable(void *data, uint32_t variable);

static void blame_instruction(struct causes *c, uint32_t i) {
  assert(i < c->steps->count);
  if (c->seen[i]) return;
  c->seen[i] = 1;
  const struct vm_instruction *at = &c->steps->instructions[i];
  if (at->draw != VM_NO_DRAW) c->blame[i] = 1;
  for (uint32_t v = 0; v < at->inputs + at->attrs; v++)
    vm_visit_variables(c->steps, &c->steps->values[at->values + v], blame_variable, c);
  if (vm_kind_info(at->kind)->effect != VM_EFFECT_look) return;
  for (uint32_t before = 0; before < i; before++)
    if (vm_kind_info(c->steps->instructions[before].kind)->effect == VM_EFFECT_edit) blame_instruction(c, before);
}

static void blame_variable(void *data, uint32_t variable) {
  struct causes *c = data;
  blame_instruction(c, vm_giver_of(c->steps, variable));
}

/* Whether the draw took what it liked in this replay, so that it may take something else. Places are no numbers: no
 * condition looks at them. */
static bool was_free(const struct vm_run *r, uint32_t step) {
  const struct vm_trace *given = r->draws->decisions;
  const struct vm_step *s = &r->plan->at[step];
  if (r->plan->steps->instructions[r->plan->first + step].kind == VM_SampleComputeLocation) return false;
  return r->draws->mode == VM_REPAIR || !given || given->decided[s->decision] != VM_DECIDED;
}

/* Has the last draw before the step that has a part in this made otherwise. False: there is none, or enough has been
 * tried. */
static bool go_back(struct vm_run *r, const struct vm_step *s) {
  assert(s >= r->plan->at && s < r->plan->at + r->plan->count);
  r->work += (uint64_t)r->plan->count * STEP_WORK;
  if (has_worked_enough(r)) return false;
  struct vm_dead_ends *d = dead_ends_of(r);
  uint32_t step = (uint32_t)(s - r->plan->at), back = step;
  uint8_t *blame = d->blame + (size_t)step * d->steps, *seen = calloc(d->steps, 1);
  if (!seen) abort();
  struct causes c = {r->plan->steps, seen, blame};
  if (s->assert_count) d->unmet = step;
  blame_instruction(&c, step);
  for (uint32_t i = 0; i < s->assert_count; i++) blame_instruction(&c, r->plan->asserts[s->asserts + i]);
  free(seen);
  while (back > 0 && !(blame[back - 1] && was_free(r, back - 1))) back--;
  if (!back) return false;
  const struct vm_step *other = &r->plan->at[--back];
  for (uint32_t i = 0; i < back; i++) d->blame[(size_t)back * d->steps + i] |= blame[i];
  drop_after(d, back);
  add_dead_end(d, back, r->slots + other->first_output, other->outputs);
  r->schedule->again = true;
  return ms_fail(r->err, MS_UNSATISFIABLE, "%s", ""), true;
}

static size_t put_condition(const struct vm_steps *steps, uint32_t instruction, char *out, size_t size) {
  char condition[200];
  vm_print_value(steps, vm_attrs_of(steps, &steps->instructions[instruction]), condition, sizeof condition);
  int length = snprintf(out, size, "%s (instruction %u)", condition, instruction);
  return (size_t)length < size ? (size_t)length : size - 1;
}

/* The Asserts of the last draw that had any and found no number for them. */
static void list_unmet(const struct vm_run *r, char *out, size_t size) {
  const struct vm_step *s = &r->plan->at[r->schedule->dead_ends->unmet];
  size_t used = 0;
  for (uint32_t i = 0; i < s->assert_count && used + 1 < size; i++) {
    used += (size_t)snprintf(out + used, size - used, "%s", i ? " and " : "");
    if (used + 1 < size)
      used += put_condition(r->plan->steps, r->plan->asserts[s->asserts + i], out + used, size - used);
  }
}

bool vm_no_number(struct vm_run *r, const struct vm_step *s) {
  char conditions[600] = "";
  if (go_back(r, s)) return false;
  if (has_worked_enough(r))
    return ms_fail(r->err, MS_UNSATISFIABLE,
                   "too many draws lead nowhere: the search for numbers that satisfy the "
                   "Asserts was given up");
  list_unmet(r, conditions, sizeof conditions);
  return ms_fail(r->err, MS_UNSATISFIABLE, "no numbers that can be drawn satisfy: %s", conditions);
}

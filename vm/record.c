/* Performing one instruction after another, each recorded; taking them back.
 *
 * While an If is recorded, each branch is performed where the If began: what the condition chooses stays, what it does
 * not choose is thrown away. The body of a For is performed once as it is recorded, and the other iterations at its
 * End. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* ---- States of a schedule that are come back to ------------------------------------------------------------------ */

struct state {
  struct tir *ir; /* NULL: none */
  int64_t *slots;
  uint32_t variables, forwards;
};

static struct state save(const struct vm_schedule *sch) {
  struct state s = {.ir = tir_new(), .variables = sch->trace.steps->variables, .forwards = sch->forwards};
  tir_copy(s.ir, sch->ir);
  s.slots = malloc((s.variables + 1) * sizeof *s.slots);
  if (!s.slots) abort();
  if (s.variables) memcpy(s.slots, sch->slots, s.variables * sizeof *s.slots);
  return s;
}

static void drop(struct state *s) {
  if (!s->ir) return;
  tir_free(s->ir);
  free(s->slots);
  *s = (struct state){0};
}

/* Variables given since then have no value. */
static void restore(struct vm_schedule *sch, const struct state *s) {
  assert(s->ir && s->ir != sch->ir);
  tir_copy(sch->ir, s->ir);
  if (s->variables) memcpy(sch->slots, s->slots, s->variables * sizeof *s->slots);
  for (uint32_t v = s->variables; v < sch->trace.steps->variables; v++) sch->slots[v] = VM_UNSET;
  sch->forwards = s->forwards;
}

/* ---- Branches ---------------------------------------------------------------------------------------------------- */

struct vm_branch {
  struct vm_branch *outer;
  uint32_t opener;            /* the If, its Else, or the For */
  bool taken;                 /* what is recorded now stays */
  struct state before, after; /* where it began; what the taken branch came to */
};

static void close_branch(struct vm_schedule *sch) {
  assert(sch->branches);
  struct vm_branch *b = sch->branches;
  sch->branches = b->outer;
  drop(&b->before);
  drop(&b->after);
  free(b);
}

void vm_close_branches(struct vm_schedule *sch) {
  while (sch->branches) close_branch(sch);
}

static enum vm_kind kind_at(const struct vm_schedule *sch, uint32_t i) {
  assert(i < sch->trace.steps->count);
  return sch->trace.steps->instructions[i].kind;
}

/* Before the instruction is performed: what it ends is open. */
static bool check_branch(const struct vm_schedule *sch, enum vm_kind kind, uint32_t n, ms_error *err) {
  const struct vm_branch *b = sch->branches;
  if (kind == VM_Else && !(b && kind_at(sch, b->opener) == VM_If))
    return ms_fail(err, MS_UNBALANCED, "no If is open"), vm_refuse_at(err, sch->trace.steps, n);
  if (kind == VM_End && !b)
    return ms_fail(err, MS_UNBALANCED, "no If or For is open"), vm_refuse_at(err, sch->trace.steps, n);
  uint32_t depth = 0;
  bool in_for = false;
  for (; b; b = b->outer) depth++, in_for |= kind_at(sch, b->opener) == VM_For;
  if (in_for && vm_kind_info(kind)->effect == VM_EFFECT_draw)
    return ms_fail(err, MS_DRAW_IN_FOR, "a draw has one decision for all iterations: draw before the For"),
           vm_refuse_at(err, sch->trace.steps, n);
  if ((kind == VM_If || kind == VM_For) && depth == VM_MOST_NESTED)
    return ms_fail(err, MS_UNBALANCED, "more than %d are open", VM_MOST_NESTED), vm_refuse_at(err, sch->trace.steps, n);
  return true;
}

static void open_branch(struct vm_schedule *sch, uint32_t n, bool taken) {
  assert(n < sch->trace.steps->count);
  struct vm_branch *b = calloc(1, sizeof *b);
  if (!b) abort();
  *b = (struct vm_branch){.outer = sch->branches, .opener = n, .taken = taken, .before = save(sch)};
  sch->branches = b;
}

static void open_else(struct vm_schedule *sch, uint32_t n) {
  assert(sch->branches);
  struct vm_branch *b = sch->branches;
  if (b->taken) b->after = save(sch);
  restore(sch, &b->before);
  b->opener = n;
  b->taken = !b->taken;
}

static struct vm_run start_run(struct vm_schedule *sch, const struct vm_plan *plan, ms_error *err) {
  return (struct vm_run){.ir = sch->ir,
                         .schedule = sch,
                         .plan = plan,
                         .draws = &sch->draws,
                         .operands = plan->operands,
                         .slots = sch->slots,
                         .err = err,
                         .most = UINT32_MAX,
                         .skipped = true};
}

/* The iterations of a For after the first, from what stands between it and its End. */
static bool perform_rounds(struct vm_schedule *sch, uint32_t opener, uint32_t end, ms_error *err) {
  assert(opener < end && end < sch->trace.steps->count);
  const struct vm_instruction *loop = &sch->trace.steps->instructions[opener];
  const struct vm_value *count = vm_inputs_of(sch->trace.steps, loop);
  int64_t iterations = count->kind == VM_INT ? count->integer : sch->slots[count->ref];
  struct vm_plan *plan = sch->step;
  plan->workload = sch->ir, plan->intrinsics = sch->intrinsics, plan->steps = sch->trace.steps;
  vm_plan_set(plan, opener + 1, end);
  struct vm_run r = start_run(sch, plan, err);
  struct state before = save(sch);
  bool done = true;
  for (int64_t iteration = 1; done && iteration < iterations; iteration++) {
    sch->slots[loop->first_output] = iteration;
    done = vm_perform_steps(&r);
  }
  plan->steps = NULL;
  if (!done) restore(sch, &before);
  drop(&before);
  return done;
}

static bool end_branch(struct vm_schedule *sch, uint32_t n, ms_error *err) {
  assert(sch->branches);
  struct vm_branch *b = sch->branches;
  if (kind_at(sch, b->opener) == VM_For && b->taken && !perform_rounds(sch, b->opener, n, err)) return false;
  if (!b->taken) {
    /* what the branch that was taken gave keeps its value */
    bool has_after = b->after.ir != NULL;
    restore(sch, has_after ? &b->after : &b->before);
  }
  close_branch(sch);
  return true;
}

/* After the instruction was performed; n is its number. */
static bool steer(struct vm_schedule *sch, enum vm_kind kind, uint32_t n, bool holds, ms_error *err) {
  if (kind == VM_If || kind == VM_For) open_branch(sch, n, holds);
  if (kind == VM_Else) open_else(sch, n);
  return kind != VM_End || end_branch(sch, n, err);
}

/* ---- Points ------------------------------------------------------------------------------------------------------ */

/* Until the next trace is replaced, a schedule's trace only grows: at a point it was a beginning of what it was then,
 * or is now. */
struct vm_point vm_keep_point(struct vm_schedule *sch) {
  assert(sch);
  sch->points++;
  return (struct vm_point){sch->trace.steps->count, sch->replaced_count};
}

void vm_forget_point(struct vm_schedule *sch) {
  assert(sch->points > 0);
  if (--sch->points > 0) return;
  for (uint32_t i = 0; i < sch->replaced_count; i++) vm_trace_free(sch->replaced[i]);
  free(sch->replaced);
  sch->replaced = NULL;
  sch->replaced_count = sch->replaced_capacity = 0;
}

bool vm_drop_look_ups(struct vm_schedule *sch, struct vm_point point) {
  const struct vm_steps *s = sch->trace.steps;
  if (point.replaced != sch->replaced_count || point.instructions >= s->count || sch->branches) return false;
  for (uint32_t n = point.instructions; n < s->count; n++)
    if (vm_kind_info(s->instructions[n].kind)->effect != VM_EFFECT_look) return false;
  vm_trace_own(&sch->trace);
  s = sch->trace.steps;
  const struct vm_instruction *first = &s->instructions[point.instructions];
  struct vm_trace_mark mark = vm_trace_mark(&sch->trace);
  for (uint32_t v = first->values; v < s->value_count; v++)
    if (s->values[v].kind == VM_STRING && s->values[v].first < mark.text_size) mark.text_size = s->values[v].first;
  mark.count = point.instructions, mark.value_count = first->values, mark.variables = first->first_output;
  vm_trace_rewind(&sch->trace, &mark);
  return true;
}

struct vm_trace *vm_trace_at_point(const struct vm_schedule *sch, struct vm_point point) {
  assert(sch->points > 0 && point.replaced <= sch->replaced_count);
  bool now = point.replaced == sch->replaced_count;
  return vm_trace_head(now ? &sch->trace : sch->replaced[point.replaced], point.instructions);
}

/* A copy of its own: who records an instruction wants the steps for itself. */
static void keep_replaced(struct vm_schedule *sch) {
  if (!sch->points) return;
  if (sch->replaced_count == sch->replaced_capacity)
    sch->replaced = tir_enlarge(sch->replaced, &sch->replaced_capacity, (uint64_t)sch->replaced_count + 1,
                                sizeof(struct vm_trace *));
  sch->replaced[sch->replaced_count++] = vm_trace_head(&sch->trace, sch->trace.steps->count);
}

/* ---- Replaying what there is ------------------------------------------------------------------------------------- */

/* Makes the schedule what a trace gives on its workload, with the trace's decisions. False: nothing has changed. */
static bool become(struct vm_schedule *sch, const struct vm_trace *trace, enum vm_mode mode, ms_error *err) {
  struct vm_draws draws = sch->draws;
  draws.mode = mode, draws.decisions = trace;
  struct vm_plan *plan = vm_prepare_with(sch->workload, trace, sch->intrinsics);
  struct vm_schedule *other = vm_schedule_new(NULL, 0);
  bool done = vm_replay(other, plan, &draws, err);
  if (done) {
    keep_replaced(sch);
    struct vm_schedule old = *sch;
    sch->ir = other->ir, sch->trace = other->trace, sch->slots = other->slots, sch->ends = other->ends;
    sch->slot_capacity = other->slot_capacity, sch->end_capacity = other->end_capacity;
    sch->forwards = other->forwards;
    other->ir = old.ir, other->trace = old.trace, other->slots = old.slots, other->ends = old.ends;
  }
  vm_schedule_free(other);
  vm_plan_free(plan);
  return done;
}

/* Draws the numbers of the last instruction, an Assert that does not hold, again. */
static bool draw_again(struct vm_schedule *sch, ms_error *err) {
  if (!vm_append_outputs(&sch->trace, 0, err)) return false;
  struct vm_trace *trace = vm_trace_copy(&sch->trace);
  bool done = become(sch, trace, VM_REPAIR, err);
  vm_trace_free(trace);
  return done;
}

bool vm_undo(struct vm_schedule *sch, uint32_t count, ms_error *err) {
  const struct vm_steps *s = sch->trace.steps;
  uint32_t n = s->count;
  if (sch->branches || !sch->workload)
    return ms_fail(err, MS_CANNOT_UNDO, "%s", sch->branches ? "an If or For is open" : "the workload is not known");
  for (uint32_t i = 0; i < count; i++) {
    if (!n) return ms_fail(err, MS_CANNOT_UNDO, "undo of %u instructions: there are %u", count, i);
    uint32_t depth = 0;
    do {
      enum vm_kind kind = s->instructions[--n].kind;
      depth += kind == VM_End;
      depth -= kind == VM_If || kind == VM_For;
    } while (depth);
  }
  struct vm_trace *head = vm_trace_head(&sch->trace, n);
  bool done = become(sch, head, VM_STRICT, err);
  vm_trace_free(head);
  return done;
}

static bool is_beginning(const struct vm_trace *part, const struct vm_trace *whole) {
  if (part->steps->count >= whole->steps->count) return false;
  struct vm_trace *head = vm_trace_head(whole, part->steps->count);
  size_t length, other_length;
  void *bytes = vm_write_binary(head, &length), *other = vm_write_binary(part, &other_length);
  bool same = length == other_length && !memcmp(bytes, other, length);
  free(bytes), free(other);
  vm_trace_free(head);
  return same;
}

bool vm_redo(struct vm_schedule *sch, const struct vm_trace *undone, ms_error *err) {
  assert(sch && undone);
  if (sch->branches || !sch->workload)
    return ms_fail(err, MS_CANNOT_UNDO, "%s", sch->branches ? "an If or For is open" : "the workload is not known");
  if (!is_beginning(&sch->trace, undone))
    return ms_fail(err, MS_CANNOT_UNDO, "nothing was undone last: other instructions came after it");
  struct vm_trace *whole = vm_trace_copy(undone);
  bool done = become(sch, whole, VM_STRICT, err);
  vm_trace_free(whole);
  return done;
}

/* Variables that the instructions give with which both begin. */
static uint32_t count_common(const struct vm_trace *one, const struct vm_trace *other) {
  uint32_t low = 0, most = one->steps->count < other->steps->count ? one->steps->count : other->steps->count;
  for (uint32_t high = most; low < high;) { /* the first `low` are common, more than `high` are not */
    uint32_t middle = low + (high - low + 1) / 2;
    struct vm_trace *head = vm_trace_head(one, middle);
    if (vm_trace_has_at(other, 0, head))
      low = middle;
    else
      high = middle - 1;
    vm_trace_free(head);
  }
  struct vm_trace *common = vm_trace_head(one, low);
  uint32_t count = common->steps->variables;
  vm_trace_free(common);
  return count;
}

bool vm_go_to(struct vm_schedule *sch, const struct vm_trace *trace, uint32_t *kept, ms_error *err) {
  assert(sch && trace && kept);
  if (!sch->workload) return ms_fail(err, MS_CANNOT_UNDO, "the workload is not known");
  struct vm_trace *to = vm_trace_copy(trace);
  uint32_t count = count_common(&sch->trace, to);
  bool done = become(sch, to, VM_STRICT, err);
  if (done) vm_close_branches(sch), *kept = count;
  vm_trace_free(to);
  return done;
}

/* ---- One instruction --------------------------------------------------------------------------------------------- */

/* Makes the last instruction of the schedule's trace ready on its own; its outputs follow the variables there are. */
static const struct vm_plan *prepare_last(struct vm_schedule *sch) {
  struct vm_steps *steps = sch->trace.steps;
  struct vm_plan *plan = sch->step;
  plan->workload = sch->ir;
  plan->intrinsics = sch->intrinsics;
  plan->steps = steps; /* for the call */
  vm_plan_set(plan, steps->count - 1, steps->count);
  plan->at[0].perform = vm_performer_in(sch->ir, steps->instructions[steps->count - 1].kind);
  plan->at[0].first_output = steps->variables;
  plan->at[0].decision = steps->decisions;
  return plan;
}

bool vm_call(struct vm_schedule *sch, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
             const struct vm_value *attrs, uint32_t attr_count, const int64_t *decision, uint32_t decision_count,
             uint32_t *first, uint32_t *count, ms_error *err) {
  assert(kind < VM_KIND_COUNT && first && count);
  struct vm_trace *trace = &sch->trace;
  vm_trace_own(trace);
  struct vm_trace_mark mark = vm_trace_mark(trace);
  if (!vm_append_inputs(trace, kind, inputs, input_count, attrs, attr_count, VM_NO_DRAW, err)) return false;
  uint32_t n = trace->steps->count - 1;
  struct tir_mark before = tir_mark(sch->ir);
  const struct vm_plan *plan = prepare_last(sch);
  vm_fit_slots(sch, trace->steps->variables, n + 1);
  struct vm_run r = start_run(sch, plan, err);
  r.recording = true, r.decision = decision, r.decision_count = decision_count;
  bool done = check_branch(sch, kind, n, err);
  if (done && !(vm_check_given(&r, &trace->steps->instructions[n]) && vm_perform_step(&r, &plan->at[0])))
    done = vm_refuse_at(err, trace->steps, n);
  if (!done) tir_rewind(sch->ir, &before); /* as if it had not been tried: the trace, replayed, does not know of it */
  sch->step->steps = NULL;
  if (!done && kind == VM_Assert && err->code == MS_ASSERT_FAILS && sch->workload && !sch->branches)
    done = draw_again(sch, err);
  if (done && !vm_append_outputs(trace, r.made, err)) done = false;
  if (done && !steer(sch, kind, n, r.holds, err)) done = false;
  if (!done) {
    vm_trace_rewind(trace, &mark);
    return false;
  }
  *first = trace->steps->instructions[n].first_output;
  *count = r.made;
  sch->ends[n] = sch->ir->forwards.count;
  vm_apply_forwards(sch, trace->steps->variables);
  if (vm_changes(kind)) vm_check_made(sch, n % 8 == 0);
  return true;
}

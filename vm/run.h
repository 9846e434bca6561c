/* A trace made ready, and what runs it. Internal to vm. */
#ifndef MSCHED_VM_RUN_H
#define MSCHED_VM_RUN_H

#include "steps.h"
#include "table.h"

#include <assert.h>

enum vm_operand_kind {
  VM_AT_NONE,
  VM_AT_SLOT,   /* value: the variable */
  VM_AT_INT,    /* value; booleans too */
  VM_AT_REAL,   /* real */
  VM_AT_STRING, /* value: its symbol in the workload; count: where it stands in the steps' text */
  VM_AT_LIST,   /* value: the first of `count` operands of the plan */
  VM_AT_EXPR,   /* value: an annotation value, made once in the workload */
  VM_AT_DICT,   /* as a list: keys (VM_AT_EXPR) and values in turn */
  VM_AT_MAP     /* an index map of `count` parameters; value: its first operand, see index_expr.c */
};
struct vm_operand {
  union {
    int64_t value;
    double real;
  };
  uint32_t count;
  uint8_t kind;
};

struct vm_step {
  vm_perform perform;
  uint32_t operands; /* inputs, then attributes: first in the plan's operands */
  uint32_t inputs;
  uint32_t outputs, first_output;
  uint32_t draw, decision;
  tir_func func; /* where a name is looked up; TIR_NONE: there is no such function */
  uint32_t jump; /* If, Else, For: the step of its Else or End; End: of what it ends; VM_NO_JUMP: there is none */
  uint32_t asserts, assert_count; /* of a draw: Asserts that are decided with it, in the plan's asserts */
  const struct tir *description, *implementation; /* of a tensor intrinsic; NULL: there is no such */
};
#define VM_NO_JUMP UINT32_MAX
enum {
  VM_MOST_NESTED = 16,          /* If and For in one another */
  VM_MOST_ITERATIONS = 1024,    /* of a For */
  VM_MOST_ALL_ITERATIONS = 4096 /* of all that a replay does */
};

struct vm_plan {
  struct tir *workload;                   /* borrowed */
  const struct vm_intrinsics *intrinsics; /* borrowed; NULL: those shipped alone */
  struct vm_steps *steps;
  struct vm_step *at;
  struct vm_operand *operands;
  uint32_t *asserts; /* steps */
  uint32_t first;    /* the instruction of step 0 */
  uint32_t count, operand_count, assert_count, capacity, operand_capacity, assert_capacity;
};

/* Room for `count` operands of a plan; the first of them. */
uint32_t vm_plan_operands(struct vm_plan *plan, uint32_t count);
/* The operand of an index map: its variables and, where no drawn number is in them, results are made once. */
struct vm_operand vm_prepare_map(struct vm_plan *plan, const struct vm_value *v);
/* Makes instructions [first, last) of the steps the plan's. */
void vm_plan_set(struct vm_plan *plan, uint32_t first, uint32_t last);
void vm_plan_match(struct vm_plan *plan);     /* control.c: which If, Else, For and End belong together */
void vm_plan_constrain(struct vm_plan *plan); /* constrain.c: which draws decide which Asserts */

/* One replay, or one recorded call, as the performing functions see it. */
struct vm_run {
  struct tir *ir;
  struct vm_schedule *schedule;
  const struct vm_plan *plan;
  const struct vm_draws *draws;
  const struct vm_operand *operands; /* the plan's */
  int64_t *slots;                    /* the schedule's */
  ms_error *err;
  bool recording;          /* outputs are as many as come, instead of as many as were recorded */
  uint32_t made;           /* recording: how many came */
  const int64_t *decision; /* recording: what the caller decides, of `decision_count` */
  uint32_t decision_count;
  bool holds;          /* recording: of an If, its condition; of a For, that there is an iteration */
  uint32_t next;       /* the step to go on with */
  uint32_t done;       /* how many steps have been performed */
  uint32_t most;       /* stop after so many */
  bool overdone;       /* an instruction that is refused has been performed: it gave another number of outputs */
  bool skipped;        /* a branch was not taken: there may be variables without a value */
  tir_block located;   /* the last step that drew a location found loops for the block: its checks passed */
  uint32_t located_by; /* `next` in the step after that one, which finds the module as it was */
  uint64_t work;       /* done to satisfy Asserts: constrain.c */
  uint32_t all_rounds;
  uint32_t depth; /* For loops that are under way, and their numbers of iterations */
  int64_t iterations[VM_MOST_NESTED];
};
/* False: refused, since a branch that was not taken would give what the instruction takes. */
bool vm_check_given(const struct vm_run *r, const struct vm_instruction *instruction);
/* Performs one; what is to be known of the blocks that it made is found at once. False: refused. */
bool vm_perform_step(struct vm_run *r, const struct vm_step *step);
/* Performs the steps of r's plan; false: refused, err has the instruction. */
bool vm_perform_steps(struct vm_run *r);
bool vm_refuse_at(ms_error *err, const struct vm_steps *steps, uint32_t instruction); /* adds number and kind */
void vm_apply_forwards(struct vm_schedule *sch, uint32_t variables);
void vm_fit_slots(struct vm_schedule *sch, uint32_t variables, uint32_t instructions);

static inline const struct vm_operand *vm_input(const struct vm_run *r, const struct vm_step *s, uint32_t i) {
  MS_CHECK(i < s->inputs);
  return r->operands + s->operands + i;
}
static inline const struct vm_operand *vm_attr(const struct vm_run *r, const struct vm_step *s, uint32_t i) {
  MS_CHECK(s->operands + s->inputs + i < r->plan->operand_count);
  return r->operands + s->operands + s->inputs + i;
}
static inline const char *vm_string_at(const struct vm_run *r, const struct vm_operand *o) {
  MS_CHECK(o->kind == VM_AT_STRING && o->count < r->plan->steps->text_size);
  return r->plan->steps->text + o->count;
}

/* The statement an operand stands for now; false: refused, since it is a mark or gone. */
bool vm_refuse_handle(struct vm_run *r, const struct vm_operand *o);
static inline bool vm_get_stmt(struct vm_run *r, const struct vm_operand *o, enum tir_stmt_kind kind, tir_stmt *out) {
  MS_CHECK(o->kind == VM_AT_SLOT && (uint64_t)o->value < r->schedule->slot_capacity);
  int64_t value = r->slots[o->value];
  *out = (tir_stmt)value;
  return (value > 0 && r->ir->stmts.at[value].kind == kind) || vm_refuse_handle(r, o);
}
static inline bool vm_get_loop(struct vm_run *r, const struct vm_operand *o, tir_loop *out) {
  return vm_get_stmt(r, o, TIR_LOOP, out);
}
static inline bool vm_get_block(struct vm_run *r, const struct vm_operand *o, tir_block *out) {
  return vm_get_stmt(r, o, TIR_BLOCK, out);
}
/* A block or a loop. */
bool vm_get_place(struct vm_run *r, const struct vm_operand *o, tir_stmt *out);
/* The statements of an operand that is a list, into `out`, which has room for them. */
bool vm_get_blocks(struct vm_run *r, const struct vm_operand *list, tir_block *out);
/* An integer, given or drawn; VM_NIL where it is None. */
static inline int64_t vm_get_int(const struct vm_run *r, const struct vm_operand *o) {
  return o->kind == VM_AT_INT ? o->value : o->kind == VM_AT_SLOT ? r->slots[o->value] : VM_NIL;
}

/* An index map. False: refused, it has too many indices, or a number that does not fit its type or was left open. */
bool vm_get_map(struct vm_run *r, const struct vm_operand *o, struct tir_index_map *out);

/* Adds an intrinsic to a table, which takes both modules. False: there is another of the name, or it is no name; the
 * modules are the caller's. The same again is taken, and freed. */
bool vm_intrinsics_put(struct vm_intrinsics *table, const char *name, struct tir *const parts[2], ms_error *err);
/* Whether both functions are sound and, as far as is known, compute the same. */
bool vm_check_intrinsic(const char *name, struct tir *const parts[2], ms_error *err);
/* Adds a shipped intrinsic to a table, which is made if it is NULL; nothing if there is none of the name. */
void vm_add_shipped_intrinsic(struct vm_intrinsics **table, const char *name);
/* As vm_find_intrinsic; of one that the table (NULL: none) lacks the shipped one, if there is one of the name: it is
 * read once, and its modules are the program's. Thread-safe. */
bool vm_find_known_intrinsic(const struct vm_intrinsics *table, const char *name, const struct tir **description,
                             const struct tir **implementation);

/* Working memory for lists of statements: at least `count` entries, until the next call. */
uint32_t *vm_out(struct vm_run *r, uint32_t count);
enum { VM_OUT_ROOM = 64 }; /* so many are there without asking */

/* What an instruction gives. False: not as many as were recorded (then the replay is refused). */
bool vm_give(struct vm_run *r, const struct vm_step *s, const uint32_t *statements, uint32_t count);
static inline bool vm_give_one(struct vm_run *r, const struct vm_step *s, uint32_t statement) {
  MS_CHECK(statement < r->ir->stmts.count);
  return vm_give(r, s, &statement, 1);
}
bool vm_give_numbers(struct vm_run *r, const struct vm_step *s, const int64_t *numbers, uint32_t count);

/* What was decided for a draw of `count` numbers. *decided: NULL, to be drawn. False: refused, it has another length.
 */
bool vm_get_decision(struct vm_run *r, const struct vm_step *s, uint32_t count, const int64_t **decided);
/* Notes the decision used. */
void vm_set_decision(struct vm_run *r, const struct vm_step *s, const int64_t *numbers, uint32_t count);
static inline struct vm_stream vm_stream_for(const struct vm_run *r, const struct vm_step *s) {
  MS_CHECK(s->draw != VM_NO_DRAW);
  return vm_stream_of(r->draws->seed, r->draws->candidate, s->draw, r->draws->attempt);
}

/* Whether an instruction changes the module: others read it, and leave what was verified before. */
static inline bool vm_changes(enum vm_kind kind) {
  enum vm_effect effect = vm_kind_info(kind)->effect;
  return effect != VM_EFFECT_look && effect != VM_EFFECT_draw;
}

/* In builds that check, an instruction that breaks the module ends the program. whole: facts of expressions that were
 * verified before are looked at again, which nothing should have changed. */
static inline void vm_check_made(const struct vm_schedule *sch, bool whole) {
#ifdef MSCHED_CHECK
  ms_error err = {0};
  bool good = whole ? vm_verify(&sch->trace, sch->ir, &err) : vm_verify_new(&sch->trace, sch->ir, &err);
  if (!good) {
    fprintf(stderr, "%s\n", err.message);
    assert(!"an instruction broke the module");
  }
#else
  (void)sch, (void)whole;
#endif
}

/* ---- Conditions over drawn numbers ---- */

const struct vm_value *vm_condition_of(const struct vm_steps *s, const struct vm_instruction *i);
/* False: it has no value: a number was left open or not drawn, too large a product, a division by 0. */
bool vm_holds(const struct vm_steps *s, const struct vm_value *condition, const int64_t *slots, bool *holds);

/* ---- Draws under Asserts (constrain.c) ---- */

/* Whether numbers may be drawn here: the Asserts that they decide hold, and they have not led to a dead end. */
bool vm_admits(struct vm_run *r, const struct vm_step *s, const int64_t *numbers, uint32_t count);
enum vm_verdict {
  VM_TAKE,  /* the numbers will do; or they were decided, and the Assert will refuse them */
  VM_OTHER, /* others are to be drawn */
  VM_BACK   /* a draw before this one is made otherwise: the replay starts again */
};
enum vm_verdict vm_judge_drawn(struct vm_run *r, const struct vm_step *s, const int64_t *numbers, uint32_t count,
                               bool decided);
static inline enum vm_verdict vm_judge(struct vm_run *r, const struct vm_step *s, const int64_t *numbers,
                                       uint32_t count, bool decided) {
  if (!s->assert_count && !r->schedule->dead_ends) return VM_TAKE;
  return vm_judge_drawn(r, s, numbers, count, decided);
}
/* No number may be drawn here, or none was found before the work that may be done for a replay was done. Returns false:
 * the replay starts again with another draw before this one, or, where there is none to change, is refused. */
bool vm_no_number(struct vm_run *r, const struct vm_step *s);
/* Tiles of n factors of `extent`, the last at most `most` (0: no limit), those from `position` on together a multiple
 * of `factor`. */
struct vm_tile_rule {
  int64_t extent, most, position, factor;
  uint32_t n;
};
/* An admissible tile other than the one given, each equally likely; false: vm_no_number's. */
bool vm_draw_other_tile(struct vm_run *r, const struct vm_step *s, const struct vm_tile_rule *rule, int64_t *tile);
void vm_forget_dead_ends(struct vm_schedule *sch);

void vm_close_branches(struct vm_schedule *sch); /* record.c: forgets what is open */

#endif

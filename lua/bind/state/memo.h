/* Memoized postprocessing: the effects of a shipped postprocessor, repeated. Internal to lua.
 *
 * A postprocessor decides by what the schedule answers, and ours by nothing else. While a candidate answers as an
 * earlier one did, what the postprocessor asks and does next is what it asked and did then: memo_walk does that without
 * its Lua. Where an answer is new, the Lua runs from its start: what was answered is answered from a log, so nothing is
 * done twice, and what comes after is kept. What a script reads of a schedule otherwise ends what is kept: from there
 * on the Lua always runs. So does a user's postprocessor, which may keep a state of its own.
 *
 * Kept is a tree for each function and what it is given: a node is what is asked or done, an edge an answer. Blocks and
 * loops are numbered in the order in which the function was given them. A function that msched.memoized made has a tree
 * of its own and is one node where it is called, so that what it finds out multiplies no paths but its own. */
#ifndef MSCHED_LUA_RECALL_H
#define MSCHED_LUA_RECALL_H

#include "vm/vm.h"

struct memo;
struct memo *memo_new(void);
void memo_free(struct memo *r); /* NULL is fine */
/* The number of a new function. */
uint32_t memo_function(struct memo *r);

/* Does to the schedule what the function's Lua would. False: an answer is new, or there is nothing yet; the Lua must
 * run next, between memo_begin and memo_end. pool: holds answers meanwhile. */
bool memo_walk(struct memo *r, uint32_t function, struct vm_schedule *schedule, struct vm_trace *pool, bool *accepted);
/* How often it was done so. */
uint64_t memo_count(const struct memo *r);
void memo_begin(struct memo *r, uint32_t function);
/* done: the Lua ended, with this verdict; else it failed, or was refused an instruction. */
void memo_end(struct memo *r, bool done, bool accepted);

/* ---- Between the two, what the Lua does, in order ---- */

/* Whether it is between the two; NULL: never. */
bool memo_is_on(const struct memo *r);
/* Whether the next answer is in the log. */
bool memo_is_known(const struct memo *r);
/* What was answered, then. */
void memo_answer(struct memo *r, struct vm_trace *pool, struct vm_value *answer);
void memo_outcome(struct memo *r, bool *done, uint32_t *first, uint32_t *count);
/* What is kept. tried: where it is refused, the Lua goes on. */
void memo_asked(struct memo *r, enum vm_query query, const struct vm_value *args, uint32_t count,
                const struct vm_trace *pool, const struct vm_value *answer);
struct memo_call {
  enum vm_kind kind;
  const struct vm_value *inputs, *attrs;
  uint32_t input_count, attr_count;
  bool tried;
};
void memo_performed(struct memo *r, const struct memo_call *call, const struct vm_trace *trace, bool done,
                    uint32_t first, uint32_t count);
/* A function within: what it is given, what it gives. */
void memo_enter(struct memo *r, uint32_t function, const struct vm_value *args, uint32_t count,
                const struct vm_trace *pool);
void memo_leave(struct memo *r, const struct vm_value *results, uint32_t count, const struct vm_trace *pool);
/* Nothing that comes now is kept. */
void memo_stop(struct memo *r);

#endif

/* Memoized postprocessing: the effects of a shipped postprocessor, repeated. Internal to lua.
 *
 * A postprocessor decides by what the schedule answers, and ours by nothing else. While a candidate answers as an earlier
 * one did, what the postprocessor asks and does next is what it asked and did then: recall_walk does that without its Lua.
 * Where an answer is new, the Lua runs from its start: what was answered is answered from a log, so nothing is done
 * twice, and what comes after is kept. What a script reads of a schedule otherwise ends what is kept: from there on the
 * Lua always runs. So does a user's postprocessor, which may keep a state of its own.
 *
 * Kept is a tree for each function and what it is given: a node is what is asked or done, an edge an answer. Blocks and loops
 * are numbered in the order in which the function was given them. A function that msched.recalled made has a tree of its
 * own and is one node where it is called, so that what it finds out multiplies no paths but its own. */
#ifndef MSCHED_LUA_RECALL_H
#define MSCHED_LUA_RECALL_H

#include "vm/vm.h"

struct recall;
struct recall *recall_new(void);
void recall_free(struct recall *r); /* NULL is fine */
/* The number of a new function. */
uint32_t recall_function(struct recall *r);

/* Does to the schedule what the function's Lua would. False: an answer is new, or there is nothing yet; the Lua must run next,
 * between recall_begin and recall_end. pool: holds answers meanwhile. */
bool recall_walk(struct recall *r, uint32_t function, struct vm_schedule *schedule, struct vm_trace *pool,
                 bool *accepted);
/* How often it was done so. */
uint64_t recall_count(const struct recall *r);
void recall_begin(struct recall *r, uint32_t function);
/* done: the Lua ended, with this verdict; else it failed, or was refused an instruction. */
void recall_end(struct recall *r, bool done, bool accepted);

/* ---- Between the two, what the Lua does, in order ---- */

/* Whether it is between the two; NULL: never. */
bool recall_is_on(const struct recall *r);
/* Whether the next answer is in the log. */
bool recall_is_known(const struct recall *r);
/* What was answered, then. */
void recall_answer(struct recall *r, struct vm_trace *pool, struct vm_value *answer);
void recall_outcome(struct recall *r, bool *done, uint32_t *first, uint32_t *count);
/* What is kept. tried: where it is refused, the Lua goes on. */
void recall_asked(struct recall *r, enum vm_query query, const struct vm_value *args, uint32_t count,
                  const struct vm_trace *pool, const struct vm_value *answer);
struct recall_call {
  enum vm_kind kind;
  const struct vm_value *inputs, *attrs;
  uint32_t input_count, attr_count;
  bool tried;
};
void recall_performed(struct recall *r, const struct recall_call *call, const struct vm_trace *trace, bool done,
                      uint32_t first, uint32_t count);
/* A function within: what it is given, what it gives. */
void recall_enter(struct recall *r, uint32_t function, const struct vm_value *args, uint32_t count,
                  const struct vm_trace *pool);
void recall_leave(struct recall *r, const struct vm_value *results, uint32_t count, const struct vm_trace *pool);
/* Nothing that comes now is kept. */
void recall_stop(struct recall *r);

#endif

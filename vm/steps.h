/* Building traces. Internal to vm. */
#ifndef MSCHED_VM_STEPS_H
#define MSCHED_VM_STEPS_H

#include "vm.h"

enum { VM_MOST_DEPTH = 32 };                                                           /* of lists in lists */
enum { VM_MOST_VARIABLES = 1 << 20, VM_MOST_OUTPUTS = 4096, VM_MOST_DRAWS = 1 << 30 }; /* draw ids are below that */
#define VM_WRONG_COUNT UINT32_MAX /* vm_decide's count for a decision that fits no draw */

/* Cleared memory for one struct, the caller's to free(); aborts where there is none. */
void *vm_new(size_t size);

void vm_trace_init(struct vm_trace *trace);
void vm_trace_clear(struct vm_trace *trace); /* frees what it holds */
/* Makes `to` a trace of these steps, with every draw open. */
void vm_trace_adopt(struct vm_trace *to, struct vm_steps *steps);
void vm_trace_take(struct vm_trace *to, const struct vm_trace *from); /* its steps and decisions */
/* Room for so many numbers of decisions; new ones are open. */
void vm_trace_fit_decisions(struct vm_trace *trace, uint32_t count);
struct vm_steps *vm_steps_retain(struct vm_steps *steps);
void vm_steps_release(struct vm_steps *steps);
/* How much a trace has: all of it that is neither an array nor a capacity nor the count of references. */
void vm_steps_copy_numbers(struct vm_steps *to, const struct vm_steps *from);
/* Makes the trace the only holder of its steps, so that it may write. */
void vm_trace_own(struct vm_trace *trace);

/* vm_append in two parts, for callers that learn the number of outputs by performing the instruction. */
bool vm_append_inputs(struct vm_trace *trace, enum vm_kind kind, const struct vm_value *inputs, uint32_t input_count,
                      const struct vm_value *attrs, uint32_t attr_count, uint32_t draw, ms_error *err);
bool vm_append_outputs(struct vm_trace *trace, uint32_t outputs, ms_error *err); /* of the last instruction */
/* Calls visit for each variable below a value, in lists, maps and formulas too. */
void vm_visit_variables(const struct vm_steps *s, const struct vm_value *v, void (*visit)(void *, uint32_t),
                        void *data);
uint32_t vm_giver_of(const struct vm_steps *s, uint32_t variable); /* the instruction that gives it */
/* Undo point of a trace that is its steps' only holder. */
struct vm_trace_mark {
  uint32_t count, value_count, text_size, variables, decisions, next_draw;
};
struct vm_trace_mark vm_trace_mark(const struct vm_trace *trace);
void vm_trace_rewind(struct vm_trace *trace, const struct vm_trace_mark *mark);

/* A growing text; at is the caller's to free(). */
struct vm_text {
  char *at;
  uint32_t size, capacity;
};
void vm_put(struct vm_text *text, const char *bytes, size_t length);
void vm_put_string(struct vm_text *text, const char *bytes, size_t length); /* as Lua's literal of it */
void vm_put_whole(struct vm_text *text, int64_t value);                     /* in decimal digits */
void vm_putf(struct vm_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An index map as the text of a lambda, or a condition. */
void vm_put_formula(struct vm_text *text, const struct vm_steps *steps, const struct vm_value *map);
/* The shortest decimal that reads back as the same number, with a point or exponent; inf and nan as C prints them. */
void vm_put_real(struct vm_text *text, double value);

/* Names of variables while a text is read. Zero-initialized; the texts named must outlive it. */
struct vm_names {
  struct {
    const char *text;
    uint32_t length, variable;
  } * at;
  uint32_t count, capacity;
};
bool vm_name_add(struct vm_names *names, const char *text, size_t length, uint32_t variable); /* false: already there */
bool vm_name_find(const struct vm_names *names, const char *text, size_t length, uint32_t *variable);
/* "b3": by the variable's type and number. */
int vm_variable_name(const struct vm_steps *steps, uint32_t variable, char out[16]);

/* Where the decisions of a text stand: the value, a number or a list of them, and its instruction. at is the caller's
 * to free(). */
struct vm_span {
  size_t from, to;
  uint32_t instruction;
};
struct vm_spans {
  struct vm_span *at;
  uint32_t count, capacity;
};
/* vm_read_lua, which gives them too. */
struct vm_trace *vm_read_lua_spans(const char *text, size_t length, struct vm_spans *decided, ms_error *err);

/* The Lua text in two parts: of the steps alone, with the places where decisions stand; and that with a trace's
 * decisions, which is the caller's to free(). draws->at is, too. */
void vm_put_lua_steps(struct vm_text *text, const struct vm_steps *steps, struct vm_spans *draws);
char *vm_put_lua_decisions(const struct vm_text *steps, const struct vm_spans *draws, const struct vm_trace *trace);

/* vm_read_binary, which says how many of the bytes the steps take. */
struct vm_trace *vm_read_binary_parts(const void *bytes, size_t length, size_t *steps, ms_error *err);
/* Reads what follows the steps into a trace of the same steps, all of whose draws are open. */
bool vm_read_binary_decisions(struct vm_trace *trace, const void *bytes, size_t length, ms_error *err);
/* Whether that would succeed with a trace of `count` steps; draws: a bit for each, from the lowest of the first byte
 * on, whether it draws. */
bool vm_check_binary_decisions(const uint8_t *draws, uint32_t count, const void *bytes, size_t length);
/* The binary form in two parts: what the steps give, and the decisions. */
void vm_put_binary_steps(struct vm_text *out, const struct vm_steps *steps);
void vm_put_binary_decisions(struct vm_text *out, const struct vm_trace *trace);

/* Whether a parameter of the type holds a formula, which stands in traces as text. */
static inline bool vm_is_formula(uint8_t type) { return type == VM_T_MAP || type == VM_T_CONDITION; }
/* Reads an index map from the text of a lambda, or from TVM's node graph as JSON; or a condition from its text. names:
 * of what was drawn; NULL: the names that we write. */
bool vm_read_formula(struct vm_trace *trace, const struct vm_names *names, enum vm_type type, const char *text,
                     size_t length, struct vm_value *out, ms_error *err);

#endif

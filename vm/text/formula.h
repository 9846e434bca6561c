/* Formulas while they are read: what their text and their graph of nodes share. Internal to vm. */
#ifndef MSCHED_VM_FORMULA_H
#define MSCHED_VM_FORMULA_H

#include "vm/steps.h"

enum { FORMULA_MOST_NODES = 1024, FORMULA_MOST_ITEMS = 64 }; /* of one formula; parameters, and results */

/* How tight operators bind in text. */
enum { LEVEL_OR = 1, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARED, LEVEL_BIT_OR, LEVEL_BIT_XOR, LEVEL_BIT_AND, LEVEL_SHIFT };
enum { LEVEL_SUM = LEVEL_SHIFT + 1, LEVEL_PRODUCT, LEVEL_ITSELF };

struct formula_operator {
  enum tir_kind kind; /* TIR_CALL: of the function named */
  uint8_t arguments, level;
  const char *symbol;   /* infix, or NULL */
  const char *function; /* in text, after "T."; or NULL */
  const char *node;     /* TVM's; NULL: a call */
};
/* By number; NULL past the last. Where a symbol begins another's, it stands after it. */
const struct formula_operator *formula_operator(uint32_t number);
const struct formula_operator *formula_operator_of(const struct vm_value *v); /* a VM_APPLY, no cast */

struct formula {
  struct vm_trace *trace;
  const struct vm_names *names; /* of what was drawn; or NULL */
  struct vm_value params[FORMULA_MOST_ITEMS], results[FORMULA_MOST_ITEMS];
  uint32_t param_count, result_count, nodes;
  bool wide, condition;
  ms_error *err;
};

bool formula_fail(struct formula *f, const char *what);
bool formula_fail_at(struct formula *f, const char *name, size_t length, const char *what); /* names it first */
/* Each node counts once for each place that it stands in, in text and graph alike. */
bool formula_count_node(struct formula *f);
bool formula_add_param(struct formula *f, const char *name, size_t length);
bool formula_add_result(struct formula *f, struct vm_value v);
/* Without names of the text's own, variables go by the names that we write. */
bool formula_find_drawn(const struct formula *f, const char *name, size_t length, uint32_t *variable);
/* Operator `number` on its arguments, or a cast to an integer of so many bits, that have been counted. False: they are
 * truths where numbers should be, or the other way. */
bool formula_apply(struct formula *f, uint32_t number, const struct vm_value *arguments, struct vm_value *out);
bool formula_cast(struct formula *f, const char *type, size_t length, struct vm_value argument, struct vm_value *out);

bool formula_read_text(struct formula *f, const char *text, size_t length);  /* of a lambda or a condition */
bool formula_read_graph(struct formula *f, const char *text, size_t length); /* TVM's, as JSON */

#endif

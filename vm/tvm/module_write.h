/* Modules while they are written as TVM's graphs of nodes. Internal to vm.
 *
 *   module_write.c       the module, its function; types and buffers
 *   module_write_expr.c  expressions, the values of annotations, regions
 *   module_write_stmt.c  statements and blocks
 *
 * A function that writes a node gives its number. What TVM has no node for is noted in `lacks`, and nothing is written
 * in the end. */
#ifndef MSCHED_VM_MODULE_WRITE_H
#define MSCHED_VM_MODULE_WRITE_H

#include "graph.h"
#include "vm/vm.h"

struct module_write {
  const struct tir *ir;
  json_t *nodes;
  json_int_t *exprs, *vars, *buffers; /* the nodes of these, by index; 0: there is none yet */
  struct {
    tir_type type;
    json_int_t node;
  } types[32];
  uint32_t type_count;
  const char *lacks; /* what cannot be written; NULL: nothing so far */
};

/* ---- module_write.c ---- */

json_int_t write_type(struct module_write *w, tir_type type); /* of values: a pointer's is a PointerType */
json_int_t write_text(struct module_write *w, const char *text);
json_int_t write_empty(struct module_write *w); /* a list without items */
json_int_t write_var(struct module_write *w, tir_var v);
json_int_t write_var_of(struct module_write *w, tir_var v, json_int_t type);
json_int_t write_buffer(struct module_write *w, tir_buffer b); /* its variable */
json_int_t write_int(struct module_write *w, tir_type type, int64_t value);
json_int_t write_annotations(struct module_write *w, struct tir_span annotations);
json_int_t write_lack(struct module_write *w, const char *what); /* GRAPH_NONE */

/* ---- module_write_expr.c ---- */

json_int_t write_expr(struct module_write *w, tir_expr e);
json_int_t write_type_of(struct module_write *w,
                         tir_expr e);                       /* of a pointer, with what it points to if that is known */
json_int_t write_maybe(struct module_write *w, tir_expr e); /* None for TIR_NONE */
json_int_t write_exprs(struct module_write *w, uint32_t first, uint32_t count); /* operands, as a list */
json_int_t write_value(struct module_write *w, tir_expr e);                     /* of an annotation */
json_int_t write_range(struct module_write *w, tir_expr min, tir_expr extent);
json_int_t write_region(struct module_write *w, struct tir_region region);

/* ---- module_write_stmt.c ---- */

json_int_t write_body(struct module_write *w, tir_stmt parent, enum tir_list list);

#endif

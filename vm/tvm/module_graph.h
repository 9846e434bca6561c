/* Modules while they are read from TVM's graphs of nodes. Internal to vm.
 *
 *   module_graph.c  the module and its functions
 *   module_node.c   nodes and fields that must be there; what names stand for
 *   module_type.c   types, and buffers
 *   module_expr.c   expressions, and the values of annotations
 *   module_stmt.c   statements and blocks
 *
 * The text is a stranger's. A node refers only to nodes before it, as TVM writes them, so that nothing is cyclic; what
 * is nested, and how often nodes are visited in all, is bounded: one that many refer to is visited from each. What must
 * hold of types is checked here; the rest, by reading what comes of it once more as TVMScript.
 *
 * Functions that return bool return false once an error is in err. */
#ifndef MSCHED_VM_MODULE_GRAPH_H
#define MSCHED_VM_MODULE_GRAPH_H

#include "graph.h"
#include "vm/vm.h"

enum {
  GRAPH_MOST_VISITS = 1 << 22,
  GRAPH_MOST_EXPR_DEPTH = 250,
  GRAPH_MOST_STMT_DEPTH = 150,
  GRAPH_MOST_RANK = 32,
  GRAPH_MOST_ITERS = 64,
  GRAPH_MOST_ARGS = 1024
};

/* What a node that is a variable stands for, while it is in scope. */
struct node_binding {
  uint8_t is_buffer;
  uint32_t ref; /* a buffer, or an expression; 0: nothing */
};

struct module_graph {
  struct tir *ir;
  const json_t *nodes;
  ms_error *err;
  tir_func func;
  struct node_binding *bindings; /* by node */
  uint32_t *bound;               /* nodes in scope, innermost last */
  uint32_t bound_count, bound_capacity;
  uint32_t visits, expr_depth, stmt_depth;
  bool declares; /* variables that are not known are the function's: in the types of its parameters */
};

struct node_list {
  uint32_t node, count;
  const json_t *items;
};

/* ---- module_node.c ---- */

/* Names the node, its type and, where it is not NULL, the field. */
bool module_fail(struct module_graph *g, uint32_t node, const char *field, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Counts one more visit. */
bool module_visit(struct module_graph *g, uint32_t node);
bool module_is(const struct module_graph *g, uint32_t node, const char *type);
/* The node that a field refers to; of that type, unless it is NULL. */
bool module_ref(struct module_graph *g, uint32_t node, const char *field, const char *type, uint32_t *out);
/* The same, *out 0 where the field is None. */
bool module_maybe(struct module_graph *g, uint32_t node, const char *field, uint32_t *out);
bool module_list(struct module_graph *g, uint32_t node, const char *field, struct node_list *out);
bool module_item(struct module_graph *g, const struct node_list *list, uint32_t i, uint32_t *out);
bool module_integer(struct module_graph *g, uint32_t node, const char *field, int64_t *out);
/* The text of the node that a field refers to; *out is the graph's. */
bool module_text(struct module_graph *g, uint32_t node, const char *field, const char **out);
bool module_text_at(struct module_graph *g, uint32_t node, const char **out); /* of the node itself */
/* The pairs of a map: keys and values in turn. */
bool module_map(struct module_graph *g, uint32_t node, const char *field, struct node_list *out);

uint32_t module_open(const struct module_graph *g); /* a scope */
void module_close(struct module_graph *g, uint32_t mark);
bool module_bind(struct module_graph *g, uint32_t node, bool is_buffer, uint32_t ref);

/* ---- module_type.c ---- */

bool module_type(struct module_graph *g, uint32_t node, const char *field, tir_type *out);
/* Makes the variable that a field names, for the scope. */
bool module_new_var(struct module_graph *g, uint32_t node, const char *field, enum tir_var_kind kind, tir_expr min,
                    tir_expr extent, tir_var *out);
/* The buffer of a variable, made for the scope; variables of its own, in strides and offset, too where `matched`. */
bool module_new_buffer(struct module_graph *g, uint32_t var, bool matched, tir_buffer *out);
/* The buffer that a field names, which is in scope. */
bool module_buffer(struct module_graph *g, uint32_t node, const char *field, tir_buffer *out);
bool module_region(struct module_graph *g, uint32_t node, struct tir_region *out);
bool module_check_extent(struct module_graph *g, uint32_t node, const char *field, tir_expr extent);

/* ---- module_expr.c ---- */

bool module_expr(struct module_graph *g, uint32_t node, tir_expr *out);
bool module_expr_of(struct module_graph *g, uint32_t node, const char *field, tir_expr *out);
bool module_truth_of(struct module_graph *g, uint32_t node, const char *field, tir_expr *out);
/* An integer of one lane. */
bool module_index_of(struct module_graph *g, uint32_t node, const char *field, tir_expr *out);
/* The indices of an element or a vector of a buffer, as many as it has dimensions; *lanes: of the vector. */
bool module_indices(struct module_graph *g, uint32_t node, tir_buffer buffer, tir_expr *out, int *lanes);
bool module_predicate(struct module_graph *g, uint32_t node, int lanes, tir_expr *out); /* TIR_NONE: there is none */
bool module_value(struct module_graph *g, uint32_t node, tir_expr *out);                /* of an annotation */
bool module_annotations(struct module_graph *g, uint32_t node, const char *field, struct tir_span *out);

/* ---- module_stmt.c ---- */

bool module_stmt(struct module_graph *g, uint32_t node, tir_stmt parent, enum tir_list list);

#endif

/* Printing TVMScript. Internal to tir.
 *
 *   printer.c        modules, functions, their parameters
 *   printer_stmt.c   statements and blocks
 *   printer_expr.c   expressions, regions, annotations
 *   printer_name.c   unique names, and where they are declared
 *   printer_colour.c colours, on the finished text
 *
 * A line is put together in `line` and flushed to `out`; declarations that its expressions turn out to need (a variable
 * of a symbolic shape) are put in front of it then. */
#ifndef MSCHED_TIR_PRINTER_H
#define MSCHED_TIR_PRINTER_H

#include "tir/node/arena.h"

struct tir_text {
  char *at;
  size_t count, capacity;
};
void tir_put(struct tir_text *t, const char *text);
void tir_put_n(struct tir_text *t, const char *text, size_t length);
void tir_putf(struct tir_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A name in use: how many things bear it now, and from which number on to look for a free one derived from it. */
struct tir_used_name {
  size_t text;
  uint32_t hash, live, next;
};
struct tir_name_scope_entry {
  uint32_t slot, base, number;
  uint32_t *owner;
};

struct tir_printer {
  const struct tir *ir;
  struct tir_text out, line;
  uint32_t indent;
  uint32_t nested; /* expressions around the one being printed */
  bool fragment;   /* a part of a function: names that nothing declares are of what is around it */

  struct tir_text names; /* text of all names given */
  uint32_t *var_names;   /* by variable: offset in names + 1; 0: none yet */
  uint32_t *buffer_names;
  struct tir_used_name *used; /* a table open for addressing, by text */
  uint32_t used_count, used_capacity;
  struct tir_name_scope_entry *scope; /* names given, innermost last */
  uint32_t scope_count, scope_capacity;
  tir_var *pending; /* variables to be declared before the line */
  uint32_t pending_count, pending_capacity;
};

/* ---- printer_name.c ---- */

void tir_printer_start(struct tir_printer *p, const struct tir *ir);
void tir_printer_free(struct tir_printer *p);
/* Names given since the mark become free again. */
uint32_t tir_printer_open(const struct tir_printer *p);
void tir_printer_close(struct tir_printer *p, uint32_t mark);
/* Gives a variable or buffer a name that nothing else bears now, near its own. */
const char *tir_name_var(struct tir_printer *p, tir_var v);
const char *tir_name_buffer(struct tir_printer *p, tir_buffer b);
/* The name it bears. A variable without one is declared before the line, or, in a fragment, just named. */
const char *tir_var_name(struct tir_printer *p, tir_var v);
const char *tir_printed_buffer(struct tir_printer *p, tir_buffer b);
bool tir_has_name(const struct tir_printer *p, tir_var v);
/* A variable that is part of a buffer: A.strides[0]. */
void tir_alias_var(struct tir_printer *p, tir_var v, const char *text);
/* Ends the line: declarations it needs, then the line itself, indented. */
void tir_flush_line(struct tir_printer *p);

/* ---- printer_expr.c ---- */

void tir_print_value(struct tir_printer *p, tir_expr e);      /* into the line */
void tir_print_annotation(struct tir_printer *p, tir_expr e); /* constants bare, as Python's */
void tir_print_dict(struct tir_printer *p, struct tir_span annotations);
void tir_print_sum(struct tir_printer *p, tir_expr a, tir_expr b); /* a + b, folded where the reader would */
void tir_print_region(struct tir_printer *p, struct tir_region region);
void tir_print_element(struct tir_printer *p, tir_buffer buffer, uint32_t first, uint32_t count);
void tir_print_string(struct tir_text *t, const char *text, size_t length);
void tir_print_type(struct tir_text *t, tir_type type); /* "float32", in quotes */

/* ---- printer_stmt.c ---- */

void tir_print_children(struct tir_printer *p, tir_stmt s, enum tir_list list);
void tir_print_one(struct tir_printer *p, tir_stmt s);
/* shape, type and the rest of a buffer's declaration: what stands in the brackets. `with_type`: float32 is written too;
 * `quoted`: shapes with variables that nothing has declared yet stand in quotes, and declare them. */
void tir_print_buffer(struct tir_printer *p, tir_buffer b, bool with_type, bool quoted);
/* Whether the function's root block is left out of the text, being implied by it. */
bool tir_root_is_implied(const struct tir *ir, tir_block root);
void tir_print_root(struct tir_printer *p, tir_block root);

/* ---- printer_colour.c ---- */

/* The text with ANSI colours; frees `text`. */
char *tir_colour(char *text);

#endif

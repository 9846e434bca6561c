/* The compiler of the reference interpreter: what its files share. Internal to tir.
 *
 * Registers are given in stack order: a scope remembers the register on top, the variables and buffers it defined and
 * the expressions it computed, and forgets them when it is left. An index expression is computed once a scope. */
#ifndef MSCHED_TIR_INTERP_COMPILE_H
#define MSCHED_TIR_INTERP_COMPILE_H

#include "interp.h"

enum definition { DEFINED_EXPR, DEFINED_VAR, DEFINED_BUFFER };
struct undo {
  enum definition kind;
  uint32_t index;
  operand before;
};
struct scope {
  uint32_t undos;
  int32_t registers;
};

struct compiler {
  const struct tir *ir;
  const struct tir_run_options *options;
  struct program *program;
  ms_error *err;
  bool failed;
  bool in_kernel, in_parallel;
  struct tir_workspace workspace; /* of the function */
  tir_stmt place;                 /* the statement being compiled */
  operand *computed;              /* by expression: where its value is, or NO_OPERAND */
  uint32_t *computed_by;          /* by expression: the statement it was computed for, as `statements` counts them */
  uint32_t statements;            /* begun so far */
  bool is_pure;                   /* the statement's expressions have no effects: what it loads, it loads once */
  operand *var_at;                /* by variable: its register (the first of its lanes), or NO_OPERAND */
  operand *slot_of;               /* by buffer: its slot while it is in scope, or NO_OPERAND */
  INTERP_LIST(struct undo, undos);
  int32_t registers; /* in use */
  uint32_t depth;    /* of expressions */
  int8_t *dim_of;    /* by variable: the thread dimension it is bound to in the kernel being compiled, or -1 */
  tir_expr reducer;  /* the comm_reducer in force, or TIR_NONE */
  bool stores_lanes; /* a vector's lanes are computed, each for an element that is stored */
  bool loads_lane;   /* what vectors have in the lane is loaded for it alone, and need not be written */
};

/* Refuses, once: the first failure stands. Returns operand 0, so that callers go on until they look at `failed`. */
operand interp_refuse(struct compiler *c, enum ms_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

struct scope interp_enter(const struct compiler *c);
void interp_leave(struct compiler *c, struct scope scope);
void interp_define_var(struct compiler *c, tir_var v, operand at);
uint32_t interp_define_buffer(struct compiler *c, tir_buffer b); /* its slot */
uint32_t interp_slot(struct compiler *c, tir_buffer b);          /* of a buffer in scope */
/* To the end of the scope all that is defined is hidden, but what is captured. */
void interp_hide_others(struct compiler *c, const struct tir_captures *captures);

operand interp_registers(struct compiler *c, int count);
operand interp_constant(struct compiler *c, union value v);
static inline operand interp_int(struct compiler *c, int64_t i) { return interp_constant(c, (union value){.i = i}); }
uint32_t interp_emit(struct compiler *c, enum op op, operand dst, operand a, operand b, operand cc, operand d);
static inline uint32_t interp_here(const struct compiler *c) { return c->program->code.count; }
uint32_t interp_list(struct compiler *c, const int32_t *values, uint32_t count); /* into program.lists */

/* Begins to compile the expressions of statement s: what others computed of memory is forgotten. */
void interp_begin_statement(struct compiler *c, tir_stmt s);
/* Compiles lane `lane` of an expression. */
operand interp_expr(struct compiler *c, tir_expr e, int lane);
/* Compiles an expression into a given register. */
void interp_expr_to(struct compiler *c, operand dst, tir_expr e, int lane);
/* The operands of an element of a buffer: indices for one lane. Fills out[rank] and returns the rank. */
uint32_t interp_indices(struct compiler *c, tir_buffer b, const tir_expr *indices, uint32_t count, int lane,
                        operand *out);
void interp_emit_access(struct compiler *c, bool store, operand value, uint32_t slot, tir_type type,
                        const operand *indices, uint32_t rank);
/* After a store, where the predicate held. OP_COPIED: of a value whose loads are among the instructions from the first
 * to the last, the target is as unwritten as they found the sources. OP_BEGIN_COPY: it has yet to arrive. */
void interp_emit_after_store(struct compiler *c, enum op op, uint32_t first, uint32_t last, operand predicate,
                             uint32_t slot, const operand *indices, uint32_t rank);
/* The operator applied to values of scalar type `of`. */
operand interp_cast(struct compiler *c, tir_type from, tir_type to, operand a);
operand interp_binary(struct compiler *c, enum tir_kind kind, operand a, operand b, tir_type of);
/* condition ? yes : no, with only one of the two computed. */
operand interp_choose(struct compiler *c, tir_expr condition, tir_expr yes, tir_expr no, int lane);
static inline bool interp_has_format(tir_type t) { return interp_format(t) != FORMAT_BAD; }
void interp_param(struct compiler *c, const struct tir_param *param, uint32_t index);
void interp_alloc(struct compiler *c, tir_buffer buffer);
void interp_declare(struct compiler *c, tir_buffer buffer);
void interp_match(struct compiler *c, const struct tir_match *match);
operand interp_call(struct compiler *c, tir_expr e, int lane);

/* Compiles a device call that is no function's to do; *found: it is one. (interp_device.c) */
operand interp_compile_device(struct compiler *c, tir_expr call, int lane, bool *found);
#define INTERP_COMPILED(name)                                                                                          \
  operand interp_compile_##name(struct compiler *c, const struct tir_expr_node *n, int lane);
#define INTERP_CALLED(name)
#define TIR_DEVICE_CALL(id, name, operands, type, by, run, ...) INTERP_##run(name)
#include "tir/gpu/calls.def"
#undef INTERP_COMPILED
#undef INTERP_CALLED

#endif

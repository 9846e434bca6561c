/* From a lowered function to C source, in a dialect: C11 with GNU vectors, for gcc and clang; CUDA C++ without headers,
 * for nvcc and NVRTC. Internal to jit.
 *
 * Requires of the function what emit.h does. A vector expression is written in chunks, each as wide as the target's
 * registers or a smaller power of two, down to scalars, which they all are where the target has no vectors. Values in
 * C: integers of their type; floats of 16 bits as float, rounded after each operation; truth as 0 and 1, in vectors as
 * 0 and -1 in lanes of an integer type. Loop variables and indices are of the type that emit_c_index_type names. Words
 * of our own begin with ms_, those of C's library with what the dialect says: the function's own names cannot collide
 * with them. */
#ifndef MSCHED_JIT_EMIT_C_H
#define MSCHED_JIT_EMIT_C_H

#include "jit/choices.h"
#include "jit/jit.h"

/* Lanes [first, first + width) of a vector; `lane` names a variable of the C text that is added to first, or is NULL.
 * Width 1 is a scalar. */
struct c_chunk {
  int first, width;
  const char *lane;
};
#define C_SCALAR ((struct c_chunk){0, 1, NULL})

/* How a value is held. */
struct c_type {
  enum tir_code code; /* TIR_INT, TIR_UINT, TIR_FLOAT */
  int bits, width;
};

/* A function on values, made for a type: emit_type.c says how it is written. */
struct c_template {
  const char *name, *needs, *scalar, *vector; /* vector NULL: as scalar */
};

struct emit_c;
struct c_dialect {
  const char *library;              /* before the names of C's library */
  const char *infinity[2], *nan[2]; /* of float32, of float64 */
  const char *restricts;            /* pointers */
  const char *fails;                /* what a failed assertion does before it returns */
  const char *bound[3];             /* a value that needs names: before those, before the value, after it */
  bool scalars_as_bits; /* of 16 bits, to outlined loops: parameter ms_NAME of NAME, which is declared inside */
  bool polynomials;     /* fast math has functions of ours */
  bool vectorized;      /* compilers make vectors of loops */
  const struct c_template *templates; /* instead of those of the same name; the last has no name */
  const struct c_template *(*further)(const struct emit_c *e); /* the same, by what the target has; or NULL */
  bool (*call)(struct emit_c *e, tir_expr call);  /* writes a call that only it knows; false: it does not */
  bool (*copy)(struct emit_c *e, tir_stmt store); /* writes a store of a vector that only it knows; or NULL */
  bool (*bind)(struct emit_c *e, tir_var v, tir_expr value);   /* a vector, as `copy` stores one; or NULL */
  void (*lane)(struct emit_c *e, tir_var v, struct c_chunk c); /* writes a lane of a variable of e->whole; or NULL */
  void (*ahead)(struct emit_c *e, int n, struct c_chunk c);    /* writes a lane of a load of e->ahead; or NULL */
  void (*allocate)(struct emit_c *e, tir_buffer buffer, struct c_type type, uint64_t elements); /* declares a buffer */
  void (*declared)(struct emit_c *e, tir_buffer buffer); /* writes what stands behind a view's declaration; or NULL */
  void (*outlined)(struct emit_c *e, const struct tir_captures *captures);
  void (*function)(struct emit_c *e);              /* writes it, into out */
  void (*head)(const struct emit_c *e, FILE *out); /* what stands before all */
};
extern const struct c_dialect emit_c_gnu, emit_c_cuda;

/* A load of a vector. */
struct c_ahead {
  tir_buffer buffer;
  tir_expr index;
};
enum { C_MOST_AHEAD = 16 };

struct emit_c {
  const struct c_dialect *dialect;
  const struct tir *ir;
  tir_func func;
  const struct jit_target *target;
  bool fast_math;
  const char *name, *body; /* the function's, and that of what it does */
  FILE *out;               /* the function being written */
  FILE *helpers;           /* types and functions that it needs, each once */
  FILE *functions;         /* of outlined code, before what calls them */
  char **known;            /* names in `helpers` */
  uint32_t known_count, known_capacity;
  int indent;
  char **vars, **buffers; /* C names; NULL: not in scope */
  bool *arrays;           /* of variables: those that are arrays of a vector's lanes */
  char **scope;           /* names in scope, innermost last; owned by vars and buffers */
  uint32_t scope_count, scope_capacity;
  bool parallel;                     /* inside a parallel loop */
  int aligned;                       /* the store at hand is nontemporal, at a multiple of so many bytes; or 0 */
  bool streams;                      /* the function being written has nontemporal stores: it ends with a fence */
  int index_bits;                    /* of indices and integer variables */
  uint64_t device_bytes;             /* CUDA: of buffers between kernels */
  tir_stmt kernel;                   /* CUDA: that is being written */
  struct jit_resources asked;        /* CUDA: by the kernel being written */
  struct c_kernels *kernels;         /* NULL, or: they are noted there */
  struct jit_choices choices;        /* of the function being written */
  tir_expr *bound;                   /* CUDA: by variable, the integer that a statement binds it to, or TIR_NONE */
  bool *whole;                       /* the variables that hold a vector whole, as the dialect does; or NULL: none */
  tir_type whole_type;               /* its type */
  uint32_t bodies;                   /* of outlined code, so far */
  bool threads;                      /* some of it is of parallel loops */
  uint32_t *shared, shared_capacity; /* by number of what is outlined: its body's number and one; 0: none yet */
  ms_error *err;
  bool failed;
  /* What the statement being written has loaded before all else. */
  struct c_ahead ahead[C_MOST_AHEAD];
  int ahead_count;
};

/* The kernels of a source, in the order in which they are launched. */
struct c_kernels {
  struct jit_resources *at;
  uint32_t count, capacity;
  uint64_t device_bytes; /* of buffers between them, each from a multiple of C_DEVICE_ALIGNMENT on */
  uint32_t beside;       /* of these, in front: those of what packs constants */
  uint64_t beside_bytes; /* of buffers between them */
};
enum { C_DEVICE_ALIGNMENT = 256 };

/* Another function of the same object or source: what packs the constants of the first. */
struct jit_beside {
  const struct tir *lowered;
  tir_func f;
  const char *name;
};

/* Writes function f as source of a function `name`, in a dialect: int32_t name(void **args, void *workspace), or
 * kernels and what launches them. Text: the caller's to free(). NULL: err is filled.
 *   beside   NULL, or another function, written in front of it
 *   kernels  NULL, or empty: what each asks for is added; `at` is the caller's to free() */
char *emit_c_source(const struct c_dialect *dialect, const struct tir *ir, tir_func f, const char *name,
                    const struct jit_beside *beside, const struct jit_target *target, const struct jit_options *options,
                    struct c_kernels *kernels, ms_error *err);

/* Writes a lowered function as source in the dialect of its target, as emit_c_source does (jit/backend.c). */
char *jit_emit_c(const struct tir *ir, tir_func f, const char *name, const struct jit_target *target,
                 const struct jit_options *options, struct c_kernels *kernels, ms_error *err);

void emit_c_refuse(struct emit_c *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* emit_name.c: names */
const char *emit_c_declare_var(struct emit_c *e, tir_var v); /* in scope until emit_c_leave */
const char *emit_c_declare_buffer(struct emit_c *e, tir_buffer b);
uint32_t emit_c_enter(const struct emit_c *e); /* what to give to emit_c_leave at the scope's end */
void emit_c_leave(struct emit_c *e, uint32_t mark);
bool emit_c_is_reserved(const char *name);                        /* by C, or by us */
void emit_c_identifier(const char *text, char *out, size_t size); /* text as an identifier */

/* emit_type.c: types, and functions made of templates for each */
struct c_type emit_c_type(struct emit_c *e, tir_type t, int width);              /* of values */
const char *emit_c_type_name(struct emit_c *e, struct c_type t, char out[32]);   /* "f32x16", or "float" */
const char *emit_c_memory_name(struct emit_c *e, struct c_type t, char out[32]); /* unaligned, may alias */
struct c_type emit_c_stored(tir_type t, int width); /* as in memory: floats of 16 bits as uint16_t, bool as uint8_t */
/* The name of helper function `name` for a type; what it needs is written first. `word`: put for $M in its template. */
const char *emit_c_helper(struct emit_c *e, const char *name, struct c_type t, const char *word, char out[64]);
/* Whether a function of this name is still to be written into `helpers`: once. */
bool emit_c_needs(struct emit_c *e, const char *name);
const char *emit_c_short_word(tir_type t); /* "bfloat" or "half", of a float of 16 bits */
/* The helper function of so many float32 that `what`, "of", "to" or "round", and that word name. */
const char *emit_c_short_helper(struct emit_c *e, const char *what, tir_type t, int width, char out[64]);
const char *emit_c_conversion(struct emit_c *e, struct c_type from, struct c_type to, char out[64]); /* saturating */

/* emit_index.c */
enum c_place { C_LOW, C_SUM, C_PRODUCT, C_UNIT }; /* how tightly the place binds that an expression is written in */
void emit_c_index(struct emit_c *e, tir_expr x);  /* scalar, as int64_t: of a place, which cannot leave its type */
void emit_c_index_in(struct emit_c *e, tir_expr x, enum c_place place);
void emit_c_number(struct emit_c *e, tir_expr x, enum c_place place); /* the same of any: those of data wrap around */
const char *emit_c_index_type(const struct emit_c *e);
bool emit_c_is_index(tir_type t); /* is written as an index: an integer that int64_t holds, and no vector */
void emit_c_integer(struct emit_c *e, int64_t value, bool wide); /* wide: of type int64_t, however small */
void emit_c_variable(struct emit_c *e, tir_var v);
const char *emit_c_operator(enum tir_kind kind); /* of arithmetic and comparisons */
/* emit_expr.c */
void emit_c_value(struct emit_c *e, tir_expr x, struct c_chunk c);
void emit_c_truth(struct emit_c *e, tir_expr x);                            /* scalar, as 0 or 1 */
void emit_c_mask(struct emit_c *e, tir_expr x, struct c_chunk c, int bits); /* lanes of 0 or -1, of `bits` */
/* A value of a float of 16 bits, which is rounded to that where it is stored. */
void emit_c_unrounded(struct emit_c *e, tir_expr value, struct c_chunk c);
void emit_c_cast(struct emit_c *e, tir_expr x, tir_type to, struct c_chunk c);
/* A let up to its body, which comes next; what to give to emit_c_close_let after that. */
uint32_t emit_c_open_let(struct emit_c *e, const struct tir_expr_node *n, struct c_chunk c);
void emit_c_close_let(struct emit_c *e, uint32_t mark);
int emit_c_widest(struct emit_c *e, tir_expr x); /* bits of the widest lanes that x computes with */
/* emit_memory.c */
void emit_c_load(struct emit_c *e, tir_expr load, struct c_chunk c);
void emit_c_raw(struct emit_c *e, tir_expr load, struct c_chunk c); /* as it stands in memory */
/* The element of a chunk of one lane, in memory; a value as it stands there. */
void emit_c_element(struct emit_c *e, tir_buffer buffer, tir_expr index, struct c_chunk c);
void emit_c_stored_value(struct emit_c *e, tir_expr value, tir_type type, struct c_chunk c);
void emit_c_fence(struct emit_c *e); /* at the end of a function: its nontemporal stores come before what follows */
void emit_c_store(struct emit_c *e, tir_stmt store);
void emit_c_bind_vector(struct emit_c *e, tir_var v, tir_expr value); /* as an array of its lanes */
void emit_c_bound_lanes(struct emit_c *e, tir_var v, struct c_chunk c);
/* Whether the elements of an access lie side by side: a run of scalars or of vectors, or one vector. */
bool emit_c_is_run(const struct emit_c *e, tir_buffer buffer, tir_expr index);
void emit_c_run(struct emit_c *e, tir_buffer buffer, tir_expr index,
                struct c_chunk c);                    /* the address of such a chunk */
void emit_c_address(struct emit_c *e, tir_expr load); /* of the element that a load names */
void emit_c_buffer(struct emit_c *e, tir_buffer b);   /* its name */
/* The function that makes a place in the buffer's memory of an index; "": they are the same. */
const char *emit_c_swizzle(struct emit_c *e, tir_buffer buffer, char name[32]);
/* emit_parts.c: writes a cast of bytes four apart, or of a part of them, by words; false: it is none */
bool emit_c_part(struct emit_c *e, tir_expr x, tir_type to, struct c_chunk c);
/* emit_call.c */
void emit_c_call(struct emit_c *e, tir_expr call, struct c_chunk c);
/* emit_stmt.c */
void emit_c_line(struct emit_c *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emit_c_begin(struct emit_c *e); /* the indentation of a line */
void emit_c_list(struct emit_c *e, tir_stmt first);
/* What an outlined loop captures, as a list: what is given, parameters for it, or addresses of what is given. */
enum c_captured { C_ARGUMENTS, C_PARAMETERS, C_ADDRESSES };
void emit_c_captured(struct emit_c *e, const struct tir_captures *captures, enum c_captured as);
/* emit_parallel.c */
void emit_c_outlined(struct emit_c *e, const struct tir_captures *captures);

#endif

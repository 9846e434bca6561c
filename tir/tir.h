/* tir: the IR of tensor programs, and everything that reads or changes it. The module's public header.
 *
 * One `struct tir` is one module: an arena of arrays. Expressions, statements, buffers and names are 32-bit indices
 * into them, never pointers, so that a clone is a memcpy an array (tir_copy) and nothing is fixed up. Index 0 of every
 * array is reserved: TIR_NONE.
 *
 *   expressions  interned and never written after: the same text is the same index. Each carries the bounds of its
 *                value, a mask of the variables in it and, on demand, its linear form. A variable's domain is fixed at
 *                birth, so these facts hold wherever the expression stands.
 *   statements   a mutable tree with parent links and sibling lists, edited in place. A body is a list of statements:
 *                there is no sequence node. A loop or block keeps its index for life.
 *   blocks       one node stands for TensorIR's block and its realize. Blocks by name, and the blocks that read or
 *                write a buffer, are kept as lists.
 *
 * Nothing here is thread-safe for writing; distinct modules share nothing. Failures are returned in a ms_error; a
 * module is as it was after any failure. Source: Feng et al., "TensorIR", ASPLOS 2023. */
#ifndef MSCHED_TIR_H
#define MSCHED_TIR_H

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The checked build ------------------------------------------------------------------------------------------- */

/* Asserts in builds with MSCHED_CHECK only: what would cost too much where every index is read. There, accessors check
 * that what they read is there and of its kind, the verifier runs after every instruction, what dies is poisoned. */
#ifdef MSCHED_CHECK
#define MS_CHECK(condition) assert(condition)
#else
#define MS_CHECK(condition) ((void)sizeof(condition))
#endif

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* One code for each precondition that a user can violate: errors.def. */
enum ms_code {
  MS_OK = 0,
#define MS_ERROR(code, text, hint) MS_##code,
#include "errors.def"
#undef MS_ERROR
  MS_CODE_COUNT
};

/* What went wrong. `brief` is set by a caller that wants the code only (a search draws many refused candidates);
 * then `message` stays empty. `instruction` is filled by vm: the number of the instruction in its trace, or -1. */
typedef struct ms_error {
  enum ms_code code;
  bool brief;
  int instruction;
  char message[2000];
} ms_error;

/* Ready to be filled; an initializer does the same, and clears the whole message: that takes longer than many calls. */
static inline void ms_clear(ms_error *err) {
  err->code = MS_OK;
  err->brief = false;
  err->instruction = -1;
  err->message[0] = 0;
}

struct tir;
/* Fill `err` (which may be NULL) and return false. `place`: the loop or block meant, printed with its surroundings. */
bool ms_fail(ms_error *err, enum ms_code code, const char *format, ...) __attribute__((cold, format(printf, 3, 4)));
bool ms_vfail(ms_error *err, enum ms_code code, const char *format, va_list args) __attribute__((cold));
bool tir_refuse(const struct tir *ir, ms_error *err, enum ms_code code, uint32_t place, const char *format, ...)
    __attribute__((cold, format(printf, 5, 6)));
/* Adds what is required and a hint to the message, if it has them not. */
void ms_explain(ms_error *err);
const char *ms_code_name(enum ms_code code); /* "loop_not_starting_with_zero": stable, for --json */
const char *ms_code_text(enum ms_code code);
const char *ms_code_hint(enum ms_code code);

/* ---- Indices and types ------------------------------------------------------------------------------------------- */

#define TIR_NONE 0u
typedef uint32_t tir_expr;   /* an expression */
typedef uint32_t tir_var;    /* a variable: loop, block iteration, let, shape, handle */
typedef uint32_t tir_buffer; /* a buffer */
typedef uint32_t tir_stmt;   /* any statement */
typedef tir_stmt tir_loop;   /* a statement of kind TIR_LOOP */
typedef tir_stmt tir_block;  /* a statement of kind TIR_BLOCK */
typedef uint32_t tir_symbol; /* an interned string */
typedef uint32_t tir_name;   /* a name made of others, rendered when printed */
typedef uint32_t tir_func;   /* a function of the module */

/* A data type: code in bits 24-31, bits in 16-23, lanes in 0-15. */
typedef uint32_t tir_type;
enum tir_code {
  TIR_VOID,
  TIR_BOOL,
  TIR_INT,
  TIR_UINT,
  TIR_FLOAT,
  TIR_BFLOAT,
  TIR_HANDLE,
  TIR_STRING,
  TIR_E4M3, /* floats of 8 bits, as the OCP 8-bit Floating Point Specification has them: no infinity, one NaN */
  TIR_E5M2, /* infinities and NaN as in a half, whose upper byte it is */
  TIR_CODES /* how many */
};
#define TIR_TYPE(code, bits, lanes) ((tir_type)((code) << 24 | (bits) << 16 | (lanes)))
#define TIR_T_VOID                  TIR_TYPE(TIR_VOID, 0, 0)
#define TIR_T_BOOL                  TIR_TYPE(TIR_BOOL, 1, 1)
#define TIR_T_I32                   TIR_TYPE(TIR_INT, 32, 1)
#define TIR_T_I64                   TIR_TYPE(TIR_INT, 64, 1)
#define TIR_T_F32                   TIR_TYPE(TIR_FLOAT, 32, 1)
#define TIR_T_HANDLE                TIR_TYPE(TIR_HANDLE, 64, 1)
#define TIR_T_STRING                TIR_TYPE(TIR_STRING, 0, 1) /* string arguments and annotation values */
static inline enum tir_code tir_type_code(tir_type t) { return (enum tir_code)(t >> 24); }
static inline int tir_type_bits(tir_type t) { return (int)(t >> 16 & 255); }
enum { TIR_MOST_LANES = 0xffff };
enum { TIR_MOST_RANK = 32 }; /* dimensions of a buffer, in TVMScript and to passes */
static inline int tir_type_lanes(tir_type t) { return (int)(t & TIR_MOST_LANES); }
static inline tir_type tir_type_with_lanes(tir_type t, int lanes) {
  return (t & ~(tir_type)TIR_MOST_LANES) | (tir_type)lanes;
}
static inline bool tir_type_is_int(tir_type t) { return tir_type_code(t) == TIR_INT || tir_type_code(t) == TIR_UINT; }
static inline bool tir_type_is_float(tir_type t) {
  return tir_type_code(t) == TIR_FLOAT || tir_type_code(t) == TIR_BFLOAT || tir_type_code(t) >= TIR_E4M3;
}
static inline bool tir_type_is_byte(tir_type t) { return tir_type_code(t) >= TIR_E4M3; } /* a float of 8 bits */
static inline bool tir_type_is_short(tir_type t) { /* of 16 bits or 8: computed in float32, and rounded */
  return tir_type_is_float(t) && tir_type_bits(t) <= 16;
}
static inline bool tir_type_is_half(tir_type t) { return tir_type_is_short(t) && tir_type_bits(t) == 16; }
/* Of an element, whose lanes lie side by side: the last byte may not be full. */
static inline int64_t tir_type_bytes(tir_type t) { return ((int64_t)tir_type_bits(t) * tir_type_lanes(t) + 7) / 8; }
bool tir_type_parse(const char *text, tir_type *out);   /* "float32", "int8x4", "bool", "handle" */
const char *tir_type_text(tir_type t, char buffer[24]); /* its inverse */

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

enum tir_kind {
  TIR_BAD_EXPR, /* index 0 */
  /* leaves */
  TIR_INT_IMM,
  TIR_FLOAT_IMM,
  TIR_STRING_IMM,
  TIR_NONE_IMM,
  TIR_VAR,
  TIR_DATA, /* TIR_DATA: a buffer's data pointer */
  /* binary: a, b */
  TIR_ADD,
  TIR_SUB,
  TIR_MUL,
  TIR_DIV,
  TIR_MOD,
  TIR_FLOORDIV,
  TIR_FLOORMOD,
  TIR_MIN,
  TIR_MAX,
  TIR_EQ,
  TIR_NE,
  TIR_LT,
  TIR_LE,
  TIR_GT,
  TIR_GE,
  TIR_AND,
  TIR_OR,
  /* others */
  TIR_NOT,       /* a */
  TIR_CAST,      /* a */
  TIR_SELECT,    /* a condition, b, c */
  TIR_LET,       /* ref: variable; a: its value, b: the body */
  TIR_RAMP,      /* a base, b stride; lanes in the type */
  TIR_BROADCAST, /* a */
  TIR_LOAD,      /* ref: buffer; operands: indices; a: predicate or TIR_NONE */
  TIR_CALL,      /* ref: symbol of the operator, as TVMScript names it; operands: arguments */
  TIR_SLICE,     /* a start, b stop, c step: inside the indices of a region given as an argument */
  TIR_LIST,      /* annotation value: operands */
  TIR_MAP,       /* annotation value: operands, keys (TIR_STRING_IMM) and values in turn */
  TIR_KIND_COUNT
};

enum { /* flags, true of a node when true of any node below it */
       TIR_HAS_LOAD = 1,
       TIR_HAS_CALL = 2,
       TIR_HAS_DIVMOD = 4,
       TIR_HAS_VAR = 8,
       TIR_HAS_DATA = 16,   /* a variable that is bound to data */
       TIR_HAS_POINTER = 32 /* of a buffer: TIR_DATA */
};
/* Integers of data: sums and products of them may leave their type, and wrap around; those of indices do not. */
#define TIR_OF_DATA (TIR_HAS_LOAD | TIR_HAS_CALL | TIR_HAS_DATA)

struct tir_expr_node {
  uint8_t kind, flags;
  uint16_t count; /* number of operands */
  tir_type type;
  union {
    struct {
      tir_expr a, b;
    };
    int64_t imm; /* TIR_INT_IMM */
    double real; /* TIR_FLOAT_IMM */
  };
  tir_expr c;
  uint32_t ref;      /* variable, buffer or symbol (TIR_STRING_IMM, TIR_CALL) */
  uint32_t operands; /* first of `count` in tir.operands */
  uint32_t hash;
  uint64_t vars;   /* bit (variable mod 64) of each variable below */
  int64_t lo, hi;  /* bounds of an integer's value; INT64_MIN and INT64_MAX mean none */
  uint64_t unused; /* 64 bytes: an index becomes an address by a shift; so it is with statements and blocks */
};

/* An integer's linear form: constant + sum of coefficient * atom, atoms ascending. Atoms are whatever is no sum. */
struct tir_term {
  int64_t coefficient;
  tir_expr atom;
};
struct tir_linear {
  int64_t constant;
  uint32_t first;
  uint32_t count;
}; /* first: into tir.terms; UINT32_MAX: not yet made */

enum tir_var_kind {
  TIR_VAR_PLAIN,
  TIR_VAR_LOOP,
  TIR_VAR_ITER,
  TIR_VAR_LET, /* bound to an expression */
  TIR_VAR_DATA /* the same, to what is loaded, or called: what is made of it wraps around, as that does */
};
struct tir_var_node {
  tir_name name;
  tir_type type;
  uint32_t kind;
  tir_expr expr;        /* the expression that is this variable */
  tir_expr min, extent; /* its domain, fixed at birth; TIR_NONE: unbounded */
};

/* ---- Statements -------------------------------------------------------------------------------------------------- */

enum tir_stmt_kind {
  TIR_DEAD,     /* removed */
  TIR_FUNCTION, /* the root of a function's tree */
  TIR_LOOP,
  TIR_BLOCK,
  TIR_STORE,
  TIR_IF,
  TIR_BIND,
  TIR_EVALUATE,
  TIR_WHILE,
  TIR_ASSERT,
  TIR_ATTR,
  TIR_ALLOC,
  TIR_DECLARE /* flat: a buffer that lives for the rest of its list; DECLARE gives a view of data */
};
enum tir_loop_kind { TIR_SERIAL, TIR_PARALLEL, TIR_VECTORIZED, TIR_UNROLLED, TIR_THREAD_BINDING };
enum tir_iter_kind { TIR_SPATIAL, TIR_REDUCE, TIR_OPAQUE };
enum tir_list { TIR_BODY, TIR_INIT, TIR_ELSE = TIR_INIT }; /* which list of its parent a statement is in */

struct tir_span {
  uint32_t first, count;
}; /* a run in one of the arrays; empty: count 0 */

struct tir_stmt_node {
  uint8_t kind, list, loop_kind, mark; /* mark: 0 but while a primitive checks */
  tir_stmt parent, prev, next;
  tir_stmt first[2], last[2];  /* children: TIR_BODY, and TIR_INIT (blocks) or TIR_ELSE (ifs) */
  struct tir_span annotations; /* in tir.annotations, ascending by key's text; loops, blocks, allocations */
  union {
    struct {
      tir_var var;
      tir_expr min, extent;
      tir_symbol thread;
    } loop; /* thread: "threadIdx.x", … */
    struct {
      uint32_t record;
      tir_expr predicate;
    } block; /* predicate TIR_NONE: true */
    struct {
      tir_buffer buffer;
      uint32_t indices;
      tir_expr value, predicate;
    } store; /* indices: in tir.operands */
    struct {
      tir_expr condition, message;
    } test; /* if, while, assert */
    struct {
      tir_var var;
      tir_expr value;
    } bind; /* holds for the rest of its list */
    struct {
      tir_expr node, value;
      tir_symbol key;
    } attr;
    struct {
      tir_expr value;
    } evaluate;
    struct {
      tir_buffer buffer;
    } alloc; /* ALLOC, DECLARE */
    struct {
      tir_func func;
    } function;
  };
  uint32_t unused[2]; /* 64 bytes */
};

struct tir_iter {
  tir_var var;
  uint32_t kind;
  tir_expr binding;
}; /* domain: of the variable */
struct tir_region {
  tir_buffer buffer;
  uint32_t ranges;
}; /* min, extent a dimension, in tir.operands */
struct tir_match {
  tir_buffer buffer;
  struct tir_region source;
};
struct tir_annotation {
  tir_symbol key;
  tir_expr value;
};

struct tir_block_record {
  tir_block block;
  tir_symbol name;
  tir_block next_same_name;
  struct tir_span iters, reads, writes; /* in tir.iters, tir.regions */
  struct tir_span allocs;               /* in tir.operands: buffers */
  struct tir_span matches;              /* in tir.matches */
  uint32_t facts;     /* of its scope as a stage pipeline, and its region cover: analysis/pipeline.c */
  uint32_t unused[2]; /* 64 bytes */
};

struct tir_buffer_node {
  tir_symbol name, scope; /* scope "global" unless said */
  tir_type type;
  uint32_t rank, shape;    /* shape: rank operands */
  struct tir_span strides; /* operands; empty: compact, row-major */
  tir_expr elem_offset;    /* TIR_NONE: 0 */
  tir_expr data;           /* TIR_NONE: its own; else the pointer it is a view of */
  uint32_t alignment, offset_factor;
  uint32_t
      user_annotated; /* 1: a user annotated a region of it, or of what it was made of: its regions prove nothing */
  struct tir_span axis_separators;
  uint32_t readers, writers; /* heads of lists in tir.uses: the blocks that declare it in their regions */
  uint32_t undeclared;       /* and those whose bodies use it in a way that no region declares */
  tir_stmt where;            /* the block or statement that allocates or matches it; TIR_NONE: a parameter */
};
struct tir_use {
  tir_block block;
  uint32_t next, undeclared;
}; /* undeclared: TIR_USE_READS, TIR_USE_WRITES or both; 0 in the lists of what is declared */
/* TIR_USE_OF_SCOPE: by the block as a scope, which needs no region: a root, or the block that allocates the buffer. */
enum { TIR_USE_READS = 1, TIR_USE_WRITES = 2, TIR_USE_OF_SCOPE = 4 };

struct tir_param {
  tir_buffer buffer;
  tir_var var;
}; /* a buffer, a scalar, or a handle that a buffer is matched on (both) */
struct tir_func_node {
  tir_symbol name;
  tir_stmt body;          /* TIR_FUNCTION */
  struct tir_span params; /* in tir.params */
  struct tir_span attrs;  /* in tir.annotations */
  tir_type result;
};

/* What became of a loop or block: appended by edits, read by vm. to TIR_NONE: it is dead. */
struct tir_forward {
  tir_stmt from, to;
};

struct tir_symbol_node {
  uint32_t offset, length, hash;
  tir_block first_block;              /* of this name */
  uint8_t memory_scope, memory, rows; /* what it says as the name of a scope (memory_scope.h) */
  bool sized;
};
/* Of symbols: TEXT a · ORDINAL a followed by number b. Of names: NUMBER a_b · JOIN a_b (names) · SUFFIX a followed by
 * symbol b · PREFIX a preceded by symbol b */
enum tir_name_kind {
  TIR_NAME_TEXT,
  TIR_NAME_ORDINAL,
  TIR_NAME_NUMBER,
  TIR_NAME_JOIN,
  TIR_NAME_SUFFIX,
  TIR_NAME_PREFIX
};
struct tir_name_node {
  uint16_t kind, depth;
  uint32_t a, b;
};

/* The arrays of the arena: element type, field. */
/* clang-format off */
#define TIR_ARRAYS(X) \
  X(struct tir_expr_node, exprs) X(struct tir_linear, linears) X(struct tir_term, terms) X(uint32_t, operands) \
  X(struct tir_var_node, vars) X(struct tir_name_node, names) X(struct tir_symbol_node, symbols) X(char, text) \
  X(struct tir_stmt_node, stmts) X(struct tir_block_record, blocks) X(struct tir_iter, iters) \
  X(struct tir_region, regions) X(struct tir_match, matches) X(struct tir_annotation, annotations) \
  X(struct tir_buffer_node, buffers) X(struct tir_use, uses) X(struct tir_func_node, funcs) \
  X(struct tir_param, params) X(struct tir_forward, forwards) X(uint32_t, expr_slots) X(uint32_t, symbol_slots)
/* clang-format on */

enum { TIR_UNDECLARED_UNKNOWN, TIR_NONE_UNDECLARED, TIR_SOME_UNDECLARED };
struct tir_verified {
  uint32_t exprs, terms; /* how many there were */
};
struct tir {
#define TIR_ARRAY_FIELD(type, name)                                                                                    \
  struct {                                                                                                             \
    type *at;                                                                                                          \
    uint32_t count, capacity;                                                                                          \
  } name;
  TIR_ARRAYS(TIR_ARRAY_FIELD)
#undef TIR_ARRAY_FIELD
  uint8_t undeclared; /* whether there are uses that no region declares: kept by tir_find_undeclared */
  bool has_empty;     /* by tir_find_empty, of what was read; instructions do not edit what has an extent of 0 */
  bool aliased;       /* by tir_find_aliased, of what was read: nor what is used by two names */
  bool indirect; /* an integer or a truth that loads was ever made: only then may ranges, bindings, predicates load */
  struct tir_verified verified; /* by tir_verify_new */
  bool has_lets;                /* a variable that a statement binds was ever made */
  struct tir_scratch *scratch;  /* working memory of substitution and the like: not part of the module */
};

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Makes room for `count` elements of `size` bytes in all. Aborts when memory is out: the limits that a user can reach
 * (nesting, extents, text) are checked long before. */
void *tir_enlarge(void *at, uint32_t *capacity, uint64_t count, size_t size) __attribute__((cold));

/* ---- Life of a module -------------------------------------------------------------------------------------------- */

struct tir *tir_new(void);
void tir_free(struct tir *ir);
/* Makes `to` equal to `from`, reusing `to`'s memory. Cost: a memcpy an array. */
void tir_copy(struct tir *to, const struct tir *from);
size_t tir_bytes(const struct tir *ir); /* of memory held, working memory aside */
/* An undo point for work that only appends (checks, analysis): tir_rewind forgets all that was interned since. */
struct tir_mark {
  uint32_t exprs, linears, terms, operands, vars, names, symbols, text, regions, iters;
};
struct tir_mark tir_mark(const struct tir *ir);
void tir_rewind(struct tir *ir, const struct tir_mark *mark);
static inline bool tir_rewind_unless(struct tir *ir, const struct tir_mark *mark,
                                     bool accepted) { /* gives `accepted` */
  if (!accepted) tir_rewind(ir, mark);
  return accepted;
}
/* A hash of one function, or with TIR_NONE the module: equal for equal structure whatever the names of variables and
 * buffers and the order of interning. Block names and annotations count. */
uint64_t tir_structural_hash(const struct tir *ir, tir_func func);
/* Structural equality, of functions of one or two modules; `why` (may be NULL) receives the first difference. */
bool tir_structural_equal(const struct tir *a, tir_func fa, const struct tir *b, tir_func fb, char *why, size_t size);

/* ---- Names ------------------------------------------------------------------------------------------------------- */

tir_symbol tir_symbol_of(struct tir *ir, const char *text); /* interns */
tir_symbol tir_symbol_n(struct tir *ir, const char *text, size_t length);
tir_symbol tir_find_symbol(const struct tir *ir, const char *text); /* TIR_NONE: never interned */
static inline const char *tir_text(const struct tir *ir, tir_symbol s) {
  MS_CHECK(s < ir->symbols.count);
  return ir->text.at + ir->symbols.at[s].offset;
}
tir_name tir_name_of(struct tir *ir, const char *text);
tir_name tir_name_ordinal(struct tir *ir, tir_symbol stem, uint32_t number);         /* stem, then number */
tir_name tir_name_number(struct tir *ir, tir_name base, uint32_t number);            /* base_number */
tir_name tir_name_join(struct tir *ir, tir_name a, tir_name b);                      /* a_b */
tir_name tir_name_suffix(struct tir *ir, tir_name base, const char *suffix);         /* base, then suffix as it is */
tir_name tir_name_prefix(struct tir *ir, const char *prefix, tir_name base);         /* prefix as it is, then base */
size_t tir_name_render(const struct tir *ir, tir_name name, char *out, size_t size); /* length; always terminated */
tir_symbol tir_symbol_suffix(struct tir *ir, tir_symbol base, const char *suffix);   /* base, then suffix as it is */
/* A symbol from a format: tir_symbol_format(ir, "%s_%s", …). */
tir_symbol tir_symbol_format(struct tir *ir, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Making expressions ------------------------------------------------------------------------------------------ */

static inline bool tir_is_buffer(const struct tir *ir, tir_buffer b) { return b && b < ir->buffers.count; }
static inline bool tir_is_func(const struct tir *ir, tir_func f) { return f && f < ir->funcs.count; }
static inline const struct tir_expr_node *tir_at(const struct tir *ir, tir_expr e) {
  MS_CHECK(e < ir->exprs.count);
  return &ir->exprs.at[e];
}
static inline tir_type tir_type_of(const struct tir *ir, tir_expr e) { return tir_at(ir, e)->type; }
static inline const uint32_t *tir_operands(const struct tir *ir, uint32_t first) {
  MS_CHECK(first <= ir->operands.count);
  return ir->operands.at + first;
}
static inline struct tir_var_node *tir_var_at(const struct tir *ir, tir_var v) {
  MS_CHECK(v && v < ir->vars.count);
  return &ir->vars.at[v];
}
uint32_t tir_add_operands(struct tir *ir, const uint32_t *values, uint32_t count); /* copies; index of the first */

tir_var tir_new_var(struct tir *ir, enum tir_var_kind kind, tir_name name, tir_type type, tir_expr min,
                    tir_expr extent);
static inline tir_expr tir_var_expr(const struct tir *ir, tir_var v) { return tir_var_at(ir, v)->expr; }
tir_var tir_new_let(struct tir *ir, tir_name name, tir_expr value); /* to bind to the value */
static inline bool tir_is_let(const struct tir *ir, tir_var v) { return tir_var_at(ir, v)->kind >= TIR_VAR_LET; }

/* Raw nodes: nothing is folded (the reader's). Operands' types are the caller's affair. */
tir_expr tir_int(struct tir *ir, tir_type type, int64_t value);
tir_expr tir_float(struct tir *ir, tir_type type, double value);
tir_expr tir_string(struct tir *ir, tir_symbol text);
tir_expr tir_none(struct tir *ir); /* a None among arguments or annotations */
tir_expr tir_data(struct tir *ir, tir_buffer buffer);
tir_expr tir_binary(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b);
tir_expr tir_unary(struct tir *ir, enum tir_kind kind, tir_type type, tir_expr a); /* NOT, CAST, BROADCAST */
tir_expr tir_select(struct tir *ir, tir_expr condition, tir_expr a, tir_expr b);
tir_expr tir_let(struct tir *ir, tir_var var, tir_expr value, tir_expr body);
tir_expr tir_ramp(struct tir *ir, tir_expr base, tir_expr stride, int lanes);
tir_expr tir_slice(struct tir *ir, tir_expr start, tir_expr stop, tir_expr step);
/* A node like n, which has operands but no list of them, with others in their place: what n.a, n.b and n.c become. */
tir_expr tir_rebuild(struct tir *ir, struct tir_expr_node n, tir_expr a, tir_expr b, tir_expr c);
tir_expr tir_load(struct tir *ir, tir_buffer buffer, const tir_expr *indices, uint32_t count, tir_expr predicate);
tir_expr tir_call(struct tir *ir, tir_type type, tir_symbol op, const tir_expr *args, uint32_t count);
tir_expr tir_list_value(struct tir *ir, const tir_expr *items, uint32_t count);
tir_expr tir_map_value(struct tir *ir, const tir_expr *items, uint32_t count); /* keys and values in turn */

/* The operation gives a number: it is none on booleans, which are compared and joined by and, or, not alone. */
static inline bool tir_is_arithmetic(enum tir_kind kind) { return kind >= TIR_ADD && kind <= TIR_MAX; }
bool tir_is_arithmetic_call(const char *op); /* so does a call: bitwise_not, shifts, pow, abs */
/* The value of a binary operation on integers, TIR_ADD to TIR_OR. False: it has none, or leaves 64 bits. */
bool tir_compute(enum tir_kind kind, int64_t a, int64_t b, int64_t *out);
/* Simplified integer arithmetic: folds, sums terms, divides what divides, uses the bounds of variables. The result is
 * equal in value to the plain node; sums come out by falling coefficient. For floats and others: the raw node, but
 * that constants of conditions are folded. */
tir_expr tir_make(struct tir *ir, enum tir_kind kind, tir_expr a, tir_expr b); /* any binary kind */
static inline tir_expr tir_add(struct tir *ir, tir_expr a, tir_expr b) { return tir_make(ir, TIR_ADD, a, b); }
static inline tir_expr tir_sub(struct tir *ir, tir_expr a, tir_expr b) { return tir_make(ir, TIR_SUB, a, b); }
static inline tir_expr tir_mul(struct tir *ir, tir_expr a, tir_expr b) { return tir_make(ir, TIR_MUL, a, b); }
static inline tir_expr tir_floordiv(struct tir *ir, tir_expr a, tir_expr b) { return tir_make(ir, TIR_FLOORDIV, a, b); }
static inline tir_expr tir_floormod(struct tir *ir, tir_expr a, tir_expr b) { return tir_make(ir, TIR_FLOORMOD, a, b); }
tir_expr tir_not(struct tir *ir, tir_expr a);
tir_expr tir_cast(struct tir *ir, tir_type type, tir_expr a);
tir_expr tir_simplify(struct tir *ir, tir_expr e); /* rebuilds bottom-up with the above */
/* true, for conjunctions: TIR_NONE and a true constant both mean true. Drops duplicates of b's conjuncts. */
tir_expr tir_and(struct tir *ir, tir_expr a, tir_expr b);
static inline bool tir_is_int(const struct tir *ir, tir_expr e) { return tir_at(ir, e)->kind == TIR_INT_IMM; }
static inline bool tir_is_const(const struct tir *ir, tir_expr e, int64_t value) {
  return tir_is_int(ir, e) && tir_at(ir, e)->imm == value;
}
static inline bool tir_is_number(const struct tir *ir, tir_expr e, int value) { /* an integer's or a float's constant */
  const struct tir_expr_node *n = tir_at(ir, e);
  return (n->kind == TIR_INT_IMM && n->imm == value) || (n->kind == TIR_FLOAT_IMM && n->real == value);
}
/* Whether all its bits are zero: a constant of 0, no negative float. */
static inline bool tir_is_zero_bits(const struct tir *ir, tir_expr e) {
  const struct tir_expr_node *n = tir_at(ir, e);
  return (n->kind == TIR_INT_IMM && n->imm == 0) || (n->kind == TIR_FLOAT_IMM && n->real == 0 && !signbit(n->real));
}
static inline tir_expr tir_without_casts(const struct tir *ir, tir_expr e) { /* what it was before it was converted */
  while (tir_at(ir, e)->kind == TIR_CAST) e = tir_at(ir, e)->a;
  return e;
}

/* ---- Reading expressions ----------------------------------------------------------------------------------------- */

/* The linear form of an integer expression; valid until the arena grows. */
struct tir_linear tir_linear_of(struct tir *ir, tir_expr e);
static inline const struct tir_term *tir_terms(const struct tir *ir, struct tir_linear l) {
  MS_CHECK(l.first != UINT32_MAX && (uint64_t)l.first + l.count <= ir->terms.count);
  return ir->terms.at + l.first;
}
/* The expression of a sum: terms need not be sorted or merged. */
tir_expr tir_from_terms(struct tir *ir, tir_type type, int64_t constant, const struct tir_term *terms, uint32_t count);
/* True if both have the same value for all values of their variables within their domains; false: not shown. */
bool tir_prove_equal(struct tir *ir, tir_expr a, tir_expr b);
bool tir_prove(struct tir *ir, tir_expr condition); /* a boolean expression is always true */
bool tir_prove_under(struct tir *ir, tir_expr given,
                     tir_expr condition); /* true wherever `given` is; TIR_NONE: everywhere */
/* Largest m and some r in [0, m) with value = r (mod m); m = 0: the constant r. */
void tir_modular(struct tir *ir, tir_expr e, int64_t *modulus, int64_t *remainder);
bool tir_is_multiple(struct tir *ir, tir_expr e, int64_t of);         /* whatever its variables are; of: above 0 */
bool tir_uses_var_below(const struct tir *ir, tir_expr e, tir_var v); /* the mask of e has the variable's bit */
static inline bool tir_uses_var(const struct tir *ir, tir_expr e, tir_var v) {
  return (tir_at(ir, e)->vars >> (v & 63) & 1) && tir_uses_var_below(ir, e, v);
}
bool tir_uses_any_var(const struct tir *ir, tir_expr e, const tir_var *vars, uint32_t count);
bool tir_uses_buffer(const struct tir *ir, tir_expr e, tir_buffer b);
/* Calls visit(data, e) once on e and on each node below it, a parent first; visit returns false to skip what is below.
 * Expressions are graphs: a node that several share is visited as first met. */
void tir_walk_expr(const struct tir *ir, tir_expr e, bool (*visit)(void *data, tir_expr e), void *data);

/* The first of e and the nodes below it, a parent first, of which test(ir, context, node) holds; TIR_NONE: it holds of
 * none, or e is TIR_NONE. A node that has none of `flags` is passed over, with all below it; 0: none is. The test adds
 * nothing to ir. Of a node that several share it may be asked again, but no more often than a bound allows. */
typedef bool tir_node_test(const struct tir *ir, const void *context, tir_expr e);
tir_expr tir_find_node(const struct tir *ir, tir_expr e, uint8_t flags, tir_node_test *test, const void *context);
static inline bool tir_any_node(const struct tir *ir, tir_expr e, uint8_t flags, tir_node_test *test,
                                const void *context) {
  return e && (!flags || tir_at(ir, e)->flags & flags) && tir_find_node(ir, e, flags, test, context);
}
/* Whether a variable in e has test(ir, context, v). */
bool tir_any_var(const struct tir *ir, tir_expr e, bool (*test)(const struct tir *ir, const void *context, tir_var v),
                 const void *context);
/* A variable in e is one that a statement binds. */
bool tir_uses_let(const struct tir *ir, tir_expr e);
/* e uses the variable of a loop, or a name that a statement binds, which may be bound to what follows the loop. */
static inline bool tir_may_follow(const struct tir *ir, tir_expr e, tir_var v) {
  return tir_uses_var(ir, e, v) || (ir->has_lets && tir_uses_let(ir, e));
}
/* How often nodes that counts(data, e) says stand in the expression written out, where a shared node stands several
 * times; UINT32_MAX: that often or more. */
uint32_t tir_count_in_tree(const struct tir *ir, tir_expr e, bool (*counts)(void *data, tir_expr e), void *data);

/* Substitution of variables and buffers. Set entries, apply any number of times, clear. Integer sums are simplified on
 * the way; an expression without the variables is returned as it is. Not re-entrant: one map a module. */
void tir_subst_var(struct tir *ir, tir_var v, tir_expr value);
void tir_subst_buffer(struct tir *ir, tir_buffer from, tir_buffer to); /* loads, data pointers, statements, regions */
tir_expr tir_subst(struct tir *ir, tir_expr e);
uint32_t tir_subst_operands(struct tir *ir, uint32_t first,
                            uint32_t count); /* copies if they change; the first's index */
tir_expr tir_subst_value(struct tir *ir,
                         tir_expr e);            /* conditions are not simplified: no branch of a body is decided */
void tir_subst_stmt(struct tir *ir, tir_stmt s); /* the whole subtree: bindings, regions, predicates, extents, bodies */
/* The same for variables of loops, which blocks with iterations know by their bindings, domains and predicate only.
 * True: one of these blocks has a predicate. */
bool tir_subst_loops(struct tir *ir, tir_stmt s);
void tir_subst_clear(struct tir *ir);

/* ---- Statements: reading ----------------------------------------------------------------------------------------- */

static inline struct tir_stmt_node *tir_stmt_at(const struct tir *ir, tir_stmt s) {
  MS_CHECK(s < ir->stmts.count);
  return &ir->stmts.at[s];
}
static inline bool tir_is(const struct tir *ir, tir_stmt s, enum tir_stmt_kind kind) {
  return tir_stmt_at(ir, s)->kind == kind;
}
static inline bool tir_is_bound(const struct tir *ir, tir_stmt s) { /* a loop, to a thread axis */
  return tir_is(ir, s, TIR_LOOP) && tir_stmt_at(ir, s)->loop_kind == TIR_THREAD_BINDING;
}
/* A statement that the caller knows to be of a kind: of the node's union, that kind's member may be read. */
static inline struct tir_stmt_node *tir_as(const struct tir *ir, tir_stmt s, enum tir_stmt_kind kind) {
  MS_CHECK(tir_is(ir, s, kind));
  return tir_stmt_at(ir, s);
}
static inline struct tir_block_record *tir_block_at(const struct tir *ir, tir_block b) {
  struct tir_block_record *record = &ir->blocks.at[tir_as(ir, b, TIR_BLOCK)->block.record];
  MS_CHECK(record->block == b);
  return record;
}
static inline struct tir_iter *tir_iters(const struct tir *ir, tir_block b) {
  return ir->iters.at + tir_block_at(ir, b)->iters.first;
}
static inline struct tir_buffer_node *tir_buffer_at(const struct tir *ir, tir_buffer b) {
  MS_CHECK(tir_is_buffer(ir, b));
  return &ir->buffers.at[b];
}
static inline const char *tir_block_name(const struct tir *ir, tir_block b) {
  return tir_text(ir, tir_block_at(ir, b)->name);
}
static inline const char *tir_buffer_name(const struct tir *ir, tir_buffer b) {
  return tir_text(ir, tir_buffer_at(ir, b)->name);
}
static inline struct tir_span tir_regions(const struct tir *ir, tir_block b, bool writes) {
  return writes ? tir_block_at(ir, b)->writes : tir_block_at(ir, b)->reads;
}
/* The statement after s in a walk of the tree in order of text (init before body), staying below `top`; TIR_NONE: done.
 * tir_after skips what is below s. */
tir_stmt tir_next_of(const struct tir *ir, tir_stmt s, tir_stmt top);
static inline tir_stmt tir_next(const struct tir *ir, tir_stmt s, tir_stmt top) { /* mostly into a list, or on in one */
  const struct tir_stmt_node *n = tir_stmt_at(ir, s);
  if (n->first[TIR_BODY] && (n->kind != TIR_BLOCK || !n->first[TIR_INIT])) return n->first[TIR_BODY];
  return n->next && !n->first[TIR_BODY] && !n->first[TIR_INIT] && s != top ? n->next : tir_next_of(ir, s, top);
}
tir_stmt tir_after(const struct tir *ir, tir_stmt s, tir_stmt top);
static inline tir_stmt tir_next_in_scope(const struct tir *ir, tir_stmt s, tir_stmt top) { /* not inside of a block */
  return tir_is(ir, s, TIR_BLOCK) ? tir_after(ir, s, top) : tir_next(ir, s, top);
}
bool tir_contains_block(const struct tir *ir, tir_stmt top); /* below it */
/* The expressions of a statement itself, at most 4: without a store's indices and what a block's record holds. */
uint32_t tir_stmt_exprs(const struct tir *ir, tir_stmt s, tir_expr out[4]);
bool tir_is_below(const struct tir *ir, tir_stmt s, tir_stmt above);    /* strictly */
int tir_compare_position(const struct tir *ir, tir_stmt a, tir_stmt b); /* order of text; an ancestor comes first */
/* Entry `i` of how rows lie apart that the block writes (StorageAlign), a list of four integers; TIR_NONE: there is
 * none, or none such. Rows get fewer than TIR_MOST_APART elements more. (gpu/kernel.c) */
tir_expr tir_row_entry(const struct tir *ir, tir_block block, uint32_t i);
enum { TIR_MOST_APART = 1 << 20 };
tir_block tir_parent_block(const struct tir *ir,
                           tir_stmt s); /* the block whose scope s is in; TIR_NONE above the root */
tir_func tir_func_of(const struct tir *ir, tir_stmt s);
tir_func tir_find_func(const struct tir *ir, const char *name); /* "main": also the only function of a module */
tir_block tir_root_block(const struct tir *ir, tir_func f);     /* TIR_NONE: the function has none (lowered) */
/* Loops around s inside its block's scope, outermost first; returns their number, stores at most `most`. */
uint32_t tir_loops_of(const struct tir *ir, tir_stmt s, tir_loop *out, uint32_t most);
/* Blocks directly in the scope of `s` (not inside blocks of it, nor in its init), in order of text. */
uint32_t tir_child_blocks(const struct tir *ir, tir_stmt s, tir_block *out, uint32_t most);
tir_expr tir_annotation(const struct tir *ir, struct tir_span where, const char *key); /* TIR_NONE: absent */

/* ---- Text: TVMScript --------------------------------------------------------------------------------------------- */

/* Reads a module or one function, in today's dialect or the one before. `file` names the text in messages:
 * file:line:column, the line, a caret, what was expected. NULL: err is filled. Owned by the caller. */
struct tir *tir_read(const char *text, size_t length, const char *file, ms_error *err);
enum { TIR_PRINT_COLOUR = 1, TIR_PRINT_FUNCTION = 2 /* functions alone, without the class around them */ };
/* Today's dialect. Returned text is the caller's to free(). Reading it back gives an equal module; but an expression of
 * more nodes than TIR_MOST_PRINTED, each counted as often as it is used, is left out, and the reader refuses what
 * stands in its place. */
enum { TIR_MOST_PRINTED = 1 << 16 };
char *tir_print(const struct tir *ir, tir_func f /* TIR_NONE: all */, unsigned flags);
char *tir_print_stmt(const struct tir *ir, tir_stmt s, unsigned flags);
char *tir_print_expr(const struct tir *ir, tir_expr e);

/* Real numbers in texts that are read again: by snprintf's format, one of a double, and as strtod reads them (C17,
 * 7.21.6.1 and 7.22.1.3), but with a decimal point whatever LC_NUMERIC a host has. The text must fit; its length. */
int tir_number_text(char *out, size_t size, const char *format, double value);
double tir_text_number(const char *text, char **end);

#include "axis.h"
#include "edit.h"
#include "function.h"
#include "gpu/capability.h"
#include "gpu/device_call.h"
#include "gpu/limits.h"
#include "gpu/pipeline_plan.h"
#include "interpreter.h"
#include "lowered.h"
#include "memory_scope.h"
#include "primitive.h"
#include "query.h"
#include "specialize.h"
#include "verifier.h"

#ifdef __cplusplus
}
#endif
#endif

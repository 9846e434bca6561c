/* Reading TVMScript. Internal to tir.
 *
 * The text is cut into tokens (lexer.h) and read once, by recursive descent over Python's grammar; expressions are
 * evaluated while they are read, into values: expressions of the module, and what Python knows besides them (numbers
 * not yet typed, strings, lists, buffers, regions). Arithmetic between them follows TVM's reader: operands are cast to
 * a common type, operators of constants are folded; T.Add and the like are kept as written.
 *
 *   reader.c         modules, functions, their parameters
 *   reader_stmt.c    statements
 *   reader_assign.c  assignments: stores, lets, declarations
 *   reader_block.c   blocks and what is declared in them
 *   reader_buffer.c  the calls that declare buffers
 *   reader_expr.c    expressions
 *   reader_subscript.c  elements and regions of buffers, attributes
 *   reader_args.c    arguments of a call
 *   reader_call.c    calls of T.name(…) in expressions
 *   reader_fold.c    operators: types of operands, folding of constants
 *   reader_value.c   values, names in scope, errors
 *
 * Every function that returns bool returns false once an error stands in the reader; then nothing more is read. */
#ifndef MSCHED_TIR_READER_H
#define MSCHED_TIR_READER_H

#include "lexer.h"
#include "tir/node/arena.h"

/* Limits that keep recursion and arrays bounded whatever the text. */
enum {
  TIR_MOST_EXPR_DEPTH = 250, /* levels of an expression's tree */
  TIR_MOST_NESTING = 800,    /* of calls while an expression is read: at most three a level */
  TIR_MOST_STMT_DEPTH = 150, /* statements inside each other */
  TIR_MOST_ITERS = 64,       /* iteration variables of a block */
  TIR_MOST_ARGS = 1024       /* arguments of a call, elements of a list, regions of a block */
};
/* More than any machine's memory: a buffer this large is a mistake in the text. */
#define TIR_MOST_BUFFER_BYTES (1ll << 42)

enum tir_item_kind {
  TIR_ITEM_NONE, /* None */
  TIR_ITEM_EXPR,
  TIR_ITEM_INT, /* a Python number: not yet of a type */
  TIR_ITEM_REAL,
  TIR_ITEM_TRUTH,
  TIR_ITEM_STRING, /* symbol in `words` */
  TIR_ITEM_BUFFER,
  TIR_ITEM_REGION, /* buffer, items: an index each, or TIR_ITEM_SLICE */
  TIR_ITEM_SLICE,  /* items: start, stop, step; TIR_ITEM_NONE where left out */
  TIR_ITEM_LIST,   /* list or tuple: items */
  TIR_ITEM_MAP,    /* items: keys and values in turn */
  TIR_ITEM_TYPE    /* a type written as T.float32 or T.handle("float32") */
};

struct tir_item {
  uint32_t kind;
  uint32_t token;        /* where it starts */
  uint32_t first, count; /* items: a run in reader.items */
  union {
    tir_expr expr;
    int64_t integer; /* also the truth */
    double real;
    tir_symbol word;
    tir_buffer buffer;
    tir_type type;
  };
};

/* What a name stands for. */
enum tir_binding_kind {
  TIR_UNBOUND,
  TIR_BOUND_EXPR,
  TIR_BOUND_BUFFER,
  TIR_BOUND_SCALAR,
  TIR_BOUND_THREAD,
  TIR_BOUND_FUNC,
  TIR_BOUND_TYPE
};
struct tir_binding {
  uint32_t kind, ref;
}; /* ref: expression, buffer, buffer of one element, word of the tag, function */
struct tir_reader_let {
  tir_var named; /* in the text */
  tir_expr value;
  tir_var bound; /* in the module */
};

struct tir_shadowed {
  tir_symbol word;
  struct tir_binding binding;
};

struct tir_detection {
  tir_block block;
  uint32_t token;
  bool reads, writes;
};

/* Declarations of the innermost block, gathered until its text ends. */
struct tir_reader_block {
  struct tir_reader_block *outer;
  tir_block block;
  bool has_reads, has_writes, has_predicate, has_init;
  uint32_t iter_count;
  struct tir_iter iters[TIR_MOST_ITERS];
  uint32_t match_count;
  struct tir_match matches[TIR_MOST_ITERS];
};

struct tir_reader {
  struct tir *ir;
  struct tir *words;         /* strings of the text: most of its names do not go into the module */
  const char *source, *file; /* the whole text, for messages */
  size_t source_length;
  const char *text; /* what the tokens are of: the source, or a string in it that is read as an expression */
  struct tir_tokens tokens;
  uint32_t at; /* the next token */
  ms_error *err;
  bool failed;

  struct tir_binding *bindings; /* by word */
  uint32_t binding_capacity;
  struct tir_shadowed *shadowed; /* bindings that inner scopes replaced, to be restored */
  uint32_t shadowed_count, shadowed_capacity;
  struct tir_reader_let *lets; /* of expressions, so far */
  uint32_t let_count, let_capacity;
  struct tir_item *items; /* of lists, regions and argument lists: a stack, emptied after each statement */
  uint32_t item_count, item_capacity;
  uint16_t *depths; /* levels of the tree of each expression */
  uint32_t depth_capacity;
  uint32_t nesting, stmt_depth;

  tir_symbol prefix; /* the word that stands for the module of TIR's names, usually T */
  bool old_import;   /* the text imports TIR as the dialect before does */
  bool old_dialect;  /* of the function being read: T.block, lets by assignment */
  uint32_t quoted;   /* offset of the string that is read as an expression, or UINT32_MAX: errors point there */

  const struct tir_dim *dims; /* values of variables that nothing binds */
  uint32_t dim_count;

  tir_func func;
  tir_stmt parent; /* statements are appended to this list of it */
  enum tir_list list;
  struct tir_reader_block *block;
  tir_buffer *root_allocs;
  uint32_t root_alloc_count, root_alloc_capacity;
  struct tir_detection *detections; /* blocks without T.reads or T.writes, inner ones first */
  uint32_t detection_count, detection_capacity;
};

/* ---- reader_value.c ---- */

/* Records an error at a token (its line, a caret); returns false. Only the first one stays. */
bool tir_reader_fail(struct tir_reader *r, uint32_t token, enum ms_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same at an offset of the text. */
bool tir_reader_fail_at(struct tir_reader *r, size_t offset, enum ms_code code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static inline const struct tir_token *tir_reader_token(const struct tir_reader *r, uint32_t at) {
  return &r->tokens.at[at < r->tokens.count ? at : r->tokens.count - 1];
}
static inline const char *tir_reader_word(const struct tir_reader *r, tir_symbol word) {
  return tir_text(r->words, word);
}
static inline bool tir_reader_is(const struct tir_reader *r, uint32_t at, uint32_t punct) {
  const struct tir_token *t = tir_reader_token(r, at);
  return t->kind == TIR_TOKEN_PUNCT && t->punct == punct;
}
static inline bool tir_reader_is_char(const struct tir_reader *r, char c) {
  return tir_reader_is(r, r->at, TIR_PUNCT(c, 0));
}
bool tir_reader_is_name(const struct tir_reader *r, uint32_t at, const char *name);
bool tir_reader_take_char(struct tir_reader *r, char c);                      /* if it is next */
bool tir_reader_expect_char(struct tir_reader *r, char c, const char *where); /* else an error */
bool tir_reader_take_name(struct tir_reader *r, const char *name);
/* The symbol of a word in the module. */
tir_symbol tir_reader_symbol(struct tir_reader *r, tir_symbol word);
tir_name tir_reader_name(struct tir_reader *r, tir_symbol word);

uint32_t tir_reader_open_scope(const struct tir_reader *r);
void tir_reader_close_scope(struct tir_reader *r, uint32_t mark);
void tir_reader_bind(struct tir_reader *r, tir_symbol word, enum tir_binding_kind kind, uint32_t ref);
struct tir_binding tir_reader_lookup(const struct tir_reader *r, tir_symbol word);

uint32_t tir_reader_push_item(struct tir_reader *r, struct tir_item value);
/* Values that are gathered before they are put down: a run of items is contiguous, and reading a value may push some.
 */
struct tir_values {
  struct tir_item small[8], *at;
  uint32_t count, capacity;
};
void tir_values_begin(struct tir_values *values);
void tir_values_add(struct tir_values *values, struct tir_item value);
/* If `good`, takes `close` and puts the values down as items from *first on; frees what was gathered. */
bool tir_values_end(struct tir_values *values, struct tir_reader *r, bool good, char close, uint32_t *first);
/* Registers the depth of a node just made from registered ones; false (TOO_LARGE) past the limit. */
bool tir_reader_note(struct tir_reader *r, uint32_t token, tir_expr e);
/* Multiplies lanes by those of an index; false (TOO_LARGE) where a vector has no more. */
bool tir_reader_count_lanes(struct tir_reader *r, uint32_t token, tir_expr index, int64_t *lanes);
/* A value as an expression: numbers become int32 (int64 when they must), float32, bool. */
bool tir_reader_as_expr(struct tir_reader *r, struct tir_item v, tir_expr *out);
/* A value as an annotation: lists and maps too. */
bool tir_reader_as_annotation(struct tir_reader *r, struct tir_item v, tir_expr *out);
bool tir_reader_as_int(struct tir_reader *r, struct tir_item v, const char *what, int64_t *out);
bool tir_reader_as_type(struct tir_reader *r, struct tir_item v, tir_type *out);
struct tir_item tir_item_of_expr(tir_expr e, uint32_t token);
/* A constant of a type; refuses what the type cannot hold. */
bool tir_reader_constant(struct tir_reader *r, uint32_t token, tir_type type, double real, int64_t integer,
                         bool is_real, tir_expr *out);
tir_expr tir_reader_zero(struct tir_reader *r, tir_type type);

/* ---- reader_expr.c ---- */

bool tir_read_value(struct tir_reader *r, struct tir_item *out);
/* A value, or several with commas between them as one list: what stands after `=`, `in` or `return`. */
bool tir_read_values(struct tir_reader *r, struct tir_item *out);
bool tir_read_expr(struct tir_reader *r, tir_expr *out);
/* The load that a region without slices is; slices become ramps. */
bool tir_reader_load(struct tir_reader *r, struct tir_item region, tir_expr *out);

/* ---- reader_subscript.c ---- */

/* buffer[…] and list[…], at the bracket. */
bool tir_read_subscript(struct tir_reader *r, struct tir_item buffer, struct tir_item *out);
bool tir_subscript_list(struct tir_reader *r, struct tir_item list, struct tir_item *out);
/* .name of a buffer, or of an expression or a type: after the dot. */
bool tir_read_buffer_attribute(struct tir_reader *r, struct tir_item buffer, struct tir_item *out);
bool tir_read_attribute(struct tir_reader *r, struct tir_item v, struct tir_item *out);
bool tir_read_masked(struct tir_reader *r, uint32_t token, tir_buffer buffer, bool store, tir_expr *indices,
                     struct tir_item *value, tir_expr *predicate);
/* As tir_reader_as_expr, but a region may stay one. */
bool tir_reader_as_argument(struct tir_reader *r, struct tir_item v, tir_expr *out);

/* ---- reader_args.c ---- */

/* Arguments of a call, from its opening bracket to its closing one. */
enum { TIR_MOST_KEYWORDS = 16 };
struct tir_args {
  uint32_t token; /* of the called name */
  const char *name;
  uint32_t first, count; /* positional: in reader.items */
  uint32_t keyword_count;
  struct {
    tir_symbol word;
    bool used;
    struct tir_item value;
  } keywords[TIR_MOST_KEYWORDS];
};
bool tir_read_args(struct tir_reader *r, struct tir_args *out);
/* The argument at a position or of a name; false: absent. Marks it as used. */
bool tir_arg_at(struct tir_reader *r, struct tir_args *args, uint32_t position, const char *keyword,
                struct tir_item *out);
/* An error if positional arguments past `most` or keywords never asked for are left. */
bool tir_args_done(struct tir_reader *r, struct tir_args *args, uint32_t most);

/* ---- reader_call.c ---- */

/* T.name(…) in an expression; r->at is at the bracket. */
bool tir_read_call(struct tir_reader *r, const char *name, uint32_t token, struct tir_item *out);

/* ---- reader_fold.c ---- */

/* Refuses a condition where arithmetic is done: booleans have none. */
bool tir_reader_refuse_truths(struct tir_reader *r, uint32_t token, tir_expr e);
/* Any binary kind with operands cast to a common type and constants folded, as Python's operators on TVM's expressions.
 */
bool tir_reader_binary(struct tir_reader *r, uint32_t token, enum tir_kind kind, tir_expr a, tir_expr b, tir_expr *out);
/* Brings both to a common type. */
bool tir_reader_match(struct tir_reader *r, uint32_t token, tir_expr *a, tir_expr *b);
bool tir_reader_cast(struct tir_reader *r, uint32_t token, tir_type type, tir_expr e, tir_expr *out);

/* The extent of [begin, end), both of one type. */
bool tir_reader_extent(struct tir_reader *r, uint32_t token, tir_expr begin, tir_expr end, tir_expr *out);

/* ---- reader_buffer.c ---- */

/* A name that no loop or block binds, as shapes, strides and parameters declare them: a new variable, or the number
 * that it is given, which must fit its type. */
bool tir_reader_symbol_value(struct tir_reader *r, uint32_t token, tir_name name, tir_type type, tir_expr *out);

struct tir_buffer_text {
  tir_symbol name;   /* in the module */
  bool quoted_shape; /* strings in the shape declare variables */
  uint32_t first;    /* position of the shape among the arguments */
};
bool tir_read_buffer(struct tir_reader *r, struct tir_args *args, const struct tir_buffer_text *how, tir_buffer *out);
/* An extent that must be at least 1 where it is known, and not absurd. */
bool tir_reader_check_extent(struct tir_reader *r, uint32_t token, tir_expr extent, const char *what);
/* A region with its minima and extents, from a value that is a load or a region. */
bool tir_reader_as_region(struct tir_reader *r, struct tir_item v, struct tir_region *out);

/* ---- reader_block.c ---- */

/* with T.sblock(…): at the opening bracket of its arguments; its body is read too. */
bool tir_read_block(struct tir_reader *r, uint32_t token);
/* T.reads(…), T.where(…) and the like, at the opening bracket; *known is false if `name` is none of them. */
bool tir_read_block_line(struct tir_reader *r, const char *name, uint32_t token, bool *known);
/* targets = T.axis.method(…), at the opening bracket. */
bool tir_read_axis(struct tir_reader *r, const tir_symbol *targets, uint32_t count, const char *method, uint32_t token);
/* with T.init(): after its arguments. */
bool tir_read_init(struct tir_reader *r, uint32_t token);
/* target = T.match_buffer(region, …) of the innermost block. */
bool tir_add_match(struct tir_reader *r, uint32_t token, struct tir_item region, tir_buffer buffer);
/* Makes the function's root block where it is implied, and detects the regions that were left out. */
bool tir_complete_func(struct tir_reader *r);

/* ---- reader_assign.c ---- */

/* A line that starts with a name: assignments of all kinds, or an expression by itself. */
bool tir_read_assignment(struct tir_reader *r);
/* buffer.vstore(…), at its brackets. */
bool tir_read_vstore(struct tir_reader *r, uint32_t token, tir_buffer buffer);
/* with T.name(…) as target: the calls that declare something for the suite below. *known is false for other names. */
bool tir_read_declaration(struct tir_reader *r, tir_symbol target, const char *name, uint32_t token, bool *known);

/* ---- reader_stmt.c ---- */

/* The statements of a suite: from its colon to its dedent, appended to list `list` of `parent`. */
bool tir_read_suite(struct tir_reader *r, tir_stmt parent, enum tir_list list);
/* Appends a statement where statements go now. */
void tir_reader_append(struct tir_reader *r, tir_stmt s);
/* The same, and what follows in this suite goes into its body. */
bool tir_reader_enter(struct tir_reader *r, uint32_t token, tir_stmt s);
/* The path after the prefix, T.name or T.name.name, if one starts at r->at and a bracket follows; r->at is then at it.
 */
bool tir_take_path(struct tir_reader *r, char *out, size_t size);
/* A dictionary as annotations. */
bool tir_reader_annotations(struct tir_reader *r, struct tir_item map, struct tir_span *span);
bool tir_reader_new_loop(struct tir_reader *r, tir_symbol name, uint32_t token, tir_expr min, tir_expr extent,
                         enum tir_loop_kind kind, tir_stmt *out);

/* ---- reader.c ---- */

/* As tir_read, with numbers for variables that nothing binds; it has those. */
struct tir *tir_read_with(const char *text, size_t length, const char *file, const struct tir_dim *dims, uint32_t count,
                          ms_error *err);

#endif

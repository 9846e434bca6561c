/* Tokens of the text form: Python's, as far as TVMScript uses them. Internal to tir.
 *
 * The whole text is cut into an array of tokens first, with NEWLINE, INDENT and DEDENT as Python's grammar has them
 * (none inside brackets), so that the reader can look ahead as far as it likes. The text must outlive the tokens. */
#ifndef MSCHED_TIR_LEXER_H
#define MSCHED_TIR_LEXER_H

#include "tir/tir.h"

enum tir_token_kind {
  TIR_TOKEN_END,
  TIR_TOKEN_NEWLINE,
  TIR_TOKEN_INDENT,
  TIR_TOKEN_DEDENT,
  TIR_TOKEN_NAME, /* also keywords */
  TIR_TOKEN_INT,  /* integer: its value; past int64 refused */
  TIR_TOKEN_REAL,
  TIR_TOKEN_STRING, /* contents with escapes resolved: symbol */
  TIR_TOKEN_PUNCT   /* operator or bracket: punct */
};

#define TIR_PUNCT(a, b) ((uint32_t)(unsigned char)(a) | (uint32_t)(unsigned char)(b) << 8)

#define TIR_PUNCT_FLOOR_ASSIGN (TIR_PUNCT('/', '/') | (uint32_t)'=' << 16) /* the one of three characters */

struct tir_token {
  uint32_t offset, length; /* in the text */
  uint32_t kind;
  uint32_t punct; /* TIR_TOKEN_PUNCT: its characters, TIR_PUNCT */
  union {
    int64_t integer;
    double real;
    tir_symbol symbol;
  };
};

struct tir_tokens {
  struct tir_token *at;
  uint32_t count, capacity;
};

/* Cuts a text into tokens, the last one TIR_TOKEN_END; names and strings are interned in `ir`. On failure false, with
 * the place and `why` (static text); `tokens->at` is the caller's to free() in either case. */
bool tir_lex(struct tir *ir, const char *text, size_t length, struct tir_tokens *tokens, size_t *place,
             const char **why);

#endif
